"""Twins of measured drives beside plain interpolation, by region: the table of what they miss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssdlab.answer import Answer, Number, Section, Table, Verdict, table
from ssdlab.answers.fit import NAMES
from ssdlab.experiments.twin import TwinOutcome
from ssdlab.fits.predict import ComparedNumber


def answer(outcomes: Sequence[TwinOutcome]) -> Answer:
    """How far twins are off where they were not fitted."""
    twins = [error for outcome in outcomes for error in outcome.errors]
    plain = [error for outcome in outcomes for error in outcome.plain_errors]
    median, high = _percentiles(twins)
    other = _percentiles(plain)
    share = _inside([number for outcome in outcomes for number in outcome.compared])
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
    return table(
        "By region",
        outcomes,
        {
            "fitted, predicted": lambda outcome: outcome.case.name,
            "drive": lambda outcome: outcome.case.asked or outcome.case.drive,
            "fitted": lambda outcome: float(outcome.fitted),
            "asked": lambda outcome: float(len(outcome.compared)),
            "twin, median [%]": lambda outcome: _percentiles(outcome.errors)[0],
            "twin, p90 [%]": lambda outcome: _percentiles(outcome.errors)[1],
            "interpolation, median [%]": lambda outcome: _percentiles(outcome.plain_errors)[0],
            "interpolation, p90 [%]": lambda outcome: _percentiles(outcome.plain_errors)[1],
            "inside [%]": lambda outcome: _inside(outcome.compared),
        },
    )


def _numbers(outcomes: Sequence[TwinOutcome]) -> Table:
    every = [
        (outcome.case, number, plain)
        for outcome in outcomes
        for number, plain in zip(outcome.compared, outcome.plain, strict=True)
    ]
    return table(
        "Every number",
        every,
        {
            "region": lambda row: row[0].name,
            "drive": lambda row: row[0].asked or row[0].drive,
            "workload": lambda row: str(row[1].observation.load),
            "number": lambda row: NAMES[row[1].column][0],
            "measured": lambda row: row[1].measured,
            "twin": lambda row: row[1].predicted,
            "low": lambda row: row[1].low,
            "high": lambda row: row[1].high,
            "interpolation": lambda row: row[2],
        },
    )


def _inside(compared: Sequence[ComparedNumber]) -> float:
    """Percent of numbers that lie in their intervals."""
    return 100 * sum(number.inside for number in compared) / max(1, len(compared))


def _percentiles(errors: Sequence[float]) -> tuple[float, float]:
    if not errors:
        return 0.0, 0.0
    median, high = np.percentile(errors, [50, 90])
    return 100 * float(median), 100 * float(high)
