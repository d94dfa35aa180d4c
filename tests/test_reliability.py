"""How long arrays keep their data: chains against closed forms, lives against chains, wear."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ssdlab
from conftest import Cli
from scheduling import LONG
from ssdlab.analysis.endurance import WearOut
from ssdlab.analysis.losses import UNREADABLE, WORN, Losses, simulate
from ssdlab.analysis.reliability import (
    HOURS_PER_YEAR,
    LEVELS,
    Array,
    Hazards,
    group_chain,
    mttdl_hours,
    p_absorbed,
    p_loss,
    p_read_error,
    usual_mttdl_hours,
)
from ssdlab.answers.reliability import answer
from ssdlab.errors import InputError
from ssdlab.progress import Progress
from ssdlab.rig import capacity_of, profile, profiles, registered
from ssdlab.studies.reliability import Question, chance_text, study
from ssdlab.units import for_page

TB = 1e12
TEXTBOOK = Hazards(0.01, 2.0, one_at_a_time=True)
"""lam = 0.01, mu = 0.5: rates at which approximations are visibly wrong."""
USUAL = Hazards(0.01 / HOURS_PER_YEAR, 30.0, 1e-17)
YEARS = 5.0
HOURS = YEARS * HOURS_PER_YEAR


def array(level: str, members: int, capacity_bytes: float = TB, copies: int = 2) -> Array:
    return Array(level, members, capacity_bytes, copies)


# --- chains


@pytest.mark.parametrize(
    ("level", "members", "published"),
    [
        ("0", 4, 25.0),
        ("1", 2, 2650.0),  # (3 lam + mu) / (2 lam^2)
        ("5", 4, 475.0),
        ("6", 4, 11775.0),
        ("5", 8, 116.0714286),
        ("6", 8, 995.8333333),
    ],
)
def test_mttdl_is_that_of_the_chains_solved_by_hand(
    level: str, members: int, published: float
) -> None:
    assert mttdl_hours(array(level, members), TEXTBOOK) == pytest.approx(published, rel=1e-8)


@pytest.mark.parametrize("members", [3, 5, 24])
def test_raid5_is_its_closed_form(members: int) -> None:
    n, lam, mu = members, 0.01, 0.5
    exact = ((2 * n - 1) * lam + mu) / (n * (n - 1) * lam**2)
    assert mttdl_hours(array("5", n), TEXTBOOK) == pytest.approx(exact, rel=1e-12)


def test_raid10_lives_as_long_as_the_first_of_its_pairs() -> None:
    # The integral of the chance that all pairs are alive, pairs being independent.
    pair, hours = group_chain(array("10", 8), TEXTBOOK), np.linspace(0, 12_000, 4_001)
    alive = np.array([(1 - p_absorbed(pair, t)) ** 4 for t in hours])
    assert mttdl_hours(array("10", 8), TEXTBOOK) == pytest.approx(
        float(np.trapezoid(alive, hours)), rel=1e-3
    )
    assert mttdl_hours(array("10", 8), TEXTBOOK) == pytest.approx(2650 / 4, rel=0.01)


def test_the_usual_formulas_are_those_of_books_and_too_short_where_failures_are_many() -> None:
    lam, mu = 0.01, 0.5
    assert usual_mttdl_hours(array("5", 4), TEXTBOOK) == pytest.approx(mu / (12 * lam**2))
    assert usual_mttdl_hours(array("6", 4), TEXTBOOK) == pytest.approx(mu**2 / (24 * lam**3))
    assert usual_mttdl_hours(array("10", 8), TEXTBOOK) == pytest.approx(mu / (8 * lam**2))
    low = usual_mttdl_hours(array("6", 8), TEXTBOOK) / mttdl_hours(array("6", 8), TEXTBOOK)
    assert low == pytest.approx(0.747, abs=1e-3)


@pytest.mark.parametrize("level", LEVELS)
def test_with_repairs_far_faster_than_failures_the_usual_formula_is_exact(level: str) -> None:
    fast = Hazards(1e-9, 1e-3)
    one = array(level, 8)
    assert mttdl_hours(one, fast) == pytest.approx(usual_mttdl_hours(one, fast), rel=1e-9)


def test_without_repairs_members_are_used_up_one_by_one() -> None:
    never = Hazards(0.01, 1e30)
    for level, needed in (("0", 4), ("5", 3), ("6", 2), ("1", 1)):
        waits = sum(1 / (0.01 * k) for k in range(needed, 5))
        assert mttdl_hours(array(level, 4), never) == pytest.approx(waits)


def test_read_errors_are_those_of_the_bytes_read() -> None:
    assert p_read_error(10 * TB, 1e-15) == pytest.approx(0.0769, abs=5e-5)
    assert p_read_error(10 * TB, 1e-14) == pytest.approx(0.551, abs=5e-4)
    assert p_read_error(TB, 1e-20) == pytest.approx(8e-8)


def test_where_every_rebuild_loses_a_sector_raid5_is_lost_with_the_first_rebuild() -> None:
    sure = Hazards(0.01, 2.0, uber=1e-9)
    until = 1 / 0.04 + 1 / (0.03 + 0.5)
    assert mttdl_hours(array("5", 4), sure) == pytest.approx(until)
    # RAID 6 corrects what its first rebuild cannot read.
    assert mttdl_hours(array("6", 4), sure) > 10 * until


@pytest.mark.parametrize("level", LEVELS)
def test_p_loss_keeps_its_digits_on_stiff_chains(level: str) -> None:
    # Rare losses come at a steady rate once the chain has settled: p = t / MTTDL.
    one, rare = array(level, 6 if level != "1" else 3), Hazards(1e-8, 0.01, 1e-20)
    year, ten = p_loss(one, rare, 8760.0), p_loss(one, rare, 87600.0)
    assert -math.log1p(-ten) / -math.log1p(-year) == pytest.approx(10, rel=1e-4)
    assert year == pytest.approx(-math.expm1(-8760 / mttdl_hours(one, rare)), rel=1e-4)


def test_p_loss_is_the_solution_of_a_small_chain() -> None:
    # A pair: eigenvalues of [[-2l, 2l], [m, -(l + m)]].
    lam, mu, t = 0.01, 0.5, 700.0
    q = np.array([[-2 * lam, 2 * lam], [mu, -lam - mu]])
    values, vectors = np.linalg.eig(q)
    alive = (vectors @ np.diag(np.exp(values * t)) @ np.linalg.inv(vectors)).sum(axis=1)[0]
    assert p_loss(array("1", 2), TEXTBOOK, t) == pytest.approx(1 - alive, rel=1e-10)
    assert p_loss(array("1", 2), TEXTBOOK, 0) == 0
    assert p_loss(array("1", 2), TEXTBOOK, math.inf) == 1


def test_nothing_is_lost_where_nothing_fails() -> None:
    never = Hazards(0.0, 10.0, 1e-15)
    for level in LEVELS:
        assert mttdl_hours(array(level, 4), never) == math.inf
        assert p_loss(array(level, 4), never, 1e6) == 0


def test_a_mirror_of_many_copies_is_a_chain_of_as_many_states() -> None:
    assert len(group_chain(array("1", 100), USUAL).loss) == 100


def test_capacity_and_writes_follow_the_level() -> None:
    shares = {"0": 1 / 6, "1": 1, "10": 1 / 3, "5": 2 / 6, "6": 3 / 6}
    usable = {"0": 6, "1": 1, "10": 3, "5": 5, "6": 4}
    for level in LEVELS:
        assert array(level, 6).written_share() == pytest.approx(shares[level])
        assert array(level, 6).usable_bytes == usable[level] * TB
    assert array("6", 6).written_share(full_stripes=True) == pytest.approx(1 / 4)


# --- lives against chains


@pytest.mark.parametrize(("level", "members"), [("0", 4), ("1", 2), ("10", 4), ("5", 4), ("6", 8)])
def test_lives_end_when_the_chain_says(level: str, members: int) -> None:
    one = array(level, members)
    lives = simulate(one, TEXTBOOK, math.inf, runs=1000, seed=3, repair="exponential")
    assert len(lives.hours) == lives.runs, "every life has ended"
    mean, error = lives.hours.mean(), lives.hours.std(ddof=1) / math.sqrt(lives.runs)
    # 3.3 standard errors: a false alarm in a thousand seeds.
    assert abs(mean - mttdl_hours(one, TEXTBOOK)) < 3.3 * error


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("accelerated", [False, True])
def test_the_share_of_lives_lost_is_that_of_the_chain(level: str, accelerated: bool) -> None:
    one = array(level, 2 if level == "1" else 8, 4 * TB)
    worse = Hazards(0.2 / HOURS_PER_YEAR, 200.0, 1e-16)
    truth = p_loss(one, worse, HOURS)
    found = simulate(
        one, worse, YEARS, runs=30_000, seed=5, repair="exponential", accelerated=accelerated
    ).by(HOURS)
    # The interval's half widened from 1.96 to 3.3 standard errors.
    assert found.value - 1.7 * (found.value - found.low) < truth
    assert truth < found.value + 1.7 * (found.high - found.value)


def test_a_chance_of_a_hundred_millionth_is_found_within_a_few_percent() -> None:
    one = array("6", 4, 3.84 * TB)
    truth = p_loss(one, USUAL, HOURS)
    assert truth < 2e-8
    found = simulate(one, USUAL, YEARS, runs=40_000, seed=7, accelerated=True).by(HOURS)
    assert found.value == pytest.approx(truth, rel=0.08)
    assert found.high < 1.2 * found.low


@pytest.mark.parametrize(
    ("accelerated", "hazards"),
    [(False, Hazards(0.2 / HOURS_PER_YEAR, 200.0, 1e-16)), (True, USUAL)],
)
def test_95_of_100_intervals_hold_the_truth(accelerated: bool, hazards: Hazards) -> None:
    one = array("5", 6, 4 * TB)
    truth = p_loss(one, hazards, HOURS)
    held = 0
    for seed in range(200):
        lives = simulate(
            one, hazards, YEARS, runs=1000, seed=seed, repair="exponential", accelerated=accelerated
        )
        found = lives.by(HOURS)
        held += found.low <= truth <= found.high
    # Of 200 intervals of 95 % fewer than 180 would hold it in one of 500 suites; above is caution.
    assert held >= 180


def test_where_rebuilds_follow_one_another_raid6_is_lost_more_often() -> None:
    one = array("6", 8)
    each, queued = (
        simulate(one, Hazards(5e-6, 100.0, 0.0, q), YEARS, runs=20_000, seed=1, accelerated=True)
        for q in (False, True)
    )
    assert p_loss(one, Hazards(5e-6, 100.0, 0.0, True), HOURS) == pytest.approx(
        2 * p_loss(one, Hazards(5e-6, 100.0), HOURS), rel=0.05
    )
    # Rebuilds of fixed length overlap by half on average, as if they ran side by side.
    assert queued.by(HOURS).value == pytest.approx(each.by(HOURS).value, rel=0.1)


def test_the_same_seed_gives_the_same_lives_and_another_others() -> None:
    one, worn = array("5", 4), WearOut(1e15, 0.6e12)
    first, again, other = (
        simulate(one, USUAL, YEARS, runs=5000, seed=seed, wear=worn) for seed in (1, 1, 2)
    )
    assert np.array_equal(first.hours, again.hours)
    assert not np.array_equal(first.hours, other.hours)


@pytest.mark.parametrize("accelerated", [False, True])
def test_many_lives_in_parts_are_as_many_at_once(
    accelerated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Millions in one step would take gigabytes, and no notice of Ctrl-C for a minute."""
    one, worse = array("5", 8, 4 * TB), Hazards(0.2 / HOURS_PER_YEAR, 200.0, 1e-16)

    def lives(asked: list[float]) -> Losses:
        def going(done: float) -> bool:
            asked.append(done)
            return True

        return simulate(
            one, worse, YEARS, runs=25_000, seed=5, accelerated=accelerated, going=going
        )

    whole, parts = list[float](), list[float]()
    found = lives(whole)
    monkeypatch.setattr("ssdlab.analysis.losses.AT_ONCE", 10_000)
    joined = lives(parts)
    assert joined.runs == found.runs and len(parts) > 2 * len(whole)
    thirds = np.histogram(joined.run, [0, 8333, 16666, 25_000])[0]
    assert thirds.min() > 0.8 * thirds.max() and thirds.sum() == len(joined.run)
    one_way, other = found.by(HOURS), joined.by(HOURS)
    assert one_way.low < other.value < one_way.high
    assert other.high - other.low == pytest.approx(one_way.high - one_way.low, rel=0.15)
    for told in (whole, parts):
        assert told == sorted(told) and told[0] < 0.5 and told[-1] == pytest.approx(1)


