"""``ssdlab.health``, ``ssdlab.audit`` and ``ssdlab.scan``: how a drive is, and what is around it.

They only read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ssdlab.answer import Answer
from ssdlab.answers import audit as audit_answer
from ssdlab.answers import health as health_answer
from ssdlab.answers import scan as scan_answer
from ssdlab.api.report import Report, frame_of
from ssdlab.api.rig import Rig
from ssdlab.api.target import On, rated
from ssdlab.api.watching import Watch, shown
from ssdlab.audits import Finding, System, audit_path
from ssdlab.care.blockio import place_of, reading
from ssdlab.care.scan import QUICK_BYTES, Scan, require_whole
from ssdlab.care.scan import scan as read_pieces
from ssdlab.errors import InputError, Interrupted
from ssdlab.given import Size, keys, several
from ssdlab.given import size as bytes_of
from ssdlab.progress import ProgressCallback
from ssdlab.rig import is_profile, resolve
from ssdlab.simscan import PREPARE, scan_simulated
from ssdlab.smart import Snapshots
from ssdlab.smart.report import HealthReport as DriveReport
from ssdlab.smart.report import Reading, Unread, survey, unread_error
from ssdlab.smart.sources import history as snapshots_at
from ssdlab.smart.sources import read
from ssdlab.store import RunStore
from ssdlab.target import real, sim

SCHEMA = 1
"""Of the document of health."""
EVERYTHING = Path("/")


def health(
    targets: str | Path | Sequence[str | Path],
    *,
    history: str | Path | Sequence[str | Path] | None = None,
    tbw: Size | None = None,
    attributes: bool = False,
    out: str | Path | None = None,
    redact: bool = False,
) -> Report:
    """Says how worn and how healthy drives are, and how long they will last.

    Args:
        targets: A drive (/dev/...), a document of smartctl --json, a folder of them, a run, or -
            for a document on standard input. Any number.
        history: Earlier snapshots of the same drives: a document, a folder, a run, a folder of
            runs, or the word runs for all that are kept. May be given again. In Python one or
            several.
        tbw: Rated endurance of a drive, such as ``"600TB"``, or a number of TB.
        attributes: Show every attribute of ATA drives too.
        out: Where the runs are kept.
        redact: Leave out serial numbers and paths.

    Returns:
        ``frame()`` has a row for each drive; those that could not be read stand in
        ``answer.notes``.

    Raises:
        InputError: a target is none, or nothing of it could be read.
        ExperimentError: no drive could be read.
    """
    names = several(targets)
    if not names:
        raise InputError("targets: found none, expected a drive, a document of smartctl or a run")
    found = list(surveyed(names, several(history), tbw=tbw, out=out, redact=redact))
    error = unread_error(found)
    read_ones = [one for one in found if isinstance(one, DriveReport)]
    if error is not None and not read_ones:
        raise error
    answer = health_of(found, attributes=attributes, notes=[error.message] if error else [])
    rows = [_drive_row(report) for report in read_ones]
    return Report(answer, table=frame_of(rows))


def surveyed(
    targets: Sequence[str],
    history: Sequence[str] = (),
    *,
    tbw: Size | None = None,
    out: str | Path | None = None,
    redact: bool = False,
) -> Iterator[Reading]:
    """The drives in order, each as it is read; raises as :func:`health`."""
    store = RunStore(out)
    return survey(
        targets,
        lambda name: _snapshots(name, store),
        earlier={place: snapshots_at(place, store) for place in history},
        tbw_bytes=rated(tbw),
        redact=redact,
    )


def health_of(
    readings: Sequence[Reading], *, attributes: bool, notes: Sequence[str] = ()
) -> Answer:
    """What is said of the drives that could be read, of which there is one at least."""
    reports = [one for one in readings if isinstance(one, DriveReport)]
    document = {
        "schema": SCHEMA,
        "drives": [one.document for one in reports],
        "unreadable": [one.document for one in readings if isinstance(one, Unread)],
    }
    return health_answer.answer(
        reports,
        document,
        alone=len(readings) == 1,
        attributes=attributes,
        notes=notes,
    )


def _drive_row(report: DriveReport) -> dict[str, Any]:
    """What is known of a drive in single values."""
    document = report.document
    told = {
        name: value
        for part in ("health", "projection")
        for name, value in document[part].items()
        if not isinstance(value, Mapping | list | tuple)
    }
    return {"target": report.name, "verdict": report.verdict.value, **told}


def _snapshots(name: str, store: RunStore) -> Snapshots:
    if is_profile(name) and not Path(name).exists():
        raise InputError(
            f"{name}: is a profile, and a new drive has no history; "
            "run a job on it and give the run"
        )
    return read(name, store)


def audit(target: str | Path, *, root: str | Path = EVERYTHING) -> Report:
    """Checks the settings below a path: TRIM, queues, caches, links, alignment. Changes nothing.

    Args:
        target: A drive (``/dev/...``), a mount point, or any file or folder.
        root: Audit a recorded system: a folder with its /sys, /proc and /etc.

    Returns:
        ``frame()`` has a row for each finding, the worst first.

    Raises:
        InputError: there is no such path, or no system below ``root``.
    """
    return audited(target, root)[0]


def audited(target: str | Path, root: str | Path) -> tuple[Report, list[Finding]]:
    """An audit as a report, and what was found; raises as :func:`audit`."""
    top = Path(root)
    if top != EVERYTHING and not (top / "sys" / "class" / "block").is_dir():
        raise InputError(f"--root {top}: has no sys/class/block in it")
    scene, findings = audit_path(str(target), System(top))
    answer = audit_answer.answer(scene, findings)
    return Report(answer), list(findings)


def scan(
    target: On,
    *,
    whole: bool = False,
    size: Size | None = None,
    prepare: str | None = None,
    set: Mapping[str, object] | None = None,
    progress: Watch = None,
) -> Report:
    """Reads a drive or file: what is unreadable or slow, and a map of it. Only reads.

    Args:
        target: A block device, a file, a profile's name or a rig file (.toml). In Python also a
            :class:`ssdlab.Rig` or a :class:`ssdlab.Target`.
        whole: Read everything, not only the first 1.5 GB.
        size: Read so much from the beginning: 20GB.
        prepare: State of a simulated drive at the start, as for run; sequential unless given.
        set: As for :func:`ssdlab.run`.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.

    Returns:
        ``answer.notes`` say where a drive that went away ended it early.

    Raises:
        InputError: the target or an option is wrong.
        ExperimentError: nothing could be read.
        Interrupted: it was stopped.
    """
    with shown(progress, f"scanning {label_of(target)}") as callback:
        how: dict[str, Any] = {"whole": whole, "size": size, "prepare": prepare, "set": set}
        found = scanned(target, **how, progress=callback)
    require_whole(found)
    if found.stopped == Interrupted.sentence():
        raise Interrupted(f"{found.target}: {found.stopped}")
    return Report(scan_answer.answer(found))


def label_of(target: On) -> str:
    """What a target is called."""
    return str(target) if isinstance(target, str | Path) else target.name


def scanned(
    target: On,
    *,
    whole: bool,
    size: Size | None,
    prepare: str | None,
    set: Mapping[str, object] | None,
    progress: ProgressCallback | None,
) -> Scan:
    """A scan, also one that ended early; raises InputError as :func:`scan`."""
    if whole and size is not None:
        raise InputError("--whole and --size exclude each other; give one of them")
    wanted = None if whole else QUICK_BYTES if size is None else bytes_of("--size", size)
    if wanted == 0:
        raise InputError("--size: found 0, expected at least one byte")
    what = resolve(target.target() if isinstance(target, Rig) else target)
    if (drive := sim(what)) is not None:
        return scan_simulated(
            drive,
            wanted_bytes=wanted,
            prepare=prepare or PREPARE,
            overrides=keys(set),
            progress=progress,
        )
    name = label_of(target)
    if prepare is not None or set:
        raise InputError(f"{name}: --prepare and --set are for simulated drives")
    path = real(what, f"{name}: is simulated").path
    place = place_of(path)
    if place.size_bytes == 0:
        raise InputError(f"{name}: is empty, so there is nothing to read")
    with reading(path) as reader:
        kind: Literal["device", "file"] = "device" if place.is_device else "file"
        size_bytes = reader.size_bytes
        found = Scan(
            name, kind, size_bytes, wanted or size_bytes, reader.block_bytes, reader.direct
        )
        return read_pieces(reader, found, progress=progress)
