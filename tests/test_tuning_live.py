"""A drive is set up for a run and everything is put back after it, on a loop device."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ssdlab
from conftest import PATIENCE_S, Cli, Loop, needs_fio
from ssdlab.engine.plans import ProtocolOrder
from ssdlab.engine.runs import begin, go_on
from ssdlab.errors import ExperimentError, InputError, Interrupted
from ssdlab.fio import run as fio_run
from ssdlab.leftovers import folder
from ssdlab.progress import Progress
from ssdlab.protocols import find
from ssdlab.safety.uses import openers_of
from ssdlab.store import RunStore, open_run
from ssdlab.tuning import SETTINGS
from ssdlab.tuning.means import MEANS, Means
from ssdlab.tuning.model import Knob

pytestmark = [
    pytest.mark.real,
    pytest.mark.root,
    pytest.mark.usefixtures("short_fio"),
    needs_fio(),
]


SETUP = "pts,nr-requests=64,read-ahead=256"
JOB = "[a]\nrw=randwrite\nbs=4k\nioengine=psync\nsize=8m\n"
LONG = "[a]\nrw=randwrite\nbs=4k\nioengine=psync\ntime_based\nruntime=60\nrate_iops=50\n"


class Queue:
    """The queue of a loop device, as somebody has set it before."""

    def __init__(self, loop: Loop) -> None:
        self.folder = Path(f"/sys/class/block/{loop.name}/queue")
        for name, value in (
            ("scheduler", "mq-deadline"),
            ("nr_requests", "100"),
            ("iosched/read_expire", "900"),
            ("read_ahead_kb", "512"),
        ):
            (self.folder / name).write_text(value)
        self.before = self.values()

    def values(self) -> dict[str, str]:
        """What is to be put back."""
        names = ("scheduler", "nr_requests", "read_ahead_kb", "nomerges", "rq_affinity")
        found = {name: (self.folder / name).read_text().strip() for name in names}
        expire = self.folder / "iosched/read_expire"
        return found | {"read_expire": expire.read_text().strip() if expire.exists() else ""}

    @property
    def is_set_up(self) -> bool:
        """Whether it is as SETUP says."""
        now = self.values()
        return "[none]" in now["scheduler"] and (now["nr_requests"], now["read_ahead_kb"]) == (
            "64",
            "256",
        )


@pytest.fixture
def queue(loop: Loop) -> Queue:
    found = Queue(loop)
    assert "[mq-deadline]" in found.before["scheduler"]
    return found


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.fio"
    path.write_text(JOB)
    return path


def wait_for(what: Callable[[], bool]) -> None:
    """Until it holds."""
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.05)


def fios(path: Path) -> list[int]:
    """The fio processes that have a device open."""
    return [one.pid for one in openers_of(path) if one.program == "fio"]


def heed_signals() -> None:
    """What this session ignores, a new process would ignore too."""
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, signal.SIG_DFL)


@contextlib.contextmanager
def running(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """ssdlab in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ssdlab", *(str(one) for one in arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_signals,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def end_fio(loop: Loop) -> None:
    """An ssdlab that was killed leaves fio running for a moment."""
    for pid in fios(loop.path):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not fios(loop.path))


def long_job(tmp_path: Path) -> Path:
    path = tmp_path / "long.fio"
    path.write_text(LONG)
    return path


