"""What a measurement was made on: drive, firmware, kernel, scheduler, cache, file system, SMART."""

from __future__ import annotations

import contextlib
import json
import os
import platform
from pathlib import Path
from typing import Any

from ssdlab.fio import nand_logs
from ssdlab.system import CLASS, System, printed, system_program

_SECRETS = frozenset(
    """
    serial_number serial wwn logical_unit_id nvme_eui64 eui64 nguid uuid device_id
    """.split()
)
REDACTED = "redacted"


def serial_of(name: str, system: System | None = None) -> str | None:
    """The serial number of disk ``name`` as the kernel, udev or smartctl tells it; of a recorded
    system as the kernel does."""
    own = system or System()
    for file in ("serial", "device/serial"):
        if found := own.of(name, file):
            return found
    if not own.live:
        return None
    with contextlib.suppress(OSError):
        page = Path(f"/{CLASS}/{name}/device/vpd_pg80").read_bytes()
        if found := page[4:].decode("ascii", "replace").strip(" \x00"):
            return found
    text = printed(["lsblk", "-dno", "SERIAL", f"/dev/{name}"])[1].strip()
    return text or str(smartctl_answer(name).get("serial_number", "")) or None


def describe(disk: str | None, file: Path | None, *, redact: bool) -> dict[str, Any]:
    """The surroundings before a run: system, drive, and for a file its file system."""
    found: dict[str, Any] = {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
    }
    if file is not None and (mount := System().mount_of(str(file))):
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
    return cleaned | nand_logs.pages(disk, answer)


def _drive(disk: str, *, redact: bool) -> dict[str, Any]:
    system, queue = System(), f"{CLASS}/{disk}/queue"
    drive: dict[str, Any] = {
        "name": disk,
        "model": system.of(disk, "device/model"),
        "firmware": system.of(disk, "device/firmware_rev") or system.of(disk, "device/rev"),
        "serial": serial_of(disk),
        "capacity_bytes": system.bytes_of(disk) or None,
        "scheduler": system.chosen(f"{queue}/scheduler"),
        "write_cache": system.of(disk, "queue/write_cache"),
        "rotational": system.of(disk, "queue/rotational") == "1",
        "logical_block_bytes": system.number(f"{queue}/logical_block_size"),
        "physical_block_bytes": system.number(f"{queue}/physical_block_size"),
        "nr_requests": system.number(f"{queue}/nr_requests"),
    }
    if redact and drive["serial"]:
        drive["serial"] = REDACTED
    return {key: value for key, value in drive.items() if value is not None}


def smartctl_answer(disk: str, amount: str = "-a") -> dict[str, Any]:
    """What smartctl says of a disk, its complaints included; empty where it says nothing.
    ``amount``: ``-a`` for what a drive of its kind tells, ``-x`` for all of it."""
    program = system_program("smartctl")
    if program is None:
        return {}
    try:
        answer = json.loads(printed([program, "--json", amount, f"/dev/{disk}"])[1] or "{}")
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


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
