"""``ssdlab resume``: a protocol's run goes on where it was stopped."""

from __future__ import annotations

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering
from ssdlab.cli.options import Destroy, KeptWhere, OneRun, PlanOnly, Tbw, UseExistingFile

if light.BODIES:
    from ssdlab.api.test import rating_left
    from ssdlab.api.test import resume as go_on
    from ssdlab.cli.output import notice
    from ssdlab.cli.test import say_plan, show
    from ssdlab.engine.plans import rest
    from ssdlab.protocols import find
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
    ask: Ask,
) -> None:
    """Go on with a protocol's run after Ctrl-C, a kill or a power failure."""
    if plan:
        view.require_no_documents("--plan", "--json")
    folder = RunStore(out).open(run)
    if plan:
        what = rest(folder, find(folder.manifest.protocol), rating_left(folder, tbw))
        say_plan(what, view)
        return
    show(ask(go_on, run=folder.path, notice=notice), folder, view, ask.seconds)
