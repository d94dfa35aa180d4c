"""A cache in the RAM of the host, before a storage and whatever caches that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ssdlab import _core, units
from ssdlab.plan.curves import accesses
from ssdlab.plan.stores import Store, cached
from ssdlab.plan.workload import Stream

PAGE = 4096
RAM_MAX = PAGE << 29
"""As many frames as a cache can have."""
BEHIND = "below/"
"""Where the counters of a storage stand that has RAM before it."""
SERVICE_TIME = "1us"
"""Of a page: a system call and a copy of 4 KiB (assumed)."""
CORES = 8
"""That copy pages at the same time (assumed)."""
PAGE_CACHE = {
    "dirty_low": 0.1, "dirty_high": 0.2, "destage_order": "age", "destage_depth": 128
}  # fmt: skip
"""Of a page cache that writes back: dirty_background_ratio 10 and dirty_ratio 20, the oldest first
(Linux, Documentation/admin-guide/sysctl/vm.rst); as many requests at a time as the queue of a block
device takes (BLKDEV_DEFAULT_RQ)."""


@dataclass(frozen=True)
class Ram:
    """RAM that caches pages of 4 KiB; its index comes on top."""

    size: int
    """Bytes of data."""
    policy: str = "lru"
    mode: str = "write-through"

    @property
    def defers(self) -> bool:
        """Whether it acknowledges writes that a loss of power takes with it."""
        return self.mode == "write-back"

    @property
    def title(self) -> str:
        """Size, policy, mode."""
        return f"{units.binary(self.size)}, {self.policy}, {self.mode}"

    def before(self, store: Store) -> Store:
        """A storage with this before it."""
        pages = self.size // PAGE
        # A byte of table for each page, in whole pages: as many frames as pages.
        room = (pages + -(-pages // PAGE)) * PAGE
        device = {"capacity": f"{room}B", "service_time": SERVICE_TIME, "servers": CORES}
        ram = Store("RAM", "RAM", _core.Rig.wrap("null", device, name="RAM"), {}, redundant=False)
        keys: dict[str, Any] = {
            "mode": self.mode,
            "block": f"{PAGE}B",
            "sub_block": f"{PAGE}B",
            "replacement": self.policy,
            "metadata_bytes": "1B",
            "fills": 65536,
            **(PAGE_CACHE if self.defers else {}),
        }
        return cached(ram, store, keys)

    def lets_past(self, stream: Stream) -> Stream:
        """What of a stream is asked of the storage behind it: reads of pages that are not in it,
        and every write; where it defers writes, those at most."""
        seen = accesses(stream, PAGE)
        past = _core.let_past(
            self.policy, self.size // PAGE, seen.first, seen.writes, blocks=seen.count
        )
        of, page = past["request"], np.uint64(PAGE)
        start = np.maximum(stream.offset[of], past["key"] * page)
        end = np.minimum(
            stream.offset[of] + stream.length[of], (past["key"] + past["blocks"]) * page
        )
        return Stream(start, end - start, stream.writes[of])


def behind(ram: Ram | None, store: Store) -> Store:
    """A storage with RAM before it, if there is any."""
    return store if ram is None else ram.before(store)
