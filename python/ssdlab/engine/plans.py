"""What a protocol is going to do to a target: how long, how many bytes, by what it is known, and
what would be refused. Nothing here writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ssdlab import _core, documents, safety
from ssdlab.engine import estimate, opening, sources
from ssdlab.engine.estimate import Expected, WorkEstimate
from ssdlab.engine.opening import Opening
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.records import Records
from ssdlab.engine.rehearsal import LEAST_CAPACITY, LEAST_SUPERBLOCKS, rehearse
from ssdlab.engine.runner import MARKS
from ssdlab.engine.setup import MIB, Setup
from ssdlab.engine.speed import GUESS, Speeds, read
from ssdlab.engine.steps import Repeated
from ssdlab.errors import InputError
from ssdlab.rating import Rating
from ssdlab.rig import capacity_of, is_profile, profile, set_over
from ssdlab.store import MANIFEST, RunStore, called
from ssdlab.store.folder import RunFolder
from ssdlab.target import Session, Target, real, sim

QUICK_CAPACITY = 4 << 30
"""A simulated drive is made at least this small for a quick run."""


@dataclass(frozen=True)
class ProtocolOrder:
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
    estimate: WorkEstimate
    speeds: Speeds
    guessed: bool = False
    """Whether the speed of some jobs on which time or bytes depend is not known."""
    rating: Rating | None = None
    """What may be written to the drive in its life; None where nobody tells."""
    refused: str | None = None
    """Why it would be refused as it is now; None where it would not."""
    done: int = 0
    """Steps that are finished: it goes on with the others."""
    parts: Mapping[str, WorkEstimate] = field(default_factory=dict)
    """What each part of the protocol comes to, by its title, where it has parts."""

    @property
    def reads_only(self) -> bool:
        """Whether nothing is written, purged or deallocated."""
        return self.protocol.reads_only(self.setup.values)

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

    def work(self) -> safety.Work | None:
        """For the consent of the owner of the drive; None where it is only read."""
        if self.reads_only:
            return None
        low, high = (round(one) for one in self.estimate.written)
        who = f"the protocol {self.protocol.name}"
        return safety.Work(
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
            "parts": [
                {
                    "part": title,
                    "seconds_low": part.soon.low,
                    "seconds_high": part.never.high,
                    "bytes_low": round(part.written.low),
                    "bytes_high": round(part.written.high),
                }
                for title, part in self.parts.items()
            ],
            "assumption": self.assumption,
            "speed_source": self.speeds.source,
            "refused": self.refused,
        }


def plan(order: ProtocolOrder, store: RunStore) -> Announcement:
    """What :func:`ssdlab.engine.runs.begin` would do, and whether it would be refused; InputError
    where the order cannot be carried out on any target."""
    values = order.protocol.values(order.given)
    check(order)
    target = opened(order)
    what = announcement(order, setup_of(order, values, target), store)
    return replace(what, rating=order.rating or target.rating, refused=target.refused())


def rest(folder: RunFolder, protocol: Protocol, rating: Rating | None = None) -> Announcement:
    """What is left of a run that was stopped, and whether going on would be refused; InputError
    where the run is complete."""
    require_unfinished(folder)
    manifest = folder.manifest
    setup = Setup(
        capacity=manifest.capacity,
        kind=manifest.kind,
        active=manifest.active,
        values=_values(folder, protocol),
        divisor=manifest.divisor,
        quick=manifest.quick,
        block=manifest.block,
    )
    done = {entry.key: entry for entry in folder.journal() if entry.kind not in MARKS}
    records = Records(load=lambda key: folder.load(done[key]))
    records.keys_ += [key for key, entry in done.items() if entry.kind == "job"]
    left = estimate.remaining(protocol.plan(setup), done.__contains__, records)
    speeds = read(manifest.speeds)
    if points := sources.of_folder(folder):
        speeds = speeds.with_measured(points, f"as measured so far in the run {folder.id}")
    what = _announced(protocol, manifest.name, setup, left, speeds, rating)
    refused = None
    if setup.kind != "sim":
        refused = opening.left(manifest, None, reads_only=what.reads_only).refused()
    return replace(what, refused=refused, done=len(done))


def require_unfinished(folder: RunFolder) -> None:
    """Raises InputError where a run is complete, or that of a job file."""
    if folder.manifest.status == "complete":
        raise InputError(f"{folder.id}: is complete; ssdlab report {called(folder.path)} shows it")
    if folder.is_job:
        raise InputError(f"{folder.id}: is the run of a job file, which has no steps to go on from")


def _values(folder: RunFolder, protocol: Protocol) -> dict[str, int | float | str]:
    """The parameters that the run was begun with."""
    given = folder.manifest.values
    try:
        if missing := [
            parameter.name for parameter in protocol.parameters if parameter.name not in given
        ]:
            raise InputError(f"values.{missing[0]} is missing")
        return protocol.values({name: str(value) for name, value in given.items()})
    except InputError as error:
        raise documents.damaged(folder.path / MANIFEST, error.message) from None


def announcement(order: ProtocolOrder, setup: Setup, store: RunStore) -> Announcement:
    """What the order comes to on a target as set up."""
    steps = list(order.protocol.plan(setup))
    for job in estimate.jobs(steps):
        _core.check_job(job.text, job_name=job.key)
    speeds = _speeds(order, setup, store)
    return _announced(order.protocol, order.target.name, setup, steps, speeds, order.rating)


def _announced(
    protocol: Protocol,
    target: str,
    setup: Setup,
    steps: Sequence[Expected],
    speeds: Speeds,
    rating: Rating | None,
) -> Announcement:
    """What steps of a protocol come to at these speeds."""
    guessed = any(
        speeds.guessed(job.shape)
        for job in estimate.jobs(steps)
        if job.seconds is None or job.shape.write_share
    )
    whole, parts = estimate.of(steps, speeds, setup.kind), _parts(protocol, steps, speeds, setup)
    return Announcement(protocol, target, setup, whole, speeds, guessed, rating, parts=parts)


def at_speeds(what: Announcement, steps: Sequence[Expected], speeds: Speeds) -> Announcement:
    """The same before its first step, now that more is known of the drive's speed."""
    return _announced(what.protocol, what.target, what.setup, steps, speeds, what.rating)


