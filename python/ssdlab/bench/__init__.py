"""Many simulations: the one way to run them.

What runs them is an engine: ``threads`` of this process, or what :func:`using` says. What comes out
does not depend on the engine, nor on how many run at once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import TypeVar

from ssdlab.bench.cluster import cores
from ssdlab.bench.reuse import Reuse
from ssdlab.bench.threads import Threads
from ssdlab.bench.variant import (
    Engine,
    Seat,
    Take,
    Tolerant,
    Variant,
    WorkerLostError,
)
from ssdlab.progress import Notice, ProgressCallback, answering_ctrl_c

T = TypeVar("T")
_engine: ContextVar[Engine | None] = ContextVar("engine", default=None)
_reuse: ContextVar[Reuse | None] = ContextVar("reuse", default=None)


@contextlib.contextmanager
def using(engine: Engine) -> Iterator[None]:
    """Has an engine run all variants meanwhile."""
    token = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(token)


@contextlib.contextmanager
def reusing(*, fresh: bool = False) -> Iterator[Reuse]:
    """Has the runs of all variants meanwhile kept, and taken from what was kept unless ``fresh``;
    counts them (:meth:`Seat.run`, :meth:`Seat.drive`)."""
    reuse = Reuse(fresh)
    token = _reuse.set(reuse)
    try:
        yield reuse
    finally:
        _reuse.reset(token)


def run(variants: Sequence[Variant[T]], progress: ProgressCallback | None = None) -> list[T]:
    """What comes of the variants, in their order.

    Raises:
        InputError: the first that a variant raised; MemoryShortError where one needs more memory
            than there is.
        Interrupted: Ctrl-C, or the progress callback returned False; nothing is left running.
        ExperimentError: what runs them is gone; WorkerLostError where a variant ends it each time.
    """
    found: dict[int, T] = {}
    run_each(variants, found.__setitem__, progress)
    return [found[place] for place in range(len(variants))]


def run_each(
    variants: Sequence[Variant[T]], take: Take[T], progress: ProgressCallback | None = None
) -> None:
    """Hands over what comes of the variants as it comes, in any order, and keeps none of it:
    ``take`` is called in the thread that asks, with the place of the variant. Raises as
    :func:`run`, and what ``take`` raises; what it had been handed before is done."""
    if (reuse := _reuse.get()) is not None:
        variants, take = reuse.offered(variants), reuse.counting(take)
    with answering_ctrl_c():
        (_engine.get() or Threads()).work(variants, take, progress)


@contextlib.contextmanager
def on(address: str | None, notice: Notice = lambda _: None) -> Iterator[None]:
    """Has all variants run meanwhile on a Dask cluster, ``tcp://HOST:PORT`` or ``local:N`` for N
    worker processes of this machine; None: in threads, as ever. Raises InputError where the address
    is none, nobody answers there, or what does has another version of ssdlab."""
    if address is None:
        yield
        return
    from ssdlab.bench.cluster import connected  # heavy: only where it is used

    with connected(address, notice) as cluster, using(cluster):
        yield
