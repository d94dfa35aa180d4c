"""A rig in simulated time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from ssdlab import _core, tuning, wear
from ssdlab.errors import BrokenOffError, InputError
from ssdlab.jobfile import JobText
from ssdlab.memory import available_bytes
from ssdlab.progress import ProgressCallback, heard, phases_of
from ssdlab.results import JobShape, Result
from ssdlab.simulation import log_interval, sim_result, sim_shapes
from ssdlab.target.base import Preview, Settings, Terms
from ssdlab.units import SEED_MAX, size_text


@dataclass(frozen=True)
class Sim:
    """A rig in simulated time. ``rig`` is its TOML, passed to the core untouched."""

    name: str
    rig: str
    source: str = ""
    """The file the rig came from, for messages; the name where empty."""
    simulated: ClassVar[bool] = True
    setup: ClassVar[str] = tuning.NONE
    logical_block: ClassVar[int] = 512

    def tree(self) -> _core.Rig:
        """Its rig, to look into and to build upon; raises InputError where it is none."""
        return _core.Rig(self.rig, rig_name=self.source or self.name)

    def smaller(self, factor: int, *, fewest: int = 1) -> dict[str, str]:
        """Overrides that make its drives ``factor`` times smaller; none for a factor of 1.

        Each keeps at least ``fewest`` superblocks (:meth:`ssdlab._core.Rig.scale`). Raises
        InputError where that cannot be.
        """
        # Of more than the core can count it says the same as of the most.
        return dict(self.tree().scale(min(factor, SEED_MAX), fewest=fewest))

    def for_client(self) -> Sim:
        """Itself: nothing is set on a simulated drive."""
        return self

    def preview(self, job: JobText, settings: Settings) -> Preview:
        """That no drive is written; raises as :meth:`run` for job, rig and settings."""
        self._check(job, settings)
        overrides = list(settings.overrides.items())
        _core.rig_check(self.rig, rig_name=self.source or self.name, overrides=overrides)
        return Preview(f"{self.name}: is simulated, so no drive is written", 0, 0, 0.0, None)

    def check(self, job: JobText) -> None:
        """Raises InputError where ``job`` is no job for a simulated drive."""
        self.shapes(job)

    def _check(self, job: JobText, settings: Settings) -> str:
        """The steps that prepare the drive; raises as :meth:`run`."""
        if not 0 <= settings.seed <= SEED_MAX:
            raise InputError(f"seed: found {settings.seed}, expected a number from 0 to 2^64 - 1")
        steps = settings.prepare or "fob"
        _core.steps_check(steps)
        self.check(job)
        return steps

    def shapes(self, job: JobText) -> list[JobShape]:
        """The sections of ``job``; raises as :meth:`check`."""
        return sim_shapes(job.read())

    def open(self, terms: Terms) -> SimSession:
        """The drive, built.

        Raises InputError where the rig is wrong, MemoryShortError where it takes too much memory.
        """
        return SimSession(self, terms)

    def run(self, job: JobText, settings: Settings) -> Result:
        """Runs ``job`` in virtual time.

        Raises:
            InputError: the core's sentence about the rig, the job, or one not fitting the other.
            Interrupted: Ctrl-C, or the progress callback returned False.
        """
        # A job that is none should not take the time of preparing for it.
        steps = self._check(job, settings)
        phases = [*phases_of(steps), "run"]
        with self.open(Terms(settings.overrides, settings.seed, settings.memory_bytes)) as session:
            session.prepare(steps, settings.progress, phases)
            return session.run(
                job,
                settings.progress,
                interval_ms=settings.interval_ms,
                logs=settings.logs,
                all_counters=settings.all_counters,
                phases=phases,
            )


class Begun(NamedTuple):
    """A job as far as it was let go."""

    result: Result
    work: int
    """About what simulating it took, in I/Os: the same on every machine."""
    cut: bool
    """Whether it would have gone on."""


class SimSession(AbstractContextManager["SimSession"]):
    """A simulated drive in virtual time: what a job leaves behind, the next one finds."""

    kind: ClassVar[Literal["sim"]] = "sim"
    direct: ClassVar[bool] = True
    setup: ClassVar[Mapping[str, Any] | None] = None

    def __init__(self, target: Sim, terms: Terms) -> None:
        self.target, self.terms = target, terms
        self.core = _core.Drive(
            target.rig,
            rig_name=target.source or target.name,
            overrides=list(terms.overrides.items()),
            seed=terms.seed,
            memory_bytes=available_bytes(terms.memory_bytes),
        )

    def __exit__(self, *_: object) -> None:
        """Nothing is held but memory."""

    @property
    def name(self) -> str:
        """The label in tables and reports."""
        return self.target.name

    @property
    def capacity(self) -> int:
        """Bytes."""
        return self.core.capacity_bytes

    def prepare(
        self, steps: str, progress: ProgressCallback | None, phases: Sequence[str] = ()
    ) -> None:
        """Takes it through steps as ``--prepare`` of commands; ``phases`` are those of the whole
        that this is a part of. Raises Interrupted."""
        heard(
            progress,
            lambda report: self.core.prepare(steps, progress=report),
            phases=phases or phases_of(steps),
        )

    def run(
        self,
        job: JobText,
        progress: ProgressCallback | None,
        *,
        seed: int | None = None,
        interval_ms: int = 1000,
        logs: bool = False,
        all_counters: bool = False,
        phases: Sequence[str] = (),
    ) -> Result:
        """Runs a job, with all of fio's logs if ``logs``, and with ``all_counters`` over time; the
        drive goes on from where it was. InputError, BrokenOffError where the job fails by its own
        terms (``max_latency``), and Interrupted on Ctrl-C or where ``progress`` answers False."""
        every_ms = log_interval(interval_ms) if logs else None
        how = {"seed": seed, "interval_ms": interval_ms, "log_avg_msec": every_ms}
        output = self._play(job, progress, phases, all_counters=all_counters, **how)
        result = sim_result(self.name, job, output, self.target.shapes(job) if logs else [])
        failed = result.ssdlab.get("failed_jobs", [])
        for one in failed[:1]:
            message = f'job "{one["job"]}" failed: {one["problem"]}'
            result.document["ssdlab"] |= {"broken_off": message, "status": "failed"}
            raise BrokenOffError(message, result)
        return result

    def begin(self, job: JobText, *, seed: int, most_work: int) -> Begun:
        """Runs a job as far as ``most_work`` goes; InputError, and Interrupted on Ctrl-C."""
        output = self._play(job, None, seed=seed, interval_ms=1000, most_work=most_work)
        return Begun(sim_result(self.name, job, output, []), output.work, output.cut)

    def _play(
        self,
        job: JobText,
        progress: ProgressCallback | None,
        phases: Sequence[str] = (),
        **how: Any,
    ) -> _core.RunOutput:
        return heard(
            progress,
            lambda report: self.core.run(
                job.text,
                job_name=job.name,
                environment=job.environment(),
                include=job.include,
                traces=job.trace,
                progress=report,  # also without a listener: it is where Ctrl-C arrives
                stages=job.stages,
                **how,
            ),
            phases=phases,
        )

    def purge(self, progress: ProgressCallback) -> str:
        """Back to fresh out of the box as far as that goes; says what was done."""
        self.core.purge()
        return "every block erased, the map cleared: a real purge"

    def trim(self, offset: int, length: int) -> str:
        """Deallocates a range; says what was done."""
        self.core.trim(offset, length)
        return f"deallocated {size_text(length)}"

    def idle(self, seconds: float, progress: ProgressCallback) -> None:
        """Leaves the drive alone."""
        self.core.idle(seconds)

    def state(self) -> dict[str, Any]:
        """What tells at a resumption whether somebody else has used the drive."""
        return {}

    def changes(self, before: Mapping[str, Any]) -> list[str]:
        """What happened to the drive since its state was ``before``; a sentence each."""
        return []

    def save(self, path: Path) -> None:
        """Keeps the drive's state, where that can be kept."""
        self.core.save(str(path))

    def restore(self, path: Path) -> None:
        """Takes a state back that :meth:`save` kept."""
        self.core.restore(str(path))

    def snapshot(self) -> dict[str, Any] | None:
        """The drive's own counters: of a simulated one as in a result, else smartctl's answer."""
        counters = self.core.counters()
        worn = wear.Stretch(counters, {}, self.capacity).wear
        if worn is None:
            return None
        target = {"kind": "sim", "name": self.name, "capacity_bytes": self.capacity}
        return {
            "target": target,
            "counters": counters,
            "wear": worn.document(),
            "waf_lifetime": wear.Stretch.since_new(counters).amplification,
        }

    def about(self) -> dict[str, Any]:
        """Drive, platform, and for a simulated drive its rig: the header of a report."""
        return {
            "summary": _core.Rig(self.target.rig, rig_name=self.name).summary,
            "rig": self.core.rig_toml,
        }

    def identity(self) -> dict[str, Any]:
        """What a run's manifest must say to open the target again."""
        return {"overrides": dict(self.terms.overrides)}

    def remove_made(self) -> None:
        """Removes the file that was made for the run; what stands there in its place stays."""
        # no file was made
