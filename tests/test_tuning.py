"""A drive is set up for a run and everything is put back after it, on recorded systems."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import Outcome
from recorded import DISK_QUEUE, Recorded
from scripted import Scripted
from ssdlab import admin as identify
from ssdlab import tuning
from ssdlab.audits import System
from ssdlab.errors import ExperimentError, InputError
from ssdlab.leftovers import folder
from ssdlab.progress import unheard
from ssdlab.tuning import means
from ssdlab.tuning.means import NotSetError, cpu_list, cpu_set

SCHEDULER = "sys/class/block/sda/queue/scheduler"
GOVERNOR = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
ID_CTRL = '{{"oacs": {oacs}, "fna": {fna}, "vwc": {vwc}, "sanicap": 0}}'
ID_NS = (
    '{{"nlbaf": 2, "flbas": {now}, "lbafs": [{{"ms": 0, "ds": 9, "rp": 2}}, '
    '{{"ms": 8, "ds": 12, "rp": 1}}, {{"ms": 0, "ds": 12, "rp": 0}}]}}'
)


@pytest.fixture
def processors(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The processors that this process was told to run on, the last one last; eight to begin."""
    told = [set(range(8))]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: told[-1])
    monkeypatch.setattr(os, "sched_setaffinity", lambda _pid, cpus: told.append(set(cpus)))
    return told


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    return Scripted(tmp_path / "scripts", monkeypatch)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel does when another scheduler is written: a list with the new one in brackets,
    and a queue with that scheduler's defaults."""
    file = means.MEANS["file"]

    def write(system: System, place: str, value: str) -> None:
        if not place.endswith("queue/scheduler"):
            file.write(system, place, value)
            return
        names = ["none", "mq-deadline", "kyber", "bfq"]
        text = " ".join(f"[{one}]" if one == value else one for one in names)
        file.write(system, place, text)
        for name, default in (("nr_requests", "1023"), ("iosched/read_expire", "500")):
            with contextlib.suppress(NotSetError):
                file.write(system, place.replace("scheduler", name), default)

    monkeypatch.setitem(means.MEANS, "file", replace(file, write=write))


@pytest.fixture
def recorded(tmp_path: Path, kernel: None, processors: list[set[int]]) -> Recorded:
    """A system of two nodes with a SATA drive."""
    made = Recorded(tmp_path / "system")
    made.write("proc/sys/kernel/random/boot_id", "first")
    made.processors(("0-3", "4-7"))
    scsi = made.sata(queue=DISK_QUEUE)
    made.write(f"{scsi}/serial", "BTWL1")
    made.write("sys/class/block/sda/diskseq", 7)
    made.write("sys/class/block/sda/queue/iosched/read_expire", 777)
    made.write("sys/devices/pci0000:00/0000:00:1f.2/numa_node", 1)
    return made


def nvme(
    recorded: Recorded, scripts: Scripted, *, oacs: int = 2, fna: int = 0, vwc: int = 1
) -> str:
    """An NVMe drive at the second node; its folder of the PCI device."""
    pci = recorded.nvme(scheduler="none [mq-deadline]")
    recorded.write(f"{pci}/numa_node", 1)
    recorded.write(f"{pci}/nvme/nvme0/serial", "S4EMNX0R")
    recorded.write("sys/class/block/nvme0n1/diskseq", 9)
    (scripts.folder / "id").write_text(ID_CTRL.format(oacs=oacs, fna=fna, vwc=vwc))
    (scripts.folder / "ns").write_text('{"nsid_list": [{"nsid": 1}, {"nsid": 2}]}')
    (scripts.folder / "cache").write_text("00000001")
    for index in range(3):
        (scripts.folder / f"lbaf{index}").write_text(ID_NS.format(now=index))
    (scripts.folder / "formats").write_text(ID_NS.format(now=0))
    scripts.script(
        "nvme",
        "case $1 in\n"
        "id-ctrl) cat id ;;\n"
        "list-ns) cat ns ;;\n"
        "id-ns) cat formats ;;\n"
        'get-feature) echo "get-feature:0x06 (Volatile Write Cache), Current value:0x$(cat cache)"'
        " ;;\n"
        "set-feature) printf 0000000${4#--value=} > cache ;;\n"
        "format) cp lbaf${3#--lbaf=} formats ;;\n"
        "*) exit 9 ;;\nesac",
    )
    return pci


