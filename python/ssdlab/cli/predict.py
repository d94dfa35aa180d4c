"""``ssdlab predict``: what a twin would do under workloads that were not measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering
from ssdlab.cli.options import Seed, argument, document, option
from ssdlab.output import Output

if light.BODIES:
    from ssdlab.api.twins import predicted
    from ssdlab.fits.predict import text


@dataclass(frozen=True)
class PredictView(View):
    """How the answer is wanted; ``-o`` is the table of answers."""

    report: Annotated[
        Output | None, document("--report", "--page", help="Write an HTML report there.")
    ] = None
    out: Annotated[
        Output | None,
        document(
            "--out",
            "-o",
            metavar="FILE.csv|-",
            help="Write the table there with the numbers and their 90 % intervals "
            "(iops, iops_low, iops_high ...), in the order of the questions.",
        ),
    ] = None


@answering
def command(
    twin: Annotated[
        str,
        argument(
            "TWIN.toml",
            "What `ssdlab fit` wrote; another rig or profile is as sure as drives of a kind are "
            "alike.",
            autocompletion=light.complete("drives"),
        ),
    ],
    jobs: Annotated[
        list[Path] | None, argument("JOB.fio...", "Job files; each section is a workload.")
    ] = None,
    table: Annotated[
        Path | None, option("ASK.csv", "A table of workloads, as `fit` takes it.")
    ] = None,
    seed: Seed = 1,
    *,
    view: PredictView,
    ask: Ask,
) -> None:
    """Predict what a drive does under workloads, with 90 % intervals."""
    answer, predictions = predicted(twin, jobs, table, seed, not view.quiet)
    if view.out is not None:
        view.out.write(text(predictions))
    view.show(answer, seconds=ask.seconds, whole=True)
