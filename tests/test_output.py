"""What a document is written to stays what it is; drives are refused; nothing is left behind."""

from __future__ import annotations

import ast
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import ssdlab
from conftest import PATIENCE_S, Cli, Loop
from ssdlab.errors import ExperimentError, InputError, RefusedError
from ssdlab.output import Output, make_folder, write_to
from ssdlab.traces.convert import convert

LIST = ("list", "drives", "--json")
ROOT = os.geteuid() == 0


def bash(command: str, folder: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs a line of bash with ``ssdlab`` in it; all of its pipe leaves with ``status``."""
    line = f'ssdlab() {{ "{sys.executable}" -m ssdlab "$@"; }}; set -o pipefail; {command}'
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


def left_over(folder: Path) -> list[str]:
    """Temporary files in a folder."""
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def drives(text: str) -> list[str]:
    """The names in a JSON list of drives."""
    return [one["drive"] for one in json.loads(text)]


def test_a_character_device_is_written_through_and_stays(cli: Cli, tmp_path: Path) -> None:
    if not ROOT:
        pytest.skip("mknod needs root")
    node = tmp_path / "null"
    os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    assert cli(*LIST, node).status == 0
    assert stat.S_ISCHR(node.stat().st_mode)
    assert left_over(tmp_path) == []


def test_a_fifo_gives_its_reader_one_whole_document(cli: Cli, tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()))
    reader.start()
    assert cli(*LIST, fifo).status == 0
    reader.join(30)
    assert "lab-reference" in drives(read[0])
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_fifo_is_opened_once_before_the_work(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    output = Output(fifo)
    with pytest.raises(BlockingIOError):  # no end of file while the work goes on
        os.read(reader, 1)
    fifo.rename(tmp_path / "elsewhere")
    output.write("late")
    assert os.read(reader, 10) == b"late"
    assert os.read(reader, 10) == b""
    os.close(reader)


def test_a_block_device_is_refused_and_keeps_its_data(cli: Cli, loop: Loop, tmp_path: Path) -> None:
    outcome = cli(*LIST, loop.path)
    assert outcome.status == 3
    assert outcome.err.count("\n") == 1 and "is a block device" in outcome.err
    assert stat.S_ISBLK(loop.path.stat().st_mode)
    assert loop.backing.read_bytes()[:4096] == bytes(4096)
    trace = tmp_path / "t.csv"
    trace.write_text("0,host,0,Write,0,4096,0\n")
    for command in (
        ("trace", "convert", trace, loop.path, "--to", "csv"),
        ("trace", "to-fio", trace, loop.path, "--fit"),
        ("trace", "info", trace, "--report", loop.path),
    ):
        assert cli(*command).status == 3, command
    with pytest.raises(RefusedError):
        convert(trace, loop.path, "csv")
    bash(f"ssdlab list drives --json /dev/stdout > {loop.path}", tmp_path, 3)
    assert loop.backing.read_bytes()[:4096] == bytes(4096)


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    target, link = tmp_path / "below" / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to("below/target")
    write_to(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert left_over(tmp_path) == left_over(tmp_path / "below") == []


def test_a_dangling_link_makes_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("target")
    write_to(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "target").read_text() == "new"
    (tmp_path / "nowhere").symlink_to("gone/target")
    with pytest.raises(InputError, match=r"nowhere: the folder .*/gone does not exist"):
        Output(tmp_path / "nowhere")
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(InputError, match="symbolic links"):
        Output(tmp_path / "round")


def test_standard_output_may_be_a_file_which_is_not_replaced(tmp_path: Path) -> None:
    for place in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "out.json"):
        out = tmp_path / "out.json"
        out.write_text("")
        before = out.stat().st_ino
        done = bash(f"ssdlab list drives --json {place} > out.json", tmp_path)
        assert "lab-reference" in drives(out.read_text()), place
        assert out.stat().st_ino == before
        assert done.stderr == ""


def test_standard_output_may_be_a_pipe_and_words_go_to_standard_error(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text("[w]\nrw=write\nsize=1m\n")
    run = "ssdlab run job.fio --on lab-reference --set capacity=64MiB"
    for place in ("-", "/dev/stdout", "/dev/fd/3 3>&1"):
        done = bash(f"{run} --json {place} | cat", tmp_path)
        assert json.loads(done.stdout)["jobs"][0]["jobname"] == "w", place
        assert "kept in" in done.stderr
    done = bash(f"{run} --json /dev/stderr", tmp_path)
    assert "kept in" in done.stdout
    assert json.loads(done.stderr)["jobs"]


def test_a_process_substitution_is_written_to(tmp_path: Path) -> None:
    bash("ssdlab list drives --json >(cat > got) > table; wait $!; sleep 0.2", tmp_path)
    assert "lab-reference" in drives((tmp_path / "got").read_text())
    assert "lab-reference" in (tmp_path / "table").read_text()


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_socket_is_connected_to(tmp_path: Path, kind: socket.SocketKind) -> None:
    place = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX, kind) as server:
        server.bind(str(place))
        if kind == socket.SOCK_STREAM:
            server.listen()
        output = Output(place)
        output.write("whole")
        assert (server if kind == socket.SOCK_DGRAM else server.accept()[0]).recv(10) == b"whole"
    assert stat.S_ISSOCK(place.stat().st_mode)
    with pytest.raises(InputError, match="refused"):
        Output(place)


def test_a_socket_may_be_standard_output(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            command = [sys.executable, "-m", "ssdlab", *LIST, "/dev/stdout"]
            done = subprocess.run(command, stdout=theirs.fileno(), cwd=tmp_path)
        assert done.returncode == 0
        with ours.makefile() as file:
            assert "lab-reference" in drives(file.read())


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (".", "is a folder; give the name of a file"),
        ("new/", "is a folder; give the name of a file"),
        ("gone/x", "gone/x: the folder "),
        ("file/x", "/file is not a folder"),
        ("/dev/fd/77", "nothing is open there"),
        ("x" * 300, "File name too long"),
        ("", "is empty"),
    ],
)
def test_a_place_that_cannot_be_written_is_one_sentence_before_the_work(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("kept")
    outcome = cli(*LIST, place)
    assert outcome.status == 2
    assert outcome.out == ""
    assert told in outcome.err and outcome.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_descriptor_open_for_reading_is_no_place(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("kept")
    done = bash("ssdlab list drives --json /dev/fd/3 3< in", tmp_path, 2)
    assert "is not open for writing" in done.stderr
    assert (tmp_path / "in").read_text() == "kept"


@pytest.fixture
def plain_user() -> Iterator[None]:
    """Permissions count as for anybody."""
    if not ROOT:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_what_may_not_be_written_is_told(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    root = Path(tempfile.gettempdir())
    for folder in tmp_path.parents:
        if folder != root and root in folder.parents:
            folder.chmod(0o755)
    (tmp_path / "closed").mkdir(mode=0o555)
    (tmp_path / "file").write_text("kept")
    (tmp_path / "file").chmod(0o444)
    tmp_path.chmod(0o777)
    request.getfixturevalue("plain_user")
    for place in ("closed/new", "file"):
        with pytest.raises(InputError, match="Permission denied"):
            Output(tmp_path / place)
    assert (tmp_path / "file").read_text() == "kept"


def test_mode_and_owner_of_a_file_that_is_replaced_are_kept(tmp_path: Path) -> None:
    place = tmp_path / "private"
    place.write_text("old")
    place.chmod(0o640)
    if ROOT:
        os.chown(place, 65534, 65534)
    before = place.stat()
    write_to(place, "new")
    after = place.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert place.read_text() == "new"
    mask = os.umask(0o027)
    try:
        write_to(tmp_path / "fresh", "new")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640


def test_what_has_taken_the_place_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    place = tmp_path / "x.json"
    output = Output(place)
    os.mkfifo(place)
    with pytest.raises(InputError, match="something else than a file"):
        output.write("new")
    assert stat.S_ISFIFO(place.stat().st_mode)
    assert left_over(tmp_path) == []


def test_a_command_that_fails_leaves_nothing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("old")
    for name in ("old.json", "new.json"):
        assert cli("show", "no-such-thing", "--json", tmp_path / name).status == 2
    assert (tmp_path / "old.json").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["old.json"]


def test_a_write_that_breaks_off_leaves_the_old_file(tmp_path: Path) -> None:
    place = tmp_path / "x"
    place.write_text("old")
    with pytest.raises(KeyboardInterrupt), Output(place).writer() as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert place.read_text() == "old"
    assert left_over(tmp_path) == []


def test_a_full_disk_behind_a_place_is_one_sentence(cli: Cli) -> None:
    outcome = cli(*LIST, "/dev/full")
    assert (outcome.status, outcome.out) == (1, "")
    assert "/dev/full: the disk is full" in outcome.err
    with pytest.raises(ExperimentError, match="the disk is full"):
        write_to("/dev/full", "x")


def test_a_reader_of_a_document_that_leaves_does_not_end_the_rest(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("0,host,0,Write,0,4096,0\n")
    done = bash("ssdlab trace info t.csv --json >(true) --report page.html; sleep 0.1", tmp_path)
    assert (tmp_path / "page.html").read_text().rstrip().endswith("</html>")
    assert done.stderr == ""


def test_a_converted_trace_may_go_into_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("0,host,0,Write,0,4096,0\n" * 3)
    done = bash("ssdlab trace convert t.csv - --to spc | cat", tmp_path)
    assert len(done.stdout.splitlines()) == 3
    assert "3 requests as spc" in done.stderr
    with pytest.raises(InputError, match="is the trace that is read"):
        convert(tmp_path / "t.csv", tmp_path / "t.csv", "csv")
    done = bash("ssdlab trace to-fio t.csv /dev/null", tmp_path, 2)
    assert "the iolog goes beside the job" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "ssdlab list options | head -c 1",
        "ssdlab show ssd | true",
        "ssdlab --help | true",
        "ssdlab run --help | head -n 1",
        "ssdlab list options --json - | head -c 1",
        "ssdlab list drives >&-",
        "ssdlab list drives --json - >&-",
        "ssdlab list drives 2>&- | cat",
        "ssdlab list drives <&- >&- 2>&-",
        "ssdlab --version | true",
    ],
)
def test_a_reader_that_leaves_or_a_closed_stream_is_no_error(tmp_path: Path, command: str) -> None:
    # `head` and `true` end well themselves, so the status is that of ssdlab.
    assert bash(command, tmp_path).stderr == ""


def test_a_run_is_kept_though_nobody_reads_its_words(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text("[w]\nrw=write\nsize=1m\n")
    run = "ssdlab run job.fio --on lab-reference --set capacity=64MiB --out runs"
    for place in ("| true", ">&-", "2>&- >/dev/null", "2> >(true) >/dev/null"):
        bash(f"{run} {place}", tmp_path)
    assert len(list((tmp_path / "runs").glob("*/manifest.json"))) == 4


def test_a_closed_stream_is_not_given_to_a_file(tmp_path: Path) -> None:
    bash("ssdlab list drives --json out.json >&-", tmp_path)
    assert "lab-reference" in drives((tmp_path / "out.json").read_text())


def test_the_exit_statuses_are_told_and_hold(cli: Cli, loop: Loop, tmp_path: Path) -> None:
    told = cli("--help").out.replace("\n", " ")
    for word in ("0 good", "1 the experiment failed", "2 the input is wrong", "130 stopped"):
        assert " ".join(word.split()) in " ".join(told.split())
    assert cli("list", "drives").status == 0
    assert cli(*LIST, "/dev/full").status == 1
    assert cli("list", "nothing").status == 2
    assert cli("purge", loop.path).status == 3
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(
        [sys.executable, "-c", "print('up', flush=True); from ssdlab.cli import main; main()",
         *LIST, str(tmp_path / "pipe")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)  # for a reader of the pipe
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


# --- one way to write

PACKAGE = Path(ssdlab.__file__).parent
OWN = {
    "output.py": "the one way",
    "store/__init__.py": "a run folder takes its name when it is whole",
    "store/folder.py": "the journal grows, the lock is held",
    "fio/run.py": "fio's own temporary folder",
    "cli/streams.py": "/dev/null in the place of a closed stream",
    "cli/__init__.py": "/dev/null in the place of a stream that fails",
    "target/session.py": "nothing: whether the file takes direct I/O",
    "safety/device.py": "drives",
    "safety/files.py": "the file that is measured",
    "tuning/journal.py": "locks, and what a power failure must not take",
    "tuning/means.py": "settings of the kernel",
    "care/purge.py": "drives",
    "care/extents.py": "the file that is rewritten",
    "sweeps/claims.py": "who runs what in a folder that several fill",
    "bench/kept.py": "results that can be simulated again",
}
"""Modules that open something for writing by themselves, and what."""
WRITERS = {"write_text", "write_bytes", "rename", "renames", "replace", "touch", "mknod"}
FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"}


def writes(path: Path) -> list[int]:
    """The lines of a module that open something for writing, or rename."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        texts = [a.value for a in (*node.args, *(k.value for k in node.keywords))
                 if isinstance(a, ast.Constant) and isinstance(a.value, str)]  # fmt: skip
        modes = [t for t in texts if t and set(t) <= set("rwaxbt+") and set(t) & set("wax+")]
        flags = {n.attr for a in node.args for n in ast.walk(a) if isinstance(n, ast.Attribute)}
        renames = name in WRITERS and (name != "replace" or len(node.args) == 1)
        renames &= not node.keywords or name != "replace"
        if renames or flags & FLAGS or (name in ("open", "fdopen", "FileIO") and modes):
            found.append(node.lineno)
    return found


def test_only_one_module_opens_files_for_writing() -> None:
    found = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if writes(path)}
    assert found <= OWN.keys(), found - OWN.keys()


def test_the_look_for_writers_sees_them(tmp_path: Path) -> None:
    for line in ('open(p, "w")', 'p.open("ab")', "p.write_text(t)", "a.replace(b)", "a.rename(b)",
                 "os.open(p, os.O_RDWR | os.O_EXCL)", "descriptor_of(p, os.O_RDWR)"):  # fmt: skip
        (tmp_path / "m.py").write_text(line)
        assert writes(tmp_path / "m.py") == [1], line
    (tmp_path / "m.py").write_text('t.replace("a", "b"); open(p); replace(x, a=1); p.open()')
    assert writes(tmp_path / "m.py") == []


def test_a_folder_is_made_or_told(tmp_path: Path) -> None:
    assert make_folder(tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not a folder"):
        make_folder(tmp_path / "file" / "b")
