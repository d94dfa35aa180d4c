"""How a trace file is read, as every part of ssdlab says it to the core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ssdlab import _core
from ssdlab.errors import InputError

TIME_MAX_NS = 2**64 - 1
FITS = ("as-is", "wrap", "scale")
"""What is done about addresses that a target does not have."""


ReadingOptions = dict[str, Any]
"""The fields of :class:`Reading`, as the core takes them."""


@dataclass(frozen=True)
class Reading:
    """How a trace is read and which requests of it are taken."""

    format: str | None = None
    """Name of the format; None: found by content."""
    action: Literal["Q", "D", "C"] = "Q"
    """Event of a block-layer trace that is the request: queued, issued, completed."""
    block_bytes: int = 4096
    """Size of a block, for formats that number blocks without saying their size."""
    skip_damaged: bool = False
    """Leave damaged lines out and count them, instead of stopping."""
    from_ns: int = 0
    to_ns: int = TIME_MAX_NS
    share: float = 1.0
    """Share of the addresses that is taken, in chunks of 1 MiB chosen by a hash."""
    device: int | None = None
    columns: str | None = None
    """Of a text with columns, where each stands: ``time=0,op=2,lba=3,size=4``."""

    def options(self) -> ReadingOptions:
        """As the core takes them."""
        if self.columns is not None:
            self.columns.encode()  # of what is no text the core knows no sentence
        return asdict(self)


@dataclass(frozen=True)
class Replay:
    """How the traces that a job replays are read and played, beyond fio's options."""

    reading: Reading = Reading()
    fit: str = "as-is"
    """``as-is``, ``wrap`` or ``scale``: what is done about addresses beyond the target."""
    open_loop: bool = False
    """Requests arrive at their times whatever is still in flight; simulated targets only."""

    capacity_bytes: int | None = None
    """Size of a file that is made for a replay; None: as large as the trace reaches."""

    def of(self, name: str | Path, folder: Path) -> tuple[str, ReadingOptions, str, bool]:
        """What the core asks for about the trace ``name``; relative names as for includes."""
        return str(existing(name, folder)), self.reading.options(), self.fit, self.open_loop


def existing(name: str | Path, folder: Path | None = None) -> Path:
    """The file of a trace: as named, or in ``folder``."""
    given = Path(name)
    places = [given] if given.is_absolute() or folder is None else [given, folder / given]
    try:
        path = next((place for place in places if place.exists()), None)
    except OSError as error:
        raise InputError(f"{name}: cannot look for this trace ({error.strerror})") from None
    if path is None:
        tried = " or ".join(str(place) for place in dict.fromkeys(places))
        raise InputError(f"{tried}: there is no such trace")
    if not path.is_file():
        raise InputError(f"{path}: is not a plain file, so it cannot be a trace")
    return path


def damage(counted: Mapping[str, Any]) -> list[str]:
    """That damaged lines were left out, as a sentence, where the core has ``counted`` any."""
    count = counted["damaged"]
    if not count:
        return []
    what = "line or record is" if count == 1 else "lines or records are"
    return [f"{count:,} damaged {what} left out; the first: {counted['first_damage']}."]


def left_out(trace: Path, reading: Reading) -> list[str]:
    """What was asked to be left out of a trace, as a sentence; counted in a pass of its own."""
    if not reading.skip_damaged:
        return []
    return damage(_core.trace_convert(trace, reading.options(), None))
