"""Job files as text: reading them and what they include, with one sentence where that fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ssdlab.errors import InputError
from ssdlab.tracefile import ReadingOptions, Replay


@dataclass(frozen=True)
class JobText:
    """A job and where it came from. ``folder`` is where its relative includes are looked for."""

    name: str
    text: str
    folder: Path
    replay: Replay = field(default_factory=Replay)
    """How the traces that it replays are read and played."""

    def traces(self) -> Callable[[str], tuple[str, ReadingOptions, str, bool]]:
        """Where the traces are that the job replays (``read_iolog``), and how they are read."""
        return lambda name: self.replay.of(name, self.folder)

    def include(self) -> Callable[[str], str]:
        """A reader of included files; like fio it looks here first, then in ``folder``."""

        def read(path: str) -> str:
            given = Path(path)
            places = [given] if given.is_absolute() else [given, self.folder / given]
            found = next((place for place in places if _exists(place)), None)
            if found is None:
                tried = " or ".join(str(place.absolute()) for place in dict.fromkeys(places))
                raise InputError(f"there is no {tried}")
            return read_text(found, "included job file")

        return read


def read_job(job: str | Path) -> JobText:
    """A job from a path, or from text if ``job`` is a string with a line break in it."""
    if isinstance(job, str) and "\n" in job:
        return JobText("<job>", job, Path.cwd())
    path = Path(job)
    return JobText(str(path), read_text(path, "job file"), path.parent)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True  # reading it says what is wrong


def read_text(path: Path, what: str) -> str:
    """The text of ``path``; ``what`` names it in the error."""
    try:
        # Some editors begin a text with a byte order mark.
        return path.read_text("utf-8").removeprefix("\ufeff")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such {what}") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, not a {what}") from None
    except PermissionError:
        raise InputError(f"{path}: no permission to read this {what}") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: is not a text file in UTF-8 (byte {error.start} does not decode), "
            f"so it cannot be a {what}"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot read this {what} ({reason})") from None
