"""``ssdlab run``: a fio job on a target."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import (
    Destroy,
    KeptBelow,
    LogFolder,
    Redact,
    Seed,
    SetKeys,
    SetUp,
    Tbw,
    UseExistingFile,
    rated,
)
from ssdlab.errors import InputError
from ssdlab.output import Output

if light.BODIES:
    from ssdlab import logfolder, units
    from ssdlab.answers.run import answer as run_answer
    from ssdlab.cli.console import progress, stderr
    from ssdlab.cli.output import results, say, write_json
    from ssdlab.engine.ratings import rating_for
    from ssdlab.jobfile import JobText, read_job
    from ssdlab.rating import Rating
    from ssdlab.results import Result
    from ssdlab.rig import resolve
    from ssdlab.store import RunStore, label
    from ssdlab.target import Settings, Target


@answering
def command(
    jobs: Annotated[
        list[Path],
        typer.Argument(metavar="JOB.fio", help="fio job files; each is a run of its own."),
    ],
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="TARGET",
            help="A profile's name, a rig file (.toml), a plain file, or a block device.",
            autocompletion=light.complete("drives"),
        ),
    ],
    set_: SetKeys = None,
    seed: Seed = 1,
    prepare: Annotated[
        str | None,
        typer.Option(
            "--prepare",
            metavar="STATE",
            help="State of a simulated drive at the start: fob, or steps joined by commas: "
            "sequential, random:N, steady, trim, purge, idle:TIME, compressible:N (the data of the "
            "steps after it shrinks by N percent).",
        ),
    ] = None,
    out: KeptBelow = None,
    logs: LogFolder = None,
    redact: Redact = False,
    destroy: Destroy = None,
    setup: SetUp = "none",
    use_existing_file: UseExistingFile = False,
    tbw: Tbw = None,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", "-n", help="Say what would be done and what would be refused; do nothing."
        ),
    ] = False,
    *,
    view: View,
) -> None:
    """Run fio jobs on a simulated or real drive."""
    if view.json_ is not None and len(jobs) > 1:
        raise InputError("--json takes the document of one job; give one job file")
    overrides = dict(override(text) for text in set_ or [])
    texts = [read_job(job) for job in jobs]
    target = resolve(
        on, destroy=destroy, use_existing=use_existing_file, redact=redact, setup=setup
    )
    rating = rating_for(target, rated(tbw))
    if plan:
        _say_plans(target, texts, rating, view.json_)
        return
    store = RunStore(out)
    store.prepare()
    places = _log_folders(logs, jobs)
    if len(texts) > 1 or logs is not None:
        # The last job file should not turn out wrong after the first has run for an hour.
        for text, place in zip(texts, places, strict=True):
            shapes = target.shapes(text)
            if place is not None:
                logfolder.prepare(place, shapes)
    done: list[Result] = []
    for text, place in zip(texts, places, strict=True):
        started = time.monotonic()
        with progress(f"{text.name} on {target.name}", quiet=view.quiet) as callback:
            settings = Settings(
                seed=seed,
                prepare=prepare,
                overrides=overrides,
                progress=callback,
                notice=notice,
                logs=place is not None,
                rating=rating,
            )
            result = target.run(text, settings)
        store.save(result)
        if place is not None:
            logfolder.write(place, result)
        done.append(result)
        own = view if len(texts) == 1 else replace(view, report=None, csv=None, xlsx=None)
        show(result, text.name, own, time.monotonic() - started)
    shown = view.report or view.csv or view.xlsx
    if len(done) > 1 and shown is not None:
        replace(view, quiet=True).show(run_answer(done))
        say(view.console, f"wrote {shown}")


def _say_plans(
    target: Target, texts: list[JobText], rating: Rating | None, json_: Output | None
) -> None:
    """What each job would do; nothing is run, and nothing opened for writing."""
    plans = [asdict(target.preview(text, Settings(rating=rating))) for text in texts]
    write_json(json_, [{"job": text.name, **one} for text, one in zip(texts, plans, strict=True)])
    console = results(json_)
    for text, one in zip(texts, plans, strict=True):
        say(console, f"{text.name}: {one['sentence']}; nothing was done yet")
        if one["refused"] is not None:
            say(console, f"but as it is now it would be refused: {one['refused']}")


def _log_folders(logs: Path | None, jobs: list[Path]) -> list[Path | None]:
    """Where the logs of each job file go: to ``logs``, below it where there are several."""
    if logs is None or len(jobs) == 1:
        return [logs] * len(jobs)
    names = [label(job.stem) for job in jobs]
    return [
        logs / (name if names.count(name) == 1 else f"{name}-{number}")
        for number, name in enumerate(names, start=1)
    ]


def override(text: str) -> tuple[str, str]:
    """Key and value of ``--set``."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f'--set "{text}": write it as KEY=VALUE, such as capacity=4GiB')
    return key.strip(), value.strip()


def notice(sentence: str) -> None:
    """Says a sentence on stderr."""
    stderr().print(sentence, markup=False, soft_wrap=True)


def show(result: Result, job: str, view: View, seconds: float) -> None:
    """Prints and writes what a run that has just been kept found."""
    found = run_answer([result])
    simulated = units.duration(result.ssdlab.get("simulated_seconds"))
    clock = f", {simulated} simulated" if result.kind == "sim" else " with fio"
    seed = f", seed {result.ssdlab['seed']}" if result.kind == "sim" else ""
    title = f"{job} on {result.name}{clock}{seed}"
    assert result.folder is not None
    view.show(
        replace(found, title=title),
        seconds=seconds,
        kept=result.folder,
        follow=f"ssdlab report {result.folder.name}",
        whole=True,
        document=result.told(),
    )
