"""Refreshing: data that random writes have scattered over the flash are written anew in big pieces.

Reading slows down where neighbours of the file lie on the same die or in pages shared with others,
and rest does not mend it; copying the data onto themselves in big direct pieces does (the remedy of
the experiment `fragmentation`). Every byte is written as it was read, to the place it
was read from, while nobody else can write there: whenever it ends, the data are what they were.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ssdlab import safety
from ssdlab.care.blockio import PIECE_BYTES, Place, all_zero, block_of, place_of, transfer
from ssdlab.care.extents import (
    FileLayout,
    Hold,
    alone_with,
    layout,
    open_for_rewrite,
    stretches_of,
)
from ssdlab.care.livewrite import SLICE_S, step_bytes, write_past_cache
from ssdlab.care.measure import Speed, Stretches, measure, pieces_of
from ssdlab.errors import ExperimentError, InputError, RefusedError
from ssdlab.opened import descriptor_of
from ssdlab.progress import Notice, ProgressCallback, Teller, answering_ctrl_c, unheard, within
from ssdlab.rating import Rating, drive_writes, share_text
from ssdlab.safety import Work
from ssdlab.system import COPY_ON_WRITE
from ssdlab.units import bytes_per_s, counted, size_text

SLICE_MAX_S = 5.0
LEAST_GAIN = 0.05
"""A change of speed of this share or less is none, even where the reads agree better."""
NOISE_MAX = 0.2
"""Passes of one state that differ by more than this share say nothing of a change."""
PASSES_MIN = 2
TWO_DIFFER = 2.0
"""Two passes may be alike by chance: what they differ by counts so many times."""
_WATCH_S = 10.0
"""A slice that hangs is ended after this, besides its own length."""

_AS_BEFORE = "; its data are what they were"
_ANEW = ", and the same command begins anew"

_NO_DRIVE = frozenset({"tmpfs", "ramfs", "overlay", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph"})


@dataclass(frozen=True)
class RefreshPlan:
    """What refreshing will write."""

    place: Place
    data_bytes: int
    hole_bytes: int
    layout: FileLayout | None
    remarks: tuple[str, ...]

    @property
    def drive_share(self) -> float | None:
        """Share of the drive's capacity that will be written at most."""
        return self.data_bytes / self.place.disk_bytes if self.place.disk_bytes else None

    def sentence(self) -> str:
        """How much is written, for people."""
        share = self.drive_share
        of = "" if share is None else f", {counted(drive_writes(share), 'drive write')}"
        holes = f"; {size_text(self.hole_bytes)} are holes and stay so" if self.hole_bytes else ""
        return f"up to {size_text(self.data_bytes)} will be written{of}{holes}"


@dataclass
class Refreshed:
    """What refreshing did."""

    plan: RefreshPlan
    before: Speed
    after: Speed | None = None
    written_bytes: int = 0
    zero_bytes: int = 0
    """Left alone: blocks without data would become written ones."""
    cached_bytes: int = 0
    """Left alone: blocks that a mounted file system has in memory."""
    unreadable_bytes: int = 0
    slices: int = 0
    frozen_longest_s: float = 0.0
    seconds: float = 0.0
    remarks: list[str] = field(default_factory=list)

    @property
    def gain(self) -> float | None:
        """Speed after over speed before."""
        return None if self.after is None else self.after.best / self.before.best

    @property
    def spread(self) -> float:
        """By what the reads of one state differ, as a share."""
        return max(self.before.spread, self.after.spread if self.after else 0.0)

    @property
    def doubt(self) -> str:
        """Why the speeds before and after do not compare: ``loop``, the reads being those of a
        loop device, ``few`` or ``noise``; empty where they do."""
        if (self.plan.place.disk or "").startswith("loop"):
            return "loop"
        passes = (len(one.bytes_per_s) for one in (self.before, self.after) if one)
        if min(passes) < PASSES_MIN:
            return "few"
        return "noise" if self.spread > NOISE_MAX else ""

    @property
    def verdict(self) -> str:
        """``faster``, ``slower`` or ``same``, beyond what the passes differ by; ``not-decided``
        where there is a :attr:`doubt`; ``unknown`` without both."""
        if self.after is None or self.gain is None or not self.written_bytes:
            return "unknown"
        if self.doubt:
            return "not-decided"
        passes = min(len(one.bytes_per_s) for one in (self.before, self.after))
        chance = max(LEAST_GAIN, self.spread * (TWO_DIFFER if passes == PASSES_MIN else 1.0))
        if self.gain > 1 + chance:
            return "faster"
        return "slower" if self.gain < 1 - chance else "same"


