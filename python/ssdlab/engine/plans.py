"""What a protocol is going to do to a target: how long, how many bytes, by what it is known, and
what would be refused. Nothing here writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ssdlab import _core, documents, safety, tuning
from ssdlab.engine import estimate, session, sources
from ssdlab.engine.estimate import Estimate, Expected
from ssdlab.engine.folder import RunFolder
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.ratings import of_flash
from ssdlab.engine.records import Records
from ssdlab.engine.rehearsal import LEAST_CAPACITY, LEAST_SUPERBLOCKS, rehearse
from ssdlab.engine.session import SimSession, logical_block, scratch
from ssdlab.engine.setup import MIB, Setup
from ssdlab.engine.speed import GUESS, Speeds, read
from ssdlab.errors import InputError, RefusedError, SsdlabError
from ssdlab.fio.run import find_fio
from ssdlab.rating import Rating
from ssdlab.rig import capacity_of, is_profile, reduced
from ssdlab.store import MANIFEST, RunStore
from ssdlab.target import Fio, Sim, Target

QUICK_CAPACITY = 4 << 30
"""A simulated drive is made at least this small for a quick run."""


@dataclass(frozen=True)
class Order:
    """A protocol on a target, as somebody asks for it."""

    protocol: Protocol
    target: Target
    given: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the protocol, as text."""
    quick: bool = False
    scale: int = 1
    """Simulated profiles: the drive and all durations scaled down by this."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Keys of a simulated rig."""
    seed: int = 1
    size: int | None = None
    """Bytes of the file on which a file target is measured."""
    rating: Rating | None = None
    """What may be written to the drive in its life, where anybody tells (TBW)."""
    assume: Speeds | None = None
    """How fast the drive is, where somebody says so."""
    like: str | None = None
    """A profile that the drive is like."""
    logs: Path | None = None
    """Where fio's logs of every job go, in a folder for each step; None for nowhere."""
    memory_bytes: int | None = None
    """What a simulated drive may take; None for all that is available."""


@dataclass(frozen=True)
class Announcement:
    """What a protocol is going to do, before it does anything."""

    protocol: Protocol
    target: str
    setup: Setup
    estimate: Estimate
    speeds: Speeds
    guessed: bool = False
    """Whether the speed of some jobs on which time or bytes depend is not known."""
    rating: Rating | None = None
    """What may be written to the drive in its life; None where nobody tells."""
    refused: str | None = None
    """Why it would be refused as it is now; None where it would not."""
    done: int = 0
    """Steps that are finished: it goes on with the others."""

    @property
    def assumption(self) -> str:
        """Where the speeds come from, in a sentence."""
        if self.guessed and self.speeds.source != "guess":
            return f"{self.speeds.words}; for other jobs {GUESS.words}"
        return self.speeds.words

    def endurance_share(self) -> tuple[float, float] | None:
        """The least and the largest share of the rated endurance that is written."""
        if self.rating is None:
            return None
        low, high = self.estimate.written
        return low / self.rating.bytes, high / self.rating.bytes

    def work(self) -> safety.Work:
        """For the consent of the owner of the drive."""
        low, high = (round(one) for one in self.estimate.written)
        who = f"the protocol {self.protocol.name}"
        return safety.Work.of(
            f"{who} goes on and" if self.done else who,
            f"writes {safety.amount(low, high)}",
            low,
            high,
            self.rating,
        )

    def document(self) -> dict[str, Any]:
        """As JSON."""
        low, high = self.estimate.written
        share = self.endurance_share()
        return {
            "protocol": self.protocol.name,
            "target": self.target,
            "quick": self.setup.quick,
            "simulated": self.setup.kind == "sim",
            "capacity_bytes": self.setup.capacity,
            "active_bytes": self.setup.active,
            "steps_done": self.done,
            "steps_low": self.estimate.steps_min,
            "steps_high": self.estimate.steps_max,
            "seconds_low": self.estimate.soon.low,
            "seconds_high_if_steady_at_once": self.estimate.soon.high,
            "seconds_high": self.estimate.never.high,
            "bytes_low": round(low),
            "bytes_high": round(high),
            "endurance_bytes": self.rating and self.rating.bytes,
            "endurance_source": self.rating and self.rating.source,
            "endurance_share_low": share and share[0],
            "endurance_share_high": share and share[1],
            "assumption": self.assumption,
            "speed_source": self.speeds.source,
            "refused": self.refused,
        }


