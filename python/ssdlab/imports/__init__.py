"""What others measured with fio, as runs: documents of any version, the folders of bench-fio, ezFIO
and CBT, and the logs beside them.

What a document does not say stays unknown; nothing is made up for it. Only regular files below the
places that are named are read, and no link is followed out of them.
"""

from __future__ import annotations

from ssdlab.imports.find import Foreign, Refused, Scan, scan
from ssdlab.imports.keep import Keeper, Kept, imported_runs

__all__ = ["Foreign", "Keeper", "Kept", "Refused", "Scan", "imported_runs", "scan"]
