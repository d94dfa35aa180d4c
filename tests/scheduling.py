"""Which tests run beside which, and what a machine must have that answers for a commit.

`./lab test` runs pytest in four processes. What a test's markers and fixtures say decides where it
goes; nobody keeps a list:

- ``real`` and ``root`` (the real fio, loop devices, mounts): one after the other, in one process;
- ``large`` (a whole drive in memory): one after the other, in one process;
- tests of a file that share a fixture: in one process, so that it is made once;
- all others: wherever there is room;
- ``alone`` (holds the wall clock to a limit, or asks whether the machine is quiet): one after the
  other, in one process, while nothing else of the tests is under way.

They begin in the order of :data:`FIRST`: what runs alone before anything else, as later it would
wait for the longest test under way, and everybody else for it; then the long rows. `./lab ci`
leaves what runs alone to the end, when the core's tests have ended, too.
"""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

import browser

GROUPS = MappingProxyType({"alone": "alone", "real": "drives", "root": "drives", "large": "large"})
"""The group of a marker; the first that a test has counts."""
FIRST = ("alone", "drives", "large")
"""These groups begin first, then those of files."""
LONG = bool(os.environ.get("SSDLAB_LONG"))
"""Whether tests go through all of what they else go through in part (`./lab test --long`)."""
WHEEL = os.environ.get("SSDLAB_WHEEL", "")
"""The wheel that was built of this tree."""
FOLDER = Path(__file__).parent
TURN, WORK = Path(__file__), FOLDER / "conftest.py"
"""What is locked: any two files that are there."""
HELD: list[ExitStack] = []
"""The lock of the test under way; tests that run alone hand it to the next."""
WITHIN_A_TEST = "PYTEST_CURRENT_TEST" in os.environ
"""Whether a test has started this pytest: that one holds the locks, and would be waited for."""


def missing_tools() -> list[str]:
    """What the tests compare with or look through, and this machine lacks."""
    missing = [] if shutil.which("fio") else ["fio"]
    missing += [] if WHEEL else ["a wheel (SSDLAB_WHEEL)"]
    return missing + [reason for reason in [browser.missing()] if reason]


def pytest_sessionstart() -> None:
    """Elsewhere a test is skipped where its oracle is missing; with ``CI`` set nothing may."""
    gc.disable()  # until all is loaded
    if os.environ.get("CI") and (missing := missing_tools()):
        pytest.exit(f"CI is set, and tests would be skipped for want of: {', '.join(missing)}", 1)


def shared_fixtures(item: pytest.Item) -> bool:
    """Whether the test takes part in a fixture of ours that outlives a test."""
    if not isinstance(item, pytest.Function):
        return False
    definitions = item._fixtureinfo.name2fixturedefs.values()
    return any(
        one.scope != "function" and one.func.__module__ == item.module.__name__
        for found in definitions
        for one in found
    )


def group_of(item: pytest.Item) -> str | None:
    """Those of one group run one after the other in one process."""
    for marker, group in GROUPS.items():
        if item.get_closest_marker(marker):
            return group
    return item.path.name if shared_fixtures(item) else None


def place_of(group: str | None) -> int:
    """Where a group stands among those that begin."""
    return FIRST.index(group) if group in FIRST else len(FIRST) + (group is None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what the markers do not say but the fixtures do, groups, and skips what has no fio."""
    for item in items:
        if "loop" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.root)
        if item.get_closest_marker("real") and shutil.which("fio") is None:
            item.add_marker(pytest.mark.skip(reason="fio is not installed"))
    if config.pluginmanager.hasplugin("xdist"):
        groups = {item: group_of(item) for item in items}
        for item, group in groups.items():
            if group:
                item.add_marker(pytest.mark.xdist_group(group))
        items.sort(key=lambda item: place_of(groups[item]))


def pytest_collection_finish() -> None:
    """What is there now stays: no search for garbage need go through it again and again, nor as
    often as in a program that has little."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
    gc.enable()


@contextmanager
def locked(path: Path, kind: int) -> Generator[None]:
    """Holds a lock on a file, against the other processes of the tests."""
    with path.open("rb") as file:
        fcntl.flock(file, kind)
        yield


def is_alone(item: pytest.Item | None) -> bool:
    """Whether nothing may run beside the test."""
    return item is not None and item.get_closest_marker("alone") is not None


def taken(kind: int) -> ExitStack:
    """Holds the lock on the work, when it is this test's turn."""
    with locked(TURN, fcntl.LOCK_EX), ExitStack() as held:
        held.enter_context(locked(WORK, kind))
        return held.pop_all()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Tests that run alone exclude all others; whoever waits has the next turn."""
    if WITHIN_A_TEST:
        return (yield)
    if not HELD:
        HELD.append(taken(fcntl.LOCK_EX if is_alone(item) else fcntl.LOCK_SH))
    try:
        return (yield)
    finally:
        if not (is_alone(item) and is_alone(nextitem)):
            HELD.pop().close()
