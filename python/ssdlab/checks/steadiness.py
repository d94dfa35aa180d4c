"""Whether the drive was in the state that a number is about: steady, not a quick run, no pause."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ssdlab import units
from ssdlab.analysis.comparison import stages, until
from ssdlab.analysis.differences import SURE, UNMEASURED
from ssdlab.analysis.stats import Estimate
from ssdlab.analysis.steady import ROUNDS, SLOPE_EXCURSION_MAX, pts_window
from ssdlab.answer import Status
from ssdlab.checks.area import copied, never_written, overwritten
from ssdlab.checks.base import STEADY, Case, Probe, Symptom, of_job
from ssdlab.checks.facts import Facts, JobFacts

PAUSE_S = 60.0
"""A pause between steps longer than this gives a drive time to tidy up, which the next step then
finds done (idle-time collection begins after seconds to minutes). Ours."""
NOISE = "noise"
"""The check of how sure a rate is."""
UNSURE = 0.1
"""A rate that is not known to this share of it is in doubt: half of what the PTS takes for steady.
Ours."""
LENT = 0.05
"""Room never written that collection may still have at the end, as a share of a drive's spare. By
about as much write amplification is too low then, and by twice as much over the window before
(simulated with six victim policies): no more than the trend that the PTS lets pass."""
COPIED = 0.1
"""Bytes written at random before that collection copies for each byte of sequential writes, without
a word: so much faster does the flash become when none are left, as much as the trend that the PTS
lets pass."""
SPENT = 2.0
"""Random writes to a drive that was filled sequentially, in units of the room beside its data,
after which they are as fast as they stay. Up to one such room nothing is collected (up to 8 times
as fast); the first superblocks collected then are fuller than later ones (up to 22 % slower);
afterwards nine of ten simulated drives were within 8 %, the tenth, a small one, within 12 %."""
TURNS = 5
"""I/Os that follow one another in each place in flight, at least: of fewer, a good part began
together with the job, and others had not ended with it. Ours."""


def _rounds(case: Case) -> Iterator[Symptom]:
    """The rounds of a test against the rule of the PTS."""
    for record in case.evidence.records.rounds.values():
        rounds = tuple(f"round{number:02d}/" for number in record.window_rounds())
        own = [key for key in case.facts if key.startswith(rounds)]
        rounds_done = units.counted(record.count, "round")
        if record.steady and case.evidence.quick:
            text = f"{record.title}: alike after {rounds_done}, too short to tell a steady state"
            yield Symptom("unknown", text)
            continue
        if record.steady:
            yield Symptom("good", f"{record.title}: steady after {rounds_done}")
            continue
        if record.count < record.window:
            text = f"{record.title}: {rounds_done}, a window needs {record.window}"
        else:
            loose = [name for name, w in record.windows().items() if not w.steady]
            text = (
                f"{record.title}: not steady within {rounds_done} ({', '.join(loose)} "
                "beyond 20 % of the mean or a trend of 10 %)"
            )
        yield from (Symptom("doubt", text, key) for key in own)
        if not own:
            yield Symptom("doubt", text)


def _others(case: Case) -> Iterator[Symptom]:
    """The jobs of steady rounds that the test does not judge them by: a mix may come before random
    writes have used up the room of a drive that was just filled, in the first round alone."""
    rates = {facts.key: facts.iops for facts in case.measured}
    for record in case.evidence.records.rounds.values() if not case.evidence.quick else ():
        keys = record.keys_of("", record.window_rounds()) if record.steady else ()
        by_name: dict[str, list[str]] = {}
        for key in keys:
            by_name.setdefault(key.rpartition("/")[2], []).append(key)
        for name, own in by_name.items():
            if name in record.jobs.values() or len(own) != ROUNDS or not rates.keys() >= {*own}:
                continue
            each = [rates[key] for key in own]
            if pts_window(each).steady:
                yield Symptom("good", f"{record.title}: as steady in all that was measured")
                continue
            first, last = record.first_of_window(), record.count
            text = (
                f"{name} of rounds {first} to {last}: from {units.iops(min(each))} to "
                f"{units.iops(max(each))}"
            )
            yield from (Symptom("doubt", text, key) for key in own)


def _series(case: Case) -> Iterator[Symptom]:
    """The series of a single run, of all jobs that do more than fill."""
    unwritten, spent, old = never_written(case), overwritten(case), copied(case)
    for facts in case.measured:
        for work in facts.works:
            if work.name in facts.fills:
                continue
            window, key = work.window, case.key(facts.key, work.name)
            yet = work.warming
            if work.recorded:
                text = f"{work.name}: how many I/Os come when is the trace's, not the drive's"
                yield Symptom("unknown", text, key)
            elif work.reads_back:
                text = (
                    f"{work.name}: not judged, as it reads back what it wrote (verify); its "
                    "numbers are of the whole job"
                )
                yield Symptom("doubt", text, key)
            elif window is not None and window.verdict == "unknown":
                yield Symptom("unknown", f"{work.name}: there is no series to judge by", key)
            elif window is None or window.verdict == "short":
                # Writes begin with the speed of a rested drive; reads are steady soon.
                status: Status = "doubt" if work.direction("write") else "unknown"
                yield Symptom(status, f"{work.name}: too short to judge", key)
            elif window.steady:
                since = f" from {window.start_s:.0f} s on" if window.start_s else ""
                text = f"{work.name}: steady{since} by the PTS rule"
                moved = (
                    _filling(unwritten.get(key, 0.0))
                    or _unspent(spent.get(key, math.nan))
                    or _but(_own(case, facts, work))
                    or _copying(old.get(key, 0.0))
                    or _but(yet.text if yet.changes else "")
                    or _moving(work.trend)
                )
                if moved or not yet.text:
                    yield Symptom("doubt" if moved else "good", text + moved, key)
                else:
                    yield Symptom("unknown", text + _but(yet.text), key)
            else:
                text = f"{work.name}: not steady; its numbers are of the whole job"
                yield Symptom("doubt", text, key)


def _fresh(case: Case) -> Iterator[Symptom]:
    """Random writes on a drive prepared by a fill, which has yet to collect as it will."""
    if not case.evidence.prepared or case.evidence.initial != "full":
        return
    found = overwritten(case)
    for facts in case.measured:
        for work in stages(facts.works)[-1]:
            key = of_job(facts.key, work.name)
            if said := _unspent(found.get(key, math.nan)):
                yield Symptom("doubt", f"{work.name}: settled{said}", key)


def _skewed(case: Case) -> Iterator[Symptom]:
    """The same of writes that prefer some places, of the jobs that are started last."""
    if case.evidence.prepared:
        for facts in case.measured:
            for work in stages(facts.works)[-1]:
                if own := _own(case, facts, work):
                    key = case.key(facts.key, work.name)
                    yield Symptom("doubt", f"{work.name}: {own}", key)


def _own(case: Case, facts: Facts, work: JobFacts) -> str:
    """What random writes that prefer some places will not stay at, on a drive prepared by writes to
    all places alike: hot and cold data are yet to be told apart. Once over the range they are,
    within a few percent."""
    how = _preferred(work)
    own = facts.flash and work.random and work.direction("write") and how != "random"
    if case.evidence.initial not in ("full", "scattered") or not own:
        return ""
    whole = facts.capacity or 0
    length, written = work.length or whole, 0
    for one in until(facts.works, work):
        # Writes of another kind, or elsewhere, tell nothing apart here.
        end = one.offset + (one.length or whole)
        there = one.offset < work.offset + length and work.offset < end
        moved = one.direction("write")
        if moved and one.random and there and _preferred(one) == how:
            written += moved.bytes
    if written >= length:
        return ""
    return (
        f"{how} has a steady state of its own, and only {units.percent(written / length)} of its "
        "range was written; begin the job with its writes alone (io_size=100%, the next section "
        "with stonewall)"
    )


def _preferred(work: JobFacts) -> str:
    return work.option("random_distribution") or "random"


def _but(text: str) -> str:
    return text and f", but {text}"


def _filling(unwritten: float) -> str:
    """What a rate will not stay at while writes at random still come to new places, which may be
    slower than its noise shows."""
    if unwritten <= LENT:
        return ""
    share = units.percent(unwritten)
    return (
        f", but still filling: what was never written adds {share} to the spare; fill the drive "
        "first (--prepare sequential)"
    )


def _unspent(spent: float) -> str:
    """What random writes to a drive that was filled sequentially will not stay at: it has room
    for some time before it collects."""
    if not spent < SPENT:
        return ""
    return (
        f", but only {spent:.2g} times the room beside the data was written at random since the "
        f"drive was filled, and collection evens out at {SPENT:g} times: write on, or begin with "
        "--prepare steady"
    )


def _copying(share: float) -> str:
    """What a rate of sequential writes will not stay at while collection copies what random writes
    have left: for most of the first pass as much as before them, later less and less."""
    if share <= COPIED:
        return ""
    return (
        f", but collection still copies {share:.2g} times as much of what had been written at "
        "random: write on until that ends, or fill the drive first (--prepare sequential)"
    )


def _moving(trend: Estimate | None) -> str:
    """What a rate that stays within the rule will not stay at, because its window is short."""
    if trend is None or trend.p >= SURE or abs(trend.value) <= SLOPE_EXCURSION_MAX:
        return ""
    way = "rising" if trend.value > 0 else "falling"
    return f", but still {way}: by {units.percent(abs(trend.value))} in as long as the job took"


def _quick(case: Case) -> Iterator[Symptom]:
    if not case.evidence.quick:
        return
    text = "a quick run: durations were divided, rounds are few"
    rigs = [facts.rig for facts in case.facts.values() if facts.rig is not None]
    if rigs and rigs[0].slc_bytes and case.evidence.capacity:
        text += (
            f"; at the {units.size_text(case.evidence.capacity)} that the drive is simulated at, "
            f"its SLC cache holds up to {units.size_text(rigs[0].slc_bytes)}"
        )
    yield Symptom("doubt", text)


def _unsure(case: Case) -> Iterator[Symptom]:
    """Rates that another run would give otherwise, of the jobs that are started last: those before
    them only bring the drive to its state."""
    repeats = "runs" if case.real else "runs with other seeds"
    for facts in case.measured:
        for work in stages(facts.works)[-1]:
            found = work.noise
            if work.name in facts.fills or found is None:
                continue
            known = f"±{units.percent(found.share)}" if found.share < 1 else UNMEASURED
            if found.share > UNSURE and known == f"±{units.percent(UNSURE)}":
                known = f"just over {known}"
            text = f"{work.name}: IOPS {known} (95 %)"
            key = of_job(facts.key, work.name) if case.evidence.prepared else facts.key
            if found.share <= UNSURE:
                yield Symptom("good", text, key)
                continue
            dips = f", {units.duration(found.period_s)} from dip to dip" if found.period_s else ""
            more = found.times_longer(UNSURE)
            text += (
                f" over {units.duration(found.seconds)}{dips}; ±{units.percent(UNSURE)} takes "
                f"about {units.duration(more * found.seconds)}, or {math.ceil(more)} {repeats}"
            )
            yield Symptom("doubt", text, key)


def _brief(case: Case) -> Iterator[Symptom]:
    """The time of a job against that of its I/Os, in each direction."""
    for facts in case.measured:
        for work in facts.works:
            if work.name in facts.fills or work.recorded:
                continue
            if not work.moved:
                why = ": it ended within its ramp_time" if work.option("ramp_time") else ""
                text = f"{work.name}: no I/O was measured{why}"
                yield Symptom("doubt", text, case.key(facts.key, work.name))
            for moved in work.moved:
                if not moved.bw_bytes or not moved.lat_mean_ns:
                    continue
                seconds, each = moved.bytes / moved.bw_bytes, moved.lat_mean_ns
                status: Status = "doubt" if 1e9 * seconds < TURNS * each else "good"
                text = (
                    f"{work.name}: a {moved.ddir} took {units.latency(each)} on average, the job "
                    f"{units.duration(seconds)}"
                )
                yield Symptom(status, text, case.key(facts.key, work.name))


def _pauses(case: Case) -> list[Symptom]:
    """Pauses between steps that are none of the protocol's own, as after an interruption."""
    symptoms: list[Symptom] = []
    ended: float | None = None
    timed = False
    for step in case.evidence.steps:
        if step.started is not None and ended is not None:
            timed = True
            pause = step.started - ended
            if pause > PAUSE_S:
                text = f"{pause / 60:,.0f} min passed between {step.key} and the step before it"
                symptoms.append(Symptom("doubt", text, step.key))
        ended = step.ended
    if symptoms or not timed:
        return symptoms
    return [Symptom("good", f"no pause between steps longer than {PAUSE_S:.0f} s")]


