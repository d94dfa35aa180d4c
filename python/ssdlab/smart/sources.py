"""Where snapshots of a drive's health come from: files, folders, runs, and the drive itself."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import StringConstraints, TypeAdapter

from ssdlab import documents
from ssdlab.errors import InputError, MissingProgramError
from ssdlab.fio import nand_logs, surroundings
from ssdlab.json_access import at, text
from ssdlab.smart import smartctl
from ssdlab.smart.model import Health
from ssdlab.smart.simulated import from_run, from_wear
from ssdlab.store import RunStore, open_run
from ssdlab.system import System, system_program

LARGEST = 64 << 20
"""Bytes of the largest file that is read; smartctl writes tens of kB, a run at most some MB."""
HOW_TO_INSTALL = "sudo apt install smartmontools"


PROTOCOL_SNAPSHOTS = "health.json"
"""In the folder of a protocol's run: its snapshots by ``before`` and ``after``."""


@dataclass(frozen=True)
class Snapshots:
    """A drive under the name it was asked for by, its snapshots in the order they were taken."""

    name: str
    snapshots: tuple[Health, ...]

    @property
    def latest(self) -> Health:
        """The last snapshot."""
        return self.snapshots[-1]

    def redacted(self, number: int) -> Snapshots:
        """Without serial numbers, and without the path in the name."""
        shown = tuple(
            replace(
                snapshot,
                serial=surroundings.REDACTED if snapshot.serial else None,
                notes=tuple(re.sub(r"/dev/\S+", "/dev/...", note) for note in snapshot.notes),
            )
            for snapshot in self.snapshots
        )
        return Snapshots(f"drive {number}", shown)


def members(target: str) -> list[str]:
    """The drives that ``target`` names: the documents in a folder of them, else itself."""
    # What cannot be looked at is told by :func:`read`.
    with contextlib.suppress(OSError, ValueError):
        folder = Path(target)
        if target != "-" and folder.is_dir() and not (folder / "manifest.json").is_file():
            return [str(path) for path in sorted(folder.glob("*.json")) if path.is_file()] or [
                target
            ]
    return [target]


def load(target: str, store: RunStore) -> list[Snapshots]:
    """The drives that ``target`` names: as :func:`read`, and every document in a folder of them.
    Raises InputError where one of them cannot be read, MissingProgramError where a drive is to be
    asked and smartctl is not installed."""
    return [read(member, store) for member in members(target)]


def read(target: str, store: RunStore) -> Snapshots:
    """One drive: a block device, a document of smartctl, ``-`` for one on standard input, a run's
    folder or id, or a result of ssdlab. Raises InputError where it is none of these or cannot be
    read, MissingProgramError where a drive is to be asked and smartctl is not installed."""
    if target == "-":
        return _of_document(_standard_input(), "standard input")
    if "\x00" in target:
        raise InputError("a name with a zero byte is no file")
    path = Path(target)
    try:
        if path.is_block_device():
            return Snapshots(target, (live(path),))
        if path.is_dir() and not (path / "manifest.json").is_file():
            raise InputError(f"{path}: has no *.json files in it; {smartctl.HOW_TO}")
        if path.is_file():
            return _of_document(_content(path), target)
        if path.is_char_device() and path.name.startswith("nvme"):
            raise InputError(f"{target}: is the controller; name its block device, {target}n1")
        if not path.is_dir() and path.exists():
            raise InputError(f"{target}: is neither a drive nor a file")
    except OSError as error:
        raise InputError(f"{target}: cannot be read ({error.strerror})") from None
    if not path.is_dir():
        if target.startswith("/dev/"):
            raise InputError(f"{target}: there is no such device")
        if path.suffix == ".json" or "/" in target:
            raise InputError(f"{target}: there is no such file")
    return _of_run(store.find(target), target)


