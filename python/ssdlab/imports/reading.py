"""The JSON documents of fio in a text, wherever they stand in it: between warnings, one after the
other, in a list, or within an object of somebody else's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

ATTEMPTS_MAX = 10_000
"""A text with more braces that begin nothing is no text of fio."""
DEPTH_MAX = 8
"""So deep a document may lie in objects of others."""
_NO_NUMBER = re.compile(r"(?<=[:\s,\[])-?(?:nan|inf(?:inity)?)(?=\s*[,}\]])")
"""Old versions print averages of nothing so, which is no JSON."""
_HEAD = '"fio version"'
CLOCK_S = 2.0
"""Two documents of one run of fio agree so well about how much time passed between them."""


@dataclass(frozen=True)
class Texts:
    """What a text holds."""

    documents: list[dict[str, Any]]
    """Of fio, in order; of those that one run of fio wrote as it went, the last."""
    superseded: int
    """How many such documents were left out."""
    broken: str | None
    """What is wrong with the first document that could not be read; None where there is none."""


def documents_in(text: str) -> Texts:
    """The documents of fio in ``text``."""
    plain = _NO_NUMBER.sub("null", text)
    found: list[dict[str, Any]] = []
    broken = None
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    at = plain.find("{")
    for _ in range(ATTEMPTS_MAX):
        if at < 0:
            break
        try:
            value, end = decoder.raw_decode(plain, at)
        except json.JSONDecodeError as error:
            if broken is None and _HEAD in plain[at : at + 200]:
                broken = f"line {error.lineno}: {error.msg[:1].lower()}{error.msg[1:]}"
            at = plain.find("{", at + 1)
            continue
        except RecursionError:
            broken = broken or "is nested too deeply"
            break
        found += _of_fio(value, 0)
        at = plain.find("{", end)
    last = _last_of_each(found)
    return Texts(last, len(found) - len(last), broken)


def _of_fio(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """The documents of fio in a value."""
    if isinstance(value, dict):
        jobs = value.get("jobs", value.get("client_stats"))
        if isinstance(jobs, list) and (_HEAD.strip('"') in value or any(map(_is_job, jobs))):
            yield value
            return
    if depth < DEPTH_MAX:
        inner = value.values() if isinstance(value, dict) else value
        for one in inner if isinstance(inner, list) or isinstance(value, dict) else ():
            if isinstance(one, dict | list):
                yield from _of_fio(one, depth + 1)


def _is_job(value: Any) -> bool:
    return isinstance(value, Mapping) and "jobname" in value


def _last_of_each(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the intermediate documents of ``--status-interval``: those after which the same jobs
    have gone on, as their own clock says."""
    kept: list[dict[str, Any]] = []
    for one in found:
        if kept and _goes_on(kept[-1], one):
            kept[-1] = one
        else:
            kept.append(one)
    return kept


def _goes_on(first: Mapping[str, Any], later: Mapping[str, Any]) -> bool:
    if _jobs(first) != _jobs(later) or first.get("fio version") != later.get("fio version"):
        return False
    clock, worked = (_moment(later) - _moment(first), _worked(later) - _worked(first))
    return worked > 0 and abs(clock - worked) <= CLOCK_S


def _jobs(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    jobs = document.get("jobs") or []
    return [(str(j.get("jobname")), str(j.get("job options"))) for j in jobs if _is_job(j)]


def _moment(document: Mapping[str, Any]) -> float:
    """Seconds since the epoch at which it was written; nan where it does not say."""
    for name, per_second in (("timestamp_ms", 1e3), ("timestamp", 1.0)):
        if isinstance(value := document.get(name), int | float):
            return float(value) / per_second
    return float("nan")


def _worked(document: Mapping[str, Any]) -> float:
    """Seconds since its jobs began."""
    jobs = document.get("jobs") or []
    spent = [j["elapsed"] for j in jobs if isinstance(j.get("elapsed"), int | float)]
    return float(max(spent, default=float("nan")))
