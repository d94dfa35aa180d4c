"""Nothing reaches a block device that holds or does something, or that nobody named."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Loop, Outcome, needs_fio
from ssdlab import safety
from ssdlab.errors import InputError, RefusedError
from ssdlab.safety import device as claiming

pytestmark = pytest.mark.root

WRITES = safety.Work("the job", "writes up to 134.2 MB", 128 << 20)
WRITE_JOB = "[write]\nrw=write\nbs=1m\nsize=8m\nioengine=psync\n"


def claim(loop: Loop, destroy: str | None) -> str:
    """The warning of a claim that is granted; the refusal otherwise."""
    with safety.claim(safety.inspect(loop.path), WRITES, destroy) as held:
        return held.sentence


def run(*command: str) -> None:
    """An administrator's command that must work."""
    subprocess.run(command, check=True, capture_output=True)


def test_a_blank_device_named_by_its_kernel_name_or_backing_file_is_granted(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentence = claim(loop, loop.name)
    assert "writes up to 134.2 MB (2 drive writes)" in sentence
    assert "endurance is unknown" in sentence
    assert claim(loop, str(loop.backing)) == sentence
    monkeypatch.chdir(loop.backing.parent)
    assert claim(loop, loop.backing.name) == sentence
    monkeypatch.chdir("/")
    with pytest.raises(RefusedError, match="but this drive is"):
        claim(loop, loop.backing.name)


def test_a_device_that_nobody_named_is_refused_and_the_name_is_told(loop: Loop) -> None:
    with pytest.raises(RefusedError, match=f"--destroy {loop.name}"):
        claim(loop, None)


def test_a_wrong_serial_is_refused(loop: Loop) -> None:
    with pytest.raises(RefusedError, match='names "S3RIAL", but this drive is'):
        claim(loop, "S3RIAL")


def test_a_real_serial_is_the_only_name_where_there_is_one(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "serial_of", lambda _name: "S3Z8NB0K")
    with pytest.raises(RefusedError):
        claim(loop, loop.name)
    assert "S3Z8NB0K" in claim(loop, "S3Z8NB0K")


def test_a_drive_without_any_name_is_refused(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claiming, "_names", lambda _name: ())
    with pytest.raises(RefusedError, match="reports no serial"):
        claim(loop, "")


def test_a_device_with_a_file_system_is_refused(loop: Loop) -> None:
    run("mkfs.ext4", "-q", str(loop.path))
    with pytest.raises(RefusedError, match="ext4"):
        claim(loop, loop.name)


def test_a_mounted_device_is_refused_and_the_mount_point_is_told(
    loop: Loop, tmp_path: Path
) -> None:
    point = tmp_path / "mount point"
    point.mkdir()
    run("mkfs.ext4", "-q", str(loop.path))
    run("mount", str(loop.path), str(point))
    try:
        with pytest.raises(RefusedError, match=r"is mounted at .*/mount point"):
            claim(loop, loop.name)
    finally:
        run("umount", str(point))


def test_a_device_with_a_partition_table_is_refused(loop: Loop) -> None:
    # One MBR entry: type 0x83, 2048 sectors from sector 2048.
    entry = bytes([0, 0, 0, 0, 0x83, 0, 0, 0]) + (2048).to_bytes(4, "little") * 2
    with loop.path.open("r+b") as device:
        device.write(bytes(446) + entry + bytes(48) + b"\x55\xaa")
    with pytest.raises(RefusedError, match=r"dos|partition table"):
        claim(loop, loop.name)


def test_a_device_in_use_as_swap_is_refused(loop: Loop) -> None:
    run("mkswap", str(loop.path))
    if subprocess.run(["swapon", str(loop.path)], capture_output=True).returncode != 0:
        pytest.skip("this kernel grants no swap here")
    try:
        with pytest.raises(RefusedError, match="in use as swap"):
            claim(loop, loop.name)
    finally:
        run("swapoff", str(loop.path))


def test_a_device_below_another_device_is_refused(loop: Loop) -> None:
    name = f"ssdlab-test-{loop.name}"
    table = f"0 2048 linear {loop.path} 0"
    if shutil.which("dmsetup") is None:
        pytest.skip("dmsetup is not installed")
    made = subprocess.run(["dmsetup", "create", name, "--table", table], capture_output=True)
    if made.returncode != 0:
        pytest.skip("this kernel has no device mapper")
    try:
        with pytest.raises(RefusedError, match="in use by dm-"):
            claim(loop, loop.name)
    finally:
        run("dmsetup", "remove", name)


def test_a_device_that_another_program_claimed_is_refused(loop: Loop) -> None:
    hold = (
        "import os, sys, time; os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL); "
        "print(1, flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", hold, str(loop.path)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"1\n"
        with pytest.raises(RefusedError, match="is in use"):
            claim(loop, loop.name)
    finally:
        holder.kill()
        holder.communicate()


def test_nothing_can_be_mounted_while_a_claim_is_held(loop: Loop, tmp_path: Path) -> None:
    image, point = tmp_path / "image", tmp_path / "point"
    point.mkdir()
    image.write_bytes(bytes(32 << 20))
    run("mkfs.ext4", "-q", "-F", str(image))
    mount = ["mount", "-t", "ext4", str(loop.path), str(point)]
    with safety.claim(safety.inspect(loop.path), WRITES, loop.name):
        run("dd", f"if={image}", f"of={loop.path}", "bs=1M", "conv=fsync")
        assert subprocess.run(mount, capture_output=True).returncode != 0
    run(*mount)
    run("umount", str(point))


def test_a_read_only_device_is_wrong_input(loop: Loop) -> None:
    run("blockdev", "--setro", str(loop.path))
    try:
        with pytest.raises(InputError, match="read-only"):
            claim(loop, loop.name)
    finally:
        run("blockdev", "--setrw", str(loop.path))  # it would outlive the loop


def test_a_device_without_permission_is_wrong_input(loop: Loop) -> None:
    device = safety.inspect(loop.path)
    os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        with pytest.raises(InputError, match="no permission to open it; run as root") as told:
            safety.claim(device, WRITES, loop.name).__enter__()
        with pytest.raises(InputError, match="no permission"):
            safety.look(device).__enter__()
    finally:
        os.seteuid(0)
    assert told.value.exit_status == 2


def test_the_disk_of_the_root_file_system_is_refused() -> None:
    source = subprocess.run(["findmnt", "-no", "SOURCE", "/"], capture_output=True, text=True)
    root = Path(source.stdout.strip())
    if not root.is_block_device():
        pytest.skip("the root file system is on no block device")
    with pytest.raises(RefusedError, match=r"is mounted at|is a partition"):
        safety.claim(safety.inspect(root), WRITES, root.name).__enter__()


@needs_fio()
def test_a_refused_run_leaves_the_device_as_it_was(
    loop: Loop, tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    run("mkfs.ext4", "-q", str(loop.path))
    before = loop.backing.read_bytes()
    job = tmp_path / "job.fio"
    job.write_text(WRITE_JOB)
    outcome = cli("run", job, "--on", loop.path, "--destroy", loop.name)
    assert outcome.status == 3
    assert "ext4" in outcome.err
    assert loop.backing.read_bytes() == before
    assert not list((tmp_path / "data").rglob("manifest.json"))


@needs_fio()
def test_a_named_blank_device_is_written_and_the_loss_announced(
    loop: Loop, tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    job = tmp_path / "job.fio"
    job.write_text(WRITE_JOB)
    outcome = cli("run", job, "--on", loop.path, "--destroy", loop.name)
    assert outcome.status == 0, outcome.err
    assert "all data on it will be lost; the job writes up to 8.39 MB" in outcome.err
    subprocess.run(["sync"], check=True)
    time.sleep(0.1)
    assert loop.backing.read_bytes()[: 8 << 20].count(0) < (8 << 20) // 2


@needs_fio()
def test_a_job_that_only_reads_needs_no_leave_to_destroy(
    loop: Loop, tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[read]\nrw=randread\nbs=4k\nsize=8m\nioengine=psync\n")
    run("mkfs.ext4", "-q", str(loop.path))
    outcome = cli("run", job, "--on", loop.path)
    assert outcome.status == 0, outcome.err
