"""Runs what a sweep asks for and what its table does not have yet."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ssdlab import bench
from ssdlab.bench import Seat, Variant, tolerant
from ssdlab.errors import SsdlabError
from ssdlab.progress import ProgressCallback, phases_of
from ssdlab.sweeps.dataset import Dataset
from ssdlab.sweeps.plan import Run, Sweep
from ssdlab.target import Terms

FRESH = "fob"
"""A preparation that takes no time."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What a sweep came to."""

    ran: int
    before: int
    """Runs that the table had."""
    failed: Sequence[tuple[Run, SsdlabError]]
    """Runs that could not be, such as a rig that cannot be built."""


def carry_out(sweep: Sweep, dataset: Dataset, progress: ProgressCallback | None = None) -> Outcome:
    """Runs what is not done. What is done when it is stopped stays in the table.

    Raises:
        Interrupted: Ctrl-C, or the progress callback returned False.
        InputError: a key, value or option that does not exist.
        ExperimentError: the disk is full, or a cluster is gone.
    """
    done = dataset.done()
    runs = list({run.key: run for run in sweep.runs()}.values())
    todo = [run for run in runs if run.key not in done]
    failed: dict[int, SsdlabError] = {}

    def take(place: int, came: list[Row] | SsdlabError) -> None:
        if isinstance(came, SsdlabError):
            failed[place] = came
        else:
            dataset.add(todo[place].key, todo[place].values, came)

    try:
        bench.run_each([_variant(run) for run in todo], take, progress)
    finally:
        dataset.flush()
    wrong = [(todo[place], failed[place]) for place in sorted(failed)]
    return Outcome(len(todo) - len(wrong), len(runs) - len(todo), wrong)


def _variant(run: Run) -> Variant[list[Row] | SsdlabError]:
    start = None
    if run.prepare != FRESH:
        start = hashlib.sha256("\0".join(map(str, run.start)).encode()).hexdigest()[:20]
    return Variant(tolerant(partial(_measure, run)), start=start)


def _measure(run: Run, seat: Seat) -> list[Row]:
    """The summary of a run; raises as :meth:`ssdlab.target.Sim.run`."""
    run.target.check(run.job)
    with run.target.open(Terms(seed=run.seed, memory_bytes=seat.memory_bytes)) as drive:
        phases = [*phases_of(run.prepare), "run"]
        seat.prepare(drive, run.prepare, phases)
        return drive.run(run.job, seat.report, phases=phases).summary()
