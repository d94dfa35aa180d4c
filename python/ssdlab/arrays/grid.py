"""A grid of arrays, a job on each of them, and the same job on one drive alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ssdlab import bench
from ssdlab.arrays.attachment import DIRECT, Attachment
from ssdlab.arrays.readings import Reading, read
from ssdlab.arrays.rigs import STRIPED, Drive, Shape, array_rig
from ssdlab.jobfile import JobText
from ssdlab.progress import ProgressCallback
from ssdlab.target import Settings, Sim


@dataclass(frozen=True)
class ArrayRun:
    """One run: a drive alone, or an array of such drives."""

    shape: Shape | None
    """None for the drive alone."""
    drive: Drive
    job: JobText
    prepare: str = "sequential"
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Keys of the drive that are changed; in an array, of each member."""
    attachment: Attachment = DIRECT
    """Of an array; the drive alone has none."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return "one drive" if self.shape is None else self.shape.name

    @property
    def rig(self) -> str:
        """Its rig."""
        if self.shape is None:
            return self.drive.rig
        return array_rig(self.drive, self.shape, self.attachment)

    @property
    def cost(self) -> float:
        """Rough share of the work: what members do."""
        if self.shape is None:
            return 1.0
        factor = {"1": 1.0, "10": 1.0, "5": 1.2, "6": 1.3}.get(self.shape.level, 1.0)
        return factor * self.shape.count


def shapes(
    levels: Iterable[str], counts: Iterable[int], chunks: Sequence[int]
) -> tuple[list[Shape], list[Shape]]:
    """Every array of a grid that is possible, and those that have too few members.

    A level that is not striped has no chunk, and stands once.
    """
    found: dict[Shape, None] = {}
    for level in levels:
        for count in counts:
            for chunk in chunks if level in STRIPED else chunks[:1]:
                found[Shape(level, count, chunk)] = None
    good = [one for one in found if one.possible()]
    return good, [one for one in found if not one.possible()]


def run_all(
    variants: Sequence[ArrayRun], *, seed: int = 1, progress: ProgressCallback | None = None
) -> list[Reading]:
    """The readings of the variants, in their order; raises as :func:`ssdlab.bench.run`."""

    def body(one: ArrayRun) -> bench.Variant[Reading]:
        target = Sim(one.drive.name, one.rig, one.drive.source)
        settings = Settings(
            seed=seed, prepare=one.prepare, overrides=one.overrides, interval_ms=100
        )
        return bench.Variant(lambda seat: read(seat.run(target, one.job, settings)), one.cost)

    return bench.run([body(one) for one in variants], progress)
