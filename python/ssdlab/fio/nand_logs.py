"""What NVMe drives tell of bytes programmed into flash: log pages beside the SMART log, which
counts the host's bytes alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ssdlab.json_access import at, integer, text
from ssdlab.system import printed, system_program

KEY = "nvme_logs"
"""Where a snapshot has these pages beside what smartctl reads: by number, as hex."""
MIB32 = 32 << 20
INTEL, SOLIDIGM, MICRON = 0x8086, 0x025E, 0x1344
"""PCI vendors."""
OCP_GUID = bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af")
"""AFD514C9-7C6F-4F9C-A4F2-BFEA2810AFC5, the first byte last: what a page C0h of the OCP carries."""


@dataclass(frozen=True)
class _Page:
    """A log page, and where the counter is in it."""

    number: str
    size: int
    """Bytes."""
    vendors: tuple[int, ...]
    """Whose drives are asked for it; empty: all."""
    read: Callable[[bytes], int | None]
    """The counter, in units of ``unit`` bytes; None where the page is another vendor's."""
    unit: int
    source: str


def _ocp(page: bytes) -> int | None:
    known = len(page) >= 512 and page[496:512] == OCP_GUID
    return int.from_bytes(page[0:16], "little") if known else None


def _intel(page: bytes) -> int | None:
    """Entries of 12 bytes: key, normalized at 3, six bytes of raw value at 5."""
    for start in range(0, len(page) - 11, 12):
        if page[start] == 0xF4:
            return int.from_bytes(page[start + 5 : start + 11], "little")
    return None


def _micron(page: bytes) -> int | None:
    return int.from_bytes(page[176:184], "little") if len(page) >= 184 else None


PAGES = (
    _Page("0xc0", 512, (), _ocp, 1,
          "OCP Datacenter NVMe SSD specification, log page C0h: physical media"),
    _Page("0xca", 240, (INTEL, SOLIDIGM), _intel, MIB32,
          "Intel log page CAh, as nvme-cli's plugin reads it"),
    _Page("0xd0", 512, (MICRON,), _micron, 1, "Micron log page D0h, as nvme-cli's plugin reads it"),
)  # fmt: skip
"""The best first: those of vendors are of drives older than what the OCP agreed on."""


def pages(disk: str | None, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The log pages of a drive as nvme-cli dumps them, for a snapshot beside smartctl's ``answer``;
    empty where there is no nvme-cli or no such page."""
    program = system_program("nvme")
    if disk is None or program is None or "nvme_smart_health_information_log" not in answer:
        return {}
    vendor = integer(answer, "nvme_pci_vendor", "id")
    found = {}
    for page in PAGES:
        if page.vendors and vendor not in page.vendors:
            continue
        options = [f"--log-id={page.number}", f"--log-len={page.size}"]
        status, dump = printed([program, "get-log", f"/dev/{disk}", *options])
        # Lines such as ``0010: 7f 00 ... "..."``.
        lines = re.findall(r"^[0-9a-f]+:((?: [0-9a-f]{2}){1,16})", dump, re.MULTILINE)
        if status == 0 and lines:
            found[page.number] = "".join(lines).replace(" ", "")
    return {KEY: found} if found else {}


def programmed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of :class:`ssdlab.smart.model.Health` about bytes programmed, as the first log page of
    a snapshot tells them that has them; empty where none does."""
    for page in PAGES:
        try:
            counter = page.read(bytes.fromhex(text(at(document, KEY), page.number) or ""))
        except ValueError:
            continue
        # A counter of nothing is one that the drive does not keep.
        if counter:
            return {
                "nand_bytes": counter * page.unit,
                "nand_step_bytes": page.unit,
                "origins": {"nand_bytes": page.source},
            }
    return {}
