"""``ssdlab trace``: recorded loads characterised, in other formats, as jobs, and replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ssdlab import _core
from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering, print_rows
from ssdlab.cli.made import load, of
from ssdlab.cli.options import Json, KeptBelow, Quiet, argument, flag, opened, option
from ssdlab.errors import InputError
from ssdlab.output import Output
from ssdlab.tracefile import Reading, damage

if light.BODIES:
    from ssdlab.api import run
    from ssdlab.api.traces import reading
    from ssdlab.cli.output import (
        check_stdout,
        on_stdout,
        progress,
        results,
        say,
        stdout,
        write_json,
    )
    from ssdlab.cli.run import show
    from ssdlab.given import share as share_of
    from ssdlab.store import RunStore
    from ssdlab.traces import fit, profile
    from ssdlab.traces.convert import convert as convert_trace

app = typer.Typer(
    name="trace",
    help="Recorded block traces: characteristics, other formats, jobs, replay.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
FORMAT_HEADS = ["format", "what it is", "written", "loses when written"]
OutFile = Annotated[
    Output,
    argument("OUT|-", "File to write; .gz, .zst and .xz compress.", parser=str, callback=opened),
]
To = Annotated[str | None, option("FORMAT", "Format to write (else as the name says).")]


app.command("info")(load("trace"))


@app.command("convert")
@of("trace", says=False)
def convert(
    trace: str,
    out: OutFile,
    *,
    to: To = None,
    file: str = option("NAME", "File or device that an iolog names.", default="trace.dat"),
    json_: Json = None,
    quiet: Quiet = False,
    ask: Ask,
) -> None:
    """Write a trace in another format."""
    _written(trace, out, to, ask(reading), file, json_, quiet)


@app.command("sample")
@of("trace", says=False)
def sample(
    trace: str,
    window: str | None,
    out: OutFile,
    *,
    share: str | None = option(
        "PERCENT",
        "Percent of the addresses, in whole chunks of 1 MiB chosen by a hash: all of their "
        "requests stay, with their times.",
    ),
    to: To = None,
    json_: Json = None,
    quiet: Quiet = False,
    ask: Ask,
) -> None:
    """Write a part of a trace: a share of its addresses, a window of its time."""
    if share is None and window is None:
        raise InputError("give --share PERCENT, --window FROM-TO, or both")
    part = share_of("--share", share, "write a percentage above 0, such as 10")
    _written(trace, out, to, ask(reading, share=part or 1.0), "trace.dat", json_, quiet)


def _written(
    trace: str,
    out: Output,
    to: str | None,
    how: Reading,
    file: str,
    json_: Output | None,
    quiet: bool,
) -> None:
    check_stdout({"OUT": out, "--json": json_})
    with progress(f"writing {out}", quiet=quiet) as callback:
        done = convert_trace(Path(trace), out, to, how, file=file, progress=callback)
    write_json(json_, done)
    if quiet:
        return
    console = results(json_, out)
    left = f", {done['left_out']:,} that it cannot say are left out" if done["left_out"] else ""
    say(console, f"{out}: {done['requests']:,} requests as {done['to']}{left}")
    for sentence in damage(done):
        say(console, sentence)
    if done["loses"]:
        say(console, f"this format does not keep: {done['loses']}")


@app.command("to-fio")
@of("trace", says=False)
def to_fio(
    trace: str,
    job: Output = argument("JOB.fio|-", "Job file to write.", parser=str, callback=opened),
    *,
    fit_: bool = flag(
        "Not the requests themselves, but a job with their mix, sizes, hot spots, order and rate."
    ),
    file: str = option("NAME", "File or device that the iolog names.", default="trace.dat"),
    json_: Json = None,
    quiet: Quiet = False,
    ask: Ask,
) -> None:
    """Write a job for fio that replays the trace (with an iolog beside it), or behaves like it."""
    check_stdout({"JOB.fio": job, "--json": json_})
    if not (fit_ or job.is_file):
        raise InputError(f"{job}: the iolog goes beside the job; name a plain file, or give --fit")
    iolog = None if fit_ else Output(job.path.with_suffix(".iolog"))
    how, path = ask(reading), Path(trace)
    with progress(f"reading {trace}", quiet=quiet) as callback:
        found = profile.profile(path, how, callback)
    notes: list[str] = []
    files = [str(job)]
    if iolog is None:
        if not found["requests_by_kind"]["read"] + found["requests_by_kind"]["write"]:
            raise InputError(f"{trace}: neither reads nor writes, so there is nothing to fit")
        text, notes = fit.fitted_job(path.name, found)
    else:
        with progress(f"writing {iolog}", quiet=quiet) as callback:
            convert_trace(path, iolog, "iolog-v3", how, file=file, progress=callback)
        text = fit.replay_job(path.name, iolog.path.name, found)
        files.append(str(iolog))
    notes += damage(found["oddities"])
    job.write(text)
    write_json(json_, {"files": files, "job": text, "notes": notes})
    if quiet:
        return
    console = results(json_, job)
    say(console, text.rstrip())
    say(console, f"written: {', '.join(files)}")
    for note in notes:
        say(console, f"note: {note}")


@app.command("list")
@answering
def list_(json_: Json = None) -> None:
    """List the formats of traces."""
    rows = format_rows()
    write_json(json_, cast("list[dict[str, Any]]", _core.trace_formats()))
    if not on_stdout(json_):
        print_rows(stdout(), FORMAT_HEADS, rows)


def format_rows() -> list[list[str]]:
    """A row for each format."""
    return [
        [one["name"], one["summary"], "yes" if one["writable"] else "", one["loses"]]
        for one in _core.trace_formats()
    ]


@app.command("replay")
@of("replay")
def replay(trace: str, *, out: KeptBelow = None, view: View, ask: Ask) -> None:
    """Keeps the run, also one that broke off."""
    store = RunStore(out)
    store.prepare()
    with store.keeping_broken():
        result = ask(run.replay)
    store.save(result)
    show(result, Path(trace).name, view, ask.seconds)
