"""Runs as they were kept before all had one form: those of a job file without a journal, and
manifests of two kinds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ssdlab import documents
from ssdlab.store.folder import JOB, SCHEMA, JournalEntry, Manifest, RunFolder


def opened(path: Path, manifest: Mapping[str, Any], place: Path) -> RunFolder:
    """The folder of an old run, by its ``manifest`` of the file ``place``; InputError where it is
    none."""
    if "protocol" in manifest:
        found = documents.checked({"id": path.name, **manifest, "schema": SCHEMA}, Manifest, place)
        return RunFolder(path, found)
    known = {"id": path.name, "name": path.name, **manifest, "schema": SCHEMA}
    target = manifest.get("target")
    simulated = isinstance(target, Mapping) and target.get("kind") == "sim"
    is_device = str(known["name"]).startswith("/dev/")
    known["kind"] = "sim" if simulated else "device" if is_device else "file"
    return RunWithoutJournal(path, documents.checked(known, Manifest, place))


class RunWithoutJournal(RunFolder):
    """The run of a job file as it was kept."""

    def journal(self) -> list[JournalEntry]:
        """Its only step."""
        made = self.manifest.created
        title = ", ".join(self.manifest.jobs)
        return [JournalEntry(1, JOB, "job", title, True, made, made)]
