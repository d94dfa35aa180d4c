"""Runs a protocol: each step once, kept as soon as it is finished, whatever happens in between."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from ssdlab import logfolder
from ssdlab.answer import Section
from ssdlab.engine import estimate
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.records import Records, RoundsRecord
from ssdlab.engine.setup import Setup
from ssdlab.engine.speed import GUESS, SpeedPoint, Speeds, moved_by
from ssdlab.engine.steps import Idle, Job, Purge, Rounds, Step, Then, Trim
from ssdlab.engine.tally import RunTally
from ssdlab.errors import ExperimentError, InputError, Interrupted
from ssdlab.jobfile import JobText
from ssdlab.progress import Progress, ProgressCallback
from ssdlab.results import Result
from ssdlab.store import label
from ssdlab.store.folder import JournalEntry, RunFolder
from ssdlab.target import Session
from ssdlab.units import percent

CHECKPOINT_EVERY_S = 20.0
"""A simulated drive's state is kept when as much work as this would be lost..."""
CHECKPOINT_COST = 10.0
"""...and it is at least so many times the work of keeping it."""
INTERVALS = 100
"""Intervals of the series of a short simulated job."""
INTERVAL_BYTES_PER_S = 400e6
"""Speed by which the intervals of one bounded by its amount are chosen: part of what is measured,
so it must not depend on what else is known of the drive."""

MARKS = ("stop", "resume")
"""Lines of the journal that are no steps."""

Action = Callable[[ProgressCallback], Result | str]


def mark(
    number: int,
    kind: Literal["stop", "resume"],
    title: str,
    state: Mapping[str, Any],
    note: str = "",
    changes: Sequence[str] = (),
) -> JournalEntry:
    """A line of the journal that is no step."""
    key, now = f"{kind}-{number}", _text(datetime.now(UTC))
    return JournalEntry(number, key, kind, title, False, now, now, note, state, tuple(changes))


