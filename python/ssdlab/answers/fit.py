"""Fits and predictions as answers: what a twin is, how good it is, what it expects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ssdlab import units
from ssdlab.answer import (
    INTERVAL,
    Answer,
    Cell,
    Cells,
    Column,
    Curve,
    Figure,
    Number,
    Section,
    Table,
    Verdict,
    columns,
)
from ssdlab.fits.fit import Fit, missing
from ssdlab.fits.observations import MEASURED, FitWorkload
from ssdlab.fits.predict import ComparedNumber, Prediction
from ssdlab.fits.search import MEANS
from ssdlab.fits.twin import JudgedParameter, Twin, held_out, judged

NAMES = {
    "iops": ("IOPS", "IOPS"),
    "lat_mean_us": ("lat mean", "us"),
    "clat_mean_us": ("clat mean", "us"),
    "clat_p50_us": ("clat p50", "us"),
    "clat_p99_us": ("clat p99", "us"),
    "waf": ("WA", ""),
}
"""Columns as people read them, and their units."""
CURVES_MAX = 8
"""Curves of one chart."""
LEFT_MAX = 3
"""So many jobs that were left out are named."""


def answer(fit: Fit, twin: Twin, omitted: Sequence[str] = ()) -> Answer:
    """What came of a fit: the twin's parameters, how near it comes, and what to measure next;
    ``omitted`` are jobs that were left out."""
    end, loads = fit.found, [observation.load for observation in fit.observed]
    # Closed forms do not say percentiles.
    said_too = np.flatnonzero(np.isfinite(end.logs)).tolist()
    names = [end.target.columns[i] for i in said_too]
    errors, left = end.errors[said_too], held_out(end, fit.observed)[said_too]
    parameters = judged(end)
    known = [parameter for parameter in parameters if parameter.determined]
    median, left_median = _median(errors), _median(left)
    said = [
        f"{twin.name}: {_off(median)} off what was measured at the median, {_off(left_median)} "
        f"where a curve was left out of the fit; {len(known)} of {len(parameters)} parameters are "
        f"determined, started from {fit.start}"
    ]
    if fit.quick:
        said.append(
            "By closed forms and few simulations: without --quick it is fitted to simulations."
        )
    said += _left_out(omitted)
    wanted = missing(loads)
    if wanted:
        said.append(f"Measure next: {units.listed(wanted[:3])}.")
    compared = [
        (end.target.rows[i], end.target.columns[i], _exp(end.target.logs[i]), _exp(end.logs[i]))
        for i in said_too
    ]
    lead = Section(
        said,
        numbers=[
            Number("error of the fit, median", 100 * median, "%", "lower"),
            Number("held-out error, median", 100 * left_median, "%", "lower"),
            Number("held-out error, 90th percentile", 100 * _high(left), "%", "lower"),
            Number("parameters determined", len(known), ""),
        ],
        tables=[_parameters(parameters, loads), _errors(names, errors, left)],
        figures=_figures(loads, compared),
        verdict=Verdict("fitted", {"error": median, "held_out": left_median, "start": fit.start}),
        rows=[
            {
                "key": parameter.parameter.key, "value": parameter.value,
                "low": parameter.low, "high": parameter.high,
                "determined": parameter.determined, "trades_off_with": list(parameter.with_),
                "shown_by": [str(loads[row]) for row in parameter.shown_by],
            }
            for parameter in parameters
        ],
    )  # fmt: skip
    notes = [
        f"fitted to {len(fit.observed)} workloads; intervals are of 90 %",
        "held-out: each curve over depth was predicted by a fit without it, to first order",
    ]
    if (submission := end.target.submission_us) and any(n.startswith("clat") for n in names):
        notes.append(f"clat is lat less {units.microseconds(submission)} of submission")
    return Answer(
        f"Fit of {twin.name}", "fit", [lead], notes=notes, texts={f"{twin.name}.toml": twin.text}
    )


def _left_out(jobs: Sequence[str]) -> list[str]:
    """The sentence of jobs that were left out, if there are any."""
    if not jobs:
        return []
    return [f"Left out, because no row of a table says what they do: {units.some(jobs, LEFT_MAX)}."]


def check(twin: Twin, compared: Sequence[ComparedNumber], omitted: Sequence[str] = ()) -> Answer:
    """Measured beside predicted."""
    errors = np.array([number.error for number in compared])
    inside = sum(number.inside for number in compared)
    share = inside / len(compared) if compared else 0.0
    median = _median(errors)
    said = [
        f"{twin.name}: {_off(median)} off at the median, {_off(_high(errors))} at the 90th "
        f"percentile, over {len(compared)} numbers; {100 * share:.0f} % lie in the 90 % intervals",
        *_left_out(omitted),
    ]
    loads = list(dict.fromkeys(number.observation.load for number in compared))
    places = {load: place for place, load in enumerate(loads)}
    points = [
        (places[number.observation.load], number.column, number.measured, number.predicted)
        for number in compared
    ]
    rows: list[Cells] = [
        [
            str(number.observation.load), *NAMES[number.column], Cell(number.measured),
            Cell(number.predicted), Cell(number.low), Cell(number.high),
            Cell(100 * (number.predicted / number.measured - 1)),
        ]
        for number in compared
    ]  # fmt: skip
    heads = "workload | number | unit | measured | predicted | low | high | off [%]"
    lead = Section(
        said,
        numbers=[
            Number("error, median", 100 * median, "%", "lower"),
            Number("error, 90th percentile", 100 * _high(errors), "%", "lower"),
            Number("inside the 90 % interval", 100 * share, "%"),
        ],
        tables=[Table("Measured beside predicted", columns(heads), rows)],
        figures=_figures(loads, points),
        verdict=Verdict("checked", {"error": median, "inside": share}),
    )
    return Answer(f"check of {twin.name}", "fit", [lead])


def predicted(twin: Twin, names: Sequence[str], predictions: Sequence[Prediction]) -> Answer:
    """What a twin expects of workloads; ``names`` are those of jobs, empty for rows of a table."""
    present = [
        name for name in MEASURED if any(name in prediction.values for prediction in predictions)
    ]
    shown = [name for name in present if name not in ("lat_mean_us", "clat_p50_us")]
    rows: list[Cells] = []
    for name, prediction in zip(names, predictions, strict=True):
        row: Cells = [f"{name}: {prediction.load}" if name else str(prediction.load)]
        for column in shown:
            row += [Cell(prediction.values.get(column)), _interval(prediction, column)]
        rows.append(row)
    heads = [Column("workload")]
    for column in shown:
        title, unit = NAMES[column]
        heads += [Column(title, unit), Column("90 %", "", unit, f"{title} interval", INTERVAL)]
    what = f"{len(predictions)} workloads" if len(predictions) != 1 else str(predictions[0].load)
    first = predictions[0].values.get("iops")
    said = [f"{twin.name}: {what}"]
    if len(predictions) == 1:
        low, high = (
            units.iops(side.get("iops")) for side in (predictions[0].low, predictions[0].high)
        )
        said = [f"{twin.name}: {units.iops(first)} expected, {low} to {high} (90 %): {what}"]
    lead = Section(
        said,
        tables=[Table("Predicted", heads, rows)],
        verdict=Verdict("predicted", {"iops": first}),
        rows=[{"workload": str(prediction.load), **prediction.row()} for prediction in predictions],
    )
    basis = twin.basis
    rests = (
        f"fitted to {basis.observations} workloads of {', '.join(basis.sources)}"
        if basis.observations
        else "not fitted: as sure as drives of a kind are alike"
    )
    return Answer(f"prediction for {twin.name}", "fit", [lead], notes=[rests])


def _interval(prediction: Prediction, column: str) -> Cell | None:
    if column not in prediction.low:
        return None
    unit = NAMES[column][1]
    low, high = prediction.low[column], prediction.high[column]
    text = f"{units.number(low, unit)} .. {units.number(high, unit)}"
    return Cell(None, text=text, low=low, high=high)


def _parameters(parameters: Sequence[JudgedParameter], loads: Sequence[FitWorkload]) -> Table:
    rows: list[Cells] = []
    for parameter in parameters:
        shown = parameter.parameter.shown
        by = (
            str(loads[parameter.shown_by[0]]) if parameter.shown_by and parameter.determined else ""
        )
        state = "determined" if parameter.determined else "not determined"
        if parameter.with_:
            state += f", trades off with {units.listed(parameter.with_)}"
        low, high = parameter.low, parameter.high
        value = Cell(parameter.value, text=shown(parameter.value), unit=parameter.parameter.unit)
        interval = Cell(None, text=f"{shown(low)} .. {shown(high)}", low=low, high=high)
        rows.append([parameter.parameter.name, value, interval, state, by])
    heads = [Column("parameter"), Column("value", parts=("value", "unit"))]
    heads += [Column("90 %", parts=INTERVAL), *columns("by the data | mostly by")]
    return Table("Parameters", heads, rows)


def _errors(names: Sequence[str], errors: object, left: object) -> Table:
    kinds, fitted, out = np.array(names), np.asarray(errors), np.asarray(left)
    rows: list[Cells] = []
    for name in MEASURED:
        own = kinds == name
        if own.any():
            values = [f(one[own]) for one in (fitted, out) for f in (_median, _high)]
            row: Cells = [NAMES[name][0], Cell(float(own.sum()))]
            rows.append([*row, *(Cell(100 * value) for value in values)])
    shares = " | ".join(
        f"{what}, {of} [%]" for what in ("fit", "held out") for of in ("median", "p90")
    )
    heads = f"number | values | {shares}"
    return Table("Errors", columns(heads), rows)


def _figures(
    loads: Sequence[FitWorkload], points: Sequence[tuple[int, str, float, float]]
) -> list[Figure]:
    """Every measured curve with the twin's in it, and how far each number is off."""
    figures = []
    for name in MEASURED:
        own = [point for point in points if point[1] == name]
        if not own or (name in MEANS[1:] and any(point[1] == "iops" for point in points)):
            continue
        title, unit = NAMES[name]
        for axis, curves in _curves(loads, own, waf=name == "waf").items():
            log = axis != NAMESPACE
            figures += [
                Figure(
                    f"{title}: measured and twin, by {axis}"
                    + f" ({start // CURVES_MAX + 1})" * (len(curves) > CURVES_MAX),
                    axis, unit or title,
                    _drawn(curves[start : start + CURVES_MAX]), log, log, wide=True,
                )
                for start in range(0, len(curves), CURVES_MAX)
            ]  # fmt: skip
    off = [
        Curve(
            NAMES[name][0],
            [point[2] for point in points if point[1] == name],
            [100 * (point[3] / point[2] - 1) for point in points if point[1] == name],
            "dots", colour,
        )
        for colour, name in enumerate(MEASURED)
        if name in MEANS[:2] and any(point[1] == name for point in points)
    ]  # fmt: skip
    if off:
        lowest = min(min(curve.y) for curve in off)
        figures.append(
            Figure("Residuals", "measured", "twin off, %", off, True, y_min=min(lowest, 0.0))
        )
    return figures