def system(recorded: Recorded) -> System:
    return System(recorded.root)


def files(recorded: Recorded) -> dict[str, str]:
    """Every file of a system with its text."""
    found = {}
    for below, _, names in os.walk(recorded.root):
        for name in names:
            path = Path(below) / name
            if path.is_file() and not path.is_symlink():
                found[str(path.relative_to(recorded.root))] = path.read_text().strip()
    return found


def by_setting(setup: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """The last record of each setting."""
    assert setup is not None
    return {one["setting"]: one for one in setup["settings"]}


def left() -> list[Path]:
    return sorted(folder().glob("*.json"))


def killed(recorded: Recorded, text: str, name: str = "sda", **more: object) -> None:
    """A run that is killed while the drive is set up."""
    program = (
        "import os, sys\nfrom ssdlab import tuning\nfrom ssdlab.audits import System\n"
        f"with tuning.applied({name!r}, {text!r}, system=System({str(recorded.root)!r}), "
        f"**{more!r}):\n    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


# --- what is asked for


def test_presets_and_settings_are_read_and_later_ones_win() -> None:
    wishes = tuning.parse("pts,scheduler=bfq,affinity=0-1,4,write-cache=on")
    assert {name: one.value for name, one in wishes.items()} == {
        "write-cache": "on",
        "scheduler": "bfq",
        "governor": "performance",
        "affinity": "0-1,4",
        "irq": "local",
    }
    assert {name for name, one in wishes.items() if one.named} == {
        "scheduler",
        "affinity",
        "write-cache",
    }
    assert tuning.parse("none") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", 'no setup is called ""'),
        ("ptss", 'did you mean "pts"'),
        ("pts,", 'no setup is called ""'),
        ("sheduler=none", 'did you mean "scheduler"'),
        ("write-cache=maybe", "expected on, off"),
        ("nr-requests=0", "expected a number"),
        ("affinity=1-", "expected local"),
        ("lba=four", "expected bytes"),
        ("lba=777", "expected bytes"),
        ("affinity=3-1", "expected local"),
        ("affinity=0-99999999999", "expected local"),
        ("governor=", "expected performance"),
        ("scheduler=../../x", "expected none"),
    ],
)
def test_what_is_no_setup_is_told_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        tuning.parse(text)
    assert said in error.value.message
    assert "\n" not in error.value.message


def test_every_setting_takes_its_own_presets() -> None:
    for one in tuning.SETTINGS:
        assert all(one.check(value) for value in one.presets.values()), one.name
        assert set(one.presets) <= set(tuning.PRESETS)
        assert one.source and one.summary and one.values
        assert not one.check("")


def test_client_settings_of_a_protocol_turn_the_cache_on() -> None:
    assert tuning.parse(tuning.for_client("pts"))["write-cache"].value == "on"
    named = tuning.for_client("pts,write-cache=off")
    assert tuning.parse(named)["write-cache"].value == "off"


@pytest.mark.parametrize("text", ["0", "0-3", "0-3,8", "1,3,5-7"])
def test_lists_of_processors_are_read_and_written_as_the_kernel_does(text: str) -> None:
    assert cpu_list(cpu_set(text)) == text


# --- a SATA drive


def test_a_sata_drive_is_set_up_and_everything_comes_back(
    recorded: Recorded, processors: list[set[int]]
) -> None:
    own, before = system(recorded), files(recorded)
    with tuning.applied("sda", "pts", system=own) as setup:
        records = by_setting(setup)
        cache = records["write-cache"]
        assert (cache["before"], cache["set"], cache["after"]) == (
            "write back",
            "write through",
            "write through",
        )
        assert cache["place"].endswith("scsi_disk/1:0:0:0/cache_type")
        assert own.read(cache["place"][1:]) == "write through"
        assert records["scheduler"]["before"] == "mq-deadline"
        assert own.chosen(SCHEDULER) == "none"
        assert own.read(GOVERNOR) == "performance"
        assert len([o for o in setup["settings"] if o["setting"] == "governor"]) == 8  # type: ignore[index]
        assert processors[-1] == {4, 5, 6, 7}
        assert records["irq"]["why_not"] == "only an NVMe drive has interrupts of its own"
        assert len(left()) == 1
    assert left() == []
    assert processors[-1] == set(range(8))
    assert files(recorded) == before


