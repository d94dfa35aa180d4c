"""The health of a simulated drive, from the counters in its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ssdlab.errors import InputError
from ssdlab.json_access import at, count, number, text
from ssdlab.results import Result
from ssdlab.smart.model import Health
from ssdlab.smart.smartctl import DATA_UNIT
from ssdlab.wear import Stretch


def from_wear(about: Mapping[str, Any], name: str) -> Health:
    """The drive of a simulated run; ``about`` is the object ``ssdlab`` of its result; InputError
    where the rig has no SSD, or an older version wrote the result."""
    wear = at(about, "wear")
    if not isinstance(wear, Mapping):
        raise InputError(
            f"{name}: reports no wear; it is a run of a rig without an SSD or of an older version"
        )
    path, worn = _most_worn(wear)
    erases, rated = number(worn, "erases_mean"), count(worn, "rated_pe_cycles")
    units = count(worn, "data_units_written")
    counters = _numbers(about)
    ssds = Stretch.since_new(counters).by_path
    if path not in ssds:  # versions that did not tell the SSDs of a rig apart
        path = max(ssds, key=lambda one: one.count("/"), default="")
    life = ssds.get(path)

    def own(name: str) -> int | None:
        return counters.get(f"{path}/{name}".removeprefix("/"))

    capacity, whole = own("capacity_bytes"), count(about, "target", "capacity_bytes")
    exact = life is not None
    written = life.host if life else units * DATA_UNIT if units is not None else None
    return Health(
        model=Path(text(about, "target", "name") or "").name or None,
        family=text(about, "target", "summary"),
        capacity_bytes=capacity if capacity and len(ssds) > 1 else whole,
        interface="simulated",
        is_ssd=True,
        used_percent=100 * erases / rated if erases is not None and rated else None,
        written_bytes=written,
        read_bytes=own("host_bytes_read"),
        nand_bytes=life.programmed if life else None,
        written_step_bytes=1 if exact else DATA_UNIT,
        host_bytes_left=number(worn, "endurance", "host_bytes_left"),
        origins={
            "used_percent": "mean erases of the superblocks for data over the rated cycles",
            "nand_bytes": "bytes programmed since new",
        },
    )


def from_run(result: Result, name: str) -> Health:
    """The same of a whole result: the host goes on as in the window that its numbers are of, not as
    in all of the run, in which a drive may have been new for a time."""
    health = from_wear(result.ssdlab, name)
    main = result.measurement.main
    writes = main.of("write") if main else None
    if main is None or writes is None:
        return health
    path, _ = _most_worn(result.ssdlab["wear"])
    wear = writes.stretch.wear
    member = wear.members.get(path) if wear else None
    left = member.endurance.host_bytes_left if member and member.endurance else None
    return replace(
        health,
        host_bytes_left=health.host_bytes_left if left is None else left,
        run_steady=main.window.steady,
    )


def _most_worn(wear: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The SSD of the rig with the most of its rated cycles used up: its path and SMART counters."""
    members = wear.get("members")
    found = members if isinstance(members, Mapping) else {}

    def used(path: str) -> float:
        rated = number(found, path, "rated_pe_cycles")
        return (number(found, path, "erases_mean") or 0.0) / rated if rated else 0.0

    path = max(found, key=used, default="")
    return path, found.get(path, wear)


def _numbers(about: Mapping[str, Any]) -> dict[str, int]:
    counters = at(about, "counters")
    names = counters if isinstance(counters, Mapping) else {}
    return {str(name): known for name in names if (known := count(names, name)) is not None}
