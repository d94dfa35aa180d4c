"""The report of runs: what it says, and its page in a browser."""

from __future__ import annotations

import itertools
import json
import math
import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import browser
import report_samples as samples
import ssdlab
from conftest import make_result
from ssdlab.analysis import names
from ssdlab.analysis.flash import activity
from ssdlab.answer import Answer, Section, Table, by_name, value_of
from ssdlab.answers import run as run_answer
from ssdlab.answers.charts import Trace, first_of_each
from ssdlab.answers.run import answer
from ssdlab.api import explain
from ssdlab.errors import InputError, SsdlabError
from ssdlab.output import Output
from ssdlab.report import answer_page, style
from ssdlab.report.downsample import keep_extremes
from ssdlab.results import Result

EVIL = "</script><b>x</b> & <i>\"'"


@cache
def enterprise() -> Result:
    return samples.simulated("enterprise", floor=33_000, noise=0.03, collection=0.1, wa=1.4)


@cache
def client() -> Result:
    return samples.simulated("client", floor=7_000, noise=0.1, period=40, collection=0.8, wa=6.0)


def traces(*results: Result) -> list[Trace]:
    """The directions of the last job."""
    return run_answer.traces_of(results)[-1]


def section(found: Answer, key: str) -> Section:
    return next(one for one in found.sections if one.key == key)


def table(found: Section, title: str) -> Table:
    return next(one for one in found.tables if one.title == title)


def render(results: list[Result], place: Path) -> None:
    answer_page.render(answer(results), place)


# --- what it says -----------------------------------------------------------------------------


def test_the_verdict_tells_steady_runs_from_others() -> None:
    assert answer([client()]).verdict.code == "steady"
    assert answer([samples.measured(seconds=12)]).verdict.code == "not-steady"
    falling = samples.simulated("falling", knee=1900, floor=3000)
    assert answer([falling]).verdict.code == "not-steady"


def test_a_steady_state_that_is_in_doubt_is_not_told_as_one() -> None:
    """Sequential writes during the first pass over a drive that had been written at random."""
    job = "[s]\nrw=write\nbs=128k\niodepth=8\nio_size=614m\n"
    rig = {"capacity": "1GiB", "ftl.over_provisioning": 0.07}
    found = answer([ssdlab.run(job, on="lab-reference", set=rig, prepare="steady")])
    said = found.lead.sentences[0]
    assert "IOPS steady by the PTS rule, but still moving; in doubt." in said
    assert not any(
        "at steady state" in one for section in found.sections for one in section.sentences
    )
    assert found.verdict.code == "not-steady"


def test_the_rate_of_a_replay_at_recorded_times_is_its_traces() -> None:
    """However even it is: also where the window of another job would begin later."""
    even = samples.simulated("even", knee=20, floor=3000)
    assert "at steady state (from" in answer([even]).lead.sentences[0]
    for options, said, code in (
        ({}, "over the whole job, at the times of its trace", "recorded"),
        ({"replay_no_stall": "1"}, "at steady state (from", "steady"),
    ):
        replayed = samples.simulated("even", knee=20, floor=3000)
        for job in replayed.document["jobs"]:
            job["job options"] = {"read_iolog": "t.iolog", **options}
        found = answer([replayed])
        assert said in found.lead.sentences[0] and found.verdict.code == code
        assert not any("Not at" in one for one in answer([replayed, even]).lead.sentences)


def test_the_window_shows_the_drives_that_the_samples_were_made_as() -> None:
    fast, slow = (
        next(one for one in result.summary() if one["job"] == "random-write")
        for result in (enterprise(), client())
    )
    # Wear levelling adds a thousandth of what is relocated.
    assert fast["waf"] == pytest.approx(1 + 0.4 * 1.001)
    assert slow["waf"] == pytest.approx(1 + 5.0 * 1.001)
    dips = 1 - 3 / 40 * 0.65
    assert fast["iops"] / slow["iops"] == pytest.approx(33_000 / (7_000 * dips), rel=0.03)
    assert 350 <= slow["window_s"][0] <= 450, "the fresh drive ends at 300 s"
    text = " ".join(section(answer([client()]), "job-1").sentences)
    dipping = re.search(r"every (\d+) s and last ([\d.]+) s", text)
    assert dipping is not None
    assert int(dipping[1]) == 40
    assert float(dipping[2]) == pytest.approx(3.0, abs=0.2)


