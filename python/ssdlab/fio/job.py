"""Job files for real targets: made to touch the target and the run's folder, and nothing else.

fio runs whatever a job file says: it opens any path, writes logs and traces anywhere, and starts
programs. Here only options that are known to stay on the target pass (:mod:`ssdlab.fio.options`).
The target replaces every file name, logs go to the run's folder, and what could reach elsewhere is
refused by name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ssdlab.errors import InputError
from ssdlab.fio.options import (
    ADDED,
    REPLACED,
    VALUE_LOGS,
    Known,
    Place,
    added,
    checked,
    without_included,
)
from ssdlab.fio.replay import OPTIONS as REPLAY_OPTIONS
from ssdlab.fio.replay import Trace, plan_trace
from ssdlab.jobfile import JobText

FIRST_ALONE = frozenset({"stonewall", "wait_for_previous", "new_group"}) | REPLAY_OPTIONS
"""Options of a section that the further threads of its trace do not repeat."""
INCLUDE_DEPTH_MAX = 16
"""Includes may nest this deep, as in fio."""
FASTEST = 14e9
"""Bytes per second that no drive exceeds: what PCIe 5.0 carries over four lanes."""
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "": 1.0}


@dataclass
class Section:
    """A job section: its own options in order, and the effective ones with the globals below."""

    name: str
    own: list[tuple[str, str | None]] = field(default_factory=list)
    effective: dict[str, str | None] = field(default_factory=dict)
    trace: Trace | None = None
    """What it replays in place of its pattern."""

    def get(self, option: str, default: str = "") -> str:
        """The effective value as text; a bare option reads as ``1``."""
        value = self.effective.get(option, default)
        return "1" if value is None else value

    def flag(self, option: str) -> bool:
        """Whether a boolean option is on."""
        return self.get(option, "0").strip().lower() in ("1", "true", "yes", "on")

    def count(self, option: str, default: int) -> int:
        """A small whole number, or ``default`` where the value is not one (fio will complain)."""
        text = self.get(option, str(default))
        return int(text) if text.isdigit() else default

    def seconds(self, option: str) -> float:
        """A time in seconds; 0 where absent or unreadable. Bare numbers are seconds."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|us|[dhms]?)", self.get(option, "0").strip())
        return float(match[1]) * _SECONDS[match[2]] if match else 0.0

    @property
    def writes(self) -> bool:
        """Whether the section writes or trims."""
        if self.trace is not None:
            return self.trace.writes
        return self.get("rw", "read").split(":")[0].strip() not in ("read", "randread")

    @property
    def trims(self) -> bool:
        """Whether the section deallocates blocks."""
        if self.trace is not None:
            return self.trace.trims
        return "trim" in self.get("rw", "read").split(":")[0]

    @property
    def is_direct(self) -> bool:
        """Whether its I/O goes past the page cache and reaches the device."""
        past = self.flag("direct") or self.flag("atomic") or self.get("buffered") in ("0", "false")
        return past and self.get("ioengine", "psync") not in ("null", "mmap")

    @property
    def starts_new_stage(self) -> bool:
        """Whether the section waits for all before it."""
        return any(option in ("stonewall", "wait_for_previous") for option in self.effective)


@dataclass(frozen=True)
class Plan:
    """What a job will do to its target, as far as the file tells."""

    writes: bool
    known_bytes: int
    """Bytes that will be written at most by jobs bounded by size."""
    open_seconds: float
    """Time during which jobs bounded by time alone write as fast as they can."""
    span_bytes: int | None
    """The size the target file will have; None where the job does not say."""

    @property
    def most_bytes(self) -> int:
        """Bytes that will be written at most by all jobs, on the fastest of drives."""
        return self.known_bytes + round(self.open_seconds * FASTEST)

    def sentence(self) -> str:
        """How much the job writes, for people."""
        if not self.writes:
            return "writes nothing"
        parts = [f"writes up to {size_text(self.known_bytes)}"] if self.known_bytes else []
        if self.open_seconds:
            parts.append(f"writes as fast as it can for {self.open_seconds:g} s")
        return " and ".join(parts) or "writes an amount that the job file does not tell"


@dataclass(frozen=True)
class RealJob:
    """A job file made safe for one target."""

    text: str
    sections: list[Section]
    plan: Plan
    replaced: list[dict[str, object]]
    """Options of the job that the target or the run's folder replaced."""
    included: Mapping[str, Place] = field(default_factory=dict)
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


def size_text(count: int) -> str:
    """A size for people: decimal, as drives are sold."""
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{value:.4g} {unit}"


