"""``ssdlab scan``: every piece read once; what is unreadable, and what is slow."""

from __future__ import annotations

import typer

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View
from ssdlab.cli.made import of
from ssdlab.errors import ExperimentError, Interrupted
from ssdlab.units import size_text

if light.BODIES:
    from rich.console import Console
    from rich.text import Text

    from ssdlab.answers import scan as scan_answer
    from ssdlab.answers.scan import MEANING
    from ssdlab.api.looks import scanned
    from ssdlab.care.scan import Scan, require_whole
    from ssdlab.care.scanmap import STATES, State, cells
    from ssdlab.cli.output import progress


COLUMNS = 64
"""Cells in a row of the map."""
ROWS_MAX = 12
LOOKS: dict[State, tuple[str, str]] = {
    "quick": ("░", "green"),
    "fair": ("▒", "yellow"),
    "weak": ("▓", "dark_orange"),
    "zero": ("·", "dim"),
    "late": ("?", "cyan"),
    "slow": ("S", "bold magenta"),
    "bad": ("X", "bold red"),
    "unread": (" ", ""),
}
"""Character and colour of each state of a cell."""


@of("scan")
def command(target: str, *, view: View, ask: Ask) -> None:
    """Draws a map of what was read, also by a scan that ended early."""
    with progress(f"scanning {target}", quiet=view.quiet) as callback:
        scan = ask(scanned, progress=callback)
    _show(scan, view)


def _show(scan: Scan, view: View) -> None:
    """Says and writes what was found, also by a scan that ended early; leaves with its status."""
    require_whole(scan)
    if not view.quiet:
        _draw(scan, view.console)
    view.show(scan_answer.answer(scan))
    if scan.stopped:
        done = f"{size_text(scan.read_bytes)} of {size_text(scan.wanted_bytes)}"
        sentence = f"{scan.target}: {scan.stopped} after {done}; what was found is kept"
        raise (Interrupted if scan.stopped == Interrupted.sentence() else ExperimentError)(sentence)
    if scan.errors:
        raise typer.Exit(ExperimentError.exit_status)


# --- the words


def _draw(scan: Scan, console: Console) -> None:
    shown = cells(scan, COLUMNS * ROWS_MAX)
    width = max(len(size_text(shown[i].offset)) for i in range(0, len(shown), COLUMNS))
    for first in range(0, len(shown), COLUMNS):
        row = Text(f"{size_text(shown[first].offset):>{width}} ")
        for cell in shown[first : first + COLUMNS]:
            character, colour = LOOKS[cell.state]
            row.append(character, colour)
        console.print(row, soft_wrap=True)
    counts = {state: sum(cell.state == state for cell in shown) for state in STATES}
    legend = Text(f"{'':>{width}} ")
    for state in STATES:
        character, colour = LOOKS[state]
        if counts[state] and state != "unread":
            legend.append(character, colour)
            legend.append(f" {MEANING[state]} ({counts[state]:,})   ")
    legend.rstrip()
    console.print(legend, soft_wrap=True)
    console.print(f"{'':>{width}} a character is {size_text(shown[0].length)}", markup=False)
