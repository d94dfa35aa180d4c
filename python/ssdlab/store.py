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
import platform
import re
import secrets
import shutil
import sqlite3
import tempfile
import time
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdlab.errors import InputError
from ssdlab.output import write_to, writing

if TYPE_CHECKING:
    import polars as pl

    from ssdlab.results import Result

INDEX = "index.sqlite"
MANIFEST = "manifest.json"
_TEMPORARY = ".partial-"
ABANDONED_S = 86_400.0
"""A temporary folder of another machine that is older was left by a writer that died."""
_Row = tuple[str, str, str, str, str]
"""Id, created, target, kind, jobs."""


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
            probe = tempfile.mkdtemp(dir=self.root, prefix=f"{_partial()}probe-")
            Path(probe).rmdir()
        self._clear_leftovers()

    def save(self, result: Result) -> Path:
        """Writes ``result`` as a new run folder and indexes it; its path."""
        self.prepare()
        created = datetime.now(UTC)
        run_id = _run_id(result, created)
        final = self.root / run_id
        partial = self.root / f"{_partial()}{run_id}"
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
        found = self.seek(name)
        if found is None:
            raise InputError(
                f'no run is called "{name}" in {self.root}; "ssdlab list runs" shows them'
            )
        return found

    def seek(self, name: str) -> Path | None:
        """The same; None where there is no such run. InputError where a piece fits several."""
        for folder in (Path(name), self.root / name):
            with contextlib.suppress(OSError, ValueError):
                if (folder / MANIFEST).is_file():
                    return folder
        matches = sorted(run_id for run_id in self._stamps() if name and name in run_id)
        if len(matches) == 1:
            return self.root / matches[0]
        if matches:
            first = ", ".join(matches[:4]) + (" ..." if len(matches) > 4 else "")
            raise InputError(f'"{name}" fits {len(matches)} runs: {first}; give more of it')
        return None

    def ids(self) -> list[str]:
        """Ids of all runs, oldest first; nothing of them is read."""
        return sorted(self._stamps())

    def entries(self) -> list[RunEntry]:
        """All runs whose manifest can be read, oldest first."""
        return self.listing()[0]

    def listing(self) -> tuple[list[RunEntry], list[InputError]]:
        """All runs, oldest first, and what is wrong with those whose manifest is damaged.

        Only manifests that have changed since the index was written are read.
        """
        stamps = self._stamps()
        known = self._read_index()
        rows = {run_id: known[run_id, stamp] for run_id, stamp in stamps.items()
                if (run_id, stamp) in known}  # fmt: skip
        wrong = []
        for run_id in sorted(stamps.keys() - rows.keys()):
            try:
                rows[run_id] = _index_row(self.root / run_id)
            except InputError as error:
                wrong.append(error)
        if {(run_id, stamps[run_id]) for run_id in rows} != known.keys():
            self._write_index([(*row, stamps[run_id]) for run_id, row in rows.items()])
        ordered = sorted(rows.values(), key=lambda row: (row[1], row[0]))
        return [RunEntry(*row, folder=self.root / row[0]) for row in ordered], wrong

    def _stamps(self) -> dict[str, str]:
        """The runs that have a manifest, by id."""
        try:
            names = os.listdir(self.root)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise InputError(f"{self.root}: cannot be read ({error.strerror})") from None
        found = ((n, _stamp(self.root / n)) for n in names if not n.startswith(_TEMPORARY))
        return {name: stamp for name, stamp in found if stamp is not None}

    def _remember(self, folder: Path) -> None:
        with contextlib.suppress(sqlite3.Error, OSError), self._index() as database:
            row = (*_index_row(folder), _stamp(folder))
            database.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)", row)

    def _read_index(self) -> dict[tuple[str, str], _Row]:
        """The rows by id and stamp of the manifest that they were made of."""
        try:
            with self._index() as database:
                rows = list(database.execute("SELECT * FROM runs"))
                return {(row[0], row[5]): row[:5] for row in rows}
        except (sqlite3.Error, OSError, IndexError):
            with contextlib.suppress(OSError):
                (self.root / INDEX).unlink()
            return {}

    def _write_index(self, rows: list[tuple[str, ...]]) -> None:
        # A store on a read-only disk can still be listed; it just has no index.
        with contextlib.suppress(sqlite3.Error, OSError), self._index() as database:
            database.execute("DELETE FROM runs")
            database.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", rows)

    @contextlib.contextmanager
    def _index(self) -> Iterator[sqlite3.Connection]:
        database = sqlite3.connect(self.root / INDEX, timeout=10.0)
        try:
            with database:
                database.execute(
                    "CREATE TABLE IF NOT EXISTS runs "
                    "(id TEXT PRIMARY KEY, created TEXT, target TEXT, kind TEXT, jobs TEXT, "
                    "stamp TEXT)"
                )
                yield database
        finally:
            database.close()

    def _clear_leftovers(self) -> None:
        """Removes the temporary folders of writers that are no longer alive: here that is known by
        their process, of other machines that share the store only by their age."""
        own = _partial().rpartition(f"{os.getpid()}-")[0]
        for path in self.root.glob(f"{_TEMPORARY}*"):
            pid = path.name.removeprefix(own).split("-", 1)[0]
            with contextlib.suppress(OSError):
                age = time.time() - path.stat().st_mtime
                ours = path.name.startswith(own) and pid.isdigit()
                if not Path(f"/proc/{pid}").exists() if ours else age > ABANDONED_S:
                    shutil.rmtree(path, ignore_errors=True)


