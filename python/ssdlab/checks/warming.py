"""What caches and tiers of a simulated rig have yet to do before a rate stays as it is: each step
of it may take longer than the run, or than the series shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ssdlab import _core, units
from ssdlab.analysis.comparison import Workload
from ssdlab.analysis.measurement import NEAR, JobMeasurement
from ssdlab.analysis.steady import SLOPE_EXCURSION_MAX
from ssdlab.histogram import VALUES, Histogram
from ssdlab.numeric import Floats
from ssdlab.results import Result

CHANGED = 0.05
"""By how much what only a cache holds may have grown, and what of a fast tier's extents may have to
be exchanged, without a word: some change places all the time, where they are about as hot."""
PUT_OFF = SLOPE_EXCURSION_MAX
"""Share of what a cache has to write to its pool that it may have put off: by as much more the pool
has to take once no more can be, which is the trend that the PTS lets pass."""
FOUND = ("hits", "partial", "misses")
"""What reads and writes are counted by."""
HEEDLESS = ("fifo", "random")
"""Policies that throw out what was read last as soon as anything else."""
SUB_BLOCK = 4096
"""Bytes of a block that are valid by themselves, where a rig does not say."""
DIRTY_MOST = 0.9
"""Share of a cache from which writes wait (`dirty_high`), where a rig does not say."""

EACH = 0.9
"""Share of the misses that bring in what was asked for, in a cache that lets in what it misses."""
HELD_BACK = 0.5
"""I/Os in flight, as a share of a job's depth, below which it holds back itself (`rate_iops`): one
that does not has all of them."""

Regions = tuple[tuple[int, int], ...]
"""Offsets and lengths in bytes; none where nobody can tell."""
Counts = Floats
"""A counter in each row of a window, from its start to its end."""


@dataclass(frozen=True)
class Yet:
    """What the caches and tiers of a rig had yet to do in the window of a job."""

    text: str = ""
    """A part of a sentence; empty where that is nothing."""
    changes: bool = True
    """Whether the rate does not stay for it; False where nobody can tell."""


NOTHING = Yet()


def yet_to_come(
    result: Result, job: JobMeasurement, works: Sequence[tuple[Workload, Regions]]
) -> Yet:
    """That of the window of a job, from what it and all jobs that have run by then work on."""
    frame = result.device_series()
    if frame is None:
        return NOTHING
    names = [name for name in frame.columns if name.endswith(("blocks_cached", "heat_scans"))]
    if not names:
        return NOTHING
    rig = _core.Rig(result.rig_toml or "", rig_name="rig")
    time = frame["time_s"].to_numpy()
    ends = (job.start_s + job.window.start_s, job.start_s + job.window.end_s)
    begun, start, end = (max(0, int((time <= at + NEAR).sum()) - 1) for at in (job.start_s, *ends))
    reach = _together(regions for _, regions in works)
    written = _together(regions for work, regions in works if work.does("write"))
    for name in names:
        place, _, last = name.rpartition("/")
        prefix = f"{place}/" if place else ""
        own = {
            column.removeprefix(prefix): frame[column].to_numpy()[start : end + 1].astype(float)
            for column in frame.columns
            if column.rpartition("/")[0] == place
        }
        if last == "heat_scans":
            if text := _of_tier(own):
                return Yet(text)
            continue
        # Of what an array has as members not all is kept over time.
        if not {"block_bytes", "dirty_bytes", "destaged_bytes", "read_hits"} <= own.keys():
            continue
        key, block = prefix.replace("/", "."), own["block_bytes"][-1]
        room = block * own["blocks_capacity"][-1]
        # Writes never wait for the pool where all that they write may stay where it is.
        stays = written is not None and written <= room * float(
            rig.get(f"{key}dirty_high") or DIRTY_MOST
        )
        # However idle the pool is, with a rate of its own destaging takes no more of it.
        slowed = rig.get(f"{key}destage_rate") is not None
        rows = frame[start : end + 1]
        busy = None if slowed else rows[f"{prefix}below/member_busy_ns"].to_numpy() / 1e9
        if not stays and (yet := _putting_off(own, job, time[start : end + 1], busy)).text:
            return yet
        # A miss brings in what was asked for, of a block that has room for more.
        piece = min(block, max(job.workload.block or 0, rig.bytes(f"{key}sub_block") or SUB_BLOCK))
        whole = rig.get(f"{key}fill") == "block"
        piece = block if whole else piece
        policy = rig.get(f"{key}replacement") or ("" if rig.get(f"{key}preset") else "lru")
        so_far = None
        if policy and policy not in HEEDLESS:
            first = 0 if len(works) == 1 else begun
            so_far = {n: own[n][-1] - float(frame[f"{prefix}{n}"][first]) for n in own}
        if reach is not None and (text := _filling(own, so_far, job, reach, piece)):
            return Yet(text)
    return NOTHING


def _together(regions: Iterable[Regions]) -> int | None:
    """Bytes of all of them, each once; None where nobody can tell."""
    known = list(regions)
    if not all(known):
        return None
    total = end = 0
    for offset, length in sorted(one for some in known for one in some):
        total += max(0, offset + length - max(end, offset))
        end = max(end, offset + length)
    return total


def _grown(own: Mapping[str, Counts], name: str, since: int = 0) -> float:
    return float(own[name][-1] - own[name][since])


def _putting_off(
    own: Mapping[str, Counts], job: JobMeasurement, time: Floats, busy: Counts | None
) -> Yet:
    """Whether the pool has yet to take what it did not in the window; ``busy``: for how long it had
    anything to do, None where that does not tell how much it takes."""
    dirty, moved = own["dirty_bytes"], own["destaged_bytes"]
    # What waits until destaging begins says nothing of what the pool takes.
    since = int(np.argmax(moved > moved[0])) - 1 if moved[-1] > moved[0] else 0
    off, done = _grown(own, "dirty_bytes", since), _grown(own, "destaged_bytes", since)
    if _grown(own, "dirty_bytes") <= CHANGED * dirty[-1] or off <= PUT_OFF * (off + done):
        return NOTHING
    timed = [(one.iops or 0.0, one.latency.mean_ns or 0.0) for one in job.own if one.latency]
    flying = sum(rate * ns / 1e9 for rate, ns in timed)
    asks_for_less = flying < HELD_BACK * job.workload.in_flight
    if asks_for_less and done and busy is not None:
        spent = (busy[-1] - busy[since]) / (time[-1] - time[since])
        if spent * (off + done) / done < 1:
            return NOTHING  # the pool has the time for all of it
    if asks_for_less and not done:
        return Yet(
            "whether the pool takes as much is not known: the cache wrote nothing back", False
        )
    return Yet(
        f"the cache put {units.percent(off / (off + done))} of the writes to its pool off, "
        "which it cannot for good; give it more time (ramp_time)"
    )


def _filling(
    own: Mapping[str, Counts], so_far: Mapping[str, float] | None, job: JobMeasurement,
    reach: float, piece: float,
) -> str:  # fmt: skip
    """Whether reads within so many bytes will find more once the cache has no free room, or all of
    them, of which a miss brings in a piece at a time. What has come in by then is asked for at
    least as often as what stays outside."""
    cached, read = own["blocks_cached"], job.of("read")
    room = own["blocks_capacity"][-1] - cached[-1]
    found, filled = _grown(own, "read_hits"), _grown(own, "fill_bytes")
    asked, wrote = (sum(_grown(own, f"{way}_{one}") for one in FOUND) for way in ("read", "write"))
    if not (asked and filled and read and read.latency):
        return ""
    fits = reach <= own["block_bytes"][-1] * own["blocks_capacity"][-1]
    if not fits and not (job.workload.random and cached[-1] > cached[0]):
        return ""  # what comes round in order goes before it is asked for again
    missed = 1 - found / asked
    comes = 1.0 if fits else room / (reach / piece - cached[-1])
    if so_far is not None and not fits:
        comes = max(comes, 1 - _left(own, so_far, piece))
    # What goes around the cache throws out of it what it writes: of reads and writes of a place, a
    # read misses where the last before it was a write.
    around = _grown(own, "cache_bytes_written") <= filled
    spared = missed - max(missed * (1 - comes), wrote / (asked + wrote) if around else 0.0)
    at_all = sum(one.latency.sum_ns for one in job.own if one.latency)
    quick, slow = _means(read.latency, missed)
    saved = spared * read.latency.ios * (slow - quick)
    if saved <= (1 - 1 / (1 + SLOPE_EXCURSION_MAX)) * at_all:
        return ""
    then = "none" if spared == missed else f"{units.percent(missed - spared)} at most"
    return (
        f"the cache was still filling: {units.percent(missed)} of the reads missed, {then} will "
        "once it holds all that it can; give it more time (ramp_time)"
    )


def _left(own: Mapping[str, Counts], so_far: Mapping[str, float], piece: float) -> float:
    """Share of the misses that is left at most once a cache has no free room, by what it did
    ``so_far``: the number of different places among reads grows by a power of the number of reads,
    which falls as more have come (Heaps' law). 1 where that does not tell: what came in was not
    what was missed, or something was thrown out already."""
    reads, wrote = (sum(so_far[f"{way}_{one}"] for one in FOUND) for way in ("read", "write"))
    misses, blocks = reads - so_far["read_hits"], so_far["blocks_cached"]
    pieces, came = so_far["fill_bytes"] / piece, _grown(own, "blocks_cached")
    if wrote or own["evictions"][-1] or not (came and blocks) or pieces < EACH * misses:
        return 1.0
    asked = sum(_grown(own, f"read_{one}") for one in FOUND)
    missed = asked - _grown(own, "read_hits")
    power, of_blocks = missed / asked * reads / pieces, came / asked * reads / blocks
    room = own["blocks_capacity"][-1] - own["blocks_cached"][-1]
    times = (1 + room / blocks) ** (1 / min(of_blocks, 1.0))
    return float(times ** min(0.0, power - 1))


def _means(latency: Histogram, share: float) -> tuple[float, float]:
    """Mean latency of all but the slowest ``share`` of the I/Os, in ns, and of these."""
    bins = np.flatnonzero(latency.counts)
    ends = np.cumsum(latency.counts[bins], dtype=float)
    if not len(ends):
        return 0.0, latency.mean_ns or 0.0
    mean = float(VALUES[bins] @ latency.counts[bins] / ends[-1])
    edge = (1 - share) * ends[-1]
    counted = np.diff(np.minimum(ends, edge), prepend=0.0)
    quick = float(VALUES[bins] @ counted / edge) if edge >= 1 else 0.0
    return quick, (mean - (1 - share) * quick) / share if share else mean


def _of_tier(own: Mapping[str, Counts]) -> str:
    if not own["below_reads"][-1] + own["below_writes"][-1]:
        return ""
    if not own["heat_scans"][-1]:
        return (
            "the tier has moved nothing yet, which it does at the end of each period; give it more "
            "time (ramp_time)"
        )
    # As many come up as go down.
    left, fast = own["moves_planned"][-1] / 2, own["extents_fast"][-1]
    if left > CHANGED * fast:
        return (
            f"the tier has yet to exchange {units.percent(left / fast)} of its fast extents; give "
            "it more time (ramp_time)"
        )
    return ""
