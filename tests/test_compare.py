"""Comparisons: intervals hold what they promise, equal runs are equal, differences are found."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import browser
import ssdlab
from conftest import Cli, make_result
from ssdlab import histogram
from ssdlab.analysis import noise, steady
from ssdlab.analysis.differences import (
    BIN_ERROR,
    NONE_SEEN,
    ComparedQuantity,
    Difference,
    NoisyValue,
    quantities,
)
from ssdlab.analysis.differences import compare as rows_of
from ssdlab.analysis.stats import (
    Estimate,
    around,
    holm,
    mean_of,
    p_two_sided,
    repeats_needed,
    t_cdf,
    t_quantile,
    variance_of,
    welch,
)
from ssdlab.answer import Cell, Curve, Figure
from ssdlab.answers.comparison import answer, overlay
from ssdlab.results import Result
from ssdlab.store import RunStore
from ssdlab.studies import compare

SMALL = {"capacity": "256MiB"}
JOB = "[w]\nrw=randwrite\nbs=4k\niodepth=8\nioengine=libaio\nnorandommap\ntime_based\nruntime=60\n"


@pytest.mark.parametrize(
    ("share", "df", "expected"),
    [
        (0.975, 1, 12.7062),
        (0.975, 2, 4.30265),
        (0.975, 5, 2.57058),
        (0.95, 10, 1.81246),
        (0.995, 3, 5.84091),
        (0.8, 4, 0.940965),
        (0.975, 1e6, 1.95997),
    ],
)
def test_quantiles_of_t_are_those_of_the_tables(share: float, df: float, expected: float) -> None:
    assert t_quantile(share, df) == pytest.approx(expected, rel=1e-5)
    assert t_quantile(1 - share, df) == pytest.approx(-expected, rel=1e-5)
    assert t_cdf(t_quantile(share, df), df) == pytest.approx(share)


def test_chances_of_t_are_symmetric_and_end_at_one() -> None:
    assert p_two_sided(0.0, 3) == pytest.approx(1.0)
    assert p_two_sided(2.0, 7) == pytest.approx(p_two_sided(-2.0, 7))
    assert (t_cdf(math.inf, 2), t_cdf(-math.inf, 2)) == (1.0, 0.0)
    with pytest.raises(ValueError, match="degrees of freedom"):
        t_quantile(0.5, 0)


def leaves_out_zero(found: Estimate | None) -> bool:
    return found is not None and (found.low > 0 or found.high < 0)


def test_welch_gives_the_numbers_of_a_worked_example() -> None:
    """Samples, t and degrees of freedom as worked through in textbooks of Welch's test."""
    first = [
        27.5,
        21.0,
        19.0,
        23.6,
        17.0,
        17.9,
        16.9,
        20.1,
        21.9,
        22.6,
        23.1,
        19.6,
        19.0,
        21.7,
        21.4,
    ]
    second = [
        27.1,
        22.0,
        20.8,
        23.4,
        23.4,
        23.5,
        25.8,
        22.0,
        24.8,
        20.2,
        21.9,
        22.1,
        22.9,
        20.5,
        24.4,
    ]
    found = welch(first, second)
    assert found is not None
    assert found.p == pytest.approx(0.021, abs=0.001)
    assert leaves_out_zero(found)


def test_equal_values_have_a_mean_that_is_theirs_and_no_difference() -> None:
    value = 1466.368
    assert math.fsum([value] * 3) / 3 != value
    assert mean_of([value] * 3) == value
    found = welch([math.log(value)] * 3, [math.log(value)])
    assert found is not None and found.value == 0


def test_welch_with_one_run_on_a_side_takes_the_spread_of_the_other() -> None:
    assert welch([1.0], [2.0]) is None
    found = welch([10.0], [10.0, 10.1, 9.9])
    assert found is not None and not leaves_out_zero(found)
    assert leaves_out_zero(welch([12.0], [10.0, 10.1, 9.9]))


def test_coarse_values_leave_room_for_their_bins() -> None:
    coarse = welch([1.0, 1.0], [1.004, 1.004], resolution=0.0045)
    assert coarse is not None and not leaves_out_zero(coarse)
    assert leaves_out_zero(welch([1.0, 1.0], [1.004, 1.004]))


