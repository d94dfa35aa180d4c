"""Every protocol comes to its end on a simulated drive and on a file under the real fio, and
answers from whatever was measured; of the simulated run the page is made."""

from __future__ import annotations

import re
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from markupsafe import escape

import small_protocol
from conftest import flat, needs_fio
from scheduling import LONG
from ssdlab import units
from ssdlab.answer import Cell, Check, Section
from ssdlab.answers import protocol as protocol_answer
from ssdlab.checks import examine_run
from ssdlab.engine import findings, setup
from ssdlab.engine.findings import ProtocolRun
from ssdlab.engine.plans import ProtocolOrder
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.records import Records
from ssdlab.engine.runner import Execution
from ssdlab.engine.runs import Examine, begin
from ssdlab.engine.setup import MIB
from ssdlab.protocols import find, protocols, pts_demand, pts_iops
from ssdlab.report import answer_page
from ssdlab.rig import resolve
from ssdlab.store import RunStore
from ssdlab.store.folder import RunFolder
from ssdlab.target import Sim

NAMES = [one.name for one in protocols()]
TOGETHER = 4
"""Protocols on files at a time: most of a short job is fio's own waiting."""
GRID = {"blocks": "4k,16k", "depths": "1,4", "mixes": "100,50", "patterns": "random"}
FEWER = {
    "waf": {"patterns": "uniform,streams", "shares": "100", "streams": "2"},
    "matrix": {**GRID, "settle_s": "0"},
}
"""Fewer cases, which are alike."""
DEPTHS = {"depths": "1,4"}
SERVERS = ("database", "file-server", "web-server", "workstation")
PARAMETERS = {
    "alignment": {"blocks": "4k,16k", "turns": "1"},
    "as-ssd": {"data": "random"},
    "block-size": {"blocks": "4k,64k"},
    "queue-depth": DEPTHS,
    **({} if LONG else dict.fromkeys(SERVERS, DEPTHS)),
    "crystaldiskmark": {"runs": "1", "data": "random"},
    "fragmentation": {"amounts_mib": "50"},
    "pts-wsat": {"times": "1"},
    "consistency": {"seconds": "4e6"},
    "characterise": {"parts": "flush,size,fill"},
    **FEWER,
}
"""Fewer repetitions and depths, and a series of more than one second where there is one."""


def begun(order: ProtocolOrder, store: Path, examine: Examine = examine_run) -> RunFolder:
    """Runs a protocol to its end."""
    done = begin(
        order,
        RunStore(store),
        progress=lambda _news: True,
        notice=lambda _sentence: None,
        announce=lambda _what: None,
        examine=examine,
    )
    assert done is not None
    return done.folder


def judged(folder: RunFolder) -> ProtocolRun:
    """What a run found, once it has said what it must say."""
    found = findings.read(folder)
    assert found.manifest.status == "complete" and found.manifest.quick
    judgement = found.findings.judgement
    assert judgement.sentences
    assert any(number.value is not None for number in judgement.numbers)
    assert any(check.name == "quick" for check in found.findings.checks)
    known = {step.key for step in found.steps}
    for number in judgement.numbers:
        assert set(number.sources) <= known, number
    for figure in judgement.figures:
        assert set(figure.sources) <= known, figure.title
    return found


class Run:
    """A quick run of a protocol on a small simulated drive."""

    def __init__(self, protocol: Protocol, folder: Path) -> None:
        seen: list[Execution] = []

        def examine(execution: Execution) -> list[Check]:
            seen.append(execution)
            return examine_run(execution)

        target = Sim("small", small_protocol.RIG)
        order = ProtocolOrder(protocol, target, FEWER.get(protocol.name, {}), quick=True)
        self.folder = begun(order, folder / "runs", examine)
        self.execution = seen[-1]
        self.setup = self.execution.setup
        self.records = self.execution.records

    def first(self, count: int) -> Records:
        """The records as they were after so many results."""
        known = self.records.keys_[:count]
        last = max((int(k[5:7]) for k in known if re.match(r"round\d\d/", k)), default=0)
        rounds = {k: one for k, one in self.records.rounds.items() if one.count <= last}
        return Records(load=self.records.__getitem__, keys_=list(known), rounds=rounds)


