"""Numbers and findings of traces in words."""

from __future__ import annotations

from typing import Any

from ssdlab import units


def remarks(found: dict[str, Any]) -> list[str]:
    """What is odd about a trace and how it was treated; each a sentence."""
    odd, total = found["oddities"], max(1, found["requests"])
    said = []
    if odd["damaged"]:
        said.append(
            f"{odd['damaged']:,} damaged lines or records are left out; "
            f"the first: {odd['first_damage']}."
        )
    if odd["duplicates"]:
        share = 100 * odd["duplicates"] / total
        what = "a recording may hold requests twice, so look before you trust its rates; "
        said.append(
            f"{odd['duplicates']:,} requests ({share:.1f} %) repeat the one before them within "
            f"{odd['duplicate_ns'] / 1e6:.0f} ms, same place, size and kind: "
            f"{what if share >= 1 else ''}they are kept."
        )
    if odd["backwards"]:
        said.append(
            f"{odd['backwards']:,} requests have a time before that of the one before them (by "
            f"{units.latency(odd['backwards_ns_max'])} at most); they take its time."
        )
    if odd["zero_length"]:
        said.append(f"{odd['zero_length']:,} requests without a byte are left out.")
    if odd["unaligned"]:
        said.append(
            f"{odd['unaligned']:,} requests ({100 * odd['unaligned'] / total:.1f} %) are not whole "
            "sectors of 512 bytes; a replay rounds them outwards."
        )
    if not found["has_times"]:
        said.append("There are no times in this trace: it can be replayed at a depth alone.")
    elif found["requests"] > 1 and found["seconds"] == 0:
        said.append("All requests have the same time.")
    if found["footprint"]["estimated_from_one_in"] > 1:
        said.append(
            "The trace touches so many blocks that footprint, working set and reuse are estimated "
            f"from one block in {found['footprint']['estimated_from_one_in']}, chosen by a hash."
        )
    return said
