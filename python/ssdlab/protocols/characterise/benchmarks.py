"""The steps of ``characterise``: small benchmarks that each show one thing, the shortest first."""

from __future__ import annotations

import math
from collections.abc import Callable

from ssdlab import units
from ssdlab.engine.records import Records
from ssdlab.engine.setup import KIB, MIB, Setup, short
from ssdlab.engine.steps import Idle, Job, Purge, Rounds, Step, Then, Tracked, Trim, in_round
from ssdlab.errors import unknown_name

PARTS = {
    "link": "link and command overhead: reads of unwritten areas",
    "flush": "write latency and flush",
    "burst": "write buffer: bursts after a rest",
    "fill": "program bandwidth and SLC cache: one sequential fill",
    "range": "map cache: reads over growing ranges",
    "size": "tR, channels: lone reads by size",
    "stride": "dies and planes: reads at a stride",
    "depth": "reads by queue depth",
    "mix": "reads behind writes",
    "again": "SLC cache: writes after a rest",
    "steady": "garbage collection: random writes to steady state",
    "idle": "idle-time garbage collection: a rest, then random writes",
    "trim": "spare area: TRIM of a quarter, then random writes",
}
"""Benchmarks by the name that begins the keys of their steps, in order."""
READS = ("range", "size", "stride", "depth")
ON_PURPOSE = ("link", "flush", "burst", "range", "size", "stride", "fill", "again")
"""Those that read what was never written, or stay within a cache of the drive."""
LINK = (
    (4 * KIB, 1, 10_000),
    (128 * KIB, 1, 4_000),
    (4 * KIB, 256, 100_000),
    (128 * KIB, 32, 4_000),
)
"""Of reads of unwritten areas: size, depth, and how many for each second of a load."""
JOBS = 4
"""Of the same reads by several jobs, each with a processor of the host."""
LINK_PATIENCE = 5
"""Slow drives end them after so many times the time of a load."""
SIZES = tuple(4 * KIB << n for n in range(9))
"""Of lone reads: up to 1 MiB."""
STRIDES = tuple(8 * KIB << n for n in range(14))
"""Up to 64 MiB."""
DEPTHS = (1, 4, 16, 64, 256)
"""The first asks again what was asked first of all ranges, the whole one: has the drive changed?"""
RANGES = (256, 64, 16, 4, 1)
"""Of the range, one in so many."""
LEAST_RANGE = 16 * MIB
"""Of the least, more than the page registers of a small drive hold at once."""
NEAR = 1024 * MIB
"""Reads that are to find their entries of the map in RAM stay within so much, or within one in
`NEAR_SHARE` of a large drive, unless reads of less have shown that its entries are not there."""
NEAR_SHARE = 64
HELD_IN_TURNS = 2
MISSES = 1.1
"""Reads of a range that take so many times longer than of the smallest miss the map's cache."""
FEWEST = 32
"""So many reads at a stride, at least, until they begin anew."""
MANY = 64
"""In flight, but at most half of those, so that none finds its page just sensed."""
BURSTS = tuple(256 * KIB << n for n in range(11))
"""Up to 256 MiB, and an eighth of the range."""
STEADY_DEPTHS = (1, 8, 128)
MIX = 70
PIECE = 4
"""A piece of random writes is one in so many of the range."""
TRIMMED = 4
"""One in so many of the range is deallocated."""
IDLE_SHARE = 64
"""The burst after a rest is one in so many of the range."""
LONGEST = 100
"""Rounds of random writes at most."""


def parts_of(setup: Setup) -> list[str]:
    """The benchmarks that are asked for, in order; InputError for a name that is none."""
    if setup.text("gentle") == "yes":
        return list(READS)
    names = [one.strip() for one in setup.text("parts").split(",") if one.strip()]
    for name in names:
        if name not in PARTS and name != "all":
            raise unknown_name("benchmark of characterise", name, PARTS)
    # On a file, what was never written is answered by the file system and not by the drive.
    known = [part for part in PARTS if setup.kind != "file" or part != "link"]
    return known if "all" in names else [one for one in known if one in names]


def plan(setup: Setup) -> list[Step]:
    """All benchmarks that are asked for; what they need to find on the drive is brought there."""
    parts = parts_of(setup)
    steps: list[Step] = []
    writes = [part for part in parts if part not in READS and part != "link"]
    if "link" in parts:
        steps += [Purge("link/purge"), *link(setup)]
    # Each finds an SLC cache empty.
    steps += [Purge("flush/purge"), *flush(setup)] if "flush" in parts else []
    steps += [Purge("burst/purge"), *burst(setup)] if "burst" in parts else []
    if setup.text("gentle") != "yes" and set(parts) - {"link", "flush", "burst"}:
        steps += [Purge("fill/purge"), fill(setup), Idle("fill/rest", "rest", seconds=_rest(setup))]
    for name in READS:
        steps += _READS[name](setup) if name in parts else []
    for name in writes:
        steps += _WRITES[name](setup) if name in _WRITES else []
    return steps