def plan(path: Path) -> RefreshPlan:
    """What refreshing ``path`` would write; changes nothing; InputError where it cannot be
    refreshed."""
    place = place_of(path)
    if place.is_device:
        device = safety.inspect(path)
        return RefreshPlan(place, device.capacity_bytes, 0, None, ())
    _refuse_kind(place)
    if place.size_bytes == 0:
        raise InputError(f"{path}: is empty, so there is nothing to rewrite")
    with descriptor_of(path, os.O_RDONLY) as descriptor:
        stretches = stretches_of(descriptor, place.size_bytes)
        laid = layout(descriptor)
    data = sum(end - start for start, end in stretches)
    if data == 0:
        raise InputError(f"{path}: is all holes, so there is nothing to rewrite")
    return RefreshPlan(place, data, place.size_bytes - data, laid, tuple(_remarks(place, laid)))


def why_refused(path: Path, *, freeze: bool = False, unshare: bool = False) -> str | None:
    """Why refreshing ``path`` would be refused as it is now; None where it would not. Changes
    nothing; the name for ``--rewrite`` is not asked for."""
    try:
        planned = plan(path)
        if planned.place.is_device:
            return safety.why_rewrite_refused(safety.inspect(path), freeze=freeze)
        _refuse_shared(planned, unshare)
        with open_for_rewrite(path) as descriptor, alone_with(descriptor, path):
            return None
    except (RefusedError, InputError) as error:
        return error.message


def refresh_file(
    path: Path,
    *,
    unshare: bool = False,
    rating: Rating | None = None,
    progress: ProgressCallback | None = None,
    notice: Notice = unheard,
) -> Refreshed:
    """Rewrites a plain file in place; its holes stay holes, its times stay as they were.

    ``unshare`` allows a file that shares blocks with others (reflinks, snapshots) to get its own.

    Raises:
        RefusedError: others have it open, or it shares blocks and ``unshare`` is not set.
        InputError: it cannot be refreshed.
        ExperimentError: writing failed, or another program opened it meanwhile.
        Interrupted: Ctrl-C, or the progress callback returned False; the data are what they were.
    """
    planned = plan(path)
    _refuse_shared(planned, unshare)
    with answering_ctrl_c(_AS_BEFORE + _ANEW, path), open_for_rewrite(path) as descriptor:
        with alone_with(descriptor, path):
            pass  # who has it open now is told before the measuring, not after
        share = share_text(0, planned.data_bytes, rating)
        notice(f"{path}: {planned.sentence()}, {share}, every byte as it was read")
        stretches = stretches_of(descriptor, planned.place.size_bytes)
        block = block_of(descriptor, path)
        first, second, third = _thirds(progress)
        os.fsync(descriptor)
        done = Refreshed(planned, measure(descriptor, stretches, block, first, "before"))
        done.remarks += planned.remarks
        with alone_with(descriptor, path) as hold:
            _rewrite_file(descriptor, block, hold, done, second)
        done.after = measure(descriptor, stretches, block, third, "after")
    return done


def _rewrite_file(
    descriptor: int, block: int, hold: Hold, done: Refreshed, progress: ProgressCallback | None
) -> None:
    path, info = done.plan.place.path, os.fstat(descriptor)
    if not hold.leased:
        done.remarks.append(
            "this file system knows no leases: that nobody wrote meanwhile was only looked for in "
            "/proc"
        )
    writer = _Writer(descriptor, block, done, progress, path)
    try:
        # Looked at again: nobody was held off while the speed was measured.
        writer.file(stretches_of(descriptor, info.st_size), hold)
    finally:
        os.fsync(descriptor)
        with contextlib.suppress(OSError):
            os.utime(descriptor, ns=(info.st_atime_ns, info.st_mtime_ns))
    _say_zeros(done)


