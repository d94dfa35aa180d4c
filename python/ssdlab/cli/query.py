"""``ssdlab query``: SQL over kept runs and the tables of sweeps."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from ssdlab.cli import light
from ssdlab.cli.answer import answering
from ssdlab.cli.options import Json, Quiet, Wide, argument, document, option
from ssdlab.output import Output

if light.BODIES:
    import csv
    import math
    from io import StringIO

    from ssdlab import units
    from ssdlab.answer import Cell
    from ssdlab.cli.answer import print_rows
    from ssdlab.cli.output import check_stdout, notice, progress, results, say, write_json
    from ssdlab.sweeps.query import ask, sources


@answering
def command(
    sql: str = argument(
        "SQL", "One SELECT over the tables runs, summary and series, joined by key."
    ),
    folders: list[Path] | None = option(
        "DIR",
        "A sweep's folder, a kept run, or a store of runs; may be given again. Without: the "
        "store, and sweeps in this folder or right below it.",
        "--in",
    ),
    json_: Json = None,
    csv_: Output | None = document(
        "--csv", help="Write the rows as CSV there; - is standard output."
    ),
    wide: Wide = False,
    quiet: Quiet = False,
) -> None:
    """Ask kept runs and the tables of sweeps in SQL (DuckDB); only reads."""
    check_stdout({"--json": json_, "--csv": csv_})
    with progress("query", quiet=quiet) as callback:
        asked = sources(folders or ())
        found = ask(sql, asked, callback)
    if asked.damaged and not quiet:
        out = units.counted(len(asked.damaged), "damaged run")
        notice(f"left out: {out} ({asked.damaged[0]}{' ...' if asked.damaged[1:] else ''})")
    if json_ is not None:
        write_json(
            json_, [_plain(dict(zip(found.columns, row, strict=True))) for row in found.rows]
        )
    if csv_ is not None:
        text = StringIO()
        csv.writer(text, lineterminator="\n").writerows([found.columns, *found.rows])
        csv_.write(text.getvalue())
    if quiet or json_ is not None or csv_ is not None:
        return
    console = results()
    rows = [[_cell(one) for one in row] for row in found.rows]
    print_rows(console, found.columns, rows, wide=wide)
    if console.is_terminal:
        say(console, units.counted(len(rows), "row"))


def _cell(value: Any) -> Any:
    """A value as the table shows it: numbers with all that can matter of them."""
    if value is None:
        return None
    value = float(value) if isinstance(value, Decimal) else value
    if isinstance(value, int) and not isinstance(value, bool):
        return Cell(float(value), text=str(value))
    if isinstance(value, float) and math.isfinite(value):
        text = f"{value:.7g}"
        # Times in ns and bytes are whole: no powers of ten, and none of their digits left out.
        return Cell(value, text=f"{value:.0f}" if "e+" in text and abs(value) < 1e16 else text)
    return str(value)


def _plain(value: Any) -> Any:
    """A value for JSON; dates and the like as text."""
    value = float(value) if isinstance(value, Decimal) else value
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
