"""Plans: what a run takes is within what was said before, and the progress on the way is honest."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import small_protocol
from conftest import Cli, Loop, needs_fio
from scheduling import LONG
from ssdlab import safety
from ssdlab.engine import estimate, ratings, rehearsal, sources
from ssdlab.engine.plans import Announcement, ProtocolOrder, plan
from ssdlab.engine.runs import begin
from ssdlab.engine.setup import MIB, Setup
from ssdlab.engine.speed import GUESS, SpeedPoint, Speeds, assumed, measured, read
from ssdlab.engine.steps import Idle, Job, Shape
from ssdlab.engine.tally import RunTally
from ssdlab.errors import InputError, Interrupted
from ssdlab.jobfile import JobText
from ssdlab.progress import Progress
from ssdlab.protocols import find, pts_iops
from ssdlab.rating import Rating
from ssdlab.rig import profile, resolve
from ssdlab.store import RunStore
from ssdlab.store.folder import RunFolder
from ssdlab.target import Sim, SimSession
from ssdlab.target.simulated import Begun

pytestmark = pytest.mark.usefixtures("short_fio")


NULL = """
[device]
kind = "link"
bandwidth = "200MB/s"
queue_slots = 1024
[device.below]
kind = "null"
capacity = "64MiB"
service_time = "400us"
servers = 2
"""
"""5000 IOPS, as long as that is not more than 200 MB/s."""


def done(order: ProtocolOrder, store: Path) -> tuple[Announcement, RunFolder]:
    """Runs it to its end; the last plan that was announced, and the run."""
    told: list[Announcement] = []

    def announce(what: Announcement) -> bool:
        told.append(what)
        return True

    finished = begin(
        order,
        RunStore(store),
        progress=lambda _news: True,
        notice=lambda _sentence: None,
        announce=announce,
    )
    assert finished is not None
    return told[-1], finished.folder


def moved(folder: RunFolder) -> list[SpeedPoint]:
    """What its jobs moved."""
    return sources.of_folder(folder)


def hold(what: Announcement, seconds: float, folder: RunFolder) -> None:
    """The run kept to its plan, and the plan is narrow where the speed is known."""
    written = sum(one.bytes * one.shape.write_share for one in moved(folder))
    assert what.estimate.soon.low <= seconds <= what.estimate.never.high, what.estimate
    low, high = what.estimate.written
    assert 0.95 * low <= written <= 1.05 * high
    steps = sum(entry.kind == "job" for entry in folder.journal())
    assert what.estimate.steps_min <= steps + 1 <= what.estimate.steps_max + 1
    assert what.estimate.soon.high <= 3 * what.estimate.soon.low
    assert what.estimate.never.high <= 3 * what.estimate.never.low


# --- the run ends inside its plan


@pytest.fixture
def few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """The corners of the grid, unless there is time; what is held is the plan, not the numbers."""
    if not LONG:
        monkeypatch.setattr(pts_iops, "MIXES", (100, 65, 0))
        monkeypatch.setattr(pts_iops, "SIZES", (1 << 20, 8 << 10, 512))


@pytest.mark.usefixtures("few_points")
@pytest.mark.parametrize("name", ["pts-wsat", "pts-iops"])
def test_a_drive_of_the_speed_that_is_assumed_keeps_to_the_plan(name: str, tmp_path: Path) -> None:
    order = ProtocolOrder(
        replace(find(name), quick_divisor=600),
        Sim("null", NULL),
        quick=True,
        assume=assumed("5000iops,200MB/s"),
    )
    what, folder = done(order, tmp_path)
    hold(what, sum(one.seconds for one in moved(folder)), folder)


@pytest.mark.usefixtures("few_points")
@pytest.mark.parametrize("name", ["pts-wsat", "pts-iops"])
@pytest.mark.parametrize("drive", ["demo-client", "intel-x25-m-g2-160"])
def test_a_simulated_drive_keeps_to_the_plan_that_a_small_one_gives(
    name: str, drive: str, tmp_path: Path
) -> None:
    what, folder = done(
        ProtocolOrder(replace(find(name), quick_divisor=600), resolve(drive), quick=True), tmp_path
    )
    assert what.speeds.source == "profile" and not what.guessed
    hold(what, sum(one.seconds for one in moved(folder)), folder)


def test_a_long_job_on_a_small_drive_is_planned_at_the_speed_that_it_comes_to(
    tmp_path: Path,
) -> None:
    """Of 40 s a drive of 64 MiB is only in the first fraction as fast as a new one."""
    order = ProtocolOrder(
        find("consistency"),
        resolve("lab-reference"),
        given={"seconds": "40"},
        overrides={"capacity": "64MiB"},
    )
    what, folder = done(order, tmp_path)
    assert what.speeds.source == "profile"
    hold(what, sum(one.seconds for one in moved(folder)), folder)


def test_an_area_of_a_fixed_size_is_rehearsed_as_the_share_of_the_drive_that_it_is(
    tmp_path: Path,
) -> None:
    """As all of a small drive it was written at random until that had no erased blocks left."""
    given = {"runs": "2", "data": "random"}
    order = ProtocolOrder(find("crystaldiskmark"), resolve("demo-client"), given=given, quick=True)
    what, folder = done(order, tmp_path)
    low, high = what.estimate.written
    assert low <= sum(one.bytes * one.shape.write_share for one in moved(folder)) <= high


def test_what_a_rehearsal_sees_of_the_new_drive_alone_is_no_more_than_the_upper_bound(
    tmp_path: Path,
) -> None:
    """Jobs of hours, or of a minute on a small drive, are too long to rehearse: in the seconds that
    are, writes find erased blocks (the plan said at least 4.0 GB of 2.6)."""
    given = {"blocks": "4k"}
    order = ProtocolOrder(find("write-over-time"), resolve("demo-client"), given=given, quick=True)
    what, folder = done(order, tmp_path)
    low, high = what.estimate.written
    written = sum(one.bytes * one.shape.write_share for one in moved(folder))
    assert low <= written <= high
    assert low > written / 6
    assert what.assumption.endswith("on a small drive, new and in its steady state")


def test_a_plan_does_not_depend_on_how_fast_the_machine_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = ProtocolOrder(find("mixed-load"), resolve("demo-client"))
    here = plan(order, RunStore(tmp_path)).document()
    assert here["assumption"].endswith("on a small drive, new and in its steady state")
    slow = itertools.count(0, 60)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(slow)))
    assert plan(order, RunStore(tmp_path)).document() == here


def test_a_rehearsal_ends_with_its_work_and_the_plan_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = ProtocolOrder(find("mixed-load"), resolve("demo-client"))
    monkeypatch.setattr(rehearsal, "MOST_WORK", 100_000)
    done: list[int] = []
    begin_job = SimSession.begin

    def begun(self: SimSession, job: JobText, *, seed: int, most_work: int) -> Begun:
        found = begin_job(self, job, seed=seed, most_work=most_work)
        done.append(found.work)
        return found

    monkeypatch.setattr(SimSession, "begin", begun)
    what = plan(order, RunStore(tmp_path))
    # What is in flight, and what happens between two looks at the work, comes on top.
    assert 50_000 < sum(done) < 150_000
    assert "simulation of some of the jobs or their beginnings" in what.assumption
    assert what.speeds.source == "profile" and not what.guessed
    assert plan(order, RunStore(tmp_path)).document() == what.document()


@needs_fio()
def test_a_file_keeps_to_the_plan_by_its_measured_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Setup.job

    def limited(setup: Setup, *args: Any, **more: Any) -> Job:
        # Held to a speed by fio itself, for what else the machine does must not decide.
        return whole(setup, *args, **(more | {"options": {"rate_iops": 300}}))

    monkeypatch.setattr(Setup, "job", limited)
    parameters = {"times": "1", "threads": "2"}
    order = ProtocolOrder(
        find("pts-wsat"), resolve(tmp_path / "f.bin"), parameters, quick=True, size=16 * MIB
    )
    known = replace(order, assume=assumed("600iops"))
    for one, source in ((order, "guess"), (order, "earlier"), (known, "assumed")):
        what, folder = done(one, tmp_path / "runs")
        assert what.speeds.source == source
        entries = folder.journal()
        began, ended = (datetime.fromisoformat(at) for at in (entries[0].began, entries[-1].ended))
        took = (ended - began).total_seconds()
        assert what.estimate.soon.low <= took <= what.estimate.never.high
        if source == "guess":
            assert what.estimate.never.high > 10 * what.estimate.never.low
            first = folder.id
        else:
            hold(what, took, folder)
            assert source == "assumed" or first in what.assumption


# --- where speeds are known from


def test_speeds_are_read_as_people_write_them() -> None:
    both = assumed("500MB/s, 20kIOPS")
    sequential, small = Shape(False, 1 << 20, 32, 1.0), Shape(True, 4096, 32, 1.0)
    assert both.of(sequential).middle == pytest.approx(500e6)
    assert both.of(small).middle == pytest.approx(20e3 * 4096)
    # Large blocks at random are bounded by the bandwidth, smaller ones are as many.
    assert both.of(replace(small, bs=1 << 20)).middle == pytest.approx(500e6, rel=1e-3)
    assert both.of(replace(small, bs=8192)).middle == pytest.approx(20e3 * 8192, rel=1e-3)
    assert both.of(replace(small, bs=512)).middle == pytest.approx(20e3 * 512)
    assert assumed("1.5GiB/s").of(sequential).middle == pytest.approx(1.5 * (1 << 30))
    assert both.of(small).high / both.of(small).low <= 3
    assert not both.guessed(small)
    alone = assumed("5000iops")
    assert alone.guessed(sequential) and alone.of(sequential) == GUESS.of(sequential)


@pytest.mark.parametrize(
    "text", ["", "0", "0iops", "fast", "5k", "1MB/s,2MB/s", "-5iops", "5 iops x"]
)
def test_no_speed_is_one_sentence(text: str) -> None:
    with pytest.raises(InputError, match="expected a speed above 0 such as 200MB/s"):
        assumed(text)


def test_what_was_measured_counts_by_the_time_it_took() -> None:
    shape = Shape(True, 4096, 32, 1.0)
    found = measured([SpeedPoint(shape, 1000, 1.0), SpeedPoint(shape, 1000, 9.0)])
    assert found[shape].middle == pytest.approx(200)
    speeds = Speeds(found, "earlier", "a run")
    assert read(json.loads(json.dumps(speeds.document()))) == speeds
    one = SpeedPoint(shape, 7, 2.0)
    assert SpeedPoint.read(json.loads(json.dumps(one.document()))) == one
    assert SpeedPoint.read({}) is None


def test_a_mix_takes_the_time_of_its_reads_and_of_its_writes() -> None:
    shape = Shape(True, 4096, 1, 0.0)
    known = measured(
        [SpeedPoint(shape, 300, 1.0), SpeedPoint(replace(shape, write_share=1.0), 100, 1.0)]
    )
    speeds = Speeds(known, "earlier", "a run")
    assert speeds.of(replace(shape, write_share=0.5)).middle == pytest.approx(150)


def test_only_a_long_run_of_unknown_length_that_purges_first_is_probed() -> None:
    setup = Setup(100 << 30, "device", 100 << 30, find("pts-wsat").values({}))
    steps = list(find("pts-wsat").plan(setup))
    assert sources.worth_probing(steps, GUESS, setup)
    assert not sources.worth_probing(steps, assumed("5000iops"), setup)
    assert not sources.worth_probing(steps[1:], GUESS, setup)
    assert not sources.worth_probing([*steps[:1], Idle("rest", seconds=1e6)], GUESS, setup)


@needs_fio()
def test_a_drive_is_probed_before_a_long_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "PROBE_S", 1.0)
    monkeypatch.setattr(sources, "PROBE_SHARE", 10.0)
    order = ProtocolOrder(
        find("pts-wsat"), resolve(tmp_path / "f.bin"), {"times": "1"}, quick=True, size=32 * MIB
    )
    what, folder = done(order, tmp_path / "runs")
    assert what.speeds.source == "probe"
    # Random writes, at most 1.2 times faster and 2.5 times slower than probed.
    (span,) = what.speeds.known.values()
    assert span.high / span.low == pytest.approx(3)
    guessed = estimate.of(find("pts-wsat").plan(what.setup), GUESS, what.setup.kind).never
    assert what.estimate.never.high / what.estimate.never.low < guessed.high / guessed.low / 5
    assert (folder.manifest.speeds or {})["source"] == "probe"
    # All its jobs were probed.
    assert GUESS.words not in what.assumption


# --- bytes and endurance


def test_bytes_and_their_share_of_the_rating_are_low_and_high(tmp_path: Path) -> None:
    order = ProtocolOrder(
        find("pts-wsat"),
        resolve(tmp_path / "f.bin"),
        size=64 * MIB,
        assume=assumed("5000iops"),
        rating=Rating(600e12, "--tbw"),
    )
    what = plan(order, RunStore(tmp_path / "runs"))
    low, high = what.estimate.written
    assert 0 < low < high
    assert what.endurance_share() == (low / 600e12, high / 600e12)
    work = what.work()
    assert work is not None
    assert (work.written_bytes, work.written_most_bytes) == (round(low), round(high))
    assert work.rating is not None and work.rating.bytes == 600e12


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (134 << 20, 134 << 20, "(2 drive writes), 0.14 % of the endurance of 100 GB (--tbw)"),
        (67 << 20, 670 << 20, "(1 to 10 drive writes), 0.07 % to 0.7 % of the endurance of"),
        (0, 67 << 20, "(up to 1 drive write), up to 0.07 % of the endurance of"),
        (0, 35 << 30, "(up to 535 drive writes), up to 38 % of the endurance of"),
    ],
)
def test_the_consent_says_bytes_drive_writes_and_the_share_of_the_endurance(
    low: int, high: int, words: str
) -> None:
    device = safety.BlockDevice(Path("/dev/x"), "x", 67 << 20, ("S1",))
    work = safety.Work("the job", f"writes {safety.amount(low, high)}", low, high, None)
    said = safety.warning(device, work)
    assert "/dev/x (S1, 70.3 MB): all data on it will be lost; the job writes " in said
    assert "its share of the endurance is unknown" in said
    work = safety.Work("the job", "writes", low, high, Rating(100e9, "--tbw"))
    assert words in safety.warning(device, work)


def test_a_drive_is_of_a_profile_by_the_words_of_its_name_or_its_part_number() -> None:
    assert ratings.is_model(profile("samsung-970-pro-512"), "Samsung SSD 970 PRO 512GB")
    assert ratings.is_model(profile("intel-x25-m-g2-160"), "INTEL SSDSA2MH160G2GC")
    assert ratings.is_model(profile("samsung-980-1000"), "Samsung SSD 980 1TB")
    assert not ratings.is_model(profile("samsung-970-pro-512"), "Samsung SSD 970 PRO 1TB")
    assert not ratings.is_model(profile("samsung-970-pro-512"), "Samsung SSD 970 EVO 512GB")
    assert not ratings.is_model(profile("samsung-980-1000"), "Samsung SSD 980 PRO 1TB")
    found = ratings._by_profile("Samsung SSD 970 PRO 512GB", 512110190592)
    assert found is not None and "profile samsung-970-pro-512" in found.source
    assert found.bytes == pytest.approx(3000 * 512e9 * 1.0737, rel=0.02)
    assert ratings._by_profile("Samsung SSD 970 PRO 512GB", 10**12) is None


def test_a_worn_drive_tells_its_rating_by_what_wore_it() -> None:
    log = {"data_units_written": 60 * 10**12 // 512_000, "percentage_used": 10}
    answer: dict[str, Any] = {
        "smartctl": {"version": [7, 3], "exit_status": 0},
        "device": {"protocol": "NVMe"},
        "model_name": "A drive",
        "smart_status": {"passed": True},
        "nvme_smart_health_information_log": log,
    }
    found = ratings._by_wear(answer, "x")
    assert found is not None and found.bytes == pytest.approx(600e12, rel=1e-6)
    log["percentage_used"] = 2
    assert ratings._by_wear(answer, "x") is None


# --- progress


class Fake:
    """A run whose drive is so many times slower than was expected, on a clock of its own."""

    def __init__(self, slower: float) -> None:
        self.now, self.slower = 0.0, slower
        self.speeds = assumed("400MB/s,50kiops")
        self.setup = Setup(8 << 30, "device", 8 << 30)
        self.jobs = [
            self.setup.fill("fill", 2.0),
            *(self.setup.job(f"r{n}", "", "randwrite", "4k", seconds=6) for n in range(5)),
            self.setup.job("w", "", "randwrite", "4k", amount=1 << 30),
            self.setup.job("again", "", "randwrite", "4k", amount=1 << 30),
            self.setup.fill("last", 1.0),
        ]
        self.told: list[tuple[float, Progress]] = []

    def tally(self) -> RunTally:
        whole = estimate.load(self.jobs, self.speeds, "sim")
        return RunTally(whole, self.speeds, virtual=False, clock=lambda: self.now)

    def run(self) -> None:
        tally = self.tally()
        for job in self.jobs:
            load = estimate.load([job], self.speeds, "sim")
            tally.begin(job.title, load, again=False)
            speed = self.speeds.of(job.shape).middle / self.slower
            length = job.seconds or job.amount / speed
            for part in range(101):
                self.told.append((self.now, tally.news(Progress(part / 101))))
                self.now += length / 101
            tally.end(SpeedPoint(job.shape, job.amount or int(speed * length), length))


@pytest.mark.parametrize("slower", [10.0, 1.0, 0.2])
def test_progress_falls_only_where_it_says_so_and_the_time_left_converges(slower: float) -> None:
    fake = Fake(slower)
    fake.run()
    assert len(fake.told) == 9 * 101
    for (_, one), (_, other) in zip(fake.told, fake.told[1:], strict=False):
        assert one.fraction is not None and other.fraction is not None
        if other.fraction < one.fraction - 0.01:
            assert "re-estimated" in other.text
    for at, news in fake.told[len(fake.told) // 2 :]:
        left = fake.now - at
        assert news.eta_s is not None
        # Of random writes by amount nothing is known before the first of them.
        if left > 1:
            assert news.eta_s == pytest.approx(left, rel=0.35), (at, news)
    at, news = fake.told[-102]
    assert news.eta_s == pytest.approx(fake.now - at, rel=0.1)
    said = {text for _, news in fake.told if (text := news.text.partition("re-estimated: ")[2])}
    expected = {10.0: {"slower than planned"}, 1.0: set(), 0.2: {"faster than planned"}}
    assert said == expected[slower]


def test_a_simulated_run_learns_the_speed_of_virtual_time() -> None:
    fake = Fake(10.0)
    clock = [0.0]
    tally = RunTally(
        estimate.load(fake.jobs, fake.speeds, "sim"),
        fake.speeds,
        virtual=True,
        clock=lambda: clock[0],
    )
    wall = 0.001
    """Seconds of ours for one of the drive's."""
    for job in fake.jobs:
        tally.begin(job.title, estimate.load([job], fake.speeds, "sim"), again=False)
        speed = fake.speeds.of(job.shape).middle / 10
        length = job.seconds or job.amount / speed
        clock[0] += wall * length
        tally.end(SpeedPoint(job.shape, int(speed * length), length))
        if job.key == "again":
            news = tally.news(Progress(None))
            left = wall * fake.jobs[-1].amount / (fake.speeds.of(fake.jobs[-1].shape).middle / 10)
            assert news.eta_s == pytest.approx(left, rel=0.05)


