"""A grid of arrays, a job on each of them, and the same job on one drive alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ssdlab import pool
from ssdlab.arrays.attachment import DIRECT, Attachment
from ssdlab.arrays.readings import Reading, read
from ssdlab.arrays.rigs import STRIPED, Drive, Shape, array_rig
from ssdlab.errors import InputError
from ssdlab.jobfile import JobText
from ssdlab.memory import available_bytes
from ssdlab.progress import ProgressCallback
from ssdlab.target import Settings, Sim


@dataclass(frozen=True)
class Variant:
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
    variants: Sequence[Variant],
    *,
    seed: int = 1,
    progress: ProgressCallback | None = None,
) -> list[Reading]:
    """Runs the variants, several at once; their readings, in their order.

    The memory available is shared out among those that run at once; what needs more runs alone,
    after the others.

    Raises:
        InputError: a rig or the job is wrong, or a variant needs more memory than there is.
        Interrupted: Ctrl-C, or the progress callback returned False.
    """
    available = available_bytes()
    share = None if available is None else available // pool.threads()

    def work(variant: Variant, memory: int | None) -> Callable[[ProgressCallback], Reading]:
        return lambda report: _run(variant, seed, memory, report)

    try:
        pieces = [pool.Piece(work(one, share), one.cost) for one in variants]
        return pool.run(pieces, progress)
    except InputError:
        # Too large for its share, or wrong; what is wrong is told by the first that runs.
        pieces = [pool.Piece(work(one, None), one.cost) for one in variants]
        return pool.run(pieces, progress, at_once=1)


def _run(variant: Variant, seed: int, memory: int | None, report: ProgressCallback) -> Reading:
    settings = Settings(
        seed=seed,
        prepare=variant.prepare,
        overrides=variant.overrides,
        interval_ms=100,
        progress=report,
        memory_bytes=memory,
    )
    target = Sim(variant.drive.name, variant.rig, variant.drive.source)
    return read(target.run(variant.job, settings))
