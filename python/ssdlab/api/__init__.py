"""What the package does, as functions: each command calls one, and so do notebooks and scripts.

A function takes what its command takes, under the same names, and returns what the command shows
as a :class:`ssdlab.api.report.Report`, or a :class:`ssdlab.Result` where that is a run.
"""
