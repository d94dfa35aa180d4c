"""``ssdlab.explain``: where the time of a simulated run went, and what would help."""

from __future__ import annotations

from pathlib import Path

from ssdlab.answers import explanation
from ssdlab.api.kept import Kept, result_of
from ssdlab.api.report import Report
from ssdlab.api.watching import Watch
from ssdlab.api.working import working
from ssdlab.studies import explain as study
from ssdlab.studies.explain import ChangeOutcome


def explain(
    run: Kept,
    *,
    tries: bool = True,
    out: str | Path | None = None,
    fresh: bool = False,
    cluster: str | None = None,
    progress: Watch = None,
) -> Report:
    """Says where the time of a simulated run went, and what would help.

    Args:
        run: A run of a job on a simulated drive: its folder or id, a :class:`ssdlab.Result`, or
            what a function returned.
        tries: Whether the run is repeated with one thing changed at a time (``--try``).
        out: Where the runs are kept.
        fresh: Runs all simulations again, also those that were run before.
        cluster: Runs on a Dask cluster, as for :func:`ssdlab.sweep`.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.

    Raises:
        InputError: there is no such run, or its drive was not simulated.
        Interrupted: it was stopped; of the simulations those that ended are kept.
    """
    result = result_of(run, out)
    study.require_simulated(result)
    outcomes: list[ChangeOutcome] = []
    if tries and result.rig_toml is not None and (job := result.measurement.main) is not None:
        main, tried = job.by_weight[0], study.changes(result)
        with working("trying changes", progress, cluster, fresh=fresh) as callback:
            changed = study.attempt(result, main, tried, callback)
        ranked = sorted(changed, key=lambda outcome: -outcome.iops)
        outcomes = [study.outcome(result, main.job, main.ddir), *ranked]
    return Report(explanation.answer(result, outcomes), [result])
