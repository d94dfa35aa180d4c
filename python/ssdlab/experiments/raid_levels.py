"""RAID 0, 10, 5 and 6 of eight disks and of eight SSDs on one controller."""

from __future__ import annotations

from ssdlab.answer import by_name
from ssdlab.arrays.attachment import attachment, with_ram, without_ram
from ssdlab.arrays.performance import Performance
from ssdlab.arrays.rigs import ArrayShape, array_rig, shipped
from ssdlab.experiments.base import Line, Reproduced, Runs, Task, experiment, job_file
from ssdlab.rig import capacity_of, reduced

MEMBERS = 8
STRIP = 256 << 10
DEPTH = 256
LEVELS = ("0", "10", "5", "6")
SSD = "intel-330-120"
"""Stands for the Intel 520 of 180 GB, for which there is no profile: the same controller (SF-2281)
and the same generation of flash."""
SSDS = f"8 x {SSD}"
DISK = "seagate-savvio-10k5-300"
"""A 10 000 rpm SAS disk of 300 GB; which one the article had is not known."""
DISKS = f"8 x {DISK}"
KINDS = {"disk": DISKS, "ssd": SSDS}
LOADS = {"read": "rw=randread bs=4k", "write": "rw=randwrite bs=4k"}
ORDERED = {"read-1m": "rw=read bs=1m", "write-1m": "rw=write bs=1m"}
VOLUME = 50e9
DISK_S, SSD_S = 20, 1
"""Seconds of a measurement."""
RAID6_WRITE = 15_320.0
SEVERAL = (20.0, 40.0)
"""Times that SSDs are faster in random work."""
CARD = "intel-rs25db080"
RAM = 1 << 30
"""Bytes of the card's RAM; made smaller with the SSDs."""
RAM_RAMP_S = 10
"""Seconds before a measurement with RAM, in which it fills as fast as the card's cores let it."""
CONTROLLER = (
    "what the card's firmware takes for a command of the host and for each of a member was fitted "
    "to its writes through an SSD cache (raid-levels-cached); of RAID 0, and reads of any level, "
    "go past it as fast as is told of cards with this chip"
)
WITH_RAM = (
    "the article does not say how the card's RAM was set: here write-back, measured when it is "
    "full; it sorts writes by address, which flash does not reward"
)
RANGE = "the article gives no numbers of disks; the seeks of ours are those of its class"


def job(load: str, options: str, percent: int | None, ramp: int = 0) -> str:
    """The job file; SSDs are written once in ``percent`` of their room first, of disks nothing
    depends on it."""
    size, seconds = (f"{VOLUME:.0f}", DISK_S) if percent is None else (f"{percent}%", SSD_S)
    measured = f"{options} iodepth={DEPTH} norandommap runtime={seconds}"
    return job_file(
        "I/O in a volume of 50 GB. Begin with drives that have been securely erased.",
        f"size={size}",
        {
            **({} if percent is None else {"fill": "rw=write bs=1m iodepth=8"}),
            load: measured + (f" ramp_time={ramp}" if ramp else ""),
        },
    )


