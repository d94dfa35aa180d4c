"""Where a search starts: the shipped drive that is most like the one measured, at its capacity."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path

import numpy as np

from ssdlab import _core
from ssdlab.errors import InputError
from ssdlab.fits import closed
from ssdlab.fits.observations import FitWorkload, Observation
from ssdlab.fits.parameters import (
    FILL,
    HOST,
    HOSTS,
    NVME_WRITES,
    PARAMETERS,
    SATA_WRITES,
    FitSpace,
    amount,
    busy,
    reached,
    sata,
    submitting,
    with_keys,
)
from ssdlab.fits.search import FitTarget, SearchEnd, leaping, search
from ssdlab.numeric import Floats
from ssdlab.rig import profiles, resolve
from ssdlab.target import sim

NEAR = 2.5
"""A shipped drive is like one of at most so many times its capacity, and of as small a part."""
ROWS = 24
"""So many observations, evenly taken, choose among shipped drives."""
ROUNDS_CLOSED = 8
ROOM = 0.8
"""Of the shortest time between requests that was seen, a ceiling that was not is at most this."""
SUPERBLOCKS = 256
"""Drives that are much smaller than any shipped one have shorter blocks instead of fewer."""
MOST_WAYS = 64
"""Of a channel, in a rig: larger drives have larger dies instead."""
DIES_WIDTH = 0.5
"""Standard deviation of the logarithm of the number of dies, among drives of a capacity."""
DIES = ("nand.channels", "nand.ways")
DIES_TIMES = (1, 2, 4, 8)
"""Dies are tried that are so many times more or fewer where nothing tells how many there are."""
SATA_IOPS, SATA_BYTES = 115_000, 580e6
"""What SATA allows at most; a drive that does less at depth is one."""
MOST_PARITY = 0.4
"""Of what is written, the parity of a drive."""
TOO_SPECIAL = ("ftl.compression.granule", "ftl.map.entries")
"""Keys of firmware that few drives have."""
XPOINT = "xpoint"
"""A drive of 3D XPoint, none of which is shipped: `xpoint.toml`."""
RARE = 4.2
"""Minus twice the logarithm of one in eight: so few are not of flash."""
ABOUT_AS_LIKELY = 2.5
"""Minus twice the logarithm of how much less likely a start may be than the likeliest."""
RATED_WIDTH = 0.15
"""Standard deviation of the logarithm of what drives do by what they are rated for: a judgement."""
OTHERS = [
    (size, depth, jobs)
    for size in (4096, 16384, 65536)
    for depth, jobs in ((1, 1), (8, 1), (64, 1), (256, 1), (8, 8), (64, 8))
]
"""Sizes, depths and jobs by which starts are compared."""
LEFT_OUT = ("demo", "lab", "wd-zn540")
"""Beginnings of names of drives that do not exist, or are zoned."""


COMMAND = next(one for one in PARAMETERS if one.key == "controller.command_time")


@dataclass(frozen=True)
class Start:
    """A rig to start from."""

    name: str
    rig: str
    """TOML, at the capacity of the drive measured."""
    widths: Mapping[str, float] = field(default_factory=dict)
    """Of parameters that benchmarks have told already."""
    apart: Mapping[str, float] = field(default_factory=dict)
    """Of parameters: standard deviations over other choices of how the drive is made."""
    far: float = 0.0
    """How far its own capacity and rating are from what was measured, in standard deviations
    (:data:`DIES_WIDTH`, :data:`RATED_WIDTH`)."""

    def having(
        self, keys: Mapping[str, str], widths: Mapping[str, float],
        apart: Mapping[str, float] = {},
    ) -> Start:  # fmt: skip
        """With keys set of which is known how well; raises InputError where that is no drive."""
        rig = with_keys(self.rig, keys).to_toml()
        _core.rig_check(rig, rig_name=self.name)
        return replace(
            self, rig=rig, widths={**self.widths, **widths}, apart={**self.apart, **apart}
        )

    def space(self, observed: Sequence[Observation], fixed: Mapping[str, str]) -> FitSpace:
        """Its parameters."""
        return FitSpace.of(self.rig, observed, fixed, self.widths, self.apart)


def named(place: str, capacity: int | None) -> Start:
    """That of a profile or a rig file, at a capacity; InputError where it is no single SSD."""
    target = sim(resolve(place))
    if target is None:
        raise InputError(f"--start {place}: expected a profile's name or a rig file (.toml)")
    return Start(Path(place).stem, _at(_core.Rig(target.rig, rig_name=place), capacity, place))


def likely(
    capacity: int | None, observed: Sequence[Observation] = (), without: Collection[str] = ()
) -> list[Start]:
    """The shipped SSDs of about that capacity, and of the bus that measurements tell; those next
    to it where there are none. None of those called as ``without`` says."""
    slots = _slots(observed)
    found = []
    for profile in profiles():
        rig = profile.rig()
        left_out = profile.name.startswith(LEFT_OUT) or profile.name in without
        if left_out or rig.find("ssd") not in ([""], ["below."]):
            continue
        if any(rig.get(key) is not None for key in TOO_SPECIAL) or not slots(rig):
            continue
        found.append((_far(rig, capacity), profile.name, rig))
    found.sort(key=lambda one: one[:2])
    near = [one for one in found if one[0] <= math.log(NEAR)] or found[:8]
    ceilings = _ceilings([rig for _, _, rig in found], observed)
    text = (resources.files(__package__) / f"{XPOINT}.toml").read_text("utf-8")
    xpoint = _core.Rig(text, rig_name=XPOINT)
    if slots(xpoint):
        near.append((_far(xpoint, capacity), XPOINT, xpoint))

    def usual(name: str, rig: _core.Rig) -> dict[str, str]:
        return _behind(observed) if sata(rig) else {} if name == XPOINT else ceilings

    return [
        Start(
            name,
            with_keys(_at(rig, capacity, name), usual(name, rig)).to_toml(),
            far=math.hypot(far / DIES_WIDTH, _slow(rig, observed)),
        )
        for far, name, rig in near
    ]


def cached(start: Start) -> bool:
    """Whether it has an SLC cache."""
    return with_keys(start.rig, {}).get("ftl.slc_cache.t_program") is not None


def of_dies(start: Start) -> list[Start]:
    """A start with more and fewer dies on each channel, as far as that is a drive, itself first."""
    ways = int(with_keys(start.rig, {}).get("nand.ways") or 1)
    counts = [ways * times for times in DIES_TIMES]
    counts += [ways // times for times in DIES_TIMES[1:] if ways % times == 0]
    found = []
    for count in counts:
        with contextlib.suppress(InputError):
            made = start.having({"nand.ways": str(count)}, {})
            found.append(replace(made, far=start.far + abs(math.log(count / ways)) / DIES_WIDTH))
    return found


def behind_fio(start: Start) -> Start:
    """The start behind a host and a port that take their time for writes, if it has a link."""
    rig = with_keys(start.rig, {})
    if rig.get("bandwidth") is None:
        return start
    usual = SATA_WRITES if sata(rig) else NVME_WRITES
    keys = {key: said for key, said in usual.items() if rig.get(key) is None}
    return replace(start, rig=with_keys(start.rig, keys).to_toml())


def _far(rig: _core.Rig, capacity: int | None) -> float:
    """Logarithm of a drive's capacity by another, without the sign."""
    return abs(math.log((rig.bytes("capacity") or 1) / capacity)) if capacity else 0.0


