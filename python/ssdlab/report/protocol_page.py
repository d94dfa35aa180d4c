"""The page of a protocol's run: the answer, whether to believe it, its tables and charts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from bokeh.plotting import figure

from ssdlab import tuning
from ssdlab.engine.check import MARK
from ssdlab.engine.findings import ProtocolRun
from ssdlab.figures import Cell as Value
from ssdlab.figures import Column, Figure, Number, figure_text, heading, in_gigabytes, says_only
from ssdlab.figures import Table as Measured
from ssdlab.output import Place, write_to
from ssdlab.report import drawing
from ssdlab.report.catalogue import ENGLISH, Catalogue
from ssdlab.report.numbers import Numbers
from ssdlab.report.shell import filled
from ssdlab.report.tables import Cell, Table

NARROW = 4
"""Tables of so few columns do not take the whole width."""


def render(run: ProtocolRun, place: Place, *, title: str | None = None) -> None:
    """Writes the page.

    Raises as :class:`ssdlab.output.Output` does.
    """
    write_to(place, Page(run, title, ENGLISH).html())


class Page:
    """Everything that the template asks for."""

    def __init__(self, run: ProtocolRun, title: str | None, words: Catalogue) -> None:
        self.run, self.words = run, words
        self.numbers = Numbers(words)
        self.title = title or words("protocol.heading", title=run.title, target=run.target)
        self.figures: dict[str, figure] = {}
        self.marked: Collection[str] = run.marks()

    def html(self) -> str:
        """The page."""
        run = self.run
        judgement = run.findings.judgement
        groups = drawing.groups("figure", judgement.figures, self.figures, self.marked)
        steady = [self._steady(n, record) for n, record in enumerate(run.findings.rounds)]
        return filled(
            "protocol.html.j2",
            self.words,
            self.title,
            self.figures,
            eyebrow=self.words("protocol.kind_quick" if run.quick else "protocol.kind"),
            sentences=judgement.sentences,
            state=self._state(),
            checks=self._checks(),
            doubt_mark=MARK if self.marked else "",
            numbers=self._numbers(judgement.numbers),
            tables=[
                self._table(one)
                for one in judgement.tables
                if not says_only(one, judgement.numbers)
            ],
            groups=groups,
            steady=steady,
            counted=self._counted(),
            facts=self._facts(),
            steps=self._steps(),
            jobs=list(run.job_texts().items()),
        )

    def _state(self) -> str:
        """A sentence where the run is not what it was meant to be."""
        if self.run.quick:
            return self.words("protocol.quick")
        return "" if self.run.complete else self.words("protocol.incomplete")

    def _checks(self) -> list[Mapping[str, str]]:
        return [
            {
                "status": check.status,
                "word": self.words(f"check.{check.status}"),
                "title": check.title,
                "evidence": check.evidence,
                "why": check.why if check.status in ("doubt", "bad") else "",
            }
            for check in self.run.findings.checks
        ]

    def _numbers(self, numbers: Sequence[Number]) -> Table | None:
        if not numbers:
            return None
        columns = (
            Column(self.words("protocol.number")),
            Column(self.words("protocol.value")),
            Column(self.words("protocol.unit")),
        )
        rows = [
            (one.name, Value(one.value, one.sources), one.unit)
            for one in map(in_gigabytes, numbers)
        ]
        return self._cells(columns, rows)

    def _table(self, one: Measured) -> Mapping[str, Any]:
        return {"title": one.title, "table": self._cells(one.columns, one.rows), "note": one.note}

    def _cells(
        self, columns: Sequence[Column], rows: Sequence[Sequence[Value | str | None]]
    ) -> Table:
        labels = 0
        while labels < len(columns) and all(isinstance(row[labels], str) for row in rows):
            labels += 1
        head = tuple(heading(c) for c in columns)
        return Table(
            head,
            tuple(
                tuple(
                    self._cell(cell, c.unit, place == 0)
                    for place, (cell, c) in enumerate(zip(row, columns, strict=True))
                )
                for row in rows
            ),
            labels=max(1, labels),
            narrow=len(columns) <= NARROW,
        )

    def _cell(self, cell: Value | str | None, unit: str, head: bool) -> Cell:
        if cell is None:
            return Cell(self.words("none"), head=head)
        if isinstance(cell, str):
            return Cell(cell, head=head)
        mark = MARK if any(key in self.marked for key in cell.sources) else ""
        raw = "" if cell.value is None else repr(cell.value)
        return Cell(figure_text(cell.value, unit) + mark, raw, head=head)

    def _steady(self, place: int, record: Any) -> Mapping[str, Any]:
        from ssdlab.engine import steady_report

        found: Sequence[Figure] = steady_report.figures(record)
        return {
            "title": record.title,
            "sentence": steady_report.sentence(record),
            "table": self._table(steady_report.table(record)),
            "groups": drawing.groups(f"steady-{place}", found, self.figures, self.marked),
        }

    def _counted(self) -> Table | None:
        found = self.run.counted()
        return None if found is None else self._cells(found.columns, found.rows)

    def _facts(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """What the report of a test must state: device, platform, settings."""
        manifest = self.run.manifest
        about = manifest.get("about", {})
        drive = dict(about.get("drive", {}))
        if manifest.get("kind") == "sim":
            drive = {"simulated": manifest["name"], "what it is": about.get("summary", "")}
        system = {k: about[k] for k in ("kernel", "machine", "cpus") if k in about}
        system |= {f"file system {k}": v for k, v in about.get("file_system", {}).items()}
        system |= {f"setup: {k}": v for k, v in tuning.readable(about.get("setup")).items()}
        size = self.numbers.size
        test: list[tuple[str, str]] = [
            (self.words("protocol.source"), self.run.source),
            (self.words("protocol.capacity"), size(manifest.get("capacity"))),
            (self.words("protocol.active"), size(manifest.get("active"))),
            *((name, str(value)) for name, value in manifest.get("values", {}).items()),
            (self.words("protocol.begun"), str(manifest.get("created", "")).replace("T", " ")),
            (self.words("protocol.version"), str(manifest.get("version", ""))),
        ]
        if manifest.get("kind") == "sim":
            test.append((self.words("protocol.seed"), str(manifest.get("seed"))))
            test += [(key, value) for key, value in manifest.get("overrides", {}).items()]
        facts = [
            (
                self.words("protocol.device"),
                [(k.replace("_", " "), str(v)) for k, v in drive.items()],
            ),
            (self.words("protocol.platform"), [(k, str(v)) for k, v in system.items()]),
            (self.words("protocol.settings"), test),
        ]
        return [(title, rows) for title, rows in facts if rows]

    def _steps(self) -> Table:
        keys = ("step_number", "step_title", "step_key", "step_took", "step_note")
        head = tuple(self.words(f"protocol.{key}") for key in keys)
        rows = tuple(
            (
                Cell(str(one.number), head=True),
                Cell(one.title),
                Cell(one.key),
                Cell(self.numbers.latency(1e9 * _seconds(one.began, one.ended))),
                Cell(one.note),
            )
            for one in self.run.steps
        )
        return Table(head, rows, labels=3)


def _seconds(began: str, ended: str) -> float:
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
