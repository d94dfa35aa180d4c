"""Arrays of drives: rigs as text, readings, predictions, the command, the page."""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import browser
import ssdlab
from conftest import Cli, histogram_of
from ssdlab import _core
from ssdlab.arrays import predict, studies
from ssdlab.arrays.advice import advise
from ssdlab.arrays.compare import study
from ssdlab.arrays.grid import ArrayCase, DriveSetup, depends_on_size, shapes
from ssdlab.arrays.measured import measured_drive
from ssdlab.arrays.offer import rows_of
from ssdlab.arrays.performance import Performance
from ssdlab.arrays.rigs import ArrayShape, array_rig, mixed_rig, shipped
from ssdlab.arrays.workloads import WORKLOADS, job, workload
from ssdlab.errors import InputError, Interrupted
from ssdlab.experiments import raid0_slowest_member, runner
from ssdlab.jobfile import JobText
from ssdlab.rig import profiles
from ssdlab.target import Settings, Sim
from ssdlab.units import for_page


def null(ms: float = 1.0, capacity: str = "64MiB") -> Sim:
    return Sim(
        "null",
        f'[device]\nkind = "null"\ncapacity = "{capacity}"\nservice_time = "{ms}ms"\nservers = 1\n',
    )


def measured(latency: str) -> Sim:
    return Sim(
        "drive",
        '[device]\nkind = "measured"\ncapacity = "1GiB"\n'
        f"[[device.read]]\n{latency}\n[[device.write]]\n{latency}\n",
    )


def one(drive: Sim, shape: ArrayShape | None, text: str, prepare: str = "fob") -> Performance:
    setup = DriveSetup(drive, prepare=prepare)
    return setup.measure({"one": ArrayCase(shape, JobText("j.fio", text, Path()))})["one"]


@pytest.mark.parametrize("name", [one.name for one in profiles()])
def test_a_drive_is_in_the_rig_of_its_array_as_it_is(name: str) -> None:
    rig = _core.Rig(array_rig(shipped(name), ArrayShape("5", 4, 64 << 10)), rig_name="array")
    member = rig.part("member")
    assert member is not None
    assert sorted(member.values()) == sorted(shipped(name).tree().values()), "sources, too"
    assert [rig.get(key) for key in ("level", "count", "chunk")] == ["raid5", "4", "65536B"]


@pytest.mark.parametrize(
    ("options", "law"),
    [
        ("random_distribution=zipf:1.1", "zipf"),
        ("random_distribution=pareto:0.2", "pareto"),
        ("random_distribution=zoned:60/10:40/90", ""),
        ("", ""),
    ],
)
def test_laws_that_count_places_do_not_scale_down(options: str, law: str) -> None:
    """Places have a share by their number, of which smaller drives have fewer."""
    text = f"[global]\nrw=randwrite\n{options}\n[a]\nbs=4k\n"
    said = depends_on_size(JobText("j.fio", text, Path()))
    assert said.startswith(f"{law} depends on how many places there are" if law else "")
    assert bool(said) == bool(law)


def test_two_laws_that_count_places_are_told_at_once() -> None:
    jobs = "".join(f"[{law}]\nrandom_distribution={law}:0.5\n" for law in ("zipf", "pareto"))
    said = depends_on_size(JobText("j.fio", f"[global]\nrw=randwrite\n{jobs}", Path()))
    assert said.startswith("zipf and pareto depend on")


def test_a_rig_without_a_device_is_refused() -> None:
    with pytest.raises(InputError, match=r"x: has no \[device\] table"):
        array_rig(Sim("x", 'name = "x"\n'), ArrayShape("0", 2))
    with pytest.raises(InputError, match=r"^x:1: "):
        array_rig(Sim("x", "= 1"), ArrayShape("0", 2))


def test_an_array_of_one_member_is_as_fast_as_the_drive() -> None:
    text = "[w]\nrw=randwrite\nbs=4k\niodepth=4\nsize=8m\n"
    alone, array = one(null(), None, text), one(null(), ArrayShape("0", 1), text)
    assert array.iops == alone.iops
    assert array.latency.summary("clat") == alone.latency.summary("clat")


