"""What a sweep is going to take, from trials of a few of its runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ssdlab import units
from ssdlab.errors import InputError, Interrupted
from ssdlab.progress import Progress, ProgressCallback
from ssdlab.sweeps.dataset import Dataset, RunOutcome
from ssdlab.sweeps.plan import Sweep, SweepRun
from ssdlab.target import Terms

FRESH = "fob"
"""A preparation that takes no time."""
TRIALS = 3
"""Runs that are tried: the first, the last, and between."""
TRIAL_S = 2.0
"""A run that takes longer is broken off, and how far it came says how long it is."""
ROW_BYTES, PART_BYTES = 230.0, 12_000.0
"""Of the table on the disk: measured with parts of 2,000 rows."""
SERIES_ROW_BYTES = 150.0
TRYING = Progress(text="a trial of one run")


@dataclass(frozen=True)
class TimedRun:
    """How long a run takes; what came of it, if it was not broken off."""

    run: SweepRun
    prepared_s: float
    """Of it, to bring the drive to where the run begins: done once for all runs that begin so."""
    seconds: float | None
    """The rest; None where it was broken off before that."""
    came: RunOutcome | None


@dataclass(frozen=True)
class Forecast:
    """What is to be done."""

    runs: int
    done: int
    memory_bytes: int
    """Of the largest run."""
    at_once: int | None
    """None where that is known when the cluster answers."""
    seconds: float | None
    """Until all is done, with one run at a time where it is not known how many; None where no run
    could be tried."""
    tried: int
    seconds_each: float | None
    output_bytes: float | None
    kept: int = 0
    """Trials whose rows are in the table."""
    prepared_s: float | None = None
    """Of each preparation that runs share; None where there is none."""
    starts: int = 0
    """So many preparations."""

    @property
    def sentence(self) -> str:
        """It in words."""
        parts = [f"{self.runs:,} runs"]
        parts += [f"{self.done:,} of them done already"] if self.done else []
        if self.seconds is not None and self.seconds_each is not None:
            trials = "a trial of one run" if self.tried == 1 else f"trials of {self.tried} runs"
            each = f"{units.duration(self.seconds_each)} each"
            if self.prepared_s is not None:
                drives = "drive" if self.starts == 1 else "drives"
                each += f", {units.duration(self.prepared_s)} to prepare each of {self.starts:,} "
                each += drives
            where = "of one core" if self.at_once is None else f"on {self.at_once} cores"
            parts.append(f"about {units.duration(self.seconds)} {where} (from {trials}: {each})")
        elif self.runs > self.done:
            trial = units.duration(TRIAL_S)
            parts.append(f"how long they take is not known: no trial came to its job in {trial}")
        parts.append(f"up to {units.size_text(self.memory_bytes)} of memory each")
        if self.output_bytes is not None:
            parts.append(f"about {units.size_text(self.output_bytes)} of output")
        return ", ".join(parts)

    def document(self) -> dict[str, Any]:
        """It for scripts."""
        return {
            "runs": self.runs,
            "done": self.done,
            "memory_bytes_each": self.memory_bytes,
            "seconds": self.seconds,
            "seconds_each": self.seconds_each,
            "prepared_s_each": self.prepared_s,
            "preparations": self.starts,
            "trials": self.tried,
            "at_once": self.at_once,
            "output_bytes": self.output_bytes,
        }


def forecast(
    sweep: Sweep,
    memory_bytes: int,
    dataset: Dataset | None = None,
    progress: ProgressCallback | None = None,
    *,
    keep: bool = False,
    cores: int | None = None,
) -> Forecast:
    """What a sweep takes beside what its table has, by trials of some of its runs; what these come
    to is added to the table if ``keep``. ``cores`` are those that will be at work, None where that
    is not known. Raises Interrupted, and as :meth:`ssdlab.sweeps.Dataset.done`."""
    done = dataset.done() if dataset is not None else set()
    todo = list({run.key: run for run in sweep.runs() if run.key not in done}.values())
    at_once = None if cores is None else max(1, min(cores, len(todo)))
    series = dataset is not None and dataset.series
    if dataset is not None and keep:
        with dataset.claiming():
            mine = [run for run in _some(todo) if dataset.take(run.key)]
            runs = _trials(mine, series, progress)
            for timed_run in runs:
                if timed_run.came is not None:
                    dataset.add(timed_run.run.key, timed_run.run.values, timed_run.came)
    else:
        runs = _trials(_some(todo), series, progress)
    ran = [run.seconds for run in runs if run.seconds is not None]
    each = sum(ran) / len(ran) if ran else None
    shared = bool(runs) and any(run.prepare != FRESH for run in todo)
    starts = len({run.start for run in todo if run.prepare != FRESH}) if shared else 0
    before = sum(run.prepared_s for run in runs) / len(runs) if runs else 0.0
    whole_s = None if each is None else each * len(todo) + before * (starts or len(todo))
    whole = [run.came for run in runs if run.came is not None]
    size = None
    if whole:
        rows = sum(len(outcome.summary) for outcome in whole) / len(whole)
        courses = sum(
            outcome.series.height for outcome in whole if outcome.series is not None
        ) / len(whole)
        size = len(todo) * (rows * ROW_BYTES + courses * SERIES_ROW_BYTES) + PART_BYTES
    return Forecast(
        len(sweep),
        len(sweep) - len(todo),
        memory_bytes,
        at_once,
        None if whole_s is None else whole_s / (at_once or 1),
        len(runs),
        each,
        size,
        len(whole) if keep else 0,
        before if shared else None,
        starts,
    )


def _trials(
    runs: Sequence[SweepRun], series: bool, progress: ProgressCallback | None
) -> list[TimedRun]:
    return [timed_run for run in runs if (timed_run := _tried(run, series, progress)) is not None]


def _some(runs: Sequence[SweepRun]) -> list[SweepRun]:
    """Some runs from all over."""
    last = len(runs) - 1
    places = {last * step // (TRIALS - 1) for step in range(TRIALS)} if runs else set()
    return [runs[place] for place in sorted(places)]


def _tried(run: SweepRun, series: bool, progress: ProgressCallback | None) -> TimedRun | None:
    """How long a run takes; None where it cannot be."""
    if progress is not None and not progress(TRYING):
        raise Interrupted("stopped; nothing was kept")
    started = time.monotonic()
    reached, expired, prepared = 0.0, False, 0.0

    def report(news: Progress) -> bool:
        nonlocal reached, expired
        reached = news.fraction or reached
        if progress is not None and not progress(TRYING):
            return False
        expired = time.monotonic() - started >= TRIAL_S
        return not expired

    try:
        with run.target.open(Terms(seed=run.seed)) as drive:
            drive.prepare(run.prepare, report)
            prepared, started = time.monotonic() - started, time.monotonic()
            reached = 0.0
            result = drive.run(run.job, report)
    except Interrupted:
        if not expired:
            raise
        took = (time.monotonic() - started) / reached if reached else None
        if prepared:
            return TimedRun(run, prepared, took, None) if took is not None else None
        return None if took is None else TimedRun(run, took, None, None)
    except InputError:
        return None
    return TimedRun(run, prepared, time.monotonic() - started, RunOutcome.of(result, series=series))
