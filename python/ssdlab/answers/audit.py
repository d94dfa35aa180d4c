"""An audit as an answer: what was found below a path, what would help, and the layers there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ssdlab.answer import Answer, Section, Table, Verdict, columns
from ssdlab.audits import Finding, Layer, Scene, Status


def answer(scene: Scene, findings: Sequence[Finding]) -> Answer:
    """Every finding, the worst first; of those that can be helped also why, and how."""
    counts = {status: sum(finding.status is status for finding in findings) for status in Status}
    parts = [f"{counts[status]} {status.value}" for status in reversed(Status) if counts[status]]
    said = f"{len(findings)} findings: {', '.join(parts)}; nothing was changed"
    worst = max(
        (finding.status for finding in findings), key=lambda status: status.rank, default=Status.OK
    )
    lead = Section(
        [said],
        tables=[table(findings), _changes(findings), _layers(scene)],
        key="findings",
        title="Settings",
        verdict=Verdict(worst.value, {status.value: counts[status] for status in Status}),
    )
    return Answer(f"Audit of {scene.target}", "audit", [lead], data=document(scene, findings))


def document(scene: Scene, findings: Sequence[Finding]) -> dict[str, Any]:
    """The JSON object of an audit."""
    return {
        "schema": 1,
        "target": scene.target,
        "mount": None if scene.mount is None else asdict(scene.mount),
        "stack": [asdict(layer) for layer in scene.tops],
        "drives": [asdict(drive) for drive in scene.drives],
        "findings": [asdict(finding) for finding in findings],
    }


def _layers(scene: Scene) -> Table:
    """Each layer above what it lies on."""
    abouts = {}
    for drive in scene.drives:
        kind = {True: "hard disk", False: "SSD", None: None}[drive.rotational]
        parts = (drive.bus, drive.model, "virtual" if drive.virtual else kind)
        abouts[drive.name] = ", ".join(part for part in parts if part)

    def below(layers: Sequence[Layer]) -> str | None:
        return ", ".join(layer.title for layer in layers) or None

    target = scene.target
    if scene.mount is not None:
        target += f" ({scene.mount.kind} at {scene.mount.point})"
    rows = [[target, below(scene.tops), None]]
    rows += [[layer.title, below(layer.below), abouts.get(layer.name)] for layer in scene.layers]
    return Table("Layers", columns("layer | lies on | drive"), rows)


def table(findings: Sequence[Finding]) -> Table:
    """A row for each finding."""
    rows = [
        [finding.status.value, finding.check, finding.where, finding.what] for finding in findings
    ]
    return Table("Findings", columns("status | check | where | finding"), rows)


def _changes(findings: Sequence[Finding]) -> Table:
    rows = [
        [
            f"{finding.where}: {finding.what}",
            finding.status.value,
            finding.why or None,
            "; ".join(f"{seen.file}: {seen.value}" for seen in finding.evidence) or None,
            finding.fix,
        ]
        for finding in findings
        if finding.status in (Status.PROBLEM, Status.ADVICE)
    ]
    return Table("What would help", columns("finding | status | why | seen | change"), rows)
