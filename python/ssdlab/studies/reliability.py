"""A study of how safe arrays keep data: levels and ways of wearing beside each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any

from ssdlab import bench, units
from ssdlab.analysis.endurance import WearOut
from ssdlab.analysis.losses import RANDOM, UNREADABLE, WORN, Chance, Losses, check, simulate
from ssdlab.analysis.reliability import (
    HOURS_PER_YEAR,
    LEVELS,
    Array,
    Hazards,
    mttdl_hours,
    p_loss,
    usual_mttdl_hours,
)
from ssdlab.answer import Curve, Figure, finite
from ssdlab.errors import InputError
from ssdlab.progress import Progress, ProgressCallback, stage
from ssdlab.rating import UBER

RARE = 100
"""With fewer losses than this among the lives, failures are made frequent."""
POINTS = 40
"""Of a curve over the years."""
STAGGER = 0.1
STAGGER_SPAN = 0.6
"""Where no ages are asked for, neighbours differ by a tenth of their rating, all of them by less
than this."""
SPREAD = 0.05
MODEL_SPREAD = 0.2
"""By how much endurance differs between drives of one model, and between models. Assumed."""
RENEW_AT = 0.8
MODELS = 2
EACH_MAX = 8
"""So many models can be had for one array."""
COUNTS = 0.05
"""Shares of losses and chances of wearing out below this are not spoken of."""
TOLD_MAX = 3
"""So many ways of wearing are told of at most."""
MATTERS = 1.5
"""A factor between chances from which a sentence calls one better, if their intervals agree."""
CAUSES = {RANDOM: "random failures", WORN: "wear", UNREADABLE: "read errors in rebuilds"}


@dataclass(frozen=True)
class Question:
    """What is asked. Raises InputError where values are out of range or do not fit each other."""

    members: int
    capacity_bytes: float
    levels: Sequence[str] = ()
    """All that so many members can be, but for RAID 1 of more than three."""
    copies: int = 2
    failures_per_year: float = 0.01
    """Of a member."""
    uber: float = UBER
    uber_source: str = ""
    """Whose read errors these are, where a drive was given and not they."""
    rebuild_bytes_per_s: float = 204.8e6
    replace_hours: float = 24.0
    one_at_a_time: bool = False
    years: float = 5.0
    tbw_bytes: float | None = None
    tbw_source: str = ""
    """Who says so, where it was not asked for."""
    writes_per_day_bytes: float | None = None
    """Of the host, to the array."""
    full_stripes: bool = False
    stagger: Sequence[float] = ()
    """Share of the rating written at the beginning: a step from member to member, or one each."""
    models: int | None = None
    spread: float = SPREAD
    model_spread: float = MODEL_SPREAD
    renew_at: float | None = None
    runs: int = 50_000
    seed: int = 0

    def arrays(self) -> list[Array]:
        """The arrays to compare."""
        if self.levels:
            return [self._array(level) for level in dict.fromkeys(self.levels)]
        found = []
        for level in LEVELS:
            if level == "1" and self.members > 3:
                continue
            try:
                found.append(self._array(level))
            except InputError:
                continue
        return found or [self._array("0")]

    def _array(self, level: str) -> Array:
        return Array(level, self.members, self.capacity_bytes, self.copies)

    def hazards(self) -> Hazards:
        """What happens to members whatever their age."""
        if not (math.isfinite(self.rebuild_bytes_per_s) and self.rebuild_bytes_per_s > 0):
            rate = f"{self.rebuild_bytes_per_s:g}"
            raise InputError(f"--rebuild-rate {rate}: expected more than 0 bytes per second")
        if not (math.isfinite(self.replace_hours) and self.replace_hours >= 0):
            raise InputError(f"--replace-after {self.replace_hours:g}: expected 0 hours or more")
        rebuild_hours = self.capacity_bytes / self.rebuild_bytes_per_s / 3600
        return Hazards(
            self.failures_per_year / HOURS_PER_YEAR,
            self.replace_hours + rebuild_hours,
            self.uber,
            self.one_at_a_time,
        )

    @property
    def worn(self) -> bool:
        """Whether wear is looked at."""
        return self.tbw_bytes is not None and self.writes_per_day_bytes is not None

    def ages(self) -> tuple[float, ...]:
        """Shares of the rating already written where ages are staggered."""
        if len(self.stagger) > 1:
            return tuple(self.stagger)
        most = STAGGER_SPAN / max(1, self.members - 1)
        step = self.stagger[0] if self.stagger else min(STAGGER, most)
        return tuple(step * place for place in range(self.members))

    def policies(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Ways to have members wear: a name, and what of `WearOut` it sets."""
        ages, models = self.ages(), self.models or min(MODELS, self.members)
        step = (
            f"by {100 * ages[1]:.3g} %" if len(self.stagger) < 2 and len(ages) > 1 else "as given"
        )
        renew = RENEW_AT if self.renew_at is None else self.renew_at
        yield "new together, one model", {}
        if self.members > 1:
            yield f"ages staggered {step}", {"start": ages}
        if models > 1:
            yield f"{models} models", {"models": models}
            yield f"staggered and {models} models", {"start": ages, "models": models}
        if self.models is None and models < self.members <= EACH_MAX:
            yield "a model of its own each", {"models": self.members}
        yield f"renewed at {100 * renew:.3g} % of the rating", {"renew_at": renew}
        if self.renew_at is not None and len(self.asked()) > 1:
            yield "all that was asked", self.asked()

    def asked(self) -> dict[str, Any]:
        """What of `WearOut` was asked for: one of the policies sets just this."""
        own: dict[str, Any] = {}
        if self.stagger and self.members > 1:
            own["start"] = self.ages()
        if (self.models or 1) > 1:
            own["models"] = self.models
        if self.renew_at is not None:
            own["renew_at"] = self.renew_at
        return own

    def wear(self, array: Array, **own: Any) -> WearOut:
        """How the members of an array wear."""
        written = (self.writes_per_day_bytes or 0.0) * array.written_share(
            full_stripes=self.full_stripes
        )
        known = {"spread": self.spread, "model_spread": self.model_spread}
        return WearOut(self.tbw_bytes or 0.0, written, **(known | own))


