"""All that is said of the drives that were asked for, and which of them could not be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ssdlab.errors import InputError, SsdlabError
from ssdlab.smart.change import same_drive
from ssdlab.smart.history import Projection, in_order, project
from ssdlab.smart.model import Health, HealthFinding, Severity
from ssdlab.smart.sources import Snapshots, members
from ssdlab.smart.verdict import judge, worst


@dataclass(frozen=True)
class HealthReport:
    """All that is said of one drive."""

    name: str
    """As it was asked for."""
    health: Health
    findings: Sequence[HealthFinding]
    """The worst first."""
    projection: Projection

    @property
    def verdict(self) -> Severity:
        """The worst of the findings."""
        return worst(self.findings)

    @property
    def document(self) -> dict[str, Any]:
        """Its JSON object."""
        return {
            "target": self.name,
            "verdict": self.verdict.value,
            "findings": [asdict(finding) for finding in self.findings],
            "health": {
                **asdict(self.health),
                "write_amplification": self.health.write_amplification,
                "left_percent": self.health.left_percent,
            },
            "projection": asdict(self.projection),
        }


@dataclass(frozen=True)
class Unread:
    """A drive that was asked for and could not be read."""

    name: str
    error: SsdlabError

    @property
    def document(self) -> dict[str, Any]:
        """Its JSON object."""
        return {"target": self.name, "error": self.error.message}


Reading = HealthReport | Unread


def survey(
    targets: Sequence[str],
    read: Callable[[str], Snapshots],
    *,
    earlier: Mapping[str, Sequence[Health]] | None = None,
    tbw_bytes: float | None = None,
    redact: bool = False,
) -> Iterator[Reading]:
    """The drives in order, each as it is read; one that cannot be read keeps none of them back.
    ``earlier``: snapshots by the place they are from, which are put to each drive by model and
    serial number; ``tbw_bytes``: the maker's rating of host writes. Raises InputError, once all
    drives are read, for a place that holds snapshots of none of them."""
    places = earlier or {}
    unmatched, failed = set(places), False
    names = [name for target in targets for name in members(target)]
    for number, name in enumerate(names, 1):
        try:
            drive = read(name)
            unmatched -= {place for place in unmatched if _of(places[place], drive.latest)}
            drive = _with_earlier(drive, [health for place in places.values() for health in place])
            yield _report(drive.redacted(number) if redact else drive, tbw_bytes)
        except SsdlabError as error:
            failed = True
            yield _redacted(name, error, number) if redact else Unread(name, error)
    # What lies there may be of a drive that could not be read.
    if unmatched and not failed:
        place = next(place for place in places if place in unmatched)
        raise InputError(f"--history {place}: holds no snapshot of a drive that is asked for")


def unread_error(readings: Sequence[Reading]) -> SsdlabError | None:
    """One sentence about all drives that could not be read; None where there are none."""
    failed = [reading for reading in readings if isinstance(reading, Unread)]
    if not failed or len(readings) == 1:
        return failed[0].error if failed else None
    reasons = "; ".join(dict.fromkeys(unread.error.message for unread in failed))
    counted = f"{len(failed)} of {len(readings)} drives could not be read"
    return type(failed[0].error)(f"{counted}: {reasons}")


def _of(snapshots: Sequence[Health], drive: Health) -> list[Health]:
    return [snapshot for snapshot in snapshots if same_drive(snapshot, drive)]


def _with_earlier(drive: Snapshots, earlier: Sequence[Health]) -> Snapshots:
    known = {_moment(snapshot): snapshot for snapshot in drive.snapshots}
    for health in _of(earlier, drive.latest):
        known.setdefault(_moment(health), health)
    return replace(drive, snapshots=tuple(in_order(list(known.values()))))


def _moment(health: Health) -> tuple[object, ...]:
    """What two snapshots share only if they are the same one."""
    return health.taken_s, health.power_on_hours, health.written_bytes, health.read_bytes


def _report(drive: Snapshots, tbw_bytes: float | None) -> HealthReport:
    carried = project(drive.snapshots, tbw_bytes)
    findings = judge(drive.latest)
    if carried.since is not None:
        findings = sorted(
            [*carried.since.findings, *findings], key=lambda finding: -finding.severity.rank
        )
    return HealthReport(drive.name, drive.latest, findings, carried)


def _redacted(name: str, error: SsdlabError, number: int) -> Unread:
    """Without the drive's name, which may hold its serial number, and without paths."""
    shown = f"drive {number}"
    message = re.sub(r"(?<![\w.])/[^\s,;:()]+", "...", error.message.replace(name, shown))
    return Unread(shown, type(error)(message))
