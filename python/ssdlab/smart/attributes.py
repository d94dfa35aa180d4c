"""What the attributes of ATA drives mean: no standard says so, and every vendor chose for itself.

An entry is a number, a pattern for the name that smartctl gives it (which depends on the drive's
family), and where the meaning comes from. Where smartctl does not know the family it prints default
names that need not fit; meanings with a vendor's unit then do not apply, and the attribute stays
unknown.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

How = Literal["raw", "second", "used raw", "left", "left agreed", "used agreed", "value", "told"]
"""Which number of an attribute is meant.

raw: the first number of the raw value; second: the one after its slash; used raw: raw is percent
used; left: the normalized value is percent left; left agreed, used agreed: raw is percent left, or
used, and counts only where the normalized value says the same; value: the normalized value; told:
a meaning without a field."""

UNITS = {
    "sector": (512, "sectors of 512 bytes"),
    "MiB": (1 << 20, "MiB"),
    "32MiB": (32 << 20, "32 MiB"),
    "GiB": (1 << 30, "GiB"),
    "GB": (10**9, "GB"),
}
"""In what amounts are counted: bytes, and in words."""
AMOUNTS = {
    "written_bytes": "written by the host",
    "read_bytes": "read by the host",
    "nand_bytes": "programmed into flash",
}


@dataclass(frozen=True)
class Meaning:
    """What one attribute means on the drives it fits."""

    id: int
    name: str
    """Pattern for the whole of smartctl's name."""
    field: str
    """Of :class:`~ssdlab.smart.Health`; empty where it only explains."""
    how: How
    what: str
    source: str
    unit: int = 1
    """Bytes, or 1."""
    family: str = ""
    """Pattern to be found in the family or model; empty for any."""
    known: bool = False
    """Whether it holds only for drives in smartctl's database."""

    def fits(self, number: int, name: str, family: str, known: bool) -> bool:
        """Whether this is what that attribute of such a drive means."""
        return (
            self.id == number
            and re.fullmatch(self.name, name) is not None
            and (known or not self.known)
            and re.search(self.family, family) is not None
        )


@cache
def meanings() -> tuple[Meaning, ...]:
    """All of them (`attributes.toml`), read once: those with a field first."""
    text = (resources.files(__package__) / "attributes.toml").read_text("utf-8")
    told = tomllib.loads(text)
    return tuple(
        Meaning(
            number,
            one["name"],
            one.get("field", ""),
            one.get("how", "raw" if "field" in one else "told"),
            one.get("what") or _usual(one),
            told["sources"][one["source"]],
            UNITS[one["unit"]][0] if "unit" in one else 1,
            told["drives"][one["drives"]] if "drives" in one else "",
            one.get("known", False),
        )
        for one in told["meanings"]
        for number in one["ids"]
    )


def _usual(one: Mapping[str, Any]) -> str:
    """What an entry means that does not say it: an amount, or wear told twice."""
    if "unit" in one:
        return f"{AMOUNTS[one['field']]}, in {UNITS[one['unit']][1]}"
    which = one["how"].split()[0]
    return f"percent of the rated endurance {which}, where normalized and raw value agree"


def meaning_of(number: int, name: str, family: str, known: bool) -> Meaning | None:
    """What an attribute means on a drive of that family and model, ``known`` where it is in
    smartctl's database, so that the names are its own; None where nobody says."""
    fitting = (meaning for meaning in meanings() if meaning.fits(number, name, family, known))
    return next(fitting, None)
