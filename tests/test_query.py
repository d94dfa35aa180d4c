"""SQL over kept runs and sweeps: what can be asked, and that nothing else can be done."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

import ssdlab
from conftest import Cli
from ssdlab.jobfile import read_job
from ssdlab.store import RunStore
from ssdlab.sweeps import Dataset, Sweep, axis, carry_out
from ssdlab.units import SEED_MAX

DRIVE = "lab-reference"
SMALL = {"capacity": "256MiB"}
JOB = "[a]\nrw=randwrite\nbs=4k\nsize=100%\nruntime=2\ntime_based=1\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of four runs, and a store of two."""
    folder = tmp_path_factory.mktemp("query")
    axes = [axis("job.iodepth=1,4"), axis("ftl.over_provisioning=0.1,0.2")]
    asked = Sweep(read_job(JOB), DRIVE, axes, 1, "fob", SMALL)
    carry_out(asked, Dataset(folder / "swept", axes, series=True))
    for seed in (1, 2):
        ssdlab.run(JOB, DRIVE, set=SMALL, seed=seed).save(folder / "store")
    return folder


def rows(cli: Cli, sql: str, *folders: Path) -> list[dict[str, object]]:
    where = [part for one in folders for part in ("--in", one)]
    outcome = cli("query", sql, *where, "--json", "-")
    assert outcome.status == 0, outcome.err
    found: list[dict[str, object]] = json.loads(outcome.out)
    return found


def test_the_largest_seed_is_told(cli: Cli, tmp_path: Path) -> None:
    for seed in (1, SEED_MAX):
        ssdlab.run(JOB, DRIVE, set=SMALL, seed=seed).save(tmp_path)
    found = rows(cli, "SELECT seed FROM runs ORDER BY seed", tmp_path)
    assert [one["seed"] for one in found] == [1, SEED_MAX]


def test_sweeps_and_kept_runs_are_asked_together(cli: Cli, folder: Path) -> None:
    both = (folder / "swept", folder / "store")
    found = rows(cli, "SELECT source, count(*) n FROM summary GROUP BY source ORDER BY n", *both)
    assert [(Path(str(one["source"])).name, one["n"]) for one in found] == [
        ("store", 2),
        ("swept", 4),
    ]
    best = rows(
        cli, 'SELECT "job.iodepth", max(iops) best FROM summary GROUP BY 1 ORDER BY 1', both[0]
    )
    assert [one["job.iodepth"] for one in best] == [1.0, 4.0]
    assert float(str(best[1]["best"])) > float(str(best[0]["best"])) > 0
    joined = rows(
        cli,
        "SELECT r.key, any_value(r.name) name, sum(s.ios) ios, any_value(m.ios) total FROM runs r "
        "JOIN series s USING (key) JOIN summary m USING (key) GROUP BY r.key",
        *both,
    )
    assert len(joined) == 6 and all(one["ios"] == one["total"] for one in joined)
    assert {one["name"] for one in joined} == {None, DRIVE}
    (seeds,) = rows(cli, "SELECT list(DISTINCT seed ORDER BY seed) s FROM runs", folder / "store")
    assert seeds["s"] == [1, 2]


def test_a_run_in_two_of_the_folders_is_there_once(cli: Cli, folder: Path, tmp_path: Path) -> None:
    store, swept = folder / "store", folder / "swept"
    (again := tmp_path / "again").symlink_to(swept)
    run = next(store.iterdir())
    shutil.copytree(run, tmp_path / "copies" / run.name)
    count = "SELECT count(*) n, any_value(r.source) place FROM runs r JOIN summary USING (key) "
    for places in ((store, store), (store, run), (store, tmp_path / "copies")):
        found = rows(cli, f"{count} GROUP BY r.key", *places)
        assert found == [{"n": 1, "place": str(store)}] * 2
    assert rows(cli, f"{count}", swept, again)[0]["n"] == 4


def test_damaged_runs_are_left_out_and_said_to_be(cli: Cli, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "store", store := tmp_path / "runs")
    sql = "SELECT count(*) n FROM runs"
    assert cli("query", sql, "--in", store).err == ""
    damaged = next(store.iterdir()) / "manifest.json"
    damaged.write_text("")
    told = cli("query", sql, "--in", store, "--in", store)
    assert told.status == 0 and told.out.split() == ["n", "1"]
    assert told.err.startswith("left out: 1 damaged run (") and str(damaged) in told.err
    assert cli("query", sql, "--in", store, "--quiet").err == ""


