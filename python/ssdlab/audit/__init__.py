"""Looks at how a system uses its drives: the stack below a path, and what its settings cost."""

from ssdlab.audit.checks import CHECKS, audit_path
from ssdlab.audit.model import Finding, Status
from ssdlab.audit.scene import Drive, Layer, Scene
from ssdlab.system import Space, System

__all__ = [
    "CHECKS",
    "Drive",
    "Finding",
    "Layer",
    "Scene",
    "Space",
    "Status",
    "System",
    "audit_path",
]
