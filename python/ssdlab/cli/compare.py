"""``ssdlab compare``: runs beside each other, with differences and whether they can be seen."""

from __future__ import annotations

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import KeptWhere, argument, flag

if light.BODIES:
    from ssdlab.api.compare import compare


@answering
def command(
    runs: list[str] = argument(
        "RUN",
        "Run folders, or ids as `ssdlab list runs` shows them; RUN,RUN are repeats that count "
        "as one side. The first is what the others are compared to.",
        autocompletion=light.complete_runs,
    ),
    each: bool = flag("Every run by itself, also where several are repeats of the same."),
    out: KeptWhere = None,
    *,
    view: View,
) -> None:
    """Compare runs: how large differences are, and whether they are more than noise."""
    view.show(compare(*runs, each=each, out=out).answer)