def test_how_far_one_simulation_is_is_told_while_it_goes_on() -> None:
    told: list[float] = []

    def note(news: Progress) -> bool:
        told.append(news.fraction or 0.0)
        return True

    study(Question(members=4, capacity_bytes=4 * TB, levels=["5"], runs=20_000), note)
    assert len({round(share, 2) for share in told}) > 5 and told == sorted(told)


# --- wear


def mirror_lives(**own: object) -> tuple[float, float]:
    """P(loss) and its part by wear of a mirror that writes its rating in four years."""
    options: dict[str, object] = {"spread": 0.0, "model_spread": 0.0} | own
    wear = WearOut(4 * 365 * TB, TB, **options)  # type: ignore[arg-type]
    lives = simulate(array("1", 2), USUAL, YEARS, runs=4000, seed=11, wear=wear)
    return lives.by(HOURS).value, lives.by(HOURS, WORN).value


def test_equal_drives_without_spread_wear_out_together_and_all_is_lost() -> None:
    lost, worn = mirror_lives()
    # But for those where one was replaced before: 2 % a year for four years.
    assert worn == pytest.approx(math.exp(-0.08), abs=0.02)
    assert lost >= worn


def test_ages_further_apart_than_a_rebuild_save_the_mirror() -> None:
    hours = USUAL.repair_hours / (4 * HOURS_PER_YEAR)
    assert mirror_lives(start=(0.0, 0.9 * hours))[1] > 0.9
    assert mirror_lives(start=(0.0, 1.1 * hours))[1] == 0


