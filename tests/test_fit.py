"""Twins: tables of observations, fits, predictions."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import foreign_samples
import ssdlab
from foreign_samples import direction, document, job, write
from scheduling import LONG
from ssdlab import _core
from ssdlab.arrays.rigs import ArrayShape, array_rig
from ssdlab.cli import run_command
from ssdlab.errors import InputError, Interrupted
from ssdlab.experiments.twin import cases
from ssdlab.fits import closed, observations, trial
from ssdlab.fits.fit import FitOrder, _check_medium, fit
from ssdlab.fits.observations import FitWorkload, Observation
from ssdlab.fits.parameters import amount, with_keys
from ssdlab.fits.predict import loads_of, predict
from ssdlab.fits.search import FitTarget
from ssdlab.fits.sources import Gathered, gather
from ssdlab.fits.starts import ROOM, Start, of_dies, ranked
from ssdlab.fits.twin import Basis, Region, Twin, covered, judged, twin_of
from ssdlab.jobfile import JobText, read_job
from ssdlab.rig import profile
from ssdlab.studies.blind import BASE
from ssdlab.target import Settings, Sim

HEAD = "rw,bs,iodepth,numjobs,rwmixread,state,namespace,iops,lat_mean_us\n"


def table(folder: Path, text: str) -> Path:
    """A CSV file of that text."""
    path = folder / "table.csv"
    path.write_text(text)
    return path


def test_a_table_reads_back_as_it_was_written(tmp_path: Path) -> None:
    text = HEAD + (
        "randread,4k,4,2,,,,50000,160\nrandrw,16KiB,1,1,70,,480GB,,\nwrite,1m,,,,steady-seq,,900,\n"
    )
    read = observations.read(table(tmp_path, text))
    assert [one.load for one in read] == [
        FitWorkload("randread", 4096, 4, 2),
        FitWorkload("randrw", 16384, 1, 1, 70.0, "steady", 480 * 10**9),
        FitWorkload("write", 1 << 20, 1, 1, None, "steady-seq"),
    ]
    assert read[0].measured == {"iops": 50000.0, "lat_mean_us": 160.0}
    head = "rw,bs,test,x,value,unit\n"
    numbers = "randread,,depth,8,50,ms\nwrite,1m,,,900,MiB/s\nrandwrite,,,,3.1,x\n"
    narrow = observations.read(table(tmp_path, head + numbers))
    assert [one.measured for one in narrow] == [
        {"lat_mean_us": 50_000.0},
        {"iops": 900.0},
        {"waf": 3.1},
    ]
    assert narrow[0].load.iodepth == 8
    again = table(tmp_path, observations.text(observations.frame(read)))
    assert [(one.load, one.measured) for one in observations.read(again)] == [
        (one.load, one.measured) for one in read
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("rw,iops\n", "no rows"),
        ("bs,iops\n4k,1\n", 'no column "rw"'),
        ("rw,iop\nrandread,1\n", 'did you mean "iops"'),
        ("rw,rw\nread,read\n", "twice"),
        ("rw,iops\nrandred,1\n", 'did you mean "randread"'),
        ("rw,state\nread,filed\n", 'did you mean "filled"'),
        ("rw,bs\nread,4q\n", "line 2: bs"),
        ("rw,bs\nread,100\n", "512"),
        ("rw,bs\nread,4k\nread,4097\n", 'line 3: bs "4097": expected whole sectors of 512 bytes'),
        ("rw,iodepth\nread,0\n", "whole number from 1"),
        ("rw,iops\nread,fast\n", "above 0"),
        ("rw,iops\nread,1,2\n", "3 cells"),
        ("rw,rwmixread\nrandread,50\n", "contradicts"),
        ("rw,rwmixread\nrandrw,170\n", "0 to 100"),
        ("rw,iops,lat_mean_us\nrandread,10000,0.1\n", "microseconds"),
        ("rw,iops,iodepth,lat_mean_us\nrandread,80000,8,150\n", "12 I/Os in flight on average"),
        ("rw,iops,iodepth,numjobs,clat_mean_us\nrandread,9000,1,4,110\n", "iodepth x numjobs is 4"),
        ("rw,rate_iops,iops,lat_mean_us\nrandread,900,900,1500\n", "iodepth x numjobs is 1"),
        ("rw,clat_p50_us,clat_p99_us\nrandread,90,80\n", "is more than"),
        ("rw,device\nread,A\nread,B\n", "several drives"),
        ("rw,test,x\nread,dept,4\n", 'did you mean "depth"'),
        ("rw,value,unit\nread,4,IOPSs\n", "expected one of iops"),
        ("rw,iops,value,unit\nread,4,5,iops\n", 'says "iops" twice'),
    ],
)
def test_a_wrong_table_is_told_in_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        observations.read(table(tmp_path, text))
    assert said in error.value.message
    assert str(tmp_path) in error.value.message


def test_rows_of_hosts_that_do_not_keep_their_depth_up_are_taken(tmp_path: Path) -> None:
    """Two that were published (a 980 PRO under 6 jobs, an Optane by libaio), and a limited rate."""
    text = (
        "rw,iodepth,numjobs,rate_iops,iops,lat_mean_us,clat_mean_us\n"
        "randread,1024,6,,820000,4731,\nwrite,1,1,,39347.8,,18.67\nrandread,32,1,500,500,100,\n"
    )
    assert len(observations.read(table(tmp_path, text))) == 3


def test_a_run_gives_the_rows_that_its_summary_has() -> None:
    job = (
        "[fill]\nrw=write\nbs=128k\n[r]\nstonewall\nrw=randread\nbs=8k\niodepth=4\nnumber_ios=500\n"
    )
    result = ssdlab.run(job, on="lab-reference", set={"capacity": "64MiB"})
    (only,) = observations.observations(result)
    assert only.load == FitWorkload("randread", 8192, 4)
    shown = result.summary()[-1]
    assert only.measured["iops"] == shown["iops"]
    assert only.measured["clat_mean_us"] == pytest.approx(shown["clat_mean_ns"] / 1e3)


def test_the_host_holds_each_job_to_its_processor() -> None:
    job = "[r]\nrw=randread\nbs=4k\niodepth=32\nnumjobs={}\nnumber_ios=2000\ngroup_reporting\n"
    keys = {"capacity": "256MiB", "host_time": "25us"}
    rates = [
        ssdlab.run(job.format(jobs), on="demo-enterprise", set=keys).summary()[0]["iops"]
        for jobs in (1, 2)
    ]
    assert rates[0] == pytest.approx(1 / 25e-6, rel=0.03)
    assert rates[1] == pytest.approx(2 / 25e-6, rel=0.05)


@pytest.mark.parametrize(("rw", "each"), [("randread", 25e-6), ("randwrite", 35e-6)])
def test_the_data_of_writes_takes_the_processor_of_a_job_longer(rw: str, each: float) -> None:
    keys = {"capacity": "256MiB", "host_time": "25us", "host_fill_rate": "409.6MB/s"}
    job = f"[r]\nrw={rw}\nbs=4k\niodepth=32\nnumber_ios=2000\n"
    (row,) = ssdlab.run(job, on="demo-enterprise", set=keys).summary()
    assert row["iops"] == pytest.approx(1 / each, rel=0.03)


COMMON = "rw,bs,iodepth,numjobs,state,iops\n"
MEASURED_TABLE = COMMON + (
    "randread,4k,1,1,filled,8900\nrandread,4k,8,1,filled,58700\nrandread,4k,64,1,filled,96000\n"
    "randwrite,4k,1,1,filled,37600\nrandwrite,4k,32,1,filled,58400\n"
)


def ssdlab_command(*arguments: object) -> int:
    """The exit status of a command line."""
    return run_command([str(one) for one in arguments])


def test_a_table_becomes_a_twin_that_answers_in_the_order_of_the_questions(tmp_path: Path) -> None:
    twin, answers = tmp_path / "my.toml", tmp_path / "answers.csv"
    measured = table(tmp_path, MEASURED_TABLE)
    line = ("fit", measured, "--capacity", "480GB", "--quick", "-q", "-o")
    assert ssdlab_command(*line, twin) == 0
    assert ssdlab_command(*line, tmp_path / "again" / "my.toml") == 2  # there is no such folder
    again = tmp_path / "again.toml"
    assert ssdlab_command(*line, again) == 0
    assert again.read_text().replace("again", "my") == twin.read_text()
    array = ("array", twin, "--count", "2", "--levels", "0", "--workload", "random-read", "-q")
    assert ssdlab_command(*array) == 0
    ask = tmp_path / "ask.csv"
    ask.write_text("rw,bs,iodepth,state\nrandread,16k,4,filled\nrandread,4k,8,filled\n")
    assert ssdlab_command("predict", twin, "--table", ask, "-q", "-o", answers) == 0
    found = pl.read_csv(answers)
    assert found["bs"].to_list() == ["16k", "4k"]  # as they were asked
    assert found["iops"][1] == pytest.approx(58_700, rel=0.15)
    for column in ("iops", "lat_mean_us", "clat_p99_us"):
        assert (found[f"{column}_low"] < found[column]).all()
        assert (found[f"{column}_high"] > found[column]).all()
    assert found["waf"].to_list() == [None, None]
    assert ssdlab_command("fit", "--check", twin, measured, "-q") == 0


def test_write_amplification_of_one_namespace_foretells_that_of_others(tmp_path: Path) -> None:
    twin, answers = tmp_path / "my.toml", tmp_path / "answers.csv"
    measured = table(
        tmp_path, "rw,bs,iodepth,numjobs,state,namespace,waf\nrandwrite,4k,32,4,steady,900GB,3.1\n"
    )
    assert ssdlab_command("fit", measured, "--capacity", "960GB", "-q", "-o", twin) == 0
    ask = tmp_path / "ask.csv"
    rows = "".join(f"randwrite,4k,32,4,{size}GB\n" for size in (600, 800, 900, 960))
    ask.write_text(f"rw,bs,iodepth,numjobs,namespace\n{rows}")
    assert ssdlab_command("predict", twin, "--table", ask, "-q", "-o", answers) == 0
    found = pl.read_csv(answers)["waf"].to_list()
    assert found == sorted(found) and found[0] < 1.8
    assert found[2] == pytest.approx(3.1, rel=0.03)
    basis = Twin.load(str(twin)).basis
    far, near = (
        basis.spread(
            FitWorkload("randwrite", 4096, 32, 4, state="steady", namespace=size * 10**9), "waf"
        )
        for size in (225, 900)
    )
    assert near == pytest.approx(0.015) and far == pytest.approx(math.hypot(near, 0.0283), rel=0.01)


SHEET = """
capacity = "480GB"
[[workload]]
rw = "randread"
iops = 97_000
[[workload]]
rw = "write"
bw = "520MB/s"
[[workload]]
rw = "randread"
latency = "110us"
"""


def test_a_data_sheet_counts_less_than_what_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "sheet.toml"
    sheet.write_text(SHEET)
    found = gather([str(sheet), str(table(tmp_path, MEASURED_TABLE))])
    assert found.capacity == 480 * 10**9
    told = {str(one.load): one.measured for one in found.observed[:3]}
    assert told["write 128 KiB, depth 32, steady"]["iops"] == pytest.approx(520e6 / 131072)
    assert told["randread 4 KiB, depth 1, filled"] == {"lat_mean_us": 110.0}
    sigma = FitTarget.of(found.observed).sigma
    assert min(sigma[:3]) > max(sigma[3:])
    assert ssdlab_command("fit", sheet, "--quick", "-q") == 0  # nothing is written: it is said
    assert capsys.readouterr().out.count("\n") == 1
    assert ssdlab_command("fit", sheet, "--quick", "-q", "-o", tmp_path / "my.toml") == 0
    assert capsys.readouterr().out == ""
    for old, new, said in (("iops", "iosp", 'mean "iops"'), ("520MB/s", "fast", "workload 2: bw")):
        sheet.write_text(SHEET.replace(old, new))
        assert ssdlab_command("fit", sheet, "--quick", "-q") == 2
        assert said in capsys.readouterr().err


def test_documents_of_fio_are_fitted_to_without_being_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign_samples.bench_fio(tmp_path)
    (tmp_path / "nvme7n1" / "readme.txt").write_text("not of fio")
    of_folder = gather([f"{tmp_path}/"])
    of_file = gather([f"{tmp_path}/./nvme7n1/4k/randread-8-1.json"])
    loads = [str(one.load) for one in of_folder.observed]
    assert loads == [
        "randread 4 KiB, depth 1, filled",
        "randread 4 KiB, depth 8, filled",
        "randrw 4 KiB, 75 % reads, depth 1, steady",
    ]
    (alone,) = of_file.observed
    assert (of_folder.capacity, alone.measured) == (None, of_folder.observed[1].measured)
    one = write(tmp_path / "one.json", document(job("j", None, read=direction())))
    run = ssdlab.run("[j]\nrw=randread\nnumber_ios=400", on="demo-client", prepare="sequential")
    own = tmp_path / "own.json"
    own.write_text(json.dumps(run.document))
    assert gather([str(own)]).capacity == run.document["ssdlab"]["target"]["capacity_bytes"]
    for places, said in (
        ((own, tmp_path / "nvme7n1"), "a twin is of one drive"),
        ((one,), "no job of it reads or writes in a way that a table can say"),
        ((tmp_path / "nvme7n1" / "readme.txt",), "holds no JSON document of fio"),
        ((tmp_path / "gone.json",), 'no run is called "'),
    ):
        assert ssdlab_command("fit", *places, "--quick", "--capacity", "960GB") == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [COMMON + "randread,4k,1,1,filled,\n", COMMON + "randread,4k,1,1,filled,9000\n" * 2 + "x\n",
     COMMON + "randread,4k,1,1,filled,9000\nrandread,4k,1,1,filled,90000\n",
     COMMON + "randread,4k,1,1,filled,70\nrandread,4k,32,1,filled,131\nread,1m,1,1,filled,160\n"],
)  # fmt: skip
def test_what_cannot_be_fitted_is_refused_and_nothing_is_written(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    twin = tmp_path / "my.toml"
    line = ("fit", table(tmp_path, text), "--capacity", "480GB", "--quick", "-o", twin)
    assert ssdlab_command(*line) == 2
    assert not twin.exists()
    assert capsys.readouterr().err.count("\n") == 1


def test_a_fit_says_what_speaks_against_the_runs_that_it_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run reads what was never written, so that no flash answers."""
    (path := tmp_path / "r.fio").write_text(
        "[r]\nrw=randread\nbs=4k\nstonewall\nsize=100%\ntime_based\nruntime=1\n"
        "[r8]\nrw=randread\nbs=4k\niodepth=8\nstonewall\nsize=100%\ntime_based\nruntime=1\n"
    )
    runs = tmp_path / "runs"
    assert ssdlab_command("run", path, "--on", "demo-client", "--out", runs, "-q") == 0
    (run,) = runs.iterdir()
    doubt = f"not valid ({run.name}: areas never written): r reads a range of which 100 %"
    twin, document = tmp_path / "my.toml", tmp_path / "my.json"
    for line, wrote in (
        (("-o", twin, "--json", document), f"wrote {document} and {twin}"),
        (("--check", twin), ""),
    ):
        capsys.readouterr()
        assert ssdlab_command("fit", run, "--quick", *line) == 0
        said = capsys.readouterr().out
        assert doubt in said and wrote in said


