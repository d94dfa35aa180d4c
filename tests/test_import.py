"""Results of others: documents of every version and layout become runs that say no more than they
were told."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreign_samples as samples
from conftest import Cli, needs_fio
from foreign_samples import BINS, IDLE, RANDREAD, direction, document, job, old, simple, write
from ssdlab import documents
from ssdlab.checks import examine, of_result
from ssdlab.errors import InputError
from ssdlab.fits import observations
from ssdlab.histogram import BINS as FINE
from ssdlab.histogram import VALUES, bin_index
from ssdlab.imports import ForeignDocument, imported_runs, scan
from ssdlab.imports.reading import documents_in
from ssdlab.results import Result
from ssdlab.store import RunStore


def one(path: Path) -> ForeignDocument:
    """The only document below a path."""
    found = scan([path])
    assert len(found.found) == 1 and not found.refused, found.refused
    return found.found[0]


def summary(path: Path) -> dict[str, Any]:
    """The numbers of the only job and direction below a path."""
    (row,) = one(path).result.summary()
    return row


def statuses(result: Result) -> dict[str, str]:
    """What the checks say of a run."""
    return {check.name: check.status for check in examine(of_result(result))}


# --- documents


def test_compressed_documents_are_read(tmp_path: Path) -> None:
    plain = write(tmp_path / "a" / "x.json", simple())
    packed = tmp_path / "b" / "x.json.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    (tmp_path / "b" / "x.tar.gz").write_bytes(gzip.compress(bytes(8192)))
    assert summary(packed.parent) == summary(packed) == summary(plain)
    packed.write_bytes(packed.read_bytes()[:-20])
    (refused,) = scan([packed]).refused
    assert "breaks off" in refused.why


def test_a_document_keeps_its_numbers(tmp_path: Path) -> None:
    row = summary(write(tmp_path / "x.json", simple()))
    assert (row["job"], row["ddir"], row["ios"], row["iops"]) == ("reads", "read", 1000, 1000.0)
    assert row["bytes"] == 1000 * 4096
    assert row["clat_mean_ns"] == pytest.approx(0.9 * 80e3 + 0.09 * 120e3 + 0.01 * 900e3)
    assert row["clat_p50_ns"] == VALUES[bin_index(80_000)]
    assert row["clat_p99_ns"] == VALUES[bin_index(120_000)]
    assert row["slat_mean_ns"] is None and row["waf"] is None


@pytest.mark.parametrize("numbered", [False, True], ids=["bins by latency", "bins by number"])
def test_an_old_document_says_the_same(tmp_path: Path, numbered: bool) -> None:
    now = summary(write(tmp_path / "new" / "x.json", simple()))
    then = summary(write(tmp_path / "old" / "x.json", old(simple(), numbered=numbered)))
    for name in ("job", "ddir", "ios", "bytes", "iops"):
        assert then[name] == now[name]
    for name in ("clat_mean_ns", "clat_p50_ns", "clat_p99_ns", "clat_max_ns", "lat_mean_ns"):
        assert then[name] == pytest.approx(now[name], rel=0.016), name


def test_percentiles_without_bins_are_those_that_fio_gives(tmp_path: Path) -> None:
    found = document(job("reads", RANDREAD, read=direction(plus=False)))
    row = summary(write(tmp_path / "x.json", found))
    told = found["jobs"][0]["read"]["clat_ns"]["percentile"]
    assert row["clat_p50_ns"] == told["50.000000"]
    assert row["clat_p99_ns"] == told["99.000000"]
    # Not in fio's list, and too few I/Os besides.
    assert row["clat_p9999_ns"] is None
    assert row["lat_p99_ns"] is None
    # It gives bins of which the middle, or the end, may lie beyond the slowest I/O.
    clat = found["jobs"][0]["read"]["clat_ns"]
    clat["percentile"] |= dict.fromkeys(("99.000000", "99.900000"), 1.01 * clat["max"])
    row = summary(write(tmp_path / "y.json", found))
    assert row["clat_p99_ns"] == row["clat_max_ns"] == clat["max"]


def test_what_several_jobs_give_without_bins_has_no_percentile_together(tmp_path: Path) -> None:
    twice = [job("reads", RANDREAD, read=direction(plus=False))] * 2
    row = summary(write(tmp_path / "x.json", document(*twice)))
    assert (row["ios"], row["iops"], row["clat_p99_ns"]) == (2000, 2000.0, None)


def test_the_oldest_documents_count_no_ios(tmp_path: Path) -> None:
    found = old(simple())
    del found["jobs"][0]["read"]["total_ios"]
    assert summary(write(tmp_path / "x.json", found))["ios"] == 1000


def test_clients_are_added_up_once(tmp_path: Path) -> None:
    found = simple()
    jobs = found.pop("jobs")
    found["client_stats"] = [*jobs, *jobs, {**jobs[0], "jobname": "All clients"}]
    assert summary(write(tmp_path / "x.json", found))["ios"] == 2000


def test_workers_are_counted_and_defaults_of_fio_told(tmp_path: Path, cli: Cli) -> None:
    plain = {"rw": "randread", "direct": "1"}
    path = write(tmp_path / "x.json", document(*[job("a", plain, read=direction())] * 2))
    said = json.loads(cli("import", path, "--out", tmp_path / "runs", "--json", "-").out)
    tables = {table["title"]: table for one in said["sections"] for table in one["tables"]}
    (row,) = tables["Every job"]["rows"]
    assert (row["block"], row["depth"], row["jobs"], row["IOPS"]) == ("4k", 1, 2, 2000)
    shown = cli("show", "last", "--out", tmp_path / "runs").out
    assert "numjobs 2" in shown


def test_several_block_sizes_are_told_before_the_one_that_they_overrule(
    tmp_path: Path, cli: Cli
) -> None:
    write(tmp_path / "a.json", simple(bs="4k", bssplit="4k/60:64k/40"))
    (section,) = json.loads(cli("import", tmp_path, "--plan", "--json", "-").out)["sections"]
    tables = {table["title"]: table for table in section["tables"]}
    assert tables["Every job"]["rows"][0]["block"] == "4k/60:64k/40"


def test_rates_below_nothing_are_refused(tmp_path: Path) -> None:
    found = simple()
    found["jobs"][0]["read"]["iops"] = -3
    (refused,) = scan([write(tmp_path / "x.json", found)]).refused
    assert "iops" in refused.why and "greater than or equal to 0" in refused.why


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"mean": 2e6}, "the mean (2000000 ns) is above the maximum (900000 ns)"),
        ({"min": 200_000}, "the mean (91800 ns) is below the minimum (200000 ns)"),
        ({"percentile": {"50.0": 9000, "99.0": 8000}}, "p99 (8000 ns) is below p50 (9000 ns)"),
    ],
)
@pytest.mark.parametrize("of_version", [dict, old], ids=["fio 3", "fio 2"])
def test_latencies_that_cannot_be_are_refused(
    tmp_path: Path, told: dict[str, Any], said: str, of_version: Callable[[Any], Any]
) -> None:
    found = simple()
    side = found["jobs"][0]["read"]
    side["clat_ns"] = {"min": 80_000, "max": 900_000, "mean": 91_800.0, "percentile": {}} | told
    (refused,) = scan([write(tmp_path / "x.json", of_version(found))]).refused
    assert f"clat_ns: {said}" in refused.why


def test_old_versions_cut_minima_and_maxima_to_microseconds(tmp_path: Path) -> None:
    found = simple()
    found["jobs"][0]["read"]["clat_ns"] = {"min": 80_000, "max": 80_000, "mean": 80_700.0}
    assert not scan([write(tmp_path / "x.json", old(found))]).refused


def test_the_idle_entry_that_fio_adds_to_a_group_is_no_job(tmp_path: Path) -> None:
    found, added = simple(), job("", None)
    del added["jobname"]
    found["jobs"].append(added)
    (only,) = scan([write(tmp_path / "x.json", found)]).found
    assert [one["jobname"] for one in only.document["jobs"]] == ["reads"]


def test_time_of_grouped_threads_is_not_added_up(tmp_path: Path) -> None:
    found = simple(numjobs="8")
    found["jobs"][0]["job_runtime"] = 8000
    assert summary(write(tmp_path / "x.json", found))["window_s"] == [0.0, 1.0]


# --- texts


def texts(*parts: object) -> list[str]:
    """The names of the first jobs of the documents in a text."""
    text = "".join(one if isinstance(one, str) else json.dumps(one) for one in parts)
    return [found["jobs"][0]["jobname"] for found in documents_in(text).documents]


def named(name: str, **more: Any) -> dict[str, Any]:
    """A document of a job of that name."""
    return document(job(name, RANDREAD, read=direction()), **more)


def test_documents_are_found_wherever_they_stand() -> None:
    warning = 'fio: set "direct" {or not}\n'
    assert texts(warning, named("a"), "\nfio: file has holes\n") == ["a"]
    assert texts(named("a"), "\n", named("b")) == ["a", "b"]
    assert texts([named("a"), named("b")]) == ["a", "b"]
    assert texts({"host1": {"fio": named("a")}, "host2": [named("b")]}) == ["a", "b"]
    assert texts("{" * 200_000) == []
    assert texts('{"a":' * 100_000) == []


def test_numbers_that_are_none_are_unknown(tmp_path: Path) -> None:
    text = json.dumps(simple()).replace('"usr_cpu": 1.5', '"usr_cpu": -nan')
    assert "nan" in text
    result = one(write(tmp_path / "x.json", text)).result
    assert "usr_cpu" not in result.jobs[0].raw


def test_of_documents_that_fio_wrote_as_it_went_the_last_counts() -> None:
    stages = []
    for second in (1, 2, 3):
        found = named("a", timestamp_ms=1_600_000_000_000 + 1000 * second)
        found["jobs"][0]["elapsed"] = second
        stages.append(found)
    again = named("a", timestamp_ms=1_600_000_100_000)
    again["jobs"][0]["elapsed"] = 3
    found_in = documents_in("\n".join(map(json.dumps, [*stages, again])))
    assert [d["timestamp_ms"] for d in found_in.documents] == [1_600_000_003_000, 1_600_000_100_000]
    assert found_in.superseded == 2


# --- layouts

DRIVE = "/dev/nvme7n1"


def test_bench_fio_tells_by_its_folders(tmp_path: Path) -> None:
    samples.bench_fio(tmp_path)
    found = scan([tmp_path]).found
    assert [one.label for one in found] == ["nvme7n1"] * 3
    assert {one.told.layout for one in found} == {"bench-fio"}
    options = [one.result.jobs[0].options for one in found]
    assert options[0] == {"rw": "randread", "iodepth": "1", "numjobs": "1", "bs": "4k"}
    assert options[1]["iodepth"] == "8"
    assert options[2] == {**options[0], "rw": "randrw", "rwmixread": "75"}


def test_a_document_is_believed_before_its_place(tmp_path: Path) -> None:
    place = tmp_path / "sda" / "64k" / "randwrite-9-9.json"
    foreign = one(write(place, simple()))
    assert foreign.label == "/dev/nvme7n1"
    options = foreign.result.jobs[0].options
    assert (options["rw"], options["bs"], options["iodepth"]) == ("randread", "4k", "4")
    assert options["numjobs"] == "9"  # which it leaves open


def test_ezfio_tells_job_model_and_capacity(tmp_path: Path) -> None:
    path = samples.ezfio(tmp_path)
    foreign = one(tmp_path)
    assert (foreign.told.layout, foreign.label, foreign.device) == ("ezFIO", "ACME X1", DRIVE)
    result = foreign.result
    assert result.job_text.startswith("[test-/dev/nvme7n1]\n")
    assert result.ssdlab["target"]["capacity_bytes"] == 894 << 30
    assert result.ssdlab["surroundings"]["drive"] == {"model": "ACME X1", "serial": "S123"}
    options = result.jobs[0].options
    assert (options["rwmixread"], options["numjobs"], options["direct"]) == ("70", "4", "1")
    assert statuses(result)["cache"] == "good"
    assert foreign.path == path


def test_cbt_tells_by_its_folders(tmp_path: Path) -> None:
    samples.cbt(tmp_path)
    found = scan([tmp_path])
    (foreign,) = found.found
    assert len(found.again) == 1
    # That of the other host is of a document which is not there.
    assert [log.name for log in foreign.logs] == ["output.0_iops.1.log.node1"]
    assert [one.path.name for one in found.refused] == ["output.0_iops.1.log.node2"]
    assert foreign.frames is not None and foreign.frames.series["iops"].to_list() == [1000.0] * 2
    assert (foreign.told.layout, foreign.device, foreign.kind) == ("CBT", "/dev/vdb", "device")
    options = foreign.result.jobs[0].options
    assert options == {"bs": "16384", "iodepth": "32", "rw": "randwrite"}


def test_what_nobody_says_stays_unknown(tmp_path: Path) -> None:
    found = document(job("a", None, read=direction(), write=direction()))
    foreign = one(write(tmp_path / "mystery.json", found))
    assert (foreign.device, foreign.kind, foreign.label) == (None, "unknown", "mystery")
    result = foreign.result
    assert result.target_kind == "unknown" and not foreign.knows_options
    assert "capacity_bytes" not in result.ssdlab["target"]
    assert result.jobs[0].options == {} and result.waf is None
    unknown = {name for name, status in statuses(result).items() if status == "unknown"}
    assert {"cache", "data", "steady", "load", "heat", "unwritten"} <= unknown


def test_known_options_are_checked(tmp_path: Path) -> None:
    direct = one(write(tmp_path / "direct.json", simple())).result
    assert statuses(direct)["cache"] == "good"
    buffered = one(write(tmp_path / "b.json", simple(direct="0"))).result
    assert statuses(buffered)["cache"] == "bad"
    del (text := simple())["jobs"][0]["usr_cpu"], text["jobs"][0]["sys_cpu"]
    assert statuses(one(write(tmp_path / "t.json", text)).result)["cpu"] == "unknown"


# --- logs

ROW = "{ms}, {value}, {ddir}, 4096, 0\n"


def hist_line(ms: int, bins: dict[int, int], columns: int = FINE) -> str:
    """A line of a histogram log, maybe of coarser bins."""
    counts = np.zeros(FINE, dtype=int)
    for ns, count in bins.items():
        counts[bin_index(ns)] += count
    return f"{ms}, 0, 4096, " + ", ".join(map(str, counts.reshape(columns, -1).sum(axis=1))) + "\n"


@pytest.mark.parametrize("columns", [FINE, FINE // 8])
def test_histogram_logs_become_a_series(tmp_path: Path, columns: int) -> None:
    bins = {80_000: 100}
    found = document(
        job("r", {**RANDREAD, "write_hist_log": "r"}, read=direction({80_000: 300}, ms=3000))
    )
    write(tmp_path / "x.json", found)
    lines = [hist_line(ms, bins, columns) for ms in (1000, 2001)]
    write(tmp_path / "r_clat_hist.1.log", "".join(lines))
    result = one(tmp_path).result
    assert result.series()["ios"].to_list() == [100, 100, 100]  # the last is what is left
    assert result.series()["time_s"].to_list() == [1.0, 2.0, 3.0]
    assert result.latency_frame is not None
    # In other bins than the document's, nothing is known of the latencies of that rest.
    assert result.latency_frame["ios"].sum() == (300 if columns == FINE else 200)
    mean = result.series()["lat_mean_ns"].to_list()[0]
    assert mean == pytest.approx(80_000, rel=0.1 if columns < FINE else 0.008)


@pytest.mark.parametrize("version", ["fio-3.28", "fio-2.16"])
def test_a_log_of_every_io_tells_latencies_in_the_units_of_its_version(
    tmp_path: Path, version: str
) -> None:
    found = document(job("r", {**RANDREAD, "write_lat_log": "r"}, read=direction({50_000: 40})))
    made = old(found) if version == "fio-2.16" else found
    write(tmp_path / "x.json", made)
    value = 50 if version == "fio-2.16" else 50_000
    rows = [ROW.format(ms=20 * n, value=value, ddir=0) for n in range(1, 41)]
    write(tmp_path / "r_clat.1.log", "".join(rows))
    result = one(tmp_path).result
    assert result.series()["ios"].to_list() == [40]
    assert result.series()["lat_mean_ns"].to_list() == [pytest.approx(50_000, rel=0.008)]


def test_averaged_logs_tell_rates_and_means_and_no_percentiles(tmp_path: Path) -> None:
    options = {**RANDREAD, "write_iops_log": "r", "write_bw_log": "r", "write_lat_log": "r"}
    write(
        tmp_path / "x.json",
        document(job("r", options, read=direction({50_000: 450}, ms=2250, plus=False))),
    )
    told = {"iops": (150, 50), "bw": (600, 200), "clat": (40_000, 80_000)}
    for kind, values in told.items():
        for thread, value in enumerate(values, 1):
            rows = [ROW.format(ms=500 * n + thread, value=value, ddir=0) for n in range(1, 5)]
            write(tmp_path / f"r_{kind}.{thread}.log", "".join(rows))
    foreign = one(tmp_path)
    assert foreign.frames is not None and foreign.frames.interval_ms == 500
    frame = foreign.result.series()
    assert frame["iops"].to_list()[:4] == [200.0] * 4
    assert frame["bw_bytes"].to_list()[:4] == [800 * 1024.0] * 4
    assert frame["lat_mean_ns"].to_list() == [50_000.0] * 4 + [None]
    assert frame["ios"].sum() == 450  # with what the document counts beyond the logs
    assert frame["lat_p99_ns"].null_count() == frame.height
    assert foreign.result.latency_frame is None


def test_a_series_without_latencies_has_none(tmp_path: Path) -> None:
    write(tmp_path / "x.json", simple(write_iops_log="r"))
    rows = [ROW.format(ms=250 * n, value=100, ddir=0) for n in range(1, 5)]
    write(tmp_path / "r_iops.1.log", "".join(rows))
    bins = one(tmp_path).result.measurement.jobs[0].directions[0].bins
    assert bins["iops"].to_list() == [100.0] and bins["lat_mean_ns"].to_list() == [None]


def test_threads_of_several_jobs_keep_their_logs(tmp_path: Path) -> None:
    first = job("a", {**RANDREAD, "write_iops_log": "l", "numjobs": "2"}, read=direction())
    second = {**job("b", {**RANDREAD, "write_iops_log": "l"}, read=direction()), "groupid": 1}
    write(tmp_path / "x.json", document(first, second))
    for thread, value in ((1, 100), (2, 200), (3, 1000)):
        rows = [ROW.format(ms=500 * n, value=value, ddir=0) for n in (1, 2)]
        write(tmp_path / f"l_iops.{thread}.log", "".join(rows))
    result = one(tmp_path).result
    rates = {name: result.series(job=name)["iops"].to_list()[0] for name in ("a", "b")}
    assert rates == {"a": 300.0, "b": 1000.0}
    # fio ran for two seconds, a second each: one after the other.
    assert result.series(job="b")["time_s"].to_list()[0] == 1.5


def test_a_log_of_two_documents_or_of_none_is_told(tmp_path: Path) -> None:
    asked = {"write_iops_log": "r"}
    write(tmp_path / "a.json", simple(**asked))
    write(tmp_path / "b.json", simple(**asked, bs="8k"))
    write(tmp_path / "r_iops.1.log", ROW.format(ms=500, value=100, ddir=0))
    write(tmp_path / "z_iops.1.log", ROW.format(ms=500, value=100, ddir=0))
    found = scan([tmp_path])
    assert [bool(one.logs) for one in found.found] == [False, False]
    assert {one.path.name for one in found.refused} == {"r_iops.1.log", "z_iops.1.log"}


def test_a_damaged_log_leaves_its_document(tmp_path: Path) -> None:
    write(tmp_path / "x.json", simple(write_iops_log="r"))
    write(tmp_path / "r_iops.1.log", "500, 100, 0, 4096\n700, ten, 0, 4096\n")
    found = scan([tmp_path])
    assert len(found.found) == 1 and found.found[0].frames is None
    assert "line 2" in found.refused[0].why


@needs_fio()
def test_a_run_of_the_installed_fio_comes_back(tmp_path: Path) -> None:
    text = """[r]
