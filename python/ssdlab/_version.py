"""The one version of the package: the compiled core's."""

from ssdlab import _core

VERSION: str = _core.version
