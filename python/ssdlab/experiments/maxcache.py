"""Six disks behind a RAID card with RAM and a cache on two SSDs: Adaptec's maxCache."""

from __future__ import annotations

from ssdlab.answer import Curve, Figure
from ssdlab.arrays.attachment import attachment, with_ram, without_ram
from ssdlab.experiments.base import Line, Reproduced, Runs, Task, experiment, job_file
from ssdlab.experiments.cached import milliseconds, rig
from ssdlab.experiments.card_cache import (
    BLOCK,
    CACHE,
    COLD_S,
    DISKS_WHY,
    FRESH,
    HOT_BYTES,
    LOADS,
    NOTE,
    POOL,
    WARM_S,
    CardLoad,
    chart,
    drawn,
    section,
    task,
)  # fmt: skip
from ssdlab.experiments.measure import Course, course
from ssdlab.results import Result

CARD = "adaptec-3152-8i"
RAM = 2 << 30
PRESET = "maxcache"
DRIVE = "maxCache 4.0 on the 3152-8i"
SWITCH_S = 2400
"""Time of writing before the cache is switched to write-through."""
REST_S = 2400
"""Time that is watched after it, at full size."""
BURST, AFTER, WARM_WRITE, COLD_READ, WARM_READ, WARM_MIXED = (
    100_000.0, 2000.0, 40_000.0, 2000.0, 90_000.0, 60_000.0,
)  # fmt: skip
CARD_WHY = (
    "the card's time for a command is that of the burst, and nothing else of its firmware is known"
)
WRITE_WHY = (
    "a write takes the card twice, into RAM and out of it, here as long as a write of the burst "
    "each time; what maxCache's own look-up takes is not known. In what state the SSDs were is not "
    f"stated: {FRESH}"
)
ORDER_WHY = (
    "that RAM is written below in order of age, not by address, was concluded from this number; "
    f"for the rest, {DISKS_WHY}"
)


def switch_job(factor: int) -> str:
    """Writes until everything is warm, then next to nothing while the cache is emptied. Here the
    hot blocks are a smaller area of smaller disks, for neighbours are destaged together."""
    hot = f"size={HOT_BYTES // factor // BLOCK * BLOCK}"
    pause, rest = milliseconds(10, factor), milliseconds(REST_S, factor)
    return job_file(
        f"{NOTE}\n; When the rest begins, switch the cache to write-through.",
        f"bs={BLOCK}",
        {
            "write": section("write", hot, SWITCH_S, factor),
            "rest": f"rw=randread size=1m thinktime={pause} runtime={rest}",
        },
    )


