"""Health in Prometheus' text format, for the textfile collector of node_exporter.

Format: "Exposition formats" of Prometheus' documentation; names and units: "Metric and label
naming" there, as ``promtool check metrics`` holds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ssdlab.health.history import DAY_S
from ssdlab.health.model import Severity
from ssdlab.health.report import Reading, Report

SUFFIX = ".prom"
"""Of the files that the collector reads."""


@dataclass(frozen=True)
class Metric:
    """A value of a drive; None where the drive does not report it."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    value: Callable[[Report], float | None]


def _ratio(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _seconds(count: float | None, unit_s: float) -> float | None:
    return None if count is None else count * unit_s


METRICS: tuple[Metric, ...] = (
    Metric(
        "used_ratio",
        "gauge",
        "Rated endurance used, as the drive estimates it; may exceed 1.",
        lambda one: _ratio(one.health.used_percent),
    ),
    Metric(
        "spare_ratio",
        "gauge",
        "Spare blocks that are left.",
        lambda one: _ratio(one.health.spare_percent),
    ),
    Metric(
        "spare_threshold_ratio",
        "gauge",
        "Spare blocks below which the drive warns.",
        lambda one: _ratio(one.health.spare_threshold_percent),
    ),
    Metric(
        "media_errors_total",
        "counter",
        "Times that the drive could not return data (NVMe, SAS).",
        lambda one: one.health.media_errors,
    ),
    Metric(
        "uncorrectable_errors_total",
        "counter",
        "Uncorrectable errors reported to the host (ATA).",
        lambda one: one.health.uncorrectable,
    ),
    Metric(
        "reallocated_total",
        "counter",
        "Sectors or blocks replaced by spares.",
        lambda one: one.health.reallocated,
    ),
    Metric(
        "pending_sectors",
        "gauge",
        "Sectors that could not be read and have not been rewritten since.",
        lambda one: one.health.pending,
    ),
    Metric(
        "crc_errors_total",
        "counter",
        "CRC errors between drive and host.",
        lambda one: one.health.crc_errors,
    ),
    Metric(
        "written_bytes_total",
        "counter",
        "Bytes written by the host.",
        lambda one: one.health.written_bytes,
    ),
    Metric(
        "read_bytes_total",
        "counter",
        "Bytes read by the host.",
        lambda one: one.health.read_bytes,
    ),
    Metric(
        "nand_written_bytes_total",
        "counter",
        "Bytes programmed into flash, for the host and by the drive itself.",
        lambda one: one.health.nand_bytes,
    ),
    Metric(
        "write_amplification_ratio",
        "gauge",
        "Bytes programmed into flash per byte written by the host, since new.",
        lambda one: one.health.write_amplification,
    ),
    Metric(
        "temperature_celsius",
        "gauge",
        "Temperature.",
        lambda one: one.health.temperature_c,
    ),
    Metric(
        "temperature_limit_celsius",
        "gauge",
        "Temperature above which the drive warns or is outside its specification.",
        lambda one: one.health.temperature_limit_c,
    ),
    Metric(
        "temperature_critical_celsius",
        "gauge",
        "Temperature from which the drive throttles or stops.",
        lambda one: one.health.temperature_critical_c,
    ),
    Metric(
        "power_on_seconds_total",
        "counter",
        "Power-on time.",
        lambda one: _seconds(one.health.power_on_hours, 3600),
    ),
    Metric(
        "projected_life_seconds",
        "gauge",
        "Time until the rated endurance is used up if writing continues as it was.",
        lambda one: _seconds(one.projection.days_left, DAY_S),
    ),
)
"""What is written besides ``readable`` and ``verdict``."""


def exposition(readings: Sequence[Reading], *, serials: bool = True) -> str:
    """The whole file; ``serials``: whether the label ``serial`` is there."""
    lines = _family(
        "readable",
        "gauge",
        "Whether the drive could be read.",
        {_labels(device=one.name): float(isinstance(one, Report)) for one in readings},
    )
    # A drive that was asked for twice is one series: a file that repeats one is refused.
    reports = list({one.name: one for one in readings if isinstance(one, Report)}.values())
    labels = [_of_drive(one, serials) for one in reports]
    verdicts = {
        _labels(**own, verdict=state.value): float(one.verdict is state)
        for own, one in zip(labels, reports, strict=True)
        for state in Severity
    }
    lines += _family("verdict", "gauge", "1 for the verdict on the drive, else 0.", verdicts)
    for metric in METRICS:
        samples = {}
        for own, one in zip(labels, reports, strict=True):
            value = metric.value(one)
            if value is not None and math.isfinite(value):
                samples[_labels(**own)] = value
        lines += _family(metric.name, metric.kind, metric.help, samples)
    return "".join(f"{line}\n" for line in lines)


def _family(name: str, kind: str, words: str, samples: Mapping[str, float]) -> list[str]:
    whole = f"ssdlab_health_{name}"
    if not samples:
        return []
    heads = [f"# HELP {whole} {words}", f"# TYPE {whole} {kind}"]
    return heads + [f"{whole}{labels} {_number(value)}" for labels, value in samples.items()]


def _of_drive(report: Report, serials: bool) -> dict[str, str]:
    own = {"device": report.name, "model": report.health.model or ""}
    return {**own, "serial": report.health.serial or ""} if serials else own


def _labels(**values: str) -> str:
    return "{" + ",".join(f'{name}="{_escaped(one)}"' for name, one in values.items()) + "}"


def _escaped(value: str) -> str:
    """A label's value; what of a name is no text, which no file in UTF-8 can hold, as an escape."""
    text = value.encode("utf-8", "backslashreplace").decode("utf-8")
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
