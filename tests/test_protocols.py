"""Protocols: what each plans, that each runs and answers whatever is missing, and what they say."""

from __future__ import annotations

import contextlib
import math
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ssdlab
from conftest import flat, make_result, needs_fio
from fio_parser import refused
from ssdlab import _core
from ssdlab.answer import Cell, Column, Section, Verdict, columns, value_of
from ssdlab.engine import estimate
from ssdlab.engine.answers import Demand, best, figure, percent, ratio, verdict
from ssdlab.engine.records import Records, Series
from ssdlab.engine.setup import Setup
from ssdlab.engine.speed import assumed
from ssdlab.engine.steps import Idle, Job, Step, Then
from ssdlab.errors import InputError
from ssdlab.jobfile import JobText
from ssdlab.protocols import as_ssd, find, for_video, iometer, protocols
from ssdlab.protocols.sustained_fill import AGAIN, FILL
from ssdlab.results import SERIES_SCHEMA, Result
from ssdlab.rig import capacity_of
from ssdlab.target import Fio, Settings
from ssdlab.wear import Stretch

MIB, GIB = 1 << 20, 1 << 30
EVEN = assumed("400MB/s,97656iops")
"""A drive that moves 400 MB/s whatever it is asked for."""
NAMES = [one.name for one in protocols()]


def setup_of(name: str, **more: object) -> Setup:
    """The protocol with its defaults on a target of 1 GiB, changed by ``more``."""
    protocol = find(name)
    given = {key: str(value) for key, value in more.pop("given", {}).items()}  # type: ignore[attr-defined]
    values = protocol.values(given)
    active = int(GIB * protocol.active_share(values)) // MIB * MIB
    base = Setup(capacity=GIB, kind="device", active=active, values=values)
    return replace(base, **more)  # type: ignore[arg-type]


def plan(name: str, **more: object) -> list[Step]:
    """The steps of a protocol on such a target, flattened."""
    return list(flat(find(name).plan(setup_of(name, **more))))


def jobs(name: str, **more: object) -> dict[str, Job]:
    """Its jobs by key."""
    return {one.key: one for one in plan(name, **more) if isinstance(one, Job)}


