"""Every protocol comes to its end on a simulated drive and on a file under the real fio."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import small_protocol
from conftest import needs_fio
from ssdlab.checks import examine_run
from ssdlab.engine import findings, setup
from ssdlab.engine.findings import ProtocolRun
from ssdlab.engine.folder import RunFolder
from ssdlab.engine.plans import Order
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.runs import begin
from ssdlab.engine.setup import MIB
from ssdlab.protocols import protocols
from ssdlab.report import protocol_page
from ssdlab.rig import resolve
from ssdlab.store import RunStore
from ssdlab.target import Sim, Target

NAMES = [one.name for one in protocols()]
TOGETHER = 4
"""Protocols on files at a time: most of a short job is fio's own waiting."""
PARAMETERS = {"crystaldiskmark": {"runs": "1"}, "consistency": {"seconds": "4e6"}}
"""Fewer repetitions, and a series of more than one second where there is one."""


def short(protocol: Protocol) -> Protocol:
    """The protocol with every duration at its least."""
    return replace(protocol, quick_divisor=1e6)


def run(protocol: Protocol, target: Target, store: Path, size: int | None = None) -> RunFolder:
    """Runs it to its end."""
    done = begin(
        Order(short(protocol), target, PARAMETERS.get(protocol.name, {}), quick=True, size=size),
        RunStore(store),
        progress=lambda _news: True,
        notice=lambda _sentence: None,
        announce=lambda _what: True,
        examine=examine_run,
    )
    assert done is not None
    return done.folder


def judged(folder: RunFolder, page: Path) -> ProtocolRun:
    """What a run found, once it has said what it must say and its page has been made."""
    found = findings.read(folder)
    assert found.complete and found.quick
    judgement = found.findings.judgement
    assert judgement.sentences
    assert any(number.value is not None for number in judgement.numbers)
    assert any(check.name == "quick" for check in found.findings.checks)
    known = {step.key for step in found.steps}
    for number in judgement.numbers:
        assert set(number.sources) <= known, number
    for figure in judgement.figures:
        assert set(figure.sources) <= known, figure.title
    protocol_page.render(found, page)
    assert page.stat().st_size > 100_000
    return found


@pytest.fixture(autouse=True)
def _one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "QUICK_ROUNDS", 1)


@pytest.mark.parametrize("name", NAMES)
def test_on_a_simulated_drive(name: str, tmp_path: Path) -> None:
    protocol = next(one for one in protocols() if one.name == name)
    folder = run(protocol, Sim("small", small_protocol.RIG.replace("64MiB", "256MiB")), tmp_path)
    judged(folder, tmp_path / "page.html")


@pytest.fixture(scope="module")
def on_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[RunFolder]]]:
    place = tmp_path_factory.mktemp("protocols")
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(TOGETHER) as pool:
        patch.setattr(setup, "QUICK_ROUNDS", 1)
        patch.setattr(setup, "LEAST_REAL_S", 0.1)
        found = {
            one.name: pool.submit(
                run, one, resolve(place / f"{one.name}.bin"), place / "runs", 64 * MIB
            )
            for one in protocols()
        }
        yield found
        pool.shutdown(cancel_futures=True)


@needs_fio()
@pytest.mark.parametrize("name", NAMES)
def test_on_a_file(name: str, on_files: dict[str, Future[RunFolder]], tmp_path: Path) -> None:
    folder = on_files[name].result()
    found = judged(folder, tmp_path / "page.html")
    assert not Path(found.manifest["path"]).exists()
