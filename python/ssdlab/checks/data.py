"""What was written: data that a drive or file system can shrink, or tell to be what it has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ssdlab.answer import Status
from ssdlab.checks.base import Probe, Symptom, of_jobs
from ssdlab.checks.facts import Facts, JobFacts

COMPRESSING = re.compile(
    r"sandforce|vertex[ -]?[23]|agility[ -]?[23]|corsair force (3|gt)|hyperx 3k|sh103s3|sv300s3"
    r"|ssdsc2c[tw]|ssdsc2bw|intel.*(330|335|520|530)|force gs|mushkin chronos",
    re.IGNORECASE,
)
"""Models with SandForce controllers, which compress (SF-1200 and SF-2000 families)."""
SHRINKING = frozenset({"zfs", "btrfs", "bcachefs", "f2fs", "squashfs"})
"""File systems that can compress or share equal blocks."""


def compresses(facts: Facts) -> bool | None:
    """Whether the drive is known to compress; None where nobody can tell."""
    if facts.rig is not None:
        return facts.rig.compresses
    return True if COMPRESSING.search(str(facts.drive.get("model", ""))) else None


def _data(facts: Facts) -> Iterator[Symptom]:
    for work in facts.works:
        if work.direction("write") is None:
            continue
        if work.known:
            yield from _of(facts, work)
        else:
            yield Symptom("unknown", f"{work.name}: what it writes is not recorded")


def _of(facts: Facts, work: JobFacts) -> Iterator[Symptom]:
    drive = compresses(facts)
    if facts.rig is not None and not drive:
        return  # such a drive cannot tell data apart
    status: Status = "bad" if drive or drive is None else "doubt"
    if work.flag("zero_buffers"):
        yield Symptom(status, f"{work.name} writes zeros (zero_buffers)")
    elif work.option("buffer_pattern"):
        yield Symptom(status, f"{work.name} writes one pattern (buffer_pattern)")
    elif (percent := _percent(work, "buffer_compress_percentage")) > 0:
        where = "this drive compresses" if drive else "drives and file systems may compress it"
        yield Symptom("doubt", f"{work.name} writes data that shrinks by {percent} %, and {where}")
    elif (percent := _percent(work, "dedupe_percentage")) > 0:
        yield Symptom(
            "doubt", f"{work.name} writes the same blocks again ({percent} %: dedupe_percentage)"
        )
    elif facts.rig is not None:
        yield Symptom("good", "what is written does not shrink")
    elif work.flag("refill_buffers"):
        yield Symptom("good", "fresh random data for each write (refill_buffers)")
    elif not work.flag("scramble_buffers", default=True):
        text = f"{work.name} writes the same buffers again and again (scramble_buffers=0)"
        yield Symptom("bad" if drive else "doubt", text)
    elif drive or _may_shrink(facts):
        yield Symptom(
            "doubt",
            f"{work.name} writes buffers that are alike but for some bytes (no refill_buffers)",
        )
    else:
        yield Symptom("good", "random buffers, changed a little for each write")


def _may_shrink(facts: Facts) -> bool:
    options = str((facts.surroundings.get("file_system") or {}).get("options", ""))
    return facts.file_system in SHRINKING or "compress" in options


def _percent(work: JobFacts, option: str) -> int:
    text = work.option(option).rstrip("%")
    return int(text) if text.isdigit() else 0


PROBES = (
    Probe(
        name="data",
        title="contents of the data",
        looks_for="written data that can be compressed or is written again and again "
        "(zero_buffers, buffer_pattern, buffer_compress_percentage, dedupe_percentage, "
        "no refill_buffers)",
        why="a drive that compresses, and many a file system and virtual disk, writes less than "
        "it is given then: the number is one of the data, not of the flash",
        look=of_jobs(_data),
    ),
)
