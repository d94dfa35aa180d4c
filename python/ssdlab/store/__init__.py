"""The store of runs: a folder per run, made whole or not at all, and nothing beside them.

A run begins in a temporary folder beside its place, which is synced and renamed when there is all
that makes it a run. So a killed one leaves only a temporary folder, which the next writer clears
away. What is listed is read from the folders.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import secrets
import shlex
import shutil
import time
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdlab._version import VERSION
from ssdlab.errors import BrokenOffError, InputError, Interrupted
from ssdlab.output import make_folder, prove, write_to, writing
from ssdlab.units import DAY_S

if TYPE_CHECKING:
    from ssdlab.results import Result
    from ssdlab.store.folder import JournalEntry, RunFolder

MANIFEST = "manifest.json"
LAST = "last"
"""What names the newest run of a store."""
_TEMPORARY = ".partial-"
ABANDONED_S = DAY_S
"""A temporary folder of another machine that is older was left by a writer that died."""


def default_root() -> Path:
    """``$XDG_DATA_HOME/ssdlab/runs``, or ``~/.local/share/ssdlab/runs``."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "ssdlab" / "runs"


def called(path: Path) -> str:
    """What a command line calls the run in this folder: its id where runs are kept unless a command
    says otherwise, else the folder."""
    return path.name if path.parent == default_root() else shlex.quote(str(path))


class RunStore:
    """Runs kept under one folder."""

    def __init__(self, root: Path | str | None = None) -> None:
        self.root = default_root() if root is None else Path(root)

    def prepare(self) -> None:
        """Proves that runs can be kept, before an experiment starts; the first makes the folder."""
        prove(self.root)
        self._clear_leftovers()

    def create(
        self,
        about: Mapping[str, Any],
        rig: str | None = None,
        steps: Sequence[tuple[JournalEntry, Result]] = (),
        *,
        ending: str | None = None,
    ) -> RunFolder:
        """A new run with these finished steps; ``about`` are the fields of its
        :class:`ssdlab.store.folder.Manifest`, ``rig`` is that which was asked for, ``ending`` that
        of its name instead of some letters by chance."""
        from ssdlab.store.folder import JOB, JOURNAL, RIG, SCHEMA, Manifest, RunFolder

        known = {
            "schema": SCHEMA,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "version": VERSION,
            **about,
        }
        created = datetime.fromisoformat(known["created"])
        kind = [] if known["protocol"] == JOB else [known["protocol"]]
        stem = f"{created:%Y%m%d-%H%M%S}-{'-'.join([*kind, label(known['name'])])}"
        run_id = f"{stem}-{ending}" if ending else self._free(stem)
        with self._filled(run_id) as part:
            run = RunFolder(part, Manifest(id=run_id, **known))
            (part if run.is_job else part / "steps").mkdir(parents=True, exist_ok=True)
            (part / JOURNAL).touch()
            if rig is not None:
                write_to(part / RIG, rig)
            for entry, result in steps:
                run.append(entry, result)
            run.set_status(run.manifest.status)
        run.path = self.root / run_id
        return run

    def save(
        self, result: Result, *, made: datetime | None = None, ending: str | None = None
    ) -> Path:
        """Keeps the result of a job file as a run of its own; its folder. ``made`` is when it was
        measured, if not now; ``ending`` as in :meth:`create`."""
        from ssdlab.store.folder import JOB, JournalEntry

        target = result.ssdlab.get("target", {})
        jobs = list(dict.fromkeys(job.name for job in result.jobs))
        moment = datetime.now(UTC) if made is None else made
        now = moment.isoformat(timespec="milliseconds")
        about = {
            "created": moment.isoformat(timespec="seconds"),
            "protocol": JOB,
            "name": result.name,
            "kind": result.target_kind,
            "target": {"name": result.name, **target, "kind": result.kind},
            "jobs": jobs,
            "seed": result.ssdlab.get("seed"),
            "capacity": target.get("capacity_bytes") or 0,
            "version": result.ssdlab.get("version"),
            "status": result.ssdlab.get("status", "complete"),
            **({"imported": result.imported["file"]} if result.imported else {}),
        }
        step = JournalEntry(1, JOB, "job", ", ".join(jobs), True, now, now)
        result.folder = self.create(about, steps=[(step, result)], ending=ending).path
        return result.folder

    @contextlib.contextmanager
    def keeping_broken(self) -> Iterator[None]:
        """Keeps what a job had done that breaks off or is stopped, and says where."""
        try:
            yield
        except (BrokenOffError, Interrupted) as error:
            if error.result is None:
                raise
            kept = called(self.save(error.result))
            raise type(error)(
                f"{error.message}; what was measured until then is kept: ssdlab show {kept}",
                error.result,
            ) from None

    def adopt(self, run_id: str, files: Mapping[str, bytes]) -> Path:
        """Keeps a run that was made in another store, as :func:`files_of` has it; its folder;
        raises as :meth:`create`."""
        with self._filled(run_id) as part:
            for name, content in files.items():
                (part / name).parent.mkdir(parents=True, exist_ok=True)
                write_to(part / name, content)
        return self.root / run_id

    def _free(self, stem: str) -> str:
        """An id that no run has, and none that another thread is about to keep: four letters by
        chance are soon the same where many short runs are kept in one second."""
        while True:
            run_id = f"{stem}-{secrets.token_hex(2)}"
            with writing(self.root), contextlib.suppress(FileExistsError):
                part = self._part(run_id)
                part.mkdir()
                if not (self.root / run_id).exists():
                    return run_id
                part.rmdir()

    def _part(self, run_id: str) -> Path:
        """Where a run is until it is whole."""
        return make_folder(self.root) / f"{_partial()}{run_id}"

    @contextlib.contextmanager
    def _filled(self, run_id: str) -> Iterator[Path]:
        """A folder to be filled, which becomes that of the run once it is whole, or goes away."""
        self.prepare()
        part = self._part(run_id)
        try:
            with writing(self.root):
                yield part
                sync_folder(part)
                part.rename(self.root / run_id)
                sync_folder(self.root)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise

    def open(self, name: str) -> RunFolder:
        """The run called ``name`` as :meth:`find` finds it, opened as :func:`open_run` does."""
        return open_run(self.find(name))

    def find(self, name: str) -> Path:
        """The folder of the run called ``name``: a path, a full id, an unambiguous piece, or
        :data:`LAST`."""
        path = self.seek(name)
        if path is not None:
            return path
        inside = RunStore(name).ids() if name and Path(name).is_dir() else []
        if inside:
            raise InputError(
                f"{name}: is a folder of runs; name one of them, such as {Path(name) / inside[-1]}"
            )
        raise InputError(f'no run is called "{name}" in {self.root}; "ssdlab list runs" shows them')

    def seek(self, name: str) -> Path | None:
        """The same; None where there is no such run. InputError where a piece fits several."""
        for folder in (Path(name), self.root / name):
            with contextlib.suppress(OSError, ValueError):
                if (folder / MANIFEST).is_file():
                    return folder
        ids = self.ids()
        if name == LAST and ids:
            return self.root / max(ids, key=self._begun)
        matches = [run_id for run_id in ids if name and name in run_id]
        if len(matches) == 1:
            return self.root / matches[0]
        if matches:
            first = ", ".join(matches[:4]) + (" ..." if len(matches) > 4 else "")
            raise InputError(f'"{name}" fits {len(matches)} runs: {first}; give more of it')
        return None

    def _begun(self, run_id: str) -> tuple[str, int]:
        """Puts runs in order, those of one second too; one that is gone meanwhile comes first."""
        try:
            return run_id[:15], (self.root / run_id / MANIFEST).stat().st_mtime_ns
        except OSError:
            return "", 0

    def ids(self) -> list[str]:
        """Names of the folders that have a manifest, oldest first; nothing of them is read."""
        try:
            names = os.listdir(self.root)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(f"{self.root}: cannot be read ({error.strerror})") from None
        whole = (n for n in names if not n.startswith(_TEMPORARY))
        return sorted(n for n in whole if (self.root / n / MANIFEST).is_file())

    def entries(self) -> list[RunFolder]:
        """All runs whose manifest can be read, oldest first."""
        return self.listing()[0]

    def listing(self) -> tuple[list[RunFolder], list[InputError]]:
        """All runs, oldest first, and what is wrong with those whose manifest is damaged."""
        runs: list[RunFolder] = []
        wrong: list[InputError] = []
        for run_id in self.ids():
            try:
                runs.append(open_run(self.root / run_id))
            except InputError as error:
                wrong.append(error)
        return sorted(runs, key=lambda run: (run.manifest.created, run.id)), wrong

    def _clear_leftovers(self) -> None:
        """Removes the temporary folders of writers that are no longer alive: here that is known by
        their process, of other machines that share the store only by their age."""
        own = _partial().rpartition(f"{os.getpid()}-")[0]
        for path in self.root.glob(f"{_TEMPORARY}*"):
            pid = path.name.removeprefix(own).split("-", 1)[0]
            with contextlib.suppress(OSError):
                age = time.time() - path.stat().st_mtime
                ours = path.name.startswith(own) and pid.isdigit()
                if not Path(f"/proc/{pid}").exists() if ours else age > ABANDONED_S:
                    shutil.rmtree(path, ignore_errors=True)


