"""A sweep as an answer: a row for each combination, and how each key matters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from ssdlab import units
from ssdlab.answer import Answer, Cell, Cells, Column, Section, Table, Verdict
from ssdlab.answers.sweep_charts import (
    MEASURES,
    figures,
    means_of,
    short_names,
    texts_of,
    together_of,
    told_of,
)
from ssdlab.checks.built import DIFFERS
from ssdlab.checks.steadiness import UNSURE
from ssdlab.sweeps import Sweep, SweepOutcome

FAILURES_MAX = 10
"""So many combinations of which nothing came are named."""
SAME = 1.015
"""Times as much is told as the same."""


def answer(
    sweep: Sweep, frame: pl.DataFrame, outcome: SweepOutcome, where: str | None, line: str = ""
) -> Answer:
    """``frame``: the rows of the runs that the sweep asks for; ``where`` the folder, None where
    they are not kept; ``line`` the command that asked."""
    means = means_of(sweep, frame)
    failed = [(run.values, error.message) for run, error in outcome.failed]
    lead = Section(
        [*_ranges(sweep, means), *_built(means), _count(sweep, outcome)],
        tables=[_table(sweep, means, line), *failures("Could not be run", failed)],
        figures=figures(sweep, means),
        key="runs",
        title="All combinations",
        verdict=Verdict("swept", {"runs": float(len(sweep)), "failed": float(len(outcome.failed))}),
    )
    notes = []
    if sweep.scale > 1:
        notes = [f"Drives are simulated at 1/{sweep.scale} of their size."]
    if where is not None:
        notes += [f"Every number of every run: polars.scan_parquet('{where}/summary/*.parquet')."]
    title = f"Sweep of {units.listed([axis.key for axis in sweep.axes])}"
    return Answer(title, "sweep", [lead], notes=notes, data=_document(sweep, outcome, where))


def _ranges(sweep: Sweep, means: pl.DataFrame) -> Iterator[str]:
    """What was measured, from the combination with the least to that with the most: rates, then
    tails. Nothing of one combination."""
    if means["key"].n_unique() < 2:
        return
    doubted = means.filter(pl.col("steady") < pl.col("runs"))["key"].n_unique()
    whole = means["key"].n_unique()
    doubt = f"; not at steady state: {doubted} of {whole}" if doubted else ""
    moving = means.filter(pl.col("moving") > 0)["key"].n_unique()
    if moving:
        doubt += f" ({moving} of them by the PTS rule, but still moving: --run KEY says why)"
    unsure = means.filter(pl.col("steady") == pl.col("runs"), pl.col("noise") > UNSURE)
    if unsure.height:
        worst = min(1.0, float(unsure["noise"].max()))  # type: ignore[arg-type]
        doubt += (
            f"; not known to ±{units.percent(UNSURE)}, by how their series vary: "
            f"{unsure['key'].n_unique()} of {whole}, the worst ±{units.percent(worst)} (95 %; "
            "longer jobs or more --seeds)"
        )
    several = means.select("job", "ddir").n_unique() > 1
    for name, head, of, times, text in (
        ("iops", "IOPS", "of all jobs and directions together", "as many", units.number),
        ("clat_p99_ns", "clat p99", "of the slowest of them", "as long", units.latency),
    ):
        rows = together_of(sweep, means, name).sort(name, maintain_order=True).to_dicts()
        if len(rows) < 2:
            continue
        what = f"{head} {of}" if several else head
        least, most = rows[0], rows[-1]
        low, high = text(least[name]), text(most[name])
        if most[name] < SAME * least[name] or low == high:
            yield f"{what}: {low if low == high else f'{low} to {high}'} in all{doubt}"
        else:
            factor = f", {units.number(most[name] / least[name])} times {times}"
            yield (
                f"{what} from {low} ({_named(sweep, least)}) to {high} ({_named(sweep, most)})"
                f"{factor if least[name] else ''}{doubt}"
            )
        doubt = ""


def _built(means: pl.DataFrame) -> Iterator[str]:
    """Of drives of which whole superblocks made others than were asked for."""
    off = (pl.col("built") - 1).abs()
    other = means.filter(off > DIFFERS).sort(off)
    if other.height:
        yield (
            "Whole superblocks made another over-provisioning than was asked for in "
            f"{other['key'].n_unique()} of {means['key'].n_unique()}, the farthest "
            f"{units.number(other['built'][-1])} times it; a larger capacity comes nearer"
        )


def _named(sweep: Sweep, row: Mapping[str, Any]) -> str:
    """A combination by what tells it from others."""
    axes = [axis for axis in sweep.axes if len(axis.cells) > 1]
    names = zip(short_names(axes), axes, strict=True)
    return ", ".join(f"{name} {texts_of(axis)[row[axis.key]]}" for name, axis in names)


def _count(sweep: Sweep, outcome: SweepOutcome) -> str:
    seeds = f", {sweep.seeds} seeds each" if sweep.seeds > 1 else ""
    combinations = units.counted(len(sweep) // sweep.seeds, "combination")
    said = f"{combinations}{seeds}: {units.counted(outcome.ran, 'run')} now"
    said += f", {outcome.before:,} done before" if outcome.before else ""
    said += f", {outcome.elsewhere:,} by other processes" if outcome.elsewhere else ""
    return said + (f", {len(outcome.failed):,} could not be run" if outcome.failed else "")


def _document(sweep: Sweep, outcome: SweepOutcome, where: str | None) -> dict[str, Any]:
    return {
        "axes": {axis.key: list(dict.fromkeys(axis.labels)) for axis in sweep.axes},
        "seeds": sweep.seeds,
        "scale": sweep.scale,
        "runs": len(sweep),
        "ran": outcome.ran,
        "done_before": outcome.before,
        "elsewhere": outcome.elsewhere,
        "failed": [
            {"key": run.key, **run.values, "error": error.message} for run, error in outcome.failed
        ],
        "summary": None if where is None else f"{where}/summary",
    }


def _table(sweep: Sweep, means: pl.DataFrame, line: str) -> Table:
    several = means.select("job", "ddir").n_unique() > 1
    names = ["job", "ddir"] if several else []
    told = [measure for measure in MEASURES if told_of(means, measure[0])]
    columns = [Column(axis.key) for axis in sweep.axes] + [Column(name) for name in names]
    columns += [Column(head, unit) for _, head, unit, _ in told]
    columns += [Column("spread of IOPS", "%")] if sweep.seeds > 1 else []
    columns += [Column("steady"), Column("key")]
    texts = {axis.key: texts_of(axis) for axis in sweep.axes}
    rows: list[Cells] = []
    for row in means.iter_rows(named=True):
        cells: Cells = [texts[axis.key][row[axis.key]] for axis in sweep.axes]
        cells += [row[name] for name in names]
        cells += [
            Cell(None if row[name] is None else factor * row[name]) for name, _, _, factor in told
        ]
        cells += [Cell(row["spread"])] if sweep.seeds > 1 else []
        rows.append([*cells, _share(row["steady"], row["runs"]), row["key"]])
    # Of several rows of a combination the first is led to.
    seen: set[str] = set()
    anchors = ["" if key in seen or seen.add(key) else key for key in means["key"]]  # type: ignore[func-returns-value]
    repeat = f"{line} --run KEY" if line else ""
    note = "The key is that of the first seed's run."
    note += f" One run with all there is to know of it: {repeat}" if line else ""
    return Table("Mean of each combination", columns, rows, note, anchors, repeat)


def _share(count: int, of: int) -> str:
    """Yes or no where all are alike."""
    return "yes" if count == of else f"{count} of {of}" if count else "no"


def _common(alike: Sequence[Mapping[str, object]]) -> str:
    """A combination, or what several have in common and how many they are."""
    first, *others = alike
    common = {k: v for k, v in first.items() if all(one.get(k) == v for one in others)}
    text = ", ".join(f"{key}={value}" for key, value in common.items())
    many = f"{len(alike):,} combinations"
    return f"{text} ({many})" if others and text else many if others else text


def failures(title: str, told: Sequence[tuple[Mapping[str, object], str]]) -> list[Table]:
    """The combinations of which nothing came by what they have in common, and why."""
    by_reason: dict[str, list[Mapping[str, object]]] = {}
    for values, why in told:
        by_reason.setdefault(why, []).append(values)
    rows = [[_common(alike), why] for why, alike in [*by_reason.items()][:FAILURES_MAX]]
    more = len(by_reason) - FAILURES_MAX
    note = f"{units.counted(more, 'other reason')} in the document of --json." if more > 0 else ""
    return [Table(title, [Column("combination"), Column("why")], rows, note)] if rows else []