def test_what_no_row_of_a_table_says_is_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They would count as writes to all places alike, or as reads with nothing beside them."""
    common = "[global]\nbs=4k\nsize=64m\nnorandommap\ntime_based\nruntime=2\n"
    (path := tmp_path / "own.fio").write_text(
        common + "[skewed]\nrw=randwrite\nrandom_distribution=zipf:1.2\n"
        "[log]\nstonewall\nrw=write\nfdatasync=1\n"
        "[reader]\nstonewall\nrw=randread\n[writer]\nrw=randwrite\n"
        "[alone]\nstonewall\nrw=randread\niodepth=8\nfsync=1\n"
        "[checked]\nstonewall\nrw=randwrite\nverify=crc32c\n[own]\nstonewall\nrw=randread\nflow=2\n"
        "[paused]\nstonewall\nrw=randread\nthinktime=1ms\nthinktime_iotime=1\nserialize_overlap=1\n"
        "[seq]\nstonewall\nrw=write\nbs=64k\n"
    )
    run = ("run", path, "--on", "demo-client", "--prepare", "steady", "--out", tmp_path / "runs")
    assert ssdlab_command(*run, "--set", "capacity=2GiB", "-q") == 0
    (kept,) = (tmp_path / "runs").iterdir()
    found = gather([str(kept)])
    assert [one.load.rw for one in found.observed] == ["randread", "randread", "write"]
    paused = ("thinktime=1ms", "thinktime_iotime=1", "serialize_overlap=1")
    assert found.observed[1].load.limits == paused
    why = [said.rpartition(" (")[2] for said in found.left]
    beside = ["beside writer)", "beside reader)"]
    assert why == ["random_distribution=zipf:1.2)", *beside, "verify)", "flow=2)"]
    capsys.readouterr()
    fit_ = ("fit", kept, "--quick", "--capacity", "2GB", "-o", tmp_path / "t.toml")
    assert ssdlab_command(*fit_) == 0
    assert "Left out, because no row of a table says what they do: " in capsys.readouterr().out
    with pytest.raises(InputError, match=r"\[skewed\] random_distribution=zipf:1.2: no prediction"):
        loads_of(read_job(path))


def test_random_writes_of_protocols_count_as_steady_where_something_tells_that(
    tmp_path: Path,
) -> None:
    """Rounds before the window, and the records of a drive that begins purged, were rows of the
    steady state without a word."""

    def told(protocol: str, drive: str, **param: object) -> Gathered:
        small = {"capacity": "1GiB"}
        (run,) = ssdlab.test(drive, protocol, param=param, set=small, out=tmp_path).runs
        return gather([str(tmp_path / run)])

    fresh = told("pts-wsat", "demo-enterprise", seconds=5)
    doubt = next(check for check in fresh.checks if check.name == "steady")
    said = "nothing tells that random writes were as fast as they stay in minute0001"
    assert doubt.status == "doubt" and said in doubt.evidence
    rounds = told("pts-latency", "demo-client", seconds=1, histogram_minutes=0.1)
    assert len(rounds.observed) == 5 * 9 + 1  # of six rounds
    assert not any(check.name == "steady" for check in rounds.checks)


def test_writes_to_a_part_of_a_purged_drive_have_the_rest_as_spare(tmp_path: Path) -> None:
    (run,) = ssdlab.test(
        "demo-enterprise", "spare-area", param={"shares": "50", "hours": 0.01},
        set={"capacity": "1GiB"}, out=tmp_path,
    ).runs  # fmt: skip
    (row,) = gather([str(tmp_path / run)]).observed
    assert row.load.namespace == 512 << 20


def test_what_only_the_make_of_a_drive_tells_is_not_determined_by_a_table() -> None:
    """Its twin is made of dies and channels of another drive: what each does is not told."""
    name, capacity = "micron-7450-960", 960 * 10**9
    loads = [FitWorkload("randread", 4096, depth) for depth in (1, 4, 16, 64, 128)]
    loads += [
        FitWorkload("randread", 65536, 8),
        FitWorkload("write", 131072, 8, state="steady-seq"),
    ]
    (answers,) = trial.answers([profile(name).text], loads)
    observed = [Observation(*pair) for pair in zip(loads, answers, strict=True)]

    def told(**more: Any) -> dict[str, bool]:
        """By parameter that is determined, whether the truth lies in its interval."""
        found = fit(FitOrder(observed, capacity, quick=True, **more)).found
        true = with_keys(profile(name).text, {})
        return {
            one.parameter.key: one.low <= one.parameter.read(true) <= one.high
            for one in judged(found)
            if one.determined
        }

    of_others = told(without=[name])
    assert of_others.get("nand.t_read") and all(of_others.values())
    assert not {"nand.t_program", "nand.transfer_mts"} & set(of_others)
    assert told(start=name)["nand.t_program"]


def test_an_array_of_drives_pays_for_the_host_once() -> None:
    drive = with_keys(profile("demo-enterprise").text, {"capacity": "1GiB", "host_time": "25us"})
    array = array_rig(Sim("x", drive.to_toml()), ArrayShape("0", 4, 64 << 10))
    job = "[r]\nrw=randread\nbs=4k\niodepth=64\nnumber_ios=2000\n"
    result = Sim("array", array).run(JobText("x", job, Path()), Settings())
    assert result.summary()[0]["iops"] == pytest.approx(1 / 25e-6, rel=0.05)


def test_a_fit_finds_the_drive_that_was_measured() -> None:
    true = {"nand.t_read": "66us", "controller.command_time": "13us"}
    start = profile("demo-enterprise").text
    loads = [FitWorkload("randread", 4096, depth) for depth in (1, 4, 16, 64, 256)]
    (answers,) = trial.answers([with_keys(start, true).to_toml()], loads)
    observed = [Observation(*pair) for pair in zip(loads, answers, strict=True)]
    found = fit(FitOrder(observed, start="demo-enterprise"))
    twin = twin_of(found.found, observed, name="x", start=found.start, sources=["x.csv"], seed=1)
    by_key = {one.parameter.key: one for one in judged(found.found)}
    for key, value in true.items():
        one = by_key[key]
        assert one.determined
        assert one.low < 1e3 * float(value.removesuffix("us")) < one.high
        assert one.value == pytest.approx(1e3 * float(value.removesuffix("us")), rel=0.2)
    (other,) = trial.answers(
        [with_keys(start, true).to_toml()], [FitWorkload("randread", 4096, 32)]
    )
    (expected,) = predict(twin, [FitWorkload("randread", 4096, 32)])
    assert expected.low["iops"] < other[0]["iops"] < expected.high["iops"]
    assert expected.values["iops"] == pytest.approx(other[0]["iops"], rel=0.05)


def test_closed_forms_come_near_simulations() -> None:
    rig = profile("intel-dc-s4610-480").text
    loads = [FitWorkload("randread", 4096, depth) for depth in (1, 8, 64)]
    drive = closed.DriveFigures.of(with_keys(rig, {}))
    for simulated, quick in zip(
        trial.answers([rig], loads)[0], closed.answers(drive, loads), strict=True
    ):
        assert quick["iops"] == pytest.approx(simulated["iops"], rel=0.2)


def test_closed_forms_know_a_map_that_ram_does_not_hold() -> None:
    cached = {"ftl.map.kind": "cached", "ftl.map.cache": "128KiB"}  # of 512 KiB
    rig = with_keys(BASE, cached).to_toml()
    loads = [FitWorkload("randread", 4096, depth) for depth in (1, 8)]
    drive = closed.DriveFigures.of(with_keys(rig, {}))
    for simulated, quick in zip(
        trial.answers([rig], loads)[0], closed.answers(drive, loads), strict=True
    ):
        assert quick["iops"] == pytest.approx(simulated["iops"], rel=0.15)


def test_single_jobs_tell_the_time_of_submission_where_none_is_shallow() -> None:
    rows = [
        Observation(
            FitWorkload("randread", 4096, 16, jobs), {"lat_mean_us": 300.0, "clat_mean_us": clat}
        )
        for jobs, clat in ((1, 290.0), (16, 200.0))
    ]
    assert FitTarget.of(rows).submission_us == pytest.approx(10)


def test_littles_law_tells_the_time_of_submission_where_clat_is_alone() -> None:
    """Rows of fio's libaio at depth 1: 7,419 IOPS of 109 us clat, of which 24 us more are slat."""
    first = FitWorkload("randread", 4096)
    rows = [
        Observation(first, {"iops": 7419.0, "clat_mean_us": 108.78}),
        Observation(replace(first, rw="randwrite"), {"iops": 3289.0, "clat_mean_us": 275.53}),
        # Whoever is held back waits for something else, and several in flight for each other.
        Observation(replace(first, limits=("rate_iops=100",)),
                    {"iops": 100.0, "clat_mean_us": 109.0}),
        Observation(replace(first, iodepth=4), {"iops": 20_000.0, "clat_mean_us": 150.0}),
    ]  # fmt: skip
    target = FitTarget.of(rows)
    assert target.submission_us == pytest.approx((1e6 / 7419 - 108.78 + 1e6 / 3289 - 275.53) / 2)
    # What a drive of this latency would be found to do is what was measured.
    model = [{"iops": 7419.0, "clat_mean_us": 1e6 / 7419}]
    off = FitTarget.of(rows[:1]).take(model) - FitTarget.of(rows[:1]).logs
    assert off == pytest.approx([0.0, 0.0])