def _slow(rig: _core.Rig, observed: Sequence[Observation]) -> float:
    """By how much a drive is rated for fewer commands than one does that did what was measured and
    was not at its ceiling there: nothing, or in standard deviations."""
    if not _fast(observed) or reached(COMMAND, observed, sata(rig)):
        return 0.0
    most = max(rate for observation in observed if (rate := observation.rate)) / ROOM
    return max(0.0, math.log(COMMAND.read(rig) * most / 1e9)) / RATED_WIDTH


def _behind(observed: Sequence[Observation]) -> dict[str, str]:
    """The host and port that a drive of SATA is behind."""
    values = {key: value for key, (value, _) in HOSTS.items()}
    if busy(observed):
        values[HOST] = submitting(observed)
        values["controller.command_time"] = (
            ROOM * 1e9 / max(rate for observation in observed if (rate := observation.rate))
        )
    return {
        parameter.key: parameter.written(values[parameter.key])
        for parameter in PARAMETERS
        if parameter.key in values
    }


def _ceilings(rigs: Sequence[_core.Rig], observed: Sequence[Observation]) -> dict[str, str]:
    """Ceilings that no measurement came to, as drives of the bus have them: the drive that is like
    the one measured at small depth need not be like it there."""
    rates = [(rate, observation.load) for observation in observed if (rate := observation.rate)]
    if not rigs or not _fast(observed):
        return {}
    found = {}
    for parameter in PARAMETERS:
        if parameter.key == FILL or reached(parameter, observed, behind_sata=False):
            continue
        # A drive that has been that fast is one of those whose ceiling is higher.
        if parameter.ceiling == "bytes":
            most = max(rate * load.bs for rate, load in rates)
            values = [value for rig in rigs if (value := parameter.read(rig)) * ROOM > most]
        else:
            alone = parameter.key == HOST
            most = max(rate / (load.numjobs if alone else 1) for rate, load in rates) / ROOM
            values = [value for rig in rigs if (value := parameter.read(rig)) * most < 1e9]
            most = 1e9 / most
        found[parameter.key] = parameter.written(float(np.median(values or [most])))
    return found


