"""Where data written in order lies on a drive's flash, from how fast reads of it are.

Two kinds of reads tell: single ones of growing size (bytes on one channel follow one another, those
on several do not), and many at a stride (those on one die add up, those on several do not).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

READ = 4096
"""Bytes of the reads at a stride."""
PLACES = 48
"""Places at which a single read of a size is tried."""
READS = 960
"""Reads at a stride that are followed at most: a multiple of usual numbers of dies."""
KIB = 1024
UNITS = tuple(KIB * n for n in (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384))
CHANNELS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
WAYS = (1, 2, 3, 4, 5, 6, 8, 16)
PLANES = (1, 2, 4)
ROWS = (1, 2, 3, 4)
WITHIN = 0.05
"""Root mean square of the relative deviation up to which a layout explains what was measured."""
ALIKE = 1.5
"""Layouts that deviate by so many times the best one's are not told apart from it..."""
EQUAL = 0.004
"""...nor those that deviate by so much more."""


EVENLY = (0.4, 1.05)
"""What random reads reach of what they could if they met all servers evenly."""


@dataclass(frozen=True)
class FlashLayout:
    """Flash as reads see it: units go to the channels in turn, then to the dies of each."""

    unit: int
    """Bytes in a row on one die."""
    channels: int
    ways: int
    """Dies of a channel."""
    planes: int = 1
    """Planes of a die that read by themselves; 1 where a die senses as one."""
    rows: int = 1
    """Parts of a unit that are sensed one after another; each is a page of every plane."""
    overlap: bool = False
    """Whether a page crosses the channel while the next is sensed."""
    register: bool = False
    """Whether reads of what has just been sensed are not sensed anew."""

    @property
    def dies(self) -> int:
        """All of them."""
        return self.channels * self.ways

    @property
    def row(self) -> int:
        """Bytes that a die senses at once."""
        return self.unit // self.rows


@dataclass(frozen=True)
class LayoutFit:
    """A layout with the times that make it fit best, and how far it is off."""

    layout: FlashLayout
    sense_us: float
    """tR."""
    byte_us: float
    """Time of a byte on a channel."""
    deviation: float
    """Root mean square, relative."""