def test_another_model_or_renewal_in_time_saves_the_mirror() -> None:
    assert mirror_lives(model_spread=0.05)[1] > 0.1
    assert mirror_lives(model_spread=0.05, models=2)[1] < 0.05
    assert mirror_lives(renew_at=0.8)[1] == 0


def test_spread_beyond_the_rebuild_keeps_drives_from_wearing_out_together() -> None:
    shares = [mirror_lives(spread=spread)[1] for spread in (0.002, 0.01, 0.05)]
    assert shares[0] > shares[1] > shares[2]
    assert shares[2] < 0.05


@pytest.mark.parametrize(("spread", "between"), [(0.05, 0.2), (0.0, 0.2), (0.3, 0.0), (0.1, 0.1)])
def test_three_percent_of_drives_fail_before_their_rating(spread: float, between: float) -> None:
    wear = WearOut(1000 * TB, TB, spread=spread, model_spread=between)
    # A single member each, that fails by nothing but wear.
    never = Hazards(0.0, 1.0)
    lives = simulate(array("0", 1), never, 1000 / 365, runs=60_000, seed=4, wear=wear)
    assert lives.by(math.inf).value == pytest.approx(0.03, abs=0.0023)


@pytest.mark.parametrize(
    ("level", "own"),
    [
        ("1", {"spread": 0.03}),
        ("5", {"spread": 0.1}),
        ("5", {"spread": 0.05, "start": (0.0, 0.2, 0.4, 0.6)}),
        ("6", {"spread": 0.02, "models": 2}),
        ("5", {"spread": 0.0}),
        ("10", {"spread": 0.1, "renew_at": 0.9}),
    ],
)
def test_frequent_losses_weighed_are_as_many_as_rare_ones_counted(
    level: str, own: dict[str, object]
) -> None:
    one = array(level, 2 if level == "1" else 4, 3.84 * TB)
    hazards = Hazards(0.05 / HOURS_PER_YEAR, 100.0, 1e-16)
    wear = WearOut(7e15, 6 * TB * one.written_share(), **own)  # type: ignore[arg-type]
    counted, weighed = (
        simulate(one, hazards, YEARS, runs=runs, seed=6, wear=wear, accelerated=accelerated)
        for runs, accelerated in ((150_000, False), (20_000, True))
    )
    a, b = counted.by(HOURS), weighed.by(HOURS)
    # Both intervals widened from 1.96 to 3.3 standard errors.
    assert a.value - 1.7 * (a.value - a.low) < b.value + 1.7 * (b.high - b.value)
    assert b.value - 1.7 * (b.value - b.low) < a.value + 1.7 * (a.high - a.value)
    # That says something: a quarter either way at most.
    assert b.low > 0.75 * b.value


