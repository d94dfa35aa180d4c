"""The protocol engine: every step once, whatever happens in between, on any target."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import small_protocol
from conftest import PATIENCE_S, Loop, Outcome, needs_fio
from scheduling import LONG
from ssdlab import protocols, safety
from ssdlab.checks import examine_run
from ssdlab.engine import estimate, findings, runner, runs
from ssdlab.engine.findings import ProtocolRun
from ssdlab.engine.plans import Announcement, ProtocolOrder, plan
from ssdlab.engine.records import RoundsRecord
from ssdlab.engine.runs import begin, go_on
from ssdlab.engine.setup import MIB, ProtocolParameter, Setup
from ssdlab.engine.speed import GUESS, WITHIN, assumed
from ssdlab.engine.steps import Idle, Job, Purge, Rounds, Step, Then, Trim
from ssdlab.errors import ExperimentError, InputError, Interrupted, RefusedError, SsdlabError
from ssdlab.fio import surroundings
from ssdlab.progress import Progress
from ssdlab.protocols import find
from ssdlab.rig import resolve
from ssdlab.store import RunStore, open_run
from ssdlab.store.folder import FINDINGS, JOURNAL, JournalEntry, RunFolder
from ssdlab.target import Fio, Sim, SimSession, session

pytestmark = pytest.mark.usefixtures("short_fio")

PROGRAM = Path(small_protocol.__file__)
KILLS = 10 if LONG else 5


@pytest.fixture
def rig(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(small_protocol.RIG)
    return path


def on(target: Path | str, **more: object) -> ProtocolOrder:
    """The small protocol on a target."""
    return replace(small_protocol.order_of(target), **more)  # type: ignore[arg-type]


def run(order: ProtocolOrder, store: Path, *, steps: int | None = None) -> ProtocolRun:
    """Runs an order; stopped while the step after ``steps`` is going on, if that is given."""
    said: list[str] = []
    done = begin(
        order,
        RunStore(store),
        progress=stop_after(store, steps),
        notice=said.append,
        announce=lambda _what: None,
        examine=examine_run,
    )
    assert done is not None
    return done


def resume(folder: RunFolder, said: list[str] | None = None) -> ProtocolRun:
    """Goes on to the end."""
    return go_on(
        open_run(folder.path),
        lambda _name: small_protocol.PROTOCOL,
        progress=lambda _news: True,
        notice=([] if said is None else said).append,
        examine=examine_run,
    )


def stop_after(store: Path, steps: int | None):  # type: ignore[no-untyped-def]
    """A progress callback that says stop once so many steps are in a journal of the store."""

    def progress(_news: Progress) -> bool:
        if steps is None:
            return True
        return (
            sum(len(path.read_text().splitlines()) for path in store.glob(f"*/{JOURNAL}")) < steps
        )

    return progress


def only(store: Path) -> RunFolder:
    """The only run of a store."""
    (path,) = [one for one in store.iterdir() if one.is_dir()]
    return open_run(path)


def steps(folder: RunFolder) -> list[JournalEntry]:
    """The steps of a run, without stops and resumptions."""
    return [one for one in folder.journal() if one.kind not in ("stop", "resume")]


def content(folder: RunFolder) -> dict[str, bytes]:
    """What must be the same however often a simulated run was stopped."""
    found = {
        one.key: (folder.path / one.file).read_bytes() for one in steps(folder) if one.kind == "job"
    }
    return found | {FINDINGS: (folder.path / FINDINGS).read_bytes()}


def test_a_simulated_run_comes_to_the_same_bytes_each_time(rig: Path, tmp_path: Path) -> None:
    one = run(on(rig), tmp_path / "one").folder
    two = run(on(rig), tmp_path / "two").folder
    assert content(one) == content(two)
    assert one.manifest.status == "complete"
    kinds = [entry.kind for entry in steps(one)]
    assert kinds[:2] == ["purge", "job"] and kinds[-3:] == ["idle", "trim", "job"]
    assert not one.checkpoints()


def test_another_seed_comes_to_other_bytes(rig: Path, tmp_path: Path) -> None:
    one = run(on(rig), tmp_path / "one").folder
    two = run(on(rig, seed=8), tmp_path / "two").folder
    assert content(one) != content(two)


@pytest.mark.parametrize("after", [1, 2, 5, 9])
def test_a_simulated_run_that_was_stopped_comes_to_the_same_bytes(
    rig: Path, tmp_path: Path, after: int
) -> None:
    whole = run(on(rig), tmp_path / "whole").folder
    with pytest.raises(Interrupted, match="ssdlab resume"):
        run(on(rig), tmp_path / "parts", steps=after)
    stopped = only(tmp_path / "parts")
    assert stopped.manifest.status == "stopped"
    assert len(steps(stopped)) == after
    assert findings.read(stopped).findings.judgement.sentences
    assert content(resume(stopped).folder) == content(whole)


def test_a_simulated_run_goes_on_from_a_kept_state(
    rig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssdlab.engine.runner.CHECKPOINT_EVERY_S", 0.0)
    monkeypatch.setattr("ssdlab.engine.runner.CHECKPOINT_COST", 0.0)
    whole = run(on(rig), tmp_path / "whole").folder
    with pytest.raises(Interrupted):
        run(on(rig), tmp_path / "parts", steps=6)
    stopped = only(tmp_path / "parts")
    assert [number for number, _ in stopped.checkpoints()] == [6]
    again: list[str] = []
    monkeypatch.setattr(
        "ssdlab.engine.runner.Execution._compare", lambda _self, entry, _a: again.append(entry.key)
    )
    assert content(resume(stopped).folder) == content(whole)
    assert again == []


def test_a_kept_state_that_is_damaged_is_done_without(
    rig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssdlab.engine.runner.CHECKPOINT_EVERY_S", 0.0)
    monkeypatch.setattr("ssdlab.engine.runner.CHECKPOINT_COST", 0.0)
    whole = run(on(rig), tmp_path / "whole").folder
    with pytest.raises(Interrupted):
        run(on(rig), tmp_path / "parts", steps=6)
    stopped = only(tmp_path / "parts")
    ((_, state),) = stopped.checkpoints()
    state.write_bytes(state.read_bytes()[:-7])
    assert content(resume(stopped).folder) == content(whole)


def test_a_result_that_comes_out_otherwise_ends_the_run(rig: Path, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        run(on(rig), tmp_path, steps=6)
    stopped = only(tmp_path)
    stopped.manifest.seed = 8
    stopped.set_status("stopped")
    with pytest.raises(ExperimentError, match="another result than before"):
        resume(stopped)


@pytest.mark.parametrize("target", ["rig", pytest.param("file", marks=needs_fio())])
def test_a_run_killed_time_and_again_loses_and_repeats_nothing(
    rig: Path, tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = rig if target == "rig" else tmp_path / "scratch.bin"
    store = tmp_path / "killed"
    store.mkdir()
    random_ = random.Random(11)
    began: list[str] = []
    killed = 0
    # Of a rig, so much that most kills come in the midst of a step.
    amount = 48 if target == "rig" else 4
    environment = os.environ | {"SMALL_AMOUNT": str(amount)}
    command = ["begin", str(store), str(where)]
    for _ in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *command], env=environment, start_new_session=True
        )
        wait_for_journal(store, process, len(began))
        time.sleep(random_.uniform(0, 0.05 if target == "rig" else 0.15))
        process.send_signal(signal.SIGKILL)
        process.wait()
        folder = only(store)
        lines = [one.began for one in steps(folder)]
        assert lines[: len(began)] == began, "a finished step was measured again"
        began = lines
        command = ["resume", str(folder.path)]
        killed += 1
        if folder.manifest.status == "complete":
            break
    assert killed > KILLS / 2
    if folder.manifest.status != "complete":
        done = subprocess.run(
            [sys.executable, str(PROGRAM), *command],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    folder = only(store)
    assert folder.manifest.status == "complete"
    assert [one.began for one in steps(folder)][: len(began)] == began
    keys = [one.key for one in steps(folder)]
    assert len(keys) == len(set(keys))
    if target == "rig":
        monkeypatch.setattr(small_protocol, "AMOUNT", amount << 20)
        assert content(folder) == content(run(on(rig), tmp_path / "whole").folder)
    else:
        assert not where.exists()


def wait_for_journal(store: Path, process: subprocess.Popen[bytes], lines: int) -> None:
    """Waits until a run has finished a step more."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and process.poll() is None:
        found = [path.read_text().count("\n") for path in store.glob(f"*/{JOURNAL}")]
        if found and found[0] > lines:
            return
        time.sleep(0.01)


