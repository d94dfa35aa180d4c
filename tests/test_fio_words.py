"""Where the real fio refuses a job or a run fails, its own sentence is shown, once; what is read
beforehand, to know what a job will do, is told at its line."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ssdlab
from conftest import Outcome, needs_fio
from ssdlab.errors import BrokenOffError, ExperimentError, InputError, SsdlabError
from ssdlab.fio.complaints import failure

pytestmark = [pytest.mark.real, needs_fio(), pytest.mark.usefixtures("short_fio")]

REFUSED = {
    "rw=randread\nsize=1m\nrandom_distribution=zipf:abc": "random postfix parsing failed",
    "rw=randread\nsize=1m\nrandom_distribution=gauss": "valid values: random, zipf, pareto, ",
    "rw=write\nsize=1m\nsteadystate=foo:1": "failed parsing steadystate=foo:1",
    "rw=write\nsize=1m\ncpus_allowed=1000": "CPU 1000 too large",
    "rw=write\nsize=1m\nzonemode=zbd": "Specifying the zone size is mandatory",
    "rw=write\nsize=1m\nrate=1m\nrate_iops=10": "rate and rate_iops are mutually exclusive",
    "rw=write\nsize=1m\nprio=99": "max value out of range: 99 (7 max)",
    "rw=read\nsize=1m\nioengine=psync\nsqthread_poll=1": "Bad option <sqthread_poll=1>",
    "rw=write\nsize=1m\nbuffer_pattern=zzz": "failed parsing buffer_pattern=zzz",
    "rw=write\nsize=1m\npercentile_list=abc": "not a floating point value: abc",
}
"""Options of a job that fio 3 refuses, and what it prints."""

PLANNED = {
    "rw=read": "1: [broken] size: is needed, as the file is still empty; "
    "fio says: you need to specify size=",
    "rw=sideways\nsize=1m": '2: rw: found "sideways", expected read, write, trim, ',
    "rw=write\nsize=1m\nbs=abc": '4: bs: found "abc", expected a whole number',
    "rw=write\nsize=1m\nbs=0": '4: bs: found "0", expected a size above 0',
    "rw=write\nsize=1m\niodepth=abc": '4: iodepth: found "abc", expected a whole number',
    "rw=write\nsize=1m\nbs=2m": "3: [broken] size: 1MiB is less than one I/O of 2MiB",
    "rw=read\nsize=1m\noffset=2m\nfilesize=1m": "4: [broken] offset: begins at 2MiB",
    "rw=randrw\nsize=1m\nrwmixread=150": '4: rwmixread: found "150", expected a whole percentage',
    "rw=randread\nsize=1m\nbsrange=8k": '4: bsrange: found "8k", expected a range of sizes',
    "rw=write\nsize=1m\nwait_for=zz": '4: [broken] wait_for: no job "zz" stands above',
    "rw=write\nsize": "3: size: needs a value",
    "rw=write\nsize=": "3: size: needs a value",
    "rw=read\nsize=1m\nnumjobs=100000": '4: numjobs: found "100000", expected a number from 1 to',
}
"""Options that fio refuses too, read beforehand because they say what moves where and when."""


def refusal(job: str, scratch: Path) -> SsdlabError:
    with pytest.raises(SsdlabError) as caught:
        ssdlab.run(job, on=scratch)
    assert "\n" not in caught.value.message
    assert not scratch.exists()
    return caught.value


@pytest.mark.parametrize("options", REFUSED, ids=lambda text: text.replace("\n", " "))
def test_a_job_that_fio_refuses_says_what_fio_says(options: str, tmp_path: Path) -> None:
    error = refusal(f"[broken]\n{options}\n", tmp_path / "s")
    assert error.message.startswith('fio refuses job "broken": ')
    assert REFUSED[options] in error.message
    assert type(error) is InputError


@pytest.mark.parametrize("options", PLANNED, ids=lambda text: text.replace("\n", " "))
def test_what_the_plan_cannot_read_is_told_at_its_line_before_fio_starts(
    options: str, tmp_path: Path
) -> None:
    error = refusal(f"[broken]\n{options}\n", tmp_path / "s")
    assert error.message.startswith(f"<job>:{PLANNED[options]}")
    assert type(error) is InputError


def test_the_job_among_several_is_named(tmp_path: Path) -> None:
    job = "[good]\nrw=write\nsize=1m\n[bad]\nrw=write\nsize=1m\nprio=x\n"
    error = refusal(job, tmp_path / "s")
    assert error.message == 'fio refuses job "bad": failed parsing prio=x'


def test_a_run_that_fails_says_what_fio_says_and_is_no_wrong_input(tmp_path: Path) -> None:
    job = "[slow]\nrw=write\nsize=1m\nioengine=psync\nmax_latency=1ns\n"
    error = refusal(job, tmp_path / "s")
    assert error.message.startswith('fio failed in job "slow": latency of ')
    assert "exceeds specified max" in error.message
    assert type(error) is BrokenOffError  # it had written something


def test_data_that_do_not_verify_are_a_failed_run(tmp_path: Path) -> None:
    job = "[a]\nrw=read\nsize=1m\nverify=crc32c\nverify_fatal=1\n"
    error = refusal(job, tmp_path / "s")
    assert error.message.startswith('fio failed in job "a": verify: bad magic header')
    assert error.exit_status == 1


@pytest.fixture
def no_direct(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory that does not take O_DIRECT."""
    folder = tmp_path / "ram"
    folder.mkdir()
    mount = ["mount", "-t", "ramfs", "ssdlab-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a file system in memory needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.root
@pytest.mark.parametrize("engine", ["psync", "libaio"])
def test_a_file_system_without_direct_io_is_told_in_fios_words(
    engine: str, no_direct: Path
) -> None:
    job = f"[a]\nrw=write\nsize=1m\ndirect=1\nioengine={engine}\n"
    error = refusal(job, no_direct / "s")
    assert "your file system does not support direct=1/buffered=0" in error.message
    assert error.exit_status == 2


def test_blocks_that_the_device_cannot_take_are_told(tmp_path: Path) -> None:
    job = "[a]\nrw=write\nsize=1m\nbs=1000\ndirect=1\nioengine=psync\n"
    error = refusal(job, tmp_path / "s")
    assert error.message.endswith("/s: Invalid argument (write of 1,000 bytes at offset 0)")
    assert error.exit_status == 2


@pytest.mark.parametrize(
    ("status", "said", "message", "kind"),
    [
        (-9, [], "fio failed: it was ended by SIGKILL", ExperimentError),
        (1, [], 'fio refuses job "a": it ended with status 1 and said nothing', InputError),
        (
            1,
            ["fio: pid=0, err=28/file:filesetup.c:240, func=write, error=No space left on device"],
            'fio failed in job "a": No space left on device',
            ExperimentError,
        ),
        (1, ["fio: hello", "hello", "error: hello."], 'fio refuses job "a": hello', InputError),
    ],
)
def test_what_fio_says_in_codes_or_not_at_all_is_put_into_words(
    status: int, said: list[str], message: str, kind: type[SsdlabError]
) -> None:
    error = failure(status, None, said, ["a"], {})
    assert (error.message, type(error)) == (message, kind)


def test_the_command_line_says_what_was_set_and_what_was_replaced(
    tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    job = tmp_path / "job.fio"
    job.write_text(f"[a]\nrw=read\nsize=1m\nfilename={tmp_path}/other\ndirectory=/etc\nthread=1\n")
    document = tmp_path / "result.json"
    done = cli("run", job, "--on", tmp_path / "s", "--json", document)
    assert done.status == 0, done.err
    assert "\ndecided by the target instead: filename, directory\n" in done.out
    assert "\nset by ssdlab for fio: filename, write_hist_log, log_hist_msec, " in done.out
    assert not (tmp_path / "other").exists()
    about = ssdlab.Result.load(next((tmp_path / "data/ssdlab/runs").glob("*/"))).ssdlab
    assert [one["option"] for one in about["replaced_options"]] == ["filename", "directory"]
    assert {"job": "a", "option": "thread", "value": "1"} in about["added_options"]
    assert f'"value": "{tmp_path}/other"' in document.read_text()