def test_clat_that_is_next_to_nothing_of_the_time_is_taken_and_bends_no_model(
    tmp_path: Path,
) -> None:
    """Buffered I/O through libaio: 95.7 us of 96.9 are those of submission."""
    table = tmp_path / "t.csv"
    table.write_text("rw,bs,iodepth,iops,clat_mean_us\nrandread,4k,1,9940,1.23\n")
    (row,) = observations.read(table)
    assert FitTarget.of([row]).columns == ["iops"]
    table.write_text("rw,bs,iodepth,iops,clat_mean_us\nrandread,4k,1,9940,0.098\n")
    with pytest.raises(InputError, match="latencies means in microseconds"):
        observations.read(table)


def test_dies_are_counted_by_the_fit_where_nothing_told_them() -> None:
    start = Start("x", with_keys(BASE, {}).to_toml())
    tried = of_dies(start)
    assert tried[0].rig == start.having({"nand.ways": "2"}, {}).rig
    true = next(one for one in tried if with_keys(one.rig, {}).get("nand.ways") == "1")
    loads = [FitWorkload("randread", 4096, 2**n) for n in range(9)]
    (answers,) = trial.answers([true.rig], loads)
    rows = [Observation(*pair) for pair in zip(loads, answers, strict=True)]
    assert ranked(tried, rows, {})[0][0].rig == true.rig