def test_intervals_hold_losses_by_wear_that_few_lives_show() -> None:
    one = array("5", 4, 3.84 * TB)
    wear = WearOut(7e15, 6 * TB * one.written_share(), spread=0.1)
    truth = simulate(one, USUAL, YEARS, runs=150_000, seed=1000, wear=wear, accelerated=True)
    held = 0
    for seed in range(60):
        lives = simulate(one, USUAL, YEARS, runs=3000, seed=seed, wear=wear, accelerated=True)
        found = lives.by(HOURS)
        held += found.low <= truth.by(HOURS).value <= found.high
    # 57 on average; fewer than 51 in one of 100 suites.
    assert held >= 51


def test_a_rebuild_wears_the_new_drive() -> None:
    # A new drive has the capacity written to it: a tenth of what it can write.
    wear = WearOut(10 * TB, 0.01 * TB, spread=0.0, model_spread=0.0, renew_at=0.5)
    lives = simulate(array("0", 1), Hazards(0.0, 1.0), 10, runs=10, seed=0, wear=wear)
    assert len(lives.hours) == 0
    once = WearOut(10 * TB, 0.01 * TB, spread=0.0, model_spread=0.0)
    worn = simulate(array("1", 2), Hazards(0.0, 1.0), 10, runs=10, seed=0, wear=once)
    assert worn.hours == pytest.approx(np.full(10, 24_000.0))
    apart = WearOut(10 * TB, 0.01 * TB, (0.0, 0.1), spread=0.0, model_spread=0.0)
    both = simulate(array("1", 2), Hazards(0.0, 1.0), 10, runs=10, seed=0, wear=apart)
    assert len(both.hours) == 0  # 900 days, then a new one that lasts 900 - and never together


