"""Runs experiments: their jobs in threads over drives, since the core lets go of Python."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ssdlab.errors import Interrupted
from ssdlab.experiments.base import Experiment, Mode, Outcome, Task
from ssdlab.jobfile import JobText
from ssdlab.progress import Progress, ProgressCallback
from ssdlab.results import Result
from ssdlab.rig import profile
from ssdlab.target import Settings, Sim


def run(
    experiments: Sequence[Experiment],
    mode: Mode = "reduced",
    *,
    seed: int = 1,
    progress: ProgressCallback | None = None,
) -> list[Outcome]:
    """Runs experiments on simulated drives; one outcome each, in their order.

    Raises:
        Interrupted: Ctrl-C, or the progress callback returned False; nothing is left running.
    """
    tasks = [(e, task) for e in experiments for task in e.plan(e.factors[mode])]
    # The longest first, so that no thread is left alone with one at the end.
    order = sorted(range(len(tasks)), key=lambda i: -tasks[i][1].cost)
    tally = _Tally([task for _, task in tasks], progress)
    done: dict[tuple[str, str], tuple[Result, float]] = {}

    def one(index: int) -> None:
        experiment, task = tasks[index]
        # Asked here too: a short run may end before the core reports for the first time.
        if not tally.tell(index, 0.0):
            raise Interrupted("stopped; nothing was kept")
        started = time.monotonic()
        settings = Settings(
            seed=seed,
            overrides=task.overrides,
            interval_ms=task.interval_ms,
            progress=lambda news: tally.tell(index, news.fraction or 0.0),
        )
        job = JobText(f"{experiment.name}-{task.key}.fio", task.job, Path.cwd())
        result = Sim(task.drive, profile(task.drive).text).run(job, settings)
        tally.tell(index, 1.0)
        done[experiment.name, task.key] = result, time.monotonic() - started

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        futures = [threads.submit(one, index) for index in order]
        try:
            for future in futures:
                future.result()
        except BaseException:
            tally.stop.set()  # before the pool waits for its threads
            threads.shutdown(cancel_futures=True)
            raise
    return [_outcome(experiment, mode, seed, done) for experiment in experiments]


def _outcome(
    experiment: Experiment,
    mode: Mode,
    seed: int,
    done: dict[tuple[str, str], tuple[Result, float]],
) -> Outcome:
    own = {key: found for (name, key), found in done.items() if name == experiment.name}
    factor = experiment.factors[mode]
    findings = experiment.judge({key: result for key, (result, _) in own.items()}, factor)
    seconds = sum(taken for _, taken in own.values())
    return Outcome(experiment, mode, factor, findings, seconds, seed)


class _Tally:
    """How far all tasks together are."""

    def __init__(self, tasks: Sequence[Task], progress: ProgressCallback | None) -> None:
        self.stop = threading.Event()
        self._costs = [task.cost for task in tasks]
        self._done = [0.0] * len(tasks)
        self._progress = progress
        self._lock = threading.Lock()

    def tell(self, index: int, fraction: float) -> bool:
        """Notes how far a task is; False when it has to stop."""
        with self._lock:
            self._done[index] = fraction
            whole = sum(c * f for c, f in zip(self._costs, self._done, strict=True))
            finished = sum(f >= 1.0 for f in self._done)
            text = f"{finished} of {len(self._done)} runs done"
            news = Progress(fraction=whole / sum(self._costs), text=text)
            if self._progress is not None and not self._progress(news):
                self.stop.set()
        return not self.stop.is_set()
