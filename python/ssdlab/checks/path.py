"""What lay between fio and the drive: page cache, file systems, arrays, loop devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ssdlab.checks.base import Case, Probe, Symptom, of_jobs
from ssdlab.checks.facts import Facts, JobFacts
from ssdlab.system import COPY_ON_WRITE

RAM = frozenset({"tmpfs", "ramfs", "rootfs", "devtmpfs"})
NETWORK = frozenset(
    """
    nfs nfs4 cifs smb3 smbfs 9p virtiofs fuse fuse.sshfs fuse.s3fs ceph glusterfs lustre afs
    fuse.rclone fuse.glusterfs vboxsf fuseblk overlay
    """.split()
)
"""File systems behind which there is another computer, a program, or another file system."""
DEVICE_NS = 4_000
"""No storage device answers a system call in less: a PCIe round trip and an interrupt take about
as long by themselves. Ours."""
ENOUGH = 16 << 20
"""Bytes below which counters of the drive say little."""
REACHED = 0.9
"""Share of fio's bytes that the drive's own counters must show."""
CODING = 0.8
"""8b/10b coding of SATA and SAS up to 6 Gb/s."""


def _cache(case: Case) -> Sequence[Symptom]:
    symptoms = of_jobs(_of, real=True)(case)
    return symptoms or [Symptom("good", "direct I/O past the page cache")] if case.real else []


def _of(facts: Facts) -> Iterator[Symptom]:
    for work in facts.works:
        yield from _of_work(facts, work)
    yield from _of_file_system(facts)
    yield from _of_layers(facts)
    yield from _of_counters(facts)


def _of_work(facts: Facts, work: JobFacts) -> Iterator[Symptom]:
    if not work.known:
        yield Symptom("unknown", f"{work.name}: the result does not list its options")
        return
    if work.engine == "null":
        yield Symptom("bad", f"{work.name} uses the engine null, which does no I/O")
        return
    if work.engine == "mmap":
        yield Symptom("bad", f"{work.name} uses mmap, through the page cache")
    elif not work.direct:
        writes_through = work.option("sync") not in ("", "0", "none") or (
            work.option("fsync", "fdatasync") == "1"
        )
        if writes_through and work.direction("read") is None:
            yield Symptom(
                "doubt", f"{work.name} writes through the page cache and waits for each write"
            )
        else:
            yield Symptom("bad", f"{work.name} goes through the page cache (direct=0)")
    for moved in work.moved:
        if work.in_flight == 1 and 0 < moved.lat_mean_ns < DEVICE_NS and moved.ddir != "trim":
            yield Symptom(
                "bad",
                f"{work.name}: a {moved.ddir} takes {moved.lat_mean_ns / 1e3:.2g} us on average, "
                f"less than any drive can do ({DEVICE_NS / 1e3:.0f} us)",
            )
        limit = _link(facts)
        if limit is not None and moved.bw_bytes > limit:
            yield Symptom(
                "bad",
                f"{work.name}: {moved.bw_bytes / 1e6:,.0f} MB/s of {moved.ddir}s, and the drive's "
                f"link carries {limit / 1e6:,.0f} MB/s",
            )


def _of_file_system(facts: Facts) -> Iterator[Symptom]:
    kind = facts.file_system
    if not kind:
        return
    options = str((facts.surroundings.get("file_system") or {}).get("options", ""))
    if kind in RAM:
        yield Symptom("bad", f"the file lies on {kind}, which is memory")
    elif kind in COPY_ON_WRITE:
        yield Symptom(
            "doubt", f"the file lies on {kind}, which places, checks and caches data by itself"
        )
    elif kind in NETWORK or kind.startswith("fuse."):
        yield Symptom("doubt", f"the file lies on {kind}, with other caches behind it")
    if "compress" in options:
        yield Symptom("doubt", "the file system compresses (mount options)")


def _of_layers(facts: Facts) -> Iterator[Symptom]:
    seen = facts.observed
    if seen.get("loop_direct") is False:
        yield Symptom(
            "bad",
            "the loop device goes through the page cache of its file (losetup --direct-io=off)",
        )
    members = seen.get("members") or []
    if len(members) > 1 or "raid" in seen:
        level = str(seen.get("raid", "several drives"))
        yield Symptom("doubt", f"the target is an array ({level}: {', '.join(map(str, members))})")


def _of_counters(facts: Facts) -> Iterator[Symptom]:
    """What the drive itself counted, against what fio says."""
    disk: Mapping[str, Any] = facts.observed.get("disk") or {}
    if not disk or any(work.engine == "null" for work in facts.works):
        return
    empty = ((facts.observed.get("file") or {}).get("after") or {}).get("unwritten_bytes", 0)
    for ddir in ("read", "write"):
        told, counted = facts.total(ddir), int(disk.get(f"{ddir}_bytes", 0))
        if told < ENOUGH or counted >= REACHED * told or (ddir == "read" and empty):
            continue
        did = "read were read from" if ddir == "read" else "written had reached"
        yield Symptom(
            "bad",
            f"only {100 * counted / told:.0f} % of the bytes {did} the drive, by its counters",
        )


def _link(facts: Facts) -> float | None:
    """What the drive's link carries at most, bytes/s; None where it is not told."""
    if (rate := facts.observed.get("link_bytes_per_s")) is not None:
        return float(rate)
    speed = ((facts.surroundings.get("smart") or {}).get("before") or {}).get("interface_speed")
    current = (speed or {}).get("current") or {}
    units, bits = current.get("units_per_second"), current.get("bits_per_unit")
    return units * bits / 8 * CODING if units and bits else None


PROBES = (
    Probe(
        name="cache",
        title="page cache and file system",
        looks_for="I/O that did not go to the drive: direct=0, memory file systems, file systems "
        "that cache, compress or copy, loop devices, arrays; answers and speeds that no drive or "
        "link can give; bytes that the drive's own counters do not know of",
        why="memory is a hundred times faster than a drive: the number is one of the computer",
        look=_cache,
    ),
)