def corners(patch: pytest.MonkeyPatch) -> None:
    """Of grids, unless there is time, the corners.

    Each point is the same job with other numbers. The core and fio's parser take those of all
    points, and answers are made of whole grids (`test_pts`).
    """
    if not LONG:
        counts = (32, 1)
        patch.setattr(pts_iops, "MIXES", (100, 65, 0))
        patch.setattr(pts_iops, "SIZES", (1 << 20, 8 << 10, 512))
        patch.setattr(pts_demand, "COUNTS", counts)
        patch.setattr(pts_demand, "POINTS", tuple(product(counts, counts)))


@pytest.mark.parametrize("name", NAMES)
def test_a_protocol_runs_on_a_simulated_drive_and_answers_from_whatever_was_measured(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As many as a window of steady state takes: more are more of the same.
    monkeypatch.setattr(setup, "QUICK_ROUNDS", 5)
    corners(monkeypatch)
    protocol = find(name)
    # Only the shortest jobs: what is asked is whether all goes through.
    run = Run(replace(protocol, quick_divisor=20 * protocol.quick_divisor), tmp_path)
    results = len(run.records)
    # Every prefix of the first steps; of the long tail of rounds and sweeps about fifteen.
    for count in (n for n in range(results + 1) if n < 20 or n % (1 + results // 15) == 0):
        checked(protocol.judge(run.first(count), run.setup), run)
    whole = protocol.judge(run.records, run.setup)
    measured = [one for one in whole.numbers if one.value is not None]
    assert measured and whole.tables and whole.figures
    found = judged(run.folder)
    answer_page.render(protocol_answer.answer(found), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    for table in found.findings.judgement.tables:
        assert str(escape(units.for_page(table.title))) in page


def checked(judgement: Section, run: Run) -> None:
    """Everything an answer must be, however little was measured."""
    known = set(run.execution._done)
    assert judgement.sentences
    for sentence in judgement.sentences:
        assert not re.search(r"\b(None|nan|inf)\b", sentence), sentence
        assert sentence[0].isupper() or sentence[0].isdigit(), sentence
        assert sentence.endswith("."), sentence
    names = [one.name for one in judgement.numbers]
    assert len(names) == len(set(names))
    planned = {step.key for step in flat(run.execution.protocol.plan(run.setup))} | known
    for one in judgement.numbers:
        assert set(one.sources) <= planned, one
    for table in judgement.tables:
        for row in table.rows:
            assert len(row) == len(table.columns), (table.title, row)
            for cell in row:
                assert not isinstance(cell, Cell) or set(cell.sources) <= planned, (table, cell)
    for figure in judgement.figures:
        assert set(figure.sources) <= planned, figure.title
        for curve in figure.curves:
            assert len(curve.x) == len(curve.y)


def short(protocol: Protocol) -> Protocol:
    """The protocol with every duration at its least."""
    return replace(protocol, quick_divisor=1e6)


def on_a_file(patch: pytest.MonkeyPatch) -> None:
    """Makes protocols short; of grids, unless there is time, the corners."""
    patch.setattr(setup, "QUICK_ROUNDS", 1)
    patch.setattr(setup, "LEAST_REAL_S", 0.1)
    corners(patch)


@pytest.fixture(scope="module")
def on_files(
    tmp_path_factory: pytest.TempPathFactory, short_fio: None
) -> dict[str, Future[RunFolder]]:
    place = tmp_path_factory.mktemp("protocols")

    def run(one: Protocol) -> RunFolder:
        target = resolve(place / f"{one.name}.bin")
        parameters = PARAMETERS.get(one.name, {})
        order = ProtocolOrder(short(one), target, parameters, quick=True, size=64 * MIB)
        return begun(order, place / "runs")

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(TOGETHER) as pool:
        on_a_file(patch)
        return {one.name: pool.submit(run, one) for one in protocols()}


@needs_fio()
@pytest.mark.parametrize("name", NAMES)
def test_on_a_file(
    name: str,
    on_files: dict[str, Future[RunFolder]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_a_file(monkeypatch)
    found = judged(on_files[name].result())
    assert not Path(found.manifest.path or "").exists()