def test_columns_of_a_join_that_have_one_name_are_all_kept(cli: Cli, folder: Path) -> None:
    join = "SELECT one.seed, two.seed, one.name FROM runs one JOIN runs two USING (source) "
    sql = join + "WHERE one.seed = 1 AND two.seed = 2"
    (row,) = rows(cli, sql, folder / "store")
    assert [*row] == ["seed", "seed__2", "name"] and (row["seed"], row["seed__2"]) == (1, 2)
    assert cli("query", sql, "--in", folder / "store", "--csv", "-").out.startswith("seed,seed__2,")
    assert ssdlab.query(sql, folders=folder / "store").to_dicts() == [row]


def test_without_folders_the_store_and_what_lies_here_is_asked(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert rows(cli, "SELECT count(*) n FROM runs") == [{"n": 4}]
    RunStore().save(ssdlab.run(JOB, DRIVE, set=SMALL))
    assert rows(cli, "SELECT count(*) n FROM runs") == [{"n": 5}]
    assert rows(cli, "SELECT count(*) n FROM runs", RunStore().root) == [{"n": 1}]
    monkeypatch.chdir(tmp_path)
    assert rows(cli, "SELECT count(*) n FROM series, summary") == [{"n": 2}]


def test_rows_are_printed_and_written_as_csv(cli: Cli, folder: Path) -> None:
    sql = (
        "SELECT 12345678 a, 0.1234567891 b, NULL c, true d, 'x' e, DATE '2020-01-02' f, "
        "CAST(36962304 AS DOUBLE) g"
    )
    printed = cli("query", sql, "--in", folder / "swept")
    lines = [line.split("\t") for line in printed.out.splitlines()]
    values = ["12345678", "0.1234568", "-", "True", "x", "2020-01-02", "36962304"]
    assert lines == [list("abcdefg"), values]
    written = cli("query", sql, "--in", folder / "swept", "--csv", "-")
    assert next(iter(csv.DictReader(io.StringIO(written.out))))["b"] == "0.1234567891"


@pytest.mark.parametrize("table", ["runs", "summary", "series"])
@pytest.mark.parametrize("place", ["store", "swept"])
def test_every_column_has_a_type_whatever_is_null_in_it(
    cli: Cli, folder: Path, table: str, place: str
) -> None:
    told = {one["column_name"]: one["column_type"] for one in rows(cli, f"DESCRIBE {table}",
            folder / place)}  # fmt: skip
    assert len(told) > 2 and '"NULL"' not in told.values(), told


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT nosuch FROM summary", 'Referenced column "nosuch" not found'),
        ("SELECT * FROM sumary", "Did you mean"),
        ("SELECT 1; SELECT 2", "expected one SELECT"),
        ("", "expected one SELECT"),
        ("DROP VIEW summary", "nothing can be written"),
        ("COPY summary TO '{folder}/swept/summary/x.parquet'", "nothing can be written"),
        ("SELECT * FROM read_text('/etc/hostname')", "Cannot access file"),
        ("SELECT * FROM read_parquet('{folder}/store/*/series.parquet')", "Cannot access file"),
        ("SET enable_external_access = true", "nothing can be written"),
        ("ATTACH '/tmp/x.db'", "nothing can be written"),
    ],
)
def test_wrong_sql_is_one_sentence_and_nothing_else_can_be_read(
    cli: Cli, folder: Path, sql: str, said: str
) -> None:
    before = sorted(folder.rglob("*"))
    outcome = cli("query", sql.replace("{folder}", str(folder)), "--in", folder / "swept")
    assert outcome.status == 2 and outcome.err.count("\n") == 1, outcome.err
    assert said in outcome.err
    assert sorted(folder.rglob("*")) == before


def test_a_folder_of_neither_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("query", "SELECT 1", "--in", tmp_path)
    assert outcome.status == 2 and "neither a sweep's table nor kept runs" in outcome.err
