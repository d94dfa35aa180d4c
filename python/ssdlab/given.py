"""What functions are given, in the form that commands take: values become the text of options."""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import math
import operator
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Number
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import (
    Any,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)  # fmt: skip

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
_WORKER = re.compile(rb"polars-\d+\n")
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
    """Keys of a rig with their values as text."""
    return {key: text(value) for key, value in (values or {}).items()}


def parameters(values: Mapping[str, Any] | None) -> dict[str, str]:
    """Parameters of a protocol with their values as options take them, several as a list."""
    return {name: listed(value) or text(value) for name, value in (values or {}).items()}


def size(option: str, given: Size) -> int:
    """Bytes; raises InputError, which names the option, where it is no size."""
    return parse_bytes(option, text(given))


def large(option: str, given: Size, unit: str = "GB") -> int:
    """The same of what has at least one ``unit``, such as what a drive holds: less of it without a
    unit is meant in another than bytes, and refused."""
    found, said = size(option, given), text(given).strip()
    if said.isdecimal() and 0 < found < parse_bytes(option, f"1{unit}"):
        example = said if found < 100_000 else "1"
        raise InputError(
            f"{option} {said}: is {said} bytes; write its unit, such as {example}{unit}"
        )
    return found


def share(option: str, text: str | None, expected: str, most: float = 1.0) -> float | None:
    """A percentage as a share; None stays None. Raises InputError, which names the option and what
    is ``expected``, where it is none above 0 and up to ``most``."""
    if text is None:
        return None
    found, _ = quantity(text if text.strip().endswith("%") else f"{text}%") or (0.0, "")
    if not 0 < found <= most:
        raise InputError(f'{option} "{text}": {expected}')
    return found


class _Process:
    """Whether this process was forked from one in which Polars had been at work: a fork does not
    copy its threads, and what waits for them hangs."""

    works = forked = False

    @classmethod
    def before_fork(cls) -> None:
        """Its threads begin with the first work for them."""
        cls.works = False
        for task in Path("/proc/self/task").glob("*/comm"):
            # Others may end meanwhile, and names are bytes that need not be text.
            with contextlib.suppress(OSError):
                cls.works |= _WORKER.fullmatch(task.read_bytes()) is not None

    @classmethod
    def after_fork(cls) -> None:
        cls.forked |= cls.works

    @classmethod
    def refuse_if_forked(cls) -> None:
        if cls.forked:
            raise InputError(
                "this process was forked from one that had used ssdlab, and Polars hangs in it: "
                'start processes by multiprocessing.get_context("spawn"), or use threads'
            )


os.register_at_fork(before=_Process.before_fork, after_in_child=_Process.after_fork)


