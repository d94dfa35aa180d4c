"""A sweep's folder: several processes fill it, each run once; a full disk, and series."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from ssdlab.errors import ExperimentError, Interrupted
from ssdlab.jobfile import read_job
from ssdlab.output import writing
from ssdlab.progress import Progress
from ssdlab.sweeps import Dataset, Sweep, axis, carry_out, claims, forecast
from ssdlab.sweeps import dataset as dataset_module
from ssdlab.sweeps.claims import Claims

DRIVE = "lab-reference"
SMALL = {"capacity": "256MiB"}
JOB = "[a]\nrw=randwrite\nbs=4k\nsize=100%\nruntime=2\ntime_based=1\n"
HOLDER = """
import sys
from pathlib import Path
from ssdlab.sweeps.claims import Claims
claims = Claims(Path(sys.argv[1]))
print(claims.take("run"), flush=True)
sys.stdin.read()
"""


def sweep(*vary: str, seeds: int = 1) -> Sweep:
    return Sweep(read_job(JOB), DRIVE, [axis(one) for one in vary], seeds, "sequential", SMALL)


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has claimed ``run``."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        yield process
        process.kill()


def test_what_a_process_has_claimed_is_free_when_it_is_killed(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    own = Claims(tmp_path)
    assert own.others()
    assert not own.take("run") and own.take("other") and own.take("other")
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert not own.others()
    assert own.take("run")
    own.close()
    assert not tmp_path.exists(), "nothing is left of the one that was killed"


def test_what_another_machine_has_claimed_is_free_when_it_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(claims, "_machine", lambda: "another")
        other = Claims(tmp_path)
        assert other.take("run")
    own = Claims(tmp_path)
    assert not own.take("run")
    monkeypatch.setattr(claims, "EXPIRED_S", -1.0)
    assert own.take("run")
    assert (tmp_path / "run").stat().st_ino != other._inode
    other.release("run")


def test_of_many_who_take_over_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(claims, "_machine", lambda: "another")
        elsewhere.setattr(claims, "EXPIRED_S", 1e9)
        gone = Claims(tmp_path)
        assert all(gone.take(f"run-{n}") for n in range(50))
    # Longer than taking all of them may last.
    monkeypatch.setattr(claims, "EXPIRED_S", 3600.0)
    gone._closed.set()  # it touches its file no more
    os.utime(gone._own, (1.0, 1.0))
    own = [Claims(tmp_path) for _ in range(4)]
    won: list[str] = []

    def work(one: Claims) -> None:
        won.extend(key for n in range(50) if one.take(key := f"run-{n}"))

    threads = [threading.Thread(target=work, args=(one,)) for one in own]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == sorted(f"run-{n}" for n in range(50))


def test_who_takes_over_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what the second has taken the first would move away, and a third could take it, too."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(claims, "_machine", lambda: "another")
        gone = Claims(tmp_path)
        assert gone.take("run")
    monkeypatch.setattr(claims, "EXPIRED_S", 3600.0)
    gone._closed.set()  # it touches its file no more
    os.utime(gone._own, (1.0, 1.0))
    first, second = Claims(tmp_path), Claims(tmp_path)
    told: list[bool] = []
    waits: list[bool] = []
    other = threading.Thread(target=lambda: told.append(second.take("run")))
    seen = Claims._expired

    def expired(one: Claims, place: Path) -> bool:
        found = seen(one, place)
        if one is first and not other.ident:
            other.start()
            other.join(0.3)
            waits.append(other.is_alive())
        return found

    monkeypatch.setattr(Claims, "_expired", expired)
    told.append(first.take("run"))
    other.join()
    assert waits == [True]
    assert sorted(told) == [False, True], "whoever comes first once it is removed"


def test_two_processes_in_one_folder_do_each_run_once(tmp_path: Path) -> None:
    (tmp_path / "j.fio").write_text(JOB)
    arguments = ["sweep", "j.fio", "--on", DRIVE, "--set", "capacity=256MiB", "-o", "out"]
    arguments += ["--prepare", "sequential", "--vary", "job.iodepth=1..64x2"]
    arguments += ["--vary", "ftl.over_provisioning=0.1..0.4/4", "--seeds", "2", "-q", "--json", "-"]
    command = [sys.executable, "-m", "ssdlab", *arguments]
    both = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    told = [json.loads(process.communicate()[0]) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum(one["ran"] for one in told) == 56
    assert all(one["ran"] + one["done_before"] + one["elsewhere"] == 56 for one in told)
    table = pl.read_parquet(tmp_path / "out" / "summary" / "*.parquet")
    assert table.height == table["key"].n_unique() == 56
    assert not (tmp_path / "out" / "claims").exists()


def test_a_full_disk_loses_nothing_that_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = sweep("job.iodepth=1..8", "ftl.over_provisioning=0.1,0.2")
    table = Dataset(tmp_path, asked.axes)
    monkeypatch.setattr(dataset_module, "ROWS_A_PART", 3)
    parts = 0
    write = dataset_module._write_part

    def full(place: Path, frame: pl.DataFrame) -> None:
        nonlocal parts
        parts += 1
        if parts > 2:
            with writing(place):
                raise OSError(errno.ENOSPC, "No space left on device")
        write(place, frame)

    with monkeypatch.context() as disk:
        disk.setattr(dataset_module, "_write_part", full)
        with pytest.raises(ExperimentError, match="the disk is full"):
            carry_out(asked, table)
    assert len(Dataset(tmp_path, asked.axes).done()) == 6
    fresh = Dataset(tmp_path, asked.axes)
    outcome = carry_out(asked, fresh)
    assert (outcome.ran, outcome.before) == (10, 6)
    assert fresh.of(asked).height == 16


def test_series_are_kept_beside_the_table(tmp_path: Path) -> None:
    asked = sweep("job.iodepth=1,4")
    bare = Dataset(tmp_path, asked.axes)
    assert carry_out(asked, bare).ran == 2
    table = Dataset(tmp_path, asked.axes, series=True)
    assert carry_out(asked, table).ran == 2, "what has no series is run again"
    assert carry_out(asked, table).ran == 0
    series = pl.read_parquet(tmp_path / "series" / "*.parquet")
    assert series.columns[:4] == ["key", "time_s", "job", "ddir"]
    assert series.group_by("key").len()["len"].to_list() == [2, 2]
    both = table.of(asked).join(series, on="key").group_by("key").agg(pl.col("ios_right").sum())
    assert sorted(both["ios_right"]) == sorted(table.of(asked)["ios"])
    assert table.of(asked)["endurance_bytes"].null_count() == 0


def test_the_plan_says_what_is_to_be_done(tmp_path: Path) -> None:
    asked = sweep("job.iodepth=1..8")
    table = Dataset(tmp_path, asked.axes)
    first = forecast(asked, asked.check(), table, keep=True)
    assert (first.runs, first.done, first.tried, first.kept) == (8, 0, 3, 3)
    assert first.seconds is not None and first.output_bytes is not None
    assert carry_out(asked, table).before == 3
    prepared = replace(asked, prepare="random:1")
    shared = forecast(prepared, 0, cores=2)
    assert (shared.starts, shared.at_once) == (1, 2) and shared.prepared_s is not None
    assert shared.seconds_each is not None and shared.seconds is not None
    whole = 8 * shared.seconds_each + shared.prepared_s
    assert shared.seconds == pytest.approx(whole / 2)
    assert "to prepare each of 1 drive" in shared.sentence and "on 2 cores" in shared.sentence
    assert "of one core" in forecast(asked, 0).sentence
    last = forecast(asked, asked.check(), table)
    assert (last.done, last.tried, last.seconds) == (8, 0, None)

    def stop(_: Progress) -> bool:
        return False

    with pytest.raises(Interrupted):
        forecast(asked, 0, None, stop)


def test_a_forecast_without_a_trial_that_came_to_its_job_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = sweep("job.iodepth=1,4")
    assert "how long" not in forecast(asked, 0, cores=2).sentence
    monkeypatch.setattr("ssdlab.sweeps.estimate._tried", lambda *_: None)
    said = forecast(asked, 0, cores=2)
    assert said.seconds is None and "2 runs, how long they take is not known" in said.sentence
