"""A protocol's run from its start to its end, and on from where it was stopped: the front door."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ssdlab import logfolder
from ssdlab._version import VERSION
from ssdlab.answer import Check
from ssdlab.engine import opening, plans, snapshots, sources
from ssdlab.engine.answers import weighed
from ssdlab.engine.findings import Findings, ProtocolRun, write
from ssdlab.engine.plans import Announcement, ProtocolOrder, check, setup_of
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.runner import Execution, mark
from ssdlab.errors import ExperimentError, InputError, Interrupted, RefusedError, SsdlabError
from ssdlab.progress import Notice, ProgressCallback
from ssdlab.rating import Rating
from ssdlab.safety import medium
from ssdlab.store import RunStore, called
from ssdlab.store.folder import RunFolder, Status
from ssdlab.target import RealSession, Session, Target, Terms, sim
from ssdlab.units import counted

Examine = Callable[[Execution], Sequence[Check]]
"""Says whether what a run has measured can be believed (:mod:`ssdlab.checks`)."""


Announce = Callable[[Announcement], object]
"""Told what will be done."""


def begin(
    order: ProtocolOrder,
    store: RunStore,
    *,
    progress: ProgressCallback,
    notice: Notice,
    announce: Announce = lambda _what: None,
    examine: Examine = lambda _execution: (),
) -> ProtocolRun:
    """Runs a protocol from its start. Raises InputError where the order cannot be carried out as it
    is, RefusedError where going on could destroy data that is not to be destroyed; Interrupted on
    Ctrl-C, and ExperimentError where a step failed: what is finished is kept, and :func:`go_on`
    goes on."""
    values = order.protocol.values(order.given)
    check(order)
    order = replace(order, target=set_up_for(order.target, values))
    target = plans.opened(order)
    target.check()
    what = plans.announcement(order, setup_of(order, values, target), store)
    what = replace(what, rating=order.rating or target.rating)
    announce(what)
    if order.logs is not None:
        logfolder.prepare_empty(order.logs)
    store.prepare()
    with target.open(Terms(work=what.work(), notice=notice)) as session:
        setup = replace(setup_of(order, values, session), direct=session.direct)
        what = replace(what, setup=setup)
        try:
            what = _probed(what, session, progress, announce)
        except BaseException:
            session.remove_made()
            raise
        drive = sim(order.target)
        rig = None if drive is None else drive.rig
        folder = store.create(_manifest(order, what, session), rig)
        with folder.locked():
            return _execute(what, session, folder, progress, examine)


def _probed(
    what: Announcement, session: Session, progress: ProgressCallback, announce: Announce
) -> Announcement:
    """The plan by half a minute of measuring, where nothing else was known of the drive."""
    plan = list(what.protocol.plan(what.setup))
    if not sources.worth_probing(plan, what.speeds, what.setup):
        return what
    speeds = sources.probe(session, what.setup, plan, progress)
    better = plans.at_speeds(what, plan, speeds)
    announce(better)
    return better


def go_on(
    folder: RunFolder,
    find: Callable[[str], Protocol],
    *,
    progress: ProgressCallback,
    notice: Notice,
    examine: Examine = lambda _execution: (),
    destroy: str | None = None,
    use_existing: bool = False,
    rating: Rating | None = None,
) -> ProtocolRun:
    """Goes on with a run from its last finished step. ``destroy`` and ``use_existing`` allow once
    more what the run was allowed at its start, as is needed where nothing proves that the medium is
    still the same. Raises as :func:`begin`, and InputError where the run is complete or its target
    has gone."""
    manifest = folder.manifest
    plans.require_unfinished(folder)
    what = plans.rest(folder, find(manifest.protocol), rating)
    # What is damaged is told before work begins that needs it at the end.
    for entry in folder.check():
        if entry.kind == "job":
            folder.load(entry)
    if manifest.kind == "sim" and manifest.version != VERSION:
        raise InputError(
            f"{folder.id}: was begun with version {manifest.version} and cannot go on with "
            f"{VERSION}, which may simulate differently; begin a new run"
        )
    reads_only = what.reads_only
    target = opening.left(manifest, folder.rig(), destroy, reads_only=reads_only)

    def same(session: RealSession) -> None:
        allowed = use_existing if session.kind == "file" else destroy is not None
        _require_same(folder, session, allowed or reads_only)

    terms = Terms(work=what.work(), notice=notice, verify=same)
    with folder.locked(), target.open(terms) as session:
        folder.mend_journal()
        what = replace(what, setup=replace(what.setup, direct=session.direct))
        for sentence in _resumption(folder, session):
            notice(sentence)
        return _execute(what, session, folder, progress, examine)


def _require_same(folder: RunFolder, session: RealSession, allowed: bool) -> None:
    """Raises RefusedError unless the medium is that of the run, or the user says so anew."""
    entries = folder.journal()
    last = entries[-1] if entries else None
    likeness = medium.compare(
        folder.manifest.medium or {},
        session.ids,
        medium.proof(last.state if last else {}),
        medium.fingerprint(session.held.descriptor, session.capacity),
        at_rest=last is not None and last.kind == "stop",
    )
    if likeness.verdict == "another":
        raise RefusedError(
            f"{session.name}: is not what the run was begun on: {likeness.reason}; "
            "nothing was written"
        )
    if likeness.verdict == "unproved" and not allowed:
        raise RefusedError(
            f"{session.name}: may not be what the run was begun on: {likeness.reason}; "
            f"if it is, and its data may be overwritten, say so with {session.option}"
        )


def set_up_for(target: Target, values: Mapping[str, int | float | str]) -> Target:
    """The target with the write cache as the PTS asks for it with a protocol's settings."""
    return target.for_client() if values.get("settings") == "client" else target


