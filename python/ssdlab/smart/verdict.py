"""What a drive's health asks for, in words, each with the value it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ssdlab.smart.change import ERRORS
from ssdlab.smart.model import Health, HealthFinding, Severity

USED_WATCH = 90.0
"""Percent of the rated endurance from which a successor should be at hand."""
SPARE_NEAR = 10.0
"""Percent above its threshold within which the spare is nearly used up."""
SPARE_AMPLE = 90.0
"""Percent of spare with which replaced blocks are no more than what the spare is for."""
WARM_C = 70
"""Of drives that report no limit: what most SSDs are specified for."""
WARM_DISK_C = 60
"""The same of hard disks."""

GOOD, UNKNOWN, WATCH, REPLACE = Severity.GOOD, Severity.UNKNOWN, Severity.WATCH, Severity.REPLACE


def judge(health: Health) -> list[HealthFinding]:
    """All findings about a drive, the worst first; at least one."""
    findings = [
        *_own_verdict(health),
        *_attributes(health),
        *_wear(health),
        *_spare(health),
        *_errors(health),
        *_temperature(health),
    ]
    judged = health.passed is not None or health.used_percent is not None
    if not judged:
        findings.append(
            HealthFinding(
                UNKNOWN, "the drive reports neither SMART status nor wear", "not reported"
            )
        )
    return sorted(findings, key=lambda finding: -finding.severity.rank)


def worst(findings: Iterable[HealthFinding]) -> Severity:
    """The verdict: the worst of the findings."""
    return max(
        (finding.severity for finding in findings),
        key=lambda severity: severity.rank,
        default=UNKNOWN,
    )


def _own_verdict(health: Health) -> Iterator[HealthFinding]:
    if health.passed is False:
        yield HealthFinding(
            REPLACE,
            "the drive itself expects to fail: back up its data and replace it",
            "SMART status: failed",
        )
    elif health.passed:
        yield HealthFinding(GOOD, "the drive itself reports no failure", "SMART status: passed")
    for words in health.critical_warnings:
        mild = "temperature" in words or "persistent memory" in words
        yield HealthFinding(
            WATCH if mild else REPLACE, words, "critical warning of the NVMe health log"
        )
    if health.self_test_failed:
        yield HealthFinding(
            WATCH,
            "a self-test of the drive failed; smartctl -l selftest shows which",
            "exit status of smartctl, bit 7",
        )


def _attributes(health: Health) -> Iterator[HealthFinding]:
    for attribute in health.attributes:
        called = f"{attribute.id} {attribute.name}"
        at = f"{called}: value {attribute.value}, threshold {attribute.threshold}"
        if attribute.failed == "now" and attribute.prefailure:
            yield HealthFinding(
                REPLACE,
                "a pre-failure attribute is at its threshold: the drive is about to fail",
                at,
            )
        elif attribute.failed == "now":
            yield HealthFinding(WATCH, "an attribute has reached its threshold", at)
        elif attribute.failed == "past":
            was = f"{called}: worst value {attribute.worst}, threshold {attribute.threshold}"
            yield HealthFinding(WATCH, "an attribute was at its threshold in the past", was)


def _wear(health: Health) -> Iterator[HealthFinding]:
    used = health.used_percent
    if used is None:
        return
    evidence = f"{used:.3g} % used"
    if used >= 100:
        yield HealthFinding(
            REPLACE,
            "the rated endurance is used up: the drive may go on working, but outside its rating, "
            "data retention without power included",
            evidence,
        )
    elif used >= USED_WATCH:
        yield HealthFinding(
            WATCH, "the rated endurance is nearly used up; plan the replacement", evidence
        )
    else:
        yield HealthFinding(GOOD, "the rated endurance is not used up", evidence)


def _spare(health: Health) -> Iterator[HealthFinding]:
    spare, threshold = health.spare_percent, health.spare_threshold_percent
    if spare is None or any("spare" in words for words in health.critical_warnings):
        return
    limit = 0.0 if threshold is None else threshold
    evidence = f"{spare:.3g} % spare left" + (
        "" if threshold is None else f", threshold {limit:.3g} %"
    )
    # NVMe warns below the threshold; an ATA attribute fails at it.
    below = spare < limit if health.interface == "NVMe" else threshold and spare <= limit
    if below or spare == 0:
        yield HealthFinding(
            REPLACE, "the spare blocks are used up to the drive's own threshold", evidence
        )
    elif spare - limit < SPARE_NEAR:
        yield HealthFinding(WATCH, "the spare blocks are nearly used up", evidence)


def _errors(health: Health) -> Iterator[HealthFinding]:
    for field, counter in ERRORS.items():
        count = getattr(health, field)
        if not count:
            continue
        evidence = f"{count:,} {counter.one}{'' if count == 1 else 's'}"
        if field == "pending" and count == 1 and "Crucial" in (health.family or ""):
            yield HealthFinding(
                GOOD,
                "one pending sector comes and goes on some of these drives without a defect "
                "(smartmontools ticket 1227)",
                evidence,
            )
        elif field == "reallocated":
            yield _reallocated(health, count)
        elif counter.advice:
            yield HealthFinding(WATCH, f"{counter.what}{counter.advice}", evidence)


def _reallocated(health: Health, blocks: int) -> HealthFinding:
    ample = health.spare_percent is not None and health.spare_percent >= SPARE_AMPLE
    if health.is_ssd and ample:
        return HealthFinding(
            GOOD,
            "some blocks were reallocated to spares, which is what spares are for",
            f"{blocks:,} reallocated, {health.spare_percent:.3g} % spare left",
        )
    return HealthFinding(
        WATCH,
        "sectors or blocks were reallocated to spares; watch whether the count grows",
        f"{blocks:,} reallocated",
    )


def _temperature(health: Health) -> Iterator[HealthFinding]:
    now, limit = health.temperature_c, health.temperature_limit_c
    critical = health.temperature_critical_c
    usual = WARM_DISK_C if health.is_ssd is False else WARM_C
    if now is not None and critical is not None and now >= critical:
        what = "the drive is at its critical temperature and throttles or stops; cool it"
        yield HealthFinding(WATCH, what, f"{now} °C, critical from {critical} °C")
    elif now is not None and limit is not None and now > limit:
        what = "the drive is too hot; improve its cooling"
        yield HealthFinding(WATCH, what, f"{now} °C, limit {limit} °C")
    elif now is not None and limit is None and now >= usual:
        what = f"the drive is hot; it reports no limit, and most are specified for {usual} °C"
        yield HealthFinding(WATCH, what, f"{now} °C")
    if health.minutes_too_warm:
        what = "the drive has been too hot and may have throttled; improve its cooling"
        yield HealthFinding(
            WATCH, what, f"{health.minutes_too_warm:,} minutes above its limit since new"
        )
