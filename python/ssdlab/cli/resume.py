"""``ssdlab resume``: a protocol's run goes on where it was stopped."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from ssdlab.checks import examine_run
from ssdlab.cli.console import progress
from ssdlab.cli.options import Destroy, Json, KeptWhere, Page, Quiet, UseExistingFile
from ssdlab.cli.run import notice
from ssdlab.cli.test import show
from ssdlab.engine.folder import RunFolder
from ssdlab.engine.runs import go_on
from ssdlab.protocols import find
from ssdlab.store import RunStore


def _run_ids(incomplete: str) -> list[str]:
    return [entry.id for entry in RunStore().entries() if incomplete in entry.id]


def command(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="The run of a protocol: its folder or id.",
            autocompletion=_run_ids,
        ),
    ],
    destroy: Destroy = None,
    use_existing_file: UseExistingFile = False,
    json_: Json = None,
    report: Page = None,
    out: KeptWhere = None,
    quiet: Quiet = False,
) -> None:
    """Go on with a protocol's run after Ctrl-C, a kill or a power failure."""
    folder = RunFolder.open(RunStore(out).find(run))
    started = time.monotonic()
    what = f"{folder.manifest['protocol']} on {folder.manifest['name']}"
    with progress(what, quiet=quiet) as callback:
        finished = go_on(
            folder,
            find,
            progress=callback,
            notice=notice,
            examine=examine_run,
            destroy=destroy,
            use_existing=use_existing_file,
        )
    show(finished.folder, json_=json_, report=report, quiet=quiet, started=started)
