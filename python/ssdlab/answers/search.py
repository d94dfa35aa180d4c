"""A search as an answer: the best, what other seeds find of it, and what it was chosen from."""

from __future__ import annotations

from collections.abc import Sequence

from ssdlab import units
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
from ssdlab.sweeps.measures import Goal, unit
from ssdlab.sweeps.search import RUNTIME, Found, Trial

FATES_MAX = 10
_SHOWN = {"ns": ("us", 1e-3), "B": ("GB", 1e-9)}
"""Units of the table, and for people."""


def answer(found: Found, where: str | None) -> Answer:
    """``where`` is the folder of the table; None where that is not kept."""
    what = units.listed([_said(one) for one in found.goals])
    under = f" with {' and '.join(found.conditions)}" if found.conditions else ""
    best = found.best[0] if found.best else None
    numbers = [] if best is None else list(_numbers(found, best))
    lead = Section(
        [_sentence(found), _count(found)],
        numbers=numbers if len(found.goals) == 1 else (),
        tables=[_table(found), *_fates(found)],
        figures=_figures(found),
        key="search",
        title="The best",
        verdict=Verdict("found" if found.best else "none", _verdict(found)),
    )
    notes = []
    if where is not None:
        notes = [f"Every run: polars.scan_parquet('{where}/summary/*.parquet')."]
    if found.shortened:
        notes.append(f"In the table {RUNTIME} tells shortened runs from whole ones.")
    title = f"Search for {what}{under}"
    return Answer(title, "sweep", [lead], notes=notes, data=_document(found, where))


def _said(one: Goal) -> str:
    return f"{'highest' if one.higher else 'lowest'} {one.name}"


def _verdict(found: Found) -> dict[str, float | str | None]:
    said: dict[str, float | str | None] = {"trials": float(len(found.trials))}
    if found.best:
        said |= {o.name: x for o, x in zip(found.goals, found.best[0].found, strict=True)}
        said |= found.best[0].values
    return said


def _sentence(found: Found) -> str:
    if not found.best:
        return f"None of {len(found.trials)} combinations meets {' and '.join(found.conditions)}"
    if len(found.goals) > 1:
        return (
            f"{len(found.best)} combinations are surpassed by no other in "
            f"{units.listed([one.name for one in found.goals])}"
        )
    best, (goal,) = found.best[0], found.goals
    keys = ", ".join(f"{key} {value}" for key, value in best.values.items())
    said = f"{goal.name} {_text(goal, best.found[0])} with {keys}"
    if best.again:
        said += f"; {_text(goal, best.again[0])} with other seeds"
        said += "" if best.meets_again else ", which miss the target"
    return said


def _text(goal: Goal, value: float) -> str:
    return units.with_unit(value, unit(goal.name))


def _count(found: Found) -> str:
    judged = sum(bool(one.found) for one in found.trials)
    met = sum(one.meets for one in found.trials)
    broken = sum(one.fate.startswith("poor") for one in found.trials)
    said = f"{len(found.trials)} combinations tried, {judged} to the end"
    said += f", {broken} broken off as poor" if broken else ""
    said += f", {met} meet the target" if found.conditions else ""
    said += f": {found.ran:,} runs now"
    return said + (f", {found.before:,} done before" if found.before else "")


def _numbers(found: Found, best: Trial) -> Sequence[Number]:
    shown: list[Number] = []
    for place, goal in enumerate(found.goals):
        better: Better = "higher" if goal.higher else "lower"
        for about, values in (("", best.found), (" with other seeds", best.again)):
            value = values[place] if values else None
            shown.append(Number(f"{goal.name}{about}", value, unit(goal.name), better))
    return shown


def _table(found: Found) -> Table:
    columns = [Column(key) for key in _keys(found)]
    scales = []
    for goal in found.goals:
        kind, factor = _SHOWN.get(unit(goal.name), (unit(goal.name), 1.0))
        scales.append(factor)
        columns += [Column(goal.name, kind), Column(f"{goal.name} again", kind)]
    columns += [Column("meets the target again")] if found.conditions else []
    rows: list[Cells] = []
    for one in found.best:
        row: Cells = [one.values[key] for key in _keys(found)]
        for place, factor in enumerate(scales):
            row.append(Cell(factor * one.found[place]))
            row.append(Cell(factor * one.again[place] if one.again else None))
        row += [("yes" if one.meets_again else "no")] if found.conditions else []
        rows.append(row)
    title = "The best" if len(found.goals) == 1 else "Pareto front"
    return Table(title, columns, rows, "Again: the mean over seeds that the search did not see.")


