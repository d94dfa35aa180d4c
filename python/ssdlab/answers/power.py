"""What losses of power took, or may take, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ssdlab import units
from ssdlab.wear import by_path


def losses_of_power(counters: Mapping[str, Any], verified: bool = False) -> list[str]:
    """A sentence if the rig of a result with these counters (by path and name) ever lost power,
    and one where a loss would have been ``verified``; I/Os are counted where the host's arrive,
    bytes in all devices."""
    devices = by_path(counters)
    own = [devices[path] for path in sorted(devices) if "power_losses" in devices[path]]
    if not own:
        return []

    def all_of(name: str) -> float:
        return sum(float(one.get(name, 0)) for one in own)

    times = max(int(one["power_losses"]) for one in own)
    often = "once" if times == 1 else f"{times:,} times"
    cut = max(int(one.get("power_commands_cut", 0)) for one in own)
    startup = max(float(one.get("power_startup_ns", 0)) for one in own) / times
    said = f"Power was lost {often}: {units.counted(cut, 'I/O')} "
    said += f"{'was' if cut == 1 else 'were'} in flight and sent again"
    said += f", {units.size_text(all_of('power_lost_bytes'))} in volatile memory were lost"
    if torn := int(all_of("power_torn_stripes")):
        said += f", {units.counted(torn, 'stripe')} of arrays had a parity that fits no data"
    if exposed := all_of("power_exposed_bytes"):
        said += f", {units.size_text(exposed)} may be lost although they had been flushed"
    found = [f"{said}, devices were ready again after {units.latency(startup)}."]
    if verified and (exposed or all_of("power_lost_bytes")):
        found.append(
            "Contents are not compared: verify did not look for what was lost; fio fails where it "
            "reads back any of that."
        )
    return found


def volatile_writes(about: Mapping[str, Any]) -> str | None:
    """What a simulated drive promises of the writes that it answers, by what a result says
    ``about`` its run; None where that is not known."""
    if (volatile := about.get("volatile_writes")) is None:
        return None
    if volatile:
        return "answered from volatile memory: until a flush a loss of power may take them"
    return "safe from a loss of power once they are answered"
