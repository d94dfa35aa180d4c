"""Help and completions answer at once: nothing is loaded that only the work itself needs."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
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


class Start:
    """What a command line loaded, said and took."""

    def __init__(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        before = _children_s()
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "ssdlab", *arguments],
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
        )
        self.seconds = _children_s() - before
        self.status, self.said = done.returncode, done.stdout
        self.loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}

    def heavy(self) -> set[str]:
        return self.loaded & (HEAVY | WORK)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def completed(line: str) -> Start:
    """What is offered behind a line."""
    environment = {
        light.COMPLETE: "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    return Start(environment=environment)


def subcommands() -> list[str]:
    """Every command, and those of groups as two words."""
    return [
        f"{name} {sub}".strip()
        for name in COMMANDS
        for sub in getattr(load(name), "commands", {"": None})
    ]


def test_the_help_lists_every_command_with_its_summary_and_loads_nothing_for_it() -> None:
    start = Start("--help")
    assert start.status == 0 and start.heavy() == set()
    lines = [line.split(maxsplit=1) for line in start.said.splitlines() if line]
    told = {name: rest[0] for name, *rest in lines if rest}
    for name in COMMANDS:
        summary = light.index()["commands"][name]
        assert summary.startswith(told[name].removesuffix("...").rstrip()), name
        assert len(told[name]) > 30, name


@pytest.mark.parametrize("line", subcommands())
def test_the_help_of_a_command_loads_nothing_that_runs_it(line: str) -> None:
    start = Start(*line.split(), "--help")
    assert start.status == 0 and start.heavy() == set()
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
    ],
)
def test_a_completion_loads_nothing_but_names(line: str, offered: str) -> None:
    start = completed(line)
    assert start.heavy() == set()
    assert offered in start.said.splitlines()


@pytest.mark.parametrize("kind", ["drives", "policies", "controllers", "options"])
def test_a_list_of_names_loads_nothing_that_counts(kind: str) -> None:
    start = Start("list", kind)
    assert start.status == 0 and start.loaded & COUNTING == set()


def test_kept_runs_are_completed_by_their_folders(tmp_path: Path) -> None:
    kept = RunStore().save(make_result("drive"))
    for command in ("report", "show"):
        start = completed(f"ssdlab {command} {kept.name[:8]}")
        assert start.heavy() == set() and kept.name in start.said.splitlines()


@pytest.mark.alone
def test_help_and_completions_take_a_third_of_a_second() -> None:
    def seconds(line: str) -> float:
        return (completed(line) if line.startswith("ssdlab ") else Start(*line.split())).seconds

    lines = ("--help", "run --help", "ssdlab ru", "ssdlab test demo-client --protocol pts-io")
    # One quick start of three is enough.
    assert [one for one in lines if not any(seconds(one) <= SECONDS_MAX for _ in range(3))] == []


def test_an_option_that_looks_like_help_is_the_value_before_it(tmp_path: Path) -> None:
    """The command is run, so its body must be there."""
    job = tmp_path / "job.fio"
    job.write_text("[w]\nrw=write\nsize=1m\n")
    start = Start("run", str(job), "--on", "--help")
    assert start.status == 2 and "polars" in start.loaded
    assert not light.asks_for_words(["run", "x", "--on", "--help"], {})
    assert light.asks_for_words(["run", "x", "--help", "--on"], {})


def test_the_index_names_what_the_registries_have() -> None:
    """As ``docs/generate.py --check`` finds it."""
    script = Path(__file__).parent.parent / "docs" / "generate.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert json.loads(light.INDEX.read_text("utf-8"))["commands"].keys() == set(COMMANDS)
