"""The settings: each is an entry of :data:`SETTINGS` and a function that says where it goes; and
what ``--setup`` may say of them."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ssdlab.admin import abilities, controller, other_namespaces
from ssdlab.audits.queue import scsi_cache
from ssdlab.audits.scene import SystemDrive, ancestors
from ssdlab.errors import ExperimentError, InputError, known_name
from ssdlab.system import System
from ssdlab.tuning.means import MANAGED, cpu_list, cpu_set, formats
from ssdlab.tuning.model import Closed, Knob, Setting, SetupRequest, SetupSubject, SetupWish

Plan = Iterator[Knob | Closed]

NONE = "none"
PRESETS = {
    NONE: "everything stays as it is",
    "pts": "as the SNIA PTS asks for; a protocol with settings=client turns the write cache on",
    "pts-client": "the same with the drive's write cache on, for loads of a client",
}
PTS = "pts", "pts-client"
BOTTLENECK = "SNIA PTS, test platform: hardware and OS must not be the bottleneck"
BLOCK = "Linux, Documentation/ABI/stable/sysfs-block"


def both(value: str) -> dict[str, str]:
    """The same in every preset of the PTS."""
    return dict.fromkeys(PTS, value)


def one_of(*values: str) -> Callable[[str], bool]:
    """Whether a text is one of some words."""
    return lambda text: text in values


def matching(pattern: str) -> Callable[[str], bool]:
    """Whether a text has a form."""
    return lambda text: re.fullmatch(pattern, text) is not None


def _cpus(text: str) -> bool:
    """Whether a text is a list of processors, or means those next to the drive."""
    return text == "local" or (
        re.fullmatch(CPUS, text) is not None and all(map(cpu_set, text.split(",")))
    )


def _block(text: str) -> bool:
    """Whether a text is an LBA format: a power of two from 512 bytes on, and metadata."""
    if re.fullmatch(r"[1-9]\d{2,4}(\+\d+)?", text) is None:
        return False
    size = block_bytes(text)
    return size >= 512 and size & (size - 1) == 0


def _file(system: System, place: str, want: str, means: str = "file") -> Plan:
    """A file to write to, or why it cannot be."""
    if not system.exists(place):
        yield Closed(f"/{place}", "this system has no such file")
    elif not _writable(system, place):
        why = "it is read-only here" if os.geteuid() == 0 else "no permission: only root can"
        yield Closed(f"/{place}", why)
    else:
        yield Knob(means, place, want)


def _writable(system: System, place: str) -> bool:
    """Whether it can be written; root may write to anything, but not every file takes it."""
    path = system.root / place
    try:
        return os.access(path, os.W_OK) and path.stat().st_mode & 0o222 != 0
    except OSError:
        return False


def _of_drive(
    plan: Callable[[System, SystemDrive, str], Plan],
) -> Callable[[SetupSubject, str], Plan]:
    """Makes a setting of a drive one of what is set up, of which the drive need not be known."""

    @functools.wraps(plan)
    def of_subject(subject: SetupSubject, value: str) -> Plan:
        if subject.drive is None:
            yield Closed("the drive", "the drive below it is not known")
        else:
            yield from plan(subject.system, subject.drive, value)

    return of_subject


def _queue(
    file: str, words: Mapping[str, str] | None = None
) -> Callable[[SetupSubject, str], Plan]:
    """A number in the drive's queue folder; ``words`` are what people say for some."""
    return _of_drive(
        lambda system, drive, value: _file(
            system, f"{drive.place}/queue/{file}", (words or {}).get(value, value)
        )
    )


SCHEDULERS = "none", "mq-deadline", "kyber", "bfq", "noop", "deadline", "cfq"
GOVERNORS = "performance", "powersave", "userspace", "ondemand", "conservative", "schedutil"
"""Those that Linux has, asked for where a system offers none."""
CPUS = r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*"
MERGES = {"on": "0", "simple": "1", "off": "2"}


# --- write cache


