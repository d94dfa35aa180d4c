"""A sweep as an answer: a row for each combination, and how each key matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ssdlab import units
from ssdlab.answer import Answer, Cell, Cells, Column, Curve, Figure, Section, Table, Verdict
from ssdlab.sweeps import Axis, Outcome, Sweep

CURVES_MAX = 8
"""A key with more values than that is no legend."""
LOG_SPAN = 16
"""A key whose values span more than this factor has a logarithmic axis."""
FAILURES_MAX = 10
"""So many failed runs are named."""
MEASURES = (
    ("iops", "IOPS", "IOPS", 1.0),
    ("lat_mean_ns", "lat mean", "us", 1e-3),
    ("clat_p99_ns", "clat p99", "us", 1e-3),
    ("clat_p999_ns", "clat p99.9", "us", 1e-3),
    ("lat_p99_ns", "lat p99", "us", 1e-3),
    ("lat_p999_ns", "lat p99.9", "us", 1e-3),
    ("waf", "WA", "", 1.0),
)
"""Column of the table, its name and unit for people, and the factor to that."""
DRAWN = ("iops", "clat_p99_ns", "lat_p99_ns", "waf")


def answer(sweep: Sweep, frame: pl.DataFrame, outcome: Outcome, where: str) -> Answer:
    """``frame``: the rows of the runs that the sweep asks for; ``where`` the folder."""
    means = _means(sweep, frame)
    said = [_count(sweep, outcome)]
    lead = Section(
        said,
        tables=[_table(sweep, means), *_failures(outcome)],
        figures=_figures(sweep, means),
        key="runs",
        title="All combinations",
        verdict=Verdict("swept", {"runs": float(len(sweep)), "failed": float(_failed(outcome))}),
    )
    note = f"Every number of every run: polars.scan_parquet('{where}/summary/*.parquet')."
    title = f"Sweep of {units.listed([one.key for one in sweep.axes])}"
    return Answer(title, "sweep", [lead], notes=[note], data=_document(sweep, outcome, where))


def _failed(outcome: Outcome) -> int:
    return len(outcome.failed)


def _count(sweep: Sweep, outcome: Outcome) -> str:
    seeds = f", {sweep.seeds} seeds each" if sweep.seeds > 1 else ""
    said = f"{len(sweep) // sweep.seeds:,} combinations{seeds}: {outcome.ran:,} runs now"
    said += f", {outcome.before:,} done before" if outcome.before else ""
    said += f", {outcome.elsewhere:,} by other processes" if outcome.elsewhere else ""
    return said + (f", {_failed(outcome):,} could not be run" if outcome.failed else "")


def _document(sweep: Sweep, outcome: Outcome, where: str) -> dict[str, Any]:
    return {
        "axes": {one.key: list(dict.fromkeys(one.labels)) for one in sweep.axes},
        "seeds": sweep.seeds,
        "runs": len(sweep),
        "ran": outcome.ran,
        "done_before": outcome.before,
        "elsewhere": outcome.elsewhere,
        "failed": [
            {"key": run.key, **run.values, "error": error.message} for run, error in outcome.failed
        ],
        "summary": f"{where}/summary",
    }


def _means(sweep: Sweep, frame: pl.DataFrame) -> pl.DataFrame:
    """Over the seeds, in the order asked for."""
    keys = [one.key for one in sweep.axes]
    columns = [name for name, *_ in MEASURES]
    spread = (pl.col("iops").max() - pl.col("iops").min()) / pl.col("iops").mean()
    sums = frame.group_by([*keys, "job", "ddir"]).agg(
        pl.col(columns).mean(),
        pl.col("ios", "steady").sum(),
        spread=100 * spread,
        runs=pl.len(),
    )
    places = [pl.col(one.key).replace_strict(*_places(one)) for one in sweep.axes]
    return sums.sort(*places, "job", "ddir")


def _places(axis: Axis) -> tuple[list[float | str], list[int]]:
    """The values of a key as the table has them, and their order."""
    return axis.cells, list(range(len(axis.cells)))


def _table(sweep: Sweep, means: pl.DataFrame) -> Table:
    several = means.select("job", "ddir").n_unique() > 1
    names = ["job", "ddir"] if several else []
    told = [one for one in MEASURES if means[one[0]].count()]
    columns = [Column(one.key) for one in sweep.axes] + [Column(name) for name in names]
    columns += [Column(head, unit) for _, head, unit, _ in told]
    columns += [Column("spread of IOPS", "%")] if sweep.seeds > 1 else []
    columns += [Column("steady")]
    texts = {one.key: _texts(one) for one in sweep.axes}
    rows: list[Cells] = []
    for row in means.iter_rows(named=True):
        cells: Cells = [texts[one.key][row[one.key]] for one in sweep.axes]
        cells += [row[name] for name in names]
        cells += [Cell(_scaled(row[name], factor)) for name, _, _, factor in told]
        cells += [Cell(row["spread"])] if sweep.seeds > 1 else []
        rows.append([*cells, _share(row["steady"], row["runs"])])
    return Table("Mean of each combination", columns, rows)


def _texts(axis: Axis) -> dict[float | str, str]:
    """How the values of a key are written, by what the table has."""
    return dict(zip(axis.cells, dict.fromkeys(axis.labels), strict=True))


def _share(count: int, of: int) -> str:
    """Yes or no where all are alike."""
    return "yes" if count == of else f"{count} of {of}" if count else "no"


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _failures(outcome: Outcome) -> list[Table]:
    if not outcome.failed:
        return []
    rows = [
        [", ".join(f"{key}={value}" for key, value in run.values.items()), error.message]
        for run, error in outcome.failed[:FAILURES_MAX]
    ]
    more = len(outcome.failed) - FAILURES_MAX
    note = f"{more:,} more in the document of --json." if more > 0 else ""
    return [Table("Could not be run", [Column("combination"), Column("why")], rows, note)]


def _figures(sweep: Sweep, means: pl.DataFrame) -> list[Figure]:
    """A chart for each key and measure; another key as lines, the rest held."""
    if not means.height:
        return []
    several = means.select("job", "ddir").n_unique() > 1
    note = "Of each combination, the job and direction with the most I/Os. " if several else ""
    measures = [one for one in MEASURES if one[0] in DRAWN and means[one[0]].count()]
    # Of those that go together the first stands for all.
    groups = {one.group or one.key: one for one in reversed(sweep.axes) if len(one.cells) > 1}
    axes = [one for one in sweep.axes if one in groups.values()]
    return [
        _figure(axes, axis, _busiest(sweep, means.drop_nulls(one[0])), one, note)
        for axis in axes
        for one in measures
    ]


def _busiest(sweep: Sweep, means: pl.DataFrame) -> pl.DataFrame:
    """Of each combination the row with the most I/Os, in the order asked for."""
    keys = [one.key for one in sweep.axes]
    ranked = means.sort("ios", maintain_order=True)
    own = ranked.unique(keys, keep="last", maintain_order=True)
    return own.sort(*(pl.col(one.key).replace_strict(*_places(one)) for one in sweep.axes))


def _figure(
    axes: Sequence[Axis],
    axis: Axis,
    means: pl.DataFrame,
    measure: tuple[str, str, str, float],
    about: str,
) -> Figure:
    """``about`` says what the numbers are of, where that is not clear."""
    name, head, unit, factor = measure
    others = [one for one in axes if one.key != axis.key]
    lines = next((one for one in others if len(one.cells) <= CURVES_MAX), None)
    held = {one.key: one for one in others if one is not lines}
    kept = means.filter(*(pl.col(key) == one.cells[0] for key, one in held.items()))
    curves = []
    for place, cell in enumerate(lines.cells if lines else [None]):
        points = kept if lines is None else kept.filter(pl.col(lines.key) == cell)
        label = head if lines is None else f"{lines.key} {_texts(lines)[lines.cells[place]]}"
        curves.append(Curve(label, _x(axis, points), _y(points, name, factor), "points", place))
    label = f"{head}, {unit}" if unit and unit != head else head
    note = ", ".join(f"{key} held at {one.labels[0]}" for key, one in held.items())
    return Figure(
        f"{head} by {axis.key}",
        axis.key,
        label,
        [one for one in curves if len(one.x)],
        log_x=_is_wide(axis),
        x_names=() if axis.numeric else tuple(_texts(axis).values()),
        group=axis.key,
        note=about + (f"{note}." if note else ""),
    )


def _x(axis: Axis, points: pl.DataFrame) -> list[float]:
    values = points[axis.key].to_list()
    if axis.numeric:
        return values
    places: Mapping[Any, int] = {cell: place for place, cell in enumerate(axis.cells)}
    return [float(places[one]) for one in values]


def _y(points: pl.DataFrame, name: str, factor: float) -> list[float]:
    return [factor * one for one in points[name]]


def _is_wide(axis: Axis) -> bool:
    if not axis.numeric:
        return False
    low, high = min(map(float, axis.values)), max(map(float, axis.values))
    return low > 0 and high >= LOG_SPAN * low