def _keys(found: Found) -> list[str]:
    return [one.key for one in found.sweep.axes if one.key != RUNTIME or not found.shortened]


def _fates(found: Found) -> list[Table]:
    fates = [one for one in found.trials if one.fate and not one.fate.startswith("poor")]
    if not fates:
        return []
    rows = [
        [", ".join(f"{key}={value}" for key, value in one.values.items()), one.fate]
        for one in fates[:FATES_MAX]
    ]
    more = len(fates) - FATES_MAX
    note = f"{more:,} more in the document of --json." if more > 0 else ""
    return [Table("Not judged", [Column("combination"), Column("why")], rows, note)]


def _figures(found: Found) -> list[Figure]:
    judged = [one for one in found.trials if one.found]
    if not judged:
        return []
    if len(found.goals) == 1:
        return [_course(found, judged)]
    return [_front(found, judged, 0, other) for other in range(1, len(found.goals))]


def _course(found: Found, judged: Sequence[Trial]) -> Figure:
    """Each combination in the order of the search, and the best so far."""
    (goal,) = found.goals
    kind, factor = _SHOWN.get(unit(goal.name), (unit(goal.name), 1.0))
    best: list[tuple[float, float]] = []
    for one in judged:
        value = factor * one.found[0]
        if one.meets and (not best or (value > best[-1][1]) == goal.higher):
            best.append((float(one.number + 1), value))
    curves = []
    for name, meets in (("combination", True), ("misses the target", False)):
        own = [one for one in judged if one.meets is meets]
        x, y = [one.number + 1.0 for one in own], [factor * one.found[0] for one in own]
        curves.append(Curve(name, x, y, "dots", 0 if meets else 5))
    best += [(float(len(found.trials)), best[-1][1])] if best else []
    curves.append(Curve("best so far", [x for x, _ in best], [y for _, y in best], "steps", 1))
    label = f"{goal.name}, {kind}" if kind and kind != goal.name.upper() else goal.name
    shown = [one for one in curves if one.x]
    return Figure("Course of the search", "combination", label, shown, wide=True)


def _front(found: Found, judged: Sequence[Trial], one: int, other: int) -> Figure:
    """What was found of two goals, and what no other surpasses."""
    scales = [_SHOWN.get(unit(goal.name), (unit(goal.name), 1.0)) for goal in found.goals]
    heads = [
        f"{goal.name}, {kind}" if kind else goal.name
        for goal, (kind, _) in zip(found.goals, scales, strict=True)
    ]

    def points(name: str, trials: Sequence[Trial], style: Style, colour: int) -> Curve:
        own = sorted(trials, key=lambda trial: trial.found[one])
        x = [scales[one][1] * trial.found[one] for trial in own]
        y = [scales[other][1] * trial.found[other] for trial in own]
        return Curve(name, x, y, style, colour)

    curves = [
        points("meets the target" if found.conditions else "combination",
               [t for t in judged if t.meets], "dots", 0),
        points("misses the target", [t for t in judged if not t.meets], "dots", 5),
        points("Pareto front", found.best, "points" if len(found.goals) == 2 else "published", 1),
    ]  # fmt: skip
    shown = [curve for curve in curves if curve.x]
    return Figure(
        f"{heads[other]} against {heads[one]}", heads[one], heads[other], shown, wide=True
    )


def _document(found: Found, where: str | None) -> dict[str, object]:
    return {
        "goals": [{"measure": one.measure, "higher": one.higher} for one in found.goals],
        "conditions": list(found.conditions),
        "ran": found.ran,
        "done_before": found.before,
        "trials": [_trial(found, one) for one in found.trials],
        "best": [one.number for one in found.best],
        "summary": None if where is None else f"{where}/summary",
    }


def _trial(found: Found, one: Trial) -> dict[str, object]:
    names = [goal.measure for goal in found.goals]
    return {
        "number": one.number,
        "values": dict(one.values),
        "found": dict(zip(names, one.found, strict=False)),
        "meets": one.meets,
        "again": dict(zip(names, one.again, strict=False)),
        "meets_again": one.meets_again,
        "fate": one.fate,
        "keys": list(one.keys),
    }