def options(text: str) -> dict[str, str]:
    """The options of a job file of one section."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


# --- every protocol


KINDS = [
    {"kind": "device"},
    {"kind": "file", "quick": True, "divisor": 60.0},
    {"kind": "sim", "quick": True, "divisor": 60.0},
    {"kind": "device", "block": 4096},
]


def kind_name(kind: dict[str, object]) -> str:
    """How a kind of target is called in the names of tests."""
    return "-".join(str(value) for value in kind.values())


@pytest.mark.parametrize("kind", KINDS, ids=kind_name)
@pytest.mark.parametrize("name", NAMES)
def test_a_plan_has_unique_keys_and_jobs_that_a_simulated_drive_takes(
    name: str, kind: dict[str, object]
) -> None:
    try:
        steps = plan(name, **kind)
    except InputError as error:
        assert kind.get("block") == 4096 and "logical blocks of 4096" in error.message
        return
    keys = [step.key for step in steps]
    assert len(keys) == len(set(keys))
    found = [step for step in steps if isinstance(step, Job)]
    assert any(job.measured for job in found)
    for job in found:
        _core.check_job(job.text, job_name=job.key)
        assert (job.seconds is not None) or job.amount


@pytest.mark.parametrize("kind", KINDS, ids=kind_name)
@needs_fio()
def test_fio_takes_every_job_of_every_plan(kind: dict[str, object], tmp_path: Path) -> None:
    texts = {}
    for name in NAMES:
        # What cannot be planned on blocks of 4096 bytes is told above.
        with contextlib.suppress(InputError):
            jobs_of = (job.text for job in jobs(name, **kind).values())
            texts[name] = "[global]\nfilename=x\n\n" + "\n".join(jobs_of)
    assert len(texts) > len(NAMES) // 2
    assert refused(texts, tmp_path) == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_judge_answers_before_anything_is_measured(name: str) -> None:
    nothing = find(name).judge(Records(load=lambda key: pytest.fail(key)), setup_of(name))
    assert nothing.sentences


# --- plans


def test_block_sizes_are_swept_new_and_used_for_five_minutes_each() -> None:
    whole = estimate.of(find("block-size").plan(setup_of("block-size")), EVEN, "sim")
    assert whole.never.middle == pytest.approx(4 * 12 * 300 + 18 * 3600 + 13, rel=1e-3)
    assert len(jobs("block-size")) == 4 * 12 + 1


def test_blocks_below_the_logical_block_are_left_out() -> None:
    assert not any(key.endswith(("-512", "-1k", "-2k")) for key in jobs("block-size", block=4096))
    with pytest.raises(InputError, match="4096"):
        plan("block-size", block=4096, given={"blocks": "512,1k"})


def test_random_writes_against_time_take_four_hours_for_each_block() -> None:
    found = estimate.jobs(find("write-over-time").plan(setup_of("write-over-time")))
    assert sum((job.seconds or 0) * job.shape.write_share for job in found) == 7 * 4 * 3600


def test_a_spare_area_is_never_written() -> None:
    for share in (100, 75, 50, 25):
        for key in (f"layout-{share}", f"write-{share}"):
            found = options(jobs("spare-area")[key].text)
            assert int(found["offset"]) + int(found["size"]) == GIB * share // 100
    kinds = [type(step).__name__ for step in plan("spare-area")]
    assert kinds == ["Purge", "Job", "Job"] * 4


def test_fragmentation_is_done_as_in_the_article() -> None:
    steps = find("fragmentation").plan(setup_of("fragmentation", capacity=8 * GIB, active=8 * GIB))
    found = {step.key: step for step in steps if isinstance(step, Job)}
    assert found["fill"].amount == 4096 * MIB
    assert [found[f"overwrite-{n}"].amount // MIB for n in (50, 200, 800, 4000)] == [
        50, 200, 800, 4000,
    ]  # fmt: skip
    assert sum(key.startswith("read-") for key in found) == 3 * 5 + 1
    pauses = [step.seconds for step in steps if isinstance(step, Idle)]
    assert pauses == [10, 10, 10] + 4 * [10, 20, 30] + [3600]
    assert all(options(found[key].text)["size"] == str(4096 * MIB) for key in found)


def test_fragmentation_keeps_its_proportions_where_the_target_is_small() -> None:
    found = jobs("fragmentation")
    assert found["overwrite-4000"].amount == pytest.approx(GIB * 4000 / 4096, rel=1e-4)


def test_recovery_writes_everything_twice_and_trims_it() -> None:
    whole = estimate.of(find("recovery").plan(setup_of("recovery")), EVEN, "sim")
    jobs_ = estimate.jobs(find("recovery").plan(setup_of("recovery")))
    assert sum(job.amount * job.shape.write_share for job in jobs_) == 2 * GIB
    low, high = whole.never
    assert low < 4 * 60 + 1800 + 2 * GIB / 400e6 < high
    assert find("recovery").trims
    # At random, places are drawn with replacement: by themselves they would leave a seventh empty.
    fill, again = (options(jobs("recovery")[key].text) for key in ("fill", "again"))
    assert (fill["rw"], again["rw"]) == ("write", "randwrite") and again["norandommap"] == "1"
    assert fill["io_size"] == again["io_size"] == again["size"] == str(GIB)


def test_misaligned_requests_are_where_they_should_be() -> None:
    found = jobs("alignment")
    aligned, shifted, anywhere = (
        options(found[f"turn1/write-4k-{case}"].text) for case in ("aligned", "shifted", "anywhere")
    )
    assert int(aligned["offset"]) == 0 and "ba" not in aligned
    assert int(shifted["offset"]) == 63 * 512
    assert int(anywhere["ba"]) == 512
    assert aligned["size"] == shifted["size"] == anywhere["size"]


def test_each_case_of_alignment_is_first_in_one_turn() -> None:
    keys = [key for key in jobs("alignment") if "/read-4k-" in key]
    firsts = [next(k for k in keys if k.startswith(f"turn{n}/")) for n in (1, 2, 3)]
    assert {key.rpartition("-")[2] for key in firsts} == {"aligned", "shifted", "anywhere"}


def test_a_mix_of_sizes_is_that_of_the_access_specification() -> None:
    for access in iometer.ACCESSES:
        assert sum(share for _, share in access.sizes) == 100
        whole = setup_of(access.name, block=4096).in_blocks(access.sizes)
        assert sum(share for _, share in whole) == 100
    server = options(jobs("file-server")["qd32"].text)
    assert server["bssplit"] == "512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10"
    assert server["rwmixread"] == "80" and server["rw"] == "randrw"
    web = options(jobs("web-server", block=4096)["qd1"].text)
    assert web["rw"] == "randread"
    assert web["bssplit"] == "4k/68:8k/15:16k/2:32k/6:64k/7:128k/1:512k/1"
    assert options(jobs("workstation")["qd4"].text)["percentage_random"] == "80"
    assert options(jobs("database")["qd4"].text)["rwmixread"] == "67"


def test_crystaldiskmark_measures_five_times_five_seconds() -> None:
    found = jobs("crystaldiskmark")
    measured = [job for job in found.values() if job.measured]
    assert len(measured) == 2 * 2 * 4 * 5
    assert {job.seconds for job in measured} == {5.0}
    nvme = jobs("crystaldiskmark", given={"profile": "nvme", "data": "random"})
    deep = options(nvme["random/read-RND4K-Q32T16-1"].text)
    assert (deep["iodepth"], deep["numjobs"]) == ("32", "16")


def test_as_ssd_gives_each_of_its_threads_a_part_of_the_file() -> None:
    found = options(jobs("as-ssd")["random/4k-64-write"].text)
    assert int(found["numjobs"]) * int(found["offset_increment"]) == GIB
    assert found["size"] == found["offset_increment"]
    assert int(options(jobs("as-ssd", block=4096)["random/acc-write"].text)["bs"][:-1]) == 4


def test_writers_beside_reads_are_held_to_a_share_of_what_was_measured() -> None:
    records = recorded({"writes-alone": job_result("writer", {"write": (20_000, {100_000: 100})})})
    step = next(s for s in find("mixed-load").plan(setup_of("mixed-load")) if isinstance(s, Then))
    made = {one.key: one for one in step.make(records) if isinstance(one, Job)}
    assert "rate_iops=6000\n" in made["beside-30"].text
    assert "rate_iops" not in made["beside-100"].text
    assert re.findall(r"^\[(.*)\]$", made["beside-30"].text, re.M) == ["reader", "writer"]


def test_jobs_side_by_side_are_reported_apart() -> None:
    text = jobs("for-database")["mix-and-log"].text
    assert text.count("new_group=1") == text.count("[") == 2


def test_a_list_that_is_none_is_refused_in_a_sentence() -> None:
    for name, given in (
        ("queue-depth", {"depths": "1,two"}),
        ("queue-depth", {"depths": "0"}),
        ("block-size", {"blocks": "1000"}),
        ("spare-area", {"shares": "150"}),
        ("for-video", {"streams": "0"}),
        ("for-video", {"stream_mbps": "0"}),
        ("alignment", {"turns": "0"}),
        ("crystaldiskmark", {"runs": "0"}),
        ("fragmentation", {"region_mib": "0"}),
        ("sustained-fill", {"times": "0"}),
        ("pts-wsat", {"times": "0"}),
        ("pts-iops", {"rounds": "0"}),
        ("pts-iops", {"active": "150"}),
        ("pts-hir", {"bursts": "1"}),
        ("mixed-load", {"compressible": "150"}),
    ):
        with pytest.raises(InputError, match=f"--param {next(iter(given))}="):
            plan(name, given=given)


# --- answers


def test_what_several_steps_came_to_is_of_their_ios_together() -> None:
    """90 writes of 100 us and 10 of 1,000 us: a mean of the steps' own would say 550 us."""
    found = {
        "a": job_result("a", {"write": (900, {100_000: 90})}, sync={2_000_000: 9}),
        "b": job_result("b", {"write": (100, {1_000_000: 10})}, sync={8_000_000: 1}),
    }
    records = recorded(found)
    records["a"].document["ssdlab"]["waf"], records["b"].document["ssdlab"]["waf"] = 1.0, 3.0
    keys = ["a", "b"]
    assert records.cell("mean", keys).value == pytest.approx(190, rel=0.01)
    assert records.cell("p50", keys).value == pytest.approx(100, rel=0.01)
    assert records.cell("max", keys).value == pytest.approx(1000, rel=0.01)
    assert records.cell("flush p50", keys).value == pytest.approx(2000, rel=0.01)
    assert records.cell("waf", keys).value == pytest.approx(1.2)
    assert records.cell("iops", keys).value == 500  # each of them took as long
    assert records.cell("mean", [*keys, "not run"]).value == records.cell("mean", keys).value


