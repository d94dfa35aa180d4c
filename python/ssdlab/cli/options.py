"""Options that several commands take alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ssdlab.cli import light
from ssdlab.errors import InputError
from ssdlab.output import Output


def opened(context: typer.Context, place: str | None) -> Output | None:
    """The place of a document, opened before the work for it begins and closed after it."""
    if place is None or context.resilient_parsing:  # completion opens nothing
        return None
    output = Output(place)
    context.call_on_close(output.close)
    return output


def folder_of_tables(place: Path | None) -> Path | None:
    """The folder of ``--csv``; raises InputError where standard output is meant."""
    if place == Path("-"):
        raise InputError("--csv: found -, expected a folder; --json - writes to standard output")
    return place


def document(*names: str, metavar: str = "FILE|-", help: str) -> Any:
    """An option that names where a document is written."""
    return typer.Option(None, *names, metavar=metavar, help=help, parser=str, callback=opened)


def argument(metavar: str, help: str, *, default: Any = ..., **more: Any) -> Any:
    """What a command is given without a name, and has to be given unless there is a ``default``;
    ``more`` is as for :func:`typer.Argument`."""
    return typer.Argument(default, metavar=metavar, help=help, **more)


def option(metavar: str, help: str, *names: str, default: Any = None, **more: Any) -> Any:
    """An option with a value, which has to be given where the ``default`` is ``...``, called as its
    parameter is unless it has ``names``; ``more`` is as for :func:`typer.Option`."""
    return typer.Option(default, *names, metavar=metavar, help=help, **more)


def flag(help: str, *names: str, default: bool | None = False) -> Any:
    """An option without a value, named alike."""
    return typer.Option(default, *names, help=help)


_STORE = "~/.local/share/ssdlab/runs unless given."
KeptBelow = Annotated[Path | None, option("DIR", f"Keep the run below this folder; {_STORE}")]
KeptWhere = Annotated[Path | None, option("DIR", f"Where the runs are kept; {_STORE}")]
Json = Annotated[
    Output | None, document("--json", help="Write the result as JSON there; - is standard output.")
]
LogFolder = Annotated[
    Path | None,
    option(
        "DIR",
        "Write fio's logs (bw, iops, lat, slat, clat, histograms) and a JSON document of each job "
        "there, named as bench-fio names them: fio-plot -i DIR draws from it.",
    ),
]
Page = Annotated[
    Output | None, document("--report", "-o", "--output", help="Write an HTML report there.")
]
Csv = Annotated[
    Path | None, option("DIR", "Write each table there as a CSV file.", callback=folder_of_tables)
]
Xlsx = Annotated[
    Output | None,
    document("--xlsx", metavar="FILE", help="Write the tables as a workbook, a sheet each."),
]
Verbose = Annotated[bool, flag("Print every sentence, table and check.", "--verbose", "-v")]
Wide = Annotated[bool, flag("Print tables in columns in a pipe too, at any width.")]
Quiet = Annotated[
    bool,
    flag(
        "No progress, no table: the answer's sentence, unless it is written somewhere.",
        "--quiet",
        "-q",
    ),
]
QuietButTrouble = Annotated[
    bool, flag("Print only what needs attention; nothing where all is good.", "--quiet", "-q")
]
Redact = Annotated[bool, flag("Leave out serial numbers and paths.")]


def naming(option: str, fate: str) -> Any:
    """An option that names a drive by its serial, to allow what is its fate."""
    help = (
        f"Allow {fate} (a device without one: its kernel name; a loop device: also its backing "
        "file)."
    )
    return typer.Option(None, option, metavar="SERIAL", help=help)


Destroy = Annotated[
    str | None, naming("--destroy", "a block device with this serial to be overwritten")
]
SetUp = Annotated[
    str,
    option(
        "NAME|NAME=VALUE,...",
        "Set a real drive and its system up for the run and restore everything after it: none, "
        "pts, or settings from `ssdlab list setups`, such as "
        "pts,write-cache=on,governor=performance.",
    ),
]
Tbw = Annotated[
    str | None, option("SIZE", "Rated endurance of a drive: 600TB, 1.2PB, or a number of TB.")
]
SeveralRuns = Annotated[
    list[str],
    argument(
        "RUN",
        "Run folders, or ids as `ssdlab list runs` shows them; last is the newest.",
        autocompletion=light.complete_runs,
    ),
]
PlanOnly = Annotated[
    bool, flag("Say what would be done and what would be refused; do nothing.", "--plan", "-n")
]


EXAMPLES = {
    "--fix": "nand.channels=8",
    "--param": "depth=16",
    "--vary": "job.iodepth=1..256x2",
}
"""Of options that take a name and a value."""


def keys(texts: list[str] | None, option: str) -> dict[str, str]:
    """The names and values that an option is given; InputError where one has no value, or comes
    twice."""
    found: dict[str, str] = {}
    name = "NAME" if option == "--param" else "KEY"
    for text in texts or []:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key:
            such = EXAMPLES.get(option, "capacity=4GiB")
            raise InputError(f'{option} "{text}": write it as {name}=VALUE, such as {such}')
        if key in found:
            how = "; join its values by commas" if option == "--vary" else ", but takes one value"
            raise InputError(f"{option} {key}: is given twice{how}")
        found[key] = value
    return found
