"""What programs call a quantity that people read under a head: one name everywhere, with its unit.

``p99 [us]`` is ``clat_p99_ns``, ``speed [MB/s]`` is ``bw_bytes``: the names that summaries of runs
have, in base units.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

UNITS = {
    "ns": ("ns", 1.0), "us": ("ns", 1e3), "ms": ("ns", 1e6),
    "s": ("s", 1.0), "min": ("s", 60.0), "h": ("h", 1.0), "years": ("years", 1.0),
    "IOPS": ("iops", 1.0),
    "MB/s": ("bw_bytes", 1e6),
    "B": ("bytes", 1.0), "KiB": ("bytes", 1024.0), "GiB": ("bytes", 2.0**30), "MB": ("bytes", 1e6),
    "GB": ("bytes", 1e9), "TB": ("bytes", 1e12), "GB/day": ("bytes_per_day", 1e9),
    "%": ("percent", 1.0), "ratio": ("ratio", 1.0), "°C": ("c", 1.0), "x": ("", 1.0), "": ("", 1.0),
}  # fmt: skip
"""By the unit of a head: how a name ends, and what its values are multiplied by."""
BASE = {"bw_bytes": "B/s", "bytes": "B", "bytes_per_day": "B/day", "iops": "IOPS", "percent": "%"}
"""Units of names that end so, where they are not the ending itself."""
_SAME = {
    "iops": r"(?:rate|operations)",
    "bw_bytes": r"(?:throughput|speed|bandwidth|mb_s)",
}
"""Words that say no more than the ending."""
_AMPLIFICATION = re.compile(r"\b(?:waf?|(?:write )?amplification)\b")
_STATISTIC = re.compile(r"(?<![a-z])(p\d+|mean|max)$")


class Quantity(NamedTuple):
    """A quantity as programs have it."""

    name: str
    """With its unit."""
    unit: str
    factor: float
    """What a value under the head is multiplied by."""

    def of(self, value: float) -> float:
        """A value in the unit of the name; no digits are made up by the multiplication."""
        return value if self.factor == 1.0 else float(f"{value * self.factor:.15g}")


def quantity(head: str, unit: str = "") -> Quantity:
    """What is read under a head, in a unit as heads have it (:data:`UNITS`)."""
    ending, factor = UNITS.get(unit, (_plain(unit), 1.0))
    name = _AMPLIFICATION.sub("waf", re.sub(r"(?<=\d)\.(?=\d)", "", head.lower()))
    if ending == "ns":
        name = re.sub(r"^(\d+) %$", r"p\1", name)
    name = _plain(name)
    if (same := _SAME.get(ending)) is not None:
        name = re.sub(rf"(?:^|_){same}$", "", name)
    if ending == "ns" and "lat" not in name:
        name = _STATISTIC.sub(r"clat_\1", name)
    told = (
        f"_{ending}_" in f"_{name}_"
        or (ending == "bytes" and name.endswith("byte"))
        or (ending == "percent" and name.endswith("share"))
    )
    whole = name if told or not ending else f"{name}_{ending}".lstrip("_")
    return Quantity(whole, BASE.get(ending, unit if factor == 1.0 else ending), factor)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower().replace("%", " percent ")).strip("_")


def told_apart(names: Iterable[str]) -> list[str]:
    """The names of columns, those that repeat with a number: ``iops``, ``iops__2``."""
    found: list[str] = []
    for name in names:
        own, count = name, 1
        while own in found:
            count += 1
            own = f"{name}__{count}"
        found.append(own)
    return found