def test_holm_corrects_as_in_the_article() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_repeats_needed_grow_with_the_square_of_the_noise() -> None:
    few, many = repeats_needed(0.05, 0.05), repeats_needed(0.5, 0.05)
    assert few is not None and many is not None
    assert few == 10  # textbooks: 9.9 pairs for an effect of one standard deviation
    assert many == pytest.approx(100 * 7.85, rel=0.05)
    assert repeats_needed(1.0, 0.0) is None


# --- noise


def correlated(source: np.random.Generator, n: int, share: float) -> Any:
    """A series around 100 of which neighbours are alike (AR(1))."""
    shocks = source.normal(size=n + 500)
    values = list(itertools.accumulate(shocks, lambda before, shock: share * before + shock))
    return 100 + np.array(values[500:])


@pytest.mark.parametrize(
    ("share", "n", "least"), [(0.0, 60, 0.91), (0.5, 300, 0.90), (0.8, 600, 0.88)]
)
def test_intervals_hold_the_truth_as_often_as_they_say(share: float, n: int, least: float) -> None:
    source = np.random.default_rng(7)
    held = 0
    trials = 200
    for trial in range(trials):
        found = noise.resample(correlated(source, n, share), seed=trial)
        assert found is not None
        interval = around(found.value, found.error, found.df)
        held += interval.low <= 100 <= interval.high
    assert least <= held / trials <= 0.985


def test_a_window_chosen_since_it_is_flat_knows_what_was_left_out() -> None:
    source = np.random.default_rng(1)
    held = {"window": 0, "alone": 0}
    trials = 0
    while trials < 300:
        y = correlated(source, 60, 0.9)
        y = 1000 + 100 * (y - 100) * math.sqrt(1 - 0.9**2)  # swings of 10 %
        found = steady.judge(y)
        if not found.steady or (alone := noise.resample(y[found.start :])) is None:
            continue
        trials += 1
        for name, one in (("window", noise.of_window(y, found.start)), ("alone", alone)):
            assert one is not None and one.value == alone.value
            interval = around(one.value, one.error, one.df)
            held[name] += interval.low <= 1000 <= interval.high
    # 78 % without it; 95 % would be right.
    assert held["alone"] / trials < 0.8 and held["window"] / trials > 0.84


def test_what_goes_before_a_window_counts_no_further_than_it_is_alike() -> None:
    y = 1000 + 30 * np.random.default_rng(1).normal(size=100)
    alone = noise.resample(y[40:])
    y[:30] *= 3
    assert alone is not None and (found := noise.of_window(y, 40)) is not None
    assert found.value == alone.value and alone.error <= found.error < 1.3 * alone.error
    assert noise.of_window(y[40:], 0) == alone


@pytest.mark.parametrize(
    ("share", "wanders", "n"),
    [(0.9, 0.0, 60), (0.99, 0.0, 300), (0.98, 2.0, 1000)],
)
def test_equal_runs_of_a_long_memory_are_rarely_told_apart(
    share: float, wanders: float, n: int
) -> None:
    """Levels that wander for about as long as a run lasts, also under noise `wanders` times as
    large as a step: a run knows little of its mean, and says so."""
    source = np.random.default_rng(5)
    trials = 200

    def drawn() -> NoisyValue:
        y = correlated(source, n, share) + wanders * source.normal(size=n)
        found = noise.resample(y + 900)
        assert found is not None
        return NoisyValue(found.value, found.error / found.value, found.df)

    seen = 0
    for _ in range(trials):
        pair = ComparedQuantity("", "rate", "IOPS", "higher", ((drawn(),), (drawn(),)))
        difference = rows_of([pair])[0].differences[0]
        seen += difference is not None and difference.seen
    assert seen / trials <= 0.09  # 5 %, and three standard errors


def test_a_naive_interval_would_hold_far_less() -> None:
    """What the blocks are for: neighbours that are alike are fewer observations than they seem."""
    source = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        y = correlated(source, 600, 0.8)
        half = t_quantile(0.975, 599) * math.sqrt(variance_of(list(y)) / 600)
        held += bool(abs(y.mean() - 100) <= half)
    assert held / 200 < 0.6