@_of_drive
def write_cache(system: System, drive: SystemDrive, value: str) -> Plan:
    """The drive's own cache; the kernel's view of it (queue/write_cache) follows."""
    name = f"/dev/{drive.name}"
    if drive.virtual:
        yield Closed(name, "it is a virtual disk, whose cache the host decides on")
    elif drive.bus == "NVMe":
        yield from _nvme_cache(system, drive, value)
    elif places := scsi_cache(system, drive):
        yield from _scsi_cache(system, drive, places[0], value)
    elif drive.bus == "SATA":
        yield Knob("hdparm", name, value)
    else:
        yield Closed(name, "it has no cache that could be switched")


def _scsi_cache(system: System, drive: SystemDrive, place: str, value: str) -> Plan:
    now = system.read(place) or ""
    on = now.startswith("write back")
    want = now if on == (value == "on") else "write back" if value == "on" else "write through"
    view = f"{drive.place}/queue/write_cache"
    if system.exists(view):
        # The kernel looks at the drive again, and forgets what it was told about flushing.
        yield Knob("file", view, None)
    yield from _file(system, place, want, "drive-file")


def _nvme_cache(system: System, drive: SystemDrive, value: str) -> Plan:
    node = controller(drive.name, system)
    try:
        has_cache = abilities(node).volatile_cache
    except ExperimentError as error:
        yield Closed(node, error.message)
        return
    if has_cache:
        yield Knob("nvme-feature", node, value)
    else:
        yield Closed(node, "the drive has no volatile write cache", value == "off")


# --- the queue


@_of_drive
def scheduler(system: System, drive: SystemDrive, value: str) -> Plan:
    """The I/O scheduler, and what is lost when it changes."""
    place = f"{drive.place}/queue/scheduler"
    there = (system.read(place) or "").replace("[", "").replace("]", "").split()
    if value not in (there or SCHEDULERS):
        yield _not_among(f"/{place}", value, there, SCHEDULERS)
        return
    # Another scheduler begins with a queue depth and parameters of its own.
    own = [f"{drive.place}/queue/iosched/{one}" for one in system.listed(f"{place[:-9]}iosched")]
    for one in (f"{drive.place}/queue/nr_requests", f"{drive.place}/queue/wbt_lat_usec", *own):
        if system.read(one) is not None and _writable(system, one):
            yield Knob("file", one, None)
    yield from _file(system, place, value)


# --- processors


def _not_among(place: str, value: str, there: Sequence[str], known: Sequence[str]) -> Closed:
    if there:
        return Closed(place, f"the kernel offers {', '.join(there)}", wrong=True)
    return Closed(place, f'Linux has no "{value}"; it has {", ".join(known)}', wrong=True)


def governor(subject: SetupSubject, value: str) -> Plan:
    """The frequency governor of every processor."""
    base = "sys/devices/system/cpu/cpufreq"
    policies = [f"{base}/{one}" for one in subject.system.listed(base) if one.startswith("policy")]
    if not policies and value not in GOVERNORS:
        yield _not_among(f"/{base}", value, (), GOVERNORS)
    elif not policies:
        why = "this system does not let frequencies be set, as in most virtual machines"
        yield Closed(f"/{base}", why)
    for policy in policies:
        told = subject.system.read(f"{policy}/scaling_available_governors") or ""
        offered = told.split()
        place = f"{policy}/scaling_governor"
        # What these hold is lost when the governor changes.
        for one in (f"{policy}/scaling_setspeed", f"{policy}/energy_performance_preference"):
            if (said := subject.system.read(one)) and said != "<unsupported>":
                yield Knob("file", one, None)
        if value in (offered or GOVERNORS):
            yield from _file(subject.system, place, value)
        else:
            yield _not_among(f"/{place}", value, offered, GOVERNORS)


