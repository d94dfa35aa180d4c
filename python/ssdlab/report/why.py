"""Why a simulated run came out as it did, in sentences: what `ssdlab explain` found."""

from __future__ import annotations

from collections.abc import Mapping

from ssdlab.analysis.attribution import Breakdown
from ssdlab.report.catalogue import Catalogue
from ssdlab.report.numbers import Numbers
from ssdlab.wear import Wear

WORTH = 0.05
"""Parts of the time below this share are not named."""
PARTS_MAX = 3
"""So many parts of the time are named at most."""
CAUSE_WORTH = 0.005
"""Causes that cost less per byte of the host are not named: they would be 0.00."""


def time(breakdown: Breakdown, words: Catalogue, numbers: Numbers) -> str:
    """The largest parts of the time, in a sentence; empty without any."""
    ranked = sorted(breakdown.shares.items(), key=lambda item: -item[1])
    named = [
        words("why.share", share=numbers.percent(share), part=words.phrase(part))
        for part, share in ranked[:PARTS_MAX]
        if share >= WORTH
    ]
    return words("why.shares", shares=words("list_comma").join(named)) if named else ""


def written(causes: Mapping[str, float], words: Catalogue, numbers: Numbers) -> str:
    """Write amplification by cause; empty without any."""
    named = [
        words("why.cause", units=numbers.wa(units), cause=words.purpose(cause))
        for cause, units in causes.items()
        if units >= CAUSE_WORTH
    ]
    wa = numbers.wa(sum(causes.values()))
    return words("why.causes", wa=wa, parts=words.names(named)) if named else ""


def wear(found: Wear, words: Catalogue, numbers: Numbers) -> list[str]:
    """How worn the flash is, and how long it lasts."""
    rated = numbers.plain(found.smart.rated_pe_cycles)
    out = [words("wear.used", used=numbers.percent(found.smart.used), rated=rated)]
    lasts = found.endurance
    if lasts is not None:
        key = "wear.lasts_cells" if found.cells_differ else "wear.lasts"
        out.append(
            words(
                key,
                wa=numbers.wa(lasts.write_amplification),
                cycles=rated,
                total=numbers.written(lasts.host_bytes),
                dwpd=numbers.count(lasts.dwpd_5_years),
                left=numbers.percent(lasts.host_bytes_left / lasts.host_bytes),
            )
        )
        if found.table:
            out.append(words("wear.table"))
    return out
