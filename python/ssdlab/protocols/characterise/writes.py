"""What the writes of ``characterise`` say: buffer, tPROG, SLC cache, spare area, collection."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ssdlab import units
from ssdlab.analysis import amplification, changepoints
from ssdlab.analysis.layout import LayoutFit
from ssdlab.answer import Cell
from ssdlab.engine.records import Records
from ssdlab.engine.setup import KIB, Setup, short
from ssdlab.engine.steps import in_round
from ssdlab.fits.conclusions import LINKED, Conclusion
from ssdlab.protocols.characterise import benchmarks
from ssdlab.protocols.characterise.reads import NO_LINK, Asked, Reads
from ssdlab.protocols.pts_common import keys_of

BUFFERED = 0.5
"""A write that takes less than this share of tR above the overhead of a command saw no flash."""
SLOWER = 1.15
"""Beyond the cliff of a buffer a byte takes so many times longer, at least."""
EVEN = 0.1
"""Two bursts whose bytes beyond the cliff differ by less are both drained at one rate."""
LAG = 0.7
"""Of what the flash programs in a tPROG, so much is in the buffer besides."""
RANDOM = "random"
"""A policy, the last of those that over-provisioning is reckoned by."""
SMALL = 64
"""Units of the smallest superblock that greedy collection is reckoned with."""
SPARE_OFF, DRIFTING_OFF = 0.06, 0.1
"""What closed forms of write amplification are off in over-provisioning, at a steady state and
before: of 55 random rigs 93 % lie inside then (75 % with 0.03)."""
ROOM = 0.15
"""So much of the writes after a rest must find room that was made in it."""
FOLDING = 1.3
"""A fill that programs so much for each byte folds its SLC cache on the way."""
HELD = 6
"""Of a fill, so many times the size of the buffer may go into it before the flash sets the pace."""
CACHED = 1.5
"""Writes into an SLC cache are so many times faster than past it, at least."""
PROGRAMS = 200.0, 2000.0
"""tPROG of any flash, us, at least and at most."""
STEPS = 8
"""Intervals of a fill below which no stages are looked for."""
PROTECTED = Asked("buffer kept over a power failure", "yes/no", "write_buffer.power_loss_protected")
WRITE_BUFFER = Asked("write buffer", "B", "write_buffer.size")
ORDERED = Asked("sequential writes", "MB/s")
PROGRAM = Asked("tPROG", "us", "nand.t_program")
SLC_PROGRAM = Asked("tPROG of the SLC cache", "us", "ftl.slc_cache.t_program")
SLC_CACHE = Asked("SLC cache", "B", "ftl.slc_cache.static_size")
INTO_SLC = Asked("writes into the SLC cache", "MB/s")
FOLDED = Asked("SLC cache folded when full", "yes/no")
EMPTIED = Asked("SLC cache emptied in a rest", "yes/no")
SUSPENDS = Asked("programs suspended for reads", "yes/no", "nand.suspend.program")
STEADY = Asked("steady random writes", "IOPS")
AMPLIFIED = Asked("write amplification", "x")
SPARE = Asked("over-provisioning", "x", "ftl.over_provisioning")
IDLE = Asked("collects in idle time", "yes/no")


@dataclass(frozen=True)
class Writes:
    """The writes of a run, with what its reads have told. Times in us, sizes in bytes."""

    records: Records
    setup: Setup
    reads: Reads

    def conclusions(self) -> list[Conclusion]:
        """All that writes tell."""
        return [
            self._buffer(),
            self._protected(),
            *self._program(),
            *self._slc(),
            self._suspends(),
            *self._collection(),
            self._idle(),
        ]

    # --- write latency

    @cached_property
    def lone(self) -> float | None:
        """Median latency of a lone 4 KiB write without its command's overhead."""
        found = self.records.value("p50", "flush/none", "write")
        if found is None or self.reads.link is None:
            return None
        over, byte = self.reads.link
        return found - over - 4 * KIB * byte

    @cached_property
    def buffered(self) -> bool | None:
        """Whether a write is done before it is in the flash."""
        if self.lone is None:
            return None
        sense = self.reads.best.sense_us if self.reads.best else 40.0
        return self.lone < BUFFERED * sense

    @cached_property
    def flushing(self) -> float | None:
        """Median time of a flush after a 4 KiB write, without overhead."""
        time = self.records.value("flush p50", "flush/each")
        if time is None or self.reads.link is None:
            return None
        return time - self.reads.link[0]

    @property
    def _waits(self) -> bool:
        """Whether a flush waits for the flash."""
        sense = self.reads.best.sense_us if self.reads.best else 40.0
        return self.flushing is not None and self.flushing > BUFFERED * sense

    def _protected(self) -> Conclusion:
        steps = ("flush/none", "flush/each")
        if self.buffered is None or self.flushing is None:
            if steps[1] in self.records and self.reads.link is None:
                return PROTECTED.unknown(NO_LINK, steps)
            return PROTECTED.unknown("writes with a flush after each were not measured")
        if not self.buffered:
            return PROTECTED.unknown("writes wait for the flash: no buffer", steps)
        how = (
            "a flush waits for the flash" if self._waits else "a flush takes no time, or is ignored"
        )
        return PROTECTED.so(not self._waits, how, steps)

    # --- buffer

    @cached_property
    def bursts(self) -> list[tuple[int, float]]:
        """Bytes and time of each burst."""
        found = []
        for size in benchmarks.bursts(self.setup):
            key = f"burst/{short(size)}"
            latency = self.records.latency(key, "write")
            if latency is not None and latency.mean_ns:
                found.append((size, latency.mean_ns / 1e3 * latency.ios))
        return found

    @cached_property
    def drain(self) -> tuple[int, float] | None:
        """From which burst on every byte waits for the flash, and how long that takes."""
        if len(self.bursts) < 4:
            return None
        fast = self.bursts[0][1] / self.bursts[0][0]
        pairs = itertools.pairwise(self.bursts)
        cost = [(y - x) / (b - a) for (a, x), (b, y) in pairs]
        for place, (one, other) in enumerate(itertools.pairwise(cost)):
            if one > SLOWER * fast and abs(other / one - 1) < EVEN:
                return place, (one + other) / 2
        return None

    def _buffer(self) -> Conclusion:
        steps = tuple(f"burst/{short(size)}" for size, _ in self.bursts)
        if len(self.bursts) < 4:
            return WRITE_BUFFER.unknown("no bursts were measured")
        if self.buffered is False:
            return WRITE_BUFFER.unknown("writes wait for the flash: none is seen", steps)
        if self.drain is None:
            last = units.binary(self.bursts[-1][0])
            why = (
                f"bursts of up to {last} have no cliff: the flash keeps up with one write at a time"
            )
            return WRITE_BUFFER.unknown(why, steps)
        if self._held is None:
            return WRITE_BUFFER.unknown("the cliff of the bursts is not clear", steps)
        value, off = self._held
        low, high = value * (1 - off), value * (1 + off)
        # Until the first program is over nothing has left, then what came meanwhile leaves at once;
        # a buffer that is emptied from a mark on has begun before.
        least, most = self._lag
        how = "the cliff of bursts after a rest"
        lag = LAG * math.sqrt(least * most)
        return WRITE_BUFFER.told(value + lag, low, high + most, how, steps)

    @property
    def _lag(self) -> tuple[float, float]:
        """Bytes that all dies program at once, where bursts go to: at least and at most."""
        assert self.drain is not None
        best, alone = self.reads.best, self._program_alone()
        if best is not None:
            whole = float(best.layout.unit * best.layout.dies)
            return whole, whole
        times = (alone.value, alone.value) if alone is not None and alone.value else PROGRAMS
        return times[0] / self.drain[1], times[1] / self.drain[1]

    @cached_property
    def _held(self) -> tuple[float, float] | None:
        """Bytes that were in the buffer when bursts ended, if programs took no time, and by what
        share that may be off."""
        if self.drain is None:
            return None
        place, slow = self.drain
        fast = self.bursts[0][1] / self.bursts[0][0]
        held = [
            size - time / slow
            for size, time in self.bursts[place : place + 3]
            if time > 1.02 * fast * size
        ]
        held = [one for one in held if one > 0]
        if not held:
            return None
        value = statistics.median(held)
        # The less the flash is behind the link, the less the cliff says of what it is made of.
        return value, max(0.05, 2 * (max(held) - min(held)) / value, 0.2 / (slow / fast - 1) - 0.03)

    # --- programming

    @cached_property
    def speeds(self) -> tuple[float | None, float | None, float | None]:
        """Of the fill: MB/s at which the flash took it for good, and of an SLC cache before that
        MB/s and bytes; without a cache the last two are None."""
        series = self.records.series("fill/write", "write")
        whole = self.records.mbps("fill/write")
        if series is None or len(series.mbps) < STEPS:
            return whole, None, None
        # The first of it is taken by the buffer.
        begin = int(series.written.searchsorted(HELD * (self._held[0] if self._held else 0.0)))
        speeds = series.mbps[begin:]
        end = changepoints.fall(changepoints.stages(speeds)) if len(speeds) >= STEPS else None
        if end is None:
            return (float(speeds.mean()) if len(speeds) else whole), None, None
        # What was still in the buffer then was not in the cache.
        size = float(series.written[begin + end - 1]) - (self._held[0] if self._held else 0.0)
        fast, after = float(speeds[:end].mean()), float(speeds[end:].mean())
        if self._may_be_the_buffer or fast <= CACHED * after:
            return after, None, None
        return after, fast, size

    @property
    def _may_be_the_buffer(self) -> bool:
        """Whether a buffer of unknown size may be what takes the first of a fill."""
        return not self.bursts and self.buffered is not False

    @property
    def cached(self) -> float | None:
        """Bytes of an SLC cache."""
        return self.speeds[2]

    def _program(self) -> list[Conclusion]:
        steps = ("fill/write",)
        speed = self.speeds[0]
        if not speed:
            return [asked.unknown("no fill was measured") for asked in (ORDERED, PROGRAM)]
        conclusions = [ORDERED.near(speed, 0.02, "the fill", steps)]
        alone = self._program_alone()
        if self.cached is not None:
            conclusions.append(alone if alone is not None else self._program_cache(steps))
            if self.folds is not False:
                why = "writes past the SLC cache, or folding it, cannot be told apart"
                if self.folds:
                    why = "the SLC cache is folded while the fill goes on"
                return [*conclusions, PROGRAM.unknown(why, steps)]
            return [*conclusions, self._program_together(speed, steps)]
        if self.folds:
            # All goes through a cache that the fill does not show by a fall of its speed.
            why = "what is written is folded out of an SLC cache while the fill goes on"
            own = [] if alone is None else [alone]
            return [*conclusions, *own, PROGRAM.unknown(why, steps)]
        return [*conclusions, alone if alone is not None else self._program_together(speed, steps)]

    @property
    def folds(self) -> bool | None:
        """Whether a full SLC cache is folded before more is written, by what the fill programmed;
        None where the drive does not count that."""
        waf = self.records.value("waf", "fill/write")
        return None if waf is None else waf > FOLDING

    def _program_alone(self) -> Conclusion | None:
        """tPROG by what a lone write or its flush takes; None where neither waits for the flash, or
        it is that of an SLC cache."""
        if self.reads.best is None:
            return None
        transfer = 4 * KIB * self.reads.best.byte_us
        time, step = (self.lone, "flush/none") if self.buffered is False else (None, "")
        if self.buffered and self._waits:
            time, step = self.flushing, "flush/each"
        if time is None:
            return None
        slc = self.cached is not None or bool(self.folds)
        how = "a lone write" if step == "flush/none" else "a flush after a lone write"
        return (SLC_PROGRAM if slc else PROGRAM).near(time - transfer, 0.03, how, (step,))

    def _program_together(self, speed: float, steps: tuple[str, ...]) -> Conclusion:
        """tPROG by the rate at which all dies program."""
        rate = f" ({units.speed(speed)})"
        times, why = self._times(speed, self.reads.layouts, "sequential writes", rate)
        if why:
            return PROGRAM.unknown(why, steps)
        how = "all dies programming: the fill, if they are never short of work"
        return PROGRAM.told(times[0], 0.9 * min(times), 1.02 * max(times), how, steps)

    def _program_cache(self, steps: tuple[str, ...]) -> Conclusion:
        """tPROG of an SLC cache by the rate at which all dies program into it."""
        times, why = self._times(self.speeds[1], self.reads.layouts[:1], "writes into the cache")
        if why:
            return SLC_PROGRAM.unknown(why, steps)
        how = "all dies programming: the fill until it became slower"
        return SLC_PROGRAM.told(times[0], 0.8 * times[0], 1.02 * times[0], how, steps)

    def _times(
        self, speed: float | None, layouts: Sequence[LayoutFit], what: str, rate: str = ""
    ) -> tuple[list[float], str]:
        """tPROG by each layout where all dies program at a speed (MB/s), or why none is told."""
        if not layouts or not speed:
            return [], "the number of dies is not known"
        wide = self.records.mbps("link/128k-qd32")
        if wide is not None and speed > LINKED * wide:
            return [], f"the link limits {what}{rate}"
        times = []
        for fit in layouts:
            each = fit.layout.unit * fit.layout.dies / speed
            transfer = fit.layout.unit * fit.byte_us
            if transfer * fit.layout.ways > LINKED * each:
                return [], f"the channels limit {what}"
            times.append(each if fit.layout.overlap else each - transfer)
        return times, ""

    # --- SLC cache

    def _slc(self) -> list[Conclusion]:
        steps = ("fill/write",)
        after, fast, size = self.speeds
        if not after:
            return [SLC_CACHE.unknown("no fill was measured")]
        if fast is None or size is None:
            if self._may_be_the_buffer:
                why = "no bursts were measured, which tell it from the write buffer"
                return [SLC_CACHE.unknown(why)]
            if self.folds:
                return [SLC_CACHE.unknown("it is folded while the fill goes on, and has no end")]
            why = "the fill has no lasting fall of its speed: none is seen"
            return [SLC_CACHE.unknown(why, steps)]
        how = "written until the fill became slower; static and dynamic parts together"
        conclusions = [
            SLC_CACHE.near(size, 0.1, how, steps),
            INTO_SLC.near(fast, 0.03, "the fill until then", steps),
        ]
        if self.folds is not None:
            how = f"WA of the fill: {self.records.value('waf', 'fill/write'):.3g}"
            conclusions.append(FOLDED.so(self.folds, how, steps))
        back = self.records.mbps("again/write")
        series = self.records.series("again/write", "write")
        if back is not None and series is not None:
            first = float(series.mbps[: max(1, len(series.mbps) // 8)].mean())
            free = first > (fast + after) / 2
            how = f"begins at {units.speed(first)} after a rest"
            conclusions.append(EMPTIED.so(free, how, ("again/write",)))
        return conclusions

    # --- reads behind writes

    def _suspends(self) -> Conclusion:
        steps = ("mix/both", "size/4k")
        tail = self.records.value("p99", "mix/both", "read", "reads")
        quiet = self.reads.mean("size/4k")
        times = [
            conclusion
            for conclusion in self._program()
            if conclusion.key == PROGRAM.key and conclusion.known
        ]
        if tail is None or quiet is None:
            return SUSPENDS.unknown("no reads beside writes were measured")
        if not times or times[0].value is None:
            return SUSPENDS.unknown("tPROG is not known to compare with", steps)
        waits = (tail - quiet) / times[0].value
        how = f"p99 of a read beside writes waits {waits:.2f} tPROG"
        if 0.3 < waits < 0.6:
            return SUSPENDS.unknown(how, steps)
        return SUSPENDS.so(waits <= 0.3, how, steps)

    # --- collection

    def _collection(self) -> list[Conclusion]:
        keys = keys_of(self.records, "steady", "steady")
        rate = self.records.cell("iops", keys)
        if rate.value is None:
            why = "no random writes to steady state were measured"
            return [asked.unknown(why) for asked in (STEADY, AMPLIFIED, SPARE)]
        record = self.records.rounds.get("steady")
        held = "" if record is not None and record.steady else "; not steady yet"
        how = f"random writes of 4 KiB, depth 32{held}"
        conclusions = [STEADY.near(rate.value, 0.03, how, tuple(keys))]
        waf = self.records.cell("waf", keys)
        if waf.value is None:
            return [*conclusions, *self._bounds(rate, tuple(keys))]
        how = f"the drive's counters{held}"
        conclusions.append(AMPLIFIED.near(waf.value, 0.03, how, tuple(keys)))
        return [*conclusions, self._spare(waf.value, tuple(keys), bool(held))]

    def _bounds(self, rate: Cell, keys: tuple[str, ...]) -> list[Conclusion]:
        """What throughputs alone tell where a drive does not count what it programs."""
        speed = self.speeds[0]
        why = "the drive does not count what it programs"
        if speed and rate.value:
            bound = speed * 1e6 / (rate.value * 4 * KIB)
            why += f"; sequential over random throughput, an upper bound: {bound:.3g}"
        return [asked.unknown(why, keys) for asked in (AMPLIFIED, SPARE)]

    def _spare(self, waf: float, keys: tuple[str, ...], drifting: bool) -> Conclusion:
        if self.buffered is False and self.reads.best and self.reads.best.layout.row > 4 * KIB:
            why = "without a buffer small writes fill pages partly, which counts as amplification"
            return SPARE.unknown(why, keys)
        if self.cached is not None:
            why = "an SLC cache takes a part of the writes, and folding it counts as amplification"
            return SPARE.unknown(why, keys)
        if self.reads.map_cache.known:
            why = "what the map writes counts as amplification too"
            return SPARE.unknown(why, keys)
        if waf <= 1.02:
            return SPARE.unknown(f"WA of {waf:.3g} is that of no collection", keys)
        found = self._spares(waf, 1.0)
        spares = list(found.values())[:-1]
        how = "WA of uniform writes, between greedy collection of small blocks and FIFO"
        after = self.records.value("waf", "trim/write")
        if after is not None and after > 1.02:
            # The same flash for three quarters of the data: so does only the policy that it has.
            again = self._spares(after, 1 - 1 / benchmarks.TRIMMED)
            apart = {policy: abs(math.log(found[policy] / again[policy])) for policy in found}
            spares += list(again.values())[:-1]
            if min(apart, key=lambda policy: apart[policy]) == RANDOM:
                spares = [found[RANDOM], again[RANDOM]]
                how = "WA of uniform writes, superblocks collected at random"
            how += f", and again after TRIM of a quarter (WA {after:.3g})"
        off = DRIFTING_OFF if drifting else SPARE_OFF
        low, high = min(spares) * (1 - off), max(spares) * (1 + off)
        return SPARE.told(math.sqrt(low * high), low, high, how, keys)

    def _spares(self, waf: float, share: float) -> dict[str, float]:
        """Over-provisioning of the whole range by policy, where WA is of a share of it."""
        # What replaces data in the buffer is never programmed.
        waf /= 1 - min(0.5, (self._buffer().value or 0.0) / (share * self.setup.active))
        spares = {
            "greedy": amplification.bisected(
                1e-4, 1e3, lambda op: waf - amplification.greedy(op, SMALL)
            ),
            "fifo": amplification.spare(waf),
            RANDOM: amplification.spare_random(waf),
        }
        return {policy: max(1e-4, (1 + op) * share - 1) for policy, op in spares.items()}

    def _idle(self) -> Conclusion:
        steps = ("idle/before", "idle/after")
        before, after = (self.records.iops(step) for step in steps)
        if before is None or after is None:
            return IDLE.unknown("no random writes after a rest were measured")
        if self.cached is not None:
            return IDLE.unknown("the SLC cache takes writes after a rest", steps)
        buffer = self._buffer().value or 0.0
        amount = self.setup.active / benchmarks.IDLE_SHARE
        room = amount * (1 - before / after) - buffer
        how = (
            f"of {units.binary(amount)} after a rest {units.binary(max(0.0, room))} were written "
            "at once, what the buffer took not counted"
        )
        told = self.buffered is False or 0 < buffer <= amount / 2
        if not told or room <= max(ROOM * amount, buffer / 2):
            return IDLE.unknown(f"{how}: too little to tell", steps)
        return IDLE.so(True, how, steps)


def round_keys(records: Records) -> list[str]:
    """All rounds of random writes that were measured."""
    keys = (in_round(number, "steady") for number in itertools.count(1))
    return list(itertools.takewhile(lambda key: key in records, keys))
