"""One answer, rendered as terminal, page, JSON and tables."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

import browser
from conftest import Cli
from ssdlab import units
from ssdlab.answer import (
    INTERVAL,
    MARK_NOTE,
    Answer,
    Cell,
    Cells,
    Check,
    Column,
    Curve,
    Figure,
    Number,
    Part,
    Section,
    Table,
    Verdict,
    cell_text,
    columns,
    table_heads,
)
from ssdlab.api.report import Report
from ssdlab.cli.answer import View, print_rows
from ssdlab.report import answer_page, drawing
from ssdlab.report.drawing import recoloured
from ssdlab.tables import file_values, named_tables

in_browser = pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "-")
NAMES = ("a drive with a long name", "another drive with a long name")


def table(rows: int = 2) -> Table:
    heads = [Column("drive"), *(Column(f"latency of kind {n}", "us") for n in range(9))]
    cells: list[Cells] = [
        [f"{NAMES[n % 2]} {n}", *(Cell(1234.5 * n, ("x",)) for _ in heads[1:])] for n in range(rows)
    ]
    return Table("Wide table", heads, cells, "A note.")


def answer(rows: int = 2, checks: Sequence[Check] = ()) -> Answer:
    bars = Figure(
        "Latency", "", "us",
        [Curve(name, [0.0, 1.0], [10.0, 9000.0], "bars", n) for n, name in enumerate(NAMES)],
        x_names=["reads", "writes"], wide=True, sources=("x",),
    )  # fmt: skip
    lines = Figure(
        "Rates", "block, KiB", "IOPS",
        [
            Curve(NAMES[1], [1, 10, 100], [5, 50, 500], "line", 0),
            Curve("third", [1], [5], "dots", 1),
        ],
        log_x=True, log_y=True, wide=True,
    )  # fmt: skip
    lead = Section(
        ["The drive does 12,345 IOPS within 75 us.", "A second sentence."],
        [Number("rate", 12345.0, "IOPS", "higher", ("x",)), Number("p99", 75.0, "us", "lower")],
        [table(rows)] if rows < 12 else [table(), table(rows)],
        [bars, lines],
        "results",
        "Results",
        ({"iops": float("nan")},),
        Verdict("measured", {"iops": 12345.0}),
    )
    return Answer(
        "Test of a drive", "protocol", [lead], checks, frozenset({"x"}), ["How it was run."],
        {"job.fio": "[j]\nrw=read"}, {"Device": {"model": "M"}}, {"protocol": "p"},
    )  # fmt: skip


DOUBT = Check("cache", "page cache", "doubt", "writes went through it", "memory is faster")
GOOD = Check("errors", "errors", "good", "none", "")


def shown(capsys: pytest.CaptureFixture[str], one: Answer, **how: object) -> list[str]:
    View(**how).show(one, seconds=2.0, kept=Path("runs/1"), follow="ssdlab report 1")  # type: ignore[arg-type]
    return capsys.readouterr().out.splitlines()


def test_a_section_of_charts_alone_has_no_heading_in_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = answer()
    charts = replace(one.lead, sentences=[], numbers=[], tables=[], title="Charts alone")
    said = shown(capsys, replace(one, sections=[*one.sections, charts]), verbose=True)
    assert "Wide table" in said and "Charts alone" not in said


def test_an_answer_is_five_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, answer(checks=[DOUBT, GOOD])) == [
        "Test of a drive, took 2.0 s",
        "The drive does 12,345 IOPS within 75 us.",
        "rate: 12,345 IOPS†; p99: 75 us",
        "in doubt (page cache): writes went through it.",
        "kept in runs/1; next: ssdlab report 1",
    ]
    assert "1 check passed" in shown(capsys, answer(checks=[GOOD]))
    assert "all 2 checks passed" in shown(capsys, answer(checks=[GOOD, GOOD]))


def test_a_number_that_is_not_known_carries_no_mark() -> None:
    unknown = [Cell(None, ("x",)), Cell(None, ("x",), "-"), Cell(None, ("x",), "at most 3 us")]
    assert [cell_text(cell, "us", {"x"}) for cell in unknown] == ["-", "-", "at most 3 us†"]
    assert cell_text(Cell(0.0, ("x",)), "us", {"x"}).endswith("†")


def test_verbose_prints_everything_and_explains_marks_once_per_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = shown(capsys, answer(checks=[DOUBT, GOOD]), verbose=True)
    assert "- A second sentence." in lines and "How it was run." in lines
    assert lines.count(MARK_NOTE) == 2  # of the numbers and of the table
    assert "in doubt (page cache): writes went through it; memory is faster." in lines
    assert "passed: errors" in lines


def test_tables_in_a_pipe_are_tab_separated_unless_wide(
    capsys: pytest.CaptureFixture[str],
) -> None:
    piped = shown(capsys, answer(), verbose=True)
    assert f"{NAMES[1]} 1" + 9 * "\t1,234†" in piped
    assert not any("\t" in line for line in shown(capsys, answer(), verbose=True, wide=True))


def test_a_table_that_does_not_fit_is_a_block_per_row(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr("ssdlab.cli.answer.results", lambda *_places: console)
    View(verbose=True).show(answer())
    lines = stream.getvalue().splitlines()
    assert max(len(line) for line in lines) <= 80
    assert lines[lines.index(f"{NAMES[1]} 1") + 1].split() == "latency of kind 0, us 1,234†".split()


def test_prose_in_a_block_is_broken_where_the_terminal_ends() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80, color_system=None)
    prose = "what it does to what is asked of it " * 5
    heads = ("policy", "what it is", "what it does")
    print_rows(console, heads, [["greedy", 45 * "x", prose.strip()]])
    lines = stream.getvalue().splitlines()
    assert lines[0] == "greedy" and max(map(len, lines)) <= 80
    first, *others = lines[2:]
    assert first.startswith("  what it does  w") and len(others) > 1
    assert all(line.startswith(16 * " ") and line[16] != " " for line in others)
    assert " ".join(" ".join(lines[2:]).split()[3:]) == prose.strip()


def test_json_is_the_answer_with_its_verdict_and_no_nan() -> None:
    found = json.loads(json.dumps(answer(checks=[DOUBT]).as_json(), allow_nan=False))
    assert (found["study"], found["protocol"]) == ("protocol", "p")
    assert found["verdict"] == {"code": "measured", "values": {"iops": 12345.0}}
    section = found["sections"][0]
    assert section["rows"] == [{"iops": None}]
    assert section["tables"][0]["rows"][1]["latency of kind 0, us"] == 1234.5
    assert section["figures"][1]["curves"][0]["y"] == [5, 50, 500]
    assert found["checks"][0]["name"] == "cache"


def test_heads_for_programs_say_the_unit_that_cells_write_themselves() -> None:
    heads = columns("job | IOPS [=IOPS] | MB/s [MB/s] | clat mean [=us] | p99, read [us] | WA")
    told = table_heads(Table("Measured", heads, [["w", None, None, None, None, None]]))
    assert told == ["job", "IOPS", "MB/s", "clat mean, us", "p99, read, us", "WA"]


def test_no_column_is_lost_where_heads_repeat() -> None:
    heads = [Column("a", "us"), Column("90 %", head="a interval"), Column("b", "us")]
    heads += [Column("90 %", head="b interval"), Column("same"), Column("same")]
    values = ["1", "2", "3", "4", "5", "6"]
    told = Section(tables=[Table("Twice", heads, [values])]).as_json()["tables"][0]["rows"][0]
    assert [*told] == ["a, us", "a interval", "b, us", "b interval", "same", "same (2)"]
    assert [*told.values()] == values


def test_an_interval_is_two_numbers_for_programs() -> None:
    heads = [Column("IOPS", "IOPS"), Column("90 %", "", "IOPS", "IOPS interval", INTERVAL)]
    cells: list[Any] = [
        [Cell(20.0), Cell(None, text="10 .. 40", low=10.0, high=40.0)],
        [Cell(5.0), None],
    ]
    told = Section(tables=[Table("Predicted", heads, cells)])
    assert told.as_json()["tables"][0]["rows"] == [
        {"IOPS": 20.0, "90 % low, IOPS": 10.0, "90 % high, IOPS": 40.0},
        {"IOPS": 5.0, "90 % low, IOPS": None, "90 % high, IOPS": None},
    ]
    frame = Report(Answer("", "run", [told])).frame()
    assert frame.columns == ["iops", "iops_interval_low", "iops_interval_high"]
    assert frame.rows() == [(20.0, 10.0, 40.0), (5.0, None, None)]


def test_what_a_number_says_besides_has_columns_of_its_own_for_programs() -> None:
    parts: tuple[Part, ...] = ("value", "low", "high", "unit", "remark")
    cell = Cell(20.0, text="20 ± 5 us !", low=15.0, high=25.0, unit="us", remark="lost")
    rows: list[Any] = [["a", cell], ["b", Cell(None, text="?", remark="odd")], ["c", None]]
    (told,) = Section(tables=[Table("", [Column("what"), Column("A", "ms", parts=parts)], rows)]
    ).as_json()["tables"]  # fmt: skip
    heads = ["what", "A", "A low", "A high", "A unit", "A remark"]
    assert [[*row] for row in told["rows"]] == [heads] * 3
    assert [[*row.values()] for row in told["rows"]] == [
        ["a", 20.0, 15.0, 25.0, "us", "lost"],
        ["b", None, None, None, "ms", "odd"],
        ["c", None, None, None, None, None],
    ]


def test_tables_that_sections_call_the_same_are_told_apart_by_their_sections() -> None:
    def one(title: str) -> Table:
        return Table(title, columns("a"), [["1"]])

    sections = [
        Section(tables=[one("Speed")], key="all"),
        Section(tables=[one("Speed")], key="disks"),
        Section(tables=[one("Speed"), one("Speed"), one("Price")], key="caches"),
    ]
    names = [name for name, _ in named_tables(Answer("", "run", sections))]
    assert names == ["speed", "disks", "caches-speed", "caches-speed-2", "price"]


def test_names_of_tables_end_with_a_word_and_are_all_different() -> None:
    titles = [
        "Where the time of the I/Os went", "Where the time of the I/Os was lost", "x" * 40,
        "x" * 41, "Reads of it all that are as long", "Speed", "Speed", "Speed 2",
    ]  # fmt: skip
    tables = [Table(title, columns("a"), [["1"]]) for title in titles]
    names = [name for name, _ in named_tables(Answer("", "run", [Section(tables=tables)]))]
    assert names == [
        "where-the-time-of-the-i-os-went", "where-the-time-of-the-i-os-was", "x" * 31,
        "x" * 29 + "-2", "reads-of-it-all-that-are-as", "speed", "speed-2", "speed-2-2",
    ]  # fmt: skip


def test_tables_have_their_doubts_beside_them(tmp_path: Path, cli: Cli) -> None:
    job = tmp_path / "w.fio"
    job.write_text(
        "[w]\nrw=randwrite\nsize=100%\ntime_based\nruntime=3\n[r]\nrw=randread\nsize=8m\n"
    )
    how = (
        "run",
        job,
        "--on",
        "lab-reference",
        "--set",
        "capacity=64MiB",
        "--out",
        tmp_path / "runs",
    )
    csvs, book = tmp_path / "csv", tmp_path / "r.xlsx"
    done = cli(*how, "--csv", csvs, "--xlsx", book, "-q")
    assert done.status == 0, done.err
    heads, *rows = csv.reader((csvs / "checks.csv").open())
    assert heads == ["check", "says", "seen", "in doubt"]
    assert ["steady state", "in doubt", "w: too short to judge", "run/w"] in rows
    with zipfile.ZipFile(book) as parts:
        assert 'name="checks"' in parts.read("xl/workbook.xml").decode()


def test_every_table_is_written_as_csv_and_as_a_sheet(tmp_path: Path, cli: Cli) -> None:
    how = ("--runs", 100, "--csv", tmp_path / "csv", "--quiet")
    assert cli("reliability", *how).status == 0
    names = sorted(file.name for file in (tmp_path / "csv").iterdir())
    assert names == ["numbers.csv", "random-failures-alone.csv"]
    rows = list(csv.reader((tmp_path / "csv" / names[1]).open()))
    assert rows[0][0] == "level" and float(rows[1][1]) == 4 * 3.84e12
    book = tmp_path / "r.xlsx"
    assert cli("reliability", "--runs", 100, "--xlsx", book, "-q").status == 0
    with zipfile.ZipFile(book) as parts:
        assert "random-failures-alone" in parts.read("xl/workbook.xml").decode()


def test_a_workbook_has_numbers_that_name_rows_as_numbers(tmp_path: Path, cli: Cli) -> None:
    book = tmp_path / "r.xlsx"
    how = ("lab-reference", "--set", "capacity=64MiB", "--param", "parts=link", "--quick")
    assert cli("test", *how, "-p", "characterise", "--xlsx", book, "-q").status == 0
    with zipfile.ZipFile(book) as parts:
        names = re.findall(r'sheet name="([^"]+)"', parts.read("xl/workbook.xml").decode())
        steps = parts.read(f"xl/worksheets/sheet{names.index('every-step') + 1}.xml").decode()
    assert '<c r="A2"><v>1</v></c>' in steps


@pytest.mark.parametrize("document", ["--json", "--report", "--csv", "--xlsx"])
@pytest.mark.parametrize(
    "command",
    [
        ("array", "lab-reference", "--set", "capacity=64MiB", "--count", 4, "--save-rigs"),
        ("reproduce", "fragmentation", "--save-jobs"),
    ],
)
def test_no_document_of_an_answer_is_left_out_without_a_word(
    tmp_path: Path, cli: Cli, command: tuple[object, ...], document: str
) -> None:
    done = cli(*command, tmp_path / "files", document, tmp_path / "out")
    option = command[-1]
    assert done.status == 2
    assert done.err == (
        f"ssdlab: {document}: with {option} there is no answer to write; leave out one\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("document", ["--report", "--csv", "--xlsx"])
@pytest.mark.parametrize(
    "command",
    [
        ("run", "w.fio", "--on", "lab-reference"),
        ("test", "lab-reference", "-p", "fsync"),
        ("sweep", "w.fio", "--on", "lab-reference", "--vary", "job.iodepth=1,2"),
        ("resume", "last"),
    ],
)
def test_a_plan_has_no_document_but_its_own(
    tmp_path: Path, cli: Cli, command: tuple[str, ...], document: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("w.fio").write_text("[w]\nrw=randwrite\nsize=1m\n")
    done = cli(*command, "--plan", document, tmp_path / "out")
    assert (done.status, done.err) == (
        2, f"ssdlab: {document}: with --plan there is no answer to write; leave out one\n"
    )  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["w.fio"]


def test_files_have_no_figures_that_binary_fractions_leave_behind() -> None:
    rows: list[Cells] = [[Cell(0.1 * 3), Cell(1e15 + 1)], [None, Cell(math.inf)]]
    heads, *lines = file_values(Table("", columns("a | b"), rows))
    assert heads == ["a", "b"]
    assert lines == [[0.3, 1e15 + 1], [None, math.inf]]


def test_tables_as_csv_go_to_a_folder_and_not_to_standard_output(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = cli("reliability", "--runs", 100, "--csv", "-")
    assert done.status == 2 and done.err.startswith("ssdlab: --csv: found -, expected a folder")
    assert not list(tmp_path.iterdir())


def test_a_thing_has_one_colour_on_a_page_and_a_chart_gives_none_twice() -> None:
    known: dict[str, int] = {}
    bars, lines = recoloured(answer().lead.figures, known)
    of = {curve.name: curve.colour for curve in bars.curves}
    assert lines.curves[0].colour == of[NAMES[1]]
    assert lines.curves[1].colour != lines.curves[0].colour
    own = Figure(NAMES[1], "time, s", "us", [Curve("mean", [0.0], [1.0], "line", 0)], group="each")
    assert recoloured([own], known)[0].curves[0].colour == of[NAMES[1]]


def drawn(*figures: Figure) -> list[Any]:
    found: dict[str, Any] = {}
    drawing.groups("x", figures, found)
    return list(found.values())


def test_an_axis_that_charts_share_is_long_enough_for_each() -> None:
    def chart(end: float) -> Figure:
        return Figure(f"to {end:g}", "time, min", "IOPS", [Curve("x", [0.0, end], [1.0, 1.0])])

    one, other, far = drawn(chart(2.5), chart(3.0), chart(3.7))
    assert one.x_range is other.x_range
    assert one.x_range.end >= one.x_range.reset_end >= 3.0
    assert far.x_range is not one.x_range and far.x_range.end < 3.9


def test_what_doubles_has_a_tick_at_each_and_nowhere_else() -> None:
    def ticks(*x: float) -> list[float]:
        chart = Figure("t", "block, KiB", "IOPS", [Curve("a", x, [1.0] * len(x))], log_x=True)
        (panel,) = drawn(chart)
        assert panel.xgrid[0].ticker is panel.xaxis[0].ticker
        found: list[float] = panel.xaxis[0].ticker.ticks
        return found

    assert ticks(0.5, 4, 8, 1024) == [0.5, 4, 8, 1024]
    (panel,) = drawn(Figure("t", "depth", "", [Curve("a", [1, 2, 4], [1, 1, 1])], log_x=True))
    assert panel.xaxis[0].major_label_overrides == {1.0: "1", 2.0: "2", 4.0: "4"}
    sizes = [2.0**21, 2.0**22, 2.0**23]
    (panel,) = drawn(Figure("t", "bs", "", [Curve("a", sizes, [1, 1, 1])], log_x=True))
    told = [panel.xaxis[0].major_label_overrides[size] for size in sizes]
    assert told == [units.for_page(f"{size:,.0f}") for size in sizes]
    assert told[1].replace(units.THIN, "") == "4194304"
    for others in ((1, 10, 100), (1, 2), (1, 2, 5), (1, 64, 2**12)):
        assert 10 in ticks(*others), others


def test_ticks_of_a_long_axis_count_in_thousands() -> None:
    def kind(end: float) -> str:
        (panel,) = drawn(Figure("t", "clat p99, us", "", [Curve("a", [0.0, end], [1.0, 1.0])]))
        return type(panel.xaxis[0].formatter).__name__

    assert (kind(400e3), kind(0.4)) == ("NumeralTickFormatter", "BasicTickFormatter")


def test_lines_that_coincide_take_turns_and_are_named() -> None:
    def line(name: str, *y: float) -> Curve:
        return Curve(name, [float(n) for n in range(len(y))], y, "points", ord(name))

    curves = [line("a", 1, 2), line("b", 1, 3), line("c", 1, 2.001), line("d", 1, 2)]
    chart = Figure("t", "x", "y", curves)
    found: dict[str, Any] = {}
    panel = drawing.groups("x", [chart], found)[0]["panels"][0]
    assert panel["note"] == "a, c and d coincide."
    glyphs = [one.glyph for one in next(iter(found.values())).renderers]
    dashes = [(one.line_dash, one.line_dash_offset) for one in glyphs if hasattr(one, "line_dash")]
    assert dashes[::2] == [([8, 16], 0), ([], 0), ([8, 16], 8), ([8, 16], 16)]
    (plain,) = drawn(replace(chart, curves=curves[:2], note="As it is."))
    assert all(not one.glyph.line_dash for one in plain.renderers[::2])


def test_bars_that_differ_by_decades_stand_on_a_log_axis() -> None:
    far = answer().lead.figures[0]
    near = replace(far, curves=[Curve("x", [0.0, 1.0], [10.0, 20.0], "bars")])
    assert drawn(far)[0].yaxis[0].tags == ["log"]
    assert drawn(far)[0].yaxis[0].axis_label.endswith(", log scale")
    assert drawn(near)[0].y_range.start == 0
    assert "log" not in drawn(near)[0].yaxis[0].axis_label


def test_charts_of_like_length_are_zoomed_together_and_those_of_a_heading_compare() -> None:
    def over(seconds: float, top: float, group: str, unit: str = "IOPS") -> Figure:
        curve = Curve("x", [0.0, seconds], [1.0, top])
        return Figure(unit + group, "time, s", unit, [curve], group=group)

    long, tall, short, other = drawn(
        over(2000, 10, "a"), over(1990, 1000, "a"), over(30, 10, "a"), over(2000, 10, "b", "us")
    )
    assert long.x_range is tall.x_range is other.x_range
    assert short.x_range is not long.x_range, "30 s beside 2000 s would be a sliver"
    assert long.y_range is tall.y_range is short.y_range
    assert long.y_range.end == long.y_range.reset_end == pytest.approx(1060)
    assert other.y_range.end == pytest.approx(10.6)


def test_the_pointer_is_told_the_series() -> None:
    tips = [
        tool.tooltips
        for tool in drawn(answer().lead.figures[1])[0].toolbar.tools
        if type(tool).__name__ == "HoverTool"
    ]
    assert [tip[0] for tip in tips] == [("", NAMES[1]), ("", "third")]


def test_a_curve_of_one_point_is_seen() -> None:
    figure = Figure(
        "IOPS", "s", "IOPS", [Curve("short", [1.0], [5.0]), Curve("long", [1, 2], [5, 6])]
    )
    (panel,) = drawn(figure)
    marks = [one.glyph.__class__.__name__ for one in panel.renderers]
    assert marks == ["Line", "Scatter", "Line"]


# --- the page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page") / "page.html"
    answer_page.render(answer(20, [DOUBT, GOOD]), place)
    return place


@pytest.fixture(scope="module")
def tab() -> Iterator[browser.Tab]:
    with browser.tab() as one:
        yield one


def themed(tab: browser.Tab, theme: str, media: str = "") -> None:
    tab.call(
        "Emulation.setEmulatedMedia",
        media=media,
        features=[{"name": "prefers-color-scheme", "value": theme}],
    )


def test_the_page_says_what_it_is_and_what_is_in_doubt_once(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text.count("writes went through it") == 2  # in words, and in the data
    assert "<h1>Test of a drive</h1>" in text
    assert "12\u202f345\u202fIOPS within 75\u202fµs" in text
    assert "<small>20 rows</small>" in text  # folded


@in_browser
def test_the_chart_stands_in_the_first_screenful_and_says_what_it_shows(
    page: Path, tab: browser.Tab
) -> None:
    themed(tab, "light")
    tab.open(page, 1400, 900)
    assert tab.complaints == []
    box = "document.querySelector('#lead .chart').getBoundingClientRect()"
    assert tab.run(f"{box}.bottom") <= 900
    assert NAMES[0] in tab.run("document.querySelector('#lead .chart').ariaLabel")
    # The toolbar lies above the plot, not over it.
    view = "Bokeh.index.get_by_id(Bokeh.documents[0].roots()[0].id)"
    assert tab.run(f"{view}.frame.bbox.top") >= 20


@in_browser
@pytest.mark.parametrize(("width", "phone"), [(1400, False), (390, True)])
def test_no_table_is_cut(page: Path, tab: browser.Tab, width: int, phone: bool) -> None:
    tab.open(page, width, phone=phone)
    tab.run("document.querySelectorAll('details:not(.points)').forEach(d => { d.open = true; })")
    assert tab.run("document.documentElement.scrollWidth") == width
    cut = "[...document.querySelectorAll('.scroll')].filter(s => s.scrollWidth > s.clientWidth + 1)"
    assert tab.run(f"{cut}.length") == 0


@in_browser
def test_a_log_axis_keeps_ticks_when_it_is_zoomed(page: Path, tab: browser.Tab) -> None:
    tab.open(page, 1400)
    ticks = (
        "(p => p.left[0].ticker.ticks.filter(t => t >= p.y_range.start && t <= p.y_range.end)"
        ".map(t => p.left[0].major_label_overrides.get(t)))(Bokeh.documents[0].roots()[1])"
    )
    assert tab.run(ticks) == ["10", "30", "100", "300"]
    tab.run("Bokeh.documents[0].roots()[1].y_range.setv({start: 101, end: 119})")
    tab.settle()
    assert tab.run(ticks) == ["105", "110", "115"]


@in_browser
def test_charts_have_their_points_as_a_table(page: Path, tab: browser.Tab) -> None:
    tab.open(page, 1400)
    tab.run("document.querySelectorAll('.points')[1].open = true")
    tab.wait("document.querySelectorAll('.points')[1].querySelector('table') !== null")
    rows = tab.run(
        "[...document.querySelectorAll('.points')[1].querySelectorAll('tr')].map(r => r.innerText)"
    )
    assert rows[:2] == ["series\tblock, KiB\tIOPS", f"{NAMES[1]}\t1\t5"]


SVG = "http://www.w3.org/2000/svg"


@in_browser
def test_a_chart_is_saved_as_svg_with_its_title_and_legend(page: Path, tab: browser.Tab) -> None:
    themed(tab, "dark")
    tab.open(page, 1400)
    colour = "Bokeh.documents[0].roots()[0].left[0].major_label_text_color"
    dark = tab.run(colour)
    tab.run("window.made = []")
    tab.run("URL.createObjectURL = (blob) => (made.push(blob), 'data:,')")
    names = "HTMLAnchorElement.prototype.click = function () { made.push(this.download); }"
    tab.run(names)
    tab.run("document.querySelectorAll('button.svg').forEach((one) => one.click())")
    found = tab.run("Promise.all(made.map((one) => one.text?.() ?? one))")
    files, drawings = found[1::2], found[::2]
    assert len(files) == tab.run("document.querySelectorAll('.chart').length") > 1
    assert all(re.fullmatch(r"[a-z0-9-]+\.svg", one) for one in files)
    texts = [ElementTree.fromstring(one).iter(f"{{{SVG}}}text") for one in drawings]
    title, *shown = [one.text for one in texts[0]]
    # The doubt goes with it.
    assert title == "Latency †" and {*NAMES, "reads", "writes"} <= set(shown)
    # Paper is light, and the page stays as it was.
    assert not any(str(dark) in text for text in drawings) and tab.run(colour) == dark
    themed(tab, "light")


@in_browser
def test_dark_pages_have_dark_charts_and_print_light_ones(page: Path, tab: browser.Tab) -> None:
    colours = (
        "[getComputedStyle(document.body).backgroundColor, "
        "Bokeh.documents[0].roots()[0].left[0].major_label_text_color]"
    )
    themed(tab, "light")
    tab.open(page, 1400)
    light = tab.run(colours)
    themed(tab, "dark")
    tab.open(page, 1400)
    dark = tab.run(colours)
    assert light[0] != dark[0] and light[1] != dark[1]
    themed(tab, "dark", "print")
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert tab.run(colours)[1] == light[1]
    pictures = "[...document.querySelectorAll('.chart > img.printed')].filter(i => i.offsetWidth)"
    assert tab.run(f"{pictures}.length") == 2
    assert tab.run(f"{pictures}.every(i => i.src.startsWith('data:image/svg+xml,'))")
    assert tab.run("getComputedStyle(document.querySelector('.mark')).printColorAdjust") == "exact"
    assert tab.run("document.querySelector('details .tablebox table').offsetHeight") > 0
    tab.run("dispatchEvent(new Event('afterprint'))")
    themed(tab, "light")


def test_ticks_of_what_is_counted_are_whole_and_small_probabilities_are_no_zeros() -> None:
    dots = Curve("A", [1.0, 4.0], [1e-7, 1e-3], "dots", 0)
    names = ["mean: 420 us", "p99: 3.00 ms"]
    stack = Curve("cells", [0.0, 1.0], [1.0, 2.0], "stack", "part:cells")
    figures = [
        Figure("p99, us", "run", "P(loss)", [dots], log_y=True, note="1,000 ppm is p99.9."),
        Figure("time", "time, s", "us", [Curve("A", [0.5, 2.0], [1.0, 2.0], "line", 0)]),
        Figure("parts", "", "%", [stack], x_names=names),
    ]
    found: dict[str, Any] = {}
    first, *_ = drawing.groups("x", figures, found)
    assert first["title"] == "p99, \u00b5s"
    assert first["panels"][0]["note"] == "1\u202f000 ppm is p99.9."
    runs, times, parts = (one.xaxis[0] for one in found.values())
    assert (runs.ticker.min_interval, times.ticker.min_interval) == (1, 0)
    # Side by side they would overlap on a phone.
    assert parts.major_label_overrides[0] == "mean\n420\u202f\u00b5s"
    small = next(iter(found.values())).yaxis[0].formatter
    assert type(small).__name__ == "BasicTickFormatter", "two digits of 1e-7 are 0"


@in_browser
def test_numbers_of_a_heat_map_fit_their_fields(tmp_path: Path, tab: browser.Tab) -> None:
    columns_, rows = [float(n % 8) for n in range(16)], [float(n // 8) for n in range(16)]
    values = [171_259.0] * 16
    heat = Curve("IOPS", columns_, rows, "heat", 0, z=values)
    places = [str(n) for n in range(8)]
    figure = Figure("IOPS by block and mix", "", "", [heat], x_names=places, y_names=["a", "b"])
    place = tmp_path / "heat.html"
    section = Section(["It is."], figures=[figure])
    answer_page.render(Answer("A heat map", "protocol", [section]), place)
    size = (
        "parseFloat([...Bokeh.documents[0]._all_models.values()]"
        ".find(m => m.tags?.includes('field')).data_source.data.size[0])"
    )
    tab.open(place, 1400)
    assert tab.run(size) == 11
    tab.open(place, 390)
    assert 6 <= tab.run(size) <= 8, "seven figures in 35 px"
    shown = size.replace(".data_source.data.size[0])", ".visible ? 1 : 0)")
    assert tab.run(shown) == 1
    many = [float(n) for n in range(40)]
    heat = Curve("IOPS", many, [0.0] * 40, "heat", 0, z=[171_259.0] * 40)
    section = Section(["It is."], figures=[replace(figure, x_names=[""] * 40, curves=[heat])])
    answer_page.render(Answer("A heat map", "protocol", [section]), place)
    tab.open(place, 390)
    assert tab.run(shown) == 0, "seven figures in 7 px would lie upon each other"


@in_browser
def test_tables_of_many_rows_go_on_on_the_next_printed_page(
    tmp_path: Path, tab: browser.Tab
) -> None:
    """Kept whole, each left the rest of the page before it blank."""
    long = Table("T", columns("what | x"), [[f"row {n}", Cell(n)] for n in range(14)])
    place = tmp_path / "tables.html"
    answer_page.render(Answer("T", "protocol", [Section(["It is."], tables=[long] * 6)]), place)
    tab.open(place, 1400)
    printed = tab.call("Page.printToPDF", preferCSSPageSize=True)["data"]
    pages = len(re.findall(rb"/Type /Page\b", base64.b64decode(printed)))
    assert pages <= 6, "each took a page, and what stands above the first another"
