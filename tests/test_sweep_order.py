"""Sweeps as files and lines say them: files, groups, samples, conditions, traces."""

from __future__ import annotations

from pathlib import Path

import pytest

import ssdlab
from conftest import Cli
from ssdlab import _core
from ssdlab.errors import InputError
from ssdlab.jobfile import read_job
from ssdlab.plan.prices import Prices
from ssdlab.rig import profile, resolve
from ssdlab.sweeps import Sweep, SweepOrder, SweepRun, axis, read_order
from ssdlab.sweeps.axes import Axis, grouped
from ssdlab.sweeps.formula import FormulaValue, condition, value
from ssdlab.sweeps.sample import sample, sampled
from ssdlab.target import sim

DRIVE = "lab-reference"
JOB = "[w]\nrw=randwrite\nbs=4k\nsize=100%\nruntime=1\ntime_based=1\n"
FILE = '''
job = """
[w]
rw=randwrite
bs=4k
size=100%
runtime=1
time_based=1
"""
on = "lab-reference"
zip = [["nand.channels", "nand.ways"]]
where = "job.iodepth < 4 or ftl.over_provisioning > 0.15"
[set]
capacity = "256MiB"
[vary]
ftl.over_provisioning = [0.1, 0.2]
"job.iodepth" = "1..4x2"
nand.channels = [4, 8]
nand.ways = [4, 2]
'''


def written(folder: Path, text: str = FILE) -> Path:
    path = folder / "sweep.toml"
    path.write_text(text)
    return path


def values(runs: list[SweepRun], *names: str) -> list[tuple[str, ...]]:
    return [tuple(run.values[name] for name in names) for run in runs]


def test_a_file_says_what_options_say(tmp_path: Path) -> None:
    order = read_order(written(tmp_path))
    vary = ["ftl.over_provisioning=0.1,0.2", "job.iodepth=1..4x2"]
    axes = [axis(one) for one in [*vary, "nand.channels=4,8", "nand.ways=4,2"]]
    axes = grouped(axes, [["nand.channels", "nand.ways"]])
    where = ("job.iodepth < 4 or ftl.over_provisioning > 0.15",)
    same = Sweep(read_job(JOB), DRIVE, axes, 1, "fob", {"capacity": "256MiB"}, where)
    runs = list(order.sweep().runs())
    assert [run.key for run in runs] == [run.key for run in same.runs()]
    assert len(runs) == len(same) == 2 * 2 + 2 * 3
    assert {one[:2] for one in values(runs, "nand.channels", "nand.ways")} == {
        ("4", "4"),
        ("8", "2"),
    }
    over = (
        SweepOrder(vary={"job.iodepth": "8"}, where=["nand.ways = 2"], seeds=2).over(order).sweep()
    )
    assert values(list(over.runs()), "job.iodepth", "nand.ways", "seed") == [
        ("8", "2", "1"),
        ("8", "2", "2"),
    ]


def test_drives_of_a_sweep_are_made_smaller_as_those_of_a_run(tmp_path: Path) -> None:
    """A shipped drive is too large to be swept at its size, and its capacity alone cannot be set:
    what counts in blocks goes with it."""
    name = "samsung-840-pro-256"
    job = read_job(JOB)
    order = read_order(written(tmp_path, f"on = '{name}'\nscale = 64\n"))
    vary = SweepOrder(job=job, vary={"ftl.over_provisioning": "0.2"})
    (run,) = vary.over(order).sweep().runs()
    drive = sim(resolve(name))
    assert drive is not None
    rig = _core.Rig(drive.rig, rig_name=name)
    rig.set_all([*drive.smaller(64).items(), ("ftl.over_provisioning", "0.2")])
    assert run.target.rig == rig.to_toml() and rig.capacity_bytes < 8 << 30
    doubted = SweepOrder(job=job, vary={"target": f"{name},{DRIVE}"}).over(order).sweep()
    assert len(doubted.doubts()) == 1 and doubted.doubts()[0].startswith(DRIVE)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("zip =", "zipp =", 'did you mean "zip"'),
        ("on = ", "seeds = ", "seeds: found 'lab-reference', expected a whole number"),
        ('"1..4x2"', "{}", "job.iodepth"),
        ("[set]", "[set", "is not TOML"),
        ("[4, 8]", "[4, 8, 16]", "nand.channels has 3"),
        ("job.iodepth < 4", "job.iodept < 4", 'column 1: nothing is called "job.iodept"'),
        ("capacity =", "capacty =", "capacity"),
        ('"job.iodepth"', '"job.iodept"', 'did you mean "iodepth"'),
        ("nand.ways =", "nand.wais =", '"nand.ways" is not varied, did you mean "nand.wais"'),
    ],
)
def test_a_wrong_file_is_one_sentence(
    cli: Cli, tmp_path: Path, old: str, new: str, said: str
) -> None:
    outcome = cli("sweep", written(tmp_path, FILE.replace(old, new, 1)), "-o", tmp_path / "out")
    assert outcome.status == 2 and outcome.err.count("\n") == 1, outcome.err
    assert said in outcome.err
    assert not (tmp_path / "out").exists()