def job_result(
    name: str,
    directions: dict[str, tuple[float, dict[int, int]]],
    *,
    sync: dict[int, int] | None = None,
    block: int = 4096,
) -> dict[str, object]:
    """A job of a fio document: IOPS and latencies (ns: count) by direction."""
    job: dict[str, object] = {"jobname": name, "error": 0, "job options": {}}
    for ddir, (iops, bins) in directions.items():
        ios = sum(bins.values())
        job[ddir] = {
            "total_ios": ios,
            "io_bytes": ios * block,
            "runtime": 1000,
            "iops": iops,
            "bw_bytes": iops * block,
            "clat_ns": {
                "mean": sum(ns * n for ns, n in bins.items()) / ios,
                "max": max(bins),
                "bins": {str(ns): n for ns, n in bins.items()},
            },
        }
    if sync:
        job["sync"] = {
            "total_ios": sum(sync.values()),
            "lat_ns": {"max": max(sync), "bins": {str(ns): n for ns, n in sync.items()}},
        }
    return job


def recorded(
    found: dict[str, dict[str, object]], series: dict[str, pl.DataFrame] | None = None
) -> Records:
    """Records with a job for each key."""

    def load(key: str) -> Result:
        result = make_result(key)
        result.document["jobs"] = [found[key]]
        result.series_frame = (series or {}).get(key, pl.DataFrame(schema=SERIES_SCHEMA))
        return result

    return Records(load=load, keys_=list(found))


