"""What a run's numbers depend on of its job, wherever the files of it are kept."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

from ssdlab.errors import InputError
from ssdlab.jobfile import JobText
from ssdlab.tracefile import Replay

DEPTH_MAX = 10
_REPLAYED = re.compile(r"^\s*read_iolog\s*=\s*(.+?)\s*$", re.MULTILINE)
_INCLUDED = re.compile(r"^\s*include\s+(.+?)\s*$", re.MULTILINE)
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def content_of(job: JobText) -> str:
    """A text that is the same for jobs that do the same: traces are named by what is in them,
    included files and variables of the environment stand beside; InputError where a file cannot be
    read."""
    text = _REPLAYED.sub(lambda match: f"read_iolog={_hash(job, match[1])}", job.text)
    beside = list(_beside(job, job.text, DEPTH_MAX))
    if job.replay != Replay():
        beside.append(json.dumps(asdict(job.replay)))
    if job.stages is not None:
        beside.append(json.dumps({"stages": job.stages}))
    return json.dumps([text, *beside]) if beside else text


def _beside(job: JobText, text: str, depth: int) -> Iterator[str]:
    """Included files, and the variables that a text asks for."""
    if depth == 0:
        return  # the core says that files include each other
    environment = job.environment()
    for name in sorted(set(_VARIABLE.findall(text))):
        yield f"{name}={environment.get(name)}"
    for path in _INCLUDED.findall(text):
        inner = job.include(path)
        yield inner
        yield from (_hash(job, one) for one in _REPLAYED.findall(inner))
        yield from _beside(job, inner, depth - 1)


def _hash(job: JobText, name: str) -> str:
    path = Path(job.trace(name)[0])
    status = path.stat()
    return _of_file(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1024)
def _of_file(path: Path, _size: int, _changed_ns: int) -> str:
    """The hash of a trace, read once while it stays as it is."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot read this trace ({error.strerror})") from None
