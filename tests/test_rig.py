"""Rigs are looked into and changed by the core alone."""

from __future__ import annotations

import pytest

from ssdlab import _core
from ssdlab.errors import InputError
from ssdlab.rig import capacity_of, profile, profiles, reduced

CACHED = """
name = "cached"
summary = "an SSD before a disk"
[device]
kind = "cache"
[device.cache]
kind = "ssd"
capacity = { value = "4GiB", source = "datasheet" }
ftl = { over_provisioning = 0.28, gc = { victim = "greedy" } }
[device.below]
kind = "hdd"
capacity = "1TB"
"""


def test_a_rig_says_what_it_is_and_what_its_keys_are() -> None:
    rig = _core.Rig(CACHED, rig_name="x")
    assert (rig.name, rig.summary) == ("cached", "an SSD before a disk")
    assert (rig.find("ssd"), rig.find("hdd"), rig.find("tier")) == (["cache."], ["below."], [])
    assert rig.get("cache.ftl.gc.victim") == "greedy"
    assert (rig.bytes("cache.capacity"), rig.bytes("below.capacity")) == (4 << 30, 10**12)
    assert (rig.get("cache.nand.channels"), rig.bytes("cache.write_buffer.size")) == (None, None)
    with pytest.raises(InputError, match=r"^cache\.ftl\.gc\.victim: .*expected a size"):
        rig.bytes("cache.ftl.gc.victim")


def test_what_is_set_is_what_it_says_and_writes() -> None:
    rig = _core.Rig(profile("demo-client").text, rig_name="demo-client")
    memory = rig.memory_bytes
    rig.set("capacity", "1GiB")
    assert rig.bytes("capacity") == 1 << 30
    assert _core.Rig(rig.to_toml(), rig_name="again").bytes("capacity") == 1 << 30
    assert 0 < rig.memory_bytes < memory
    with pytest.raises(InputError, match="capacities"):
        rig.set("capacities", "1GiB")


def test_a_rig_is_made_of_rigs_and_its_parts_are_found_again() -> None:
    pool = _core.Rig(CACHED, rig_name="pool").part("below.")
    fast = _core.Rig(CACHED, rig_name="fast").part("cache")
    assert pool is not None
    assert fast is not None
    made = _core.Rig.wrap("cache", {"mode": "write-back"}, name="x", cache=fast, below=pool)
    assert (made.name, made.get("mode"), made.get("below.kind")) == ("x", "write-back", "hdd")
    assert ("cache.capacity", "4GiB", "datasheet") in made.values()
    again = _core.Rig(made.to_toml(), rig_name="again")
    assert sorted(again.values()) == sorted(made.values())
    assert made.part("member") is None
    mixed = _core.Rig.wrap("array", {"level": "raid0"}, members=[pool, fast])
    assert mixed.find("hdd") == ["members.0."]
    with pytest.raises(InputError, match="expected one rig as below"):
        _core.Rig.wrap("link", {}, under=pool)
    with pytest.raises(TypeError, match="no value of a rig"):
        _core.Rig.wrap("null", {"capacity": None})


def test_a_copy_is_changed_alone() -> None:
    rig = profile("lab-reference").rig()
    other = rig.copy(name="y", summary="another")
    other.set("capacity", "1GiB")
    assert (rig.bytes("capacity"), other.bytes("capacity")) == (16 << 30, 1 << 30)
    assert (rig.name, other.name, other.summary) == ("lab-reference", "y", "another")


def test_capacity_is_what_the_host_sees() -> None:
    drive = _core.Rig.wrap("null", {"capacity": "1GiB"})
    assert drive.capacity_bytes == 1 << 30
    keys = {"level": "raid5", "count": 4, "chunk": "64KiB"}
    assert _core.Rig.wrap("array", keys, member=drive).capacity_bytes == 3 << 30


def test_what_is_no_rig_is_one_sentence() -> None:
    for text in ("", "x = 1", "[device", "name = 3\n[device]\nkind = 'ssd'"):
        with pytest.raises(InputError, match=r"^broken(:| )"):
            _core.Rig(text, rig_name="broken")


@pytest.mark.parametrize("name", [one.name for one in profiles()])
def test_a_drive_made_smaller_is_built_and_about_as_small(name: str) -> None:
    rig = _core.Rig(profile(name).text, rig_name=name)
    if not (rig.find("ssd") or rig.find("hdd")):
        pytest.skip("no drive of blocks or platters")
    factor = max(2, capacity_of(name) >> 32)
    changes = reduced(name, factor)
    size = int(changes["capacity"].removesuffix("B"))
    assert size == pytest.approx(capacity_of(name) / factor, rel=0.25)
    _core.rig_check(profile(name).text, rig_name=name, overrides=list(changes.items()))


def test_a_drive_of_its_own_size_needs_no_changes() -> None:
    assert reduced("intel-x25-m-g2-160", 1) == {}


def test_what_cannot_be_made_smaller_says_why() -> None:
    null = _core.Rig('[device]\nkind = "null"\ncapacity = "1GiB"\n', rig_name="n")
    with pytest.raises(InputError, match="only an ssd or hdd can be made smaller"):
        null.scale(2)
    with pytest.raises(InputError, match=r"ftl\.over_provisioning: is not set"):
        _core.Rig('[device]\nkind = "ssd"\ncapacity = "1GiB"\n', rig_name="n").scale(2)
    with pytest.raises(InputError, match="0 times smaller"):
        null.scale(0)
