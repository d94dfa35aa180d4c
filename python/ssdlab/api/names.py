"""What can be named, as attributes: ``ssdlab.drives.lab_reference`` is ``"lab-reference"``.

Attributes are the names with underscores, so that editors and notebooks complete them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from ssdlab import _core
from ssdlab.errors import meant
from ssdlab.rig import registered


class Names(Mapping[str, str]):
    """Names by attribute. It is a mapping too, from attributes to names."""

    def __init__(self, kind: str, names: Callable[[], Iterable[str]]) -> None:
        self._kind, self._names = kind, names

    def _known(self) -> dict[str, str]:
        return {attribute(name): name for name in self._names()}

    def __getattr__(self, name: str) -> str:
        if name.startswith("__") or name in {"_kind", "_names"}:  # a copy asks before it has them
            raise AttributeError(name)
        known = self._known()
        if name not in known:
            hint = meant(name, known, '; did you mean "{}"?')
            raise AttributeError(f'no {self._kind} is called "{name}"{hint}')
        return known[name]

    def __getitem__(self, name: str) -> str:
        return self._known()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known())

    def __len__(self) -> int:
        return len(self._known())

    def __dir__(self) -> list[str]:
        return sorted(self._known())

    def __repr__(self) -> str:
        return f"<ssdlab names ({self._kind}): {', '.join(self._names())}>"


class Policies:
    """Names of policies, by what they decide: ``policies.victim.greedy``."""

    def __repr__(self) -> str:
        return f"<ssdlab names (policies): {', '.join(_kinds())}>"

    def __dir__(self) -> list[str]:
        return sorted(_kinds())

    def __getattr__(self, name: str) -> Names:
        known = {} if name.startswith("__") else _kinds()
        if name not in known:
            hint = meant(name, known, '; did you mean "{}"?')
            hint = hint or f"; there are: {', '.join(known)}"
            raise AttributeError(f'no kind of policy is called "{name}"{hint}')
        return Names(known[name], partial(registered, known[name]))


def attribute(name: str) -> str:
    """The attribute of a name."""
    plain = re.sub(r"\W", "_", name)
    return f"_{plain}" if plain[:1].isdigit() else plain


def _kinds() -> dict[str, str]:
    """Kinds of policies by attribute."""
    kinds = dict.fromkeys(entry["kind"] for entry in _core.registries())
    ending = " policy"
    return {attribute(kind.removesuffix(ending)): kind for kind in kinds if kind.endswith(ending)}


def _drives() -> list[str]:
    from ssdlab.rig import profiles

    return [profile.name for profile in profiles()]


def _procedures() -> list[str]:
    from ssdlab.protocols import protocols

    return [protocol.name for protocol in protocols()]


drives = Names("drive", _drives)
"""The drives that ship with ssdlab."""
devices = Names("device", partial(registered, "device"))
"""Kinds of devices that a rig is made of."""
parts = Names("NAND part", partial(registered, "NAND part"))
"""Flash that exists."""
interfaces = Names("host interface", partial(registered, "host interface"))
"""Interfaces between host and drive that exist."""
procedures = Names("protocol", _procedures)
"""Protocols, by which :func:`ssdlab.test` tests a drive."""
policies = Policies()
"""What decides in a device, by kind."""
