"""The tables of the report: text for people, plain values for whoever copies them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ssdlab.analysis.consistency import Consistency
from ssdlab.histogram import Histogram
from ssdlab.report.catalogue import Catalogue
from ssdlab.report.model import Run, Section, Trace
from ssdlab.report.numbers import Numbers


@dataclass(frozen=True)
class Cell:
    """One cell."""

    text: str
    raw: str | None = None
    """What is copied; the text itself if None."""
    colour: str | None = None
    """Colour of the run's mark before the text."""
    head: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of cells under a head. The first `labels` columns hold names, the others numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    labels: int = 1
    units: tuple[str, ...] = ()
    """Head as copied, with the units of the raw values; the head itself if empty."""
    narrow: bool = False
    """Not as wide as the page."""


Column = tuple[str, str, Callable[[Trace], float | None], Callable[[float | None], str]]


class Tables:
    """Builds tables in one language."""

    def __init__(self, words: Catalogue, numbers: Numbers) -> None:
        self._words = words
        self._numbers = numbers

    def summary(self, traces: Sequence[Trace]) -> Table:
        """One row per run and direction: rate, evenness, latency, write amplification."""
        n = self._numbers
        columns: list[Column] = [
            ("table.iops", "", lambda t: t.iops, n.count),
            ("table.min", "", _even(lambda c: c.min), n.count),
            ("table.max", "", _even(lambda c: c.max), n.count),
            ("table.spread", "", _even(lambda c: c.spread), n.percent),
            ("table.cv", "", _even(lambda c: c.cv), n.percent),
            ("table.p50", "unit.ns", _percentile(50), n.latency),
            ("table.p99", "unit.ns", _percentile(99), n.latency),
            ("table.p999", "unit.ns", _percentile(99.9), n.latency),
            ("table.slowest", "unit.ns", _slow(lambda d: d.max_ns if d.ios else None), n.latency),
        ]
        if any(t.wa is not None for t in traces):
            columns.append(("table.wa", "", lambda t: t.wa, n.wa))
        if any(t.consistency is not None for t in traces):
            columns.append(("table.from", "unit.s", lambda t: t.window.start_s, n.seconds))
        table = self._by_trace(traces, columns)
        steady = [
            Cell(self._words(f"steady.{t.window.verdict}") if len(t.time) else self._words("none"))
            for t in traces
        ]
        rows = tuple((*row, cell) for row, cell in zip(table.rows, steady, strict=True))
        head = self._words("table.steady")
        return Table((*table.head, head), rows, table.labels, (*table.units, head))

    def consistency(self, section: Section) -> Table | None:
        """Rate and evenness over the measurement window."""
        traces = [t for t in section.traces if t.consistency is not None]
        if not traces:
            return None
        n = self._numbers
        columns: list[Column] = [
            ("table.mean", "", lambda t: t.iops, n.count),
            ("table.min", "", _even(lambda c: c.min), n.count),
            ("table.p1", "", _even(lambda c: c.p1), n.count),
            ("table.p99_iops", "", _even(lambda c: c.p99), n.count),
            ("table.max", "", _even(lambda c: c.max), n.count),
            ("table.spread", "", _even(lambda c: c.spread), n.percent),
            ("table.cv", "", _even(lambda c: c.cv), n.percent),
            (
                "table.low_seconds",
                "",
                _even(lambda c: c.share_below_half),
                n.percent,
            ),
            ("table.throughput", "unit.b_s", _window_rate, n.rate),
        ]
        return self._by_trace(traces, columns)

    def latency(self, section: Section) -> Table | None:
        """Latency percentiles over the measurement window."""
        traces = [t for t in section.traces if t.latency is not None]
        if not traces:
            return None
        n = self._numbers
        columns: list[Column] = [
            ("table.mean", "unit.ns", _slow(lambda d: d.mean_ns), n.latency),
            ("table.p50", "unit.ns", _percentile(50), n.latency),
            ("table.p99", "unit.ns", _percentile(99), n.latency),
            ("table.p999", "unit.ns", _percentile(99.9), n.latency),
            ("table.p9999", "unit.ns", _percentile(99.99), n.latency),
            ("table.slowest", "unit.ns", _slow(lambda d: d.max_ns if d.ios else None), n.latency),
            (
                "table.ios",
                "",
                lambda t: None if t.measured.ios is None else float(t.measured.ios),
                n.count,
            ),
        ]
        return self._by_trace(traces, columns)

    def attribution(self, section: Section) -> Table | None:
        """Nanoseconds per I/O by part, one column per run, direction and point."""
        columns = [(t, b) for t in section.traces for b in t.attribution]
        if not columns:
            return None
        parts = list(dict.fromkeys(part for _, b in columns for part in b.ns))
        several = len({(t.run.index, t.ddir) for t, _ in columns}) > 1
        heads = []
        for trace, breakdown in columns:
            point = self._words(f"point.{breakdown.point}")
            run = self.trace_name(trace, [t for t, _ in columns])
            heads.append(self._words("table.of", point=point, run=run) if several else point)
        rows = tuple(
            (
                Cell(self._words.part(part), head=True),
                *(
                    Cell(self._numbers.latency(b.ns.get(part)), _raw(b.ns.get(part)))
                    for _, b in columns
                ),
            )
            for part in parts
        )
        unit = self._words("unit.ns")
        return Table(
            (self._words("table.part"), *heads),
            rows,
            units=(self._words("table.part"), *(f"{head} ({unit})" for head in heads)),
        )

    def wear(self, section: Section) -> Table | None:
        """The counters of the SMART page, one column per run."""
        traces = {t.run.index: (t, w) for t in section.traces if (w := t.wear) is not None}
        if not traces:
            return None
        n = self._numbers
        shown: dict[str, Callable[[float | None], str]] = {
            "percentage_used": lambda percent: n.percent(
                None if percent is None else percent / 100
            ),
            "data_units_written": n.plain,
            "data_units_read": n.plain,
            "host_write_commands": n.plain,
            "host_read_commands": n.plain,
            "erases_min": n.plain,
            "erases_mean": n.count,
            "erases_max": n.plain,
            "rated_pe_cycles": n.plain,
            "physical_bytes": n.written,
        }
        rows = []
        for name, text in shown.items():
            values = [getattr(found.smart, name) for _, found in traces.values()]
            cells = [Cell(text(value), _raw(value)) for value in values]
            rows.append((Cell(self._words(f"wear.{name}"), head=True), *cells))
        head = self._words("setup.counter")
        several = len(traces) > 1
        value = self._words("setup.value")
        names = [trace.run.label if several else value for trace, _ in traces.values()]
        return Table((head, *names), tuple(rows))

    def pairs(self, head: Sequence[str], rows: Sequence[Sequence[Any]], labels: int = 2) -> Table:
        """A table of plain texts."""
        return Table(
            tuple(self._words(key) for key in head),
            tuple(
                tuple(Cell("" if v is None else str(v), head=i == 0) for i, v in enumerate(row))
                for row in rows
            ),
            labels=labels,
        )

    def counters(self, counters: Mapping[str, Any]) -> Table:
        """The drive's counters at the end of the run."""
        rows = tuple(
            (Cell(name, head=True), Cell(self._numbers.plain(float(value)), str(value)))
            for name, value in counters.items()
        )
        return Table((self._words("setup.counter"), self._words("setup.value")), rows)

    def trace_name(self, trace: Trace, among: Sequence[Trace]) -> str:
        """The run's label, with the direction where a run has several."""
        directions = {t.ddir for t in among if t.run.index == trace.run.index}
        if len(directions) < 2:
            return trace.run.label
        return f"{trace.run.label}, {self._words(f'ddir.{trace.ddir}')}"

    def _by_trace(self, traces: Sequence[Trace], columns: Sequence[Column]) -> Table:
        rows = []
        for trace in traces:
            name = self.trace_name(trace, traces)
            row = [Cell(name, colour=trace.run.colour, head=True)]
            for _, _, value_of, shown in columns:
                value = value_of(trace)
                row.append(Cell(shown(value), _raw(value)))
            rows.append(tuple(row))
        head = (self._words("table.run"), *(self._words(key) for key, *_ in columns))
        units = [
            f"{self._words(key)} ({self._words(unit)})" if unit else self._words(key)
            for key, unit, *_ in columns
        ]
        return Table(head, tuple(rows), units=(head[0], *units))


