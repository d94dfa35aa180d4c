"""A change tried again and again: chance is held at bay, drift taken out, systems put back."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from conftest import Cli, needs_fio
from ssdlab.analysis.differences import BIN_ERROR
from ssdlab.analysis.paired import Effect, PairedValue, effect, order, together
from ssdlab.answer import Cell, Check, Number
from ssdlab.answers import trial
from ssdlab.errors import ExperimentError
from ssdlab.studies import ab
from ssdlab.units import SEED_MAX

pytestmark = pytest.mark.usefixtures("short_fio")

NOISE = 0.03
TRIALS = 1500


def trials(
    source: np.random.Generator, sides: str, shift: float = 0.0, drift: float = 0.0
) -> list[PairedValue]:
    """Runs whose logarithms have noise, a shift of B, and a drift from run to run."""
    return [
        PairedValue(
            side,
            place,
            1000.0
            * math.exp(
                (shift if side == "B" else 0.0) + drift * place + float(source.normal(0, NOISE))
            ),
        )
        for place, side in enumerate(sides)
    ]


def share_seen(sides: str, shift: float = 0.0, drift: float = 0.0, count: int = TRIALS) -> float:
    """How often a difference is seen at 5 %."""
    source = np.random.default_rng(11)
    found = 0
    for _ in range(count):
        one = effect("x", "", "", trials(source, sides, shift, drift)).difference
        assert one is not None and one.p is not None
        found += one.p < 0.05
    return found / count


def mean_difference(sides: str, drift: float) -> float:
    """What is found on average where there is nothing but drift."""
    source = np.random.default_rng(5)
    found = [effect("x", "", "", trials(source, sides, 0.0, drift)).difference for _ in range(300)]
    return float(np.mean([one.share for one in found if one is not None]))


def test_turns_are_taken_where_a_change_can_be_undone() -> None:
    assert order(4, undoable=True) == "ABBAABBA"
    assert order(3, undoable=True) == "ABBAAB"
    assert order(3, undoable=False) == "AAABBB"


@pytest.mark.parametrize("pairs", [2, 3, 4, 6, 8])
def test_where_nothing_changed_one_in_twenty_is_seen(pairs: int) -> None:
    # 5 % +- three standard errors of 1500 trials.
    assert share_seen(order(pairs, undoable=True)) == pytest.approx(0.05, abs=0.017)
    # Welch's test is too careful with very few runs, never too bold.
    seen = share_seen(order(pairs, undoable=False))
    assert (0.01 if pairs < 4 else 0.033) <= seen <= 0.067


@pytest.mark.parametrize("drift", [0.01, 0.05])
def test_a_steady_drift_does_not_look_like_the_change_when_a_and_b_take_turns(
    drift: float,
) -> None:
    assert share_seen(order(4, undoable=True), drift=drift) == pytest.approx(0.05, abs=0.017)
    assert abs(mean_difference(order(4, undoable=True), drift)) < 0.005


def test_the_same_drift_looks_like_the_change_when_all_of_a_come_first() -> None:
    assert share_seen(order(6, undoable=False), drift=0.01) > 0.5
    assert mean_difference(order(4, undoable=False), 0.01) > 0.03


def test_a_known_shift_is_seen_as_often_as_was_reckoned() -> None:
    """80 % is what `needed` promises; the drift that is fitted beside costs a little of it."""
    spread = NOISE * math.sqrt(2)
    pairs = Effect("x", "", "", (), (), None, None, spread).needed(0.05)
    assert pairs == 9  # (1.96 + 0.84)^2 / 1.15^2 = 6 by the normal, more by t
    assert share_seen(order(pairs, undoable=True), math.log(1.05)) == pytest.approx(0.8, abs=0.07)
    assert share_seen(order(2, undoable=True), math.log(1.05)) < 0.3


@pytest.mark.parametrize("drifts", [False, True])
def test_one_change_among_eight_numbers_is_seen_as_often_as_was_reckoned(drifts: bool) -> None:
    """The least effect is one that is seen beside numbers that did not change (Holm)."""
    spread, sides = NOISE * math.sqrt(2), order(4, undoable=True)
    reckoned = Effect("x", "", "", (), (), None, None, spread, 4, 2.0 if drifts else 3.0, tests=8)
    assert reckoned.visible is not None
    source, count, seen = np.random.default_rng(7), 600, 0
    for _ in range(count):
        shifts = [math.log1p(reckoned.visible), *[0.0] * 7]
        first = together(
            [effect("n", "", "", trials(source, sides, s), drifts=drifts) for s in shifts]
        )[0]
        assert first.tests == 8 and first.difference is not None
        seen += first.difference.seen
    assert seen / count == pytest.approx(0.8, abs=0.05)


def test_one_change_is_seen_as_often_as_was_reckoned_also_where_all_of_a_come_first() -> None:
    """Welch's test has fewer degrees of freedom the less alike the two vary."""
    sides, count, seen = order(4, undoable=False), 600, 0
    for seed in range(count):
        source = np.random.default_rng(seed)
        df = effect("n", "", "", trials(source, sides, 0.0), drifts=False).df
        assert 3.0 <= df <= 6.0
        reckoned = Effect("x", "", "", (), (), None, None, NOISE * math.sqrt(2), 4, df, tests=8)
        assert reckoned.visible is not None
        shifts = [math.log1p(reckoned.visible), *[0.0] * 7]
        first = together(
            [
                effect("n", "", "", trials(np.random.default_rng(seed + place), sides, shift))
                for place, shift in enumerate(shifts)
            ]
        )[0]
        assert first.difference is not None
        seen += first.difference.seen
    assert seen / count == pytest.approx(0.8, abs=0.05)


