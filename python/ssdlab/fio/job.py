"""Job files for real targets: made to touch the target and the run's folder, and nothing else.

fio runs whatever a job file says: it opens any path, writes logs and traces anywhere, and starts
programs. Here only options that are known to stay on the target pass (:mod:`ssdlab.fio.options`).
The target replaces every file name, logs go to the run's folder, and what could reach elsewhere is
refused by name.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ssdlab import _core
from ssdlab.errors import InputError, SsdlabError
from ssdlab.fio.installed import Installed
from ssdlab.fio.options import (
    ADDED,
    REPLACED,
    VALUE_LOGS,
    JobLine,
    added,
    checked,
    without_included,
)
from ssdlab.fio.replay import OPTIONS as REPLAY_OPTIONS
from ssdlab.fio.replay import SectionTrace, plan_trace
from ssdlab.jobfile import JobText
from ssdlab.units import size_text

FIRST_ALONE = frozenset({"stonewall", "wait_for_previous", "new_group"}) | REPLAY_OPTIONS
"""Options of a section that the further threads of its trace do not repeat."""
INCLUDE_DEPTH_MAX = 16
"""Includes may nest this deep, as in fio."""
LENGTHS_MAX = 4096
"""So many lengths of a file are tried; shares of up to 99 % come to theirs before."""
FASTEST = 14e9
"""Bytes per second that no drive exceeds: what PCIe 5.0 carries over four lanes."""
WRITE, TRIM = 1, 2
"""Places among the directions."""
_LINE = re.compile(r"job:(\d+): ")


@dataclass
class JobSection:
    """A job section: its own options in order, and the effective ones with the globals below."""

    name: str
    own: list[tuple[str, str | None]] = field(default_factory=list)
    effective: dict[str, str | None] = field(default_factory=dict)
    trace: SectionTrace | None = None
    """What it replays in place of its pattern."""
    processes: list[_core.PlannedProcess] = field(default_factory=list)
    """What fio will make of it, process by process."""

    def get(self, option: str, default: str = "") -> str:
        """The effective value as text; a bare option reads as ``1``."""
        value = self.effective.get(option, default)
        return "1" if value is None else value

    def flag(self, option: str) -> bool:
        """Whether a boolean option is on."""
        return self.get(option, "0").strip().lower() in ("1", "true", "yes", "on")

    @property
    def trims(self) -> bool:
        """Whether the section deallocates blocks."""
        if self.trace is not None:
            return self.trace.trims
        return any(process["shares"][TRIM] > 0 for process in self.processes)

    @property
    def writes(self) -> bool:
        """Whether the section writes or trims."""
        if self.trace is not None:
            return self.trace.writes
        return any(
            process["shares"][WRITE] + process["shares"][TRIM] > 0 for process in self.processes
        )

    @property
    def is_direct(self) -> bool:
        """Whether its I/O goes past the page cache and reaches the device."""
        past = self.flag("direct") or self.flag("atomic") or self.get("buffered") in ("0", "false")
        return past and self.get("ioengine", "psync") not in ("null", "mmap")

    @property
    def first(self) -> _core.PlannedProcess:
        """What its first process is going to do."""
        return self.processes[0]


@dataclass(frozen=True)
class FioPlan:
    """What a job will do to its target, as far as the file tells."""

    writes: bool
    """Whether it writes or trims."""
    known_bytes: int
    """Bytes that will be written at most by jobs bounded by size."""
    trimmed_bytes: int
    """Bytes that they will deallocate."""
    open_seconds: float
    """Time during which jobs bounded by time alone write as fast as they can."""
    span_bytes: int
    """The size of the device, or the one the target file will have."""

    @property
    def most_bytes(self) -> int:
        """Bytes that will be written at most by all jobs, on the fastest of drives."""
        return self.known_bytes + round(self.open_seconds * FASTEST)

    def sentence(self) -> str:
        """How much the job writes, for people."""
        if not self.writes:
            return "writes nothing"
        parts = [f"writes up to {size_text(self.known_bytes)}"] if self.known_bytes else []
        if self.trimmed_bytes:
            parts.append(f"trims up to {size_text(self.trimmed_bytes)}")
        if self.open_seconds:
            parts.append(f"writes as fast as it can for {self.open_seconds:g} s")
        return " and ".join(parts) or "writes an amount that the job file does not tell"


@dataclass(frozen=True)
class RealJob:
    """A job file made safe for one target."""

    text: str
    sections: list[JobSection]
    plan: FioPlan
    replaced: list[dict[str, object]]
    """Options of the job that the target or the run's folder replaced."""
    included: Mapping[str, JobLine] = field(default_factory=dict)
    """What included files say, by word; messages do not quote it."""
    added: list[dict[str, object]] = field(default_factory=list)
    """What ssdlab added to each section; TARGET stands for the target's name."""

    @property
    def reads_first(self) -> bool:
        """Whether what it reads first was not written by itself before, so that fio would lay the
        file out: where the first section reads, replays a trace or overwrites."""
        first = self.sections[0]
        only_writes = first.get("rw", "read").split(":")[0].strip() in ("write", "randwrite")
        return first.trace is not None or not only_writes or first.flag("overwrite")

    @property
    def reserves(self) -> bool:
        """Whether a new file's space is taken before it is written: fio's ``fallocate``."""
        return self.sections[0].get("fallocate", "native") not in ("none", "truncate", "0")


