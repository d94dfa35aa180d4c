"""Nothing but the target is written: not what others use, not what takes its place meanwhile."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import ssdlab
from conftest import MIB, Cli, Loop, needs_fio
from ssdlab import safety
from ssdlab.care.blockio import all_zero
from ssdlab.errors import ExperimentError, InputError, RefusedError
from ssdlab.safety import uses
from ssdlab.system import System

WORK = safety.Work("the job", "writes")
WRITES = "[w]\nrw=write\nbs=64k\nsize=4m\nioengine=psync\n"
READS = "[r]\nrw=randread\nbs=4k\nsize=1m\nioengine=psync\n"


@pytest.fixture
def writes(tmp_path: Path) -> Path:
    """A job that writes 4 MiB."""
    path = tmp_path / "w.fio"
    path.write_text(WRITES)
    return path


@contextlib.contextmanager
def opened(path: Path, flags: int, then: str = "") -> Iterator[None]:
    """Another process that has the path open, as ``f``, and does something with it."""
    hold = f"import mmap, os, sys; f = os.open(sys.argv[1], int(sys.argv[2])); {then}"
    hold += "\nprint(1, flush=True); input()"
    command = [sys.executable, "-c", hold, str(path), str(flags)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"1\n"
        try:
            yield
        finally:
            other.kill()


def losetup(*arguments: object) -> str:
    """The device that losetup sets up."""
    command = ["losetup", "--find", "--show", *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def mounted_image(loop: Loop, tmp_path: Path) -> Iterator[Path]:
    """The backing file of a mounted loop device."""
    point = tmp_path / "point"
    point.mkdir()
    subprocess.run(["mkfs.ext4", "-q", str(loop.path)], check=True)
    subprocess.run(["mount", str(loop.path), str(point)], check=True)
    try:
        yield loop.backing
    finally:
        subprocess.run(["umount", str(point)], check=True)


# --- who uses it


@needs_fio()
@pytest.mark.root
@pytest.mark.parametrize("command", ["run", "test", "purge"])
def test_a_drive_that_another_program_writes_is_refused(
    loop: Loop, writes: Path, cli: Cli, command: str
) -> None:
    before = loop.backing.read_bytes()
    arguments = {
        "run": ("run", writes, "--on", loop.path),
        "test": ("test", loop.path, "-p", "queue-depth", "--quick"),
        "purge": ("purge", loop.path),
    }[command]
    with opened(loop.path, os.O_RDWR):
        outcome = cli(*arguments, "--destroy", loop.name)
    assert outcome.status == 3, outcome
    assert "is open for writing by python" in outcome.err
    assert loop.backing.read_bytes() == before


@pytest.mark.root
@pytest.mark.parametrize(("kind", "found"), [("SHARED", ["open"]), ("PRIVATE", [])])
def test_a_drive_that_another_program_maps_is_in_use_where_what_it_writes_reaches_it(
    loop: Loop, kind: str, found: list[str]
) -> None:
    then = f"m = mmap.mmap(f, 4096, mmap.MAP_{kind}); os.closerange(3, 99)"
    with opened(loop.path, os.O_RDWR, then):
        assert [one.kind for one in uses.of_device(System(), loop.name)] == found


@needs_fio()
@pytest.mark.root
@pytest.mark.parametrize("offset", [0, 8 * MIB])
def test_a_drive_behind_a_loop_device_is_refused(
    loop: Loop, writes: Path, cli: Cli, offset: int
) -> None:
    above = losetup("--offset", offset, loop.path)
    try:
        outcome = cli("run", writes, "--on", loop.path, "--destroy", loop.name)
        assert outcome.status == 3
        assert f"is behind the loop device {Path(above).name}" in outcome.err
        assert cli("purge", loop.path, "--destroy", loop.name).status == 3
    finally:
        subprocess.run(["losetup", "--detach", above], check=True)


@needs_fio()
@pytest.mark.root
def test_a_second_loop_device_on_one_image_is_refused(loop: Loop, writes: Path, cli: Cli) -> None:
    other = losetup(loop.backing)
    try:
        outcome = cli("run", writes, "--on", other, "--destroy", Path(other).name)
        assert outcome.status == 3
        assert f"is behind the loop device {loop.name}" in outcome.err
    finally:
        subprocess.run(["losetup", "--detach", other], check=True)


@needs_fio()
@pytest.mark.root
@pytest.mark.parametrize("command", ["run", "test", "purge"])
def test_the_backing_file_of_a_mounted_loop_device_is_refused(
    mounted_image: Path, loop: Loop, writes: Path, cli: Cli, command: str
) -> None:
    before = mounted_image.read_bytes()
    arguments = {
        "run": ("run", writes, "--on", mounted_image),
        "test": ("test", mounted_image, "-p", "queue-depth", "--quick"),
        "purge": ("purge", mounted_image),
    }[command]
    outcome = cli(*arguments, "--use-existing-file")
    assert outcome.status == 3, outcome
    assert f"is behind the loop device {loop.name}" in outcome.err
    assert mounted_image.read_bytes() == before


@needs_fio()
@pytest.mark.root
def test_an_active_swap_file_is_refused(tmp_path: Path, writes: Path, cli: Cli) -> None:
    swap = tmp_path / "swap"
    swap.write_bytes(bytes(8 * MIB))
    swap.chmod(0o600)
    subprocess.run(["mkswap", str(swap)], check=True, capture_output=True)
    if subprocess.run(["swapon", str(swap)], capture_output=True).returncode != 0:
        pytest.skip("this kernel grants no swap here")
    try:
        outcome = cli("run", writes, "--on", swap, "--use-existing-file")
        assert (outcome.status, "in use as swap" in outcome.err) == (3, True)
    finally:
        subprocess.run(["swapoff", str(swap)], check=True)


@needs_fio()
def test_a_file_that_another_program_writes_is_refused(
    tmp_path: Path, writes: Path, cli: Cli
) -> None:
    file = tmp_path / "database"
    file.write_bytes(b"data" * MIB)
    with opened(file, os.O_WRONLY):
        outcome = cli("run", writes, "--on", file, "--use-existing-file")
    assert outcome.status == 3
    assert "is open for writing by python" in outcome.err
    assert file.read_bytes() == b"data" * MIB


def test_a_file_open_for_writing_where_proc_shows_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(MIB))
    monkeypatch.setattr("ssdlab.safety.uses.openers", lambda _system, _key: [])
    with (
        opened(file, os.O_RDWR),
        pytest.raises(RefusedError, match="in the kernel or by a hidden program"),
    ):
        safety.hold_file(file).__enter__()
    with safety.hold_file(file):
        pass


@needs_fio()
def test_two_tests_cannot_run_on_one_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(8 * MIB))
    own = "is open for writing by another run of this program"
    with safety.hold_file(file), pytest.raises(RefusedError, match=own):
        safety.hold_file(file).__enter__()


def test_the_lock_alone_keeps_a_second_test_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(MIB))
    monkeypatch.setattr("ssdlab.safety.files.why_used", lambda _path: None)
    with (
        safety.hold_file(file),
        pytest.raises(RefusedError, match="locked by another program"),
    ):
        safety.hold_file(file).__enter__()


def test_no_lease_is_left_that_would_stall_fio(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(MIB))
    with safety.hold_file(file) as held:
        begin = time.monotonic()
        os.close(os.open(held.path, os.O_RDWR))
        assert time.monotonic() - begin < 1.0
        assert fcntl.fcntl(held.descriptor, fcntl.F_GETLEASE) == fcntl.F_UNLCK


def test_a_file_with_two_names_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(MIB))
    (tmp_path / "other").hardlink_to(file)
    with pytest.raises(RefusedError, match="has 2 names"):
        safety.hold_file(file).__enter__()


# --- reading needs no permission


@needs_fio()
def test_a_job_that_only_reads_takes_an_existing_file_unasked(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(2 * MIB))
    before = file.read_bytes()
    result = ssdlab.run(READS, on=file)
    assert result.document["jobs"][0]["read"]["total_ios"] == 256
    assert file.read_bytes() == before
    with pytest.raises(InputError, match=r"reads up to 4\.19 MB"):
        ssdlab.run(READS.replace("1m", "4m"), on=file)
    assert file.stat().st_size == 2 * MIB


@needs_fio()
def test_what_a_job_reads_of_a_new_file_was_written(tmp_path: Path) -> None:
    result = ssdlab.run(READS, on=tmp_path / "new")
    observed = result.ssdlab["surroundings"]["observed"]["file"]
    assert observed["before"]["unwritten_bytes"] == 0
    assert list(tmp_path.glob("new")) == []


# --- what was checked is what is written


@needs_fio()
@pytest.mark.root
def test_a_node_replaced_during_a_run_redirects_nothing(loop: Loop, tmp_path: Path) -> None:
    other = Loop(tmp_path / "other.img")
    info = loop.path.stat()
    node, kept = tmp_path / "node", other.path
    os.mknod(node, 0o600 | 0o060000, info.st_rdev)
    try:
        device = safety.inspect(node)
        with safety.claim(device, WORK, loop.name) as held:
            target = ssdlab.Fio(node, destroy=loop.name)
            node.unlink()
            os.mknod(node, 0o600 | 0o060000, kept.stat().st_rdev)
            with pytest.raises(RefusedError, match="was removed or replaced"):
                target.run_held(job(WRITES), ssdlab.Settings(), held)
            # And where a step is under way fio has the descriptor, not the name.
            os.pwrite(os.open(held.path, os.O_WRONLY), b"here", 0)
        os.sync()
        assert loop.backing.read_bytes()[:4] == b"here"
        assert other.backing.read_bytes().strip(b"\0") == b""
    finally:
        other.close()


def job(text: str) -> ssdlab.jobfile.JobText:
    """A job from its text."""
    return ssdlab.jobfile.read_job(text)


def test_a_copy_of_this_process_that_becomes_another_program_is_no_user(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with safety.make_file(file, MIB) as held:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:  # as between fork and exec, with all descriptors of its parent
            os.read(reading, 1)
            os._exit(0)
        try:
            assert Path(f"/proc/{child}/fd/{held.descriptor}").stat().st_ino == file.stat().st_ino
            held.check()
        finally:
            os.write(writing, b"x")
            os.waitpid(child, 0)
            os.close(reading)
            os.close(writing)


@needs_fio()
@pytest.mark.root
def test_a_device_that_comes_into_use_between_steps_stops_the_run(loop: Loop) -> None:
    with safety.claim(safety.inspect(loop.path), WORK, loop.name) as held:
        held.check()
        with (
            opened(loop.path, os.O_RDWR),
            pytest.raises(RefusedError, match="is open for writing by python"),
        ):
            held.check()
        held.check()


@needs_fio()
def test_a_file_replaced_during_a_run_is_neither_written_nor_removed(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with safety.make_file(file, 8 * MIB) as held:
        file.rename(tmp_path / "moved")
        file.write_bytes(b"mine" * 1000)
        with pytest.raises(RefusedError, match="was removed or replaced"):
            ssdlab.Fio(file).run_held(job(WRITES), ssdlab.Settings(), held)
    assert file.read_bytes() == b"mine" * 1000


@needs_fio()
@pytest.mark.root
def test_i_o_that_never_reaches_the_drive_stops_the_run(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = "[w]\nrw=write\nbs=1m\nsize=32m\nioengine=psync\ndirect=1\n"
    target = ssdlab.Fio(loop.path, destroy=loop.name)
    assert ssdlab.run(direct, on=target).document["jobs"][0]["error"] == 0
    monkeypatch.setattr(
        "ssdlab.fio.observe.Observer._disk",
        lambda _self: dict.fromkeys(("read_sectors", "write_sectors"), 77),
    )
    with pytest.raises(ExperimentError, match="its I/O never reached it"):
        ssdlab.run(direct, on=target)


@needs_fio()
def test_results_name_the_target_and_no_descriptor(tmp_path: Path) -> None:
    result = ssdlab.run(WRITES, on=tmp_path / "scratch")
    text = json.dumps(result.document)
    assert str(tmp_path / "scratch") in text
    assert "/proc/" not in text


# --- a drive that is rewritten


@pytest.mark.root
def test_what_another_program_writes_during_a_refresh_is_not_undone(
    loop: Loop, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(8 * MIB)
    with loop.path.open("r+b") as device:
        device.write(content)
    seen: list[int] = []

    def other_writes(view: memoryview) -> bool:
        """Between reading the fifth piece and writing it."""
        seen.append(len(view))
        if len(seen) == 5:
            with loop.path.open("r+b") as device:
                device.seek(4 * MIB)
                device.write(b"theirs")
        return all_zero(view)

    monkeypatch.setattr("ssdlab.care.refresh.all_zero", other_writes)
    outcome = cli("refresh", loop.path, "--rewrite", loop.name)
    assert outcome.status == 1, outcome
    assert "another program writes to it (at 4194304)" in outcome.err
    assert loop.path.read_bytes()[4 * MIB : 5 * MIB] == b"theirs" + content[4 * MIB + 6 : 5 * MIB]


# --- plans say what would be refused


@pytest.mark.root
@pytest.mark.parametrize("command", ["purge", "refresh"])
def test_a_dry_run_says_what_would_be_refused_and_why(loop: Loop, cli: Cli, command: str) -> None:
    assert "would be refused" not in cli(command, loop.path, "-n").out
    with opened(loop.path, os.O_RDWR):
        outcome = cli(command, loop.path, "-n", "--json", "-")
        assert outcome.status == 0
        assert "is open for writing by python" in json.loads(outcome.out)["refused"]
        assert "it would be refused" in outcome.err


@needs_fio()
@pytest.mark.root
def test_the_plan_of_a_job_says_what_would_be_refused_and_writes_nothing(
    loop: Loop, writes: Path, cli: Cli, tmp_path: Path
) -> None:
    outcome = cli("run", writes, "--on", loop.path, "--plan", "--json", "-")
    (planned,) = json.loads(outcome.out)
    assert outcome.status == 0
    assert f"add --destroy {loop.name}" in planned["refused"]
    assert planned["bytes_low"] == planned["bytes_high"] == 4 * MIB
    named = cli("run", writes, "--on", loop.path, "-n", "--destroy", loop.name, "--tbw", "1TB")
    assert "all data on it will be lost; the job writes up to 4.19 MB" in named.out
    assert "refused" not in named.out
    assert loop.backing.read_bytes().strip(b"\0") == b""
    (tmp_path / "there").touch()
    assert "--use-existing-file" in cli("run", writes, "--on", tmp_path / "there", "-n").out
    assert "refused" not in cli("run", writes, "--on", tmp_path / "new", "-n").out
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "data").exists()


@pytest.mark.root
@pytest.mark.parametrize("command", ["purge", "refresh"])
def test_a_dry_run_on_a_file_in_use_says_so(mounted_image: Path, cli: Cli, command: str) -> None:
    more = ["--use-existing-file"] if command == "purge" else []
    outcome = cli(command, mounted_image, "-n", *more)
    assert outcome.status == 0
    assert "it would be refused" in outcome.out


@needs_fio()
@pytest.mark.root
def test_refreshing_the_backing_file_of_a_mounted_loop_device_is_refused(
    mounted_image: Path, cli: Cli
) -> None:
    before = mounted_image.read_bytes()
    assert cli("refresh", mounted_image).status == 3
    assert mounted_image.read_bytes() == before


@pytest.mark.root
def test_a_dry_run_of_trim_says_what_would_be_refused(loop: Loop, tmp_path: Path, cli: Cli) -> None:
    point = tmp_path / "point"
    point.mkdir()
    subprocess.run(["mkfs.ext4", "-q", str(loop.path)], check=True)
    for arguments, refused in (([str(loop.path)], False), (["-t", "tmpfs", "none"], True)):
        subprocess.run(["mount", *arguments, str(point)], check=True)
        try:
            outcome = cli("trim", point, "-n")
            assert ("it would be refused" in outcome.out, outcome.status) == (refused, 0)
            assert (cli("trim", point).status != 0) == refused
        finally:
            subprocess.run(["umount", str(point)], check=True)