def test_what_is_told_coarsely_hides_small_shifts_however_even_the_runs_are() -> None:
    places = order(2, undoable=True)
    even = [PairedValue(side, place, 766.0) for place, side in enumerate(places)]
    exact, coarse = (effect("p50", "us", "lower", even, resolution=r) for r in (0.0, BIN_ERROR))
    assert exact.visible == 0 and exact.needed(0.01) == 2
    assert coarse.difference is not None and coarse.visible is not None
    # Less than the interval reaches cannot be seen.
    assert coarse.visible > (coarse.difference.high or 1) > 0.05
    assert coarse.needed(0.05) is not None and coarse.needed(0.01) is None


def test_a_shift_is_seen_in_spite_of_a_large_drift() -> None:
    assert share_seen(order(8, undoable=True), math.log(1.10), drift=0.05) > 0.95


def test_intervals_hold_the_true_shift() -> None:
    source = np.random.default_rng(2)
    held = 0
    for _ in range(1000):
        d = effect("x", "", "", trials(source, order(6, True), math.log(1.2), 0.02)).difference
        assert d is not None and d.low is not None and d.high is not None
        held += d.low <= 0.2 <= d.high
    assert held / 1000 == pytest.approx(0.95, abs=0.025)


def test_of_many_numbers_that_did_not_change_none_is_mostly_called_changed() -> None:
    source = np.random.default_rng(4)
    alone = called = 0
    for _ in range(300):
        effects = together(
            [effect(f"n{i}", "", "", trials(source, order(4, True))) for i in range(20)]
        )
        called += any(e.difference is not None and e.difference.seen for e in effects)
        alone += any(
            e.difference is not None and e.difference.p is not None and e.difference.p < 0.05
            for e in effects
        )
    assert called / 300 < 0.10
    assert alone / 300 > 0.5


def test_a_drift_of_a_is_told_and_a_steady_a_is_not() -> None:
    source = np.random.default_rng(8)

    def outcome(drift: float) -> ab.TrialOutcome:
        sides = order(6, undoable=True)
        runs = [
            ab.TrialRun(
                t.side, t.place, f"r{t.place}", (Number("IOPS", t.value, "IOPS", "higher"),)
            )
            for t in trials(source, sides, 0.0, drift)
        ]
        return ab.outcome(sides, runs, undoable=True, simulated=False)

    drifting = outcome(-0.05)
    assert [e.name for e, _ in drifting.drifting()] == ["IOPS"]
    said = " ".join(ab.sentences(drifting, lambda d: f"{d.share:.2f}"))
    assert "A itself changed" in said
    assert drifting.effects[0].drift is not None
    assert drifting.effects[0].drift.share == pytest.approx(math.exp(-0.05 * 11) - 1, abs=0.1)
    assert sum(bool(outcome(0.0).drifting()) for _ in range(60)) <= 9


def test_simulated_pairs_do_without_the_fitted_drift() -> None:
    source = np.random.default_rng(1)
    known = trials(source, order(4, True))
    assert effect("x", "", "", known, drifts=False).drift is None
    assert effect("x", "", "", known).drift is not None


def test_equal_values_leave_no_doubt_but_that_of_their_bins() -> None:
    known = [PairedValue(s, i, 100.0 if s == "A" else 100.5) for i, s in enumerate("ABBAABBA")]
    exact = effect("x", "", "", known).difference
    coarse = effect("p99 latency", "", "", known, resolution=BIN_ERROR).difference
    assert exact is not None and exact.p == 0.0
    assert coarse is not None and coarse.p is not None and coarse.p > 0.05


