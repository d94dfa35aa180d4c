"""`_core.Drive`: a simulated drive that lives across several jobs."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ssdlab import _core
from ssdlab.errors import InputError, Interrupted
from ssdlab.jobfile import JobText
from ssdlab.rig import profiles
from ssdlab.simulation import device_frame, latency_frame, sim_result
from ssdlab.target import Settings, Sim

RIG = next(one.text for one in profiles() if one.name == "lab-reference")
SMALL = [("capacity", "64MiB")]
WRITES = "[w]\nrw=randwrite\nbs=4k\niodepth=32\nnorandommap\ntime_based\nruntime=1\n"
ENDLESS = WRITES.replace("runtime=1", "runtime=100000")


def drive(seed: int = 1) -> _core.Drive:
    return _core.Drive(RIG, rig_name="lab", overrides=SMALL, seed=seed)


def about(output: _core.RunOutput) -> dict[str, object]:
    found: dict[str, object] = json.loads(output.json)["ssdlab"]
    return found


def test_the_first_job_of_a_drive_is_a_run_of_its_own() -> None:
    one = drive(seed=3)
    one.prepare("random:1,idle:2s")
    output = one.run(WRITES, job_name="w.fio")
    settings = Settings(seed=3, prepare="random:1,idle:2s", overrides=dict(SMALL))
    alone = Sim("lab", RIG).run(JobText("w.fio", WRITES, Path.cwd()), settings)
    assert sim_result("lab", JobText("w.fio", WRITES, Path.cwd()), output) == alone
    assert alone.rig_toml == one.rig_toml


def test_the_latency_histograms_of_a_run_add_up_to_its_document() -> None:
    job = (
        "[global]\nbs=4k\nsize=8m\nlat_percentiles=1\n[a]\nrw=randrw\nfsync=8\niodepth=4\n"
        "[b]\nrw=randwrite\nrate_iops=500\nio_size=6m\nramp_time=1\n"
    )
    output = drive().run(job, job_name="w.fio", interval_ms=1)
    frame, compared = latency_frame(output), 0
    assert (frame["length_s"] > 0.0015).any()  # intervals were joined
    for found in json.loads(output.json)["jobs"]:
        for ddir in ("read", "write", "trim", "sync"):
            for kind in ("clat", "lat"):
                rows = frame.filter(job=found["jobname"], ddir=ddir, kind=kind)
                told = found[ddir].get(f"{kind}_ns") or {"N": 0, "mean": 0.0, "max": 0}
                assert rows["ios"].sum() == told["N"]
                assert rows["sum_ns"].sum() == pytest.approx(told["mean"] * told["N"], abs=1)
                assert (rows["max_ns"].max() or 0) == told["max"]
                bins = rows.select("bins", "counts").explode("bins", "counts").drop_nulls()
                counts = bins.group_by("bins").sum().sort("bins")["counts"].to_list()
                assert counts == list(told.get("bins", {}).values())
                compared += bool(counts)
    assert compared == 4 + 1 + 2


def test_the_latency_classes_of_all_segments_add_up_to_the_whole_job() -> None:
    job = "[global]\nbs=4k\nsize=8m\n[a]\nrw=randrw\nfsync=8\niodepth=4\n[b]\nrw=randwrite\n"
    outputs = [drive().run(job, job_name="w.fio", interval_ms=1) for _ in range(2)]
    frame, compared = latency_frame(outputs[0]), 0
    assert frame.equals(latency_frame(outputs[1])), "same rig, job and seed"
    told = json.loads(outputs[0].json)["ssdlab"]["attribution"]
    for name, directions in told["jobs"].items():
        for ddir, whole in directions.items():
            sums: dict[int, list[int]] = {}
            for row in frame.filter(job=name, ddir=ddir).iter_rows(named=True):
                parts = np.reshape(row["class_parts_ns"], (-1, len(told["parts"]))).tolist()
                for upper, ios, ns in zip(
                    row["class_upper_ns"], row["class_ios"], parts, strict=True
                ):
                    before = sums.get(upper, [0] * (1 + len(ns)))
                    sums[upper] = [a + b for a, b in zip(before, [ios, *ns], strict=True)]
            by_latency = {one["upper_ns"]: [one["ios"], *one["ns"]] for one in whole["by_latency"]}
            assert sums == by_latency, (name, ddir)
            compared += bool(sums)
    assert compared == 3 + 1


def test_a_run_of_which_nothing_was_measured_has_no_latency_rows() -> None:
    output = drive().run("[w]\nrw=write\nbs=4k\nsize=4k\nramp_time=9\n", job_name="w.fio")
    frame = latency_frame(output)
    assert frame.is_empty()
    assert frame.schema["bins"] == pl.List(pl.UInt16)
    assert frame.schema["class_ios"] == pl.List(pl.UInt64)


def test_a_job_finds_what_the_one_before_left_and_says_so() -> None:
    one = drive()
    assert (one.capacity_bytes, one.now_s, one.state) == (64 << 20, 0.0, "fob")
    first = one.run(WRITES, job_name="w.fio")
    assert one.now_s == about(first)["simulated_seconds"]
    between = one.counters()
    second = one.run(WRITES, job_name="w.fio", seed=9)
    assert about(second)["seed"] == 9
    assert about(second)["preconditioning"] == "as left by the run before"
    rows = device_frame(second).drop("time_s")
    assert between == rows.row(0, named=True)
    assert one.counters() == rows.row(-1, named=True)
    one.idle(1.5)
    one.trim(1 << 20, 1 << 20)
    one.trim()
    one.purge()
    assert one.counters()["units_mapped"] == 0
    assert one.state.endswith("then idle:1.5s,trim of 1MiB at 1MiB,trim,purge")


def test_a_drive_loses_power_between_runs_and_in_them() -> None:
    one = drive()
    one.run(WRITES, job_name="w.fio")
    assert "power_losses" not in one.counters()
    assert one.power_cut() > 0
    assert one.state == "as left by the run before, then loss of power"
    one.run(WRITES, job_name="w.fio")
    assert one.counters()["power_losses"] == 1
    cuts = [*SMALL, ("power_loss", '["250ms", "500ms"]')]
    other = _core.Drive(RIG, rig_name="lab", overrides=cuts, seed=1)
    assert 'power_loss = ["250ms", "500ms"]' in other.rig_toml
    rows = device_frame(other.run(WRITES, job_name="w.fio", interval_ms=100))
    assert rows["power_losses"][::3].to_list() == [0, 1, 2, 2]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda d: d.idle(-1.0), "1000 days"),
        (lambda d: d.idle(float("nan")), "1000 days"),
        (lambda d: d.trim(1, 512), "whole sectors"),
        (lambda d: d.trim(1 << 40), "beyond the end"),
        (lambda d: d.prepare("randomly"), "random:N"),
        (lambda d: d.run("[w]\nrw=wrong\n", job_name="w.fio"), "w.fio:2"),
        (lambda d: d.run(WRITES, job_name="w.fio", interval_ms=0), "1 ms"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_the_drive_as_it_was(
    wrong: Callable[[_core.Drive], object], says: str
) -> None:
    one = drive()
    with pytest.raises(InputError, match=says):
        wrong(one)
    assert one.state == "fob"
    one.run(WRITES, job_name="w.fio")


def test_a_drive_whose_run_was_interrupted_refuses_everything_after() -> None:
    one = drive()
    with pytest.raises(Interrupted):
        one.run(ENDLESS, job_name="w.fio", progress=lambda _: False)
    for call in (lambda: one.idle(1), one.purge, lambda: one.run(WRITES, job_name="w.fio")):
        with pytest.raises(InputError, match="broke off"):
            call()


def test_a_drive_at_work_refuses_a_second_caller_instead_of_waiting_for_ever() -> None:
    one, seen = drive(), []

    def progress(_: _core.Progress) -> bool:
        with pytest.raises(InputError, match="at work"):
            one.counters()
        seen.append(1)
        return len(seen) < 3

    with pytest.raises(Interrupted):
        one.run(ENDLESS, job_name="w.fio", progress=progress)
    assert len(seen) == 3
    other, stop = drive(), threading.Event()

    def play() -> None:
        with pytest.raises(Interrupted):
            other.run(ENDLESS, job_name="w.fio", progress=lambda _: not stop.is_set())

    thread = threading.Thread(target=play)
    thread.start()
    time.sleep(0.1)
    with pytest.raises(InputError, match="at work"):
        other.purge()
    stop.set()
    thread.join(timeout=30)
    assert not thread.is_alive()


def test_a_drive_goes_on_from_a_file_as_it_would_have(tmp_path: Path) -> None:
    one, path = drive(), tmp_path / "a.drive"
    one.prepare("random:1")
    one.run(WRITES, job_name="w.fio")
    one.idle(0.25)
    one.save(path)
    two = drive()
    two.restore(str(path))
    assert (two.now_s, two.state, two.counters()) == (one.now_s, one.state, one.counters())
    first, second = (each.run(WRITES, job_name="w.fio", seed=5) for each in (one, two))
    assert first.json == second.json
    assert device_frame(first).equals(device_frame(second))
    assert [p.name for p in tmp_path.iterdir()] == ["a.drive"]


def test_an_interrupted_drive_goes_on_from_a_file(tmp_path: Path) -> None:
    one, path = drive(), tmp_path / "a.drive"
    one.prepare("sequential")
    one.save(path)
    with pytest.raises(Interrupted):
        one.run(ENDLESS, job_name="w.fio", progress=lambda _: False)
    with pytest.raises(InputError, match="broke off"):
        one.save(path)
    one.restore(path)
    assert (one.state, one.now_s) == ("sequential", 0.0)
    one.run(WRITES, job_name="w.fio")


def test_what_cannot_be_restored_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.drive"
    drive().save(path)
    cut = tmp_path / "cut.drive"
    cut.write_bytes(path.read_bytes()[:-1])
    larger = _core.Drive(RIG, rig_name="lab", overrides=[("capacity", "128MiB")])
    for one, file, says in (
        (drive(), cut, "damaged or cut short"),
        (drive(seed=2), path, "seed: it is 1 there and 2 here"),
        (larger, path, "capacity is 64MiB there and is 128MiB here"),
        (drive(), tmp_path, "no checkpoint"),
        (drive(), tmp_path / "absent", "No such file"),
    ):
        with pytest.raises(InputError, match=says) as refused:
            one.restore(file)
        assert "\n" not in str(refused.value)
        assert one.state == "fob"
    with pytest.raises(InputError, match="No such file"):
        drive().save(tmp_path / "absent" / "a.drive")


def test_a_drive_goes_on_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "a.drive"
    one = drive()
    one.prepare("random:1")
    one.save(path)
    script = f"""
from ssdlab import _core
one = _core.Drive({RIG!r}, rig_name="lab", overrides={SMALL!r})
one.restore({str(path)!r})
print(one.run({WRITES!r}, job_name="w.fio").json)
"""
    there = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert there.stdout.strip() == one.run(WRITES, job_name="w.fio").json.strip()


def test_a_disk_that_is_full_fails_the_save_and_keeps_the_older_file(tmp_path: Path) -> None:
    path = tmp_path / "a.drive"
    drive().save(path)
    before = path.read_bytes()
    script = f"""
import resource, signal
from ssdlab import _core
from ssdlab.errors import ExperimentError
one = _core.Drive({RIG!r}, rig_name="lab", overrides={SMALL!r})
one.prepare("random:1")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    one.save({str(path)!r})
except ExperimentError as error:
    print(error)
"""
    there = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert there.stdout.startswith(f"{path}: File too large")
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.drive"]
