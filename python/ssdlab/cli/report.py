"""``ssdlab report``: one HTML file from any number of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ssdlab.cli.console import stdout
from ssdlab.results import Result
from ssdlab.store import RunStore, check_writable


def _run_ids(incomplete: str) -> list[str]:
    return [entry.id for entry in RunStore().entries() if incomplete in entry.id]


def command(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Run folders, or ids as `ssdlab list runs` shows them.",
            autocompletion=_run_ids,
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The HTML file to write.")
    ] = Path("report.html"),
    title: Annotated[str | None, typer.Option("--title", help="Heading of the report.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where the runs are kept.")
    ] = None,
) -> None:
    """Write one HTML report that compares runs."""
    check_writable(output)
    store = RunStore(out)
    results = [Result.load(store.find(run)) for run in runs]
    from ssdlab.report import render  # heavy: only where it is used

    render(results, output, title=title)
    stdout().print(f"wrote {output}", markup=False, soft_wrap=True)
