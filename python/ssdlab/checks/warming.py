"""What caches and tiers of a simulated rig have yet to do before a rate stays as it is: each step
of it may take longer than the run, or than the series shows."""

from __future__ import annotations

from collections.abc import Mapping

from ssdlab import _core, units
from ssdlab.analysis.measurement import NEAR
from ssdlab.analysis.steady import SLOPE_EXCURSION_MAX
from ssdlab.results import Result

CHANGED = 0.05
"""By how much what only a cache holds may have grown, and what of a fast tier's extents may have to
be exchanged, without a word: some change places all the time, where they are about as hot."""
PUT_OFF = SLOPE_EXCURSION_MAX
"""Share of what a cache has to write to its pool that it may have put off: by as much more the pool
has to take once no more can be, which is the trend that the PTS lets pass."""
DIRTY_MOST = 0.9
"""Share of a cache from which writes wait (`dirty_high`), where a rig does not say."""

Span = tuple[float, float]
"""A counter at the start of a window, and at its end."""


def yet_to_come(result: Result, begin_s: float, end_s: float, range_bytes: int | None) -> str:
    """What the caches and tiers of a rig had yet to do in a window of a job on a range of so many
    bytes (None: of all); empty where that is nothing."""
    frame = result.device_series()
    if frame is None:
        return ""
    names = [name for name in frame.columns if name.endswith(("blocks_cached", "heat_scans"))]
    if not names:
        return ""
    rig = _core.Rig(result.rig_toml or "", rig_name="rig")
    time = frame["time_s"].to_numpy()
    rows = [max(0, int((time <= at + NEAR).sum()) - 1) for at in (begin_s, end_s)]

    def of(name: str) -> Span:
        start, end = (float(frame[name][row] or 0) for row in rows)
        return start, end

    for name in names:
        place, _, last = name.rpartition("/")
        prefix = f"{place}/" if place else ""
        found = _of_cache if last == "blocks_cached" else _of_tier
        own = {
            column.removeprefix(prefix): of(column)
            for column in frame.columns
            if column.rpartition("/")[0] == place
        }
        # Of what an array has as members not all is kept over time.
        known = last != "blocks_cached" or {"dirty_bytes", "destaged_bytes"} <= own.keys()
        if not known:
            continue
        if last == "blocks_cached" and range_bytes is not None and not own["destaged_bytes"][1]:
            key = prefix.replace("/", ".")
            room = (rig.bytes(f"{key}block") or 0) * own["blocks_capacity"][1]
            if range_bytes <= room * float(rig.get(f"{key}dirty_high") or DIRTY_MOST):
                continue  # all of it may stay where it is
        if text := found(own):
            return text
    return ""


def _of_cache(own: Mapping[str, Span]) -> str:
    (before, dirty), (start, end) = own["dirty_bytes"], own["destaged_bytes"]
    off, done = dirty - before, end - start
    if off > CHANGED * dirty and off > PUT_OFF * (off + done):
        return (
            f"the cache put {units.percent(off / (off + done))} of the writes to its pool off, "
            "which it cannot for good; give it more time (ramp_time)"
        )
    return ""


def _of_tier(own: Mapping[str, Span]) -> str:
    if not own["below_reads"][1] + own["below_writes"][1]:
        return ""
    if not own["heat_scans"][1]:
        return (
            "the tier has moved nothing yet, which it does at the end of each period; give it more "
            "time (ramp_time)"
        )
    # As many come up as go down.
    left, fast = own["moves_planned"][1] / 2, own["extents_fast"][1]
    if left > CHANGED * fast:
        return (
            f"the tier has yet to exchange {units.percent(left / fast)} of its fast extents; give "
            "it more time (ramp_time)"
        )
    return ""