def rewrite(
    job: JobText,
    target: Path,
    capacity: int | None,
    environment: Mapping[str, str] | None = None,
    *,
    file_bytes: int = 0,
    known: Installed | None = None,
    logs: bool = False,
) -> RealJob:
    """The job with every file name replaced by ``target`` and per-second histograms added.

    ``capacity`` is that of a block device; None is a plain file that has ``file_bytes`` so far.
    ``known`` is the fio that will run it; with ``logs`` it writes all of fio's logs.

    Raises:
        RefusedError: an option or engine that could reach beyond the target.
        InputError: an option nobody knows, or the installed fio does not, or a target whose name a
            job file cannot carry.
    """
    env = os.environ if environment is None else environment
    found = _Rewriting(job, _escaped(target), capacity or file_bytes or None, logs=logs)
    for place, raw in _lines(job.name, job.text, job.include, depth=0):
        if raw.startswith("["):
            found.begin(place, raw)
        elif found.current is not None:  # fio skips what comes before the first section
            found.option(found.current, place, *checked(place, raw, env, known))
    found.close()
    if not found.sections:
        raise InputError(f"{job.name}: has no job section, such as [write]")
    text = "\n".join(found.lines) + "\n"
    try:
        plan = _plan(text, found.sections, capacity, file_bytes)
    except InputError as error:
        raise _at_its_line(error, found.places, found.included) from None
    return RealJob(text, found.sections, plan, found.replaced, found.included, found.added)


@dataclass
class _Rewriting:
    """A job that is being rewritten, line by line."""

    job: JobText
    filename: str
    room: int | None
    """Bytes of the target, where they are known."""
    logs: bool
    lines: list[str] = field(default_factory=lambda: ["; the job as ssdlab gave it to fio"])
    sections: list[JobSection] = field(default_factory=list)
    current: JobSection | None = None
    """The section whose options are being read."""
    globals_: dict[str, str | None] = field(default_factory=dict)
    replaced: list[dict[str, object]] = field(default_factory=list)
    added: list[dict[str, object]] = field(default_factory=list)
    included: dict[str, JobLine] = field(default_factory=dict)
    places: dict[int, JobLine] = field(default_factory=dict)
    """Where lines come from, by their number."""

    def begin(self, place: JobLine, raw: str) -> None:
        """The head of a section."""
        self.close()
        name = raw[1 : raw.rfind("]")] if "]" in raw else raw[1:]
        self.current = JobSection(name, effective=dict(self.globals_))
        if place.included:
            self.included[name.strip()] = place
        self._say(f"[{name}]", place)

    def option(self, section: JobSection, place: JobLine, option: str, value: str | None) -> None:
        """An option of the section, as the job has it or as the target does."""
        if place.included:
            self.included |= {word: place for word in (option, value) if word}
        if option in REPLACED:
            if ADDED.get(option) != (value or "1"):
                self._replace(section, option, value or "1")
            return
        if option in VALUE_LOGS:
            value = _log_prefix(value, section.name)
        known = self.globals_ if section.name == "global" else section.effective
        known[option] = value
        if option in REPLAY_OPTIONS:
            return  # the section's trace says them
        section.own.append((option, value))
        self._say(_line(option, value), place)

    def close(self) -> None:
        """The end of a section: what ssdlab adds, or what replays its trace."""
        section = self.current
        if section is None or section.name == "global":
            return
        if "read_iolog" in section.effective:
            self._replay(section)
        else:
            self._add(section)

    def _replay(self, section: JobSection) -> None:
        """A section for each thread of a trace."""
        try:
            iolog = f"ssdlab{len(self.sections):03d}.iolog"
            trace = plan_trace(self.job, section.effective, self.room, iolog)
        except InputError as error:
            raise without_included(error, self.included) from None
        for dealt in trace.dealt():
            if dealt.lane:
                self.lines.append(f"[{section.name}]")
                own = (one for one in section.own if one[0] not in FIRST_ALONE)
                self.lines.extend(_line(*one) for one in own)
            elif dealt.lanes > 1 and self.sections:
                self.lines.append("new_group=1")
            self._add(replace(section, trace=dealt, processes=[]))
            self.lines.extend(dealt.lines())
        if trace.lanes > 1:
            for option in ("ioengine", "iodepth", "group_reporting"):
                if option in section.effective:
                    self._replace(section, option, section.get(option))

    def _add(self, section: JobSection) -> None:
        """A section that is whole, with what ssdlab adds to it."""
        prefix = f"ssdlab{len(self.sections):03d}"
        self.lines.append(f"filename={self.filename}")
        more = added(prefix, section.effective, logs=self.logs)
        self.lines.extend(_line(*one) for one in more.items())
        more = {"filename": ADDED["filename"], **more}
        self.added.extend({"job": section.name, "option": o, "value": v} for o, v in more.items())
        self.sections.append(section)

    def _replace(self, section: JobSection, option: str, value: str) -> None:
        self.replaced.append({"job": section.name, "option": option, "value": value})

    def _say(self, line: str, place: JobLine) -> None:
        self.lines.append(line)
        self.places[len(self.lines)] = place


