"""The table of a sweep: a folder of Parquet files that grows while the sweep runs."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from ssdlab.analysis.measurement import rate_noise, row_numbers
from ssdlab.checks import examine, of_result, still_moving
from ssdlab.checks.facts import as_built
from ssdlab.errors import InputError
from ssdlab.output import make_folder, write_to
from ssdlab.results import Result
from ssdlab.sweeps.axes import Axis
from ssdlab.sweeps.claims import Claims
from ssdlab.sweeps.plan import SweepRun

SUMMARY, SERIES, CLAIMS = "summary", "series", "claims"
"""Folders of the parts of both tables, and of who runs what."""
ROWS_A_PART = 2_000
SERIES_ROWS_A_PART = 100_000
PART_S = 20.0
"""Rows are written after so long, however few they are."""
TEXT = ("key", "job", "ddir")
WHOLE = ("ios", "bytes", "seed")
ENDURANCE = {"endurance_bytes": "host_bytes", "dwpd_5_years": "dwpd_5_years"}
"""Columns of rows of writes: what the host can write from new until the rated cycles are used up,
at the wear of the window."""
NOISE = "iops_noise"
"""Column of half the 95 % interval of the rate of a row's job, by how its series varies, as a share
of it; null where that is too short to tell."""
BUILT = "over_provisioning_built"
"""Column of what over-provisioning became of whole superblocks, as a share of what was asked for;
null where the rig is not one SSD."""
MOVING = "still_moving"
"""Column of whether a job's steady state is in doubt (:func:`ssdlab.checks.still_moving`)."""
FRESH_S = 1.0
"""A folder that was changed so recently may have been changed again in the same tick."""


@dataclass(frozen=True)
class RunOutcome:
    """What came of a run, for the table."""

    summary: Sequence[Mapping[str, Any]]
    """Of :meth:`ssdlab.results.Result.summary`, with :data:`ENDURANCE`, :data:`NOISE`,
    :data:`BUILT` and :data:`MOVING`."""
    series: pl.DataFrame | None = None

    @staticmethod
    def of(result: Result, *, series: bool) -> RunOutcome:
        """What the table has of a result."""
        told = []
        built = [
            one["over_provisioning"] / one["over_provisioning_asked"]
            for one in as_built(result.ssdlab.get("built") or {}, result.rig_toml).values()
        ]
        of_drive = {BUILT: built[0] if built else None}
        checks = examine(of_result(result))
        for job in result.measurement.jobs:
            moving = still_moving(checks, job)
            noise = rate_noise(result, job)
            for direction in job.own:
                wear = direction.stretch.wear
                known = None if wear is None or wear.endurance is None else asdict(wear.endurance)
                ends = {name: known and known[key] for name, key in ENDURANCE.items()}
                own = {**ends, NOISE: noise and noise.share, **of_drive, MOVING: moving}
                told.append({**direction.summary(), **own})
        return RunOutcome(told, result.series_frame if series else None)


