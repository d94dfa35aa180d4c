"""Rigs are looked into and changed by the core alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import ssdlab
from ssdlab import _core
from ssdlab.errors import InputError
from ssdlab.rig import SUPERBLOCKS_MIN, capacity_of, profile, profiles, reduced

CACHED = """
name = "cached"
summary = "an SSD before a disk"
[device]
kind = "cache"
[device.cache]
kind = "ssd"
capacity = { value = "4GiB", source = "datasheet" }
ftl = { over_provisioning = 0.28, gc = { victim = "greedy" } }
[device.below]
kind = "hdd"
capacity = "1TB"
"""


def test_a_rig_says_what_it_is_and_what_its_keys_are() -> None:
    rig = _core.Rig(CACHED, rig_name="x")
    assert (rig.name, rig.summary) == ("cached", "an SSD before a disk")
    assert (rig.find("ssd"), rig.find("hdd"), rig.find("tier")) == (["cache."], ["below."], [])
    assert rig.get("cache.ftl.gc.victim") == "greedy"
    assert (rig.bytes("cache.capacity"), rig.bytes("below.capacity")) == (4 << 30, 10**12)
    assert (rig.get("cache.nand.channels"), rig.bytes("cache.write_buffer.size")) == (None, None)
    with pytest.raises(InputError, match=r"^cache\.ftl\.gc\.victim: .*expected a size"):
        rig.bytes("cache.ftl.gc.victim")


def test_what_is_set_is_what_it_says_and_writes() -> None:
    rig = _core.Rig(profile("demo-client").text, rig_name="demo-client")
    memory = rig.memory_bytes
    rig.set("capacity", "1GiB")
    assert rig.bytes("capacity") == 1 << 30
    assert _core.Rig(rig.to_toml(), rig_name="again").bytes("capacity") == 1 << 30
    assert 0 < rig.memory_bytes < memory
    with pytest.raises(InputError, match="capacities"):
        rig.set("capacities", "1GiB")


def test_a_rig_is_made_of_rigs_and_its_parts_are_found_again() -> None:
    pool = _core.Rig(CACHED, rig_name="pool").part("below.")
    fast = _core.Rig(CACHED, rig_name="fast").part("cache")
    assert pool is not None
    assert fast is not None
    made = _core.Rig.wrap("cache", {"mode": "write-back"}, name="x", cache=fast, below=pool)
    assert (made.name, made.get("mode"), made.get("below.kind")) == ("x", "write-back", "hdd")
    assert ("cache.capacity", "4GiB", "datasheet") in made.values()
    again = _core.Rig(made.to_toml(), rig_name="again")
    assert sorted(again.values()) == sorted(made.values())
    assert made.part("member") is None
    mixed = _core.Rig.wrap("array", {"level": "raid0"}, members=[pool, fast])
    assert mixed.find("hdd") == ["members.0."]
    with pytest.raises(InputError, match="expected one rig as below"):
        _core.Rig.wrap("link", {}, under=pool)
    with pytest.raises(TypeError, match="no value of a rig"):
        _core.Rig.wrap("null", {"capacity": None})


def test_a_copy_is_changed_alone() -> None:
    rig = profile("lab-reference").rig()
    other = rig.copy(name="y", summary="another")
    other.set("capacity", "1GiB")
    assert (rig.bytes("capacity"), other.bytes("capacity")) == (16 << 30, 1 << 30)
    assert (rig.name, other.name, other.summary) == ("lab-reference", "y", "another")


def test_capacity_is_what_the_host_sees() -> None:
    drive = _core.Rig.wrap("null", {"capacity": "1GiB"})
    assert drive.capacity_bytes == 1 << 30
    keys = {"level": "raid5", "count": 4, "chunk": "64KiB"}
    assert _core.Rig.wrap("array", keys, member=drive).capacity_bytes == 3 << 30


def test_what_is_no_rig_is_one_sentence() -> None:
    for text in ("", "x = 1", "[device", "name = 3\n[device]\nkind = 'ssd'"):
        with pytest.raises(InputError, match=r"^broken(:| )"):
            _core.Rig(text, rig_name="broken")


@pytest.mark.parametrize("name", [one.name for one in profiles()])
def test_a_drive_made_smaller_is_built_and_about_as_small(name: str) -> None:
    rig = _core.Rig(profile(name).text, rig_name=name)
    if not (rig.find("ssd") or rig.find("hdd")):
        pytest.skip("no drive of blocks or platters")
    factor = max(2, capacity_of(name) >> 32)
    changes = reduced(name, factor)
    size = int(changes["capacity"].removesuffix("B"))
    assert size == pytest.approx(capacity_of(name) / factor, rel=0.25)
    _core.rig_check(profile(name).text, rig_name=name, overrides=list(changes.items()))


def test_a_drive_of_its_own_size_needs_no_changes() -> None:
    assert reduced("intel-x25-m-g2-160", 1) == {}


SHIPPED = [(one.name, 16) for one in profiles() if one.rig().find("ssd")] + [
    (one.name, 64)
    for one in profiles()
    if one.rig().find("ssd") and capacity_of(one.name) >= 960_000_000_000
]


@pytest.mark.parametrize(("name", "factor"), SHIPPED)
def test_shipped_ssds_run_at_reduced_size(name: str, factor: int) -> None:
    rig = profile(name).rig()
    changes = rig.scale(factor, fewest=SUPERBLOCKS_MIN)
    assert int(dict(changes)["capacity"].removesuffix("B")) == pytest.approx(
        capacity_of(name) / factor, rel=0.01
    )
    _core.rig_check(profile(name).text, rig_name=name, overrides=changes)


STACK = """
[device]
kind = "partition"
size = "100GB"
[device.below]
kind = "array"
level = "linear"
[[device.below.members]]
kind = "hdd"
capacity = "100GB"
rpm = 7200
seek_average = "8.5ms"
sustained_outer = "180MB/s"
sustained_inner = "90MB/s"
[[device.below.members]]
kind = "ssd"
capacity = "64GiB"
[device.below.members.nand]
channels = 2
ways = 2
page = "16KiB"
pages_per_block = 256
t_read = "50us"
t_program = "600us"
t_erase = "3ms"
transfer_mts = 400
[device.below.members.ftl]
over_provisioning = 0.07
"""


def spare(rig: _core.Rig, place: str) -> float:
    """What is spare of 16 KiB x 4 dies, to the data; paced collection is one superblock ahead."""
    pages = int(rig.get(f"{place}nand.pages_per_block") or 0)
    data = (rig.bytes(f"{place}capacity") or 0) / (pages * 4 * (16 << 10))
    return float(rig.get(f"{place}ftl.over_provisioning") or 0) - 1 / data


def test_whatever_a_rig_is_made_of_is_made_smaller() -> None:
    rig = _core.Rig(STACK, rig_name="stack")
    before, share = rig.capacity_bytes, spare(rig, "below.members.1.")
    for key, value in rig.scale(10, fewest=SUPERBLOCKS_MIN):
        rig.set(key, value)
    assert rig.capacity_bytes == pytest.approx(before / 10, abs=4096)
    assert rig.bytes("below.members.0.capacity") == pytest.approx(10e9, abs=4096)
    assert rig.bytes("below.members.1.capacity") == pytest.approx((64 << 30) / 10, rel=0.01)
    assert spare(rig, "below.members.1.") == pytest.approx(share, rel=1e-4)
    # Each is as it would be alone.
    alone = _core.Rig(STACK, rig_name="stack").part("below.members.1")
    assert alone is not None
    assert dict(alone.scale(10))["capacity"] == rig.get("below.members.1.capacity")
    # However often it is made smaller, it stands for the same drive.
    assert rig.bytes("below.members.1.full_capacity") == 64 << 30
    assert dict(rig.scale(2))["below.members.1.full_capacity"] == f"{64 << 30}B"


def test_a_cached_map_holds_the_same_share_of_a_smaller_drive() -> None:
    rig = profile("samsung-980-1000").rig()
    for factor in (8, 32):
        cache = dict(rig.scale(factor, fewest=SUPERBLOCKS_MIN))["ftl.map.cache"]
        assert cache == f"{(64 << 20) // factor}B"


def test_keys_are_set_after_a_drive_was_made_smaller() -> None:
    job = "[w]\nrw=randwrite\nsize=8m\n"
    found = ssdlab.run(job, on="demo-client", scale=4, set={"write_buffer.size": "1MiB"})
    whole = capacity_of("demo-client")
    assert found.ssdlab["target"]["capacity_bytes"] == pytest.approx(whole / 4, rel=0.05)
    assert found.document["jobs"][0]["write"]["io_bytes"] == 8 << 20
    assert found.ssdlab["built"]["below"]["over_provisioning"] == pytest.approx(0.07, rel=0.05)
    more = {"ftl.over_provisioning": 0.3}
    set_too = ssdlab.run(job, on="demo-client", scale=4, set=more)
    assert set_too.ssdlab["built"]["below"]["over_provisioning"] == pytest.approx(0.3, rel=0.02)


def test_what_cannot_be_made_smaller_says_why(tmp_path: Path) -> None:
    null = _core.Rig('[device]\nkind = "null"\ncapacity = "1GiB"\n', rig_name="n")
    assert null.scale(2) == [("capacity", f"{1 << 29}B")]
    with pytest.raises(InputError, match="0 times smaller"):
        null.scale(0)
    drive = profile("micron-5200-eco-960").rig()
    with pytest.raises(InputError, match=r"cannot be made 100000 times smaller: .* times can be"):
        drive.scale(100000, fewest=SUPERBLOCKS_MIN)
    with pytest.raises(InputError, match="a real one is as it is"):
        ssdlab.run("[w]\nrw=read\n", on=tmp_path / "x.bin", scale=2)
    assert not list(tmp_path.iterdir())


def test_keys_that_need_each_other_are_set_together() -> None:
    job = "[w]\nrw=randwrite\nsize=8m\n"
    keys = {"write_buffer.size": "1MiB", "write_buffer.power_loss_protected": "true"}
    found = ssdlab.run(job, on="lab-reference", scale=16, set=keys)
    assert found.document["jobs"][0]["write"]["io_bytes"] == 8 << 20
    assert ssdlab.Rig("lab-reference").set(keys).get("write_buffer.size") == "1MiB"
    alone = {"write_buffer.size": "1MiB"}
    with pytest.raises(InputError, match="power_loss_protected: is missing"):
        ssdlab.run(job, on="lab-reference", scale=16, set=alone)
