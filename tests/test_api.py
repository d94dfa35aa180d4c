"""The functions of the package: they take what commands take, and return what those show."""

from __future__ import annotations

import copy
import inspect
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast, get_type_hints
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import foreign_samples
import ssdlab
from conftest import Cli, make_result
from ssdlab.answer import Answer, Cell, Curve, Figure, Number, Section, Table, columns
from ssdlab.answers import run as run_answer
from ssdlab.api.report import Report
from ssdlab.api.target import order_of
from ssdlab.api.watching import shown
from ssdlab.cli.app import load
from ssdlab.errors import ExperimentError, InputError, Interrupted, UnknownNameError
from ssdlab.given import listed
from ssdlab.progress import Progress
from ssdlab.report.cell import first_screen
from ssdlab.rig import resolve

Vary = dict[str, Any]

JOB = "[w]\nrw=randwrite\nbs=4k\niodepth=8\nnorandommap\ntime_based\nruntime=3\n"
LONG = JOB.replace("runtime=3", "runtime=100000")
SMALL = {"capacity": "64MiB"}
OWN = {"import_runs": "import", "load": "report", "query": "query", "runs": "list"}
"""Functions with commands of their own, which are not made of them."""
SHOWN = {"report", "json", "csv", "xlsx", "verbose", "wide", "quiet", "help"}
"""How commands show an answer: of a Report that is asked afterwards."""
ALONE = {"import": {"table", "plan"}, "list": {"kind"}, "report": {"output", "title"}}
"""What only the command does: it writes files that functions return."""
NAMED = {"in": "folders"}
"""Parameters that a command has to call otherwise."""


def functions() -> list[str]:
    """The public functions."""
    return sorted(name for name in ssdlab.__all__ if inspect.isfunction(getattr(ssdlab, name)))


@cache
def options(name: str) -> dict[str, Any]:
    """The parameters of a function's command: by the name of the option, or of the argument."""
    command = load(OWN[name])
    found = {}
    for one in command.params:
        long = [opt[2:] for opt in one.opts if opt.startswith("--")]
        called = (long[0] if long and one.param_type_name == "option" else str(one.name)).replace(
            "-", "_"
        )
        found[NAMED.get(called, called)] = one
    return found


def documented(name: str, part: str) -> list[str]:
    """The names in a part of a function's documentation."""
    doc = inspect.getdoc(getattr(ssdlab, name)) or ""
    match = re.search(rf"^{part}:\n((?:    .*\n?|\n)+)", doc, re.MULTILINE)
    return re.findall(r"^    (\w+):", match[1], re.MULTILINE) if match else []


@pytest.mark.parametrize("name", functions())
def test_a_function_documents_its_parameters_and_errors(name: str) -> None:
    function = getattr(ssdlab, name)
    parameters = list(inspect.signature(function).parameters)
    assert documented(name, "Args") == parameters
    errors = documented(name, "Raises")
    assert "InputError" in errors
    assert {one for one in errors if not issubclass(getattr(ssdlab, one), Exception)} == set()
    hints = get_type_hints(inspect.unwrap(function))
    assert hints.keys() == {*parameters, "return"}


@pytest.mark.parametrize("name", OWN)
def test_a_function_takes_what_its_command_takes(name: str) -> None:
    own = set(inspect.signature(getattr(ssdlab, name)).parameters) - {"progress"}
    assert own == set(options(name)) - SHOWN - ALONE.get(OWN[name], set())


@pytest.mark.parametrize("name", OWN)
def test_a_function_and_its_command_have_the_same_defaults(name: str) -> None:
    for one in inspect.signature(getattr(ssdlab, name)).parameters.values():
        if one.name in options(name) and one.default not in (inspect.Parameter.empty, None, ()):
            assert one.default == options(name)[one.name].default, one.name


def test_every_name_can_be_had() -> None:
    assert {name: getattr(ssdlab, name) for name in ssdlab.__all__}.keys() <= set(dir(ssdlab))
    assert not hasattr(ssdlab, "rum")


# --- reports


@pytest.fixture
def found() -> Report:
    """A report with a table, two charts and a number that misses."""
    heads = columns("name | p99 [us] | p99 [us]")
    table = Table("Sizes", heads, [["a", Cell(1.5), None], ["<b>", Cell(2.0), Cell(3.0)]])
    figures = [
        Figure("Rate", "t", "IOPS", [Curve("one", [1, 2, 3], [5, 4, 9])]),
        Figure("Bars", "", "us", [Curve("two", [0, 1], [1, 2], "bars")], x_names=("x", "<y>")),
    ]
    numbers = [Number("rate", 9.0, "IOPS"), Number("WA", None, "x")]
    lead = Section(["It is so."], numbers=numbers, tables=[table], figures=figures, key="lead")
    return Report(Answer("A <study>", "run", [lead]))


def test_a_report_has_its_tables_as_frames(found: Report) -> None:
    frame = found.frame()
    assert frame.columns == ["name", "clat_p99_ns", "clat_p99_ns__2"]
    assert frame.rows() == [("a", 1500.0, None), ("<b>", 2000.0, 3000.0)]
    assert_frame_equal(found.frame("sizes"), frame)
    assert found.frame("numbers")["value"].to_list() == [9.0, None]
    with pytest.raises(UnknownNameError, match="sizes"):
        found.frame("size")