def _even(number: Callable[[Consistency], float]) -> Callable[[Trace], float | None]:
    return lambda trace: None if trace.consistency is None else number(trace.consistency)


def _slow(number: Callable[[Histogram], float | None]) -> Callable[[Trace], float | None]:
    return lambda trace: None if trace.latency is None else number(trace.latency)


def _percentile(percent: float) -> Callable[[Trace], float | None]:
    return _slow(lambda latency: latency.percentile_ns(percent))


def _window_rate(trace: Trace) -> float | None:
    """Throughput of the window, bytes/s."""
    return trace.measured.bw_bytes


def _raw(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def run_facts(run: Run, words: Catalogue, numbers: Numbers) -> list[tuple[str, str]]:
    """What a run was: drive, state, seed, versions; what is not known is left out."""
    meta = run.meta
    target = meta.get("target", {})
    facts = [
        ("setup.target", target.get("summary") or target.get("name")),
        ("setup.capacity", numbers.size(c) if (c := target.get("capacity_bytes")) else None),
        ("setup.preconditioning", _state(meta.get("preconditioning"), words)),
        ("setup.seed", meta.get("seed")),
        ("setup.simulated", numbers.seconds(s) if (s := meta.get("simulated_seconds")) else None),
        ("setup.version", meta.get("version")),
        ("setup.fio", run.result.document.get("fio version") if run.result.kind == "fio" else None),
    ]
    return [(words(key), str(value)) for key, value in facts if value not in (None, "")]


def _state(preconditioning: object, words: Catalogue) -> str:
    """What state the drive was brought into, in words."""
    text = str(preconditioning or "")
    name, _, times = text.partition(":")
    if name in ("fob", "sequential", "random", "steady") and "," not in text:
        return words(f"state.{name}", times=times or "1")
    return text
