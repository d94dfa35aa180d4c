"""Change points of a series, and the fall that ends a cache."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ssdlab.analysis.changepoints import Stage, fall, stages, wander


def steps(*parts: tuple[int, float], noise: float = 0.05, seed: int = 1) -> np.ndarray:
    """A series of levels of so many samples each, with noise of that share."""
    level = np.concatenate([np.full(length, value) for length, value in parts])
    return level * (1 + noise * np.random.default_rng(seed).standard_normal(len(level)))


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("seed", range(5))
def test_steps_are_found_where_they_are(noise: float, seed: int) -> None:
    found = stages(steps((300, 3000), (500, 1500), (2000, 500), noise=noise, seed=seed))
    assert [one.level for one in found] == pytest.approx([3000, 1500, 500], rel=0.03)
    assert [one.start for one in found] == pytest.approx([0, 300, 800], abs=2)
    assert found[-1].end == 2800
    assert fall(found) == pytest.approx(300, abs=2)


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_is_one_stage(seed: int) -> None:
    found = stages(steps((1000, 700), noise=0.2, seed=seed))
    assert len(found) == 1
    assert fall(found) is None


def test_a_dip_that_is_made_good_does_not_end_a_level() -> None:
    found = stages(steps((40, 3000), (20, 500), (120, 3000), (1500, 800)))
    assert len(found) >= 4
    assert fall(found) == pytest.approx(180, abs=2)


@pytest.mark.parametrize("past", [1, 3, 6])
def test_a_series_that_ends_in_or_soon_after_one_of_its_dips_has_not_fallen(past: int) -> None:
    t = np.arange(100 + past)
    y = np.where(t % 20 < 3, 400.0, 1000.0) * (
        1 + 0.02 * np.random.default_rng(1).normal(size=len(t))
    )
    assert fall(stages(y)) is None
    # One that lasts for longer is none of them.
    fallen = np.concatenate([y[:100], np.full(20, 400.0)])
    assert fall(stages(fallen)) == 100


def test_levels_that_go_up_as_much_as_down_wander() -> None:
    rng = np.random.default_rng(1)
    slow = np.zeros(1800)
    for n in range(1, len(slow)):
        slow[n] = 0.9 * slow[n - 1] + rng.standard_normal()
    series = 1000 * np.maximum(1 + 0.2 * slow / slow.std(), 0.01)
    assert len(stages(series)) > 10 and wander(stages(series))
    wave = 1 + 0.3 * np.sin(np.arange(300) / 12) + 0.03 * rng.standard_normal(300)
    assert wander(stages(wave))
    assert not wander(stages(steps((300, 3000), (500, 1500), (2000, 500))))
    assert not wander(stages(steps((60, 500), (60, 900))))
    assert not wander([]) and not wander(stages(np.ones(30)))


def test_a_rise_is_no_fall() -> None:
    assert fall(stages(steps((200, 500), (800, 2000)))) is None


def test_levels_that_differ_by_little_are_one_stage() -> None:
    assert len(stages(steps((500, 1000), (500, 920), noise=0.01))) == 1
    assert len(stages(steps((500, 1000), (500, 920), noise=0.01), change=0.05)) == 2


def test_a_single_slow_sample_is_no_stage() -> None:
    series = steps((600, 1000))
    series[300] = 10.0
    assert len(stages(series)) == 1


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7])
def test_short_series_have_no_falls(length: int) -> None:
    found = stages(np.full(length, 5.0))
    assert sum(one.length for one in found) == length
    assert fall(found) is None


def test_stages_cover_a_long_series_without_gaps() -> None:
    series = steps((7_000, 900), (13_333, 300), (100, 1200), noise=0.1)
    found = stages(series)
    assert found[0].start == 0 and found[-1].end == len(series)
    assert all(a.end == b.start for a, b in itertools.pairwise(found))
    assert found[1].start == pytest.approx(7_000, abs=5)


def test_nothing_written_at_all_is_a_stage_of_nothing() -> None:
    assert stages(np.zeros(50)) == [Stage(0, 50, 0.0)]
