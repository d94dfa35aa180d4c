"""A recorded trace as an answer: its characteristics, request sizes, access map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ssdlab import units
from ssdlab.answer import Answer, Section, Verdict
from ssdlab.traces import profile

SIZES_MAX = 20
"""So many of the commonest sizes."""


def answer(found: dict[str, Any]) -> Answer:
    """From what :func:`ssdlab.traces.profile.profile` found."""
    odd = found["remarks"]
    kinds = found["requests_by_kind"]
    told = units.listed([units.counted(count, kind) for kind, count in kinds.items() if count])
    lead = Section(
        [
            f"{units.counted(found['requests'], 'request')}: {told}; "
            + (f"{units.counted(len(odd), 'kind')} of anomaly." if odd else "no anomalies found."),
            *odd,
        ],
        tables=[profile.facts(found), profile.size_table(found, SIZES_MAX)],
        figures=profile.figures(found),
        key="facts",
        title="Access pattern",
        verdict=Verdict("odd" if odd else "sound", {"anomalies": float(len(odd))}),
    )
    return Answer(Path(found["trace"]).name, "trace", [lead], data=found)
