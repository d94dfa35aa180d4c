"""A number of a run is the same wherever it is shown, and comes from one measurement window."""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import foreign_samples as samples
import ssdlab
from conftest import Cli, histogram_of, make_result
from ssdlab import units
from ssdlab.analysis import attribution, noise
from ssdlab.analysis.stats import around
from ssdlab.answer import MARK
from ssdlab.arrays.measured import measured_drive
from ssdlab.checks.facts import facts
from ssdlab.engine.sources import earlier
from ssdlab.fits.observations import observations
from ssdlab.fits.predict import loads_of
from ssdlab.histogram import PERCENTILES, Histogram, merge
from ssdlab.imports import logs
from ssdlab.jobfile import JobText
from ssdlab.results import LATENCY_SCHEMA, Result
from ssdlab.store import RunStore

FILL_THEN_RANDOM = """[global]
direct=1
ioengine=libaio
size=100%
[fill]
rw=write
bs=128k
iodepth=8
[random]
stonewall
rw=randwrite
bs=4k
iodepth=32
norandommap
time_based
runtime=60
"""
LOG = """[log]
rw=write
bs=4k
fsync=1
size=64m
time_based
runtime=30
"""
SMALL: dict[str, object] = {"ftl.gc.scope": "die"}
"""Dies that collect by themselves drift apart: the rate falls for minutes, and what takes longest
in the burst is not what does so later."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result, Result]:
    """A store with two runs: fresh drive, burst, steady state; with 7 % and 25 % to spare."""
    root = tmp_path_factory.mktemp("runs")
    found = []
    for spare in (0.07, 0.25):
        own = SMALL | {"ftl.over_provisioning": spare}
        result = ssdlab.run(FILL_THEN_RANDOM, on="demo-client", set=own)
        result.save(root)
        found.append(result)
    return root, found[0], found[1]


def name_of(result: Result) -> str:
    assert result.folder is not None
    return result.folder.name


# --- every command, every quantity ------------------------------------------------------------


def summary_of_run(cli: Cli, root: Path, result: Result, tmp_path: Path) -> Any:
    job = tmp_path / "again.fio"
    job.write_text(result.job_text)
    spare = "0.07" if "0.07" in str(result.rig_toml) else "0.25"
    own = SMALL | {"ftl.over_provisioning": spare}
    sets = [word for key, value in own.items() for word in ("--set", f"{key}={value}")]
    said = cli("run", job, "--on", "demo-client", *sets, "--out", tmp_path / "other", "--json", "-")
    return json.loads(said.out)["ssdlab"]["summary"]


def summary_of_show(cli: Cli, root: Path, result: Result, tmp_path: Path) -> Any:
    return json.loads(cli("show", name_of(result), "--out", root, "--json", "-").out)["summary"]


def summary_of_compare(cli: Cli, root: Path, result: Result, tmp_path: Path) -> Any:
    other = next(e.id for e in RunStore(root).entries() if e.id != name_of(result))
    said = cli("compare", name_of(result), other, "--out", root, "--json", "-")
    return json.loads(said.out)["sides"][0]["summary"][0]


def summary_of_explain(cli: Cli, root: Path, result: Result, tmp_path: Path) -> Any:
    said = cli("explain", name_of(result), "--no-try", "--out", root, "--json", "-")
    return json.loads(said.out)["summary"]


def summary_of_page(cli: Cli, root: Path, result: Result, tmp_path: Path) -> Any:
    page = tmp_path / "report.html"
    assert cli("report", name_of(result), "--out", root, "-o", page).status == 0
    found = re.search(r'id="answer" [^>]*>(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    assert found is not None
    packed = json.loads(found[1])
    text = gzip.decompress(base64.b64decode(packed)) if not packed.startswith("{") else packed
    return json.loads(text)["summary"]


@pytest.mark.parametrize(
    "told_by",
    [summary_of_run, summary_of_show, summary_of_compare, summary_of_explain, summary_of_page],
)
def test_every_command_tells_the_same_numbers(
    told_by: Callable[..., Any], kept: tuple[Path, Result, Result], cli: Cli, tmp_path: Path
) -> None:
    root, narrow, roomy = kept
    for result in (narrow, roomy):
        assert told_by(cli, root, result, tmp_path) == result.summary()


def test_terminal_rows_of_a_comparison_are_the_summary(
    kept: tuple[Path, Result, Result], cli: Cli
) -> None:
    root, narrow, roomy = kept
    said = cli("compare", name_of(narrow), name_of(roomy), "--out", root, "--json", "-")
    rows = json.loads(said.out)["rows"]
    keys = {
        "IOPS": ("iops", 1.0),
        "throughput": ("bw_bytes", 1e-6),
        "write amplification": ("waf", 1.0),
    }
    keys |= {
        f"{n} latency": (f"clat_{n.replace('.', '')}_ns", 1e-3) for n in ("p50", "p99", "p99.9")
    }
    keys |= {f"{n} latency": (f"clat_{n}_ns", 1e-3) for n in ("mean", "max")}
    seen = 0
    for side, result in enumerate((narrow, roomy)):
        for told in result.summary():
            for row in rows:
                if row["section"] == f"{told['job']}, {told['ddir']}":
                    key, factor = keys[row["name"]]
                    assert row["values"][side] == pytest.approx(told[key] * factor, rel=1e-12), key
                    seen += 1
    assert seen == 2 * 2 * len(keys)


# --- the window -------------------------------------------------------------------------------


def test_the_fresh_burst_is_in_no_number(kept: tuple[Path, Result, Result]) -> None:
    _, narrow, _ = kept
    told = narrow.summary()[1]
    whole = narrow.frame().row(1, named=True)
    assert told["steady"] and told["window_s"][0] > 0
    assert told["iops"] < 0.6 * whole["iops"], "the burst is in the mean over the whole job"
    assert told["waf"] > 3 * narrow.ssdlab["jobs"][1]["waf"] / 2


def test_write_amplification_of_jobs_that_begin_and_end_within_a_second() -> None:
    job = (
        "[a]\nrw=randwrite\nbs=4k\niodepth=16\nsize=100%\nnorandommap\ntime_based\nruntime=300ms\n"
    )
    later = "".join(job.replace("[a]", f"[{name}]\nstonewall") for name in "bc")
    later = later.replace("runtime", "ramp_time=150ms\nruntime")
    about = SMALL | {"ftl.over_provisioning": 0.07}
    result = ssdlab.run(job + later, on="demo-client", prepare="random:1", set=about)
    own = [one["waf"] for one in result.ssdlab["jobs"]]
    assert [one["waf"] for one in result.summary()] == pytest.approx(own, rel=1e-6)
    assert len(set(own)) == 3


def test_where_the_time_of_the_slowest_went_is_of_the_window(
    kept: tuple[Path, Result, Result],
) -> None:
    _, narrow, _ = kept
    own = narrow.measurement.of("random", "write")
    assert own is not None and own.latency is not None and not own.window.whole
    inside, _ = attribution.of_direction(narrow, own)
    assert narrow.attribution is not None
    told = narrow.attribution["jobs"]["random"]["write"]
    whole = attribution.breakdowns(narrow.attribution["parts"], told)
    assert [one.whole for one in inside] == [False] * (1 + len(attribution.PERCENTS))
    mean, worst = inside[0], inside[-1]
    assert mean.ios == own.ios and mean.total_ns == pytest.approx(own.latency.mean_ns)
    assert own.latency.max_ns / 1.2 < worst.total_ns <= own.latency.max_ns
    assert worst.total_ns < whole[-1].total_ns, "the slowest of all is in the burst"
    largest = [max(one.shares, key=one.shares.__getitem__) for one in (worst, whole[-1])]
    assert largest == ["die_collection", "die_collection"]
    for shown, other in zip(inside, whole, strict=True):
        assert shown.ns != other.ns, shown.point


def test_a_run_that_kept_no_latency_classes_says_that_they_are_of_the_whole_job(
    kept: tuple[Path, Result, Result], cli: Cli, tmp_path: Path
) -> None:
    root, narrow, _ = kept
    assert narrow.folder is not None
    old = shutil.copytree(narrow.folder, tmp_path / narrow.folder.name)
    table = old / "latency.parquet"
    pl.read_parquet(table).select(LATENCY_SCHEMA.names()).write_parquet(table)
    told = cli("explain", old, "--no-try")
    assert told.status == 0
    assert "Of the latency at p99.9 (whole job): " in told.out
    assert "Runs of older versions: of the whole job" in told.out
    own = cli("explain", name_of(narrow), "--no-try", "--out", root).out
    assert "Of the latency at p99.9: " in own and "older versions" not in own


def test_rate_depth_and_latency_of_a_window_keep_littles_law(
    kept: tuple[Path, Result, Result],
) -> None:
    for result in kept[1:]:
        told = result.summary()[1]
        assert told["iops"] * told["lat_mean_ns"] / 1e9 == pytest.approx(32, rel=0.02)


def test_over_provisioning_makes_a_difference_that_is_seen(
    kept: tuple[Path, Result, Result], cli: Cli
) -> None:
    root, narrow, roomy = kept
    said = cli("compare", name_of(roomy), name_of(narrow), "--out", root, "--json", "-")
    rows = json.loads(said.out)["rows"]
    iops = next(r for r in rows if r["section"] == "random, write" and r["name"] == "IOPS")
    assert iops["differences"][0]["verdict"] == "worse"
    assert iops["differences"][0]["share"] < -0.3


def test_endurance_is_that_of_the_window(kept: tuple[Path, Result, Result], cli: Cli) -> None:
    root, narrow, _ = kept
    said = cli("explain", name_of(narrow), "--no-try", "--out", root, "--json", "-")
    wear = json.loads(said.out)["wear"]
    assert wear["endurance"]["write_amplification"] == pytest.approx(
        narrow.summary()[1]["waf"], rel=0.01
    )


def test_a_job_that_is_not_steady_is_doubted_and_measured_whole() -> None:
    falling = FILL_THEN_RANDOM.replace("runtime=60", "runtime=24")
    result = ssdlab.run(falling, on="demo-client", set=SMALL | {"ftl.over_provisioning": 0.07})
    told, whole = result.summary()[1], result.frame().row(1, named=True)
    from ssdlab.checks import examine, of_result

    steady = [one for one in examine(of_result(result)) if one.name == "steady"]
    assert told["steady"] == (steady[0].status == "good")
    if not told["steady"]:
        assert told["window_s"][0] == 0
        assert told["iops"] == whole["iops"] and told["clat_p99_ns"] == whole["clat_p99_ns"]


JOBS = ("fill", "random", "short")
SHORT_AT_THE_END = (
    FILL_THEN_RANDOM
    + """[short]
