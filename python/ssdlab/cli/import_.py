"""``ssdlab import``: what others measured with fio, as runs of the store."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import KeptWhere, document
from ssdlab.errors import InputError, Interrupted
from ssdlab.output import Output

if light.BODIES:
    from ssdlab.answers.imported import Item, short
    from ssdlab.answers.imported import answer as import_answer
    from ssdlab.cli.console import progress
    from ssdlab.fits import observations
    from ssdlab.imports import Foreign, Keeper, Refused, scan
    from ssdlab.progress import Progress, ProgressCallback
    from ssdlab.store import RunStore


@dataclass(frozen=True)
class Outputs(View):
    """How the answer is wanted, and the table for fits."""

    table: Annotated[
        Output | None,
        document(
            "--table",
            metavar="FILE.csv|-",
            help="Write what was measured of one drive as the table that fits take.",
        ),
    ] = None

    @property
    def documents(self) -> dict[str, Output | None]:
        """With that table."""
        return {**super().documents, "--table": self.table}


@answering
def command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="A JSON document of fio, or a folder: of bench-fio (fio-plot), ezFIO, CBT, or "
            "any other; all that is below it is looked at, links are not followed.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="What the runs are called; else the drive, as far as the documents say.",
        ),
    ] = None,
    plan: Annotated[
        bool,
        typer.Option("--plan", "--dry-run", "-n", help="Say what was recognised; keep nothing."),
    ] = False,
    out: KeptWhere = None,
    *,
    view: Outputs,
) -> None:
    """Read fio results of others: JSON of any version, folders of bench-fio, ezFIO, CBT, logs."""
    started = time.monotonic()
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: there is no such file or folder")
    store = RunStore(out)
    keeper = Keeper(store)
    with progress("import", quiet=view.quiet) as callback:
        found = scan(paths, name=name, progress=lambda at, of, file: _tell(callback, at / of / 2))
        table = None if view.table is None else _table(found.found)
        items = []
        for number, one in enumerate(found.found):
            items.append(_item(one, keeper, plan=plan))
            _tell(callback, 0.5 + (number + 1) / len(found.found) / 2)
    if view.table is not None and table is not None:
        view.table.write(table)
    if items or found.refused:
        view.show(
            import_answer(items, found, planned=plan),
            seconds=time.monotonic() - started,
            kept=None if plan or not items else store.root,
            follow=f"ssdlab show {short(items[0].foreign)}" if items and not plan else "",
            whole=True,
        )
    _check(paths, [*(one.path for one in found.found), *found.again], found.refused)


def _tell(callback: ProgressCallback, share: float) -> None:
    if not callback(Progress(share)):
        raise Interrupted("stopped; what was imported so far is kept")


def _table(found: Sequence[Foreign]) -> str:
    """The workloads and numbers of all documents as CSV; of the state of the drive nothing is said.

    Raises InputError where they are of several drives.
    """
    labels = list(dict.fromkeys(one.label for one in found))
    if len(labels) > 1:
        raise InputError(
            f"--table: the documents are of {len(labels)} drives, {', '.join(labels[:3])} ...; "
            "a table is of one: name its folder alone, or give all of them one --name"
        )
    rows = [row for one in found for row in observations.observations(one.result)]
    frame = observations.frame(rows)
    return observations.text(frame.with_columns(state=None))


def _item(one: Foreign, keeper: Keeper, *, plan: bool) -> Item:
    if plan:
        before = keeper.before(one)
        return Item(one, before, before is None)
    kept = keeper.keep(one)
    return Item(one, kept.folder, kept.new)


def _check(paths: list[Path], found: list[Path], refused: Sequence[Refused]) -> None:
    """Raises InputError where a path that was named has given nothing."""
    empty = [p for p in paths if not any(one == p or p in one.parents for one in found)]
    if not empty:
        return
    own = [one for one in refused if one.path == empty[0] or empty[0] in one.path.parents]
    first = own[0] if own else None
    why = f"{empty[0]}: holds no JSON document of fio"
    if first is not None:
        why = f"{first.path}: {first.why}"
    more = f"; {len(empty) - 1} more gave nothing" if empty[1:] else ""
    raise InputError(why + more)
