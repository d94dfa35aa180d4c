"""The computer that measured: other load on it, and whether it was fast enough itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ssdlab.answer import Status
from ssdlab.checks.base import Probe, Symptom, of_jobs
from ssdlab.checks.facts import Facts, JobFacts
from ssdlab.units import size_text

SLACK = 4 << 20
"""Bytes of others that nobody minds: a file system's journal, a log."""
SLACK_IOS = 500
EXTRA_DOUBT = 0.10
"""Share of the drive's I/O that is not fio's and that a file system's own may be. Ours."""
EXTRA_BAD = 0.30
JOURNAL = 32 << 10
"""Bytes that a file system itself may write for each write that is synced. Ours; ext4 writes 7 to
10 KiB, in two I/Os or three."""
JOURNAL_IOS = 4
SPLIT = 64 << 10
"""Larger blocks may be split on their way, so that counts of I/Os do not agree."""
OTHERS_CPU = 0.25
"""Share of all processors that other programs may use. Ours."""
STEAL = 0.05
"""Share of the time that a hypervisor may give to others. Ours."""
MEMORY = 0.05
"""Share of the time in which tasks may wait for memory (PSI). Ours."""
CPU_DOUBT = 80.0
"""Percent of a processor that one worker may use."""
CPU_BAD = 95.0
ALL_BUSY = 0.95
_BUSY = ("user", "nice", "system")
_POLLS = ("hipri", "sqthread_poll", "thinktime_spin", "gtod_cpu")


def _of(facts: Facts) -> Iterator[Symptom]:
    seen = facts.observed
    if not seen:
        yield Symptom("unknown", "what else went on was not recorded")
        return
    troubles = [*_of_disk(facts, seen), *_of_cpu(seen)]
    yield from troubles
    if not troubles:
        yield Symptom("good", "hardly any I/O or processor time but fio's")


def _of_disk(facts: Facts, seen: Mapping[str, Any]) -> Iterator[Symptom]:
    """What the drive did beyond what fio asked for."""
    disk = seen.get("disk") or {}
    if not disk or not all(work.direct and work.engine != "null" for work in facts.works):
        return
    if any(work.option("ramp_time") not in ("", "0") for work in facts.works):
        return  # what a ramp moves is not counted by fio
    own = {ddir: facts.total(ddir) for ddir in ("read", "write")}
    own["write"] += _laid_out(facts, seen)
    extra = {ddir: max(0, int(disk[f"{ddir}_bytes"]) - own[ddir]) for ddir in own}
    more, mine = sum(extra.values()), sum(own.values())
    asked = sum(map(_synced, facts.works))
    synced, flushes = (asked, 0.0) if facts.file_system else (0.0, asked)
    status = _status(more - SLACK - JOURNAL * synced, mine)
    if status is not None:
        yield Symptom(
            status,
            f"besides fio's I/O the drive read {size_text(extra['read'])} and wrote "
            f"{size_text(extra['write'])} (fio: {size_text(mine)})",
        )
        return
    ios = sum(m.ios for w in facts.works for m in w.moved if m.ddir != "trim")
    small = all((work.block or SPLIT + 1) <= SPLIT for work in facts.works)
    # The kernel counts a flush of a block device as a write of no bytes.
    more_ios = int(disk["read_ios"]) + int(disk["write_ios"]) - ios - round(flushes)
    status = _status(more_ios - SLACK_IOS - JOURNAL_IOS * synced, ios)
    if status is not None and small and own["write"] == facts.total("write"):
        yield Symptom(status, f"besides fio's {ios:,} I/Os the drive had {more_ios:,}")


def _synced(work: JobFacts) -> float:
    """Writes after which the drive is flushed, and a file system brings its journal to it, too."""
    written = work.direction("write")
    every = [int(text) for name in ("fsync", "fdatasync") if (text := work.option(name)).isdigit()]
    if work.options.get("sync", "0").strip().lower() not in ("0", "none"):
        every.append(1)
    often = min(filter(None, every), default=0)
    return written.ios / often if written is not None and often else 0.0


def _status(extra: float, own: float) -> Status | None:
    if extra > EXTRA_BAD * own:
        return "bad"
    return "doubt" if extra > EXTRA_DOUBT * own else None


def _laid_out(facts: Facts, seen: Mapping[str, Any]) -> int:
    """Bytes that fio writes into a new file before jobs that read it begin."""
    file = seen.get("file") or {}
    first, last = (file.get(when) or {} for when in ("before", "after"))
    reads = any(work.direction("read") is not None for work in facts.works)
    return max(0, int(last.get("bytes", 0)) - int(first.get("bytes", 0))) if reads else 0


def _of_cpu(seen: Mapping[str, Any]) -> Iterator[Symptom]:
    cpu = seen.get("cpu_seconds") or {}
    whole = sum(value for name, value in cpu.items() if name != "own")
    if whole > 0:
        others = sum(cpu.get(name, 0.0) for name in _BUSY) - cpu.get("own", 0.0)
        if others > OTHERS_CPU * whole:
            yield Symptom(
                "doubt", f"other programs used {100 * others / whole:.0f} % of the processors"
            )
        if (stolen := cpu.get("steal", 0.0)) > STEAL * whole:
            yield Symptom(
                "doubt", f"the hypervisor gave {100 * stolen / whole:.0f} % of the time to others"
            )
    waited = (seen.get("pressure_seconds") or {}).get("memory_some", 0.0)
    if waited > MEMORY * float(seen.get("seconds") or 1.0):
        yield Symptom("doubt", f"tasks waited {waited:.1f} s for memory")


def _bound(facts: Facts) -> Iterator[Symptom]:
    for work in facts.works:
        if any(work.flag(name) for name in _POLLS) or not work.moved or work.engine == "null":
            continue
        if not work.timed:
            yield Symptom("unknown", "fio's processor time was not recorded", facts.key)
            continue
        used = work.cpu_percent
        text = f"{work.name}: a worker of fio used {used:.0f} % of a processor"
        status: Status = "bad" if used >= CPU_BAD else "doubt" if used >= CPU_DOUBT else "good"
        yield Symptom(
            status, "fio had processor time to spare" if status == "good" else text, facts.key
        )
    cpu = facts.observed.get("cpu_seconds") or {}
    whole = sum(value for name, value in cpu.items() if name != "own")
    idle = cpu.get("idle", 0.0) + cpu.get("iowait", 0.0)
    if whole > 0 and idle < (1 - ALL_BUSY) * whole:
        yield Symptom("doubt", "all processors were busy all the time")


def limited(work: JobFacts) -> bool:
    """Whether the job itself holds back its I/Os."""
    names = ("rate", "rate_iops", "thinktime", "startdelay", "latency_target", "flow")
    return any(work.option(name) not in ("", "0") for name in names)


PROBES = (
    Probe(
        name="load",
        title="other load",
        looks_for="I/O of others on the drive (its own counters against fio's), processor time of "
        "other programs or taken by a hypervisor, waiting for memory",
        why="whatever else the drive and the processors do is taken from the measurement and "
        "lengthens its latencies",
        look=of_jobs(_of, real=True),
    ),
    Probe(
        name="cpu",
        title="processor bound",
        looks_for="fio using nearly all of a processor for a worker, or a machine without idle "
        "time",
        why="then the processor was measured: the drive could do more with more workers",
        look=of_jobs(_bound, real=True),
    ),
)
