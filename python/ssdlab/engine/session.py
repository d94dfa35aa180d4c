"""A target for the whole of a protocol: opened once, it keeps its state from step to step."""

# ruff: noqa: D102 - the methods are described once, in `SimSession`.

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ssdlab import _core, safety, wear
from ssdlab.care import purge as care_purge
from ssdlab.care import trim as care_trim
from ssdlab.errors import InputError, Interrupted
from ssdlab.fio import surroundings
from ssdlab.health import smartctl
from ssdlab.jobfile import JobText
from ssdlab.memory import available_bytes
from ssdlab.progress import Progress, ProgressCallback, heard
from ssdlab.results import Result
from ssdlab.rig import summary_of
from ssdlab.safety import medium
from ssdlab.simulation import log_interval, sim_result
from ssdlab.system import System
from ssdlab.target import Fio, Settings, Sim
from ssdlab.units import size_text

SLICE_S = 0.25
"""How often a real drive's rest asks whether to stop."""


@dataclass
class SimSession:
    """A simulated drive in virtual time."""

    target: Sim
    overrides: Mapping[str, str]
    seed: int
    memory_bytes: int | None = None
    """What it may take; None for all that is available."""
    drive: _core.Drive = field(init=False)
    kind: Literal["sim"] = "sim"
    direct: bool = True
    setup: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        self.drive = _core.Drive(
            self.target.rig,
            rig_name=self.target.source or self.target.name,
            overrides=list(self.overrides.items()),
            seed=self.seed,
            memory_bytes=available_bytes(self.memory_bytes),
        )

    @property
    def name(self) -> str:
        """The label in tables and reports."""
        return self.target.name

    @property
    def capacity(self) -> int:
        """Bytes."""
        return self.drive.capacity_bytes

    def run(
        self,
        job: JobText,
        *,
        seed: int,
        interval_ms: int,
        progress: ProgressCallback,
        logs: bool = False,
    ) -> Result:
        """Runs a job, with all of fio's logs if ``logs``; the drive goes on from where it was."""
        output = heard(
            progress,
            lambda report: self.drive.run(
                job.text,
                job_name=job.name,
                seed=seed,
                environment=dict(os.environ),
                include=job.include(),
                progress=report,
                interval_ms=interval_ms,
                log_avg_msec=log_interval(interval_ms) if logs else None,
            ),
            kept="",
        )
        shapes = self.target.shapes(job) if logs else []
        return sim_result(self.name, job, output, shapes)

    def purge(self, progress: ProgressCallback) -> str:
        """Back to fresh out of the box as far as that goes; says what was done."""
        self.drive.purge()
        return "every block erased, the map cleared: a real purge"

    def trim(self, offset: int, length: int) -> str:
        """Deallocates a range; says what was done."""
        self.drive.trim(offset, length)
        return f"deallocated {size_text(length)}"

    def idle(self, seconds: float, progress: ProgressCallback) -> None:
        """Leaves the drive alone."""
        self.drive.idle(seconds)

    def state(self) -> dict[str, Any]:
        """What tells at a resumption whether somebody else has used the drive."""
        return {}

    def changes(self, before: Mapping[str, Any]) -> list[str]:
        """What happened to the drive since its state was ``before``; a sentence each."""
        return []

    def save(self, path: Path) -> None:
        """Keeps the drive's state, where that can be kept."""
        self.drive.save(str(path))

    def restore(self, path: Path) -> None:
        """Takes a state back that :meth:`save` kept."""
        self.drive.restore(str(path))

    def snapshot(self) -> dict[str, Any] | None:
        """The drive's own counters: of a simulated one as in a result, else smartctl's answer."""
        counters = self.drive.counters()
        worn = wear.Stretch(counters, {}, self.capacity).wear
        if worn is None:
            return None
        target = {"kind": "sim", "name": self.name, "capacity_bytes": self.capacity}
        return {
            "target": target,
            "counters": counters,
            "wear": worn.document(),
            "waf_lifetime": wear.Stretch.since_new(counters).amplification,
        }

    def about(self) -> dict[str, Any]:
        """Drive, platform, and for a simulated drive its rig: the header of a report."""
        return {"summary": summary_of(self.target.rig), "rig": self.drive.rig_toml}

    def identity(self) -> dict[str, Any]:
        """What a run's manifest must say to open the target again."""
        return {"overrides": dict(self.overrides)}

    def remove_made(self) -> None:
        """Removes the file that was made for the run; what stands there in its place stays."""
        # no file was made


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
    direct: bool = True
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

    def run(
        self,
        job: JobText,
        *,
        seed: int,
        interval_ms: int,
        progress: ProgressCallback,
        logs: bool = False,
    ) -> Result:
        settings = Settings(progress=progress, logs=logs)
        return self.target.run_held(job, settings, self.held)

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
            "boot": _boot(),
            "sectors_written": _sectors_written(self.disk),
            "told_written": _told_written(self.snapshot(), self.name),
            "fingerprint": medium.fingerprint(self.held.descriptor),
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


Session = SimSession | RealSession
"""A target that is open. Nothing else uses it meanwhile."""


def takes_direct(path: Path) -> bool:
    """Whether I/O on the file can go past the page cache."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    return True


def _written_since(before: Mapping[str, Any], now: Mapping[str, Any]) -> int | None:
    """Bytes written to a drive between two states; None where nobody counted them.

    The drive's own counter also counts what was written while another system ran; the kernel's
    begins anew at each start and is the finer one.
    """
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


def _boot() -> str | None:
    return System().boot


def _sectors_written(disk: str | None) -> int | None:
    fields = (System().of(disk, "stat") or "").split()
    return int(fields[6]) if len(fields) > 6 else None
