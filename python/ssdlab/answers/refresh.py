"""A refresh as an answer: what was rewritten, and whether reading became faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from ssdlab import units
from ssdlab.answer import INTERVAL, Answer, Cell, Cells, Section, Table, Verdict, columns
from ssdlab.care.refresh import Refreshed, RefreshPlan
from ssdlab.safety import refusal
from ssdlab.units import size_text

TOLD = (
    "written_bytes zero_bytes cached_bytes unreadable_bytes seconds slices frozen_longest_s gain "
    "verdict remarks"
).split()
"""What the document says of a refresh by the names of its fields."""


def planned(plan: RefreshPlan, share: str, refused: str | None) -> Answer:
    """What would be written; ``share`` says of how much that a drive takes."""
    said = [f"{plan.sentence()}, {share}; nothing was written yet"]
    said += [*plan.remarks, *refusal(refused)]
    sizes = {"data": plan.data_bytes, "holes": plan.hole_bytes}
    rows: list[Cells] = [[name, Cell(float(size))] for name, size in sizes.items()]
    table = Table("What would be written", columns("part | size [B]"), rows)
    data = {**_planned(plan), "refused": refused}
    lead = Section(said, tables=[table], key="plan", verdict=Verdict("planned"))
    return Answer(f"Plan of a refresh of {plan.place.path}", "refresh", [lead], data=data)


def answer(done: Refreshed) -> Answer:
    """How fast reading is after it, beside before."""
    said = [_rewritten(done), _verdict(done)]
    if done.unreadable_bytes:
        said.append(f"{size_text(done.unreadable_bytes)} could not be read and were left alone")
    measured = {"before": done.before, "after": done.after}
    rows: list[Cells] = [
        [when, Cell(speed.best / 1e6), _each(speed.bytes_per_s)]
        for when, speed in measured.items()
        if speed is not None
    ]
    heads = columns("sequential reads of 1 MiB | best [MB/s] | each [MB/s]")
    heads[2] = replace(heads[2], parts=INTERVAL)
    lead = Section(
        [*said, *done.remarks],
        tables=[Table("Speed", heads, rows)],
        key="speed",
        verdict=Verdict(done.verdict, {"gain": done.gain}),
    )
    title = f"Refresh of {done.plan.place.path}"
    return Answer(title, "refresh", [lead], data=_document(done))


def _each(speeds: Sequence[float]) -> Cell:
    """All of them; for programs the least and the greatest."""
    found = [one / 1e6 for one in speeds]
    text = ", ".join(f"{one:,.0f}" for one in found)
    return Cell(None, text=text, low=min(found, default=None), high=max(found, default=None))


def _rewritten(done: Refreshed) -> str:
    said = f"{size_text(done.written_bytes)} rewritten in {units.duration(done.seconds)}"
    if done.slices:
        longest = units.duration(done.frozen_longest_s)
        said += f"; frozen {units.counted(done.slices, 'time')}, for at most {longest}"
    return said


def _verdict(done: Refreshed) -> str:
    gain = done.gain or 1.0
    fast = f"reading is {gain:.2f} times as fast as before"
    differ = f"the reads of one state differ by {units.percent(done.spread)}"
    why = {
        "loop": "these reads are those of a loop device; repeat it on the drive itself",
        "few": "it was read too few times for that to say anything; repeat it",
        "noise": f"{differ}; repeat it with nothing else at work",
    }.get(done.doubt, "")
    return {
        "unknown": "there was nothing to rewrite",
        "not-decided": f"not decided: {fast}, but {why}",
        "faster": f"it helped: {fast}",
        "slower": f"it did not help: {fast}; other work on the drive meanwhile would look so too",
        "same": f"no significant difference: {units.difference(gain - 1)}, while {differ}",
    }[done.verdict]


def _planned(planned: RefreshPlan) -> dict[str, Any]:
    return {
        "target": str(planned.place.path),
        "kind": planned.place.kind,
        "disk": planned.place.disk,
        "drive_share": planned.drive_share,
        "layout": planned.layout and asdict(planned.layout),
        **{key: getattr(planned, key) for key in ("data_bytes", "hole_bytes", "remarks")},
    }


def _document(done: Refreshed) -> dict[str, Any]:
    return {
        **_planned(done.plan),
        **{name: getattr(done, name) for name in TOLD},
        "before_bytes_per_s": list(done.before.bytes_per_s),
        "after_bytes_per_s": list(done.after.bytes_per_s) if done.after else None,
    }
