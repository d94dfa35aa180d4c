"""``ssdlab audit``: what the settings of this system cost a drive, and how to change them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ssdlab.cli import light
from ssdlab.cli.answer import TroubleView, answering
from ssdlab.cli.options import argument, option

if light.BODIES:
    from ssdlab.answers import audit as audit_answer
    from ssdlab.api.looks import audited
    from ssdlab.audits import Status


@answering
def command(
    target: str = argument("TARGET", "A drive (/dev/...), a mount point, or any file or folder."),
    root: Path = option(
        "DIR", "Audit a recorded system: a folder with its /sys, /proc and /etc.", default=Path("/")
    ),
    *,
    view: TroubleView,
) -> None:
    """Check the settings below a path: TRIM, queues, caches, links, alignment. Changes nothing."""
    report, findings = audited(target, root)
    view.show(report.answer)
    troubles = [finding for finding in findings if finding.status is not Status.OK]
    if view.quiet and troubles:
        view.print_table(replace(audit_answer.table(troubles), title=""))
