"""Options that several commands take alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ssdlab.output import Output
from ssdlab.rating import parse_tbw
from ssdlab.units import SEED_MAX


def opened(context: typer.Context, place: str | None) -> Output | None:
    """The place of a document, opened before the work for it begins and closed after it."""
    if place is None or context.resilient_parsing:  # completion opens nothing
        return None
    output = Output(place)
    context.call_on_close(output.close)
    return output


def document(*names: str, metavar: str = "FILE|-", help: str) -> Any:
    """An option that names where a document is written."""
    return typer.Option(*names, metavar=metavar, help=help, parser=str, callback=opened)


KeptBelow = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Keep the run below this folder.")
]
KeptWhere = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Where the runs are kept.")
]
Json = Annotated[
    Output | None, document("--json", help="Write the result as JSON there; - is standard output.")
]
LogFolder = Annotated[
    Path | None,
    typer.Option(
        "--logs",
        metavar="DIR",
        help="Write fio's logs (bw, iops, lat, slat, clat, histograms) and a JSON document of each "
        "job there, named as bench-fio names them: fio-plot -i DIR draws from it.",
    ),
]
Page = Annotated[
    Output | None, document("--report", "-o", "--output", help="Write an HTML report there.")
]
Csv = Annotated[
    Path | None, typer.Option("--csv", metavar="DIR", help="Write each table there as a CSV file.")
]
Xlsx = Annotated[
    Output | None,
    document("--xlsx", metavar="FILE", help="Write the tables as a workbook, a sheet each."),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print every sentence, table and check.")
]
Wide = Annotated[
    bool, typer.Option("--wide", help="Print tables in columns in a pipe too, at any width.")
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


def naming(option: str, fate: str) -> Any:
    """An option that names a drive by its serial, to allow what is its fate."""
    help = (
        f"Allow {fate} (a device without one: its kernel name; a loop device: also its backing "
        "file)."
    )
    return typer.Option(option, metavar="SERIAL", help=help)


Destroy = Annotated[
    str | None, naming("--destroy", "a block device with this serial to be overwritten")
]
SetUp = Annotated[
    str,
    typer.Option(
        "--setup",
        metavar="NAME|NAME=VALUE,...",
        help="Set a real drive and its system up for the run and restore everything after it: "
        "none, pts, or settings from `ssdlab list setups`, such as "
        "pts,write-cache=on,governor=performance.",
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
