"""Did a change matter? The same measurement again and again, with and without it, in turn.

The runs are ordinary runs in the store. A is the system as it is, B as changed. Where the change
can be undone the order is A B B A, in which a steady drift hits both alike; else all of A come
first.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ssdlab.analysis.differences import BIN_ERROR, Difference, corrected, quantities
from ssdlab.analysis.paired import Effect, PairedValue, effect, together
from ssdlab.answer import Check, Number
from ssdlab.errors import ExperimentError
from ssdlab.results import Result

NAMED = 3
"""So many numbers are named in the verdict."""
LOOKED_FOR = (0.01, 0.05, 0.10)
"""Differences for which it is told how many pairs would show them."""
FACTOR = 2.0
"""Differences of more than three times are told as factors."""
BLIND = 99.0
"""Differences of more than a hundred times say no more than that hardly any would be seen: of two
runs of each side they can be of hundreds of thousands."""
SAID_MAX = 300
"""Characters of a failed command's last words that are passed on."""
_PERCENTILE = re.compile(r"\bp\d+(\.\d+)?\b")


@dataclass(frozen=True)
class TrialRun:
    """One run of one side."""

    side: str
    place: int
    id: str
    """Its name in the store."""
    numbers: tuple[Number, ...]
    checks: tuple[Check, ...] = ()

    @property
    def doubts(self) -> list[str]:
        """Titles of the checks that speak against its numbers."""
        return list(dict.fromkeys(check.title for check in self.checks if check.trouble))


@dataclass(frozen=True)
class TrialOutcome:
    """What came of it."""

    order: str
    runs: tuple[TrialRun, ...]
    effects: tuple[Effect, ...]
    undoable: bool
    simulated: bool

    @property
    def pairs(self) -> int:
        """Runs of each side."""
        return self.order.count("A")

    def drifting(self) -> list[tuple[Effect, Difference]]:
        """The numbers of A that changed with time, in spite of how many were looked at (Holm)."""
        drifts = zip(self.effects, corrected([one.drift for one in self.effects]), strict=True)
        return [(one, drift) for one, drift in drifts if drift is not None and drift.seen]


def conduct(
    order: str,
    once: Callable[[str, int], TrialRun],
    switch: Callable[[str], None],
    *,
    start: str | None,
    undoable: bool,
) -> list[TrialRun]:
    """Carries out the runs in their order; ``switch`` brings the system to a side before a run,
    from ``start``, the side that it is known to be on (None: it is switched first). A system that
    can go back is back at A when this ends, however it ends. Raises whatever a run or a switch
    raises; runs that are finished stay in the store."""
    runs: list[TrialRun] = []
    now = start
    try:
        for place, side in enumerate(order):
            if side != now:
                # Half a change is one too: whoever undoes it undoes all.
                now = "B"
                switch(side)
                now = side
            runs.append(once(side, place))
    finally:
        if undoable and now == "B":
            switch("A")
    return runs


