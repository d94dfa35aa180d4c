"""A stored run is whole or it is not there."""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conftest import Cli, make_result
from ssdlab import errors
from ssdlab.errors import ExperimentError, InputError
from ssdlab.results import Result
from ssdlab.store import RunStore, open_run
from ssdlab.store.folder import RunFolder


def test_a_run_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    result = make_result("drive one", device=True)
    folder = RunStore(tmp_path).save(result)
    again = Result.load(folder)
    assert again.document == result.document
    assert again.series().equals(result.series())
    device, before = again.device_series(), result.device_series()
    assert device is not None
    assert before is not None
    assert device.equals(before)
    assert (again.name, again.job_text, again.rig_toml) == ("drive one", "[w]\n", "name = 'x'\n")
    assert again.logs == [("w_iops.1.log", "1000, 5, 1, 0, 0\n")]


def test_a_run_that_breaks_off_while_saving_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, "set_status", broken)
    with pytest.raises(KeyboardInterrupt):
        RunStore(tmp_path).save(make_result("x"))
    assert [p.name for p in tmp_path.iterdir()] == []


def test_runs_kept_in_one_second_are_not_lost_where_chance_gives_them_one_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four letters fall together soon: of 3000 short runs in 20 s four could not be kept."""
    letters, others = iter(["aaaa", "aaaa", "bbbb"]), secrets.token_hex
    monkeypatch.setattr(
        secrets, "token_hex", lambda size: next(letters) if size == 2 else others(size)
    )
    moment = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    kept = [RunStore(tmp_path).save(make_result("x"), made=moment).name for _ in range(2)]
    assert kept == ["20260329-010000-x-aaaa", "20260329-010000-x-bbbb"]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept


def test_many_may_prepare_one_store_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _n: RunStore(tmp_path).prepare(), range(400)))
    assert not list(tmp_path.iterdir())


def test_a_killed_writer_leaves_no_broken_run_and_the_next_one_clears_up(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from conftest import make_result\n"
        "from ssdlab.store import RunStore\n"
        "from ssdlab.store.folder import RunFolder\n"
        "RunFolder.set_status = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "RunStore(sys.argv[1]).save(make_result('x'))\n"
    )
    here = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path), here])
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob(".partial-*"))) == 1
    assert RunStore(tmp_path).entries() == []
    folder = RunStore(tmp_path).save(make_result("y"))
    assert [e.path for e in RunStore(tmp_path).entries()] == [folder]
    assert list(tmp_path.glob(".partial-*")) == []


def test_what_another_machine_is_writing_into_a_shared_store_stays(tmp_path: Path) -> None:
    live, dead = tmp_path / ".partial-0badcafe-999999999-x", tmp_path / ".partial-0badcafe-1-y"
    for folder in (live, dead):
        folder.mkdir()
    os.utime(dead, (0, 0))
    RunStore(tmp_path).save(make_result("z"))
    assert live.exists(), "a process of another machine is not looked for here"
    assert not dead.exists(), "what was left years ago is"


def test_a_run_without_its_manifest_is_no_run(tmp_path: Path) -> None:
    folder = RunStore(tmp_path).save(make_result("x"))
    (folder / "manifest.json").unlink()
    assert RunStore(tmp_path).entries() == []
    with pytest.raises(InputError, match="not a complete run"):
        Result.load(folder)


def test_a_run_with_a_damaged_file_is_one_sentence(tmp_path: Path) -> None:
    folder = RunStore(tmp_path).save(make_result("x"))
    (folder / "series.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match="the run cannot be read"):
        Result.load(folder)


def test_the_list_is_what_lies_in_the_folders(tmp_path: Path) -> None:
    runs = RunStore(tmp_path)
    one, other = (runs.save(make_result(name)) for name in ("a", "b"))
    (tmp_path / "index.sqlite").write_bytes(b"of an older version")
    assert [e.id for e in runs.entries()] == sorted([one.name, other.name])
    one.rename(tmp_path / "renamed")
    shutil.rmtree(other)
    assert [e.id for e in runs.entries()] == ["renamed"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["index.sqlite", "renamed"]


@pytest.mark.alone
def test_a_thousand_runs_are_listed_in_a_moment(tmp_path: Path) -> None:
    one = RunStore(tmp_path).save(make_result("a"))
    for number in range(1000):
        (tmp_path / f"copy-{number}").mkdir()
        shutil.copy(one / "manifest.json", tmp_path / f"copy-{number}")
    begin = time.process_time()
    assert len(RunStore(tmp_path).entries()) == 1001
    assert time.process_time() - begin < 1


def running(store: Path) -> RunFolder:
    """A run that has begun, as its manifest says."""
    about = {
        "protocol": "p",
        "name": "a",
        "kind": "sim",
        "target": {"kind": "sim", "name": "a"},
        "overrides": {},
    }
    return RunStore(store).create(about)


def test_a_run_is_going_on_only_while_somebody_works_on_it(tmp_path: Path, cli: Cli) -> None:
    run = running(tmp_path)
    assert open_run(run.path).status == "stopped", "its process was killed before it took the lock"
    with run.locked():
        assert open_run(run.path).status == "running"
        assert "(running)" in cli("list", "runs", "--out", tmp_path).out
    assert "(stopped)" in cli("list", "runs", "--out", tmp_path).out
    run.set_status("complete")
    assert "(" not in cli("list", "runs", "--out", tmp_path).out.splitlines()[-1]


def test_whoever_asks_whether_a_run_goes_on_does_not_keep_it_from_going_on(tmp_path: Path) -> None:
    run = running(tmp_path)
    with (run.path / "lock").open("w") as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        release = threading.Timer(0.2, fcntl.flock, (asking, fcntl.LOCK_UN))
        release.start()
        with run.locked():
            assert run.status == "running"
            with pytest.raises(InputError, match="is going on already"), run.locked():
                pass
        release.join()


def test_a_run_of_a_newer_version_is_told_and_does_not_spoil_the_list(
    tmp_path: Path, cli: Cli
) -> None:
    good, newer = (RunStore(tmp_path).save(make_result(name)) for name in ("a", "b"))
    manifest = json.loads((newer / "manifest.json").read_text())
    (newer / "manifest.json").write_text(json.dumps({**manifest, "schema": 3}))
    listed = cli("list", "runs", "--out", tmp_path)
    assert good.name in listed.out and listed.status == 2
    assert "newer version of ssdlab" in listed.err
    assert "newer version of ssdlab" in cli("show", newer).err


def test_what_another_machine_tests_in_a_shared_store_stays(tmp_path: Path) -> None:
    run = running(tmp_path)
    os.utime(run.path, (0, 0))
    RunStore(tmp_path).save(make_result("z"))
    assert open_run(run.path).manifest == run.manifest


OLD = Path(__file__).parent / "old_runs"


@pytest.mark.parametrize("kind", ["job", "protocol"])
def test_old_runs_are_opened_by_every_command(tmp_path: Path, cli: Cli, kind: str) -> None:
    one, other = (shutil.copytree(OLD / kind, tmp_path / f"20-{name}") for name in "ab")
    listed = cli("list", "runs", "--out", tmp_path)
    assert listed.status == 0 and "20-a" in listed.out and "lab-reference" in listed.out
    for command in (
        ("show", one),
        ("report", one, "-o", tmp_path / "page.html"),
        ("compare", one, other),
        ("health", one),
    ):
        told = cli(*command)
        assert told.status == 0, (command, told.err)
    assert "is complete" in cli("resume", one).err
    explained = cli("explain", one, "--no-try")
    assert explained.status == (0 if kind == "job" else 2)


def test_an_old_run_of_a_job_file_has_all_that_a_new_one_has(tmp_path: Path) -> None:
    old = open_run(OLD / "job")
    result = old.result()
    new = open_run(RunStore(tmp_path).save(old.result()))
    again = new.result()
    assert again == result
    assert result.latency_frame is not None and result.rig_toml and result.job_text
    assert new.only().key == old.only().key == "job"
    own = {"id", "created"}
    assert new.manifest.model_dump(exclude=own) == old.manifest.model_dump(exclude=own) | {
        "capacity": 64 << 20
    }


def test_a_run_is_found_by_a_piece_of_its_id(tmp_path: Path) -> None:
    runs = RunStore(tmp_path)
    folder = runs.save(make_result("enterprise"))
    runs.save(make_result("client"))
    assert runs.find("enterprise") == folder
    assert runs.find(str(folder)) == folder
    with pytest.raises(InputError, match="fits 2 runs: "):
        runs.find("-")
    with pytest.raises(InputError, match='no run is called "gone"'):
        runs.find("gone")


def test_a_folder_of_runs_is_no_run_but_tells_which_it_has(tmp_path: Path) -> None:
    folder = RunStore(tmp_path / "kept").save(make_result("drive"))
    with pytest.raises(InputError) as raised:
        RunStore(tmp_path / "other").find(str(folder.parent))
    assert str(raised.value) == (
        f"{folder.parent}: is a folder of runs; name one of them, such as {folder}"
    )


def test_the_command_that_goes_on_from_a_run_finds_it_wherever_it_is_kept(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    job = tmp_path / "a.fio"
    job.write_text("[a]\nrw=read\nsize=1m\n")
    for where in ([], ["--out", tmp_path / "my runs"]):
        said = cli("run", job, "--on", "demo-client", "--scale", 64, *where).out
        _, _, follow = said.replace("\n", " ").rpartition("next: ssdlab report ")
        shown = cli("show", *shlex.split(follow))
        assert (shown.status, shown.err) == (0, "")
    assert cli("show", shlex.split(follow)[0].rpartition("/")[2]).status == 2


def test_the_newest_run_is_the_last(tmp_path: Path) -> None:
    runs = RunStore(tmp_path)
    with pytest.raises(InputError, match='no run is called "last"'):
        runs.find("last")
    for name in ("z", "a"):
        folder = runs.save(make_result(name))
        assert runs.find("last") == folder
    runs.save(make_result("from a file"), made=datetime(2020, 1, 1, tzinfo=UTC))
    assert runs.find("last") == folder


def test_the_manifest_tells_what_was_run(tmp_path: Path) -> None:
    folder = RunStore(tmp_path).save(make_result("x"))
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["id"] == folder.name
    assert manifest["jobs"] == ["w"]
    assert manifest["status"] == "complete"


def test_a_file_in_the_place_of_the_store_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(InputError, match="is not a folder"):
        RunStore(tmp_path / "runs").prepare()


@pytest.mark.root
def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a small file system needs root")
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "ssdlab-test", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this system mounts no tmpfs here")
    try:
        result = make_result("x")
        result.logs = [("big.log", os.urandom(256 << 10).hex())]
        with pytest.raises(ExperimentError, match="the disk is full"):
            RunStore(tmp_path).save(result)
        assert [p.name for p in tmp_path.iterdir()] == []
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.root
def test_a_read_only_disk_is_one_sentence_before_the_run_and_can_still_be_listed(
    tmp_path: Path,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("a read-only file system needs root")
    mount = ["mount", "-t", "tmpfs", "ssdlab-test", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this system mounts no tmpfs here")
    try:
        folder = RunStore(tmp_path).save(make_result("x"))
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        with pytest.raises(InputError, match="cannot write there"):
            RunStore(tmp_path).prepare()
        assert [e.id for e in RunStore(tmp_path).entries()] == [folder.name]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_every_exception_survives_pickling() -> None:
    kinds = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.SsdlabError)
    ]
    assert len(kinds) >= 7
    for kind in kinds:
        again = pickle.loads(pickle.dumps(kind("one sentence")))
        assert type(again) is kind
        assert str(again) == "one sentence"
        assert kind.__doc__
        assert kind.exit_status in (1, 2, 3, 130)
