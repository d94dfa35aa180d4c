"""ssdlab: a laboratory for solid-state storage.

One experiment, written as an ordinary fio job, runs on a simulated drive in virtual time or on a
real file or drive through the real fio, and both give the same :class:`Result`::

    import ssdlab

    result = ssdlab.run("examples/consistency.fio", on="demo-client", set={"capacity": "1GiB"})
    print(result.frame())
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ssdlab._version import VERSION as __version__
from ssdlab.errors import (
    ExperimentError,
    InputError,
    Interrupted,
    MissingProgramError,
    RefusedError,
    SsdlabError,
    UnknownNameError,
)

if TYPE_CHECKING:
    from ssdlab.progress import Progress, ProgressCallback
    from ssdlab.results import DirectionStats, JobResult, Result
    from ssdlab.store import RunStore
    from ssdlab.target import Fio, Settings, Sim, Target

_HOMES = {
    "progress": ("Progress", "ProgressCallback"),
    "results": ("DirectionStats", "JobResult", "Result"),
    "store": ("RunStore",),
    "target": ("Fio", "Settings", "Sim", "Target"),
}
"""Where the names live that are loaded when they are first asked for: with polars behind them they
take half a second, in which the command line could not yet answer Ctrl-C."""

__all__ = [
    "DirectionStats",
    "ExperimentError",
    "Fio",
    "InputError",
    "Interrupted",
    "JobResult",
    "MissingProgramError",
    "Progress",
    "ProgressCallback",
    "RefusedError",
    "Result",
    "RunStore",
    "Settings",
    "Sim",
    "SsdlabError",
    "Target",
    "UnknownNameError",
    "__version__",
    "run",
]


def run(
    job: str | Path,
    on: str | Path | Target,
    *,
    set: Mapping[str, object] | None = None,
    scale: int = 1,
    seed: int = 1,
    prepare: str | None = None,
    destroy: str | None = None,
    setup: str = "none",
    progress: ProgressCallback | None = None,
) -> Result:
    """Runs a fio job on a target and returns what happened; nothing is stored.

    Args:
        job: Path of a fio job file, or the text of one (a string with a line break).
        on: A profile's name, a rig file, a plain file, a block device, or a :class:`Target`.
        set: Rig keys to change, such as ``{"ftl.over_provisioning": 0.28}``; simulated only.
        scale: How many times smaller simulated drives are made; ``set`` is applied to them then.
        seed: Seed of all random streams of a simulated run.
        prepare: State of a simulated drive at the start: ``"fob"`` (fresh, the default),
            or steps joined by commas: ``"sequential"``, ``"random:N"``, ``"steady"``,
            ``"trim"``, ``"purge"``, ``"compressible:46"`` (percent by which what the steps after
            it write shrinks, where a drive compresses; otherwise nothing does), ``"idle:30s"``.
        destroy: Serial number of the block device whose data may be lost.
        setup: What is set on a real drive and its system for the run and restored after it:
            ``"pts"``, or single settings such as ``"scheduler=none,governor=performance"``.
        progress: Called a few times a second; returning False stops the run.

    Raises:
        InputError: the job, the target or a setting is wrong.
        RefusedError: the run could destroy data.
        ExperimentError: the run failed.
        Interrupted: the run was stopped; nothing half-written remains.
    """
    from ssdlab.jobfile import read_job
    from ssdlab.rig import SUPERBLOCKS_MIN, resolve
    from ssdlab.target import Settings

    target = resolve(on, destroy=destroy, setup=setup)
    overrides = target.smaller(scale, fewest=SUPERBLOCKS_MIN)
    overrides |= {key: _toml_value(value) for key, value in (set or {}).items()}
    settings = Settings(seed=seed, prepare=prepare, overrides=overrides, progress=progress)
    return target.run(read_job(job), settings)


def _toml_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"ssdlab.{home}"), name)
    raise AttributeError(f"module 'ssdlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
