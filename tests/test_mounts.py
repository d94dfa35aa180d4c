"""What is mounted where, under any name, and how much room it has: one reader, one meaning."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import MIB, Cli, Loop, Outcome
from health_samples import nvme
from recorded import Recorded
from ssdlab import units
from ssdlab.audits import audit_path
from ssdlab.care.trim import way_down
from ssdlab.system import FileSystemSpace, Mount, System, holding, mounts, plain

ODD = os.fsdecode(b"m\xff")
"""A name that is not UTF-8."""


def read(tmp_path: Path, *lines: bytes) -> list[Mount]:
    table = tmp_path / "mountinfo"
    table.write_bytes(b"\n".join(lines) + b"\n")
    return mounts(table)


def test_a_mount_point_may_be_any_bytes_and_only_blanks_part_fields(tmp_path: Path) -> None:
    names = [b"/m\xff", b"/a\\040b\\011c\\134d", "/\u2028\u00a0\x85".encode(), b"/\x0c\x1c\x0b"]
    found = read(tmp_path, *(b"20 1 8:1 / %s rw - ext4 /dev/sda1 rw" % one for one in names))
    points = [os.fsencode(one.point) for one in found]
    assert points == [b"/m\xff", b"/a b\tc\\d", names[2], names[3]]


def test_a_line_may_have_optional_fields_an_empty_source_or_be_cut(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        b"20 1 8:1 / / rw,relatime shared:1 master:2 - ext4 /dev/sda1 rw,discard",
        b"21 20 0:5 / /proc rw,nosuid - proc  rw",
        b"22 20 8:2 / /cut rw",
        b"",
    )
    assert found == [
        Mount("/", "ext4", "/dev/sda1", "8:1", ("rw", "relatime", "discard")),
        Mount("/proc", "proc", "", "0:5", ("rw", "nosuid")),
    ]
    assert mounts(tmp_path / "missing") == []


def test_the_longest_and_last_mount_holds_a_path() -> None:
    table = [Mount(p, k, "", "", ()) for p, k in (("/", "a"), ("/x", "b"), ("/x", "c"))]
    kinds = [holding(table, path) for path in ("/x", "/x/y", "/xy", "/")]
    assert [one.kind if one else "" for one in kinds] == ["c", "c", "a", "a"]
    assert holding(table[1:], "/y") is None


def test_only_octal_escapes_are_undone() -> None:
    assert plain(rb"/a\040b\777\9") == "/a b\\777\\9"


def test_free_space_names_both_kinds() -> None:
    assert FileSystemSpace(100 * 10**6, 50 * 10**6, 45 * 10**6).sentence == (
        "45 MB free for users, 50 MB in free blocks, of 100 MB"
    )


# Names that are not UTF-8, in recorded systems


@pytest.fixture
def odd(tmp_path: Path) -> Recorded:
    """ext4 on a partition, mounted at a name that is not UTF-8, with swap and fstab there."""
    system = Recorded(tmp_path / "system")
    system.nvme()
    system.partition("nvme0n1", "nvme0n1p1")
    table = system.root / "proc/self/mountinfo"
    table.write_bytes(b"20 1 259:2 / /m\xff\\040x rw,relatime - ext4 /dev/nvme0n1p1 rw\n")
    system.timer()
    return system


def test_a_recorded_mount_point_that_is_not_utf_8_is_audited(cli: Cli, odd: Recorded) -> None:
    scene, findings = audit_path(f"/{ODD} x/file", System(odd.root))
    assert scene.mount is not None
    assert os.fsencode(scene.mount.point) == b"/m\xff x"
    assert [one.name for one in scene.drives] == ["nvme0n1"]
    assert {one.where for one in findings if one.check == "mount-options"} == {scene.mount.point}
    outcome = cli("audit", f"/{ODD} x", "--root", odd.root, "--json", "-")
    assert outcome.status == 0, outcome.err
    assert json.loads(outcome.out)["mount"]["point"] == scene.mount.point


def test_fstab_and_swaps_are_read_with_their_escapes(odd: Recorded) -> None:
    fstab = odd.root / "etc/fstab"
    swaps = odd.root / "proc/swaps"
    swaps.write_bytes(swaps.read_bytes() + b"/m\xff\\040x/swap\t \tfile\t\t8388604\t\t4096\t\t-2\n")
    for point, status in ((rb"/m%b\040x" % b"\xff", "ok"), (b"/other", "advice")):
        fstab.write_bytes(b"# a comment\nUUID=1 %s ext4 defaults 0 2\n" % point)
        _, findings = audit_path(f"/{ODD} x", System(odd.root))
        told = {one.check: one for one in findings}
        assert told["trim-used"].status == status, told["trim-used"]
        assert told["swap"].what == f"swap /{ODD} x/swap is on it and in use"


def test_the_evidence_for_trim_is_how_it_is_mounted(odd: Recorded) -> None:
    _, findings = audit_path(f"/{ODD} x", System(odd.root))
    (used,) = [one for one in findings if one.check == "trim-used"]
    assert [one.file for one in used.evidence] == ["/proc/self/mountinfo"]


# On a real file system


def formatted(loop: Loop) -> None:
    subprocess.run(["mkfs.ext4", "-q", "-E", "nodiscard", str(loop.path)], check=True)


@pytest.fixture
def inside(loop: Loop, tmp_path: Path) -> Callable[..., Outcome]:
    """Runs ssdlab where the loop device is mounted at a name that is not UTF-8.

    The mount is in a namespace of its own, so that no other process sees it.
    """
    if shutil.which("unshare") is None:
        pytest.skip("a mount that others do not see needs unshare")
    formatted(loop)
    point = tmp_path / ODD
    point.mkdir()
    mount = 'mount "$1" "$2" && cp "$3" "$2" && shift 3 && exec "$@"'
    document = tmp_path / "drive.json"
    document.write_text(json.dumps(nvme()))
    start = ["unshare", "--mount", "sh", "-c", mount, "sh", loop.path, point, document]

    def run(*arguments: object) -> Outcome:
        command = [*start, sys.executable, "-m", "ssdlab", *arguments]
        done = subprocess.run([os.fsencode(str(one)) for one in command], capture_output=True)
        out, err = (text.decode("utf-8") for text in (done.stdout, done.stderr))
        assert "Traceback" not in out + err, err
        return Outcome(done.returncode, out, err)

    return run


@pytest.mark.root
def test_a_mount_point_that_is_not_utf_8_is_no_obstacle(
    inside: Callable[..., Outcome], loop: Loop, tmp_path: Path
) -> None:
    point = tmp_path / ODD
    audited = inside("audit", point)
    assert audited.status == 0, audited.err
    assert f"{loop.name} (loop on {loop.backing})" in audited.out
    assert "/m\\udcff" in audited.out
    trimmed = inside("trim", point, "--json", "-")
    assert trimmed.status == 0, trimmed.err
    assert json.loads(trimmed.out)["mount"]["point"] == str(point)
    healthy = inside("health", point / "drive.json")
    assert healthy.status == 0, healthy.err
    assert "Example NVMe 1TB: good" in healthy.out
    assert inside("health", point / "other.json").status == 2


@pytest.mark.root
def test_the_file_below_a_loop_device_may_have_any_name(loop: Loop, tmp_path: Path) -> None:
    assert System().backing_file(loop.name) == str(loop.backing)
    other = Loop(tmp_path / f"{ODD}\u2028 ", MIB)
    try:
        assert System().backing_file(other.name) == str(other.backing)
        assert System().path(f"sys/class/block/{other.name}/loop/backing_file") == (
            str(other.backing)
        )
        assert way_down(Mount("/", "ext4", str(other.path), "", ()))[0].name == other.name
    finally:
        other.close()


@pytest.fixture
def mounted(loop: Loop, tmp_path: Path) -> Iterator[Path]:
    """An ext4 of 64 MiB with its usual 5 % of reserved blocks, 20 MiB of it full."""
    point = tmp_path / "point"
    point.mkdir()
    formatted(loop)
    subprocess.run(["mount", str(loop.path), str(point)], check=True)
    try:
        (point / "file").write_bytes(os.urandom(20 * MIB))
        subprocess.run(["sync", "--file-system", str(point)], check=True)
        yield point
    finally:
        subprocess.run(["umount", str(point)], check=True)


@pytest.mark.root
def test_audit_and_trim_tell_the_same_free_space(cli: Cli, mounted: Path) -> None:
    trimmed = json.loads(cli("trim", mounted, "--dry-run", "--json", "-").out)
    room = FileSystemSpace(**{name: trimmed[name] for name in FileSystemSpace.__dataclass_fields__})
    info = os.statvfs(mounted)
    assert room.free_bytes == info.f_bfree * info.f_frsize
    assert room.available_bytes == info.f_bavail * info.f_frsize
    # The blocks reserved for root lie between the two.
    assert 0.04 * room.size_bytes < room.free_bytes - room.available_bytes
    audited = json.loads(cli("audit", mounted, "--json", "-").out)
    (finding,) = [one for one in audited["findings"] if one["check"] == "free-space"]
    assert finding["evidence"][0]["value"] == room.sentence
    share = room.available_bytes / room.size_bytes
    assert finding["what"] == f"{units.percent(share)} of the file system is free for users"
    assert room.sentence in cli("trim", mounted, "--dry-run").out
