"""How long an array keeps its data: Markov chains of its failed members, solved exactly.

Members fail at a constant rate, each by itself, and are rebuilt at a constant rate: the model of
Patterson, Gibson and Katz, "A case for redundant arrays of inexpensive disks", SIGMOD 1988. A
rebuild that has no redundancy left to correct by loses data where a sector of a surviving member
cannot be read. What constant rates cannot say (wear, rebuilds of fixed length) is simulated in
`losses`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from ssdlab.errors import InputError, UnknownNameError
from ssdlab.numeric import Floats

HOURS_PER_YEAR = 365 * 24
"""Failure rates of field studies are failures per 365 drive days."""
LEVELS = ("0", "1", "10", "5", "6")
MEMBERS_MIN = {"0": 1, "1": 2, "10": 4, "5": 3, "6": 4}
MEMBERS_MAX = 100
COPIES = (2, 3)
"""That RAID 10 may keep."""


@dataclass(frozen=True)
class Array:
    """An array of equal members. RAID 1 keeps a copy on every member, RAID 10 `copies`. Raises
    InputError where the level is unknown or cannot be built of so many members."""

    level: str
    members: int
    capacity_bytes: float
    """Of a member."""
    copies: int = 2

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise UnknownNameError(
                f'there is no RAID level "{self.level}"; the levels are {", ".join(LEVELS)}'
            )
        least = MEMBERS_MIN[self.level]
        if not least <= self.members <= MEMBERS_MAX:
            raise InputError(
                f"RAID {self.level} takes {least} to {MEMBERS_MAX} members, found {self.members}"
            )
        if not (math.isfinite(self.capacity_bytes) and self.capacity_bytes > 0):
            raise InputError(f"a member holds more than 0 bytes, found {self.capacity_bytes:g}")
        if self.level == "10":
            if self.copies not in COPIES:
                raise InputError(f"RAID 10 keeps 2 or 3 copies, found {self.copies}")
            if self.members % self.copies:
                raise InputError(
                    f"RAID 10 with {self.copies} copies takes a multiple of {self.copies} "
                    f"members, found {self.members}"
                )

    @property
    def group_size(self) -> int:
        """Members that make up for each other; neighbours are in one group."""
        return self.copies if self.level == "10" else self.members

    @property
    def groups(self) -> int:
        """Groups; the loss of one is the loss of data."""
        return self.members // self.group_size

    @property
    def tolerance(self) -> int:
        """Members of a group that may be missing."""
        return {"0": 0, "5": 1, "6": 2}.get(self.level, self.group_size - 1)

    @property
    def usable_bytes(self) -> float:
        """What the host sees."""
        lost = self.tolerance * self.groups
        return (self.members - lost) * self.capacity_bytes

    @property
    def rebuild_sources(self) -> int:
        """Members that a rebuild without redundancy reads whole, every sector of which counts."""
        return self.group_size - self.tolerance

    def written_share(self, *, full_stripes: bool = False) -> float:
        """Bytes that each member writes per byte that the host writes, evenly spread: every copy of
        a mirror; with parity, of a small write the data and one or two parities, of a full stripe
        each parity once for all of its data."""
        if self.level in ("0", "1", "10") or full_stripes:
            return self.capacity_bytes / self.usable_bytes
        return (1 + self.tolerance) / self.members


@dataclass(frozen=True)
class Hazards:
    """What happens to members whatever their age; InputError where a value is out of range."""

    failures_per_hour: float
    """Of a member in service."""
    repair_hours: float
    """From a failure to the end of the rebuild: the wait for a drive and the rebuild."""
    uber: float = 0.0
    """Unrecoverable errors per bit read."""
    one_at_a_time: bool = False
    """Whether the rebuilds of a group follow one another, as in the chains of textbooks; else
    each failed member is rebuilt by itself."""

    def __post_init__(self) -> None:
        for name, value, low in (
            ("the failure rate", self.failures_per_hour, 0.0),
            ("the error rate per bit", self.uber, 0.0),
        ):
            if not (math.isfinite(value) and value >= low):
                raise InputError(f"{name} is a number from {low:g}, found {value:g}")
        if not (math.isfinite(self.repair_hours) and self.repair_hours > 0):
            raise InputError(f"a repair takes more than 0 hours, found {self.repair_hours:g}")
        if self.uber > 1:
            raise InputError(f"the error rate per bit is at most 1, found {self.uber:g}")


def p_read_error(read_bytes: float, uber: float) -> float:
    """The chance that reading so many bytes meets an unrecoverable error."""
    return -math.expm1(-8 * read_bytes * uber)


def rebuild_error(array: Array, hazards: Hazards) -> float:
    """The chance that a rebuild with no redundancy left loses a sector."""
    return p_read_error(array.rebuild_sources * array.capacity_bytes, hazards.uber)


@dataclass(frozen=True)
class Chain:
    """A Markov chain that starts in state 0 and ends in loss. Rates are per hour."""

    rates: Floats
    """From state to state; the diagonal is unused and 0."""
    loss: Floats
    """From each state to loss."""


def group_chain(array: Array, hazards: Hazards) -> Chain:
    """The chain of one group; state k: k members are missing."""
    return _chain(array, hazards, 1)


def _chain(array: Array, hazards: Hazards, groups: int) -> Chain:
    size, tolerance = array.group_size, array.tolerance
    error = rebuild_error(array, hazards)
    states = [
        tuple(one.count(missing) for missing in range(1, tolerance + 1))
        for one in itertools.combinations_with_replacement(range(tolerance + 1), groups)
    ]
    place = {state: number for number, state in enumerate(states)}
    rates = np.zeros((len(states), len(states)))
    loss = np.zeros(len(states))
    for state, row in place.items():
        counts = (groups - sum(state), *state)
        for missing, count in enumerate(counts):
            if not count:
                continue
            fails = count * (size - missing) * hazards.failures_per_hour
            if missing == tolerance:
                loss[row] += fails
            else:
                rates[row, place[_moved(counts, missing, missing + 1)]] += fails
            if missing:
                repair = count * _repairs(missing, hazards)
                spoiled = error if missing == tolerance else 0.0
                loss[row] += repair * spoiled
                rates[row, place[_moved(counts, missing, missing - 1)]] += repair * (1 - spoiled)
    return Chain(rates, loss)


def _moved(counts: tuple[int, ...], old: int, new: int) -> tuple[int, ...]:
    """The state after a group with `old` missing members has `new`."""
    found = list(counts)
    found[old] -= 1
    found[new] += 1
    return tuple(found[1:])


def _repairs(missing: int, hazards: Hazards) -> float:
    """Rebuilds per hour that end in a group with so many missing members."""
    return (1 if hazards.one_at_a_time else missing) / hazards.repair_hours


def mttdl_hours(array: Array, hazards: Hazards) -> float:
    """The mean time to data loss, exactly; inf where nothing fails."""
    return mean_time(_chain(array, hazards, array.groups))


def mean_time(chain: Chain) -> float:
    """The mean time from state 0 to loss.

    Solves the system of the fundamental matrix by eliminating states without a subtraction
    (Grassmann, Taksar, Heyman, "Regenerative analysis and steady state distributions for Markov
    chains", Operations Research 33, 1985), which keeps all digits where rates differ by many
    orders of magnitude and a general solver loses them.
    """
    rates, loss = chain.rates.copy(), chain.loss.copy()
    times = np.ones(len(loss))
    for last in range(len(loss) - 1, 0, -1):
        leaves = float(rates[last, :last].sum() + loss[last])
        if leaves == 0:
            if rates[:last, last].any():
                return math.inf
            continue
        share = rates[:last, last] / leaves
        rates[:last, :last] += np.outer(share, rates[last, :last])
        loss[:last] += share * loss[last]
        times[:last] += share * times[last]
    return float(times[0] / loss[0]) if loss[0] > 0 else math.inf


def usual_mttdl_hours(array: Array, hazards: Hazards) -> float:
    """The usual approximation: repairs far faster than failures, no read errors.

    mu / (N (N-1) lam^2) for RAID 5, mu^2 / (N (N-1) (N-2) lam^3) for RAID 6 with rebuilds one at
    a time; RAID 10 divides what a group has by the number of groups.
    """
    found = 1 / array.groups
    for missing in range(array.tolerance + 1):
        fails = (array.group_size - missing) * hazards.failures_per_hour
        if fails == 0:
            return math.inf
        found /= fails
        if missing:
            found *= _repairs(missing, hazards)
    return found


def p_loss(array: Array, hazards: Hazards, hours: float) -> float:
    """The chance of losing data within so many hours, exactly."""
    one = p_absorbed(group_chain(array, hazards), hours)
    # Groups are lost independently of each other.
    return 1.0 if one >= 1 else -math.expm1(array.groups * math.log1p(-one))


def p_absorbed(chain: Chain, hours: float) -> float:
    """The chance that a chain has come from state 0 to loss within so many hours.

    The matrix exponential by scaling and squaring, of a uniformised step (Jensen 1953). All of
    its terms are positive, so that even a chance of 1e-20 keeps its digits.
    """
    if not hours >= 0:
        raise InputError(f"a time is at least 0 hours, found {hours:g}")
    if hours == 0:
        return 0.0
    if math.isinf(hours):
        return 0.0 if math.isinf(mean_time(chain)) else 1.0
    states = len(chain.loss)
    leaves = chain.rates.sum(axis=1) + chain.loss
    fastest = 2 * float(leaves.max())
    if fastest == 0:
        return 0.0
    step = np.zeros((states + 1, states + 1))
    step[:states, :states] = chain.rates / fastest
    step[:states, states] = chain.loss / fastest
    step[np.arange(states), np.arange(states)] = 1 - leaves / fastest
    step[states, states] = 1.0
    squarings = max(0, math.ceil(math.log2(fastest * hours)))
    events = math.ldexp(fastest * hours, -squarings)
    power = np.eye(states + 1)
    found = np.zeros_like(step)
    term = math.exp(-events)
    for number in range(1, 40):
        found += term * power
        power = power @ step
        term *= events / number
    for _ in range(squarings):
        # Rows are chances: without this each squaring would double their rounding.
        found /= found.sum(axis=1, keepdims=True)
        found = found @ found
    return float(min(1.0, found[0, states] / found[0].sum()))
