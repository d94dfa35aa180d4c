"""Several runs aligned: which job of one corresponds to which job of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from ssdlab import _core
from ssdlab.errors import InputError
from ssdlab.fio.options import ALIASES

ASKING = frozenset(
    "rw bs bsrange bssplit kb_base iodepth numjobs rwmixread rwmixwrite verify verify_pattern "
    "do_verify".split()
)
"""Options that say what a job asks of a drive, whatever its others are."""
QUEUED_ENGINES = frozenset({"libaio", "io_uring", "posixaio", "null"})
"""fio engines that keep several I/Os in flight; the others wait for each."""
AMPLE = 1 << 50
"""Bytes of a drive on which every job has room."""
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
    queues: bool
    """Whether its depth holds whatever its engine is: on a simulated drive, and where nobody knows
    the engine."""

    @property
    def asked(self) -> Sequence[_core.PlannedProcess]:
        """Its processes, as the core reads what they ask for; none where it cannot."""
        return _asked(*((name, self.options[name]) for name in self.options if name in ASKING))

    @property
    def shape(self) -> tuple[object, ...]:
        """What the job does to the drive, without how long or where."""
        sizes = ((one["block_bytes"], one["shares"]) for one in self.asked[:1])
        return self.rw, self.depth, *sizes

    @property
    def rw(self) -> str:
        """The pattern without its modifiers: ``randread``; ``replay`` of a trace, which alone says
        what is done. Empty where no option is known at all, as of what others measured; else fio's
        default stands for one that is missing."""
        if self.option("read_iolog"):
            return "replay"
        return self.asked[0]["rw"] if self.options and self.asked else ""

    @property
    def random(self) -> bool:
        """Whether places are drawn at random."""
        return self.rw.startswith("rand")

    @property
    def mixes(self) -> bool:
        """Whether it reads and writes side by side: then ``rwmixread`` has a meaning."""
        return self.rw.removeprefix("rand") == "rw"

    def does(self, ddir: str) -> bool:
        """Whether its pattern does this; a job that only writes also reads where it verifies."""
        way = self.rw.removeprefix("rand")
        return way in ("", "replay") or ddir in ("readwrite" if way == "rw" else way)

    @property
    def read_percent(self) -> float | None:
        """Percent of reads that it asks for; None where it trims, or does not say."""
        if self.rw in ("", "replay") or "trim" in self.rw:
            return None
        return float(round(100 * self.asked[0]["shares"][0]))

    @property
    def mix_asked(self) -> Mapping[str, float]:
        """Percent of reads and of writes of a mix; empty for others, and where rates of its own
        hold either back."""
        if not self.mixes or self.read_percent is None or any(map(self.option, RATES)):
            return {}
        return {"read": self.read_percent, "write": 100.0 - self.read_percent}

    @property
    def block(self) -> int | None:
        """Bytes of a block; None where there are several sizes, or nobody can tell."""
        if self.rw == "replay" or not self.asked:
            return None
        had = zip(self.asked[0]["block_bytes"], self.asked[0]["shares"], strict=True)
        sizes = {size for ends, share in had if share > 0 for size in ends}
        return sizes.pop() if len(sizes) == 1 else None

    @property
    def engine(self) -> str:
        """fio's engine."""
        return self.option("ioengine") or "psync"

    @property
    def depth(self) -> int:
        """I/Os that each worker has in flight at most."""
        queues = self.queues or self.engine in QUEUED_ENGINES
        return self.asked[0]["iodepth"] if queues and self.asked else 1

    @property
    def workers(self) -> int:
        """Threads or processes that do the same."""
        return max(len(self.jobs), len(self.asked), 1)

    @property
    def in_flight(self) -> int:
        """I/Os in flight at most, of all workers."""
        return self.workers * self.depth

    def fills(self, last: str) -> bool:
        """Whether it only prepares the drive: a sequential write with another job after it, of
        which ``last`` is the name."""
        return self.rw == "write" and self.name != last

    @property
    def recorded(self) -> bool:
        """Whether it replays a trace at the trace's own times."""
        return self.rw == "replay" and not self.flag("replay_no_stall")

    @property
    def verifies(self) -> bool:
        """Whether it asks that what it writes be read back (fio's ``verify``)."""
        return any(one["verifies"] for one in self.asked) and self.does("write")

    @property
    def reads_back(self) -> bool:
        """Whether it read back what it had written, apart from its pattern."""
        return self.verifies and any((one.get("read") or {}).get("total_ios") for one in self.jobs)

    def flag(self, name: str, default: bool = False) -> bool:
        """Whether a boolean option is on; one without a value is."""
        text = self.option(name).strip().lower()
        if not text:
            return name in self.options or default
        return text in ("1", "true", "yes", "on")

    def option(self, *names: str) -> str:
        """The value of the first of these option names that is set; empty if none is."""
        return next((self.options[name] for name in names if name in self.options), "")


W = TypeVar("W", bound=Workload)


def stages(works: Sequence[W]) -> list[list[W]]:
    """The jobs that run together, one list after the other."""
    stages: list[list[W]] = [[]]
    for work in works:
        if work.flag("stonewall") or work.flag("wait_for_previous"):
            stages.append([])
        stages[-1].append(work)
    return stages


def until(works: Sequence[W], work: W) -> Iterator[W]:
    """The jobs that have run when one of them ends: those before it, those beside it, and it."""
    for together in stages(works):
        yield from together
        if any(one is work for one in together):
            return


@cache
def _asked(*options: tuple[str, str]) -> Sequence[_core.PlannedProcess]:
    lines = [f"{name}={value}" if value else name for name, value in options]
    try:
        planned = _core.job_plan("\n".join(["[job]", *lines]), job_name="job", target_bytes=AMPLE)
    except InputError:
        return ()
    return planned["processes"]


@dataclass(frozen=True)
class Group:
    """The same workload on several runs."""

    name: str
    members: tuple[Workload, ...]
    """At most one per run, in the order of the runs."""


def workloads(run: int, document: Mapping[str, Any]) -> list[Workload]:
    """The jobs of a fio document by name, in order; workers of one name together."""
    common = _named(document.get("global options") or {})
    about = document.get("ssdlab") or {}
    simulated = (about.get("target") or {}).get("kind") == "sim"
    known = (about.get("imported") or {}).get("knows_options", True)
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for job in document.get("jobs", []):
        grouped.setdefault(str(job.get("jobname", "")), []).append(job)
    return [
        Workload(
            run,
            name,
            {**common, **_named(jobs[0].get("job options") or {})},
            tuple(jobs),
            simulated or not known,
        )
        for name, jobs in grouped.items()
    ]


def _named(options: Mapping[str, str]) -> dict[str, str]:
    """Options by fio's first name of each."""
    return {ALIASES.get(name, name): value for name, value in options.items()}


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