def command(text: str) -> None:
    """Runs a command by the shell, because the user gave it; ExperimentError where it fails."""
    try:
        done = subprocess.run(  # noqa: S602 - the user's own command line
            text,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise ExperimentError(f"{text}: cannot be run ({error.strerror})") from None
    if done.returncode != 0:
        said = " ".join(done.stdout.split())[-SAID_MAX:]
        reason = f": {said}" if said else ""
        raise ExperimentError(f'"{text}" ended with status {done.returncode}{reason}')


def outcome(
    order: str, runs: Sequence[TrialRun], *, undoable: bool, simulated: bool
) -> TrialOutcome:
    """What the runs say of the change."""
    known: dict[str, Number] = {}
    for run in runs:
        for number in run.numbers:
            known.setdefault(number.name, number)
    effects = []
    for name, model in known.items():
        trials = [
            PairedValue(
                run.side, run.place, next((n.value for n in run.numbers if n.name == name), None)
            )
            for run in runs
        ]
        coarse = BIN_ERROR if _PERCENTILE.search(name) else 0.0
        effects.append(
            effect(name, model.unit, model.better, trials, drifts=not simulated, resolution=coarse)
        )
    return TrialOutcome(order, tuple(runs), tuple(together(effects)), undoable, simulated)


def numbers_of(result: Result) -> tuple[Number, ...]:
    """The numbers of an ordinary run, by job and direction."""
    return tuple(
        Number(f"{q.name} of {q.section}", q.sides[0][0].value, q.unit, q.better)
        for q in quantities([(result,)])
    )


def verdict(one: Effect) -> str:
    """What became of a number, in words."""
    if one.difference is None:
        return "not measured often enough"
    return one.difference.verdict(one.better)


def sentences(trial_outcome: TrialOutcome, text: Callable[[Difference], str]) -> list[str]:
    """Whether the change mattered, in a sentence, and what stands beside it; ``text`` writes a
    difference with its interval."""
    tested = [e for e in trial_outcome.effects if e.difference is not None]
    seen = [e for e in tested if e.difference is not None and e.difference.seen]
    if not tested:
        return ["Too little was measured to say anything of the change."]
    said = []
    if seen:
        named = "; ".join(
            f"{e.name} {text(e.difference)}, {verdict(e)}" for e in seen[:NAMED] if e.difference
        )
        more = f"; and {len(seen) - NAMED} more" if len(seen) > NAMED else ""
        said.append(
            f"The change mattered: {len(seen)} of {len(tested)} numbers differ beyond the noise. "
            f"{named}{more}."
        )
    else:
        said.append(
            f"No sign that the change mattered: none of {len(tested)} numbers differs by more "
            f"than the noise of {trial_outcome.pairs} runs of each." + _power(tested)
        )
    if not trial_outcome.undoable:
        said.append(
            "The change was not undone in between, so whatever drifted from the first runs to the "
            "last looks like the change."
        )
    for one, drift in trial_outcome.drifting()[:1]:
        end = (
            "the order A B B A takes a steady drift out of the difference."
            if trial_outcome.undoable
            else "the difference may be this drift and not the change."
        )
        said.append(
            f"A itself changed while the runs went on: {one.name} {text(drift)} from the first run "
            f"to the last; {end}"
        )
    return said


def doubts(runs: Sequence[TrialRun]) -> list[str]:
    """What checks say against the runs: each check with the number of runs, in a sentence."""
    titles = list(dict.fromkeys(title for run in runs for title in run.doubts))
    counts = [(title, sum(title in run.doubts for run in runs)) for title in titles]
    return [
        f"{title} puts {count} of {len(runs)} runs in doubt"
        for title, count in sorted(counts, key=lambda one: -one[1])
    ]


def _power(tested: Sequence[Effect]) -> str:
    """What would have been seen, and what it would take to see less."""
    first = next((e for e in tested if e.visible is not None), None)
    if first is None or first.visible is None:
        return ""
    if first.visible == 0:  # the runs of a side, and what they share, never vary
        return f" In {first.name}, any difference would have been seen."
    least = (
        f"a factor of {1 + first.visible:.2g}"
        if first.visible > FACTOR
        else f"{100 * first.visible:.2g} %"
    )
    said = f" In {first.name}, {least} or more would mostly have been seen"
    if first.visible > BLIND:
        said = f" In {first.name}, not even a factor of {1 + BLIND:.0f} would mostly have been seen"
    smaller = [share for share in LOOKED_FOR if share < first.visible]
    if smaller and (count := first.needed(smaller[-1])) is not None:
        return f"{said}; {100 * smaller[-1]:.0f} % would take about {count} runs of each."
    return f"{said}."


def as_json(trial_outcome: TrialOutcome) -> dict[str, Any]:
    """The outcome for scripts. Differences and drifts are shares: 0.1 is 10 % more than A."""
    return {
        "order": trial_outcome.order,
        "undone_between": trial_outcome.undoable,
        "simulated": trial_outcome.simulated,
        "doubts": doubts(trial_outcome.runs),
        "runs": [
            {
                "side": run.side,
                "place": run.place,
                "run": run.id,
                "doubts": run.doubts,
                "numbers": {number.name: number.value for number in run.numbers},
            }
            for run in trial_outcome.runs
        ],
        "effects": [
            {
                "name": e.name,
                "unit": e.unit,
                "better": e.better or None,
                "a": list(e.a),
                "b": list(e.b),
                "difference": e.difference and asdict(e.difference),
                "verdict": verdict(e),
                "drift_of_a": e.drift and asdict(e.drift),
                "visible": e.visible,
                "pairs_needed": {f"{s:g}": e.needed(s) for s in LOOKED_FOR},
            }
            for e in trial_outcome.effects
        ],
    }
