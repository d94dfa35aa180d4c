"""Misses of caches of blocks, by replacement policy and size: a trace played without time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ssdlab import _core, bench, units
from ssdlab.errors import InputError, Interrupted, UnknownNameError, nearest
from ssdlab.plan.curves import SAMPLED_MIN, SAMPLES, Accesses, accesses, footprint, misses
from ssdlab.plan.workload import DEVICE_ALIGN, Stream, one_behind_another, read_trace
from ssdlab.progress import ProgressCallback, within
from ssdlab.rig import registered
from ssdlab.studies.objects import READING, ObjectsFound, named, play, read_objects
from ssdlab.tracefile import Reading, existing, left_out

SIZES = "1%..100%/8"
SAMPLE_MAX = 1 / SAMPLES
BLOCK = 4096
"""Of a cache, bytes, unless asked otherwise."""
BOUND = "optimal"
LIKE_LIBCACHESIM = "lirs-libcachesim"
"""LIRS that holds more than it may where libCacheSim does: only where it is asked for."""
COUNTED_ONLY = (BOUND, LIKE_LIBCACHESIM)
"""Policies that no cache can have."""
ONE_PASS = ("lru", BOUND)
"""Policies that are cheaper at all sizes at once than at each."""
EXPECTED = "percentages of the working set (10%), sizes (1g) or counts (1425blocks)"


@dataclass(frozen=True)
class Size:
    """Of a cache: a share of the working set, or bytes, or blocks."""

    share: Fraction | None = None
    bytes: int | None = None
    blocks: int | None = None

    def frames(self, working_set: int, block: int) -> int:
        """Blocks that the cache holds, rounded down; of a share at least one."""
        if self.share is not None:
            return max(1, int(self.share * working_set))
        return self.blocks if self.blocks is not None else (self.bytes or 0) // block

    def of_objects(self, working_set: int) -> int:
        """Bytes that a cache of objects has; raises InputError for a number of blocks."""
        if self.blocks is not None:
            raise InputError(
                f'--sizes "{self.blocks}blocks": the trace names objects, which differ in size; '
                "give bytes (1g) or percentages of the working set, or --block to play it in blocks"
            )
        return self.frames(working_set, 1)


@dataclass(frozen=True)
class MissRatioPoint:
    """What a cache of one policy and size did."""

    policy: str
    size: int
    """Blocks that it holds."""
    reads: float
    """Reads that missed; estimates have no whole number."""
    writes: float
    write_backs: float
    error: float
    """Standard error of the miss ratio; 0 where exact."""

    @property
    def misses(self) -> float:
        """Blocks looked up that were not there."""
        return self.reads + self.writes


@dataclass(frozen=True)
class MissRatios:
    """All caches, and what holds for each of them."""

    trace: str
    block: int
    requests: int
    """Reads and writes of the trace."""
    reads: int
    """Blocks read: each block of a request is looked up by itself."""
    writes: int
    working_set: int
    """Different blocks: each is missed when it is asked for first, whatever the cache."""
    share: float
    """Of the blocks, in all samples; 1 where all were followed."""
    points: Sequence[MissRatioPoint]
    left_out: Sequence[str] = ()
    """What of the trace is not in them, in sentences."""
    lookups: ClassVar[str] = "accesses"

    @property
    def accesses(self) -> int:
        """Blocks looked up."""
        return self.reads + self.writes

    def ratio(self, point: MissRatioPoint) -> float:
        """Misses per block looked up."""
        return point.misses / max(1, self.accesses)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each cache, for scripts."""
        exact = self.share == 1.0

        def count(value: float) -> float:
            return round(value) if exact else value

        return [
            {
                "policy": point.policy,
                "blocks": point.size,
                "block_bytes": self.block,
                "requests": self.accesses,
                "misses": count(point.misses),
                "miss_ratio": self.ratio(point),
                "read_misses": count(point.reads),
                "write_misses": count(point.writes),
                "write_backs": count(point.write_backs),
                "error": point.error,
                "sampled_share": self.share,
                "working_set_blocks": self.working_set,
                "first_touches": self.working_set,
            }
            for point in self.points
        ]


def known_policies() -> list[str]:
    """Names of the replacement policies that ``all`` means, the bound among them."""
    return [name for name in registered("replacement policy") if name != LIKE_LIBCACHESIM]


def timed_policies() -> list[str]:
    """Names of those that a cache can have."""
    return [name for name in registered("replacement policy") if name not in COUNTED_ONLY]


def policies(text: str) -> list[str]:
    """The policies of a list with their admissions; ``all`` is every policy, ``all+ghost`` each
    with that. Raises UnknownNameError for others, InputError for what cannot be."""
    found: list[str] = []
    for name in units.words("--policies", text):
        policy, plus, rule = name.partition("+")
        every = [other for other in known_policies() if not plus or other != BOUND]
        for one in every if policy == "all" else [policy]:
            try:
                _core.check_policy(f"{one}{plus}{rule}")
            except UnknownNameError:
                raise
            except InputError as error:
                raise InputError(f'--policies "{name}": {error.message}') from None
            found.append(f"{one}{plus}{rule}")
    return list(dict.fromkeys(found))


def sizes(text: str) -> list[Size]:
    """The sizes of a list; raises InputError for what is none."""
    return [_size(unit) for unit in units.values("--sizes", text)]