@pytest.mark.parametrize(
    ("head", "name", "of", "is_"),
    [
        ("p99.9 [ms]", "clat_p999_ns", 0.823296, 823296.0),
        ("99.99 % [us]", "clat_p9999_ns", 1.5, 1500.0),
        ("clat mean [us]", "clat_mean_ns", 2.0, 2000.0),
        ("read p50 [ms]", "read_clat_p50_ns", 1.0, 1e6),
        ("speed [MB/s]", "bw_bytes", 1.1, 1.1e6),
        ("read, zeros [MB/s]", "read_zeros_bw_bytes", 3.0, 3e6),
        ("rate [IOPS]", "iops", 5.0, 5.0),
        ("IOPS of w, read [IOPS]", "iops_of_w_read", 5.0, 5.0),
        ("WA [x]", "waf", 1.2, 1.2),
        ("write amplification", "waf", 1.2, 1.2),
        ("usable [TB]", "usable_bytes", 3.84, 3.84e12),
        ("took [min]", "took_s", 2.0, 120.0),
        ("used [%]", "used_percent", 7.0, 7.0),
        ("gain [=ratio]", "gain_ratio", 0.5, 0.5),
    ],
)  # fmt: skip
def test_a_quantity_has_one_name_with_its_unit(head: str, name: str, of: float, is_: float) -> None:
    (column,) = columns(head)
    assert (column.quantity.name, column.quantity.of(of)) == (name, is_)


def test_rows_that_say_their_quantity_have_its_name_and_unit() -> None:
    rows: list[Any] = [["p99", "us", Cell(1.5), Cell(0.1)], ["speed", "MB/s", Cell(2.0), Cell(0.2)]]
    table = Table("", columns("number | unit | A | B vs A [=ratio]"), rows)
    frame = Report(Answer("", "run", [Section(tables=[table])])).frame()
    assert frame.columns == ["number", "unit", "a", "b_vs_a_ratio"]
    assert frame.rows() == [("clat_p99_ns", "ns", 1500.0, 0.1), ("bw_bytes", "B/s", 2e6, 0.2)]


def test_rows_in_rows_are_columns() -> None:
    rows: list[Any] = [{"a": {"x_ns": 1, "y": {"z": 2}}, "b": ["u", "v"]}, {"a": None, "b": []}]
    frame = Report(Answer("", "run", [Section(rows=rows)])).frame()
    assert frame.columns == ["a_x_ns", "a_y_z", "b"]
    assert frame.rows() == [(1, 2, "u, v"), (None, None, None)]


