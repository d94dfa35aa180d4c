"""What the tests share: loop devices, fio, the command line."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from scheduling import (  # noqa: F401 - pytest takes its hooks from here
    pytest_collection_finish,
    pytest_collection_modifyitems,
    pytest_runtest_protocol,
    pytest_sessionstart,
)
from ssdlab.cli import run_command
from ssdlab.engine.estimate import Expected
from ssdlab.engine.steps import Repeated, Rounds, Step, Then
from ssdlab.histogram import BINS, Histogram, bin_index
from ssdlab.results import SERIES_SCHEMA, Result

MIB = 1 << 20
PATIENCE_S = 120.0
"""Whatever has not ended by then hangs, also on a machine that does much else."""
NUMBERS = itertools.count()
# Tests simulate what they look at; those of what is kept name a folder.
os.environ["SSDLAB_CACHE"] = "off"


@dataclass(frozen=True)
class Outcome:
    """What a command line left."""

    status: int
    out: str
    err: str


Cli = Callable[..., Outcome]


def one_sentence(outcome: Outcome, status: int = 2) -> str:
    """The sentence of a command that failed as it should."""
    assert outcome.status == status, outcome.err
    assert outcome.out == ""
    assert outcome.err.startswith("ssdlab: ")
    assert outcome.err.count("\n") == 1, outcome.err
    return outcome.err.removeprefix("ssdlab: ").strip()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's own, which reads the names of all that there are to find the next number."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    return tmp_path_factory.mktemp(f"{name}_{next(NUMBERS)}", numbered=False)


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the user's runs."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Cli:
    """Runs ssdlab with arguments; its status and what it printed."""

    def run(*arguments: object) -> Outcome:
        capfd.readouterr()
        status = run_command([str(one) for one in arguments])
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err + captured.out
        return Outcome(status, captured.out, captured.err)

    return run


def needs_fio() -> pytest.MarkDecorator:
    """Runs the real fio; skipped where that is missing, but with ``CI`` set no test starts then."""
    return pytest.mark.real


@pytest.fixture(scope="session")
def simulated_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where runs are kept that several tests look at, in whatever process."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "simulated"


@pytest.fixture(scope="session")
def started_at_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the PATH with a fio that takes the kernel's clock and calibrates no other: that
    takes two thirds of a short job."""
    folder = tmp_path_factory.mktemp("fio")
    clock, program = folder / "quick_clock.so", folder / "fio"
    source = Path(__file__).with_name("quick_clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", clock, source, "-ldl"], check=True)
    program.write_text(
        f"#!/bin/sh\nLD_PRELOAD={clock} "
        f'exec {shutil.which("fio")} --clocksource=clock_gettime "$@"\n'
    )
    program.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def short_fio(started_at_once: Path) -> Iterator[None]:
    """For modules that ask what becomes of fio's runs and start many; others do as users do."""
    with pytest.MonkeyPatch.context() as patch:
        if shutil.which("fio"):
            patch.setenv("PATH", str(started_at_once), prepend=os.pathsep)
        yield


class Loop:
    """A loop device on a file, for tests that may destroy it."""

    def __init__(self, backing: Path, size: int = 64 * MIB) -> None:
        self.backing = backing
        with backing.open("wb") as file:
            file.truncate(size)
        command = ["losetup", "--find", "--show", str(backing)]
        self.path = Path(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        )

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.path.name

    def close(self) -> None:
        """Gives the device back."""
        subprocess.run(["losetup", "--detach", str(self.path)], check=True)


def _why_no_loop() -> str | None:
    if os.geteuid() != 0:
        return "loop devices need root"
    if shutil.which("losetup") is None:
        return "losetup is not installed"
    probe = subprocess.run(["losetup", "--find"], capture_output=True, text=True)
    return None if probe.returncode == 0 else "this system has no free loop device"


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    """A blank loop device of 64 MiB."""
    if reason := _why_no_loop():
        pytest.skip(reason)
    device = Loop(tmp_path / "backing.img")
    try:
        yield device
    finally:
        device.close()


def histogram_of(counts: Mapping[int, int]) -> Histogram:
    """A histogram of latencies in ns and how many."""
    bins = np.zeros(BINS, dtype=np.int64)
    np.add.at(bins, bin_index([*counts]), [*counts.values()])
    found = Histogram.of_counts(bins)
    total = float(sum(ns * count for ns, count in counts.items()))
    return replace(
        found, sum_ns=total, min_ns=min(counts, default=0), max_ns=max(counts, default=0)
    )


def make_result(name: str, *, device: bool = False) -> Result:
    """A small result of one job, as a simulated run leaves it."""
    write = {
        "total_ios": 10,
        "io_bytes": 40960,
        "runtime": 2000,
        "iops": 5.0,
        "bw_bytes": 20480,
        "clat_ns": {"mean": 150.0, "max": 1000, "bins": {"100": 9, "1000": 1}},
    }
    row = {"job": "w", "ddir": "write", "ios": 5, "iops": 5.0, "bytes": 20480, "bw_bytes": 20480.0}
    row |= {"lat_min_ns": 90, "lat_mean_ns": 150.0, "lat_max_ns": 1000}
    row |= {"lat_p50_ns": 100, "lat_p99_ns": 1000}
    rows = [{"time_s": time_s, **row} for time_s in (1.0, 2.0)]
    counters = pl.DataFrame({"time_s": [1.0, 2.0], "below/programs_host": [3, 6]})
    return Result(
        name=name,
        document={
            "fio version": "fio-3.33",
            "jobs": [{"jobname": "w", "error": 0, "job options": {}, "write": write}],
            "ssdlab": {"target": {"kind": "sim", "name": name}, "seed": 1, "waf": 1.5},
        },
        job_text="[w]\n",
        series_frame=pl.DataFrame(rows, schema=SERIES_SCHEMA),
        device_frame=counters if device else None,
        rig_toml="name = 'x'\n",
        logs=[("w_iops.1.log", "1000, 5, 1, 0, 0\n")],
    )


def flat(steps: Sequence[Expected]) -> Iterator[Step]:
    """All steps; two of each rounds, and what is expected of those that depend on results."""
    for step in steps:
        if isinstance(step, Rounds):
            for number in (1, 2):
                yield from flat(step.jobs(number))
        elif isinstance(step, Then):
            yield from flat(step.expected)
        elif isinstance(step, Repeated):
            yield step.job
        else:
            yield step
