"""How a plan comes about: candidates are simulated in rounds, then set beside each other."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ssdlab import bench
from ssdlab.progress import ProgressCallback, stage, within

T = TypeVar("T")


@dataclass(frozen=True)
class Round:
    """Simulations that know nothing of each other."""

    variants: Sequence[bench.Variant[Any]]
    until: float = 1.0
    """Share of all the work that is done after them."""


Rounds = Generator[Round, list[Any], T]
"""Asks for one round after the other, is handed what came of each, and ends with all of it."""


def simulated(rounds: Rounds[T], progress: ProgressCallback | None = None) -> T:
    """Runs all rounds; InputError where a load, a store or a rig is wrong, or needs more memory
    than there is; Interrupted on Ctrl-C, or where the progress callback returned False."""
    report, done = progress or (lambda _news: True), 0.0
    try:
        asked = next(rounds)
        while True:
            found = bench.run(asked.variants, within(report, done, asked.until))
            done = asked.until
            asked = rounds.send(found)
    except StopIteration as end:
        found_in_all: T = end.value
        return found_in_all


def halves(report: ProgressCallback) -> Iterator[ProgressCallback]:
    """The callbacks of any number of steps, each half of what is left."""
    left = 1.0
    while True:
        yield within(report, 1 - left, 1 - left / 2)
        left /= 2


def stages(report: ProgressCallback, count: int) -> Iterator[ProgressCallback]:
    """The callbacks of so many steps of about the same length."""
    return (stage(report, place, count) for place in range(count))
