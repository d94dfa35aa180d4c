"""The published experiments: each file is one, with its numbers and the article they come from."""

from __future__ import annotations

from importlib import import_module

from ssdlab.errors import unknown_name
from ssdlab.experiments.base import Experiment

EXPERIMENTS: tuple[Experiment, ...] = tuple(
    import_module(f"{__name__}.{name}").EXPERIMENT
    for name in (
        "x25m_block_size",
        "x25m_random_write",
        "x25m_spare_area",
        "fragmentation",
        "consistency",
        "raid0_hyperx",
        "raid0_840pro",
        "raid0_slowest_member",
        "raid_levels",
        "raid_levels_cached",
        "qsan_warm_up",
        "maxcache",
        "cachecade",
        "price_table",
        "tiering_or_caching",
    )
)
"""In the order of lists."""


def find(names: list[str]) -> list[Experiment]:
    """The experiments of these names, each once, in the order asked for; all without names."""
    known = {one.name: one for one in EXPERIMENTS}
    for name in names:
        if name not in known:
            raise unknown_name("published experiment", name, known)
    return [known[name] for name in dict.fromkeys(names)] or list(EXPERIMENTS)
