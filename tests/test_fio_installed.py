"""Options and engines are checked against the fio that is installed, before anything starts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import ssdlab
from conftest import needs_fio
from ssdlab.errors import InputError, MissingProgramError
from ssdlab.fio.installed import installed
from ssdlab.fio.options import ALIASES, ALLOWED, ENGINES

OLDER = r"""#!/bin/sh
echo "$*" >> "$0.asked"
case "$1" in
--version) echo fio-3.1 ;;
--cmdhelp=all)
    echo 'description             : Text job description'
    echo 'rw                      : IO direction'
    echo '  bs                    : Block size unit'
    echo 'iodepth_batch_complete_min: Min number of IO buffers to retrieve in one go'
    echo 'size                    : Total size of device or files'
    echo 'ioengine                : IO engine to use' ;;
--cmdhelp=softrandommap) echo '       softrandommap: Set norandommap if' ;;
--cmdhelp=start*) echo ' - showing closest match'; echo '    startdelay: Only start job when' ;;
--cmdhelp=*) printf '\nNo such command: %s' "${1#--cmdhelp=}" ;;
--enghelp=libaio) echo 'userspace_reap          : Use alternative user-space reap implementation' ;;
--enghelp=io_uring) echo 'IO engine io_uring not found'; exit 1 ;;
--enghelp=*) echo "IO engine ${1#--enghelp=} has no options"; exit 1 ;;
*) echo ran >> "$0.ran"; exit 1 ;;
esac
"""


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An older fio first on PATH; beside it stands what it was asked."""
    return put(tmp_path, monkeypatch, OLDER)


def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    program = tmp_path / "bin" / "fio"
    program.parent.mkdir(exist_ok=True)
    program.write_text(script)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("steadystate_check_interval=2", "the installed fio (fio-3.1) has no such option; "
         "fio has it since version 3.35"),
        ("dedupe_global=1", "the installed fio (fio-3.1) has no such option"),
        ("start_delay=3", "the installed fio (fio-3.1) has no such option"),
        ("sqthread_poll=1", "the installed fio (fio-3.1) has no such option"),
        ("ioengine=io_uring", "io_uring is no engine of the installed fio (fio-3.1)"),
    ],
)  # fmt: skip
def test_what_an_older_fio_lacks_is_named_with_its_line_and_the_version(
    older: Path, tmp_path: Path, line: str, message: str
) -> None:
    job = tmp_path / "j.fio"
    job.write_text(f"[a]\nrw=read\nsize=1m\n{line}\n")
    with pytest.raises(InputError) as caught:
        ssdlab.run(job, on=tmp_path / "s")
    assert caught.value.message == f"{job}:4: {line.split('=')[0]}: {message}"
    assert not (tmp_path / "s").exists()
    assert not older.with_name("fio.ran").exists()


def test_what_it_has_passes_by_any_of_its_names(older: Path) -> None:
    fio = installed()
    assert fio is not None
    for option in ("bs", "iodepth_batch_complete_min", "userspace_reap", "softrandommap"):
        assert fio.problem(option, "1") is None
    assert fio.problem("ioengine", "psync") is None
    assert fio.problem("ioengine", "libaio") is None


def test_fio_is_asked_once_until_the_binary_changes(
    older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, again = installed(), installed()
    assert first is again
    assert older.with_name("fio.asked").read_text().count("--cmdhelp=all") == 1
    put(older.parent.parent, monkeypatch, OLDER.replace("fio-3.1 ", "fio-3.12 "))
    changed = installed()
    assert changed is not None
    assert changed.version == "fio-3.12"


@needs_fio()
@pytest.mark.parametrize(("version", "said"), [("fio-3.1", 1), ("fio-3.33-dirty", 0), ("fio-x", 0)])
def test_a_fio_older_than_the_documents_ask_for_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, said: int
) -> None:
    real = shutil.which("fio")
    script = f'#!/bin/sh\n[ "$1" = --version ] && echo {version} && exit\nexec {real} "$@"\n'
    put(tmp_path, monkeypatch, script)
    told: list[str] = []
    ssdlab.run("[a]\nrw=write\nsize=64k\n", on=tmp_path / "s", notice=told.append)
    assert told == ["fio-3.1 is older than 3.33, the oldest that ssdlab is tried with"] * said


@pytest.mark.parametrize("answer", ["exit 1", "kill -9 $$", "echo garbage"])
def test_a_fio_that_does_not_tell_is_taken_to_know_everything(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, monkeypatch, f'#!/bin/sh\n[ "$1" = --version ] && echo fio-9 && exit\n{answer}\n')
    fio = installed()
    assert fio is not None
    assert [fio.problem("uncached", "1"), fio.problem("ioengine", "io_uring")] == [None, None]


def test_without_fio_there_is_nothing_to_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installed() is None
    with pytest.raises(MissingProgramError):
        ssdlab.run("[a]\npriohint=1\n", on=tmp_path / "s")


@needs_fio()
def test_the_installed_fio_knows_the_options_of_a_usual_job() -> None:
    fio = installed()
    assert fio is not None
    assert len(fio.options) > 150
    for option in ("rw", "bs", "iodepth", "time_based", "write_lat_log", "stonewall", "hipri"):
        assert option in ALLOWED
        assert fio.problem(option, "1") is None
    assert {fio.problem("ioengine", engine) for engine in ENGINES & {"psync", "sync"}} == {None}
    assert {fio.problem(option, "1") for option in ALIASES.values() if option != "mem"} == {None}
    assert fio.problem("no_such_option", "1") is not None