def settings(setup: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The records by setting."""
    return {one["setting"]: one for one in setup["settings"]}


def test_a_run_records_what_was_set_and_puts_it_back(loop: Loop, queue: Queue) -> None:
    result = ssdlab.run(JOB, on=loop.path, destroy=loop.name, setup=SETUP)
    around = result.ssdlab["surroundings"]
    found = settings(around["setup"])
    scheduler = {"before": "mq-deadline", "set": "none", "after": "none", "why_not": None}
    assert scheduler.items() <= found["scheduler"].items()
    assert found["scheduler"]["place"] == f"/sys/class/block/{loop.name}/queue/scheduler"
    assert (found["nr-requests"]["before"], found["nr-requests"]["after"]) == ("100", "64")
    assert found["write-cache"]["why_not"]
    # The drive is described as it was while it was measured.
    assert (around["drive"]["scheduler"], around["drive"]["nr_requests"]) == ("none", 64)
    assert queue.values() == queue.before


def test_without_setup_nothing_is_set_or_recorded(loop: Loop, queue: Queue) -> None:
    result = ssdlab.run(JOB, on=loop.path, destroy=loop.name)
    assert "setup" not in result.ssdlab["surroundings"]
    assert result.ssdlab["surroundings"]["drive"]["scheduler"] == "mq-deadline"
    assert not folder().exists()


def test_a_run_that_fails_puts_everything_back(
    loop: Loop, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        assert queue.is_set_up
        raise ExperimentError("fio broke off")

    monkeypatch.setattr(fio_run, "run_fio", fail)
    with pytest.raises(ExperimentError, match="broke off"):
        ssdlab.run(JOB, on=loop.path, destroy=loop.name, setup=SETUP)
    assert queue.values() == queue.before
    assert list(folder().glob("*.json")) == []


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_stopped_puts_everything_back(
    loop: Loop, queue: Queue, tmp_path: Path, sign: signal.Signals
) -> None:
    with running(
        "run", long_job(tmp_path), "--on", loop.path, "--destroy", loop.name, "--setup", SETUP
    ) as process:
        wait_for(lambda: queue.is_set_up and bool(fios(loop.path)))
        process.send_signal(sign)
        _, said = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130, said
    assert queue.values() == queue.before
    assert list(folder().glob("*.json")) == []


def test_after_a_kill_the_next_command_on_the_drive_puts_everything_back(
    loop: Loop, queue: Queue, tmp_path: Path, cli: Cli
) -> None:
    for command in (
        ("audit", loop.path),
        ("setup", loop.path, "--restore"),
        ("setup", "--restore"),
    ):
        with running(
            "run", long_job(tmp_path), "--on", loop.path, "--destroy", loop.name, "--setup", SETUP
        ) as process:
            wait_for(lambda: queue.is_set_up and bool(fios(loop.path)))
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE_S)
        end_fio(loop)
        assert cli("audit", "/proc/self").status == 2  # another place
        assert queue.is_set_up
        done = cli(*command)
        assert done.status == 0
        assert "restored what a killed run" in done.out + done.err
        assert queue.values() == queue.before
        assert "restored" not in cli("audit", loop.path).err


def test_two_runs_at_once_do_not_put_back_over_each_other(
    loop: Loop, queue: Queue, tmp_path: Path
) -> None:
    reading = tmp_path / "read.fio"
    reading.write_text(LONG.replace("randwrite", "randread"))
    arguments = ("run", reading, "--on", loop.path, "--setup", SETUP)
    with running(*arguments) as first:
        wait_for(lambda: queue.is_set_up and bool(fios(loop.path)))
        with running(*arguments) as second:
            wait_for(lambda: len(list(folder().glob("*.json"))) == 2)
            first.send_signal(signal.SIGINT)
            first.communicate(timeout=PATIENCE_S)
            assert queue.is_set_up
            second.send_signal(signal.SIGINT)
            second.communicate(timeout=PATIENCE_S)
    assert queue.values() == queue.before


def test_a_file_has_the_drive_below_it_set_up(loop: Loop, queue: Queue, tmp_path: Path) -> None:
    subprocess.run(["mkfs.ext4", "-q", str(loop.path)], check=True)
    point = tmp_path / "mounted"
    point.mkdir()
    subprocess.run(["mount", str(loop.path), str(point)], check=True)
    try:
        result = ssdlab.run(JOB, on=point / "file.bin", setup=SETUP)
        found = settings(result.ssdlab["surroundings"]["setup"])
        assert loop.name in found["scheduler"]["place"]
        assert queue.values() == queue.before
    finally:
        subprocess.run(["umount", str(point)], check=True)


def test_what_is_asked_for_by_name_and_cannot_be_had_is_refused(
    loop: Loop, queue: Queue, job: Path, cli: Cli
) -> None:
    run = ("run", job, "--on", loop.path, "--destroy", loop.name)
    for setup, said in (
        ("read-ahead=8,scheduler=nosuch", "the kernel offers"),
        ("write-cache=on", "no cache that could be switched"),
        ("lba=4096", "only an NVMe drive"),
    ):
        done = cli(*run, "--setup", setup)
        assert done.status == 2, done.err
        assert said in done.err
        assert queue.values() == queue.before


def test_a_format_needs_the_consent_of_a_purge(loop: Loop, job: Path, cli: Cli) -> None:
    done = cli("run", job, "--on", loop.path, "--setup", "lba=4096")
    assert done.status == 3
    assert "formatted to blocks of 4096 bytes" in done.err
    assert "formatted back" in done.err
    reading = job.with_name("read.fio")
    reading.write_text(JOB.replace("randwrite", "randread"))
    assert cli("run", reading, "--on", loop.path, "--setup", "lba=4096").status == 3


@pytest.fixture
def formats(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The formats that the loop device, taken for an NVMe drive, has had one after another."""
    had = ["512"]
    fake = Means(lambda *_: had[-1], lambda _s, _p, value: had.append(value), "drive", str)
    monkeypatch.setitem(MEANS, "nvme-format", fake)
    node = str(loop.path)
    lba = next(one for one in SETTINGS if one.name == "lba")
    other = replace(lba, plan=lambda _subject, value: iter([Knob("nvme-format", node, value)]))
    monkeypatch.setattr("ssdlab.tuning.apply.SETTINGS", (other,))
    return had


def test_a_run_formats_the_drive_both_ways_within_its_claim(
    loop: Loop, formats: list[str], tmp_path: Path, cli: Cli
) -> None:
    for rw in ("randwrite", "randread"):
        job = tmp_path / f"{rw}.fio"
        job.write_text(JOB.replace("randwrite", rw))
        run = ("run", job, "--on", loop.path, "--setup", "lba=4096", "--json", tmp_path / "r.json")
        refused = cli(*run)
        assert refused.status == 3 and formats == ["512"]
        done = cli(*run, "--destroy", loop.name)
        assert done.status == 0, done.err
        assert "formatted back" in done.err
        assert formats == ["512", "4096", "512"]
        found = json.loads((tmp_path / "r.json").read_text())["ssdlab"]["surroundings"]["setup"]
        assert settings(found)["lba"]["after"] == "4096"
        del formats[1:]


def test_a_protocol_that_was_stopped_and_formatted_back_cannot_go_on(
    loop: Loop, formats: list[str], tmp_path: Path
) -> None:
    target = ssdlab.Fio(loop.path, destroy=loop.name, setup="lba=4096")
    steps: list[float] = []

    def stop(_news: Progress) -> bool:
        steps.append(0.0)
        return formats[-1] != "4096" or len(steps) < 3

    store = RunStore(tmp_path / "runs")
    with pytest.raises(Interrupted, match="ssdlab resume"):
        begin(
            ProtocolOrder(find("fsync"), target, quick=True),
            store,
            progress=stop,
            notice=lambda _sentence: None,
            announce=lambda _what: None,
        )
    assert formats == ["512", "4096", "512"]
    folder = open_run(next(store.root.glob("*fsync*")))
    assert folder.manifest.block == 4096
    with pytest.raises(InputError, match="formatted back from blocks of 4096"):
        go_on(folder, find, progress=lambda _news: True, notice=lambda _sentence: None)
    assert formats == ["512", "4096", "512"]


def test_each_run_of_a_comparison_is_set_up(
    loop: Loop, queue: Queue, job: Path, cli: Cli, tmp_path: Path
) -> None:
    done = cli(
        *("ab", loop.path, "--job", job, "--destroy", loop.name, "--setup", "scheduler=kyber"),
        *("--to-b", "true", "--to-a", "true", "--repeats", 2, "--out", tmp_path / "runs", "-q"),
    )
    assert done.status == 0, done.err
    runs = RunStore(tmp_path / "runs").entries()
    assert len(runs) == 4
    for one in runs:
        found = one.result().ssdlab["surroundings"]["setup"]
        assert settings(found)["scheduler"]["after"] == "kyber"
    assert queue.values() == queue.before
    page = tmp_path / "page.html"
    assert cli("report", runs[0].path, "-o", page).status == 0
    assert "kyber (was mq-deadline)" in page.read_text()


def test_a_dry_run_says_what_would_be_set(loop: Loop, queue: Queue, cli: Cli) -> None:
    done = cli("setup", loop.path, "--setup", SETUP, "--dry-run", "--json", "-")
    assert done.status == 0
    found = {one["setting"]: one for one in json.loads(done.out)}
    assert (found["nr-requests"]["before"], found["nr-requests"]["set"]) == ("100", "64")
    assert found["nr-requests"]["after"] is None
    assert queue.values() == queue.before
    table = cli("setup", loop.path, "--dry-run").out
    assert "would become" in table and "mq-deadline" in table


def test_a_plan_says_what_would_be_set(loop: Loop, queue: Queue, cli: Cli) -> None:
    arguments = ("test", loop.path, "-p", "pts-iops", "--quick", "--plan", "--setup", "pts")
    assert "--setup pts would set" in cli(*arguments).out
    assert "--setup pts-client would set" in cli(*arguments, "--param", "settings=client").out
    assert queue.values() == queue.before


def test_a_protocol_is_set_up_as_a_whole_and_again_when_it_goes_on(
    loop: Loop, queue: Queue, tmp_path: Path, cli: Cli
) -> None:
    with running(
        *("test", loop.path, "-p", "fsync", "--quick", "--destroy", loop.name),
        *("--setup", SETUP, "--out", tmp_path / "runs"),
    ) as process:
        journals = tmp_path / "runs"
        wait_for(lambda: any(len(p.read_text()) > 1 for p in journals.glob("*/journal.ndjson")))
        assert queue.is_set_up
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130, said
    assert queue.values() == queue.before
    (manifest,) = journals.glob("*/manifest.json")
    about = json.loads(manifest.read_text())
    assert about["setup"] == SETUP
    assert settings(about["about"]["setup"])["scheduler"]["after"] == "none"
    page = tmp_path / "page.html"
    done = cli("resume", manifest.parent, "--report", page)
    assert done.status == 0, done.err
    assert "setup pts" in done.err
    assert queue.values() == queue.before
    assert "none (was mq-deadline)" in page.read_text()


def test_a_simulated_drive_has_no_setup(cli: Cli, job: Path) -> None:
    done = cli("run", job, "--on", "demo-client", "--setup", "pts")
    assert done.status == 2
    assert "--setup is for real drives" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("setup",), "--dry-run"),
        (("setup", "--dry-run"), "name the drive"),
        (("setup", "demo-client", "--dry-run"), "is for real drives"),
        (("setup", "demo-client", "--restore"), "is a simulated drive"),
        (("setup", "--dry-run", "--restore"), "--dry-run"),
        (("setup", "--restore", "--destroy", "X"), "name the drive"),
        (("setup", "/dev/nosuch", "--dry-run"), "no such device"),
        (("list", "setups"), None),
    ],
)
def test_the_command_answers_wrong_input_in_a_sentence(
    cli: Cli, arguments: tuple[str, ...], said: str | None
) -> None:
    done = cli(*arguments)
    if said is None:
        assert done.status == 0 and "write-cache=" in done.out
        return
    assert done.status == 2
    assert said in done.err and done.err.count("\n") == 1
