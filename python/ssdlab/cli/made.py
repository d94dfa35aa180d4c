"""Commands made of functions of the package: what a function takes, and what its documentation says
of that, are the arguments and options of its command.

Both are read from ``index.json``, so that help and completion load no function: what
:func:`described` says is written there by ``docs/generate.py``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import re
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from types import GenericAlias
from typing import Any, get_args

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, Own, View, answering, called
from ssdlab.cli.options import (
    Destroy,
    KeptWhere,
    Redact,
    SetUp,
    Tbw,
    argument,
    flag,
    keys,
    option,
)
from ssdlab.errors import InputError
from ssdlab.given import BOUNDS

UNASKED = ("progress", "notice")
"""Parameters that a command line does not give."""
SHARED: Mapping[str, Any] = {
    "destroy": get_args(Destroy)[1],
    "out": get_args(KeptWhere)[1],
    "redact": get_args(Redact)[1],
    "setup": get_args(SetUp)[1],
    "tbw": get_args(Tbw)[1],
}
"""What is said of parameters that commands without functions have too."""
NAMES = {"protocol": ("--protocol", "-p"), "tries": ("--try/--no-try",)}
"""Options that have short names, or whose names Python has taken."""
OPTIONS = ("on", "protocol")
"""Options whose parameters have a place in Python."""
AT_WILL = ("reproduce.names",)
"""Arguments of any number, none too."""
METAVARS = {
    "action": "Q|D|C",
    "afr": "PERCENT",
    "assume_speed": "SPEED",
    "bus": "RATE",
    "cache": "STORE",
    "candidate": "STORE",
    "check": "TWIN.toml",
    "cluster": "ADDRESS",
    "columns": "LIST",
    "chunk": "LIST",
    "controller": "NAME|FILE",
    "count": "LIST",
    "fit": "as-is|wrap|scale",
    "format": "FORMAT",
    "goal": "iops|p99|price",
    "history": "PATH",
    "hot": "SIZE|all",
    "job": "JOB.fio",
    "level": "LEVEL,...",
    "like": "PROFILE",
    "measured": "RUN",
    "mtbf": "HOURS",
    "model_spread": "PERCENT",
    "modes": "LIST",
    "on": "TARGET",
    "param": "NAME=VALUE",
    "policies": "LIST",
    "pool": "STORE",
    "predict.job": "JOB.fio...",
    "prepare": "STATE",
    "price": "X",
    "prices": "FILE",
    "ram_mode": "write-through|write-back",
    "rebuild_rate": "RATE",
    "renew_at": "PERCENT",
    "replace_after": "HOURS",
    "root": "DIR",
    "run": "RUN",
    "sample": "PERCENT",
    "sampled": "PERCENT",
    "save_rigs": "DIR",
    "search": "MEASURE,...",
    "sources": "TABLE.csv|SHEET.toml|FIO.json|RUN|DIR...",
    "speed": "X",
    "spread": "PERCENT",
    "stagger": "PERCENT[,...]",
    "start": "DRIVE",
    "sweep.job": "JOB.fio|SWEEP.toml",
    "sweep.sample": "lhs:N|sobol:N",
    "sweep.target": "CONDITION",
    "table": "ASK.csv",
    "target": "TARGET",
    "targets": "TARGET",
    "to_a": "CMD",
    "to_b": "CMD",
    "trace": "TRACE",
    "twin": "TWIN.toml",
    "uber": "RATE",
    "vary": "KEY=VALUES",
    "where": "CONDITION",
    "window": "FROM-TO",
    "years": "YEARS",
    "zip": "KEY,KEY",
}
"""What stands for the value of an option, where its type does not tell; of one command under its
name as well."""


def _formats(incomplete: str) -> list[str]:
    from ssdlab import _core

    names = [one["name"] for one in _core.trace_formats()]
    return [name for name in names if name.startswith(incomplete)]


COMPLETIONS: Mapping[str, Callable[[str], list[str]]] = {
    "cache": light.complete_store,
    "candidate": light.complete_store,
    "controller": light.complete("controllers"),
    "format": _formats,
    "like": light.complete("drives"),
    "names": light.complete("experiments", "measured"),
    "on": light.complete("drives"),
    "pool": light.complete_store,
    "preset": light.complete("presets"),
    "protocol": light.complete("protocols"),
    "ram_policy": light.complete("replacement"),
    "run": light.complete_runs,
    "start": light.complete("drives"),
    "study": light.complete("studies"),
    "twin": light.complete("drives"),
    "workload": light.complete("workloads"),
}
"""How values are completed, where their type does not tell."""
LISTS = {
    "modes": ("modes",),
    "policies": ("replacement",),
    "cache.policies": ("replacement", "counted"),
}
"""Kinds of names that are given in lists; a word that is the default is offered as well."""
TYPES: Mapping[str, tuple[Any, str, Mapping[str, Any]]] = {
    "int": (int, "N", {}),
    "float": (float, "N", {}),
    "Drive": (str, "DRIVE", {"autocompletion": light.complete("drives")}),
    "On": (str, "TARGET", {"autocompletion": light.complete("drives")}),
    "Kept": (str, "RUN", {"autocompletion": light.complete_runs}),
    "Many": (str, "LIST", {}),
    "Mapping": (list[str], "KEY=VALUE", {}),
    "Place": (str, "FILE", {}),
    "Size": (str, "SIZE", {}),
    "bool": (bool, "", {}),
    "str": (str, "NAME", {}),
}
"""How a command line gives what a parameter takes, what stands for it in the help, and how it is
completed."""


def functions() -> list[str]:
    """The functions of the package."""
    import ssdlab

    return [name for name in ssdlab.__all__ if inspect.isfunction(getattr(ssdlab, name))]


def studies() -> list[str]:
    """Functions that are called as their modules in ``api/``, which have commands."""
    import ssdlab

    return [name for name in functions() if getattr(ssdlab, name).__module__.endswith(f".{name}")]


def described(name: str) -> dict[str, Any]:
    """What the documentation of a function says, in the words of its command; InputError where it
    does not say what the function does, or what one of its parameters is."""
    import ssdlab

    function = inspect.unwrap(getattr(ssdlab, name))
    parameters = inspect.signature(function).parameters
    about, _, rest = (inspect.getdoc(function) or "").partition("\n\nArgs:\n")
    said = dict(re.findall(r"^    (\w+): (.*(?:\n     +.*)*)", rest.partition("\n\n")[0], re.M))
    asked = [one for one in parameters if one not in UNASKED]
    if unsaid := [*(["what it does"] if not about else []), *(k for k in asked if k not in said)]:
        raise InputError(
            f"{function.__module__}.{name}: its docstring does not say: {', '.join(unsaid)} "
            '("Args:" below an empty line, and a line "NAME: ..." for each parameter)'
        )
    spoken = functools.partial(_spoken, function=name, parameters=parameters)
    return {
        "function": f"{function.__module__}:{name}",
        # What a function does is what its command is asked to do.
        "help": re.sub(r"^\w+", _asked, spoken(about)),
        "parameters": [
            {
                "name": one.name,
                "place": one.kind.name,
                "takes": str(one.annotation),
                "required": one.default is one.empty and f"{name}.{one.name}" not in AT_WILL,
                "default": _default(one.default),
                "help": _elsewhere(said[one.name], one.name) or spoken(said[one.name]),
            }
            for one in parameters.values()
            if one.name not in UNASKED
        ],
    }


def _default(given: Any) -> Any:
    """As JSON has it."""
    if isinstance(given, Path):
        return str(given)
    return None if given is inspect.Parameter.empty else given


def _elsewhere(text: str, parameter: str) -> str:
    """What is said of the same parameter of another function, where that is referred to."""
    other = re.search(r"\bas\s+for\s+:func:`ssdlab\.(\w+)`\.$", text, re.I)
    if other and other[1] not in functions():
        raise InputError(f"{parameter}: {text} There is no such function")
    found = described(other[1])["parameters"] if other else ()
    return next((one["help"] for one in found if one["name"] == parameter), "")


def _asked(verb: re.Match[str]) -> str:
    """Tries: try; guesses: guess; says: say."""
    return re.sub(r"ie$", "y", re.sub(r"(?:(?<=ss|sh|ch|Go)e)?s$", "", verb[0]))


def _spoken(text: str, function: str, parameters: Mapping[str, inspect.Parameter]) -> str:
    """A text of the documentation as a command says it: without what it is in Python besides."""

    def word(quoted: re.Match[str]) -> str:
        one = parameters.get(quoted[1])
        if one is None:
            return f"`{quoted[1]}`" if quoted[1].startswith("ssdlab ") else quoted[1]
        placed = _is_argument(one.name, one.kind.name)
        return _metavar(function, one.name, str(one.annotation)) if placed else called(one.name)

    text = re.sub(r"(?<!\n)\n *(?=\S)", " ", text)
    text = re.sub(r"\s+In Python .*", "", text, flags=re.S)
    text = re.sub(r":func:`ssdlab\.(\w+)`", r"`ssdlab \1`", text)
    return re.sub(r'``"?([^`]*?)"?``', word, text)


def load(name: str) -> Callable[..., None]:
    """The command of a function, whose module is loaded where more than words is asked for."""
    about = light.index()["functions"][name]
    module, _, own = about["function"].partition(":")
    function = getattr(importlib.import_module(module), own) if light.BODIES else None

    def command(*, view: View, ask: Ask) -> None:
        assert function is not None
        view.show(ask(function).answer)

    return of(name)(command)


def of(name: str, *, says: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a command of a function of the package and of what it does besides: it has the options
    of the function, those before its own that it does not have itself, and is told of those that it
    takes without a default. What it does is what the function says, where it ``says``."""
    about = light.index()["functions"][name]

    def made(command: Callable[..., None]) -> Callable[..., None]:
        own = {one["name"]: _own(name, one) for one in about["parameters"]}
        answered = answering(command, own)
        answered.__doc__ = about["help"] if says else command.__doc__
        return answered

    return made


