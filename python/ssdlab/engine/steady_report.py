"""How a steady state was reached, as the SNIA PTS wants it reported: two charts for each tracked
value and a table with the line fitted through the measurement window."""

from __future__ import annotations

from collections.abc import Mapping

from ssdlab.analysis.steady import EXCURSION_MAX, SLOPE_EXCURSION_MAX, PtsWindow
from ssdlab.answer import Cell, Column, Curve, Figure, Part, Table
from ssdlab.engine.records import RoundsRecord
from ssdlab.units import counted

BAND = 0.10
"""The window's chart shows the mean and lines this share above and below it (PTS)."""
ROOM = 0.15
"""Its vertical axis reaches at least this share above and below the mean. Ours."""


def verdict(record: RoundsRecord) -> str:
    """In words: from which round on the drive was steady, or that it was not."""
    if record.steady:
        return f"steady from round {record.first_of_window()}"
    if record.count < record.window:
        return f"{counted(record.count, 'round')} of at least {record.window}"
    return f"not achieved in {counted(record.count, 'round')}"


def sentence(record: RoundsRecord, *, quick: bool = False) -> str:
    """What a judgement has to say before its numbers; rounds of a quick run may be alike because
    they are short."""
    if record.steady:
        first, last = record.first_of_window(), record.count
        if quick:
            return (
                f"Rounds {first} to {last} are alike by the rule of the PTS, but in a quick run "
                "that shows no steady state: the numbers are their means."
            )
        return f"Steady state was reached: the numbers are means of rounds {first} to {last}."
    if record.count < record.window:
        return (
            f"Only {counted(record.count, 'round')} of at least {record.window} measured: "
            "nothing can be said of a steady state."
        )
    return (
        f"Steady state was not achieved in {counted(record.count, 'round')}: "
        f"the numbers are means of the last {record.window} and say what the drive did, "
        "not what it settles at."
    )


def figures(record: RoundsRecord) -> list[Figure]:
    """Convergence over all rounds and, once there are enough of them, the measurement window."""
    windows = record.windows()
    shown = []
    for name, values in record.values.items():
        if not values:
            continue
        unit = record.units.get(name, "")
        shown.append(_convergence(record, name, values, unit))
        if name in windows:
            shown.append(_window(record, name, windows[name], unit))
    return shown


def table(record: RoundsRecord) -> Table:
    """The measurement window of each tracked value: limits, what was measured, the fitted line."""
    windows = record.windows()
    parts: tuple[Part, ...] = ("value", "unit", "remark")
    columns = [Column(name, record.units.get(name, ""), parts=parts) for name in record.values]
    numbers = list(range(record.first_of_window(), record.count + 1))
    rows: list[tuple[Cell | str | None, ...]] = [
        (f"round {n}", *(_at(record, name, n) for name in record.values)) for n in numbers
    ]
    if windows:
        rows += _fit_rows(record, windows)
    verdicts = [_one_verdict(windows.get(name)) for name in record.values]
    rows.append(("verdict", *map(_said, verdicts)))
    title = f"Steady state: {record.title}"
    return Table(
        title,
        (Column("quantity"), *columns),
        rows,
        note=f"The test: {verdict(record)}. Steady means a spread of at most "
        f"{100 * EXCURSION_MAX:.0f} % of the mean and a fitted line that rises or falls by at most "
        f"{100 * SLOPE_EXCURSION_MAX:.0f} % of it, over {record.window} rounds; "
        f"R is the number of a round, and a test has at most {record.most}.",
    )


def formula(record: RoundsRecord, window: PtsWindow) -> str:
    """The line through the window as the PTS writes it, R being the number of the round."""
    intercept = window.mean - window.slope * _middle(record)
    sign = "-" if intercept < 0 else "+"
    return f"{_short(window.slope)} x R {sign} {_short(abs(intercept))}"