def for_programs(report: Report) -> None:
    """Asserts that a report speaks of everything by names that programs can write."""
    for frame in (report.frame(), *map(report.frame, report.tables)):
        assert all(re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", one) for one in frame.columns), frame
        assert not any(kind.is_nested() for kind in frame.dtypes), frame.schema
    assert all(re.fullmatch(r"[a-z0-9_]+", one) for one in report.numbers)
    wrong = {"us", "ms", "MB/s", "GB", "min"} & {one.unit for one in report.numbers.values()}
    assert not wrong


def test_answers_speak_to_programs_in_names_with_units() -> None:
    for_programs(ssdlab.reliability(runs=100, level=5, tbw="100TB", writes_per_day="1TB"))
    small = ssdlab.Rig("lab-reference").set(SMALL)
    for_programs(ssdlab.ab(small, job=JOB, set_b={"ftl.over_provisioning": 0.5}, repeats=2))
    for_programs(ssdlab.sweep(JOB, on=small, vary={"job.iodepth": [1, 2]}))


def test_a_frame_becomes_one_of_pandas(found: Report) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")  # polars converts by it
    assert found.frame().to_pandas().shape == (2, 3)


def test_a_report_says_what_it_found(found: Report) -> None:
    assert found.numbers["iops"].value == 9.0 and found.numbers["waf"].value is None
    assert found.verdicts == {"lead": found.verdict}
    assert json.loads(found.json()) == json.loads(json.dumps(found.answer.as_json()))
    assert "A <study>" in repr(found) and "sizes" in repr(found)
    assert found == Report(found.answer) and found != Report(found.answer, table=pl.DataFrame())
    with pytest.raises(AttributeError, match="0 runs"):
        _ = found.result


def test_a_report_draws_its_charts(found: Report) -> None:
    assert found.charts == ["Rate", "Bars"]
    main: Any = found.plot()
    assert main.title.text == "Rate"
    bars: Any = found.plot("Bars")
    assert bars.title.text == "Bars"
    with pytest.raises(UnknownNameError, match="Rate"):
        found.plot("rates")
    assert Report(Answer("empty", "run", [Section()])).plot() is not None


def test_curves_are_added_to_a_chart_of_a_report_and_shown(found: Report) -> None:
    bars = found.chart("Bars")
    more = bars.add("closed form", [0, 1], [1, 2], "dashed", like=bars.curves[0])
    assert more.figure.curves[-1].colour == bars.figure.curves[0].colour
    assert more.curves == [*bars.curves, "closed form"] and more != bars
    assert "closed form" in more._repr_html_() and "closed form" not in bars._repr_html_()
    assert more._repr_html_().count("<polyline") == bars._repr_html_().count("<polyline") + 1
    assert more.plot() is not None
    with pytest.raises(ssdlab.InputError, match="1 places and 2 values"):
        bars.add("x", [1], [1, 2])
    with pytest.raises(ssdlab.UnknownNameError, match='did you mean "dashed"'):
        bars.add("x", [1], [1], "dashes")
    with pytest.raises(ssdlab.UnknownNameError, match="curve of this chart"):
        bars.add("x", [1], [1], like="none")


def test_a_report_writes_the_page_of_its_command(found: Report, tmp_path: Path) -> None:
    found.page(tmp_path / "page.html", title="Mine")
    assert "<h1>Mine</h1>" in (tmp_path / "page.html").read_text("utf-8")
    with pytest.raises(InputError):
        found.page(tmp_path / "none" / "page.html")


def test_a_drive_made_smaller_says_so_in_the_title() -> None:
    found = ssdlab.test("demo-client", protocol="access-time", scale=16)
    assert found.answer.title == "Access time: demo-client (1.07 GB)"
    assert "durations divided by 16" in found.answer.notes[0]
    job = "[w]\nrw=randwrite\nbs=4k\nsize=1m\n"
    for scale, title in ((16, "w on demo-client (1.07 GB)"), (1, "w on demo-client")):
        assert run_answer.answer([ssdlab.run(job, on="demo-client", scale=scale)]).title == title


STYLES = ("line", "dashed", "dotted", "dots", "published", "points", "steps", "bars", "stack",
          "heat", "fields")  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("log", [False, True])
def test_a_cell_draws_every_kind_of_curve_within_its_picture(style: Any, log: bool) -> None:
    z = (1.0, None, 3.0) if style == "heat" else ()
    curve = Curve("a & b", [1, 2, 3], [1, 100, 10], style, 0, z)
    figure = Figure("<t>", "x", "y", [curve], log_x=log, log_y=log, window=(1, 2))
    html = first_screen(Answer("<title>", "run", [Section(["<said>"], figures=[figure])]))
    assert "<script" not in html and len(html) < 20_000
    page = ElementTree.fromstring(html.replace("&nbsp;", " "))
    (picture,) = [one for one in page.iter() if one.tag.endswith("svg") and "viewBox" in one.attrib
                  and "width" in one.attrib and one.attrib["width"] == "100%"]  # fmt: skip
    width, height = map(float, picture.attrib["viewBox"].split()[2:])
    places = [
        (float(one.attrib["cx"]), float(one.attrib["cy"]))
        for one in picture.iter()
        if "cx" in one.attrib
    ] + [
        tuple(map(float, pair.split(",")))
        for one in picture.iter()
        for pair in one.attrib.get("points", "").split()
    ]
    boxes = [one for one in picture.iter() if one.tag.endswith("rect")]
    assert len(places) >= 3 or len(boxes) >= 3
    for across, up in places:
        assert 0 <= across <= width and 0 <= up <= height


def test_a_result_is_shown_as_its_report() -> None:
    result = make_result("x")
    assert result.numbers.keys() == result.report.numbers.keys() and result.numbers
    assert result.verdicts.keys() >= {"summary"}
    assert result._repr_html_() == first_screen(result.report.answer)
    assert "<svg" in result._repr_html_()
    plotted: Any = result.plot()
    assert plotted.title.text
    assert result.report.frame()["iops"].to_list() == [one["iops"] for one in result.summary()]


# --- the same as commands


def test_kept_runs_come_back_as_their_commands_show_them(cli: Cli) -> None:
    first = ssdlab.run(JOB, on="lab-reference", set=SMALL)
    second = ssdlab.run(JOB, on="lab-reference", set=SMALL, seed=2)
    a, b = first.save().name, second.save().name
    assert {*ssdlab.runs().runs} == {a, b} and ssdlab.runs().frame().height == 2
    assert ssdlab.load(a).result == first and ssdlab.load(a) == first.report
    for report, line in (
        (ssdlab.compare(a, b, each=True), f"compare {a} {b} --each --json - --quiet"),
        (ssdlab.explain(a, tries=False), f"explain {a} --no-try --json - --quiet"),
        (ssdlab.load(a), f"show {a} --json -"),
    ):
        done = cli(*line.split())
        assert done.status == 0, done.err
        assert json.loads(report.json()) == json.loads(done.out)
        for_programs(report)
    asked = ssdlab.query("select seed, iops from summary join runs using (key) order by seed")
    assert asked["seed"].to_list() == [1, 2]
    assert asked["iops"].to_list() == [one.summary()[0]["iops"] for one in (first, second)]
    assert ssdlab.compare(first, second, each=True).answer.title
    assert ssdlab.explain(first, tries=False) == ssdlab.explain(a, tries=False)
    with pytest.raises(InputError, match="two runs"):
        ssdlab.compare(first)


def test_drives_are_looked_at_as_their_commands_do(cli: Cli, tmp_path: Path) -> None:
    run = ssdlab.run(JOB, on="lab-reference", set=SMALL).save().name
    document = foreign_samples.write(tmp_path / "others" / "a.json", foreign_samples.simple())
    small = ssdlab.Rig("lab-reference").set(SMALL)
    rig = tmp_path / "lab-reference.toml"
    rig.write_text(small.to_toml())
    one = "[a]\nrw=randread\nbs=4k\niodepth=4\n"
    job = tmp_path / "job.fio"
    job.write_text(one)
    table = tmp_path / "asked.csv"
    table.write_text("rw,bs,iodepth,iops\nrandread,4k,1,9000\nrandread,4k,4,30000\n")
    for report, line in (
        (ssdlab.health(run), f"health {run}"),
        (ssdlab.scan(small), f"scan {rig}"),
        (
            ssdlab.import_runs(document, out=tmp_path / "a"),
            f"import {document} --out {tmp_path / 'b'}",
        ),
        (ssdlab.predict(small, one), f"predict {rig} {job}"),
        (ssdlab.fit(table, capacity="1GB", quick=True), f"fit {table} --capacity 1GB --quick"),
    ):
        done = cli(*line.split(), "--json", "-", "--quiet")
        assert done.status == 0, done.err
        assert json.loads(report.json()) == json.loads(done.out), line
        for_programs(report)
        assert report.frame().height and repr(report) and report._repr_html_()
    assert ssdlab.import_runs(document.parent, out=tmp_path / "a").runs == ssdlab.load(
        *ssdlab.runs(out=tmp_path / "a").runs, out=tmp_path / "a"
    ).runs  # fmt: skip
    found = ssdlab.audit(tmp_path)
    done = cli("audit", str(tmp_path), "--json", "-", "--quiet")
    checks = [one["check"] for one in json.loads(done.out)["findings"]]
    assert found.frame()["check"].to_list() == checks and len(checks) > 1
    for_programs(found)
    both = ssdlab.health([run, "/none"])
    assert both.frame().height == 1 and "/none" in both.answer.notes[0]
    with pytest.raises(InputError, match="no such file"):
        ssdlab.health("/none")
    with pytest.raises(Interrupted):
        ssdlab.import_runs(document, out=tmp_path / "c", progress=lambda _: False)


def test_errors_name_parameters_in_python_and_options_on_the_command_line(cli: Cli) -> None:
    with pytest.raises(InputError) as wrong:
        ssdlab.array("lab-reference", levels=5, count=[1, 2])
    assert str(wrong.value).startswith("count: ") and "--" not in str(wrong.value)
    done = cli("array", "lab-reference", "--levels", "5", "--count", "1,2")
    assert done.status == 2 and "--count: " in done.err
    with pytest.raises(InputError, match=r"^give afr or mtbf, not both$"):
        ssdlab.reliability(afr=1, mtbf=1e6)
    assert pickle.loads(pickle.dumps(wrong.value)).message == wrong.value.message


WRONG: list[tuple[str, Callable[[ssdlab.Rig], object]]] = [
    ("repeats: found 1, expected a whole number from 2 to 1000",
     lambda rig: ssdlab.ab(rig, job=JOB, set_b={"ftl.over_provisioning": 0.3}, repeats=1)),
    ("seeds: found 0, expected a whole number of at least 1",
     lambda rig: ssdlab.sweep(JOB, on=rig, vary={"job.iodepth": [1]}, seeds=0)),
    ("scale: found -2, ", lambda rig: ssdlab.run(JOB, on=rig, scale=-2)),
    ("seed: found 1.5, expected a whole number from 0 to 2^64 - 1",
     lambda rig: ssdlab.run(JOB, on=rig, seed=1.5)),  # type: ignore[arg-type]
    ("seed: found -1, ", lambda rig: ssdlab.predict(rig, JOB, seed=-1)),
    ("set: found ['a=1'], expected a dict",
     lambda rig: ssdlab.run(JOB, on=rig, set=["a=1"])),  # type: ignore[arg-type]
    ("sample: found 0.01, expected text",
     lambda rig: ssdlab.cache("t", sample=0.01)),  # type: ignore[arg-type]
    ("on: found 3, expected a target (a Rig, or the name of a drive or of a file)",
     lambda rig: ssdlab.run(JOB, on=3)),  # type: ignore[arg-type]
    ("count: found 0, expected from 1 to 255",
     lambda rig: ssdlab.Rig.array(0, rig, 0)),
    ("drives: found 'lab-reference', expected a Rig",
     lambda rig: ssdlab.Rig.array(0, "lab-reference", 2)),  # type: ignore[arg-type]
    ("cache: found 'lab-reference', expected a Rig",
     lambda rig: ssdlab.Rig.wrap("cache", cache="lab-reference", below=rig)),  # type: ignore[arg-type]
    ("capacity: expected a value beside it", lambda rig: rig.set("capacity")),
    ("names: found 3, expected text",
     lambda rig: ssdlab.reproduce(3)),  # type: ignore[arg-type]
    ("vary: found None for job.iodepth, expected a value or several",
     lambda rig: ssdlab.sweep(JOB, on=rig, vary={"job.iodepth": None})),  # type: ignore[dict-item]
    ("set: found the key 1, expected text",
     lambda rig: ssdlab.run(JOB, on=rig, set={1: 2})),  # type: ignore[dict-item]
    ("targets: found none, expected a drive, ", lambda rig: ssdlab.health([])),
    ("cache: found none, expected at least one drive",
     lambda rig: ssdlab.plan_cache(pool=rig, cache=[], job=JOB)),
    ("trace_block \"0\": expected a size", lambda rig: ssdlab.trace("x", trace_block=0)),
    ("paths: found none, expected a document of fio", lambda rig: ssdlab.import_runs([])),
    ("table: found 3, expected text", lambda rig: make_result("x").report.frame(3)),  # type: ignore[arg-type]
    ("title: found 3, expected text", lambda rig: make_result("x").report.chart(3)),  # type: ignore[arg-type]
    ("path: found 3, expected text or a Path",
     lambda rig: make_result("x").report.page(3)),  # type: ignore[arg-type]
    ("y: found ['c', 'd'], expected several numbers",
     lambda rig: ssdlab.Chart("a").add("x", [1, 2], ["c", "d"])),  # type: ignore[list-item]
    ("job: found 3, expected text",
     lambda rig: make_result("x").series(3)),  # type: ignore[arg-type]
    # Each of several is looked at by itself.
    ('"nope"', lambda rig: ssdlab.reproduce("x25m-random-write", "nope")),
]  # fmt: skip


@pytest.mark.parametrize(
    "depths", [[1, 4], (1, 4), range(1, 5, 3), np.array([1, 4]), "1,4"], ids=lambda one: repr(one)
)
def test_a_parameter_of_a_protocol_takes_several_values(depths: object) -> None:
    several: Any = {"depths": depths, "seconds": 5}
    made = order_of(
        "queue-depth", resolve("demo-client"), None, param=several, quick=True, size=None, scale=1
    )
    assert made.given == {"depths": "1,4", "seconds": "5"}


@pytest.mark.parametrize(("said", "called"), WRONG, ids=[said for said, _ in WRONG])
def test_what_is_no_value_of_a_parameter_is_told(
    said: str, called: Callable[[ssdlab.Rig], object]
) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        called(ssdlab.Rig("lab-reference").set(SMALL))


def test_a_target_is_taken_where_one_is_expected() -> None:
    rig = ssdlab.Rig("lab-reference").set(SMALL)
    asked = ssdlab.run("[j]\nrw=write\nsize=1m\n", on=ssdlab.Sim("lab", rig.to_toml()))
    assert [one.ios for one in asked.jobs[0].directions()] == [256]


@pytest.mark.parametrize("name", functions())
def test_a_function_refuses_what_is_no_value_of_any_of_its_parameters(name: str) -> None:
    """What is seen at the first one is seen before the function begins."""
    function, nothing = getattr(ssdlab, name), object()
    parameters = inspect.signature(function).parameters.values()
    named = [one for one in parameters if one.kind is not one.VAR_POSITIONAL]
    needed = {one.name: "x" for one in named if one.default is one.empty}
    for one in parameters:
        with pytest.raises(InputError, match=rf"^{one.name}: found <object .*>, expected \w"):
            if one.kind is one.VAR_POSITIONAL:
                function(nothing)
            else:
                function(**needed | {one.name: nothing})


def methods() -> list[tuple[str, str]]:
    """Of the classes: what makes them, and what they offer."""
    names = [name for name in ssdlab.__all__ if isinstance(getattr(ssdlab, name), type)]
    return [
        (name, method)
        for name in names
        if not issubclass(getattr(ssdlab, name), Exception)
        and name not in ("DirectionStats", "JobResult", "Progress", "Target")  # ours to make
        for method, made in vars(getattr(ssdlab, name)).items()
        if (method == "__init__" or method[0] != "_")
        and inspect.isfunction(getattr(made, "__func__", made))
        and len(inspect.signature(made.__func__ if hasattr(made, "__func__") else made).parameters)
        > (not isinstance(made, staticmethod))
    ]


@pytest.mark.parametrize(("name", "method"), methods())
def test_a_class_refuses_what_is_no_value_of_any_parameter_of_its_methods(
    name: str, method: str
) -> None:
    kind, nothing = getattr(ssdlab, name), object()
    made = getattr(kind, method)
    itself = [] if method != "__init__" and inspect.ismethod(made) else [object.__new__(kind)]
    itself = [] if isinstance(vars(kind)[method], staticmethod) else itself
    parameters = [*inspect.signature(made).parameters.values()][len(itself) :]
    taken = [
        one
        for one in parameters
        if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL) and one.annotation != "object"
    ]
    assert taken
    for one in taken:
        # Those before it are not looked at where they are no parameters that have to be given.
        needed = {other.name: nothing for other in taken if other.default is other.empty}
        with pytest.raises(InputError, match=r"^\w+: found <object .*>, expected \w") as error:
            made(*itself, **needed | {one.name: nothing})
        first = next(iter(needed), one.name)
        assert error.value.message.startswith(f"{first}: ")


