# ruff: noqa: RUF001 - the dash of the catalogue
"""The report: what it says, and what a browser makes of it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import browser
import report_samples as samples
import ssdlab
from ssdlab.analysis.attribution import Breakdown
from ssdlab.errors import InputError, SsdlabError
from ssdlab.report import catalogue, model, render, style, verdict, why
from ssdlab.report.catalogue import ENGLISH
from ssdlab.report.downsample import keep_extremes
from ssdlab.report.numbers import THIN, Numbers
from ssdlab.results import Result

REPORT = Path(model.__file__).parent
NUMBERS = Numbers(ENGLISH)
EVIL = "</script><script>alert(1)</script><b>&\"'"


def enterprise() -> Result:
    return samples.simulated(
        "enterprise", fresh=65_000, floor=34_000, knee=500, noise=0.03, collection=0.35, wa=1.9
    )


def client() -> Result:
    return samples.simulated(
        "client", floor=7_200, knee=150, period=40, collection=0.75, wa=6.9, seed=2
    )


def traces(*results: Result) -> list[model.Trace]:
    _, sections = model.build(results)
    return [t for section in sections if not section.fill for t in section.traces]


def say(result: Result) -> str:
    return " ".join(verdict.of_trace(traces(result)[0], ENGLISH, NUMBERS)).replace(THIN, " ")


# --- the verdict ----------------------------------------------------------------------------


def test_verdict_says_from_when_the_drive_is_steady_and_why_it_is_slow() -> None:
    text = say(client())
    start = re.search(r"Steady from (?:(\d+) min )?(\d+) s on", text)
    assert start is not None
    assert 200 <= 60 * int(start[1] or 0) + int(start[2]) <= 300
    assert "Dips come back every 40 s and last about 3.0 s." in text
    assert "goes mostly to waiting for dies busy with garbage collection: " in text
    assert "Write amplification (WA): 6.9" in text


def test_verdict_of_a_drifting_run_says_so() -> None:
    drifting = samples.simulated("drifting", knee=1800, fresh=60_000, floor=5_000)
    assert "Not steady: even in the last quarter five rounds lie " in say(drifting)


def test_verdict_of_a_short_run_does_not_claim_a_steady_state() -> None:
    text = say(samples.measured(seconds=12))
    assert "Too short to say whether it is steady: 12 one-second values, at least 20" in text
    assert "Even" not in text


def test_verdict_numbers_are_those_of_the_window_judged() -> None:
    trace = traces(enterprise())[0]
    assert trace.consistency is not None
    window = trace.rate[trace.steadiness.start :]
    low, high = NUMBERS.count(window.min()), NUMBERS.count(window.max())
    sentences = verdict.of_trace(trace, ENGLISH, NUMBERS)
    assert sentences[0].startswith(f"Per-second IOPS: {low} to {high}, a spread of ")
    assert window.max() < 40_000  # the fresh drive's 65 000 are not in it


def test_comparison_names_the_faster_run_the_longer_tail_and_its_cause() -> None:
    text = " ".join(
        verdict.of_comparison(traces(enterprise(), client()), ENGLISH, NUMBERS)
    ).replace(THIN, " ")
    factor = re.search(r"enterprise does ([\d.]+) times the IOPS of client\.", text)
    assert factor is not None
    assert float(factor[1]) == pytest.approx(33_700 / 6_900, rel=0.03)
    assert "The p99.9 latency of client is " in text
    assert "of the time goes to waiting for dies busy with garbage collection." in text
    assert "All runs are at steady state" in text


def test_equal_runs_are_called_equal() -> None:
    text = " ".join(verdict.of_comparison(traces(client(), client()), ENGLISH, NUMBERS))
    assert "client (1) and client (2) do the same IOPS" in text


# --- why ------------------------------------------------------------------------------------


def test_the_causes_of_write_amplification_add_up_to_that_of_the_window() -> None:
    trace = traces(client())[0]
    assert list(trace.causes) == ["host", "collection", "wear"]
    assert sum(trace.causes.values()) == pytest.approx(6.9, rel=0.01)
    text = why.written(trace.causes, ENGLISH, NUMBERS)
    assert text.startswith("Each unit that the host writes costs 6.9")
    assert "1.00 for the host’s data itself, 5.9" in text
    assert text.endswith(" and 0.01 for wear levelling.")


def test_each_point_says_in_a_sentence_where_its_time_went() -> None:
    worst = traces(client())[0].attribution[-1]
    assert worst.largest is not None
    text = why.time(worst, ENGLISH, NUMBERS)
    share = NUMBERS.percent(worst.largest[1])
    assert text.startswith(f"{share} waiting for dies busy with garbage collection")
    assert text.count(", ") < why.PARTS_MAX
    small = Breakdown("mean", 1, {"cells": 96.0, "channel": 4.0})
    assert why.time(small, ENGLISH, NUMBERS).replace(THIN, " ") == (
        "96 % sensing, programming and erasing cells."
    )


def test_a_measured_run_has_no_causes_and_no_wear() -> None:
    trace = traces(samples.measured())[0]
    assert trace.causes == {}
    assert trace.wa is None
    assert trace.wear is None


def test_a_simulated_run_shows_its_smart_counters_once_and_how_long_it_lasts(
    tmp_path: Path,
) -> None:
    job = "[w]\nrw=randwrite\nbs=4k\niodepth=32\ntime_based\nruntime=3\n"
    job += job.replace("[w]\n", "[again]\nstonewall\n")
    small = {"capacity": "64MiB", "nand.rated_pe_cycles": 50}
    result = ssdlab.run(job, on="lab-reference", set=small, prepare="steady")
    folder = result.save(tmp_path / "runs")
    path = tmp_path / "report.html"
    render([Result.load(folder)], path)
    text = path.read_text("utf-8").replace(THIN, " ")
    used = result.ssdlab["wear"]["percentage_used"]
    assert text.count("percentage used</th>") == 1
    assert f'data-v="{used}">{used} %</td>' in text
    assert f"ssdlab explain {folder.name} repeats this run" in text
    trace = traces(result)[-1]
    assert trace.wear is not None and trace.wear.endurance is not None
    lasts = trace.wear.endurance
    # That of the job's own window, not of the whole run.
    assert lasts.write_amplification == pytest.approx(trace.wa)
    total = NUMBERS.written(lasts.host_bytes).replace(THIN, " ")
    wa = NUMBERS.wa(trace.wa)
    said = f"At this write amplification ({wa}) the rated 50 cycles last for {total} of host"
    assert said in text


def test_causes_of_the_core_have_names_purposes_and_colours() -> None:
    source = Path(__file__).parents[1] / "crates/ssdlab/src/device/ssd/counters.rs"
    causes = set(re.findall(r'"programs_(\w+)"', source.read_text("utf-8")))
    assert causes == set(style.CAUSE_COLOURS)
    for cause in causes:
        assert f"cause.{cause}" in catalogue.EN
        assert f"for.{cause}" in catalogue.EN


# --- what is shown --------------------------------------------------------------------------


def test_fill_stage_is_told_from_the_test() -> None:
    _, sections = model.build([enterprise(), samples.measured()])
    assert [(s.name, s.fill, len(s.traces)) for s in sections] == [
        ("fill", True, 1),
        ("random-write", False, 2),
    ]


def test_write_amplification_of_the_fill_is_not_that_of_the_test() -> None:
    trace = traces(client())[0]
    assert trace.start_s == 60
    assert trace.wa == pytest.approx(6.9, rel=0.01)
    assert trace.flash is not None
    assert trace.flash["time_s"][0] == 1
    assert trace.flash["wa"][0] == pytest.approx(1.0)


def test_shares_of_the_time_by_part_add_up() -> None:
    found = traces(client())[0].part_shares(400)
    assert found is not None
    seconds, shares = found
    assert len(seconds) == 400
    assert seconds[0] == pytest.approx(3.0)  # the middle of seconds 1 to 5
    assert np.sum(list(shares.values()), axis=0) == pytest.approx(np.ones(400), abs=1e-6)
    assert "array" not in shares


def test_directions_of_a_mixed_job_are_apart() -> None:
    found = traces(samples.mixed())
    assert [t.ddir for t in found] == ["read", "write"]
    assert found[1].iops / found[0].iops == pytest.approx(0.43, abs=0.01)


def test_breakdown_of_a_whole_run_is_marked_as_shared() -> None:
    result = client()
    found = result.document["ssdlab"]["attribution"]
    found["write"] = found.pop("jobs")["random-write"]["write"]
    assert traces(result)[0].attribution_shared
    assert not traces(client())[0].attribution_shared


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (NUMBERS.plain(1234567.0), f"1{THIN}234{THIN}567"),
        (NUMBERS.plain(1234), f"1{THIN}234"),
        (NUMBERS.count(12.345), "12.3"),
        (NUMBERS.count(2_345_678), f"2.35{THIN}million"),
        (NUMBERS.latency(163), f"163{THIN}ns"),
        (NUMBERS.latency(75_321), f"75.3{THIN}µs"),
        (NUMBERS.latency(999_999), f"1{THIN}ms"),
        (NUMBERS.latency(12_345_678), f"12.3{THIN}ms"),
        (NUMBERS.latency(float("nan")), "–"),
        (NUMBERS.rate(55_600_000), f"55.6{THIN}MB/s"),
        (NUMBERS.size(4 * 2**30), f"4{THIN}GiB"),
        (NUMBERS.size(160_041_885_696), f"160{THIN}GB"),
        (NUMBERS.percent(0.714), f"71{THIN}%"),
        (NUMBERS.percent(0.041), f"4.1{THIN}%"),
        (NUMBERS.seconds(1210), f"20{THIN}min 10{THIN}s"),
        (NUMBERS.seconds(36_000), f"10{THIN}h 00{THIN}min"),
        (NUMBERS.tick(2e6), f"2{THIN}ms"),
        (NUMBERS.tick(0.5), f"0.5{THIN}ns"),
    ],
)  # fmt: skip
def test_numbers_have_three_figures_and_a_unit(text: str, value: str) -> None:
    assert text == value


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


# --- words ----------------------------------------------------------------------------------


def test_every_text_is_used_and_every_used_text_exists() -> None:
    sources = (
        "\n".join(
            path.read_text("utf-8")
            for pattern in ("*.py", "*.j2")
            for path in REPORT.glob(pattern)
            if path.name != "catalogue.py"
        )
        + Path(catalogue.__file__).read_text("utf-8").split("class Catalogue")[1]
    )
    plain = set(re.findall(r"""["']([a-z_]+(?:\.[a-z0-9_.]+)+|language|none)["']""", sources))
    stems = set(re.findall(r"""f["']([a-z]+\.)\{""", sources))
    stems |= set(re.findall(r"""["']([a-z]+\.[a-z_]*)["'] ~""", sources))
    unused = [
        key
        for key in catalogue.EN
        if key not in plain
        and f'"{key}"' not in sources
        and not any(key.startswith(stem) for stem in stems)
    ]
    assert unused == []
    prefixes = {key.split(".")[0] for key in catalogue.EN if "." in key}
    missing = [k for k in plain if k.split(".")[0] in prefixes and k not in catalogue.EN]
    assert [k for k in missing if not k.endswith((".", "py", "j2", "css", "js", "json"))] == []


def test_template_has_no_words_of_its_own() -> None:
    template = (REPORT / "page.html.j2").read_text("utf-8")
    bare = re.sub(r"\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", " ", template, flags=re.DOTALL)
    assert re.findall(r"[^\W\d_]{2,}", bare) == []


def test_parts_of_the_core_have_names_phrases_and_colours() -> None:
    source = Path(__file__).parents[1] / "crates/ssdlab/src/stats/parts.rs"
    text = source.read_text()
    names = re.findall(r'^    "(\w+)",$', text, flags=re.MULTILINE)
    count = re.search(r"const PARTS: usize = (\d+);", text)
    assert count is not None
    assert len(names) == int(count[1])
    for name in names:
        assert f"part.{name}" in catalogue.EN
        assert f"phrase.{name}" in catalogue.EN
    assert list(style.PART_COLOURS) == names


# --- the file -------------------------------------------------------------------------------


def test_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    pages = []
    for name in ("a.html", "b.html"):
        render([samples.simulated("x", seconds=200, knee=20)], tmp_path / name)
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]


