"""Looks at how a system uses its drives: the stack below a path, and what its settings cost."""

from ssdlab.audit.checks import CHECKS, audit, audit_path
from ssdlab.audit.model import Check, Finding, Status
from ssdlab.audit.scene import Drive, Layer, Scene, look
from ssdlab.system import Evidence, Mount, Space, System

__all__ = [
    "CHECKS",
    "Check",
    "Drive",
    "Evidence",
    "Finding",
    "Layer",
    "Mount",
    "Scene",
    "Space",
    "Status",
    "System",
    "audit",
    "audit_path",
    "look",
]
