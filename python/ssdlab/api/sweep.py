"""``ssdlab.sweep``: one job on many variants of a simulated drive, and one table of them."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ssdlab import bench, units
from ssdlab.answers import search as search_answer
from ssdlab.answers import sweep as sweep_answer
from ssdlab.api.report import Report
from ssdlab.api.rig import Rig
from ssdlab.api.watching import Watch, shown
from ssdlab.api.working import working
from ssdlab.errors import InputError, Interrupted
from ssdlab.given import Many, keys, listed, several
from ssdlab.jobfile import read_job
from ssdlab.output import write_to
from ssdlab.progress import Notice
from ssdlab.store import label
from ssdlab.sweeps import Dataset, Sweep, SweepOrder, carry_out, forecast, from_line
from ssdlab.sweeps.search import Search

FORESEEN = 24
"""Fewer runs are over before one could say how long they take."""
Varied = Many | Rig | Iterable[Rig]
"""Values of a key of a sweep; of ``"target"`` rigs as well."""


def sweep(
    job: str | Path | None = None,
    on: str | Path | Rig | None = None,
    *,
    vary: Mapping[str, Varied] | None = None,
    zip: str | Sequence[str] | Sequence[Sequence[str]] | None = None,
    sample: str | None = None,
    where: str | Sequence[str] | None = None,
    seeds: int | None = None,
    set: Mapping[str, object] | None = None,
    scale: int | None = None,
    prepare: str | None = None,
    series: bool | None = None,
    prices: str | Path | None = None,
    search: str | Sequence[str] | None = None,
    target: str | Sequence[str] | None = None,
    budget: int | None = None,
    yes: bool = False,
    out: str | Path | None = None,
    cluster: str | None = None,
    progress: Watch = None,
    notice: Notice | None = None,
) -> Report:
    """Runs a job on many variants of a simulated drive; the table grows while it runs.

    The same numbers come out wherever it runs: here in threads, or on a cluster.

    Args:
        job: A fio job file, the same for all runs, or a file that says all of a sweep. In Python
            also the text of a job.
        on: A profile's name or a rig file (.toml). In Python also a :class:`ssdlab.Rig`.
        vary: Values of a key of the rig (ftl.over_provisioning=0.07,0.28), of an option of the job
            (job.iodepth=1..256x2), of prepare, of target (drives and rig files) or of trace (files
            to replay). 1..64x4 is 1, 4, 16 and 64; with ``sample`` or ``search`` it is all from 1
            to 64, by factors (write 1,4,16,64 for these alone). May be given again: each with each.
            In Python a dict of these, such as ``{"job.iodepth": [1, 16]}``.
        zip: The values of these keys go together: the first of each, then the second. In Python
            one such group or several.
        sample: Draw N points from the ranges among the keys (0.07..0.5, or 1..256x evenly by
            factors) by a Latin hypercube or a Sobol sequence; lhs:N:SEED draws others.
        where: Run only what meets this: "capacity x members <= 8 TB". Over what varies, keys of the
            rig, capacity, usable, members, memory and price.
        seeds: Runs of each, with seeds from 1 on; 1 unless given.
        set: As for :func:`ssdlab.run`.
        scale: Scale the capacity of simulated drives down by N; the job stays as it is.
        prepare: As for :func:`ssdlab.run`.
        series: Keep the series of every run too, in DIR/series.
        prices: Prices of drives (TOML).
        search: Search the best instead of running all: a number of the summary (waf, iops, p999,
            read.p99, endurance), price or another fact of the rig; max: or min: before it says
            which way. Several: what none surpasses in all (Pareto).
        target: What the best has to meet: "p999 < 5ms", "endurance > 600TB and price < 200".
        budget: Combinations that a search tries; 100 unless given.
        yes: Go on with more than a million runs as well.
        out: Folder of the table, in which nothing is run again; without it nothing is kept.
        cluster: Run the simulations on a Dask cluster: tcp://HOST:PORT of its scheduler, or local:N
            for N worker processes here.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.
        notice: Called with a sentence for people, such as how long it will take.

    Returns:
        ``frame()`` has a row for each run, job and direction: what varied, ``seed``, and the
        numbers of the measurement window with their units in the names (``clat_p99_ns``).

    Raises:
        InputError: what varies or the job is wrong, or no run could be made.
        Interrupted: it was stopped; what is done is in the table.
        ExperimentError: the disk is full, or the cluster is gone.
    """
    with _temporary() as folder:
        asked = SweepOrder(
            job=None,
            on=None if on is None else _named(on, folder),
            vary={key: _values(values, folder) for key, values in (vary or {}).items()},
            zip=_groups(zip),
            sample=sample,
            where=several(where),
            set=keys(set),
            scale=scale,
            prepare=prepare,
            seeds=seeds,
            series=series,
            prices=None if prices is None else Path(prices),
            search=several(search),
            target=several(target),
            budget=budget,
        )
        order = asked.over(below(job))
        return swept(
            order,
            order.sweep(**({"runs_max": None} if yes else {})),
            None if out is None else Path(out),
            cluster=cluster,
            progress=progress,
            notice=notice,
        )


def below(job: str | Path | None) -> SweepOrder:
    """What a job's text or file says, or the file of a sweep; raises InputError."""
    if isinstance(job, str) and "\n" in job:
        return SweepOrder(job=read_job(job))
    return from_line(None if job is None else Path(job))


