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

import ast
import importlib
import inspect
import signal
from pathlib import Path

from ssdlab._version import VERSION

_PLACES = {
    name.asname or name.name: line.module or ""
    for line in ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8")).body
    if isinstance(line, ast.ImportFrom)
    for name in line.names
}
"""Modules of the public names, as the stub says them. They are loaded when one is first asked for:
with polars behind them they take half a second, in which the command line could not yet answer
Ctrl-C."""
_CLASSES = ("Chart", "Fio", "Report", "Result", "Rig", "RunStore", "Settings", "Sim")
"""Those that callers make, or ask for more: their methods are as the functions of ``api``, whose
errors name parameters; those of the commands, which call the same functions, name options."""

__version__ = VERSION
__all__ = sorted([*_PLACES, "__version__"])


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'ssdlab' has no attribute {name!r}")
    from ssdlab.given import in_python, methods_in_python

    for one in _CLASSES:
        methods_in_python(getattr(importlib.import_module(_PLACES[one]), one))
    found: object = getattr(importlib.import_module(_PLACES[name]), name)
    # Polars has waits go on after Ctrl-C: a main thread that waits for others would not see it.
    signal.siginterrupt(signal.SIGINT, True)
    globals()[name] = found = in_python(found) if inspect.isfunction(found) else found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
