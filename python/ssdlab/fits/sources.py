"""Where observations come from: tables, data sheets, kept runs, and folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ssdlab.engine import findings
from ssdlab.errors import InputError
from ssdlab.fits import datasheet
from ssdlab.fits.conclusions import TRIMMED, Conclusion, conclusions, counted, states
from ssdlab.fits.observations import Observation, observations, read
from ssdlab.store import RunStore, open_run


@dataclass(frozen=True)
class Gathered:
    """What was found in all the places."""

    observed: list[Observation]
    capacity: int | None
    """Bytes of the drive, where runs tell it."""
    concluded: Sequence[Conclusion] = ()
    """What runs of ``characterise`` say of how the drive is made."""


def gather(places: Sequence[str]) -> Gathered:
    """The observations of tables (``*.csv``), data sheets (``*.toml``), runs, and folders of tables
    and runs, in the order given.

    Raises InputError where a place is none of these, has nothing measured, or where runs are of
    several drives.
    """
    drives: dict[tuple[str, int | None], str] = {}
    found: list[Observation] = []
    concluded: list[Conclusion] = []
    capacity: int | None = None
    for place in places:
        for path in _inside(place):
            if path.suffix == ".csv":
                found += read(path)
            elif path.suffix == ".toml":
                numbers, told = datasheet.read(path)
                found += numbers
                capacity = told if capacity is None else capacity
            else:
                found += _of_run(path, drives, concluded)
    if len(drives) > 1:
        ((one, _), first), ((other, _), second), *_ = drives.items()
        raise InputError(
            f"{second}: is of the drive {other}, and {first} of {one}; a twin is of one drive"
        )
    measured = next((size for _, size in drives), None)
    return Gathered(found, capacity if measured is None else measured, concluded)


def _inside(place: str) -> list[Path]:
    path = Path(place)
    if path.suffix in (".csv", ".toml") or (path / "manifest.json").is_file():
        return [path]
    if path.is_dir():
        inside = sorted(
            one
            for one in path.iterdir()
            if one.suffix == ".csv" or (one / "manifest.json").is_file()
        )
        if not inside:
            raise InputError(f"{place}: holds neither tables (.csv) nor runs")
        return inside
    return [RunStore().find(place)]


def _of_run(
    path: Path, drives: dict[tuple[str, int | None], str], concluded: list[Conclusion]
) -> list[Observation]:
    folder = open_run(path)
    target = folder.manifest.target
    drives.setdefault((target.name or folder.manifest.name, target.capacity_bytes), str(path))
    found: list[Observation] = []
    told = None
    if folder.manifest.protocol == "characterise":
        run = findings.read(folder)
        told = states(run)
        concluded += conclusions(run)
    for entry in folder.journal():
        if entry.kind == "job" and entry.measured and (told is None or entry.key in told):
            own = observations(folder.load(entry), told[entry.key] if told else None)
            found += own if told is None else [_as_said(one, entry.key) for one in own]
    if not found:
        raise InputError(f"{path}: no job of it reads or writes in a way that a table can say")
    return found


def _as_said(one: Observation, key: str) -> Observation:
    """The row of a step of ``characterise``."""
    load = replace(one.load, namespace=one.span) if key == TRIMMED else one.load
    return replace(one if counted(key) else one.without("waf"), load=load)
