"""The drive profiles: every number says where it comes from, and small ones do what is published.
That each can be built and run at full size is a test of simulated drives."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import ssdlab
from ssdlab.engine.plans import QUICK_CAPACITY
from ssdlab.engine.rehearsal import LEAST_SUPERBLOCKS
from ssdlab.jobfile import read_job
from ssdlab.knowledge import CLASSES
from ssdlab.rig import (
    SUPERBLOCKS_MIN,
    Profile,
    capacity_of,
    profile,
    profiles,
    reduced,
    resolve,
)
from ssdlab.target import Settings

SOURCES = tuple(start for starts in CLASSES.values() for start in starts)
"""How a source may begin."""
DEMONSTRATIONS = ("demo-client", "demo-enterprise", "lab-reference")
DRIVES = [one for one in profiles() if one.name not in DEMONSTRATIONS]
EVERY = pytest.mark.parametrize("drive", DRIVES, ids=lambda one: one.name)


def values(drive: Profile) -> list[tuple[str, str, str]]:
    return drive.rig().values()


@EVERY
def test_every_number_of_a_drive_has_a_source(drive: Profile) -> None:
    for key, value, source in values(drive):
        if re.match(r"\d", value) or value in ("true", "false"):
            assert source, f"{drive.name}: {key} = {value} does not say where it comes from"
        if source:
            assert source.startswith(SOURCES), f"{drive.name}: {key}: {source}"


@EVERY
def test_a_drive_runs_at_a_reduced_size(drive: Profile) -> None:
    job = "[w]\nrw=randwrite\nbs=4k\niodepth=8\nnumber_ios=2000\n"
    result = ssdlab.run(job, on=drive.name, set=reduced(drive.name, 50))
    assert result.frame()["ios"].to_list() == [2000]


PUBLISHED = {
    # GB that the cache holds, MB/s in it, MB/s when it is full.
    "samsung-980-pro-1000": (113, 4000, 1500),
    "samsung-980-1000": (160, 2500, 500),
    "intel-660p-1024": (140, 1800, 100),
}
"""TechPowerUp (980 PRO, 980) and evantechbook (660p). All but the last number are fitted."""


@pytest.mark.parametrize("drive", PUBLISHED)
def test_a_drive_with_an_slc_cache_is_filled_at_the_published_speeds(drive: str) -> None:
    factor = 50
    size, fast, slow = PUBLISHED[drive]
    job = "[w]\nrw=write\nbs=1m\niodepth=8\nsize=50%\n"
    # Whole superblocks go to the cache and back: of a dozen, one is a large part of it.
    overrides = reduced(drive, factor, fewest=SUPERBLOCKS_MIN)
    settings = Settings(overrides=overrides, interval_ms=20)
    frame = resolve(drive).run(read_job(job), settings).device_series()
    assert frame is not None
    time = frame["time_s"].to_numpy()
    written = frame["below/host_bytes_written"].to_numpy() / 1e6
    knee = size * 1000 / factor

    def rate(start: float, end: float) -> float:
        first, last = np.interp([start, end], written, time)
        return float((end - start) / (last - first))

    assert rate(0.2 * knee, 0.9 * knee) == pytest.approx(fast, rel=0.03)
    predicted = drive == "intel-660p-1024"
    assert rate(1.2 * knee, written[-1]) == pytest.approx(slow, rel=0.2 if predicted else 0.05)


SEQUENTIAL_WRITE = {
    "intel-dc-p4500-1000": (600, 0.02),
    "intel-dc-p4500-4000": (1800, 0.02),
    "intel-dc-p4510-2000": (2000, 0.02),
    "samsung-pm1733-3840": (3800, 0.02),
    "samsung-970-pro-512": (2300, 0.05),
}
"""Rated MB/s (Lenovo's guide, hardwareluxx.de, Puget Systems; the P4510's recalled), and how near.

The P4500's are limits put in by hand, and the P4510's tPROG is fitted to it. The last two are
predicted, from what Samsung announced of the flash and from NVMeVirt's calibration."""


RESERVES = {
    "intel-dc-p4500-2000": (1050, 256),
    "intel-dc-p4510-2000": (2000, 256),
    "intel-dc-s4610-480": (502, 32),
}
"""MB/s of sequential writes, and how many times smaller it is tried."""


@pytest.mark.parametrize("drive", SEQUENTIAL_WRITE)
def test_a_drive_without_a_cache_is_filled_at_its_rated_speed(drive: str) -> None:
    rated, near = SEQUENTIAL_WRITE[drive]
    job = "[w]\nrw=write\nbs=128k\niodepth=32\nio_size=3g\n"
    result = ssdlab.run(job, on=drive, set=reduced(drive, 100))
    assert result.frame()["bw_bytes"][0] / 1e6 == pytest.approx(rated, rel=near)


