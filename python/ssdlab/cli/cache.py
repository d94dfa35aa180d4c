"""``ssdlab cache``: misses of caches of blocks for a trace, by policy and size."""

from __future__ import annotations

from pathlib import Path

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering
from ssdlab.cli.options import BenchOptions, Seed, argument, document, option
from ssdlab.cli.trace_options import TraceOptions
from ssdlab.output import Output

if light.BODIES:
    from io import BytesIO

    from ssdlab.api.cache import cache


@answering
def command(
    trace: Path = argument("TRACE", "A trace, compressed or not."),
    *,
    policies: str = option(
        "LIST",
        "Replacement policies, such as lru,arc,s3-fifo, or all; with what is let in: "
        "lru+ghost,all+nhit:3 (ssdlab list policies).",
        default="all",
        autocompletion=light.complete_list("replacement", also=("all",)),
    ),
    sizes: str = option(
        "LIST",
        "Sizes of the cache: percentages of the working set (1%..100%/8), bytes (1g,2g), or "
        "counts (1425blocks; not of objects).",
        default="1%..100%/8",
    ),
    block: str | None = option(
        "SIZE",
        "Of a block of the cache: 4KiB. A trace that names objects is played as objects "
        "without it.",
    ),
    sample: str | None = option(
        "PERCENT",
        "Follow this share of the blocks in each of eight samples (SHARDS): estimates with a "
        "standard error; else every access is followed.",
    ),
    how: TraceOptions,
    seed: Seed = 1,
    where: BenchOptions,
    parquet: Output | None = document(
        "--parquet", metavar="FILE", help="Write a row for each cache, as --json has."
    ),
    view: View,
    ask: Ask,
) -> None:
    """Misses of caches for a trace by replacement policy and size; the working set.

    Each block of a request is looked up by itself. --json writes a list with policy, blocks,
    block_bytes, requests (blocks looked up), misses and miss_ratio of each cache; of objects with
    cache_bytes and byte_miss_ratio.
    """
    report = ask(cache)
    if parquet is not None:
        content = BytesIO()
        report.frame().write_parquet(content)
        parquet.write(content.getvalue())
    rows = list(report.answer.lead.rows)
    view.show(report.answer, seconds=ask.seconds, document=rows)
