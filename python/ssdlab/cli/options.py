"""Options that several commands take alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ssdlab.rating import parse_tbw
from ssdlab.target import SEED_MAX

KeptBelow = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Keep the run below this folder.")
]
KeptWhere = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Where the runs are kept.")
]
FoundJson = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE|-", help="Write what was found there, for scripts."),
]
SaidJson = Annotated[
    str | None, typer.Option("--json", metavar="FILE|-", help="Write what is said as JSON.")
]
ReportFile = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write an HTML report there.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no table.")]
QuietWords = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no words.")]
Redact = Annotated[bool, typer.Option("--redact", help="Leave out serial numbers and paths.")]
SetKeys = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the simulated rig."),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=SEED_MAX, metavar="N", help="Seed of a simulated run.")
]
Destroy = Annotated[
    str | None,
    typer.Option(
        "--destroy",
        metavar="SERIAL",
        help="Allow a block device with this serial to be overwritten (a device without "
        "one: its kernel name; a loop device: also its backing file).",
    ),
]
Tbw = Annotated[
    str | None,
    typer.Option(
        "--tbw",
        metavar="SIZE",
        help="Rated endurance of a drive: 600TB, 1.2PB, or a number of TB.",
    ),
]
AssumeSpeed = Annotated[
    str | None,
    typer.Option(
        "--assume-speed",
        metavar="SPEED",
        help="How fast the drive is, for the plan: 200MB/s, 5000iops, or both, 500MB/s,20kiops.",
    ),
]
UseExistingFile = Annotated[
    bool, typer.Option("--use-existing-file", help="Allow a plain file that exists to be written.")
]


def rated(tbw: str | None) -> float | None:
    """The bytes of ``--tbw``; raises InputError where it is no size."""
    return None if tbw is None else parse_tbw(tbw)
