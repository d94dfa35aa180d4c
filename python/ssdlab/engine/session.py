"""A target for the whole of a protocol: opened once, it keeps its state from step to step."""

# ruff: noqa: D102 - the methods are described once, in `Session`.

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from ssdlab import _core, safety, tuning, wear
from ssdlab.care import purge as care_purge
from ssdlab.care import trim as care_trim
from ssdlab.errors import InputError, Interrupted
from ssdlab.fio import surroundings
from ssdlab.fio.run import find_fio
from ssdlab.health import smartctl
from ssdlab.jobfile import JobText
from ssdlab.memory import available_bytes
from ssdlab.progress import Progress, ProgressCallback, heard
from ssdlab.results import Result
from ssdlab.rig import summary_of
from ssdlab.safety import medium
from ssdlab.target import Fio, Notice, Settings, Sim, log_interval, sim_result
from ssdlab.units import size_text

FILE_BYTES = 8 << 30
"""Size of the file of a protocol on a file, where nothing else is said and the disk has room."""
FILE_BYTES_QUICK = 1 << 30
SLICE_S = 0.25
"""How often a real drive's rest asks whether to stop."""


class Session(Protocol):
    """A target that is open. Nothing else uses it meanwhile."""

    @property
    def kind(self) -> Literal["sim", "file", "device"]:
        """What sort of target it is; only labels and clocks may depend on it."""
        ...

    @property
    def name(self) -> str:
        """The label in tables and reports."""
        ...

    @property
    def capacity(self) -> int:
        """Bytes."""
        ...

    @property
    def direct(self) -> bool:
        """Whether I/O goes past the page cache."""
        ...

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
        ...

    def purge(self, progress: ProgressCallback) -> str:
        """Back to fresh out of the box as far as that goes; says what was done."""
        ...

    def trim(self, offset: int, length: int) -> str:
        """Deallocates a range; says what was done."""
        ...

    def idle(self, seconds: float, progress: ProgressCallback) -> None:
        """Leaves the drive alone."""
        ...

    def state(self) -> dict[str, Any]:
        """What tells at a resumption whether somebody else has used the drive."""
        ...

    def changes(self, before: Mapping[str, Any]) -> list[str]:
        """What happened to the drive since its state was ``before``; a sentence each."""
        ...

    def save(self, path: Path) -> None:
        """Keeps the drive's state, where that can be kept."""
        ...

    def restore(self, path: Path) -> None:
        """Takes a state back that :meth:`save` kept."""
        ...

    def snapshot(self) -> dict[str, Any] | None:
        """The drive's own counters: of a simulated one as in a result, else smartctl's answer."""
        ...

    def about(self) -> dict[str, Any]:
        """Drive, platform, and for a simulated drive its rig: the header of a report."""
        ...


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
        return self.target.name

    @property
    def capacity(self) -> int:
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
        self.drive.purge()
        return "every block erased, the map cleared: a real purge"

    def trim(self, offset: int, length: int) -> str:
        self.drive.trim(offset, length)
        return f"deallocated {size_text(length)}"

    def idle(self, seconds: float, progress: ProgressCallback) -> None:
        self.drive.idle(seconds)

    def state(self) -> dict[str, Any]:
        return {}

    def changes(self, before: Mapping[str, Any]) -> list[str]:
        return []

    def save(self, path: Path) -> None:
        self.drive.save(str(path))

    def restore(self, path: Path) -> None:
        self.drive.restore(str(path))

    def snapshot(self) -> dict[str, Any] | None:
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
        return {"summary": summary_of(self.target.rig), "rig": self.drive.rig_toml}


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

    @property
    def kind(self) -> Literal["file", "device"]:
        return "file" if self.device is None else "device"

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


FOREIGN_BYTES = 16 << 20
"""Less than this written by others is the system's own logging."""


def logical_block(target: Fio) -> int:
    """Bytes of a logical block of a device, or of the one below a file; 512 where nobody tells.

    Of a device that is to be formatted for the run, those that it will have.
    """
    if (wanted := tuning.wanted_block(target.setup)) is not None:
        return wanted
    return present_block(target)


