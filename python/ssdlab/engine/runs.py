"""A protocol's run from its begin to its end, and on from where it was stopped: the front door."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ssdlab import safety
from ssdlab._version import VERSION
from ssdlab.engine import estimate, plans, snapshots, sources
from ssdlab.engine.check import Check
from ssdlab.engine.findings import Findings, write
from ssdlab.engine.folder import Entry, RunFolder, Status
from ssdlab.engine.plans import Announcement, Order, check, setup_of
from ssdlab.engine.protocol import Judgement, Protocol
from ssdlab.engine.ratings import of_flash
from ssdlab.engine.runner import Execution
from ssdlab.engine.session import (
    RealSession,
    Session,
    SimSession,
    open_device,
    open_file,
    scratch,
)
from ssdlab.errors import InputError, Interrupted, SsdlabError
from ssdlab.fio.run import find_fio
from ssdlab.progress import ProgressCallback
from ssdlab.rating import Rating
from ssdlab.store import RunStore
from ssdlab.target import Fio, Notice, Sim


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
    check(order)
    if isinstance(order.target, Sim):
        session = plans.simulated(order)
        what = plans.announcement(order, setup_of(order, values, session.capacity, "sim"), store)
        what = replace(what, rating=order.rating or of_flash(session))
        if not announce(what):
            return None
        manifest = _manifest(order, what, session) | {"overrides": dict(session.overrides)}
        folder = RunFolder.create(store, manifest, order.target.rig)
        return _execute(what, session, folder, progress, examine)
    target = order.target
    assert isinstance(target, Fio)
    find_fio()
    store.prepare()
    if target.path.is_block_device():
        device = safety.inspect(target.path)
        setup = setup_of(order, values, device.capacity_bytes, "device")
        what = plans.announcement(order, setup, store)
        if not announce(what):
            return None
        with open_device(target, what.work(), notice) as real:
            what = _probed(what, real, progress, announce)
            folder = RunFolder.create(store, _manifest(order, what, real), None)
            return _execute(what, real, folder, progress, examine)
    path, size = scratch(target, order.size, quick=order.quick)
    what = plans.announcement(order, setup_of(order, values, size, "file"), store)
    if not announce(what):
        return None
    made = not path.exists()
    with open_file(target, size, again=False) as real:
        what = replace(what, setup=replace(what.setup, direct=real.direct))
        try:
            what = _probed(what, real, progress, announce)
        except BaseException:
            if made:
                path.unlink(missing_ok=True)
            raise
        manifest = _manifest(order, what, real) | {"made_file": made}
        folder = RunFolder.create(store, manifest, None)
        return _execute(what, real, folder, progress, examine)


def _probed(
    what: Announcement, session: Session, progress: ProgressCallback, announce: Announce
) -> Announcement:
    """The plan by half a minute of measuring, where nothing else was known of the drive."""
    plan = list(what.protocol.plan(what.setup))
    if not sources.worth_probing(plan, what.speeds, what.setup):
        return what
    speeds = sources.probe(session, what.setup, plan, progress)
    better = replace(what, speeds=speeds, estimate=estimate.of(plan, speeds, what.setup.kind))
    announce(better)
    return better


def go_on(
    folder: RunFolder,
    find: Callable[[str], Protocol],
    *,
    progress: ProgressCallback,
    notice: Notice,
    examine: Examine = lambda _execution: (),
    rating: Rating | None = None,
) -> Finished:
    """Goes on with a run from its last finished step.

    Raises as :func:`begin`, and InputError where the run is complete or its target has gone.
    """
    manifest = folder.manifest
    if manifest.get("status") == "complete":
        raise InputError(f"{folder.id}: is complete; ssdlab report {folder.id} shows it")
    protocol = find(str(manifest["protocol"]))
    what = plans.rest(folder, protocol, rating)
    with folder.locked(), _reopened(folder, what, notice) as session:
        folder.mend_journal()
        what = replace(what, setup=replace(what.setup, direct=session.direct))
        for sentence in _resumption(folder, session):
            notice(sentence)
        return _execute(what, session, folder, progress, examine, locked=True)


@contextlib.contextmanager
def _reopened(folder: RunFolder, what: Announcement, notice: Notice) -> Iterator[Session]:
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
    fio = plans.left_target(manifest)
    if kind == "file":
        with open_file(fio, int(manifest["capacity"]), again=True) as session:
            yield session
        return
    plans.same_device(fio, manifest)
    with open_device(fio, what.work(), notice) as session:
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
    what: Announcement,
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
        execution = Execution(what.protocol, what.setup, session, folder, progress, what.speeds)
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


def _manifest(order: Order, what: Announcement, session: Session) -> dict[str, Any]:
    real = isinstance(session, RealSession)
    target, setup = order.target, what.setup
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
        "values": dict(setup.values),
        "divisor": setup.divisor,
        "quick": order.quick,
        "block": setup.block,
        "seed": order.seed,
        "version": VERSION,
        "speeds": what.speeds.document(),
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