def plan(factor: int) -> list[Task]:
    """Three loads, the same writes without RAM and without the cache, and the switch."""
    card, bare = with_ram(attachment(CARD), RAM // factor), without_ram(attachment(CARD))
    settings = [
        *(CardLoad(load, load, card, PRESET) for load in LOADS),
        CardLoad("write-used", "write", card, PRESET, used=True),
        CardLoad("write-no-ram", "write", bare, PRESET),
        CardLoad("write-no-cache", "write", card),
        CardLoad("read-no-cache", "read", card),
    ]
    tasks = [task(setting, DRIVE, factor) for setting in settings]
    switch = {"at": milliseconds(SWITCH_S, factor), "to": "write-through"}
    keys = {"preset": PRESET, "switch": switch}
    tasks.append(
        Task(
            "switch",
            DRIVE,
            switch_job(factor),
            interval_ms=max(1, 10_000 // factor),
            cost=SWITCH_S / factor,
            rig=rig(DRIVE, POOL.rig(factor), CACHE.rig(factor), keys, card),
        )
    )
    return tasks


def burst_end(course: Course) -> float:
    """When the burst is over, s: its writes, less those that go on after it, at its rate."""
    time, iops = course.time, course.values
    at = int((iops < iops[0] / 2).argmax())
    if at == 0:
        return float(time[-1])
    slow = float(iops[at + 2 : at + 40].mean())
    return float((iops[: at + 1] - slow).sum() * time[0] / (iops[:at].mean() - slow))


def drained_after(result: Result, factor: int) -> float | None:
    """Seconds at full size from the switch until nothing is dirty; None where that was not seen."""
    counters = result.ssdlab["counters"]
    drained = counters["below/drained_at_ns"]
    dirty = counters["below/dirty_bytes"]
    return None if dirty or not drained else drained / 1e9 * factor - SWITCH_S


def judge(runs: Runs, factor: int) -> Reproduced:
    """The numbers of the text beside those of the runs."""
    writes = ("write-used", "write-no-ram", "write-no-cache")
    loads = dict.fromkeys(writes, "write") | {"read-no-cache": "read"}
    names = ("write", "read", "mixed", *loads)
    found = {key: course(runs[key], loads.get(key, key), factor) for key in names}
    warm = {key: one.last(WARM_S) for key, one in found.items()}
    write, end = found["write"], burst_end(found["write"])
    burst = write.between(0, max(end - 1, float(write.time[0])))
    after = write.between(end + 20, end + 20 + COLD_S)
    cold = found["read"].between(0, COLD_S)
    drained = drained_after(runs["switch"], factor)
    late = "it was not done in the time that was watched"
    lines = [
        Line(DRIVE, "writes while RAM fills", BURST, "IOPS", burst, CARD_WHY, "fitted"),
        Line(
            DRIVE, "writes when RAM is full, the cache cold", AFTER, "IOPS", after, ORDER_WHY,
            "fitted",
        ),
        Line(DRIVE, "writes, warm, fresh SSDs", WARM_WRITE, "IOPS", warm["write"], WRITE_WHY),
        Line(DRIVE, "writes, warm, used SSDs", WARM_WRITE, "IOPS", warm["write-used"], WRITE_WHY),
        Line(DRIVE, "reads, cold", COLD_READ, "IOPS", cold, DISKS_WHY),
        Line(DRIVE, "reads, warm", WARM_READ, "IOPS", warm["read"], CARD_WHY),
        Line(DRIVE, "half reads, half writes, warm", WARM_MIXED, "IOPS", warm["mixed"], CARD_WHY),
        Line(DRIVE, "length of the burst", None, "s", end),
        *(
            Line(DRIVE, f"{load}s without the SSD cache, at last", None, "IOPS", warm[key])
            for load, key in (("write", "write-no-cache"), ("read", "read-no-cache"))
        ),
        Line(
            DRIVE, "from the switch to write-through until all is destaged", None, "s", drained,
            late if drained is None else "",
        ),
    ]  # fmt: skip
    first = found["write-no-ram"].between(0, COLD_S)
    figures = _figures(found, runs["switch"], factor)
    return Reproduced(lines, figures, _remarks(warm, first, end, drained))


def _figures(found: dict[str, Course], switch: Result, factor: int) -> list[Figure]:
    ends = {key: float(found[key].time[-1]) for key in ("write", "read", "mixed")}
    write = [
        drawn(found["write"], "with RAM and SSD cache", 0),
        drawn(found["write-used"], "with used SSDs", 3),
        drawn(found["write-no-ram"], "without RAM", 1, "dashed"),
        drawn(found["write-no-cache"], "without SSD cache", 2, "dashed"),
    ]
    read = [
        drawn(found["read"], "reads", 0),
        drawn(found["read-no-cache"], "reads without SSD cache", 2, "dashed"),
        drawn(found["mixed"], "half reads, half writes", 3),
    ]
    of_reads = {30.0: COLD_READ, ends["read"]: WARM_READ, ends["mixed"]: WARM_MIXED}
    return [
        chart("Writes", write, {3.0: BURST, 60.0: AFTER, ends["write"]: WARM_WRITE}),
        chart("Reads, and both", read, of_reads),
        _switch_figure(switch, factor),
    ]


def _switch_figure(result: Result, factor: int) -> Figure:
    frame = result.device_series()
    assert frame is not None
    time = (frame["time_s"].to_numpy() * factor).tolist()
    dirty = (frame["below/dirty_bytes"].to_numpy() * factor / 1e9).tolist()
    return Figure(
        f"Switched to write-through at {SWITCH_S} s",
        "time at full size, s",
        "dirty in the SSD cache, GB at full size",
        [Curve("dirty", time, dirty)],
        wide=True,
        note="The host writes until the switch and is next to idle after it. Here the disks are "
        "smaller, too, and few tracks under many commands make them faster than at full size.",
    )


def _remarks(warm: dict[str, float], first: float, end: float, drained: float | None) -> list[str]:
    said = [
        f"The burst is the card's RAM: 2 GiB are full after {end:.1f} s. Without RAM there is "
        f"none, and writes begin at {first:,.0f} a second.",
        "Cold, the disks set the pace: each of the six sorts its share of the 256 I/Os by where "
        "head and sector are, in an area of a few thousandths of its width.",
        "The climb is what was written before: a block is written to disks and SSDs at first, and "
        "to the SSDs alone when it comes again. Without the SSD cache the same writes stay at "
        f"{warm['write-no-cache']:,.0f} a second.",
        "Warm, no disk is busy; what is left are the SSDs and the card's time for commands: "
        f"{warm['write']:,.0f} writes a second with fresh SSDs, "
        f"{warm['write-used']:,.0f} with full and used ones. RAM takes a fifth of the "
        "writes together with others of the same block.",
    ]
    if drained is not None:
        said.append(
            f"Switched to write-through, the cache is clean after {drained:,.0f} s with a host "
            "that does next to nothing; until then it must not be taken out."
        )
    return said


EXPERIMENT = experiment("maxcache", plan, judge)
