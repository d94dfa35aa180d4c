"""A protocol's run on disk: every finished step is there whole, whenever the run was killed.

``manifest.json`` says what is run on what; ``journal.ndjson`` has a line for every finished step;
``steps/`` a file for each that left a result, written before its line. See ``docs/results.md``.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import secrets
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from ssdlab import documents
from ssdlab.errors import InputError
from ssdlab.output import write_to, writing
from ssdlab.results import Result
from ssdlab.store import MANIFEST, RunStore, label, read_manifest, sync_folder

JOURNAL = "journal.ndjson"
FINDINGS = "findings.json"
SCHEMA = 1
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time stamp in archives: the same bytes whenever they are written."""

Status = Literal["running", "stopped", "failed", "complete"]


@dataclass(frozen=True)
class Entry:
    """A finished step: a line of the journal."""

    number: int
    key: str
    kind: Literal["job", "purge", "trim", "idle", "stop", "resume"]
    title: str
    measured: bool
    began: documents.Moment
    ended: documents.Moment
    note: str = ""
    """What a step without a result had to say; of a resumption, what happened meanwhile."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """Of a real drive after the step, for a resumption."""
    changes: Sequence[str] = ()
    """Of a resumption: what happened to the drive in between, a piece of a sentence each."""
    moved: Mapping[str, Any] = field(default_factory=dict)
    """Of a job: its shape, bytes and seconds (:class:`ssdlab.engine.speed.SpeedPoint`)."""

    @property
    def file(self) -> str:
        """Its result, below the folder."""
        return f"steps/{self.number:05d}.zip"


_ENTRY = TypeAdapter(Entry)


class RunFolder:
    """One run's folder."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest

    @classmethod
    def create(cls, store: RunStore, manifest: Mapping[str, Any], rig: str | None) -> RunFolder:
        """A new folder in the store; the manifest is written last."""
        store.prepare()
        created = datetime.now(UTC)
        name = f"{manifest['protocol']}-{label(str(manifest['name']))}"
        run_id = f"{created:%Y%m%d-%H%M%S}-{name}-{secrets.token_hex(2)}"
        whole = {
            "id": run_id,
            "created": created.isoformat(timespec="seconds"),
            "schema": SCHEMA,
            **manifest,
        }
        folder = cls(store.root / run_id, whole)
        with writing(folder.path):
            (folder.path / "steps").mkdir(parents=True)
            if rig is not None:
                write_to(folder.path / "rig.toml", rig)
            (folder.path / JOURNAL).touch()
        folder.set_status("running")
        sync_folder(store.root)
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The folder of a run that was begun.

        Raises InputError where it is none, or its manifest is damaged.
        """
        manifest = read_manifest(path)
        if "protocol" not in manifest:
            raise InputError(f"{path}: is a single run, not that of a protocol")
        if manifest.get("schema") != SCHEMA:
            raise InputError(f"{path}: was written by another version of ssdlab")
        return cls(path, manifest)

    @property
    def id(self) -> str:
        """Its name in the store."""
        return self.path.name

    def set_status(self, status: Status) -> None:
        """Notes how the run is."""
        self.manifest["status"] = status
        write_to(self.path / MANIFEST, json.dumps(self.manifest, indent=2) + "\n")

    def rig(self) -> str | None:
        """The rig that was asked for, before any key was changed."""
        path = self.path / "rig.toml"
        return documents.read_rig(path) if path.exists() else None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else continues the run meanwhile.

        Raises InputError where somebody does already.
        """
        with (self.path / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(f"{self.id}: is going on already, in another process") from None
            yield

    def journal(self) -> list[Entry]:
        """The finished steps in order. A line cut short by a power failure was never finished.

        Raises InputError where a whole line is none of a journal.
        """
        path = self.path / JOURNAL
        lines = documents.read_bytes(path).split(b"\n")[:-1]
        return [_entry(number, line, path) for number, line in enumerate(lines, 1)]

    def mend_journal(self) -> None:
        """Cuts off a half-written line, so that the next one stands alone."""
        path = self.path / JOURNAL
        text = "".join(json.dumps(asdict(entry)) + "\n" for entry in self.journal())
        if documents.read_bytes(path) != text.encode():
            write_to(path, text)

    def append(self, entry: Entry, result: Result | None) -> None:
        """Keeps a finished step; it is on the disk when this returns."""
        with writing(self.path):
            if result is not None:
                _write_archive(self.path / entry.file, result)
            with (self.path / JOURNAL).open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(entry)) + "\n")
                file.flush()
                os.fsync(file.fileno())

    def load(self, entry: Entry) -> Result:
        """The result of a finished step.

        Raises InputError where its file cannot be read.
        """
        path = self.path / entry.file
        with documents.archive(path) as archive:
            device, latency = "device.parquet", "latency.parquet"
            names = archive.namelist()
            return Result(
                name=str(self.manifest["name"]),
                document=documents.document(archive.read("result.json"), path),
                job_text=documents.decoded(archive.read("job.fio"), path),
                series_frame=documents.series(archive.read("series.parquet"), path),
                device_frame=documents.device(archive.read(device), path)
                if device in names
                else None,
                latency_frame=documents.latency(archive.read(latency), path)
                if latency in names
                else None,
            )

    def job_text(self, entry: Entry) -> str:
        """The job file of a finished step; InputError where its file cannot be read."""
        path = self.path / entry.file
        with documents.archive(path) as archive:
            return documents.decoded(archive.read("job.fio"), path)

    def check(self) -> list[Entry]:
        """The journal; InputError where a finished job has not left a whole file."""
        entries = self.journal()
        for entry in entries:
            if entry.kind == "job":
                with documents.archive(self.path / entry.file):
                    pass
        return entries

    def checkpoints(self) -> list[tuple[int, Path]]:
        """Kept states of a simulated drive: after which step, and where; the newest first."""
        found = [(int(p.stem.partition("-")[2]), p) for p in self.path.glob("state-*.bin")]
        return sorted(found, reverse=True)

    def write_findings(self, document: Mapping[str, Any]) -> None:
        """Keeps what the protocol found."""
        write_to(self.path / FINDINGS, json.dumps(document, indent=1) + "\n")


def is_protocol_run(path: Path) -> bool:
    """Whether a folder is the run of a protocol; InputError where its manifest is damaged."""
    return "protocol" in read_manifest(path)


def _entry(number: int, line: bytes, path: Path) -> Entry:
    place = f"{path}, line {number}"
    entry = documents.checked(documents.parsed(line, place), _ENTRY, place)
    if entry.number != number:
        raise documents.damaged(place, f"it is line {entry.number} of another order")
    return entry


def _write_archive(path: Path, result: Result) -> None:
    """One file, so that one sync keeps a whole step."""
    frames = {
        "series.parquet": result.series_frame,
        "device.parquet": result.device_frame,
        "latency.parquet": result.latency_frame,
    }
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "result.json", json.dumps(result.document).encode())
        _add(archive, "job.fio", result.job_text.encode())
        for name, frame in frames.items():
            if frame is not None:
                buffer = io.BytesIO()
                frame.write_parquet(buffer)
                _add(archive, name, buffer.getvalue())
    write_to(path, whole.getvalue())
    sync_folder(path.parent)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    about = zipfile.ZipInfo(name, _EPOCH)
    about.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(about, data)
