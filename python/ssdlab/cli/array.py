"""``ssdlab array``: what arrays of a drive would do, beside one drive alone, and which to take."""

from __future__ import annotations

from pathlib import Path

from ssdlab.arrays.workloads import DEPTH, SEEDS, WORKLOADS
from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering
from ssdlab.cli.options import JobFile, ReuseOptions, Seed, SetKeys, argument, keys, option
from ssdlab.output import write_rigs

if light.BODIES:
    from ssdlab import units
    from ssdlab.api.array import ArrayQuestion, array, question
    from ssdlab.arrays.rigs import LEVELS, array_rig
    from ssdlab.cli.output import notice, results, say


@answering
def command(
    drive: str | None = argument(
        "DRIVE",
        "A profile's name or a rig file (.toml) of one drive.",
        default=None,
        autocompletion=light.complete("drives"),
    ),
    levels: str = option("LIST", "RAID levels: 0, 1, 10, 5, 6, linear.", default="0,10,5,6"),
    count: str = option("LIST", "Numbers of drives: 2,4,8 or 2..32x2.", default="4,8"),
    chunk: str = option("LIST", "Sizes of a chunk: 64k,512k or 64k..1mx2.", default="512k"),
    job: JobFile = None,
    workload: str | None = option(
        "NAME",
        f"A load by name: {', '.join(load.name for load in WORKLOADS)}.",
        "--workload",
        autocompletion=light.complete("workloads"),
    ),
    depth: int = option("N", "I/Os in flight of a load by name.", default=DEPTH, min=1),
    study: list[str] | None = option(
        "NAME",
        "arrays (levels, counts and chunks; the default), chunk (4 to 1024 KiB), scaling "
        "(against the number of drives, predicted and simulated), depth (1 to 256), "
        "degradation (fresh, used, rested, trimmed); may be given again.",
        autocompletion=light.complete("studies"),
    ),
    prepare: str | None = option(
        "STATE",
        "State at the start, as for run; else steady where the load writes at random, sequential "
        "where not.",
    ),
    measured: Path | None = option(
        "RUN",
        "Instead of DRIVE: the latencies of a run of your own drive (a kept run, or fio's "
        "JSON+ document).",
    ),
    controller: str | None = option(
        "NAME|FILE",
        "What the array stands behind: a name from `ssdlab list controllers`, or a file with "
        "[controller] and [bus].",
        autocompletion=light.complete("controllers"),
    ),
    bus: str | None = option("RATE", "Bandwidth that all members share, as 2GB/s."),
    scale: int | None = option("N", "Scale the capacity of drives down by N.", min=1),
    set_: SetKeys = None,
    price: float | None = option("X", "Price of one drive, in any currency.", min=0.0),
    seed: Seed = 1,
    seeds: int = option(
        "N",
        "Runs, from --seed on, of arrays among which the choice is close.",
        default=SEEDS,
        min=1,
    ),
    save_rigs: Path | None = option("DIR", "Only write the arrays as rig files."),
    *,
    where: ReuseOptions,
    view: View,
    ask: Ask,
) -> None:
    """Compare arrays of a drive under a load, and say which to take and why."""
    if save_rigs is not None:
        view.require_no_documents("--save-rigs")
        _save(ask(question), save_rigs)
        return
    report = ask(array, set=keys(set_), notice=None if view.quiet else notice)
    view.show(report.answer, seconds=ask.seconds)


def _save(asked: ArrayQuestion, folder: Path) -> None:
    rigs = {}
    for shape in asked.grid.shapes:
        chunk = "" if shape.level in ("1", "linear") else f"-{shape.chunk >> 10}k"
        name = f"{LEVELS[shape.level]}-{shape.count}{chunk}-{asked.drive.name}.toml"
        rigs[name] = array_rig(asked.drive, shape, asked.behind)
    write_rigs(folder, rigs)
    say(results(None), f"wrote {units.counted(len(rigs), 'rig')} to {folder}")