FORKING = """
import multiprocessing, ssdlab
job = "[w]\\nrw=randwrite\\nbs=4k\\nsize=1m\\n"
rig = ssdlab.Rig("lab-reference").set(capacity="64MiB")
def iops(seed):
    return ssdlab.run(job, rig, seed=seed).numbers["iops"].value
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        before = pool.apply(iops, (1,))
    assert before == iops(1)
    for how in ("spawn", "fork"):
        with multiprocessing.get_context(how).Pool(1) as pool:
            try:
                print(pool.apply_async(iops, (1,)).get(60) == before)
            except ssdlab.InputError as error:
                print(error)
"""


def test_a_process_forked_after_polars_was_at_work_is_refused_and_does_not_hang(
    tmp_path: Path,
) -> None:
    program = tmp_path / "forking.py"
    program.write_text(FORKING)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    same, refused = done.stdout.splitlines()
    assert same == "True" and refused.startswith("this process was forked from one that had used")


THREADS = """
import threading, time
from pathlib import Path
from ssdlab.given import _Process
def named(name):
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_bytes(name)
    time.sleep(60)
for name in (b"\\xc3", b"polars-0"):
    _Process.before_fork()
    print(_Process.works)
    threading.Thread(target=named, args=(name,), daemon=True).start()
    time.sleep(0.1)
_Process.before_fork()
print(_Process.works)
"""