@cache
def _busiest(unit: int, channels: int, row: int, size: int) -> tuple[float, float]:
    """Of a read: the rows of the die that has most of them, and the bytes of the channel that
    carries most; means over where it may lie."""
    start = np.arange(PLACES)[:, None] * size
    parts = (start + np.arange(0, size, READ)[None, :]).astype(np.int64)
    channel = parts // unit % channels
    carried = np.stack([(channel == one).sum(axis=1) for one in range(channels)]).max(axis=0)
    first = np.diff(parts // row, axis=1, prepend=-1) != 0
    unit_of = parts // unit
    unit_of -= unit_of[:, :1]
    most = unit_of.max() + 1
    sensed = np.stack([(first & (unit_of == one)).sum(axis=1) for one in range(most)]).max(axis=0)
    return float(sensed.mean()), float(carried.mean()) * min(READ, size)


def _most(where: npt.NDArray[np.int64]) -> float:
    """Share of the reads that the busiest server has."""
    return float(np.bincount(where).max()) / len(where)


@cache
def _shares(layout: FlashLayout, stride: int, reads: int) -> tuple[float, float]:
    """Shares of so many reads at a stride on the busiest sensing server and the busiest channel."""
    at = np.arange(reads, dtype=np.int64) * stride
    unit = at // layout.unit
    die = unit % layout.dies
    page = layout.row // layout.planes
    plane = at // page % layout.planes
    return _most(die * layout.planes + plane), _most(unit % layout.channels)


def explain(
    singles: Mapping[int, float],
    strides: Mapping[int, float],
    ceiling: float,
    random: float | None = None,
    sequential: float | None = None,
    region: int | None = None,
) -> list[LayoutFit]:
    """The layouts that explain what was measured about as well as any, the best first; none where
    none does.

    Args:
        singles: Time in the flash of lone reads, us, by size in bytes.
        strides: Reads of `READ` bytes per second with many in flight, by stride in bytes.
        ceiling: What link and controller can do, reads per second.
        random: Random reads of `READ` bytes per second with very many in flight, where known.
        sequential: Bytes per second of large sequential reads, where known.
        region: Bytes after which reads at a stride begin anew; never unless given.
    """
    fits = [
        fit
        for fit in _explained(singles, strides, ceiling, region)
        if (random is None or EVENLY[0] <= random / limit(fit, 0, ceiling) <= EVENLY[1])
        and (
            sequential is None or sequential <= EVENLY[1] * 1e6 * fit.layout.channels / fit.byte_us
        )
    ]
    fits.sort(key=lambda fit: (fit.deviation, fit.layout.planes, fit.layout.rows, fit.layout.dies))
    most = max(ALIKE * fits[0].deviation, fits[0].deviation + EQUAL) if fits else 0.0
    alike = [fit for fit in fits if fit.deviation <= most]
    # Of those alike the simplest stands first.
    alike.sort(
        key=lambda fit: (fit.layout.register, fit.layout.planes * fit.layout.rows, fit.deviation)
    )
    return alike


def _explained(
    singles: Mapping[int, float],
    strides: Mapping[int, float],
    ceiling: float,
    region: int | None,
) -> list[LayoutFit]:
    fits = []
    for unit, channels, ways, rows in itertools.product(UNITS, CHANNELS, WAYS, ROWS):
        if unit % (rows * READ):
            continue
        alone = _alone(FlashLayout(unit, channels, ways, rows=rows), singles)
        if alone is None or alone.deviation > WITHIN:
            continue
        for planes, *kinds in itertools.product(PLANES, (False, True), (False, True)):
            layout = replace(alone.layout, planes=planes, overlap=kinds[0], register=kinds[1])
            if layout.row // planes < READ:
                continue
            fit = _together(replace(alone, layout=layout), len(singles), strides, ceiling, region)
            if fit is not None and fit.deviation <= WITHIN:
                fits.append(fit)
    return fits


def _alone(layout: FlashLayout, singles: Mapping[int, float]) -> LayoutFit | None:
    """The times by which a layout explains lone reads best."""
    # What comes to a die twice waits for it, which is another thing.
    most = layout.unit * (layout.dies if layout.rows == 1 else layout.channels)
    sizes = [size for size in singles if size <= most]
    if len(sizes) < 2:
        return None
    times = np.array([singles[size] for size in sizes])
    shape = (layout.unit, layout.channels, layout.row)
    columns = np.array([_busiest(*shape, size) for size in sizes])
    weighted, *_ = np.linalg.lstsq(columns / times[:, None], np.ones(len(sizes)), rcond=None)
    sense, byte = map(float, weighted)
    if sense <= 0 or byte <= 0:
        return None
    off = np.log(columns @ weighted / times)
    return LayoutFit(layout, sense, byte, float(np.sqrt((off**2).mean())))


def _together(
    fit: LayoutFit,
    count: int,
    strides: Mapping[int, float],
    ceiling: float,
    region: int | None,
) -> LayoutFit | None:
    """With the reads at a stride; None where they are too few, or too near to each other."""
    if len(strides) < 3 or max(strides) < fit.layout.unit * fit.layout.dies:
        return None
    square = count * fit.deviation**2
    for stride, rate in strides.items():
        square += math.log(limit(fit, stride, ceiling, region) / rate) ** 2
    return replace(fit, deviation=math.sqrt(square / (count + len(strides))))


def limit(fit: LayoutFit, stride: int, ceiling: float, region: int | None = None) -> float:
    """Reads a second at a stride that begin anew after `region` bytes; at one of 0 those that meet
    all planes evenly."""
    layout, transfer = fit.layout, READ * fit.byte_us
    plain = replace(layout, overlap=False, register=False)
    busiest, channel = 1 / (layout.dies * layout.planes), 1 / layout.channels
    if stride:
        # A round of few reads does not meet dies evenly whose number does not divide it.
        reads = READS if region is None else min(READS, -(-region // stride))
        busiest, channel = _shares(plain, stride, reads)
    shared = max(1.0, layout.row / stride) if layout.register and stride else 1.0
    sense = fit.sense_us / shared
    each = max(sense, transfer) if layout.overlap else sense + transfer
    return min(1e6 / (busiest * each), 1e6 / (channel * transfer), ceiling)