def test_random_writes_in_steady_state_are_alike_alone_and_after_others() -> None:
    rig = with_keys(profile("intel-dc-s4610-480").text, {"ftl.over_provisioning": "0.08"})
    loads = [FitWorkload("randwrite", 4096, depth, state="steady") for depth in (4, 8, 32)]
    told = trial.answers([rig.to_toml()], loads)[0]
    expected = closed.answers(closed.DriveFigures.of(rig), loads)
    # A short window holds few rows of collection; closed forms know no die that waits for one.
    near = {"waf": (0.05, 0.12), "iops": (0.06, 0.14)}
    for simulated, quick in zip(told, expected, strict=True):
        for name, (alike, quickly) in near.items():
            assert simulated[name] == pytest.approx(told[0][name], rel=alike)
            assert quick[name] == pytest.approx(simulated[name], rel=quickly)


def test_a_host_that_is_slower_than_the_port_is_found_by_its_single_job() -> None:
    rates = {(1, 1): 9_100, (16, 1): 50_000, (64, 1): 50_000, (16, 4): 80_000, (64, 4): 80_000}
    rows = [
        Observation(FitWorkload("randread", 4096, depth, jobs), {"iops": float(rate)})
        for (depth, jobs), rate in rates.items()
    ]
    found = fit(FitOrder(rows, 480 * 10**9, quick=True)).found
    assert np.abs(found.errors).max() < 0.1


