"""A grid of arrays, a job on each of them, and the same job on one drive alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from ssdlab import bench
from ssdlab.answer import Check
from ssdlab.arrays.attachment import DIRECT, Attachment
from ssdlab.arrays.performance import Performance
from ssdlab.arrays.rigs import STRIPED, ArrayShape, array_rig
from ssdlab.checks import examine, of_result
from ssdlab.checks.steadiness import NOISE
from ssdlab.jobfile import JobText
from ssdlab.progress import ProgressCallback
from ssdlab.simulation import sim_shapes
from ssdlab.target import Settings, Sim

Key = TypeVar("Key")
ONE = "one drive"
"""What the drive alone is called in tables."""
COUNTED = ("zipf", "pareto")
"""Laws that prefer places by their number, not by their share of all."""
EFFORT: Mapping[str, float] = {"5": 1.2, "6": 1.3}
"""What a level takes to simulate, for each member."""


@dataclass(frozen=True)
class ArrayCase:
    """A job on an array, or on the drive alone."""

    shape: ArrayShape | None
    """None for the drive alone."""
    job: JobText
    prepare: str | None = None
    """None for the state of the setup."""
    seed: int | None = None
    """None for that of the setup."""

    @property
    def name(self) -> str:
        """What its device is called in tables."""
        return ONE if self.shape is None else self.shape.name

    @property
    def cost(self) -> float:
        """Rough share of the work: what members do."""
        shape = self.shape
        return 1.0 if shape is None else EFFORT.get(shape.level, 1.0) * shape.count


@dataclass(frozen=True)
class DriveSetup:
    """What is asked of every study: a drive, how it is changed, its state and the seed."""

    drive: Sim
    capacity_bytes: int | None = None
    """Of one drive at full size; None for that which is simulated."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Keys of the drive that are changed; in an array, of each member."""
    prepare: str = "sequential"
    seed: int = 1
    price: float | None = None
    """Of one drive, in any currency."""
    attachment: Attachment = DIRECT
    """What lies between the host and the members of an array; the drive alone has none."""

    def rig(self, shape: ArrayShape | None) -> str:
        """The rig of an array of the drive, or of the drive alone."""
        return self.drive.rig if shape is None else array_rig(self.drive, shape, self.attachment)

    def measure(
        self, cases: Mapping[Key, ArrayCase], progress: ProgressCallback | None = None
    ) -> dict[Key, Performance]:
        """What each case did; raises as :func:`ssdlab.bench.run`."""

        def variant(case: ArrayCase) -> bench.Variant[Performance]:
            target = replace(self.drive, rig=self.rig(case.shape))
            state = case.prepare or self.prepare
            seed = self.seed if case.seed is None else case.seed
            settings = Settings(seed, state, overrides=self.overrides, interval_ms=100)
            return bench.Variant(partial(performance, target, case.job, settings), case.cost)

        performances = bench.run([variant(case) for case in cases.values()], progress)
        return dict(zip(cases, performances, strict=True))


def performance(target: Sim, job: JobText, settings: Settings, seat: bench.Seat) -> Performance:
    """What a job does on a simulated drive, as the body of a variant."""
    result = seat.run(target, job, settings)
    troubles = [one for one in examine(of_result(result, prepared=True)) if one.trouble]
    return replace(Performance.of(result), troubles=troubles)


def doubts(cases: Mapping[Key, ArrayCase], performances: Mapping[Key, Performance]) -> list[Check]:
    """What puts the cases in doubt, each under the name of its device; what affects a number does
    so by that name."""
    found = [
        _of_case(check, case, cases)
        for key, case in cases.items()
        for check in performances[key].troubles
    ]
    return list(dict.fromkeys(found))


def _of_case(check: Check, case: ArrayCase, cases: Mapping[Key, ArrayCase]) -> Check:
    own = replace(check, title=f"{case.name}: {check.title}", affects=(case.name,))
    arrays = dict.fromkeys(one.name for one in cases.values() if one.shape is not None)
    if check.name != NOISE or case.shape is not None or not arrays:
        return own
    # It lasts for the whole of a run, so that the array's own series does not show it.
    also = "of an array, whether its members do so at the same time is chance, seed by seed"
    return replace(own, evidence=f"{check.evidence}; {also}", affects=(case.name, *arrays))


def state_for(given: JobText) -> str:
    """The state, as :func:`ssdlab.run` prepares it, that a job finds drives in which have done
    nothing else for long: those it writes at random were all written so. InputError where it is no
    job for a simulated drive."""
    writers = ("randwrite", "randrw", "randtrimwrite")
    scattered = any(shape.rw in writers for shape in sim_shapes(given.read()))
    return "steady" if scattered else "sequential"


def depends_on_size(given: JobText) -> str:
    """A sentence's part on why a job does something else on drives made smaller; empty where it
    does not. InputError where it is no job for a simulated drive."""
    described = given.read()
    options = [described["global_options"], *(job["options"] for job in described["jobs"])]
    laws = {str(one.get("random_distribution", "")).partition(":")[0] for one in options}
    found = [law for law in COUNTED if law in laws]
    if not found:
        return ""
    return (
        f"{' and '.join(found)} depend{'s' * (len(found) == 1)} on how many places there are: "
        "rates and write amplification are others at full size, and a smaller --scale comes nearer"
    )


def shapes(
    levels: Iterable[str], counts: Iterable[int], chunks: Sequence[int]
) -> tuple[list[ArrayShape], list[ArrayShape]]:
    """Every array of a grid that is possible, and those that have too few members; a level that is
    not striped has no chunk, and stands once."""
    grid = dict.fromkeys(
        ArrayShape(level, count, chunk)
        for level in levels
        for count in counts
        for chunk in (chunks if level in STRIPED else chunks[:1])
    )
    good = [shape for shape in grid if shape.possible()]
    return good, [shape for shape in grid if not shape.possible()]
