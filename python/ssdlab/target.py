"""Targets: one experiment runs on a simulated drive or on a real one and leaves the same Result."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

from ssdlab import _core, safety, tuning
from ssdlab._version import VERSION
from ssdlab.errors import ExperimentError, InputError
from ssdlab.fio import job as fio_job
from ssdlab.fio import logs as fio_logs
from ssdlab.fio import run as fio_run
from ssdlab.fio import surroundings
from ssdlab.fio.installed import installed
from ssdlab.fio.observe import Observer
from ssdlab.jobfile import JobText
from ssdlab.memory import available_bytes
from ssdlab.progress import ProgressCallback, heard, phases_of
from ssdlab.rating import Rating
from ssdlab.results import JobShape, Result
from ssdlab.simulation import log_interval, sim_result, sim_shapes
from ssdlab.system import System
from ssdlab.units import SEED_MAX, size_text


@dataclass(frozen=True)
class Settings:
    """How a job is run; what a target cannot honour it refuses."""

    seed: int = 1
    prepare: str | None = None
    """``fob``, or steps such as ``steady,idle:30s``; None leaves the target as it is."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    interval_ms: int = 1000
    """Length of an interval of the series, virtual ms; simulated only."""
    progress: ProgressCallback | None = None
    notice: Notice | None = None
    """Told, before the first write to a block device, what will be lost."""
    rating: Rating | None = None
    """What may be written to the drive in its life, where anybody tells."""
    memory_bytes: int | None = None
    """What a simulation may take; None for all that is available."""
    logs: bool = False
    """Whether all of fio's logs are wanted (:attr:`ssdlab.results.Result.job_logs`)."""


@dataclass(frozen=True)
class Preview:
    """What a job would do to a real target."""

    sentence: str
    """For people: what will be lost, bytes, drive writes, share of the endurance."""
    bytes_low: int
    bytes_high: int
    """On the fastest of drives, where jobs are bounded by time."""
    open_seconds: float
    """Time during which jobs bounded by time alone write as fast as they can."""
    refused: str | None
    """Why it would be refused as it is now; None where it would not."""


class Notice(Protocol):
    """Receives one sentence for people."""

    def __call__(self, sentence: str, /) -> None:
        """Takes the sentence."""
        ...


class Target(Protocol):
    """Something a job can run on."""

    @property
    def name(self) -> str:
        """The label in tables and reports."""
        ...

    def check(self, job: JobText) -> None:
        """Raises what :meth:`run` would about the text of ``job``, without running it."""
        ...

    def shapes(self, job: JobText) -> list[JobShape]:
        """The sections of ``job``; raises as :meth:`check`."""
        ...

    def run(self, job: JobText, settings: Settings) -> Result:
        """Runs ``job`` to its end and tells what happened."""
        ...

    def preview(self, job: JobText, settings: Settings) -> Preview:
        """What :meth:`run` would do and what would be refused; changes nothing."""
        ...

    @property
    def simulated(self) -> bool:
        """Whether it runs in virtual time and no drive is written."""
        ...

    @property
    def setup(self) -> str:
        """What is set on the drive and its system for a run (:mod:`ssdlab.tuning`)."""
        ...

    @property
    def logical_block(self) -> int:
        """Bytes of the smallest I/O that it takes."""
        ...

    def for_client(self) -> Target:
        """The same with the write cache as the PTS asks for it of drives for clients."""
        ...


def sim(target: Target) -> Sim | None:
    """The target where it is simulated."""
    return target if isinstance(target, Sim) else None