class Execution:
    """A protocol on its way over a target. Resumption is the same way, with steps done before."""

    def __init__(
        self,
        protocol: Protocol,
        setup: Setup,
        session: Session,
        folder: RunFolder,
        progress: ProgressCallback,
        speeds: Speeds = GUESS,
    ) -> None:
        self.protocol, self.setup = protocol, setup
        self.session, self.folder = session, folder
        self.progress = progress
        self.seed = folder.manifest.seed or 1
        logs = folder.manifest.logs
        self._logs = None if logs is None else Path(logs)
        entries = folder.journal()
        self._done = {entry.key: entry for entry in entries if entry.kind not in MARKS}
        self._number = len(entries)
        self._replayed_to = 0
        self.records = Records(load=lambda key: folder.load(self._done[key]))
        self._speeds = speeds
        self._tally = RunTally(
            self._load(protocol.plan(setup)), speeds, virtual=session.kind == "sim"
        )
        self._kept_at = time.monotonic()
        self._keeping_s = 0.0

    def run(self) -> None:
        """Goes through the plan from its start; what is in the journal is not done again;
        Interrupted on Ctrl-C, ExperimentError where a step failed; what was finished is kept."""
        if self.session.kind == "sim":
            self._restore()
        for step in self.protocol.plan(self.setup):
            self._step(step)

    def judge(self) -> Section:
        """What the records say so far."""
        return self.protocol.judge(self.records, self.setup)

    @property
    def finished(self) -> int:
        """Steps finished so far, those of earlier sittings included."""
        return len(self._done)

    def stop(self) -> None:
        """Notes that the run was stopped in order, and how the drive is then."""
        if self.session.kind != "sim":
            self._number += 1
            entry = mark(self._number, "stop", "stopped", self.session.state())
            self.folder.append(entry, None)

    # --- steps

    def _step(self, step: Step) -> None:
        if isinstance(step, Rounds):
            self._rounds(step)
        elif isinstance(step, Then):
            made = step.make(self.records)
            more = "the drive asks for more steps"
            self._tally.expect(self._load(made), self._load(step.expected), more)
            for one in made:
                self._step(one)
        elif isinstance(step, Job):
            self._once(step, "job", lambda progress: self._run(step, progress))
        elif isinstance(step, Purge):
            self._once(step, "purge", self.session.purge)
        elif isinstance(step, Trim):
            length = step.length or self.session.capacity - step.offset
            self._once(step, "trim", lambda _: self.session.trim(step.offset, length))
        else:
            self._once(step, "idle", lambda progress: self._idle(step, progress))

    def _idle(self, step: Idle, progress: ProgressCallback) -> str:
        self.session.idle(step.seconds, progress)
        return f"left alone for {step.seconds:g} s"

    def _rounds(self, step: Rounds) -> None:
        record: RoundsRecord | None = None
        for number in range(1, step.most + 1):
            self._tally.where = f"round {number} of at most {step.most}"
            jobs = step.jobs(number)
            if number > step.window:
                # So many were not reckoned with.
                self._tally.expect(self._load(jobs), because="not yet steady, another round")
            for job in jobs:
                self._step(job)
            record = estimate.rounds_record(step, self.records, record)
            self.records.rounds[step.key] = record
            self._tally.steadiness = _steadiness(record)
            if record.steady:
                break
        self._tally.where = self._tally.steadiness = ""

    def _load(self, steps: Sequence[estimate.Expected]) -> estimate.WorkLeft:
        return estimate.load(steps, self._speeds, self.session.kind)

    def _run(self, job: Job, progress: ProgressCallback) -> Result:
        interval = 1000
        if self.session.kind == "sim":
            # Nobody knows how fast an amount will be moved: fine enough for a fast drive.
            parts = INTERVALS if job.seconds is not None else 4 * INTERVALS
            expected = job.seconds or job.amount / INTERVAL_BYTES_PER_S
            interval = max(1, min(interval, round(1000 * expected / parts)))
        return self.session.run(
            JobText(job.key, job.text, Path.cwd()),
            progress,
            seed=seed_of(self.seed, job.key),
            interval_ms=interval,
            logs=self._logs is not None,
        )

    def _once(self, step: Job | Purge | Trim | Idle, kind: str, action: Action) -> None:
        """Does a step and keeps it, unless that has been done."""
        journal_entry = self._done.get(step.key)
        load = self._load([step])
        if journal_entry is not None and (
            self.session.kind != "sim" or journal_entry.number <= self._replayed_to
        ):
            self._note(journal_entry, None)
            self._tally.skip(load, SpeedPoint.read(journal_entry.moved))
            return
        began, clock = datetime.now(UTC), _clock()
        self._tally.begin(step.title, load, again=journal_entry is not None)
        # Asked here too: a short step may end before it reports for the first time.
        if not self._progress(Progress(0.0)):
            raise Interrupted("stopped")
        answer = action(self._progress)
        result = answer if isinstance(answer, Result) else None
        moved = moved_by(step, result) if result is not None and isinstance(step, Job) else None
        if journal_entry is not None:
            self._compare(journal_entry, answer)
            self._note(journal_entry, None)
        else:
            self._number += 1
            entry = JournalEntry(
                number=self._number,
                key=step.key,
                kind=kind,  # type: ignore[arg-type]
                title=step.title,
                measured=isinstance(step, Job) and step.measured,
                began=_text(began),
                ended=_text(began + timedelta(seconds=_clock() - clock)),
                note=answer if isinstance(answer, str) else "",
                state=self.session.state(),
                moved=moved.document() if moved is not None else {},
            )
            self.folder.append(entry, result)
            if result is not None and self._logs is not None:
                logfolder.write(self._logs / f"{entry.number:05d}-{label(step.key)}", result)
            self._done[step.key] = entry
            self._note(entry, result)
        self._tally.end(moved)
        self._checkpoint((journal_entry or self._done[step.key]).number)

    def _note(self, entry: JournalEntry, result: Result | None) -> None:
        if entry.kind != "job":
            self.records.notes[entry.key] = entry.note
        elif result is not None:
            self.records.add(entry.key, result)
        else:
            self.records.keys_.append(entry.key)

    def _progress(self, news: Progress) -> bool:
        return self.progress(self._tally.news(news))

    # --- the state of a simulated drive

    def _restore(self) -> None:
        for number, path in self.folder.checkpoints():
            # Without a state that can be read the steps are simulated from the start.
            with contextlib.suppress(InputError):
                if number <= self._number:
                    self.session.restore(path)
                    self._replayed_to = number
                    return

    def _checkpoint(self, number: int) -> None:
        if self.session.kind != "sim":
            return
        lost = time.monotonic() - self._kept_at
        if lost < max(CHECKPOINT_EVERY_S, CHECKPOINT_COST * self._keeping_s):
            return
        begin = time.monotonic()
        older = self.folder.checkpoints()
        self.session.save(self.folder.path / f"state-{number:05d}.bin")
        for _, path in older:
            path.unlink(missing_ok=True)
        self._kept_at = time.monotonic()
        self._keeping_s = self._kept_at - begin

    def _compare(self, entry: JournalEntry, answer: Result | str) -> None:
        """A step done once more to bring the drive back must come to what it came to before."""
        if isinstance(answer, Result):
            before = json.dumps(self.folder.load(entry).document, sort_keys=True)
            if json.dumps(answer.document, sort_keys=True) != before:
                raise ExperimentError(
                    f"{entry.key}: comes to another result than before, so the run cannot go on; "
                    "begin a new one"
                )


def seed_of(seed: int, key: str) -> int:
    """The seed of a step's job: its own, and the same whenever the run is done again."""
    digest = hashlib.blake2b(f"{seed}/{key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _steadiness(record: RoundsRecord) -> str:
    windows = record.windows()
    if not windows:
        return ""
    excursion = max(window.excursion_share for window in windows.values())
    slope = max(window.slope_share for window in windows.values())
    held = "steady" if record.steady else "not yet steady"
    return (
        f"{held}: excursion {percent(excursion)} (20 % allowed), "
        f"slope {percent(slope)} (10 % allowed)"
    )


def _clock() -> float:
    """Seconds on a clock that nobody sets, and that goes on while the system sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
