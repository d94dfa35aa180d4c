"""A scan finds what is bad to the block and what is slow for good; a trim says how far it gets."""

from __future__ import annotations

import errno
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import browser
from conftest import MIB, PATIENCE_S, Cli, Loop
from ssdlab.answers import scan as scan_answer
from ssdlab.answers import scan as scansay
from ssdlab.care.blockio import all_zero, reading
from ssdlab.care.scan import FAILURES_MAX, Scan, limits, scan
from ssdlab.care.scanmap import cells
from ssdlab.care.trim import UnsupportedError, discard, punch, trim
from ssdlab.errors import RefusedError
from ssdlab.report import answer_page
from ssdlab.rig import resolve
from ssdlab.simscan import scan_simulated
from ssdlab.target import Sim

BLOCK = 4096
PIECE_NS = 2_000_000


@dataclass
class Drive:
    """A drive made of numbers, with a clock of its own: what it answers is all a scan can know."""

    pieces: int = 400
    tail: int = 0
    """Bytes that the last piece is short."""
    bad: list[tuple[int, int]] = field(default_factory=list)
    slow: dict[int, int] = field(default_factory=dict)
    """Times the usual time of these pieces, each time."""
    late: dict[int, int] = field(default_factory=dict)
    """The same, but the first time only."""
    zero: range = range(0)
    gone: int | None = None
    block_bytes: int = BLOCK
    direct: bool = True
    now: int = 0
    failed: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        self.size_bytes = self.pieces * MIB - self.tail
        self.random = random.Random(self.seed)

    def read(self, offset: int, length: int) -> memoryview:
        assert offset % BLOCK == 0
        assert 0 < length <= MIB
        piece = offset // MIB
        if self.gone is not None and piece >= self.gone:
            raise OSError(errno.ENODEV, "No such device")
        times = self.slow.get(piece, 1) * self.late.pop(piece, 1)
        usual = PIECE_NS * length / MIB * self.random.uniform(0.97, 1.03)
        self.now += int(usual * times * (0.4 if piece in self.zero else 1))
        if any(offset < start + size and start < offset + length for start, size in self.bad):
            self.failed += 1
            raise OSError(errno.EIO, "Input/output error")
        return memoryview(bytes(length) if piece in self.zero else b"\1" * length)

    def scan(self, wanted: int | None = None) -> Scan:
        """All of it, or so many bytes."""
        whole = self.size_bytes
        found = Scan("drive", "device", whole, wanted or whole, BLOCK, direct=True)
        return scan(self, found, clock=lambda: self.now, rest_s=0.0)


def test_a_good_drive_has_nothing_to_report() -> None:
    found = Drive(tail=12288).scan()
    assert (found.errors, found.slow, found.slow_zones, found.stopped) == ([], [], [], None)
    assert found.read_bytes == 400 * MIB - 12288
    assert found.bytes_per_s() == pytest.approx(MIB / 2e-3, rel=0.01)
    assert "no read errors in 419 MB" in scansay.sentences(found)[0]
    assert "no slow places" in scansay.sentences(found)[1]


