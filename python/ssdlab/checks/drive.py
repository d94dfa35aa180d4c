"""What the drive says of itself: heat, errors; and stalls and gaps in what was recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from ssdlab.checks.base import Probe, Symptom, of_jobs
from ssdlab.checks.facts import Facts
from ssdlab.checks.machine import limited
from ssdlab.units import counted

LIMIT_C = 70.0
"""Operating limit of most SSDs, taken where a drive does not tell its own (JEDEC JESD218 client
and enterprise drives: 70 C)."""
NEAR_C = 5.0
FALLS = 0.10
"""A series that loses more than this share from its first to its last quarter falls. Ours."""
GROWN = {
    5: "reallocated sectors",
    187: "uncorrectable errors",
    196: "reallocation events",
    197: "pending sectors",
    198: "uncorrectable sectors",
    199: "errors of the cable (CRC)",
}
"""ATA attributes that should never grow (smartmontools drivedb, defaults)."""


def _smart(facts: Facts) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    smart = facts.surroundings.get("smart") or {}
    return (smart["before"], smart["after"]) if smart.get("before") and smart.get("after") else None


def _hot(facts: Facts) -> Iterator[Symptom]:
    troubles = list(_throttled(facts))
    yield from troubles
    found = _temperature(facts)
    if found is None:
        if not troubles:
            yield Symptom("unknown", "the drive does not tell its temperature")
        return
    before, after, limit = found
    told = f"{after:.0f} C at the end, limit {limit:.0f} C"
    falls = any(
        m.sampling and m.sampling.last < (1 - FALLS) * m.sampling.first
        for work in facts.works
        if work.name not in facts.fills
        for m in work.moved
    )
    if after >= limit:
        yield Symptom("bad", f"the drive was too hot: {told}")
    elif falls and after > before and after >= limit - 2 * NEAR_C:
        yield Symptom("bad", f"the speed falls while the drive gets hot: {told}")
    elif after >= limit - NEAR_C:
        yield Symptom("doubt", f"the drive was nearly too hot: {told}")
    elif not troubles:
        yield Symptom("good", f"the drive kept cool: {told}")


def _throttled(facts: Facts) -> Iterator[Symptom]:
    """Counters that grow while somebody throttles."""
    for name, which in (("warning_temp_time", "warning"), ("critical_comp_time", "critical")):
        if (grown := _grown_in_log(facts, name)) > 0:
            yield Symptom("bad", f"the drive was above its {which} temperature for {grown} min")
    if (count := int(facts.observed.get("cpu_throttles") or 0)) > 0:
        yield Symptom("doubt", f"processors throttled {counted(count, 'time')} from heat")


def _grown_in_log(facts: Facts, name: str) -> int:
    """By how much a counter of the NVMe health log grew."""
    logs = [
        page.get("nvme_smart_health_information_log") or {} for page in _smart(facts) or ({}, {})
    ]
    return int(logs[1].get(name, 0)) - int(logs[0].get(name, 0))


def _temperature(facts: Facts) -> tuple[float, float, float] | None:
    """Before, after, and the limit, in degrees Celsius."""
    sensor = facts.observed.get("celsius") or {}
    pages = _smart(facts)
    told = [(page.get("temperature") or {}) for page in pages] if pages else [{}, {}]
    before = told[0].get("current", sensor.get("before"))
    after = told[1].get("current", sensor.get("after"))
    if before is None or after is None:
        return None
    limits = (told[1].get("op_limit_max"), sensor.get("limit"), told[1].get("limit_max"), LIMIT_C)
    return float(before), float(after), float(next(limit for limit in limits if limit))


def _failed(facts: Facts) -> Iterator[Symptom]:
    troubles = [*_of_fio(facts), *_grown(facts)]
    if lost := facts.unanswered:
        told = f"{counted(lost, 'I/O')} ended in an error: what they needed was lost with a device"
        troubles.append(Symptom("bad", told))
    yield from troubles
    if not troubles:
        yield Symptom("good", "no errors")


def _of_fio(facts: Facts) -> Iterator[Symptom]:
    for work in facts.works:
        if work.error:
            yield Symptom("bad", f"{work.name} ended with: {os.strerror(work.error)}")
        short = sum(moved.short_ios for moved in work.moved)
        dropped = sum(moved.drop_ios for moved in work.moved)
        if short:
            yield Symptom("doubt", f"{work.name}: {counted(short, 'I/O')} came back short")
        if dropped:
            yield Symptom("doubt", f"{work.name}: fio dropped {counted(dropped, 'I/O')}")


def _cut_short(facts: Facts) -> Iterator[Symptom]:
    """What fio has an error for is told with that."""
    if facts.stopped:
        yield Symptom("doubt", f"{facts.broken_off} before its end")
    elif facts.broken_off and not any(work.error for work in facts.works):
        yield Symptom("bad", facts.broken_off)
    elif not facts.broken_off:
        yield Symptom("good", "it ran to its end")


def _grown(facts: Facts) -> Iterator[Symptom]:
    """Error counters of the drive that grew during the run."""
    if (more := _grown_in_log(facts, "media_errors")) > 0:
        yield Symptom("bad", f"{more} new media errors (SMART)")
    raw = [
        {
            int(one["id"]): int((one.get("raw") or {}).get("value", 0))
            for one in (page.get("ata_smart_attributes") or {}).get("table", [])
        }
        for page in _smart(facts) or ({}, {})
    ]
    for number, name in GROWN.items():
        if (more := raw[1].get(number, 0) - raw[0].get(number, 0)) > 0:
            yield Symptom("bad", f"{more} more {name} (SMART)")


def _still(facts: Facts) -> Iterator[Symptom]:
    """Seconds without an I/O. Of a simulated drive they are a result and no doubt about it."""
    for work in facts.works:
        for moved in work.moved:
            sampling = moved.sampling
            if sampling is None or limited(work):
                continue
            if sampling.zero_s >= 0.5:
                yield Symptom(
                    "doubt",
                    f"{work.name}: no {moved.ddir} was completed in {sampling.zero_s:.0f} of "
                    f"{sampling.seconds:.0f} s",
                )
            else:
                yield Symptom("good", "I/Os were completed in every second")


def _missing(facts: Facts) -> Iterator[Symptom]:
    for work in facts.works:
        for moved in work.moved:
            sampling = moved.sampling
            if sampling is None:
                yield Symptom("unknown", f"{work.name}: there is no series")
            elif sampling.gap_s > 0 and not limited(work):
                yield Symptom(
                    "doubt",
                    f"{work.name}: {sampling.gap_s:.1f} of {sampling.seconds:.0f} s have no sample "
                    f"of their own, up to {sampling.longest_gap_s:.1f} s at a time",
                )
            else:
                yield Symptom("good", "no interval is missing")


PROBES = (
    Probe(
        name="heat",
        title="throttling from heat",
        looks_for="a drive near or above its temperature limit before or after, minutes above its "
        "warning temperature, a speed that falls while it gets hot, processors that throttle",
        why="a hot drive slows itself down: the number is one of the cooling",
        look=of_jobs(_hot, real=True),
    ),
    Probe(
        name="errors",
        title="errors",
        looks_for="errors of fio, short and dropped I/Os, those to what a simulated failure took, "
        "and error counters of the drive that grew",
        why="an I/O that failed or was done again is counted in the speed, and a drive that "
        "corrects is slow",
        look=of_jobs(_failed),
    ),
    Probe(
        name="end",
        title="end of the run",
        looks_for="a job that was stopped, or broke off, before its end",
        why="the beginning of what was asked for is another measurement: a drive that was to be "
        "filled, heated or worn into its steady state may not have been",
        look=of_jobs(_cut_short, real=True),
    ),
    Probe(
        name="stalls",
        title="seconds without I/O",
        looks_for="seconds in which nothing was completed although the job did not hold back",
        why="a stall is the drive's, or the measuring computer's; the mean hides it",
        look=of_jobs(_still, real=True),
    ),
    Probe(
        name="gaps",
        title="gaps in the samples",
        looks_for="samples of the series that cover more than their interval",
        why="fio samples when an I/O completes: in a gap nothing did, or fio was not run; lowest "
        "and highest seconds are not what they seem there",
        look=of_jobs(_missing, real=True),
    ),
)