# --- the study and the command


def test_a_study_names_the_safest_level_and_what_losses_come_from() -> None:
    found = study(Question(members=4, capacity_bytes=3.84 * TB, runs=2000))
    assert [one.name for one in found.levels] == ["RAID 0", "RAID 10", "RAID 5", "RAID 6"]
    assert "RAID 6 loses data within 5 years" in found.sentences[0]
    raid5 = found.levels[2]
    assert raid5.chance == found.levels[2].curve[-1]
    share = raid5.simulated.causes["read errors in rebuilds"] / raid5.simulated.whole.value
    assert share == pytest.approx(0.9, abs=0.05)
    assert raid5.usual_error == pytest.approx(9.2, abs=0.1)
    assert simulate(array("5", 4), USUAL, 5, runs=100, seed=0).by(HOURS, UNREADABLE).value < 0.1


def test_what_wear_does_is_told_with_what_helps() -> None:
    asked = Question(
        members=2,
        capacity_bytes=3.84 * TB,
        levels=("1",),
        tbw_bytes=7e15,
        writes_per_day_bytes=4 * TB,
        runs=5000,
    )
    found = study(asked)
    alike = {one.name: one.simulated[0].whole for one in found.worn if one.alike}
    together = alike["new together, one model"]
    assert together.value > 10 * alike["ages staggered by 10 %"].value
    assert together.value > 10 * alike["2 models"].value
    assert together.low > alike["2 models"].value
    said = " ".join(found.sentences)
    assert "of drives that wear out alike: what helps most: " in said
    assert "ages staggered by 10 %, " in said
    assert json.dumps(found.document(), allow_nan=False)


def test_what_no_life_showed_is_not_called_zero() -> None:
    asked = Question(
        members=2,
        capacity_bytes=TB,
        levels=("1",),
        failures_per_year=0.0,
        uber=0.0,
        tbw_bytes=4 * 365 * TB,
        writes_per_day_bytes=TB,
        spread=0.0,
        model_spread=0.0,
        runs=200,
    )
    found = study(asked)
    assert found.sentences[0].endswith("within 5 years with a chance of more than 99.9 %.")
    assert found.sentences[1] == "Without wear, by random failures alone: RAID 1: 0."
    assert "the chance of losing data is more than 99.9 %" in found.sentences[2]
    assert "ages staggered by 10 %, none seen" in found.sentences[3]
    assert 0 < found.worn[1].simulated[0].whole.high < 0.03


