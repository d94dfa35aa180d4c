"""``ssdlab report``: one HTML file from any number of runs, or from that of a protocol."""

from __future__ import annotations

from ssdlab.cli import light
from ssdlab.cli.answer import answering
from ssdlab.cli.options import KeptWhere, Page, SeveralRuns, option
from ssdlab.output import Output

if light.BODIES:
    from ssdlab.answers import kept
    from ssdlab.cli.output import results
    from ssdlab.report import answer_page
    from ssdlab.store import RunStore


@answering
def command(
    runs: SeveralRuns,
    output: Page = None,
    title: str | None = option("TEXT", "Heading of the report."),
    out: KeptWhere = None,
) -> None:
    """Write one HTML report (report.html) that compares runs, or shows what a protocol found."""
    output = output or Output("report.html")
    store = RunStore(out)
    answer_page.render(kept.answer([store.open(run) for run in runs]), output, title=title)
    results(output).print(f"wrote {output}", markup=False, soft_wrap=True)
