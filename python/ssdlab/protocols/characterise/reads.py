"""What the reads of ``characterise`` say: link, controller, flash, and the map's cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ssdlab import units
from ssdlab.analysis import layout
from ssdlab.engine.records import Records
from ssdlab.engine.setup import KIB, MIB, Setup, short
from ssdlab.fits.conclusions import PLANES, ROW, Conclusion
from ssdlab.protocols.characterise import benchmarks

NOISE = 0.005
"""Relative, of a mean latency at least."""
SPREAD = 1.15
"""Ranges whose reads take so many times longer miss the map's cache."""
HELD = 0.1
"""A range is held where reads of it take no more of what reads of the widest take longer."""
ENTRY = 4
"""Bytes of an entry of the map; it stands for 4 KiB."""
SEVERAL = "link/4k-qd64x4"
MORE = 1.1
"""Several jobs do so many times more than one where the host holds that one."""
SHARED = 0.03
"""A rate so near to another limit is set by that one."""


@dataclass(frozen=True)
class Asked:
    """What is asked of a drive; unit and key as in :class:`Conclusion`."""

    name: str
    unit: str
    key: str = ""

    def told(
        self, value: float, low: float, high: float, how: str, steps: tuple[str, ...]
    ) -> Conclusion:
        """A value with its interval."""
        return Conclusion(self.name, value, low, high, self.unit, self.key, how, steps)

    def near(self, value: float, share: float, how: str, steps: tuple[str, ...]) -> Conclusion:
        """A value known within a share of it."""
        return self.told(value, value * (1 - share), value * (1 + share), how, steps)

    def so(self, said: bool, how: str, steps: tuple[str, ...]) -> Conclusion:
        """Yes or no."""
        return self.near(float(said), 0.0, how, steps)

    def unknown(self, why: str, steps: tuple[str, ...] = ()) -> Conclusion:
        """What could not be told, and why."""
        return Conclusion(self.name, None, None, None, self.unit, self.key, why, steps)


OVERHEAD = Asked("command overhead", "us")
LATENCY = Asked("latency of host and link", "us", "latency")
CONTROLLER = Asked("controller, per command", "us", "controller.command_time")
LINK = Asked("link bandwidth", "MB/s", "bandwidth")
HOST = Asked("host processor, per I/O of a job", "us", "host_time")
NO_LINK = "the overhead of a command is not known, so the time in the flash is not either"
MAP_CACHE = Asked("map cache", "B", "ftl.map.cache")
FLASH: Mapping[Asked, Callable[[layout.LayoutFit], float]] = {
    Asked("tR", "us", "nand.t_read"): lambda fit: fit.sense_us,
    Asked("flash channel", "MT/s", "nand.transfer_mts"): lambda fit: 1 / fit.byte_us,
    Asked(ROW, "B"): lambda fit: fit.layout.row,
    Asked("in a row on a die", "B"): lambda fit: fit.layout.unit,
    Asked("channels", "", "nand.channels"): lambda fit: fit.layout.channels,
    Asked("dies", ""): lambda fit: fit.layout.dies,
    Asked("dies of a channel", "", "nand.ways"): lambda fit: fit.layout.ways,
    Asked(PLANES, ""): lambda fit: fit.layout.planes,
    Asked("senses while it transfers", "yes/no", "nand.cache_operations"): (
        lambda fit: fit.layout.overlap
    ),
    Asked("page register", "yes/no", "nand.page_register"): lambda fit: fit.layout.register,
}
"""Of the flash, with what a layout that explains the reads says of it."""