@pytest.mark.parametrize(
    ("own", "policy"),
    [
        ({}, "new together, one model"),
        ({"stagger": (0.2,)}, "ages staggered by 20 %"),
        ({"models": 2}, "2 models"),
        ({"renew_at": 0.8}, "renewed at 80 % of the rating"),
        ({"renew_at": 0.8, "models": 2}, "all that was asked"),
    ],
)
def test_where_drives_wear_out_the_answer_is_the_chance_with_the_wear_asked_for(
    own: dict[str, Any], policy: str
) -> None:
    asked = Question(
        members=4,
        capacity_bytes=3.84 * TB,
        levels=("10", "6"),
        tbw_bytes=600 * TB,
        writes_per_day_bytes=6 * TB,
        runs=1000,
        **own,
    )
    found = study(asked)
    case = next(one for one in found.worn if one.name == policy and not one.alike)
    chances = sorted(one.whole.value for one in case.simulated)
    assert chances[0] > 10 * min(level.chance for level in found.levels)
    assert [chance for _, chance in found.chances] == chances
    told = answer(found)
    assert [one.value for one in told.lead.numbers] == chances
    assert sorted(curve.y[-1] for curve in told.lead.figures[0].curves) == chances
    assert told.lead.verdict.values["p_loss"] == chances[0]
    said = found.sentences[0]
    assert said.startswith("Of 4 drives that fail at random and wear out, RAID 6 loses data")
    assert all(chance_text(chance) in said for chance in chances)
    assert chance_text(found.levels[1].chance) in found.sentences[1]


def test_the_worst_case_is_told_where_the_usual_one_has_no_interval() -> None:
    asked = Question(
        members=4,
        capacity_bytes=3.84 * TB,
        levels=("6",),
        tbw_bytes=7000 * TB,
        writes_per_day_bytes=6 * TB,
        runs=2000,
    )
    found = study(asked)
    first = found.worn[0].simulated[0]
    assert not first.whole.carried and first.whole.value < first.at_most < 0.01
    said = next(one for one in found.sentences if one.startswith("RAID 6: the rating"))
    assert "with wear the chance of losing data is about 1 in " in said
    assert "14.7 % if all drives of a model wear out at the same number of bytes" in said


@pytest.mark.parametrize(("tbw", "hardly"), [(20_000, False), (200_000, True)])
def test_wear_that_ends_by_read_errors_in_rebuilds_is_wear(tbw: int, hardly: bool) -> None:
    asked = Question(
        members=8,
        capacity_bytes=20 * TB,
        levels=("6",),
        failures_per_year=0.03,
        uber=1e-15,
        tbw_bytes=tbw * TB,
        writes_per_day_bytes=40 * TB,
        runs=2000,
    )
    found = study(asked)
    assert (found.worn[0].simulated[0].whole.value < 2 * found.levels[0].chance) is hardly
    said = next(one for one in found.sentences if one.startswith("RAID 6: the rating"))
    assert ("wear hardly adds to the chance" in said) is hardly


def test_few_losses_that_weigh_all_carry_no_interval(cli: Cli) -> None:
    told = cli("reliability", "--level", "1", "--members", "8", "--runs", "20000", "--json", "-")
    chance = json.loads(told.out)["levels"][0]["simulated"]["whole"]
    assert 0 < chance["value"] < 1e-20 and chance["low"] is None and chance["high"] is None
    assert "too few losses for an interval" in told.err


def test_chances_are_said_as_people_say_them() -> None:
    assert [chance_text(p) for p in (0, 0.137, 1, 1 / 480, 1e-15)] == [
        "0",
        "13.7 %",
        "more than 99.9 %",
        "1 in 480",
        "less than 1 in a million million",
    ]
    assert [chance_text(p, rough=True) for p in (0.137, 1, 1 / 480, 1e-15)] == [
        "about 13.7 %",
        "more than 99.9 %",
        "about 1 in 480",
        "less than 1 in a million million",
    ]