def test_a_drive_that_writes_as_little_as_a_disk_may_be_an_ssd_that_collects() -> None:
    rows = [
        Observation(FitWorkload("randwrite", 4096, depth, state="steady"), {"iops": 400.0})
        for depth in (1, 32)
    ]
    _check_medium(rows)
    if LONG:  # it simulates for most of a minute
        fit(FitOrder(rows, 80 * 10**9, quick=True))
    slow = [*rows, Observation(FitWorkload("randread", 4096, 32), {"iops": 180.0})]
    with pytest.raises(InputError, match="180 IOPS at random is what a hard disk does"):
        fit(FitOrder(slow, 80 * 10**9, quick=True))


def test_parity_that_no_superblock_holds_is_left_out(tmp_path: Path) -> None:
    start = tmp_path / "start.toml"
    start.write_text(
        with_keys(BASE, {"nand.pages_per_block": "12", "ftl.gc.scope": "die"}).to_toml()
    )
    rows = [
        Observation(FitWorkload("write", 131072, 8), {"iops": 9_000.0, "waf": 1.02}),
        Observation(FitWorkload("randread", 4096, 8), {"iops": 70_000.0}),
    ]
    found = fit(FitOrder(rows, start=str(start), quick=True)).found
    _core.rig_check(found.space.rig(found.vector), rig_name="twin")


