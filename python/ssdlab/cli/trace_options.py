"""Options of everything that reads a trace."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from ssdlab import _core
from ssdlab.cli import light

if light.BODIES:
    from ssdlab.api.traces import reading
    from ssdlab.tracefile import Reading


def _formats(incomplete: str) -> list[str]:
    names = [one["name"] for one in _core.trace_formats()]
    return [name for name in names if name.startswith(incomplete)]


Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Format of the trace, where its content does not tell (trace list names them).",
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
TraceBlock = Annotated[
    str,
    typer.Option(
        "--trace-block",
        metavar="SIZE",
        help="Of a block, in formats that number blocks (lba, oracle).",
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

Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="LIST",
        help="Where the columns of a text stand, from 0 or by the names in its first line: "
        "time=0,op=2,lba=3,size=4 (also offset, block, sectors, blocks, device, time_ms, time_us, "
        "time_ns; of objects key, size, ttl).",
    ),
]
Fit = Annotated[
    str,
    typer.Option(
        "--fit",
        metavar="as-is|wrap|scale",
        help="Addresses beyond the target: refused, begun again at 0, or all scaled to it.",
    ),
]


@dataclass(frozen=True)
class TraceOptions:
    """What is read of a trace, and how."""

    format_: Format = None
    action: Action = "Q"
    trace_block: TraceBlock = "4096B"
    skip_damaged: SkipDamaged = False
    window: Window = None
    device: Device = None
    columns: Columns = None

    def reading(self, share: float = 1.0) -> Reading:
        """What the options say; of a share of the blocks."""
        return reading(**self.given, share=share)

    @property
    def given(self) -> dict[str, Any]:
        """The options as functions take them."""
        return {field.name.rstrip("_"): getattr(self, field.name) for field in fields(self)}
