"""The audit says of recorded systems what is known of them, and never fails on this one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Cli, Loop
from recorded import DISK_QUEUE, GIB, SSD_QUEUE, Recorded
from ssdlab.audits import CHECKS, FileSystemSpace, Finding, Status, System, audit_path
from ssdlab.errors import InputError


def found(
    system: Recorded, target: str, space: FileSystemSpace | None = None
) -> dict[tuple[str, str], Finding]:
    """The findings of an audit by check and place."""
    _, findings = audit_path(target, System(system.root, lambda _point: space))
    keys = [(one.check, one.where) for one in findings]
    assert len(set(keys)) == len(keys), keys
    return {(one.check, one.where): one for one in findings}


def statuses(findings: dict[tuple[str, str], Finding]) -> set[tuple[str, str]]:
    """The checks and places that are neither ok nor unknown."""
    return {key for key, one in findings.items() if one.status in ("advice", "problem")}


@pytest.fixture
def system(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path / "system")


def encrypted(system: Recorded, *, allowed: bool) -> None:
    """ext4 on LVM on dm-crypt on a partition of an NVMe drive."""
    system.nvme()
    system.partition("nvme0n1", "nvme0n1p3")
    most = 2 * GIB if allowed else 0
    uuid = "CRYPT-LUKS2-0123-luks"
    system.mapped("dm-0", "luks", uuid, "nvme0n1p3", discard_max_bytes=most)
    system.mapped("dm-1", "vg-root", "LVM-abc", "dm-0", discard_max_bytes=most)
    system.mount("dm-1", "/", "ext4")
    system.timer()


def test_trim_stops_at_dm_crypt_that_was_not_told_to_let_it_through(system: Recorded) -> None:
    encrypted(system, allowed=False)
    findings = found(system, "/home/somebody/file")
    stopped = findings["trim-path", "dm-0"]
    assert stopped.status is Status.PROBLEM
    assert stopped.what == "TRIM stops at luks (dm-crypt), though the layer below supports it"
    assert stopped.fix is not None
    assert stopped.fix.startswith("cryptsetup --allow-discards --persistent refresh luks")
    seen = {one.file: one.value for one in stopped.evidence}
    assert seen["/sys/class/block/dm-0/queue/discard_max_bytes"] == "0"
    assert seen["/sys/class/block/nvme0n1/queue/discard_max_bytes"] == str(2 * GIB)
    # LVM only passes on what dm-crypt says, and nobody can trim the file system.
    assert [one for one in findings if one[0] in ("trim-path", "trim-used")] == [
        ("trim-path", "dm-0")
    ]


def test_trim_reaches_the_drive_through_dm_crypt_that_was_told(system: Recorded) -> None:
    encrypted(system, allowed=True)
    findings = found(system, "/")
    assert findings["trim-path", "dm-1"].what == (
        "TRIM reaches the drive (vg-root (LVM) > luks (dm-crypt) > nvme0n1)"
    )
    assert findings["trim-used", "/"].what == "fstrim.timer trims it"
    assert statuses(findings) == set()


def test_the_stack_of_a_mount_is_walked_down_to_its_drive(system: Recorded) -> None:
    encrypted(system, allowed=True)
    scene, _ = audit_path("/", System(system.root))
    kinds = [(one.name, one.kind) for one in scene.layers]
    assert kinds == [
        ("dm-1", "lvm"),
        ("dm-0", "crypt"),
        ("nvme0n1p3", "partition"),
        ("nvme0n1", "disk"),
    ]
    drive = scene.drives[0]
    assert (drive.bus, drive.rotational, drive.model) == ("NVMe", False, "KXG60ZNV512G TOSHIBA")


def test_devices_are_found_by_name_and_by_mapper_name(system: Recorded) -> None:
    encrypted(system, allowed=True)
    for name in ("/dev/dm-1", "/dev/mapper/vg-root", "dm-1"):
        scene, _ = audit_path(name, System(system.root))
        assert scene.tops[0].name == "dm-1"
        assert scene.mount is not None
        assert scene.mount.point == "/"


def test_a_partition_that_begins_beside_a_flash_page_is_a_problem(system: Recorded) -> None:
    system.sata()
    system.partition("sda", "sda1", start=63)
    system.partition("sda", "sda2", start=2048)
    system.partition("sda", "sda3", start=72)
    system.mount("sda1", "/", "ext4", "rw,noatime,discard")
    findings = found(system, "/")
    assert statuses(findings) == {("alignment", "sda1")}
    assert findings["alignment", "sda1"].status is Status.PROBLEM
    assert "starts at byte 32,256" in findings["alignment", "sda1"].what
    assert ("alignment", "sda2") not in findings
    whole = found(system, "/dev/sda")
    assert whole["alignment", "sda2"].what == "starts at a multiple of 1 MiB"
    # 36,864 bytes: nine flash pages.
    assert "multiple of 4 KiB, though not of 1 MiB" in whole["alignment", "sda3"].what


def test_a_partition_of_an_array_is_looked_at_too(system: Recorded) -> None:
    system.nvme("nvme0n1")
    system.nvme("nvme1n1")
    way = system.made_of("md0", ["nvme0n1", "nvme1n1"], optimal_io_size=1 << 20)
    system.write(f"{way}/md/level", "raid0")
    system.partition("md0", "md0p1", start=1024)
    system.mount("md0p1", "/", "xfs", "rw,relatime,discard")
    findings = found(system, "/")
    assert statuses(findings) == {("alignment", "md0p1")}
    assert findings["alignment", "md0p1"].status is Status.ADVICE
    assert "not at a multiple of the optimal 1,048,576 bytes" in findings["alignment", "md0p1"].what


def test_both_members_of_an_array_are_looked_at(system: Recorded) -> None:
    system.sata("sda", 1)
    system.sata("sdb", 2, {**SSD_QUEUE, "discard_max_bytes": 0, "discard_granularity": 0})
    way = system.made_of("md0", ["sda", "sdb"], discard_max_bytes=0)
    system.write(f"{way}/md/level", "raid0")
    system.mount("md0", "/data", "xfs")
    findings = found(system, "/data/base")
    assert {where for check, where in findings if check == "scheduler"} == {"sda", "sdb"}
    # The array takes no TRIM because a member does not: said of the member, not of the array.
    assert findings["trim-path", "sdb"].status is Status.PROBLEM
    assert ("trim-path", "md0") not in findings
    assert "no redundancy" in findings["array-state", "md0"].what


def test_an_array_that_lacks_a_member_or_rebuilds_is_told(system: Recorded) -> None:
    system.sata("sda", 1)
    system.sata("sdb", 2)
    way = system.made_of("md0", ["sda", "sdb"], discard_max_bytes=0)
    system.write(f"{way}/md/level", "raid5")
    system.write(f"{way}/md/degraded", 1)
    findings = found(system, "/dev/md0")
    assert findings["array-state", "md0"].status is Status.PROBLEM
    stopped = findings["trim-path", "md0"]
    assert stopped.fix is not None
    assert "devices_handle_discard_safely" in stopped.fix
    system.write(f"{way}/md/degraded", 0)
    system.write(f"{way}/md/sync_action", "resync")
    assert found(system, "/dev/md0")["array-state", "md0"].status is Status.ADVICE


def test_trim_that_was_switched_off_can_be_switched_on(system: Recorded) -> None:
    system.nvme(discard_max_bytes=0, discard_max_hw_bytes=2 * GIB)
    off = found(system, "/dev/nvme0n1")["trim-path", "nvme0n1"]
    assert off.status is Status.PROBLEM
    assert off.fix == f"echo {2 * GIB} > /sys/class/block/nvme0n1/queue/discard_max_bytes"


def test_xfs_with_noatime_and_discard_has_nothing_to_mend(system: Recorded) -> None:
    system.sata()
    system.partition("sda", "sda1")
    system.mount("sda1", "/", "xfs", "rw,noatime,discard")
    findings = found(system, "/", FileSystemSpace(100 * GIB, 45 * GIB, 40 * GIB))
    assert statuses(findings) == set()
    assert findings["trim-used", "/"].what == (
        "the file system trims deleted files at once (discard)"
    )
    assert findings["free-space", "/"].what == "40 % of the file system is free for users"
    # 100 of 480 GiB are in the partition.
    assert findings["unpartitioned", "sda"].what == "79.2% of the drive is in no partition"


def test_a_hard_disk_needs_no_trim_but_a_scheduler(system: Recorded) -> None:
    system.sata("sda", 1, {**DISK_QUEUE, "scheduler": "[none] mq-deadline bfq"})
    system.write("sys/devices/pci0000:00/0000:00:1f.2/ata1/host1/target1:0:0/1:0:0:0/model", "HGST")
    system.partition("sda", "sda1")
    system.mount("sda1", "/", "ext4")
    findings = found(system, "/")
    assert statuses(findings) == {("scheduler", "sda")}
    assert findings["scheduler", "sda"].fix == (
        "echo mq-deadline > /sys/class/block/sda/queue/scheduler"
    )
    assert findings["trim-path", "sda"].status is Status.OK
    assert ("trim-used", "/") not in findings
    assert findings["rotational", "sda"].what == "a hard disk"


def test_below_a_loop_device_lies_the_drive_of_its_file(system: Recorded) -> None:
    system.nvme()
    system.partition("nvme0n1", "nvme0n1p1")
    system.mount("nvme0n1p1", "/srv", "ext4")
    way = system.made_of("loop3", [])
    system.write(f"{way}/loop/backing_file", "/srv/images/a.img")
    system.write(f"{way}/loop/dio", 0)
    system.mount("loop3", "/mnt", "ext4")
    scene, _ = audit_path("/mnt", System(system.root))
    assert [one.name for one in scene.layers] == ["loop3", "nvme0n1p1", "nvme0n1"]
    findings = found(system, "/mnt")
    assert findings["loop-cache", "loop3"].status is Status.ADVICE
    assert findings["trim-used", "/mnt"].status is Status.ADVICE  # no timer, no discard


def test_fstrim_timer_trims_only_what_fstab_lists(system: Recorded) -> None:
    encrypted(system, allowed=True)
    system.write("etc/fstab", "# only comments")
    assert found(system, "/")["trim-used", "/"].status is Status.OK
    system.write("etc/fstab", "UUID=0 /home ext4 defaults 0 2\n#UUID=1 / ext4 defaults 0 1")
    missing = found(system, "/")["trim-used", "/"]
    assert missing.status is Status.ADVICE
    assert "not in it" in missing.what
    system.write("etc/fstab", "UUID=1 / ext4 defaults 0 1")
    assert found(system, "/")["trim-used", "/"].status is Status.OK


def test_ncq_switched_off_and_ide_mode_are_problems(system: Recorded) -> None:
    scsi = system.sata()
    system.write(f"{scsi}/queue_depth", 1)
    system.write("sys/devices/pci0000:00/0000:00:1f.2/class", "0x01018a")
    findings = found(system, "/dev/sda")
    assert findings["ncq", "sda"].status is Status.PROBLEM
    assert findings["controller-mode", "sda"].status is Status.PROBLEM
    assert statuses(findings) == {("ncq", "sda"), ("controller-mode", "sda")}


def test_a_slow_pcie_link_is_a_problem_and_a_slow_slot_advice(system: Recorded) -> None:
    pci = system.nvme()
    best = found(system, "/dev/nvme0n1")["link-speed", "nvme0n1"]
    assert best.what == "the PCIe link runs at its best: 3.9 GB/s (8.0 GT/s x4)"
    system.write(f"{pci}/current_link_width", 2)
    slow = found(system, "/dev/nvme0n1")["link-speed", "nvme0n1"]
    assert slow.status is Status.PROBLEM
    assert slow.what == (
        "the PCIe link runs at 2 GB/s (8.0 GT/s x2), the drive supports 3.9 GB/s (8.0 GT/s x4)"
    )
    slot = str(Path(pci).parent)
    system.write(f"{slot}/max_link_speed", "8.0 GT/s PCIe")
    system.write(f"{slot}/max_link_width", 2)
    narrow = found(system, "/dev/nvme0n1")["link-speed", "nvme0n1"]
    assert narrow.status is Status.ADVICE
    assert narrow.what.endswith("the slot supports no more")


def test_a_link_that_tells_no_lanes_could_not_be_checked(system: Recorded) -> None:
    pci = system.nvme()
    system.write(f"{pci}/current_link_width", -1)
    link = found(system, "/dev/nvme0n1")["link-speed", "nvme0n1"]
    assert (link.status, link.what) == (Status.UNKNOWN, "the PCIe link could not be checked")


def test_the_link_is_found_behind_an_nvme_subsystem(system: Recorded) -> None:
    pci = "sys/devices/pci0000:00/0000:00:1d.0/0000:3d:00.0"
    for kind in ("current", "max"):
        system.write(f"{pci}/{kind}_link_speed", "16.0 GT/s PCIe")
        system.write(f"{pci}/{kind}_link_width", 4)
    system.write(f"{pci}/nvme/nvme0/state", "live")
    subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    way = system._block("nvme0n1", f"{subsystem}/nvme0n1", SSD_QUEUE, GIB)
    system.link(f"{way}/device", subsystem)
    system.link(f"{subsystem}/nvme0", f"{pci}/nvme/nvme0")
    link = found(system, "/dev/nvme0n1")["link-speed", "nvme0n1"]
    assert link.what == "the PCIe link runs at its best: 7.9 GB/s (16.0 GT/s x4)"


def test_a_sata_link_that_fell_back_points_to_the_cable(system: Recorded) -> None:
    system.sata()
    system.write("sys/class/ata_link/link1/sata_spd", "3.0 Gbps")
    link = found(system, "/dev/sda")["link-speed", "sda"]
    assert link.status is Status.ADVICE
    assert "runs at 3.0 Gbit/s, the port supports 6.0" in link.what


@pytest.mark.parametrize(
    ("kernel", "drive", "options", "where"),
    [
        ("write through", "write back", "rw,relatime,discard", "sda"),
        ("write back", "write back", "rw,relatime,discard,nobarrier", "/"),
        ("write back", "write back", "rw,relatime,discard,barrier=0", "/"),
    ],
)
def test_a_cache_that_is_not_flushed_is_a_problem_and_says_what_was_measured(
    system: Recorded, kernel: str, drive: str, options: str, where: str
) -> None:
    scsi = system.sata("sda", 1, {**SSD_QUEUE, "write_cache": kernel})
    system.write(f"{scsi}/scsi_disk/1:0:0:0/cache_type", drive)
    system.mount("sda", "/", "ext4", options)
    findings = found(system, "/")
    assert statuses(findings) == {("write-cache", where)}
    problem = findings["write-cache", where]
    assert problem.status is Status.PROBLEM
    assert "X25-M was half as fast" in problem.why


def test_a_barrier_that_is_on_and_a_cache_that_needs_no_flush_are_fine(system: Recorded) -> None:
    system.nvme(write_cache="write through")
    system.mount("nvme0n1", "/", "ext4", "rw,relatime,discard,barrier=1")
    assert found(system, "/")["write-cache", "nvme0n1"].status is Status.OK


@pytest.mark.parametrize(
    ("free", "status"), [(4, Status.PROBLEM), (10, Status.ADVICE), (20, Status.OK)]
)
def test_a_full_file_system_is_told(system: Recorded, free: int, status: Status) -> None:
    system.nvme()
    system.mount("nvme0n1", "/", "ext4", "rw,relatime,discard")
    findings = found(system, "/", FileSystemSpace(100 * GIB, (free + 5) * GIB, free * GIB))
    assert findings["free-space", "/"].status is status
    assert found(system, "/")["free-space", "/"].status is Status.UNKNOWN


def test_a_file_system_that_is_only_read_is_neither_full_nor_to_be_trimmed(
    system: Recorded,
) -> None:
    system.nvme()
    system.mount("nvme0n1", "/snap", "squashfs", "ro,nodev,relatime")
    findings = found(system, "/snap", FileSystemSpace(GIB, 0, 0))
    assert statuses(findings) == set()
    assert {("free-space", "/snap"), ("trim-used", "/snap")}.isdisjoint(findings)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("rw", "every file read updates its access time"),
        ("rw,strictatime", "every file read updates its access time"),
        ("rw,relatime,sync", "every write waits"),
        ("rw,relatime,data=journal", "through the journal"),
    ],
)
def test_mount_options_that_cost_are_told(system: Recorded, options: str, told: str) -> None:
    system.nvme()
    system.mount("nvme0n1", "/", "ext4", options + ",discard")
    one = found(system, "/")["mount-options", "/"]
    assert one.status is Status.ADVICE
    assert told in one.what


def test_swap_on_the_drive_is_told_when_it_is_used(system: Recorded) -> None:
    system.nvme()
    system.nvme("nvme1n1")
    system.partition("nvme0n1", "nvme0n1p1")
    system.partition("nvme0n1", "nvme0n1p2")
    system.mount("nvme0n1p1", "/", "ext4", "rw,relatime,discard")
    assert found(system, "/")["swap", "nvme0n1"].what == "there is no swap on it"
    system.swap("/dev/nvme0n1p2", "partition", 0)
    assert found(system, "/")["swap", "nvme0n1"].status is Status.OK
    system.swap("/swapfile", "file", 4096)
    _, findings = audit_path("/", System(system.root))
    used = [one for one in findings if one.check == "swap" and one.status is Status.ADVICE]
    assert [one.what for one in used] == ["swap /swapfile is on it and in use"]
    # The other drive has none.
    assert found(system, "/dev/nvme1n1")["swap", "nvme1n1"].what == "there is no swap on it"


def test_settings_of_queues_are_told(system: Recorded) -> None:
    system.nvme(
        scheduler="none mq-deadline [bfq]", nr_requests=8, read_ahead_kb=16384, rotational=0
    )
    findings = found(system, "/dev/nvme0n1")
    assert statuses(findings) == {
        ("scheduler", "nvme0n1"),
        ("queue-depth", "nvme0n1"),
        ("read-ahead", "nvme0n1"),
    }
    assert "most changed nothing" in findings["scheduler", "nvme0n1"].why


def test_an_ssd_taken_for_a_hard_disk_is_a_problem(system: Recorded) -> None:
    system.sata("sda", 1, {**SSD_QUEUE, "rotational": 1})
    assert found(system, "/dev/sda")["rotational", "sda"].status is Status.PROBLEM


def test_power_saving_of_a_sata_link_is_told(system: Recorded) -> None:
    system.sata()
    policy = "sys/class/scsi_host/host1/link_power_management_policy"
    system.write(policy, "med_power_with_dipm")
    saving = found(system, "/dev/sda")["power-saving", "sda"]
    assert saving.status is Status.ADVICE
    assert saving.fix == f"echo max_performance > /{policy}"


def test_btrfs_on_two_drives_shows_both(system: Recorded) -> None:
    system.nvme("nvme0n1")
    system.nvme("nvme1n1")
    for name in ("nvme0n1", "nvme1n1"):
        system.link(f"sys/fs/btrfs/abc/devices/{name}", f"sys/class/block/{name}")
    options = "rw,relatime,ssd,discard=async"
    system.mount_line("0:42", "/data set", "btrfs", "/dev/nvme0n1", options)
    scene, _ = audit_path("/data set/x", System(system.root))
    assert [one.name for one in scene.drives] == ["nvme0n1", "nvme1n1"]
    assert "discard=async" in found(system, "/data set")["trim-used", "/data set"].what


def test_what_lies_on_no_drive_is_one_sentence(system: Recorded) -> None:
    system.mount_line("0:5", "/tmp", "tmpfs", "tmpfs", "rw")
    with pytest.raises(InputError, match="is on tmpfs"):
        audit_path("/tmp/x", System(system.root))
    with pytest.raises(InputError, match="no mounted file system"):
        audit_path("/home", System(system.root))
    with pytest.raises(InputError, match="no such device"):
        audit_path("/dev/sdz", System(system.root))


def test_a_system_that_tells_next_to_nothing_is_audited_too(system: Recorded) -> None:
    """Each file of a whole system missing, and each full of nonsense: never more than unknown."""
    encrypted(system, allowed=True)
    files = [one for one in system.root.rglob("*") if one.is_file() and "class" not in str(one)]
    assert len(files) > 50
    for file in files:
        kept = file.read_bytes()
        for content in (None, b"", b"\xff\xfe nonsense [x", b"-1\n", b"99999999999999999999999\n"):
            file.unlink()
            if content is not None:
                file.write_bytes(content)
            try:
                audit_path("/", System(system.root))
            except InputError:
                assert file.name in ("mountinfo", "dev", "size", "partition", "name"), file
            file.write_bytes(kept)


def test_every_finding_belongs_to_a_check_and_problems_say_why(system: Recorded) -> None:
    names = [one.name for one in CHECKS]
    assert len(set(names)) == len(names)
    encrypted(system, allowed=False)
    findings = found(system, "/")
    assert {check for check, _ in findings} <= set(names)
    assert all(one.why and one.fix for one in findings.values() if one.status == "problem")


def test_this_machine_is_audited_without_failing(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("audit", "/", "--json", tmp_path / "a.json")
    if outcome.status == 2:
        assert "no drive can be seen" in outcome.err  # a container
        return
    assert outcome.status == 0, outcome.err
    assert "nothing was changed" in outcome.out
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["drives"]
    assert {"check", "where", "status", "what", "evidence", "why", "fix"} == set(
        document["findings"][0]
    )


def test_a_loop_device_of_this_machine_is_audited(cli: Cli, loop: Loop) -> None:
    outcome = cli("audit", loop.path)
    assert outcome.status == 0, outcome.err
    assert f"loop on {loop.backing}" in outcome.out


def test_the_command_line_audits_a_recorded_system(cli: Cli, system: Recorded) -> None:
    encrypted(system, allowed=False)
    outcome = cli("audit", "/", "--root", system.root)
    assert outcome.status == 0
    assert "cryptsetup --allow-discards" in outcome.out
    whole = cli("audit", "/", "--root", system.root, "--json", "-")
    assert json.loads(whole.out)["stack"][0]["name"] == "dm-1"
    quiet = cli("audit", "/", "--root", system.root, "--quiet")
    assert "suits it" in outcome.out
    findings = json.loads(whole.out)["findings"]
    wrong = [one["what"] for one in findings if one["status"] != "ok"]
    assert 0 < len(wrong) < len(findings)
    assert all(what in quiet.out for what in wrong)
    assert len(quiet.out.splitlines()) == len(wrong) + 2  # heading, rule


def test_an_audit_is_written_in_every_form(cli: Cli, system: Recorded, tmp_path: Path) -> None:
    encrypted(system, allowed=False)
    page, book, folder = tmp_path / "a.html", tmp_path / "a.xlsx", tmp_path / "tables"
    forms = ("--report", page, "--xlsx", book, "--csv", folder)
    quiet = cli("audit", "/", "--root", system.root, "--quiet", *forms)
    assert (quiet.status, quiet.err) == (0, "")
    assert quiet.out == cli("audit", "/", "--root", system.root, "--quiet").out
    assert {one.name for one in folder.iterdir()} == {
        "layers.csv",
        "findings.csv",
        "what-would-help.csv",
    }
    assert "cryptsetup --allow-discards" in (folder / "what-would-help.csv").read_text()
    assert "luks (dm-crypt),nvme0n1p3 (partition)," in (folder / "layers.csv").read_text()
    assert "cryptsetup --allow-discards" in page.read_text()
    assert book.stat().st_size > 0


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("/dev/nvme77n1", "there is no such device"),
        ("/dev/null", "is no block device"),
        ("/nowhere/at/all", "there is no such file, folder or device"),
        ("/proc", "below which no drive can be seen"),
    ],
)
def test_a_wrong_target_is_one_sentence(cli: Cli, target: str, told: str) -> None:
    outcome = cli("audit", target)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert told in outcome.err


def test_a_root_without_sys_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("audit", "/", "--root", tmp_path)
    assert outcome.status == 2
    assert "has no sys/class/block in it" in outcome.err


def test_checks_are_listed(cli: Cli) -> None:
    shown = cli("list", "checks").out
    assert all(one.name in shown and one.summary in shown for one in CHECKS)
