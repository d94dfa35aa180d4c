"""Administrators' programs (nvme, hdparm): run to their end, their answers read."""
