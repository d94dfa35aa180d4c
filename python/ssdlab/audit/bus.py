"""How a drive is attached: controller, link speed, power saving."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ssdlab.audit.model import Finding, Status
from ssdlab.audit.scene import Drive, Scene, ancestors
from ssdlab.system import System

OK, ADVICE, PROBLEM, UNKNOWN = Status.OK, Status.ADVICE, Status.PROBLEM, Status.UNKNOWN

_LANE_GB_S = {"2.5": 0.25, "5.0": 0.5, "8.0": 0.985, "16.0": 1.969, "32.0": 3.938, "64.0": 7.563}
"""GB/s of a PCIe lane by its GT/s, after line coding (PCI Express base specification)."""


def controller_mode(scene: Scene) -> Iterator[Finding]:
    """Whether a SATA drive's controller runs in AHCI mode."""
    for drive in scene.drives:
        way = re.match(r"(.*)/ata\d+/", drive.way)
        if way is None:
            continue
        file = f"{way[1]}/class"
        code = scene.system.read(file) or ""
        evidence = scene.system.evidence(file)
        if code.startswith("0x0106"):
            what = "the controller runs in AHCI mode"
            yield Finding("controller-mode", drive.name, OK, what, evidence)
        elif code.startswith("0x0101"):
            yield Finding(
                "controller-mode",
                drive.name,
                PROBLEM,
                "the controller runs in IDE mode",
                evidence,
                "in IDE mode there is no native command queueing: one request at a time",
                "choose AHCI in the firmware setup   # check first that the system boots with it",
            )
        elif code.startswith("0x0104"):
            what = "the controller runs in RAID mode, which queues like AHCI"
            yield Finding("controller-mode", drive.name, OK, what, evidence)
        else:
            what = "the controller's mode could not be checked"
            yield Finding("controller-mode", drive.name, UNKNOWN, what, evidence)


def link_speed(scene: Scene) -> Iterator[Finding]:
    """Whether the PCIe or SATA link runs as fast and as wide as both ends can."""
    for drive in scene.drives:
        if drive.bus == "NVMe":
            yield _pcie(scene.system, drive)
        elif drive.bus == "SATA" and (port := re.search(r"/ata(\d+)/", drive.way)):
            yield from _sata(scene.system, drive, port[1])


def _pcie(system: System, drive: Drive) -> Finding:
    place = _pci_place(system, drive)
    if place is None:
        return Finding("link-speed", drive.name, UNKNOWN, "the PCIe link could not be checked")
    names = ("current_link_speed", "max_link_speed", "current_link_width", "max_link_width")
    evidence = system.evidence(*(f"{place}/{name}" for name in names))
    speed, top = (_gts(system.read(f"{place}/{name}") or "") for name in names[:2])
    width, widest = (system.number(f"{place}/{name}") for name in names[2:])
    if speed is None or top is None or width is None or widest is None:
        return Finding(
            "link-speed", drive.name, UNKNOWN, "the PCIe link could not be checked", evidence
        )
    now = f"{_gb_s(speed, width):.2g} GB/s ({speed} GT/s x{width})"
    if float(speed) >= float(top) and width >= widest:
        what = f"the PCIe link runs at its best: {now}"
        return Finding("link-speed", drive.name, OK, what, evidence)
    best = f"{_gb_s(top, widest):.2g} GB/s ({top} GT/s x{widest})"
    what = f"the PCIe link runs at {now}, the drive supports {best}"
    slot = place.rpartition("/")[0]
    port = system.evidence(f"{slot}/max_link_speed", f"{slot}/max_link_width")
    slot_speed = _gts(system.read(f"{slot}/max_link_speed") or "")
    slot_width = system.number(f"{slot}/max_link_width")
    limited = slot_speed is not None and float(slot_speed) <= float(speed) < float(top)
    limited = limited or (slot_width is not None and slot_width <= width < widest)
    why = "the link is the ceiling of sequential throughput; small random I/O seldom reaches it"
    if limited:
        what += "; the slot supports no more"
        fix = "put the drive into a faster slot"
        return Finding("link-speed", drive.name, ADVICE, what, (*evidence, *port), why, fix)
    fix = f"lspci -vvs {place.rpartition('/')[2]}   # reseat the drive, try another slot or cable"
    return Finding("link-speed", drive.name, PROBLEM, what, (*evidence, *port), why, fix)


