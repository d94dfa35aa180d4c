"""Drives that others measured: the table of cells, its procedures, the score."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest

from conftest import Cli
from ssdlab.errors import InputError
from ssdlab.experiments import find, measured
from ssdlab.experiments.base import Kind, Line
from ssdlab.experiments.measured.cells import Circumstance, table
from ssdlab.experiments.measured.procedures import PROCEDURES, Bench
from ssdlab.experiments.measured.readings import READINGS
from ssdlab.experiments.score import by, quantity, score
from ssdlab.rig import is_profile, profile
from ssdlab.units import percent
from test_reproduce import HEADLINES

DISK = "toshiba-al15seb120ny-1200"
"""Costs next to nothing."""
EVERY = pytest.mark.parametrize("drive", measured.DRIVES)


@EVERY
def test_cells_are_well_formed_and_cite_a_source(drive: str) -> None:
    assert is_profile(drive)
    cells = table().of(drive)
    named = {cell.quantity for cell in cells}
    assert len(named) == len(cells) > 0
    for cell in cells:
        assert cell.value > 0, cell
        assert cell.source in table().sources, cell
        assert cell.run in table().runs[drive], cell
        assert cell.read in READINGS or re.fullmatch(r"(read|write) p\d+", cell.read), cell
        assert cell.kind in get_args(Kind), cell
        assert not cell.follows or cell.follows in named - {cell.quantity}, cell
    assert {cell.run for cell in cells} == set(table().runs[drive])
    assert {keys["procedure"] for keys in table().runs[drive].values()} <= PROCEDURES.keys()


def test_every_source_is_used_and_says_its_licence_and_procedure() -> None:
    assert {cell.source for cell in table().cells} == set(table().sources)
    for source in table().sources.values():
        assert source.what and source.licence and source.procedure


LINK = {"bandwidth", "command_time", "latency"}
RETRIES = {"nand.read_retries.share", "nand.read_retries.at_once"}


@pytest.mark.parametrize(
    ("kind", "known", "may"),
    [("host", table().hosts, LINK), ("condition", table().conditions, RETRIES)],
)
def test_every_circumstance_is_used_and_takes_the_place_of_its_own_keys(
    kind: str, known: Mapping[str, Circumstance], may: set[str]
) -> None:
    named = {keys.get(kind) for runs in table().runs.values() for keys in runs.values()}
    assert named - {None} == set(known)
    for one in known.values():
        assert one.what
        assert one.keys.keys() <= may


@EVERY
def test_a_number_by_which_a_profile_was_fitted_is_marked(drive: str) -> None:
    """A profile that names a measured number as what it was fitted to must not predict it."""
    fitted = [source for *_, source in profile(drive).rig().values() if "fitted to" in source]
    for cell in table().of(drive):
        if cell.counts_as == "predicted":
            number = f"{cell.value:g}"
            assert not any(re.search(rf"\b{number}\b", source) for source in fitted), cell


def line(kind: Kind, simulated: float | None, name: str = "a, b") -> Line:
    return Line("drive", name, 100.0, "IOPS", simulated, kind=kind)


@pytest.mark.parametrize("kind", [kind for kind in get_args(Kind) if kind != "predicted"])
def test_only_predictions_are_counted(kind: Kind) -> None:
    lines = [line("predicted", 200.0), line(kind, 100.0), line(kind, None)]
    found = score(lines)
    assert (found.counted, found.missing) == (1, 0)
    assert found.median == found.high == pytest.approx(math.log(2))
    assert score(lines[1:]).median is None


def test_twice_and_half_are_equally_far_off_and_what_is_missing_is_said() -> None:
    lines = [line("predicted", value) for value in (50.0, 200.0, 100.0, None, 0.0)]
    found = score(lines)
    assert (found.counted, found.missing) == (3, 2)
    assert found.median == pytest.approx(math.log(2))
    assert list(by([line("predicted", 1.0, "x, at 1"), line("input", 1.0, "y")], quantity)) == ["x"]


def test_a_number_that_follows_from_another_is_no_prediction() -> None:
    following = [cell for cell in table().cells if cell.follows]
    assert following
    assert {cell.counts_as for cell in following} == {"consequence"}


def test_the_table_and_what_was_found_are_about_the_same_numbers() -> None:
    pinned = HEADLINES["measured"]
    assert set(pinned) == {f"{cell.drive}: {cell.quantity}" for cell in table().cells}
    for cell in table().cells:
        own = pinned[f"{cell.drive}: {cell.quantity}"]
        assert own["published"] == pytest.approx(cell.value)
        assert (own["unit"], own.get("kind", "predicted")) == (cell.unit, cell.counts_as)


def test_what_is_far_off_says_why() -> None:
    for cell in table().cells:
        own = HEADLINES["measured"][f"{cell.drive}: {cell.quantity}"]
        if cell.counts_as == "predicted" and abs(math.log(own["simulated"] / cell.value)) > 0.4:
            assert table().why(cell), f"{cell.drive}: {cell.quantity} is far off"


def test_the_readme_says_how_far_off_they_are() -> None:
    lines = [
        Line("", name, one["published"], one["unit"], one.get("simulated"), kind=one["kind"])
        for name, one in HEADLINES["measured"].items()
        for one in [{"kind": "predicted", **one}]
    ]
    found = score(lines)
    assert found.median is not None and found.high is not None
    said = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    assert f"of {found.counted} numbers that no profile was fitted to" in said
    off = f"{percent(found.median)} and nine tenths by less than {percent(found.high)}"
    assert f"half are off by less\nthan {off}" in said


def test_one_drive_is_measured_alone(cli: Cli, tmp_path: Path) -> None:
    page, data = tmp_path / "page.html", tmp_path / "data.json"
    said = cli("reproduce", "measured", DISK, "--quick", "-o", page, "--json", data)
    assert said.status == 0, said.err
    rows = json.loads(data.read_text())["lines"]
    assert [row["quantity"] for row in rows] == [cell.quantity for cell in table().of(DISK)]
    for row in rows:
        pinned = HEADLINES["measured"][f"{DISK}: {row['quantity']}"]
        assert row["simulated"] == pytest.approx(pinned["simulated"], rel=HEADLINES["within"])
    assert "place, GB" in page.read_text()
    assert "micron-7450" not in page.read_text()


def test_a_drive_without_the_experiment_is_told_what_to_write(cli: Cli) -> None:
    said = cli("reproduce", DISK, "--quick")
    assert said.status == 2
    assert f"ssdlab reproduce measured {DISK}" in said.err


def test_a_drive_that_nobody_measured_is_refused() -> None:
    with pytest.raises(InputError, match="micron-7450-960"):
        find(["measured", "micron-7450-961"])


@EVERY
def test_procedures_at_full_size_say_nothing_of_their_scale(drive: str) -> None:
    for name, keys in table().runs[drive].items():
        task = Bench(drive, name, keys, 1).task()
        known = set(Bench(drive, name, keys, 1).circumstances)
        assert set(task.overrides) - known <= {"namespace"}, task
        assert Bench(drive, name, keys, 200).task().key == task.key