@needs_fio()
def test_ctrl_c_ends_a_run_on_a_file_in_order(tmp_path: Path) -> None:
    store, file = tmp_path / "runs", tmp_path / "scratch.bin"
    store.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), "begin", str(store), str(file)],
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_journal(store, process, 2)  # type: ignore[arg-type]
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, said
    assert "ssdlab resume" in said and str(file) in said
    stopped = only(store)
    assert stopped.manifest.status == "stopped"
    assert stopped.journal()[-1].kind == "stop"
    told: list[str] = []
    folder = resume(stopped, told).folder
    assert "left alone for" in told[0] and "cut short" not in told[0]
    assert "changed by somebody else" not in told[0]
    assert folder.manifest.status == "complete"
    assert not file.exists()


@needs_fio()
def test_a_clock_that_is_put_back_lengthens_no_step_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PutBack(datetime):
        asked = 0

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            cls.asked += 1
            return datetime.now(tz) - timedelta(hours=cls.asked)

    for module in (runner, runs):
        monkeypatch.setattr(module, "datetime", PutBack)
    with pytest.raises(Interrupted):
        run(on(tmp_path / "scratch.bin", size=32 * MIB), tmp_path / "runs", steps=4)
    stopped = only(tmp_path / "runs")
    for entry in stopped.journal():
        took = datetime.fromisoformat(entry.ended) - datetime.fromisoformat(entry.began)
        assert timedelta(0) <= took < timedelta(minutes=1)
    told: list[str] = []
    resume(stopped, told)
    assert "since then the clock was put back" in told[0]