def present_block(target: Fio) -> int:
    """The same as the device is now."""
    device = target.path.is_block_device()
    disk = (
        safety.inspect(target.path).name
        if device
        else surroundings.disk_of_file(target.path.absolute().parent)
    )
    place = surroundings.SYS_BLOCK / (disk or "") / "queue" / "logical_block_size"
    text = surroundings.read_line(place) if disk else None
    return int(text) if text else 512


Verify = Callable[[RealSession], None]
"""Raises where a target that is held must not be written after all; asked before it is set up."""


def _as_it_is(_session: RealSession) -> None:
    """For a run that starts: the target is what was named."""


def scratch(target: Fio, size: int | None, *, quick: bool) -> tuple[Path, int]:
    """Where a protocol's file is to be and how large.

    Raises InputError where there is no room for it.
    """
    path = target.path.absolute()
    if path.exists() and not target.use_existing:
        raise safety.exists(target.path)
    if path.exists():
        found = path.stat().st_size
        if size is None and found == 0:
            raise InputError(f"{target.path}: is empty; give its size with --size")
        return path, size or found
    try:
        free = shutil.disk_usage(path.parent).free
    except OSError as error:
        raise InputError(f"{target.path}: there is no folder {path.parent}") from error
    wanted = size or min(FILE_BYTES_QUICK if quick else FILE_BYTES, free // 2 >> 20 << 20)
    if wanted > free:
        raise InputError(
            f"{target.path}: a file of {size_text(wanted)} does not fit; "
            f"{size_text(free)} are free there; give less with --size"
        )
    return path, wanted


@contextlib.contextmanager
def open_file(
    target: Fio, size: int, notice: Notice, *, again: bool, verify: Verify = _as_it_is
) -> Iterator[RealSession]:
    """A plain file as a target; made unless the run goes on (``again``) with the one it has.

    The file stays: whoever runs the protocol removes it when all is done.
    """
    find_fio()
    path = target.path.absolute()
    if again:
        check_left_file(target, size)
    there = again or (target.use_existing and path.exists())
    with (
        safety.hold_file(path, shown=target.path, size=size)
        if there
        else safety.make_file(path, size, shown=target.path, keep=True)
    ) as held:
        disk = surroundings.disk_of_file(path.parent)
        session = RealSession(target, held, size, disk, direct=_takes_direct(path))
        verify(session)
        with tuning.applied(disk, target.setup, notice=notice) as done:
            yield replace(session, setup=done)


def check_left_file(target: Fio, size: int) -> None:
    """Raises InputError where the file of a run that was begun is not as it was left."""
    path = target.path.absolute()
    if not path.is_file() or path.stat().st_size < size:
        raise InputError(
            f"{target.path}: the file of this run is gone or was cut, and with it the state "
            "that the run had brought it into; begin a new run"
        )


@contextlib.contextmanager
def open_device(
    target: Fio, work: safety.Work, notice: Notice, *, verify: Verify = _as_it_is
) -> Iterator[RealSession]:
    """A block device as a target, claimed for as long as the session lasts."""
    find_fio()
    device = safety.inspect(target.path)
    whole = replace(work, does=work.does + tuning.consent(target.setup))
    with safety.claim(device, whole, target.destroy) as held:
        verify(RealSession(target, held, device.capacity_bytes, device.name, device))
        notice(held.sentence)
        with tuning.applied(device.name, target.setup, notice=notice, claimed=True) as done:
            held = held.again()  # a format may have changed its size
            yield RealSession(target, held, held.capacity, device.name, device, setup=done)


def _takes_direct(path: Path) -> bool:
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
    return surroundings.read_line(Path("/proc/sys/kernel/random/boot_id"))


def _sectors_written(disk: str | None) -> int | None:
    line = surroundings.read_line(surroundings.SYS_BLOCK / disk / "stat") if disk else None
    fields = (line or "").split()
    return int(fields[6]) if len(fields) > 6 else None
