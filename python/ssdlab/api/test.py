"""``ssdlab.test`` and ``ssdlab.resume``: a protocol on a target, from its start to the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ssdlab.answers import protocol as protocol_answer
from ssdlab.api.report import Report
from ssdlab.api.target import On, order_of, rated, target_of
from ssdlab.api.watching import Watch, shown
from ssdlab.checks import examine_run
from ssdlab.engine import findings
from ssdlab.engine.plans import ProtocolOrder, require_unfinished
from ssdlab.engine.ratings import rating_of
from ssdlab.engine.runs import Announce, begin, go_on
from ssdlab.engine.speed import assumed
from ssdlab.errors import InputError
from ssdlab.given import Size
from ssdlab.progress import Notice, unheard
from ssdlab.protocols import find
from ssdlab.rating import Rating
from ssdlab.rig import profile
from ssdlab.store import RunStore
from ssdlab.store.folder import RunFolder


def test(
    target: On,
    protocol: str,
    *,
    set: Mapping[str, object] | None = None,
    seed: int = 1,
    assume_speed: str | None = None,
    like: str | None = None,
    out: str | Path | None = None,
    logs: str | Path | None = None,
    gentle: bool = False,
    param: Mapping[str, object] | None = None,
    quick: bool = False,
    size: Size | None = None,
    scale: int = 1,
    destroy: str | None = None,
    setup: str = "none",
    use_existing_file: bool = False,
    redact: bool = False,
    tbw: Size | None = None,
    progress: Watch = None,
    notice: Notice | None = None,
) -> Report:
    """Tests a drive by a protocol, which prepares it, waits for steady state, measures and judges.

    The run is kept step by step; after an interruption :func:`ssdlab.resume` goes on with it.

    Args:
        target: A profile's name, a rig file (.toml), a plain file, or a block device. In Python
            also a :class:`ssdlab.Rig` or a :class:`ssdlab.Target`.
        protocol: What to do: a name from ``ssdlab list protocols``.
        set: As for :func:`ssdlab.run`.
        seed: As for :func:`ssdlab.run`.
        assume_speed: How fast the drive is, for the plan: 200MB/s, 5000iops, or both,
            500MB/s,20kiops.
        like: Or a simulated drive that it is like, for the plan.
        out: Keeps the run below this folder; else in the user's store.
        logs: Writes fio's logs of every job below this folder.
        gentle: characterise: only read what is there; needs no ``destroy``.
        param: A parameter of the protocol, which ``ssdlab show PROTOCOL`` lists; may be given
            again. In Python a dict of these; several values as a list or as ``"1,4,32"``.
        quick: Minutes instead of hours: not steady state, not for publication.
        size: Size of the file that is a target; 8g (1g with ``quick``), or half of what is free,
            unless given.
        scale: Scale a simulated drive and all durations down by N.
        destroy: Serial number of the block device whose data may be lost.
        setup: What is set on a real drive and its system, as for :func:`ssdlab.run`.
        use_existing_file: As for :func:`ssdlab.run`.
        redact: Leave serial numbers and paths out.
        tbw: Rated endurance of a drive, such as ``"600TB"``, or a number of TB.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.
        notice: Called with a sentence for people, such as what will be lost.

    Raises:
        InputError: the target, the protocol or a setting is wrong.
        RefusedError: the run could destroy data.
        ExperimentError: a step failed; what is finished is kept.
        Interrupted: it was stopped; what is finished is kept.
    """
    on, rating = target_of(target, destroy, setup, use_existing_file, redact, tbw)
    order = order_of(
        protocol, on, rating, param=param, quick=quick, size=size, scale=scale, set=set, seed=seed
    )
    order = informed(order, assume_speed=assume_speed, like=like, logs=logs, gentle=gentle)
    return report_of(carried_out(order, RunStore(out), progress, notice))


def informed(
    order: ProtocolOrder,
    *,
    assume_speed: str | None,
    like: str | None,
    logs: str | Path | None,
    gentle: bool = False,
) -> ProtocolOrder:
    """With what is known of the drive, where fio's logs go, and whether the protocol only reads;
    raises InputError."""
    given = order.given
    if gentle:
        if all(parameter.name != "gentle" for parameter in order.protocol.parameters):
            raise InputError(
                f"--gentle: {order.protocol.name} writes; characterise can do with reads"
            )
        given = {**given, "gentle": "yes"}
    return replace(
        order,
        given=given,
        assume=None if assume_speed is None else assumed(assume_speed),
        like=like and profile(like).name,
        logs=None if logs is None else Path(logs),
    )


def carried_out(
    order: ProtocolOrder,
    store: RunStore,
    progress: Watch,
    notice: Notice | None,
    announce: Announce = lambda _what: None,
) -> RunFolder:
    """A protocol from its start; raises as :func:`test`."""
    with shown(progress, f"{order.protocol.name} on {order.target.name}") as callback:
        return begin(
            order,
            store,
            progress=callback,
            notice=notice or unheard,
            announce=announce,
            examine=examine_run,
        ).folder


def resume(
    run: str | Path,
    *,
    tbw: Size | None = None,
    destroy: str | None = None,
    use_existing_file: bool = False,
    out: str | Path | None = None,
    progress: Watch = None,
    notice: Notice | None = None,
) -> Report:
    """Goes on with a protocol's run after Ctrl-C, a kill or a power failure.

    Args:
        run: A run: its folder, its id, a piece of that, or last.
        tbw: Rated endurance of the drive, such as ``"600TB"``, or a number of TB.
        destroy: Serial number of the block device whose data may be lost.
        use_existing_file: As for :func:`ssdlab.run`.
        out: Where the runs are kept.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.
        notice: Called with a sentence for people.

    Raises:
        InputError: there is no such run, it is complete, or its target has gone.
        RefusedError: going on could destroy data.
        ExperimentError: a step failed; what is finished is kept.
        Interrupted: it was stopped; what is finished is kept.
    """
    folder = RunStore(out).open(str(run))
    rating = rating_left(folder, tbw)
    title = f"{folder.manifest.protocol} on {folder.manifest.name}"
    with shown(progress, title) as callback:
        finished = go_on(
            folder,
            find,
            progress=callback,
            notice=notice or unheard,
            examine=examine_run,
            destroy=destroy,
            use_existing=use_existing_file,
            rating=rating,
        )
    return report_of(finished.folder)


def rating_left(folder: RunFolder, tbw: Size | None) -> Rating | None:
    """What may be written to the drive of an unfinished run; InputError where it is finished."""
    given = rated(tbw)
    require_unfinished(folder)
    if folder.manifest.path is not None:
        return rating_of(Path(folder.manifest.path), given)
    return None if given is None else Rating(given, "--tbw")


def report_of(folder: RunFolder) -> Report:
    """What a kept run of a protocol found; raises InputError where it is damaged."""
    run = findings.read(folder)
    return Report(protocol_answer.answer(run), runs=[run.id])
