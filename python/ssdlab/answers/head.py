"""The head of an answer about runs: of which jobs it speaks, how fast they are, a table of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ssdlab import units
from ssdlab.analysis import names
from ssdlab.analysis.differences import BIN_ERROR
from ssdlab.analysis.measurement import JobMeasurement, Window
from ssdlab.answer import WORDS, Cell, Figure, Number, Section, Table, Verdict, table
from ssdlab.answers import charts
from ssdlab.answers.charts import WORTH, ShownResult, Trace
from ssdlab.answers.job_tables import time_cell
from ssdlab.answers.members import of_members
from ssdlab.answers.power import losses_of_power
from ssdlab.histogram import NOTHING, PERCENTILES, Histogram
from ssdlab.results import SYNC

ALWAYS = ("p50", "p99", "p999")
"""Percentiles that have a column even where there are too few I/Os for them."""
NAMED = 2
"""So many parts are named in a sentence."""
TAIL_FACTOR = 1.5
"""Tails of two runs that differ by less are not worth a sentence."""
RUNS_NAMED = 4
"""Of more runs the title says how many there are."""
TOLD = 4
"""Of so many jobs that run at the same time the head speaks; the others are in its table."""


def main_of(jobs: Sequence[Sequence[Trace]]) -> list[Trace]:
    """What the head speaks of: the last job that does more than fill, its main direction on
    each run."""
    tested = [t for t in jobs if not t[0].job.workload.fills(jobs[-1][0].job.name)] or jobs
    widest = max((len({t.run.place for t in traces}) for traces in tested), default=0)
    chosen = [traces for traces in tested if len({t.run.place for t in traces}) == widest]
    return charts.first_of_each(chosen[-1]) if chosen else []


def told_of(jobs: Sequence[Sequence[Trace]], main: Sequence[Trace]) -> list[Trace]:
    """What the head of a single run tells: the directions of the main job's pattern and of those
    that ran at the same time, the main one first. Of several runs: the main job."""
    if len(main) != 1:
        return list(main)
    job = main[0].job

    def beside(other: JobMeasurement) -> bool:
        begin = max(job.start_s, other.start_s)
        end = min(one.start_s + one.window.end_s for one in (job, other))
        return end - begin > job.window.end_s / 2

    at_once = [t for t in jobs if t[0].job.name != job.name and beside(t[0].job)]
    own = next(traces for traces in jobs if traces[0].job.name == job.name)

    def is_told(trace: Trace) -> bool:
        ddir = trace.measured.ddir
        return trace in main or (ddir != SYNC and trace.job.workload.does(ddir))

    return [t for traces in (own, *at_once[: TOLD - 1]) for t in traces if is_told(t)]


def title(runs: Sequence[ShownResult], told: Sequence[Trace]) -> str:
    """The jobs that are told of, and what they ran on, or of many how many runs there are."""
    names = units.listed(list(dict.fromkeys(trace.job.name for trace in told)))
    if len(runs) > RUNS_NAMED:
        return f"{names}: {len(runs)} runs" if names else f"{len(runs)} runs"
    labels = units.listed([f"{run.label}{run.result.resized}" for run in runs])
    return f"{names} on {labels}" if names else labels


def lead(
    runs: Sequence[ShownResult], jobs: Sequence[Sequence[Trace]], main: Sequence[Trace]
) -> Section:
    """How fast the jobs are that the head speaks of, and how several runs compare."""
    traces = [trace for job in jobs for trace in job]
    told = told_of(jobs, main)
    tables = [
        _summary(shown, title, kind, several=len(runs) > 1)
        for title, kind, flushes in (
            ("Measured", "clat", False),
            ("Measured", "lat", False),
            ("Flushes", "lat", True),
        )
        if (
            shown := [
                t
                for t in traces
                if t.measured.kind == kind and (t.measured.ddir == SYNC) == flushes
            ]
        )
    ]
    said = _compared(main) if len(main) > 1 else [_headline(trace) for trace in told]
    for run in runs:
        label = f"{run.label}: " if len(runs) > 1 else ""
        counters = run.result.ssdlab.get("counters") or {}
        verified = any(job.workload.reads_back for job in run.result.measurement.jobs)
        of_run = [*losses_of_power(counters, verified), *of_members(run.result)]
        said += [f"{label}{sentence}" for sentence in of_run]
    return Section(
        sentences=said,
        numbers=_numbers(told) if len(runs) == 1 else [],
        tables=tables,
        figures=_leading(jobs, main, several=len({t.job.name for t in told}) > 1),
        key="summary",
        title="Summary",
        verdict=_verdict(main),
    )


def _leading(
    jobs: Sequence[Sequence[Trace]], main: Sequence[Trace], *, several: bool
) -> list[Figure]:
    """IOPS of the main job over time, all its directions; by name where ``several`` are told."""
    own = [job for job in jobs if main and job[0].job.name == main[0].job.name]
    found = charts.over_time([t for t in own[0] if t.measured.ddir != SYNC]) if own else []
    if not several:
        return found
    note = "Shaded: its measurement window."
    return [replace(f, title=f"IOPS of {main[0].job.name} over time", note=note) for f in found]


def _verdict(main: Sequence[Trace]) -> Verdict:
    if not main:
        return Verdict("nothing-measured")
    found = {t.measured.window.verdict if t.settled else "not-steady" for t in main}
    alike = found.pop() if len(found) == 1 else "not-steady"
    return Verdict(alike, {f"{t.run.label}: iops": t.measured.iops for t in main})


def _headline(trace: Trace) -> str:
    """What the job does, and how fast, in a sentence."""
    direction = trace.measured
    of = f"{direction.job} ({doing(trace)}), {direction.ddir}"
    rate = f"{units.iops(direction.iops)} {trace.told}"
    return f"{of}: {'; '.join(filter(None, (rate, trace.doubt)))}."


def _compared(main: Sequence[Trace]) -> list[str]:
    """Which run is the faster, and whose tail is the longer and why."""
    alike = [t for t in main if t.measured.ddir == main[0].measured.ddir and t.measured.iops]
    if len(alike) < 2:
        return [_headline(trace) for trace in main]
    fast = max(alike, key=lambda t: t.measured.iops or 0.0)
    slow = min((t for t in alike if t is not fast), key=lambda t: t.measured.iops or 0.0)
    factor = (fast.measured.iops or 0.0) / (slow.measured.iops or 1.0)
    by_word = {
        word: [t.run.label for t in (fast, slow) if t.doubt == word] for word in WORDS.values()
    }
    doubts = [f"; {word}: {units.listed(labels)}" for word, labels in by_word.items() if labels]
    said = [
        f"{fast.run.label}: {units.iops(fast.measured.iops)}, {units.number(factor)} times "
        f"{slow.run.label} ({units.iops(slow.measured.iops)})" + "".join(doubts) + "."
    ]
    tails = [(p, t) for t in alike if (p := (t.measured.latency or NOTHING).percentile_ns(99.9))]
    if len(tails) > 1:
        best = min(tails, key=lambda item: item[0])
        worst = max(tails, key=lambda item: item[0])
        if worst[0] >= TAIL_FACTOR * best[0]:
            cause = largest(worst[1], "p99.9")
            said.append(
                f"p99.9 of {worst[1].run.label}: {units.latency(worst[0])}, "
                f"{units.number(worst[0] / best[0])} times {best[1].run.label}"
                + (f"; {cause}." if cause else ".")
            )
    unsteady = [t.run.label for t in alike if not t.settled]
    if unsteady:
        said.append(f"Not at steady state: {units.listed(unsteady)}.")
    return said


def _numbers(told: Sequence[Trace]) -> list[Number]:
    """The tiles of a single run: what the first trace of the head is about."""
    if not told:
        return []
    direction, latency = told[0].measured, told[0].measured.latency or NOTHING
    several = any(trace.job.name != told[0].job.name for trace in told)
    ddir = "" if told[0].alone and not several else direction.ddir
    own = ((told[0].source,), ddir, told[0].job.name if several else "")
    numbers = [
        Number("IOPS", direction.iops, "IOPS", "higher", *own),
        Number("throughput", _mb(direction.bw_bytes), "MB/s", "higher", *own),
        Number(f"{direction.kind} p99", latency.percentile_us(99.0), "us", "lower", *own),
        Number(f"{direction.kind} p99.9", latency.percentile_us(99.9), "us", "lower", *own),
        Number("write amplification", direction.waf, "", "lower", *own),
    ]
    return [number for number in numbers if number.value is not None]


def _mb(bytes_per_s: float | None) -> float | None:
    return None if bytes_per_s is None else bytes_per_s / 1e6


def _summary(traces: Sequence[Trace], title: str, kind: str, *, several: bool) -> Table:
    """A row per job, run and direction: its window, rates and latencies."""

    def time(of: Callable[[Histogram], float | None]) -> Callable[[Trace], Cell | None]:
        return lambda trace: time_cell(of(trace.measured.latency or NOTHING), (trace.source,))

    def percentile(percent: float) -> Callable[[Trace], Cell | None]:
        return time(lambda latency: latency.percentile_ns(percent))

    shown: dict[str, Callable[[Trace], Cell | str | None]] = {
        "job": lambda trace: trace.measured.job,
        "run": lambda trace: trace.run.label if several else None,
        "ddir": lambda trace: trace.measured.ddir,
        "IOPS": lambda trace: Cell(trace.measured.iops, (trace.source,)),
        "MB/s [=MB/s]": lambda trace: Cell(_mb(trace.measured.bw_bytes), (trace.source,)),
        f"{kind} mean [=us]": time(lambda latency: latency.mean_ns),
        **{f"p{percent:g} [=us]": percentile(percent) for percent in PERCENTILES.values()},
        "max [=us]": time(lambda latency: latency.max_ns if latency.ios else None),
        "WA": lambda trace: Cell(trace.measured.waf, (trace.source,)),
        "from": lambda trace: _from(trace.measured.window),
    }
    deep = [f"p{percent:g}" for name, percent in PERCENTILES.items() if name not in ALWAYS]
    note = "from: start of the measurement window, seconds into the job, which reaches to its end."
    return table(title, traces, shown, note, optional=["run", "MB/s", "WA", *deep])


def _from(window: Window) -> str:
    if window.verdict in ("recorded", "verified", "unknown"):
        return "whole job"
    if window.verdict == "short":
        return "whole job, too short"
    return units.duration(window.start_s) if window.steady else "whole job, not steady"


def doing(trace: Trace) -> str:
    """What the job does, in a line: randwrite, bs 4k, iodepth 32, 60 s."""
    workload = trace.job.workload
    said = [workload.rw] if workload.rw else []
    told = {
        "bs": workload.option("bs"),
        "iodepth": _depth(trace),
        "numjobs": str(workload.workers),
        # May be that of all jobs, without meaning here.
        "rwmixread": workload.option("rwmixread") if workload.mixes else "",
    }
    said += [f"{name} {value}" for name, value in told.items() if value not in ("", "1")]
    return ", ".join([*said, units.duration(trace.measured.window.end_s)])


def _depth(trace: Trace) -> str:
    """The depth of the queue: as the job asks, or as it was found for a latency (fio's
    ``latency_target``), and whether that was kept."""
    own = [e for e in trace.run.result.document["jobs"] if e["jobname"] == trace.job.name]
    found = sorted({int(e["latency_depth"]) for e in own if e.get("latency_target")})
    if not found:
        return trace.job.workload.option("iodepth")
    limit, percent = float(own[0]["latency_target"]), float(own[0]["latency_percentile"])
    late = (trace.measured.latency or NOTHING).percentile_ns(percent) if percent else None
    kept = "" if late is None or late <= limit * (1 + BIN_ERROR) else ", not kept"
    depth = " to ".join(map(str, dict.fromkeys((found[0], found[-1]))))
    return f"{depth} (for {percent:g} % within {units.latency(limit)}{kept})"


def largest(trace: Trace, point: str) -> str:
    """What most of the time of the mean, or of the slowest I/Os, is spent on."""
    breakdown = next((breakdown for breakdown in trace.points if breakdown.point == point), None)
    if breakdown is None:
        return ""
    ranked = sorted(breakdown.shares.items(), key=lambda item: -item[1])[:NAMED]
    told = [f"{units.percent(s)} {names.part_phrase(p)}" for p, s in ranked if s >= WORTH]
    own = "" if trace.alone else f" of {trace.measured.ddir}s"
    of = f"of the mean latency{own}" if point == "mean" else f"of the latency{own} at {point}"
    whole = " (whole job)" if breakdown.whole and not trace.measured.window.whole else ""
    return f"{of}{whole}: {', '.join(told)}" if told else ""
