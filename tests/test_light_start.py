"""Help and completions answer at once: nothing is loaded that only the work itself needs."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import make_result
from ssdlab.cli import light
from ssdlab.cli.app import COMMANDS, load
from ssdlab.store import RunStore

HEAVY = {"asyncio", "bokeh", "jinja2", "numpy", "polars", "pydantic", "rich", "scipy"}
COUNTING = {"bokeh", "numpy", "polars", "scipy"} | {"ssdlab.engine.runner"}
SECONDS_MAX = 0.35
"""Of processor time; of a start that loads everything it is 2."""
WORK = {"ssdlab.engine.runner", "ssdlab.report.answer_page", "ssdlab.safety", "ssdlab.target"}
"""Some of what runs something."""


FORKED = """
import gc, json, os, sys
import ssdlab.cli.app
gc.freeze()
gc.disable()
for line in sys.stdin:
    arguments, environment, said = json.loads(line)
    if os.fork():
        print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
        continue
    sys.argv[1:] = arguments
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 1)
    try:
        ssdlab.cli.main()
    finally:
        with open(said + ".loaded", "w") as file:
            file.write("\\n".join([str(gc.isenabled()), *sys.modules]))
"""
"""Starts the program by a fork for each line, once what every start loads is there."""


@dataclass(frozen=True)
class Start:
    """What a command line loaded, all in all, and said."""

    status: int
    said: str
    collects: bool
    """Whether it looks for garbage in the end."""
    loaded: set[str]

    def heavy(self) -> set[str]:
        return self.loaded & (HEAVY | WORK)


Begin = Callable[..., Start]


@pytest.fixture(scope="module")
def begin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begin]:
    """Starts a command line."""
    said = tmp_path_factory.mktemp("starts") / "said"
    loaded = said.with_suffix(".loaded")
    command = [sys.executable, "-c", FORKED]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        asked, answered = server.stdin, server.stdout
        assert asked is not None and answered is not None

        def start(*arguments: str, **environment: str) -> Start:
            line = json.dumps([arguments, {**os.environ, **environment}, str(said)])
            print(line, file=asked, flush=True)
            status = int(answered.readline())
            collects, *names = loaded.read_text().splitlines()
            found = Start(status, said.read_text(), collects == "True", {*names})
            said.unlink()
            loaded.unlink()
            return found

        yield start


def completing(line: str) -> dict[str, str]:
    """The environment in which a shell asks for what is offered behind a line."""
    return {
        light.COMPLETE: "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }


def subcommands() -> list[str]:
    """Every command, and those of groups as two words."""
    return [
        f"{name} {sub}".strip()
        for name in COMMANDS
        for sub in getattr(load(name), "commands", {"": None})
    ]


def test_the_help_lists_every_command_with_its_summary_and_loads_nothing_for_it(
    begin: Begin,
) -> None:
    start = begin("--help")
    assert start.status == 0 and start.heavy() == set()
    lines = [line.split(maxsplit=1) for line in start.said.splitlines() if line]
    told = {name: rest[0] for name, *rest in lines if rest}
    for name in COMMANDS:
        summary = light.index()["commands"][name]
        assert summary.startswith(told[name].removesuffix("...").rstrip()), name
        assert len(told[name]) > 30, name


@pytest.mark.parametrize("line", subcommands())
def test_the_help_of_a_command_loads_nothing_that_runs_it(line: str, begin: Begin) -> None:
    start = begin(*line.split(), "--help")
    assert start.status == 0 and start.heavy() == set() and start.collects
    assert f"Usage: ssdlab {line} " in start.said


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ssdlab ru", "run"),
        ("ssdlab run --se", "--seed"),
        ("ssdlab run x.fio --on demo-c", "demo-client"),
        ("ssdlab test demo-client --protocol pts-io", "pts-iops"),
        ("ssdlab reproduce consis", "consistency"),
        ("ssdlab purge x --method nv", "nvme-format"),
        ("ssdlab show gree", "greedy"),
        ("ssdlab show iodep", "iodepth"),
        ("ssdlab list dri", "drives"),
        ("ssdlab trace info --for", "--format"),
        ("ssdlab plan cache --po", "--pool"),
        ("ssdlab array demo-client --study scal", "scaling"),
        ("ssdlab array demo-client --workload random-w", "random-write"),
        ("ssdlab array demo-client --controller ada", "adaptec-3152-8i"),
        ("ssdlab plan storage --workload seq", "sequential-read"),
        ("ssdlab plan storage --candidate raid10:4:demo-c", "raid10:4:demo-client"),
        ("ssdlab plan cache --preset cachec", "cachecade"),
        ("ssdlab plan cache --modes write-back,write-t", "write-back,write-through"),
        ("ssdlab plan cache --policies lru,a", "lru,arc"),
        ("ssdlab plan cache --ram-policy s3", "s3-fifo"),
        ("ssdlab plan cache --cache demo-c", "demo-client"),
        ("ssdlab plan cache --pool raid1:2:hgst-c", "raid1:2:hgst-c15k600-300"),
        ("ssdlab cache load.csv --policies al", "all"),
        ("ssdlab cache load.csv --policies opt", "optimal"),
    ],
)
def test_a_completion_loads_nothing_but_names(line: str, offered: str, begin: Begin) -> None:
    start = begin(**completing(line))
    assert start.heavy() == set()
    assert offered in start.said.splitlines()


@pytest.mark.parametrize("option", ["--policies", "--ram-policy"])
def test_no_policy_is_offered_that_is_refused(option: str, begin: Begin) -> None:
    assert begin(**completing(f"ssdlab plan cache {option} opt")).said.split() == []
    assert begin(**completing(f"ssdlab plan cache {option} lir")).said.split() == ["lirs"]


@pytest.mark.parametrize("kind", ["drives", "policies", "controllers", "options"])
def test_a_list_of_names_loads_nothing_that_counts(kind: str, begin: Begin) -> None:
    start = begin("list", kind)
    assert start.status == 0 and start.loaded & COUNTING == set()


def test_kept_runs_are_completed_by_their_folders(begin: Begin) -> None:
    kept = RunStore().save(make_result("drive"))
    for command in ("report", "show"):
        start = begin(**completing(f"ssdlab {command} {kept.name[:8]}"))
        assert start.heavy() == set() and kept.name in start.said.splitlines()


def test_nothing_is_collected_while_a_command_loads() -> None:
    code = """
