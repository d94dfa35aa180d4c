"""A run on disk: every finished step is there whole, whenever the run was killed.

``manifest.json`` says what is run on what; ``journal.ndjson`` has a line for every finished step;
``steps/`` an archive for each that left a result, written before its line. The run of a job file is
one of a single step, whose files lie open in the folder. See ``docs/results.md``.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import time
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, model_validator

from ssdlab import documents
from ssdlab.errors import InputError
from ssdlab.opened import is_locked
from ssdlab.output import write_to, writing
from ssdlab.results import Result, TargetKind
from ssdlab.store import MANIFEST, sync_folder

T = TypeVar("T")
JOB = "job"
"""The protocol of the run of a job file, and the key of its step."""
JOURNAL = "journal.ndjson"
FINDINGS = "findings.json"
RIG = "rig.toml"
SCHEMA = 2
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time stamp in archives: the same bytes whenever they are written."""

LOCK_TRIES = 6
LOCK_WAIT_S = 0.1

Status = Literal["running", "stopped", "failed", "complete"]


def _surroundings(value: dict[str, Any]) -> dict[str, Any]:
    """What is known to stand in them is checked; all is kept."""
    try:
        documents.SURROUNDINGS.model_validate(value)
    except ValidationError as error:
        raise ValueError(documents.why(error)) from None
    return value


class ManifestTarget(documents.DocumentPart):
    """What a run was made on, for lists of runs."""

    kind: Literal["sim", "fio"]
    name: str = ""
    capacity_bytes: documents.Count | None = None


class Manifest(documents.DocumentPart):
    """``manifest.json`` of every run: what is run on what, and how far it has come."""

    schema_: int = Field(SCHEMA, alias="schema", ge=SCHEMA, le=SCHEMA)
    id: str
    created: documents.Moment
    version: str | None = None
    status: Status = "running"
    protocol: str = JOB
    name: str
    """The target's label."""
    kind: TargetKind
    target: ManifestTarget
    imported: str | None = None
    """The file in which others left what the run holds."""
    jobs: list[str] = Field([])
    """Those of the job file, or what protocol it is."""
    seed: documents.Count | None = None
    capacity: documents.Count = 0
    active: documents.Count = 0
    """Bytes of the active range."""
    divisor: documents.Positive = 1.0
    quick: bool = False
    block: Annotated[int, Field(gt=0)] = 512
    values: dict[str, str | int | documents.Number] = Field({})
    """The parameters of the protocol."""
    about: Annotated[dict[str, Any], AfterValidator(_surroundings)] = Field({})
    """Of a protocol's run: drive and system, or the rig as run."""
    speeds: dict[str, Any] | None = None
    """By which its length was estimated."""
    logs: str | None = None
    """The folder of fio's logs of every step."""
    overrides: dict[str, str] | None = None
    """Keys that were set of a simulated rig."""
    path: str | None = None
    """Of a real target."""
    destroy: str | None = None
    redact: bool = False
    setup: str = "none"
    made_file: bool = False
    """Whether the file was made for the run."""
    medium: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _resumable(self) -> Self:
        name = "overrides" if self.kind == "sim" else "path"
        if self.protocol != JOB and getattr(self, name) is None:
            raise ValueError(f"{name} is missing")
        return self

    def document(self) -> dict[str, Any]:
        """As it is kept: what the run has said."""
        return self.model_dump(by_alias=True, exclude_none=True, exclude_unset=True)


@dataclass(frozen=True)
class JournalEntry:
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


_ENTRY = TypeAdapter(JournalEntry)


@dataclass(frozen=True)
class StepFiles:
    """The files of a step's result, wherever they lie."""

    names: Collection[str]
    read: Callable[[str], bytes]
    place: Callable[[str], object]
    """What to call a file where it is damaged."""

    def get(self, name: str, parse: Callable[[bytes, object], T]) -> T:
        """What is in a file; InputError where it is damaged."""
        return parse(self.read(name), self.place(name))

    def find(self, name: str, parse: Callable[[bytes, object], T]) -> T | None:
        """The same; None where there is no such file."""
        return self.get(name, parse) if name in self.names else None


