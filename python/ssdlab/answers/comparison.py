"""A comparison of runs as an answer: verdicts, numbers with differences, charts overlaid."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ssdlab import units
from ssdlab.analysis.comparison import align
from ssdlab.analysis.differences import UNMEASURED, DifferenceRow
from ssdlab.answer import (
    INTERVAL,
    Answer,
    Cell,
    Cells,
    Column,
    Curve,
    Figure,
    Part,
    Section,
    Style,
    Table,
    Verdict,
    any_doubt,
    columns,
)
from ssdlab.answers import charts
from ssdlab.answers.charts import LINES, ShownResult, Trace
from ssdlab.engine.answers import weighed
from ssdlab.studies.compare import (
    DIVISOR,
    LETTERS,
    Comparison,
    difference_cells,
    verdict,
)
from ssdlab.tables import settings_table

STROKES: tuple[Style, ...] = (*LINES, "points")
"""Styles of which one hides another only where they coincide."""
VALUE: tuple[Part, ...] = ("value", *INTERVAL)
DOUBT = "in doubt"
"""The source of numbers and charts of which a check doubts a side."""
NAMED = ("target", "model", "serial", "firmware", "ssdlab", "fio", "kernel")
"""Of the settings those that are names and versions: 3.10 is no 3.1."""
FACTS_MAX = 200
"""Longer facts are cut."""
HALF = "Values are followed by half of their 95 % interval, where it is known."
NOISE = (
    "Noise is known from windows of at least 12 seconds and three rounds of what repeats in them; "
    "that of maxima and write amplification only from repeats (RUN,RUN)."
)


def answer(comparison: Comparison) -> Answer:
    """The verdict on each side against the first, every number, and the charts of all sides."""
    sides = list(zip(LETTERS, comparison.parties, strict=False))
    checks = [
        replace(check, title=f"{letter}: {check.title}")
        for letter, party in sides
        for check in party.checks
    ]
    names = [f"{letter}: {party.label} ({', '.join(party.names)})" for letter, party in sides]
    lead = Section(
        [*comparison.sentences(), *_unlike(comparison)],
        tables=[_numbers(comparison), *_differing(comparison)],
        figures=_overlaid(comparison) if comparison.protocol else [],
        key="numbers",
        title="Numbers",
        verdict=_verdict(comparison),
    )
    charts = [] if comparison.protocol else _sections(comparison)
    return Answer(
        title=" vs ".join(f"{party.label} ({letter})" for letter, party in sides),
        kind="comparison",
        sections=[weighed(lead, checks), *charts],
        checks=checks,
        marks=frozenset({DOUBT}),
        notes=[*names, *comparison.method()],
        data=comparison.as_json(),
    )


def _unlike(comparison: Comparison) -> Iterator[str]:
    """That runs of a protocol did not do the same for as long."""
    first, *others = comparison.parties
    for other in others:
        shorter, own = other.facts.get(DIVISOR), first.facts.get(DIVISOR)
        if shorter != own:
            yield (
                f"Durations of {other.label} were divided by {shorter}, those of {first.label} by "
                f"{own}: they did not do the same."
            )


def _verdict(comparison: Comparison) -> Verdict:
    known = [
        difference
        for row in comparison.rows
        for difference in row.differences
        if difference is not None
    ]
    tested = [difference for difference in known if difference.p is not None]
    seen = sum(difference.seen for difference in tested)
    code = "different" if seen else "no-difference" if tested else "not-tested"
    values = {"metrics": len(known), "tested": len(tested), "significant": seen}
    return Verdict(code, {name: float(value) for name, value in values.items()})


def _numbers(comparison: Comparison) -> Table:
    """Every number of all sides with its differences to the first."""
    first, *others = list(LETTERS[: len(comparison.parties)])
    grouped = any(row.quantity.section for row in comparison.rows)
    heads = columns(" | ".join([*(["job"] if grouped else []), "number", "unit"]))
    heads.append(Column(first, parts=VALUE))
    for letter in others:
        versus = f"{letter} vs {first}"
        heads += [Column(letter, parts=VALUE), Column(versus, "", "%")]
        verdict = Column("verdict", head=f"{versus} verdict" if len(others) > 1 else "")
        told = [Column("95 %", "", "%", f"{versus} interval", INTERVAL), verdict]
        heads += told if comparison.tested else []
    rows = [_row(comparison, row, grouped=grouped) for row in comparison.rows]
    unknown = any(d is not None and d.p is None for row in comparison.rows for d in row.differences)
    alone = not comparison.protocol and not comparison.repeated
    note = f"{HALF} {NOISE}" if unknown and alone else HALF
    return Table("Numbers", heads, rows, note)


def _row(comparison: Comparison, row: DifferenceRow, *, grouped: bool) -> Cells:
    quantity = row.quantity
    values = [
        _value(row, side, (DOUBT,) if party.doubted(quantity.name) else ())
        for side, party in enumerate(comparison.parties)
    ]
    cells: Cells = [quantity.section] if grouped else []
    cells += [quantity.name, quantity.unit, values[0]]
    for value, difference in zip(values[1:], row.differences, strict=True):
        share, span = difference_cells(difference)
        cells += [value, share]
        if comparison.tested:
            cells += [span, verdict(difference, quantity.better)]
    return cells


def _value(row: DifferenceRow, side: int, sources: tuple[str, ...]) -> Cell:
    """A value with half the length of its interval; a ``yes/no`` in words."""
    value, unit, half = row.values[side], row.quantity.unit, row.half(side)
    text = units.number(value, unit if unit == "yes/no" else "")
    if half > 0:
        text += f" ({UNMEASURED})" if row.unmeasured(side) else f" ± {units.number(half)}"
    return Cell(value, sources, text, *(row.intervals[side] or (None, None)))


def _differing(comparison: Comparison) -> list[Table]:
    facts = comparison.differing_facts()
    heads = ("setting", *LETTERS[: len(comparison.parties)])
    rows = [[name, *map(_cut, values)] for name, values in facts.items()]
    own = range(1, len(heads))
    return [settings_table("Differing settings", heads, rows, own, NAMED)] if rows else []


def _sections(comparison: Comparison) -> list[Section]:
    """The charts of each job and direction of ordinary runs; jobs that only fill come last."""
    names = list(dict.fromkeys(row.quantity.section for row in comparison.rows))
    results = [result for party in comparison.parties for result in party.results]
    tested = {main.name for result in results if (main := result.measurement.main) is not None}
    names.sort(key=lambda name: name.rpartition(", ")[0] not in tested)
    return [
        Section(figures=_charts(comparison, name), key=f"job-{place}", title=name)
        for place, name in enumerate(names)
    ]


def _charts(comparison: Comparison, section: str) -> list[Figure]:
    """IOPS over time and the latency distribution of one job and direction."""
    sources = (DOUBT,) if any(any_doubt(p.checks) for p in comparison.parties) else ()
    own = list(_members(comparison, section))
    return [
        replace(figure, title=f"{figure.title}: {section}", sources=sources)
        for figure in (*charts.over_time(own), charts.slower(own))
    ]


def _members(comparison: Comparison, section: str) -> Iterator[Trace]:
    """What a section compares: of each side and repeat its job and direction."""
    flat = [
        (place, party.label, result)
        for place, party in enumerate(comparison.parties)
        for result in party.results
    ]
    for group in align([result.document for *_, result in flat]):
        for member in group.members:
            place, label, result = flat[member.run]
            job = next(job for job in result.measurement.jobs if job.name == member.name)
            for direction in job.directions:
                if f"{group.name}, {direction.ddir}" == section:
                    yield Trace(ShownResult(place, label, result, ()), job, direction, alone=True)


def _overlaid(comparison: Comparison) -> list[Figure]:
    drawn = [[run.findings.judgement.figures for run in p.tests] for p in comparison.parties]
    doubts = [p.tests[0].marks() if p.tests else frozenset[str]() for p in comparison.parties]
    return overlay(drawn, [p.label for p in comparison.parties], doubts)


def overlay(
    sides: Sequence[Sequence[Sequence[Figure]]],
    labels: Sequence[str],
    doubts: Sequence[Collection[str]] = (),
) -> list[Figure]:
    """Charts of the same title with the curves of all sides: a colour for each side.

    Of repeats the first is drawn. Fields, and more lines than can be told apart, stand side by
    side. ``doubts`` are the keys of the steps of each side that a check puts in doubt: a chart of
    such a step gets the source :data:`DOUBT`.
    """
    first = [runs[0] if runs else () for runs in sides]
    known = {(figure.group, figure.title): figure for figures in first for figure in figures}
    found: list[Figure] = []
    marked = doubts or [()] * len(sides)
    for (group, title), model in known.items():
        own = [
            (place, figure)
            for place, figures in enumerate(first)
            for figure in figures
            if (figure.group, figure.title) == (group, title)
        ]
        if any(_apart(figure) for _, figure in own):
            found += [
                replace(
                    figure,
                    title=labels[place],
                    group=title if not group else f"{group}: {title}",
                    sources=_doubt([(place, figure)], marked),
                )
                for place, figure in own
            ]
            continue
        curves = [
            _restyled(curve, number, labels[place], place, alone=len(figure.curves) == 1)
            for place, figure in own
            for number, curve in enumerate(figure.curves)
        ]
        tops = [figure.y_max for _, figure in own]
        top = max((t for t in tops if t is not None), default=None) if None not in tops else None
        found.append(replace(model, curves=_once(curves), y_max=top, sources=_doubt(own, marked)))
    return found


def _apart(figure: Figure) -> bool:
    """Whether the sides have a chart each: fields would hide each other, and of many lines some
    would look the same."""
    lines = [curve for curve in figure.curves if curve.style in STROKES]
    return len(lines) > len(LINES) or any(curve.style == "heat" for curve in figure.curves)


def _doubt(own: Sequence[tuple[int, Figure]], marked: Sequence[Collection[str]]) -> tuple[str, ...]:
    doubted = any(source in marked[place] for place, figure in own for source in figure.sources)
    return (DOUBT,) if doubted else ()


def _restyled(curve: Curve, number: int, label: str, place: int, *, alone: bool) -> Curve:
    shown = curve.style
    if shown in STROKES and not alone:
        shown = LINES[min(number, len(LINES) - 1)]
    if curve.style == "published":
        return curve
    name = label if alone else f"{label}: {curve.name}"
    return replace(curve, name=name, style=shown, colour=place)


def _once(curves: Sequence[Curve]) -> list[Curve]:
    """Published points stand in the charts of all sides; once is enough."""
    found: list[Curve] = []
    for curve in curves:
        if curve.style != "published" or curve not in found:
            found.append(curve)
    return found


def _cut(text: str) -> str:
    return text if len(text) <= FACTS_MAX else text[: FACTS_MAX - 3] + "..."
