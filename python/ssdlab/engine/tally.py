"""How far a protocol is, and how long the rest takes by the speeds that were measured so far."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from ssdlab.engine.estimate import WorkLeft
from ssdlab.engine.speed import SpeedPoint, Speeds
from ssdlab.engine.steps import Shape
from ssdlab.progress import Progress

POINT = 0.01
"""What is left may grow so much unsaid, as a share of the whole."""
SURPRISE = 1.25
"""By so much the whole must become longer or shorter for that to be said."""
LEARNED_S = 2.0
"""Of a job, before its own speed says anything."""
TOLD_S = 12.0
"""How long it stands in the text that something was reckoned anew: lines come every 5 s."""
MEMORY = 0.5
"""Weight of what was measured before the last job: drives change as they are written."""


class RunTally:
    """Adds up a run. Seconds are the drive's: of a simulated one, virtual ones."""

    def __init__(
        self,
        whole: WorkLeft,
        speeds: Speeds,
        *,
        virtual: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._left = WorkLeft(whole)
        self._speeds, self._virtual, self._clock = speeds, virtual, clock
        self._measured: dict[Shape, tuple[float, float]] = {}
        self._done_s = self._worked_s = 0.0
        self._step: WorkLeft = WorkLeft()
        self._fraction = 0.0
        self._title = ""
        self._started = self._began = clock()
        self._shown = 0.0
        self._planned_s: float | None = None
        self._said, self._said_at = "", -math.inf
        self._because = ""
        self.where = self.steadiness = ""

    def expect(self, more: WorkLeft, instead: WorkLeft | None = None, because: str = "") -> None:
        """There is more to do than was reckoned with, or something else ``instead``."""
        before = self._seconds(self._left)
        self._left.add(more)
        self._left.add(instead or {}, -1)
        if because and self._seconds(self._left) > before:
            self._because = because

    def skip(self, load: WorkLeft, moved: SpeedPoint | None) -> None:
        """A step was done before."""
        self._left.add(load, -1)
        self._done_s += self._seconds(load) if moved is None else moved.seconds
        self._learn(moved)

    def begin(self, title: str, load: WorkLeft, *, again: bool) -> None:
        """A step begins."""
        self._title = f"{title} (again, to bring the drive back)" if again else title
        self._step, self._fraction, self._began = load, 0.0, self._clock()

    def end(self, moved: SpeedPoint | None) -> None:
        """It is finished, and has moved that."""
        spent = self._spent_s() if moved is None or not self._virtual else moved.seconds
        self._left.add(self._step, -1)
        self._step, self._fraction = WorkLeft(), 0.0
        self._learn(moved)
        self._done_s += spent
        self._worked_s += spent

    def news(self, news: Progress) -> Progress:
        """The progress of the whole from that of the step."""
        # A sign of life says nothing of how far it is.
        self._fraction = self._fraction if news.fraction is None else news.fraction
        spent = self._spent_s()
        left = self._rest_s()
        done, worked = self._done_s + spent, self._worked_s + spent
        elapsed = self._clock() - self._started
        # Virtual time passes faster or slower than ours, as long as anything is known of that.
        pace = elapsed / worked if self._virtual and worked > 0 else 1.0
        known = worked > 0 or not self._virtual
        self._tell(done, left)
        remark = self._said if self._clock() - self._said_at < TOLD_S else ""
        parts = (self.where, self._title, news.text, self.steadiness, remark)
        text = ", ".join(part for part in parts if part)
        return Progress(min(self._shown, 0.999), pace * left if known else None, text)

    # --- seconds

    def _seconds(self, load: WorkLeft) -> float:
        return sum(
            value if shape is None else value / self._rate(shape)
            for shape, value in load.items()
            if value > 0
        )

    def _spent_s(self) -> float:
        """On the step so far."""
        if self._virtual:
            return self._fraction * self._seconds(self._step)
        return self._clock() - self._began

    def _rest_s(self) -> float:
        """Of all that is left, the rest of the step included."""
        rest = WorkLeft(self._left)
        rest.add(self._step, -self._fraction)
        return max(0.0, self._seconds(rest))

    def _rate(self, shape: Shape) -> float:
        """Bytes per second: as measured; else as expected, corrected by how far jobs of the same
        kind have kept to that."""
        known = self._now()
        if shape in known:
            moved, seconds = known[shape]
            return moved / seconds
        expected = self._speeds.of(shape).middle
        ratios = [
            moved / seconds / self._speeds.of(one).middle
            for one, (moved, seconds) in known.items()
            if one.random == shape.random and (one.write_share > 0) == (shape.write_share > 0)
        ]
        return expected * (math.prod(ratios) ** (1 / len(ratios)) if ratios else 1.0)

    def _now(self) -> dict[Shape, tuple[float, float]]:
        """What was measured, the step under way included."""
        spent = self._clock() - self._began
        shapes = [shape for shape in self._step if shape is not None]
        if self._virtual or not shapes or self._fraction <= 0 or spent < LEARNED_S:
            return self._measured
        found = dict(self._measured)
        for shape in shapes:
            found[shape] = _mixed(found.get(shape), self._step[shape] * self._fraction, spent)
        return found

    def _learn(self, moved: SpeedPoint | None) -> None:
        if moved is not None:
            before = self._measured.get(moved.shape)
            self._measured[moved.shape] = _mixed(before, moved.bytes, moved.seconds)

    # --- words

    def _tell(self, done: float, left: float) -> None:
        whole = done + left
        if self._planned_s is None:
            self._planned_s = whole
        fraction = done / whole if whole > 0 else 0.0
        slower = whole > SURPRISE * self._planned_s
        fallen = fraction < self._shown - POINT
        if fallen or slower or whole * SURPRISE < self._planned_s:
            longer = fallen or slower
            why = self._because or f"{'slower' if longer else 'faster'} than planned"
            self._said, self._said_at = f"re-estimated: {why}", self._clock()
            self._planned_s = whole
            self._shown = fraction
        self._because = ""
        self._shown = max(self._shown, fraction)


def _mixed(before: tuple[float, float] | None, moved: float, seconds: float) -> tuple[float, float]:
    """Bytes and seconds of a shape, the latest with the most weight."""
    if before is None:
        return moved, seconds
    # What was measured longer ago counts half, however long it took.
    share = min(1.0, MEMORY * seconds / before[1])
    return moved + share * before[0], seconds + share * before[1]
