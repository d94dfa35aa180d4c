"""Options of everything that reads a trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ssdlab.cli import light
from ssdlab.cli.options import Options, flag, option

if light.BODIES:
    from ssdlab.api.traces import reading
    from ssdlab.tracefile import Reading


def _formats(incomplete: str) -> list[str]:
    from ssdlab import _core

    names = [one["name"] for one in _core.trace_formats()]
    return [name for name in names if name.startswith(incomplete)]


Fit = Annotated[
    str,
    option(
        "as-is|wrap|scale",
        "Addresses beyond the target: refused, begun again at 0, or all scaled to it.",
    ),
]


@dataclass(frozen=True)
class TraceOptions(Options):
    """What is read of a trace, and how."""

    format_: str | None = option(
        "FORMAT",
        "Format of the trace, where its content does not tell (trace list names them).",
        autocompletion=_formats,
    )
    action: str = option(
        "Q|D|C",
        "Event of a block-layer trace that is the request: queued, issued, completed.",
        default="Q",
    )
    trace_block: str = option(
        "SIZE", "Of a block, in formats that number blocks (lba, oracle).", default="4096B"
    )
    skip_damaged: bool = flag("Leave damaged lines out and count them.")
    window: str | None = option(
        "FROM-TO",
        "Part of the time, such as 10s-20s, 1h-, -500ms (units ns, us, ms, s, min, h, d).",
    )
    device: int | None = option("N", "This device of the trace alone.", min=0)
    columns: str | None = option(
        "LIST",
        "Where the columns of a text stand, from 0 or by the names in its first line: "
        "time=0,op=2,lba=3,size=4 (also offset, block, sectors, blocks, device, time_ms, "
        "time_us, time_ns; of objects key, size, ttl).",
    )

    def reading(self, share: float = 1.0) -> Reading:
        """What the options say; of a share of the blocks."""
        return reading(**self.given, share=share)
