"""``ssdlab compare``: runs beside each other, with differences and whether they can be seen."""

from __future__ import annotations

import itertools
from typing import Annotated

import typer

from ssdlab.cli import light
from ssdlab.cli.options import Json, KeptWhere, Page
from ssdlab.output import Output

if light.BODIES:
    from rich.console import Console

    from ssdlab import compare
    from ssdlab.analysis.differences import Row
    from ssdlab.cli.console import table
    from ssdlab.cli.output import results, write_json
    from ssdlab.compare import LETTERS, Comparison, Party
    from ssdlab.engine.check import MARK, MARK_NOTE
    from ssdlab.store import RunStore


CUT = 60
"""Longer facts are cut on the terminal."""


def command(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Run folders, or ids as `ssdlab list runs` shows them; RUN,RUN are repeats that "
            "count as one side. The first is what the others are compared to.",
            autocompletion=light.complete_runs,
        ),
    ],
    each: Annotated[
        bool,
        typer.Option(
            "--each", help="Every run by itself, also where several are repeats of the same."
        ),
    ] = False,
    output: Page = None,
    json_: Json = None,
    out: KeptWhere = None,
) -> None:
    """Compare runs: how large differences are, and whether the noise allows to see them."""
    found = compare.load(runs, RunStore(out), each=each)
    show(found, json_=json_, output=output)


def show(found: Comparison, *, json_: Output | None, output: Output | None) -> None:
    """Writes and prints a comparison; what is asked for is written though nobody reads on."""
    console = results(json_, output)
    write_json(json_, found.as_json())
    if output is not None:
        from ssdlab.report import compare_page  # heavy: only where it is used

        compare_page.render(found, output)
    print_comparison(console, found)
    if output is not None:
        console.print(f"wrote {output}", markup=False, soft_wrap=True)


def print_comparison(console: Console, found: Comparison) -> None:
    """The comparison for people: sides, verdicts, numbers, how sure, and what speaks against."""

    def tell(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    for letter, party in zip(LETTERS, found.parties, strict=False):
        tell(f"{letter}  {party.label}: {', '.join(party.names)}")
    facts = found.differing_facts()
    for name, values in facts.items():
        if name != "target":
            pairs = zip(LETTERS, values, strict=False)
            tell(f"   {name}: " + " | ".join(f"{letter} {_cut(value)}" for letter, value in pairs))
    tell("")
    for sentence in found.sentences():
        tell(sentence)
    letters = LETTERS[: len(found.parties)]
    for section, rows in itertools.groupby(found.rows, key=lambda row: row.quantity.section):
        tell("")
        if section:
            console.print(section, markup=False, style="bold")
        columns = [("number", "left"), ("unit", "left"), (letters[0], "right")]
        for letter in letters[1:]:
            columns += [(letter, "right"), (f"{letter} against A", "right")]
            columns += [("95 %", "left"), ("verdict", "left")] if found.tested else []
        console.print(table(columns, [_cells(found, row) for row in rows]))
    tell("")
    for sentence in found.method():
        tell(sentence)
    if found.doubted():
        tell(MARK_NOTE)
    for letter, party in zip(LETTERS, found.parties, strict=False):
        _doubts(console, letter, party)


def _cells(found: Comparison, row: Row) -> list[str]:
    quantity = row.quantity
    texts = [
        compare.value_text(value, interval) + (MARK if party.doubted(quantity.name) else "")
        for party, value, interval in zip(found.parties, row.values, row.intervals, strict=True)
    ]
    cells = [quantity.name, quantity.unit, texts[0]]
    for text, difference in zip(texts[1:], row.differences, strict=True):
        share = None if difference is None else difference.share
        cells += [text, compare.share_text(share)]
        if found.tested:
            verdict = compare.verdict(difference, quantity.better)
            cells += [compare.span_text(difference), verdict]
    return cells


def _doubts(console: Console, letter: str, party: Party) -> None:
    for check in party.checks:
        word = "not to be believed" if check.status == "bad" else "in doubt"
        text = f"{letter} is {word} ({check.title}): {check.evidence}"
        console.print(text, markup=False, soft_wrap=True)


def _cut(text: str) -> str:
    return text if len(text) <= CUT else text[: CUT - 3] + "..."
