"""Looks at how a system uses its drives: the stack below a path, and what its settings cost."""

from ssdlab.audit.checks import CHECKS, audit_path
from ssdlab.audit.model import Finding, Status
from ssdlab.audit.scene import Layer, Scene, SystemDrive
from ssdlab.system import Space, System

__all__ = [
    "CHECKS",
    "Finding",
    "Layer",
    "Scene",
    "Space",
    "Status",
    "System",
    "SystemDrive",
    "audit_path",
]
