"""The page of published experiments: published beside simulated, with the article's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bokeh.plotting import figure

from ssdlab.experiments.base import Line, Outcome
from ssdlab.output import Place, write_to
from ssdlab.report import drawing
from ssdlab.report.catalogue import ENGLISH, Catalogue
from ssdlab.report.numbers import Numbers
from ssdlab.report.shell import filled
from ssdlab.report.tables import Cell, Table

NEAR = 0.15
"""A prediction this near is a good one."""
FACTOR = 1.5
"""One within this factor is a fair one; beyond it the page says why."""


def render(outcomes: Sequence[Outcome], place: Place, *, title: str | None = None) -> None:
    """Writes one page with these experiments.

    Raises as :class:`ssdlab.output.Output` does.
    """
    write_to(place, Page(outcomes, title, ENGLISH).html())


def near(line: Line) -> bool:
    """Whether the simulated number is within 15 % of the published one."""
    return line.ratio is not None and abs(line.ratio - 1) <= NEAR


def fair(line: Line) -> bool:
    """Whether it is within a factor of 1.5."""
    return line.ratio is not None and 1 / FACTOR <= line.ratio <= FACTOR


class Page:
    """Everything that the template asks for."""

    def __init__(self, outcomes: Sequence[Outcome], title: str | None, words: Catalogue) -> None:
        self.outcomes = outcomes
        self.words = words
        self.numbers = Numbers(words)
        one = len(outcomes) == 1
        self.title = title or (outcomes[0].experiment.title if one else words("reproduce.title"))
        self.figures: dict[str, figure] = {}

    def html(self) -> str:
        """The page."""
        experiments = [self._experiment(outcome) for outcome in self.outcomes]
        lines = [line for outcome in self.outcomes for line in outcome.findings.lines]
        quick = any(outcome.mode == "quick" for outcome in self.outcomes)
        return filled(
            "experiment.html.j2",
            self.words,
            self.title,
            self.figures,
            lede=self._lede(lines),
            size_note=self.words("reproduce.quick") if quick else "",
            overview=self._overview() if len(self.outcomes) > 1 else None,
            experiments=experiments,
        )

    def _lede(self, lines: Sequence[Line]) -> list[str]:
        """How many numbers are met."""
        stated = [line for line in lines if line.published.value is not None]
        predicted = [line for line in stated if line.published.kind == "predicted"]
        compared = [line for line in predicted if line.ratio is not None]
        if not compared:
            return [self.words("reproduce.lede_none")]
        said = [
            self.words(
                "reproduce.lede",
                within=sum(map(near, compared)),
                compared=len(compared),
                factor=sum(map(fair, compared)),
            )
        ]
        if missing := len(predicted) - len(compared):
            said.append(self.words("reproduce.lede_missing", missing=missing))
        if fitted := len(stated) - len(predicted):
            said.append(self.words("reproduce.lede_fitted", fitted=fitted))
        return said

    def _overview(self) -> Table:
        keys = ("experiment", "predictions", "within", "factor", "missing", "fitted")
        rows = []
        for outcome in self.outcomes:
            stated = [x for x in outcome.findings.lines if x.published.value is not None]
            predicted = [line for line in stated if line.published.kind == "predicted"]
            counts = (
                len(predicted),
                sum(map(near, predicted)),
                sum(map(fair, predicted)),
                sum(line.ratio is None for line in predicted),
                len(stated) - len(predicted),
            )
            name = Cell(outcome.experiment.title, head=True)
            rows.append((name, *(Cell(str(count)) for count in counts)))
        return Table(tuple(self.words(f"reproduce.{key}") for key in keys), tuple(rows))

    def _experiment(self, outcome: Outcome) -> Mapping[str, Any]:
        experiment, findings = outcome.experiment, outcome.findings
        size = (
            self.words("reproduce.size_full")
            if outcome.factor == 1
            else self.words("reproduce.size", factor=outcome.factor, what=experiment.scaling)
        )
        return {
            "name": experiment.name,
            "title": experiment.title,
            "article": experiment.article,
            "procedure": experiment.procedure,
            "size": f"{size} {self.words('reproduce.seed', seed=outcome.seed)}",
            "table": self._table(findings.lines),
            "misses": self._misses(findings.lines),
            "remarks": findings.remarks,
            "groups": drawing.groups(experiment.name, findings.figures, self.figures),
            "jobs": list(experiment.job_files().items()),
        }

    def _table(self, lines: Sequence[Line]) -> Table:
        keys = ("drive", "quantity", "unit", "published", "simulated", "ratio", "kind_head")
        rows = []
        for line in lines:
            one = line.published
            rows.append(
                (
                    Cell(one.drive, head=True),
                    Cell(one.quantity),
                    Cell(one.unit),
                    Cell(self._figures(one.value), _raw(one.value)),
                    Cell(self._figures(line.simulated), _raw(line.simulated)),
                    Cell(self._ratio(line.ratio), _raw(line.ratio)),
                    Cell(self.words(f"reproduce.{one.kind}")),
                )
            )
        return Table(tuple(self.words(f"reproduce.{key}") for key in keys), tuple(rows), labels=3)

    def _missed(self, line: Line) -> bool:
        return line.published.value is not None and not near(line)

    def _misses(self, lines: Sequence[Line]) -> list[str]:
        """A sentence for each drive and reason, with what is missed and by how much."""
        missed = [line for line in lines if self._missed(line)]
        sentences = []
        for drive, why in dict.fromkeys((line.published.drive, line.why) for line in missed):
            amounts = [
                self.words(
                    "reproduce.miss_one",
                    quantity=line.published.quantity,
                    amount=self.words("reproduce.miss_none")
                    if line.ratio is None
                    else self.words("reproduce.miss_ratio", ratio=self._ratio(line.ratio)),
                )
                for line in missed
                if (line.published.drive, line.why) == (drive, why)
            ]
            reason = (
                self.words("reproduce.why", why=why) if why else self.words("reproduce.why_unknown")
            )
            sentences.append(
                self.words("reproduce.miss", drive=drive, amounts="; ".join(amounts), why=reason)
            )
        return sentences

    def _figures(self, value: float | None) -> str:
        if value is None:
            return self.words("none")
        return (
            self.numbers.count(value)
            if abs(value) >= 100
            else self.numbers.plain(value, 1 if abs(value) >= 10 else 2)
        )

    def _ratio(self, value: float | None) -> str:
        if value is None:
            return self.words("none")
        return self.numbers.plain(value, 0 if value >= 100 else 1 if value >= 10 else 2)


def _raw(value: float | None) -> str:
    return "" if value is None else repr(value)
