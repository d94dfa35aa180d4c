"""The numbers of ``units`` as the report of ordinary runs sets them, with thin spaces."""

from __future__ import annotations

import math
from collections.abc import Callable

from ssdlab import units
from ssdlab.report.catalogue import Catalogue
from ssdlab.units import THIN, for_page

__all__ = ["THIN", "Numbers"]
ROUND_MAX = 4096
"""A size of more quarter units than that is not a round one."""


class Numbers:
    """Formats numbers for pages, or with ``written=str`` for the terminal. NaN and None become a
    dash."""

    def __init__(self, words: Catalogue, written: Callable[[str], str] = for_page) -> None:
        self._words, self._written = words, written

    def plain(self, value: float | None, digits: int = 0) -> str:
        """A number with so many decimals."""
        known = value is not None and math.isfinite(value)
        return self._written(f"{value:,.{digits}f}" if known else units.DASH)

    def count(self, value: float | None) -> str:
        """A count or rate: whole from 100 on, three figures below, millions short."""
        if value is not None and math.isfinite(value) and abs(value) >= 1e6:
            return self._written(f"{value / 1e6:.3g}") + THIN + self._words("unit.million")
        return self._written(units.number(value))

    def latency(self, ns: float | None) -> str:
        """A time given in ns, in the unit that suits it."""
        return self._written(units.latency(ns))

    tick = latency

    def rate(self, bytes_per_s: float | None) -> str:
        """Throughput in decimal units."""
        return self._written(units.bytes_per_s(bytes_per_s))

    def size(self, size_bytes: float | None) -> str:
        """A size: binary units if it is a round number of them, else decimal."""
        for unit in (2**40, 2**30, 2**20, 2**10):
            size = size_bytes or 0
            if unit <= size < ROUND_MAX * unit and size * 4 % unit == 0:
                return self._written(units.binary(size))
        return self.written(size_bytes or None)

    def written(self, amount_bytes: float | None) -> str:
        """An amount of data written, in decimal units as endurance is given."""
        return self._written(units.number(amount_bytes, "B"))

    def percent(self, share: float | None) -> str:
        """A share as a percentage."""
        return self._written(units.percent(share))

    def times(self, factor: float | None) -> str:
        """A factor: two or three figures."""
        return self.plain(factor, 0 if not factor or factor >= 9.95 else 1 if factor >= 2 else 2)

    def wa(self, factor: float | None) -> str:
        """A write amplification: two decimals."""
        return self.plain(factor, 2)

    def seconds(self, value: float | None) -> str:
        """A length of time in seconds."""
        return self._written(units.duration(value))
