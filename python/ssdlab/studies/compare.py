"""Runs beside each other: what differs between them, by how much, and whether that can be seen.

Sides are runs, or repeats of one run taken together. Ordinary runs are compared by what their jobs
did, runs of a protocol by its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ssdlab import checks, units
from ssdlab.analysis.differences import (
    NONE_SEEN,
    THROUGHPUT,
    UNMEASURED,
    ComparedQuantity,
    Difference,
    DifferenceRow,
    NoisyValue,
    compare,
    quantities,
)
from ssdlab.answer import Better, Cell, Cells, Check, any_doubt
from ssdlab.engine import findings
from ssdlab.engine.findings import ProtocolRun
from ssdlab.errors import InputError
from ssdlab.results import Result
from ssdlab.store import RunStore, open_run
from ssdlab.store.folder import RunFolder

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Names of the sides in tables."""
SHORT = 24
"""A fact of so many characters can stand in a label."""
NAMED = 3
"""So many differences are named in a sentence."""
NOT_KNOWN = "noise not known"
STATE = "state at the start"
"""The fact of how a simulated drive was prepared."""
DIVISOR = "durations divided by"
NOT_TOLD = (None, "as found")
"""What real drives say of that."""

METHOD_SINGLE = (
    "Differences are to {first}. Intervals (95 %) are those of the run's own seconds: blocks of "
    "neighbouring seconds drawn again (circular block bootstrap), since neighbours are alike. They "
    "know nothing of how one run differs from the next; only repeats do (RUN,RUN)."
)
METHOD_REPEATS = (
    "Differences are to {first}. Intervals (95 %) come from the spread between repeats (Welch's "
    "test on logarithms)."
)
METHOD_HOLM = (
    "Significance is corrected for the number of comparisons (Holm, 5 %); "
    "“perhaps” would count if it were the only one."
)

Facts = Mapping[str, object]


@dataclass(frozen=True)
class Contender:
    """A run as it is compared: of a job file (``result``), or of a protocol (``test``)."""

    name: str
    """In the store."""
    target: str
    """With the capacity of a simulated drive that the run made smaller."""
    identity: tuple[object, ...]
    """Equal for repeats of the same."""
    facts: Mapping[str, str]
    """What was run on what, by name."""
    checks: Sequence[Check]
    result: Result | None = field(repr=False, default=None)
    test: ProtocolRun | None = field(repr=False, default=None)

    def doubted(self, name: str) -> bool:
        """Whether the number ``name`` carries a mark."""
        if self.test is None:
            return any_doubt(self.checks)
        marks, numbers = self.test.marks(), self.test.findings.judgement.numbers
        return any(
            number.name == name and not marks.isdisjoint(number.sources) for number in numbers
        )