def plan(order: Order, store: RunStore) -> Announcement:
    """What :func:`ssdlab.engine.runs.begin` would do, and whether it would be refused.

    Raises InputError where the order cannot be carried out on any target.
    """
    values = order.protocol.values(order.given)
    check(order)
    target = order.target
    if isinstance(target, Sim):
        drive = simulated(order)
        what = announcement(order, setup_of(order, values, drive.capacity, "sim"), store)
        return replace(what, rating=order.rating or of_flash(drive))
    assert isinstance(target, Fio)
    if target.path.is_block_device():
        device = safety.inspect(target.path)
        setup = setup_of(order, values, device.capacity_bytes, "device")
        refused = _refused(find_fio) or _refused_device(device, target)
        return replace(announcement(order, setup, store), refused=refused)
    wanted = session.FILE_BYTES_QUICK if order.quick else session.FILE_BYTES
    refused = _refused(find_fio)
    refused = refused or safety.why_file_refused(
        target.path.absolute(), allowed=target.use_existing
    )
    try:
        _, size = scratch(target, order.size, quick=order.quick)
    except InputError as error:
        size, refused = order.size or wanted, refused or error.message
    setup = setup_of(order, values, size, "file")
    return replace(announcement(order, setup, store), refused=refused)


def rest(folder: RunFolder, protocol: Protocol, rating: Rating | None = None) -> Announcement:
    """What is left of a run that was stopped, and whether going on would be refused.

    Raises InputError where the run is complete.
    """
    manifest = folder.manifest
    if manifest.get("status") == "complete":
        raise InputError(f"{folder.id}: is complete; ssdlab report {folder.id} shows it")
    setup = Setup(
        capacity=int(manifest["capacity"]),
        kind=manifest["kind"],
        active=int(manifest["active"]),
        values=_values(folder, protocol),
        divisor=float(manifest["divisor"]),
        quick=bool(manifest["quick"]),
        block=int(manifest.get("block", 512)),
    )
    done = {one.key: one for one in folder.journal() if one.kind not in ("stop", "resume")}
    records = Records(load=lambda key: folder.load(done[key]))
    records.keys_ += [key for key, one in done.items() if one.kind == "job"]
    left = estimate.remaining(protocol.plan(setup), done.__contains__, records)
    speeds = read(manifest.get("speeds"))
    if found := sources.of_folder(folder):
        speeds = speeds.with_measured(found, f"as measured so far in the run {folder.id}")
    return Announcement(
        protocol,
        str(manifest["name"]),
        setup,
        estimate.of(left, speeds, setup.kind),
        speeds,
        _guessed(left, speeds),
        rating,
        _refused(lambda: _still_there(manifest)) if setup.kind != "sim" else None,
        len(done),
    )


def _values(folder: RunFolder, protocol: Protocol) -> dict[str, int | float | str]:
    """The parameters that the run was begun with."""
    given = folder.manifest["values"]
    try:
        if missing := [one.name for one in protocol.parameters if one.name not in given]:
            raise InputError(f"values.{missing[0]} is missing")
        return protocol.values({name: str(value) for name, value in given.items()})
    except InputError as error:
        raise documents.damaged(folder.path / MANIFEST, error.message) from None


def announcement(order: Order, setup: Setup, store: RunStore) -> Announcement:
    """What the order comes to on a target as set up."""
    steps = list(order.protocol.plan(setup))
    for job in estimate.jobs(steps):
        _core.check_job(job.text, job_name=job.key)
    speeds = _speeds(order, setup, store)
    found = estimate.of(steps, speeds, setup.kind)
    guessed = _guessed(steps, speeds)
    return Announcement(
        order.protocol, order.target.name, setup, found, speeds, guessed, order.rating
    )


def _speeds(order: Order, setup: Setup, store: RunStore) -> Speeds:
    """How fast the drive is, by the best that is known."""
    if order.assume is not None:
        return order.assume
    found: Speeds | None = None
    if order.like is not None:
        found = rehearse(order.protocol, setup, order.like, seed=order.seed)
    elif isinstance(order.target, Sim) and is_profile(order.target.name):
        found = rehearse(
            order.protocol, setup, order.target.name, seed=order.seed, overrides=order.overrides
        )
    if found is None and isinstance(order.target, Fio):
        found = sources.earlier(order.target.path, store)
    return found or GUESS


