"""Hit ratios and miss-ratio curves through the bindings."""

from __future__ import annotations

import numpy as np
import pytest

from ssdlab import _core
from ssdlab.errors import InputError, UnknownNameError

ONLINE = [e["name"] for e in _core.registries() if e["kind"] == "replacement policy"]


def _keys(n: int = 50_000) -> np.ndarray:
    random = np.random.default_rng(1)
    return (random.zipf(1.2, n) % 5000).astype(np.uint64)


@pytest.mark.parametrize("policy", ONLINE)
def test_a_policy_counts_every_access_and_none_beats_the_optimum(policy: str) -> None:
    keys = _keys()
    writes = np.arange(len(keys)) % 4 == 0
    counts = _core.hit_ratio(policy, 200, keys, writes)
    assert counts["write_hits"] + counts["write_misses"] == writes.sum()
    misses = counts["read_misses"] + counts["write_misses"]
    assert counts["miss_ratio"] == misses / len(keys)
    assert counts["read_hits"] + counts["read_misses"] == (~writes).sum()
    assert misses >= len(np.unique(keys))
    assert counts["miss_ratio"] >= _core.hit_ratio("optimal", 200, keys)["miss_ratio"]
    assert counts["write_backs"] <= writes.sum()


def test_lru_is_what_a_plain_list_does() -> None:
    keys = _keys(5000)
    cached: dict[int, None] = {}
    misses = 0
    for key in keys.tolist():
        misses += key not in cached
        cached.pop(key, None)
        cached[key] = None
        if len(cached) > 50:
            del cached[next(iter(cached))]
    assert _core.hit_ratio("lru", 50, keys)["read_misses"] == misses


def test_a_cache_larger_than_everything_misses_first_uses_only() -> None:
    keys = _keys(5000)
    for policy in (*ONLINE, "optimal"):
        counts = _core.hit_ratio(policy, 10**15, keys)
        assert counts["read_misses"] == len(np.unique(keys)), policy
    curve = _core.miss_ratio_curve("arc", keys, sizes=[10**15])
    assert curve["read_misses"][0] == len(np.unique(keys))


def test_a_request_of_several_blocks_uses_each() -> None:
    keys, blocks = np.array([0, 2], np.uint64), np.array([4, 1], np.uint32)
    counts = _core.hit_ratio("fifo", 8, keys, blocks=blocks)
    assert (counts["read_misses"], counts["read_hits"]) == (4, 1)


def test_a_curve_is_what_caches_of_its_sizes_do() -> None:
    keys = _keys()
    writes = keys % 3 == 0
    for policy in ("lru", "sieve"):
        curve = _core.miss_ratio_curve(policy, keys, writes, sizes=[10, 100, 1000])
        for at, size in enumerate([10, 100, 1000]):
            counts = _core.hit_ratio(policy, size, keys, writes)
            assert curve["miss_ratio"][at] == pytest.approx(counts["miss_ratio"], abs=1e-12)
            assert curve["write_backs"][at] == counts["write_backs"]
        assert not curve["error"].any()
    whole = _core.miss_ratio_curve("lru", keys)
    assert whole["footprint"] == len(np.unique(keys)) == whole["sizes"][-1]


def test_a_sampled_curve_states_its_error() -> None:
    keys = np.random.default_rng(2).integers(0, 20_000, 400_000).astype(np.uint64)
    sizes = [2000, 5000, 10_000]
    for how in ({"rate": 0.05}, {"sample_blocks": 1000}):
        curve = _core.miss_ratio_curve("lru", keys, sizes=sizes, samples=4, **how)
        assert curve["followed"] < len(keys) / 2
        assert (curve["error"] > 0).all() and (curve["error"] < 0.02).all()
        # Uniform draws: a cache of C of N blocks hits C/N of the time.
        assert np.allclose(curve["miss_ratio"], 1 - np.array(sizes) / 20_000, atol=0.05)
    assert len(_core.miss_ratio_curve("arc", keys[:50_000], rate=0.1, samples=2)["sizes"]) > 3


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda k: _core.hit_ratio("lru", 0, k), "expected a cache of 1 to"),
        (lambda k: _core.hit_ratio("lru", 5, k, np.zeros(3, bool)), "3 writes for 100 keys"),
        (lambda k: _core.hit_ratio("lru", 5, k[::2]), "contiguous"),
        (lambda k: _core.hit_ratio("2q", 5, k, parameters={"onc": 0.5}), "unknown field `onc`"),
        (lambda k: _core.hit_ratio("2q", 5, k, parameters={"once": 2}), "for once a share"),
        (lambda k: _core.miss_ratio_curve("lru", k, rate=0.5), "a rate above 0"),
        (lambda k: _core.miss_ratio_curve("lru", k, rate=0.1, sample_blocks=20), "one of them"),
        (lambda k: _core.miss_ratio_curve("arc", k, sample_blocks=20), "a sampling rate"),
        (lambda k: _core.miss_ratio_curve("lru", k, sizes=[5], rate=0.01), "at least 16"),
    ],
)
def test_what_cannot_be_is_one_sentence(call, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=sentence) as raised:
        call(np.arange(100, dtype=np.uint64))
    assert "\n" not in str(raised.value)


def test_an_unknown_policy_is_named_with_what_there_is() -> None:
    with pytest.raises(UnknownNameError, match="sieve"):
        _core.hit_ratio("seive", 5, np.arange(3, dtype=np.uint64))
