"""Looks at how a system uses its drives: the stack below a path, and what its settings cost."""

from ssdlab.audits.checks import CHECKS, audit_path
from ssdlab.audits.model import Finding, Status
from ssdlab.audits.scene import Layer, Scene, SystemDrive
from ssdlab.system import FileSystemSpace, System