def latencies(source: np.random.Generator, ios: int, level: float, wide: float) -> tuple[Any, Any]:
    """A minute of `ios` latencies each second, log-normal around `level`, in fio's bins."""
    columns = np.arange(histogram.bin_index([10**8])[0])
    drawn = histogram.bin_index(source.lognormal(math.log(level), wide, (60, ios)))
    counts = np.array([np.bincount(second, minlength=len(columns)) for second in drawn])
    return counts, histogram.VALUES[columns].astype(float)


def seen_of_percentile(percent: float, ios: int, wide: float, times: float) -> float:
    """The share of pairs that differ, the second `times` as slow; those of unknown noise do not."""
    source = np.random.default_rng(11)
    seen, trials = 0, 100
    for _ in range(trials):
        level = 1e5 * source.uniform(0.9, 1.1)
        values = []
        for factor in (1.0, times):
            counts, places = latencies(source, ios, level * factor, wide)
            found = noise.percentile(counts, places, percent)
            known = (found.error / found.value, found.df) if found else ()
            values.append(NoisyValue(found.value if found else 1.0, *known))
        pair = ComparedQuantity("", "p", "us", "lower", tuple((v,) for v in values), BIN_ERROR)
        difference = rows_of([pair])[0].differences[0]
        seen += difference is not None and difference.seen
    return seen / trials


def test_a_tail_that_a_run_has_hardly_seen_differs_from_no_other() -> None:
    """1,200 I/Os, of which the slowest in a thousand is the second or so."""
    assert seen_of_percentile(99.9, 20, 0.7, 1.0) == 0


def test_percentiles_that_differ_by_more_than_their_bins_are_told_apart() -> None:
    assert seen_of_percentile(50, 500, 0.01, 1.03) >= 0.8
    assert seen_of_percentile(50, 500, 0.01, 1.0) <= 0.05


def test_blocks_grow_with_what_neighbours_share() -> None:
    source = np.random.default_rng(3)
    lengths = [
        np.mean([noise.block_length(correlated(source, 500, share)) for _ in range(20)])
        for share in (0.0, 0.5, 0.9)
    ]
    assert lengths[0] < 3
    assert lengths[0] < lengths[1] < lengths[2]


def test_blocks_keep_a_dip_that_repeats_whole() -> None:
    y = np.full(400, 100.0) + np.random.default_rng(1).normal(0, 0.5, 400)
    y[::40] = 20.0
    found = noise.resample(y)
    assert found is not None and found.block >= 40


def test_too_short_a_series_gives_no_interval() -> None:
    assert noise.resample([1.0] * 9) is None
    assert noise.resample([float("nan")] * 50) is None


def test_the_same_series_gives_the_same_error() -> None:
    y = correlated(np.random.default_rng(1), 100, 0.3)
    one, two = noise.resample(y), noise.resample(y)
    assert one is not None and two is not None
    assert (one.value, one.error, one.df) == (two.value, two.error, two.df)


# --- rows


def single(value: float, error: float) -> tuple[NoisyValue, ...]:
    return (NoisyValue(value, error, 30.0),)


def test_a_difference_within_the_noise_is_not_seen() -> None:
    q = ComparedQuantity("", "IOPS", "IOPS", "higher", (single(1000, 0.02), single(1020, 0.02)))
    row = rows_of([q])[0]
    assert row.differences[0] is not None and not row.differences[0].seen
    assert compare.verdict(row.differences[0], "higher") == NONE_SEEN


@pytest.mark.parametrize(
    ("better", "word"), [("higher", "worse"), ("lower", "better"), ("", "lower")]
)
def test_a_difference_beyond_the_noise_has_a_direction(better: Any, word: str) -> None:
    q = ComparedQuantity("", "x", "", better, (single(1000, 0.02), single(800, 0.02)))
    found = rows_of([q])[0].differences[0]
    assert found is not None and found.seen
    assert found.share == pytest.approx(-0.2)
    assert compare.verdict(found, better) == word