stonewall
rw=randwrite
bs=4k
iodepth=1
time_based
runtime=2
"""
)


def test_a_job_that_is_too_short_puts_no_other_in_doubt(cli: Cli, tmp_path: Path) -> None:
    # Until twice the room beside the data is written, the random writes would be in doubt as well.
    job = SHORT_AT_THE_END.replace("runtime=60", "runtime=260")
    result = ssdlab.run(job, on="demo-client", set=SMALL | {"ftl.over_provisioning": 0.25})
    folder = result.save(tmp_path)
    rows = cli("show", folder, "--out", tmp_path).out.splitlines()
    marked = {name: [MARK in row for row in rows if row.startswith(f"{name}\t")] for name in JOBS}
    assert marked == {"fill": [False], "random": [False], "short": [True]}
    told = result.summary()[-1]
    assert told["window_s"][0] == 0, "the whole job"
    assert told["lat_p99_ns"] == told["clat_p99_ns"] > 0, "no time passes before submission"


def test_the_mean_of_the_seconds_is_the_rate_of_the_job() -> None:
    # The burst of the random writes falls into what the filling leaves of a second.
    fill = "[fill]\nrw=write\nbs=64k\nsize=100%\n"
    job = f"{fill}[w]\nstonewall\nrw=randwrite\nbs=4k\niodepth=16\nruntime=5\ntime_based\n"
    drive = {"capacity": "256MiB", "ftl.over_provisioning": 0.2}
    result = ssdlab.run(job, on="lab-reference", set=drive)
    even = result.measurement.jobs[-1].directions[0].consistency
    assert even is not None and even.max > 2 * even.mean
    assert even.mean == pytest.approx(result.summary()[-1]["iops"], rel=1e-6)


def test_a_job_of_less_than_two_seconds_has_no_slowest_second() -> None:
    for size, told in (("8m", False), ("2g", True)):
        result = ssdlab.run(f"[w]\nrw=write\nbs=1m\nsize={size}\n", on="demo-client")
        assert (result.summary()[0]["window_s"][1] > 2) is told
        assert ("Per-second IOPS" in json.dumps(result.report.answer.as_json())) is told
        # A chart over time of one second would be empty.
        assert any("over time" in title for title in result.report.charts) is told


def test_what_the_time_went_into_stands_beside_the_latency_of_the_tables(
    kept: tuple[Path, Result, Result],
) -> None:
    _, result, _ = kept
    told = result.summary()[1]
    figures = [figure for section in result.report.answer.sections for figure in section.figures]
    shown = [one.x_names for one in figures if one.group == "Where the time goes"][-1]
    assert shown == [
        f"{point}: {units.latency(told[f'clat_{key}_ns'])}"
        for point, key in (("mean", "mean"), ("p99", "p99"), ("p99.9", "p999"), ("worst", "max"))
    ]


def test_headline_and_table_name_the_same_start() -> None:
    job = Path(__file__).parents[1] / "examples" / "mixed.fio"
    small = {"capacity": "256MiB"}
    result = ssdlab.run(job, on="lab-reference", set=small, prepare="steady")
    assert 1 < result.summary()[-1]["window_s"][0] % 1 * 10 < 9  # no whole second
    lead = result.report.answer.lead
    row = next(one for one in lead.tables if one.title == "Measured").rows[-1]
    assert f"(from {row[-1]})" in lead.sentences[0]


def test_a_mix_is_told_of_jobs_that_mix() -> None:
    job = "[global]\nrwmixread=70\nsize=1m\n[m]\nrw=randrw\n[w]\nstonewall\nrw=write\n"
    titles = [one.title for one in ssdlab.run(job, on="demo-client").report.answer.sections]
    assert [("rwmixread 70" in title) for title in titles if ":" in title] == [True, False]


@pytest.mark.parametrize(
    ("options", "block", "reads", "in_flight"),
    [
        ({"rw": "randread", "bs": "8k", "iodepth": "32", "numjobs": "2"}, 8192, 100, 2),
        ({"rw": "randread", "bs": "4k,8k"}, 4096, 100, 1),
        ({"rw": "randread", "bs": "4k", "kb_base": "1000"}, 4000, 100, 1),
        ({"rw": "randread", "blocksize": "64k"}, 65536, 100, 1),
        ({"rw": "randread", "bsrange": "8k-8k"}, 8192, 100, 1),
        ({"readwrite": "randrw", "rwmixwrite": "30"}, 4096, 70, 1),
        ({"rw": "randread", "iodepth": "1k", "ioengine": "libaio"}, 4096, 100, 1024),
        ({"rw": "randread", "bssplit": "4k/50:64k/50"}, None, 100, 1),
    ],
)  # fmt: skip
def test_all_who_ask_what_a_job_asks_for_are_told_the_same(
    options: dict[str, str], block: int | None, reads: int, in_flight: int, tmp_path: Path
) -> None:
    sides = {"read": samples.direction()} | ({"write": samples.direction()} if reads < 100 else {})
    document = samples.document(samples.job("a", options, **sides))
    path = samples.write(tmp_path / "a.json", document)
    drive = tmp_path / "drive"
    document["ssdlab"] = {"target": {"kind": "fio", "name": str(drive), "capacity_bytes": 1 << 30}}
    result = Result("a", document, "", logs.NONE.series)
    result.save(tmp_path / "runs")

    (work,) = facts("a", result, 1 << 30).works
    assert (work.block, work.read_percent, work.in_flight) == (block, reads, in_flight)
    assert {key: value for key, value, _ in measured_drive(path).tree().values()}[
        "concurrency"
    ] == str(in_flight)
    speeds = earlier(drive, RunStore(tmp_path / "runs"))
    job = JobText("job", "[a]\n" + "".join(f"{one}={options[one]}\n" for one in options), tmp_path)
    if block is None:
        assert speeds is None and not observations(result)
        with pytest.raises(ssdlab.InputError, match="no job"):
            loads_of(job)
        return
    assert speeds is not None
    (shape,) = speeds.known
    assert (shape.bs, shape.in_flight) == (block, in_flight)
    (found,) = observations(result)
    ((_, predicted),) = loads_of(job)
    for load in (found.load, predicted):
        assert (load.bs, load.reads) == (block, reads / 100)
    assert found.load.depth == in_flight


def test_window_latencies_are_those_of_its_segments(kept: tuple[Path, Result, Result]) -> None:
    """Reckoned once more from the kept table, without the classes that the summary is made by."""
    _, narrow, _ = kept
    frame = narrow.latency_frame
    assert frame is not None
    told = narrow.summary()[1]
    starts = narrow.ssdlab["jobs"][1]["measured_from_s"]
    rows = [
        row
        for row in frame.iter_rows(named=True)
        if row["job"] == "random" and row["kind"] == "clat"
        and row["time_s"] > starts + told["window_s"][0] + 1e-6
    ]  # fmt: skip
    counts: dict[int, int] = {}
    for row in rows:
        for place, count in zip(row["bins"], row["counts"], strict=True):
            counts[place] = counts.get(place, 0) + count
    ios = sum(counts.values())
    assert ios == told["ios"] == sum(row["ios"] for row in rows)
    assert told["clat_mean_ns"] == pytest.approx(sum(row["sum_ns"] for row in rows) / ios)
    assert told["clat_max_ns"] == max(row["max_ns"] for row in rows)
    for name, percent in (("p50", 50.0), ("p99", 99.0), ("p999", 99.9)):
        seen, place = 0, -1
        for place, count in sorted(counts.items()):  # noqa: B007 - what follows asks for it
            seen += count
            if 1000 * seen >= round(1000 * percent) * ios / 100:
                break
        shift = max((place >> 6) - 1, 0)
        low = place if place < 128 else (1 << (shift + 6)) + ((place & 63) << shift)
        width = 1 if place < 128 else 1 << shift
        assert low <= told[f"clat_{name}_ns"] <= low + width


def test_a_p99_that_three_stalls_decide_is_known_to_be_unsure() -> None:
    """Three seconds of sixty hold all slow I/Os: whether a run sees two or four is chance."""
    quick, slow = 1_000_000, 80_000_000
    stalled, even = np.zeros((60, 2)), np.zeros((60, 2))
    stalled[:] = (1000, 0)
    stalled[[11, 30, 47]] = (600, 400)
    even[:] = (980, 20)  # as many slow ones, one after another
    values = (quick, slow)
    rare = noise.percentile(stalled, values, 98.0)
    often = noise.percentile(even, values, 99.0)
    assert rare is not None and often is not None
    assert rare.value in values and often.value == slow
    (low, high), (near, far) = interval(rare), interval(often)
    assert low < quick < slow < high, "the interval holds both"
    assert 0.9 * slow < near < far < 1.1 * slow, "no surer than a bin, and not much less"


def interval(percentile: noise.Sampled) -> tuple[float, float]:
    """Its ends, as comparisons take them: as factors of the value."""
    found = around(math.log(percentile.value), percentile.error / percentile.value, percentile.df)
    return math.exp(found.low), math.exp(found.high)


# --- flushes ----------------------------------------------------------------------------------


def test_flushes_are_a_direction_of_their_own(tmp_path: Path, cli: Cli) -> None:
    result = ssdlab.run(LOG, on="demo-client", set=SMALL)
    directions = {one["ddir"]: one for one in result.summary()}
    assert set(directions) == {"write", "sync"}
    flush = directions["sync"]
    assert flush["ios"] and flush["lat_mean_ns"] > 0
    assert flush["clat_mean_ns"] is None and flush["bw_bytes"] is None
    # One write and one flush after the other: their times fill the time.
    write = directions["write"]
    together = write["lat_mean_ns"] * write["iops"] + flush["lat_mean_ns"] * flush["iops"]
    assert together / 1e9 == pytest.approx(1, rel=0.02)
    folder = result.save(tmp_path)
    said = cli("show", folder, "--out", tmp_path).out
    assert re.search(r"log\s+sync", said) and "lat mean" in said


def test_a_percentile_between_two_modes_may_be_either() -> None:
    drawn = np.random.default_rng(3).binomial(100, 0.502, 600)
    found = noise.percentile(np.stack([drawn, 100 - drawn], axis=1), np.array([10.0, 1000.0]), 50.0)
    assert found is not None
    assert found.value == 10.0
    low, high = interval(found)
    assert high >= 1000.0
    assert low > 0.09 and high < 1100.0, "no farther than the other mode, and a bin"


# --- percentiles ------------------------------------------------------------------------------


def test_one_slow_io_in_a_thousand_is_not_the_p999() -> None:
    found = histogram_of({100: 999, 1_000_000: 1})
    assert found.percentile_ns(99.9) == 100
    assert found.rank_ns(99.91) == 1_000_000


def test_a_percentile_that_the_number_of_ios_does_not_carry_is_none() -> None:
    few = histogram_of({100: 86})
    assert few.percentile_ns(50.0) == 100
    assert few.percentile_ns(99.9) is None
    assert histogram_of({100: 1000}).percentile_ns(99.9) == 100
    assert few.summary("clat")["clat_p999_ns"] is None


def test_histograms_merged_are_the_histogram_of_all() -> None:
    a, b = histogram_of({100: 5, 3_000: 2}), histogram_of({100: 1, 70_000: 4})
    both = merge([a, None, b])
    whole = histogram_of({100: 6, 3_000: 2, 70_000: 4})
    assert both is not None
    assert (both.counts == whole.counts).all()
    assert both.summary("lat") == whole.summary("lat")


def test_the_kind_asked_for_is_never_answered_with_another() -> None:
    stats = {"total_ios": 3, "lat_ns": {"N": 3, "mean": 5.0, "max": 7, "bins": {"5": 3}}}
    assert Histogram.of_document(stats, "clat") is None
    found = Histogram.of_document(stats, "lat")
    assert found is not None and found.mean_ns == 5.0
    silent = {"total_ios": 3, "clat_ns": {"N": 3, "mean": 5.0, "min": 5, "max": 5}}
    known = Histogram.of_document(silent, "clat")
    assert known is not None and known.mean_ns == 5.0
    assert all(known.summary("clat")[f"clat_{name}_ns"] is None for name in PERCENTILES)


# --- results ----------------------------------------------------------------------------------


def test_results_can_be_compared_for_equality() -> None:
    assert make_result("x") == make_result("x")
    assert make_result("x") != make_result("y")
    assert make_result("x", device=True) != make_result("x")
    assert make_result("x") != "x"


def test_a_run_that_is_loaded_again_says_the_same(kept: tuple[Path, Result, Result]) -> None:
    _, narrow, _ = kept
    assert narrow.folder is not None
    assert Result.load(narrow.folder) == narrow
    assert Result.load(narrow.folder).summary() == narrow.summary()
