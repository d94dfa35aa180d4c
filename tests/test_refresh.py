"""Rewriting keeps every byte, whatever ends it, and lets nobody write in between."""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import MIB, Cli, Loop
from ssdlab import safety
from ssdlab.care.extents import stretches_of
from ssdlab.care.livewrite import PAGE_BYTES, step_bytes, write_past_cache
from ssdlab.care.measure import Speed
from ssdlab.care.refresh import Refreshed, plan, refresh_device, refresh_file
from ssdlab.errors import ExperimentError, InputError, Interrupted, RefusedError
from ssdlab.freeze import Freezer
from ssdlab.progress import Progress
from ssdlab.safety import Work
from ssdlab.system import Swap, System


def run(*command: str) -> str:
    """An administrator's command that must work."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def digest(path: Path) -> str:
    """A hash of what is in a file or on a device, not of what the page cache remembers."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def direct(path: Path) -> bool:
    """Whether this file system knows direct I/O."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    return True


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """9 MiB and 77 bytes of data, with a hole of 4 MiB among them and a piece of zeros."""
    path = tmp_path / "data.bin"
    with path.open("wb") as file:
        file.write(os.urandom(3 * MIB))
        file.seek(7 * MIB)
        file.write(os.urandom(5 * MIB) + bytes(MIB) + os.urandom(77))
    os.sync()
    if not direct(path):
        pytest.skip("this file system knows no direct I/O")
    return path


def test_a_file_keeps_its_bytes_its_holes_and_its_times(file: Path) -> None:
    os.utime(file, ns=(10**18, 10**18 + 5))
    before, allocated = digest(file), file.stat().st_blocks
    done = refresh_file(file)
    assert digest(file) == before
    assert file.stat().st_blocks == allocated
    assert file.stat().st_mtime_ns == 10**18 + 5
    assert done.written_bytes == 8 * MIB + 77
    assert done.zero_bytes == MIB
    assert done.plan.hole_bytes == 4 * MIB
    assert done.after is not None
    assert done.gain == done.after.best / done.before.best


def test_what_is_written_is_really_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[int, int]] = []
    real = os.pwritev

    def watched(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        written.append((offset, sum(map(len, buffers))))
        return real(descriptor, buffers, offset)

    monkeypatch.setattr(os, "pwritev", watched)
    refresh_file(file)
    covered = set()
    for offset, length in written:
        covered |= set(range(offset // 4096, -(-(offset + length) // 4096)))
    holes = set(range(3 * 256, 7 * 256)) | set(range(12 * 256, 13 * 256))
    assert covered == set(range(13 * 256 + 1)) - holes


def test_stretches_of_data_leave_out_the_holes(file: Path) -> None:
    with file.open("rb") as open_file:
        stretches = stretches_of(open_file.fileno(), file.stat().st_size)
    assert stretches == [(0, 3 * MIB), (7 * MIB, 13 * MIB + 77)]


def test_a_dry_run_writes_nothing_and_says_how_much_it_would(file: Path, cli: Cli) -> None:
    before = file.stat().st_ctime_ns
    outcome = cli("refresh", file, "--dry-run", "--json", "-")
    assert outcome.status == 0, outcome.err
    assert json.loads(outcome.out)["data_bytes"] == 9 * MIB + 77
    assert "9.44 MB will be written" in outcome.err
    assert "4.19 MB are holes" in outcome.err
    assert file.stat().st_ctime_ns == before


def test_the_command_says_what_it_did(file: Path, cli: Cli, tmp_path: Path) -> None:
    outcome = cli("refresh", file, "--json", tmp_path / "out.json")
    assert outcome.status == 0, outcome.err
    assert "8.39 MB rewritten" in outcome.out
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["verdict"] in ("faster", "same", "slower", "not-decided")
    assert len(document["before_bytes_per_s"]) == 3


def test_two_passes_of_each_state_show_less_than_three(file: Path) -> None:
    def verdict(before: Sequence[float], after: Sequence[float]) -> str:
        place = replace(plan(file), place=replace(plan(file).place, disk=None))
        speeds = Speed(tuple(before), MIB), Speed(tuple(after), MIB)
        return Refreshed(place, *speeds, written_bytes=MIB).verdict

    assert verdict((100, 95, 95), (108, 108, 108)) == "faster"
    assert verdict((100, 95), (108, 108)) == "same"
    assert verdict((100, 95), (112, 112)) == "faster"


def test_a_refresh_is_written_in_every_form(file: Path, cli: Cli, tmp_path: Path) -> None:
    for arguments, name in (((), "speed.csv"), (("--dry-run",), "what-would-be-written.csv")):
        page, book, folder = tmp_path / "a.html", tmp_path / "a.xlsx", tmp_path / "tables"
        forms = ("--report", page, "--xlsx", book, "--csv", folder, *arguments)
        outcome = cli("refresh", file, "--quiet", *forms)
        assert (outcome.status, outcome.out) == (0, ""), outcome.err
        assert (folder / name).read_text().count("\n") == 3
        assert f"efresh of {file}" in page.read_text()
        assert book.stat().st_size > 0


OPENS = "import os, sys; os.open(sys.argv[1], int(sys.argv[2])); print(1, flush=True); input()"


@contextlib.contextmanager
def held_by(program: str, *arguments: str) -> Iterator[int]:
    """The number of a process in which ``program`` has said that it is ready."""
    command = [sys.executable, "-c", program, *arguments]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        yield holder.pid
    finally:
        holder.kill()
        holder.communicate()


@pytest.mark.parametrize("flags", [os.O_RDWR, os.O_WRONLY, os.O_RDONLY])
def test_a_file_that_another_program_has_open_is_refused_and_the_program_named(
    file: Path, flags: int
) -> None:
    with (
        held_by(OPENS, str(file), str(flags)) as pid,
        pytest.raises(RefusedError, match=rf"is open in .*process {pid}"),
    ):
        refresh_file(file)


def test_a_file_that_another_program_maps_for_writing_is_refused(file: Path) -> None:
    hold = (
        "import mmap, os, sys; f = os.open(sys.argv[1], os.O_RDWR); m = mmap.mmap(f, 4096); "
        "os.close(f); print(1, flush=True); input()"
    )
    with (
        held_by(hold, str(file)) as number,
        pytest.raises(RefusedError, match=rf"process {number}"),
    ):
        refresh_file(file)


@pytest.mark.root
def test_the_file_below_a_loop_device_is_refused(loop: Loop) -> None:
    loop.backing.write_bytes(os.urandom(MIB))
    with pytest.raises(RefusedError, match="kernel"):
        refresh_file(loop.backing)


def test_a_program_that_opens_the_file_meanwhile_waits_and_then_gets_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its write must come after the last of ours, and stay."""
    order: list[str] = []
    opener: list[subprocess.Popen[bytes]] = []
    real = os.pwritev
    write = (
        "import os, sys; f = os.open(sys.argv[1], os.O_WRONLY); "
        "os.pwrite(f, b'theirs', 0); os.close(f)"
    )

    def slow(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        if not opener:
            opener.append(subprocess.Popen([sys.executable, "-c", write, str(file)]))
            time.sleep(1.0)  # it is waiting by now
            order.append("waits" if opener[0].poll() is None else "did not wait")
        return real(descriptor, buffers, offset)

    monkeypatch.setattr(os, "pwritev", slow)
    with pytest.raises(ExperimentError, match="another program wants the file"):
        refresh_file(file)
    assert order == ["waits"]
    assert opener[0].wait(20) == 0
    assert file.read_bytes()[:6] == b"theirs"


def written_by(pid: int) -> int:
    """What a process has had written to a drive so far; 0 where it is gone."""
    try:
        text = Path(f"/proc/{pid}/io").read_text()
    except OSError:
        return 0
    return int(text.split("\nwrite_bytes: ")[1].split()[0])


def test_killed_in_the_midst_the_data_are_what_they_were(file: Path) -> None:
    with file.open("wb") as big:
        for _ in range(48):
            big.write(os.urandom(4 * MIB))
    before = digest(file)
    script = "import sys; from ssdlab.cli import run_command; run_command(['refresh', sys.argv[1]])"
    killed_while_writing = False
    for wait_s in (0.02, 0.06, 0.12, 0.2, 0.3):
        child = subprocess.Popen([sys.executable, "-c", script, str(file)], stderr=subprocess.PIPE)
        while child.poll() is None and written_by(child.pid) < 4 * MIB:
            time.sleep(0.005)
        time.sleep(wait_s)
        killed_while_writing |= 4 * MIB <= written_by(child.pid) < 190 * MIB
        child.kill()
        child.communicate()
        assert digest(file) == before
    assert killed_while_writing


def test_stopped_by_the_callback_the_data_are_what_they_were(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssdlab.progress.TELL_EVERY_S", 0.0)
    before = digest(file)
    seen: list[str] = []

    def stop(news: Progress) -> bool:
        seen.append(news.text)
        return "rewriting" not in news.text

    with pytest.raises(
        Interrupted, match="its data are what they were, and the same command begins anew"
    ):
        refresh_file(file, progress=stop)
    assert "rewriting" in seen[-1]
    assert digest(file) == before


def test_an_option_that_would_do_nothing_is_refused(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x" * MIB)
    said = cli("refresh", file, "--rewrite", "S1", "--slice", "9", "--dry-run")
    assert said.status == 2
    assert said.err == f"ssdlab: {file}: is a plain file; --rewrite and --slice are for drives\n"


def test_what_cannot_be_refreshed_is_one_sentence(tmp_path: Path, cli: Cli) -> None:
    empty, hole = tmp_path / "empty", tmp_path / "hole"
    empty.touch()
    with hole.open("wb") as file:
        file.truncate(MIB)
    for path, words in ((empty, "is empty"), (hole, "is all holes"), (tmp_path, "is a folder")):
        outcome = cli("refresh", path)
        assert outcome.status == 2
        assert words in outcome.err
    gone = cli("refresh", tmp_path / "gone")
    assert (gone.status, "there is no such file" in gone.err) == (2, True)
    if Path("/dev/shm").is_dir():
        memory = Path(f"/dev/shm/ssdlab-test-{os.getpid()}")
        memory.write_bytes(b"x" * 4096)
        try:
            with pytest.raises(InputError, match="is on tmpfs, below which no drive"):
                plan(memory)
        finally:
            memory.unlink()


# --- devices


@pytest.fixture
def mounted(loop: Loop, tmp_path: Path) -> Iterator[Path]:
    """The mount point of an ext4 on a loop device, with data on it."""
    point = tmp_path / "mount point"
    point.mkdir()
    run("mkfs.ext4", "-q", str(loop.path))
    run("mount", str(loop.path), str(point))
    (point / "a").write_bytes(os.urandom(20 * MIB))
    os.sync()
    try:
        yield point
    finally:
        run("umount", str(point))


def thawed(point: Path) -> bool:
    """Whether the file system takes writes, which a frozen one never answers."""
    script = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text('x')"
    child = subprocess.Popen([sys.executable, "-c", script, str(point / "probe")])
    try:
        return child.wait(10) == 0
    except subprocess.TimeoutExpired:
        run("fsfreeze", "-u", str(point))
        child.wait(10)
        return False


@pytest.mark.root
def test_a_device_that_nobody_named_is_refused_and_the_name_told(loop: Loop, cli: Cli) -> None:
    loop.path.write_bytes(os.urandom(4 * MIB))
    before = digest(loop.path)
    for arguments, words in (
        ((), f"--rewrite {loop.name}"),
        (("--rewrite", "S3RIAL"), 'names "S3RIAL"'),
    ):
        outcome = cli("refresh", loop.path, *arguments)
        assert outcome.status == 3
        assert words in outcome.err
    other = cli("refresh", loop.path, "--rewrite", loop.name, "--unshare")
    assert (other.status, "--unshare is for plain files" in other.err) == (2, True)
    assert digest(loop.path) == before


@pytest.mark.root
def test_a_file_system_that_is_not_mounted_keeps_its_bytes(loop: Loop, cli: Cli) -> None:
    run("mkfs.ext4", "-q", str(loop.path))
    before = digest(loop.path)
    outcome = cli("refresh", loop.path, "--rewrite", loop.name, "--json", "-")
    assert outcome.status == 0, outcome.err
    assert digest(loop.path) == before
    found = json.loads(outcome.out)
    assert found["written_bytes"] > 0
    assert found["written_bytes"] + found["zero_bytes"] == 64 * MIB
    assert f"{loop.path} (loop" in outcome.err
    assert "every byte as it was read" in outcome.err


@pytest.mark.root
def test_a_mounted_device_is_refused_unless_freezing_is_allowed(
    loop: Loop, mounted: Path, cli: Cli
) -> None:
    outcome = cli("refresh", loop.path, "--rewrite", loop.name)
    assert outcome.status == 3
    assert "is mounted at" in outcome.err
    assert "--freeze" in outcome.err


@pytest.mark.root
def test_a_live_file_system_goes_on_and_keeps_what_is_written_meanwhile(
    loop: Loop, mounted: Path
) -> None:
    before = digest(mounted / "a")
    stop = threading.Event()
    written: list[bytes] = []
    logged: list[bytes] = []

    def work() -> None:
        while not stop.is_set():
            data = os.urandom(300_000)
            (mounted / f"b{len(written)}").write_bytes(data)
            with (mounted / "log").open("ab") as log:
                log.write(data[:1000])
                os.fsync(log.fileno())
            written.append(data)
            logged.append(data[:1000])
            if len(written) > 40:  # the device is small
                (mounted / f"b{len(written) - 40}").unlink()
                written[-40] = b""

    writer = threading.Thread(target=work)
    writer.start()
    try:
        done = refresh_device(loop.path, rewrite=loop.name, freeze=True, slice_s=0.01)
    finally:
        stop.set()
        writer.join(20)
    assert not writer.is_alive()
    assert done.slices > 3
    # Most of it is data of files; the file system's own blocks are what it has in memory.
    assert done.written_bytes > 10 * done.cached_bytes
    assert 0 < done.frozen_longest_s < 5
    assert written
    run("umount", str(mounted))
    try:
        checked = subprocess.run(["e2fsck", "-fn", str(loop.path)], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout
    finally:
        run("mount", str(loop.path), str(mounted))
    assert digest(mounted / "a") == before
    assert (mounted / "log").read_bytes() == b"".join(logged)
    for number, data in enumerate(written):
        if data:
            assert (mounted / f"b{number}").read_bytes() == data


@pytest.mark.root
@pytest.mark.alone
@pytest.mark.parametrize("how", ["kill -9", "Ctrl-C", "stop signal"])
def test_whatever_ends_it_the_file_system_is_thawed(
    loop: Loop, mounted: Path, how: str, tmp_path: Path
) -> None:
    """The child says when it is frozen, and stays so for longer than it may."""
    script = (
        "import sys, time; from ssdlab.freeze import Freezer\n"
        "with Freezer(sys.argv[1], 1.5) as freezer:\n"
        "    with freezer.frozen():\n"
        "        print(1, flush=True); time.sleep(60)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(mounted)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"1\n"
    begun = time.monotonic()
    sign = {"kill -9": signal.SIGKILL, "Ctrl-C": signal.SIGINT, "stop signal": signal.SIGSTOP}[how]
    child.send_signal(sign)
    assert thawed(mounted)
    child.wait(10)
    errors = child.communicate()[1].decode()
    if how == "stop signal":
        assert time.monotonic() - begun > 1.0
        assert "stayed frozen for more than 1.5 s" in errors
    else:
        assert time.monotonic() - begun < 1.4


@pytest.mark.root
def test_an_error_inside_thaws(mounted: Path) -> None:
    with Freezer(str(mounted), 5.0) as freezer:
        with pytest.raises(ZeroDivisionError), freezer.frozen():
            raise ZeroDivisionError
        assert thawed(mounted)
        with freezer.frozen():
            pass
    assert thawed(mounted)


@pytest.mark.root
def test_without_its_watch_it_thaws_and_says_so(mounted: Path) -> None:
    with Freezer(str(mounted), 5.0) as freezer:
        with pytest.raises(ExperimentError, match="keeps watch"), freezer.frozen():
            freezer._watch.kill()
            freezer._watch.wait()
        assert thawed(mounted)


@pytest.mark.root
def test_a_file_system_frozen_by_another_is_left_frozen(mounted: Path) -> None:
    run("fsfreeze", "-f", str(mounted))
    try:
        with (
            Freezer(str(mounted), 5.0) as freezer,
            pytest.raises(ExperimentError, match="frozen already"),
            freezer.frozen(),
        ):
            pass
    finally:
        run("fsfreeze", "-u", str(mounted))  # fails where it is not frozen any more


@pytest.mark.root
def test_a_drive_with_partitions_is_refused_and_a_partition_is_rewritten(
    loop: Loop, tmp_path: Path, cli: Cli
) -> None:
    del loop  # this one needs partitions; the other skips the test where there is none at all
    image = tmp_path / "disk.img"
    with image.open("wb") as file:
        file.truncate(32 * MIB)
    path = Path(run("losetup", "--find", "--show", "--partscan", str(image)).strip())
    part = Path(f"{path}p1")
    try:
        # Told rather than found: not every kernel reads partition tables.
        told = subprocess.run(["addpart", str(path), "1", "2048", "20480"], capture_output=True)
        if told.returncode != 0 or not part.exists():
            pytest.skip("this kernel has no partitions on loop devices")
        part.write_bytes(os.urandom(MIB))
        refused = cli("refresh", path, "--rewrite", path.name)
        assert refused.status == 3
        assert f"name one of them, such as {part}" in refused.err
        assert cli("purge", path, "--destroy", path.name).status == 3
        assert cli("purge", part, "--destroy", path.name).status == 3
        before = digest(path)
        outcome = cli("refresh", part, "--rewrite", path.name)
        assert outcome.status == 0, outcome.err
        assert digest(path) == before
    finally:
        run("losetup", "--detach", str(path))


@pytest.mark.root
def test_a_device_in_use_or_open_for_writing_is_refused(loop: Loop) -> None:
    for flags, words in ((os.O_EXCL, "is in use"), (os.O_RDWR, "open for writing by")):
        with (
            held_by(OPENS, str(loop.path), str(flags)),
            pytest.raises(RefusedError, match=words),
        ):
            refresh_device(loop.path, rewrite=loop.name)


@pytest.mark.root
def test_a_swap_file_on_it_is_refused(
    loop: Loop, mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap = Swap(str(mounted / "a"), "file", 4096, 0)
    monkeypatch.setattr(System, "swaps", lambda _self: [swap])
    with pytest.raises(RefusedError, match="holds the swap file"):
        refresh_device(loop.path, rewrite=loop.name, freeze=True)


@pytest.mark.root
def test_a_file_system_that_may_write_while_frozen_is_refused(
    loop: Loop, mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssdlab.safety.rewrite.STILL_WHEN_FROZEN", frozenset({"xfs"}))
    with pytest.raises(RefusedError, match="as ext4, which may write while it is frozen"):
        refresh_device(loop.path, rewrite=loop.name, freeze=True)


@pytest.mark.root
def test_what_is_cached_of_a_live_device_is_left_alone_and_the_rest_is_written(loop: Loop) -> None:
    """A file system may have newer blocks in memory than there are on the device."""
    size = 64 * PAGE_BYTES
    holder = os.open(loop.path, os.O_RDWR)
    descriptor = os.open(loop.path, os.O_RDWR | os.O_DIRECT)
    try:
        os.posix_fadvise(holder, 0, 0, os.POSIX_FADV_RANDOM)
        os.posix_fadvise(holder, 0, 0, os.POSIX_FADV_DONTNEED)
        for page in (5, 17, 63):
            os.pread(holder, PAGE_BYTES, page * PAGE_BYTES)
        view = memoryview(mmap.mmap(-1, size))
        view[:] = os.urandom(size)
        left = write_past_cache(descriptor, view, 0, step_bytes(loop.path))
        assert left == 3 * PAGE_BYTES
        data = os.pread(holder, size, 0)
    except InputError as error:
        pytest.skip(str(error))
    finally:
        os.close(descriptor)
        os.close(holder)
    for page in range(64):
        part = slice(page * PAGE_BYTES, (page + 1) * PAGE_BYTES)
        assert data[part] == (bytes(PAGE_BYTES) if page in (5, 17, 63) else bytes(view[part])), page


@pytest.mark.root
def test_behind_the_door_nothing_else_gets_in(loop: Loop) -> None:
    work = Work("the test", "writes")
    device = safety.inspect(loop.path)
    with (
        safety.claim_for_rewrite(device, work, loop.name, freeze=False, limit_s=5) as leave,
        leave.slice() as descriptor,
    ):
        assert leave.mounted_at is None
        assert os.fstat(descriptor).st_rdev == loop.path.stat().st_rdev
        with pytest.raises(OSError, match="busy"):
            os.open(loop.path, os.O_RDWR | os.O_EXCL)
