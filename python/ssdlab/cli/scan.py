"""``ssdlab scan``: every piece read once; what is unreadable, and what is slow."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from ssdlab.cli import light
from ssdlab.cli.options import Json, Page, SetKeys
from ssdlab.errors import ExperimentError, InputError, Interrupted
from ssdlab.output import Output
from ssdlab.units import parse_bytes, size_text

if light.BODIES:
    from rich.console import Console
    from rich.text import Text

    from ssdlab.care import scansay
    from ssdlab.care.blockio import place_of, reading
    from ssdlab.care.scan import QUICK_BYTES, Scan, blank, require_whole, scan
    from ssdlab.care.scanmap import STATES, State, cells
    from ssdlab.care.simscan import PREPARE, scan_simulated
    from ssdlab.cli.console import duration, latency, progress, table
    from ssdlab.cli.output import results, say, write_json
    from ssdlab.rig import resolve
    from ssdlab.target import Fio, Sim


COLUMNS = 64
"""Cells in a row of the map."""
ROWS_MAX = 12
ZONES = 8
LISTED_MAX = 20
"""So many places of a kind are listed; the JSON and the page have all."""

LOOKS: dict[State, tuple[str, str, str]] = {
    "quick": ("░", "green", "at the usual speed"),
    "fair": ("▒", "yellow", "takes 1.25 times the usual time"),
    "weak": ("▓", "dark_orange", "takes twice the usual time"),
    "zero": ("·", "dim", "nothing but zeros"),
    "late": ("?", "cyan", "a piece was late once"),
    "slow": ("S", "bold magenta", "a slow place"),
    "bad": ("X", "bold red", "unreadable"),
    "unread": (" ", "", "not read"),
}
"""Character, colour and meaning of each state of a cell."""


def command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A block device, a file, a profile's name or a rig file (.toml).",
            autocompletion=light.complete("drives"),
        ),
    ],
    whole: Annotated[
        bool, typer.Option("--whole", help="Read everything, not only the first 1.5 GB.")
    ] = False,
    size: Annotated[
        str | None,
        typer.Option("--size", metavar="SIZE", help="Read so much from the beginning: 20GB."),
    ] = None,
    output: Page = None,
    json_: Json = None,
    prepare: Annotated[
        str | None,
        typer.Option(
            "--prepare",
            metavar="STATE",
            help="State of a simulated drive at the start, as for run; sequential unless given.",
        ),
    ] = None,
    set_: SetKeys = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no map.")] = False,
) -> None:
    """Read a drive or file, say what is unreadable or slow, and draw a map of it. Only reads."""
    if whole and size is not None:
        raise InputError("--whole and --size exclude each other; give one of them")
    wanted = None if whole else parse_bytes("--size", size) if size else QUICK_BYTES
    if wanted is not None and wanted < 1:
        raise InputError("--size: found 0, expected at least one byte")
    what = resolve(target)
    with progress(f"scanning {target}", quiet=quiet) as callback:
        if isinstance(what, Sim):
            keys = dict(_override(text) for text in set_ or [])
            found = scan_simulated(
                what,
                wanted_bytes=wanted,
                prepare=prepare or PREPARE,
                overrides=keys,
                progress=callback,
            )
        else:
            assert isinstance(what, Fio)
            if prepare is not None or set_:
                raise InputError(f"{target}: --prepare and --set are for simulated drives")
            place = place_of(what.path)
            if place.size_bytes == 0:
                raise InputError(f"{target}: is empty, so there is nothing to read")
            with reading(what.path) as reader:
                found = blank(
                    target,
                    "device" if place.is_device else "file",
                    reader.size_bytes,
                    wanted,
                    reader.block_bytes,
                    direct=reader.direct,
                )
                scan(reader, found, progress=callback)
    _show(found, output, json_, quiet=quiet)


def _show(found: Scan, output: Output | None, json_: Output | None, *, quiet: bool) -> None:
    """Says and writes what was found, also by a scan that ended early; leaves with its status."""
    require_whole(found)
    write_json(json_, scansay.document(found))
    if output is not None:
        from ssdlab.report.scan import render  # heavy: only where it is used

        render(found, output)
    if not quiet:
        console = results(json_, output)
        _print(found, console)
        if output is not None:
            say(console, f"wrote {output}")
    if found.stopped:
        done = f"{size_text(found.read_bytes)} of {size_text(found.wanted_bytes)}"
        sentence = f"{found.target}: {found.stopped} after {done}; what was found is kept"
        raise (Interrupted if "Ctrl-C" in found.stopped else ExperimentError)(sentence)
    if found.errors:
        raise typer.Exit(ExperimentError.exit_status)


def _override(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f'--set "{text}": write it as KEY=VALUE, such as capacity=4GiB')
    return key.strip(), value.strip()


# --- the words


def _print(found: Scan, console: Console) -> None:
    speed = found.bytes_per_s()
    rate = f" at {speed / 1e6:,.0f} MB/s" if math.isfinite(speed) else ""
    virtual = " of virtual time" if found.kind == "sim" else ""
    whole = "all" if found.wanted_bytes == found.size_bytes else "the first"
    if found.stopped:
        whole = "only the first"
    again = found.again_seconds > 0.1 * found.seconds
    say(
        console,
        f"scanned {whole} {size_text(found.read_bytes)} of {found.target} in "
        f"{duration(found.seconds)}{virtual}{rate}, one read of 1 MiB at a time"
        + (f"; {duration(found.again_seconds)} more for what was slow" if again else ""),
    )
    _draw(found, console)
    for sentence in scansay.sentences(found):
        say(console, sentence)
    _list(found, console)
    zones = [one for one in found.zones(ZONES) if math.isfinite(one.bytes_per_s)]
    if len(zones) > 1:
        columns = [("from", "right"), ("to", "right"), ("speed", "right"), ("slowest", "right")]
        rows = [
            [
                size_text(one.offset),
                size_text(one.offset + one.length),
                f"{one.bytes_per_s / 1e6:,.0f} MB/s",
                latency(one.slowest_ns),
            ]
            for one in zones
        ]
        console.print(table(columns, rows))


def _draw(found: Scan, console: Console) -> None:
    shown = cells(found, COLUMNS * ROWS_MAX)
    width = max(len(size_text(shown[i].offset)) for i in range(0, len(shown), COLUMNS))
    for first in range(0, len(shown), COLUMNS):
        row = Text(f"{size_text(shown[first].offset):>{width}} ")
        for cell in shown[first : first + COLUMNS]:
            character, colour, _ = LOOKS[cell.state]
            row.append(character, colour)
        console.print(row, soft_wrap=True)
    counts = {state: sum(cell.state == state for cell in shown) for state in STATES}
    legend = Text(f"{'':>{width}} ")
    for state in STATES:
        character, colour, meaning = LOOKS[state]
        if counts[state] and state != "unread":
            legend.append(character, colour)
            legend.append(f" {meaning} ({counts[state]:,})   ")
    legend.rstrip()
    console.print(legend, soft_wrap=True)
    console.print(f"{'':>{width}} a character is {size_text(shown[0].length)}", markup=False)


def _list(found: Scan, console: Console) -> None:
    if found.errors:
        columns = [("unreadable from byte", "right"), ("length", "right"), ("block", "right")]
        columns += [("reason", "left")]
        rows = [
            [
                f"{one.offset:,}",
                f"{one.length:,}",
                f"{one.offset // found.block_bytes:,}",
                one.reason + ("" if one.exact else " (not narrowed down further)"),
            ]
            for one in found.errors[:LISTED_MAX]
        ]
        console.print(table(columns, rows))
        _more(console, len(found.errors))
    places = sorted(found.slow_places(), key=lambda one: -one.ns)
    if places and found.kind != "sim":
        columns = [("slow from byte", "right"), ("took", "right"), ("again", "left")]
        rows = [
            [f"{one.offset:,}", latency(one.ns), ", ".join(latency(ns) for ns in one.again_ns)]
            for one in places[:LISTED_MAX]
        ]
        console.print(table(columns, rows))
        _more(console, len(places))


def _more(console: Console, count: int) -> None:
    if count > LISTED_MAX:
        say(console, f"... and {count - LISTED_MAX:,} more; --json and -o have all of them")
