"""``--logs DIR``: fio's logs and a document of each job, named as by bench-fio."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import small_protocol
from conftest import Outcome, make_result, needs_fio
from ssdlab import logfolder
from ssdlab.errors import InputError, Interrupted
from ssdlab.fio.logs import by_job
from ssdlab.results import JobLogs, JobShape
from ssdlab.store import RunStore, open_run
from test_engine import on, only, resume, run, steps

JOB = """[global]
ioengine=psync
size=4m
time_based
runtime=2500ms
rate_iops=200
[w]
rw=randwrite
numjobs=2
group_reporting
[r]
stonewall
rw=randread
bs=8k
write_iops_log=mine
log_avg_msec=500
"""
pytestmark = pytest.mark.usefixtures("short_fio")
TYPES = ("bw", "clat", "clat_hist", "iops", "lat", "slat")
SMALL = ("lab-reference", "--set", "capacity=256MiB")
KINDS = ["sim", pytest.param("file", marks=[pytest.mark.real, needs_fio()])]


def target(kind: str, tmp_path: Path) -> tuple[object, ...]:
    return SMALL if kind == "sim" else (tmp_path / "scratch",)


def job_file(tmp_path: Path, text: str = JOB, name: str = "job.fio") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_leaves_every_log_and_a_document_of_each_job(
    kind: str, tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    logs = tmp_path / "logs"
    done = cli("run", job_file(tmp_path), "--on", *target(kind, tmp_path), "--logs", logs)
    assert done.status == 0, done.err
    stem = "randwrite-iodepth-1-numjobs-2"
    expected = {f"{stem}_{type_}.{thread}.log" for type_ in TYPES for thread in (1, 2)}
    expected |= {f"randread-iodepth-1-numjobs-1_{type_}.1.log" for type_ in TYPES}
    expected |= {"randwrite-1-2.json", "randread-1-1.json"}
    assert {one.name for one in logs.iterdir()} == expected
    rows = [line.split(", ") for line in (logs / f"{stem}_iops.1.log").read_text().splitlines()]
    assert [round(int(row[0]), -3) for row in rows][:2] == [1000, 2000]
    assert all(abs(int(row[1]) - 200) < 60 and row[2] == "1" for row in rows)
    # The job's own interval.
    assert len((logs / "randread-iodepth-1-numjobs-1_lat.1.log").read_text().splitlines()) >= 4
    histograms = (logs / f"{stem}_clat_hist.2.log").read_text().splitlines()
    assert all(len(line.split(",")) == 3 + 1856 for line in histograms)
    assert sum(map(int, histograms[0].split(",")[3:])) == pytest.approx(200, abs=60)


@pytest.mark.parametrize("kind", KINDS)
def test_the_document_of_a_job_holds_that_job_alone_with_all_its_options(
    kind: str, tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    logs = tmp_path / "logs"
    cli("run", job_file(tmp_path), "--on", *target(kind, tmp_path), "--logs", logs)
    document = json.loads((logs / "randread-1-1.json").read_text())
    (job,) = document["jobs"]
    assert job["jobname"] == "r"
    assert job["read"]["total_ios"] > 0
    options = job["job options"]
    assert (options["rw"], options["bs"], options["iodepth"]) == ("randread", "8k", "1")
    assert options["runtime"] == "2500ms"


@pytest.mark.parametrize("kind", KINDS)
def test_the_logs_that_the_job_asks_for_stay_in_the_run_and_the_others_do_not(
    kind: str, tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    runs = tmp_path / "runs"
    on = target(kind, tmp_path)
    cli("run", job_file(tmp_path), "--on", *on, "--out", runs, "--logs", tmp_path / "logs")
    (run,) = RunStore(runs).entries()
    assert [name for name, _ in run.result().logs] == ["mine_iops.3.log"]


def test_logs_change_nothing_in_a_simulated_result(
    tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    job, plain, logged = job_file(tmp_path), tmp_path / "a.json", tmp_path / "b.json"
    cli("run", job, "--on", *SMALL, "--json", plain)
    cli("run", job, "--on", *SMALL, "--json", logged, "--logs", tmp_path / "logs")
    assert plain.read_text() == logged.read_text()


def test_a_taken_name_is_refused_before_anything_runs(
    tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    logs, runs = tmp_path / "logs", tmp_path / "runs"
    logs.mkdir()
    (logs / "notes.txt").write_text("mine")
    (logs / "randread-iodepth-1-numjobs-1_bw.9.log").write_text("mine")
    done = cli("run", job_file(tmp_path), "--on", *SMALL, "--logs", logs, "--out", runs)
    assert done.status == 2
    assert done.err == (
        f"ssdlab: {logs}/randread-iodepth-1-numjobs-1_bw.9.log: exists and would be overwritten; "
        "give --logs another folder\n"
    )
    assert len(list(logs.iterdir())) == 2
    assert list(runs.glob("*/manifest.json")) == []


def test_a_folder_with_other_names_is_used(tmp_path: Path, cli: Callable[..., Outcome]) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "notes.txt").write_text("mine")
    text = "[w]\nrw=randwrite\nsize=1m\niodepth={}\n"
    for depth in (1, 11):
        job = job_file(tmp_path, text.format(depth))
        assert cli("run", job, "--on", *SMALL, "--logs", logs).status == 0
    assert (logs / "notes.txt").read_text() == "mine"
    assert {one.name for one in logs.glob("*.json")} == {
        "randwrite-1-1.json",
        "randwrite-11-1.json",
    }


@pytest.mark.parametrize("what", ["a file", "below a file"])
def test_a_place_where_no_folder_can_be_is_one_sentence(
    what: str, tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    place = file if what == "a file" else file / "logs"
    done = cli("run", job_file(tmp_path), "--on", *SMALL, "--logs", place)
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert file.read_text() == "mine"


def test_jobs_and_job_files_that_would_share_a_name_have_a_folder_each(
    tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    one = job_file(tmp_path, "[a b]\nrw=read\nsize=1m\n[c]\nrw=read\nsize=1m\n", "one.fio")
    (tmp_path / "x").mkdir()
    two = job_file(tmp_path / "x", "[d]\nrw=read\nsize=1m\n", "two.fio")
    logs = tmp_path / "logs"
    assert cli("run", one, two, "--on", *SMALL, "--logs", logs).status == 0
    documents = sorted(str(path.relative_to(logs)) for path in logs.rglob("*.json"))
    assert documents == ["one/a-b/read-1-1.json", "one/c/read-1-1.json", "two/read-1-1.json"]
    shapes = [JobShape("a", "read", 1, 1), JobShape("A", "read", 1, 1)]
    result = make_result("x")
    result.job_logs = [JobLogs(shape, [("bw.1.log", "")]) for shape in shapes]
    logfolder.write(tmp_path / "same", result)
    assert {path.name for path in (tmp_path / "same").iterdir()} == {"a", "a-2"}


def test_threads_are_counted_anew_in_each_section() -> None:
    shapes = [JobShape("a", "read", 1, 2), JobShape("b", "write", 4, 1)]
    logs = [(f"ssdlab000_bw.{n}.log", str(n)) for n in (1, 2)] + [("own_clat_hist.3.log", "3")]
    first, second = by_job(shapes, logs)
    assert first.files == [("bw.1.log", "1"), ("bw.2.log", "2")]
    assert second.files == [("clat_hist.1.log", "3")]


def test_a_protocol_leaves_the_logs_of_each_step(
    tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    logs, runs = tmp_path / "logs", tmp_path / "runs"
    test = (
        "test",
        "lab-reference",
        "--protocol",
        "access-time",
        "--quick",
        "--out",
        runs,
        "--logs",
        logs,
    )
    assert cli(*test, "--plan").status == 0
    assert not logs.exists()
    done = cli(*test)
    assert done.status == 0, done.err
    (run,) = (open_run(path.parent) for path in runs.glob("*/manifest.json"))
    steps = [entry for entry in run.journal() if entry.kind == "job"]
    assert len(list(logs.iterdir())) == len(steps) > 2
    for entry in steps:
        (folder,) = logs.glob(f"{entry.number:05d}-*")
        assert len(list(folder.glob("*.json"))) == 1
        assert list(folder.glob("*_iops.1.log"))
    done = cli(*test)
    assert (done.status, "is not empty" in done.err) == (2, True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_protocol_that_was_stopped_goes_on_writing_its_logs(kind: str, tmp_path: Path) -> None:
    rig, store, logs = tmp_path / "small.toml", tmp_path / "runs", tmp_path / "logs"
    rig.write_text(small_protocol.RIG)
    order = on(rig, logs=logs) if kind == "sim" else on(tmp_path / "s", logs=logs, size=16 << 20)
    with pytest.raises(Interrupted):
        run(order, store, steps=5)
    written = {one.name for one in logs.iterdir()}
    resume(only(store))
    jobs = {f"{one.number:05d}" for one in steps(only(store)) if one.kind == "job"}
    assert written < {one.name for one in logs.iterdir()}
    assert {one.name[:5] for one in logs.iterdir()} == jobs


def test_the_last_look_before_writing_is_a_look_too(tmp_path: Path) -> None:
    result = make_result("x")
    result.job_logs = [JobLogs(JobShape("w", "write", 1, 1), [("bw.1.log", "1, 2, 3\n")])]
    logfolder.write(tmp_path, result)
    assert (tmp_path / "write-iodepth-1-numjobs-1_bw.1.log").read_text() == "1, 2, 3\n"
    with pytest.raises(InputError, match="would be overwritten"):
        logfolder.write(tmp_path, result)