def per_second(mbps: np.ndarray, block: int = 4096) -> pl.DataFrame:
    """A series of writes with a row each second."""
    bytes_ = np.round(mbps * 1e6)
    ios = bytes_ / block
    return pl.DataFrame(
        {
            "time_s": np.arange(1, len(mbps) + 1, dtype=float),
            "job": ["w"] * len(mbps),
            "ddir": ["write"] * len(mbps),
            "ios": np.round(ios),
            "iops": np.round(ios),
            "bytes": bytes_,
            "bw_bytes": bytes_,
            "lat_min_ns": [1] * len(mbps),
            "lat_mean_ns": [2.0] * len(mbps),
            "lat_max_ns": [3] * len(mbps),
            "lat_p50_ns": [2] * len(mbps),
            "lat_p99_ns": [3] * len(mbps),
        }
    ).cast(SERIES_SCHEMA)  # type: ignore[arg-type]


def value(judgement: Section, name: str) -> float | None:
    """The number of that name."""
    return next(one.value for one in judgement.numbers if one.name == name)


def judged(name: str, records: Records, **more: object) -> Section:
    """What a protocol says of these records."""
    return find(name).judge(records, setup_of(name, **more))


WRITE = {"write": (30_000.0, {100_000: 1000})}


def test_a_step_that_was_not_run_or_moved_nothing_has_no_value() -> None:
    records = recorded({"write": job_result("w", WRITE), "hung": {"jobname": "w", "error": 0}})
    for what in ("iops", "mbps", "mean", "p99.9", "max"):
        assert records.value(what, "write", "write")
        for key, ddir in (("missing", None), ("hung", None), ("write", "read")):
            assert records.value(what, key, ddir) is None
    assert records.series("missing") is None and records.sync("missing") is None


def test_a_round_that_moved_nothing_counts_in_the_mean_of_rates_and_not_of_latencies() -> None:
    slow = {"write": (10_000.0, {300_000: 1000})}
    records = recorded(
        {"1": job_result("w", WRITE), "2": job_result("w", slow), "3": {"jobname": "w", "error": 0}}
    )
    keys = ["1", "2", "3", "never-run"]
    rate, longest = records.cell("iops", keys), records.cell("max", keys)
    assert rate.value == pytest.approx(40_000 / 3) and rate.sources == tuple(keys)
    assert records.cell("mean", keys).value == pytest.approx(200)
    assert longest.value == pytest.approx(300)


def test_a_number_made_of_others_knows_the_steps_of_all() -> None:
    one, other = Cell(3.0, ("a", "b")), Cell(4.0, ("b", "c"))
    assert percent(one, other) == Cell(75.0, ("a", "b", "c"))
    assert ratio(one, Cell(0.0, ("d",))) == Cell(None, ("a", "b", "d"))
    assert best([one, other, Cell(None, ("e",))], min) == Cell(3.0, ("a", "b", "c", "e"))
    drawn = figure("t", "x", "y", {"A": [one, None], "B": [(10, other)]})
    assert drawn.sources == ("a", "b", "c") and drawn.wide
    assert [(list(c.x), list(c.y), c.colour) for c in drawn.curves] == [
        ([0.0], [3.0], 0),
        ([10.0], [4.0], 1),
    ]


def test_heads_of_tables_are_names_with_units_in_brackets() -> None:
    assert columns("both p99, at most [us] | gain [x] | why") == [
        Column("both p99, at most", "us"),
        Column("gain", "x"),
        Column("why"),
    ]


def test_dips_put_into_a_series_are_found_by_consistency() -> None:
    time = np.arange(2000)
    rng = np.random.default_rng(3)
    iops = np.where(time % 150 < 35, 29_000.0, 34_000.0) * (1 + 0.01 * rng.standard_normal(2000))
    series = {"random-write": per_second(iops * 4096 / 1e6)}
    found = judged("consistency", recorded({"random-write": job_result("w", WRITE)}, series))
    assert value(found, "period of the dips") == pytest.approx(150, abs=3)
    assert value(found, "width of the dips") == pytest.approx(35, abs=3)
    assert any("every 150 s" in sentence for sentence in found.sentences)


def test_rates_and_latencies_of_consistency_are_of_the_same_part() -> None:
    found = ssdlab.test(
        "lab-reference", protocol="consistency", quick=True, set={"capacity": "256MiB"}
    )
    told = {one.name: one.value for one in found.answer.lead.numbers}
    assert told["mean"] and told["mean latency"]
    # Little's law: 32 writes in flight. The fresh drive before the late part is twice as fast.
    assert told["mean"] * told["mean latency"] / 1e6 == pytest.approx(32, rel=0.02)
    for names in (
        ("slowest interval", "p1 interval", "mean", "p99 interval", "fastest interval"),
        [f"{one} latency" for one in ("p50", "p99", "p99.9", "p99.99", "max")],
    ):
        values = [told[name] or 0.0 for name in names]
        assert 0 < values[0] < values[-1] and values == sorted(values)