def test_samples_cover_each_range_evenly_and_stay_the_same() -> None:
    open_ = [
        axis("ftl.over_provisioning=0.07..0.5", spans=True),
        axis("job.iodepth=1..256x", spans=True),
        axis("job.bs=4k..64k", spans=True),
        axis("job.rwmixread=0,50", spans=True),
    ]
    drawn = {one.key: one for one in sampled(open_, sample("lhs:64"))}
    again = sampled(open_, sample("lhs:64"))
    assert [one.values for one in drawn.values()] == [one.values for one in again]
    assert drawn["job.iodepth"].values != sampled(open_, sample("lhs:64:2"))[1].values
    shares = sorted(float(one) for one in drawn["ftl.over_provisioning"].values)
    # A Latin hypercube has one value in each of 64 equal parts.
    assert [int((one - 0.07) / 0.43 * 64 + 1e-3) for one in shares] == pytest.approx(
        list(range(64)), abs=1
    )
    depths = [int(one) for one in drawn["job.iodepth"].values]
    assert sum(one <= 16 for one in depths) == pytest.approx(32, abs=4), "evenly by factors"
    assert all(int(one) % 4096 == 0 for one in drawn["job.bs"].values)
    assert drawn["job.rwmixread"].values == ("0", "50") and not drawn["job.rwmixread"].group
    sweep = Sweep(read_job(JOB), DRIVE, list(drawn.values()), overrides={"capacity": "256MiB"})
    assert len(sweep) == 128
    sobol = sampled(open_, sample("sobol:64"))[1].values
    assert sum(int(one) <= 16 for one in sobol) == pytest.approx(32, abs=2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--sample", "sobol:100", "--vary", "job.iodepth=1..9"), "take 64 or 128"),
        (("--sample", "lhs", "--vary", "job.iodepth=1..9"), "expected lhs:N"),
        (("--sample", "lhs:5", "--vary", "job.iodepth=1,2"), "no key has a range"),
        (("--vary", "ftl.over_provisioning=0.1..0.5"), "say how many values"),
        (("--vary", "job.iodepth=1,2", "--where", "job.iodepth > 5"), "no combination is left"),
        (("--vary", "job.iodepth=1,2", "--where", "capacity < 5 ms"), "column 1: a size"),
        (("--vary", "job.iodepth=1,2", "--where", "capacity <"), "column 11: expected a name"),
        (("--vary", "job.iodepth=1,2", "--where", "capacity < 1TB )"), "column 16: expected and"),
        (("--vary", "job.iodepth=1,2", "--zip", "job.iodepth,job.bs"), '"job.bs" is not varied'),
        (("--vary", "job.read_iolog=a,b"), "trace=FILE"),
        (("--vary", "trace=nosuch.log"), "there is no such trace"),
    ],
)
def test_wrong_samples_and_conditions_are_one_sentence(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "j.fio").write_text(JOB)
    outcome = cli("sweep", tmp_path / "j.fio", "--on", DRIVE, "-o", tmp_path / "out", *arguments)
    assert outcome.status == 2 and outcome.err.count("\n") == 1, outcome.err
    assert said in outcome.err
    assert not (tmp_path / "out").exists()


KNOWN = {
    "capacity": FormulaValue(1e12, "B"),
    "members": FormulaValue(8.0),
    "p99": FormulaValue(4e6, "ns"),
    "ftl.gc.victim": FormulaValue("greedy", "text"),
    "price": None,
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("capacity x members <= 8 TB", True),
        ("capacity * members < 8TB", False),
        ("p99 < 5 ms and not members = 7", True),
        ("p99 < 4000us or members / 2 - 4 >= 0.5", False),
        ("(members + 1) x 2 = 18 and -members < 0", True),
        ("ftl.gc.victim = greedy", True),
        ("ftl.gc.victim != 'fifo'", True),
        ("price < 100", False),
        ("not price < 100", False),
        ("capacity / 1GB >= 1000", True),
    ],
)
def test_conditions_hold_or_not(text: str, holds: bool) -> None:
    assert condition(text, "--where", KNOWN).holds(lambda name: KNOWN[name]) is holds


