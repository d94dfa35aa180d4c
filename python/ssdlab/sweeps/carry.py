"""Runs what a sweep asks for and what its table does not have yet."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from ssdlab import bench
from ssdlab.bench import Seat, Tolerant, Variant
from ssdlab.errors import InputError, Interrupted, SsdlabError
from ssdlab.progress import ProgressCallback, phases_of, tell
from ssdlab.sweeps.dataset import Dataset, RunOutcome
from ssdlab.sweeps.estimate import FRESH
from ssdlab.sweeps.plan import SweepRun
from ssdlab.target import Terms

LOOK_S = 0.5
"""Seconds between two looks at what other processes have done."""


@dataclass(frozen=True)
class SweepOutcome:
    """What a sweep came to."""

    ran: int
    before: int
    """Runs that the table had."""
    failed: Sequence[tuple[SweepRun, SsdlabError]]
    """Runs that could not be, such as a rig that cannot be built."""
    elsewhere: int = 0
    """Runs that other processes did meanwhile in the same folder."""


def carry_out(
    asked: Iterable[SweepRun], dataset: Dataset, progress: ProgressCallback | None = None
) -> SweepOutcome:
    """Runs what is not done; runs that can share a prepared drive stand together. What is done when
    it is stopped stays in the table. Raises Interrupted on Ctrl-C or where the progress callback
    returned False, InputError for a key, value or option that does not exist, ExperimentError where
    the disk is full or a cluster is gone."""
    done = dataset.done()
    runs = list({run.key: run for run in asked}.values())
    todo = [run for run in runs if run.key not in done]
    before = len(runs) - len(todo)
    failed: dict[str, tuple[SweepRun, SsdlabError]] = {}
    ran = 0
    with dataset.claiming() as claims:
        if claims.others():
            todo = _rotated(todo)
        left = todo
        while left:
            given, again = left, list[SweepRun]()

            def take(place: int, came: RunOutcome | SsdlabError | None) -> None:
                nonlocal ran
                run = given[place]  # noqa: B023 - called in this round alone
                if came is None:
                    again.append(run)  # noqa: B023
                elif isinstance(came, SsdlabError):
                    failed[run.key] = (run, came)
                    claims.release(run.key)
                else:
                    dataset.add(run.key, run.values, came)
                    ran += 1

            bench.run_each([_variant(run, dataset) for run in given], take, progress)
            dataset.flush()
            try:
                left = _waited(again, dataset, progress)
            except KeyboardInterrupt:
                raise Interrupted("stopped while other processes were at work") from None
    wrong = [failed[run.key] for run in runs if run.key in failed]
    return SweepOutcome(ran, before, wrong, len(todo) - ran - len(wrong))


def _rotated(runs: list[SweepRun]) -> list[SweepRun]:
    """From somewhere on, so that processes in one folder do not prepare the same drives."""
    starts = [
        place for place, run in enumerate(runs) if not place or run.start != runs[place - 1].start
    ]
    first = starts[secrets.randbelow(len(starts))] if starts else 0
    return runs[first:] + runs[:first]


def _waited(
    runs: Sequence[SweepRun], dataset: Dataset, progress: ProgressCallback | None
) -> list[SweepRun]:
    """What nobody does any more of the runs that others do, which this waits for."""
    while left := [run for run in runs if run.key not in dataset.done()]:
        if free := [run for run in left if dataset.take(run.key)]:
            return free
        tell(progress, None, f"{len(left):,} runs are being done by other processes")
        time.sleep(LOOK_S)
    return []


def _variant(run: SweepRun, dataset: Dataset) -> Variant[RunOutcome | SsdlabError | None]:
    start = None
    if run.prepare != FRESH:
        start = hashlib.sha256("\0".join(map(str, run.start)).encode()).hexdigest()[:20]
    body = Tolerant(partial(_measure, run, dataset.series))
    return Variant(body, start=start, wanted=partial(dataset.take, run.key))


def _measure(run: SweepRun, series: bool, seat: Seat) -> RunOutcome:
    """What came of a run; raises as :meth:`ssdlab.target.Sim.run`, and InputError where no
    I/O was measured."""
    run.target.check(run.job)
    with run.target.open(Terms(seed=run.seed, memory_bytes=seat.memory_bytes)) as drive:
        phases = [*phases_of(run.prepare), "run"]
        seat.prepare(drive, run.prepare, phases)
        came = RunOutcome.of(drive.run(run.job, seat.report, phases=phases), series=series)
    if not came.summary:
        raise InputError("no I/O was measured: every job ended within its ramp_time")
    return came
