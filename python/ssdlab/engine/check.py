"""What a check says of a run's numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

MARK = "†"
"""Stands behind a number, or by a chart, that a check puts in doubt."""
MARK_NOTE = f"{MARK} stands by every number that a check puts in doubt."

Status = Literal["good", "doubt", "bad", "unknown"]
"""``bad``: the number is not what it claims to be. ``doubt``: it may not be. ``unknown``: nobody
can tell from what was recorded."""


@dataclass(frozen=True)
class Check:
    """The answer of a check."""

    name: str
    title: str
    status: Status
    evidence: str
    """What was seen."""
    why: str
    """Why that matters."""
    affects: tuple[str, ...] | None = None
    """Keys of the steps whose numbers it puts in doubt; None: all of them."""


def any_doubt(checks: Iterable[Check]) -> bool:
    """Whether numbers of a run that is examined as one carry a mark."""
    return any(one.status in ("bad", "doubt") and one.affects != () for one in checks)


def marked(checks: Iterable[Check], keys: Sequence[str]) -> frozenset[str]:
    """The steps among ``keys`` that a check puts in doubt."""
    found: set[str] = set()
    for check in checks:
        if check.status in ("bad", "doubt"):
            found.update(keys if check.affects is None else check.affects)
    return frozenset(found)
