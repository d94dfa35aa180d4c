"""A protocol's run from its begin to its end, and on from where it was stopped: the front door."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ssdlab import _core, safety, scale
from ssdlab._version import VERSION
from ssdlab.engine import estimate, snapshots
from ssdlab.engine.check import Check
from ssdlab.engine.estimate import Estimate
from ssdlab.engine.findings import Findings, write
from ssdlab.engine.folder import Entry, RunFolder, Status
from ssdlab.engine.protocol import Judgement, Protocol
from ssdlab.engine.runner import Execution
from ssdlab.engine.session import (
    RealSession,
    Session,
    SimSession,
    logical_block,
    open_device,
    open_file,
    scratch,
)
from ssdlab.engine.setup import MIB, Setup
from ssdlab.engine.steps import Job, Rounds, Step, Then
from ssdlab.errors import InputError, Interrupted, SsdlabError
from ssdlab.fio.run import find_fio
from ssdlab.progress import ProgressCallback
from ssdlab.rig import profiles
from ssdlab.store import RunStore
from ssdlab.target import Fio, Notice, Sim, Target
from ssdlab.units import size_text
from ssdlab.wear import flash_of

QUICK_CAPACITY = 4 << 30
"""A simulated drive is made at least this small for a quick look..."""
LEAST_CAPACITY = 512 << 20
"""...and never smaller than this."""
LEAST_SUPERBLOCKS = 128
"""With fewer, a drive made smaller has hardly any reserve beside the blocks that it writes into,
and its write amplification is nothing like that of the whole drive."""


@dataclass(frozen=True)
class Order:
    """A protocol on a target, as somebody asks for it."""

    protocol: Protocol
    target: Target
    given: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the protocol, as text."""
    quick: bool = False
    scale: int = 1
    """Simulated profiles: the drive and all durations so many times smaller."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Keys of a simulated rig."""
    seed: int = 1
    size: int | None = None
    """Bytes of the file on which a file target is measured."""
    rated_bytes: float | None = None
    """What may be written to the drive in its life, where the maker tells (TBW)."""


@dataclass(frozen=True)
class Announcement:
    """What a protocol is going to do, before it does anything."""

    protocol: Protocol
    target: str
    setup: Setup
    estimate: Estimate
    endurance_bytes: float | None
    """What may be written to the drive in its life; None where nobody tells."""

    @property
    def endurance_share(self) -> float | None:
        """Share of that which is written at least, by jobs that an amount bounds."""
        if not self.endurance_bytes:
            return None
        return self.estimate.written_bytes / self.endurance_bytes


@dataclass(frozen=True)
class Finished:
    """A run that came to its end."""

    folder: RunFolder
    judgement: Judgement


Examine = Callable[[Execution], Sequence[Check]]
"""Says whether what a run has measured can be believed (:mod:`ssdlab.checks`)."""

Announce = Callable[[Announcement], bool]
"""Told what will be done; answers whether to begin."""


def begin(
    order: Order,
    store: RunStore,
    *,
    progress: ProgressCallback,
    notice: Notice,
    announce: Announce,
    examine: Examine = lambda _execution: (),
) -> Finished | None:
    """Runs a protocol from its begin; None where ``announce`` said no.

    Raises:
        InputError: the order cannot be carried out as it is.
        RefusedError: going on could destroy data that is not to be destroyed.
        Interrupted: Ctrl-C; what is finished is kept, and :func:`go_on` goes on.
        ExperimentError: a step failed; the same holds.
    """
    values = order.protocol.values(order.given)
    _check(order)
    if isinstance(order.target, Sim):
        overrides = {**_smaller(order), **order.overrides}
        session: Session = SimSession(order.target, overrides, order.seed)
        setup = _setup(order, values, session.capacity, "sim")
        if not announce(_announcement(order, setup, _endurance(order, session))):
            return None
        manifest = _manifest(order, values, session) | {"overrides": dict(overrides)}
        folder = RunFolder.create(store, manifest, order.target.rig)
        return _execute(order.protocol, setup, session, folder, progress, examine)
    target = order.target
    assert isinstance(target, Fio)
    find_fio()
    store.prepare()
    if target.path.is_block_device():
        device = safety.inspect(target.path)
        setup = _setup(order, values, device.capacity_bytes, "device")
        if not announce(_announcement(order, setup, order.rated_bytes)):
            return None
        with open_device(target, _work(setup, order.protocol), notice) as real:
            folder = RunFolder.create(store, _manifest(order, values, real), None)
            return _execute(order.protocol, setup, real, folder, progress, examine)
    path, size = scratch(target, order.size, quick=order.quick)
    setup = _setup(order, values, size, "file")
    if not announce(_announcement(order, setup, order.rated_bytes)):
        return None
    made = not path.exists()
    with open_file(target, size, again=False) as real:
        setup = replace(setup, direct=real.direct)
        manifest = _manifest(order, values, real) | {"made_file": made}
        folder = RunFolder.create(store, manifest, None)
        return _execute(order.protocol, setup, real, folder, progress, examine)