def test_threads_of_polars_are_found_beside_others_whose_names_are_no_text() -> None:
    """The kernel cuts names after 15 bytes, even within a letter."""
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False", "True"], done.stderr


WAITING = """
import os, signal, threading, time, ssdlab
ssdlab.drives
done = threading.Event()
def work():
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(20)
    done.set()
threading.Thread(target=work, daemon=True).start()
try:
    done.wait()
except KeyboardInterrupt:
    print("stopped")
    os._exit(done.is_set())
"""


def test_ctrl_c_is_seen_by_a_main_thread_that_waits_for_others() -> None:
    """Polars makes waits go on after a signal, so that it was seen once all work was done."""
    done = subprocess.run([sys.executable, "-u", "-c", WAITING], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr


@pytest.mark.parametrize("job", ["", "  "])
def test_an_empty_job_is_told_as_that(job: str) -> None:
    with pytest.raises(InputError, match=r"^the job is empty: expected the path"):
        ssdlab.run(job, "demo-client")


def test_what_is_no_run_is_told_in_a_sentence() -> None:
    run = "found 1, expected a run (its folder or id, a Result or a Report)"
    with pytest.raises(InputError, match=re.escape(f"runs: {run} or several of these")):
        ssdlab.compare(1, 2)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"runs: found \[2\], expected a run"):
        ssdlab.compare("last", [2])  # type: ignore[list-item]
    with pytest.raises(InputError, match=re.escape(f"run: {run}")):
        ssdlab.explain(1)  # type: ignore[arg-type]


