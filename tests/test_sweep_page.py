"""Points of charts that lead to rows, charts of chosen values, and parallel coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import browser
from ssdlab.answer import Answer, Cell, Cells, Column, Curve, Figure, Section, Table
from ssdlab.answers.sweep import failures
from ssdlab.report import answer_page
from ssdlab.report.drawing import groups

in_browser = pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "-")
KEYS = ["aa", "bb", "cc", "dd"]
CHOICES = {"victim": ("greedy", "fifo"), "depth": ("1",)}


def figures() -> list[Figure]:
    chosen = Curve(
        "IOPS", [1.0, 2.0, 1.0, 2.0], [10.0, 20.0, 30.0, 60.0], "points", 0, (),
        [f"combination {key}" for key in KEYS], KEYS,
        ["greedy\t1", "greedy\t1", "fifo\t1", "fifo\t1"],
    )  # fmt: skip
    lines = Curve(
        "combination", [0.0, 1.0] * 4, [0.0, 1.0, 0.2, 0.8, 0.4, 0.6, 1.0, 0.0], "parallel", 0,
        [0.0, 0.0, 0.5, 0.5, 0.7, 0.7, 1.0, 1.0], [key for key in KEYS for _ in range(2)],
        [key for key in KEYS for _ in range(2)],
    )  # fmt: skip
    return [
        Figure("IOPS by op", "op", "IOPS", [chosen], group="op", choices=CHOICES),
        Figure("All", "", "share", [lines], x_names=("op\n1 to 2", "IOPS\n10 to 60"), wide=True),
    ]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page") / "page.html"
    rows: list[Cells] = []
    for _ in range(5):
        rows += [[key, Cell(float(place))] for place, key in enumerate(KEYS)]
    anchors = [*KEYS, *[""] * (len(rows) - 4)]
    table = Table("Runs", [Column("key"), Column("n")], rows, "", anchors, "do it --run KEY")
    first = Table("First", [Column("a")], [["1"]])
    section = Section(["Done"], tables=[first, table], figures=figures(), key="s", title="All")
    answer_page.render(Answer("Sweep", "sweep", [section]), place)
    return place


@pytest.fixture(scope="module")
def tab(page: Path) -> Iterator[browser.Tab]:
    with browser.tab() as one:
        yield one


def test_lines_begin_where_their_places_begin_anew() -> None:
    drawn: dict[str, object] = {}
    groups("s", figures(), drawn)
    (panel,) = [one for name, one in drawn.items() if name == "s-1-0"]
    (lines,) = panel.renderers  # type: ignore[attr-defined]
    data = lines.data_source.data
    assert data["xs"] == [[0.0, 1.0]] * 4 and data["ys"][3] == [1.0, 0.0]
    assert data["key"] == KEYS
    assert list(data["alpha"]) == sorted(data["alpha"]) and data["alpha"][3] == 1.0


@in_browser
def test_a_point_that_is_clicked_leads_to_its_row(page: Path, tab: browser.Tab) -> None:
    tab.open(page, 1400)
    place = """(() => {
      const root = Bokeh.documents[0].roots()[0];
      const { frame, el } = Bokeh.index.get_by_id(root.id);
      el.scrollIntoView({ block: "center" });
      const box = el.getBoundingClientRect();
      return [box.x + frame.x_scale.compute(2), box.y + frame.y_scale.compute(20)];
    })()"""
    x, y = tab.run(place)
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    tab.wait("document.querySelector('tr.led')?.id === 'row-bb'")
    assert tab.run("document.querySelector('tr.led').closest('details').open")
    assert tab.run("document.querySelector('tr.told').textContent.trim()") == "do it --run bb"
    tab.click("#row-cc th")
    assert tab.run("document.querySelector('tr.told').textContent.trim()") == "do it --run cc"
    assert tab.run("document.querySelectorAll('tr.told, tr.led').length") == 2
    assert tab.complaints == []


@in_browser
def test_charts_show_what_is_chosen(page: Path, tab: browser.Tab) -> None:
    tab.open(page, 1400)
    source = "Bokeh.documents[0].roots()[0].renderers[0].data_source"
    data = f"(s => [[...s.data.y], [...s.data.key]])({source})"
    assert tab.run(data) == [[10.0, 20.0], ["aa", "bb"]]
    tab.run(
        "(s => { s.value = 'fifo'; s.dispatchEvent(new Event('change', { bubbles: true })); })"
        "(document.querySelector('.choices select'))"
    )
    tab.wait(f"{data}[0][0] === 30")
    assert tab.run(data) == [[30.0, 60.0], ["cc", "dd"]]
    # The axis holds what any choice shows.
    assert tab.run("Bokeh.documents[0].roots()[0].y_range.end") >= 60
    assert tab.complaints == []


@in_browser
def test_nothing_is_wider_than_a_phone(page: Path, tab: browser.Tab) -> None:
    tab.open(page, 390, phone=True)
    assert tab.run("document.documentElement.scrollWidth") == 390


@in_browser
def test_short_words_of_a_broad_table_stay_whole(tmp_path: Path) -> None:
    keys = ["ftl.over_provisioning", "job.iodepth", "job.rwmixread", "job", "ddir"]
    heads = ["IOPS", "lat mean, us", "clat p99, us", "clat p99.9, us", "lat p99, us", "endurance"]
    columns = [Column(name) for name in (*keys, *heads, "steady", "key")]
    numbers = [Cell(123_456.0) for _ in heads]
    cells: Cells = ["0.1", "4", "50", "w", "write", *numbers, "no", "d" * 20]
    place = tmp_path / "broad.html"
    section = Section(["Done"], tables=[Table("Runs", columns, [cells] * 3)], key="s", title="All")
    answer_page.render(Answer("Sweep", "sweep", [section]), place)
    with browser.tab() as tab:
        tab.open(place, 900)
        # A line is 18 high, its padding 14.
        heights = "[...document.querySelectorAll('.broad tbody tr')].map(one => one.clientHeight)"
        assert 0 < max(tab.run(heights)) < 40


@in_browser
@pytest.mark.parametrize(("width", "phone"), [(1280, False), (390, True)])
def test_a_long_table_scrolls_within_the_page(tmp_path: Path, width: int, phone: bool) -> None:
    columns = [Column("depth"), Column("op"), *(Column(f"n{n}") for n in range(10)), Column("key")]
    rows: list[Cells] = [
        [str(n), "0.07", *(Cell(float(n)) for _ in range(10)), f"k{n}"] for n in range(100)
    ]
    place = tmp_path / "long.html"
    table = Table("Runs", columns, rows, "", [f"k{n}" for n in range(100)])
    answer_page.render(Answer("Sweep", "sweep", [Section(["Done"], tables=[table])]), place)
    with browser.tab() as tab:
        tab.open(place, width, 900, phone)
        assert tab.run("document.documentElement.scrollWidth") == width
        assert tab.run("document.documentElement.scrollHeight") < 1500
        tab.run("ssdlab.lead('k90')")
        top = "getBoundingClientRect().top"
        box, head, row = (
            tab.run(f"document.querySelector('{one}').{top}")
            for one in (".tall .scroll", "thead th", "#row-k90")
        )
        assert head == pytest.approx(box, abs=2) and head < row < 900, "its head stays above it"
        if phone:
            tab.run("document.querySelector('.tall .scroll').scrollLeft = 30")
            first, second = (
                tab.run(f"document.querySelector('#row-k90 > {one}').getBoundingClientRect().{end}")
                for one, end in (("th", "right"), ("td", "left"))
            )
            assert first <= second + 1, "no column lies over the next"
        tab.call("Emulation.setEmulatedMedia", media="print")
        assert tab.run("document.documentElement.scrollHeight") > 2000, "on paper it is whole"


@in_browser
def test_the_cells_of_a_wide_table_do_not_stand_below_each_other_by_hundreds(
    tmp_path: Path,
) -> None:
    columns = [Column("job"), *(Column(f"part {n}", "us") for n in range(24))]
    rows: list[Cells] = [[f"j{n}", *(Cell(1e4) for _ in range(24))] for n in range(9)]
    place = tmp_path / "wide.html"
    section = Section(["Done"], tables=[Table("Parts", columns, rows)])
    answer_page.render(Answer("Run", "run", [section]), place)
    with browser.tab() as tab:
        tab.open(place, 390, 900, phone=True)
        assert tab.run("document.documentElement.scrollWidth") == 390
        assert tab.run("document.documentElement.scrollHeight") < 1500


def test_what_could_not_be_run_is_told_once_for_each_reason() -> None:
    told = [({"op": str(op), "victim": "none"}, "no policy is called none") for op in range(20)]
    (table,) = failures("Could not be run", [*told, ({"op": "9", "victim": "fifo"}, "too large")])
    assert table.rows == [
        ["victim=none (20 combinations)", "no policy is called none"],
        ["op=9, victim=fifo", "too large"],
    ]
    assert table.note == ""
    (table,) = failures("Not judged", [({"op": str(n)}, f"reason {n}") for n in range(13)])
    assert len(table.rows) == 10 and table.note == "3 other reasons in the document of --json."
