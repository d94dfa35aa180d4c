"""What targets have in common: how a job is run on them, and what they are opened for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ssdlab import safety
from ssdlab.jobfile import JobText
from ssdlab.progress import Notice, ProgressCallback, unheard
from ssdlab.rating import Rating
from ssdlab.results import JobShape, Result

if TYPE_CHECKING:
    from ssdlab.target.session import RealSession
    from ssdlab.target.simulated import SimSession


@dataclass(frozen=True)
class Settings:
    """How a job is run; what a target cannot honour it refuses."""

    seed: int = 1
    prepare: str | None = None
    """``fob``, or steps such as ``steady,idle:30s``; None leaves the target as it is."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    interval_ms: int = 1000
    """Length of an interval of the series, virtual ms; simulated only."""
    progress: ProgressCallback | None = None
    notice: Notice | None = None
    """Told, before the first write to a block device, what will be lost."""
    rating: Rating | None = None
    """What may be written to the drive in its life, where anybody tells."""
    memory_bytes: int | None = None
    """What a simulation may take; None for all that is available."""
    logs: bool = False
    """Whether all of fio's logs are wanted (:attr:`ssdlab.results.Result.job_logs`)."""
    all_counters: bool = False
    """Whether those of the members of a simulated array that nothing shows are kept over time."""


@dataclass(frozen=True)
class Preview:
    """What a job would do to a real target."""

    sentence: str
    """For people: what will be lost, bytes, drive writes, share of the endurance."""
    bytes_low: int
    bytes_high: int
    """On the fastest of drives, where jobs are bounded by time."""
    open_seconds: float
    """Time during which jobs bounded by time alone write as fast as they can."""
    refused: str | None
    """Why it would be refused as it is now; None where it would not."""


@runtime_checkable
class Target(Protocol):
    """Something a job can run on."""

    @property
    def name(self) -> str:
        """The label in tables and reports."""
        ...

    def check(self, job: JobText) -> None:
        """Raises what :meth:`run` would about the text of ``job``, without running it."""
        ...

    def shapes(self, job: JobText) -> list[JobShape]:
        """The sections of ``job``; raises as :meth:`check`."""
        ...

    def run(self, job: JobText, settings: Settings) -> Result:
        """Runs ``job`` to its end and tells what happened."""
        ...

    def open(self, terms: Terms) -> AbstractContextManager[SimSession | RealSession]:
        """The target for a session, in which it keeps its state from job to job; only so it is
        ever used."""
        ...

    def preview(self, job: JobText, settings: Settings) -> Preview:
        """What :meth:`run` would do and what would be refused; changes nothing."""
        ...

    @property
    def simulated(self) -> bool:
        """Whether it runs in virtual time and no drive is written."""
        ...

    @property
    def setup(self) -> str:
        """What is set on the drive and its system for a run (:mod:`ssdlab.tuning`)."""
        ...

    @property
    def logical_block(self) -> int:
        """Bytes of the smallest I/O that it takes."""
        ...

    def for_client(self) -> Target:
        """The same with the write cache as the PTS asks for it of drives for clients."""
        ...

    def smaller(self, factor: int, *, fewest: int = 1) -> dict[str, str]:
        """Overrides that make simulated drives ``factor`` times smaller; none for 1.

        Each keeps at least ``fewest`` superblocks. Raises InputError where that cannot be, and for
        a real target.
        """
        ...


def _as_it_is(_session: RealSession) -> None:
    """For a run that starts: the target is what was named."""


@dataclass(frozen=True)
class Terms:
    """What a target is opened for; each kind takes what concerns it."""

    overrides: Mapping[str, str] = field(default_factory=dict)
    """Keys of a simulated rig, with its seed."""
    seed: int = 1
    memory_bytes: int | None = None
    """What a simulated drive may take; None for all that is available."""
    work: safety.Work | None = None
    """What is done to a block device; None where it is only read."""
    size: int = 0
    """Bytes of a plain file that are worked on."""
    there: bool = False
    """Whether the file that is there is taken; otherwise it is made."""
    writes: bool = True
    keep: bool = False
    """Whether a file that was made stays when the session ends."""
    reserve: bool = True
    """Whether room is set apart for all of it when it is made."""
    notice: Notice = unheard
    verify: Callable[[RealSession], None] = _as_it_is
    """Raises where a real target that is held must not be written after all; asked before it is set
    up."""
