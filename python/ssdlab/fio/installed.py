"""What the installed fio knows: its options and engines, as it lists them itself."""

from __future__ import annotations

import functools
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from ssdlab.errors import MissingProgramError
from ssdlab.fio.options import ENGINES
from ssdlab.fio.run import find_fio, version

SINCE = {
    "steadystate_check_interval": "3.35",  # axboe/fio pull request 1510, merged in March 2023
    "verify_header_seed": "3.40",  # axboe/fio issue 1898: in builds since March 2025, after 3.39
}
"""First version with an option, where that is documented."""
OLDEST = (3, 33)
"""The oldest version whose answers ssdlab is tried with (README)."""
_PATIENCE_S = 10.0


@dataclass
class Installed:
    """One fio. What it cannot tell about itself it is taken to know."""

    path: str
    version: str
    """Such as ``fio-3.33``."""
    options: frozenset[str]
    """Options of all jobs; empty where it does not list them."""
    _engines: dict[str, frozenset[str] | None] = field(default_factory=dict)

    def problem(self, option: str, value: str | None) -> str | None:
        """Why it cannot take ``option``, by its canonical name; None where it can."""
        if not self.options:
            return None
        if option == "ioengine" and value and self._engine(value) is None:
            return f"{value} is no engine of the installed fio ({self.version})"
        if self._knows(option):
            return None
        since = f"; fio has it since version {SINCE[option]}" if option in SINCE else ""
        return f"the installed fio ({self.version}) has no such option{since}"

    def _knows(self, option: str) -> bool:
        if option in self.options:
            return True
        if any(option in (self._engine(engine) or ()) for engine in sorted(ENGINES)):
            return True
        # The list leaves out other names for an option; asked for one alone, fio finds it.
        said = _ask(self.path, f"--cmdhelp={option}")
        return said is None or not re.search(r"No such command|showing closest match", said)

    def _engine(self, name: str) -> frozenset[str] | None:
        """The options of an engine; None where there is no such engine."""
        if name not in self._engines:
            said = _ask(self.path, f"--enghelp={name}") or ""
            missing = re.search(r"not found|not loadable", said)
            self._engines[name] = None if missing else _listed(said)
        return self._engines[name]


def installed() -> Installed | None:
    """The fio that a run would start; None where there is none. Asked once for each binary."""
    try:
        path = find_fio()
        about = Path(path).stat()
        return _of(path, about.st_mtime_ns, about.st_size)
    except (MissingProgramError, OSError):
        return None


def why_too_old() -> str | None:
    """That the installed fio is older than ssdlab asks for; None where it is not, or unknown."""
    fio = installed()
    found = fio and re.match(r"fio-(\d+)\.(\d+)", fio.version)
    if not fio or not found or (int(found[1]), int(found[2])) >= OLDEST:
        return None
    least = ".".join(map(str, OLDEST))
    return f"{fio.version} is older than {least}, the oldest that ssdlab is tried with"


@functools.lru_cache(maxsize=8)
def _of(path: str, _mtime_ns: int, _size: int) -> Installed:
    return Installed(path, version(), _listed(_ask(path, "--cmdhelp=all") or ""))


def _listed(said: str) -> frozenset[str]:
    """The names in a list of options: ``name : what it is``, indented below their parent."""
    return frozenset(re.findall(r"^ *([A-Za-z][\w-]*) *:", said, re.MULTILINE))


def _ask(path: str, question: str) -> str | None:
    """What fio answers; None where it does not."""
    try:
        answer = subprocess.run(
            [path, question], capture_output=True, text=True, errors="replace", timeout=_PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout + answer.stderr
