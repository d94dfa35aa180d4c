"""``ssdlab reproduce``: published experiments on simulated drives, the two side by side."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ssdlab.cli import light
from ssdlab.cli.options import Json, Quiet
from ssdlab.errors import InputError
from ssdlab.output import Output, make_folder, write_to

if light.BODIES:
    from rich.console import Console

    from ssdlab.cli.console import duration, progress, stdout, table
    from ssdlab.cli.output import results, write_json
    from ssdlab.experiments import find
    from ssdlab.experiments.base import Experiment, Line, Mode, Outcome
    from ssdlab.experiments.runner import run


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help=f"{', '.join(light.index()['experiments'])}; all without a name.",
            autocompletion=light.complete("experiments"),
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Very small drives: a few minutes in all, rough.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Drives and times at full size.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of the runs.")] = 1,
    json_: Json = None,
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
    pages = pages_in(experiments, output)
    mode: Mode = "quick" if quick else "full" if full else "reduced"
    started = time.monotonic()
    what = experiments[0].name if len(experiments) == 1 else f"{len(experiments)} experiments"
    with progress(what, quiet=quiet) as callback:
        outcomes = run(experiments, mode, seed=seed, progress=callback)
    write_pages(outcomes, pages)
    write_json(json_, _document(outcomes))
    if not quiet:
        console = results(json_)
        for outcome in outcomes:
            _print(outcome, console)
        took = duration(time.monotonic() - started)
        said = f"wrote {pages[-1]} and {len(pages) - 1} more" if pages[1:] else f"wrote {pages[0]}"
        console.print(f"{said}, after {took}", markup=False, soft_wrap=True)


def _save_jobs(experiments: list[Experiment], folder: Path) -> None:
    make_folder(folder)
    files = {n: text for one in experiments for n, text in one.job_files().items()}
    for name, text in files.items():
        write_to(folder / name, text)
    stdout().print(f"wrote {len(files)} job files to {folder}", markup=False, soft_wrap=True)


def pages_in(experiments: list[Experiment], folder: Path) -> list[Output]:
    """The places of the pages, each opened: one for each experiment, and for several one of all."""
    names = [one.name for one in experiments] + ["index"] * (len(experiments) > 1)
    return [Output(make_folder(folder) / f"{name}.html") for name in names]


def write_pages(outcomes: list[Outcome], pages: list[Output]) -> None:
    """A page for each experiment, and for several one with all of them, which comes last."""
    from ssdlab.report import reproduction  # heavy: only where it is used

    shown = [[one] for one in outcomes] + [outcomes] * (len(outcomes) > 1)
    for some, page in zip(shown, pages, strict=True):
        reproduction.render(some, page)


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
