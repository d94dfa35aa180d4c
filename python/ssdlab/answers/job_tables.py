"""Tables of a job: latencies by kind, its evenness, where the time goes, what wears."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from ssdlab import units
from ssdlab.analysis import names
from ssdlab.answer import Cell, Cells, Column, Table, columns
from ssdlab.answers.charts import Trace
from ssdlab.histogram import KINDS, NOTHING, us
from ssdlab.wear import Smart

CLASSES = (
    "p99, p99.9, worst: means over the I/Os of the latency class that it lies in, a quarter of a "
    "power of two wide."
)
OLD = "Runs of older versions: of the whole job, not of its measurement window."


def time_cell(ns: float | None, sources: tuple[str, ...] = ()) -> Cell | None:
    """A latency; None where it is not known."""
    return None if ns is None else Cell(us(ns), sources, units.latency(ns))


def kinds_table(traces: Sequence[Trace]) -> Table:
    """Submission, completion and both, where submission takes time: on real drives."""
    rows: list[Cells] = []
    for trace in traces:
        own, latencies = (trace.source,), trace.measured.latencies
        if latencies.get("slat", NOTHING).max_ns:
            for kind in KINDS:
                known = latencies.get(kind, NOTHING)
                if not known.ios:
                    continue
                deep = [known.percentile_ns(percent) for percent in (50.0, 99.0, 99.9)]
                times = (known.mean_ns, *deep, known.max_ns)
                rows.append([trace.name, kind, *(time_cell(time, own) for time in times)])
    stats = ("mean", "p50", "p99", "p99.9", "max")
    heads = [*columns("run | kind"), *(Column(n, "", "us", f"latency {n}") for n in stats)]
    note = "slat: until fio has submitted the I/O; clat: from there to its completion; lat: both."
    return Table("Submission and completion", heads, rows, note)


def evenness_table(traces: Sequence[Trace]) -> Table:
    """How even the window is from second to second."""
    heads = columns(
        "run | mean [=IOPS] | slowest second [=IOPS] | p1 second [=IOPS] | p99 second [=IOPS] | "
        "fastest second [=IOPS] | spread [=ratio] | CV [=ratio] | seconds below half [=ratio]"
    )
    rows: list[Cells] = []
    for trace in traces:
        even, own = trace.measured.consistency, (trace.source,)
        if even is not None:
            rates = [Cell(v, own) for v in (even.mean, even.min, even.p1, even.p99, even.max)]
            shares = (even.spread, even.cv, even.share_below_half)
            rows.append([trace.name, *rates, *(Cell(s, own, units.percent(s)) for s in shares)])
    return Table("Per-second IOPS", heads, rows)


def time_table(traces: Sequence[Trace]) -> Table:
    """Time per I/O by part, a column for each run, direction and point."""
    points = [(t, point) for t in traces for point in t.points]
    several = len({t.name for t, _ in points}) > 1
    heads = [f"{t.name}: {p.point}" if several else p.point for t, p in points]
    parts = dict.fromkeys(part for _, point in points for part in point.ns)
    rows: list[Cells] = [
        [names.part(part), *(time_cell(point.ns.get(part)) for _, point in points)]
        for part in parts
    ]
    old = any(p.whole and not t.measured.window.whole for t, p in points)
    notes = [mix_note(traces)] if not several and mix_note(traces) else []
    notes += [CLASSES] if any(p.point != "mean" for _, p in points) else []
    notes += [OLD] if old else []
    columns_ = [Column("part"), *(Column(h, "", "us") for h in heads)]
    return Table("Time per I/O by part", columns_, rows, " ".join(notes))


def mix_note(traces: Sequence[Trace]) -> str:
    """Which direction of a mix numbers are of; empty where there is but one."""
    several = [t for t in traces if t.points and not t.alone and len(t.job.own) > 1]
    mixed = dict.fromkeys(t.measured.ddir for t in several)
    return " ".join(f"Of the {ddir}s of a mix." for ddir in mixed)


def causes_table(traces: Sequence[Trace]) -> Table:
    """Write amplification by cause, a column for each run."""
    own = [trace for trace in traces if trace.causes]
    causes = dict.fromkeys(cause for trace in own for cause in trace.causes)
    rows: list[Cells] = []
    for cause in causes:
        values = [trace.causes.get(cause) for trace in own]
        cells = [None if v is None else Cell(v, text=f"{v:.3f}") for v in values]
        rows.append([names.cause(cause), *cells])
    heads = ["cause", *(trace.run.label for trace in own)]
    return Table("Write amplification by cause", [Column(head) for head in heads], rows)


def smart_table(traces: Sequence[Trace]) -> Table:
    """The SMART page of every SSD at the end of the run."""
    own: list[tuple[str, Smart]] = []
    for trace in traces:
        if (wear := trace.wear) is not None:
            members = wear.members if len(wear.members) > 1 else {}
            own.append((trace.run.label, wear.smart))
            own += [
                (f"{trace.run.label}: {path}", member.smart) for path, member in members.items()
            ]
    rows: list[Cells] = [
        [field.name.replace("_", " "), *(Cell(getattr(smart, field.name)) for _, smart in own)]
        for field in fields(Smart)
        if own
    ]
    heads = ["counter", *(label for label, _ in own)]
    return Table("SMART counters at the end", [Column(head) for head in heads], rows)
