"""What drives cost: a small TOML that its user edits."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from ssdlab.errors import InputError
from ssdlab.jobfile import read_text

SHIPPED = "prices.toml"
_TABLES = ("drives", "controllers")


@dataclass(frozen=True)
class Prices:
    """Prices of drives and controllers by name, in one currency."""

    currency: str
    drives: Mapping[str, float]
    source: str
    """The file, for messages."""

    def of(self, bill: Mapping[str, int]) -> float | None:
        """Price of everything on a bill (drives by name); None where one has no price."""
        if any(name not in self.drives for name in bill):
            return None
        return sum(self.drives[name] * count for name, count in bill.items())

    def missing(self, bill: Mapping[str, int]) -> list[str]:
        """The drives on a bill that have no price."""
        return [name for name in bill if name not in self.drives]


def prices(path: Path | None = None) -> Prices:
    """The prices of a file, over those that ship with ssdlab; those alone without one; InputError
    where the file cannot be read or says something else."""
    shipped = _parse((resources.files("ssdlab.plan") / SHIPPED).read_text("utf-8"), SHIPPED)
    if path is None:
        return shipped
    own = _parse(read_text(path, "price file"), str(path))
    # Prices in two currencies do not add up.
    base = shipped.drives if own.currency == shipped.currency else {}
    return Prices(own.currency, {**base, **own.drives}, str(path))


def _parse(text: str, place: str) -> Prices:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{place}: is not TOML ({error}), so it gives no prices") from None
    unknown = sorted(set(table) - {"currency", *_TABLES})
    if unknown:
        raise InputError(
            f"{place}: found {unknown[0]}, expected currency and the tables [drives] and "
            "[controllers]"
        )
    currency = table.get("currency")
    if not isinstance(currency, str) or not currency:
        raise InputError(f'{place}: currency: found {currency!r}, expected a name such as "EUR"')
    found: dict[str, float] = {}
    for key in _TABLES:
        found |= _prices(table.get(key, {}), place, key)
    return Prices(currency, found, place)


def _prices(table: object, place: str, key: str) -> dict[str, float]:
    if not isinstance(table, dict):
        raise InputError(f"{place}: {key}: expected a table of names and prices")
    for name, price in table.items():
        right = isinstance(price, int | float) and not isinstance(price, bool)
        if not right or not 0 <= price < math.inf:
            raise InputError(
                f"{place}: {key}.{name}: found {price!r}, expected a price of 0 or more"
            )
    return {name: float(price) for name, price in table.items()}
