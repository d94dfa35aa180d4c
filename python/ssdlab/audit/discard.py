"""Whether TRIM gets from the file system down to the drive, and whether anybody uses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ssdlab.audit.model import Finding, Status
from ssdlab.audit.scene import Layer, Scene
from ssdlab.fio.mounts import plain
from ssdlab.system import Evidence, System

_WHY = (
    "without TRIM the drive takes deleted data for valid data and relocates it in garbage "
    "collection (GC), so that it writes slower and wears faster"
)


def trim_path(scene: Scene) -> Iterator[Finding]:
    """Every layer that lets no TRIM through though those below would."""
    system = scene.system
    rotational = {one.name for one in scene.drives if one.rotational}
    stopped = False
    for layer in scene.layers:
        able = _able(system, layer)
        if layer.kind == "partition" or able:
            continue
        files = _files(layer)
        if able is None:
            stopped = True
            what = f"whether {layer.title} supports TRIM could not be checked"
            yield Finding("trim-path", layer.name, Status.UNKNOWN, what)
        elif layer.kind == "disk":
            stopped = True
            yield _drive(scene, layer, layer.name in rotational)
        elif all(_able(system, one) for one in _real(layer.below)):
            stopped = True
            yield Finding(
                "trim-path",
                layer.name,
                Status.PROBLEM,
                f"TRIM stops at {layer.title}, though the layer below supports it",
                system.evidence(*files, *(f for one in _real(layer.below) for f in _files(one))),
                _WHY + _why_more(layer.kind),
                _allow(system, layer),
            )
    if not stopped:
        real = [one for one in scene.layers if one.kind != "partition"]
        way = " > ".join(one.title for one in real)
        files = [file for one in real for file in _files(one)]
        what = f"TRIM reaches the drive ({way})"
        yield Finding("trim-path", real[0].name, Status.OK, what, system.evidence(*files))


def _files(layer: Layer) -> list[str]:
    names = ("discard_max_bytes", "discard_granularity")
    return [f"{layer.place}/queue/{name}" for name in names]


def _able(system: System, layer: Layer) -> bool | None:
    """Whether a layer takes TRIM; a partition takes what its disk does."""
    if layer.kind == "partition":
        return _able(system, layer.below[0])
    most = system.number(f"{layer.place}/queue/discard_max_bytes")
    return None if most is None else most > 0


def _real(layers: Sequence[Layer]) -> Iterator[Layer]:
    """The layers with partitions stepped over."""
    for one in layers:
        yield from _real(one.below) if one.kind == "partition" else (one,)


def _drive(scene: Scene, layer: Layer, rotational: bool) -> Finding:
    drive = next(one for one in scene.drives if one.name == layer.name)
    evidence = scene.system.evidence(*_files(layer), f"{layer.place}/queue/rotational")
    if rotational and not drive.virtual:
        what = "does not support TRIM, and a hard disk needs none"
        return Finding("trim-path", layer.name, Status.OK, what, evidence)
    hardware = scene.system.number(f"{layer.place}/queue/discard_max_hw_bytes")
    if hardware:
        what = f"TRIM to the drive {layer.name} is switched off, though the drive supports it"
        file = f"{layer.place}/queue/discard_max_hw_bytes"
        seen = (*evidence, *scene.system.evidence(file))
        switch = f"echo {hardware} > /{layer.place}/queue/discard_max_bytes"
        return Finding("trim-path", layer.name, Status.PROBLEM, what, seen, _WHY, switch)
    fix = {
        "USB": "replace the adapter by one that passes UNMAP on",
        "virtio": "set discard=unmap for this disk in the virtual machine's definition",
    }.get(drive.bus or "")
    what = f"the drive {layer.name} does not support TRIM"
    status = Status.ADVICE if drive.virtual else Status.PROBLEM
    return Finding("trim-path", layer.name, status, what, evidence, _WHY, fix)


def _why_more(kind: str) -> str:
    return {
        "crypt": "; dm-crypt holds it back because it shows which blocks are unused",
        "raid": "; on RAID 0 of two Kingston HyperX TRIM did not reach the members, and the array "
        "fell below a single drive in 4 KiB work",
    }.get(kind, "")


def _allow(system: System, layer: Layer) -> str | None:
    name = system.read(f"{layer.place}/dm/name") or layer.name
    level = system.read(f"{layer.place}/md/level") or ""
    if layer.kind == "crypt":
        return (
            f"cryptsetup --allow-discards --persistent refresh {name}"
            "   # LUKS2; otherwise add discard to its line in /etc/crypttab"
        )
    if layer.kind == "raid" and level in ("raid4", "raid5", "raid6"):
        return (
            "echo options raid456 devices_handle_discard_safely=Y > /etc/modprobe.d/raid456.conf"
            "   # only if every member reads zeroes after TRIM"
        )
    return None


def trim_used(scene: Scene) -> Iterator[Finding]:
    """Whether the file system trims, by itself or by a timer."""
    mount, system = scene.mount, scene.system
    if mount is None or "ro" in mount.options or not all(_able(system, one) for one in scene.tops):
        return
    if all(one.rotational and not one.virtual for one in scene.drives):
        return
    option = mount.has("discard")
    timer = _timer(system)
    evidence = (Evidence.of_mount(mount),)
    if option is not None:
        what = f"the file system trims deleted files at once ({option})"
        if timer:
            what += f", and {timer} also trims in batches"
        yield Finding("trim-used", mount.point, Status.OK, what, evidence)
        return
    if timer is None and not system.exists("etc/systemd") and not system.exists("etc/cron.weekly"):
        what = "the mount option discard is not set, and whether a timer trims could not be checked"
        yield Finding("trim-used", mount.point, Status.UNKNOWN, what, evidence, _WHY)
        return
    if timer is None:
        yield Finding(
            "trim-used",
            mount.point,
            Status.ADVICE,
            "nothing trims it: neither the mount option discard nor a timer",
            evidence,
            _WHY,
            f"systemctl enable --now fstrim.timer   # once by hand: fstrim -v {mount.point}",
        )
        return
    points = _fstab(system)
    if "fstrim.timer" in timer and points and mount.point not in points:
        yield Finding(
            "trim-used",
            mount.point,
            Status.ADVICE,
            "fstrim.timer is on, but trims only what /etc/fstab lists, and this is not in it",
            (*evidence, Evidence("/etc/fstab", f"lists {', '.join(sorted(points))}")),
            _WHY,
            f"fstrim -v {mount.point}   # or add it to /etc/fstab",
        )
        return
    yield Finding("trim-used", mount.point, Status.OK, f"{timer} trims it", evidence)


def _timer(system: System) -> str | None:
    """What trims in batches; None where nothing does."""
    for base in ("etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"):
        if system.exists(f"{base}/timers.target.wants/fstrim.timer"):
            return "fstrim.timer"
    for period in ("daily", "weekly", "monthly"):
        if system.exists(f"etc/cron.{period}/fstrim"):
            return f"/etc/cron.{period}/fstrim"
    return None


def _fstab(system: System) -> set[str]:
    """The mount points in /etc/fstab; where it lists none, fstrim takes everything mounted."""
    lines = [one for one in system.table("etc/fstab") if len(one) >= 3]
    return {plain(fields[1]) for fields in lines if not fields[0].startswith(b"#")}
