"""Restores what a run has set: its own when it ends, and what killed runs have left set."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ssdlab.audit.scene import drive_called
from ssdlab.progress import Notice
from ssdlab.system import CLASS, System
from ssdlab.tuning import journal as journals
from ssdlab.tuning.journal import Identity, Journal, SetValue
from ssdlab.tuning.means import MEANS, NotSetError
from ssdlab.tuning.model import Knob, SetupSubject
from ssdlab.tuning.settings import SETTINGS

FORMAT = "nvme-format"


@dataclass
class Back:
    """What came of restoring."""

    done: list[str] = field(default_factory=list)
    """Values that are back, such as ``scheduler mq-deadline``."""
    remarks: list[str] = field(default_factory=list)
    """What is not, a sentence each."""

    def tell(self, notice: Notice | None, target: str, *, own: bool) -> None:
        """Says it; what a run restores at its own end goes without saying."""
        if notice is None:
            return
        if self.done and not own:
            said = ", ".join(dict.fromkeys(self.done))
            notice(f"restored what a killed run had set on {target}: {said}")
        for one in self.remarks:
            notice(one)


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

    ``others`` are the other journals, the oldest first. What another living run holds at the same
    value stays, and is restored when that run ends.
    ``formats``: the drive may be formatted, for which the caller holds its claim; None where that
    is to be left as it is without a word.
    """
    back, left = Back(), list[SetValue]()
    settled, failed = set[str](), set[str]()
    for entry in reversed(journal.entries):
        # What goes with a setting that stays is not touched either.
        if entry.set is None and entry.setting in failed:
            left.append(entry)
        if entry.set is None and entry.setting in failed | settled:
            continue
        heir = next((one for one in others if one.alive and _holds(one, entry)), None)
        if heir is not None:
            # Who began before knows already what was there first.
            if heir.began_ns > journal.began_ns:
                _hand_over(journal, entry, heir)
            settled.add(entry.setting)
            continue
        place = _where(system, journal, entry)
        if place is None:
            if MEANS[entry.means].lasts == "drive":
                left.append(entry)
                back.remarks.append(_absent(journal, entry))
            continue
        if entry.means == FORMAT and not formats:
            left.append(entry)
            if formats is None:
                continue
            back.remarks.append(
                f"{place} still has blocks of {entry.set} bytes and had {entry.before}: "
                f"ssdlab setup {place} --restore --destroy SERIAL formats it back and erases it"
            )
            continue
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
    return entry.set is not None and any(one.key == entry.key for one in other.entries)


def _hand_over(journal: Journal, entry: SetValue, heir: Journal) -> None:
    """Makes another run restore what was there before this one."""
    mine = [one for one in journal.entries if one.set is None and one.setting == entry.setting]
    kept = [one for one in heir.entries if one.set is not None or one.setting != entry.setting]
    # What goes with a setting is restored after it, so it stands before it.
    heir.entries = mine + [
        replace(one, before=entry.before) if one.key == entry.key else one for one in kept
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
    names = (one for one in system.listed(CLASS) if not system.exists(f"{CLASS}/{one}/partition"))
    for name in names:
        if _is_there(system, journal.drive, name, same_boot=False):
            return _place_on(system, name, entry)
    return None


def _is_there(system: System, drive: Identity, name: str, *, same_boot: bool) -> bool:
    if not system.exists(f"{CLASS}/{name}"):
        return False
    return drive.is_still(journals.identify(system, name), same_boot=same_boot)


def _place_on(system: System, name: str, entry: SetValue) -> str | None:
    """The place of a value that the drive keeps, below the name that it has now."""
    setting = next(one for one in SETTINGS if one.name == entry.setting)
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