def _own(function: str, about: Mapping[str, Any]) -> Own:
    """A parameter on the command line."""
    name: str = about["name"]
    default: Any = ... if about["required"] else about["default"]
    kind, _, how = _type(about["takes"])
    metavar, how = _metavar(function, name, about["takes"]), dict(how)
    if name in BOUNDS and kind in (int, float):
        least, most = BOUNDS[name]
        how |= {"min": kind(least), "max": None if most == math.inf else most}
    if name in COMPLETIONS:
        how["autocompletion"] = COMPLETIONS[name]
    if kinds := LISTS.get(f"{function}.{name}", LISTS.get(name)):
        also = (default,) if default else ()
        how["autocompletion"] = light.complete_list(*kinds, also=also)
    elif about["place"] == "VAR_POSITIONAL" or "Sequence[" in about["takes"]:
        kind = GenericAlias(list, (kind,))
    names = NAMES.get(name, (called(name),))
    if name in SHARED:
        told = copy(SHARED[name])
        told.default = default
    elif kind is bool:
        told = flag(about["help"], *names, default=default)
    elif _is_argument(name, about["place"]):
        told = argument(metavar, about["help"], default=default, **how)
    else:
        told = option(metavar, about["help"], *names, default=default, **how)
    reads = keys if about["takes"].startswith("Mapping") else None
    return Own(kind if about["required"] or default is not None else kind | None, told, reads)


def _type(takes: str) -> tuple[Any, str, Mapping[str, Any]]:
    kind = re.split(r" \| |\[", takes)[0]
    if kind not in TYPES:
        raise InputError(f'a parameter takes "{takes}": TYPES in cli/made.py does not say how')
    return TYPES[kind]


def _metavar(function: str, name: str, takes: str) -> str:
    return METAVARS.get(f"{function}.{name}") or METAVARS.get(name) or _type(takes)[1]


def _is_argument(name: str, place: str) -> bool:
    return place != "KEYWORD_ONLY" and name not in OPTIONS
