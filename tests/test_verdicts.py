"""Headlines that hold: what doubts and noise take back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ssdlab.answer import Cell, Check, Section, Status, Verdict
from ssdlab.answers.refresh import answer as refresh_answer
from ssdlab.care.blockio import Place
from ssdlab.care.measure import Speed
from ssdlab.care.refresh import Refreshed, RefreshPlan
from ssdlab.engine.answers import Demand, verdict, weighed
from ssdlab.experiments.fragmentation import STEPS_MIB
from test_protocols import job_result, judged, recorded

JUDGED = Section(["Not fit for a log."], verdict=Verdict("not-fit", {"p99": 9.0}))


def check(name: str, status: Status) -> Check:
    return Check(name, f"title of {name}", status, "what was seen", "why it matters")


@pytest.mark.parametrize(
    ("name", "status"),
    [("cache", "doubt"), ("steady", "doubt"), ("load", "doubt"), ("cache", "bad"), ("data", "bad")],
)
def test_a_doubt_about_the_measurement_leaves_the_question_open(name: str, status: Status) -> None:
    found = weighed(JUDGED, [check("errors", "good"), check(name, status)])
    assert found.verdict.code == "not-decided"
    assert found.verdict.values == {"measured": "not-fit", "p99": 9.0}
    assert found.sentences[0].startswith(f"Not decided: doubts about title of {name}. ")
    assert found.sentences[1] == "As measured: Not fit for a log."


@pytest.mark.parametrize(("name", "status"), [("span", "doubt"), ("cache", "unknown")])
def test_what_is_no_such_doubt_leaves_the_verdict(name: str, status: Status) -> None:
    assert weighed(JUDGED, [check(name, status)]) == JUDGED


def test_a_headline_is_taken_back_once() -> None:
    once = weighed(JUDGED, [check("cache", "bad")])
    assert weighed(once, [check("cache", "bad")]) == once


def test_fitness_has_a_code() -> None:
    good = Demand("reads within", Cell(500.0), "us", 1000.0, 5000.0, "r")
    codes = [
        verdict("a log", [replace(good, measured=Cell(value))])[2].code
        for value in (500.0, 2000.0, 9000.0, None)
    ]
    assert codes == ["fit", "fit-with-reservations", "not-fit", "not-measured"]


def reading(mbps: float) -> dict[str, object]:
    return job_result("read", {"read": (mbps * 1e6 / 2**20, {1_000_000: 100})}, block=2**20)


def fragmentation(before: tuple[float, ...], after: tuple[float, ...]) -> Section:
    """Speeds of three readings before any overwriting and after each of it."""
    steps = {
        f"read-{amount}-{turn}": reading(mbps)
        for amount in STEPS_MIB
        for turn, mbps in enumerate(after if amount else before, start=1)
    }
    return judged("fragmentation", recorded(steps))


def test_fragmentation_is_told_from_readings_that_lie_apart() -> None:
    found = fragmentation((500, 498, 502), (250, 251, 249))
    assert found.verdict.code == "fragments"
    assert found.verdict.values["grown"] == pytest.approx(2.0, rel=0.02)
    assert fragmentation((500, 499, 502), (501, 500, 499)).verdict.code == "no-difference"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((500, 300, 450), (320, 480, 400)),  # the readings of one state differ as much
        ((250, 249, 251), (500, 499, 501)),  # faster after overwriting: the first were disturbed
    ],
)
def test_fragmentation_is_not_decided_within_the_noise_of_its_readings(
    before: tuple[float, ...], after: tuple[float, ...]
) -> None:
    found = fragmentation(before, after)
    assert found.verdict.code == "not-decided"
    assert found.sentences[0].startswith("Not decided: ")


def depths(*reads: float) -> Section:
    steps = {
        f"{way}-qd{depth}": job_result("job", {way: (iops, {100_000: 100})})
        for way in ("read", "write")
        for depth, iops in zip((1, 2, 4), reads if way == "read" else (100, 200, 390), strict=True)
    }
    return judged("queue-depth", recorded(steps), given={"depths": "1,2,4"})


def test_scaling_better_than_perfect_is_a_contaminated_base() -> None:
    found = depths(6_000, 16_200, 30_000)
    assert found.verdict.code == "not-decided"
    assert found.verdict.values["scaling_percent"] == pytest.approx(135)
    assert depths(6_000, 11_900, 22_000).verdict.code == "scales"


def mixed(alone_us: int, beside_us: int) -> Section:
    bins = {alone_us * 1000: 100}
    steps: dict[str, dict[str, object]] = {
        "reads-alone": job_result("reader", {"read": (5000, bins)}),
        "writes-alone": job_result("writer", {"write": (9000, bins)}),
    }
    for share in (10, 30, 50, 100):
        beside = {beside_us * 1000: 100}
        steps[f"beside-{share}"] = job_result("reader", {"read": (5000, beside)})
    return judged("mixed-load", recorded(steps))


def test_reads_that_are_slower_alone_than_beside_writes_have_no_baseline() -> None:
    found = mixed(400, 150)
    assert found.verdict.code == "not-decided"
    assert found.verdict.values["mean_ratio"] == pytest.approx(0.375)
    assert mixed(150, 400).verdict.code == "measured"


def refreshed(disk: str, before: tuple[float, ...], after: tuple[float, ...]) -> Refreshed:
    place = Place(Path("/x"), False, 1 << 30, "ext4", disk, 1 << 40)
    return Refreshed(
        RefreshPlan(place, 1 << 30, 0, None, ()),
        Speed(before, 1),
        Speed(after, 1),
        written_bytes=1 << 30,
    )


@pytest.mark.parametrize(
    ("disk", "before", "after", "code"),
    [
        ("sda", (300, 305, 302), (500, 505, 498), "faster"),
        ("sda", (500, 505, 498), (300, 305, 302), "slower"),
        ("sda", (500, 505, 498), (501, 499, 503), "same"),
        ("sda", (300, 500, 400), (450, 700, 600), "not-decided"),
        ("sda", (300,), (500,), "not-decided"),
        ("loop3", (300, 305, 302), (500, 505, 498), "not-decided"),
    ],
)
def test_refreshing_helped_only_beyond_the_noise_of_a_drive(
    disk: str, before: tuple[float, ...], after: tuple[float, ...], code: str
) -> None:
    assert refreshed(disk, before, after).verdict == code


@pytest.mark.parametrize(
    ("disk", "before", "why", "others"),
    [
        ("sda", (300, 500, 400), "differ by", ("loop device", "too few")),
        ("sda", (300,), "too few", ("loop device", "differ by")),
        ("loop3", (300, 305, 302), "loop device", ("too few", "differ by")),
    ],
)
def test_a_refresh_that_decides_nothing_says_why(
    disk: str, before: tuple[float, ...], why: str, others: tuple[str, ...]
) -> None:
    said = " ".join(refresh_answer(refreshed(disk, before, (500, 505, 498))).lead.sentences)
    assert "not decided" in said and why in said
    assert not [other for other in others if other in said]