rw=randrw
bs=4k
size=64m
ioengine=null
number_ios=4000
rate_iops=4000
write_hist_log=r
log_hist_msec=500
"""
    write(tmp_path / "x.fio", text)
    command = ["fio", "--output-format=json+", "--output=x.json", "x.fio"]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
    told = json.loads((tmp_path / "x.json").read_text())["jobs"][0]
    rows = {row["ddir"]: row for row in one(tmp_path).result.summary()}
    for ddir in ("read", "write"):
        assert rows[ddir]["ios"] == told[ddir]["total_ios"]
        assert rows[ddir]["bytes"] == told[ddir]["io_bytes"]
        assert rows[ddir]["clat_mean_ns"] == pytest.approx(told[ddir]["clat_ns"]["mean"])
        assert rows[ddir]["clat_p99_ns"] == told[ddir]["clat_ns"]["percentile"]["99.000000"]


# --- what is left out


def test_only_regular_files_below_the_folder_are_read(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside" / "x.json", simple())
    folder = tmp_path / "in"
    write(folder / "y.json", simple(bs="8k"))
    (folder / "link.json").symlink_to(outside)
    (folder / "up").symlink_to(outside.parent)
    os.mkfifo(folder / "pipe.json")
    assert [one.path.name for one in scan([folder]).found] == ["y.json"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.json", json.dumps(simple())[:400], "breaks off or is damaged"),
        ("x.txt", "read: IOPS=100, BW=1MiB/s", "--output-format=json"),
        ("x.terse", "3;fio-3.33;t;0;0;1024;102400;25600;10;0;0;0.0\n", "is fio's terse output"),
        ("x.terse", "2;t;0;0;1024;102400;25600;10;0;0;0.0\n", "--output-format=json+"),
        ("x.json", json.dumps(document()), "did no I/O"),
        ("x.json", json.dumps(document(job("a", RANDREAD, read=IDLE))), "did no I/O"),
        ("x.json", json.dumps(simple()).replace("1000,", '"many",'), "is no result of fio"),
        ("x.json", "[1, 2]", "holds no JSON document"),
        ("x.json", "", "holds no JSON document"),
        ("x_iops.1.log", "500, 1, 0, 4096\n", "is a log of fio"),
        ("x.json", "\0\1", "holds no JSON document"),
    ],
    ids="cut text terse terse-2 no-job idle words list empty log binary".split(),
)
def test_a_file_that_is_none_is_refused_in_a_sentence(
    tmp_path: Path, cli: Cli, name: str, text: str, said: str
) -> None:
    path = write(tmp_path / name, text)
    done = cli("import", path)
    assert done.status == 2
    assert said in done.err.splitlines()[-1]
    assert RunStore().ids() == []
    if "IOPS=" not in text:
        with pytest.raises(InputError) as caught:
            imported_runs(path)
        assert "\n" not in caught.value.message


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all values within a document."""
    if not isinstance(value, dict | list):
        return [way]
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    return [way] * bool(way) + [one for key, v in inner for one in places(v, (*way, key))]


