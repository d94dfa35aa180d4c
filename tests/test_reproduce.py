"""The published experiments: plans, pages, JSON, messages."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import pytest

import browser
from conftest import Cli
from scheduling import LONG
from ssdlab import _core, bench
from ssdlab.answers import reproduction
from ssdlab.bench import Variant
from ssdlab.errors import Interrupted
from ssdlab.experiments import (
    EXPERIMENTS,
    consistency,
    find,
    fragmentation,
    measured,
    raid0_hyperx,
    raid_levels,
    siblings,
    x25m_block_size,
    x25m_random_write,
    x25m_spare_area,
)
from ssdlab.experiments.base import Experiment, Kind, Line, Mode, Reproduced, Reproduction, Task
from ssdlab.experiments.measured import cells
from ssdlab.experiments.runner import run
from ssdlab.experiments.score import score
from ssdlab.progress import Progress
from ssdlab.report import answer_page
from ssdlab.rig import profile
from ssdlab.tables import named_tables

KEYS = {
    "experiment", "drive", "quantity", "unit", "published", "simulated", "ratio", "agreement",
    "kind", "why", "at_least", "at_most",
}  # fmt: skip
SIDES = ("at_least", "at_most")
HEADLINES = tomllib.loads(Path(__file__).with_name("headlines.toml").read_text("utf-8"))
LARGE = ("solidigm-p5520-1920", "samsung-pm9a3-960", "kioxia-cm7-r-3840")
"""Their runs take longer than those of all other measured drives but this one, which goes through
the same procedures and has all the parts that they have."""
MICRON = "micron-7450-960"
BETWEEN = (
    "only-10-894", "streams-1x2", "streams-1x8", "streams-2x8", "uniform-670", "uniform-894",
)  # fmt: skip
"""Runs on the Micron 7450 that lie between others of their procedure, and take as long."""
ALIKE = ("intel-dc-p4500-1000", "micron-p400e-50", "micron-p400e-400")
"""Sizes of drives in the experiment on siblings beside which there are others, one of them fitted
and one not."""
X25M_JOB = x25m_random_write.job
X25M_USED_S = x25m_block_size.USING_S // 4
X25M_USED = "intel-x25-m-g2-160: sequential write, used, at 128 KiB (much lower at first)"
"""The one headline that depends on how long the drive was used before."""
FRAGMENTED = (
    "intel-dc-s3510-480", "toshiba-xg5-512", "samsung-pm983-960", "micron-5200-eco-960",
)  # fmt: skip
"""Of the drives read in pieces those that are slowed down least and most, by SATA and by NVMe."""
BEFORE = ("fragmentation", "tiering-or-caching")
"""Other tests, which begin earlier, look at the same runs."""
EVERY = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)


def missed(
    experiment: str,
    rows: Iterable[Mapping[str, Any]],
    drives: Sequence[str] = (),
    instead: Mapping[str, Any] = MappingProxyType({}),
) -> list[str]:
    """Headlines that did not come out, as the file has them, with what came out instead; numbers of
    articles that the file lacks. ``drives``: those that were run, if not all were. ``instead``:
    what headlines are instead; nothing where they were not asked for."""
    pinned = {key: one for key, one in (HEADLINES[experiment] | dict(instead)).items() if one}
    if drives:
        pinned = {key: one for key, one in pinned.items() if key.partition(":")[0] in drives}
    found = {f"{row['drive']}: {row['quantity']}": row for row in rows}
    off = [
        f'"{key}" = {found.get(key)}  # {own}'
        for key, own in pinned.items()
        if key not in found
        or [found[key][side] for side in SIDES] != [own.get(side) for side in SIDES]
        or found[key]["published"] != pytest.approx(own.get("published"), rel=1e-3)
        or found[key]["unit"] != own["unit"]
        or found[key]["simulated"] != pytest.approx(own.get("simulated"), rel=HEADLINES["within"])
    ]
    stated = {k for k, row in found.items() if row["published"] or row["kind"] == "bound"}
    return off + sorted(stated - pinned.keys())


def short_where_asked_early(
    block_kib: int, partition: bool, factor: int, size: str = "100%"
) -> str:
    """The job of the X25-M, of whose raw writes of 16 KiB only the first minutes are asked for."""
    text = X25M_JOB(block_kib, partition, factor, size)
    if block_kib != 16 or partition:
        return text
    last = max(minute for minute, _, _ in x25m_random_write.RAW_16K)
    whole, early = (
        f"runtime={seconds // factor}\n"
        for seconds in (x25m_random_write.LENGTH_S, int(last + 1) * 60)
    )
    assert whole in text
    return text.replace(whole, early)


def fewer(patch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """Has experiments simulate what the articles have numbers of, one run of several that are alike
    and shorter ones; the headlines that are others then, by experiment."""
    patch.setattr(x25m_random_write, "BLOCKS_KIB", (4, 16, 32, 128))
    patch.setattr(x25m_random_write, "PARTITION_KIB", (4,))
    patch.setattr(x25m_random_write, "job", short_where_asked_early)
    patch.setattr(x25m_block_size, "USING_S", X25M_USED_S)
    # A partition of 100 % does the same as that of the experiment on random writes.
    patch.setattr(x25m_spare_area, "SHARES", x25m_spare_area.SHARES[1:])
    patch.setattr(raid_levels, "ORDERED", {"write-1m": raid_levels.ORDERED["write-1m"]})
    patch.setattr(raid0_hyperx, "STRIPES_KIB", (4, raid0_hyperx.DEFAULT_KIB))
    rated = {drive: iops for drive, iops in siblings.RATED.items() if drive not in ALIKE}
    assert len(rated) + len(ALIKE) == len(siblings.RATED)
    patch.setattr(siblings, "RATED", rated)
    whole = cells.table()
    own = whole.runs[MICRON]
    assert {*BETWEEN} < {*own}
    runs = {**whole.runs, MICRON: {run: own[run] for run in own if run not in BETWEEN}}
    without = [cell for cell in whole.of(MICRON) if cell.run in BETWEEN]
    kept = tuple(cell for cell in whole.cells if cell not in without)
    patch.setattr(measured, "table", lambda: replace(whole, runs=runs, cells=kept))
    return {
        "x25m-block-size": {X25M_USED: {"simulated": 48.06, "unit": "MB/s"}},
        "x25m-spare-area": {
            f"{x25m_random_write.DRIVE}: partition of 100 %, mean of the last hour": {},
            f"{x25m_random_write.DRIVE}: {x25m_spare_area.ORDER}": {
                "simulated": 2.0,
                "published": 3.0,
                "unit": "of 3",
            },
        },
        "siblings": {f"{drive}: steady random writes": {} for drive in ALIKE},
        "measured": {f"{cell.drive}: {cell.quantity}": {} for cell in without},
    }


@EVERY
def test_an_experiment_finds_its_headlines(
    cli: Cli,
    tmp_path: Path,
    experiment: Experiment,
    monkeypatch: pytest.MonkeyPatch,
    simulated_before: Path,
) -> None:
    if experiment.name in BEFORE:
        monkeypatch.setenv("SSDLAB_CACHE", str(simulated_before))
    instead = {} if LONG else fewer(monkeypatch).get(experiment.name, {})
    few = experiment.name == "measured" and not LONG
    drives = [drive for drive in measured.DRIVES if drive not in LARGE] if few else []
    place, table = tmp_path / "page.html", tmp_path / "table.json"
    said = cli("reproduce", experiment.name, *drives, "--quick", "-o", place, "--json", table)
    assert said.status == 0, said.err
    rows = json.loads(table.read_text())["lines"]
    assert rows
    for row in rows:
        assert set(row) == KEYS
        assert row["experiment"] == experiment.name
        assert row["kind"] in get_args(Kind)
        assert row["published"] is None or row["published"] > 0
        assert (row["kind"] == "bound") == any(row[side] is not None for side in SIDES)
        if row["simulated"] is None:
            assert row["ratio"] is None
            assert row["why"], f"{row} is missing and does not say why"
        elif row["published"] is not None:
            assert row["ratio"] == pytest.approx(row["simulated"] / row["published"])
            off = abs(row["ratio"] - 1) > 0.15
            assert row["agreement"] == ("missed" if off else "yes")
        assert row["quantity"] in said.out
    assert len(HEADLINES[experiment.name]) > 3
    assert missed(experiment.name, rows, drives, instead) == []
    page = place.read_text()
    assert experiment.title in page
    shown = bool(re.search(rf"missed\s+({'|'.join(get_args(Kind))})", said.out))
    assert shown == any(row["agreement"] == "missed" for row in rows)
    assert f"1/{experiment.factors['quick']} of its size" in page
    assert "Quick run: drives and times are so small that numbers are rough." in page


def at_half_speed(task: Task, name: str) -> Task:
    """The task on a device of which every time called so takes twice as long, every rate half."""
    times = 2.0 if name.startswith("t_") else 0.5
    rig = _core.Rig(task.rig or profile(task.drive).text, rig_name=task.drive)
    own = [(key, value) for key, value, _ in rig.values() if key.rpartition(".")[2] == name]
    assert own, f"{task.key} has no {name}"
    for key, value in own:
        amount = re.match(r"[0-9.]+", str(value))
        assert amount is not None
        rig.set(key, f"{float(amount[0]) * times:g}{str(value)[amount.end() :]}")
    return replace(task, rig=rig.to_toml())


def cut(patch: pytest.MonkeyPatch, drives: Sequence[str]) -> None:
    """Leaves these drives of the experiment on fragmentation."""
    few = {drive: fragmentation.SECONDS[drive] for drive in drives}
    patch.setattr(fragmentation, "SECONDS", few)


SLOWED: dict[str, list[tuple[str, ...]]] = {
    "bandwidth": [("fragmentation", *FRAGMENTED), ("raid0-840pro",)],
    "rpm": [("qsan-warm-up",)],
    # To make the X25-M used takes five times as long as all of the P4610.
    "t_program": [("measured", "intel-dc-p4610-1600"), *[("x25m-block-size",)] * LONG],
}
"""Keys of drives, and the experiments and drives that miss their headlines by each."""


@pytest.mark.parametrize(
    ("name", "drives", "key"),
    [(name, drives, key) for key, each in SLOWED.items() for name, *drives in each],
)
def test_half_the_speed_of_a_drive_misses_the_headlines(
    name: str, drives: list[str], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (experiment,) = [measured.of(drives)] if name == "measured" else find([name])
    if name == "fragmentation":
        cut(monkeypatch, drives)
    slow = replace(
        experiment,
        plan=lambda factor: [at_half_speed(task, key) for task in experiment.plan(factor)],
    )
    rows = [line.as_json(name) for line in reproduce(slow).outcome.findings.lines]
    assert missed(name, rows, drives)


@EVERY
def test_the_jobs_at_full_size_are_jobs_for_fio_too(experiment: Experiment) -> None:
    files = experiment.job_files()
    assert files
    assert set(files.values()) == {task.job for task in experiment.plan(1)}
    for name, text in files.items():
        _core.check_job(text, job_name=name)


@dataclass(frozen=True)
class Run:
    outcome: Reproduction
    fractions: list[float]

    def numbers(self, drives: Sequence[str] = ()) -> list[float | None]:
        """All, or those of some drives."""
        lines = self.outcome.findings.lines
        return [line.simulated for line in lines if not drives or line.drive in drives]


def reproduce(experiment: Experiment, mode: Mode = "quick") -> Run:
    seen: list[float] = []

    def listen(news: Progress) -> bool:
        seen.append(news.fraction or 0.0)
        return True

    (outcome,) = run([experiment], mode, progress=listen)
    return Run(outcome, seen)


@pytest.fixture(scope="module")
def fragmented(simulated_before: Path) -> Run:
    with pytest.MonkeyPatch.context() as patch, bench.reusing(fresh=True):
        patch.setenv("SSDLAB_CACHE", str(simulated_before))
        return reproduce(fragmentation.EXPERIMENT)


def test_all_experiments_share_a_page(tmp_path: Path, fragmented: Run) -> None:
    twin = replace(fragmented.outcome.experiment, name="twin", title="The twin")
    outcomes = [fragmented.outcome, replace(fragmented.outcome, experiment=twin)]
    answer_page.render(reproduction.answer(outcomes), tmp_path / "all.html")
    text = (tmp_path / "all.html").read_text()
    assert "The twin" in text
    assert fragmentation.EXPERIMENT.title in text
    assert "All experiments" in text


def test_several_lead_with_all_predictions_and_each_has_a_table_of_its_name() -> None:
    lines = [
        Line("a", "met", 2.0, "x", 3.0),
        Line("a", "drawn", None, "x", 1.0),
        Line("a", "fitted", 1.0, "x", 1.0, kind="fitted"),
    ]
    found = reproduction.answer(
        [
            Reproduction(one.EXPERIMENT, "quick", 1, Reproduced(lines, []), 1)
            for one in (fragmentation, consistency)
        ]
    )
    (chart,) = found.lead.figures
    dots = chart.curves[0]
    assert [(x, chart.y_names[int(y)]) for x, y in zip(dots.x, dots.y, strict=True)] == [
        (1.5, "consistency"),
        (1.5, "fragmentation"),
    ]
    names = [name for name, _ in named_tables(found)]
    assert names == ["numbers", "all-experiments", "fragmentation", "consistency"]


@pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "-")
def test_the_page_draws_all_its_figures(tmp_path: Path, fragmented: Run) -> None:
    place = tmp_path / "one.html"
    answer_page.render(reproduction.answer([fragmented.outcome]), place)
    with browser.tab() as tab:
        tab.open(place, 1280)
        assert tab.complaints == []
        assert [url for url in tab.requests if not url.startswith(("file:", "data:"))] == []
        drawn = tab.run("[...document.querySelectorAll('.chart')].filter(c => c.firstChild).length")
        assert drawn == len(fragmented.outcome.findings.figures)
        assert tab.run("document.documentElement.scrollWidth <= innerWidth")


def test_without_names_all_are_meant() -> None:
    assert find([]) == list(EXPERIMENTS)


def test_jobs_are_saved_instead_of_run(tmp_path: Path, cli: Cli) -> None:
    said = cli("reproduce", "consistency", "--save-jobs", tmp_path / "jobs")
    assert said.status == 0
    assert said.out.startswith("wrote 1 job file to ")
    (file,) = (tmp_path / "jobs").iterdir()
    assert file.read_text() == consistency.job(1)
    assert "runtime=2000" in file.read_text()


def test_a_wrong_name_is_told_with_the_nearest(cli: Cli) -> None:
    said = cli("reproduce", "consistancy")
    assert said.status == 2
    assert 'did you mean "consistency"?' in said.err


def test_quick_and_full_exclude_each_other(cli: Cli) -> None:
    assert cli("reproduce", "--quick", "--full").status == 2


def test_a_place_that_cannot_be_written_is_told_before_the_run(cli: Cli, tmp_path: Path) -> None:
    said = cli("reproduce", "fragmentation", "-o", tmp_path)
    assert said.status == 2
    assert "is a folder" in said.err
    assert cli("reproduce", "fragmentation", "--json", tmp_path).status == 2


def test_a_run_can_be_stopped() -> None:
    with pytest.raises(Interrupted):
        run(find(["fragmentation"]), "quick", progress=lambda _news: False)


def test_progress_reaches_its_end_and_never_falls_back(fragmented: Run) -> None:
    assert fragmented.fractions == sorted(fragmented.fractions)
    assert fragmented.fractions[-1] == pytest.approx(1.0)


def test_the_time_left_counts_experiments_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks say their share of an experiment's work in whatever unit suits it."""
    costs: list[float] = []

    def planned(variants: Sequence[Variant[Any]], _progress: object) -> None:
        costs.extend(one.cost for one in variants)
        raise Interrupted("planned")

    monkeypatch.setattr(bench, "run", planned)
    two = find(["fragmentation", "raid0-slowest-member"])
    with pytest.raises(Interrupted):
        run(two, "quick")
    shares = [len(one.plan(one.factors["quick"])) for one in two]
    assert sum(costs[: shares[0]]) == pytest.approx(two[0].effort_s)
    assert sum(costs[shares[0] :]) == pytest.approx(two[1].effort_s)


