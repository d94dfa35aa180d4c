"""``ssdlab.compare``: runs beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ssdlab.answers import comparison
from ssdlab.api.kept import Kept
from ssdlab.api.report import Report
from ssdlab.results import Result
from ssdlab.store import RunStore
from ssdlab.studies import compare as study


def compare(
    *runs: Kept | Sequence[Kept], each: bool = False, out: str | Path | None = None
) -> Report:
    """Compares runs: how large differences are, and whether they are more than noise.

    Args:
        runs: Run folders, or ids as ``ssdlab list runs`` shows them; RUN,RUN are repeats that count
            as one side. The first is what the others are compared to. In Python a side may also be
            a :class:`ssdlab.Result`, what a function of ssdlab returned, or several of these.
        each: Every run by itself, also where several are repeats of the same.
        out: Where the runs are kept.

    Raises:
        InputError: there is no such run, or they cannot be compared.
    """
    sides = [_side(run) for run in runs]
    found = study.load(sides, RunStore(out), each=each)
    return Report(comparison.answer(found), found.results, found.names)


def _side(given: Kept | Sequence[Kept]) -> list[str | Result]:
    """The runs of a side; text is split at commas."""
    if isinstance(given, str):
        return [one.strip() for one in given.split(",") if one.strip()]
    if isinstance(given, Result):
        return [given]
    if isinstance(given, Report):
        return [*given.runs] or [*given.results]
    if isinstance(given, Path):
        return [str(given)]
    return [run for one in given for run in _side(one)]
