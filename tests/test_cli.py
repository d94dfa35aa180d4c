"""Bad input is one clear sentence with the right exit status, and nothing half-written."""

from __future__ import annotations

import ast
import csv
import importlib
import inspect
import itertools
import json
import pkgutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import ssdlab.cli
from conftest import Cli, make_result, one_sentence
from ssdlab import rig
from ssdlab.cli.answer import Ask, View
from ssdlab.cli.app import COMMANDS, load
from ssdlab.errors import nearest
from ssdlab.rig import Profile
from ssdlab.store import RunStore

JOB = "[w]\nrw=write\nsize=1m\n"
PROFILE = Profile("test-drive", 'name = "test-drive"\nsummary = "a drive for tests"\n')


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.fio"
    path.write_text(JOB)
    return path


def nothing_kept(tmp_path: Path) -> bool:
    data = tmp_path / "data"
    return not [p for p in data.rglob("*") if p.is_file()]


def test_the_version_is_told(cli: Cli) -> None:
    assert cli("--version").out.startswith("ssdlab 0.")


def test_an_unknown_profile_is_answered_with_the_nearest(
    cli: Cli, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rig, "profiles", lambda: [PROFILE])
    said = one_sentence(cli("run", job, "--on", "tset-drive"))
    assert 'did you mean "test-drive"?' in said


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("samsung-980-pro", "samsung-980-pro-1000"),
        ("Samsung 980 Pro", "samsung-980-pro-1000"),
        ("Micron 7450", "micron-7450-960"),
        ("samsung-970-por-512", "samsung-970-pro-512"),
    ],
)
def test_the_beginning_of_a_name_is_nearer_than_one_of_other_words(name: str, meant: str) -> None:
    """`samsung-980-pro` was answered with the 980, which is another drive."""
    assert nearest(name, [one.name for one in rig.profiles()]) == meant


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("list", "Missing argument 'KIND': What to list: drives, parts, "),
        ("compare", "Missing argument 'RUN': Run folders, or ids as `ssdlab list runs` shows them"),
        ("run x.fio", "Missing option '--on': A profile's name, a rig file (.toml), "),
    ],
)
def test_what_is_missing_is_told_with_what_it_is(cli: Cli, command: str, said: str) -> None:
    assert one_sentence(cli(*command.split())).startswith(said)


def test_a_missing_job_file_is_named(cli: Cli, tmp_path: Path) -> None:
    said = one_sentence(cli("run", tmp_path / "gone.fio", "--on", "./s"))
    assert "gone.fio: there is no such job file" in said


def test_a_folder_is_no_job_file(cli: Cli, tmp_path: Path) -> None:
    assert "is a folder, not a job file" in one_sentence(cli("run", tmp_path, "--on", "./s"))