@pytest.mark.parametrize(("level", "ios"), [("0", 1.0), ("10", 2.0), ("5", 4.0), ("6", 6.0)])
def test_a_small_write_costs_as_many_commands_as_the_level_takes(level: str, ios: float) -> None:
    text = "[w]\nrw=randwrite\nbs=4k\niodepth=1\nsize=100%\nnumber_ios=200\n"
    found = one(null(0.1, "1GiB"), ArrayShape(level, 8), text)
    # Rows of stripes met a second time may still be in the cache.
    assert found.member_ios == pytest.approx(ios, rel=0.02)
    assert found.written is not None
    assert found.written.mean * 8 == pytest.approx(
        200 * 4096 * {"0": 1, "10": 2, "5": 2, "6": 3}[level]
    )


def test_the_worked_example_takes_its_slowest_member_to_the_nanosecond() -> None:
    task = next(t for t in raid0_slowest_member.plan(1) if t.key == "example")
    found = Performance.of(
        Sim(task.drive, task.rig).run(JobText("example.fio", task.job, Path()), Settings())
    )
    assert found.max_ns == 9_700_000
    assert found.utilisation is not None
    assert found.utilisation.max == 1.0
    assert found.utilisation.min == pytest.approx(1.0 / 9.7)
    assert found.utilisation.mean == pytest.approx(4.2875 / 9.7)


def test_the_slowest_of_n_is_that_of_the_closed_forms() -> None:
    # Exponential: E[max] = H_N; in fine bins.
    fine = {ns: math.exp(-ns / 1000) for ns in range(1, 20_000)}
    bins = histogram_of({ns: round(1e9 * share) for ns, share in fine.items()})
    for n in (1, 2, 8, 24):
        harmonic = sum(1 / i for i in range(1, n + 1))
        assert predict.slowest_mean(bins, n) / predict.slowest_mean(bins, 1) == pytest.approx(
            harmonic, rel=0.002
        )
    # Two-point, models of RAID at depth 1: p = 0.02, five times as long.
    two = histogram_of({1004: 98, 5024: 2})
    told = predict.foretell(two, 8, 1 << 19)
    assert 1 - told.loss == pytest.approx(0.676, abs=0.001)
    assert told.by_means == pytest.approx(8 * (1 << 19) / (1084.4 / 1e9))


def test_measured_members_lose_what_is_predicted() -> None:
    drive = measured('mean = "1ms"\ndistribution = "two-point"\nspread = 5\nshare = 0.02')
    setup = DriveSetup(drive, prepare="fob")
    chapter = studies.scaling(setup, [1, 8])
    run = chapter.rows[-1]
    assert run["bw_bytes"] / run["from_means_bw_bytes"] == pytest.approx(0.676, rel=0.05)
    assert run["bw_bytes"] == pytest.approx(run["from_slowest_bw_bytes"], rel=0.08)
    assert "waits for the slowest member" in chapter.sentences[0]


def test_a_grid_leaves_out_what_has_too_few_members_and_chunks_without_meaning() -> None:
    good, short = shapes(["0", "1", "6"], [2, 4], [4096, 8192])
    assert [s for s in good if s.level == "1"] == [
        ArrayShape("1", 2, 4096),
        ArrayShape("1", 4, 4096),
    ]
    assert {(s.level, s.count) for s in short} == {("6", 2)}
    assert len([s for s in good if s.level == "0"]) == 4


def test_the_advice_takes_mirrors_for_small_writes_and_parity_for_reads() -> None:
    setup = DriveSetup(null(0.1, "256MiB"), prepare="fob", price=100.0)
    grid, _ = shapes(["0", "10", "5"], [4, 8], [512 << 10])
    writes = study(setup, grid, job("rw=randwrite\nbs=4k", "w", depth=64, seconds=0.5))
    assert "take RAID 10 of 8" in writes.sentences[0]
    reads = study(setup, grid, job("rw=randread\nbs=4k", "r", depth=64, seconds=0.5))
    assert "take RAID 5 of 8" in reads.sentences[0]
    rows = {row["array"]: row for row in reads.rows if row["array"]}
    raid5 = rows["RAID 5 of 8, chunk 512 KiB"]
    assert raid5["usable_bytes"] == 7 * (256 << 20)
    assert raid5["price_per_gb"] == pytest.approx(800 / (7 * (256 << 20) / 1e9))
    assert 0.8 < raid5["efficiency"] <= 1.001