def real(target: Target, otherwise: str) -> Fio:
    """The target where it is a file or a device.

    Raises InputError, which says ``otherwise``, where it is simulated.
    """
    if not isinstance(target, Fio):
        raise InputError(otherwise)
    return target


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

    def for_client(self) -> Sim:
        """Itself: nothing is set on a simulated drive."""
        return self

    def preview(self, job: JobText, settings: Settings) -> Preview:
        """That no drive is written; raises as :meth:`check`."""
        self.check(job)
        return Preview(f"{self.name}: is simulated, so no drive is written", 0, 0, 0.0, None)

    def check(self, job: JobText) -> None:
        """Raises InputError where ``job`` is no job for a simulated drive."""
        self.shapes(job)

    def shapes(self, job: JobText) -> list[JobShape]:
        """The sections of ``job``; raises as :meth:`check`."""
        text = _core.check_job(
            job.text,
            job_name=job.name,
            environment=dict(os.environ),
            include=job.include(),
            traces=job.traces(),
        )
        return sim_shapes(json.loads(text))

    def run(self, job: JobText, settings: Settings) -> Result:
        """Runs ``job`` in virtual time.

        Raises:
            InputError: the core's sentence about the rig, the job, or one not fitting the other.
            Interrupted: Ctrl-C, or the progress callback returned False.
        """
        if not 0 <= settings.seed <= SEED_MAX:
            raise InputError(f"seed: found {settings.seed}, expected a number from 0 to 2^64 - 1")
        output = heard(
            settings.progress,
            lambda report: _core.run(
                self.rig,
                job.text,
                rig_name=self.source or self.name,
                job_name=job.name,
                seed=settings.seed,
                prepare=settings.prepare or "fob",
                overrides=list(settings.overrides.items()),
                environment=dict(os.environ),
                include=job.include(),
                traces=job.traces(),
                interval_ms=settings.interval_ms,
                memory_bytes=available_bytes(settings.memory_bytes),
                progress=report,  # also without a listener: it is where Ctrl-C arrives
                log_avg_msec=log_interval(settings.interval_ms) if settings.logs else None,
            ),
            phases=[*phases_of(settings.prepare or "fob"), "run"],
        )
        shapes = self.shapes(job) if settings.logs else []
        return sim_result(self.name, job, output, shapes)


