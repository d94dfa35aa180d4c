"""``ssdlab.cache``: misses of caches of blocks for a trace, by policy and size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from ssdlab.answers import cache as cache_answer
from ssdlab.api.report import Report
from ssdlab.api.traces import block_size, reading
from ssdlab.api.watching import Watch
from ssdlab.api.working import working
from ssdlab.given import Many, Size, listed, share
from ssdlab.studies.caches import SAMPLE_MAX, SIZES, MissRatioStudy, policies, sizes

_policies, _sizes = policies, sizes
SHARE = f"expected a percentage above 0 and up to {100 * SAMPLE_MAX:g} of the blocks, such as 1"
"""What a sample may be."""


def cache(
    trace: str | Path,
    *,
    policies: str | Sequence[str] = "all",
    sizes: Many = SIZES,
    block: Size | None = None,
    sample: str | None = None,
    format: str | None = None,
    action: str = "Q",
    trace_block: Size = "4096B",
    skip_damaged: bool = False,
    window: str | None = None,
    device: int | None = None,
    columns: str | None = None,
    seed: int = 1,
    cluster: str | None = None,
    progress: Watch = None,
) -> Report:
    """Plays a trace through caches, without time: misses by policy and size, and the working set.

    Caches begin empty, each block of a request is looked up by itself, and a miss brings the block
    in. Each cache has a row with policy, blocks, block_bytes, requests (blocks looked up), misses
    and miss_ratio; of objects with cache_bytes and byte_miss_ratio.

    Args:
        trace: A trace, compressed or not.
        policies: Replacement policies, such as ``"lru,arc,s3-fifo"``, or ``"all"``; with what is
            let in, if not everything is: ``"lru+ghost,all+nhit:3"`` (``ssdlab list policies``).
        sizes: Sizes of the cache: percentages of the working set (``"1%..100%/8"``), bytes
            (``"1g,2g"``), or counts (``"1425blocks"``; not of objects).
        block: Of a block of the cache: 4KiB. A trace that names objects is played as objects
            without it.
        sample: Follow this share of the blocks in each of eight samples (SHARDS):
            estimates with a standard error; else every access is followed.
        format: As for :func:`ssdlab.trace`.
        action: As for :func:`ssdlab.trace`.
        trace_block: As for :func:`ssdlab.trace`.
        skip_damaged: As for :func:`ssdlab.trace`.
        window: As for :func:`ssdlab.trace`.
        device: As for :func:`ssdlab.trace`.
        columns: As for :func:`ssdlab.trace`.
        seed: Seed of all random streams.
        cluster: As for :func:`ssdlab.sweep`.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.

    Raises:
        InputError: the trace cannot be read, or a list is wrong.
        UnknownNameError: there is no such policy.
        Interrupted: it was stopped; nothing was kept.
    """
    study = MissRatioStudy(
        trace=Path(trace),
        reading=reading(format, action, trace_block, skip_damaged, window, device, columns),
        block=None if block is None else block_size("--block", block),
        policies=_policies(listed(policies) or ""),
        sizes=_sizes(listed(sizes) or ""),
        sample=share("--sample", sample, SHARE, SAMPLE_MAX),
        seed=seed,
    )  # fmt: skip
    with working(f"caches for {study.trace.name}", progress, cluster) as callback:
        found = study.carry_out(callback)
    return Report(cache_answer.answer(found), table=pl.DataFrame(found.rows()))
