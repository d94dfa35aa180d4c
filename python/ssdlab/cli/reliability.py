"""``ssdlab reliability``: how likely an array of drives loses data, and what makes it safer."""

from __future__ import annotations

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering
from ssdlab.cli.options import BenchOptions, Seed, Tbw, flag, option

if light.BODIES:
    from ssdlab.api.reliability import reliability
    from ssdlab.cli.output import on_stdout

REBUILD_RATE = "204.8MB/s"
"""What Linux md rebuilds at, at most, unless told otherwise: speed_limit_max, 200 000 KiB/s."""


@answering
def command(
    level: str | None = option(
        "LEVEL,...",
        "RAID levels, of 0, 1, 10, 5, 6 (all that the members allow). RAID 1 keeps a copy on "
        "every member.",
    ),
    members: int = option("N", "Drives.", default=4, min=1),
    copies: int | None = option("N", "Copies of RAID 10; 2 unless given.", min=2, max=3),
    drive: str | None = option(
        "DRIVE",
        "Profile or rig file, such as a twin, that the members are: tells their capacity and, "
        "beside --writes-per-day, what its flash takes in steady random writes (simulated), "
        "unless --tbw does.",
        autocompletion=light.complete("drives"),
    ),
    capacity: str | None = option("SIZE", "Capacity of a drive; 3.84TB unless given."),
    afr: float | None = option(
        "PERCENT", "Failures per 100 drive years; 1 unless given, about what field studies find."
    ),
    mtbf: float | None = option("HOURS", "Hours between failures, instead of --afr."),
    uber: float | None = option(
        "RATE",
        "Unrecoverable errors per bit read: 1e-17 unless given, as in data sheets of data centre "
        "SSDs (JESD218 asks for 1e-16 of enterprise SSDs); 1e-15 of a --drive that is a client "
        "SSD, as JESD218 asks, or a disk.",
    ),
    rebuild_rate: str = option(
        "RATE",
        "Bytes per second that a rebuild writes; the default is the limit of Linux md.",
        default=REBUILD_RATE,
    ),
    replace_after: float = option(
        "HOURS", "Time from failure to rebuild start; 0 with a hot spare.", default=24.0
    ),
    one_at_a_time: bool = flag(
        "Rebuild one member after the other where several are missing, as textbook formulas "
        "have it."
    ),
    years: float = option("YEARS", "Mission time of the array.", default=5.0),
    tbw: Tbw = None,
    writes_per_day: str | None = option("SIZE", "What the host writes to the array in a day."),
    full_stripes: bool = flag(
        "Writes fill whole stripes, so that parity is written once for all of their data; else "
        "each small write writes its own parity."
    ),
    stagger: str | None = option(
        "PERCENT[,...]",
        "Of the rating already written at the start: by how much neighbours differ, or one "
        "number for each drive.",
    ),
    models: int | None = option("N", "Different models among the drives.", min=1),
    spread: float | None = option(
        "PERCENT",
        "By how much the endurance of drives of one model differs (standard deviation); 5 unless "
        "given, which is assumed.",
    ),
    model_spread: float | None = option(
        "PERCENT", "The same between models; 20 unless given, which is assumed."
    ),
    renew_at: float | None = option(
        "PERCENT", "Copy a drive to a new one when so much of its rating is written."
    ),
    runs: int = option("N", "Lives to simulate.", default=50_000, min=100),
    seed: Seed = 0,
    *,
    where: BenchOptions,
    view: View,
    ask: Ask,
) -> None:
    """Say how likely an array loses data: by closed form and by simulation, with wear."""
    watched = not (view.quiet or on_stdout(view.json_, view.report))
    view.show(ask(reliability, progress=watched).answer)
