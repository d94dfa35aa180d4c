"""The protocol matrix: what it plans in which order, and that every chart holds the numbers of its
cells."""

from __future__ import annotations

import itertools
import re

import pytest

import small_protocol
from ssdlab import _core
from ssdlab.answer import Cell, Section
from ssdlab.engine import grids
from ssdlab.engine.grids import Spec
from ssdlab.engine.plans import ProtocolOrder
from ssdlab.engine.runner import Execution
from ssdlab.engine.runs import begin
from ssdlab.engine.steps import Job, Rounds
from ssdlab.errors import InputError
from ssdlab.protocols import find
from ssdlab.store import RunStore
from ssdlab.target import Sim
from test_protocols import jobs, options, plan, setup_of


def measured(**given: object) -> list[str]:
    """The keys of the cells, in the order in which they are measured."""
    return [key for key, job in jobs("matrix", given=given).items() if job.measured]


def test_reads_come_before_what_disturbs_them() -> None:
    given = {"blocks": "4k", "depths": "1", "mixes": "0,50,100", "patterns": "random,sequential"}
    keys = [step.key for step in plan("matrix", given=given)]
    assert [key for key in keys if not key.startswith("settle-")] == [
        "fill",
        *(f"seq-r{mix}-b4k-d1-j1" for mix in (100, 50, 0)),
        "use",
        *(f"rand-r{mix}-b4k-d1-j1" for mix in (100, 50, 0)),
    ]
    written = measured(**given, order="as-written")
    assert [key[:6] for key in written] == [
        *("rand-r",) * 3,
        *("seq-r0", "seq-r5", "seq-r1"),
    ]
    assert written[:3] == [f"rand-r{mix}-b4k-d1-j1" for mix in (0, 50, 100)]


def test_the_most_of_a_sentence_is_the_most_of_the_numbers() -> None:
    def cells(mbps: float) -> dict[str, Cell]:
        return {"mbps": Cell(mbps), "iops": Cell(mbps), "mean": Cell(40.0 + mbps / 100)}

    load = ("sequential", 0)
    found = {Spec(*load, 65536, depth, 1): cells(mbps) for depth, mbps in ((1, 1473), (16, 1476))}
    assert grids.numbers(load, found)[0].value == 1476
    assert grids.said(found) == (
        "Sequential writes: up to 1,476 MB/s (1,473 MB/s with 64 KiB, depth 1, 1 job; mean latency "
        "54.7 us)."
    )
    alone = {Spec(*load, 65536, 1, 1): cells(1473)}
    assert "up to 1,473 MB/s (64 KiB, depth 1, 1 job; mean" in grids.said(alone)


def test_what_writes_runs_for_a_while_before_it_is_measured() -> None:
    found = jobs("matrix", given={"patterns": "random", "settle_s": "7", "seconds": "20"})
    for key, job in found.items():
        if not job.measured:
            continue
        before = found.get(f"settle-{key}")
        assert (before is None) == key.startswith("rand-r100")
        assert job.seconds == 20
        if before is not None:
            own = {name: value for name, value in options(job.text).items() if name != "runtime"}
            assert before.seconds == 7
            assert own.items() <= options(before.text).items()


def test_presets_have_the_grids_of_the_programs() -> None:
    bench_fio = measured(preset="bench-fio")
    assert len(bench_fio) == 49
    assert {key.partition("-d")[0] for key in bench_fio} == {"rand-r100-b4k"}
    ezfio = measured(preset="ezfio")
    # Four lines over nine block sizes, three over nine numbers of threads.
    assert len(ezfio) == 4 * 9 + 3 * 9
    assert "rand-r70-b4k-d1-j256" in ezfio and "seq-r100-b128k-d256-j1" in ezfio
    longer = [jobs("matrix", given={"preset": name})[key].seconds for name, key in (
        ("bench-fio", bench_fio[0]), ("ezfio", ezfio[0]))]  # fmt: skip
    assert longer == [60, 120]


def test_only_reads_write_nothing() -> None:
    found = jobs("matrix", given={"prepare": "none", "mixes": "100"})
    assert found and all(job.shape.write_share == 0 for job in found.values())


def test_steady_adds_rounds_until_random_writes_hold_still() -> None:
    steps = find("matrix").plan(setup_of("matrix", given={"prepare": "steady"}))
    (rounds,) = [step for step in steps if isinstance(step, Rounds)]
    after = steps[steps.index(rounds) + 1]
    assert isinstance(after, Job) and after.key.startswith("rand-r100")
    assert not any(job.measured for job in rounds.jobs(1))