def go_on(
    folder: RunFolder,
    find: Callable[[str], Protocol],
    *,
    progress: ProgressCallback,
    notice: Notice,
    examine: Examine = lambda _execution: (),
) -> Finished:
    """Goes on with a run from its last finished step.

    Raises as :func:`begin`, and InputError where the run is complete or its target has gone.
    """
    manifest = folder.manifest
    if manifest.get("status") == "complete":
        raise InputError(f"{folder.id}: is complete; ssdlab report {folder.id} shows it")
    protocol = find(str(manifest["protocol"]))
    with folder.locked(), _reopened(folder, notice) as session:
        folder.mend_journal()
        setup = Setup(
            capacity=session.capacity,
            kind=session.kind,
            active=int(manifest["active"]),
            values=manifest["values"],
            divisor=float(manifest["divisor"]),
            quick=bool(manifest["quick"]),
            direct=session.direct,
            block=int(manifest.get("block", 512)),
        )
        for sentence in _resumption(folder, session):
            notice(sentence)
        return _execute(protocol, setup, session, folder, progress, examine, locked=True)


@contextlib.contextmanager
def _reopened(folder: RunFolder, notice: Notice) -> Iterator[Session]:
    """The target of a run as it was left."""
    manifest = folder.manifest
    kind = manifest["kind"]
    if kind == "sim":
        if manifest["version"] != VERSION:
            raise InputError(
                f"{folder.id}: was begun with version {manifest['version']} and cannot go on with "
                f"{VERSION}, which may simulate differently; begin a new run"
            )
        target = Sim(str(manifest["name"]), folder.rig() or "")
        yield SimSession(target, manifest["overrides"], int(manifest["seed"]))
        return
    fio = Fio(
        Path(manifest["path"]),
        destroy=manifest["destroy"],
        use_existing=True,
        redact=bool(manifest["redact"]),
    )
    if kind == "file":
        with open_file(fio, int(manifest["capacity"]), again=True) as session:
            yield session
        return
    if not fio.path.is_block_device():
        raise InputError(f"{fio.path}: there is no such device any more")
    if safety.inspect(fio.path).capacity_bytes != int(manifest["capacity"]):
        raise InputError(f"{fio.path}: is another drive than the one the run was begun on")
    work = safety.Work(f"the protocol {manifest['protocol']}", "goes on writing")
    with open_device(fio, work, notice) as session:
        yield session


def _resumption(folder: RunFolder, session: Session) -> list[str]:
    """Notes that a run goes on, and what happened to the drive meanwhile; sentences for people."""
    entries = folder.journal()
    if session.kind == "sim" or not entries:
        return []
    last = entries[-1]
    gap = datetime.now(UTC) - datetime.fromisoformat(last.ended)
    told = [f"the drive was left alone for {_span(gap.total_seconds())}"]
    changes = session.changes(last.state)
    if changes and last.kind != "stop":
        told.append("in the step that was cut short, or by others: " + "; ".join(changes))
    else:
        told += changes
    note = "; ".join(told)
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    number = len(entries) + 1
    folder.append(
        Entry(
            number,
            f"resume-{number}",
            "resume",
            "went on",
            False,
            now,
            now,
            note,
            session.state(),
            tuple(changes),
        ),
        None,
    )
    return [f"going on after step {number - 1}; since then {note}"]


def _execute(
    protocol: Protocol,
    setup: Setup,
    session: Session,
    folder: RunFolder,
    progress: ProgressCallback,
    examine: Examine,
    *,
    locked: bool = False,
) -> Finished:
    with contextlib.nullcontext() if locked else folder.locked():
        folder.set_status("running")
        if not (folder.path / snapshots.FILE).exists():
            snapshots.keep(folder.path, session.snapshot())
        execution = Execution(protocol, setup, session, folder, progress)
        try:
            execution.run()
        except (Interrupted, KeyboardInterrupt):
            execution.stop()
            _keep(folder, execution, examine, "stopped")
            raise Interrupted(
                f"stopped; {execution.finished} finished steps are kept: "
                f"ssdlab resume {folder.id} goes on" + _file_kept(folder)
            ) from None
        except SsdlabError as error:
            if not execution.finished:
                _undo(folder)
                raise
            _keep(folder, execution, examine, "failed")
            raise type(error)(
                f"{error.message}; {execution.finished} finished steps are kept: "
                f"ssdlab resume {folder.id} goes on" + _file_kept(folder)
            ) from None
        judgement = _keep(folder, execution, examine, "complete")
        if folder.manifest.get("made_file"):
            Path(folder.manifest["path"]).unlink(missing_ok=True)
        for _, path in folder.checkpoints():
            path.unlink(missing_ok=True)
        return Finished(folder, judgement)


