"""ssdlab: a laboratory for solid-state storage.

One experiment, written as an ordinary fio job, runs on a simulated drive in virtual time or on a
real file or drive through the real fio, and both give the same :class:`Result`::

    import ssdlab

    result = ssdlab.run("examples/consistency.fio", on="demo-client", set={"capacity": "1GiB"})
    print(result.frame())

The commands that run, simulate and compare are functions too: ``ssdlab.test``, ``ssdlab.compare``,
``ssdlab.array`` and the others of ``ssdlab.__all__``. Each takes what its command takes and returns
what that shows as a :class:`Report`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ssdlab._version import VERSION as __version__
from ssdlab.errors import (
    BrokenOffError,
    ExperimentError,
    InputError,
    Interrupted,
    MissingProgramError,
    RefusedError,
    SsdlabError,
    UnknownNameError,
)

if TYPE_CHECKING:
    from ssdlab.api.ab import ab
    from ssdlab.api.array import array
    from ssdlab.api.cache import cache
    from ssdlab.api.chart import Chart
    from ssdlab.api.compare import compare
    from ssdlab.api.explain import explain
    from ssdlab.api.imports import import_runs
    from ssdlab.api.kept import load, query, runs
    from ssdlab.api.looks import audit, health, scan
    from ssdlab.api.names import devices, drives, parts, policies, procedures
    from ssdlab.api.plan import plan_cache, plan_storage
    from ssdlab.api.reliability import reliability
    from ssdlab.api.report import Report
    from ssdlab.api.reproduce import reproduce
    from ssdlab.api.rig import Rig
    from ssdlab.api.run import replay, run
    from ssdlab.api.sweep import sweep
    from ssdlab.api.test import resume, test
    from ssdlab.api.traces import trace
    from ssdlab.api.twins import fit, predict
    from ssdlab.progress import Progress, ProgressCallback
    from ssdlab.results import DirectionStats, JobResult, Result
    from ssdlab.store import RunStore
    from ssdlab.target import Fio, Settings, Sim, Target

_HOMES = {
    "api.chart": ("Chart",),
    "api.names": ("devices", "drives", "parts", "policies", "procedures"),
    "api.report": ("Report",),
    "api.rig": ("Rig",),
    "progress": ("Progress", "ProgressCallback"),
    "results": ("DirectionStats", "JobResult", "Result"),
    "store": ("RunStore",),
    "target": ("Fio", "Settings", "Sim", "Target"),
}
"""Where the names live that are loaded when they are first asked for: with polars behind them they
take half a second, in which the command line could not yet answer Ctrl-C."""
FUNCTIONS = {
    "ab": ("ab",),
    "array": ("array",),
    "cache": ("cache",),
    "compare": ("compare",),
    "explain": ("explain",),
    "imports": ("import_runs",),
    "kept": ("load", "query", "runs"),
    "looks": ("audit", "health", "scan"),
    "plan": ("plan_cache", "plan_storage"),
    "reliability": ("reliability",),
    "reproduce": ("reproduce",),
    "run": ("replay", "run"),
    "sweep": ("sweep",),
    "test": ("resume", "test"),
    "traces": ("trace",),
    "twins": ("fit", "predict"),
}
"""The same of the functions, in ``api``. Their errors name parameters, those of the commands, which
call the same functions, options."""

_CLASSES = ("Chart", "Fio", "Report", "Result", "Rig", "RunStore", "Settings", "Sim")
"""Those that callers make, or ask for more: their methods are as these functions."""

__all__ = [
    "BrokenOffError",
    "Chart",
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
    "Report",
    "Result",
    "Rig",
    "RunStore",
    "Settings",
    "Sim",
    "SsdlabError",
    "Target",
    "UnknownNameError",
    "__version__",
    "ab",
    "array",
    "audit",
    "cache",
    "compare",
    "devices",
    "drives",
    "explain",
    "fit",
    "health",
    "import_runs",
    "load",
    "parts",
    "plan_cache",
    "plan_storage",
    "policies",
    "predict",
    "procedures",
    "query",
    "reliability",
    "replay",
    "reproduce",
    "resume",
    "run",
    "runs",
    "scan",
    "sweep",
    "test",
    "trace",
]


def __getattr__(name: str) -> object:
    found: object = None
    if name in __all__:
        from ssdlab.given import in_python, methods_in_python

        for home, names in _HOMES.items():
            for one in names:
                globals()[one] = getattr(importlib.import_module(f"ssdlab.{home}"), one)
        for one in _CLASSES:
            methods_in_python(globals()[one])
        found = globals().get(name)
    for home, names in FUNCTIONS.items():
        if name in names:
            found = in_python(getattr(importlib.import_module(f"ssdlab.api.{home}"), name))
    if found is None:
        raise AttributeError(f"module 'ssdlab' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
