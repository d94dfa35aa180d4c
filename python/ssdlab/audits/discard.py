"""Whether TRIM gets from the file system down to the drive, and whether anybody uses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ssdlab.audits.model import ADVICE, OK, PROBLEM, UNKNOWN, Finding, FindingsAt
from ssdlab.audits.scene import Layer, Scene
from ssdlab.system import Seen, System, plain

_WHY = (
    "without TRIM the drive takes deleted data for valid data and relocates it in garbage "
    "collection (GC), so that it writes slower and wears faster"
)
_WHY_MORE = {
    "crypt": "; dm-crypt holds it back because it shows which blocks are unused",
    "raid": "; on RAID 0 of two Kingston HyperX TRIM did not reach the members, and the array "
    "fell below a single drive in 4 KiB work",
}


def trim_path(scene: Scene) -> Iterator[Finding]:
    """Every layer that lets no TRIM through though those below would."""
    real = [layer for layer in scene.layers if layer.kind != "partition"]
    stopped = False
    for layer in real:
        able, below = layer.takes_trim(scene.system), list(_real(layer.below))
        if able:
            continue
        if able is None:
            stopped = True
            what = f"whether {layer.title} supports TRIM could not be checked"
            yield scene.about(layer)(UNKNOWN, what)
        elif layer.kind == "disk":
            stopped = True
            yield _drive(scene, layer)
        elif all(layer.takes_trim(scene.system) for layer in below):
            stopped = True
            yield scene.about(layer, *_files(layer, *below))(
                PROBLEM,
                f"TRIM stops at {layer.title}, though the layer below supports it",
                _WHY + _WHY_MORE.get(layer.kind, ""),
                _allow(scene.system, layer),
            )
    if not stopped:
        way = " > ".join(layer.title for layer in real)
        yield scene.about(real[0], *_files(*real))(OK, f"TRIM reaches the drive ({way})")


def _files(*layers: Layer) -> list[str]:
    names = ("discard_max_bytes", "discard_granularity")
    return [f"{layer.place}/queue/{name}" for layer in layers for name in names]


def _real(layers: Sequence[Layer]) -> Iterator[Layer]:
    """The layers with partitions stepped over."""
    for layer in layers:
        yield from _real(layer.below) if layer.kind == "partition" else (layer,)


def _drive(scene: Scene, layer: Layer) -> Finding:
    drive = next(drive for drive in scene.drives if drive.name == layer.name)
    queue = f"{layer.place}/queue"
    files = [*_files(layer), f"{queue}/rotational"]
    if drive.rotational and not drive.virtual:
        what = "does not support TRIM, and a hard disk needs none"
        return scene.about(layer, *files)(OK, what)
    hardware = scene.system.number(f"{queue}/discard_max_hw_bytes")
    if hardware:
        what = f"TRIM to the drive {layer.name} is switched off, though the drive supports it"
        switch = f"echo {hardware} > /{queue}/discard_max_bytes"
        say = scene.about(layer, *files, f"{queue}/discard_max_hw_bytes")
        return say(PROBLEM, what, _WHY, switch)
    fix = {
        "USB": "replace the adapter by one that passes UNMAP on",
        "virtio": "set discard=unmap for this disk in the virtual machine's definition",
    }.get(drive.bus or "")
    what = f"the drive {layer.name} does not support TRIM"
    return scene.about(layer, *files)(ADVICE if drive.virtual else PROBLEM, what, _WHY, fix)


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
    if mount is None or "ro" in mount.options:
        return
    if not all(layer.takes_trim(system) for layer in scene.tops):
        return
    if all(drive.rotational and not drive.virtual for drive in scene.drives):
        return
    seen = Seen.of_mount(mount)
    say, points = FindingsAt(mount.point, (seen,)), _fstab(system)
    option, timer = mount.has("discard"), _timer(system)
    if option is not None:
        more = f", and {timer} also trims in batches" if timer else ""
        yield say(OK, f"the file system trims deleted files at once ({option}){more}")
    elif timer is None and not any(map(system.exists, ("etc/systemd", "etc/cron.weekly"))):
        what = "the mount option discard is not set, and whether a timer trims could not be checked"
        yield say(UNKNOWN, what, _WHY)
    elif timer is None:
        fix = f"systemctl enable --now fstrim.timer   # once by hand: fstrim -v {mount.point}"
        what = "nothing trims it: neither the mount option discard nor a timer"
        yield say(ADVICE, what, _WHY, fix)
    elif "fstrim.timer" in timer and points and mount.point not in points:
        listed = Seen("/etc/fstab", f"lists {', '.join(sorted(points))}")
        yield FindingsAt(mount.point, (seen, listed))(
            ADVICE,
            "fstrim.timer is on, but trims only what /etc/fstab lists, and this is not in it",
            _WHY,
            f"fstrim -v {mount.point}   # or add it to /etc/fstab",
        )
    else:
        yield say(OK, f"{timer} trims it")


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
