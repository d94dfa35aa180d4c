"""Variants whose runs are taken from what was run before, whatever engine they are handed to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from ssdlab.bench.kept import KeptRuns
from ssdlab.bench.variant import Seat, Take, Tolerant, Variant
from ssdlab.errors import Interrupted

T = TypeVar("T")


class Reuse(KeptRuns):
    """What is asked of the runs of variants, and what came of all of them."""

    def stopped(self, error: Interrupted) -> Interrupted:
        """What is said of having been stopped, with what is kept of variants that ended."""
        again = "without --fresh the" if self.fresh else "the same"
        return error.keeping(self.kept, again=again)

    @property
    def sentence(self) -> str | None:
        """For people; None where all were run."""
        if not self.reused:
            return None
        told = "run was" if self.runs == 1 else "runs were"
        return f"{self.reused} of {self.runs} {told} there already (--fresh runs all again)"

    def offered(self, variants: Sequence[Variant[Any]]) -> list[Variant[Any]]:
        """The variants, with what was run before."""
        return [replace(variant, body=self._offered(variant.body)) for variant in variants]

    def _offered(self, body: Callable[[Seat], T]) -> Callable[[Seat], Any]:
        if isinstance(body, Tolerant):  # engines look for that
            return Tolerant(_Counted(body.body, self.fresh))
        return _Counted(body, self.fresh)

    def counting(self, take: Take[T]) -> Take[Any]:
        """Counts what comes, and hands it on."""

        def counted(place: int, came: _Came[T] | Any) -> None:
            if isinstance(came, _Came):
                self.runs += came.found.runs
                self.reused += came.found.reused
                self.kept += came.found.kept
                came = came.result
            take(place, came)

        return counted


@dataclass(frozen=True)
class _Came(Generic[T]):
    result: T
    found: KeptRuns


@dataclass(frozen=True)
class _Counted(Generic[T]):
    """A body with what was run before; it may go to another process."""

    body: Callable[[Seat], T]
    fresh: bool

    def __call__(self, seat: Seat) -> _Came[T]:
        kept = KeptRuns(self.fresh)
        return _Came(self.body(replace(seat, kept=kept)), kept)
