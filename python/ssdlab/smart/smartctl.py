"""Reads what ``smartctl --json`` writes, of NVMe, SATA and SAS drives."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ssdlab.errors import InputError
from ssdlab.fio import nand_logs
from ssdlab.json_access import at, count, integer, number, rows, text, truth
from ssdlab.smart.attributes import Meaning, meaning_of, meanings
from ssdlab.smart.model import Attribute, Health
from ssdlab.units import counted

DATA_UNIT = 512_000
"""Bytes of an NVMe data unit: a thousand units of 512 bytes (NVMe base specification)."""

HOW_TO = "smartctl --json -x /dev/DRIVE > drive.json writes one"

CRITICAL = (
    "the spare is below its threshold",
    "the temperature is above or below its threshold",
    "reliability is degraded by many media errors or an internal error",
    "the medium is read-only",
    "the backup of volatile memory has failed (power loss would lose data)",
    "the persistent memory region is unreliable or read-only",
)
"""Bits of NVMe's critical warning (NVMe base specification, SMART / Health Information log)."""

_ERRORS = frozenset({"reallocated", "pending", "uncorrectable", "crc_errors", "unsafe_shutdowns"})
"""Fields that several attributes may fill; the largest counts."""
_EXIT_NOT_OPEN = 0b11
_EXIT_LOG_OF_TESTS = 0b1000_0000
_EXIT_NOT_ALL = 0b100


def read_document(content: str, name: str) -> dict[str, Any]:
    """The JSON object in ``content``; InputError where it is no JSON, or no object."""
    if not content.strip():
        raise InputError(f"{name}: is empty; {HOW_TO}")
    try:
        found = json.loads(content)
    except RecursionError:
        raise InputError(f"{name}: is no JSON that smartctl writes (nested too deep)") from None
    except ValueError as error:
        where = (
            f" (line {error.lineno}: {error.msg})"
            if isinstance(error, json.JSONDecodeError)
            else ""
        )
        raise InputError(f"{name}: is no JSON, or only the beginning of one{where}") from None
    if not isinstance(found, dict):
        raise InputError(f"{name}: is no object of JSON, as smartctl writes; {HOW_TO}")
    return found


def parse(document: Mapping[str, Any], name: str) -> Health:
    """The drive that a document of ``smartctl --json`` describes; InputError where it is not from
    smartctl, says that smartctl failed, or holds no SMART data."""
    if not isinstance(document.get("smartctl"), dict):
        hint = "it is a result of fio without SMART data; " if "fio version" in document else ""
        raise InputError(f'{name}: is not from smartctl (no "smartctl" in it); {hint}{HOW_TO}')
    _refuse_failure(document, name)
    if at(document, "nvme_smart_health_information_log") is not None:
        return Health(**{**_common(document), **_nvme(document)})
    if next(rows(document, "ata_smart_attributes", "table"), None) is not None:
        return Health(**{**_common(document), **_ata(document)})
    if _is_scsi(document):
        return Health(**{**_common(document), **_scsi(document)})
    if truth(document, "smart_status", "passed") is not None:
        return Health(**_common(document))
    what = text(document, "model_name") or text(document, "scsi_model_name") or "the device"
    raise InputError(f"{name}: {what} reports no SMART data{_because(document)}")


def _refuse_failure(document: Mapping[str, Any], name: str) -> None:
    """Raises where smartctl itself says that it could not look."""
    status = integer(document, "smartctl", "exit_status") or 0
    said = "; ".join(_messages(document)).rstrip(".")
    if not status & _EXIT_NOT_OPEN:
        return
    lower = said.lower()
    if "permission denied" in lower:
        raise InputError(f"{name}: no permission to ask the drive ({said}); run as root")
    if "standby" in lower or "sleep" in lower:
        raise InputError(f"{name}: the drive is in standby, and smartctl did not wake it ({said})")
    raise InputError(f"{name}: smartctl could not read the drive ({said or f'exit {status}'})")