def test_sequential_streams_keep_apart() -> None:
    given = {"patterns": "sequential", "mixes": "0", "blocks": "64k", "depths": "1", "jobs": "4"}
    job = jobs("matrix", given=given)["seq-r0-b64k-d1-j4"]
    planned = _core.job_plan(job.text, job_name="x", target_bytes=1 << 30)
    regions = sorted(region for one in planned["processes"] for region in one["regions"])
    assert len(regions) == 4
    for (offset, length), (following, _) in itertools.pairwise(regions):
        assert offset + length <= following


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mixes": "100,101"}, "--param mixes=.*101"),
        ({"mixes": "33.5"}, "--param mixes=.*whole percentages"),
        ({"patterns": "random,sequental"}, '"sequential"'),
        ({"depths": "0"}, "--param depths="),
        ({"jobs": "1..300"}, "--param jobs="),
        ({"blocks": "1..4"}, "--param blocks="),
        ({"depths": "1..100", "jobs": "1..100"}, r"at most 5,000"),
    ],
)
def test_a_grid_that_is_none_is_refused_in_a_sentence(given: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        plan("matrix", given=given)
    assert "\n" not in caught.value.message


def test_sizes_below_the_logical_block_are_left_out() -> None:
    found = jobs("matrix", block=4096, given={"preset": "ezfio"})
    assert not any(re.search(r"-b(512|1k|2k)-", key) for key in found)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Section, dict[str, float | None]]:
    """What a matrix of 2 x 2 x 2 was judged to be, and the IOPS of its steps."""
    given = {"blocks": "4k,16k", "depths": "1,8", "mixes": "100,0", "patterns": "random"}
    given |= {"passes": "1", "seconds": "1", "settle_s": "1"}
    seen: list[Execution] = []
    store = RunStore(tmp_path_factory.mktemp("matrix"))
    done = begin(
        ProtocolOrder(find("matrix"), Sim("small", small_protocol.RIG), given, quick=True),
        store,
        progress=lambda _news: True,
        notice=lambda _sentence: None,
        announce=lambda _what: None,
        examine=lambda execution: seen.append(execution) or [],  # type: ignore[func-returns-value]
    )
    assert done is not None
    records = seen[-1].records
    return (
        find("matrix").judge(records, seen[-1].setup),
        {key: records.iops(key) for key in records if key.startswith("rand-")},
    )


def test_rows_table_and_heat_maps_hold_what_the_steps_came_to(
    run: tuple[Section, dict[str, float | None]],
) -> None:
    section, steps = run
    assert len(steps) == len(section.rows) == len(section.tables[0].rows) == 8
    for row in section.rows:
        mix = {"randread": 100, "randwrite": 0}[row["rw"]]
        spec = Spec("random", mix, row["bs"], row["iodepth"], row["numjobs"])
        assert row["iops"] == steps[spec.key]
        assert (row["waf"] is None) == (mix == 100)
    heats = [one for one in section.figures if one.curves[0].style == "heat"]
    assert len(heats) == 4  # IOPS and latency, of reads and of writes
    drawn = {z for one in heats if one.curves[0].name == "IOPS" for z in one.curves[0].z}
    assert drawn == set(steps.values())
    reads = next(one for one in heats if one.title.startswith("IOPS: Random reads"))
    assert (reads.y_names, reads.x_names) == (["4 KiB", "16 KiB"], ["1", "8"])
    at = dict(zip(zip(reads.curves[0].x, reads.curves[0].y, strict=True), reads.curves[0].z,
                  strict=True))  # fmt: skip
    assert at[1.0, 0.0] == steps["rand-r100-b4k-d8-j1"]
    assert section.numbers[0].value == max(
        value or 0 for key, value in steps.items() if "-r100-" in key
    )


def test_latency_is_drawn_against_iops_by_block_size(
    run: tuple[Section, dict[str, float | None]],
) -> None:
    section, steps = run
    figure = next(one for one in section.figures if one.title == (
        "Mean latency against IOPS: random reads, 1 job"))  # fmt: skip
    assert [curve.name for curve in figure.curves] == ["4 KiB", "16 KiB"]
    assert list(figure.curves[0].x) == [
        steps["rand-r100-b4k-d1-j1"],
        steps["rand-r100-b4k-d8-j1"],
    ]
