"""Who tells how much may be written to a drive: its owner, the drive itself, a profile of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ssdlab.errors import InputError
from ssdlab.fio import surroundings
from ssdlab.jobfile import JobText
from ssdlab.progress import ProgressCallback
from ssdlab.rating import Rating
from ssdlab.rig import Profile, capacity_of, profiles, smaller_rig
from ssdlab.smart import smartctl
from ssdlab.system import System
from ssdlab.target import Sim, SimSession, Target, Terms, real
from ssdlab.units import counted
from ssdlab.wear import Stretch, rated_bytes

LEAST_USED = 5
"""Percent of wear from which on what was written so far says what may be written in all: wear is
told in steps of 1 %."""
SIMULATED_BYTES = 4 << 30
"""A drive is made smaller towards this to see how much it amplifies writes."""
UNAMPLIFIED = ", before write amplification"
"""Of how much flash takes when nothing says how much of that is copies."""
_SIZES = 0.05
"""Capacities that differ by less than this share are those of the same model."""

_MEANINGLESS = frozenset({"ssd", "gb", "nvme", "series"})
"""Words of a model's name that tell no model from another."""


def rating_of(path: Path, given: float | None) -> Rating | None:
    """The rated endurance of the drive at or below ``path``: what is ``given`` (bytes, by
    ``--tbw``), else what the drive's own counters say, else what a profile of its model says."""
    if given is not None:
        return Rating(given, "--tbw")
    system = System()
    disk = system.disk_below(path)
    if disk is None:
        return None
    answer = surroundings.smart(disk, redact=False)
    model = system.of(disk, "device/model")
    return _by_wear(answer, disk) or _by_profile(model, system.bytes_of(disk))


def rating_for(target: Target, given: float | None) -> Rating | None:
    """The same for any target; of a simulated drive only what is ``given``, for its flash tells
    when it is built."""
    if target.simulated:
        return None if given is None else Rating(given, "--tbw")
    return rating_of(real(target, f"{target.name}: is simulated").path, given)


def _by_wear(answer: Mapping[str, Any] | None, name: str) -> Rating | None:
    """A drive that tells what was written and how much of its life that took."""
    if answer is None:
        return None
    try:
        health = smartctl.parse(answer, name)
    except InputError:
        return None
    used, written = health.used_percent, health.written_bytes
    if not written or used is None or used < LEAST_USED:
        return None
    return Rating(
        100 * written / used, f"by its own SMART counters, {used:.0f} % used by what was written"
    )


def _by_profile(model: str | None, capacity: int) -> Rating | None:
    """What the flash of a shipped profile of the same model takes."""
    for profile in profiles() if model else ():
        if not is_model(profile, model or ""):
            continue
        if abs(capacity_of(profile.name) / capacity - 1) > _SIZES:
            continue
        return of_profile(profile, capacity)
    return None


def of_profile(profile: Profile, capacity: int) -> Rating | None:
    """What the flash of a shipped SSD of so many bytes takes (at reduced size it has more to spare
    in name, and would seem to live longer), None of a disk."""
    rig = profile.rig()
    cycles, spare = rig.get("nand.rated_pe_cycles"), rig.get("ftl.over_provisioning")
    if cycles is None or spare is None:
        return None
    rated = int(cycles) * capacity * (1 + float(spare))
    source = f"the flash of the profile {profile.name}, {counted(int(cycles), 'cycle')}"
    return Rating(rated, f"{source}{UNAMPLIFIED}")


def of_flash(session: SimSession) -> Rating | None:
    """What the flash of a simulated drive takes in all; None where it is not flash alone."""
    counters = session.core.counters()
    rated = rated_bytes(counters, session.capacity)
    if rated is None:
        return None
    cycles = min(value for name, value in counters.items() if name.endswith("rated_pe_cycles"))
    return Rating(rated, f"its flash, {counted(cycles, 'cycle')}{UNAMPLIFIED}")


def under_random_writes(
    drive: Sim, capacity: int, seed: int, progress: ProgressCallback | None
) -> Rating:
    """What the host can write to a simulated drive of ``capacity`` bytes in steady 4 KiB random
    writes, simulated at reduced size, until the rated cycles of its flash are used up; InputError
    where no SSD alone is written to, and Interrupted."""
    name = drive.source or drive.name
    factor = max(1, capacity // SIMULATED_BYTES)
    keys = smaller_rig(drive.rig, name, factor)
    with drive.open(Terms(keys, seed)) as session:
        rating = of_flash(session)
        if rating is None:
            raise InputError(f"{name}: is no SSD alone, which would tell its endurance; give --tbw")
        session.prepare("steady", progress)
        text = (
            f"[writes]\nrw=randwrite\nbs=4k\niodepth=32\nnorandommap\nio_size={session.capacity}\n"
        )
        result = session.run(JobText("writes", text, Path()), None)
        wear = Stretch.of(result).wear
        assert wear is not None
        assert wear.endurance is not None
        endurance = wear.endurance
        return Rating(
            endurance.host_bytes,
            f"{rating.source.removesuffix(UNAMPLIFIED)}, at a write amplification of "
            f"{endurance.write_amplification:.3g} under steady 4 KiB random writes",
        )


def is_model(profile: Profile, model: str) -> bool:
    """Whether a drive that calls itself ``model`` is the profile's: by the words of its name, or
    by the part number in its summary."""
    words = set(_words(model))
    names = re.findall(r"\(([A-Z0-9-]{6,})\)", profile.summary)
    if any(name.lower() in model.lower() for name in names):
        return True
    maker, *wanted = _words(profile.name)
    # The maker's name is often left out by the drive; any other word makes it another model.
    return len(wanted) > 1 and words - {maker, *_MEANINGLESS} == set(wanted)


def _words(text: str) -> list[str]:
    """``Samsung SSD 970 PRO 512GB`` as samsung, ssd, 970, pro, 512, gb; 1TB as 1000."""
    lower = re.sub(r"\b(\d+)\s*tb\b", lambda size: f"{size[1]}000", text.lower())
    return re.findall(r"[a-z]+\d+[a-z0-9]*|[a-z]+|\d+", lower)