@needs_fio()
def test_what_happened_to_a_file_meanwhile_is_said(tmp_path: Path) -> None:
    file = tmp_path / "scratch.bin"
    with pytest.raises(Interrupted):
        run(on(file, size=32 * MIB), tmp_path / "runs", steps=4)
    stopped = only(tmp_path / "runs")
    before = {entry.key for entry in stopped.journal()}
    with file.open("r+b") as opened:
        opened.write(b"somebody else")
    told: list[str] = []
    folder = resume(stopped, told).folder
    assert "the file has been changed by somebody else" in told[0]
    assert any("changed by somebody else" in one.note for one in folder.journal())
    (check,) = [one for one in findings.read(folder).findings.checks if one.name == "resumed"]
    assert check.status == "doubt" and check.affects
    assert not set(check.affects) & before


def smart(written: int) -> dict[str, Any]:
    """What smartctl tells of a drive to which so many bytes were written."""
    log = {"data_units_written": written // 512_000, "percentage_used": 1}
    return {
        "smartctl": {"version": [7, 3], "exit_status": 0},
        "device": {"protocol": "NVMe"},
        "model_name": "A drive",
        "smart_status": {"passed": True},
        "nvme_smart_health_information_log": log,
    }


@pytest.mark.parametrize(
    ("boot", "before", "after", "told"),
    [
        ("b", 10**9, 10**9, []),
        ("b", 10**9, 5 * 10**9, ["4.00 GB were written to the drive by others"]),
        ("b", None, None, ["what else was written to the drive is not known"]),
        ("a", None, None, []),  # the kernel counted on
    ],
)
def test_writes_of_others_are_seen_after_a_restart_by_the_drive_s_own_counter(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    boot: str,
    before: int | None,
    after: int | None,
    told: list[str],
) -> None:
    file = tmp_path / "file"
    file.touch()
    with safety.hold_file(file) as held:
        pass
    open_ = session.RealSession(Fio(file), held, 0, "disk")
    monkeypatch.setattr("ssdlab.safety.medium.fingerprint", lambda _descriptor, _size: [])

    def is_now(boot: str, written: int | None, sectors: int) -> None:
        answer = None if written is None else smart(written)
        monkeypatch.setattr("ssdlab.system.System.boot", boot)
        monkeypatch.setattr(session, "_sectors_written", lambda _disk: sectors)
        monkeypatch.setattr(surroundings, "smart", lambda _disk, *, redact: answer)

    is_now("a", before, 5000)
    state = json.loads(json.dumps(open_.state()))
    is_now(boot, after, 5000 if boot == "a" else 3)
    assert open_.changes(state) == told


@needs_fio()
def test_a_run_whose_file_has_gone_cannot_go_on(tmp_path: Path) -> None:
    file = tmp_path / "scratch.bin"
    with pytest.raises(Interrupted):
        run(on(file, size=32 * MIB), tmp_path / "runs", steps=3)
    file.unlink()
    with pytest.raises(InputError, match="begin a new run"):
        resume(only(tmp_path / "runs"))


@needs_fio()
def test_a_file_that_was_there_is_neither_taken_nor_removed(tmp_path: Path) -> None:
    file = tmp_path / "mine.bin"
    file.write_bytes(b"mine" * 1000)
    with pytest.raises(InputError, match="--use-existing-file"):
        begin(
            on(file, size=32 * MIB),
            RunStore(tmp_path / "runs"),
            progress=lambda _news: True,
            notice=print,
            announce=lambda _what: pytest.fail("announced what cannot be done"),
        )
    assert file.read_bytes() == b"mine" * 1000
    existing = replace(on(file, size=32 * MIB), target=resolve(file, use_existing=True))
    assert run(existing, tmp_path / "runs").folder.manifest.status == "complete"
    assert file.exists()


@needs_fio()
def test_a_block_device_is_only_written_when_it_is_named(loop: Loop, tmp_path: Path) -> None:
    store = tmp_path / "runs"
    for destroy in (None, "another"):
        order = replace(on(loop.path), target=resolve(loop.path, destroy=destroy))
        with pytest.raises(RefusedError):
            run(order, store)
        assert loop.backing.read_bytes().strip(b"\0") == b""
    assert not list(store.glob(f"*/{JOURNAL}"))
    order = replace(on(loop.path), target=resolve(loop.path, destroy=loop.name))
    done = run(order, store)
    assert done.folder.manifest.kind == "device"
    assert [one.kind for one in steps(done.folder)][-2:] == ["trim", "job"]


def test_a_complete_run_does_not_go_on(rig: Path, tmp_path: Path) -> None:
    done = run(on(rig), tmp_path)
    with pytest.raises(InputError, match="is complete"):
        resume(done.folder)


def test_a_run_that_goes_on_is_not_called_killed(rig: Path, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        run(on(rig), tmp_path, steps=3)
    stopped = only(tmp_path)
    (stopped.path / "findings.json").unlink(missing_ok=True)
    stopped.set_status("running")
    with pytest.raises(InputError, match="was killed before it found anything"):
        findings.read(stopped)
    with stopped.locked(), pytest.raises(InputError, match="runs still"):
        findings.read(stopped)


def test_two_cannot_go_on_with_one_run(rig: Path, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        run(on(rig), tmp_path, steps=3)
    stopped = only(tmp_path)
    with stopped.locked(), pytest.raises(InputError, match="another process"):
        resume(stopped)


def test_a_line_of_the_journal_cut_by_a_power_failure_is_a_step_not_finished(
    rig: Path, tmp_path: Path
) -> None:
    whole = run(on(rig), tmp_path / "whole").folder
    with pytest.raises(Interrupted):
        run(on(rig), tmp_path / "parts", steps=5)
    stopped = only(tmp_path / "parts")
    with (stopped.path / JOURNAL).open("a") as file:
        file.write('{"number": 6, "key": "round0')
    assert content(resume(stopped).folder) == content(whole)


def test_another_version_does_not_go_on_with_a_simulated_run(rig: Path, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        run(on(rig), tmp_path, steps=3)
    stopped = only(tmp_path)
    stopped.manifest.version = "0.0.1"
    stopped.set_status("stopped")
    with pytest.raises(InputError, match="begin a new run"):
        resume(stopped)


def test_the_estimate_adds_up_fills_times_and_rounds() -> None:
    setup = Setup(1 << 30, "file", 1 << 30, {"rounds": 8})
    job = setup.job("mix", "", "randrw", "4k", seconds=60, read_percent=70)
    fast, slow = 400e6 * WITHIN, 400e6 / WITHIN
    speeds = assumed("400MB/s,97656.25iops")
    one = estimate.of([setup.fill(times=2), job, Idle("rest", seconds=30)], speeds, "sim")
    # The one I/O in flight at the end of the time is waited for.
    late = 4096 / slow
    assert one.soon == pytest.approx((90 + (2 << 30) / fast, 90 + (2 << 30) / slow + late))
    assert one.never == one.soon
    assert one.written == pytest.approx(((2 << 30) + 18 * slow, (2 << 30) + 18 * fast), rel=1e-5)
    rounds = estimate.of([Rounds("r", "", lambda n: [job], [], most=25)], speeds, "sim")
    assert (rounds.steps_min, rounds.steps_max) == (5, 25)
    assert rounds.soon == pytest.approx((300, 300 + 5 * late))
    assert rounds.never == pytest.approx((1500, 1500 + 25 * late))


def test_rounds_beyond_the_fewest_are_reckoned_with_when_they_come(
    rig: Path, tmp_path: Path
) -> None:
    """As a round begins, most of its own share of all rounds up to it is left."""
    shares: dict[int, float] = {}

    def progress(news: Progress) -> bool:
        found = re.match(r"round (\d+) of", news.text)
        if found and news.fraction is not None:
            shares.setdefault(int(found[1]), news.fraction)
        return True

    never = replace(small_protocol.PROTOCOL, plan=small_protocol.never_steady)
    begin(
        on(rig, protocol=never, given={"rounds": "9"}),
        RunStore(tmp_path),
        progress=progress,
        notice=print,
        announce=lambda _what: None,
    )
    assert len(shares) == 9
    assert all(share <= 1 - 1 / (number + 2) for number, share in shares.items()), shares


def test_a_rest_in_virtual_time_weighs_nothing_in_progress() -> None:
    setup = Setup(1 << 30, "sim", 1 << 30)
    job = setup.job("job", "", "randread", "4k", seconds=60)
    steps: list[Step] = [
        job,
        Idle("rest", seconds=3600),
        Rounds("r", "", lambda n: [job], [], most=25),
    ]
    virtual = estimate.load(steps, GUESS, "sim")
    assert virtual == {None: 60 * 6}
    real = estimate.load(steps, GUESS, "device")
    assert real == {None: pytest.approx(60 * 6 + 3600 + 6 * estimate.OVERHEAD_S.middle)}


def test_a_quick_look_takes_a_minutes_worth_in_a_second() -> None:
    setup = Setup(1 << 30, "device", 1 << 30, divisor=60, quick=True)
    assert setup.seconds(60) == 1.0
    assert setup.rounds == 7
    assert replace(setup, kind="sim").seconds(6) == 0.1


@pytest.mark.parametrize(
    ("default", "text"), [(3, "x"), (3, "-1"), (2.0, "nan"), (2.0, "inf"), (3, "2.5")]
)
def test_a_parameter_of_the_wrong_kind_is_refused(default: float, text: str) -> None:
    with pytest.raises(InputError, match="expected a"):
        ProtocolParameter("p", default, "").read(text)


def test_steadiness_of_rounds_is_the_rule_of_the_pts() -> None:
    # The published sample, and one that climbs.
    sample = [228.90, 240.21, 240.60, 240.71, 240.71]
    record = RoundsRecord("r", "", 5, {"iops": sample}, {"iops": "IOPS"}, 5, 25)
    assert record.steady and list(record.window_rounds()) == [1, 2, 3, 4, 5]
    climbing = replace(record, values={"iops": [100, 110, 120, 130, 140]})
    assert not climbing.steady
    assert not replace(record, values={"a": sample, "b": [100, 110, 120, 130, 140]}).steady


def test_wrong_orders_are_one_sentence(rig: Path, tmp_path: Path) -> None:
    for order in (
        on(rig, size=1 << 20),
        on(tmp_path / "x.bin", overrides={"capacity": "1GiB"}),
        on(tmp_path / "x.bin", scale=10),
        on(rig, scale=10),
        on(rig, given={"round": "3"}),
        on(rig, given={"rounds": "many"}),
    ):
        with pytest.raises(SsdlabError) as caught:
            run(order, tmp_path / "runs")
        assert caught.value.exit_status == 2
        assert "\n" not in caught.value.message
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").glob("2*"))


@pytest.mark.parametrize("given", [{"bs": "banana"}, {"depth": "0"}, {"seconds": "0"}, {"bs": "7"}])
def test_a_job_that_cannot_be_is_told_before_anything_begins(
    given: dict[str, str], rig: Path, tmp_path: Path
) -> None:
    told: list[Announcement] = []
    for target in (rig, tmp_path / "scratch.bin"):
        with pytest.raises(InputError) as caught:
            begin(
                ProtocolOrder(find("consistency"), resolve(target), given),
                RunStore(tmp_path / "runs"),
                progress=lambda _news: True,
                notice=print,
                announce=told.append,
            )
        assert "\n" not in caught.value.message
    assert not told
    assert not list(tmp_path.glob("runs/2*")) and not (tmp_path / "scratch.bin").exists()


def test_a_run_that_fails_in_its_first_step_leaves_nothing(
    rig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_session: object, _progress: object) -> str:
        raise ExperimentError("the drive is gone")

    monkeypatch.setattr(SimSession, "purge", fail)
    with pytest.raises(ExperimentError, match="the drive is gone"):
        run(on(rig), tmp_path / "runs")
    assert not list((tmp_path / "runs").glob("2*"))


def test_a_disk_that_is_full_at_the_end_says_that_the_run_can_go_on(
    rig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_folder: object, _findings: object) -> None:
        raise ExperimentError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("ssdlab.engine.runs.write", full)
        with pytest.raises(
            ExperimentError, match=r"full; \d+ finished steps are kept: .* goes on$"
        ):
            run(on(rig), tmp_path / "parts")
    whole = run(on(rig), tmp_path / "whole").folder
    assert content(resume(only(tmp_path / "parts")).folder) == content(whole)


def test_a_rig_without_flash_has_no_endurance(tmp_path: Path) -> None:
    text = '[device]\nkind = "null"\ncapacity = "64MiB"\nservice_time = "100us"\nservers = 4\n'
    order = ProtocolOrder(small_protocol.PROTOCOL, Sim("null", text))
    assert plan(order, RunStore(tmp_path)).endurance_share() is None
    assert not os.listdir(tmp_path)


def test_findings_read_back_as_they_were_written(rig: Path, tmp_path: Path) -> None:
    done = run(on(rig), tmp_path)
    read = findings.read(done.folder)
    assert read.manifest.status == "complete" and read.protocol == "small"
    assert list(read.findings.judgement.numbers) == list(done.findings.judgement.numbers)
    assert read.findings.rounds[0].steady == (read.findings.rounds[0].count < 8)
    document = read.document()
    assert document["findings"]["judgement"]["numbers"][0]["unit"] == "IOPS"


LOOSE: Callable[..., Step] = Idle
"""For what mypy refuses."""


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (Idle, ("rest", 30), "Idle: title: found 30, expected text"),
        (lambda key: LOOSE(key, seconds="1 s"), ("r",), "Idle: seconds: found '1 s', expected a"),
        (Purge, (30,), "Purge: key: found 30, expected text"),
        (Purge, ("purge", 30), "Purge: title: found 30, expected text"),
        (Trim, ("trim", 0, 4096), "Trim: title: found 0, expected text"),
        (Trim, ("t", "t", 0, "4k"), "Trim: length: found '4k', expected a whole number"),
        (Rounds, ("r", len, "r", []), "Rounds: title: found <built-in function len>"),
        (Rounds, ("r", "r", [], []), "Rounds: jobs: found [], expected a function"),
        (Then, ("then", []), "Then: make: found [], expected a function"),
        (Job, ("j", "title", "[j]\n", "1 s"), "Job: seconds: found '1 s', expected a number"),
    ],
)
def test_a_step_that_is_given_one_thing_for_another_says_so(
    kind: Callable[..., Step], given: tuple[object, ...], said: str
) -> None:
    with pytest.raises(InputError) as error:
        kind(*given)
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("given", "named", "said"),
    [
        (("rest", "rest"), {}, "Idle (rest): missing 1 required keyword-only argument: 'seconds'"),
        ((), {"key": "rest", "second": 1}, "Idle (rest): got an unexpected keyword argument"),
        ((), {"seconds": 1}, "Idle (without a key): missing 1 required positional argument: 'key'"),
    ],
)
def test_what_a_step_lacks_is_told_in_a_sentence(
    given: tuple[object, ...],
    named: dict[str, object],
    said: str,
    cli: Callable[..., Outcome],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A file in the folder of protocols is one.
    (tmp_path / "lacking.py").write_text(
        "from ssdlab.answer import Section\n"
        "from ssdlab.engine.protocol import procedure\n"
        "from ssdlab.engine.steps import Idle\n"
        "PROTOCOLS = procedure('everyday', 'lacking', 'Lacks', 'lacks', 'ours',\n"
        f"    lambda setup: [Idle(*{given!r}, **{named!r})], lambda records, setup: Section())\n"
    )
    monkeypatch.setattr(protocols, "__path__", [str(tmp_path)])
    protocols.protocols.cache_clear()
    try:
        refused = cli("test", "lab-reference", "-p", "lacking", "--out", tmp_path / "runs")
    finally:
        protocols.protocols.cache_clear()
        sys.modules.pop("ssdlab.protocols.lacking", None)
    assert refused.status == 2, refused.err
    assert refused.err.startswith(f"ssdlab: {said}") and refused.err.count("\n") == 1
