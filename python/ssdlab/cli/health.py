"""``ssdlab health``: what drives tell of themselves, a verdict, and how long they last."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ssdlab.cli.console import duration, stderr, stdout, table
from ssdlab.cli.options import KeptWhere, Redact
from ssdlab.errors import InputError
from ssdlab.health import Finding, Health, Projection, Snapshots, judge, load, project, worst
from ssdlab.health.change import same_drive
from ssdlab.health.history import in_order
from ssdlab.health.sources import history as snapshots_at
from ssdlab.rig import profiles
from ssdlab.store import RunStore, check_writable, write_whole
from ssdlab.units import size_text

NOT_TOLD = "not told"
FAR_YEARS = 30
"""Beyond this a projection says no more than that it is far."""


@dataclass(frozen=True)
class Report:
    """All that is said of one drive."""

    name: str
    health: Health
    findings: Sequence[Finding]
    projection: Projection


def command(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET",
            help="A drive (/dev/...), a document of smartctl --json, a folder of them, a run, "
            "or - for a document on standard input.",
        ),
    ],
    history: Annotated[
        list[str] | None,
        typer.Option(
            "--history",
            metavar="PATH",
            help="Earlier snapshots of the same drives: a document, a folder, a run, a folder of "
            "runs, or `runs` for all that are kept. May be given again.",
        ),
    ] = None,
    tbw: Annotated[
        str | None,
        typer.Option(
            "--tbw", metavar="SIZE", help="What may be written by the maker's rating, as 600TB."
        ),
    ] = None,
    attributes: Annotated[
        bool, typer.Option("--attributes", help="Show every attribute of ATA drives too.")
    ] = False,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE|-", help="Write all of it as JSON.")
    ] = None,
    redact: Redact = False,
    out: KeptWhere = None,
) -> None:
    """Say how worn and how healthy drives are, and how long they will last."""
    rating = None if tbw is None else parse_size(tbw)
    if json_ not in (None, "-"):
        check_writable(Path(json_ or ""))
    store = RunStore(out)
    drives = [drive for target in targets for drive in _load(target, store)]
    drives = _with_history(drives, history or [], store)
    if redact:
        drives = [drive.redacted(number) for number, drive in enumerate(drives, 1)]
    reports = [_report(drive, rating) for drive in drives]
    console = stderr() if json_ == "-" else stdout()
    if len(reports) == 1:
        _print_one(console, reports[0])
    else:
        _print_many(console, reports)
    if attributes:
        for report in reports:
            _print_attributes(console, report)
    if json_ is not None:
        text = json.dumps({"schema": 1, "drives": [document(one) for one in reports]}, indent=2)
        if json_ == "-":
            sys.stdout.write(text + "\n")
        else:
            write_whole(Path(json_), text + "\n")


def parse_size(text: str) -> float:
    """Bytes of a rating such as ``600TB``; without a unit it is in TB."""
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d+)?)\s*(GB|TB|PB)?W?\s*", text, re.IGNORECASE)
    size = 0.0 if found is None else float(found[1])
    if found is None or size == 0:
        raise InputError(f'--tbw "{text}": expected a size such as 600TB, 1.2PB or 800 (TB)')
    return size * {"GB": 1e9, "TB": 1e12, "PB": 1e15}[(found[2] or "TB").upper()]


def _load(target: str, store: RunStore) -> list[Snapshots]:
    if not Path(target).exists() and target in {one.name for one in profiles()}:
        raise InputError(
            f"{target}: is a profile, and a new drive has no history; "
            "run a job on it and give the run"
        )
    return load(target, store)


def _with_history(
    drives: Sequence[Snapshots], places: Sequence[str], store: RunStore
) -> list[Snapshots]:
    """The drives with their earlier snapshots, which are put to each by model and serial."""
    earlier = [(place, snapshots_at(place, store)) for place in places]
    for place, found in earlier:
        if not any(same_drive(one, drive.latest) for one in found for drive in drives):
            raise InputError(f"--history {place}: holds no snapshot of a drive that is asked for")
    whole = []
    for drive in drives:
        known = {_moment(one): one for one in drive.snapshots}
        for _, found in earlier:
            for one in found:
                if same_drive(one, drive.latest):
                    known.setdefault(_moment(one), one)
        whole.append(replace(drive, snapshots=tuple(in_order(list(known.values())))))
    return whole


def _moment(health: Health) -> tuple[object, ...]:
    """What two snapshots share only if they are the same one."""
    return health.taken_s, health.power_on_hours, health.written_bytes, health.read_bytes


def _report(drive: Snapshots, rating: float | None) -> Report:
    carried = project(drive.snapshots, rating)
    findings = judge(drive.latest)
    if carried.since is not None:
        findings = sorted([*carried.since.findings, *findings], key=lambda one: -one.severity.rank)
    return Report(drive.name, drive.latest, findings, carried)


def document(report: Report) -> dict[str, Any]:
    """The JSON object of one drive."""
    health = report.health
    return {
        "target": report.name,
        "verdict": worst(report.findings).value,
        "findings": [asdict(one) for one in report.findings],
        "health": {
            **asdict(health),
            "write_amplification": health.write_amplification,
            "left_percent": health.left_percent,
        },
        "projection": asdict(report.projection),
    }


def _print_one(console: Console, report: Report) -> None:
    health = report.health
    verdict = worst(report.findings)
    console.print(f"{health.model or report.name}: {verdict}", markup=False, soft_wrap=True)
    console.print()
    console.print(_findings([report]))
    console.print()
    rows = [
        [what, value, health.origins.get(field, "").partition(": ")[0]]
        for what, value, field in _values(health, report.projection)
    ]
    console.print(table([("what", "left"), ("value", "left"), ("read from", "left")], rows))
    for sentence in _sentences(report):
        console.print(sentence, markup=False, soft_wrap=True)


def _print_many(console: Console, reports: Sequence[Report]) -> None:
    heads = ["drive", "verdict", "used", "spare", "temp.", "hours", "written", "per day"]
    heads += ["write ampl.", "errors", "lasts"]
    columns = [(one, "left" if one in ("drive", "verdict") else "right") for one in heads]
    rows = [_row(one) for one in reports]
    console.print(table(columns, rows))
    console.print()
    console.print(_findings(reports, calm=False))


def _row(report: Report) -> list[str]:
    health, carried = report.health, report.projection
    told = [
        one
        for one in (
            health.media_errors,
            health.uncorrectable,
            health.pending,
        )
        if one is not None
    ]
    row = [
        health.model or report.name,
        worst(report.findings).value,
        _percent(health.used_percent),
        _percent(health.spare_percent),
        _maybe(health.temperature_c, "{} °C"),
        _maybe(health.power_on_hours, "{:,.0f}"),
        amount(health.written_bytes),
        amount(carried.written_bytes_per_day),
        _maybe(health.write_amplification, "{:.2f}"),
        f"{sum(told):,}" if told else NOT_TOLD,
        NOT_TOLD if carried.days_left is None else _days(carried.days_left),
    ]
    return ["-" if one == NOT_TOLD else one for one in row]


def _findings(reports: Sequence[Report], *, calm: bool = True) -> Any:
    """The findings of drives; ``calm``: those that ask for nothing too."""
    several = len(reports) > 1
    columns = [("verdict", "left"), ("finding", "left"), ("evidence", "left")]
    rows = []
    for report in reports:
        for one in report.findings:
            if not calm and one.severity == "good":
                continue
            row = [one.severity.value, one.what, one.evidence]
            rows.append([report.health.model or report.name, *row] if several else row)
    if several and not rows:
        return "nothing asks for attention"
    return table([("drive", "left"), *columns] if several else columns, rows)


def _values(health: Health, carried: Projection) -> list[tuple[str, str, str]]:
    """The rows of the table of one drive: what, value, field of its origin."""
    limit = health.temperature_limit_c
    warm = _maybe(health.temperature_c, "{} °C") + (f" (limit {limit} °C)" if limit else "")
    spare = _percent(health.spare_percent)
    if health.spare_threshold_percent is not None and health.spare_percent is not None:
        spare += f" (limit {_percent(health.spare_threshold_percent)})"
    rows = [
        ("family", health.family or NOT_TOLD, ""),
        ("firmware", health.firmware or NOT_TOLD, ""),
        ("serial", health.serial or NOT_TOLD, ""),
        ("capacity", amount(health.capacity_bytes), ""),
        ("interface", _interface(health), ""),
        ("time under power", _maybe(health.power_on_hours, "{:,.0f} h"), ""),
        ("times switched on", _maybe(health.power_cycles, "{:,}"), ""),
        ("power lost", _maybe(health.unsafe_shutdowns, "{:,} times"), "unsafe_shutdowns"),
        ("temperature", warm, "temperature_limit_c"),
        ("time too warm", _maybe(health.minutes_too_warm, "{:,} min"), ""),
        ("endurance used", _percent(health.used_percent), "used_percent"),
        ("spare blocks left", spare, "spare_percent"),
        ("media errors", _maybe(health.media_errors, "{:,}"), "media_errors"),
        ("uncorrectable", _maybe(health.uncorrectable, "{:,}"), "uncorrectable"),
        ("pending", _maybe(health.pending, "{:,}"), "pending"),
        ("reallocated", _maybe(health.reallocated, "{:,}"), "reallocated"),
        ("CRC errors", _maybe(health.crc_errors, "{:,}"), "crc_errors"),
        ("written by the host", amount(health.written_bytes), "written_bytes"),
        ("read by the host", amount(health.read_bytes), "read_bytes"),
        ("programmed into flash", amount(health.nand_bytes), "nand_bytes"),
        ("write amplification", _maybe(health.write_amplification, "{:.2f}"), "host_pages"),
        ("written per day", amount(carried.written_bytes_per_day), ""),
    ]
    # What drives of its kind have no word for is not missing.
    flash = {"endurance used", "spare blocks left", "programmed into flash", "write amplification"}
    foreign = {
        "NVMe": {"uncorrectable", "pending", "reallocated", "CRC errors"},
        "SATA": {"media errors", "time too warm"},
        "SAS": {"uncorrectable", "pending", "CRC errors", "time too warm"},
        "simulated": {row[0] for row in rows if row[1] == NOT_TOLD},
    }.get(health.interface or "", set())
    if health.is_ssd is False:
        foreign = foreign | flash
    return [row for row in rows if row[0] not in foreign]


def _interface(health: Health) -> str:
    kind = {True: "SSD", False: "hard disk", None: "not told whether SSD or hard disk"}
    return f"{health.interface or NOT_TOLD}, {kind[health.is_ssd]}"


def _sentences(report: Report) -> list[str]:
    """What does not fit a table: change, projection, unknown attributes, notes."""
    health, carried = report.health, report.projection
    said = []
    if (since := carried.since) is not None:
        parts = [f"written {amount(since.written_bytes)}", f"read {amount(since.read_bytes)}"]
        if since.nand_bytes is not None:
            parts.append(f"programmed {amount(since.nand_bytes)}")
        if since.write_amplification is not None:
            parts.append(f"write amplification {since.write_amplification:.2f}")
        apart = "" if since.seconds is None else f", {duration(since.seconds)} apart"
        said.append(f"between {carried.snapshots} snapshots{apart}: {', '.join(parts)}")
    said.append(_outlook(carried))
    if health.unknown:
        named = ", ".join(f"{one.id} {one.name} = {one.text}" for one in health.unknown)
        said.append(f"not explained, so not judged: {named}")
    said.extend(f"note: {one}" for one in health.notes)
    return said


def _outlook(carried: Projection) -> str:
    """How long the drive lasts, and what that rests on."""
    if carried.days_left is None and carried.bytes_left is None:
        return f"how long it lasts is not told: {carried.assumption}"
    parts = []
    if carried.days_left is not None:
        parts.append(f"{_days(carried.days_left)}{_range(carried)}")
    if carried.bytes_left is not None:
        parts.append(f"{amount(carried.bytes_left)} of host writes")
    return f"its rated endurance lasts for {' or '.join(parts)}, {carried.assumption}"


def _range(carried: Projection) -> str:
    """How far the projection is sure, where wear is told in whole percents."""
    least, most = carried.days_left_least, carried.days_left_most
    if least is None or carried.days_left is None or least > FAR_YEARS * 365.25:
        return ""
    longest = "no upper bound" if most is None else _days(most)
    return f" (wear is told in steps of 1 %, so {_days(least)} to {longest})"


def _days(days: float) -> str:
    if days > FAR_YEARS * 365.25:
        return f"> {FAR_YEARS} years"
    if days >= 730:
        return f"{days / 365.25:.1f} years"
    return f"{days:.1f} days" if days < 10 else f"{days:.0f} days"


def _print_attributes(console: Console, report: Report) -> None:
    if not report.health.attributes:
        return
    console.print()
    console.print(f"attributes of {report.health.model or report.name}:", markup=False)
    heads = [("id", "right"), ("name", "left"), ("value", "right"), ("worst", "right")]
    heads += [("threshold", "right"), ("raw", "right"), ("meaning", "left"), ("source", "left")]
    rows = [
        [
            str(one.id),
            one.name,
            _maybe(one.value, "{}"),
            _maybe(one.worst, "{}"),
            _maybe(one.threshold, "{}"),
            one.text,
            one.meaning or "unknown",
            one.source or "",
        ]
        for one in report.health.attributes
    ]
    console.print(table(heads, rows))


def amount(size: float | None) -> str:
    """Bytes for people, in decimal units as drives are sold."""
    if size is None:
        return NOT_TOLD
    return f"{size / 1e15:.4g} PB" if size >= 999.95e12 else size_text(round(size))


def _percent(value: float | None) -> str:
    return _maybe(value, "{:.3g} %")


def _maybe(value: object, words: str) -> str:
    return NOT_TOLD if value is None else words.format(value)
