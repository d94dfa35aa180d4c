"""Questions in SQL about kept runs and the tables of sweeps (DuckDB).

``summary`` has a row for each run, job and direction, ``series`` one for each of these and
interval, ``runs`` one for each run: what varied, or of kept runs what their manifest says. ``key``
joins them, ``source`` is the folder. Parts of sweeps are read where they lie, kept runs are written
to a temporary folder first. Nothing else can be read, and nothing written.
"""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ssdlab.analysis.measurement import row_numbers
from ssdlab.errors import InputError, Interrupted, missing_extra
from ssdlab.progress import ProgressCallback, tell
from ssdlab.quantities import told_apart
from ssdlab.store import MANIFEST, RunStore, open_run
from ssdlab.store.folder import RunFolder
from ssdlab.sweeps.dataset import (
    BUILT,
    ENDURANCE,
    MOVING,
    NOISE,
    SERIES,
    SUMMARY,
    column_type,
)
from ssdlab.sweeps.measures import MEASURED

TABLES = ("runs", "summary", "series")
FIXED = {"key", "source", "job", "ddir", "steady", "window_start_s", "window_end_s", *MEASURED,
         *ENDURANCE, NOISE, BUILT, MOVING}  # fmt: skip
"""Columns of ``summary`` that do not say what varied."""
READS = {"SELECT", "EXPLAIN"}
SIGNALS_S = 0.1
RUN_SCHEMA = {
    "key": pl.String, "source": pl.String, "created": pl.String, "version": pl.String,
    "protocol": pl.String, "status": pl.String, "kind": pl.String, "name": pl.String,
    "capacity_bytes": pl.Int64, "seed": pl.UInt64,
}  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """What came of a question."""

    columns: Sequence[str]
    """Their names; those that repeat, as of a join, are told apart: ``iops``, ``iops__2``."""
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Sources:
    """Where tables come from: folders of sweeps, and kept runs."""

    sweeps: Sequence[Path]
    runs: Sequence[RunFolder]
    damaged: Sequence[str] = ()
    """What is wrong with kept runs that are left out: a sentence each."""


def sources(folders: Sequence[Path] = ()) -> Sources:
    """What is in these folders: a sweep, a kept run, or a store of runs; without any, in the user's
    store and in sweeps of the present folder or right below it. Raises InputError where a folder is
    none of these."""
    sweeps: list[Path] = []
    runs: list[RunFolder] = []
    wrong: list[InputError] = []
    if not folders:
        here = [Path(), *sorted(path for path in Path().iterdir() if path.is_dir())]
        sweeps = [path for path in here if _is_sweep(path)]
        runs, wrong = RunStore().listing()
    for folder in folders:
        if _is_sweep(folder):
            sweeps.append(folder)
        elif (folder / MANIFEST).is_file():
            runs.append(open_run(folder))
        elif any(found := RunStore(folder).listing()):
            runs += found[0]
            wrong += found[1]
        else:
            raise InputError(f"{folder}: holds neither a sweep's table nor kept runs")
    # What is in two of the folders, or two copies of a run, would be joined with itself.
    once = {path.resolve(): path for path in reversed(sweeps)}
    known = {run.id: run for run in reversed(runs)}
    damaged = dict.fromkeys(one.message for one in wrong)
    return Sources([*reversed(once.values())], [*reversed(known.values())], [*damaged])


def ask(sql: str, asked: Sources, progress: ProgressCallback | None = None) -> Rows:
    """Answers a question; InputError where DuckDB is missing, the SQL is wrong, or it does more
    than read; Interrupted on Ctrl-C."""
    try:
        import duckdb
    except ImportError:
        raise missing_extra("query", "DuckDB", "query") from None
    with tempfile.TemporaryDirectory(prefix="ssdlab-query-") as folder, duckdb.connect() as base:
        try:
            _check(base, sql)
            _open(base, sql, asked, Path(folder), progress)
            return _fetched(base, sql)
        except duckdb.Error as error:
            said = " ".join(str(error).partition("\n\nLINE")[0].split())
            raise InputError(f"query: {said}") from None


def _check(base: Any, sql: str) -> None:
    found = base.extract_statements(sql.encode().decode())  # raises where it is not text
    if len(found) != 1 or found[0].type.name not in READS:
        raise InputError("query: expected one SELECT; nothing can be written")


