"""``ssdlab test``: a protocol on a target, from its start to the answer."""

from __future__ import annotations

import functools

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View
from ssdlab.cli.made import of
from ssdlab.cli.options import KeptBelow, LogFolder, PlanOnly
from ssdlab.units import percent, size_text

if light.BODIES:
    from rich.console import Console

    from ssdlab import units
    from ssdlab.api.report import Report
    from ssdlab.api.target import order_of, target_of
    from ssdlab.api.test import carried_out, informed, report_of
    from ssdlab.cli.output import notice, say, stderr, write_json
    from ssdlab.cli.setup import say_preview
    from ssdlab.engine.plans import Announcement
    from ssdlab.engine.plans import plan as make_plan
    from ssdlab.rating import between, share_text
    from ssdlab.safety import amount
    from ssdlab.store import RunStore, called
    from ssdlab.store.folder import RunFolder


@of("test")
def command(
    target: str,
    protocol: str,
    *,
    plan: PlanOnly = False,
    out: KeptBelow = None,
    logs: LogFolder = None,
    view: View,
    ask: Ask,
) -> None:
    """Says what will be done before it is, or that alone."""
    if plan:
        view.require_no_documents("--plan", "--json")
    on, rating = ask(target_of, target)
    order = ask(informed, ask(order_of, protocol, on, rating))
    if plan:
        what = make_plan(order, RunStore(out))
        say_plan(what, view)
        if not view.quiet:
            say_preview(view.console, order.target, what.setup.values)
        return
    console = stderr()

    def announce(what: Announcement) -> None:
        if not view.quiet:
            _say(console, what)

    folder = carried_out(order, RunStore(out), not view.quiet, notice, announce)
    show(report_of(folder), folder, view, ask.seconds)


def show(report: Report, folder: RunFolder, view: View, seconds: float) -> None:
    """Prints and writes what a run has found."""
    view.show(
        report.answer,
        seconds=seconds,
        kept=folder.path,
        follow=f"ssdlab report {called(folder.path)} -o report.html",
    )


def _say(console: Console, what: Announcement) -> None:
    """What will be done, how long it takes, how much it writes."""
    about, setup = what.estimate, what.setup
    protocol = what.protocol
    tell = functools.partial(say, console)
    look = "quick run: " if setup.quick else ""
    tell(f"{look}{protocol.title} ({protocol.source}) on {what.target}")
    share = setup.active / setup.capacity
    part = "all" if share > 0.999 else percent(share)
    tell(f"  works on {part} of {size_text(setup.capacity)}; {protocol.summary}")
    steps = between(about.steps_min, about.steps_max, str)
    done = f"{what.done} steps are done; " if what.done else ""
    tell(f"  {done}{steps} steps, about {time_text(what)}")
    tell(f"  speed: {what.assumption}")
    for name, own in what.parts.items():
        span = between(own.soon.low, own.never.high, units.duration)
        low, high = own.written
        wrote = f", writes {amount(round(low), round(high))}" if high else ""
        tell(f"    {name}: {span}{wrote}")
    written = about.written
    if written.high:
        worn = share_text(written.low, written.high, what.rating)
        tell(f"  writes {amount(round(written.low), round(written.high))}: {worn}")


def time_text(what: Announcement) -> str:
    """How long it takes: the range of speed, and of rounds that are never steady."""
    soon, never = what.estimate.soon, what.estimate.never
    clock = " of simulated time" if what.setup.kind == "sim" else ""
    span = between(soon.low, soon.high, units.duration) + clock
    longest = units.duration(never.high)
    if longest == units.duration(soon.high):
        return span
    return f"{span}; up to {longest} if it never gets steady"


def say_plan(what: Announcement, view: View) -> None:
    """Prints a plan, and writes it where ``--json`` says."""
    write_json(view.json_, what.document())
    if view.quiet:
        return
    console = view.console
    _say(console, what)
    if what.refused is not None:
        say(console, f"  as it is now it would be refused: {what.refused}")