@dataclass(frozen=True)
class Party:
    """A side of a comparison: a run, or repeats of one."""

    label: str
    contenders: tuple[Contender, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its runs in the store."""
        return tuple(contender.name for contender in self.contenders)

    @property
    def results(self) -> tuple[Result, ...]:
        """Of runs of a job file."""
        return tuple(
            contender.result for contender in self.contenders if contender.result is not None
        )

    @property
    def tests(self) -> tuple[ProtocolRun, ...]:
        """The runs of a protocol."""
        return tuple(contender.test for contender in self.contenders if contender.test is not None)

    @property
    def facts(self) -> Mapping[str, str]:
        """Those of all of its runs: where repeats differ, as in their seeds, each value once."""
        told = [contender.facts for contender in self.contenders]
        return {
            name: ", ".join(dict.fromkeys(one[name] for one in told if name in one))
            for name in dict.fromkeys(name for one in told for name in one)
        }

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """What speaks against its numbers: each trouble once, with the first run's evidence."""
        troubles = [
            check for contender in self.contenders for check in contender.checks if check.trouble
        ]
        return tuple({(c.name, c.status): c for c in reversed(troubles)}.values())[::-1]

    def doubted(self, name: str) -> bool:
        """Whether the number ``name`` carries a mark in one of its runs."""
        return any(contender.doubted(name) for contender in self.contenders)


@dataclass(frozen=True)
class Comparison:
    """All that a comparison has to say."""

    parties: tuple[Party, ...]
    rows: tuple[DifferenceRow, ...]
    protocol: str = ""
    """The protocol's name; empty for ordinary runs."""
    title: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all of its runs that are kept."""
        return tuple(
            name
            for party in self.parties
            for name, contender in zip(party.names, party.contenders, strict=True)
            if contender.test is not None
            or (contender.result is not None and contender.result.folder is not None)
        )

    @property
    def results(self) -> tuple[Result, ...]:
        """Of all of its runs of job files."""
        return tuple(result for party in self.parties for result in party.results)

    @property
    def repeated(self) -> bool:
        """Whether a side has repeats."""
        return any(len(party.names) > 1 for party in self.parties)

    @property
    def tested(self) -> bool:
        """Whether of any difference it is known how sure it is."""
        return any(d is not None and d.p is not None for row in self.rows for d in row.differences)

    def method(self) -> list[str]:
        """How the intervals came about, in sentences."""
        text = METHOD_REPEATS if self.repeated else METHOD_SINGLE
        if self.protocol and not self.repeated:
            return [
                f"Differences are to {self.parties[0].label}. A number of a protocol stands alone "
                "in its run: how much it varies only repeats tell (RUN,RUN)."
            ]
        return [text.format(first=self.parties[0].label), METHOD_HOLM]

    def differing_facts(self) -> dict[str, list[str]]:
        """What is not the same on all sides, by name; a value for each side."""
        names = list(dict.fromkeys(name for party in self.parties for name in party.facts))
        found = {name: [party.facts.get(name, "-") for party in self.parties] for name in names}
        return {name: values for name, values in found.items() if len(set(values)) > 1}

    def sentences(self) -> list[str]:
        """The first number of three sides and more, and the verdict on each against the first."""
        sides = range(1, len(self.parties))
        each = [" ".join([self._sentence(side), *self._began(side)]) for side in sides]
        return [*self._overview(), *each, *self._unmeasured()]

    def _unmeasured(self) -> list[str]:
        """The first numbers of a side that are known to no better than their own size."""
        found = []
        for place, party in enumerate(self.parties):
            named = [_what(row) for row in self.rows if row.unmeasured(place)]
            more = f"; and {len(named) - NAMED} more" if len(named) > NAMED else ""
            if told := "; ".join(named[:NAMED]) + more:
                found.append(f"{party.label}: {told} {UNMEASURED} (95 %): not a measurement.")
        return found

    def _overview(self) -> list[str]:
        row = next((row for row in self.rows if None not in row.values), None)
        if len(self.parties) < 3 or row is None:
            return []
        told = [
            f"{party.label} {units.number(value)}"
            for party, value in zip(self.parties, row.values, strict=True)
        ]
        unit = f", {row.quantity.unit}" if row.quantity.unit else ""
        return [f"{_what(row)}{unit}: {'; '.join(told)}."]

    def _began(self, side: int) -> list[str]:
        """That a drive began in another state than the first, where both are known and no label
        says so."""
        parties = (self.parties[0], self.parties[side])
        states = [party.facts.get(STATE) for party in parties]
        labelled = all(STATE in party.label for party in parties)
        if labelled or len(set(states)) == 1 or any(state in NOT_TOLD for state in states):
            return []
        return [
            f"{parties[1].label} began in another state ({states[1]}) than {parties[0].label} "
            f"({states[0]}), which counts as well."
        ]

    def _sentence(self, side: int) -> str:
        first, label = self.parties[0].label, self.parties[side].label
        pairs = [(row.differences[side - 1], row) for row in self.rows]
        known = [(d, row) for d, row in pairs if d is not None]
        tested = [(d, row) for d, row in known if d.p is not None]
        seen = _worth([pair for pair in tested if pair[0].seen])
        if not known:
            return f"{label} and {first} have nothing in common that could be compared."
        if not tested:
            firsts = _worth(known)[:NAMED]
            said = "; ".join(f"{_what(row)} {units.difference(d.share)}" for d, row in firsts)
            return f"{label} against {first}: {said}; whether that is more than noise is not known."
        if not seen:
            return f"{label} against {first}: {NONE_SEEN} in any of {len(tested)} numbers."
        count = sum(d.seen for d, _ in tested)
        named = "; ".join(
            f"{_what(row)} {units.difference(d.share)} "
            f"({span_text(d)}, {verdict(d, row.quantity.better)})"
            for d, row in seen[:NAMED]
        )
        more = f"; and {count - NAMED} more" if count > NAMED else ""
        rest = len(tested) - count
        quiet = f" In {rest} of {len(tested)} numbers {NONE_SEEN}." if rest else ""
        return f"{label} against {first}: {named}{more}.{quiet}"

    def as_json(self) -> dict[str, Any]:
        """The comparison for scripts. Differences are shares: 0.1 is 10 % more than the first."""
        return {
            "protocol": self.protocol or None,
            "sides": [
                {
                    "label": p.label,
                    "runs": list(p.names),
                    "facts": dict(p.facts),
                    "summary": [result.summary() for result in p.results],
                }
                for p in self.parties
            ],
            "rows": [
                _row_json(row) | {"in_doubt": [p.doubted(row.quantity.name) for p in self.parties]}
                for row in self.rows
            ],
            "sentences": self.sentences(),
            "method": self.method(),
            "checks": {
                party.label: [
                    {"name": c.name, "status": c.status, "evidence": c.evidence}
                    for c in party.checks
                ]
                for party in self.parties
            },
        }


def load(
    sides: Sequence[Sequence[str | Result]], store: RunStore, *, each: bool = False
) -> Comparison:
    """The comparison of sides: kept runs by their names, results in memory; several are repeats,
    and so are runs of the same job on the same target where there are others to compare them with,
    unless ``each`` keeps every run apart. Raises InputError where runs cannot be compared."""
    found = [
        [one if isinstance(one, Result) else store.find(one) for one in side]
        for side in sides
        if side
    ]
    flat = [run for side in found for run in side]
    if len(flat) < 2:
        raise InputError("a comparison needs two runs; ssdlab list runs shows them")
    if len(found) > len(LETTERS):
        raise InputError(f"{len(found)} runs are too many; compare at most {len(LETTERS)}")
    named = [run for run in flat if isinstance(run, Path)]
    if (twice := next((run for run in named if named.count(run) > 1), None)) is not None:
        raise InputError(f"{twice.name}: is given twice; a run compares to itself as equal")
    runs = [[run if isinstance(run, Result) else open_run(run) for run in side] for side in found]
    contenders = [[_contender(run) for run in side] for side in runs]
    every = [contender for side in contenders for contender in side]
    tests = [contender for contender in every if contender.test is not None]
    if tests and len(tests) < len(every):
        other = next(contender for contender in every if contender.test is None)
        raise InputError(
            f"{tests[0].name} is the run of a protocol and {other.name} is not; "
            "compare runs of one kind"
        )
    if all(len(side) == 1 for side in contenders) and not each:
        contenders = _repeats(contenders)
    return _compared(_labelled(contenders))


def _compared(parties: Sequence[Party]) -> Comparison:
    """Raises InputError where they are runs of several protocols."""
    tests = [test for party in parties for test in party.tests]
    if not tests:
        rows = compare(quantities([party.results for party in parties]))
        return Comparison(tuple(parties), tuple(rows))
    names = list(dict.fromkeys(test.protocol for test in tests))
    if len(names) > 1:
        raise InputError(
            f"{tests[0].id} is a run of {names[0]} and another one of {names[1]}; "
            "compare runs of one protocol"
        )
    rows = compare(_numbers([party.tests for party in parties]))
    return Comparison(tuple(parties), tuple(rows), names[0], tests[0].title)


def verdict(difference: Difference | None, better: Better) -> str:
    """A difference in words."""
    if difference is None:
        return "not on both sides"
    return NOT_KNOWN if difference.p is None else difference.verdict(better)


def span_text(difference: Difference | None) -> str:
    """The interval of a difference."""
    if difference is None or difference.low is None or difference.high is None:
        return "-"
    return f"{units.difference(difference.low)} to {units.difference(difference.high)}"


def share_cell(share: float | None) -> Cell:
    """A difference, for programs in percent."""
    return Cell(None if share is None else 100 * share, text=units.difference(share))


def difference_cells(difference: Difference | None) -> Cells:
    """A difference and its interval."""
    if difference is None:
        return [share_cell(None), None]
    low, high = (None if end is None else 100 * end for end in (difference.low, difference.high))
    span = Cell(None, text=span_text(difference), low=low, high=high)
    return [share_cell(difference.share), span]


def _worth(
    seen: Sequence[tuple[Difference, DifferenceRow]],
) -> list[tuple[Difference, DifferenceRow]]:
    """The first of each section before the rest; throughput says what IOPS say."""
    own: dict[str, list[tuple[Difference, DifferenceRow]]] = {}
    for difference, row in seen:
        group = own.setdefault(row.quantity.section, [])
        if row.quantity.name != THROUGHPUT or not group:
            group.append((difference, row))
    return [group[0] for group in own.values()] + [p for group in own.values() for p in group[1:]]


def _what(row: DifferenceRow) -> str:
    section = row.quantity.section
    return f"{row.quantity.name} of {section}" if section else row.quantity.name


def _row_json(row: DifferenceRow) -> dict[str, Any]:
    q = row.quantity
    return {
        "section": q.section or None,
        "name": q.name,
        "unit": q.unit,
        "better": q.better or None,
        "values": list(row.values),
        "intervals": [list(interval) if interval else None for interval in row.intervals],
        "differences": [
            None if d is None else asdict(d) | {"verdict": verdict(d, q.better)}
            for d in row.differences
        ],
    }


def _numbers(sides: Sequence[Sequence[ProtocolRun]]) -> list[ComparedQuantity]:
    """The numbers of a protocol on all sides, in the order in which they first come; one that runs
    tell in different units, as those of another version may, once for each."""
    known: dict[tuple[str, str], Better] = {}
    values: list[list[dict[tuple[str, str], float | None]]] = []
    for runs in sides:
        own = []
        for run in runs:
            numbers = {(one.name, one.unit): one for one in run.findings.judgement.numbers}
            for key, number in numbers.items():
                known.setdefault(key, number.better)
            own.append({key: number.value for key, number in numbers.items()})
        values.append(own)
    return [
        ComparedQuantity(
            "",
            name,
            unit,
            better,
            tuple(tuple(NoisyValue(one.get((name, unit))) for one in own) for own in values),
        )
        for (name, unit), better in known.items()
    ]


def _repeats(sides: list[list[Contender]]) -> list[list[Contender]]:
    """Equal runs taken together, if something else is left to compare them with."""
    groups: dict[object, list[Contender]] = {}
    for side in sides:
        groups.setdefault(side[0].identity, []).extend(side)
    return list(groups.values()) if len(groups) > 1 else sides


def _labelled(sides: Sequence[Sequence[Contender]]) -> list[Party]:
    """Labels of the sides: their targets' names, told apart where they are alike by the one thing
    that differs, or else by a number."""
    names = [side[0].target for side in sides]
    if len(set(names)) == 1:
        told = [side[0].facts for side in sides]
        keys = list(dict.fromkeys(key for one in told for key in one))
        one_each = [
            key
            for key in keys
            if all(len({run.facts.get(key) for run in side}) == 1 for side in sides)
        ]
        differing = [key for key in one_each if len({one.get(key) for one in told}) == len(sides)]
        if len(differing) == 1 and all(len(one.get(differing[0], "-")) <= SHORT for one in told):
            key = differing[0]
            what = re.sub(r"^rig: (below\.)*", "", key)
            values = [one.get(key, "-") for one in told]
            short = [_short(value) if what != key else value for value in values]
            values = short if len(set(short)) == len(set(values)) else values
            names = [f"{label}, {what} {value}" for label, value in zip(names, values, strict=True)]
    labels = units.numbered(names)
    return [Party(label, tuple(side)) for label, side in zip(labels, sides, strict=True)]


def _short(value: str) -> str:
    """A fraction with as many figures as a label has room for, four and all whole ones; what is
    none as it is."""
    if not re.fullmatch(r"\d+\.\d+", value):
        return value
    whole = float(value) >= 1000
    return f"{float(value):.0f}" if whole else f"{float(value):.4g}"


def _contender(run: RunFolder | Result) -> Contender:
    if isinstance(run, Result):
        return of_result(run)
    return of_result(run.result()) if run.is_job else _of_test(findings.read(run))


def of_result(result: Result) -> Contender:
    """The run of a job file."""
    about = result.ssdlab
    surroundings = about.get("surroundings") or {}
    drive = surroundings.get("drive") or {}
    prepared = about.get("preconditioning")
    facts: Facts = {
        "target": result.name,
        "capacity, bytes": (about.get("target") or {}).get("capacity_bytes"),
        STATE: prepared,
        "seed": about.get("seed"),
        "ssdlab": about.get("version"),
        "fio": surroundings.get("fio_version"),
        "kernel": surroundings.get("kernel"),
        "job file": result.job_text.strip().replace("\n", "; "),
        **_drive_facts(surroundings),
        **{
            f"rig: {one.get('key')}": one.get("value")
            for one in (about.get("profile") or {}).get("values", [])
        },
    }
    return Contender(
        result.folder.name if result.folder is not None else result.name,
        result.name + result.resized,
        (
            result.name,
            result.rig_toml,
            result.job_text,
            str(prepared),
            *(drive.get(name) for name in ("model", "serial", "firmware")),
        ),
        _told(facts),
        checks.examine(checks.of_result(result)),
        result=result,
    )


def _of_test(test: ProtocolRun) -> Contender:
    manifest = test.manifest
    about = manifest.about
    given = (manifest.capacity, manifest.active, manifest.divisor, manifest.quick)
    facts: Facts = {
        "target": test.target,
        "capacity, bytes": manifest.capacity,
        "active range, bytes": manifest.active,
        "quick run": "yes" if manifest.quick else "no",
        DIVISOR: units.number(manifest.divisor),
        "state of the run": test.folder.status,
        "seed": manifest.seed if manifest.kind == "sim" else None,
        "ssdlab": manifest.version,
        "kernel": about.get("kernel"),
        **_drive_facts(about),
        **manifest.values,
        **{f"rig: {key}": value for key, value in (manifest.overrides or {}).items()},
    }
    return Contender(
        test.id,
        test.target + (f" ({test.smaller})" if test.smaller else ""),
        (
            test.target,
            *given,
            str(manifest.values),
            str(manifest.overrides),
            str(about.get("drive")),
            about.get("rig"),
        ),
        _told(facts),
        test.findings.checks,
        test=test,
    )


def _told(facts: Facts) -> dict[str, str]:
    return {name: str(value) for name, value in facts.items() if value not in (None, "")}


def _drive_facts(surroundings: Mapping[str, Any]) -> dict[str, object]:
    names = ("model", "firmware", "serial", "scheduler", "write_cache", "nr_requests")
    drive = surroundings.get("drive") or {}
    system = surroundings.get("file_system") or {}
    found: dict[str, object] = {name.replace("_", " "): drive.get(name) for name in names}
    setup = (surroundings.get("setup") or {}).get("asked")
    found |= {"file system": system.get("type"), "mounted with": system.get("options")}
    return found | {"setup": setup}