def test_a_cache_is_judged_by_writes_that_the_spare_area_no_longer_takes() -> None:
    """Five rounds write less than the spare area here, as five minutes do on a large drive."""
    cache = ssdlab.test("demo-enterprise", protocol="for-nas-cache", scale=64, param={"seconds": 2})
    even = ssdlab.test("demo-enterprise", protocol="consistency", scale=64)
    rates = [
        next(one.value for one in found.answer.lead.numbers if one.name.startswith(name))
        for found, name in ((cache, "steady random writes"), (even, "mean"))
    ]
    assert rates[0] == pytest.approx(rates[1], rel=0.05)


def test_the_life_of_a_cache_is_that_of_the_drive_at_full_size() -> None:
    param = {"seconds": 1, "tbw_tb": 1000, "daily_gb": 500}
    cache = ssdlab.test("demo-enterprise", protocol="for-nas-cache", scale=64, param=param)
    said = " ".join(cache.answer.lead.sentences)
    daily = 1000e12 / capacity_of("demo-enterprise") / (5 * 365)
    assert f"it takes {daily:.1f} drive writes a day for five years" in said
    assert f"it lasts {1000e12 / 500e9 / 365:.2f} years" in said


def test_an_access_time_names_no_percentile_that_is_not_known() -> None:
    few = job_result("r", {"read": (8_000.0, {100_000: 100})})
    (said,) = judged("access-time", recorded({"read": few})).sentences
    assert "p99.9" not in said and said.endswith("on average; max 100 us.")


@pytest.mark.parametrize(("times", "said"), [(0.3, True), (1.2, False)])
def test_writes_over_time_tell_the_long_run_from_what_was_hardly_written(
    times: float, said: bool
) -> None:
    key = "write-4k"
    records = recorded({key: job_result("w", WRITE)}, {key: per_second(np.full(600, 4.096))})
    active = round(records.written(key) / times)
    protocol = find("write-over-time")
    values = protocol.values({"blocks": "4k", "hours": "0.2"})
    (found, *_) = protocol.judge(records, Setup(active, "device", active, values)).sentences
    assert found.startswith("In the last quarter" if said else "In the long run")
    assert found.endswith("0.3 x the range was written: too little for steady state.") == said


@pytest.mark.parametrize("protocol", ["consistency", "write-over-time", "spare-area", "pts-wsat"])
def test_a_hard_disk_need_not_be_written_once_over(protocol: str) -> None:
    disk = ssdlab.test("seagate-constellation-500", protocol=protocol, quick=True, scale=64)
    assert "too little" not in " ".join(disk.sentences)


def test_a_disk_that_the_kernel_says_turns_is_a_hard_disk() -> None:
    records = recorded({"w": job_result("w", WRITE)})
    assert not records.on_disks("w") and not records.on_disks("other")
    records.ssdlab("w")["surroundings"] = {"drive": {"rotational": True}}
    assert records.on_disks("w") and records.passes("w", 1 << 40) == math.inf


@pytest.mark.parametrize(("rate", "kept"), [(900.0, "90 %"), (1000.0, "all"), (1200.0, "all")])
def test_reads_beside_a_log_keep_no_more_than_their_rate(rate: float, kept: str) -> None:
    alone = job_result("mix", {"read": (1000.0, {1000: 9})})
    beside = job_result("mix", {"read": (rate, {1000: 9})})
    said = judged("for-database", recorded({"mix": alone, "mix-and-log": beside})).sentences
    assert f"the random reads keep {kept} of their rate." in " ".join(said)


@pytest.mark.parametrize(("times", "said"), [(0.53, True), (1.2, False)])
def test_consistency_says_that_too_little_was_written_for_steady_state(
    times: float, said: bool
) -> None:
    series = {"random-write": per_second(np.full(2000, 120.0))}
    records = recorded({"random-write": job_result("w", WRITE)}, series)
    (stats,) = records.directions("random-write", "write")
    active = round(stats.io_bytes / times)
    setup = Setup(active, "device", active, find("consistency").values({}))
    found = find("consistency").judge(records, setup)
    assert value(found, "written / active range") == pytest.approx(times)
    assert ("too little for steady state" in found.sentences[0]) == said


def test_seconds_without_any_write_are_stalls_of_consistency() -> None:
    iops = np.full(2000, 30_000.0)
    frame = per_second(iops * 4096 / 1e6).filter(~pl.col("time_s").is_between(1500, 1510))
    found = judged(
        "consistency", recorded({"random-write": job_result("w", WRITE)}, {"random-write": frame})
    )
    assert value(found, "slowest second") == 0


