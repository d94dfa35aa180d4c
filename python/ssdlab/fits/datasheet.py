"""Numbers of a data sheet as observations: a small TOML, for want of measurements or beside them.

    capacity = "960GB"

    [[workload]]
    rw = "randread"
    iops = 97_000

    [[workload]]
    rw = "write"
    bw = "520MB/s"

The keys are the columns of the table of :mod:`ssdlab.fits.observations`, and for short ``depth``
(``iodepth``; 32 where rates are told, else 1), ``bw`` (a rate in bytes) and ``latency`` (mean, such
as "90us").
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ssdlab import units
from ssdlab.errors import InputError, meant
from ssdlab.fits.observations import ASKED, MEASURED, Observation, row
from ssdlab.fits.parameters import amount
from ssdlab.jobfile import read_text

SHORT = ("depth", "bw", "latency")
DEPTH = 32
"""At which data sheets tell rates."""
BLOCK = "128k"
"""Of reads and writes in order, likewise."""
WIDTH = 0.2
"""Standard deviation of the logarithm of what a data sheet says by what such a drive does."""


def read(path: Path) -> tuple[list[Observation], int | None]:
    """The observations of a data sheet, and the capacity in bytes where it tells that; InputError
    where a key or value is wrong."""
    try:
        told = tomllib.loads(read_text(path, "data sheet"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: is no TOML: {error}") from None
    if "device" in told:
        raise InputError(f"{path}: is a rig and no data sheet; --start takes it")
    for key in told:
        if key not in ("capacity", "workload"):
            raise _unknown(str(path), key, ("capacity", "workload"))
    workloads = told.get("workload")
    if not isinstance(workloads, list) or not workloads:
        raise InputError(f"{path}: names no workload, expected [[workload]] with rw and iops or bw")
    observations = [
        _observation(workload, f"{path}, workload {n}") for n, workload in enumerate(workloads, 1)
    ]
    capacity = told.get("capacity")
    return observations, None if capacity is None else units.parse_bytes(
        f"{path}: capacity", capacity
    )


def _observation(told: Any, where: str) -> Observation:
    if not isinstance(told, Mapping):
        raise InputError(f"{where}: expected keys such as rw and iops")
    known = (*ASKED, *MEASURED, *SHORT)
    for key in told:
        if key not in known:
            raise _unknown(where, key, known)
    cells = {key: str(value) for key, value in told.items()}
    depth, rate, latency = (cells.pop(key, "") for key in SHORT)
    if not cells.get("rw", "").startswith("rand"):
        cells.setdefault("bs", BLOCK)
    rates = "iops" in cells or rate
    cells.setdefault("iodepth", depth or (str(DEPTH) if rates else "1"))
    if latency:
        cells["lat_mean_us"] = f"{amount(f'{where}: latency', latency) / 1e3:g}"
    observation = row(cells, where)
    if rate:
        if "iops" in observation.measured:
            raise InputError(f"{where}: says iops and bw, expected one of them")
        speed = units.parse_rate(f"{where}: bw", rate)
        observation = replace(
            observation, measured={**observation.measured, "iops": speed / observation.load.bs}
        )
    if not observation.measured:
        raise InputError(f"{where}: says nothing of it, expected iops, bw or latency")
    return replace(observation, width=WIDTH)


def _unknown(where: str, key: str, known: tuple[str, ...]) -> InputError:
    hint = meant(key, known)
    return InputError(f'{where}: has an unknown key "{key}"{hint}; there are: {", ".join(known)}')