def local_cpus(system: System, drive: SystemDrive | None) -> set[int] | None:
    """The processors next to the drive; None where nobody knows. All, where there is one node."""
    base = "sys/devices/system/node"
    nodes = [one for one in system.listed(base) if re.fullmatch(r"node\d+", one)]
    if len(nodes) < 2:
        return cpu_set(system.read("sys/devices/system/cpu/online") or "") or None
    for way in ancestors(drive.way) if drive is not None else ():
        node = system.number(f"{way}/numa_node")
        if node is not None and node >= 0:
            return cpu_set(system.read(f"{base}/node{node}/cpulist") or "") or None
    return None


UNKNOWN_NODE = "the system does not tell which NUMA node the drive is at"


def affinity(subject: SetupSubject, value: str) -> Plan:
    """The processors that fio runs on."""
    wanted = local_cpus(subject.system, subject.drive) if value == "local" else cpu_set(value)
    allowed = os.sched_getaffinity(0)
    if wanted is None:
        yield Closed("fio's processes", UNKNOWN_NODE)
    elif not wanted & allowed:
        why = f"this process may run on {cpu_list(allowed)} only"
        yield Closed("fio's processes", why, wrong=value != "local")
    else:
        yield Knob("process", "", cpu_list(wanted & allowed))


@_of_drive
def irq(system: System, drive: SystemDrive, value: str) -> Plan:
    """The processors that answer the interrupts of an NVMe drive."""
    if drive.bus != "NVMe":
        yield Closed("/proc/irq", "only an NVMe drive has interrupts of its own")
        return
    places = [f"{way}/msi_irqs" for way in ancestors(drive.way)]
    numbers = next((found for place in places if (found := system.listed(place))), [])
    wanted = local_cpus(system, drive) if value == "local" else cpu_set(value)
    if not numbers or wanted is None:
        why = "the system does not list the drive's interrupts" if wanted else UNKNOWN_NODE
        yield Closed("/proc/irq", why)
        return
    for number in sorted(numbers, key=int):
        place = f"proc/irq/{number}/smp_affinity_list"
        now = system.read(place) or ""
        if cpu_set(now) and cpu_set(now) <= wanted:
            yield Knob("interrupt", place, now)
        elif _managed(system, number):
            yield Closed(f"/{place}", MANAGED)
        else:
            yield from _file(system, place, cpu_list(wanted), "interrupt")


def _managed(system: System, number: str) -> bool:
    """Whether the kernel itself says that nobody can move the interrupt; it may not tell."""
    said = system.read(f"sys/kernel/debug/irq/irqs/{number}") or ""
    return "IRQD_AFFINITY_MANAGED" in said


# --- the LBA format


