"""What a protocol knows before it begins, and how it writes its jobs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ssdlab import _core, units
from ssdlab.engine.steps import ROUNDS_MAX, Job, Shape
from ssdlab.errors import InputError, known_name
from ssdlab.results import TargetKind

MIB = 1 << 20
KIB = 1 << 10

QUICK_ROUNDS = 7
"""Rounds at most where a quick run is asked for."""
LEAST_REAL_S = 1.0
"""Of a job in a quick run at a real drive: starting fio takes half a second."""
LEAST_SIM_S = 0.05
QUICK_S = 300
"""A quick run does not wait longer than this for random writes."""
DEPTH_MAX = 1024
"""More I/Os in flight than any queue of a drive is useful for."""


@dataclass(frozen=True)
class ProtocolParameter:
    """Something about a protocol that a user may change; the default says of which kind."""

    name: str
    default: int | float | str
    help: str
    choices: tuple[str, ...] = ()
    least: float = 0.0
    """Less than this measures nothing."""
    most: float = math.inf

    def read(self, text: str) -> int | float | str:
        """The value that ``text`` writes; InputError where it is none."""
        if self.choices:
            return known_name(self.name, text, self.choices)
        kind = type(self.default)
        try:
            value = kind(text)
        except ValueError:
            value = None
        # A duration, a count or an amount of nothing measures nothing; nan compares with nothing.
        fits = isinstance(value, str) or (
            value is not None and self.least <= value <= self.most and value < math.inf
        )
        if value is None or not fits:
            what = "a whole number" if kind is int else "a number"
            if self.most < math.inf:
                what += f" from {self.least:g} to {self.most:g}"
            elif self.least:
                what += f" from {self.least:g}"
            raise InputError(
                f"--param {self.name}={text}: expected {what} such as {self.default}"
            ) from None
        return value


COMPRESSIBLE = ProtocolParameter("compressible", 0, "percent by which the data shrinks", most=100)


@dataclass(frozen=True)
class Setup:
    """A target and the parameters with which a protocol is to run on it."""

    capacity: int
    """Bytes of the target."""
    kind: TargetKind
    active: int
    """Bytes from the start of the target that the protocol works on: the active range."""
    values: Mapping[str, int | float | str] = field(default_factory=dict)
    divisor: float = 1.0
    """What durations are divided by: above 1 in a quick run, and on drives made smaller."""
    quick: bool = False
    """The result is a quick run, never a measurement of a steady drive."""
    direct: bool = True
    """False on file systems that cannot do without the page cache."""
    block: int = 512
    """Bytes of a logical block of the target: the smallest I/O that it takes."""
    smaller: float = 1.0
    """How many times smaller the target is than the drive that it stands for in a rehearsal."""

    def number(self, name: str) -> float:
        """The value of a parameter that is a number."""
        return float(self.values[name])

    def count(self, name: str) -> int:
        """The value of a parameter that is a whole number."""
        return int(self.values[name])

    def text(self, name: str) -> str:
        """The value of a parameter that is text."""
        return str(self.values[name])

    def counts(self, name: str, *, most: int = DEPTH_MAX) -> list[int]:
        """A parameter of whole numbers from 1 to ``most`` (:mod:`ssdlab.units` says how), each
        once, ascending; InputError where it is no such list."""
        text = self.text(name)
        expected = f"whole numbers from 1 to {most}, such as 1,4,32 or 1..32x2"
        where = f"--param {name}={text}:"
        return units.counts(where, text, expected, lambda number: 1 <= number <= most)

    def blocks(self) -> list[int]:
        """The parameter ``blocks``: sizes in bytes (:mod:`ssdlab.units` says how), each once,
        ascending, without those below the target's logical block, which no I/O can have;
        InputError where it is no such list, or nothing remains of it."""
        text = self.text("blocks")
        expected = "block sizes in whole sectors of 512 bytes, such as 512,4k,1m or 4k..1mx2"
        where = f"--param blocks={text}:"
        sizes = units.sizes(where, text, expected, lambda size: size >= 512 and size % 512 == 0)
        found = [size for size in sizes if size % self.block == 0]
        if not found:
            raise InputError(
                f"{where} the target has logical blocks of {self.block} bytes, "
                "and no size is a multiple of them"
            )
        return found

    def in_blocks(self, shares: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Sizes with their percent, rounded up to whole logical blocks of the target; those that
        become alike are one."""
        found: dict[int, int] = {}
        for size, percent in shares:
            rounded = -(-size // self.block) * self.block
            found[rounded] = found.get(rounded, 0) + percent
        return sorted(found.items())

    @property
    def rounds(self) -> int:
        """Rounds at most until a drive must be steady."""
        return QUICK_ROUNDS if self.quick else ROUNDS_MAX

    def seconds(self, whole: float) -> float:
        """How long something that takes so long at full size takes here, in a quick run never less
        than `LEAST_REAL_S` or `LEAST_SIM_S`."""
        if self.divisor == 1:
            return whole
        scaled = whole / self.divisor
        return max(LEAST_SIM_S if self.kind == "sim" else LEAST_REAL_S, round(scaled, 3))

    def area(self, size: int) -> int:
        """Bytes of an area of that size, or of the active range where that is smaller; of a drive
        that stands for a larger one as much less, so that it is the same share of it."""
        own = size if self.smaller == 1 else max(MIB, int(size / self.smaller) // MIB * MIB)
        return min(own, self.active)

    def job(
        self,
        key: str,
        title: str,
        rw: str,
        bs: str | int,
        *,
        depth: int = 1,
        threads: int = 1,
        seconds: float | None = None,
        amount: int | None = None,
        read_percent: int | None = None,
        region: tuple[int, int] | None = None,
        compressible: int | None = None,
        measured: bool = True,
        name: str = "",
        options: Mapping[str, str | int] | None = None,
    ) -> Job:
        """A job on the active range, or on ``region`` (offset, length) of the target.

        Args:
            key: Unique in the run; its last part is the name of the fio job unless ``name`` is.
            title: What it does, for people.
            rw: As in fio: ``read``, ``randwrite``, ``randrw``, ``rw`` ...
            bs: Block size, as fio writes it or in bytes.
            depth: I/Os in flight of each thread.
            threads: Processes that do the same.
            seconds: Duration at full size (:meth:`seconds` is applied here); excludes ``amount``.
            amount: Bytes to move by each thread; excludes ``seconds``. Neither: the region once.
            read_percent: Share of reads in a mix.
            region: Offset and length in bytes; None: the active range.
            compressible: By how many percent what is written shrinks; None: as the parameter of
                that name says, where there is one.
            measured: False where it only brings the drive into a state.
            name: Name of the fio job.
            options: More fio options.
        """
        size = bytes_of(bs)
        offset, length = region or (0, self.active)
        if size % self.block:
            raise InputError(
                f"{key}: the target has logical blocks of {self.block} bytes, "
                f"and I/Os of {bs} are no multiple of them"
            )
        length = length // size * size if size else length
        if length <= 0 or offset + length > self.capacity:
            raise InputError(
                f"{key}: the target of {self.capacity} bytes has no room for {rw} of {bs} blocks "
                f"at {offset}; choose a larger one"
            )
        lines: dict[str, str | int] = {
            "rw": rw,
            "bs": bs,
            "iodepth": depth,
            "numjobs": threads,
            "offset": offset,
            "size": length,
            "ioengine": "libaio" if depth > 1 else "psync",
            "direct": int(self.direct),
            "group_reporting": 1,
            "norandommap": 1,
            "randrepeat": 0,
        }
        takes, moved = None, length * threads
        if seconds is not None:
            if seconds <= 0:
                raise InputError(f"{key}: a job of {seconds:g} s measures nothing; give it more")
            takes, moved = self.seconds(seconds), 0
            lines |= {"time_based": 1, "runtime": f"{round(takes * 1000)}ms"}
        elif amount is not None:
            moved = amount * threads
            lines |= {"io_size": max(amount, size or 512)}
        if read_percent is not None:
            lines["rwmixread"] = read_percent
        if _write_share(rw, None):
            lines["refill_buffers"] = 1
            if compressible is None:
                compressible = int(self.values.get("compressible", 0))
            if compressible:
                lines["buffer_compress_percentage"] = compressible
        lines |= dict(options or {})
        section = name or re.sub(r"[^A-Za-z0-9_.-]+", "-", key.rpartition("/")[2])
        written = (f"{option}={value}\n" for option, value in lines.items())
        shape = Shape(
            rw.startswith("rand"), size or 4 * KIB, depth * threads, _write_share(rw, read_percent)
        )
        return Job(
            key=key,
            title=title,
            text=f"[{section}]\n{''.join(written)}",
            seconds=takes,
            amount=moved,
            shape=shape,
            most_s=None if seconds is not None else _runtime_s(lines.get("runtime")),
            measured=measured,
        )

    def timed(self, key: str, title: str, rw: str, bs: str | int, **more: Any) -> Job:
        """A :meth:`job` as long as the parameter ``seconds`` says, with as many I/Os in flight as
        the parameter ``depth``, where there is one; ``more`` are arguments of :meth:`job`, which
        may say otherwise."""
        more.setdefault("depth", self.count("depth") if "depth" in self.values else 1)
        if not more.keys() & {"seconds", "amount"}:
            more["seconds"] = self.number("seconds")
        return self.job(key, title, rw, bs, **more)

    def fill(self, key: str = "fill", times: float = 1.0) -> Job:
        """Workload-independent preconditioning: so many sequential passes over the active range."""
        return self.job(
            key,
            f"write the active range {_often(times)} sequentially",
            "write",
            "128k",
            depth=32,
            amount=int(times * self.active),
            compressible=0,
            measured=False,
        )

    def part(self, share: int) -> int:
        """Bytes of so many percent of the active range."""
        return max(MIB, self.active * share // 100 // MIB * MIB)

    def layout(self, key: str, share: int, bs: str, depth: int) -> Job:
        """So many percent of the active range written sequentially."""
        title, region = f"write {share} % of the range sequentially", (0, self.part(share))
        return self.job(key, title, "write", bs, depth=depth, region=region, measured=False)

    def used(
        self,
        bs: str,
        *,
        key: str = "use",
        times: int = 1,
        rw: str = "randwrite",
        depth: int = 32,
    ) -> Job:
        """The active range written ``times`` times, at random unless ``rw`` says otherwise, which
        brings a drive into the state of one that has been in use."""
        where = "at random" if rw.startswith("rand") else "sequentially"
        return self.job(
            key,
            f"write the range {_often(times)} {where}",
            rw,
            bs,
            depth=depth,
            amount=times * self.active,
            measured=False,
            options=self.patience,
        )

    @property
    def patience(self) -> dict[str, str | int]:
        """Options that end random writes of an amount after `QUICK_S` seconds in a quick run,
        however far they have come."""
        return {"runtime": QUICK_S} if self.quick else {}

    def together(self, key: str, title: str, jobs: Sequence[Job]) -> Job:
        """Jobs that run side by side; each keeps its fio job's name."""
        longest = max(jobs, key=lambda job: job.seconds or 0.0)
        # group_reporting would add the jobs of a group up under the name of the first.
        moved = sum(job.amount for job in jobs)
        shares = [job.shape.write_share for job in jobs]
        return replace(
            longest,
            key=key,
            title=title,
            text="\n".join(f"{job.text}new_group=1\n" for job in jobs),
            amount=moved,
            shape=replace(longest.shape, write_share=max(shares)),
        )


def short(size: int) -> str:
    """A block size as fio writes it: 512, 4k, 1m."""
    for shift, unit in ((20, "m"), (10, "k")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return str(size)


def bssplit(shares: Iterable[tuple[int, int]]) -> str:
    """Sizes with their percent as fio writes them."""
    return ":".join(f"{short(size)}/{percent}" for size, percent in shares)


def bytes_of(bs: str | int) -> int:
    """A block size as fio reads it, in bytes: the largest where directions have their own;
    InputError where it is none."""
    if isinstance(bs, int):
        return bs
    parts = [one for one in bs.split(",") if one.strip()] or [bs]
    return max(map(_core.parse_fio_size, parts))


def _runtime_s(runtime: str | int | None) -> float | None:
    """Seconds of fio's ``runtime``, bare or in ms as protocols write it."""
    if runtime is None:
        return None
    text = str(runtime)
    return float(text.removesuffix("ms")) / 1000 if text.endswith("ms") else float(text)


def _often(times: float) -> str:
    return {1.0: "once", 2.0: "twice"}.get(times, f"{times:g} times")


def _write_share(rw: str, read_percent: int | None) -> float:
    if rw in ("rw", "randrw", "readwrite"):
        return (100 - (50 if read_percent is None else read_percent)) / 100
    # In order, ``read:64k`` leaves so much out.
    return 0.0 if rw.partition(":")[0] in ("read", "randread") else 1.0
