"""Results of simulations that were run before, by all that their numbers depend on.

A file each, in ``$SSDLAB_CACHE``, else ``$XDG_CACHE_HOME/ssdlab/simulations``: an archive like
that of a run's step (:mod:`ssdlab.store.folder`), with the question that it answers. What cannot be
read is run again, what cannot be written is not kept: neither is an error.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ssdlab import _core, documents, simulation, wear
from ssdlab._version import VERSION
from ssdlab.bench.content import content_of
from ssdlab.errors import InputError
from ssdlab.fio import logs as fio_logs
from ssdlab.jobfile import JobText
from ssdlab.results import Result
from ssdlab.store import folder as store
from ssdlab.target import Settings, Sim

PLACE = "SSDLAB_CACHE"
"""Variable of the environment: a folder, or ``off``."""
OFF = "off"
BYTES_MAX = 1 << 30
"""Above it, what was not used for the longest time is removed."""
SHARE_MAX = 16
"""One result takes at most this part of all; as often the folder is looked through."""
WORTH_S = 0.05
"""Seconds; what took less is not kept. Keeping and reading a result take about 5 ms each."""
QUESTION = "question.json"
BESIDE = "beside.json"


def place() -> Path | None:
    """Where results are kept; None where that is switched off, or there is no home."""
    given = os.environ.get(PLACE)
    if given:
        return None if given == OFF else Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(RuntimeError):
        return Path(base or Path.home() / ".cache") / "ssdlab" / "simulations"
    return None


def question(target: Sim, job: JobText, settings: Settings) -> str | None:
    """All that the result of a run depends on, with the texts of rig and job as they are, since a
    result has them; None where it is not known or nothing is kept."""
    if settings.logs or settings.all_counters:
        return None
    try:
        asked = [
            *built(), target.name, target.source, target.rig, [*settings.overrides.items()],
            settings.prepare or "fob", settings.seed, settings.interval_ms,
            job.name, job.text, content_of(job),
        ]  # fmt: skip
    except (InputError, OSError):
        return None  # the run says what is wrong
    return json.dumps(asked)


@functools.cache
def built(*more: str) -> tuple[str, str]:
    """What computes, which every question begins with: the version, and a digest of its files and
    of ``more``, as builds of one version may differ while it is developed."""
    whole = hashlib.sha256()
    for file in (*(str(one.__file__) for one in (_core, simulation, wear, fio_logs)), *more):
        whole.update(Path(file).read_bytes())
    return VERSION, whole.hexdigest()


class Archive:
    """The folder of results that are kept. Several threads and processes may use it at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._unseen = BYTES_MAX
        """Bytes that were written since the folder was looked through."""

    def find(self, name: str, asked: str) -> tuple[Result, str] | None:
        """The result of a run of a target called ``name``, and what was kept beside it; None where
        it is not there whole."""
        file = self._file(asked)
        try:
            with documents.archive(file) as found:
                if found.read(QUESTION) != asked.encode():
                    return None
                files = store.StepFiles(found.namelist(), found.read, lambda one: f"{file}, {one}")
                result = store.result_of(files, name)
                beside = found.read(BESIDE).decode()
            os.utime(file)  # used last
        except (InputError, OSError, KeyError):
            return None
        return result, beside

    def keep(self, asked: str, result: Result, beside: str = "") -> bool:
        """Keeps a result, where there is room for it, and answers whether; not one whose logs would
        be called otherwise in the archive."""
        files = store.files_of_result(result)
        if [name for name in files if name.endswith(".log")] != [name for name, _ in result.logs]:
            return False
        content = store.archived({QUESTION: asked, BESIDE: beside, **files})
        return self._write(self._file(asked), content)

    def _write(self, file: Path, content: bytes) -> bool:
        if len(content) > BYTES_MAX // SHARE_MAX:
            return False
        part = file.with_name(f".{secrets.token_hex(8)}")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            try:
                # Not synced: what a power failure cuts short is run again.
                part.write_bytes(content)
                part.replace(file)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
            self._make_room(len(content))
        except OSError:
            return False
        return True

    def find_text(self, asked: str) -> str | None:
        """The text that was kept as the answer to a question; None where there is none whole."""
        file = self._file(asked, "json")
        try:
            question, answer = json.loads(file.read_text("utf-8"))
            os.utime(file)
        except (OSError, ValueError, TypeError):
            return None
        return str(answer) if question == asked else None

    def keep_text(self, asked: str, answer: str) -> None:
        """Keeps a text as the answer to a question, where there is room for it."""
        self._write(self._file(asked, "json"), json.dumps([asked, answer]).encode())

    def _file(self, asked: str, kind: str = "zip") -> Path:
        return self._folder / f"{hashlib.sha256(asked.encode()).hexdigest()}.{kind}"

    def _make_room(self, written: int) -> None:
        """Removes what was used longest ago, now and then."""
        with self._lock:
            self._unseen += written
            if self._unseen < BYTES_MAX // SHARE_MAX:
                return
            self._unseen = 0
            found = []
            for one in os.scandir(self._folder):
                with contextlib.suppress(FileNotFoundError):  # another process was quicker
                    status = one.stat(follow_symlinks=False)
                    found.append((status.st_mtime_ns, one.name, status.st_size))
            over = sum(size for *_, size in found) - BYTES_MAX
            for _, name, size in sorted(found):
                if over <= 0:
                    break
                (self._folder / name).unlink(missing_ok=True)
                over -= size


_archive = functools.lru_cache(maxsize=None)(Archive)


def text(asked: str, make: Callable[[], str]) -> str:
    """The text that answers a question: kept, else made and kept; raises as ``make``."""
    folder = place()
    if folder is None:
        return make()
    archive = _archive(folder)
    if (found := archive.find_text(asked)) is not None:
        return found
    answer = make()
    archive.keep_text(asked, answer)
    return answer


@dataclass
class KeptRuns:
    """What was run before, for the runs of one variant; how many of them it was, and are kept."""

    fresh: bool = False
    """Whether all is run again; what comes of it is kept in place of the old."""
    runs: int = 0
    reused: int = 0
    kept: int = 0

    def run(
        self, target: Sim, job: JobText, settings: Settings, make: Callable[[], Result]
    ) -> Result:
        """The result of a run: kept, else made and kept; raises as ``make``."""
        asked = None if place() is None else question(target, job, settings)
        return self.take(target.name, asked, lambda: (make(), ""))[0]

    def take(
        self, name: str, asked: str | None, make: Callable[[], tuple[Result, str]],
        took_s: float = 0.0,
    ) -> tuple[Result, str]:  # fmt: skip
        """The same of what answers a question, None for one that nobody knows, with a text beside
        it; ``took_s`` is what was spent to come to where it begins."""
        folder = place()
        self.runs += 1
        if folder is None or asked is None:
            return make()
        archive = _archive(folder)
        if not self.fresh and (found := archive.find(name, asked)) is not None:
            self.reused += 1
            self.kept += 1
            return found
        began = time.monotonic()
        made = make()
        if took_s + time.monotonic() - began >= WORTH_S:
            self.kept += archive.keep(asked, *made)
        return made
