"""``ssdlab purge``: a drive erases all that it holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ssdlab.cli import light
from ssdlab.cli.options import Json, QuietWords, Tbw, naming, rated
from ssdlab.errors import InputError
from ssdlab.output import Output
from ssdlab.units import size_text

if light.BODIES:
    from ssdlab import safety, units
    from ssdlab.care.blockio import place_of
    from ssdlab.care.methods import KINDS, Method, available, remark
    from ssdlab.care.purge import Purged, purge, purge_file, work_of
    from ssdlab.cli.console import progress, table
    from ssdlab.cli.output import notice, results, say, say_refusal, write_json
    from ssdlab.engine.ratings import rating_of
    from ssdlab.safety import BlockDevice


def command(
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="A block device, or a plain file.")
    ],
    destroy: Annotated[
        str | None, naming("--destroy", "the drive with this serial to be purged")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help="The way to do it; the strongest that the drive has unless given. "
            "--dry-run names those it has.",
            autocompletion=light.complete("methods"),
        ),
    ] = None,
    use_existing_file: Annotated[
        bool,
        typer.Option("--use-existing-file", help="Allow a plain file to lose what is in it."),
    ] = False,
    tbw: Tbw = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Only say which ways the drive has.")
    ] = False,
    json_: Json = None,
    quiet: QuietWords = False,
) -> None:
    """Purge a drive: it erases all it holds, so that it is as new. Overwriting is no purge."""
    given = rated(tbw)
    place = place_of(target)
    if not place.is_device:
        if method not in (None, "punch"):
            raise InputError(f"{target}: is a plain file, which can only be made a hole (punch)")
        if dry_run:
            head = f"{target}: a file on {place.kind}"
            refused = safety.why_file_refused(target.absolute(), allowed=use_existing_file)
            _say_ways([Method(KINDS["punch"])], head, json_, refused)
            return
        with progress(f"purging {target}", quiet=quiet) as callback:
            done = purge_file(target, progress=callback, allowed=use_existing_file)
    else:
        device = safety.inspect(target)
        if dry_run:
            _dry_run(device, json_, given)
            return
        rating = rating_of(target, given)
        with progress(f"purging {target}", quiet=quiet) as callback:
            done = purge(
                device,
                destroy=destroy,
                method=method,
                rating=rating,
                progress=callback,
                notice=notice,
            )
    write_json(json_, asdict(done))
    if not quiet:
        _print(done, json_)


def _print(done: Purged, json_: Output | None) -> None:
    console = results(json_)
    for said in done.tried:
        say(console, f"not used: {said}")
    say(console, f"{done.sentence} (in {units.duration(done.seconds)})")


def _dry_run(device: BlockDevice, json_: Output | None, given: float | None) -> None:
    name = f", {device.names[0]}" if device.names else ""
    head = f"{device.path} ({size_text(device.capacity_bytes)}{name})"
    if said := remark(device):
        head += f"; {said}"
    refused = safety.why_refused(device)
    _say_ways(available(device), head, json_, refused)
    would = safety.warning(device, work_of(device, rating_of(device.path, given)))
    say(results(json_), f"if it is purged: {would}")


def _say_ways(
    ways: list[Method], head: str, json_: Output | None, refused: str | None = None
) -> None:
    first = next((one for one in ways if one.obstacle is None), None)
    methods: list[dict[str, Any]] = [
        {
            "method": one.name,
            "summary": one.kind.summary,
            "real": one.real,
            "obstacle": one.obstacle,
            "expected_s": one.expected_s,
        }
        for one in ways
    ]
    here = [one.obstacle or ("would be used" if one is first else "could be used") for one in ways]
    rows = [
        [one.name, one.kind.summary, "yes" if one.real else "no", said]
        for one, said in zip(ways, here, strict=True)
    ]
    console = results(json_)
    say(console, f"{head}; nothing was changed")
    console.print(table(("method", "what it is", "real purge", "here"), rows))
    say_refusal(console, refused)
    used = None if first is None else first.name
    write_json(json_, {"would_use": used, "refused": refused, "methods": methods})
