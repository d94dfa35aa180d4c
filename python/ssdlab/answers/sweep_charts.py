"""The charts of a sweep: how each key matters, two of them together, what is won for what, and all
of them at once. Every point is a combination, and leads to its row in the table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from ssdlab import units
from ssdlab.answer import Curve, Figure
from ssdlab.results import DIRECTIONS
from ssdlab.sweeps import Axis, Sweep
from ssdlab.sweeps.dataset import BUILT, MOVING, NOISE
from ssdlab.sweeps.measures import together
from ssdlab.sweeps.sample import GROUP as SAMPLED

CURVES_MAX = 8
"""A key with more values than that is no legend."""
FIELDS_MAX = 24
"""A key with more values than that is no side of a heat map."""
LINES_MAX = 1_000
"""So many combinations are drawn as lines, those at equal distances in the table."""
ABOUT_MAX = 2_000
"""Of more points the pointer is told the numbers alone."""
LOG_SPAN = 16
"""What spans more than this factor has a logarithmic axis."""
MEASURES = (
    ("iops", "IOPS", "IOPS", 1.0),
    ("clat_mean_ns", "clat mean", "us", 1e-3),
    ("clat_p99_ns", "clat p99", "us", 1e-3),
    ("clat_p999_ns", "clat p99.9", "us", 1e-3),
    ("lat_mean_ns", "lat mean", "us", 1e-3),
    ("lat_p99_ns", "lat p99", "us", 1e-3),
    ("lat_p999_ns", "lat p99.9", "us", 1e-3),
    ("waf", "WA", "", 1.0),
    ("endurance_bytes", "endurance", "TB", 1e-12),
)
"""Column of the table, its name and unit for people, and the factor to that."""
DRAWN = ("iops", "clat_p99_ns", "lat_p99_ns", "waf")
TRADED = (("iops", "clat_p99_ns"), ("iops", "lat_p99_ns"), ("iops", "waf"))
"""Pairs of which one is had for the other: the first is better high, the second low."""
Measure = tuple[str, str, str, float]
_TOGETHER: Mapping[str, Callable[[pl.Expr], pl.Expr]] = {
    "sum": lambda of: of.filter(pl.col("ddir").is_in(DIRECTIONS)).sum(),
    "min": pl.Expr.min,
    "max": pl.Expr.max,
}


def means_of(sweep: Sweep, frame: pl.DataFrame) -> pl.DataFrame:
    """Over the seeds, in the order asked for; ``key`` is that of the first seed's run."""
    keys = [axis.key for axis in sweep.axes]
    columns = [name for name, *_ in MEASURES]
    spread = (pl.col("iops").max() - pl.col("iops").min()) / pl.col("iops").mean()
    # Runs of an older version do not say these.
    noise, built = (
        pl.col(name) if name in frame.columns else pl.lit(None, pl.Float64)
        for name in (NOISE, BUILT)
    )
    # Null in what an older version has added to the same table.
    moving = pl.col(MOVING).fill_null(False) if MOVING in frame.columns else pl.lit(False)
    # Those of seeds are strangers.
    noise = pl.when(noise.count() > 0).then(noise.pow(2).sum().sqrt() / noise.count())
    sums = frame.group_by([*keys, "job", "ddir"]).agg(
        pl.col(columns).mean(),
        pl.col("ios").sum(),
        pl.col("key").sort_by("seed").first(),
        steady=(pl.col("steady") & ~moving).sum(),
        moving=moving.sum(),
        spread=100 * spread,
        noise=noise,
        built=built.first(),
        runs=pl.len(),
    )
    return sums.sort(*(axis.order for axis in sweep.axes), "job", "ddir")


def told_of(means: pl.DataFrame, name: str) -> bool:
    """Whether a measure is known and says what no other one does: where submission takes no time,
    the latency is that of completion."""
    own, whole = means[name], means.get_column(f"c{name}", default=None)
    same = (
        whole is not None
        and own.is_null().equals(whole.is_null())
        # Means of the same times are summed in different orders.
        and bool(((own - whole).abs() <= 1e-9 * whole).all())
    )
    return own.count() > 0 and not same


