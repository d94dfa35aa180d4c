"""``ssdlab trace replay``: a recorded load on a simulated or real target."""

from __future__ import annotations

from pathlib import Path

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View
from ssdlab.cli.made import of
from ssdlab.cli.options import KeptBelow

if light.BODIES:
    from ssdlab.api.run import replay
    from ssdlab.cli.run import show
    from ssdlab.store import RunStore


@of("replay")
def command(trace: str, *, out: KeptBelow = None, view: View, ask: Ask) -> None:
    """Keeps the run, also one that broke off."""
    store = RunStore(out)
    store.prepare()
    with store.keeping_broken():
        result = ask(replay)
    store.save(result)
    show(result, Path(trace).name, view, ask.seconds)