def test_a_quick_fit_of_random_writes_that_collect_is_one_of_what_simulation_says() -> None:
    rows = [
        Observation(FitWorkload("randread", 4096, 1), {"iops": 7_140.0}),
        Observation(FitWorkload("randwrite", 4096, 16, state="steady"), {"iops": 7_400.0}),
    ]
    order = FitOrder(rows, 250 * 10**9, start="micron-p400e-200", quick=True)
    found = fit(order)
    twin = twin_of(found.found, rows, name="x", start=found.start, sources=["x"], seed=1)
    read, written = predict(twin, [row.load for row in rows])
    assert read.values["iops"] == pytest.approx(7_140, rel=0.05)
    # In closed form the same twin writes a fifth more.
    assert written.values["iops"] == pytest.approx(7_400, rel=0.1)
    drive = closed.DriveFigures.of(with_keys(twin.rig, {}))
    (said,) = closed.answers(drive, [rows[1].load])
    assert said["iops"] > 1.15 * written.values["iops"]


def test_a_drive_that_is_faster_than_its_steady_state_may_be_an_outlier() -> None:
    weights = []
    for state in ("filled", "steady"):
        rows = [Observation(FitWorkload("randwrite", 4096, 1, state=state), {"iops": 10_000.0})]
        target = FitTarget.of(rows)
        weights.append(float(target.trust(np.array([-4.0]))[0]))
    assert weights[0] == 1.0 and weights[1] < 0.5


def test_what_a_drive_has_done_it_can_do() -> None:
    slow = {1: 9_100.0, 2: 13_600.0, 4: 18_300.0, 8: 55_000.0}
    rows = [
        Observation(FitWorkload("randread", 4096, q), {"iops": rate}) for q, rate in slow.items()
    ]
    found = fit(FitOrder(rows, 512 * 10**9, quick=True)).found
    drive = closed.DriveFigures.of(with_keys(found.space.rig(found.vector), {}))
    (deep,) = closed.answers(drive, [FitWorkload("randread", 4096, 64)])
    assert deep["iops"] > 50_000


def test_a_fit_that_was_stopped_comes_to_the_same_as_one_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = {1: 9_100.0, 32: 71_000.0}
    rows = [
        Observation(FitWorkload("randread", 4096, q), {"iops": rate}) for q, rate in rates.items()
    ]
    order = FitOrder(rows, 480 * 10**9)
    monkeypatch.setenv("SSDLAB_CACHE", str(tmp_path / "whole"))
    whole = fit(order).found
    monkeypatch.setenv("SSDLAB_CACHE", str(tmp_path / "stopped"))
    heard = iter(range(1_000))
    with pytest.raises(Interrupted):
        fit(order, lambda _: next(heard) < 4)
    assert any((tmp_path / "stopped").iterdir())
    assert fit(order).found.vector.tolist() == whole.vector.tolist()


@pytest.mark.parametrize(
    ("rates", "ceiling"),
    [({1: 9_100, 8: 52_000, 32: 71_000}, 600e6), ({1: 13_000, 16: 190_000, 128: 520_000}, 16e9)],
    ids=("SATA", "NVMe"),
)
def test_a_drive_of_no_profile_is_answered_within_what_its_bus_allows(
    rates: dict[int, int], ceiling: float
) -> None:
    rows = [
        Observation(FitWorkload("randread", 4096, q), {"iops": rate}) for q, rate in rates.items()
    ]
    found = fit(FitOrder(rows, 1_100 * 10**9, quick=True))
    twin = twin_of(found.found, rows, name="x", start=found.start, sources=["x.csv"], seed=1)
    depths = [FitWorkload("randread", 4096, depth) for depth in (1, 4, 16, 64, 256)]
    sizes = [FitWorkload("randread", size, 8) for size in (4096, 16384, 65536, 262144)]
    deeper, larger = (
        [one.values["iops"] for one in predict(twin, loads)] for loads in (depths, sizes)
    )
    assert all(b > 0.97 * a for a, b in pairwise(deeper))
    assert all(b < 1.03 * a for a, b in pairwise(larger))
    moved = [rate * load.bs for rate, load in zip(larger, sizes, strict=True)]
    assert all(b > 0.97 * a for a, b in pairwise(moved))
    assert max(moved) < ceiling
    near, far = (twin.basis.spread(load, "iops") for load in (sizes[0], sizes[-1]))
    assert far > 2 * near


def test_every_case_asks_for_what_it_does_not_know() -> None:
    for case in cases.CASES:
        fitted, asked = cases.known(case), cases.asked(case)
        assert fitted
        assert asked
        known = {one.load for one in fitted}
        assert case.asked or not known & {one.load for one in asked}
        for one in asked:
            for column in one.measured:
                assert cases.interpolated(fitted, one.load, column)


def test_interpolation_is_straight_in_logarithms() -> None:
    rows = [
        Observation(FitWorkload("randread", 4096, depth), {"iops": 1000.0 * depth**0.5})
        for depth in (4, 16)
    ]
    for depth in (1, 8, 64):
        found = cases.interpolated(rows, FitWorkload("randread", 4096, depth), "iops")
        assert found == pytest.approx(1000 * depth**0.5)


def test_a_ceiling_that_no_rate_came_to_does_not_explain_how_a_curve_bends() -> None:
    bent = {1: 18_200.0, 2: 36_000.0, 4: 64_200.0, 8: 95_500.0, 16: 141_700.0}
    rows = [
        Observation(FitWorkload("randread", 4096, q), {"iops": rate}) for q, rate in bent.items()
    ]
    found = fit(FitOrder(rows, 10**12, quick=True)).found
    values = dict(zip([one.key for one in found.space.parameters], found.vector, strict=True))
    for key in ("host_time", "controller.command_time"):
        assert math.exp(values[key]) < 3_000  # 330 000 IOPS and more
    flat = [*rows, Observation(FitWorkload("randread", 4096, 64), {"iops": 143_000.0})]
    held = fit(FitOrder(flat, 10**12, quick=True)).found
    drive = closed.DriveFigures.of(with_keys(held.space.rig(held.vector), {}))
    (deep,) = closed.answers(drive, [FitWorkload("randread", 4096, 256)])
    assert deep["iops"] == pytest.approx(143_000, rel=0.25)


