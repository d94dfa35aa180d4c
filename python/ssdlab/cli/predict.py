"""``ssdlab predict``: what a twin would do under workloads that were not measured."""

from __future__ import annotations

from dataclasses import dataclass

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View
from ssdlab.cli.made import of
from ssdlab.cli.options import document
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


@of("predict")
def command(*, view: PredictView, ask: Ask) -> None:
    """Writes the table of answers too."""
    answer, predictions = ask(predicted)
    if view.out is not None:
        view.out.write(text(predictions))
    view.show(answer, seconds=ask.seconds)
