"""A protocol: a procedure that somebody has written down, and what its numbers say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ssdlab.answer import Section
from ssdlab.engine.records import Records
from ssdlab.engine.setup import COMPRESSIBLE, MIB, ProtocolParameter, Setup
from ssdlab.engine.steps import Step
from ssdlab.errors import InputError, known_name

GROUPS = {
    "pts": "SNIA PTS 2.0.2",
    "article": "published procedures",
    "preset": "presets of other programs and by purpose",
    "everyday": "questions of every day",
}
"""Kinds of protocols, in the order of lists."""


@dataclass(frozen=True)
class Protocol:
    """A procedure over any target. It knows nothing of real or simulated."""

    name: str
    title: str
    summary: str
    """What it answers, in a sentence."""
    source: str
    """Where the procedure comes from."""
    group: str
    plan: Callable[[Setup], Sequence[Step]]
    judge: Callable[[Records, Setup], Section]
    """From whatever has been measured; never raises because a step is missing at the end."""
    parameters: Sequence[ProtocolParameter] = ()
    quick_divisor: float = 60.0
    """What a quick run divides durations by."""
    active_share: Callable[[Mapping[str, int | float | str]], float] = field(
        default=lambda _values: 1.0
    )
    """Share of the target that is the active range, from the parameters."""
    trims: bool = False
    """Whether it needs a target that can deallocate."""
    reads_only: Callable[[Mapping[str, int | float | str]], bool] = field(
        default=lambda _values: False
    )
    """Whether with these parameters it writes, purges and deallocates nothing, so that no drive
    need be claimed."""
    on_purpose: Sequence[str] = ()
    """First parts of the keys of steps that read what was never written, or stay within a cache of
    the drive, because that is what they show."""
    settled: Sequence[str] = ()
    """First parts of the keys of steps whose rates are those of a steady state, however short."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """What it is made of, where the plan says what each part takes: titles by the first part of
    the keys of its steps."""

    def values(self, given: Mapping[str, str]) -> dict[str, int | float | str]:
        """The parameters, those ``given`` as text instead of their defaults; InputError for a name
        or value that is none."""
        known = {parameter.name: parameter for parameter in self.parameters}
        found: dict[str, int | float | str] = {n: p.default for n, p in known.items()}
        for name, text in given.items():
            if not known:
                raise InputError(f"--param {name}: {self.name} has no parameters")
            known_name(f"parameter of {self.name}", name, known)
            found[name] = known[name].read(text)
        return found


def procedure(
    group: str,
    name: str,
    title: str,
    summary: str,
    source: str,
    plan: Callable[[Setup], Sequence[Step]],
    judge: Callable[[Records, Setup], Section],
    *parameters: ProtocolParameter,
    own_data: bool = False,
    **more: Any,
) -> tuple[Protocol, ...]:
    """A protocol as those of its file. How far its data shrinks is a parameter unless it says so by
    its ``own_data``; ``more`` are fields of :class:`Protocol`."""
    asked = parameters if own_data else (*parameters, COMPRESSIBLE)
    return (Protocol(name, title, summary, source, group, plan, judge, asked, **more),)


EXAMPLE_BYTES = 100 * 10**9
"""Capacity of the drive by which a protocol is explained."""


def example_setup(protocol: Protocol) -> Setup:
    """The protocol with its defaults on a drive of `EXAMPLE_BYTES`, for explanations."""
    values = protocol.values({})
    active = int(EXAMPLE_BYTES * protocol.active_share(values)) // MIB * MIB
    return Setup(EXAMPLE_BYTES // MIB * MIB, "device", active, values)