def _slots(observed: Sequence[Observation]) -> Callable[[_core.Rig], bool]:
    """Whether a drive has the bus that measurements tell."""
    fast = _fast(observed)
    deep = any(
        observation.load.depth >= 16 and observation.load.reads == 1 and observation.rate
        for observation in observed
    )
    if fast or deep:
        return lambda rig: sata(rig) != fast
    return lambda _: True


def _fast(observed: Sequence[Observation]) -> bool:
    """Whether a drive did more than SATA allows."""
    rates = [(observation.rate or 0.0, observation.load.bs) for observation in observed]
    return any(rate > SATA_IOPS or rate * size > SATA_BYTES for rate, size in rates)


def _at(rig: _core.Rig, capacity: int | None, name: str) -> str:
    """The rig with another capacity: so many more dies on each channel, the same spare share."""
    if rig.find("ssd") not in ([""], ["below."]):
        raise InputError(f"--start {name}: is no single SSD, expected one to start from")
    spare = rig.get("ftl.over_provisioning")
    if capacity is not None and (ratio := capacity / (rig.bytes("capacity") or 1)) != 1.0:
        ways = int(rig.get("nand.ways") or 1)
        rig.set("capacity", f"{capacity // 4096 * 4096}B")
        # Dies are a power of two more or fewer: a channel has as many as its neighbours.
        most = max(1, round(ways * 2 ** round(math.log2(ratio))))
        rig.set("nand.ways", str(min(MOST_WAYS, most)))
        if ratio < 1 / NEAR:
            _shorten(rig, capacity)
    if spare is not None:
        rig.set("ftl.over_provisioning", spare)
    return rig.to_toml()


def _shorten(rig: _core.Rig, capacity: int) -> None:
    """Blocks halved until there are enough superblocks, as far as that is a drive. They are erased
    in as much less time: a few pages do not take as long as a whole block."""
    units = [int(rig.get(f"nand.{key}") or 1) for key in ("channels", "ways", "planes")]
    row = math.prod(units) * (rig.bytes("nand.page") or 1)
    whole = pages = int(rig.get("nand.pages_per_block") or 1)
    while pages % 2 == 0 and capacity < SUPERBLOCKS * row * pages:
        pages //= 2
    if pages == whole:
        return
    erase = amount("nand.t_erase", rig.get("nand.t_erase") or "0ns") * pages / whole
    keys = [("nand.pages_per_block", str(pages)), ("nand.t_erase", f"{round(erase)}ns")]
    shorter = rig.copy()
    shorter.set_all(keys)
    with contextlib.suppress(InputError):
        _core.rig_check(shorter.to_toml(), rig_name="rig")
        rig.set_all(keys)


def closed_forms(space: FitSpace, loads: Sequence[FitWorkload], vectors: Sequence[Floats]) -> list[
    list[Mapping[str, float]]
]:  # fmt: skip
    """What closed forms say of the workloads for each vector of parameters."""
    drive = closed.DriveFigures.of(with_keys(space.start, space.overrides))
    columns = np.exp(np.array(vectors)).T
    keys = [parameter.key for parameter in space.parameters]
    return closed.several(drive, loads, dict(zip(keys, columns, strict=True)))


