"""Many simulations at work: where they run, and who is told how far they are."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from ssdlab import bench
from ssdlab.api.watching import Watch, console_on, shown
from ssdlab.errors import Interrupted
from ssdlab.progress import Notice, ProgressCallback, answering_ctrl_c, unheard


@contextlib.contextmanager
def working(
    title: str, watch: Watch, cluster: str | None = None, notice: Notice | None = None, *,
    fresh: bool | None = None,
) -> Iterator[ProgressCallback]:  # fmt: skip
    """A callback as :func:`ssdlab.api.watching.shown` gives it, while simulations run on a cluster,
    or here without one; raises as :func:`ssdlab.bench.on`.

    Whole runs are taken from what was run before, unless ``fresh`` is True, or None: then they are
    not kept either. How many were is told at the end, and how many are kept where it was stopped.
    """
    told = notice or (_printed if watch is True else unheard)
    reusing = contextlib.nullcontext() if fresh is None else bench.reusing(fresh=fresh)
    with reusing as reuse:
        try:
            with (
                _script_left_alone(cluster),
                bench.on(cluster, told),
                shown(watch, title) as callback,
                answering_ctrl_c(),
            ):
                yield callback
        except Interrupted as error:
            raise (error if reuse is None else reuse.stopped(error)) from None
    if reuse is not None and (sentence := reuse.sentence) is not None:
        told(sentence)


@contextlib.contextmanager
def _script_left_alone(cluster: str | None) -> Iterator[None]:
    """Worker processes of this machine are new interpreters, which would run the script that calls
    this once more, unless they find none."""
    main = sys.modules["__main__"]
    path, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    if cluster is None or path is None:
        yield
        return
    del main.__file__
    main.__spec__ = None
    try:
        yield
    finally:
        main.__file__, main.__spec__ = path, spec


def _printed(sentence: str) -> None:
    console_on(sys.stderr).print(sentence, markup=False, soft_wrap=True)