def test_a_key_that_a_rig_has_not_is_told_from_one_that_it_does_not_say() -> None:
    rig = ssdlab.Rig("lab-reference")
    with pytest.raises(InputError, match="did you mean over_provisioning"):
        rig.get("ftl.over_provisionin")
    with pytest.raises(InputError, match=r"ftl.nope: unknown key \(known here: mapping_unit, "):
        rig.get("ftl.nope")
    assert (rig.get("ftl.map.cache"), rig.get("namespace"), rig.get("power_loss")) == (None,) * 3
    assert rig.set("power_loss", '["1s"]').get("power_loss") == '["1s"]'


def test_a_mix_is_told_by_the_direction_it_asks_for_more_of_whatever_the_seed() -> None:
    job = JOB.replace("randwrite", "randrw")
    rig = ssdlab.Rig("lab-reference").set(SMALL)
    for mix, ddir in ((50, "read"), (45, "write")):
        for seed in range(4):
            result = ssdlab.run(f"{job}rwmixread={mix}\n", on=rig, prepare="steady", seed=seed)
            rates = {row["ddir"]: row["iops"] for row in result.summary()}
            assert result.numbers["iops"].ddir == ddir
            assert result.numbers["iops"].value == rates[ddir]
    assert ssdlab.run(JOB, on=rig).numbers["iops"].ddir == ""
    assert "IOPS, write" in result._repr_html_()


def test_no_chart_of_a_sweep_of_a_mix_is_empty() -> None:
    job = JOB.replace("randwrite", "randrw") + "rwmixread=60\n"
    vary: Vary = {"job.iodepth": [1, 2, 4]}
    found = ssdlab.sweep(job, on="lab-reference", set=SMALL, vary=vary, prepare="steady")
    traded = next(one for one in found._figures if one.title == "IOPS against WA")
    assert [len(curve.x) for curve in traded.curves if curve.name == "combination"] == [3]


def test_keys_beside_a_key_are_set_too() -> None:
    rig = ssdlab.Rig("lab-reference").set("ftl.over_provisioning", 0.3, capacity="64MiB")
    assert (rig.get("ftl.over_provisioning"), rig.capacity) == ("0.3", 64 << 20)


def test_arrays_of_numpy_are_values_as_lists_are() -> None:
    assert listed(np.array([1, 2])) == "1,2" == listed(one for one in (1, 2))
    vary: Vary = {"ftl.over_provisioning": np.linspace(0.1, 0.3, 2)}
    one, two = map(cast("Callable[[int], int]", np.int64), (1, 2))
    found = ssdlab.sweep(JOB, on="lab-reference", set=SMALL, vary=vary, seeds=one)
    assert found.frame()["ftl.over_provisioning"].to_list() == [0.1, 0.3]
    array = ssdlab.Rig.array(0, ssdlab.Rig("lab-reference").set(SMALL), two)
    assert array.capacity == 128 << 20


def test_names_are_copied_and_pickled() -> None:
    for names in (ssdlab.drives, ssdlab.devices, ssdlab.policies.victim):
        assert pickle.loads(pickle.dumps(names)) == names == copy.deepcopy(names)
    assert "victim" in repr(ssdlab.policies)


