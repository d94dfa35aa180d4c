"""The ways to purge a drive, strongest first, and which of them a drive has.

A purge brings a drive back to where no page holds data: all blocks erased, the table of where data
lies emptied (SNIA PTS: ATA secure erase, NVMe format, else TRIM). Overwriting is none: after it
every page holds data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ssdlab import admin
from ssdlab.admin import AtaSecurity, NvmeErase, abilities, controller, other_namespaces
from ssdlab.audits.scene import drive_called, stack
from ssdlab.errors import ExperimentError, MissingProgramError
from ssdlab.safety import BlockDevice
from ssdlab.system import System


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
    kind.name: kind
    for kind in (
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
    """Every way to purge that such a device may have, strongest first, with what is in the way;
    asks the drive what it can do and changes nothing."""
    bus = _bus(device)
    methods: list[Method] = []
    if bus == "NVMe":
        methods = _nvme(device)
    elif bus == "SATA":
        methods = _ata(device)
    elif bus == "MMC":
        methods = [Method(KINDS["secure-discard"])]
    obstacle = None if _takes_trim(device) else "the device does not take TRIM"
    return [*methods, Method(KINDS["discard"], obstacle)]


def remark(device: BlockDevice) -> str | None:
    """Why a drive that might erase itself is not asked to; None where there is nothing to say."""
    bus = _bus(device)
    if not re.match(r"sd[a-z]+$", device.name) or bus == "SATA":
        return None
    if bus == "USB":
        return "the drive is behind a USB bridge, and erase commands are not sent through one"
    return "for SCSI and SAS drives only TRIM is supported: FORMAT UNIT and SANITIZE are not sent"


def _bus(device: BlockDevice) -> str | None:
    return drive_called(System(), device.name).bus


def _takes_trim(device: BlockDevice) -> bool:
    return bool(stack(System(), device.name).takes_trim(System()))


def _closed(names: Iterable[str], why: str) -> list[Method]:
    return [Method(KINDS[name], why) for name in names]


def _nvme(device: BlockDevice) -> list[Method]:
    names = ("nvme-sanitize", "nvme-format", "nvme-sanitize-crypto", "nvme-format-crypto")
    control = controller(device.name)
    try:
        can = abilities(control)
    except ExperimentError as error:
        return _closed(names, error.message)
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


def _ata(device: BlockDevice) -> list[Method]:
    names = ("ata-erase-enhanced", "ata-erase")
    try:
        security = security_of(device.path)
    except MissingProgramError as error:
        return _closed(names, error.message)
    if security is None or not security.supported:
        return _closed(names, "the drive does not know it")
    if security.frozen:
        return _closed(
            names,
            "the drive is frozen (firmware locks the command at start); "
            "suspend and wake the machine, or unplug and replug the drive, and try again",
        )
    if security.locked or security.enabled:
        why = "the drive has a password; clear it with hdparm --security-disable first"
        return _closed(names, why)
    weak = None if security.enhanced else "the drive does not know it"
    return [
        Method(KINDS[names[0]], weak, _seconds(security.enhanced_minutes)),
        Method(KINDS[names[1]], None, _seconds(security.minutes)),
    ]


def security_of(path: Path) -> AtaSecurity | None:
    """The state of the drive's password, as hdparm tells it."""
    return admin.ata_security(admin.run(["hdparm", "-I", str(path)]).out)


def _seconds(minutes: int | None) -> float | None:
    return None if minutes is None else 60.0 * minutes
