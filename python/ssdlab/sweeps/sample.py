"""Samples of ranges: points that cover a space of many keys with few runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ssdlab.errors import InputError, missing_extra
from ssdlab.sweeps.axes import Axis

METHODS = {"lhs": "Latin hypercube", "sobol": "Sobol sequence"}
GROUP = "--sample"


@dataclass(frozen=True)
class Sample:
    """So many points, by a method of :data:`METHODS`."""

    method: str
    count: int
    seed: int = 1


def sample(text: str) -> Sample:
    """``lhs:200``, or with a seed ``sobol:256:7``; InputError where it is neither, or a Sobol
    sequence would be cut short."""
    match = re.fullmatch(r"(\w+):(\d{1,7})(?::(\d{1,9}))?", text.strip(), re.ASCII)
    if match is None or match[1] not in METHODS or int(match[2]) < 1:
        raise InputError(
            f'{GROUP} "{text}": expected lhs:N or sobol:N, or with a seed lhs:N:SEED, such as '
            "lhs:200"
        )
    count = int(match[2])
    if match[1] == "sobol" and count & (count - 1):
        raise InputError(
            f'{GROUP} "{text}": a Sobol sequence is even at powers of two alone; '
            f"take {1 << count.bit_length() - 1} or {1 << count.bit_length()}"
        )
    return Sample(match[1], count, int(match[3] or 1))


def sampled(axes: Sequence[Axis], asked: Sample) -> list[Axis]:
    """The axes, with values drawn for those that are ranges; these go together; InputError where no
    axis is a range, or scipy is missing."""
    open_ = [axis for axis in axes if axis.span is not None]
    if not open_:
        raise InputError(
            f"{GROUP}: no key has a range to draw from, such as ftl.over_provisioning=0.07..0.5; "
            "ranges with a number of values (/8) and lists are run each with each"
        )
    try:
        from scipy.stats import qmc
    except ImportError:
        raise missing_extra(GROUP, "SciPy", "sample") from None
    kind = qmc.LatinHypercube if asked.method == "lhs" else qmc.Sobol
    points = kind(d=len(open_), rng=asked.seed).random(asked.count)
    drawn = {axis.key: points[:, place] for place, axis in enumerate(open_)}
    return [
        axis
        if axis.span is None
        else replace(
            axis,
            values=tuple(axis.span.at(float(share)) for share in drawn[axis.key]),
            group=GROUP,
            span=None,
        )
        for axis in axes
    ]
