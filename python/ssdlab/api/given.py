"""What functions are given, in the form that commands take: values become the text of options."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ssdlab.errors import InputError, SsdlabError
from ssdlab.units import parse_bytes, quantity

P = ParamSpec("P")
R = TypeVar("R")

Many = str | int | float | Sequence[str | int | float]
"""Values: one, several, or a list as options take it, such as ``"64k,512k"`` or ``"2..32x2"``."""
Size = str | int
"""Bytes: a number of them, or text such as ``"8GiB"``."""
_OPTION = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)")


def text(value: object) -> str:
    """A value as an option takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def listed(values: Many | None) -> str | None:
    """A list as an option takes it; None stays None."""
    if values is None or isinstance(values, str):
        return values
    return ",".join(map(text, values)) if isinstance(values, Sequence) else text(values)


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
    """The function for callers in Python: its errors name parameters, not options of a command."""
    known = set(inspect.signature(function).parameters)

    def named(option: re.Match[str]) -> str:
        name = option[1].replace("-", "_")
        return name if name in known else option[0]

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except SsdlabError as error:
            error.message = _OPTION.sub(named, error.message)
            error.args = (error.message, *error.args[1:])
            raise

    # Every function is a way in: pytest, for one, takes what is called test for a test.
    own: Any = called
    own.__test__ = False
    return called
