"""``ssdlab trim``: the free space of a file system is given back to the drive."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ssdlab.cli import light
from ssdlab.cli.options import Json
from ssdlab.units import parse_bytes, size_text

if light.BODIES:
    from ssdlab import units
    from ssdlab.care.trim import Trimmed, trim
    from ssdlab.cli.output import results, say, write_json
    from ssdlab.safety import refusal


def command(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="A mounted file system, or anything on it."),
    ],
    min_: Annotated[
        str,
        typer.Option(
            "--min", metavar="SIZE", help="Skip free ranges shorter than this, such as 1MiB."
        ),
    ] = "0",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Only say what there is to trim.")
    ] = False,
    json_: Json = None,
) -> None:
    """Tell the drive which blocks of a file system are free (TRIM), and how far down that gets."""
    done = trim(path, min_bytes=parse_bytes("--min", min_), dry_run=dry_run)
    write_json(json_, _document(done))
    console = results(json_)
    for sentence in [*_sentences(done), *refusal(done.refused)]:
        say(console, sentence)


def _sentences(done: Trimmed) -> list[str]:
    mount = done.mount
    where = f"{mount.kind} at {mount.point}"
    free = done.space.sentence
    if done.trimmed_bytes is None:
        said = [f"{where}: {free}; nothing was trimmed"]
    else:
        took = units.duration(done.seconds)
        said = [f"{where}: {size_text(done.trimmed_bytes)} trimmed in {took}; {free}"]
        if done.trimmed_bytes == 0 and done.space.free_bytes:
            said.append(
                "free space that was already trimmed and not used since is not trimmed again"
            )
    if mount.has("discard"):
        said.append("it is mounted with discard, so it trims files as they are deleted")
    said.append("below it:")
    said += [f"  {layer.sentence}" for layer in done.layers]
    if done.reaches_a_drive is False:
        said.append("so TRIM does not reach a drive")
    return said


def _document(done: Trimmed) -> dict[str, object]:
    own = asdict(done)
    space = own.pop("space")
    return {**space, **own, "reaches_a_drive": done.reaches_a_drive}
