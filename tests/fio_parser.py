"""What fio's own parser says of job files: one fio for many, since each spends a tenth of a
processor's second on its clock before it reads anything."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path


def complaint(text: str, folder: Path) -> str:
    """What fio says against a job file; empty if it takes it."""
    place = folder / "jobs.fio"
    place.write_text(text)
    done = subprocess.run(
        ["fio", "--parse-only", str(place)], capture_output=True, text=True, cwd=folder
    )
    said = (done.stdout + done.stderr).strip()
    return said or (f"exit status {done.returncode}" if done.returncode else "")


def refused(texts: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The job files that fio refuses or warns of, by name, with what it says.

    All are read as one file; only where there is something to say, each alone.
    """
    if not complaint("".join(texts.values()), folder):
        return {}
    return {name: said for name, text in texts.items() if (said := complaint(text, folder))} or {
        "all together": complaint("".join(texts.values()), folder)
    }
