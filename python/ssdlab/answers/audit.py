"""An audit as an answer: what was found below a path, what would help, and the layers there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ssdlab.answer import Answer, Section, Table, Verdict, columns
from ssdlab.audits import Finding, Layer, Scene, Status


def answer(scene: Scene, findings: Sequence[Finding]) -> Answer:
    """Every finding, the worst first; of those that can be helped also why, and how."""
    counts = {status: sum(one.status is status for one in findings) for status in Status}
    parts = [f"{counts[status]} {status.value}" for status in reversed(Status) if counts[status]]
    said = f"{len(findings)} findings: {', '.join(parts)}; nothing was changed"
    worst = max((one.status for one in findings), key=lambda one: one.rank, default=Status.OK)
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
        "stack": [asdict(one) for one in scene.tops],
        "drives": [asdict(one) for one in scene.drives],
        "findings": [asdict(one) for one in findings],
    }


def _layers(scene: Scene) -> Table:
    """Each layer above what it lies on."""
    abouts = {}
    for one in scene.drives:
        kind = {True: "hard disk", False: "SSD", None: None}[one.rotational]
        parts = (one.bus, one.model, "virtual" if one.virtual else kind)
        abouts[one.name] = ", ".join(part for part in parts if part)

    def below(layers: Sequence[Layer]) -> str | None:
        return ", ".join(one.title for one in layers) or None

    target = scene.target
    if scene.mount is not None:
        target += f" ({scene.mount.kind} at {scene.mount.point})"
    rows = [[target, below(scene.tops), None]]
    rows += [[one.title, below(one.below), abouts.get(one.name)] for one in scene.layers]
    return Table("Layers", columns("layer | lies on | drive"), rows)


def table(findings: Sequence[Finding]) -> Table:
    """A row for each finding."""
    rows = [[one.status.value, one.check, one.where, one.what] for one in findings]
    return Table("Findings", columns("status | check | where | finding"), rows)


def _changes(findings: Sequence[Finding]) -> Table:
    rows = [
        [
            f"{one.where}: {one.what}",
            one.status.value,
            one.why or None,
            "; ".join(f"{seen.file}: {seen.value}" for seen in one.evidence) or None,
            one.fix,
        ]
        for one in findings
        if one.status in (Status.PROBLEM, Status.ADVICE)
    ]
    return Table("What would help", columns("finding | status | why | seen | change"), rows)
