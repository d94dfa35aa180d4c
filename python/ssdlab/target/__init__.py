"""Targets: one experiment runs on a simulated drive or on a real one and leaves the same Result."""

from __future__ import annotations

from ssdlab.errors import InputError
from ssdlab.target.base import Settings, Target, Terms
from ssdlab.target.real import Fio
from ssdlab.target.session import RealSession
from ssdlab.target.simulated import Sim, SimSession

Session = SimSession | RealSession
"""A target that is open. Nothing else uses it meanwhile."""


def sim(target: Target) -> Sim | None:
    """The target where it is simulated."""
    return target if isinstance(target, Sim) else None


def real(target: Target, otherwise: str) -> Fio:
    """The target where it is a file or a device; InputError, which says ``otherwise``, where it is
    simulated."""
    if not isinstance(target, Fio):
        raise InputError(otherwise)
    return target