def test_a_sweep_gives_the_same_frame_wherever_it_runs(tmp_path: Path, cli: Cli) -> None:
    rig = ssdlab.Rig("lab-reference").set(SMALL)
    vary: Vary = {"ftl.over_provisioning": [0.1, 0.28], "job.iodepth": "1..4x4"}
    found = ssdlab.sweep(JOB, on=rig, vary=vary, seeds=2)
    frame = found.frame()
    assert frame.height == 8 and frame["job.iodepth"].to_list() == 2 * [1.0, 1.0, 4.0, 4.0]
    (tmp_path / "job.fio").write_text(JOB)
    line = "sweep job.fio --on lab-reference --set capacity=64MiB --seeds 2 -o table --quiet"
    keys = [f"--vary={key}={listed(values)}" for key, values in vary.items()]
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert cli(*line.split(), *keys).status == 0
        kept = pl.read_parquet(tmp_path / "table" / "summary" / "*.parquet")
        assert_frame_equal(kept.sort("key"), frame.sort("key"))
        again = ssdlab.sweep(JOB, on=rig, vary=vary, seeds=2, out="table", cluster="local:1")
    finally:
        os.chdir(before)
    assert again.answer.data["done_before"] == 8
    assert_frame_equal(again.frame(), frame)


def test_rows_of_a_sweep_stand_in_the_order_of_its_values() -> None:
    vary: Vary = {"capacity": ["64MiB", "128MiB"], "job.iodepth": "2,1"}
    found = ssdlab.sweep(JOB, on="lab-reference", vary=vary)
    given = [("64MiB", 2), ("64MiB", 1), ("128MiB", 2), ("128MiB", 1)]
    assert found.frame().select("capacity", "job.iodepth").rows() == given


def test_a_sweep_on_a_cluster_gives_the_same_frame() -> None:
    vary: Vary = {"ftl.over_provisioning": [0.1, 0.28]}
    here, there = (
        ssdlab.sweep(JOB, on="lab-reference", set=SMALL, vary=vary, cluster=cluster)
        for cluster in (None, "local:1")
    )
    assert there == here and here.frame().height == 2


def test_a_sweep_takes_rigs_and_groups_of_keys() -> None:
    small = ssdlab.Rig("lab-reference").set(SMALL)
    mirror = ssdlab.Rig.array(1, small, 2)
    rigs = ssdlab.sweep(JOB, vary={"target": [small, mirror]}).frame()
    assert set(rigs["target"]) == {small.name, mirror.name}
    together: Vary = {"ftl.over_provisioning": [0.1, 0.2], "job.iodepth": [1, 2]}
    pairs = ssdlab.sweep(JOB, on=small, vary=together, zip=list(together)).frame()
    assert pairs.select(list(together)).rows() == [(0.1, 1.0), (0.2, 2.0)]


def test_arrays_and_plans_take_rigs() -> None:
    small = ssdlab.Rig("lab-reference").set(SMALL)
    how: dict[str, Any] = {"levels": 0, "count": 2, "job": JOB, "prepare": "fob"}
    one = ssdlab.array(small, **how).frame()
    assert_frame_equal(one, ssdlab.array("lab-reference", set=SMALL, **how).frame())
    shipped = ssdlab.plan_storage(candidate=ssdlab.Rig("demo-client"), job=JOB, quick=True)
    assert shipped == ssdlab.plan_storage(candidate="demo-client", job=JOB, quick=True)
    spare = small.set("ftl.over_provisioning", 0.5)
    cached = ssdlab.Rig.wrap("cache", {"mode": "write-back"}, cache=small, below=small)
    rigs: list[Any] = [small, spare, ssdlab.Rig.array(1, small, 2), cached, "demo-client"]
    plan = ssdlab.plan_storage(candidate=rigs, job=JOB, quick=True)
    names = ["lab-reference", "lab-reference-2", "raid1-2-lab-reference", "cache", "demo-client"]
    assert plan.frame()["candidate"].to_list() == names
    for_programs(plan)
    how = {
        "job": JOB.replace("runtime=3", "runtime=200ms"),
        "sizes": "16M",
        "modes": "write-around",
    }
    best = ssdlab.plan_cache(pool=small, cache=spare, quick=True, top=1, **how).frame()
    assert "lab-reference + lab-reference-2" in best["storage"]


# --- rigs and names


def test_a_rig_never_changes() -> None:
    rig = ssdlab.Rig("lab-reference")
    other = rig.set("ftl.over_provisioning", 0.3).set(capacity="64MiB")
    assert rig == ssdlab.Rig("lab-reference") and rig.get("ftl.over_provisioning") != "0.3"
    assert other.get("ftl.over_provisioning") == "0.3" and other.capacity == 64 << 20
    assert other.set({"ftl.over_provisioning": 0.3}) == other
    assert pickle.loads(pickle.dumps(other)) == other and hash(other) == hash(other.set())
    assert ssdlab.Rig(other.to_toml()) == other
    assert other.values()["capacity"] == "64MiB" and 0 < other.memory < rig.memory
    keys = {"ftl.over_provisioning": 0.3, "capacity": "64MiB"}
    named = ssdlab.run(JOB, on="lab-reference", set=keys)
    assert ssdlab.run(JOB, on=other).summary() == named.summary()


