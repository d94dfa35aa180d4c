"""Many runs that differ in what they are asked to differ in, and one table of all of them.

``order`` reads what is asked for, ``axes`` says what varies, ``sample`` draws from ranges,
``formula`` reads conditions, ``plan`` says which runs that makes, ``dataset`` keeps the table,
``estimate`` says what that takes, ``carry`` runs what is not in it yet, and ``claims`` has several
processes share that.
"""

from ssdlab.sweeps.axes import Axis, axis
from ssdlab.sweeps.carry import SweepOutcome, carry_out
from ssdlab.sweeps.dataset import Dataset
from ssdlab.sweeps.estimate import forecast
from ssdlab.sweeps.order import SweepOrder, from_line, read_order
from ssdlab.sweeps.plan import Sweep, SweepRun
