"""Traces: the shared ones as counted elsewhere, conversion, samples, jobs made of them, replay."""

from __future__ import annotations

import gzip
import json
import os
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import browser
import ssdlab
import ssdlab.traces
from conftest import Cli, needs_fio
from ssdlab import _core
from ssdlab.api.traces import reading
from ssdlab.errors import InputError
from ssdlab.fio import job as fio_job
from ssdlab.fits import observations
from ssdlab.jobfile import JobText
from ssdlab.plan.workload import trace_load
from ssdlab.tracefile import Reading, Replay, left_out
from ssdlab.traces import fit, profile
from ssdlab.traces.convert import convert
from test_report import COLOURED

SHARED = Path(os.environ.get("SSDLAB_TRACES", "no-such-folder"))
COUNTED = [
    # file, format, reads, writes, span s, footprint MiB: as published with them.
    ("cloudPhysicsIO.vscsi.gz", "vscsi-v1", 46974, 66898, 7200, 1052),
    ("linux-webserver-2.load.gz", "blkreplay", 149018, 119989, 3601, 1906),
    ("windows-mssql.load.gz", "blkreplay", 2528, 40448, 3062, 605),
    ("hp-ajw.1week.srt.gz", "hp-srt", 13040, 31479, 603_065, 29),
    ("DTRS100M.trace.gz", "ssdsim", 113_123, 13_920, 30_000, 4970),
    ("ssd-postmark-aligned2.trace.gz", "disksim", 51_780, 10_477, 490, 5990),
    ("mqsim-tpcc-small.trace.gz", "ssdsim", 4381, 2618, 0.14, 80),
    ("mqsim-wsrch-small.trace.gz", "ssdsim", 24_779, 4, 60, 363),
    ("ssdsim-example.ascii.gz", "ssdsim", 4077, 5923, 260, 29),
    ("nvme-java-blkparse.txt.gz", "blkparse", 1695, 0, 0.7, 189),
]


def small(tmp_path: Path, name: str = "small.csv") -> Path:
    """Forty requests: reads of 4 KiB and writes of 8 KiB, 1 ms apart, over 80 MiB."""
    lines = ["time_ns,kind,offset,length,device,response_ns"]
    for n in range(40):
        kind, length = ("write", 8192) if n % 4 == 0 else ("read", 4096)
        lines.append(f"{n * 1_000_000},{kind},{(n % 10) * 2**23},{length},0,")
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return path


COLUMNS = "Timestamp;Host;Op;LBA;Size\n0.5;h;Read;8;4096\n0.75;h;W;16;8192\n90;h;w;0;512\n"


@pytest.mark.parametrize(
    ("columns", "window", "requests"),
    [
        (
            "time=0,op=2,lba=3,size=4",
            None,
            [(0, 0, 4096, 4096), (250, 1, 8192, 8192), (89_500, 1, 0, 512)],
        ),
        (
            "time=timestamp,op=Op,lba=LBA,size=Size",
            "0-40s",
            [(0, 0, 4096, 4096), (250, 1, 8192, 8192)],
        ),
        ("block=3", None, [(0, 0, 8192, 1024), (0, 0, 16384, 1024), (0, 0, 0, 1024)]),
    ],
)
def test_columns_are_where_they_are_told_to_be(
    tmp_path: Path, columns: str, window: str | None, requests: list[tuple[int, int, int, int]]
) -> None:
    path = tmp_path / "load.txt"
    path.write_text(COLUMNS)
    how = reading(columns=columns, window=window, trace_block=1024)
    (batch,) = ssdlab.traces.open(path, how)
    read = (batch.time_ns // 10**6, batch.kind, batch.offset, batch.length)
    assert list(zip(*(one.tolist() for one in read), strict=True)) == requests


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("time=0,lba=LBAs", 'did you mean "LBA"'),
        ("tyme=0,lba=3", 'did you mean "time"'),
        ("lba=9", "the first line has 5"),
        ("time=0", "name lba, offset or block"),
        ("lba", "such as time=0,lba=3"),
    ],
)
def test_a_column_that_does_not_exist_is_one_sentence(
    tmp_path: Path, cli: Cli, columns: str, sentence: str
) -> None:
    path = tmp_path / "load.txt"
    path.write_text(COLUMNS)
    done = cli("trace", "info", path, "--columns", columns)
    assert done.status == 2 and sentence in done.err and len(done.err.splitlines()) == 1
    unknown = cli("trace", "info", path).err
    assert "Timestamp;Host" in unknown and "looked for blkparse" in unknown
    assert "--columns time=0,op=2,lba=3,size=4" in unknown


