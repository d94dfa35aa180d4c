"""``ssdlab explain``: parts add up, and switching a cause off removes its effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ssdlab
from ssdlab.analysis.differences import quantities
from ssdlab.answers.charts import Trace
from ssdlab.answers.run import traces_of
from ssdlab.api import explain
from ssdlab.cli import run_command
from ssdlab.sweeps.dataset import RunOutcome
from ssdlab.wear import Stretch

JOB = """[w]
rw=randwrite
bs=4k
iodepth=32
norandommap
number_ios=30000
io_size=100g
"""
SMALL = {"capacity": "64MiB", "ftl.over_provisioning": 0.15}


@pytest.fixture(scope="module")
def result() -> ssdlab.Result:
    return ssdlab.run(JOB, on="lab-reference", set=SMALL, prepare="steady")


def trace_of(result: ssdlab.Result) -> Trace:
    """The only direction of the last job."""
    (found,) = traces_of([result])[-1]
    return found


def written(result: ssdlab.Result) -> dict[str, float]:
    """Write amplification by cause."""
    return trace_of(result).causes


def test_the_parts_of_the_mean_add_up_to_the_mean_latency(result: ssdlab.Result) -> None:
    trace = trace_of(result)
    mean, latency = trace.points[0], trace.measured.latency
    assert latency is not None
    assert mean.total_ns == pytest.approx(latency.mean_ns, rel=1e-6)
    assert max(mean.shares, key=mean.shares.__getitem__) == "die_collection"


@pytest.mark.parametrize(("block", "reads_back"), [("4k", False), ("2k", True)])
def test_a_write_waits_for_old_content_only_where_it_is_read(block: str, reads_back: bool) -> None:
    """Where program units hold several units, some of it has been moved and must be read first."""
    job = JOB.replace("bs=4k", f"bs={block}")
    apart = SMALL | {"nand.page": "16KiB"}
    result = ssdlab.run(job, on="lab-reference", set=apart, prepare="steady")
    shares = trace_of(result).points[0].shares
    assert (result.ssdlab["counters"]["read_modify_writes"] > 0) == reads_back
    assert (shares.get("read_modify_write", 0) > 0) == reads_back
    assert shares["die_collection"] > 0.3


def test_the_causes_of_write_amplification_add_up_to_it(result: ssdlab.Result) -> None:
    causes = written(result)
    assert causes["host"] == pytest.approx(1.0)
    assert sum(causes.values()) == pytest.approx(result.waf or 0, rel=1e-3)


def test_without_collection_its_time_and_its_writes_are_gone(result: ssdlab.Result) -> None:
    direction = trace_of(result).measured
    tried = [one for one in explain.changes(result) if one.name == "no-collection"]
    before = explain.outcome(result, direction.job, direction.ddir)
    (after,) = explain.attempt(result, direction, tried)
    assert before.waf is not None and before.waf > 3
    assert after.waf is not None and after.waf < 1.05
    assert after.iops > 2 * before.iops
    assert after.p999_ns is not None and before.p999_ns is not None
    assert after.p999_ns < before.p999_ns


def test_without_its_slc_cache_a_drive_that_folds_writes_everything_once() -> None:
    small = {
        **SMALL,
        "ftl.over_provisioning": 2,
        "ftl.slc_cache": "{static_size='8MiB', t_read='25us', t_program='200us'}",
    }
    result = ssdlab.run(JOB, on="lab-reference", set=small)
    direction = trace_of(result).measured
    causes = written(result)
    assert causes["fold"] > 0.5
    tried = [one for one in explain.changes(result) if "slc" in one.name]
    assert [one.name for one in tried] == ["no-slc-cache", "slc-full"]
    before = explain.outcome(result, direction.job, direction.ddir)
    none, past = explain.attempt(result, direction, tried)
    assert before.waf is not None and none.waf is not None and past.waf is not None
    assert before.waf - none.waf == pytest.approx(causes["fold"], rel=0.02)
    assert none.waf <= past.waf < before.waf
    assert none.iops > before.iops


def test_every_change_that_is_offered_can_be_tried(result: ssdlab.Result) -> None:
    direction = trace_of(result).measured
    offered = explain.changes(result)
    tried = explain.attempt(result, direction, offered)
    assert [one.change for one in tried] == offered
    assert "buffer" in [one.name for one in offered]


@pytest.mark.parametrize(
    ("rw", "prepare", "more", "offers"),
    [
        ("randwrite", "fob", "", "steady"),
        ("write", "fob", "", "sequential"),
        ("write", "sequential,random:1", "", "sequential"),
        ("write", "random:1,sequential", "", None),
        ("randwrite", "sequential", "", None),
        ("randread", "fob", "", None),
        ("randwrite", "fob", "[then]\nstonewall\n", None),
    ],
)
def test_the_state_at_the_start_is_a_cause_too(
    rw: str, prepare: str, more: str, offers: str | None
) -> None:
    job = f"[global]\nbs=128k\nrw={rw}\nio_size=64m\niodepth=8\n[j]\n{more}"
    result = ssdlab.run(job, on="lab-reference", set=SMALL, prepare=prepare)
    tried = [one for one in explain.changes(result) if one.prepare]
    assert [one.prepare for one in tried] == [offers] * (offers is not None)
    if offers:
        direction = trace_of(result).measured
        (after,) = explain.attempt(result, direction, tried)
        other = ssdlab.run(job, on="lab-reference", set=SMALL, prepare=offers)
        assert after.iops == explain.outcome(other, direction.job, direction.ddir).iops


def test_a_write_buffer_that_holds_data_back_absorbs_a_hot_set() -> None:
    buffer = {"write_buffer": "{size='4MiB', power_loss_protected=true}"}
    job = f"{JOB}size=1m\n"
    keys = {**SMALL, **buffer, "controller.command_time": "10us"}
    result = ssdlab.run(job, on="lab-reference", set=keys, prepare="steady")
    direction = trace_of(result).measured
    tried = [one for one in explain.changes(result) if one.name == "drain"]
    (after,) = explain.attempt(result, direction, tried)
    assert after.waf is not None and direction.waf is not None
    assert after.waf < 0.05 < direction.waf


def test_a_try_that_changes_nothing_gives_the_same_numbers(result: ssdlab.Result) -> None:
    direction = trace_of(result).measured
    same = explain.RigChange("same", "the victim policy it has", {"ftl.gc.victim": "greedy"})
    (after,) = explain.attempt(result, direction, [same])
    before = explain.outcome(result, direction.job, direction.ddir)
    assert (after.iops, after.p999_ns, after.waf) == (before.iops, before.p999_ns, before.waf)


@pytest.mark.parametrize(
    ("gains", "says"),
    [
        ((2.0, 0.5, 0.0), ""),
        ((2.0, 0.05, 0.0), "A gain of a few percent may be that of another seed."),
        ((2.0, 1.97, 0.05), "With another seed the second may gain most."),
        ((0.01, 0.0, -0.5), "No gain is more than another seed may make."),
        ((0.0, 0.0), "No gain is more than another seed may make."),
    ],
)
def test_another_seed_is_spoken_of_where_it_may_say_otherwise(
    result: ssdlab.Result, gains: tuple[float, ...], says: str
) -> None:
    def outcome(gain: float, change: explain.RigChange | None) -> explain.ChangeOutcome:
        return explain.ChangeOutcome(change, 1000 * (1 + gain), None, None)

    tried = [outcome(gain, explain.RigChange(f"{gain}", "a change", {})) for gain in gains]
    (note,) = explain.answer(result, [outcome(0.0, None), *tried]).notes
    assert note.partition("with the seed of the run.")[2].strip() == says


def test_the_explanation_of_a_mix_says_whose_time_it_tells() -> None:
    mix = JOB.replace("rw=randwrite", "rw=randrw\nrwmixread=70")
    told = ssdlab.explain(ssdlab.run(mix, on="lab-reference", set=SMALL, prepare="steady")).answer
    assert told.lead.sentences[0].startswith("Of the mean latency of reads: ")
    assert any(said.startswith("Of the mean latency of writes: ") for said in told.lead.sentences)
    assert len(set(told.lead.sentences)) == len(told.lead.sentences)
    tables = {one.title: one for one in told.lead.tables}
    time = [column.name for column in tables["Time per I/O by part"].columns]
    assert [name for name in time if name.endswith("mean")] == [
        "lab-reference, read: mean", "lab-reference, write: mean"
    ]  # fmt: skip
    assert len(tables["Write amplification by cause"].columns) == 2
    # Wear is the drive's: told once, beside the writes, though reads are more.
    assert [column.name for column in tables["SMART counters at the end"].columns] == [
        "counter", "lab-reference"
    ]  # fmt: skip
    drawn = [(figure.group, figure.title) for figure in told.lead.figures]
    both = ["lab-reference, read", "lab-reference, write"]
    assert drawn == [(group, one) for group in dict.fromkeys(g for g, _ in drawn) for one in both]
    assert len(drawn) == 4
    assert tables["With one thing changed"].note == "Of the reads of a mix."


def test_what_only_reads_back_is_told_behind_the_writes_and_is_no_mix() -> None:
    job = JOB.replace("io_size=100g", "verify=crc32c")
    result = ssdlab.run(job, on="lab-reference", set=SMALL, prepare="steady")
    told = ssdlab.explain(result).answer
    tried = next(one for one in told.lead.tables if one.title == "With one thing changed")
    assert tried.note == ""
    assert not any("reads suspend" in str(row[0]) for row in tried.rows)
    compared = [one.section for one in quantities([[result], [result]])]
    assert list(dict.fromkeys(compared)) == ["w, write", "w, read"]
    # Both rates together are none that was there: what a sweep has to sum up is the writes.
    (row,) = RunOutcome.of(result, series=False).summary
    assert row["ddir"] == "write"


def test_a_percentile_that_too_few_ios_carry_is_none_and_not_the_maximum() -> None:
    job = "[w]\nrw=randwrite\nbs=4k\nnumber_ios=500\n"
    few = ssdlab.run(job, on="lab-reference", set={"capacity": "256MiB"})
    direction = trace_of(few).measured
    assert direction.summary()["clat_p999_ns"] is None
    base = explain.outcome(few, direction.job, direction.ddir)
    assert base.p999_ns is None
    document = explain.answer(few, [base]).as_json()
    assert document["tries"][0]["clat_p999_ns"] is None


def test_the_command_says_and_writes_what_it_found(
    result: ssdlab.Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = result.save(tmp_path / "runs")
    out = tmp_path / "explained.json"
    arguments = ["explain", str(folder), "--json", str(out), "--out", str(tmp_path / "runs")]
    assert run_command(arguments) == 0
    said = capsys.readouterr().out
    assert "waiting for dies busy with garbage collection" in said
    assert "hardly any garbage collection" in said
    document = json.loads(out.read_text())
    assert document["tries"][0]["change"] is None
    best = document["tries"][1]
    assert best["change"] == "no-collection"
    assert best["iops"] == max(one["iops"] for one in document["tries"])


def test_a_real_run_is_refused_in_words(
    result: ssdlab.Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = ssdlab.Result.load(result.save(tmp_path / "runs"))
    result.document["ssdlab"].pop("attribution")
    folder = result.save(tmp_path / "runs")
    assert run_command(["explain", str(folder), "--out", str(tmp_path / "runs")]) == 2
    assert "a real drive does not tell" in capsys.readouterr().err


def test_parity_and_the_write_limit_show_as_causes_and_go_when_switched_off() -> None:
    own = {"ftl.parity.stripe": 8, "controller.write_limit": "3MB/s", "capacity": "512MiB"}
    result = ssdlab.run(JOB, on="lab-reference", set=SMALL | own, prepare="steady")
    causes = written(result)
    # One program in eight, of all that is programmed.
    assert causes["parity"] == pytest.approx(sum(causes.values()) / 8, rel=0.01)
    assert sum(causes.values()) == pytest.approx(result.waf or 0, rel=1e-3)
    trace = trace_of(result)
    direction, mean = trace.measured, trace.points[0]
    assert max(mean.shares, key=mean.shares.__getitem__) == "write_limit"
    tried = [one for one in explain.changes(result) if one.name in ("parity", "write-limit")]
    without_parity, without_limit = explain.attempt(result, direction, tried)
    before = explain.outcome(result, direction.job, direction.ddir)
    assert before.iops == pytest.approx(3e6 / 4096, rel=0.005)
    assert without_limit.iops > 2 * before.iops
    assert before.waf is not None and without_parity.waf is not None
    # Superblocks with fewer units of data cost a little less to collect.
    assert without_parity.waf == pytest.approx(before.waf * 7 / 8, rel=0.02)


# --- wear -----------------------------------------------------------------------------------


DYNAMIC = "{dynamic_size='8MiB', t_read='25us', t_program='200us'}"
STATIC = DYNAMIC.replace("dynamic", "static")


def worn(more: dict[str, object], job: str = JOB, prepare: str = "steady") -> ssdlab.Result:
    return ssdlab.run(job, on="lab-reference", set=SMALL | more, prepare=prepare)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"capacity": "1GiB", "ftl.gc.scope": "channel", "ftl.gc.low": 3},
        {"capacity": "2GiB", "ftl.gc.scope": "drive", "ftl.gc.pace": "paced"},
        {"capacity": "1000001536B", "ftl.parity.stripe": 8, "ftl.over_provisioning": 0.333},
        {"ftl.compression": "{granule='1KiB'}"},
        {"ftl.over_provisioning": 0.6, "ftl.slc_cache": DYNAMIC},
    ],
)
def test_the_flash_for_data_is_what_the_drive_was_built_with(more: dict[str, object]) -> None:
    result = worn(more, prepare="fob")
    found = Stretch.of(result).wear
    frame = result.device_series()
    assert found is not None and frame is not None
    # A new drive's superblocks are all free.
    free = next(name for name in frame.columns if name.endswith("free_superblocks"))
    assert found.members[""].flash.superblocks == frame[free][0]


@pytest.mark.parametrize(
    ("more", "tolerance"),
    [
        ({}, 0.01),
        ({"capacity": "512MiB", "ftl.parity.stripe": 8}, 0.01),
        ({"ftl.map": "{kind='cached', cache='64KiB'}"}, 0.01),
        ({"ftl.slc_cache": DYNAMIC}, 0.03),
        ({"ftl.slc_cache": STATIC}, 0.03),
        ({"ftl.slc_cache": DYNAMIC.replace("{", "{static_size='4MiB', ")}, 0.03),
    ],
)
def test_the_wear_of_the_cells_is_that_of_the_erases(
    more: dict[str, object], tolerance: float
) -> None:
    long = JOB.replace("30000", "400000")
    result = worn({"ftl.over_provisioning": 0.6} | more, long)
    stretch = Stretch.of(result)
    found = trace_of(result).wear
    assert found is not None and found.endurance is not None
    flash = found.members[""].flash
    room = stretch.grown["data_erases_sum"] * flash.superblock_bytes / (400_000 * 4096)
    assert found.endurance.write_amplification == pytest.approx(room, rel=tolerance)


def test_the_result_has_the_smart_counters_and_the_endurance() -> None:
    result = worn({"nand.rated_pe_cycles": 40})
    wear = result.ssdlab["wear"]
    counters = result.ssdlab["counters"]
    assert wear["erases_mean"] > 4
    assert wear["percentage_used"] == int(100 * wear["erases_mean"] / 40)
    for name in ("data_units_written", "percentage_used", "erases_min", "erases_max"):
        assert wear[name] == counters[name]
    assert wear["host_write_commands"] == counters["host_writes"]
    lasts = wear["endurance"]
    assert lasts["write_amplification"] == pytest.approx(result.waf, rel=1e-3)
    total = 40 * wear["physical_bytes"] / lasts["write_amplification"]
    assert lasts["host_bytes"] == pytest.approx(total)
    left = total * (1 - wear["erases_mean"] / 40)
    assert lasts["host_bytes_left"] == pytest.approx(left)
    assert lasts["dwpd_5_years"] == pytest.approx(total / (64 << 20) / 1825)


def test_flash_that_is_worn_out_has_nothing_left() -> None:
    wear = worn({"nand.rated_pe_cycles": 2}).ssdlab["wear"]
    assert wear["percentage_used"] > 100
    assert wear["endurance"]["host_bytes_left"] == 0


def test_reads_alone_say_nothing_about_endurance() -> None:
    result = worn({}, JOB.replace("randwrite", "randread"), "random:1")
    wear = result.ssdlab["wear"]
    assert wear["endurance"] is None
    assert wear["host_read_commands"] == 30_000
    assert wear["data_units_read"] == 240  # 30 000 x 4096 / 512 000


def test_a_rig_without_an_ssd_has_no_wear(tmp_path: Path) -> None:
    rig = tmp_path / "null.toml"
    rig.write_text(
        'name = "n"\n[device]\nkind = "null"\ncapacity = "1GiB"\nservice_time = "10us"\n'
    )
    result = ssdlab.run(JOB, on=rig)
    assert "wear" not in result.ssdlab
    assert Stretch.of(result).wear is None


def test_the_command_says_how_long_the_flash_lasts(
    result: ssdlab.Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = result.save(tmp_path / "runs")
    out = tmp_path / "explained.json"
    arguments = ["explain", str(folder), "--no-try", "--json", str(out)]
    assert run_command([*arguments, "--out", str(tmp_path / "runs")]) == 0
    said = capsys.readouterr().out.replace("\u202f", " ")
    assert "of 3,000 P/E cycles used" in said
    wear = json.loads(out.read_text())["wear"]
    lasts = result.summary()[0]["waf"]
    assert wear["endurance"]["write_amplification"] == pytest.approx(lasts, rel=1e-3)
    assert f"({lasts:.2f} bytes of flash per byte written)" in said
