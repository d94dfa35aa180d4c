"""Where it was measured: areas never written, and areas that fit into a cache of the drive."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

import numpy as np

from ssdlab.analysis.comparison import stages
from ssdlab.checks.base import Case, Probe, StepEvidence, Symptom, of_job
from ssdlab.checks.facts import Facts, JobFacts, Moved, Room
from ssdlab.numeric import Floats
from ssdlab.units import size_text

CELLS = 2048
"""Equal pieces of the target of which is kept how much of each holds data."""
MOMENTS = 1000
"""Of a job at which it is asked how much of its range is empty."""
_ZONE = re.compile(r"(?<![^:])([\d.]+)%?/([\d.]+)%?(?![^:])")
RANKS = 4096
"""Steps in which the places that a job prefers are gone through."""
EMPTY_DOUBT = 0.01
"""Share of what is read that may never have been written without a word. Ours."""
EMPTY_BAD = 0.20
"""From this share on the number is one of empty space. Ours."""
FLASH_READ_NS = 20_000
"""No NAND page is sensed and carried to the host in less: tR is 25 us for SLC and above 35 us for
TLC (Micron, Samsung datasheets). Memory other than NAND is faster."""
DRAM_SHARE = 1 / 1000
"""A drive's DRAM, most of it for the map: 1 GB per TB with 4 bytes for each 4 KiB."""
SMALL = 4 << 30
"""A range smaller than this can lie in a drive's caches; DRAM-less drives keep the map of about
as much in their controller. Ours."""
SCATTERED = 0.05
"""Share of the range of sequential writes that may have been written at random before without a
word. Ours."""
SLC_SHARE = 1 / 3
"""A drive of three-bit cells can take up to a third of its free room in one bit per cell."""


def _unwritten(case: Case) -> list[Symptom]:
    grid = _Grid(case)
    symptoms: list[Symptom] = []
    for step in case.evidence.steps:
        facts = case.facts.get(step.key)
        if facts is None:
            grid.step(step)
            continue
        for work in facts.works:
            # What a job reads back (verify) it has written itself.
            read = work.direction("read") if work.does("read") else None
            if read is not None and (case.real or facts.flash) and not step.on_purpose:
                symptoms.append(_judged(case, facts, work, read, grid))
            grid.work(work)
    return symptoms


def _judged(case: Case, facts: Facts, work: JobFacts, read: Moved, grid: _Grid) -> Symptom:
    file = facts.observed.get("file") or {}
    after = file.get("after")
    if after is not None:
        empty: float | None = _empty_of_file(after, work)
        if work.direction("write") is not None:
            # What a mix found empty it may have filled by now.
            empty = max(empty or 0.0, grid.found_empty(work) or 0.0)
        how = "never written (holes and unwritten extents of the file)"
    else:
        empty = grid.found_empty(work)
        how = "not written since the drive was purged, trimmed or new"
    if empty is not None and empty > EMPTY_DOUBT:
        mean = "" if work.direction("write") is None else " on average"
        text = f"{work.name} reads a range of which{mean} {100 * empty:.0f} % was {how}"
        return Symptom("bad" if empty > EMPTY_BAD else "doubt", text, facts.key)
    small = (work.block or 0) >= 4096 and work.in_flight == 1 and work.random
    if case.real and small and work.direct and 0 < read.lat_mean_ns < FLASH_READ_NS:
        text = (
            f"{work.name} reads in {read.lat_mean_ns / 1e3:.3g} us on average, "
            f"and no NAND answers in less than {FLASH_READ_NS / 1e3:.0f} us"
        )
        return Symptom("doubt", text, facts.key)
    if empty is None:
        text = f"{work.name} reads what it has not written; whether it ever was, nobody recorded"
        return Symptom("unknown", text, facts.key)
    return Symptom("good", "what was read had been written", facts.key)