@dataclass(frozen=True)
class Simulated:
    """Chances found by simulation."""

    whole: Chance
    """Of losing data within the years asked for."""
    at_most: float
    """Its upper end (95 %), by plain counting where weighed losses carry no interval."""
    causes: dict[str, float]
    """The same by what the last blow was."""
    accelerated: bool
    curve: tuple[Chance, ...]
    """At `Study.years`."""


@dataclass(frozen=True)
class Level:
    """A level where members fail at random only: closed form beside simulation."""

    array: Array
    mttdl_years: float
    usual_years: float
    curve: tuple[float, ...]
    """The chance of loss at `Study.years`, by the closed form."""
    simulated: Simulated
    rated_years: float | None
    """How long the rating lasts a new member; None without wear."""

    @property
    def name(self) -> str:
        """The name of the level."""
        return f"RAID {self.array.level}"

    @property
    def chance(self) -> float:
        """Of losing data within the years asked for."""
        return self.curve[-1]

    @property
    def usual_error(self) -> float:
        """How far the usual formula is off: 0.1 where it promises 10 % more; nan where neither
        ends."""
        if math.isinf(self.mttdl_years):
            return math.nan
        return self.usual_years / self.mttdl_years - 1

    def as_json(self) -> dict[str, Any]:
        """The object of ``--json``."""
        return {
            "level": self.array.level,
            "usable_bytes": self.array.usable_bytes,
            "mttdl_years": finite(self.mttdl_years),
            "mttdl_years_usual_formula": finite(self.usual_years),
            "usual_formula_error": finite(self.usual_error),
            "p_loss": self.chance,
            "p_loss_curve": list(self.curve),
            "simulated": asdict(self.simulated),
            "rating_lasts_years": finite(self.rated_years),
        }


