"""``ssdlab resume``: a protocol's run goes on where it was stopped."""

from __future__ import annotations

import time
from pathlib import Path

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import Destroy, KeptWhere, OneRun, PlanOnly, Tbw, UseExistingFile, rated

if light.BODIES:
    from ssdlab.checks import examine_run
    from ssdlab.cli.console import progress
    from ssdlab.cli.output import notice
    from ssdlab.cli.test import say_plan, show
    from ssdlab.engine.plans import require_unfinished, rest
    from ssdlab.engine.ratings import rating_of
    from ssdlab.engine.runs import go_on
    from ssdlab.protocols import find
    from ssdlab.rating import Rating
    from ssdlab.store import RunStore


@answering
def command(
    run: OneRun,
    plan: PlanOnly = False,
    tbw: Tbw = None,
    destroy: Destroy = None,
    use_existing_file: UseExistingFile = False,
    out: KeptWhere = None,
    *,
    view: View,
) -> None:
    """Go on with a protocol's run after Ctrl-C, a kill or a power failure."""
    rating = rated(tbw)
    folder = RunStore(out).open(run)
    require_unfinished(folder)
    if folder.manifest.path is not None:
        found = rating_of(Path(folder.manifest.path), rating)
    else:
        found = None if rating is None else Rating(rating, "--tbw")
    if plan:
        what = rest(folder, find(folder.manifest.protocol), found)
        say_plan(what, view)
        return
    started = time.monotonic()
    title = f"{folder.manifest.protocol} on {folder.manifest.name}"
    with progress(title, quiet=view.quiet) as callback:
        finished = go_on(
            folder,
            find,
            progress=callback,
            notice=notice,
            examine=examine_run,
            destroy=destroy,
            use_existing=use_existing_file,
            rating=found,
        )
    show(finished.folder, view, started)
