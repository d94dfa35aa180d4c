"""A plain file or a block device, measured by fio in wall time."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from ssdlab import safety, tuning
from ssdlab._version import VERSION
from ssdlab.errors import BrokenOffError, ExperimentError, InputError, Interrupted
from ssdlab.fio import job as fio_job
from ssdlab.fio import logs as fio_logs
from ssdlab.fio import run as fio_run
from ssdlab.fio import surroundings
from ssdlab.fio.installed import installed, why_too_old
from ssdlab.fio.observe import Observer
from ssdlab.jobfile import JobText
from ssdlab.rating import Rating
from ssdlab.results import JobShape, Result
from ssdlab.system import System
from ssdlab.target.base import Preview, Settings, Terms
from ssdlab.target.session import RealSession
from ssdlab.units import size_text, sizes_apart


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

    def smaller(self, factor: int, *, fewest: int = 1) -> dict[str, str]:
        """Nothing; a real target cannot be made smaller."""
        if factor != 1:
            raise InputError("--scale makes simulated drives smaller; a real one is as it is")
        return {}

    def check(self, job: JobText) -> None:
        """Raises where ``job`` is no job for a real target, or could reach beyond it."""
        self.shapes(job)

    def shapes(self, job: JobText) -> list[JobShape]:
        """The sections of ``job``; raises as :meth:`check`."""
        return fio_logs.shapes(self._seen(job, Settings(), self.device()).sections)

    def run(self, job: JobText, settings: Settings) -> Result:
        """Runs ``job`` with fio.

        Raises:
            InputError: the job, the path or a setting is wrong.
            RefusedError: going on could destroy data.
            BrokenOffError: a job failed after it had begun; with the Result until then.
            ExperimentError: fio failed otherwise, or the disk is full.
            MissingProgramError: there is no fio.
            Interrupted: Ctrl-C, or the progress callback returned False; fio has ended. With the
                Result until then where a job had begun.
        """
        self._check(settings)
        fio_run.find_fio()
        device = self.device()
        real_job = self._seen(job, settings, device)
        with self.open(
            self._terms(real_job, device, settings, job.replay.capacity_bytes or 0)
        ) as session:
            held = session.held
            if held.fresh and held.capacity and real_job.reads_first:
                # What was never written is read faster than data.
                _lay_out(held, settings)
            return session.run(job, settings.progress, logs=settings.logs)

    def _check(self, settings: Settings) -> None:
        """Raises InputError where ``settings`` has what only simulated drives know."""
        if settings.overrides:
            raise InputError(f"{self.path}: --set changes simulated drives; a real one is as it is")
        if settings.prepare not in (None, "none"):
            raise InputError(
                f"{self.path}: --prepare is for simulated drives; "
                "on a real one, put the filling into the job as its first section"
            )
        if settings.interval_ms != 1000:
            raise InputError(f"{self.path}: the series of a real drive has intervals of 1000 ms")
        if settings.all_counters:
            raise InputError(f"{self.path}: --all-counters is for simulated drives")

    def device(self) -> safety.BlockDevice | None:
        """What it is where it is a block device."""
        return safety.inspect(self.path) if self.path.is_block_device() else None

    @contextlib.contextmanager
    def open(self, terms: Terms) -> Iterator[RealSession]:
        """Holds the target, and sets it up.

        Raises InputError where it cannot be held, RefusedError where it must not be.
        """
        device, path = self.device(), self.path.absolute()
        with self._held(terms, device) as held:
            system = System()
            disk = system.disk_holding(path.parent) if device is None else device.name
            size = terms.size if device is None else held.capacity
            made = device is None and not terms.there
            session = RealSession(self, held, size, disk, device, made=made)
            terms.verify(session)
            for sentence in filter(None, (held.sentence, why_too_old())):
                terms.notice(sentence)
            claimed = bool(held.sentence)
            # What is set belongs to the disk, also where the target is a partition of it.
            whole = disk and system.disk_of(disk)
            with tuning.applied(whole, self.setup, notice=terms.notice, claimed=claimed) as done:
                if tuning.wanted_block(self.setup) is not None:
                    held = held.again()
                    size = held.capacity
                yield replace(session, held=held, capacity=size, setup=done)

    def preview(self, job: JobText, settings: Settings) -> Preview:
        """What :meth:`run` would do and what would be refused; changes nothing.

        Raises InputError where the job or a setting is wrong, or a value of the setup is none.
        """
        self._check(settings)
        tuning.preview(System().disk_below(self.path), self.setup)
        device = self.device()
        plan = self._seen(job, settings, device).plan
        path = self.path.absolute()
        refused, sentence = None, f"{self.path}: the job {plan.sentence()}"
        if device is not None and plan.writes:
            work = self._consented(self._work(plan, settings.rating))
            sentence = safety.warning(device, work)
            refused = safety.why_refused(device) or safety.why_unnamed(device, self.destroy)
        elif device is None and (plan.writes or not path.exists()):
            refused = safety.why_file_refused(path, allowed=self.use_existing)
        return Preview(sentence, plan.known_bytes, plan.most_bytes, plan.open_seconds, refused)

    def _work(self, plan: fio_job.FioPlan, rating: Rating | None) -> safety.Work:
        does = plan.sentence() if plan.writes else "only reads"
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
        real_job = fio_job.rewrite(
            job,
            held.path,
            held.capacity if held.name else None,
            file_bytes=held.capacity,
            known=installed(),
            logs=settings.logs,
        )
        return self._measure(job, real_job, settings, held, setup)

    def _seen(
        self, job: JobText, settings: Settings, device: safety.BlockDevice | None
    ) -> fio_job.RealJob:
        """The job for the target as it is now, to be looked at and not run."""
        return fio_job.rewrite(
            job,
            _ANY,
            None if device is None else device.capacity_bytes,
            # None of a file that is not there yet.
            file_bytes=self.path.stat().st_size if self.path.is_file() else 0,
            known=installed(),
            logs=settings.logs,
        )

    def _terms(
        self,
        real_job: fio_job.RealJob,
        device: safety.BlockDevice | None,
        settings: Settings,
        file_bytes: int = 0,
    ) -> Terms:
        """What a job does to the target as it is now; a file is made at least that large;
        InputError where the job is none for a plain file."""
        plan, path = real_job.plan, self.path
        notice = settings.notice or Terms.notice
        if device is not None:
            formatted = tuning.wanted_block(self.setup) is not None
            work = self._work(plan, settings.rating) if plan.writes or formatted else None
            return Terms(work=work, notice=notice)
        for flag, wrong in _NOT_ON_FILES.items():
            if section := next((section for section in real_job.sections if wrong(section)), None):
                who = "a job" if section.name in real_job.included else f'job "{section.name}"'
                raise InputError(f"{path}: {who} {flag}")
        size = max(plan.span_bytes, 0 if path.exists() else file_bytes)
        if path.exists() and not plan.writes and size > path.stat().st_size:
            holds, reads = sizes_apart(path.stat().st_size, size)
            raise InputError(
                f"{path}: holds {holds}, and the job reads up to {reads}; "
                "give it a smaller size, or a new file"
            )
        there = path.exists() and (self.use_existing or not plan.writes)
        return Terms(
            size=size, there=there, writes=plan.writes, reserve=real_job.reserves, notice=notice
        )

    def _consented(self, work: safety.Work) -> safety.Work:
        """With what setting the drive up does besides."""
        return replace(work, does=work.does + tuning.consent(self.setup))

    def _held(
        self, terms: Terms, device: safety.BlockDevice | None
    ) -> AbstractContextManager[safety.Held]:
        path = self.path.absolute()
        if device is not None:
            if terms.work is None:
                return safety.look(device)
            return safety.claim(device, self._consented(terms.work), self.destroy)
        if not terms.there:
            keep, reserve = terms.keep, terms.reserve
            return safety.make_file(path, terms.size, shown=self.path, keep=keep, reserve=reserve)
        if not terms.writes:
            return safety.look_at_file(path, shown=self.path)
        return safety.hold_file(path, shown=self.path, size=terms.size)

    def _paths(self, held: safety.Held) -> dict[str, str]:
        """What to call the paths that fio knows."""
        whole = str(self.path.absolute())
        name = self.name if self.redact else whole
        return {str(held.path): name, whole: name}

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
        if setup is not None:
            found["setup"] = setup
        before = surroundings.smart(disk, redact=self.redact)
        with _run_folder() as folder:
            for section in real_job.sections:
                if section.trace is not None:
                    section.trace.write(folder, held.path)
            observer = Observer(disk, file)
            document, broken = self._by_fio(real_job, settings, held, folder)
            found["fio_version"] = document.get("fio version")
            found["observed"] = observer.found()
            if held.name is not None and broken is None:
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
        result = Result(
            name=self.name,
            document=document,
            job_text=job.text,
            series_frame=series,
            latency_frame=latency,
            logs=fio_logs.asked_by_job(logs),
            job_logs=fio_logs.by_job(shapes, logs),
        )
        if broken is not None:
            document["ssdlab"]["broken_off"] = broken.message
            document["ssdlab"]["status"] = (
                "stopped" if isinstance(broken, Interrupted) else "failed"
            )
            raise type(broken)(broken.message, result)
        return result

    def _by_fio(
        self, real_job: fio_job.RealJob, settings: Settings, held: safety.Held, folder: Path
    ) -> tuple[dict[str, Any], BrokenOffError | Interrupted | None]:
        """What fio measured, and what ended the job early, where that did."""
        broken: BrokenOffError | Interrupted | None = None
        began = held.again().capacity
        try:
            document = fio_run.run_fio(
                real_job.text,
                folder,
                read_only=not real_job.plan.writes,
                progress=settings.progress,
                paths=self._paths(held),
                included=real_job.included,
            )
        except (BrokenOffError, Interrupted) as error:
            if error.result is None:
                raise
            document, broken = error.result, error
        # To fio the end of what shrank is the end of its work, or an error without a cause.
        if (size := held.again().capacity) < began:
            sizes = f"from {size_text(began)} to {size_text(size)}"
            broken = BrokenOffError(f"{self.name}: shrank {sizes} while the job ran")
        return document, broken


_NOT_ON_FILES: dict[str, Callable[[fio_job.JobSection], bool]] = {
    "has fill_device, which would leave no room in the file system; give the job a size": (
        lambda section: section.flag("fill_device")
    ),
    "trims, and fio cannot trim a plain file; run it on a block device or a simulated drive": (
        lambda section: section.trims
    ),
}
"""What no job on a plain file may do, and what to do about it."""
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
    if seen is None or not all(section.is_direct for section in real_job.sections):
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
