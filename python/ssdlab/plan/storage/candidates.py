"""Candidates of a purchase: a store, perhaps a cache before it, perhaps a controller card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ssdlab import _core
from ssdlab.arrays.attachment import DIRECT, Attachment, attachment
from ssdlab.arrays.rigs import LEVELS, level_of
from ssdlab.errors import InputError
from ssdlab.plan.stores import FORMS, MODES, Store, store
from ssdlab.rig import is_profile

if TYPE_CHECKING:
    from ssdlab.target import Sim

SYNTAX = (
    'STORE, "STORE + CACHE", "STORE + PRESET:CACHE" or "STORE + MODE:CACHE", each with "@ CARD"'
)
"""How a candidate is written, for help texts and messages."""
DEFAULTS = (
    "raid1:2:hgst-he10-10000",
    "raid10:12:seagate-enterprise-10k8-1800",
    "raid10:12:samsung-pm883-1920",
    "raid1:2:hgst-he10-10000 + maxcache:raid1:2:micron-5200-eco-960 @ adaptec-3152-8i",
)
"""What is compared where nobody names candidates: the rows of an article's table of prices."""


@dataclass(frozen=True)
class Candidate:
    """What may be bought."""

    text: str
    """As it was written."""
    pool: Store
    """Where the data lies."""
    fast: Store | None = None
    """The cache before it."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """Of the device ``cache``: its mode or its preset."""
    card: Attachment = DIRECT
    """What all of it stands behind."""
    card_name: str = ""

    @property
    def title(self) -> str:
        """In words."""
        text = self.pool.title
        if self.fast is not None:
            kind = self.keys.get("preset") or self.keys.get("mode")
            text += f", {kind} cache on {self.fast.title}"
        return f"{text}, behind {self.card_name}" if self.card_name else text

    @property
    def stores(self) -> list[Store]:
        """The store, and what is cached on."""
        return [self.pool] if self.fast is None else [self.pool, self.fast]

    @property
    def bill(self) -> dict[str, int]:
        """Everything that is bought, by name."""
        found: Counter[str] = Counter()
        for one in self.stores:
            found.update(one.bill)
        if self.card_name:
            found[self.card_name] += 1
        return dict(found)

    def tree(self, stores: Sequence[_core.Rig], card: Attachment) -> _core.Rig:
        """Its rig, with its stores and its card in other sizes."""
        rig = stores[0].copy(name="candidate", summary=self.title)
        for fast in stores[1:]:
            rig = _core.Rig.wrap(
                "cache", dict(self.keys), name=rig.name, summary=rig.summary, cache=fast, below=rig
            )
        return card.around(rig)

    def rig(self) -> str:
        """Its rig at full size, as TOML."""
        return self.tree([one.tree for one in self.stores], self.card).to_toml()

    def check(self) -> None:
        """Raises InputError where the core would not build it (made small)."""
        rig = self.tree([one.resized(1 << 30) for one in self.stores], self.card).to_toml()
        try:
            _core.rig_check(rig, rig_name=self.text)
        except InputError as error:
            raise InputError(f'candidate "{self.text}": {error}') from None


def candidate(text: str | Sim) -> Candidate:
    """The candidate that ``text`` means (:data:`SYNTAX`), or that is one rig; InputError where it
    means none. A cache without a preset or a mode writes back where it is itself redundant, and
    through where the loss of one drive would lose what it holds."""
    if not isinstance(text, str):
        return Candidate(text.name, store(text))
    rest, _, card = text.partition("@")
    card = card.strip()
    if "@" in text and not card:
        raise InputError(f'"{text}": no controller after @; expected {SYNTAX}')
    parts = [one.strip() for one in rest.split("+")]
    if len(parts) > 2 or not all(parts):
        raise InputError(f'"{text}": expected {SYNTAX}, where STORE is {FORMS}')
    behind = attachment(card) if card else DIRECT
    pool = store(parts[0])
    bus = behind.get("bus") is not None
    if bus and pool.tree.get("kind") != "array":
        raise InputError(f'"{text}": {card} has a bus, which takes an array of drives')
    name = behind.name or card
    if len(parts) == 1:
        found = Candidate(text, pool, card=behind, card_name=card and name)
    else:
        if bus:
            raise InputError(f'"{text}": {card} has a bus, which knows of no cache before an array')
        kind, place = _kind(parts[1])
        fast = store(place)
        found = Candidate(text, pool, fast, _keys(kind, fast), behind, card and name)
    return found


def _kind(text: str) -> tuple[str, str]:
    """The preset or mode before a store, and the store."""
    first, _, rest = text.partition(":")
    if not rest or level_of(first) in LEVELS or first.endswith(".toml"):
        return "", text
    if is_profile(first):
        return "", text
    return first, rest


def _keys(kind: str, fast: Store) -> dict[str, Any]:
    if kind in MODES:
        return {"mode": kind}
    if kind:
        return {"preset": kind}
    return {"mode": "write-back" if fast.redundant else "write-through"}
