"""Commands made of functions of the package: what a function takes, and what its documentation says
of that, are the arguments and options of its command.

Both are read from ``index.json``, so that help and completion load no function: what
:func:`described` says is written there by ``docs/generate.py``.
"""

from __future__ import annotations

import importlib
import inspect
import math
import re
from collections.abc import Callable, Collection, Mapping
from copy import copy
from types import GenericAlias
from typing import Any, get_args

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering, called
from ssdlab.cli.options import (
    Destroy,
    KeptWhere,
    OneRun,
    Prepare,
    Protocol,
    ProtocolOptions,
    Redact,
    ReuseOptions,
    SetKeys,
    SetUp,
    TargetName,
    Tbw,
    UseExistingFile,
    argument,
    flag,
    keys,
    option,
)
from ssdlab.given import BOUNDS

UNASKED = ("progress", "notice")
"""Parameters that a command line does not give."""
SHARED: Mapping[str, Any] = {
    **{name: ProtocolOptions.options[name] for name in ("param", "quick", "size", "scale")},
    **ReuseOptions.options,
    "destroy": get_args(Destroy)[1],
    "out": get_args(KeptWhere)[1],
    "prepare": get_args(Prepare)[1],
    "protocol": get_args(Protocol)[1],
    "redact": get_args(Redact)[1],
    "run": get_args(OneRun)[1],
    "set": get_args(SetKeys)[1],
    "setup": get_args(SetUp)[1],
    "target": get_args(TargetName)[1],
    "tbw": get_args(Tbw)[1],
    "use_existing_file": get_args(UseExistingFile)[1],
}
"""What is said of parameters that other commands have too."""
NAMES = {"tries": "--try/--no-try"}
"""Options that are called otherwise, where Python has taken their names."""
METAVARS = {
    "afr": "PERCENT",
    "job": "JOB.fio",
    "level": "LEVEL,...",
    "mtbf": "HOURS",
    "model_spread": "PERCENT",
    "rebuild_rate": "RATE",
    "renew_at": "PERCENT",
    "replace_after": "HOURS",
    "spread": "PERCENT",
    "stagger": "PERCENT[,...]",
    "to_a": "CMD",
    "to_b": "CMD",
    "uber": "RATE",
    "years": "YEARS",
}
"""What stands for the value of an option, where its type does not tell."""
TYPES: Mapping[str, tuple[Any, str, Mapping[str, Any]]] = {
    "int": (int, "N", {}),
    "float": (float, "N", {}),
    "Drive": (str, "DRIVE", {"autocompletion": light.complete("drives")}),
    "On": (str, "TARGET", {"autocompletion": light.complete("drives")}),
    "Kept": (str, "RUN", {"autocompletion": light.complete_runs}),
    "Many": (str, "LIST", {}),
    "Mapping[str, object]": (list[str], "KEY=VALUE", {}),
    "Size": (str, "SIZE", {}),
    "bool": (bool, "", {}),
    "str": (str, "NAME", {}),
}
"""How a command line gives what a parameter takes, what stands for it in the help, and how it is
completed."""


def names() -> list[str]:
    """Functions that are called as their modules in ``api/``: studies, which have commands."""
    import ssdlab

    public = [(name, getattr(ssdlab, name)) for name in ssdlab.__all__]
    functions = [(name, one) for name, one in public if inspect.isfunction(one)]
    return [name for name, one in functions if one.__module__ == f"ssdlab.api.{name}"]


def described(name: str) -> dict[str, Any]:
    """What the documentation of a function says, in the words of its command."""
    import ssdlab

    function = inspect.unwrap(getattr(ssdlab, name))
    parameters = inspect.signature(function).parameters
    about, _, rest = (inspect.getdoc(function) or "").partition("\n\nArgs:\n")
    said = re.findall(r"^    (\w+): (.*(?:\n     +.*)*)", rest.partition("\n\n")[0], re.M)
    told = {one: _spoken(text, parameters) for one, text in said}
    return {
        "function": f"{function.__module__}:{name}",
        # What a function does is what its command is asked to do.
        "help": re.sub(r"^\w+", _asked, _spoken(about, parameters)),
        "parameters": [
            {
                "name": one.name,
                "place": one.kind.name,
                "takes": str(one.annotation),
                "required": one.default is one.empty,
                "default": None if one.default is one.empty else one.default,
                "help": told[one.name],
            }
            for one in parameters.values()
            if one.name not in UNASKED
        ],
    }


def _asked(verb: re.Match[str]) -> str:
    """Tries: try; guesses: guess; says: say."""
    return re.sub(r"ie$", "y", re.sub(r"(?:(?<=ss|sh|ch)e)?s$", "", verb[0]))


def _spoken(text: str, parameters: Collection[str]) -> str:
    """A text of the documentation as a command says it: without what it is in Python besides."""

    def word(quoted: re.Match[str]) -> str:
        if quoted[1].startswith("ssdlab "):
            return f"`{quoted[1]}`"
        return called(quoted[1]) if quoted[1] in parameters else quoted[1]

    text = re.sub(r"(?<!\n)\n *(?=\S)", " ", text).partition(" In Python")[0]
    text = re.sub(r":func:`ssdlab\.(\w+)`", r"`ssdlab \1`", text)
    return re.sub(r'``"?([^`]*?)"?``', word, text)


def load(name: str) -> Callable[..., None]:
    """The command of a function, whose module is loaded where more than words is asked for."""
    about = light.index()["made"][name]
    module, _, own = about["function"].partition(":")
    function = getattr(importlib.import_module(module), own) if light.BODIES else None
    parameters = about["parameters"]

    def command(*, view: View, ask: Ask, **given: Any) -> None:
        from ssdlab.cli.output import notice

        assert function is not None
        more: dict[str, Any] = {
            one["name"]: keys(given[one["name"]], called(one["name"]))
            for one in parameters
            if one["takes"].startswith("Mapping")
        }
        if "notice" in inspect.signature(function).parameters:
            more["notice"] = notice
        several = [one["name"] for one in parameters if one["place"] == "VAR_POSITIONAL"]
        places = [place for name in several for place in given[name] or ()]
        view.show(ask(function, *places, **more).answer)

    command.__doc__ = about["help"]
    return answering(command, {one["name"]: _declared(one) for one in parameters})


def _declared(about: Mapping[str, Any]) -> tuple[Any, Any]:
    """The type of a parameter on the command line, and what typer is told of it."""
    name: str = about["name"]
    default: Any = ... if about["required"] else about["default"]
    takes = about["takes"].partition(" | ")[0]
    kind, metavar, how = TYPES[takes]
    metavar, how = METAVARS.get(name, metavar), dict(how)
    if name in BOUNDS and takes == "int":
        least, most = BOUNDS[name]
        how |= {"min": least, "max": None if most == math.inf else most}
    if about["place"] == "VAR_POSITIONAL":
        kind = GenericAlias(list, (kind,))
    if name in SHARED:
        told = copy(SHARED[name])
        told.default = default
    elif takes == "bool":
        told = flag(about["help"], NAMES.get(name, called(name)), default=default)
    elif about["place"] == "KEYWORD_ONLY":
        told = option(metavar, about["help"], called(name), default=default, **how)
    else:
        told = argument(metavar, about["help"], default=default, **how)
    return (kind if about["required"] or default is not None else kind | None), told