@dataclass(frozen=True)
class Fio:
    """A plain file or a block device, measured by fio in wall time.

    A plain file is made for the run and removed after it, unless ``use_existing``. A block device
    is only written when ``destroy`` names it (see :mod:`ssdlab.safety`).
    """

    path: Path
    destroy: str | None = None
    use_existing: bool = False
    redact: bool = False
    setup: str = tuning.NONE
    """What is set on the drive and its system for the run (:mod:`ssdlab.tuning`)."""
    simulated: ClassVar[bool] = False

    def for_client(self) -> Fio:
        """The same with the write cache as the PTS asks for it of drives for clients."""
        return replace(self, setup=tuning.for_client(self.setup))

    @property
    def logical_block(self) -> int:
        """Bytes of a logical block of a device, or of the one below a file; 512 where nobody tells.

        Of a device that is to be formatted for the run, those that it will have.
        """
        wanted = tuning.wanted_block(self.setup)
        return self.present_block if wanted is None else wanted

    @property
    def present_block(self) -> int:
        """The same as the device is now."""
        system = System()
        return int(system.of(system.disk_below(self.path), "queue/logical_block_size") or 512)

    @property
    def name(self) -> str:
        """The target's path; only its last part where identities are redacted."""
        return self.path.name if self.redact else str(self.path)

    def check(self, job: JobText) -> None:
        """Raises where ``job`` is no job for a real target, or could reach beyond it."""
        self.shapes(job)

    def shapes(self, job: JobText) -> list[JobShape]:
        """The sections of ``job``; raises as :meth:`check`."""
        device = safety.inspect(self.path) if self.path.is_block_device() else None
        capacity = device.capacity_bytes if device else None
        real_job = self._rewrite(job, Settings(), _ANY, capacity, self._size())
        return fio_logs.shapes(real_job.sections)

    def run(self, job: JobText, settings: Settings) -> Result:
        """Runs ``job`` with fio.

        Raises:
            InputError: the job, the path or a setting is wrong.
            RefusedError: going on could destroy data.
            ExperimentError: fio failed, or the disk is full.
            MissingProgramError: there is no fio.
            Interrupted: Ctrl-C, or the progress callback returned False; fio has ended.
        """
        if settings.overrides:
            raise InputError(f"{self.path}: --set changes simulated drives; a real one is as it is")
        if settings.prepare not in (None, "none"):
            raise InputError(
                f"{self.path}: --prepare is for simulated drives; "
                "on a real one, put the filling into the job as its first section"
            )
        if settings.interval_ms != 1000:
            raise InputError(f"{self.path}: the series of a real drive has intervals of 1000 ms")
        fio_run.find_fio()
        device = safety.inspect(self.path) if self.path.is_block_device() else None
        real_job = self._seen(job, settings, device)
        with self._held(real_job, device, settings.rating) as held:
            if held.sentence and settings.notice is not None:
                settings.notice(held.sentence)
            disk = self._disk(device)
            with tuning.applied(
                disk, self.setup, notice=settings.notice, claimed=bool(held.sentence)
            ) as done:
                if held.fresh and held.capacity and real_job.reads_first:
                    # What was never written is read faster than data.
                    _lay_out(held, settings)
                formatted = tuning.wanted_block(self.setup) is not None
                return self.run_held(job, settings, held.again() if formatted else held, done)

    def preview(self, job: JobText, settings: Settings) -> Preview:
        """What :meth:`run` would do and what would be refused; changes nothing.

        Raises InputError where the job is wrong.
        """
        device = safety.inspect(self.path) if self.path.is_block_device() else None
        plan = self._seen(job, settings, device).plan
        path = self.path.absolute()
        refused, sentence = None, f"{self.path}: the job {plan.sentence()}"
        if device is not None and plan.writes:
            sentence = safety.warning(device, self._work(plan, settings.rating))
            refused = safety.why_refused(device) or safety.why_unnamed(device, self.destroy)
        elif device is None and (plan.writes or not path.exists()):
            refused = safety.why_file_refused(path, allowed=self.use_existing)
        return Preview(sentence, plan.known_bytes, plan.most_bytes, plan.open_seconds, refused)

    def _work(self, plan: fio_job.FioPlan, rating: Rating | None) -> safety.Work:
        does = (plan.sentence() if plan.writes else "only reads") + tuning.consent(self.setup)
        return safety.Work("the job", does, plan.known_bytes, plan.most_bytes, rating)

    def run_held(
        self,
        job: JobText,
        settings: Settings,
        held: safety.Held,
        setup: Mapping[str, Any] | None = None,
    ) -> Result:
        """Runs ``job`` on what the caller holds and has set up as ``setup`` says, after asking
        again whether it may be written.

        Raises as :meth:`run`.
        """
        held.check()
        real_job = self._rewrite(
            job, settings, held.path, held.capacity if held.name else None, held.capacity
        )
        return self._measure(job, real_job, settings, held, setup)

    def _seen(
        self, job: JobText, settings: Settings, device: safety.BlockDevice | None
    ) -> fio_job.RealJob:
        """The job for the target as it is now, to be looked at and not run."""
        capacity = None if device is None else device.capacity_bytes
        return self._rewrite(job, settings, _ANY, capacity, self._size())

    def _rewrite(
        self, job: JobText, settings: Settings, path: Path, capacity: int | None, file_bytes: int
    ) -> fio_job.RealJob:
        return fio_job.rewrite(
            job,
            path,
            capacity,
            file_bytes=file_bytes,
            known=installed(),
            logs=settings.logs,
        )

    def _held(
        self,
        real_job: fio_job.RealJob,
        device: safety.BlockDevice | None,
        rating: Rating | None,
    ) -> AbstractContextManager[safety.Held]:
        """The target, held for what the job does to it."""
        plan = real_job.plan
        formatted = tuning.wanted_block(self.setup) is not None
        if device is not None:
            if not plan.writes and not formatted:
                return safety.look(device)
            return safety.claim(device, self._work(plan, rating), self.destroy)
        if name := next((o.name for o in real_job.sections if o.flag("fill_device")), None):
            one = "a job" if name in real_job.included else f'job "{name}"'
            raise InputError(
                f"{self.path}: {one} has fill_device, which would leave no room in the "
                "file system; give the job a size"
            )
        if name := next((one.name for one in real_job.sections if one.trims), None):
            one = "a job" if name in real_job.included else f'job "{name}"'
            raise InputError(
                f"{self.path}: {one} trims, and fio cannot trim a plain file; "
                "run it on a block device or a simulated drive"
            )
        path, size = self.path.absolute(), plan.span_bytes
        if path.exists() and not plan.writes:
            if size > path.stat().st_size:
                raise InputError(
                    f"{self.path}: holds {size_text(path.stat().st_size)}, and the job "
                    f"reads up to {size_text(size)}; give it a smaller size, or a new file"
                )
            return safety.look_at_file(path, shown=self.path)
        if path.exists() and self.use_existing:
            return safety.hold_file(path, shown=self.path, size=size)
        return safety.make_file(path, size, shown=self.path, reserve=real_job.reserves)

    def _disk(self, device: safety.BlockDevice | None) -> str | None:
        """The kernel's name of the drive below the target."""
        if device is not None:
            return System().disk_of(device.name)
        return System().disk_holding(self.path.absolute().parent)

    def _paths(self, held: safety.Held) -> dict[str, str]:
        """What to call the paths that fio knows."""
        whole = str(self.path.absolute())
        name = self.name if self.redact else whole
        return {str(held.path): name, whole: name}

    def _size(self) -> int:
        """Bytes of the file; none where there is no file yet."""
        return self.path.stat().st_size if self.path.is_file() else 0

    def _measure(
        self,
        job: JobText,
        real_job: fio_job.RealJob,
        settings: Settings,
        held: safety.Held,
        setup: Mapping[str, Any] | None = None,
    ) -> Result:
        file = None if held.name else self.path.absolute()
        disk = held.name or System().disk_holding(self.path.absolute().parent)
        found = surroundings.describe(disk, file, redact=self.redact)
        found["fio_version"] = fio_run.version()
        if setup is not None:
            found["setup"] = setup
        before = surroundings.smart(disk, redact=self.redact)
        with _run_folder() as folder:
            for section in real_job.sections:
                if section.trace is not None:
                    section.trace.write(folder, held.path)
            observer = Observer(disk, file)
            document = fio_run.run_fio(
                real_job.text,
                folder,
                read_only=not real_job.plan.writes,
                progress=settings.progress,
                paths=self._paths(held),
                included=real_job.included,
            )
            found["observed"] = observer.found()
            if held.name is not None:
                _require_arrival(self.path, real_job, document, found["observed"])
            series, latency = fio_logs.series(folder, real_job.sections, document)
            logs = fio_logs.read(folder, everything=settings.logs)
        shapes = fio_logs.shapes(real_job.sections) if settings.logs else []
        after = surroundings.smart(disk, redact=self.redact)
        if before is not None:
            found["smart"] = {"before": before, "after": after}
        document["ssdlab"] = {
            "schema": 1,
            "version": VERSION,
            "seed": None,
            "target": {
                "kind": "fio",
                "name": self.name,
                "summary": _summary(found, file is not None),
                "capacity_bytes": held.capacity or real_job.plan.span_bytes,
            },
            "ignored_options": [],
            "replaced_options": real_job.replaced,
            "added_options": real_job.added,
            "preconditioning": "as found",
            "interval_ms": 1000,
            "surroundings": found,
        }
        return Result(
            name=self.name,
            document=document,
            job_text=job.text,
            series_frame=series,
            latency_frame=latency,
            logs=fio_logs.asked_by_job(logs),
            job_logs=fio_logs.by_job(shapes, logs),
        )


