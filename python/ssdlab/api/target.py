"""What a function runs on, and how a real drive is dealt with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ssdlab.api.rig import Rig
from ssdlab.engine.plans import ProtocolOrder
from ssdlab.engine.ratings import rating_for
from ssdlab.errors import InputError
from ssdlab.given import Size, keys, parameters, text
from ssdlab.protocols import find
from ssdlab.rating import Rating, parse_tbw
from ssdlab.rig import resolve
from ssdlab.target import Target
from ssdlab.units import parse_bytes

On = str | Path | Rig | Target
"""A drive profile's name, a rig file, a rig, a plain file, a block device, or a target."""


def rated(tbw: Size | None) -> float | None:
    """The bytes of ``tbw``; InputError where it is no size."""
    return None if tbw is None else parse_tbw(text(tbw))


def target_of(
    on: On,
    destroy: str | None = None,
    setup: str = "none",
    use_existing_file: bool = False,
    redact: bool = False,
    tbw: Size | None = None,
) -> tuple[Target, Rating | None]:
    """The target, and what may be written to it in its life; raises InputError."""
    given = rated(tbw)
    named = on.target() if isinstance(on, Rig) else on
    target = resolve(
        named, destroy=destroy, use_existing=use_existing_file, redact=redact, setup=setup
    )
    return target, rating_for(target, given)


def order_of(
    protocol: str,
    target: Target,
    rating: Rating | None,
    *,
    param: Mapping[str, object] | None,
    quick: bool,
    size: Size | None,
    scale: int,
    set: Mapping[str, object] | None = None,
    seed: int = 1,
) -> ProtocolOrder:
    """A protocol on a target, as asked for; raises InputError where a part of it is wrong."""
    wanted = None if size is None else parse_bytes("--size", text(size))
    if wanted == 0:
        raise InputError(f'--size "{size}": expected more than nothing, such as 8g or 512m')
    return ProtocolOrder(
        protocol=find(protocol),
        target=target,
        given=parameters(param),
        quick=quick,
        scale=scale,
        overrides=keys(set),
        seed=seed,
        size=wanted,
        rating=rating,
    )