def test_arrays_among_which_the_choice_is_close_are_run_with_several_seeds() -> None:
    drive = measured('mean = "1ms"\ndistribution = "exponential"')
    setup = DriveSetup(drive, prepare="fob")
    load = job("rw=randread\nbs=4k", "r", depth=16, seconds=0.5)
    grid, _ = shapes(["0", "10", "5"], [2, 4], [512 << 10])
    once, thrice = (study(setup, grid, load, seeds=seeds) for seeds in (1, 3))
    assert not any(row["iops_by_seed"] for row in once.rows)
    assert not any("seeds" in sentence for sentence in once.sentences)
    first = {row["array"]: row["iops"] for row in once.rows}
    several = {row["array"]: row for row in thrice.rows if row["iops_by_seed"]}
    assert {name.split(",")[0] for name in several} == {"RAID 10 of 4", "RAID 5 of 4"}
    for name, row in several.items():
        assert len(set(row["iops_by_seed"])) == 3 and row["iops_by_seed"][0] == first[name]
        assert row["iops"] == pytest.approx(sum(row["iops_by_seed"]) / 3)
        alone = next(r for r in thrice.rows if r["array"] is None)
        assert row["speedup"] == pytest.approx(row["iops"] / alone["iops"])
    assert [one for one in thrice.sentences if one.startswith("Over 3 seeds")]


@pytest.mark.parametrize(
    ("rates", "sure"),
    [([80, 81, 82], True), ([88, 90, 92], False), ([98, 100, 102], True)],
)  # fmt: skip
def test_a_choice_that_another_seed_may_turn_is_told(rates: list[float], sure: bool) -> None:
    setup = DriveSetup(null(), prepare="fob")
    did = setup.measure(
        {shape: ArrayCase(shape, job("rw=randread\nbs=4k", "r", seconds=0.1))
         for shape in (None, ArrayShape("10", 4), ArrayShape("5", 4))}
    )  # fmt: skip
    _, *rows = rows_of(setup, did)
    seen = {"10": [99.0, 100.0, 101.0], "5": rates}
    rows = [
        replace(row, did=replace(row.did, iops=sum(own) / 3, by_seed=own))
        for row in rows
        for own in [seen[row.level]]
    ]
    (told,) = [one for one in advise(rows) if one.startswith("Over 3 seeds")]
    assert ("another seed may choose otherwise" not in told) == sure


def test_a_percentile_that_too_few_ios_carry_is_not_told_as_nothing(
    cli: Cli, tmp_path: Path
) -> None:
    job = tmp_path / "few.fio"
    job.write_text("[w]\nrw=randread\nbs=4k\nnumber_ios=20\n")
    few = ("--set", "capacity=256MiB", "--levels", "0,10", "--count", 4, "--job", job)
    done = cli("array", "lab-reference", *few, "--json", "-")
    assert done.status == 0, done.err
    document = json.loads(done.out)
    assert "all I/Os within 87.3 us" in document["sentences"][0]
    curves = [
        curve
        for section in document["sections"]
        for figure in section["figures"]
        if figure["title"] == "Latency"
        for curve in figure["curves"]
    ]
    assert [curve["name"] for curve in curves] == ["p50"] and 0.0 not in curves[0]["y"]


def test_members_of_other_sizes_are_told_by_the_core() -> None:
    rig = mixed_rig([null(), null(capacity="32MiB")], ArrayShape("0", 2))
    with pytest.raises(InputError, match="accept_waste"):
        _core.rig_check(rig, rig_name="mixed.toml")


def test_a_grid_can_be_stopped() -> None:
    case = ArrayCase(None, JobText("j", "[w]\nrw=write\nsize=1m\n", Path()))
    with pytest.raises(Interrupted):
        DriveSetup(null(), prepare="fob").measure(dict.fromkeys(range(3), case), lambda _: False)


def fio_document(size: int = 4096, depth: int = 1) -> dict[str, object]:
    rng = random.Random(1)
    values = [round(rng.gauss(200_000, 20_000)) for _ in range(5000)]
    bins = {str(v): 1 for v in set(values)}
    clat = {"mean": 200_000.0, "max": max(values), "bins": bins}
    stats = {
        "total_ios": len(bins), "io_bytes": len(bins) * size, "iops": 5000.0, "bw_bytes": 2e7,
        "runtime": 1000, "clat_ns": clat,
    }  # fmt: skip
    options = {"rw": "randread", "ioengine": "libaio", "iodepth": str(depth)}
    return {"jobs": [{"jobname": "r", "job options": options, "read": stats}]}


