"""Runs beside each other: what differs between them, by how much, and whether that can be seen.

Sides are runs, or repeats of one run taken together. Ordinary runs are compared by what their jobs
did, runs of a protocol by its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ssdlab import checks, units
from ssdlab.analysis.differences import (
    THROUGHPUT,
    Difference,
    Measured,
    Quantity,
    Row,
    Side,
    compare,
    quantities,
)
from ssdlab.answer import Better, Check, any_doubt
from ssdlab.engine import findings
from ssdlab.engine.findings import ProtocolRun
from ssdlab.engine.folder import RunFolder, is_protocol_run
from ssdlab.errors import InputError
from ssdlab.results import Result
from ssdlab.store import RunStore

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""What the sides are called in tables."""
SHORT = 24
"""A fact of so many characters can stand in a label."""
NAMED = 3
"""So many differences are named in a sentence."""
NONE_SEEN = "no significant difference"
NOT_KNOWN = "noise not known"

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
    "A difference counts if it is seen in spite of the number of comparisons (Holm, 5 %); "
    "“perhaps” would count if it were the only one."
)


@dataclass(frozen=True)
class Party:
    """A side of a comparison with what is known of it."""

    label: str
    names: tuple[str, ...]
    """Names of its runs in the store."""
    results: tuple[Result, ...] = field(repr=False, default=())
    runs: tuple[ProtocolRun, ...] = field(repr=False, default=())
    facts: Mapping[str, str] = field(default_factory=dict)
    """What was run on what, by name."""
    checks: tuple[Check, ...] = ()
    """What speaks against its numbers; of all repeats, each kind once."""

    def doubted(self, name: str) -> bool:
        """Whether the number ``name`` carries a mark in one of its runs."""
        if not self.runs:
            return any_doubt(self.checks)
        return any(
            number.name == name and not run.marks().isdisjoint(number.sources)
            for run in self.runs
            for number in run.findings.judgement.numbers
        )


@dataclass(frozen=True)
class Comparison:
    """All that a comparison has to say."""

    parties: tuple[Party, ...]
    rows: tuple[Row, ...]
    protocol: str = ""
    """The protocol's name; empty for ordinary runs."""
    title: str = ""

    @property
    def repeated(self) -> bool:
        """Whether a side has repeats."""
        return any(len(party.names) > 1 for party in self.parties)

    @property
    def tested(self) -> bool:
        """Whether of any difference it is known how sure it is."""
        return any(d is not None and d.p is not None for row in self.rows for d in row.differences)

    def doubted(self) -> bool:
        """Whether a number carries a mark."""
        return any(p.doubted(row.quantity.name) for p in self.parties for row in self.rows)

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
        """The verdict on each side against the first."""
        return [
            _sentence(self.parties[0].label, party.label, [row.differences[i] for row in self.rows],
                      self.rows)
            for i, party in enumerate(self.parties[1:])
        ]  # fmt: skip

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


def load(names: Sequence[str], store: RunStore, *, each: bool = False) -> Comparison:
    """The comparison of runs; a name is a run, or several with commas between them: repeats.

    Runs of the same job on the same target are taken for repeats where there are others to
    compare them with, unless ``each`` keeps every run apart.

    Raises InputError where runs cannot be compared.
    """
    given = [[one.strip() for one in text.split(",") if one.strip()] for text in names]
    folders = [[store.find(one) for one in side] for side in given if side]
    flat = [folder for side in folders for folder in side]
    if len(flat) < 2:
        raise InputError("a comparison needs two runs; ssdlab list runs shows them")
    if len(folders) > len(LETTERS):
        raise InputError(f"{len(folders)} runs are too many; compare at most {len(LETTERS)}")
    if (twice := next((f for f in flat if flat.count(f) > 1), None)) is not None:
        raise InputError(f"{twice.name}: is given twice; a run compares to itself as equal")
    tests = [folder for folder in flat if is_protocol_run(folder)]
    if tests and len(tests) < len(flat):
        other = next(folder for folder in flat if folder not in tests)
        raise InputError(
            f"{tests[0].name} is the run of a protocol and {other.name} is not; "
            "compare runs of one kind"
        )
    grouped = all(len(side) == 1 for side in folders) and not each
    return _of_protocols(folders, grouped) if tests else _of_results(folders, grouped)


