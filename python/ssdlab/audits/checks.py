"""The checks of an audit. A check is a function in one of the files here, and a line below."""

from __future__ import annotations

from dataclasses import replace

from ssdlab.audits import bus, discard, layout, queue, use
from ssdlab.audits.model import AuditCheck, Finding
from ssdlab.audits.scene import Scene, look
from ssdlab.system import System

CHECKS: tuple[AuditCheck, ...] = (
    AuditCheck("trim-path", "TRIM reaches the drive from the file system", discard.trim_path),
    AuditCheck("trim-used", "the file system trims, by itself or by a timer", discard.trim_used),
    AuditCheck("alignment", "partitions are aligned to flash pages", layout.alignment),
    AuditCheck("free-space", "the file system has room left", layout.free_space),
    AuditCheck("unpartitioned", "how much of the drive serves as spare area", layout.unpartitioned),
    AuditCheck("scheduler", "the I/O scheduler suits the kind of drive", queue.scheduler),
    AuditCheck("queue-depth", "the request queue is deep enough", queue.queue_depth),
    AuditCheck("ncq", "the drive queues more than one request (NCQ)", queue.native_queueing),
    AuditCheck("controller-mode", "SATA controllers run in AHCI mode", bus.controller_mode),
    AuditCheck("link-speed", "the PCIe or SATA link runs as fast as it can", bus.link_speed),
    AuditCheck("write-cache", "the drive's write cache is on, and is flushed", queue.write_cache),
    AuditCheck("read-ahead", "read-ahead is on and not excessive", queue.read_ahead),
    AuditCheck("rotational", "the kernel treats an SSD as one", queue.rotational),
    AuditCheck("mount-options", "no mount option makes reads write", use.mount_options),
    AuditCheck("swap", "no swap in use is on the drive", use.swap),
    AuditCheck("array-state", "arrays are complete and idle", use.array_state),
    AuditCheck("loop-cache", "loop devices do not keep data in RAM twice", use.loop_cache),
    AuditCheck(
        "power-saving", "power saving of links and drives does not delay I/O", bus.power_saving
    ),
    AuditCheck("health", "what the drive reports of its own health", use.health),
)


def audit(scene: Scene) -> list[Finding]:
    """Runs every check; the worst findings first, otherwise in the order of the checks."""
    findings = [
        replace(finding, check=check.name) for check in CHECKS for finding in check.run(scene)
    ]
    return sorted(findings, key=lambda finding: -finding.status.rank)


def audit_path(target: str, system: System | None = None) -> tuple[Scene, list[Finding]]:
    """What lies below ``target`` and what is to be said of it; InputError where there is no such
    thing, or no drive can be seen below it."""
    scene = look(system or System(), target)
    return scene, audit(scene)
