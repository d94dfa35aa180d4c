"""What an audit says: findings, each with the file it was read from and a way to change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ssdlab.answer import Ranked
from ssdlab.system import Seen


class Status(Ranked):
    """What a finding says of a setting."""

    OK = "ok"
    UNKNOWN = "unknown"
    """It could not be looked at."""
    ADVICE = "advice"
    PROBLEM = "problem"


OK, ADVICE, PROBLEM, UNKNOWN = Status.OK, Status.ADVICE, Status.PROBLEM, Status.UNKNOWN


@dataclass(frozen=True)
class Finding:
    """One sentence about one setting at one place."""

    check: str
    """The check that found it, filled in once for all of its findings."""
    where: str
    """The device or mount point."""
    status: Status
    what: str
    evidence: tuple[Seen, ...] = ()
    why: str = ""
    """Why it matters; empty where all is well and there is nothing to say."""
    fix: str | None = None
    """A command that would change it. It is never run."""


@dataclass(frozen=True)
class FindingsAt:
    """A device or mount point, and what was read of it: calling it makes a finding about it."""

    where: str
    evidence: tuple[Seen, ...] = ()

    def __call__(self, status: Status, what: str, why: str = "", fix: str | None = None) -> Finding:
        """A finding that rests on this evidence."""
        return Finding("", self.where, status, what, self.evidence, why, fix)


@dataclass(frozen=True)
class AuditCheck:
    """An entry of the registry."""

    name: str
    summary: str
    run: Callable[..., Iterable[Finding]]
    """Takes a :class:`~ssdlab.audits.scene.Scene`."""
