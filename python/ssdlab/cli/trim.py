"""``ssdlab trim``: the free space of a file system is given back to the drive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.units import parse_bytes

if light.BODIES:
    from ssdlab.answers import trim as trim_answer
    from ssdlab.care.trim import trim


@answering
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
    *,
    view: View,
) -> None:
    """Tell the drive which blocks of a file system are free (TRIM), and how far down that gets."""
    done = trim(path, min_bytes=parse_bytes("--min", min_), dry_run=dry_run)
    answer = trim_answer.answer(done)
    view.show(answer, whole=True, document=answer.data)