def test_a_job_file_that_is_not_utf8_is_told_where(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "latin.fio"
    path.write_bytes(b"[w]\n; gr\xfc\xdfe\n")
    said = one_sentence(cli("run", path, "--on", "./s"))
    assert "not a text file in UTF-8 (byte 8 " in said


def test_a_missing_include_is_told_with_the_places(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "job.fio"
    path.write_text("[w]\ninclude more.fio\n")
    said = one_sentence(cli("run", path, "--on", tmp_path / "s"))
    assert "job.fio:2: include: cannot read more.fio: there is no" in said


def test_a_folder_is_no_target(cli: Cli, job: Path, tmp_path: Path) -> None:
    assert "name a file in it" in one_sentence(cli("run", job, "--on", tmp_path))


def test_a_character_device_is_no_target(cli: Cli, job: Path) -> None:
    said = one_sentence(cli("run", job, "--on", "/dev/null"))
    assert "neither a plain file nor a block device" in said


def test_a_device_that_is_not_there_is_not_made_a_file(cli: Cli, job: Path) -> None:
    said = one_sentence(cli("run", job, "--on", "/dev/nvme77n1"))
    assert "there is no such device" in said


def test_a_missing_rig_file_is_named(cli: Cli, job: Path) -> None:
    assert "no such rig file" in one_sentence(cli("run", job, "--on", "array.toml"))


def test_set_wants_a_key_and_a_value(cli: Cli, job: Path) -> None:
    said = one_sentence(cli("run", job, "--on", "./s", "--set", "capacity"))
    assert "KEY=VALUE" in said


def test_set_and_prepare_are_for_simulated_drives(cli: Cli, job: Path, tmp_path: Path) -> None:
    said = one_sentence(cli("run", job, "--on", tmp_path / "s", "--set", "a=1"))
    assert "a real one is as it is" in said
    said = one_sentence(cli("run", job, "--on", tmp_path / "s", "--prepare", "steady"))
    assert "put the filling into the job" in said


def test_a_wrong_option_of_the_command_is_one_sentence(cli: Cli, job: Path) -> None:
    assert "--oon" in one_sentence(cli("run", job, "--oon", "x"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("plan", "storage", "--iops", "20kiops"), '--iops "20kiops": expected a number'),
        (("run", "x", "--scale", "1.5"), '--scale "1.5": expected a whole number of at least 1'),
        (("array", "x", "--price", "inf"), '--price "inf": expected a number of at least 0'),
        (("ab", "x", "--repeats", "1"), '--repeats "1": expected a whole number from 2 to 1000'),
        (("ab", "x", "--seed", str(2**64)), "expected a whole number from 0 to 2^64 - 1"),
    ],
)
def test_what_is_no_number_is_told_with_what_would_be_one(
    given: tuple[str, ...], said: str, cli: Cli
) -> None:
    assert said in one_sentence(cli(*given))


def test_a_name_that_is_too_long_is_wrong_input(cli: Cli) -> None:
    assert "name too long" in one_sentence(cli("compare", "x" * 5000, "y")).lower()


def test_an_unknown_command_is_one_sentence(cli: Cli) -> None:
    assert "rnu" in one_sentence(cli("rnu"))


def test_json_to_a_folder_or_of_two_jobs_is_refused_before_the_run(
    cli: Cli, job: Path, tmp_path: Path
) -> None:
    said = one_sentence(cli("run", job, "--on", tmp_path / "s", "--json", tmp_path))
    assert "is a folder; give the name of a file" in said
    said = one_sentence(cli("run", job, job, "--on", tmp_path / "s", "--json", "x"))
    assert "one job" in said


def test_a_folder_that_cannot_be_written_is_told_before_the_run(
    cli: Cli, job: Path, tmp_path: Path
) -> None:
    for arguments in (("--out", "/proc/runs"), ("--json", "/proc/x.json")):
        said = one_sentence(cli("run", job, "--on", tmp_path / "s", *arguments))
        assert "/proc" in said
    assert not (tmp_path / "s").exists()


def test_a_file_in_a_folder_that_is_not_there_is_one_sentence(
    cli: Cli, job: Path, tmp_path: Path
) -> None:
    said = one_sentence(cli("run", job, "--on", tmp_path / "gone" / "s"))
    assert "there is no folder" in said
    assert nothing_kept(tmp_path)


def test_runs_are_listed_and_an_unknown_run_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    assert "there are no runs yet" in cli("list", "runs", "--out", out).out
    folder = RunStore(out).save(make_result("drive"))
    assert folder.name in cli("list", "runs", "--out", out).out
    said = one_sentence(cli("report", "gone", "--out", out, "-o", tmp_path / "r.html"))
    assert 'no run is called "gone"' in said
    assert not (tmp_path / "r.html").exists()


def test_an_unknown_list_and_an_unknown_name_are_answered_with_the_known(cli: Cli) -> None:
    assert 'did you mean "drives"?' in one_sentence(cli("list", "drive"))
    assert 'did you mean "iodepth"?' in one_sentence(cli("show", "iodpeth"))
    said = one_sentence(cli("show", "demo-client", "--out", "nonsense"))
    assert "--out is where runs are kept, and demo-client is none" in said


def test_devices_policies_and_options_are_listed_and_shown(cli: Cli) -> None:
    assert "ssd" in cli("list", "devices").out
    assert "greedy" in cli("list", "policies").out
    assert "iodepth" in cli("list", "options").out
    assert "sequential-read" in cli("list", "workloads").out
    assert "consistency" in cli("list", "experiments").out
    assert "greedy (" in cli("show", "greedy").out
    assert "job option" in cli("show", "iodepth").out


def test_what_is_shown_can_be_had_as_json(cli: Cli) -> None:
    for name in ("demo-client", "pts-iops", "link", "greedy", "iodepth"):
        shown = cli("show", name)
        (found,) = json.loads(cli("show", name, "--json", "-").out)
        assert found["name"] == name and found["summary"] in shown.out
        assert all(next(iter(row.values())) in shown.out for row in found["rows"])
    one_sentence(cli("show", "greedy", "--json", "/no/such/folder/x.json"))


def test_what_is_shown_can_be_had_as_tables(cli: Cli, tmp_path: Path) -> None:
    shown = cli("show", "demo-client", "--csv", tmp_path, "--xlsx", tmp_path / "t.xlsx")
    assert shown.status == 0, shown.err
    rows = list(csv.reader((tmp_path / "drive.csv").open()))
    assert rows[0] == ["key", "value", "value unit", "supplied by", "source"] and len(rows) > 10
    own = {key: (value, unit) for key, value, unit, *_ in rows}
    assert own["bandwidth"] == ("550", "MB/s") and own["below.ftl.gc.victim"] == ("greedy", "")
    with zipfile.ZipFile(tmp_path / "t.xlsx") as parts:
        assert '<c r="B2"><v>550</v></c>' in parts.read("xl/worksheets/sheet1.xml").decode()
    assert (tmp_path / "t.xlsx").read_bytes()[:2] == b"PK"
    job = tmp_path / "w.fio"
    job.write_text("[w]\nrw=randwrite\nbs=4k\nnumber_ios=200\n")
    folders = tmp_path / "ran", tmp_path / "kept"
    tables = [("--csv", folder) for folder in folders]
    assert cli("run", job, "--on", "demo-client", "--out", tmp_path / "s", *tables[0]).status == 0
    assert cli("show", "last", "--out", tmp_path / "s", *tables[1]).status == 0
    ran, kept = ({one.name: one.read_text() for one in f.iterdir()} for f in folders)
    assert ran and ran == kept


def test_numbers_in_doubt_carry_a_mark_on_the_terminal_and_on_the_page(
    cli: Cli, tmp_path: Path
) -> None:
    """Reads of what was never written; a job that writes first has nothing against it."""
    read = tmp_path / "read.fio"
    read.write_text("[r]\nrw=randread\nio_size=4m\n")
    write = tmp_path / "write.fio"
    write.write_text("[w]\nrw=write\nbs=128k\ntime_based\nruntime=25\n")
    for job, marked in ((read, True), (write, False)):
        out = tmp_path / job.stem
        for seed in ("1", "2"):
            said = cli("run", job, "--on", "demo-client", "--seed", seed, "--out", out).out
            row = next(line for line in said.splitlines() if line.startswith(job.stem[0] + "\t"))
            assert (row.count("†") >= 7) is marked and ("† a check" in said) is marked
        names = sorted(path.name for path in out.glob("2*"))
        compared = cli("compare", *names, "--out", out, "-o", out / "c.html").out
        iops = next(line for line in compared.splitlines() if "\tIOPS\t" in line)
        assert (iops.count("†") == 2) is marked
        cli("report", out / names[0], "-o", out / "r.html")
        for page in ("c.html", "r.html"):
            text = (out / page).read_text()
            assert ("†" in text) is marked
        found = json.loads(cli("compare", *names, "--out", out, "--json", "-").out)
        assert all(row["in_doubt"] == [marked, marked] for row in found["rows"])


def test_a_profile_is_shown_with_its_sources(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        'name = "x"\nsummary = "sums it up"\n[device]\nkind = "ssd"\n'
        't_read = { value = "75us", source = "datasheet 7" }\n'
    )
    monkeypatch.setattr("ssdlab.cli.show.profiles", lambda: [Profile("x", text)])
    shown = cli("show", "x").out
    assert "x: sums it up" in shown
    assert [line.split() for line in shown.splitlines() if "t_read" in line] == [
        ["t_read", "75us", "datasheet", "7"]
    ]


def test_a_reader_that_leaves_is_no_error() -> None:
    script = f"{sys.executable} -m ssdlab list options | head -c 1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    assert done.stderr == ""


def taking_two() -> Iterator[tuple[list[str], str, str]]:
    """Commands with what they must be given, and two options that each take a place for a
    document."""

    def walk(path: list[str], found: Any) -> Iterator[tuple[list[str], str, str]]:
        for name, one in getattr(found, "commands", {}).items():
            yield from walk([*path, name], one)
        options = {one.opts[0]: one for one in found.params}
        given = [*path]
        for one in found.params:
            if one.required:
                given += ["x"] if one.param_type_name == "argument" else [one.opts[0], "x"]
        places = [name for name in ("--json", "--report", "--xlsx") if name in options]
        yield from ((given, *pair) for pair in itertools.combinations(places, 2))

    for name in COMMANDS:
        yield from walk([name], load(name))


def test_two_documents_on_standard_output_are_refused_before_anything_begins(cli: Cli) -> None:
    refused = set()
    for given, one, other in taking_two():
        said = one_sentence(cli(*given, one, "-", other, "-"))
        assert f"{one} - and {other} both write to standard output" in said, given
        refused.add(given[0])
    for words in (("convert", "x", "-", "--to", "csv"), ("to-fio", "x", "-", "--fit")):
        said = one_sentence(cli("trace", *words, "--json", "-"))
        assert "- and --json both write to standard output" in said
    assert {"run", "test", "compare", "explain", "array", "plan", "trim", "health"} <= refused


def _asking() -> list[tuple[str, ast.FunctionDef, Callable[..., None]]]:
    """Commands that ask functions of the package with what they are given."""
    found = []
    for info in pkgutil.iter_modules(ssdlab.cli.__path__):
        module = importlib.import_module(f"ssdlab.cli.{info.name}")
        for node in ast.parse(inspect.getsource(module)).body:
            command = getattr(module, getattr(node, "name", ""), None)
            own = getattr(command, "__wrapped__", None)
            if (
                isinstance(node, ast.FunctionDef)
                and own is not None
                and Ask in inspect.get_annotations(own, eval_str=True).values()
            ):
                found.append((info.name, node, own))
    return found


def _handed(inside: list[ast.AST], command: Callable[..., None]) -> Iterator[ast.AST]:
    """What the functions of a command's module do that it hands its ``Ask`` to."""
    for one in inside:
        if (
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Name)
            and any(isinstance(place, ast.Name) and place.id == "ask" for place in one.args)
        ):
            yield from ast.walk(ast.parse(inspect.getsource(command.__globals__[one.func.id])))


