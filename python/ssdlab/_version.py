"""The one version of the package: the compiled core's. Says why where that cannot be loaded."""

import sys
from pathlib import Path

try:
    from ssdlab import _core
except ImportError as error:
    _place = Path(__file__).parent
    _why = (
        f"ssdlab's compiled core cannot be loaded here ({error}); install a wheel that was built "
        "for this system, or build it here with ./lab setup"
        if any(_place.glob("_core.*so"))
        else f"ssdlab's compiled core is missing in {_place}; install a wheel, or build it with "
        "./lab setup"
    )
    if Path(sys.argv[0]).name == "ssdlab" or sys.orig_argv[1:3] == ["-m", "ssdlab"]:
        sys.exit(f"ssdlab: {_why}")  # whose answers are sentences
    raise ImportError(_why) from None

VERSION: str = _core.version
