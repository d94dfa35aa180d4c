"""What a job is going to do: planned by the core, done by fio and by a simulated drive."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ssdlab import _core
from ssdlab.errors import InputError
from ssdlab.results import DIRECTIONS

MIB = 1 << 20
DEVICE = 64 * MIB
RIG = f'[device]\nkind = "null"\ncapacity = "{DEVICE}B"\nservice_time = "1us"\n'

pytestmark = pytest.mark.usefixtures("short_fio")
real = pytest.mark.skipif(shutil.which("fio") is None, reason="there is no fio")

ON_A_DEVICE = {
    "decimal": "rw=read size=8MiB",
    "binary": "rw=read size=8MB",
    "decimal base": "kb_base=1000 rw=read size=8m",
    "other way round": "kb_base=1000 rw=read size=8MiB bs=4kib",
    "base of its own": "size=1m [job] kb_base=1000 rw=read",
    "filesize bounds a share": "rw=read filesize=16m offset=8m size=25%",
    "filesize bounds the whole": "rw=read filesize=16m",
    "filesize and size": "rw=read filesize=16m size=4m offset=8m",
    "filesize below size": "rw=read filesize=16m size=32m",
    "filesize of the device": "rw=read filesize=64m offset=32m size=25%",
    "filesize around the device": "rw=read filesize=32m-128m offset=32m size=25%",
    "share of filesize": "rw=read filesize=16m size=2m io_size=50%",
    "share of size": "rw=read size=2m io_size=50%",
    "shares of shares": "rw=read offset=32m size=75% io_size=50%",
    "clones at shares": "rw=read numjobs=3 offset_increment=25% size=10m",
    "clones of a share": "rw=read numjobs=3 offset_increment=20m size=25%",
    "clones to the end": "rw=read numjobs=3 offset_increment=20m",
    "uneven share": "rw=read offset=10% size=33% bs=12k",
    "loops and ends": "rw=read size=1m loops=3 number_ios=100",
    "more than size": "rw=write size=1m io_size=2500k",
    "trim and write": "rw=write:8k size=1m io_size=512k",
    "half a second": "rw=read size=1m startdelay=0.5",
    "half a second of ramp": "rw=read size=1m runtime=0.5",
    "a range of delays": "rw=read size=1m startdelay=1us-2us",
    "a mix": "rw=rw size=4m rwmixread=70",
}
"""Options of jobs by what is odd about them; `[job]` ends those of `[global]`."""

ON_A_NEW_FILE = {
    "decimal": "rw=write size=8MiB",
    "decimal base": "kb_base=1000 rw=write size=8m",
    "clones beside each other": "rw=write size=4m numjobs=3 offset_increment=8m",
    "offset": "rw=write size=4m offset=3m",
    "share of an offset": "rw=write size=4m offset=50%",
    "filesize": "rw=write filesize=8m",
    "filesize from an offset": "rw=write filesize=8m offset=2m",
    "share of filesize": "rw=write filesize=8m size=50%",
    "size in filesize": "rw=write filesize=8m size=2m",
    "filesize below size": "rw=write filesize=8m size=16m",
    "uneven": "rw=write size=10m bs=3m",
    "again": "rw=write size=2m io_size=5m",
    "reads": "rw=randread size=3m",
    "appended": "rw=write size=2m file_append=1 numjobs=2",
    "second job": "rw=write size=4m [job] [more] stonewall rw=read offset=2m size=50%",
}


def job_text(options: str, filename: Path | None = None) -> str:
    """The job file of a case."""
    lines = ["[global]", *([f"filename={filename}"] if filename else [])]
    words = options.split()
    words = words if "[job]" in words else ["[job]", *words]
    return "\n".join([*lines, *words]) + "\n"


def by_fio(options: str, target: Path, folder: Path) -> Mapping[str, list[int]]:
    """I/Os and bytes by direction that fio does; processes together."""
    job, out = folder / "job.fio", folder / "out.json"
    text = job_text(options, target).replace("[global]", "[global]\nioengine=psync\nthread=1", 1)
    job.write_text(text)
    command = ["fio", "--output-format=json", f"--output={out}", str(job)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return totals(json.loads(out.read_text()))


def totals(document: Mapping[str, Any]) -> Mapping[str, list[int]]:
    """I/Os and bytes of all jobs by direction."""
    return {
        ddir: [sum(job[ddir][key] for job in document["jobs"]) for key in ("total_ios", "io_bytes")]
        for ddir in DIRECTIONS
    }


def planned_bytes(plan: _core.JobPlan, blocks: Callable[[int, int], int]) -> list[int]:
    """Bytes by direction; `blocks` says how many blocks of a size an amount is."""
    found = [0, 0, 0]
    for one in plan["processes"]:
        assert one["bytes"] is not None
        for place, (size, _) in enumerate(one["block_bytes"]):
            found[place] += blocks(one["bytes"][place], size) * size
    return found


def begun(amount: int, size: int) -> int:
    """On a device the last block of an amount is a whole one."""
    return -(-amount // size)


@real
@pytest.mark.parametrize("case", ON_A_DEVICE)
def test_a_job_on_a_device_does_what_fio_does_and_what_was_planned(
    case: str, tmp_path: Path
) -> None:
    options = ON_A_DEVICE[case]
    target = tmp_path / "device"
    with target.open("wb") as file:
        file.truncate(DEVICE)
    fio = by_fio(options, target, tmp_path)
    text = job_text(options)
    simulated = totals(json.loads(_core.Drive(RIG, rig_name="null").run(text, job_name=case).json))
    plan = planned_bytes(_core.job_plan(text, job_name=case, target_bytes=DEVICE), begun)
    if case == "a mix":
        # Which I/Os of a mix are reads is drawn.
        assert sum(map(sum, fio.values())) == sum(map(sum, simulated.values()))
        assert 4 * MIB <= sum(plan) <= 4 * MIB + 4096
        assert plan == pytest.approx([fio[ddir][1] for ddir in DIRECTIONS], rel=0.1)
    else:
        assert fio == simulated
        assert plan == [fio[ddir][1] for ddir in DIRECTIONS]
    assert target.stat().st_size == DEVICE, "it fitted"


@real
@pytest.mark.parametrize("case", ON_A_NEW_FILE)
def test_a_new_file_becomes_as_large_as_planned(case: str, tmp_path: Path) -> None:
    options = ON_A_NEW_FILE[case]
    target = tmp_path / "new"
    fio = by_fio(options, target, tmp_path)
    plan = _core.job_plan(job_text(options), job_name=case)
    assert plan["target_bytes"] == target.stat().st_size
    assert planned_bytes(plan, int.__floordiv__) == [fio[ddir][1] for ddir in DIRECTIONS]


@pytest.mark.parametrize(
    ("text", "size"),
    [("4k", 4096), ("1M", MIB), ("2GiB", 2 * 10**9), ("2GB", 2 << 30), ("7", 7), ("0x10", 16)],
)
def test_sizes_are_read_as_fio_reads_them(text: str, size: int) -> None:
    assert _core.parse_fio_size(text) == size


def test_a_base_of_1000_turns_sizes_round() -> None:
    assert _core.parse_fio_size("8m", 1000) == 8_000_000
    assert _core.parse_fio_size("8MiB", 1000) == 8 * MIB
    with pytest.raises(InputError, match="kb_base of 1024 or 1000"):
        _core.parse_fio_size("8m", 1023)


@pytest.mark.parametrize("text", ["1.5m", "", "k", "8 q", "-1"])
def test_what_fio_would_misread_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected a whole number"):
        _core.parse_fio_size(text)


def test_a_plan_says_where_when_and_in_which_stage() -> None:
    text = (
        "[global]\nsize=8m\n[a]\nrw=randrw\nrwmixread=70\nbs=4k,8k\nnumjobs=2\n"
        "offset_increment=16m\niodepth=4\n[b]\nstonewall\nrw=trimwrite\ntime_based\nruntime=2m\n"
        "ramp_time=5\nstartdelay=1-3\n[c]\nrw=read\nnrfiles=2\n"
    )
    plan = _core.job_plan(text, job_name="t", target_bytes=DEVICE)
    first, second, timed, files = plan["processes"]
    assert (first["name"], first["rw"], first["iodepth"], first["stage"]) == ("a", "randrw", 4, 0)
    assert first["shares"] == [0.7, 0.3, 0.0]
    assert first["block_bytes"][:2] == [(4096, 4096), (8192, 8192)]
    # Of ten I/Os seven read 4k and three write 8k.
    assert first["bytes"] == [round(8 * MIB * 28 / 52), round(8 * MIB * 24 / 52), 0]
    assert first["regions"][0][1] == second["regions"][0][1] == 8 * MIB
    assert second["regions"][0][0] - first["regions"][0][0] == 16 * MIB
    assert (timed["stage"], timed["bytes"], timed["shares"]) == (1, None, [0.0, 0.5, 0.5])
    assert (timed["runtime_s"], timed["ramp_s"], timed["start_delay_s"]) == (120, 5, (1, 3))
    assert (files["stage"], len(files["regions"])) == (1, 2)
    assert sum(length for _, length in files["regions"]) == 8 * MIB


def test_a_job_that_replays_a_trace_leaves_its_places_to_the_trace() -> None:
    (one,) = _core.job_plan("[a]\nread_iolog=x.log\n", job_name="t")["processes"]
    assert (one["replays"], one["regions"], one["bytes"]) == (True, [], None)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")
@real
def test_a_job_that_does_not_fit_the_file_system_is_refused_before_it_begins(
    tmp_path: Path,
) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(mount)], check=True)
    try:
        from ssdlab.jobfile import JobText
        from ssdlab.target import Fio, Settings

        job = JobText("j", "[a]\nrw=write\nsize=6m\nnumjobs=3\noffset_increment=6m\n", tmp_path)
        with pytest.raises(InputError, match=r"needs 18\.9 MB, but only .* are free"):
            Fio(mount / "new.bin").run(job, Settings())
        (mount / "old.bin").write_bytes(bytes(1 * MIB))
        with pytest.raises(InputError, match=r"but only .* are free"):
            Fio(mount / "old.bin", use_existing=True).run(job, Settings())
        fills = JobText("j", "[a]\nrw=write\nsize=1m\nfill_device=1\n", tmp_path)
        with pytest.raises(InputError, match="leave no room in the file system"):
            Fio(mount / "new.bin").run(fills, Settings())
        assert sorted(one.name for one in mount.iterdir()) == ["old.bin"]
    finally:
        subprocess.run(["umount", str(mount)], check=True)
