"""The store of runs: a folder per run, written atomically, and an index that can be rebuilt.

A run is written into a temporary folder beside its place, synced, and renamed; ``manifest.json``
is written last. So a folder that is there is whole, and a killed run leaves only a temporary
folder, which the next writer clears away. The SQLite index is a cache of the manifests.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from ssdlab.errors import InputError
from ssdlab.output import write_to, writing
from ssdlab.results import Result

INDEX = "index.sqlite"
_TEMPORARY = ".partial-"


@dataclass(frozen=True)
class RunEntry:
    """One line of the index."""

    id: str
    created: str
    target: str
    kind: str
    jobs: str
    folder: Path


def default_root() -> Path:
    """``$XDG_DATA_HOME/ssdlab/runs``, or ``~/.local/share/ssdlab/runs``."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "ssdlab" / "runs"


class RunStore:
    """Runs kept under one folder."""

    def __init__(self, root: Path | str | None = None) -> None:
        self.root = default_root() if root is None else Path(root)

    def prepare(self) -> None:
        """Makes the folder and proves that it can be written, before an experiment starts."""
        with writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            # A name of its own: other threads may be about to write here too.
            probe = tempfile.mkdtemp(dir=self.root, prefix=f"{_TEMPORARY}{os.getpid()}-probe-")
            Path(probe).rmdir()
        self._clear_leftovers()

    def save(self, result: Result) -> Path:
        """Writes ``result`` as a new run folder and indexes it; its path."""
        self.prepare()
        created = datetime.now(UTC)
        run_id = _run_id(result, created)
        final = self.root / run_id
        partial = self.root / f"{_TEMPORARY}{os.getpid()}-{run_id}"
        try:
            with writing(self.root):
                partial.mkdir()
                _write_run(partial, result, run_id, created)
                partial.rename(final)
                sync_folder(self.root)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        result.folder = final
        self._remember(final)
        return final

    def find(self, name: str) -> Path:
        """The folder of the run called ``name``: a path, a full id, or an unambiguous piece."""
        for folder in (Path(name), self.root / name):
            with contextlib.suppress(OSError):
                if (folder / "manifest.json").is_file():
                    return folder
        ids = [entry.id for entry in self.entries()]
        matches = [run_id for run_id in ids if name and name in run_id]
        if len(matches) == 1:
            return self.root / matches[0]
        if matches:
            first = ", ".join(matches[:4]) + (" ..." if len(matches) > 4 else "")
            raise InputError(f'"{name}" fits {len(matches)} runs: {first}; give more of it')
        raise InputError(f'no run is called "{name}" in {self.root}; "ssdlab list runs" shows them')

    def entries(self) -> list[RunEntry]:
        """All runs, oldest first. The index is rebuilt when it does not agree with the folders."""
        try:
            names = os.listdir(self.root)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(f"{self.root}: cannot be read ({error.strerror})") from None
        folders = {name for name in names if (self.root / name / "manifest.json").is_file()}
        folders = {name for name in folders if not name.startswith(_TEMPORARY)}
        rows = self._read_index()
        if rows is None or {row[0] for row in rows} != folders:
            rows = self.reindex()
        return [RunEntry(*row, folder=self.root / row[0]) for row in rows]

    def reindex(self) -> list[tuple[str, str, str, str, str]]:
        """Rebuilds the index from the manifests; its rows."""
        rows = [
            row
            for path in sorted(self.root.glob("*/manifest.json"))
            if not path.parent.name.startswith(_TEMPORARY) and (row := _index_row(path.parent))
        ]
        rows.sort(key=lambda row: (row[1], row[0]))
        # A store on a read-only disk can still be listed; it just has no index.
        with contextlib.suppress(sqlite3.Error, OSError), self._index() as database:
            database.execute("DELETE FROM runs")
            database.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?)", rows)
        return rows

    def _remember(self, folder: Path) -> None:
        row = _index_row(folder)
        if row is None:
            return
        with contextlib.suppress(sqlite3.Error, OSError), self._index() as database:
            database.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?)", row)

    def _read_index(self) -> list[tuple[str, str, str, str, str]] | None:
        try:
            with self._index() as database:
                return list(database.execute("SELECT * FROM runs ORDER BY created, id"))
        except (sqlite3.Error, OSError):
            with contextlib.suppress(OSError):
                (self.root / INDEX).unlink()
            return None

    @contextlib.contextmanager
    def _index(self) -> Iterator[sqlite3.Connection]:
        database = sqlite3.connect(self.root / INDEX, timeout=10.0)
        try:
            with database:
                database.execute(
                    "CREATE TABLE IF NOT EXISTS runs "
                    "(id TEXT PRIMARY KEY, created TEXT, target TEXT, kind TEXT, jobs TEXT)"
                )
                yield database
        finally:
            database.close()

    def _clear_leftovers(self) -> None:
        """Removes the temporary folders of writers that are no longer alive."""
        for path in self.root.glob(f"{_TEMPORARY}*"):
            pid = path.name.removeprefix(_TEMPORARY).split("-", 1)[0]
            if pid.isdigit() and not Path(f"/proc/{pid}").exists():
                shutil.rmtree(path, ignore_errors=True)


