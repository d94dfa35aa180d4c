"""Which files hold results of fio, what each says, and which logs are its own."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ssdlab import documents
from ssdlab._version import VERSION
from ssdlab.errors import InputError
from ssdlab.imports import files, logs, told
from ssdlab.imports.logs import Log, LogSeries
from ssdlab.imports.modern import in_microseconds, modern
from ssdlab.imports.reading import documents_in
from ssdlab.imports.told import Told
from ssdlab.results import Result, TargetKind
from ssdlab.store import MANIFEST

DIGITS = 12
"""Of a document's hash, in the name of its run."""
NEVER = frozenset(
    ".csv .ods .xlsx .png .svg .jpg .pdf .html .py .sh .ps1 .bat .fio .zip .xz .tar .parquet "
    ".ini .yaml .yml .toml .md".split()
)
"""Endings of files that hold no document, in a folder."""
_FOR_PEOPLE = re.compile(r"^\s*(?:read|write|trim)\s*: (?:io=|IOPS=)", re.MULTILINE)
"""What fio prints for people."""
_TERSE = re.compile(r"^[2-5];(?:fio-[^;\n]*;)?[^;\n]*(?:;\d+){4};", re.MULTILINE)
"""What it prints with ``--output-format=terse``, of any version of that."""


@dataclass(frozen=True)
class Refused:
    """A file that was not imported."""

    path: Path
    why: str
    asked: bool
    """Whether it was named itself, not only a folder above it."""


