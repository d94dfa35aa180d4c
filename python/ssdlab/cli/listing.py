"""``ssdlab list``: what there is to name."""

from __future__ import annotations

from typing import Annotated

import typer

from ssdlab import _core
from ssdlab.cli import light
from ssdlab.cli.options import Json, KeptWhere
from ssdlab.errors import InputError, unknown_name

if light.BODIES:
    from ssdlab.answers.kept import RUN_HEADS, run_row
    from ssdlab.arrays.attachment import shipped_attachments
    from ssdlab.audits import CHECKS
    from ssdlab.cli.answer import print_rows
    from ssdlab.cli.console import stdout
    from ssdlab.cli.output import on_stdout, write_json
    from ssdlab.rig import profiles
    from ssdlab.store import RunStore
    from ssdlab.tuning import PRESETS, SETTINGS

KINDS = (
    "drives",
    "parts",
    "controllers",
    "protocols",
    "devices",
    "policies",
    "options",
    "traces",
    "checks",
    "setups",
    "runs",
)


def command(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help=f"What to list: {', '.join(KINDS)}.",
            autocompletion=lambda incomplete: [k for k in KINDS if k.startswith(incomplete)],
        ),
    ],
    out: KeptWhere = None,
    json_: Json = None,
) -> None:
    """List what can be named: drives, protocols, policies, checks, setups, runs and more."""
    if kind not in KINDS:
        raise unknown_name("list", kind, KINDS)
    wrong: list[InputError] = []
    if kind == "runs":
        runs, wrong = RunStore(out).listing()
        headings, rows = list(RUN_HEADS), [run_row(one) for one in runs]
    else:
        headings, rows = _rows(kind)
    write_json(json_, [dict(zip(headings, row, strict=True)) for row in rows])
    if rows and not on_stdout(json_):
        print_rows(stdout(), headings, rows)
    if wrong:
        more = f"; {len(wrong) - 1} more runs are damaged" if wrong[1:] else ""
        raise InputError(wrong[0].message + more)
    if not rows and not on_stdout(json_):
        stdout().print(f"there are no {kind} yet")


def _rows(kind: str) -> tuple[list[str], list[list[str]]]:
    if kind == "drives":
        return ["drive", "what it is"], [[one.name, one.summary] for one in profiles()]
    if kind == "controllers":
        found = shipped_attachments()
        return ["controller", "what it is"], [[k, one.summary] for k, one in found.items()]
    if kind == "protocols":
        from ssdlab.engine.protocol import GROUPS
        from ssdlab.protocols import protocols

        return ["protocol", "what it answers", "kind"], [
            [one.name, one.summary, GROUPS[one.group]] for one in protocols()
        ]
    if kind == "setups":
        return ["setup", "what it sets", "values", "with pts", "source"], [
            *([name, words, "", "", ""] for name, words in PRESETS.items()),
            *([f"{s.name}=", s.summary, s.values, s.in_pts, s.source] for s in SETTINGS),
        ]
    if kind == "traces":
        from ssdlab.cli.trace import FORMAT_HEADS, format_rows

        return FORMAT_HEADS, format_rows()
    if kind == "checks":
        from ssdlab.checks import probes

        return ["check of", "name", "what it looks at"], [
            *(["a run", one.name, one.looks_for] for one in probes()),
            *(["an audit", one.name, one.summary] for one in CHECKS),
        ]
    if kind == "options":
        return ["option", "also", "simulated", "meaning"], [
            [one["name"], ", ".join(one["aliases"]), one["effect"], one["summary"]]
            for one in _core.job_options()
        ]
    own = {"devices": "device", "parts": "NAND part"}
    other = (*own.values(), "trace format")
    entries_ = [
        e
        for e in _core.registries()
        if (e["kind"] == own[kind] if kind in own else e["kind"] not in other)
    ]
    if kind in own:
        return [own[kind], "what it is"], [[e["name"], e["summary"]] for e in entries_]
    return ["kind", "policy", "what it does"], [
        [e["kind"], e["name"], e["summary"]] for e in entries_
    ]