def test_the_command_prints_and_writes_the_same(cli: Cli, tmp_path: Path) -> None:
    page, place = tmp_path / "r.html", tmp_path / "r.json"
    ran = cli(
        *("reliability", "--level", "5,6", "--members", 6, "--tbw", "7PB", "--runs", 1000),
        *("--writes-per-day", "10TB", "-o", page, "--json", place),
    )
    assert ran.status == 0, ran.err
    document = json.loads(place.read_text())
    assert [one["level"] for one in document["levels"]] == ["5", "6"]
    assert document["sentences"][0] in ran.out
    assert f"{document['levels'][1]['p_loss']:.2e}" in ran.out
    assert {one["policy"] for one in document["wear"]} >= {"new together, one model", "2 models"}
    assert "data loss" in page.read_text("utf-8")
    assert for_page(document["sentences"][0]) in page.read_text("utf-8")


def test_a_drive_tells_its_capacity_and_what_its_flash_takes() -> None:
    """Its cycles times its flash, over the write amplification that a run of its own says."""
    rig = ssdlab.Rig("demo-client" if LONG else "lab-reference")
    found = ssdlab.reliability(drive=rig, writes_per_day="99GB", level=1, members=2, runs=100)
    question = found.answer.data["question"]
    assert question["capacity_bytes"] == rig.capacity
    job = f"[j]\nrw=randwrite\nbs=4k\niodepth=16\nnorandommap\nio_size={'40g' if LONG else '1g'}"
    run = ssdlab.run(job, on=rig, prepare="steady")
    flash = run.document["ssdlab"]["wear"]
    assert run.waf is not None
    endured = flash["rated_pe_cycles"] * flash["physical_bytes"] / run.waf
    assert question["tbw_bytes"] == pytest.approx(endured, rel=0.02 if LONG else 0.002)
    assert "its flash, 3,000 cycles" in question["tbw_source"]
    given = ssdlab.reliability(drive=rig, tbw="10TB", writes_per_day="99GB", level=1, runs=100)
    assert given.answer.data["question"]["tbw_bytes"] == 10 * TB


def test_mtbf_is_the_other_way_to_say_afr(cli: Cli) -> None:
    told = [
        json.loads(cli("reliability", "--runs", 100, *rate, "--json", "-").out)
        for rate in (("--afr", 1), ("--mtbf", 876_000))
    ]
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--level", "50"), 'no RAID level "50"'),
        (("--level", "6", "--members", 3), "RAID 6 takes 4 to 100 members, found 3"),
        (("--level", "10", "--members", 5), "a multiple of 2 members, found 5"),
        (("--level", "5", "--copies", 3), "--copies is for RAID 10, which is not among the levels"),
        (("--copies", 3), "RAID 10 with 3 copies takes a multiple of 3 members, found 4"),
        (("--capacity", "much"), "write it as a size"),
        (("--capacity", "0GB"), '--capacity "0GB": expected more than 0 bytes'),
        (("--rebuild-rate", "0MB/s"), "--rebuild-rate 0: expected more than 0 bytes per second"),
        (("--afr", "-1"), "expected failures per 100 drive years"),
        (("--afr", "nan"), "expected failures per 100 drive years"),
        (("--afr", 1, "--mtbf", 1e6), "not both"),
        (("--mtbf", 0), "expected hours"),
        (("--uber", 2), "--uber 2: expected an error rate per bit, 0 or more and at most 1"),
        (("--uber", "nan"), "--uber nan: expected an error rate per bit"),
        (("--replace-after", "inf"), "--replace-after inf: expected 0 hours or more"),
        (("--years", 0), "--years 0: expected a time above 0"),
        (("--years", "nan"), "above 0"),
        (("--tbw", "7PB"), "both --tbw and --writes-per-day"),
        (("--stagger", 10), "give --tbw and --writes-per-day too"),
        (("--spread", 10), "--spread changes how drives wear: give --tbw and --writes-per-day too"),
        (("--model-spread", 5), "--model-spread changes how drives wear: give --tbw and"),
        (("--full-stripes",), "--full-stripes changes how drives wear: give --tbw and"),
        (("--tbw", "7PB", "--writes-per-day", "1TB", "--stagger", "a"), "expected percent"),
        (("--tbw", "7PB", "--writes-per-day", "1TB", "--stagger", "1,2"), "2 ages are given"),
        (("--tbw", "7PB", "--writes-per-day", "1TB", "--models", 5), "cannot hold 5"),
        (("--tbw", "7PB", "--writes-per-day", "9000TB"), "within 10 days"),
        (("--tbw", "7PB", "--writes-per-day", "1TB", "--stagger", "0,0,0,900"), "still work"),
        (("--tbw", "3TB", "--writes-per-day", "1GB"), "a rebuild alone"),
        (("--tbw", "7PB", "--writes-per-day", "1TB", "--renew-at", 0), "share above 0"),
        (("--writes-per-day", "1TB"), "--tbw or --drive"),
        (("--drive", "demo-client", "--capacity", "1TB"), "not both"),
        (("--drive", "demo-klient"), 'did you mean "demo-client"'),
        (("--drive", "hgst-he10-10000", "--writes-per-day", "1TB"), "is no SSD alone"),
        (("--json", "/nowhere/r.json"), "/nowhere"),
    ],
)
def test_bad_input_is_one_sentence(cli: Cli, arguments: tuple[object, ...], sentence: str) -> None:
    ran = cli("reliability", *arguments)
    assert ran.status == 2
    assert ran.out == ""
    assert ran.err.count("\n") == 1, ran.err
    assert sentence in ran.err