class RunFolder:
    """One run's folder."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest

    @property
    def id(self) -> str:
        """Its name in the store."""
        return self.path.name

    @property
    def is_job(self) -> bool:
        """Whether it is the run of a job file, not of a protocol."""
        return self.manifest.protocol == JOB

    @property
    def status(self) -> Status:
        """How the run is; one that was killed is stopped, whatever its manifest says."""
        status = self.manifest.status
        killed = status == "running" and not is_locked(self.path / "lock")
        return "stopped" if killed else status

    def set_status(self, status: Status) -> None:
        """Notes how the run is."""
        self.manifest.status = status
        write_to(self.path / MANIFEST, json.dumps(self.manifest.document(), indent=2) + "\n")

    def rig(self) -> str | None:
        """The rig that was asked for, before any key was changed."""
        path = self.path / RIG
        return documents.rig(documents.read_bytes(path), path) if path.exists() else None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else continues the run meanwhile; InputError where somebody does already."""
        with (self.path / "lock").open("w") as file:
            for place in range(LOCK_TRIES):
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    # Whoever only asks whether it is going on has it for a moment.
                    time.sleep(LOCK_WAIT_S if place < LOCK_TRIES - 1 else 0)
            else:
                raise InputError(f"{self.id}: is going on already, in another process")
            yield

    def journal(self) -> list[JournalEntry]:
        """The finished steps in order. A line cut short by a power failure was never finished.
        Raises InputError where a whole line is none of a journal."""
        path = self.path / JOURNAL
        lines = documents.read_bytes(path).split(b"\n")[:-1]
        return [_entry(number, line, path) for number, line in enumerate(lines, 1)]

    def mend_journal(self) -> None:
        """Cuts off a half-written line, so that the next one stands alone."""
        path = self.path / JOURNAL
        text = "".join(json.dumps(asdict(entry)) + "\n" for entry in self.journal())
        if documents.read_bytes(path) != text.encode():
            write_to(path, text)

    def append(self, entry: JournalEntry, result: Result | None) -> None:
        """Keeps a finished step; it is on the disk when this returns."""
        with writing(self.path):
            if result is not None and self.is_job:
                for name, content in files_of_result(result).items():
                    write_to(self.path / name, content)
            elif result is not None:
                write_to(self.path / entry.file, archived(files_of_result(result)))
                sync_folder(self.path / "steps")
            with (self.path / JOURNAL).open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(entry)) + "\n")
                file.flush()
                os.fsync(file.fileno())

    @contextlib.contextmanager
    def files(self, entry: JournalEntry) -> Iterator[StepFiles]:
        """The files of a finished job; InputError where they cannot be read."""
        path = self.path / entry.file
        if self.is_job:
            names = sorted(path.name for path in self.path.iterdir())
            place = self.path.joinpath
            yield StepFiles(names, lambda name: documents.read_bytes(place(name)), place)
            return
        with documents.archive(path) as archive:
            yield StepFiles(archive.namelist(), archive.read, lambda name: f"{path}, {name}")

    def load(self, entry: JournalEntry) -> Result:
        """The result of a finished job; InputError where its files cannot be read."""
        with self.files(entry) as files:
            return result_of(files, self.manifest.name, self.path)

    def document(self, entry: JournalEntry) -> dict[str, Any]:
        """The fio document of a finished job alone."""
        with self.files(entry) as files:
            return files.get("result.json", documents.document)

    def job_text(self, entry: JournalEntry) -> str:
        """The job file of a finished job alone."""
        with self.files(entry) as files:
            return files.get("job.fio", documents.decoded)

    def only(self) -> JournalEntry:
        """The step of the run of a job file; InputError where it is that of a protocol."""
        if not self.is_job:
            raise InputError(
                f"{self.id}: is the run of the protocol {self.manifest.protocol}, not that of a "
                "job file; ssdlab report and ssdlab compare take it"
            )
        entries = self.journal()
        if not entries:
            raise documents.damaged(self.path / JOURNAL, "its only step is missing")
        return entries[0]

    def result(self) -> Result:
        """The result of the run of a job file; InputError as :meth:`only` and :meth:`load`."""
        return self.load(self.only())

    def check(self) -> list[JournalEntry]:
        """The journal; InputError where a finished job has not left a whole file."""
        entries = self.journal()
        for entry in entries:
            if entry.kind == "job":
                with self.files(entry):
                    pass
        return entries

    def checkpoints(self) -> list[tuple[int, Path]]:
        """Kept states of a simulated drive: after which step, and where; the newest first."""
        found = [(int(p.stem.partition("-")[2]), p) for p in self.path.glob("state-*.bin")]
        return sorted(found, reverse=True)


def _entry(number: int, line: bytes, path: Path) -> JournalEntry:
    place = f"{path}, line {number}"
    entry = documents.checked(documents.parsed(line, place), _ENTRY, place)
    if entry.number != number:
        raise documents.damaged(place, f"it is line {entry.number} of another order")
    return entry


def result_of(files: StepFiles, name: str, folder: Path | None = None) -> Result:
    """The result in files, called ``name``; InputError where one is damaged."""
    return Result(
        name=name,
        document=files.get("result.json", documents.document),
        job_text=files.get("job.fio", documents.decoded),
        series_frame=files.get("series.parquet", documents.series),
        device_frame=files.find("device.parquet", documents.device),
        latency_frame=files.find("latency.parquet", documents.latency),
        rig_toml=files.find(RIG, documents.rig),
        logs=[
            (name, files.get(name, documents.decoded))
            for name in files.names
            if name.endswith(".log")
        ],
        folder=folder,
    )


def files_of_result(result: Result) -> dict[str, str | bytes]:
    """The files of a result, by their names."""
    files: dict[str, str | bytes] = {
        "result.json": json.dumps(result.document),
        "job.fio": result.job_text,
    }
    frames = {
        "series": result.series_frame,
        "device": result.device_frame,
        "latency": result.latency_frame,
    }
    for name, frame in frames.items():
        if frame is not None:
            buffer = io.BytesIO()
            frame.write_parquet(buffer)
            files[f"{name}.parquet"] = buffer.getvalue()
    if result.rig_toml is not None:
        files[RIG] = result.rig_toml
    return files | {Path(name).name: text for name, text in result.logs}


def archived(files: Mapping[str, str | bytes]) -> bytes:
    """The files in one, so that one sync keeps a whole step."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            about = zipfile.ZipInfo(name, _EPOCH)
            about.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(about, content)
    return whole.getvalue()
