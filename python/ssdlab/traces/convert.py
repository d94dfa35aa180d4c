"""Traces written in another format, whole or in part, and jobs for fio made of them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from ssdlab import _core
from ssdlab.errors import InputError, unknown_name
from ssdlab.output import Output, Place
from ssdlab.progress import ProgressCallback, answering_ctrl_c
from ssdlab.tracefile import Reading, existing
from ssdlab.traces.profile import told


def writable() -> list[str]:
    """Names of the formats that can be written."""
    return [one["name"] for one in _core.trace_formats() if one["writable"]]


def format_of(name: Path, asked: str | None) -> str:
    """The format to write: as asked, or as the name says."""
    if asked is not None:
        if asked not in writable():
            known = [one["name"] for one in _core.trace_formats()]
            if asked in known:
                raise InputError(
                    f"--to {asked}: this format can be read but not written; "
                    f"those that can: {', '.join(writable())}"
                )
            raise unknown_name("trace format", asked, writable())
        return asked
    bare = name.with_suffix("") if name.suffix in (".gz", ".zst", ".xz") else name
    for one in _core.trace_formats():
        if bare.suffix and bare.suffix == one["suffix"]:
            return one["name"]
    raise InputError(f"{name}: say with --to which format to write: {', '.join(writable())}")


def convert(
    source: str | Path,
    out: Place,
    to: str | None = None,
    reading: Reading | None = None,
    *,
    file: str = "trace.dat",
    progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Writes a trace to ``out``, compressed as its suffix says; what was written.

    A plain file takes its place whole or not at all; ``out`` may be a pipe too.

    Raises:
        InputError: as :func:`ssdlab.traces.open`, or a format that cannot be written.
        RefusedError: ``out`` is a block device.
        ExperimentError: the disk is full.
        Interrupted: Ctrl-C, or ``progress`` returned False; nothing is left behind.
    """
    how = reading or Reading()
    place = out if isinstance(out, Output) else Output(out)
    with contextlib.closing(place):
        path, name = existing(source), format_of(place.path, to)
        if place.is_same(path):
            raise InputError(f"{out}: is the trace that is read; give another name to write to")
        with place.writer() as part:
            with answering_ctrl_c():
                done = _core.trace_convert(
                    path, how.options(), part, to=name, name=place.path.name, file=file,
                    block_bytes=how.block_bytes, progress=told(progress),
                )  # fmt: skip
            if not done["requests"]:
                raise InputError(f"{source}: no request of it can be said in the format {name}")
    loses = next(one["loses"] for one in _core.trace_formats() if one["name"] == name)
    return {"source": str(source), "file": str(out), "to": name, "loses": loses, **done}
