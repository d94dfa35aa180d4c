"""Runs of job files as an answer: what every job did in its measurement window, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ssdlab import tuning, units
from ssdlab.analysis import names
from ssdlab.analysis.comparison import align
from ssdlab.answer import Answer, Check, Section
from ssdlab.answers import charts
from ssdlab.answers.charts import WORTH, ShownResult, Trace
from ssdlab.answers.head import doing, largest, lead, main_of, title, told_of
from ssdlab.answers.job_tables import (
    causes_table,
    evenness_table,
    kinds_table,
    smart_table,
    time_table,
)
from ssdlab.answers.power import volatile_writes
from ssdlab.checks import examine, of_result
from ssdlab.errors import InputError
from ssdlab.results import SYNC, Result
from ssdlab.wear import Wear

RIPPLE = 0.05
"""A rate that repeats itself within less of its highest is called even."""
STALL_SHARE = 0.01
"""Stalls are worth a sentence from this share of seconds below half of the mean."""


def answer(results: Sequence[Result]) -> Answer:
    """The answer of one run, or of several beside each other; InputError where there are no
    results."""
    if not results:
        raise InputError("nothing to report: there is no result")
    runs = _runs(results)
    jobs = _jobs(runs)
    main = main_of(jobs)
    sections = [lead(runs, jobs, main)]
    last = jobs[-1][0].job.name if jobs else ""
    for number, traces in enumerate(jobs):
        leads = bool(main) and main[0].job.name == traces[0].job.name
        brief = not leads and traces[0].job.workload.fills(last)
        sections.append(_section(f"job-{number}", traces, leads=leads, brief=brief))
    worn = {t.run.place: t for traces in jobs for t in traces if t.wear is not None}
    if (smart := smart_table(list(worn.values()))).rows:
        # Of the end of the run, whichever job it is asked of.
        sections[-1] = replace(sections[-1], tables=[*sections[-1].tables, smart])
    return Answer(
        title=title(runs, told_of(jobs, main)),
        kind="run",
        sections=sections,
        checks=_checks(runs),
        marks=frozenset(t.source for traces in jobs for t in traces if t.doubted),
        notes=_notes(runs),
        texts=_texts(runs),
        facts={k: v for run in runs for k, v in _facts(run, several=len(runs) > 1).items()},
        data=_data(runs),
    )


def traces_of(results: Sequence[Result]) -> list[list[Trace]]:
    """The directions of each job on all runs that have it, in the order of the jobs."""
    return _jobs(_runs(results))


def _runs(results: Sequence[Result]) -> list[ShownResult]:
    labels = units.numbered([result.name for result in results])
    return [
        ShownResult(place, label, result, examine(of_result(result)))
        for place, (label, result) in enumerate(zip(labels, results, strict=True))
    ]


def _jobs(runs: Sequence[ShownResult]) -> list[list[Trace]]:
    found = []
    for group in align([run.result.document for run in runs]):
        traces = []
        for member in group.members:
            run = runs[member.run]
            job = next(j for j in run.result.measurement.jobs if j.name == member.name)
            alone = len(job.directions) == 1
            traces += [Trace(run, job, direction, alone) for direction in job.by_weight]
        if traces:
            found.append(traces)
    return found


def _checks(runs: Sequence[ShownResult]) -> list[Check]:
    """What the checks say, under the run's name where there are several."""
    if len(runs) == 1:
        return list(runs[0].checks)
    return [
        replace(check, title=f"{run.label}: {check.title}")
        for run in runs
        for check in run.checks
        if check.trouble
    ]


# --- one job ----------------------------------------------------------------------------------


def _section(key: str, traces: Sequence[Trace], *, leads: bool, brief: bool) -> Section:
    """``leads``: its IOPS over time stand in the head already; ``brief``: it only fills."""
    own = [t for t in traces if t.measured.ddir != SYNC]
    figures = [] if leads else charts.over_time(traces)
    tables = []
    if not brief:
        figures += [
            *charts.latency_over_time(own),
            charts.slower(traces),
            *charts.where_the_time_goes(own),
            *charts.time_by_part(own),
            *charts.inside(own),
        ]
        tables = [of(own) for of in (kinds_table, evenness_table, time_table, causes_table)]
    job = traces[0].job
    return Section(
        sentences=[text for trace in traces for text in _sentences(trace)],
        tables=[table for table in tables if table.rows],
        figures=[figure for figure in figures if charts.drawn(figure.curves)],
        key=key,
        title=f"{job.name}: {doing(traces[0])}",
    )


def reasons(trace: Trace) -> list[str]:
    """What the time is spent on, what is written to flash and why, and how long that lasts."""
    said = [units.sentence(line) for at in ("mean", "p99.9") if (line := largest(trace, at))]
    if trace.measured.waf is not None:
        parts = [
            f"{share:.2f} {names.cause(cause)}"
            for cause, share in trace.causes.items()
            if share >= 0.005
        ]
        # One part is all of it.
        told = f" ({', '.join(parts)})" if len(parts) > 1 else ""
        said.append(f"Write amplification (WA): {units.number(trace.measured.waf)}{told}.")
    absorbed = trace.measured.stretch.absorbed
    if absorbed is not None and absorbed >= WORTH:
        share = units.percent(absorbed)
        said.append(f"{share} of the writes replaced data in the write buffer: never programmed.")
    return said + (_wear_sentences(trace.wear) if trace.wear is not None else [])


