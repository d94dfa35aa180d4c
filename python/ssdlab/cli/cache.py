"""``ssdlab cache``: misses of caches of blocks for a trace, by policy and size."""

from __future__ import annotations

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View
from ssdlab.cli.made import of
from ssdlab.cli.options import document
from ssdlab.output import Output

if light.BODIES:
    from io import BytesIO

    from ssdlab.api.cache import cache


@of("cache")
def command(
    *,
    parquet: Output | None = document(
        "--parquet", metavar="FILE", help="Write a row for each cache, as --json has."
    ),
    view: View,
    ask: Ask,
) -> None:
    """Writes the rows, which are the document of the answer, as a table of columns too."""
    report = ask(cache)
    if parquet is not None:
        content = BytesIO()
        report.frame().write_parquet(content)
        parquet.write(content.getvalue())
    rows = list(report.answer.lead.rows)
    view.show(report.answer, seconds=ask.seconds, document=rows)
