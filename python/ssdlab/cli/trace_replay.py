"""``ssdlab trace replay``: a recorded load on a simulated or real target."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import Destroy, KeptBelow, Redact, Seed, SetKeys, keys
from ssdlab.cli.options import UseExistingFile as UseExisting
from ssdlab.cli.trace_options import Fit, TraceOptions

if light.BODIES:
    from ssdlab.api.run import replay
    from ssdlab.cli.output import notice
    from ssdlab.cli.run import show
    from ssdlab.store import RunStore


@answering
def command(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A trace, compressed or not.")],
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="TARGET",
            help="A profile's name, a rig file (.toml), a plain file, or a block device.",
            autocompletion=light.complete("drives"),
        ),
    ],
    *,
    speed: Annotated[
        float,
        typer.Option("--speed", metavar="X", help="Times the recorded speed: 2 halves all pauses."),
    ] = 1.0,
    depth: Annotated[
        int | None,
        typer.Option(
            "--depth",
            metavar="N",
            min=1,
            help="As fast as possible with N requests in flight, whatever the times are. Without "
            "it requests come at their times: on a simulated drive whatever is still in flight.",
        ),
    ] = None,
    fit: Fit = "as-is",
    size: Annotated[
        str | None,
        typer.Option("--size", metavar="SIZE", help="Of the file that is made on a real target."),
    ] = None,
    prepare: Annotated[
        str | None,
        typer.Option("--prepare", metavar="STATE", help="As for ssdlab run; simulated only."),
    ] = None,
    set_: SetKeys = None,
    seed: Seed = 1,
    how: TraceOptions,
    out: KeptBelow = None,
    redact: Redact = False,
    destroy: Destroy = None,
    use_existing_file: UseExisting = False,
    view: View,
) -> None:
    """Replay a trace on a simulated or real drive: as recorded, faster, or at a depth."""
    store = RunStore(out)
    store.prepare()
    started = time.monotonic()
    result = replay(
        trace,
        on,
        speed=speed,
        depth=depth,
        fit=fit,
        size=size,
        prepare=prepare,
        set=keys(set_),
        seed=seed,
        **how.given,
        redact=redact,
        destroy=destroy,
        use_existing_file=use_existing_file,
        progress=not view.quiet,
        notice=notice,
    )
    store.save(result)
    show(result, trace.name, view, time.monotonic() - started)