def test_raw_keys_and_lis_are_blocks(tmp_path: Path) -> None:
    numbers = [7, 8, 7, 2**31]
    (tmp_path / "k").write_bytes(struct.pack("<4I", *numbers))
    (tmp_path / "a.lis").write_text("7 2 0 0\n7 1 0 1\n")
    (keys,) = ssdlab.traces.open(tmp_path / "k", Reading(format="keys-u32"))
    assert (keys.offset // 4096).tolist() == numbers
    (lis,) = ssdlab.traces.open(tmp_path / "a.lis", Reading(block_bytes=512))
    assert (lis.offset.tolist(), lis.length.tolist()) == ([3584, 3584], [1024, 512])


@pytest.mark.parametrize(("name", "format_", "reads", "writes", "seconds", "mib"), COUNTED)
def test_a_shared_trace_holds_what_was_counted_elsewhere(
    name: str, format_: str, reads: int, writes: int, seconds: float, mib: float
) -> None:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not in the folder that SSDLAB_TRACES names")
    found = profile.profile(path)
    assert found["format"] == format_
    kinds = found["requests_by_kind"]
    assert (kinds["read"], kinds["write"]) == (reads, writes)
    assert found["seconds"] == pytest.approx(seconds, rel=0.04)
    assert found["footprint"]["blocks"] * 4096 / 2**20 == pytest.approx(mib, abs=1)


def test_a_trace_that_repeats_itself_is_told_of() -> None:
    path = SHARED / "linux-webserver-2.load.gz"
    if not path.exists():
        pytest.skip("linux-webserver-2.load.gz is not in the folder that SSDLAB_TRACES names")
    remarks = " ".join(profile.profile(path)["remarks"])
    assert "74,468 requests (27.7 %) repeat the one before them within 1 ms" in remarks


def test_one_odd_request_is_told_as_one(tmp_path: Path) -> None:
    lines = [*["5000000,write,0,4096,0,"] * 2, "0,read,8192,100,0,", "9000000,read,0,0,0,"]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["time_ns,kind,offset,length,device,response_ns", *lines]) + "\n")
    twice, early, empty, part, *_ = profile.profile(path)["remarks"]
    assert twice.startswith("1 request (33.3 %) repeats the one before it within 1 ms")
    assert early.startswith("1 request has a time before that of the request before")
    assert empty == "1 request without a byte is left out."
    assert part.startswith("1 request (33.3 %) is not whole sectors of 512 bytes")


def test_batches_are_columns_of_one_length(tmp_path: Path) -> None:
    batches = list(ssdlab.traces.open(small(tmp_path), batch=16))
    assert [len(batch) for batch in batches] == [16, 16, 8]
    first = batches[0]
    assert first.time_ns.dtype == np.int64 and first.offset.dtype == np.uint64
    assert first.length.dtype == np.uint32 and first.kind.dtype == np.uint8
    assert first.time_ns[3] == 3_000_000 and first.length[4] == 8192
    assert list(first.kind[:5]) == [1, 0, 0, 0, 1]


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst", ".xz"])
@pytest.mark.parametrize("to", ["csv", "iolog-v3", "vscsi-v1", "msr", "blktrace", "spc"])
def test_a_converted_trace_is_the_same_trace(
    tmp_path: Path, cli: Cli, to: str, suffix: str
) -> None:
    source, out = small(tmp_path), tmp_path / f"out.bin{suffix}"
    done = cli("trace", "convert", source, out, "--to", to, "-q", "--json", "-")
    assert done.status == 0, done.err
    assert json.loads(done.out)["requests"] == 40
    (want,), (got,) = list(ssdlab.traces.open(source)), list(ssdlab.traces.open(out))
    for column in ("time_ns", "offset", "length", "kind"):
        assert np.array_equal(getattr(want, column), getattr(got, column)), column


