"""What a drive says that it can do about erasing itself: the answers of nvme-cli and hdparm read.

Only texts come in and only facts go out; nothing here talks to a drive.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NvmeErase:
    """From Identify Controller (NVM Express base specification, figure "Identify Controller")."""

    format: bool
    """OACS bit 1: knows Format NVM."""
    format_erases_all: bool
    """FNA bit 1: an erase by Format reaches every namespace, not one alone."""
    format_crypto: bool
    """FNA bit 2: Format may erase by changing the key."""
    format_shared: bool
    """FNA bit 0: a format goes to every namespace, not to one alone."""
    volatile_cache: bool
    """VWC bit 0: has a volatile write cache."""
    sanitize_block: bool
    """SANICAP bit 1."""
    sanitize_crypto: bool
    """SANICAP bit 0."""


@dataclass(frozen=True)
class LbaFormat:
    """From Identify Namespace: a format that the namespace may have."""

    index: int
    data_bytes: int
    metadata_bytes: int
    in_use: bool
    relative_performance: int
    """0 the best, 3 the worst."""

    @property
    def name(self) -> str:
        """``4096``, or ``512+8`` with bytes of metadata."""
        return f"{self.data_bytes}" + (f"+{self.metadata_bytes}" if self.metadata_bytes else "")


@dataclass(frozen=True)
class Sanitize:
    """From the log page Sanitize Status."""

    state: str
    """``idle``, ``running``, ``done`` or ``failed``."""
    fraction: float


@dataclass(frozen=True)
class AtaSecurity:
    """From the Security section of ``hdparm -I`` (ATA feature set Security)."""

    supported: bool
    enabled: bool
    """A password is set."""
    locked: bool
    frozen: bool
    """No such command is taken until the drive loses power."""
    enhanced: bool
    minutes: int | None
    """What a secure erase takes, as the drive expects; None where it does not say."""
    enhanced_minutes: int | None


def nvme_erase(text: str) -> NvmeErase | None:
    """Reads ``nvme id-ctrl -o json``; None where it is no such answer."""
    answer = _object(text)
    try:
        oacs, fna = int(answer["oacs"]), int(answer["fna"])
        sanicap, vwc = int(answer.get("sanicap", 0)), int(answer.get("vwc", 0))
    except (KeyError, TypeError, ValueError):
        return None
    return NvmeErase(
        format=bool(oacs & 2),
        format_erases_all=bool(fna & 2),
        format_crypto=bool(fna & 4),
        format_shared=bool(fna & 1),
        volatile_cache=bool(vwc & 1),
        sanitize_block=bool(sanicap & 2),
        sanitize_crypto=bool(sanicap & 1),
    )


def nvme_formats(text: str) -> list[LbaFormat]:
    """Reads ``nvme id-ns -o json``; empty where it is no such answer."""
    answer = _object(text)
    try:
        flbas = int(answer["flbas"])
        # Bits 6:5 go above bits 3:0 where there are more than 16 formats.
        current = (flbas & 0xF) | (flbas >> 1 & 0x30)
        return [
            LbaFormat(i, 1 << int(one["ds"]), int(one["ms"]), i == current, int(one.get("rp", 0)))
            for i, one in enumerate(answer["lbafs"])
            if int(one["ds"]) >= 9
        ]
    except (KeyError, TypeError, ValueError):
        return []


def nvme_feature(text: str) -> int | None:
    """Reads the value that ``nvme get-feature`` prints, of any version; None where it is none."""
    found = re.search(r"value\s*:\s*(?:0x)?([0-9a-fA-F]+)", text)
    return int(found[1], 16) if found else None


def ata_write_cache(text: str) -> bool | None:
    """Reads ``hdparm -W``: whether the write cache is on; None where it does not say."""
    found = re.search(r"write-caching\s*=\s*([01])\b", text)
    return None if found is None else found[1] == "1"


def nvme_namespaces(text: str) -> int | None:
    """How many namespaces ``nvme list-ns --all -o json`` names; None where it is no such answer."""
    listed = _object(text).get("nsid_list")
    return len(listed) if isinstance(listed, list) else None


def nvme_sanitize(text: str) -> Sanitize | None:
    """Reads ``nvme sanitize-log -o json`` of any version; None where it is no such answer.

    The status comes as a number, or as a text that begins with it, below a name that differs.
    """
    answer = _object(text)
    body = answer if "sprog" in answer else next(iter(answer.values()), None)
    if not isinstance(body, dict) or "sprog" not in body:
        return None
    status = body.get("sstat")
    texts = status.values() if isinstance(status, dict) else [status]
    number: int | None = None
    for one in texts:
        match = re.match(r"\((\d+)\)", one) if isinstance(one, str) else None
        if match:
            number = int(match[1]) & 7
        elif not isinstance(status, dict) and isinstance(one, int):
            number = one & 7
    if number is None:
        return None
    # 4: done, though not everything that was not in use could be deallocated.
    state = {0: "idle", 1: "done", 2: "running", 3: "failed", 4: "done"}.get(number, "failed")
    return Sanitize(state, min(1.0, int(body["sprog"]) / 65535))


def ata_security(text: str) -> AtaSecurity | None:
    """Reads the Security section of ``hdparm -I``; None where there is none."""
    match = re.search(r"^Security:\s*$(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    if match is None:
        return None
    section = match[1]

    def said(word: str) -> bool:
        found = re.search(rf"^[ \t]*(not)?[ \t]*{word}\b(?!:)", section, re.MULTILINE)
        return found is not None and found[1] is None

    def minutes(prefix: str) -> int | None:
        found = re.search(rf"(\d+)min for {prefix}SECURITY ERASE UNIT", section)
        return int(found[1]) if found else None

    return AtaSecurity(
        supported=said("supported"),
        enabled=said("enabled"),
        locked=said("locked"),
        frozen=said("frozen"),
        enhanced=re.search(r"supported:\s*enhanced erase", section) is not None,
        minutes=minutes(""),
        enhanced_minutes=minutes("ENHANCED "),
    )


def _object(text: str) -> dict[str, Any]:
    # Some versions print a line of their own before the document.
    start = text.find("{")
    if start < 0:
        return {}
    try:
        answer, _ = json.JSONDecoder().raw_decode(text[start:])
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
