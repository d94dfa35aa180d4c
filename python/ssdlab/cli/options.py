"""Options that several commands take alike."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from typer.models import OptionInfo

from ssdlab.cli import light
from ssdlab.errors import InputError
from ssdlab.output import Output
from ssdlab.units import SEED_MAX


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
JobFile = Annotated[Path | None, option("JOB.fio", "The load, as a fio job file.")]
Prices = Annotated[Path | None, option("FILE", "Prices of drives (TOML).")]
DiskCache = Annotated[
    bool, flag("Disks acknowledge writes in their volatile caches: lost with the power.")
]
SetKeys = Annotated[
    list[str] | None,
    option(
        "KEY=VALUE",
        "Change a key of the simulated rig, such as ftl.over_provisioning=0.2; may be given again.",
    ),
]
Scale = Annotated[
    int,
    option("N", "Scale the capacity of simulated drives down by N; the job stays as it is.", min=1),
]
Seed = Annotated[int, option("N", "Seed of a simulated run.", min=0, max=SEED_MAX)]


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
AssumeSpeed = Annotated[
    str | None,
    option(
        "SPEED", "How fast the drive is, for the plan: 200MB/s, 5000iops, or both, 500MB/s,20kiops."
    ),
]
UseExistingFile = Annotated[bool, flag("Allow a plain file that exists to be written.")]


_TARGET = ("TARGET", "A profile's name, a rig file (.toml), a plain file, or a block device.")
TargetName = Annotated[str, argument(*_TARGET, autocompletion=light.complete("drives"))]
OnTarget = Annotated[str, option(*_TARGET, autocompletion=light.complete("drives"))]
OneRun = Annotated[
    str,
    argument(
        "RUN",
        "A run: its folder, its id, a piece of that, or last.",
        autocompletion=light.complete_runs,
    ),
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
Prepare = Annotated[
    str | None,
    option(
        "STATE",
        "State of a simulated drive at the start: fob, or steps joined by commas: sequential, "
        "random:N, steady, trim, purge, idle:TIME, compressible:N (the data of the steps after it "
        "shrinks by N percent).",
    ),
]
ProtocolHelp = "What to do: a name from `ssdlab list protocols`."
Protocol = Annotated[
    str | None,
    option("NAME", ProtocolHelp, "--protocol", "-p", autocompletion=light.complete("protocols")),
]


class Group:
    """Options that belong together, as fields of a dataclass."""

    options: ClassVar[dict[str, Any]] = {}
    """What :func:`option` and the like say of fields, which have the values of that by default."""

    def __init_subclass__(cls) -> None:
        own = {name: one for name, one in vars(cls).items() if isinstance(one, OptionInfo)}
        cls.options = {**cls.options, **own}
        for name, one in own.items():
            setattr(cls, name, one.default)


@dataclass(frozen=True)
class Options(Group):
    """A group of options that several commands have."""

    @property
    def given(self) -> dict[str, Any]:
        """The options as functions take them."""
        return {field.name.strip("_"): getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class BenchOptions(Options):
    """Where many simulations run."""

    cluster: str | None = option(
        "ADDRESS",
        "Run the simulations on a Dask cluster: tcp://HOST:PORT of its scheduler, or local:N "
        "for N worker processes here.",
    )


@dataclass(frozen=True)
class ReuseOptions(BenchOptions):
    """The same, of commands that take whole runs from what was run before."""

    fresh: bool = flag(
        "Run all simulations again. Else results of earlier runs of the same rig, job, state, "
        "seed and version are taken."
    )


@dataclass(frozen=True)
class ProtocolOptions(Options):
    """How a protocol is carried out."""

    param: list[str] | None = option(
        "NAME=VALUE",
        "A parameter of the protocol, which `ssdlab show PROTOCOL` lists; may be given again.",
    )
    quick: bool = flag("Minutes instead of hours: not steady state, not for publication.")
    size: str | None = option(
        "SIZE",
        "Size of the file that is a target; 8g (1g with --quick), or half of what is free, "
        "unless given.",
    )
    scale: int = option(
        "N", "Scale a simulated drive and all durations down by N.", default=1, min=1
    )

    @property
    def given(self) -> dict[str, Any]:
        """As the base class; InputError where a parameter has no value."""
        return {**super().given, "param": keys(self.param, "--param")}


@dataclass(frozen=True)
class DriveOptions(Options):
    """What a real target is taken for, and how it is set up."""

    destroy: Destroy = None
    setup: SetUp = "none"
    use_existing_file: UseExistingFile = False
    redact: Redact = False
    tbw: Tbw = None


def keys(texts: list[str] | None, option: str = "--set", example: str = "") -> dict[str, str]:
    """The names and values that an option is given; InputError where one has no value."""
    found = {}
    name, such = ("NAME", "depth=16") if option == "--param" else ("KEY", "capacity=4GiB")
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InputError(
                f'{option} "{text}": write it as {name}=VALUE, such as {example or such}'
            )
        found[key.strip()] = value.strip()
    return found