def in_python(function: Callable[P, R]) -> Callable[P, R]:
    """The function for callers in Python: its errors name parameters, not options of a command, and
    what it is given is looked at, as a command's options are before it."""
    signature = inspect.signature(function)
    known = set(signature.parameters)

    @functools.cache
    def hints() -> Mapping[str, object]:
        # What a function returns may be of a package that is loaded where it is used.
        taken = {k: v for k, v in function.__annotations__.items() if k != "return"}
        names = _Loaded(inspect.unwrap(function).__globals__)
        return get_type_hints(SimpleNamespace(__annotations__=taken), localns=names)

    def named(option: re.Match[str]) -> str:
        name = option[1].replace("-", "_")
        return name if name in known else option[0]

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        _Process.refuse_if_forked()
        try:
            # What is missing is told by the function; what stands in its place may be why.
            bound = signature.bind_partial(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # raises one that names the function
        for name, value in bound.arguments.items():
            parameter = signature.parameters[name]
            kind = Parameter(name, str(parameter.annotation), hints().get(name, object))
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                bound.arguments[name] = tuple(kind.look_at(one) for one in value)
            elif parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                bound.arguments[name] = kind.look_at(value)
        try:
            return function(*bound.args, **bound.kwargs)
        except SsdlabError as error:
            error.message = _OPTION.sub(named, error.message)
            error.args = (error.message, *error.args[1:])
            raise
        except UnicodeEncodeError as error:
            if error.reason != "surrogates not allowed":
                raise
            raise InputError(f'"{error.object}": is not text in UTF-8') from None

    # Every function is a way in: pytest, for one, takes what is called test for a test.
    own: Any = called
    own.__test__ = False
    return called


class _Loaded(dict[str, object]):
    """The names of a module, and those that it imports for its types alone: as some module of ours
    has them."""

    def __missing__(self, name: str) -> object:
        ours = [vars(one) for key, one in [*sys.modules.items()] if key.startswith("ssdlab.")]
        if hasattr(builtins, name):
            raise KeyError(name)
        return next(names[name] for names in ours if name in names)


def methods_in_python(kind: type) -> None:
    """The same for what a class is made by and what it offers, once."""
    for name, made in [*vars(kind).items()]:
        function = getattr(made, "__func__", made)  # of class and static methods
        offered = inspect.isfunction(function) and (name == "__init__" or name[0] != "_")
        if offered and getattr(function, "__test__", True):
            looked_at = in_python(function)
            setattr(kind, name, looked_at if made is function else type(made)(looked_at))


_WORDS = {
    "str": "text",
    "int": "a whole number",
    "Path": "a Path",
    "bool": "True or False",
    "Mapping": "a dict of keys and their values",
    "Sequence": "several of these",
    "Iterable": "several numbers",
    "Rig": "a Rig, as ssdlab.Rig(NAME) makes it",
    "Size": 'bytes, or a size as text such as "8GiB"',
    "Many": "a value, several, or a list as text",
    "Drive": "a drive (its name, a rig file or a Rig)",
    "On": "a target (a Rig, or the name of a drive or of a file)",
    "Kept": "a run (its folder or id, a Result or a Report)",
    "Watch": "a function, True or False",
    "Notice": "a function",
    "Place": "the name of a file",
    "Result": "a Result",
    "Figure": "a Figure",
    "JobText": "a job as ssdlab.jobfile.read_job reads it",
    "Settings": "Settings",
    "ProgressCallback": "a function",
    "Callable": "a function",
    "Terms": "Terms",
}
"""What is expected, by the type of a parameter."""
_OR = re.compile(r" \| (?![^\[]*\])")


class Parameter(NamedTuple):
    """A parameter of a function, as it says what it takes."""

    name: str
    annotation: str
    hint: object

    def look_at(self, value: object) -> object:
        """What it is given, as the function takes it; raises InputError where it is none of its
        types, or a number that is too small or too large."""
        kinds = _OR.split(self.annotation)
        if value is None and "None" in kinds:
            return None
        if kinds[0] in ("int", "float"):
            return number(self.name, value, whole=kinds[0] == "int")
        if not _is(value, self.hint):
            if (odd := _odd(value, self.hint)) is not None:
                raise InputError(f"{self.name}: found {odd}")
            plain = [kind.partition("[")[0] for kind in kinds if kind != "None"]
            words = [_WORDS.get(kind, _a(kind.rpartition(".")[2])) for kind in plain]
            *most, last = dict.fromkeys(words)
            expected = f"{', '.join(most)} or {last}" if most else last
            raise InputError(f"{self.name}: found {value!r}, expected {expected}")
        return value


def _a(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _odd(given: object, hint: Any) -> str | None:
    """What in a dict is not as it should be, and what would be; None where it is no dict, or none
    is taken."""
    kinds = [hint, *get_args(hint)]
    parts = next((get_args(kind) for kind in kinds if get_origin(kind) is Mapping), None)
    if parts is None or not isinstance(given, Mapping):
        return None
    for key, value in given.items():
        if not _is(key, parts[0]):
            return f"the key {key!r}, expected text"
        if not _is(value, parts[1]):
            return f"{value!r} for {key}, expected a value or several"
    return None


def _is(value: object, hint: Any) -> bool:
    """Whether a value is of a type, as far as can be seen without using it up."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_is(value, part) for part in parts)
    if origin is Callable or (getattr(hint, "_is_protocol", False) and "__call__" in vars(hint)):
        return callable(value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _is(key, parts[0]) and _is(one, parts[1]) for key, one in value.items()
        )
    if hint in (Any, object):
        return True
    if origin in (Sequence, Iterable):
        if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
            return False
        return not isinstance(value, Collection) or all(_is(one, parts[0]) for one in value)
    if hint in (int, float, bool):
        # Those of numpy are numbers, but no bool.
        number_like = isinstance(value, Number) and hint is not bool
        return number_like or isinstance(value, bool) or type(value).__name__ == "bool_"
    return isinstance(value, origin or hint)


def number(name: str, value: Any, *, whole: bool) -> float:
    """A number within its bounds; those of numpy become Python's. Raises InputError, which names
    the parameter, where it is none."""
    least, most = BOUNDS.get(name, (-math.inf, math.inf))
    try:
        found = operator.index(value) if whole else float(value)
    except (TypeError, ValueError):
        found = math.nan
    if isinstance(value, str) or not within(found, least, most):
        raise InputError(f"{name}: found {value!r}, expected {expected(whole, least, most)}")
    return found


def within(found: float, least: float, most: float) -> bool:
    """Whether a number keeps to its bounds; where there are any, it has an end."""
    return least <= found <= most and (math.isfinite(found) or least == -math.inf)


def expected(whole: bool, least: float, most: float) -> str:
    """What a number has to be."""
    kind = "a whole number" if whole else "a number"
    if least == -math.inf:
        return kind
    top = "2^64 - 1" if most == SEED_MAX else f"{most:.0f}"
    return f"{kind} from {least:g} to {top}" if most < math.inf else f"{kind} of at least {least:g}"
