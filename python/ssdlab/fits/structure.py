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
LEAST, MOST = 0.03, 1.5
"""Over-provisioning of drives."""
DRIVE_WRITES = 2
"""Over which write amplification is taken: collection comes in waves."""
FOLDED = 1.3
"""Writes in order that program so much for each byte are folded on the way."""


@dataclass(frozen=True)
class Chosen:
    """Keys of a rig that were chosen, and what over-provisioning the measurements ask for then."""

    keys: Mapping[str, str]
    spare: float | None = None


def closed(rig: str, observed: Sequence[Observation]) -> Chosen:
    """By closed forms: the victim policy whose over-provisioning is the same for all sizes of
    namespace at which write amplification was measured."""
    points = _amplified(observed)
    if not points:
        return Chosen({})
    drive = with_keys(rig, {})
    folds = drive.get("ftl.slc_cache.static_size") is not None and any(
        observation.load.state == "fob" and observation.measured.get("waf", 1.0) > FOLDED
        for observation in observed
    )
    found = {}
    for victim in VICTIMS[:2]:
        spares = [_spare(drive, victim, load, waf - folds) for load, waf in points.items()]
        logs = [math.log(spare) for spare in spares]
        found[victim] = max(logs) - min(logs), math.exp(sum(logs) / len(logs))
    victim = min(found, key=lambda name: found[name][0])
    if len(points) == 1:
        victim = "fifo" if drive.get(VICTIM) == "fifo" else "greedy"
        return Chosen({}, _roomy(rig, {}, found[victim][1]))
    return Chosen({VICTIM: victim}, _roomy(rig, {VICTIM: victim}, found[victim][1]))


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
    fits = _spares(rig, points, chosen.spare or 0.2, seed, progress, VICTIMS[:1])
    return Chosen({VICTIM: VICTIMS[0]}, fits[VICTIMS[0]][1])


def simulated(
    rig: str, observed: Sequence[Observation], seed: int, progress: ProgressCallback | None
) -> Chosen:
    """By simulations: the victim policy and the pace that come nearest to what was measured.

    Raises InputError where a rig cannot be simulated, Interrupted on Ctrl-C.
    """
    first = closed(rig, observed)
    rows = [observation for observation in observed if observation.load.collects]
    if not rows:
        return first
    keys: dict[str, str] = {}
    spare = first.spare
    if points := _amplified(rows):
        fits = _spares(rig, points, spare or 0.2, seed, progress)
        victim = min(VICTIMS, key=lambda name: fits[name][0])
        spare, keys = fits[victim][1], {VICTIM: victim}
    sized = {} if spare is None else {SPARE: f"{spare:.4f}"}
    room = with_keys(rig, {}).bytes(BUFFER)
    ways: list[dict[str, str]] = [
        {PACE: pace, **({DRAIN: drain, BUFFER: f"{times * room}B"} if room else {})}
        for pace in PACES
        for drain, times in (DRAINS.items() if room else {"": 1}.items())
    ]
    rigs = [with_keys(rig, {**keys, **sized, **way}).to_toml() for way in ways]
    found = trial.answers(rigs, trial.of(rows), trial.Effort(seed=seed), progress)
    target = FitTarget.of([row.without("waf") for row in rows])
    off = [float((abs(target.residuals(target.take(one)))).sum()) for one in found]
    return Chosen({**keys, **ways[off.index(min(off))]}, spare)


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
    rig: str, points: Mapping[FitWorkload, float], first: float, seed: int,
    progress: ProgressCallback | None, victims: Sequence[str] = VICTIMS,
) -> dict[str, tuple[float, float]]:  # fmt: skip
    """By victim policy how far write amplification is off at best, and the over-provisioning."""
    drive = with_keys(rig, {})
    loads = list(points)
    wanted = [math.log(points[load]) for load in loads]
    units = max(
        1, int(trial.Reduced.of(rig, "twin").share * (drive.bytes("capacity") or 1)) // 4096
    )
    effort = trial.Effort(writes=DRIVE_WRITES * units, seed=seed)
    tried: dict[str, list[tuple[float, float]]] = {name: [] for name in victims}
    best: dict[str, tuple[float, float]] = {}
    asked = dict.fromkeys(victims, math.log(min(MOST, max(LEAST, first))))
    for _ in range(ROUNDS):
        asked = {
            name: math.log(_roomy(rig, {VICTIM: name}, math.exp(x))) for name, x in asked.items()
        }
        rigs = [
            with_keys(rig, {VICTIM: name, SPARE: f"{math.exp(asked[name]):.4f}"}).to_toml()
            for name in victims
        ]
        for name, told in zip(victims, trial.answers(rigs, loads, effort, progress), strict=True):
            errors = [
                math.log(one.get("waf", 1.0)) - y for one, y in zip(told, wanted, strict=True)
            ]
            off = sum(error**2 for error in errors)
            if name not in best or off < best[name][0]:
                best[name] = off, math.exp(asked[name])
            tried[name].append((asked[name], sum(errors) / len(errors)))
            asked[name] = _next(tried[name])
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
    own = amplification.spare(waf)
    if victim == "greedy":
        own = amplification.bisected(
            1e-4, 1e3, lambda op: waf - amplification.greedy(op, min(units, 1024))
        )
    return min(MOST, max(LEAST, (1 + own) * share - 1))