def test_the_name_of_a_file_says_in_which_format_it_is_written(tmp_path: Path) -> None:
    formats = {one["suffix"]: one for one in _core.trace_formats() if one["suffix"]}
    assert len(formats) == sum(bool(one["suffix"]) for one in _core.trace_formats()) >= 7
    for suffix, one in formats.items():
        assert one["writable"], one["name"]
        done = convert(small(tmp_path), tmp_path / f"out{suffix}.gz")
        assert done["to"] == one["name"]


def test_nothing_half_written_is_left(tmp_path: Path, cli: Cli) -> None:
    source = small(tmp_path)
    text = source.read_text()
    source.write_text(text.replace("20000000,write", "20000000,wrote"))
    out = tmp_path / "out.csv"
    out.write_text("before")
    done = cli("trace", "convert", source, out)
    assert done.status == 2
    assert "small.csv:22: found" in done.err
    assert out.read_text() == "before"
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "data") == [
        "out.csv",
        "small.csv",
    ]
    done = cli("trace", "convert", source, out, "--skip-damaged")
    assert done.status == 0 and "39 requests" in done.out


def test_what_is_converted_may_be_a_window(tmp_path: Path, cli: Cli) -> None:
    trace, out = small(tmp_path), tmp_path / "part.csv"
    done = cli("trace", "convert", trace, out, "--window", "10ms-20ms")
    assert done.status == 0, done.err
    assert sum(len(one) for one in ssdlab.traces.open(out)) == 10


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (("--device", 7), "has no request of device 7"),
        (("--window", "10s-"), "has no request from 10 s on; it ends at 0.039 s"),
        (("--window", "500us-600us"), "has no request from 0.0005 s to 0.0006 s"),
    ],
)
def test_a_trace_of_which_nothing_is_selected_is_a_sentence(
    tmp_path: Path, cli: Cli, how: tuple[object, ...], said: str
) -> None:
    trace = small(tmp_path)
    for what, more in (
        ("info", ()),
        ("replay", ("--on", "demo-client", "--out", tmp_path / "kept")),
        ("convert", (tmp_path / "new.csv",)),
        ("to-fio", (tmp_path / "new.fio", "--fit")),
    ):
        done = cli("trace", what, trace, *more, *how)
        assert done.status == 2 and done.err == f"ssdlab: {trace}: {said}\n", what
    assert cli("cache", trace, *how).err == f"ssdlab: {trace}: {said}\n"
    assert [file.name for file in tmp_path.iterdir()] == [trace.name]


