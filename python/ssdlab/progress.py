"""Progress of a run, the same for simulated and real targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """How far a run is. ``fraction`` (0 to 1) and ``eta_s`` are None while nobody can tell."""

    fraction: float | None = None
    eta_s: float | None = None
    text: str = ""


ProgressCallback = Callable[[Progress], bool]
"""Called now and then during a run; returning False stops it."""
