"""A sweep as a file or a command line says it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ssdlab.errors import InputError, meant
from ssdlab.jobfile import JobText, read_job, read_text
from ssdlab.plan.prices import prices
from ssdlab.sweeps.axes import FILES, Axis, axis, grouped
from ssdlab.sweeps.plan import RUNS_MAX, Sweep
from ssdlab.sweeps.sample import sample, sampled

EXAMPLE = 'a table such as "job.iodepth" = "1..64x4"'
_TEXT, _NUMBER, _TRUTH = "a text", "a whole number of 1 or more", "true or false"


@dataclass(frozen=True)
class SweepOrder:
    """What is asked for, as far as it is said. Each field is an option of ``ssdlab sweep`` and a
    key of its file."""

    job: JobText | None = None
    """In a file its path, or its text."""
    on: str | None = None
    vary: Mapping[str, str] = field(default_factory=dict)
    """Values by key, as ``--vary`` takes them."""
    zip: Sequence[Sequence[str]] = ()
    """Groups of keys whose values go together."""
    sample: str | None = None
    where: Sequence[str] = ()
    set: Mapping[str, str] = field(default_factory=dict)
    scale: int | None = None
    prepare: str | None = None
    seeds: int | None = None
    series: bool | None = None
    prices: Path | None = None
    search: Sequence[str] = ()
    """Measures to search the best of."""
    target: Sequence[str] = ()
    """Conditions that the best has to meet."""
    budget: int | None = None

    def over(self, below: SweepOrder) -> SweepOrder:
        """This order where it says something, else the one below; what varies, keys of rigs and
        conditions are added to those below."""
        said: dict[str, Any] = {}
        for one in fields(self):
            own, other = getattr(self, one.name), getattr(below, one.name)
            if one.name in ("vary", "set"):
                said[one.name] = {**other, **own}
            elif one.name in ("zip", "where", "target"):
                said[one.name] = [*other, *own]
            else:
                said[one.name] = other if own in (None, ()) else own
        return SweepOrder(**said)

    @property
    def axes(self) -> list[Axis]:
        """What varies; a sample is drawn, while a search keeps its ranges; InputError where one is
        none, or they cannot go together."""
        open_ = self.sample is not None or bool(self.search)
        found = [axis(f"{key}={values}", spans=open_) for key, values in self.vary.items()]
        found = grouped(found, self.zip)
        if self.sample is not None:
            found = sampled(found, sample(self.sample))
        return found

    def sweep(self, *, runs_max: int | None = RUNS_MAX) -> Sweep:
        """The sweep; raises InputError where it is none."""
        if self.job is None:
            raise InputError("no job is named; give a job file, or job = ... in the sweep's file")
        if self.on is None and "target" not in self.vary:
            raise InputError("no drive is named; say --on TARGET, or on = ... in the sweep's file")
        if not self.search and (self.target or self.budget):
            option = "--target" if self.target else "--budget"
            raise InputError(f"{option}: belongs to a search; say what is searched with --search")
        if self.search and self.sample is not None:
            raise InputError("--sample: a search draws its own combinations; leave one of them out")
        return Sweep(
            self.job,
            self.on or "",
            self.axes,
            self.seeds or 1,
            self.prepare or "fob",
            self.set,
            tuple(self.where),
            prices(self.prices),
            runs_max,
            self.scale or 1,
        )


def read_order(path: Path) -> SweepOrder:
    """The order in a file (TOML); InputError, with the place in the file, where it says something
    else."""
    try:
        table = tomllib.loads(read_text(path, "sweep file"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: is not TOML ({error}), so it says no sweep") from None
    reader = _Reader(path)
    known = {one.name for one in fields(SweepOrder)}
    for name in table:
        if name not in known:
            hint = meant(name, known, ', did you mean "{}"?')
            hint = hint or f"; there are: {', '.join(sorted(known))}"
            raise InputError(f'{path}: a sweep has no key "{name}"{hint}')
    return SweepOrder(**{name: reader.read(name, value) for name, value in table.items()})


def from_line(job: Path | None) -> SweepOrder:
    """What the argument of the command names: a sweep's file (``*.toml``), or a job file."""
    if job is None:
        return SweepOrder()
    if job.suffix == ".toml":
        return read_order(job)
    return SweepOrder(job=read_job(job))


class _Reader:
    """Reads the keys of a file; files that it names are looked for beside it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, name: str, value: object) -> Any:
        """The field of that name."""
        if name == "job":
            return self._job(self._text(name, value))
        if name == "on":
            return self._beside(self._text(name, value))
        if name == "prices":
            return Path(self._beside(self._text(name, value), every=True))
        if name in ("set", "vary"):
            return dict(self._keys(name, value))
        if name in ("where", "search", "target"):
            return self._texts(name, value)
        if name == "zip":
            groups = self._list(name, value)
            flat = all(isinstance(group, str) for group in groups)
            return [self._texts(name, one) for one in ([groups] if flat else groups)]
        if name == "series":
            return self._expected(name, value, isinstance(value, bool), _TRUTH)
        if name in ("seeds", "budget", "scale"):
            right = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            return self._expected(name, value, right, _NUMBER)
        return self._text(name, value)

    def _job(self, text: str) -> JobText:
        if "\n" in text:
            return replace(read_job(text), name=f"{self._path}: job", folder=self._path.parent)
        return read_job(self._beside(text, every=True))

    def _keys(self, name: str, value: object, above: str = "") -> Iterator[tuple[str, str]]:
        if not isinstance(value, dict):
            raise InputError(f"{self._path}: {name}: found {value!r}, expected {EXAMPLE}")
        for key, one in value.items():
            whole = f"{above}{key}"
            if isinstance(one, dict):
                yield from self._keys(f"{name}.{key}", one, f"{whole}.")
                continue
            single = one if isinstance(one, list) and name.startswith("vary") else [one]
            texts = [self._value(f"{name}.{key}", each) for each in single]
            if whole in FILES:
                texts = [self._beside(part) for text in texts for part in text.split(",")]
            yield whole, ",".join(texts)

    def _value(self, name: str, value: object) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        right = isinstance(value, str | int | float)
        return str(self._expected(name, value, right, "a text, a number, true or false"))

    def _texts(self, name: str, value: object) -> list[str]:
        if isinstance(value, str):
            return [value]
        return [self._text(name, one) for one in self._list(name, value)]

    def _list(self, name: str, value: object) -> list[Any]:
        self._expected(name, value, isinstance(value, list), "a list")
        return list(value)  # type: ignore[call-overload, no-any-return]

    def _text(self, name: str, value: object) -> str:
        return str(self._expected(name, value, isinstance(value, str), _TEXT))

    def _expected(self, name: str, value: object, right: bool, what: str) -> object:
        if not right:
            raise InputError(f"{self._path}: {name}: found {value!r}, expected {what}")
        return value

    def _beside(self, name: str, every: bool = False) -> str:
        """The file that is named, where it lies beside this one; other names stay."""
        name = name.strip()
        beside = self._path.parent / name
        return str(beside) if (every or beside.is_file()) and not Path(name).is_absolute() else name
