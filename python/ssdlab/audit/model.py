"""What an audit says: findings, each with the file it was read from and a way to change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from ssdlab.fio.mounts import Mount


class Status(StrEnum):
    """What a finding says of a setting."""

    OK = "ok"
    UNKNOWN = "unknown"
    """It could not be looked at."""
    ADVICE = "advice"
    PROBLEM = "problem"

    @property
    def rank(self) -> int:
        """Higher is worse."""
        return list(Status).index(self)


@dataclass(frozen=True)
class Evidence:
    """A file of the system and what it says."""

    file: str
    value: str

    @classmethod
    def of_mount(cls, mount: Mount) -> Evidence:
        """The options that a file system is mounted with."""
        return cls("/proc/self/mountinfo", f"{mount.point}: {','.join(mount.options)}")


@dataclass(frozen=True)
class Finding:
    """One sentence about one setting at one place."""

    check: str
    where: str
    """The device or mount point."""
    status: Status
    what: str
    evidence: tuple[Evidence, ...] = ()
    why: str = ""
    """Why it matters; empty where all is well and there is nothing to say."""
    fix: str | None = None
    """A command that would change it. It is never run."""


@dataclass(frozen=True)
class Check:
    """An entry of the registry."""

    name: str
    summary: str
    run: Callable[..., Iterable[Finding]]
    """Takes a :class:`~ssdlab.audit.scene.Scene`."""
