"""Several runs aligned: which job of one corresponds to which job of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ssdlab import _core
from ssdlab.errors import InputError

SHAPE_OPTIONS = (("rw", "readwrite"), ("bs", "blocksize"), ("iodepth",), ("rwmixread",))
"""Options, each with its alias, that make two jobs of different names the same workload."""


RATES = ("rate", "rate_iops")
"""Options that may hold back one direction more than the other."""


@dataclass(frozen=True)
class Workload:
    """One job name of one run, with all workers of that name."""

    run: int
    """Index of the run."""
    name: str
    options: Mapping[str, str]
    """Job options, with the global ones beneath."""
    jobs: tuple[Mapping[str, Any], ...] = field(repr=False)
    """The entries of `jobs` in the fio document."""

    @property
    def shape(self) -> tuple[str, ...]:
        """What the job does to the drive, without how long or where."""
        return tuple(self.option(*names).lower() for names in SHAPE_OPTIONS)

    @property
    def rw(self) -> str:
        """The pattern without its modifiers: ``randread``; ``replay`` of a trace, which alone says
        what is done. Empty where no option is known at all, as of what others measured; else fio's
        default stands for one that is missing."""
        if self.option("read_iolog"):
            return "replay"
        default = "read" if self.options else ""
        return (self.option("rw", "readwrite") or default).split(":")[0].strip().lower()

    @property
    def mixes(self) -> bool:
        """Whether it reads and writes side by side: then ``rwmixread`` has a meaning."""
        return self.rw.removeprefix("rand") in ("rw", "readwrite")

    def does(self, ddir: str) -> bool:
        """Whether its pattern does this; a job that only writes also reads where it verifies."""
        way = self.rw.removeprefix("rand")
        return way in ("", "replay") or ddir in ("readwrite" if way == "rw" else way)

    @property
    def read_percent(self) -> float | None:
        """Percent of reads that it asks for; None where it trims, or does not say."""
        way = self.rw.removeprefix("rand")
        if way in ("read", "write"):
            return 100.0 if way == "read" else 0.0
        if not self.mixes:
            return None
        reads, writes = self.option("rwmixread"), self.option("rwmixwrite")
        if reads.isdigit() or writes.isdigit():
            return float(reads) if reads.isdigit() else 100.0 - float(writes)
        return 50.0

    @property
    def mix_asked(self) -> Mapping[str, float]:
        """Percent of reads and of writes of a mix; empty for others, and where rates of its own
        hold either back."""
        if not self.mixes or self.read_percent is None or any(map(self.option, RATES)):
            return {}
        return {"read": self.read_percent, "write": 100.0 - self.read_percent}

    @property
    def block(self) -> int | None:
        """Bytes of a block; None where there are several sizes."""
        sizes = set((self.option("bs", "blocksize") or "4k").split(","))
        if len(sizes) > 1 or self.option("bssplit", "bsrange"):
            return None
        kb = 1000 if self.option("kb_base") == "1000" else 1024
        try:
            return _core.parse_fio_size(sizes.pop(), kb)
        except InputError:
            return None

    @property
    def workers(self) -> int:
        """Threads or processes that do the same."""
        count = self.option("numjobs")
        return max(len(self.jobs), int(count) if count.isdigit() else 1)

    def fills(self, last: str) -> bool:
        """Whether it only prepares the drive: a sequential write with another job after it, of
        which ``last`` is the name."""
        return self.rw == "write" and self.name != last

    @property
    def recorded(self) -> bool:
        """Whether it replays a trace at the trace's own times."""
        return self.rw == "replay" and not self.flag("replay_no_stall")

    def flag(self, name: str, default: bool = False) -> bool:
        """Whether a boolean option is on; one without a value is."""
        text = self.option(name).strip().lower()
        if not text:
            return name in self.options or default
        return text in ("1", "true", "yes", "on")

    def option(self, *names: str) -> str:
        """The value of the first of these option names that is set; empty if none is."""
        return next((self.options[name] for name in names if name in self.options), "")


@dataclass(frozen=True)
class Group:
    """The same workload on several runs."""

    name: str
    members: tuple[Workload, ...]
    """At most one per run, in the order of the runs."""


def workloads(run: int, document: Mapping[str, Any]) -> list[Workload]:
    """The jobs of a fio document by name, in order; workers of one name together."""
    common = document.get("global options") or {}
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for job in document.get("jobs", []):
        grouped.setdefault(str(job.get("jobname", "")), []).append(job)
    return [
        Workload(run, name, {**common, **(jobs[0].get("job options") or {})}, tuple(jobs))
        for name, jobs in grouped.items()
    ]


def align(documents: Sequence[Mapping[str, Any]]) -> list[Group]:
    """Groups the jobs of several runs: by name first, then, for what has no namesake, by what the
    job does (direction, block size, depth). The order is that of the first run, with jobs that
    only later runs have inserted after the job they follow there."""
    groups: list[list[Workload]] = []
    for run, document in enumerate(documents):
        place = 0
        for workload in workloads(run, document):
            found = _group_for(workload, groups, document)
            if found is None:
                groups.insert(place, [workload])
                found = place
            else:
                groups[found].append(workload)
            place = max(place, found + 1)
    return [Group(members[0].name, tuple(members)) for members in groups]


def _group_for(
    workload: Workload, groups: Sequence[Sequence[Workload]], document: Mapping[str, Any]
) -> int | None:
    free = [i for i, g in enumerate(groups) if all(m.run != workload.run for m in g)]
    for i in free:
        if groups[i][0].name == workload.name:
            return i
    own_names = {str(job.get("jobname", "")) for job in document.get("jobs", [])}
    for i in free:
        if groups[i][0].name not in own_names and groups[i][0].shape == workload.shape:
            return i
    return None