def _say_zeros(done: Refreshed) -> None:
    if done.zero_bytes:
        done.remarks.append(f"{size_text(done.zero_bytes)} hold zeros only and were left alone")


def refresh_device(
    path: Path,
    *,
    rewrite: str | None,
    freeze: bool = False,
    slice_s: float = SLICE_S,
    rating: Rating | None = None,
    progress: ProgressCallback | None = None,
    notice: Notice = unheard,
) -> Refreshed:
    """Rewrites a drive or partition in place, slice by slice.

    ``rewrite`` names it by its serial number. A mounted file system is frozen for each slice of
    ``slice_s`` seconds, if ``freeze`` allows it, and goes on as long in between. Pieces that hold
    zeros only are left alone.

    Raises:
        RefusedError: the device is in use otherwise, or is not named by ``rewrite``.
        InputError, ExperimentError, Interrupted: as for a file.
    """
    if not 0 < slice_s <= SLICE_MAX_S:
        raise InputError(f"--slice: found {slice_s:g}, expected seconds up to {SLICE_MAX_S:g}")
    planned = plan(path)
    device = safety.inspect(path)
    # What holds zeros only is left alone, and that shows only on the way.
    work = Work(
        "refreshing",
        f"writes {safety.amount(0, planned.data_bytes)}",
        0,
        planned.data_bytes,
        rating,
    )
    limit = slice_s + _WATCH_S
    kept = _AS_BEFORE + (", its file system goes on" if freeze else "") + _ANEW
    with (
        answering_ctrl_c(kept, path),
        safety.claim_for_rewrite(device, work, rewrite, freeze=freeze, limit_s=limit) as leave,
    ):
        notice(leave.sentence)
        everything = [(0, device.capacity_bytes)]
        with descriptor_of(device.path, os.O_RDONLY | os.O_DIRECT) as looking:
            block = block_of(looking, path)
            first, second, third = _thirds(progress)
            done = Refreshed(planned, measure(looking, everything, block, first, "before"))
            writer = _Writer(-1, block, done, second, path)
            writer.device(leave, device.capacity_bytes, slice_s)
            done.after = measure(looking, everything, block, third, "after")
    _say_zeros(done)
    if done.cached_bytes:
        done.remarks.append(
            f"{size_text(done.cached_bytes)} that the file system has in memory were left alone"
        )
    if leave.mounted_at is None:
        done.remarks.append(
            "every piece was read again right before it was written; what a program without a "
            "claim writes between the two would be undone, and no such program was seen"
        )
    else:
        done.remarks.append(
            "free space that the drive had forgotten may be written now: "
            f"ssdlab trim {leave.mounted_at}"
        )
    return done


# --- the rewriting


