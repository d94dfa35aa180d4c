"""The ways to purge a drive, strongest first, and which of them a drive has.

A purge brings a drive back to where no page holds data: all blocks erased, the table of where data
lies emptied (SNIA PTS: ATA secure erase, NVMe format, else TRIM). Overwriting is none: after it
every page holds data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ssdlab.admin import identify, programs
from ssdlab.admin.identify import AtaSecurity, NvmeErase
from ssdlab.admin.nvme import controller, other_namespaces
from ssdlab.care.layers import discard_limit
from ssdlab.fio.surroundings import SYS_BLOCK, system_program
from ssdlab.safety import BlockDevice


@dataclass(frozen=True)
class Kind:
    """A way to purge."""

    name: str
    summary: str
    real: bool
    """Whether the drive itself erases all it holds, the spare area too."""
    outcome: str
    """What can be relied on afterwards, for people."""


_ERASED = "all flash blocks were erased, the spare area too: the drive is as new, but for its wear"
_KEY = "the key to all data was destroyed and all blocks are free; the flash is erased as needed"
_TRIM_ONLY = (
    "TRIM of everything is no real purge: the drive may erase late, keep data in its spare area, "
    "or not regain the speed of a new drive"
)

KINDS = {
    one.name: one
    for one in (
        Kind("nvme-sanitize", "NVMe sanitize, block erase", True, _ERASED),
        Kind("nvme-format", "NVMe format with user data erase", True, _ERASED),
        Kind("nvme-sanitize-crypto", "NVMe sanitize, crypto erase", True, _KEY),
        Kind("nvme-format-crypto", "NVMe format with crypto erase", True, _KEY),
        Kind("ata-erase-enhanced", "ATA enhanced secure erase", True, _ERASED),
        Kind("ata-erase", "ATA secure erase", True, _ERASED),
        Kind(
            "secure-discard",
            "secure discard of all blocks",
            True,
            "all blocks were erased with the copies that the device had made of them",
        ),
        Kind("discard", "TRIM of all blocks", False, _TRIM_ONLY),
        Kind(
            "punch",
            "all of the file made a hole",
            False,
            "this is no real purge: the blocks became free space of the file system, and whether "
            "the drive below has erased them nobody can tell; ssdlab trim hands them to it",
        ),
    )
}


@dataclass(frozen=True)
class Method:
    """A way to purge one device, or why it is closed."""

    kind: Kind
    obstacle: str | None = None
    """Why it cannot be used; None where it can."""
    expected_s: float | None = None
    """How long the drive expects it to take."""

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return self.kind.name

    @property
    def real(self) -> bool:
        """Whether it is a real purge."""
        return self.kind.real


def available(device: BlockDevice) -> list[Method]:
    """Every way to purge that such a device may have, strongest first, with what is in the way.

    Asks the drive what it can do; changes nothing.
    """
    methods: list[Method] = []
    if device.name.startswith("nvme"):
        methods += _nvme(device)
    elif _is_ata(device):
        methods += _ata(device)
    elif device.name.startswith("mmcblk"):
        methods.append(Method(KINDS["secure-discard"]))
    obstacle = None if discard_limit(device.name) else "the device does not take TRIM"
    return [*methods, Method(KINDS["discard"], obstacle)]


def remark(device: BlockDevice) -> str | None:
    """Why a drive that might erase itself is not asked to; None where there is nothing to say."""
    if not re.match(r"sd[a-z]+$", device.name) or _is_ata(device):
        return None
    if _behind_usb(device):
        return "the drive is behind a USB bridge, and erase commands are not sent through one"
    return "for SCSI and SAS drives only TRIM is supported: FORMAT UNIT and SANITIZE are not sent"


# --- NVMe


def _nvme(device: BlockDevice) -> list[Method]:
    names = ("nvme-sanitize", "nvme-format", "nvme-sanitize-crypto", "nvme-format-crypto")
    if system_program("nvme") is None:
        missing = "nvme-cli is not installed: sudo apt install nvme-cli"
        return [Method(KINDS[name], missing) for name in names]
    control = controller(device.name)
    said = programs.run(["nvme", "id-ctrl", control, "-o", "json"])
    can = identify.nvme_erase(said.out) if said.status == 0 else None
    if can is None:
        return [Method(KINDS[name], f"nvme id-ctrl fails: {said.complaint}") for name in names]
    others = other_namespaces(device.name, control)
    return [Method(KINDS[name], _nvme_obstacle(name, can, others)) for name in names]


def _nvme_obstacle(name: str, can: NvmeErase, others: str | None) -> str | None:
    known = {
        "nvme-sanitize": can.sanitize_block,
        "nvme-format": can.format,
        "nvme-sanitize-crypto": can.sanitize_crypto,
        "nvme-format-crypto": can.format and can.format_crypto,
    }[name]
    if not known:
        return "the drive does not know it"
    wide = "sanitize" in name or can.format_erases_all
    return f"it would erase more than this namespace: {others}" if wide and others else None


# --- ATA


def _is_ata(device: BlockDevice) -> bool:
    # The vendor that libata puts before every ATA drive.
    try:
        vendor = (SYS_BLOCK / device.name / "device" / "vendor").read_text("ascii").strip()
    except (OSError, ValueError):
        return False
    return vendor == "ATA" and not _behind_usb(device)


def _behind_usb(device: BlockDevice) -> bool:
    return any(part.startswith("usb") for part in (SYS_BLOCK / device.name).resolve().parts)


def _ata(device: BlockDevice) -> list[Method]:
    names = ("ata-erase-enhanced", "ata-erase")
    if system_program("hdparm") is None:
        missing = "hdparm is not installed: sudo apt install hdparm"
        return [Method(KINDS[name], missing) for name in names]
    security = security_of(device.path)
    obstacle = _ata_obstacle(security)
    if security is None or obstacle is not None:
        return [Method(KINDS[name], obstacle) for name in names]
    weak = None if security.enhanced else "the drive does not know it"
    return [
        Method(KINDS[names[0]], weak, _seconds(security.enhanced_minutes)),
        Method(KINDS[names[1]], None, _seconds(security.minutes)),
    ]


def security_of(path: Path) -> AtaSecurity | None:
    """The state of the drive's password, as hdparm tells it."""
    return identify.ata_security(programs.run(["hdparm", "-I", str(path)]).out)


def _ata_obstacle(security: AtaSecurity | None) -> str | None:
    if security is None or not security.supported:
        return "the drive does not know it"
    if security.frozen:
        return (
            "the drive is frozen (firmware locks the command at start); "
            "suspend and wake the machine, or unplug and replug the drive, and try again"
        )
    if security.locked or security.enabled:
        return "the drive has a password; clear it with hdparm --security-disable first"
    return None


def _seconds(minutes: int | None) -> float | None:
    return None if minutes is None else 60.0 * minutes