def test_many_comparisons_ask_for_more() -> None:
    """A difference that would be seen alone is only perhaps one among twenty."""
    border = ComparedQuantity("", "x", "", "", (single(1000, 0.02), single(1065, 0.02)))
    equal = ComparedQuantity("", "y", "", "", (single(1000, 0.02), single(1000, 0.02)))
    alone = rows_of([border])[0].differences[0]
    among = rows_of([border, *[equal] * 20])[0].differences[0]
    assert alone is not None and alone.seen
    assert among is not None and not among.seen and among.perhaps


def test_missing_and_zero_values_are_no_exception() -> None:
    none = ComparedQuantity("", "x", "", "", ((NoisyValue(None),), single(1, 0.1)))
    zero = ComparedQuantity("", "x", "", "", ((NoisyValue(0.0),), (NoisyValue(0.0),)))
    grown = ComparedQuantity("", "x", "", "", ((NoisyValue(0.0),), (NoisyValue(5.0),)))
    assert rows_of([none])[0].differences == (None,)
    assert rows_of([zero])[0].differences == (Difference(0.0),)
    assert rows_of([grown])[0].differences == (None,)
    assert compare.verdict(None, "") == "not on both sides"


def test_twice_and_half_are_as_far_from_equal() -> None:
    up = rows_of([ComparedQuantity("", "x", "", "", (single(1, 0.1), single(2, 0.1)))])[
        0
    ].differences[0]
    down = rows_of([ComparedQuantity("", "x", "", "", (single(2, 0.1), single(1, 0.1)))])[
        0
    ].differences[0]
    assert up is not None and down is not None and up.p is not None and down.p is not None
    assert up.p == pytest.approx(down.p)
    assert (1 + up.share) * (1 + down.share) == pytest.approx(1.0)


def test_the_interval_of_a_value_is_that_of_its_differences() -> None:
    """A median that may be the slowest I/O is unsure by factors, not below nothing."""
    unsure = ComparedQuantity("", "p50", "us", "lower", (single(50, 2.0), single(50, 0.0)))
    (row,) = rows_of([unsure])
    (found,), own = row.differences, row.intervals[0]
    assert found is not None and found.low is not None and found.high is not None
    assert own is not None and own[0] > 0
    assert 50 / own[1] == pytest.approx(1 + found.low)
    assert 50 / own[0] == pytest.approx(1 + found.high)


def test_a_number_whose_interval_is_as_wide_as_itself_is_no_measurement() -> None:
    rows = rows_of(
        [
            ComparedQuantity("", "IOPS", "", "higher", (single(100, 0.9), single(100, 0.1))),
            ComparedQuantity("", "waf", "", "lower", (single(2, 0.1), single(2, 0.1))),
        ]
    )
    parties = tuple(
        compare.Party(name, (compare.Contender(name, name, (name,), {}, []),)) for name in "xy"
    )
    lead = answer(compare.Comparison(parties, tuple(rows))).sections[0]
    first, second = lead.tables[0].rows
    unknown, known = (cell for cell in first if isinstance(cell, Cell) and cell.value == 100)
    assert unknown.text == "100 (by ±100 % and more)"
    assert (unknown.low, unknown.high) == rows[0].intervals[0], "scripts have the numbers"
    assert known.text.startswith("100 ± ") and "more" not in str(second)
    said = [text for text in lead.sentences if "not a measurement" in text]
    assert said == ["x: IOPS by ±100 % and more (95 %): not a measurement."]


# --- runs


def simulated(seed: int, spare: str = "0.28") -> Result:
    return ssdlab.run(
        JOB,
        on="lab-reference",
        set={**SMALL, "ftl.over_provisioning": spare},
        prepare="steady",
        seed=seed,
    )


def test_equal_runs_of_other_seeds_show_no_difference_and_another_drive_does() -> None:
    base, same, other = simulated(1), simulated(2), simulated(2, "0.5")
    equal = rows_of(quantities([(base,), (same,)]))
    assert not any(d.seen for row in equal for d in row.differences if d)
    apart = rows_of(quantities([(base,), (other,)]))
    iops = next(row for row in apart if row.quantity.name == "IOPS").differences[0]
    assert iops is not None and iops.seen and iops.share > 0.1
    truth = other.summary()[0]["iops"] / base.summary()[0]["iops"] - 1
    assert iops.share == pytest.approx(truth)