def test_a_document_with_anything_in_it_is_read_or_refused(tmp_path: Path) -> None:
    chance = random.Random(1)
    whole = document(job("r", {**RANDREAD, "write_iops_log": "r"}, read=direction({80_000: 50})))
    lines = "500,1,0,4096\n", "500,99999999999999999999,0,1\n", "-5,1,0\n", "9000000,2,9,4\n", ""
    read = 0
    for number in range(150):
        found = json.loads(json.dumps(old(whole) if number % 3 else whole))
        *way, last = chance.choice(places(found))
        inner = found
        for key in way:
            inner = inner[key]
        inner[last] = chance.choice([None, -1, 2**70, 1e300, "x", [], {}, True, float("nan")])
        write(tmp_path / "x.json", found)
        write(tmp_path / "r_iops.1.log", chance.choice(lines))
        scanned = scan([tmp_path])
        for foreign in scanned.found:
            foreign.result.summary()
            statuses(foreign.result)
        read += len(scanned.found)
    assert 50 < read < 150


def test_places_that_are_no_files_are_refused(tmp_path: Path, cli: Cli) -> None:
    assert "no such file" in cli("import", tmp_path / "nothing").err
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/null", tmp_path / "pipe"):
        done = cli("import", path)
        assert done.status == 2 and "is no plain file" in done.err
    (tmp_path / "empty").mkdir()
    assert cli("import", tmp_path / "empty").status == 2


