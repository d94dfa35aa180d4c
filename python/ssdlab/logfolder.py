"""A folder of fio's logs and documents, named as bench-fio names them: fio-plot draws from it.

Each section of a job has ``<rw>-iodepth-<d>-numjobs-<n>_<type>.<thread>.log`` and
``<rw>-<d>-<n>.json``. Where sections share that name, each has a folder below, called as it is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ssdlab.errors import InputError
from ssdlab.fio.logs import entries
from ssdlab.output import make_folder, prove, write_to, writing
from ssdlab.results import JobShape, Result
from ssdlab.store import label


def prepare(folder: Path, shapes: Sequence[JobShape]) -> None:
    """Proves that the files of ``shapes`` can be written to ``folder`` and will overwrite nothing;
    InputError where not."""
    prove(folder)
    for place, shape in zip(_places(folder, shapes), shapes, strict=True):
        _check_free(place, shape)


def prepare_empty(folder: Path) -> None:
    """Proves that ``folder`` can be written and is empty, or can be made; InputError where not."""
    prepare(folder, [])
    with writing(folder):
        path = next(folder.iterdir(), None) if folder.exists() else None
    if path is not None:
        raise InputError(f"{folder}: is not empty ({path.name} is in it); give --logs a new folder")


def write(folder: Path, result: Result) -> None:
    """Writes the logs of ``result`` and a document for each of its sections; InputError where a
    name is taken meanwhile."""
    shapes = [logs.shape for logs in result.job_logs]
    own = entries([shape.name for shape in shapes], result.document)
    places = _places(folder, shapes)
    for place, logs, jobs in zip(places, result.job_logs, own, strict=True):
        _check_free(make_folder(place), logs.shape)
        for ending, text in logs.files:
            write_to(place / f"{_stem(logs.shape)}_{ending}", text)
        # Sections that group_reporting folds together have one document, under the first.
        if jobs:
            document = _document(result.document, logs.shape, jobs)
            write_to(place / _json_name(logs.shape), json.dumps(document, indent=2) + "\n")


def _places(folder: Path, shapes: Sequence[JobShape]) -> list[Path]:
    shared = Counter(_stem(shape) for shape in shapes)
    places: list[Path] = []
    for shape in shapes:
        place = folder if shared[_stem(shape)] == 1 else folder / label(shape.name)
        number = 2
        while place != folder and place in places:
            place, number = folder / f"{label(shape.name)}-{number}", number + 1
        places.append(place)
    return places


def _check_free(place: Path, shape: JobShape) -> None:
    names = (_json_name(shape), f"{_stem(shape)}_")
    with writing(place):
        there = sorted(path.name for path in place.iterdir()) if place.exists() else []
    for name in there:
        if name == names[0] or name.startswith(names[1]):
            raise InputError(
                f"{place / name}: exists and would be overwritten; give --logs another folder"
            )


def _stem(shape: JobShape) -> str:
    return f"{shape.rw}-iodepth-{shape.iodepth}-numjobs-{shape.numjobs}"


def _json_name(shape: JobShape) -> str:
    return f"{shape.rw}-{shape.iodepth}-{shape.numjobs}.json"


def _document(
    whole: Mapping[str, Any], shape: JobShape, jobs: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """A fio document of one section alone, with the options that fio-plot looks for."""
    options = {
        "rw": shape.rw,
        "bs": shape.bs,
        "iodepth": str(shape.iodepth),
        "numjobs": str(shape.numjobs),
    }
    shared = whole.get("global options", {})
    head = {
        key: whole[key]
        for key in ("fio version", "timestamp", "timestamp_ms", "time")
        if key in whole
    }
    return head | {
        "global options": {},
        "jobs": [
            {**job, "job options": {**shared, **job.get("job options", {}), **options}}
            for job in jobs
        ],
    }
