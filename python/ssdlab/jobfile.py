"""Job files as text: reading them and what they include, with one sentence where that fails."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ssdlab import _core
from ssdlab.errors import InputError
from ssdlab.opened import as_text
from ssdlab.tracefile import ReadingOptions, Replay

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_SECTION = re.compile(r"^(?=[ \t]*\[)", re.MULTILINE)
"""Where sections begin."""
_NAMES = re.compile(r"\$\{|^\s*(include|read_iolog)\b", re.MULTILINE)
"""What may name something outside of a job."""


def carried_path(trace: Path) -> Path:
    """The path of a trace, for the job that replays it; InputError where no job can say it."""
    if any(c in str(trace) for c in ";#\n") or "${" in str(trace):
        raise InputError(f"{trace}: a job file cannot carry this path; rename the trace")
    return trace


@dataclass(frozen=True)
class Carried:
    """What a job names of the machine where it was read, so that it can run on another."""

    includes: Mapping[str, str] = field(default_factory=dict)
    """Texts of included files, by the names that the job gives them."""
    traces: Mapping[str, Path] = field(default_factory=dict)
    """Where each trace is, by the name that the job gives it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The variables that it asks for."""


@dataclass(frozen=True)
class JobText:
    """A job and where it came from. ``folder`` is where its relative includes are looked for."""

    name: str
    text: str
    folder: Path
    replay: Replay = field(default_factory=Replay)
    """How the traces that it replays are read and played."""
    carried: Carried | None = None
    """What it needs, on another machine than that where it was read."""
    stages: tuple[int, int] | None = None
    """Which of its stages (``stonewall``, or ``wait_for`` where all of one's jobs wait for all
    before) a simulated drive runs: from, counted from 0, and up to; None: all."""

    def environment(self) -> dict[str, str]:
        """The variables that the job may ask for: a job is text, so those that are."""
        known = os.environ if self.carried is None else self.carried.environment
        return {
            name: value for name, value in known.items() if as_text(name + value) == name + value
        }

    def trace(self, name: str) -> tuple[str, ReadingOptions, str, bool]:
        """Where a trace is that the job replays (``read_iolog``), and how it is read."""
        there = None if self.carried is None else self.carried.traces.get(name)
        return self.replay.of(there or name, self.folder)

    def include(self, path: str) -> str:
        """The text of an included file; like fio it looks here first, then in ``folder``."""
        if self.carried is not None and path in self.carried.includes:
            return self.carried.includes[path]
        given = Path(path)
        places = [given] if given.is_absolute() else [given, self.folder / given]
        found = next((place for place in places if _exists(place)), None)
        if found is None:
            tried = " or ".join(str(place.absolute()) for place in dict.fromkeys(places))
            raise InputError(f"there is no {tried}")
        return read_text(found, "included job file")

    def read(self) -> dict[str, Any]:
        """What the core reads in it: the sections of its stages and their options; InputError where
        it is no job for a simulated drive."""
        found: dict[str, Any] = json.loads(
            _core.check_job(
                self.text,
                job_name=self.name,
                environment=self.environment(),
                include=self.include,
                traces=self.trace,
                stages=self.stages,
            )
        )
        return found

    def split(self) -> tuple[JobText | None, JobText]:
        """The stages before its last one, if there are any, and that alone; InputError as
        :meth:`read`."""
        last = self.read()["jobs"][-1]["stage"]
        if not last:
            return None, self
        return replace(self, stages=(0, last)), replace(self, stages=(last, last + 1))

    def with_options(self, **options: object) -> JobText:
        """The same with options that go before its own, in each of its sections and of those that
        it includes: the last of a section counts, and before those of ``[global]``."""
        lines = "".join(f"{name}={value}\n" for name, value in options.items())

        def ended(text: str) -> str:
            head, *sections = _SECTION.split(text)
            return head + "".join(f"{section.rstrip()}\n{lines}" for section in sections)

        carried = self.carried or self.needs()
        if carried is not None:
            includes = {name: ended(text) for name, text in carried.includes.items()}
            carried = replace(carried, includes=includes)
        return replace(self, text=ended(self.text), carried=carried)

    def needs(self) -> Carried | None:
        """What it names of this machine; None where all is in its text."""
        if not _NAMES.search(self.text):
            return None
        includes: dict[str, str] = {}
        traces: dict[str, Path] = {}

        def include(path: str) -> str:
            includes[path] = self.include(path)
            return includes[path]

        def trace(name: str) -> tuple[str, ReadingOptions, str, bool]:
            found = self.trace(name)
            traces[name] = Path(found[0])
            return found

        # What is wrong with it is told where it runs.
        with contextlib.suppress(InputError):
            _core.check_job(
                self.text,
                job_name=self.name,
                environment=self.environment(),
                include=include,
                traces=trace,
            )
        asked = set(_VARIABLE.findall("\n".join([self.text, *includes.values()])))
        known = {name: value for name, value in self.environment().items() if name in asked}
        return Carried(includes, traces, known)


def replaying(
    trace: Path, how: Replay, depth: int | None = None, more: Sequence[str] = ()
) -> JobText:
    """The job of a replay: ``depth`` in flight, or None for the times of the recording; ``more``
    are further lines of it."""
    note = f"; addresses: {how.fit}" + ("; open loop" if how.open_loop else "")
    lines = [note, "[replay]", f"read_iolog={trace}"]
    if depth is not None:
        lines += ["replay_no_stall=1", f"iodepth={depth}"]
    text = "\n".join([*lines, *more]) + "\n"
    return JobText(f"replay of {trace.name}", text, Path.cwd(), how)


def read_job(job: str | Path) -> JobText:
    """A job from a path, or from text if ``job`` is a string with a line break in it."""
    if isinstance(job, str) and "\n" in job:
        return JobText("<job>", job, Path.cwd())
    if isinstance(job, str) and not job.strip():
        raise InputError("the job is empty: expected the path of a job file, or the text of one")
    path = Path(job)
    return JobText(as_text(path), read_text(path, "job file"), path.parent)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True  # reading it says what is wrong


def read_text(path: Path, what: str) -> str:
    """The text of ``path``; ``what`` names it in the error."""
    try:
        # Some editors begin a text with a byte order mark.
        return path.read_text("utf-8").removeprefix("\ufeff")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such {what}") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, not a {what}") from None
    except PermissionError:
        raise InputError(f"{path}: no permission to read this {what}") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: is not a text file in UTF-8 (byte {error.start} does not decode), "
            f"so it cannot be a {what}"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot read this {what} ({reason})") from None
