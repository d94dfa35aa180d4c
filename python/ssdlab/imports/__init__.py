"""What others measured with fio, as runs: documents of any version, the folders of bench-fio, ezFIO
and CBT, and the logs beside them.

What a document does not say stays unknown; nothing is made up for it. Only regular files below the
places that are named are read, and no link is followed out of them.
"""

from ssdlab.imports.find import ForeignDocument, ImportScan, Refused, scan
from ssdlab.imports.keep import ImportedRun, Keeper, foreign_documents, imported_runs
