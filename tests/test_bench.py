"""Many simulations at once: shares of the memory, order, progress, errors, Ctrl-C."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ssdlab import _core, bench
from ssdlab.bench import Seat, Variant, threads
from ssdlab.errors import InputError, Interrupted, MemoryShortError
from ssdlab.jobfile import JobText
from ssdlab.progress import Progress, stage, within
from ssdlab.rig import profile
from ssdlab.target import Settings, Sim
from test_architecture import PACKAGE, files

JOB = JobText("w.fio", "[w]\nrw=randwrite\nbs=4k\nsize=64m\nnumber_ios=3000\n", Path())
GIB = 1 << 30


def drive(capacity: str = "256MiB") -> Sim:
    rig = profile("lab-reference").rig()
    rig.set("capacity", capacity)
    return Sim("small", rig.to_toml())


def simulations(count: int) -> list[Variant[float]]:
    """Runs that differ in their seeds; their answers tell them apart."""

    def variant(seed: int) -> Variant[float]:
        settings = Settings(seed=seed, prepare="random:1")
        return Variant(
            lambda seat: (
                next(seat.run(drive(), JOB, settings).jobs[0].directions()).clat.mean_ns or 0.0
            ),
            1.0 / seed,
        )

    return [variant(seed) for seed in range(1, count + 1)]


def test_what_comes_out_does_not_depend_on_how_many_run_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    together = bench.run(simulations(4))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0})
    assert bench.run(simulations(4)) == together
    assert len(set(together)) == 4


def test_answers_stand_in_the_order_asked_for_whatever_ends_first() -> None:
    def slow(place: int) -> Variant[int]:
        def body(_seat: Seat) -> int:
            time.sleep(0.05 * (3 - place))
            return place

        return Variant(body, cost=place + 1.0)

    assert bench.run([slow(place) for place in range(3)]) == [0, 1, 2]
    assert bench.run([]) == []


def test_what_needs_more_than_its_share_runs_after_the_others_and_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    monkeypatch.setattr(threads, "available_bytes", lambda most=None: most or 8 * GIB)
    seats: list[tuple[str, int | None]] = []
    at_work, lock = 0, threading.Lock()

    def variant(name: str, needs: int) -> Variant[int]:
        def body(seat: Seat) -> int:
            nonlocal at_work
            if seat.memory_bytes is not None and seat.memory_bytes < needs:
                raise MemoryShortError(f"{name}: needs more")
            with lock:
                at_work += 1
                beside = at_work
                seats.append((name, seat.memory_bytes))
            time.sleep(0.05)
            with lock:
                at_work -= 1
            return beside

        return Variant(body)

    found = bench.run([variant("large", 5 * GIB), variant("a", 1), variant("large too", 6 * GIB)])
    assert seats[0] == ("a", 4 * GIB)
    assert seats[1:] == [("large", None), ("large too", None)]
    assert (found[0], found[2]) == (1, 1), "nothing else ran beside them"


def test_the_core_tells_a_rig_that_needs_too_much_memory_from_a_wrong_one() -> None:
    with pytest.raises(MemoryShortError, match=r"needs about .* GB of memory"):
        Seat(lambda _: True, 1 << 20).run(drive("64GiB"), JOB, Settings())
    with pytest.raises(MemoryShortError):
        Seat(lambda _: True, 1 << 20).drive(drive("64GiB").rig, "large", 1)
    with pytest.raises(InputError) as wrong:
        Seat(lambda _: True, 1 << 20).run(Sim("x", "[device]\nkind = 'sdd'\n"), JOB, Settings())
    assert not isinstance(wrong.value, MemoryShortError)


def test_what_needs_more_memory_than_there_is_ends_all() -> None:
    def body(_seat: Seat) -> int:
        raise MemoryShortError("x: needs about 9 GB")

    with pytest.raises(MemoryShortError, match="x: needs about 9 GB"):
        bench.run([Variant(body), Variant(lambda _seat: 1)])
    # Where it is what came of it, the others are not lost.
    found = bench.run([Variant(bench.Tolerant(body)), Variant(bench.Tolerant(lambda _seat: 1))])
    assert isinstance(found[0], MemoryShortError)
    assert found[1] == 1


def test_a_wrong_variant_stops_the_others_and_is_what_is_told() -> None:
    def endless(seat: Seat) -> int:
        while seat.report(Progress(0.5)):
            time.sleep(0.01)
        raise Interrupted("stopped")

    def wrong(_seat: Seat) -> int:
        raise InputError("x: no")

    with pytest.raises(InputError, match="x: no"):
        bench.run([Variant(endless, 9.0), Variant(wrong), *[Variant(endless)] * 3])


def test_progress_goes_up_to_all_and_stops_where_it_is_told_to() -> None:
    told: list[float] = []

    def note(news: Progress) -> bool:
        told.append(news.fraction or 0.0)
        return True

    bench.run(simulations(3), note)
    assert told == sorted(told)
    assert told[-1] == 1.0
    threads = threading.active_count()
    with pytest.raises(Interrupted):
        bench.run(simulations(3), lambda news: (news.fraction or 0.0) < 0.1)
    assert threading.active_count() == threads, "nothing is left running"


def test_a_preparation_and_the_run_after_it_are_one_progress() -> None:
    told: list[tuple[str, float]] = []

    def note(news: Progress) -> bool:
        told.append((news.text.partition(",")[0], news.fraction or 0.0))
        return True

    job = JobText("w.fio", "[w]\nrw=randwrite\nsize=100%\nnorandommap\nloops=3\n", Path())
    drive("8GiB").run(job, Settings(prepare="random:3", progress=note))
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert {name for name, _ in told} >= {"random writes", "run"}
    assert min(share for name, share in told if name == "run") >= 2 / 3


def test_a_part_of_the_progress_is_a_part_of_the_whole() -> None:
    told: list[float | None] = []

    def note(news: Progress) -> bool:
        told.append(news.fraction)
        return True

    within(note, 0.2, 0.6)(Progress(0.5))
    stage(note, 1, 4)(Progress(1.0))
    stage(note, 0, 2)(Progress(None))
    assert told == [pytest.approx(0.4), pytest.approx(0.5), None]


def test_a_curve_is_stopped_on_its_way() -> None:
    keys = np.random.default_rng(1).integers(0, 1 << 20, 20_000_000).astype(np.uint64)
    begun = time.monotonic()
    with pytest.raises(Interrupted):
        _core.miss_ratio_curve("arc", keys, sizes=[1 << 16, 1 << 18], progress=lambda _: False)
    assert time.monotonic() - begun < 1.0


def test_the_bench_alone_makes_threads_for_simulations() -> None:
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in files()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("concurrent")
    }
    assert users == {"bench/threads.py"}


def test_ctrl_c_before_all_are_handed_over_stops_those_that_run() -> None:
    ran: list[int] = []

    def variant(place: int) -> Variant[None]:
        def body(seat: Seat) -> None:
            ran.append(place)
            if place == 0:
                os.kill(os.getpid(), signal.SIGINT)

        return Variant(body)

    with pytest.raises(Interrupted, match="nothing was kept"):
        bench.run([variant(place) for place in range(20_000)])
    assert len(ran) < 20_000


def slow_to_fill(path: Path) -> Path:
    """A drive that takes long to fill and little memory."""
    rig = profile("lab-reference").rig()
    for key, value in (("nand.page", "1MiB"), ("ftl.mapping_unit", "1MiB"), ("capacity", "8TiB")):
        rig.set(key, value)
    path.write_text(rig.to_toml())
    return path


def plan_cache(folder: Path) -> list[str]:
    trace = folder / "t.csv"
    rows = [f"{i * 10_000},read,{i * 4096},4096,0," for i in range(1000)]
    trace.write_text("\n".join(["time_ns,kind,offset,length,device,response_ns", *rows]) + "\n")
    pool = slow_to_fill(folder / "pool.toml")
    return ["plan", "cache", "--trace", str(trace), "--pool", str(pool), "--cache", "demo-client"]


def array(folder: Path) -> list[str]:
    drive = str(slow_to_fill(folder / "drive.toml"))
    return ["array", drive, "--levels", "0", "--count", "2", "--scale", "1"]


SOON_TOLD = """
from ssdlab.api import watching
from ssdlab.cli import main
watching.PATIENCE_S = watching.LINE_EVERY_S = 0.5
main()
"""
"""The command line, which else tells a pipe of its progress after five seconds of simulation."""


@pytest.mark.alone
@pytest.mark.parametrize("command", [plan_cache, array])
def test_ctrl_c_while_drives_are_prepared_ends_within_a_second(
    tmp_path: Path, command: Callable[[Path], list[str]]
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SOON_TOLD, *command(tmp_path)],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    first = process.stderr.readline()  # progress: the run is under way
    assert "runs done" in first, first
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    said = next((line for line in process.stderr if line.startswith("ssdlab:")), "")
    took = time.monotonic() - begun
    # The first of them may have ended by then.
    kept = r"nothing was kept|\d runs? that ended (is|are) kept, and the same command goes on .*"
    assert re.fullmatch(f"ssdlab: stopped by Ctrl-C; ({kept})\n", said), said
    assert process.wait(20) == 130
    assert took < 1.0