@dataclass(frozen=True)
class Reads:
    """The reads of a run. Times in us, sizes in bytes."""

    records: Records
    setup: Setup

    def mean(self, key: str) -> float | None:
        """Mean latency of a step's reads."""
        return self.records.value("mean", key, "read")

    @cached_property
    def link(self) -> tuple[float, float] | None:
        """Time of a command without data and of each byte, from reads of unwritten areas."""
        small, large = (self.mean(f"link/{bs}-qd1") for bs in ("4k", "128k"))
        if small is None or large is None:
            return None
        byte = max(0.0, (large - small) / (124 * KIB))
        return small - 4 * KIB * byte, byte

    @cached_property
    def ceiling(self) -> float | None:
        """Commands a second that link and controller can do."""
        key = "link/4k-qd256"
        # A simulated drive may need no time at all for them.
        return self.records.iops(key) or (math.inf if key in self.records else None)

    @cached_property
    def singles(self) -> Mapping[int, float]:
        """Time that lone reads spend in the flash, by size."""
        if self.link is None:
            return {}
        over, byte = self.link
        found = {size: self.mean(f"size/{short(size)}") for size in benchmarks.sizes(self.setup)}
        times = {one: t - over - one * byte for one, t in found.items() if t is not None}
        return {one: t for one, t in times.items() if t > 0}

    @cached_property
    def strides(self) -> Mapping[int, float]:
        """Reads a second at a stride, many in flight."""
        keys = {stride: f"stride/many-{short(stride)}" for stride in benchmarks.strides(self.setup)}
        return {one: rate for one, key in keys.items() if (rate := self.records.iops(key))}

    @cached_property
    def layouts(self) -> list[layout.LayoutFit]:
        """The layouts of the flash that explain all that."""
        if not self.singles or not self.strides or not self.ceiling:
            return []
        random, sequential = self.records.iops("depth/256"), self.records.mbps("depth/seq")
        if sequential is not None:
            sequential *= 1e6
        region = benchmarks.near(self.setup, self.records)
        return layout.explain(self.singles, self.strides, self.ceiling, random, sequential, region)

    @cached_property
    def best(self) -> layout.LayoutFit | None:
        """The likeliest of them."""
        return self.layouts[0] if self.layouts else None

    def conclusions(self) -> list[Conclusion]:
        """All that reads tell."""
        return [*self._link(), *self._flash(), self.map_cache]

    def _link(self) -> list[Conclusion]:
        steps = ("link/4k-qd1", "link/128k-qd1")
        if self.link is None:
            why = (
                "reads of unwritten areas of a file do not reach the drive"
                if self.setup.kind == "file"
                else "no reads of unwritten areas were measured"
            )
            return [asked.unknown(why) for asked in (OVERHEAD, LATENCY, CONTROLLER, LINK)]
        over, _ = self.link
        how = "an unwritten 4 KiB read less the time of its bytes"
        conclusions = [OVERHEAD.near(over, 0.01, how, steps)]
        many, large = "link/4k-qd256", "link/128k-qd32"
        top, wide = self.records.mbps(many), self.records.mbps(large)
        if wide is not None:
            how = "unwritten 128 KiB reads, depth 32"
            conclusions.append(LINK.near(wide, 0.01, how, (large,)))
        if self.ceiling == math.inf:
            return [*conclusions, CONTROLLER.unknown("unwritten areas are read in no time at all")]
        if top is None or wide is None or self.ceiling is None:
            why = "no reads with many in flight were measured"
            return [*conclusions, CONTROLLER.unknown(why)]
        each = 1e6 / self.ceiling
        if top >= (1 - SHARED) * wide:
            why = f"the link's bandwidth limits 4 KiB reads: at most {each:.3g} us"
            conclusions.append(CONTROLLER.unknown(why))
            if over > each:
                how = "command overhead less what the controller takes of it at most, or nothing"
                middle = over - each / 2
                conclusions.append(LATENCY.told(middle, over - each, over, how, (*steps, many)))
            return conclusions
        how = "as one pipeline: IOPS of unwritten 4 KiB reads, depth 256"
        together = self.records.iops(SEVERAL)
        if together and together > MORE * self.ceiling:
            more = f"{together / self.ceiling:.3g} times as many unwritten reads as one"
            conclusions.append(HOST.near(each, 0.02, f"several jobs do {more}", (many, SEVERAL)))
            over, each, how = over - each, 1e6 / together, f"{how}, of several jobs"
        elif together:
            why = f"several jobs do no more than one: less than {each:.3g} us"
            conclusions.append(HOST.unknown(why, (many, SEVERAL)))
        conclusions.append(CONTROLLER.near(each, 0.02, how, (many,)))
        rest = over - each
        if rest > 0:
            share, how = (
                max(0.02, 0.02 * each / rest),
                "command overhead less the controller's part",
            )
            conclusions.append(LATENCY.near(rest, share, how, (*steps, many)))
        return conclusions

    def _flash(self) -> list[Conclusion]:
        steps = tuple(key for key in self.records if key.startswith(("link/", "size/", "stride/")))
        if self.best is None:
            why = self._why_no_layout()
            return [asked.unknown(why) for asked in FLASH]
        how = (
            f"{len(self.singles)} sizes and {len(self.strides)} strides, "
            f"deviation {100 * self.best.deviation:.1f} %"
        )
        off = max(NOISE, 2 * self.best.deviation)
        conclusions = []
        for asked, of in FLASH.items():
            every = [float(of(fit)) for fit in self.layouts]
            low, high = min(every), max(every)
            if asked.unit == "yes/no" and low != high:
                conclusions.append(asked.unknown("reads do not tell", steps))
                continue
            if asked.unit in ("us", "MT/s"):
                low, high = low * (1 - off), high * (1 + off)
            conclusions.append(asked.told(every[0], low, high, how, steps))
        return conclusions

    def _why_no_layout(self) -> str:
        if self.link is None:
            return NO_LINK
        if not self.singles or not self.strides:
            return "lone reads by size and reads at a stride are needed"
        return "no regular layout of dies and channels explains the reads"

    @cached_property
    def map_cache(self) -> Conclusion:
        """RAM for entries of the map, where some of them are not there."""
        steps = tuple(f"range/{share}" for share in benchmarks.ranges(self.setup))
        times = {
            size: found
            for share, size in benchmarks.ranges(self.setup).items()
            if (found := self.mean(f"range/{share}")) is not None
        }
        if not times:
            return MAP_CACHE.unknown("no reads over growing ranges were measured")
        if len(times) < 3:
            why = f"{units.binary(self.setup.active)} hold too few growing ranges to tell"
            return MAP_CACHE.unknown(why, steps)
        least, most = min(times.values()), max(times.values())
        widest = max(times)
        if times[widest] < SPREAD * least:
            why = (
                f"reads of {units.binary(widest)} take no longer than of less: all entries at hand"
            )
            return MAP_CACHE.unknown(why, steps)
        missing = [one for one, time in times.items() if time > least + HELD * (most - least)]
        first = min(missing)
        fits = (1 - HELD) * max((time for time in times if time < first), default=MIB)
        # Of the range R a share cover / R hits; the time of a miss follows from the two widest, or
        # is that of one more read of the flash.
        (r1, t1), (r2, t2) = sorted(times.items())[-2:]
        miss = (r2 * t2 - r1 * t1) / (r2 - r1)
        if r1 < first:
            flash = self.best
            miss = least + flash.sense_us + 4 * KIB * flash.byte_us if flash else 0.0
        ends = [fits, float(first)]
        cover = math.sqrt(fits * first)
        if miss > least:
            cover = min(max(r2 * (miss - t2) / (miss - least), fits), first)
            ends = [max(fits, 0.85 * cover), min(first, 1.15 * cover)]
        value, low, high = (one / (4 * KIB) * ENTRY for one in (cover, *ends))
        how = "from the range on at which reads take longer, at 4 B for 4 KiB"
        return MAP_CACHE.told(value, low, high, how, steps)