@pytest.mark.parametrize(("swing", "told"), [(7, False), (20_000, True)])
def test_a_cycle_is_told_where_it_moves_the_rate(swing: int, told: bool) -> None:
    result = samples.measured(seconds=120)
    second = np.arange(120)
    rate = 70_000.0 - swing * (second % 8 == 0)
    result.series_frame = result.series_frame.with_columns(iops=rate, ios=rate.astype(np.uint64))
    text = " ".join(section(answer([result]), "job-0").sentences)
    assert ("repeat every 8.0 s" in text) == told


def test_tiles_and_headline_are_the_summary_of_the_main_job() -> None:
    found = answer([client()])
    told = next(one for one in client().summary() if one["job"] == "random-write")
    numbers = {one.name: one.value for one in found.lead.numbers}
    assert numbers["IOPS"] == told["iops"]
    assert numbers["clat p99"] == told["clat_p99_ns"] / 1e3
    assert numbers["write amplification"] == told["waf"]
    assert f"{told['iops']:,.0f} IOPS at steady state" in found.headline


def test_the_head_speaks_of_all_jobs_that_ran_at_the_same_time() -> None:
    """Of a fill before them it does not, and no more than four of many."""
    jobs = (
        "[global]\nbs=4k\nnorandommap\ntime_based\nruntime=2\n[fill]\nrw=write\nbs=1m\n"
        "[db]\nstonewall\nrw=randrw\nrwmixread=70\n[log]\nrw=write\nfsync=1\n"
    )
    result = ssdlab.run(jobs, on="demo-client")
    found = result.report.answer
    assert found.title.startswith("log and db on ")
    assert explain.answer(result).title.startswith("Why log on demo-client")
    told = [one.partition(" (")[0] + one.partition("),")[2][:7] for one in found.lead.sentences]
    assert told == ["log write:", "db read: ", "db write:"]
    assert {(one.job, one.ddir) for one in found.lead.numbers} == {("log", "write")}
    assert found.lead.numbers[0].head == "IOPS, log write"
    assert [figure.title for figure in found.lead.figures] == ["IOPS of log over time"]
    many = "".join(f"[j{n}]\nrw=randread\nsize=1m\n" for n in range(9))
    title = ssdlab.run(many, on="demo-client").report.answer.title
    assert title.startswith("j8, j0, j1 and j2 on ")


def test_the_table_of_the_head_is_the_summary() -> None:
    found = answer([enterprise(), client()])
    measured = table(found.lead, "Measured")
    heads = [column.name for column in measured.columns]
    told = [one for result in (enterprise(), client()) for one in result.summary()]
    keys = {"IOPS": ("iops", 1.0), "MB/s": ("bw_bytes", 1e-6), "clat mean": ("clat_mean_ns", 1e-3)}
    keys |= {n: (f"clat_{n.replace('.', '')}_ns", 1e-3) for n in ("p50", "p99", "p99.9", "max")}
    keys["WA"] = ("waf", 1.0)
    for row in measured.rows:
        cells = {head: value_of(cell) for head, cell in zip(heads, row, strict=True)}
        result = enterprise() if cells["run"] == "enterprise" else client()
        own = next(one for one in result.summary() if one["job"] == cells["job"])
        for name, (key, factor) in keys.items():
            if own[key] is not None:
                assert cells[name] == pytest.approx(own[key] * factor), name
    assert len(measured.rows) == len(told)


def test_several_runs_are_told_apart_by_speed_and_by_tail() -> None:
    said = answer([enterprise(), client()]).lead.sentences
    assert said[0].startswith("enterprise: ") and "times client" in said[0]
    factor = float(re.findall(r"([\d.]+) times client", said[0])[0])
    fast, slow = (t.measured.iops or 0 for t in first_of_each(traces(enterprise(), client())))
    assert factor == pytest.approx(fast / slow, rel=0.01)
    assert said[1].startswith("p99.9 of client: ")
    assert "garbage collection" in said[1]


