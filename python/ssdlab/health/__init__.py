"""How a drive is: what it tells of itself, a verdict in words, and how long it lasts."""

from ssdlab.health.change import HealthChange, compare
from ssdlab.health.history import Projection, project
from ssdlab.health.model import Attribute, Health, Severity
from ssdlab.health.simulated import from_wear
from ssdlab.health.smartctl import parse, read_document
from ssdlab.health.sources import Snapshots, live, load
from ssdlab.health.verdict import judge, worst

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