def _messages(document: Mapping[str, Any]) -> list[str]:
    found = (
        text(one, "string")
        for one in rows(document, "smartctl", "messages")
        if text(one, "severity") != "information"
    )
    return list(dict.fromkeys(one for one in found if one))


def _because(document: Mapping[str, Any]) -> str:
    if truth(document, "smart_support", "available") is False:
        return " (it has no SMART)"
    if truth(document, "smart_support", "enabled") is False:
        return " (SMART is switched off; smartctl --smart=on switches it on)"
    return " (smartctl -a or -x asks for it)"


def _common(document: Mapping[str, Any]) -> dict[str, Any]:
    """What every kind of drive tells alike."""
    protocol = text(document, "device", "protocol")
    rotation = count(document, "rotation_rate")
    ssd = None if rotation is None else rotation == 0
    minutes = count(document, "power_on_time", "minutes") or 0
    hours = count(document, "power_on_time", "hours")
    status = integer(document, "smartctl", "exit_status") or 0
    # Older versions of smartctl name what SCSI drives tell without the prefix.
    sas = (
        text(document, "scsi_vendor") or text(document, "vendor"),
        text(document, "scsi_product") or text(document, "product"),
    )
    revision = text(document, "scsi_revision") or text(document, "revision")
    model = text(document, "model_name") or text(document, "scsi_model_name")
    notes = _messages(document)
    if status & _EXIT_NOT_ALL:
        notes.append("some commands to the drive failed, so values may be missing")
    if logged := count(document, "ata_smart_error_log", "summary", "count"):
        notes.append(f"its error log counts {counted(logged, 'error')}; see smartctl -l error")
    return {
        "model": model or " ".join(one for one in sas if one) or None,
        "family": text(document, "model_family"),
        "firmware": text(document, "firmware_version") or revision,
        "serial": text(document, "serial_number"),
        "capacity_bytes": count(document, "user_capacity", "bytes")
        or count(document, "nvme_total_capacity"),
        "interface": {"NVMe": "NVMe", "ATA": "SATA", "SCSI": "SAS"}.get(protocol or ""),
        "is_ssd": True if protocol == "NVMe" else ssd,
        "taken_s": count(document, "local_time", "time_t"),
        "passed": truth(document, "smart_status", "passed"),
        "self_test_failed": bool(status & _EXIT_LOG_OF_TESTS),
        "power_on_hours": None if hours is None else hours + minutes / 60,
        "power_cycles": count(document, "power_cycle_count")
        if count(document, "power_cycle_count") is not None
        else count(document, "scsi_start_stop_cycle_counter", "accumulated_start_stop_cycles"),
        "temperature_c": _temperature(document),
        "temperature_limit_c": _limit(document, "op_limit_max", "drive_trip"),
        "temperature_critical_c": _limit(document, "critical_limit_max", "limit_max"),
        "notes": tuple(notes),
    }


def _temperature(document: Mapping[str, Any]) -> int | None:
    """The temperature; some SAS drives tell 0 for it and the real one in their environment page."""
    now = integer(document, "temperature", "current")
    if now == 0 and text(document, "device", "protocol") == "SCSI":
        return integer(document, "scsi_environmental_reports", "temperature_1", "current")
    return now


def _limit(document: Mapping[str, Any], *names: str) -> int | None:
    """A limit of temperature; 0 says that there is none."""
    found = (count(document, "temperature", name) for name in names)
    return next((one for one in found if one), None)


