"""``ssdlab.explain``: where the time of a simulated run went; the same run with one thing changed.

The causes of a simulated result are in the model, so they can be switched: a run is repeated with
its own rig, job, seed and preparation and one key of the rig, or the preparation, set differently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ssdlab import _core, bench
from ssdlab.analysis.measurement import Direction
from ssdlab.answer import Answer, Cell, Section, Table, Verdict, table
from ssdlab.answers import charts, head
from ssdlab.answers import run as run_answer
from ssdlab.answers.charts import Trace
from ssdlab.answers.job_tables import causes_table, mix_note, smart_table, time_cell, time_table
from ssdlab.answers.members import of_members
from ssdlab.api.kept import Kept, result_of
from ssdlab.api.report import Report
from ssdlab.api.watching import Watch
from ssdlab.api.working import working
from ssdlab.checks import state_at_start
from ssdlab.errors import InputError, SsdlabError
from ssdlab.histogram import NOTHING
from ssdlab.jobfile import JobText
from ssdlab.progress import ProgressCallback
from ssdlab.results import Result
from ssdlab.studies.compare import share_cell
from ssdlab.target import Settings, Sim

AMPLE = 3.0
"""Over-provisioning at which collection finds next to nothing to copy (WA below 1.02 even for
FIFO, Desnoyers 2014)."""
DRAWN_BYTES = 512 * 10**9
"""Of a larger drive the steady state takes longer to draw (some 15 s of this) than anyone waits who
did not ask for it."""
UNLIMITED = "1000GB/s"
"""A rate that no host link reaches: a limit on host writes that never binds."""
CLOSE = 0.02
"""The change that gained most by this share more than the next did so with each of four seeds, in
15 of 15 runs; where it led by less than 0.01, with another seed mostly another did (28 runs). Ours.
"""
FEW = 0.1
"""So small a gain may be the seed's: over four seeds one varied by 9 % (standard deviation) in
short runs that collect, nine in ten of all by 2 % or less. Ours."""


def explain(
    run: Kept,
    *,
    tries: bool = True,
    out: str | Path | None = None,
    fresh: bool = False,
    cluster: str | None = None,
    progress: Watch = None,
) -> Report:
    """Says where the time of a simulated run went, and what would help.

    Args:
        run: A run of a job on a simulated drive: its folder, its id, a piece of that, or last. In
            Python also a :class:`ssdlab.Result`, or what a function returned.
        tries: The run is repeated with one thing changed at a time.
        out: Where the runs are kept.
        fresh: As for :func:`ssdlab.array`.
        cluster: As for :func:`ssdlab.sweep`.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.

    Raises:
        InputError: there is no such run, or its drive was not simulated.
        Interrupted: it was stopped; of the simulations those that ended are kept.
    """
    result = result_of(run, out)
    require_simulated(result)
    outcomes: list[ChangeOutcome] = []
    if tries and result.rig_toml is not None and (job := result.measurement.main) is not None:
        main, tried = job.by_weight[0], changes(result)
        with working("trying changes", progress, cluster, fresh=fresh) as callback:
            changed = attempt(result, main, tried, callback)
        ranked = sorted(changed, key=lambda outcome: -outcome.iops)
        outcomes = [outcome(result, main.job, main.ddir), *ranked]
    return Report(answer(result, outcomes), [result])


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


def answer(result: Result, outcomes: Sequence[ChangeOutcome] = ()) -> Answer:
    """The explanation of a run; ``outcomes`` are what changes made of its main job, the first of
    them the run itself."""
    whole = run_answer.answer([result])
    jobs = run_answer.traces_of([result])
    own = [trace for job in jobs for trace in job if trace.points]
    first = head.main_of(jobs)
    # Both directions of a mix: what one waits for is not what the other does.
    main = [trace for trace in own if trace.job in [one.job for one in first]]
    tables = [_tried(outcomes, first)] if len(outcomes) > 1 else []
    tables += [time_table(main), causes_table(main), smart_table(main)]
    said = [*dict.fromkeys(text for trace in main for text in run_answer.reasons(trace))]
    said += of_members(result)
    figures = [*charts.where_the_time_goes(main), *charts.time_by_part(main)]
    lead = Section(
        said,
        numbers=whole.lead.numbers,
        tables=[table for table in tables if table.rows],
        figures=figures,
        key="why",
        title="Why",
        verdict=_verdict(outcomes),
    )
    return replace(
        whole,
        title=f"Why {head.title([one.run for one in first], first) or whole.title} came out so",
        kind="explanation",
        sections=[lead],
        notes=[_seeds(outcomes)] if any(outcome.change for outcome in outcomes) else (),
        data={**whole.data, **_data(own, outcomes)},
    )


def _verdict(outcomes: Sequence[ChangeOutcome]) -> Verdict:
    tried = [outcome for outcome in outcomes if outcome.change is not None]
    if not tried:
        return Verdict("explained")
    best = max(tried, key=lambda outcome: outcome.iops)
    gain = best.iops / outcomes[0].iops - 1 if outcomes[0].iops else None
    return Verdict("explained", {"best": best.change.name if best.change else None, "gain": gain})


def _seeds(outcomes: Sequence[ChangeOutcome]) -> str:
    """How the changes were tried, and what of it another seed may say otherwise."""
    note = "With one thing changed: each once, with the seed of the run."
    base = outcomes[0].iops
    gains = sorted((one.iops / base - 1 for one in outcomes if one.change and base), reverse=True)
    if not gains:
        return note
    if gains[0] < CLOSE:
        return f"{note} No gain is more than another seed may make."
    if len(gains) > 1 and 1 + gains[0] < (1 + CLOSE) * (1 + gains[1]):
        return f"{note} With another seed the second may gain most."
    if any(0 < round(abs(gain), 3) < FEW for gain in gains):
        return f"{note} A gain of a few percent may be that of another seed."
    return note


def _tried(outcomes: Sequence[ChangeOutcome], main: Sequence[Trace]) -> Table:
    """The run repeated with one thing changed at a time."""
    base = outcomes[0].iops

    def gain(outcome: ChangeOutcome) -> Cell | None:
        return share_cell(outcome.iops / base - 1 if base else None) if outcome.change else None

    return table(
        "With one thing changed",
        outcomes,
        {
            "changed": lambda outcome: outcome.change.sentence if outcome.change else "nothing",
            "IOPS": lambda outcome: outcome.iops,
            "gain [=%]": gain,
            "p99.9 [=us]": lambda outcome: time_cell(outcome.p999_ns),
            "WA": lambda outcome: outcome.waf,
        },
        mix_note(main),
        optional=["WA"],  # reads have none
    )


def _data(own: Sequence[Trace], outcomes: Sequence[ChangeOutcome]) -> Mapping[str, Any]:
    """What scripts read: times in ns by part, WA by cause, wear, what was tried."""
    time = [
        {
            "job": trace.measured.job,
            "ddir": trace.measured.ddir,
            "iops": trace.measured.iops,
            "points": [
                {
                    "point": p.point,
                    "ios": p.ios,
                    "total_ns": p.total_ns,
                    "ns": p.ns,
                    "whole": p.whole,
                }
                for p in trace.points
            ],
        }
        for trace in own
    ]
    tried = [
        {
            "change": outcome.change.name if outcome.change else None,
            "set": dict(outcome.change.overrides) if outcome.change else {},
            "iops": outcome.iops,
            "clat_p999_ns": outcome.p999_ns,
            "waf": outcome.waf,
        }
        for outcome in outcomes
    ]
    written = next((trace for trace in reversed(own) if trace.causes), None)
    wear = None if written is None else written.wear
    return {
        "time": time,
        "write_amplification": {} if written is None else written.causes,
        "wear": None if wear is None else wear.document(),
        "tries": tried,
    }