@dataclass(frozen=True)
class WearCase:
    """A way of wearing at every level."""

    name: str
    alike: bool
    """Whether all drives of a model wear out at the same number of bytes."""
    simulated: tuple[Simulated, ...]
    """By level."""
    asked: bool
    """Whether it is the one that was asked for, its spread too."""


@dataclass(frozen=True)
class Study:
    """The answer."""

    question: Question
    hazards: Hazards
    years: tuple[float, ...]
    """Of the curves."""
    levels: tuple[Level, ...]
    worn: tuple[WearCase, ...]

    @cached_property
    def ranked(self) -> Sequence[tuple[Level, Simulated | None]]:
        """The levels with their lives in the wear asked for, None without wear; safest first."""
        asked = next((case.simulated for case in self.worn if case.asked), None)
        lives = [None] * len(self.levels) if asked is None else asked
        return sorted(zip(self.levels, lives, strict=True), key=lambda pair: _whole(*pair))

    @property
    def chances(self) -> Sequence[tuple[Level, float]]:
        """The levels and their chances of losing data by all that was asked for, safest first."""
        return [(level, _whole(level, lives)) for level, lives in self.ranked]

    @cached_property
    def sentences(self) -> Sequence[str]:
        """The answer in words."""
        return list(_sentences(self))

    def document(self) -> dict[str, Any]:
        """All of it, for scripts; what never ends is null."""
        names = [level.array.level for level in self.levels]
        return {
            "sentences": self.sentences,
            "question": asdict(self.question),
            "repair_hours": self.hazards.repair_hours,
            "years": list(self.years),
            "levels": [level.as_json() for level in self.levels],
            "wear": [
                {
                    "policy": case.name,
                    "drives_of_a_model_alike": case.alike,
                    "levels": dict(zip(names, map(asdict, case.simulated), strict=True)),
                }
                for case in self.worn
            ],
        }

    def figures(self) -> list[Figure]:
        """Charts of the chance of loss over time."""
        label, axis = "P(loss)", "years"
        curves = []
        for colour, one in enumerate(self.levels):
            drawn = [chance.value for chance in one.simulated.curve]
            curves.append(Curve(one.name, self.years, one.curve, "line", colour))
            curves.append(Curve(f"{one.name}, simulated", self.years, drawn, "dots", colour))
        found = [Figure("Random failures alone", axis, label, curves, log_y=True, wide=True)]
        asked = next((case for case in self.worn if case.asked), None)
        if asked is not None:  # what the answer is of stands first
            worn = [
                Curve(one.name, self.years, [chance.value for chance in lives.curve], "line", place)
                for place, (one, lives) in enumerate(zip(self.levels, asked.simulated, strict=True))
            ]
            title = f"With wear: {asked.name}"
            found.insert(0, Figure(title, axis, label, worn, log_y=True, wide=True))
        names = list(dict.fromkeys(case.name for case in self.worn))
        for place, level in enumerate(self.levels if self.worn else ()):
            if level.array.tolerance == 0:
                continue  # Each drive counts by itself, whatever the others do.
            policies = [
                Curve(
                    f"{case.name}, no spread" if case.alike else case.name,
                    self.years,
                    [chance.value for chance in case.simulated[place].curve],
                    "dashed" if case.alike else "line",
                    names.index(case.name),
                )
                for case in self.worn
            ]
            title = f"{level.name} with wear"
            found.append(Figure(title, axis, label, policies, log_y=True, wide=True))
        return found


