"""Characterise: how a drive is made, from benchmarks that each show one thing."""

from __future__ import annotations

from typing import Any

from ssdlab import units
from ssdlab.answer import Figure, Number, Section, Table
from ssdlab.engine import choices
from ssdlab.engine.answers import Part, charts, figure, work_table
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import Parameter, Setup
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
from ssdlab.protocols.characterise.writes import Writes, round_keys

HEADLINE = ("dies", "channels", "tR", "tPROG", "write buffer", "SLC cache", "over-provisioning")
"""Conclusions of the first sentence."""


def judge(records: Records, setup: Setup) -> Section:
    """What each benchmark concludes of the drive, with an interval, or why it cannot."""
    reads = Reads(records, setup)
    found = [*reads.conclusions(), *Writes(records, setup, reads).conclusions()]
    known = [one for one in found if one.known]
    if not any(True for _ in records):
        return Section(["Nothing has been measured yet."], tables=[table(found)])
    numbers = [
        Number(one.name, one.value, "" if one.unit == "yes/no" else one.unit, "", one.sources)
        for one in known
    ]
    return Section(
        [_headline(known), *_missing(found)],
        numbers,
        [table(found), *_tables(records, setup)],
        charts(*_figures(records, setup)),
    )


def _headline(known: list[Conclusion]) -> str:
    by_name = {one.name: one for one in known}
    said = [_said(by_name[name]) for name in HEADLINE if name in by_name]
    if not said:
        return f"{len(known)} values of a rig could be concluded, none of the flash itself."
    return units.sentence(f"The drive looks like one with {units.listed(said)}")


def _said(one: Conclusion) -> str:
    assert one.value is not None
    if one.unit == "":
        return f"{one.value:g} {one.name}"
    value = {
        "us": lambda: units.microseconds(one.value),
        "B": lambda: units.binary(one.value or 0),
        "x": lambda: f"{100 * (one.value or 0):.3g} %",
    }[one.unit]()
    within = ""
    if one.low is not None and one.high is not None and one.high > 1.1 * one.low:
        within = f" ({one.low:.3g} .. {one.high:.3g})"
    return f"{one.name} of {value}{within}"


def _missing(found: list[Conclusion]) -> list[str]:
    names = [one.name for one in found if not one.known]
    return [units.sentence(f"Not concluded: {units.listed(names)}")] if names else []


def _tables(records: Records, setup: Setup) -> list[Table]:
    parts = [
        *(
            Part(f"size/{choices.short(one)}", "read", f"read {units.binary(one)}, depth 1")
            for one in sizes(setup)
        ),
        *(Part(f"depth/{one}", "read", f"read 4 KiB, depth {one}") for one in DEPTHS),
        Part("depth/seq", "read", "sequential reads"),
        Part("fill/write", "write", "fill"),
        *(
            Part(f"steady/write-qd{one}", "write", f"steady writes, depth {one}")
            for one in STEADY_DEPTHS
        ),
        Part(f"steady/mix-{MIX}", "read", f"steady mix of {MIX} % reads: reads"),
        Part("mix/both", "read", "reads beside sequential writes", "reads"),
    ]
    measured = [one for one in parts if str(one.keys) in records]
    what = "iops mbps mean p50 p99 max"
    return [work_table(records, measured, what, title="Loads")] if measured else []


def _figures(records: Records, setup: Setup) -> list[Figure]:
    kib = 1 / 1024

    def latency(key: str) -> float | None:
        return records.value("mean", key)

    by_size = [(one * kib, latency(f"size/{choices.short(one)}")) for one in sizes(setup)]
    by_stride = {
        name: [(one * kib, records.iops(f"stride/{key}-{choices.short(one)}")) for one in places]
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
    Parameter("parts", "all", f"benchmarks: all, or some of {', '.join(PARTS)}"),
    Parameter("gentle", "no", "yes: only reads what is there", ("no", "yes")),
    Parameter("seconds", 2.0, "time for each load"),
    Parameter("rest_s", 1.0, "seconds of a rest before a burst; ten times that between parts"),
    Parameter("writes", 4.0, "drive writes at most until random writes must be steady", least=1),
    quick_divisor=10.0,
    parts=PARTS,
    on_purpose=ON_PURPOSE,
    reads_only=lambda values: values["gentle"] == "yes",
)