def together_of(sweep: Sweep, means: pl.DataFrame, *measures: str) -> pl.DataFrame:
    """Of each combination that has the measures those of its jobs and directions together, as a
    search takes them, in the order asked for."""
    keys = [axis.key for axis in sweep.axes]
    names = [name for name, *_ in MEASURES]
    whole = means.group_by(keys).agg(
        *(_TOGETHER[together(name)](pl.col(name)) for name in names), pl.col("key").first()
    )
    return whole.drop_nulls(list(measures)).sort(*(axis.order for axis in sweep.axes))


def short_names(axes: Sequence[Axis]) -> list[str]:
    """Keys without what stands before them, where that tells them apart."""
    short = [axis.key.rpartition(".")[2] for axis in axes]
    return short if len(set(short)) == len(short) else [axis.key for axis in axes]


def texts_of(axis: Axis) -> dict[float | str, str]:
    """How the values of a key are written, by what the table has."""
    return dict(zip(axis.cells, dict.fromkeys(axis.labels), strict=True))


def figures(sweep: Sweep, means: pl.DataFrame) -> list[Figure]:
    """All that can be drawn of the means."""
    if not means.height:
        return []
    several = means.select("job", "ddir").n_unique() > 1
    note = "Jobs and directions together: rates added, of latencies the worst. " if several else ""
    charts = _Charts(sweep, means, note)
    return [*charts.by_key(), *charts.trades(), *charts.heat(), *charts.parallel()]


