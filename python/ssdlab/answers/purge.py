"""A purge as an answer: what the drive did, or which ways it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ssdlab import units
from ssdlab.answer import Answer, Cell, Section, Table, Verdict, columns
from ssdlab.care.methods import Method
from ssdlab.care.purge import Purged
from ssdlab.safety import refusal


def answer(target: Path, done: Purged) -> Answer:
    """What was done, and what was tried before."""
    said = f"{done.sentence} (in {units.duration(done.seconds)})"
    row = [done.method, "yes" if done.real else "no", Cell(done.seconds)]
    lead = Section(
        [said, *(f"not used: {one}" for one in done.tried)],
        tables=[Table("Purge", columns("method | real purge | took [s]"), [row])],
        key="purge",
        verdict=Verdict("purged" if done.real else "not-real", {"method": done.method}),
    )
    return Answer(f"Purge of {target}", "purge", [lead], data=asdict(done))


def ways(
    target: Path, methods: Sequence[Method], about: str, refused: str | None, would: str = ""
) -> Answer:
    """The ways there are, the strongest first; ``would`` says what a purge costs."""
    first = next((method for method in methods if method.obstacle is None), None)
    here = [
        method.obstacle or ("would be used" if method is first else "could be used")
        for method in methods
    ]
    rows = [
        [method.name, method.kind.summary, "yes" if method.real else "no", said]
        for method, said in zip(methods, here, strict=True)
    ]
    said = [f"{about}; nothing was changed", *refusal(refused)]
    said += [f"if it is purged: {would}"] if would else []
    used = None if first is None else first.name
    lead = Section(
        said,
        tables=[Table("Ways", columns("method | what it is | real purge | here"), rows)],
        key="ways",
        verdict=Verdict("planned", {"would_use": used}),
    )
    ways = [
        {
            "method": method.name,
            "summary": method.kind.summary,
            "real": method.real,
            "obstacle": method.obstacle,
            "expected_s": method.expected_s,
        }
        for method in methods
    ]
    data = {"would_use": used, "refused": refused, "methods": ways}
    return Answer(f"Ways to purge {target}", "purge", [lead], data=data)
