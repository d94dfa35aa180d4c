"""What a trace is like, in words, tables and charts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ssdlab import _core
from ssdlab.errors import Interrupted
from ssdlab.figures import Curve, Figure, figure_text
from ssdlab.progress import Progress, ProgressCallback
from ssdlab.tracefile import Reading, existing
from ssdlab.traces import words
from ssdlab.units import binary

KINDS = ("read", "write", "trim", "flush")


def told(progress: ProgressCallback | None) -> Any:
    """The core's news as everybody else's."""
    if progress is None:
        return None
    return lambda news: progress(
        Progress(fraction=news["fraction"], text=f"{news['ios']:,} requests")
    )


def profile(
    path: str | Path, reading: Reading | None = None, progress: ProgressCallback | None = None
) -> dict[str, Any]:
    """What the trace is like, as ``ssdlab trace info --json`` writes it.

    Raises:
        InputError: as :func:`ssdlab.traces.open`.
        Interrupted: Ctrl-C, or ``progress`` returned False.
    """
    file = existing(path)
    options = (reading or Reading()).options()
    try:
        found: dict[str, Any] = json.loads(
            _core.trace_profile(file, options, progress=told(progress))
        )
    except KeyboardInterrupt:
        raise Interrupted("stopped by Ctrl-C") from None
    return {"trace": str(path), **found, "remarks": words.remarks(found)}


def facts(found: dict[str, Any]) -> list[list[str]]:
    """Rows of name and value, for people."""
    kinds, amounts = found["requests_by_kind"], found["bytes_by_kind"]
    total = max(1, found["requests"])
    rows = [["format", found["format"]], ["requests", f"{found['requests']:,}"]]
    for kind in KINDS:
        if kinds[kind]:
            amount = f", {binary(amounts[kind])}" if kind in amounts else ""
            share = f"{100 * kinds[kind] / total:.1f} %"
            rows.append([f"  {kind}s" if kind != "flush" else "  flushes",
                         f"{kinds[kind]:,} ({share}){amount}"])  # fmt: skip
    if found["devices"] > 1:
        rows.append(["devices", f"{found['devices']:,}"])
    rows += _time_rows(found)
    rows += _place_rows(found)
    return [[str(cell) for cell in row] for row in rows]


def _time_rows(found: dict[str, Any]) -> list[list[str]]:
    arrivals = found["arrivals"]
    if arrivals is None:
        return [["times", "none in this format"]]
    seconds = found["seconds"]
    rows = [["time span", words.span(seconds)]]
    if seconds > 0:
        rows.append(["mean rate", f"{found['requests'] / seconds:,.4g} requests/s"])
    for window in arrivals["windows"]:
        if window["window_ns"] in (10_000_000, 1_000_000_000, 60_000_000_000):
            width = words.span(window["window_ns"] / 1e9)
            peak = window["requests_max"]
            over = figure_text(peak / window["requests_mean"])
            rows.append(
                [f"busiest {width}", f"{peak:,} requests, {over} times the mean; "
                 f"variance/mean {figure_text(window['dispersion'])} (Poisson: 1)"]
            )  # fmt: skip
    gaps = {one["percent"]: one["ns"] for one in arrivals["gaps"]}
    if gaps:
        rows.append(
            ["between requests", f"median {words.nanoseconds(gaps[50.0])}, "
             f"90 % within {words.nanoseconds(gaps[90.0])}"]
        )  # fmt: skip
    for kind in ("read", "write"):
        times = {one["percent"]: one["ns"] for one in (found["responses"] or {}).get(kind, [])}
        if times:
            rows.append(
                [f"recorded {kind} times", f"median {words.nanoseconds(times[50.0])}, "
                 f"99 % within {words.nanoseconds(times[99.0])}"]
            )  # fmt: skip
    return rows


def _place_rows(found: dict[str, Any]) -> list[list[str]]:
    foot, order = found["footprint"], found["order"]
    block = foot["block_bytes"]
    moved = max(1, found["requests_by_kind"]["read"] + found["requests_by_kind"]["write"])
    about = "" if foot["estimated_from_one_in"] == 1 else "about "
    rows = [
        ["addresses", f"{binary(found['lowest_byte'])} to {binary(found['end_byte'])}"],
        ["footprint", f"{about}{binary(foot['blocks'] * block)} in blocks of 4 KiB"],
        ["  read, written", f"{binary(foot['blocks_read'] * block)}, "
         f"{binary(foot['blocks_written'] * block)}"],
        ["sequential", f"{100 * order['continues_the_request_before'] / moved:.1f} % continue the "
         f"request before, {100 * order['continues_one_of_the_last'] / moved:.1f} % one of "
         f"{order['streams_followed']} streams"],
    ]  # fmt: skip
    hottest = {one["percent_of_blocks"]: one["share_of_touches"] for one in foot["hottest"]}
    rows.append(
        ["hot spots", f"{100 * hottest[1.0]:.1f} % of touches on 1 % of the blocks, "
         f"{100 * hottest[10.0]:.1f} % on 10 %"]
    )  # fmt: skip
    reuse = found["reuse"]
    distances = {one["percent"]: one["blocks"] * block for one in reuse["distances"]}
    if distances:
        how = "" if foot["estimated_from_one_in"] == 1 else (
            f", from one block in {foot['estimated_from_one_in']}")  # fmt: skip
        rows.append(
            ["reuse", f"{100 * reuse['reused'] / reuse['touches']:.1f} % of touches; different "
             f"data between: median {binary(distances[50.0])}, "
             f"90 % within {binary(distances[90.0])}{how}"]
        )  # fmt: skip
    series = found["series"]
    if series and series["blocks"]:
        width = words.span(series["window_ns"] / 1e9)
        blocks = series["blocks"]
        rows.append(
            ["working set", f"per {width}: mean {binary(block * sum(blocks) / len(blocks))}, "
             f"at most {binary(block * max(blocks))}"]
        )  # fmt: skip
    return rows


def size_rows(found: dict[str, Any], most: int = 12) -> list[list[str]]:
    """Rows of the commonest sizes: size, reads, writes, trims, share of all."""
    sizes = found["sizes"]
    count = {id(one): one["read"] + one["write"] + one["trim"] for one in sizes}
    total = max(1, sum(count.values()))
    kept = sorted(sizes, key=lambda one: -count[id(one)])[:most]
    rows = [
        [binary(one["bytes"]), f"{one['read']:,}", f"{one['write']:,}", f"{one['trim']:,}",
         f"{100 * count[id(one)] / total:.1f} %"]
        for one in sorted(kept, key=lambda one: one["bytes"])
    ]  # fmt: skip
    rest = [one for one in sizes if one not in kept]
    if rest:
        sums = [sum(one[kind] for one in rest) for kind in ("read", "write", "trim")]
        rows.append(
            [f"{len(rest)} others", *(f"{n:,}" for n in sums), f"{100 * sum(sums) / total:.1f} %"]
        )
    return rows


def figures(found: dict[str, Any]) -> list[Figure]:
    """The charts: arrivals, throughput, working set, sizes, reuse, where and when."""
    charts: list[Figure] = []
    series, block = found["series"], found["footprint"]["block_bytes"]
    if series and len(series["reads"]) > 1:
        charts += _over_time(series, block)
    charts += [_sizes(found), _caches(found, block)]
    if found["has_times"]:
        charts.append(_map(found["map"]))
    return charts


def _over_time(series: dict[str, Any], block: int) -> list[Figure]:
    width = series["window_ns"] / 1e9
    unit, per = words.time_unit(width * len(series["reads"]))
    times = [width * n / per for n in range(len(series["reads"]))]
    time = f"time, {unit}"
    note = f"In windows of {words.span(width)}."

    def curves(
        *named: tuple[str, str], by: float = 1.0, cumulative: bool = False
    ) -> Sequence[Curve]:
        drawn = []
        for place, (name, column) in enumerate(named):
            values = [one * by for one in series[column]]
            if cumulative:
                values = _running(values)
            if any(values):
                drawn.append(Curve(name, times, values, "line", place))
        return drawn

    rates = (("reads", "reads"), ("writes", "writes"), ("trims", "trims"), ("flushes", "flushes"))
    amounts = (("read", "read_bytes"), ("written", "write_bytes"))
    return [
        Figure("Arrivals", time, "requests/s", curves(*rates, by=1 / width), wide=True, note=note),
        Figure("Throughput asked for", time, "MB/s", curves(*amounts, by=1e-6 / width), note=note),
        Figure(
            "Working set", time, "MiB",
            curves(("touched in a window", "blocks"), by=block / 2**20),
            note=f"Different blocks of 4 KiB touched in each window of {words.span(width)}.",
        ),
        Figure(
            "Footprint", time, "MiB",
            curves(("touched so far", "fresh_blocks"), by=block / 2**20, cumulative=True),
        ),
    ]  # fmt: skip


def _running(values: Sequence[float]) -> list[float]:
    total, sums = 0.0, []
    for one in values:
        total += one
        sums.append(total)
    return sums


def _sizes(found: dict[str, Any]) -> Figure:
    """Requests by size, in powers of two."""
    names: list[str] = []
    counts: dict[str, dict[int, int]] = {"read": {}, "write": {}, "trim": {}}
    powers = [max(9, (one["bytes"] - 1).bit_length()) for one in found["sizes"]]
    low, high = min(powers, default=12), max(powers, default=12)
    names = [binary(1 << power) for power in range(low, high + 1)]
    for power, one in zip(powers, found["sizes"], strict=True):
        for kind, column in counts.items():
            column[power - low] = column.get(power - low, 0) + one[kind]
    places = list(range(high - low + 1))
    curves = [
        Curve(f"{kind}s", places, [column.get(place, 0) for place in places], "bars", number)
        for number, (kind, column) in enumerate(counts.items())
        if any(column.values())
    ]
    note = "Each place holds requests up to that size that are larger than the place before it."
    return Figure("Sizes", "size of a request", "requests", curves, x_names=names, note=note)


def _caches(found: dict[str, Any], block: int) -> Figure:
    hits = found["reuse"]["lru_hits"]
    x = [one["blocks"] * block / 2**20 for one in hits]
    y = [100 * one["hit_ratio"] for one in hits]
    return Figure(
        "What a cache would catch", "size of an LRU cache, MiB", "hits, % of touches",
        [Curve("hits", x, y, "points")], log_x=True, y_max=100.0,
        note="From reuse distances: blocks of 4 KiB, reads and writes alike, empty at the start.",
    )  # fmt: skip


def _map(grid: dict[str, Any]) -> Figure:
    columns, rows = grid["columns"], grid["rows"]
    ends = [n for n in range(columns * rows) if grid["reads"][n] or grid["writes"][n]]
    last = max((n % columns for n in ends), default=0) + 1
    unit, per = words.time_unit(last * grid["column_ns"] / 1e9)
    curves = []
    for place, (name, key) in enumerate((("reads", "reads"), ("writes", "writes"))):
        cells = [n for n in range(columns * rows) if grid[key][n]]
        shift = 0.3 + 0.4 * place
        x = [(n % columns + shift) * grid["column_ns"] / 1e9 / per for n in cells]
        y = [(n // columns + 0.5) * grid["row_bytes"] / 2**30 for n in cells]
        curves.append(Curve(name, x, y, "dots", place))
    return Figure(
        "Where and when", f"time, {unit}", "address, GiB", [one for one in curves if len(one.x)],
        wide=True,
        note="A dot for each field with at least one request; "
        f"a field is {binary(grid['row_bytes'])} high.",
    )  # fmt: skip
