"""What a sweep is going to take, from trials of a few of its runs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ssdlab import units
from ssdlab.errors import InputError, Interrupted
from ssdlab.progress import Progress, ProgressCallback
from ssdlab.sweeps.dataset import Came, Dataset
from ssdlab.sweeps.plan import Run, Sweep
from ssdlab.target import Settings

TRIALS = 3
"""Runs that are tried: the first, the last, and between."""
TRIAL_S = 2.0
"""A run that takes longer is broken off, and how far it came says how long it is."""
ROW_BYTES, PART_BYTES = 230.0, 12_000.0
"""Of the table on the disk: measured with parts of 2,000 rows."""
SERIES_ROW_BYTES = 150.0
TRYING = Progress(text="a trial of one run")


@dataclass(frozen=True)
class Trial:
    """How long a run takes; what came of it, if it was not broken off."""

    run: Run
    seconds: float
    came: Came | None


@dataclass(frozen=True)
class Forecast:
    """What is to be done."""

    runs: int
    done: int
    memory_bytes: int
    """Of the largest run."""
    at_once: int
    seconds: float | None
    """Until all is done; None where no run could be tried."""
    tried: int
    seconds_each: float | None
    output_bytes: float | None
    kept: int = 0
    """Trials whose rows are in the table."""

    @property
    def sentence(self) -> str:
        """It in words."""
        parts = [f"{self.runs:,} runs"]
        parts += [f"{self.done:,} of them done already"] if self.done else []
        if self.seconds is not None and self.seconds_each is not None:
            trials = "a trial of one run" if self.tried == 1 else f"trials of {self.tried} runs"
            each = units.duration(self.seconds_each)
            parts.append(
                f"about {units.duration(self.seconds)} on {self.at_once} cores (from {trials}: "
                f"{each} each)"
            )
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
) -> Forecast:
    """What a sweep takes beside what its table has, by trials of some of its runs; what these come
    to is added to the table if ``keep``.

    Raises Interrupted, and as :meth:`ssdlab.sweeps.Dataset.done`.
    """
    done = dataset.done() if dataset is not None else set()
    todo = list({run.key: run for run in sweep.runs() if run.key not in done}.values())
    at_once = max(1, min(len(os.sched_getaffinity(0)), len(todo)))
    series = dataset is not None and dataset.series
    if dataset is not None and keep:
        with dataset.claiming():
            mine = [run for run in _some(todo) if dataset.take(run.key)]
            found = _trials(mine, series, progress)
            for one in found:
                if one.came is not None:
                    dataset.add(one.run.key, one.run.values, one.came)
    else:
        found = _trials(_some(todo), series, progress)
    each = sum(one.seconds for one in found) / len(found) if found else None
    whole = [one.came for one in found if one.came is not None]
    size = None
    if whole:
        rows = sum(len(one.summary) for one in whole) / len(whole)
        courses = sum(one.series.height for one in whole if one.series is not None) / len(whole)
        size = len(todo) * (rows * ROW_BYTES + courses * SERIES_ROW_BYTES) + PART_BYTES
    return Forecast(
        len(sweep),
        len(sweep) - len(todo),
        memory_bytes,
        at_once,
        None if each is None else each * len(todo) / at_once,
        len(found),
        each,
        size,
        len(whole) if keep else 0,
    )


def _trials(runs: Sequence[Run], series: bool, progress: ProgressCallback | None) -> list[Trial]:
    return [one for run in runs if (one := _tried(run, series, progress)) is not None]


def _some(runs: Sequence[Run]) -> list[Run]:
    """Some runs from all over."""
    last = len(runs) - 1
    places = {last * step // (TRIALS - 1) for step in range(TRIALS)} if runs else set()
    return [runs[place] for place in sorted(places)]


def _tried(run: Run, series: bool, progress: ProgressCallback | None) -> Trial | None:
    """How long a run takes; None where it cannot be."""
    if progress is not None and not progress(TRYING):
        raise Interrupted("stopped; nothing was kept")
    started = time.monotonic()
    reached, expired = 0.0, False

    def report(news: Progress) -> bool:
        nonlocal reached, expired
        reached = news.fraction or reached
        if progress is not None and not progress(TRYING):
            return False
        expired = time.monotonic() - started >= TRIAL_S
        return not expired

    settings = Settings(seed=run.seed, prepare=run.prepare, progress=report)
    try:
        result = run.target.run(run.job, settings)
    except Interrupted:
        if not expired:
            raise
        return Trial(run, (time.monotonic() - started) / reached, None) if reached else None
    except InputError:
        return None
    return Trial(run, time.monotonic() - started, Came.of(result, series=series))
