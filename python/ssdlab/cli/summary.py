"""What a run of a job file measured, on the terminal: the same for ``run``, ``show`` and traces."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.measure import Measurement

from ssdlab import units
from ssdlab.analysis.measurement import Direction
from ssdlab.answer import MARK, MARK_NOTE, Check, any_doubt
from ssdlab.checks import examine, of_result
from ssdlab.cli.answer import print_checks
from ssdlab.cli.console import table, window_text
from ssdlab.histogram import NOTHING, PERCENTILES, Histogram
from ssdlab.results import Result

NO_BREAK = "\u00a0"
UNBOUND = 1000
"""Columns of a terminal on which any table fits."""
ALWAYS = ("p50", "p99", "p999")
"""Percentiles that have a column even where there are too few I/Os for them."""


def print_run(result: Result, console: Console) -> None:
    """The numbers of all jobs, each of its measurement window, and what is in doubt."""
    checks = examine(of_result(result))
    measurement = result.measurement
    mark = MARK if any_doubt(checks) else ""
    for kind in ("clat", "lat"):
        found = [one for one in measurement.directions if one.kind == kind]
        if found:
            _print(console, found, kind, mark)
    for job in measurement.jobs:
        if job.directions:
            console.print(f"{job.name}: {window_text(job.window)}", markup=False, soft_wrap=True)
    if mark:
        console.print(MARK_NOTE, markup=False)
    print_checks(console, checks)


def _print(console: Console, found: Sequence[Direction], kind: str, mark: str) -> None:
    """A table, or where that is too wide for the terminal, a block for each direction."""
    heads = _columns(found, kind)
    rows = [[one.job, one.ddir, *_values(one, heads, mark)] for one in found]
    columns = [("job", "left"), ("ddir", "left"), *((head, "right") for head in heads)]
    grid = table(columns, rows)
    room = console.options.update(max_width=UNBOUND)
    if Measurement.get(console, room, grid).maximum <= console.width:
        console.print(grid)
        return
    for job, ddir, *values in rows:
        console.print(f"{job}, {ddir}", markup=False, soft_wrap=True)
        told = [f"{head} {value}" for head, value in zip(heads, values, strict=True)]
        line = "  ".join(one.replace(" ", NO_BREAK) for one in told)
        for part in textwrap.wrap(line, console.width - 4):
            console.print(f"  {part.replace(NO_BREAK, ' ')}", markup=False, soft_wrap=True)


def _columns(found: Sequence[Direction], kind: str) -> list[str]:
    deep = [
        name
        for name, percent in PERCENTILES.items()
        if name in ALWAYS or any((one.latency or NOTHING).percentile_ns(percent) for one in found)
    ]
    latencies = [f"{kind} mean", *(_title(name) for name in deep), "max"]
    rates = ["IOPS"] if kind == "lat" else ["IOPS", "MB/s"]
    return [*rates, *latencies, *(["WA"] if any(one.waf is not None for one in found) else [])]


def _title(name: str) -> str:
    return f"p{PERCENTILES[name]:g}"


def _values(one: Direction, heads: Sequence[str], mark: str) -> list[str]:
    told = one.latency
    texts = {
        "IOPS": units.number(one.iops),
        "MB/s": units.number(None if one.bw_bytes is None else one.bw_bytes / 1e6),
        f"{one.kind} mean": units.latency(None if told is None else told.mean_ns),
        **{_title(n): units.latency(_percentile(told, p)) for n, p in PERCENTILES.items()},
        "max": units.latency(None if told is None else told.max_ns),
        "WA": "" if one.waf is None else f"{one.waf:.2f}",
    }
    return [f"{texts[head]}{mark}" if texts[head] else "" for head in heads]


def _percentile(found: Histogram | None, percent: float) -> float | None:
    return None if found is None else found.percentile_ns(percent)


def as_json(result: Result, checks: Sequence[Check]) -> dict[str, Any]:
    """A kept run for scripts."""
    about = result.ssdlab
    return {
        "run": None if result.folder is None else result.folder.name,
        "name": result.name,
        "target": about.get("target", {}),
        "seed": about.get("seed"),
        "version": about.get("version"),
        "summary": result.summary(),
        "checks": [
            {"name": one.name, "status": one.status, "evidence": one.evidence} for one in checks
        ],
    }
