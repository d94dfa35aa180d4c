"""Why a simulated run came out as it did, and what would help: the same run with one thing changed.

The causes of a simulated result are in the model, so they can be switched: a run is repeated with
its own rig, job, seed and preparation and one key of the rig, or the preparation, set differently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ssdlab import _core, bench
from ssdlab.analysis.measurement import Direction
from ssdlab.checks import state_at_start
from ssdlab.errors import InputError, SsdlabError
from ssdlab.histogram import NOTHING
from ssdlab.jobfile import JobText
from ssdlab.progress import ProgressCallback
from ssdlab.results import Result
from ssdlab.target import Settings, Sim

AMPLE = 3.0
"""Over-provisioning at which collection finds next to nothing to copy (WA below 1.02 even for
FIFO, Desnoyers 2014)."""
DRAWN_BYTES = 512 * 10**9
"""Of a larger drive the steady state takes longer to draw (some 15 s of this) than anyone waits who
did not ask for it."""
UNLIMITED = "1000GB/s"
"""A rate that no host link reaches: a limit on host writes that never binds."""


@dataclass(frozen=True)
class RigChange:
    """One thing that can be different about a rig, or the state in which it is found."""

    name: str
    """A short key for scripts."""
    sentence: str
    overrides: Mapping[str, str]
    prepare: str | None = None
    """None for the run's own state at the start."""


@dataclass(frozen=True)
class ChangeOutcome:
    """What a change did to the job that is looked at; the first outcome is the run itself."""

    change: RigChange | None
    iops: float
    p999_ns: float | None
    """None where there are too few I/Os for it."""
    waf: float | None


def require_simulated(result: Result) -> None:
    """Raises InputError where nobody tells where the time went: a real drive does not."""
    if result.attribution is None:
        raise InputError(
            f"{result.name}: a real drive does not tell where its time goes; "
            "explain a simulated run of the same job"
        )


def changes(result: Result) -> list[RigChange]:
    """What is worth trying on this run's rig; empty where there is no SSD in it."""
    rig = _core.Rig(result.rig_toml, rig_name=result.name) if result.rig_toml else None
    places = [] if rig is None else rig.find("ssd")
    place = next((place for place in places if not place.replace("below.", "")), None)
    if rig is None or place is None:
        return []

    def said(key: str, default: str = "") -> str:
        found = rig.get(f"{place}{key}")
        return default if found is None else found

    spare = float(said("ftl.over_provisioning", "0.07"))
    ample, more = max(AMPLE, spare), spare + 0.2
    other = "cost-benefit" if said("ftl.gc.victim", "greedy") == "greedy" else "greedy"
    pace = "blocking" if said("ftl.gc.pace", "blocking") == "paced" else "paced"
    apart = said("ftl.gc.separate_frontier", "false") != "true"
    frontier = (
        "a write frontier of its own for GC" if apart else "one write frontier for host and GC"
    )
    slc, folds = said("ftl.slc_cache"), said("ftl.slc_cache.when_full", "fold") == "fold"
    full = "go past the full SLC cache" if folds else "wait for the full SLC cache to be folded"
    reads = any(one.ddir == "read" for job in result.measurement.jobs for one in job.own)
    buffer, drain = said("write_buffer"), said("write_buffer.drain", "program-unit")
    tried: tuple[tuple[object, str, str, dict[str, str]], ...] = (
        (slc, "no-slc-cache", "no SLC cache",
         {"ftl.slc_cache.static_size": "0B", "ftl.slc_cache.dynamic_size": "0B"}),
        (slc, "slc-full", f"writes {full}",
         {"ftl.slc_cache.when_full": "direct" if folds else "fold"}),
        (True, "no-collection", f"hardly any garbage collection (over-provisioning {ample:g})",
         {"ftl.over_provisioning": str(ample)}),
        (True, "more-spare", f"over-provisioning {more:.3g} instead of {spare:.3g}",
         {"ftl.over_provisioning": f"{more:.6g}"}),
        (True, "victim", f"victim policy {other}", {"ftl.gc.victim": other}),
        (True, "pace", f"{pace} garbage collection", {"ftl.gc.pace": pace}),
        (True, "frontier", frontier, {"ftl.gc.separate_frontier": str(apart).lower()}),
        (said("ftl.placement", "round-robin") != "least-busy",
         "placement", "host writes go to the least busy dies", {"ftl.placement": "least-busy"}),
        (said("ftl.parity.stripe", "0") != "0",
         "parity", "no parity inside the drive", {"ftl.parity.stripe": "0"}),
        (said("controller.write_limit"),
         "write-limit", "host writes not held to a rate", {"controller.write_limit": UNLIMITED}),
        (reads and said("nand.suspend.program", "false") != "true",
         "suspend", "reads suspend programs and erases",
         {"nand.suspend.program": "true", "nand.suspend.erase": "true"}),
        # Both keys at once: a buffer with one of them is no buffer.
        (not buffer, "buffer", "a power-loss protected write buffer of 4 MiB",
         {"write_buffer": '{size = "4MiB", power_loss_protected = true}'}),
        (buffer and drain in ("program-unit", "immediate"),
         "drain", "half of the write buffer holds data back, to be overwritten there",
         {"write_buffer.drain": "watermark", "write_buffer.watermark": "0.5"}),
    )  # fmt: skip
    known = [RigChange(name, told, keys) for worth, name, told, keys in tried if worth]
    return [*_other_state(result), *known]


