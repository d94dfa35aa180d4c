"""``ssdlab trace replay``: a recorded load on a simulated or real target."""

from __future__ import annotations

from pathlib import Path

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering
from ssdlab.cli.options import (
    Destroy,
    KeptBelow,
    OnTarget,
    Redact,
    Seed,
    SetKeys,
    UseExistingFile,
    argument,
    keys,
    option,
)
from ssdlab.cli.trace_options import Fit, TraceOptions

if light.BODIES:
    from ssdlab.api.run import replay
    from ssdlab.cli.output import notice
    from ssdlab.cli.run import show
    from ssdlab.store import RunStore


@answering
def command(
    trace: Path = argument("TRACE", "A trace, compressed or not."),
    *,
    on: OnTarget,
    speed: float = option("X", "Times the recorded speed: 2 halves all pauses.", default=1.0),
    depth: int | None = option(
        "N",
        "As fast as possible with N requests in flight, whatever the times are. Without it "
        "requests come at their times: on a simulated drive whatever is still in flight.",
        min=1,
    ),
    fit: Fit = "as-is",
    size: str | None = option("SIZE", "Of the file that is made on a real target."),
    prepare: str | None = option("STATE", "As for ssdlab run; simulated only."),
    set_: SetKeys = None,
    seed: Seed = 1,
    how: TraceOptions,
    out: KeptBelow = None,
    redact: Redact = False,
    destroy: Destroy = None,
    use_existing_file: UseExistingFile = False,
    view: View,
    ask: Ask,
) -> None:
    """Replay a trace on a simulated or real drive: as recorded, faster, or at a depth."""
    store = RunStore(out)
    store.prepare()
    with store.keeping_broken():
        result = ask(replay, set=keys(set_), notice=notice)
    store.save(result)
    show(result, trace.name, view, ask.seconds)
