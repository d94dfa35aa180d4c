"""A stored run is whole or it is not there."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

from conftest import make_result
from ssdlab import errors, store
from ssdlab.errors import ExperimentError, InputError
from ssdlab.results import Result
from ssdlab.store import RunStore


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
    def broken(path: Path, frame: pl.DataFrame) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "_write_parquet", broken)
    with pytest.raises(KeyboardInterrupt):
        RunStore(tmp_path).save(make_result("x"))
    assert [p.name for p in tmp_path.iterdir()] == []


def test_many_may_prepare_one_store_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _n: RunStore(tmp_path).prepare(), range(400)))
    assert not list(tmp_path.iterdir())


def test_a_killed_writer_leaves_no_broken_run_and_the_next_one_clears_up(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from conftest import make_result\n"
        "from ssdlab import store\n"
        "store._write_parquet = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "store.RunStore(sys.argv[1]).save(make_result('x'))\n"
    )
    here = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path), here])
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob(".partial-*"))) == 1
    assert RunStore(tmp_path).entries() == []
    folder = RunStore(tmp_path).save(make_result("y"))
    assert [e.folder for e in RunStore(tmp_path).entries()] == [folder]
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


@pytest.mark.parametrize("damage", ["delete", "garbage", "stale"])
def test_the_index_is_rebuilt_from_the_folders(tmp_path: Path, damage: str) -> None:
    runs = RunStore(tmp_path)
    saved = {runs.save(make_result(name)).name for name in ("a", "b")}
    index = tmp_path / store.INDEX
    if damage == "delete":
        index.unlink()
    elif damage == "garbage":
        index.write_bytes(b"not a database" * 100)
    else:
        with sqlite3.connect(index) as database:
            database.execute("DELETE FROM runs")
    assert {e.id for e in runs.entries()} == saved
    with sqlite3.connect(index) as database:
        assert {row[0] for row in database.execute("SELECT id FROM runs")} == saved


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
        result.logs = [("big.log", "x" * (256 << 10))]
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
        (tmp_path / store.INDEX).unlink()
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
