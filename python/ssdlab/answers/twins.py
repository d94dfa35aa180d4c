"""Twins of measured drives beside plain interpolation, by region: the table of what they miss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssdlab.answer import Answer, Cell, Cells, Number, Section, Table, Verdict, columns
from ssdlab.answers.fit import NAMES
from ssdlab.experiments.twin import Outcome


def answer(outcomes: Sequence[Outcome]) -> Answer:
    """How far twins are off where they were not fitted."""
    twins = [error for one in outcomes for error in one.errors]
    plain = [error for one in outcomes for error in one.plain_errors]
    inside = [one.inside for found in outcomes for one in found.compared]
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


def _by_case(outcomes: Sequence[Outcome]) -> Table:
    rows: list[Cells] = []
    for one in outcomes:
        inside = 100 * sum(found.inside for found in one.compared) / max(1, len(one.compared))
        numbers = [*_percentiles(one.errors), *_percentiles(one.plain_errors), inside]
        drive = one.case.asked or one.case.drive
        row: Cells = [one.case.name, drive, Cell(float(one.fitted)), Cell(float(len(one.compared)))]
        rows.append([*row, *map(Cell, numbers)])
    heads = (
        "fitted, predicted | drive | fitted | asked | twin, median [%] | twin, p90 [%] | "
        "interpolation, median [%] | interpolation, p90 [%] | inside [%]"
    )
    return Table("By region", columns(heads), rows)


def _numbers(outcomes: Sequence[Outcome]) -> Table:
    rows: list[Cells] = []
    for one in outcomes:
        for found, plain in zip(one.compared, one.plain, strict=True):
            row: Cells = [one.case.name, one.case.asked or one.case.drive]
            row += [str(found.observation.load), NAMES[found.column][0]]
            values = (found.measured, found.predicted, found.low, found.high, plain)
            rows.append([*row, *map(Cell, values)])
    heads = "region | drive | workload | number | measured | twin | low | high | interpolation"
    return Table("Every number", columns(heads), rows)


def _percentiles(errors: Sequence[float]) -> tuple[float, float]:
    if not errors:
        return 0.0, 0.0
    median, high = np.percentile(errors, [50, 90])
    return 100 * float(median), 100 * float(high)
