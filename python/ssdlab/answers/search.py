"""A search as an answer: the best, what other seeds find of it, and what it was chosen from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ssdlab import units
from ssdlab.analysis.differences import BIN_ERROR, rivals
from ssdlab.analysis.stats import around, variance_of
from ssdlab.answer import (
    Answer,
    Better,
    Cell,
    Cells,
    Column,
    Curve,
    Figure,
    Number,
    Section,
    Style,
    Table,
    Verdict,
)
from ssdlab.answers.sweep import failures
from ssdlab.sweeps.measures import Goal, from_bins, unit
from ssdlab.sweeps.search import RUNTIME, SearchResult, SearchTrial

_SHOWN = {"ns": ("us", 1e-3), "B": ("GB", 1e-9)}
"""Units of the table, and for people."""


def answer(result: SearchResult, where: str | None) -> Answer:
    """``where`` is the folder of the table; None where that is not kept."""
    ways = {True: "highest", False: "lowest"}
    what = units.listed([f"{ways[goal.higher]} {goal.name}" for goal in result.goals])
    under = f" with {' and '.join(result.conditions)}" if result.conditions else ""
    best = result.best[0] if result.best else None
    fates = [(trial.values, trial.fate) for trial in result.trials if trial.fate]
    fates = [one for one in fates if not one[1].startswith("poor")]
    numbers = [] if best is None else list(_numbers(result, best))
    lead = Section(
        [_sentence(result), *_doubts(result), _count(result)],
        numbers=numbers if len(result.goals) == 1 else (),
        tables=[_table(result), *failures("Not judged", fates)],
        figures=_figures(result),
        key="search",
        title="The best",
        verdict=Verdict("found" if result.best else "none", _verdict(result)),
    )
    notes = []
    if where is not None:
        notes = [f"Every run: polars.scan_parquet('{where}/summary/*.parquet')."]
    if result.shortened:
        notes.append(f"In the table {RUNTIME} tells shortened runs from whole ones.")
    title = f"Search for {what}{under}"
    return Answer(title, "sweep", [lead], notes=notes, data=_document(result, where))


def _verdict(result: SearchResult) -> dict[str, float | str | None]:
    said: dict[str, float | str | None] = {"trials": float(len(result.trials))}
    if result.best:
        said |= {o.name: x for o, x in zip(result.goals, result.best[0].found, strict=True)}
        said |= result.best[0].values
    return said


def _sentence(result: SearchResult) -> str:
    if not result.best:
        tried = units.counted(len(result.trials), "combination")
        return f"None of {tried} meets {' and '.join(result.conditions)}"
    if len(result.goals) > 1:
        return (
            f"{units.counted(len(result.best), 'combination')} "
            f"{'is' if len(result.best) == 1 else 'are'} surpassed by no other in "
            f"{units.listed([goal.name for goal in result.goals])}"
        )
    best, (goal,) = result.best[0], result.goals
    said = f"{goal.name} {_text(goal, best.found[0])} with {_keys_of(best)}"
    if best.again:
        said += f"; {_text(goal, best.again[0])} with other seeds"
        said += "" if best.meets_again else ", which miss the target"
    return said


def _doubts(result: SearchResult) -> Iterator[str]:
    """How sure it is that these are the best."""
    best = result.best
    if len(result.goals) > 1:
        if gone := len(result.surpassed):
            yield f"{gone} of them {'is' if gone == 1 else 'are'} surpassed with other seeds"
        return
    if not best or not best[0].again:
        return
    others = [trial for trial in best[1:] if trial.again]
    runs = [[goal for (goal,) in trial.by_seed] for trial in (best[0], *others)]
    (goal,) = result.goals
    coarse = BIN_ERROR if from_bins(goal.name) else 0.0
    found = rivals(runs[0], runs[1:], coarse)
    told = [
        f"{_keys_of(trial)} {difference.told}"
        for trial, difference in zip(others, found, strict=True)
        if difference is not None
    ]
    if told:
        worse = [one is not None and one.verdict(_better(goal)) == "worse" for one in found]
        other = "" if all(worse) else ": another seed may choose otherwise"
        yield (
            f"With {len(runs[0])} other seeds the next best differ from it by (with 95 % "
            f"intervals): {units.listed(told)}{other}"
        )
    yield from _as_near(result, runs, coarse)


def _as_near(result: SearchResult, runs: Sequence[Sequence[float]], coarse: float) -> Iterator[str]:
    """How many more are as good as the best for all that can be told, by how much seeds change."""
    best = result.best[0].found[0]
    df = sum(len(own) - 1 for own in runs)
    if df < 1 or best <= 0 or min(map(min, runs)) <= 0:
        return
    squares = [(len(own) - 1) * variance_of(list(map(math.log, own))) for own in runs]
    spread = sum(squares) / df / result.sweep.seeds
    near = math.exp(around(0.0, math.sqrt(2 * (spread + coarse**2)), df).high)
    shown = {tuple(trial.values.items()) for trial in result.best}
    met = {tuple(t.values.items()): t.found[0] for t in result.trials if t.found and t.meets}
    others = [value for values, value in met.items() if values not in shown]
    if more := sum(best / near <= value <= best * near for value in others):
        within = f"came within {units.percent(near - 1)} of it, no more than another seed changes"
        came = f"{'is' if more == 1 else 'are'} as good" if near == 1 else within
        yield f"{units.counted(more, 'more combination')} {came}"


def _text(goal: Goal, value: float) -> str:
    return units.with_unit(value, unit(goal.name))


def _keys_of(trial: SearchTrial) -> str:
    return ", ".join(f"{key} {value}" for key, value in trial.values.items())


def _better(goal: Goal) -> Better:
    return "higher" if goal.higher else "lower"


def _count(result: SearchResult) -> str:
    judged = sum(bool(trial.found) for trial in result.trials)
    met = sum(trial.meets for trial in result.trials)
    broken = sum(trial.fate.startswith("poor") for trial in result.trials)
    said = f"{units.counted(len(result.trials), 'combination')} tried, {judged} to the end"
    said += f", {broken} broken off as poor" if broken else ""
    said += f", {met} meet the target" if result.conditions else ""
    said += f": {units.counted(result.ran, 'run')} now"
    return said + (f", {result.before:,} done before" if result.before else "")


def _numbers(result: SearchResult, best: SearchTrial) -> Sequence[Number]:
    shown: list[Number] = []
    for place, goal in enumerate(result.goals):
        for about, values in (("", best.found), (" with other seeds", best.again)):
            value = values[place] if values else None
            shown.append(Number(f"{goal.name}{about}", value, unit(goal.name), _better(goal)))
    return shown


def _table(result: SearchResult) -> Table:
    columns = [Column(key) for key in _keys(result)]
    scales = []
    for goal in result.goals:
        kind, factor = _SHOWN.get(unit(goal.name), (unit(goal.name), 1.0))
        scales.append(factor)
        columns += [Column(goal.name, kind), Column(f"{goal.name} again", kind)]
    columns += [Column("meets the target again")] if result.conditions else []
    rows: list[Cells] = []
    for trial in result.best:
        row: Cells = [trial.values[key] for key in _keys(result)]
        for place, factor in enumerate(scales):
            row.append(Cell(factor * trial.found[place]))
            row.append(Cell(factor * trial.again[place] if trial.again else None))
        row += [("yes" if trial.meets_again else "no")] if result.conditions else []
        rows.append(row)
    title = "The best" if len(result.goals) == 1 else "Pareto front"
    return Table(title, columns, rows, "Again: the mean over seeds that the search did not see.")


def _keys(result: SearchResult) -> list[str]:
    return [axis.key for axis in result.sweep.axes if axis.key != RUNTIME or not result.shortened]


def _figures(result: SearchResult) -> list[Figure]:
    judged = [trial for trial in result.trials if trial.found]
    if not judged:
        return []
    if len(result.goals) == 1:
        return [_course(result, judged)]
    return [_front(result, judged, 0, other) for other in range(1, len(result.goals))]


def _course(result: SearchResult, judged: Sequence[SearchTrial]) -> Figure:
    """Each combination in the order of the search, and the best so far."""
    (goal,) = result.goals
    kind, factor = _SHOWN.get(unit(goal.name), (unit(goal.name), 1.0))
    best: list[tuple[float, float]] = []
    for trial in judged:
        value = factor * trial.found[0]
        if trial.meets and (not best or (value > best[-1][1]) == goal.higher):
            best.append((float(trial.number + 1), value))
    curves = []
    for name, meets in (("combination", True), ("misses the target", False)):
        own = [trial for trial in judged if trial.meets is meets]
        x, y = [trial.number + 1.0 for trial in own], [factor * trial.found[0] for trial in own]
        curves.append(Curve(name, x, y, "dots", 0 if meets else 5))
    best += [(float(len(result.trials)), best[-1][1])] if best else []
    curves.append(Curve("best so far", [x for x, _ in best], [y for _, y in best], "steps", 1))
    label = f"{goal.name}, {kind}" if kind and kind != goal.name.upper() else goal.name
    shown = [curve for curve in curves if curve.x]
    return Figure("Course of the search", "combination", label, shown, wide=True)


def _front(result: SearchResult, judged: Sequence[SearchTrial], one: int, other: int) -> Figure:
    """What was found of two goals, and what no other surpasses."""
    scales = [_SHOWN.get(unit(goal.name), (unit(goal.name), 1.0)) for goal in result.goals]
    heads = [
        f"{goal.name}, {kind}" if kind else goal.name
        for goal, (kind, _) in zip(result.goals, scales, strict=True)
    ]

    def points(name: str, trials: Sequence[SearchTrial], style: Style, colour: int) -> Curve:
        own = sorted(trials, key=lambda trial: trial.found[one])
        x = [scales[one][1] * trial.found[one] for trial in own]
        y = [scales[other][1] * trial.found[other] for trial in own]
        return Curve(name, x, y, style, colour)

    curves = [
        points("meets the target" if result.conditions else "combination",
               [t for t in judged if t.meets], "dots", 0),
        points("misses the target", [t for t in judged if not t.meets], "dots", 5),
        points("Pareto front", result.best, "points" if len(result.goals) == 2 else "published", 1),
    ]  # fmt: skip
    shown = [curve for curve in curves if curve.x]
    return Figure(
        f"{heads[other]} against {heads[one]}", heads[one], heads[other], shown, wide=True
    )


def _document(result: SearchResult, where: str | None) -> dict[str, object]:
    return {
        "goals": [{"measure": goal.measure, "higher": goal.higher} for goal in result.goals],
        "conditions": list(result.conditions),
        "ran": result.ran,
        "done_before": result.before,
        "trials": [_trial(result, trial) for trial in result.trials],
        "best": [trial.number for trial in result.best],
        "summary": None if where is None else f"{where}/summary",
    }


def _trial(result: SearchResult, trial: SearchTrial) -> dict[str, object]:
    names = [goal.measure for goal in result.goals]
    return {
        "number": trial.number,
        "values": dict(trial.values),
        "found": dict(zip(names, trial.found, strict=False)),
        "meets": trial.meets,
        "again": dict(zip(names, trial.again, strict=False)),
        "meets_again": trial.meets_again,
        "fate": trial.fate,
        "keys": list(trial.keys),
    }