def held(start: Start, observed: Sequence[Observation], fixed: Mapping[str, str]) -> SearchEnd:
    """The parameters by closed forms, but those that benchmarks have told, which know better."""
    if not start.widths:
        return in_closed_form(start, observed, fixed)
    rig = with_keys(start.rig, fixed)
    kept = {key: said for key in start.widths if (said := rig.get(key)) is not None}
    free = in_closed_form(start, observed, {**fixed, **kept})
    moved = start.having(free.space.keys(free.vector), {})
    return in_closed_form(moved, observed, fixed, 0)


def in_closed_form(
    start: Start, observed: Sequence[Observation], fixed: Mapping[str, str],
    rounds: int = ROUNDS_CLOSED,
) -> SearchEnd:  # fmt: skip
    """The parameters by closed forms alone."""
    space = start.space(observed, fixed)
    loads = [observation.load for observation in observed]
    target = FitTarget.of(observed)
    way = leaping if rounds else search
    return way(
        space, target, lambda vectors: closed_forms(space, loads, vectors), space.prior, rounds
    )


def ranked(
    starts: Sequence[Start], observed: Sequence[Observation], fixed: Mapping[str, str]
) -> list[tuple[Start, SearchEnd]]:
    """The starts with their fits in closed form, the best to start from first."""
    step = max(1, math.ceil(len(observed) / ROWS))
    some = observed[::step]
    fits = [(start, in_closed_form(start, some, fixed)) for start in starts]
    # Dies are a ceiling of the drive as its commands are.
    limited = reached(COMMAND, observed, behind_sata=False) or not _fast(observed)
    odd = [0.0] * len(starts) if limited else _odd(starts)
    costs = np.array(
        [
            unlikely(end) + start.far**2 + (RARE if start.name == XPOINT else far)
            for (start, end), far in zip(fits, odd, strict=True)
        ]
    )
    apart = _apart(fits, costs, observed)
    order = sorted(
        range(len(fits)), key=lambda place: (apart[place], costs[place], fits[place][0].name)
    )
    return [fits[place] for place in order]


def _apart(
    fits: Sequence[tuple[Start, SearchEnd]], costs: Floats, observed: Sequence[Observation]
) -> Floats:
    """How far what each start says of other workloads is from what all say, each as often as it is
    likely: the middle one errs least, whichever of them is true. Those that are unlikely come after
    them, by their costs."""
    known = dict.fromkeys((one.load.rw, one.load.rwmixread, one.load.state) for one in observed)
    loads = [FitWorkload(rw, *other, mix, state) for rw, mix, state in known for other in OTHERS]
    logs = np.array(
        [
            [math.log(answer["iops"]) for answer in closed_forms(end.space, loads, [end.vector])[0]]
            for _, end in fits
        ]
    )
    likely = np.exp(-0.5 * (costs - costs.min()))
    apart: Floats = np.abs(logs[:, None] - logs[None]).mean(axis=2) @ (likely / likely.sum())
    return np.where(costs - costs.min() <= ABOUT_AS_LIKELY, apart, apart.max() + costs)


def unlikely(end: SearchEnd) -> float:
    """Minus twice the logarithm of how likely measurements are of drives like a start, in what
    starts differ (Laplace): of those that need values of less likelihood or more exactly so."""
    scaled = end.jacobian * np.sqrt(end.weights)[:, None] * end.space.widths
    _, narrowed = np.linalg.slogdet(np.eye(scaled.shape[1]) + scaled.T @ scaled)
    return float(end.cost + narrowed)


def _odd(starts: Sequence[Start]) -> list[float]:
    """By how much drives read another number of pages at once than is usual, squared, in standard
    deviations: dies, and planes that read by themselves, are a ceiling, too."""
    pages = np.log([closed.DriveFigures.of(with_keys(start.rig, {})).at_once for start in starts])
    found: list[float] = (((pages - np.median(pages)) / DIES_WIDTH) ** 2).tolist()
    return found


def overhead(observed: Sequence[Observation]) -> int:
    """Program units of a stripe of parity that explains the write amplification of sequential
    writes; 0 where none is known or needed."""
    found = [
        observation.measured["waf"]
        for observation in observed
        if "waf" in observation.measured
        and observation.load.sequential
        and observation.load.reads == 0
    ]
    extra = float(np.median(found)) - 1.0 if found else 0.0
    # More than parity takes is another thing: an SLC cache that is folded.
    return min(255, round(1 / extra) + 1) if 0.004 < extra < MOST_PARITY else 0
