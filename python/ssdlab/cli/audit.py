"""``ssdlab audit``: what the settings of this system cost a drive, and how to change them."""

from __future__ import annotations

from dataclasses import replace

from ssdlab.cli import light
from ssdlab.cli.answer import TroubleView
from ssdlab.cli.made import of

if light.BODIES:
    from ssdlab.answers import audit as audit_answer
    from ssdlab.api.looks import audited
    from ssdlab.audits import Status


@of("audit")
def command(target: str, root: str, *, view: TroubleView) -> None:
    """Says what is wrong where nothing else is wanted."""
    report, findings = audited(target, root)
    view.show(report.answer)
    troubles = [finding for finding in findings if finding.status is not Status.OK]
    if view.quiet and troubles:
        view.print_table(replace(audit_answer.table(troubles), title=""))
