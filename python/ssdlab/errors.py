"""What can go wrong, by whose hand: every exception here is one clear sentence.

The command line prints the sentence and leaves with ``exit_status``; nothing here ever shows a
traceback to a user. All exceptions can be pickled, so they cross threads and processes whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, ClassVar


class SsdlabError(Exception):
    """Base of everything ssdlab raises on purpose. ``str(error)`` is one sentence."""

    exit_status: ClassVar[int] = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __reduce__(self) -> tuple[type[SsdlabError], tuple[Any, ...]]:
        return type(self), (self.message,)


class InputError(SsdlabError, ValueError):
    """The input is wrong: a job file, a rig, an option, a path. Exit status 2."""

    exit_status = 2


class UnknownNameError(InputError):
    """A name that nothing has; the message lists the known ones and the nearest. Exit status 2."""


class MemoryShortError(InputError):
    """A simulation needs more memory than there is, or than its share of it. Exit status 2."""


class RefusedError(SsdlabError):
    """Refused for safety: going on could destroy data. Exit status 3."""

    exit_status = 3


class ExperimentError(SsdlabError):
    """The experiment was sound but failed: fio broke off, the disk filled. Exit status 1."""

    exit_status = 1


class _WithResultError(SsdlabError):
    """What ended a job; ``result`` is what that had done by then, None where that is not kept."""

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[type[_WithResultError], tuple[Any, ...]]:
        return type(self), (self.message, self.result)


class BrokenOffError(_WithResultError, ExperimentError):
    """A job broke off after it had begun; ``result`` is what it had done by then. Exit status 1."""


class MissingProgramError(ExperimentError):
    """A program that the experiment needs is not installed. Exit status 1."""


class Interrupted(_WithResultError):
    """Stopped by Ctrl-C or by a progress callback; nothing half-written remains. Status 130.

    ``result`` is what a job on a real drive had done by then; None of all else.
    """

    exit_status = 130
    by: ClassVar[str] = "Ctrl-C"
    """What stops this process: Ctrl-C, or the name of the signal that came instead."""
    asked: ClassVar[bool] = False
    """Whether it came to a command: Python loses exceptions that meet one of its own callbacks, so
    whoever waits for long looks here as well."""

    @classmethod
    def sentence(cls) -> str:
        """That it was stopped, and by what."""
        return f"stopped by {cls.by}"

    def keeping(self, runs: int, where: str = "", again: str = "the same") -> Interrupted:
        """The same of several runs, of which those that ended are kept; itself where none is."""
        if not runs:
            return self
        how, ended = self.message.partition(";")[0], "run that ended is kept"
        if runs > 1:
            ended = "runs that ended are kept"
        return Interrupted(
            f"{how}; {runs:,} {ended}{where}, and {again} command goes on from there"
        )


def missing_extra(what: str, package: str, extra: str) -> InputError:
    """The error for a package that is not installed, and belongs to an extra of ours."""
    return InputError(
        f"{what} needs {package}, which is not installed: pip install 'ssdlab[{extra}]'"
    )


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` most likely means, or None where none is near: what it is the
    beginning of, a space for a hyphen, or else what differs least."""
    from ssdlab import _core  # which takes its errors from here

    return _core.nearest(name, list(known))


def meant(name: str, known: Iterable[str], hint: str = ' (did you mean "{}"?)') -> str:
    """The hint that goes behind a name that nothing has; empty where no known one is near."""
    near = nearest(name, known)
    return hint.format(near) if near else ""


def unknown_name(what: str, name: str, known: Iterable[str], more: str = "") -> UnknownNameError:
    """The error for a name that is not among ``known``, in the words the core uses."""
    names = sorted({*known})
    hint = meant(str(name), names)
    return UnknownNameError(
        f'no {what} is called "{name}"{hint}; there are: {", ".join(names) or "none"}{more}'
    )


def known_name(what: str, name: str, known: Collection[str], more: str = "") -> str:
    """The name, which is one of ``known``; raises as :func:`unknown_name` where it is not."""
    if name not in known:
        raise unknown_name(what, name, known, more)
    return name