@pytest.mark.parametrize("module, node, command", _asking())
def test_all_that_a_command_line_gives_reaches_someone(
    module: str, node: ast.FunctionDef, command: Callable[..., None]
) -> None:
    inside = [one for statement in node.body for one in ast.walk(statement)]
    owners = [one.value for one in inside if isinstance(one, ast.Attribute)]
    named = {
        (one.value.id, one.attr)
        for one in inside
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name)
    }
    whole = {one.id for one in inside if isinstance(one, ast.Name) and one not in owners}
    asked: set[str] = set()
    for one in [*inside, *_handed(inside, command)]:
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "ask":
            function = eval(ast.unparse(one.args[0]), command.__globals__)
            asked |= set(inspect.signature(function).parameters)
    for name, kind in inspect.get_annotations(command, eval_str=True).items():
        if kind in (Ask, None) or name in whole or (name, "given") in named:
            continue
        if not is_dataclass(kind):
            assert name.strip("_") in asked, f"{module}: {name}"
        elif not (isinstance(kind, type) and issubclass(kind, View)):
            for field in fields(kind):
                known = field.name.strip("_") in asked or (name, field.name) in named
                assert known, f"{module}: {field.name} of {name}"


def test_a_kept_run_is_shown_in_full_as_its_command_shows_it(cli: Cli, tmp_path: Path) -> None:
    job = tmp_path / "short.fio"
    job.write_text("[w]\nrw=randwrite\nbs=4k\nnumber_ios=2000\n")
    how = ("--on", "lab-reference", "--set", "capacity=64MiB", "--out", tmp_path, "--verbose")
    assert cli("run", job, *how).status == 0
    brief, full = (cli("show", "last", "--out", tmp_path, *more) for more in ((), ("--verbose",)))
    assert full.status == 0, full.err
    assert "Write amplification by cause" in full.out
    assert "Write amplification by cause" not in brief.out