def test_an_array_of_your_drive_comes_from_its_fio_result(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(fio_document()))
    drive = measured_drive(path)
    keys = {key: value for key, value, _ in drive.tree().values()}
    assert (keys["concurrency"], keys["read.0.size"]) == ("1", "4096B")
    alone = one(drive, None, "[r]\nrw=randread\nbs=4k\niodepth=1\nruntime=1\ntime_based\nsize=1g\n")
    assert alone.mean_ns == pytest.approx(200_000, rel=0.01)
    said = cli(
        "array", "--measured", path, "--workload", "random-read", "--count", 4, "--json", "-", "-q"
    )
    assert said.status == 0, said.err
    document = json.loads(said.out)
    assert document["drive"] == "mine"
    assert {row["count"] for row in document["sections"][0]["rows"]} == {1, 4}


def test_a_latency_log_keeps_its_order(tmp_path: Path) -> None:
    log = tmp_path / "mine_lat.1.log"
    rows = [f"{i}, {1000 * (i + 1)}, {i % 2}, 4096, 0" for i in range(10)]
    log.write_text("\n".join(rows) + "\n")
    said = {key: value for key, value, _ in measured_drive(log).tree().values()}
    assert (said["read.0.size"], said["read.0.block"]) == ("4096B", "5")
    assert json.loads(said["read.0.series"]) == [1000, 3000, 5000, 7000, 9000]
    found = one(measured_drive(log), None, "[r]\nrw=randread\nbs=4k\nsize=1m\n")
    assert found.mean_ns == pytest.approx(5000, rel=0.02)


def test_what_is_no_measurement_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("[]")
    with pytest.raises(InputError, match="no JSON document of fio"):
        measured_drive(path)
    path.write_text('{"jobs": [{"jobname": "a", "read": {"total_ios": 1, "io_bytes": 1}}]}')
    with pytest.raises(InputError, match="no JSON document of fio"):
        measured_drive(path)
    plain = fio_document()
    plain["jobs"][0]["read"]["clat_ns"].pop("bins")  # type: ignore[index]
    path.write_text(json.dumps(plain))
    with pytest.raises(InputError, match="no latency bins"):
        measured_drive(path)
    log = tmp_path / "x_lat.1.log"
    log.write_text("0, 1000, 0, 4096, 0\nnonsense\n")
    with pytest.raises(InputError, match="line 2"):
        measured_drive(log)
    with pytest.raises(InputError, match="there is no such"):
        measured_drive(tmp_path / "no.json")
    two = fio_document()
    two["jobs"] = [*fio_document(depth=1)["jobs"], *fio_document(depth=2)["jobs"]]  # type: ignore[misc]
    path.write_text(json.dumps(two))
    with pytest.raises(InputError, match="depths 1, 2"):
        measured_drive(path)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "name one drive"),
        (["lab-reference", "--levels", "7"], 'RAID level is called "7"'),
        (["lab-reference", "--levels", "6", "--count", "2"], "RAID 6 takes 4"),
        (["lab-reference", "--count", "0"], "--count"),
        (["lab-reference", "--chunk", "5k"], "multiples of 4k"),
        (["lab-reference", "--study", "depht"], 'did you mean "depth"'),
        (["lab-reference", "--workload", "nosuch"], "random-read"),
        (["lab-reference", "--study", "chunk", "--levels", "1"], "none of these levels has chunks"),
        (["no.toml"], "there is no such rig file"),
        *(
            (["lab-reference", "--study", study, *more], part)
            for study, more, part in [
                ("degradation", ["--workload", "mixed"], "--workload changes nothing"),
                ("degradation", ["--prepare", "fob"], "arrays, chunk, scaling and depth"),
                ("scaling", ["--job", "no.fio"], "--job changes nothing in --study scaling"),
                ("scaling", ["--levels", "5"], "--study scaling is of RAID 0"),
                ("depth", ["--depth", "4"], "--depth changes nothing in --study depth"),
                ("chunk", ["--chunk", "64k"], "--chunk changes nothing in --study chunk"),
                ("chunk", ["--price", "5"], "--price changes nothing in --study chunk"),
                ("arrays", ["--job", "no.fio", "--depth", "4"], "a job file has its own depth"),
            ]
        ),
    ],
)
def test_what_the_user_got_wrong_is_one_sentence(cli: Cli, arguments: list[str], part: str) -> None:
    said = cli("array", *arguments)
    assert said.status == 2
    assert part in said.err
    assert said.out == ""


def test_every_load_is_a_job_for_fio_too() -> None:
    for load in WORKLOADS:
        text = load.job()
        _core.check_job(text.text, job_name=text.name)


