"""Whether a simulated drive became what its rig asks for: flash comes in whole superblocks."""

from __future__ import annotations

from collections.abc import Iterator

from ssdlab.checks.base import Probe, Symptom, of_jobs
from ssdlab.checks.facts import Facts
from ssdlab.units import counted, percent, size_text

DIFFERS = 0.05
"""Write amplification goes about as the inverse of over-provisioning: from this share of it on the
difference is more than that between drives of a kind. Ours."""
DIFFERS_MUCH = 0.25
"""From this share on the number is one of another drive. Ours."""


def _built(facts: Facts) -> Iterator[Symptom]:
    for one in facts.built.values():
        asked, became = one["over_provisioning_asked"], one["over_provisioning"]
        off = abs(became / asked - 1)
        if off <= DIFFERS:
            yield Symptom("good", f"over-provisioning was built as asked for: {percent(became)}")
            continue
        superblocks = counted(one["superblocks"], "superblock")
        if size := one.get("superblock_bytes"):
            superblocks += f" of {size_text(size)}"
        yield Symptom(
            "bad" if off > DIFFERS_MUCH else "doubt",
            f"over-provisioning became {percent(became)} instead of {percent(asked)}, as the drive "
            f"has only {superblocks}; a larger capacity or fewer nand.pages_per_block come nearer, "
            "as does --scale",
        )


PROBES = (
    Probe(
        name="built",
        title="the drive as built",
        looks_for="over-provisioning of a simulated drive that whole superblocks made other than "
        "its rig asks for",
        why="write amplification and steady writes follow from it: the number is one of another "
        "drive",
        look=of_jobs(_built),
    ),
)