@pytest.mark.parametrize("seed", range(8))
def test_unreadable_blocks_are_found_exactly(seed: int) -> None:
    rng = random.Random(seed)
    blocks = sorted(rng.sample(range(40 * 256), 9))
    blocks += [b + 1 for b in blocks[:3]]
    drive = Drive(pieces=40, bad=[(b * BLOCK, BLOCK) for b in blocks])
    found = drive.scan()
    told = [
        at // BLOCK
        for one in found.errors
        for at in range(one.offset, one.offset + one.length, BLOCK)
    ]
    assert told == sorted(set(blocks))
    assert all(one.exact and one.reason == "Input/output error" for one in found.errors)
    assert found.unreadable_bytes == len(told) * BLOCK
    bad = [i for i, cell in enumerate(cells(found, 40)) if cell.state == "bad"]
    assert bad == sorted({block // 256 for block in blocks})


def test_bad_blocks_on_both_sides_of_a_piece_are_one_stretch() -> None:
    found = Drive(pieces=40, bad=[(7 * MIB - 2 * BLOCK, 3 * BLOCK)]).scan()
    assert [(one.offset, one.length) for one in found.errors] == [(7 * MIB - 2 * BLOCK, 3 * BLOCK)]
    assert [cell.state for cell in cells(found, 40)][5:9] == ["quick", "bad", "bad", "quick"]


def test_a_whole_bad_piece_is_not_tried_block_by_block_for_ever() -> None:
    """At a second or more for each try that would take the night."""
    drive = Drive(pieces=40, bad=[(9 * MIB, MIB)])
    found = drive.scan()
    assert drive.failed <= FAILURES_MAX + 2
    assert found.unreadable_bytes == MIB
    assert any(not one.exact for one in found.errors)
    assert (found.errors[0].offset, found.errors[-1].offset + found.errors[-1].length) == (
        9 * MIB,
        10 * MIB,
    )


def test_a_slow_place_is_told_from_a_chance_delay() -> None:
    found = Drive(slow={17: 20, 250: 9}, late={90: 30, 91: 4, 333: 50}).scan()
    assert [one.offset // MIB for one in found.slow_places()] == [17, 250]
    late = [one for one in found.slow if one.slow_place is False]
    assert [one.offset // MIB for one in late] == [90, 91, 333]
    assert [len(one.again_ns) for one in found.slow] == [3, 1, 1, 3, 1]
    said = " ".join(scansay.sentences(found))
    assert "2 slow pieces of 1 MiB" in said
    assert "3 pieces took more than" in said
    states = [cell.state for cell in cells(found, 400)]
    assert [i for i, state in enumerate(states) if state == "slow"] == [17, 250]
    assert [i for i, state in enumerate(states) if state == "late"] == [90, 91, 333]


def test_the_limit_is_beyond_the_spread_and_at_least_three_times_the_median() -> None:
    even = np.full(100, 1e6)
    assert limits(even, np.zeros(100, dtype=np.bool_)) == (1e6, 3e6)
    wide = np.linspace(0.1e6, 1.9e6, 101)
    median, limit = limits(wide, np.zeros(101, dtype=np.bool_))
    # The median distance from the median of evenly spread values is a quarter of their range.
    assert limit == pytest.approx(median + 8 * 1.4826 * 0.45e6)


def test_blocks_without_data_do_not_decide_what_is_usual() -> None:
    """Most of the drive is trimmed and answers at once: what holds data is not slow for that."""
    found = Drive(zero=range(50, 400), slow={10: 30}).scan()
    assert found.limits[0] == pytest.approx(PIECE_NS, rel=0.02)
    assert [one.offset // MIB for one in found.slow_places()] == [10]
    assert found.zero_share == 350 / 400
    assert any("88 % of what was read is zeros only" in s for s in scansay.sentences(found))
    assert [cell.state for cell in cells(found, 400)][60] == "zero"


def test_a_slow_stretch_is_told_and_a_late_one_is_not() -> None:
    slow = Drive(slow=dict.fromkeys(range(200, 260), 2)).scan()
    (sentence,) = [s for s in scansay.sentences(slow) if "uneven" in s]
    # Of sixteen parts of 25 pieces, 200 to 250 are slow; the last ten are the lesser part of one.
    assert [one.offset for one in slow.slow_zones] == [200 * MIB, 225 * MIB]
    told = re.search(r"uneven: from 210 MB to 262 MB it is about (\d+) MB/s", sentence)
    assert told is not None
    assert int(told[1]) == pytest.approx(MIB / 4e-3 / 1e6, rel=0.03)
    assert "and was so when read again" in sentence
    late = Drive(late=dict.fromkeys(range(200, 260), 2)).scan()
    assert late.slow_zones == []


def test_ctrl_c_keeps_what_was_found() -> None:
    drive = Drive(bad=[(5 * MIB, BLOCK)], late={3: 40})
    read = drive.read

    def stop(offset: int, length: int) -> memoryview:
        if offset >= 100 * MIB:
            raise KeyboardInterrupt
        return read(offset, length)

    drive.read = stop  # type: ignore[method-assign]
    found = drive.scan()
    assert found.stopped == "stopped by Ctrl-C"
    assert found.pieces_done == 100
    assert len(found.errors) == 1
    assert [one.slow_place for one in found.slow] == [None]
    assert cells(found, 400)[100].state == "unread"
    assert any("not read again: the scan was stopped" in s for s in scansay.sentences(found))
    assert json.loads(json.dumps(scansay.document(found), allow_nan=False))["stopped"]


def test_a_drive_that_goes_away_ends_the_scan() -> None:
    found = Drive(gone=30).scan()
    assert found.stopped is not None
    assert "went away at 31457280" in found.stopped
    assert (found.pieces_done, found.errors) == (30, [])


def test_zeros_are_known_at_every_place() -> None:
    assert all_zero(memoryview(bytes(4096)))
    assert all_zero(memoryview(bytes(13)))
    for place in (0, 7, 8, 4000, 4095):
        data = bytearray(4099)
        data[place] = 1
        assert not all_zero(memoryview(data))
        assert not all_zero(memoryview(bytes(4096) + data))


# --- real files and devices


def test_a_file_is_read_to_its_last_byte(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "data.bin"
    data = os.urandom(3 * MIB + 777)
    path.write_bytes(data)
    with reading(path) as reader:
        assert bytes(reader.read(0, MIB)) == data[:MIB]
        assert bytes(reader.read(3 * MIB, MIB)) == data[3 * MIB :]
    outcome = cli("scan", path, "--json", "-")
    assert outcome.status == 0, outcome.err
    found = json.loads(outcome.out)
    assert found["read_bytes"] == len(data)
    assert found["errors"] == []
    assert "Scanned all 3.15 MB" in outcome.err
    assert "░" in outcome.err


@pytest.mark.root
def test_real_errors_of_a_real_device_are_found_and_end_with_status_1(
    tmp_path: Path, cli: Cli, loop: Loop
) -> None:
    """A loop device whose file became shorter cannot read what lies beyond its end."""
    subprocess.run(["losetup", "--direct-io=on", str(loop.path)], check=True)
    with loop.backing.open("r+b") as file:
        file.write(os.urandom(21 * MIB))
        file.truncate(20 * MIB + 5 * BLOCK)
    if Path(f"/sys/class/block/{loop.name}/loop/dio").read_text().strip() != "1":
        pytest.skip("loop devices cannot read directly here")
    outcome = cli("scan", loop.path, "--size", "22MiB", "--json", tmp_path / "found.json")
    assert outcome.status == 1
    found = json.loads((tmp_path / "found.json").read_text())
    first, last = found["errors"][0], found["errors"][-1]
    assert first["offset"] == 20 * MIB + 5 * BLOCK
    assert last["offset"] + last["length"] == 22 * MIB
    assert found["unreadable_bytes"] == 2 * MIB - 5 * BLOCK
    assert first["reason"] == "Input/output error"
    assert "X unreadable" in outcome.out
    assert "what lies there is lost" in outcome.out


@pytest.mark.root
def test_a_scan_writes_nothing_and_needs_no_leave(loop: Loop, cli: Cli) -> None:
    subprocess.run(["mkfs.ext4", "-q", str(loop.path)], check=True)
    before = loop.path.read_bytes()
    subprocess.run(["blockdev", "--setro", str(loop.path)], check=True)
    try:
        outcome = cli("scan", loop.path, "--whole")
    finally:
        subprocess.run(["blockdev", "--setrw", str(loop.path)], check=True)
    assert outcome.status == 0, outcome.err
    assert "Scanned all 67.1 MB" in outcome.out
    assert loop.path.read_bytes() == before


def test_ctrl_c_prints_what_was_found_and_writes_the_page(tmp_path: Path) -> None:
    """The reader is held back so that the signal comes in the midst."""
    path = tmp_path / "data.bin"
    path.write_bytes(os.urandom(40 * MIB))
    script = (
        "import sys, time\n"
        "from ssdlab.care import blockio\n"
        "read = blockio.PathReader.read\n"
        "def slow(self, offset, length):\n"
        "    if offset > 20 << 20: print('half', flush=True); time.sleep(30)\n"
        "    return read(self, offset, length)\n"
        "blockio.PathReader.read = slow\n"
        "from ssdlab.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", script, "scan", str(path), "-o", str(tmp_path / "map.html")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "half\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 130, err
    assert "Scanned only the first 22.0 MB" in out
    assert "No read errors in 22.0 MB" in out
    assert "stopped by Ctrl-C after 22.0 MB of 41.9 MB; what was found is kept" in err
    assert (tmp_path / "map.html").exists()


def test_the_speed_is_not_that_of_the_page_cache(tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(os.urandom(MIB))
    with reading(path) as reader:
        if not reader.direct:
            pytest.skip("this file system knows no direct I/O")
        flags = Path(f"/proc/self/fdinfo/{reader._fd}").read_text().split("flags:")[1].split()[0]
        assert int(flags, 8) & os.O_DIRECT


def test_a_file_system_without_direct_reads_is_scanned_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(os.urandom(2 * MIB))
    real = os.open

    def refuse(place: Path, flags: int, *more: int, **named: int) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(place, flags, *more, **named)

    monkeypatch.setattr(os, "open", refuse)
    outcome = cli("scan", path)
    assert outcome.status == 0, outcome.err
    assert "he page cache could not be bypassed" in outcome.out


def test_what_cannot_be_scanned_is_one_sentence(tmp_path: Path, cli: Cli) -> None:
    empty = tmp_path / "empty.bin"
    empty.touch()
    for arguments, words in (
        ((empty,), "is empty"),
        ((tmp_path / "gone.bin",), "there is no such file"),
        ((empty, "--size", "1.5X"), "write it as a size"),
        ((empty, "--size", "0"), "at least one byte"),
        ((empty, "--whole", "--size", "1GB"), "exclude each other"),
        ((empty, "--prepare", "steady"), "for simulated drives"),
        (("demo-cleint",), 'did you mean "demo-client"'),
        ((empty, "-o", "/proc/x.html"), "/proc"),
        ((empty, "--json", "/proc/x.json"), "/proc"),
    ):
        outcome = cli("scan", *arguments)
        assert outcome.status == 2, outcome.err
        assert words in outcome.err
        assert outcome.err.count("\n") == 1


# --- simulated drives


def test_a_simulated_drive_is_scanned_piece_by_piece() -> None:
    target = resolve("demo-client")
    assert isinstance(target, Sim)
    found = scan_simulated(target, wanted_bytes=64 * MIB, overrides={"capacity": "2GiB"})
    assert (found.size_bytes, found.read_bytes) == (2048 * MIB, 64 * MIB)
    assert not any(math.isnan(ns) for ns in found.ns)
    # 1 MiB at a time over a link of 600 MB/s cannot be faster than the link.
    assert 50e6 < found.bytes_per_s() < 600e6
    again = scan_simulated(target, wanted_bytes=64 * MIB, overrides={"capacity": "2GiB"})
    assert (found.ns == again.ns).all()


def test_scattered_data_of_a_simulated_drive_show_in_its_scan() -> None:
    """What the experiment on fragmentation measured: random writes slow sequential reads down."""
    target = resolve("toshiba-xg5-512")
    assert isinstance(target, Sim)
    # Of less, too little of each die is left to write to, and what is written is mostly copies.
    keys = {"capacity": "8GiB"}
    even = scan_simulated(target, wanted_bytes=256 * MIB, overrides=keys)
    worn = scan_simulated(
        target, wanted_bytes=256 * MIB, overrides=keys, prepare="sequential,random:1"
    )
    assert worn.bytes_per_s() < 0.8 * even.bytes_per_s()


@pytest.mark.parametrize(
    ("drive", "prepare", "empty"),
    [
        ("demo-client", "fob", True),
        ("demo-client", "sequential,trim", True),
        ("demo-client", "sequential", False),
        ("seagate-constellation-500", "fob", False),  # disks read what was never written, too
    ],
)
def test_a_scan_of_an_empty_simulated_drive_says_that_its_speed_is_no_flash(
    drive: str, prepare: str, empty: bool
) -> None:
    target = resolve(drive)
    assert isinstance(target, Sim)
    found = scan_simulated(target, wanted_bytes=16 * MIB, prepare=prepare)
    assert found.zero_share == float(empty)
    assert ("without touching flash" in " ".join(scan_answer.sentences(found))) == empty


def test_a_simulated_scan_says_what_it_cannot_know(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("scan", "demo-client", "--whole", "--set", "capacity=2GiB", "--json", "-")
    assert outcome.status == 0, outcome.err
    assert json.loads(outcome.out)["read_bytes"] == 2048 * MIB
    assert "unreadable blocks are not simulated" in outcome.err
    assert "No read errors" not in outcome.err
    assert "of simulated time" in outcome.err


# --- the page


@pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "-")
def test_the_page_draws_the_map_and_asks_nothing_of_the_network(tmp_path: Path) -> None:
    found = Drive(bad=[(5 * MIB, BLOCK)], slow={17: 20}, late={90: 30}, zero=range(300, 350)).scan()
    found.target = "<script>alert(1)</script> & co"
    answer_page.render(scan_answer.answer(found), tmp_path / "map.html")
    with browser.tab() as tab:
        tab.open(tmp_path / "map.html", 1200)
        assert tab.complaints == []
        assert [one for one in tab.requests if not one.startswith(("file:", "data:"))] == []
        assert "co" in tab.run("document.querySelector('h1').textContent")
        drawn = tab.run("[...document.querySelectorAll('.chart')].filter(e => e.firstChild).length")
        assert drawn == 3
        # Nothing lies over what follows it.
        gap = (
            "(f => f.querySelector('.note').getBoundingClientRect().top - "
            "f.querySelector('.chart').getBoundingClientRect().bottom)(document.querySelector('#lead'))"
        )
        assert tab.run(gap) >= 0
        cells_drawn = (
            "Bokeh.documents[0].roots()[0].renderers.map(r => r.data_source.data.x.length)"
            ".reduce((a, b) => a + b)"
        )
        assert tab.run(cells_drawn) == 400
        tables = tab.run("[...document.querySelectorAll('h3, summary')].map(h => h.textContent)")
        named = " ".join(tables)
        for name in ("Map", "Unreadable", "Slow places and late pieces", "Zones"):
            assert name in named


def test_a_scan_that_read_nothing_but_errors_still_has_a_page(tmp_path: Path) -> None:
    found = Drive(pieces=3, bad=[(0, 3 * MIB)]).scan()
    answer_page.render(scan_answer.answer(found), tmp_path / "map.html")
    assert "Input/output error" in (tmp_path / "map.html").read_text("utf-8")


# --- trim


@pytest.mark.root
def test_free_space_is_trimmed_down_to_the_file_below(loop: Loop, tmp_path: Path, cli: Cli) -> None:
    point = tmp_path / "point"
    point.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-E", "nodiscard", str(loop.path)], check=True)
    subprocess.run(["mount", str(loop.path), str(point)], check=True)
    try:
        file = point / "file"
        file.write_bytes(os.urandom(30 * MIB))
        os.sync()
        file.unlink()
        os.sync()
        time.sleep(0.1)
        taken = loop.backing.stat().st_blocks * 512
        planned = cli("trim", point, "--dry-run", "--json", "-")
        assert json.loads(planned.out)["trimmed_bytes"] is None
        assert loop.backing.stat().st_blocks * 512 == taken
        outcome = cli("trim", point / "lost+found", "--json", "-")
        assert outcome.status == 0, outcome.err
        found = json.loads(outcome.out)
        assert found["trimmed_bytes"] >= 30 * MIB
        assert loop.backing.stat().st_blocks * 512 < taken - 25 * MIB
        assert found["layers"][0]["name"] == loop.name
        assert f"{loop.name} is the file {loop.backing}" in outcome.err
        page, tables = loop.backing.parent / "trim.html", loop.backing.parent / "tables"
        again = cli("trim", point, "--report", page, "--csv", tables)
        assert f"Trim of ext4 at {point}" in page.read_text()
        assert f"\n{loop.name},yes," in (tables / "layers-below.csv").read_text()
        assert "0 B trimmed" in again.out
        assert "is not trimmed again" in again.out
        too_much = cli("trim", point, "--min", "1TB")
        assert too_much.status == 2
    finally:
        subprocess.run(["umount", str(point)], check=True)


@pytest.mark.root
def test_a_block_device_is_not_trimmed_but_pointed_to_purge(loop: Loop, cli: Cli) -> None:
    outcome = cli("trim", loop.path)
    assert outcome.status == 3
    assert f"ssdlab purge {loop.path}" in outcome.err
    with pytest.raises(RefusedError):
        trim(loop.path)


def test_what_cannot_be_trimmed_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    for path in (tmp_path / "gone", Path("/proc")):
        outcome = cli("trim", path)
        assert outcome.status == 2, outcome.err
        assert outcome.err.count("\n") == 1
    assert cli("trim", tmp_path, "--min", "many").status == 2


def test_punching_frees_a_stretch_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    data = os.urandom(3 * MIB)
    path.write_bytes(data)
    os.sync()
    before = path.stat().st_blocks
    with path.open("r+b") as file:
        try:
            punch(file.fileno(), MIB, MIB)
        except UnsupportedError:
            pytest.skip("this file system knows no holes")
    assert path.read_bytes() == data[:MIB] + bytes(MIB) + data[2 * MIB :]
    assert path.stat().st_blocks == before - MIB // 512


@pytest.mark.root
def test_discarding_frees_a_stretch_of_a_device(loop: Loop) -> None:
    loop.path.write_bytes(os.urandom(3 * MIB))
    os.sync()
    descriptor = os.open(loop.path, os.O_RDWR)
    try:
        discard(descriptor, MIB, MIB)
        with pytest.raises(UnsupportedError, match="no secure discard"):
            discard(descriptor, 0, MIB, secure=True)
    finally:
        os.close(descriptor)
    data = loop.path.read_bytes()[: 3 * MIB]
    assert data[MIB : 2 * MIB] == bytes(MIB)
    assert data[:MIB].strip(b"\0")
    with loop.backing.open("r+b") as file, pytest.raises(UnsupportedError, match="no discard"):
        discard(file.fileno(), 0, MIB)
