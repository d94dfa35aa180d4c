"""A purge takes the strongest way that the drive has, and says what it was worth.

There is no such drive here: nvme and hdparm are scripts that keep the state of one and write down
what they are told.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from conftest import MIB, Cli, Loop
from scripted import Scripted
from ssdlab import admin as identify
from ssdlab import safety
from ssdlab.care import methods, purge
from ssdlab.care.trim import UnsupportedError
from ssdlab.errors import ExperimentError, InputError, Interrupted, RefusedError
from ssdlab.progress import Progress
from ssdlab.safety import BlockDevice
from ssdlab.system import System

ID_CTRL = """
{{
  "vid" : 5197, "ssvid" : 5197, "sn" : "S4EMNX0R", "mn" : "TEST 1TB", "fr" : "1B2QEXM7",
  "rab" : 2, "oacs" : {oacs}, "acl" : 7, "frmw" : 22, "sqes" : 102, "cqes" : 68, "nn" : 1,
  "oncs" : 95, "fuses" : 0, "fna" : {fna}, "vwc" : 1, "awun" : 1023, "sanicap" : {sanicap}
}}
"""
LOG_2 = '{"nvme0":{"sprog":%d,"sstat":{"global_erased":0,"no_cmplted_passes":0,"status":"(%d) x"}}}'
LOG_2_3 = '{"nvme0n1":{"sprog":%d,"sstat":{"global_erased":0,"Sanitize in Progress.":"(%d) y"}}}'
LOG_FLAT = '{"sprog":%d,"sstat":%d,"cdw10_info":2}'

HDPARM = """
/dev/sdx:

ATA device, with non-removable media
	Model Number:       INTEL SSDSC2BA200G3
	Serial Number:      BTTV12345678
Capabilities:
	LBA, IORDY(can be disabled)
Commands/features:
	Enabled	Supported:
	*	Security Mode feature set
