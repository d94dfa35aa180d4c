"""A real target for the whole of a protocol, or of a job: held once, it is asked before each step
whether it is still what was held."""

# ruff: noqa: D102 - the methods are described once, in `SimSession`.

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ssdlab import safety
from ssdlab.care import purge as care_purge
from ssdlab.care import trim as care_trim
from ssdlab.errors import InputError, Interrupted
from ssdlab.fio import surroundings
from ssdlab.jobfile import JobText
from ssdlab.progress import Progress, ProgressCallback
from ssdlab.results import Result
from ssdlab.safety import medium
from ssdlab.smart import smartctl
from ssdlab.system import System
from ssdlab.target.base import Settings
from ssdlab.units import size_text

if TYPE_CHECKING:
    from ssdlab.target.real import Fio

SLICE_S = 0.25
"""How often a real drive's rest asks whether to stop."""


@dataclass
class RealSession:
    """A file or a block device under the real fio."""

    target: Fio
    held: safety.Held
    capacity: int
    disk: str | None
    """Kernel's name of the drive below."""
    device: safety.BlockDevice | None = None
    """Where the target is a block device: it is claimed."""
    setup: Mapping[str, Any] | None = None
    """What was set on the drive and its system for the session, where that was asked for."""
    made: bool = False
    """Whether the file was made for the run."""

    @property
    def kind(self) -> Literal["file", "device"]:
        return "file" if self.device is None else "device"

    @property
    def option(self) -> str:
        """What allows anew that it is overwritten."""
        return f"--destroy {self.device.names[0]}" if self.device else "--use-existing-file"

    @property
    def ids(self) -> dict[str, str]:
        """What identifies the medium: :mod:`ssdlab.safety.medium`."""
        if self.device is None:
            return medium.ids_of_file(self.held.descriptor, redact=self.target.redact)
        return medium.ids_of_device(self.device.name, redact=self.target.redact)

    @property
    def name(self) -> str:
        return self.target.name

    @property
    def direct(self) -> bool:
        """Whether I/O can go past the page cache."""
        if self.device is None:
            try:
                os.close(os.open(self.target.path.absolute(), os.O_RDWR | os.O_DIRECT))
            except OSError:
                return False
        return True

    def run(
        self,
        job: JobText,
        progress: ProgressCallback | None,
        *,
        seed: int | None = None,
        interval_ms: int = 1000,
        logs: bool = False,
    ) -> Result:
        settings = Settings(progress=progress, logs=logs)
        return self.target.run_held(job, settings, self.held, self.setup)

    def purge(self, progress: ProgressCallback) -> str:
        if self.device is not None:
            self.held.check()
            return care_purge.purge_claimed(self.device, progress=progress).sentence
        self._deallocate(0, self.capacity)
        return "the file was punched out whole, which is TRIM at best: not a real purge"

    def trim(self, offset: int, length: int) -> str:
        self._deallocate(offset, length)
        what = "punched out of the file" if self.device is None else "deallocated (TRIM)"
        return f"{size_text(length)} {what}"

    def _deallocate(self, offset: int, length: int) -> None:
        self.held.check()
        try:
            work = care_trim.punch if self.device is None else care_trim.discard
            work(self.held.descriptor, offset, length)
            os.fsync(self.held.descriptor)
        except care_trim.UnsupportedError as error:
            raise InputError(
                f"{self.target.path}: {error.message}, and this protocol needs that"
            ) from None

    def idle(self, seconds: float, progress: ProgressCallback) -> None:
        begin = time.monotonic()
        while (passed := time.monotonic() - begin) < seconds:
            left = seconds - passed
            if not progress(Progress(passed / seconds, left, "at rest")):
                raise Interrupted("stopped")
            time.sleep(min(SLICE_S, left))

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "boot": System().boot,
            "sectors_written": _sectors_written(self.disk),
            "told_written": _told_written(self.snapshot(), self.name),
            "fingerprint": medium.fingerprint(self.held.descriptor, self.capacity),
        }
        if self.device is None:
            about = self.target.path.stat()
            found |= {"size": about.st_size, "modified_ns": about.st_mtime_ns}
        return found

    def changes(self, before: Mapping[str, Any]) -> list[str]:
        now, found = self.state(), []
        if self.device is None and any(
            now[key] != before.get(key) for key in ("size", "modified_ns")
        ):
            found.append("the file has been changed by somebody else")
        more = _written_since(before, now)
        if more is None:
            found.append("what else was written to the drive is not known")
        elif more > FOREIGN_BYTES:
            found.append(f"{size_text(more)} were written to the drive by others")
        return found

    def save(self, path: Path) -> None:
        pass  # a real drive keeps its own state

    def restore(self, path: Path) -> None:
        pass

    def snapshot(self) -> dict[str, Any] | None:
        return surroundings.smart(self.disk, redact=self.target.redact)

    def about(self) -> dict[str, Any]:
        file = self.target.path.absolute() if self.device is None else None
        found = surroundings.describe(self.disk, file, redact=self.target.redact)
        return found if self.setup is None else found | {"setup": dict(self.setup)}

    def identity(self) -> dict[str, Any]:
        return {
            "medium": self.ids,
            "path": str(self.target.path.absolute()),
            "destroy": self.target.destroy,
            "redact": self.target.redact,
            "setup": self.target.setup,
            "made_file": self.made,
        }

    def remove_made(self) -> None:
        if self.made:
            self.held.remove()


FOREIGN_BYTES = 16 << 20
"""Less than this written by others is the system's own logging."""


def _written_since(before: Mapping[str, Any], now: Mapping[str, Any]) -> int | None:
    """Bytes written to a drive between two states, by its own counter, which also counts what was
    written while another system ran, or the kernel's, which begins anew at each start and is the
    finer one; None where nobody counted them."""
    if now["boot"] is not None and now["boot"] == before.get("boot"):
        sectors = now["sectors_written"], before.get("sectors_written")
        if None not in sectors:
            return 512 * int(sectors[0] - sectors[1])
    told = now["told_written"], before.get("told_written")
    return None if None in told else int(told[0] - told[1])


def _told_written(snapshot: Mapping[str, Any] | None, name: str) -> int | None:
    """What the drive itself says that was written to it, bytes."""
    if snapshot is None:
        return None
    try:
        return smartctl.parse(snapshot, name).written_bytes
    except InputError:
        return None


def _sectors_written(disk: str | None) -> int | None:
    fields = (System().of(disk, "stat") or "").split()
    return int(fields[6]) if len(fields) > 6 else None