def _nvme(document: Mapping[str, Any]) -> dict[str, Any]:
    log = at(document, "nvme_smart_health_information_log")
    bits = count(log, "critical_warning") or 0
    written, read = count(log, "data_units_written"), count(log, "data_units_read")
    warm, hot = count(log, "warning_temp_time"), count(log, "critical_comp_time")
    return {
        "critical_warnings": tuple(words for bit, words in enumerate(CRITICAL) if bits >> bit & 1),
        "used_percent": number(log, "percentage_used"),
        "spare_percent": number(log, "available_spare"),
        "spare_threshold_percent": number(log, "available_spare_threshold"),
        "unsafe_shutdowns": count(log, "unsafe_shutdowns"),
        "media_errors": count(log, "media_errors"),
        "minutes_too_warm": None if warm is None and hot is None else (warm or 0) + (hot or 0),
        "minutes_critical": hot,
        "written_bytes": None if written is None else written * DATA_UNIT,
        "read_bytes": None if read is None else read * DATA_UNIT,
        "written_step_bytes": DATA_UNIT,
        **nand_logs.programmed(document),
    }


def _is_scsi(document: Mapping[str, Any]) -> bool:
    told = (
        "scsi_grown_defect_list",
        "scsi_error_counter_log",
        "scsi_percentage_used_endurance_indicator",
    )
    return any(document.get(key) is not None for key in told)


def _scsi(document: Mapping[str, Any]) -> dict[str, Any]:
    def errors(direction: str) -> int | None:
        return count(document, "scsi_error_counter_log", direction, "total_uncorrected_errors")

    def amount(direction: str) -> int | None:
        told = text(document, "scsi_error_counter_log", direction, "gigabytes_processed")
        good = told is not None and re.fullmatch(r"\d{1,15}(\.\d+)?", told)
        return round(float(told) * 1e9) if good and told else None

    found = [one for one in map(errors, ("read", "write", "verify")) if one is not None]
    return {
        "used_percent": number(document, "scsi_percentage_used_endurance_indicator"),
        "media_errors": sum(found) if found else None,
        "reallocated": count(document, "scsi_grown_defect_list"),
        "written_bytes": amount("write"),
        "read_bytes": amount("read"),
        "written_step_bytes": 1_000_000,
        "origins": {
            "reallocated": "grown defect list",
            "media_errors": "uncorrected errors of reading, writing and verifying",
        },
    }


def _ata(document: Mapping[str, Any]) -> dict[str, Any]:
    family = " ".join(
        one for one in (text(document, "model_family"), text(document, "model_name")) if one
    )
    known = truth(document, "in_smartctl_database")
    if known is None:
        known = text(document, "model_family") is not None
    ssd = count(document, "rotation_rate") == 0
    found: dict[str, Any] = {}
    origins: dict[str, str] = {}
    attributes = []
    ranks: dict[str, int] = {}
    for row in rows(document, "ata_smart_attributes", "table"):
        attribute, meaning = _attribute(row, family, known)
        if attribute is None:
            continue
        attributes.append(attribute)
        if meaning is None or not meaning.field:
            continue
        if not ssd and meaning.field in ("used_percent", "spare_percent"):
            continue  # of flash; a hard disk has neither
        _take(attribute, meaning, found, origins, ranks)
    _statistics(document, found, origins)
    if ssd:
        _summary(document, found, origins)
    return {**found, "origins": origins, "attributes": tuple(attributes)}


def _attribute(
    row: Mapping[str, Any], family: str, known: bool
) -> tuple[Attribute | None, Meaning | None]:
    identity, name = count(row, "id"), text(row, "name")
    if identity is None or name is None:
        return None, None
    meaning = meaning_of(identity, name, family, known)
    failed = text(row, "when_failed") or ""
    raw = count(row, "raw", "value")
    attribute = Attribute(
        id=identity,
        name=name,
        value=count(row, "value"),
        worst=count(row, "worst"),
        threshold=count(row, "thresh"),
        raw=raw,
        text=text(row, "raw", "string") or ("" if raw is None else str(raw)),
        prefailure=truth(row, "flags", "prefailure") or False,
        failed="now" if "now" in failed.lower() else "past" if failed.strip("- ") else "",
        meaning=None if meaning is None else meaning.what,
        source=None if meaning is None else meaning.source,
    )
    return attribute, meaning


