"""What help and completion take without loading what commands do, which would take seconds.

A command line that asks for words alone leaves :data:`BODIES` off: modules of commands then import
only what their signatures need. The names of commands, protocols and experiments come from
``index.json``, which ``docs/generate.py`` writes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

BODIES = True
"""Whether modules of commands import what the bodies of their functions use."""
COMPLETE = "_SSDLAB_COMPLETE"
"""The variable by which a shell asks for completions."""
INDEX = Path(__file__).with_name("index.json")
PATHS = "*"
"""Behind what is there so far it stands, among completions, for the paths that begin so: the shells
complete them themselves; where there are no others they do so anyway."""
FILES = frozenset({"drives", "controllers"})
"""Kinds of names in whose place a file may be given."""


def asks_for_words(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether a command line can only be answered by help or completions, as where its first option
    is ``--help``: what comes before is no option that could take that as its value."""
    if COMPLETE in environment or not arguments:
        return True
    first = next((argument for argument in arguments if argument.startswith("-")), "")
    return first in ("-h", "--help")


@cache
def index() -> dict[str, Any]:
    """``index.json``: names by kind; of commands also their summaries."""
    found: dict[str, Any] = json.loads(INDEX.read_text("utf-8"))
    return found


def complete(*kinds: str) -> Callable[[str], list[str]]:
    """A callback of typer that completes the names of some kinds, and paths where those may be."""

    def matching(incomplete: str) -> list[str]:
        found = [name for name in names(*kinds) if name.startswith(incomplete)]
        return _with_paths(found, incomplete) if FILES.intersection(kinds) else found

    return matching


def complete_list(*kinds: str, also: Sequence[str] = ()) -> Callable[[str], list[str]]:
    """The same for the last of several, joined by commas; ``also`` are more names."""

    def matching(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        given = before.split(",")
        known = [name for name in (*also, *names(*kinds)) if name not in given]
        return [f"{before}{comma}{name}" for name in known if name.startswith(last)]

    return matching


def complete_store(incomplete: str) -> list[str]:
    """Drives, alone or where a store of several names one: ``raid10:4:DRIVE``."""
    before, colon, last = incomplete.rpartition(":")
    return [f"{before}{colon}{name}" for name in names("drives") if name.startswith(last)]


def complete_runs(incomplete: str) -> list[str]:
    """Ids of kept runs, what names the newest, and paths."""
    from ssdlab.store import LAST, RunStore

    ids = RunStore().ids()
    found = [name for name in [LAST, *ids] if ids and name.startswith(incomplete)]
    return _with_paths(found, incomplete)


def _with_paths(found: list[str], incomplete: str) -> list[str]:
    return [*found, incomplete + PATHS] if found else []


def names(*kinds: str) -> list[str]:
    """Everything of these kinds that can be named."""
    return [name for kind in kinds for name in (index().get(kind) or _of_core(kind))]


def _of_core(kind: str) -> list[str]:
    from ssdlab import _core

    if kind == "policies":
        return [entry["name"] for entry in _core.registries()]
    return [name for option in _core.job_options() for name in (option["name"], *option["aliases"])]
