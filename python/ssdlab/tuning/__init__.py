"""Sets a drive and its system up for a run (``--setup``), and restores everything after it.

A setting is an entry of :data:`SETTINGS`. Every value is read before it is set and read back
after; what a run has set stands in a journal on the disk before it is set, from which the next
run, or ``ssdlab setup --restore``, restores what a killed one has left set.
"""

from ssdlab.tuning.apply import applied, preview, restore_left
from ssdlab.tuning.model import Record, readable, rows
from ssdlab.tuning.settings import (
    NONE,
    PRESETS,
    SETTINGS,
    consent,
    for_client,
    parse,
    wanted_block,
)
