"""Why RAID 0 of many drives writes slower than N times one: every request waits for the slowest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ssdlab import _core
from ssdlab.answer import Curve, Figure, family
from ssdlab.arrays.performance import Performance
from ssdlab.arrays.predict import slowest_of
from ssdlab.arrays.rigs import CHUNK, ArrayShape, array_rig, mixed_rig
from ssdlab.experiments.base import Line, Reproduced, Runs, Task, experiment, job_file
from ssdlab.target import Sim

TIMES_MS = (4.1, 2.2, 1.9, 1.4, 1.0, 9.7, 5.4, 8.6)
"""Of the eight members in the worked example: 4 MiB in chunks of 512 KiB."""
LONGEST_MS = 9.7
COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24)
SECONDS = 100
MEAN_MS = 1.0
"""Mean latency of a chunk; only ratios are read, so its size is of no consequence."""
SLOW_SHARE = 0.02
"""Share of slow chunks; assumed, the article does not say how the latencies of its drive lie."""
SLOW_TIMES = 2.01
"""How much longer they take: fitted to the loss of 10 % at seven drives."""
BELL = 0.0822
"""Standard deviation by mean of a bell-shaped latency: fitted to the same loss."""
MODELS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "rare": (
        {"distribution": "two-point", "spread": SLOW_TIMES, "share": SLOW_SHARE},
        "2 % of the chunks take twice as long",
    ),
    "bell": ({"distribution": "normal", "spread": BELL}, "bell-shaped latencies"),
}
EXAMPLE = "eight drives of the example"
MODEL = "RAID 0 of equal drives"
LARGER = (20.0, 25.0)
"""Percent that the article foretells for larger arrays."""
BELL_WHY = (
    "without rare slow chunks a spread that costs 10 % at seven drives grows too slowly with their "
    "number; the drive's latencies must have had a tail"
)
RANGE_WHY = "the article does not say for how many drives the range is"


def _drive(name: str, latency: Mapping[str, Any]) -> Sim:
    keys = {"capacity": "16GiB", "read": [{"mean": f"{MEAN_MS}ms"}], "write": [dict(latency)]}
    return Sim(name, _core.Rig.wrap("measured", keys, name=name).to_toml())


def plan(factor: int) -> list[Task]:
    """The worked example, and arrays of two kinds of drives against their number."""
    members = [_drive(f"member{i}", {"mean": f"{ms}ms"}) for i, ms in enumerate(TIMES_MS)]
    example = Task(
        key="example",
        drive=EXAMPLE,
        rig=mixed_rig(members, ArrayShape("0", len(members), CHUNK)),
        job=job_file(
            "One write of 4 MiB to eight members.", "", {"write": "rw=write bs=4m size=4m"}
        ),
        cost=0.01,
    )
    tasks = [example]
    for name, (latency, _) in MODELS.items():
        drive = _drive(name, {"mean": f"{MEAN_MS}ms", **latency})
        tasks += [
            Task(
                key=f"{name}-{count}",
                drive=MODEL,
                rig=array_rig(drive, ArrayShape("0", count, CHUNK)),
                job=_stripes(count, factor),
                cost=float(count),
            )
            for count in COUNTS
        ]
    return tasks


def _stripes(count: int, factor: int) -> str:
    return job_file(
        f"Writes of a chunk for each of {count} drives, one at a time.",
        "",
        {"write": f"rw=write bs={count * CHUNK} runtime={SECONDS * 1000 // factor}ms"},
    )


def judge(runs: Runs, factor: int) -> Reproduced:
    """The example to the microsecond, and what is lost against the number of drives."""
    example = Performance.of(runs["example"])
    busy = example.utilisation
    least, mean, most = (busy.min, busy.mean, busy.max) if busy else (None,) * 3
    _, shares = slowest_of(TIMES_MS)
    lines = [Line(EXAMPLE, "a write of 4 MiB takes", LONGEST_MS, "ms", example.max_ns / 1e6)]
    for quantity, value, share in (
        ("slowest member busy", 100.0, most),
        ("fastest member busy", 100 * min(TIMES_MS) / LONGEST_MS, least),
        ("members busy on the average", 100 * sum(shares) / 8, mean),
    ):
        lines.append(Line(EXAMPLE, quantity, value, "%", None if share is None else 100 * share))
    lost = {name: _losses(runs, name) for name in MODELS}
    for name, said, larger, why in (
        ("rare", "rare slow chunks", (16, 24), RANGE_WHY),
        ("bell", "bell-shaped", (24,), BELL_WHY),
    ):
        own = lost[name]
        lines.append(Line(MODEL, f"lost at 7 drives, {said}", 10.0, "%", own[7], kind="fitted"))
        lines += [
            Line(MODEL, f"lost at {n} drives, {said}", None, "%", own[n], why, "bound", *LARGER)
            for n in larger
        ]
    return Reproduced(lines, _figures(lost), _remarks(lost))


def _losses(runs: Runs, name: str) -> dict[int, float]:
    """Percent below N times one drive."""
    rates = {n: Performance.of(runs[f"{name}-{n}"]).bytes_per_s / 1e6 for n in COUNTS}
    return {n: 100 * (1 - rate / (n * rates[1])) for n, rate in rates.items()}


def _figures(lost: dict[str, dict[int, float]]) -> list[Figure]:
    gains = {
        text: [n * (1 - lost[name][n] / 100) for n in COUNTS] for name, (_, text) in MODELS.items()
    }
    x = [float(n) for n in COUNTS]
    line = Curve("N times one drive", x, x, "dashed", 5)
    curves = [line, *family(x, gains), Curve("published", [7.0], [7 * 0.9], "published")]
    title, unit = "Throughput against the number of drives", "times one drive"
    busy = family(range(len(TIMES_MS)), {"busy": [100 * x / LONGEST_MS for x in TIMES_MS]}, "bars")
    names = [f"{i + 1}" for i in range(len(TIMES_MS))]
    return [
        Figure(title, "drives", unit, curves, wide=True),
        Figure("How busy the members of the example are", "member", "%", busy, x_names=names),
    ]


def _remarks(lost: dict[str, dict[int, float]]) -> list[str]:
    said = []
    for name, (_, text) in MODELS.items():
        values = ", ".join(f"{n} drives {lost[name][n]:.1f} %" for n in (2, 4, 8, 16, 24))
        said.append(f"Lost with {text}: {values}.")
    return said


EXPERIMENT = experiment("raid0-slowest-member", plan, judge)
