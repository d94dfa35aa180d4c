"""What programs read of the tables that commands build: numbers are numbers, and nothing that
people read is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli
from health_samples import nvme
from ssdlab.answer import Answer, table_heads
from ssdlab.cli.answer import View
from ssdlab.store import RunStore
from ssdlab.tables import file_values, named_tables, settings_table
from test_plan_cache import POOL, hot, write_trace

SMALL = ("--set", "capacity=512MiB")
JOB = """[w]
rw=randwrite
bs=4k
iodepth=4
size=100%
time_based
runtime=3
"""
MEASURED = """rw,bs,iodepth,iops,clat_mean_us
randread,4k,1,12000,80
randread,4k,16,150000,100
randwrite,4k,1,40000,20
read,128k,16,20000,790
write,128k,16,4000,4000
"""
NUMBER = r"[<>~]?\s?(?:x |at most |at least |about )?[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
UNITS = r"(?:ns|us|ms|s|min|h|d|days?|years?|%|[kKMGTP]?i?B(?:/s|/day)?|IOPS|x|°C|times)"
ONE = rf"{NUMBER}(?:\s?{UNITS})?(?:\s\d+\s{UNITS})*"
QUANTITY = re.compile(ONE)
INTERVAL = re.compile(rf"{ONE}\s?(?:\.\.|±|to|of)\s?{ONE}")
BESIDE = re.compile(r"[(!*±]|\.\.| to ")
"""Of the text of a number: it tells more than that."""


def faults(answer: Answer) -> Iterator[tuple[str, str, str]]:
    """Cells of which programs do not get what people read: table, column, text."""
    for name, table in named_tables(answer):
        for row in table.rows:
            for place, (column, cell) in enumerate(zip(table.columns, row, strict=True)):
                if isinstance(cell, str):
                    # The first column has names, which may be sizes.
                    wrong = bool(place and (QUANTITY.fullmatch(cell) or INTERVAL.fullmatch(cell)))
                    text = cell
                elif cell is None or column.parts != ("value",):
                    continue
                else:
                    text = cell.text
                    lost = cell.value is None and text not in ("", "-")
                    wrong = lost or BESIDE.search(text) is not None
                if wrong:
                    yield name, column.name, text


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Answer]:
    """What the commands of a test have answered."""
    told: list[Answer] = []
    show = View.show

    def keep(view: View, answer: Answer, **how: Any) -> None:
        told.append(answer)
        show(view, answer, **how)

    monkeypatch.setattr(View, "show", keep)
    return told


def test_the_law_of_tables_sees_what_it_is_for() -> None:
    for text in ("12 us", "1,234", "1.5 s", "3 us .. 4 us", "12 ± 3", "7 of 9", "2 min 05 s"):
        assert QUANTITY.fullmatch(text) or INTERVAL.fullmatch(text), text
    for text in ("randread 4 KiB, depth 4", "none", "RAID 5", "2 kinds"):
        assert not (QUANTITY.fullmatch(text) or INTERVAL.fullmatch(text)), text


def test_settings_have_units_beside_them_and_versions_are_no_numbers() -> None:
    rows = [("rig: capacity", "16GiB", "32GiB"), ("seed", "1", "-"), ("kernel", "6.10", "6.1")]
    table = settings_table("Settings", ("setting", "A", "B"), rows, (1, 2), ("kernel",))
    assert file_values(table) == [
        ["setting", "A", "A unit", "B", "B unit"],
        ["rig: capacity", 16, "GiB", 32, "GiB"],
        ["seed", 1, None, "-", None],
        ["kernel", "6.10", None, "6.1", None],
    ]
    assert table_heads(settings_table("Settings", ("setting", "A"), [], (1,))) == ["setting", "A"]


def test_no_number_of_a_table_is_text_and_none_is_missing_for_programs(
    answers: list[Answer], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {"w.fio": JOB, "m.fio": JOB.replace("randwrite", "randrw"), "t.csv": MEASURED}
    for name, text in {**files, "disk.toml": POOL}.items():
        Path(name).write_text(text)
    Path("f.bin").write_bytes(bytes(1 << 22))
    Path("d.json").write_text(json.dumps(nvme()))
    write_trace(Path("load.csv"), hot(300, 200))
    small = ("--set", "capacity=256MiB", "--set", "nand.t_read=70us")
    runs = [("run", "m.fio", "--on", "lab-reference", *how) for how in (SMALL, small)]
    planned = ("plan", "cache", "--trace", "load.csv", "--pool", "disk.toml", "--cache",
               "demo-client", "--quick", "--top", 1)  # fmt: skip
    for run in runs:
        assert cli(*run, "-q").status == 0
    commands: list[tuple[object, ...]] = [
        ("run", "w.fio", "--on", "lab-reference", *SMALL),
        ("compare", *RunStore().ids()),
        ("explain", "last", "--no-try"),
        ("fit", "t.csv", "--capacity", "960GB", "--quick", "-o", "twin.toml"),
        ("fit", "t.csv", "--check", "twin.toml"),
        ("predict", "twin.toml", "w.fio"),
        ("reliability", "--runs", 100, "--tbw", "100TB", "--writes-per-day", "1TB"),
        ("ab", "lab-reference", *SMALL, "--job", "w.fio", "--set-b", "ftl.over_provisioning=0.3",
         "--repeats", 2),
        ("sweep", "w.fio", "--on", "lab-reference", *SMALL, "--vary", "job.iodepth=1,2",
         "-o", "swept"),
        ("array", "lab-reference", *SMALL, "--levels", "0,5", "--count", 4, "--workload",
         "random-read"),
        (*planned, "--disk-cache"),
        (*planned, "--accept-loss"),
        ("plan", "storage", "--quick", "--candidate", "demo-client", "--workload", "random-read"),
        ("cache", "load.csv", "--policies", "lru,arc"),
        ("trace", "info", "load.csv"),
        ("health", "d.json"),
        ("health", "d.json", "--attributes"),
        ("health", "d.json", "d.json"),
        ("scan", "f.bin"),
        ("refresh", "f.bin"),
        ("test", "lab-reference", *SMALL, "-p", "consistency", "--quick"),
    ]  # fmt: skip
    for command in commands:
        done = cli(*command, "-q")
        assert done.status == 0, (command, done.err)
        assert list(faults(answers[-1])) == [], command