def _take(
    attribute: Attribute,
    meaning: Meaning,
    found: dict[str, Any],
    origins: dict[str, str],
    ranks: dict[str, int],
) -> None:
    """Fills the field that an attribute means, unless a better one has."""
    value = _value(attribute, meaning)
    if value is None:
        return
    field = meaning.field
    before, rank = found.get(field), meanings().index(meaning)
    if before is not None:
        better = value > before if field in _ERRORS else rank < ranks[field]
        if not better:
            return
    found[field], ranks[field] = value, rank
    origins[field] = f"{attribute.id} {attribute.name}: {meaning.what} ({meaning.source})"
    if field == "spare_percent":
        found["spare_threshold_percent"] = (
            float(attribute.threshold) if attribute.threshold else None
        )
    if field in ("written_bytes", "nand_bytes"):
        found[field.replace("_bytes", "_step_bytes")] = meaning.unit


def _value(attribute: Attribute, meaning: Meaning) -> float | int | None:
    """The number that is meant; None where it is not there or contradicts itself."""
    parts = re.findall(r"\d+", attribute.text) if re.match(r"\d+(?![xX])", attribute.text) else []
    raw = int(parts[0]) if parts else attribute.raw
    percent = attribute.value is not None and attribute.value <= 100
    match meaning.how:
        case "raw":
            return None if raw is None else raw * meaning.unit
        case "second":
            return int(parts[1]) if len(parts) > 1 else None
        case "used raw":
            return float(raw) if raw is not None and raw <= 255 else None
        case "left":
            return 100.0 - attribute.value if percent and attribute.value is not None else None
        case "value":
            return float(attribute.value) if percent and attribute.value is not None else None
        case "left agreed":
            return 100.0 - raw if percent and raw is not None and raw == attribute.value else None
        case "used agreed":
            agree = attribute.value is not None and raw is not None and raw == 100 - attribute.value
            return float(raw) if agree and raw is not None else None
        case _:
            return None


_STATISTICS: Mapping[str, tuple[str, bool]] = {
    "Logical Sectors Written": ("written_bytes", True),
    "Logical Sectors Read": ("read_bytes", True),
    "Percentage Used Endurance Indicator": ("used_percent", False),
    "Number of Reported Uncorrectable Errors": ("uncorrectable", False),
    "Number of Interface CRC Errors": ("crc_errors", False),
    "Specified Maximum Operating Temperature": ("temperature_limit_c", False),
}
"""Device statistics (ATA Command Set, log 04h), which mean the same on every drive: the field, and
whether the unit is a logical sector."""


def _statistics(
    document: Mapping[str, Any], found: dict[str, Any], origins: dict[str, str]
) -> None:
    """Device statistics, where ``smartctl -x`` asked for them, come before vendors' attributes."""
    sector = count(document, "logical_block_size") or 512
    for page in rows(document, "ata_device_statistics", "pages"):
        for row in rows(page, "table"):
            name, value = text(row, "name"), count(row, "value")
            field, sectors = _STATISTICS.get(name or "", ("", False))
            if not field or value is None or truth(row, "flags", "valid") is False:
                continue
            if field == "temperature_limit_c" and value == 0:
                continue
            found[field] = value * sector if sectors else value
            origins[field] = f"device statistics, {name} (ATA Command Set)"
            if field == "written_bytes":
                found["written_step_bytes"] = sector
    if "used_percent" in found:
        found["used_percent"] = float(found["used_percent"])


def _summary(document: Mapping[str, Any], found: dict[str, Any], origins: dict[str, str]) -> None:
    """smartctl 7.4 and newer sum up wear and spare; they count where nothing else told them."""
    for field, told in (("used_percent", "endurance_used"), ("spare_percent", "spare_available")):
        value = number(document, told, "current_percent")
        if value is None or field in found:
            continue
        found[field], origins[field] = value, f"{told}, summed up by smartctl"
        if field == "spare_percent":
            found["spare_threshold_percent"] = number(document, told, "threshold_percent")