NAMESPACE, IN_FLIGHT, SIZE = "namespace, GB", "I/Os in flight", "size of an I/O, KiB"
Points = list[tuple[float, float, float]]
"""Place on the axis, measured, twin."""


def _curves(
    loads: Sequence[FitWorkload], own: Sequence[tuple[int, str, float, float]], *, waf: bool
) -> dict[str, list[tuple[str, Points]]]:
    """The curves of a number by axis, with their names: over depth where there are several, what is
    left over size."""
    found: dict[str, dict[str, Points]] = {}
    depths: dict[FitWorkload, set[int]] = {}
    for row, *_ in own:
        depths.setdefault(replace(loads[row], iodepth=1, numjobs=1), set()).add(loads[row].depth)
    for row, _, measured, twin in own:
        load = loads[row]
        mix = "" if load.rwmixread is None else f" {load.rwmixread:g} % reads"
        jobs = "" if load.numjobs == 1 else f" x {load.numjobs} jobs"
        part = "" if load.namespace is None else f", of {units.size_text(load.namespace)}"
        if waf and any(loads[other].namespace for other, *_ in own):
            axis, x = NAMESPACE, float(load.namespace or 0) / 1e9
            key = f"{load.rw} {units.binary(load.bs)}{mix}, depth {load.depth}, {load.state}"
        elif len(depths[replace(load, iodepth=1, numjobs=1)]) > 1:
            axis, x = IN_FLIGHT, float(load.depth)
            key = f"{load.rw} {units.binary(load.bs)}{mix}{jobs}, {load.state}{part}"
        else:
            axis, x = SIZE, load.bs / 1024
            key = f"{load.rw}{mix}, depth {load.iodepth}{jobs}, {load.state}{part}"
        found.setdefault(axis, {}).setdefault(key, []).append((x, measured, twin))
    return {axis: list(curves.items()) for axis, curves in found.items()}


def _drawn(curves: Sequence[tuple[str, Points]]) -> list[Curve]:
    drawn = []
    for colour, (key, points) in enumerate(curves):
        places, seen, told = (list(one) for one in zip(*sorted(points), strict=True))
        drawn.append(Curve(f"{key}, measured", places, seen, "published", colour))
        drawn.append(Curve(f"{key}, twin", places, told, "points", colour))
    return drawn


def _median(errors: object) -> float:
    values = np.abs(np.asarray(errors, dtype=float))
    return float(np.median(values)) if values.size else 0.0


def _high(errors: object) -> float:
    values = np.abs(np.asarray(errors, dtype=float))
    return float(np.percentile(values, 90)) if values.size else 0.0


def _off(error: float) -> str:
    return f"{100 * error:.1f} %"


def _exp(log: float) -> float:
    return float(np.exp(log))
