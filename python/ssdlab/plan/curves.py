"""How often caches of each size would hit, without time: curves, working set, first touches.

A *first pass* begins with an empty cache: what is touched for the first time misses whatever the
size (compulsory misses). A *warm pass* is one more of the same, beginning with what the first left:
misses of the load twice over, less those of the first pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ssdlab import _core
from ssdlab.numeric import Floats
from ssdlab.plan.workload import Stream
from ssdlab.progress import ProgressCallback, heard, within

EXACT_MAX = 8_000_000
"""Block accesses up to which curves are exact; beyond, about half as many are sampled."""
SAMPLES = 8
SAMPLED_MIN = 16
"""Blocks of a sample that a cache must hold (the core refuses fewer)."""
ENTRY_BYTES = 64
"""Of the cache's table per block, on the cache device."""
BLOCKS_MAX = 2**64 - 1
"""What the core counts; no stream has more."""
STEP = 2**0.25
"""Between two sizes of a curve."""
COUNTED = ("read_misses", "write_misses", "write_backs")
SHARES = (0.5, 0.8, 0.9, 0.95)
"""Of the attainable hits, for the working set."""


@dataclass(frozen=True)
class Accesses:
    """A stream as a cache with one size of blocks sees it: runs of blocks."""

    block: int
    first: npt.NDArray[np.uint64]
    count: npt.NDArray[np.uint32]
    writes: npt.NDArray[np.bool_]

    @property
    def total(self) -> int:
        """Blocks looked up."""
        return int(self.count.sum())


def accesses(stream: Stream, block: int) -> Accesses:
    """The blocks that each request of a stream touches."""
    size = np.uint64(block)
    first = stream.offset // size
    last = (stream.offset + stream.length - np.uint64(1)) // size
    return Accesses(block, first, (last - first + np.uint64(1)).astype(np.uint32), stream.writes)


@dataclass(frozen=True)
class Misses:
    """Misses of a pass at each size."""

    read_misses: Floats
    write_misses: Floats
    write_backs: Floats


@dataclass(frozen=True)
class HitCurve:
    """Misses against the size of the cache, for one policy and one size of blocks."""

    policy: str
    block: int
    sizes: npt.NDArray[np.float64]
    """Bytes of the cache device."""
    reads: int
    """Block look-ups of a pass."""
    writes: int
    first: Misses
    warm: Misses
    error: Floats
    """Standard error of the miss ratio of the first pass; 0 where exact."""
    footprint: float
    """Different blocks, bytes; NaN where the policy does not tell."""
    rate: float
    """Share of the blocks that was followed; 1 where exact."""

    @property
    def total(self) -> int:
        """Block look-ups of a pass."""
        return self.reads + self.writes

    def hits(self, *, warm: bool = False, kind: str = "all") -> Floats:
        """Hit ratio at each size: of ``all``, of ``read`` or of ``write``; NaN without any."""
        one = self.warm if warm else self.first
        misses = {"read": one.read_misses, "write": one.write_misses}
        found = misses.get(kind, one.read_misses + one.write_misses)
        asked = {"read": self.reads, "write": self.writes}.get(kind, max(1, self.total))
        return 1 - found / asked if asked else np.full(len(self.sizes), np.nan)

    def at(self, size: float, values: Floats) -> float:
        """A value of the curve at a size: that of the largest known one that is not larger."""
        place = int(np.searchsorted(self.sizes, size * 1.000001, "right")) - 1
        return float(values[max(0, place)])

    @property
    def first_touch(self) -> float:
        """Share of the look-ups that are the first of their block (compulsory misses)."""
        return min(1.0, self.footprint / self.block / max(1, self.total))

    @property
    def attainable(self) -> float:
        """Hit ratio of the first pass in a cache that holds everything."""
        return 1 - self.first_touch

    def working_set(self, share: float) -> float | None:
        """Least size (bytes) with ``share`` of the attainable hits; None where nothing can hit."""
        if self.attainable <= 0.001:
            return None
        good = np.flatnonzero(self.hits() >= share * self.attainable - 1e-12)
        found = float(self.sizes[good[0]]) if len(good) else float(self.sizes[-1])
        # The sizes that were looked at are steps, the last of which may go beyond all of the data.
        return min(found, self.whole)

    @property
    def whole(self) -> float:
        """Least size (bytes) that holds every block, with the cache's own table."""
        return self.footprint / self.block * (self.block + ENTRY_BYTES)

    def as_json(self) -> dict[str, Any]:
        """The object of ``--json``."""

        def plain(values: Floats) -> list[float | None]:
            return [None if np.isnan(v) else round(float(v), 9) for v in values]

        return {
            "policy": self.policy,
            "block_bytes": self.block,
            "reads": self.reads,
            "writes": self.writes,
            "sampled_share": self.rate,
            "size_bytes": [float(v) for v in self.sizes],
            "first_pass": self._pass_json(plain, warm=False),
            "warm_pass": self._pass_json(plain, warm=True),
            "error": plain(self.error),
        }

    def _pass_json(self, plain: Any, *, warm: bool) -> dict[str, Any]:
        one = self.warm if warm else self.first
        return {
            "hit_ratio": plain(self.hits(warm=warm)),
            "read_hit_ratio": plain(self.hits(warm=warm, kind="read")),
            "write_hit_ratio": plain(self.hits(warm=warm, kind="write")),
            "write_backs": plain(one.write_backs),
        }


