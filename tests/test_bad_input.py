"""What a person can get wrong on the command line: one sentence, the right status, nothing left."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import ssdlab
from conftest import PATIENCE_S, Cli, make_result, needs_fio, one_sentence
from ssdlab import memory, units
from ssdlab.rig import profile
from ssdlab.store import RunStore

SMALL = ("--set", "capacity=64MiB")


def files_below(folder: Path) -> list[Path]:
    """Every file in a folder, at any depth."""
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.fio"
    path.write_text("[w]\nrw=randwrite\nbs=4k\nsize=1m\n")
    return path


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("a small file system needs root and mount")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(place: Path) -> None:
    """Leaves no room on the file system."""
    with contextlib.suppress(OSError), (place / "full").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def ssdlab_process(*arguments: object, folder: Path, before: str = "") -> subprocess.Popen[str]:
    """The program in a session of its own, begun, with its temporary files in ``folder``;
    ``before``: what Python does first."""
    folder.mkdir(exist_ok=True)
    # The tests may have been started by nohup, and what that ignores the program ignores too.
    begin = (
        "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_DFL); "
        "from ssdlab.cli import main; print('begun', file=sys.stderr, flush=True)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", f"{before}{begin}; main()", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "begun\n"
    return process


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("ftl.over_provisionning=0.3", "did you mean over_provisioning?"),
        ("colour=red", "below: capacity"),
        ("restart_after=4s", "expected none: after a loss of power"),
        ("job.iodepth=4", "sweep --vary job.OPTION=VALUES varies them"),
        ("capacity=4", 'found 4, expected a size with its unit, such as "4GiB"'),
        ("capacity=0GiB", "above 0"),
        ("capacity=256MiB", "in 1 region need at least 0.125, or a capacity of 512MiB"),
        ("capacity=5PiB", "5PiB in units of 4KiB"),
        ("nand.channels=0", "found 0, expected a number from 1"),
        ("ftl.gc.pace=fast", 'found "fast", expected one of blocking, paced, periodic'),
        ("ftl.gc.victim=gredy", 'did you mean "greedy"?'),
        ("kind=null", "cannot be set"),
        ("ftl..gc=3", "is no key"),
    ],
)
def test_a_wrong_setting_is_told_with_what_is_right(
    cli: Cli, job: Path, setting: str, told: str
) -> None:
    assert told in one_sentence(cli("run", job, "--on", "demo-client", "--set", setting))


def test_a_broken_rig_file_is_named(cli: Cli, job: Path, tmp_path: Path) -> None:
    rig = tmp_path / "drive.toml"
    for text, told in (
        ("", "has no [device] table"),
        ('name = "x', ":1: "),
        ('[device]\nkind = "null"\n', "capacity: is missing"),
        ('[device]\nkind = "nul"\n', 'did you mean "null"?'),
        ('[device]\nkind = "null"\ncapcity = "1GiB"\n', "did you mean capacity?"),
    ):
        rig.write_text(text)
        said = one_sentence(cli("run", job, "--on", rig))
        assert said.startswith(f"{rig}:"), said
        assert told in said


def test_a_preparation_or_seed_that_is_none_is_told(cli: Cli, job: Path) -> None:
    run = ("run", job, "--on", "lab-reference", *SMALL)
    assert one_sentence(cli(*run, "--prepare", "full")).startswith('prepare: found "full"')
    said = one_sentence(cli(*run, "--seed", 2**64))
    assert said == f'--seed "{2**64}": expected a whole number from 0 to 2^64 - 1'
    with pytest.raises(ssdlab.InputError, match="seed: found -1"):
        ssdlab.run(job, on="lab-reference", seed=-1)


@pytest.mark.parametrize(
    ("command", "option"),
    [("run x.fio", "--on"), ("plan cache --pool x --cache y", "--trace"), ("test x", "--seed")],
)
def test_an_option_of_one_value_that_is_given_twice_is_refused(
    cli: Cli, command: str, option: str
) -> None:
    told = one_sentence(cli(*command.split(), option, "1", option, "2"))
    assert told == f"{option} is given twice, but takes one value"


@pytest.mark.parametrize("command", ["run x.fio --on x", "array x", "sweep x.fio"])
def test_a_key_that_is_given_twice_is_refused(cli: Cli, command: str) -> None:
    keys = ("--set", "capacity=1GiB", "--set", "capacity=2GiB")
    told = one_sentence(cli(*command.split(), *keys))
    assert told == "--set capacity: is given twice, but takes one value"


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("run x.fio --on x", "--out"),
        ("run x.fio --on x", "--logs"),
        ("sweep x.fio", "--set"),
        ("explain last", "--csv"),
    ],
)
def test_an_empty_value_is_refused(cli: Cli, command: str, option: str) -> None:
    """As of a variable that is not set: as a path it was the present folder."""
    told = one_sentence(cli(*command.split(), option, ""))
    assert told == f"{option} is empty; give it a value or leave it out"


@pytest.mark.parametrize(
    ("option", "following"), [("--json", "--quick"), ("--csv", "-q"), ("--job", "--csv")]
)
def test_an_option_is_not_the_value_of_the_one_before_it(
    cli: Cli, option: str, following: str
) -> None:
    """Its document was written to a file of that name, and the option was lost."""
    told = one_sentence(cli("plan", "storage", "--candidate", "x", option, following))
    assert told == f"{option} has no value: {following} follows, an option"


@pytest.mark.parametrize(
    ("command", "option", "unit"),
    [
        ("plan storage --quick", "--space", "GB"),
        ("plan storage --quick", "--writes-per-day", "GB"),
        ("reliability --members 4 --runs 100", "--capacity", "GB"),
        ("reliability --members 4 --runs 100 --tbw 600TB", "--writes-per-day", "GB"),
        ("reliability --members 4 --runs 100", "--rebuild-rate", "MB"),
    ],
)
def test_a_number_that_is_meant_in_another_unit_is_refused(
    cli: Cli, command: str, option: str, unit: str
) -> None:
    said = one_sentence(cli(*command.split(), option, "3"))
    assert said == f"{option} 3: is 3 bytes; write its unit, such as 3{unit}"


@pytest.mark.parametrize("command", ["trim", "audit", "health", "refresh", "import", "fit"])
def test_an_empty_argument_is_not_the_present_folder(cli: Cli, command: str) -> None:
    assert one_sentence(cli(command, "")).endswith(" is empty; name a file, folder or drive")


def test_an_empty_target_is_told(cli: Cli, job: Path) -> None:
    assert "the target is empty" in one_sentence(cli("run", job, "--on", ""))


def test_a_byte_order_mark_is_no_part_of_a_job(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "job.fio"
    path.write_bytes(b"\xef\xbb\xbf[w]\nrw=write\nsize=1m\n")
    assert cli("run", path, "--on", "lab-reference", *SMALL).status == 0


def test_control_characters_stay_visible_and_on_the_line(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "job.fio"
    path.write_text("[w]\nrw=wri\0te\n")
    assert "wri\\x00te" in one_sentence(cli("run", path, "--on", "lab-reference"))


def test_names_and_variables_that_are_not_text_stop_nothing(
    cli: Cli, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLDPWD", "/home/\udcfc")  # as in a folder with an old name
    odd, rig = tmp_path / "j\udcff.fio", tmp_path / "r\udcff.toml"
    odd.write_text(job.read_text())
    rig.write_text(profile("demo-client").text)
    out = tmp_path / "o\udcff"
    done = cli("run", odd, "--on", rig, "--out", out)
    assert done.status == 0, done.err
    assert "j\\udcff.fio on r\\udcff" in done.out


def test_what_has_to_be_text_and_is_not_is_told(cli: Cli, job: Path, tmp_path: Path) -> None:
    keys = cli("run", job, "--on", "demo-client", "--set", "capacity=1\udcff", "--out", tmp_path)
    assert one_sentence(keys) == '"1\\udcff": is not text in UTF-8'
    assert "is not text in UTF-8" in one_sentence(cli("query", "select \udcff from runs"))
    trace = tmp_path / "t.csv"
    trace.write_text("0,read,0,4096\n")
    assert "is not text in UTF-8" in one_sentence(
        cli("trace", "info", trace, "--columns", "\udcff")
    )
    with pytest.raises(ssdlab.InputError, match='"\udcff": is not text in UTF-8'):
        ssdlab.run(job, "demo-client", prepare="\udcff")


def test_numbers_beyond_what_the_core_counts_are_as_the_largest(
    cli: Cli, job: Path, tmp_path: Path
) -> None:
    huge = str(10**30)
    said = one_sentence(cli("run", job, "--on", "demo-client", "--scale", huge))
    assert "cannot be made 18446744073709551615 times smaller" in said
    trace = tmp_path / "t.csv"
    head = "time_ns,kind,offset,length,device,response_ns"
    trace.write_text(f"{head}\n0,read,0,4096,0,\n9,read,0,4096,0,\n")
    done = cli("cache", trace, "--policies", "lru", "--sizes", f"{huge},1MiB")
    assert done.status == 0, done.err


@pytest.mark.parametrize(
    "command",
    [
        "run JOB --on lab-reference --set capacity=4MiB --out DIR",
        "run JOB --on /no/such/file --out DIR",
        "trace replay JOB --on lab-reference --out DIR",
        "test lab-reference -p consistency --set capacity=4MiB --out DIR",
        "ab lab-reference --job JOB --set-b capacity=4MiB --out DIR",
        "sweep JOB --on lab-reference --vary capacity=4MiB --out DIR",
    ],
)
def test_what_is_refused_leaves_no_folder(
    cli: Cli, job: Path, tmp_path: Path, command: str
) -> None:
    folder = tmp_path / "a" / "b"
    names = {"JOB": job, "DIR": folder}
    said = cli(*(names.get(word, word) for word in command.split()))
    assert said.status != 0 and said.err.count("ssdlab: ") == 1
    assert not folder.parent.exists()


def test_the_last_of_several_jobs_is_read_before_the_first_is_run(
    cli: Cli, job: Path, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.fio"
    wrong.write_text("[w]\nrw=write\niodpeth=3\n")
    said = one_sentence(cli("run", job, wrong, "--on", "lab-reference", *SMALL))
    assert 'did you mean "iodepth"?' in said
    assert not files_below(tmp_path / "data")
    assert "iodpeth" in one_sentence(cli("run", job, wrong, "--on", tmp_path / "scratch"))


def test_names_are_shown_as_they_are_not_as_markup(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "job.fio"
    path.write_text("[/red]\nrw=write\nsize=1m\n")
    assert "/red" in cli("run", path, "--on", "lab-reference", *SMALL).out
    out = tmp_path / "runs"
    RunStore(out).save(make_result("a [bold]drive"))
    assert "a [bold]drive" in cli("list", "runs", "--out", out).out


def test_doubts_mark_numbers_and_not_what_was_not_measured(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "job.fio"
    path.write_text("[r]\nrw=randrw\ntime_based\nruntime=2\n")
    table = cli("run", path, "--on", "lab-reference", "--set", "capacity=128MiB").out
    lines = [line.split("\t") for line in table.splitlines() if "\t" in line]
    read = dict(zip(lines[0], lines[1], strict=True))
    assert (read["ddir"], read["WA"]) == ("read", "-") and read["IOPS"].endswith("†")


def test_the_table_tells_the_write_amplification_of_each_job(cli: Cli, tmp_path: Path) -> None:
    path, document = tmp_path / "job.fio", tmp_path / "out.json"
    path.write_text(
        "[fill]\nrw=write\nbs=128k\n[r]\nstonewall\nrw=randrw\nnorandommap\nio_size=256m\n"
    )
    table = cli(
        "run", path, "--on", "lab-reference", "--set", "capacity=128MiB", "--json", document
    ).out
    summary = json.loads(document.read_text())["ssdlab"]["summary"]
    told = {(one["job"], one["ddir"]): one["waf"] for one in summary}
    assert told["fill", "write"] == pytest.approx(1.0) and told["r", "write"] > 1.0
    lines = [line.split("\t") for line in table.splitlines() if "\t" in line]
    at = lines[0].index("WA")
    rows = {(row[0], row[1]): row[at] for row in lines[1:]}
    assert rows["fill", "write"] == "1"
    assert rows["r", "write"] == units.number(told["r", "write"])
    assert rows["r", "read"] == "-"


def test_a_drive_that_memory_cannot_hold_is_refused(
    cli: Cli, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssdlab.target.simulated.available_bytes", lambda _most: 1 << 30)
    said = one_sentence(cli("run", job, "--on", "lab-reference", "--set", "capacity=1TiB"))
    assert "needs about 2." in said
    assert "1.1 GB are available" in said


def test_what_memory_is_available_heeds_the_limit_of_the_process() -> None:
    free = memory.available_bytes()
    assert free is not None
    assert free > 0
    limit = resource.getrlimit(resource.RLIMIT_AS)
    script = "from ssdlab.memory import available_bytes; print(available_bytes())"
    try:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, limit[1]))
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
    assert 0 < int(done.stdout) < 1 << 30


@pytest.mark.parametrize(("arguments", "said"), [(("show", "ssd"), True), (("list",), False)])
def test_too_few_addresses_for_the_libraries_are_said_before_they_load(
    arguments: tuple[str, ...], said: bool
) -> None:
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (600 << 20,) * 2); "
        f"import sys; sys.argv = ['ssdlab', *{arguments}]; from ssdlab.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr.startswith("ssdlab: ulimit -v allows 0.6 GB of addresses; ") == said


def test_a_folder_of_runs_is_refused_where_none_are_listed(cli: Cli, tmp_path: Path) -> None:
    done = cli("list", "drives", "--out", tmp_path)
    assert done.status == 2 and "--out is for runs" in done.err


@pytest.mark.parametrize("arguments", [("list", "drives"), ("show", "ssd")])
def test_a_full_disk_behind_a_pipe_is_one_sentence(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ssdlab", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr == "ssdlab: the system refuses: No space left on device\n"


def test_a_full_disk_leaves_neither_run_nor_report(
    cli: Cli, job: Path, tmp_path: Path, tiny_disk: Path
) -> None:
    kept = RunStore(tmp_path / "runs").save(make_result("drive"))
    fill(tiny_disk)
    before = files_below(tiny_disk)
    run = ("run", job, "--on", "lab-reference", *SMALL)
    for arguments in (
        (*run, "--out", tiny_disk / "runs"),
        ("report", kept, "-o", tiny_disk / "report.html"),
        *((*run, option, tiny_disk / "x") for option in ("--json", "--csv", "--xlsx", "--logs")),
    ):
        assert "the disk is full" in one_sentence(cli(*arguments), 1)
    assert files_below(tiny_disk) == before
    # It was seen before the job ran.
    assert RunStore().ids() == []


def test_where_a_run_is_kept_is_told_where_its_document_cannot_be_written(
    cli: Cli, job: Path, tmp_path: Path
) -> None:
    done = cli(
        "run", job, "--on", "lab-reference", *SMALL, "--out", tmp_path, "--json", "/dev/full"
    )
    (run,) = RunStore(tmp_path).ids()
    said = one_sentence(done, 1)
    assert said.endswith(f"choose another place; the results are kept in {tmp_path / run}")


@needs_fio()
def test_a_full_disk_for_fio_s_own_files_is_told(
    job: Path, tmp_path: Path, tiny_disk: Path
) -> None:
    fill(tiny_disk)
    # Room for the job, not for what fio answers.
    with (tiny_disk / "full").open("r+b") as file:
        file.truncate((tiny_disk / "full").stat().st_size - 8192)
    process = ssdlab_process("run", job, "--on", tmp_path / "scratch", folder=tiny_disk)
    out, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert out == ""
    assert f"left no whole result in {tiny_disk}; " in said, said
    assert [path.name for path in tiny_disk.iterdir()] == ["full"]
    assert not (tmp_path / "scratch").exists()


@needs_fio()
def test_a_file_is_not_trimmed(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "job.fio"
    path.write_text("[t]\nrw=randtrim\nsize=1m\n")
    said = one_sentence(cli("run", path, "--on", tmp_path / "scratch"))
    assert 'job "t" trims' in said
    assert not (tmp_path / "scratch").exists()


def test_a_run_that_was_tampered_with_is_told_and_does_not_spoil_the_list(
    cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "runs"
    good = RunStore(out).save(make_result("drive"))
    for file, text in (
        ("result.json", "{"),
        ("result.json", "[]"),
        ("series.parquet", "x"),
        ("journal.ndjson", "{\n"),
        ("journal.ndjson", ""),
        ("manifest.json", "x"),
        ("manifest.json", '{"status": "complete", "target": 3, "jobs": 7}'),
    ):
        bad = out / "bad"
        shutil.copytree(good, bad)
        (bad / file).write_text(text)
        said = one_sentence(cli("report", bad, "-o", tmp_path / "r.html"))
        assert said.startswith(str(bad)), said
        assert good.name in cli("list", "runs", "--out", out).out
        shutil.rmtree(bad)
    assert not (tmp_path / "r.html").exists()


def test_a_folder_that_is_gone_below_one_is_told(
    cli: Cli, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    try:
        said = one_sentence(cli("run", job, "--on", "./scratch.bin"))
    finally:
        monkeypatch.chdir(tmp_path)
    assert "the current folder no longer exists" in said


def test_a_group_that_the_bench_lacks_is_refused_before_anything_is_built() -> None:
    lab = Path(__file__).parents[1] / "lab"
    without = {**os.environ, "PYTHON": "nowhere"}

    def said(group: str) -> tuple[int, str]:
        command = [str(lab), "bench", "--quick", "--only", group]
        done = subprocess.run(command, env=without, capture_output=True, text=True)
        return done.returncode, done.stderr

    status, refused = said("nonsense")
    assert status == 2 and refused.startswith("lab: --only nonsense: expected one of write ")
    assert said("tier")[1].startswith("lab: Python"), "what it needs is looked at next"


def test_the_command_alone_shows_its_help_and_fails(cli: Cli) -> None:
    outcome = cli()
    assert outcome.status == 2
    assert outcome.err.startswith("Usage: ssdlab")


def test_an_unknown_name_is_not_answered_with_hundreds(cli: Cli) -> None:
    said = one_sentence(cli("show", "xyzzy"))
    assert len(said) < 200


def test_a_device_is_shown_with_its_keys(cli: Cli) -> None:
    assert "ftl.over_provisioning" in cli("show", "ssd").out


@pytest.mark.parametrize("delay_s", [0.05, 0.15, 0.25, 0.35, 0.6, 1.2, 2.5])
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_stopped_says_so_and_leaves_nothing(
    tmp_path: Path, delay_s: float, sign: signal.Signals
) -> None:
    if sign != signal.SIGINT and delay_s < 1:
        pytest.skip("only Ctrl-C is expected while the program starts")
    path = tmp_path / "job.fio"
    path.write_text("[w]\nrw=randwrite\nsize=16m\ntime_based\nruntime=100000\n")
    process = ssdlab_process("run", path, "--on", "lab-reference", folder=tmp_path / "tmp")
    time.sleep(delay_s)
    os.killpg(process.pid, sign)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, err
    assert out == ""
    by = "Ctrl-C" if sign == signal.SIGINT else sign.name
    assert err.splitlines()[-1].startswith(f"ssdlab: stopped by {by}"), err
    assert "Traceback" not in err
    assert not files_below(tmp_path / "data")
    assert not files_below(tmp_path / "tmp")


def test_a_stop_at_the_moment_a_command_begins_says_so() -> None:
    code = (
        "import os, signal, sys; from ssdlab import cli; answer = cli._answer\n"
        "def struck(handler):\n"
        "    answer(handler)\n"
        "    if handler is cli._interrupt: os.kill(os.getpid(), signal.SIGINT)\n"
        "cli._answer = struck; sys.argv = ['ssdlab', 'list']; cli.main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (130, "ssdlab: stopped by Ctrl-C\n")


@needs_fio()
@pytest.mark.parametrize("delay_s", [0.8, 2.0])
def test_a_measurement_that_is_stopped_takes_fio_and_its_files_with_it(
    tmp_path: Path, delay_s: float
) -> None:
    path, scratch = tmp_path / "job.fio", tmp_path / "scratch"
    path.write_text("[w]\nrw=randwrite\nsize=16m\ntime_based\nruntime=100000\n")
    process = ssdlab_process("run", path, "--on", scratch, folder=tmp_path / "tmp")
    time.sleep(delay_s)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert not scratch.exists()
    # Only what is measured is kept, of which the error tells.
    kept = [path for path in files_below(tmp_path / "data") if path.name == "manifest.json"]
    assert len(kept) == err.count("what was measured until then is kept: ssdlab show ")
    assert kept or not files_below(tmp_path / "data")
    assert not files_below(tmp_path / "tmp")
    assert not fios_at(tmp_path)


@needs_fio()
def test_a_measurement_is_stopped_by_a_ctrl_c_whose_exception_got_lost(tmp_path: Path) -> None:
    """As in a callback of Python's own, where it is said and ignored."""
    path, scratch = tmp_path / "job.fio", tmp_path / "scratch"
    path.write_text("[w]\nrw=randwrite\nsize=16m\ntime_based\nruntime=100000\n")
    lost = (
        "from ssdlab import cli\nraising = cli._interrupt\n"
        "def losing(*signal):\n"
        "    try: raising(*signal)\n"
        "    except KeyboardInterrupt: pass\n"
        "cli._interrupt = losing\n"
    )
    asked = ("run", path, "--on", scratch)
    process = ssdlab_process(*asked, folder=tmp_path / "tmp", before=lost)
    deadline = time.monotonic() + PATIENCE_S
    while not fios_at(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130 and "stopped by Ctrl-C" in err, err
    assert not scratch.exists() and not fios_at(tmp_path)


@needs_fio()
def test_a_measurement_that_is_killed_leaves_no_fio_and_no_run(tmp_path: Path, cli: Cli) -> None:
    path, scratch = tmp_path / "job.fio", tmp_path / "scratch"
    path.write_text("[w]\nrw=randwrite\nsize=16m\ntime_based\nruntime=100000\n")
    process = ssdlab_process("run", path, "--on", scratch, folder=tmp_path / "tmp")
    deadline = time.monotonic() + PATIENCE_S
    while not fios_at(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert fios_at(tmp_path)
    process.kill()
    process.communicate()
    while fios_at(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not fios_at(tmp_path)
    assert "there are no runs yet" in cli("list", "runs").out


def fios_at(folder: Path) -> list[int]:
    """The fio processes that work below ``folder``."""
    found = []
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            works_at = (place / "cwd").readlink()
            if (place / "comm").read_text().strip() == "fio" and works_at.is_relative_to(folder):
                found.append(int(place.name))
    return found


def test_times_and_rates_read_as_people_say_them() -> None:
    assert units.duration(0.0213) == "21.3 ms"
    assert units.duration(0.9999) == "1.0 s"
    assert units.duration(9.96) == "10 s"
    assert units.duration(59.7) == "1 min 00 s"
    assert units.duration(86_400 * 5) == "5 d 0 h"
    assert units.duration(1e17) == "more than ten years"
    assert units.number(0.163) == "0.163"
    assert units.number(12_345.6) == "12,346"