def _open(
    base: Any, sql: str, asked: Sources, folder: Path, progress: ProgressCallback | None
) -> None:
    """Makes the tables, and closes the rest of the system to questions."""
    wanted = {table for table in TABLES if re.search(rf"\b{table}\b", sql, re.IGNORECASE)}
    _write_kept(asked.runs, wanted, folder, progress)
    places = {"summary": SUMMARY, "series": SERIES}
    parts = {
        table: [
            (f"{sweep.absolute()}/{name}", str(sweep))
            for sweep in asked.sweeps
            if any((sweep / name).glob("*.parquet"))
        ]
        for table, name in places.items()
    }
    allowed = [place for own in parts.values() for place, _ in own] + [str(folder)]
    base.execute(f"SET allowed_directories = [{', '.join(_text(f'{one}/') for one in allowed)}]")
    base.execute("SET enable_external_access = false")
    base.execute("SET lock_configuration = true")
    for table, own in parts.items():
        selects = [
            f"SELECT {_text(source)} AS source, * FROM read_parquet({_text(f'{place}/*.parquet')}, "
            "union_by_name = true)"
            for place, source in own
        ]
        _view(base, table, [*selects, *_kept(folder, table)])
    columns = [one[0] for one in base.execute("DESCRIBE summary").fetchall()]
    varied = "".join(f", {_name(column)}" for column in columns if column not in {*FIXED, "step"})
    swept = [f"SELECT DISTINCT key, source{varied} FROM summary"] if asked.sweeps else []
    if asked.runs and swept:
        swept = [f"{swept[0]} WHERE source IN ({', '.join(_text(str(o)) for o in asked.sweeps)})"]
    _view(base, "runs", [*swept, *_kept(folder, "runs")])


def _view(base: Any, table: str, selects: Sequence[str]) -> None:
    empty = "SELECT NULL::VARCHAR AS key, NULL::VARCHAR AS source WHERE false"
    base.execute(f"CREATE VIEW {table} AS " + " UNION ALL BY NAME ".join(selects or [empty]))


def _kept(folder: Path, table: str) -> Iterator[str]:
    place = folder / f"{table}.parquet"
    if place.exists():
        yield f"SELECT * FROM read_parquet({_text(str(place))})"


def _write_kept(
    runs: Sequence[RunFolder], wanted: set[str], folder: Path, progress: ProgressCallback | None
) -> None:
    """What kept runs say, as far as it is asked for."""
    told = [_about(run) for run in runs]
    if told:
        pl.DataFrame(told, schema=RUN_SCHEMA).write_parquet(folder / "runs.parquet")
    if not wanted & {"summary", "series"}:
        return
    rows: list[Mapping[str, Any]] = []
    frames: list[pl.DataFrame] = []
    for place, run in enumerate(runs):
        tell(progress, place / len(runs), f"{place} of {len(runs)} kept runs read")
        with suppress(InputError):  # `ssdlab list runs` says what is wrong with it
            for entry in (entry for entry in run.journal() if entry.kind == "job"):
                result = run.load(entry)
                known = {"key": run.id, "source": str(run.path.parent), "step": entry.key}
                rows += [{**known, **row_numbers(row)} for row in result.summary()]
                if "series" in wanted:
                    names = [pl.lit(text).alias(name) for name, text in known.items()]
                    frames.append(result.series_frame.select(*names, pl.all()))
    if rows:
        schema = {name: column_type(name) for row in rows for name in row}
        pl.DataFrame(rows, schema=schema).write_parquet(folder / "summary.parquet")
    if frames:
        pl.concat(frames, how="diagonal_relaxed").write_parquet(folder / "series.parquet")


def _about(run: RunFolder) -> dict[str, Any]:
    known = run.manifest
    return {
        "key": run.id,
        "source": str(run.path.parent),
        "created": known.created,
        "version": known.version,
        "protocol": known.protocol,
        "status": run.status,
        "kind": known.kind,
        "name": known.name,
        "capacity_bytes": known.capacity,
        "seed": known.seed,
    }


def _fetched(base: Any, sql: str) -> Rows:
    """What comes of the question, in a thread, so that Ctrl-C ends it at once."""
    came: list[Rows] = []
    wrong: list[Exception] = []

    def work() -> None:
        try:
            found = base.execute(sql)
            names = told_apart(one[0] for one in found.description)
            came.append(Rows(names, found.fetchall()))
        except Exception as error:
            wrong.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(SIGNALS_S)
    except KeyboardInterrupt:
        base.interrupt()
        thread.join()
        raise Interrupted(Interrupted.sentence()) from None
    if wrong:
        raise wrong[0]
    return came[0]


def _is_sweep(folder: Path) -> bool:
    return any((folder / SUMMARY).glob("*.parquet"))


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
