"""Disks, fast disks, SSDs, and disks behind a cache: what each does and what it costs."""

from __future__ import annotations

from ssdlab import _core
from ssdlab.answer import Curve, Figure
from ssdlab.arrays.attachment import ram_bytes, with_ram, without_ram
from ssdlab.arrays.performance import Performance
from ssdlab.experiments.base import Kind, Line, Reproduced, Runs, Task, experiment
from ssdlab.jobfile import JobText
from ssdlab.plan.prices import prices
from ssdlab.plan.storage import loads
from ssdlab.plan.storage.candidates import Candidate, candidate
from ssdlab.plan.storage.loads import HotSet, Timing

POOL = "raid1:2:hgst-he10-10000"
CACHE = "raid1:2:micron-5200-eco-960"
ROWS = {
    "disks": (POOL, 500.0, 250.0, 1.0),
    "fast-disks": ("raid10:12:seagate-enterprise-10k8-1800", 5_000.0, 2_500.0, 6.0),
    "ssds": ("raid10:12:samsung-pm883-1920", 800_000.0, 400_000.0, 24.0),
    "maxcache": (f"{POOL} + maxcache:{CACHE} @ adaptec-3152-8i", 90_000.0, 40_000.0, 2.5),
    "cachecade": (f"{POOL} + cachecade:{CACHE} @ lsi-9361-8i", 120_000.0, 60_000.0, 3.0),
}
"""Candidate, then as published: random reads and writes a second, price by that of the first."""
DEPTH = 256
HOT = HotSet(loads.HOT_BYTES)
DISK_SPAN, FLASH_SPAN = Timing(20.0, 4.0), Timing(0.5, 0.1)
HOT_TIMES_FACTOR = 400 << 30
"""The hot set of SSDs and caches is simulated at this divided by the factor."""
HOT_SETS = 20
"""A cache is simulated as one of so many hot sets: 10 % of it are dirty before it is emptied."""
HOT_SHARE = 8
FACTOR_MIN = 100
COVERED = 3
KINDS = ("read", "write")
ROUND = "the article gives round figures of a class of drives, not a measurement"
WHY_SSDS = (
    f"{ROUND}; which drives and which card is not stated. Ours are rated 98 000 reads a second "
    "each, and no card is in their way"
)
WHY_CARD = (
    "the card takes 10 us for each I/O, as long as for a write of the burst that fills its RAM"
)
WHY_CACHE = (
    "the article measured with two Intel S4600 of 240 GB; the 960 GB drives here (Micron 5200 ECO) "
    "begin fresh and see a hundredth of their room, so that nothing is collected"
)
WHY_WRITES_CARD = (
    f"{WHY_CACHE}; a write takes the card's processor twice, into its RAM and out of it"
)
WHY_LSI = "as many as the card's firmware looks up in its cache, which was fitted to as many"
WHY_PRICE = "prices.toml holds assumed street prices, not those of the article"
WHY_PRICE_SSDS = (
    f"{WHY_PRICE}, and theirs were about 1 200 each by this ratio: drives for many more writes, or "
    "of an earlier year"
)
WHY = {
    **dict.fromkeys(("disks-read", "disks-write"), ROUND),
    **dict.fromkeys(("ssds-read", "ssds-write"), WHY_SSDS),
    "maxcache-read": WHY_CARD,
    "maxcache-write": WHY_WRITES_CARD,
    "cachecade-read": WHY_LSI,
    "cachecade-write": WHY_CACHE,
}
KIND: dict[str, Kind] = {"cachecade-read": "consequence"}
"""What is not a prediction."""


def plan(factor: int) -> list[Task]:
    """Reads and writes of each row."""
    tasks = []
    factor = max(factor, FACTOR_MIN)
    for key, (text, *_) in ROWS.items():
        one = candidate(text)
        for kind in KINDS:
            rig, job = _cached(one, kind, factor) if one.fast else _plain(one, kind, factor)
            slow = one.pool.has_disk
            cost = 3.0 if one.fast else 0.2 if slow else 4.0
            state = None if slow else "sequential"
            tasks.append(Task(f"{key}-{kind}", text, job.text, cost=cost, rig=rig, prepare=state))
    rig, start = _rig(candidate(POOL)), HotSet(HOT.bytes, spread=False)
    job = loads.random_job("read", "randread", start, _capacity(rig), DEPTH, DISK_SPAN)
    tasks.append(Task("disks-beginning", POOL, job.text, rig=rig, cost=0.2))
    return tasks


