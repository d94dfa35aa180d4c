"""``ssdlab resume``: a protocol's run goes on where it was stopped."""

from __future__ import annotations

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View
from ssdlab.cli.made import of
from ssdlab.cli.options import PlanOnly

if light.BODIES:
    from ssdlab.api.test import rating_left
    from ssdlab.api.test import resume as go_on
    from ssdlab.cli.test import say_plan, show
    from ssdlab.engine.plans import rest
    from ssdlab.protocols import find
    from ssdlab.store import RunStore


@of("resume")
def command(
    run: str, tbw: str | None, out: str | None, *, plan: PlanOnly = False, view: View, ask: Ask
) -> None:
    """Says what is left to do, or does it."""
    if plan:
        view.require_no_documents("--plan", "--json")
    folder = RunStore(out).open(run)
    if plan:
        what = rest(folder, find(folder.manifest.protocol), rating_left(folder, tbw))
        say_plan(what, view)
        return
    show(ask(go_on, run=folder.path), folder, view, ask.seconds)