def test_intervals_shorter_than_a_second_are_not_called_seconds() -> None:
    iops = np.tile([20_000.0] * 40 + [10_000.0] * 10, 40)
    frame = per_second(iops * 4096 / 1e6)
    short = frame.with_columns(pl.col("time_s") / 4, pl.col("iops") * 4, pl.col("bw_bytes") * 4)
    records = recorded({"random-write": job_result("w", WRITE)}, {"random-write": short})
    records["random-write"].ssdlab["interval_ms"] = 250
    found = judged("consistency", records, given={"seconds": "500"})
    assert value(found, "slowest interval") == pytest.approx(40_000, rel=0.01)
    assert not [number.name for number in found.numbers if "second" in number.name]
    assert "slowest interval of 250 ms reaches" in found.sentences[0]
    assert found.sentences[1].startswith("The speed repeats every 12.5 s, in dips of 2.5")


def test_a_cache_that_runs_full_is_found_in_a_fill() -> None:
    rng = np.random.default_rng(5)
    mbps = np.concatenate([np.full(40, 3000.0), np.full(300, 600.0)])
    mbps *= 1 + 0.05 * rng.standard_normal(len(mbps))
    found = judged(
        "sustained-fill", recorded({FILL: job_result("w", WRITE)}, {FILL: per_second(mbps)})
    )
    assert value(found, "written at full speed") == pytest.approx(40 * 3.0, rel=0.02)
    assert value(found, "speed until then") == pytest.approx(3000, rel=0.02)
    assert value(found, "speed after that") == pytest.approx(600, rel=0.02)
    assert "takes the first 118 GB" in found.sentences[0]
    assert "vary by itself" not in " ".join(found.sentences)


def test_a_speed_that_wanders_is_not_told_as_a_cache_without_a_word() -> None:
    turns = np.concatenate(
        [np.full(40, level) for level in (1000.0, 700, 1000, 500, 800, 500, 600)]
    )
    mbps = turns * (1 + 0.02 * np.random.default_rng(1).standard_normal(len(turns)))
    found = judged(
        "sustained-fill", recorded({FILL: job_result("w", WRITE)}, {FILL: per_second(mbps)})
    )
    assert "once its fast cache is full" in found.sentences[0]
    assert "may vary by itself" in found.sentences[1]
    assert found.tables[0].note


def test_a_cache_that_was_emptied_is_told_however_soon_it_is_full_again() -> None:
    """The mean of the first quarter, 972 MB/s, was told as that at which the drive begins."""
    fill = np.concatenate([np.full(40, 3000.0), np.full(300, 600.0)])
    series = {FILL: fill, AGAIN: np.concatenate([np.full(4, 3000.0), np.full(96, 600.0)])}
    jobs = {key: job_result("w", WRITE) for key in series}
    records = recorded(jobs, {key: per_second(mbps) for key, mbps in series.items()})
    found = judged("sustained-fill", records)
    assert value(found, "begin after the rest") == pytest.approx(3000)
    assert value(found, "mean after the rest") == records.mbps(AGAIN)
    assert "begins at 3,000 MB/s for 12 GB: the cache has been emptied" in found.sentences[-1]
    assert "Over 1 min 40 s it writes at 123 MB/s." in found.sentences[-1]


def test_noise_is_no_cache() -> None:
    rng = np.random.default_rng(7)
    mbps = 500 * (1 + 0.2 * rng.standard_normal(400))
    found = judged(
        "sustained-fill", recorded({FILL: job_result("w", WRITE)}, {FILL: per_second(mbps)})
    )
    assert value(found, "written at full speed") is None
    assert "no cache" in found.sentences[0]


def test_misalignment_is_told_with_its_price() -> None:
    records = recorded(
        {
            f"turn{turn}/write-4k-{case}": job_result("w", {"write": (rate + turn, {1000: 9})})
            for turn in (1, 2, 3)
            for case, rate in (("aligned", 10_000.0), ("shifted", 6_000.0), ("anywhere", 9_900.0))
        }
    )
    found = judged("alignment", records)
    lost = "random writes of 4 KiB as in a partition from sector 63: lost"
    assert value(found, lost) == pytest.approx(40, abs=0.1)
    told = " ".join(found.sentences)
    assert "sector 63 lose 40 %" in told and "Random reads lose nothing" in told


def test_a_cost_that_scatters_more_than_it_is_large_is_not_told() -> None:
    shifted = {1: 5_000.0, 2: 15_000.0, 3: 9_000.0}
    records = recorded(
        {
            f"turn{turn}/write-4k-{case}": job_result("w", {"write": (rate, {1000: 9})})
            for turn in (1, 2, 3)
            for case, rate in (("aligned", 10_000.0), ("shifted", shifted[turn]))
        }
    )
    assert "scatter" in judged("alignment", records).sentences[0]


def test_commits_are_bounded_by_the_sum_of_two_tails() -> None:
    # One write and one flush in a hundred are slow, never the same: 2 % of the commits are slow,
    # so the p99 of both together is above the p99 of each.
    write = {"write": (1000.0, {10_000: 990, 5_000_000: 10})}
    flush = {200_000: 990, 4_000_000: 10}
    records = recorded({"fdatasync-8k": job_result("log", write, sync=flush, block=8192)})
    bound = value(judged("fsync", records), "8 KiB, fdatasync: p99")
    assert bound == pytest.approx(9_000, rel=0.02)


