"""Health in Prometheus' text format, for the textfile collector of node_exporter.

Format: "Exposition formats" of Prometheus' documentation; names and units: "Metric and label
naming" there, as ``promtool check metrics`` holds them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ssdlab.opened import as_text
from ssdlab.smart.model import Severity
from ssdlab.smart.report import HealthReport, Reading
from ssdlab.units import DAY_S

SUFFIX = ".prom"
"""Of the files that the collector reads."""


@dataclass(frozen=True)
class Metric:
    """A value of a drive; None where the drive does not report it."""

    name: str
    field: str
    """Of the drive's health, or of its projection."""
    help: str
    unit: float = 1
    """What the field is told in, in the metric's own unit."""

    @property
    def kind(self) -> str:
        """Counters, and only they, are called so."""
        return "counter" if self.name.endswith("_total") else "gauge"

    def value(self, report: HealthReport) -> float | None:
        """Its value; None where the drive does not report it."""
        of = report.health if hasattr(report.health, self.field) else report.projection
        found: float | None = getattr(of, self.field)
        return None if found is None else found * self.unit


METRICS: tuple[Metric, ...] = (
    Metric(
        "used_ratio",
        "used_percent",
        "Rated endurance used, as the drive estimates it; may exceed 1.",
        0.01,
    ),
    Metric("spare_ratio", "spare_percent", "Spare blocks that are left.", 0.01),
    Metric(
        "spare_threshold_ratio",
        "spare_threshold_percent",
        "Spare blocks below which the drive warns.",
        0.01,
    ),
    Metric(
        "media_errors_total",
        "media_errors",
        "Times that the drive could not return data (NVMe, SAS).",
    ),
    Metric(
        "uncorrectable_errors_total",
        "uncorrectable",
        "Uncorrectable errors reported to the host (ATA).",
    ),
    Metric("reallocated_total", "reallocated", "Sectors or blocks replaced by spares."),
    Metric(
        "pending_sectors",
        "pending",
        "Sectors that could not be read and have not been rewritten since.",
    ),
    Metric("crc_errors_total", "crc_errors", "CRC errors between drive and host."),
    Metric("written_bytes_total", "written_bytes", "Bytes written by the host."),
    Metric("read_bytes_total", "read_bytes", "Bytes read by the host."),
    Metric(
        "nand_written_bytes_total",
        "nand_bytes",
        "Bytes programmed into flash, for the host and by the drive itself.",
    ),
    Metric(
        "write_amplification_ratio",
        "write_amplification",
        "Bytes programmed into flash per byte written by the host, since new.",
    ),
    Metric("temperature_celsius", "temperature_c", "Temperature."),
    Metric(
        "temperature_limit_celsius",
        "temperature_limit_c",
        "Temperature above which the drive warns or is outside its specification.",
    ),
    Metric(
        "temperature_critical_celsius",
        "temperature_critical_c",
        "Temperature from which the drive throttles or stops.",
    ),
    Metric("power_on_seconds_total", "power_on_hours", "Power-on time.", 3600),
    Metric(
        "projected_life_seconds",
        "days_left",
        "Time until the rated endurance is used up if writing continues as it was.",
        DAY_S,
    ),
)
"""What is written besides ``readable`` and ``verdict``."""


def exposition(readings: Sequence[Reading], *, serials: bool = True) -> str:
    """The whole file; ``serials``: whether the label ``serial`` is there."""
    lines = _family(
        "readable",
        "gauge",
        "Whether the drive could be read.",
        {
            _labels(device=reading.name): float(isinstance(reading, HealthReport))
            for reading in readings
        },
    )
    # A drive that was asked for twice is one series: a file that repeats one is refused.
    reports = list(
        {
            reading.name: reading for reading in readings if isinstance(reading, HealthReport)
        }.values()
    )
    labels = [_of_drive(report, serials) for report in reports]
    verdicts = {
        _labels(**own, verdict=state.value): float(report.verdict is state)
        for own, report in zip(labels, reports, strict=True)
        for state in Severity
    }
    lines += _family("verdict", "gauge", "1 for the verdict on the drive, else 0.", verdicts)
    for metric in METRICS:
        samples = {}
        for own, report in zip(labels, reports, strict=True):
            value = metric.value(report)
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


def _of_drive(report: HealthReport, serials: bool) -> dict[str, str]:
    own = {"device": report.name, "model": report.health.model or ""}
    return {**own, "serial": report.health.serial or ""} if serials else own


def _labels(**values: str) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in values.items()) + "}"


def _escaped(value: str) -> str:
    """A label's value; what of a name is no text, which no file in UTF-8 can hold, as an escape."""
    return as_text(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