# --- the command


def test_a_simulated_drives_endurance_is_told_before_write_amplification(cli: Cli) -> None:
    """Random writes cost their copies too: the share of a run may come to several times that."""
    said = cli("test", "lab-reference", "-p", "recovery", "--plan", "--set", "capacity=64MiB")
    assert "(its flash, 3,000 cycles, before write amplification)" in said.out


@needs_fio()
def test_a_plan_of_a_device_says_what_would_be_refused_and_opens_nothing_for_writing(
    cli: Cli, loop: Loop, tmp_path: Path
) -> None:
    before = loop.backing.stat()
    words = ("test", loop.path, "-p", "pts-wsat", "--plan", "--tbw", "600", "--out", tmp_path)
    said = cli(*words)
    assert said.status == 0
    assert f"--destroy {loop.name}" in said.out and "would be refused" in said.out
    assert "of the endurance of 600 TB (--tbw)" in said.out
    named = cli(*words, "--destroy", loop.name, "--json", "-")
    document = json.loads(named.out)
    assert named.status == 0 and document["refused"] is None
    assert document["seconds_low"] < document["seconds_high"]
    assert document["bytes_low"] < document["bytes_high"]
    assert document["endurance_share_low"] == document["bytes_low"] / 600e12
    assert "no speed known" in document["assumption"]
    after = loop.backing.stat()
    assert (after.st_mtime_ns, after.st_blocks) == (before.st_mtime_ns, before.st_blocks)
    assert not list(tmp_path.glob("2*"))


