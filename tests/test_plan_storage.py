"""Candidates of a purchase: how they are written, what is measured, prices, life, safety, words."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import browser
from conftest import Cli
from scheduling import LONG
from ssdlab import _core, units
from ssdlab.answer import Curve, Figure, Section
from ssdlab.arrays.performance import Performance
from ssdlab.arrays.rigs import ArrayShape
from ssdlab.errors import InputError, Interrupted
from ssdlab.jobfile import JobText
from ssdlab.plan import rounds
from ssdlab.plan.bed import Bed, SsdWear
from ssdlab.plan.prices import Prices, prices
from ssdlab.plan.rounds import simulated
from ssdlab.plan.storage import loads, measure, own
from ssdlab.plan.storage.advice import advise
from ssdlab.plan.storage.candidates import DEFAULTS, candidate
from ssdlab.plan.storage.loads import HotSet, Timing
from ssdlab.plan.storage.measure import CandidateRun, TableLoads, measured
from ssdlab.plan.storage.needs import Needs
from ssdlab.plan.storage.own import OwnLoad
from ssdlab.plan.storage.rows import loss_per_year, rows
from ssdlab.plan.storage.tables import chapter
from ssdlab.plan.stores import store
from ssdlab.progress import ProgressCallback
from ssdlab.rig import capacity_of, profile

DISKS = "raid1:2:seagate-constellation-es3-1000"
SSDS = "raid1:2:intel-dc-s3700-200"
HOT_MIB = 256 if LONG else 64


def null(path: Path, us: float, capacity: str = "1GiB") -> Path:
    """A rig file of a device that takes so long for everything, one thing at a time."""
    path.write_text(
        f'[device]\nkind = "null"\ncapacity = "{capacity}"\nservice_time = "{us}us"\nservers = 1\n'
    )
    return path


def run(*texts: str, hot: HotSet | None = None, depth: int = 1, **more: Any) -> list[CandidateRun]:
    asked = TableLoads(hot or HotSet(1 << 62), depth, quick=True, **more)
    return simulated(measured([candidate(text) for text in texts], asked.pieces))


# --- how candidates are written


def test_a_candidate_is_a_store_a_cache_and_a_card() -> None:
    one = candidate(f"{DISKS} + maxcache:{SSDS} @ adaptec-3152-8i")
    assert one.bill == {
        "seagate-constellation-es3-1000": 2, "intel-dc-s3700-200": 2, "adaptec-3152-8i": 1,
    }  # fmt: skip
    rig = _core.Rig(one.rig(), rig_name="candidate")
    assert rig.get("kind") == "controller"
    assert rig.get("below.preset") == "maxcache"
    assert rig.get("below.cache.member.below.kind") == "ssd"
    assert rig.get("below.below.level") == "raid1"


def test_the_rig_of_a_candidate_still_says_where_its_values_come_from() -> None:
    one = candidate(f"{DISKS} + maxcache:{SSDS} @ adaptec-3152-8i")
    rig = _core.Rig(one.rig(), rig_name="candidate")
    sources = {key: source for key, _, source in rig.values()}
    for drive, place in (("seagate-constellation-es3-1000", "below.below.member."),
                         ("intel-dc-s3700-200", "below.cache.member.")):  # fmt: skip
        own = {place + key: source for key, _, source in profile(drive).rig().values()}
        assert {key: sources[key] for key in own} == own
        assert any(own.values())
    assert sources["cache.size"] == "the same article"


def test_a_rig_file_called_like_a_profile_is_not_taken_for_it(tmp_path: Path) -> None:
    one = store(str(null(tmp_path / "intel-dc-s3700-200.toml", 10.0)))
    assert one.profile is None
    assert one.usable_bytes == 1 << 30
    assert store("intel-dc-s3700-200").profile == "intel-dc-s3700-200"


@pytest.mark.parametrize(
    ("cache", "keys"),
    [
        (SSDS, {"mode": "write-back"}),
        ("intel-dc-s3700-200", {"mode": "write-through"}),
        ("0:2:intel-dc-s3700-200", {"mode": "write-through"}),
        ("raid10:4:intel-dc-s3700-200:64k", {"mode": "write-back"}),
        (f"write-around:{SSDS}", {"mode": "write-around"}),
        ("bcache:intel-dc-s3700-200", {"preset": "bcache"}),
    ],
)
def test_a_cache_writes_back_only_where_it_is_mirrored(cache: str, keys: dict[str, str]) -> None:
    assert candidate(f"{DISKS} + {cache}").keys == keys


@pytest.mark.parametrize("text", DEFAULTS)
def test_the_candidates_by_default_can_be_built(text: str) -> None:
    one = candidate(text)
    one.check()
    assert prices().of(one.bill)
    assert one.pool.redundant


def test_usable_space_is_what_the_device_shows() -> None:
    for text in (
        SSDS,
        "raid10:4:intel-dc-s3700-200",
        "5:5:intel-dc-s3700-200",
        "6:4:lab-reference",
    ):
        one = store(text)
        rig = one.resized(1 << 30)
        size, shown = rig.bytes("member.capacity"), rig.capacity_bytes
        assert size is not None
        shape = one.shape
        assert isinstance(shape, ArrayShape)
        assert shown == pytest.approx(shape.usable_share * shape.count * size, rel=2e-3)


def test_disks_keep_their_size_and_lose_their_volatile_cache() -> None:
    rig = store(DISKS).resized(1 << 30)
    assert rig.get("member.below.write_cache_enabled") == "false"
    assert rig.bytes("member.below.capacity") == 1000204886016
    kept = store(DISKS).resized(1 << 30, disk_cache=True)
    assert kept.get("member.below.write_cache_enabled") != "false"
    assert not store(DISKS).flash


# --- loads


def test_every_load_is_a_job_for_fio_too() -> None:
    hot, time = HotSet(10 << 30), Timing(1.0, 0.5)
    jobs = [
        loads.random_job("r", "randread", hot, 1 << 40, 256, time),
        loads.random_job("r", "randread", HotSet(10 << 30, spread=False), 1 << 40, 256, time),
        loads.writes_job("w", hot, 1 << 40, 1, 100),
        loads.ordered_job("o", "write", time),
        loads.covering_job("c", "randwrite", hot, 1 << 40, 256, times=2, most=1 << 30),
    ]
    jobs.append(loads.following(jobs[-1], jobs[0]))
    for job in jobs:
        _core.check_job(job.text, job_name=job.name)
    assert jobs[-1].text.count("stonewall") == 1


def test_warming_touches_every_block_of_the_hot_set_so_often(tmp_path: Path) -> None:
    rig = null(tmp_path / "n.toml", 1.0, "64MiB").read_text()
    drive = _core.Drive(rig, rig_name="n", seed=1)
    hot = HotSet(8 << 20)
    job = loads.covering_job("c", "randwrite", hot, 64 << 20, 50, times=3, most=1 << 30)
    output = drive.run(job.text, job_name=job.name)
    done = json.loads(output.json)["jobs"]
    blocks = sum(one["write"]["total_ios"] for one in done)
    piece = (8 << 20) // loads.PIECES // 4096
    assert blocks == 3 * piece * loads.PIECES


# --- numbers that are known


def test_a_disk_at_depth_one_takes_a_mean_seek_and_half_a_turn() -> None:
    alone, mirror = run("seagate-constellation-es3-1000", DISKS)
    seek, turn, electronics, transfer = 8.5e-3, 60 / 7200, 150e-6, 4096 / 130e6
    once = seek + turn / 2 + electronics + transfer
    # Outer tracks hold more, so the mean seek over addresses is about 2 % shorter.
    assert alone.rates["read"].iops == pytest.approx(1 / once, rel=0.05)
    assert alone.rates["write"].iops == pytest.approx(1 / (once + 1e-3), rel=0.05)
    # md reads from the disk whose heads are nearer: of two a third of the way is saved at most.
    saved = 1 / (once - seek / 3)
    assert alone.rates["read"].iops * 1.05 < mirror.rates["read"].iops < saved * 1.05
    # A write has to be on both and ends with the later one: at most 2/3 of a turn, not 1/2.
    both = 1 / (once + 1e-3 + turn / 6)
    assert 0.98 * both < mirror.rates["write"].iops < 1.02 * alone.rates["write"].iops


def test_two_disks_in_order_are_as_fast_as_their_outer_tracks() -> None:
    single, striped = run("seagate-constellation-es3-1000", "0:2:seagate-constellation-es3-1000")
    assert single.rates["read_ordered"].bytes_per_s == pytest.approx(175e6, rel=0.03)
    ratio = striped.rates["read_ordered"].bytes_per_s / single.rates["read_ordered"].bytes_per_s
    assert ratio == pytest.approx(2.0, rel=0.05)


def test_rates_of_a_rig_file_are_those_of_its_service_time(tmp_path: Path) -> None:
    (found,) = run(str(null(tmp_path / "n.toml", 100.0)), depth=4)
    assert found.rates["read"].iops == pytest.approx(10_000, rel=0.01)
    assert found.rates["write"].iops == pytest.approx(10_000, rel=0.01)
    assert found.rates["read"].percentile_ns(50.0) == pytest.approx(400_000, rel=0.02)


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> CandidateRun:
    """A slow pool behind a fast cache that holds the hot set."""
    folder = tmp_path_factory.mktemp("rigs")
    slow = null(folder / "slow.toml", 1000.0, "4GiB")
    fast = null(folder / "fast.toml", 10.0, "1GiB")
    (found,) = run(f"{slow} + write-back:{fast}", hot=HotSet(64 << 20), depth=1)
    return found


def test_a_warm_cache_is_as_fast_as_its_device_and_a_cold_one_as_the_store(
    cached: CandidateRun,
) -> None:
    assert cached.hits["read"] == pytest.approx(1.0)
    assert cached.rates["read"].iops == pytest.approx(100_000, rel=0.01)
    assert cached.rates["write"].iops == pytest.approx(100_000, rel=0.02)
    assert cached.cold["read"].iops == pytest.approx(1000, rel=0.06)
    assert cached.cold["write"].iops == pytest.approx(100_000, rel=0.06)


def test_warming_takes_as_long_as_the_store_needs_for_the_hot_set(cached: CandidateRun) -> None:
    blocks = (64 << 20) // loads.PIECES // 4096 * loads.PIECES
    # One miss for each block; the further rounds hit.
    assert cached.warmth["read"].seconds == pytest.approx(blocks * 1e-3, rel=0.05)
    assert cached.warmth["read"].whole
    assert 0 < cached.dirty_bytes <= 64 << 20


def test_the_hot_set_does_not_change_what_a_cache_of_ssds_does_when_it_is_warm() -> None:
    """The simulation is smaller; how much smaller is not to be seen in the rates."""
    pool = f"{DISKS} + {SSDS}"
    small, large = (
        run(pool, hot=HotSet(size), depth=32)[0].rates["read"].iops for size in (1 << 28, 1 << 30)
    )
    assert small == pytest.approx(large, rel=0.03)


def test_the_ram_of_a_card_shrinks_with_the_hot_set_behind_it() -> None:
    """A quarter of the drive is simulated: a card's whole GiB would hold half of the 2 GiB that a
    hot set of 8 GiB becomes, and writes be three times what they are at full size."""
    drive = "intel-x25-e-32"
    alone, behind = run(drive, f"{drive} @ lsi-9361-8i", hot=HotSet(8 << 30), depth=32)
    assert behind.rates["write"].iops < 2 * alone.rates["write"].iops
    assert "RAM at 256 MiB" in behind.notes[0] and "RAM" not in alone.notes[0]


# --- rows


def reading(tmp_path: Path) -> CandidateRun:
    return run(str(null(tmp_path / "n.toml", 100.0)))[0]


def test_prices_add_up_and_are_shared_by_space_and_rate(tmp_path: Path) -> None:
    found = reading(tmp_path)
    cost = Prices("EUR", {"seagate-constellation-es3-1000": 50.0, "intel-dc-s3700-200": 100.0}, "p")
    pair = rows([candidate(DISKS), candidate(f"{DISKS} + {SSDS}")], [found, found], cost)
    assert [row.price for row in pair] == [100.0, 300.0]
    assert [row.relative for row in pair] == [1.0, 3.0]
    assert pair[1].price_per_tb == pytest.approx(300 / 1.000204886016)
    assert pair[1].per_kiops("read") == pytest.approx(300 / (found.rates["read"].iops / 1e3))
    assert pair[1].usable_bytes == store(DISKS).usable_bytes == 1_000_204_886_016


def test_what_has_no_price_is_named_and_costs_nothing_else(tmp_path: Path) -> None:
    found = reading(tmp_path)
    cost = Prices("EUR", {}, "p")
    table = rows([candidate(DISKS)], [found], cost)
    assert table[0].price is None
    said: Section = chapter(table, cost, 1e12)
    assert "None of the candidates has a price" in said.sentences[0]
    assert any("No price of seagate" in one.note for one in said.tables)


def test_an_array_loses_data_by_the_chance_of_ssdlab_reliability(tmp_path: Path) -> None:
    from ssdlab.analysis.reliability import HOURS_PER_YEAR, Array, Hazards, p_loss

    size = 1_000_204_886_016.0
    hazards = Hazards(0.01 / HOURS_PER_YEAR, 24 + size / 100e6 / 3600, 1e-15)
    mirrored = p_loss(Array("1", 2, size), hazards, HOURS_PER_YEAR)
    assert loss_per_year(candidate(DISKS), dirty=False) == pytest.approx(mirrored)
    both = candidate(f"{DISKS} + write-back:intel-dc-s3700-200")
    alone = loss_per_year(candidate("intel-dc-s3700-200"), dirty=False)
    assert alone is not None
    assert alone == pytest.approx(0.00995, rel=0.01)
    assert loss_per_year(both, dirty=True) == pytest.approx(1 - (1 - mirrored) * (1 - alone))
    assert loss_per_year(both, dirty=False) == pytest.approx(mirrored)


@pytest.mark.parametrize(
    ("drive", "uber"), [("samsung-860-pro-512", 1e-15), ("samsung-pm883-480", 1e-17)]
)
def test_an_array_of_ssds_has_the_read_errors_of_their_kind(drive: str, uber: float) -> None:
    from ssdlab.analysis.reliability import HOURS_PER_YEAR, Array, Hazards, p_loss

    one = candidate(f"raid5:4:{drive}")
    size = float(capacity_of(drive))
    hazards = Hazards(0.01 / HOURS_PER_YEAR, 24 + size / 204.8e6 / 3600, uber)
    lost = p_loss(Array("5", 4, size), hazards, HOURS_PER_YEAR)
    assert loss_per_year(one, dirty=False) == pytest.approx(lost)


def test_life_is_what_the_rated_cycles_allow() -> None:
    (found,) = run("raid1:2:lab-reference", hot=HotSet(1 << 62), depth=32)
    one = candidate("raid1:2:lab-reference")
    (row,) = rows([one], [found], prices(), writes_per_day=1e11)
    assert row.life is not None
    worn = row.life
    # A mirror writes everything once to each.
    assert worn.written_per_host_byte == pytest.approx(1.0, rel=0.01)
    assert worn.write_amplification > 1.5
    size, cycles = capacity_of("lab-reference"), 3000
    total = worn.dwpd_5_years * 5 * 365 * size
    assert row.life.years == pytest.approx(total / 1e11 / 365 / worn.written_per_host_byte)
    assert total * worn.write_amplification / size / cycles == pytest.approx(1.28, rel=1e-9)


def test_a_drive_lives_as_long_as_its_spare_at_full_size_allows() -> None:
    # What a smaller one would come to, which has more to spare.
    found = CandidateRun({}, worn=SsdWear(5.0, 9.0, 1.0))
    (row,) = rows([candidate("crucial-mx200-250")], [found], prices())
    rig = profile("crucial-mx200-250").rig()
    cycles, spare = (rig.get(key) for key in ("nand.rated_pe_cycles", "ftl.over_provisioning"))
    assert cycles is not None and spare is not None and row.life is not None
    writes = int(cycles) * (1 + float(spare)) / 5.0
    assert row.life.dwpd_5_years == pytest.approx(writes / (5 * 365))


def test_life_goes_by_writes_all_over_the_store_and_the_hot_set_stands_beside() -> None:
    (found,) = run("lab-reference", hot=HotSet(1 << 26), depth=32, everywhere=True)
    (row,) = rows([candidate("lab-reference")], [found], prices())
    assert found.worn is not None and found.worn_everywhere is not None
    assert row.life is not None and row.life_hot is not None
    assert row.life.write_amplification == found.worn_everywhere.write_amplification
    assert row.life.write_amplification > 1.25 * row.life_hot.write_amplification
    assert row.life.years is not None and row.life_hot.years is not None
    assert row.life_hot.years > 1.25 * row.life.years
    said = row.as_json()
    assert said["life"]["years"] == row.life.years
    assert said["life_in_hot_set"]["years"] == row.life_hot.years


def test_of_two_that_are_as_fast_the_cheaper_is_the_one_for_speed() -> None:
    def did(iops: float, *, cached: bool = False) -> CandidateRun:
        rates = {
            kind: Performance((kind,), 1.0, rate, 4096 * rate, 1 << 30, None, {}, {})
            for kind, rate in (("read", iops), ("write", iops / 2))
        }
        return CandidateRun(rates, cold=rates if cached else {})

    texts = DISKS, SSDS, f"{DISKS} + {SSDS}"
    runs = did(900.0), did(150_322.0), did(150_337.0, cached=True)
    found = rows([candidate(text) for text in texts], runs, prices())
    said = advise(found, ["read", "write"], prices())
    assert (
        "For space take A, for as many I/Os as can be had B, for both C while the hot set fits its "
        "cache."
    ) in said


def test_what_gives_all_that_is_needed_is_said_first() -> None:
    def did(read: float, write: float, everywhere: float | None = None) -> CandidateRun:
        def performance(iops: float) -> Performance:
            return Performance(("x",), 1.0, iops, 4096 * iops, 1 << 30, None, {}, {})

        rates = {"read": performance(read), "write": performance(write)}
        whole = None if everywhere is None else performance(everywhere)
        return CandidateRun(rates, everywhere=whole, worn=SsdWear(2.0, 1.0, 1.0))

    texts = "raid1:2:intel-dc-s3700-200", "raid10:4:intel-dc-s3700-200", DISKS
    found = rows(
        [candidate(text) for text in texts],
        [did(90e3, 50e3, 20e3), did(180e3, 40e3, 40e3), did(1e3, 500.0)], prices(), 100e9,
    )  # fmt: skip

    def said(**needs: float) -> list[str]:
        return advise(found, ["read", "write"], prices(), 100e9, Needs(**needs))

    title = found[1].candidate.title
    first, second, *_ = said(iops=30e3, space_bytes=3e11, years=2)
    asked = "30,000 IOPS, 300 GB and 2 years at 100 GB of writes a day"
    assert first.startswith(f"For {asked} take B ({title}), ")
    # Not by the writes of a small hot set.
    assert second.startswith("Not enough: A gives 20,000 write IOPS and 200 GB; C gives 500 write")
    assert "it is cheaper than B, which would do as well." in said(iops=20e3)[0]
    life = found[0].life
    years = None if life is None else life.years
    assert years is not None
    known = f"a life of {units.number(years)} years"
    lacking = f"gives 1,000 years at 100 GB of writes a day: A gives {known}; B"
    assert said(years=1000)[0].startswith(f"None of the candidates {lacking}")
    assert said(iops=20e3 * 1.004)[0].startswith("For 20,080 IOPS take A"), "it rounds to that"
    nothing = advise(found, ["read", "write"], prices(), 100e9)
    assert said() == nothing and nothing[0].startswith("In USD")
    table, *_ = chapter(found, prices(), 100e9, Needs(iops=30e3)).as_json()["tables"]
    assert [row["enough"] for row in table["rows"]] == ["no", "yes", "no"]
    missing = [row["missing"] for row in chapter(found, prices(), 100e9, Needs(30e3, 3e11)).rows]
    assert missing == [["iops", "space"], [], ["iops"]]


def test_what_else_is_enough_is_dearer_alike_or_without_a_price() -> None:
    """A candidate without a price, and one of the same price, were said to be dearer."""
    performance = Performance(("x",), 1.0, 9e3, 4096 * 9e3, 1 << 30, None, {}, {})
    did = CandidateRun({"load": performance})
    one, two, other = "intel-dc-s3700-200", "raid1:2:intel-dc-s3700-200", "demo-client"
    for cost, alike in (
        (prices(), "cheaper than B and as cheap as C"),
        (Prices("USD", {}, "none"), "of fewer drives than B and of as many as C"),
    ):
        table = rows([candidate(text) for text in (one, two, one)], [did] * 3, cost)
        said = advise(table, ["load"], cost, needs=Needs(iops=9e3, years=5))
        assert said[0].endswith(f": it is {alike}, which would do as well.")
        assert said[1].startswith("How long the SSDs of A last is not known"), "it was not written"
    cost = Prices("USD", {one: 200.0}, "one")
    table = rows([candidate(one), candidate(other)], [did] * 2, cost)
    said = advise(table, ["load"], cost, needs=Needs(iops=9e3))
    cold = replace(performance, iops=1e3)
    cached = replace(did, cold={"load": cold})
    (row,) = rows([candidate(one)], [cached], cost)
    for iops, end in ((9e3, "; it gives these IOPS once its cache is warm."), (1e3, ", 200 USD.")):
        assert advise([row], ["load"], cost, needs=Needs(iops=iops))[0].endswith(end)
    assert said[0].endswith(", 200 USD.") and said[1] == "Enough as well, but without a price: B."
    size = table[1].usable_bytes
    assert size < 17.2e9, "it reads so"
    assert advise(table, ["load"], cost, needs=Needs(space_bytes=17.2e9))[1].startswith("Enough")
    assert "B gives 17.2 GB" in advise(table, ["load"], cost, needs=Needs(space_bytes=17.3e9))[1]


def test_the_fastest_for_a_budget_is_said_first() -> None:
    one, other, third = "intel-dc-s3700-200", "hgst-he10-10000", "samsung-pm883-480"

    def did(iops: float) -> CandidateRun:
        rates = {"load": Performance(("load",), 1.0, iops, 160e6, 1 << 30, None, {}, {})}
        return CandidateRun(rates)

    cost = Prices("EUR", {one: 200.0, other: 100.0, third: 300.0}, "one")
    table = rows([*map(candidate, (one, other, third))], [did(9e3), did(1e3), did(20e3)], cost)

    def said(**needs: float) -> list[str]:
        return advise(table, ["load"], cost, needs=Needs(**needs))

    first, second, *_ = said(budget=250)
    assert first == (
        f"For at most 250 EUR take A ({one}), 200 EUR: it is faster than B, which can be had for "
        "that too."
    )
    assert second == "Not enough: C costs 300."
    first, second, *_ = said(budget=250, iops=10e3)
    assert first == (
        "None of the candidates gives 10,000 IOPS within 250 EUR: "
        "A gives 9,000 IOPS; B gives 1,000 IOPS; C costs 300."
    )
    assert said(budget=300)[0].startswith("For at most 300 EUR take C ")
    assert said(budget=10)[0].startswith("None of the candidates costs at most 10 EUR: A costs 200")
    assert "C gives 480 GB and costs 300" in said(space_bytes=1e12, budget=10)[0]


def test_needs_that_are_no_numbers_are_refused(cli: Cli) -> None:
    never = cli("plan", "storage", "--years", "5", "--writes-per-day", "0")
    assert never.status == 2 and "no SSD wears out" in never.err
    for wrong in (
        ["--years", "inf"],
        ["--iops", "-1"],
        ["--iops", "nan"],
        ["--space", "x"],
        ["--budget", "inf"],
    ):
        done = cli("plan", "storage", *wrong)
        assert done.status == 2 and wrong[0] in done.err, wrong


def test_life_follows_from_what_stands_beside_it() -> None:
    found = CandidateRun({}, worn_cache=SsdWear(1.0, 20.0, 2.5))
    one = candidate(f"{DISKS} + {SSDS}")
    told = chapter(rows([one], [found], prices()), prices(), 1e12).as_json()
    ((row,),) = [table["rows"] for table in told["tables"] if table["title"] == "Life and safety"]
    size = capacity_of("intel-dc-s3700-200")
    days = row["DWPD 5 years"] * 5 * 365 * size / 1e12 / row["written per byte"]
    assert row["life, years"] == pytest.approx(days / 365)


def test_what_is_worn_out_soon_is_said_first() -> None:
    """An SSD that is cheapest by space and by I/Os, and stands few of the writes of a day."""
    rates = {"load": Performance(("load",), 1.0, 40e3, 160e6, 1 << 30, None, {}, {})}
    did = CandidateRun(rates, worn=SsdWear(2.0, 1.0, 1.0))
    drive = candidate("raid1:2:intel-dc-s3700-200")
    found = rows([drive], [did], prices(), 20e12)
    (life,) = [row.life for row in found]
    assert life is not None and life.years is not None and life.years < 5
    years = units.number(life.years)
    first, second, *_ = advise(found, ["load"], prices(), 20e12)
    assert f"at 20 TB of writes a day SSDs last: those of A {years} years" in first
    needed = 20e12 / capacity_of("intel-dc-s3700-200")
    assert f"after {years} years, at {needed:.2g} drive writes a day (DWPD)" in second
    table = chapter(found, prices(), 20e12).as_json()["tables"][0]
    assert table["rows"][0]["life, years"] == life.years
    slow = rows([drive], [did], prices(), 20e9)
    assert not [one for one in advise(slow, ["load"], prices(), 20e9) if "writes a day" in one]


# --- the command


def table_of(document: dict[str, Any], title: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = next(
        one["rows"] for one in document["sections"][0]["tables"] if one["title"] == title
    )
    return found


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    from ssdlab.cli import run_command

    folder = tmp_path_factory.mktemp("page")
    arguments = ["plan", "storage", "--quick", "-q", "--candidate", DISKS, "--candidate", SSDS,
                 "--candidate", f"{DISKS} + {SSDS} @ adaptec-3152-8i", "--hot", f"{HOT_MIB}MiB",
                 "-o", folder / "p.html", "--json", folder / "p.json"]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        if not LONG:  # nothing depends on how large the SSDs are
            patch.setattr(measure, "STORE_BYTES_QUICK", 1 << 30)
        assert run_command([str(one) for one in arguments]) == 0
    return folder / "p.html", json.loads((folder / "p.json").read_text())


def test_the_json_says_what_the_tables_say(said: tuple[Path, dict[str, Any]]) -> None:
    document = said[1]
    rows_ = document["candidates"]
    assert [row["letter"] for row in rows_] == ["A", "B", "C"]
    random, money = table_of(document, "Random I/O"), table_of(document, "Price")
    for row, speed, price in zip(rows_, random, money, strict=True):
        assert speed["read, IOPS"] == row["loads"]["read"]["iops"]
        assert speed["write p99, ms"] == row["loads"]["write"]["clat_p99_ns"] / 1e6
        assert price["price, USD"] == row["price"]
        assert price["per TB"] == pytest.approx(row["price"] / row["usable_bytes"] * 1e12)
        iops = row["loads"]["read"]["iops"]
        assert price["per 1000 read IOPS"] == pytest.approx(row["price"] / iops * 1e3)
    caches = table_of(document, "Caches")
    assert {one["candidate"] for one in caches} == {"C"}
    assert document["hot_bytes"] == HOT_MIB << 20
    assert document["currency"] == "USD"


def test_a_cache_is_worth_its_price_and_the_words_say_so(
    said: tuple[Path, dict[str, Any]],
) -> None:
    document = said[1]
    disks, _, cached_ = document["candidates"]
    assert cached_["loads"]["read"]["iops"] > 20 * disks["loads"]["read"]["iops"]
    assert cached_["cold"]["read"]["iops"] < 2 * disks["loads"]["read"]["iops"]
    text = " ".join(document["sentences"])
    best = min(document["candidates"], key=lambda row: row["price"] / row["usable_bytes"])
    assert f"a TB costs least in {best['letter']}" in text
    fast = min(document["candidates"], key=lambda row: row["price_per_1000_iops"]["read"])
    assert f"a thousand random read IOPS in {fast['letter']}" in text
    assert "once its cache is warm" in text


def test_a_candidate_has_one_colour_in_all_charts(said: tuple[Path, dict[str, Any]]) -> None:
    colours: dict[str, set[int]] = {}
    for figure in said[1]["sections"][0]["figures"]:
        for curve in figure["curves"]:
            colours.setdefault(curve["name"][0], set()).add(curve["colour"])
    assert colours == {"A": {0}, "B": {1}, "C": {2}}


def test_no_dot_is_cut_at_the_end_of_an_axis(said: tuple[Path, dict[str, Any]]) -> None:
    from ssdlab.report import drawing

    charts = [one for one in said[1]["sections"][0]["figures"] if one["log_y"]]
    assert len(charts) == 5
    for one in charts:
        figure = Figure(**{**one, "curves": [Curve(**curve) for curve in one["curves"]]})
        drawn: dict[str, Any] = {}
        drawing.groups("x", [figure], drawn)
        ends = next(iter(drawn.values())).y_range
        length = math.log10(ends.end / ends.start)
        values = [y for curve in one["curves"] for y in curve["y"]]
        # A dot has a radius of about 5 of some 170 pixels.
        assert math.log10(min(values) / ends.start) > 0.04 * length
        assert math.log10(ends.end / max(values)) > 0.04 * length


@pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "-")
def test_the_page_draws_its_charts(said: tuple[Path, dict[str, Any]]) -> None:
    with browser.tab() as tab:
        tab.open(said[0], 1280)
        assert tab.complaints == []
        assert not [url for url in tab.requests if url.startswith("http")]
        drawn = tab.run("[...document.querySelectorAll('.chart')].filter(c => c.firstChild).length")
        assert drawn == 7
        assert tab.run("document.documentElement.scrollWidth <= innerWidth")


def test_the_same_seed_gives_the_same_numbers(tmp_path: Path, cli: Cli) -> None:
    path = null(tmp_path / "n.toml", 100.0)
    texts = []
    for name in ("a", "b"):
        place = tmp_path / f"{name}.json"
        done = cli("plan", "storage", "--quick", "-q", "--candidate", path, "--json", place)
        assert done.status == 0, done.err
        document = json.loads(place.read_text())
        document.pop("notes")
        texts.append(document)
    assert texts[0] == texts[1]


def test_a_load_of_ones_own_runs_on_every_candidate(tmp_path: Path, cli: Cli) -> None:
    job = tmp_path / "own.fio"
    job.write_text("[a]\nrw=randrw\nrwmixread=70\nbs=8k\niodepth=4\nsize=64m\nnumber_ios=20000\n")
    slow, fast = null(tmp_path / "slow.toml", 1000.0), null(tmp_path / "fast.toml", 10.0)
    done = cli("plan", "storage", "-q", "--candidate", slow, "--candidate",
               f"{slow} + write-back:{fast}", "--job", job, "--json", "-")  # fmt: skip
    assert done.status == 0, done.err
    document = json.loads(done.out)
    plain, cached_ = document["candidates"]
    assert plain["loads"]["load"]["iops"] == pytest.approx(1000, rel=0.01)
    # 8 KiB of a null device are one service; both halves are hits once the job has run.
    assert cached_["loads"]["load"]["iops"] > 50_000
    assert cached_["cold"]["load"]["iops"] < 5_000
    assert document["job"] == job.read_text()


def test_random_writes_of_a_job_file_find_ssds_that_collect(tmp_path: Path, cli: Cli) -> None:
    """On SSDs that were filled sequentially they seem to wear nothing but what they write."""
    job = tmp_path / "own.fio"
    job.write_text("[a]\nrw=randwrite\nbs=4k\niodepth=32\nnorandommap\nio_size=10%\n")
    done = cli("plan", "storage", "-q", "--candidate", "lab-reference", "--job", job, "--scale", 64,
               "--json", "-")  # fmt: skip
    assert done.status == 0, done.err
    (ssd,) = json.loads(done.out)["candidates"]
    assert ssd["life"]["write_amplification"] == pytest.approx(2.4, rel=0.1)


def test_a_load_in_doubt_is_so_as_for_arrays(cli: Cli, tmp_path: Path) -> None:
    """Zipf has a steady state of its own, which a job that begins at once does not reach; the same
    load by name is brought there first."""
    job = tmp_path / "zipf.fio"
    job.write_text(
        "[w]\nrw=randwrite\nbs=8k\niodepth=32\nnorandommap\nrandom_distribution=zipf:1.1\n"
        "time_based\nruntime=1\n"
    )
    words = ("plan", "storage", "--quick", "--candidate", "raid0:2:samsung-pm883-480")
    document = json.loads(cli(*words, "--job", job, "--json", "-").out)
    doubted = {check["title"]: check for check in document["checks"]}
    assert "zipf:1.1 has a steady state of its own" in doubted["A: steady state"]["evidence"]
    told = cli(*words, "--job", job).out
    assert "†" in told and "in doubt (A: steady state)" in told
    named = json.loads(cli(*words, "--workload", "database", "--json", "-").out)
    assert "A: steady state" not in {check["title"] for check in named["checks"]}


def test_a_load_by_name_is_scaled_and_says_so(cli: Cli) -> None:
    done = cli("plan", "storage", "--quick", "--candidate", SSDS, "--workload", "random-read",
               "--depth", 8, "-v")  # fmt: skip
    assert done.status == 0, done.err
    assert "all of it at 1/" in done.out
    assert "random-read" in done.out


def test_each_step_of_a_load_of_ones_own_has_a_share_of_the_progress(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Preparing, where there is no disk, writes that settle what prefers places, and the load."""
    announced: list[int] = []
    taken: list[int] = []

    def counted(report: ProgressCallback, count: int) -> Iterator[ProgressCallback]:
        announced.append(count)
        for place, one in enumerate(rounds.stages(report, count)):
            taken.append(place + 1)
            yield one

    ran: list[str] = []
    run = Bed.run

    def named(bed: Bed, job: JobText, *args: Any, **how: Any) -> Any:
        ran.append(job.name)
        return run(bed, job, *args, **how)

    monkeypatch.setattr(own, "stages", counted)
    monkeypatch.setattr(Bed, "run", named)
    for what, load, steps in ((SSDS, "random-read", 2), (SSDS, "database", 3), (DISKS, "mixed", 1)):
        announced.clear()
        taken.clear()
        done = cli("plan", "storage", "-q", "--candidate", what, "--workload", load)
        assert done.status == 0, done.err
        assert (announced, taken) == ([steps], [*range(1, steps + 1)]), load
    names = ["random-read", "database-settling", "database", "mixed"]
    assert ran == [f"{name}.fio" for name in names]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--candidate", "hgst-he10-1000"], 'did you mean "hgst-he10-10000"'),
        (["--candidate", "raid7:2:hgst-he10-10000"], 'RAID level is called "raid7"'),
        (["--candidate", "raid1:1:hgst-he10-10000"], "found 1 drive, expected from"),
        (["--candidate", "a + b + c"], "expected STORE"),
        (["--candidate", "hgst-he10-10000 +"], "expected STORE"),
        (["--candidate", f"{DISKS} @"], "no controller after @"),
        (["--candidate", f"{DISKS} @ adaptec-3152"], 'did you mean "adaptec-3152-8i"'),
        (["--candidate", f"{DISKS} + maxcahe:{SSDS}"], "did you mean maxcache"),
        (["--candidate", f"{DISKS} + {SSDS} @ intel-rs25db080", "--depth", 0], "--depth"),
        (["--candidate", "no.toml"], "there is no such rig file"),
        (["--prices", "no.toml"], "there is no such price file"),
        (["--hot", "12"], "--hot 12"),
        (["--hot", "much"], "--hot"),
        (["--hot", "150%"], "or all of the store"),
        (["--hot", "1t", "--candidate", SSDS], "larger than"),
        (["--candidate", "raid10:3:hgst-he10-10000"], "an even number"),
        (["--writes-per-day", "x"], "--writes-per-day"),
        (["--workload", "nosuch"], "random-read"),
        (["--workload", "random-read", "--job", "x.fio"], "exclude each other"),
        (["--workload", "random-read", "--hot", "1GB"], "--hot and --contiguous"),
        (["--job", "no.fio"], "no.fio"),
        (["--scale", "3"], "--scale is for --job"),
    ],
)
def test_what_the_user_got_wrong_is_one_sentence(cli: Cli, arguments: list[str], part: str) -> None:
    done = cli("plan", "storage", *arguments)
    assert done.status == 2
    assert part in done.err
    assert done.out == ""


