"""What kept runs have found: those of job files beside each other, or that of a protocol."""

from __future__ import annotations

from collections.abc import Sequence

from ssdlab.answer import Answer
from ssdlab.answers import protocol, run
from ssdlab.engine import findings
from ssdlab.errors import InputError
from ssdlab.store.folder import RunFolder


def answer(folders: Sequence[RunFolder]) -> Answer:
    """Raises InputError where several are given and one is that of a protocol, or of a damaged
    one."""
    tests = [folder for folder in folders if not folder.is_job]
    if tests and len(folders) > 1:
        raise InputError(
            f"{tests[0].id}: is the run of a protocol, which has a report of its own; "
            "ssdlab compare puts several side by side"
        )
    if tests:
        return protocol.answer(findings.read(tests[0]))
    return run.answer([folder.result() for folder in folders])