def test_values_carry_their_units() -> None:
    found = [value(one) for one in ("8", "1.5GB", "4k", "60us", "10%", "fifo")]
    assert found == [
        FormulaValue(8.0), FormulaValue(1.5e9, "B"), FormulaValue(4096.0, "B"),
        FormulaValue(6e4, "ns"), FormulaValue(0.1), FormulaValue("fifo", "text"),
    ]  # fmt: skip


def test_conditions_know_the_rig_and_its_price(tmp_path: Path) -> None:
    rig = '[device]\nkind = "array"\nlevel = "raid5"\nchunk = "64KiB"\ncount = 4\n' + (
        profile(DRIVE).text.partition("[device]")[2].replace("[device", "[device.member")
    )
    rig = 'name = "five"\n' + rig.replace('kind = "ssd"', '[device.member]\nkind = "ssd"', 1)
    (tmp_path / "five.toml").write_text(rig)
    axes = [axis(f"target={DRIVE},{tmp_path / 'five.toml'}"), axis("ftl.over_provisioning=0.2,0.3")]

    def left(*where: str) -> set[tuple[str, ...]]:
        prices = Prices("EUR", {DRIVE: 20.0}, "")
        sweep = Sweep(read_job(JOB), "", axes, 1, "fob", {"capacity": "256MiB"}, where, prices)
        return set(values(list(sweep.runs()), "target", "ftl.over_provisioning"))

    assert left("members > 3") == {("five", "0.2"), ("five", "0.3")}
    assert left("capacity x members <= 256MiB") == {(DRIVE, "0.2"), (DRIVE, "0.3")}
    assert left("usable = 768MiB", "ftl.over_provisioning < 0.25") == {("five", "0.2")}
    assert left("price <= 20 and ftl.over_provisioning > 0.25") == {(DRIVE, "0.3")}


def test_a_trace_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    text = Path("examples/small.iolog").read_text()
    (tmp_path / "a").mkdir()
    for place in ("a/one.iolog", "one.iolog"):
        (tmp_path / place).write_text(text)

    def key(place: str) -> tuple[str, str]:
        sweep = Sweep(read_job("[r]\n"), DRIVE, [axis(f"trace={tmp_path / place}")])
        (run,) = sweep.runs()
        return run.key, run.values["trace"]

    first = key("a/one.iolog")
    assert first == key("one.iolog") and first[1] == "one.iolog"
    (tmp_path / "one.iolog").write_text(text.replace("245760", "249856"))
    assert key("one.iolog")[0] != first[0]
    with pytest.raises(InputError, match="two files have one name"):
        axis(f"trace={tmp_path}/a/one.iolog,{tmp_path}/one.iolog")
    # The same for traces and includes that the job names itself.
    (tmp_path / "more.fio").write_text("[b]\nbs=4k\n")
    job = tmp_path / "j.fio"
    job.write_text("[r]\nread_iolog=one.iolog\ninclude more.fio\n")

    def own() -> str:
        return next(
            iter(Sweep(read_job(job), DRIVE, [axis("ftl.over_provisioning=0.2")]).runs())
        ).key

    before = own()
    (tmp_path / "one.iolog").write_text(text)
    changed = own()
    (tmp_path / "more.fio").write_text("[b]\nbs=8k\n")
    assert len({before, changed, own()}) == 3


def test_conditions_ask_for_what_rigs_leave_unsaid_and_for_prices_of_all_members(
    tmp_path: Path,
) -> None:
    rig = tmp_path / "stripe.toml"
    small = ssdlab.Rig("lab-reference").set(capacity="64MiB")
    rig.write_text(ssdlab.Rig.array(0, small, 1).to_toml())
    costs = tmp_path / "prices.toml"
    costs.write_text('currency = "USD"\n[drives]\nstripe = 100\n')
    vary = {"count": "1,2,3"}
    for where, left in (
        ("price < 250", ["1", "2"]),
        ("ftl.gc.victim = greedy and count > 2", ["3"]),
        ("member.ftl.gc.victim = greedy and price = 200", ["2"]),
    ):
        order = SweepOrder(job=read_job(JOB), on=str(rig), vary=vary, where=[where], prices=costs)
        assert [one for (one,) in values(list(order.sweep().runs()), "count")] == left


def test_only_finite_values_are_numbers() -> None:
    assert Axis("job.rate", ("1", "2e3")).cells == [1.0, 2000.0]
    assert Axis("job.rate", ("1", "nan")).cells == ["1", "nan"], "a column of text"
    assert Axis("job.rate", ("inf", "1")).cells == ["inf", "1"]
