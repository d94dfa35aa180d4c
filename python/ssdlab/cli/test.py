"""``ssdlab test``: a protocol on a target, from its begin to the answer."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ssdlab.checks import examine_run
from ssdlab.cli.console import duration, progress, stderr, stdout
from ssdlab.cli.findings import print_checks, print_findings
from ssdlab.cli.options import (
    Destroy,
    FoundJson,
    KeptBelow,
    Quiet,
    Redact,
    ReportFile,
    Seed,
    SetKeys,
    UseExistingFile,
)
from ssdlab.cli.run import notice, override, profile_names
from ssdlab.engine import findings
from ssdlab.engine.folder import RunFolder
from ssdlab.engine.runs import Announcement, Order, begin
from ssdlab.errors import InputError
from ssdlab.protocols import find, protocols
from ssdlab.rig import resolve
from ssdlab.store import RunStore, check_writable, write_whole
from ssdlab.units import parse_bytes, size_text


def _protocol_names(incomplete: str) -> list[str]:
    return [one.name for one in protocols() if one.name.startswith(incomplete)]


def command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A profile's name, a rig file (.toml), a plain file, or a block device.",
            autocompletion=profile_names,
        ),
    ],
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            "-p",
            metavar="NAME",
            help="What to do: a name from `ssdlab list protocols`.",
            autocompletion=_protocol_names,
        ),
    ],
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param", metavar="NAME=VALUE", help="A parameter; `ssdlab show PROTOCOL` lists them."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Minutes instead of hours: a look, never a measurement of a steady drive.",
        ),
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be done, and do nothing.")
    ] = False,
    size: Annotated[
        str | None,
        typer.Option("--size", metavar="SIZE", help="Size of the file that is a target: 8g."),
    ] = None,
    scale: Annotated[
        int,
        typer.Option(
            "--scale",
            min=1,
            metavar="N",
            help="A shipped drive and all durations so many times smaller.",
        ),
    ] = 1,
    set_: SetKeys = None,
    seed: Seed = 1,
    tbw: Annotated[
        float | None,
        typer.Option(
            "--tbw",
            min=0.001,
            metavar="TB",
            help="Terabytes that the maker allows to be written, for the share of endurance.",
        ),
    ] = None,
    destroy: Destroy = None,
    use_existing_file: UseExistingFile = False,
    redact: Redact = False,
    json_: FoundJson = None,
    report: ReportFile = None,
    out: KeptBelow = None,
    quiet: Quiet = False,
) -> None:
    """Test a drive by a protocol: prepare it, wait for steady state, measure, judge."""
    order = Order(
        protocol=find(protocol),
        target=resolve(target, destroy=destroy, use_existing=use_existing_file, redact=redact),
        given=dict(parameter(text) for text in param or []),
        quick=quick,
        scale=scale,
        overrides=dict(override(text) for text in set_ or []),
        seed=seed,
        size=size_of(size),
        rated_bytes=None if tbw is None else tbw * 1e12,
    )
    for path in (report, None if json_ in (None, "-") else Path(json_)):
        if path is not None:
            check_writable(path)
    started = time.monotonic()
    console = stderr()

    def announce(what: Announcement) -> bool:
        if plan or not quiet:
            _say(stdout() if plan else console, what)
        return not plan

    with progress(f"{protocol} on {order.target.name}", quiet=quiet) as callback:
        finished = begin(
            order,
            RunStore(out),
            progress=callback,
            notice=notice,
            announce=announce,
            examine=examine_run,
        )
    if finished is not None:
        show(finished.folder, json_=json_, report=report, quiet=quiet, started=started)


def show(
    folder: RunFolder, *, json_: str | None, report: Path | None, quiet: bool, started: float
) -> None:
    """Prints and writes what a run has found."""
    run = findings.read(folder)
    console = stderr() if json_ == "-" else stdout()
    if not quiet:
        took = duration(time.monotonic() - started)
        what = "a quick look, not a steady measurement: " if run.quick else ""
        head = f"{what}{run.protocol} on {run.target}, in {took}"
        console.print(head, markup=False, soft_wrap=True, style="bold")
        print_findings(console, run, run.marks())
        print_checks(console, run.findings.checks)
        console.print(f"kept in {folder.path}", markup=False, soft_wrap=True)
    if json_ == "-":
        sys.stdout.write(findings.as_json(run) + "\n")
    elif json_ is not None:
        write_whole(Path(json_), findings.as_json(run) + "\n")
    if report is not None:
        from ssdlab.report import protocol_page  # heavy: only where it is used

        protocol_page.render(run, report)
        if not quiet:
            console.print(f"wrote {report}", markup=False, soft_wrap=True)


def _say(console: Console, what: Announcement) -> None:
    """What will be done, how long it takes, how much it writes."""
    about, setup = what.estimate, what.setup
    protocol = what.protocol

    def tell(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    look = "a quick look: " if setup.quick else ""
    tell(f"{look}{protocol.title} ({protocol.source}) on {what.target}")
    share = setup.active / setup.capacity
    part = "all" if share > 0.999 else f"{share:.0%}"
    tell(f"  works on {part} of {size_text(setup.capacity)}; {protocol.summary}")
    steps = (
        f"{about.steps_min}"
        if about.steps_min == about.steps_max
        else (f"{about.steps_min} to {about.steps_max}")
    )
    least, most = duration(about.seconds_min), duration(about.seconds_max)
    span = least if least == most else f"{least} (steady at once) to {most} (never steady)"
    clock = " of simulated time" if setup.kind == "sim" else ""
    tell(f"  {steps} steps, about {span}{clock}")
    writes = [f"at least {size_text(about.written_bytes)}"] if about.written_bytes else []
    if about.writing_max_s:
        least, most = duration(about.writing_min_s), duration(about.writing_max_s)
        times = least if least == most else f"{least} to {most}"
        writes.append(f"as fast as the drive takes it for {times}")
    if writes:
        tell(f"  writes {' and '.join(writes)}; {_share(what)}")


def _share(what: Announcement) -> str:
    share = what.endurance_share
    if share is None:
        return "its share of the drive's endurance is unknown, because the rated TBW is (--tbw)"
    if share == 0:
        return "its share of the drive's endurance depends on how fast that is"
    written = f"{share:.2%}" if share >= 0.001 else f"{share:.2g}"
    return f"that is at least {written} of what the drive takes in its life"


def parameter(text: str) -> tuple[str, str]:
    """Name and value of ``--param``."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f'--param "{text}": write it as NAME=VALUE, such as depth=16')
    return name.strip(), value.strip()


def size_of(text: str | None) -> int | None:
    """The bytes of ``--size``."""
    if text is None:
        return None
    size = parse_bytes("--size", text)
    if not size:
        raise InputError(f'--size "{text}": expected more than nothing, such as 8g or 512m')
    return size
