"""What lies below a path: its file system, and the layers of devices down to the drives."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ssdlab.audits.model import Finding, FindingsAt
from ssdlab.errors import InputError
from ssdlab.smart import Health, live
from ssdlab.system import CLASS, Mount, System

DEEPEST = 16
"""Layers below which a stack is taken for a loop."""

VIRTUAL_BUSES = frozenset({"virtio", "Xen", "Hyper-V"})
"""Buses of disks that a hypervisor makes; the drive below cannot be seen."""


@dataclass(frozen=True)
class Layer:
    """A block device of a stack."""

    name: str
    """The kernel's."""
    kind: str
    """``partition``, ``crypt``, ``lvm``, ``mapped``, ``raid``, ``cache``, ``loop``, ``memory`` or
    ``disk``."""
    title: str
    """For people: ``vg-root (LVM)``."""
    below: tuple[Layer, ...] = ()

    @property
    def place(self) -> str:
        """Its folder in /sys."""
        return f"{CLASS}/{self.name}"

    def takes_trim(self, system: System) -> bool | None:
        """Whether it takes TRIM, a partition as its disk does; None where nobody tells."""
        if self.kind == "partition":
            return self.below[0].takes_trim(system)
        most = system.number(f"{self.place}/queue/discard_max_bytes")
        return None if most is None else most > 0


@dataclass(frozen=True)
class SystemDrive:
    """A disk at the bottom of a stack."""

    name: str
    bus: str | None
    """``NVMe``, ``SATA``, ``SAS``, ``USB``, ``MMC``, ``virtio``, ``Xen``, ``Hyper-V``."""
    rotational: bool | None
    """As the kernel takes it."""
    model: str | None
    way: str
    """Its folder in /sys/devices, links followed."""

    @property
    def place(self) -> str:
        """Its folder in /sys."""
        return f"{CLASS}/{self.name}"

    @property
    def virtual(self) -> bool:
        """Whether a hypervisor makes it."""
        return self.bus in VIRTUAL_BUSES

    @property
    def ssd(self) -> bool:
        """Whether it is one, as far as the kernel knows."""
        return self.rotational is False


@dataclass(frozen=True)
class Scene:
    """What an audit looks at."""

    system: System
    target: str
    mount: Mount | None
    """None where the target is a device that is not mounted."""
    tops: tuple[Layer, ...]
    """The devices right below the file system, or the target; several with btrfs."""

    @property
    def layers(self) -> list[Layer]:
        """Every layer once, from the top down."""
        found: dict[str, Layer] = {}
        waiting = list(self.tops)
        while waiting:
            layer = waiting.pop(0)
            found.setdefault(layer.name, layer)
            waiting.extend(layer.below)
        return list(found.values())

    @property
    def drives(self) -> list[SystemDrive]:
        """The disks at the bottom."""
        return [
            drive_called(self.system, layer.name) for layer in self.layers if layer.kind == "disk"
        ]

    def ask(self, name: str) -> Health:
        """Asks a drive for its health; raises an SsdlabError where it tells none."""
        if not self.system.live:
            raise InputError("it is a recorded system, and its drives cannot be asked")
        return live(Path("/dev") / name)

    def about(self, what: Layer | SystemDrive, *files: str) -> FindingsAt:
        """A device as findings are about it, with what these files say."""
        return FindingsAt(what.name, self.system.evidence(*files))


def each_drive(
    check: Callable[[Scene, SystemDrive], Iterator[Finding]],
) -> Callable[[Scene], Iterator[Finding]]:
    """Makes a check of one drive a check of all of them."""

    @functools.wraps(check)
    def of_all(scene: Scene) -> Iterator[Finding]:
        for drive in scene.drives:
            yield from check(scene, drive)

    return of_all


def look(system: System, target: str) -> Scene:
    """Finds what lies below ``target``: a device, a mount point, or any file or folder; InputError
    where there is no such thing, or no block device lies below it."""
    if "\x00" in target:
        raise InputError("a name with a zero byte is no file")
    name = _device(system, target)
    if name is not None:
        top = stack(system, name)
        if top.kind == "memory" or (system.number(f"{CLASS}/{name}/size") or 0) == 0:
            raise InputError(f"{target}: is a block device without a drive below it")
        return Scene(system, target, system.mount_on(name), (top,))
    mount = system.mount_of(str(Path(target).resolve()) if system.live else target)
    if mount is None:
        raise InputError(f"{target}: no mounted file system holds it")
    tops = tuple(stack(system, one) for one in below_mount(system, mount))
    if not tops or all(layer.kind == "memory" for layer in tops):
        raise InputError(
            f"{target}: is on {mount.kind} ({mount.source}), below which no drive can be seen; "
            "name the drive itself"
        )
    return Scene(system, target, mount, tops)