def test_a_drive_reads_with_the_time_that_was_fitted_to_it_where_page_types_differ() -> None:
    start = profile("micron-7450-960").rig().to_toml()
    (slow, fast) = (with_keys(start, {"nand.t_read": time}) for time in ("60us", "30us"))
    times = json.loads(fast.get("nand.read_times") or "")
    assert np.mean([amount("time", time) for time in times]) == pytest.approx(30_000, rel=1e-3)
    assert amount("time", times[0]) < amount("time", times[2])
    once = [FitWorkload("randread", 4096)]
    ((before,), (after,)) = trial.answers([slow.to_toml(), fast.to_toml()], once)
    assert before["lat_mean_us"] - after["lat_mean_us"] == pytest.approx(30, abs=1.5)


def test_values_of_rigs_are_read_as_everywhere() -> None:
    told = {"80us": 80_000, "2min": 120e9, "550MB/s": 550e6, "1.5GiB/s": 1.5 * (1 << 30)}
    told |= {"128MiB": 1 << 27, "333": 333, "6.5 us": 6_500}
    assert {said: amount("x", said) for said in told} == told
    for wrong in ("80 usec", "5 parsecs", "fast", "", "-5us", "nan"):
        with pytest.raises(InputError, match=f"x: found {wrong}, expected a number"):
            amount("x", wrong)


def test_a_tprog_that_is_set_is_that_of_types_of_pages() -> None:
    types = '["500us", "1ms", "1500us"]'
    start = with_keys(BASE, {"nand.bits_per_cell": "3", "nand.program_times": types}).to_toml()
    found = with_keys(start, {"nand.t_program": "2ms"}).get("nand.program_times")
    assert json.loads(found or "") == ["1000000ns", "2000000ns", "3000000ns"]


def test_the_ceiling_of_one_job_at_nvme_is_its_hosts() -> None:
    rates = {1: 14_500.0, 16: 200_000.0, 64: 380_000.0, 256: 380_000.0}
    rows = [
        Observation(FitWorkload("randread", 4096, q), {"iops": rate}) for q, rate in rates.items()
    ]
    found = fit(FitOrder(rows, 10**12, quick=True)).found
    drive = closed.DriveFigures.of(with_keys(found.space.rig(found.vector), {}))
    one, four = closed.answers(drive, [FitWorkload("randread", 4096, 64, n) for n in (1, 4)])
    assert one["iops"] == pytest.approx(380_000, rel=0.1)
    assert four["iops"] > 1.3 * one["iops"]


def test_reads_of_what_was_never_written_take_no_time_of_the_flash() -> None:
    twin = Twin.load("samsung-860-pro-512")
    loads = [FitWorkload("randread", state=state) for state in ("fob", "filled")]
    drive = closed.DriveFigures.of(with_keys(twin.rig, {}))
    fresh, filled = (answer["lat_mean_us"] for answer in closed.answers(drive, loads))
    flash = amount("nand.t_read", with_keys(twin.rig, {}).get("nand.t_read") or "") / 1e3
    first, second = (one.values["lat_mean_us"] for one in predict(twin, loads))
    assert filled - fresh > flash
    assert filled - fresh == pytest.approx(second - first, rel=0.05)


def test_no_interval_of_the_99th_percentile_starts_below_that_of_the_median() -> None:
    """Where jobs share a queue of SATA as none that was measured did, p99 is told less surely."""
    load = FitWorkload("randread", 4096, 32, 8, None, "filled")
    fitted = Region("randread", "filled", (4096,), (1, 32), (1, 1), observations.MEASURED)
    known = Twin.load("samsung-860-pro-512")
    (found,) = predict(replace(known, basis=replace(known.basis, regions=(fitted,))), [load])
    assert found.low["clat_p50_us"] <= found.low["clat_p99_us"] <= found.values["clat_p99_us"]
    assert found.values["clat_p50_us"] <= found.high["clat_p50_us"] <= found.high["clat_p99_us"]


@pytest.mark.parametrize(
    "wrong", [{"error": 3}, {"keys": ["latency"]}, {"regions": [{"rw": "read"}]}, {"seed": "one"}]
)
def test_a_table_of_a_twin_that_nobody_wrote_is_refused(wrong: dict[str, Any]) -> None:
    kept = tomllib.loads(Twin.load("samsung-860-pro-512").basis.as_toml())["fit"]
    Basis.of_toml(kept, "twin.toml")
    with pytest.raises(InputError, match="is not one that ssdlab wrote"):
        Basis.of_toml({**kept, **wrong}, "twin.toml")


def test_a_twin_names_its_sources_whatever_characters_are_in_them() -> None:
    known = replace(Twin.load("samsung-860-pro-512").basis, sources=('Läufe "1".csv', "😀.csv"))
    kept = tomllib.loads(known.as_toml())["fit"]
    assert Basis.of_toml(kept, "twin.toml").sources == known.sources


def test_a_job_with_a_rate_is_predicted_at_that_rate() -> None:
    job = "[slow]\nrw=randread\niodepth=8\nrate_iops=2000\n[fast]\nrw=randread\niodepth=8\n"
    twin = Twin.load("samsung-860-pro-512")
    loads = dict(loads_of(JobText("two", job, Path())))
    slow, fast = predict(twin, list(loads.values()))
    assert slow.values["iops"] == pytest.approx(2_000, rel=0.03)
    assert fast.values["iops"] > 10 * slow.values["iops"]
    assert slow.values["lat_mean_us"] <= fast.values["lat_mean_us"]
    assert slow.low["iops"] < slow.high["iops"] <= max(2_000, slow.values["iops"])
    assert fast.high["iops"] > 1.05 * fast.values["iops"]
    limited = Observation(loads["slow"], slow.values)
    with pytest.raises(InputError, match="asks as fast as it can"):
        fit(FitOrder([limited], 512 * 10**9))