# --- the command and what comes of it


def test_the_same_content_is_the_same_run(tmp_path: Path, cli: Cli) -> None:
    samples.bench_fio(tmp_path / "in")
    write(tmp_path / "in" / "bad.json", json.dumps(simple())[:300])
    values = []
    for options in (["--plan"], [], [], ["--dry-run"]):
        done = cli("import", tmp_path / "in", *options, "--json", "-")
        assert done.status == 0
        found = json.loads(done.out)
        values.append((found["verdict"]["values"]["new"], len(RunStore().ids())))
        (refused,) = found["sections"][0]["tables"][-1]["rows"]
        assert refused["file"].endswith("bad.json")
    assert values == [(3, 0), (3, 3), (0, 3), (0, 3)]
    write(tmp_path / "copy.json", (tmp_path / "in/nvme7n1/4k/randread-1-1.json").read_text())
    twice = cli("import", tmp_path / "copy.json", tmp_path / "in/nvme7n1/4k/randread-1-1.json")
    assert twice.status == 0
    assert len(RunStore().ids()) == 3


def test_what_was_named_and_gave_nothing_decides_the_status(tmp_path: Path, cli: Cli) -> None:
    good = write(tmp_path / "good.json", simple())
    bad = write(tmp_path / "bad.json", "{")
    done = cli("import", good, bad)
    assert done.status == 2 and "bad.json" in done.err
    assert len(RunStore().ids()) == 1


