"""The best combination of what varies, found by simulating few of all that there are.

Optuna's TPE asks for combinations in batches of one size, so that what is asked for follows from
the seed and from results alone. With one goal, what is poor in a shortened run, or by its first
seeds, is broken off. The best are simulated again with other seeds, since the best of many is
partly the luckiest.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ssdlab.errors import InputError, missing_extra
from ssdlab.progress import ProgressCallback, stage, within
from ssdlab.sweeps import measures
from ssdlab.sweeps.axes import Axis
from ssdlab.sweeps.carry import SweepOutcome, carry_out
from ssdlab.sweeps.dataset import Dataset
from ssdlab.sweeps.formula import Condition, FormulaValue, condition
from ssdlab.sweeps.measures import Goal, goal
from ssdlab.sweeps.order import SweepOrder
from ssdlab.sweeps.plan import Sweep, SweepRun

BATCH = 8
"""Combinations asked for at once, whatever the number of cores."""
STARTUP = 16
"""So many are drawn at random before what came is used."""
SHORTER = 4
"""A shortened run is shorter by this."""
SHORT_MIN_S = 1
BUDGET = 100
AGAIN = 3
"""Other seeds of the best."""
BEST_MAX, FRONT_MAX = 3, 8
"""So many of the best, or of those that none surpasses in all, are simulated again."""
RUNTIME = "job.runtime"
Judgement = tuple[tuple[float, ...], bool]
"""Each goal of a run, and whether it meets the conditions."""


@dataclass(frozen=True)
class SearchTrial:
    """A combination that was asked for."""

    number: int
    values: Mapping[str, str]
    found: tuple[float, ...] = ()
    """The mean of each goal over the seeds; empty where it was broken off or could not be run."""
    meets: bool = False
    """Whether all conditions are met by each seed."""
    fate: str = ""
    """Why there is nothing."""
    keys: tuple[str, ...] = ()
    """Of its runs at full length."""
    by_seed: tuple[tuple[float, ...], ...] = ()
    """Each goal with each of the other seeds; empty where it was not simulated again."""
    meets_again: bool = False

    @property
    def again(self) -> tuple[float, ...]:
        """The mean of each goal over the other seeds; empty where it was not simulated again."""
        return _means(self.by_seed)


@dataclass(frozen=True)
class SearchResult:
    """What a search came to."""

    sweep: Sweep
    goals: Sequence[Goal]
    conditions: Sequence[str]
    trials: Sequence[SearchTrial]
    best: Sequence[SearchTrial]
    """The best first; with several goals, those that none surpasses in all."""
    ran: int
    before: int

    @property
    def shortened(self) -> bool:
        """Whether runs of two lengths are in the table."""
        return any(axis.key == RUNTIME for axis in self.sweep.axes)

    @property
    def surpassed(self) -> list[SearchTrial]:
        """Those of the best that another of them surpasses in all goals with the other seeds."""
        known = [trial for trial in self.best if trial.again]
        return [
            trial
            for trial in known
            if any(_surpasses(self.goals, one.again, trial.again) for one in known)
        ]


@dataclass(frozen=True)
class Search:
    """What is searched: the best by the goals of what meets the conditions, among what ``sweep``
    varies, also in ranges; InputError where a goal or condition cannot be read."""

    sweep: Sweep
    goals: Sequence[Goal]
    conditions: Sequence[Condition] = ()
    budget: int = BUDGET
    short_s: int | None = None
    """Length of a shortened run, where jobs can be shortened; the whole one is the last value of
    the axis :data:`RUNTIME`."""
    _rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def of(sweep: Sweep, order: SweepOrder) -> Search:
        """The search that an order asks for."""
        goals = [goal(name) for one in order.search for name in one.split(",")]
        if len({one.measure for one in goals}) < len(goals):
            raise InputError("--search: names a measure twice")
        known = {*measures.names(), *sweep.names()}
        conditions = [condition(one, "--target", known) for one in order.target]
        first = {axis.key: axis.ends[0] for axis in sweep.axes}
        for one in conditions:
            # A time held against a number is told before anything runs.
            one.holds(lambda name: measures.sample(name) or sweep.known(first, name))
        short = _short_s(sweep) if len(goals) == 1 else None
        if short is not None:
            length = Axis(RUNTIME, (str(short), str(short * SHORTER)))
            sweep = replace(sweep, axes=[*sweep.axes, length])
        return Search(sweep, goals, conditions, order.budget or BUDGET, short)

    def carry_out(self, dataset: Dataset, progress: ProgressCallback | None = None) -> SearchResult:
        """Searches; what is in the table is not run again. Raises as
        :func:`ssdlab.sweeps.carry_out`, and InputError where Optuna is missing, no combination
        could be run, or none has what is asked for."""
        study = self._study()
        trials: list[SearchTrial] = []
        ran = before = 0
        tried: set[tuple[str, ...]] = set()
        possible = self._possible()
        while len(trials) < self.budget and (possible is None or len(tried) < possible):
            count = min(BATCH, self.budget - len(trials))
            done, ends = len(trials) / self.budget, (len(trials) + count) / self.budget
            batch = _Batch(self, dataset, study, [study.ask() for _ in range(count)], len(trials))
            trials += batch.carry_out(within(progress, done, ends))
            tried |= {tuple(trial.values.values()) for trial in batch.done}
            ran, before = ran + batch.ran, before + batch.before
        best, more = self._again(dataset, self._best(trials), progress)
        if not best:
            fates = [trial.fate for trial in trials if trial.fate]
            if fates and not any(trial.found for trial in trials):
                raise InputError(f"no combination could be judged; the first: {fates[0]}")
        shown = {trial.number: trial for trial in best}
        trials = [shown.get(trial.number, trial) for trial in trials]
        texts = [one.text for one in self.conditions]
        ran, before = ran + more.ran, before + more.before
        return SearchResult(self.sweep, self.goals, texts, trials, best, ran, before)

    def length(self, short: bool) -> dict[str, str]:
        """The value of the axis of lengths, if there is one."""
        if self.short_s is None:
            return {}
        return {RUNTIME: str(self.short_s if short else self.short_s * SHORTER)}

    def values(self, trial: Any) -> dict[str, str]:
        """The combination that Optuna asks for."""
        found: dict[str, str] = {}
        for block in self.sweep.blocks():
            first = block[0]
            if first.key == RUNTIME and self.short_s is not None:
                continue
            if first.span is not None:
                found[first.key] = first.span.at(trial.suggest_float(first.key, 0.0, 1.0))
                continue
            name = "+".join(axis.key for axis in block)
            if all(axis.numeric for axis in block):
                place = trial.suggest_int(name, 0, len(first.values) - 1)
            else:
                place = trial.suggest_categorical(name, list(range(len(first.values))))
            found |= {axis.key: axis.values[place] for axis in block}
        return found

    def judged(self, run: SweepRun, values: Mapping[str, str], name: str) -> FormulaValue | None:
        """A measure of a run, or what was known before."""
        if name in values or name.rpartition(".")[2] not in {*measures.MEASURED, *measures.ALIASES}:
            return self.sweep.known(values, name)
        return measures.measured(self._rows[run.key], name)

    def read(self, dataset: Dataset, runs: Sequence[SweepRun]) -> None:
        """Takes what the table has of these runs."""
        for row in dataset.of(runs).iter_rows(named=True):
            rows = self._rows.setdefault(row["key"], [])
            if all((row["job"], row["ddir"]) != (one["job"], one["ddir"]) for one in rows):
                rows.append(row)

    def results(self, run: SweepRun, values: Mapping[str, str]) -> Judgement | str:
        """The goals, and whether the conditions are met; or why neither can be told."""
        if run.key not in self._rows:
            return "could not be run"
        found = []
        for one in self.goals:
            known = self.judged(run, values, one.name)
            if known is None or isinstance(known.value, str):
                return f"nothing is known of {one.name}"
            found.append(float(known.value))
        meets = all(
            one.holds(lambda name: self.judged(run, values, name)) for one in self.conditions
        )
        return tuple(found), meets

    def _study(self) -> Any:
        try:
            import optuna
        except ImportError:
            raise missing_extra("--search", "Optuna", "search") from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=1, n_startup_trials=STARTUP, constant_liar=True)
        return optuna.create_study(
            directions=["maximize" if one.higher else "minimize" for one in self.goals],
            sampler=sampler,
            pruner=optuna.pruners.MedianPruner(n_startup_trials=BATCH, n_min_trials=4),
        )

    def _possible(self) -> int | None:
        """How many combinations there are; None where a range has no end of them."""
        count = 1
        for block in self.sweep.blocks():
            if block[0].span is not None:
                return None
            if block[0].key != RUNTIME or self.short_s is None:
                count *= len(set(zip(*(axis.values for axis in block), strict=True)))
        return count

    def _best(self, trials: Sequence[SearchTrial]) -> list[SearchTrial]:
        """The best that meet the conditions, each combination once."""
        met = {
            tuple(trial.values.values()): trial
            for trial in reversed(trials)
            if trial.found and trial.meets
        }
        fit = sorted(met.values(), key=lambda t: (_costs(self.goals, t.found), t.number))
        if len(self.goals) == 1:
            return fit[:BEST_MAX]
        front = [
            trial
            for trial in fit
            if not any(_surpasses(self.goals, other.found, trial.found) for other in fit)
        ]
        if len(front) <= FRONT_MAX:
            return front
        return [front[place * (len(front) - 1) // (FRONT_MAX - 1)] for place in range(FRONT_MAX)]

    def _again(
        self, dataset: Dataset, best: Sequence[SearchTrial], progress: ProgressCallback | None
    ) -> tuple[list[SearchTrial], SweepOutcome]:
        """The best with what other seeds find."""
        seeds = range(self.sweep.seeds + 1, self.sweep.seeds + 1 + AGAIN)
        runs = {
            trial.number: [self.sweep.run({**trial.values, **self.length(False)}, s) for s in seeds]
            for trial in best
        }
        every = [run for own in runs.values() for run in own]
        outcome = carry_out(every, dataset, progress)
        self.read(dataset, every)
        trials = []
        for trial in best:
            results = [self.results(run, trial.values) for run in runs[trial.number]]
            whole = [result for result in results if not isinstance(result, str)]
            found = tuple(goals for goals, _ in whole)
            trials.append(replace(trial, by_seed=found, meets_again=all(m for _, m in whole)))
        return trials, outcome


class _Batch:
    """Combinations that are run at once: shortened first, then seed by seed, without those that
    are poor so far."""

    def __init__(
        self, search: Search, dataset: Dataset, study: Any, asked: Sequence[Any], first: int
    ) -> None:
        self._search, self._dataset, self._study = search, dataset, study
        self._asked = {first + place: trial for place, trial in enumerate(asked)}
        self.done: list[SearchTrial] = [
            SearchTrial(number, search.values(trial)) for number, trial in self._asked.items()
        ]
        self.ran = self.before = 0

    def carry_out(self, progress: ProgressCallback | None) -> list[SearchTrial]:
        """Runs and tells Optuna; the trials in their order."""
        search = self._search
        for place, trial in enumerate(self.done):
            if not search.sweep.meets(trial.values):
                self.done[place] = replace(trial, fate="does not meet --where")
        short = [(True, 1)] if search.short_s is not None else []
        steps = [*short, *((False, seed) for seed in range(1, search.sweep.seeds + 1))]
        results: dict[int, list[Judgement]] = {}
        for step, (is_short, seed) in enumerate(steps):
            self._step(step, is_short, seed, results, stage(progress, step, len(steps)))
        return [self._told(trial, results.get(trial.number, [])) for trial in self.done]

    def _step(
        self,
        step: int,
        short: bool,
        seed: int,
        results: dict[int, list[Judgement]],
        progress: ProgressCallback | None,
    ) -> None:
        search = self._search
        left = {place: trial for place, trial in enumerate(self.done) if not trial.fate}
        runs: dict[int, SweepRun] = {}
        for place, search_trial in left.items():
            try:
                runs[place] = search.sweep.run(
                    {**search_trial.values, **search.length(short)}, seed
                )
            except InputError as error:
                self.done[place] = replace(search_trial, fate=error.message)
        outcome = carry_out(runs.values(), self._dataset, progress)
        self.ran, self.before = self.ran + outcome.ran, self.before + outcome.before
        why = {run.key: error.message for run, error in outcome.failed}
        search.read(self._dataset, list(runs.values()))
        for place, run in runs.items():
            search_trial = left[place]
            found = search.results(run, search_trial.values)
            if isinstance(found, str):
                self.done[place] = replace(search_trial, fate=why.get(run.key, found))
                continue
            if not short:
                results.setdefault(search_trial.number, []).append(found)
                self.done[place] = search_trial = replace(
                    search_trial, keys=(*search_trial.keys, run.key)
                )
            if len(search.goals) == 1:
                trial = self._asked[search_trial.number]
                trial.report(found[0][0], step)
                if trial.should_prune():
                    self.done[place] = replace(
                        search_trial, fate="poor" + " when shortened" * short
                    )

    def _told(self, search_trial: SearchTrial, results: Sequence[Judgement]) -> SearchTrial:
        """The trial with what came of it, of which Optuna is told."""
        from optuna.trial import TrialState

        trial = self._asked[search_trial.number]
        if search_trial.fate:
            pruned = search_trial.fate.startswith("poor")
            self._study.tell(trial, state=TrialState.PRUNED if pruned else TrialState.FAIL)
            return search_trial
        found, meets = _means([goals for goals, _ in results]), all(met for _, met in results)
        if self._search.conditions:
            trial.set_constraint("target", 0.0 if meets else 1.0)
        self._study.tell(trial, list(found))
        return replace(search_trial, found=found, meets=meets)


def _costs(goals: Sequence[Goal], found: Sequence[float]) -> tuple[float, ...]:
    return tuple(-x if one.higher else x for one, x in zip(goals, found, strict=True))


def _surpasses(goals: Sequence[Goal], found: Sequence[float], other: Sequence[float]) -> bool:
    """Whether one is nowhere worse and somewhere better."""
    a, b = _costs(goals, found), _costs(goals, other)
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))


def _means(runs: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """The mean of each goal."""
    return tuple(statistics.fmean(goals) for goals in zip(*runs, strict=True))


def _short_s(sweep: Sweep) -> int | None:
    """How long a shortened run of the jobs is; None where they cannot be shortened alike."""
    keys = {axis.key for axis in sweep.axes}
    if keys & {RUNTIME, "trace"} or "include " in sweep.job.text:
        return None
    lengths = {one["runtime_s"] for one in sweep.job.read()["jobs"]}
    whole = lengths.pop() if len(lengths) == 1 else None
    if not whole or whole % SHORTER or whole // SHORTER < SHORT_MIN_S:
        return None
    return int(whole) // SHORTER
