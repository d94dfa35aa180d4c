"""``ssdlab ab``: a measurement with and without a change, in turn; did the change matter?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import (
    BenchOptions,
    DriveOptions,
    KeptBelow,
    Prepare,
    ProtocolHelp,
    ProtocolOptions,
    SetKeys,
    TargetName,
    keys,
)
from ssdlab.units import SEED_MAX

if light.BODIES:
    from ssdlab.api.ab import ab
    from ssdlab.cli.output import notice

REPEATS = 4
"""Runs of each side where nothing else is said."""


@answering
def command(
    target: TargetName,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            "-p",
            metavar="NAME",
            help=ProtocolHelp,
            autocompletion=light.complete("protocols"),
        ),
    ] = None,
    job: Annotated[
        Path | None,
        typer.Option("--job", metavar="JOB.fio", help="Or a fio job file, instead of a protocol."),
    ] = None,
    to_b: Annotated[
        str | None,
        typer.Option(
            "--to-b", metavar="CMD", help="Shell command that makes the change (real targets)."
        ),
    ] = None,
    to_a: Annotated[
        str | None,
        typer.Option(
            "--to-a",
            metavar="CMD",
            help="Shell command that undoes it, so that A and B can take turns; without it all "
            "runs of A come first.",
        ),
    ] = None,
    set_b: Annotated[
        list[str] | None,
        typer.Option(
            "--set-b", metavar="KEY=VALUE", help="The change of a simulated drive: a key of B."
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats",
            min=2,
            max=1000,
            metavar="N",
            help="Runs of each side; an even number takes out drift.",
        ),
    ] = REPEATS,
    set_: SetKeys = None,
    prepare: Prepare = None,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", min=0, max=SEED_MAX - 1000, metavar="N", help="Seed of the first pair."
        ),
    ] = 1,
    out: KeptBelow = None,
    *,
    how: ProtocolOptions,
    drive: DriveOptions,
    where: BenchOptions,
    view: View,
) -> None:
    """Try a change: repeat a measurement with and without it and say whether it mattered."""
    report = ab(
        target,
        protocol=protocol,
        job=job,
        to_b=to_b,
        to_a=to_a,
        set_b=keys(set_b, "--set-b"),
        repeats=repeats,
        set=keys(set_),
        prepare=prepare,
        seed=seed,
        out=out,
        **how.given,
        **asdict(drive),
        cluster=where.cluster,
        progress=not view.quiet,
        notice=notice,
    )
    view.show(report.answer, whole=True)
