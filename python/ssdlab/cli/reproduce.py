"""``ssdlab reproduce``: published experiments on simulated drives, the two side by side."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ssdlab.cli.console import duration, progress, stdout, table
from ssdlab.cli.options import Quiet
from ssdlab.cli.output import check_place, results, write_json
from ssdlab.errors import InputError
from ssdlab.experiments import EXPERIMENTS, find
from ssdlab.experiments.base import Experiment, Line, Mode, Outcome
from ssdlab.experiments.runner import run
from ssdlab.store import writing


def _names(incomplete: str) -> list[str]:
    return [one.name for one in EXPERIMENTS if one.name.startswith(incomplete)]


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help=f"{', '.join(one.name for one in EXPERIMENTS)}; all without a name.",
            autocompletion=_names,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Very small drives: a few minutes in all, rough.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Drives and times at full size.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of the runs.")] = 1,
    json_: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE|-", help="Write the table there, as JSON."),
    ] = None,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="DIR", help="Folder for the pages."),
    ] = Path("reproduce"),
    save_jobs: Annotated[
        Path | None,
        typer.Option(
            "--save-jobs",
            metavar="DIR",
            help="Only write the job files, as they run on a real drive.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Repeat published experiments on simulated drives; print published beside simulated."""
    experiments = find(names or [])
    if quick and full:
        raise InputError("--quick and --full exclude each other; give one of them")
    if save_jobs is not None:
        _save_jobs(experiments, save_jobs)
        return
    check_place(json_)
    with writing(output):
        output.mkdir(parents=True, exist_ok=True)
    mode: Mode = "quick" if quick else "full" if full else "reduced"
    started = time.monotonic()
    what = experiments[0].name if len(experiments) == 1 else f"{len(experiments)} experiments"
    with progress(what, quiet=quiet) as callback:
        outcomes = run(experiments, mode, seed=seed, progress=callback)
    pages = write_pages(outcomes, output)
    write_json(json_, _document(outcomes))
    if not quiet:
        console = results(json_)
        for outcome in outcomes:
            _print(outcome, console)
        took = duration(time.monotonic() - started)
        said = f"wrote {pages[-1]} and {len(pages) - 1} more" if pages[1:] else f"wrote {pages[0]}"
        console.print(f"{said}, after {took}", markup=False, soft_wrap=True)


def _save_jobs(experiments: list[Experiment], folder: Path) -> None:
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        files = {n: text for one in experiments for n, text in one.job_files().items()}
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8")
    stdout().print(f"wrote {len(files)} job files to {folder}", markup=False, soft_wrap=True)


def write_pages(outcomes: list[Outcome], folder: Path) -> list[Path]:
    """A page for each experiment, and for several one with all of them, which comes last."""
    from ssdlab.report import reproduction  # heavy: only where it is used

    pages = []
    for outcome in outcomes:
        pages.append(folder / f"{outcome.experiment.name}.html")
        reproduction.render([outcome], pages[-1])
    if len(outcomes) > 1:
        pages.append(folder / "index.html")
        reproduction.render(outcomes, pages[-1])
    return pages


def _document(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    return [
        line.as_json(outcome.experiment.name)
        for outcome in outcomes
        for line in outcome.findings.lines
    ]


def _print(outcome: Outcome, console: Console) -> None:
    size = "at full size" if outcome.factor == 1 else f"at 1/{outcome.factor} of its size"
    rough = ", a quick look: rough" if outcome.mode == "quick" else ""
    console.print(
        f"{outcome.experiment.name}: {outcome.experiment.article}; simulated {size}{rough}",
        markup=False,
        soft_wrap=True,
    )
    columns = [("drive", "left"), ("quantity", "left"), ("unit", "left")]
    columns += [(name, "right") for name in ("published", "simulated", "ratio")]
    columns += [("kind", "left")]
    console.print(table(columns, [_row(line) for line in outcome.findings.lines]))


def _row(line: Line) -> list[str]:
    one = line.published
    ratio = "-" if line.ratio is None else f"{line.ratio:.2f}"
    return [
        one.drive,
        one.quantity,
        one.unit,
        _figures(one.value),
        _figures(line.simulated),
        ratio,
        one.kind,
    ]


def _figures(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
