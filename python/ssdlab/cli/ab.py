"""``ssdlab ab``: a measurement with and without a change, in turn; did the change matter?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import (
    BenchOptions,
    DriveOptions,
    KeptBelow,
    Prepare,
    ProtocolHelp,
    ProtocolOptions,
    SetKeys,
    TargetName,
    keys,
)
from ssdlab.errors import ExperimentError, InputError, Interrupted
from ssdlab.units import SEED_MAX

if light.BODIES:
    from ssdlab import bench
    from ssdlab.analysis.paired import order as runs_in_order
    from ssdlab.answer import Check
    from ssdlab.answers import trial
    from ssdlab.checks import examine, examine_run, of_result
    from ssdlab.cli.console import progress
    from ssdlab.cli.output import notice
    from ssdlab.engine import opening, plans
    from ssdlab.engine.plans import Order
    from ssdlab.engine.runs import begin
    from ssdlab.jobfile import JobText, read_job
    from ssdlab.protocols import find
    from ssdlab.rating import Rating
    from ssdlab.store import RunStore, files_of
    from ssdlab.studies import ab
    from ssdlab.target import Settings, Target

REPEATS = 4
"""Runs of each side where nothing else is said."""


@dataclass(frozen=True)
class _Wish:
    """What is to be measured on what, as asked for."""

    target: Target
    job: JobText | None
    order: Order | None
    base: dict[str, str]
    changed: dict[str, str]
    prepare: str | None
    seed: int
    store: RunStore | None
    """None in another process, from where runs are brought back."""
    rating: Rating | None

    def __reduce__(self) -> tuple[Callable[..., _Wish], tuple[Any, ...]]:
        """Protocols go by name: they are made of functions."""
        order = None if self.order is None else replace(self.order, protocol=None)  # type: ignore[arg-type]
        name = self.order and self.order.protocol.name
        return _elsewhere, (name, order, self.target, self.job, self.base, self.changed,
                            self.prepare, self.seed, self.rating)  # fmt: skip

    @property
    def what(self) -> str:
        """What is run, for people."""
        return self.order.protocol.name if self.order else self.job.name if self.job else ""

    def overrides(self, side: str) -> dict[str, str]:
        """Keys of the rig of a side."""
        return {**self.base, **(self.changed if side == "B" else {})}

    def run(self, side: str, place: int, seat: bench.Seat) -> _Ran:
        """One run. Of a simulated drive both runs of a pair have the same seed."""
        if self.store is not None:
            return _Ran(self._run(self.store, side, place, seat))
        with tempfile.TemporaryDirectory(prefix="ssdlab-") as folder:
            store = RunStore(folder)
            run = self._run(store, side, place, seat)
            return _Ran(run, files_of(store.root / run.id))

    def _run(self, store: RunStore, side: str, place: int, seat: bench.Seat) -> ab.TrialRun:
        overrides = self.overrides(side)
        seed = self.seed + place // 2
        if self.job is not None:
            settings = Settings(
                seed=seed,
                prepare=self.prepare,
                overrides=overrides,
                progress=seat.report,
                notice=notice,
                rating=self.rating,
                memory_bytes=seat.memory_bytes,
            )
            result = self.target.run(self.job, settings)
            folder = store.save(result)
            found = examine(of_result(result))
            return ab.TrialRun(side, place, folder.name, ab.numbers_of(result), _doubts(found))
        assert self.order is not None
        memory = seat.memory_bytes
        finished = begin(
            replace(self.order, overrides=overrides, seed=seed, memory_bytes=memory),
            store,
            progress=seat.report,
            notice=notice,
            announce=lambda _what: None,
            examine=examine_run,
        )
        numbers = tuple(finished.judgement.numbers)
        return ab.TrialRun(
            side, place, finished.folder.id, numbers, _doubts(finished.findings.checks)
        )


@dataclass(frozen=True)
class _Ran:
    """A run, and its files where it was made elsewhere."""

    run: ab.TrialRun
    files: Mapping[str, bytes] = field(default_factory=dict)


def _elsewhere(name: str | None, order: Order | None, *given: Any) -> _Wish:
    target, job, base, changed, prepare, seed, rating = given
    if order is not None and name is not None:
        order = replace(order, protocol=find(name))
    return _Wish(target, job, order, base, changed, prepare, seed, None, rating)


@answering
def command(
    target: TargetName,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            "-p",
            metavar="NAME",
            help=ProtocolHelp,
            autocompletion=light.complete("protocols"),
        ),
    ] = None,
    job: Annotated[
        Path | None,
        typer.Option("--job", metavar="JOB.fio", help="Or a fio job file, instead of a protocol."),
    ] = None,
    to_b: Annotated[
        str | None,
        typer.Option(
            "--to-b", metavar="CMD", help="Shell command that makes the change (real targets)."
        ),
    ] = None,
    to_a: Annotated[
        str | None,
        typer.Option(
            "--to-a",
            metavar="CMD",
            help="Shell command that undoes it, so that A and B can take turns; without it all "
            "runs of A come first.",
        ),
    ] = None,
    set_b: Annotated[
        list[str] | None,
        typer.Option(
            "--set-b", metavar="KEY=VALUE", help="The change of a simulated drive: a key of B."
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats",
            min=2,
            max=1000,
            metavar="N",
            help="Runs of each side; an even number takes out drift.",
        ),
    ] = REPEATS,
    set_: SetKeys = None,
    prepare: Prepare = None,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", min=0, max=SEED_MAX - 1000, metavar="N", help="Seed of the first pair."
        ),
    ] = 1,
    out: KeptBelow = None,
    *,
    how: ProtocolOptions,
    drive: DriveOptions,
    where: BenchOptions,
    view: View,
) -> None:
    """Try a change: repeat a measurement with and without it and say whether it mattered."""
    if (protocol is None) == (job is None):
        raise InputError("give what to measure: either --protocol NAME or --job JOB.fio")
    if protocol is not None and prepare is not None:
        raise InputError("--prepare goes with --job; a protocol prepares the drive itself")
    if protocol is None and how.any:
        raise InputError("--param, --quick, --scale and --size go with --protocol, not --job")
    on, rating = drive.resolve(target)
    store = RunStore(out)
    wish = _Wish(
        target=on,
        job=None if job is None else read_job(job),
        order=None if protocol is None else Order(**how.order(protocol), target=on, rating=rating),
        base=keys(set_),
        changed=keys(set_b, "--set-b"),
        prepare=prepare,
        seed=seed,
        store=store,
        rating=rating,
    )
    _check(wish, to_a, to_b)
    simulated = wish.target.simulated
    if where.cluster is not None and not simulated:
        raise InputError(f"{wish.target.name}: --cluster is for simulated drives")
    _try_out(wish, store)
    store.prepare()
    undoable = simulated or to_a is not None
    sides = runs_in_order(repeats, undoable)
    _announce(wish, sides, to_a, to_b, undoable)
    if simulated:
        runs = _simulated(wish, store, sides, where, quiet=view.quiet)
    else:
        runs = ab.conduct(
            sides,
            _once(wish, len(sides), quiet=view.quiet),
            lambda side: _switch(to_b if side == "B" else to_a),
            start="A" if to_a is None else None,
            undoable=undoable,
        )
    found = ab.outcome(sides, runs, undoable=undoable, simulated=simulated)
    title = f"{wish.what} on {wish.target.name}, with and without the change"
    view.show(trial.answer(found, title), whole=True)


def _doubts(found: Sequence[Check]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.title for one in found if one.status in ("bad", "doubt")))


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
        if all(wish.base.get(key) == value for key, value in wish.changed.items()):
            raise InputError("--set-b changes nothing: A has the same values")
    else:
        if wish.changed or wish.base:
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
            opening.of(wish.target, overrides, wish.seed).check()
        else:
            plans.plan(replace(wish.order, overrides=overrides, seed=wish.seed), store)


def _announce(wish: _Wish, sides: str, to_a: str | None, to_b: str | None, undoable: bool) -> None:
    tell = notice
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


def _once(wish: _Wish, count: int, *, quiet: bool) -> Callable[[str, int], ab.TrialRun]:
    def once(side: str, place: int) -> ab.TrialRun:
        with progress(f"run {place + 1} of {count} ({side})", quiet=quiet) as callback:
            return _told(wish, side, place, count, bench.Seat(callback)).run

    return once


def _simulated(
    wish: _Wish, store: RunStore, sides: str, where: BenchOptions, *, quiet: bool
) -> list[ab.TrialRun]:
    """The runs of a simulated drive, which know nothing of each other: several at once."""
    runs: dict[int, ab.TrialRun] = {}

    def take(place: int, ran: _Ran) -> None:
        if ran.files:
            store.adopt(ran.run.id, ran.files)
        runs[place] = ran.run

    variants = [
        bench.Variant(partial(_told, wish, side, place, len(sides)))
        for place, side in enumerate(sides)
    ]
    with where.progress(f"{len(sides)} runs", quiet=quiet) as callback:
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


def _switch(text: str | None) -> None:
    if text is None:
        return
    notice(f"running: {text}")
    ab.command(text)
