"""Targets: one experiment runs on a simulated drive or on a real one and leaves the same Result."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from ssdlab import _core, safety, wear
from ssdlab._version import VERSION
from ssdlab.errors import ExperimentError, InputError, Interrupted
from ssdlab.fio import job as fio_job
from ssdlab.fio import logs as fio_logs
from ssdlab.fio import run as fio_run
from ssdlab.fio import surroundings
from ssdlab.fio.observe import Observer
from ssdlab.jobfile import JobText
from ssdlab.memory import available_bytes
from ssdlab.progress import Progress, ProgressCallback
from ssdlab.results import Result
from ssdlab.units import size_text

SEED_MAX = 2**64 - 1
"""Largest seed."""


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
    memory_bytes: int | None = None
    """What a simulation may take; None for all that is available."""


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

    def run(self, job: JobText, settings: Settings) -> Result:
        """Runs ``job`` to its end and tells what happened."""
        ...


@dataclass(frozen=True)
class Sim:
    """A rig in simulated time. ``rig`` is its TOML, passed to the core untouched."""

    name: str
    rig: str
    source: str = ""
    """The file the rig came from, for messages; the name where empty."""

    def check(self, job: JobText) -> None:
        """Raises InputError where ``job`` is no job for a simulated drive."""
        _core.check_job(
            job.text,
            job_name=job.name,
            environment=dict(os.environ),
            include=job.include(),
            traces=job.traces(),
        )

    def run(self, job: JobText, settings: Settings) -> Result:
        """Runs ``job`` in virtual time.

        Raises:
            InputError: the core's sentence about the rig, the job, or one not fitting the other.
            Interrupted: Ctrl-C, or the progress callback returned False.
        """
        if not 0 <= settings.seed <= SEED_MAX:
            raise InputError(f"seed: found {settings.seed}, expected a number from 0 to 2^64 - 1")
        stopped = False

        def report(news: _core.Progress) -> bool:
            nonlocal stopped
            if settings.progress is None:
                return True
            stopped = not settings.progress(sim_progress(news))
            return not stopped

        try:
            output = _core.run(
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
                memory_bytes=_least(settings.memory_bytes, available_bytes()),
                progress=report,  # also without a listener: it is where Ctrl-C arrives
            )
        except KeyboardInterrupt:
            raise Interrupted("stopped by Ctrl-C; nothing was kept") from None
        except Exception:
            if stopped:
                raise Interrupted("stopped; nothing was kept") from None
            raise
        return sim_result(self.name, job, output)


def _least(*amounts: int | None) -> int | None:
    return min((one for one in amounts if one is not None), default=None)


def sim_result(name: str, job: JobText, output: _core.RunOutput) -> Result:
    """The result of what the core measured in virtual time."""
    device = pl.DataFrame(output.device_series)
    document = json.loads(output.json)
    about = document["ssdlab"]
    health = wear.document(about["counters"], _grown(output.device_series))
    if health is not None:
        about["wear"] = health
    return Result(
        name=name,
        document=document,
        job_text=job.text,
        series_frame=pl.DataFrame(output.series),
        device_frame=device if device.width else None,
        rig_toml=output.rig_toml,
        logs=output.logs,
    )


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

    @property
    def name(self) -> str:
        """The target's path; only its last part where identities are redacted."""
        return self.path.name if self.redact else str(self.path)

    def check(self, job: JobText) -> None:
        """Raises where ``job`` is no job for a real target, or could reach beyond it."""
        block = self.path.is_block_device()
        capacity = safety.inspect(self.path).capacity_bytes if block else None
        fio_job.rewrite(job, self.path, capacity, file_bytes=self._file_bytes())

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
        if self.path.is_block_device():
            return self._run_on_device(job, settings)
        return self._run_on_file(job, settings)

    def _run_on_device(self, job: JobText, settings: Settings) -> Result:
        device = safety.inspect(self.path)
        real_job = fio_job.rewrite(job, device.path, device.capacity_bytes)
        if not real_job.plan.writes:
            safety.check_readable(device)
            return self._measure(job, real_job, settings, device.name, device.capacity_bytes)
        plan = real_job.plan
        work = safety.Work("the job", plan.sentence(), plan.known_bytes)
        with safety.claim(device, work, self.destroy) as sentence:
            if settings.notice is not None:
                settings.notice(sentence)
            return self._measure(job, real_job, settings, device.name, device.capacity_bytes)

    def run_claimed(self, job: JobText, settings: Settings, device: safety.BlockDevice) -> Result:
        """Runs ``job`` on a block device for which the caller holds :func:`safety.claim`."""
        real_job = fio_job.rewrite(job, device.path, device.capacity_bytes)
        return self._measure(job, real_job, settings, device.name, device.capacity_bytes)

    def _run_on_file(self, job: JobText, settings: Settings) -> Result:
        path = self.path.absolute()
        real_job = fio_job.rewrite(job, path, None, file_bytes=self._file_bytes())
        if name := next((o.name for o in real_job.sections if o.flag("fill_device")), None):
            raise InputError(
                f'{self.path}: job "{name}" has fill_device, which would leave no room in the '
                "file system; give the job a size"
            )
        if name := next((one.name for one in real_job.sections if one.trims), None):
            raise InputError(
                f'{self.path}: job "{name}" trims, and fio cannot trim a plain file; '
                "run it on a block device or a simulated drive"
            )
        with self._scratch_file(path, real_job.plan.span_bytes):
            disk = surroundings.disk_of_file(path.parent)
            return self._measure(job, real_job, settings, disk, real_job.plan.span_bytes)

    def _file_bytes(self) -> int:
        """What an existing file has that the job may use."""
        used = self.use_existing and self.path.is_file()
        return self.path.stat().st_size if used else 0

    def _check_room(self, folder: Path, size: int) -> None:
        """Raises InputError where the file system has no room for ``size`` more bytes."""
        free = shutil.disk_usage(folder).free
        if size > free:
            raise InputError(
                f"{self.path}: the job needs {size_text(size)}, "
                f"but only {size_text(free)} are free there"
            )

    @contextlib.contextmanager
    def _scratch_file(self, path: Path, size: int) -> Iterator[None]:
        """Makes the file for the time of the run; never touches one that was there unasked."""
        if self.use_existing and path.exists():
            if not path.is_file() or path.is_symlink():
                raise InputError(f"{self.path}: is not a plain file, so it cannot be a target")
            if not os.access(path, os.R_OK | os.W_OK):
                raise InputError(f"{self.path}: no permission to write this file")
            self._check_room(path.parent, size - path.stat().st_size)
            yield
            return
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise InputError(
                f"{self.path}: exists and would be overwritten; "
                "choose a new name, or allow it with --use-existing-file"
            ) from None
        except FileNotFoundError:
            raise InputError(f"{self.path}: there is no folder {path.parent}") from None
        except OSError as error:
            raise InputError(
                f"{self.path}: cannot make this file ({error.strerror}); choose another folder"
            ) from None
        try:
            self._check_room(path.parent, size)
            yield
        finally:
            path.unlink(missing_ok=True)

    def _prepare_traces(self, real_job: fio_job.RealJob, folder: Path, settings: Settings) -> None:
        """Writes the iologs; lays a file out first, for a hole is read faster than data."""
        traces = [one.trace for one in real_job.sections if one.trace is not None]
        path = self.path.absolute()
        for trace in traces:
            trace.write(folder, path)
        size = real_job.plan.span_bytes
        if not traces or self.path.is_block_device() or not size or path.stat().st_size >= size:
            return
        with _run_folder() as place:
            fio_run.run_fio(
                fio_job.layout(path, size), place, read_only=False, progress=settings.progress
            )

    def _measure(
        self,
        job: JobText,
        real_job: fio_job.RealJob,
        settings: Settings,
        disk: str | None,
        capacity: int | None,
    ) -> Result:
        file = None if self.path.is_block_device() else self.path.absolute()
        found = surroundings.describe(disk, file, redact=self.redact)
        found["fio_version"] = fio_run.version()
        before = surroundings.smart(disk, redact=self.redact)
        with _run_folder() as folder:
            self._prepare_traces(real_job, folder, settings)
            observer = Observer(disk, file)
            document = fio_run.run_fio(
                real_job.text,
                folder,
                read_only=not real_job.plan.writes and file is None,
                progress=settings.progress,
            )
            found["observed"] = observer.found()
            series = fio_logs.series(folder, real_job.sections, document)
            kept = fio_logs.user_logs(folder)
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
                "capacity_bytes": capacity,
            },
            "ignored_options": [],
            "replaced_options": real_job.replaced,
            "preconditioning": "as found",
            "interval_ms": 1000,
            "surroundings": found,
        }
        if self.redact:
            _redact_paths(document, str(self.path.absolute()), self.name)
        return Result(
            name=self.name, document=document, job_text=job.text, series_frame=series, logs=kept
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


def _grown(series: Mapping[str, Any]) -> dict[str, float]:
    """By how much each counter grew while the run went on, by its last name."""
    return {
        name.rpartition("/")[2]: float(values[-1]) - float(values[0])
        for name, values in series.items()
        if len(values)
    }


def sim_progress(news: _core.Progress) -> Progress:
    """What the core says of a run, for people."""
    return Progress(
        fraction=news["fraction"],
        text=f"{news['phase']}, {news['simulated_s']:,.1f} s simulated, {news['ios']:,} I/Os",
    )


def _summary(found: Mapping[str, Any], is_file: bool) -> str:
    drive = found.get("drive", {})
    what = " ".join(str(drive[k]) for k in ("model", "firmware") if drive.get(k))
    what = what or (f"drive {drive['name']}" if drive.get("name") else "a drive")
    kind = found.get("file_system", {}).get("type", "an unknown file system")
    return f"a file on {kind} on {what}" if is_file else what


def _redact_paths(document: dict[str, Any], path: str, name: str) -> None:
    for options in [document.get("global options", {})] + [
        job.get("job options", {}) for job in document.get("jobs", [])
    ]:
        if options.get("filename") == path:
            options["filename"] = name