def test_an_imported_run_is_a_run(tmp_path: Path, cli: Cli) -> None:
    write(tmp_path / "x" / "one.json", simple())
    write(tmp_path / "x" / "two.json", simple(bs="8k"))
    assert cli("import", tmp_path / "x", "--name", "my drive").status == 0
    by_file = {entry.manifest.imported: entry.id for entry in RunStore().entries()}
    first, second = (by_file[str(tmp_path / "x" / name)] for name in ("one.json", "two.json"))
    assert first.startswith("20200913-122640-my-drive-")
    assert cli("list", "runs").out.count("fio, imported") == 2
    shown = json.loads(cli("show", first, "--json", "-").out)
    assert shown["summary"][0]["ios"] == 1000
    assert cli("compare", first, second).status == 0
    assert cli("report", first, second, "-o", tmp_path / "r.html").status == 0
    assert "my drive" in (tmp_path / "r.html").read_text()
    loaded = RunStore().open(first).result()
    assert loaded.imported is not None and loaded.imported["file"].endswith("one.json")
    (again,) = imported_runs(tmp_path / "x" / "one.json", name="my drive")
    assert again == loaded
    array = cli("array", "--measured", first, "--count", "2", "--levels", "0", "--quiet")
    assert array.status == 0, array.err


def test_the_page_has_the_grid_of_a_drive(tmp_path: Path, cli: Cli) -> None:
    for size in ("4k", "16k"):
        for depth in ("1", "4", "16"):
            found = simple(bs=size, iodepth=depth)
            found["jobs"][0]["read"]["iops"] = float(int(depth) * 100 + len(size))
            write(tmp_path / f"{size}-{depth}.json", found)
    done = cli("import", tmp_path, "--json", "-", "-o", tmp_path / "page.html")
    sections = json.loads(done.out)["sections"]
    heat = sections[1]["figures"][0]
    assert heat["y_names"] == ["4 KiB", "16 KiB"] and heat["x_names"] == ["1", "4", "16"]
    assert heat["curves"][0]["z"] == [102.0, 402.0, 1602.0, 103.0, 403.0, 1603.0]
    assert "Random reads" in (tmp_path / "page.html").read_text()


