"""Sweeps: what varies, one table whatever happens meanwhile, and runs that share a drive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ssdlab
from conftest import Cli, one_sentence
from ssdlab import units
from ssdlab.answers.sweep import answer
from ssdlab.errors import InputError, Interrupted
from ssdlab.jobfile import JobText, read_job
from ssdlab.progress import Progress
from ssdlab.rig import resolve
from ssdlab.sweeps import Dataset, Sweep, axis, carry_out
from ssdlab.sweeps.axes import grouped, with_options
from ssdlab.sweeps.formula import FormulaValue
from ssdlab.sweeps.measures import measured
from ssdlab.target import Settings

DRIVE = "lab-reference"
SMALL = {"capacity": "256MiB"}
JOB = "[global]\nrw=randwrite\nbs=4k\nsize=100%\nruntime=1\ntime_based=1\n[a]\n[b]\nrw=randread\n"


def job() -> JobText:
    return read_job(JOB)


def sweep(*vary: str, seeds: int = 1, prepare: str = "sequential", together: bool = False) -> Sweep:
    axes = [axis(one) for one in vary]
    axes = grouped(axes, [[one.key for one in axes]] if together else [])
    return Sweep(job(), DRIVE, axes, seeds, prepare, SMALL)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1..8x2", ["1", "2", "4", "8"]),
        ("4k..16kx2", ["4096", "8192", "16384"]),
        ("10%..100%/4", ["10%", "40%", "70%", "100%"]),
        ("0.1..0.3/3,fifo", ["0.1", "0.2", "0.3", "fifo"]),
        ("a,b,a", ["a", "b"]),
        ("1..3", ["1", "2", "3"]),
        ("0.07..0.4/4", ["0.07", "0.18", "0.29", "0.4"]),
        ("0.07..0.4/3", ["0.07", "0.235", "0.4"]),
        ("1..2/4", ["1", "1.333", "1.667", "2"]),
        ("100000..200000/4", ["100000", "133333", "166667", "200000"]),
        ("1TiB..4TiBx2", ["1099511627776", "2199023255552", "4398046511104"]),
    ],
)
def test_values_are_lists_and_ranges_of_anything(text: str, values: list[str]) -> None:
    assert units.values("--vary x", text) == values


def test_ranges_of_sizes_are_as_a_rig_or_a_job_reads_them() -> None:
    """A rig wants units; what those mean to fio depends on kb_base, so a job has bytes."""
    assert axis("capacity=64MiB..1GiBx4").values == ("64MiB", "256MiB", "1GiB")
    assert axis("capacity=1TB..2TB/2").values == ("976562500KiB", "1953125000KiB")
    assert axis("job.bs=4k..16kx2").values == ("4096", "8192", "16384")
    drawn = axis("capacity=64MiB..1GiBx", spans=True).span
    assert drawn is not None
    assert [drawn.at(share) for share in (0.0, 0.5, 1.0)] == ["64MiB", "256MiB", "1GiB"]


def test_an_option_holds_in_every_section_of_the_job() -> None:
    text = "[global]\nbs=4k\n[a]\niodepth=2\n[b]\nrw=read\n"
    changed = with_options(read_job(text), {"iodepth": "8"}).text
    assert changed.split() == "[global] bs=4k [a] iodepth=2 iodepth=8 [b] rw=read iodepth=8".split()
    with pytest.raises(InputError, match="includes a file"):
        with_options(read_job("[a]\ninclude more.fio\n"), {"bs": "8k"})


def test_all_combinations_or_pairs() -> None:
    each = sweep("ftl.over_provisioning=0.1,0.2,0.3", "job.iodepth=1,4,8", seeds=2)
    runs = list(each.runs())
    assert len(runs) == len(each) == 18 == len({run.key for run in runs})
    pairs = sweep("ftl.over_provisioning=0.1,0.2,0.3", "job.iodepth=1,4,8", together=True)
    found = [
        (run.values["ftl.over_provisioning"], run.values["job.iodepth"]) for run in pairs.runs()
    ]
    assert found == [("0.1", "1"), ("0.2", "4"), ("0.3", "8")]
    with pytest.raises(InputError, match="has 2"):
        sweep("ftl.over_provisioning=0.1,0.2", "job.iodepth=1,4,8", together=True)
    with pytest.raises(InputError, match="more than 1,000,000"):
        sweep("job.iodepth=1..1000", "job.rate_iops=1..1000", "job.bs=4k,8k")


def test_a_sweep_that_was_stopped_goes_on_and_comes_to_the_same_table(tmp_path: Path) -> None:
    asked = sweep(
        "ftl.over_provisioning=0.1..0.3/5", "job.iodepth=1,8", seeds=2, prepare="random:1"
    )
    whole = Dataset(tmp_path / "whole", asked.axes)
    assert carry_out(asked, whole).ran == 20

    def stop(news: Progress) -> bool:
        return not news.text.startswith("7 of")

    stopped = Dataset(tmp_path / "stopped", asked.axes)
    with pytest.raises(Interrupted):
        carry_out(asked, stopped, stop)
    kept = len(stopped.done())
    assert 0 < kept < 20
    outcome = carry_out(asked, stopped)
    assert (outcome.ran, outcome.before, list(outcome.failed)) == (20 - kept, kept, [])
    assert_frame_equal(stopped.of(asked), whole.of(asked), check_exact=True)
    assert carry_out(asked, stopped).ran == 0


def test_runs_that_share_a_prepared_drive_find_what_each_alone_finds(tmp_path: Path) -> None:
    asked = sweep(
        "ftl.over_provisioning=0.15,0.25", "job.iodepth=1,8", prepare="sequential,random:1"
    )
    table = Dataset(tmp_path, asked.axes)
    carry_out(asked, table)
    rows = table.of(asked)
    for row in rows.iter_rows(named=True):
        share, depth = row["ftl.over_provisioning"], row["job.iodepth"]
        text = JOB.replace("[a]\n", f"iodepth={depth:.0f}\n[a]\n")
        keys = {**SMALL, "ftl.over_provisioning": f"{share:g}"}
        alone = resolve(DRIVE).run(
            read_job(text), Settings(prepare="sequential,random:1", overrides=keys)
        )
        (own,) = [s for s in alone.summary() if (s["job"], s["ddir"]) == (row["job"], row["ddir"])]
        for name in ("ios", "iops", "lat_mean_ns", "clat_p99_ns", "waf", "steady"):
            assert row[name] == own[name], name
    assert rows.height == 2 * 2 * 2
    assert rows["waf"].drop_nulls().n_unique() > 2


def test_a_run_that_cannot_be_is_told_and_the_others_are_done(tmp_path: Path) -> None:
    asked = sweep("ftl.over_provisioning=0.15,0.3,0.001")
    table = Dataset(tmp_path, asked.axes)
    outcome = carry_out(asked, table)
    assert outcome.ran == 2
    ((run, error),) = outcome.failed
    assert run.values["ftl.over_provisioning"] == "0.001"
    assert "is too little for collection" in error.message


def test_the_command_shows_writes_and_goes_on(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "j.fio").write_text(JOB)
    out, page = tmp_path / "out", tmp_path / "s.html"
    planned = cli(
        "sweep", tmp_path / "j.fio", "--on", DRIVE, "--vary", "job.iodepth=1,2", "-o", out, "--plan"
    )
    assert planned.status == 0 and "2 runs" in planned.out and not out.exists()
    forms = ("-o", out, "--report", page, "--csv", tmp_path / "csv", "--json", tmp_path / "s.json")
    args = ["--vary", "ftl.over_provisioning=0.1,0.3", "--vary", "job.iodepth=1..16x4"]
    how = ("--on", DRIVE, "--prepare", "sequential", "--set", "capacity=256MiB", *args)
    first = cli("sweep", tmp_path / "j.fio", *how, *forms)
    assert first.status == 0, first.err
    assert "6 combinations: 6 runs now" in first.out
    again = cli("sweep", tmp_path / "j.fio", *how, "-o", out)
    assert "0 runs now, 6 done before" in again.out
    told = json.loads((tmp_path / "s.json").read_text())
    assert (told["study"], told["runs"], told["verdict"]["code"]) == ("sweep", 6, "swept")
    titles = {one["title"] for one in told["sections"][0]["figures"]}
    assert {"IOPS by job.iodepth", "WA by ftl.over_provisioning"} <= titles
    assert "Sweep of ftl.over_provisioning and job.iodepth" in page.read_text()
    lines = (tmp_path / "csv" / "mean-of-each-combination.csv").read_text().splitlines()
    assert len(lines) == 1 + 6 * 2
    table = pl.read_parquet(out / "summary" / "*.parquet")
    assert table.height == 6 * 2 and not {"host", "path"} & set(table.columns)


def test_a_stopped_sweep_says_what_it_leaves(tmp_path: Path) -> None:
    vary = {"ftl.over_provisioning": "0.1..0.3/5", "job.iodepth": "1,8"}

    def stop(news: Progress) -> bool:
        return not news.text.startswith("7 of")

    def swept(out: Path | None) -> None:
        ssdlab.sweep(
            JOB, on=DRIVE, set=SMALL, vary=vary, seeds=2, prepare="random:1", out=out, progress=stop
        )

    out = tmp_path / "out"
    with pytest.raises(Interrupted, match=r"^stopped; \d runs? that ended (is|are) kept in "):
        swept(out)
    with pytest.raises(Interrupted, match="nothing was kept"):
        swept(None)
    axes = [axis(f"{key}={values}") for key, values in vary.items()]
    assert 0 < len(Dataset(out, axes).done()) < 20


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        ("iodepth=1,2", "the option of the job is job.iodepth"),
        ("job.iodept=1,2", 'did you mean "iodepth"'),
        ("ftl.over_provisionin=0.1", "did you mean over_provisioning"),
        ("job.iodepth=1..8x1", "a range goes up"),
        ("job.iodepth=1..8x", "write 1..8x2 for those that double, or their number (1..8/8)"),
        ("job.iodepth", "write it as KEY=VALUE"),
        ("job.iodepth=1,none", 'ssdlab: job.iodepth: found "none", expected a whole number'),
        ("seed=1,2", "--seeds"),
        ("target=nosuch", "nosuch"),
        ("ftl.over_provisioning=0.001,0.002", "is too little for collection"),
    ],
)
def test_wrong_axes_are_one_sentence(cli: Cli, tmp_path: Path, vary: str, said: str) -> None:
    (tmp_path / "j.fio").write_text(JOB)
    out = tmp_path / "out"
    how = ("--on", DRIVE, "--prepare", "sequential", "--set", "capacity=256MiB", "-o", out)
    outcome = cli("sweep", tmp_path / "j.fio", *how, "--vary", vary)
    one_sentence(outcome)
    assert said in outcome.err
    assert not out.exists(), "nothing half-written"


def test_the_folder_of_another_sweep_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "j.fio").write_text(JOB)
    how = ("--on", DRIVE, "--prepare", "sequential", "--set", "capacity=256MiB", "-o", tmp_path)
    common = ("sweep", tmp_path / "j.fio", *how)
    assert cli(*common, "--vary", "job.iodepth=1,2").status == 0
    assert "give another folder" in one_sentence(cli(*common, "--vary", "job.bs=4k,8k"))
    both = ("--vary", "job.iodepth=1,2", "--vary", "job.bs=4k,8k")
    assert "give another folder" in one_sentence(cli(*common, *both))


def test_the_folder_of_a_sweep_of_more_keys_is_refused(cli: Cli, tmp_path: Path) -> None:
    """Parts of other columns are one table for nobody who reads them together."""
    (tmp_path / "j.fio").write_text(JOB)
    how = ("--on", DRIVE, "--prepare", "sequential", "--set", "capacity=256MiB", "-o", tmp_path)
    common = ("sweep", tmp_path / "j.fio", *how, "--vary", "job.iodepth=1,2")
    assert cli(*common, "--vary", "job.bs=4k,8k").status == 0
    told = one_sentence(cli(*common))
    assert "is no part of this sweep (job.bs varies there); give another folder" in told
    table = pl.scan_parquet(tmp_path / "summary" / "*.parquet").collect()
    assert table["key"].n_unique() == 4
    for part in (tmp_path / "summary").glob("*.parquet"):
        pl.read_parquet(part, columns=["key", "job.iodepth", "iops"]).write_parquet(part)
    assert "(iops varies there)" in one_sentence(cli(*common)), "a table of nobody's sweep"


def test_charts_take_directions_together_and_tell_small_rates_from_none(
    cli: Cli, tmp_path: Path
) -> None:
    """Of a mix the reads alone, or now these and now the writes, would say that a drive writes in
    87 us; and beside pure reads, all rates of writes would lie on the axis."""
    (tmp_path / "m.fio").write_text("[m]\nrw=randrw\nbs=4k\niodepth=4\nsize=100%\n")
    line = ["sweep", tmp_path / "m.fio", "--on", DRIVE, "--set", "capacity=128MiB"]
    line += ["--prepare", "random:1", "--vary", "job.rwmixread=0,50,100", "--json", "-"]
    done = cli(*line, "--set", "ftl.over_provisioning=0.1", "-o", tmp_path / "out")
    assert done.status == 0, done.err
    table = pl.read_parquet(tmp_path / "out" / "summary" / "*.parquet")
    mix = {row["ddir"]: row for row in table.filter(pl.col("job.rwmixread") == 50).to_dicts()}
    assert mix["write"]["clat_p99_ns"] > 10 * mix["read"]["clat_p99_ns"]
    (section,) = json.loads(done.out)["sections"]
    figures = {one["title"]: one for one in section["figures"]}
    rates, tails = figures["IOPS by job.rwmixread"], figures["clat p99 by job.rwmixread"]
    assert rates["curves"][0]["y"][1] == pytest.approx(mix["read"]["iops"] + mix["write"]["iops"])
    assert tails["curves"][0]["y"][1] == pytest.approx(mix["write"]["clat_p99_ns"] / 1e3)
    assert rates["log_y"] and tails["log_y"]


def test_syncs_are_no_ios_of_a_rate() -> None:
    one = {"job": "w", "iops": 10.0, "clat_p99_ns": 5.0, "lat_p99_ns": 5.0}
    rows = [{**one, "ddir": "write"}, {**one, "ddir": "sync", "lat_p99_ns": 8.0}]
    assert measured(rows, "iops") == FormulaValue(10.0)
    assert measured(rows, "sync.iops") == FormulaValue(10.0)
    assert measured(rows, "lat_p99") == FormulaValue(8.0, "ns")


def test_the_headline_is_the_range_of_what_was_measured(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "w.fio").write_text("[w]\nrw=randwrite\nbs=4k\nsize=100%\ntime_based\nruntime=3\n")

    def told(*vary: str) -> list[str]:
        line = ["sweep", tmp_path / "w.fio", "--on", DRIVE, "--set", "capacity=64MiB"]
        out = ("-o", tmp_path / vary[0], "--json", "-")
        done = cli(*line, *(word for one in vary for word in ("--vary", one)), *out)
        assert done.status == 0, done.err
        document.update(json.loads(done.out))
        return list(document["sentences"])

    document: dict[str, Any] = {}
    rates, tails, built, count = told("job.iodepth=16,1", "ftl.over_provisioning=0.3,0.1")
    rows = document["sections"][0]["tables"][0]["rows"]
    by = {(one["job.iodepth"], one["ftl.over_provisioning"]): one for one in rows}
    most, least = by["16", "0.3"]["IOPS"], min(row["IOPS"] for row in rows)
    assert most == max(row["IOPS"] for row in rows) and least == by["1", "0.3"]["IOPS"]
    assert rates == (
        f"IOPS from {units.number(least)} (iodepth 1, over_provisioning 0.3) to "
        f"{units.number(most)} (iodepth 16, over_provisioning 0.3), {units.number(most / least)} "
        "times as many; not at steady state: 4 of 4"
    )
    assert tails.startswith("clat p99 from ") and tails.endswith(" times as long")
    assert "(iodepth 16, over_provisioning 0.1)" in tails and count.startswith("4 combinations: ")
    # 16 superblocks of each die, and 2 more where 1.6 would be a tenth.
    assert "was asked for in 2 of 4, the farthest 1.25 times it" in built
    assert not [head for head in rows[0] if head.startswith("lat ")], "it is that of completion"
    rates, tails, *_ = told("job.ioengine=libaio,io_uring")
    assert rates.endswith(" in all; not at steady state: 2 of 2") and tails.endswith(" us in all")
    assert [one[:14] for one in told("job.iodepth=4")] == ["Whole superblo", "1 combination:"]
    told("job.fsync=8,16")
    row = next(r for r in document["sections"][0]["tables"][0]["rows"] if r["ddir"] == "sync")
    assert row["clat p99, us"] is None and row["lat p99, us"] is not None


def test_rates_that_are_steady_and_yet_not_sure_are_told(tmp_path: Path) -> None:
    asked = sweep("job.iodepth=1,8")
    table = Dataset(tmp_path, asked.axes)
    outcome = carry_out(asked, table)
    rows = table.of(asked)
    assert rows["iops_noise"].null_count() == rows.height, "half a second tells nothing"

    def told(noise: pl.Expr, **columns: bool) -> str:
        known = rows.with_columns(noise.alias("iops_noise"), **columns)
        return answer(asked, known, outcome, None).sections[0].sentences[0]

    far = pl.when(pl.col("job.iodepth") == 8).then(0.25).otherwise(0.05)
    said = "; not known to ±10 %, by how their series vary: 1 of 2, the worst ±25 % (95 %; longer"
    assert said in told(far, steady=True)
    assert "not known" not in told(far, steady=False), "what is not steady is told already"
    assert "not known" not in told(pl.lit(None, pl.Float64), steady=True)
    older = answer(asked, rows.drop("iops_noise"), outcome, None)
    assert "not known" not in older.sections[0].sentences[0]


def test_rates_that_the_check_of_steady_state_doubts_are_not_told_as_steady(tmp_path: Path) -> None:
    """Sequential writes to a drive that had been written at random, and to one that had not."""
    text = "[s]\nrw=write\nbs=128k\niodepth=8\nio_size=1740m\n"
    drive = {"capacity": "1GiB", "ftl.over_provisioning": "0.07"}
    variants = [axis("prepare=steady,sequential")]
    asked = Sweep(read_job(text), DRIVE, variants, overrides=drive)
    table = Dataset(tmp_path, asked.axes)
    outcome = carry_out(asked, table)
    rows = table.of(asked)
    said = rows.select("prepare", "steady", "still_moving").sort("prepare").rows()
    assert said == [("sequential", True, False), ("steady", True, True)]

    def told(rows: pl.DataFrame) -> str:
        return answer(asked, rows, outcome, None).sections[0].sentences[0]

    assert "; not at steady state: 1 of 2 (1 of them by the PTS rule, but still" in told(rows)
    assert "not at steady state" not in told(rows.drop("still_moving")), "of an older version"
    nobody = pl.lit(None, pl.Boolean).alias("still_moving")
    assert "not at steady state" not in told(rows.with_columns(nobody)), "beside newer ones"


def test_a_plan_refuses_steps_of_preparation_that_do_not_exist() -> None:
    with pytest.raises(InputError, match='prepare: found "stedy", expected fob'):
        Sweep(read_job("[s]\nrw=read\n"), DRIVE, [axis("prepare=steady,stedy")]).check()


def test_over_provisioning_that_whole_superblocks_changed_is_told(tmp_path: Path) -> None:
    asked = sweep("ftl.over_provisioning=0.1,0.28")
    table = Dataset(tmp_path, asked.axes)
    outcome = carry_out(asked, table)
    rows = table.of(asked)
    built = dict(zip(rows["ftl.over_provisioning"], rows["over_provisioning_built"], strict=True))
    # A die has 64 superblocks of capacity and 6 more, where 6.4 would be a tenth.
    assert built == {0.1: pytest.approx(0.9375), 0.28: pytest.approx(1.0, abs=0.01)}
    said = " ".join(answer(asked, rows, outcome, None).sections[0].sentences)
    assert "than was asked for in 1 of 2, the farthest 0.937 times it; a larger" in said
    older = answer(asked, rows.drop("over_provisioning_built"), outcome, None)
    assert "asked for" not in " ".join(older.sections[0].sentences)


def test_every_point_leads_to_its_run(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "j.fio").write_text(JOB)
    told = tmp_path / "s.json"
    line = ["sweep", tmp_path / "j.fio", "--on", DRIVE, "--set", "capacity=256MiB"]
    line += ["--vary", "job.iodepth=1,4,16", "--vary", "ftl.over_provisioning=0.1,0.2"]
    line += ["--prepare", "sequential"]
    out = ("-o", tmp_path / "out", "--json", told, "--report", tmp_path / "s.html")
    assert cli(*line, *out, "--seeds", "2").status == 0
    table = pl.read_parquet(tmp_path / "out" / "summary" / "*.parquet")
    firsts = set(table.filter(pl.col("seed") == 1)["key"])
    (section,) = json.loads(told.read_text())["sections"]
    figures = {one["title"]: one for one in section["figures"]}
    assert {"IOPS by job.iodepth", "IOPS against clat p99", "All combinations"} <= set(figures)
    heat = [one for one in figures.values() if one["curves"][0]["style"] == "heat"]
    assert heat and len(heat[0]["curves"][0]["x"]) == 6
    for figure in figures.values():
        for curve in figure["curves"]:
            assert len(curve["keys"]) == len(curve["x"]) and set(curve["keys"]) <= firsts
    page = (tmp_path / "s.html").read_text()
    assert all(f'id="row-{key}"' in page for key in firsts)
    assert 'data-repeat="ssdlab sweep' in page and "--run KEY" in page
    # No combination is better in both than one of the front.
    front = figures["IOPS against clat p99"]["curves"][1]
    points = figures["IOPS against clat p99"]["curves"][0]
    for x, y in zip(front["x"], front["y"], strict=True):
        others = zip(points["x"], points["y"], strict=True)
        assert not any(a <= x and b >= y and (a, b) != (x, y) for a, b in others)
    # The line of a row repeats its run.
    one = table.filter(pl.col("seed") == 1).row(0, named=True)
    again = cli(*line, "--run", one["key"], "--json", told)
    assert again.status == 0, again.err
    summary = json.loads(told.read_text())["ssdlab"]["summary"]
    (own,) = [s for s in summary if (s["job"], s["ddir"]) == (one["job"], one["ddir"])]
    assert own["iops"] == one["iops"] and own["lat_max_ns"] == one["lat_max_ns"]
    assert "no run has this key" in one_sentence(cli(*line, "--run", "nosuch"))


def test_a_combination_of_which_nothing_was_measured_is_named(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "a.fio"
    place.write_text("[a]\nrw=read\nbs=4k\nramp_time=1\n")
    slow = ["--set", "controller.command_time=1ms"]
    given = ["sweep", place, "--on", DRIVE, *slow, "-o", tmp_path / "t", "--vary"]
    outcome = cli(*given, "job.number_ios=1,1100")
    assert "1 run now, 1 could not be run" in outcome.out, outcome.err
    assert "no I/O was measured: every job ended within its ramp_time" in outcome.out
    assert "no I/O was measured" in one_sentence(cli(*given, "job.number_ios=1,2"))
