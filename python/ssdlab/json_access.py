"""Values out of JSON that anybody may have written: the right type or None."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any


def object_in(text: str) -> tuple[dict[str, Any], str]:
    """The JSON object that a program has printed, and what it printed before; empty for none."""
    start = text.find("{")
    before, rest = (text, "") if start < 0 else (text[:start], text[start:])
    try:
        found, _ = json.JSONDecoder().raw_decode(rest)
    except ValueError:
        return {}, before
    return (found if isinstance(found, dict) else {}), before


def at(document: object, *keys: str) -> object:
    """The value under nested keys; None where the way does not exist."""
    for key in keys:
        if not isinstance(document, Mapping):
            return None
        document = document.get(key)
    return document


def count(document: object, *keys: str) -> int | None:
    """A whole number of at least 0."""
    value = at(document, *keys)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and value >= 0 else None  # type: ignore[return-value, operator]


def integer(document: object, *keys: str) -> int | None:
    """A whole number."""
    value = at(document, *keys)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(document: object, *keys: str) -> float | None:
    """A finite number."""
    value = at(document, *keys)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def text(document: object, *keys: str) -> str | None:
    """Text that is not empty."""
    value = at(document, *keys)
    return value.strip() or None if isinstance(value, str) else None


def truth(document: object, *keys: str) -> bool | None:
    """True or false."""
    value = at(document, *keys)
    return value if isinstance(value, bool) else None


def rows(document: object, *keys: str) -> Iterator[Mapping[str, Any]]:
    """The objects in a list."""
    value = at(document, *keys)
    for one in value if isinstance(value, list) else []:
        if isinstance(one, Mapping):
            yield one