@pytest.mark.parametrize(
    ("rw", "mix", "limits", "most"),
    [
        ("randread", None, ("rate_iops=500",), 1_000),
        ("randwrite", None, ("rate_iops=500,200",), 400),
        ("randwrite", None, ("rate_iops=500",), 1_000),
        ("randrw", 70.0, ("rate_iops=500,200",), 1_400),
        ("randrw", 70.0, ("rate_iops=500",), 2_000),
        ("randread", None, ("rate=4m",), 2_048),
        ("randread", None, ("rate_iops=,200",), math.inf),
        ("randread", None, ("thinktime=10ms", "rate_process=poisson"), math.inf),
    ],
)
def test_jobs_do_at_most_what_their_rates_allow(
    rw: str, mix: float | None, limits: tuple[str, ...], most: float
) -> None:
    load = FitWorkload(rw, 4096, 8, 2, mix, limits=limits)
    assert load.most == pytest.approx(most)


def test_a_table_asks_for_a_rate_in_a_column() -> None:
    cells = {"rw": "randread", "iodepth": "8", "rate_iops": "2000"}
    slow = observations.row({**cells, "iops": "2000", "lat_mean_us": "90"}, "x")
    assert slow.load.limits == ("rate_iops=2000",)
    assert slow.said == cells
    with pytest.raises(InputError, match="x: rate_iops"):
        observations.row({**cells, "rate_iops": "0"}, "x")


def test_more_jobs_take_a_drive_deeper_than_a_single_one_that_its_processor_holds() -> None:
    rows = [
        Observation(FitWorkload("randread", 4096, depth), {"iops": rate})
        for depth, rate in ((1, 10_000.0), (256, 320_000.0))
    ]
    (region,) = covered(rows, behind_sata=False)
    assert region.held == 32
    assert region.away(FitWorkload("randread", 4096, 64, 4))["deeper"] == 3
    assert region.away(FitWorkload("randread", 4096, 256))["deeper"] == 0
    assert covered(rows)[0].away(FitWorkload("randread", 4096, 64, 4))["deeper"] == 0


@pytest.mark.parametrize(("submitting", "more"), [(8.5, 1 / ROOM), (5.0, 1.0)])
def test_a_job_that_does_nothing_but_submit_is_held_by_its_processor(
    submitting: float, more: float
) -> None:
    rates = {1: 9_000.0, 8: 52_000.0, 32: 60_000.0, 64: 60_000.0}
    rows = [
        Observation(
            FitWorkload("randread", 4096, q),
            {
                "iops": rate,
                "lat_mean_us": 1e6 * q / rate,
                "clat_mean_us": 1e6 * q / rate - submitting,
            },
        )
        for q, rate in rates.items()
    ]
    found = fit(FitOrder(rows, 480 * 10**9, quick=True)).found
    drive = closed.DriveFigures.of(with_keys(found.space.rig(found.vector), {}))
    one, four = closed.answers(drive, [FitWorkload("randread", 4096, 64, n) for n in (1, 4)])
    assert one["iops"] == pytest.approx(60_000, rel=0.05)
    assert four["iops"] / one["iops"] == pytest.approx(more, abs=0.02)


@pytest.mark.parametrize("more", [("measured",), ("--full",)])
def test_twins_of_measured_drives_are_reproduced_by_themselves(
    more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ssdlab_command("reproduce", "twin", *more, "-q") == 2
    assert "--full" in capsys.readouterr().err


def test_what_the_data_of_writes_take_of_the_host_is_told_from_the_drive() -> None:
    keys = {"host_time": "2us", "host_fill_rate": "3GB/s", "controller.command_time": "0.9us"}
    drive = closed.DriveFigures.of(with_keys(profile("kioxia-cm7-r-3840").text, keys))
    loads = [
        FitWorkload(rw, 4096, depth, jobs, state="filled")
        for rw in ("randread", "randwrite")
        for depth in (1, 16, 128)
        for jobs in (1, 8)
    ]
    rows = [
        Observation(load, {"iops": said["iops"]})
        for load, said in zip(loads, closed.answers(drive, loads), strict=True)
    ]
    order = FitOrder(rows, 3840 * 10**9, quick=True, without=["kioxia-cm7-r-3840"])
    found = fit(order).found
    values = dict(zip([one.key for one in found.space.parameters], found.vector, strict=True))
    assert 2e9 < math.exp(values["host_fill_rate"]) < 6e9  # 8 GB/s beforehand
    # Of several jobs it is the drive that is the ceiling.
    asked = [replace(loads[-1], numjobs=jobs) for jobs in (1, 4)]
    twin = closed.DriveFigures.of(with_keys(found.space.rig(found.vector), {}))
    for said, truth in zip(*(closed.answers(one, asked) for one in (twin, drive)), strict=True):
        assert said["iops"] == pytest.approx(truth["iops"], rel=0.12)


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"selftest": 1, "sources": "t.csv"}, "t.csv: has no effect with selftest"),
        ({"selftest": 1, "check": "t.toml"}, "check: has no effect with selftest"),
        ({"selftest": 1, "out": "twin.toml"}, "out: has no effect with selftest"),
        ({"check": BASE, "out": "twin.toml"}, "out: has no effect with check"),
        ({"check": BASE, "start": "nope"}, "start: has no effect with check"),
        ({"check": BASE, "fix": {"nope": 1}}, "fix: has no effect with check"),
    ],
)
def test_what_has_no_effect_where_nothing_is_fitted_is_refused(
    tmp_path: Path, given: dict[str, Any], wrong: str
) -> None:
    sources = table(tmp_path, HEAD + "randread,4k,1,1,,,,9000,\n")
    with pytest.raises(InputError) as told:
        ssdlab.fit(**{"sources": None if "selftest" in given else sources, **given})
    assert told.value.message == f"{wrong}, which fits nothing; leave out one"
    assert not Path("twin.toml").exists()