def _fit_rows(
    record: RoundsRecord, windows: Mapping[str, PtsWindow]
) -> list[tuple[Cell | str | None, ...]]:
    pts_windows = [windows[name] for name in record.values]

    def cells(values: list[float]) -> tuple[Cell, ...]:
        window = record.window_rounds()
        named = zip(record.values, values, strict=True)
        return tuple(Cell(value, record.keys_of(name, window)) for name, value in named)

    return [
        ("mean", *cells([w.mean for w in pts_windows])),
        ("allowed max - min", *cells([EXCURSION_MAX * w.mean for w in pts_windows])),
        ("measured max - min", *cells([w.excursion for w in pts_windows])),
        ("max - min, share of the mean", *(_percent(w.excursion_share) for w in pts_windows)),
        ("slope per round", *cells([w.slope for w in pts_windows])),
        (
            "allowed slope over the window",
            *cells([SLOPE_EXCURSION_MAX * w.mean for w in pts_windows]),
        ),
        ("measured slope over the window", *cells([w.slope_excursion for w in pts_windows])),
        ("slope, share of the mean", *(_percent(w.slope_share) for w in pts_windows)),
        ("fitted line", *(_said(formula(record, w)) for w in pts_windows)),
    ]


def _said(text: str | None) -> Cell | None:
    return None if text is None else Cell(None, text=text, remark=text)


def _convergence(record: RoundsRecord, name: str, values: list[float], unit: str) -> Figure:
    rounds = [float(n) for n in range(1, len(values) + 1)]
    curves = [Curve(name, rounds, values, style="points")]
    if len(rounds) >= record.window:
        first = record.first_of_window()
        curves.append(
            Curve("measurement window", rounds[first - 1 :], values[first - 1 :], "published", 1)
        )
    return Figure(
        f"Steady state convergence: {name}",
        "round",
        unit,
        curves,
        group=f"Steady state: {name}",
        sources=record.keys_of(name, range(1, record.count + 1)),
    )


def _window(record: RoundsRecord, name: str, window: PtsWindow, unit: str) -> Figure:
    rounds = [float(n) for n in record.window_rounds()]
    ends = [rounds[0], rounds[-1]]
    line = [window.mean + window.slope * (x - _middle(record)) for x in ends]
    curves = [Curve(name, rounds, window.rounds, style="points")]
    curves.append(Curve("mean", ends, [window.mean] * 2, "dashed", 5))
    for label, factor in (("+10 %", 1 + BAND), ("-10 %", 1 - BAND)):
        curves.append(Curve(label, ends, [factor * window.mean] * 2, "dotted", 5))
    curves.append(Curve("fitted line", ends, line, "line", 1))
    low = min(*window.rounds, *line, (1 - ROOM) * window.mean)
    high = max(*window.rounds, *line, (1 + ROOM) * window.mean)
    room = 0.05 * (high - low)
    return Figure(
        f"Measurement window: {name}",
        "round",
        unit,
        curves,
        y_min=max(0.0, low - room),
        y_max=(high + room) or None,
        group=f"Steady state: {name}",
        sources=record.keys_of(name, record.window_rounds()),
        note=f"Fitted line: {formula(record, window)}",
    )


def _middle(record: RoundsRecord) -> float:
    rounds = record.window_rounds()
    return (rounds[0] + rounds[-1]) / 2


def _at(record: RoundsRecord, name: str, number: int) -> Cell | None:
    values = record.values[name]
    sources = record.keys_of(name, range(number, number + 1))
    return Cell(values[number - 1], sources) if number <= len(values) else None


def _one_verdict(window: PtsWindow | None) -> str | None:
    if window is None:
        return None
    if window.steady:
        return "steady"
    wrong = []
    if window.excursion_share > EXCURSION_MAX:
        wrong.append("spread too large")
    if window.slope_share > SLOPE_EXCURSION_MAX:
        wrong.append("rising" if window.slope > 0 else "falling")
    return "not steady: " + ", ".join(wrong)


def _percent(share: float) -> Cell | None:
    if share == float("inf"):
        return _said("no mean")
    return Cell(100 * share, text=f"{100 * share:.1f} %", unit="%")


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
