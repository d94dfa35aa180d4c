"""Which tests run beside which, and that nothing passes for want of its oracle."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from conftest import PATIENCE_S, Loop
from scheduling import HELD, TURN, WORK, group_of, locked, place_of


def free(kind: int) -> bool:
    """Whether another test could start now that takes the lock in this way."""
    try:
        with locked(WORK, kind | fcntl.LOCK_NB):
            return True
    except BlockingIOError:
        return False


@pytest.fixture(scope="module")
def shared() -> int:
    return 1


@pytest.mark.real
def test_tests_of_the_real_fio_run_one_after_the_other(request: pytest.FixtureRequest) -> None:
    assert group_of(request.node) == "drives"
    if getattr(request.config.option, "loadgroup", False):
        assert request.node.nodeid.endswith("@drives"), "pytest-xdist does not see the groups"


def test_whoever_asks_for_a_loop_device_is_among_them(
    loop: Loop, request: pytest.FixtureRequest
) -> None:
    assert loop.path.exists()
    assert group_of(request.node) == "drives"


@pytest.mark.large
def test_whole_drives_are_in_memory_one_at_a_time(request: pytest.FixtureRequest) -> None:
    assert group_of(request.node) == "large"


def test_a_fixture_of_a_file_is_made_in_one_process(
    shared: int, request: pytest.FixtureRequest
) -> None:
    assert group_of(request.node) == Path(__file__).name


def test_others_run_anywhere_and_beside_each_other(request: pytest.FixtureRequest) -> None:
    assert group_of(request.node) is None
    assert free(fcntl.LOCK_SH)
    assert not free(fcntl.LOCK_EX)


@pytest.mark.alone
def test_one_that_measures_time_runs_alone(request: pytest.FixtureRequest) -> None:
    assert group_of(request.node) == "alone"
    assert not free(fcntl.LOCK_SH)


@pytest.mark.alone
def test_the_next_one_finds_the_machine_as_quiet() -> None:
    assert len(HELD) == 1
    assert not free(fcntl.LOCK_SH)


def within(test: str, folder: Path) -> list[str]:
    """The command of a pytest for one test of this file. Its folders lie in this one: among
    pytest's own it would at its end remove what earlier runs left, gigabytes at times."""
    options = ["-p", "no:cacheprovider", "--basetemp", str(folder / "inner")]
    return [sys.executable, "-m", "pytest", *options, f"{__file__}::{test}"]


def test_a_pytest_within_a_test_does_not_wait_behind_one_that_wants_to_run_alone(
    tmp_path: Path,
) -> None:
    other = test_whole_drives_are_in_memory_one_at_a_time.__name__
    with ExitStack() as held:
        with suppress(BlockingIOError):  # somebody else is waiting already
            held.enter_context(locked(TURN, fcntl.LOCK_EX | fcntl.LOCK_NB))
        subprocess.run(within(other, tmp_path), check=True, timeout=PATIENCE_S)


@pytest.mark.parametrize("ci", ["true", ""])
def test_with_ci_set_nothing_runs_without_fio(ci: str, tmp_path: Path) -> None:
    done = subprocess.run(
        within(REAL, tmp_path),
        env={**os.environ, "PATH": str(tmp_path), "CI": ci},
        capture_output=True,
        text=True,
    )
    said = done.stdout + done.stderr
    if ci:
        assert done.returncode == 1
        assert "CI is set, and tests would be skipped for want of: fio" in said
    else:
        assert done.returncode == 0 and "fio is not installed" in said


REAL = test_tests_of_the_real_fio_run_one_after_the_other.__name__


def test_what_runs_alone_begins_first_and_then_the_long_rows(
    request: pytest.FixtureRequest,
) -> None:
    if request.config.pluginmanager.hasplugin("xdist"):
        places = [place_of(group_of(item)) for item in request.session.items]
        assert places == sorted(places)
    assert place_of("alone") < place_of("drives") < place_of("test_x.py") < place_of(None)
