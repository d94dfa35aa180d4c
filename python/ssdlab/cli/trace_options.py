"""Options of everything that reads a trace."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal, cast

import typer

from ssdlab import _core
from ssdlab.errors import InputError, unknown_name
from ssdlab.tracefile import TIME_MAX_NS, Reading
from ssdlab.units import parse_bytes


def _formats(incomplete: str) -> list[str]:
    names = [one["name"] for one in _core.trace_formats()]
    return [name for name in names if name.startswith(incomplete)]


Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Format of the trace, where its content does not tell.",
        autocompletion=_formats,
    ),
]
Action = Annotated[
    str,
    typer.Option(
        "--action",
        metavar="Q|D|C",
        help="Event of a block-layer trace that is the request: queued, issued, completed.",
    ),
]
Block = Annotated[
    str,
    typer.Option(
        "--block", metavar="SIZE", help="Of a block, in formats that number blocks (lba, oracle)."
    ),
]
SkipDamaged = Annotated[
    bool, typer.Option("--skip-damaged", help="Leave damaged lines out and count them.")
]
Window = Annotated[
    str | None,
    typer.Option(
        "--window",
        metavar="FROM-TO",
        help="Part of the time, such as 10s-20s, 1h-, -500ms (units ns, us, ms, s, min, h, d).",
    ),
]
Device = Annotated[
    int | None, typer.Option("--device", metavar="N", min=0, help="This device of the trace alone.")
]
_UNITS = {
    "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
}  # fmt: skip


@dataclass(frozen=True)
class TraceOptions:
    """What is read of a trace, and how."""

    format_: Format = None
    action: Action = "Q"
    block: Block = "4096B"
    skip_damaged: SkipDamaged = False
    window: Window = None
    device: Device = None

    def reading(self, share: float = 1.0) -> Reading:
        """What the options say; of a share of the blocks."""
        known = [one["name"] for one in _core.trace_formats()]
        if self.format_ is not None and self.format_ not in known:
            raise unknown_name("trace format", self.format_, known)
        letter = self.action.upper()
        if letter not in ("Q", "D", "C"):
            raise InputError(
                f'--action "{self.action}": expected Q (queued), D (issued) or C (completed)'
            )
        if self.device is not None and self.device >= 2**32:
            raise InputError(f"--device {self.device}: expected a number below 2^32")
        from_ns, to_ns = _window(self.window)
        return Reading(
            format=self.format_,
            action=cast("Literal['Q', 'D', 'C']", letter),
            block_bytes=parse_bytes("--block", self.block),
            skip_damaged=self.skip_damaged,
            from_ns=from_ns,
            to_ns=to_ns,
            share=share,
            device=self.device,
        )


def _window(text: str | None) -> tuple[int, int]:
    if text is None:
        return 0, TIME_MAX_NS
    first, dash, last = text.partition("-")
    ends = _time(first), _time(last)
    wrong = not dash or (first.strip() and ends[0] is None) or (last.strip() and ends[1] is None)
    begin, end = ends[0] or 0, TIME_MAX_NS if ends[1] is None else ends[1]
    if wrong or begin >= end:
        raise InputError(f'--window "{text}": write it as FROM-TO with units, such as 10s-20s')
    return begin, end


def _time(text: str) -> int | None:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ns|us|ms|s|min|h|d)", text.strip())
    return None if match is None else round(float(match[1]) * _UNITS[match[2]])