def plan(factor: int) -> list[Task]:
    """Both kinds of members, four levels, random and in order; RAID 6 with RAM, too."""
    tasks = []
    card = attachment(CARD)
    for level in LEVELS:
        shape = ArrayShape(level, MEMBERS, STRIP)
        percent = max(1, round(100 * VOLUME / (shape.usable_share * MEMBERS * capacity_of(SSD))))
        for load, options in (LOADS | ORDERED).items():
            settings = [("", without_ram(card), without_ram(card), 0)]
            if (level, load) == ("6", "write"):
                smaller_ram = with_ram(card, RAM // factor)
                settings.append(("-ram", with_ram(card, RAM), smaller_ram, RAM_RAMP_S))
            for suffix, above_disks, above_ssds, ramp in settings:
                key, disks = f"{level}-{load}{suffix}", job(load, options, None, ramp)
                rig = array_rig(shipped(DISK), shape, above_disks)
                tasks.append(Task(f"disk-{key}", DISKS, disks, cost=0.2, rig=rig))
                ssds = job(load, options, percent, ramp)
                rig = array_rig(shipped(SSD), shape, above_ssds)
                smaller = reduced(SSD, factor, fewest=128)
                tasks.append(Task(f"ssd-{key}", SSDS, ssds, smaller, rig=rig))
    return tasks


def judge(runs: Runs, factor: int) -> Reproduced:
    """The two numbers of the text, and every level."""
    found = {key: Performance.of(result).iops for key, result in runs.items()}
    ram, many = found["ssd-6-write-ram"], f"{RANGE}; {CONTROLLER}"
    per_disk = ram / found["disk-6-write-ram"]
    writes, cached = "RAID 6, 4 KiB random writes", "RAID 6, 4 KiB random writes, RAM of the card"
    lines = [
        Line(SSDS, writes, RAID6_WRITE, "IOPS", found["ssd-6-write"], CONTROLLER),
        Line(SSDS, cached, RAID6_WRITE, "IOPS", ram, WITH_RAM),
        Line(
            SSDS, "RAID 6, writes with RAM: SSDs / disks", None, "", per_disk,
            f"{RANGE}; {WITH_RAM}", "bound", *SEVERAL,
        ),
    ]  # fmt: skip
    for level in ("0", "6"):
        for load in LOADS:
            ratio = found[f"ssd-{level}-{load}"] / found[f"disk-{level}-{load}"]
            lines.append(
                Line(
                    SSDS, f"RAID {level}, {load}s: SSDs / disks", None, "", ratio, many,
                    "bound", *SEVERAL,
                )
            )  # fmt: skip
    for level in LEVELS[1:]:
        ratio = found[f"disk-{level}-read"] / found["disk-0-read"]
        lines.append(Line(DISKS, f"random reads, RAID {level} / RAID 0", 1.0, "", ratio))
    each = [(kind, level) for kind in KINDS for level in LEVELS]
    lines += [
        Line(
            KINDS[kind], f"RAID {level}, random {load}s", None, "IOPS",
            found[f"{kind}-{level}-{load}"],
        )
        for kind, level in each for load in LOADS
    ]  # fmt: skip
    lines += [
        Line(
            KINDS[kind], f"RAID {level}, {load.partition('-')[0]}s of 1 MiB", None, "MB/s",
            found[f"{kind}-{level}-{load}"] * 2**20 / 1e6,
        )
        for kind, level in each for load in ORDERED
    ]  # fmt: skip
    names = [f"RAID {level}" for level in LEVELS]
    figures = [
        by_name(
            title, "IOPS", names,
            {f"random {x}s": [found[f"{kind}-{level}-{x}"] for level in LEVELS] for x in LOADS},
            group="Random I/O at depth 256",
        )
        for kind, title in KINDS.items()
    ]  # fmt: skip
    return Reproduced(lines, figures, _remarks(found))


def _remarks(found: dict[str, float]) -> list[str]:
    said = []
    for kind, name in (("disk", "disks"), ("ssd", "SSDs")):
        base = found[f"{kind}-0-write"]
        parts = ", ".join(
            f"RAID {level} {base / found[f'{kind}-{level}-write']:.2f}" for level in LEVELS[1:]
        )
        said.append(
            f"How many times slower than in RAID 0 {name} write at random: {parts}. By the "
            "commands that a small write takes: RAID 10 2, RAID 5 4, RAID 6 6"
            + ("; RAID 0 alone goes past the card's firmware." if kind == "ssd" else ".")
        )
    said.append(
        "In a volume of 50 GB the heads of eight disks of 300 GB move over a few percent of their "
        "way, and each disk sorts the commands that wait for it. The article's measurements with "
        "an SSD cache before the array are repeated in raid-levels-cached."
    )
    return said


EXPERIMENT = experiment("raid-levels", plan, judge)
