"""Which runs a sweep is made of."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ssdlab import _core
from ssdlab._version import VERSION
from ssdlab.errors import InputError
from ssdlab.jobfile import JobText
from ssdlab.rig import resolve
from ssdlab.sweeps.axes import Axis, point, with_options
from ssdlab.target import Sim, sim

RUNS_MAX = 10**6
KEY_CHARACTERS = 20


@dataclass(frozen=True)
class Run:
    """One of the runs: all that its numbers depend on."""

    key: str
    """The same for the same rig, job, preparation, seed and version, wherever it runs."""
    values: Mapping[str, str]
    """Of each axis, and the seed."""
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
    """A question: what varies, and what all runs have in common."""

    job: JobText
    target: str
    """A simulated drive, where no axis says which."""
    axes: Sequence[Axis]
    seeds: int = 1
    """So many runs of each combination, with seeds from 1 on."""
    prepare: str = "fob"
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Keys of the rig that are alike in all runs."""
    together: bool = False
    """The first values of all axes, then the second ...; not each with each."""
    _rigs: dict[tuple[str, ...], Sim] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        keys = [one.key for one in self.axes]
        if not keys:
            raise InputError("nothing varies; say what, such as --vary job.iodepth=1..256x2")
        if twice := {key for key in keys if keys.count(key) > 1}:
            raise InputError(f"--vary {min(twice)}: is given twice; join its values by commas")
        lengths = {one.key: len(one.values) for one in self.axes}
        if self.together and len(set(lengths.values())) > 1:
            told = ", ".join(f"{key} has {length}" for key, length in lengths.items())
            raise InputError(f"--zip: all keys need as many values as each other; {told}")
        if len(self) > RUNS_MAX:
            raise InputError(f"{len(self):,} runs are more than {RUNS_MAX:,}; vary less at once")

    def __len__(self) -> int:
        lengths = [len(one.values) for one in self.axes]
        return self.seeds * (min(lengths, default=1) if self.together else math.prod(lengths))

    def check(self) -> int:
        """The most memory that a run takes, in bytes.

        Raises InputError as :meth:`runs`, where the job is none with one of the options, and where
        no rig can be built.
        """
        jobs: set[str] = set()
        for run in self.runs():
            if run.job.text not in jobs:
                jobs.add(run.job.text)
                run.target.check(run.job)
        wrong: list[InputError] = []
        sizes: list[int] = []
        for one in self._rigs.values():
            try:
                _core.rig_check(one.rig, rig_name=one.name)
            except InputError as error:
                wrong.append(error)
            else:
                sizes.append(_core.Rig(one.rig, rig_name=one.name).memory_bytes)
        if not sizes:
            raise wrong[0]
        return max(sizes)

    def runs(self) -> Iterator[Run]:
        """The runs; those that can share a prepared drive stand together.

        Raises InputError where a key or value is none of the rig, or an option none of the job.
        """
        # What changes the job alone varies fastest.
        axes = sorted(self.axes, key=lambda one: one.key.startswith("job."))
        rows = (zip if self.together else itertools.product)(*(one.values for one in axes))
        names = [one.key for one in axes]
        inner = {name for name in names if name.startswith("job.")}
        for _, alike in itertools.groupby(
            (dict(zip(names, row, strict=True)) for row in rows),
            key=lambda values: [v for key, v in values.items() if key not in inner],
        ):
            group = list(alike)
            for seed in range(1, self.seeds + 1):
                yield from (self._run(values, seed) for values in group)

    def _run(self, values: Mapping[str, str], seed: int) -> Run:
        found = point(values)
        target = self._rig(values.get("target", self.target), found.rig)
        job = with_options(self.job, found.job)
        prepare = values.get("prepare", self.prepare)
        text = json.dumps([VERSION, target.rig, job.text, prepare, seed])
        key = hashlib.sha256(text.encode()).hexdigest()[:KEY_CHARACTERS]
        return Run(key, {**values, "seed": str(seed)}, target, job, prepare, seed)

    def _rig(self, name: str, keys: Mapping[str, str]) -> Sim:
        own = {**self.overrides, **keys}
        known = (name, *itertools.chain(*own.items()))
        if known not in self._rigs:
            target = sim(resolve(name))
            if target is None:
                raise InputError(f"{name}: a sweep runs on simulated drives; name a profile or rig")
            rig = _core.Rig(target.rig, rig_name=target.source or target.name)
            for key, value in own.items():
                rig.set(key, value)
            self._rigs[known] = Sim(target.name, rig.to_toml())
        return self._rigs[known]
