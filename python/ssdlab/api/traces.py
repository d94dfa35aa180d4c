"""``ssdlab.trace``: what a recorded load is like."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, cast

from ssdlab import _core, units
from ssdlab.answers import trace as trace_answer
from ssdlab.api.report import Report, frame_of
from ssdlab.api.watching import Watch, shown
from ssdlab.errors import InputError, known_name
from ssdlab.given import Size, size
from ssdlab.tracefile import TIME_MAX_NS, Reading
from ssdlab.traces import profile


def trace(
    trace: str | Path,
    *,
    format: str | None = None,
    action: str = "Q",
    trace_block: Size = "4096B",
    skip_damaged: bool = False,
    window: str | None = None,
    device: int | None = None,
    columns: str | None = None,
    progress: Watch = None,
) -> Report:
    """Characterises a trace: request sizes, mix, footprint, working set, reuse, order, arrivals.

    Args:
        trace: A trace, compressed or not.
        format: Format of the trace, where its content does not tell (``ssdlab trace list`` names
            them).
        action: Event of a block-layer trace that is the request: queued, issued, completed.
        trace_block: Of a block, in formats that number blocks (lba, oracle).
        skip_damaged: Leave damaged lines out and count them.
        window: Part of the time, such as 10s-20s, 1h-, -500ms (units ns, us, ms, s, min, h, d).
        device: This device of the trace alone.
        columns: Where the columns of a text stand, from 0 or by the names in its first line:
            time=0,op=2,lba=3,size=4 (also offset, block, sectors, blocks, device, time_ms, time_us,
            time_ns; of objects key, size, ttl).
        progress: Who is told how far it is, as for :func:`ssdlab.run`.

    Raises:
        InputError: the trace cannot be read, or an option is wrong.
        Interrupted: it was stopped.
    """
    how = reading(format, action, trace_block, skip_damaged, window, device, columns)
    with shown(progress, f"reading {trace}") as callback:
        found = profile.profile(Path(trace), how, callback)
    return Report(trace_answer.answer(found), table=frame_of([found]))


def reading(
    format: str | None = None,
    action: str = "Q",
    trace_block: Size = "4096B",
    skip_damaged: bool = False,
    window: str | None = None,
    device: int | None = None,
    columns: str | None = None,
    share: float = 1.0,
) -> Reading:
    """What is read of a trace, and how; of a share of the blocks. Raises InputError."""
    if columns is not None and format is not None:
        raise InputError("--columns and --format exclude each other; give one of them")
    if format is not None:
        known_name("trace format", format, [one["name"] for one in _core.trace_formats()])
    letter = action.upper()
    if letter not in ("Q", "D", "C"):
        raise InputError(f'--action "{action}": expected Q (queued), D (issued) or C (completed)')
    if device is not None and device >= 2**32:
        raise InputError(f"--device {device}: expected a number below 2^32")
    from_ns, to_ns = _window(window)
    return Reading(
        format=format,
        action=cast("Literal['Q', 'D', 'C']", letter),
        block_bytes=block_size("--trace-block", trace_block),
        skip_damaged=skip_damaged,
        from_ns=from_ns,
        to_ns=to_ns,
        share=share,
        device=device,
        columns=columns,
    )


def block_size(option: str, given: Size) -> int:
    """Bytes of a block; raises InputError, which names the option."""
    found = size(option, given)
    if not 1 <= found <= 1 << 30:
        raise InputError(f'{option} "{given}": expected a size from 1B to 1GiB')
    return found


def _window(text: str | None) -> tuple[int, int]:
    if text is None:
        return 0, TIME_MAX_NS
    first, dash, last = text.partition("-")
    unit = re.search(r"[a-z]+$", last.strip())
    if unit and re.fullmatch(r"\d+(\.\d+)?", first.strip()):
        first = f"{first.strip()}{unit[0]}"  # 10-40s: both in seconds
    ends = _time(first), _time(last)
    wrong = not dash or (first.strip() and ends[0] is None) or (last.strip() and ends[1] is None)
    begin, end = ends[0] or 0, TIME_MAX_NS if ends[1] is None else ends[1]
    if wrong:
        raise InputError(f'--window "{text}": write it as FROM-TO with units, such as 10s-20s')
    if begin >= end:
        raise InputError(f'--window "{text}": expected an end after the start, such as 10s-20s')
    return begin, end


def _time(text: str) -> int | None:
    number, unit = units.quantity(text) or (0.0, "")
    return round(number) if unit == "ns" or text.strip() == "0" else None
