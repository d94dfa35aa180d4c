"""Writes the report: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from ssdlab.errors import InputError
from ssdlab.output import Place, write_to
from ssdlab.report.catalogue import ENGLISH
from ssdlab.report.page import Page
from ssdlab.results import Result


def render(results: Sequence[Result], place: Place, *, title: str | None = None) -> None:
    """Writes the report of `results` to `place`: one HTML file without network access.

    The runs stand side by side in the order given; the same job on several runs is one section.
    The file appears whole or not at all.

    Raises InputError if there are no results, and as :class:`ssdlab.output.Output` does.
    """
    words = ENGLISH
    if not results:
        raise InputError(words("error.nothing"))
    write_to(place, Page(results, title, words).html())
