"""Analysis, on series and distributions whose answers are known."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ssdlab.analysis import comparison, consistency, flash, series, steady
from ssdlab.analysis.attribution import breakdowns
from ssdlab.histogram import BINS, VALUES, Histogram, bin_index, merge
from ssdlab.wear import Stretch, grown


def rng() -> np.random.Generator:
    return np.random.default_rng(20240917)


# --- steady state ---------------------------------------------------------------------------


def test_pts_rule_reproduces_the_published_sample() -> None:
    window = steady.pts_window([228.90, 240.21, 240.60, 240.71, 240.71])
    assert window.mean == pytest.approx(238.226, abs=1e-9)
    assert window.excursion == pytest.approx(11.81, abs=1e-9)
    assert window.excursion_share == pytest.approx(0.0496, abs=5e-5)
    assert window.slope == pytest.approx(2.412, abs=1e-9)
    assert window.slope_excursion == pytest.approx(9.648, abs=1e-9)
    assert window.slope_share == pytest.approx(0.0405, abs=5e-5)
    assert window.steady


@pytest.mark.parametrize(
    ("rounds", "is_steady"),
    [
        ([100, 100, 100, 100, 100], True),
        ([90, 110, 100, 110, 90], True),  # spans exactly 20 %
        ([89, 111, 100, 111, 89], False),  # spans 22 %, though level
        ([95.1, 97.55, 100, 102.45, 104.9], True),  # rises by 9.8 %
        ([94.5, 97.25, 100, 102.75, 105.5], False),  # spans 11 %, but rises by 11 %
        ([105.5, 102.75, 100, 97.25, 94.5], False),  # and falls by 11 %
        ([0, 0, 0, 0, 0], False),
    ],
)
def test_pts_rule_has_both_limits(rounds: list[float], is_steady: bool) -> None:
    assert steady.pts_window(rounds).steady is is_steady


def test_pts_window_has_five_rounds() -> None:
    with pytest.raises(ValueError, match="5 rounds, found 4"):
        steady.pts_window([1, 2, 3, 4])


def fresh_drive(n: int, knee: int, noise: float = 0.0) -> np.ndarray[Any, Any]:
    """Fast until the knee, then one eighth of that."""
    y = np.where(np.arange(n) < knee, 80_000.0, 10_000.0)
    return y * (1 + noise * rng().standard_normal(n))


@pytest.mark.parametrize("knee", [0, 40, 400, 1000])
def test_steady_window_starts_at_the_knee(knee: int) -> None:
    found = steady.judge(fresh_drive(2000, knee, noise=0.05))
    assert found.steady
    # Up to ten of the first samples may be higher or lower than all later ones by chance.
    assert knee <= found.start <= knee + 10
    assert fresh_drive(2000, knee, noise=0.05)[found.start :].max() < 20_000


def test_a_knee_too_late_in_the_run_is_not_steady() -> None:
    found = steady.judge(fresh_drive(2000, 1700))
    assert found.verdict == "drifting"
    assert found.start == 1500


def test_a_steadily_falling_series_is_not_steady() -> None:
    assert steady.judge(np.linspace(100, 40, 1000)).verdict == "drifting"


def test_a_slow_exponential_settles_where_its_rest_is_within_the_limits() -> None:
    t = np.arange(3000)
    found = steady.judge(10_000 + 60_000 * np.exp(-t / 200))
    assert found.steady
    # With e = 60 000 exp(-s/200) and rounds of R = (3000-s)/5, q = exp(-R/200), round k has the
    # mean 10 000 + e 200/R q^k (1-q). Half of the slope limit is met from s = 735 on. The first ten
    # samples after that are higher than all others, and starts are tried every 3 s.
    assert 745 <= found.start <= 748


def test_a_window_that_only_just_passes_is_taken_if_there_is_no_better() -> None:
    found = steady.judge(100 + 12 * np.clip((np.arange(1000) - 750) / 250, 0, 1))
    assert found.steady
    assert found.start == 0
    assert found.window is not None
    # Rounds 100, 100, 100, 100.24 and 107.2: the line through them rises by 5.8 %.
    assert found.window.slope_share == pytest.approx(0.0577, abs=2e-4)


def test_regular_dips_do_not_hide_the_steady_state() -> None:
    t = np.arange(2000)
    y = np.where(t < 300, 80_000.0, np.where(t % 40 < 12, 1_000.0, 10_000.0))
    found = steady.judge(y)
    assert found.steady
    assert found.start == 300


def test_twenty_samples_are_needed_to_judge() -> None:
    assert steady.judge(np.full(19, 5.0)).verdict == "short"
    assert steady.judge(np.full(20, 5.0)).steady


# --- consistency ----------------------------------------------------------------------------


def test_consistency_numbers_of_a_known_series() -> None:
    found = consistency.measure([100.0] * 98 + [40.0, 142.0])
    assert found.mean == pytest.approx(99.82)
    assert (found.min, found.max) == (40.0, 142.0)
    assert found.spread == pytest.approx(102 / 142)
    assert found.share_below_half == pytest.approx(0.01)
    assert found.stddev == pytest.approx(np.std([100.0] * 98 + [40.0, 142.0]))
    assert found.cv == pytest.approx(found.stddev / 99.82)
    for percent, one in ((1, found.p1), (99, found.p99)):
        assert one == pytest.approx(np.percentile([100.0] * 98 + [40.0, 142.0], percent))


def test_bins_count_by_their_length() -> None:
    found = consistency.measure([900.0, 100.0, 100.0], np.array([0.25, 1.0, 1.25]))
    assert found.mean == pytest.approx(180.0)
    assert found.stddev == pytest.approx(np.std([900.0] + [100.0] * 9))
    assert found.share_below_half == 0.0
    # Of all alike the mean would be 367, of which two thirds are below half.


def test_spread_is_that_of_the_published_consistency_example() -> None:
    assert consistency.measure([29150.0, 34865.0]).spread == pytest.approx(0.164, abs=5e-4)


def test_an_empty_series_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        consistency.measure([])


@pytest.mark.parametrize(("period", "width"), [(30, 1), (30, 3), (60, 10), (17, 4)])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_dips_are_found_with_their_period_and_width(period: int, width: int, noise: float) -> None:
    t = np.arange(1200)
    y = np.where(t % period < width, 30.0, 100.0) * (1 + noise * rng().standard_normal(1200))
    found = consistency.periodicity(y)
    assert found is not None
    assert found.period == period
    assert found.width == pytest.approx(width, rel=0.01, abs=5 * noise)
    assert found.dips


def test_bursts_are_not_called_dips() -> None:
    t = np.arange(600)
    found = consistency.periodicity(np.where(t % 20 < 3, 100.0, 10.0))
    assert found is not None
    assert not found.dips
    assert found.width == pytest.approx(3, rel=0.01)


@pytest.mark.parametrize("values", [np.full(600, 7.0), np.linspace(1, 9, 600), np.arange(5.0)])
def test_nothing_repeats_in_a_level_or_straight_or_short_series(
    values: np.ndarray[Any, Any],
) -> None:
    assert consistency.periodicity(values) is None


def test_noise_has_no_period() -> None:
    generator = rng()
    found = [consistency.periodicity(generator.standard_normal(1000)) for _ in range(50)]
    assert found == [None] * 50


# --- latency --------------------------------------------------------------------------------


def test_bins_are_fios() -> None:
    # Values that fio 3.33 itself wrote into JSON+ files.
    written = [163, 165, 167, 223, 434, 532, 23680]
    assert VALUES[bin_index(written)].tolist() == written
    assert bin_index([127, 128, 129]).tolist() == [127, 128, 128]
    assert bin_index(2**62) == BINS - 1


def test_a_bin_is_at_most_one_128th_off() -> None:
    ns = np.geomspace(1, 1.6e10, 5000).astype(int)
    assert (np.abs(VALUES[bin_index(ns)] - ns) <= ns / 128).all()


def bins(pairs: dict[int, int], **more: float) -> Histogram:
    clat = {"bins": {str(k): v for k, v in pairs.items()}, **more}
    found = Histogram.of_document({"clat_ns": clat}, "clat")
    assert found is not None
    return found


def test_percentiles_of_a_known_distribution() -> None:
    found = bins({1000: 900, 2000: 90, 5000: 9, 70000: 1}, max=69000)
    assert found.ios == 1000
    told = [found.percentile_ns(p) for p in (50, 90, 90.1, 99, 99.9)]
    assert told == [VALUES[bin_index(ns)] for ns in (1000, 1000, 2000, 2000, 5000)]
    assert found.rank_ns(100) == 69000  # never above the maximum
    assert found.mean_ns is not None
    middles = VALUES[bin_index([1000, 2000, 5000, 70000])]
    assert found.mean_ns == pytest.approx(float(np.dot(middles, [900, 90, 9, 1])) / 1000)
    # No bin is further off than a 128th.
    assert abs(found.mean_ns - (900_000 + 180_000 + 45_000 + 70_000) / 1000) <= found.mean_ns / 128


def test_no_percentile_is_below_the_smallest_latency() -> None:
    found = bins({100_280: 1000}, mean=100_280, min=100_280, max=100_280)
    assert VALUES[bin_index(100_280)] == 99_840
    assert [found.percentile_ns(p) for p in (50, 99, 99.9)] == [100_280] * 3


def test_the_distribution_ends_at_one_in_n() -> None:
    value, slower = bins({10: 50, 20: 49, 30: 1}, min=10).slower()
    assert value.tolist() == [10, 10, 20, 30]
    assert slower == pytest.approx([1.0, 0.5, 0.01, 0.01])


def test_the_distribution_begins_with_all_ios_at_the_quickest() -> None:
    for quickest in ({}, {"min": 100_280.0}):
        value, slower = bins({100_280: 98, 200_000: 2}, **quickest).slower()
        assert (value[0], slower[0]) == (99_840, 1.0), "a line from 100 %, however few bins follow"


def test_merged_histograms_count_together() -> None:
    a = bins({10: 3, 20: 1}, mean=12.5, min=10, max=20)
    b = bins({20: 2, 40: 2}, mean=30, min=20, max=40)
    both = merge([a, b])
    assert both is not None
    assert {int(at): int(both.counts[at]) for at in np.flatnonzero(both.counts)} == {
        10: 3,
        20: 3,
        40: 2,
    }
    assert both.mean_ns == pytest.approx(21.25)
    assert (both.min_ns, both.max_ns) == (10, 40)
    assert merge([]) is None


@pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
def test_percentiles_are_those_that_fio_prints(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [
        "fio", "--name=x", "--ioengine=null", "--rw=randrw", "--bs=4k", "--size=16m",
        "--iodepth=4", "--loops=4", "--output-format=json+", f"--output={out}",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    job = json.loads(out.read_text())["jobs"][0]
    compared = 0
    for ddir in ("read", "write"):
        found = Histogram.of_document(job[ddir], "clat")
        assert found is not None
        assert found.ios == job[ddir]["total_ios"]
        for percent, ns in job[ddir]["clat_ns"]["percentile"].items():
            ends = job[ddir]["clat_ns"]
            assert found.rank_ns(float(percent)) == max(ends["min"], min(ns, ends["max"]))
            compared += 1
    assert compared >= 30


# --- attribution ----------------------------------------------------------------------------

PARTS = ["link", "die_collection", "cells"]


def test_each_point_takes_the_class_its_rank_lies_in() -> None:
    direction = {
        "total_ns": [1000, 5000, 4000],
        "by_latency": [
            {"upper_ns": 64, "ios": 0, "ns": [0, 0, 0]},
            {"upper_ns": 256, "ios": 9, "ns": [90, 0, 810]},
            {"upper_ns": 128, "ios": 985, "ns": [900, 985, 2900]},
            {"upper_ns": 512, "ios": 5, "ns": [9, 3000, 200]},
            {"upper_ns": 1024, "ios": 1, "ns": [1, 1015, 90]},
        ],
    }
    mean, p99, p999, worst = breakdowns(PARTS, direction)
    assert mean.total_ns == pytest.approx(10.0)
    assert mean.ios == 1000
    assert p99.ios == 9  # ranks 986 to 994
    assert max(p99.shares, key=p99.shares.__getitem__) == "cells"
    assert p99.shares["cells"] == pytest.approx(0.9)
    assert "die_collection" not in p99.ns
    assert p999.ios == 5  # ranks 995 to 999
    assert max(p999.shares, key=p999.shares.__getitem__) == "die_collection"
    assert p999.shares["die_collection"] == pytest.approx(3000 / 3209)
    assert worst.ios == 1
    assert worst.total_ns == 1106
    for found in (mean, p99, p999, worst):
        assert sum(found.shares.values()) == pytest.approx(1)


def test_too_few_ios_have_no_p999_to_break_down() -> None:
    few = {"total_ns": [999, 0, 0], "by_latency": [{"upper_ns": 64, "ios": 999, "ns": [999, 0, 0]}]}
    assert [found.point for found in breakdowns(PARTS, few)] == ["mean", "p99", "worst"]


def test_no_io_has_no_breakdown() -> None:
    assert breakdowns(PARTS, {"total_ns": [0, 0, 0], "by_latency": []}) == []


# --- series ---------------------------------------------------------------------------------


def rows(
    times: list[float], ios: list[int], length: list[float] | float = 1.0, **more: list[float]
) -> pl.DataFrame:
    lengths = length if isinstance(length, list) else [length] * len(ios)
    columns: dict[str, Any] = {
        "time_s": times,
        "ios": ios,
        "iops": [n / s for n, s in zip(ios, lengths, strict=True)],
        "bytes": [4096 * n for n in ios],
        "lat_mean_ns": [100.0] * len(ios),
        "lat_p99_ns": [200] * len(ios),
        "lat_max_ns": [300] * len(ios),
    }
    return pl.DataFrame({**columns, **more})


@pytest.mark.parametrize("rest", [0.05, 0.336, 0.7])
def test_a_short_last_interval_is_no_worker_of_the_one_before(rest: float) -> None:
    found = series.per_second(
        rows([1.0, 2.0, 3.0, 3.0 + rest], [10, 20, 30, 40], [1.0, 1.0, 1.0, rest])
    )
    assert found["ios"].to_list() == [10, 20, 30, 40]
    assert found["iops"].to_list() == pytest.approx([10, 20, 30, 40 / rest])


def test_workers_that_end_one_after_another_are_one_job() -> None:
    found = series.per_second(
        rows([1.0, 1.004, 2.0, 2.01, 2.3, 2.36], [5, 6, 7, 8, 3, 4], [1, 1, 1, 1, 0.3, 0.35])
    )
    assert found["ios"].to_list() == [11, 15, 7]


def test_a_second_without_completions_counts_as_zero() -> None:
    found = series.per_second(rows([101.0, 102.0, 104.0, 107.0], [10, 20, 40, 50]))
    assert found["time_s"].to_list() == [1, 2, 3, 4, 5, 6, 7]
    assert found["iops"].to_list() == [10, 20, 0, 40, 0, 0, 50]
    assert found["bw_bytes"].to_list() == [4096 * n for n in (10, 20, 0, 40, 0, 0, 50)]
    assert found["lat_mean_ns"].to_list() == [100, 100, None, 100, None, None, 100]
    assert found["lat_max_ns"].to_list() == [300, 300, None, 300, None, None, 300]


def test_a_recorded_row_without_completions_has_no_latency() -> None:
    found = series.per_second(rows([1.0, 2.0], [10, 0]))
    assert found["iops"].to_list() == [10, 0]
    assert found["lat_p99_ns"].to_list() == [200, None]


def test_rows_of_uneven_length_keep_their_rates() -> None:
    # A job that begins at 37.6 on a clock of whole seconds, with a long first and last row.
    uneven = rows([39.0, 40.0, 41.3], [14, 10, 13], length=[1.4, 1.0, 1.3])
    assert series.start_s(uneven) == pytest.approx(37.6)
    found = series.per_second(uneven)
    assert found["iops"].to_list() == pytest.approx([10, 10, 10])
    assert found["time_s"].to_list() == pytest.approx([1.4, 2.4, 3.7])


def test_a_direction_that_starts_late_was_idle_before() -> None:
    found = series.per_second(rows([13.0, 14.0], [10, 10]), start_s=10.0)
    assert found["time_s"].to_list() == [1, 2, 3, 4]
    assert found["iops"].to_list() == [0, 0, 10, 10]


def test_short_intervals_gather_to_seconds() -> None:
    times = [0.25 * (i + 1) for i in range(8)]
    found = series.per_second(
        rows(times, [1, 2, 3, 4, 5, 5, 5, 5], 0.25, lat_mean_ns=[10, 20, 30, 40, 1, 1, 1, 1]),
        interval_s=0.25,
    )
    assert found["iops"].to_list() == [10, 20]
    assert found["time_s"].to_list() == [1, 2]
    assert found["lat_mean_ns"].to_list() == [pytest.approx(30.0), pytest.approx(1.0)]


def test_a_last_bin_of_less_than_half_a_second_is_dropped() -> None:
    times = [0.25 * (i + 1) for i in range(5)]
    assert len(series.per_second(rows(times, [1] * 5, 0.25), interval_s=0.25)) == 1
    assert len(series.per_second(rows([0.25], [1], 0.25), interval_s=0.25)) == 1


def test_workers_of_one_name_are_added() -> None:
    found = series.per_second(
        rows([1.0, 1.004, 2.001, 2.0], [10, 5, 20, 5], part_link_ns=[1, 2, 3, 4])
    )
    assert found["iops"].to_list() == pytest.approx([15, 25])
    assert found["part_link_ns"].to_list() == [3, 7]


def test_long_intervals_stay_as_they_are() -> None:
    found = series.per_second(rows([10.0, 20.0], [100, 300], 10.0), interval_s=10)
    assert found["time_s"].to_list() == [10, 20]
    assert found["iops"].to_list() == [10, 30]


def test_log_times_that_are_a_little_late_keep_their_second() -> None:
    found = series.per_second(rows([1.001, 2.004, 2.999, 4.02], [10, 20, 30, 40]))
    assert found["iops"].to_list() == [10, 20, 30, 40]


def test_an_empty_series_stays_empty() -> None:
    assert series.per_second(rows([1.0], [1]).head(0)).is_empty()
    assert series.start_s(rows([1.0], [1]).head(0)) == 0.0


# --- flash ----------------------------------------------------------------------------------


def counters() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "time_s": [1.0, 2.0, 3.0],
            "a/unit_bytes": [4096] * 3,
            "b/unit_bytes": [16384] * 3,
            "a/host_bytes_written": [409_600, 819_200, 819_200],
            "b/host_bytes_written": [1_638_400, 4_915_200, 4_915_200],
            "a/programs_host": [100, 200, 200],
            "b/programs_host": [100, 300, 300],
            "a/programs_collection": [50, 350, 350],
            "b/programs_collection": [0, 150, 160],
            "a/erases": [1, 4, 4],
            "a/free_blocks": [9, 5, 5],
            "b/free_blocks": [9, 7, 7],
        }
    )


def test_write_amplification_of_each_second_counts_every_program() -> None:
    found = flash.activity(counters())
    assert found is not None
    # By 4 KiB, of which b's units hold four. Second 1: 100 + 400 of the host and 50 relocated;
    # second 2: 100 + 800 and 300 + 600; second 3: nothing of the host.
    assert found["wa"].to_list() == [1.1, 2.0, None]
    assert found["relocated_bytes"].to_list() == [50 * 4096, 900 * 4096, 40 * 4096]
    assert found["erases"].to_list() == [1, 3, 0]
    assert found["free_blocks"].to_list() == [18, 12, 12]


def test_folding_counts_as_programs_and_is_told_apart() -> None:
    frame = counters().with_columns(pl.Series("a/programs_fold", [0, 60, 90]))
    found = flash.activity(frame)
    assert found is not None
    assert found["folded_bytes"].to_list() == [0, 60 * 4096, 30 * 4096]
    assert found["wa"].to_list() == [1.1, pytest.approx(1860 / 900), None]
    without = flash.activity(frame.with_columns(pl.lit(0).alias("a/programs_fold")))
    assert without is not None
    assert "folded_bytes" not in without.columns


def test_what_was_written_before_the_run_does_not_count() -> None:
    frame = pl.DataFrame(
        {
            "time_s": [0.0, 1.0, 2.0],
            "host_units_written": [1000, 1100, 1300],
            "programs_host": [1000, 1100, 1300],
            "programs_collection": [7000, 7050, 7250],
            "flash_erases": [40, 41, 43],
            "free_superblocks": [9, 8, 7],
        }
    )
    found = flash.activity(frame)
    assert found is not None
    assert found["time_s"].to_list() == [1, 2]
    assert found["wa"].to_list() == [1.5, 2.0]
    assert found["erases"].to_list() == [1, 2]
    assert found["free_blocks"].to_list() == [8, 7]
    assert Stretch(last(frame), grown(frame)).amplification == pytest.approx(550 / 300)
    # Nor where there is a row just after the start, as of a job that begins then.
    soon = pl.concat([frame[:1], frame]).with_columns(time_s=pl.Series([0.0, 1e-8, 60.0, 120.0]))
    again = flash.activity(soon, 60.0)
    assert again is not None
    assert again["wa"].to_list() == [None, 1.5, 2.0]


def test_the_last_ios_of_a_run_are_no_second_of_their_own() -> None:
    """They complete just after its time is up, and what collection does then is no rate."""
    last = pl.DataFrame(
        {
            "time_s": [2.0004],
            "host_units_written": [1310],
            "programs_host": [1310],
            "programs_collection": [7250],
        }
    )
    whole = pl.DataFrame(
        {
            "time_s": [0.0, 1.0, 2.0],
            "host_units_written": [1000, 1100, 1300],
            "programs_host": [1000, 1100, 1300],
            "programs_collection": [7000, 7050, 7250],
        }
    )
    found = flash.activity(pl.concat([whole, last]))
    assert found is not None
    assert found["time_s"].to_list() == [1, 2.0004]
    assert found["wa"].to_list() == [1.5, pytest.approx(410 / 210)]
    # More than half of a second is one.
    longer = flash.activity(pl.concat([whole, last.with_columns(time_s=pl.lit(2.6))]))
    assert longer is not None
    assert longer["wa"].to_list() == [1.5, 2.0, 1.0]


def last(frame: pl.DataFrame) -> dict[str, Any]:
    return frame.drop("time_s").row(-1, named=True)


def test_write_amplification_between_two_instants() -> None:
    frame = counters()
    during = Stretch(last(frame), grown(frame, 1, 3))
    assert during.causes == {"host": 1.0, "collection": pytest.approx(940 / 900)}
    assert during.amplification == pytest.approx(1840 / 900)
    assert Stretch(last(frame), grown(frame, 2, 3)).amplification is None


def test_a_device_without_flash_has_no_write_amplification() -> None:
    frame = pl.DataFrame({"time_s": [1.0], "reads": [3]})
    assert flash.activity(frame) is None
    assert Stretch(last(frame), grown(frame)).amplification is None


# --- comparison -----------------------------------------------------------------------------


def document(*jobs: tuple[str, dict[str, str]]) -> dict[str, Any]:
    return {
        "global options": {"bs": "4k"},
        "jobs": [{"jobname": name, "job options": options} for name, options in jobs],
    }


def test_jobs_are_aligned_by_name_and_then_by_workload() -> None:
    first = document(("fill", {"rw": "write"}), ("main", {"rw": "randwrite", "iodepth": "32"}))
    second = document(("main", {"rw": "randwrite", "iodepth": "32"}), ("read", {"rw": "randread"}))
    third = document(("probe", {"readwrite": "randwrite", "iodepth": "32"}))
    groups = comparison.align([first, second, third])
    assert [[(m.run, m.name) for m in g.members] for g in groups] == [
        [(0, "fill")],
        [(0, "main"), (1, "main"), (2, "probe")],
        [(1, "read")],
    ]


def test_workers_of_one_name_are_one_workload() -> None:
    found = comparison.workloads(0, document(("w", {"rw": "read"}), ("w", {"rw": "read"})))
    assert [len(w.jobs) for w in found] == [2]
    assert found[0].options == {"bs": "4k", "rw": "read"}