def load_run(folder: Path) -> Result:
    """Reads a run folder; refuses one that is not whole."""
    manifest = _manifest(folder)
    if manifest is not None and "protocol" in manifest:
        raise InputError(
            f"{folder.name}: is the run of the protocol {manifest['protocol']}, not a single one; "
            "ssdlab report and ssdlab compare take it"
        )
    if manifest is None or manifest.get("status") != "complete":
        raise InputError(f"{folder}: is not a complete run (no valid manifest.json in it)")
    try:
        document = json.loads((folder / "result.json").read_text("utf-8"))
        if not isinstance(document, dict) or not isinstance(document.get("jobs"), list):
            raise ValueError("result.json is no fio document with jobs")
        device = folder / "device.parquet"
        rig = folder / "rig.toml"
        return Result(
            name=str(manifest.get("name", folder.name)),
            document=document,
            job_text=(folder / "job.fio").read_text("utf-8"),
            series_frame=pl.read_parquet(folder / "series.parquet"),
            device_frame=pl.read_parquet(device) if device.exists() else None,
            rig_toml=rig.read_text("utf-8") if rig.exists() else None,
            logs=[(p.name, p.read_text("utf-8")) for p in sorted(folder.glob("*.log"))],
            folder=folder,
        )
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{folder}: the run cannot be read ({error})") from error


def label(name: str) -> str:
    """A target's name as part of a folder's."""
    return re.sub(r"[^A-Za-z0-9]+", "-", Path(name).name).strip("-").lower()[:40] or "run"


def _run_id(result: Result, created: datetime) -> str:
    return f"{created:%Y%m%d-%H%M%S}-{label(result.name)}-{secrets.token_hex(2)}"


def _write_run(folder: Path, result: Result, run_id: str, created: datetime) -> None:
    write_to(folder / "result.json", result.json())
    write_to(folder / "job.fio", result.job_text)
    if result.rig_toml is not None:
        write_to(folder / "rig.toml", result.rig_toml)
    for name, text in result.logs:
        write_to(folder / Path(name).name, text)
    _write_parquet(folder / "series.parquet", result.series_frame)
    if result.device_frame is not None:
        _write_parquet(folder / "device.parquet", result.device_frame)
    manifest = {
        "id": run_id,
        "name": result.name,
        "created": created.isoformat(timespec="seconds"),
        "target": result.ssdlab.get("target", {}),
        "jobs": list(dict.fromkeys(job.name for job in result.jobs)),
        "seed": result.ssdlab.get("seed"),
        "version": result.ssdlab.get("version"),
        "status": "complete",
    }
    write_to(folder / "manifest.json", json.dumps(manifest, indent=2) + "\n")
    sync_folder(folder)


def _write_parquet(path: Path, frame: pl.DataFrame) -> None:
    # By way of memory: polars reports a full disk as an error of its own without errno.
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    write_to(path, buffer.getvalue())


def sync_folder(folder: Path) -> None:
    """Has the names in a folder survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _manifest(folder: Path) -> dict[str, Any] | None:
    try:
        found = json.loads((folder / "manifest.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict):
        return None
    # What has been edited into another shape is no manifest either.
    whole = isinstance(found.get("target", {}), dict) and isinstance(found.get("jobs", []), list)
    return found if whole else None


def _index_row(folder: Path) -> tuple[str, str, str, str, str] | None:
    manifest = _manifest(folder)
    if manifest is None:
        return None
    target = manifest.get("target") or {}
    jobs = ", ".join(str(job) for job in manifest.get("jobs", []))
    if (status := manifest.get("status", "complete")) != "complete":
        jobs += f" ({status})"
    name, kind = str(target.get("name", "")), str(target.get("kind", ""))
    return folder.name, str(manifest.get("created", "")), name, kind, jobs
