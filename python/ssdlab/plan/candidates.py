"""Caches that could stand before a pool, and which of them are worth simulating in time."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ssdlab import _core, units
from ssdlab.errors import InputError
from ssdlab.plan.curves import HitCurve, frames
from ssdlab.plan.ram import Ram, behind
from ssdlab.plan.stores import Store, cached, set_all
from ssdlab.rig import SUPERBLOCKS_MIN, reduced

DEFERRING = ("write-back", "write-only")
"""Modes in which the newest data may lie in the cache alone."""
SUB_BLOCK = 4096
SUB_BLOCKS_MAX = 64
THRESHOLD_MAX = 255
ROOMY = 4
"""A drive so many times the size of the cache on it collects next to nothing: it may be simulated
smaller."""
SPARE_TIMES = 1.25
"""A drive is simulated with room for so many times what is written to it where none of it is to be
collected."""
PARITIES = {"5": 2, "6": 3}
"""Writes of a parity array for one of the host."""
DRIVE_MIN = 1 << 30
ALIKE = 0.01
"""Hit ratios closer than this are the same."""
NEAR = 0.02
"""Estimated speeds closer than this are the same."""


@dataclass(frozen=True)
class CacheCandidate:
    """A cache: a part of a fast device and the keys of the device ``cache``."""

    fast: Store = field(hash=False)
    size: int
    """Bytes of the part that is used."""
    block: int | None
    """Bytes; None where a preset decides."""
    threshold: int | None
    policy: str | None
    mode: str | None
    preset: str | None = None

    @property
    def name(self) -> str:
        """What it is called in tables, without the drive: size, block, policy, mode, and the use
        from which on a block is let in where that is not the first."""
        if self.preset is not None:
            return f"{units.binary(self.size)}, preset {self.preset}"
        once = "" if self.threshold == 1 else f", use {self.threshold}"
        sizes = f"{units.binary(self.size)}, {units.binary(self.block or 0)}"
        return f"{sizes}, {self.policy}, {self.mode}{once}"

    @property
    def keys(self) -> dict[str, Any]:
        """Keys of the device ``cache``."""
        if self.preset is not None:
            return {"preset": self.preset}
        block = self.block or 0
        return {
            "mode": self.mode,
            "block": f"{block}B",
            "sub_block": f"{sub_block(block)}B",
            "replacement": self.policy,
            "read_threshold": self.threshold,
            "write_threshold": self.threshold,
        }

    def rig(self, pool: Store, ram: Ram | None = None, moved: int | None = None) -> str:
        """Pool and cache as a rig, with RAM before both if there is any; for a load that moves so
        many bytes in all."""
        if self.preset is not None:
            moved = None  # it may fill more than it is asked for
        return behind(ram, cached(part(self.fast, self.size, moved), pool, self.keys)).rig()


def sub_block(block: int) -> int:
    """Bytes that are valid and dirty together, of a block: 4 KiB, or as much as a block allows."""
    return max(min(SUB_BLOCK, block), block // SUB_BLOCKS_MAX)


def part(fast: Store, size: int, moved: int | None = None) -> Store:
    """The first ``size`` bytes of a fast device; what is left of it acts as spare. A shipped drive
    more than :data:`ROOMY` times as large, or larger than all that a load moves, is simulated with
    fewer blocks per die: it has room to spare either way, and every rate and time stays."""
    if size >= fast.capacity_bytes:
        return fast
    least, reserve = float(ROOMY * size), reserve_share(fast)
    if moved is not None and reserve is not None:
        # A new drive collects nothing before all of its flash has been written.
        least = min(least, max(size, written(fast, moved) / (1 + reserve)))
    below = shrunk(fast, round(least)) or fast.tree
    name, keys = fast.text, {"size": f"{size}B"}
    return replace(fast, tree=_core.Rig.wrap("partition", keys, name=name, below=below))


def reserve_share(fast: Store) -> float | None:
    """The over-provisioning of a fast device; None where that is not all that goes by its size: an
    SLC cache, a map that RAM does not hold."""
    values = {key: value for key, value, _ in fast.tree.values()}
    if any("ftl.slc_cache." in key or "ftl.map." in key for key in values):
        return None
    shares = [float(v) for key, v in values.items() if key.endswith("ftl.over_provisioning")]
    return min(shares, default=None)


def written(fast: Store, moved: int) -> float:
    """Bytes written to a fast device of which the host writes ``moved``, and some to spare."""
    level = "" if fast.shape is None else fast.shape.level
    return SPARE_TIMES * PARITIES.get(level, 1) * moved


def shrunk(fast: Store, least: int) -> _core.Rig | None:
    """The rig of a fast device with at least ``least`` bytes, made of smaller drives; None where
    it would be no smaller, or where its drive is not a shipped one."""
    factor = fast.capacity_bytes // max(least, DRIVE_MIN)
    drive = fast.profile
    if drive is None or not fast.tree.find("ssd"):
        return None
    while factor > 1:
        try:
            tree = fast.tree.copy()
            set_all(tree, "ssd", reduced(drive, factor, fewest=SUPERBLOCKS_MIN))
            if tree.capacity_bytes >= least:
                return tree
        except InputError:
            pass  # too few superblocks for its reserve
        factor //= 2
    return None


@dataclass(frozen=True, kw_only=True)
class CacheGrid:
    """What caches may be made of: every list in the order in which it was asked for."""

    fasts: Sequence[Store]
    sizes: Sequence[int] = ()
    """Bytes. Empty: chosen by the working set."""
    blocks: Sequence[int] = (16 << 10, 64 << 10)
    thresholds: Sequence[int] = (1, 2)
    policies: Sequence[str] = ("lru", "arc", "s3-fifo")
    modes: Sequence[str] = ("write-back", "write-through", "write-around")
    presets: Sequence[str] = ()
    top: int = 6
    """Caches that are simulated at least; more where one of each mode and drive are more."""


@dataclass(frozen=True)
class Costs:
    """Mean times of an I/O (ns), measured on the pool alone and on the fast device alone."""

    pool_read: float
    pool_write: float
    fast_read: float
    fast_write: float


def estimate(candidate: CacheCandidate, curve: HitCurve, cost: Costs) -> float:
    """Mean time of a block look-up (ns) once warm, from the curve and the times of both devices."""
    read = curve.at(candidate.size, curve.hits(warm=True, kind="read")) if curve.reads else 0.0
    back = curve.at(candidate.size, curve.warm.write_backs) / curve.writes if curve.writes else 0.0
    reads = read * cost.fast_read + (1 - read) * cost.pool_read
    if candidate.mode == "write-only":
        reads = cost.pool_read
    # What is written back goes in order and several at once; one for each write is the worst.
    writes = cost.fast_write + back * cost.pool_write
    if candidate.mode not in DEFERRING:
        writes = max(cost.pool_write, cost.fast_write)
    return (curve.reads * reads + curve.writes * writes) / max(1, curve.total)


class ShortList:
    """The caches of a grid that are worth simulating, and why the others are not; ``curves`` are by
    policy and block, as far as anything is known of the load, ``costs`` by the text of a fast
    device."""

    def __init__(
        self, asked: CacheGrid, curves: Mapping[tuple[str, int], HitCurve],
        costs: Mapping[str, Costs],
    ) -> None:  # fmt: skip
        self.curves = curves
        self.dropped: list[str] = []
        """A sentence for each reason."""
        modes, policies = self._modes(asked), self._policies(asked)
        kept = {store.text: self._sizes(asked, store) for store in asked.fasts}
        self.grid = [
            CacheCandidate(store, size, block, threshold, policy, mode)
            for store in asked.fasts
            for size in kept[store.text]
            for block in asked.blocks
            for policy in policies[block]
            for threshold in asked.thresholds
            for mode in modes
            if frames(size, block) >= 1
        ]
        """All that was not dropped."""
        presets = [
            CacheCandidate(store, kept[store.text][-1], None, None, None, None, preset)
            for store in asked.fasts
            if kept[store.text]
            for preset in asked.presets
        ]
        self._times = {
            candidate: self._time(candidate, costs[candidate.fast.text]) for candidate in self.grid
        }
        best = self._best(max(asked.top, len(modes) * len(asked.fasts))) if self.grid else []
        self.chosen = [*best, *presets]
        """The best ``top`` of the grid, and every preset."""

    def neighbours(
        self, lead: CacheCandidate, tried: Collection[CacheCandidate]
    ) -> list[CacheCandidate]:
        """What differs from ``lead`` in one choice that matters and was not tried: other blocks,
        thresholds and policies, and the next size either way."""
        sizes = sorted({candidate.size for candidate in self.grid if candidate.fast == lead.fast})
        place = sizes.index(lead.size) if lead.size in sizes else -1
        beside = sizes[max(0, place - 1) : place + 2] if place >= 0 else []
        return [
            candidate
            for axis in ("block", "size", "threshold", "policy")
            for candidate in self._along(axis, lead)
            if candidate not in tried and candidate.size in beside
        ]

    def _along(self, axis: str, lead: CacheCandidate) -> list[CacheCandidate]:
        """What differs from ``lead`` in this choice alone, and hits otherwise."""
        candidates = [
            candidate
            for candidate in self.grid
            if candidate.fast == lead.fast and _differ(candidate, lead) == [axis]
        ]
        if axis != "policy":
            return candidates
        own = self._curve(lead)
        return [
            candidate
            for candidate in candidates
            if not _alike(self._curve(candidate), own, [candidate.size])
        ]

    def _curve(self, candidate: CacheCandidate) -> HitCurve | None:
        return self.curves.get((candidate.policy or "lru", candidate.block or 0))

    def _time(self, candidate: CacheCandidate, cost: Costs) -> float:
        curve = self._curve(candidate)
        return 1.0 if curve is None else estimate(candidate, curve, cost)

    def _modes(self, asked: CacheGrid) -> Sequence[str]:
        known = self.curves.get((asked.policies[0], asked.blocks[0]))
        if known is None or known.writes or len(asked.modes) < 2:
            return asked.modes
        safe = next((mode for mode in asked.modes if mode not in DEFERRING), asked.modes[0])
        self.dropped.append(f"The load does not write, so modes do not differ: only {safe} is run.")
        return [safe]

    def _policies(self, asked: CacheGrid) -> dict[int, list[str]]:
        """For each block, the policies that differ in hits from one before."""
        kept: dict[int, list[str]] = {block: [] for block in asked.blocks}
        for block, policy in itertools.product(asked.blocks, asked.policies):
            own = self.curves.get((policy, block))
            like = (
                one for one in kept[block]
                if _alike(own, self.curves.get((one, block)), asked.sizes)
            )  # fmt: skip
            if (other := next(like, None)) is None:
                kept[block].append(policy)
            else:
                self.dropped.append(
                    f"{policy} is not simulated in blocks of {units.binary(block)}: it hits as "
                    f"often as {other} at every size (within {100 * ALIKE:.0f} % of the look-ups)."
                )
        return kept

    def _sizes(self, asked: CacheGrid, store: Store) -> list[int]:
        """Sizes that fit on the drive and hit more than the next smaller one."""
        kept: list[int] = []
        asked_for = [(policy, block) for block in asked.blocks for policy in asked.policies]
        known = [self.curves[key] for key in asked_for if key in self.curves]
        for size in asked.sizes:
            told = units.binary(size)
            if size > store.capacity_bytes:
                large = f"{store.text} ({units.binary(store.capacity_bytes)})"
                self.dropped.append(f"{told} is larger than {large}.")
            elif (
                kept and known
                and max(_gain(curve, kept[-1], size) for curve in known) < ALIKE
            ):  # fmt: skip
                last = units.binary(kept[-1])
                self.dropped.append(f"{told} is not simulated: it hits no more often than {last}.")
            else:
                kept.append(size)
        return kept

    def _best(self, top: int) -> list[CacheCandidate]:
        """The best of each drive and mode, then what differs from the best in one choice that
        matters, then the rest."""
        time = self._times.__getitem__

        def best(of: Sequence[CacheCandidate]) -> CacheCandidate:
            limit = (1 + NEAR) * min(map(time, of))
            # Smallest first; of equals the first asked for.
            return min(
                (candidate for candidate in of if time(candidate) <= limit),
                key=lambda candidate: candidate.size,
            )

        groups: dict[tuple[str, str | None], list[CacheCandidate]] = {}
        for candidate in self.grid:
            groups.setdefault((candidate.fast.text, candidate.mode), []).append(candidate)
        heads = sorted(map(best, groups.values()), key=time)
        chosen = list(heads)
        safe = [head for head in heads if head.mode not in DEFERRING] or heads
        for lead in dict.fromkeys((safe[0], heads[0])):
            for axis in ("size", "block", "threshold", "policy"):
                chosen += sorted(self._along(axis, lead), key=time)[: 2 if axis == "size" else 1]
        return list(dict.fromkeys([*chosen, *sorted(self.grid, key=time)]))[:top]


def _alike(curve: HitCurve | None, other: HitCurve | None, sizes: Sequence[int]) -> bool:
    """Whether two curves hit as often at every size, cold and warm."""
    if curve is None or other is None:
        return False
    return all(
        abs(curve.at(s, curve.hits(warm=w)) - other.at(s, other.hits(warm=w))) < ALIKE
        for s in sizes
        for w in (False, True)
    )


def _gain(curve: HitCurve, size: int, larger: int) -> float:
    """How much more a larger cache hits, cold or warm."""
    hits = [curve.hits(warm=warm) for warm in (True, False)]
    return max(curve.at(larger, hit) - curve.at(size, hit) for hit in hits)


def _differ(candidate: CacheCandidate, other: CacheCandidate) -> list[str]:
    """In which choices two candidates differ."""
    names = ("size", "block", "threshold", "policy", "mode")
    return [name for name in names if getattr(candidate, name) != getattr(other, name)]