class Dataset:
    """Rows by run and job, and with ``series`` also by time. Runs may be added from several
    threads, and by several processes that share the folder; InputError where that cannot be
    made."""

    def __init__(self, folder: Path, axes: Sequence[Axis], *, series: bool = False) -> None:
        self.folder, self.series = folder, series
        self._parts = folder / SUMMARY
        self._courses = folder / SERIES if series else None
        self._axes = axes
        self._rows: list[dict[str, Any]] = []
        self._frames: list[pl.DataFrame] = []
        self._written = time.monotonic()
        self._lock = threading.Lock()
        self._seen: dict[Path, _Seen] = {}
        self._claims: Claims | None = None

    @contextlib.contextmanager
    def claiming(self) -> Iterator[Claims]:
        """What is run meanwhile is run by this process alone; what was added is written at the
        end, however it ends."""
        for place in (self._parts, self._courses):
            if place is not None:
                make_folder(place)
        claims = self._claims = Claims(self.folder / CLAIMS)
        try:
            try:
                yield claims
            finally:
                self.flush()
        finally:
            self._claims = None
            claims.close()

    def take(self, key: str) -> bool:
        """Whether a run is to be done by this process: it is not done, and nobody else does it;
        raises as :meth:`done`."""
        claims = self._claims
        if claims is None:
            return True
        if not claims.take(key):
            return False
        # Whoever had claimed it before has written its row before giving it up.
        if key in self.done():
            claims.release(key)
            return False
        return True

    def done(self) -> set[str]:
        """Keys of the runs that are in it, also of what other processes wrote; InputError where a
        part cannot be read, or is one of another sweep."""
        with self._lock:
            found = self._look(self._parts, [axis.key for axis in self._axes])
            if self._courses is not None:
                found = found & self._look(self._courses, [])
            return found

    def add(self, key: str, values: Mapping[str, str], came: RunOutcome) -> None:
        """Adds what came of a run; raises as :class:`ssdlab.output.Output` does."""
        texts = {axis.key: values[axis.key] for axis in self._axes}
        varied = {a.key: float(texts[a.key]) if a.numeric else texts[a.key] for a in self._axes}
        known = {"key": key, **varied, "seed": int(values["seed"])}
        rows = [{**known, **row_numbers(told)} for told in came.summary]
        with self._lock:
            self._rows += rows
            if came.series is not None:
                self._frames.append(came.series.insert_column(0, pl.lit(key).alias("key")))
            many = len(self._rows) >= ROWS_A_PART
            many = many or sum(frame.height for frame in self._frames) >= SERIES_ROWS_A_PART
            if many or time.monotonic() - self._written > PART_S:
                self._write()

    def flush(self) -> None:
        """Writes what has been added; raises as :meth:`add`."""
        with self._lock:
            self._write()

    def of(self, asked: Iterable[SweepRun]) -> pl.DataFrame:
        """The rows of the runs that are asked for, each once, by their keys."""
        keys = pl.LazyFrame({"key": [run.key for run in asked]}, schema={"key": pl.String})
        parts = [pl.scan_parquet(path) for path in sorted(self._parts.glob("*.parquet"))]
        if not parts:
            return pl.DataFrame()
        # Parts of another version may have other columns.
        found = pl.concat(parts, how="diagonal").join(keys, on="key", how="semi")
        return found.unique(["key", "job", "ddir"]).sort("key", "job", "ddir").collect()

    def _look(self, folder: Path, columns: Sequence[str]) -> set[str]:
        """The keys in a folder of parts; only new parts are read."""
        seen = self._seen.setdefault(folder, _Seen())
        if not folder.exists():
            return seen.keys  # nothing has been run
        changed = folder.stat().st_mtime
        if changed == seen.changed and time.time() - changed > FRESH_S:
            return seen.keys
        for part in sorted(folder.glob("*.parquet")):
            if part.name in seen.parts:
                continue
            try:
                frame = pl.read_parquet(part, columns=["key", *columns])
            except (OSError, pl.exceptions.PolarsError) as error:
                said = re.split(r"; valid columns|\n", str(error))[0]
                raise _other(part, said) from None
            names = list(pl.read_parquet_schema(part))
            varied = set(itertools.takewhile(lambda name: name != "seed", names[1:]))
            if columns and (more := varied - set(columns)):
                # Programs that read all parts at once would stumble over it.
                raise _other(part, f"{min(more)} varies there")
            seen.parts.add(part.name)
            seen.keys |= set(frame["key"])
        seen.changed = changed
        return seen.keys

    def _write(self) -> None:
        """Writes the parts; a run counts as done by its summary, which comes last."""
        if not self._rows:
            return
        rows = sorted(self._rows, key=lambda row: [row[name] for name in TEXT])
        keys = list(dict.fromkeys(row["key"] for row in rows))
        name = hashlib.sha256("".join(keys).encode()).hexdigest()[:20]
        if self._courses is not None and self._frames:
            frames = sorted(
                self._frames, key=lambda frame: str(frame["key"][0]) if frame.height else ""
            )
            _write_part(self._courses / f"{name}.parquet", pl.concat(frames, how="diagonal"))
        _write_part(
            self._parts / f"{name}.parquet", pl.DataFrame(rows, schema=self._schema(rows[0]))
        )
        self._rows, self._frames, self._written = [], [], time.monotonic()
        if self._claims is not None:
            for key in keys:
                self._claims.release(key)

    def _schema(self, row: Mapping[str, Any]) -> pl.Schema:
        """Of every part alike, whatever is null in it."""
        varied = {axis.key: axis.numeric for axis in self._axes}

        def kind(name: str) -> pl.DataType:
            if name in varied:
                return pl.Float64() if varied[name] else pl.String()
            return column_type(name)

        return pl.Schema({name: kind(name) for name in row})


def _other(part: Path, why: str) -> InputError:
    return InputError(f"{part}: is no part of this sweep ({why}); give another folder")


def column_type(name: str) -> pl.DataType:
    """Of a column that does not say what varied, whatever is null in it."""
    if name in (*TEXT, "source", "step"):
        return pl.String()
    if name in ("steady", MOVING):
        return pl.Boolean()
    return pl.Int64() if name in WHOLE else pl.Float64()


@dataclass
class _Seen:
    """The parts of a folder that were read."""

    changed: float = -1.0
    parts: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)


def _write_part(place: Path, frame: pl.DataFrame) -> None:
    content = io.BytesIO()
    frame.write_parquet(content)
    write_to(place, content.getvalue())
