"""``ssdlab import``: what others measured with fio, as runs of the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering
from ssdlab.cli.options import KeptWhere, argument, document, flag, option
from ssdlab.errors import InputError
from ssdlab.output import Output

if light.BODIES:
    from ssdlab.answers.imported import short
    from ssdlab.api.imports import imported
    from ssdlab.cli.output import progress
    from ssdlab.fits import observations
    from ssdlab.imports import ForeignDocument, ImportedRun
    from ssdlab.store import RunStore, called


@dataclass(frozen=True)
class ImportView(View):
    """How the answer is wanted, and the table for fits."""

    table: Output | None = document(
        "--table",
        metavar="FILE.csv|-",
        help="Write what was measured of one drive as the table that fits take.",
    )


@answering
def command(
    paths: list[Path] = argument(
        "PATH",
        "A JSON document of fio, or a folder: of bench-fio (fio-plot), ezFIO, CBT, or any "
        "other; all that is below it is looked at, links are not followed.",
    ),
    name: str | None = option(
        "NAME", "What the runs are called; else the drive, as far as the documents say."
    ),
    plan: bool = flag("Say what was recognised; keep nothing.", "--plan", "--dry-run", "-n"),
    out: KeptWhere = None,
    *,
    view: ImportView,
    ask: Ask,
) -> None:
    """Read fio results of others: JSON of any version, folders of bench-fio, ezFIO, CBT, logs."""
    store = RunStore(out)
    with progress("import", quiet=view.quiet) as callback:
        done = imported(paths, name, store, callback, plan=plan)
    if view.table is not None:
        view.table.write(_table(done.found.found))
    items = done.items
    if items or done.found.refused:
        view.show(
            done.report.answer,
            seconds=ask.seconds,
            kept=None if plan or not items else store.root,
            follow=_follow(items[0]) if items else "",
        )
    done.check()


def _follow(item: ImportedRun) -> str:
    """The command that shows the run of a document; empty where nothing was kept."""
    if item.run is None:
        return ""
    name = called(item.run)
    return f"ssdlab show {short(item.foreign) if name == item.run.name else name}"


def _table(documents: Sequence[ForeignDocument]) -> str:
    """The workloads and numbers of all documents as CSV; of the state of the drive nothing is said;
    InputError where they are of several drives."""
    labels = list(dict.fromkeys(foreign_document.label for foreign_document in documents))
    if len(labels) > 1:
        raise InputError(
            f"--table: the documents are of {len(labels)} drives, {', '.join(labels[:3])} ...; "
            "a table is of one: name its folder alone, or give all of them one --name"
        )
    rows = [
        row
        for foreign_document in documents
        for row in observations.observations(foreign_document.result)
    ]
    frame = observations.frame(rows)
    return observations.text(frame.with_columns(state=None))
