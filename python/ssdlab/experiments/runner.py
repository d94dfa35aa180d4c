"""Runs experiments: the jobs of all of them on the bench."""

from __future__ import annotations

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
    """Runs experiments on simulated drives; one outcome each, in their order; Interrupted on
    Ctrl-C, or where the progress callback returned False; nothing is left running."""
    planned = [(e, e.plan(e.factors[mode])) for e in experiments]
    variants = [variant for e, tasks in planned for variant in _variants(e, tasks, seed)]
    tasks = [(e, task) for e, own in planned for task in own]
    done: dict[str, dict[str, Result]] = {e.name: {} for e in experiments}
    for (e, task), found in zip(tasks, bench.run(variants, progress), strict=True):
        done[e.name][task.key] = found
    factors = [e.factors[mode] for e in experiments]
    return [
        Reproduction(e, mode, factor, e.judge(done[e.name], factor), seed)
        for e, factor in zip(experiments, factors, strict=True)
    ]


def _variants(of: Experiment, tasks: Sequence[Task], seed: int) -> list[bench.Variant[Result]]:
    """The runs of an experiment; their costs are seconds, so that those of several add up."""
    unit_s = of.effort_s / sum(task.cost for task in tasks)
    return [
        bench.Variant(partial(_work, of.name, task, seed), task.cost * unit_s) for task in tasks
    ]


def _work(name: str, task: Task, seed: int, seat: bench.Seat) -> Result:
    """Runs a task of the experiment of that name."""
    settings = Settings(
        seed=seed, prepare=task.prepare, overrides=task.overrides, interval_ms=task.interval_ms
    )
    job = JobText(f"{name}-{task.key}.fio", task.job, Path.cwd())
    target = Sim(task.drive, task.rig or profile(task.drive).text)
    return seat.run(target, job, settings)