def of_results(sides: Sequence[tuple[str, Sequence[Result]]]) -> Comparison:
    """The comparison of results in memory: labels and the repeats of each."""
    parties = [
        Party(
            label,
            tuple(_name_of(result) for result in results),
            tuple(results),
            facts=_facts(results[0]),
            checks=_together([checks.examine(checks.of_result(one)) for one in results]),
        )
        for label, results in sides
    ]
    rows = compare(quantities([Side(party.label, party.results) for party in parties]))
    return Comparison(tuple(parties), tuple(rows))


def of_runs(sides: Sequence[tuple[str, Sequence[ProtocolRun]]]) -> Comparison:
    """The comparison of runs of one protocol.

    Raises InputError where they are runs of several protocols.
    """
    flat = [run for _, runs in sides for run in runs]
    names = list(dict.fromkeys(run.protocol for run in flat))
    if len(names) > 1:
        raise InputError(
            f"{flat[0].id} is a run of {names[0]} and another one of {names[1]}; "
            "compare runs of one protocol"
        )
    parties = [
        Party(
            label,
            tuple(run.id for run in runs),
            runs=tuple(runs),
            facts=_protocol_facts(runs[0]),
            checks=_together([run.findings.checks for run in runs]),
        )
        for label, runs in sides
    ]
    rows = compare(_numbers([party.runs for party in parties]))
    return Comparison(tuple(parties), tuple(rows), names[0], flat[0].title)


def verdict(difference: Difference | None, better: Better) -> str:
    """A difference in words."""
    if difference is None:
        return "not on both sides"
    if difference.p is None:
        return NOT_KNOWN
    word = "higher" if difference.share > 0 else "lower"
    if better:
        word = "better" if word == better else "worse"
    if difference.seen:
        return word
    return f"perhaps {word}" if difference.perhaps else NONE_SEEN


def share_text(share: float | None) -> str:
    """A relative difference: ``+12 %``; as a factor where it is more than three times."""
    if share is None:
        return "-"
    if share > 2:
        return f"x {1 + share:.3g}"
    percent = 100 * share
    digits = 0 if abs(percent) >= 10 else 1 if abs(percent) >= 1 else 2
    text = f"{percent:+.{digits}f}"
    return "0 %" if float(text) == 0 else f"{text} %"


def span_text(difference: Difference | None) -> str:
    """The interval of a difference."""
    if difference is None or difference.low is None or difference.high is None:
        return "-"
    return f"{share_text(difference.low)} to {share_text(difference.high)}"


def value_text(value: float | None, interval: tuple[float, float] | None) -> str:
    """A value with half the length of its interval."""
    text = units.number(value)
    if value is None or interval is None:
        return text
    half = (interval[1] - interval[0]) / 2
    return f"{text} ± {units.number(half)}" if half > 0 else text


def _sentence(
    first: str, label: str, differences: Sequence[Difference | None], rows: Sequence[Row]
) -> str:
    known = [(d, row) for d, row in zip(differences, rows, strict=True) if d is not None]
    tested = [(d, row) for d, row in known if d.p is not None]
    seen = _worth([pair for pair in tested if pair[0].seen])
    if not known:
        return f"{label} and {first} have nothing in common that could be compared."
    if not tested:
        said = "; ".join(f"{_what(row)} {share_text(d.share)}" for d, row in known[:NAMED])
        return f"{label} against {first}: {said}; whether that is more than noise is not known."
    if not seen:
        return f"{label} against {first}: {NONE_SEEN}, in none of {len(tested)} numbers."
    count = sum(d.seen for d, _ in tested)
    named = "; ".join(
        f"{_what(row)} {share_text(d.share)} ({span_text(d)}, {verdict(d, row.quantity.better)})"
        for d, row in seen[:NAMED]
    )
    more = f"; and {count - NAMED} more" if count > NAMED else ""
    rest = len(tested) - count
    quiet = f" In {rest} of {len(tested)} numbers {NONE_SEEN}." if rest else ""
    return f"{label} against {first}: {named}{more}.{quiet}"