def _empty_of_file(after: Mapping[str, object], work: JobFacts) -> float:
    """Share of the job's range that held no data at the end, and so at no time before."""
    cells, holes, size = after.get("cells"), after.get("holes"), after.get("bytes")
    if not isinstance(cells, list) or not isinstance(size, int) or size == 0:
        return 0.0
    # Where the holes are not told, one by one, a cell is as empty everywhere as on average.
    cell = size / len(cells)
    empty = [(number * cell, (number + 1) * cell, share) for number, share in enumerate(cells)]
    if isinstance(holes, list):
        empty = [(start, end, 1.0) for start, end in holes]
    length = size - work.offset if work.length is None else work.length
    edge = work.offset + length
    inside = (
        share * max(0.0, min(end, edge) - max(start, work.offset)) for start, end, share in empty
    )
    return sum(inside) / length if length > 0 else 0.0


def never_written(case: Case) -> dict[str, float]:
    """By job of a single run on a simulated drive (:func:`of_job`), how much of what it had written
    to at random by its end had never been written, as a share of the spare that the drive keeps:
    collection has the use of both, but of that only until it is written. Where that is known."""
    found = {}
    for key, work, grid, room in _at_random(case):
        empty = grid.empty(work)
        if empty is not None:
            own = room.empty(empty) * (work.length or grid.capacity) / room.target
            # What lies beside a partition is room as well.
            whole = room.empty(1.0 - grid.full_bytes() / room.target)
            found[key] = own / (room.spare + max(0.0, whole - own))
    return found


def overwritten(case: Case) -> dict[str, float]:
    """By job (:func:`of_job`), as of :func:`never_written`, how much was written at random over
    data by its end, as a share of the room that the drive has beside its data: all that a drive
    which was filled sequentially takes before it collects. NaN where that is not known."""
    found = {}
    for key, work, grid, room in _at_random(case):
        beside = room.spare + room.empty(1.0 - grid.full_bytes() / room.target)
        found[key] = grid.over * room.programmed(work.block or 0) / beside
    return found


def _at_random(case: Case) -> Iterator[tuple[str, JobFacts, _Grid, Room]]:
    """The jobs that write at random to one simulated SSD, or an array of such, with the state in
    which they and those beside them leave it."""
    grid = _Grid(case)
    for key, facts in case.facts.items():
        room = facts.room
        for together in stages(facts.works):
            for work in together:
                grid.work(work)
            if (
                room and facts.flash and facts.rig and not facts.rig.compresses
                and grid.capacity <= room.target
            ):  # fmt: skip
                for work in together:
                    if work.random and work.direction("write"):
                        yield of_job(key, work.name), work, grid, room


def copied(case: Case) -> dict[str, float]:
    """By job of a single run on simulated flash (:func:`of_job`) that writes sequentially, with no
    random writes beside it, to a range of which more than :data:`SCATTERED` was last written at
    random: what collection copies meanwhile for each byte that it writes, in its window."""
    grid, found = _Grid(case), {}
    for key, facts in case.facts.items():
        for together in stages(facts.works):
            calm = not any(work.random and work.direction("write") for work in together)
            for work in together:
                sequential = calm and not work.random and work.direction("write")
                if sequential and facts.flash and grid.scattered(work) > SCATTERED:
                    found[of_job(key, work.name)] = work.copied
            for work in together:
                grid.work(work)
    return found


def _replaces(work: JobFacts) -> bool:
    """Whether a random job draws with replacement: fio keeps its map for places that are alike."""
    return work.flag("norandommap") or (work.option("random_distribution") or "random") != "random"


