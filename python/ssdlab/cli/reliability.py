"""``ssdlab reliability``: how likely an array of drives loses data, and what makes it safer."""

from __future__ import annotations

from typing import Annotated

import typer

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import BenchOptions, Seed, Tbw

if light.BODIES:
    from ssdlab.api.reliability import reliability
    from ssdlab.cli.output import on_stdout

UBER = 1e-17
"""Data sheets of data centre SSDs; JESD218 asks for 1e-16 of enterprise, 1e-15 of client SSDs."""
REBUILD_RATE = "204.8MB/s"
"""What Linux md rebuilds at, at most, unless told otherwise: speed_limit_max, 200 000 KiB/s."""


@answering
def command(
    level: Annotated[
        str | None,
        typer.Option(
            "--level",
            metavar="LEVEL,...",
            help="RAID levels, of 0, 1, 10, 5, 6 (all that the members allow). RAID 1 keeps "
            "a copy on every member.",
        ),
    ] = None,
    members: Annotated[int, typer.Option("--members", min=1, metavar="N", help="Drives.")] = 4,
    copies: Annotated[
        int, typer.Option("--copies", min=2, max=3, metavar="N", help="Copies of RAID 10.")
    ] = 2,
    drive: Annotated[
        str | None,
        typer.Option(
            "--drive",
            metavar="DRIVE",
            help="Profile or rig file, such as a twin, that the members are: tells their capacity "
            "and, beside --writes-per-day, what its flash takes in steady random writes "
            "(simulated), unless --tbw does.",
            autocompletion=light.complete("drives"),
        ),
    ] = None,
    capacity: Annotated[
        str | None,
        typer.Option("--capacity", metavar="SIZE", help="Of a drive (3.84TB)."),
    ] = None,
    afr: Annotated[
        float | None,
        typer.Option(
            "--afr",
            metavar="PERCENT",
            help="Failures per 100 drive years (1; field studies find about that).",
        ),
    ] = None,
    mtbf: Annotated[
        float | None,
        typer.Option("--mtbf", metavar="HOURS", help="Hours between failures, instead of --afr."),
    ] = None,
    uber: Annotated[
        float,
        typer.Option(
            "--uber",
            metavar="RATE",
            help="Unrecoverable errors per bit read: 1e-17 in data sheets of data centre SSDs; "
            "JESD218 asks for 1e-16 of enterprise and 1e-15 of client SSDs, as disks promise.",
        ),
    ] = UBER,
    rebuild_rate: Annotated[
        str,
        typer.Option(
            "--rebuild-rate",
            metavar="RATE",
            help="Bytes per second that a rebuild writes; the default is the limit of Linux md.",
        ),
    ] = REBUILD_RATE,
    replace_after: Annotated[
        float,
        typer.Option(
            "--replace-after",
            metavar="HOURS",
            help="Time from failure to rebuild start; 0 with a hot spare.",
        ),
    ] = 24.0,
    one_at_a_time: Annotated[
        bool,
        typer.Option(
            "--one-at-a-time",
            help="Rebuild one member after the other where several are missing, as textbook "
            "formulas have it.",
        ),
    ] = False,
    years: Annotated[
        float, typer.Option("--years", metavar="YEARS", help="Mission time of the array.")
    ] = 5.0,
    tbw: Tbw = None,
    writes_per_day: Annotated[
        str | None,
        typer.Option(
            "--writes-per-day", metavar="SIZE", help="What the host writes to the array in a day."
        ),
    ] = None,
    full_stripes: Annotated[
        bool,
        typer.Option(
            "--full-stripes",
            help="Writes fill whole stripes, so that parity is written once for all of their data; "
            "else each small write writes its own parity.",
        ),
    ] = False,
    stagger: Annotated[
        str | None,
        typer.Option(
            "--stagger",
            metavar="PERCENT[,...]",
            help="Of the rating already written at the start: by how much neighbours differ, "
            "or one number for each drive.",
        ),
    ] = None,
    models: Annotated[
        int | None,
        typer.Option("--models", min=1, metavar="N", help="Different models among the drives."),
    ] = None,
    spread: Annotated[
        float,
        typer.Option(
            "--spread",
            metavar="PERCENT",
            help="By how much the endurance of drives of one model differs (standard deviation; "
            "the default is assumed).",
        ),
    ] = 5.0,
    model_spread: Annotated[
        float,
        typer.Option(
            "--model-spread", metavar="PERCENT", help="The same between models (assumed)."
        ),
    ] = 20.0,
    renew_at: Annotated[
        float | None,
        typer.Option(
            "--renew-at",
            metavar="PERCENT",
            help="Copy a drive to a new one when so much of its rating is written.",
        ),
    ] = None,
    runs: Annotated[
        int,
        typer.Option("--runs", min=100, metavar="N", help="Lives to simulate."),
    ] = 50_000,
    seed: Seed = 0,
    *,
    where: BenchOptions,
    view: View,
) -> None:
    """Say how likely an array loses data: by closed form and by simulation, with wear."""
    report = reliability(
        level=level,
        members=members,
        copies=copies,
        drive=drive,
        capacity=capacity,
        afr=afr,
        mtbf=mtbf,
        uber=uber,
        rebuild_rate=rebuild_rate,
        replace_after=replace_after,
        one_at_a_time=one_at_a_time,
        years=years,
        tbw=tbw,
        writes_per_day=writes_per_day,
        full_stripes=full_stripes,
        stagger=stagger,
        models=models,
        spread=spread,
        model_spread=model_spread,
        renew_at=renew_at,
        runs=runs,
        seed=seed,
        cluster=where.cluster,
        progress=not (view.quiet or on_stdout(view.json_, view.report)),
    )
    view.show(report.answer)
