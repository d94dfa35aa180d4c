"""A target for the whole of a protocol: opened once, it keeps its state from step to step."""

# ruff: noqa: D102 - the methods are described once, in `Session`.

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from ssdlab import _core, safety, wear
from ssdlab.care import purge as care_purge
from ssdlab.care import trim as care_trim
from ssdlab.errors import ExperimentError, InputError, Interrupted
from ssdlab.fio import surroundings
from ssdlab.fio.run import find_fio
from ssdlab.health import smartctl
from ssdlab.jobfile import JobText
from ssdlab.memory import available_bytes
from ssdlab.progress import Progress, ProgressCallback
from ssdlab.results import Result
from ssdlab.rig import summary_of
from ssdlab.target import Fio, Notice, Settings, Sim, sim_progress, sim_result
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
        self, job: JobText, *, seed: int, interval_ms: int, progress: ProgressCallback
    ) -> Result:
        """Runs a job; the drive goes on from where it was."""
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
    drive: _core.Drive = field(init=False)
    kind: Literal["sim"] = "sim"
    direct: bool = True

    def __post_init__(self) -> None:
        self.drive = _core.Drive(
            self.target.rig,
            rig_name=self.target.source or self.target.name,
            overrides=list(self.overrides.items()),
            seed=self.seed,
            memory_bytes=available_bytes(),
        )

    @property
    def name(self) -> str:
        return self.target.name

    @property
    def capacity(self) -> int:
        return self.drive.capacity_bytes

    def run(
        self, job: JobText, *, seed: int, interval_ms: int, progress: ProgressCallback
    ) -> Result:
        stopped = False

        def report(news: _core.Progress) -> bool:
            nonlocal stopped
            stopped = not progress(sim_progress(news))
            return not stopped

        try:
            output = self.drive.run(
                job.text,
                job_name=job.name,
                seed=seed,
                environment=dict(os.environ),
                include=job.include(),
                progress=report,
                interval_ms=interval_ms,
            )
        except KeyboardInterrupt:
            raise Interrupted("stopped by Ctrl-C") from None
        except Exception:
            if stopped:
                raise Interrupted("stopped") from None
            raise
        return sim_result(self.name, job, output)

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
        worn = wear.document(counters, {})
        if worn is None:
            return None
        target = {"kind": "sim", "name": self.name, "capacity_bytes": self.capacity}
        return {
            "target": target,
            "counters": counters,
            "wear": worn,
            "waf_lifetime": wear.amplification(counters),
        }

    def about(self) -> dict[str, Any]:
        return {"summary": summary_of(self.target.rig), "rig": self.drive.rig_toml}


@dataclass
class RealSession:
    """A file or a block device under the real fio."""

    target: Fio
    capacity: int
    disk: str | None
    """Kernel's name of the drive below."""
    device: safety.BlockDevice | None = None
    """Where the target is a block device: it is claimed."""
    direct: bool = True

    @property
    def kind(self) -> Literal["file", "device"]:
        return "file" if self.device is None else "device"

    @property
    def name(self) -> str:
        return self.target.name

    def run(
        self, job: JobText, *, seed: int, interval_ms: int, progress: ProgressCallback
    ) -> Result:
        settings = Settings(progress=progress)
        if self.device is not None:
            return self.target.run_claimed(job, settings, self.device)
        return self.target.run(job, settings)

    def purge(self, progress: ProgressCallback) -> str:
        if self.device is not None:
            return care_purge.purge_claimed(self.device, progress=progress).sentence
        self._deallocate(0, self.capacity)
        return "the file was punched out whole, which is TRIM at best: not a real purge"

    def trim(self, offset: int, length: int) -> str:
        self._deallocate(offset, length)
        what = "punched out of the file" if self.device is None else "deallocated (TRIM)"
        return f"{size_text(length)} {what}"

    def _deallocate(self, offset: int, length: int) -> None:
        descriptor = os.open(self.target.path, os.O_RDWR)
        try:
            work = care_trim.punch if self.device is None else care_trim.discard
            work(descriptor, offset, length)
            os.fsync(descriptor)
        except care_trim.UnsupportedError as error:
            raise InputError(
                f"{self.target.path}: {error.message}, and this protocol needs that"
            ) from None
        finally:
            os.close(descriptor)

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
        return surroundings.describe(self.disk, file, redact=self.target.redact)


FOREIGN_BYTES = 16 << 20
"""Less than this written by others is the system's own logging."""


def logical_block(target: Fio) -> int:
    """Bytes of a logical block of a device, or of the one below a file; 512 where nobody tells."""
    device = target.path.is_block_device()
    disk = (
        safety.inspect(target.path).name
        if device
        else surroundings.disk_of_file(target.path.absolute().parent)
    )
    place = surroundings.SYS_BLOCK / (disk or "") / "queue" / "logical_block_size"
    text = surroundings.read_line(place) if disk else None
    return int(text) if text else 512


def scratch(target: Fio, size: int | None, *, quick: bool) -> tuple[Path, int]:
    """Where a protocol's file is to be and how large.

    Raises InputError where there is no room for it.
    """
    path = target.path.absolute()
    if path.exists() and not target.use_existing:
        raise _exists(target)
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
def open_file(target: Fio, size: int, *, again: bool) -> Iterator[RealSession]:
    """A plain file as a target; made unless the run goes on (``again``) with the one it has.

    The file stays: whoever runs the protocol removes it when all is done.
    """
    find_fio()
    path = target.path.absolute()
    if again:
        if not path.is_file() or path.stat().st_size < size:
            raise InputError(
                f"{target.path}: the file of this run is gone or was cut, and with it the state "
                "that the run had brought it into; begin a new run"
            )
    else:
        _make(target, path, size)
    disk = surroundings.disk_of_file(path.parent)
    kept = Fio(target.path, use_existing=True, redact=target.redact)
    yield RealSession(kept, size, disk, direct=_takes_direct(path))


@contextlib.contextmanager
def open_device(target: Fio, work: safety.Work, notice: Notice) -> Iterator[RealSession]:
    """A block device as a target, claimed for as long as the session lasts."""
    find_fio()
    device = safety.inspect(target.path)
    with safety.claim(device, work, target.destroy) as sentence:
        notice(sentence)
        yield RealSession(target, device.capacity_bytes, device.name, device)


def _make(target: Fio, path: Path, size: int) -> None:
    if target.use_existing and path.exists():
        if not path.is_file() or path.is_symlink():
            raise InputError(f"{target.path}: is not a plain file, so it cannot be a target")
    else:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise _exists(target) from None
        except OSError as error:
            raise InputError(
                f"{target.path}: cannot make this file ({error.strerror}); choose another folder"
            ) from None
    try:
        os.truncate(path, size)
    except OSError as error:
        raise ExperimentError(
            f"{target.path}: cannot be made so large ({error.strerror})"
        ) from None


def _exists(target: Fio) -> InputError:
    return InputError(
        f"{target.path}: exists and would be overwritten; "
        "choose a new name, or allow it with --use-existing-file"
    )


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
