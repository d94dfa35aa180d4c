"""``ssdlab predict``: what a twin would do under workloads that were not measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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

    report: Output | None = document("--report", "--page", help="Write an HTML report there.")
    out: Output | None = document(
        "--out",
        "-o",
        metavar="FILE.csv|-",
        help="Write the table there with the numbers and their 90 % intervals "
        "(iops, iops_low, iops_high ...), in the order of the questions.",
    )


@answering
def command(
    twin: str = argument(
        "TWIN.toml",
        "What `ssdlab fit` wrote; another rig or profile is as sure as drives of a kind are alike.",
        autocompletion=light.complete("drives"),
    ),
    jobs: list[Path] | None = argument(
        "JOB.fio...", "Job files; each section is a workload.", default=None
    ),
    table: Path | None = option("ASK.csv", "A table of workloads, as `fit` takes it."),
    seed: Seed = 1,
    *,
    view: PredictView,
    ask: Ask,
) -> None:
    """Predict what a drive does under workloads, with 90 % intervals."""
    answer, predictions = predicted(twin, jobs, table, seed, not view.quiet)
    if view.out is not None:
        view.out.write(text(predictions))
    view.show(answer, seconds=ask.seconds)