@pytest.mark.parametrize("losses", [1, 20])
def test_weighted_lives_never_tell_a_chance_above_one(losses: int) -> None:
    """Weights of few lives add up to more than there are lives."""
    one = np.ones(losses)
    weights = one * 24 / losses
    seen = Losses(20, True, np.arange(losses), one, weights, np.zeros(losses, dtype=np.int64))
    chance = seen.by(2.0)
    assert chance.value == 1.0
    assert chance.carried == (losses == 20) and not chance.low > 1.0 and not chance.high > 1.0


def test_wrong_use_from_python_is_told() -> None:
    with pytest.raises(InputError, match="2 to"):
        simulate(array("5", 4), USUAL, YEARS, runs=1, seed=0)


@pytest.mark.parametrize(
    ("drive", "uber"),
    [
        ("samsung-860-pro-512", 1e-15), ("samsung-pm883-480", 1e-17), ("hgst-he10-10000", 1e-15),
        ("hitachi-5k320-320", 1e-15), ("toshiba-xg6-512", 1e-15),
    ],
)  # fmt: skip
def test_read_errors_are_those_of_the_kind_of_drive(drive: str, uber: float) -> None:
    size = float(capacity_of(drive))
    for given, rate in ((None, uber), (1e-14, 1e-14)):
        told = ssdlab.reliability(drive=drive, runs=100, level=5, members=4, uber=given)
        assert any(f"per bit: {rate:.3g}." in note for note in told.answer.notes)
        hazards = Hazards(0.01 / HOURS_PER_YEAR, 24 + size / 204.8e6 / 3600, rate)
        lost = p_loss(Array("5", 4, size), hazards, 5 * HOURS_PER_YEAR)
        assert told.frame("random-failures-alone")["p_loss_within_5_years"][0] == pytest.approx(
            lost
        )


def test_every_shipped_drive_states_its_class_and_its_summary_says_no_other() -> None:
    assert [one.name for one in profiles() if one.rig().drive_class is None] == []
    words = {
        "notebook": "client",
        "OEM": "oem",
        **{word: word for word in registered("class of drive")},
    }
    for one in profiles():
        said = {words[word] for word in re.findall(rf"\b({'|'.join(words)})\b", one.summary)}
        assert said <= {one.rig().drive_class}, one.name
        assert said or one.name == "lab-reference"


def test_read_errors_follow_the_class_that_a_rig_states_and_not_its_words(tmp_path: Path) -> None:
    text = profile("samsung-860-pro-512").text

    def told(name: str, text: str) -> list[str]:
        file = tmp_path / f"{name}.toml"
        file.write_text(text.replace('name = "samsung-860-pro-512"', f'name = "{name}"'))
        return [*ssdlab.reliability(drive=str(file), runs=100, level=5).answer.notes]

    wordless = re.sub(r'summary = ".*"', 'summary = "mine"', text)
    notes = told("mine", wordless)
    assert any("per bit: 1e-15." in note for note in notes)
    assert "The read errors are those of a client SSD: mine says client." in notes
    unknown = told("other", text.replace('class = "client"\n', ""))
    assert any("per bit: 1e-17." in note for note in unknown)
    said = "The read errors are those of a data centre SSD: other says no class of drive."
    assert said in unknown


def test_show_tells_the_class_of_a_drive(cli: Cli) -> None:
    assert "class of drive: oem\n" in cli("show", "toshiba-xg6-512").out