def test_only_the_drive_and_the_processors_are_changed(
    recorded: Recorded, scripts: Scripted
) -> None:
    recorded.sata("sdb", 2)
    nvme(recorded, scripts)
    recorded.write("sys/class/block/sda/queue/nomerges", 0)
    before = files(recorded)
    with tuning.applied("sda", "pts,read-ahead=8,merges=off", system=system(recorded)):
        during = files(recorded)
    changed = {name for name in before if before[name] != during[name]}
    assert set(during) - set(before) == set()
    assert any("/ata1/" in name for name in changed)
    assert all("/ata1/" in name or "/cpufreq/" in name for name in changed), changed
    assert scripts.log() == []


def test_what_goes_with_a_governor_comes_back_after_it(recorded: Recorded) -> None:
    own = system(recorded)
    preference = GOVERNOR.replace("scaling_governor", "energy_performance_preference")
    speed = GOVERNOR.replace("scaling_governor", "scaling_setspeed")
    recorded.write(preference, "balance_power")
    recorded.write(speed, "<unsupported>")
    with tuning.applied("sda", "governor=performance", system=own):
        recorded.write(preference, "performance")
    assert own.read(preference) == "balance_power"
    assert own.read(speed) == "<unsupported>"


def test_what_is_as_wanted_already_is_not_written(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    file = means.MEANS["file"]
    monkeypatch.setitem(
        means.MEANS,
        "file",
        replace(file, write=lambda _system, place, _value: written.append(place)),
    )
    with tuning.applied("sda", "scheduler=mq-deadline,read-ahead=128", system=system(recorded)):
        pass
    assert written == []


def test_without_the_file_of_the_cache_hdparm_switches_it(
    recorded: Recorded, scripts: Scripted
) -> None:
    base = recorded.root / "sys/class/block/sda/device/scsi_disk/1:0:0:0"
    (base / "cache_type").unlink()
    base.rmdir()
    (scripts.folder / "now").write_text("/dev/sda:\n write-caching =  1 (on)\n")
    scripts.script(
        "hdparm",
        'case $1 in -W) cat now ;; -W0) echo "write-caching =  0 (off)" > now ;;\n'
        '-W1) echo "write-caching =  1 (on)" > now ;; esac',
    )
    with tuning.applied("sda", "write-cache=off", system=system(recorded)) as setup:
        assert by_setting(setup)["write-cache"]["after"] == "off"
    sets = [line for line in scripts.log() if "-W " not in line]
    assert sets == ["hdparm -W0 /dev/sda", "hdparm -W1 /dev/sda"]


def test_a_cache_that_is_off_in_another_way_is_left_alone(recorded: Recorded) -> None:
    place = "sys/class/block/sda/device/scsi_disk/1:0:0:0/cache_type"
    recorded.write(place, "none")
    with tuning.applied("sda", "pts", system=system(recorded)) as setup:
        assert by_setting(setup)["write-cache"]["after"] == "none"
    assert system(recorded).read(place) == "none"


# --- an NVMe drive


def test_an_nvme_drive_is_set_up_through_its_controller(
    recorded: Recorded, scripts: Scripted, processors: list[set[int]]
) -> None:
    pci = nvme(recorded, scripts)
    recorded.interrupts(pci, {30: "0-7", 31: "5", 32: "2"})
    recorded.write("sys/kernel/debug/irq/irqs/32", "dstate: IRQD_AFFINITY_MANAGED")
    own = system(recorded)
    with tuning.applied("nvme0n1", "pts", system=own) as setup:
        irqs = {o["place"]: o for o in setup["settings"] if o["setting"] == "irq"}  # type: ignore[index]
        assert own.read("proc/irq/30/smp_affinity_list") == "4-7"
        assert irqs["/proc/irq/31/smp_affinity_list"]["after"] == "5"
        assert "manages this interrupt itself" in irqs["/proc/irq/32/smp_affinity_list"]["why_not"]
        assert own.read("proc/irq/32/smp_affinity_list") == "2"
        assert by_setting(setup)["write-cache"]["after"] == "off"
        assert processors[-1] == {4, 5, 6, 7}
    assert own.read("proc/irq/30/smp_affinity_list") == "0-7"
    assert scripts.log() == [
        "nvme set-feature /dev/nvme0 --feature-id=6 --value=0",
        "nvme set-feature /dev/nvme0 --feature-id=6 --value=1",
    ]


def test_a_managed_interrupt_is_told_when_the_kernel_refuses_it(
    recorded: Recorded, scripts: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.interrupts(nvme(recorded, scripts), {30: "0"})
    real = os.write

    def refuse(descriptor: int, data: bytes) -> int:
        if "smp_affinity_list" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(5, "Input/output error")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", refuse)
    with tuning.applied("nvme0n1", "pts", system=system(recorded)) as setup:
        assert by_setting(setup)["irq"]["why_not"] == means.MANAGED


def test_a_cache_that_is_not_there_is_off(recorded: Recorded, scripts: Scripted) -> None:
    nvme(recorded, scripts, vwc=0)
    own = system(recorded)
    with tuning.applied("nvme0n1", "write-cache=off", system=own) as setup:
        assert by_setting(setup)["write-cache"]["why_not"] is None
    with (
        pytest.raises(InputError, match="has no volatile write cache"),
        tuning.applied("nvme0n1", "write-cache=on", system=own),
    ):
        pass
    assert scripts.log() == []


def test_without_nvme_cli_it_is_told_what_to_install(recorded: Recorded, scripts: Scripted) -> None:
    nvme(recorded, scripts)
    (scripts.folder / "nvme").unlink()
    with tuning.applied("nvme0n1", "pts", system=system(recorded)) as setup:
        assert "apt install nvme-cli" in by_setting(setup)["write-cache"]["why_not"]


# --- what cannot be set


def test_a_virtual_disk_is_a_line_and_no_failure(recorded: Recorded) -> None:
    recorded.virtio()
    said: list[str] = []
    with tuning.applied("vda", "pts", notice=said.append, system=system(recorded)) as setup:
        assert "virtual disk" in by_setting(setup)["write-cache"]["why_not"]
    assert said[0].startswith("setup pts for /dev/vda: scheduler none")
    assert sum("not set: write-cache" in one for one in said) == 1


@pytest.mark.parametrize("text", ["governor=warp", "scheduler=warp", "affinity=9999"])
def test_a_dry_run_refuses_what_is_no_value_on_any_system(recorded: Recorded, text: str) -> None:
    own = system(recorded)
    shutil.rmtree(own.root / "sys/devices/system/cpu/cpufreq")
    (own.root / "sys/class/block/sda/queue/scheduler").unlink()
    setting = text.partition("=")[0]
    with pytest.raises(InputError, match=f"^--setup {setting}: "):
        tuning.preview("sda", text, own)
    # What a system cannot set is told, and is no mistake.
    told = tuning.preview("sda", "governor=ondemand,scheduler=bfq", own)
    assert [record.why_not is None for record in told] == [False, False]


@pytest.mark.parametrize(
    ("text", "said"),
    [("governor=ondemand", "offers performance, powersave"), ("scheduler=cfq", "offers none, mq-")],
)
def test_a_dry_run_refuses_what_this_kernel_does_not_offer(
    recorded: Recorded, text: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        tuning.preview("sda", text, system(recorded))


@pytest.mark.parametrize("command", ["setup", "run"])
def test_commands_that_only_look_refuse_an_impossible_value(
    cli: Callable[..., Outcome], tmp_path: Path, command: str
) -> None:
    file, job = tmp_path / "f.bin", tmp_path / "j.fio"
    file.write_bytes(bytes(1 << 20))
    job.write_text("[r]\nrw=read\nbs=4k\nsize=1m\n")
    what = (file,) if command == "setup" else (job, "--on", file)
    done = cli(command, *what, "-n", "--setup", "governor=warp")
    assert done.status == 2 and done.err.count("\n") == 1, done
    assert "--setup governor: " in done.err


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("vda", "write-cache=off", "virtual disk"),
        ("vda", "pts,lba=4096", "only an NVMe drive"),
        ("sda", "scheduler=nosuch", "offers none, mq-deadline, kyber, bfq"),
        ("sda", "governor=turbo", "offers performance, powersave"),
        ("sda", "rq-affinity=2", "no such file"),
        ("sda", "irq=0", "only an NVMe drive"),
        ("sda", "affinity=64", "may run on 0-7 only"),
        (None, "scheduler=none", "not known"),
    ],
)
def test_what_was_asked_for_by_name_and_cannot_be_had_changes_nothing(
    recorded: Recorded, name: str | None, text: str, said: str
) -> None:
    recorded.virtio()
    before = files(recorded)
    with (
        pytest.raises(InputError, match=said),
        tuning.applied(
            name, f"read-ahead=8,{text}" if name else text, claimed=True, system=system(recorded)
        ),
    ):
        pass
    assert files(recorded) == before
    assert left() == []


def test_a_value_that_is_not_taken_undoes_the_others(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, file = system(recorded), means.MEANS["file"]

    def write(system: System, place: str, value: str) -> None:
        if place.endswith("read_ahead_kb"):
            raise NotSetError("the kernel does not take this value")
        file.write(system, place, value)

    monkeypatch.setitem(means.MEANS, "file", replace(file, write=write))
    with tuning.applied("sda", "pts", system=own):
        pass
    with (
        pytest.raises(ExperimentError, match=r"read-ahead.*does not take"),
        tuning.applied("sda", "scheduler=bfq,read-ahead=8", system=own),
    ):
        pass
    assert own.chosen(SCHEDULER) == "mq-deadline"
    assert left() == []


def test_the_place_is_asked_what_it_says_after_it_was_set(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, file = system(recorded), means.MEANS["file"]
    monkeypatch.setitem(
        means.MEANS,
        "file",
        replace(file, write=lambda s, p, v: file.write(s, p, "4" if v == "1" else v)),
    )
    with (
        pytest.raises(ExperimentError, match="it says 4 after that"),
        tuning.applied("sda", "nr-requests=1", system=own),
    ):
        pass
    assert own.read("sys/class/block/sda/queue/nr_requests") == "256"


# --- what a preview says


def test_a_preview_says_what_would_be_set_and_changes_nothing(
    recorded: Recorded, processors: list[set[int]]
) -> None:
    before = files(recorded)
    rows = tuning.rows(tuning.preview("sda", "pts", system(recorded)))
    table = {row[0]: row[1:] for row in rows}
    assert table["scheduler"] == ["mq-deadline", "none", f"/{SCHEDULER}"]
    assert table["governor"][:2] == ["powersave", "performance"]
    assert table["governor"][2].endswith("and 7 more")
    assert table["irq"][:2] == ["-", "-"]
    assert files(recorded) == before
    assert processors == [set(range(8))]
    assert not folder().exists()


def test_the_record_of_a_run_reads_in_words(recorded: Recorded) -> None:
    with tuning.applied("sda", "pts", system=system(recorded)) as setup:
        pass
    words = tuning.readable(json.loads(json.dumps(setup)))
    assert words["asked"] == "pts"
    assert words["governor"] == "performance (was powersave, 8 places)"
    assert words["scheduler"] == "none (was mq-deadline)"
    assert words["irq"].startswith("not set")
    assert tuning.readable(None) == {}


# --- killed runs


def test_the_next_run_puts_back_what_a_killed_one_had_set(recorded: Recorded) -> None:
    killed(recorded, "pts,read-ahead=8")
    own = system(recorded)
    assert own.chosen(SCHEDULER) == "none"
    assert len(left()) == 1
    said: list[str] = []
    with tuning.applied("sda", "none", notice=said.append, system=own) as setup:
        assert setup is None
        assert own.chosen(SCHEDULER) == "mq-deadline"
        assert own.read("sys/class/block/sda/queue/read_ahead_kb") == "128"
        assert own.read(GOVERNOR) == "powersave"
    assert left() == []
    assert len(said) == 1 and "scheduler mq-deadline" in said[0]


def test_another_drive_does_not_put_back_unasked(recorded: Recorded) -> None:
    recorded.sata("sdb", 2)
    killed(recorded, "scheduler=none")
    own = system(recorded)
    with tuning.applied("sdb", "none", system=own):
        pass
    assert own.chosen(SCHEDULER) == "none"
    assert tuning.restore_left(unheard, system=own) == 1
    assert own.chosen(SCHEDULER) == "mq-deadline"


def test_what_goes_with_a_scheduler_comes_back_after_it(recorded: Recorded) -> None:
    killed(recorded, "scheduler=none")
    own = system(recorded)
    tuning.restore_left(unheard, system=own)
    assert own.read("sys/class/block/sda/queue/nr_requests") == "256"
    assert own.read("sys/class/block/sda/queue/iosched/read_expire") == "777"


def test_after_a_restart_only_what_the_drive_keeps_is_put_back(recorded: Recorded) -> None:
    killed(recorded, "pts")
    recorded.write("proc/sys/kernel/random/boot_id", "second")
    recorded.write(SCHEDULER, "[kyber] none mq-deadline")
    recorded.write(GOVERNOR, "performance")
    # The drive has another name now, and another drive has its own.
    blocks = recorded.root / "sys/class/block"
    (blocks / "sda").rename(blocks / "sdq")
    other = recorded.sata("sda", 3)
    recorded.write(f"{other}/serial", "OTHER")
    recorded.write(f"{other}/scsi_disk/3:0:0:0/cache_type", "write through")
    own, said = system(recorded), list[str]()
    tuning.restore_left(said.append, system=own)
    cache = "sys/class/block/{}/device/scsi_disk/{}:0:0:0/cache_type"
    assert own.read(cache.format("sdq", 1)) == "write back"
    assert own.read(cache.format("sda", 3)) == "write through"
    assert own.read(GOVERNOR) == "performance"
    assert own.chosen("sys/class/block/sdq/queue/scheduler") == "kyber"
    assert left() == []


def test_a_drive_that_took_the_name_is_left_alone(recorded: Recorded) -> None:
    killed(recorded, "scheduler=none,write-cache=off")
    recorded.write("sys/class/block/sda/device/serial", "OTHER")
    own, said = system(recorded), list[str]()
    tuning.restore_left(said.append, system=own)
    assert own.chosen(SCHEDULER) == "none"
    # The drive itself still has its cache off, wherever it is now.
    assert any("BTWL1) is not there; its write-cache was write back" in one for one in said)
    assert len(left()) == 1
    recorded.write("sys/class/block/sda/device/serial", "BTWL1")
    tuning.restore_left(unheard, system=own)
    cache = "sys/class/block/sda/device/scsi_disk/1:0:0:0/cache_type"
    assert own.read(cache) == "write back"
    assert left() == []


def test_what_somebody_else_changed_meanwhile_is_left_and_told(recorded: Recorded) -> None:
    own, said = system(recorded), list[str]()
    with tuning.applied("sda", "scheduler=none", notice=said.append, system=own):
        recorded.write(SCHEDULER, "none mq-deadline kyber [bfq]")
    assert own.chosen(SCHEDULER) == "bfq"
    assert "changed to bfq by somebody else" in said[-1]
    assert left() == []


def test_what_cannot_be_put_back_is_tried_again(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, said, file = system(recorded), list[str](), means.MEANS["file"]

    def refuse(_system: System, _place: str, _value: str) -> None:
        raise NotSetError("it is in use")

    with tuning.applied("sda", "scheduler=none,read-ahead=8", notice=said.append, system=own):
        monkeypatch.setitem(means.MEANS, "file", replace(file, write=refuse))
    assert "could not be restored to mq-deadline (it is in use)" in said[-1]
    assert "could not be restored to 128" in said[-2]
    assert len(left()) == 1
    monkeypatch.setitem(means.MEANS, "file", file)
    tuning.restore_left(unheard, system=own)
    assert own.chosen(SCHEDULER) == "mq-deadline"
    assert own.read("sys/class/block/sda/queue/read_ahead_kb") == "128"
    assert own.read("sys/class/block/sda/queue/iosched/read_expire") == "777"
    assert left() == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2}', '{"schema": 1, "pid": 1}'])
def test_a_journal_that_is_none_stops_nobody(recorded: Recorded, text: str) -> None:
    folder().mkdir(parents=True)
    (folder() / "1-x.json").write_text(text)
    with tuning.applied("sda", "scheduler=none", system=system(recorded)):
        assert system(recorded).chosen(SCHEDULER) == "none"
    assert system(recorded).chosen(SCHEDULER) == "mq-deadline"


# --- two runs at once


@contextlib.contextmanager
def two(
    recorded: Recorded, first: str, second: str
) -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """Two runs on the drive at once; how each is ended."""
    own = system(recorded)
    stacks = contextlib.ExitStack(), contextlib.ExitStack()
    for stack, text in zip(stacks, (first, second), strict=True):
        stack.enter_context(tuning.applied("sda", text, system=own))
    try:
        yield stacks[0].close, stacks[1].close
    finally:
        for stack in stacks:
            stack.close()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_last_of_two_runs_puts_back(recorded: Recorded, order: tuple[int, int]) -> None:
    own = system(recorded)
    with two(recorded, "pts,nr-requests=64", "pts,nr-requests=64") as ends:
        ends[order[0]]()
        assert own.chosen(SCHEDULER) == "none"
        assert own.read(GOVERNOR) == "performance"
        assert own.read("sys/class/block/sda/queue/nr_requests") == "64"
        ends[order[1]]()
    assert own.chosen(SCHEDULER) == "mq-deadline"
    assert own.read(GOVERNOR) == "powersave"
    assert own.read("sys/class/block/sda/queue/nr_requests") == "256"
    assert left() == []


def test_a_run_takes_over_what_goes_with_a_scheduler(recorded: Recorded) -> None:
    own = system(recorded)
    with two(recorded, "scheduler=none", "scheduler=none") as (end_first, end_second):
        end_first()
        assert own.read("sys/class/block/sda/queue/iosched/read_expire") == "500"
        end_second()
    assert own.read("sys/class/block/sda/queue/iosched/read_expire") == "777"


def test_a_run_cannot_change_what_another_holds(recorded: Recorded) -> None:
    own = system(recorded)
    with tuning.applied("sda", "scheduler=bfq", system=own):
        with (
            pytest.raises(InputError, match=r"another run of ssdlab .* keeps it at bfq"),
            tuning.applied("sda", "scheduler=none", system=own),
        ):
            pass
        with tuning.applied("sda", "pts", system=own) as setup:
            assert "keeps it at bfq" in by_setting(setup)["scheduler"]["why_not"]
            assert own.read(GOVERNOR) == "performance"
        assert own.chosen(SCHEDULER) == "bfq"
    assert own.chosen(SCHEDULER) == "mq-deadline"


def test_a_killed_run_does_not_take_from_a_living_one(recorded: Recorded) -> None:
    own = system(recorded)
    killed(recorded, "governor=performance")
    recorded.sata("sdb", 2)
    # The living one found it set, and now has to put back what was there first.
    with tuning.applied("sdb", "governor=performance", system=own):
        assert own.read(GOVERNOR) == "performance"
        assert tuning.restore_left(unheard, system=own) == 0
    assert own.read(GOVERNOR) == "powersave"


# --- the LBA format


def test_a_format_goes_both_ways(recorded: Recorded, scripts: Scripted) -> None:
    nvme(recorded, scripts)
    with tuning.applied("nvme0n1", "lba=4096", claimed=True, system=system(recorded)) as setup:
        record = by_setting(setup)["lba"]
        assert (record["before"], record["after"]) == ("512", "4096")
    assert [" ".join(line.split()[:4]) for line in scripts.log()] == [
        "nvme format /dev/nvme0n1 --lbaf=2",
        "nvme format /dev/nvme0n1 --lbaf=0",
    ]
    assert left() == []


@pytest.mark.parametrize(
    ("text", "change", "said"),
    [
        ("lba=4096", {"oacs": 0}, "does not know Format NVM"),
        ("lba=2048", {}, "offers 512, 4096\\+8, 4096"),
        ("lba=4096", {"fna": 1}, "format more than this namespace: the drive has 2"),
    ],
)
def test_a_format_that_cannot_be_is_not_tried(
    recorded: Recorded, scripts: Scripted, text: str, change: dict[str, int], said: str
) -> None:
    nvme(recorded, scripts, **change)
    with (
        pytest.raises(InputError, match=said),
        tuning.applied("nvme0n1", text, claimed=True, system=system(recorded)),
    ):
        pass
    assert scripts.log() == []


def test_nothing_is_formatted_without_the_claim(recorded: Recorded, scripts: Scripted) -> None:
    nvme(recorded, scripts)
    with (
        pytest.raises(InputError, match="needs a block device"),
        tuning.applied("nvme0n1", "lba=4096", system=system(recorded)),
    ):
        pass
    assert scripts.log() == []


def owed(recorded: Recorded, scripts: Scripted) -> System:
    """A system whose drive a killed run has left formatted."""
    nvme(recorded, scripts)
    with contextlib.suppress(KeyboardInterrupt):
        _leave_formatted(system(recorded))
    assert len(left()) == 1
    return system(recorded)


def _leave_formatted(own: System) -> None:
    """As a kill does: nothing after the format is done any more."""
    running = tuning.applied("nvme0n1", "lba=4096", claimed=True, system=own)
    running.__enter__()
    (path,) = left()
    text = path.read_text()
    running.__exit__(None, None, None)
    path.write_text(text)


def test_a_drive_is_never_formatted_back_unasked(recorded: Recorded, scripts: Scripted) -> None:
    own = owed(recorded, scripts)
    (scripts.folder / "formats").write_text(ID_NS.format(now=2))
    said: list[str] = []
    formats = len(scripts.log())
    with tuning.applied("nvme0n1", "scheduler=none", notice=said.append, system=own):
        pass
    assert len(scripts.log()) == formats
    assert "--restore --destroy" in said[0]
    tuning.restore_left(said.append, name="nvme0n1", formats=True, system=own)
    assert scripts.log()[-1].startswith("nvme format /dev/nvme0n1 --lbaf=0 ")
    assert left() == []


def test_the_next_run_in_that_format_formats_back(recorded: Recorded, scripts: Scripted) -> None:
    own = owed(recorded, scripts)
    (scripts.folder / "formats").write_text(ID_NS.format(now=2))
    formats = len(scripts.log())
    with tuning.applied("nvme0n1", "lba=4096", claimed=True, system=own):
        assert len(scripts.log()) == formats
    assert scripts.log()[formats:] == [scripts.log()[-1]]
    assert "--lbaf=0" in scripts.log()[-1]
    assert left() == []


def test_the_consent_says_that_the_drive_is_formatted_twice() -> None:
    assert tuning.consent("pts") == ""
    text = tuning.consent("pts,lba=4096")
    assert "formatted to blocks of 4096 bytes" in text and "formatted back" in text
    assert tuning.wanted_block("lba=4096+8") == 4096


# --- the answers of programs


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("get-feature:0x06 (Volatile Write Cache), Current value:0x00000001", 1),
        ("get-feature:0x6 (Volatile Write Cache), Current value:0x000000", 0),
        ("get-feature:06 (Volatile Write Cache), Current value:00000001", 1),
        ("NVMe status: Invalid Field in Command(0x2002)", None),
        ("", None),
    ],
)
def test_a_feature_is_read_in_the_words_of_every_version(text: str, value: int | None) -> None:
    assert identify.nvme_feature(text) == value


def test_the_formats_of_a_namespace_are_read() -> None:
    found = identify.nvme_formats(ID_NS.format(now=0x12))
    assert [(one.name, one.in_use) for one in found] == [
        ("512", False),
        ("4096+8", False),
        ("4096", True),
    ]
    for text in ("", "{}", '{"flbas": 0}', '{"flbas": "x", "lbafs": []}', '{"lbafs": [1]}'):
        assert identify.nvme_formats(text) == []


@pytest.mark.parametrize(
    ("text", "on"),
    [(" write-caching =  1 (on)", True), (" write-caching =  0 (off)", False), ("no", None)],
)
def test_the_cache_is_read_from_hdparm(text: str, on: bool | None) -> None:
    assert identify.ata_write_cache(f"\n/dev/sda:\n{text}\n") is on