@dataclass(frozen=True)
class ForeignDocument:
    """One document of fio that others made."""

    path: Path
    place: int
    """Which of the documents of its file it is, from 1."""
    of: int
    """How many there are."""
    document: Mapping[str, Any] = field(repr=False)
    """In the form of fio 3, or as ssdlab wrote it."""
    digest: str
    """Of what it says and of its logs: the same content is the same run."""
    told: Told
    label: str
    """What its run is called: the drive, or else the file."""
    device: str | None
    """The drive or file that was measured; None where nobody says."""
    kind: TargetKind
    in_microseconds: bool
    """Whether the latencies of its logs are."""
    logs: Sequence[Log] = field(default=(), repr=False)
    frames: LogSeries | None = field(default=None, repr=False)

    def with_logs(self, own: Sequence[Log]) -> ForeignDocument:
        """The same with the logs that are its own; InputError where one is no log of fio."""
        if not own:
            return self
        sha = hashlib.sha256(self.digest.encode())
        for log in own:
            sha.update(f"\0{log.name}\0{log.text}".encode())
        frames = logs.series(self.document, own, old=self.in_microseconds)
        return replace(self, logs=own, frames=frames, digest=sha.hexdigest())

    @property
    def shown(self) -> str:
        """The file, and which document of several."""
        return str(self.path) if self.of == 1 else f"{self.path} (document {self.place})"

    @property
    def knows_options(self) -> bool:
        """Whether the document lists the options of its jobs; otherwise only its place tells."""
        jobs = self.document["jobs"]
        known = self.told.job_text or self.document.get("global options")
        return bool(known) or any(job["job options"].keys() - {"name"} for job in jobs)

    @cached_property
    def result(self) -> Result:
        """The document as a result, as a run is made of it."""
        document = {**self.document, "jobs": [self._job(job) for job in self.document["jobs"]]}
        own = document.get("ssdlab") or {}
        about: dict[str, Any] = {"schema": 1, "version": VERSION, "seed": None, **own}
        if not own:
            size = self.told.drive.get("capacity_bytes")
            about["target"] = {
                "kind": "fio",
                **({"name": self.device} if self.device else {}),
                "summary": self.told.drive.get("model") or self.label,
                **({"capacity_bytes": size} if size else {}),
            }
            about["surroundings"] = self._surroundings()
        if self.frames is not None:
            about["interval_ms"] = self.frames.interval_ms
        about["imported"] = {
            "file": str(self.path),
            "document": self.place,
            "layout": self.told.layout,
            "sha256": self.digest,
            "target_kind": self.kind,
            "knows_options": self.knows_options,
            "options_of_place": dict(self.told.options),
        }
        frames = self.frames or logs.NONE
        return Result(
            name=self.label,
            document={**document, "ssdlab": about},
            job_text=self.told.job_text or _job_text(document),
            series_frame=frames.series,
            latency_frame=frames.latency,
            logs=[(log.name, log.text) for log in self.logs],
        )

    def _job(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """A job with the options that only its place tells."""
        given = {**self.document.get("global options", {}), **job["job options"]}
        options = {
            name: value
            for name, value in self.told.options.items()
            if not given.keys() & ALIASES.get(name, {name})
        }
        return {**job, "job options": {**options, **job["job options"]}}

    def _surroundings(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if "fio version" in self.document:
            found["fio_version"] = str(self.document["fio version"])
        if drive := {k: v for k, v in self.told.drive.items() if k != "capacity_bytes"}:
            found["drive"] = drive
        return found


ALIASES = {
    "rw": {"rw", "readwrite"},
    "bs": {"bs", "blocksize", "bssplit", "bsrange"},
    "rwmixread": {"rwmixread", "rwmixwrite"},
}
"""Options that say what another one says."""


@dataclass(frozen=True)
class ImportScan:
    """What was found."""

    found: list[ForeignDocument]
    refused: list[Refused]
    others: int = 0
    """Files of folders that are of something else."""
    superseded: int = 0
    """Documents that fio wrote while it was at work (``--status-interval``)."""
    again: Sequence[Path] = ()
    """Files of documents that another one had before, as CBT leaves each twice."""


def scan(
    paths: Sequence[Path],
    *,
    name: str | None = None,
    progress: Callable[[int, int, Path], None] = lambda *_: None,
) -> ImportScan:
    """What the files and folders hold. ``name`` is what the runs are called; ``progress`` is told
    the file that is looked at, and which of how many it is. Raises InputError where a path does not
    exist or cannot be read."""
    asked = {file: path.is_file() for path in paths for file in _files(path)}
    found: dict[str, tuple[ForeignDocument, Mapping[Path, Log]]] = {}
    refused: list[Refused] = []
    again: list[Path] = []
    others = superseded = 0
    for number, (file, named) in enumerate(asked.items()):
        progress(number, len(asked), file)
        if not named and logs.NAME.fullmatch(file.name):
            continue
        if not named and file.suffix.lower() in NEVER:
            others += 1
            continue
        try:
            own, left = _of_file(file, name)
        except InputError as error:
            refused.append(Refused(file, error.message.removeprefix(f"{file}: "), named))
            continue
        superseded += left
        for foreign, beside in own:
            if foreign.digest in found:
                again.append(file)
            else:
                found[foreign.digest] = foreign, beside
        if not own and named:
            refused.append(Refused(file, "holds no JSON document of fio", True))
        others += not own and not named
    claims = Counter(path for _, beside in found.values() for path in beside)
    for path, count in sorted(claims.items()):
        if count > 1:
            why = f"is a log that {count} documents name as theirs; taken for none of them"
            refused.append(Refused(path, why, False))
    foreign_documents = []
    for foreign, beside in found.values():
        try:
            mine = [log for path, log in sorted(beside.items()) if claims[path] == 1]
            foreign_documents.append(foreign.with_logs(mine))
        except InputError as error:
            foreign_documents.append(foreign)
            refused.append(Refused(foreign.path.parent, error.message, False))
    refused += [
        Refused(file, "is a log without the document of its run beside it", False)
        for file, named in asked.items()
        if not named and file not in claims and logs.NAME.fullmatch(file.name)
    ]
    return ImportScan(foreign_documents, refused, others, superseded, again)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return list(files.below(path))
    return [path]


def _of_file(
    file: Path, name: str | None
) -> tuple[list[tuple[ForeignDocument, Mapping[Path, Log]]], int]:
    """The documents of a file without their logs, each with the logs that may be its own, and how
    many documents were superseded."""
    if file.name == MANIFEST:
        raise InputError("is a run of ssdlab; name its folder where a run is asked for")
    if logs.NAME.fullmatch(file.name):
        raise InputError(
            "is a log of fio; name the document of its run, or the folder that holds both"
        )
    text = files.text_of(file)
    texts = documents_in(text)
    if texts.broken is not None:
        raise InputError(f"its JSON breaks off or is damaged ({texts.broken})")
    if not texts.documents:
        if _TERSE.search(text):
            raise InputError(
                "is fio's terse output, which tells too little of a run; run fio with "
                "--output-format=json+"
            )
        if _FOR_PEOPLE.search(text):
            raise InputError(
                "is fio's output for people; run fio with --output-format=json or json+"
            )
        return [], 0
    known = told.by_place(file, text)
    count = len(texts.documents)
    own = [_foreign(file, n, count, raw, known, name) for n, raw in enumerate(texts.documents, 1)]
    # Nothing says which of several documents a log is of.
    beside = _logs(file, own[0].document, known) if count == 1 else {}
    return [(foreign, beside) for foreign in own], texts.superseded


def _foreign(
    file: Path, place: int, of: int, raw: dict[str, Any], known: Told, name: str | None
) -> ForeignDocument:
    where = str(file) if of == 1 else f"{file} (document {place})"
    document = modern(raw, where)
    sha = hashlib.sha256(json.dumps(raw, sort_keys=True).encode())
    device, kind = _device(document, known)
    label = name or str(known.drive.get("model") or device or file.stem)
    if isinstance(raw.get("ssdlab"), dict):
        document, kind, label = _of_ssdlab(raw, where, label if name else None)
        device = label
    old = in_microseconds(raw)
    return ForeignDocument(
        file, place, of, document, sha.hexdigest(), known, label, device, kind, old
    )


def _logs(file: Path, document: Mapping[str, Any], known: Told) -> dict[Path, Log]:
    """The logs beside a document that are its own, by their names: as its jobs asked for them, as
    its layout calls them, or as the document is called."""
    prefixes = {file.stem, file.name} | ({known.logs} if known.logs else set())
    for job in document["jobs"]:
        for option, value in {**document.get("global options", {}), **job["job options"]}.items():
            if re.fullmatch(r"write_(bw|iops|lat|hist)_log", option):
                prefixes.add(Path(value).name if value not in ("", "1") else job["jobname"])
    found = {}
    for path in sorted(file.parent.glob("*.log*")):
        match = logs.NAME.fullmatch(path.name)
        if match is None or (match[4] and not file.name.endswith(f".{match[4]}")):
            continue
        if match[1] in prefixes and path.is_file() and not path.is_symlink():
            log = logs.log_of(path.name, files.text_of(path))
            if log is not None:
                found[path] = log
    return found


def _device(document: Mapping[str, Any], known: Told) -> tuple[str | None, TargetKind]:
    """The drive or file that was measured, as far as anybody says, and what it is."""
    shared = document.get("global options", {})
    options = [{**known.options, **shared, **job["job options"]} for job in document["jobs"]]
    for name in ("filename", "directory"):
        if len(values := {option[name] for option in options if option.get(name)}) == 1:
            path = values.pop()
            return path, "device" if path.startswith("/dev/") else "file"
    jobs = {str(job["jobname"]) for job in document["jobs"]}
    if len(jobs) == 1 and (job := jobs.pop()).startswith("/dev/"):
        return job, "device"
    if known.device is not None:
        return known.device, "unknown"
    disks = [str(one["name"]) for one in document.get("disk_util") or [] if "name" in one]
    return (disks[0] if len(disks) == 1 else None), "unknown"


def _of_ssdlab(
    raw: dict[str, Any], where: str, label: str | None
) -> tuple[dict[str, Any], TargetKind, str]:
    """A document that ssdlab wrote (``run --json``), with all that it says."""
    document = documents.document(json.dumps(raw).encode(), where)
    target = document["ssdlab"].get("target") or {}
    name = label or str(target.get("name") or "") or Path(where).stem
    plain = Result(name, document, "", logs.NONE.series)
    return document, plain.target_kind, name


def _job_text(document: Mapping[str, Any]) -> str:
    """A job file of the options that the document lists."""
    text = "# As listed in the result; options that fio does not list are missing.\n"
    if shared := document.get("global options"):
        text += "[global]\n" + _lines(shared)
    sections = {job["jobname"]: _lines(job["job options"]) for job in document["jobs"]}
    return text + "".join(f"[{name}]\n{lines}" for name, lines in sections.items())


def _lines(options: Mapping[str, str]) -> str:
    return "".join(
        f"{name}={value}\n" if value else f"{name}\n"
        for name, value in options.items()
        if name != "name"
    )