def _sentences(trace: Trace) -> list[str]:
    direction = trace.measured
    own = "" if trace.alone else f" ({direction.ddir})"
    said = [f"{trace.run.label}{own}: {units.iops(direction.iops)} {trace.told}."]
    even = direction.consistency
    if even is not None and even.mean > 0:
        text = f"Per-second IOPS: {units.number(even.min)} to {units.number(even.max)}"
        text += f"; 1st-percentile second: {units.percent(even.p1 / even.mean)} of the mean"
        if even.share_below_half >= STALL_SHARE:
            text += f"; {units.percent(even.share_below_half)} of the seconds below half of it"
        said.append(f"{text}.")
        if (cycle := even.periodicity) is not None and even.spread >= RIPPLE:
            what = "Dips" if cycle.dips else "Bursts"
            every, length = units.duration(cycle.period), units.duration(cycle.width)
            said.append(f"{what} repeat every {every} and last {length}.")
    return said + reasons(trace)


def _wear_sentences(wear: Wear) -> list[str]:
    """How worn the flash is, and how long it lasts."""
    rated = wear.smart.rated_pe_cycles
    several = f" (the most worn of {len(wear.members)} SSDs)" if len(wear.members) > 1 else ""
    said = [f"Wear: {units.percent(wear.smart.used)} of {rated:,} P/E cycles used{several}."]
    lasts, of_whom, by_whom = wear.endurance, "", "of host writes"
    if wear.filled is not None:
        path, lasts = wear.filled
        of_whom = f" of {path}" if path else ""
        by_whom = "of what is written to it, for the host writes nothing"
    if lasts is not None:
        if wear.smaller:
            of_whom += " at full size, not as small as it is simulated,"
        often = lasts.dwpd_5_years
        daily = "" if often is None else f", {units.number(often)} DWPD over 5 years"
        said.append(
            f"Endurance{of_whom} at this rate of wear "
            f"({units.counted(units.number(lasts.write_amplification), 'byte')} of flash per byte "
            f"written): {units.size_text(lasts.host_bytes)} {by_whom}{daily}; "
            f"{units.percent(lasts.host_bytes_left / lasts.host_bytes)} of it left."
        )
        if wear.table:
            said.append("Superblocks that hold the map wear apart from those of data; not counted.")
    return said


# --- what was run on what ---------------------------------------------------------------------


OPTIONS = {
    "added_options": "set by ssdlab for fio",
    "replaced_options": "decided by the target instead",
    "ignored_options": "ignored, without meaning here",
}
"""What became of a job's options, by the list in the document."""


def _notes(runs: Sequence[ShownResult]) -> list[str]:
    said = []
    for run in runs:
        label = f"{run.label}: " if len(runs) > 1 else ""
        for key, what in OPTIONS.items():
            options = (str(one["option"]) for one in run.result.ssdlab.get(key) or [])
            if told := ", ".join(dict.fromkeys(options)):
                said.append(f"{label}{what}: {told}")
    return said


def _texts(runs: Sequence[ShownResult]) -> dict[str, str]:
    found: dict[str, str] = {}
    for run in runs:
        found.setdefault("job", run.result.job_text)
        if run.result.job_text != found["job"]:
            found[f"job of {run.label}"] = run.result.job_text
        if run.result.rig_toml:
            found[f"rig of {run.label}"] = run.result.rig_toml
    return found


def _facts(run: ShownResult, *, several: bool) -> dict[str, Mapping[str, str]]:
    about = run.result.ssdlab
    target, profile = about.get("target") or {}, about.get("profile") or {}
    test = {
        "what it is": target.get("summary") or target.get("name"),
        "capacity": units.number(target["capacity_bytes"], "B")
        if "capacity_bytes" in target
        else "",
        "state at the start": about.get("preconditioning"),
        "writes": volatile_writes(about),
        "seed": about.get("seed"),
        "simulated": units.duration(s) if (s := about.get("simulated_seconds")) else None,
        "WA of the whole run": None if run.result.waf is None else units.number(run.result.waf),
        "ssdlab": about.get("version"),
        "fio": run.result.document.get("fio version") if run.result.kind == "fio" else None,
        "imported from": "{file} ({layout})".format(**imported)
        if (imported := run.result.imported)
        else None,
    }
    values = {
        str(v["key"]): " · ".join(str(x) for x in (v.get("value"), v.get("source")) if x)
        for v in profile.get("values", [])
    }
    around = dict(about.get("surroundings") or {})
    if setup := tuning.readable(around.get("setup")):
        around["setup"] = setup
    found = {
        "Test": {key: str(value) for key, value in test.items() if value not in (None, "")},
        "Platform": dict(_flat(around)),
        "Drive, as simulated": values,
        "Drive, as built": _built(about.get("built") or {}),
        "Counters at the end": {k: f"{v:,}" for k, v in (about.get("counters") or {}).items()},
    }
    return {f"{run.label}: {k}" if several else k: v for k, v in found.items() if v}


def _built(by_path: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """What was built of each SSD, in a line under its path; whole superblocks make it differ from
    what the rig asks for."""
    return {
        path or "drive": f"{units.size_text(one['physical_bytes'])} of flash, over-provisioning "
        f"{100 * one['over_provisioning']:.4g} %, {units.counted(one['dies'], 'die')}, "
        f"{units.counted(one['superblocks'], 'superblock')}"
        for path, one in by_path.items()
    }


def _flat(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested keys as dotted ones."""
    found: list[tuple[str, str]] = []
    for key, value in tree.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{prefix}{key}.")
        elif value not in (None, "", []):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            found.append((f"{prefix}{key}", shown))
    return found


def _data(runs: Sequence[ShownResult]) -> dict[str, Any]:
    told = [
        {
            "run": None if run.result.folder is None else run.result.folder.name,
            "name": run.result.name,
            "target": run.result.ssdlab.get("target", {}),
            "seed": run.result.ssdlab.get("seed"),
            "version": run.result.ssdlab.get("version"),
            "summary": run.result.summary(),
        }
        for run in runs
    ]
    return told[0] if len(told) == 1 else {"runs": told}
