"""Administrators' programs as scripts that keep the state of a drive and write down what they are
told: there is no such drive here."""

from __future__ import annotations

from pathlib import Path

import pytest

ASKING = ("id-ctrl", "id-ns", "list-ns", "sanitize-log", "get-feature", " -I ")
"""What changes nothing."""


class Scripted:
    """A folder of scripts, which alone are found as programs."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        folder.mkdir()
        # What is installed on this machine must not be asked about drives that are not there.
        monkeypatch.setattr("ssdlab.admin.system_program", self.program)

    def program(self, name: str) -> str | None:
        """The path of a script."""
        path = self.folder / name
        return str(path) if path.exists() else None

    def script(self, name: str, text: str) -> None:
        """A program that first writes down its arguments."""
        path = self.folder / name
        path.write_text(f'#!/bin/sh\ncd {self.folder}\necho "{name} $*" >> log\n{text}\n')
        path.chmod(0o755)

    def log(self) -> list[str]:
        """The commands that changed something, or tried to."""
        path = self.folder / "log"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if not any(word in line for word in ASKING)]
