"""``ssdlab fit``: measurements of a drive in, a rig that predicts it out."""

from __future__ import annotations

from dataclasses import dataclass

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View
from ssdlab.cli.made import of
from ssdlab.cli.options import document
from ssdlab.output import Output

if light.BODIES:
    from ssdlab.api.twins import fit


@dataclass(frozen=True)
class FitView(View):
    """How the answer is wanted; ``-o`` is the twin."""

    report: Output | None = document("--report", "--page", help="Write an HTML report there.")
    out: Output | None = document(
        "--out", "-o", metavar="FILE.toml", help="Write the twin there: a rig."
    )


@of("fit")
def command(*, view: FitView, ask: Ask) -> None:
    """Writes the twin too."""
    report = ask(fit, out=view.out)
    view.show(report.answer, seconds=ask.seconds)
