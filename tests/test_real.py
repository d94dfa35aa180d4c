"""The real fio on a real file: the same Result, and nothing left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ssdlab
from conftest import PATIENCE_S, Outcome, needs_fio
from ssdlab.answer import value_of
from ssdlab.answers.run import answer
from ssdlab.errors import (
    BrokenOffError,
    ExperimentError,
    InputError,
    Interrupted,
    MissingProgramError,
)
from ssdlab.fio.surroundings import REDACTED, _without_secrets
from ssdlab.histogram import KINDS, VALUES, bin_index
from ssdlab.results import SERIES_SCHEMA

pytestmark = [pytest.mark.real, needs_fio()]

SHORT = """[global]
ioengine=psync
size=8m
[fill]
rw=write
bs=64k
[mix]
stonewall
rw=randrw
rwmixread=70
bs=4k
time_based
runtime=1500ms
rate_iops=400
"""


def test_a_file_is_made_for_the_run_and_removed_after_it(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch.bin"
    result = ssdlab.run(SHORT, on=scratch)
    assert list(tmp_path.glob("scratch*")) == []
    assert [job.name for job in result.jobs] == ["fill", "mix"]
    assert result.kind == "fio"
    assert result.frame().height == 3


@pytest.mark.parametrize(
    ("job", "size", "moved"),
    [
        ("[a]\nrw=read\nbs=64k\nsize=6m\noffset=20%\n", 7864320, 6 << 20),
        ("[a]\nrw=write\nbs=64k\nsize=6m\nnumjobs=3\noffset_increment=20%\n", 10 << 20, 18 << 20),
        (
            "[a]\nrw=write\nbs=64k\nsize=8m\n[b]\nstonewall\nrw=read\nbs=16k\nsize=8m\n"
            "offset=25%\n",
            11190272,
            16 << 20,
        ),
    ],
)
def test_a_new_file_has_room_behind_a_share_of_itself(
    job: str, size: int, moved: int, tmp_path: Path
) -> None:
    job = f"[global]\nioengine=psync\n{job}"
    found = ssdlab.run(job, on=tmp_path / "s")
    assert found.ssdlab["target"]["capacity_bytes"] == size
    assert (
        sum(
            one["io_bytes"] for own in found.document["jobs"] for one in (own["read"], own["write"])
        )
        == moved
    )
    with pytest.raises(InputError, match="no file is long enough for such a share"):
        ssdlab.run("[a]\nrw=read\nbs=4k\nsize=1m\noffset=100%\n", on=tmp_path / "s")


def test_a_job_that_verifies_what_it_wrote_is_told_by_its_writes(tmp_path: Path) -> None:
    job = "[a]\nioengine=psync\nrw=write\nbs=64k\nsize=4m\nverify=crc32c\n"
    lead = answer([ssdlab.run(job, on=tmp_path / "s")]).sections[0]
    assert ", write: " in lead.sentences[0]
    assert not any(", read: " in sentence for sentence in lead.sentences)
    assert [row[1] for row in lead.tables[0].rows] == ["write", "read"]


LATENCIES = "[a]\nioengine=psync\nrw=randread\nsize=8m\n"


def test_percentiles_are_of_lat_where_fio_tells_those_alone(tmp_path: Path) -> None:
    job = f"{LATENCIES}clat_percentiles=0\nlat_percentiles=1\n"
    result = ssdlab.run(job, on=tmp_path / "s")
    (told,) = result.measurement.summary()
    lead = answer([result]).sections[0]
    assert lead.tables[0].title == "Measured"
    heads = [column.name for column in lead.tables[0].columns]
    p99 = lead.tables[0].rows[0][heads.index("p99")]
    assert "lat mean" in heads
    assert value_of(p99) == pytest.approx(told["lat_p99_ns"] / 1e3)
    assert {"lat p99", "lat p99.9"} <= {number.name for number in lead.numbers}


@pytest.mark.parametrize(("off", "gone"), [("lat", {"lat", "slat"}), ("clat", {"clat"})])
def test_latencies_that_fio_does_not_take_are_null(
    tmp_path: Path, off: str, gone: set[str]
) -> None:
    # Without lat, fio counts slat from an instant that it has not taken: seconds.
    job = f"{LATENCIES}disable_{off}=1\nioengine=libaio\niodepth=4\ndirect=1\n"
    result = ssdlab.run(job, on=tmp_path / "s")
    (told,) = result.measurement.summary()
    assert {kind for kind in KINDS if told[f"{kind}_max_ns"] is None} == gone
    assert result.frame()["clat_max_ns"].is_null().all() == (off == "clat")
    tables = {table.title: table for one in answer([result]).sections for table in one.tables}
    split = tables.get("Submission and completion")
    assert not {row[1] for row in split.rows} & gone if split else off == "lat"


def test_nothing_is_left_open(tmp_path: Path) -> None:
    job = tmp_path / "a.fio"
    job.write_text("[a]\nioengine=psync\nrw=write\nsize=1m\n")
    command = [sys.executable, "-W", "error", "-m", "ssdlab", "run", str(job)]
    where = ["--on", str(tmp_path / "s"), "--out", str(tmp_path)]
    done = subprocess.run([*command, *where], capture_output=True, text=True, check=True)
    assert "ResourceWarning" not in done.stderr


def test_the_series_adds_up_to_the_totals_of_the_document(tmp_path: Path) -> None:
    result = ssdlab.run(SHORT, on=tmp_path / "s")
    assert dict(result.series().schema) == SERIES_SCHEMA
    totals = result.series().group_by("job", "ddir").agg(pl.col("ios", "bytes").sum())
    sums = {(row[0], row[1]): row[2:] for row in totals.iter_rows()}
    for row in result.frame().iter_rows(named=True):
        ios, volume = sums[row["job"], row["ddir"]]
        assert ios == row["ios"]
        assert volume == pytest.approx(row["io_bytes"], abs=8)
    mix = result.series("mix", "read")
    assert mix.height == 2
    fill_end = result.series("fill")["time_s"].max()
    assert isinstance(fill_end, float)
    assert mix["time_s"].to_list() == pytest.approx([fill_end + t for t in (1, 1.5)], abs=0.1)
    assert mix["iops"].to_list() == pytest.approx([400.0] * 2, rel=0.2)
    assert (mix["lat_p50_ns"] <= mix["lat_p99_ns"]).all()


def test_threads_of_a_group_share_one_series(tmp_path: Path) -> None:
    job = SHORT + "numjobs=2\ngroup_reporting\n"
    result = ssdlab.run(job, on=tmp_path / "s")
    assert len(result.jobs) == 2
    reads = result.frame().filter(job="mix", ddir="read")["ios"].item()
    assert result.series("mix", "read")["ios"].sum() == reads


def test_sections_folded_into_one_group_are_one_series(tmp_path: Path) -> None:
    job = (
        "[global]\nioengine=psync\nsize=4m\ngroup_reporting\ntime_based\nruntime=1500ms\n"
        "rate_iops=100\n[a]\nrw=write\n[b]\nrw=read\n"
    )
    result = ssdlab.run(job, on=tmp_path / "s")
    assert [j.name for j in result.jobs] == ["a"]
    for ddir in ("read", "write"):
        total = result.frame().filter(ddir=ddir)["ios"].item()
        assert result.series("a", ddir)["ios"].sum() == total


def test_a_group_of_which_only_a_later_section_says_so_is_one_job(tmp_path: Path) -> None:
    job = (
        "[global]\nioengine=psync\nsize=4m\ntime_based\nruntime=1100ms\nrate_iops=100\n"
        "[a]\nrw=write\n[b]\nrw=read\ngroup_reporting\n"
    )
    for target in (tmp_path / "s", "lab-reference"):
        result = ssdlab.run(job, on=target)
        assert [one.name for one in result.jobs] == ["a"], target
        assert {one.name for one in result.measurement.jobs} == {"a"}
        for ddir in ("read", "write"):
            total = result.frame().filter(ddir=ddir)["ios"].item()
            assert result.series("a", ddir)["ios"].sum() == total, target


def test_the_bins_are_fios_own(tmp_path: Path) -> None:
    document = ssdlab.run(SHORT, on=tmp_path / "s").document
    seen = {int(v) for j in document["jobs"] for v in j["write"]["clat_ns"]["bins"]}
    assert seen
    # fio cuts the middle of a bin to a whole number.
    assert {int(VALUES[bin_index(value)]) for value in seen} == seen
    assert [bin_index(int(np.ceil(v))) for v in VALUES] == list(range(len(VALUES)))


def test_submission_stands_beside_completion(tmp_path: Path) -> None:
    """slat and clat are parts of lat; an engine that submits by completing has one kind only."""

    def kinds(engine: str) -> dict[str, float]:
        job = SHORT.replace("psync", f"{engine}\niodepth=4")
        told = answer([ssdlab.run(job, on=tmp_path / engine)])
        tables = (table for section in told.sections for table in section.telling)
        found = next((t for t in tables if t.title == "Submission and completion"), None)
        rows = [] if found is None else [[value_of(one) for one in row] for row in found.rows]
        return {str(kind): float(mean or 0) for _, kind, mean, *_ in rows[-3:]}

    means = kinds("libaio")
    assert means["slat"] > 0
    assert means["slat"] + means["clat"] == pytest.approx(means["lat"], rel=0.05)
    assert kinds("psync") == {}


def test_a_file_that_exists_is_never_overwritten_unasked(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    with pytest.raises(InputError, match="exists and would be overwritten"):
        ssdlab.run(SHORT, on=precious)
    assert precious.read_text() == "mine"
    ssdlab.run(SHORT, on=ssdlab.Fio(precious, use_existing=True))
    assert precious.stat().st_size == 8 << 20


def test_a_dangling_link_is_not_followed(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="exists"):
        ssdlab.run(SHORT, on=link)
    assert not (tmp_path / "elsewhere").exists()


def test_other_files_that_a_job_names_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "other"
    job = SHORT.replace("[fill]", f"filename={other}\ndirectory={tmp_path}\n[fill]\nunlink=1")
    result = ssdlab.run(job + "write_bw_log=away/log\n", on=tmp_path / "s")
    assert list(tmp_path.iterdir()) == []
    assert [name for name, _ in result.logs] == ["log_bw.2.log"]
    replaced = [one["option"] for one in result.ssdlab["replaced_options"]]
    assert replaced == ["filename", "directory", "unlink"]


def test_the_surroundings_are_recorded_and_can_be_redacted(tmp_path: Path) -> None:
    plain = ssdlab.run(SHORT, on=ssdlab.Fio(tmp_path / "s"))
    around = plain.ssdlab["surroundings"]
    assert around["fio_version"].startswith("fio-")
    assert around["kernel"] == os.uname().release
    assert around["file_system"]["type"]
    hidden = ssdlab.run(SHORT, on=ssdlab.Fio(tmp_path / "s", redact=True))
    assert str(tmp_path) not in hidden.json()
    serial = around.get("drive", {}).get("serial")
    assert serial is None or serial not in hidden.json()


def test_redaction_strikes_out_what_names_one_drive() -> None:
    answer = {"serial_number": "S1", "wwn": {"id": 5}, "a": [{"nguid": "x", "model_name": "M"}]}
    assert _without_secrets(answer) == {
        "serial_number": REDACTED,
        "wwn": REDACTED,
        "a": [{"nguid": REDACTED, "model_name": "M"}],
    }


def test_a_job_that_fio_refuses_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'^fio refuses job "a": failed parsing verify=sideways'):
        ssdlab.run("[a]\nverify=sideways\nsize=1m\n", on=tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


def test_a_size_that_does_not_fit_is_refused_before_fio_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"needs 1\.13 PB, but only .* are free"):
        ssdlab.run("[a]\nrw=write\nsize=1p\n", on=tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.root
def test_a_disk_that_fills_up_is_one_sentence(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "ssdlab-test", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small file system needs root")
    try:
        job = "[a]\nrw=write\nbs=1m\nsize=3m\nfallocate=none\nioengine=psync\n"
        (tmp_path / "full").touch()
        os.truncate(tmp_path / "full", 16 << 20)  # all holes: nobody sees that it does not fit
        target = ssdlab.Fio(tmp_path / "full", use_existing=True)
        with pytest.raises(ExperimentError, match="No space left on device"):
            ssdlab.run(job.replace("3m", "16m"), on=target)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.root
def test_what_a_drive_did_before_it_failed_is_kept_as_a_failed_run(
    tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    room, out = tmp_path / "room", tmp_path / "runs"
    room.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "ssdlab-test", str(room)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small file system needs root")
    try:
        (room / "full").touch()
        os.truncate(room / "full", 16 << 20)  # all holes: writes fail where there is no room
        job = tmp_path / "job.fio"
        lines = "rw=write\nbs=64k\nioengine=psync\niodepth=1\n"
        job.write_text(f"[a]\n{lines}size=1m\n[b]\nstonewall\n{lines}size=16m\n")
        said = cli("run", job, "--on", room / "full", "--use-existing-file", "--out", out)
    finally:
        subprocess.run(["umount", str(room)], check=True)
    (folder,) = out.iterdir()
    assert said.status == 1
    last = said.err.splitlines()[-1]
    assert re.fullmatch(
        rf'ssdlab: fio failed in job "b": {room}/full: No space left on device '
        r"\(write of 65,536 bytes at offset [\d,]+\); what was measured until then is kept: "
        rf"ssdlab show {folder}",
        last,
    )
    result = ssdlab.Result.load(folder)
    assert [job.name for job in result.jobs] == ["a", "b"]
    assert result.summary()[0]["bytes"] == 1 << 20
    assert result.ssdlab["broken_off"] in last
    assert "a, b (failed)" in cli("list", "runs", "--out", out).out
    assert "not valid (errors): b ended with: No space left" in cli("show", folder).out
    again = cli("resume", folder)
    assert again.status == 2 and "is the run of a job file" in again.err


def test_a_file_that_is_cut_while_it_is_read_is_told(tmp_path: Path) -> None:
    place = tmp_path / "s"
    place.write_bytes(os.urandom(8 << 20))
    seen: list[ssdlab.Progress] = []

    def cut(one: ssdlab.Progress) -> bool:
        seen.append(one)
        if len(seen) == 2:
            os.truncate(place, 1 << 20)
        return True

    job = "[a]\nioengine=psync\nrw=read\nbs=64k\nrate=2m\nsize=8m\n"
    with pytest.raises(BrokenOffError, match=r"s: shrank from 8\.39 MB to 1\.05 MB while") as told:
        ssdlab.run(job, on=place, progress=cut)
    assert told.value.result.summary()[0]["bytes"] < 8 << 20


def test_a_missing_fio_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Outcome]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingProgramError, match="apt install fio"):
        ssdlab.run(SHORT, on=tmp_path / "s")
    job = tmp_path / "job.fio"
    job.write_text(SHORT)
    outcome = cli("run", job, "--on", tmp_path / "s")
    assert outcome.status == 1
    assert outcome.err.count("\n") == 1
    assert not (tmp_path / "s").exists()


def test_a_callback_can_stop_fio(tmp_path: Path) -> None:
    job = "[a]\nrw=write\nsize=4m\ntime_based\nruntime=60\nioengine=psync\nrate_iops=10\n"
    started = time.monotonic()
    with pytest.raises(Interrupted) as told:
        # fio has begun by then, on busy machines too.
        ssdlab.run(job, on=tmp_path / "s", progress=lambda _news: time.monotonic() < started + 3)
    assert time.monotonic() - started < 10
    assert list(tmp_path.iterdir()) == []
    assert told.value.result.ssdlab["broken_off"] == "stopped"
    assert 0 < told.value.result.summary()[0]["ios"] < 600


def test_what_was_stopped_before_its_first_io_leaves_no_result(tmp_path: Path) -> None:
    job = "[a]\nrw=write\nsize=4m\nstartdelay=60\nioengine=psync\n"
    with pytest.raises(Interrupted, match=r"^stopped; fio has ended, nothing was kept$") as told:
        ssdlab.run(job, on=tmp_path / "s", progress=lambda _news: False)
    assert told.value.result is None


@pytest.mark.parametrize(("sign", "by"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_ctrl_c_ends_fio_and_keeps_what_it_has_measured(
    tmp_path: Path, sign: signal.Signals, by: str, cli: Callable[..., Outcome]
) -> None:
    (tmp_path / "job.fio").write_text(
        "[a]\nrw=write\nsize=4m\ntime_based\nruntime=60\nioengine=psync\nrate_iops=10\n"
    )
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "ssdlab", "run", "job.fio", "--on", "./s", "--out", "runs"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + PATIENCE_S
    scratch = tmp_path / "s"
    # fio has been started.
    while not any(temporary.glob("*/stderr")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(2.5)
    process.send_signal(sign)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    (kept,) = (tmp_path / "runs").iterdir()
    assert said == (
        f"ssdlab: stopped by {by}; what was measured until then is kept: "
        f"ssdlab show runs/{kept.name}\n"
    )
    assert list(temporary.iterdir()) == []
    assert not scratch.exists()
    (row,) = ssdlab.Result.load(kept).summary()
    assert 5 <= row["ios"] < 300
    assert "a (stopped)" in cli("list", "runs", "--out", kept.parent).out
    assert f"in doubt (end of the run): stopped by {by} before its end" in cli("show", kept).out


def test_fio_does_not_outlive_a_killed_ssdlab(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(
        "[a]\nrw=write\nsize=4m\ntime_based\nruntime=60\nioengine=psync\nrate_iops=10\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "ssdlab", "run", "job.fio", "--on", "./s", "--out", "runs"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.DEVNULL,
    )

    def writers() -> list[Path]:
        """Processes that work in the folder of the run."""
        found = []
        for link in Path("/proc").glob("[0-9]*/cwd"):
            with contextlib.suppress(OSError):
                if link.readlink().parent == tmp_path:
                    found.append(link)
        return found

    deadline = time.monotonic() + PATIENCE_S
    while not writers() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert writers()
    process.kill()
    process.wait()
    while writers() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert writers() == []


def test_progress_tells_the_share_and_the_time_left(tmp_path: Path) -> None:
    news: list[ssdlab.Progress] = []

    def listen(one: ssdlab.Progress) -> bool:
        news.append(one)
        return True

    job = SHORT.replace("1500ms", "4s")
    ssdlab.run(job, on=tmp_path / "s", progress=listen)
    told = [one for one in news if one.fraction is not None]
    assert told
    assert all(0 <= (one.fraction or 0) <= 1 for one in told)
    assert any(one.eta_s is not None for one in told)


def test_the_command_line_keeps_the_run_and_writes_the_document(
    tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    (tmp_path / "job.fio").write_text(SHORT)
    out = tmp_path / "runs"
    document = tmp_path / "doc.json"
    done = cli(
        "run", tmp_path / "job.fio", "--on", tmp_path / "s", "--out", out, "--json", document
    )
    assert done.status == 0, done.err
    assert "kept in" in done.out
    (folder,) = [p.parent for p in out.glob("*/manifest.json")]
    assert json.loads(document.read_text())["ssdlab"]["target"]["kind"] == "fio"
    assert ssdlab.Result.load(folder).told() == json.loads(document.read_text())
    assert folder.name in cli("list", "runs", "--out", out).out
