"""Simulated runs from Python: the same results again, bad input in one sentence, clean stops."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

import ssdlab
from conftest import PATIENCE_S, Cli, Outcome
from ssdlab.answers.run import answer
from ssdlab.errors import BrokenOffError, InputError, Interrupted, MemoryShortError
from ssdlab.jobfile import read_job
from ssdlab.results import SERIES_SCHEMA
from ssdlab.rig import Profile, profiles
from ssdlab.target import Settings

SMALL = {"capacity": "256MiB"}
JOB = """[global]
bs=4k
iodepth=8
[fill]
rw=write
bs=64k
[mix]
stonewall
rw=randrw
rwmixread=30
time_based
runtime=3
"""
ENDLESS = "[w]\nrw=randwrite\nbs=4k\nsize=100%\ntime_based\nruntime=1000000\n"


def run(job: str = JOB, seed: int = 1) -> ssdlab.Result:
    return ssdlab.run(job, on="lab-reference", set=SMALL, seed=seed)


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others() -> None:
    first, again, other = run(seed=7), run(seed=7), run(seed=8)
    assert first.json() == again.json()
    assert first.series().equals(again.series())
    assert first.json() != other.json()


def test_a_simulated_result_has_the_columns_of_a_measured_one() -> None:
    result = run()
    schema = dict(result.series().schema)
    for column, kind in SERIES_SCHEMA.items():
        assert schema[column] == kind, column
    assert all(name.startswith("part_") for name in set(schema) - set(SERIES_SCHEMA))
    assert [job.name for job in result.jobs] == ["fill", "mix"]
    assert set(result.frame()["ddir"]) == {"read", "write"}


def test_a_run_that_is_over_within_its_ramp_has_a_series_of_the_same_types() -> None:
    result = ssdlab.run("[a]\nrw=read\nbs=4k\nramp_time=1\nnumber_ios=1\n", on="lab-reference")
    assert result.series_frame.is_empty()
    for column, kind in SERIES_SCHEMA.items():
        assert result.series_frame.schema[column] == kind, column


def test_what_took_no_time_is_counted() -> None:
    # A fresh drive without a link or controller time answers reads at once.
    result = ssdlab.run("[a]\nrw=read\nbs=4k\nnumber_ios=100\n", on="lab-reference")
    assert result.ssdlab["simulated_seconds"] == 0
    assert result.ssdlab["counters"]["host_reads"] == 100


def test_the_series_of_a_simulated_run_adds_up_to_its_totals() -> None:
    result = run()
    for row in result.frame().iter_rows(named=True):
        part = result.series(row["job"], row["ddir"])
        assert part["ios"].sum() == row["ios"]
        assert part["bytes"].sum() == row["io_bytes"]


def test_the_parts_of_the_time_add_up_to_the_latency() -> None:
    series = run().series("mix", "write")
    parts = [pl.col(name) for name in series.columns if name.startswith("part_")]
    spent = series.select(pl.sum_horizontal(parts))["part_link_ns"].sum()
    told = (series["lat_mean_ns"] * series["ios"]).sum()
    assert spent == pytest.approx(told, rel=1e-9)


def test_settings_reach_the_rig_and_are_kept_with_the_run() -> None:
    result = run()
    assert result.ssdlab["target"]["capacity_bytes"] == 256 << 20
    assert result.rig_toml is not None
    assert "256MiB" in result.rig_toml


def test_a_prepared_drive_starts_full() -> None:
    job = "[r]\nrw=randread\nbs=4k\nsize=100%\nnumber_ios=100\n"
    small = {"below.capacity": "1GiB"}
    fresh = ssdlab.run(job, on="demo-client", set=small)
    full = ssdlab.run(job, on="demo-client", set=small, prepare="sequential")
    # A fresh drive answers reads without its flash.
    assert full.frame()["clat_mean_ns"].item() > 2 * fresh.frame()["clat_mean_ns"].item()


def test_a_simulated_run_is_stored_and_read_back_whole(tmp_path: Path) -> None:
    result = run()
    again = ssdlab.Result.load(result.save(tmp_path))
    assert again.document == result.document
    assert again.series().equals(result.series())
    assert again.device_series() is not None


def test_all_counters_of_the_members_of_an_array_are_kept_over_time_where_asked_for(
    tmp_path: Path,
) -> None:
    drive = ssdlab.Rig("demo-client").set(capacity="1536MiB")
    array = ssdlab.Rig.array(5, drive, 3).set(spares=1)
    job = "[w]\nrw=randwrite\nbs=4k\nrate_iops=500\ntime_based\nruntime=5\n"
    few = ssdlab.run(job, on=array, prepare="steady")
    every = ssdlab.run(job, on=array, prepare="steady", all_counters=True)
    shown, all_ = few.device_series(), every.device_series()
    assert shown is not None and all_ is not None
    # Nothing that is shown asks for more.
    assert few.told() == every.told()
    assert answer([few]).as_json() == answer([every]).as_json()
    assert set(all_.columns) == {"time_s", *few.ssdlab["counters"]}
    assert shown.width < all_.width / 2 and shown.equals(all_.select(shown.columns))
    assert {"member2/member_busy_ns", "member2/below/programs_host"} <= set(shown.columns)
    assert "spare0/below/erases_max" in set(all_.columns) - set(shown.columns)
    again = ssdlab.Result.load(every.save(tmp_path)).device_series()
    assert again is not None and again.equals(all_)
    with pytest.raises(InputError, match="all_counters is for simulated drives"):
        ssdlab.run(job + "filesize=8m\n", on=str(tmp_path / "file"), all_counters=True)


def test_a_run_whose_counters_memory_cannot_hold_is_refused_before_it_begins() -> None:
    array = ssdlab.Rig.array(0, ssdlab.Rig("demo-client").set(capacity="1536MiB"), 24)
    job = "[w]\nrw=randwrite\nbs=4k\nrate_iops=1\ntime_based\nruntime=7d\n"
    settings = Settings(memory_bytes=array.memory + (256 << 20), seed=1)
    told = "the job has 604800 intervals, for each of which 473 counters"
    with pytest.raises(MemoryShortError, match=told):
        array.target().run(read_job(job), settings)


@pytest.mark.parametrize(
    "ends",
    [
        "ss=iops:50%\nss_dur=5\n",
        "exitall\n[b]\nrw=read\nruntime=5\n",
        "latency_target=1s\nlatency_window=100ms\niodepth=2\n",
    ],
    ids=["steady", "exitall", "latency_target"],
)
def test_jobs_that_end_before_their_time_is_up_are_not_refused_for_it(ends: str) -> None:
    drive = ssdlab.Rig("demo-client").set(capacity="1536MiB")
    job = "[global]\nrw=randwrite\nbs=4k\nrate_iops=50\ntime_based\nruntime=300\n[a]\n"
    settings = Settings(memory_bytes=drive.memory + 100_000, seed=1)
    with pytest.raises(MemoryShortError, match=r"300 intervals.* for a shorter time$"):
        drive.target().run(read_job(job), settings)
    assert drive.target().run(read_job(job + ends), settings).ssdlab["simulated_seconds"] < 60


def test_many_jobs_that_end_in_steady_state_may_have_days_each() -> None:
    job = "[global]\nrw=randread\nbs=4k\nrate_iops=50\nstonewall\ntime_based\nruntime=3d\n"
    job += "ss=iops:50%\nss_dur=5\n" + "".join(f"[{name}]\n" for name in "abcde")
    result = ssdlab.run(job, on=ssdlab.Rig("demo-client").set(capacity="1536MiB"))
    assert result.ssdlab["simulated_seconds"] == pytest.approx(25, abs=1)


@pytest.mark.large
@pytest.mark.parametrize("drive", profiles(), ids=lambda one: one.name)
def test_every_shipped_profile_is_a_rig_named_after_its_file_and_runs_a_job(drive: Profile) -> None:
    assert tomllib.loads(drive.text)["name"] == drive.name
    # Each falls on other pages of the tables of a whole drive, which the kernel has to clear.
    job = "[w]\nrw=randwrite\nbs=4k\niodepth=4\nnumber_ios=40\nsize=100%\n"
    result = ssdlab.run(job, on=drive.name)
    assert result.frame()["ios"].item() == 40
    assert result.ssdlab["target"]["summary"] == drive.summary != ""


def test_simulations_share_a_machine_without_sharing_anything() -> None:
    alone = [run(seed=seed).json() for seed in (1, 2)]
    with ThreadPoolExecutor(2) as threads:
        together = list(threads.map(lambda seed: run(seed=seed).json(), (1, 2)))
    assert alone == together


@pytest.mark.alone
def test_the_core_lets_other_threads_run() -> None:
    ticks = 0
    stop = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.wait(0.01):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    started = time.monotonic()
    with pytest.raises(Interrupted):
        ssdlab.run(
            ENDLESS,
            on="lab-reference",
            set=SMALL,
            progress=lambda _news: time.monotonic() - started < 0.5,
        )
    stop.set()
    thread.join()
    assert ticks > 10


def test_an_exception_in_the_callback_comes_through() -> None:
    def broken(_news: ssdlab.Progress) -> bool:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        ssdlab.run(ENDLESS, on="lab-reference", set=SMALL, progress=broken)


@pytest.mark.parametrize(
    ("on", "option", "value"),
    [
        ("demo-client", "--set", "nonsense=1"),
        ("demo-client", "--set", "below.capacity=1000TiB"),
        ("demo-client", "--prepare", "stedy"),
        ("file", "--set", "below.capacity=1GiB"),
        ("file", "--prepare", "steady"),
        ("file", "--all-counters", None),
    ],
)
def test_a_plan_refuses_what_the_run_would_refuse(
    cli: Cli, tmp_path: Path, on: str, option: str, value: str | None
) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[w]\nrw=write\nsize=64k\n")
    target = tmp_path / on if on == "file" else on
    told = [
        cli("run", job, "--on", target, option, *([] if value is None else [value]), *plan)
        for plan in ([], ["-n"])
    ]
    assert told[0].status == told[1].status == 2 and told[0].err == told[1].err
    assert told[0].err.count("\n") == 1 and not (tmp_path / "file").exists()


def test_an_included_file_is_read_and_an_error_in_it_is_placed(tmp_path: Path) -> None:
    (tmp_path / "common.fio").write_text("bs=8k\nsize=64k\n")
    job = tmp_path / "job.fio"
    job.write_text("[w]\nrw=write\ninclude common.fio\n")
    result = ssdlab.run(job, on="lab-reference", set=SMALL)
    assert result.frame()["ios"].item() == 8
    (tmp_path / "common.fio").write_text("bs=8k\nsiez=64k\n")
    with pytest.raises(InputError, match=r"common\.fio:2"):
        ssdlab.run(job, on="lab-reference", set=SMALL)


@pytest.mark.parametrize(
    ("job", "told"),
    [
        ("[w]\nrw=write\niodpeth=4\n", r"job\.fio:3: .*iodpeth.*iodepth"),
        ("[w]\nrw=sideways\n", r"job\.fio:2: .*sideways"),
        ("[w]\nrw=write\nbs=-4k\n", r"job\.fio:3: "),
        ("[w]\nrw=write\nsize=1p\n", r"1p|1125899906842624|does not fit|larger|beyond"),
        ("[w]\nrw=write\nsize=${NOT_SET_ANYWHERE}\n", r"NOT_SET_ANYWHERE"),
        ("", r"job\.fio"),
    ],
)
def test_a_wrong_job_is_one_sentence_with_its_place(
    cli: Cli, tmp_path: Path, job: str, told: str
) -> None:
    (tmp_path / "job.fio").write_text(job)
    outcome = cli("run", tmp_path / "job.fio", "--on", "lab-reference", "--set", "capacity=64MiB")
    assert outcome.status == 2, outcome.out
    assert outcome.err.count("\n") == 1
    assert re.search(told, outcome.err), outcome.err
    assert not list((tmp_path / "data").rglob("manifest.json"))


@pytest.mark.parametrize(
    ("rig", "told"),
    [
        ('name = "x"\n[device\nkind = "ssd"\n', r"rig\.toml.*\b2\b"),
        ('name = "x"\n[device]\nkind = "sdd"\n', r'"sdd".*ssd'),
        ('name = "x"\n[device]\nkind = "ssd"\ncapactiy = "1GiB"\n', r"capactiy"),
    ],
)
def test_a_wrong_rig_is_one_sentence_with_its_place(
    cli: Cli, tmp_path: Path, rig: str, told: str
) -> None:
    (tmp_path / "job.fio").write_text(JOB)
    (tmp_path / "rig.toml").write_text(rig)
    outcome = cli("run", tmp_path / "job.fio", "--on", tmp_path / "rig.toml")
    assert outcome.status == 2, outcome.out
    assert outcome.err.count("\n") == 1, outcome.err
    assert re.search(told, outcome.err), outcome.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--set", "ftl.gc.victim=gredy"), r'"gredy".*did you mean "greedy"'),
        (("--set", "ftl.gc.victm=greedy"), r"victm"),
        (("--set", "capacity=4"), r"capacity.*4"),
        (("--prepare", "fulll"), r"fulll"),
        (("--prepare", "random:x"), r"random:x"),
    ],
)
def test_a_wrong_setting_is_one_sentence(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    (tmp_path / "job.fio").write_text(JOB)
    outcome = cli("run", tmp_path / "job.fio", "--on", "lab-reference", *arguments)
    assert outcome.status == 2, outcome.out
    assert outcome.err.count("\n") == 1, outcome.err
    assert re.search(told, outcome.err), outcome.err


def test_the_command_line_prints_the_document_and_nothing_else_to_stdout(
    cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "job.fio").write_text(JOB)
    where = ("--on", "lab-reference", "--set", "capacity=256MiB", "--json", "-")
    outcome = cli("run", tmp_path / "job.fio", *where)
    assert outcome.status == 0, outcome.err
    document = json.loads(outcome.out)
    assert document["ssdlab"]["target"]["kind"] == "sim"
    assert "MB/s" in outcome.err
    assert "simulated, seed 1" in outcome.err


def test_several_jobs_are_several_runs(cli: Cli, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.fio").write_text(f"[{name}]\nrw=write\nsize=1m\n")
    out = tmp_path / "runs"
    arguments = ("--on", "lab-reference", "--set", "capacity=64MiB", "--out", out)
    outcome = cli("run", tmp_path / "a.fio", tmp_path / "b.fio", *arguments)
    assert outcome.status == 0, outcome.err
    assert len(list(out.glob("*/manifest.json"))) == 2


def test_ctrl_c_in_a_simulated_run_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(ENDLESS)
    command = [sys.executable, "-m", "ssdlab", "run", "job.fio", "--on", "lab-reference"]
    process = subprocess.Popen(
        [*command, "--out", "runs", "--json", "doc.json"],
        cwd=tmp_path,
        env=dict(os.environ),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    first = process.stderr.readline()  # progress: the run is under way
    assert "lab-reference" in first
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "ssdlab: stopped by Ctrl-C; nothing was kept"
    assert "Traceback" not in said
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["job.fio"]
    assert not (tmp_path / "runs").exists()


def test_a_run_says_what_a_loss_of_power_took(cli: Cli, tmp_path: Path) -> None:
    job = tmp_path / "w.fio"
    job.write_text("[w]\nrw=randwrite\nbs=4k\niodepth=8\nsize=64m\ntime_based\nruntime=20\n")
    table = tmp_path / "w.json"
    losses = 'power_loss=["5s", "10s"]'
    ran = cli("run", job, "--on", "demo-client", "--set", losses, "--json", table)
    assert ran.status == 0, ran.err
    counters = json.loads(table.read_text())["ssdlab"]["counters"]
    lost = sum(value for name, value in counters.items() if name.endswith("power_lost_bytes"))
    found = re.search(
        r"Power was lost 2 times: 16 I/Os were in flight and sent again, (\S+) MB", ran.out
    )
    assert found is not None and found[1] == f"{lost / 1e6:#.3g}"
    without = cli("run", job, "--on", "demo-client")
    assert without.status == 0 and "Power was lost" not in without.out


@pytest.mark.parametrize(
    ("losses", "found"),
    [("10s", '"10s"'), ('["ten"]', '["ten"]'), ("[-1]", "[-1]"), ('["5s", 3]', '["5s", 3]')],
)
def test_a_wrong_time_of_a_loss_of_power_is_one_sentence(
    cli: Cli, tmp_path: Path, losses: str, found: str
) -> None:
    job = tmp_path / "w.fio"
    job.write_text("[w]\nrw=randwrite\nbs=4k\nsize=1m\n")
    said = cli("run", job, "--on", "demo-client", "--set", f"power_loss={losses}")
    assert said.status == 2
    assert said.err.splitlines() == [
        f'ssdlab: power_loss: found {found}, expected times in a list, such as ["10s", "25s"]'
    ]


@pytest.mark.parametrize(
    ("limit", "told"),
    [(300, "9 (for 99 % within 300 us)"), (60, "1 (for 99 % within 60 us, not kept)")],
)
def test_the_depth_that_was_found_for_a_latency_is_told(
    cli: Cli, tmp_path: Path, limit: int, told: str
) -> None:
    job = tmp_path / "job.fio"
    job.write_text(
        "[seek]\nrw=randread\nbs=4k\niodepth=64\nnorandommap\ntime_based\nruntime=5\n"
        f"latency_target={limit}\nlatency_window=200ms\nlatency_percentile=99\n"
    )
    drive = ("--on", "lab-reference", "--set", "capacity=256MiB", "--prepare", "sequential")
    outcome = cli("run", job, *drive, "--json", tmp_path / "r.json")
    assert outcome.status == 0, outcome.err
    assert f"iodepth {told}, " in outcome.out
    (found,) = json.loads((tmp_path / "r.json").read_text())["jobs"]
    assert (str(found["latency_depth"]), found["latency_target"]) == (told.split()[0], limit * 1000)


def test_a_job_that_fails_by_its_own_terms_keeps_what_it_did(
    tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    text = "[a]\nrw=write\nsize=1m\nmax_latency=1us\n"
    with pytest.raises(BrokenOffError, match=r'^job "a" failed: max_latency=1us: a write') as told:
        ssdlab.run(text, on="lab-reference", set=SMALL)
    result = told.value.result
    assert (result.jobs[0].error, result.ssdlab["status"]) == (110, "failed")
    job = tmp_path / "job.fio"
    job.write_text(text)
    outcome = cli("run", job, "--on", "lab-reference", "--set", "capacity=256MiB")
    assert outcome.status == 1
    assert "is kept: ssdlab show " in outcome.err
    kept = cli("show", outcome.err.split("ssdlab show ")[1].split()[0])
    assert kept.status == 0, kept.err


def test_a_job_that_never_started_is_shown_beside_the_others(
    tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    job = tmp_path / "job.fio"
    job.write_text(
        "[global]\nrw=write\nexitall\nexit_what=all\n[a]\nsize=1m\n"
        "[b]\nsize=64m\n[c]\nstonewall\nsize=1m\n"
    )
    outcome = cli("run", job, "--on", "lab-reference", "--set", "capacity=256MiB", "--json", "-")
    assert outcome.status == 0, outcome.err
    jobs = json.loads(outcome.out)["jobs"]
    assert [one["write"]["total_ios"] for one in jobs] == [256, jobs[1]["write"]["total_ios"], 0]
    assert 0 < jobs[1]["write"]["total_ios"] < 16384
    page = tmp_path / "page.html"
    plain = cli("run", job, "--on", "lab-reference", "--set", "capacity=256MiB", "--report", page)
    assert plain.status == 0, plain.err
