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
from ssdlab.cli.trace_options import TraceOptions
from ssdlab.errors import InputError
from ssdlab.units import parse_bytes

if light.BODIES:
    from ssdlab.cli.console import progress
    from ssdlab.cli.output import notice
    from ssdlab.cli.run import show
    from ssdlab.jobfile import JobText
    from ssdlab.rig import resolve
    from ssdlab.store import RunStore
    from ssdlab.target import Settings
    from ssdlab.tracefile import FITS, Replay, existing

DEPTH_OPEN = 32
"""I/Os that fio keeps in flight at most where it follows the times of a trace."""


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
    fit: Annotated[
        str,
        typer.Option(
            "--fit",
            metavar="as-is|wrap|scale",
            help="Addresses beyond the target: refused, begun again at 0, or all scaled to it.",
        ),
    ] = "as-is",
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
    if fit not in FITS:
        raise InputError(f'--fit "{fit}": expected {", ".join(FITS)}')
    if not 0.01 <= speed <= 10_000:
        raise InputError(f"--speed {speed:g}: expected a factor from 0.01 to 10000")
    if depth is not None and speed != 1.0:
        raise InputError("--speed has no meaning with --depth, which follows no times")
    target = resolve(on, destroy=destroy, use_existing=use_existing_file, redact=redact)
    simulated = target.simulated
    if size is not None and simulated:
        raise InputError("--size is for files on real drives; a rig says its own capacity")
    capacity = None if size is None else parse_bytes("--size", size)
    replay = Replay(
        how.reading(), fit, open_loop=simulated and depth is None, capacity_bytes=capacity
    )
    job = replay_job(existing(trace), speed, depth, replay, simulated=simulated)
    store = RunStore(out)
    store.prepare()
    overrides = keys(set_)
    started = time.monotonic()
    with progress(f"{trace.name} on {target.name}", quiet=view.quiet) as callback:
        settings = Settings(
            seed=seed, prepare=prepare, overrides=overrides, progress=callback, notice=notice
        )
        result = target.run(job, settings)
    store.save(result)
    show(result, trace.name, view, time.monotonic() - started)


def replay_job(
    trace: Path, speed: float, depth: int | None, replay: Replay, *, simulated: bool
) -> JobText:
    """The job that replays ``trace``."""
    if any(c in str(trace) for c in ";#\n") or "${" in str(trace):
        raise InputError(f"{trace}: a job file cannot carry this path; rename the trace")
    lines = ["[replay]", f"read_iolog={trace}"]
    if depth is not None:
        lines += ["replay_no_stall=1", f"iodepth={depth}"]
    elif not simulated:
        lines.append(f"iodepth={DEPTH_OPEN}")
    if speed != 1.0:
        lines.append(f"replay_time_scale={round(100 * speed)}")
    if not simulated:
        lines += ["ioengine=libaio", "direct=1"]
    note = f"; addresses: {replay.fit}" + ("; open loop" if replay.open_loop else "")
    return JobText(f"replay of {trace.name}", "\n".join([note, *lines]) + "\n", Path.cwd(), replay)
