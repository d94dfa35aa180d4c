"""Who uses a device or file is found on recorded systems, as this machine cannot make each use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recorded import Recorded
from ssdlab.safety import uses
from ssdlab.system import System


@pytest.fixture
def system(tmp_path: Path) -> Recorded:
    """A system with an NVMe drive that nobody uses, and a SATA drive with a partition."""
    recorded = Recorded(tmp_path)
    recorded.nvme()
    recorded.sata()
    recorded.partition("sda", "sda1")
    return recorded


def found(system: Recorded, name: str = "nvme0n1") -> dict[str, str]:
    """The uses of a device by kind."""
    return {one.kind: one.sentence for one in uses.of_device(System(system.root), name)}


def test_a_drive_that_nobody_uses_is_free(system: Recorded) -> None:
    system.process(7, "bash")
    system.mount("sda1", "/", "ext4")
    assert found(system) == {}


def test_the_partition_table_alone_is_told(system: Recorded) -> None:
    assert found(system, "sda") == {"partition": "holds a partition table (partitions sda1)"}
    assert found(system, "sda1") == {}


@pytest.mark.parametrize(
    ("uuid", "kind"), [("LVM-x", "LVM"), ("CRYPT-LUKS2-x", "dm-crypt"), ("", "device mapper")]
)
def test_a_member_of_the_device_mapper_is_found(system: Recorded, uuid: str, kind: str) -> None:
    system.mapped("dm-0", "vg-root", uuid, "nvme0n1")
    assert found(system) == {"holder": f"is in use by dm-0 ({kind} vg-root)"}


def test_a_partition_in_an_array_keeps_its_drive(system: Recorded) -> None:
    system.write(f"{system.made_of('md0', ['sda1'])}/md/level", "raid1")
    assert found(system, "sda")["holder"] == "its partition sda1 is in use by md0 (md raid1)"


def test_a_bcache_member_is_found_attached_or_only_registered(system: Recorded) -> None:
    system.write("sys/class/block/nvme0n1/bcache/state", "no cache")
    assert found(system) == {"bcache": "is registered with bcache"}
    system.made_of("bcache0", ["nvme0n1"])
    assert found(system) == {"holder": "is in use by bcache0 (bcache)"}


def test_a_loop_device_on_a_part_of_the_drive_is_found(system: Recorded) -> None:
    system.loop("loop3", "/dev/nvme0n1", offset=1 << 20)
    assert "behind the loop device loop3 (from byte 1048576)" in found(system)["loop"]


def test_a_loop_device_on_a_partition_keeps_the_drive_and_its_partition(system: Recorded) -> None:
    system.loop("loop3", "/dev/sda1")
    assert "its partition sda1 is behind the loop device loop3" in found(system, "sda")["loop"]
    assert "is behind the loop device loop3" in found(system, "sda1")["loop"]


def test_the_backing_of_a_loop_device_is_asked_too(system: Recorded) -> None:
    system.write("images/disk.img", "")
    system.loop("loop3", "/images/disk.img")
    assert found(system, "loop3") == {}
    system.loop("loop4", "/images/disk.img")
    assert "its backing file /images/disk.img is behind" in found(system, "loop3")["loop"]
    names = [one.kind for one in uses.of_file(System(system.root), "/images/disk.img")]
    assert names == ["loop", "loop"]


@pytest.mark.parametrize("flags", [os.O_RDWR, os.O_WRONLY | os.O_DIRECT])
def test_a_virtual_machine_or_database_on_the_raw_drive_is_found(
    system: Recorded, flags: int
) -> None:
    system.process(812, "qemu-system-x86", nvme0n1=flags)
    expected = "is open for writing by qemu-system-x86 (process 812); stop that first"
    assert found(system) == {"open": expected}


def test_what_has_become_another_program_is_judged_by_what_that_has_open(system: Recorded) -> None:
    """As a copy of this process, which has all that this one has open, before it runs fio."""
    system.process(812, "fio", nvme0n1=os.O_RDWR)
    looked_at = System(system.root)
    assert [use.kind for use in uses.of_device(looked_at, "nvme0n1")] == ["open"]
    (link,) = (system.root / "proc/812/fd").iterdir()
    link.unlink()
    link.symlink_to("/dev/sda")
    assert uses.of_device(looked_at, "nvme0n1") == []


def test_who_only_reads_uses_nothing_up(system: Recorded) -> None:
    system.process(31, "smartd", nvme0n1=os.O_RDONLY | os.O_NONBLOCK)
    assert found(system) == {}


def test_who_has_the_whole_drive_open_keeps_its_partitions(system: Recorded) -> None:
    system.process(812, "qemu-nbd", sda=os.O_RDWR)
    expected = "its drive sda is open for writing by qemu-nbd (process 812); stop that first"
    assert found(system, "sda1") == {"open": expected}


def test_the_members_of_a_stack_are_asked_too(system: Recorded) -> None:
    system.mapped("dm-0", "test", "", "nvme0n1")
    assert found(system, "dm-0") == {}
    system.process(812, "postgres", nvme0n1=os.O_RDWR)
    assert "its member nvme0n1 is open for writing" in found(system, "dm-0")["open"]


def test_the_client_of_a_network_block_device_is_not_its_user(system: Recorded) -> None:
    way = system.made_of("nbd0", [])
    system.write(f"{way}/pid", 55)
    system.process(55, "nbd-client", nbd0=os.O_RDWR)
    assert found(system, "nbd0") == {}
    system.process(56, "mysqld", nbd0=os.O_RDWR)
    assert "mysqld (process 56)" in found(system, "nbd0")["open"]


def test_targets_of_the_kernel_are_found(system: Recorded) -> None:
    config = "sys/kernel/config"
    system.write(f"{config}/target/core/iblock_0/vol/udev_path", "/dev/nvme0n1")
    assert "SCSI target (LIO) as iblock_0/vol" in found(system)["export"]
    system.write(f"{config}/nvmet/subsystems/nqn.x/namespaces/1/device_path", "/dev/sda1")
    assert "sda1 is exported by nvmet as namespace 1 of nqn.x" in found(system, "sda")["export"]
    system.write("images/lun.img", "")
    system.write(f"{config}/target/core/fileio_1/lun/udev_path", "/images/lun.img")
    (exported,) = uses.of_file(System(system.root), "/images/lun.img")
    assert "as fileio_1/lun" in exported.sentence


def test_a_vdev_of_an_imported_pool_is_found(system: Recorded) -> None:
    system.write("programs/zpool", "tank\t7T\t1T\n\t/dev/sda1\t7T\t1T\n\t/images/vdev\t1G")
    assert "zfs" not in found(system, "sda")
    system.write("proc/spl/kstat", "")
    assert "sda1 is a member of an imported ZFS pool" in found(system, "sda")["zfs"]
    system.write("images/vdev", "")
    assert [one.kind for one in uses.of_file(System(system.root), "/images/vdev")] == ["zfs"]


def test_a_mount_that_only_a_container_sees_is_found(system: Recorded) -> None:
    system.mounted_elsewhere(400, "nvme0n1", "/data", "xfs")
    expected = "is mounted at /data in the mount namespace of process 400; unmount it first"
    assert found(system) == {"mount": expected}


def test_swap_on_a_partition_keeps_its_drive(system: Recorded) -> None:
    system.swap("/dev/sda1", "partition", 0)
    assert "its partition sda1 is in use as swap" in found(system, "sda")["swap"]


def test_an_active_swap_file_is_found(system: Recorded) -> None:
    system.write("swapfile", "")
    system.swap("/swapfile", "file", 0)
    (one,) = uses.of_file(System(system.root), "/swapfile")
    assert "in use as swap" in one.sentence
