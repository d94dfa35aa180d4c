"""The health of drives as an answer: verdicts, what they rest on, what the drives tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ssdlab import units
from ssdlab.answer import INTERVAL, Answer, Cell, Column, Section, Table, Verdict, columns, table
from ssdlab.smart import Health, Projection
from ssdlab.smart.report import HealthReport
from ssdlab.smart.verdict import worst
from ssdlab.units import size_text

NOT_REPORTED = "not reported"
FAR_YEARS = 30
"""Beyond this a projection says no more than that it is far."""


def answer(
    reports: Sequence[HealthReport], data: Mapping[str, Any], *, alone: bool,
    attributes: bool = False, notes: Sequence[str] = (),
) -> Answer:  # fmt: skip
    """All that is said of a drive that is asked for ``alone``; else a row of each drive and what
    needs attention. ``data`` is the document for scripts."""
    if alone:
        report = reports[0]
        title = f"{report.health.model or report.name}: {report.verdict}"
        said = _sentences(report)
        tables = [findings(reports, calm=True), _metrics(report)]
    else:
        title = f"Health of {units.counted(len(reports), 'drive')}"
        needing = sum(report.verdict != "good" for report in reports)
        said = [f"{needing or 'no'} drive{'s need' if needing > 1 else ' needs'} attention"]
        tables = [_drives(reports), findings(reports, calm=False)]
    if attributes:
        tables += attribute_tables(reports)
    code = worst([finding for report in reports for finding in report.findings])
    lead = Section(said, tables=tables, key="health", title="Health", verdict=Verdict(code.value))
    return Answer(title, "health", [lead], notes=notes, data=data)


def _titles(reports: Sequence[HealthReport]) -> list[str]:
    """The models; where several drives are of one, with the names they were asked for by."""
    models = [report.health.model for report in reports]

    def title(report: HealthReport) -> str:
        model = report.health.model
        if not model:
            return report.name
        return model if models.count(model) == 1 else f"{model} ({report.name})"

    return [title(report) for report in reports]


def _drives(reports: Sequence[HealthReport]) -> Table:
    def errors(report: HealthReport) -> Cell:
        health = report.health
        counters = (health.media_errors, health.uncorrectable, health.pending)
        told = [counter for counter in counters if counter is not None]
        return Cell(sum(told) if told else None, text=f"{sum(told):,}" if told else "")

    return table(
        "Drives",
        zip(_titles(reports), reports, strict=True),
        {
            "drive": lambda row: row[0],
            "verdict": lambda row: row[1].verdict.value,
            "used [%]": lambda row: row[1].health.used_percent,
            "spare [%]": lambda row: row[1].health.spare_percent,
            "temp. [°C]": lambda row: row[1].health.temperature_c,
            "hours": lambda row: row[1].health.power_on_hours,
            "written [B]": lambda row: _bytes(row[1].health.written_bytes),
            "per day [B]": lambda row: _bytes(row[1].projection.written_bytes_per_day),
            "WA": lambda row: row[1].health.write_amplification,
            "errors": lambda row: errors(row[1]),
            "life left [=days]": lambda row: _life(row[1].projection),
        },
        parts={"life left": ("value", *INTERVAL)},
    )


def _life(carried: Projection) -> Cell | None:
    """For programs with the bounds that wear in whole percents leaves."""
    if carried.days_left is None:
        return None
    low, high = carried.days_left_least, carried.days_left_most
    return Cell(carried.days_left, text=_days(carried.days_left), low=low, high=high)


def _bytes(size: float | None) -> Cell:
    return Cell(size, text="" if size is None else amount(size))


def findings(reports: Sequence[HealthReport], *, calm: bool) -> Table:
    """``calm``: those of a good drive too, and without its name."""
    heads = "verdict | finding | evidence"
    rows = []
    for title, report in zip(_titles(reports), reports, strict=True):
        for finding in report.findings:
            if calm or finding.severity != "good":
                row = [finding.severity.value, finding.what, finding.evidence]
                rows.append(row if calm else [title, *row])
    return Table("Findings", columns(heads if calm else f"drive | {heads}"), rows)


def _metrics(report: HealthReport) -> Table:
    origins = report.health.origins
    rows = [
        [what, value, origins.get(field, "").partition(": ")[0]]
        for what, value, field in _values(report.health, report.projection)
    ]
    value = Column("value", parts=("value", "unit", "remark"))
    return Table("Metrics", [Column("metric"), value, Column("read from")], rows)


def _values(health: Health, carried: Projection) -> list[tuple[str, Cell | str, str]]:
    """The rows of the table of one drive: what, value, field of its origin."""
    rows = list(_all_values(health, carried))
    # What drives of its kind have no word for is not missing.
    flash = {"percentage used", "available spare", "NAND writes", "write amplification (WA)"}
    foreign = {
        "NVMe": {"uncorrectable errors", "pending sectors", "reallocated", "CRC errors"},
        "SATA": {"media errors", "time above limit"},
        "SAS": {"uncorrectable errors", "pending sectors", "CRC errors", "time above limit"},
        "simulated": {row[0] for row in rows if row[1] == NOT_REPORTED},
    }.get(health.interface or "", set())
    if health.is_ssd is False:
        foreign = foreign | flash
    return [row for row in rows if row[0] not in foreign]


def _all_values(health: Health, carried: Projection) -> Iterator[tuple[str, Cell | str, str]]:
    limit, waf = health.temperature_limit_c, health.write_amplification
    warm = _maybe(health.temperature_c, "{} °C", f"limit {limit} °C" if limit else "")
    kind = {True: "SSD", False: "hard disk", None: f"SSD or hard disk: {NOT_REPORTED}"}
    threshold = ""
    if health.spare_threshold_percent is not None and health.spare_percent is not None:
        threshold = f"threshold {health.spare_threshold_percent:.3g} %"
    yield "family", health.family or NOT_REPORTED, ""
    yield "firmware", health.firmware or NOT_REPORTED, ""
    yield "serial number", health.serial or NOT_REPORTED, ""
    yield "capacity", _amount(health.capacity_bytes), ""
    yield "interface", f"{health.interface or NOT_REPORTED}, {kind[health.is_ssd]}", ""
    yield "power-on time", _maybe(health.power_on_hours, "{:,.0f} h"), ""
    yield "power cycles", _maybe(health.power_cycles, "{:,}"), ""
    yield "unsafe shutdowns", _maybe(health.unsafe_shutdowns, "{:,}"), "unsafe_shutdowns"
    yield "temperature", warm, "temperature_limit_c"
    yield "time above limit", _maybe(health.minutes_too_warm, "{:,} min"), ""
    yield "percentage used", _percent(health.used_percent), "used_percent"
    yield "available spare", _percent(health.spare_percent, threshold), "spare_percent"
    yield "media errors", _maybe(health.media_errors, "{:,}"), "media_errors"
    yield "uncorrectable errors", _maybe(health.uncorrectable, "{:,}"), "uncorrectable"
    yield "pending sectors", _maybe(health.pending, "{:,}"), "pending"
    yield "reallocated", _maybe(health.reallocated, "{:,}"), "reallocated"
    yield "CRC errors", _maybe(health.crc_errors, "{:,}"), "crc_errors"
    yield "host writes", _amount(health.written_bytes), "written_bytes"
    yield "host reads", _amount(health.read_bytes), "read_bytes"
    yield "NAND writes", _amount(health.nand_bytes), "nand_bytes"
    yield "write amplification (WA)", _maybe(waf, units.number(waf)), "host_pages"
    yield "host writes per day", _amount(carried.written_bytes_per_day), ""


def _sentences(report: HealthReport) -> list[str]:
    """What does not fit a table: projection, change, unknown attributes, notes."""
    health, carried = report.health, report.projection
    said = [_outlook(carried)]
    if (since := carried.since) is not None:
        parts = [f"host writes {amount(since.written_bytes)}"]
        parts += [f"host reads {amount(since.read_bytes)}"]
        if since.nand_bytes is not None:
            parts.append(f"NAND writes {amount(since.nand_bytes)}")
        if since.write_amplification is not None:
            parts.append(f"WA {units.number(since.write_amplification)}")
        apart = "" if since.seconds is None else f", {units.duration(since.seconds)} apart"
        said.append(f"between {carried.snapshots} snapshots{apart}: {', '.join(parts)}")
    if health.unknown:
        named = ", ".join(
            f"{attribute.id} {attribute.name} = {attribute.text}" for attribute in health.unknown
        )
        said.append(f"unknown attributes, not judged: {named}")
    said.extend(f"note: {note}" for note in health.notes)
    return said


def _outlook(carried: Projection) -> str:
    """How long the drive lasts, and what that rests on."""
    if carried.days_left is None and carried.bytes_left is None:
        return f"remaining life could not be projected: {carried.assumption}"
    parts = []
    if carried.days_left is not None:
        parts.append(f"{_days(carried.days_left)}{_range(carried)}")
    if carried.bytes_left is not None:
        parts.append(f"{amount(carried.bytes_left)} of host writes")
    return f"projected remaining life: {' or '.join(parts)}, {carried.assumption}"


def _range(carried: Projection) -> str:
    """The bounds of the projection, where wear is reported in whole percents."""
    least, most = carried.days_left_least, carried.days_left_most
    if least is None or carried.days_left is None or least > FAR_YEARS * 365.25:
        return ""
    longest = "no upper bound" if most is None else _days(most)
    return f" ({_days(least)} to {longest}, as wear is reported in steps of 1 %)"


def _days(days: float) -> str:
    if days > FAR_YEARS * 365.25:
        return f"> {FAR_YEARS} years"
    if days >= 730:
        return f"{days / 365.25:.1f} years"
    return f"{days:.1f} days" if days < 10 else f"{days:.0f} days"


def attribute_tables(reports: Sequence[HealthReport]) -> list[Table]:
    """Every attribute of ATA drives, with its meaning."""
    made = (
        table(
            f"Attributes of {title}",
            report.health.attributes,
            {
                "id": lambda one: str(one.id),
                "name": lambda one: one.name,
                "value": lambda one: one.value,
                "worst": lambda one: one.worst,
                "threshold": lambda one: one.threshold,
                "raw": lambda one: (
                    Cell(float(one.text), text=one.text) if one.text.isdecimal() else one.text
                ),
                "meaning": lambda one: one.meaning or "unknown",
                "source": lambda one: one.source or "",
            },
        )
        for title, report in zip(_titles(reports), reports, strict=True)
    )
    return [one for one in made if one.rows]


def amount(size: float | None) -> str:
    """Bytes for people, in decimal units as drives are sold."""
    if size is None:
        return NOT_REPORTED
    return size_text(size)


def _percent(value: float | None, remark: str = "") -> Cell | str:
    return _maybe(value, "{:.3g} %", remark)


def _amount(size: float | None) -> Cell | str:
    return NOT_REPORTED if size is None else Cell(size, text=amount(size), unit="B")


def _maybe(value: float | None, words: str, remark: str = "") -> Cell | str:
    """A value as ``words`` write it; what stands behind the number there is its unit."""
    if value is None:
        return NOT_REPORTED
    text = words.format(value) + (f" ({remark})" if remark else "")
    return Cell(float(value), text=text, unit=words.partition("}")[2].strip(), remark=remark)
