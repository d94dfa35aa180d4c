"""Foreign documents as runs of the store: the same content is the same run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ssdlab.errors import InputError
from ssdlab.imports.find import DIGITS, ForeignDocument, scan
from ssdlab.results import Result
from ssdlab.store import RunStore


@dataclass(frozen=True)
class ImportedRun:
    """A document, its run, and whether that is new."""

    foreign: ForeignDocument
    run: Path | None
    """None where nothing was kept."""
    new: bool
    """False where the store had it before."""


class Keeper:
    """Keeps documents in a store, each content once."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._there = {one.rpartition("-")[2]: store.root / one for one in store.ids()}

    def keep(self, foreign: ForeignDocument, *, plan: bool = False) -> ImportedRun:
        """Keeps a document as a run, unless the store has it, or that is only a ``plan``."""
        ending = foreign.digest[:DIGITS]
        before = self._there.get(ending)
        if plan or before is not None:
            return ImportedRun(foreign, before, before is None)
        folder = self._store.save(foreign.result, made=_measured(foreign), ending=ending)
        self._there[ending] = folder
        return ImportedRun(foreign, folder, True)


def foreign_documents(path: Path | str, *, name: str | None = None) -> list[ForeignDocument]:
    """The documents in a file or folder of others, in the order of their names, with runs called
    ``name``, instead of the drive as far as it is known; InputError where there is none; what else
    could not be read is left out."""
    import_scan = scan([Path(path)], name=name)
    if not import_scan.found:
        why = (
            f"{import_scan.refused[0].path}: {import_scan.refused[0].why}"
            if import_scan.refused
            else ""
        )
        raise InputError(why or f"{path}: holds no JSON document of fio")
    return import_scan.found


def imported_runs(path: Path | str, *, name: str | None = None) -> list[Result]:
    """The results of :func:`foreign_documents`; nothing is kept."""
    return [document.result for document in foreign_documents(path, name=name)]


def _measured(foreign: ForeignDocument) -> datetime | None:
    """When fio wrote the document; None where it does not say."""
    moment = foreign.document.get("timestamp")
    if not isinstance(moment, int | float) or not 0 < moment < 1e11:
        return None
    return datetime.fromtimestamp(moment, UTC)
