"""``ssdlab.import_runs``: what others measured with fio, as runs of the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ssdlab.analysis.measurement import row_numbers
from ssdlab.answers.imported import answer as import_answer
from ssdlab.api.report import Report, frame_of
from ssdlab.api.watching import Watch, shown
from ssdlab.errors import InputError, Interrupted
from ssdlab.given import several
from ssdlab.imports import ImportedRun, ImportScan, Keeper, Refused, scan
from ssdlab.progress import Progress, ProgressCallback
from ssdlab.store import RunStore


@dataclass(frozen=True)
class Imported:
    """What was found, and the runs of it."""

    paths: Sequence[Path]
    found: ImportScan
    items: Sequence[ImportedRun]
    planned: bool

    @property
    def report(self) -> Report:
        """What was imported, as a report."""
        rows = [
            {"run": None if item.run is None else item.run.name, "file": str(item.foreign.path),
             "name": item.foreign.label, **row_numbers(row)}
            for item in self.items
            for row in item.foreign.result.summary()
        ]  # fmt: skip
        return Report(
            import_answer(self.items, self.found, planned=self.planned),
            [item.foreign.result for item in self.items],
            [item.run.name for item in self.items if item.run is not None],
            frame_of(rows),
        )

    def check(self) -> None:
        """Raises InputError where a path that was named has given nothing."""
        paths = [*(document.path for document in self.found.found), *self.found.again]
        empty = [p for p in self.paths if not any(path == p or p in path.parents for path in paths)]
        if not empty:
            return
        refused: Sequence[Refused] = self.found.refused
        own = [one for one in refused if one.path == empty[0] or empty[0] in one.path.parents]
        why = (
            f"{own[0].path}: {own[0].why}" if own else f"{empty[0]}: holds no JSON document of fio"
        )
        more = f"; {len(empty) - 1} more gave nothing" if empty[1:] else ""
        raise InputError(why + more)


def import_runs(
    paths: str | Path | Sequence[str | Path],
    *,
    name: str | None = None,
    out: str | Path | None = None,
    progress: Watch = None,
) -> Report:
    """Reads fio results of others: JSON of any version, folders of bench-fio, ezFIO, CBT, logs.

    Each document becomes a run of the store; the same content is the same run.

    Args:
        paths: A document, or a folder that is looked at with all that is below it; one or several.
        name: What the runs are called; else the drive, as far as the documents say.
        out: Where the runs are kept; else in the user's store.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.

    Returns:
        ``runs`` are the ids, ``results`` the runs; ``frame()`` has a row for each run, job and
        direction, with the numbers of the measurement window.

    Raises:
        InputError: a path does not exist, or nothing of it is a result of fio; what else was named
            is imported.
        Interrupted: it was stopped; what was imported so far is kept.
    """
    named = [Path(one) for one in several(paths)]
    if not named:
        raise InputError("paths: found none, expected a document of fio, or a folder of them")
    with shown(progress, "import") as callback:
        done = imported(named, name, RunStore(out), callback)
    done.check()
    return done.report


def imported(
    paths: Sequence[Path],
    name: str | None,
    store: RunStore,
    callback: ProgressCallback,
    *,
    plan: bool = False,
) -> Imported:
    """What the paths hold, kept unless that is only a ``plan``; raises as :func:`import_runs`."""
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: there is no such file or folder")
    keeper = Keeper(store)
    import_scan = scan(
        paths, name=name, progress=lambda at, of, _file: _tell(callback, at / of / 2)
    )
    items = []
    for number, document in enumerate(import_scan.found):
        items.append(keeper.keep(document, plan=plan))
        _tell(callback, 0.5 + (number + 1) / len(import_scan.found) / 2)
    return Imported(paths, import_scan, items, plan)


def _tell(callback: ProgressCallback, share: float) -> None:
    if not callback(Progress(share)):
        raise Interrupted("stopped; what was imported so far is kept")