def _parts(
    protocol: Protocol, steps: Sequence[Expected], speeds: Speeds, setup: Setup
) -> dict[str, WorkEstimate]:
    """What each part of a protocol comes to, by its title."""

    def part(step: Expected) -> str:
        key = step.job.key if isinstance(step, Repeated) else step.key
        return key.partition("/")[0]

    return {
        title: estimate.of(own, speeds, setup.kind)
        for name, title in protocol.parts.items()
        if (own := [step for step in steps if part(step) == name])
    }


def _speeds(order: ProtocolOrder, setup: Setup, store: RunStore) -> Speeds:
    """How fast the drive is, by the best that is known."""
    if order.assume is not None:
        return order.assume
    speeds: Speeds | None = None
    if order.like is not None:
        speeds = rehearse(order.protocol, setup, profile(order.like).rig(), seed=order.seed)
    elif (drive := sim(order.target)) is not None and is_profile(drive.name):
        rig = profile(drive.name).rig()
        rig.set_all([*_own_keys(order).items()])
        speeds = rehearse(order.protocol, setup, rig, seed=order.seed)
    if speeds is None and not order.target.simulated:
        path = real(order.target, f"{order.target.name}: is simulated").path
        speeds = sources.earlier(path, store)
    return speeds or GUESS


# --- the order


def check(order: ProtocolOrder) -> None:
    """Raises InputError where options do not go together."""
    sim = order.target.simulated
    if not sim and order.overrides:
        raise InputError("--set changes simulated drives; a real one is as it is")
    if sim and order.size is not None:
        raise InputError("--size is that of a file; a simulated drive has --set capacity=...")
    if order.assume is not None and order.like is not None:
        raise InputError("--assume-speed and --like both say how fast the drive is; give one")


def opened(order: ProtocolOrder) -> Opening:
    """The target of an order, to be opened."""
    return opening.of(
        order.target,
        _own_keys(order),
        order.seed,
        size=order.size,
        quick=order.quick,
        memory_bytes=order.memory_bytes,
        reads_only=order.protocol.reads_only(order.protocol.values(order.given)),
    )


def _own_keys(order: ProtocolOrder) -> dict[str, str]:
    """What is set on a simulated drive: as asked for, and what makes it smaller, where that is
    asked for; a shipped one for a quick run too."""
    factor = order.scale
    if (
        order.quick
        and order.target.simulated
        and is_profile(order.target.name)
        and "capacity" not in order.overrides
    ):
        capacity = capacity_of(order.target.name)
        wanted = max(round(order.protocol.quick_divisor), capacity // QUICK_CAPACITY)
        factor = max(factor, min(wanted, capacity // LEAST_CAPACITY))
    return set_over(order.target.smaller(factor, fewest=LEAST_SUPERBLOCKS), order.overrides)


def setup_of(
    order: ProtocolOrder, values: Mapping[str, int | float | str], target: Opening | Session
) -> Setup:
    """The protocol as ordered, on a target that is opened or will be."""
    capacity = target.capacity
    share = order.protocol.active_share(values)
    return Setup(
        capacity=capacity,
        kind=target.kind,
        active=int(capacity * share) // MIB * MIB or capacity,
        values=values,
        divisor=order.scale * (order.protocol.quick_divisor if order.quick else 1.0),
        quick=order.quick,
        block=order.target.logical_block,
    )
