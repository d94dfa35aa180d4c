"""What is to be known of an NVMe drive before a command goes to it."""

from __future__ import annotations

import re
from pathlib import Path

from ssdlab.admin import identify, programs
from ssdlab.fio.surroundings import SYS_BLOCK

FORMAT_PATIENCE_MS = 24 * 3600 * 1000
"""How long a drive may take over a format, ms."""


def controller(name: str, blocks: Path = SYS_BLOCK) -> str:
    """The control device of an NVMe namespace, such as ``/dev/nvme0`` for ``nvme0n1``."""
    place = (blocks / name / "device").resolve()
    if re.fullmatch(r"nvme\d+", place.name):
        return f"/dev/{place.name}"
    # A namespace with several paths hangs below a subsystem, which lists its controllers.
    try:
        found = sorted(p.name for p in place.iterdir() if re.fullmatch(r"nvme\d+", p.name))
    except OSError:
        found = []
    match = re.match(r"nvme\d+", name)
    return f"/dev/{found[0] if found else match[0] if match else name}"


def other_namespaces(name: str, control: str) -> str | None:
    """What else there is on the controller; None where there is nothing."""
    said = programs.run(["nvme", "list-ns", control, "--all", "-o", "json"])
    count = identify.nvme_namespaces(said.out) if said.status == 0 else None
    if count is None:
        match = re.match(r"nvme\d+", name)
        prefix = match[0] if match else name
        count = len([p for p in SYS_BLOCK.glob(f"{prefix}n*") if re.search(r"n\d+$", p.name)])
    return f"the drive has {count} namespaces" if count > 1 else None