def direct(name: str) -> Result:
    """A measured run that went past the page cache, too short to be steady."""
    result = samples.measured(name, seconds=4)
    result.document["jobs"][0]["job options"]["direct"] = "1"
    return result


def test_a_headline_that_is_not_valid_says_so() -> None:
    cached = samples.measured("cached")
    assert any(check.status == "bad" for check in answer([cached]).checks), "the page cache"
    assert answer([cached]).headline.endswith("; not valid.")
    beside = answer([direct("direct"), cached]).headline
    assert beside.endswith("; not valid: cached; in doubt: direct.")


def test_a_headline_in_doubt_says_so() -> None:
    short = direct("short")
    alone, beside = answer([short]), answer([enterprise(), short])
    assert any(check.trouble for check in alone.checks), "it is too short"
    assert alone.headline.endswith("; in doubt.")
    assert beside.headline.endswith(f"; in doubt: {short.name}.")
    assert "in doubt" not in answer([enterprise()]).headline
    assert "in doubt" not in answer([enterprise(), client()]).headline


def test_sentences_speak_of_the_window_alone() -> None:
    trace = traces(enterprise())[0]
    window = trace.measured.inside["iops"].to_numpy()
    text = " ".join(section(answer([enterprise()]), "job-1").sentences)
    assert f"Per-second IOPS: {window.min():,.0f} to {window.max():,.0f}" in text
    assert window.max() < 40_000, "the fresh drive's 65 000 are not in it"


def test_the_causes_of_write_amplification_add_up_to_that_of_the_window() -> None:
    trace = traces(client())[0]
    assert set(trace.causes) == {"host", "collection", "wear"}
    assert sum(trace.causes.values()) == pytest.approx(trace.measured.waf)
    rows = table(section(answer([client()]), "job-1"), "Write amplification by cause").rows
    values = [value_of(row[1]) for row in rows]
    assert sum(v for v in values if isinstance(v, float)) == pytest.approx(trace.measured.waf)


def test_what_is_collected_is_drawn_in_the_unit_of_its_axis() -> None:
    result = client()
    drawn = next(
        one
        for one in section(answer([result]), "job-1").figures
        if one.title == "Garbage collection over time"
    )
    assert drawn.y_label == "relocated by GC, MB/s"
    frame = result.device_series()
    assert frame is not None
    moved = activity(frame)
    assert moved is not None
    during = moved.filter(pl.col("time_s") > samples.FILL_S)["relocated_bytes"].to_numpy().sum()
    assert sum(drawn.curves[0].y) == pytest.approx(during / 1e6, rel=1e-6)


def test_a_measured_run_has_no_causes_and_no_attribution() -> None:
    found = section(answer([samples.measured()]), "job-0")
    titles = {one.title for one in found.tables}
    assert titles == {"Per-second IOPS"}
    assert not any(
        "WA" in column.name for column in answer([samples.measured()]).lead.tables[0].columns
    )


def test_counters_of_the_end_of_a_run_are_told_once() -> None:
    job = "rw=randwrite\nsize=16m\ntime_based\nruntime=2\nstonewall\n"
    text = f"[a]\n{job}[b]\n{job.replace('randwrite', 'randread')}[c]\n{job}"
    found = answer([ssdlab.run(text, on="lab-reference", set={"capacity": "128MiB"})])
    titles = [table.title for section in found.sections for table in section.tables]
    assert titles.count("SMART counters at the end") == 1
    assert titles.count("Write amplification by cause") == 2


def test_the_title_of_many_runs_counts_them() -> None:
    runs = [make_result(name) for name in "abcde"]
    assert answer(runs[:4]).title.endswith(" and d")
    assert answer(runs).title == "w: 5 runs"


def test_the_fill_is_brief_and_does_not_lead() -> None:
    found = answer([client()])
    assert found.title == "random-write on client"
    assert section(found, "job-0").title.startswith("fill: write")
    assert len(section(found, "job-0").figures) == 1
    fill = next(one for one in client().summary() if one["job"] == "fill")
    assert fill["waf"] == pytest.approx(1.0)


