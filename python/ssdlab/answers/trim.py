"""A trim as an answer: how much was given back, and how far down that gets."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ssdlab import units
from ssdlab.answer import Answer, Section, Table, Verdict, columns
from ssdlab.care.trim import Trimmed
from ssdlab.safety import refusal
from ssdlab.units import size_text

PASSES = {True: "yes", False: "no", None: None}


def answer(done: Trimmed) -> Answer:
    """What was trimmed, or would be, and each layer below."""
    rows = [[layer.name, PASSES[layer.passes], layer.sentence] for layer in done.layers]
    lead = Section(
        _sentences(done),
        tables=[Table("Layers below", columns("layer | takes TRIM | finding"), rows)],
        key="trim",
        title="Trim",
        verdict=Verdict(_code(done), {"trimmed_bytes": done.trimmed_bytes}),
    )
    title = f"Trim of {done.mount.kind} at {done.mount.point}"
    return Answer(title, "trim", [lead], data=_document(done))


def _code(done: Trimmed) -> str:
    if done.trimmed_bytes is None:
        return "planned"
    return {True: "trimmed", False: "does-not-reach", None: "unknown"}[done.reaches_a_drive]


def _sentences(done: Trimmed) -> list[str]:
    free = done.space.sentence
    if done.trimmed_bytes is None:
        said = [f"{free}; nothing was trimmed"]
    else:
        took = units.duration(done.seconds)
        said = [f"{size_text(done.trimmed_bytes)} trimmed in {took}; {free}"]
        if done.trimmed_bytes == 0 and done.space.free_bytes:
            said.append(
                "free space that was already trimmed and not used since is not trimmed again"
            )
    if done.mount.has("discard"):
        said.append("it is mounted with discard, so it trims files as they are deleted")
    if done.reaches_a_drive is False:
        said.append("TRIM does not reach a drive")
    return [*said, *refusal(done.refused)]


def _document(done: Trimmed) -> dict[str, Any]:
    own = asdict(done)
    space = own.pop("space")
    return {**space, **own, "reaches_a_drive": done.reaches_a_drive}