def _line(option: str, value: str | None) -> str:
    return option if value is None else f"{option}={value}"


def layout(target: Path, size: int) -> str:
    """A job that fills a file of ``size`` bytes, so that what is read there was written."""
    return (
        f"[layout]\nfilename={_escaped(target)}\nrw=write\nbs={min(1 << 20, size)}\nsize={size}\n"
        "ioengine=psync\nend_fsync=1\n"
    )


def _lines(
    name: str, text: str, include: Callable[[str], str], depth: int
) -> Iterator[tuple[JobLine, str]]:
    """(place, line) without comments and blanks; includes are read in place."""
    for number, line in enumerate(text.splitlines(), start=1):
        # fio ends a line at ; and # wherever they stand.
        bare = re.split("[;#]", line, maxsplit=1)[0].strip()
        if not bare:
            continue
        place = JobLine(name, number, included=depth > 0)
        match = re.match(r"include\s+(.+)", bare)
        if match is None:
            yield place, bare
            continue
        if depth >= INCLUDE_DEPTH_MAX:
            raise place.error(f"include: files include each other more than {depth} deep")
        path = match[1].strip()
        try:
            found = include(path)
        except InputError as error:
            raise place.error(f"include: cannot read {path}: {error.message}") from None
        yield from _lines(path, found, include, depth + 1)


def _log_prefix(value: str | None, section: str) -> str:
    """A log prefix without a folder: fio runs in the run's folder."""
    name = Path(value).name if value and value != "1" else section
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name) or "job"


def _escaped(target: Path) -> str:
    """The target as a job file can carry it; fio splits names at colons and cuts lines at ; #."""
    text = str(target)
    if text != text.strip() or re.search(r"[;#$\"'`\\\x00-\x1f]", text):
        raise InputError(
            f"{text}: a job file cannot carry this path; use one without quotes, $, ;, # and \\"
        )
    return text.replace(":", "\\:")


def _plan(
    text: str, sections: Sequence[JobSection], capacity: int | None, file_bytes: int
) -> FioPlan:
    """What the sections will do, as the core reads the text that fio is given."""
    mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    host = {"$ncpus": str(os.cpu_count() or 1), "$mb_memory": str(mib)}
    about: dict[str, Any] = {"job_name": "job", "file": capacity is None, "environment": host}
    target_bytes = file_bytes if capacity is None else capacity
    planned = _core.job_plan(text, target_bytes=target_bytes, **about)
    # fio takes shares of the file that it is given, which is as long as the plan says by then.
    appends = any(section.flag("file_append") for section in sections)
    for _ in range(LENGTHS_MAX):
        if appends or planned["target_bytes"] == target_bytes:
            break
        target_bytes = planned["target_bytes"]
        planned = _core.job_plan(text, target_bytes=target_bytes, **about)
    else:
        raise InputError(
            "offset: no file is long enough for such a share of it and the size behind it; "
            "give it in bytes"
        )
    for one in planned["processes"]:
        sections[one["job"]].processes.append(one)
    known, trimmed, span = 0, 0, planned["target_bytes"]
    seconds: dict[int, float] = defaultdict(float)
    for section in sections:
        if section.trace is not None:
            span = max(span, int(section.trace.counts["end_byte"]))
            if section.trace.lane == 0:  # the first thread's plan is that of all
                known += section.trace.write_bytes * len(section.processes)
            continue
        for one in section.processes if section.writes else ():
            if one["bytes"] is not None:
                known += one["bytes"][WRITE]
                trimmed += one["bytes"][TRIM]
            else:
                lasts = one["ramp_s"] + (one["runtime_s"] or 0.0)
                seconds[one["stage"]] = max(seconds[one["stage"]], lasts)
    writes = any(section.writes for section in sections)
    return FioPlan(writes, known, trimmed, sum(seconds.values()), span)


def _at_its_line(
    error: SsdlabError, places: Mapping[int, JobLine], included: Mapping[str, JobLine]
) -> SsdlabError:
    """An error in the text for fio, at the line of the job that it came from; lines in between
    belong to the one before.
    """
    match = _LINE.match(error.message)
    lines = range(int(match[1]), 0, -1) if match else ()
    place = next((places[line] for line in lines if line in places), None)
    if match is None or place is None:
        return without_included(error, included)
    return without_included(place.error(error.message[match.end() :]), included)