def test_seconds_without_io_stand_in_the_chart(tmp_path: Path) -> None:
    """A log axis has no place for them: its line goes across, as if there had been I/Os."""
    for pause, log in ((4, False), (1, True)):
        times = [pause * n * 10**9 + k * 10**6 for n in range(9) for k in range(1 if n % 2 else 99)]
        trace = tmp_path / f"{pause}.csv"
        lines = [f"{time},read,0,4096,0,\n" for time in times]
        trace.write_text("time_ns,kind,offset,length,device,response_ns\n" + "".join(lines))
        found = answer([ssdlab.replay(trace, "lab-reference", set={"capacity": "128MiB"})])
        chart = next(f for f in found.lead.figures if f.title == "IOPS over time")
        assert (chart.log_y, min(chart.curves[0].y) == 0) == (log, not log)


def test_directions_of_a_mixed_job_are_apart() -> None:
    found = traces(samples.mixed())
    assert [t.measured.ddir for t in found] == ["read", "write"]
    rates = [t.measured.iops or 0.0 for t in found]
    assert rates[1] / rates[0] == pytest.approx(0.43, abs=0.01)
    assert len({t.name for t in found}) == 2


def test_shares_of_the_time_by_part_add_up() -> None:
    found = section(answer([client()]), "job-1").figures
    over_time = next(f for f in found if f.group == "Where the time goes, over time")
    drawn = {curve.name: curve.y for curve in over_time.curves}
    made = {names.part(part): 100 * share for part, share in samples.part_shares(0.8).items()}
    assert drawn.keys() == {name for name, share in made.items() if share >= 1}
    for name, shares in drawn.items():
        assert np.array(shares) == pytest.approx(made[name], abs=0.01)
    stacked = next(f for f in found if f.group == "Where the time goes")
    assert len(stacked.x_names) == 4
    assert np.sum([c.y for c in stacked.curves], axis=0) == pytest.approx(100.0, abs=1e-6)
    assert "array" not in {curve.name for curve in stacked.curves}


def test_breakdowns_of_a_whole_run_are_those_of_no_job_alone() -> None:
    result = samples.simulated("x", seconds=200, knee=20)
    found = result.document["ssdlab"]["attribution"]
    found["write"] = found.pop("jobs")["random-write"]["write"]
    trace = traces(result)[0]
    assert trace.points and all(point.whole for point in trace.points)


def test_parts_and_causes_of_the_core_have_names_and_colours() -> None:
    root = Path(__file__).parents[1] / "crates/ssdlab/src"
    text = (root / "stats/parts.rs").read_text()
    parts = re.findall(r'^    \w+ "(\w+)",$', text, flags=re.MULTILINE)
    assert parts == list(names.PARTS) == list(style.PART_COLOURS)
    channels = [
        [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        for colour in (*style.PART_COLOURS.values(), style.UNKNOWN_PART)
    ]
    assert min(math.dist(a, b) for a, b in itertools.combinations(channels, 2)) > 12
    for cause in names.CAUSES:
        assert re.search(rf'"programs_{cause}"', (root / "device/ssd/counters.rs").read_text()), (
            cause
        )


def test_a_report_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="there is no result"):
        answer([])


def test_a_result_without_series_and_bins_is_reported(tmp_path: Path) -> None:
    result = samples.measured(seconds=5)
    result.series_frame = result.series_frame.head(0)
    result.latency_frame = None
    del result.document["jobs"][0]["write"]["clat_ns"]["bins"]
    del result.document["ssdlab"]
    render([result], tmp_path / "report.html")
    assert '<div class="chart"' not in (tmp_path / "report.html").read_text("utf-8")
    (told,) = result.summary()
    assert told["iops"] and told["clat_mean_ns"] and told["clat_p99_ns"] is None


def test_a_result_without_jobs_is_reported(tmp_path: Path) -> None:
    result = samples.measured(seconds=5)
    result.document["jobs"] = []
    assert answer([result]).verdict.code == "nothing-measured"
    render([result], tmp_path / "report.html")
    assert "/tmp/scratch.bin" in (tmp_path / "report.html").read_text("utf-8")


