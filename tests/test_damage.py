"""A damaged run is one sentence that names its file, whatever is asked of it."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ssdlab
from conftest import Cli, Outcome
from ssdlab.cli import run_command
from ssdlab.errors import InputError
from ssdlab.results import Result
from ssdlab.store import RunStore

Damage = Callable[[Path], None]

OLD_RUN = Path(__file__).parent / "old_runs" / "job"
JOB = "[w]\nrw=randrw\nbs=4k\nsize=4m\nio_size=8m\n"
SINGLE = ("report", "compare", "explain", "health")
PROTOCOL = ("report", "compare", "resume")


@dataclass(frozen=True)
class Case:
    """A file, what is done to it, and the commands that read it."""

    file: str
    name: str
    damage: Damage
    commands: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}-{self.name}"


def text(new: str | bytes) -> Damage:
    """Puts something else in the place of the file."""
    return lambda path: void(path.write_bytes(new if isinstance(new, bytes) else new.encode()))


def void(_: object) -> None:
    """Forgets a value."""


def cut(path: Path) -> None:
    """Leaves the first half of the file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def put(*keys: str | int, value: Any) -> Damage:
    """Puts another value below keys of a JSON document."""

    def damage(path: Path) -> None:
        document: Any = json.loads(path.read_text())
        found: Any = document
        for key in keys[:-1]:
            found = found[key]
        if isinstance(found, dict):
            assert keys[-1] in found, "damages nothing"
        found[keys[-1]] = value
        path.write_text(json.dumps(document))

    return damage


def line(number: int, new: str) -> Damage:
    """Puts another line into a journal."""

    def damage(path: Path) -> None:
        lines = path.read_text().splitlines(keepends=True)
        lines[number] = new + "\n"
        path.write_text("".join(lines))

    return damage


def field(name: str, value: object) -> Damage:
    """Changes a field of the second line of a journal."""

    def damage(path: Path) -> None:
        entry = json.loads(path.read_text().splitlines()[1])
        line(1, json.dumps({**entry, name: value}))(path)

    return damage


