"""Runs experiments: the jobs of all of them on the bench."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ssdlab import bench
from ssdlab.experiments.base import Experiment, Mode, Reproduction, Task
from ssdlab.jobfile import JobText
from ssdlab.progress import ProgressCallback
from ssdlab.results import Result
from ssdlab.rig import profile
from ssdlab.target import Settings, Sim


def run(
    experiments: Sequence[Experiment],
    mode: Mode = "reduced",
    *,
    seed: int = 1,
    progress: ProgressCallback | None = None,
) -> list[Reproduction]:
    """Runs experiments on simulated drives; one outcome each, in their order.

    Raises:
        Interrupted: Ctrl-C, or the progress callback returned False; nothing is left running.
    """
    tasks = [(e, task) for e in experiments for task in e.plan(e.factors[mode])]
    variants = [bench.Variant(partial(_work, e.name, task, seed), task.cost) for e, task in tasks]
    done: dict[tuple[str, str], tuple[Result, float]] = {
        (e.name, task.key): found
        for (e, task), found in zip(tasks, bench.run(variants, progress), strict=True)
    }
    return [_outcome(experiment, mode, seed, done) for experiment in experiments]


def _work(name: str, task: Task, seed: int, seat: bench.Seat) -> tuple[Result, float]:
    """Runs a task of the experiment of that name: its result and the seconds it took."""
    started = time.monotonic()
    settings = Settings(
        seed=seed, prepare=task.prepare, overrides=task.overrides, interval_ms=task.interval_ms
    )
    job = JobText(f"{name}-{task.key}.fio", task.job, Path.cwd())
    target = Sim(task.drive, task.rig or profile(task.drive).text)
    result = seat.run(target, job, settings)
    return result, time.monotonic() - started


def _outcome(
    experiment: Experiment, mode: Mode, seed: int, done: dict[tuple[str, str], tuple[Result, float]]
) -> Reproduction:
    own = {key: found for (name, key), found in done.items() if name == experiment.name}
    factor = experiment.factors[mode]
    findings = experiment.judge({key: result for key, (result, _) in own.items()}, factor)
    seconds = sum(taken for _, taken in own.values())
    return Reproduction(experiment, mode, factor, findings, seconds, seed)
