"""``ssdlab report``: one HTML file from any number of runs, or from that of a protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from ssdlab.cli import light
from ssdlab.cli.options import KeptWhere, Page
from ssdlab.errors import InputError
from ssdlab.output import Output

if light.BODIES:
    from ssdlab.cli.output import results
    from ssdlab.engine.folder import RunFolder, is_protocol_run
    from ssdlab.results import Result
    from ssdlab.store import RunStore


def command(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Run folders, or ids as `ssdlab list runs` shows them.",
            autocompletion=light.complete_runs,
        ),
    ],
    output: Page = None,
    title: Annotated[str | None, typer.Option("--title", help="Heading of the report.")] = None,
    out: KeptWhere = None,
) -> None:
    """Write one HTML report (report.html) that compares runs, or shows what a protocol found."""
    output = output or Output("report.html")
    store = RunStore(out)
    folders = [store.find(run) for run in runs]
    tests = [folder for folder in folders if is_protocol_run(folder)]
    if tests and len(folders) > 1:
        raise InputError(
            f"{tests[0].name}: is the run of a protocol, which has a report of its own; "
            "ssdlab compare puts several side by side"
        )
    if tests:
        from ssdlab.answers import protocol
        from ssdlab.engine import findings
        from ssdlab.report import answer_page  # heavy: only where it is used

        run = findings.read(RunFolder.open(tests[0]))
        answer_page.render(protocol.answer(run), output, title=title)
    else:
        from ssdlab.answers.run import answer
        from ssdlab.report import answer_page  # heavy: only where it is used

        answer_page.render(answer([Result.load(one) for one in folders]), output, title=title)
    results(output).print(f"wrote {output}", markup=False, soft_wrap=True)
