"""Many runs that differ in what they are asked to differ in, and one table of all of them.

``axes`` says what varies, ``plan`` which runs that makes, ``dataset`` keeps the table, ``carry``
runs what is not in it yet.
"""

from __future__ import annotations

from ssdlab.sweeps.axes import Axis, axis
from ssdlab.sweeps.carry import Outcome, carry_out
from ssdlab.sweeps.dataset import Dataset
from ssdlab.sweeps.plan import Run, Sweep

__all__ = ["Axis", "Dataset", "Outcome", "Run", "Sweep", "axis", "carry_out"]
