"""``ssdlab.load`` and ``ssdlab.runs``: what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ssdlab.answers import kept
from ssdlab.api.report import Report, of_results
from ssdlab.errors import InputError
from ssdlab.results import Result
from ssdlab.store import RunStore

Kept = str | Path | Result | Report
"""A run: its folder, its id or a piece of that, or what a function returned."""


def load(*runs: str | Path, out: str | Path | None = None) -> Report:
    """Reads kept runs: those of job files beside each other, or that of a protocol.

    Args:
        runs: Folders, or ids as :func:`ssdlab.runs` lists them; a piece of one will do.
        out: Where the runs are kept.

    Returns:
        What ``ssdlab report`` writes; ``results`` has the runs of job files.

    Raises:
        InputError: there is no such run, it is damaged, or one of several is that of a protocol.
    """
    store = RunStore(out)
    folders = [store.open(str(one)) for one in runs]
    ids = [one.id for one in folders]
    if folders and all(one.is_job for one in folders):
        return of_results([one.result() for one in folders], ids)
    return Report(kept.answer(folders), runs=ids)


def runs(*, out: str | Path | None = None) -> Report:
    """Lists the kept runs; ``frame()`` has a row for each, ``runs`` their ids.

    Args:
        out: Where the runs are kept; else the user's store.

    Raises:
        InputError: a run is damaged.
    """
    store = RunStore(out)
    found, wrong = store.listing()
    if wrong:
        raise wrong[0]
    return Report(kept.listed(found, str(store.root)), runs=[one.id for one in found])


def result_of(run: Kept, out: str | Path | None) -> Result:
    """The run of a job file; raises InputError where it is none."""
    if isinstance(run, Result):
        return run
    if not isinstance(run, Report):
        return RunStore(out).open(str(run)).result()
    results: Sequence[Result] = run.results
    if len(results) != 1:
        raise InputError(f"{run.title}: is about {len(results)} runs of a job; give one")
    return results[0]
