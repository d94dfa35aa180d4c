"""How fast a drive is written and worn, and how long it lasts if all goes on so."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ssdlab.smart.change import HealthChange, compare
from ssdlab.smart.model import Health
from ssdlab.units import DAY_S, counted

STEP = 1.0
"""Percent: the step in which drives report their wear."""
_KINDS = {"by the clock": "by the clock", "under power": "of power-on time"}
"""Of days, for people."""


@dataclass(frozen=True)
class Projection:
    """A drive's wear carried on; None where it cannot be told, and ``assumption`` says why."""

    snapshots: int
    days: float | None = None
    """The stretch that the rates are of: between the first snapshot and the last, or since new."""
    days_are: str = ""
    """``by the clock`` or ``under power``."""
    written_bytes_per_day: float | None = None
    used_percent_per_day: float | None = None
    days_left: float | None = None
    """Until the rated endurance is used up."""
    days_left_least: float | None = None
    """The same if the drive has worn a whole step more than it tells."""
    days_left_most: float | None = None
    """The same if a step less; None where that is no bound."""
    bytes_left: float | None = None
    """What the host can still write until then."""
    assumption: str = ""
    """What the projection rests on, in a sentence."""
    since: HealthChange | None = None
    """From the first snapshot to the last; None for a single one."""


@dataclass(frozen=True)
class _Stretch:
    """A stretch of a drive's life."""

    days: float
    days_are: str
    written: int | None
    used: float | None
    words: str


def in_order(snapshots: Sequence[Health]) -> list[Health]:
    """By the hours under power, which cannot be set wrong, then by the clock and by what was
    written."""
    return sorted(
        snapshots,
        key=lambda health: (
            health.power_on_hours or 0.0,
            health.taken_s or 0,
            health.written_bytes or 0,
        ),
    )


def project(snapshots: Sequence[Health], tbw_bytes: float | None = None) -> Projection:
    """Carries the wear of one drive on. ``tbw_bytes``: what the host may write by the maker's
    rating; without it the wear that the drive tells is carried on. One snapshot, or several within
    a day, give the average since new. Raises InputError where the snapshots are of several drives,
    or their counters go back."""
    ordered = in_order(snapshots)
    last = ordered[-1]
    since = compare(ordered[0], last) if len(ordered) > 1 else None
    for health, other in itertools.pairwise(ordered):
        compare(health, other)
    span = (since and _between(since)) or _since_new(last)
    projection = Projection(len(ordered), since=since)
    if span is not None:
        projection = replace(
            projection,
            days=span.days,
            days_are=span.days_are,
            written_bytes_per_day=None if span.written is None else span.written / span.days,
            used_percent_per_day=None if span.used is None else span.used / span.days,
        )
    if last.is_ssd is False:
        return replace(projection, assumption="hard disks report no wear")
    if tbw_bytes is not None:
        return _by_rating(projection, last, tbw_bytes, span)
    if last.interface != "simulated":
        return _by_wear(projection, last, span)
    wrote = last.host_bytes_left is not None
    words = "if the host continues to write as in the run" if wrote else "the host wrote nothing"
    if wrote and last.run_steady is False:
        words += ", which was not steady: a used drive may wear several times as fast"
    return replace(projection, bytes_left=last.host_bytes_left, assumption=words)


def _since_new(health: Health) -> _Stretch | None:
    if not health.power_on_hours:
        return None
    days = health.power_on_hours / 24
    words = f"on average in {counted(f'{days:,.0f}', 'day')} of power-on time since new"
    return _Stretch(days, "under power", health.written_bytes, health.used_percent, words)


def _between(since: HealthChange) -> _Stretch | None:
    # The rate of an hour, such as that of a benchmark, is none to live by.
    if since.seconds is None or since.seconds < DAY_S:
        return None
    days = since.seconds / DAY_S
    kind = "by the clock" if since.by_clock else "under power"
    words = f"in the last {counted(f'{days:,.3g}', 'day')} {_KINDS[kind]}"
    return _Stretch(days, kind, since.written_bytes, since.used_percent, words)


def _by_rating(
    projection: Projection, last: Health, tbw_bytes: float, span: _Stretch | None
) -> Projection:
    if last.written_bytes is None:
        words = "the drive does not report host writes, so a rating cannot be applied"
        return replace(projection, assumption=words)
    left = max(0.0, tbw_bytes - last.written_bytes)
    if not projection.written_bytes_per_day or span is None:
        return replace(projection, bytes_left=left, assumption="nothing was written in that time")
    words = f"if the rating holds and writes continue as {span.words}"
    days = left / projection.written_bytes_per_day
    return replace(projection, days_left=days, bytes_left=left, assumption=words)


def _by_wear(projection: Projection, last: Health, span: _Stretch | None) -> Projection:
    used = last.used_percent
    if used is None:
        words = "the drive reports no wear; give its rating with --tbw"
        return replace(projection, assumption=words)
    if span is None:
        words = "the power-on time is not known, so there is no rate"
        return replace(projection, assumption=words)
    grown = span.used or 0.0
    if grown <= 0:
        where = f"in {counted(f'{span.days:,.0f}', 'day')} {_KINDS[span.days_are]}"
        words = (
            f"wear grew by less than 1 % {where}; compare with a later snapshot, "
            "or give the rating with --tbw"
        )
        return replace(projection, assumption=words)
    remaining = max(0.0, 100 - used)
    return replace(
        projection,
        days_left=remaining / (grown / span.days),
        # A step counts twice: in how fast it went, and in how much is left.
        days_left_least=max(0.0, remaining - STEP) / ((grown + STEP) / span.days),
        days_left_most=_longest(remaining, grown, span.days),
        bytes_left=None if not span.written else remaining / grown * span.written,
        assumption=f"if wear continues as {span.words}",
    )


def _longest(remaining: float, grown: float, days: float) -> float | None:
    """Days left if the wear is a step less than told; None where that may be no growth at all."""
    if not remaining:
        return 0.0
    return (remaining + STEP) / ((grown - STEP) / days) if grown > STEP else None