@dataclass(frozen=True)
class _Charts:
    sweep: Sweep
    means: pl.DataFrame
    note: str
    """What the numbers are of, where that is not clear."""

    @property
    def axes(self) -> list[Axis]:
        """Those that take several values; of a group the first stands for all, but of a sample
        each stands for itself."""
        found: dict[str, Axis] = {}
        for axis in self.sweep.axes:
            if len(axis.cells) > 1:
                name = axis.key if axis.group in ("", SAMPLED) else axis.group
                found.setdefault(name, axis)
        return list(found.values())

    @property
    def measures(self) -> list[Measure]:
        return [
            measure
            for measure in MEASURES
            if measure[0] in DRAWN and told_of(self.means, measure[0])
        ]

    def by_key(self) -> list[Figure]:
        """A chart for each key and measure; another key as lines, the rest held."""
        return [self._by_key(axis, measure) for axis in self.axes for measure in self.measures]

    def _by_key(self, axis: Axis, measure: Measure) -> Figure:
        points = self._together(measure)
        grid = [one for one in self.axes if one.group != SAMPLED and one.key != axis.key]
        lines = next((axis for axis in grid if len(axis.cells) <= CURVES_MAX), None)
        # Nothing is held where keys are drawn together: each of their points has its own values.
        sampled = axis.group == SAMPLED or any(axis.group == SAMPLED for axis in self.axes)
        held = {} if sampled else {axis.key: axis for axis in grid if axis is not lines}
        choices = {}
        if points.height <= ABOUT_MAX:
            choices = {key: tuple(texts_of(axis).values()) for key, axis in held.items()}
        kept = points
        if not choices:
            kept = points.filter(*(pl.col(key) == axis.cells[0] for key, axis in held.items()))
        curves = []
        for place, cell in enumerate(lines.cells if lines else [None]):
            own = kept if lines is None else kept.filter(pl.col(lines.key) == cell)
            name = measure[1]
            if lines is not None:
                name = f"{lines.key} {texts_of(lines)[lines.cells[place]]}"
            curve = self._curve(name, axis, own, measure, place, dots=sampled)
            curves.append(replace(curve, choice=_choice(own, [held[key] for key in choices])))
        fixed = {} if choices else held
        note = ", ".join(f"{key} held at {axis.labels[0]}" for key, axis in fixed.items())
        return Figure(
            f"{measure[1]} by {axis.key}",
            axis.key,
            _label(measure),
            [curve for curve in curves if len(curve.x)],
            log_x=axis.numeric and _far([float(value) for value in axis.values]),
            # Over all choices: one scale holds all of them.
            log_y=_far([y for curve in curves for y in curve.y]),
            x_names=() if axis.numeric else tuple(texts_of(axis).values()),
            group=axis.key,
            note=self.note + (f"{note}." if note else ""),
            choices=choices,
        )

    def trades(self) -> list[Figure]:
        """What is had for what, and what no combination surpasses in both."""
        if self.means.height < 3:
            return []
        return [
            self._trade(*(next(m for m in MEASURES if m[0] == name) for name in pair))
            for pair in TRADED
            if all(told_of(self.means, name) for name in pair)
        ]

    def _trade(self, high: Measure, low: Measure) -> Figure:
        points = self._together(high, low)
        x, y = _values(points, low), _values(points, high)
        order = sorted(range(len(x)), key=lambda n: (x[n], -y[n]))
        front: list[int] = []
        for n in order:
            if not front or y[n] > y[front[-1]]:
                front.append(n)
        about, keys = self._about(points), points["key"].to_list()

        def curve(name: str, of: Sequence[int], style: Any, colour: int) -> Curve:
            told = [about[n] for n in of] if about else []
            own = ([x[n] for n in of], [y[n] for n in of])
            return Curve(name, *own, style, colour, (), told, [keys[n] for n in of])

        return Figure(
            f"{high[1]} against {low[1]}",
            _label(low),
            _label(high),
            [
                curve("combination", range(len(x)), "dots", 0),
                curve("Pareto front", front, "points", 1),
            ],
            group="What is won for what",
            log_x=_far(x),
            log_y=_far(y),
            note=self.note,
        )

    def heat(self) -> list[Figure]:
        """Two keys together, the rest held at their first value."""
        grid = [
            axis for axis in self.axes if axis.group != SAMPLED and len(axis.cells) <= FIELDS_MAX
        ]
        if len(grid) < 2:
            return []
        # The sides are the keys with the most values.
        across, up, *_ = sorted(grid, key=lambda axis: -len(axis.cells))
        held = [axis for axis in self.axes if axis not in (across, up) and axis.group != SAMPLED]
        if len(held) + 2 < len(self.axes):
            return []
        return [self._heat(across, up, held, measure) for measure in self.measures]

    def _heat(self, across: Axis, up: Axis, held: Sequence[Axis], measure: Measure) -> Figure:
        points = self._together(measure)
        kept = points.filter(*(pl.col(axis.key) == axis.cells[0] for axis in held))
        places = [{cell: n for n, cell in enumerate(axis.cells)} for axis in (across, up)]
        x = [float(places[0][cell]) for cell in kept[across.key]]
        y = [float(places[1][cell]) for cell in kept[up.key]]
        fields = Curve(
            _label(measure), x, y, "heat", 0, _values(kept, measure), (), kept["key"].to_list()
        )
        note = ", ".join(f"{axis.key} held at {axis.labels[0]}" for axis in held)
        return Figure(
            _label(measure),
            across.key,
            up.key,
            [fields],
            x_names=tuple(texts_of(across).values()),
            y_names=tuple(texts_of(up).values()),
            group=f"{across.key} and {up.key}",
            note=self.note + (f"{note}." if note else ""),
        )

    def parallel(self) -> list[Figure]:
        """A line for each combination, through its values and what came of them."""
        if len(self.axes) + len(self.measures) < 3 or self.means.height < 3:
            return []
        points = self._together(self.measures[0])
        measures = [measure for measure in self.measures if not points[measure[0]].null_count()]
        if points.height > LINES_MAX:
            points = points.gather_every(math.ceil(points.height / LINES_MAX))
        if points.height < 2:
            return []
        names = short_names(self.axes)
        sides = [
            (name, *_axis_shares(axis, points)) for name, axis in zip(names, self.axes, strict=True)
        ]
        sides += [(_label(measure), *_shares(_values(points, measure))) for measure in measures]
        shares = [own for _, own, _, _ in sides]
        strength = shares[len(self.axes)]
        count = len(sides)
        about = self._about(points)
        curve = Curve(
            "combination",
            [float(place) for _ in range(points.height) for place in range(count)],
            [shares[place][n] for n in range(points.height) for place in range(count)],
            "parallel",
            0,
            [strength[n] for n in range(points.height) for _ in range(count)],
            [about[n] for n in range(points.height) for _ in range(count)] if about else (),
            [key for key in points["key"] for _ in range(count)],
        )
        return [
            Figure(
                "All combinations",
                "",
                "from the lowest to the highest",
                [curve],
                y_max=1.03,
                y_min=-0.03,
                # One lower than the next, so that they have room on a small screen.
                x_names=[
                    "\n\n" * (place % 2) + f"{name}\n{low} to {high}"
                    for place, (name, _, low, high) in enumerate(sides)
                ],
                wide=True,
                note=f"{self.note}The higher the {self.measures[0][1]}, the stronger the line.",
            )
        ]

    def _together(self, *measures: Measure) -> pl.DataFrame:
        return together_of(self.sweep, self.means, *(name for name, *_ in measures))

    def _curve(
        self, name: str, axis: Axis, points: pl.DataFrame, measure: Measure, colour: int, *,
        dots: bool,
    ) -> Curve:  # fmt: skip
        style: Any = "dots" if dots else "points"
        x, y = _x(axis, points), _values(points, measure)
        return Curve(name, x, y, style, colour, (), self._about(points), points["key"].to_list())

    def _about(self, points: pl.DataFrame) -> list[str]:
        """The values of each combination, in words."""
        if points.height > ABOUT_MAX:
            return []
        texts = {axis.key: texts_of(axis) for axis in self.sweep.axes}
        return [
            ", ".join(f"{key} {own[row[key]]}" for key, own in texts.items())
            for row in points.iter_rows(named=True)
        ]


