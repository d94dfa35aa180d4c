"""``ssdlab explain``: where the time of a simulated run went, and what would help."""

from __future__ import annotations

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering
from ssdlab.cli.options import KeptWhere, OneRun, ReuseOptions, flag

if light.BODIES:
    from ssdlab.api.explain import explain


@answering
def command(
    run: OneRun,
    tries: bool = flag(
        "Repeat the run with one thing changed at a time.", "--try/--no-try", default=True
    ),
    out: KeptWhere = None,
    *,
    where: ReuseOptions,
    view: View,
    ask: Ask,
) -> None:
    """Say where the time of a simulated run went, and what would help."""
    view.show(ask(explain).answer, whole=True)