def _size(text: str) -> Size:
    number, unit = units.quantity(text) or (0.0, "")
    size: Size | None = None
    if (counted := re.fullmatch(r"(\d{1,18})(\.\d*)?\s*blocks?", text)) is not None:
        size = Size(blocks=int(counted[1]))
    elif text.endswith("%") and number:
        size = Size(share=Fraction(text[:-1].strip()) / 100)
    elif 1 <= number < math.inf and unit in ("", "B") and not text.endswith("%"):
        size = Size(bytes=int(number))
    if size is None or not any((size.share, size.bytes, size.blocks)):
        word = re.fullmatch(r"[\d.]+\s*([A-Za-z]+)", text)
        near = nearest(word[1], ["blocks", "KiB", "MiB", "GiB", "TiB"]) if word else None
        meant = f"{text[: word.start(1)]}{near}" if word and near else text
        hint = f' (did you mean "{meant}"?)' if meant != text else ""
        raise InputError(f'--sizes "{text}": expected {EXPECTED}{hint}')
    return size


@dataclass(frozen=True)
class MissRatioStudy:
    """What is asked for."""

    trace: Path
    reading: Reading
    block: int | None
    """Bytes; None: a trace that names objects is played as such, others in blocks of 4 KiB."""
    policies: Sequence[str]
    sizes: Sequence[Size]
    sample: float | None = None
    """Share of the blocks that is followed in each of several samples; None: all of them."""
    seed: int = 1

    def carry_out(self, progress: ProgressCallback) -> MissRatios | ObjectsFound:
        """Plays the trace through every cache; InputError as :func:`ssdlab.traces.open`, and for a
        size that cannot be; Interrupted on Ctrl-C, and where ``progress`` answers False."""
        if self.block is None and named(existing(self.trace), self.reading):
            return self._objects(progress)
        block = self.block or BLOCK
        try:
            columns = read_trace(existing(self.trace), self.reading, progress=progress)
        except KeyboardInterrupt:
            raise Interrupted(bench.variant.STOPPED) from None
        # No block is of two devices.
        align = block if DEVICE_ALIGN % block else DEVICE_ALIGN
        offset, _ = one_behind_another(columns, align)
        seen = accesses(Stream(offset, columns.length, columns.writes), block)
        working_set = int(footprint(seen))
        counts = self._counts(working_set, block)
        jobs = list(self._jobs(counts))
        variants = [
            bench.Variant(
                partial(_played, policy, seen, some, self.sample or 1.0, self.seed),
                float(seen.total * len(some)) ** (0.5 if policy == "lru" else 1.0),
            )
            for policy, some in jobs
        ]
        played = bench.run(variants, within(progress, READING, 1.0))
        points = [
            MissRatioPoint(policy, blocks, *(float(one[name][place]) for name in COLUMNS))
            for (policy, some), one in zip(jobs, played, strict=True)
            for place, blocks in enumerate(some)
        ]
        writes = int(seen.count[seen.writes].sum())
        return MissRatios(
            trace=self.trace.name,
            block=block,
            requests=len(offset),
            reads=seen.total - writes,
            writes=writes,
            working_set=working_set,
            share=1.0 if self.sample is None else min(1.0, self.sample * SAMPLES),
            points=points,
            left_out=left_out(existing(self.trace), self.reading),
        )

    def _objects(self, progress: ProgressCallback) -> ObjectsFound:
        if self.sample is not None:
            raise InputError(
                "--sample: the trace names objects, which are all followed; leave it out, or give "
                "--block to play it in blocks"
            )
        trace = existing(self.trace)
        asked = read_objects(trace, self.reading, progress)
        known, chosen = _core.object_policies(), list(self.policies)
        if set(known_policies()) <= {one.partition("+")[0] for one in chosen}:
            chosen = [one for one in chosen if one.partition("+")[0] in known]
        for one in chosen:
            if one.partition("+")[0] not in known:
                raise InputError(
                    f'--policies "{one}": it orders blocks of one size, and the trace names '
                    f"objects; give one of {', '.join(known)}, or --block to play it in blocks"
                )
        sizes = sorted({size.of_objects(asked.total) for size in self.sizes})
        found = play(self.trace.name, asked, chosen, sizes, self.seed, progress)
        return replace(found, left_out=left_out(trace, self.reading))

    def _counts(self, working_set: int, block: int) -> list[int]:
        counts = sorted({size.frames(working_set, block) for size in self.sizes})
        if counts[0] < 1:
            least = min(size.bytes for size in self.sizes if size.bytes is not None)
            raise InputError(
                f"--sizes: {units.binary(least)} hold no block of {units.binary(block)}; "
                f"write {least}blocks for a number of blocks"
            )
        if self.sample is not None and counts[0] * self.sample < SAMPLED_MIN:
            raise InputError(
                f"--sample: {100 * self.sample:.4g} % of a cache of {counts[0]:,} blocks is less "
                f"than {SAMPLED_MIN} blocks, too few to tell; take larger sizes or a larger sample"
            )
        return counts

    def _jobs(self, counts: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
        for policy in self.policies:
            if policy in ONE_PASS or self.sample is not None:
                yield policy, list(counts)
            else:
                yield from ((policy, [count]) for count in counts)


COLUMNS = ("read_misses", "write_misses", "write_backs", "error")


def _played(
    policy: str, seen: Accesses, counts: Sequence[int], rate: float, seed: int, seat: bench.Seat
) -> dict[str, Any]:
    found = misses(policy, seen, counts, rate, seat.report, seed)
    return {name: np.asarray(found[name]) for name in COLUMNS}
