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

from ssdlab import _core
from ssdlab.engine import findings
from ssdlab.engine.plans import Order
from ssdlab.engine.runs import begin
from ssdlab.errors import InputError
from ssdlab.fits import fit as fits
from ssdlab.fits import trial
from ssdlab.fits.conclusions import Conclusion, conclusions, settings
from ssdlab.fits.observations import Load
from ssdlab.fits.parameters import with_keys
from ssdlab.fits.sources import gather
from ssdlab.output import write_to
from ssdlab.progress import Progress, ProgressCallback
from ssdlab.protocols import find
from ssdlab.rig import profile
from ssdlab.store import RunStore
from ssdlab.target import Sim, Terms

T = TypeVar("T")
COLUMNS = ("iops", "lat_mean_us", "clat_p99_us", "waf")
"""What is compared."""
CAPACITY = 512 << 20
SECONDS = "0.1"
"""Of each load of `characterise`: a simulated drive has no noise that more would take out."""
EFFORT = trial.Effort(6000, 160_000)
"""Of the loads not measured: FIFO collection comes in waves, over which a drive write is a mean."""
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
    "nand.t_erase": "3ms",
    "nand.transfer_mts": "800",
    "controller.command_time": "1us",
    "ftl.over_provisioning": "0.2",
    "ftl.gc.separate_frontier": "false",
    "write_buffer.size": "2MiB",
}
BASE = with_keys(profile("demo-enterprise").text, START).to_toml()
"""What every twin starts from; all else is concluded or fitted."""


@dataclass(frozen=True)
class Blind:
    """One random rig and how its twin did."""

    number: int
    truth: Mapping[str, str]
    """The keys that were drawn, as rigs write them."""
    found: Sequence[Conclusion]
    """Those of a key that was drawn."""
    inside: Sequence[bool]
    """Of each of them that has an interval: whether the truth lies in it."""
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

    def happens(self, share: float) -> bool:
        return bool(self._numbers.random() < share)


def drawn(seed: int, number: int) -> dict[str, str]:
    """The keys of a random rig: geometry, times, buffer, collection, link."""
    dice = _Dice(seed, number, 0)
    planes = dice.choice([1, 2, 4])
    return {
        "bandwidth": f"{dice.choice([1600, 3200, 6800])}MB/s",
        "latency": f"{round(dice.spread(3000, 30000))}ns",
        "controller.command_time": f"{round(dice.spread(800, 4000))}ns",
        "nand.channels": str(dice.choice([2, 4, 8])),
        "nand.ways": str(dice.choice([1, 2, 4])),
        "nand.planes": str(planes),
        "nand.page": dice.choice(["8KiB", "16KiB"]),
        "nand.t_read": f"{round(dice.spread(25_000, 90_000))}ns",
        "nand.t_program": f"{round(dice.spread(200_000, 1_500_000))}ns",
        "nand.transfer_mts": f"{round(dice.spread(400, 1600))}",
        "nand.independent_plane_reads": "true" if planes > 1 and dice.happens(0.3) else "false",
        "nand.cache_operations": "true" if dice.happens(0.3) else "false",
        "nand.suspend.program": "true" if dice.happens(0.5) else "false",
        "ftl.over_provisioning": f"{dice.spread(0.12, 0.5):.3f}",
        "ftl.gc.victim": dice.choice(["greedy", "fifo"]),
        "ftl.gc.pace": dice.choice(["paced", "blocking"]),
        "write_buffer.size": f"{dice.choice([1, 2, 4])}MiB",
        "write_buffer.power_loss_protected": dice.choice(["true", "false"]),
    }


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


def unseen(seed: int, number: int, count: int = 20) -> list[Load]:
    """Loads that ``characterise`` does not measure: other sizes, depths and mixes."""
    dice = _Dice(seed, number, 1)
    found: dict[Load, None] = {}
    while len(found) < count:
        kind = dice.choice(["read", "read", "write", "mix", "sequential"])
        depth = dice.choice([2, 3, 6, 12, 24, 48])
        if kind == "read":
            load = Load("randread", 1024 * dice.choice([4, 8, 20, 48, 96]), depth)
        elif kind == "write":
            load = Load("randwrite", 4096, depth, state="steady")
        elif kind == "mix":
            load = Load("randrw", 4096, depth, 1, dice.choice([30.0, 50.0, 90.0]), "steady")
        else:
            load = Load("read", 1024 * dice.choice([32, 64, 256]), depth)
        found[load] = None
    return list(found)


def selftest(
    count: int, *, seed: int = 1, quick: bool = False, jobs: int = 20,
    progress: ProgressCallback | None = None,
) -> list[Blind]:  # fmt: skip
    """Blind twins of so many random rigs. ``quick``: by what ``characterise`` concludes alone,
    without a search. Raises Interrupted on Ctrl-C."""
    done = []
    for place, (number, keys, rig) in enumerate(rigs(seed, count)):

        def report(news: Progress, place: int = place, number: int = number) -> bool:
            if progress is None:
                return True
            share = (place + (news.fraction or 0.0)) / count
            return progress(Progress(share, None, f"rig {place + 1} of {count} ({number})"))

        done.append(_one(number, keys, rig, seed, quick, unseen(seed, number, jobs), report))
    return done


def _one(
    number: int, keys: dict[str, str], rig: str, seed: int, quick: bool, loads: Sequence[Load],
    report: ProgressCallback,
) -> Blind:  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        # Only the drive itself is handed on: nothing below sees its keys.
        order = Order(find("characterise"), Sim("blind", rig), {"seconds": SECONDS}, seed=seed)
        done = begin(
            order,
            RunStore(place),
            progress=lambda news: report(Progress(0.5 * (news.fraction or 0.0))),
            notice=lambda _sentence: None,
            announce=lambda _what: None,
        )
        found = conclusions(findings.read(done.folder))
        twin = with_keys(BASE, settings(found)).to_toml()
        if not quick:
            twin = _fitted(Path(place), done.folder.path, twin, seed, report)
    truth, like = trial.answers([rig, twin], loads, replace(EFFORT, seed=seed))
    errors = {
        name: [
            math.log(other[name] / one[name])
            for one, other in zip(truth, like, strict=True)
            if one.get(name) and other.get(name)
        ]
        for name in COLUMNS
    }
    told = [one for one in found if one.known and one.key in keys]
    wide = [one for one in told if one.low != one.high]
    inside = [bool(_low(one) <= _truth(one, keys) <= _high(one)) for one in wide]
    return Blind(number, keys, told, inside, errors)


def _fitted(place: Path, run: Path, start: str, seed: int, report: ProgressCallback) -> str:
    """The twin after a search that begins at what was concluded."""
    begin_at = place / "start.toml"
    write_to(begin_at, start)
    gathered = gather([str(run)])
    order = fits.Order(gathered.observed, CAPACITY, str(begin_at), {}, seed)
    found = fits.fit(order, lambda news: report(Progress(0.5 + 0.4 * (news.fraction or 0.0))))
    return found.found.space.rig(found.found.vector)


def _low(one: Conclusion) -> float:
    return -math.inf if one.low is None else one.low


def _high(one: Conclusion) -> float:
    return math.inf if one.high is None else one.high


def _truth(one: Conclusion, keys: Mapping[str, str]) -> float:
    """What was drawn, in the unit of a conclusion."""
    rig = _core.Rig(with_keys(BASE, keys).to_toml(), rig_name="blind")
    if one.unit == "B":
        return float(rig.bytes(one.key) or 0)
    said = keys[one.key]
    number = float("".join(c for c in said if c.isdigit() or c == "."))
    return number / 1000 if one.unit == "us" else number