class _Writer:
    """Writes pieces as it read them."""

    def __init__(
        self,
        descriptor: int,
        block: int,
        done: Refreshed,
        progress: ProgressCallback | None,
        path: Path,
    ) -> None:
        self.descriptor, self.block, self.done = descriptor, block, done
        self.path, self.teller = path, Teller(progress)
        self.view, self.again = (memoryview(mmap.mmap(-1, PIECE_BYTES)) for _ in range(2))
        self.unheld = False
        """Whether others are only asked for, not held off."""
        self.live_step = 0
        """Bytes of a write below a mounted file system; 0 where none is mounted."""
        self.began = time.monotonic()

    def file(self, stretches: Stretches, hold: Hold) -> None:
        """All stretches of a file, as long as nobody else wants it."""
        total = sum(end - start for start, end in stretches)
        passed = 0
        for offset, length in pieces_of(stretches):
            if not hold.held():
                raise ExperimentError(
                    f"{self.path}: another program wants the file, so this ended at "
                    f"{passed / total:.0%}; its data are what they were"
                )
            whole = length // self.block * self.block
            if whole:
                self._piece(offset, whole)
            if rest := length - whole:
                with _buffered(self.descriptor):
                    self._piece(offset + whole, rest)
            passed += length
            self.teller(passed / total, self._speed)
        self.done.seconds = time.monotonic() - self.began

    def device(self, leave: safety.Rewriting, size: int, slice_s: float) -> None:
        """All of a device, in slices with rests between them where others wait."""
        self.live_step = 0 if leave.mounted_at is None else step_bytes(self.path)
        self.unheld = leave.mounted_at is None
        offset = 0
        while offset < size:
            with leave.slice() as self.descriptor:
                began = time.monotonic()
                while offset < size and time.monotonic() - began < slice_s:
                    length = min(PIECE_BYTES, size - offset)
                    self._piece(offset, length)
                    offset += length
                os.fsync(self.descriptor)
                took = time.monotonic() - began
            self.teller(offset / size, self._speed)
            if leave.mounted_at is not None:
                self.done.slices += 1
                self.done.frozen_longest_s = leave.held_longest_s()
                time.sleep(took if offset < size else 0)
        self.done.seconds = time.monotonic() - self.began

    def _piece(self, offset: int, length: int) -> None:
        view = self.view[:length]
        try:
            transfer(os.preadv, self.descriptor, view, offset)
        except OSError:
            # What cannot be read is not written: that would make the loss final.
            self.done.unreadable_bytes += length
            return
        if all_zero(view):
            self.done.zero_bytes += length
            return
        if self.unheld:
            self._require_unchanged(offset, length)
        left = 0
        try:
            if self.live_step:
                left = write_past_cache(self.descriptor, view, offset, self.live_step)
            else:
                transfer(os.pwritev, self.descriptor, view, offset)
        except OSError as error:
            raise ExperimentError(
                f"{self.path}: writing at {offset} failed ({error.strerror}); "
                "what was written before is as it was read"
            ) from None
        self.done.written_bytes += length - left
        self.done.cached_bytes += left

    def _require_unchanged(self, offset: int, length: int) -> None:
        """No claim holds off a program that opens the device without one: what it wrote since the
        piece was read must not be undone."""
        again = self.again[:length]
        try:
            transfer(os.preadv, self.descriptor, again, offset)
        except OSError as error:
            raise ExperimentError(
                f"{self.path}: at {offset} it could be read once and not again ({error.strerror}), "
                "so this ended; its data are what they were"
            ) from None
        if again != self.view[:length]:
            raise ExperimentError(
                f"{self.path}: another program writes to it (at {offset}), so this ended; what "
                "it wrote was left alone"
            )

    def _speed(self) -> str:
        seconds = max(1e-9, time.monotonic() - self.began)
        return f"rewriting, {bytes_per_s(self.done.written_bytes / seconds)}"


@contextlib.contextmanager
def _buffered(descriptor: int) -> Iterator[None]:
    """The last bytes of a file are less than a block, which O_DIRECT cannot write."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags & ~os.O_DIRECT)
    try:
        yield
        os.fdatasync(descriptor)
    finally:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)


# --- what is refused, and what is said


def _refuse_shared(planned: RefreshPlan, unshare: bool) -> None:
    shared = planned.layout.shared_bytes if planned.layout else 0
    if shared and not unshare:
        raise RefusedError(
            f"{planned.place.path}: shares {size_text(shared)} with other files or snapshots, and "
            "rewriting gives it blocks of its own, which takes as much more space; allow that with "
            "--unshare"
        )


def _thirds(progress: ProgressCallback | None) -> list[ProgressCallback | None]:
    """Callbacks for measuring, rewriting and measuring: together one run."""
    return [within(progress, 0.0, 0.3), within(progress, 0.3, 0.7), within(progress, 0.7, 1.0)]


def _refuse_kind(place: Place) -> None:
    if place.kind in _NO_DRIVE or place.kind.startswith("fuse"):
        raise InputError(
            f"{place.path}: is on {place.kind}, below which no drive is in reach; "
            "name the file where the drive is"
        )


def _remarks(place: Place, laid: FileLayout | None) -> Iterator[str]:
    if place.kind in COPY_ON_WRITE:
        yield (
            f"{place.kind} writes elsewhere instead of in place: the file moves, snapshots keep "
            "the old blocks, and it may end up in more pieces than before"
        )
    if laid is not None and laid.compressed_bytes:
        yield f"{size_text(laid.compressed_bytes)} of it are compressed, and are compressed again"
    if laid is not None and laid.extents > 64:
        yield (
            f"the file lies in {laid.extents:,} extents: that is the file system's fragmentation, "
            "which rewriting in place does not change"
        )
