"""Traces for the real fio: the requests of any format, on the target and nowhere else.

fio replays what a trace says on the files that the trace names. So fio never sees a trace of the
user's: ssdlab reads it, moves its requests onto the target, and writes an iolog (version 3, with
times) that names the target alone into the run's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdlab import _core
from ssdlab.errors import InputError
from ssdlab.tracefile import ReadingOptions

if TYPE_CHECKING:
    from ssdlab.jobfile import JobText

OPTIONS = frozenset(
    """
    read_iolog replay_no_stall replay_time_scale replay_redirect replay_align replay_scale
    """.split()
)
"""Options that a section with a trace is given anew."""
LANES_MAX = 64
"""Threads at most among which the requests of a trace are dealt out.

Until version 3.36 fio looks for completions during a timed replay only when its queue is full: at
a depth above 1 latencies are those of the pauses, or are not counted at all. So a section with a
depth is replayed by as many threads, each with its share of the requests and one at a time."""


@dataclass(frozen=True)
class SectionTrace:
    """The trace of a section: where it comes from, and what it will do to the target."""

    path: str
    reading: ReadingOptions
    place: dict[str, Any]
    iolog: str
    """Name in the run's folder."""
    no_stall: bool
    time_scale: str | None
    counts: Mapping[str, int]
    lane: int = 0
    lanes: int = 1

    @property
    def writes(self) -> bool:
        """Whether it changes the target."""
        return bool(self.counts["writes"] or self.counts["trims"])

    @property
    def trims(self) -> bool:
        """Whether it deallocates blocks."""
        return bool(self.counts["trims"])

    @property
    def write_bytes(self) -> int:
        """Bytes that it writes."""
        return int(self.counts["write_bytes"])

    def lines(self) -> list[str]:
        """The options for fio."""
        said = [f"read_iolog={self.iolog}"]
        if self.lanes > 1:
            said += ["ioengine=psync", "iodepth=1", "group_reporting=1"]
        if self.no_stall:
            said.append("replay_no_stall=1")
        if self.time_scale is not None:
            said.append(f"replay_time_scale={self.time_scale}")
        return said

    def dealt(self) -> Iterator[SectionTrace]:
        """The trace of each thread, this one first."""
        stem = self.iolog.removesuffix(".iolog")
        for lane in range(self.lanes):
            yield replace(self, lane=lane, iolog=f"{stem}-{lane}.iolog" if lane else self.iolog)

    def write(self, folder: Path, target: Path) -> None:
        """Writes the iolog, which names ``target`` alone."""
        if re.search(r"\s", str(target)):
            raise InputError(f"{target}: a trace cannot be replayed on a path with spaces")
        _core.trace_convert(
            self.path, self.reading, folder / self.iolog, to="iolog-v3", name=self.iolog,
            file=str(target), place=self.place, lane=(self.lane, self.lanes),  # type: ignore[arg-type]
        )  # fmt: skip


def plan_trace(
    job: JobText, options: Mapping[str, str | None], capacity: int | None, iolog: str
) -> SectionTrace:
    """Reads the trace that a section replays, once, to know what it does; InputError where there is
    no such trace, it is damaged, or reaches beyond ``capacity``."""
    name = options["read_iolog"]
    if not name:
        raise InputError(f"{job.name}: read_iolog: needs a value, the name of a trace")
    path, reading, fit, _ = job.trace(name)
    place: dict[str, Any] = {
        "capacity": capacity or job.replay.capacity_bytes,
        "fit": fit,
        "redirect": "replay_redirect" in options,
        "align": _number(job, options, "replay_align", 0),
        "scale": _number(job, options, "replay_scale", 1),
    }
    counts = _core.trace_convert(path, reading, None, place=place)  # type: ignore[arg-type]
    no_stall = options.get("replay_no_stall", "0") != "0"
    scale = options.get("replay_time_scale")
    depth = options.get("iodepth") or "1"
    lanes = 1 if no_stall else min(LANES_MAX, int(depth) if depth.isdigit() else 1)
    lanes = max(1, min(lanes, int(counts["requests"])))
    return SectionTrace(path, reading, place, iolog, no_stall, scale, counts, 0, lanes)


def _number(job: JobText, options: Mapping[str, str | None], name: str, default: int) -> int:
    text = options.get(name)
    if text is None:
        return default
    try:
        return _core.parse_fio_size(text, 1000 if options.get("kb_base") == "1000" else 1024)
    except InputError as error:
        raise InputError(f"{job.name}: {name}: {error}") from None