def test_fewer_points_keep_every_columns_extremes() -> None:
    generator = np.random.default_rng(5)
    a, b = generator.random(100_003), generator.random(100_003)
    a[[17, 50_001]] = -5, 9
    b[77_777] = 7
    b[1000] = np.nan
    kept = keep_extremes([a, b], 2000)
    assert {0, 17, 50_001, 77_777, 100_002} <= set(kept.tolist())
    assert 1000 < len(kept) <= 2000
    assert (np.diff(kept) > 0).all()
    assert keep_extremes([a[:10]], 20).tolist() == list(range(10))


# --- the file -------------------------------------------------------------------------------


def test_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    pages = []
    for name in ("a.html", "b.html"):
        render([samples.simulated("x", seconds=200, knee=20)], tmp_path / name)
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]


def test_two_runs_of_2000_s_take_less_than_3_s_of_cpu(tmp_path: Path) -> None:
    results = [samples.simulated("a", seed=8), samples.simulated("b", seed=9)]
    started = time.process_time()
    render(results, tmp_path / "report.html")
    assert time.process_time() - started < 3


def test_nothing_points_to_another_place(tmp_path: Path) -> None:
    render([client(), samples.measured()], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    outside = re.sub(r"<script[^>]*>.*?</script>", "", page, flags=re.DOTALL)
    assert re.findall(r"\w+://", outside) == []
    assert set(re.findall(r"""(?:src|href)=["']?([^"'> ]*)""", outside)) == {"data:,"}
    assert "default-src 'none'" in outside
    assert "connect-src" not in outside


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    for place in (tmp_path / "missing" / "report.html", tmp_path / "taken"):
        with pytest.raises(SsdlabError, match=f"^{place}: "):
            render([samples.measured()], place)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


# --- in a browser ---------------------------------------------------------------------------

in_browser = pytest.mark.skipif(browser.missing() != "", reason=browser.missing() or "-")

# Coloured pixels (not grey: axes and text are) on the canvases of each chart shown.
COLOURED = """
(() => {
  const canvases = (node) => {
    const found = [];
    const walk = (n) => {
      if (n.tagName === "CANVAS") found.push(n);
      if (n.shadowRoot) walk(n.shadowRoot);
      for (const child of n.children ?? []) walk(child);
    };
    walk(node);
    return found;
  };
  const coloured = (canvas) => {
    if (!canvas.width || !canvas.height) return 0;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let n = 0;
    for (let i = 0; i < data.length; i += 4) {
      const [r, g, b, a] = data.slice(i, i + 4);
      if (a > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 40) n += 1;
    }
    return n;
  };
  return [...document.querySelectorAll(".chart")]
    .filter((chart) => chart.offsetParent !== null)
    .map((chart) => canvases(chart).reduce((n, c) => n + coloured(c), 0));
})()
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two simulated runs and a measured one, with names that try to break out."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    evil = samples.measured(EVIL)
    evil.job_text += f"\n; {EVIL} $$x^2$$\n"
    render([enterprise(), client(), evil], path)
    return path


@pytest.fixture(scope="module")
def desktop(page: Path) -> Iterator[browser.Tab]:
    with browser.tab() as tab:
        tab.open(page, 1280)
        yield tab


@pytest.fixture(scope="module")
def phone(page: Path) -> Iterator[browser.Tab]:
    with browser.tab() as tab:
        tab.open(page, 390, 844, phone=True)
        yield tab


def quiet(tab: browser.Tab) -> None:
    """No complaint on the console, and nothing asked of the network."""
    tab.run("1")
    assert tab.complaints == []
    assert {url.split(":")[0] for url in tab.requests} <= {"file", "data", "blob"}
    assert sum(url.startswith("file:") for url in tab.requests) == 1


@in_browser
def test_every_chart_is_drawn_on_a_desktop_and_on_a_phone(
    desktop: browser.Tab, phone: browser.Tab
) -> None:
    figures = sum(
        len(one.figures) for one in answer([enterprise(), client(), samples.measured()]).sections
    )
    for tab in (desktop, phone):
        found = tab.run(COLOURED)
        assert len(found) == figures
        assert min(found) > 60, found
        quiet(tab)


@in_browser
def test_phone_page_does_not_scroll_sideways(phone: browser.Tab) -> None:
    phone.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    phone.settle()
    assert phone.run("document.documentElement.scrollWidth") == 390


@in_browser
def test_a_finger_scrolls_the_page_and_does_not_zoom(
    phone: browser.Tab, desktop: browser.Tab
) -> None:
    active = (
        "Bokeh.documents[0].roots().flatMap(r => r.toolbar.tools)"
        ".filter(t => t.active && /Zoom|Pan/.test(t.type)).length"
    )
    assert phone.run(active) == 0
    assert desktop.run(active) > 0


@in_browser
def test_tables_are_copied_as_plain_values(desktop: browser.Tab) -> None:
    text = desktop.run("ssdlab.tsv(document.querySelector('#summary table'))")
    lines = [line.split("\t") for line in text.splitlines()]
    assert lines[0][:4] == ["job", "run", "ddir", "IOPS"]
    told = next(one for one in enterprise().summary() if one["job"] == "random-write")
    row = next(line for line in lines if line[:2] == ["random-write", "enterprise"])
    assert float(row[3]) == pytest.approx(told["iops"])
    assert {len(line) for line in lines} == {len(lines[0])}
    desktop.click("#summary .copy")
    desktop.wait("document.querySelector('#summary .copy').textContent === 'Copied'")


@in_browser
def test_the_answer_can_be_taken_out_whole(desktop: browser.Tab) -> None:
    text = desktop.run("ssdlab.raw(document.getElementById('answer')).then(blob => blob.text())")
    found = json.loads(text)
    assert [one["name"] for one in found["runs"]] == ["enterprise", "client", EVIL]
    assert found["runs"][0]["summary"] == json.loads(json.dumps(enterprise().summary()))
    assert found["study"] == "run"


@in_browser
def test_names_stay_text(desktop: browser.Tab) -> None:
    assert EVIL in desktop.run("document.querySelector('h1').innerText")
    assert (
        desktop.run("[...document.querySelectorAll('b')].filter(b => b.innerText === 'x').length")
        == 0
    )
    quiet(desktop)


NAMES_OVERLAP = """Bokeh.documents[0].roots().map((plot) => {
  const axis = plot.below[0], pen = document.createElement("canvas").getContext("2d");
  pen.font = "11px " + axis.major_label_text_font.value;
  const names = [...axis.major_label_overrides.values()];
  const widest = Math.max(...names.map((name) => pen.measureText(name).width));
  const each = plot.inner_width / (plot.x_range.end - plot.x_range.start);
  const shown = axis.ticker.ticks.length, upright = axis.major_label_orientation !== "horizontal";
  const drawn = plot.height - plot.inner_height;
  return [upright ? each * names.length / shown < 11 || drawn < widest : each < widest, upright,
          shown, plot.inner_height];
})"""
"""Of each chart whether its names overlap each other or what is below; whether they are upright,
how many there are, and how high the chart is."""


@pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "-")
@pytest.mark.parametrize(("width", "phone"), [(1400, False), (390, True)])
def test_many_long_names_below_bars_do_not_overlap(tmp_path: Path, width: int, phone: bool) -> None:
    names_ = [f"{n} x RAID {level}, {chunk} KiB" for n in (4, 8) for level in (10, 5, 6, 0)
              for chunk in (64, 1024)]  # fmt: skip
    rates = [1000.0 * n for n in range(1, 17)]
    figures = [
        by_name("Rate", "IOPS", names_, {"simulated": rates}, wide=True),
        by_name("Few", "IOPS", ["RAID 5", "RAID 6"], {"simulated": rates[:2]}, wide=True),
        by_name("Many", "IOPS", names_ * 4, {"simulated": rates * 4}, wide=True),
    ]
    page = tmp_path / "page.html"
    answer_page.render(Answer("", "arrays", [Section(["x"], figures=figures)]), Output(page))
    with browser.tab() as tab:
        tab.open(page, width, phone=phone)
        tab.settle()
        told = tab.run(NAMES_OVERLAP)
        assert tab.complaints == []
        assert [(overlap, upright) for overlap, upright, *_ in told] == [
            (False, True), (False, False), (False, True)
        ], told  # fmt: skip
        assert [shown for _, _, shown, _ in told] == [16, 2, 16 if phone else 64]
        heights = [height for *_, height in told]
        assert max(heights) - min(heights) < 40, heights  # the names take nothing of the bars
        assert tab.run("document.documentElement.scrollWidth <= innerWidth")