Security:
	Master password revision code = 65534
		supported
{enabled}	enabled
	not	locked
{frozen}	frozen
	not	expired: security count
{enhanced}	2min for SECURITY ERASE UNIT. 8min for ENHANCED SECURITY ERASE UNIT.
Logical Unit WWN Device Identifier: 55cd2e404b4c1234
Checksum: correct
"""
HDD = HDPARM.split("Security:")[0] + "Checksum: correct\n"


def hdparm_text(*, enabled: bool = False, frozen: bool = False, enhanced: bool = True) -> str:
    """What ``hdparm -I`` prints of a drive in that state."""
    return HDPARM.format(
        enabled="\t" if enabled else "\tnot",
        frozen="\t" if frozen else "\tnot",
        enhanced="\t\tsupported: enhanced erase\n" if enhanced else "",
    )


# --- the answers read


@pytest.mark.parametrize("oacs", [0, 2, 23])
@pytest.mark.parametrize("fna", [0, 4, 7])
@pytest.mark.parametrize("sanicap", [0, 1, 2, 3, 0xA0000003])
def test_identify_controller_is_read_bit_by_bit(oacs: int, fna: int, sanicap: int) -> None:
    can = identify.nvme_erase(ID_CTRL.format(oacs=oacs, fna=fna, sanicap=sanicap))
    assert can is not None
    assert can.format == (oacs in (2, 23))
    assert can.format_erases_all == (fna == 7)
    assert can.format_crypto == (fna in (4, 7))
    assert can.sanitize_crypto == (sanicap & 0xF in (1, 3))
    assert can.sanitize_block == (sanicap & 0xF in (2, 3))


@pytest.mark.parametrize("log", [LOG_2, LOG_2_3, LOG_FLAT])
def test_the_sanitize_log_is_read_in_the_words_of_every_version(log: str) -> None:
    running = identify.nvme_sanitize("a line of its own\n" + log % (32768, 2))
    assert running is not None
    assert running.state == "running"
    assert running.fraction == pytest.approx(0.5, abs=1e-4)
    states = {0: "idle", 1: "done", 3: "failed", 4: "done"}
    for number, state in states.items():
        found = identify.nvme_sanitize(log % (65535, number))
        assert found is not None
        assert (found.state, found.fraction) == (state, 1.0)


def test_the_security_section_of_hdparm_is_read_word_by_word() -> None:
    for enabled in (False, True):
        for frozen in (False, True):
            for enhanced in (False, True):
                text = hdparm_text(enabled=enabled, frozen=frozen, enhanced=enhanced)
                found = identify.ata_security(text)
                assert found is not None
                assert found.supported
                assert not found.locked
                assert found.enabled == enabled
                assert found.frozen == frozen
                assert found.enhanced == enhanced
                assert (found.minutes, found.enhanced_minutes) == (2, 8)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "null", '{"oacs": "x", "fna": {}}', HDD])
def test_an_answer_that_is_none_is_not_guessed_at(text: str) -> None:
    assert identify.nvme_erase(text) is None
    assert identify.nvme_sanitize(text) is None
    assert identify.nvme_namespaces(text) is None
    assert identify.ata_security(text) is None


# --- the drives


class Drive(Scripted):
    """A drive made of scripts."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch)
        monkeypatch.setattr(purge, "_POLL_S", 0.01)

    def nvme(
        self,
        *,
        oacs: int = 2,
        fna: int = 4,
        sanicap: int = 3,
        namespaces: int = 1,
        format: str = "",
        states: tuple[int, ...] = (2, 2, 1),
        log: str = LOG_2,
    ) -> BlockDevice:
        """An NVMe drive; ``states`` are the answers of its sanitize log in turn."""
        (self.folder / "id").write_text(ID_CTRL.format(oacs=oacs, fna=fna, sanicap=sanicap))
        listed = [{"nsid": i + 1} for i in range(namespaces)]
        (self.folder / "ns").write_text(json.dumps({"nsid_list": listed}))
        for i, state in enumerate(states):
            (self.folder / f"state{i}").write_text(log % (20000 * (i + 1), state))
        self.script(
            "nvme",
            "case $1 in\n"
            "id-ctrl) cat id ;;\n"
            "list-ns) cat ns ;;\n"
            f"format) {format or 'true'} ;;\n"
            "sanitize) true ;;\n"
            "sanitize-log) n=$(cat n 2>/dev/null || echo 0); cat state$n; "
            f"[ $n -lt {len(states) - 1} ] && echo $((n + 1)) > n; true ;;\n"
            "*) exit 9 ;;\nesac",
        )
        return BlockDevice(Path("/dev/nvme77n1"), "nvme77n1", 10**9, ("S4EMNX0R",))

    def ata(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        frozen: bool = False,
        enabled: bool = False,
        enhanced: bool = True,
        erase: str = "cp off now",
        disable: str = "cp off now",
    ) -> BlockDevice:
        """A SATA drive with a password or without; ``now`` is what it says of itself."""
        for name, on in (("off", False), ("on", True)):
            text = hdparm_text(enabled=on, frozen=frozen, enhanced=enhanced)
            (self.folder / name).write_text(text)
        (self.folder / "now").write_text(
            hdparm_text(enabled=enabled, frozen=frozen, enhanced=enhanced)
        )
        self.script(
            "hdparm",
            "case $* in\n"
            "*-I*) cat now ;;\n"
            "*--security-set-pass*) cp on now ;;\n"
            f"*--security-erase*) {erase} ;;\n"
            "*--security-unlock*) true ;;\n"
            f"*--security-disable*) {disable} ;;\n"
            "*) exit 9 ;;\nesac",
        )
        monkeypatch.setattr(methods, "_bus", lambda _device: "SATA")
        return BlockDevice(Path("/dev/sdzz"), "sdzz", 10**9, ("BTTV12345678",))


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Drive:
    return Drive(tmp_path / "drive", monkeypatch)


def usable(device: BlockDevice) -> list[str]:
    """The ways that are open, strongest first."""
    return [one.name for one in methods.available(device) if one.obstacle is None]


def obstacle(device: BlockDevice, name: str) -> str:
    """What is in the way of one."""
    return next(one.obstacle or "" for one in methods.available(device) if one.name == name)


def test_block_erase_by_sanitize_is_the_strongest_and_is_waited_for(drive: Drive) -> None:
    device = drive.nvme()
    seen: list[float] = []

    def follow(news: Progress) -> bool:
        seen.append(news.fraction or 0.0)
        return True

    done = purge.purge_claimed(device, progress=follow)
    assert (done.method, done.real) == ("nvme-sanitize", True)
    assert drive.log() == ["nvme sanitize /dev/nvme77 --sanact=2"]
    assert seen == [pytest.approx(20000 / 65535), pytest.approx(40000 / 65535)]
    assert "all flash blocks were erased" in done.sentence