def _worth(seen: Sequence[tuple[Difference, Row]]) -> list[tuple[Difference, Row]]:
    """The first of each section before the rest; throughput says what IOPS say."""
    own: dict[str, list[tuple[Difference, Row]]] = {}
    for difference, row in seen:
        group = own.setdefault(row.quantity.section, [])
        if row.quantity.name != THROUGHPUT or not group:
            group.append((difference, row))
    return [group[0] for group in own.values()] + [p for group in own.values() for p in group[1:]]


def _what(row: Row) -> str:
    section = row.quantity.section
    return f"{row.quantity.name} of {section}" if section else row.quantity.name


def _row_json(row: Row) -> dict[str, Any]:
    q = row.quantity
    return {
        "section": q.section or None,
        "name": q.name,
        "unit": q.unit,
        "better": q.better or None,
        "values": list(row.values),
        "intervals": [list(one) if one else None for one in row.intervals],
        "differences": [
            None
            if d is None
            else {
                "share": d.share,
                "low": d.low,
                "high": d.high,
                "p": d.p,
                "p_holm": d.p_holm,
                "verdict": verdict(d, q.better),
            }
            for d in row.differences
        ],
    }


def _numbers(sides: Sequence[Sequence[ProtocolRun]]) -> list[Quantity]:
    """The numbers of a protocol on all sides, in the order in which they first come."""
    known: dict[str, tuple[str, Better]] = {}
    values: list[list[dict[str, float | None]]] = []
    for runs in sides:
        own = []
        for run in runs:
            numbers = run.findings.judgement.numbers
            for number in numbers:
                known.setdefault(number.name, (number.unit, number.better))
            own.append({number.name: number.value for number in numbers})
        values.append(own)
    return [
        Quantity(
            "",
            name,
            unit,
            better,
            tuple(tuple(Measured(one.get(name)) for one in own) for own in values),
        )
        for name, (unit, better) in known.items()
    ]


def _of_results(folders: Sequence[Sequence[Path]], grouped: bool) -> Comparison:
    sides = [[Result.load(folder) for folder in side] for side in folders]
    if grouped:
        sides = _repeats(sides, _identity)
    return of_results(_labelled(sides, lambda result: result.name, _facts))


def _of_protocols(folders: Sequence[Sequence[Path]], grouped: bool) -> Comparison:
    sides = [[findings.read(RunFolder.open(folder)) for folder in side] for side in folders]
    if grouped:
        sides = _repeats(sides, _protocol_identity)
    return of_runs(_labelled(sides, lambda run: run.target, _protocol_facts))


def _repeats(sides: list[list[Any]], identity: Any) -> list[list[Any]]:
    """Equal runs taken together, if something else is left to compare them with."""
    groups: dict[Any, list[Any]] = {}
    for side in sides:
        groups.setdefault(identity(side[0]), []).extend(side)
    return list(groups.values()) if len(groups) > 1 else sides