def test_a_sample_takes_a_window_and_a_share(tmp_path: Path, cli: Cli) -> None:
    source = small(tmp_path)
    for arguments, count in ((["--window", "10ms-20ms"], 10), (["--share", "100"], 40)):
        out = tmp_path / "s.csv"
        done = cli("trace", "sample", source, out, *arguments, "-q", "--json", "-")
        assert json.loads(done.out)["requests"] == count, done.err
    (part,) = ssdlab.traces.open(source, Reading(share=0.4))
    assert 0 < len(part) < 40
    assert {int(n) for n in part.offset} < {n * 2**23 for n in range(10)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["info", "nothing.csv"], "nothing.csv: there is no such trace"),
        (["info", "small.csv", "--format", "mrs"], 'did you mean "msr"'),
        (["info", "small.csv", "--action", "X"], "expected Q"),
        (["info", "small.csv", "--window", "5-6"], "with units"),
        (["info", "small.csv", "--window", "10s-5s"], "an end after the start"),
        (["info", "letter.txt"], "letter.txt: is no trace in a known format"),
        (["info", "empty.txt"], "empty.txt: is empty"),
        (["convert", "small.csv", "x.bin"], "say with --to"),
        (["convert", "small.csv", "x.bin", "--to", "blkparse"], "can be read but not written"),
        (["convert", "small.csv", "small.csv"], "is the trace that is read"),
        (["sample", "small.csv", "x.csv"], "give --share"),
        (["sample", "small.csv", "x.csv", "--share", "0"], "above 0"),
        (["replay", "small.csv", "--on", "demo-client", "--fit", "no"], "as-is, wrap, scale"),
        (["replay", "small.csv", "--on", "demo-client", "--depth", "4", "--speed", "2"], "--speed"),
        (["replay", "small.csv", "--on", "small.toml"], "--fit wrap"),
    ],
)
def test_bad_input_is_one_sentence(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    small(tmp_path)
    (tmp_path / "letter.txt").write_text("Dear reader,\nthis is no trace.\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "small.toml").write_text('[device]\nkind = "null"\ncapacity = "64MiB"\n')
    monkeypatch.chdir(tmp_path)
    done = cli("trace", *arguments)
    assert done.status == 2
    assert said in done.err and done.err.count("\n") == 1, done.err
    assert not (tmp_path / "x.bin").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        "trace info t.csv",
        "trace convert t.csv x.msr --to msr",
        "trace sample t.csv x.csv --share 99",
        "trace to-fio t.csv x.fio",
        "trace to-fio t.csv x.fio --fit",
        "trace replay t.csv --on lab-reference --set capacity=128MiB",
        "cache t.csv --policies lru --sizes 2blocks",
        "cache t.csv --policies lru --sizes 1k --columns key=offset,size=length",
    ],
)
def test_what_is_left_out_as_damaged_is_counted(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, arguments: str
) -> None:
    text = small(tmp_path, "t.csv").read_text().splitlines()
    (tmp_path / "t.csv").write_text("\n".join([*text[:9], "9,read,foo,bar,0,", *text[9:], ""]))
    monkeypatch.chdir(tmp_path)
    assert cli(*arguments.split()).status == 2
    done = cli(*arguments.split(), "--skip-damaged")
    assert done.status == 0, done.err
    said = '1 damaged line or record is left out; the first: t.csv:10: found "9,read,foo,bar,0,"'
    assert said in done.out + done.err


def test_a_plan_says_what_of_its_trace_is_left_out(tmp_path: Path) -> None:
    trace = small(tmp_path)
    trace.write_text(trace.read_text() + "foo\n")
    load = trace_load(trace, Reading(skip_damaged=True), "as-is", 1 << 30, 1)
    assert any("1 damaged line" in note for note in load.notes)


@pytest.mark.parametrize(
    ("first", "damaged"),
    [
        ("time_ns,kind,offset,length,device,response_ns", "0,read,-4096,4096,0,"),
        ("fio version 2 iolog", "f read x 4096"),
        ("fio version 3 iolog", "0 f read x 4096"),
    ],
)
def test_a_trace_that_names_its_format_is_of_it_even_if_its_first_request_is_damaged(
    tmp_path: Path, first: str, damaged: str
) -> None:
    trace = tmp_path / "t"
    trace.write_text(f"{first}\n{damaged}\n")
    with pytest.raises(InputError) as error:
        profile.profile(trace)
    assert str(error.value).startswith(f'{trace}:2: found "{damaged}", expected')