@pytest.mark.parametrize(
    ("flush_ns", "answer"),
    [(100_000, "Well fit"), (3_000_000, "with reservations"), (30_000_000, "Not fit")],
)
def test_the_fitness_for_a_log_follows_from_the_flush(flush_ns: int, answer: str) -> None:
    rate = 1e9 / (flush_ns + 10_000)
    write = {"write": (rate, {10_000: 4000})}
    records = recorded(
        {"fdatasync-8k": job_result("log", write, sync={flush_ns: 4000}, block=8192)}
    )
    assert answer in " ".join(judged("fsync", records).sentences)


def test_what_idle_time_and_trim_restore_is_a_share_of_the_loss() -> None:
    rates = {"fresh": 40_000.0, "used": 10_000.0, "rested": 11_500.0, "trimmed": 38_500.0}
    records = recorded(
        {key: job_result(key, {"write": (rate, {1000: 9})}) for key, rate in rates.items()}
    )
    found = judged("recovery", records)
    assert value(found, "loss restored by idle time") == pytest.approx(5)
    assert value(found, "loss restored by TRIM") == pytest.approx(95)
    assert "nothing to speak of" in found.sentences[1]
    assert found.sentences[2].startswith("TRIM, with no rest after it, restores the drive")


def test_the_smallest_depth_is_not_compared_with_itself() -> None:
    records = recorded({"qd5": job_result("a", {"read": (2000.0, {100_000: 100})})})
    said = judged("web-server", records, given={"depths": "5"}).sentences[0]
    assert "no more with more in flight than with 5: 2,000 IOPS" in said


def test_a_first_minute_without_writes_has_lost_nothing() -> None:
    series = per_second(np.concatenate([np.zeros(60), np.full(540, 4.096)]))
    records = recorded({"write-4k": job_result("w", WRITE)}, {"write-4k": series})
    found = judged("write-over-time", records, given={"blocks": "4k", "hours": "0.2"})
    assert "(nothing at first)" in found.sentences[1]


def test_reads_too_few_for_a_percentile_are_not_called_unmeasured() -> None:
    few = {"read": (50.0, {100_000: 3})}
    steps = ("reads-alone", "beside-50")
    found = judged("mixed-load", recorded({key: job_result("reader", few) for key in steps}))
    assert found.sentences == ["Too few reads have been measured to say anything of their p99."]
    assert found.verdict.code == "not-measured"


def test_a_single_part_of_the_drive_is_not_called_the_whole() -> None:
    for share, part in ((100, "the whole range"), (50, "50 % of the range")):
        key = f"write-{share}"
        records = recorded({key: job_result("w", WRITE)}, {key: per_second(np.full(20, 4.096))})
        found = judged("spare-area", records, given={"shares": str(share)})
        assert found.sentences[0].startswith(f"Over {part}: 1,000 IOPS")


def test_the_write_amplification_of_a_part_is_of_the_same_time_as_its_rate() -> None:
    job = "[w]\nrw=randwrite\nbs=4k\niodepth=32\nsize=100%\nio_size=100%\nnorandommap=1\n"
    drive = {"ftl.over_provisioning": "0.28", "capacity": "256MiB"}
    filled = ssdlab.run(job, "lab-reference", set=drive, prepare="sequential")
    found = judged("spare-area", Records(lambda _: filled, ["write-100"]), given={"shares": "100"})
    (row,) = found.tables[0].rows
    ran_s = float(filled.series("w")["time_s"].max())  # type: ignore[arg-type]
    late = Stretch.of(filled, 0.75 * ran_s).amplification
    assert late is not None and filled.waf is not None and late > 1.1 * filled.waf
    assert value_of(row[-1]) == pytest.approx(late, rel=0.02)
    assert not found.tables[0].note
    counted_after = replace(filled, device_frame=None)
    found = judged(
        "spare-area", Records(lambda _: counted_after, ["write-100"]), given={"shares": "100"}
    )
    assert value_of(found.tables[0].rows[0][-1]) == pytest.approx(filled.waf)
    assert "all of the time" in found.tables[0].note


def test_scaling_is_measured_against_perfect_queues() -> None:
    rates = {1: 10_000.0, 2: 20_000.0, 4: 30_000.0, 8: 30_500.0}
    records = recorded(
        {f"read-qd{d}": job_result("r", {"read": (rate, {1000: 9})}) for d, rate in rates.items()}
    )
    found = judged("queue-depth", records, given={"depths": "1,2,4,8"})
    assert "with 4 in flight" in found.sentences[0]
    assert "scaling efficiency 75 %" in found.sentences[0]


