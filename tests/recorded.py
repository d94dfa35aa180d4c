"""Small recorded systems: folders with the files of /sys, /proc and /etc that an audit reads."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

GIB = 1 << 30
SSD_QUEUE: Mapping[str, object] = {
    "rotational": 0,
    "discard_max_bytes": 2 * GIB,
    "discard_granularity": 512,
    "scheduler": "[none] mq-deadline kyber bfq",
    "nr_requests": 1023,
    "write_cache": "write back",
    "fua": 1,
    "read_ahead_kb": 128,
    "optimal_io_size": 0,
    "physical_block_size": 512,
}
DISK_QUEUE: Mapping[str, object] = {
    **SSD_QUEUE,
    "rotational": 1,
    "discard_max_bytes": 0,
    "discard_granularity": 0,
    "scheduler": "none [mq-deadline] kyber bfq",
    "nr_requests": 256,
}


class Recorded:
    """A system below a folder, put together piece by piece."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lines: list[str] = []
        self._swaps = ["Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority"]
        self._minor = 0
        self.write("proc/swaps", self._swaps[0])
        self.write("proc/self/mountinfo", "")
        (root / "etc/systemd/system").mkdir(parents=True)

    def write(self, place: str, value: object) -> None:
        """A file with a line in it."""
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")

    def link(self, place: str, target: str) -> None:
        """A relative link below the root, as the kernel makes them."""
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(os.path.relpath(self.root / target, path.parent))

    def _block(self, name: str, way: str, queue: Mapping[str, object] | None, size: int) -> str:
        self._minor += 1
        for key, value in (queue or {}).items():
            self.write(f"{way}/queue/{key}", value)
        self.write(f"{way}/size", size // 512)
        self.write(f"{way}/dev", f"259:{self._minor}")
        self.link(f"sys/class/block/{name}", way)
        return way

    def nvme(self, name: str = "nvme0n1", **queue: object) -> str:
        """An NVMe drive on a PCIe link of 8 GT/s x4 that runs at its best."""
        pci = f"sys/devices/pci0000:00/0000:00:1d.0/{name}-0000:3d:00.0"
        way = f"{pci}/nvme/{name[:-2]}/{name}"
        self._block(name, way, {**SSD_QUEUE, **queue}, 512 * GIB)
        for kind in ("current", "max"):
            self.write(f"{pci}/{kind}_link_speed", "8.0 GT/s PCIe")
            self.write(f"{pci}/{kind}_link_width", 4)
        self.write(f"{pci}/nvme/{name[:-2]}/model", "KXG60ZNV512G TOSHIBA")
        self.write(f"{pci}/nvme/{name[:-2]}/power/pm_qos_latency_tolerance_us", 100000)
        self.link(f"{way}/device", f"{pci}/nvme/{name[:-2]}")
        return pci

    def sata(
        self, name: str = "sda", port: int = 1, queue: Mapping[str, object] = SSD_QUEUE
    ) -> str:
        """A SATA drive on a controller in AHCI mode, its link at 6 Gbit/s."""
        pci = "sys/devices/pci0000:00/0000:00:1f.2"
        scsi = f"{pci}/ata{port}/host{port}/target{port}:0:0/{port}:0:0:0"
        way = self._block(name, f"{scsi}/block/{name}", queue, 480 * GIB)
        self.write(f"{pci}/class", "0x010601")
        self.write(f"{scsi}/model", "INTEL SSDSC2BB480G6")
        self.write(f"{scsi}/vendor", "ATA")
        self.write(f"{scsi}/queue_depth", 32)
        self.write(f"{scsi}/scsi_disk/{port}:0:0:0/cache_type", "write back")
        self.link(f"{way}/device", scsi)
        self.write(f"sys/class/ata_link/link{port}/sata_spd", "6.0 Gbps")
        self.write(f"sys/class/ata_link/link{port}/hw_sata_spd_limit", "6.0 Gbps")
        policy = f"sys/class/scsi_host/host{port}/link_power_management_policy"
        self.write(policy, "max_performance")
        return scsi

    def virtio(self, name: str = "vda") -> str:
        """A disk that a hypervisor makes."""
        way = f"sys/devices/pci0000:00/0000:00:04.0/virtio1/block/{name}"
        self._block(name, way, {**SSD_QUEUE, "write_cache": "write back"}, 64 * GIB)
        self.link(f"{way}/device", "sys/devices/pci0000:00/0000:00:04.0/virtio1")
        return way

    def processors(self, nodes: Sequence[str] = ("0-3",), governor: str = "powersave") -> None:
        """NUMA nodes with these processors, each processor with a frequency of its own."""
        count = 0
        for number, cpus in enumerate(nodes):
            first, _, last = cpus.partition("-")
            count = int(last) + 1
            self.write(f"sys/devices/system/node/node{number}/cpulist", cpus)
            for cpu in range(int(first), count):
                policy = f"sys/devices/system/cpu/cpufreq/policy{cpu}"
                self.write(f"{policy}/scaling_governor", governor)
                self.write(f"{policy}/scaling_available_governors", "performance powersave")
        self.write("sys/devices/system/cpu/online", f"0-{count - 1}")

    def interrupts(self, pci: str, numbers: Mapping[int, str]) -> None:
        """Interrupts of a PCI device and the processors that answer each."""
        for number, cpus in numbers.items():
            self.write(f"{pci}/msi_irqs/{number}", "msix")
            self.write(f"proc/irq/{number}/smp_affinity_list", cpus)

    def partition(self, disk: str, name: str, start: int = 2048, size: int = 100 * GIB) -> str:
        """A partition that begins at sector ``start``."""
        parent = (self.root / f"sys/class/block/{disk}").resolve().relative_to(self.root.resolve())
        way = self._block(name, f"{parent}/{name}", None, size)
        self.write(f"{way}/partition", 1)
        self.write(f"{way}/start", start)
        self.write(f"{way}/alignment_offset", 0)
        return way

    def made_of(self, name: str, below: Sequence[str], **queue: object) -> str:
        """A virtual device on others: its folder; what makes it dm or md is written there."""
        way = f"sys/devices/virtual/block/{name}"
        self._block(name, way, {**SSD_QUEUE, **queue}, 100 * GIB)
        for one in below:
            self.link(f"{way}/slaves/{one}", f"sys/class/block/{one}")
            self.link(f"sys/class/block/{one}/holders/{name}", way)
        return way

    def loop(self, name: str, backing: str, offset: int = 0) -> str:
        """A loop device on a file or device."""
        way = self._block(name, f"sys/devices/virtual/block/{name}", SSD_QUEUE, GIB)
        self.write(f"{way}/loop/backing_file", backing)
        self.write(f"{way}/loop/offset", offset)
        return way

    def process(self, pid: int, name: str, **opened: int) -> None:
        """A process with devices open, by their names below /dev and the flags of open(2)."""
        self.write(f"proc/{pid}/comm", name)
        for number, (device, flags) in enumerate(opened.items(), 3):
            (self.root / f"proc/{pid}/fd").mkdir(parents=True, exist_ok=True)
            (self.root / f"proc/{pid}/fd/{number}").symlink_to(f"/dev/{device}")
            self.write(f"proc/{pid}/fdinfo/{number}", f"pos:\t0\nflags:\t0{flags:o}")

    def mounted_elsewhere(self, pid: int, name: str, point: str, kind: str) -> None:
        """A file system that only a process in a mount namespace of its own sees."""
        number = (self.root / f"sys/class/block/{name}/dev").read_text().strip()
        line = f"99 1 {number} / {point} rw - {kind} /dev/{name} rw"
        self.write(f"proc/{pid}/mountinfo", line)
        for process, inode in (("self", 1), (pid, 2)):
            (self.root / f"proc/{process}/ns").mkdir(parents=True, exist_ok=True)
            (self.root / f"proc/{process}/ns/mnt").symlink_to(f"mnt:[{inode}]")

    def mapped(self, name: str, called: str, uuid: str, below: str, **queue: object) -> None:
        """A device mapper device."""
        way = self.made_of(name, [below], **queue)
        self.write(f"{way}/dm/name", called)
        self.write(f"{way}/dm/uuid", uuid)

    def mount(self, name: str, point: str, kind: str, options: str = "rw,relatime") -> None:
        """A file system on a device; options of the mount and of the file system together."""
        number = (self.root / f"sys/class/block/{name}/dev").read_text().strip()
        self.mount_line(number, point, kind, f"/dev/{name}", options)

    def mount_line(self, number: str, point: str, kind: str, source: str, options: str) -> None:
        """A line of mountinfo."""
        place = point.replace(" ", "\\040")
        number_of_mount = len(self._lines) + 20
        self._lines.append(f"{number_of_mount} 1 {number} / {place} {options} - {kind} {source} rw")
        self.write("proc/self/mountinfo", "\n".join(self._lines))

    def swap(self, path: str, kind: str, used_kib: int) -> None:
        """A swap area of 8 GiB."""
        self._swaps.append(f"{path} {kind} 8388604 {used_kib} -2")
        self.write("proc/swaps", "\n".join(self._swaps))

    def timer(self) -> None:
        """Switches fstrim.timer on; the link points to where the running system has the unit."""
        place = self.root / "etc/systemd/system/timers.target.wants/fstrim.timer"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to("/nowhere/systemd/system/fstrim.timer")
