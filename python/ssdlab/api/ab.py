"""``ssdlab.ab``: a measurement with and without a change, in turn; did the change matter?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ssdlab import bench
from ssdlab.analysis.paired import order as runs_in_order
from ssdlab.answers import trial
from ssdlab.api.report import Report
from ssdlab.api.target import On, order_of, target_of
from ssdlab.api.watching import Watch, shown
from ssdlab.api.working import working
from ssdlab.checks import examine, examine_run, of_result
from ssdlab.engine import opening, plans
from ssdlab.engine.plans import ProtocolOrder
from ssdlab.engine.runs import begin
from ssdlab.errors import ExperimentError, InputError, Interrupted
from ssdlab.given import Size, keys
from ssdlab.jobfile import JobText, read_job
from ssdlab.progress import Notice, unheard
from ssdlab.protocols import find
from ssdlab.store import RunStore, files_of
from ssdlab.studies import ab as study
from ssdlab.target import Settings, Target
from ssdlab.units import SEED_MAX


@dataclass(frozen=True)
class _Wish:
    """What is to be measured on what, as asked for."""

    target: Target
    job: JobText | None
    order: ProtocolOrder | None
    settings: Settings
    """Of A; with the seed of the first pair."""
    changed: dict[str, str]
    """Keys of B."""
    store: RunStore | None
    """None in another process, from where runs are brought back."""
    notice: Notice

    def __reduce__(self) -> tuple[Callable[..., _Wish], tuple[Any, ...]]:
        """Protocols go by name: they are made of functions."""
        order = None if self.order is None else replace(self.order, protocol=None)  # type: ignore[arg-type]
        name = self.order and self.order.protocol.name
        given = self.target, self.job, self.settings, self.changed
        return _elsewhere, (name, order, *given)

    @property
    def what(self) -> str:
        """What is run, for people."""
        return self.order.protocol.name if self.order else self.job.name if self.job else ""

    def overrides(self, side: str) -> dict[str, str]:
        """Keys of the rig of a side."""
        return {**self.settings.overrides, **(self.changed if side == "B" else {})}

    def run(self, side: str, place: int, seat: bench.Seat) -> _Ran:
        """One run. Of a simulated drive both runs of a pair have the same seed."""
        if self.store is not None:
            return _Ran(self._run(self.store, side, place, seat))
        with tempfile.TemporaryDirectory(prefix="ssdlab-") as folder:
            store = RunStore(folder)
            run = self._run(store, side, place, seat)
            return _Ran(run, files_of(store.root / run.id))

    def _run(self, store: RunStore, side: str, place: int, seat: bench.Seat) -> study.TrialRun:
        how: dict[str, Any] = {
            "overrides": self.overrides(side),
            "seed": self.settings.seed + place // 2,
            "memory_bytes": seat.memory_bytes,
        }
        if self.job is not None:
            settings = replace(self.settings, **how, progress=seat.report, notice=self.notice)
            result = self.target.run(self.job, settings)
            folder = store.save(result)
            checks = tuple(examine(of_result(result)))
            return study.TrialRun(side, place, folder.name, study.numbers_of(result), checks)
        assert self.order is not None
        finished = begin(
            replace(self.order, **how),
            store,
            progress=seat.report,
            notice=self.notice,
            examine=examine_run,
        )
        found = finished.findings
        return study.TrialRun(
            side, place, finished.folder.id, tuple(found.judgement.numbers), tuple(found.checks)
        )


@dataclass(frozen=True)
class _Ran:
    """A run, and its files where it was made elsewhere."""

    run: study.TrialRun
    files: Mapping[str, bytes] = field(default_factory=dict)


def _elsewhere(name: str | None, order: ProtocolOrder | None, *given: Any) -> _Wish:
    target, job, settings, changed = given
    if order is not None and name is not None:
        order = replace(order, protocol=find(name))
    return _Wish(target, job, order, settings, changed, None, unheard)


def ab(
    target: On,
    *,
    protocol: str | None = None,
    job: str | Path | None = None,
    to_b: str | None = None,
    to_a: str | None = None,
    set_b: Mapping[str, object] | None = None,
    repeats: int = 4,
    set: Mapping[str, object] | None = None,
    prepare: str | None = None,
    seed: int = 1,
    out: str | Path | None = None,
    param: Mapping[str, object] | None = None,
    quick: bool = False,
    size: Size | None = None,
    scale: int = 1,
    destroy: str | None = None,
    setup: str = "none",
    use_existing_file: bool = False,
    redact: bool = False,
    tbw: Size | None = None,
    cluster: str | None = None,
    progress: Watch = None,
    notice: Notice | None = None,
) -> Report:
    """Tries a change: a measurement with and without it, in turn, and whether it mattered.

    Args:
        target: As for :func:`ssdlab.test`.
        protocol: As for :func:`ssdlab.test`.
        job: Or a fio job file, instead of a protocol.
        to_b: Shell command that makes the change (real targets).
        to_a: Shell command that undoes it, so that A and B can take turns; without it all runs of A
            come first.
        set_b: The change of a simulated drive: a key of B.
        repeats: Runs of each side; an even number takes out drift.
        set: As for :func:`ssdlab.run`.
        prepare: As for :func:`ssdlab.run`.
        seed: Seed of the first pair.
        out: Keeps the runs below this folder; else in the user's store.
        param: As for :func:`ssdlab.test`.
        quick: As for :func:`ssdlab.test`.
        size: As for :func:`ssdlab.test`.
        scale: As for :func:`ssdlab.test`.
        destroy: Serial number of the block device whose data may be lost.
        setup: What is set on a real drive and its system, as for :func:`ssdlab.run`.
        use_existing_file: As for :func:`ssdlab.run`.
        redact: Whether serial numbers and paths are left out.
        tbw: Rated endurance of a drive, such as ``"600TB"``, or a number of TB.
        cluster: As for :func:`ssdlab.sweep`.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.
        notice: Called with a sentence for people, such as what is going to be run.

    Raises:
        InputError: the target, what is measured, or the change is wrong.
        RefusedError: a run could destroy data.
        ExperimentError: a run failed.
        Interrupted: it was stopped; the runs that had ended are kept.
    """
    if (protocol is None) == (job is None):
        raise InputError("give what to measure: either --protocol NAME or --job JOB.fio")
    if protocol is not None and prepare is not None:
        raise InputError("--prepare goes with --job; a protocol prepares the drive itself")
    if protocol is None and (param or quick or size is not None or scale != 1):
        raise InputError("--param, --quick, --scale and --size go with --protocol, not --job")
    if seed > SEED_MAX - repeats:
        raise InputError(
            f"--seed {seed}: further pairs have the seeds after it, expected at most "
            f"{SEED_MAX - repeats}"
        )
    on, rating = target_of(target, destroy, setup, use_existing_file, redact, tbw)
    order = None
    if protocol is not None:
        order = order_of(protocol, on, rating, param=param, quick=quick, size=size, scale=scale)
    if cluster is not None and not on.simulated:
        raise InputError(f"{on.name}: --cluster is for simulated drives")
    bench.cores(cluster)  # what is no address is refused before anything is said
    store = RunStore(out)
    wish = _Wish(
        target=on,
        job=None if job is None else read_job(job),
        order=order,
        settings=Settings(seed, prepare, keys(set), rating=rating),
        changed=keys(set_b),
        store=store,
        notice=notice or unheard,
    )
    _check(wish, to_a, to_b)
    _try_out(wish, store)
    store.prepare()
    undoable = on.simulated or to_a is not None
    sides = runs_in_order(repeats, undoable)
    _announce(wish, sides, to_a, to_b, undoable)
    if on.simulated:
        runs = _simulated(wish, store, sides, cluster, progress)
    else:
        runs = study.conduct(
            sides,
            _once(wish, len(sides), progress),
            lambda side: _switch(wish, to_b if side == "B" else to_a),
            start="A" if to_a is None else None,
            undoable=undoable,
        )
    outcome = study.outcome(sides, runs, undoable=undoable, simulated=on.simulated)
    title = f"{wish.what} on {on.name}, with and without the change"
    return Report(trial.answer(outcome, title), runs=[run.id for run in runs])


def _check(wish: _Wish, to_a: str | None, to_b: str | None) -> None:
    if wish.order is not None:
        wish.order.protocol.values(wish.order.given)
    if wish.job is not None:
        wish.target.check(wish.job)
    if wish.target.simulated:
        if to_a is not None or to_b is not None:
            raise InputError(
                f"{wish.target.name}: no command changes a simulated drive; "
                "give the change as --set-b KEY=VALUE"
            )
        if not wish.changed:
            raise InputError(
                f"{wish.target.name}: give the change as --set-b KEY=VALUE, "
                "such as --set-b ftl.over_provisioning=0.28"
            )
        base = wish.settings.overrides
        if all(base.get(key) == value for key, value in wish.changed.items()):
            raise InputError("--set-b changes nothing: A has the same values")
    else:
        if wish.changed or wish.settings.overrides:
            raise InputError(
                f"{wish.target.name}: --set and --set-b change simulated drives; "
                "for a real one give the command that makes the change, --to-b CMD"
            )
        if to_b is None:
            raise InputError(
                f"{wish.target.name}: give the command that makes the change, --to-b CMD "
                "(and --to-a CMD, which undoes it)"
            )


def _try_out(wish: _Wish, store: RunStore) -> None:
    """Builds both simulated drives, so that a wrong key is told before the first run."""
    if not wish.target.simulated:
        return
    for overrides in map(wish.overrides, "AB"):
        if wish.order is None:
            opening.of(wish.target, overrides, wish.settings.seed).check()
        else:
            order = replace(wish.order, overrides=overrides, seed=wish.settings.seed)
            plans.plan(order, store)


def _announce(wish: _Wish, sides: str, to_a: str | None, to_b: str | None, undoable: bool) -> None:
    tell = wish.notice
    tell(f"{wish.what} on {wish.target.name}, {len(sides)} runs: {' '.join(sides)}")
    if wish.changed:
        changes = ", ".join(f"{key}={value}" for key, value in wish.changed.items())
        tell(f"  B: {changes}; the two runs of a pair have the same seed")
    if to_b is not None:
        tell(f"  to B: {to_b}")
    if to_a is not None:
        tell(f"  to A: {to_a} (also before the first run and after the last)")
    if not undoable:
        tell(
            "  warning: without --to-a the change is not undone, so all runs of A come before "
            "those of B, and whatever drifts in between looks like the change"
        )


def _once(wish: _Wish, count: int, watch: Watch) -> Callable[[str, int], study.TrialRun]:
    def once(side: str, place: int) -> study.TrialRun:
        with shown(watch, f"run {place + 1} of {count} ({side})") as callback:
            return _told(wish, side, place, count, bench.Seat(callback)).run

    return once


def _simulated(
    wish: _Wish, store: RunStore, sides: str, cluster: str | None, watch: Watch
) -> list[study.TrialRun]:
    """The runs of a simulated drive, which know nothing of each other: several at once."""
    runs: dict[int, study.TrialRun] = {}

    def take(place: int, ran: _Ran) -> None:
        if ran.files:
            store.adopt(ran.run.id, ran.files)
        runs[place] = ran.run

    variants = [
        bench.Variant(partial(_told, wish, side, place, len(sides)))
        for place, side in enumerate(sides)
    ]
    with working(f"{len(sides)} runs", watch, cluster, wish.notice) as callback:
        try:
            bench.run_each(variants, take, callback)
        except Interrupted:
            raise Interrupted("stopped; the runs that had ended are kept") from None
    return [runs[place] for place in range(len(sides))]


def _told(wish: _Wish, side: str, place: int, count: int, seat: bench.Seat) -> _Ran:
    """A run; where it fails, which one it was."""
    try:
        return wish.run(side, place, seat)
    except ExperimentError as error:
        where = f"run {place + 1} of {count} ({side})"
        raise ExperimentError(f"{where}: {error.message}") from None


def _switch(wish: _Wish, text: str | None) -> None:
    if text is None:
        return
    wish.notice(f"running: {text}")
    study.command(text)