def test_every_study_finds_drives_in_the_state_that_its_writes_leave(
    tmp_path: Path, cli: Cli
) -> None:
    """On drives filled sequentially random writes collect nothing yet; on drives written at random
    collection takes what sequential writes could have."""
    file = tmp_path / "mine.fio"
    file.write_text("[global]\nrw=randwrite\n[a]\nbs=4k\niodepth=32\nnorandommap\nio_size=30m\n")
    small = ("array", "lab-reference", "--set", "capacity=256MiB", "--levels", "0", "--count", 2)
    studies = ("--study", "arrays", "--study", "scaling", "--chunk", "256k")
    asked = (*small, *studies, "--job", file, "--json", "-")
    document, filled = (
        json.loads(cli(*asked, *more).out) for more in ((), ("--prepare", "sequential"))
    )
    assert document["notes"][0].endswith("prepared with steady (scaling: sequential)")
    assert filled["notes"][0].endswith("prepared with sequential")

    def rates(document: dict[str, Any], key: str) -> list[float]:
        (found,) = (part for part in document["sections"] if part["key"] == key)
        return [row["iops"] for row in found["rows"]]

    steady, fresh = rates(document, "arrays"), rates(filled, "arrays")
    assert all(2 * own < first for own, first in zip(steady, fresh, strict=True))
    assert rates(document, "scaling") == rates(filled, "scaling")
    doubts = [check["evidence"] for check in filled["checks"]]
    assert any("times the room beside the data was written at random" in one for one in doubts)
    assert not any("the room beside" in check["evidence"] for check in document["checks"])


def test_a_load_that_prefers_places_is_measured_in_a_steady_state_of_its_own() -> None:
    load = workload("database")
    once = load.settling(32)
    assert once is not None and workload("mixed").settling(32) is None

    def rate(job: JobText) -> float:
        return Performance.of(ssdlab.run(job.text, "demo-client", scale=16, prepare="steady")).iops

    unsettled, settled = rate(replace(load, own="").job()), rate(load.job())
    # A section name may stand there once.
    sections = [once.text.replace("settling]", f"settling{n}]\nstonewall") for n in (1, 2)]
    longer = "".join(section.replace("[global]", "[global]\n") for section in sections)
    last = rate(JobText("longer", longer + load.job().text, Path.cwd()))
    assert settled == pytest.approx(last, rel=0.03) and unsettled > 1.15 * last


def test_rigs_are_written_for_other_commands(cli: Cli, tmp_path: Path) -> None:
    said = cli("array", "lab-reference", "--levels", "0,5", "--count", 4, "--save-rigs", tmp_path)
    assert said.status == 0, said.err
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["raid0-4-512k-lab-reference.toml", "raid5-4-512k-lab-reference.toml"]
    small = ["--set", "capacity=256MiB", "--set", "ftl.over_provisioning=0.5"]
    run = ["test", tmp_path / names[0], "--protocol", "recovery", "--quick", *small]
    found = cli(*run, "--out", tmp_path / "runs")
    assert found.status == 0, found.err
    assert "Once everything was written twice" in found.out


def test_a_study_says_which_arrays_it_is_of_and_what_it_runs(cli: Cli) -> None:
    small = ("array", "lab-reference", "--set", "capacity=128MiB", "--count", "2,3")
    done = cli(*small, "--study", "degradation", "--levels", "10,5", "--json", "-")
    assert "--study degradation is of RAID 10 of 2, chunk 512 KiB alone" in done.err
    document = json.loads(done.out)
    assert document["job"] is None and document["prepare"] is None
    assert document["notes"] == ["arrays of lab-reference"]
    scaled = cli(*small, "--study", "scaling", "--chunk", "64k,128k", "--json", "-")
    assert "left out" not in scaled.err and "is of chunks of 64 KiB alone" in scaled.err
    document = json.loads(scaled.out)
    assert document["sentences"][0].startswith("3 drives write 192 KiB at a time")
    assert document["notes"] == ["arrays of lab-reference, prepared with sequential"]


def test_shallow_depths_are_measured_as_long_as_slow_writes_are_rare() -> None:
    """At depth 1 one member has the write and collects as the drive alone would: four are as fast
    as one. In a second they were 0.88 times as fast, by eleven collections or so."""
    setup = DriveSetup(shipped("lab-reference"), overrides={"capacity": "256MiB"}, prepare="steady")
    chapter = studies.depths(setup, [ArrayShape("0", 4)], workload("random-write"))
    one, four = (row["iops"] for row in chapter.rows if row["depth"] == 1)
    assert four == pytest.approx(one, rel=0.05)