def _pci_place(system: System, drive: Drive) -> str | None:
    """The PCI device of an NVMe drive, also where the kernel hides it behind a subsystem."""
    base = f"{drive.place}/device"
    ways = [drive.way, system.resolve(base)]
    controllers = [one for one in system.listed(base) if re.fullmatch(r"nvme\d+", one)]
    ways += [system.resolve(f"{base}/{one}") for one in controllers]
    ways += [system.resolve(f"{way}/device") for way in ways[1:]]
    for way in ways:
        for place in ancestors(way):
            if system.exists(f"{place}/current_link_speed"):
                return place
    return None


def _gts(text: str) -> str | None:
    found = re.match(r"(\d+(?:\.\d+)?) GT/s", text)
    return f"{float(found[1]):.1f}" if found else None


def _gb_s(speed: str, width: int) -> float:
    return _LANE_GB_S.get(speed, float(speed) / 8.4) * width


def _sata(system: System, drive: Drive, port: str) -> Iterator[Finding]:
    base = f"sys/class/ata_link/link{port}"
    speed, limit = system.read(f"{base}/sata_spd"), system.read(f"{base}/hw_sata_spd_limit")
    evidence = system.evidence(f"{base}/sata_spd", f"{base}/hw_sata_spd_limit")
    now, top = (re.match(r"(\d\.\d) Gbps", one or "") for one in (speed, limit))
    if now is None:
        what = "the speed of the SATA link could not be checked"
        yield Finding("link-speed", drive.name, UNKNOWN, what, evidence)
    elif top is not None and float(now[1]) < float(top[1]):
        yield Finding(
            "link-speed",
            drive.name,
            ADVICE,
            f"the SATA link runs at {now[1]} Gbit/s, the port supports {top[1]}",
            evidence,
            "the drive supports no more, or errors made the link fall back (look for CRC errors)",
            f"smartctl -i /dev/{drive.name}   # says what the drive supports; change the cable",
        )
    else:
        what = f"the SATA link runs at {now[1]} Gbit/s"
        yield Finding("link-speed", drive.name, OK, what, evidence)


def power_saving(scene: Scene) -> Iterator[Finding]:
    """Whether power saving delays the first I/O after a pause."""
    for drive in scene.drives:
        if drive.bus == "NVMe":
            yield from _apst(scene.system, drive)
        elif host := re.search(r"/(host\d+)/", drive.way):
            file = f"sys/class/scsi_host/{host[1]}/link_power_management_policy"
            policy = scene.system.read(file)
            if policy is not None:
                yield _sata_policy(scene.system, drive, file, policy)


def _sata_policy(system: System, drive: Drive, file: str, policy: str) -> Finding:
    what = f"the SATA link power management policy is {policy}"
    evidence = system.evidence(file)
    if policy in ("max_performance", "keep_firmware_settings"):
        return Finding("power-saving", drive.name, OK, what, evidence)
    why = (
        "a sleeping link delays the first I/O after a pause by some 10 us to 10 ms; good for a "
        "battery, bad for measuring latency"
    )
    fix = f"echo max_performance > /{file}"
    return Finding("power-saving", drive.name, ADVICE, what, evidence, why, fix)


def _apst(system: System, drive: Drive) -> Iterator[Finding]:
    module = "sys/module/nvme_core/parameters/default_ps_max_latency_us"
    own = f"{drive.place}/device/power/pm_qos_latency_tolerance_us"
    policy = "sys/module/pcie_aspm/parameters/policy"
    allowed = system.read(own)
    if allowed is None or allowed in ("auto", "any"):
        allowed = system.read(module)
    evidence = system.evidence(module, own, policy)
    if allowed is None or not re.fullmatch(r"[0-9]{1,12}", allowed):
        return
    if allowed == "0":
        what = "the drive enters no power-saving state by itself (APST is off)"
        yield Finding("power-saving", drive.name, OK, what, evidence)
        return
    delay = int(allowed) / 1000
    yield Finding(
        "power-saving",
        drive.name,
        OK,
        f"the drive may enter power-saving states that it leaves within {delay:g} ms (APST)",
        evidence,
        "the first I/O after a pause may wait so long; for measuring latency switch it off",
        f"echo 0 > /{own}",
    )