def study(question: Question, progress: ProgressCallback | None = None) -> Study:
    """Answers a question; InputError where values are out of range or do not fit each other,
    Interrupted."""
    arrays, hazards = question.arrays(), question.hazards()
    if not (math.isfinite(question.years) and 0 < question.years <= 1000):
        raise InputError(
            f"--years {question.years:g}: expected a time above 0 and at most 1000 years"
        )
    years = tuple(question.years * (n + 1) / POINTS for n in range(POINTS))
    cases = [
        (name, spread == 0, own | {"spread": spread})
        for spread in ((question.spread, 0.0) if question.spread else (0.0,))
        for name, own in (question.policies() if question.worn else ())
    ]

    def lives(array: Array, wear: WearOut | None = None) -> bench.Variant[Simulated]:
        if wear is not None:
            check(array, wear)

        # Ages that cannot be are found out first.
        run = partial(_simulated, question, array, hazards, years, wear)
        return bench.Variant(run, 2.0 if wear is not None and wear.start else 1.0)

    variants = [lives(array) for array in arrays]
    variants += [
        lives(array, question.wear(array, **own)) for _, _, own in cases for array in arrays
    ]
    simulateds = iter(bench.run(variants, progress))
    levels = tuple(
        Level(
            array,
            mttdl_hours(array, hazards) / HOURS_PER_YEAR,
            usual_mttdl_hours(array, hazards) / HOURS_PER_YEAR,
            tuple(p_loss(array, hazards, year * HOURS_PER_YEAR) for year in years),
            next(simulateds),
            question.wear(array).rated_years if cases else None,
        )
        for array in arrays
    )
    worn = tuple(
        WearCase(
            name,
            alike,
            tuple(next(simulateds) for _ in arrays),
            own == question.asked() | {"spread": question.spread},
        )
        for name, alike, own in cases
    )
    return Study(question, hazards, years, levels, worn)


def _simulated(
    question: Question, array: Array, hazards: Hazards, years: Sequence[float],
    wear: WearOut | None, seat: bench.Seat,
) -> Simulated:  # fmt: skip
    """Lives as they are; where they seldom end in loss, lives in which it is made frequent."""

    def lives(accelerated: bool) -> Losses:
        report = stage(seat.report, accelerated, 2)
        return simulate(
            array,
            hazards,
            years[-1],
            runs=question.runs,
            seed=question.seed,
            wear=wear,
            accelerated=accelerated,
            going=lambda done: report(Progress(done)),
        )

    losses = counted = lives(False)
    if len(counted.hours) < RARE:
        losses = lives(True)
    end = years[-1] * HOURS_PER_YEAR
    whole = losses.by(end)
    # Both upper ends hold; where a weighed life might be heavy, that of plain counting is lower.
    at_most = max(whole.value, counted.by(end).high)
    if whole.carried:
        at_most = min(max(whole.value, whole.high), at_most)
        whole = replace(whole, high=at_most)
    return Simulated(
        whole,
        at_most,
        {name: losses.by(end, cause).value for cause, name in CAUSES.items()},
        losses.accelerated,
        tuple(losses.by(year * HOURS_PER_YEAR) for year in years),
    )


# --- in words


def _sentences(found: Study) -> Iterator[str]:
    question = found.question
    told = [
        (level.name, _seen(lives) if lives else chance_text(level.chance))
        for level, lives in found.ranked
    ]
    within = f"{question.years:g} years"
    (best, chance), others = told[0], told[1:]
    rest = "; ".join(f"{name}: {text}" for name, text in others)
    one = question.members == 1
    drives = "1 drive that fails" if one else f"{question.members} drives that fail"
    worn = (" and wears out" if one else " and wear out") if found.worn else ""
    yield (
        f"Of {drives} at random{worn}, {best} loses data within {within} "
        f"with a chance of {chance}{f' ({rest})' if rest else ''}."
    )
    if found.worn:
        alone = "; ".join(f"{level.name}: {chance_text(level.chance)}" for level, _ in found.ranked)
        yield f"Without wear, by random failures alone: {alone}."
    shares = [(level, _unreadable_share(level.simulated)) for level in found.levels]
    if unread := [(level, share) for level, share in shares if share > 0.5]:
        named = ", ".join(f"{level.name} ({units.percent(share)})" for level, share in unread)
        factors = [level.usual_years / level.mttdl_years for level, _ in unread]
        span = " to ".join(dict.fromkeys(_times(f) for f in (min(factors), max(factors))))
        yield (
            "Most losses come from an unrecoverable read error (URE) with redundancy "
            f"exhausted: {named}. The usual formula for the mean time to data loss leaves that "
            "out and "
            f"promises {span} times too much."
        )
    if found.worn:
        for place in range(len(found.levels)):
            yield from _wear_sentences(found, place)
    else:
        yield (
            "Wear is left out: equal drives that are written alike also wear out together. "
            "--tbw and --writes-per-day put it in."
        )


