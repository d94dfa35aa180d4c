"""What varies in a sweep, and which values it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from ssdlab import _core, units
from ssdlab.errors import InputError, meant
from ssdlab.jobfile import JobText

JOB = "job."
"""Before the name of an option of the job."""
FILES = ("target", "trace")
"""What the job runs on, and what it replays: values may be files, which tables call by their
names alone."""
WHOLE = (*FILES, "prepare")
"""Names that are no keys of a rig."""
REPLAYED = "read_iolog"
"""The option of a job that a trace is the value of."""


@dataclass(frozen=True)
class Axis:
    """A key and its values, in their order."""

    key: str
    """A key of the rig, ``job.OPTION``, or one of :data:`WHOLE`."""
    values: tuple[str, ...]
    group: str = ""
    """Axes of one group go together: the first values of all, then the second. Each value is run
    with each of other groups, and of axes without one."""
    span: units.Span | None = None
    """All values between two, from which a sample or a search takes its own; ``values`` is empty
    then."""

    def __post_init__(self) -> None:
        if self.key in FILES and len(set(self.labels)) < len(set(self.values)):
            raise InputError(f"{self.key}: two files have one name; the table could not tell them")

    @property
    def labels(self) -> tuple[str, ...]:
        """The values as tables show them: of a file its name, whatever folder it is in."""
        return tuple(map(self.label, self.values))

    @property
    def ends(self) -> tuple[str, ...]:
        """The values, or of a range its ends."""
        return self.values if self.span is None else (self.span.at(0.0), self.span.at(1.0))

    def label(self, value: str) -> str:
        """A value as tables show it."""
        if self.key not in FILES:
            return value
        return Path(value).stem if value.endswith(".toml") else Path(value).name

    @property
    def numeric(self) -> bool:
        """Whether all values are numbers: the table's column is one of numbers then."""
        if self.span is not None:
            return self.span.end == ""
        return self.key not in FILES and all(map(units.is_number, self.values))

    @property
    def cells(self) -> list[float | str]:
        """The values as the table has them, each once."""
        return list(dict.fromkeys(float(label) if self.numeric else label for label in self.labels))

    @property
    def order(self) -> pl.Expr:
        """By which the rows of the table stand in the order of the values."""
        return pl.col(self.key).replace_strict(self.cells, list(range(len(self.cells))))

    @property
    def of_job(self) -> bool:
        """Whether it changes the job, and neither the drive nor its preparation."""
        return self.key.startswith(JOB) or self.key == "trace"


@dataclass(frozen=True)
class AxisPoint:
    """A value of each axis, sorted by what they change."""

    values: Mapping[str, str]
    rig: Mapping[str, str] = field(default_factory=dict)
    job: Mapping[str, str] = field(default_factory=dict)


def axis(text: str, *, spans: bool = False) -> Axis:
    """``KEY=VALUES`` as an axis, such as ``job.iodepth=1..256x2``; with ``spans``, ranges that do
    not say how many values they have stand for all of them. Raises InputError where it is none, or
    the job has no such option; which keys a rig has is known only to the rig."""
    key, equals, values = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f'--vary "{text}": expected KEY=VALUES, such as job.iodepth=1..256x2')
    key = _checked(key.strip())
    place, values = f"--vary {key}", values.strip()
    size = "" if key.startswith(JOB) or key in WHOLE else "B"
    span = units.span(place, values, size) if spans or values.endswith("x") else None
    if span is not None and not spans:
        raise InputError(
            f'{place} "{values}": all values between two are for --sample and --search; '
            f"write {values}2 for those that double, or their number ({values[:-1]}/8)"
        )
    if span is not None:
        return Axis(key, (), span=span)
    return Axis(key, tuple(units.values(place, values, once=False, size=size)))


def job_options() -> set[str]:
    """What options of a job are called."""
    return {name for option in _core.job_options() for name in (option["name"], *option["aliases"])}


def _checked(key: str) -> str:
    """The key; raises InputError where nothing of a job can be varied by it."""
    if key.startswith(JOB):
        option, known = key.removeprefix(JOB), job_options()
        if option not in known:
            hint = meant(option, known, ', did you mean "{}"?')
            raise InputError(f'--vary {key}: fio has no job option "{option}"{hint}')
        if option == REPLAYED:
            raise InputError(f"--vary {key}: name the traces by trace=FILE,FILE")
    if key == "seed":
        raise InputError("--vary seed: say how many with --seeds N")
    return key


def grouped(axes: Sequence[Axis], groups: Sequence[Sequence[str]]) -> list[Axis]:
    """The axes, those of a group (keys) together; the others have each of their values once;
    InputError where a group names what does not vary, or its axes are of different lengths."""
    known = {one.key: one for one in axes}
    of: dict[str, str] = {}
    for group in groups:
        for key in group:
            if key not in known:
                hint = meant(key, known, ', did you mean "{}"?')
                raise InputError(f'--zip: "{key}" is not varied{hint}')
            if key in of:
                raise InputError(f"--zip: {key} stands in two groups")
            of[key] = f"--zip {','.join(group)}"
        lengths = {key: len(known[key].values) for key in group}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{key} has {length}" for key, length in lengths.items())
            raise InputError(f"--zip: keys that go together need as many values each; {told}")
    return [
        replace(one, group=of[one.key])
        if one.key in of
        else replace(one, values=tuple(dict.fromkeys(one.values)))
        for one in axes
    ]


def point(values: Mapping[str, str]) -> AxisPoint:
    """The values, sorted by what they change."""
    job = {key.removeprefix(JOB): v for key, v in values.items() if key.startswith(JOB)}
    if "trace" in values:
        job[REPLAYED] = values["trace"]
    rig = {k: v for k, v in values.items() if not k.startswith(JOB) and k not in WHOLE}
    return AxisPoint(values, rig, job)


def with_options(job: JobText, options: Mapping[str, str]) -> JobText:
    """The job with these options in each of its sections, in the place of its own; InputError where
    a part of the job stands in another file."""
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
