"""``ssdlab run``: a fio job on a target."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ssdlab import logfolder, tuning, units
from ssdlab.answer import MARK, MARK_NOTE, any_doubt
from ssdlab.checks import examine, of_result
from ssdlab.cli.answer import print_checks
from ssdlab.cli.console import progress, stderr, table
from ssdlab.cli.options import (
    Destroy,
    Json,
    KeptBelow,
    LogFolder,
    Quiet,
    Redact,
    Seed,
    SetKeys,
    SetUp,
    Tbw,
    UseExistingFile,
    rated,
)
from ssdlab.cli.output import results, say, write_json
from ssdlab.engine.ratings import rating_for
from ssdlab.errors import InputError
from ssdlab.jobfile import JobText, read_job
from ssdlab.output import Output
from ssdlab.rating import Rating
from ssdlab.results import Result
from ssdlab.rig import profiles, resolve
from ssdlab.store import RunStore, label
from ssdlab.target import Fio, Settings, Target
from ssdlab.units import size_text


def profile_names(incomplete: str) -> list[str]:
    """Completion of targets."""
    return [one.name for one in profiles() if one.name.startswith(incomplete)]


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
            autocompletion=profile_names,
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
    json_: Json = None,
    out: KeptBelow = None,
    logs: LogFolder = None,
    redact: Redact = False,
    destroy: Destroy = None,
    setup: SetUp = tuning.NONE,
    use_existing_file: UseExistingFile = False,
    tbw: Tbw = None,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", "-n", help="Say what would be done and what would be refused; do nothing."
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run fio jobs on a simulated or real drive."""
    if json_ is not None and len(jobs) > 1:
        raise InputError("--json takes the document of one job; give one job file")
    overrides = dict(override(text) for text in set_ or [])
    texts = [read_job(job) for job in jobs]
    target = resolve(
        on, destroy=destroy, use_existing=use_existing_file, redact=redact, setup=setup
    )
    rating = rating_for(target, rated(tbw))
    if plan:
        _say_plans(target, texts, rating, json_)
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
    for text, place in zip(texts, places, strict=True):
        started = time.monotonic()
        with progress(f"{text.name} on {target.name}", quiet=quiet) as callback:
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
        folder = store.save(result)
        if place is not None:
            logfolder.write(place, result)
        if json_ is not None:
            json_.write(result.json() + "\n")
        if not quiet:
            seconds = time.monotonic() - started
            print_result(result, text.name, folder, seconds, results(json_))


def _say_plans(
    target: Target, texts: list[JobText], rating: Rating | None, json_: Output | None
) -> None:
    """What each job would do; nothing is run, and nothing opened for writing."""
    plans: list[dict[str, object]] = []
    for text in texts:
        if isinstance(target, Fio):
            plans.append(asdict(target.preview(text, Settings(rating=rating))))
        else:
            target.check(text)
            said = f"{target.name}: is simulated, so no drive is written"
            plans.append({"sentence": said, "refused": None})
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


OPTIONS_SAID = {
    "added_options": "set by ssdlab for fio",
    "replaced_options": "decided by the target instead",
    "ignored_options": "ignored, without meaning here",
}
"""What became of a job's options, by the list in the document."""


def print_result(result: Result, job: str, folder: Path, seconds: float, console: Console) -> None:
    """Says what a run found."""
    console.print(_headline(result, job, seconds), markup=False, soft_wrap=True)
    columns = [("job", "left"), ("direction", "left"), ("I/Os", "right"), ("amount", "right")]
    columns += [("IOPS", "right"), ("throughput", "right")]
    columns += [(f"latency {name}", "right") for name in ("mean", "p50", "p99", "p99.9", "max")]
    checks = examine(of_result(result))
    rows = summary_rows(result)
    amplified = [waf_text(result, row) for row in rows]
    if any(amplified):
        columns.append(("write ampl.", "right"))
        rows = [[*row, text] for row, text in zip(rows, amplified, strict=True)]
    if doubted := any_doubt(checks):
        rows = [
            [*row[:COUNTED], *(f"{text}{MARK}" if text else "" for text in row[COUNTED:])]
            for row in rows
        ]
    console.print(table(columns, rows))
    if doubted:
        console.print(MARK_NOTE, markup=False)
    for key, what in OPTIONS_SAID.items():
        if said := result.ssdlab.get(key):
            names = ", ".join(dict.fromkeys(str(one["option"]) for one in said))
            console.print(f"{what}: {names}", markup=False, soft_wrap=True)
    print_checks(console, checks)
    console.print(f"kept in {folder}", markup=False, soft_wrap=True)


COUNTED = 4
"""The first columns of the table say what was done; the others what was measured."""


def _headline(result: Result, job: str, seconds: float) -> str:
    about = result.ssdlab
    if result.kind != "sim":
        return f"ran {job} on {result.name} with fio in {units.duration(seconds)}"
    simulated = float(about.get("simulated_seconds", 0.0))
    waf = "" if result.waf is None else f", write amplification {result.waf:.2f}"
    return (
        f"ran {job} on {result.name}: {units.duration(simulated)} simulated "
        f"in {units.duration(seconds)}, seed {about.get('seed')}{waf}"
    )


def waf_text(result: Result, row: list[str]) -> str:
    """Write amplification while the job of a row of the table ran; empty where nothing is known."""
    waf = result.job_waf(row[0]) if row[1] != "read" else None
    return "" if waf is None else f"{waf:.2f}"


def summary_rows(result: Result) -> list[list[str]]:
    """The rows of the table: one per job and direction, values with units."""
    return [
        [
            row["job"],
            row["ddir"],
            f"{row['ios']:,}",
            size_text(row["io_bytes"]),
            units.number(row["iops"]),
            units.speed(None if row["bw_bytes"] is None else row["bw_bytes"] / 1e6),
            units.latency(row["clat_mean_ns"]),
            units.latency(row["clat_p50_ns"]),
            units.latency(row["clat_p99_ns"]),
            units.latency(row["clat_p999_ns"]),
            units.latency(row["clat_max_ns"]),
        ]
        for row in result.frame().iter_rows(named=True)
    ]
