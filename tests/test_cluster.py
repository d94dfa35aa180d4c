"""Variants on a cluster: the same results whoever dies meanwhile, one sentence if there is none."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

import ssdlab
from conftest import Cli
from ssdlab import bench
from ssdlab.bench import Seat, Variant, WorkerLostError, cluster
from ssdlab.bench.cluster import Cluster, connected
from ssdlab.bench.content import content_of
from ssdlab.bench.packing import Parcels, pack, unpack
from ssdlab.errors import InputError, Interrupted, MemoryShortError
from ssdlab.jobfile import JobText, read_job
from ssdlab.progress import Progress
from ssdlab.store import RunStore
from ssdlab.sweeps import Dataset, Sweep, axis, carry_out
from ssdlab.sweeps.carry import SweepOutcome as Outcome_
from ssdlab.target import Settings, Sim


def echo(value: int, seat: Seat) -> tuple[int, int]:
    return value, os.getpid()


def lasting(value: int, seat: Seat) -> tuple[int, int]:
    """Long enough for each worker to get some, however late it asks."""
    time.sleep(0.02)
    return echo(value, seat)


def deadly(seat: Seat) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def wrong(seat: Seat) -> None:
    raise InputError("x: no")


def endless(seat: Seat) -> None:
    while seat.report(Progress(0.5)):
        time.sleep(0.01)
    raise Interrupted("stopped")


def large(seat: Seat) -> int | None:
    if seat.memory_bytes is not None:
        raise MemoryShortError("needs more")
    return seat.memory_bytes


@pytest.fixture(scope="module")
def local() -> Iterator[Cluster]:
    with connected("local:2", lambda _: None) as found:
        yield found


def pids(one: Cluster) -> list[int]:
    return sorted(one.client.run(os.getpid).values())


def asked() -> Sweep:
    job = read_job("[a]\nrw=randwrite\nbs=4k\nsize=100%\nruntime=2\ntime_based=1\n")
    axes = [axis("ftl.over_provisioning=0.1..0.3/6"), axis("job.iodepth=1..8x2")]
    return Sweep(job, "lab-reference", axes, prepare="random:1", overrides={"capacity": "256MiB"})


def test_a_sweep_whose_worker_is_killed_has_the_table_of_a_local_one(
    local: Cluster, tmp_path: Path
) -> None:
    sweep, killed = asked(), list[int]()
    here, there = (Dataset(tmp_path / name, sweep.axes) for name in ("here", "there"))
    assert carry_out(sweep, here).ran == 24

    def kill_one(news: Progress) -> bool:
        if not killed and (news.fraction or 0.0) > 0.3:
            killed.append(pids(local)[0])
            os.kill(killed[0], signal.SIGKILL)
        return True

    with bench.using(local):
        outcome = carry_out(sweep, there, kill_one)
    assert killed and killed[0] not in pids(local)
    assert (outcome.ran, list(outcome.failed)) == (24, [])
    assert_frame_equal(there.of(sweep), here.of(sweep), check_exact=True)
    assert len(there.done()) == 24


def test_two_that_hand_out_one_sweep_do_each_run_once(local: Cluster, tmp_path: Path) -> None:
    job = read_job("[a]\nrw=randwrite\nbs=4k\nruntime=1\ntime_based=1\n")
    vary = [axis("ftl.over_provisioning=0.1..0.3/40")]
    sweep = Sweep(job, "lab-reference", vary, overrides={"capacity": "64MiB"})

    def carry(_: int) -> Outcome_:
        with bench.using(local):
            return carry_out(sweep, Dataset(tmp_path, vary))

    with ThreadPoolExecutor(2) as both:
        one, other = both.map(carry, range(2))
    assert one.ran + other.ran == 40 and not one.failed and not other.failed
    for mine, theirs in ((one, other), (other, one)):
        assert mine.ran + mine.before + mine.elsewhere == 40 and mine.elsewhere <= theirs.ran
    assert len(Dataset(tmp_path, vary).done()) == 40


def test_what_kills_its_worker_is_told_and_the_rest_is_done(local: Cluster) -> None:
    bodies: list[Callable[[Seat], Any]] = [partial(echo, n) for n in range(20)]
    variants = [Variant[Any](bench.Tolerant(one)) for one in [*bodies[:7], deadly, *bodies[7:]]]
    with bench.using(local):
        found = bench.run(variants)
        lost = found.pop(7)
        assert isinstance(lost, WorkerLostError) and "run 8 of 21" in lost.message
        assert [one[0] for one in found] == list(range(20))


def test_work_is_shared_out_and_what_needs_more_memory_runs_alone(local: Cluster) -> None:
    with bench.using(local):
        found = bench.run([Variant(partial(lasting, n)) for n in range(300)])
        assert [value for value, _ in found] == list(range(300))
        assert {pid for _, pid in found} == set(pids(local))
        two = [Variant[Any](large), Variant[Any](partial(echo, 1))]
        assert bench.run(two)[0] is None


def test_a_wrong_variant_ends_all_and_a_stop_reaches_the_workers(local: Cluster) -> None:
    with bench.using(local):
        with pytest.raises(InputError, match="x: no"):
            bench.run([Variant(wrong), Variant(endless)])
        stop = time.monotonic() + 1.0
        with pytest.raises(Interrupted):
            bench.run([Variant(endless)] * 4, lambda _: time.monotonic() < stop)
        began = time.monotonic()
        bench.run([Variant(partial(echo, 1))] * 2)  # once the workers are free
    assert time.monotonic() - began < 2.0


def test_a_job_takes_what_it_names_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "more.fio").write_text("[b]\nrw=read\nbs=4k\nsize=64k\nstonewall\n")
    rows = "".join(f"{n}000,read,{n * 4096},4096,0,\n" for n in range(20_000))
    (tmp_path / "t.csv").write_text("time_ns,kind,offset,length,device,response_ns\n" + rows)
    text = "[a]\nread_iolog=t.csv\niodepth=${DEPTH}\ninclude more.fio\n"
    monkeypatch.setenv("DEPTH", "3")
    job = JobText("j.fio", text, tmp_path)
    target = Sim("d", '[device]\nkind = "null"\ncapacity = "1GiB"\n')
    alone, same = target.run(job, Settings()), content_of(job)
    sent: dict[str, bytes] = {}
    content = pack([job, job], Parcels(sent.__setitem__))
    assert len(sent) == 1 and len(content) < 2000
    for name in ("more.fio", "t.csv"):
        (tmp_path / name).unlink()
    monkeypatch.delenv("DEPTH")
    (tmp_path / "there").mkdir()
    there, _ = unpack(content, sent, tmp_path / "there")
    assert content_of(there) == same, "what was run before is found on both machines"
    assert target.run(there, Settings()).summary() == alone.summary()
    assert unpack(pack(there)) == job, "what comes back knows nothing of the other machine"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("host", "is no address"),
        ("local:0", "expected 1 to"),
        ("tcp://127.0.0.1:1", "no Dask scheduler answers"),
    ],
)
def test_what_is_no_cluster_is_one_sentence(
    cli: Cli, tmp_path: Path, address: str, said: str
) -> None:
    (tmp_path / "j.fio").write_text("[a]\nrw=read\nsize=1m\n")
    line = ["sweep", tmp_path / "j.fio", "--on", "lab-reference", "--vary", "job.iodepth=1,2"]
    outcome = cli(*line, "-o", tmp_path / "out", "--cluster", address)
    assert outcome.status == 2 and said in outcome.err and outcome.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_without_dask_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"ssdlab\[cluster\]"), bench.on("local:1"):
        pass


def test_another_version_on_the_other_side_is_refused(
    local: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "VERSION", "0.0.1")
    with pytest.raises(InputError, match=r"the scheduler at local:2 has ssdlab .*; install"):
        local.check()
    assert "has no ssdlab" in str(cluster._other_version("x", None))


def test_a_worker_that_comes_later_without_ssdlab_is_left_out(
    local: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    one = replace(local, notice=told.append, _sound=set(), _refused=set())
    addresses = sorted(one.client.scheduler_info(n_workers=-1)["workers"])
    own, late = one.client.run, addresses[1]

    def answers(do: Callable[..., Any], *given: Any, **how: Any) -> dict[str, Any]:
        found = own(do, *given, **how)
        return {at: ImportError("no ssdlab") if at == late else it for at, it in found.items()}

    monkeypatch.setattr(one.client, "run", answers)
    assert [*one.workers()] == addresses[:1] and [*one.workers()] == addresses[:1]
    assert len(told) == 1, "once"
    assert late in told[0] and "has no ssdlab" in told[0] and "left out" in told[0]
    with bench.using(one):
        found = bench.run([Variant(partial(lasting, n)) for n in range(20)])
    assert len({pid for _, pid in found}) == 1


def test_what_no_worker_has_the_memory_for_is_told(local: Cluster, tmp_path: Path) -> None:
    many = tmp_path / "many.toml"
    small = ssdlab.Rig("lab-reference").set(capacity="64MiB")
    many.write_text(ssdlab.Rig.array(0, small, 200).to_toml())
    job = read_job("[a]\nrw=read\nbs=4k\nnumber_ios=5\n")
    big = Sweep(job, str(many), [axis("member.capacity=64MiB,8TiB")])
    with bench.using(local):
        outcome = carry_out(big, Dataset(tmp_path / "out", big.axes))
    ((run, error),) = outcome.failed
    assert outcome.ran == 1 and run.values["member.capacity"] == "8TiB"
    assert isinstance(error, MemoryShortError) and "of memory" in error.message


JOB = "[a]\nrw=randwrite\nbs=4k\nsize=100%\nruntime=1\ntime_based\n"
SMALL = ("--set", "capacity=256MiB", "--job")
COMMANDS = (
    ("array", "lab-reference", "--levels", "0,5", "--count", "4", *SMALL),
    ("plan", "storage", "--quick", "--candidate", "intel-dc-s3700-200",
     "--candidate", "raid0:2:intel-dc-s3700-200@adaptec-3152-8i", "--job"),
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=["array", "plan storage"])
def test_other_commands_say_the_same(
    local: Cluster, cli: Cli, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "j.fio").write_text(JOB)
    line = [*command, tmp_path / "j.fio", "-q", "--json"]
    assert cli(*line, tmp_path / "here.json").status == 0
    with bench.using(local):
        assert cli(*line, tmp_path / "there.json").status == 0
    assert (tmp_path / "here.json").read_bytes() == (tmp_path / "there.json").read_bytes()


def test_runs_that_were_made_on_workers_are_kept_here(
    local: Cluster, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "j.fio").write_text(JOB)
    line = ["ab", "lab-reference", *SMALL, tmp_path / "j.fio", "--set-b", "ftl.gc.victim=fifo"]
    found = []
    for name in ("here", "there"):
        with bench.using(local) if name == "there" else contextlib.nullcontext():
            place = tmp_path / name
            outcome = cli(*line, "--repeats", "2", "--out", place, "--json", place / "../x.json")
        assert outcome.status == 0, outcome.err
        runs = RunStore(tmp_path / name).entries()
        found.append([run.result().summary() for run in sorted(runs, key=lambda run: run.id)])
    here, there = (sorted(map(str, one)) for one in found)
    assert len(here) == 4 and here == there