def _partial() -> str:
    """How temporary names of this process begin: machine, process ids' namespace, process."""
    try:
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        namespace = 0
    machine = zlib.crc32(f"{uuid.getnode()} {platform.node()} {namespace}".encode())
    return f"{_TEMPORARY}{machine:08x}-{os.getpid()}-"


def load_run(folder: Path) -> Result:
    """Reads a run folder; refuses one that is not whole."""
    from ssdlab import documents
    from ssdlab.results import Result

    manifest = read_manifest(folder)
    if "protocol" in manifest:
        raise InputError(
            f"{folder.name}: is the run of the protocol {manifest['protocol']}, not a single one; "
            "ssdlab report and ssdlab compare take it"
        )
    if manifest.get("status") != "complete":
        raise InputError(f"{folder}: is not a complete run (status in {MANIFEST})")
    device, rig = folder / "device.parquet", folder / "rig.toml"
    series, latency = folder / "series.parquet", folder / "latency.parquet"
    return Result(
        name=str(manifest.get("name", folder.name)),
        document=read_result(folder),
        job_text=documents.read_text(folder / "job.fio"),
        series_frame=documents.series(documents.read_bytes(series), series),
        device_frame=documents.device(documents.read_bytes(device), device)
        if device.exists()
        else None,
        latency_frame=documents.latency(documents.read_bytes(latency), latency)
        if latency.exists()
        else None,
        rig_toml=documents.read_rig(rig) if rig.exists() else None,
        logs=[(p.name, documents.read_text(p)) for p in sorted(folder.glob("*.log"))],
        folder=folder,
    )


def read_result(folder: Path) -> dict[str, Any]:
    """The ``result.json`` of a run of one job file; InputError where it is damaged."""
    from ssdlab import documents

    path = folder / "result.json"
    return documents.document(documents.read_bytes(path), path)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run of either kind.

    Raises InputError where there is none, or it is damaged.
    """
    from ssdlab import documents

    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(f"{folder}: is not a complete run (there is no {MANIFEST} in it)")
    found = documents.parsed(documents.read_bytes(path), path)
    protocol = isinstance(found, dict) and "protocol" in found
    documents.checked(found, documents.ProtocolManifest if protocol else documents.Manifest, path)
    manifest: dict[str, Any] = found
    return manifest


def label(name: str) -> str:
    """A target's name as part of a folder's."""
    return re.sub(r"[^A-Za-z0-9]+", "-", Path(name).name).strip("-").lower()[:40] or "run"


def _run_id(result: Result, created: datetime) -> str:
    return f"{created:%Y%m%d-%H%M%S}-{label(result.name)}-{secrets.token_hex(2)}"


def _write_run(folder: Path, result: Result, run_id: str, created: datetime) -> None:
    write_to(folder / "result.json", json.dumps(result.document, indent=2))
    write_to(folder / "job.fio", result.job_text)
    if result.rig_toml is not None:
        write_to(folder / "rig.toml", result.rig_toml)
    for name, text in result.logs:
        write_to(folder / Path(name).name, text)
    _write_parquet(folder / "series.parquet", result.series_frame)
    if result.device_frame is not None:
        _write_parquet(folder / "device.parquet", result.device_frame)
    if result.latency_frame is not None:
        _write_parquet(folder / "latency.parquet", result.latency_frame)
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
    write_to(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")
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


def _index_row(folder: Path) -> _Row:
    manifest = read_manifest(folder)
    target = manifest.get("target", {})
    jobs = ", ".join(manifest.get("jobs", []))
    if (status := manifest.get("status", "complete")) != "complete":
        jobs += f" ({status})"
    name, kind = target.get("name", ""), target.get("kind", "")
    return folder.name, manifest.get("created", ""), name, kind, jobs


def _stamp(folder: Path) -> str | None:
    """What changes whenever the manifest of a run does; None without one."""
    try:
        status = (folder / MANIFEST).stat()
    except OSError:
        return None
    return f"{status.st_mtime_ns} {status.st_size} {status.st_ino}"