def _labelled(
    sides: Sequence[Sequence[Any]], name: Any, facts: Any
) -> list[tuple[str, Sequence[Any]]]:
    """Labels of the sides: their targets' names, told apart where they are alike by the one thing
    that differs, or else by a number."""
    names = [str(name(side[0])) for side in sides]
    if len(set(names)) == 1:
        told = [facts(side[0]) for side in sides]
        keys = list(dict.fromkeys(key for one in told for key in one))
        differing = [key for key in keys if len({one.get(key) for one in told}) == len(sides)]
        if len(differing) == 1 and all(len(one.get(differing[0], "-")) <= SHORT for one in told):
            key = differing[0]
            what = key.removeprefix("rig: ")
            names = [
                f"{label}, {what} {one.get(key, '-')}"
                for label, one in zip(names, told, strict=True)
            ]
    found, seen = [], dict.fromkeys(names, 0)
    for one, side in zip(names, sides, strict=True):
        seen[one] += 1
        found.append((f"{one} ({seen[one]})" if names.count(one) > 1 else one, side))
    return found


def _identity(result: Result) -> tuple[object, ...]:
    about = result.ssdlab
    drive = (about.get("surroundings") or {}).get("drive") or {}
    return (
        result.name,
        result.rig_toml,
        result.job_text,
        str(about.get("preconditioning")),
        drive.get("model"),
        drive.get("serial"),
        drive.get("firmware"),
    )


def _protocol_identity(run: ProtocolRun) -> tuple[object, ...]:
    manifest = run.manifest
    about = manifest.get("about") or {}
    names = ("name", "capacity", "active", "divisor", "quick")
    return (
        *(manifest.get(name) for name in names),
        str(manifest.get("values")),
        str(manifest.get("overrides")),
        str(about.get("drive")),
        about.get("rig"),
    )


def _name_of(result: Result) -> str:
    return result.folder.name if result.folder is not None else result.name


def _facts(result: Result) -> dict[str, str]:
    """What an ordinary run was."""
    about = result.ssdlab
    surroundings = about.get("surroundings") or {}
    target = about.get("target") or {}
    found: dict[str, object] = {
        "target": result.name,
        "capacity, bytes": target.get("capacity_bytes"),
        "state at the start": about.get("preconditioning"),
        "seed": about.get("seed"),
        "ssdlab": about.get("version"),
        "fio": surroundings.get("fio_version"),
        "kernel": surroundings.get("kernel"),
        "job file": result.job_text.strip().replace("\n", "; "),
        **_drive_facts(surroundings),
    }
    for one in (about.get("profile") or {}).get("values", []):
        found[f"rig: {one.get('key')}"] = one.get("value")
    return {name: str(value) for name, value in found.items() if value not in (None, "")}


def _drive_facts(surroundings: Mapping[str, Any]) -> dict[str, object]:
    names = ("model", "firmware", "serial", "scheduler", "write_cache", "nr_requests")
    drive = surroundings.get("drive") or {}
    system = surroundings.get("file_system") or {}
    found: dict[str, object] = {name.replace("_", " "): drive.get(name) for name in names}
    setup = (surroundings.get("setup") or {}).get("asked")
    found |= {"file system": system.get("type"), "mounted with": system.get("options")}
    return found | {"setup": setup}


def _protocol_facts(run: ProtocolRun) -> dict[str, str]:
    manifest = run.manifest
    about = manifest.get("about") or {}
    found: dict[str, object] = {
        "target": run.target,
        "capacity, bytes": manifest.get("capacity"),
        "active range, bytes": manifest.get("active"),
        "quick run": "yes" if run.quick else "no",
        "state of the run": manifest.get("status"),
        "seed": manifest.get("seed") if manifest.get("kind") == "sim" else None,
        "ssdlab": manifest.get("version"),
        "kernel": about.get("kernel"),
        **_drive_facts(about),
        **(manifest.get("values") or {}),
    }
    found |= {f"rig: {key}": value for key, value in (manifest.get("overrides") or {}).items()}
    return {name: str(value) for name, value in found.items() if value not in (None, "")}


def _together(several: Sequence[Sequence[Check]]) -> tuple[Check, ...]:
    """The troubles of several runs, each check once with the first run's evidence."""
    found: dict[tuple[str, str], Check] = {}
    for own in several:
        for check in own:
            if check.status in ("bad", "doubt"):
                found.setdefault((check.name, check.status), check)
    return tuple(found.values())
