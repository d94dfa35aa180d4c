"""The same disks and SSDs behind a RAID card that writes through its RAM: LSI's CacheCade."""

from __future__ import annotations

from ssdlab.arrays.attachment import attachment, without_ram
from ssdlab.experiments.base import Kind, Line, Reproduced, Runs, Task, experiment
from ssdlab.experiments.card_cache import (
    COLD_S,
    FRESH,
    LOADS,
    WARM_S,
    CardLoad,
    chart,
    drawn,
    task,
)  # fmt: skip
from ssdlab.experiments.measure import course

CARD = "lsi-9361-8i"
PRESET = "cachecade"
DRIVE = "CacheCade 2.0 on the 9361-8i"
WARM = {"write": 60_000.0, "read": 120_000.0, "mixed": 70_000.0}
KIND: dict[str, Kind] = {"write": "fitted", "read": "fitted"}
"""What is not a prediction."""
NAMES = {"write": "writes", "read": "reads", "mixed": "half reads, half writes"}
WHY = {
    "write": f"what the SSD's controller takes for a write was chosen by it: {FRESH}",
    "read": "what the card's firmware takes for a command that its cache sees was chosen by it",
    "mixed": "how reads pass writes within the SSD is assumed in its profile",
}


def plan(factor: int) -> list[Task]:
    """Three loads, and the writes without the cache. The card's RAM is set to write through."""
    card = without_ram(attachment(CARD))
    settings = [CardLoad(load, load, card, PRESET) for load in LOADS]
    settings.append(CardLoad("write-used", "write", card, PRESET, used=True))
    settings += [CardLoad(f"{load}-no-cache", load, card) for load in ("write", "read")]
    return [task(setting, DRIVE, factor) for setting in settings]


def judge(runs: Runs, factor: int) -> Reproduced:
    """The three numbers of the text, and what there was before the cache was warm."""
    found = {load: course(runs[load], load, factor) for load in LOADS}
    bare = {load: course(runs[f"{load}-no-cache"], load, factor) for load in ("write", "read")}
    used = course(runs["write-used"], "write", factor).last(WARM_S)
    lines = [
        Line(
            DRIVE, f"{NAMES[load]}, warm", WARM[load], "IOPS", one.last(WARM_S), WHY[load],
            KIND.get(load, "predicted"),
        )
        for load, one in found.items()
    ]  # fmt: skip
    lines.append(Line(DRIVE, "writes, warm, used SSDs", None, "IOPS", used))
    lines += [
        Line(DRIVE, f"{NAMES[load]}, cold", None, "IOPS", one.between(0, COLD_S))
        for load, one in found.items()
    ]
    lines += [
        Line(DRIVE, f"{NAMES[load]} without the cache, at last", None, "IOPS", one.last(WARM_S))
        for load, one in bare.items()
    ]
    curves = [drawn(one, NAMES[load], colour) for colour, (load, one) in enumerate(found.items())]
    curves += [
        drawn(one, f"{NAMES[load]} without the cache", colour, "dashed")
        for colour, (load, one) in enumerate(bare.items())
    ]
    ends = {float(one.time[-1]): WARM[load] for load, one in found.items()}
    figure = chart("From cold to warm", curves, ends)
    return Reproduced(lines, [figure], _remarks(found["write"].between(0, COLD_S), used))


def _remarks(first: float, used: float) -> list[str]:
    return [
        "There is no burst: the card's RAM is set to write through, and writes begin at "
        f"{first:,.0f} a second.",
        f"Warm writes are those of one of the mirrored SSDs: {FRESH}. With full and used ones "
        f"there are {used:,.0f} a second, as rated: the published 60,000 are those of fresh SSDs, "
        "the 40,000 of maxcache may be those of the same SSDs after some use.",
    ]


EXPERIMENT = experiment("cachecade", plan, judge)