@pytest.mark.parametrize("drive", RESERVES)
def test_a_fitted_reserve_leads_to_what_its_source_says(drive: str) -> None:
    """One that was fitted by amplification alone says what is simulated: collection also takes
    channels and dies from the host."""
    rated, factor = RESERVES[drive]
    source = {key.removeprefix("below."): why for key, _, why in values(profile(drive))}
    why = source["nand.reserve"]
    job = "[w]\nrw=randwrite\nbs=4k\niodepth=128\nnorandommap\nio_size=512m\n"
    result = ssdlab.run(job, on=drive, set=reduced(drive, factor), prepare="steady")
    frame = result.frame()
    if iops := re.search(r"fitted to (\d+) random writes", why):
        assert frame["iops"][0] == pytest.approx(float(iops[1]), rel=0.05)
    else:
        told = re.search(r"simulated ([\d.]+) times", why) or re.search(r"([\d.]+) times", why)
        assert told is not None
        slower = rated * 1e6 / frame["bw_bytes"][0]
        assert slower == pytest.approx(float(told[1]), rel=0.05)


def test_reduced_drives_keep_what_is_spare_beside_the_superblock_that_collection_is_ahead() -> None:
    """Whole superblocks are the reason why the capacity is not exactly a fortieth.

    They are smaller ones where the drive erases blocks of many dies together.
    """
    small = reduced("intel-x25-m-g2-160", 40)
    whole = 40 * 256 * 4096
    stripe = 40 * int(small["nand.pages_per_block"]) * 4096
    capacity = int(small["capacity"].removesuffix("B"))
    reserve = float(small["ftl.over_provisioning"])
    superblocks = capacity * (1 + reserve) / stripe
    assert superblocks == pytest.approx(round(superblocks), abs=1e-3)
    assert capacity == pytest.approx(160_041_885_696 / 40, rel=0.01)
    share = 0.0735 - whole / 160_041_885_696
    assert reserve - stripe / capacity == pytest.approx(share, rel=1e-4)


def test_a_710_writes_as_rated_because_it_programs_one_plane_at_a_time() -> None:
    """An X25-E has the same controller, but its channels are what holds its flash up."""
    job = "[w]\nrw=randwrite\nbs=4k\niodepth=32\nnorandommap\nio_size=64m\n"

    def rate(name: str, planes: int) -> float:
        small = reduced(name, 100) | {"nand.planes": str(planes)}
        return float(ssdlab.run(job, on=name, prepare="steady", set=small).frame()["iops"][0])

    one, two = (rate("intel-710-200", planes) for planes in (1, 2))
    assert two / one > 1.7
    one, two = (rate("intel-x25-e-64", planes) for planes in (1, 2))
    assert two / one == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("name", ["intel-330-120", "kingston-hyperx-120", "kingston-hyperx-240"])
def test_sandforce_drives_program_little_of_what_compresses(name: str) -> None:
    """Measured 0.14 for wholly compressible data (Tom's Hardware, Intel SSD 520 review, 2012)."""
    job = "[w]\nrw=write\nbs=128k\nnumber_ios=4000\n"
    small = reduced(name, 200)
    zeros = ssdlab.run(job + "zero_buffers\n", on=name, set=small)
    assert zeros.waf == pytest.approx(0.14, rel=0.12)
    half = ssdlab.run(job + "buffer_compress_percentage=50\n", on=name, set=small)
    assert half.waf == pytest.approx(0.5, rel=0.01)
    none = ssdlab.run(job, on=name, set=small)
    assert none.waf == pytest.approx(1.0, rel=0.01)


@EVERY
def test_a_drive_made_small_for_a_quick_look_keeps_its_reserve_in_blocks(drive: Profile) -> None:
    # A drive of a few superblocks has no reserve left beside those it writes into, and amplifies
    # writes like nothing that exists.
    was = {key.replace("below.", ""): value for key, value, _ in values(drive)}
    if "nand.channels" not in was:
        pytest.skip("is no SSD")
    factor = max(1, capacity_of(drive.name) // QUICK_CAPACITY)
    changed = reduced(drive.name, factor, fewest=LEAST_SUPERBLOCKS)
    made = was | changed
    size = {"B": 1, "KiB": 1 << 10}

    def number(text: str) -> int:
        digits = re.match(r"\d+", text)
        assert digits is not None
        return int(digits[0]) * size[text[digits.end() :]]

    units = ("nand.channels", "nand.ways", "nand.planes", "nand.pages_per_block")
    superblock = number(made["nand.page"]) * math.prod(int(made[unit]) for unit in units)
    reserve = float(made["ftl.over_provisioning"])
    if factor > 1:
        stripe = int(made.get("ftl.parity.stripe", 0))
        held = 1 - 1 / stripe if stripe > 1 else 1
        superblocks = number(made["capacity"]) * (1 + reserve) / superblock / held
        assert superblocks >= LEAST_SUPERBLOCKS - 1
        assert superblocks * reserve / (1 + reserve) > 3