def rewrite(
    job: JobText,
    target: Path,
    capacity: int | None,
    environment: Mapping[str, str] | None = None,
    *,
    known: Known | None = None,
    logs: bool = False,
) -> RealJob:
    """The job with every file name replaced by ``target`` and per-second histograms added.

    ``known`` is the fio that will run it; with ``logs`` it writes all of fio's logs.

    Raises:
        RefusedError: an option or engine that could reach beyond the target.
        InputError: an option nobody knows, or the installed fio does not, or a target whose name a
            job file cannot carry.
    """
    filename = _escaped(target)
    lines: list[str] = ["; the job as ssdlab gave it to fio"]
    sections: list[Section] = []
    globals_: dict[str, str | None] = {}
    replaced: list[dict[str, object]] = []
    extras: list[dict[str, object]] = []
    included: dict[str, Place] = {}
    current: Section | None = None

    def close() -> None:
        if current is None or current.name == "global":
            return
        if "read_iolog" not in current.effective:
            add(current)
            return
        iolog = f"ssdlab{len(sections):03d}.iolog"
        try:
            trace = plan_trace(job, current.effective, capacity, iolog)
        except InputError as error:
            raise without_included(error, included) from None
        for one in trace.dealt():
            section = replace(current, trace=one)
            if one.lane:
                lines.append(f"[{current.name}]")
                lines.extend(_line(*own) for own in current.own if own[0] not in FIRST_ALONE)
            elif one.lanes > 1 and sections:
                lines.append("new_group=1")
            add(section)
            lines.extend(one.lines())
        if trace.lanes > 1:
            for option in ("ioengine", "iodepth", "group_reporting"):
                if option in current.effective:
                    value = current.get(option)
                    replaced.append({"job": current.name, "option": option, "value": value})

    def add(section: Section) -> None:
        prefix = f"ssdlab{len(sections):03d}"
        lines.append(f"filename={filename}")
        more = added(prefix, section.effective, logs=logs)
        lines.extend(_line(*one) for one in more.items())
        more = {"filename": ADDED["filename"], **more}
        extras.extend({"job": section.name, "option": o, "value": v} for o, v in more.items())
        sections.append(section)

    env = os.environ if environment is None else environment
    for place, raw in _lines(job.name, job.text, job.include(), depth=0):
        if raw.startswith("["):
            close()
            name = raw[1 : raw.rfind("]")] if "]" in raw else raw[1:]
            current = Section(name, effective=dict(globals_))
            if place.included:
                included[name.strip()] = place
            lines.append(f"[{name}]")
            continue
        if current is None:
            continue  # fio skips what comes before the first section
        option, value = checked(place, raw, env, known)
        if place.included:
            included |= {word: place for word in (option, value) if word}
        if option in REPLACED:
            if ADDED.get(option) == (value or "1"):
                continue
            replaced.append({"job": current.name, "option": option, "value": value or "1"})
            continue
        if option in VALUE_LOGS:
            value = _log_prefix(value, current.name)
        (globals_ if current.name == "global" else current.effective)[option] = value
        if option in REPLAY_OPTIONS:
            continue  # the section's trace says them
        current.own.append((option, value))
        lines.append(_line(option, value))
    close()
    if not sections:
        raise InputError(f"{job.name}: has no job section, such as [write]")
    plan = _plan(sections, capacity)
    return RealJob("\n".join(lines) + "\n", sections, plan, replaced, included, extras)


def _line(option: str, value: str | None) -> str:
    return option if value is None else f"{option}={value}"


def layout(target: Path, size: int) -> str:
    """A job that fills a file of ``size`` bytes, so that what is read there was written."""
    return (
        f"[layout]\nfilename={_escaped(target)}\nrw=write\nbs=1m\nsize={size}\n"
        "ioengine=psync\nend_fsync=1\n"
    )


def _lines(
    name: str, text: str, include: Callable[[str], str], depth: int
) -> Iterator[tuple[Place, str]]:
    """(place, line) without comments and blanks; includes are read in place."""
    for number, line in enumerate(text.splitlines(), start=1):
        # fio ends a line at ; and # wherever they stand.
        bare = re.split("[;#]", line, maxsplit=1)[0].strip()
        if not bare:
            continue
        place = Place(name, number, included=depth > 0)
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


def parse_size(text: str, capacity: int | None) -> int | None:
    """A fio size in bytes; percentages of ``capacity``; None where it cannot be told."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([kmgtp]?)i?b?|(%))", text.strip().lower())
    if match is None:
        return None
    if match[3]:
        return None if capacity is None else int(capacity * float(match[1]) / 100)
    return int(float(match[1]) * (1 << _UNITS[match[2]]))


def _plan(sections: list[Section], capacity: int | None) -> Plan:
    known, seconds, span = 0, 0.0, 0
    unknown_span = False
    for section in sections:
        if section.trace is not None:
            span = max(span, section.trace.end_bytes)
            if section.trace.lane:
                continue  # the first thread's plan is that of all
            known += section.trace.write_bytes * max(1, section.count("numjobs", 1))
            continue
        size = parse_size(section.get("filesize") or section.get("size") or "100%", capacity)
        offset = parse_size(section.get("offset", "0"), capacity)
        if size is None or offset is None:
            unknown_span = True
        else:
            whole = "size" not in section.effective and capacity is not None
            span = max(span, size if whole else size + offset)
        if not section.writes:
            continue
        amount = parse_size(section.get("io_size") or section.get("size") or "100%", capacity)
        if section.flag("time_based") or amount is None:
            seconds += section.seconds("runtime")
        else:
            share = _write_share(section)
            clones = max(1, section.count("numjobs", 1)) * max(1, section.count("loops", 1))
            known += int(amount * share) * clones
    writes = any(section.writes for section in sections)
    return Plan(writes, known, seconds, None if unknown_span else span)


def _write_share(section: Section) -> float:
    rw = section.get("rw", "read").split(":")[0]
    if rw not in ("rw", "readwrite", "randrw"):
        return 1.0
    if "rwmixwrite" in section.effective:
        return min(100, section.count("rwmixwrite", 50)) / 100
    return 1.0 - min(100, section.count("rwmixread", 50)) / 100
