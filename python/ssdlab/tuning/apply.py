"""Sets a drive up for a run, and restores everything however the run ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ssdlab.audit.scene import drive_called
from ssdlab.errors import ExperimentError, InputError, SsdlabError
from ssdlab.leftovers import any_left
from ssdlab.progress import Notice
from ssdlab.system import System
from ssdlab.tuning import journal as journals
from ssdlab.tuning.journal import Journal, SetValue, exclusively, identify
from ssdlab.tuning.means import MEANS, NotSetError
from ssdlab.tuning.model import Closed, Knob, Record, SetupRequest, SetupSubject, sentences
from ssdlab.tuning.restore import FORMAT, put_back, undisturbed
from ssdlab.tuning.settings import SETTINGS, parse


@dataclass(frozen=True)
class _Line:
    """A place of a plan."""

    record: Record
    knob: Knob | None
    """None where nothing is to be written."""


def preview(name: str | None, text: str, system: System | None = None) -> list[Record]:
    """What ``--setup`` would do to drive ``name`` and its system; changes nothing.

    Raises InputError where ``text`` is no setup.
    """
    own = system or System()
    request = parse(text)
    lines = _plan(_subject(own, name), request, [one for one in _journals() if one.alive])
    return [one.record for one in lines if one.knob is None or one.knob.want is not None]


@contextlib.contextmanager
def applied(
    name: str | None,
    text: str,
    *,
    notice: Notice | None = None,
    claimed: bool = False,
    system: System | None = None,
) -> Iterator[dict[str, Any] | None]:
    """Has drive ``name`` (the kernel's name; None where it is not known) set up as ``text`` says.

    Yields what was set, for the record of the run; None where nothing was asked for. What a killed
    run had left set is restored first. ``claimed``: the caller holds the drive's claim, so that it
    may be formatted.

    Raises:
        InputError: what was asked for by name cannot be had here, or ``text`` is no setup.
        ExperimentError: what was asked for by name was not taken.
    """
    own, request = system or System(), parse(text)
    if not request.wishes:
        if name is not None:
            # What nobody asked for does not fail a run.
            with contextlib.suppress(SsdlabError):
                restore_left(notice, name=name, system=own)
        yield None
        return
    if "lba" in request.wishes and not claimed:
        raise InputError("--setup lba: formats a drive, so it needs a block device as the target")
    called = "the processors" if name is None else f"/dev/{name}"
    with contextlib.ExitStack() as stack:
        with exclusively():
            # A run that formats the drive itself owes what a killed one owed.
            _restore_dead(own, notice, formats=None if "lba" in request.wishes else False)
            found = journals.journals()
            drive = None if name is None else identify(own, name)
            lines = _plan(_subject(own, name), request, [one for one in found if one.alive])
            _refuse_named(request, lines)
            journal = stack.enter_context(journals.started(own, called, drive))
            journal.entries = [*_entries(lines)]
            _adopt(journal, found)
            if journal.entries:
                journal.save()
        process = [(one.knob, one.record.before) for one in lines if _of_process(one)]
        try:
            records = _set(own, request, lines, journal)
            if notice is not None:
                for sentence in sentences(text, called, records):
                    notice(sentence)
            yield {"asked": text, "settings": [one.as_json() for one in records]}
        finally:
            _end(own, journal, process, notice)


def restore_left(
    notice: Notice | None,
    *,
    name: str | None = None,
    formats: bool = False,
    system: System | None = None,
) -> int:
    """Restores what killed runs have left set; how many of them there were.

    ``name``: only what they left set on this drive or with it. ``formats``: as in :func:`put_back`.
    """
    if not any_left():
        return 0
    with undisturbed(), exclusively():
        return _restore_dead(system or System(), notice, name=name, formats=formats)


def _restore_dead(
    system: System,
    notice: Notice | None,
    *,
    name: str | None = None,
    formats: bool | None = False,
) -> int:
    found = journals.journals()
    dead = [one for one in found if not one.alive]
    if name is not None:
        drive = identify(system, name)
        dead = [one for one in dead if one.drive is not None and one.drive.may_be(drive)]
    for one in reversed(dead):
        # The youngest first: what it found set may be what an older one had left.
        living = [other for other in found if other.alive]
        put_back(system, one, living, formats=formats).tell(notice, one.target, own=False)
    return len(dead)


def _journals() -> list[Journal]:
    if not any_left():
        return []
    with exclusively():
        return journals.journals()


def _subject(system: System, name: str | None) -> SetupSubject:
    return SetupSubject(system, None if name is None else drive_called(system, name))


def _plan(subject: SetupSubject, request: SetupRequest, living: Sequence[Journal]) -> list[_Line]:
    lines = (
        _line(subject.system, setting.name, one, living)
        for setting in SETTINGS
        if (wish := request.wishes.get(setting.name)) is not None
        for one in setting.plan(subject, wish.value)
    )
    return [one for one in lines if one.knob is not None or one.record.place]


def _line(system: System, setting: str, one: Knob | Closed, living: Sequence[Journal]) -> _Line:
    if isinstance(one, Closed):
        now, why = (one.why, None) if one.holds else (None, one.why)
        return _Line(Record(setting, one.place, now, None, None, why), None)
    means = MEANS[one.means]
    shown, before = means.shown(one.place), means.read(system, one.place)
    if before is None:
        # What is only restored after another one has nothing to restore then.
        place, why = ("", None) if one.want is None else (shown, "it cannot be read")
        return _Line(Record(setting, place, None, None, None, why), None)
    record = Record(setting, shown, before, one.want, None)
    for journal in living if one.want is not None else ():
        for held in journal.entries:
            if held.key == (one.means, one.place, False) and held.set != one.want:
                why = f"another run of ssdlab (process {journal.pid}) keeps it at {held.set}"
                return _Line(replace(record, set=None, why_not=why), None)
    return _Line(record, one)


def _refuse_named(request: SetupRequest, lines: Sequence[_Line]) -> None:
    for one in lines:
        record = one.record
        if record.why_not is not None and request.wishes[record.setting].named:
            raise InputError(f"--setup {record.setting}: {record.place}: {record.why_not}")


def _entries(lines: Sequence[_Line]) -> Iterator[SetValue]:
    """What must be on the disk before anything is set."""
    scopes = {one.name: one.scope for one in SETTINGS}
    for one in lines:
        knob, before = one.knob, one.record.before
        if knob is None or before is None or MEANS[knob.means].lasts == "process":
            continue
        setting = one.record.setting
        yield SetValue(setting, knob.means, knob.place, before, knob.want, scopes[setting])


def _adopt(journal: Journal, found: Sequence[Journal]) -> None:
    """Takes over from a killed run the duty to format the drive back."""
    if journal.drive is None or not any(one.means == FORMAT for one in journal.entries):
        return
    for other in found:
        owed = next((one for one in other.entries if one.means == FORMAT), None)
        theirs = other.drive
        if other.alive or owed is None or theirs is None:
            continue
        if theirs.is_still(journal.drive, same_boot=False):
            journal.entries = [
                replace(one, before=owed.before) if one.means == FORMAT else one
                for one in journal.entries
            ]
            journal.save()
            other.entries.remove(owed)
            other.settle()


def _set(
    system: System, request: SetupRequest, lines: Sequence[_Line], journal: Journal
) -> list[Record]:
    """Sets what is not yet as it is wanted; what became of each."""
    records = []
    failed = None
    for one in lines:
        knob, record = one.knob, one.record
        if knob is None:
            records.append(record)
        elif knob.want is not None:
            records.append(record := _set_one(system, knob, record))
        if knob is not None and record.why_not and request.wishes[record.setting].named:
            failed = record
            break
    with exclusively():
        _note(journal, records)
    if failed is not None:
        raise ExperimentError(f"--setup {failed.setting}: {failed.place}: {failed.why_not}")
    return records


def _set_one(system: System, knob: Knob, record: Record) -> Record:
    means = MEANS[knob.means]
    if record.before == knob.want or knob.want is None:
        return replace(record, after=record.before)
    try:
        means.write(system, knob.place, knob.want)
    except NotSetError as error:
        return replace(record, after=means.read(system, knob.place), why_not=str(error))
    after = means.read(system, knob.place)
    why = None if after == knob.want else f"it says {after} after that"
    return replace(record, after=after, why_not=why)


def _note(journal: Journal, records: Sequence[Record]) -> None:
    """Keeps what the places said after they were set."""
    said = {(one.setting, one.place): one.after for one in records}
    current = journals.load(journal.path)
    if current is not None:
        journal.entries = [
            replace(one, after=said.get((one.setting, MEANS[one.means].shown(one.place))))
            if one.set is not None
            else one
            for one in current.entries
        ]
        journal.save()


def _of_process(line: _Line) -> bool:
    return line.knob is not None and MEANS[line.knob.means].lasts == "process"


def _end(
    system: System,
    journal: Journal,
    process: Sequence[tuple[Knob | None, str | None]],
    notice: Notice | None,
) -> None:
    with undisturbed():
        for knob, before in process:
            if knob is not None and before is not None:
                with contextlib.suppress(NotSetError):
                    MEANS[knob.means].write(system, knob.place, before)
        if not journal.path.exists():
            return
        with exclusively():
            # Another run may have handed something over meanwhile.
            current = journals.load(journal.path) or journal
            others = [one for one in journals.journals() if one.path != journal.path]
            back = put_back(system, current, others, formats=True)
        back.tell(notice, journal.target, own=True)