def test_rigs_are_made_of_rigs() -> None:
    one = ssdlab.Rig("lab-reference").set(SMALL)
    five = ssdlab.Rig.array(5, one, 4, chunk="64k")
    assert five.get("chunk") in ("65536B", "64KiB") and five.capacity == 3 * one.capacity
    assert ssdlab.Rig.array("raid0", [one, one]).capacity == 2 * one.capacity
    cached = ssdlab.Rig.wrap("cache", {"replacement": "arc"}, cache=one, below=five)
    assert cached.get("replacement") == "arc" and cached.capacity == five.capacity


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda rig: rig.set("ftl.over_provisionin", 1), "did you mean over_provisioning"),
        (lambda rig: rig.set("capacity", "x"), "capacity"),
        (lambda rig: rig.array(7, rig, 4), "no RAID level"),
        (lambda rig: rig.array(6, rig, 3), "expected from 4"),
        (lambda rig: rig.array(0, rig), "a count"),
        (lambda rig: rig.array(0, []), "without drives"),
        (lambda rig: rig.wrap("cach", below=rig), "cache"),
        (lambda rig: ssdlab.Rig("lab-referenc"), "lab-reference"),
        (lambda rig: ssdlab.Rig("./x.bin"), "is no rig"),
    ],
)
def test_a_wrong_rig_is_told_in_a_sentence(wrong: Callable[[Any], object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        wrong(ssdlab.Rig("lab-reference"))


def test_names_are_completed() -> None:
    assert ssdlab.drives.lab_reference == "lab-reference"
    assert {"lab_reference", "demo_client"} <= set(dir(ssdlab.drives))
    assert ssdlab.policies.victim.greedy == "greedy" and "victim" in dir(ssdlab.policies)
    assert ssdlab.devices.ssd == "ssd" and ssdlab.procedures.pts_iops == "pts-iops"
    assert ssdlab.policies.replacement._2q == "2q"
    for one in (ssdlab.drives, ssdlab.devices, ssdlab.parts, ssdlab.interfaces, ssdlab.procedures):
        assert len(one) == len(set(one.values())) > 5
    with pytest.raises(AttributeError, match="lab_reference"):
        _ = ssdlab.drives.lab_referenc
    with pytest.raises(AttributeError, match="victim"):
        _ = ssdlab.policies.victims


# --- while it runs


def test_a_run_is_interrupted_within_a_second() -> None:
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, press)
    timer.start()
    try:
        with pytest.raises(Interrupted):
            ssdlab.run(LONG, on="lab-reference", set=SMALL)
    finally:
        timer.cancel()
    assert time.monotonic() - pressed[0] < 1.0


def test_other_threads_go_on_while_a_run_is_at_work() -> None:
    """As asyncio.to_thread needs it: the core holds no lock of Python."""
    stop = threading.Event()
    ended: list[BaseException] = []

    def work() -> None:
        try:
            ssdlab.run(LONG, on="lab-reference", set=SMALL, progress=lambda _: not stop.is_set())
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    rounds, until = 0, time.monotonic() + 5.0
    while rounds < 200 and time.monotonic() < until:
        rounds += 1
        time.sleep(0.001)
    assert thread.is_alive()
    stop.set()
    thread.join(10)
    assert not thread.is_alive() and isinstance(ended[0], Interrupted)
    assert rounds == 200  # a run that held it would let go only to tell how far it is


class Shell:
    """As much of IPython as progress needs."""

    def __init__(self) -> None:
        self.kernel = object()
        self.told: list[dict[str, str]] = []
        self.display = self

    def get_ipython(self) -> Shell:
        return self

    def show(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> Shell:
        assert raw and display_id
        self.told.append(bundle)
        return self

    def update(self, bundle: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.told.append(bundle)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Shell:
    shell = Shell()
    fake: Any = type(os)("IPython")
    fake.get_ipython = shell.get_ipython
    fake.display = type(os)("IPython.display")
    fake.display.display = shell.show
    monkeypatch.setitem(__import__("sys").modules, "IPython", fake)
    monkeypatch.setattr("ssdlab.api.watching.PATIENCE_S", 0.0)
    monkeypatch.setattr("ssdlab.api.watching.SHOWN_EVERY_S", 0.0)
    return shell


def test_progress_is_shown_in_a_notebook_and_taken_away(notebook: Shell) -> None:
    with shown(None, "a <run>") as tell:
        assert tell(Progress(0.25, 9.0, "half"))
    first, last = notebook.told[0], notebook.told[-1]
    assert 'value="0.2500"' in first["text/html"] and "a &lt;run&gt;" in first["text/html"]
    assert "9" in first["text/plain"] and last["text/html"] == ""


@pytest.mark.parametrize(("watch", "lines"), [(None, 0), (False, 0), (True, 1)])
def test_a_script_is_told_where_it_asks(
    watch: bool | None, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr("ssdlab.api.watching.PATIENCE_S", 0.0)
    monkeypatch.setattr("ssdlab.api.watching.LINE_EVERY_S", 0.0)
    with shown(watch, "a run") as tell:
        tell(Progress(0.5))
    assert len(capsys.readouterr().err.splitlines()) == lines


def test_a_callback_is_told_and_stops_a_sweep() -> None:
    told: list[Progress] = []

    def stop(news: Progress) -> bool:
        told.append(news)
        return False

    with pytest.raises(Interrupted):
        ssdlab.sweep(JOB, on="lab-reference", set=SMALL, vary={"job.bs": ["4k"]}, progress=stop)
    assert told and issubclass(Interrupted, ssdlab.SsdlabError) and ExperimentError.exit_status
