"""``ssdlab run``: a fio job on a target."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View
from ssdlab.cli.made import of
from ssdlab.cli.options import KeptBelow, LogFolder, PlanOnly, argument
from ssdlab.errors import InputError
from ssdlab.output import Output

if light.BODIES:
    from ssdlab import logfolder, units
    from ssdlab.answers.run import answer as run_answer
    from ssdlab.api.run import settings_of, watched
    from ssdlab.api.target import target_of
    from ssdlab.cli.output import keeping, results, say, write_json
    from ssdlab.jobfile import JobText, read_job
    from ssdlab.results import Result
    from ssdlab.store import RunStore, called, label
    from ssdlab.target import Settings, Target


@of("run")
def command(
    *,
    job: list[Path] = argument("JOB.fio", "fio job files; each is a run of its own."),
    out: KeptBelow = None,
    logs: LogFolder = None,
    plan: PlanOnly = False,
    view: View,
    ask: Ask,
) -> None:
    """Runs several jobs one after the other, and keeps what they did."""
    if plan:
        view.require_no_documents("--plan", "--json")
    if view.json_ is not None and len(job) > 1:
        raise InputError("--json takes the document of one job; give one job file")
    texts = [read_job(one) for one in job]
    target, rating = ask(target_of)
    settings = ask(settings_of, target, rating=rating, logs=logs is not None)
    if plan:
        _say_plans(target, texts, settings, view.json_)
        return
    store = RunStore(out)
    store.prepare()
    places = _log_folders(logs, job)
    if len(texts) > 1 or logs is not None:
        # The last job file should not turn out wrong after the first has run for an hour.
        for text, place in zip(texts, places, strict=True):
            shapes = target.shapes(text)
            if place is not None:
                logfolder.prepare(place, shapes)
    done: list[Result] = []
    for text, place in zip(texts, places, strict=True):
        started = time.monotonic()
        with store.keeping_broken():
            result = watched(target, text, settings, not view.quiet)
        store.save(result)
        if place is not None:
            with keeping(result.folder):
                logfolder.write(place, result)
        done.append(result)
        own = view if len(texts) == 1 else replace(view, report=None, csv=None, xlsx=None)
        show(result, text.name, own, time.monotonic() - started)
    shown = view.report or view.csv or view.xlsx
    if len(done) > 1 and shown is not None:
        replace(view, quiet=True).show(run_answer(done))
        say(view.console, f"wrote {shown}")


def _say_plans(
    target: Target, texts: list[JobText], settings: Settings, json_: Output | None
) -> None:
    """What each job would do; nothing is run, and nothing opened for writing."""
    plans = [asdict(target.preview(text, settings)) for text in texts]
    write_json(json_, [{"job": text.name, **plan} for text, plan in zip(texts, plans, strict=True)])
    console = results(json_)
    for text, plan in zip(texts, plans, strict=True):
        say(console, f"{text.name}: {plan['sentence']}; nothing was done yet")
        if plan["refused"] is not None:
            say(console, f"but as it is now it would be refused: {plan['refused']}")


def _log_folders(logs: Path | None, jobs: list[Path]) -> list[Path | None]:
    """Where the logs of each job file go: to ``logs``, below it where there are several."""
    if logs is None or len(jobs) == 1:
        return [logs] * len(jobs)
    names = [label(job.stem) for job in jobs]
    return [
        logs / (name if names.count(name) == 1 else f"{name}-{number}")
        for number, name in enumerate(names, start=1)
    ]


def show(result: Result, job: str, view: View, seconds: float) -> None:
    """Prints and writes what a run that has just been kept found."""
    answer = run_answer([result])
    simulated = units.duration(result.ssdlab.get("simulated_seconds"))
    clock = f", {simulated} simulated" if result.kind == "sim" else " with fio"
    seed = f", seed {result.ssdlab['seed']}" if result.kind == "sim" else ""
    title = f"{job} on {result.name}{result.resized}{clock}{seed}"
    assert result.folder is not None
    view.show(
        replace(answer, title=title),
        seconds=seconds,
        kept=result.folder,
        follow=f"ssdlab report {called(result.folder)}",
        document=result.told(),
    )