import gc, sys
from ssdlab import cli
passes = lambda: sum(one["collections"] for one in gc.get_stats())
before = passes()
cli.run_command = lambda _: print(passes() - before, gc.isenabled(), gc.get_freeze_count() > 0)
sys.argv[1:] = ["run"]
cli.main()
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert said.split() == ["0", "True", "True"]


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_run_loads_nothing_that_plans_storage() -> None:
    code = "import sys, ssdlab.api.run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "ssdlab.jobfile" in done.stdout and "ssdlab.plan" not in done.stdout


@pytest.mark.alone
def test_help_and_completions_take_a_third_of_a_second() -> None:
    def seconds(line: str) -> float:
        """Of a whole start, from the interpreter on."""
        asks = line.startswith("ssdlab ")
        before = _children_s()
        subprocess.run(
            [sys.executable, "-m", "ssdlab", *([] if asks else line.split())],
            env={**os.environ, **(completing(line) if asks else {})},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return _children_s() - before

    lines = ("--help", "run --help", "ssdlab ru", "ssdlab test demo-client --protocol pts-io")
    # One quick start of three is enough.
    assert [one for one in lines if not any(seconds(one) <= SECONDS_MAX for _ in range(3))] == []


def test_an_option_that_looks_like_help_is_the_value_before_it(
    tmp_path: Path, begin: Begin
) -> None:
    """The command is run, so its body must be there."""
    job = tmp_path / "job.fio"
    job.write_text("[w]\nrw=write\nsize=1m\n")
    start = begin("run", str(job), "--on", "--help")
    assert start.status == 2 and "polars" in start.loaded
    assert not light.asks_for_words(["run", "x", "--on", "--help"], {})
    assert light.asks_for_words(["run", "x", "--help", "--on"], {})


def test_the_index_names_what_the_registries_have() -> None:
    """As ``docs/generate.py --check`` finds it."""
    script = Path(__file__).parent.parent / "docs" / "generate.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert json.loads(light.INDEX.read_text("utf-8"))["commands"].keys() == set(COMMANDS)
