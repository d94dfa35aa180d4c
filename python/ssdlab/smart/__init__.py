"""How a drive is: what it tells of itself, a verdict in words, and how long it lasts."""

from ssdlab.smart.change import HealthChange, compare
from ssdlab.smart.history import Projection, project
from ssdlab.smart.model import Attribute, Health, Severity
from ssdlab.smart.simulated import from_wear
from ssdlab.smart.smartctl import parse, read_document
from ssdlab.smart.sources import Snapshots, live, load
from ssdlab.smart.verdict import judge, worst

__all__ = [
    "Attribute",
    "Health",
    "HealthChange",
    "Projection",
    "Severity",
    "Snapshots",
    "compare",
    "from_wear",
    "judge",
    "live",
    "load",
    "parse",
    "project",
    "read_document",
    "worst",
]
