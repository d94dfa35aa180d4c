"""Loads for arrays, by name, as ordinary fio jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ssdlab.errors import known_name
from ssdlab.jobfile import JobText

SEEDS = 3
"""Runs of arrays among which the choice is close; where most of the largest are, that is twice as
much to simulate."""
DEPTH = 32
"""I/Os in flight by default."""
SECONDS = 2.0
"""Simulated seconds that are measured by default."""
WEB_SERVER = "512/22:1k/15:2k/8:4k/23:8k/15:16k/2:32k/6:64k/7:128k/1:512k/1"
"""Sizes of a web server's reads with their percent, by Intel's access patterns for IOmeter."""


@dataclass(frozen=True)
class NamedLoad:
    """A load by name."""

    name: str
    options: str
    """Lines of the job, without depth and time."""
    own: str = ""
    """Lines of the writes by which drives come to a steady state of their own, where that of
    writes to all places alike, which :func:`ssdlab.arrays.grid.state_for` says, is another one."""

    def settling(self, depth: int) -> JobText | None:
        """Those writes as a job by itself, as much as the device holds; None without any."""
        if not self.own:
            return None
        return JobText(f"{self.name}-settling.fio", _HEAD + self._before(depth), Path.cwd())

    def job(self, depth: int = DEPTH, seconds: float = SECONDS) -> JobText:
        """The load, after those writes (:func:`job`)."""
        before = self._before(depth)
        return job(self.options, self.name, depth=depth, seconds=seconds, before=before)

    def _before(self, depth: int) -> str:
        if not self.own:
            return ""
        again = f"iodepth={depth}\nnorandommap\ntime_based=0\nio_size=100%\n"
        return f"[{self.name}-settling]\n{self.own}\n{again}\n"


_HEAD = """\
[global]
ioengine=libaio
direct=1
size=100%
refill_buffers
time_based

"""
# With another centre, drawn by each job, other places would be hot while it settles.
_HOT = "bs=8k\nrandom_distribution=zipf:1.1:0"
WORKLOADS = (
    NamedLoad("random-read", "rw=randread\nbs=4k"),
    NamedLoad("random-write", "rw=randwrite\nbs=4k"),
    NamedLoad("mixed", "rw=randrw\nrwmixread=70\nbs=4k"),
    NamedLoad("database", f"rw=randrw\nrwmixread=80\n{_HOT}", f"rw=randwrite\n{_HOT}"),
    NamedLoad("sequential-read", "rw=read\nbs=1m"),
    NamedLoad("sequential-write", "rw=write\nbs=1m"),
)


def workload(name: str) -> NamedLoad:
    """The workload called ``name``."""
    known = {load.name: load for load in WORKLOADS}
    return known[known_name("load for arrays", name, known)]


def job(
    options: str, name: str, *, depth: int = DEPTH, seconds: float = SECONDS, before: str = ""
) -> JobText:
    """A job over the whole device with ``depth`` I/Os in flight; its start is not measured.
    ``before``: a job that runs first, as a section."""
    random = "norandommap\n" if "rand" in options else ""
    waits = "stonewall\n" if before else ""
    milliseconds = round(seconds * 1000)
    text = f"""\
{_HEAD}{before}[{name}]
{waits}{options}
iodepth={depth}
{random}runtime={milliseconds}ms
ramp_time={milliseconds // 4}ms
"""
    return JobText(f"{name}.fio", text, Path.cwd())