def _resumed(case: Case) -> list[Symptom]:
    """What others did to the drive, or a step cut short, while the run was interrupted: from there
    on the drive is in another state than the steps before it left."""
    symptoms: list[Symptom] = []
    changes: list[str] = []
    for step in case.evidence.steps:
        changes += case.evidence.resumed.get(step.key, ())
        if changes:
            symptoms.append(Symptom("doubt", "; ".join(changes), step.key))
    return symptoms


PROBES = (
    Probe(
        name="resumed",
        title="state after an interruption",
        looks_for="what was done to a drive or file while a run was interrupted",
        why="the steps after it did not find the drive as the steps before it had left it",
        look=_resumed,
    ),
    Probe(
        name=STEADY,
        title="steady state",
        looks_for="whether the drive was steady by the rule of the SNIA PTS: five rounds within "
        "20 % of their mean and a trend of at most 10 %, of a job's own series also over as "
        "long as the job took; and whether writes at random to a new drive have left room never "
        f"written of more than {100 * LENT:g} % of its spare, those to a drive that was filled "
        f"sequentially came to less than {SPENT:g} times the room beside its data, or collection "
        f"still copies more than {100 * COPIED:g} % of what is written sequentially from what had "
        "been written at random; and whether a simulated cache still put off writes or had room "
        "for what would spare its pool reads, or a tier had extents to move",
        why="a drive that is not steady goes on to become slower or faster; its number holds "
        "for no longer than the run",
        look=lambda case: [
            *_rounds(case),
            *(_series(case) if case.evidence.single else ()),
            *_fresh(case),
            *_skewed(case),
        ],
    ),
    Probe(
        name="others",
        title="other jobs of the rounds",
        looks_for="whether all jobs of the rounds that a test is steady over are so by the same "
        "rule, not only those that it judges by",
        why="what the drive did in one of the rounds alone, while it became steady, is in the mean "
        "that is shown",
        look=lambda case: [*_others(case)],
    ),
    Probe(
        name=NOISE,
        title="noise of the rate",
        looks_for="whether the rate of a job on a prepared drive, as `array` and `characterise` "
        f"run it, is known to {100 * UNSURE:g} %, by how its series varies (95 % interval, blocks "
        "of neighbours drawn again)",
        why="of few dips, or seconds that differ, a run has some by chance: the next one gives "
        "another rate",
        look=lambda case: [*_unsure(case)],
    ),
    Probe(
        name="brief",
        title="length of the job",
        looks_for=f"whether any I/O was measured, and a job took {TURNS} times as long as its "
        "I/Os, or longer",
        why="where few I/Os follow one another, latencies are those of the queue in which all of "
        "them began, and the rate is that of its ends",
        look=lambda case: [*_brief(case)],
    ),
    Probe(
        name="quick",
        title="quick run",
        looks_for="whether durations were divided for a first look",
        why="a quick run mostly sees the drive's fresh speed and its caches, and those of a drive "
        "simulated at less than its size end sooner",
        look=lambda case: [*_quick(case)],
        marks=False,
    ),
    Probe(
        name="pause",
        title="pauses",
        looks_for="pauses between steps that the protocol does not ask for, as after an "
        "interruption",
        why="in a pause a drive collects garbage, empties its SLC cache and cools down, so that "
        "what follows is not what would have followed at once",
        look=_pauses,
    ),
)
