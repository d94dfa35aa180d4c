"""``ssdlab compare``: runs beside each other, with differences and whether they can be seen."""

from __future__ import annotations

from typing import Annotated

import typer

from ssdlab import compare
from ssdlab.answers import comparison
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import KeptWhere
from ssdlab.store import RunStore


def _run_ids(incomplete: str) -> list[str]:
    return [entry.id for entry in RunStore().entries() if incomplete in entry.id]


@answering
def command(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Run folders, or ids as `ssdlab list runs` shows them; RUN,RUN are repeats that "
            "count as one side. The first is what the others are compared to.",
            autocompletion=_run_ids,
        ),
    ],
    each: Annotated[
        bool,
        typer.Option(
            "--each", help="Every run by itself, also where several are repeats of the same."
        ),
    ] = False,
    out: KeptWhere = None,
    *,
    view: View,
) -> None:
    """Compare runs: how large differences are, and whether they are more than noise."""
    view.show(comparison.answer(compare.load(runs, RunStore(out), each=each)))
