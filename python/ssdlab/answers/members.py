"""What became of the members of arrays, caches and tiers in a run, in sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ssdlab import units
from ssdlab.results import Result
from ssdlab.wear import Stretch, by_path, unanswered

MEMBER = re.compile(r"(?P<array>.*/)?(?P<member>member\d+)/member_busy_ns")
UNEVEN = 0.2
"""A member that is busy for so much more of the time than any other is told."""


def of_members(result: Result) -> list[str]:
    """Of each array, cache and tier of a simulated run: failures, what they took, and rebuilding;
    and which member of an array the others wait for. Empty where there is nothing to tell."""
    counters = result.ssdlab.get("counters") or {}
    return [*_failures(counters), *_uneven(result)]


def _failures(counters: Mapping[str, Any]) -> Iterator[str]:
    for path, own in sorted(by_path(counters).items()):
        if (said := _failed(path, own)) is None:
            continue
        if lost := own["lost_bytes"]:
            said += f"; {units.size_text(lost)} of data were lost"
        if errors := unanswered(own):
            said += f"; {units.counted(errors, 'I/O')} that needed them ended in an error"
        yield f"{said}."


def _failed(path: str, own: Mapping[str, Any]) -> str | None:
    """Which parts of a device failed, and what was rebuilt of them."""
    if failed := int(own.get("members_failed", 0)):
        said = f"{units.counted(failed, 'member')} of {_device(path, 'array')} failed"
        if rebuilt := own["rebuilt_bytes"]:
            done = int(own["rebuilt_members"])
            whole = f"{units.counted(done, 'member')} in full" if done else "no member in full"
            said += f"; {units.size_text(rebuilt)} were rebuilt, {whole}"
        return f"{said}; {int(own['members_missing']) or 'none'} missing at the end"
    if own.get("cache_failed"):
        return f"The cache device of {_device(path, 'cache')} failed"
    if failed := int(own.get("tiers_failed", 0)):
        return f"{units.counted(failed, 'device')} of {_device(path, 'tier')} failed"
    return None


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
                f"{most} of {_device(path, 'array')} was busy {units.percent(shares[most])} of the "
                f"time, the others {units.percent(shares[others[0]])} at most."
            )


def _device(path: str, kind: str) -> str:
    return f"the {kind} {path}" if path else f"the {kind}"