def _resumption(folder: RunFolder, session: Session) -> list[str]:
    """Notes that a run goes on, and what happened to the drive meanwhile; sentences for people."""
    entries = folder.journal()
    if session.kind == "sim" or not entries:
        return []
    last = entries[-1]
    gap = (datetime.now(UTC) - datetime.fromisoformat(last.ended)).total_seconds()
    alone = f"was left alone for {_span(gap)}"
    told = [f"the drive {alone}" if gap >= 0 else "the clock was put back"]
    changes = session.changes(last.state)
    if session.setup is not None:
        changes += _set_up_again(folder, session.setup)
    if changes and last.kind != "stop":
        told.append("in the step that was cut short, or by others: " + "; ".join(changes))
    else:
        told += changes
    note = "; ".join(told)
    number = len(entries) + 1
    folder.append(mark(number, "resume", "went on", session.state(), note, changes), None)
    return [f"going on after step {number - 1}; since then {note}"]


def _set_up_again(folder: RunFolder, setup: Mapping[str, Any]) -> list[str]:
    """Notes how the drive is set up now; says so where that is another way than before."""
    about = folder.manifest.about

    def values(one: Mapping[str, Any] | None) -> dict[str, Any]:
        return {r["setting"] + r["place"]: r["after"] for r in (one or {}).get("settings", [])}

    before, about["setup"] = about.get("setup"), dict(setup)
    if values(before) == values(setup):
        return []
    return ["what --setup could set is not what it was before"]


def _execute(
    what: Announcement,
    session: Session,
    folder: RunFolder,
    progress: ProgressCallback,
    examine: Examine,
) -> ProtocolRun:
    """The rest of a run whose folder is locked."""
    folder.set_status("running")
    if not (folder.path / snapshots.FILE).exists():
        snapshots.keep(folder.path, session.snapshot())
    execution = Execution(what.protocol, what.setup, session, folder, progress, what.speeds)
    try:
        execution.run()
        findings = _keep(folder, execution, examine, "complete")
    except (Interrupted, KeyboardInterrupt, SsdlabError) as error:
        failed = isinstance(error, SsdlabError) and not isinstance(error, Interrupted)
        if failed and not execution.finished:
            # Leaves nothing of a run that came to nothing.
            session.remove_made()
            shutil.rmtree(folder.path, ignore_errors=True)
            raise
        if not failed:
            execution.stop()
        with contextlib.suppress(ExperimentError):  # a full disk; going on makes it once more
            _keep(folder, execution, examine, "failed" if failed else "stopped")
        go_on = f"ssdlab resume {called(folder.path)}"
        are = "is" if execution.finished == 1 else "are"
        kept = f"; {counted(execution.finished, 'finished step')} {are} kept: {go_on} goes on"
        if folder.manifest.made_file:
            kept += f" (for that, {folder.manifest.path} stays where it is)"
        if isinstance(error, SsdlabError) and failed:
            raise type(error)(error.message + kept) from None
        raise Interrupted("stopped" + kept) from None
    session.remove_made()
    for _, path in folder.checkpoints():
        path.unlink(missing_ok=True)
    return ProtocolRun(folder, findings, folder.journal())


def _keep(folder: RunFolder, execution: Execution, examine: Examine, status: Status) -> Findings:
    records, protocol = execution.records, execution.protocol
    checks = examine(execution)
    findings = Findings(
        weighed(execution.judge(), checks),
        list(records.rounds.values()),
        dict(records.notes),
        checks,
        protocol.title,
        protocol.source,
    )
    snapshots.keep(folder.path, execution.session.snapshot())
    write(folder, findings)
    folder.set_status(status)
    return findings


def _manifest(order: ProtocolOrder, what: Announcement, session: Session) -> dict[str, Any]:
    target, setup = order.target, what.setup
    return {
        "protocol": order.protocol.name,
        "name": target.name,
        "kind": session.kind,
        "target": {
            "kind": "sim" if target.simulated else "fio",
            "name": target.name,
            "capacity_bytes": session.capacity,
        },
        "jobs": [f"protocol {order.protocol.name}"],
        "about": session.about(),
        **session.identity(),
        "capacity": session.capacity,
        "active": setup.active,
        "values": dict(setup.values),
        "divisor": setup.divisor,
        "quick": order.quick,
        "block": setup.block,
        "seed": order.seed,
        "logs": None if order.logs is None else str(order.logs.absolute()),
        "speeds": what.speeds.document(),
    }


def _span(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
