"""A protocol's answer on the terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.console import Console

from ssdlab.cli.console import table
from ssdlab.engine.check import MARK, Check
from ssdlab.engine.findings import ProtocolRun
from ssdlab.engine.records import RoundsRecord
from ssdlab.figures import Cell, Number, Table, figure_text, heading, in_gigabytes, says_only


def print_findings(console: Console, run: ProtocolRun, marked: Collection[str] = ()) -> None:
    """Prints the answer, the numbers and the tables; those from ``marked`` steps with a mark."""
    for sentence in run.findings.judgement.sentences:
        console.print(sentence, markup=False, soft_wrap=True)
    for record in run.findings.rounds:
        console.print(_rounds(record), markup=False, soft_wrap=True)
    numbers = run.findings.judgement.numbers
    if numbers:
        columns = [("number", "left"), ("value", "right"), ("unit", "left")]
        console.print(table(columns, [_number(one, marked) for one in numbers]))
    for one in run.findings.judgement.tables:
        if not says_only(one, numbers):
            console.print(one.title, markup=False, soft_wrap=True, style="bold")
            columns = [
                (heading(c), "right" if place else "left") for place, c in enumerate(one.columns)
            ]
            console.print(table(columns, rows_of(one, marked)))
            if one.note:
                console.print(one.note, markup=False, soft_wrap=True)


def rows_of(one: Table, marked: Collection[str]) -> list[list[str]]:
    """The cells of a table as text."""
    return [
        [
            cell_text(cell, column.unit, marked)
            for cell, column in zip(row, one.columns, strict=True)
        ]
        for row in one.rows
    ]


def cell_text(cell: Cell | str | None, unit: str, marked: Collection[str]) -> str:
    """A cell as text, with its mark."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    mark = MARK if any(key in marked for key in cell.sources) else ""
    return figure_text(cell.value, unit) + mark


def _number(number: Number, marked: Collection[str]) -> list[str]:
    one = in_gigabytes(number)
    return [one.name, cell_text(Cell(one.value, one.sources), one.unit, marked), one.unit]


def _rounds(record: RoundsRecord) -> str:
    if record.steady:
        span = f"rounds {record.first_of_window()} to {record.count}"
        return f"{record.title}: steady by the rule of the PTS, {span}."
    why = ""
    for name, window in record.windows().items():
        if not window.steady:
            why = (
                f" ({name}: excursion {window.excursion_share:.0%} of at most 20 %, "
                f"slope {window.slope_share:.0%} of at most 10 %)"
            )
    return f"{record.title}: not steady after {record.count} rounds{why}."


def print_checks(console: Console, checks: Sequence[Check]) -> None:
    """Says what stands against the numbers; of what is in order only how much it is."""
    troubles = [one for one in checks if one.status in ("bad", "doubt")]
    for one in troubles:
        word = "not to be believed" if one.status == "bad" else "in doubt"
        console.print(
            f"{word} ({one.title}): {one.evidence}; {one.why}.", markup=False, soft_wrap=True
        )
    good = [one.title for one in checks if one.status == "good"]
    unknown = [one.title for one in checks if one.status == "unknown"]
    if troubles or unknown:
        rest = [f"in order: {', '.join(good)}"] if good else []
        rest += [f"not told: {', '.join(unknown)}"] if unknown else []
        if rest:
            console.print("; ".join(rest) + ".", markup=False, soft_wrap=True)
    elif good:
        console.print(f"Nothing stands against the numbers ({len(good)} checks).", markup=False)