def test_of_runs_that_never_vary_any_difference_would_be_seen() -> None:
    runs = [
        ab.TrialRun(side, place, f"{side}{place}", (Number("IOPS of w", 100.0, "IOPS", "higher"),))
        for place, side in enumerate("ABBA")
    ]
    said = ab.sentences(ab.outcome("ABBA", runs, undoable=True, simulated=True), str)[0]
    assert said.endswith("In IOPS of w, any difference would have been seen.")


def test_what_was_not_measured_is_no_exception() -> None:
    none = effect("x", "", "", [PairedValue("A", 0, None), PairedValue("B", 1, None)])
    zero = effect("x", "", "", [PairedValue(s, i, 0.0) for i, s in enumerate("ABBA")])
    half = effect("x", "", "", [PairedValue("A", 0, 1.0), PairedValue("B", 1, 1.1)])
    assert none.difference is zero.difference is half.difference is None
    assert ab.verdict(none) == "not measured often enough"
    found = ab.outcome("AB", [], undoable=True, simulated=True)
    assert ab.sentences(found, str) == ["Too little was measured to say anything of the change."]


def test_what_it_would_take_is_told_where_nothing_is_seen() -> None:
    sides = order(4, undoable=True)
    runs = [
        ab.TrialRun(t.side, t.place, "r", (Number("IOPS", t.value, "IOPS"),))
        for t in trials(np.random.default_rng(12), sides)
    ]
    found = ab.outcome(sides, runs, undoable=True, simulated=False)
    said = ab.sentences(found, str)[0]
    assert said.startswith("No sign that the change mattered")
    assert "would mostly have been seen" in said and "runs of each" in said


def test_a_difference_that_nothing_would_show_is_no_number() -> None:
    values = {"A": (100.0, 180.0), "B": (170.0, 110.0)}
    numbers = {side: iter(own) for side, own in values.items()}
    runs = [
        ab.TrialRun(side, place, "r", (Number("p99", next(numbers[side]), "us"),))
        for place, side in enumerate("ABBA")
    ]
    found = ab.outcome("ABBA", runs, undoable=True, simulated=True)
    visible = found.effects[0].visible
    assert visible is not None and visible > 99
    assert "In p99, not even a factor of 100 would mostly have been" in ab.sentences(found, str)[0]
    cell = trial.answer(found, "A and B").sections[0].tables[0].rows[0][-1]
    assert isinstance(cell, Cell)
    assert cell.text == "more than x 100"


# --- carrying it out