def test_blocks_of_devices_that_differ_in_their_driver_alone_are_different_blocks(
    tmp_path: Path,
) -> None:
    """8:0, 9:0, 253:0 and 259:0: a disk, an array of it, a volume on that, and an NVMe drive."""
    drivers = (8, 9, 253, 259)
    lines = ["time_ns,kind,offset,length,device,response_ns"]
    lines += [f"{n},read,{n // 4 * 4096},4096,{drivers[n % 4] << 20}," for n in range(400)]
    trace = tmp_path / "t.csv"
    trace.write_text("\n".join(lines) + "\n")
    found = profile.profile(trace)
    assert (found["footprint"]["blocks"], found["reuse"]["reused"]) == (400, 0)
    caches = ssdlab.cache(trace, policies="lru", sizes="1blocks").frame()
    assert caches["working_set_blocks"].to_list() == [400]


def test_a_damaged_archive_is_a_sentence(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "t.csv.gz"
    whole = gzip.compress(small(tmp_path).read_bytes() * 2000)
    path.write_bytes(whole[: len(whole) // 2])
    done = cli("trace", "info", path)
    assert done.status == 2 and done.err.count("\n") == 1
    assert "cannot be decompressed from here on (the file ends too early)" in done.err
    assert done.err.endswith("; with --skip-damaged what is before is read\n")


@pytest.mark.parametrize(
    ("suffix", "count"), [("gz", 300), ("xz", 300), ("gz", 20_000), ("zst", 20_000), ("xz", 20_000)]
)
def test_of_an_archive_that_breaks_off_what_is_there_is_read_if_asked(
    tmp_path: Path, suffix: str, count: int
) -> None:
    """Shorter and longer than the beginning by which a format is found."""
    rng = np.random.default_rng(5)
    places = 4096 * rng.integers(0, 1 << 20, count)
    plain = tmp_path / "t.csv"
    lines = ["time_ns,kind,offset,length,device,response_ns"]
    lines += [f"{n},read,{place},4096,0," for n, place in enumerate(places)]
    plain.write_text("\n".join(lines) + "\n")
    packed, cut = tmp_path / f"t.csv.{suffix}", tmp_path / f"cut.{suffix}"
    convert(plain, packed, "csv")
    cut.write_bytes(packed.read_bytes()[:-20])
    lenient = Reading(skip_damaged=True)
    found = np.concatenate([one.offset for one in ssdlab.traces.open(cut, lenient)])
    assert 0 < len(found) <= count and found.tolist() == places[: len(found)].tolist()
    (said,) = left_out(cut, lenient)
    assert said.startswith("1 damaged line or record is left out; the first: ")
    assert f"{cut}:{len(found) + 2}: cannot be decompressed from here on" in said


def test_info_writes_a_table_a_document_and_a_page(tmp_path: Path, cli: Cli) -> None:
    page, document = tmp_path / "t.html", tmp_path / "t.json"
    done = cli("trace", "info", small(tmp_path), "--report", page, "--json", document)
    assert done.status == 0, done.err
    assert "40" in done.out and "footprint" in done.out
    found = json.loads(document.read_text())
    # Ten places, and the second block of the five that are written.
    assert found["footprint"]["blocks"] == 15
    assert "Access map (LBA x time)" in page.read_text() and "small.csv" in page.read_text()


def test_times_of_a_trace_are_told_however_long_and_not_beyond_their_ends(
    tmp_path: Path, cli: Cli
) -> None:
    """fio's bins end at 17 s, and their middles lie 1/128 beside what is counted."""
    for gap_ns, told in ((60_000_000_000, "60 s"), (100_000, "100 us")):
        lines = [f"{n * gap_ns},read,{n * 4096},4096,0,{gap_ns}\n" for n in range(100)]
        trace = tmp_path / f"{gap_ns}.csv"
        trace.write_text("time_ns,kind,offset,length,device,response_ns\n" + "".join(lines))
        found = profile.profile(trace)
        for times in (found["arrivals"]["gaps"], found["responses"]["read"]):
            assert {row["ns"] for row in times} == {gap_ns}
        table = cli("trace", "info", trace).out
        assert f"between requests\tmedian {told}" in table and "e+" not in table


def test_a_fitted_job_has_the_mix_and_sizes_of_its_trace(tmp_path: Path, cli: Cli) -> None:
    job = tmp_path / "j.fio"
    done = cli("trace", "to-fio", small(tmp_path), job, "--fit")
    assert done.status == 0, done.err
    text = job.read_text()
    assert "rwmixread=75" in text and "bssplit=4096/100,8192/100" in text
    result = ssdlab.run(job, on="demo-client", set={"capacity": "1408MiB"}, prepare="sequential")
    assert result.kind == "sim"


def test_shares_of_sizes_add_to_100() -> None:
    sizes = [{"bytes": 512 * n, "read": 7 * n % 5 + 1, "write": 0} for n in range(1, 40)]
    parts = [part.split("/") for part in fit.split(sizes, "read").split(":")]
    assert sum(int(share) for _, share in parts) == 100
    assert len(parts) <= fit.SIZES_MAX


def test_the_zipf_exponent_of_a_zipf_law_is_found() -> None:
    blocks = 20_000
    for theta in (0.6, 0.9, 1.2):
        weights = np.arange(1, blocks + 1, dtype=float) ** -theta
        share = float(weights[: blocks // 10].sum() / weights.sum())
        foot = {
            "blocks": blocks,
            "hottest": [{"percent_of_blocks": 10.0, "share_of_touches": share}],
        }
        assert fit.zipf(foot) == pytest.approx(theta, abs=0.011)


def test_a_replay_on_a_simulated_drive_is_an_ordinary_result(tmp_path: Path, cli: Cli) -> None:
    document = tmp_path / "r.json"
    done = cli(
        "trace", "replay", small(tmp_path), "--on", "demo-client", "--set", "capacity=1408MiB",
        "--prepare", "sequential", "--json", document,
    )  # fmt: skip
    assert done.status == 0, done.err
    job = json.loads(document.read_text())["jobs"][0]
    assert (job["read"]["total_ios"], job["write"]["total_ios"]) == (30, 10)
    assert job["job_runtime"] == pytest.approx(39, abs=2)


def test_a_replay_of_flushes_alone_takes_the_time_that_it_took(tmp_path: Path) -> None:
    lines = [f"{33_000 * n},flush,0,0,0," for n in range(4)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["time_ns,kind,offset,length,device,response_ns", *lines]) + "\n")
    (row,) = ssdlab.replay(path, on="lab-reference").summary()
    assert (row["ddir"], row["ios"]) == ("sync", 4)
    # The milliseconds of fio's document would make 1 ms of it.
    assert row["iops"] == pytest.approx(4 / 99e-6)


def test_a_replay_is_no_sequential_read(tmp_path: Path) -> None:
    """What fio's option rw would say, its default, a replay does not do."""
    result = ssdlab.replay(small(tmp_path), "demo-client", set={"capacity": "1408MiB"}, depth=4)
    (job,) = result.measurement.jobs
    assert (job.workload.rw, job.workload.read_percent) == ("replay", None)
    assert observations.observations(result) == []
    assert "replay (replay, " in result.report.sentences[0]


def test_a_job_file_replays_a_trace_beside_it(tmp_path: Path) -> None:
    small(tmp_path)
    job = tmp_path / "j.fio"
    job.write_text("[r]\nread_iolog=small.csv\nreplay_no_stall=1\niodepth=4\n")
    result = ssdlab.run(job, on="demo-client", set={"capacity": "1408MiB"})
    assert int(result.frame()["ios"].sum()) == 40
    job.write_text("[r]\nread_iolog=other.csv\n")
    with pytest.raises(InputError, match=r"other\.csv: there is no such trace"):
        ssdlab.run(job, on="demo-client")


def test_simulations_that_replay_a_trace_at_once_share_it_unless_it_has_changed(
    tmp_path: Path,
) -> None:
    trace = small(tmp_path)

    def ios(_place: int) -> int:
        result = ssdlab.replay(trace, "demo-client", set={"capacity": "1408MiB"})
        return int(result.frame()["ios"].sum())

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ios, range(8))) == [40] * 8
        trace.write_text("".join(trace.read_text().splitlines(keepends=True)[:21]))
        assert list(pool.map(ios, range(8))) == [20] * 8


def test_fio_gets_a_trace_of_its_target_alone(tmp_path: Path) -> None:
    small(tmp_path)
    text = "[r]\nread_iolog=small.csv\nreplay_redirect=/dev/sda\niodepth=3\nioengine=libaio\n"
    job = JobText("j", text, tmp_path, Replay())
    real = fio_job.rewrite(job, Path("/tmp/target"), None)
    assert "/dev/sda" not in real.text and "small.csv" not in real.text
    assert [one.trace.lane for one in real.sections if one.trace] == [0, 1, 2]
    assert real.plan.known_bytes == 10 * 8192 and real.plan.writes
    assert real.plan.span_bytes == 9 * 2**23 + 4096
    for section in real.sections:
        assert section.trace is not None
        section.trace.write(tmp_path, Path("/tmp/target"))
    lines = (tmp_path / "ssdlab000-2.iolog").read_text().splitlines()
    assert lines[:3] == ["fio version 3 iolog", "1 /tmp/target add", "1 /tmp/target open"]
    assert lines[3].startswith("2001 /tmp/target read ")
    assert {line.split()[1] for line in lines[1:]} == {"/tmp/target"}


@needs_fio()
@pytest.mark.parametrize("how", [["--depth", "4"], []])
def test_a_replay_on_a_file_is_measured_by_fio(tmp_path: Path, cli: Cli, how: list[str]) -> None:
    document = tmp_path / "r.json"
    target = tmp_path / "file.bin"
    done = cli("trace", "replay", small(tmp_path), "--on", target, "--json", document, *how)
    assert done.status == 0, done.err
    assert not target.exists()
    (job,) = json.loads(document.read_text())["jobs"]
    read = job["read"]
    assert (read["total_ios"], job["write"]["total_ios"]) == (30, 10)
    # At a depth fio 3.33 forgets what is in flight when the trace ends.
    assert 30 - 4 * bool(how) <= read["clat_ns"]["N"] <= 30
    assert read["io_bytes"] == read["clat_ns"]["N"] * 4096


@needs_fio()
def test_what_is_made_for_fio_runs_in_fio(tmp_path: Path, cli: Cli) -> None:
    source = small(tmp_path)
    for arguments in ([], ["--fit"]):
        job = tmp_path / "k.fio"
        assert cli("trace", "to-fio", source, job, *arguments).status == 0
        text = job.read_text().replace("libaio", "null").replace("runtime=", "runtime=1;")
        job.write_text(text + "filesize=1g\n")
        done = subprocess.run(
            ["fio", "k.fio", "--output-format=json"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr + done.stdout


def test_columns_do_not_depend_on_the_batch(tmp_path: Path) -> None:
    path = tmp_path / "t.vscsi"
    records = [struct.pack("<IIIHHQQ", n, 512, 1, 0x28, 0x0100, n * 7, n * 10) for n in range(1000)]
    path.write_bytes(b"".join(records))
    whole = np.concatenate([b.offset for b in ssdlab.traces.open(path)])
    pieces = np.concatenate([b.offset for b in ssdlab.traces.open(path, batch=7)])
    assert np.array_equal(whole, pieces) and len(whole) == 1000


@pytest.mark.skipif(browser.missing() != "", reason=browser.missing() or "-")
def test_every_chart_of_the_page_is_drawn(tmp_path: Path, cli: Cli) -> None:
    page = tmp_path / "t.html"
    assert cli("trace", "info", small(tmp_path), "--report", page, "-q").status == 0
    with browser.tab() as tab:
        tab.open(page, 1280, 5000)
        tab.settle()
        drawn = tab.run(COLOURED)
        assert len(drawn) == 7 and min(drawn) > 20, drawn
        assert tab.complaints == []
        assert {url.split(":")[0] for url in tab.requests} <= {"file", "data", "blob"}