def near(setup: Setup, records: Records) -> int:
    """Bytes from the start of the range in which reads find their entries of the map in RAM, as far
    as reads over growing ranges have told."""
    # The end of a fill may still lie in a fast cache.
    half = max(MIB, setup.active // 2 // MIB * MIB)
    most = min(half, max(NEAR, setup.active // NEAR_SHARE // MIB * MIB))
    places = ranges(setup).items()
    times = [(size, records.value("mean", f"range/{one}", "read")) for one, size in places]
    known = [(size, time) for size, time in times if time is not None]
    if not known:
        return most
    least = min(time for _, time in known)
    hit = [size for size, time in known if time <= MISSES * least]
    missed = any(size not in hit for size, _ in known)
    # What just holds a range that is read at random holds nothing of it that is read in turns: the
    # entries that were used longest ago are those that are needed next.
    return min(most, max(hit) // HELD_IN_TURNS) if missed else most


def strides(setup: Setup, near_bytes: int | None = None) -> list[int]:
    """Those that come round often enough within so many bytes."""
    most = setup.active if near_bytes is None else near_bytes
    return [one for one in STRIDES if one * FEWEST <= most]


def bursts(setup: Setup) -> list[int]:
    """Bytes of each burst."""
    return [one for one in BURSTS if one <= setup.active // 8]


def sizes(setup: Setup) -> list[int]:
    """Of lone reads."""
    return [one for one in SIZES if one >= setup.block]


def ranges(setup: Setup) -> dict[int, int]:
    """Bytes of growing ranges, by the share of the whole that they are."""
    found: dict[int, int] = {}
    for share in RANGES:
        size = min(setup.active, max(LEAST_RANGE, setup.active // share // MIB * MIB))
        if size not in found.values():
            found[share] = size
    return found


def _rest(setup: Setup) -> float:
    return setup.seconds(setup.number("rest_s"))


def link(setup: Setup) -> list[Step]:
    """Reads of what was never written: no flash is touched."""
    # Bounded by amounts, since a simulated drive may answer them in no time at all.
    seconds = setup.seconds(setup.number("seconds"))

    def reads(bs: int, depth: int, rate: int, jobs: int = 1) -> Job:
        of = f" of each of {jobs} jobs" if jobs > 1 else ""
        return setup.timed(
            f"link/{short(bs)}-qd{depth}" + f"x{jobs}" * (jobs > 1),
            f"unwritten: reads of {units.binary(bs)}, depth {depth}{of}",
            "randread",
            bs,
            depth=depth,
            threads=jobs,
            amount=bs * max(depth, round(seconds * rate)),
            options={"runtime": f"{round(LINK_PATIENCE * 1000 * seconds)}ms"},
        )

    bs, depth, rate = LINK[2]
    several = reads(bs, depth // JOBS, rate // JOBS, JOBS)
    return [*(reads(*one) for one in LINK), several]


def flush(setup: Setup) -> list[Step]:
    """Lone writes, without and with a flush after each."""
    return [
        setup.timed(
            "flush/none", "random writes of 4 KiB, depth 1", "randwrite", "4k", amount=MIB // 4
        ),
        Idle("flush/rest", "rest", seconds=_rest(setup)),
        setup.timed(
            "flush/each", "the same, a flush after each", "randwrite", "4k", options={"fsync": 1}
        ),
    ]


def burst(setup: Setup) -> list[Step]:
    """Bursts of growing length, each after a rest."""
    found: list[Step] = []
    for size in bursts(setup):
        found += [
            Idle(f"burst/rest-{short(size)}", "rest", seconds=_rest(setup)),
            setup.timed(
                f"burst/{short(size)}",
                f"a burst of {units.binary(size)}",
                "write",
                "128k",
                depth=1,
                amount=size,
            ),
        ]
    return found


def fill(setup: Setup) -> Job:
    """The range in order, as fast as the drive takes it."""
    return setup.job("fill/write", "write the range sequentially", "write", "128k", depth=32)


def size(setup: Setup) -> list[Step]:
    """Lone reads of growing size."""

    def jobs(region: int) -> list[Step]:
        return [
            setup.timed(
                f"size/{short(one)}",
                f"reads of {units.binary(one)}, depth 1",
                "randread",
                one,
                region=(0, region),
            )
            for one in sizes(setup)
        ]

    return _near(setup, "size/near", jobs)


def stride(setup: Setup) -> list[Step]:
    """Many reads of 4 KiB at a stride, and pairs of them."""

    def jobs(region: int) -> list[Step]:
        return [
            setup.timed(
                f"stride/{name}-{short(one)}",
                f"reads of 4 KiB every {units.binary(one)}, depth {min(most, region // one // 2)}",
                f"read:{one - 4 * KIB}",
                "4k",
                depth=min(most, region // one // 2),
                region=(0, region),
            )
            for name, most in (("many", MANY), ("pair", 2))
            for one in strides(setup, region)
        ]

    return _near(setup, "stride/near", jobs)


def _near(setup: Setup, key: str, jobs: Callable[[int], list[Step]]) -> list[Step]:
    """Jobs within what the map has at hand, which is known when they begin."""
    nothing = Records(load=lambda name: (_ for _ in ()).throw(KeyError(name)))
    return [Then(key, lambda records: jobs(near(setup, records)), jobs(near(setup, nothing)))]


def depth(setup: Setup) -> list[Step]:
    """Random reads of 4 KiB, and sequential ones, by depth."""
    found: list[Step] = [
        setup.timed(f"depth/{one}", f"random reads, depth {one}", "randread", "4k", depth=one)
        for one in DEPTHS
    ]
    return [*found, setup.timed("depth/seq", "sequential reads", "read", "128k", depth=32)]


def range_(setup: Setup) -> list[Step]:
    """Lone reads over growing ranges."""
    return [
        setup.timed(
            f"range/{share}",
            f"reads of 4 KiB in {units.binary(size)}",
            "randread",
            "4k",
            region=(0, size),
        )
        for share, size in ranges(setup).items()
    ]


def mix(setup: Setup) -> list[Step]:
    """Lone reads while the flash programs."""
    half = setup.active // 2 // MIB * MIB
    reads = setup.timed("mix/reads", "", "randread", "4k", region=(half, half), name="reads")
    writes = setup.timed(
        "mix/writes", "", "write", "128k", depth=4, region=(0, half), name="writes"
    )
    return [setup.together("mix/both", "lone reads beside sequential writes", [reads, writes])]


def again(setup: Setup) -> list[Step]:
    """Writes after a rest."""
    return [
        Idle("again/rest", "rest", seconds=10 * _rest(setup)),
        setup.timed("again/write", "sequential writes after a rest", "write", "128k", depth=32),
    ]


def steady(setup: Setup) -> list[Step]:
    """Random writes until they are steady, then other loads in that state."""

    def jobs(number: int) -> list[Job]:
        return [random_writes(setup, in_round(number, "steady"), setup.active // PIECE)]

    tracked = (
        Tracked.of("random writes", "iops", "steady"),
        Tracked("write amplification", "x", _waf),
    )
    most = min(LONGEST, math.ceil(PIECE * setup.number("writes")))
    most = min(most, setup.rounds) if setup.quick else most
    loads = [
        setup.timed(f"steady/write-qd{one}", f"random writes, depth {one}", "randwrite", "4k",
                    depth=one)
        for one in STEADY_DEPTHS
    ]  # fmt: skip
    return [
        Rounds("steady", "random writes of 4 KiB, depth 32", jobs, tracked, most=most),
        *loads,
        setup.timed(
            f"steady/mix-{MIX}",
            f"{MIX} % random reads, depth 32",
            "randrw",
            "4k",
            depth=32,
            read_percent=MIX,
        ),
        # Reads would wait for what the flash still does for the writes: emptying an SLC cache.
        Idle("steady/rest", "rest", seconds=10 * _rest(setup)),
        setup.timed("steady/read-qd1", "random reads, depth 1", "randread", "4k"),
        setup.timed("steady/read-qd32", "random reads, depth 32", "randread", "4k", depth=32),
    ]


def _waf(records: Records, number: int) -> float:
    """Of a round; the same for all where the drive does not count, so that only its speed tells."""
    return records.value("waf", in_round(number, "steady")) or 1.0


def random_writes(setup: Setup, key: str, amount: int, region: int | None = None) -> Job:
    """Random writes of 4 KiB at depth 32."""
    return setup.timed(
        key,
        f"random writes of {units.binary(amount)}",
        "randwrite",
        "4k",
        depth=32,
        amount=max(MIB, amount),
        region=None if region is None else (0, region),
        options=setup.patience,
    )


def idle(setup: Setup) -> list[Step]:
    """The same burst of random writes right after others, and after a rest."""
    burst_bytes = setup.active // IDLE_SHARE
    return [
        random_writes(setup, "idle/settle", setup.active // PIECE),
        random_writes(setup, "idle/before", burst_bytes),
        Idle("idle/rest", "rest", seconds=10 * _rest(setup)),
        random_writes(setup, "idle/after", burst_bytes),
    ]


def trim(setup: Setup) -> list[Step]:
    """A quarter deallocated, the rest written on."""
    kept = setup.active - setup.active // TRIMMED // MIB * MIB
    return [
        Trim("trim/trim", "TRIM a quarter of the range", kept, setup.active - kept),
        random_writes(setup, "trim/settle", 3 * kept // 2, kept),
        random_writes(setup, "trim/write", kept, kept),
    ]


_READS = {"size": size, "stride": stride, "depth": depth, "range": range_}
_WRITES = {"mix": mix, "again": again, "steady": steady, "idle": idle, "trim": trim}
