"""What there is to run: variants, what each of them runs with, and which is next."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from ssdlab.bench.kept import KeptRuns
from ssdlab.bench.session import Session
from ssdlab.errors import ExperimentError, InputError, MemoryShortError, SsdlabError
from ssdlab.jobfile import JobText
from ssdlab.progress import Progress, ProgressCallback
from ssdlab.results import Result
from ssdlab.target import Settings, Sim, SimSession, Terms

T = TypeVar("T")
Take = Callable[[int, T], None]
"""Is handed the place of a variant and what came of it."""
STOPPED = "stopped; nothing was kept"


class WorkerLostError(ExperimentError):
    """A run that ended every process it was tried in, most likely for want of memory."""


class Shelf:
    """Files that several variants begin on, such as the state of a prepared drive, each made once.
    It is removed after the last use where ``uses`` says how many there are; else only the ``most``
    files that were used last are kept."""

    def __init__(
        self, folder: Path, uses: Mapping[str, int] | None = None, most: int | None = None
    ) -> None:
        self._folder, self._most = folder, most
        self._left = None if uses is None else dict(uses)
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def begin(
        self, name: str, make: Callable[[], None], save: Callable[[Path], None],
        load: Callable[[Path], None],
    ) -> None:  # fmt: skip
        """Loads what another variant made under this name, or makes and saves it."""
        file = self._folder / name
        with self._lock:
            lock = self._locks.pop(name, None) or threading.Lock()
            self._locks[name] = lock  # to the end: used last
            old = self._outdated()
        for other in old:
            with self._locks[other]:
                (self._folder / other).unlink(missing_ok=True)
        with lock:
            if file.exists():
                load(file)
            else:
                make()
                try:
                    save(file)
                except BaseException:
                    file.unlink(missing_ok=True)
                    raise
            if self._left is not None:
                self._left[name] -= 1
                if self._left[name] <= 0:
                    file.unlink()

    def _outdated(self) -> list[str]:
        """Names that are kept no longer."""
        kept = [name for name in self._locks if (self._folder / name).exists()]
        return kept[: -self._most] if self._most is not None else []


@dataclass(frozen=True)
class Seat:
    """What a variant runs with."""

    report: ProgressCallback
    """Told how far the variant is; what it runs stops where this answers False."""
    memory_bytes: int | None = None
    """What it may take of the memory; None for all that is available."""
    shelf: Shelf | None = None
    start: str | None = None
    """:attr:`Variant.start`, where others have the same."""
    kept: KeptRuns | None = None
    """What was run before, where it may be taken."""

    def run(self, target: Sim, job: JobText, settings: Settings) -> Result:
        """Runs a job on a simulated drive, unless the result is kept; raises as
        :meth:`ssdlab.target.Sim.run`."""
        own = replace(settings, progress=self.report, memory_bytes=self.memory_bytes)

        def make() -> Result:
            return target.run(job, own)

        return make() if self.kept is None else self.kept.run(target, job, settings, make)

    def drive(self, rig: str, name: str, seed: int) -> Session:
        """A simulated drive that several jobs run on, one after the other, unless what they come to
        is kept."""
        terms = Terms(seed=seed, memory_bytes=self.memory_bytes)
        return Session(Sim(name, rig), terms, self.kept)

    def prepare(self, drive: SimSession, steps: str, phases: Sequence[str] = ()) -> None:
        """Takes a drive through its preparation, or to the end of it that another variant with
        the same start reached; raises as :meth:`ssdlab.target.SimSession.prepare`."""

        def make() -> None:
            drive.prepare(steps, self.report, phases)

        if self.shelf is None or self.start is None:
            make()
        else:
            self.shelf.begin(self.start, make, drive.save, drive.restore)


@dataclass(frozen=True)
class Variant(Generic[T]):
    """One of many: ``body`` runs it and says what came of it. It is a function of a module, with
    what it needs by :func:`functools.partial`: it may run in another process, and nothing that it
    is given is shared with others there."""

    body: Callable[[Seat], T]
    cost: float = 1.0
    """Rough share of the whole, for the time left and the order."""
    start: str | None = None
    """A name for what it begins on, the same for variants that :meth:`Seat.prepare` the same."""
    wanted: Callable[[], bool] | None = None
    """Asked in this process just before it is handed out; where it answers False, it is not run,
    and None came of it."""


@dataclass
class Outcome:
    """What came of a variant; an error where that ended it."""

    place: int
    result: Any = None
    error: BaseException | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Tolerant(Generic[T]):
    """A body whose InputError is what came of it, and not the end of all; so is that it ended
    every process in which it was tried (WorkerLostError)."""

    body: Callable[[Seat], T]

    def __call__(self, seat: Seat) -> T | SsdlabError:
        """What came of it, or what is wrong."""
        try:
            return self.body(seat)
        except MemoryShortError as error:
            if seat.memory_bytes is not None:
                raise  # all of the memory may be enough
            return error
        except InputError as error:
            return error


class Engine(Protocol):
    """Where variants run."""

    def work(
        self, variants: Sequence[Variant[Any]], take: Take[Any], progress: ProgressCallback | None
    ) -> None:
        """Runs all of them and hands over what came of each, one at a time, in the thread that
        asks; raises as :func:`ssdlab.bench.run`."""


class Agenda:
    """Which variants are next: the longest first, so that nobody is left alone with one at the end;
    those with the same start go to one holder after another, while there are others to begin."""

    def __init__(
        self, variants: Sequence[Variant[Any]], places: Iterable[int] | None = None
    ) -> None:
        groups: dict[str | int, list[int]] = {}
        for place in range(len(variants)) if places is None else places:
            start = variants[place].start
            groups.setdefault(place if start is None else start, []).append(place)
        cost = {key: sum(variants[n].cost for n in own) for key, own in groups.items()}
        self._groups = {key: deque(groups[key]) for key in sorted(groups, key=lambda k: -cost[k])}
        self._fresh = deque(self._groups)
        self._own: dict[object, str | int] = {}
        self.left = sum(map(len, groups.values()))

    def take(self, holder: object, most: int = 1) -> list[int]:
        """The next places for a holder, at most so many; none when nothing is left."""
        taken: list[int] = []
        while len(taken) < most and self.left:
            own = self._own.get(holder)
            if own not in self._groups:
                if self._fresh:
                    own = self._fresh.popleft()
                elif taken:
                    break  # what others have begun is left to them as long as there is work
                else:
                    own = max(self._groups, key=lambda key: len(self._groups[key]))
                self._own[holder] = own
            group = self._groups[own]
            while group and len(taken) < most:
                taken.append(group.popleft())
                self.left -= 1
            if not group:
                del self._groups[own]
        return taken


class BatchProgress:
    """How far all variants are. May be told from several threads."""

    def __init__(self, variants: Sequence[Variant[Any]], progress: ProgressCallback | None) -> None:
        self._variants, self._progress = variants, progress
        self._done = [0.0] * len(variants)
        self._cost = sum(variant.cost for variant in variants)
        self._whole = 0.0  # kept up, since there may be very many variants
        self._finished = 0
        self._lock = threading.Lock()

    def note(self, fractions: Mapping[int, float]) -> bool:
        """Notes how far variants are; False where the callback wants all to stop."""
        with self._lock:
            for place, fraction in fractions.items():
                before = self._done[place]
                self._done[place] = max(before, fraction)  # steps may begin anew
                self._whole += self._variants[place].cost * (self._done[place] - before)
                self._finished += before < 1.0 <= fraction
            if self._progress is None:
                return True
            text = f"{self._finished} of {len(self._done)} runs done"
            return self._progress(Progress(min(self._whole / self._cost, 1.0), text=text))