def frames(size: float, block: int) -> int:
    """Blocks that fit on a cache device of ``size`` bytes beside their table."""
    return max(0, int(size // (block + ENTRY_BYTES)))


def curve(
    policy: str,
    seen: Accesses,
    sizes: Sequence[float] | None = None,
    *,
    exact_max: int = EXACT_MAX,
    progress: ProgressCallback | None = None,
) -> HitCurve:
    """The curve of a policy at the sizes given (bytes), or from 16 blocks to all of the footprint:
    of LRU in one pass for all sizes, of others in one for each. Beyond ``exact_max`` look-ups
    blocks are sampled. Raises Interrupted on Ctrl-C, and where ``progress`` answers False."""
    rate = 1.0
    if seen.total > exact_max:
        rate = max(exact_max / 2 / SAMPLES / seen.total, 1e-4)
    if sizes is None:
        steps = _steps(max(64.0, 1.1 * footprint(seen)))
        sizes = [float(step) * (seen.block + ENTRY_BYTES) for step in steps]
    least = SAMPLED_MIN / rate if rate < 1.0 else 1.0
    found = sorted({frames(size, seen.block): float(size) for size in sizes}.items())
    held = [(count, size) for count, size in found if count >= least]
    if not held:
        held = [(int(np.ceil(least)) + 1, (np.ceil(least) + 1) * (seen.block + ENTRY_BYTES))]
    counts = [count for count, _ in held]
    report = progress or (lambda _news: True)
    once = misses(policy, seen, counts, rate, within(report, 0.0, 0.35))
    twice = misses(policy, seen, counts, rate, within(report, 0.35, 1.0), repeat=2)
    return HitCurve(
        policy=policy,
        block=seen.block,
        sizes=np.array([size for _, size in held]),
        reads=int(once["reads"]),
        writes=int(once["writes"]),
        first=Misses(*(once[name] for name in COUNTED)),
        warm=Misses(*(np.maximum(0.0, twice[name] - once[name]) for name in COUNTED)),
        error=once["error"],
        footprint=float(once["footprint"]) * seen.block,
        rate=rate,
    )


def _steps(most: float) -> Floats:
    count = int(np.ceil(np.log(most / SAMPLED_MIN) / np.log(STEP))) + 1
    values: Floats = np.ceil(SAMPLED_MIN * STEP ** np.arange(count))
    return values


def footprint(seen: Accesses) -> float:
    """Different blocks, as a sum of the places of runs that no run before has covered."""
    first = seen.first.astype(np.int64)
    order = np.argsort(first, kind="stable")
    begin, end = first[order], (first + seen.count.astype(np.int64))[order]
    reach = np.maximum.accumulate(end)
    before = np.concatenate([[begin[0]], reach[:-1]])
    return float(np.maximum(0, end - np.maximum(begin, before)).sum())


def misses(
    policy: str,
    seen: Accesses,
    counts: Sequence[int],
    rate: float,
    progress: ProgressCallback,
    seed: int = 1,
    repeat: int = 1,
) -> dict[str, Floats]:
    """What the core counts, at each number of blocks: of all of them, or in samples of a share
    ``rate`` each; of the stream ``repeat`` times over. Raises Interrupted on Ctrl-C, and where
    ``progress`` answers False."""
    sampled: dict[str, Any] = {} if rate >= 1.0 else {"rate": rate, "samples": SAMPLES}
    found = heard(
        progress,
        lambda report: _core.miss_ratio_curve(
            policy,
            seen.first,
            seen.writes,
            blocks=seen.count,
            sizes=[min(count, BLOCKS_MAX) for count in counts],
            seed=seed,
            repeat=repeat,
            progress=report,
            **sampled,
        ),
    )
    return {name: np.asarray(value) for name, value in found.items()}
