"""The table of a sweep: a folder of Parquet files that grows while the sweep runs."""

from __future__ import annotations

import hashlib
import io
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ssdlab.errors import InputError
from ssdlab.output import make_folder, write_to
from ssdlab.sweeps.axes import Axis
from ssdlab.sweeps.plan import Sweep

SUMMARY = "summary"
"""Folder of the parts."""
ROWS_A_PART = 2_000
PART_S = 20.0
"""Rows are written after so long, however few they are."""
TEXT = ("key", "job", "ddir")
WHOLE = ("ios", "bytes", "seed")


class Dataset:
    """Rows by run and job. Runs may be added from several threads, and by several machines that
    share the folder; a run that two of them did stands there twice, with the same numbers.

    Raises InputError where the folder cannot be made.
    """

    def __init__(self, folder: Path, axes: Sequence[Axis]) -> None:
        self.folder = folder
        self._parts = make_folder(folder / SUMMARY)
        self._axes = axes
        self._rows: list[dict[str, Any]] = []
        self._written = time.monotonic()
        self._lock = threading.Lock()

    def done(self) -> set[str]:
        """Keys of the runs that are in it.

        Raises InputError where a part cannot be read, or is one of another sweep.
        """
        found: set[str] = set()
        for part in sorted(self._parts.glob("*.parquet")):
            try:
                frame = pl.read_parquet(part, columns=["key", *(one.key for one in self._axes)])
            except (OSError, pl.exceptions.PolarsError) as error:
                said = str(error).partition("\n")[0]
                raise InputError(
                    f"{part}: is no part of this sweep ({said}); give another folder"
                ) from None
            found.update(frame["key"])
        return found

    def add(
        self, key: str, values: Mapping[str, str], summary: Sequence[Mapping[str, Any]]
    ) -> None:
        """Adds the summary of a run (:meth:`ssdlab.results.Result.summary`); raises as
        :class:`ssdlab.output.Output` does."""
        rows = []
        for told in summary:
            one = dict(told)
            start, end = one.pop("window_s")
            texts = {axis.key: values[axis.key] for axis in self._axes}
            varied = {a.key: float(texts[a.key]) if a.numeric else texts[a.key] for a in self._axes}
            window = {"window_start_s": start, "window_end_s": end}
            rows.append({"key": key, **varied, "seed": int(values["seed"]), **one, **window})
        with self._lock:
            self._rows += rows
            if len(self._rows) >= ROWS_A_PART or time.monotonic() - self._written > PART_S:
                self._write()

    def flush(self) -> None:
        """Writes what has been added; raises as :meth:`add`."""
        with self._lock:
            self._write()

    def of(self, sweep: Sweep) -> pl.DataFrame:
        """The rows of the runs that a sweep asks for, each once, by their keys."""
        asked = pl.LazyFrame({"key": [run.key for run in sweep.runs()]})
        found = pl.scan_parquet(self._parts / "*.parquet").join(asked, on="key", how="semi")
        return found.unique(["key", "job", "ddir"]).sort("key", "job", "ddir").collect()

    def _write(self) -> None:
        if not self._rows:
            return
        rows = sorted(self._rows, key=lambda row: [row[name] for name in TEXT])
        frame = pl.DataFrame(rows, schema=self._schema(rows[0]))
        name = hashlib.sha256("".join(row["key"] for row in rows).encode()).hexdigest()[:20]
        content = io.BytesIO()
        frame.write_parquet(content)
        write_to(self._parts / f"{name}.parquet", content.getvalue())
        self._rows, self._written = [], time.monotonic()

    def _schema(self, row: Mapping[str, Any]) -> pl.Schema:
        """Of every part alike, whatever is null in it."""
        varied = {one.key: one.numeric for one in self._axes}

        def kind(name: str) -> pl.DataType:
            if name in varied:
                return pl.Float64() if varied[name] else pl.String()
            if name in TEXT:
                return pl.String()
            if name == "steady":
                return pl.Boolean()
            return pl.Int64() if name in WHOLE else pl.Float64()

        return pl.Schema({name: kind(name) for name in row})
