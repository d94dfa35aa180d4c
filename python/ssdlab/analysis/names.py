"""What the parts of an I/O's time and the causes of writes to flash are called."""

from __future__ import annotations

PARTS: dict[str, tuple[str, str]] = {
    "link": ("host link", "the transfer over the host link"),
    "link_wait": ("link queue", "waiting for a slot of the host link"),
    "controller": ("controller", "the controller"),
    "map_fetch": ("map fetch", "fetching map entries that are not in RAM"),
    "buffer_wait": ("buffer full", "waiting for room in the write buffer"),
    "write_limit": ("write limit", "waiting for the drive's limit on host writes"),
    "read_modify_write": ("read-modify-write", "reading the old content of partly written units"),
    "die_host": ("die busy: host", "waiting for dies busy with other host I/O"),
    "die_collection": ("die busy: GC", "waiting for dies busy with garbage collection"),
    "die_map": ("die busy: map", "waiting for dies busy with the map: translation units, merging"),
    "die_fold": ("die busy: folding", "waiting for dies busy with folding the SLC cache"),
    "die_parity": ("die busy: parity", "waiting for dies busy with parity inside the drive"),
    "cells": ("cells", "sensing, programming and erasing cells"),
    "channel_wait": ("channel queue", "waiting for the flash channel"),
    "channel": ("channel", "the transfer over the flash channel"),
    "stripe_wait": ("stripe wait", "waiting for earlier writes to the same stripe of the array"),
    "parity": ("parity reads", "reading old data and parity of the array's stripes"),
    "bitmap": ("write-intent bitmap", "waiting for the write-intent bitmap of the array"),
    "slowest_member": ("slowest member", "waiting for the slowest member of the array"),
    "disk_wait": ("disk busy", "waiting for other work of the disk's heads"),
    "seek": ("seek", "moving the disk's heads to the track"),
    "rotation": ("rotation", "waiting until the sector comes around"),
    "platter": ("platter", "the sectors passing under the disk's head"),
    "cache": ("cache", "the cache: misses, fills and destaging"),
    "move_wait": ("extent on the move", "waiting for extents that are being moved between tiers"),
    "card": ("controller card", "the controller card: its processor and its queue"),
    "bus": ("shared bandwidth", "crossing a shared bandwidth, and waiting for it"),
    "service": ("service", "the device itself, its queue included"),
    "host": ("host", "waiting in the host until a batch is complete"),
}
"""By name in results (`stats::PART_NAMES`): a label, and what the time is spent on."""

CAUSES: dict[str, str] = {
    "host": "host",
    "collection": "garbage collection",
    "map": "map",
    "merge": "merging",
    "fold": "folding",
    "wear": "wear levelling",
    "parity": "parity",
    "padding": "padding",
}
"""By name of the counter `programs_<cause>`."""


def part(name: str) -> str:
    """The label of a part of the time."""
    return PARTS.get(name, (name.replace("_", " "), ""))[0]


def part_phrase(name: str) -> str:
    """What a part of the time is spent on."""
    label, phrase = PARTS.get(name, (part(name), ""))
    return phrase or label


def cause(name: str) -> str:
    """The label of a cause of writes to flash."""
    return CAUSES.get(name, name.replace("_", " "))
