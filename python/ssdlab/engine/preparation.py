"""Bringing a drive into the state of one that has been in use."""

from __future__ import annotations

from ssdlab.engine.setup import Setup
from ssdlab.engine.steps import Job

QUICK_S = 300
"""A quick run does not wait longer than this for random writes."""


def used(
    setup: Setup,
    bs: str,
    *,
    key: str = "use",
    times: int = 1,
    rw: str = "randwrite",
    depth: int = 32,
) -> Job:
    """The active range written ``times`` times, at random unless ``rw`` says otherwise.

    In a quick run it ends after `QUICK_S` seconds, however far it has come.
    """
    where = "at random" if rw.startswith("rand") else "in order"
    often = {1: "once", 2: "twice"}.get(times, f"{times} times")
    return setup.job(
        key,
        f"write the range {often} {where}",
        rw,
        bs,
        depth=depth,
        amount=times * setup.active,
        measured=False,
        options={"runtime": QUICK_S} if setup.quick else None,
    )