def _partial() -> str:
    """How temporary names of this process begin: machine, process ids' namespace, process."""
    try:
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        namespace = 0
    machine = zlib.crc32(f"{uuid.getnode()} {platform.node()} {namespace}".encode())
    return f"{_TEMPORARY}{machine:08x}-{os.getpid()}-"


def open_run(path: Path) -> RunFolder:
    """The run in a folder, also of an older form; InputError where there is none, its manifest is
    damaged, or a newer version wrote it."""
    from ssdlab import documents
    from ssdlab.store import legacy
    from ssdlab.store.folder import SCHEMA, Manifest, RunFolder

    place = path / MANIFEST
    if not place.is_file():
        raise InputError(f"{path}: is not a complete run (there is no {MANIFEST} in it)")
    found = documents.parsed(documents.read_bytes(place), place)
    schema = found.get("schema", 1) if isinstance(found, dict) else SCHEMA
    if schema == 1:
        return legacy.opened(path, found, place)
    if isinstance(schema, int) and schema > SCHEMA:
        raise InputError(f"{path}: was written by a newer version of ssdlab")
    return RunFolder(path, documents.checked(found, Manifest, place))


def files_of(folder: Path) -> dict[str, bytes]:
    """All of a run, by the names of its files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def label(name: str) -> str:
    """A target's name as part of a folder's."""
    return re.sub(r"[^A-Za-z0-9]+", "-", Path(name).name).strip("-").lower()[:40] or "run"


def sync_folder(folder: Path) -> None:
    """Has the names in a folder survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
