"""One SSD against two in RAID 0: Samsung 840 Pro at sequential, random and server loads."""

from __future__ import annotations

from collections.abc import Sequence

from ssdlab.answer import Figure, family
from ssdlab.arrays.attachment import attachment
from ssdlab.arrays.rigs import ArrayShape, array_rig, shipped
from ssdlab.arrays.workloads import WEB_SERVER
from ssdlab.experiments import measure
from ssdlab.experiments.base import Line, Reproduced, Runs, Task, experiment, job_file
from ssdlab.rig import reduced

SIZES = (128, 256, 512)
PAIRS = (128, 256)
DEPTHS = (1, 2, 4, 8, 16, 32)
CHIPSET = "intel-dmi2"
"""What all ports share; one drive alone stands behind it, too."""
STRIPE = 128 << 10
"""Bytes; the default of the chipset's RAID."""
PROFILES = {
    "database": "rw=randrw rwmixread=67 bs=8k",
    "webserver": f"rw=randread bssplit={WEB_SERVER}",
    "workstation": "rw=randrw rwmixread=80 bs=8k percentage_random=80",
}
ALIKE = 0.1
"""Rates within so much of each other count as alike."""
FLASH_WHY = (
    "the time to program a page is a guess in the profile: one simulated drive writes 365 MB/s "
    "where the datasheet says 520"
)
SPREAD_WHY = "the article says it in words; alike is taken as within 10 %"
WEB_WHY = "at depth 1 only requests larger than a stripe use both drives"
LINK_WHY = "the link's overhead and the drive's own limit are those of the profile"
WRITE_WHY = (
    "a simulated drive is held up by its flash from a few writes in flight on, and two of them are "
    "then twice as fast; the real one's buffer hides its flash"
)


def name_of(size: int, pair: bool) -> str:
    """What a device of the article is called here."""
    return f"2 x 840 Pro {size}" if pair else f"840 Pro {size}"


DEVICES = [*((s, False) for s in SIZES), *((s, True) for s in PAIRS)]


def job() -> str:
    """The job file: a quarter of the device is filled, and everything happens in there."""
    loads = {"seq-read": ("rw=read bs=1m", 8), "seq-write": ("rw=write bs=1m", 8)}
    for depth in DEPTHS:
        loads[f"read-{depth}"] = ("rw=randread bs=4k", depth)
        loads[f"write-{depth}"] = ("rw=randwrite bs=4k", depth)
    for name, options in PROFILES.items():
        loads |= {f"{name}-{depth}": (options, depth) for depth in DEPTHS}
    return job_file(
        "One drive or two in RAID 0: sequential, random at depths, and IOmeter's server loads.\n"
        "; Begin with a drive that has been securely erased.",
        "size=25% refill_buffers norandommap",
        {
            "fill": "rw=write bs=1m iodepth=8",
            **{
                name: f"{options} iodepth={depth} runtime=500ms ramp_time=100ms"
                for name, (options, depth) in loads.items()
            },
        },
    )


def plan(factor: int) -> list[Task]:
    """One run for each device."""
    tasks = []
    for size, pair in DEVICES:
        drive, name = f"samsung-840-pro-{size}", name_of(size, pair)
        shape = ArrayShape("0", 2 if pair else 1, STRIPE)
        rig = array_rig(shipped(drive), shape, attachment(CHIPSET))
        smaller, cost = reduced(drive, factor, fewest=128), 2.0 if pair else 1.0
        device = name if pair else drive
        tasks.append(Task(name.replace(" ", "-"), device, job(), smaller, cost=cost, rig=rig))
    return tasks


