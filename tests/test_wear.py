"""Write amplification and endurance of rigs of several drives: closed forms, by path, in bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ssdlab
from ssdlab.answers.run import reasons, traces_of
from ssdlab.results import Result
from ssdlab.wear import Stretch, rated_bytes

SSD = """kind = "ssd"
capacity = "64MiB"
nand = {{ channels = 1, ways = 2, page = "16KiB", pages_per_block = 64, t_read = "75us", \
t_program = "750us", t_erase = "3.8ms", transfer_mts = 333, rated_pe_cycles = 1000 }}
ftl = {{ over_provisioning = 1.5, mapping_unit = "{unit}" }}
write_buffer = {{ size = "1MiB", power_loss_protected = true, drain = "immediate" }}
"""
DISK = 'kind = "null"\ncapacity = "256MiB"\nservice_time = "20us"\nservers = 4\n'
ARRAY = """[device]
kind = "array"
level = "{level}"
chunk = "64KiB"
count = {count}
[device.member]
"""
FILL = "[w]\nrw=write\nbs={bs}\nsize=100%\niodepth=8\n"


def ssd(unit: str = "4KiB") -> str:
    return SSD.format(unit=unit)


def array(level: str, count: int) -> str:
    return ARRAY.format(level=level, count=count) + ssd()


def run(rig: str, tmp_path: Path, job: str = FILL, bs: str = "64k", prepare: str = "fob") -> Result:
    path = tmp_path / "rig.toml"
    path.write_text(f'name = "r"\n{rig}')
    return ssdlab.run(job.format(bs=bs), on=path, prepare=prepare)


def endurance(result: Result) -> dict[str, float]:
    found: dict[str, float] = result.ssdlab["wear"]["endurance"]
    return found


def one_drive(tmp_path: Path) -> dict[str, float]:
    return endurance(run("[device]\n" + ssd(), tmp_path))


def test_a_drive_alone_lasts_for_its_rated_cycles_times_its_flash(tmp_path: Path) -> None:
    result = run("[device]\n" + ssd(), tmp_path)
    wear = result.ssdlab["wear"]
    assert endurance(result)["write_amplification"] == pytest.approx(1.0, rel=0.01)
    total = 1000 * wear["physical_bytes"]
    assert endurance(result)["host_bytes"] == pytest.approx(total, rel=0.01)
    assert list(wear["members"]) == [""]
    assert wear["members"][""] == {key: wear[key] for key in wear if key != "members"}


@pytest.mark.parametrize(
    ("level", "count", "bs", "times"),
    [
        ("raid0", 4, "64k", 4.0),
        ("raid1", 2, "64k", 1.0),
        ("raid10", 4, "64k", 2.0),
        ("raid5", 4, "192k", 3.0),  # full stripes
        ("raid6", 4, "128k", 2.0),
    ],
)
def test_an_array_lasts_as_many_drives_as_hold_its_data(
    level: str, count: int, bs: str, times: float, tmp_path: Path
) -> None:
    one = one_drive(tmp_path)["host_bytes"]
    result = run(array(level, count), tmp_path, bs=bs)
    wear = result.ssdlab["wear"]
    assert endurance(result)["host_bytes"] == pytest.approx(times * one, rel=0.02)
    assert len(wear["members"]) == count
    for member in wear["members"].values():
        # In bytes written to it each lasts as long as alone.
        assert member["endurance"]["host_bytes"] == pytest.approx(one, rel=0.02)
    assert wear["data_units_written"] == sum(
        member["data_units_written"] for member in wear["members"].values()
    )
    assert result.waf == pytest.approx(1.0, rel=0.01)


def test_the_rig_lasts_as_long_as_the_member_that_wears_out_first(tmp_path: Path) -> None:
    members = "".join(f"[[device.members]]\n{ssd(unit)}" for unit in ("4KiB", "16KiB"))
    rig = f'[device]\nkind = "array"\nlevel = "raid0"\nchunk = "16KiB"\n{members}'
    job = "[w]\nrw=randwrite\nbs=4k\nsize=50%\niodepth=8\n"
    result = run(rig, tmp_path, job)
    wear = result.ssdlab["wear"]
    small, large = (one["endurance"] for one in wear["members"].values())
    assert small["write_amplification"] == pytest.approx(1.0, rel=0.02)
    assert large["write_amplification"] == pytest.approx(4.0, rel=0.02)
    # By bytes: each takes half of the writes, so the rig twice what its weaker member does.
    assert result.waf == pytest.approx(2.5, rel=0.02)
    assert sum(Stretch.of(result).causes.values()) == pytest.approx(result.waf or 0, rel=0.01)
    assert wear["endurance"]["host_bytes"] == pytest.approx(2 * large["host_bytes"], rel=0.02)
    worst = max(wear["members"].values(), key=lambda one: one["erases_mean"])
    assert wear["erases_mean"] == worst["erases_mean"]


def cache(mode: str, more: str = "") -> str:
    keys = f'kind = "cache"\nmode = "{mode}"\n{more}'
    return f"[device]\n{keys}[device.cache]\n{ssd()}[device.below]\n{DISK}"


def test_a_cache_lasts_longer_by_the_share_that_it_is_not_written(tmp_path: Path) -> None:
    """Half of the writes go past it: large ones in sequence, none of which it takes."""
    job = (
        "[random]\nrw=randwrite\nbs=64k\nsize=24m\nrandom_generator=lfsr\n"
        "[stream]\nstonewall\nrw=write\nbs=64k\noffset=128m\nsize=24m\n"
    )
    result = run(cache("write-back", 'sequential_cutoff = "1MiB"\n'), tmp_path, job)
    found = Stretch.of(result).wear
    assert found is not None and found.endurance is not None
    (path,) = found.members
    member = found.members[path]
    counters: dict[str, Any] = result.ssdlab["counters"]
    assert counters["cache_host_bytes_written"] == 48 << 20
    share = counters[f"{path}/host_bytes_written"] / (48 << 20)
    assert share < 0.6
    assert member.share == pytest.approx(share)
    assert member.endurance is not None
    assert found.endurance.host_bytes == pytest.approx(member.endurance.host_bytes / share)


def test_reads_alone_wear_the_drive_of_a_cache_by_what_they_bring_in(tmp_path: Path) -> None:
    result = run(cache("write-through"), tmp_path, "[r]\nrw=randread\nbs={bs}\nsize=100%\n")
    ((read,),) = traces_of([result])
    assert read.wear is not None and read.wear.endurance is None
    assert read.measured.waf is None, "the job wrote nothing"
    member = read.wear.members["cache"]
    assert member.endurance is not None and member.share == 0
    takes = member.flash.rated_bytes / member.endurance.write_amplification
    assert member.endurance.host_bytes == pytest.approx(takes)
    (said,) = [one for one in reasons(read) if one.startswith("Endurance")]
    assert said.startswith("Endurance of cache at this rate of wear")
    assert "of what is written to it, for the host writes nothing" in said


def test_a_drive_made_smaller_tells_the_endurance_of_the_whole_one(tmp_path: Path) -> None:
    job = "[w]\nrw=write\nbs=64k\nsize=16m\n"
    whole, small = (ssdlab.run(job, on="demo-client", scale=scale) for scale in (1, 8))
    for key in ("host_bytes", "dwpd_5_years"):
        assert endurance(small)[key] == pytest.approx(endurance(whole)[key], rel=0.05), key
    told = [reasons(traces_of([one])[0][0])[-1] for one in (whole, small)]
    assert told[0].startswith("Endurance at this rate of wear")
    assert told[1].startswith("Endurance at full size, not as small as it is simulated, at this")


def test_a_drive_that_is_given_a_size_stands_for_no_other() -> None:
    job = "[w]\nrw=write\nbs=64k\nsize=16m\n"
    own = {"capacity": "32GiB"}  # twice that of the whole drive
    sized = ssdlab.run(job, on="demo-client", scale=2, set=own).ssdlab["counters"]
    assert "below/full_capacity_bytes" not in sized
    assert sized["below/capacity_bytes"] == 32 << 30


def test_drive_writes_of_a_rig_are_not_told_where_its_size_is_not_known(tmp_path: Path) -> None:
    """The SSD of a cache says that it was made smaller; of what is behind it nothing is known."""
    whole = run(cache("write-back"), tmp_path)
    rig = cache("write-back").replace('"64MiB"', '"64MiB"\nfull_capacity = "640MiB"')
    small = run(rig, tmp_path)
    assert endurance(small)["host_bytes"] == pytest.approx(10 * endurance(whole)["host_bytes"])
    assert endurance(whole)["dwpd_5_years"] and endurance(small)["dwpd_5_years"] is None
    assert "DWPD" not in reasons(traces_of([small])[0][0])[-1]


def test_of_a_tier_only_what_reaches_its_ssd_wears(tmp_path: Path) -> None:
    rig = (
        '[device]\nkind = "tier"\nextent = "1MiB"\nperiod = "1000s"\n'
        f"[device.fast]\n{ssd()}[device.below]\n{DISK}"
    )
    result = run(rig, tmp_path, FILL, prepare="fob")
    found = Stretch.of(result).wear
    assert found is not None and found.endurance is not None
    (member,) = found.members.values()
    counters = result.ssdlab["counters"]
    share = counters["fast/host_bytes_written"] / counters["tier_host_bytes_written"]
    assert 0.0 < share < 1.0
    assert member.endurance is not None
    assert found.endurance.host_bytes == pytest.approx(member.endurance.host_bytes / share)


def test_what_ram_of_a_card_absorbs_does_not_wear_but_counts_as_written(tmp_path: Path) -> None:
    ram = 'size = "32MiB"\nmode = "write-back"\nbattery = true\ndestage_delay = "1ms"\n'
    keys = f'kind = "controller"\nbandwidth = "2GB/s"\n[device.cache]\n{ram}'
    card = f"[device]\n{keys}[device.below]\n{ssd()}"
    job = "[w]\nrw=randwrite\nbs=4k\nsize=1m\nnorandommap\nio_size=64m\niodepth=4\n"
    result = run(card, tmp_path, job)
    found = Stretch.of(result).wear
    assert found is not None and found.endurance is not None
    counters = result.ssdlab["counters"]
    assert counters["card_bytes_written"] == 64 << 20
    share = counters["below/host_bytes_written"] / (64 << 20)
    assert 0.0 < share < 0.5
    (member,) = found.members.values()
    assert member.endurance is not None
    assert found.endurance.host_bytes == pytest.approx(member.endurance.host_bytes / share)


@pytest.mark.parametrize(("level", "times"), [("raid0", 4.0), ("raid10", 2.0), ("raid5", 3.0)])
def test_the_rating_of_an_array_is_that_of_its_capacity(
    level: str, times: float, tmp_path: Path
) -> None:
    result = run(array(level, 4), tmp_path)
    counters = result.ssdlab["counters"]
    rated = rated_bytes(counters, result.ssdlab["target"]["capacity_bytes"])
    one = 1000 * result.ssdlab["wear"]["physical_bytes"] / 4
    assert rated == pytest.approx(times * one, rel=0.01)


def test_what_is_overwritten_in_the_buffer_is_said_and_not_programmed(tmp_path: Path) -> None:
    job = "[w]\nrw=randwrite\nbs={bs}\nsize=64k\nnumber_ios=5000\nnorandommap\nio_size=1g\n"
    rig = "[device]\n" + ssd().replace("immediate", "watermark")
    rig += 'controller = { command_time = "10us" }\n'
    result = run(rig, tmp_path, job, bs="4k")
    assert result.waf == 0
    life = Stretch.since_new(result.ssdlab["counters"])
    assert life.absorbed == pytest.approx(1 - 16 / 5000)
    said = " ".join(reasons(traces_of([result])[0][0]))
    assert "Write amplification (WA): 0. 100 % of the writes replaced data" in said, said


def test_a_rig_that_is_not_flash_alone_has_no_rating(tmp_path: Path) -> None:
    counters = run(cache("write-through"), tmp_path).ssdlab["counters"]
    assert rated_bytes(counters, 1 << 30) is None


def test_results_of_before_bytes_were_counted_are_read_in_units() -> None:
    old = {
        "host_units_written": 100, "programs_host": 100, "programs_collection": 150,
        "unit_bytes": 4096,
    }  # fmt: skip
    life = Stretch.since_new(old)
    assert life.causes == {"host": 1.0, "collection": 1.5}
    assert life.host_bytes == 409_600
    older = {name: value for name, value in old.items() if name != "unit_bytes"}
    assert Stretch.since_new(older).amplification == 2.5
    assert Stretch.since_new(older).wear is None
