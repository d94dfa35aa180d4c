"""What became of the members of arrays in a run, in sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ssdlab import units
from ssdlab.results import Result
from ssdlab.wear import Stretch, by_path

MEMBER = re.compile(r"(?P<array>.*/)?(?P<member>member\d+)/member_busy_ns")
UNEVEN = 0.2
"""A member that is busy for so much more of the time than any other is told."""


def of_members(result: Result) -> list[str]:
    """Of each array of a simulated run: failures and rebuilding, and which member the others wait
    for. Empty where there is nothing to tell."""
    counters = result.ssdlab.get("counters") or {}
    return [*_failures(counters), *_uneven(result)]


def _failures(counters: Mapping[str, Any]) -> Iterator[str]:
    for path, own in sorted(by_path(counters).items()):
        if not (failed := int(own.get("members_failed", 0))):
            continue
        said = f"{units.counted(failed, 'member')} of {_array(path)} failed"
        if rebuilt := own["rebuilt_bytes"]:
            done = int(own["rebuilt_members"])
            whole = f"{units.counted(done, 'member')} in full" if done else "no member in full"
            said += f"; {units.size_text(rebuilt)} were rebuilt, {whole}"
        said += f"; {int(own['members_missing']) or 'none'} missing at the end"
        if lost := own["lost_bytes"]:
            said += f"; {units.size_text(lost)} of data were lost"
        yield f"{said}."


def _uneven(result: Result) -> Iterator[str]:
    span_ns = 1e9 * float(result.ssdlab.get("simulated_seconds") or 0.0)
    busy: dict[str, dict[str, float]] = {}
    for name, ns in Stretch.of(result).grown.items():
        if span_ns and (found := MEMBER.fullmatch(name)):
            own = busy.setdefault((found["array"] or "").rstrip("/"), {})
            own[found["member"]] = min(1.0, ns / span_ns)
    for path, shares in sorted(busy.items()):
        most, *others = sorted(shares, key=shares.__getitem__, reverse=True)
        if others and shares[most] - shares[others[0]] >= UNEVEN:
            yield (
                f"{most} of {_array(path)} was busy {units.percent(shares[most])} of the time, the "
                f"others {units.percent(shares[others[0]])} at most."
            )


def _array(path: str) -> str:
    return f"the array {path}" if path else "the array"