def judge(runs: Runs, factor: int) -> Reproduced:
    """The article's two numbers, and how often what it says in words holds."""
    results = {device: runs[name_of(*device).replace(" ", "-")] for device in DEVICES}
    rates = {device: measure.totals(result) for device, result in results.items()}
    mbps = {
        device: {name: rate / 1e6 for name, rate in measure.totals(result, "bw_bytes").items()}
        for device, result in results.items()
    }
    one, two, large = (256, False), (256, True), "840 Pro 512"
    pair, both = name_of(*two), (rates[one], rates[two])
    many = mbps[two]
    share, web = mbps[one]["seq-read"] / many["seq-read"], _ahead(*both, "webserver", DEPTHS)
    reads, writes = (_alike(*both, load, (1, 2, 4)) for load in ("read", "write"))
    beyond = _ahead(*both, "read", (8, 16, 32))
    as_fast = _alike(rates[512, False], rates[two], "database", (1, 2, 4, 8), 0.15)
    random = rates[512, False]["write-32"] / rates[128, True]["write-32"]
    ordered = mbps[512, False]["seq-write"] / mbps[128, True]["seq-write"]
    lines = [
        Line(pair, "sequential read (almost)", 1000.0, "MB/s", many["seq-read"], LINK_WHY),
        Line(pair, "sequential write (almost)", 1000.0, "MB/s", many["seq-write"], FLASH_WHY),
        Line(pair, "one drive / two, sequential read (a little over half)", 0.5, "", share),
        Line(pair, "random reads at depths 1-4: alike", 3.0, "of 3", reads, SPREAD_WHY),
        Line(pair, "random writes at depths 1-4: alike", 3.0, "of 3", writes, WRITE_WHY),
        Line(pair, "random reads beyond depth 4: the array ahead", 3.0, "of 3", beyond),
        Line(pair, "web server: the array ahead", 6.0, "of 6", web, WEB_WHY),
        Line(
            large, "database at depths 1-8: one 512 as fast as two 256", 4.0, "of 4", as_fast,
            WRITE_WHY,
        ),
        Line(large, "random writes at depth 32: one 512 / two 128 (above 1)", None, "", random),
        Line(large, "sequential writes: one 512 / two 128 (above 1)", None, "", ordered),
    ]  # fmt: skip
    return Reproduced(lines, _figures(rates), _remarks(rates))


def _alike(
    a: dict[str, float], b: dict[str, float], load: str, depths: Sequence[int], share: float = ALIKE
) -> float:
    return float(sum(abs(b[f"{load}-{d}"] / a[f"{load}-{d}"] - 1) <= share for d in depths))


def _ahead(a: dict[str, float], b: dict[str, float], load: str, depths: Sequence[int]) -> float:
    return float(sum(b[f"{load}-{d}"] > a[f"{load}-{d}"] for d in depths))


def _figures(rates: dict[tuple[int, bool], dict[str, float]]) -> list[Figure]:
    titles = {"read": "4 KiB random reads", "write": "4 KiB random writes"}
    titles |= {name: name.capitalize() for name in PROFILES}
    groups = dict.fromkeys(("read", "write"), "Against depth")
    figures = []
    for load, title in titles.items():
        curves = {name_of(*d): [own[f"{load}-{n}"] for n in DEPTHS] for d, own in rates.items()}
        group = groups.get(load, "IOmeter's loads")
        drawn = family(DEPTHS, curves)
        figures.append(Figure(title, "depth", "IOPS", drawn, log_x=True, group=group))
    return figures


def _remarks(rates: dict[tuple[int, bool], dict[str, float]]) -> list[str]:
    one, two = rates[256, False], rates[256, True]
    names = {"read": "random reads", "write": "random writes", "webserver": "web server"}
    said = [
        f"Two 256 against one, {names.get(load, load)}: "
        + ", ".join(f"depth {d} {two[f'{load}-{d}'] / one[f'{load}-{d}']:.2f}" for d in DEPTHS)
        + "."
        for load in ("read", "write", "webserver", "database", "workstation")
    ]
    said.append(
        "Not repeated: copies of files, access times, and starts of the system and of "
        "applications, which differ by a second at most."
    )
    return said


EXPERIMENT = experiment("raid0-840pro", plan, judge)