@pytest.mark.parametrize(
    ("most", "said"),
    [
        (30_100.0, "Deeper queues only add latency: "),
        (32_400.0, "Deeper queues add at most 8.0 %, and latency: "),
    ],
)
def test_what_deeper_queues_gain_is_said(most: float, said: str) -> None:
    rates = {1: 10_000.0, 4: 30_000.0, 8: most}
    flat = {1: 10_000.0, 4: most / 3, 8: 9_000.0}
    records = recorded(
        {
            f"{way}-qd{depth}": job_result("r", {way: (rate, {1000: 9})})
            for way, of in (("read", rates), ("write", flat))
            for depth, rate in of.items()
        }
    )
    found = judged("queue-depth", records, given={"depths": "1,4,8"})
    assert said in found.sentences[0]
    faster = "no faster" if most < 30_300 else "at most 8.0 % faster"
    assert f"Random writes are {faster} with more in flight than with 1" in found.sentences[1]


def test_fragmentation_gives_seconds_for_the_whole_region() -> None:
    def read(seconds: float) -> dict[str, object]:
        rate = 4 * GIB / seconds / MIB
        return job_result("read", {"read": (rate, {1000: 9})}, block=MIB)

    times = {"read-0-1": 2.0, "read-0-2": 1.9, "read-4000-1": 7.0, "read-4000-2": 6.8}
    found = judged("fragmentation", recorded({key: read(s) for key, s in times.items()}))
    assert value(found, "first reading of 4 GiB") == pytest.approx(1.9)
    assert value(found, "reading after +4000 MiB") == pytest.approx(6.8)
    assert "3.6 times" in found.sentences[0]


def test_the_scores_of_as_ssd_are_its_own() -> None:
    speeds = {("seq", "read"): 520.0, ("seq", "write"): 490.0, ("4k", "read"): 30.0}
    speeds |= {("4k", "write"): 100.0, ("4k-64", "read"): 380.0, ("4k-64", "write"): 330.0}
    records = recorded(
        {
            f"random/{name}-{way}": job_result(name, {way: (mbps, {1000: 9})}, block=10**6)
            for (name, way), mbps in speeds.items()
        }
    )
    setup = setup_of("as-ssd", given={"data": "random"})
    found = as_ssd.judge(records, setup)
    scores = {
        row[0]: row for table in found.tables for row in table.rows if table.title == "Scores"
    }
    assert [cell.value for cell in scores["incompressible"][1:] if isinstance(cell, Cell)] == [
        462.0,  # 52 + 30 + 380
        479.0,  # 49 + 100 + 330
        1186.0,  # 52 + 60 + 570 + 73.5 + 100 + 330, to the nearest even
    ]


def test_frames_that_wait_are_counted_against_the_budget() -> None:
    series = Series(
        time=np.arange(1.0, 7.0),
        iops=np.ones(6),
        mbps=np.array([500.0, 100.0, 100.0, 700.0, 700.0, 500.0]),
        written=np.ones(6),
        step=1.0,
    )
    found = for_video.shortfall(series, 400.0)
    assert found.backlog == pytest.approx(600e6)  # two seconds at 300 MB/s too few
    assert found.below == pytest.approx(100 / 3)


def test_a_verdict_is_as_good_as_its_worst_demand() -> None:
    good = Demand("reads within", Cell(500.0), "us", 1000.0, 5000.0, "r")
    fair = Demand("writes within", Cell(2000.0), "us", 1000.0, 5000.0, "w")
    poor = Demand("operations:", Cell(10.0), "IOPS", 1000.0, 100.0, "o")
    none = Demand("never seen", Cell(None), "us", 1.0, 2.0, "n")
    said, table, code = verdict("a log", [good, fair, poor])
    assert code == Verdict(
        "not-fit", {"reads within": 500, "writes within": 2000, "operations": 10}
    )
    assert "10 IOPS (at least 100 IOPS is needed): o" in said[1]
    assert [row[6] for row in table.rows] == ["good", "enough", "poor"]
    assert verdict("a log", [good, none])[0][0].startswith("As far as it was measured")


@needs_fio()
def test_jobs_side_by_side_come_apart_in_real_fio(tmp_path: Path) -> None:
    setup = setup_of("for-database", kind="file", quick=True, divisor=120.0)
    setup = replace(setup, capacity=64 * MIB, active=64 * MIB, direct=False)
    step = next(s for s in find("for-database").plan(setup) if s.key == "mix-and-log")
    assert isinstance(step, Job)
    place = tmp_path / "target"
    place.write_bytes(b"")
    os.truncate(place, 64 * MIB)
    result = Fio(place, use_existing=True).run(
        JobText("both", step.text, tmp_path), Settings(progress=lambda _news: True)
    )
    assert [job.name for job in result.jobs] == ["mix", "log"]
    log = next(job for job in result.jobs if job.name == "log")
    assert [stats.ddir for stats in log.directions()] == ["write"]
    # fio counts the flushes of a group, but leaves their total at 0.
    assert recorded({"both": dict(log.raw)}).sync("both") is not None
