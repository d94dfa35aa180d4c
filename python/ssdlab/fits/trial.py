"""What a rig does under workloads of the table, found by simulating it at reduced size.

A drive is prepared once for each state and namespace; the workloads that leave that state as it is
run on it one after the other, each with random numbers of its own, else the second would write
where the first has written and find the space that collection wants. What was simulated is kept, so
that a search that was stopped goes on where it was when it is asked for again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ssdlab import _core, bench
from ssdlab.bench import kept
from ssdlab.engine.runner import seed_of
from ssdlab.errors import InputError
from ssdlab.fits import closed
from ssdlab.fits.observations import FitWorkload, Observation, observations
from ssdlab.fits.parameters import with_keys
from ssdlab.jobfile import JobText
from ssdlab.progress import ProgressCallback
from ssdlab.target import Sim, SimSession, Terms

BYTES = 3 * 10**9
"""Size of a reduced drive, about; WA needs many superblocks of each die."""
SUPERBLOCKS, SPARE = 96, 25
"""Least number of them in a reduced drive, and in its spare: of a drive with 7 %, those that wait
to be written would else be a third of that, and its write amplification 10 instead of 7.6."""
STATES = {
    "fob": "purge",
    "filled": "sequential",
    "steady": "steady",
    "steady-seq": "sequential,sequential",
}
"""States of the table as ``--prepare`` writes them."""
SETTLING = 40_000
"""Writes to a drive in steady state by which its rate is found: its buffer fills, collection gets
under way. Some more pass before they count."""
SCATTERED = "sequential,random:1"
PROBE = 256
"""I/Os by which the rate is found that says how long a point lasts; more at larger depth."""
TURNS = 24
"""A point is at least so many times the I/Os in flight."""
SHORT_SHARE = 0.012
"""Of the capacity, written to a drive that is not to leave its state."""
TIMES = "[point]\nrw={rw}\nbs={bs}\niodepth={depth}\nnumjobs={jobs}\ngroup_reporting\nnorandommap\n"


@dataclass(frozen=True)
class Effort:
    """How much is simulated."""

    ios: int = 3000
    """Of a point, about."""
    writes: int = 30_000
    """The same of a point that writes to a drive in steady state, which has to collect."""
    seed: int = 1
    spare: int = SPARE
    """Least number of superblocks in the spare of the reduced drive."""
    batch: int = 0
    """I/Os from one batch of periodic collection to the next; 0 where it is none."""


FINE = Effort(20_000, 80_000)
"""Of a prediction."""
CALM, LONGEST = 4.0, 2.0
"""Write amplification from which random writes last longer, and how many times at most."""
BATCHES, PROBED = 5, 2
"""Of periodic collection, over which a rate is a mean, and that tell how long they take."""


@dataclass(frozen=True)
class Reduced:
    """A rig at the size at which it is simulated."""

    overrides: Mapping[str, str]
    share: float
    """Its capacity by that of the full drive."""

    @staticmethod
    def of(rig: str, name: str, room: int = BYTES, least_spare: int = SPARE) -> Reduced:
        """The rig, so much smaller that it has about ``room`` bytes, but so many superblocks in its
        spare; raises InputError where it is wrong."""
        whole = _core.Rig(rig, rig_name=name)
        full = _capacity(whole)
        factor = max(1, round(full / room))
        spare = float(whole.get(f"{whole.find('ssd')[0]}ftl.over_provisioning") or 1.0)
        fewest = math.ceil(max(SUPERBLOCKS * least_spare / SPARE, least_spare * (1 + 1 / spare)))
        while True:
            try:
                small = dict(whole.scale(factor, fewest=fewest)) if factor > 1 else {}
                _core.rig_check(rig, rig_name=name, overrides=list(small.items()))
            except InputError:
                if factor == 1:
                    raise
                factor //= 2
                continue
            for key, value in small.items():
                whole.set(key, value)
            return Reduced(small, _capacity(whole) / full)

    def namespace(self, size: int | None) -> Mapping[str, str]:
        """Overrides that give the host a namespace of so many bytes of the full drive."""
        if size is None:
            return self.overrides
        return {**self.overrides, "namespace": f"{int(size * self.share) // 2**20 * 2**20}B"}


def _capacity(rig: _core.Rig) -> int:
    """Bytes of its first SSD: asked of the rig, since a whole drive takes long to build."""
    return rig.bytes(f"{rig.find('ssd')[0]}capacity") or 1


def lasting(effort: Effort, rig: str, loads: Sequence[FitWorkload]) -> Effort:
    """With random writes that last longer where collection comes in waves, which are the higher the
    more is copied, or in batches, between which a drive writes as if it never had to collect."""
    figures = closed.DriveFigures.of(with_keys(rig, {}))
    most = max(answer.get("waf", 1.0) for answer in closed.answers(figures, loads))
    waves = effort.writes * min(LONGEST, max(1.0, most / CALM))
    batch = round(_batch(rig, effort.spare))
    return replace(effort, writes=round(max(waves, BATCHES * batch)), batch=batch)


def _batch(rig: str, spare: int) -> float:
    """Writes of 4 KiB from one batch of periodic collection to the next, at reduced size: those
    that fill the superblocks that it frees."""
    if with_keys(rig, {}).get("ftl.gc.pace") != "periodic":
        return 0.0
    small = with_keys(rig, Reduced.of(rig, "twin", BYTES, spare).overrides)
    start, end = (float(small.get(f"ftl.gc.batch.{mark}") or 0) for mark in ("start", "end"))
    pages = closed.DriveFigures.of(small)
    block = int(small.get("nand.pages_per_block") or 256) * pages.page * pages.planes
    return (end - start) * pages.dies * block / closed.UNIT


def answers(
    rigs: Sequence[str], loads: Sequence[FitWorkload], effort: Effort = Effort(),
    progress: ProgressCallback | None = None,
) -> list[list[Mapping[str, float]]]:  # fmt: skip
    """What each rig does under each workload: the columns that are measured, by name; InputError
    where a rig or a workload cannot be simulated, Interrupted on Ctrl-C."""
    different = list(dict.fromkeys(loads))
    groups = _groups(different)
    variants = [
        bench.Variant(
            _Body(rig, tuple(different[place] for place in group), effort), len(group) + 3.0
        )
        for rig in rigs
        for group in groups
    ]
    done = iter(bench.run(variants, progress))
    found = []
    for _ in rigs:
        by_load = {
            different[place]: numbers
            for group in groups
            for place, numbers in zip(group, next(done), strict=True)
        }
        found.append([by_load[load] for load in loads])
    return found


def _groups(loads: Sequence[FitWorkload]) -> list[list[int]]:
    """Places of workloads that share a prepared drive, those that write after those that read."""
    found: dict[tuple[object, ...], list[int]] = {}
    for place in sorted(range(len(loads)), key=lambda place: (loads[place].reads < 1, place)):
        load = loads[place]
        # Sequential and large writes leave another layout than the random ones of the steady state.
        alone = load.reads < 1 and (load.sequential or load.bs > 4096 or load.state != "steady")
        found.setdefault((load.state, load.namespace, place if alone else None), []).append(place)
    return list(found.values())


@dataclass(frozen=True)
class _Body:
    """Runs a group of workloads on one drive."""

    rig: str
    loads: tuple[FitWorkload, ...]
    effort: Effort

    def __call__(self, seat: bench.Seat) -> list[Mapping[str, float]]:
        computes = kept.built(__file__)
        asked = json.dumps([*computes, self.rig, repr(self.loads), repr(self.effort)])
        answer = kept.text(asked, lambda: json.dumps(self._simulated(seat)))
        found: list[Mapping[str, float]] = json.loads(answer)
        return found

    def _simulated(self, seat: bench.Seat) -> list[Mapping[str, float]]:
        small = Reduced.of(self.rig, "twin", BYTES, self.effort.spare)
        first = self.loads[0]
        overrides = small.namespace(first.namespace)
        terms = Terms(overrides, self.effort.seed, seat.memory_bytes)
        found: list[Mapping[str, float]] = []
        with Sim("twin", self.rig).open(terms) as drive:
            drive.prepare(_steps(self.loads), None)
            for load in self.loads:
                job = _job(drive, load, self.effort)
                run = drive.run(
                    JobText("point", job, Path()), seat.report, interval_ms=60_000,
                    seed=seed_of(self.effort.seed, str(load)),
                )  # fmt: skip
                (observation,) = observations(run, load.state)
                found.append(_with_waf(observation, run.waf, load))
        return found


def _steps(loads: Sequence[FitWorkload]) -> str:
    """How the drive is prepared; reads ask no more of a steady state than scattered data."""
    state = loads[0].state
    if state == "steady" and all(load.reads == 1 for load in loads):
        return SCATTERED
    return STATES[state]


def _with_waf(
    observation: Observation, waf: float | None, load: FitWorkload
) -> Mapping[str, float]:
    """The numbers of a point; write amplification only of what writes."""
    if waf is None or load.reads == 1:
        return {name: value for name, value in observation.measured.items() if name != "waf"}
    return {**observation.measured, "waf": waf}


def _job(drive: SimSession, load: FitWorkload, effort: Effort) -> str:
    """The job of a point: how long it lasts is found by a probe on the same drive."""
    mix = "" if load.rwmixread is None else f"rwmixread={load.rwmixread:g}\n"
    head = TIMES.format(rw=load.rw, bs=load.bs, depth=load.iodepth, jobs=load.numjobs) + mix
    head += "".join(f"{limit}\n" for limit in load.limits)
    ios, probed, warm = _extent(drive.capacity, load, effort)
    probe = drive.run(
        JobText("probe", f"{head}number_ios={max(2, probed // load.numjobs)}\n", Path()), None,
        interval_ms=60_000, seed=seed_of(effort.seed, f"probe of {load}"),
    )  # fmt: skip
    rate = sum(direction.iops or 0.0 for direction in probe.measurement.directions) or 1.0
    ramp, run = (max(1, math.ceil(1e6 * part / rate)) for part in (warm, ios))
    return f"{head}time_based\nramp_time={ramp}us\nruntime={run}us\n"


def _extent(capacity: int, load: FitWorkload, effort: Effort) -> tuple[int, int, int]:
    """I/Os of a point, of the probe and between them."""
    least = TURNS * load.depth
    probe = max(PROBE, 2 * load.depth)
    if load.reads == 1:
        return max(effort.ios, least), probe, max(effort.ios // 4, 2 * load.depth)
    if load.state != "steady" or load.sequential:
        most = max(256, int(SHORT_SHARE * capacity / load.bs))
        ios = min(max(effort.ios, least), most)
        return ios, probe, ios
    writes = max(effort.writes * 4096 // load.bs, effort.ios, least)
    # What the buffer takes says nothing of a drive that collects, nor does a time in which it does,
    # nor one between two batches.
    probe = max(probe, max(SETTLING, PROBED * effort.batch) * 4096 // load.bs)
    return writes, probe, capacity // load.bs if load.bs > 4096 else SETTLING // 4