def _missed(work: JobFacts, part: float, length: int) -> float:
    """Share of a range that random I/Os of ``part`` times its bytes do not come to: of places drawn
    with replacement exp(-part) where they are alike, and more where some are preferred."""
    name, *values = (work.option("random_distribution") or "random").split(":")
    if name == "random":
        return math.exp(-part) if _replaces(work) else max(0.0, 1.0 - part)
    if name == "zoned" and (zones := _ZONE.findall(":".join(values))):
        shares = [(float(often) / 100, float(size) / 100) for often, size in zones]
        if len(shares) == len(values) and all(size for _, size in shares):
            beside = 1.0 - sum(size for _, size in shares)
            return beside + sum(size * math.exp(-part * often / size) for often, size in shares)
    blocks = max(2, length // (work.block or 4096))
    edges = np.unique(np.geomspace(1, blocks + 1, RANKS).astype(int))
    sizes = np.diff(edges)
    if name == "zipf":
        ranks = np.sqrt(edges[:-1] * (edges[1:] - 1.0))
        share = sizes * ranks ** -float(values[0] if values else 1.1)
    elif name == "pareto":
        h = float(values[0] if values else 0.2)
        share = np.diff(((edges - 1.0) / blocks) ** (math.log(1.0 - h) / math.log(h)))
    else:
        return math.exp(-part)
    often = share / share.sum() * blocks / sizes
    return float((np.exp(-part * often) * sizes).sum() / blocks)


class _Grid:
    """How much of each piece of the target holds data, as far as the steps tell, and how much of it
    was last written at random, as far as the jobs of a single run do."""

    def __init__(self, case: Case) -> None:
        capacities = [fact.capacity for fact in case.facts.values() if fact.capacity]
        self.capacity = case.evidence.capacity or max(capacities, default=0)
        data = {"empty": 0.0, "unknown": math.nan}.get(case.evidence.initial, 1.0)
        self._share: Floats = np.full(CELLS, data)
        at_random = {"scattered": 1.0, "unknown": math.nan}.get(case.evidence.initial, 0.0)
        self._scattered: Floats = np.full(CELLS, at_random)
        self.over = 0.0 if at_random == 0.0 else math.inf
        """Bytes written at random over data since all of it was written in order; no end of them
        where nobody knows."""

    def step(self, step: StepEvidence) -> None:
        """A purge or a TRIM empties."""
        if step.kind == "purge":
            self._share[:] = 0.0
        elif step.kind == "trim":
            self._share[self._cells(step.offset, step.length)] = 0.0

    def work(self, work: JobFacts) -> None:
        """What a job has written, or trimmed."""
        written, trimmed = work.direction("write"), work.direction("trim")
        length = work.length if work.length is not None else self.capacity - work.offset
        if length <= 0:
            return
        for moved in (written, trimmed):
            if moved is None:
                continue
            part = moved.bytes / length
            if work.random:
                own = self._cells(work.offset, length)
                missed = _missed(work, part, length)
                old = self._share[own].copy()
                if moved is trimmed:
                    self._share[own] = old * missed
                elif missed < 1e-3:
                    self._share[own] = 1.0 - missed
                else:
                    self._share[own] = 1.0 - (1.0 - old) * missed
                if moved is written:
                    filled = float((self._share[own] - old).mean()) * length
                    self.over += max(0.0, moved.bytes - filled)
                new = 0.0 if moved is trimmed else 1.0 - missed
                # Of what nobody knew nothing is left either.
                left = 0.0 if missed < 1e-3 else self._scattered[own] * missed
                self._scattered[own] = left + new
            else:
                # Each worker goes through the same range, or through one of its own further on.
                done = min(length, int(moved.bytes / max(1, work.workers)))
                for offset, _ in work.regions or ((0, length),):
                    own = self._cells(offset, done)
                    self._share[own] = 0.0 if moved is trimmed else 1.0
                    self._scattered[own] = 0.0
                    left = 1.0 - (own.stop - own.start) / CELLS
                    self.over = self.over * left if left else 0.0

    def scattered(self, work: JobFacts) -> float:
        """Share of a job's range that was last written at random; NaN where it is not known."""
        return float(self._scattered[self._cells(work.offset, work.length)].mean())

    def empty(self, work: JobFacts) -> float | None:
        """Share of a job's range without data; None where it is not known."""
        share = self._share[self._cells(work.offset, work.length)]
        if len(share) == 0 or np.isnan(share).any():
            return None
        return float(1.0 - share.mean())

    def full_bytes(self) -> float:
        """What of the target holds data; NaN where it is not known."""
        return float(self._share.mean()) * self.capacity

    def found_empty(self, work: JobFacts) -> float | None:
        """Share of a job's range without data when it reads there: what it writes itself is no
        longer empty, on average over its measurement window."""
        empty, written = self.empty(work), work.direction("write")
        length = work.length or self.capacity - work.offset
        if empty is None or written is None or length <= 0:
            return empty
        window = work.window
        first = 0.0 if window is None or not window.end_s else window.start_s / window.end_s
        times = np.linspace(first, 1.0, MOMENTS)
        if (work.random and _replaces(work)) or work.workers > 1:
            left = np.exp(-times * written.bytes / length)
        else:
            # A pass comes to each place once, to read or to write it: earlier passes have filled.
            moved = sum(one.bytes for one in work.moved if one.ddir in ("read", "write"))
            left = (1.0 - written.bytes / moved) ** np.floor(times * moved / length)
        return empty * float(left.mean())

    def _cells(self, offset: int, length: int | None) -> slice:
        if self.capacity == 0:
            return slice(0, CELLS)
        end = self.capacity if length is None else offset + length
        first = int(offset / self.capacity * CELLS)
        return slice(first, max(first + 1, min(CELLS, round(end / self.capacity * CELLS))))


def _span(case: Case) -> list[Symptom]:
    symptoms: list[Symptom] = []
    written = 0
    measured = {step.key for step in case.evidence.steps if step.measured}
    for step in case.evidence.steps:
        facts = case.facts.get(step.key)
        if facts is None:
            # Whoever purges or waits has an empty cache again.
            written = 0
            continue
        for work in facts.works:
            wrote = work.direction("write")
            written += wrote.bytes if wrote else 0
            if step.key in measured and work.name not in facts.fills and not step.on_purpose:
                rules = _simulated if facts.rig is not None else _real
                symptoms += rules(case, facts, work, written)
    return symptoms


def _simulated(case: Case, facts: Facts, work: JobFacts, written: int) -> Iterator[Symptom]:
    """A simulated drive's caches are known."""
    rig = facts.rig
    if rig is None or work.direction("write") is None:
        return
    full = case.evidence.initial in ("full", "scattered")
    if work.length is not None and work.length <= rig.buffer_bytes:
        text = (
            f"{work.name} works on {size_text(work.length)}, and the drive's write buffer "
            f"holds {size_text(rig.buffer_bytes)}"
        )
        yield Symptom("bad", text, facts.key)
    elif rig.slc_bytes and written < rig.slc_bytes and not full:
        text = (
            f"{work.name}: {size_text(written)} had been written by its end, and the drive's "
            f"SLC cache holds up to {size_text(rig.slc_bytes)}"
        )
        yield Symptom("doubt", text, facts.key)
    else:
        yield Symptom("good", "the range is larger than the drive's caches", facts.key)


def _real(case: Case, facts: Facts, work: JobFacts, written: int) -> Iterator[Symptom]:
    """Rules of thumb with their reasons: a real drive does not tell its caches."""
    capacity = int(facts.drive.get("capacity_bytes") or case.evidence.capacity or 0)
    length = work.length
    if length is None:
        return
    of = f" of a drive of {size_text(capacity)}" if capacity else ""
    small = length < max(SMALL, capacity * DRAM_SHARE) and length < capacity / 2
    if work.direction("read") is not None and small:
        text = f"{work.name} reads within {size_text(length)}{of}: data or map may lie in its RAM"
        yield Symptom("doubt", text, facts.key)
    elif facts.drive.get("rotational"):
        return  # a disk of which the kernel thinks that it turns has no SLC cache
    elif work.direction("write") is not None and written < SLC_SHARE * capacity:
        text = (
            f"{work.name}: {size_text(written)} had been written by its end{of}: "
            "an SLC cache may have taken all of it"
        )
        yield Symptom("doubt", text, facts.key)
    else:
        yield Symptom("good", "more was touched than a drive's caches hold", facts.key)


PROBES = (
    Probe(
        name="unwritten",
        title="areas never written",
        looks_for="reads from areas that were never written, or not since a purge or TRIM: by the "
        "order of the steps, by holes and unwritten extents of a file, by answers faster than "
        "flash",
        why="such reads are answered from the map or by the file system with zeros and never "
        "reach flash",
        look=_unwritten,
    ),
    Probe(
        name="span",
        title="size of the range",
        looks_for="ranges and amounts that fit into a cache of the drive: its RAM, its write "
        "buffer, its SLC cache",
        why="a cache may have taken all of it: the number is that of the cache then, and falls "
        "where the cache ends",
        look=_span,
    ),
)
