"""``ssdlab.reliability``: how likely an array of drives loses data, and what makes it safer."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeVar

from ssdlab import rating, units
from ssdlab.analysis.reliability import COPIES, HOURS_PER_YEAR, Array
from ssdlab.answers import reliability as study_answer
from ssdlab.api.report import Report
from ssdlab.api.rig import Drive, named_or_rigs
from ssdlab.api.target import rated
from ssdlab.api.watching import Watch, shown
from ssdlab.api.working import working
from ssdlab.arrays.rigs import level_of, named
from ssdlab.engine.ratings import under_random_writes
from ssdlab.errors import InputError
from ssdlab.given import Many, Size, large, listed, text
from ssdlab.studies import reliability as study
from ssdlab.studies.reliability import MODEL_SPREAD, SPREAD, Question

T = TypeVar("T")
CAPACITY = "3.84TB"
AFR_PERCENT = 1.0
"""2 906 SSDs of a cloud provider: 25 failures in 934 441 drive days, 0.98 failures per 100 drive
years (Backblaze Drive Stats, SSD edition, 2022)."""


def reliability(
    *,
    level: Many | None = None,
    members: int = 4,
    copies: int | None = None,
    drive: Drive | None = None,
    capacity: Size | None = None,
    afr: float | None = None,
    mtbf: float | None = None,
    uber: float | None = None,
    rebuild_rate: Size = "204.8MB/s",
    replace_after: float = 24.0,
    one_at_a_time: bool = False,
    years: float = 5.0,
    tbw: Size | None = None,
    writes_per_day: Size | None = None,
    full_stripes: bool = False,
    stagger: Many | None = None,
    models: int | None = None,
    spread: float | None = None,
    model_spread: float | None = None,
    renew_at: float | None = None,
    runs: int = 50_000,
    seed: int = 0,
    cluster: str | None = None,
    progress: Watch = None,
) -> Report:
    """Says how likely an array loses data: by closed form and by simulation, with wear.

    Args:
        level: RAID levels, of 0, 1, 10, 5, 6; all that the members allow unless given. RAID 1 keeps
            a copy on every member.
        members: Drives.
        copies: Copies of RAID 10; 2 unless given.
        drive: Profile or rig, such as a twin, that the members are: it tells their capacity and,
            beside ``writes_per_day``, what its flash takes in steady random writes (simulated),
            unless ``tbw`` does.
        capacity: Capacity of a drive; 3.84TB unless given.
        afr: Failures per 100 drive years; 1 unless given, about what field studies find.
        mtbf: Hours between failures, instead of ``afr``.
        uber: Unrecoverable errors per bit read: 1e-17 unless given, as in data sheets of data
            centre SSDs (JESD218 asks for 1e-16 of enterprise SSDs); 1e-15 where ``drive`` is a
            client SSD, as JESD218 asks, or a disk.
        rebuild_rate: Bytes per second that a rebuild writes; the default is the limit of Linux md.
        replace_after: Time from failure to rebuild start; 0 with a hot spare.
        one_at_a_time: Where several members are missing, one is rebuilt after the other, as
            textbook formulas have it.
        years: Mission time of the array.
        tbw: Rated endurance of a drive, such as ``"600TB"``, or a number of TB.
        writes_per_day: What the host writes to the array in a day.
        full_stripes: Writes fill whole stripes, so that parity is written once for all of their
            data; else each small write writes its own parity.
        stagger: Percentage of the rating already written at the start: by how much neighbours
            differ, or one number for each drive.
        models: Different models among the drives.
        spread: By how much the endurance of drives of one model differs (standard deviation); 5
            unless given, which is assumed.
        model_spread: The same between models; 20 unless given, which is assumed.
        renew_at: How much of its rating is written when a drive is copied to a new one.
        runs: Lives to simulate.
        seed: Seed of all random streams.
        cluster: As for :func:`ssdlab.sweep`.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.

    Raises:
        InputError: an option is wrong, or does not go with another.
        Interrupted: it was stopped; nothing was kept.
    """
    if tbw is not None and writes_per_day is None:
        raise InputError("wear takes both --tbw and --writes-per-day, found one of them")
    if writes_per_day is not None and tbw is None and drive is None:
        raise InputError("wear takes --tbw or --drive beside --writes-per-day, found neither")
    wear_only = {
        "--full-stripes": full_stripes or None,
        "--stagger": stagger,
        "--models": models,
        "--spread": spread,
        "--model-spread": model_spread,
        "--renew-at": renew_at,
    }
    for name, value in wear_only.items():
        if value is not None and writes_per_day is None:
            raise InputError(f"{name} changes how drives wear: give --tbw and --writes-per-day too")
    question = Question(
        members=members,
        capacity_bytes=_capacity(CAPACITY if capacity is None else capacity),
        levels=_levels(listed(level)),
        copies=COPIES[0] if copies is None else copies,
        failures_per_year=_failures(afr, mtbf),
        uber=rating.UBER if uber is None else _uber(uber),
        rebuild_bytes_per_s=large("--rebuild-rate", text(rebuild_rate).removesuffix("/s"), "MB"),
        replace_hours=replace_after,
        one_at_a_time=one_at_a_time,
        years=years,
        tbw_bytes=rated(tbw),
        writes_per_day_bytes=None
        if writes_per_day is None
        else large("--writes-per-day", writes_per_day),
        full_stripes=full_stripes,
        stagger=_percents("--stagger", listed(stagger)),
        models=models,
        spread=_share("--spread", spread, SPREAD),
        model_spread=_share("--model-spread", model_spread, MODEL_SPREAD),
        renew_at=_share("--renew-at", renew_at, None),
        runs=runs,
        seed=seed,
    )
    if copies is not None and all(one.level != "10" for one in question.arrays()):
        if question.levels:
            raise InputError("--copies is for RAID 10, which is not among the levels")
        Array("10", members, question.capacity_bytes, copies)  # raises why it is none
    if drive is not None:
        question = _of_drive(question, drive, capacity, uber, progress)
    with working("simulating lives", progress, cluster) as callback:
        return Report(study_answer.answer(study.study(question, callback)))


def _of_drive(
    question: Question, drive: Drive, capacity: Size | None, uber: float | None, progress: Watch
) -> Question:
    """With what the drive says of itself: its capacity, of which kind it is, and its endurance
    where that is asked."""
    if capacity is not None:
        raise InputError("give --drive or --capacity, not both")
    (given,) = named_or_rigs(drive)
    rig = named(given) if isinstance(given, str) else given
    tree = rig.tree()
    if uber is None:
        disk = bool(tree.find("hdd"))
        errors, kind = rating.uber(tree.drive_class, disk=disk)
        said = tree.drive_class or "no class of drive"
        why = f"{rig.name} is one" if disk else f"{rig.name} says {said}"
        question = replace(question, uber=errors, uber_source=f"those of {kind}: {why}")
    found = replace(question, capacity_bytes=tree.capacity_bytes)
    if question.writes_per_day_bytes is None or question.tbw_bytes is not None:
        return found
    with shown(progress, "how the drive wears") as callback:
        takes = under_random_writes(rig, int(found.capacity_bytes), question.seed, callback)
    return replace(found, tbw_bytes=takes.bytes, tbw_source=takes.source)


def _levels(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    return tuple(map(level_of, units.words("--levels", text)))


def _capacity(given: Size) -> int:
    found = large("--capacity", given)
    if found <= 0:
        raise InputError(f'--capacity "{given}": expected more than 0 bytes')
    return found


def _uber(given: float) -> float:
    if not 0 <= given <= 1:
        raise InputError(
            f"--uber {given:g}: expected an error rate per bit, 0 or more and at most 1"
        )
    return given


def _failures(afr: float | None, mtbf: float | None) -> float:
    """Failures of a drive per year."""
    if afr is not None and mtbf is not None:
        raise InputError("give --afr or --mtbf, not both")
    if mtbf is not None:
        if not (math.isfinite(mtbf) and mtbf >= 1):
            raise InputError(f"--mtbf {mtbf:g}: expected hours, at least 1, such as 2000000")
        return HOURS_PER_YEAR / mtbf
    percent = AFR_PERCENT if afr is None else afr
    if not 0 <= percent <= 10_000:
        raise InputError(f"--afr {percent:g}: expected failures per 100 drive years, 0 to 10000")
    return percent / 100


def _share(option: str, percent: float | None, otherwise: T) -> float | T:
    if percent is None:
        return otherwise
    if not 0 <= percent <= 1000:
        raise InputError(f"{option} {percent:g}: expected percent, 0 to 1000")
    return percent / 100


def _percents(option: str, text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    expected = "percent, such as 10 or 0,15,30,45 or 0..45/4"
    found = units.percents(option, text, expected, lambda percent: 0 <= percent <= 1000)
    return tuple(percent / 100 for percent in found)
