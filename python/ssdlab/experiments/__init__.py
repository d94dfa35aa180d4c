"""The published experiments: each file is one, with its numbers and the article they come from."""

from __future__ import annotations

from ssdlab.errors import unknown_name
from ssdlab.experiments import (
    cachecade,
    consistency,
    fragmentation,
    maxcache,
    price_table,
    qsan_warm_up,
    raid0_840pro,
    raid0_hyperx,
    raid0_slowest_member,
    raid_levels,
    raid_levels_cached,
    tiering_or_caching,
    x25m_block_size,
    x25m_random_write,
    x25m_spare_area,
)
from ssdlab.experiments.base import Experiment

EXPERIMENTS: tuple[Experiment, ...] = (
    x25m_block_size.EXPERIMENT,
    x25m_random_write.EXPERIMENT,
    x25m_spare_area.EXPERIMENT,
    fragmentation.EXPERIMENT,
    consistency.EXPERIMENT,
    raid0_hyperx.EXPERIMENT,
    raid0_840pro.EXPERIMENT,
    raid0_slowest_member.EXPERIMENT,
    raid_levels.EXPERIMENT,
    raid_levels_cached.EXPERIMENT,
    qsan_warm_up.EXPERIMENT,
    maxcache.EXPERIMENT,
    cachecade.EXPERIMENT,
    price_table.EXPERIMENT,
    tiering_or_caching.EXPERIMENT,
)


def find(names: list[str]) -> list[Experiment]:
    """The experiments of these names, each once, in the order asked for; all without names."""
    known = {one.name: one for one in EXPERIMENTS}
    for name in names:
        if name not in known:
            raise unknown_name("published experiment", name, known)
    return [known[name] for name in dict.fromkeys(names)] or list(EXPERIMENTS)
