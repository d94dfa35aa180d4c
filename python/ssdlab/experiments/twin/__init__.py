"""Twins of drives that others measured: fitted to a part of the numbers, held to the rest.

The numbers (`measured.csv`) come from

- fio-plot (SATA drives): benchmark data once kept in github.com/louwrentius/fio-plot, commits
  7b1576b45~1 and c8c3479a4 (BSD-3-Clause); 60 s a point, jobs and depth varied. Runs behind the
  RAID card are left out, since repeats of the same drive differ by 10 to 20 %. Reads behind AHCI
  are `fob`: by the files' own times they came before the drives' writes (docs/fit.md);
- the study of I/O schedulers (980 PRO, ICPE 2024),
  github.com/stonet-research/icpe24_io_scheduler_study_artifact at 013f1e15 (MIT), io_uring, filled
  and overwritten at random;
- SSD-iq (Micron 7450), github.com/gabriel-haas/ssdiq-pub at 8a0a3f43 (numbers only);
- github.com/Tratori/nvme-bench-delab at b9fbfe8d (P4610, P5800X, RAID 0 of the latter; numbers
  only), libaio, medians of five; the depth of a thread is stated for some runs alone: 128.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ssdlab.arrays.rigs import ArrayShape, array_rig
from ssdlab.experiments.twin.cases import (
    CASES,
    PROFILES,
    TwinCase,
    asked,
    interpolated,
    known,
)
from ssdlab.fits.fit import FitOrder, fit
from ssdlab.fits.predict import ComparedNumber, compare, predict
from ssdlab.fits.twin import twin_of
from ssdlab.progress import ProgressCallback, within
from ssdlab.target import Sim

CHUNK = 512 << 10
FIT_SHARE = 0.7
"""Of the time of a case that the fit takes, about."""


@dataclass(frozen=True)
class TwinOutcome:
    """What a twin and what interpolation made of a case."""

    case: TwinCase
    start: str
    fitted: int
    """Rows that it was fitted to."""
    compared: Sequence[ComparedNumber]
    plain: Sequence[float | None]
    """The same numbers by interpolation in logarithms."""

    @property
    def errors(self) -> list[float]:
        """Of the twin: natural logarithms of predicted / measured, without the sign."""
        return [abs(number.error) for number in self.compared]

    @property
    def plain_errors(self) -> list[float]:
        """The same of interpolation, where it says something."""
        pairs = zip(self.plain, self.compared, strict=True)
        return [abs(math.log(value / number.measured)) for value, number in pairs if value]


def carry_out(
    *, quick: bool = False, seed: int = 1, progress: ProgressCallback | None = None
) -> list[TwinOutcome]:
    """Fits and predicts each case, in their order; raises Interrupted on Ctrl-C."""
    outcomes = []
    for nth, case in enumerate(CASES):
        shares = (nth, nth + FIT_SHARE, nth + 1.0)
        heard = [
            within(progress, low / len(CASES), high / len(CASES), f"{case.name}: {case.drive}")
            for low, high in pairwise(shares)
        ]
        outcomes.append(_outcome(case, quick, seed, heard))
    return outcomes


def _outcome(
    case: TwinCase, quick: bool, seed: int, heard: Sequence[ProgressCallback | None]
) -> TwinOutcome:
    rows, questions = known(case), asked(case)
    own = [PROFILES[case.drive]] if case.drive in PROFILES else []
    order = FitOrder(rows, case.capacity, seed=seed, quick=quick, without=own)
    found = fit(order, heard[0])
    twin = twin_of(
        found.found, found.observed, name=case.drive, start=found.start, sources=["measured.csv"],
        seed=seed,
    )  # fmt: skip
    predictions = predict(
        twin, [question.load for question in questions], seed=seed, progress=heard[1],
        store=_store(case),
    )  # fmt: skip
    compared = compare(questions, predictions)
    plain = [interpolated(rows, number.observation.load, number.column) for number in compared]
    return TwinOutcome(case, found.start, len(rows), compared, plain)


def _store(case: TwinCase) -> Callable[[str], str]:
    if case.members == 1:
        return lambda rig: rig
    shape = ArrayShape("0", case.members, CHUNK)
    return lambda rig: array_rig(Sim(case.drive, rig), shape)
