"""``ssdlab.load``, ``ssdlab.runs`` and ``ssdlab.query``: what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from ssdlab.answers import kept
from ssdlab.api.report import Report, of_results
from ssdlab.api.watching import Watch, shown
from ssdlab.errors import InputError
from ssdlab.given import several
from ssdlab.results import Result
from ssdlab.store import RunStore

Kept = str | Path | Result | Report
"""A run: its folder, its id, a piece of that or "last", or what a function returned."""


def load(*runs: str | Path, out: str | Path | None = None) -> Report:
    """Reads kept runs: those of job files beside each other, or that of a protocol.

    Args:
        runs: Folders, or ids as :func:`ssdlab.runs` lists them; a piece of one, or "last", will do.
        out: Where the runs are kept.

    Returns:
        What ``ssdlab report`` writes; ``results`` has the runs of job files.

    Raises:
        InputError: there is no such run, it is damaged, or one of several is that of a protocol.
    """
    store = RunStore(out)
    folders = [store.open(str(run)) for run in runs]
    ids = [folder.id for folder in folders]
    if folders and all(folder.is_job for folder in folders):
        return of_results([folder.result() for folder in folders], ids)
    return Report(kept.answer(folders), runs=ids)


def runs(*, out: str | Path | None = None) -> Report:
    """Lists the kept runs; ``frame()`` has a row for each, ``runs`` their ids.

    Args:
        out: Where the runs are kept; else the user's store.

    Raises:
        InputError: a run is damaged.
    """
    store = RunStore(out)
    folders, wrong = store.listing()
    if wrong:
        raise wrong[0]
    return Report(kept.listed(folders, str(store.root)), runs=[folder.id for folder in folders])


def query(
    sql: str, *, folders: str | Path | Sequence[str | Path] | None = None, progress: Watch = None
) -> pl.DataFrame:
    """Asks kept runs and the tables of sweeps in SQL; only reads.

    Args:
        sql: One SELECT over the tables ``runs``, ``summary`` and ``series``, joined by ``key``.
        folders: Of a sweep, a kept run, or a store of runs (``--in``); without it the user's store,
            and sweeps in the present folder or right below it.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.

    Returns:
        A row for each that the question finds, with the columns that it names.

    Raises:
        InputError: it is no question, a folder has nothing in it, or DuckDB is missing.
        Interrupted: it was stopped.
    """
    from ssdlab.sweeps.query import ask, sources

    with shown(progress, "query") as callback:
        found = ask(sql, sources([Path(one) for one in several(folders)]), callback)
    rows = [tuple(row) for row in found.rows]
    return pl.DataFrame(rows, list(found.columns), orient="row", infer_schema_length=None)


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
