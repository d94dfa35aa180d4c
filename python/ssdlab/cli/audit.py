"""``ssdlab audit``: what the settings of this system cost a drive, and how to change them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ssdlab.cli import light
from ssdlab.cli.options import Json
from ssdlab.errors import InputError

if light.BODIES:
    from rich.console import Console

    from ssdlab.audit import Finding, Layer, Scene, Status, System, audit_path
    from ssdlab.cli.console import table
    from ssdlab.cli.output import results, say, write_json


def command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET", help="A drive (/dev/...), a mount point, or any file or folder."
        ),
    ],
    root: Annotated[
        Path,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Audit a recorded system: a folder with its /sys, /proc and /etc.",
        ),
    ] = Path("/"),
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only findings that are not ok.")
    ] = False,
    json_: Json = None,
) -> None:
    """Check the settings below a path: TRIM, queues, caches, links, alignment. Changes nothing."""
    if root != Path("/") and not (root / "sys" / "class" / "block").is_dir():
        raise InputError(f"--root {root}: has no sys/class/block in it")
    scene, findings = audit_path(target, System(root))
    write_json(json_, document(scene, findings))
    _print(results(json_), scene, findings, quiet=quiet)


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


def _print(console: Console, scene: Scene, findings: Sequence[Finding], *, quiet: bool) -> None:
    for line in _stack(scene):
        say(console, line)
    console.print()
    shown = [one for one in findings if not quiet or one.status is not Status.OK]
    if shown:
        rows = [[one.status.value, one.check, one.where, one.what] for one in shown]
        console.print(table(("status", "check", "where", "finding"), rows))
    for one in findings:
        if one.status in (Status.PROBLEM, Status.ADVICE):
            console.print()
            for line in _explained(one):
                say(console, line)
    console.print()
    say(console, _counts(findings))


def _stack(scene: Scene) -> list[str]:
    """The layers, each below the one that lies on it."""
    lines = [scene.target]
    depth = 1
    if scene.mount is not None:
        lines.append(f"  {scene.mount.kind} at {scene.mount.point}")
        depth = 2
    models = {}
    for one in scene.drives:
        kind = {True: "hard disk", False: "SSD", None: None}[one.rotational]
        parts = (one.bus, one.model, "virtual" if one.virtual else kind)
        models[one.name] = ", ".join(part for part in parts if part)

    def walk(layer: Layer, depth: int) -> None:
        about = models.get(layer.name)
        lines.append("  " * depth + layer.title + (f" ({about})" if about else ""))
        for one in layer.below:
            walk(one, depth + 1)

    for top in scene.tops:
        walk(top, depth)
    return lines


def _explained(finding: Finding) -> list[str]:
    lines = [f"{finding.status.value}: {finding.where}: {finding.what}"]
    if finding.why:
        lines.append(f"  why     {finding.why}")
    lines.extend(f"  seen    {one.file}: {one.value}" for one in finding.evidence)
    if finding.fix:
        lines.append(f"  change  {finding.fix}")
    return lines


def _counts(findings: Sequence[Finding]) -> str:
    counts = {status: sum(one.status is status for one in findings) for status in Status}
    parts = [f"{counts[status]} {status.value}" for status in reversed(Status) if counts[status]]
    return f"{len(findings)} findings: {', '.join(parts)}; nothing was changed"
