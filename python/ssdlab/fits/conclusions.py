"""What benchmarks say of how a drive is made: values of a rig with their intervals, and what could
not be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssdlab.answer import Cell, Cells, Section, Table, columns, value_of
from ssdlab.engine.findings import ProtocolRun

TITLE = "What was concluded"
_SMALL = {"us": (1000, "ns"), "B": (1, "B")}
"""Units that rigs write in whole numbers of a smaller one."""
_HEADS = "what | value | from | to | unit | key of a rig | how, or why not"


@dataclass(frozen=True)
class Conclusion:
    """One thing about a drive; ``value``, ``low`` and ``high`` are None where it is not known."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    unit: str
    """``us``, ``B``, ``MB/s``, ``MT/s``, ``x``, ``%``; ``yes/no`` of 1 and 0; empty for counts."""
    key: str
    """The key of a rig that says the same (``nand.t_read``); empty where none does by itself."""
    how: str
    """What it rests on, or why it could not be told."""
    sources: tuple[str, ...] = ()
    """Keys of the steps."""

    @property
    def setting(self) -> str:
        """The value as rigs write it and ``--set`` takes it for :attr:`key`.

        Raises ValueError where it is not known.
        """
        if self.value is None:
            raise ValueError(f"{self.name} is not known")
        if self.unit == "yes/no":
            return "true" if self.value else "false"
        if self.unit in ("B", "us"):
            return f"{round(self.value * _SMALL[self.unit][0])}{_SMALL[self.unit][1]}"
        return f"{self.value:.6g}{self.unit if self.unit == 'MB/s' else ''}"

    @property
    def known(self) -> bool:
        """Whether it could be told."""
        return self.value is not None


def table(found: Sequence[Conclusion]) -> Table:
    """All of them; :func:`conclusions` reads that back."""
    rows: list[Cells] = [
        [
            one.name,
            *(_cell(one, value) for value in (one.value, one.low, one.high)),
            one.unit,
            one.key,
            one.how,
        ]
        for one in found
    ]
    return Table(TITLE, columns(_HEADS), rows)


def _cell(one: Conclusion, value: float | None) -> Cell:
    text = "" if value is None or one.unit != "yes/no" else "yes" if value else "no"
    return Cell(value, one.sources, text or (f"{value:.4g}" if value is not None else ""))


def conclusions(run: ProtocolRun) -> list[Conclusion]:
    """What a run of ``characterise`` has concluded; empty of other runs."""
    return of_section(run.findings.judgement)


def of_section(section: Section) -> list[Conclusion]:
    """The same of an answer."""
    found = []
    for one in section.tables:
        for row in one.rows if one.title == TITLE else ():
            name, value, low, high, unit, key, how = (value_of(cell) for cell in row)
            sources = row[1].sources if isinstance(row[1], Cell) else ()
            found.append(
                Conclusion(
                    str(name),
                    _number(value),
                    _number(low),
                    _number(high),
                    str(unit),
                    str(key),
                    str(how),
                    tuple(sources),
                )
            )
    return found


def _number(value: float | str | None) -> float | None:
    return value if isinstance(value, float | int) else None