def test_latencies_as_long_as_their_run_are_in_doubt(cli: Cli, tmp_path: Path) -> None:
    rig = tmp_path / "slow.toml"
    rig.write_text(null().rig)
    asked = ("array", rig, "--levels", "0", "--count", 2, "--workload", "random-read")
    array = "RAID 0 of 2, chunk 512 KiB"
    for kind, depth, doubted in (
        ("arrays", 32, []),
        ("arrays", 5000, ["one drive", array]),
        ("chunk", 32, []),
        ("chunk", 5000, [ArrayShape("0", 2, kib << 10).name for kib in studies.CHUNKS_KIB]),
    ):
        done = cli(*asked, "--depth", depth, "--study", kind, "--json", "-")
        assert done.status == 0, done.err
        told = json.loads(done.out)
        assert [one["affects"] for one in told["checks"]] == [[name] for name in doubted]
        if kind == "arrays":
            assert ("; in doubt." in told["sentences"][0]) == bool(doubted)
    said = cli(*asked, "--depth", 5000).out
    assert "†" in said and "one drive: length of the job" in said


def test_an_odd_number_of_members_has_no_mirror_pairs() -> None:
    assert ArrayShape("10", 4).survives == "one member of each mirror pair"
    assert ArrayShape("10", 3).survives == ArrayShape("5", 3).survives == "one member"


def test_back_end_ios_are_told_of_every_level_where_one_has_many() -> None:
    setup = DriveSetup(null(0.1, "256MiB"), prepare="fob")
    grid, _ = shapes(["10", "6"], [6], [64 << 10])
    mixed = study(setup, grid, job("rw=randrw\nrwmixread=80\nbs=4k", "w", seconds=0.5))
    assert "Back-end I/Os per host I/O of this load: RAID 10 1.2, RAID 6 2." in mixed.sentences


def test_degradation_stays_where_trim_does_not_arrive() -> None:
    setup = DriveSetup(
        shipped("lab-reference"), overrides={"capacity": "256MiB", "ftl.over_provisioning": "0.28"}
    )
    chapter = studies.degradation(setup, ArrayShape("0", 2))
    rates = {(row["array"], row["state"]): row["iops"] for row in chapter.rows}
    passed, stopped = "RAID 0 of 2, TRIM passed on", "RAID 0 of 2, TRIM not passed on"
    assert chapter.sentences[0].startswith("4 KiB random writes at depth 32, one drive: ")
    used, trimmed = studies.STATES[1][0], studies.STATES[3][0]
    assert rates[passed, trimmed] > 2 * rates[passed, used]
    assert rates[stopped, trimmed] == pytest.approx(rates[stopped, used], rel=0.05)


def test_a_run_tells_of_members_that_fail_or_that_the_others_wait_for(
    cli: Cli, tmp_path: Path
) -> None:
    member = '{{ kind = "null", capacity = "32MiB", service_time = "{us}us" }}'
    equal, slow = member.format(us=100), member.format(us=400)
    reads = "[r]\nrw=randread\nbs=4k\nnorandommap\ntime_based\nruntime=2\nsize=100%\n"

    def said(keys: str, options: str) -> str:
        (rig := tmp_path / "r.toml").write_text(f'[device]\nkind = "array"\n{keys}\n')
        (path := tmp_path / "r.fio").write_text(f"{reads}{options}\n")
        done = cli("run", path, "--on", rig, "--out", tmp_path / "runs")
        assert done.status == 0, done.err
        return done.out

    # Each member has a quarter of the reads, and the slow one takes four times as long for them.
    told = said(f'level = "raid0"\nmembers = [{equal}, {equal}, {slow}, {equal}]', "iodepth=64")
    assert "member2 of the array was busy 100 % of the time, the others 25 % at most." in told
    (kept,) = (tmp_path / "runs").iterdir()
    explained = cli("explain", kept, "-v").out
    assert "member2 of the array was busy" in explained and "one thing changed" not in explained
    fails = f'level = "raid5"\ncount = 3\nmember = {equal}\nfail = [{{ member = 0, at = "1ms" }}]'
    assert "1 member of the array failed; 1 missing at the end." in said(fails, "thinktime=1s")
    spare = said(f"{fails}\nspares = 1", "thinktime=1s")
    assert "failed; 33.6 MB were rebuilt, 1 member in full; none missing at the end." in spare