def test_values_are_those_of_the_results() -> None:
    result = simulated(1)
    rows = {q.name: q.sides[0][0].value for q in quantities([(result,)])}
    (told,) = result.summary()
    assert rows["IOPS"] == told["iops"]
    assert rows["throughput"] == told["bw_bytes"] / 1e6
    for name, key in (("mean", "mean"), ("p50", "p50"), ("p99", "p99"), ("p99.9", "p999")):
        assert rows[f"{name} latency"] == told[f"clat_{key}_ns"] / 1e3
    assert rows["max latency"] == told["clat_max_ns"] / 1e3
    assert rows["write amplification"] == told["waf"]


@pytest.fixture
def store(tmp_path: Path) -> tuple[Path, list[str]]:
    """Two repeats each of two drives."""
    folder = tmp_path / "runs"
    names = [
        simulated(seed, spare).save(folder).name for spare in ("0.28", "0.5") for seed in (1, 2)
    ]
    return folder, names


def test_labels_name_a_key_as_it_is_set_with_as_many_figures_as_tell_it(
    cli: Cli, tmp_path: Path
) -> None:
    how = ("--on", "demo-enterprise", "--scale", 64, "--out", tmp_path)
    job = tmp_path / "w.fio"
    job.write_text(JOB.replace("runtime=60", "runtime=1"))
    for change in ((), ("--set", "ftl.over_provisioning=0.07")):
        assert cli("run", job, *how, *change, "-q").status == 0
    names = sorted(path.name for path in tmp_path.glob("*demo*"))
    title = cli("compare", *names, "--out", tmp_path).out.partition("\n")[0]
    told = re.findall(r", (\S+) (\S+) \([AB]\)", title)
    assert {key for key, _ in told} == {"ftl.over_provisioning"}
    assert {value for _, value in told} == {"0.3941", "0.07"}


def test_labels_shorten_fractions_of_the_rig_alone() -> None:
    def told(key: str, values: Sequence[str]) -> list[str]:
        sides = [[compare.Contender("x", "d", (one,), {key: one}, [])] for one in values]
        return [party.label.rpartition(" ")[2] for party in compare._labelled(sides)]

    assert told("firmware", ["3.10", "3.33"]) == ["3.10", "3.33"]
    assert told("rig: mts", ["12345.678", "0.123456"]) == ["12346", "0.1235"]


def test_the_command_prints_writes_and_draws(
    store: tuple[Path, list[str]], cli: Cli, tmp_path: Path
) -> None:
    folder, names = store
    page, file = tmp_path / "c.html", tmp_path / "c.json"
    how = (names[0], names[2], "--out", folder)
    said = cli("compare", *how, "-o", page, "--json", file)
    assert said.status == 0, said.err
    assert "B vs A" in said.out and "better" in said.out
    everything = cli("compare", *how, "--verbose").out
    assert "circular block bootstrap" in everything
    assert "rig: ftl.over_provisioning\t0.28\t0.5" in everything
    document = json.loads(file.read_text())
    assert document["verdict"]["code"] == "different"
    assert [side["runs"] for side in document["sides"]] == [[names[0]], [names[2]]]
    iops = next(row for row in document["rows"] if row["name"] == "IOPS")
    low, high = iops["differences"][0]["low"], iops["differences"][0]["high"]
    assert low < iops["differences"][0]["share"] < high
    told = document["sections"][0]["tables"][0]["rows"][document["rows"].index(iops)]
    ends = [told[head] for head in ("95 % low, %", "B vs A, %", "95 % high, %")]
    assert ends == [100 * end for end in (low, iops["differences"][0]["share"], high)]
    assert document["sentences"][0] in said.out
    piped = cli("compare", names[0], names[2], "--out", folder, "--json", "-")
    assert json.loads(piped.out) == document
    assert document["title"] in page.read_text()