def _plain(one: Candidate, kind: str, factor: int) -> tuple[str, JobText]:
    """SSDs are made smaller, and written until what is collected is what always will be."""
    size = None if one.pool.has_disk else one.pool.drive_bytes // factor
    rig = _rig(one, size)
    capacity = _capacity(rig)
    if one.pool.has_disk:
        return rig, loads.random_job(kind, f"rand{kind}", HOT, capacity, DEPTH, DISK_SPAN)
    hot = HotSet(min(HOT.bytes, HOT_TIMES_FACTOR // factor, capacity // HOT_SHARE))
    job = loads.random_job(kind, f"rand{kind}", hot, capacity, DEPTH, FLASH_SPAN)
    if kind == "write":
        count = int(0.35 * capacity + hot.bytes) // loads.BLOCK
        job = loads.following(loads.writes_job("age", hot, capacity, DEPTH, count), job)
    return rig, job


def _cached(one: Candidate, kind: str, factor: int) -> tuple[str, JobText]:
    """The hot set is read (and written) until the cache holds all of it; then it is measured."""
    assert one.fast is not None
    hot = HotSet(min(HOT.bytes, HOT_TIMES_FACTOR // factor))
    shrink = HOT.bytes / hot.bytes
    size = min(one.fast.drive_bytes / shrink, float(HOT_SETS * hot.bytes))
    rig = _rig(one, int(size), shrink)
    whole = _capacity(rig)
    most = COVERED * hot.bytes // loads.BLOCK
    job = loads.covering_job("warm", "randread", hot, whole, DEPTH, times=COVERED, most=most)
    if kind == "write":
        wrote = loads.covering_job(
            "rewrite", "randwrite", hot, whole, DEPTH, times=COVERED, most=most
        )
        job = loads.following(job, wrote)
    measured = loads.random_job(kind, f"rand{kind}", hot, whole, DEPTH, FLASH_SPAN)
    return rig, loads.following(job, measured)


def _capacity(rig: str) -> int:
    """Bytes of what is built, in which the stripes of an array are whole."""
    return _core.Rig(rig, rig_name="candidate").capacity_bytes


def _rig(one: Candidate, ssd_bytes: int | None = None, shrink: float = 1.0) -> str:
    card = one.card
    if one.keys.get("preset") == "cachecade":
        card = without_ram(card)  # it ran with the card's own RAM set to write-through
    elif ram_bytes(card):
        card = with_ram(card, int(ram_bytes(card) / shrink) // loads.BLOCK * loads.BLOCK)
    return one.tree([part.resized(ssd_bytes) for part in one.stores], card).to_toml()


def judge(runs: Runs, factor: int) -> Reproduced:
    """Every number of the table."""
    found = {key: Performance.of(result).iops for key, result in runs.items()}
    lines = []
    for key, (text, *published, _) in ROWS.items():
        for kind, value in zip(KINDS, published, strict=True):
            name = f"{key}-{kind}"
            quantity = f"4 KiB random {kind}s"
            why, is_a = WHY.get(name, ""), KIND.get(name, "predicted")
            lines.append(Line(text, quantity, value, "IOPS", found[name], why, is_a))
    cost = prices()
    bills = {key: cost.of(candidate(text).bill) or 0.0 for key, (text, *_) in ROWS.items()}
    ratios = {key: bill / (bills["disks"] or 1.0) for key, bill in bills.items()}
    for key, (text, *_, relative) in ROWS.items():
        if key != "disks":
            reason = WHY_PRICE_SSDS if key == "ssds" else WHY_PRICE
            lines.append(Line(text, "relative price", relative, "", ratios[key], reason))
    first = "4 KiB random reads of the first 20 million sectors"
    lines.append(Line(POOL, first, None, "IOPS", found["disks-beginning"]))
    return Reproduced(lines, _figures(found, ratios), _remarks(found))


def _figures(found: dict[str, float], ratios: dict[str, float]) -> list[Figure]:
    figures = []
    rows = ROWS.values()
    for kind, rates in (("read", [row[1] for row in rows]), ("write", [row[2] for row in rows])):
        curves = [Curve("published", [row[3] for row in rows], rates, "published")]
        for colour, key in enumerate(ROWS):
            curves.append(Curve(key, [ratios[key]], [found[f"{key}-{kind}"]], "dots", colour))
        figures.append(
            Figure(
                f"Random {kind}s against price", "price, two large disks = 1", "IOPS", curves,
                log_x=True, log_y=True, group="What money buys",
            )
        )  # fmt: skip
    return figures


def _remarks(found: dict[str, float]) -> list[str]:
    disks, fast = found["disks-read"], found["fast-disks-read"]
    warm, ssds = found["maxcache-read"], found["ssds-read"]
    return [
        f"Two large disks behind a warm cache read {warm / fast:.0f} times as fast as twelve fast "
        f"disks, and {warm / ssds:.2f} times as fast as twelve SSDs; before the cache is warm, as "
        "fast as the two disks.",
        "The 20 million sectors lie in 25 pieces all over the disks, so that the heads go the ways "
        f"that they go in use. In the first 20 million sectors alone the disks read "
        f"{found['disks-beginning'] / disks:.1f} times as fast, since the heads hardly move.",
    ]


EXPERIMENT = experiment("price-table", plan, judge)
