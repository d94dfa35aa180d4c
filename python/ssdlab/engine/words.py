"""Numbers as plain sentences say them: three figures, the unit that suits."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """Three significant figures, thousands apart: 34,900; 9.81; 0.0123."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = 2 - math.floor(math.log10(abs(value)))
    rounded = round(value, digits)
    return f"{rounded:,.{max(0, digits)}f}" if abs(rounded) < 100 else f"{rounded:,.0f}"


def iops(value: float | None) -> str:
    """Operations per second."""
    if value is None:
        return "an unknown number of operations a second"
    return f"{number(value)} operations a second"


def speed(mbps: float | None) -> str:
    """10^6 bytes per second."""
    return "an unknown speed" if mbps is None else f"{number(mbps)} MB/s"


def latency(us: float | None) -> str:
    """A latency given in us, in the unit that suits."""
    if us is None:
        return "an unknown time"
    for limit, factor, unit in ((1e3, 1.0, "us"), (1e6, 1e3, "ms"), (math.inf, 1e6, "s")):
        if us < limit:
            return f"{number(us / factor)} {unit}"
    return f"{us} us"


def duration(seconds: float | None) -> str:
    """A stretch of time."""
    if seconds is None:
        return "an unknown time"
    for limit, factor, unit in ((120.0, 1.0, "s"), (7200.0, 60.0, "min"), (math.inf, 3600.0, "h")):
        if seconds < limit:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds} s"


def volume(count: float | None) -> str:
    """An amount of data, decimal as drives are sold."""
    if count is None:
        return "an unknown amount"
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= factor:
            return f"{number(count / factor)} {unit}"
    return f"{number(count)} B"


def times(value: float | None) -> str:
    """A factor."""
    return "an unknown number of times" if value is None else f"{number(value)} times"


def listed(parts: list[str]) -> str:
    """a, b and c."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def sentence(text: str) -> str:
    """With a capital at the begin and a full stop at the end."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