def test_two_runs_of_2000_s_take_less_than_3_s(tmp_path: Path) -> None:
    results = [enterprise(), client()]
    started = time.process_time()
    render(results, tmp_path / "report.html")
    assert time.process_time() - started < 3
    assert (tmp_path / "report.html").stat().st_size < 4_000_000


def test_nothing_points_to_another_place(tmp_path: Path) -> None:
    render([client(), samples.measured()], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    outside = re.sub(r"<script[^>]*>.*?</script>", "", page, flags=re.DOTALL)
    assert re.findall(r"\w+://", outside) == []
    assert set(re.findall(r"""(?:src|href)=["']?([^"'> ]*)""", outside)) == {"data:,"}
    assert "default-src 'none'" in outside
    assert "connect-src" not in outside


def test_a_report_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one result"):
        render([], tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    for place in (tmp_path / "missing" / "report.html", tmp_path / "taken"):
        with pytest.raises(SsdlabError, match=f"^{place}: "):
            render([samples.measured()], place)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_result_without_series_and_bins_is_reported(tmp_path: Path) -> None:
    result = samples.measured(seconds=5)
    result.series_frame = result.series_frame.head(0)
    del result.document["jobs"][0]["write"]["clat_ns"]["bins"]
    del result.document["ssdlab"]
    render([result], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "There is no series to see how even that was." in page
    assert '<div class="chart"' not in page


def test_a_result_without_jobs_is_reported(tmp_path: Path) -> None:
    result = samples.measured(seconds=5)
    result.document["jobs"] = []
    render([result], tmp_path / "report.html")
    assert "/tmp/scratch.bin" in (tmp_path / "report.html").read_text("utf-8")


def test_a_long_series_is_thinned_and_says_so(tmp_path: Path) -> None:
    result = samples.measured(seconds=100_000)
    render([result], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert f"from 100{THIN}000 points, extremes kept" in page


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
def test_every_chart_is_drawn_on_a_desktop(desktop: browser.Tab) -> None:
    found = desktop.run(COLOURED)
    # fill 2, iops 3, throughput 3, distribution 1, latency 3, parts 2, WA, collection, free 2 each
    assert len(found) == 20
    assert min(found) > 100, found
    quiet(desktop)


@in_browser
def test_every_chart_is_drawn_on_a_phone(phone: browser.Tab) -> None:
    found = phone.run(COLOURED)
    assert len(found) == 20
    assert min(found) > 100, found
    quiet(phone)


@in_browser
def test_phone_page_does_not_scroll_sideways(phone: browser.Tab) -> None:
    phone.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    phone.settle()
    assert phone.run("document.documentElement.scrollWidth") == 390
    cut = "[...document.querySelectorAll('.scroll')].some(s => s.scrollWidth > s.clientWidth)"
    assert not phone.run(cut)  # wide tables become blocks


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
def test_buttons_switch_scale_and_time(page: Path) -> None:
    with browser.tab() as tab:
        tab.open(page, 1280)
        before = tab.run("Bokeh.documents[0].get_model_by_name('job-1-x0').start")
        assert before < 0
        tab.run("document.querySelector('button[data-scale=linear]').click()")
        tab.run("document.querySelector('button[data-time=window]').click()")
        tab.settle()
        shown = "[...document.querySelectorAll('.scale')].map(e => e.offsetParent !== null)"
        assert tab.run(shown) == [False, True]
        found = tab.run(COLOURED)
        assert len(found) == 20
        assert min(found) > 100, found
        assert 150 < tab.run("Bokeh.documents[0].get_model_by_name('job-1-x0').start") < 300
        assert tab.run(
            "[...document.querySelectorAll('#job-1 .switch button')].map(b => b.ariaPressed)"
        ) == ["false", "true", "false", "true"]
        tab.run("document.querySelector('button[data-time=whole]').click()")
        assert tab.run("Bokeh.documents[0].get_model_by_name('job-1-x0').start") == before
        quiet(tab)


@in_browser
def test_zoom_is_linked_between_runs_of_like_length(desktop: browser.Tab) -> None:
    names = desktop.run(
        """[...document.querySelectorAll('#job-1 .scale[data-scale=log] .chart')].map(chart => {
             const roots = JSON.parse(document.getElementById('roots').textContent);
             const id = Object.keys(roots).find(key => roots[key] === chart.id);
             const figure = Bokeh.documents[0].get_model_by_id(id);
             return [figure.x_range.name, figure.y_range.name];
           })"""
    )
    assert names == [
        ["job-1-x0", "job-1-iops_log0"],
        ["job-1-x0", "job-1-iops_log0"],
        ["job-1-x1", "job-1-iops_log0"],  # 30 s beside 2000 s would be a sliver
    ]


@in_browser
def test_tables_are_copied_as_plain_values(desktop: browser.Tab) -> None:
    text = desktop.run("ssdlab.tsv(document.querySelector('#summary table'))")
    lines = [line.split("\t") for line in text.splitlines()]
    assert lines[0][:6] == ["run", "IOPS", "min", "max", "spread", "CV"]
    assert "p99.9 (ns)" in lines[0]
    assert [line[0] for line in lines[1:]] == ["enterprise", "client", f"{EVIL} †"]
    assert float(lines[1][1]) == pytest.approx(verdict.mean_iops(traces(enterprise())[0]))
    assert {len(line) for line in lines} == {len(lines[0])}
    desktop.click("#summary .copy")
    desktop.wait("document.querySelector('#summary .copy').textContent === 'Copied'")


@in_browser
def test_results_can_be_taken_out_whole(desktop: browser.Tab) -> None:
    texts: list[Any] = desktop.run(
        """Promise.all([...document.querySelectorAll('script[id^="raw-"]')].map(async e =>
             [e.id, e.dataset.encoding, await (await ssdlab.raw(e)).text()]))"""
    )
    found = {name: (encoding, text) for name, encoding, text in texts}
    assert found["raw-0-series"][0] == "gzip+base64"
    assert found["raw-0-rig"][0] == "json"
    assert json.loads(found["raw-0-result"][1]) == enterprise().document
    series = pl.read_csv(found["raw-1-series"][1].encode())
    assert series["ios"].to_list() == client().series_frame["ios"].to_list()
    assert found["raw-2-job"][1].endswith(f"; {EVIL} $$x^2$$\n")
    assert found["raw-0-rig"][1] == enterprise().rig_toml


@in_browser
def test_names_stay_text(desktop: browser.Tab) -> None:
    headings = desktop.run("[...document.querySelectorAll('.verdicts h3')].map(h => h.innerText)")
    assert headings[2].startswith(EVIL)
    assert (
        desktop.run("document.querySelectorAll('b:not(.stack b):not(.checks > li > b)').length")
        == 0
    )
    quiet(desktop)
