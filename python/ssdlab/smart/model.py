"""What a drive says of its health, in one meaning whatever the interface and the vendor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ssdlab.answer import Ranked


class Severity(Ranked):
    """What a finding asks for."""

    GOOD = "good"
    UNKNOWN = "unknown"
    """The drive does not tell enough."""
    WATCH = "watch"
    REPLACE = "replace"


@dataclass(frozen=True)
class HealthFinding:
    """One sentence about a drive, and the value it rests on."""

    severity: Severity
    what: str
    evidence: str


@dataclass(frozen=True)
class Attribute:
    """One line of an ATA drive's SMART table."""

    id: int
    name: str
    """As smartctl names it."""
    value: int | None
    """Normalized: a good drive begins at 100 (some at 200 or 253), smaller is worse."""
    worst: int | None
    threshold: int | None
    raw: int | None
    text: str
    """The raw value as smartctl prints it."""
    prefailure: bool
    """Whether the vendor takes a value at the threshold for a failure near at hand."""
    failed: str
    """``now``, ``past`` or empty: whether it is or was at its threshold."""
    meaning: str | None
    """None where nobody has said what it means; it is not guessed."""
    source: str | None
    """Where the meaning comes from."""


@dataclass(frozen=True)
class Health:
    """A drive at one moment; None means that it does not tell. Counters are since it was new, bytes
    are bytes, temperatures degrees Celsius."""

    model: str | None = None
    family: str | None = None
    firmware: str | None = None
    serial: str | None = None
    capacity_bytes: int | None = None
    interface: str | None = None
    """``NVMe``, ``SATA``, ``SAS`` or ``simulated``."""
    is_ssd: bool | None = None
    taken_s: int | None = None
    """When, in seconds since 1970, by the clock of the machine."""

    passed: bool | None = None
    """The drive's own verdict."""
    critical_warnings: tuple[str, ...] = ()
    """The bits of NVMe's critical warning, spelled out."""
    self_test_failed: bool = False
    """Whether the log of self-tests holds a failure."""

    power_on_hours: float | None = None
    power_cycles: int | None = None
    unsafe_shutdowns: int | None = None

    temperature_c: int | None = None
    temperature_limit_c: int | None = None
    """Above it the drive warns or is outside its specification."""
    temperature_critical_c: int | None = None
    minutes_too_warm: int | None = None
    """Time above the limit, the critical one included."""
    minutes_critical: int | None = None
    """Time above the critical temperature."""

    used_percent: float | None = None
    """Of the rated endurance; may exceed 100."""
    spare_percent: float | None = None
    """Of the spare blocks, how many are left."""
    spare_threshold_percent: float | None = None

    media_errors: int | None = None
    """NVMe and SAS: times that data could not be given back."""
    reallocated: int | None = None
    """Sectors or blocks replaced by spares since the drive left the factory."""
    pending: int | None = None
    """Sectors that could not be read and wait for being written again."""
    uncorrectable: int | None = None
    """ATA: errors that correction could not mend, as reported to the host."""
    crc_errors: int | None = None
    """Transfers spoiled on the way between drive and host."""

    written_bytes: int | None = None
    """By the host."""
    read_bytes: int | None = None
    nand_bytes: int | None = None
    """Programmed into flash, for the host and for the drive itself."""
    written_step_bytes: int = 1
    """The unit in which `written_bytes` is told."""
    nand_step_bytes: int = 1
    host_pages: int | None = None
    """Flash pages programmed for the host, where pages are told instead of bytes."""
    other_pages: int | None = None
    """Flash pages programmed by the drive for itself."""

    host_bytes_left: float | None = None
    """What the host can still write; only a simulated drive tells."""
    run_steady: bool | None = None
    """Whether the simulated run by which it goes on was steady; None where that is not known."""

    origins: Mapping[str, str] = field(default_factory=dict)
    """Of fields of an ATA or simulated drive: which value they were read from."""
    attributes: tuple[Attribute, ...] = ()
    notes: tuple[str, ...] = ()
    """What smartctl had to say about the reading itself."""

    @property
    def left_percent(self) -> float | None:
        """Of the rated endurance, what is left; 0 when it is used up."""
        return None if self.used_percent is None else max(0.0, 100.0 - self.used_percent)

    @property
    def write_amplification(self) -> float | None:
        """Bytes programmed into flash per byte that the host wrote, since new."""
        if self.host_pages is not None and self.other_pages is not None:
            pages = self.host_pages + self.other_pages
            return pages / self.host_pages if self.host_pages else None
        if not self.written_bytes or self.nand_bytes is None:
            return None
        return self.nand_bytes / self.written_bytes

    @property
    def unknown(self) -> tuple[Attribute, ...]:
        """The attributes that nobody has explained."""
        return tuple(attribute for attribute in self.attributes if attribute.meaning is None)
