"""Fitting a twin: from closed forms and the nearest shipped drive to a search by simulations."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ssdlab import units
from ssdlab.errors import InputError
from ssdlab.fits import starts, structure, trial
from ssdlab.fits.conclusions import Conclusion, settings, uncached
from ssdlab.fits.observations import FitWorkload, Observation
from ssdlab.fits.parameters import FitSpace, with_keys
from ssdlab.fits.search import Evaluate, FitTarget, SearchEnd, Told, cost, leaping, search
from ssdlab.fits.trial import Effort
from ssdlab.numeric import Floats
from ssdlab.progress import ProgressCallback, within

CORRECTIONS = 4
"""Simulations by which closed forms are corrected, at most."""
ROWS = 60
"""So many observations are simulated, evenly taken from more."""
WIDTH = 0.02, 0.06, 0.1
"""Standard deviations of what benchmarks have concluded, as logarithms: at least, and of over-
provisioning that simulations or closed forms have chosen."""
KINDS = 3
"""Of random writes that collect (size, mix, namespace), those with most rows, that a fit by closed
forms simulates."""
SIMULATED = 2
"""So often: what is off depends on over-provisioning, too."""
QUICK_SPARE = 8
"""Superblocks in the spare of a drive that a fit by closed forms simulates: with three times as
many it takes three times as long."""
NO_HOST = "50ns"
WRITES = 150_000
"""Of a point of a drive whose collection benchmarks have told: a drive write, at most so many."""
FEWEST = 2
"""Different workloads, of which one alone fits any drive."""
CHANGED = 2.0
"""The same workload measured twice may differ by this factor."""
DISK_IOPS, DISK_BLOCK = 1_000, 65536
"""A drive that never does so many requests at random of at most that size has to seek."""
STRIPE = 32
"""Parity of drives whose write amplification is known only with collection: 3 % of what is
written, as drives of data centres have where it was measured."""


@dataclass(frozen=True)
class FitOrder:
    """What is to be fitted, and how."""

    observed: Sequence[Observation]
    capacity: int | None = None
    """Bytes; None for that of ``start``."""
    start: str | None = None
    """A profile or rig file; None for the shipped drive that is most like it."""
    fixed: Mapping[str, str] | None = None
    """Keys of the rig that are known."""
    seed: int = 1
    quick: bool = False
    """By closed forms; of simulations only those of random writes that collect."""
    concluded: Sequence[Conclusion] = ()
    """What benchmarks say of how the drive is made."""
    without: Collection[str] = ()
    """Shipped drives not to start from."""


@dataclass(frozen=True)
class Fit:
    """What came of it."""

    found: SearchEnd
    start: str
    observed: Sequence[Observation]
    """Those that were fitted to."""
    quick: bool


def fit(order: FitOrder, progress: ProgressCallback | None = None) -> Fit:
    """Fits a twin to observations; InputError where they are too few or the start is wrong,
    Interrupted on Ctrl-C."""
    # What closed forms say of a drive is at the rates that it can do.
    observed = [
        observation
        for observation in order.observed
        if observation.measured and not observation.load.limits
    ]
    _check(observed, order)
    candidates, fixed = _candidates(order, observed)
    ranked = starts.ranked(candidates, observed, fixed)
    start, closely = ranked[0]
    among = {} if order.concluded else _among(ranked)
    muted = within(progress, 0.0, 0.0, "how it collects")
    if order.concluded:
        start = _of_several(ranked)
        choose = structure.quickly if order.quick else structure.simulated
        chosen = choose(start.rig, observed, order.seed, muted)
        start = _chosen(start, chosen, fixed, quick=order.quick)
        if order.quick:
            # Closed forms of write amplification have chosen already, as well as they can.
            observed = [observation.without("waf") for observation in observed]
        closely = starts.held(start, observed, fixed)
    elif order.quick:
        closely = _collecting(starts.held(start, observed, fixed), observed, order.seed, muted)
    if order.quick:
        return Fit(replace(closely, among=among), start.name, observed, True)
    some = observed[:: math.ceil(len(observed) / ROWS)]
    effort = Effort(seed=order.seed)
    if order.concluded:
        effort = replace(effort, writes=_drive_write(start.rig))
    else:
        lasting = trial.lasting(effort, start.rig, [observation.load for observation in some])
        effort = replace(lasting, writes=max(2 * effort.writes, lasting.writes))
    found = _by_simulation(start, closely, some, fixed, effort, progress)
    return replace(found, found=replace(found.found, among=among))


def _candidates(
    order: FitOrder, observed: Sequence[Observation]
) -> tuple[list[starts.Start], Mapping[str, str]]:
    """The drives to start from, and the keys that all of them have."""
    given = order.fixed or {}
    fixed = {**_parity(observed), **given}
    if order.start is not None:
        candidates = [starts.named(order.start, order.capacity)]
    else:
        candidates = starts.likely(order.capacity, observed, order.without)
        if not order.concluded:
            candidates = [starts.behind_fio(candidate) for candidate in candidates]
    if order.concluded:
        if order.start is None and uncached(order.concluded):
            candidates = [one for one in candidates if not starts.cached(one)] or candidates
        candidates = _concluded(candidates, order.concluded, fixed)
        if not {*settings(order.concluded), *fixed} & set(starts.DIES):
            candidates = [other for one in candidates for other in starts.of_dies(one)]
    # Superblocks may be too small for a stripe of that parity.
    holding = [candidate for candidate in candidates if _is_drive(candidate, fixed)]
    return (holding, fixed) if holding else (candidates, given)


def _concluded(
    candidates: Sequence[starts.Start], concluded: Sequence[Conclusion], fixed: Mapping[str, str]
) -> list[starts.Start]:
    """The starts made as benchmarks say that the drive is, as far as that makes a drive of them."""
    keys = settings(concluded)
    if "controller.command_time" in keys:
        # What host and controller take together was told as the controller's.
        keys.setdefault("host_time", NO_HOST)
    keys = {key: value for key, value in keys.items() if key not in fixed}
    widths = {
        conclusion.key: max(WIDTH[0], math.log(conclusion.high / conclusion.low) / (2 * 1.645))
        for conclusion in concluded
        if conclusion.key in keys
        and conclusion.low
        and conclusion.high
        and conclusion.unit != "yes/no"
    }
    flat = {key: value for key, value in keys.items() if key in widths or "buffer" in key}
    # A geometry, or so little spare, may make no drive of that capacity: then all but that.
    for some in (keys, _without(keys, structure.SPARE), flat, _without(flat, structure.SPARE)):
        found = []
        for candidate in candidates:
            with contextlib.suppress(InputError):
                found.append(candidate.having(some, {k: v for k, v in widths.items() if k in some}))
        if found:
            return found
    return list(candidates)


def _is_drive(start: starts.Start, keys: Mapping[str, str]) -> bool:
    try:
        start.having(keys, {})
    except InputError:
        return False
    return True


def _of_several(ranked: Sequence[tuple[starts.Start, SearchEnd]]) -> starts.Start:
    """The likeliest of drives that differ in how many dies they have, with how far apart the
    parameters of all are, each as often as it is likely."""
    return ranked[0][0].having({}, {}, _distance(ranked, _likely(ranked)))


def _among(ranked: Sequence[tuple[starts.Start, SearchEnd]]) -> dict[str, float]:
    """How far apart the parameters are of the drives that could be started from: each as often as
    it is likely, or, where only its count would tell a parameter, as there are such drives."""
    alike = np.array([math.exp(-starts.RARE / 2) if start.name == starts.XPOINT else 1.0
                      for start, _ in ranked])  # fmt: skip
    counted = {one.key for one in ranked[0][1].space.parameters if one.counted}
    as_many, as_likely = _distance(ranked, alike), _distance(ranked, _likely(ranked))
    return {key: as_many[key] if key in counted else off for key, off in as_likely.items()}


def _likely(ranked: Sequence[tuple[starts.Start, SearchEnd]]) -> Floats:
    """How likely each of several drives is beside the likeliest."""
    costs = np.array([starts.unlikely(end) for _, end in ranked])
    shares: Floats = np.exp(-0.5 * (costs - costs.min()))
    return shares


def _distance(ranked: Sequence[tuple[starts.Start, SearchEnd]], shares: Floats) -> dict[str, float]:
    """By key, how far the parameters of all drives that have it are from those of the first:
    standard deviations of logarithms."""
    found = {}
    for key, x in ranked[0][1].values.items():
        others = np.array([end.values.get(key, math.nan) for _, end in ranked])
        has = np.isfinite(others)
        found[key] = math.sqrt(shares[has] @ (others[has] - x) ** 2 / shares[has].sum())
    return found


def _without(keys: Mapping[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in keys.items() if name != key}


def _chosen(
    start: starts.Start, chosen: structure.Chosen, fixed: Mapping[str, str], *, quick: bool
) -> starts.Start:
    keys = {key: value for key, value in chosen.keys.items() if key not in fixed}
    if chosen.spare is None or structure.SPARE in fixed:
        return start.having(keys, {})
    keys[structure.SPARE] = f"{chosen.spare:.4f}"
    width = WIDTH[2] if quick else WIDTH[1]
    return start.having(keys, {structure.SPARE: width}, {structure.SPARE: chosen.apart})


def _drive_write(rig: str) -> int:
    """I/Os of 4 KiB that write the reduced drive once, within reason."""
    small = trial.Reduced.of(rig, "twin")
    units = small.share * (with_keys(rig, {}).bytes("capacity") or 0) / 4096
    return int(min(WRITES, max(Effort().writes, units)))


def _check(observed: Sequence[Observation], order: FitOrder) -> None:
    if not observed:
        raise InputError(
            "there is nothing to fit: no workload that asks as fast as it can has a measured "
            "number (iops, lat_mean_us, clat_mean_us, clat_p50_us, clat_p99_us or waf)"
        )
    _check_medium(observed)
    told_by_counters = any("waf" in observation.measured for observation in observed)
    if len({observation.load for observation in observed}) < FEWEST and not told_by_counters:
        wanted = missing([observation.load for observation in observed])
        raise InputError(
            f"{observed[0].where}: one workload tells no drive from others; measure also "
            f"{units.listed(wanted[:3])}"
        )
    seen: dict[FitWorkload, Observation] = {}
    for observation in observed:
        before = seen.setdefault(observation.load, observation)
        rates = [found.measured.get("iops") for found in (before, observation)]
        if rates[0] and rates[1] and not 1 / CHANGED < rates[1] / rates[0] < CHANGED:
            raise InputError(
                f"{observation.where}: the same workload did {rates[1]:,.0f} IOPS here and "
                f"{rates[0]:,.0f} IOPS in {before.where}: the drive changed in between; name its "
                "states, or leave one of them out"
            )
        size, capacity = observation.load.namespace, order.capacity
        if size is not None and capacity is not None and size > capacity * 1.01:
            raise InputError(
                f"{observation.where}: its namespace of {size} bytes is larger than the drive of "
                f"{capacity} bytes (--capacity)"
            )


def _check_medium(observed: Sequence[Observation]) -> None:
    """Raises InputError where reads at random are as few as those of a hard disk; an SSD that
    collects may write as little."""
    reads = [
        (rate, observation)
        for observation in observed
        if not observation.load.sequential
        and observation.load.reads == 1
        and observation.load.bs <= DISK_BLOCK
        and (rate := observation.rate)
    ]
    if reads and (fastest := max(reads, key=lambda pair: pair[0]))[0] < DISK_IOPS:
        rate, observation = fastest
        raise InputError(
            f"{observation.where}: no more than {rate:.0f} IOPS at random is what a hard disk "
            "does, and twins are of SSDs; `ssdlab list drives` has disks"
        )


def _parity(observed: Sequence[Observation]) -> dict[str, str]:
    """The stripe of parity that write amplification tells of."""
    stripe = starts.overhead(observed)
    sequential = any(
        "waf" in observation.measured and observation.load.sequential for observation in observed
    )
    if not sequential and any("waf" in observation.measured for observation in observed):
        stripe = STRIPE
    return {"ftl.parity.stripe": str(stripe)} if stripe else {}


def _by_simulation(
    start: starts.Start, closely: SearchEnd, observed: Sequence[Observation],
    fixed: Mapping[str, str], effort: Effort, progress: ProgressCallback | None,
) -> Fit:  # fmt: skip
    loads, target = [observation.load for observation in observed], FitTarget.of(observed)
    if start.widths:
        target = FitTarget.of(observed, structure.OFF)
    space = start.space(observed, fixed)
    # What closed forms leave out they put into the parameters: a start by itself may be nearer.
    firsts = [_from(closely, space), space.prior]
    told = _Course(progress, len(firsts) + CORRECTIONS + 1)

    def evaluate(vectors: Sequence[Floats]) -> list[list[Mapping[str, float]]]:
        rigs = [space.rig(vector) for vector in vectors]
        return trial.answers(rigs, loads, effort, told.batch(len(rigs)))

    answers = evaluate(firsts)
    costs = [
        cost(space, target, vector, target.take(answer))
        for vector, answer in zip(firsts, answers, strict=True)
    ]
    best = int(np.argmin(costs))
    end = _corrected(space, target, loads, firsts[best], answers[best], evaluate, told.round)
    return Fit(end, start.name, observed, False)


def _corrected(
    space: FitSpace, target: FitTarget, loads: Sequence[FitWorkload], vector: Floats,
    said: Sequence[Mapping[str, float]], simulate: Evaluate, told: Told,
) -> SearchEnd:  # fmt: skip
    """The search by closed forms, each row off by what the last simulation said that it is off:
    its rounds take one simulation each, and derivatives have no noise (space mapping, Bandler
    1994)."""
    best: SearchEnd | None = None
    for nth in range(CORRECTIONS + 1):
        logs = target.take(said)
        least = cost(space, target, vector, logs)
        told(nth, float(np.median(np.abs(np.nan_to_num(logs - target.logs)))))
        if best is not None and least >= best.cost:
            break
        (known,) = starts.closed_forms(space, loads, [vector])
        off = [
            {name: value / _alike(row, name) for name, value in one.items()}
            for one, row in zip(said, known, strict=True)
        ]
        quick = _off_by(space, loads, off)
        still = search(space, target, quick, vector, 0)
        best = replace(still, vector=vector, logs=logs, cost=least)
        moved = leaping(space, target, quick, vector, starts.ROUNDS_CLOSED)
        vector = moved.vector
        (said,) = simulate([vector])
    assert best is not None
    return best


def _off_by(
    space: FitSpace, loads: Sequence[FitWorkload], off: Sequence[Mapping[str, float]]
) -> Evaluate:
    """Closed forms, each number of each workload off by such a factor."""

    def evaluate(vectors: Sequence[Floats]) -> list[list[Mapping[str, float]]]:
        return [
            [
                {**row, **{name: ratio * _alike(row, name) for name, ratio in one.items()}}
                for one, row in zip(off, rows, strict=True)
            ]
            for rows in starts.closed_forms(space, loads, vectors)
        ]

    return evaluate


def _collecting(
    end: SearchEnd, observed: Sequence[Observation], seed: int, progress: ProgressCallback | None
) -> SearchEnd:
    """A fit by closed forms, with what simulation says of random writes that collect: there a die
    that is behind holds up the others, and collection may come in batches, of which closed forms
    know but the mean. Of each kind the shallowest and the deepest workload are simulated; those
    between are off by as much as lies between."""
    loads = [observation.load for observation in observed]
    kinds: dict[FitWorkload, list[FitWorkload]] = {}
    for load in sorted(dict.fromkeys(loads), key=lambda load: load.depth):
        if load.collects:
            kinds.setdefault(replace(load.curve, numjobs=1), []).append(load)
    most = sorted(kinds, key=lambda kind: -len(kinds[kind]))[:KINDS]
    asked = list(dict.fromkeys(kinds[kind][place] for kind in most for place in (0, -1)))
    for _ in range(SIMULATED if asked else 0):
        rig = end.space.rig(end.vector)
        effort = trial.lasting(Effort(seed=seed, spare=QUICK_SPARE), rig, asked)
        (told,) = trial.answers([rig], asked, effort, progress)
        (known,) = starts.closed_forms(end.space, asked, [end.vector])
        factors = [
            {name: math.log(one[name] / row[name]) for name in row if name in one}
            for one, row in zip(told, known, strict=True)
        ]
        off = [_between(load, asked, factors) for load in loads]
        quick = _off_by(end.space, loads, off)
        end = leaping(end.space, end.target, quick, end.vector, starts.ROUNDS_CLOSED)
    return end


def _between(
    load: FitWorkload, asked: Sequence[FitWorkload], logs: Sequence[Mapping[str, float]]
) -> dict[str, float]:
    """By which factor the numbers of a workload are off where logarithms are known of the
    shallowest and the deepest of its kind; 1 where they are not."""
    kind = replace(load.curve, numjobs=1)
    own = [
        (math.log(one.depth), log)
        for one, log in zip(asked, logs, strict=True)
        if replace(one.curve, numjobs=1) == kind
    ]
    if not own:
        return {}
    depths = [depth for depth, _ in own]
    return {
        name: math.exp(np.interp(math.log(load.depth), depths, [log[name] for _, log in own]))
        for name in own[0][1]
    }


def _alike(row: Mapping[str, float], name: str) -> float:
    """A number of closed forms that a column changes with: percentiles as the mean."""
    return row.get(name, row["lat_mean_us"])


def _from(end: SearchEnd, space: FitSpace) -> Floats:
    """The vector of a fit by closed forms in another space, of more parameters perhaps."""
    pairs = zip(space.parameters, space.prior, strict=True)
    return np.array([end.values.get(parameter.key, prior) for parameter, prior in pairs])


class _Course:
    """Tells how far a search is, over its batches."""

    def __init__(self, progress: ProgressCallback | None, whole: int) -> None:
        self._progress, self._whole = progress, whole
        self._done, self._text = 0, "choosing where to start"

    def batch(self, size: int) -> ProgressCallback | None:
        """The listener of a batch of so many vectors."""
        begun, self._done = self._done, self._done + size
        start, end = (min(1.0, done / self._whole) for done in (begun, self._done))
        return within(self._progress, start, end, self._text)

    def round(self, nth: int, error: float) -> None:
        """A correction is simulated."""
        self._text = f"correction {nth} of {CORRECTIONS}, median error {100 * error:.1f} %"


def missing(loads: Sequence[FitWorkload]) -> list[str]:
    """Measurements that would tell more of a drive than these do, the most useful first."""
    wanted = [
        ("4 KiB random reads at depth 1", any(_is(load, "randread", 4096, 1, 1) for load in loads)),
        ("4 KiB random reads at depth 128 or more",
         any(_is(load, "randread", 4096, 128, 10**6) for load in loads)),
        ("4 KiB random reads of several jobs",
         any(load.rw == "randread" and load.numjobs > 1 for load in loads)),
        ("random reads of 64 KiB or more",
         any(load.rw == "randread" and load.bs >= 65536 for load in loads)),
        ("sequential writes of 128 KiB or more",
         any(load.rw == "write" and load.bs >= 131072 for load in loads)),
        ("4 KiB random writes at steady state",
         any(load.rw == "randwrite" and load.state == "steady" for load in loads)),
    ]  # fmt: skip
    return [what for what, there in wanted if not there]


def _is(load: FitWorkload, rw: str, bs: int, shallow: int, deep: int) -> bool:
    return load.rw == rw and load.bs == bs and shallow <= load.depth <= deep