def _whole(level: Level, lives: Simulated | None) -> float:
    """The chance of losing data; wear takes nothing from that of random failures."""
    return level.chance if lives is None else max(level.chance, lives.whole.value)


def _wear_sentences(found: Study, place: int) -> Iterator[str]:
    level = found.levels[place]
    years = math.inf if level.rated_years is None else level.rated_years
    lasts = f"{years:.3g} years" if math.isfinite(years) else "for ever"
    alike = [case for case in found.worn if case.alike]
    spread = [case for case in found.worn if not case.alike] or alike
    first = spread[0].simulated[place]
    if _hardly_adds(first, max(level.chance, level.simulated.whole.value)):
        text = (
            f"{level.name}: the rating of a new drive lasts {lasts}; wear hardly adds to "
            f"the chance of losing data ({_seen(first)})"
        )
    else:
        text = (
            f"{level.name}: the rating of a new drive lasts {lasts}, and with wear the "
            f"chance of losing data is {_seen(first)}"
        )
    worst = alike[0].simulated[place].whole
    if worst.low > first.at_most and worst.value > MATTERS * first.whole.value:
        text += (
            f"; {chance_text(worst.value)} if all drives of a model wear out at the same "
            "number of bytes"
        )
    yield text + "."
    for known, when in ((spread, ""), (alike, ", of drives that wear out alike")):
        if known is alike and spread is alike and when:
            continue
        yield from _changes(known, place, level.name, when)


def _hardly_adds(worn: Simulated, alone: float) -> bool:
    """Whether wear leaves the chance of losing data as it is of random failures ``alone``. What the
    last blow was does not say: drives that wear out leave a rebuild, which a read error ends."""
    least = worn.whole.low if worn.whole.carried else worn.whole.value
    return worn.causes[CAUSES[WORN]] < COUNTS * worn.whole.value and least <= (1 + COUNTS) * alone


def _changes(known: Sequence[WearCase], place: int, name: str, when: str) -> Iterator[str]:
    """What the other ways of wearing change against the first."""
    first = known[0].simulated[place].whole
    better, worse = [], []
    for case in known[1:]:
        chance = case.simulated[place].whole
        told = (chance.value, f"{case.name}, {_seen(case.simulated[place])}")
        if chance.high < first.low and first.value >= MATTERS * chance.value:
            better.append(told)
        elif chance.low > first.high and chance.value >= MATTERS * first.value:
            worse.append(told)
    if better:
        said = [text for _, text in sorted(better)[:TOLD_MAX]]
        yield f"{name}{when}: what helps most: {'; '.join(said)}."
    if worse:
        said = [text for _, text in sorted(worse, reverse=True)[:TOLD_MAX]]
        yield f"{name}{when}: less safe: {'; '.join(said)}."


def _unreadable_share(simulated: Simulated) -> float:
    """Share of the losses that end by a read error in a rebuild."""
    total = sum(simulated.causes.values())
    return simulated.causes[CAUSES[UNREADABLE]] / total if total else 0.0


def _times(factor: float) -> str:
    return f"{factor:,.0f}" if factor >= 9.95 else f"{factor:.2g}"


def _seen(simulated: Simulated) -> str:
    """A chance that was simulated: where no life showed a loss, that is not zero."""
    if not simulated.whole.value:
        return "none seen"
    return chance_text(simulated.whole.value, rough=not simulated.whole.carried)


def chance_text(chance: float, *, rough: bool = False) -> str:
    """A chance as people say it; ``rough``: about."""
    if chance <= 0:
        return "0"
    if chance >= 0.9995:
        return "more than 99.9 %"
    if chance < 1e-12:
        return "less than 1 in a million million"
    one_in = float(f"{1 / chance:.2g}")
    text = f"{100 * chance:.3g} %" if chance >= 0.01 else f"1 in {one_in:,.0f}"
    return f"about {text}" if rough else text