@needs_fio()
def test_a_plan_of_a_file_says_what_would_be_refused(cli: Cli, tmp_path: Path) -> None:
    mine = tmp_path / "mine.bin"
    mine.write_bytes(b"mine")
    said = cli("test", mine, "-p", "pts-wsat", "--plan", "--json", "-", "--size", "64m")
    assert said.status == 0
    assert "--use-existing-file" in json.loads(said.out)["refused"]
    large = cli("test", tmp_path / "new.bin", "-p", "pts-wsat", "--plan", "--size", "900t")
    assert large.status == 0 and "does not fit" in large.out
    assert mine.read_bytes() == b"mine" and not (tmp_path / "new.bin").exists()


def test_a_plan_of_what_is_left_leaves_out_what_is_done(cli: Cli, tmp_path: Path) -> None:
    rig = tmp_path / "small.toml"
    rig.write_text(small_protocol.RIG)
    store = tmp_path / "runs"
    count = 0

    def stop(_news: Progress) -> bool:
        nonlocal count
        count = sum(len(p.read_text().splitlines()) for p in store.glob("*/journal.ndjson"))
        return count < 12

    order = ProtocolOrder(find("pts-iops"), resolve(rig), quick=True)
    with pytest.raises(Interrupted):
        begin(
            order,
            RunStore(store),
            progress=stop,
            notice=print,
            announce=lambda _what: None,
        )
    whole = cli("test", rig, "-p", "pts-iops", "--quick", "--plan", "--json", "-")
    (run,) = [one.name for one in store.iterdir() if one.is_dir()]
    left = cli("resume", run, "--plan", "--json", "-", "--out", store)
    assert left.status == 0, left.err
    a, b = json.loads(whole.out), json.loads(left.out)
    assert b["steps_done"] == count
    assert (a["steps_low"] - b["steps_low"], a["steps_high"] - b["steps_high"]) == (count, count)
    assert run in b["assumption"]
    assert b["seconds_low"] < a["seconds_low"]


def test_a_wrong_speed_or_profile_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    plan_ = ("test", tmp_path / "f.bin", "-p", "pts-wsat", "--plan", "--size", "64m")
    for more, words in (
        (("--assume-speed", "0"), "expected a speed above 0"),
        (("--like", "demo-cliant"), 'did you mean "demo-client"?'),
        (("--like", "demo-client", "--assume-speed", "5iops"), "give one"),
        (("--tbw", "many"), "expected a size such as 600TB"),
    ):
        said = cli(*plan_, *more)
        assert said.status == 2 and said.out == "" and words in said.err
        assert len(said.err.splitlines()) == 1


@needs_fio()
def test_a_size_is_no_option_of_a_drive(cli: Cli, loop: Loop) -> None:
    said = cli("test", loop.path, "--protocol", "fsync", "--size", "16m", "--plan")
    assert said.status == 2
    assert "--size is that of a file" in said.err
