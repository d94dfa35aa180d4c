"""The parameters of a drive that measurements can tell: where a rig says them, how well they are
known beforehand, and what a rig with other values is."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from ssdlab import _core, units
from ssdlab.errors import InputError
from ssdlab.fits.observations import Observation
from ssdlab.numeric import Floats

Kind = Literal["time", "rate", "number"]


@dataclass(frozen=True)
class FitParameter:
    """A value of a rig that can be fitted, in logarithms."""

    key: str
    """As ``--set`` takes it."""
    name: str
    kind: Kind
    """Times are in ns, rates in bytes/s."""
    width: float
    """Standard deviation of its logarithm beforehand: how far drives of a kind differ in it."""
    usual: float = 1.0
    """Where the rig that is started from has none."""
    low: float = 0.0
    high: float = np.inf
    writes: bool = False
    """Whether only writes show it."""
    reads: bool = False
    """Whether only reads show it."""
    ceiling: Literal["", "iops", "bytes"] = ""
    """Of what it is a ceiling, which only a rate that no longer grows with the depth can show."""
    beforehand: float = 0.0
    """The width without what benchmarks have told."""
    stated: bool = False
    """Whether it is only fitted where the rig that is started from has it."""
    counted: bool = False
    """Whether a drive's rates tell it only together with how many there are of it."""
    apart: float = 0.0
    """Standard deviation of its logarithm over other choices of how the drive is made, which no
    derivative tells."""

    def read(self, rig: _core.Rig) -> float:
        """Its value in a rig, the mean where that differs by type of page."""
        if (times := _by_page(self.key, rig)) is not None:
            return float(np.mean(times))
        said = rig.get(self.key)
        value = 0.0 if said is None else amount(self.key, said)
        return value if value > 0 else self.usual

    def written(self, value: float) -> str:
        """A value as rigs write it."""
        if self.kind == "time":
            return f"{round(value)}ns"
        return f"{value / 1e3:.0f}kB/s" if self.kind == "rate" else f"{value:.6g}"

    @property
    def unit(self) -> str:
        """Of its values."""
        return {"time": "ns", "rate": "B/s", "number": ""}[self.kind]

    def shown(self, value: float) -> str:
        """A value as people read it."""
        if self.kind == "time":
            return units.latency(value)
        return units.bytes_per_s(value) if self.kind == "rate" else units.number(value)


NO_LIMIT = 1e15
"""A rate that is no limit."""
PARAMETERS = (
    FitParameter("latency", "latency of host and link", "time", 0.7, 6_500, 100, 1e6),
    FitParameter(
        "host_time", "host processor, per I/O of a job", "time", 0.3, 2_000, 20, 2e5,
        ceiling="iops",
    ),
    FitParameter(
        "host_fill_rate", "host processor, data of writes", "rate", 0.4, NO_LIMIT, 1e8, 1e11,
        writes=True, ceiling="iops", stated=True,
    ),
    FitParameter("bandwidth", "link bandwidth", "rate", 0.25, 550e6, 1e7, 1e11, ceiling="bytes"),
    FitParameter(
        "controller.command_time", "controller, per command", "time", 0.8, 1_500, 50, 2e5,
        ceiling="iops",
    ),
    FitParameter(
        "controller.write_time", "controller, per write on top", "time", 1.2, 300, 5, 2e5,
        writes=True,
    ),
    FitParameter(
        "controller.write_latency", "controller, latency of a write", "time", 1.1, 0, 100, 2e5,
        writes=True, stated=True,
    ),
    FitParameter("nand.t_read", "tR", "time", 0.5, 60_000, 1_000, 5e5, reads=True),
    FitParameter(
        "nand.transfer_mts", "flash channel, MT/s", "number", 0.4, 800, 20, 5_000, counted=True
    ),
    FitParameter(
        "nand.t_program", "tPROG", "time", 0.4, 700_000, 5_000, 1e7, writes=True, counted=True
    ),
    FitParameter(
        "ftl.over_provisioning", "over-provisioning", "number", 0.5, 0.1, 0.03, 1.5, writes=True
    ),
)  # fmt: skip
"""All of them. What a drive has for a value of its own is only ever changed together with what
the data say of it; everything else stays as in the rig that is started from."""
HOST, FILL = "host_time", "host_fill_rate"
NVME_WRITES = {FILL: "8GB/s"}
"""What writes take besides, where nothing says it: the data that a host makes for them (fio changes
it before each), as the single jobs of two drives have it, which wait for nothing but the processor
(P4610 and P5800X: 11.5 and 7.6 GB/s)."""
SATA_WRITES = {FILL: "3GB/s", "controller.write_latency": "3us"}
"""The same behind SATA: by how much longer fio ran in user mode for writes (2.3 to 4.7 GB/s in
eight runs of four drives at four hosts, 15 GB/s in one), and what is left of writes at depth 1 and
2 of three drives (nothing to 16 us; fio-plot), chosen with `reproduce twin` in view.
"""
SATA_SLOTS = 32
HOSTS: Mapping[str, tuple[float, float]] = {
    "latency": (6_500, 1.0),
    "host_time": (12_000, 0.3),
    "controller.command_time": (15_000, 0.22),
    "controller.write_time": (2_000, 0.8),
}
"""Behind SATA the host and its port are slower than the drive: what they take, as nine runs of four
drives at four hosts have it (fio-plot; processor time of fio at depth 32, ceilings of drives that
are rated for more), in the place of what a profile says; value and width of its logarithm."""
BY_PAGE = {"nand.t_read": "nand.read_times", "nand.t_program": "nand.program_times"}
"""Keys that a rig may say by type of page instead."""
BOTH_WAYS = 1.95
"""Processor time of an I/O by that of its submission: its completion takes about as much (the one
host of four that was the ceiling of its jobs, fio-plot)."""
FITTED = "fitted"
FLAT = 0.3
"""A rate is at its ceiling where it grows with less than this power of the depth."""
CLOSE = 1.5
"""Depths this far apart tell whether it grows."""
UNSEEN = 0.5
"""By so much less a ceiling may leave what is known beforehand where no rate came to it: what
slows a drive down before is requests that meet at a die."""


