"""What no derivative tells of a drive: which superblocks it collects, whether writes wait for that,
when the buffer lets go. Each choice is simulated under what was measured; without simulations
closed forms choose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ssdlab import _core
from ssdlab.analysis import amplification
from ssdlab.errors import InputError
from ssdlab.fits import trial
from ssdlab.fits.observations import FitWorkload, Observation
from ssdlab.fits.parameters import with_keys
from ssdlab.fits.search import FitTarget
from ssdlab.progress import ProgressCallback

VICTIM, PACE, SPARE = "ftl.gc.victim", "ftl.gc.pace", "ftl.over_provisioning"
VICTIMS = ("greedy", "fifo", "random")
"""Uniform writes tell no others from these: the better of several, or of old ones, is as greedy."""
PACES = ("paced", "blocking")
BUFFER, DRAIN = "write_buffer.size", "write_buffer.drain"
DRAINS = {"program-unit": 1, "watermark": 2}
"""A buffer of which half is kept is twice as large as what a burst finds free."""
ROUNDS = 4
"""Simulations by which over-provisioning is found for each victim policy."""
MET = 0.01
"""A mean error of write amplification that is none."""
OFF = 0.04
"""What is left out of write amplification where the policy was chosen among few."""
UNLIKELY = (3 * OFF) ** 2
"""Squares of errors add up to so much more with policies that cannot have done it."""
TENTH = 0.1
"""Policies that are so many times less likely than another are outside a 90 % interval."""
SELDOM = {"random": (2.5 * OFF) ** 2}
"""The same of policies that no drive is known to have: one is believed where the others fail."""
LEAST, MOST = 0.03, 1.5
"""Over-provisioning of drives."""
DRIVE_WRITES = 1
"""Over which write amplification is taken: collection comes in waves."""
FOLDED = 1.3
"""Writes in order that program so much for each byte are folded on the way."""


@dataclass(frozen=True)
class Chosen:
    """Keys of a rig that were chosen, and what over-provisioning the measurements ask for then."""

    keys: Mapping[str, str]
    spare: float | None = None
    apart: float = 0.0
    """Standard deviation of its logarithm over choices that are about as likely."""


def closed(rig: str, observed: Sequence[Observation]) -> Chosen:
    """By closed forms: the victim policy whose over-provisioning is the same for all sizes of
    namespace at which write amplification was measured."""
    points = _amplified(observed)
    if not points:
        return Chosen({})
    drive = with_keys(rig, {})
    found = _by_policy(drive, observed)
    keys = {VICTIM: min(found, key=lambda name: max(found[name]) - min(found[name]))}
    victim = keys[VICTIM]
    if len(points) == 1:
        keys, victim = {}, "fifo" if drive.get(VICTIM) == "fifo" else "greedy"
    mean = sum(found[victim]) / len(points)
    return Chosen(keys, _roomy(rig, keys, math.exp(mean)))


def _by_policy(drive: _core.Rig, observed: Sequence[Observation]) -> dict[str, list[float]]:
    """By victim policy the over-provisioning that closed forms ask for at each size of namespace,
    as logarithms."""
    folds = drive.get("ftl.slc_cache.static_size") is not None and any(
        observation.load.state == "fob" and observation.measured.get("waf", 1.0) > FOLDED
        for observation in observed
    )
    points = _amplified(observed).items()
    return {
        victim: [math.log(_spare(drive, victim, load, waf - folds)) for load, waf in points]
        for victim in VICTIMS
    }


def quickly(
    rig: str, observed: Sequence[Observation], seed: int, progress: ProgressCallback | None
) -> Chosen:
    """By closed forms, and where what else is programmed counts as well (a map that RAM does not
    hold, folding) by a few simulations of one policy."""
    chosen = closed(rig, observed)
    points = _amplified(observed)
    drive = with_keys(rig, {})
    if not points or not any(
        drive.get(key) for key in ("ftl.map.cache", "ftl.slc_cache.t_program")
    ):
        return chosen
    fits = _spares(rig, observed, seed, progress, VICTIMS[:1])
    return Chosen({VICTIM: VICTIMS[0]}, fits[VICTIMS[0]][1])


def simulated(
    rig: str, observed: Sequence[Observation], seed: int, progress: ProgressCallback | None
) -> Chosen:
    """By simulations: the victim policy and the pace that come nearest to what was measured;
    InputError where a rig cannot be simulated, Interrupted on Ctrl-C."""
    first = closed(rig, observed)
    rows = [observation for observation in observed if observation.load.collects]
    if not rows:
        return first
    keys: dict[str, str] = {}
    spare, apart = first.spare, 0.0
    if _amplified(rows):
        fits = _spares(rig, observed, seed, progress)
        victim = min(fits, key=lambda name: fits[name][0])
        spare, keys = fits[victim][1], {VICTIM: victim}
        apart = _apart(fits, victim)
    sized = {} if spare is None else {SPARE: f"{spare:.4f}"}
    room = with_keys(rig, {}).bytes(BUFFER)
    ways: list[dict[str, str]] = [
        {PACE: pace, **({DRAIN: drain, BUFFER: f"{times * room}B"} if room else {})}
        for pace in PACES
        for drain, times in (DRAINS.items() if room else {"": 1}.items())
    ]
    rigs = [with_keys(rig, {**keys, **sized, **way}).to_toml() for way in ways]
    found = trial.answers(rigs, [row.load for row in rows], trial.Effort(seed=seed), progress)
    target = FitTarget.of([row.without("waf") for row in rows])
    off = [float((abs(target.residuals(target.take(one)))).sum()) for one in found]
    return Chosen({**keys, **ways[off.index(min(off))]}, spare, apart)


def _apart(fits: Mapping[str, tuple[float, float]], chosen: str) -> float:
    """How far the over-provisioning of other policies is from that of the one that was chosen, each
    as often as it is likely: standard deviation of the logarithm."""
    least, there = fits[chosen]
    likely = {name: math.exp((least - off) / (2 * OFF**2)) for name, (off, _) in fits.items()}
    likely = {name: share if share > TENTH else 0.0 for name, share in likely.items()}
    squares = sum(likely[name] * math.log(one / there) ** 2 for name, (_, one) in fits.items())
    return math.sqrt(squares / sum(likely.values()))


def _roomy(rig: str, keys: Mapping[str, str], spare: float) -> float:
    """The least over-provisioning, from ``spare`` on, that collection has room in."""
    while True:
        text = with_keys(rig, {**keys, SPARE: f"{spare:.4f}"}).to_toml()
        try:
            _core.rig_check(text, rig_name="twin")
        except InputError:
            if spare > MOST:
                raise
            spare *= 1.1
        else:
            return spare


def _spares(
    rig: str, observed: Sequence[Observation], seed: int, progress: ProgressCallback | None,
    victims: Sequence[str] = VICTIMS,
) -> dict[str, tuple[float, float]]:  # fmt: skip
    """By victim policy how far write amplification is off at best, and the over-provisioning; not
    of policies that cannot have done it."""
    drive, points = with_keys(rig, {}), _amplified(observed)
    loads = list(points)
    wanted = [math.log(points[load]) for load in loads]
    units = max(
        1, int(trial.Reduced.of(rig, "twin").share * (drive.bytes("capacity") or 1)) // 4096
    )
    effort = trial.Effort(writes=DRIVE_WRITES * units, seed=seed)
    known = _by_policy(drive, observed)
    # What else is programmed makes it too little.
    asked = {name: max(known[name]) for name in victims}
    tried: dict[str, list[tuple[float, float]]] = {name: [] for name in victims}
    best: dict[str, tuple[float, float]] = {}
    for _ in range(ROUNDS):
        asked = {
            name: math.log(_roomy(rig, {VICTIM: name}, math.exp(x))) for name, x in asked.items()
        }
        rigs = [
            with_keys(rig, {VICTIM: name, SPARE: f"{math.exp(x):.4f}"}).to_toml()
            for name, x in asked.items()
        ]
        uneven = {}
        for name, told in zip(asked, trial.answers(rigs, loads, effort, progress), strict=True):
            errors = [
                math.log(one.get("waf", 1.0)) - y for one, y in zip(told, wanted, strict=True)
            ]
            off, mean = sum(error**2 for error in errors), sum(errors) / len(errors)
            if name not in best or off + SELDOM.get(name, 0.0) < best[name][0]:
                best[name] = off + SELDOM.get(name, 0.0), math.exp(asked[name])
            tried[name].append((asked[name], mean))
            uneven[name] = off - len(errors) * mean**2 if len(tried[name]) > 1 else 0.0
        # What another over-provisioning does not mend is no question of it.
        most = min(off for off, _ in best.values()) + UNLIKELY
        asked = {
            name: _next(tried[name])
            for name in asked
            if abs(tried[name][-1][1]) > MET and uneven[name] < most
        }
        if not asked:
            break
    return best


def _next(tried: Sequence[tuple[float, float]]) -> float:
    """Where the error of write amplification is likely to be none: by secants in logarithms."""
    (x, y) = tried[-1]
    slope = -0.7
    if len(tried) > 1 and abs(x - tried[-2][0]) > 1e-3:
        slope = min(-0.1, (y - tried[-2][1]) / (x - tried[-2][0]))
    step = min(1.0, max(-1.0, -y / slope))
    return min(math.log(MOST), max(math.log(LEAST), x + step))


def _amplified(observed: Sequence[Observation]) -> dict[FitWorkload, float]:
    """Write amplification of random writes of 4 KiB by namespace, the mean of each."""
    found: dict[FitWorkload, list[float]] = {}
    for observation in observed:
        if (
            "waf" in observation.measured
            and observation.load.collects
            and observation.load.bs == 4096
        ):
            found.setdefault(observation.load, []).append(math.log(observation.measured["waf"]))
    return {load: math.exp(sum(logs) / len(logs)) for load, logs in found.items()}


def _spare(drive: _core.Rig, victim: str, load: FitWorkload, waf: float) -> float:
    """Over-provisioning of the whole drive at which closed forms come to ``waf``."""
    units = int(drive.get("nand.pages_per_block") or 256) * int(drive.get("nand.planes") or 1)
    units *= max(1, (drive.bytes("nand.page") or 16384) // 4096)
    share = (load.namespace or drive.bytes("capacity") or 1) / (drive.bytes("capacity") or 1)
    waf = max(1.02, waf)
    own = amplification.spare_random(waf) if victim == "random" else amplification.spare(waf)
    if victim == "greedy":
        own = amplification.bisected(
            1e-4, 1e3, lambda op: waf - amplification.greedy(op, min(units, 1024))
        )
    return min(MOST, max(LEAST, (1 + own) * share - 1))
