"""What a protocol's run found, kept beside its steps and read back by reports and comparisons."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter

from ssdlab import documents, units
from ssdlab.answer import Check, Section, Table, marked
from ssdlab.engine import snapshots
from ssdlab.engine.records import RoundsRecord
from ssdlab.errors import InputError
from ssdlab.output import write_to
from ssdlab.store import called
from ssdlab.store.folder import FINDINGS, JournalEntry, Manifest, RunFolder

SCHEMA = 1


@dataclass(frozen=True)
class Findings:
    """The answer of a run, whole or as far as it came."""

    judgement: Section
    rounds: Sequence[RoundsRecord] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    """What purges, TRIMs and resumptions had to say, by key of their step."""
    checks: Sequence[Check] = ()
    """Whether the numbers can be believed, the worst first."""
    title: str = ""
    """The protocol's, and where its procedure comes from."""
    source: str = ""
    schema: int = SCHEMA


@dataclass(frozen=True)
class ProtocolRun:
    """A run of a protocol as it is kept."""

    folder: RunFolder
    findings: Findings
    steps: Sequence[JournalEntry]

    @property
    def id(self) -> str:
        """Its name in the store."""
        return self.folder.id

    @property
    def manifest(self) -> Manifest:
        """What was run on what."""
        return self.folder.manifest

    @property
    def protocol(self) -> str:
        """The protocol's name."""
        return self.manifest.protocol

    @property
    def target(self) -> str:
        """The target's label."""
        return self.manifest.name

    @property
    def title(self) -> str:
        """The protocol's title."""
        return self.findings.title or self.protocol

    @property
    def smaller(self) -> str:
        """The capacity of a simulated drive made smaller with all durations; else empty."""
        manifest = self.manifest
        scaled = "capacity" in (manifest.overrides or {}) and manifest.divisor > 1
        return units.number(manifest.capacity, "B") if scaled else ""

    def marks(self) -> frozenset[str]:
        """Keys of the steps whose numbers a check puts in doubt."""
        return marked(self.findings.checks, [step.key for step in self.steps])

    def counted(self) -> Table | None:
        """What the drive's own counters say of the run; None where they say nothing."""
        return snapshots.counted(self.folder.path, self.target)

    def job_texts(self) -> dict[str, str]:
        """The job files by key, those of rounds once."""
        found: dict[str, str] = {}
        for step in self.steps:
            name = step.key.rpartition("/")[2]
            if step.kind == "job" and name not in found:
                found[name] = self.folder.job_text(step)
        return found

    def document(self) -> dict[str, Any]:
        """The run for scripts: manifest, findings, steps."""
        return {
            **self.manifest.document(),
            "findings": asdict(self.findings),
            "steps": [asdict(step) for step in self.steps],
        }


def write(folder: RunFolder, findings: Findings) -> None:
    """Keeps what was found."""
    write_to(folder.path / FINDINGS, json.dumps(asdict(findings), indent=1) + "\n")


def read(folder: RunFolder) -> ProtocolRun:
    """A run with what it found; InputError where it still runs or was killed before it could say
    anything, or a file of it is damaged."""
    path = folder.path / FINDINGS
    if not path.exists():
        raise InputError(
            f"{folder.id}: runs still, and says what it found at its end"
            if folder.status == "running"
            else f"{folder.id}: was killed before it found anything; "
            f"ssdlab resume {called(folder.path)} goes on"
        )
    document = documents.parsed(documents.read_bytes(path), path)
    findings = documents.checked(document, _FINDINGS, path)
    if (why := _misfit(findings)) is not None:
        raise documents.damaged(path, why)
    return ProtocolRun(folder, findings, folder.check())


_FINDINGS = TypeAdapter(Findings)


def _misfit(findings: Findings) -> str | None:
    """What in findings cannot belong together."""
    for record in findings.rounds:
        if any(len(values) != record.count for values in record.values.values()):
            return f"rounds {record.key}: not a value for each round"
        if record.window < 2 or record.values.keys() != record.units.keys():
            return f"rounds {record.key}: units or window are missing"
    for table in findings.judgement.tables:
        if any(len(row) != len(table.columns) for row in table.rows):
            return f"table {table.title}: a row of another length"
    for figure in findings.judgement.figures:
        for curve in figure.curves:
            if len(curve.x) != len(curve.y) or (curve.z and len(curve.z) != len(curve.x)):
                return f"figure {figure.title}: a curve of two lengths"
    return None