@pytest.mark.parametrize(
    ("rig", "told", "errors"),
    [
        (
            'kind = "array"\nlevel = "raid5"\ncount = 3\n'
            'fail = [{ member = 0, at = "1ms" }, { member = 1, at = "2ms" }]\nmember = DRIVE',
            "2 members of the array failed; 2 missing at the end; 45.1 MB of data were lost; "
            "{} I/Os that needed them ended in an error.",
            True,
        ),
        (
            'kind = "tier"\nfast_fails_at = "1ms"\nfast = DRIVE\nbelow = DRIVE',
            "1 device of the tier failed; 32.5 MB of data were lost; "
            "{} I/Os that needed them ended in an error.",
            True,
        ),
        (
            'kind = "cache"\nmode = "write-back"\ncache_fails_at = "100ms"\n'
            'cache = DRIVE\nbelow = { kind = "null", capacity = "1GiB" }',
            "The cache device of the cache failed; {} of data were lost.",
            False,
        ),
    ],
    ids=["array", "tier", "cache"],
)
def test_a_run_tells_what_failures_took_and_which_ios_they_ended(
    rig: str, told: str, errors: bool, cli: Cli, tmp_path: Path
) -> None:
    """I/Os that end in an error are counted in the rate, so its number is not valid."""
    drive = '{ kind = "null", capacity = "32MiB" }'
    (path := tmp_path / "r.toml").write_text(f"[device]\n{rig.replace('DRIVE', drive)}\n")
    (job := tmp_path / "w.fio").write_text(
        "[w]\nrw=randwrite\nbs=4k\nnorandommap\ntime_based\nruntime=1\nsize=100%\n"
    )
    done = cli("run", job, "--on", path, "--out", tmp_path / "runs")
    assert done.status == 0, done.err
    before, after = told.split("{}")
    (said,) = [line for line in done.out.splitlines() if line.startswith(before)]
    assert said.endswith(after)
    assert ("not valid (errors): " in done.out) is errors
    if errors:
        count = said.removeprefix(before).removesuffix(after)
        assert (
            f"{count} I/Os ended in an error: what they needed was lost with a device" in done.out
        )


def test_a_run_tells_of_stripes_that_a_loss_of_power_tore(cli: Cli, tmp_path: Path) -> None:
    (rig := tmp_path / "r.toml").write_text(
        'power_loss = ["1.00005s"]\n[device]\nkind = "array"\nlevel = "raid5"\ncount = 4\n'
        'member = { kind = "null", capacity = "32MiB", service_time = "100us", servers = 4 }\n'
    )
    (job := tmp_path / "w.fio").write_text(
        "[w]\nrw=randwrite\nbs=4k\niodepth=8\nnorandommap\ntime_based\nruntime=2\nsize=100%\n"
    )
    done = cli("run", job, "--on", rig, "--json", "-", "--out", tmp_path / "runs")
    assert done.status == 0, done.err
    torn = json.loads(done.out)["ssdlab"]["counters"]["power_torn_stripes"]
    assert torn > 1
    assert f", {torn} stripes of arrays had a parity that fits no data, devices" in done.err


def test_what_only_reads_back_is_no_part_of_the_rate_of_an_array(cli: Cli, tmp_path: Path) -> None:
    """Reads come when nothing is written any more: both rates together are none that was there."""
    plain = "[a]\nrw=randwrite\nbs=4k\niodepth=8\nsize=8m\n"
    found = []
    for name, verify in (("plain", ""), ("checked", "verify=crc32c\n")):
        (job := tmp_path / f"{name}.fio").write_text(plain + verify)
        line = ("--job", job, "--levels", "0", "--count", 2, "--seeds", 1, "--json", "-")
        done = cli("array", "demo-client", *line, "--set", "capacity=1GiB")
        assert done.status == 0, done.err
        rows = json.loads(done.out)["sections"][0]["rows"]
        found.append([(row["iops"], row["clat_mean_ns"]) for row in rows])
    assert found[1] == [pytest.approx(one) for one in found[0]]