def swept(
    order: SweepOrder,
    sweep: Sweep,
    out: Path | None,
    *,
    cluster: str | None = None,
    progress: Watch = None,
    notice: Notice | None = None,
    line: str = "",
) -> Report:
    """Carries out what is asked for; ``line`` is the command that asks. Raises as
    :func:`ssdlab.sweep`."""
    memory = sweep.check()
    if notice is not None:
        for doubt in sweep.doubts():
            notice(doubt)
    with _temporary() as folder:
        kept = folder / "table" if out is None else out
        if order.search:
            search = Search.of(sweep, order)
            dataset = Dataset(kept, search.sweep.axes, series=bool(order.series))
            title = f"search, {units.counted(search.budget, 'combination')}"
            with _stays(dataset, out), working(title, progress, cluster, notice) as callback:
                best = search.carry_out(dataset, callback)
            return Report(search_answer.answer(best, None if out is None else str(out)))
        dataset = Dataset(kept, sweep.axes, series=bool(order.series))
        tried = 0
        if notice is not None and len(sweep) >= FORESEEN:
            cores = bench.cores(cluster)
            if cores is None:  # trials here say nothing of a cluster
                notice(f"{len(sweep):,} runs, up to {units.size_text(memory)} of memory each")
            else:
                with shown(progress, "plan") as callback:
                    found = forecast(sweep, memory, dataset, callback, keep=True, cores=cores)
                tried = found.kept
                notice(found.sentence)
        title = f"sweep of {units.counted(len(sweep), 'run')}"
        with _stays(dataset, out), working(title, progress, cluster, notice) as callback:
            outcome = carry_out(sweep, dataset, callback)
        outcome = replace(outcome, ran=outcome.ran + tried, before=outcome.before - tried)
        if outcome.failed and not outcome.ran and not outcome.before:
            raise InputError(f"no run could be made; of the first: {outcome.failed[0][1].message}")
        in_order = (axis.order for axis in sweep.axes)
        table = dataset.of(sweep).sort(*in_order, "seed", "job", "ddir")
        where = None if out is None else str(out)
        return Report(sweep_answer.answer(sweep, table, outcome, where, line), table=table)


@contextlib.contextmanager
def _stays(dataset: Dataset, out: Path | None) -> Iterator[None]:
    """Says of a sweep that is stopped what it leaves."""
    try:
        yield
    except Interrupted as stop:
        kept = 0 if out is None else len(dataset.done())
        raise stop.keeping(kept, f" in {out}") from None


def _groups(given: str | Sequence[str] | Sequence[Sequence[str]] | None) -> list[list[str]]:
    """Groups of keys: one, or several."""
    if given is None:
        return []
    if isinstance(given, str):
        return [units.words("--zip", given)]
    texts = [one for one in given if isinstance(one, str)]
    if texts and not any("," in one for one in texts):
        return [texts]
    return [units.words("--zip", one) if isinstance(one, str) else [*one] for one in given]


def _values(given: Varied, folder: Path) -> str:
    """The values of a key as an option takes them; rigs as files."""
    if isinstance(given, Rig):
        return _named(given, folder)
    if isinstance(given, Iterable) and not isinstance(given, str):
        return ",".join(
            _named(one, folder) if isinstance(one, Rig) else listed(one) or "" for one in given
        )
    return listed(given) or ""


def _named(on: str | Path | Rig, folder: Path) -> str:
    """The name of a drive or of its file; a rig is written to one."""
    if not isinstance(on, Rig):
        return str(on)
    place = folder / f"{label(on.name)}.toml"
    count = 1
    while place.exists() and place.read_text("utf-8") != on.to_toml():
        count += 1
        place = folder / f"{label(on.name)}-{count}.toml"
    write_to(place, on.to_toml())
    return str(place)


@contextlib.contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ssdlab-sweep-") as folder:
        yield Path(folder)
