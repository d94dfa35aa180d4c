"""A job for a real target touches the target and the run's folder, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ssdlab.errors import InputError, RefusedError
from ssdlab.fio.job import RealJob, rewrite
from ssdlab.fio.options import ADDED, ADDED_FOR_LOGS, ALLOWED, ENGINES, REFUSED, REPLACED
from ssdlab.jobfile import JobText

TARGET = Path("/data/scratch:1.bin")


def rewritten(text: str, **environment: str) -> RealJob:
    return rewrite(JobText("job.fio", text, Path("/")), TARGET, 1 << 30, environment)


def lines_of(text: str, **environment: str) -> list[str]:
    return rewritten(text, **environment).text.splitlines()


def test_every_section_gets_the_target_and_no_other_file() -> None:
    text = (
        "[global]\nfilename=/dev/sda\ndirectory=/etc\n"
        "[a]\nfilename=/dev/sdb:/dev/sdc\n[b]\nrw=write\n"
    )
    job = rewritten(text)
    files = [line for line in job.text.splitlines() if line.startswith(("filename", "directory"))]
    assert files == ["filename=/data/scratch\\:1.bin"] * 2
    assert [one["option"] for one in job.replaced] == ["filename", "directory", "filename"]


def test_logs_stay_in_the_folder_of_the_run() -> None:
    lines = lines_of("[a]\nwrite_lat_log=/etc/cron.d/x\nwrite_bw_log\n")
    assert "write_lat_log=x" in lines
    assert "write_bw_log=a" in lines


@pytest.mark.parametrize(
    "line",
    [
        "exec_prerun=rm -rf /",
        "exec_postrun=x",
        "ioengine=exec",
        "ioengine=external:/tmp/evil.so",
        "ioengine=net",
        "write_iolog=/etc/passwd",
        "allow_mounted_write=1",
        "mem=mmap:/etc/passwd",
        "iomem=mmaphuge:/x",
        "cgroup_weight=5",
        "ioscheduler=none",
    ],
)
def test_what_could_reach_elsewhere_is_refused_with_its_place(line: str) -> None:
    with pytest.raises(RefusedError, match=r"^job\.fio:2: "):
        rewritten(f"[a]\n{line}\n")


def test_an_engine_hidden_in_a_variable_is_refused() -> None:
    with pytest.raises(RefusedError, match="ioengine=exec"):
        rewritten("[a]\nioengine=${ENGINE}\n", ENGINE="exec")


def test_an_option_hidden_in_a_variable_is_seen() -> None:
    assert "filename=/dev/sda" not in lines_of("[a]\n${X}=/dev/sda\n", X="filename")


def test_a_variable_cannot_smuggle_a_line() -> None:
    with pytest.raises(InputError, match="control character"):
        rewritten("[a]\nbs=${X}\n", X="4k\nfilename=/dev/sda")


def test_a_variable_that_is_not_set_is_an_error() -> None:
    with pytest.raises(InputError, match=r"job\.fio:2: .*variable SIZE is not set"):
        rewritten("[a]\nsize=${SIZE}\n")


def test_an_unknown_option_is_refused_with_the_one_meant() -> None:
    with pytest.raises(InputError, match=r'job\.fio:2: "iodpeth".*did you mean "iodepth"'):
        rewritten("[a]\niodpeth=3\n")


def test_a_target_that_a_job_file_cannot_carry_is_an_error() -> None:
    with pytest.raises(InputError, match="cannot carry this path"):
        rewrite(JobText("j", "[a]\n", Path("/")), Path("/tmp/a;b"), None)


def test_a_job_without_sections_is_an_error() -> None:
    with pytest.raises(InputError, match="no job section"):
        rewritten("[global]\nbs=4k\n")


def test_includes_are_read_in_place_and_checked(tmp_path: Path) -> None:
    (tmp_path / "inc.fio").write_text("filename=/dev/sda\nbs=8k\n")
    job = JobText("job.fio", "[a]\nsize=1m\ninclude inc.fio\n", tmp_path)
    text = rewrite(job, TARGET, None, {}).text
    assert "bs=8k" in text
    assert "/dev/sda" not in text


def test_a_file_that_includes_itself_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.fio").write_text("include a.fio\n")
    with pytest.raises(InputError, match=r"^a\.fio:1: this line cannot be used in the job"):
        rewrite(JobText("a.fio", "include a.fio\n", tmp_path), TARGET, None, {})


def test_comments_end_a_line_as_in_fio() -> None:
    assert "bs=8k" in lines_of("[a]\nbs=8k ; half of it\n# rw=write\n")


def test_the_plan_adds_what_each_section_writes() -> None:
    plan = rewritten(
        "[global]\nsize=100m\n[fill]\nrw=write\n[mix]\nrw=randrw\nrwmixread=70\nnumjobs=2\n"
        "[read]\nrw=read\n[timed]\nrw=randwrite\ntime_based\nruntime=2m\n"
    ).plan
    assert plan.writes
    assert plan.known_bytes == (100 << 20) + 2 * int((100 << 20) * 0.3)
    assert plan.open_seconds == 120.0
    assert plan.span_bytes == 1 << 30
    assert plan.sentence() == "writes up to 168 MB and writes as fast as it can for 120 s"


def test_trims_are_no_writes_in_the_plan() -> None:
    plan = rewritten("[a]\nrw=randtrim\nsize=8m\n[b]\nrw=trimwrite\nsize=1m\n").plan
    assert (plan.writes, plan.known_bytes, plan.trimmed_bytes) == (True, 1 << 20, 9 << 20)


def test_a_size_that_the_plan_cannot_read_is_an_error_at_its_line() -> None:
    with pytest.raises(InputError, match=r'^job\.fio:4: size: found "1\.5m"'):
        rewritten("; a comment\n[a]\nbs=4k\nsize=1.5m\n")


def test_what_lies_beyond_the_device_is_an_error_at_its_line() -> None:
    with pytest.raises(InputError, match=r"^job\.fio:3: \[a\] size: .* does not fit"):
        rewritten("[a]\nrw=write\nsize=2g\n")


def test_zones_beyond_the_range_are_an_error_at_their_line() -> None:
    zones = "random_distribution=zoned_abs:60/1m:40/2m"
    with pytest.raises(
        InputError, match=r"^job\.fio:4: \[a\] random_distribution: .* 3MiB .* 1MiB"
    ):
        rewritten(f"[a]\nrw=randread\nsize=1m\n{zones}\n")
    rewritten(f"[a]\nrw=randread\nsize=3m\n{zones}\n")


def test_a_new_file_needs_a_size() -> None:
    job = JobText("job.fio", "[a]\nrw=write\nbs=4k\n", Path("/"))
    with pytest.raises(InputError, match=r"^job\.fio:1: \[a\] size: is needed"):
        rewrite(job, TARGET, None, {})


def test_an_existing_file_is_as_large_as_it_is_or_as_the_job_makes_it() -> None:
    job = JobText("job.fio", "[a]\nrw=write\n[b]\nrw=write\noffset=1m\nsize=1m\n", Path("/"))
    assert rewrite(job, TARGET, None, {}, file_bytes=8 << 20).plan.span_bytes == 8 << 20
    assert rewrite(job, TARGET, None, {}, file_bytes=1 << 20).plan.span_bytes == 2 << 20


def test_options_that_only_fio_knows_do_not_stand_in_the_way_of_the_plan() -> None:
    text = "[a]\nrw=randwrite\nsize=1m\nverify=crc32c\nzonemode=zbd\nnumjobs=$ncpus\n"
    assert rewritten(text).plan.known_bytes == (os.cpu_count() or 1) << 20


def test_a_job_that_reads_writes_nothing() -> None:
    plan = rewritten("[read]\nrw=randread\nsize=1g\n").plan
    assert (plan.writes, plan.sentence()) == (False, "writes nothing")


def test_the_docs_name_what_ssdlab_sets_and_which_engines_pass() -> None:
    page = (Path(__file__).parent.parent / "docs" / "jobs.md").read_text("utf-8")
    for name, value in {**ADDED, **ADDED_FOR_LOGS}.items():
        written = f"`{name}={value}`" if value.isdigit() else f"`{name}`"
        assert written in page
    assert [f"`{engine}`" for engine in sorted(ENGINES) if f"`{engine}`" not in page] == []
    assert ADDED.keys() <= REPLACED.keys()


def test_every_option_has_one_fate() -> None:
    kinds = [set(ALLOWED), set(REPLACED), set(REFUSED)]
    assert sum(len(kind) for kind in kinds) == len(set.union(*kinds))


def test_with_logs_each_section_writes_those_that_it_does_not_write_itself() -> None:
    job = JobText("j", "[a]\nrw=read\n[b]\nrw=read\nwrite_bw_log=x\n", Path("/"))
    text = rewrite(job, TARGET, 1 << 30, {}, logs=True).text
    first, second = text.split("[b]")
    for line in ("write_bw_log=ssdlab000", "write_lat_log=ssdlab000", "log_avg_msec=1000"):
        assert line in first.splitlines()
    assert "write_bw_log=x" in second.splitlines()
    assert "write_bw_log=ssdlab001" not in second
    assert "write_iops_log=ssdlab001" in second.splitlines()
    assert "log_avg_msec" not in second


def test_what_the_job_sets_as_ssdlab_would_is_not_called_replaced() -> None:
    replaced = rewritten("[a]\nthread\nper_job_logs=1\nlog_hist_msec=500\n").replaced
    assert [one["option"] for one in replaced] == ["log_hist_msec"]
