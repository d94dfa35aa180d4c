"""``ssdlab.plan_cache`` and ``ssdlab.plan_storage``: what to buy, and which cache to add."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ssdlab import _core, units
from ssdlab.api.report import Report
from ssdlab.api.rig import Drive, named_or_rigs
from ssdlab.api.traces import reading
from ssdlab.api.watching import Watch
from ssdlab.api.working import working
from ssdlab.arrays.grid import state_for
from ssdlab.arrays.workloads import workload as named_load
from ssdlab.errors import InputError, known_name
from ssdlab.given import Many, Size, large, listed, several, share, size
from ssdlab.jobfile import read_job
from ssdlab.output import check_rigs, prove, write_rigs
from ssdlab.plan.cache import CachePlanner
from ssdlab.plan.candidates import THRESHOLD_MAX
from ssdlab.plan.prices import prices as read_prices
from ssdlab.plan.ram import PAGE, RAM_MAX, Ram
from ssdlab.plan.rounds import simulated
from ssdlab.plan.rows import GOALS, Rules
from ssdlab.plan.storage.candidates import DEFAULTS, Candidate
from ssdlab.plan.storage.candidates import candidate as candidate_of
from ssdlab.plan.storage.loads import DEPTH, HOT_BYTES, WRITES_PER_DAY, HotSet
from ssdlab.plan.storage.measure import TableLoads
from ssdlab.plan.storage.needs import Needs
from ssdlab.plan.storage.own import OwnLoad
from ssdlab.plan.storage.planner import WHOLE, StoragePlanner
from ssdlab.plan.stores import MODES, RAM_MODES, store
from ssdlab.studies.caches import timed_policies
from ssdlab.target import Sim
from ssdlab.tracefile import FITS, existing

QUICK: dict[str, Any] = {
    "top": 4,
    "passes": 2,
    "policies": ("lru",),
    "thresholds": (1,),
    "blocks": (64 << 10,),
}
"""What --quick leaves of the defaults."""
CANDIDATES_MAX = 26


def plan_cache(
    *,
    pool: Drive,
    cache: Drive | Sequence[Drive],
    trace: str | Path | None = None,
    job: str | Path | None = None,
    sizes: Many | None = None,
    blocks: Many | None = None,
    thresholds: Many | None = None,
    policies: str | Sequence[str] | None = None,
    modes: str | Sequence[str] | None = None,
    preset: str | Sequence[str] | None = None,
    goal: str = "iops",
    accept_loss: bool = False,
    years: float = 5.0,
    prices: str | Path | None = None,
    top: int | None = None,
    depth: int = 32,
    passes: int | None = None,
    disk_cache: bool = False,
    ram: Size | None = None,
    ram_policy: str = "lru",
    ram_mode: str = RAM_MODES[0],
    sampled: str | None = None,
    save_rigs: str | Path | None = None,
    fit: str = "as-is",
    format: str | None = None,
    action: str = "Q",
    trace_block: Size = "4096B",
    skip_damaged: bool = False,
    window: str | None = None,
    device: int | None = None,
    columns: str | None = None,
    seed: int = 1,
    quick: bool = False,
    fresh: bool = False,
    cluster: str | None = None,
    progress: Watch = None,
) -> Report:
    """Finds the cache for a load: size, block, policy, mode; speed, warm-up, wear and price.

    Args:
        pool: What is cached: NAME, FILE.toml, or LEVEL:COUNT:NAME[:CHUNK] such as
            raid10:6:seagate-constellation-500. In Python also a :class:`ssdlab.Rig`.
        cache: What to cache on; may be given again. In Python one or several.
        trace: The load, as a trace.
        job: The load, as a fio job file. In Python also its text.
        sizes: Sizes of the cache, such as ``"16G,32G"``; else by the working set of the load.
        blocks: Sizes of a block: ``"16k,64k"``.
        thresholds: Admission thresholds: admit a block on its Nth access: ``"1,2"``.
        policies: Replacement policies: ``"lru,arc,s3-fifo"`` (``ssdlab list policies``).
        modes: Of write-back, write-through, write-around, write-around-fill, write-only; else the
            first three.
        preset: A product's cache with all of its settings, besides; may be given again. In Python
            one or several.
        goal: What counts: speed when warm, the 99th percentile, or price per 1000 IOPS.
        accept_loss: Allow configurations where one drive failure loses acknowledged writes.
        years: How long the cache has to last.
        prices: Prices of drives (TOML).
        top: Caches that are simulated in time; 6 (4 with ``quick``) unless given.
        depth: Requests in flight at full speed.
        passes: How often a trace is run at full speed, the cache growing warm (more often while it
            still gets faster); 3 (2 with ``quick``), or what its threshold needs, unless given.
        disk_cache: Disks acknowledge writes in their volatile caches: lost with the power.
        ram: RAM of the host as a cache of pages before the pool, each fast device and every cache
            alike: 4GiB.
        ram_policy: Its replacement policy.
        ram_mode: Its mode; write-back loses acknowledged writes with the power.
        sampled: The trace is a sample of so much of the addresses (trace sample --share): say what
            that means for the whole.
        save_rigs: Write what was simulated as rig files, which run takes; rigs that ssdlab wrote
            there are replaced, a folder with others is refused.
        fit: As for :func:`ssdlab.replay`.
        format: As for :func:`ssdlab.trace`.
        action: As for :func:`ssdlab.trace`.
        trace_block: As for :func:`ssdlab.trace`.
        skip_damaged: As for :func:`ssdlab.trace`.
        window: As for :func:`ssdlab.trace`.
        device: As for :func:`ssdlab.trace`.
        columns: As for :func:`ssdlab.trace`.
        seed: Seed of all random streams.
        quick: Fewer candidates and passes, for a first look.
        fresh: As for :func:`ssdlab.array`.
        cluster: As for :func:`ssdlab.sweep`.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.

    Raises:
        InputError: a store, the load or a list is wrong.
        Interrupted: it was stopped; of the simulations those that ended are kept.
    """
    if (trace is None) == (job is None):
        raise InputError("name one load: --trace TRACE or --job JOB.fio")
    known_name("goal", goal, GOALS)
    _require_positive(years=years)
    if fit not in FITS:
        raise InputError(f'--fit "{fit}": expected {", ".join(FITS)}')
    caches = [cache] if isinstance(cache, Drive) else list(cache)
    if not caches:
        raise InputError("--cache: found none, expected at least one drive")
    named = named_or_rigs([pool, *caches])
    stores = list(map(store, named))
    if not disk_cache:
        stores = [replace(one, tree=one.resized()) if one.has_disk else one for one in stores]
    fasts = {one.text: one for one in stores[1:]}
    planner = CachePlanner(
        pool=stores[0],
        fasts=list(fasts.values()),
        disk_cache=disk_cache,
        ram=_ram(ram, ram_policy, ram_mode),
        sampled=share("--sampled", sampled, "expected a percentage above 0, such as 10") or 1.0,
        prices=read_prices(None if prices is None else Path(prices)),
        trace=None if trace is None else existing(Path(trace)),
        reading=reading(format, action, trace_block, skip_damaged, window, device, columns),
        fit=fit,
        job=None if job is None else read_job(job),
        seed=seed,
        depth=depth,
        quick=quick,
        rules=Rules(goal, accept_loss, years),
        presets=_presets(several(preset)),
    )  # fmt: skip
    changes: dict[str, Any] = dict(QUICK) if quick else {}
    changes |= _lists(*map(listed, (sizes, blocks, thresholds, policies, modes)))
    planner = replace(planner, **changes)
    planner = replace(planner, top=top or planner.top)
    needed = 1 if job is not None else max(planner.passes, max(planner.thresholds) + 1)
    planner = replace(planner, passes=passes or min(needed, 10))
    folder = None if save_rigs is None else Path(save_rigs)
    if folder is not None:
        prove(folder)
        # Before hours of simulation: none of the rigs to come may meet a file of somebody else.
        check_rigs(folder, (path.name for path in folder.glob("*.toml")))
    with working(planner.subject, progress, cluster, fresh=fresh) as callback:
        plan = simulated(planner.variants(), callback)
    if folder is not None:
        write_rigs(folder, plan.rigs())
    return Report(planner.judge(plan))


def _require_positive(**given: float | None) -> None:
    """Raises InputError where a number is given that is below 0, or none."""
    for name, value in given.items():
        if value is not None and not 0 <= value < math.inf:
            raise InputError(f"--{name} {value:g}: expected a number of 0 or more")


def plan_storage(
    *,
    candidate: Drive | Sequence[Drive] | None = None,
    job: str | Path | None = None,
    workload: str | None = None,
    prices: str | Path | None = None,
    depth: int | None = None,
    hot: Size | None = None,
    contiguous: bool = False,
    writes_per_day: Size = f"{WRITES_PER_DAY / 1e9:.0f}GB",
    iops: float | None = None,
    space: Size | None = None,
    years: float | None = None,
    budget: float | None = None,
    disk_cache: bool = False,
    scale: int | None = None,
    seed: int = 1,
    quick: bool = False,
    fresh: bool = False,
    cluster: str | None = None,
    progress: Watch = None,
) -> Report:
    """Compares what may be bought: speed, space, life, safety, price; and what to take for what.

    Args:
        candidate: What may be bought: STORE, "STORE + CACHE", "STORE + PRESET:CACHE" or
            "STORE + MODE:CACHE", each with "@ CARD". STORE is a drive, a rig file, or
            LEVEL:COUNT:DRIVE[:CHUNK]. Given several times; without it two large disks, twelve fast
            ones, twelve SSDs, and two disks behind a cache are compared. In Python one or several,
            also a :class:`ssdlab.Rig`.
        job: The load, as a fio job file. In Python also its text.
        workload: A load by name instead, from ``ssdlab list workloads``.
        prices: Prices of drives (TOML).
        depth: I/Os in flight; 256 unless given.
        hot: Where random I/O goes; 20 million sectors (10.24GB) unless given.
        contiguous: The hot set lies at the beginning, not all over the store.
        writes_per_day: For the life of SSDs.
        iops: I/Os a second that are needed, of each kind of random I/O or of the load; what to take
            for all that is needed is said first.
        space: Space that is needed.
        years: How long SSDs have to last.
        budget: What it may cost, in the currency of the prices: the fastest for that is said first.
        disk_cache: As for :func:`ssdlab.plan_cache`.
        scale: With ``job``: scale capacity and duration down by N.
        seed: Seed of all random streams.
        quick: A rough look: shorter and smaller.
        fresh: As for :func:`ssdlab.array`.
        cluster: As for :func:`ssdlab.sweep`.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.

    Raises:
        InputError: a candidate, the load or a price is wrong.
        Interrupted: it was stopped; of the simulations those that ended are kept.
    """
    candidates = _candidates(named_or_rigs(candidate))
    cost = read_prices(None if prices is None else Path(prices))
    daily = large("--writes-per-day", writes_per_day)
    how: dict[str, Any] = {"seed": seed, "quick": quick, "disk_cache": disk_cache}
    asked: TableLoads | OwnLoad | None = _own(job, workload, depth, scale, how)
    if asked is None:
        if scale is not None:
            raise InputError(
                "--scale is for --job and --workload; else sizes are chosen by the hot set"
            )
        asked = TableLoads(
            _hot(hot, contiguous, candidates), depth or DEPTH, everywhere=True, **how
        )
    elif hot is not None or contiguous:
        raise InputError("--hot and --contiguous are for the loads of the table; a job has its own")
    room = 0 if space is None else large("--space", space)
    _require_positive(iops=iops, years=years, budget=budget)
    if years and not daily:
        raise InputError("--years: with --writes-per-day 0 no SSD wears out; leave one of them out")
    needs = Needs(iops or 0.0, room, years or 0.0, budget or 0.0)
    planner = StoragePlanner(candidates, asked, cost, daily, needs)
    with working(planner.subject, progress, cluster, fresh=fresh) as callback:
        return Report(planner.judge(simulated(planner.variants(), callback)))


def _ram(given: Size | None, policy: str, mode: str) -> Ram | None:
    """RAM before everything, if there is any."""
    known_name("replacement policy", policy, timed_policies())
    known_name("mode of RAM", mode, RAM_MODES)
    if given is None:
        if (policy, mode) != (Ram.policy, Ram.mode):
            raise InputError("--ram-policy and --ram-mode are of RAM: say how much, as --ram 4GiB")
        return None
    found = size("--ram", given)
    if found < PAGE or found > RAM_MAX:
        raise InputError(f"--ram {given}: expected from 4KiB to {units.binary(RAM_MAX)}")
    return Ram(found // PAGE * PAGE, policy, mode)


def _lists(
    sizes: str | None,
    blocks: str | None,
    thresholds: str | None,
    policies: str | None,
    modes: str | None,
) -> dict[str, Any]:
    """What the lists of the command line say, by the field of a planner."""
    found: dict[str, Any] = {}
    if sizes is not None:
        expected = "sizes from 1m on, such as 16G,32G or 4g..64gx2"
        found["sizes"] = units.sizes(
            "--sizes", sizes, expected, lambda size: size >= 1 << 20 and size % 4096 == 0
        )
    if blocks is not None:
        expected = "powers of two from 512 bytes to 64 MiB, such as 16k,64k"
        found["blocks"] = units.sizes(
            "--blocks", blocks, expected,
            lambda size: 512 <= size <= 64 << 20 and size & (size - 1) == 0,
        )  # fmt: skip
    if thresholds is not None:
        expected = f"numbers of uses from 1 to {THRESHOLD_MAX}, such as 1,2"
        found["thresholds"] = units.counts(
            "--thresholds", thresholds, expected, lambda uses: 1 <= uses <= THRESHOLD_MAX
        )
    if policies is not None:
        named = units.words("--policies", policies)
        found["policies"] = [
            known_name("replacement policy", one, timed_policies()) for one in named
        ]
    if modes is not None:
        named = units.words("--modes", modes)
        found["modes"] = [known_name("mode of a cache", one, MODES) for one in named]
    return found


def _presets(names: Sequence[str]) -> list[str]:
    for name in names:
        # The core knows the presets, and says so.
        if not name.replace("-", "").isalnum():
            raise InputError(f'--preset "{name}": expected the name of a product\'s cache')
        fast = _core.Rig.wrap("null", {"capacity": "1GiB"})
        pool = _core.Rig.wrap("null", {"capacity": "1TiB"})
        rig = _core.Rig.wrap("cache", {"preset": name}, name="--preset", cache=fast, below=pool)
        _core.rig_check(rig.to_toml(), rig_name="--preset")
    return list(dict.fromkeys(names))


def _candidates(texts: Sequence[str | Sim]) -> list[Candidate]:
    candidates = [candidate_of(text) for text in texts or DEFAULTS]
    if len(candidates) > CANDIDATES_MAX:
        raise InputError(f"--candidate: found {len(candidates)}, expected at most {CANDIDATES_MAX}")
    for candidate in candidates:
        # The core says what is wrong with a preset, a chunk, a number of drives, or a rig.
        candidate.check()
    return candidates


def _hot(given: Size | None, contiguous: bool, candidates: Sequence[Candidate]) -> HotSet:
    if given is None:
        return HotSet(HOT_BYTES, spread=not contiguous)
    if str(given).strip().lower() in ("all", "100%"):
        return HotSet(WHOLE, spread=not contiguous)
    if str(given).strip().endswith("%"):
        raise InputError(
            f"--hot {given}: expected a size, such as 10GB, or all of the store (100%)"
        )
    hot = size("--hot", given)
    if hot < 1 << 20:
        raise InputError(f"--hot {given}: expected at least 1MiB, or all")
    least = min(candidates, key=lambda candidate: candidate.pool.usable_bytes)
    if hot > least.pool.usable_bytes:
        raise InputError(
            f"--hot {given}: larger than {least.text} "
            f"({units.size_text(least.pool.usable_bytes)}); take less, or all"
        )
    return HotSet(hot, spread=not contiguous)


def _own(
    job: str | Path | None,
    name: str | None,
    depth: int | None,
    scale: int | None,
    how: dict[str, Any],
) -> OwnLoad | None:
    if job is not None and name is not None:
        raise InputError("--job and --workload exclude each other; give one of them")
    if job is not None:
        if depth is not None:
            raise InputError("--depth is for loads by name; a job file has its own iodepth")
        given = read_job(job)
        return OwnLoad(given, state_for(given), scale, **how)
    if name is None:
        return None
    load, depth = named_load(name), depth or DEPTH
    settling = load.settling(depth)
    plain = replace(load, own="").job(depth)
    return OwnLoad(plain, state_for(plain), scale, depth, settling, **how)
