"""Many simulations at work: where they run, and who is told how far they are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ssdlab import bench
from ssdlab.api.watching import Watch, shown
from ssdlab.progress import Notice, ProgressCallback


@contextlib.contextmanager
def working(
    title: str, watch: Watch, cluster: str | None = None, notice: Notice | None = None
) -> Iterator[ProgressCallback]:
    """A callback as :func:`ssdlab.api.watching.shown` gives it, while simulations run on a cluster,
    or here without one; raises as :func:`ssdlab.bench.on`."""
    with bench.on(cluster, notice or unheard), shown(watch, title) as callback:
        yield callback


def unheard(_sentence: str) -> None:
    """For whoever needs no notice."""
