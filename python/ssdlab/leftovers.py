"""Where runs note what they have set, and whether any note is there.

Every start of the program asks that, so nothing more than the question is loaded for it.
"""

from __future__ import annotations

import os
from pathlib import Path


def folder() -> Path:
    """``$XDG_STATE_HOME/ssdlab/setup``, or ``~/.local/state/ssdlab/setup``."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "ssdlab" / "setup"


def any_left() -> bool:
    """Whether there is any journal at all, of the living or the dead."""
    try:
        return any(one.name.endswith(".json") for one in os.scandir(folder()))
    except OSError:
        return False