def test_a_side_says_the_capacity_that_its_run_set() -> None:
    job = "[w]\nrw=write\nbs=1m\nio_size=8m\n"
    made = {"half": ("lab-reference", "256MiB"), "other": ("demo-client", "2GiB")}
    made["whole"] = ("lab-reference", "512MiB")
    runs = {n: ssdlab.run(job, on=on, set={"capacity": size}) for n, (on, size) in made.items()}
    told = ssdlab.compare(runs["half"], runs["whole"]).title
    assert told == "lab-reference (268 MB) (A) vs lab-reference (537 MB) (B)"
    said = " ".join(ssdlab.compare(runs["half"], runs["other"]).sentences)
    assert "demo-client (2.15 GB) against lab-reference (268 MB)" in said
    assert runs["half"].report.title == "w on lab-reference (268 MB)"


def test_repeats_are_one_side_where_there_is_another(
    store: tuple[Path, list[str]], cli: Cli
) -> None:
    folder, names = store
    found = json.loads(cli("compare", *names, "--out", folder, "--json", "-").out)
    # Seeds are no part of what a run is.
    assert [side["runs"] for side in found["sides"]] == [names[:2], names[2:]]
    assert "Welch" in found["method"][0]
    apart = json.loads(cli("compare", *names, "--each", "--out", folder, "--json", "-").out)
    assert len(apart["sides"]) == 4
    given = cli(
        "compare",
        f"{names[0]},{names[2]}",
        f"{names[1]},{names[3]}",
        "--out",
        folder,
        "--json",
        "-",
    )
    assert [len(side["runs"]) for side in json.loads(given.out)["sides"]] == [2, 2]
    equal = json.loads(cli("compare", names[0], names[1], "--out", folder, "--json", "-").out)
    assert len(equal["sides"]) == 2


def test_repeats_are_not_named_after_the_seed_of_their_first(
    store: tuple[Path, list[str]], cli: Cli
) -> None:
    folder, (one, two, *_) = store
    three = simulated(3, "0.28").save(folder).name
    found = json.loads(cli("compare", f"{one},{two}", three, "--out", folder, "--json", "-").out)
    assert [side["facts"]["seed"] for side in found["sides"]] == ["1, 2", "3"]
    assert not [side for side in found["sides"] if "seed" in side["label"]]
    alone = json.loads(cli("compare", one, three, "--out", folder, "--json", "-").out)
    assert [side["label"].rpartition(", ")[2] for side in alone["sides"]] == ["seed 1", "seed 3"]


def test_what_cannot_be_compared_is_one_sentence(
    store: tuple[Path, list[str]], cli: Cli, tmp_path: Path
) -> None:
    folder, names = store
    for given, words in (
        ([names[0]], "needs two runs"),
        ([names[0], names[0]], "given twice"),
        ([names[0], "nothing"], 'no run is called "nothing"'),
    ):
        said = cli("compare", *given, "--out", folder)
        assert (said.status, said.out) == (2, "")
        assert words in said.err and said.err.count("\n") == 1
    bad = cli("compare", *names[:2], "--out", folder, "-o", tmp_path / "no" / "c.html")
    assert bad.status == 2 and not (tmp_path / "no").exists()


@pytest.fixture
def tests_of(tmp_path: Path, cli: Cli) -> tuple[Path, list[str]]:
    folder = tmp_path / "runs"
    names: list[str] = []
    for change in ("ftl.over_provisioning=0.28", "ftl.over_provisioning=0.45"):
        for seed in ("1", "2"):
            said = cli(
                "test", "lab-reference", "-p", "consistency", "--quick", "--set", change,
                "--seed", seed, "--out", folder, "-q",
            )  # fmt: skip
            assert said.status == 0, said.err
            # Two of one second do not sort by their names.
            names += {path.name for path in folder.glob("*consistency*")} - set(names)
    return folder, names


def test_runs_of_a_protocol_are_compared_by_its_numbers(
    tests_of: tuple[Path, list[str]], cli: Cli, tmp_path: Path
) -> None:
    folder, names = tests_of
    pair = cli("compare", names[0], names[2], "--out", folder, "-v")
    assert pair.status == 0, pair.err
    assert "only repeats tell" in pair.out
    assert "\t95 %" not in pair.out
    page = tmp_path / "c.html"
    found = json.loads(cli("compare", *names, "--out", folder, "--json", "-", "-o", page).out)
    assert found["protocol"] == "consistency"
    mean = next(row for row in found["rows"] if row["name"] == "mean")
    assert mean["differences"][0]["verdict"] == "better"
    assert mean["differences"][0]["low"] > 0
    mixed = simulated(1).save(folder).name
    refused = cli("compare", names[0], mixed, "--out", folder)
    assert refused.status == 2 and "compare runs of one kind" in refused.err


