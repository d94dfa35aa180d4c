"""What a measurement was made on: drive, firmware, kernel, scheduler, cache, file system, SMART."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from ssdlab.fio.mounts import Mount, holding, mounts

SYS_BLOCK = Path("/sys/class/block")
_SECRETS = frozenset(
    """
    serial_number serial wwn logical_unit_id nvme_eui64 eui64 nguid uuid device_id
    """.split()
)
REDACTED = "redacted"


def system_program(name: str) -> str | None:
    """The path of an administrator's program, also where sbin is not on the user's PATH."""
    path = os.environ.get("PATH", os.defpath)
    return shutil.which(name, path=f"{path}:/usr/sbin:/sbin")


def kernel_name(path: Path) -> str | None:
    """The kernel's name of the block device at ``path``, such as ``nvme0n1``."""
    number = path.stat().st_rdev
    link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    return link.resolve().name if link.exists() else None


def whole_disk(name: str) -> str:
    """The disk of a partition; the name itself otherwise."""
    place = (SYS_BLOCK / name).resolve()
    return place.parent.name if (place / "partition").exists() else name


def read_line(path: Path) -> str | None:
    """One line of sysfs; None where it is absent, empty or unreadable."""
    try:
        return path.read_text("utf-8", errors="replace").strip().strip("\x00") or None
    except OSError:
        return None


def serial_of(name: str) -> str | None:
    """The serial number of disk ``name`` as the kernel, udev or smartctl tells it."""
    place = SYS_BLOCK / name
    for file in ("serial", "device/serial"):
        if found := read_line(place / file):
            return found
    try:
        page = (place / "device" / "vpd_pg80").read_bytes()
        if found := page[4:].decode("ascii", "replace").strip(" \x00"):
            return found
    except OSError:
        pass
    text = _output(["lsblk", "-dno", "SERIAL", f"/dev/{name}"]).strip()
    return text or str(smartctl_answer(name).get("serial_number", "")) or None


def backing_file(name: str) -> str | None:
    """The path of the file that loop device ``name`` is; None where it is no loop device."""
    try:
        path = (SYS_BLOCK / name / "loop" / "backing_file").read_bytes()
    except OSError:
        return None
    return os.fsdecode(path.removesuffix(b"\n")) or None


def mount_of(path: Path) -> Mount | None:
    """The mounted file system that holds ``path``, an absolute path without links."""
    return holding(mounts(), str(path))


def disk_of_file(path: Path) -> str | None:
    """The kernel's name of the one disk below the file system of ``path``, if it is one."""
    try:
        number = path.stat().st_dev
    except OSError:
        return None
    link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if link.exists():
        return whole_disk(link.resolve().name)
    mount = mount_of(path)
    source = Path(mount.source) if mount else None
    if source is not None and source.is_block_device() and (name := kernel_name(source)):
        return whole_disk(name)
    return None


def disk_below(path: Path) -> str | None:
    """The kernel's name of the disk that ``path`` is, or lies on, or would if it were made."""
    try:
        if path.is_block_device():
            name = kernel_name(path.resolve())
            return None if name is None else whole_disk(name)
    except OSError:
        return None
    whole = path.absolute()
    return disk_of_file(whole if whole.exists() else whole.parent)


def describe(disk: str | None, file: Path | None, *, redact: bool) -> dict[str, Any]:
    """The surroundings before a run: system, drive, and for a file its file system."""
    found: dict[str, Any] = {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
    }
    if file is not None and (mount := mount_of(file)):
        found["file_system"] = {"type": mount.kind, "options": ",".join(mount.options)}
        if not redact:
            found["file_system"]["mount_point"] = mount.point
    if disk is not None:
        found["drive"] = _drive(disk, redact=redact)
    return found


def smart(disk: str | None, *, redact: bool) -> dict[str, Any] | None:
    """smartctl's whole answer, or None where there is no smartctl, no right or no SMART."""
    answer = smartctl_answer(disk) if disk else {}
    useful = "smart_status" in answer or "nvme_smart_health_information_log" in answer
    if not useful:
        return None
    cleaned = _without_secrets(answer) if redact else answer
    assert isinstance(cleaned, dict)
    return cleaned


def _drive(disk: str, *, redact: bool) -> dict[str, Any]:
    place = SYS_BLOCK / disk
    sectors = read_line(place / "size")
    scheduler = read_line(place / "queue" / "scheduler") or ""
    active = re.search(r"\[([^\]]+)\]", scheduler)
    drive: dict[str, Any] = {
        "name": disk,
        "model": read_line(place / "device" / "model"),
        "firmware": read_line(place / "device" / "firmware_rev")
        or read_line(place / "device" / "rev"),
        "serial": serial_of(disk),
        "capacity_bytes": int(sectors) * 512 if sectors else None,
        "scheduler": active[1] if active else scheduler or None,
        "write_cache": read_line(place / "queue" / "write_cache"),
        "rotational": read_line(place / "queue" / "rotational") == "1",
        "logical_block_bytes": _number(place / "queue" / "logical_block_size"),
        "physical_block_bytes": _number(place / "queue" / "physical_block_size"),
        "nr_requests": _number(place / "queue" / "nr_requests"),
    }
    if redact and drive["serial"]:
        drive["serial"] = REDACTED
    return {key: value for key, value in drive.items() if value is not None}


def _number(path: Path) -> int | None:
    line = read_line(path)
    return int(line) if line and line.isdigit() else None


def smartctl_answer(disk: str, amount: str = "-a") -> dict[str, Any]:
    """What smartctl says of a disk, its complaints included; empty where it says nothing.

    ``amount``: ``-a`` for what a drive of its kind tells, ``-x`` for all of it.
    """
    program = system_program("smartctl")
    if program is None:
        return {}
    try:
        answer = json.loads(_output([program, "--json", amount, f"/dev/{disk}"]) or "{}")
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def _without_secrets(value: object) -> object:
    """The answer with everything that identifies the one drive struck out."""
    if isinstance(value, dict):
        return {
            key: REDACTED if key in _SECRETS else _without_secrets(one)
            for key, one in value.items()
            if key != "local_time"
        }
    if isinstance(value, list):
        return [_without_secrets(one) for one in value]
    return value
