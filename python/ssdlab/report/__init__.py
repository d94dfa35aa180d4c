"""The report: charts, numbers and a verdict in one HTML file."""

from ssdlab.report.render import render

__all__ = ["render"]
