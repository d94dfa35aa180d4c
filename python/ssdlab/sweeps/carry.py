"""Runs what a sweep asks for and what its table does not have yet."""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ssdlab import bench
from ssdlab.bench import Seat, Variant, tolerant
from ssdlab.errors import InputError
from ssdlab.progress import ProgressCallback, phases_of
from ssdlab.results import Result
from ssdlab.sweeps.dataset import Dataset
from ssdlab.sweeps.plan import Run, Sweep
from ssdlab.target import SimSession, Terms

FRESH = "fob"
"""A preparation that takes no time."""


@dataclass(frozen=True)
class Outcome:
    """What a sweep came to."""

    ran: int
    before: int
    """Runs that the table had."""
    failed: Sequence[tuple[Run, InputError]]
    """Runs that could not be, such as a rig that cannot be built."""


def carry_out(sweep: Sweep, dataset: Dataset, progress: ProgressCallback | None = None) -> Outcome:
    """Runs what is not done. What is done when it is stopped stays in the table.

    Raises:
        Interrupted: Ctrl-C, or the progress callback returned False.
        InputError: a key, value or option that does not exist.
        ExperimentError: the disk is full.
    """
    done = dataset.done()
    runs = list({run.key: run for run in sweep.runs()}.values())
    todo = [run for run in runs if run.key not in done]
    with tempfile.TemporaryDirectory(prefix="ssdlab-sweep-") as folder:
        starts = _Starts(Path(folder), todo)

        def variant(run: Run) -> Variant[InputError | None]:
            def body(seat: Seat) -> None:
                dataset.add(run.key, run.values, starts.measure(run, seat))

            return Variant(tolerant(body))

        try:
            found = bench.run([variant(run) for run in todo], progress) if todo else []
        finally:
            dataset.flush()
    failed = [(run, one) for run, one in zip(todo, found, strict=True) if one is not None]
    return Outcome(len(todo) - len(failed), len(runs) - len(todo), failed)


class _Starts:
    """Prepared drives that several runs begin on: each is prepared once, and kept as a file until
    the last of them has begun."""

    def __init__(self, folder: Path, runs: Sequence[Run]) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._left = Counter(run.start for run in runs)
        self._shared = {start for start, count in self._left.items() if count > 1}
        self._locks = {start: threading.Lock() for start in self._shared}
        self._files = {start: folder / str(n) for n, start in enumerate(self._shared)}

    def measure(self, run: Run, seat: Seat) -> Result:
        """What came of the run; raises as :meth:`ssdlab.target.Sim.run`."""
        run.target.check(run.job)
        with run.target.open(Terms(seed=run.seed, memory_bytes=seat.memory_bytes)) as drive:
            phases = [*phases_of(run.prepare), "run"]
            self._begin(run, seat, drive, phases)
            return drive.run(run.job, seat.report, phases=phases)

    def _begin(self, run: Run, seat: Seat, drive: SimSession, phases: Sequence[str]) -> None:
        start = run.start
        if run.prepare == FRESH or start not in self._shared:
            drive.prepare(run.prepare, seat.report, phases)
            return
        kept = self._files[start]
        with self._locks[start]:
            if kept.exists():
                drive.restore(kept)
            else:
                drive.prepare(run.prepare, seat.report, phases)
                drive.save(kept)
        with self._lock:
            self._left[start] -= 1
            if not self._left[start]:
                kept.unlink()
