"""What benchmarks say of how a drive is made: values of a rig with their intervals, and what could
not be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssdlab.answer import Cell, Cells, Section, Table, columns, value_of
from ssdlab.engine.findings import ProtocolRun
from ssdlab.units import number

TITLE = "What was concluded"
_SMALL = {"us": (1000, "ns"), "B": (1, "B")}
"""Units that rigs write in whole numbers of a smaller one."""
ROW, PLANES = "sensed at once (page of every plane)", "planes that read by themselves"
"""Names of conclusions that are no key by themselves."""
LINKED = 0.92
"""Writes as fast as this share of the link are set by it and not by the flash."""
BUFFER = "16MiB"
"""Of a buffer of which only is known that it is there."""
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
        """The value as rigs write it and ``--set`` takes it for :attr:`key`; ValueError where it is
        not known."""
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
            conclusion.name,
            *(
                _cell(conclusion, value)
                for value in (conclusion.value, conclusion.low, conclusion.high)
            ),
            conclusion.unit,
            conclusion.key,
            conclusion.how,
        ]
        for conclusion in found
    ]
    return Table(TITLE, columns(_HEADS), rows)


def _cell(conclusion: Conclusion, value: float | None) -> Cell:
    if value is None:
        text = ""
    else:
        # Bytes whole: rigs have powers of two, which three figures hide.
        text = f"{value:,.0f}" if conclusion.unit == "B" else number(value, conclusion.unit)
    return Cell(value, conclusion.sources, text)


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


STATES = {"size": "filled", "depth": "filled", "fill": "fob", "steady": "steady"}
"""Parts of ``characterise`` whose loads a table can say, and the state that they find."""
TWICE = ("range/1", "depth/1")
"""The same reads before and after the others."""
ROUNDS = 2
"""The last rounds of random writes are rows of the table: write amplification may still rise in
those before, above all where RAM does not hold the map."""
TRIMMED = "trim/write"
"""Random writes after TRIM of the rest: to a smaller namespace in the same flash."""


def states(run: ProtocolRun) -> dict[str, str]:
    """The states that steps of a run of ``characterise`` found, by their keys, for those that are
    rows of a table of observations."""
    keys = [step.key for step in run.steps if step.kind == "job"]
    rounds = [key for key in keys if key.startswith("round")][-ROUNDS:]
    found = {key: STATES.get(key.partition("/")[0]) for key in keys}
    if mapped(run):
        # Those stay where the map is at hand, which no row can say.
        found = {key: state for key, state in found.items() if not key.startswith("size/")}
    rounds += [TRIMMED] if TRIMMED in keys else []
    return {key: state for key, state in found.items() if state} | dict.fromkeys(rounds, "steady")


def counted(key: str, mapped: bool) -> bool:
    """Whether a step writes enough for its write amplification: collection comes in waves, over
    which a drive write is a mean; where RAM does not hold the map (``mapped``) it rises for
    longer."""
    return key == TRIMMED or key.startswith("fill/") or (key.startswith("round") and not mapped)


def mapped(run: ProtocolRun) -> bool:
    """Whether a run of ``characterise`` found a map that RAM does not hold."""
    return any(one.known and one.key == "ftl.map.cache" for one in conclusions(run))


def uncached(found: Sequence[Conclusion]) -> bool:
    """Whether a fill that the link did not limit would have shown an SLC cache, and has not."""
    by_name = {conclusion.name: conclusion for conclusion in found}
    fill, link, cache = (
        by_name.get(name) for name in ("sequential writes", "link bandwidth", "SLC cache")
    )
    if cache is None or cache.known or not cache.sources:
        return False
    speeds = [one.value for one in (fill, link) if one is not None and one.value is not None]
    return len(speeds) == 2 and speeds[0] < LINKED * speeds[1]


def settings(found: Sequence[Conclusion]) -> dict[str, str]:
    """The keys of a rig that conclusions say, as ``--set`` takes them: something to start from."""
    by_name = {conclusion.name: conclusion for conclusion in found if conclusion.known}
    keys = {
        conclusion.key: conclusion.setting
        for conclusion in by_name.values()
        if conclusion.key and "slc" not in conclusion.key
    }
    row, planes = (by_name.get(name) for name in (ROW, PLANES))
    if row is not None and planes is not None and row.value and planes.value:
        # Planes that sense as one are not seen; a page of all of them does the same.
        keys["nand.planes"] = f"{planes.value:.0f}"
        keys["nand.page"] = f"{row.value / planes.value:.0f}B"
        keys["nand.independent_plane_reads"] = "true" if planes.value > 1 else "false"
    if "ftl.map.cache" in keys:
        keys["ftl.map.kind"] = "cached"
    size, slow = by_name.get("SLC cache"), by_name.get("tPROG of the SLC cache")
    if size is not None and slow is not None:
        cache = {
            "static_size": size.setting,
            "t_program": slow.setting,
            "t_read": keys.get("nand.t_read", "40us"),
        }
        if (folds := by_name.get("SLC cache folded when full")) is not None:
            cache["when_full"] = "fold" if folds.value else "direct"
        if (rests := by_name.get("SLC cache emptied in a rest")) is not None and rests.value:
            cache["fold_idle_after"] = "500ms"
        pairs = ", ".join(f'{name} = "{value}"' for name, value in cache.items())
        keys["ftl.slc_cache"] = f"{{ {pairs} }}"
    if "write_buffer.power_loss_protected" in keys and "write_buffer.size" not in keys:
        keys["write_buffer.size"] = BUFFER
    elif "write_buffer.size" in keys:
        keys.setdefault("write_buffer.power_loss_protected", "true")
    return keys