def test_a_run_says_that_verify_does_not_look_for_what_was_lost(cli: Cli, tmp_path: Path) -> None:
    (job := tmp_path / "w.fio").write_text("[w]\nrw=randwrite\nbs=4k\niodepth=8\nsize=8m\n")
    (checked := tmp_path / "v.fio").write_text(f"{job.read_text()}verify=crc32c\n")
    line = ("--on", "demo-client", "--set", "capacity=1GiB", "--out", tmp_path / "runs")
    cut = ("--set", 'power_loss=["10ms"]')
    told = "verify did not look for what was lost; fio fails where it reads back any of that."
    for path, more, says in ((checked, cut, True), (job, cut, False), (checked, (), False)):
        done = cli("run", path, *line, *more)
        assert done.status == 0, done.err
        assert ("Power was lost once" in done.out, told in done.out) == (more == cut, says)


def test_the_ram_of_a_card_is_as_small_beside_drives_as_in_truth(cli: Cli) -> None:
    """Of two drives of 1 GiB a card's GiB would hold half, and write 11 times as much as one."""
    line = ("array", "intel-x25-e-32", "--levels", "0", "--count", 2, "--json", "-")
    done = cli(*line, "--controller", "lsi-9361-8i")
    assert done.status == 0, done.err
    document = json.loads(done.out)
    assert document["notes"][0].endswith("each, behind RAM of 67.1 MB")
    assert document["sections"][0]["rows"][1]["speedup"] < 2.4
    done = cli(*line, "--controller", "lsi-9361-8i", "--set", "capacity=1GiB")
    assert done.status == 0, done.err
    document = json.loads(done.out)
    assert document["notes"][0].endswith("; behind RAM of 67.1 MB")
    assert document["sections"][0]["rows"][1]["speedup"] < 2.4


def test_what_few_dips_leave_open_is_told_of_a_drive_and_of_arrays_of_it(cli: Cli) -> None:
    """RAID 0 of two gives the rate of one or of both, by whether they collect at the same time."""
    line = ("array", "samsung-840-pro-128", "--levels", "0", "--count", 2, "--json", "-")
    done = cli(*line, "--workload", "random-write")
    assert done.status == 0, done.err
    checks = json.loads(done.out)["checks"]
    (one,) = [check for check in checks if check["title"] == "one drive: noise of the rate"]
    assert one["affects"] == ["one drive", "RAID 0 of 2, chunk 512 KiB"]
    assert re.search(r"IOPS ±\d\d % \(95 %\) over 2.* seeds; of an array, whether", one["evidence"])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from ssdlab.cli import run_command

    folder = tmp_path_factory.mktemp("page")
    rig = folder / "null.toml"
    rig.write_text(null(0.1).rig)
    path = folder / "arrays.html"
    arguments = ["array", rig, "--count", "2,4", "--price", 50, "-o", path, "-q"]
    arguments += ["--study", "arrays", "--study", "scaling", "--workload", "random-read"]
    assert run_command([str(one) for one in arguments]) == 0
    return path


def test_the_page_says_what_to_take(page: Path) -> None:
    text = page.read_text()
    assert "For this load take RAID" in text
    assert "Writes of whole stripes" in text
    assert for_page("per 1000 IOPS") in text


@pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "-")
def test_the_page_draws_its_charts_without_complaint(page: Path) -> None:
    with browser.tab() as tab:
        tab.open(page, 1280)
        assert tab.complaints == []
        assert not [one for one in tab.requests if one.startswith("http")]


def test_experiments_run_on_rigs_of_their_own() -> None:
    (outcome,) = runner.run([raid0_slowest_member.EXPERIMENT], "quick")
    lines = {line.quantity: line for line in outcome.findings.lines}
    assert lines["a write of 4 MiB takes"].simulated == LONGEST
    # The two-point members against their closed form, 24 of them.
    share, times = raid0_slowest_member.SLOW_SHARE, raid0_slowest_member.SLOW_TIMES
    mean = 1 + (times - 1) * share
    slowest = times - (times - 1) * (1 - share) ** 24
    lost = lines["lost at 24 drives, rare slow chunks"].simulated
    assert lost == pytest.approx(100 * (1 - mean / slowest), rel=0.03)


LONGEST = raid0_slowest_member.LONGEST_MS


@pytest.mark.parametrize(("second", "close"), [(99.0, "8 KiB"), (90.0, "no other")])
def test_the_fastest_chunk_is_not_among_those_near_it(second: float, close: str) -> None:
    said = studies._best_chunk("RAID 0 of 4", {4: 100.0, 8: second, 16: 50.0})
    assert "fastest with chunks of 4 KiB (100 IOPS)" in said
    assert f"within 5 % of it: {close}; slowest with 16 KiB (50 IOPS)" in said
    assert said.endswith("Each ran once: with another --seed the order may be another.")
