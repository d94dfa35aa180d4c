"""``ssdlab.fit`` and ``ssdlab.predict``: a rig of a drive that was measured, and what it does."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars

from ssdlab.answer import Answer
from ssdlab.answers import blind as blind_answer
from ssdlab.answers import fit as fit_answer
from ssdlab.api.report import Report
from ssdlab.api.rig import Rig
from ssdlab.api.watching import Watch, shown
from ssdlab.errors import InputError
from ssdlab.fits import fit as fits
from ssdlab.fits import observations
from ssdlab.fits import predict as predictions
from ssdlab.fits.predict import Prediction
from ssdlab.fits.sources import Gathered, gather
from ssdlab.fits.twin import Twin, twin_of
from ssdlab.given import Size, keys, several
from ssdlab.given import size as bytes_of
from ssdlab.jobfile import read_job
from ssdlab.output import Output, Place
from ssdlab.studies import blind

SMALLEST = 10**9
"""Bytes of a drive."""


def fit(
    sources: str | Path | Sequence[str | Path] | None = None,
    *,
    out: Place | None = None,
    capacity: Size | None = None,
    start: str | Path | None = None,
    fix: Mapping[str, object] | None = None,
    check: str | Path | None = None,
    quick: bool = False,
    selftest: int | None = None,
    seed: int = 1,
    progress: Watch = None,
) -> Report:
    """Fits a rig to measurements of a drive: its twin, which any command takes as a drive.

    Args:
        sources: What was measured: tables (rw, bs, iodepth, numjobs, rwmixread, state, namespace;
            iops, lat_mean_us, clat_mean_us, clat_p50_us, clat_p99_us, waf), numbers of a data
            sheet (a small TOML, see docs/fit.md), JSON of fio or of ``ssdlab run --json``, runs, or
            folders of these.
        out: Writes the twin there, a rig file.
        capacity: Of the drive, as 960GB or 1.92TB.
        start: Profile or rig file to start from, instead of the nearest of those that come with
            ssdlab.
        fix: A key of the rig that is known and not fitted. In Python a dict of these.
        check: Fit nothing: show the measurements beside what this twin predicts.
        quick: By closed forms and few simulations, in seconds.
        selftest: Fit nothing: make twins of N random simulated drives, measured only through
            characterise, and say how near they come under loads not measured.
        seed: Seed of all random streams.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.

    Returns:
        ``frame()`` has a row for each parameter; ``texts`` the twin as the text of a rig, which
        :class:`ssdlab.Rig` takes.

    Raises:
        InputError: nothing was measured, or too little, or the start is wrong; something is given
            that has no effect where nothing is fitted.
        Interrupted: it was stopped; nothing was written.
    """
    of_a_fit = {"--out": out, "--capacity": capacity, "--start": start, "--fix": fix or None}
    if selftest is not None:
        measured = dict.fromkeys(map(str, several(sources)), True)
        _require_absent("--selftest", {**measured, "--check": check, **of_a_fit})
        with shown(progress, "blind twins") as callback:
            done = blind.selftest(selftest, seed=seed, quick=quick, progress=callback)
        return Report(blind_answer.answer(done, quick=quick))
    places = several(sources)
    if not places:
        raise InputError(
            "what was measured? give tables (.csv), runs, JSON of fio, or folders of them"
        )
    gathered = gather(places)
    if check is not None:
        _require_absent("--check", of_a_fit)
        return _checked(str(check), gathered, seed, progress)
    if capacity is None and start is None and gathered.capacity is None:
        raise InputError(
            "how large is the drive? give --capacity 960GB, or --start with a drive of its size"
        )
    size = gathered.capacity if capacity is None else bytes_of("--capacity", capacity)
    if capacity is not None and size is not None and size < SMALLEST:
        raise InputError(f'--capacity "{capacity}": expected 1GB or more, such as 960GB')
    begin = None if start is None else str(start)
    order = fits.FitOrder(
        gathered.observed, size, begin, keys(fix), seed, quick, gathered.concluded
    )
    name = "twin" if out is None else Path(str(out)).stem
    with contextlib.ExitStack() as closing:
        # That it can be written is known before minutes are spent.
        place = None if out is None else out if isinstance(out, Output) else Output(out)
        if place is not None:
            closing.callback(place.close)
        with shown(progress, "fit") as callback:
            found = fits.fit(order, callback)
        twin = twin_of(
            found.found, found.observed, name=name, start=found.start, sources=places, seed=seed
        )
        if place is not None:
            place.write(twin.text)
    return Report(replace(fit_answer.answer(found, twin, gathered.left), checks=gathered.checks))


def _require_absent(option: str, given: Mapping[str, object]) -> None:
    """Raises InputError where something is given beside an option with which it has no effect."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{name}: has no effect with {option}, which fits nothing; leave out one"
            )


def _checked(place: str, gathered: Gathered, seed: int, watch: Watch) -> Report:
    twin = Twin.load(place)
    known = [observation for observation in gathered.observed if observation.measured]
    with shown(watch, "predicting") as callback:
        loads = [observation.load for observation in known]
        found = predictions.predict(twin, loads, seed=seed, progress=callback)
    answer = fit_answer.check(twin, predictions.compare(known, found), gathered.left)
    return Report(replace(answer, checks=gathered.checks))


def predict(
    twin: str | Path | Rig,
    job: str | Path | Sequence[str | Path] | None = None,
    *,
    table: str | Path | None = None,
    seed: int = 1,
    progress: Watch = None,
) -> Report:
    """Predicts what a drive does under workloads, with 90 % intervals.

    Args:
        twin: What :func:`ssdlab.fit` wrote; another rig or profile is as sure as drives of a kind
            are alike.
        job: Job files; each section is a workload. In Python one or several, also as text.
        table: A table of workloads, as :func:`ssdlab.fit` takes it.
        seed: Seed of all random streams.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.

    Returns:
        ``frame()`` has a row for each workload in the order of the questions: what was asked, the
        numbers, and the ends of their intervals (``iops``, ``iops_low``, ``iops_high`` ...).

    Raises:
        InputError: the twin or a workload is wrong.
        Interrupted: it was stopped.
    """
    answer, found = predicted(twin, job, table, seed, progress)
    told = predictions.frame(found)
    return Report(answer, table=told.select(map(_in_ns, told.columns)))


def _in_ns(name: str) -> polars.Expr:
    """A column of the table as reports have it: times in nanoseconds."""
    column = polars.col(name)
    return (column * 1000).alias(name.replace("_us", "_ns")) if "_us" in name else column


def predicted(
    twin: str | Path | Rig,
    job: str | Path | Sequence[str | Path] | None,
    table: str | Path | None,
    seed: int,
    progress: Watch,
) -> tuple[Answer, list[Prediction]]:
    """The answer and what it rests on; raises as :func:`predict`."""
    rows = [] if table is None else observations.read(Path(table))
    asked = [("", row.load) for row in rows]
    for one in [job] if isinstance(job, str | Path) else job or []:
        asked += predictions.loads_of(read_job(one))
    if not asked:
        raise InputError("what is to be predicted? give a job file, or a table with --table")
    known = Twin.of(twin.target()) if isinstance(twin, Rig) else Twin.load(str(twin))
    with shown(progress, "predicting") as callback:
        loads = [load for _, load in asked]
        found = predictions.predict(known, loads, seed=seed, progress=callback)
    for place, row in enumerate(rows):
        found[place] = replace(found[place], said=row.said)
    return fit_answer.predicted(known, [name for name, _ in asked], found), found
