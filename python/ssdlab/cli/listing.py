"""``ssdlab list``: what there is to name."""

from __future__ import annotations

from ssdlab import _core
from ssdlab.cli import light
from ssdlab.cli.answer import answering
from ssdlab.cli.options import Json, KeptWhere, argument
from ssdlab.errors import InputError, known_name

if light.BODIES:
    from ssdlab.cli.answer import print_rows
    from ssdlab.cli.output import on_stdout, stdout, write_json
    from ssdlab.rig import profiles

KINDS = """
    drives parts interfaces controllers protocols experiments workloads devices policies options
    traces checks setups runs
""".split()


@answering
def command(
    kind: str = argument(
        "KIND",
        f"What to list: {', '.join(KINDS)}.",
        autocompletion=lambda incomplete: [k for k in KINDS if k.startswith(incomplete)],
    ),
    out: KeptWhere = None,
    json_: Json = None,
) -> None:
    """List what can be named: drives, protocols, policies, checks, setups, runs and more."""
    known_name("list", kind, KINDS)
    if out is not None and kind != "runs":
        raise InputError("--out is for runs: the folder where they are kept")
    wrong: list[InputError] = []
    if kind == "runs":
        from ssdlab.answers.kept import RUN_HEADS, run_row
        from ssdlab.store import RunStore

        runs, wrong = RunStore(out).listing()
        headings, rows = list(RUN_HEADS), [run_row(run) for run in runs]
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
        return ["drive", "what it is"], [[profile.name, profile.summary] for profile in profiles()]
    if kind == "controllers":
        from ssdlab.arrays.attachment import shipped_attachments

        attachments = shipped_attachments()
        return ["controller", "what it is"], [
            [k, attachment.summary] for k, attachment in attachments.items()
        ]
    if kind == "protocols":
        from ssdlab.engine.protocol import GROUPS
        from ssdlab.protocols import protocols

        return ["protocol", "what it answers", "kind"], [
            [protocol.name, protocol.summary, GROUPS[protocol.group]] for protocol in protocols()
        ]
    if kind == "experiments":
        from ssdlab.experiments import EXPERIMENTS, measured

        one = "the same of this drive alone"
        return ["experiment", "what is repeated"], [
            *([experiment.name, experiment.title] for experiment in EXPERIMENTS),
            *([f"{measured.EXPERIMENT.name} {drive}", one] for drive in measured.DRIVES),
        ]
    if kind == "workloads":
        from ssdlab.arrays.workloads import WORKLOADS

        return ["workload", "options of its job"], [
            [load.name, " ".join(load.options.split())] for load in WORKLOADS
        ]
    if kind == "setups":
        from ssdlab.tuning import PRESETS, SETTINGS

        return ["setup", "what it sets", "values", "with pts", "source"], [
            *([name, words, "", "", ""] for name, words in PRESETS.items()),
            *([f"{s.name}=", s.summary, s.values, s.in_pts, s.source] for s in SETTINGS),
        ]
    if kind == "traces":
        from ssdlab.cli.trace import FORMAT_HEADS, format_rows

        return FORMAT_HEADS, format_rows()
    if kind == "checks":
        from ssdlab.audits import CHECKS
        from ssdlab.checks import probes

        return ["check of", "name", "what it looks at"], [
            *(["a run", probe.name, probe.looks_for] for probe in probes()),
            *(["an audit", check.name, check.summary] for check in CHECKS),
        ]
    if kind == "options":
        return ["option", "also", "simulated", "meaning"], [
            [option["name"], ", ".join(option["aliases"]), option["effect"], option["summary"]]
            for option in _core.job_options()
        ]
    own = {"devices": "device", "parts": "NAND part", "interfaces": "host interface"}
    other = (*own.values(), "trace format", "class of drive")
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
