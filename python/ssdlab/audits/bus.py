"""How a drive is attached: controller, link speed, power saving."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ssdlab.audits.model import ADVICE, OK, PROBLEM, UNKNOWN, Finding
from ssdlab.audits.scene import Scene, SystemDrive, ancestors, each_drive
from ssdlab.fio.observe import link_bytes_per_s
from ssdlab.system import System


@each_drive
def controller_mode(scene: Scene, drive: SystemDrive) -> Iterator[Finding]:
    """Whether a SATA drive's controller runs in AHCI mode."""
    way = re.match(r"(.*)/ata\d+/", drive.way)
    if way is None:
        return
    code, say = scene.system.read(f"{way[1]}/class") or "", scene.about(drive, f"{way[1]}/class")
    if code.startswith("0x0106"):
        yield say(OK, "the controller runs in AHCI mode")
    elif code.startswith("0x0101"):
        yield say(
            PROBLEM,
            "the controller runs in IDE mode",
            "in IDE mode there is no native command queueing: one request at a time",
            "choose AHCI in the firmware setup   # check first that the system boots with it",
        )
    elif code.startswith("0x0104"):
        yield say(OK, "the controller runs in RAID mode, which queues like AHCI")
    else:
        yield say(UNKNOWN, "the controller's mode could not be checked")


@each_drive
def link_speed(scene: Scene, drive: SystemDrive) -> Iterator[Finding]:
    """Whether the PCIe or SATA link runs as fast and as wide as both ends can."""
    if drive.bus == "NVMe":
        yield _pcie(scene, drive)
    elif drive.bus == "SATA" and (port := re.search(r"/ata(\d+)/", drive.way)):
        yield _sata(scene, drive, port[1])


def _pcie(scene: Scene, drive: SystemDrive) -> Finding:
    system, place = scene.system, _pci_place(scene.system, drive)
    names = [f"{which}_link_{what}" for what in ("speed", "width") for which in ("current", "max")]
    ends = [] if place is None else [f"{place}/{name}" for name in names]
    say = scene.about(drive, *ends)
    (speed, width), (top, widest) = (_link(system, place, which) for which in ("current", "max"))
    if not (place and speed and top and width and widest):
        return say(UNKNOWN, "the PCIe link could not be checked")
    now = _link_text(speed, width)
    if float(speed) >= float(top) and width >= widest:
        return say(OK, f"the PCIe link runs at its best: {now}")
    what = f"the PCIe link runs at {now}, the drive supports {_link_text(top, widest)}"
    why = "the link is the ceiling of sequential throughput; small random I/O seldom reaches it"
    slot, _, address = place.rpartition("/")
    say = scene.about(drive, *ends, f"{slot}/max_link_speed", f"{slot}/max_link_width")
    slot_speed, slot_width = _link(system, slot, "max")
    limited = slot_speed is not None and float(slot_speed) <= float(speed) < float(top)
    if limited or (slot_width is not None and slot_width <= width < widest):
        fix = "put the drive into a faster slot"
        return say(ADVICE, f"{what}; the slot supports no more", why, fix)
    fix = f"lspci -vvs {address}   # reseat the drive, try another slot or cable"
    return say(PROBLEM, what, why, fix)


def _pci_place(system: System, drive: SystemDrive) -> str | None:
    """The PCI device of an NVMe drive, also where the kernel hides it behind a subsystem."""
    base = f"{drive.place}/device"
    ways = [drive.way, system.resolve(base)]
    controllers = [one for one in system.listed(base) if re.fullmatch(r"nvme\d+", one)]
    ways += [system.resolve(f"{base}/{controller}") for controller in controllers]
    ways += [system.resolve(f"{way}/device") for way in ways[1:]]
    for way in ways:
        for place in ancestors(way):
            if system.exists(f"{place}/current_link_speed"):
                return place
    return None


def _link(system: System, place: str | None, which: str) -> tuple[str | None, int | None]:
    """GT/s of a lane and lanes of a PCI device, ``current`` or ``max``."""
    if place is None:
        return None, None
    speed = re.match(r"(\d+(?:\.\d+)?) GT/s", system.read(f"{place}/{which}_link_speed") or "")
    width = system.number(f"{place}/{which}_link_width") or 0
    return f"{float(speed[1]):.1f}" if speed else None, width if width > 0 else None


def _link_text(speed: str, width: int) -> str:
    rate = link_bytes_per_s(speed, str(width)) or 0.0
    return f"{rate / 1e9:.2g} GB/s ({speed} GT/s x{width})"


def _sata(scene: Scene, drive: SystemDrive, port: str) -> Finding:
    base = f"sys/class/ata_link/link{port}"
    files = (f"{base}/sata_spd", f"{base}/hw_sata_spd_limit")
    say = scene.about(drive, *files)
    now, top = (re.match(r"(\d\.\d) Gbps", scene.system.read(file) or "") for file in files)
    if now is None:
        return say(UNKNOWN, "the speed of the SATA link could not be checked")
    if top is None or float(now[1]) >= float(top[1]):
        return say(OK, f"the SATA link runs at {now[1]} Gbit/s")
    return say(
        ADVICE,
        f"the SATA link runs at {now[1]} Gbit/s, the port supports {top[1]}",
        "the drive supports no more, or errors made the link fall back (look for CRC errors)",
        f"smartctl -i /dev/{drive.name}   # says what the drive supports; change the cable",
    )


@each_drive
def power_saving(scene: Scene, drive: SystemDrive) -> Iterator[Finding]:
    """Whether power saving delays the first I/O after a pause."""
    if drive.bus == "NVMe":
        yield from _apst(scene, drive)
    elif host := re.search(r"/(host\d+)/", drive.way):
        yield from _sata_policy(scene, drive, host[1])


def _sata_policy(scene: Scene, drive: SystemDrive, host: str) -> Iterator[Finding]:
    file = f"sys/class/scsi_host/{host}/link_power_management_policy"
    policy, say = scene.system.read(file), scene.about(drive, file)
    what = f"the SATA link power management policy is {policy}"
    if policy in ("max_performance", "keep_firmware_settings"):
        yield say(OK, what)
    elif policy is not None:
        why = (
            "a sleeping link delays the first I/O after a pause by some 10 us to 10 ms; good for a "
            "battery, bad for measuring latency"
        )
        yield say(ADVICE, what, why, f"echo max_performance > /{file}")


def _apst(scene: Scene, drive: SystemDrive) -> Iterator[Finding]:
    module = "sys/module/nvme_core/parameters/default_ps_max_latency_us"
    own = f"{drive.place}/device/power/pm_qos_latency_tolerance_us"
    allowed = scene.system.read(own)
    if allowed is None or allowed in ("auto", "any"):
        allowed = scene.system.read(module)
    say = scene.about(drive, module, own, "sys/module/pcie_aspm/parameters/policy")
    if allowed is None or not re.fullmatch(r"[0-9]{1,12}", allowed):
        return
    if allowed == "0":
        yield say(OK, "the drive enters no power-saving state by itself (APST is off)")
        return
    delay = int(allowed) / 1000
    yield say(
        OK,
        f"the drive may enter power-saving states that it leaves within {delay:g} ms (APST)",
        "the first I/O after a pause may wait so long; for measuring latency switch it off",
        f"echo 0 > /{own}",
    )
