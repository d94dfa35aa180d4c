"""Colours of the charts, chosen to stay apart for colour-blind readers and on paper."""

from __future__ import annotations

RUN_COLOURS = "#1f5f99 #c2571a #2c8a6b #8b5a9b #a8871d #4a4a48 #b0436e #5aa5c9".split()
"""One per run, the same on the whole page; repeated beyond eight runs."""

PART_COLOURS = {
    "link": "#7d93a8",
    "link_wait": "#b9c6d2",
    "controller": "#4d5a68",
    "map_fetch": "#9a86c4",
    "buffer_wait": "#e0b84f",
    "write_limit": "#c7a26b",
    "read_modify_write": "#97744a",
    "die_host": "#4482bd",
    "die_collection": "#c9532f",
    "die_map": "#6d58a8",
    "die_fold": "#c98a2f",
    "die_parity": "#8f8f3a",
    "cells": "#37977a",
    "channel_wait": "#c3dccf",
    "channel": "#86bda5",
    "stripe_wait": "#b08bc4",
    "parity": "#59366b",
    "bitmap": "#c9b3d6",
    "slowest_member": "#7f4f96",
    "disk_wait": "#8c6d46",
    "seek": "#b8863b",
    "rotation": "#d9b36c",
    "platter": "#6f8f5c",
    "cache": "#d693b4",
    "move_wait": "#b5657f",
    "card": "#5f7f93",
    "bus": "#9db7c4",
    "service": "#a3a29c",
    "host": "#52b1c4",
}
"""One per part of `stats::PART_NAMES`; waiting for collection stands out."""

STATE_COLOURS = {
    "quick": "#bcd7cb",
    "fair": "#e3cf8f",
    "weak": "#d99b58",
    "zero": "#c9c5ba",
    "late": "#8fb3d4",
    "slow": "#8b4a9b",
    "bad": "#b3261e",
    "unread": "#ece9e1",
    "limit": "#77746c",
}
"""One per state of a piece of a drive; apart in lightness too, for colour-blind readers."""

DARK = {
    "#1f5f99": "#6aaeea",
    "#c2571a": "#f0935a",
    "#2c8a6b": "#5fc7a3",
    "#8b5a9b": "#c79bd6",
    "#a8871d": "#d9bb57",
    "#4a4a48": "#b9b7b0",
    "#b0436e": "#ea86ac",
    "#5aa5c9": "#8fd0ee",
    "#33322e": "#e8e6e0",
    "#77746c": "#a5a29a",
    "#d9d5cb": "#4a4843",
    "#eeebe3": "#34322f",
}
"""What the colours of lines, axes and texts become on a dark page."""

UNKNOWN_PART = "#d0cec6"

INK = "#33322e"
MUTED = "#77746c"
RULE = "#d9d5cb"
GRID = "#eeebe3"
FONT = "ui-sans-serif, system-ui, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif"


def colour(key: int | str) -> str:
    """The colour of a curve: of the thing of that number, or by name of a state, or of a part of
    the time (``part:cells``)."""
    if isinstance(key, int):
        return RUN_COLOURS[key % len(RUN_COLOURS)]
    kind, _, name = key.rpartition(":")
    return {"part": PART_COLOURS, "": STATE_COLOURS}[kind].get(name, UNKNOWN_PART)


def tint(colour: str, share: float) -> str:
    """The colour mixed with white; `share` of 1 leaves it as it is."""
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 - (255 - c) * share):02x}" for c in channels)


def ink_on(colour: str) -> str:
    """Black or white, whichever reads better on the colour (WCAG relative luminance)."""
    linear = []
    for i in (1, 3, 5):
        c = int(colour[i : i + 2], 16) / 255
        linear.append(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if luminance < 0.3 else "#222222"
