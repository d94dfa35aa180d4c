"""A run goes on only on the medium that it was started on."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import small_protocol
from conftest import MIB, Loop, needs_fio
from ssdlab.checks import examine_run
from ssdlab.engine.findings import ProtocolRun
from ssdlab.engine.runs import begin, go_on
from ssdlab.errors import InputError, Interrupted, RefusedError
from ssdlab.progress import Progress
from ssdlab.rig import resolve
from ssdlab.safety import medium
from ssdlab.store import RunStore, open_run
from ssdlab.store.folder import JOURNAL, RunFolder
from test_engine import on, only

pytestmark = pytest.mark.usefixtures("short_fio")

SERIAL = {"serial": "A", "boot": "1", "disk sequence": "5"}
MARKS = ["aa", "", "bb"]


class Killed(BaseException):
    """Stands for a kill: nothing is put in order after it."""


@pytest.mark.parametrize(
    ("now", "found", "at_rest", "verdict"),
    [
        (SERIAL, MARKS, True, "same"),
        (SERIAL, ["cc", "dd", "ee"], False, "same"),  # the step cut short may have written them
        (SERIAL, ["cc", "dd", "ee"], True, "unproved"),
        ({**SERIAL, "serial": "B"}, MARKS, True, "another"),
        ({"boot": "1", "disk sequence": "5"}, [], False, "same"),
        ({"boot": "1", "disk sequence": "6"}, [], False, "unproved"),
        ({"boot": "2", "disk sequence": "5"}, [], False, "unproved"),
        ({"boot": "2"}, ["cc", "", "bb"], False, "same"),  # what the run wrote is there
        ({}, [], True, "unproved"),
    ],
)
def test_what_tells_one_medium_from_another(
    now: dict[str, str], found: list[str], at_rest: bool, verdict: str
) -> None:
    likeness = medium.compare(SERIAL, now, MARKS if found else [], found, at_rest=at_rest)
    assert likeness.verdict == verdict
    assert bool(likeness.reason) == (verdict != "same")


def test_a_file_on_another_file_system_is_another_only_within_a_boot() -> None:
    file = {"file": "12.7", "boot": "1", "file system": "64512"}
    other = {**file, "file system": "64513"}
    assert medium.compare(file, other, [], [], at_rest=False).verdict == "another"
    assert medium.compare(file, other | {"boot": "2"}, [], [], at_rest=False).verdict == "same"


def test_blocks_never_written_prove_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(MIB))
    with file.open("rb") as opened:
        assert set(medium.fingerprint(opened.fileno(), MIB)) == {""}


def test_a_redacted_identity_tells_media_apart_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with file.open("rb") as opened:
        plain = medium.ids_of_file(opened.fileno())
        hidden = medium.ids_of_file(opened.fileno(), redact=True)
    assert plain.keys() == hidden.keys()
    assert not set(plain.values()) & set(hidden.values())


def killed_after(store: Path, steps: int) -> Any:
    """A progress callback that ends a run as a kill does, once so many steps are kept."""

    def progress(_news: Progress) -> bool:
        if kept_steps(store, steps):
            raise Killed
        return True

    return progress


def kept_steps(store: Path, steps: int) -> bool:
    """Whether the run keeps so many."""
    journals = store.glob(f"*/{JOURNAL}")
    return any(len(one.read_text().splitlines()) >= steps for one in journals)


@pytest.fixture
def killed(loop: Loop, tmp_path: Path) -> Iterator[RunFolder]:
    """A run on a loop device that was killed after three steps."""
    store = tmp_path / "runs"
    order = replace(on(loop.path), target=resolve(loop.path, destroy=loop.name))
    with pytest.raises(Killed):
        begin(
            order,
            RunStore(store),
            progress=killed_after(store, 3),
            notice=lambda _sentence: None,
            announce=lambda _what: None,
        )
    yield only(store)


def resume(folder: RunFolder, **allowed: Any) -> ProtocolRun:
    """Goes on to the end."""
    return go_on(
        open_run(folder.path),
        lambda _name: small_protocol.PROTOCOL,
        progress=lambda _news: True,
        notice=lambda _sentence: None,
        examine=examine_run,
        **allowed,
    )


def attach(loop: Loop, backing: Path) -> None:
    """Puts another image behind the same loop device."""
    subprocess.run(["losetup", "--detach", str(loop.path)], check=True)
    subprocess.run(["losetup", str(loop.path), str(backing)], check=True)


@needs_fio()
@pytest.mark.root
def test_a_killed_run_goes_on_where_it_was(killed: RunFolder, loop: Loop) -> None:
    assert resume(killed).folder.manifest.status == "complete"


@needs_fio()
@pytest.mark.root
def test_a_killed_run_goes_on_after_its_image_was_attached_anew(
    killed: RunFolder, loop: Loop
) -> None:
    attach(loop, loop.backing)
    assert resume(killed).folder.manifest.status == "complete"


@needs_fio()
@pytest.mark.root
def test_another_image_behind_the_same_loop_device_is_not_overwritten(
    killed: RunFolder, loop: Loop, tmp_path: Path
) -> None:
    precious = tmp_path / "precious.img"
    precious.write_bytes(b"precious" * (loop.backing.stat().st_size // 8))
    before = precious.read_bytes()
    attach(loop, precious)
    with pytest.raises(RefusedError, match="is not what the run was begun on: its backing file is"):
        resume(killed)
    with pytest.raises(RefusedError):
        resume(killed, destroy=loop.name)  # a name does not make it the same
    assert precious.read_bytes() == before


@needs_fio()
@pytest.mark.root
def test_a_drive_of_another_size_is_refused_by_its_size(killed: RunFolder, loop: Loop) -> None:
    os.truncate(loop.backing, loop.backing.stat().st_size + 32 * MIB)
    subprocess.run(["losetup", "--set-capacity", str(loop.path)], check=True)
    with pytest.raises(
        RefusedError, match=r"it holds \d+ MB, and that of the run [0-9.]+ MB; nothing"
    ):
        resume(killed, destroy=loop.name)


@needs_fio()
def test_a_file_that_has_grown_is_known_by_what_the_run_wrote(tmp_path: Path) -> None:
    store, file = tmp_path / "runs", tmp_path / "scratch.bin"
    with pytest.raises(Interrupted):
        begin(
            on(file, size=32 * MIB),
            RunStore(store),
            progress=lambda _news: not kept_steps(store, 3),
            notice=lambda _sentence: None,
            announce=lambda _what: None,
        )
    with file.open("ab") as grown:
        grown.truncate(48 * MIB)
    assert resume(only(store)).folder.manifest.status == "complete"


@needs_fio()
@pytest.mark.root
def test_where_only_a_name_is_left_it_is_asked_for_again(killed: RunFolder, loop: Loop) -> None:
    killed.manifest.medium = {}
    killed.set_status("running")
    lines = (killed.path / JOURNAL).read_text().replace('"fingerprint"', '"nothing"')
    (killed.path / JOURNAL).write_text(lines)
    before = loop.backing.read_bytes()
    with pytest.raises(RefusedError, match=f"say so with --destroy {loop.name}"):
        resume(killed)
    assert loop.backing.read_bytes() == before
    assert resume(killed, destroy=loop.name).folder.manifest.status == "complete"


@needs_fio()
def test_a_file_put_in_the_place_of_the_run_s_is_neither_overwritten_nor_removed(
    tmp_path: Path,
) -> None:
    store, file = tmp_path / "runs", tmp_path / "scratch.bin"
    with pytest.raises(Killed):
        begin(
            on(file, size=32 * MIB),
            RunStore(store),
            progress=killed_after(store, 3),
            notice=lambda _sentence: None,
            announce=lambda _what: None,
        )
    kept = tmp_path / "kept"
    file.rename(kept)
    shutil.copy(kept, file)
    file.write_bytes(b"mine" * (8 * MIB))
    with pytest.raises(RefusedError, match="is not what the run was begun on"):
        resume(only(store))
    assert file.read_bytes() == b"mine" * (8 * MIB)
    file.unlink()
    with pytest.raises(InputError, match="begin a new run"):
        resume(only(store))
    kept.rename(file)
    assert resume(only(store)).folder.manifest.status == "complete"
    assert not file.exists()
