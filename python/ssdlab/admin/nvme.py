"""What is to be known of an NVMe drive before a command goes to it."""

from __future__ import annotations

import re
from pathlib import Path

from ssdlab.admin import identify, programs
from ssdlab.admin.identify import NvmeErase
from ssdlab.errors import ExperimentError
from ssdlab.system import CLASS, System

FORMAT_PATIENCE_MS = 24 * 3600 * 1000
"""How long a drive may take over a format, ms."""


def controller(name: str, system: System | None = None) -> str:
    """The control device of an NVMe namespace, such as ``/dev/nvme0`` for ``nvme0n1``."""
    own = system or System()
    place = own.resolve(f"{CLASS}/{name}/device")
    # A namespace with several paths hangs below a subsystem, which lists its controllers.
    for one in (Path(place).name, *own.listed(place)):
        if re.fullmatch(r"nvme\d+", one):
            return f"/dev/{one}"
    return f"/dev/{_drive(name)}"


def abilities(control: str) -> NvmeErase:
    """What a controller says that it can do.

    Raises ExperimentError where nvme-cli is missing or fails.
    """
    said = programs.run(["nvme", "id-ctrl", control, "-o", "json"])
    can = identify.nvme_erase(said.out) if said.status == 0 else None
    if can is None:
        raise ExperimentError(f"nvme id-ctrl fails: {said.complaint}")
    return can


def format_command(node: str, *options: str) -> list[str]:
    """The command that formats a namespace, which waits as long as the drive takes."""
    # --force: nvme-cli takes our own claim for somebody else's use, and would wait to be sure.
    return ["nvme", "format", node, *options, f"--timeout={FORMAT_PATIENCE_MS}", "--force"]


def other_namespaces(name: str, control: str) -> str | None:
    """What else there is on the controller; None where there is nothing."""
    said = programs.run(["nvme", "list-ns", control, "--all", "-o", "json"])
    count = identify.nvme_namespaces(said.out) if said.status == 0 else None
    if count is None:
        namespace = rf"{_drive(name)}n\d+"
        count = sum(re.fullmatch(namespace, one) is not None for one in System().listed(CLASS))
    return f"the drive has {count} namespaces" if count > 1 else None


def _drive(name: str) -> str:
    match = re.match(r"nvme\d+", name)
    return match[0] if match else name
