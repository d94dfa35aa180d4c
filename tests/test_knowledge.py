"""How well the drives are known: NAND parts, sources of values, what is fitted and what assumed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from conftest import Cli
from ssdlab import _core, knowledge
from ssdlab.knowledge import KnownValue
from ssdlab.rig import Profile, profile, profiles

GENERIC = ("demo-client", "demo-enterprise", "lab-reference")
"""No drives: their capacities and reserves are chosen."""
SHIPPED = [one for one in profiles() if one.name not in GENERIC]
SSDS = [one for one in SHIPPED if one.rig().find("ssd")]
PARTS = [one["name"] for one in _core.registries() if one["kind"] == "NAND part"]
EVERY = pytest.mark.parametrize("drive", SHIPPED, ids=lambda one: one.name)
EVERY_SSD = pytest.mark.parametrize("drive", SSDS, ids=lambda one: one.name)

INTERFACES = [one["name"] for one in _core.registries() if one["kind"] == "host interface"]

PART_FILES = Path(__file__).parents[1] / "crates/ssdlab/src/nand/parts"

ASSUMED_MAX = 0.4
FITTED_MAX = 3
MORE_ASSUMED: dict[str, int] = {
    "seagate-enterprise-10k8-1800": 50,
    "toshiba-mk4001grzb-400": 70,
    "toshiba-xg6-512": 45,
}
"""Percent of the values that are assumed, of the drives of which it is more than 40: what is not
found yet. The numbers fall, but where a source is found to have said too much; a drive that comes
below 40 is struck off."""


def of(drive: Profile) -> dict[str, KnownValue]:
    return {one.own_key: one for one in knowledge.values(drive.rig())}


@pytest.mark.parametrize("name", [*PARTS, *INTERFACES])
def test_every_value_of_a_description_says_how_it_is_known(name: str) -> None:
    starts = tuple(start for group in knowledge.CLASSES.values() for start in group)
    for key, _, source in _core.description(name):
        assert source.startswith(starts), f"{name}: {key}: {source}"


def test_blocks_have_whole_pages_of_every_layer() -> None:
    stacked = 0
    for name in PARTS:
        title = (PART_FILES / f"{name}.toml").read_text().partition("\n")[0]
        layers = re.search(r"(\d+) word lines", title) or re.search(r"(\d+)-layer", title)
        if layers is None:
            continue
        stacked += 1
        values = {key: value for key, value, _ in _core.description(name)}
        pages = int(values["pages_per_block"])
        strings, left = divmod(pages, int(layers[1]) * int(values["bits_per_cell"]))
        assert left == 0 and strings in (4, 8, 12, 16), f"{name}: {pages} pages, {title}"
    assert stacked >= 15


TITLES = {one["name"]: one["summary"] for one in _core.registries() if one["kind"] == "NAND part"}


@pytest.mark.parametrize("name", PARTS)
def test_what_a_part_is_called_is_what_it_is(name: str) -> None:
    title = TITLES[name]
    values = {key: value for key, value, _ in _core.description(name)}
    cell = re.search(r"([SMTQ])LC", title)
    assert cell and "SMTQ".index(cell[1]) + 1 == int(values["bits_per_cell"])
    if size := re.search(r"(\d+) ([GT])bit", title):
        mib = int(size[1]) * {"G": 128, "T": 128 << 10}[size[2]]
        digits, unit = re.fullmatch(r"(\d+)([GM])iB", values["die_size"]).groups()  # type: ignore[union-attr]
        assert mib <= int(digits) * {"M": 1, "G": 1 << 10}[unit] < 1.15 * mib


@EVERY_SSD
def test_a_drive_leaves_its_flash_to_a_part(drive: Profile) -> None:
    values = of(drive)
    assert values["nand.part"].text in PARTS
    assert values["nand.part"].source
    for key in (key for key, _, _ in _core.description(values["nand.part"].text)):
        one = values[f"nand.{key}"]
        assert one.origin or one.known != "assumed", f"{key} is guessed anew: {one.source}"


@EVERY
def test_a_drive_leaves_what_commands_take_on_its_interface_to_that(drive: Profile) -> None:
    if drive.rig().find("link"):
        values = of(drive)
        name = values["interface"].text
        supplied = {key: why for key, _, why in _core.description(name)}
        own = {key for key in supplied if values[key].origin != name}
        assert own <= {"command_time", "queue_slots"}
        assert all(values[key].source != supplied[key] for key in own)


@EVERY_SSD
def test_over_provisioning_follows_from_the_dies(drive: Profile) -> None:
    assert of(drive)["ftl.over_provisioning"].origin == "dies"


@EVERY
def test_at_most_two_fifths_of_the_values_are_assumed(drive: Profile) -> None:
    share = knowledge.assumed_share(knowledge.sourced(drive))
    listed = MORE_ASSUMED.get(drive.name)
    if listed is None:
        assert share <= ASSUMED_MAX, f"{share:.1%}"
    else:
        assert share > ASSUMED_MAX, "strike it off"
        assert round(100 * share) <= listed


def test_only_drives_that_ship_are_excepted() -> None:
    assert set(MORE_ASSUMED) <= {one.name for one in SHIPPED}


FITTED = knowledge.fitted(SHIPPED)


@pytest.mark.parametrize("family", FITTED)
def test_few_values_of_a_family_are_fitted_each_to_a_measurement(family: str) -> None:
    assert len(FITTED[family]) <= FITTED_MAX
    for one in FITTED[family].values():
        assert any(sign.isdigit() for sign in one.measurement), f"{one.own_key}: {one.source}"


def test_one_flash_is_one_description() -> None:
    """Two drives differ in a value of their part only where one has a source of its own."""
    by_part: dict[str, dict[str, str]] = {}
    for drive in SSDS:
        values = of(drive)
        name = values["nand.part"].text
        known = by_part.setdefault(name, {key: text for key, text, _ in _core.description(name)})
        for key, text in known.items():
            if values[f"nand.{key}"].origin == name:
                assert values[f"nand.{key}"].text == text
    assert len(by_part) > 10


def test_a_value_is_as_known_as_its_source_says() -> None:
    for source, known in (
        ("datasheet: MLC", "published"),
        ("SATA NCQ", "published"),
        ("measured: AnandTech", "measured"),
        ("from 16 dies", "derived"),
        ("fitted to 600 MB/s", "fitted"),
        ("assumed: recalled datasheet figure", "assumed"),
        ("as the 160 GB model", "assumed"),
        ("hearsay", "assumed"),
    ):
        assert KnownValue("k", "1", source, "").known == known


@EVERY
def test_a_source_can_be_looked_up(drive: Profile) -> None:
    """Labels of experiments that stand in no document are none."""
    labels = [one for one in knowledge.sourced(drive) if re.search(r"\bE\d\b", one.source)]
    assert not labels


def test_show_tells_what_is_put_in_fitted_and_predicted(cli: Cli) -> None:
    said = cli("show", "intel-x25-m-g2-160").out
    assert "imft-34nm-mlc" in said
    assert "put in by hand, ceilings: bandwidth (275MB/s) and controller.command_time" in said
    assert "controller.write_limit (100MB/s) to 100 MB/s" in said
    predicted = next(line for line in said.splitlines() if line.startswith("predicted: "))
    assert "write amplification" in predicted
    assert "sustained random writes" in predicted
    shown = json.loads(cli("show", "intel-x25-m-g2-160", "--json", "-").out)[0]
    row = next(one for one in shown["rows"] if one["key"] == "below.nand.t_erase")
    assert row["supplied by"] == "imft-34nm-mlc"
    assert "assumed" in shown["note"]
    said = cli("show", "intel-dc-s3700-200").out
    predicted = next(line for line in said.splitlines() if line.startswith("predicted: "))
    assert "sustained random writes" not in predicted, "controller.relocate_time is fitted to them"


def test_show_tells_of_a_rig_file_what_it_tells_of_a_profile(cli: Cli, tmp_path: Path) -> None:
    shipped = profile("micron-5200-eco-960")
    own = tmp_path / "mine.toml"
    own.write_text(shipped.text)
    said = cli("show", own)
    assert said.status == 0, said.err
    expected = cli("show", shipped.name).out.replace(f"{shipped.name}: ", "mine: ", 1)
    assert said.out == expected
    (found,), (same,) = (
        json.loads(cli("show", name, "--json", "-").out) for name in (own, shipped.name)
    )
    assert found == {**same, "name": str(own)}


def test_show_of_a_plain_rig_file_says_that_nothing_has_a_source(cli: Cli, tmp_path: Path) -> None:
    own = tmp_path / "bare.toml"
    own.write_text('[device]\nkind = "null"\ncapacity = "1GiB"\nservice_time = "10us"\n')
    said = cli("show", own)
    assert said.status == 0 and said.out.startswith("bare\n")
    assert "service_time\t10us" in said.out and "no value says where it comes from" in said.out
    own.write_text('[device]\nkind = "null"\ncapacity = "x"\n')
    for name, words in ((own, f"{own}: "), (tmp_path / "no.toml", "there is no such rig file")):
        refused = cli("show", name)
        assert refused.status == 2 and words in refused.err and refused.err.count("\n") == 1


def test_what_was_fitted_on_another_drive_is_predicted_of_this_one() -> None:
    def predicted(drive: str) -> str:
        return next(one for one in knowledge.told(profile(drive)) if one.startswith("predicted"))

    assert "sequential writes" not in predicted("intel-dc-p4510-2000")
    assert "sequential writes" not in predicted("intel-dc-p4610-1600"), (
        "its ways were chosen by them"
    )
    assert "sequential writes" in predicted("micron-5200-eco-960"), "of the same flash"


def test_a_part_is_listed_and_shown(cli: Cli) -> None:
    assert "bics4-tlc" in cli("list", "parts").out
    assert "bics4-tlc" not in cli("list", "policies").out
    assert "57 MB/s (ISSCC 2018" in cli("show", "bics4-tlc").out


def test_an_interface_is_listed_and_shown(cli: Cli) -> None:
    assert "pcie4-x4" in cli("list", "interfaces").out
    assert "pcie4-x4" not in cli("list", "policies").out
    assert "p50 of 9 us (SSD-iq)" in cli("show", "pcie4-x4").out
    assert "sata-6g" in cli("show", "samsung-860-pro-512").out


def test_what_is_fitted_for_all_drives_of_an_interface_is_fitted_once() -> None:
    of_interfaces = {name for name in FITTED if name in INTERFACES}
    assert of_interfaces == {"pcie3-x4", "pcie4-x4", "pcie5-x4"}
    assert len({one.text for name in of_interfaces for one in FITTED[name].values()}) == 1


def test_an_unknown_part_is_one_sentence_with_a_suggestion(cli: Cli, tmp_path: Path) -> None:
    rig, job = tmp_path / "rig.toml", tmp_path / "job.fio"
    rig.write_text(profile("intel-330-120").text.replace("imft-25nm-mlc", "imft-25nm-mcl"))
    job.write_text("[w]\nrw=write\nsize=1m\n")
    outcome = cli("run", job, "--on", rig)
    assert outcome.status == 2
    assert outcome.err.count("\n") == 1
    assert 'did you mean "imft-25nm-mlc"?' in outcome.err
