"""A scan of a simulated drive: one sequential read in virtual time, piece by piece."""

from __future__ import annotations

from collections.abc import Mapping

from ssdlab.care.blockio import PIECE_BYTES
from ssdlab.care.scan import QUICK_BYTES, Scan, find_slow_zones, suspect
from ssdlab.jobfile import JobText, read_job
from ssdlab.progress import ProgressCallback
from ssdlab.target import Settings, Sim
from ssdlab.wear import by_path

PREPARE = "sequential"
"""An empty drive answers reads without touching flash."""
SOURCES = ("unmapped", "flash", "ram")
"""Where an SSD reads units from; what is unmapped is nowhere."""


def scan_simulated(
    target: Sim,
    *,
    wanted_bytes: int | None = QUICK_BYTES,
    prepare: str = PREPARE,
    overrides: Mapping[str, str] | None = None,
    progress: ProgressCallback | None = None,
) -> Scan:
    """Reads a simulated drive as a scan reads a real one; all of it if ``wanted_bytes`` is None.
    Errors are not simulated, and nothing but the scan is at work, so what is slow is slow each
    time: no piece is read twice. Raises InputError for a wrong rig, and Interrupted."""
    keys = dict(overrides or {})
    probe = target.run(_job("size=1m"), Settings(overrides=keys))
    capacity = int(probe.ssdlab["target"]["capacity_bytes"])
    # The job reads whole pieces; a shorter one at the end is left out.
    pieces = max(1, min(wanted_bytes or capacity, capacity) // PIECE_BYTES)
    scan = Scan(target.name, "sim", capacity, pieces * PIECE_BYTES, 4096, direct=True)
    job = _job(f"size={pieces}m\nwrite_lat_log=scan\nlog_offset=1")
    settings = Settings(prepare=prepare, overrides=keys, interval_ms=1000, progress=progress)
    result = target.run(job, settings)
    log = next(text for name, text in result.logs if "_clat" in name)
    for line in log.splitlines():
        # time, latency in ns, direction, bytes, offset
        fields = line.split(",")
        scan.ns[int(fields[4]) // PIECE_BYTES] = float(fields[1])
    counters = by_path(result.ssdlab["counters"]).values()
    read = [sum(one.get(f"units_read_{what}", 0) for one in counters) for what in SOURCES]
    # Of an empty SSD the link alone is timed.
    scan.zero[:] = read[0] > 0 and not any(read[1:])
    scan.pieces_done = pieces
    scan.seconds = float(scan.ns.sum()) / 1e9
    suspect(scan, slow_place=True)
    find_slow_zones(scan)
    return scan


def _job(more: str) -> JobText:
    return read_job(f"[scan]\nrw=read\nbs=1m\niodepth=1\n{more}\n")