def _guessed(steps: Sequence[Expected], speeds: Speeds) -> bool:
    return any(
        speeds.guessed(job.shape)
        for job in estimate.jobs(steps)
        if job.seconds is None or job.shape.write_share
    )


# --- what would be refused


def _refused(check: Callable[[], object]) -> str | None:
    try:
        check()
    except SsdlabError as error:
        return error.message
    return None


def _refused_device(device: safety.BlockDevice, target: Fio) -> str | None:
    """Why a run would not be allowed to write to a device."""
    return safety.why_refused(device) or safety.why_unnamed(device, target.destroy)


def left_target(manifest: Mapping[str, Any], destroy: str | None = None) -> Fio:
    """The real target of a run that was begun; ``destroy`` names it anew."""
    return Fio(
        Path(manifest["path"]),
        destroy=destroy or manifest["destroy"],
        use_existing=True,
        redact=bool(manifest["redact"]),
        setup=str(manifest.get("setup", tuning.NONE)),
    )


def same_device(target: Fio, manifest: Mapping[str, Any]) -> safety.BlockDevice:
    """The device of a run that was begun, as far as its name and size tell.

    Raises InputError where it is gone or was formatted, RefusedError where it is another one.
    """
    if not target.path.is_block_device():
        raise InputError(f"{target.path}: there is no such device any more")
    block = tuning.wanted_block(target.setup)
    if block is not None and session.present_block(target) != block:
        raise InputError(
            f"{target.path}: when the run was stopped it was formatted back from blocks of {block} "
            "bytes, which erased it; begin a new run"
        )
    device = safety.inspect(target.path)
    if device.capacity_bytes != int(manifest["capacity"]):
        raise RefusedError(f"{target.path}: is another drive than the one the run was begun on")
    return device


def _still_there(manifest: Mapping[str, Any]) -> None:
    find_fio()
    target = left_target(manifest)
    if manifest["kind"] == "file":
        session.check_left_file(target, int(manifest["capacity"]))
    elif refused := _refused_device(same_device(target, manifest), target):
        raise InputError(refused)


# --- the order


def check(order: Order) -> None:
    """Raises InputError where options do not go together."""
    sim = isinstance(order.target, Sim)
    if not sim and order.overrides:
        raise InputError("--set changes simulated drives; a real one is as it is")
    if not sim and order.scale != 1:
        raise InputError("--scale makes simulated drives smaller; a real one is as it is")
    if sim and order.size is not None:
        raise InputError("--size is that of a file; a simulated drive has --set capacity=...")
    if order.scale != 1 and not is_profile(order.target.name):
        raise InputError("--scale needs one of the shipped drives; a rig file is as it is")
    if order.assume is not None and order.like is not None:
        raise InputError("--assume-speed and --like both say how fast the drive is; give one")


def simulated(order: Order) -> SimSession:
    """The simulated drive of an order."""
    assert isinstance(order.target, Sim)
    own = {**_smaller(order), **order.overrides}
    return SimSession(order.target, own, order.seed, order.memory_bytes)


def _smaller(order: Order) -> dict[str, str]:
    """Overrides that make a shipped drive smaller, where that is asked for."""
    if not is_profile(order.target.name) or "capacity" in order.overrides:
        return {}
    factor = order.scale
    capacity = capacity_of(order.target.name)
    if order.quick:
        factor = max(factor, round(order.protocol.quick_divisor), capacity // QUICK_CAPACITY)
    factor = max(1, min(factor, capacity // LEAST_CAPACITY))
    return reduced(order.target.name, factor, fewest=LEAST_SUPERBLOCKS)


def setup_of(
    order: Order, values: Mapping[str, int | float | str], capacity: int, kind: Any
) -> Setup:
    """The protocol as ordered, on a target of ``capacity`` bytes."""
    share = order.protocol.active_share(values)
    return Setup(
        capacity=capacity,
        kind=kind,
        active=int(capacity * share) // MIB * MIB or capacity,
        values=values,
        divisor=order.scale * (order.protocol.quick_divisor if order.quick else 1.0),
        quick=order.quick,
        block=logical_block(order.target) if isinstance(order.target, Fio) else 512,
    )
