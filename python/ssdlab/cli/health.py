"""``ssdlab health``: what drives report of themselves, for people, scripts and monitoring."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ssdlab.cli import light
from ssdlab.cli.answer import TroubleView
from ssdlab.cli.made import of
from ssdlab.cli.options import Redact, flag
from ssdlab.cli.options import document as document_option
from ssdlab.errors import InputError, SsdlabError
from ssdlab.output import Output

if light.BODIES:
    from ssdlab.answers import health as health_answer
    from ssdlab.api.looks import SCHEMA, health_of, surveyed
    from ssdlab.cli.output import check_stdout, on_stdout
    from ssdlab.smart import plugin, prometheus
    from ssdlab.smart.report import HealthReport, Reading, Unread, unread_error

EXIT_CODE = "--exit-code"

Prometheus = Annotated[
    Output | None,
    document_option(
        "--prometheus",
        help="Write metrics for the textfile collector of node_exporter; FILE ends in .prom.",
    ),
]


class PlugInCommand(TyperCommand):
    """The command, whose wrong options too have the status that a plug-in gives them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As the base class; with ``--exit-code`` a wrong option is "unknown"."""
        asked = EXIT_CODE in args
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # Typer's own exceptions, of which it exports none, carry their sentence.
            message = getattr(error, "format_message", None)
            if not asked or not (message or isinstance(error, SsdlabError)):
                raise
            print(plugin.failure(message() if message else str(error)))
            raise typer.Exit(plugin.State.UNKNOWN) from None


COMMAND_CLASS = PlugInCommand


@dataclass(frozen=True)
class HealthView(TroubleView):
    """How the answer is wanted, and where else it is written."""

    exit_code: bool = flag(
        "Answer as a monitoring plug-in (Nagios, Icinga): its first line with performance data, "
        "and exit status 0 good, 1 watch, 2 replace, 3 unknown or not readable.",
        EXIT_CODE,
    )
    json_lines: Output | None = document_option(
        "--json-lines",
        help="Write a JSON object per drive and line; to - each as soon as the drive is read.",
    )
    prometheus: Prometheus = None
    redact: Redact = False

    def check(self) -> None:
        """As the base class; a plug-in checks on its own, since its errors are its answer."""
        if not self.exit_code:
            self.check_places()

    def check_places(self) -> None:
        """Raises InputError where two want standard output, or a name is none for metrics."""
        check_stdout(self.documents, EXIT_CODE if self.exit_code else None)
        metrics = self.prometheus
        if metrics is not None and metrics.is_file and metrics.path.suffix != prometheus.SUFFIX:
            raise InputError(
                f"--prometheus {metrics}: the name must end in {prometheus.SUFFIX}, since "
                "node_exporter's textfile collector reads no other files"
            )

    def one(self, reading: Reading) -> None:
        """Writes what is written of each drive as it is read."""
        if on_stdout(self.json_lines):
            sys.stdout.write(_line(reading))
            sys.stdout.flush()

    def all(self, readings: Sequence[Reading]) -> None:
        """Writes what is written once all drives are read."""
        if self.json_lines is not None and not self.json_lines.is_stdout:
            self.json_lines.write("".join(map(_line, readings)))
        if self.prometheus is not None:
            self.prometheus.write(prometheus.exposition(readings, serials=not self.redact))


@of("health")
def command(
    targets: list[str],
    history: list[str] | None,
    tbw: str | None,
    attributes: bool,
    out: str | None,
    *,
    outputs: HealthView,
) -> None:
    """Writes of each drive as it is read, and answers as a plug-in where one is wanted."""

    def readings() -> list[Reading]:
        if outputs.exit_code:
            outputs.check_places()
        found = []
        redact = outputs.redact
        for one in surveyed(targets, history or [], tbw=tbw, out=out, redact=redact):
            outputs.one(one)
            found.append(one)
        outputs.all(found)
        return found

    if outputs.exit_code:
        raise typer.Exit(_answer_as_plug_in(readings, outputs, attributes=attributes))
    found = readings()
    _show(found, outputs, attributes=attributes)
    if (error := unread_error(found)) is not None:
        raise error


def _line(reading: Reading) -> str:
    return json.dumps({"schema": SCHEMA, **reading.document}, allow_nan=False) + "\n"


def _show(readings: Sequence[Reading], outputs: HealthView, *, attributes: bool) -> None:
    reports = [reading for reading in readings if isinstance(reading, HealthReport)]
    if not reports:
        return
    outputs.show(health_of(readings, attributes=attributes))
    if outputs.quiet:
        trouble = health_answer.findings(reports, calm=False)
        shown = [replace(trouble, title="")] if trouble.rows else []
        shown += health_answer.attribute_tables(reports) if attributes else []
        for table in shown:
            outputs.print_table(table)


def _answer_as_plug_in(
    readings: Callable[[], list[Reading]], outputs: HealthView, *, attributes: bool
) -> plugin.State:
    """Prints the line of a plug-in, and what there is to say besides; the exit status."""
    try:
        found = readings()
        words = io.StringIO()
        with contextlib.redirect_stdout(words):
            _show(found, outputs, attributes=attributes)
    except SsdlabError as error:
        print(plugin.failure(error.message))
        return plugin.State.UNKNOWN
    except OSError as error:
        print(plugin.failure(f"the system refuses: {error.strerror or error}"))
        return plugin.State.UNKNOWN
    print(plugin.first_line(found))
    print(plugin.plain(words.getvalue()), end="")
    for one in found if len(found) > 1 else []:
        if isinstance(one, Unread):
            print(plugin.plain(f"not read: {one.error.message}"))
    return plugin.state(found)
