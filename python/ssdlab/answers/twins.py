"""Twins of measured drives beside plain interpolation, by region: the table of what they miss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssdlab.answer import Answer, Cell, Cells, Number, Section, Table, Verdict, columns
from ssdlab.answers.fit import NAMES
from ssdlab.experiments.twin import TwinOutcome


def answer(outcomes: Sequence[TwinOutcome]) -> Answer:
    """How far twins are off where they were not fitted."""
    twins = [error for outcome in outcomes for error in outcome.errors]
    plain = [error for outcome in outcomes for error in outcome.plain_errors]
    inside = [number.inside for outcome in outcomes for number in outcome.compared]
    median, high = _percentiles(twins)
    other = _percentiles(plain)
    share = 100 * sum(inside) / max(1, len(inside))
    said = [
        f"twins are {median:.0f} % off at the median and {high:.0f} % at the 90th percentile over "
        f"{len(twins)} numbers of regions that they were not fitted to; interpolation and "
        f"extrapolation in logarithms {other[0]:.0f} % and {other[1]:.0f} %",
        f"{share:.0f} % of the numbers lie in the 90 % intervals",
    ]
    lead = Section(
        said,
        numbers=[
            Number("error of twins, median", median, "%", "lower"),
            Number("error of twins, 90th percentile", high, "%", "lower"),
            Number("error of interpolation, median", other[0], "%", "lower"),
            Number("inside the 90 % interval", share, "%"),
        ],
        tables=[_by_case(outcomes), _numbers(outcomes)],
        verdict=Verdict("reproduced", {"median": median, "p90": high, "inside": share}),
    )
    notes = [
        "errors are natural logarithms of predicted / measured, as percent; each twin saw only the "
        "rows of its region; RAID 0 of the P5800X is an array of the twin of one"
    ]
    return Answer("twins of drives that others measured", "fit", [lead], notes=notes)


def _by_case(outcomes: Sequence[TwinOutcome]) -> Table:
    rows: list[Cells] = []
    for outcome in outcomes:
        inside = (
            100 * sum(number.inside for number in outcome.compared) / max(1, len(outcome.compared))
        )
        numbers = [*_percentiles(outcome.errors), *_percentiles(outcome.plain_errors), inside]
        drive = outcome.case.asked or outcome.case.drive
        row: Cells = [
            outcome.case.name,
            drive,
            Cell(float(outcome.fitted)),
            Cell(float(len(outcome.compared))),
        ]
        rows.append([*row, *map(Cell, numbers)])
    heads = (
        "fitted, predicted | drive | fitted | asked | twin, median [%] | twin, p90 [%] | "
        "interpolation, median [%] | interpolation, p90 [%] | inside [%]"
    )
    return Table("By region", columns(heads), rows)


def _numbers(outcomes: Sequence[TwinOutcome]) -> Table:
    rows: list[Cells] = []
    for outcome in outcomes:
        for number, plain in zip(outcome.compared, outcome.plain, strict=True):
            row: Cells = [outcome.case.name, outcome.case.asked or outcome.case.drive]
            row += [str(number.observation.load), NAMES[number.column][0]]
            values = (number.measured, number.predicted, number.low, number.high, plain)
            rows.append([*row, *map(Cell, values)])
    heads = "region | drive | workload | number | measured | twin | low | high | interpolation"
    return Table("Every number", columns(heads), rows)


def _percentiles(errors: Sequence[float]) -> tuple[float, float]:
    if not errors:
        return 0.0, 0.0
    median, high = np.percentile(errors, [50, 90])
    return 100 * float(median), 100 * float(high)
