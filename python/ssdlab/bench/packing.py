"""Variants as bytes for another process: large contents apart, named by what is in them."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ssdlab import _core
from ssdlab.jobfile import Carried, JobText
from ssdlab.opened import opening
from ssdlab.output import write_to

LARGE_BYTES = 1 << 16
"""What is larger is sent once to each process, not with each variant."""


@dataclass(frozen=True)
class _Trace:
    """A trace, in what is packed."""

    path: Path


@dataclass
class Parcels:
    """Large contents that variants share, by the SHA-256 of each."""

    send: Callable[[str, bytes], None]
    """Told of each once."""
    _known: dict[object, tuple[object, str]] = field(default_factory=dict)

    def of_object(self, one: object) -> str:
        """An array or text."""
        if id(one) not in self._known:
            # Kept, so that no other can get its id.
            self._known[id(one)] = one, self._add(pickle.dumps(one, protocol=5))
        return self._known[id(one)][1]

    def of_file(self, path: Path) -> str:
        """A trace; read once."""
        if path not in self._known:
            with opening(path):
                self._known[path] = path, self._add(path.read_bytes())
        return self._known[path][1]

    def _add(self, content: bytes) -> str:
        name = hashlib.sha256(content).hexdigest()
        self.send(name, content)
        return name


def pack(one: object, parcels: Parcels | None = None) -> bytes:
    """An object as bytes; large contents go to the parcels, where there are any."""
    content = io.BytesIO()
    _Packer(content, parcels).dump(one)
    return content.getvalue()


def unpack(
    content: bytes, parcels: Mapping[str, bytes] | None = None, folder: Path = Path()
) -> Any:
    """What was packed; traces are put into a folder, each once."""
    return _Unpacker(io.BytesIO(content), parcels or {}, folder).load()


class _Packer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, parcels: Parcels | None) -> None:
        super().__init__(file, protocol=5)
        self._parcels = parcels

    def persistent_id(self, obj: object) -> tuple[str, str] | None:
        if self._parcels is None:
            return None
        if isinstance(obj, _Trace):
            return "trace", self._parcels.of_file(obj.path)
        if type(obj) is np.ndarray:
            large = obj.nbytes >= LARGE_BYTES
        else:
            large = type(obj) in (bytes, str) and len(obj) >= LARGE_BYTES  # type: ignore[arg-type]
        return ("object", self._parcels.of_object(obj)) if large else None

    def reducer_override(self, obj: object) -> Any:
        if type(obj) is _core.Rig:
            return _rig, (obj.to_toml(), obj.name)
        if type(obj) is _core.Attachment:
            return _attachment, (obj.name, [(key, value) for key, value, _ in obj.values()])
        if type(obj) is JobText and (self._parcels is None) != (obj.carried is None):
            # What came from elsewhere goes back as it was there.
            needs = None if self._parcels is None else obj.needs()
            given = obj.name, obj.text, obj.folder, obj.replay, _to_send(needs), obj.stages
            return JobText, given
        return NotImplemented


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, parcels: Mapping[str, bytes], folder: Path) -> None:
        super().__init__(file)
        self._parcels, self._folder = parcels, folder

    def persistent_load(self, pid: tuple[str, str]) -> Any:
        kind, name = pid
        if kind == "object":
            return pickle.loads(self._parcels[name])  # noqa: S301 - as the pickle around it
        place = self._folder / name
        if not place.exists():
            write_to(place, self._parcels[name])
        return place


def _to_send(needs: Carried | None) -> Any:
    if needs is None:
        return None
    return replace(needs, traces={name: _Trace(path) for name, path in needs.traces.items()})  # type: ignore[misc]


def _rig(text: str, name: str) -> _core.Rig:
    return _core.Rig(text, rig_name=name)


def _attachment(name: str, values: list[tuple[str, str]]) -> _core.Attachment:
    """With the same keys; where they are known from stays behind."""
    attachment = _core.Attachment()
    for key, value in values:
        attachment = attachment.having(key, value, name=name)
    return attachment
