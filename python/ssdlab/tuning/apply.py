"""Sets a drive up for a run, and restores everything however the run ends."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ssdlab.audits.scene import drive_called
from ssdlab.errors import ExperimentError, InputError, SsdlabError
from ssdlab.leftovers import any_left
from ssdlab.progress import Notice, unheard
from ssdlab.system import CLASS, System
from ssdlab.tuning import journal as journals
from ssdlab.tuning.journal import Identity, Journal, SetValue, exclusively, identify
from ssdlab.tuning.means import MEANS, NotSetError
from ssdlab.tuning.model import Closed, Knob, Record, SetupRequest, SetupSubject, sentences
from ssdlab.tuning.settings import SETTINGS, parse

FORMAT = "nvme-format"


@dataclass(frozen=True)
class _Line:
    """A place of a plan."""

    record: Record
    knob: Knob | None
    """None where nothing is to be written."""
    wrong: bool = False
    """Whether there is no such value."""


def preview(name: str | None, text: str, system: System | None = None) -> list[Record]:
    """What ``--setup`` would do to drive ``name`` and its system; changes nothing; InputError where
    ``text`` is no setup, or has a value that there is not."""
    own = system or System()
    request = parse(text)
    lines = _plan(
        _subject(own, name), request, [journal for journal in _journals() if journal.alive]
    )
    _refuse_named(request, [line for line in lines if line.wrong])
    return [line.record for line in lines if line.knob is None or line.knob.want is not None]


@contextlib.contextmanager
def applied(
    name: str | None,
    text: str,
    *,
    notice: Notice = unheard,
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
    if not request:
        if name is not None:
            # What nobody asked for does not fail a run.
            with contextlib.suppress(SsdlabError):
                restore_left(notice, name=name, system=own)
        yield None
        return
    if "lba" in request and not claimed:
        raise InputError("--setup lba: formats a drive, so it needs a block device as the target")
    called = "the processors" if name is None else f"/dev/{name}"
    with contextlib.ExitStack() as stack:
        with exclusively():
            # A run that formats the drive itself owes what a killed one owed.
            _restore_dead(own, notice, formats=None if "lba" in request else False)
            found = journals.journals()
            drive = None if name is None else identify(own, name)
            lines = _plan(
                _subject(own, name), request, [journal for journal in found if journal.alive]
            )
            _refuse_named(request, lines)
            journal = stack.enter_context(journals.started(own, called, drive))
            journal.entries = [*_entries(lines)]
            _adopt(journal, found)
            if journal.entries:
                journal.save()
        process = [
            (line.knob, line.record.before)
            for line in lines
            if line.knob is not None and MEANS[line.knob.means].lasts == "process"
        ]
        try:
            records = _set(own, request, lines, journal)
            for sentence in sentences(text, called, records):
                notice(sentence)
            yield {"asked": text, "settings": [record.as_json() for record in records]}
        finally:
            _end(own, journal, process, notice)


def restore_left(
    notice: Notice,
    *,
    name: str | None = None,
    formats: bool = False,
    system: System | None = None,
) -> int:
    """Restores what killed runs have left set, all or only on or with drive ``name``; how many they
    were. ``formats``: as in :func:`put_back`."""
    if not any_left():
        return 0
    with undisturbed(), exclusively():
        return _restore_dead(system or System(), notice, name=name, formats=formats)


def _restore_dead(
    system: System,
    notice: Notice,
    *,
    name: str | None = None,
    formats: bool | None = False,
) -> int:
    found = journals.journals()
    dead = [journal for journal in found if not journal.alive]
    if name is not None:
        drive = identify(system, name)
        dead = [
            journal for journal in dead if journal.drive is not None and journal.drive.may_be(drive)
        ]
    for journal in reversed(dead):
        # The youngest first: what it found set may be what an older one had left.
        living = [other for other in found if other.alive]
        put_back(system, journal, living, formats=formats).tell(notice, journal.target, own=False)
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
        if (wish := request.get(setting.name)) is not None
        for one in setting.plan(subject, wish.value)
    )
    return [line for line in lines if line.knob is not None or line.record.place]


def _line(system: System, setting: str, one: Knob | Closed, living: Sequence[Journal]) -> _Line:
    if isinstance(one, Closed):
        now, why = (one.why, None) if one.holds else (None, one.why)
        return _Line(Record(setting, one.place, now, None, None, why), None, one.wrong)
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
    for line in lines:
        record = line.record
        if record.why_not is not None and request[record.setting].named:
            raise InputError(f"--setup {record.setting}: {record.place}: {record.why_not}")


def _entries(lines: Sequence[_Line]) -> Iterator[SetValue]:
    """What must be on the disk before anything is set."""
    scopes = {setting.name: setting.scope for setting in SETTINGS}
    for line in lines:
        knob, before = line.knob, line.record.before
        if knob is None or before is None or MEANS[knob.means].lasts == "process":
            continue
        setting = line.record.setting
        yield SetValue(setting, knob.means, knob.place, before, knob.want, scopes[setting])


def _adopt(journal: Journal, found: Sequence[Journal]) -> None:
    """Takes over from a killed run the duty to format the drive back."""
    if journal.drive is None or not any(entry.means == FORMAT for entry in journal.entries):
        return
    for other in found:
        owed = next((entry for entry in other.entries if entry.means == FORMAT), None)
        theirs = other.drive
        if other.alive or owed is None or theirs is None:
            continue
        if theirs.is_still(journal.drive, same_boot=False):
            journal.entries = [
                replace(entry, before=owed.before) if entry.means == FORMAT else entry
                for entry in journal.entries
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
    for line in lines:
        knob, record = line.knob, line.record
        if knob is None:
            records.append(record)
        elif knob.want is not None:
            records.append(record := _set_one(system, knob, record))
        if knob is not None and record.why_not and request[record.setting].named:
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
    said = {(record.setting, record.place): record.after for record in records}
    current = journals.load(journal.path)
    if current is not None:
        journal.entries = [
            replace(entry, after=said.get((entry.setting, MEANS[entry.means].shown(entry.place))))
            if entry.set is not None
            else entry
            for entry in current.entries
        ]
        journal.save()


def _end(
    system: System,
    journal: Journal,
    process: Sequence[tuple[Knob, str | None]],
    notice: Notice,
) -> None:
    with undisturbed():
        for knob, before in process:
            if before is not None:
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


# --- restoring


@dataclass
class Back:
    """What came of restoring."""

    done: list[str] = field(default_factory=list)
    """Values that are back, such as ``scheduler mq-deadline``."""
    remarks: list[str] = field(default_factory=list)
    """What is not, a sentence each."""

    def tell(self, notice: Notice, target: str, *, own: bool) -> None:
        """Says it; what a run restores at its own end goes without saying."""
        if self.done and not own:
            said = ", ".join(dict.fromkeys(self.done))
            notice(f"restored what a killed run had set on {target}: {said}")
        for remark in self.remarks:
            notice(remark)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """A Ctrl-C that comes meanwhile arrives afterwards."""
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def put_back(
    system: System, journal: Journal, others: Sequence[Journal], *, formats: bool | None
) -> Back:
    """Restores the entries of ``journal``, the last one first, and keeps in it what cannot be.
    ``others`` are the other journals, the oldest first: what another living run holds at the same
    value stays, and is restored when that run ends. ``formats``: the drive may be formatted, for
    which the caller holds its claim; None where that is to be left as it is without a word."""
    back, left = Back(), list[SetValue]()
    settled, failed = set[str](), set[str]()
    for entry in reversed(journal.entries):
        # What goes with a setting that stays is not touched either.
        if entry.set is None and entry.setting in failed | settled:
            if entry.setting in failed:
                left.append(entry)
        elif heir := next((one for one in others if one.alive and _holds(one, entry)), None):
            # Who began before knows already what was there first.
            if heir.began_ns > journal.began_ns:
                _hand_over(journal, entry, heir)
            settled.add(entry.setting)
        elif (place := _where(system, journal, entry)) is None:
            if MEANS[entry.means].lasts == "drive":
                left.append(entry)
                back.remarks.append(_absent(journal, entry))
        elif entry.means == FORMAT and not formats:
            left.append(entry)
            if formats is not None:
                back.remarks.append(
                    f"{place} still has blocks of {entry.set} bytes and had {entry.before}: "
                    f"ssdlab setup {place} --restore --destroy SERIAL formats it back and erases it"
                )
        else:
            outcome = _restore(system, replace(entry, place=place), back)
            if outcome == "failed":
                left.append(entry)
                failed.add(entry.setting)
            elif outcome == "left":
                settled.add(entry.setting)
    journal.entries = left[::-1]
    journal.settle()
    return back


def _restore(system: System, entry: SetValue, back: Back) -> Literal["done", "left", "failed"]:
    """``left``: somebody else has changed it."""
    means = MEANS[entry.means]
    now = means.read(system, entry.place)
    if now is None or now == entry.before:
        # A file that is gone, such as a parameter of another scheduler, has nothing to keep.
        return "done"
    if entry.set is not None and now not in (entry.set, entry.after):
        back.remarks.append(
            f"{means.shown(entry.place)} was changed to {now} by somebody else during the run and "
            f"is left as it is; before the run it was {entry.before}"
        )
        return "left"
    try:
        means.write(system, entry.place, entry.before)
        if (after := means.read(system, entry.place)) != entry.before:
            raise NotSetError(f"it says {after}")
    except NotSetError as error:
        back.remarks.append(
            f"{means.shown(entry.place)} could not be restored to {entry.before} ({error}); "
            "ssdlab setup --restore tries again"
        )
        return "failed"
    if entry.set is not None:
        back.done.append(f"{entry.setting} {entry.before}")
    return "done"


def _holds(other: Journal, entry: SetValue) -> bool:
    return entry.set is not None and any(value.key == entry.key for value in other.entries)


def _hand_over(journal: Journal, entry: SetValue, heir: Journal) -> None:
    """Makes another run restore what was there before this one."""
    mine = [
        value for value in journal.entries if value.set is None and value.setting == entry.setting
    ]
    kept = [
        value for value in heir.entries if value.set is not None or value.setting != entry.setting
    ]
    # What goes with a setting is restored after it, so it stands before it.
    heir.entries = mine + [
        replace(value, before=entry.before) if value.key == entry.key else value for value in kept
    ]
    heir.save()


def _where(system: System, journal: Journal, entry: SetValue) -> str | None:
    """Where the value is now; None where the drive is gone or a reboot has reset it."""
    same_boot = journal.boot == system.boot
    lasts = MEANS[entry.means].lasts
    if not same_boot and lasts != "drive":
        return None
    if entry.scope == "cpus" or journal.drive is None:
        return entry.place
    if same_boot and _is_there(system, journal.drive, journal.drive.name, same_boot=True):
        return entry.place
    if lasts != "drive":
        return None
    names = (one for one in system.listed(CLASS) if not system.is_partition(one))
    for name in names:
        if _is_there(system, journal.drive, name, same_boot=False):
            return _place_on(system, name, entry)
    return None


def _is_there(system: System, drive: Identity, name: str, *, same_boot: bool) -> bool:
    if not system.exists(f"{CLASS}/{name}"):
        return False
    return drive.is_still(identify(system, name), same_boot=same_boot)


def _place_on(system: System, name: str, entry: SetValue) -> str | None:
    """The place of a value that the drive keeps, below the name that it has now."""
    setting = next(setting for setting in SETTINGS if setting.name == entry.setting)
    value = entry.before if entry.means == FORMAT else "off"
    for one in setting.plan(SetupSubject(system, drive_called(system, name)), value):
        if isinstance(one, Knob) and one.means == entry.means and one.want is not None:
            return one.place
    return None


def _absent(journal: Journal, entry: SetValue) -> str:
    drive = journal.drive
    called = "the drive" if drive is None else f"{drive.name} ({drive.serial or 'no serial'})"
    return (
        f"{called} is not there; its {entry.setting} was {entry.before} and is still to be restored"
    )
