"""Protocols, one procedure per file. Being in this folder is all it takes.

A file defines ``PROTOCOLS``, a tuple of :class:`ssdlab.engine.protocol.Protocol`.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from ssdlab.engine.protocol import GROUPS, Protocol
from ssdlab.errors import known_name


@cache
def protocols() -> tuple[Protocol, ...]:
    """All protocols, by group and name."""
    modules = [
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
    ]
    found = [one for module in modules for one in getattr(module, "PROTOCOLS", ())]
    order = list(GROUPS)
    return tuple(sorted(found, key=lambda protocol: (order.index(protocol.group), protocol.name)))


def find(name: str) -> Protocol:
    """The protocol called ``name``; UnknownNameError where there is none."""
    known = {protocol.name: protocol for protocol in protocols()}
    more = '; "ssdlab list protocols" describes them'
    return known[known_name("protocol", name, known, more)]
