"""Everything that stands on the page, ready for its template."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bokeh.plotting import figure

from ssdlab import _core, tuning
from ssdlab.answer import MARK, any_doubt
from ssdlab.errors import InputError
from ssdlab.report import model, style, tables, verdict, why
from ssdlab.report.catalogue import Catalogue
from ssdlab.report.charts import Kind, Panel, SectionCharts, SectionPainter
from ssdlab.report.embed import Embedded, packed
from ssdlab.report.model import Run, Section, Trace
from ssdlab.report.numbers import THIN, Numbers
from ssdlab.report.shell import filled
from ssdlab.results import Result

LABEL_SHARE = 0.13
"""A stretch of a bar at least this long carries its label."""
COLUMNS_MAX = 3
"""Up to so many runs have a column each; more flow into what room there is."""
IOPS_ROWS: tuple[tuple[str, Kind], ...] = (("log", "iops_log"), ("linear", "iops_linear"))
CHART_ROWS: tuple[Kind, ...] = ("throughput", "parts", "wa", "collection", "folding", "free")


class Page:
    """Everything that the template asks for."""

    def __init__(self, results: Sequence[Result], title: str | None, words: Catalogue) -> None:
        self.words = words
        self.numbers = Numbers(words)
        self.tables = tables.Tables(words, self.numbers)
        self.runs, self.sections = model.build(results)
        self.title = title or self._title()
        self.figures: dict[str, figure] = {}
        self.ranges: dict[str, Any] = {}

    def html(self) -> str:
        """The page."""
        sections = [self._section(section) for section in self.sections]
        return filled(
            "page.html.j2",
            self.words,
            self.title,
            self.figures,
            version=next((str(v) for r in self.runs if (v := r.meta.get("version"))), ""),
            ranges=self.ranges,
            lede=self._lede(),
            summary=self._summary(),
            believe=[self._believe(run) for run in self.runs],
            doubt_mark=MARK if any(any_doubt(run.checks) for run in self.runs) else "",
            sections=sections,
            setups=[self._setup(run) for run in self.runs],
            glossary=("steady", "spread", "percentile", "wa", "window"),
        )

    # --- the head of the page

    def _title(self) -> str:
        names = [run.name for run in self.runs]
        if len(names) == 1:
            return self.words("title.one", name=names[0])
        return self.words("title.several", names=self.words.names(names))

    def _main_section(self) -> Section | None:
        """The section the head speaks of: the last that does not only fill, on most runs."""
        tested = [s for s in self.sections if not s.fill] or self.sections
        return max(
            reversed(tested), key=lambda s: len({t.run.index for t in s.traces}), default=None
        )

    def _lede(self) -> list[str]:
        main = self._main_section()
        if main is None:
            return []
        return verdict.of_comparison(main.main_traces, self.words, self.numbers)

    def _summary(self) -> Mapping[str, Any] | None:
        main = self._main_section()
        if main is None:
            return None
        basis = self.words("summary.basis")
        return {
            "table": self.tables.summary(main.traces),
            "note": self.words("summary.note", job=main.name, basis=basis),
        }

    def _believe(self, run: Run) -> Mapping[str, Any]:
        """What speaks against the numbers of a run, and what was looked at besides."""
        found = run.checks
        rest = []
        for status in ("good", "unknown"):
            if titles := [one.title for one in found if one.status == status]:
                names = self.words("list_comma").join(titles)
                rest.append(self.words(f"believe.{status}", names=names))
        return {
            "name": run.label,
            "colour": run.colour,
            "checks": [
                {
                    "status": one.status,
                    "word": self.words(f"check.{one.status}"),
                    "title": one.title,
                    "evidence": one.evidence,
                    "why": one.why,
                }
                for one in found
                if one.status in ("bad", "doubt")
            ],
            "rest": " ".join(rest),
        }

    # --- one job

    def _section(self, section: Section) -> Mapping[str, Any]:
        charts = SectionPainter(section, self.words, self.numbers).paint()
        self.ranges[section.anchor] = charts.ranges
        attributed = [t for t in section.traces if t.attribution]
        silent = (
            []
            if not attributed
            else [
                t for t in section.main_traces if not t.attribution and t.run.result.kind == "fio"
            ]
        )
        return {
            "anchor": section.anchor,
            "name": section.name,
            "fill": section.fill,
            "what": self._what(section),
            "columns": n if (n := len(section.main_traces)) <= COLUMNS_MAX else 0,
            "verdicts": [self._verdict(t, section) for t in section.traces],
            "iops": self._iops_rows(section, charts),
            "rows": {kind: self._panels(section, charts.row(kind)) for kind in CHART_ROWS},
            "latency_time": self._panels(section, charts.row("latency_time")),
            "fill_row": [
                {**panel, "fact": self._fill_fact(section, panel["run"])}
                for panel in self._panels(section, charts.row("fill"))
            ],
            "cdf": self._place(charts.cdf) if charts.cdf is not None else None,
            "cdf_legend": [
                {
                    "name": self.tables.trace_name(t, section.traces),
                    "colour": t.run.colour,
                    "dashed": any(
                        o.run.index == t.run.index
                        for o in section.traces[: section.traces.index(t)]
                    ),
                }
                for t in section.traces
                if t.latency is not None
            ],
            "consistency_table": self.tables.consistency(section),
            "latency_table": self.tables.latency(section),
            "attribution": [self._bars(t, section) for t in (*attributed, *silent)],
            "attribution_legend": self._attribution_legend(attributed),
            "attribution_shared": any(t.attribution_shared for t in attributed),
            "attribution_table": self.tables.attribution(section),
            "written": [self._written(t, section) for t in section.traces if t.causes],
            "written_legend": self._written_legend(section.traces),
            "commands": self._commands(attributed),
            "wear": [self._wear(t, section) for t in section.traces if t.wear is not None],
            "wear_table": self.tables.wear(section) if section is self._worn_section() else None,
        }

    def _what(self, section: Section) -> str:
        """What the job does, in a line: random write, 4 KiB blocks, depth 32, 2000 s."""
        words = self.words
        workload = section.traces[0].workload
        rw = (workload.option("rw", "readwrite") or "read").split(":")[0].lower()
        try:
            said = [words(f"job.{rw}")]
        except KeyError:
            said = [rw]
        block = workload.option("bs", "blocksize")
        if block:
            said.append(words("job.block", size=_block_size(block, self.numbers)))
        if (depth := workload.option("iodepth")) not in ("", "1"):
            said.append(words("job.depth", depth=depth))
        if (workers := workload.option("numjobs")) not in ("", "1"):
            said.append(words("job.workers", workers=workers))
        if mix := workload.option("rwmixread"):
            said.append(words("job.mix", percent=mix))
        times = list(dict.fromkeys(self.numbers.seconds(t.lasted_s) for t in section.main_traces))
        said.append(words("job.lasted", time=" / ".join(times)))
        return words("list_comma").join(said)

    def _verdict(self, trace: Trace, section: Section) -> Mapping[str, Any]:
        return {
            "name": self.tables.trace_name(trace, section.traces),
            "colour": trace.run.colour,
            "kind": self.words(f"kind.{trace.run.result.kind}"),
            "column": self._column(section, trace.run.index),
            "figure": self.numbers.count(trace.iops),
            "unit": self.words(f"figure.{trace.window.verdict if len(trace.time) else 'none'}"),
            "sentences": verdict.of_trace(trace, self.words, self.numbers),
        }

    def _fill_fact(self, section: Section, run: int) -> str:
        trace = next(t for t in section.traces if t.run.index == run)
        facts = (self.numbers.rate(trace.measured.bw_bytes), self.numbers.seconds(trace.lasted_s))
        return self.words("list_comma").join(facts)

    def _iops_rows(self, section: Section, charts: SectionCharts) -> list[Mapping[str, Any]]:
        return (
            [
                {"scale": scale, "panels": self._panels(section, charts.row(kind))}
                for scale, kind in IOPS_ROWS
            ]
            if charts.row("iops_log")
            else []
        )

    def _panels(self, section: Section, panels: Sequence[Panel]) -> list[Mapping[str, Any]]:
        return [
            {
                "id": self._place(panel.figure),
                "run": panel.run,
                "column": self._column(section, panel.run),
                "fact": self._directions(section, panel),
                "height": panel.figure.height,
                "name": self.runs[panel.run].label,
                "colour": self.runs[panel.run].colour,
                "own_scale": panel.own_scale,
                "points": self.numbers.count(panel.points) if panel.points else "",
            }
            for panel in panels
        ]

    def _directions(self, section: Section, panel: Panel) -> str:
        """How the directions of a run are told apart, where it has several."""
        names = [self.words(f"ddir.{t.ddir}") for t in section.traces if t.run.index == panel.run]
        if len(names) < 2 or panel.kind not in ("iops_log", "iops_linear", "throughput"):
            return ""
        return self.words("chart.directions", first=names[0], others=self.words.names(names[1:]))

    def _column(self, section: Section, run: int) -> int:
        """The column of a run among those that have this job, from 1."""
        return 1 + [t.run.index for t in section.main_traces].index(run)

    def _place(self, chart: figure) -> str:
        """Adds a chart to the page; the id of its element."""
        element = f"chart-{len(self.figures)}"
        self.figures[element] = chart
        return element

    def _bars(self, trace: Trace, section: Section) -> Mapping[str, Any]:
        bars = []
        for breakdown in trace.attribution:
            pieces = [
                self._piece(
                    self.words.part(part),
                    share,
                    self.numbers.latency(breakdown.ns[part]),
                    style.part_colour(part),
                )
                for part, share in breakdown.shares.items()
            ]
            bars.append(
                {
                    "point": self.words(f"point.{breakdown.point}"),
                    "total": self.numbers.latency(breakdown.total_ns),
                    "pieces": pieces,
                    "sentence": why.time(breakdown, self.words, self.numbers),
                }
            )
        return {**self._head(trace, section), "bars": bars}

    def _written(self, trace: Trace, section: Section) -> Mapping[str, Any]:
        """Write amplification by cause: a bar and a sentence."""
        pieces = [
            self._piece(
                self.words.cause(cause),
                units / sum(trace.causes.values()),
                self.numbers.wa(units),
                style.cause_colour(cause),
            )
            for cause, units in trace.causes.items()
        ]
        bar = {
            "point": self.words("table.wa"),
            "total": self.numbers.wa(trace.wa),
            "pieces": pieces,
            "sentence": why.written(trace.causes, self.words, self.numbers),
        }
        return {**self._head(trace, section), "bars": [bar]}

    def _wear(self, trace: Trace, section: Section) -> Mapping[str, Any]:
        sentences = why.wear(trace.wear, self.words, self.numbers) if trace.wear else []
        return {**self._head(trace, section), "sentences": sentences}

    def _worn_section(self) -> Section | None:
        """The last one that wrote to flash: it carries the counters at the end of the run."""
        worn = (s for s in reversed(self.sections) if any(t.wear is not None for t in s.traces))
        return next(worn, None)

    def _commands(self, traces: Sequence[Trace]) -> list[str]:
        """How to get what a report does not do: the runs repeated with one thing changed."""
        folders = {t.run.index: t.run.result.folder for t in traces}
        names = [self.words("why.run") if f is None else f.name for f in folders.values()]
        return [self.words("why.command", run=name) for name in dict.fromkeys(names)]

    def _head(self, trace: Trace, section: Section) -> Mapping[str, Any]:
        """Whose panel it is, and where it stands."""
        return {
            "name": self.tables.trace_name(trace, section.traces),
            "colour": trace.run.colour,
            "column": self._column(section, trace.run.index),
        }

    def _piece(self, name: str, share: float, amount: str, colour: str) -> Mapping[str, str]:
        """A stretch of a bar."""
        percent = self.numbers.percent(share)
        return {
            "part": name,
            "percent": f"{100 * share:.3f}",
            "title": f"{name}: {percent}, {amount}",
            "colour": colour,
            "ink": style.ink_on(colour),
            "label": percent if share >= LABEL_SHARE else "",
        }

    def _attribution_legend(self, traces: Sequence[Trace]) -> list[Mapping[str, str]]:
        present = {part for t in traces for b in t.attribution for part in b.ns}
        ordered = [p for p in style.PART_COLOURS if p in present]
        ordered += sorted(present - set(ordered))
        return [
            {
                "part": self.words.part(part),
                "phrase": self.words.phrase(part),
                "colour": style.part_colour(part),
            }
            for part in ordered
        ]

    def _written_legend(self, traces: Sequence[Trace]) -> list[Mapping[str, str]]:
        present = {cause for t in traces for cause in t.causes}
        ordered = [c for c in style.CAUSE_COLOURS if c in present]
        return [
            {
                "part": self.words.cause(cause),
                "phrase": self.words.purpose(cause),
                "colour": style.cause_colour(cause),
            }
            for cause in (*ordered, *sorted(present - set(ordered)))
        ]

    # --- what was run on what

    def _setup(self, run: Run) -> Mapping[str, Any]:
        meta = run.meta
        target, profile = meta.get("target") or {}, meta.get("profile") or {}
        summary = profile.get("summary") or ""
        values = [
            (v.get("key"), v.get("value"), v.get("source")) for v in profile.get("values", [])
        ]
        ignored = [
            (o.get("job"), o.get("option"), o.get("value"), o.get("line"))
            for o in meta.get("ignored_options") or []
        ]
        around = dict(meta.get("surroundings") or {})
        if setup := tuning.readable(around.get("setup")):
            around["setup"] = setup
        surroundings = list(_flat(around))
        counters = meta.get("counters") or {}
        make = self.tables.pairs
        return {
            "name": run.label,
            "colour": run.colour,
            "kind": self.words(f"kind.{run.result.kind}"),
            "facts": tables.run_facts(run, self.words, self.numbers),
            "profile_summary": "" if summary == target.get("summary") else summary,
            "profile": make(("setup.key", "setup.value", "setup.source"), values, 3)
            if values
            else None,
            "surroundings": make(("setup.key", "setup.value"), surroundings)
            if surroundings
            else None,
            "ignored": make(
                ("setup.job_name", "setup.option", "setup.value", "setup.line"), ignored, 4
            )
            if ignored
            else None,
            "counters": self.tables.counters(counters) if counters else None,
            "job_text": run.result.job_text,
            "rig_text": run.result.rig_toml or "",
            "raw": self._raw(run),
        }

    def _raw(self, run: Run) -> list[Embedded]:
        document = run.result.json(indent=None)
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", run.label).strip("-") or "run"
        texts = [
            ("result", document, f"{stem}.json", "application/json"),
            ("series", run.result.series().write_csv(), f"{stem}-series.csv", "text/csv"),
            ("job", run.result.job_text, f"{stem}.fio", "text/plain"),
            ("rig", run.result.rig_toml or "", f"{stem}.toml", "text/plain"),
        ]
        return [
            Embedded(
                f"raw-{run.index}-{key}", self.words(f"button.{key}"), file, mime, *packed(text)
            )
            for key, text, file, mime in texts
            if text
        ]


def _block_size(text: str, numbers: Numbers) -> str:
    """A plain fio size (4k, 1m, 4096) in words; anything finer as it is."""
    try:
        return numbers.size(_core.parse_fio_size(text))
    except InputError:
        return text


def _flat(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested keys as dotted ones."""
    out: list[tuple[str, str]] = []
    for key, value in tree.items():
        if isinstance(value, Mapping):
            out += _flat(value, f"{prefix}{key}.")
        elif value not in (None, "", []):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            out.append((f"{prefix}{key}", shown.replace("\u00a0", THIN)))
    return out
