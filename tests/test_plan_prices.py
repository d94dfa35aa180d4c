"""Prices: what ships, what a file of the user's changes, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssdlab.arrays.attachment import shipped_attachments
from ssdlab.errors import InputError
from ssdlab.plan.prices import prices
from ssdlab.rig import profiles


def test_everything_that_ships_has_a_price() -> None:
    priced = prices().drives
    assert [one.name for one in profiles() if one.name not in priced] == []
    assert [name for name in shipped_attachments() if name not in priced] == []


def test_prices_add_up_by_number_of_drives() -> None:
    found = prices()
    disk, ssd = found.drives["hgst-he10-10000"], found.drives["samsung-pm883-1920"]
    assert found.of({"hgst-he10-10000": 2, "samsung-pm883-1920": 3}) == 2 * disk + 3 * ssd
    assert found.of({"hgst-he10-10000": 2, "mine": 1}) is None
    assert found.missing({"hgst-he10-10000": 2, "mine": 1}) == ["mine"]


def test_a_file_goes_before_what_ships_in_the_same_currency_only(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('currency = "USD"\n[drives]\nhgst-he10-10000 = 99.5\n')
    assert prices(own).of({"hgst-he10-10000": 2}) == 199
    assert prices(own).drives["samsung-pm883-1920"] == prices().drives["samsung-pm883-1920"]
    own.write_text('currency = "EUR"\n[drives]\nhgst-he10-10000 = 99\n[controllers]\ncard = 5\n')
    assert prices(own).drives == {"hgst-he10-10000": 99.0, "card": 5.0}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("= 1", "is not TOML"),
        ('currency = "EUR"\ndrive = 1\n', "found drive, expected currency"),
        ("[drives]\nx = 1\n", "currency: found None"),
        ('currency = "EUR"\n[drives]\nx = -1\n', "drives.x: found -1"),
        ('currency = "EUR"\n[drives]\nx = inf\n', "drives.x: found inf"),
        ('currency = "EUR"\n[controllers]\nx = "1"\n', "controllers.x: found '1'"),
        ('currency = "EUR"\ndrives = 1\n', "drives: expected a table"),
    ],
)
def test_a_wrong_file_of_prices_is_told(tmp_path: Path, text: str, part: str) -> None:
    own = tmp_path / "own.toml"
    own.write_text(text)
    with pytest.raises(InputError, match=part) as error:
        prices(own)
    assert str(own) in str(error.value)


def test_a_missing_file_of_prices_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such price file"):
        prices(tmp_path / "no.toml")