@_of_drive
def lba(system: System, drive: SystemDrive, value: str) -> Plan:
    """The size of a logical block, for which an NVMe drive is formatted: all data are lost."""
    node, control = f"/dev/{drive.name}", controller(drive.name, system)
    if drive.bus != "NVMe":
        yield Closed(node, "only an NVMe drive can be formatted to another block size")
        return
    try:
        can = abilities(control)
    except ExperimentError as error:
        yield Closed(node, error.message)
        return
    names = [lba_format.name for lba_format in formats(node)]
    if not can.format:
        yield Closed(node, "the drive does not know Format NVM")
    elif value not in names:
        why = f"the drive offers {', '.join(names) or 'no formats'}"
        yield Closed(node, why, wrong=bool(names))
    elif can.format_shared and (others := other_namespaces(drive.name, control)):
        yield Closed(node, f"it would format more than this namespace: {others}")
    else:
        yield Knob("nvme-format", node, value)


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "lba",
        "LBA format; erases the drive twice, so it needs --destroy",
        "bytes, such as 4096 or 512",
        _block,
        {},
        "NVM Express, Format NVM",
        lba,
    ),
    Setting(
        "write-cache",
        "the drive's own volatile write cache",
        "on, off",
        one_of("on", "off"),
        {"pts": "off", "pts-client": "on"},
        "SNIA PTS-E: volatile write cache disabled (WCD); PTS-C: enabled (WCE)",
        write_cache,
    ),
    Setting(
        "scheduler",
        "I/O scheduler",
        "none, mq-deadline, kyber, bfq",
        matching(r"[a-z][\w-]*"),
        both("none"),
        BOTTLENECK,
        scheduler,
    ),
    Setting(
        "governor",
        "frequency governor of all processors",
        "performance, powersave, schedutil ...",
        matching(r"[a-z]\w*"),
        both("performance"),
        BOTTLENECK,
        governor,
        "cpus",
    ),
    Setting(
        "affinity",
        "processors that fio runs on",
        "local (the drive's NUMA node), or a list such as 0-3",
        _cpus,
        both("local"),
        BOTTLENECK,
        affinity,
        "cpus",
    ),
    Setting(
        "irq",
        "processors that answer an NVMe drive's interrupts",
        "local (the drive's NUMA node), or a list such as 0-3",
        _cpus,
        both("local"),
        BOTTLENECK,
        irq,
    ),
    Setting(
        "nr-requests",
        "requests that may wait in the kernel",
        "a number",
        matching(r"[1-9]\d{0,5}"),
        {},
        BLOCK,
        _queue("nr_requests"),
    ),
    Setting(
        "read-ahead",
        "how far the kernel reads ahead (buffered I/O only)",
        "KiB",
        matching(r"\d{1,7}"),
        {},
        BLOCK,
        _queue("read_ahead_kb"),
    ),
    Setting(
        "merges",
        "whether the kernel merges neighbouring I/Os",
        "on, simple, off",
        one_of(*MERGES),
        {},
        BLOCK,
        _queue("nomerges", MERGES),
    ),
    Setting(
        "rq-affinity",
        "on which processor an I/O completes: 0 any, 1 the submitter's group, 2 the submitter's",
        "0, 1, 2",
        one_of("0", "1", "2"),
        {},
        BLOCK,
        _queue("rq_affinity"),
    ),
)
"""In the order in which they are set; they are restored in the opposite one."""


def block_bytes(value: str) -> int:
    """Bytes of a logical block of an LBA format."""
    return int(value.partition("+")[0])


def parse(text: str) -> SetupRequest:
    """Reads ``pts``, ``none``, or ``NAME=VALUE`` joined by commas; later ones win; InputError where
    there is no such preset, setting or value."""
    known = {setting.name: setting for setting in SETTINGS}
    wishes: dict[str, SetupWish] = {}
    for part in _parts(text):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            known_name("setup", name, PRESETS, "; a single setting is written NAME=VALUE")
            for setting in SETTINGS:
                if name in setting.presets:
                    wishes[setting.name] = SetupWish(setting.presets[name], named=False)
            continue
        if not known[known_name("setting", name, known)].check(value):
            raise InputError(f'--setup {name}: found "{value}", expected {known[name].values}')
        wishes[name] = SetupWish(value, named=True)
    return wishes


def _parts(text: str) -> list[str]:
    """The pieces between commas; those of a list of processors stay together."""
    parts: list[str] = []
    for piece in text.split(","):
        if parts and re.fullmatch(r"\s*\d+(-\d+)?\s*", piece):
            parts[-1] += f",{piece.strip()}"
        else:
            parts.append(piece)
    return parts


def for_client(text: str) -> str:
    """The same with the write cache as the PTS asks for it with client settings."""
    return ",".join("pts-client" if one.strip() == "pts" else one for one in text.split(","))


def wanted_block(text: str) -> int | None:
    """Bytes of the logical block that a drive is to be formatted to; None where it is not."""
    wish = parse(text).get("lba")
    return None if wish is None else block_bytes(wish.value)


def consent(text: str) -> str:
    """What a sentence about the loss of data must add; empty where nothing is formatted."""
    block = wanted_block(text)
    if block is None:
        return ""
    return (
        f"; before that the drive is formatted to blocks of {block} bytes, and when the run ends "
        "it is formatted back to what it was: each format erases it"
    )
