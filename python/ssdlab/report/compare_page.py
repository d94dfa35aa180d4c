"""The page of a comparison: verdicts, numbers with differences, charts one over another."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bokeh.plotting import figure

from ssdlab.analysis import comparison, latency, series
from ssdlab.analysis.differences import Difference, Row
from ssdlab.compare import (
    LETTERS,
    NONE_SEEN,
    Comparison,
    Party,
    share_text,
    span_text,
    value_text,
    verdict,
)
from ssdlab.engine.check import MARK, any_doubt
from ssdlab.figures import Curve, Figure, Style
from ssdlab.output import Place, write_to
from ssdlab.report import drawing, style
from ssdlab.report.catalogue import ENGLISH, Catalogue
from ssdlab.report.numbers import THIN
from ssdlab.report.shell import filled
from ssdlab.report.tables import Cell, Table
from ssdlab.results import DIRECTIONS, Result

LINES: tuple[Style, ...] = ("line", "dashed", "dotted")
"""Curves of one chart, where colours tell the sides apart."""
DOUBT = "in doubt"
"""The source of charts that show a number in doubt."""
FACTS_MAX = 200
"""Longer facts are cut."""


def render(found: Comparison, place: Place, *, title: str | None = None) -> None:
    """Writes the page.

    Raises as :class:`ssdlab.output.Output` does.
    """
    write_to(place, Page(found, title, ENGLISH).html())


class Page:
    """Everything that the template asks for."""

    def __init__(self, found: Comparison, title: str | None, words: Catalogue) -> None:
        self.found, self.words = found, words
        labels = [party.label for party in found.parties]
        self.title = title or words("compared.title", names=words.names(labels))
        self.figures: dict[str, figure] = {}

    def html(self) -> str:
        """The page."""
        found = self.found
        sections = [
            self._section(place, name, list(rows))
            for place, (name, rows) in enumerate(
                itertools.groupby(found.rows, key=lambda row: row.quantity.section)
            )
        ]
        drawn = [[run.findings.judgement.figures for run in p.runs] for p in found.parties]
        labels = [p.label for p in found.parties]
        doubts = [p.runs[0].marks() if p.runs else frozenset[str]() for p in found.parties]
        overlaid = overlay(drawn, labels, doubts)
        groups = drawing.groups("charts", overlaid, self.figures, (DOUBT,))
        return filled(
            "compare.html.j2",
            self.words,
            self.title,
            self.figures,
            doubt_mark=MARK if any(any_doubt(p.checks) for p in found.parties) else "",
            none_seen=found.tested,
            sentences=[one.replace(" %", f"{THIN}%") for one in found.sentences()],
            sides=[self._side(place, party) for place, party in enumerate(found.parties)],
            facts=self._facts(),
            sections=sections,
            groups=groups,
            method=found.method(),
        )

    def _side(self, place: int, party: Party) -> Mapping[str, Any]:
        key = "compared.runs" if len(party.names) > 1 else "compared.run"
        return {
            "label": f"{LETTERS[place]}  {party.label}",
            "colour": style.run_colour(place),
            "runs": self.words(key, names=self.words("list_comma").join(party.names)),
            "checks": [
                {
                    "status": one.status,
                    "word": self.words(f"check.{one.status}"),
                    "title": one.title,
                    "evidence": one.evidence,
                }
                for one in party.checks
            ],
        }

    def _facts(self) -> Table | None:
        facts = self.found.differing_facts()
        if not facts:
            return None
        head = (self.words("compared.fact"), *LETTERS[: len(self.found.parties)])
        rows = tuple(
            (Cell(name, head=True), *(Cell(_cut(value)) for value in values))
            for name, values in facts.items()
        )
        return Table(head, rows, labels=len(head))

    def _section(self, place: int, name: str, rows: Sequence[Row]) -> Mapping[str, Any]:
        charts = [] if self.found.protocol else self._charts(name)
        return {
            "title": name or self.words("compared.numbers"),
            "table": self._table(rows),
            "groups": drawing.groups(f"section-{place}", charts, self.figures, (DOUBT,)),
        }

    def _table(self, rows: Sequence[Row]) -> Table:
        words = self.words
        first, *others = list(LETTERS[: len(self.found.parties)])
        head = [words("compared.number"), words("compared.unit"), first]
        for letter in others:
            head += [letter, words("compared.against", label=letter, first=first)]
            if self.found.tested:
                head += [words("compared.span"), words("compared.verdict")]
        return Table(tuple(head), tuple(self._row(row) for row in rows), labels=2)

    def _row(self, row: Row) -> tuple[Cell, ...]:
        texts = [
            Cell(
                value_text(value, interval) + (MARK if party.doubted(row.quantity.name) else ""),
                "" if value is None else repr(value),
            )
            for party, value, interval in zip(
                self.found.parties, row.values, row.intervals, strict=True
            )
        ]
        cells = [Cell(row.quantity.name, head=True), Cell(row.quantity.unit), texts[0]]
        for text, difference in zip(texts[1:], row.differences, strict=True):
            share = None if difference is None else difference.share
            cells += [text, Cell(share_text(share), "" if share is None else repr(share))]
            if self.found.tested:
                cells += [
                    Cell(span_text(difference)),
                    Cell(self._verdict(difference, row)),
                ]
        return tuple(cells)

    def _verdict(self, difference: Difference | None, row: Row) -> str:
        said = verdict(difference, row.quantity.better)
        return self.words("compared.none_seen") if said == NONE_SEEN else said

    # --- charts of ordinary runs

    def _charts(self, section: str) -> list[Figure]:
        """IOPS against time and the latency distribution of one job and direction."""
        words = self.words
        lines: list[Curve] = []
        slower: list[Curve] = []
        for place, number, result, workload, ddir in self._members(section):
            name = self.found.parties[place].label
            shown: Style = LINES[min(number, len(LINES) - 1)]
            time, rate = _rate(result, workload.name, ddir)
            lines.append(Curve(name, time, rate, shown, place))
            value, share = _slower(workload, ddir)
            slower.append(Curve(name, value, share, shown, place))
        sources = (DOUBT,) if any(any_doubt(p.checks) for p in self.found.parties) else ()
        return [
            Figure(
                words("compared.iops"),
                words("axis.time_s"),
                "IOPS",
                lines,
                wide=True,
                sources=sources,
            ),
            Figure(
                words("compared.slower"),
                words("compared.latency"),
                words("compared.share"),
                slower,
                log_x=True,
                log_y=True,
                wide=True,
                sources=sources,
            ),
        ]

    def _members(self, section: str) -> Iterator[tuple[int, int, Result, comparison.Workload, str]]:
        """(side, repeat, result, its job, direction) of what a section compares."""
        flat = [
            (place, number, result)
            for place, party in enumerate(self.found.parties)
            for number, result in enumerate(party.results)
        ]
        for group in comparison.align([result.document for *_, result in flat]):
            for ddir in DIRECTIONS:
                if f"{group.name}, {ddir}" == section:
                    for member in group.members:
                        yield *flat[member.run], member, ddir


def _rate(result: Result, job: str, ddir: str) -> tuple[list[float], list[float]]:
    """Seconds since the job began, and IOPS."""
    rows = result.series(job, ddir)
    if rows.is_empty():
        return [], []
    bins = series.per_second(rows, float(result.ssdlab.get("interval_ms") or 1000) / 1000)
    return bins["time_s"].to_list(), bins["iops"].to_list()


def _slower(workload: comparison.Workload, ddir: str) -> tuple[list[float], list[float]]:
    """Latencies in us, and how many of a million I/Os take longer."""
    parts = (latency.distribution(job.get(ddir) or {}) for job in workload.jobs)
    whole = latency.merge(one for one in parts if one is not None)
    if whole is None:
        return [], []
    value, longer = whole.cdf()
    return list(value / 1e3), list(1e6 * longer)


def overlay(
    sides: Sequence[Sequence[Sequence[Figure]]],
    labels: Sequence[str],
    doubts: Sequence[Collection[str]] = (),
) -> list[Figure]:
    """Charts of the same title with the curves of all sides: a colour for each side.

    Of repeats the first is drawn. Fields cannot lie one over another; they stand side by side.
    ``doubts`` are the keys of the steps of each side that a check puts in doubt: a chart of such
    a step gets the source :data:`DOUBT`.
    """
    first = [runs[0] if runs else () for runs in sides]
    known = {(one.group, one.title): one for figures in first for one in figures}
    found: list[Figure] = []
    marked = doubts or [()] * len(sides)
    for (group, title), model in known.items():
        own = [
            (place, one)
            for place, figures in enumerate(first)
            for one in figures
            if (one.group, one.title) == (group, title)
        ]
        if any(curve.style == "heat" for _, one in own for curve in one.curves):
            found += [
                replace(
                    one,
                    title=labels[place],
                    group=title if not group else f"{group}: {title}",
                    sources=_doubt([(place, one)], marked),
                )
                for place, one in own
            ]
            continue
        curves = [
            _restyled(curve, number, labels[place], place, alone=len(one.curves) == 1)
            for place, one in own
            for number, curve in enumerate(one.curves)
        ]
        tops = [one.y_max for _, one in own]
        top = max((t for t in tops if t is not None), default=None) if None not in tops else None
        found.append(replace(model, curves=_once(curves), y_max=top, sources=_doubt(own, marked)))
    return found


def _doubt(own: Sequence[tuple[int, Figure]], marked: Sequence[Collection[str]]) -> tuple[str, ...]:
    doubted = any(source in marked[place] for place, one in own for source in one.sources)
    return (DOUBT,) if doubted else ()


def _restyled(curve: Curve, number: int, label: str, place: int, *, alone: bool) -> Curve:
    shown = curve.style
    if shown in ("line", "points", "dashed", "dotted") and not alone:
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
