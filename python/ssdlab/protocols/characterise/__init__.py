"""Characterise: how a drive is made, from benchmarks that each show one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ssdlab import units
from ssdlab.answer import Figure, Number, Section, Table
from ssdlab.engine.answers import Part, charts, figure, work_table
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import ProtocolParameter, Setup, short
from ssdlab.fits.conclusions import Conclusion, table
from ssdlab.protocols.characterise.benchmarks import (
    DEPTHS,
    MIX,
    ON_PURPOSE,
    PARTS,
    STEADY_DEPTHS,
    plan,
    ranges,
    sizes,
    strides,
)
from ssdlab.protocols.characterise.reads import Reads
from ssdlab.protocols.characterise.writes import SPARE, Writes, round_keys

HEADLINE = ("dies", "channels", "tR", "tPROG", "write buffer", "SLC cache", "over-provisioning")
"""Conclusions of the first sentence."""


def judge(records: Records, setup: Setup) -> Section:
    """What each benchmark concludes of the drive, with an interval, or why it cannot."""
    reads = Reads(records, setup)
    conclusions = [*reads.conclusions(), *Writes(records, setup, reads).conclusions()]
    known = [conclusion for conclusion in conclusions if conclusion.known]
    if not any(True for _ in records):
        return Section(["Nothing has been measured yet."], tables=[table(conclusions)])
    numbers = [_number(conclusion) for conclusion in known]
    return Section(
        [_headline(known), *_missing(conclusions)],
        numbers,
        [table(conclusions), *_tables(records, setup)],
        charts(*_figures(records, setup)),
    )


def _headline(known: list[Conclusion]) -> str:
    by_name = {conclusion.name: conclusion for conclusion in known}
    said = [_said(by_name[name]) for name in HEADLINE if name in by_name]
    if not said:
        values = units.counted(len(known), "value")
        return f"{values} of a rig could be concluded, none of the flash itself."
    return units.sentence(f"The drive looks like one with {units.listed(said)}")


def _number(conclusion: Conclusion) -> Number:
    value, unit = conclusion.value, conclusion.unit
    if unit == "B" and value is not None and value < 1 << 30:
        value, unit = value / 1024, "KiB"  # pages and buffers are no decimal sizes
    if conclusion.name == SPARE.name and value is not None:
        value, unit = 100 * value, "%"
    return Number(conclusion.name, value, unit, "", conclusion.sources)


def _said(conclusion: Conclusion) -> str:
    assert conclusion.value is not None
    if conclusion.unit == "":
        return f"{conclusion.value:g} {conclusion.name}"
    write: Callable[[float], str] = {
        "us": units.microseconds,
        "B": units.binary,
        "x": lambda value: f"{100 * value:.3g} %",
    }[conclusion.unit]
    within = ""
    if (
        conclusion.low is not None
        and conclusion.high is not None
        and conclusion.high > 1.1 * conclusion.low
    ):
        within = f" ({write(conclusion.low)} .. {write(conclusion.high)})"
    return f"{conclusion.name} of {write(conclusion.value)}{within}"


def _missing(conclusions: list[Conclusion]) -> list[str]:
    names = [conclusion.name for conclusion in conclusions if not conclusion.known]
    return [units.sentence(f"Not concluded: {units.listed(names)}")] if names else []


def _tables(records: Records, setup: Setup) -> list[Table]:
    parts = [
        *(
            Part(f"size/{short(size)}", "read", f"read {units.binary(size)}, depth 1")
            for size in sizes(setup)
        ),
        *(Part(f"depth/{depth}", "read", f"read 4 KiB, depth {depth}") for depth in DEPTHS),
        Part("depth/seq", "read", "sequential reads"),
        Part("fill/write", "write", "fill"),
        *(
            Part(f"steady/write-qd{depth}", "write", f"steady writes, depth {depth}")
            for depth in STEADY_DEPTHS
        ),
        Part(f"steady/mix-{MIX}", "read", f"steady mix of {MIX} % reads: reads"),
        Part("mix/both", "read", "reads beside sequential writes", "reads"),
    ]
    measured = [part for part in parts if str(part.keys) in records]
    what = "iops mbps mean p50 p99 max"
    return [work_table(records, measured, what, title="Loads")] if measured else []


def _figures(records: Records, setup: Setup) -> list[Figure]:
    kib = 1 / 1024

    def latency(key: str) -> float | None:
        return records.value("mean", key)

    by_size = [(size * kib, latency(f"size/{short(size)}")) for size in sizes(setup)]
    by_stride = {
        name: [(place * kib, records.iops(f"stride/{key}-{short(place)}")) for place in places]
        for name, key in (("64 in flight", "many"), ("pairs", "pair"))
        for places in (strides(setup),)
    }
    by_range = [
        (size * kib * kib, latency(f"range/{share}")) for share, size in ranges(setup).items()
    ]
    axes: dict[str, Any] = {"log_x": True, "log_y": True, "wide": False}
    steady = [
        (float(place), records.iops(key)) for place, key in enumerate(round_keys(records), start=1)
    ]
    shown = [
        figure("Lone reads by size", "KiB", "us", {"mean": _seen(by_size)}, **axes,
               from_steps=_steps(records, "size/")),
        figure("Reads of 4 KiB at a stride", "stride, KiB", "IOPS",
               {name: _seen(points) for name, points in by_stride.items()}, **axes,
               from_steps=_steps(records, "stride/")),
        figure("Lone reads by range", "MiB", "us", {"mean": _seen(by_range)}, log_x=True,
               wide=False, from_steps=_steps(records, "range/")),
        figure("Random writes", "round", "IOPS", {"4 KiB, depth 32": _seen(steady)}, wide=False,
               from_steps=_steps(records, "round")),
    ]  # fmt: skip
    series = records.series("fill/write", "write")
    if series is not None:
        points = list(zip(series.written / 1e9, series.mbps, strict=True))
        shown.append(figure("The fill", "written, GB", "MB/s", {"fill": points}, style="line",
                            wide=False, from_steps=("fill/write",)))  # fmt: skip
    return shown


def _seen(points: list[tuple[float, float | None]]) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points if y is not None]


def _steps(records: Records, start: str) -> list[str]:
    return [key for key in records if key.startswith(start)]


PROTOCOLS = procedure(
    "everyday",
    "characterise",
    "Characterise",
    "how a drive is made: dies, channels, tR, tPROG, buffer, SLC cache, spare area",
    "micro-benchmarks after uFLIP (Bouganim et al., CIDR 2009), SSDExplorer and others",
    plan,
    judge,
    ProtocolParameter("parts", "all", f"benchmarks: all, or some of {', '.join(PARTS)}"),
    ProtocolParameter("gentle", "no", "yes: only reads what is there", ("no", "yes")),
    ProtocolParameter("seconds", 2.0, "time for each load"),
    ProtocolParameter(
        "rest_s", 1.0, "seconds of a rest before a burst; ten times that between parts"
    ),
    ProtocolParameter(
        "writes", 4.0, "drive writes at most until random writes must be steady", least=1
    ),
    quick_divisor=10.0,
    parts=PARTS,
    on_purpose=ON_PURPOSE,
    settled=("steady",),
    reads_only=lambda values: values["gentle"] == "yes",
)