def test_measuring_can_be_stopped(tmp_path: Path) -> None:
    path = null(tmp_path / "n.toml", 100.0)
    asked = TableLoads(HotSet(1 << 62), quick=True)
    with pytest.raises(Interrupted):
        simulated(measured([candidate(str(path))], asked.pieces), lambda _news: False)


def test_a_rig_that_is_wrong_is_told_with_its_candidate(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('[device]\nkind = "nul"\n')
    with pytest.raises(InputError, match=r"x\.toml"):
        candidate(str(path)).check()


def test_what_needs_more_memory_than_there_is_is_refused(cli: Cli, tmp_path: Path) -> None:
    job = tmp_path / "own.fio"
    job.write_text("[a]\nrw=randread\nbs=4k\nsize=1g\nnumber_ios=10\n")
    done = cli("plan", "storage", "--job", job, "--scale", 1, "--candidate",
               "raid10:200:samsung-pm1733-3840")  # fmt: skip
    assert done.status == 2
    assert "of memory" in done.err
    assert "--scale N" in done.err


def test_a_job_that_names_bytes_finds_room_for_them() -> None:
    text = "[a]\nrw=randread\nbs=4k\nsize=1g\noffset=64m\n[b]\nrw=read\nsize=50%\n"
    load = OwnLoad(JobText("j.fio", text, Path()), "sequential")
    assert load.extent == (1 << 30) + (64 << 20)
    assert not load.replays
    other = JobText("j.fio", "[a]\nrw=read\nsize=100%\n", Path())
    assert OwnLoad(other, "sequential").extent == 0
