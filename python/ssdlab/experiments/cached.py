"""Rigs of disks with an SSD cache at reduced size, for several experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ssdlab import _core
from ssdlab.arrays.attachment import DIRECT, Attachment
from ssdlab.arrays.rigs import CHUNK, ArrayShape, array_of
from ssdlab.rig import SUPERBLOCKS_MIN, capacity_of, profile, reduced


@dataclass(frozen=True)
class Members:
    """Equal drives as an array."""

    level: str
    """A key of ``LEVELS``."""
    count: int
    drive: str
    """Name of the profile."""
    chunk: int = CHUNK
    keys: tuple[tuple[str, str], ...] = ()
    """Keys of the drive that are set otherwise than in its profile, such as a write cache."""
    factor_max: int | None = None
    """A drive is not made smaller than this; beyond it a part of it is used. Collection needs
    blocks."""

    def rig(self, factor: int) -> _core.Rig:
        """The array, its drives scaled down by ``factor``."""
        member = profile(self.drive).rig()
        own = factor if self.factor_max is None else min(factor, self.factor_max)
        smaller = reduced(self.drive, own, fewest=SUPERBLOCKS_MIN)
        for key, value in {**smaller, **dict(self.keys)}.items():
            member.set(key, value)
        if own < factor:
            size = capacity_of(self.drive) // factor // 4096 * 4096
            member = _core.Rig.wrap("partition", {"size": f"{size}B"}, below=member)
        return array_of(member, ArrayShape(self.level, self.count, self.chunk))


def rig(
    name: str,
    pool: _core.Rig,
    fast: _core.Rig | None = None,
    keys: Mapping[str, Any] | None = None,
    card: Attachment = DIRECT,
) -> str:
    """``pool``, behind a cache on ``fast`` with these keys if there is one, behind ``card``."""
    whole = pool.copy(name=name, summary=name)
    if fast is not None:
        whole = _core.Rig.wrap(
            "cache", dict(keys or {}), name=name, summary=name, cache=fast, below=pool
        )
    return card.around(whole).to_toml()


def milliseconds(seconds: float, factor: int) -> str:
    """A time of the full-size experiment as a job says it, scaled down by ``factor``."""
    return f"{max(1, round(seconds * 1000 / factor))}ms"
