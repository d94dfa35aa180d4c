"""How a drive is: what it tells of itself, a verdict in words, and how long it lasts."""

from ssdlab.smart.change import compare
from ssdlab.smart.history import Projection, project
from ssdlab.smart.model import Health, Severity
from ssdlab.smart.simulated import from_wear
from ssdlab.smart.smartctl import parse, read_document
from ssdlab.smart.sources import Snapshots, live
from ssdlab.smart.verdict import judge, worst