def _keep(folder: RunFolder, execution: Execution, examine: Examine, status: Status) -> Judgement:
    records, judgement = execution.records, execution.judge()
    protocol = execution.protocol
    snapshots.keep(folder.path, execution.session.snapshot())
    write(
        folder,
        Findings(
            judgement,
            list(records.rounds.values()),
            dict(records.notes),
            examine(execution),
            protocol.title,
            protocol.source,
        ),
    )
    folder.set_status(status)
    return judgement


def _undo(folder: RunFolder) -> None:
    """Leaves nothing of a run that came to nothing."""
    if folder.manifest.get("made_file"):
        Path(folder.manifest["path"]).unlink(missing_ok=True)
    shutil.rmtree(folder.path, ignore_errors=True)


def _file_kept(folder: RunFolder) -> str:
    if not folder.manifest.get("made_file"):
        return ""
    return f" (for that, {folder.manifest['path']} stays where it is)"


def _check(order: Order) -> None:
    sim = isinstance(order.target, Sim)
    if not sim and order.overrides:
        raise InputError("--set changes simulated drives; a real one is as it is")
    if not sim and order.scale != 1:
        raise InputError("--scale makes simulated drives smaller; a real one is as it is")
    if sim and order.size is not None:
        raise InputError("--size is that of a file; a simulated drive has --set capacity=...")
    if order.scale != 1 and order.target.name not in {one.name for one in profiles()}:
        raise InputError("--scale needs one of the shipped drives; a rig file is as it is")


def _smaller(order: Order) -> dict[str, str]:
    """Overrides that make a shipped drive smaller, where that is asked for."""
    known = {one.name for one in profiles()}
    if order.target.name not in known or "capacity" in order.overrides:
        return {}
    factor = order.scale
    capacity = scale.capacity_of(order.target.name)
    if order.quick:
        factor = max(factor, round(order.protocol.quick_divisor), capacity // QUICK_CAPACITY)
    factor = max(1, min(factor, capacity // LEAST_CAPACITY))
    return scale.reduced(order.target.name, factor, fewest=LEAST_SUPERBLOCKS)


def _setup(
    order: Order, values: Mapping[str, int | float | str], capacity: int, kind: Any
) -> Setup:
    share = order.protocol.active_share(values)
    return Setup(
        capacity=capacity,
        kind=kind,
        active=int(capacity * share) // MIB * MIB or capacity,
        values=values,
        divisor=order.scale * (order.protocol.quick_divisor if order.quick else 1.0),
        quick=order.quick,
        block=logical_block(order.target) if isinstance(order.target, Fio) else 512,
    )


def _check_jobs(plan: Sequence[Step]) -> None:
    """Raises what is wrong in the jobs of a plan, as far as they are known beforehand."""
    for step in plan:
        if isinstance(step, Rounds):
            _check_jobs(step.jobs(1))
        elif isinstance(step, Then):
            _check_jobs(step.expected)
        elif isinstance(step, Job):
            _core.check_job(step.text, job_name=step.key)


def _announcement(order: Order, setup: Setup, endurance: float | None) -> Announcement:
    plan = list(order.protocol.plan(setup))
    _check_jobs(plan)
    return Announcement(order.protocol, order.target.name, setup, estimate.of(plan), endurance)


def _endurance(order: Order, session: Session) -> float | None:
    """What the flash of a simulated drive takes in all; what is rated goes before."""
    if order.rated_bytes is not None or not isinstance(session, SimSession):
        return order.rated_bytes
    flash = flash_of(session.drive.counters())
    return None if flash is None else float(flash.rated_pe_cycles * flash.physical_bytes)


def _work(setup: Setup, protocol: Protocol) -> safety.Work:
    whole = estimate.of(list(protocol.plan(setup)))
    does = f"writes at least {size_text(whole.written_bytes)}"
    if whole.writing_max_s:
        does += f" and as fast as it can for up to {whole.writing_max_s:g} s"
    return safety.Work(f"the protocol {protocol.name}", does, whole.written_bytes)


def _manifest(
    order: Order, values: Mapping[str, int | float | str], session: Session
) -> dict[str, Any]:
    real = isinstance(session, RealSession)
    target = order.target
    setup = _setup(order, values, session.capacity, session.kind)
    return {
        "protocol": order.protocol.name,
        "name": target.name,
        "kind": session.kind,
        "target": {
            "kind": "fio" if real else "sim",
            "name": target.name,
            "capacity_bytes": session.capacity,
        },
        "jobs": [f"protocol {order.protocol.name}"],
        "about": session.about(),
        "capacity": session.capacity,
        "active": setup.active,
        "values": dict(values),
        "divisor": setup.divisor,
        "quick": order.quick,
        "block": setup.block,
        "seed": order.seed,
        "version": VERSION,
        **(
            {
                "path": str(target.path.absolute()),
                "destroy": target.destroy,
                "redact": target.redact,
            }
            if isinstance(target, Fio)
            else {}
        ),
    }


def _span(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
