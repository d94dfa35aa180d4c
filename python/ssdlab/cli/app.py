"""The commands put together."""

from __future__ import annotations

from typing import Annotated

import typer

from ssdlab.cli import (
    ab,
    array,
    audit,
    compare,
    explain,
    health,
    listing,
    plan,
    purge,
    refresh,
    reliability,
    report,
    reproduce,
    resume,
    run,
    scan,
    setup,
    show,
    test,
    trace,
    trim,
)

app = typer.Typer(
    name="ssdlab",
    help="A laboratory for solid-state storage: one fio job on simulated and real drives.",
    no_args_is_help=True,
    epilog="Exit status: 0 good, 1 the experiment failed, 2 the input is wrong, "
    "3 refused for safety, 130 stopped by Ctrl-C.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.command)
app.command("test")(test.command)
app.command("resume")(resume.command)
app.command("report")(report.command)
app.command("compare")(compare.command)
app.command("ab")(ab.command)
app.command("array")(array.command)
app.command("explain")(explain.command)
app.command("list")(listing.command)
app.command("show")(show.command)
app.command("reproduce")(reproduce.command)
app.command("health", cls=health.PlugInCommand)(health.command)
app.command("audit")(audit.command)
app.command("setup")(setup.command)
app.command("scan")(scan.command)
app.command("trim")(trim.command)
app.command("purge")(purge.command)
app.command("refresh")(refresh.command)
app.command("reliability")(reliability.command)


def _version(wanted: bool) -> None:
    if wanted:
        from ssdlab import __version__

        typer.echo(f"ssdlab {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


app.add_typer(trace.app, name="trace")
app.add_typer(plan.app, name="plan")
