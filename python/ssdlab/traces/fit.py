"""fio jobs made of traces: one that replays it, or one that behaves like it on the average."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ssdlab import units

SIZES_MAX = 16
"""Sizes of ``bssplit`` for each direction; rarer ones go to the nearest kept."""
SECTOR = 512


def replay_job(name: str, iolog: str, found: dict[str, Any]) -> str:
    """A job that replays ``iolog`` with its times."""
    return (
        f"; {name}: {units.counted(found['requests'], 'request')} over {found['seconds']:.6g} s\n"
        "; give the target with replay_redirect=, as in: fio --replay_redirect=/dev/X JOB\n"
        "; before version 3.36 fio counts pauses as latencies at a depth above 1: there use\n"
        "; iodepth=1, or ssdlab trace replay, which deals the requests out to threads\n"
        "[replay]\n"
        f"read_iolog={iolog}\n"
        "ioengine=libaio\n"
        "direct=1\n"
        f"iodepth={_depth(found)}\n"
    )


def _depth(found: dict[str, Any]) -> int:
    """Enough for the busiest 10 ms to be under way at once, within reason."""
    windows = (found["arrivals"] or {}).get("windows", [])
    busiest = next((w["requests_max"] for w in windows if w["window_ns"] == 10_000_000), 32)
    return int(min(1024, max(32, busiest)))


def fitted_job(name: str, found: dict[str, Any]) -> tuple[str, list[str]]:
    """A job with the mix, sizes, hot spots, order and rate of a trace, and what it leaves out."""
    kinds = found["requests_by_kind"]
    moved = kinds["read"] + kinds["write"]
    order = found["order"]["continues_the_request_before"] / max(1, moved)
    foot = found["footprint"]
    size = max(1, foot["blocks"]) * foot["block_bytes"]
    mixed = bool(kinds["read"] and kinds["write"])
    rw = "randrw" if mixed else "randread" if kinds["read"] else "randwrite"
    requests = units.counted(found["requests"], "request")
    lines = [f"; fitted to {name}: {requests}", "[fitted]", f"rw={rw}"]
    if mixed:
        lines.append(f"rwmixread={round(100 * kinds['read'] / moved)}")
    sizes = [split(found["sizes"], kind) for kind in ("read", "write") if kinds[kind]]
    lines.append(f"bssplit={','.join(sizes)}")
    lines.append(f"size={math.ceil(size / 2**20)}m")
    seconds = max(1, min(600, math.ceil(float(found["seconds"]))))
    lines += ["norandommap", "time_based", f"runtime={seconds}"]
    theta = zipf(foot)
    if theta is not None:
        lines.append(f"random_distribution=zipf:{theta:.2f}")
    if order >= 0.01:
        lines.append(f"percentage_random={round(100 * (1 - order))}")
    if found["has_times"] and found["seconds"] > 0:
        rates = [max(1, round(kinds[kind] / found["seconds"])) for kind in ("read", "write")]
        if mixed:
            lines.append(f"rate_iops={rates[0]},{rates[1]}")
        else:
            lines.append(f"rate_iops={rates[0] if kinds['read'] else rates[1]}")
        lines.append("rate_process=poisson")
    lines += ["ioengine=libaio", "direct=1", f"iodepth={_depth(found)}"]
    return "\n".join(lines) + "\n", _left_out(found, theta)


def _left_out(found: dict[str, Any], theta: float | None) -> list[str]:
    """What a statistical job cannot say, or says otherwise."""
    said = ["its places are packed: the footprint of the trace without the gaps between"]
    windows = (found["arrivals"] or {}).get("windows", [])
    burst = next((w["dispersion"] for w in windows if w["window_ns"] == 1_000_000_000), 0)
    if burst > 3:
        said.append(
            f"the rate is even on the average, and arrivals of the trace come in bursts "
            f"(variance/mean {units.number(burst)} per s)"
        )
    if found["requests_by_kind"]["trim"] or found["requests_by_kind"]["flush"]:
        said.append("trims and flushes are left out")
    if theta is not None:
        hot = _zipf_share(theta, found["footprint"]["blocks"])
        told = {
            h["percent_of_blocks"]: h["share_of_touches"] for h in found["footprint"]["hottest"]
        }
        said.append(
            f"hot spots follow a Zipf law of exponent {theta:.2f} that gives the hottest 10 % of "
            f"the blocks {100 * hot:.0f} % of the "
            f"touches, as the trace does ({100 * told[10.0]:.0f} %); they are scattered"
        )
    return said


def split(sizes: Sequence[dict[str, int]], kind: str) -> str:
    """``bssplit`` of one direction: whole percents that add to 100."""
    counts: dict[int, int] = {}
    for one in sizes:
        if one[kind]:
            whole = max(SECTOR, math.ceil(one["bytes"] / SECTOR) * SECTOR)
            counts[whole] = counts.get(whole, 0) + one[kind]
    total = sum(counts.values())
    common = sorted(counts, key=lambda size: -counts[size])
    kept = sorted(
        [size for size in common[:SIZES_MAX] if counts[size] >= total / 200] or common[:1]
    )
    held = dict.fromkeys(kept, 0)
    for size, count in counts.items():
        held[min(kept, key=lambda one: abs(one - size))] += count
    shares = {size: 100 * held[size] / total for size in kept}
    percents = {size: int(share) for size, share in shares.items()}
    # What is left of 100 goes to those that lost most by rounding down.
    for size in sorted(kept, key=lambda one: percents[one] - shares[one])[
        : 100 - sum(percents.values())
    ]:
        percents[size] += 1
    return ":".join(f"{size}/{percents[size]}" for size in kept if percents[size])


def zipf(foot: dict[str, Any]) -> float | None:
    """The exponent of the Zipf law whose hottest 10 % of blocks get as many touches as those of the
    trace; None where touches are nearly even. By bisection: the share grows with the exponent."""
    told = {one["percent_of_blocks"]: one["share_of_touches"] for one in foot["hottest"]}
    wanted, blocks = told[10.0], foot["blocks"]
    if blocks < 100 or wanted < 0.13:
        return None
    low, high = 0.01, 3.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _zipf_share(middle, blocks) < wanted else (low, middle)
    # fio refuses an exponent of exactly 1.
    return 1.01 if abs(low - 1) < 0.005 else round(low, 2)


def _zipf_share(theta: float, blocks: int) -> float:
    """Share of touches on the hottest tenth of ``blocks`` under a Zipf law."""
    return _harmonic(max(1, round(blocks * 0.1)), theta) / _harmonic(blocks, theta)


def _harmonic(n: int, theta: float) -> float:
    """Sum of ``k**-theta`` up to ``n``: the first terms exactly, then Euler and Maclaurin."""
    exact = min(n, 100)
    total = math.fsum(math.pow(k, -theta) for k in range(1, exact + 1))
    if n > exact:
        a, b = float(exact), float(n)
        s = 1 - theta
        area = math.log(b / a) if s == 0 else (math.pow(b, s) - math.pow(a, s)) / s
        total += area + (math.pow(b, -theta) - math.pow(a, -theta)) / 2
    return total
