"""What NVMe drives tell of bytes programmed into flash: log pages beside the SMART log, which
counts the host's bytes alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ssdlab.fio.surroundings import NVME_LOGS
from ssdlab.json_access import at, text

MIB32 = 32 << 20
OCP_GUID = bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af")
"""AFD514C9-7C6F-4F9C-A4F2-BFEA2810AFC5, the first byte last: what a page C0h of the OCP carries."""


@dataclass(frozen=True)
class _Page:
    """A log page, and where the counter is in it."""

    number: str
    """As in `surroundings.NVME_LOGS`."""
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
    _Page("0xc0", _ocp, 1, "OCP Datacenter NVMe SSD specification, log page C0h: physical media"),
    _Page("0xca", _intel, MIB32, "Intel log page CAh, as nvme-cli's plugin reads it"),
    _Page("0xd0", _micron, 1, "Micron log page D0h, as nvme-cli's plugin reads it"),
)
"""The best first."""


def programmed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of :class:`ssdlab.smart.model.Health` about bytes programmed, as the first log page
    tells them that has them; empty where none does."""
    for page in PAGES:
        try:
            found = page.read(bytes.fromhex(text(at(document, NVME_LOGS), page.number) or ""))
        except ValueError:
            continue
        # A counter of nothing is one that the drive does not keep.
        if found:
            return {
                "nand_bytes": found * page.unit,
                "nand_step_bytes": page.unit,
                "origins": {"nand_bytes": page.source},
            }
    return {}
