"""Results of fio as others leave them: documents of old and new versions, and the folders of
bench-fio, ezFIO and CBT, made of numbers that the tests choose."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ssdlab.histogram import VALUES, bin_index

Bins = Mapping[int, int]
"""I/Os by latency in ns."""
BINS: Bins = {80_000: 900, 120_000: 90, 900_000: 10}


def direction(bins: Bins = BINS, *, block: int = 4096, ms: int = 1000, plus: bool = True) -> Any:
    """What fio 3 says of a direction."""
    ios = sum(bins.values())
    ordered = sorted(ns for ns, count in bins.items() for _ in range(count))
    clat: dict[str, Any] = {
        "min": min(bins),
        "max": max(bins),
        "mean": sum(ns * count for ns, count in bins.items()) / ios,
        "stddev": 1.0,
        "N": ios,
        "percentile": {
            f"{percent:f}": int(VALUES[bin_index(ordered[int(percent / 100 * (ios - 1))])])
            for percent in (50.0, 99.0, 99.9)
        },
    }
    if plus:
        clat["bins"] = {str(int(VALUES[bin_index(ns)])): count for ns, count in bins.items()}
    return {
        "io_bytes": ios * block,
        "io_kbytes": ios * block // 1024,
        "bw_bytes": ios * block * 1000 // ms,
        "bw": ios * block * 1000 // ms // 1024,
        "iops": ios * 1000 / ms,
        "runtime": ms,
        "total_ios": ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0},
        "clat_ns": clat,
        "lat_ns": {"min": min(bins), "max": max(bins), "mean": clat["mean"], "stddev": 1.0},
    }


IDLE = {
    "io_bytes": 0, "io_kbytes": 0, "bw_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0,
    "total_ios": 0, "short_ios": 0, "drop_ios": 0, "slat_ns": {"min": 0, "max": 0, "mean": 0.0},
    "clat_ns": {"min": 0, "max": 0, "mean": 0.0}, "lat_ns": {"min": 0, "max": 0, "mean": 0.0},
}  # fmt: skip


def job(name: str = "job", options: Mapping[str, str] | None = None, **sides: Any) -> Any:
    """An entry of ``jobs``; the directions that are not given did nothing."""
    return {
        "jobname": name,
        "groupid": 0,
        "error": 0,
        "elapsed": 2,
        **({} if options is None else {"job options": {"name": name, **options}}),
        **{ddir: sides.get(ddir, IDLE) for ddir in ("read", "write", "trim")},
        "job_runtime": 1000,
        "usr_cpu": 1.5,
        "sys_cpu": 2.5,
    }


def document(*jobs: Any, **more: Any) -> dict[str, Any]:
    """A document of fio 3."""
    return {
        "fio version": "fio-3.28",
        "timestamp": 1_600_000_000,
        "timestamp_ms": 1_600_000_000_500,
        "time": "Sun Sep 13 12:26:40 2020",
        "jobs": list(jobs),
        **more,
    }


RANDREAD = {"rw": "randread", "bs": "4k", "iodepth": "4", "direct": "1", "ioengine": "libaio"}


def simple(**options: str) -> dict[str, Any]:
    """A document of random reads on a drive."""
    given = {**RANDREAD, "filename": "/dev/nvme7n1", **options}
    return document(job("reads", given, read=direction()))


def old(found: Mapping[str, Any], *, numbered: bool = False) -> dict[str, Any]:
    """The document as fio 2 would have written it."""
    made: dict[str, Any] = json.loads(json.dumps(found))
    made["fio version"] = "fio-2.16"
    for one in made["jobs"]:
        del one["job_runtime"]
        for ddir in ("read", "write", "trim"):
            side = one[ddir]
            side["io_bytes"] = side.pop("io_kbytes")
            del side["bw_bytes"]
            for kind in ("slat", "clat", "lat"):
                side[kind] = _micro(side.pop(f"{kind}_ns"), numbered)
    return made


def _micro(latency: Any, numbered: bool) -> Any:
    latency.pop("N", None)
    scaled = {name: latency[name] / 1000 for name in ("mean", "stddev") if name in latency}
    whole = {name: latency[name] // 1000 for name in ("min", "max")}
    more: dict[str, Any] = {}
    if "percentile" in latency:
        told = {percent: ns // 1000 for percent, ns in latency["percentile"].items()}
        more["percentile"] = {**told, "0.00": 0}
    if "bins" in latency:
        micro = {int(bin_index(int(ns) // 1000)): n for ns, n in latency["bins"].items()}
        more["bins"] = (
            {"FIO_IO_U_PLAT_BITS": 6, "FIO_IO_U_PLAT_VAL": 64, "FIO_IO_U_PLAT_NR": 1216}
            | {str(place): micro.get(place, 0) for place in range(1216)}
            if numbered
            else {str(int(VALUES[place])): count for place, count in micro.items()}
        )
    return {**whole, **scaled, **more}


def write(path: Path, found: object, before: str = "", after: str = "") -> Path:
    """A document in a file, with the text around it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(before + (found if isinstance(found, str) else json.dumps(found)) + after)
    return path


def bench_fio(folder: Path) -> list[Path]:
    """Two depths of random reads, and a mix, in the folders of bench-fio."""
    made = []
    for place, (below, mode, depth) in enumerate(
        (("4k", "randread", 1), ("4k", "randread", 8), ("randrw75/4k", "randrw", 1))
    ):
        mixed = mode == "randrw"
        sides = {"read": direction({80_000 * depth + place: 500}, ms=150 if mixed else 50)}
        sides |= {"write": direction(ms=150)} if mixed else {}
        path = folder / "nvme7n1" / below / f"{mode}-{depth}-1.json"
        made.append(write(path, document(job("FIOJOB", None, **sides))))
    return made


def ezfio(folder: Path) -> Path:
    """A test of ezFIO with its job, and the table that names the drive."""
    name = "details_960GB_8cores_2400MHz_nvme7n1_host_2020-09-13"
    text = (
        "[JOBFILE]\n[test-/dev/nvme7n1]\nreadwrite=randrw\nrwmixwrite=30\nbs=4096\ndirect=1\n"
        "filename=/dev/nvme7n1\nnumjobs=4\niodepth=1\ngroup_reporting=1\n[STDOUT]\n"
    )
    found = document(job("test-/dev/nvme7n1", None, read=direction(), write=direction()))
    path = write(
        folder / name / "TestRand_w30_bs4096_threads4_iodepth1_nvme7n1.out",
        found,
        text,
        "\n[STDERR]\n",
    )
    head = "Drive,/dev/nvme7n1\nModel,ACME X1\nSerial,S123\nAvailCapacity,894,GiB\n"
    (path.parent / "ezfio_tests_960GB.csv").write_text(head + "Type,Write %\n")
    return path


def cbt(folder: Path) -> Path:
    """A result of CBT with what fio printed around it, the same alone, and a log of each of two
    hosts."""
    place = "results/00000000/id-1/raw_ra-00004096/op_size-00016384/concurrent_procs-001"
    found = document(job("/dev/vdb", None, write=direction(block=16384)))
    path = folder / place / "iodepth-032/randwrite/output.0.node1"
    write(path.with_name("json_output.0.node1"), found)
    for node in ("node1", "node2"):
        write(path.with_name(f"output.0_iops.1.log.{node}"), "500, 1000, 1, 0\n1000, 1000, 1, 0\n")
    words = "note: both iodepth >= 1 and synchronous I/O engine\n"
    return write(path, found, words, "\n/dev/vdb: (groupid=0, jobs=1): err= 0\n")