_ANY = Path("target")
"""Stands for the target where a job is only looked at."""

LEAST_BYTES = 16 << 20
"""Less than this moved by fio says nothing of where it went."""


def _require_arrival(
    path: Path,
    real_job: fio_job.RealJob,
    document: Mapping[str, Any],
    observed: Mapping[str, Any],
) -> None:
    """Raises ExperimentError where the kernel saw too little of fio's direct I/O on the device."""
    seen = observed.get("disk")
    if seen is None or not all(one.is_direct for one in real_job.sections):
        return
    for ddir in ("read", "write"):
        told = sum(int(job.get(ddir, {}).get("io_bytes", 0)) for job in document["jobs"])
        if told >= LEAST_BYTES and seen[f"{ddir}_bytes"] < told / 2:
            verb = {"read": "read", "write": "written"}[ddir]
            raise ExperimentError(
                f"{path}: fio reports {size_text(told)} {verb} with direct I/O, but the "
                f"kernel counted {size_text(seen[f'{ddir}_bytes'])} on this drive: its I/O "
                "never reached it, so nothing was measured"
            )


def _lay_out(held: safety.Held, settings: Settings) -> None:
    with _run_folder() as place:
        fio_run.run_fio(
            fio_job.layout(held.path, held.capacity),
            place,
            read_only=False,
            progress=settings.progress,
            paths={str(held.path): str(held.shown)},
        )


@contextlib.contextmanager
def _run_folder() -> Iterator[Path]:
    """A folder for fio's files that is gone afterwards."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="ssdlab-"))
    except OSError as error:
        raise ExperimentError(
            f"{tempfile.gettempdir()}: cannot make a folder for the run ({error.strerror}); "
            "set TMPDIR to one that can be written"
        ) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _summary(found: Mapping[str, Any], is_file: bool) -> str:
    drive = found.get("drive", {})
    what = " ".join(str(drive[k]) for k in ("model", "firmware") if drive.get(k))
    what = what or (f"drive {drive['name']}" if drive.get("name") else "a drive")
    kind = found.get("file_system", {}).get("type", "an unknown file system")
    return f"a file on {kind} on {what}" if is_file else what
