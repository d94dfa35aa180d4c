"""What varies in a sweep, and which values it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ssdlab import _core, units
from ssdlab.errors import InputError, nearest
from ssdlab.jobfile import JobText

JOB = "job."
"""Before the name of an option of the job."""
WHOLE = ("target", "prepare")
"""Names that are no keys of a rig: what the job runs on, and what is done before it."""


@dataclass(frozen=True)
class Axis:
    """A key and its values, in their order."""

    key: str
    """A key of the rig, ``job.OPTION``, or one of :data:`WHOLE`."""
    values: tuple[str, ...]

    @property
    def numeric(self) -> bool:
        """Whether all values are numbers: the table's column is one of numbers then."""
        return all(map(_is_number, self.values))

    @property
    def cells(self) -> list[float | str]:
        """The values as the table has them."""
        return [float(one) if self.numeric else one for one in self.values]


@dataclass(frozen=True)
class Point:
    """A value of each axis, sorted by what they change."""

    values: Mapping[str, str]
    rig: Mapping[str, str] = field(default_factory=dict)
    job: Mapping[str, str] = field(default_factory=dict)


def axis(text: str) -> Axis:
    """``KEY=VALUES`` as an axis, such as ``job.iodepth=1..256x2``.

    Raises InputError where it is none, or the job has no such option; which keys a rig has is
    known only to the rig.
    """
    key, equals, values = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise InputError(f'--vary "{text}": expected KEY=VALUES, such as job.iodepth=1..256x2')
    if key.startswith(JOB):
        option = key.removeprefix(JOB)
        known = {name for one in _core.job_options() for name in (one["name"], *one["aliases"])}
        if option not in known:
            near = nearest(option, known)
            hint = f', did you mean "{near}"?' if near else ""
            raise InputError(f'--vary {key}: fio has no job option "{option}"{hint}')
    if key == "seed":
        raise InputError("--vary seed: say how many with --seeds N")
    return Axis(key, tuple(units.values(f"--vary {key}", values)))


def point(values: Mapping[str, str]) -> Point:
    """The values, sorted by what they change."""
    job = {key.removeprefix(JOB): v for key, v in values.items() if key.startswith(JOB)}
    rig = {k: v for k, v in values.items() if not k.startswith(JOB) and k not in WHOLE}
    return Point(values, rig, job)


def with_options(job: JobText, options: Mapping[str, str]) -> JobText:
    """The job with these options in each of its sections, in the place of its own.

    Raises InputError where a part of the job stands in another file.
    """
    if not options:
        return job
    added = [f"{name}={value}" for name, value in options.items()]
    lines: list[str] = []
    inside = False
    for line in [*job.text.splitlines(), "["]:
        head = line.strip()
        if head.startswith("include "):
            raise InputError(
                f"{job.name}: includes a file, so options of the job cannot be varied; "
                "write its sections into one file"
            )
        if head.startswith("["):
            # The last word in a section holds.
            lines += added if inside else []
            inside = head != "[global]"
        lines.append(line)
    text = "\n".join(lines[:-1]) + "\n"
    return JobText(job.name, text, job.folder, job.replay)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