class System:
    """A system that notes what is done to it."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.notes: list[str] = []
        self.fails_at = fails_at

    def once(self, side: str, place: int) -> ab.TrialRun:
        if place == self.fails_at:
            raise ExperimentError("fio failed")
        self.notes.append(f"run {side}")
        return ab.TrialRun(side, place, f"r{place}", ())

    def switch(self, side: str) -> None:
        self.notes.append(f"to {side}")


def test_the_system_is_switched_only_where_the_side_changes_and_put_back() -> None:
    system = System()
    runs = ab.conduct("ABBA", system.once, system.switch, start=None, undoable=True)
    assert system.notes == ["to A", "run A", "to B", "run B", "run B", "to A", "run A"]
    assert [run.place for run in runs] == [0, 1, 2, 3]


def test_a_system_that_ends_on_b_is_put_back() -> None:
    system = System()
    ab.conduct("AB", system.once, system.switch, start="A", undoable=True)
    assert system.notes == ["run A", "to B", "run B", "to A"]


def test_a_failed_run_puts_the_system_back_and_a_change_that_cannot_be_undone_stays() -> None:
    system = System(fails_at=2)
    with pytest.raises(ExperimentError, match="fio failed"):
        ab.conduct("ABBA", system.once, system.switch, start=None, undoable=True)
    assert system.notes == ["to A", "run A", "to B", "run B", "to A"]
    lasting = System(fails_at=1)
    with pytest.raises(ExperimentError):
        ab.conduct("AB", lasting.once, lasting.switch, start="A", undoable=False)
    assert lasting.notes == ["run A", "to B"]


def test_a_change_that_fails_half_way_is_undone() -> None:
    system = System()

    def switch(side: str) -> None:
        system.switch(side)
        if side == "B":
            raise ExperimentError("no permission")

    with pytest.raises(ExperimentError, match="no permission"):
        ab.conduct("AB", system.once, switch, start="A", undoable=True)
    assert system.notes == ["run A", "to B", "to A"]


def test_a_command_that_fails_is_told_with_its_last_words() -> None:
    ab.command("true")
    with pytest.raises(
        ExperimentError, match=r'"echo no such; exit 3" ended with status 3: no such'
    ):
        ab.command("echo no such; exit 3")


# --- the command

JOB = "[w]\nrw=randwrite\nbs=4k\niodepth=8\nioengine=libaio\nnorandommap\ntime_based\nruntime=5\n"
BASE = ("lab-reference", "--set", "capacity=256MiB", "--prepare", "steady")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "j.fio"
    path.write_text(JOB)
    return path


@pytest.mark.parametrize(
    ("check", "code"),
    [
        (Check("errors", "I/O errors", "bad", "", ""), "not-decided"),
        (Check("load", "Other load", "doubt", "", ""), "not-decided"),
        (Check("quick", "Quick run", "doubt", "", ""), "mattered"),
        (Check("load", "Other load", "good", "", ""), "mattered"),
    ],
)
def test_runs_that_checks_do_not_let_stand_decide_nothing(check: Check, code: str) -> None:
    runs = [
        ab.TrialRun(
            side,
            place,
            f"{side}{place}",
            (Number("IOPS of w", 100.0 + place + 100 * (side == "B"), "IOPS", "higher"),),
            (check,) if place == 2 else (),
        )
        for place, side in enumerate(order(4, undoable=True))
    ]
    said = trial.answer(ab.outcome("ABBAABBA", runs, undoable=True, simulated=True), "").lead
    assert said.verdict.code == code
    first = said.sentences[0]
    assert first.startswith("Not decided: doubts about " if code == "not-decided" else "The change")
    if code == "not-decided":
        assert said.sentences[1].startswith("As measured: The change mattered")
        assert said.verdict.values["measured"] == "mattered"
    doubted = f"{check.title} puts 1 of 8 runs in doubt."
    assert (doubted in said.sentences) == check.trouble


def test_a_change_that_matters_on_a_simulated_drive_is_found(
    job: Path, tmp_path: Path, cli: Cli
) -> None:
    said = cli(
        "ab", *BASE, "--job", job, "--set-b", "ftl.over_provisioning=0.5", "--repeats", "3",
        "--out", tmp_path / "runs", "--json", "-", "-q",
    )  # fmt: skip
    assert said.status == 0, said.err
    found = json.loads(said.out)
    assert found["order"] == "ABBAAB"
    iops = next(one for one in found["effects"] if one["name"] == "IOPS of w, write")
    assert iops["verdict"] == "better" and iops["difference"]["low"] > 0.1
    assert len(list((tmp_path / "runs").glob("*lab-reference*"))) == 6
    again = cli("compare", ",".join(r["run"] for r in found["runs"] if r["side"] == "A"),
                ",".join(r["run"] for r in found["runs"] if r["side"] == "B"),
                "--out", tmp_path / "runs")  # fmt: skip
    assert again.status == 0 and "ftl.over_provisioning" in again.out


def test_pairs_of_a_simulated_drive_have_the_same_seed(job: Path, tmp_path: Path, cli: Cli) -> None:
    """A key that changes nothing gives pairs that are equal to the last bit."""
    said = cli(
        "ab", *BASE, "--job", job, "--set-b", "ftl.over_provisioning=0.2800", "--repeats", "2",
        "--out", tmp_path / "runs", "--json", "-",
    )  # fmt: skip
    assert said.status == 0, said.err
    for one in json.loads(said.out)["effects"]:
        assert sorted(one["a"]) == sorted(one["b"])
        assert one["difference"]["share"] == pytest.approx(0.0, abs=1e-12)
    assert "No sign that the change mattered" in said.err


def test_a_protocol_is_repeated_with_and_without_the_change(tmp_path: Path, cli: Cli) -> None:
    said = cli(
        "ab", "lab-reference", "-p", "consistency", "--quick", "--set-b",
        "ftl.over_provisioning=0.5", "--repeats", "2", "--out", tmp_path, "--json",
        tmp_path / "ab.json",
    )  # fmt: skip
    assert said.status == 0, said.err
    assert "4 runs: A B B A" in said.err
    assert "B vs A" in said.out
    assert "Quick run puts 4 of 4 runs in doubt" in said.out
    names = {one["name"] for one in json.loads((tmp_path / "ab.json").read_text())["effects"]}
    assert "mean" in names


@pytest.mark.real
@needs_fio()
def test_a_real_file_is_measured_between_the_users_commands(tmp_path: Path, cli: Cli) -> None:
    job = tmp_path / "r.fio"
    job.write_text("[w]\nrw=write\nbs=4k\nsize=1m\n")
    log = tmp_path / "log"
    said = cli(
        "ab", tmp_path / "scratch", "--job", job, "--to-b", f"echo b >> {log}",
        "--to-a", f"echo a >> {log}", "--repeats", "2", "--out", tmp_path / "runs",
    )  # fmt: skip
    assert said.status == 0, said.err
    assert log.read_text().split() == ["a", "b", "a"]
    assert said.err.count("running: echo") == 3
    assert not (tmp_path / "scratch").exists()
    assert len(list((tmp_path / "runs").glob("*scratch*"))) == 4


@pytest.mark.real
@needs_fio()
def test_without_a_way_back_all_of_a_come_first_with_a_warning(tmp_path: Path, cli: Cli) -> None:
    job = tmp_path / "r.fio"
    job.write_text("[w]\nrw=write\nbs=4k\nsize=1m\n")
    said = cli(
        "ab", tmp_path / "scratch", "--job", job, "--to-b", "true", "--repeats", "2",
        "--out", tmp_path / "runs",
    )  # fmt: skip
    assert said.status == 0, said.err
    assert "A A B B" in said.err and "warning: without --to-a" in said.err
    assert "looks like the change" in said.out


@pytest.mark.real
@needs_fio()
def test_a_change_that_fails_stops_everything(tmp_path: Path, cli: Cli) -> None:
    job = tmp_path / "r.fio"
    job.write_text("[w]\nrw=write\nbs=4k\nsize=1m\n")
    said = cli(
        "ab", tmp_path / "scratch", "--job", job, "--to-b", "exit 7", "--repeats", "2",
        "--out", tmp_path / "runs",
    )  # fmt: skip
    assert said.status == 1
    assert 'ssdlab: "exit 7" ended with status 7' in said.err
    assert len(list((tmp_path / "runs").glob("*scratch*"))) == 2


OTHER_SPARE = ("--set-b", "ftl.over_provisioning=0.5")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "either --protocol NAME or --job JOB.fio"),
        (("-p", "consistency", "--job", "x.fio"), "either --protocol NAME or --job JOB.fio"),
        (("-p", "consistency"), "give the change as --set-b KEY=VALUE"),
        (
            ("-p", "consistency", "--set-b", "a=1", "--to-b", "true"),
            "no command changes a simulated",
        ),
        (("-p", "consistency", "--set-b", "a=1", "--set", "a=1"), "--set-b changes nothing"),
        (("-p", "consistency", "--set-b", "a=1", "--prepare", "fob"), "--prepare goes with --job"),
        (("-p", "consistency", "--set-b", "a=1", "--param", "x=1"), "no parameter of consistency"),
        (("-p", "consistancy", "--set-b", "a=1"), 'did you mean "consistency"'),
        (("-p", "consistency", "--set-b", "a"), "write it as KEY=VALUE"),
        (("-p", "consistency", "--set-b", "a=1", "--quick"), "a: unknown key"),
        (("-p", "consistency", "--set-b", "a=1", "--repeats", "1"), '--repeats "1"'),
        (("-p", "consistency", *OTHER_SPARE, "--cluster", "nonsense"), "is no address"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: tuple[str, ...],
    words: str,
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = cli("ab", "lab-reference", *arguments)
    assert said.status == 2, said
    last = said.err.splitlines()[-1]
    assert last.startswith("ssdlab: ") and words in last, said.err
    assert said.err.count("\n") == 1, said.err


def test_a_real_target_needs_a_command(cli: Cli, tmp_path: Path) -> None:
    said = cli("ab", tmp_path / "s", "-p", "consistency")
    assert said.status == 2 and "--to-b CMD" in said.err
    said = cli("ab", tmp_path / "s", "-p", "consistency", "--set-b", "a=1")
    assert said.status == 2 and "--set-b change simulated drives" in said.err


def test_a_seed_that_further_pairs_cannot_follow_is_refused_before_a_run(cli: Cli) -> None:
    given = ("ab", "lab-reference", "--protocol", "pts-iops", "--set-b", "ftl.over_provisioning=1")
    result = cli(*given, "--seed", str(SEED_MAX - 3))
    assert result.status == 2 and f"expected at most {SEED_MAX - 4}" in result.err
    assert "runs:" not in result.err