@pytest.fixture
def some(monkeypatch: pytest.MonkeyPatch) -> Sequence[str]:
    """Drives to which the experiment is cut."""
    drives = [*fragmentation.SECONDS] if LONG else FRAGMENTED
    cut(monkeypatch, drives)
    return drives


def test_the_same_seed_gives_the_same_numbers(fragmented: Run, some: Sequence[str]) -> None:
    assert reproduce(fragmentation.EXPERIMENT).numbers() == fragmented.numbers(some)


def test_a_smaller_file_changes_little(fragmented: Run, some: Sequence[str]) -> None:
    """Internal fragmentation at 1/16 and at 1/4: the seconds differ by less than 3 %."""
    larger = reproduce(fragmentation.EXPERIMENT, "reduced").numbers()
    assert fragmented.numbers(some) == pytest.approx(larger, rel=0.03)


def test_a_smaller_drive_keeps_the_mean() -> None:
    """The S3700 at 1/80 and at 1/40: the mean of the last 600 s differs by less than 5 %."""
    quick = 40 if LONG else 80
    alone = replace(
        consistency.EXPERIMENT,
        factors={"quick": quick, "reduced": quick // 2, "full": 1},
        plan=lambda factor: consistency.plan(factor)[:1],
        judge=lambda runs, factor: Reproduced(consistency.judge_drive(0, runs, factor)[0], []),
    )
    small, larger = reproduce(alone), reproduce(alone, "reduced")
    assert small.outcome.findings.lines[0].quantity == "mean after 1400 s"
    assert small.numbers()[0] == pytest.approx(larger.numbers()[0], rel=0.05)


def test_a_bound_is_met_or_not_and_counts_in_no_ratio() -> None:
    def line(simulated: float | None, low: float | None, high: float | None) -> Line:
        return Line("d", f"{simulated}", None, "GB", simulated, "", "bound", low, high)

    lines = [
        line(4.0, None, 40.0), line(20.0, 20.0, None), line(40.0, 20.0, 40.0),  # met
        line(41.0, None, 40.0), line(19.0, 20.0, None), line(41.0, 20.0, 40.0),
        line(None, None, 40.0),
    ]  # fmt: skip
    assert [one.agreement for one in lines] == ["met"] * 3 + ["not met"] * 3 + ["not simulated"]
    assert {one.ratio for one in lines} == {None}
    lines.append(Line("d", "near", 1.0, "GB", 1.0))
    found = reproduction.answer(
        [Reproduction(fragmentation.EXPERIMENT, "quick", 1, Reproduced(lines, []), 1)]
    ).lead
    assert found.sentences[:2] == [
        "1 of 1 predicted values are within 15 % of the published ones, 1 within a factor of 1.5.",
        "Bounds met: 3 of 7.",
    ]
    assert found.verdict.values["compared"] == 1.0
    assert score(lines).counted + score(lines).missing == 1
    (table,) = found.tables
    told = [row[3] for row in table.rows[:3]]
    assert told == ["at most 40", "at least 20", "20 to 40"]
    assert "41, published: 20 to 40" in " ".join(found.sentences)


def test_a_number_without_its_partner_has_no_ratio() -> None:
    assert Line("d", "q", None, "s", 1.0).ratio is None
    assert Line("d", "q", 1.0, "s", None).ratio is None
    assert Line("d", "q", 2.0, "s", 1.0).ratio == 0.5
