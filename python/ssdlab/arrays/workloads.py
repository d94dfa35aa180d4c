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
    """A load and the state in which it finds the drives."""

    name: str
    options: str
    """Lines of the job, without depth and time."""
    prepare: str


WORKLOADS = (
    NamedLoad("random-read", "rw=randread\nbs=4k", "sequential"),
    NamedLoad("random-write", "rw=randwrite\nbs=4k", "steady"),
    NamedLoad("mixed", "rw=randrw\nrwmixread=70\nbs=4k", "steady"),
    NamedLoad("database", "rw=randrw\nrwmixread=80\nbs=8k\nrandom_distribution=zipf:1.1", "steady"),
    NamedLoad("sequential-read", "rw=read\nbs=1m", "sequential"),
    NamedLoad("sequential-write", "rw=write\nbs=1m", "sequential"),
)


def workload(name: str) -> NamedLoad:
    """The workload called ``name``."""
    known = {load.name: load for load in WORKLOADS}
    return known[known_name("load for arrays", name, known)]


def job(options: str, name: str, *, depth: int = DEPTH, seconds: float = SECONDS) -> JobText:
    """A job over the whole device with ``depth`` I/Os in flight; its start is not measured."""
    random = "norandommap\n" if "rand" in options else ""
    milliseconds = round(seconds * 1000)
    text = f"""\
[global]
ioengine=libaio
direct=1
size=100%
refill_buffers
time_based

[{name}]
{options}
iodepth={depth}
{random}runtime={milliseconds}ms
ramp_time={milliseconds // 4}ms
"""
    return JobText(f"{name}.fio", text, Path.cwd())
