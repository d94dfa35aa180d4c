"""Numbers as people read them: three figures, a unit, thin spaces."""

from __future__ import annotations

import math

from ssdlab.report.catalogue import Catalogue

THIN = "\u202f"
"""Narrow no-break space: between thousands, and before units."""

_TIMES = ((1e9, "unit.s"), (1e6, "unit.ms"), (1e3, "unit.us"), (1.0, "unit.ns"))
_RATES = ((1e9, "unit.gb_s"), (1e6, "unit.mb_s"), (1e3, "unit.kb_s"), (1.0, "unit.b_s"))
_BINARY = ((2**40, "unit.tib"), (2**30, "unit.gib"), (2**20, "unit.mib"), (2**10, "unit.kib"))
_DECIMAL = (
    (10**15, "unit.pb"),
    (10**12, "unit.tb"),
    (10**9, "unit.gb"),
    (10**6, "unit.mb"),
    (10**3, "unit.kb"),
)
ROUND_MAX = 4096
"""A size of more quarter units than that is not a round one."""


class Numbers:
    """Formats numbers in one language. NaN and None become a dash."""

    def __init__(self, words: Catalogue) -> None:
        self._words = words

    def plain(self, value: float | None, digits: int = 0) -> str:
        """A number with thin spaces between thousands, from five digits on."""
        if value is None or not math.isfinite(value):
            return self._words("none")
        text = f"{value:.{digits}f}"
        whole, _, fraction = text.partition(".")
        if len(whole.lstrip("-")) > 4:
            whole = f"{int(whole):,}".replace(",", THIN)
        return whole + (self._words("decimal_point") + fraction if fraction else "")

    def count(self, value: float | None) -> str:
        """A count or rate: whole from 100 on, three figures below, millions short."""
        if value is None or not math.isfinite(value):
            return self._words("none")
        if abs(value) >= 1e6:
            return f"{self._figures(value / 1e6)}{THIN}{self._words('unit.million')}"
        return (
            self.plain(value) if abs(value) >= 100 or value == int(value) else self._figures(value)
        )

    def latency(self, ns: float | None) -> str:
        """A time given in ns, in the unit that suits it."""
        return self._scaled(ns, _TIMES)

    def rate(self, bytes_per_s: float | None) -> str:
        """Throughput in decimal units."""
        return self._scaled(bytes_per_s, _RATES)

    def size(self, size_bytes: float | None) -> str:
        """A size: binary units if it is a round number of them, else decimal."""
        if not size_bytes:
            return self._words("none")
        for unit, key in _BINARY:
            if unit <= size_bytes < ROUND_MAX * unit and size_bytes * 4 % unit == 0:
                digits = 0 if size_bytes % unit == 0 else 2
                return f"{self.plain(size_bytes / unit, digits)}{THIN}{self._words(key)}"
        return self._scaled(size_bytes, (*_DECIMAL, (1, "unit.b")))

    def written(self, amount_bytes: float | None) -> str:
        """An amount of data written, in decimal units as endurance is given."""
        return self._scaled(amount_bytes, (*_DECIMAL, (1, "unit.b")))

    def percent(self, share: float | None) -> str:
        """A share as a percentage."""
        if share is None or not math.isfinite(share):
            return self._words("none")
        percent = 100 * share
        digits = 0 if abs(percent) >= 10 or percent == 0 else 1 if abs(percent) >= 1 else 2
        return f"{self.plain(percent, digits)}{THIN}%"

    def times(self, factor: float | None) -> str:
        """A factor: two or three figures."""
        if factor is None or not math.isfinite(factor):
            return self._words("none")
        return self.plain(factor, 0 if factor >= 9.95 else 1 if factor >= 1.995 else 2)

    def wa(self, factor: float | None) -> str:
        """A write amplification: two decimals."""
        return self.plain(factor, 2)

    def tick(self, ns: float) -> str:
        """A round time in ns, as short as can be."""
        for unit, key in _TIMES:
            if ns >= unit:
                return (
                    f"{self.plain(ns / unit, 0 if ns % unit == 0 else 1)}{THIN}{self._words(key)}"
                )
        return f"{ns:g}{THIN}{self._words('unit.ns')}"

    def seconds(self, value: float | None) -> str:
        """A length of time in seconds; in hours from three hours on."""
        if value is None or not math.isfinite(value):
            return self._words("none")
        if value >= 10800:
            return f"{self.plain(value / 3600, 1)}{THIN}{self._words('unit.h')}"
        digits = 0 if value >= 10 or value == round(value) else 1
        return f"{self.plain(value, digits)}{THIN}{self._words('unit.s')}"

    def _scaled(self, value: float | None, units: tuple[tuple[float, str], ...]) -> str:
        if value is None or not math.isfinite(value):
            return self._words("none")
        for unit, key in units:
            if abs(value) >= unit * 0.9995:  # 999.5 rounds up to 1000
                return f"{self._figures(value / unit)}{THIN}{self._words(key)}"
        return f"{self._figures(value)}{THIN}{self._words(units[-1][1])}"

    def _figures(self, value: float) -> str:
        """Three significant figures, or all whole ones."""
        if value == 0:
            return "0"
        rounded = abs(float(f"{value:.2e}"))
        digits = max(0, 2 - math.floor(math.log10(rounded) + 1e-9))
        return self.plain(value, min(digits, 3))
