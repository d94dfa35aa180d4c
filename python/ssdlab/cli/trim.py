"""``ssdlab trim``: the free space of a file system is given back to the drive."""

from __future__ import annotations

from pathlib import Path

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import argument, flag, option
from ssdlab.units import parse_bytes

if light.BODIES:
    from ssdlab.answers import trim as trim_answer
    from ssdlab.care.trim import trim


@answering
def command(
    path: Path = argument("PATH", "A mounted file system, or anything on it."),
    min_: str = option("SIZE", "Skip free ranges shorter than this, such as 1MiB.", default="0"),
    dry_run: bool = flag("Only say what there is to trim.", "--dry-run", "-n"),
    *,
    view: View,
) -> None:
    """Tell the drive which blocks of a file system are free (TRIM); say which layers pass it on."""
    done = trim(path, min_bytes=parse_bytes("--min", min_), dry_run=dry_run)
    view.show(trim_answer.answer(done))
