"""A target before a protocol's run opens it, anew or as a run that was stopped has left it: how
large it is, what would be refused, and opening it.

``check`` raises where it cannot be opened, ``refused`` says why that would be refused as it is now,
``capacity`` is what it will have, ``rating`` what it tells of its own endurance, and ``open`` holds
it for a session.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from ssdlab import safety, tuning
from ssdlab.engine.ratings import of_flash
from ssdlab.errors import InputError, RefusedError, SsdlabError
from ssdlab.fio.run import find_fio
from ssdlab.rating import Rating
from ssdlab.store.folder import Manifest
from ssdlab.target import Fio, Session, Sim, SimSession, Target, Terms, real, sim
from ssdlab.units import sizes_apart

FILE_BYTES = 8 << 30
"""Size of the file of a protocol on a file, where nothing else is said and the disk has room."""
FILE_BYTES_QUICK = 1 << 30


@dataclass
class SimOpening:
    """A simulated drive."""

    target: Sim
    terms: Terms
    kind: Literal["sim"] = "sim"

    @cached_property
    def session(self) -> SimSession:
        """The drive, which is built once."""
        return self.target.open(self.terms)

    @property
    def capacity(self) -> int:
        """Bytes of the drive."""
        return self.session.capacity

    @property
    def rating(self) -> Rating | None:
        """What its flash takes."""
        return of_flash(self.session)

    def check(self) -> None:
        """Builds it."""
        _ = self.session

    def refused(self) -> str | None:
        """Nothing is lost, so nothing is refused."""
        return None

    @contextlib.contextmanager
    def open(self, _terms: Terms) -> Iterator[Session]:
        """The drive."""
        yield self.session


@dataclass
class FileOpening:
    """A plain file; made unless the run goes on with the one it has. It stays: whoever runs the
    protocol removes it when all is done."""

    target: Fio
    size: int | None = None
    """Bytes, where somebody says so; of a run that goes on, those it has."""
    quick: bool = False
    begun: Manifest | None = None
    """The manifest of the run that goes on."""
    reads_only: bool = False
    """Whether it is only read: then it must be there, and nobody need be asked."""
    kind: Literal["file"] = "file"
    rating: Rating | None = None

    @cached_property
    def capacity(self) -> int:
        """Bytes as asked for, where there is no room for them too."""
        try:
            return self._room()
        except InputError:
            return self.size or (FILE_BYTES_QUICK if self.quick else FILE_BYTES)

    def check(self) -> None:
        """Raises InputError where the file cannot be made, or is not as it was left."""
        find_fio()
        self._room()

    def refused(self) -> str | None:
        """Why it would be refused."""
        path = self.target.path.absolute()
        if self.reads_only:
            return why(self.check)
        refused = why(find_fio)
        if refused is None and self.begun is None:
            refused = safety.why_file_refused(path, allowed=self.target.use_existing)
        return refused or why(self.check)

    @contextlib.contextmanager
    def open(self, terms: Terms) -> Iterator[Session]:
        """Makes or takes the file."""
        self.check()
        there = self.begun is not None or (self.target.use_existing and self.target.path.exists())
        own = replace(terms, size=self.capacity, there=there, keep=True)
        if self.reads_only:
            own = replace(own, there=True, writes=False)
        with self.target.open(own) as session:
            made = session.made if self.begun is None else self.begun.made_file
            yield replace(session, made=made)

    def _room(self) -> int:
        """How large the file is to be; InputError where it must not be, there is no room for it, or
        it has changed."""
        target, path = self.target, self.target.path.absolute()
        if self.begun is not None:
            size = self.begun.capacity
            if not path.is_file() or path.stat().st_size < size:
                raise InputError(
                    f"{target.path}: the file of this run is gone or was cut, and with it the "
                    "state that the run had brought it into; begin a new run"
                )
            return size
        if self.reads_only and not path.is_file():
            raise InputError(f"{target.path}: is no file that is there, and it is only to be read")
        if path.exists() and not target.use_existing and not self.reads_only:
            raise safety.exists(target.path)
        if path.exists():
            found = path.stat().st_size
            if self.reads_only and self.size is not None and self.size > found:
                holds, asked = sizes_apart(found, self.size)
                raise InputError(
                    f"{target.path}: holds {holds}, and --size asks for {asked} to be read"
                )
            if self.size is None and found == 0:
                raise InputError(f"{target.path}: is empty; give its size with --size")
            return self.size or found
        try:
            free = shutil.disk_usage(path.parent).free
        except OSError as error:
            raise InputError(f"{target.path}: there is no folder {path.parent}") from error
        most = FILE_BYTES_QUICK if self.quick else FILE_BYTES
        wanted = self.size or min(most, free // 2 >> 20 << 20)
        if wanted > free:
            asked, room = sizes_apart(wanted, free)
            raise InputError(
                f"{target.path}: a file of {asked} does not fit; "
                f"{room} are free there; give less with --size"
            )
        return wanted


@dataclass
class DeviceOpening:
    """A block device, claimed for as long as the session lasts."""

    target: Fio
    begun: Manifest | None = None
    """The manifest of the run that goes on."""
    reads_only: bool = False
    """Whether it is only read, for which it is not claimed."""
    kind: Literal["device"] = "device"
    rating: Rating | None = None

    @property
    def capacity(self) -> int:
        """Bytes of the device."""
        return self._device().capacity_bytes

    def check(self) -> None:
        """Raises InputError where it is gone, RefusedError where it is another one."""
        find_fio()
        self._device()

    def refused(self) -> str | None:
        """Why it would be refused."""
        if (told := why(self.check)) is not None or self.reads_only:
            return told
        device = self._device()
        return safety.why_refused(device) or safety.why_unnamed(device, self.target.destroy)

    @contextlib.contextmanager
    def open(self, terms: Terms) -> Iterator[Session]:
        """Claims it."""
        self.check()
        with self.target.open(terms) as session:
            yield session

    def _device(self) -> safety.BlockDevice:
        target, begun = self.target, self.begun
        if begun is None:
            return safety.inspect(target.path)
        if not target.path.is_block_device():
            raise InputError(f"{target.path}: there is no such device any more")
        block = tuning.wanted_block(target.setup)
        if block is not None and target.present_block != block:
            raise InputError(
                f"{target.path}: when the run was stopped it was formatted back from blocks of "
                f"{block} bytes, which erased it; begin a new run"
            )
        device = safety.inspect(target.path)
        if device.capacity_bytes != begun.capacity:
            holds, held = sizes_apart(device.capacity_bytes, begun.capacity)
            raise RefusedError(
                f"{target.path}: is not what the run was begun on: it holds {holds}, and that of "
                f"the run {held}; nothing was written"
            )
        return device


Opening = SimOpening | FileOpening | DeviceOpening


def of(
    target: Target,
    overrides: Mapping[str, str] | None = None,
    seed: int = 1,
    *,
    size: int | None = None,
    quick: bool = False,
    memory_bytes: int | None = None,
    reads_only: bool = False,
) -> Opening:
    """A target for a run that starts: ``overrides``, ``seed`` and ``memory_bytes`` are of a
    simulated drive, ``size`` and ``quick`` of a file, ``reads_only`` of both kinds of real ones."""
    if (drive := sim(target)) is not None:
        return SimOpening(drive, Terms(overrides or {}, seed, memory_bytes))
    fio = real(target, f"{target.name}: is neither simulated nor real")
    if fio.path.is_block_device():
        if size is not None:
            raise InputError(f"{fio.path}: --size is that of a file; a drive is as large as it is")
        return DeviceOpening(fio, reads_only=reads_only)
    return FileOpening(fio, size, quick, reads_only=reads_only)


def left(
    manifest: Manifest, rig: str | None, destroy: str | None = None, *, reads_only: bool = False
) -> Opening:
    """The target of a run that was begun; ``destroy`` names a device anew."""
    if manifest.kind == "sim":
        return of(Sim(manifest.name, rig or ""), manifest.overrides, manifest.seed or 1)
    target = Fio(
        Path(manifest.path or ""),
        destroy=destroy or manifest.destroy,
        use_existing=True,
        redact=manifest.redact,
        setup=manifest.setup,
    )
    if manifest.kind == "file":
        return FileOpening(target, begun=manifest, reads_only=reads_only)
    return DeviceOpening(target, manifest, reads_only)


def why(check: Callable[[], object]) -> str | None:
    """What a check that fails says; None where it does not."""
    try:
        check()
    except SsdlabError as error:
        return error.message
    return None
