"""The verdict: what the numbers say, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from ssdlab.analysis.attribution import Breakdown, Point
from ssdlab.analysis.steady import SAMPLES_MIN
from ssdlab.report.catalogue import Catalogue
from ssdlab.report.model import Trace
from ssdlab.report.numbers import Numbers

EVEN_P1 = 0.75
"""Even if the weakest 1 % of seconds reach this share of the mean. Ours."""
STALL_SHARE = 0.01
"""Stalls are worth a sentence from this share of seconds below half of the mean."""
SAME_IOPS = 0.05
"""Two runs within this share of each other do the same."""
TAIL_FACTOR = 1.5
"""A p99.9 that differs by less is not worth a sentence."""


def of_trace(trace: Trace, words: Catalogue, numbers: Numbers) -> list[str]:
    """Sentences about one direction of one job of one run: how much, steady or not, how even,
    how slow at worst, and why."""
    return [
        *_rate(trace, words, numbers),
        *_latency(trace, words, numbers),
        *_why(trace, words, numbers),
        *_wear(trace, words, numbers),
    ]


def of_comparison(traces: Sequence[Trace], words: Catalogue, numbers: Numbers) -> list[str]:
    """Sentences about several runs of one job: who is faster, whose tail is longer, which are
    not steady."""
    out = []
    known = [t for t in traces if t.ddir == traces[0].ddir]
    if len(known) > 1:
        fast = max(known, key=mean_iops)
        slow = min(known, key=mean_iops)
        if fast is slow:
            slow = known[-1] if known[-1] is not fast else known[0]
        if mean_iops(slow) > 0:
            out.append(_faster(fast, slow, words, numbers))
        tails = [
            (p999, t)
            for t in known
            if t.latency is not None and (p999 := t.latency.percentile_ns(99.9)) is not None
        ]
        if len(tails) > 1:
            best = min(tails, key=lambda item: item[0])
            worst = max(tails, key=lambda item: item[0])
            if best[0] > 0 and worst[0] / best[0] >= TAIL_FACTOR:
                factor = numbers.times(worst[0] / best[0])
                out.append(
                    words(
                        "compare.tail",
                        worse=worst[1].run.label,
                        better=best[1].run.label,
                        factor=factor,
                    )
                )
                out += _tail_cause(worst[1], words, numbers)
    judged = [t for t in traces if t.consistency is not None]
    for state in ("drifting", "short"):
        names = [t.run.label for t in judged if t.window.verdict == state]
        if names:
            key = "compare.steady_not" if state == "drifting" else "compare.steady_short"
            out.append(words(key, names=words.names(names)))
    if judged and all(t.window.steady for t in judged):
        out.append(words("compare.steady_one" if len(judged) == 1 else "compare.steady_all"))
    return out


def mean_iops(trace: Trace) -> float:
    """IOPS of the measurement window."""
    return trace.iops or 0.0


def _faster(fast: Trace, slow: Trace, words: Catalogue, numbers: Numbers) -> str:
    factor = mean_iops(fast) / mean_iops(slow)
    if factor - 1 <= SAME_IOPS:
        return words(
            "compare.iops_same",
            fast=fast.run.label,
            slow=slow.run.label,
            percent=numbers.percent(factor - 1),
        )
    return words(
        "compare.iops_faster",
        fast=fast.run.label,
        slow=slow.run.label,
        factor=numbers.times(factor),
    )


def _tail_cause(trace: Trace, words: Catalogue, numbers: Numbers) -> list[str]:
    """Why the tail is long, if the run tells."""
    for breakdown in trace.attribution:
        if breakdown.point == "p99.9" and breakdown.largest is not None:
            part, share = breakdown.largest
            return [words("compare.cause", share=numbers.percent(share), part=words.phrase(part))]
    return []


def _rate(trace: Trace, words: Catalogue, numbers: Numbers) -> list[str]:
    found = trace.consistency
    if found is None:
        return [words("verdict.no_series")]
    state = trace.window.verdict
    out = [
        words(
            "verdict.range",
            low=numbers.count(found.min),
            high=numbers.count(found.max),
            spread=numbers.percent(found.spread),
        )
    ]
    window = trace.window.rounds
    if window is None:
        samples = numbers.count(found.samples)
        out.append(words("verdict.short", samples=samples, needed=SAMPLES_MIN))
    else:
        key = (
            "verdict.steady_all" if state == "steady" and trace.window.whole else f"verdict.{state}"
        )
        out.append(
            words(
                key,
                start=numbers.seconds(trace.window.start_s),
                excursion=numbers.percent(window.excursion_share),
                slope=numbers.percent(window.slope_share),
            )
        )
    if state != "short" and found.mean > 0:
        out += _evenness(trace, words, numbers)
    return out


def _evenness(trace: Trace, words: Catalogue, numbers: Numbers) -> list[str]:
    found = trace.consistency
    if found is None:
        return []
    out = []
    if found.share_below_half >= STALL_SHARE:
        out.append(words("verdict.stalls", share=numbers.percent(found.share_below_half)))
    else:
        reach = found.p1 / found.mean
        key = "verdict.even" if reach >= EVEN_P1 else "verdict.uneven"
        out.append(words(key, p1=numbers.percent(reach)))
    if found.periodicity is not None:
        out.append(
            words(
                "verdict.dips" if found.periodicity.dips else "verdict.bursts",
                period=numbers.seconds(found.periodicity.period),
                width=numbers.seconds(found.periodicity.width),
            )
        )
    return out


def _latency(trace: Trace, words: Catalogue, numbers: Numbers) -> list[str]:
    if trace.latency is None:
        return []
    return [
        words(
            "verdict.latency",
            p50=numbers.latency(trace.latency.percentile_ns(50)),
            p99=numbers.latency(trace.latency.percentile_ns(99)),
            p999=numbers.latency(trace.latency.percentile_ns(99.9)),
            max=numbers.latency(trace.latency.max_ns),
        )
    ]


def _why(trace: Trace, words: Catalogue, numbers: Numbers) -> list[str]:
    by_point: dict[Point, Breakdown] = {b.point: b for b in trace.attribution}
    mean = by_point["mean"].largest if "mean" in by_point else None
    tail = by_point["p99.9"].largest if "p99.9" in by_point else None
    if mean is None:
        return []
    part, share = words.phrase(mean[0]), numbers.percent(mean[1])
    if tail is None:
        return [words("verdict.why_mean", part=part, share=share)]
    tail_share = numbers.percent(tail[1])
    if tail[0] == mean[0]:
        return [words("verdict.why_one", part=part, share=share, tail_share=tail_share)]
    return [
        words(
            "verdict.why_two",
            part=part,
            share=share,
            tail_part=words.phrase(tail[0]),
            tail_share=tail_share,
        )
    ]


def _wear(trace: Trace, words: Catalogue, numbers: Numbers) -> list[str]:
    if trace.wa is None:
        return []
    return [words("verdict.wa", wa=numbers.wa(trace.wa))]
