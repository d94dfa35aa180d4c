"""Messages about lines of included files say where they stand, and never what they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Outcome, needs_fio

SECRET = "hunter2"
SHOWN = "this line cannot be used in the job; lines of included files are not shown"

INSIDE = {
    "shadow": f"root:$6${SECRET}:19000:0:99999:7:::\n",
    "unknown option": f"{SECRET}=1\n",
    "near miss": f"iodepht={SECRET}\n",
    "variable": f"size=${{{SECRET}}}\n",
    "control character": f"bs=\x01{SECRET}\n",
    "missing include": f"include {SECRET}\n",
    "folder": "include /etc\n",
}
"""Contents of which neither a simulated drive nor a real one takes the first line."""

REFUSED = {"engine": f"ioengine={SECRET}\n", "option": f"exec_prerun={SECRET}\n"}
"""What a simulated drive ignores and a real one refuses for safety."""

REAL = {
    "value": f"bs={SECRET}\n",
    "two values": f"random_distribution=zipf:{SECRET}\n",
    "trace": f"read_iolog={SECRET}\n",
    "option of a trace": f"read_iolog=x\nreplay_align={SECRET}\n",
    "waits": f"wait_for={SECRET}\n",
}
"""What gets as far as fio on a real drive, or to the reader of traces."""


def on(kind: str, tmp_path: Path) -> str:
    return "lab-reference" if kind == "sim" else str(tmp_path / "scratch")


def said(cli: Callable[..., Outcome], kind: str, tmp_path: Path, job: str) -> Outcome:
    path = tmp_path / "job.fio"
    path.write_text(job)
    done = cli("run", path, "--on", on(kind, tmp_path))
    assert done.status in (2, 3)
    assert SECRET not in done.err + done.out
    assert done.err.count("\n") == 1
    return done


@pytest.mark.parametrize("kind", ["sim", pytest.param("file", marks=needs_fio())])
@pytest.mark.parametrize("what", INSIDE)
def test_a_line_of_an_included_file_is_not_shown(
    kind: str, what: str, tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(INSIDE[what])
    between = tmp_path / "between.fio"
    between.write_text("rw=read\n\ninclude secret\n")
    done = said(cli, kind, tmp_path, "[a]\ninclude secret\n")
    assert done.err == f"ssdlab: secret:1: {SHOWN}\n"
    done = said(cli, kind, tmp_path, f"[a]\ninclude {between}\n")
    assert done.err == f"ssdlab: secret:1: {SHOWN}\n"


@needs_fio()
@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_for_safety_is_not_shown_either(
    what: str, tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    (tmp_path / "secret").write_text(REFUSED[what])
    done = said(cli, "file", tmp_path, "[a]\ninclude secret\n")
    assert (done.status, done.err) == (3, f"ssdlab: secret:1: {SHOWN}\n")


@pytest.mark.parametrize("kind", ["sim", pytest.param("file", marks=needs_fio())])
@pytest.mark.parametrize("what", REAL)
def test_what_fio_says_of_a_line_of_an_included_file_is_not_shown(
    kind: str, what: str, tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    (tmp_path / "secret").write_text(REAL[what])
    done = said(cli, kind, tmp_path, "[a]\nrw=read\nsize=1m\ninclude secret\n")
    assert done.err.startswith("ssdlab: secret:")
    assert SHOWN in done.err


@needs_fio()
@pytest.mark.parametrize("options", ["bs=abc", "rw=trim\nsize=1m", "size=1m\nmax_latency=1ns"])
def test_a_name_that_an_included_file_gave_is_not_shown(
    options: str, tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    (tmp_path / "secret").write_text(f"[{SECRET}]\nioengine=psync\n")
    path = tmp_path / "job.fio"
    path.write_text(f"include secret\nrw=read\n{options}\n")
    done = cli("run", path, "--on", tmp_path / "scratch")
    assert done.status in (1, 2)
    assert SECRET not in done.err


@pytest.mark.parametrize("kind", ["sim", pytest.param("file", marks=needs_fio())])
def test_a_file_that_is_no_text_is_told_without_its_bytes(
    kind: str, tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    (tmp_path / "bin").write_bytes(b"\x7fELF\x00" + SECRET.encode() + b"\xff\xfe")
    done = said(cli, kind, tmp_path, "[a]\ninclude bin\n")
    assert "job.fio:2: include: cannot read" in done.err
    assert "is not a text file" in done.err
    (tmp_path / "bin").write_bytes(b"\x00\x01" + SECRET.encode())
    assert f"bin:1: {SHOWN}" in said(cli, kind, tmp_path, "[a]\ninclude bin\n").err


@pytest.mark.parametrize("kind", ["sim", pytest.param("file", marks=needs_fio())])
def test_the_job_file_itself_is_still_quoted(
    kind: str, tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    path = tmp_path / "job.fio"
    path.write_text("[a]\niodpeth=4\n")
    done = cli("run", path, "--on", on(kind, tmp_path))
    assert "job.fio:2: " in done.err
    assert 'did you mean "iodepth"?' in done.err
    path.write_text("[a]\ninclude nowhere.fio\n")
    done = cli("run", path, "--on", on(kind, tmp_path))
    assert "job.fio:2: include: cannot read" in done.err
    assert "nowhere.fio" in done.err
