"""What lies between host and members: controller cards, shared bandwidths, bottlenecks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Cli
from ssdlab import _core
from ssdlab.arrays.attachment import Attachment, attachment, shipped_attachments, with_bus
from ssdlab.arrays.grid import ArrayCase, DriveSetup
from ssdlab.arrays.performance import Performance
from ssdlab.arrays.rigs import ArrayShape, array_rig, shipped
from ssdlab.errors import InputError
from ssdlab.jobfile import JobText
from ssdlab.target import Settings, Sim

NULL = Sim(
    "null",
    '[device]\nkind = "null"\ncapacity = "256MiB"\nservice_time = "100us"\nservers = 32\n',
)
READS = "[r]\nrw=randread\nbs=4k\niodepth=64\nnorandommap\ntime_based\nruntime=200ms\n"
WRITES = READS.replace("randread", "randwrite")


def one(behind: Attachment, text: str = READS, level: str = "0", count: int = 4) -> Performance:
    job = JobText("j.fio", text, Path())
    setup = DriveSetup(NULL, prepare="fob", attachment=behind)
    return setup.measure({"one": ArrayCase(ArrayShape(level, count), job)})["one"]


@pytest.mark.parametrize("name", list(shipped_attachments()))
def test_what_ships_builds_and_every_number_has_a_source(name: str) -> None:
    found = attachment(name)
    assert found.summary
    _core.rig_check(array_rig(shipped("lab-reference"), ArrayShape("5", 4), found), rig_name=name)
    for key, _, source in found.values():
        assert source, f"{name}: {key}"


def test_a_card_holds_iops_to_its_cores_by_their_time() -> None:
    card = Attachment(
        '[controller]\nbandwidth = "10GB/s"\ncommand_time = "20us"\ncores = 2\n', file_name="card"
    )
    found = one(card)
    assert found.iops == pytest.approx(100_000, rel=0.01)
    assert found.shared["card"] == pytest.approx(1.0, abs=0.01)
    assert found.parts["card"] > 0.5
    assert found.utilisation is not None
    assert found.utilisation.max <= 1.0


def test_members_get_the_bandwidth_of_their_bus_together() -> None:
    found = one(with_bus(Attachment(), "1GB/s"), READS.replace("bs=4k", "bs=256k"))
    assert found.bytes_per_s == pytest.approx(1e9, rel=0.01)
    assert found.shared["bus"] == pytest.approx(1.0, abs=0.01)


def test_the_members_of_an_array_behind_a_card_are_seen() -> None:
    card = Attachment('[controller]\nbandwidth = "10GB/s"\n', file_name="card")
    text = WRITES.replace("time_based\nruntime=200ms", "number_ios=500").replace("=64", "=1")
    found, plain = one(card, text, "5"), one(Attachment(), text, "5")
    assert found.member_ios == pytest.approx(plain.member_ios, rel=0.01)
    assert found.shared["card"] == 0.0


def test_ram_takes_writes_until_it_is_full() -> None:
    cache = '{ size = "4MiB", battery = true, dirty_high = 1.0, dirty_low = 0.0 }'
    keys = f'bandwidth = "10GB/s"\ncommand_time = "5us"\ncache = {cache}\n'
    card = Attachment(f"[controller]\n{keys}", file_name="card")
    slow = Sim("slow", NULL.rig.replace("100us", "2ms").replace("servers = 32", "servers = 1"))
    job = JobText("j.fio", WRITES.replace("runtime=200ms", "runtime=1s\nramp_time=200ms"), Path())
    setup = DriveSetup(slow, prepare="fob", attachment=card)
    found = setup.measure({"one": ArrayCase(ArrayShape("0", 4), job)})["one"]
    # Four disks of 500 a second; of what is written at random some is side by side or twice.
    assert 1950 <= found.iops < 2600
    assert found.parts["cache"] > 0.9


def test_an_array_is_measured_where_its_rate_is_steady() -> None:
    """What fills the RAM of a card at first is no rate of the array."""
    cache = '{ size = "16MiB", battery = true, dirty_high = 1.0, dirty_low = 0.0 }'
    card = Attachment(f'[controller]\nbandwidth = "10GB/s"\ncache = {cache}\n', file_name="card")
    slow = Sim("slow", NULL.rig.replace("100us", "2ms").replace("servers = 32", "servers = 1"))
    job = JobText("j.fio", WRITES.replace("runtime=200ms", "runtime=30s"), Path())
    rig = DriveSetup(slow, attachment=card).rig(ArrayShape("0", 4))
    result = Sim("array", rig).run(job, Settings(prepare="fob", interval_ms=100))
    (direction,) = result.measurement.directions
    assert direction.window.steady
    assert direction.window.start_s > 0
    found, whole = Performance.of(result), Performance.of(result, whole=True)
    assert found.iops == direction.iops
    assert found.latency.ios == direction.ios
    assert found.seconds == pytest.approx(direction.window.seconds)
    assert whole.seconds == pytest.approx(30, rel=0.01)
    assert whole.iops > 1.05 * found.iops
    # Each of the four is written its share of the window, and not of what came before.
    assert found.written is not None
    assert whole.written is not None
    share = found.seconds / whole.seconds
    assert found.written.mean == pytest.approx(share * whole.written.mean, rel=0.02)
    assert found.utilisation is not None
    assert 0.9 < found.utilisation.min <= found.utilisation.max <= 1.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("= 1", r"^card\.toml:1: "),
        ('name = "x"', "expected tables \\[controller\\] or \\[bus\\]"),
        ("[card]\nx = 1", "found card"),
        ("bus = 3", "found bus"),
        ("[controller]\nnonsense = 3", r"^card\.toml: controller\.nonsense: unknown key"),
        ("[controller]\ncores = 'x'", r"^card\.toml: controller\.cores: found \"x\""),
        ("[controller.cache]\nsize = '1MiB'\nmod = 'x'", r"^card\.toml: controller\.cache\.mod: "),
        ("[bus]\nbandwith = '2GB/s'", r"^card\.toml: bus\.bandwith: .* mean bandwidth"),
        ("[bus]\nbandwidth = '2'\n[controller]\ncores = 2", r"^card\.toml: bus\.bandwidth: "),
    ],
)
def test_what_describes_no_controller_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Attachment(text, file_name="card.toml")


def test_bad_options_are_one_sentence(cli: Cli, tmp_path: Path) -> None:
    drive = ("lab-reference", "--levels", "0", "--count", "2", "--quiet")
    for more, says in (
        (("--bus", "fast"), "expected a rate with its unit, such as 2GB/s"),
        (("--controller", "intel-dmi3"), "intel-dmi2"),
        (("--controller", str(tmp_path / "no.toml")), "no.toml"),
    ):
        found = cli("array", *drive, *more)
        assert found.status == 2, found
        assert says in found.err
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('[controller]\nbandwidth = "1GB/s"\ncoers = 2\n')
    found = cli("array", *drive, "--controller", str(wrong))
    assert found.status == 2
    assert "coers" in found.err
    assert "cores" in found.err


def test_the_recommendation_names_the_bottleneck(cli: Cli, tmp_path: Path) -> None:
    drive = tmp_path / "null.toml"
    drive.write_text(NULL.rig)
    out = tmp_path / "out.json"
    shape = ("--levels", "0", "--count", "4", "--workload", "random-read", "--prepare", "fob")
    found = cli("array", str(drive), *shape, "--bus", "100MB/s", "--json", str(out))
    assert found.status == 0, found
    document = json.loads(out.read_text())
    assert document["controller"] == "a bus of 100MB/s"
    said = " ".join(document["sections"][0]["sentences"])
    assert "The bottleneck is the bus that the members share, busy 100 %" in said
    row = document["sections"][0]["rows"][1]
    assert row["iops"] == pytest.approx(100e6 / 4096, rel=0.01)
    assert row["shared_utilisation"]["bus"] == pytest.approx(1.0, abs=0.01)


def test_controllers_are_listed_and_shown_with_their_sources(cli: Cli) -> None:
    assert "intel-dmi2" in cli("list", "controllers").out
    shown = cli("show", "intel-dmi2")
    assert shown.status == 0
    assert "bus.bandwidth" in shown.out
    assert "1600MB/s" in shown.out
    assert "measured" in shown.out
