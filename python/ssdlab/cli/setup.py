"""``ssdlab setup``: what ``--setup`` would set for a run, and what killed runs have left set."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ssdlab.cli import light
from ssdlab.cli.answer import answering
from ssdlab.cli.options import Destroy, Json, SetUp, argument, flag
from ssdlab.errors import InputError, SsdlabError
from ssdlab.output import Output

if light.BODIES:
    from rich.console import Console

    from ssdlab import safety, tuning
    from ssdlab.cli.answer import print_rows
    from ssdlab.cli.output import notice, results, say, write_json
    from ssdlab.engine.runs import set_up_for
    from ssdlab.rig import resolve
    from ssdlab.system import System
    from ssdlab.target import Fio, Target, real


PTS = "pts"


@answering
def command(
    target: str | None = argument(
        "TARGET", "A block device, or a plain file on the drive.", default=None
    ),
    setup: SetUp = PTS,
    dry_run: bool = flag("Say what would be set where, and what cannot be.", "--dry-run", "-n"),
    restore: bool = flag("Restore what killed runs have left set, on TARGET or everywhere."),
    destroy: Destroy = None,
    json_: Json = None,
) -> None:
    """Show what --setup would set for a run, or restore what killed runs have left set."""
    if dry_run == restore:
        raise InputError(
            "settings last as long as a run, so --setup goes with ssdlab run, test and ab; here "
            "give --dry-run to see what it would set, or --restore to restore leftovers"
        )
    if restore:
        _restore(target, destroy, json_)
        return
    if target is None:
        raise InputError("--dry-run: name the drive or a file on it")
    fio = _real(target, setup)
    records = tuning.preview(System().disk_below(fio.path), fio.setup)
    write_json(json_, [record.as_json() for record in records])
    console = results(json_)
    say(console, f"{target}: what --setup {setup} would set; nothing was changed")
    _print(console, records)


def say_preview(console: Console, target: Target, values: Mapping[str, int | float | str]) -> None:
    """What ``--setup`` of a target would set, where it was given; changes nothing."""
    if not tuning.parse(target.setup):
        return
    fio = real(set_up_for(target, values), f"{target.name}: is a simulated drive")
    say(console, f"  --setup {fio.setup} would set, and restore when the run ends:")
    _print(console, tuning.preview(System().disk_below(fio.path), fio.setup))


def restore_named(arguments: Sequence[str]) -> None:
    """Restores what killed runs have left set on the drives that a command line names."""
    # Nobody asked for this, so it says nothing where it cannot be done.
    with contextlib.suppress(SsdlabError, OSError, ValueError):
        paths = (
            Path(argument) for argument in arguments if argument and not argument.startswith("-")
        )
        for name in {System().disk_below(path) for path in paths} - {None}:
            tuning.restore_left(notice, name=name)


def _restore(target: str | None, destroy: str | None, json_: Output | None) -> None:
    said: list[str] = []
    if target is None:
        if destroy is not None:
            raise InputError("--destroy: name the drive that is to be formatted back")
        count = tuning.restore_left(said.append)
    else:
        path = _real(target, tuning.NONE).path
        name = System().disk_below(path)
        if name is None:
            raise InputError(f"{target}: the drive below it is not known")
        count = _restore_on(path, name, destroy, said)
    if not count:
        said.append("no killed run has left anything set")
    write_json(json_, {"runs": count, "said": said})
    for one in said:
        say(results(json_), one)


def _restore_on(path: Path, name: str, destroy: str | None, said: list[str]) -> int:
    if destroy is None:
        return tuning.restore_left(said.append, name=name)
    if not path.is_block_device():
        raise InputError(f"{path}: --destroy names a drive; give the drive itself")
    work = safety.Work("restoring its LBA format", "formats it if a killed run left another one")
    with safety.claim(safety.inspect(path), work, destroy) as held:
        notice(held.sentence)
        return tuning.restore_left(said.append, name=name, formats=True)


def _real(target: str, setup: str) -> Fio:
    found = resolve(target, setup=setup)
    return real(found, f"{target}: is a simulated drive; name a block device or a file")


def _print(console: Console, records: Sequence[tuning.Record]) -> None:
    heads = ("setting", "now", "would become", "place, or why not")
    print_rows(console, heads, tuning.rows(records))
