"""``ssdlab explain``: where the time of a simulated run went, and what would help."""

from __future__ import annotations

from typing import Annotated

import typer

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import KeptWhere, OneRun, ReuseOptions

if light.BODIES:
    from ssdlab.api.explain import explain


@answering
def command(
    run: OneRun,
    tries: Annotated[
        bool,
        typer.Option("--try/--no-try", help="Repeat the run with one thing changed at a time."),
    ] = True,
    out: KeptWhere = None,
    *,
    where: ReuseOptions,
    view: View,
) -> None:
    """Say where the time of a simulated run went, and what would help."""
    report = explain(
        run, tries=tries, out=out, fresh=where.fresh, cluster=where.cluster, progress=not view.quiet
    )
    view.show(report.answer, whole=True)
