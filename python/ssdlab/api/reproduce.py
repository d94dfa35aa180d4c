"""``ssdlab.reproduce``: published experiments on simulated drives, the two side by side."""

from __future__ import annotations

import polars as pl

from ssdlab.answer import Answer
from ssdlab.answers import reproduction, twins
from ssdlab.api.report import Report, table_frame
from ssdlab.api.watching import Watch
from ssdlab.api.working import working
from ssdlab.errors import InputError
from ssdlab.experiments import find
from ssdlab.experiments.base import Mode
from ssdlab.experiments.runner import run
from ssdlab.experiments.twin import carry_out

TWIN = "twin"
"""Fits of drives that others measured, asked for by itself."""


def reproduce(
    *names: str,
    quick: bool = False,
    full: bool = False,
    seed: int = 1,
    fresh: bool = False,
    cluster: str | None = None,
    progress: Watch = None,
) -> Report:
    """Repeats published experiments on simulated drives: published numbers beside simulated.

    Args:
        names: Of experiments, as ``ssdlab list experiments`` shows them; all without a name. After
            ``"measured"`` also names of drives. By itself, ``"twin"``: fits to drives that others
            measured, held to what they were not fitted to.
        quick: Very small drives: a few minutes in all, rough.
        full: Drives and times at full size.
        seed: Seed of the runs.
        fresh: As for :func:`ssdlab.array`.
        cluster: As for :func:`ssdlab.sweep`.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.

    Raises:
        InputError: there is no such experiment.
        Interrupted: it was stopped; of the simulations those that ended are kept.
    """
    if quick and full:
        raise InputError("--quick and --full exclude each other; give one of them")
    if TWIN in names:
        if len(names) > 1 or full:
            raise InputError("twin stands by itself: neither other names nor --full go with it")
        with working("twins", progress, cluster, fresh=fresh) as callback:
            return Report(twins.answer(carry_out(quick=quick, seed=seed, progress=callback)))
    experiments = find(list(names))
    mode: Mode = "quick" if quick else "full" if full else "reduced"
    what = experiments[0].name if len(experiments) == 1 else f"{len(experiments)} experiments"
    with working(what, progress, cluster, fresh=fresh) as callback:
        outcomes = run(experiments, mode, seed=seed, progress=callback)
    answer = reproduction.answer(outcomes)
    return Report(answer, table=reproduced(answer))


def reproduced(answer: Answer) -> pl.DataFrame:
    """Every published number beside the simulated one."""
    return pl.concat(
        [
            table_frame(table).insert_column(0, pl.lit(section.key).alias("experiment"))
            for section in answer.sections[1:] or answer.sections
            for table in section.tables[:1]
        ],
        how="diagonal_relaxed",
    )