def _other_state(result: Result) -> list[RigChange]:
    """Another state at the start, where writes leave the one they found behind."""
    main, state = result.measurement.main, state_at_start(result)
    if main is None or main.of("write") is None:
        return []
    alone, random = len(result.measurement.jobs) == 1, main.workload.random
    small = int(result.ssdlab["target"]["capacity_bytes"]) <= DRAWN_BYTES
    if state == "empty" and alone and random and small:
        return [RigChange("steady", "a drive in the steady state of random writes", {}, "steady")]
    if not random and (state == "scattered" or (state == "empty" and alone)):
        return [RigChange("filled", "a drive filled by sequential writes", {}, "sequential")]
    return []


def outcome(result: Result, job: str, ddir: str, change: RigChange | None = None) -> ChangeOutcome:
    """What became of a direction of a job in ``result``."""
    direction = result.measurement.of(job, ddir)
    if direction is None or direction.iops is None:
        raise InputError(f"{result.name}: job {job} did no {ddir}")
    latency = direction.latency or NOTHING
    return ChangeOutcome(change, direction.iops, latency.percentile_ns(99.9), direction.waf)


def attempt(
    result: Result,
    direction: Direction,
    tried: Sequence[RigChange],
    progress: ProgressCallback | None = None,
) -> list[ChangeOutcome]:
    """Repeats the run once per change; the outcomes in the order of ``tried``, without changes that
    the rig cannot take (too little spare for it, say). Raises Interrupted, and MemoryShortError."""
    if result.rig_toml is None:
        return []
    about, target = result.ssdlab, Sim(result.name, result.rig_toml)
    job = JobText("job.fio", result.job_text, result.folder or Path.cwd())

    def variant(change: RigChange) -> bench.Variant[ChangeOutcome | SsdlabError]:
        settings = Settings(
            seed=int(about.get("seed") or 1),
            prepare=change.prepare or str(about.get("preconditioning") or "fob"),
            overrides=change.overrides,
        )
        side = direction.job, direction.ddir
        return bench.Variant(bench.Tolerant(partial(_attempt, target, job, settings, side, change)))

    found = bench.run([variant(change) for change in tried], progress)
    return [one for one in found if isinstance(one, ChangeOutcome)]


def _attempt(
    target: Sim, job: JobText, settings: Settings, side: tuple[str, str], change: RigChange,
    seat: bench.Seat,
) -> ChangeOutcome:  # fmt: skip
    return outcome(seat.run(target, job, settings), *side, change)
