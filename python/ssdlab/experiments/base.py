"""What an experiment is made of: published numbers, jobs on drives, and the two side by side."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

from ssdlab.answer import Figure
from ssdlab.results import Result

Kind = Literal["predicted", "fitted", "input", "ceiling", "consequence", "bound"]
"""What a simulated number is: ``predicted``; ``fitted``, if a number of the profile was chosen by
the published one; an ``input``, if the profile has a datasheet's figure for it; a ``ceiling``, if
the host set the published one and not the drive; a ``consequence`` of another number of the drive;
to be held to a ``bound``, where the article gives no number but a range.
"""
Mode = Literal["quick", "reduced", "full"]
NEAR = 0.15
"""A simulated number that is off by a larger share of the published one misses it."""


@dataclass(frozen=True)
class Line:
    """A number that an article states about a drive, beside the simulated one."""

    drive: str
    """Name of the profile, or of the devices."""
    quantity: str
    published: float | None
    """None where the article only shows a picture, describes a shape or gives a range."""
    unit: str
    simulated: float | None
    why: str = ""
    """Why the two differ or nothing could be simulated, where that is known."""
    kind: Kind = "predicted"
    at_least: float | None = None
    """Of a bound."""
    at_most: float | None = None
    """Of a bound."""

    def bound(self, text: Callable[[float], str]) -> str:
        """The range of a bound, with numbers written by ``text``; else nothing."""
        if self.at_least is not None and self.at_most is not None:
            return f"{text(self.at_least)} to {text(self.at_most)}"
        if self.at_most is not None:
            return f"at most {text(self.at_most)}"
        return "" if self.at_least is None else f"at least {text(self.at_least)}"

    @property
    def met(self) -> bool:
        """Whether the simulated number keeps to the bound."""
        low, high = self.at_least, self.at_most
        return self.simulated is not None and (
            (low is None or low <= self.simulated) and (high is None or self.simulated <= high)
        )

    @property
    def ratio(self) -> float | None:
        """Simulated / published; None where one is missing."""
        if self.simulated is None or not self.published:
            return None
        return self.simulated / self.published

    @property
    def near(self) -> bool:
        """Whether the simulated number is within 15 % of the published one."""
        return self.ratio is not None and abs(self.ratio - 1) <= NEAR

    @property
    def agreement(self) -> str:
        """Whether it is, or keeps to its bound, as tables say it; empty without either."""
        if self.kind == "bound":
            kept = "met" if self.met else "not met"
            return "not simulated" if self.simulated is None else kept
        if self.published is None:
            return ""
        return "yes" if self.near else "not simulated" if self.ratio is None else "missed"

    def as_json(self, experiment: str) -> dict[str, Any]:
        """The object of ``--json``."""
        derived = {"ratio": self.ratio, "agreement": self.agreement}
        return {"experiment": experiment, **asdict(self), **derived}


@dataclass(frozen=True)
class Task:
    """One job on one drive."""

    key: str
    drive: str
    """Name of the profile, or of the device that ``rig`` describes."""
    job: str
    """Text of the job file at the scale asked for."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    interval_ms: int = 1000
    cost: float = 1.0
    """Rough share of its experiment's work, for the time left."""
    rig: str = ""
    """Text of a rig, such as that of an array; empty for the profile ``drive``."""
    prepare: str | None = None
    """State in which the job finds the device (``--prepare``); None for fresh out of the box."""


def job_file(note: str, common: str, sections: Mapping[str, str], *, together: bool = False) -> str:
    """A job file: ``common`` options of all its jobs, and those of each by name, separated by
    blanks. Jobs follow one another unless they run ``together``; one with a runtime lasts so long.
    """
    text = f"; {note}\n[global]\nioengine=libaio\ndirect=1\n{_lines(common)}"
    for place, (name, options) in enumerate(sections.items()):
        wait = "stonewall\n" if place and not together else ""
        text += f"\n[{name}]\n{wait}{_lines(options)}"
    return text


def _lines(options: str) -> str:
    words = options.split()
    if any(word.startswith("runtime=") for word in words):
        words.append("time_based")
    return "".join(f"{word}\n" for word in words)


@dataclass(frozen=True)
class Reproduced:
    """What came out."""

    lines: list[Line]
    figures: list[Figure]
    remarks: list[str] = field(default_factory=list)
    """Sentences on the shape of the curves."""


Runs = Mapping[str, Result]
"""Results by the key of their task."""


@dataclass(frozen=True)
class Experiment:
    """A published experiment. ``plan`` and ``judge`` take the factor of scale."""

    name: str
    title: str
    articles: tuple[str, ...]
    """What was published, each with what is known of how it was measured."""
    procedure: str
    """In a few sentences, what was done and how it is repeated."""
    scaling: str
    """What a factor of scale divides."""
    factors: Mapping[Mode, int]
    effort_s: float
    """Processor time that it takes by ``--quick``, for the time left of several: a rough share."""
    plan: Callable[[int], list[Task]]
    judge: Callable[[Runs, int], Reproduced]

    @property
    def article(self) -> str:
        """All of :attr:`articles` in one."""
        return ". ".join(self.articles)

    def job_files(self) -> dict[str, str]:
        """The job files at full size, as they run on a real drive, by file name; drives that run
        the same job share one."""
        files: dict[str, str] = {}
        for task in self.plan(1):
            if task.job not in files.values():
                files[f"{self.name}-{task.key.replace('/', '-')}.fio"] = task.job
        return files


@cache
def described() -> Mapping[str, Mapping[str, Any]]:
    """What was published and how it is repeated (`experiments.toml`), in the order of lists."""
    text = (resources.files(__package__) / "experiments.toml").read_text("utf-8")
    return tomllib.loads(text)


def experiment(
    name: str,
    plan: Callable[[int], list[Task]],
    judge: Callable[[Runs, int], Reproduced],
    articles: tuple[str, ...] = (),
) -> Experiment:
    """The published experiment of that name; ``articles`` where no file says them."""
    told = dict(described()[name])
    like = described()[told.pop("like")] if "like" in told else {}
    about = {**like, **told}
    published = articles or (about.pop("article"),)
    return Experiment(name=name, plan=plan, judge=judge, articles=published, **about)


@dataclass(frozen=True)
class Reproduction:
    """An experiment that has been run."""

    experiment: Experiment
    mode: Mode
    factor: int
    findings: Reproduced
    seed: int
