"""Variants on a Dask cluster, or in worker processes of this machine that Dask manages.

Which worker runs what is decided here: each has a few batches at a time, so that there is never
much under way, runs with the same start come to the same worker, and it is known what a worker was
at when it died.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ssdlab._version import VERSION
from ssdlab.bench.variant import Take, Variant
from ssdlab.errors import InputError, missing_extra
from ssdlab.progress import Notice, ProgressCallback

if TYPE_CHECKING:
    from distributed import Client

CONNECT_S = 5.0
"""Until a scheduler must have answered."""
WORKERS_MAX = 1024
LOCAL = re.compile(r"local(?::(\d+))?")
REMOTE = re.compile(r"(?:(tcp|tls|ws|wss|ucx|ucxx)://)?([^/\s:]+|\[[0-9a-fA-F:]+\]):(\d{1,5})")
FORMS = "write tcp://HOST:PORT of a Dask scheduler, or local:N for N worker processes here"
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""A terminal sends Ctrl-C to the workers too, which are told to stop by who started them."""
_ASK = "__import__('importlib').import_module('ssdlab._version').VERSION"


@dataclass
class Cluster:
    """An engine: workers that have this version of ssdlab, and the way to them."""

    client: Client
    address: str
    """As it was asked for."""
    notice: Notice
    beside: int = 1
    """Workers that are known to share one machine."""
    _sound: set[str] = field(default_factory=set)
    _refused: set[str] = field(default_factory=set)

    def work(
        self, variants: Sequence[Variant[Any]], take: Take[Any], progress: ProgressCallback | None
    ) -> None:
        """As :meth:`ssdlab.bench.variant.Engine.work`."""
        from ssdlab.bench.dispatch import Dispatch

        if variants:
            Dispatch(self, variants, take, progress).work()

    def check(self) -> None:
        """Raises InputError where the scheduler or a worker has another ssdlab, or none."""
        try:
            found = self.client.run_on_scheduler(eval, _ASK)
        except ImportError:
            found = None
        if (wrong := _other_version(f"the scheduler at {self.address}", found)) is not None:
            raise InputError(wrong)
        if (wrong := next(iter(self._look()[1]), None)) is not None:
            raise InputError(wrong)

    def workers(self) -> dict[str, tuple[int, int]]:
        """Threads and memory limit (bytes; 0 for none) of each worker that can be used; a new one
        that cannot is told of. Raises OSError where the scheduler does not answer."""
        found, wrong = self._look()
        for sentence in wrong:
            self.notice(f"{sentence}; it is left out")
        return found

    def _look(self) -> tuple[dict[str, tuple[int, int]], list[str]]:
        """The workers that can be used, and what is wrong with new ones."""
        told = self.client.scheduler_info(n_workers=-1)["workers"]
        wrong: list[str] = []
        if new := [address for address in told if address not in self._sound | self._refused]:
            answers = self.client.run(eval, _ASK, workers=new, on_error="return")
            for address, answer in answers.items():
                if isinstance(answer, OSError):
                    continue  # gone again
                version = answer if isinstance(answer, str) else None
                bad = _other_version(f"the worker {address}", version)
                (self._sound if bad is None else self._refused).add(address)
                wrong += [] if bad is None else [bad]
        found = {
            address: (int(one["nthreads"]), int(one["memory_limit"] or 0))
            for address, one in told.items()
            if address in self._sound
        }
        return found, wrong


def _other_version(who: str, found: str | None) -> str | None:
    """What is wrong with a version; None where nothing is."""
    if found == VERSION:
        return None
    has = "has no ssdlab" if found is None else f"has ssdlab {found}"
    return f"{who} {has}; install ssdlab {VERSION} there, as here"


def cores(address: str | None) -> int | None:
    """The cores of this machine that an address makes use of; None where it is another one;
    InputError where it is no address."""
    own = len(os.sched_getaffinity(0))
    if address is None:
        return own
    if (local := LOCAL.fullmatch(address)) is not None:
        count = int(local[1] or own)
        if not 1 <= count <= WORKERS_MAX:
            raise InputError(f"--cluster {address}: expected 1 to {WORKERS_MAX} workers")
        return min(count, own)
    if REMOTE.fullmatch(address) is None:
        raise InputError(f'--cluster "{address}": is no address; {FORMS}')
    return None


@contextlib.contextmanager
def connected(address: str, notice: Notice) -> Iterator[Cluster]:
    """The cluster at an address, or one that is started here and ends with this; InputError where
    there is none, or one that cannot be used."""
    cores(address)
    local = LOCAL.fullmatch(address)
    try:
        import distributed
    except ImportError:
        raise missing_extra("--cluster", "Dask", "cluster") from None
    _hush()
    with contextlib.ExitStack() as stack:
        if local:
            count = int(local[1] or len(os.sched_getaffinity(0)))
            client = stack.enter_context(_started(count))
        else:
            whole = address if "://" in address else f"tcp://{address}"
            try:
                client = distributed.Client(
                    whole, timeout=CONNECT_S, set_as_default=False, heartbeat_interval="2s"
                )
            except (OSError, ValueError) as error:
                said = str(error).partition("\n")[0].rstrip(".")
                raise InputError(
                    f"--cluster {address}: no Dask scheduler answers there ({said})"
                ) from None
            stack.callback(_quietly, client.close, timeout=1)
        cluster = Cluster(client, address, notice, count if local else 1)
        cluster.check()
        shown = "dashboard" in client.scheduler_info()["services"]
        told = f"; dashboard: {client.dashboard_link}" if shown else ""
        threads = sum(one for one, _ in cluster.workers().values())
        notice(f"cluster {address}: {threads} threads{told}")
        yield cluster


@contextlib.contextmanager
def _started(count: int) -> Iterator[Client]:
    """So many worker processes on this machine, which share its memory."""
    import dask
    import distributed

    # A worker that dies again and again is started again each time.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"}):
        cluster = distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            memory_limit=0,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:8787",
            silence_logs=logging.CRITICAL,
            preload=[DEAF],
        )
        client = distributed.Client(cluster, set_as_default=False)
        try:
            yield client
        finally:
            # They hold nothing any more, and would take seconds to leave by themselves.
            for nanny in cluster.workers.values():
                nanny.auto_restart = False
                if nanny.pid is not None:
                    os.kill(nanny.pid, signal.SIGKILL)
            _quietly(client.close, timeout=1)
            _quietly(cluster.close, timeout=5)


def _quietly(close: Callable[..., object], timeout: float) -> None:
    """Ends something that may be gone already."""
    with contextlib.suppress(Exception):
        close(timeout=timeout)


def _hush() -> None:
    """What Dask logs is told by ssdlab, in a sentence."""
    for name in (*logging.root.manager.loggerDict, "tornado"):
        if name.split(".")[0] in ("distributed", "tornado"):  # each has a level of its own
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    for message in ("Port .* is already in use", "Sending large graph"):
        warnings.filterwarnings("ignore", message)
