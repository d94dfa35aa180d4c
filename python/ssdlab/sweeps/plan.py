"""Which runs a sweep is made of."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ssdlab import _core
from ssdlab._version import VERSION
from ssdlab.bench.content import content_of
from ssdlab.errors import InputError
from ssdlab.jobfile import JobText
from ssdlab.plan.prices import Prices, prices
from ssdlab.rig import SUPERBLOCKS_MIN, resolve, scale_doubt, set_over
from ssdlab.sweeps import facts
from ssdlab.sweeps.axes import JOB, Axis, job_options, point, with_options
from ssdlab.sweeps.formula import Condition, FormulaValue, condition, value
from ssdlab.target import Sim, sim

RUNS_MAX = 10**6
"""More are taken for a slip."""
KEY_CHARACTERS = 20
RIGS_MAX = 4096
"""So many rigs are kept at once; runs of one rig stand together."""
PRICE = "price"


@dataclass(frozen=True)
class SweepRun:
    """One of the runs: all that its numbers depend on."""

    key: str
    """The same for the same rig, job, preparation, seed and version, wherever it runs."""
    values: Mapping[str, str]
    """Of each axis, as the table has them, and the seed."""
    target: Sim
    job: JobText
    prepare: str
    seed: int

    @property
    def start(self) -> tuple[str, str, int]:
        """The same for runs that begin on the same prepared drive."""
        return self.target.rig, self.prepare, self.seed


@dataclass(frozen=True)
class Sweep:
    """A question: what varies, and what all runs have in common; InputError where nothing varies,
    nothing is left, a condition cannot be read, or there are more runs than ``runs_max``."""

    job: JobText
    target: str
    """A simulated drive, where no axis says which."""
    axes: Sequence[Axis]
    seeds: int = 1
    """So many runs of each combination, with seeds from 1 on."""
    prepare: str = "fob"
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Keys of the rig that are alike in all runs."""
    where: Sequence[str] = ()
    """Conditions that a combination has to meet (:mod:`ssdlab.sweeps.formula`), over what varies
    and what is known of its rig (:data:`ssdlab.sweeps.facts.FACTS`, its keys, ``price``)."""
    prices: Prices = field(default_factory=prices)
    runs_max: int | None = RUNS_MAX
    scale: int = 1
    """By how much drives are made smaller before their keys are set."""
    _bases: dict[str, Sim] = field(default_factory=dict, repr=False, compare=False)
    _rigs: dict[tuple[str, ...], _Rig] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        keys = [axis.key for axis in self.axes]
        if not keys:
            raise InputError("nothing varies; say what, such as --vary job.iodepth=1..256x2")
        if twice := {key for key in keys if keys.count(key) > 1}:
            raise InputError(f"--vary {min(twice)}: is given twice; join its values by commas")
        for blocks in self.blocks():
            if len({len(block.values) for block in blocks}) > 1:
                told = ", ".join(f"{block.key} has {len(block.values)}" for block in blocks)
                raise InputError(f"keys that go together need as many values each; {told}")
        if self.open:
            return
        product = self.seeds * math.prod(len(block[0].values) for block in self.blocks())
        if self.runs_max is not None and product > self.runs_max:
            raise InputError(
                f"{product:,} runs are more than {self.runs_max:,}; vary less at once, draw a "
                "sample (--sample lhs:1000), or say --yes"
            )
        if not len(self):
            raise InputError(
                f"no combination is left: of {product // self.seeds:,}, none meets "
                + " and ".join(f'"{one}"' for one in self.where)
            )

    @property
    def open(self) -> bool:
        """Whether an axis is a range: a search takes values from it, no runs can be listed."""
        return any(axis.span is not None for axis in self.axes)

    def __len__(self) -> int:
        return self.seeds * self._combinations

    def __iter__(self) -> Iterator[SweepRun]:
        return self.runs()

    def check(self) -> int:
        """The most memory that a run takes, in bytes; InputError as :meth:`runs`, where the job is
        none with one of the options, and where no rig can be built."""
        try:
            return self._checked()
        except InputError as error:
            meant = [axis.key for axis in self.axes if error.message.startswith(f"{axis.key}: unk")]
            if meant and meant[0] in job_options():
                hint = f"; the option of the job is {JOB}{meant[0]}"
                raise InputError(error.message + hint) from None
            raise

    def _checked(self) -> int:
        jobs: set[str] = set()
        rigs: set[int] = set()
        steps: set[str] = set()
        wrong: InputError | None = None
        most = 0
        for run in self._alone() if self.open else self.runs():
            if run.job.text not in jobs:
                jobs.add(run.job.text)
                self._check_job(run)
            if run.prepare not in steps:
                steps.add(run.prepare)
                _core.steps_check(run.prepare)
            if (text := hash(run.target.rig)) in rigs:
                continue
            rigs.add(text)
            try:
                _core.rig_check(run.target.rig, rig_name=run.target.name)
            except InputError as error:
                wrong = wrong or error
            else:
                rig = _core.Rig(run.target.rig, rig_name=run.target.name)
                most = max(most, rig.memory_bytes)
        if not most and wrong is not None:
            raise wrong
        return most

    def _check_job(self, run: SweepRun) -> None:
        try:
            run.target.check(run.job)
        except InputError as error:
            run.target.check(self.job)  # what is wrong without the options has its own line
            text = re.sub(rf"^{re.escape(self.job.name)}:\d+: ", "", error.message)
            varied = any(axis.key == JOB + text.partition(":")[0] for axis in self.axes)
            raise InputError(f"{JOB if varied else f'{self.job.name}: '}{text}") from None

    def runs(self) -> Iterator[SweepRun]:
        """The runs; those that can share a prepared drive stand together; InputError where a key or
        value is none of the rig, or an option none of the job."""
        inner = {axis.key for block in self.blocks() if _of_job(block) for axis in block}
        for _, alike in itertools.groupby(
            self._values(), key=lambda values: [v for key, v in values.items() if key not in inner]
        ):
            group = list(alike)
            for seed in range(1, self.seeds + 1):
                yield from (self.run(values, seed) for values in group)

    def run(self, values: Mapping[str, str], seed: int) -> SweepRun:
        """The run of a value of each axis; raises as :meth:`runs`."""
        axis_point = point(values)
        target = self._rig(values.get("target", self.target), axis_point.rig).target
        job = with_options(self.job, axis_point.job)
        prepare = values.get("prepare", self.prepare)
        text = json.dumps([VERSION, target.rig, content_of(job), prepare, seed])
        key = hashlib.sha256(text.encode()).hexdigest()[:KEY_CHARACTERS]
        told = {axis.key: axis.label(values[axis.key]) for axis in self.axes}
        return SweepRun(key, {**told, "seed": str(seed)}, target, job, prepare, seed)

    def known(self, values: Mapping[str, str], name: str) -> FormulaValue | None:
        """What is known of a combination before it runs: a value of an axis, of its rig, or what
        it costs; None where that is not known."""
        if name in values:
            return value(values[name])
        rig = self._rig(values.get("target", self.target), point(values).rig)
        if name == PRICE:
            drives = rig.fact("members")
            count = 1 if drives is None else int(drives.value)
            cost = self.prices.of({rig.target.name: count or 1})
            return None if cost is None else FormulaValue(cost)
        return rig.fact(name)

    def doubts(self) -> list[str]:
        """In what its drives change as they are made smaller, a sentence for each that does."""
        named = {self.target} if self.target else set()
        named |= {value for axis in self.axes if axis.key == "target" for value in axis.values}
        found = (scale_doubt(self._base(name), self.scale) for name in sorted(named))
        return [doubt for doubt in found if doubt is not None]

    def names(self) -> set[str]:
        """What :meth:`known` may be asked for."""
        first = {axis.key: axis.ends[0] for axis in self.axes}
        rig = self._rig(first.get("target", self.target), point(first).rig)
        return {*(axis.key for axis in self.axes), *facts.names(rig.tree), PRICE}

    def meets(self, values: Mapping[str, str]) -> bool:
        """Whether a value of each axis meets the conditions."""
        return all(one.holds(lambda name: self.known(values, name)) for one in self._conditions)

    @cached_property
    def _combinations(self) -> int:
        if self.where:
            return sum(1 for _ in self._values())
        return math.prod(len(block[0].values) for block in self.blocks())

    @cached_property
    def _conditions(self) -> list[Condition]:
        known = self.names() if self.where else set()
        return [condition(one, "--where", known) for one in self.where]

    def blocks(self) -> list[list[Axis]]:
        """Axes that go together; what changes the job alone stands last, and varies fastest."""
        found: dict[str, list[Axis]] = {}
        for axis in self.axes:
            found.setdefault(axis.group or f"={axis.key}", []).append(axis)
        return sorted(found.values(), key=_of_job)

    def _alone(self) -> Iterator[SweepRun]:
        """Runs in which one axis after the other takes all its values, or both ends of its range;
        the others stay at their first."""
        first = {axis.key: axis.ends[0] for axis in self.axes}
        for block in self.blocks():
            for own in zip(*(axis.ends for axis in block), strict=True):
                yield self.run({**first, **dict(zip((a.key for a in block), own, strict=True))}, 1)

    def _values(self) -> Iterator[dict[str, str]]:
        """A value of each axis, of the combinations that meet the conditions."""
        if self.open:
            wrong = next(axis.key for axis in self.axes if axis.span is not None)
            raise InputError(f"--vary {wrong}: is a range without values; draw a sample of it")
        blocks = self.blocks()
        names = [axis.key for block in blocks for axis in block]
        for rows in itertools.product(
            *(list(zip(*(axis.values for axis in block), strict=True)) for block in blocks)
        ):
            values = dict(zip(names, itertools.chain(*rows), strict=True))
            if self.meets(values):
                yield values

    def _rig(self, name: str, keys: Mapping[str, str]) -> _Rig:
        own = {**self.overrides, **keys}
        known = (name, *itertools.chain(*own.items()))
        if known not in self._rigs:
            base = self._base(name)
            rig = base.tree()
            small = base.smaller(self.scale, fewest=SUPERBLOCKS_MIN)
            rig.set_all(list(set_over(small, own).items()))
            if len(self._rigs) >= RIGS_MAX:
                self._rigs.clear()
            self._rigs[known] = _Rig(Sim(base.name, rig.to_toml()), rig)
        return self._rigs[known]

    def _base(self, name: str) -> Sim:
        if name not in self._bases:
            found = sim(resolve(name))
            if found is None:
                raise InputError(f"{name}: a sweep runs on simulated drives; name a profile or rig")
            self._bases[name] = found
        return self._bases[name]


@dataclass(frozen=True)
class _Rig:
    """A rig with its keys set, and what was asked of it."""

    target: Sim
    tree: _core.Rig
    _facts: dict[str, FormulaValue | None] = field(default_factory=dict)

    def fact(self, name: str) -> FormulaValue | None:
        if name not in self._facts:
            self._facts[name] = facts.fact(self.tree, name)
        return self._facts[name]


def _of_job(block: Sequence[Axis]) -> bool:
    return all(axis.of_job for axis in block)