def test_the_table_for_fits_has_what_was_asked_and_measured(tmp_path: Path, cli: Cli) -> None:
    samples.bench_fio(tmp_path / "b")
    done = cli("import", tmp_path / "b", "--table", tmp_path / "t.csv", "-q")
    assert done.status == 0, done.err
    rows = observations.read(tmp_path / "t.csv")
    loads = [(one.load.rw, one.load.bs, one.load.iodepth, one.load.rwmixread) for one in rows]
    assert loads == [("randread", 4096, 1, None), ("randread", 4096, 8, None),
                     ("randrw", 4096, 1, 75.0)]  # fmt: skip
    assert rows[0].measured["iops"] == 10_000.0
    assert rows[0].measured["clat_mean_us"] == 80.0
    assert "waf" not in rows[2].measured
    samples.cbt(tmp_path / "c")
    many = cli("import", tmp_path, "--table", "-", "-q")
    assert many.status == 2 and "2 drives" in many.err
    assert (
        "both write to standard output"
        in cli("import", tmp_path, "--table", "-", "--json", "-").err
    )


def test_a_job_that_does_not_say_what_it_does_is_no_observation(tmp_path: Path) -> None:
    silent = one(write(tmp_path / "s.json", document(job("a", None, read=direction()))))
    assert observations.observations(silent.result) == []
    # As ezFIO asks for reads.
    options = {"readwrite": "randrw", "rwmixwrite": "0", "bs": "4096", "iodepth": "1"}
    reads = one(write(tmp_path / "r" / "r.json", document(job("a", options, read=direction()))))
    (found,) = observations.observations(reads.result)
    assert (found.load.rw, found.load.rwmixread) == ("randread", None)


