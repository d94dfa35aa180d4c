"""Caches that could stand before a pool, and which of them are worth simulating in time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ssdlab import _core, units
from ssdlab.errors import InputError
from ssdlab.plan.curves import HitCurve, frames
from ssdlab.plan.stores import Store, cached
from ssdlab.rig import SUPERBLOCKS_MIN, capacity_of, reduced

DEFERRING = ("write-back", "write-only")
"""Modes in which the newest data may lie in the cache alone."""
SUB_BLOCK = 4096
SUB_BLOCKS_MAX = 64
THRESHOLD_MAX = 255
ROOMY = 4
"""A drive so many times the size of the cache on it collects next to nothing: it may be simulated
smaller."""
DRIVE_MIN = 1 << 30
ALIKE = 0.01
"""Hit ratios closer than this are the same."""
NEAR = 0.02
"""Estimated speeds closer than this are the same."""

Keys = Mapping[str, Any]
CurveOf = Callable[[str, int], HitCurve | None]
"""The curve of a policy and a block; None where nothing is known of the load."""


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

    def rig(self, pool: Store) -> str:
        """Pool and cache as a rig."""
        return cached(part(self.fast, self.size), pool, self.keys).rig()


def sub_block(block: int) -> int:
    """Bytes that are valid and dirty together, of a block: 4 KiB, or as much as a block allows."""
    return max(min(SUB_BLOCK, block), block // SUB_BLOCKS_MAX)


def part(fast: Store, size: int) -> Store:
    """The first ``size`` bytes of a fast device; what is left of it acts as spare.

    A shipped drive that is more than :data:`ROOMY` times as large is simulated with fewer blocks
    per die: it has room to spare either way, and every rate and time stays.
    """
    if size >= fast.capacity_bytes:
        return fast
    below = shrunk(fast, ROOMY * size) or fast.tree
    name, keys = fast.text, {"size": f"{size}B"}
    return replace(fast, tree=_core.Rig.wrap("partition", keys, name=name, below=below))


def shrunk(fast: Store, least: int) -> _core.Rig | None:
    """The rig of a fast device with at least ``least`` bytes, made of smaller drives; None where
    it would be no smaller, or where its drive is not a shipped one."""
    factor = fast.capacity_bytes // max(least, DRIVE_MIN)
    drive, places = fast.profile, fast.tree.find("ssd")
    if drive is None or not places:
        return None
    while factor > 1:
        try:
            tree = fast.tree.copy()
            for key, value in reduced(drive, factor, fewest=SUPERBLOCKS_MIN).items():
                for place in places:
                    tree.set(place + key, value)
            if tree.capacity_bytes >= least:
                return tree
        except InputError:
            pass  # too few superblocks for its reserve
        factor //= 2
    return None


def full_bytes(fast: Store) -> int:
    """Capacity of one drive of a fast device."""
    drive = fast.profile
    return fast.capacity_bytes if drive is None else capacity_of(drive)


@dataclass(frozen=True)
class CacheGrid:
    """The grid: every list in the order in which it was asked for."""

    fasts: Sequence[Store]
    sizes: Sequence[int]
    blocks: Sequence[int]
    thresholds: Sequence[int]
    policies: Sequence[str]
    modes: Sequence[str]
    presets: Sequence[str] = ()


@dataclass(frozen=True)
class Costs:
    """Mean times of an I/O (ns), measured on the pool alone and on the fast device alone."""

    pool_read: float
    pool_write: float
    fast_read: float
    fast_write: float


@dataclass(frozen=True)
class Short:
    """The short list, and why the others are not on it."""

    chosen: Sequence[CacheCandidate]
    dropped: Sequence[str] = field(default_factory=tuple)
    """A sentence for each reason."""
    grid: Sequence[CacheCandidate] = ()
    """All that was not dropped."""
    same: Callable[[CacheCandidate, CacheCandidate], bool] = lambda _one, _other: False
    """Whether two candidates differ in a policy that makes no difference."""


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


def shorten(
    asked: CacheGrid,
    curve_of: CurveOf,
    costs: Mapping[str, Costs],
    top: int,
) -> Short:
    """The most promising candidates, at most ``top`` and one of each mode and drive at least.

    ``costs`` is by the text of a fast device.
    """
    dropped: list[str] = []
    modes = list(asked.modes)
    any_curve = curve_of(asked.policies[0], asked.blocks[0])
    if any_curve is not None and not any_curve.writes and len(modes) > 1:
        safe = next((one for one in modes if one not in DEFERRING), modes[0])
        dropped.append(f"The load does not write, so modes do not differ: only {safe} is run.")
        modes = [safe]
    policies = _policies(asked, curve_of, dropped)
    kept = [(one, _sizes(asked, one, curve_of, dropped)) for one in asked.fasts]
    grid = [
        CacheCandidate(one, size, block, threshold, policy, mode)
        for one, sizes in kept
        for size in sizes
        for block in asked.blocks
        for policy in policies[block]
        for threshold in asked.thresholds
        for mode in modes
        if frames(size, block) >= 1
    ]
    presets = [
        CacheCandidate(one, sizes[-1], None, None, None, None, preset)
        for one, sizes in kept
        if sizes
        for preset in asked.presets
    ]

    def speed(one: CacheCandidate) -> float:
        found = curve_of(one.policy or "lru", one.block or 0)
        return 1.0 if found is None else estimate(one, found, costs[one.fast.text])

    def same(one: CacheCandidate, other: CacheCandidate) -> bool:
        if one.policy == other.policy:
            return False
        return _alike(
            curve_of(one.policy or "", one.block or 0),
            curve_of(other.policy or "", other.block or 0),
            [one.size],
        )

    chosen = _pick(grid, speed, same, max(top, len(modes) * len(asked.fasts)))
    return Short([*chosen, *presets], tuple(dict.fromkeys(dropped)), grid, same)


def neighbours(
    short: Short, lead: CacheCandidate, tried: Collection[CacheCandidate]
) -> list[CacheCandidate]:
    """What differs from ``lead`` in one choice that matters and was not tried: other blocks,
    thresholds and policies, and the next size either way."""
    sizes = sorted({one.size for one in short.grid if one.fast == lead.fast})
    place = sizes.index(lead.size) if lead.size in sizes else -1
    beside = sizes[max(0, place - 1) : place + 2] if place >= 0 else []
    found = [
        one
        for one in short.grid
        if one.fast == lead.fast
        and one not in tried
        and _differ(one, lead) in (["block"], ["threshold"], ["policy"], ["size"])
        and one.size in beside
        and not short.same(one, lead)
    ]
    order = ("block", "size", "threshold", "policy")
    return sorted(found, key=lambda one: order.index(_differ(one, lead)[0]))


def _policies(asked: CacheGrid, curve_of: CurveOf, dropped: list[str]) -> dict[int, list[str]]:
    """For each block, the policies that differ in hits from one before."""
    kept: dict[int, list[str]] = {}
    for block in asked.blocks:
        kept[block] = []
        for policy in asked.policies:
            own = curve_of(policy, block)
            like = next(
                (
                    other
                    for other in kept[block]
                    if _alike(own, curve_of(other, block), asked.sizes)
                ),
                None,
            )
            if like is None:
                kept[block].append(policy)
            else:
                dropped.append(
                    f"{policy} is not simulated in blocks of {units.binary(block)}: it hits as "
                    f"often as {like} at every size (within {100 * ALIKE:.0f} % of the look-ups)."
                )
    return kept


def _alike(one: HitCurve | None, other: HitCurve | None, sizes: Sequence[int]) -> bool:
    if one is None or other is None:
        return False
    return all(
        abs(one.at(s, one.hits(warm=w)) - other.at(s, other.hits(warm=w))) < ALIKE
        for s in sizes
        for w in (False, True)
    )


def _sizes(
    asked: CacheGrid,
    one: Store,
    curve_of: CurveOf,
    dropped: list[str],
) -> list[int]:
    """Sizes that fit on the drive and hit more than the next smaller one."""
    kept: list[int] = []
    for size in asked.sizes:
        if size > one.capacity_bytes:
            dropped.append(
                f"{units.binary(size)} is larger than {one.text} "
                f"({units.binary(one.capacity_bytes)})."
            )
            continue
        gains = [
            found.at(size, values) - found.at(kept[-1], values)
            for block in asked.blocks
            for policy in asked.policies
            if kept and (found := curve_of(policy, block)) is not None
            for values in (found.hits(warm=True), found.hits())
        ]
        if gains and max(gains) < ALIKE:
            dropped.append(
                f"{units.binary(size)} is not simulated: it hits no more often than "
                f"{units.binary(kept[-1])}."
            )
        else:
            kept.append(size)
    return kept


def _pick(
    grid: Sequence[CacheCandidate],
    time_of: Callable[[CacheCandidate], float],
    same: Callable[[CacheCandidate, CacheCandidate], bool],
    top: int,
) -> list[CacheCandidate]:
    """The best of each drive and mode, then what differs from the best in one choice that matters
    (``same`` says where it does not), then the rest."""
    if not grid:
        return []
    times = {one: time_of(one) for one in grid}

    def best(of: Sequence[CacheCandidate]) -> CacheCandidate:
        limit = (1 + NEAR) * min(times[one] for one in of)
        # Smallest first; of equals the first asked for.
        return min((one for one in of if times[one] <= limit), key=lambda one: one.size)

    groups: dict[tuple[str, str | None], list[CacheCandidate]] = {}
    for one in grid:
        groups.setdefault((one.fast.text, one.mode), []).append(one)
    heads = sorted((best(of) for of in groups.values()), key=lambda one: times[one])
    chosen = list(heads)
    safe = [one for one in heads if one.mode not in DEFERRING] or heads
    for lead in dict.fromkeys((safe[0], heads[0])):
        for axis in ("size", "block", "threshold", "policy"):
            near = [
                one
                for one in grid
                if one.fast == lead.fast and _differ(one, lead) == [axis] and not same(one, lead)
            ]
            chosen += sorted(near, key=lambda one: times[one])[: 2 if axis == "size" else 1]
    chosen += sorted((one for one in grid), key=lambda one: times[one])
    return list(dict.fromkeys(chosen))[:top]


def _differ(one: CacheCandidate, other: CacheCandidate) -> list[str]:
    """In which choices two candidates differ."""
    names = ("size", "block", "threshold", "policy", "mode")
    return [name for name in names if getattr(one, name) != getattr(other, name)]
