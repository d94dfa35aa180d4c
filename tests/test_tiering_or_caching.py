"""Tier or cache: what the runs say of each statement, and that they could say otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssdlab import _core
from ssdlab.bench import Seat
from ssdlab.bench.kept import KeptRuns
from ssdlab.experiments import runner
from ssdlab.experiments.base import Runs
from ssdlab.experiments.tiering_or_caching import EXPERIMENT, MIRROR, POOL, Way, judge, plan
from ssdlab.plan.stores import store, tiered
from ssdlab.progress import Progress
from ssdlab.results import Result

FACTOR = EXPERIMENT.factors["quick"]


@pytest.fixture(scope="module")
def runs(simulated_before: Path) -> Runs:
    found: dict[str, Result] = {}
    wanted = [task.key for task in plan(FACTOR)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSDLAB_CACHE", str(simulated_before))
        seat = Seat(lambda news: isinstance(news, Progress), kept=KeptRuns(fresh=True))
        for task in plan(FACTOR):
            found[task.key] = runner._work(EXPERIMENT.name, task, 1, seat)
    assert list(found) == wanted
    return found


def verdicts(runs: Runs) -> dict[str, bool]:
    said = [one for one in judge(runs, FACTOR).remarks if "confirmed;" in one]
    return {one.split(":")[0]: " not confirmed;" not in one for one in said}


def test_every_statement_of_the_articles_is_confirmed(runs: Runs) -> None:
    found = verdicts(runs)
    assert len(found) == 7
    assert all(found.values()), found


def test_runs_that_say_otherwise_are_not_confirmed(runs: Runs) -> None:
    other = {
        "loss-through": "loss-back",
        "loss-tier": "loss-mirror",
        "tier": "disks",
        "tier-slow": "through",
        "cost-moving": "cost-still",
    }
    found = verdicts({key: runs[other.get(key, key)] for key in runs})
    wrong = {key for key, right in found.items() if not right}
    assert {word for key in wrong for word in ("loss", "redundancy", "cost", "gains", "tuning")
            if word in key} == {"loss", "redundancy", "cost", "gains", "tuning"}  # fmt: skip


def test_a_tier_that_fails_loses_what_lay_on_it_and_a_cache_what_was_dirty(runs: Runs) -> None:
    tier = Way(runs["loss-tier"])
    assert tier.counter("lost_bytes") == tier.counter("extents_fast") << 20
    assert tier.counter("errors_read") > 0
    through = Way(runs["loss-through"])
    assert (through.counter("lost_bytes"), through.counter("cache_failed")) == (0, 1)


def test_moves_are_written_to_the_ssds_once_for_each_mirror(runs: Runs) -> None:
    tier = Way(runs["tier"])
    moved = tier.counter("moved_up_bytes", "reads")
    assert moved > 100e6
    # A piece may have been copied and not yet be counted where it lies.
    assert tier.ssd_bytes("reads") == pytest.approx(2 * moved, rel=0.01)


def test_tiers_are_drawn_up_as_a_store() -> None:
    both = tiered(store(MIRROR), store(POOL), {"extent": "1MiB"})
    rig = _core.Rig(both.rig(), rig_name="both")
    assert (rig.get("kind"), rig.get("fast.level")) == ("tier", "raid1")
    assert rig.get("below.count") == "6"
    assert both.redundant
    assert sum(both.bill.values()) == 8
    assert not tiered(store("raid0:2:intel-330-120"), store(POOL), {}).redundant
