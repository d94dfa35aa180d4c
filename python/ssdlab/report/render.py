"""Writes the report: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ssdlab.errors import InputError
from ssdlab.report.catalogue import ENGLISH
from ssdlab.report.page import Page
from ssdlab.results import Result
from ssdlab.store import write_whole


def render(results: Sequence[Result], path: Path, *, title: str | None = None) -> None:
    """Writes the report of `results` to `path`: one HTML file without network access.

    The runs stand side by side in the order given; the same job on several runs is one section.
    The file appears whole or not at all.

    Raises InputError if there are no results or the place cannot be written, and ExperimentError
    if the disk is full.
    """
    words = ENGLISH
    if not results:
        raise InputError(words("error.nothing"))
    write_whole(Path(path), Page(results, title, words).html())
