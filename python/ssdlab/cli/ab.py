"""``ssdlab ab``: a measurement with and without a change, in turn; did the change matter?"""

from __future__ import annotations

from pathlib import Path

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering
from ssdlab.cli.options import (
    BenchOptions,
    DriveOptions,
    KeptBelow,
    Prepare,
    ProtocolHelp,
    ProtocolOptions,
    SetKeys,
    TargetName,
    keys,
    option,
)
from ssdlab.units import SEED_MAX

if light.BODIES:
    from ssdlab.api.ab import ab
    from ssdlab.cli.output import notice

REPEATS = 4
"""Runs of each side where nothing else is said."""


@answering
def command(
    target: TargetName,
    protocol: str | None = option(
        "NAME", ProtocolHelp, "--protocol", "-p", autocompletion=light.complete("protocols")
    ),
    job: Path | None = option("JOB.fio", "Or a fio job file, instead of a protocol."),
    to_b: str | None = option("CMD", "Shell command that makes the change (real targets)."),
    to_a: str | None = option(
        "CMD",
        "Shell command that undoes it, so that A and B can take turns; without it all runs of "
        "A come first.",
    ),
    set_b: list[str] | None = option("KEY=VALUE", "The change of a simulated drive: a key of B."),
    repeats: int = option(
        "N", "Runs of each side; an even number takes out drift.", default=REPEATS, min=2, max=1000
    ),
    set_: SetKeys = None,
    prepare: Prepare = None,
    seed: int = option("N", "Seed of the first pair.", default=1, min=0, max=SEED_MAX - 1000),
    out: KeptBelow = None,
    *,
    how: ProtocolOptions,
    drive: DriveOptions,
    where: BenchOptions,
    view: View,
    ask: Ask,
) -> None:
    """Try a change: repeat a measurement with and without it and say whether it mattered."""
    report = ask(ab, set_b=keys(set_b, "--set-b"), set=keys(set_), notice=notice)
    view.show(report.answer, whole=True)
