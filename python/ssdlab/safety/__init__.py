"""The only doors to what is written: nothing writes to a block device except through :func:`claim`,
which lets its data be lost, or :func:`claim_for_rewrite`, behind which every byte is written as it
was read; nothing overwrites a file except through :func:`make_file` and :func:`hold_file`.

A drive is refused while it is mounted anywhere, in use by RAID, LVM, ZFS, swap, another program or
anything else (:mod:`ssdlab.safety.uses`), while it holds a partition table or a file system, and
unless it is named by its serial number. The kernel's exclusive claim is held for the whole run, so
that nothing can be mounted on it meanwhile; programs get the open descriptor, so that what was
checked is what is written; and before each step all of it is asked again. For rewriting a file
system may be there, and even be mounted, but then it is frozen for every slice.
"""

from ssdlab.safety.device import (
    BlockDevice,
    Work,
    amount,
    claim,
    inspect,
    look,
    opened,
    refusal,
    warning,
    why_refused,
    why_unnamed,
)
from ssdlab.safety.files import (
    exists,
    hold_file,
    look_at_file,
    make_file,
    why_file_refused,
)
from ssdlab.safety.held import Held
from ssdlab.safety.rewrite import Rewriting, claim_for_rewrite, why_rewrite_refused
