"""The characteristics of a trace, in words, tables and charts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from ssdlab import _core, units
from ssdlab.answer import INTERVAL, Cell, Cells, Column, Curve, Figure, Table, columns, size_cell
from ssdlab.progress import Progress, ProgressCallback, answering_ctrl_c
from ssdlab.tracefile import Reading, damage, existing
from ssdlab.units import DAY_S

KINDS = {"read": "reads", "write": "writes", "trim": "trims", "flush": "flushes"}
"""Kinds of requests, and many of them."""


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
    """The characteristics of the trace, as ``ssdlab trace info --json`` writes it. Raises
    InputError as :func:`ssdlab.traces.open`, Interrupted on Ctrl-C or where ``progress`` returned
    False."""
    file = existing(path)
    options = (reading or Reading()).options()
    with answering_ctrl_c(""):
        found: dict[str, Any] = json.loads(
            _core.trace_profile(file, options, progress=told(progress))
        )
    return {"trace": str(path), **found, "remarks": remarks(found)}


def facts(found: dict[str, Any]) -> Table:
    """What a trace is like, a property each row; :func:`profile` has all of it in numbers."""
    kinds, amounts = found["requests_by_kind"], found["bytes_by_kind"]
    rows: list[tuple[str, Cell | str]]
    rows = [("format", found["format"]), ("requests", _count(found["requests"]))]
    for kind, title in KINDS.items():
        if kinds[kind]:
            amount = f", {units.binary(amounts[kind])}" if kind in amounts else ""
            share = 100 * kinds[kind] / max(1, found["requests"])
            rows.append((title, _count(kinds[kind], f"{share:.1f} %{amount}")))
    if found["devices"] > 1:
        rows.append(("devices", _count(found["devices"])))
    heads = [Column("property"), Column("value", parts=("value", *INTERVAL, "unit", "remark"))]
    return Table("Summary", heads, [*rows, *_time_rows(found), *_place_rows(found)])


def _count(count: int, more: str = "") -> Cell:
    return Cell(float(count), text=f"{count:,}" + (f" ({more})" if more else ""), remark=more)


def _percentiles(rows: Sequence[dict[str, Any]], value: str) -> dict[float, Any]:
    return {row["percent"]: row[value] for row in rows}


def _time_rows(found: dict[str, Any]) -> Iterator[tuple[str, Cell | str]]:
    arrivals = found["arrivals"]
    if arrivals is None:
        yield "times", "none in this format"
        return
    seconds = found["seconds"]
    yield "time span", Cell(seconds, text=units.duration(seconds), unit="s")
    if seconds > 0:
        rate, unit = found["requests"] / seconds, "requests/s"
        yield "mean rate", Cell(rate, text=f"{units.number(rate)} {unit}", unit=unit)
    for window in arrivals["windows"]:
        if window["window_ns"] in (10_000_000, 1_000_000_000, 60_000_000_000):
            peak = window["requests_max"]
            more = (
                f"{units.number(peak / window['requests_mean'])} times the mean; "
                f"variance/mean {units.number(window['dispersion'])} (Poisson: 1)"
            )
            told = f"{units.counted(peak, 'request')}, {more}"
            name = f"busiest {units.duration(window['window_ns'] / 1e9)}"
            yield name, Cell(float(peak), text=told, unit="requests", remark=more)
    responses = found["responses"] or {}
    for name, rows, high in (
        ("between requests", arrivals["gaps"], 90),
        *((f"recorded {kind} times", responses.get(kind, []), 99) for kind in ("read", "write")),
    ):
        if times := _percentiles(rows, "ns"):
            median, most = (units.latency(times[float(one)]) for one in (50, high))
            yield name, f"median {median}, {high} % within {most}"


def _place_rows(found: dict[str, Any]) -> Iterator[tuple[str, Cell | str]]:
    foot, order = found["footprint"], found["order"]
    block, sampled = foot["block_bytes"], foot["estimated_from_one_in"]
    moved = max(1, found["requests_by_kind"]["read"] + found["requests_by_kind"]["write"])
    low, high = found["lowest_byte"], found["end_byte"]
    between = f"{units.binary(low)} to {units.binary(high)}"
    yield "addresses", Cell(None, text=between, low=low, high=high, unit="B")
    about, of = "about " if sampled > 1 else "", "in blocks of 4 KiB"
    for name, key in (("footprint", "blocks"), ("of it read", "blocks_read"),
                      ("of it written", "blocks_written")):  # fmt: skip
        size = float(foot[key] * block)
        text = f"{about}{units.binary(size)} {of}"
        yield name, Cell(size, text=text, unit="B", remark=f"{about}{of}")
    yield (
        "sequential",
        f"{100 * order['continues_the_request_before'] / moved:.1f} % continue the request "
        f"before, {100 * order['continues_one_of_the_last'] / moved:.1f} % one of "
        f"{order['streams_followed']} streams",
    )
    hottest = {one["percent_of_blocks"]: 100 * one["share_of_touches"] for one in foot["hottest"]}
    yield (
        "hot spots",
        f"{hottest[1.0]:.1f} % of touches on 1 % of the blocks, {hottest[10.0]:.1f} % on 10 %",
    )
    reuse = found["reuse"]
    if distances := _percentiles(reuse["distances"], "blocks"):
        median, most = (units.binary(distances[one] * block) for one in (50.0, 90.0))
        yield (
            "reuse",
            f"{100 * reuse['reused'] / reuse['touches']:.1f} % of touches; different data "
            f"between: median {median}, 90 % within {most}"
            + (f", from one block in {sampled}" if sampled > 1 else ""),
        )
    series = found["series"]
    if series and (blocks := series["blocks"]):
        yield (
            "working set",
            f"per {units.duration(series['window_ns'] / 1e9)}: mean "
            f"{units.binary(block * sum(blocks) / len(blocks))}, at most "
            f"{units.binary(block * max(blocks))}",
        )


def size_table(found: dict[str, Any], most: int = 12) -> Table:
    """The commonest sizes: size, reads, writes, trims, share of all."""
    sizes = found["sizes"]
    count = {id(size): size["read"] + size["write"] + size["trim"] for size in sizes}
    total = max(1, sum(count.values()))
    kept = sorted(sizes, key=lambda one: -count[id(one)])[:most]

    def row(size: Cell, *counts: int) -> Cells:
        share = 100 * sum(counts) / total
        told = (Cell(float(count), text=f"{count:,}") for count in counts)
        return [size, *told, Cell(share, text=f"{share:.1f}")]

    rows = [
        row(size_cell(one["bytes"]), one["read"], one["write"], one["trim"])
        for one in sorted(kept, key=lambda one: one["bytes"])
    ]
    rest = [size for size in sizes if size not in kept]
    if rest:
        sums = (sum(one[kind] for one in rest) for kind in ("read", "write", "trim"))
        others = f"{len(rest)} others"
        rows.append(row(Cell(None, text=others, remark=others), *sums))
    heads = columns("size [=B] | reads | writes | trims | share [%]")
    heads[0] = replace(heads[0], parts=("value", "remark"))
    return Table("Most common sizes", heads, rows)


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
    unit, per = _time_unit(width * len(series["reads"]))
    times = [width * n / per for n in range(len(series["reads"]))]
    time = f"time, {unit}"
    note = f"In windows of {units.duration(width)}."

    def curves(
        *named: tuple[str, str], by: float = 1.0, cumulative: bool = False
    ) -> Sequence[Curve]:
        drawn = []
        for place, (name, column) in enumerate(named):
            values = [one * by for one in series[column]]
            if cumulative:
                values = list(accumulate(values))
            if any(values):
                drawn.append(Curve(name, times, values, "line", place))
        return drawn

    rates = ((name, name) for name in KINDS.values())
    amounts = (("read", "read_bytes"), ("written", "write_bytes"))
    return [
        Figure("Arrivals", time, "requests/s", curves(*rates, by=1 / width), wide=True, note=note),
        Figure("Throughput asked for", time, "MB/s", curves(*amounts, by=1e-6 / width), note=note),
        Figure(
            "Working set", time, "MiB",
            curves(("touched in a window", "blocks"), by=block / 2**20),
            note=f"Different blocks of 4 KiB touched in each window of {units.duration(width)}.",
        ),
        Figure(
            "Footprint", time, "MiB",
            curves(("touched so far", "fresh_blocks"), by=block / 2**20, cumulative=True),
        ),
    ]  # fmt: skip


def _sizes(found: dict[str, Any]) -> Figure:
    """Requests by size, in powers of two."""
    counts: dict[str, dict[int, int]] = {"read": {}, "write": {}, "trim": {}}
    powers = [max(9, (one["bytes"] - 1).bit_length()) for one in found["sizes"]]
    low, high = min(powers, default=12), max(powers, default=12)
    names = [units.binary(1 << power) for power in range(low, high + 1)]
    for power, one in zip(powers, found["sizes"], strict=True):
        for kind, column in counts.items():
            column[power - low] = column.get(power - low, 0) + one[kind]
    places = list(range(high - low + 1))
    curves = [
        Curve(f"{kind}s", places, [column.get(place, 0) for place in places], "bars", number)
        for number, (kind, column) in enumerate(counts.items())
        if any(column.values())
    ]
    note = "Bins are upper bounds."
    return Figure("Sizes", "size of a request", "requests", curves, x_names=names, note=note)


def _caches(found: dict[str, Any], block: int) -> Figure:
    hits = found["reuse"]["lru_hits"]
    x = [hit["blocks"] * block / 2**20 for hit in hits]
    y = [100 * hit["hit_ratio"] for hit in hits]
    return Figure(
        "What a cache would catch", "size of an LRU cache, MiB", "hits, % of touches",
        [Curve("hits", x, y, "points")], log_x=True, y_max=100.0,
        note="From reuse distances: blocks of 4 KiB, reads and writes alike, empty at the start.",
    )  # fmt: skip


def _map(grid: dict[str, Any]) -> Figure:
    columns, rows = grid["columns"], grid["rows"]
    ends = [n for n in range(columns * rows) if grid["reads"][n] or grid["writes"][n]]
    last = max((n % columns for n in ends), default=0) + 1
    unit, per = _time_unit(last * grid["column_ns"] / 1e9)
    curves = []
    for place, name in enumerate(("reads", "writes")):
        cells = [n for n in range(columns * rows) if grid[name][n]]
        shift = 0.3 + 0.4 * place
        x = [(n % columns + shift) * grid["column_ns"] / 1e9 / per for n in cells]
        y = [(n // columns + 0.5) * grid["row_bytes"] / 2**30 for n in cells]
        curves.append(Curve(name, x, y, "dots", place))
    return Figure(
        "Access map (LBA x time)",
        f"time, {unit}",
        "address, GiB",
        [curve for curve in curves if len(curve.x)],
        wide=True,
        note="A dot for each field with at least one request; "
        f"a field is {units.binary(grid['row_bytes'])} high.",
    )  # fmt: skip


def _time_unit(seconds: float) -> tuple[str, float]:
    """The unit for the axis of a span: its name and its length in s."""
    if seconds < 1:
        return "ms", 1e-3
    if seconds < 600:
        return "s", 1.0
    if seconds < 10 * 3600:
        return "min", 60.0
    return ("h", 3600.0) if seconds < 4 * DAY_S else ("days", DAY_S)


def remarks(found: dict[str, Any]) -> list[str]:
    """What is odd about a trace and how it was treated; each a sentence."""
    odd, total = found["oddities"], max(1, found["requests"])
    said = damage(odd)
    if odd["duplicates"]:
        share = 100 * odd["duplicates"] / total
        what = "a recording may hold requests twice, so look before you trust its rates; "
        which = f"({share:.1f} %)"
        does = "repeats the one before it", "repeat the one before them"
        said.append(
            f"{_requests(odd['duplicates'], *does, which)} within "
            f"{odd['duplicate_ns'] / 1e6:.0f} ms, same place, size and kind: "
            f"{what if share >= 1 else ''}they are kept."
        )
    if odd["backwards"]:
        does = "has a time before", "have a time before"
        said.append(
            f"{_requests(odd['backwards'], *does)} that of the request before (by "
            f"{units.latency(odd['backwards_ns_max'])} at most), and the time of that is taken."
        )
    if odd["zero_length"]:
        said.append(f"{_requests(odd['zero_length'], 'is', 'are', 'without a byte')} left out.")
    if odd["unaligned"]:
        share = 100 * odd["unaligned"] / total
        does = "is not", "are not"
        said.append(
            f"{_requests(odd['unaligned'], *does, f'({share:.1f} %)')} whole sectors of 512 bytes; "
            "a replay rounds outwards."
        )
    if not found["has_times"]:
        said.append("There are no times in this trace: it can be replayed at a depth alone.")
    elif found["requests"] > 1 and found["seconds"] == 0:
        said.append("All requests have the same time.")
    if found["footprint"]["estimated_from_one_in"] > 1:
        said.append(
            "The trace touches so many blocks that footprint, working set and reuse are estimated "
            f"from one block in {found['footprint']['estimated_from_one_in']}, chosen by a hash."
        )
    return said


def _requests(count: int, one: str, more: str, which: str = "") -> str:
    """So many requests, and what it or they do."""
    told = units.counted(count, "request") + (f" {which}" if which else "")
    return f"{told} {one if count == 1 else more}"