def live(path: Path) -> Health:
    """Asks the drive at ``path``, or the drive that it is a partition of. Raises
    MissingProgramError where smartctl is not installed, InputError where it is no drive with SMART
    or there is no permission."""
    name = System().device_called(str(path))
    if name is None:
        raise InputError(f"{path}: the kernel does not know this block device")
    if system_program("smartctl") is None:
        raise MissingProgramError(
            f"smartctl is not installed, and it is needed to read SMART data: {HOW_TO_INSTALL}"
        )
    disk = System().disk_of(name)
    answer = surroundings.smartctl_answer(disk, "-x")
    if not answer:
        raise InputError(f"{path}: smartctl gave no answer that can be read")
    return smartctl.parse(answer | nand_logs.pages(disk, answer), str(path))


def _content(path: Path) -> str:
    if path.stat().st_size > LARGEST:
        raise InputError(f"{path}: is too large for a document of smartctl ({HOW_TO_INSTALL})")
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is no text in UTF-8 (byte {error.start})") from None


def _standard_input() -> str:
    if sys.stdin is None:
        raise InputError("standard input: is closed")
    try:
        return sys.stdin.buffer.read(LARGEST).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"standard input: is no text in UTF-8 (byte {error.start})") from None


def _of_document(content: str, name: str) -> Snapshots:
    document = smartctl.read_document(content, name)
    about = document.get("ssdlab")
    if isinstance(about, Mapping) and "smartctl" not in document:
        return Snapshots(name, tuple(_of_result(about, name)))
    return Snapshots(name, (smartctl.parse(document, name),))


def _of_run(folder: Path, name: str) -> Snapshots:
    run = open_run(folder)
    if (folder / PROTOCOL_SNAPSHOTS).exists():
        return Snapshots(name, tuple(of_protocol(folder, name)))
    if not run.is_job:
        raise InputError(f"{name}: holds no SMART data of the drive")
    about = run.document(run.only()).get("ssdlab") or {}
    if "wear" not in about:
        return Snapshots(name, tuple(_of_result(about, name)))
    return Snapshots(name, (from_run(run.result(), name),))


def of_protocol(folder: Path, name: str) -> Iterator[Health]:
    """The snapshots before and after the run of a protocol."""
    for when, document in protocol_snapshots(folder).items():
        label = f"{name} ({when})"
        yield from_wear(document, label) if "wear" in document else smartctl.parse(document, label)


def protocol_snapshots(folder: Path) -> dict[str, dict[str, Any]]:
    """The snapshots as they are kept, by ``before`` and ``after``; none where nothing was kept;
    InputError where their file is damaged."""
    path = folder / PROTOCOL_SNAPSHOTS
    if not path.exists():
        return {}
    found = documents.parsed(documents.read_bytes(path), path)
    return documents.checked(found, TypeAdapter(dict[_When, dict[str, Any]]), path)


_When = Annotated[str, StringConstraints(pattern="^(before|after)$")]


def _of_result(about: Mapping[str, Any], name: str) -> Iterator[Health]:
    """The snapshots in a result of ssdlab: before and after a run on a real drive, or the end of a
    simulated one."""
    if text(about, "target", "kind") != "fio":
        yield from_wear(about, name)
        return
    told = False
    for when in ("before", "after"):
        document = at(about, "surroundings", "smart", when)
        if isinstance(document, Mapping):
            yield smartctl.parse(document, f"{name} ({when})")
            told = True
    if not told:
        raise InputError(
            f"{name}: holds no SMART data of the drive; smartctl must be installed and allowed "
            "when the run is made"
        )


def history(place: str, store: RunStore) -> list[Health]:
    """All snapshots at a place: as :func:`load`, and ``runs`` or a store's folder for every run
    that holds some."""
    path = Path(place)
    folders: list[Path] = []
    if place == "runs" and not path.exists():
        folders = [entry.path for entry in store.entries()]
    elif path.is_dir() and not (path / "manifest.json").is_file():
        folders = [one.parent for one in sorted(path.glob("*/manifest.json"))]
    if not folders and (place != "runs" or path.exists()):
        return [snapshot for drive in load(place, store) for snapshot in drive.snapshots]
    healths: list[Health] = []
    for folder in folders:
        # Most runs are of other targets and hold no SMART data.
        with contextlib.suppress(InputError):
            healths.extend(_of_run(folder, str(folder)).snapshots)
    return healths