def test_a_result_of_ssdlab_keeps_all_that_it_says(tmp_path: Path, cli: Cli) -> None:
    write(tmp_path / "j.fio", "[w]\nrw=randwrite\nbs=4k\ntime_based\nruntime=2\n")
    told = tmp_path / "x.json"
    cli("run", tmp_path / "j.fio", "--on", "lab-reference", "--set", "capacity=128MiB",
        "--json", told, "--out", tmp_path / "runs", "-q")  # fmt: skip
    result = one(told).result
    assert (result.kind, result.target_kind, result.name) == ("sim", "sim", "lab-reference")
    assert result.waf == json.loads(told.read_text())["ssdlab"]["waf"]


def test_what_is_kept_is_a_document_of_a_run(tmp_path: Path) -> None:
    samples.bench_fio(tmp_path / "b")
    samples.ezfio(tmp_path / "e")
    samples.cbt(tmp_path / "c")
    write(tmp_path / "o.json", old(simple()))
    found = scan([tmp_path])
    assert len(found.found) == 6 and len(found.refused) == 1
    for foreign in found.found:
        data = json.dumps(foreign.result.document).encode()
        documents.document(data, foreign.path)


def test_bins_of_samples_are_those_of_the_histogram() -> None:
    assert sum(BINS.values()) == 1000
