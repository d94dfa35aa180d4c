"""The health of a simulated drive, from the counters in its result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ssdlab.errors import InputError
from ssdlab.health.json_access import at, count, number, text
from ssdlab.health.model import Health
from ssdlab.health.smartctl import DATA_UNIT


def from_wear(about: Mapping[str, Any], name: str) -> Health:
    """The drive of a simulated run; ``about`` is the object ``ssdlab`` of its result.

    Raises:
        InputError: the rig has no SSD, or an older version wrote the result.
    """
    wear = at(about, "wear")
    if not isinstance(wear, Mapping):
        raise InputError(
            f"{name}: reports no wear; it is a run of a rig without an SSD or of an older version"
        )
    erases, rated = number(wear, "erases_mean"), count(wear, "rated_pe_cycles")
    units = count(wear, "data_units_written")
    written = _counter(about, "host_bytes_written")
    exact = written is not None
    if written is None and units is not None:
        written = units * DATA_UNIT
    read = _counter(about, "host_bytes_read")
    amplification = number(about, "waf_lifetime")
    known = written is not None and amplification is not None
    return Health(
        model=Path(text(about, "target", "name") or "").name or None,
        family=text(about, "target", "summary"),
        capacity_bytes=count(about, "target", "capacity_bytes"),
        interface="simulated",
        is_ssd=True,
        used_percent=100 * erases / rated if erases is not None and rated else None,
        written_bytes=written,
        read_bytes=read,
        nand_bytes=round(amplification * written) if known else None,  # type: ignore[operator]
        written_step_bytes=1 if exact else DATA_UNIT,
        host_bytes_left=number(wear, "endurance", "host_bytes_left"),
        origins={
            "used_percent": "mean erases of the superblocks for data over the rated cycles",
            "nand_bytes": "write amplification since new times what the host wrote",
        },
    )


def _counter(about: Mapping[str, Any], last: str) -> int | None:
    """A counter of the SSD itself, the deepest device that has one of that name."""
    counters = at(about, "counters")
    if not isinstance(counters, Mapping):
        return None
    names = [one for one in counters if str(one).rpartition("/")[2] == last]
    return count(counters, max(names, key=lambda one: one.count("/"))) if names else None