def test_runs_of_a_protocol_of_other_lengths_are_told_as_such(tmp_path: Path, cli: Cli) -> None:
    names: list[str] = []
    for more in (["--quick"], ["--scale", "16"], ["--scale", "16", "--seed", "2"]):
        done = cli("test", "lab-reference", "-p", "consistency", "--out", tmp_path, "-q", *more)
        assert done.status == 0, done.err
        names += {path.name for path in tmp_path.glob("*consistency*")} - set(names)
    said = cli("compare", *names[:2], "--out", tmp_path, "-v").out
    assert "were divided by 16, those of lab-reference" in said
    assert "they did not do the same" in said and "durations divided by" in said
    same = cli("compare", *names[1:], "--out", tmp_path, "--each", "-v")
    assert same.status == 0 and "did not do the same" not in same.out, same.err


def test_numbers_of_a_protocol_in_other_units_are_not_compared_and_yes_is_a_word(
    tmp_path: Path, cli: Cli
) -> None:
    """As those of an older version may be: findings are kept, not judged again."""
    for seed in (1, 2):
        arguments = ("-p", "fsync", "--quick", "--seed", seed, "--out", tmp_path, "-q")
        assert cli("test", "lab-reference", *arguments).status == 0
    names = sorted(path.name for path in tmp_path.glob("*fsync*"))
    for name, unit, percent in zip(names, ("%", "x"), (25.0, 0.25), strict=True):
        place = tmp_path / name / "findings.json"
        found = json.loads(place.read_text())
        number, other = found["judgement"]["numbers"][:2]
        number |= {"name": "share", "unit": unit, "value": percent}
        other |= {"name": "protected", "unit": "yes/no", "value": 1.0}
        place.write_text(json.dumps(found))
    said = cli("compare", *names, "--out", tmp_path).out.splitlines()
    told = [line.split("\t") for line in said if line.startswith(("share", "protected"))]
    assert told == [
        ["share", "%", "25", "-", "-"],
        ["protected", "yes/no", "yes", "yes", "0 %"],
        ["share", "x", "-", "0.25", "-"],
    ]


def test_runs_of_two_protocols_are_refused(tmp_path: Path, cli: Cli) -> None:
    for name in ("consistency", "pts-wsat"):
        said = cli("test", "lab-reference", "-p", name, "--quick", "--out", tmp_path, "-q")
        assert said.status == 0, said.err
    names = sorted(path.name for path in tmp_path.glob("*lab-reference*"))
    said = cli("compare", *names, "--out", tmp_path)
    assert said.status == 2 and "compare runs of one protocol" in said.err


def test_charts_of_one_title_lie_one_over_another() -> None:
    def chart(*curves: Curve, title: str = "Speed") -> Figure:
        return Figure(title, "x", "y", curves)

    article = Curve("article", [1.0], [2.0], "published")
    first = [chart(Curve("IOPS", [1], [1]), article), chart(Curve("a", [1], [1]), title="Only A")]
    second = [chart(Curve("IOPS", [1], [2]), article)]
    found = {one.title: one for one in overlay([[first], [second]], ["one", "two"])}
    assert set(found) == {"Speed", "Only A"}
    names = [(c.name, c.colour, c.style) for c in found["Speed"].curves]
    assert names == [
        ("one: IOPS", 0, "line"),
        ("article", 0, "published"),
        ("two: IOPS", 1, "line"),
    ]


def test_fields_stand_side_by_side() -> None:
    field = Figure("Map", "x", "y", [Curve("z", [0], [0], "heat", z=[1.0])])
    found = overlay([[[field]], [[field]]], ["one", "two"])
    assert [(one.group, one.title) for one in found] == [("Map", "one"), ("Map", "two")]