def test_without_sanitize_it_is_format_with_erase(drive: Drive) -> None:
    done = purge.purge_claimed(drive.nvme(sanicap=0))
    assert (done.method, done.real) == ("nvme-format", True)
    (command,) = drive.log()
    assert command.startswith("nvme format /dev/nvme77n1 --ses=1 ")
    assert "--force" in command
    assert done.tried == ("NVMe sanitize, block erase: the drive does not know it",)


def test_crypto_erase_is_asked_for_by_name(drive: Drive) -> None:
    device = drive.nvme()
    assert purge.purge_claimed(device, method="nvme-format-crypto").real
    assert "--ses=2" in drive.log()[0]
    assert purge.purge_claimed(device, method="nvme-sanitize-crypto").real
    assert drive.log()[1] == "nvme sanitize /dev/nvme77 --sanact=4"


def test_what_would_erase_other_namespaces_is_closed(drive: Drive) -> None:
    device = drive.nvme(namespaces=2, fna=4)
    assert "the drive has 2 namespaces" in obstacle(device, "nvme-sanitize")
    assert usable(device)[0] == "nvme-format"
    wide = drive.nvme(namespaces=2, fna=6)
    assert "erase more than this namespace" in obstacle(wide, "nvme-format")


def test_a_format_that_the_drive_refuses_falls_back_and_is_told(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = drive.nvme(
        sanicap=0, fna=0, format="echo 'NVMe status: Invalid Field(0x2002)' >&2; exit 1"
    )
    monkeypatch.setattr(methods, "_takes_trim", lambda _device: True)
    trimmed: list[str] = []
    monkeypatch.setitem(purge._WAYS, "discard", lambda device, *_: trimmed.append(device.name))
    done = purge.purge_claimed(device)
    assert trimmed == ["nvme77n1"]
    assert (done.method, done.real) == ("discard", False)
    assert any("Invalid Field" in said for said in done.tried)
    assert "no real purge" in done.sentence
    with pytest.raises(UnsupportedError, match="Invalid Field"):
        purge.purge_claimed(device, method="nvme-format")


def test_a_failed_sanitize_is_told_and_nothing_else_is_tried(drive: Drive) -> None:
    device = drive.nvme(states=(2, 3))
    with pytest.raises(ExperimentError, match="says that its sanitize failed"):
        purge.purge_claimed(device)
    assert len(drive.log()) == 1


def test_a_sanitize_goes_on_after_ctrl_c_and_that_is_told(drive: Drive) -> None:
    with pytest.raises(Interrupted, match="goes on by itself and cannot be stopped"):
        purge.purge_claimed(drive.nvme(), progress=lambda _news: False)


def test_without_nvme_cli_the_way_to_it_is_told(drive: Drive) -> None:
    device = BlockDevice(Path("/dev/nvme77n1"), "nvme77n1", 10**9, ("S",))
    assert "apt install nvme-cli" in obstacle(device, "nvme-format")
    assert "does not take TRIM" in obstacle(device, "discard")
    with pytest.raises(ExperimentError, match=r"cannot be purged; .*nvme-cli is not installed"):
        purge.purge_claimed(device)


def test_ata_sets_a_password_erases_and_leaves_none(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = drive.ata(monkeypatch)
    assert [one.expected_s for one in methods.available(device)][:2] == [480, 120]
    done = purge.purge_claimed(device)
    assert (done.method, done.real) == ("ata-erase-enhanced", True)
    assert drive.log() == [
        "hdparm --user-master u --security-set-pass ssdlab /dev/sdzz",
        "hdparm --user-master u --security-erase-enhanced ssdlab /dev/sdzz",
    ]


def test_a_drive_without_the_enhanced_erase_takes_the_plain_one(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert purge.purge_claimed(drive.ata(monkeypatch, enhanced=False)).method == "ata-erase"
    assert "--security-erase ssdlab" in drive.log()[1]


def test_an_erase_that_fails_does_not_leave_the_password(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = drive.ata(monkeypatch, erase="echo SG_IO: bad/missing sense data >&2; exit 5")
    with pytest.raises(ExperimentError, match="bad/missing sense data"):
        purge.purge_claimed(device, method="ata-erase")
    assert drive.log()[-1] == "hdparm --user-master u --security-disable ssdlab /dev/sdzz"
    assert (drive.folder / "now").read_text() == (drive.folder / "off").read_text()


def test_a_password_that_stays_is_told(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    device = drive.ata(monkeypatch, erase="exit 5", disable="exit 5")
    with pytest.raises(ExperimentError, match='may keep the password "ssdlab"; clear it with'):
        purge.purge_claimed(device)


def test_a_frozen_drive_is_told_how_to_thaw_and_not_touched(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = drive.ata(monkeypatch, frozen=True)
    with pytest.raises(InputError, match=r"the drive is frozen .*suspend and wake"):
        purge.purge_claimed(device, method="ata-erase")
    assert drive.log() == []


def test_a_drive_with_a_password_of_its_own_is_not_touched(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "has a password" in obstacle(drive.ata(monkeypatch, enabled=True), "ata-erase")


def test_a_ctrl_c_waits_for_the_erase_that_the_drive_has_begun(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = drive.ata(monkeypatch, erase="sleep 0.6; cp off now; echo done >> log")
    with pytest.raises(Interrupted, match="had the erase already"):
        purge.purge_claimed(device, progress=lambda _news: False)
    assert "done" in drive.log()


def test_a_usb_bridge_and_scsi_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    device = BlockDevice(Path("/dev/sdz"), "sdz", 10**9, ("S",))
    monkeypatch.setattr(methods, "_bus", lambda _device: "SAS")
    assert "only TRIM is supported" in (methods.remark(device) or "")
    monkeypatch.setattr(methods, "_bus", lambda _device: "USB")
    assert "USB bridge" in (methods.remark(device) or "")


def test_an_unknown_method_is_one_sentence(drive: Drive) -> None:
    with pytest.raises(InputError, match='did you mean "nvme-format"'):
        purge.purge_claimed(drive.nvme(), method="nvme-fromat")


# --- loop devices and files


@pytest.mark.root
def test_a_loop_device_is_trimmed_and_that_is_no_real_purge(loop: Loop, cli: Cli) -> None:
    with loop.path.open("r+b") as file:
        file.write(os.urandom(8 * MIB))
        os.fsync(file.fileno())
    assert loop.backing.stat().st_blocks >= 8 * MIB // 512
    outcome = cli("purge", loop.path, "--destroy", loop.name, "--json", "-")
    assert outcome.status == 0, outcome.err
    found = json.loads(outcome.out)
    assert (found["method"], found["real"]) == ("discard", False)
    assert (
        "all data on it will be lost; the purge erases every block, which wears it like one"
        in outcome.err
    )
    assert "no real purge" in outcome.err
    assert loop.path.read_bytes() == bytes(64 * MIB)
    assert loop.backing.stat().st_blocks * 512 < MIB


@pytest.mark.root
def test_a_device_that_holds_data_or_is_not_named_is_refused_and_left_alone(
    loop: Loop, cli: Cli, tmp_path: Path
) -> None:
    assert f"--destroy {loop.name}" in cli("purge", loop.path).err
    assert cli("purge", loop.path, "--destroy", "S3RIAL").status == 3
    subprocess.run(["mkfs.ext4", "-q", str(loop.path)], check=True)
    before = loop.path.read_bytes()
    held = cli("purge", loop.path, "--destroy", loop.name)
    assert held.status == 3
    assert "signatures found: ext4" in held.err
    point = tmp_path / "point"
    point.mkdir()
    subprocess.run(["mount", str(loop.path), str(point)], check=True)
    try:
        mounted = cli("purge", loop.path, "--destroy", loop.name)
    finally:
        subprocess.run(["umount", str(point)], check=True)
    assert mounted.status == 3
    assert "is mounted at" in mounted.err
    subprocess.run(["e2fsck", "-fn", str(loop.path)], check=True, capture_output=True)
    assert len(before) == 64 * MIB


@pytest.mark.root
def test_a_device_in_use_is_refused(loop: Loop) -> None:
    holder = os.open(loop.path, os.O_RDWR | os.O_EXCL)
    try:
        with pytest.raises(RefusedError, match="is in use"):
            purge.purge(safety.inspect(loop.path), destroy=loop.name)
    finally:
        os.close(holder)


@pytest.mark.root
def test_a_dry_run_names_the_ways_and_changes_nothing(loop: Loop, cli: Cli) -> None:
    loop.path.write_bytes(os.urandom(MIB))
    before = loop.path.read_bytes()
    outcome = cli("purge", loop.path, "--dry-run", "--json", "-")
    assert outcome.status == 0, outcome.err
    assert json.loads(outcome.out)["would_use"] == "discard"
    assert json.loads(outcome.out)["refused"] is None
    assert loop.path.read_bytes() == before
    subprocess.run(["mkfs.ext4", "-q", str(loop.path)], check=True)
    assert "it would be refused" in cli("purge", loop.path, "--dry-run").out


@pytest.mark.root
def test_a_whole_purge_of_an_nvme_drive_goes_through_the_claim(
    loop: Loop, drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive.nvme(sanicap=0)
    found = safety.inspect(loop.path)
    device = BlockDevice(found.path, "nvme77n1", found.capacity_bytes, ("S4EMNX0R",))
    recorded = System(loop_as("nvme77n1", loop, drive.folder))
    monkeypatch.setattr("ssdlab.safety.device.System", lambda: recorded)
    said: list[str] = []
    with pytest.raises(RefusedError):
        purge.purge(device, destroy=loop.name)
    assert drive.log() == []
    done = purge.purge(device, destroy="S4EMNX0R", notice=said.append)
    assert done.method == "nvme-format"
    assert "all data on it will be lost" in said[0]
    assert "purging by NVMe format with user data erase" in said[1]


def loop_as(name: str, loop: Loop, folder: Path) -> Path:
    """A system in whose /sys/class/block the loop device has another name."""
    place = folder / "sys/class/block"
    place.mkdir(parents=True)
    (place / name).symlink_to(Path("/sys/class/block") / loop.name)
    return folder


def test_a_file_is_made_a_hole_if_that_is_allowed(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(os.urandom(2 * MIB))
    os.sync()
    refused = cli("purge", path)
    assert refused.status == 3
    assert "--use-existing-file" in refused.err
    assert path.stat().st_blocks > 0
    outcome = cli("purge", path, "--use-existing-file", "--json", "-")
    if outcome.status == 2:
        pytest.skip("this file system knows no holes")
    found = json.loads(outcome.out)
    assert (found["method"], found["real"]) == ("punch", False)
    assert "2.10 MB freed; this is no real purge" in outcome.err
    assert path.read_bytes() == bytes(2 * MIB)
    assert stat.S_ISREG(path.stat().st_mode)
    assert path.stat().st_blocks == 0


def test_a_purge_is_written_in_every_form(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(os.urandom(MIB))
    page, book, folder = tmp_path / "a.html", tmp_path / "a.xlsx", tmp_path / "tables"
    forms = ("--report", page, "--xlsx", book, "--csv", folder, "--quiet", "--use-existing-file")
    planned = cli("purge", path, "--dry-run", *forms)
    assert (planned.status, planned.out, planned.err) == (0, "", "")
    assert (folder / "ways.csv").read_text().startswith("method,what it is,real purge,here\npunch,")
    assert f"Ways to purge {path}" in page.read_text()
    done = cli("purge", path, *forms)
    if done.status == 2:
        pytest.skip("this file system knows no holes")
    assert (done.status, done.out, done.err) == (0, "", "")
    assert "punch,no," in (folder / "purge.csv").read_text()
    assert f"Purge of {path}" in page.read_text()
    assert book.stat().st_size > 0


def test_what_cannot_be_purged_is_one_sentence(tmp_path: Path, cli: Cli) -> None:
    for path in (tmp_path, tmp_path / "gone", Path("/dev/null")):
        outcome = cli("purge", path, "--use-existing-file")
        assert outcome.status == 2
        assert outcome.err.count("\n") == 1
    file = tmp_path / "file"
    file.write_bytes(b"x")
    (tmp_path / "link").symlink_to(file)
    assert "can only be made a hole" in cli("purge", file, "--method", "nvme-format").err
    assert cli("purge", tmp_path / "link", "--use-existing-file").status == 2
    assert file.read_bytes() == b"x"
