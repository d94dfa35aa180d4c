"""Blind twins: random rigs that are measured only through ``characterise``, their twins made
without their values, and both compared under loads that were not measured."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from ssdlab.engine.plans import ProtocolOrder
from ssdlab.engine.runs import begin
from ssdlab.errors import InputError
from ssdlab.fits import fit as fits
from ssdlab.fits import trial
from ssdlab.fits.conclusions import Conclusion
from ssdlab.fits.observations import FitWorkload, Observation
from ssdlab.fits.parameters import amount, with_keys
from ssdlab.fits.search import MEANS, NOISE, SearchEnd
from ssdlab.fits.sources import Gathered, gather
from ssdlab.fits.structure import BUFFER, DRAIN
from ssdlab.fits.twin import judged
from ssdlab.output import write_to
from ssdlab.progress import ProgressCallback, unheard, within
from ssdlab.protocols import find
from ssdlab.rig import profile, registered
from ssdlab.store import RunStore
from ssdlab.target import Sim, Terms
from ssdlab.units import parse_bytes

T = TypeVar("T")
COLUMNS = ("iops", "lat_mean_us", "clat_p99_us", "waf")
"""What is compared."""
CAPACITY = 512 << 20
SECONDS = "0.1"
"""Of each load of `characterise`: a simulated drive has no noise that more would take out."""
TIMED = ("us", "MB/s", "MT/s")
"""Units of what benchmarks find by the clock; counts and choices are the same in each run."""
EFFORT = trial.Effort(6000, 300_000)
"""Of the loads not measured: collection comes in waves, over which two drive writes are a mean."""
TRIES = 50
"""Random rigs that cannot be built are drawn again."""
START = {
    "bandwidth": "3200MB/s",
    "command_time": "0ns",
    "queue_slots": "1024",
    "duplex": "full",
    "latency": "8us",
    "capacity": f"{CAPACITY}B",
    "nand.channels": "4",
    "nand.ways": "2",
    "nand.planes": "1",
    "nand.page": "16KiB",
    "nand.pages_per_block": "12",
    "nand.t_read": "50us",
    "nand.t_program": "600us",
    "nand.t_erase": "250us",
    "nand.transfer_mts": "800",
    "controller.command_time": "1us",
    "ftl.over_provisioning": "0.2",
    "ftl.gc.scope": "die",
    "ftl.gc.separate_frontier": "false",
    "write_buffer.size": "2MiB",
}
KINDS = ("read", "read", "steady read", "write", "large write", "namespace", "mix", "mix",
         "sequential", "sequential write")  # fmt: skip
"""Of loads that were not measured."""
BASE = with_keys(profile("demo-enterprise").text, START).to_toml()
"""What every twin starts from; all else is concluded or fitted. Blocks and the time to erase
one are scaled down together."""


@dataclass(frozen=True)
class Blind:
    """One random rig and how its twin did."""

    number: int
    found: Sequence[str]
    """The keys of those that were drawn that the twin knows."""
    inside: Sequence[bool]
    """Of each of these that has an interval: whether the truth lies in it."""
    errors: Mapping[str, Sequence[float]]
    """Of each load that was not measured, by column: natural logarithm of twin / truth."""

    @property
    def determined(self) -> int:
        """Parameters that were told."""
        return len(self.found)


class _Dice:
    """Draws that depend on nothing but the numbers that they are thrown for."""

    def __init__(self, *seeds: int) -> None:
        self._numbers = np.random.default_rng(seeds)

    def choice(self, values: Sequence[T]) -> T:
        return values[int(self._numbers.integers(len(values)))]

    def spread(self, low: float, high: float) -> float:
        """Even in logarithms."""
        return math.exp(self._numbers.uniform(math.log(low), math.log(high)))

    def noise(self, width: float) -> float:
        """A factor whose logarithm has that standard deviation."""
        return math.exp(self._numbers.normal(0.0, width))

    def happens(self, share: float) -> bool:
        return bool(self._numbers.random() < share)


def drawn(seed: int, number: int) -> dict[str, str]:
    """The keys of a random rig: geometry, times, map, buffer, SLC cache, collection, link."""
    dice = _Dice(seed, number, 0)
    planes = dice.choice([1, 2, 4])
    program = round(dice.spread(200_000, 1_500_000))
    keys = {
        "bandwidth": f"{dice.choice([1600, 3200, 6800])}MB/s",
        "latency": f"{round(dice.spread(3000, 30000))}ns",
        "controller.command_time": f"{round(dice.spread(800, 4000))}ns",
        "nand.channels": str(dice.choice([2, 4, 8])),
        "nand.ways": str(dice.choice([1, 2, 4])),
        "nand.planes": str(planes),
        "nand.page": dice.choice(["8KiB", "16KiB"]),
        "nand.pages_per_block": str(dice.choice([6, 12, 24])),
        "nand.t_read": f"{round(dice.spread(25_000, 90_000))}ns",
        "nand.t_program": f"{program}ns",
        "nand.transfer_mts": f"{round(dice.spread(400, 1600))}",
        "nand.independent_plane_reads": "true" if planes > 1 and dice.happens(0.3) else "false",
        "nand.cache_operations": "true" if dice.happens(0.3) else "false",
        "nand.suspend.program": "true" if dice.happens(0.5) else "false",
        "ftl.over_provisioning": f"{dice.spread(0.12, 0.5):.3f}",
        "ftl.gc.victim": dice.choice([*registered("victim policy")]),
        "ftl.gc.pace": dice.choice(["paced", "blocking"]),
        "ftl.gc.separate_frontier": dice.choice(["true", "false"]),
        "write_buffer.size": f"{dice.choice([1, 2, 4, 8])}MiB",
        "write_buffer.drain": dice.choice(["program-unit", "program-unit", "watermark"]),
        "write_buffer.power_loss_protected": dice.choice(["true", "false"]),
    }
    if dice.happens(0.25):
        keys |= {"ftl.map.kind": "cached", "ftl.map.cache": f"{dice.choice([64, 128, 256])}KiB"}
    elif dice.happens(0.1):
        keys |= {"ftl.map.kind": "extent", "ftl.map.entries": str(dice.choice([40_000, 80_000]))}
    if dice.happens(0.25):
        keys["ftl.slc_cache"] = _slc(dice, program)
    return keys


def _slc(dice: _Dice, program_ns: int) -> str:
    when = dice.choice(["fold", "direct"])
    rest = ', fold_idle_after = "500ms"' if when == "direct" or dice.happens(0.5) else ""
    return (
        f'{{ static_size = "{dice.choice([32, 48, 64])}MiB", t_read = "25us", '
        f't_program = "{round(program_ns * dice.spread(0.2, 0.35))}ns", '
        f'when_full = "{when}"{rest} }}'
    )


def rigs(seed: int, count: int) -> Iterator[tuple[int, dict[str, str], str]]:
    """So many random rigs that can be built: number, keys and TOML."""
    made = number = 0
    while made < count:
        number += 1
        if number > TRIES * count:
            raise InputError("too few random rigs can be built")
        keys = drawn(seed, number)
        try:
            rig = with_keys(BASE, keys).to_toml()
            Sim("blind", rig).open(Terms(seed=seed))
        except InputError:
            continue
        made += 1
        yield number, keys, rig


def unseen(seed: int, number: int, count: int = 20) -> list[FitWorkload]:
    """Loads that ``characterise`` does not measure: other sizes, depths, jobs, mixes, patterns,
    namespaces."""
    dice = _Dice(seed, number, 1)
    found: dict[FitWorkload, None] = {}
    while len(found) < count:
        found[_load(dice)] = None
    return list(found)


def _load(dice: _Dice) -> FitWorkload:
    kind = dice.choice(KINDS)
    depth, jobs = dice.choice([2, 3, 6, 12, 24, 48]), dice.choice([1, 1, 1, 2, 4])
    block = 1024 * dice.choice([4, 8, 20, 48, 96])
    if kind == "read":
        return FitWorkload("randread", block, depth, jobs)
    if kind == "steady read":
        return FitWorkload("randread", block, depth, jobs, None, "steady")
    if kind == "write":
        return FitWorkload("randwrite", 4096, depth, jobs, None, "steady")
    if kind == "large write":
        size = 1024 * dice.choice([8, 16, 64])
        return FitWorkload("randwrite", size, depth, 1, None, "steady")
    if kind == "namespace":
        space = int(CAPACITY * dice.choice([0.6, 0.7, 0.8, 0.9])) // 2**20 * 2**20
        return FitWorkload("randwrite", 4096, depth, 1, None, "steady", space)
    if kind == "mix":
        mix = dice.choice([10.0, 30.0, 50.0, 90.0])
        return FitWorkload("randrw", 1024 * dice.choice([4, 4, 16]), depth, jobs, mix, "steady")
    if kind == "sequential":
        return FitWorkload("read", 1024 * dice.choice([32, 64, 256]), depth)
    size = 1024 * dice.choice([16, 64, 256])
    return FitWorkload("write", size, depth, 1, None, "steady-seq")


def selftest(
    count: int, *, seed: int = 1, quick: bool = False, jobs: int = 20,
    progress: ProgressCallback | None = None,
) -> list[Blind]:  # fmt: skip
    """Blind twins of so many random rigs. ``quick``: by what ``characterise`` concludes and
    closed forms alone. Raises Interrupted on Ctrl-C."""
    done, heard = [], progress or (lambda _news: True)
    for place, (number, keys, rig) in enumerate(rigs(seed, count)):
        words = f"rig {place + 1} of {count} ({number})"
        report = within(heard, place / count, (place + 1) / count, words)
        done.append(_one(number, keys, rig, seed, quick, unseen(seed, number, jobs), report))
    return done


def _one(
    number: int, keys: dict[str, str], rig: str, seed: int, quick: bool,
    loads: Sequence[FitWorkload], report: ProgressCallback,
) -> Blind:  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        # Only the drive itself is handed on: nothing below sees its keys.
        order = ProtocolOrder(
            find("characterise"), Sim("blind", rig), {"seconds": SECONDS}, seed=seed
        )
        done = begin(
            order,
            RunStore(place),
            progress=within(report, 0.0, 0.3),
            notice=unheard,
            announce=lambda _what: None,
        )
        gathered = as_measured(gather([str(done.folder.path)]), seed, number)
        start = Path(place) / "start.toml"
        write_to(start, BASE)
        asked = fits.FitOrder(
            gathered.observed, CAPACITY, str(start), {}, seed, quick, gathered.concluded
        )
        fitted = fits.fit(asked, within(report, 0.3, 0.9)).found
    twin = fitted.space.rig(fitted.vector)
    truth, like = trial.answers([rig, twin], loads, replace(EFFORT, seed=seed))
    errors = {
        name: [
            math.log(other[name] / one[name])
            for one, other in zip(truth, like, strict=True)
            if one.get(name) and other.get(name)
        ]
        for name in COLUMNS
    }
    told = _told(fitted, gathered.concluded, keys)
    inside = [low <= _truth(key, keys) <= high for key, (low, high) in told.items() if low < high]
    return Blind(number, sorted(told), inside, errors)


def as_measured(gathered: Gathered, seed: int, number: int) -> Gathered:
    """What was gathered with the noise of measurements, which a simulated drive has not and
    intervals allow for."""
    dice = _Dice(seed, number, 2)

    def concluded(one: Conclusion) -> Conclusion:
        factor = dice.noise(fits.WIDTH[0])
        if one.value is None or one.low is None or one.high is None or one.unit not in TIMED:
            return one
        return replace(one, value=one.value * factor, low=one.low * factor, high=one.high * factor)

    def observed(one: Observation) -> Observation:
        rate = dice.noise(NOISE["iops"])
        factors = {name: dice.noise(NOISE[name]) for name in one.measured}
        # Rate and mean latencies of a closed loop are one number.
        factors |= {name: rate if name == "iops" else 1 / rate for name in MEANS}
        found = {name: value * factors[name] for name, value in one.measured.items()}
        if (waf := one.measured.get("waf")) is not None:
            # What the host writes is counted.
            found["waf"] = 1 + (waf - 1) * factors["waf"]
        return replace(one, measured=found)

    return replace(
        gathered,
        observed=[observed(one) for one in gathered.observed],
        concluded=[concluded(one) for one in gathered.concluded],
    )


def _told(
    fitted: SearchEnd, concluded: Sequence[Conclusion], keys: Mapping[str, str]
) -> dict[str, tuple[float, float]]:
    """Ends of the intervals of what was drawn and is known: by the fit, else by what was concluded,
    in bytes, ns or as rigs write them; equal where a choice or a count was told."""
    found = {}
    for conclusion in concluded:
        if (
            conclusion.known
            and conclusion.key in keys
            and conclusion.low is not None
            and conclusion.high is not None
        ):
            unit = 1000.0 if conclusion.unit == "us" else 1e6 if conclusion.unit == "MB/s" else 1.0
            found[conclusion.key] = conclusion.low * unit, conclusion.high * unit
    for each in judged(fitted):
        if each.determined and each.parameter.key in keys:
            found[each.parameter.key] = each.low, each.high
    return found


def _truth(key: str, keys: Mapping[str, str]) -> float:
    """What was drawn, in the same units."""
    said = keys[key]
    if key == BUFFER and keys.get(DRAIN) == "watermark":  # bursts find the other half taken
        return parse_bytes(key, said) / 2
    return amount(key, said)