def test_lines_that_would_look_alike_stand_side_by_side() -> None:
    def latencies(count: int) -> Figure:
        curves = [Curve(f"p{place}", [1, 2], [1, 2], "points") for place in range(count)]
        return Figure("Latency", "x", "us", curves)

    for count in (2, 3, 4, 6):
        found = overlay([[[latencies(count)]], [[latencies(count)]]], ["one", "two"])
        for chart in found:
            looks = [(curve.colour, curve.style) for curve in chart.curves]
            if len(found) == 1:
                assert len(set(looks)) == len(looks), "each line looks another way"
        assert [one.title for one in found] == (["Latency"] if count <= 3 else ["one", "two"])
        assert {one.group for one in found} == {"" if count <= 3 else "Latency"}


def test_a_run_without_series_is_compared_by_its_values(tmp_path: Path) -> None:
    plain = make_result("a")
    found = compare.load([[plain], [make_result("b")]], RunStore(tmp_path), each=True)
    assert found.rows[0].differences[0] is not None
    assert all(d is None or d.p is None for row in found.rows for d in row.differences)
    assert "whether that is more than noise is not known" in found.sentences()[0]
    alone = answer(found).sections[0].tables[0].note
    assert "at least 12 seconds" in alone
    # Repeats have intervals of all that varies between them.
    again = compare.load([[plain, make_result("a")], [make_result("b")]], RunStore(tmp_path))
    assert "12 seconds" not in answer(again).sections[0].tables[0].note


def test_noise_is_known_from_as_many_seconds_as_the_table_says() -> None:
    values = 1 + 0.01 * np.random.default_rng(1).random(12)
    assert noise.resample(values[:11]) is None and noise.resample(values) is not None


def test_of_three_sides_the_first_sentence_is_of_all(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    sides = [[make_result(name)] for name in names]
    overview, *each = compare.load(sides, RunStore(tmp_path), each=True).sentences()
    assert overview.startswith("IOPS of ") and len(each) == 2
    assert all(re.search(rf"[:;] {name} [\d,]+[;.]", overview) for name in names), overview
    assert len(compare.load(sides[:2], RunStore(tmp_path), each=True).sentences()) == 1


def test_where_noise_is_not_known_every_job_is_named_before_a_second_number_of_one() -> None:
    job = "[fill]\nrw=write\nbs=64k\n[w]\nstonewall\nrw=randwrite\nbs=4k\nio_size=1m\n"
    runs = [
        ssdlab.run(job, on="lab-reference", set=SMALL | {"ftl.over_provisioning": str(spare)})
        for spare in (0.1, 0.5)
    ]
    said = next(text for text in ssdlab.compare(*runs).sentences if "IOPS of" in text)
    assert "IOPS of fill, write" in said and "IOPS of w, write" in said
    assert "throughput" not in said, "that is what IOPS say"


@pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "-")
def test_the_page_opens_without_complaint(
    store: tuple[Path, list[str]], cli: Cli, tmp_path: Path
) -> None:
    folder, names = store
    page = tmp_path / "c.html"
    assert cli("compare", *names, "--out", folder, "-o", page).status == 0
    with browser.tab() as tab:
        tab.open(page, 390, phone=True)
        assert tab.complaints == []
        assert tab.run("document.documentElement.scrollWidth") <= 390
        assert tab.run("Bokeh.documents[0].roots().length") == 2


def test_drives_that_began_in_different_states_are_named_as_such_beside_a_change(
    tmp_path: Path,
) -> None:
    """What the state does would be taken for what the change does."""

    def run(state: str, spare: str) -> Result:
        keys = {"capacity": "1GiB", "ftl.over_provisioning": spare}
        return ssdlab.run(JOB.replace("60", "2"), on="demo-enterprise", set=keys, prepare=state)

    filled, used = run("sequential", "0.4"), run("steady", "0.5")
    (said,) = compare.load([[filled], [used]], RunStore(tmp_path)).sentences()
    assert said.endswith(
        "(steady) than demo-enterprise (1.07 GB) (1) (sequential), which counts as well."
    )
    (said,) = compare.load([[filled], [run("sequential", "0.5")]], RunStore(tmp_path)).sentences()
    assert "state" not in said
    for told in ("as found", None):  # of a real drive, and in what others measured
        real = make_result("real")
        real.document["ssdlab"]["preconditioning"] = told
        (said,) = compare.load([[real], [filled]], RunStore(tmp_path)).sentences()
        assert "another state" not in said, told
