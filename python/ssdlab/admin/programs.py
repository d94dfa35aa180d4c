"""Administrators' programs, run to their end whatever the terminal says."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ssdlab.errors import MissingProgramError
from ssdlab.system import system_program

_LOOK_EVERY_S = 0.2
_PACKAGES = {"nvme": "nvme-cli"}
"""Of programs that are not called as their package is."""


@dataclass(frozen=True)
class Said:
    """How a program ended."""

    status: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """Its reason in one line."""
        lines = [line.strip() for line in (self.err + "\n" + self.out).splitlines()]
        return next((line for line in lines if line), f"exit status {self.status}")


def run(command: Sequence[str], waiting: Callable[[float], None] | None = None) -> Said:
    """Runs ``command`` to its end; ``waiting`` is told the seconds passed meanwhile.

    An erase cannot be called back once the drive has it, so a Ctrl-C does not reach the program:
    it is raised here, after the program has ended.

    Raises MissingProgramError where it is not installed.
    """
    program = system_program(command[0])
    if program is None:
        package = _PACKAGES.get(command[0], command[0])
        raise MissingProgramError(f"{package} is not installed: sudo apt install {package}")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        stopped = _wait(process, waiting)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    if stopped:
        raise KeyboardInterrupt
    return Said(process.returncode, *texts)


def _wait(process: subprocess.Popen[bytes], waiting: Callable[[float], None] | None) -> bool:
    """Whether somebody wanted to stop meanwhile."""
    stopped = False
    started = time.monotonic()
    while True:
        try:
            process.wait(_LOOK_EVERY_S)
            return stopped
        except subprocess.TimeoutExpired:
            pass
        except KeyboardInterrupt:
            stopped = True
            continue
        try:
            if waiting is not None:
                waiting(time.monotonic() - started)
        except KeyboardInterrupt:
            stopped = True
