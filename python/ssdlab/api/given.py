"""What functions are given, in the form that commands take: values become the text of options."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ssdlab.errors import InputError, SsdlabError
from ssdlab.units import SEED_MAX, parse_bytes, quantity

P = ParamSpec("P")
R = TypeVar("R")

Many = str | int | float | Iterable[str | int | float]
"""Values: one, several (also an array of numpy), or a list as options take it, such as
``"64k,512k"`` or ``"2..32x2"``."""
Size = str | int
"""Bytes: a number of them, or text such as ``"8GiB"``."""
BOUNDS: Mapping[str, tuple[float, float]] = {
    "copies": (2, 3),
    "depth": (1, math.inf),
    "device": (0, math.inf),
    "budget": (1, math.inf),
    "members": (1, math.inf),
    "models": (1, math.inf),
    "passes": (1, math.inf),
    "price": (0, math.inf),
    "repeats": (2, 1000),
    "runs": (100, math.inf),
    "scale": (1, math.inf),
    "seed": (0, SEED_MAX),
    "seeds": (1, math.inf),
    "selftest": (1, math.inf),
    "top": (1, math.inf),
}
"""The least and the most of numbers that a function takes; those of its command's options."""
_OPTION = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)")


def text(value: object) -> str:
    """A value as an option takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def listed(values: Many | None) -> str | None:
    """A list as an option takes it; None stays None."""
    if values is None or isinstance(values, str):
        return values
    return ",".join(map(text, values)) if isinstance(values, Iterable) else text(values)


def several(values: str | Path | Sequence[str | Path] | None) -> list[str]:
    """What an option is given that may be given again."""
    if values is None:
        return []
    return [str(values)] if isinstance(values, str | Path) else [str(value) for value in values]


def keys(values: Mapping[str, object] | None) -> dict[str, str]:
    """Keys of a rig, or parameters, with their values as text."""
    return {key: text(value) for key, value in (values or {}).items()}


def size(option: str, given: Size) -> int:
    """Bytes; raises InputError, which names the option, where it is no size."""
    return parse_bytes(option, text(given))


def share(option: str, text: str | None, expected: str, most: float = 1.0) -> float | None:
    """A percentage as a share; None stays None. Raises InputError, which names the option and what
    is ``expected``, where it is none above 0 and up to ``most``."""
    if text is None:
        return None
    found, _ = quantity(text if text.strip().endswith("%") else f"{text}%") or (0.0, "")
    if not 0 < found <= most:
        raise InputError(f'{option} "{text}": {expected}')
    return found


def in_python(function: Callable[P, R]) -> Callable[P, R]:
    """The function for callers in Python: its errors name parameters, not options of a command, and
    what it is given is looked at, as a command's options are before it."""
    signature = inspect.signature(function)
    known = set(signature.parameters)

    def named(option: re.Match[str]) -> str:
        name = option[1].replace("-", "_")
        return name if name in known else option[0]

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # raises one that names the function
        for name, value in bound.arguments.items():
            parameter = signature.parameters[name]
            kinds = str(parameter.annotation).split(" | ")
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                bound.arguments[name] = tuple(_looked_at(name, kinds, one) for one in value)
            elif parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                bound.arguments[name] = _looked_at(name, kinds, value)
        try:
            return function(*bound.args, **bound.kwargs)
        except SsdlabError as error:
            error.message = _OPTION.sub(named, error.message)
            error.args = (error.message, *error.args[1:])
            raise

    # Every function is a way in: pytest, for one, takes what is called test for a test.
    own: Any = called
    own.__test__ = False
    return called


def _looked_at(name: str, kinds: Sequence[str], value: object) -> object:
    """What a parameter of these types is given; raises InputError where it is none of them, or a
    number that is too small or too large."""
    if value is None and "None" in kinds:
        return None
    if kinds[0] in ("int", "float"):
        return number(name, value, whole=kinds[0] == "int")
    if kinds[0] == "str" and {*kinds} <= {"str", "None"} and not isinstance(value, str):
        raise InputError(f"{name}: found {value!r}, expected text")
    if kinds[0].startswith("Mapping[") and not isinstance(value, Mapping):
        raise InputError(f"{name}: found {value!r}, expected a dict of keys and their values")
    return value


def number(name: str, value: Any, *, whole: bool) -> float:
    """A number within its bounds; those of numpy become Python's. Raises InputError, which names
    the parameter, where it is none."""
    least, most = BOUNDS.get(name, (-math.inf, math.inf))
    try:
        found = operator.index(value) if whole else float(value)
    except (TypeError, ValueError):
        found = math.nan
    if isinstance(value, str) or not least <= found <= most:
        kind = "a whole number" if whole else "a number"
        top = "2^64 - 1" if most == SEED_MAX else f"{most:.0f}"
        limits = f" from {least} to {top}" if most < math.inf else f" of at least {least}"
        raise InputError(
            f"{name}: found {value!r}, expected {kind}{limits if name in BOUNDS else ''}"
        )
    return found
