"""Where the speed of a drive is known from, best first: what somebody says, a profile, an earlier
run of the same drive, half a minute of probing; else a guess."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ssdlab.analysis.comparison import Workload, workloads
from ssdlab.engine import estimate
from ssdlab.engine.setup import Setup
from ssdlab.engine.speed import SpeedBounds, SpeedPoint, Speeds, around, measured, moved_by
from ssdlab.engine.steps import Job, Purge, Shape, Step
from ssdlab.errors import InputError
from ssdlab.jobfile import JobText
from ssdlab.progress import ProgressCallback
from ssdlab.store import RunStore
from ssdlab.store.folder import RunFolder
from ssdlab.system import System
from ssdlab.target import Session

PROBE_S = 30.0
"""How long a drive is probed before a run."""
PROBE_SHARE = 0.02
"""A run that may take less than so many times longer is not worth a probe."""
PROBE_SHAPES = 3
"""Kinds of jobs that are probed at most: those that move the most."""
LATEST = 50
"""Runs of the store that are looked at."""


def earlier(path: Path, store: RunStore) -> Speeds | None:
    """The speeds in the latest run of the same drive: the same path, or the same model."""
    model = System().of(System().disk_below(path), "device/model")
    for entry in reversed(store.entries()[-LATEST:]):
        if entry.manifest.kind == "sim":
            continue
        points = list(_moved_in(entry, str(path.absolute()), model))
        if points:
            return Speeds(measured(points), "earlier", f"as measured in the run {entry.id}")
    return None


def of_folder(folder: RunFolder) -> list[SpeedPoint]:
    """What the finished jobs of a protocol's run have moved."""
    found = (SpeedPoint.read(entry.moved) for entry in folder.journal())
    return [point for point in found if point is not None]


def _moved_in(folder: RunFolder, target: str, model: str | None) -> Iterator[SpeedPoint]:
    try:
        if not folder.is_job:
            if _same(folder.manifest.about, folder.manifest.path, target, model):
                yield from of_folder(folder)
            return
        document = folder.document(folder.only())
        about = document["ssdlab"]
        name = str(Path(about["target"]["name"]).absolute())
        jobs = document["jobs"]
        # Jobs beside each other share the drive, so none shows what it can do.
        if len(jobs) == 1 and _same(about.get("surroundings", {}), name, target, model):
            yield from _of_job(jobs[0], workloads(0, document)[0])
    except (InputError, ValueError, KeyError):
        return


def _same(about: Mapping[str, Any], path: str | None, target: str, model: str | None) -> bool:
    return path == target or (model is not None and about.get("drive", {}).get("model") == model)


def _of_job(raw: Mapping[str, Any], workload: Workload) -> Iterator[SpeedPoint]:
    """What a single run's job moved, where its options say how."""
    sides = [raw[one] for one in ("read", "write")]
    moved = [int(side["io_bytes"]) for side in sides]
    seconds = max(float(side["runtime"]) for side in sides) / 1000
    if workload.block is None or not sum(moved) or seconds <= 0:
        return
    share = round(moved[1] / sum(moved), 2)
    shape = Shape(workload.random, workload.block, workload.in_flight, share)
    yield SpeedPoint(shape, sum(moved), seconds)


# --- probing


def worth_probing(plan: Sequence[Step], speeds: Speeds, setup: Setup) -> bool:
    """Whether half a minute of writing says more than it costs: only before a purge, after which
    nothing of it is left, and before a long run of unknown length."""
    if speeds.source != "guess" or not isinstance(plan[0], Purge) or setup.kind == "sim":
        return False
    whole = estimate.of(plan, speeds, setup.kind)
    unknown = whole.never.high > 3 * whole.never.low
    return unknown and whole.never.high * PROBE_SHARE > PROBE_S and bool(_shapes(plan))


def probe(
    session: Session, setup: Setup, plan: Sequence[Step], progress: ProgressCallback
) -> Speeds:
    """The speeds in half a minute of the jobs that an amount bounds."""
    shapes = _shapes(plan)
    known: dict[Shape, SpeedBounds] = {}
    for number, shape in enumerate(shapes):
        job = _brief(setup, f"probe{number}", shape, PROBE_S / len(shapes))
        text = JobText(job.key, job.text, Path.cwd())
        result = session.run(text, progress, seed=1)
        if point := moved_by(job, result):
            # Random writes become slower as the drive fills, and hardly ever faster.
            late = shape.random and shape.write_share > 0
            value = point.bytes / point.seconds
            known[shape] = around(value, 2.5, 1.2) if late else around(value)
    words = f"as probed for {PROBE_S:g} s; drives that fill up may become slower than that"
    return Speeds(known, "probe", words)


def _brief(setup: Setup, key: str, shape: Shape, seconds: float) -> Job:
    percent = round(100 * (1 - shape.write_share))
    rw = {0: "write", 100: "read"}.get(percent, "rw")
    return setup.job(
        key,
        "probe",
        f"rand{rw}" if shape.random else rw,
        shape.bs,
        depth=shape.in_flight,
        seconds=seconds * setup.divisor,
        read_percent=percent if rw == "rw" else None,
        measured=False,
    )


def _shapes(plan: Iterable[estimate.Expected]) -> list[Shape]:
    """Of the jobs whose length depends on the speed, those that move the most first."""
    moved: dict[Shape, int] = {}
    for shape, amount in estimate.amounts(plan):
        moved[shape] = moved.get(shape, 0) + amount
    return sorted(moved, key=lambda shape: -moved[shape])[:PROBE_SHAPES]