def _choice(points: pl.DataFrame, held: Sequence[Axis]) -> list[str]:
    """Which values of what is held each combination has."""
    if not held:
        return []
    texts = [texts_of(axis) for axis in held]
    return [
        "\t".join(own[cell] for own, cell in zip(texts, row, strict=True))
        for row in points.select(axis.key for axis in held).iter_rows()
    ]


def _label(measure: Measure) -> str:
    _, head, unit, _ = measure
    return f"{head}, {unit}" if unit and unit != head else head


def _x(axis: Axis, points: pl.DataFrame) -> list[float]:
    values = points[axis.key].to_list()
    if axis.numeric:
        return values
    places: Mapping[Any, int] = {cell: place for place, cell in enumerate(axis.cells)}
    return [float(places[value]) for value in values]


def _values(points: pl.DataFrame, measure: Measure) -> list[float]:
    name, _, _, factor = measure
    return [factor * one for one in points[name]]


def _axis_shares(axis: Axis, points: pl.DataFrame) -> tuple[list[float], str, str]:
    own, low, high = _shares(_x(axis, points))
    if axis.numeric:
        return own, low, high
    names = list(texts_of(axis).values())
    return own, names[0], names[-1]


def _shares(values: Sequence[float]) -> tuple[list[float], str, str]:
    """Where values lie between the lowest and the highest, and these two in words."""
    low, high = min(values), max(values)
    texts = units.number(low), units.number(high)
    if high - low <= 0:
        return [0.5] * len(values), *texts
    if _far(values):
        span = math.log(high / low)
        return [math.log(value / low) / span for value in values], *texts
    return [(value - low) / (high - low) for value in values], *texts


def _far(values: Sequence[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) >= LOG_SPAN * min(values)
