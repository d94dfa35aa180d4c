"""``ssdlab array``: what arrays of a drive would do, beside one drive alone, and which to take."""

from __future__ import annotations

from pathlib import Path

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View
from ssdlab.cli.made import of
from ssdlab.cli.options import option
from ssdlab.output import write_rigs

if light.BODIES:
    from ssdlab import units
    from ssdlab.api.array import ArrayQuestion, array, question
    from ssdlab.arrays.rigs import LEVELS, array_rig
    from ssdlab.cli.output import notice, results, say


@of("array")
def command(
    *,
    save_rigs: Path | None = option("DIR", "Only write the arrays as rig files."),
    view: View,
    ask: Ask,
) -> None:
    """Writes the rigs instead where those are wanted."""
    if save_rigs is not None:
        view.require_no_documents("--save-rigs")
        _save(ask(question), save_rigs)
        return
    report = ask(array, notice=None if view.quiet else notice)
    view.show(report.answer, seconds=ask.seconds)


def _save(asked: ArrayQuestion, folder: Path) -> None:
    rigs = {}
    for shape in asked.grid.shapes:
        chunk = "" if shape.level in ("1", "linear") else f"-{shape.chunk >> 10}k"
        name = f"{LEVELS[shape.level]}-{shape.count}{chunk}-{asked.drive.name}.toml"
        rigs[name] = array_rig(asked.drive, shape, asked.behind)
    write_rigs(folder, rigs)
    say(results(None), f"wrote {units.counted(len(rigs), 'rig')} to {folder}")