def _device(system: System, target: str) -> str | None:
    """The kernel's name of the block device that is meant; None where it is a file or folder."""
    if not system.live:
        if "/" in target and not target.startswith("/dev/"):
            return None
        found = system.device_called(target if "/" in target else f"/dev/{target}")
        if found is None:
            raise InputError(f"{target}: there is no such device below {system.root}")
        return found
    path = Path(target)
    try:
        is_block, there = path.is_block_device(), path.exists()
    except OSError as error:
        raise InputError(f"{target}: cannot be looked at ({error.strerror})") from None
    if is_block:
        if (name := system.device_called(target)) is None:
            raise InputError(f"{target}: the kernel does not know this block device")
        return name
    if there:
        if target.startswith("/dev/") and path.is_char_device():
            raise InputError(f"{target}: is no block device")
        return None
    if target.startswith("/dev/"):
        raise InputError(f"{target}: there is no such device")
    if "/" not in target and system.exists(f"{CLASS}/{target}"):
        return target
    raise InputError(f"{target}: there is no such file, folder or device")


def below_mount(system: System, mount: Mount) -> list[str]:
    """The block devices right below a file system, by the kernel's names."""
    if name := system.device_numbered(mount.device):
        return [name]
    # btrfs and some others have numbers of their own; btrfs may lie on several devices.
    source = system.device_called(mount.source) if mount.source.startswith("/dev/") else None
    if source is None:
        return []
    for pool in system.listed("sys/fs/btrfs"):
        members = system.listed(f"sys/fs/btrfs/{pool}/devices")
        if source in members:
            return members
    return [source]


def stack(system: System, name: str, depth: int = 0) -> Layer:
    """A block device with what it lies on, ``depth`` layers down already; InputError where the
    devices below it go round in a circle."""
    if depth > DEEPEST:
        raise InputError(f"{name}: the devices below it go round in a circle")
    place = f"{CLASS}/{name}"

    def down(names: list[str]) -> tuple[Layer, ...]:
        return tuple(stack(system, name, depth + 1) for name in names)

    if system.is_partition(name):
        return Layer(name, "partition", f"{name} (partition)", down([system.disk_of(name)]))
    slaves = system.listed(f"{place}/slaves")
    if (word := system.mapped_by(name)) is not None:
        kind = {"dm-crypt": "crypt", "LVM": "lvm"}.get(word, "mapped")
        return Layer(name, kind, f"{system.of(name, 'dm/name')} ({word})", down(slaves))
    if (level := system.of(name, "md/level")) is not None:
        return Layer(name, "raid", f"{name} ({level})", down(slaves))
    if (backing := system.backing_file(name)) is not None:
        mount = system.mount_of(backing)
        names = below_mount(system, mount) if mount else []
        return Layer(name, "loop", f"{name} (loop on {backing})", down(names))
    if re.match(r"(zram|ram)\d", name):
        return Layer(name, "memory", f"{name} (memory)")
    if slaves:
        return Layer(name, "cache", f"{name} (made of {', '.join(slaves)})", down(slaves))
    return Layer(name, "disk", name)


def drive_called(system: System, name: str) -> SystemDrive:
    """The disk with the kernel's name ``name``."""
    place = f"{CLASS}/{name}"
    way = system.resolve(place)
    flag = system.read(f"{place}/queue/rotational")
    return SystemDrive(
        name=name,
        bus=_bus(system, name, way),
        rotational=None if flag not in ("0", "1") else flag == "1",
        model=system.read(f"{place}/device/model"),
        way=way,
    )


def _bus(system: System, name: str, way: str) -> str | None:
    for start, bus in (("nvme", "NVMe"), ("mmcblk", "MMC"), ("vd", "virtio"), ("xvd", "Xen")):
        if name.startswith(start):
            return bus
    if "/usb" in way:
        return "USB"
    if re.search(r"/ata\d+/", way):
        return "SATA"
    if "/virtio" in way:
        return "virtio"
    if "/vmbus" in way or "/VMBUS" in way:
        return "Hyper-V"
    ata = system.exists(f"{CLASS}/{name}/device/vpd_pg89")
    if ata or system.read(f"{CLASS}/{name}/device/vendor") == "ATA":
        return "SATA"
    return "SAS" if name.startswith("sd") else None


def ancestors(way: str) -> Iterator[str]:
    """A folder of /sys/devices and those above it, the nearest first."""
    path = Path(way)
    while path.name and path != path.parent:
        yield str(path)
        path = path.parent