@dataclass(frozen=True)
class FitSpace:
    """The rig that is started from and the parameters that are to be fitted."""

    start: str
    """TOML."""
    parameters: Sequence[FitParameter]
    prior: Floats
    """Logarithms of their values in the rig that is started from."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Keys that are set as told (``--fix``, what was found in closed form)."""

    @staticmethod
    def of(
        start: str, observed: Sequence[Observation], fixed: Mapping[str, str],
        widths: Mapping[str, float] = {}, apart: Mapping[str, float] = {},
    ) -> FitSpace:  # fmt: skip
        """The parameters that these observations could show; ``widths`` are those of parameters of
        ``start`` that are known better than of other drives, ``apart`` those over other choices.
        Raises InputError where a fixed key is none of the rig."""
        rig = with_keys(start, fixed)
        writes = any(observation.load.reads < 1 for observation in observed)
        reads = any(observation.load.reads > 0 for observation in observed)
        timed = any(set(observation.measured) - {"waf"} for observation in observed)
        closed = {_bare(key) for key in fixed}
        hosts = HOSTS if sata(rig) and rig.get("host_time") is not None else {}
        chosen = [
            replace(
                parameter,
                width=width if reached(parameter, observed, sata(rig)) else UNSEEN * width,
            )
            for parameter in PARAMETERS
            for width in [hosts.get(parameter.key, (0.0, parameter.width))[1]]
            if (writes or not parameter.writes)
            and (reads or not parameter.reads)
            and (timed or parameter.key == "ftl.over_provisioning")
            and _bare(parameter.key) not in closed
            and not (parameter.stated and rig.get(parameter.key) is None)
        ]
        chosen = [
            replace(
                parameter,
                beforehand=parameter.width,
                width=widths.get(_bare(parameter.key), parameter.width),
                apart=apart.get(_bare(parameter.key), 0.0),
            )
            for parameter in chosen
        ]
        prior = np.log([parameter.read(rig) for parameter in chosen])
        return FitSpace(start, chosen, prior, dict(fixed))

    @property
    def widths(self) -> Floats:
        """Standard deviations of the prior."""
        return np.array([parameter.width for parameter in self.parameters])

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Least and greatest logarithms."""
        return bounds(self.parameters)

    def keys(self, vector: Floats) -> dict[str, str]:
        """What a vector of logarithms sets."""
        values = np.exp(vector)
        pairs = zip(self.parameters, values, strict=True)
        return {parameter.key: parameter.written(float(value)) for parameter, value in pairs}

    def rig(self, vector: Floats) -> str:
        """The rig with these values, as TOML."""
        return with_keys(self.start, {**self.overrides, **self.keys(vector)}).to_toml()


def sata(rig: _core.Rig) -> bool:
    """Whether a drive has the queue of SATA."""
    return 0 < int(rig.get("queue_slots") or 0) <= SATA_SLOTS


def bounds(parameters: Sequence[FitParameter]) -> tuple[Floats, Floats]:
    """Least and greatest logarithms of parameters."""
    low = np.log([max(parameter.low, 1e-9) for parameter in parameters])
    return low, np.log([parameter.high for parameter in parameters])


def with_keys(rig: str, keys: Mapping[str, str]) -> _core.Rig:
    """A rig with keys set; raises InputError where one is wrong."""
    found = _core.Rig(rig, rig_name="rig")
    for key, value in keys.items():
        found.set(key, value)
    for key, value in keys.items():
        times = _by_page(_bare(key), found)
        if times is None or BY_PAGE[_bare(key)] in keys:
            continue
        # The rig goes by these instead: they keep their proportions.
        ratio = amount(key, value) / float(np.mean(times))
        found.set(BY_PAGE[_bare(key)], json.dumps([f"{round(ratio * time)}ns" for time in times]))
    return found


def _by_page(key: str, rig: _core.Rig) -> list[float] | None:
    """The times that a rig has by type of page in the place of a key, ns."""
    if key not in BY_PAGE or (said := rig.get(BY_PAGE[key])) is None:
        return None
    return [amount(key, time) for time in json.loads(said)]


def reached(parameter: FitParameter, observed: Sequence[Observation], behind_sata: bool) -> bool:
    """Whether measurements came to a parameter, if it is a ceiling. That of a single job at NVMe is
    its host's: so it was at all three hosts where several jobs were measured, too (P4610, P5800X,
    980 PRO), and behind SATA at one of four."""
    if not parameter.ceiling:
        return True
    alone = all(observation.load.numjobs == 1 for observation in observed)
    of_host = alone and (not behind_sata or busy(observed))
    return flat(observed, parameter.ceiling) and (parameter.key in (HOST, FILL) or not of_host)


def submitting(observed: Sequence[Observation]) -> float:
    """Processor time of an I/O, ns, by the time of its submission (lat less clat) where a single
    job is deep enough not to wait; 0 where that is not known."""
    deep = (one for one in observed if one.load.numjobs == 1 and one.load.depth >= SATA_SLOTS)
    gaps = [gap for one in deep if (gap := one.submission_us) is not None]
    return 1e3 * BOTH_WAYS * float(np.median(gaps)) if gaps else 0.0


def busy(observed: Sequence[Observation]) -> bool:
    """Whether the processor of a single job is its ceiling, as its submission tells."""
    rates = [rate for observation in observed if (rate := observation.rate)]
    return bool(rates) and submitting(observed) * max(rates) > 0.9e9


def flat(observed: Sequence[Observation], what: str) -> bool:
    """Whether the highest rate measured no longer grew with the depth."""
    curves: dict[object, list[tuple[int, float]]] = {}
    for observation in observed:
        if rate := observation.rate:
            size = observation.load.bs if what == "bytes" else 1
            key = replace(observation.load.curve, numjobs=1)
            curves.setdefault(key, []).append((observation.load.depth, rate * size))
    if not curves:
        return False
    points = sorted(max(curves.values(), key=lambda own: max(rate for _, rate in own)))
    top, most = max(points, key=lambda point: point[1])
    before = [rate for depth, rate in points if depth <= top / CLOSE]
    depths = [depth for depth, _ in points if depth <= top / CLOSE]
    if not before:
        return top < points[-1][0]
    slope = math.log(most / before[-1]) / math.log(top / depths[-1])
    return slope < FLAT or top < points[-1][0]


def _bare(key: str) -> str:
    return key.removeprefix("below.")


def amount(key: str, said: str) -> float:
    """A time in ns, a rate in bytes/s, a size or a plain number, as rigs write them; InputError
    where it is none of these."""
    if said.strip().endswith("/s"):
        return float(units.parse_rate(key, said))
    found = units.quantity(said)
    if found is None or not 0 <= found[0] < math.inf:
        raise InputError(f"{key}: found {said}, expected a number")
    return found[0]