def member(name: str, data: bytes | None) -> Damage:
    """Changes a file in an archive, or leaves it out."""

    def damage(path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            files = {one: archive.read(one) for one in archive.namelist()}
        with zipfile.ZipFile(path, "w") as archive:
            for one, old in files.items():
                if one != name:
                    archive.writestr(one, old)
                elif data is not None:
                    archive.writestr(one, data)

    return damage


def columns(path: Path) -> None:
    """Turns a column of numbers into text."""
    frame = pl.read_parquet(path)
    frame.with_columns(pl.lit("x").alias(frame.columns[-1])).write_parquet(path)


def shortened(name: str) -> Damage:
    """Takes the last value out of each list of a column."""

    def damage(path: Path) -> None:
        short = pl.col(name).list.head(pl.col(name).list.len() - 1)
        pl.read_parquet(path).with_columns(short).write_parquet(path)

    return damage


WRITE = ("jobs", 0, "write")
GARBAGE: dict[str, Damage] = {
    "cut": cut,
    "empty": text(""),
    "noise": text(b"\xff\xfe\x00noise" * 50),
    "gone": lambda path: path.unlink(),
}
NO_JSON: dict[str, Damage] = {
    **{name: damage for name, damage in GARBAGE.items() if name != "gone"},
    "list": text("[]"),
    "number": text("3"),
    "deep": text("[" * 100_000),
}
RESULT: dict[str, Damage] = {
    "jobs-text": put("jobs", value="w"),
    "jobs-null": put("jobs", value=None),
    "job-list": put("jobs", 0, value=[]),
    "name-number": put("jobs", 0, "jobname", value=7),
    "options-list": put("jobs", 0, "job options", value=["rw"]),
    "ios-list": put(*WRITE, "total_ios", value=[1]),
    "ios-text": put(*WRITE, "total_ios", value="9"),
    "ios-negative": put(*WRITE, "total_ios", value=-1),
    "iops-null": put(*WRITE, "iops", value=None),
    "iops-nan": put(*WRITE, "iops", value=float("nan")),
    "bins-list": put(*WRITE, "clat_ns", "bins", value=[1]),
    "bins-named": put(*WRITE, "clat_ns", "bins", value={"a": 1}),
    "ssdlab-list": put("ssdlab", value=[]),
    "target-text": put("ssdlab", "target", value="sim"),
    "interval-zero": put("ssdlab", "interval_ms", value=0),
    "counters-list": put("ssdlab", "counters", value=[1]),
    "counters-few": put("ssdlab", "counters", value={"data_superblocks": 4}),
    "spans-object": put("ssdlab", "jobs", value={}),
    "waf-text": put("ssdlab", "waf", value="2"),
    "parts-short": put("ssdlab", "attribution", "parts", value=["link"]),
    "profile-values": put("ssdlab", "profile", "values", value=[3]),
}
MANIFEST: dict[str, Damage] = {
    "target-number": put("target", value=3),
    "jobs-number": put("jobs", value=7),
    "name-list": put("name", value=[]),
    "created-text": put("created", value="yesterday"),
}
PROTOCOL_MANIFEST: dict[str, Damage] = {
    **MANIFEST,
    "protocol-number": put("protocol", value=4),
    "capacity-text": put("capacity", value="64MiB"),
    "kind-unknown": put("kind", value="tape"),
    "divisor-zero": put("divisor", value=0),
    "values-null": put("values", value=None),
    "overrides-list": put("overrides", value=[]),
}
FINDINGS: dict[str, Damage] = {
    "no-judgement": put("judgement", value=None),
    "numbers-object": put("judgement", "numbers", value={}),
    "value-text": put("judgement", "numbers", 0, "value", value="fast"),
    "row-short": put("judgement", "tables", 0, "rows", 0, value=[]),
    "curve-short": put("judgement", "figures", 0, "curves", 0, "x", value=[1.0]),
    "status-unknown": put("checks", 0, "status", value="fine"),
}
JOURNAL: dict[str, Damage] = {
    "noise-inside": line(1, "{noise"),
    "line-list": line(1, "[]"),
    "number-text": field("number", "two"),
    "out-of-order": field("number", 7),
    "key-null": field("key", None),
    "kind-unknown": field("kind", "dance"),
    "time-none": field("ended", "then"),
    "changes-number": field("changes", 3),
}
ARCHIVE: dict[str, Damage] = {
    **GARBAGE,
    "no-result": member("result.json", None),
    "no-series": member("series.parquet", None),
}
INSIDE: dict[str, Damage] = {
    "result-list": member("result.json", b"[]"),
    "result-wrong": member("result.json", b'{"jobs": [{"read": {"total_ios": "x"}}]}'),
    "series-noise": member("series.parquet", b"PAR1 noise PAR1"),
}

LATENCY: dict[str, Damage] = {"cut": cut, "noise": text("x"), "columns": columns}


def cases(file: str, damages: dict[str, Damage], commands: tuple[str, ...]) -> list[Case]:
    """A case for each way of damage."""
    return [Case(file, name, damage, commands) for name, damage in damages.items()]


SINGLES = [
    *cases("result.json", {**GARBAGE, **NO_JSON, **RESULT}, SINGLE),
    *cases("series.parquet", {**GARBAGE, "columns": columns}, SINGLE[:3]),
    *cases("device.parquet", {"cut": cut, "noise": text("x"), "columns": columns}, SINGLE[:3]),
    *cases("latency.parquet", {**LATENCY, "lists": shortened("counts")}, SINGLE[:3]),
    *cases("job.fio", {"noise": text(b"\xff"), "gone": GARBAGE["gone"]}, SINGLE[:3]),
    *cases("rig.toml", {"noise": text("[device")}, SINGLE[:3]),
    *cases("manifest.json", {**NO_JSON, **MANIFEST}, (*SINGLE, "list")),
]
WITH_JOURNAL = [
    *SINGLES,
    *cases("journal.ndjson", {"gone": GARBAGE["gone"], "empty": text("")}, SINGLE),
    *cases("latency.parquet", {"classes": shortened("class_ios")}, SINGLE[:3]),
]
PROTOCOLS = [
    *cases("findings.json", {**NO_JSON, **FINDINGS}, PROTOCOL[:2]),
    *cases("journal.ndjson", {**JOURNAL, "gone": GARBAGE["gone"]}, PROTOCOL),
    *cases("steps/00002.zip", ARCHIVE, PROTOCOL),
    *cases("steps/00002.zip", INSIDE, PROTOCOL[2:]),
    *cases("manifest.json", {**NO_JSON, **PROTOCOL_MANIFEST}, (*PROTOCOL, "list", "health")),
    *cases("health.json", NO_JSON, (*PROTOCOL[:1], "health")),
    *cases("rig.toml", {"noise": text("[device")}, PROTOCOL[2:]),
]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two runs of a job."""
    store = RunStore(tmp_path_factory.mktemp("runs"))
    for seed in (1, 2):
        store.save(ssdlab.run(JOB, on="lab-reference", set={"capacity": "64MiB"}, seed=seed))
    return store.root


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two runs of a protocol, the first of which was stopped before its last step."""
    root = tmp_path_factory.mktemp("tests")
    test = ["test", "lab-reference", "-p", "queue-depth", "--quick", "--quiet"]
    assert run_command([*test, "--set", "capacity=64MiB", "--out", str(root)]) == 0
    (first,) = (entry.path for entry in RunStore(root).entries())
    shutil.copytree(first, root / "second")
    put("status", value="stopped")(first / "manifest.json")
    lines = (first / "journal.ndjson").read_text().splitlines(keepends=True)
    (first / "journal.ndjson").write_text("".join(lines[:-1]))
    return root


def ask(cli: Cli, command: str, root: Path, run: Path) -> Outcome:
    """What a command says of a run."""
    other = next(p for p in sorted(root.glob("*/manifest.json")) if p.parent != run).parent
    page = root / "page.html"
    arguments: dict[str, tuple[object, ...]] = {
        "report": ("report", run, "-o", page),
        "compare": ("compare", other, run),
        "explain": ("explain", run, "--no-try"),
        "health": ("health", run),
        "resume": ("resume", run, "--quiet"),
        "list": ("list", "runs", "--out", root),
    }
    outcome = cli(*arguments[command])
    assert not page.exists() or outcome.status == 0
    return outcome


def told(cli: Cli, case: Case, root: Path, run: Path) -> None:
    """Each command that reads the damaged file says one sentence that names it."""
    file = run / case.file
    case.damage(file)
    for command in case.commands:
        outcome = ask(cli, command, root, run)
        assert outcome.status == 2, (command, outcome)
        assert outcome.err.startswith(f"ssdlab: {file}"), (command, outcome.err)
        assert outcome.err.count("\n") == 1, (command, outcome.err)
        assert (outcome.out == "") is (command != "list"), (command, outcome.out)


def copied(root: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A store of one's own, and the run in it to be damaged."""
    shutil.copytree(root, tmp_path / "store")
    return tmp_path / "store", next(iter(sorted((tmp_path / "store").glob("2*"))))


@pytest.mark.parametrize("case", WITH_JOURNAL, ids=str)
def test_a_damaged_file_of_a_run_is_named(cli: Cli, kept: Path, tmp_path: Path, case: Case) -> None:
    told(cli, case, *copied(kept, tmp_path))


@pytest.mark.parametrize("case", SINGLES, ids=str)
def test_a_damaged_file_of_an_old_run_is_named(cli: Cli, tmp_path: Path, case: Case) -> None:
    root = tmp_path / "runs"
    for name in ("2-first", "2-second"):
        shutil.copytree(OLD_RUN, root / name)
    told(cli, case, *copied(root, tmp_path))


@pytest.mark.parametrize("case", PROTOCOLS, ids=str)
def test_a_damaged_file_of_a_protocol_s_run_is_named(
    cli: Cli, tested: Path, tmp_path: Path, case: Case
) -> None:
    told(cli, case, *copied(tested, tmp_path))


def test_runs_that_are_whole_are_read_by_all_commands(
    cli: Cli, kept: Path, tested: Path, tmp_path: Path
) -> None:
    store, run = copied(kept, tmp_path / "one")
    for command in (*SINGLE, "list"):
        assert ask(cli, command, store, run).status == 0, command
    store, run = copied(tested, tmp_path / "two")
    for command in (*PROTOCOL, "list", "health"):
        assert ask(cli, command, store, run).status == 0, command


def test_a_last_line_cut_short_by_a_power_failure_is_no_damage(
    cli: Cli, tested: Path, tmp_path: Path
) -> None:
    store, run = copied(tested, tmp_path)
    with (run / "journal.ndjson").open("a") as journal:
        journal.write('{"number": 21, "key": "la')
    assert ask(cli, "report", store, run).status == 0
    assert ask(cli, "resume", store, run).status == 0


def test_a_list_shows_the_other_runs_and_then_the_damage(
    cli: Cli, kept: Path, tmp_path: Path
) -> None:
    store, run = copied(kept, tmp_path)
    whole = [entry.id for entry in RunStore(store).entries() if entry.path != run]
    for folder in (run, shutil.copytree(run, store / "copy")):
        (folder / "manifest.json").write_text("{")
    outcome = ask(cli, "list", store, run)
    assert whole[0] in outcome.out and run.name not in outcome.out
    assert "; 1 more runs are damaged" in outcome.err
    assert [entry.id for entry in RunStore(store).entries()] == whole


def test_python_is_told_the_same(kept: Path, tmp_path: Path) -> None:
    _, run = copied(kept, tmp_path)
    put("jobs", 0, "write", "iops", value=None)(run / "result.json")
    with pytest.raises(InputError, match=r"result\.json: .*jobs\.0\.write: iops is missing"):
        Result.load(run)
