"""Checks: each can fail and each can pass, and the real fio trips those that it can here."""

from __future__ import annotations

import copy
import errno
import math
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

import ssdlab
from conftest import Loop, Outcome, make_result, needs_fio
from ssdlab import checks
from ssdlab.analysis.measurement import RateNoise, rate_noise
from ssdlab.analysis.stats import t_quantile
from ssdlab.answer import Check, marked
from ssdlab.checks import area, examine, of_result, probes, worst_word
from ssdlab.checks.area import copied, never_written, overwritten
from ssdlab.checks.base import Case, Evidence, StepEvidence
from ssdlab.checks.facts import Room, facts, sampling
from ssdlab.engine.records import Records, RoundsRecord
from ssdlab.fio.observe import Observer, link_bytes_per_s, unwritten
from ssdlab.jobfile import JobText
from ssdlab.results import SERIES_SCHEMA, Result
from ssdlab.rig import profile
from ssdlab.target import Settings, Sim

GIB = 1 << 30
BLOCK = 4096
SECONDS = 40


def rows(job: str, ddir: str, rates: list[float]) -> list[dict[str, object]]:
    """One-second rows with these IOPS; None leaves the second out."""
    return [
        {
            "time_s": float(second),
            "job": job,
            "ddir": ddir,
            "ios": round(rate),
            "iops": rate,
            "bytes": round(rate) * BLOCK,
            "bw_bytes": rate * BLOCK,
            "lat_min_ns": 50_000,
            "lat_mean_ns": 100_000.0,
            "lat_max_ns": 900_000,
            "lat_p50_ns": 90_000,
            "lat_p99_ns": 300_000,
        }
        for second, rate in enumerate(rates, start=1)
    ]


def real(
    ddir: str = "write",
    options: Mapping[str, str] | None = None,
    rates: list[float] | None = None,
    **changes: Any,
) -> Result:
    """What fio leaves of a sound minute on a drive of 100 GiB; ``changes`` go into the job."""
    rates = rates or [1000.0] * SECONDS
    ios = sum(map(round, rates))
    stats = {
        "total_ios": ios,
        "io_bytes": ios * BLOCK,
        "runtime": 1000 * len(rates),
        "iops": ios / len(rates),
        "bw_bytes": ios * BLOCK / len(rates),
        "short_ios": 0,
        "drop_ios": 0,
        "clat_ns": {"mean": 100_000.0, "max": 900_000, "bins": {"100000": ios}},
    }
    own = {
        "rw": "randwrite" if ddir == "write" else "randread",
        "bs": "4k",
        "iodepth": "32",
        "ioengine": "libaio",
        "direct": "1",
        "refill_buffers": "1",
        "size": "60g",
        **(options or {}),
    }
    job = {
        "jobname": "j", "error": 0, "usr_cpu": 5.0, "sys_cpu": 20.0, "job options": own,
        "job_runtime": 1000 * len(rates), ddir: stats, **changes,
    }  # fmt: skip
    moved = ios * BLOCK
    observed = {
        "seconds": float(len(rates)),
        "disk": {
            "read_ios": ios if ddir == "read" else 0,
            "read_bytes": moved if ddir == "read" else 0,
            "write_ios": ios if ddir == "write" else 0,
            "write_bytes": moved if ddir == "write" else 0,
            "discard_bytes": 0, "flushes": 0, "busy_ms": 1000,
        },
        "cpu_seconds": {
            "user": 4.0, "nice": 0.0, "system": 8.0, "idle": 68.0, "iowait": 0.0, "irq": 0.0,
            "softirq": 0.0, "steal": 0.0, "own": 11.0,
        },
        "pressure_seconds": {"memory_some": 0.0},
        "celsius": {"before": 40.0, "after": 45.0, "limit": 80.0},
        "cpu_throttles": 0,
    }  # fmt: skip
    document = {
        "fio version": "fio-3.33",
        "jobs": [job],
        "ssdlab": {
            "target": {"kind": "fio", "name": "/dev/x", "capacity_bytes": 100 * GIB},
            "interval_ms": 1000,
            "surroundings": {
                "drive": {"name": "x", "model": "A Drive", "capacity_bytes": 100 * GIB},
                "observed": observed,
            },
        },
    }
    return Result(
        name="/dev/x",
        document=copy.deepcopy(document),
        job_text="[j]\n",
        series_frame=pl.DataFrame(rows("j", ddir, rates), schema=SERIES_SCHEMA),
    )


def with_observed(result: Result, **changes: Any) -> Result:
    """The result with other observations."""
    surroundings(result)["observed"] |= changes
    return result


def surroundings(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = result.ssdlab["surroundings"]
    return found


def session(
    *results: tuple[str, Result],
    before: tuple[StepEvidence, ...] = (),
    **changes: Any,
) -> Evidence:
    """A protocol's run of these results."""
    by_key = dict(results)
    return replace(
        Evidence(
            kind="device",
            steps=(*before, *(StepEvidence(key, "job") for key in by_key)),
            records=Records(load=by_key.__getitem__, keys_=list(by_key)),
            capacity=100 * GIB,
            initial="full",
        ),
        **changes,
    )


def clean() -> Evidence:
    """A run that nothing speaks against: the whole drive was written, then measured."""
    fill = real("write", {"rw": "write", "size": "100g"})
    fill.document["jobs"][0]["write"]["io_bytes"] = 100 * GIB
    for name in ("write_bytes",):
        surroundings(fill)["observed"]["disk"][name] = 100 * GIB
    return session(
        ("fill", fill),
        ("round01/w", real()),
        ("round01/r", real("read")),
        before=(StepEvidence("purge", "purge"),),
    )


def unsteady_rounds() -> Evidence:
    found = clean()
    found.records.rounds["rounds"] = RoundsRecord(
        "rounds", "random writes", 6, {"IOPS": [900, 800, 700, 600, 500, 400]}, {}, 5, 6
    )
    return replace(found, steps=(*found.steps,))


def mix_settling() -> Evidence:
    """Rounds that writes are steady over, and reads become so in the first of them."""
    reads = [1800.0, 1000.0, 1000.0, 1000.0, 1000.0]
    each = [("w", [real()] * 5), ("r", [real("read", rates=[rate] * SECONDS) for rate in reads])]
    found = session(
        *((f"round{n:02d}/{name}", of[n - 1]) for n in range(1, 6) for name, of in each)
    )
    keys = tuple(step.key for step in found.steps)
    found.records.rounds["rounds"] = RoundsRecord(
        "rounds", "writes", 5, {"writes": [1000.0] * 5}, {}, 5, 25, keys, {"writes": "w"}
    )
    return found


def hot() -> Evidence:
    cooled = with_observed(real(), celsius={"before": 60.0, "after": 82.0, "limit": 80.0})
    return session(("a", cooled))


def paused() -> Evidence:
    one, two = real(), real()
    steps = (
        StepEvidence("a", "job", started=1000.0, ended=1040.0),
        StepEvidence("b", "job", started=1600.0, ended=1640.0),
    )
    return session(("a", one), ("b", two), steps=steps)


def touched() -> Evidence:
    found = "the file has been changed by somebody else"
    return session(("a", real()), ("b", real()), ("c", real()), resumed={"b": (found,)})


def empty_area() -> Evidence:
    return session(("r", real("read")), before=(StepEvidence("purge", "purge"),))


def built(capacity: str) -> Evidence:
    """A Toshiba XG5 of that size, with one write."""
    rig = profile("toshiba-xg5-512")
    job = JobText("one.fio", "[j]\nrw=write\nbs=4k\nio_size=4k\n", Path.cwd())
    found = Sim(rig.name, rig.text).run(job, Settings(overrides={"capacity": capacity}))
    return replace(session(("a", found)), kind="sim")


def other_disk_io() -> Evidence:
    found = real()
    surroundings(found)["observed"]["disk"]["read_bytes"] = 200 << 20
    return session(("a", found))


def brief() -> Evidence:
    """I/Os of 10 s each in a minute of them."""
    found = real()
    found.document["jobs"][0]["write"]["clat_ns"]["mean"] = 10e9
    return session(("a", found))


def few_dips() -> Evidence:
    """Of a drive prepared for it, a minute with two dips that are not alike."""
    rates = [1500.0] * 22 + [100.0] * 3 + [1500.0] * 33 + [100.0] * 2
    return of_result(real(rates=rates), prepared=True)


TRIGGERS: dict[str, Callable[[], Evidence]] = {
    "brief": brief,
    "built": lambda: built("5GiB"),
    "cache": lambda: session(("a", real("read", {"direct": "0"}))),
    "cpu": lambda: session(("a", real(usr_cpu=30.0, sys_cpu=69.0))),
    "data": lambda: session(("a", real(options={"zero_buffers": "1"}))),
    "end": lambda: session(("a", cut_short("stopped", "stopped by Ctrl-C"))),
    "errors": lambda: session(("a", real(error=errno.EIO))),
    "gaps": lambda: session(("a", gap_result())),
    "heat": hot,
    "load": other_disk_io,
    "noise": few_dips,
    "others": mix_settling,
    "pause": paused,
    "quick": lambda: replace(clean(), quick=True),
    "resumed": touched,
    "span": lambda: session(("a", real("read", {"size": "1g"}))),
    "stalls": lambda: session(("a", stall_result())),
    "steady": unsteady_rounds,
    "unwritten": empty_area,
}


def cut_short(status: str, why: str, error: int = 0) -> Result:
    found = real(error=error)
    found.document["ssdlab"] |= {"broken_off": why, "status": status}
    return found


def gap_result() -> Result:
    """Three seconds that one row covers."""
    found = real()
    long = {"time_s": float(SECONDS + 4), "ios": 400, "iops": 100.0}
    last = pl.DataFrame(rows("j", "write", [1.0]), schema=SERIES_SCHEMA).with_columns(
        **{name: pl.lit(value).cast(SERIES_SCHEMA[name]) for name, value in long.items()}
    )
    return replace_series(found, pl.concat([found.series_frame, last]))


def stall_result() -> Result:
    """Two seconds are missing, and the one after them is of its length."""
    found = real()
    keep = ~pl.col("time_s").is_in([10.0, 11.0])
    return replace_series(found, found.series_frame.filter(keep))


def replace_series(result: Result, frame: pl.DataFrame) -> Result:
    return Result(result.name, result.document, result.job_text, frame)


def of_name(found: list[Check], name: str) -> list[Check]:
    return [one for one in found if one.name == name]


def test_every_check_says_what_it_looks_for_and_why() -> None:
    names = [one.name for one in probes()]
    assert len(set(names)) == len(names)
    assert all(one.title and one.looks_for and one.why for one in probes())


def test_every_check_has_evidence_that_trips_it() -> None:
    assert set(TRIGGERS) == {one.name for one in probes()}


@pytest.mark.parametrize("name", sorted(TRIGGERS))
def test_a_check_can_fail(name: str) -> None:
    found = of_name(examine(TRIGGERS[name]()), name)
    assert found and found[0].status in ("bad", "doubt"), found
    assert found[0].evidence and found[0].why


@pytest.mark.parametrize("name", sorted(TRIGGERS))
def test_a_check_passes_a_sound_run(name: str) -> None:
    found = of_name(examine(clean()), name)
    assert {one.status for one in found} <= {"good"}, found


def test_rounds_are_counted_as_one_counts() -> None:
    one = unsteady_rounds()
    one.records.rounds["rounds"] = RoundsRecord("rounds", "reads", 1, {"IOPS": [900]}, {}, 5, 6)
    for evidence, said in ((unsteady_rounds(), "within 6 rounds ("), (one, "reads: 1 round, a")):
        (found,) = of_name(examine(evidence), "steady")
        assert said in found.evidence


def test_rounds_of_a_quick_run_tell_no_steady_state_however_alike_they_are() -> None:
    alike = unsteady_rounds()
    alike.records.rounds["rounds"] = RoundsRecord("rounds", "reads", 5, {"IOPS": [9] * 5}, {}, 5, 6)
    for quick, status in ((False, "good"), (True, "unknown")):
        (found,) = of_name(examine(replace(alike, quick=quick)), "steady")
        assert found.status == status


def test_what_rounds_are_not_judged_by_is_in_doubt_where_one_of_them_stands_apart() -> None:
    checked = examine(mix_settling())
    assert [one.status for one in of_name(checked, "steady")] == ["good"]
    (found,) = of_name(checked, "others")
    assert found.evidence == "r of rounds 1 to 5: from 1,000 IOPS to 1,800 IOPS (5 steps)"
    assert found.affects == tuple(f"round{n:02d}/r" for n in range(1, 6))


def test_marks_fall_on_the_steps_concerned_and_on_all_where_no_step_is_named() -> None:
    sound, broken = real(), real(error=errno.EIO)
    found = of_name(examine(session(("a", sound), ("b", broken))), "errors")
    assert marked(found, ["a", "b"]) == {"b"}
    everywhere = [Check("x", "x", "doubt", "e", "w", None)]
    assert marked(everywhere, ["a", "b"]) == {"a", "b"}
    assert marked([Check("x", "x", "good", "e", "w", None)], ["a"]) == frozenset()


@pytest.mark.parametrize("df", [1.5, 3.0, 8.0, 60.0])
def test_a_rate_that_is_not_known_takes_a_longer_run_than_it_had(df: float) -> None:
    for error in (0.03, 0.05, 0.2):
        share = t_quantile(0.975, df) * error
        longer = RateNoise(share, error, df, 2.0, None).times_longer(0.1)
        assert (longer > 1) == (share > 0.1)
        there = t_quantile(0.975, df * longer) * error / longer**0.5
        assert there <= 0.1 and (longer == 1 or there > 0.09)


def test_a_rate_that_rests_on_few_dips_says_within_what_it_is_known_and_what_it_takes() -> None:
    (found,) = of_name(examine(few_dips()), "noise")
    assert found.affects == ("run/j",)
    assert re.match(
        r"j: IOPS ±\d\d % \(95 %\) over 1 min 00 s; ±10 % takes about \d+ min .*, or \d+ runs$",
        found.evidence,
    ), found.evidence
    # On and off for as long as that, a minute says nothing.
    halves = [1500.0] * 18 + [100.0] * 12 + [1500.0] * 23 + [100.0] * 7
    (found,) = of_name(examine(of_result(real(rates=halves), prepared=True)), "noise")
    assert "j: IOPS by ±100 % and more (95 %)" in found.evidence
    many = of_result(real(rates=[2000.0, 2000.0, 2000.0, 400.0] * 15), prepared=True)
    (found,) = of_name(examine(many), "noise")
    assert found.status == "good"
    # A run by itself is asked whether it was steady, and protocols have rounds.
    alone = few_dips().records["run"]
    assert not of_name(examine(of_result(alone)), "noise")
    assert not of_name(examine(session(("a", alone))), "noise")
    # So have not those that are measured for moments only in the state that rounds have reached.
    steps = (StepEvidence("steady/a", "job", settled=True), StepEvidence("b", "job"))
    after = session(("steady/a", alone), ("b", alone), steps=steps)
    (found,) = of_name(examine(after), "noise")
    assert found.status == "doubt" and found.affects == ("steady/a",)


def test_a_rate_that_misses_what_is_asked_by_a_hair_is_not_told_as_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`IOPS ±10 %; ±10 % takes longer` says two things."""
    noise = RateNoise(0.1004, 0.05, 30.0, 60.0, None)
    monkeypatch.setitem(facts.__globals__, "rate_noise", lambda *_: noise)
    (found,) = of_name(examine(few_dips()), "noise")
    assert found.evidence.startswith("j: IOPS just over ±10 % (95 %) over 1 min 00 s; ±10 % takes ")


def test_how_sure_a_rate_is_is_not_asked_of_jobs_that_only_bring_the_drive_to_its_state() -> None:
    load = "rw=randwrite\nbs=4k\nrate_iops=200\ntime_based\nruntime=20s\n"
    job = f"[global]\n{load}[a]\n[b]\nstonewall\n[c]\n"
    result = ssdlab.run(job, on="lab-reference", set={"capacity": "128MiB"}, prepare="steady")
    (found,) = of_name(examine(of_result(result, prepared=True)), "noise")
    assert re.findall(r"(\w): IOPS", found.evidence) == ["b", "c"]


def test_a_job_that_was_too_brief_marks_the_numbers_of_its_step() -> None:
    found = of_name(examine(brief()), "brief")
    assert marked(found, ["a"]) == {"a"}
    single = of_name(examine(of_result(brief().records["a"])), "brief")
    assert worst_word(single, "j") == "in doubt" and not worst_word(single, "another")


def test_a_job_that_was_over_within_its_ramp_is_said_to_have_measured_nothing() -> None:
    ended = ssdlab.run("[j]\nrw=read\nbs=4k\nramp_time=1\nnumber_ios=1\n", on="lab-reference")
    found = of_name(examine(of_result(ended)), "brief")
    assert worst_word(found, "j") == "in doubt"
    assert "no I/O was measured: it ended within its ramp_time" in str(found)


def test_what_others_did_in_an_interruption_marks_all_steps_after_it() -> None:
    (found,) = of_name(examine(touched()), "resumed")
    assert found.affects == ("b", "c")
    assert "somebody else" in found.evidence


def test_a_quick_look_labels_the_run_and_not_each_number() -> None:
    found = of_name(examine(replace(clean(), quick=True)), "quick")
    assert found[0].affects == ()


def test_the_worst_comes_first() -> None:
    order = {"bad": 0, "doubt": 1, "unknown": 2, "good": 3}
    ranks = [order[one.status] for one in examine(empty_area())]
    assert ranks == sorted(ranks)


# --- the order of the steps


def written(evidence: Evidence) -> str:
    found = of_name(examine(evidence), "unwritten")
    return found[0].status if found else "none"


def fill(amount: int, size: str = "100g") -> Result:
    result = real("write", {"rw": "write", "size": size})
    result.document["jobs"][0]["write"]["io_bytes"] = amount
    return result


def test_what_was_filled_after_the_purge_may_be_read() -> None:
    purge = StepEvidence("purge", "purge")
    read = real("read", {"size": "40g"})
    assert written(session(("f", fill(100 * GIB)), ("r", read), before=(purge,))) == "good"
    assert written(session(("f", fill(30 * GIB)), ("r", read), before=(purge,))) == "bad"


def test_workers_with_a_range_of_their_own_fill_all_of_them() -> None:
    purge = StepEvidence("purge", "purge")
    parts = {"rw": "write", "size": "25g", "numjobs": "4"}
    read = ("r", real("read", {"size": "100g"}))

    def filled(options: dict[str, str]) -> Result:
        result = real("write", options)
        result.document["jobs"][0]["write"]["io_bytes"] = 100 * GIB
        return result

    apart = filled(parts | {"offset_increment": "25g"})
    assert written(session(("f", apart), read, before=(purge,))) == "good"
    together = filled(parts)
    assert written(session(("f", together), read, before=(purge,))) == "bad"


def test_a_trim_between_filling_and_reading_is_seen_only_where_it_was() -> None:
    def run(offset: int) -> Evidence:
        results = (("f", fill(100 * GIB)), ("r", real("read", {"size": "40g"})))
        found = session(*results)
        trim = StepEvidence("t", "trim", offset=offset, length=10 * GIB)
        first, last = found.steps
        return replace(found, steps=(first, trim, last))

    assert written(run(offset=0)) == "bad"
    assert written(run(offset=60 * GIB)) == "good"


def test_random_writes_leave_what_chance_leaves() -> None:
    """After writing the range once at random, 1/e of it is still empty: more than a fifth."""
    random = real("write", {"norandommap": "1"})
    random.document["jobs"][0]["write"]["io_bytes"] = 60 * GIB
    purge = StepEvidence("purge", "purge")
    read = real("read")
    once = session(("w", random), ("r", read), before=(purge,))
    assert written(once) == "bad"
    told = of_name(examine(once), "unwritten")[0].evidence
    assert f"{100 * math.exp(-1):.0f} %" in told
    every = real("write")  # fio's random map leaves no block out
    every.document["jobs"][0]["write"]["io_bytes"] = 60 * GIB
    assert written(session(("w", every), ("r", read), before=(purge,))) == "good"


def test_nobody_knows_whether_a_found_drive_was_written() -> None:
    assert written(session(("r", real("read")), initial="unknown")) == "unknown"


def test_reads_faster_than_flash_are_doubted() -> None:
    fast = real("read", {"iodepth": "1"})
    fast.document["jobs"][0]["read"]["clat_ns"]["mean"] = 9_000.0
    assert written(session(("r", fast))) == "doubt"


# --- single statements


def status(name: str, result: Result, **changes: Any) -> str:
    found = of_name(examine(session(("a", result), **changes)), name)
    return found[0].status if found else "none"


@pytest.mark.parametrize(
    ("options", "model", "expected"),
    [
        ({}, "A Drive", "good"),
        ({"refill_buffers": "0"}, "A Drive", "good"),
        ({"refill_buffers": "0"}, "OCZ-VERTEX2", "doubt"),
        ({"refill_buffers": "0", "scramble_buffers": "0"}, "A Drive", "doubt"),
        ({"refill_buffers": "0", "scramble_buffers": "0"}, "SandForce SF-2281", "bad"),
        ({"buffer_compress_percentage": "46"}, "A Drive", "doubt"),
        ({"buffer_pattern": "0xdeadbeef"}, "A Drive", "bad"),
        ({"dedupe_percentage": "50"}, "A Drive", "doubt"),
    ],
)
def test_contents_by_what_the_drive_can_do(
    options: dict[str, str], model: str, expected: str
) -> None:
    result = real(options=options)
    surroundings(result)["drive"]["model"] = model
    assert status("data", result) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"file_system": {"type": "tmpfs", "options": "rw"}}, "bad"),
        ({"file_system": {"type": "btrfs", "options": "rw"}}, "doubt"),
        ({"file_system": {"type": "nfs4", "options": "rw"}}, "doubt"),
        ({"file_system": {"type": "xfs", "options": "rw"}}, "good"),
    ],
)
def test_file_systems_that_stand_between(change: dict[str, Any], expected: str) -> None:
    result = real()
    surroundings(result).update(change)
    assert status("cache", result) == expected


def test_layers_below_the_target_are_seen() -> None:
    assert status("cache", with_observed(real(), loop_direct=False)) == "bad"
    assert status("cache", with_observed(real(), loop_direct=True)) == "good"
    assert status("cache", with_observed(real(), members=["sda", "sdb"])) == "doubt"


def test_a_speed_beyond_the_link_is_no_drives() -> None:
    assert status("cache", with_observed(real(), link_bytes_per_s=3e6)) == "bad"
    assert status("cache", with_observed(real(), link_bytes_per_s=3e9)) == "good"


def test_bytes_that_the_drive_did_not_count_came_from_elsewhere() -> None:
    result = real("read")
    surroundings(result)["observed"]["disk"]["read_bytes"] = 1 << 20
    assert status("cache", result) == "bad"


@pytest.mark.parametrize(
    ("status", "error", "told"),
    [
        ("stopped", 0, [("doubt", "it shrank before its end")]),
        ("failed", 0, [("bad", "it shrank")]),
        ("failed", errno.EIO, []),  # told as an error
    ],
)
def test_a_run_that_was_cut_short_is_told_once(
    status: str, error: int, told: list[tuple[str, str]]
) -> None:
    found = examine(of_result(cut_short(status, "it shrank", error)))
    assert [(one.status, one.evidence) for one in of_name(found, "end")] == told
    assert {one.status for one in of_name(found, "errors")} == {"bad" if error else "good"}


def test_errors_that_the_drive_counted_are_told() -> None:
    result = real()
    logs = [{"nvme_smart_health_information_log": {"media_errors": n}} for n in (3, 5)]
    surroundings(result)["smart"] = {"before": logs[0], "after": logs[1]}
    found = of_name(examine(session(("a", result))), "errors")[0]
    assert (found.status, found.evidence) == ("bad", "2 new media errors (SMART)")


def test_minutes_above_the_warning_temperature_are_throttling() -> None:
    result = real()
    logs = [{"nvme_smart_health_information_log": {"warning_temp_time": n}} for n in (0, 2)]
    surroundings(result)["smart"] = {"before": logs[0], "after": logs[1]}
    assert status("heat", result) == "bad"


def test_a_speed_that_falls_in_the_heat_is_told_from_one_that_falls_in_the_cold() -> None:
    falling = [1000.0] * 20 + [600.0] * 20
    warm = {"before": 50.0, "after": 72.0, "limit": 80.0}
    cool = {"before": 30.0, "after": 35.0, "limit": 80.0}
    assert status("heat", with_observed(real(rates=falling), celsius=warm)) == "bad"
    assert status("heat", with_observed(real(rates=falling), celsius=cool)) == "good"
    assert status("heat", with_observed(real(), celsius=warm)) == "good"


@pytest.mark.parametrize("option", ["rate_iops", "flow"])
def test_a_job_that_holds_back_has_no_stalls(option: str) -> None:
    found = stall_result()
    found.document["jobs"][0]["job options"][option] = "100"
    assert status("stalls", found) in ("none", "good")


def test_load_is_not_told_from_buffered_runs_or_ramps() -> None:
    for option in ({"direct": "0"}, {"ramp_time": "10"}):
        result = real(options=option)
        surroundings(result)["observed"]["disk"]["write_bytes"] *= 3
        assert status("load", result) == "good"


@pytest.mark.parametrize("option", ["fsync", "fdatasync", "sync"])
def test_what_a_file_system_writes_to_sync_is_no_load_of_others(option: str) -> None:
    result = real(options={option: "1"})
    disk = surroundings(result)["observed"]["disk"]
    disk["write_ios"] *= 3
    disk["write_bytes"] *= 3
    assert status("load", result) == "bad"
    surroundings(result)["file_system"] = {"type": "ext4"}
    assert status("load", result) == "good"
    disk["write_ios"] *= 3
    assert status("load", result) == "bad"


@pytest.mark.parametrize("option", ["fsync", "fdatasync", "sync"])
def test_flushes_that_the_kernel_counts_as_writes_are_no_load_of_others(option: str) -> None:
    """Of a block device each is a write of no bytes in its counters."""
    result = real(options={option: "1"})
    disk = surroundings(result)["observed"]["disk"]
    disk["write_ios"] *= 2
    assert status("load", result) == "good"
    disk["write_ios"] *= 2
    assert status("load", result) == "bad"
    disk["write_ios"] //= 2
    del result.document["jobs"][0]["job options"][option]
    assert status("load", result) == "bad"


def test_load_of_small_ios_is_told_by_their_number() -> None:
    result = real()
    ios = result.document["jobs"][0]["write"]["total_ios"]
    surroundings(result)["observed"]["disk"]["write_ios"] *= 2
    (found,) = of_name(examine(session(("a", result))), "load")
    assert found.evidence == f"besides fio's {ios:,} I/Os the drive had {ios:,}"


def test_other_programs_and_hypervisors_are_load() -> None:
    result = real()
    surroundings(result)["observed"]["cpu_seconds"] |= {"user": 40.0, "idle": 30.0}
    assert status("load", result) == "doubt"
    stolen = real()
    surroundings(stolen)["observed"]["cpu_seconds"] |= {"steal": 8.0, "idle": 60.0}
    assert status("load", stolen) == "doubt"


def test_amounts_within_an_slc_cache_are_doubted_and_beyond_are_not() -> None:
    assert status("span", real()) == "doubt"
    large = real()
    large.document["jobs"][0]["write"]["io_bytes"] = 50 * GIB
    assert status("span", large) == "good"


def test_what_a_simulated_drive_cannot_do_is_left_out() -> None:
    found = {one.name for one in examine(of_result(make_result("x")))}
    assert not found & {"cache", "load", "cpu", "heat", "stalls", "gaps"}


def test_a_simulated_drive_tells_its_slc_cache() -> None:
    """The check knows the cache from the rig: an amount within it is doubted, one beyond not."""
    rig = (
        '[device]\nkind = "ssd"\ncapacity = "4GiB"\n[device.ftl.slc_cache]\nstatic_size = "1GB"\n'
        'dynamic_size = { value = "1GiB", source = "x" }\n'
    )

    def run(amount: int) -> str:
        result = make_result("x")
        result.rig_toml = rig
        result.document["jobs"][0]["write"]["io_bytes"] = amount
        return of_name(examine(of_result(result)), "span")[0].status

    assert run(2_000_000_000) == "doubt"
    assert run(2_100_000_000) == "good"


def test_a_quick_run_tells_the_slc_cache_that_was_simulated() -> None:
    """Made smaller with its drive, it ends sooner than what is seen of it says."""
    result = make_result("x")
    result.rig_toml = (
        '[device]\nkind = "ssd"\ncapacity = "4GiB"\n[device.ftl.slc_cache]\nstatic_size = "1GB"\n'
    )
    case = session(("a", result), quick=True, capacity=4 << 30)
    (found,) = of_name(examine(case), "quick")
    assert "simulated at, its SLC cache holds up to 1 GB" in found.evidence
    (plain,) = of_name(examine(replace(clean(), quick=True)), "quick")
    assert "SLC" not in plain.evidence


def test_a_simulated_device_without_flash_has_no_slc_cache() -> None:
    """A disk has the RAM that its rig gives it: a short job fits into nothing else."""
    disk = (
        '[device]\nkind = "hdd"\ncapacity = "64GiB"\nrpm = 7200\nseek_average = "8.5ms"\n'
        'sustained_outer = "200MB/s"\nsustained_inner = "100MB/s"\n'
    )
    rigs = {
        '[device]\nkind = "null"\ncapacity = "64GiB"\n': "good",
        disk: "good",
        disk + 'buffer = "128GiB"\nwrite_cache_enabled = true\n': "bad",
        disk + 'buffer = "128GiB"\n': "good",
    }
    for rig, status in rigs.items():
        result = make_result("x")
        result.rig_toml = rig
        result.document["jobs"][0]["job options"] |= {"size": "1g"}
        result.document["jobs"][0]["write"]["io_bytes"] = 4096
        (found,) = of_name(examine(of_result(result)), "span")
        assert found.status == status and "SLC" not in found.evidence, (rig, found)


def test_a_replay_at_recorded_times_does_not_tell_whether_the_drive_is_steady() -> None:
    falling = [2000.0 - 45 * second for second in range(SECONDS)]
    for more, status in (({}, "unknown"), ({"replay_no_stall": "1"}, "doubt")):
        result = of_result(real(options={"read_iolog": "t.iolog", **more}, rates=falling))
        assert of_name(examine(result), "steady")[0].status == status


def test_sampling_tells_gaps_from_seconds_without_io() -> None:
    gap = sampling(gap_result().series_frame, 1.0)
    stall = sampling(stall_result().series_frame, 1.0)
    assert gap is not None and stall is not None
    assert [gap.gap_s, gap.zero_s] == pytest.approx([3.0, 0.0])
    assert [stall.gap_s, stall.zero_s] == pytest.approx([0.0, 2.0])


def test_steady_and_drifting_runs_are_told_apart() -> None:
    steady = of_result(real())
    falling = of_result(real(rates=[2000.0 - 45 * second for second in range(SECONDS)]))
    assert of_name(examine(steady), "steady")[0].status == "good"
    assert of_name(examine(falling), "steady")[0].status == "doubt"


def test_a_short_window_of_a_run_that_goes_on_falling_is_doubted() -> None:
    """The rule is kept by the last third of it, as by a short piece of any slope."""
    source = np.random.default_rng(3)
    length = 200
    seconds = np.arange(length)

    def told(levels: Any, noise: float) -> Check:
        rates = levels * (1 + noise * source.standard_normal(length))
        return of_name(examine(of_result(real(rates=list(rates)))), "steady")[0]

    falling = told(2000 * (1 - 0.3 * seconds / length), 0.02)
    assert falling.status == "doubt"
    moving = r"by the PTS rule, but still falling: by \d\d % in as long as the job took"
    assert re.search(moving, falling.evidence), falling.evidence
    assert told(1000 + 3000 * np.exp(-seconds / 15), 0.02).status == "good"
    alarms = [told(2000 * np.ones(length), 0.1).status for _ in range(40)].count("doubt")
    assert alarms <= 4


def test_a_new_drive_is_not_steady_while_writes_at_random_still_fill_it() -> None:
    """What was never written serves collection as the spare does. Here the rate alone passes."""

    def told(drive_writes: float, prepare: str = "fob", more: str = "") -> tuple[float, float]:
        size, rig = 512 << 20, {"capacity": "512MiB", "ftl.gc.victim": "random"}
        job = f"[j]\nrw=randwrite\nbs=4k\niodepth=32\nio_size={round(drive_writes * size)}\n{more}"
        result = ssdlab.run(job, on="lab-reference", set=rig, prepare=prepare)
        (found,) = of_name(examine(of_result(result)), "steady")
        share = re.search(r"still filling: .* adds (\d+) % to the spare", found.evidence)
        assert "by the PTS rule" in found.evidence and (found.status == "doubt" or not share)
        return int(share[1]) / 100 if share else 0.0, result.measurement.directions[0].waf or 0.0

    none, filled = told(2.6, "sequential", "norandommap\n")
    assert none == 0
    for drive_writes in (2.6, 3.0):
        share, waf = told(drive_writes, more="norandommap\n")
        # That is the share at the end; over the window before it there was more.
        assert 0.1 < share < filled / waf - 1 < 3 * share
    for drive_writes, more in ((6.0, "norandommap\n"), (2.0, ""), (2.6, "norandommap\nsize=75%\n")):
        # The second pass comes to no new block; what lies outside of the range stays unwritten.
        assert told(drive_writes, more=more)[0] == 0


def test_room_never_written_is_of_jobs_that_run_together_and_of_the_whole_drive(
    tmp_path: Path,
) -> None:
    drive = profile("lab-reference").text.partition("[device]")[2].replace("16GiB", "128MiB")

    def told(rig: str, jobs: str) -> list[float]:
        (place := tmp_path / "rig.toml").write_text(rig)
        job = f"[global]\nrw=randwrite\nbs=4k\nio_size=128m\nnorandommap\niodepth=8\n{jobs}"
        result = ssdlab.run(job, on=place)
        case = Case(of_result(result), {"run": facts("run", result, None)})
        return list(never_written(case).values())

    whole = f"[device]\n{drive}"
    (one,) = told(whole, "[a]\n")
    assert one == pytest.approx(math.exp(-1) / 0.28, rel=0.05)
    both = math.exp(-2) / 0.28
    assert told(whole, "[a]\n[b]\n") == pytest.approx([both, both], rel=0.05)
    assert told(whole, "[a]\n[b]\nstonewall\n") == pytest.approx([one, both], rel=0.05)
    below = drive.replace("[device.", "[device.below.")
    half = f'[device]\nkind = "partition"\nsize = "64MiB"\n[device.below]\n{below}'
    # Collection has the use of the other half, too.
    beside = 0.5 * math.exp(-2) / (0.28 + 0.5)
    assert told(half, "[a]\n") == pytest.approx([beside], rel=0.05)


@pytest.mark.parametrize("norandommap", ["", "norandommap\n"])
@pytest.mark.parametrize(
    ("how", "passes"),
    [
        ("zipf", 1),
        ("zipf:0.7", 4),
        ("pareto:0.2", 2),
        ("pareto:0.9999", 2),
        ("zoned:90/10:10/90", 3),
        ("zoned:80/20:20/30", 2),
    ],
)
def test_what_random_writes_that_prefer_some_places_never_come_to_is_known(
    how: str, passes: int, norandommap: str
) -> None:
    write = f"rw=randwrite\nrandom_distribution={how}\n{norandommap}io_size={64 * passes}m\n"
    job = f"[global]\nbs=4k\niodepth=8\n[w]\n{write}[r]\nstonewall\nrw=read\nsize=100%\n"
    result = ssdlab.run(job, "lab-reference", set={"capacity": "64MiB"})
    empty = result.ssdlab["counters"]["units_read_unmapped"] / (64 << 8)
    found = facts("run", result, None)
    case = Case(of_result(result), {"run": replace(found, works=found.works[:1])})
    assert list(never_written(case).values()) == pytest.approx([empty / 0.25], rel=0.02)


def test_room_never_written_of_arrays_is_that_of_their_members_and_parity_is_written_sooner() -> (
    None
):
    drive = ssdlab.Rig("lab-reference").set(capacity="64MiB")

    def told(level: int, count: int, data: int, passes: float) -> list[float]:
        size = round(passes * data * 64)
        job = f"[a]\nrw=randwrite\nbs=4k\nio_size={size}m\nnorandommap\niodepth=8\n"
        result = ssdlab.run(job, ssdlab.Rig.array(level, drive, count, chunk="64k"))
        case = Case(of_result(result), {"run": facts("run", result, None)})
        return list(never_written(case).values())

    left = math.exp(-1.5)
    for level, count, data, share in (
        (0, 2, 2, left),
        (1, 2, 1, left),
        (10, 4, 2, left),
        (5, 4, 3, (3 * left + left**3) / 4),
        (6, 5, 3, (3 * left + 2 * left**3) / 5),
    ):
        # Of 0.28 that were asked for 0.25 were built of so small a drive.
        assert told(level, count, data, 1.5) == pytest.approx([share / 0.25], rel=0.08), level


def test_room_of_arrays_is_known_behind_links_and_parity_uses_it_up_as_well() -> None:
    """Links are how all drives but one are described, and their arrays were never asked; each small
    write takes room for its parity, too."""
    drive = ssdlab.Rig("demo-enterprise").set(capacity="1GiB")
    job = "[a]\nrw=randwrite\nbs=4k\nio_size=64m\nnorandommap\niodepth=8\n"

    def told(level: int, count: int) -> float:
        rig = ssdlab.Rig.array(level, drive, count, chunk="64k")
        result = ssdlab.run(job, rig, prepare="sequential")
        case = Case(of_result(result), {"run": facts("run", result, None)})
        room = case.facts["run"].room
        assert room is not None
        (found,) = overwritten(case).values()
        return found * room.spare / (64 << 20)

    assert told(0, 2) == pytest.approx(1.0, rel=0.02)
    assert told(1, 2) == pytest.approx(2.0, rel=0.02)
    assert told(5, 4) == pytest.approx(2.0, rel=0.02)
    assert told(6, 4) == pytest.approx(3.0, rel=0.02)
    parity = Room(3 << 30, 4 << 30, 1.0, 3, 1, 64 << 10)
    whole_stripes = parity.programmed(192 << 10), parity.programmed(1 << 20)
    assert (parity.programmed(128 << 10), *whole_stripes) == (1.5, 4 / 3, 4 / 3)


def test_random_writes_to_a_filled_drive_are_not_steady_until_its_spare_is_used_up() -> None:
    """Before they collect nothing they are as fast as if they never would."""

    def told(passes: float) -> tuple[bool, float]:
        job = "[j]\nrw=randwrite\nbs=4k\niodepth=32\nnorandommap\n"
        rig = {"capacity": "1GiB", "ftl.over_provisioning": 0.28, "nand.channels": 1}
        amount = f"io_size={round(passes * GIB)}\n"
        result = ssdlab.run(job + amount, on="lab-reference", set=rig, prepare="sequential")
        (found,) = of_name(examine(of_result(result)), "steady")
        assert "by the PTS rule" in found.evidence
        doubted = "the room beside the data" in found.evidence
        return doubted, result.measurement.directions[0].iops or 0.0

    early, fast = told(0.2)
    late, slow = told(1.5)
    assert early and not late and fast > 2.5 * slow


def test_what_was_written_at_random_over_data_is_known_of_steps_and_jobs_before() -> None:
    def asked(jobs: str, prepare: str = "sequential", more: str = "") -> list[float]:
        job = f"[global]\nbs=4k\niodepth=8\nrw=randwrite\nio_size=32m\n{more}{jobs}"
        rig = {"capacity": "128MiB", "ftl.over_provisioning": 0.25}
        result = ssdlab.run(job, on="lab-reference", set=rig, prepare=prepare)
        found = overwritten(Case(of_result(result), {"run": facts("run", result, None)}))
        return list(found.values())

    once = pytest.approx(1.0, rel=0.05)
    assert asked("[a]\n") == [once]
    assert asked("[a]\n[b]\n") == asked("[a]\n[b]\nstonewall\n")[1:] * 2
    assert asked("[a]\n[b]\nstonewall\n") == [once, pytest.approx(2.0, rel=0.05)]
    assert asked("[a]\n", "steady") == asked("[a]\n", "random:1") == [math.inf]
    # A new drive is filled first, and what lies beside the job's range is room as well.
    fill = "[f]\nrw=write\nio_size=128m\n[a]\nstonewall\n"
    assert asked(fill, "fob") == asked(fill, "random:1") == [once]
    assert asked("[a]\nio_size=128m\n", "fob") == [0.0]
    half = asked("[f]\nrw=write\nio_size=64m\n[a]\nstonewall\nsize=50%\n", "fob")
    assert half == [pytest.approx(32 / (32 + 64), rel=0.05)]


def test_a_filled_drive_that_earlier_jobs_have_written_at_random_for_long_is_not_new_any_more() -> (
    None
):
    def doubted(jobs: str) -> bool:
        job = f"[global]\nrw=randwrite\nbs=4k\nnorandommap\nio_size=16m\n{jobs}"
        rig = {"capacity": "128MiB", "ftl.over_provisioning": 0.25}
        result = ssdlab.run(job, on="lab-reference", set=rig, prepare="sequential")
        found = of_name(examine(of_result(result, prepared=True)), "steady")
        return any("times the room" in check.evidence for check in found)

    assert doubted("[b]\n") and not doubted("[b]\nio_size=96m\n")
    assert not doubted("[a]\n[b]\nstonewall\nio_size=96m\n")


def test_sequential_writes_are_not_steady_while_what_was_written_at_random_is_copied() -> None:
    """Over most of the first pass nothing moves: only what lies there tells that it will."""

    def told(passes: float, prepare: str) -> tuple[float, float]:
        job = f"[j]\nrw=write\nbs=128k\niodepth=8\nio_size={round(passes * GIB)}\n"
        rig = {"capacity": "1GiB", "ftl.over_provisioning": 0.28}
        result = ssdlab.run(job, on="lab-reference", set=rig, prepare=prepare)
        (found,) = of_name(examine(of_result(result)), "steady")
        share = re.search(r"collection still copies ([\d.]+) times as much", found.evidence)
        assert "by the PTS rule" in found.evidence and (found.status == "doubt" or not share)
        row = result.measurement.directions[0]
        assert not share or float(share[1]) == pytest.approx((row.waf or 0) - 1, rel=0.05)
        return float(share[1]) if share else 0.0, row.bw_bytes or 0.0

    first, slow = told(0.9, "steady")
    last, fast = told(4.5, "steady")
    assert first > 1 and last == 0 and fast > 2 * slow
    assert told(1.7, "sequential")[0] == 0


def test_what_was_written_at_random_is_known_of_steps_and_jobs_before() -> None:
    before = "[r]\nrw=randwrite\nbs=4k\nsize={}\n[s]\nstonewall\n"

    def asked(jobs: str, prepare: str = "sequential", more: str = "") -> list[str]:
        job = f"[global]\nbs=128k\niodepth=8\nrw=write\nio_size=64m\n{more}{jobs}"
        result = ssdlab.run(job, on="lab-reference", set={"capacity": "128MiB"}, prepare=prepare)
        return list(copied(Case(of_result(result), {"run": facts("run", result, None)})))

    assert asked("[s]\n", "random:1") and asked("[s]\n", "steady", "size=50%\n")
    for state in ("sequential", "fob", "random:1,sequential", "random:1,trim"):
        assert not asked("[s]\n", state)
    # What one job of the file has scattered the next one goes over; a little of it does not matter.
    assert asked(before.format("100%")) and not asked(before.format("4%"))
    assert asked("[s]\nio_size=32m\n[t]\nstonewall\n", "random:1") == ["run/s", "run/t"]
    assert asked("[s]\nio_size=128m\n[t]\nstonewall\n", "random:1") == ["run/s"]
    # Of a drive of which nothing was known all is, once that has been written over.
    over = ssdlab.run(f"{before.format('100%')}rw=write\nbs=128k\n", on="lab-reference",
                      set={"capacity": "128MiB"})  # fmt: skip
    left = replace(of_result(over), initial="unknown")
    assert list(copied(Case(left, {"run": facts("run", over, None)}))) == ["run/s"]
    # With random writes beside it, it is never rid of them.
    assert not asked("[s]\n[r]\nrw=randwrite\nbs=4k\n", "random:1")
    assert not asked("[s]\nrw=read\n", "random:1")


def test_writes_that_prefer_places_are_not_steady_on_a_drive_written_everywhere_alike() -> None:
    def told(distribution: str, prepare: str = "steady", more: str = "") -> list[str]:
        job = f"[j]\nrw=randwrite\nbs=4k\nnorandommap\n{distribution}\nio_size=16m\n{more}"
        result = ssdlab.run(job, on="lab-reference", set={"capacity": "128MiB"}, prepare=prepare)
        found = of_name(examine(of_result(result, prepared=True)), "steady")
        return [check.evidence for check in found if check.status == "doubt"]

    zipf = "random_distribution=zipf:1.1"
    (said,) = told(zipf)
    assert "zipf:1.1 has a steady state of its own, and only 12 % of its range" in said
    assert not told("random_distribution=random") and not told("") and not told(zipf, "fob")
    assert not told(zipf, more="io_size=128m\n")
    assert not told(zipf, more="rw=randread\n")
    assert told(zipf, "sequential"), "the state in which a job file finds arrays"


def test_a_single_run_of_writes_that_prefer_places_is_doubted_until_they_went_over_the_range() -> (
    None
):
    """On a drive written everywhere alike it is steady by the rule and too fast."""

    def told(*amounts: int) -> tuple[str, float]:
        job = "[global]\nrw=randwrite\nbs=4k\niodepth=32\nrandom_distribution=zoned:90/10:10/90\n"
        sections = (f"[j{n}]\nstonewall\nio_size={one}m\n" for n, one in enumerate(amounts))
        rig = {"capacity": "512MiB", "nand.channels": 1}
        result = ssdlab.run(job + "".join(sections), "lab-reference", set=rig, prepare="steady")
        last = of_name(examine(of_result(result)), "steady")[-1]
        return last.evidence, result.measurement.directions[-1].iops or 0.0

    early, fast = told(200)
    late, slow = told(512, 512, 512, 200)
    assert "by the PTS rule, but zoned:90/10:10/90 has a steady state of its own" in early
    assert "a steady state of its own" not in late and fast > 1.1 * slow
    assert told(200, 512)[0] == early, "later writes tell nothing of it"


def test_other_writes_do_not_bring_those_that_prefer_places_to_their_steady_state() -> None:
    """Those to all places alike, in order, or elsewhere."""
    zipf = "random_distribution=zipf:1.1\n"

    def doubted(jobs: str) -> list[str]:
        job = f"[global]\nrw=randwrite\nbs=4k\niodepth=8\nnorandommap\nio_size=128m\n{jobs}"
        result = ssdlab.run(job, on="lab-reference", set={"capacity": "128MiB"}, prepare="steady")
        found = of_name(examine(of_result(result, prepared=True)), "steady")
        own = [one.evidence for one in found if "a steady state of its own" in one.evidence]
        return [evidence.partition(":")[0] for evidence in own]

    late = f"[j]\nstonewall\nio_size=16m\n{zipf}"
    assert doubted(f"[alike]\n{late}") == ["j"]
    assert doubted(f"[log]\nrw=write\n[j]\nio_size=16m\n{zipf}") == ["j"]
    assert doubted(f"[a]\nsize=50%\n{zipf}[j]\noffset=50%\nio_size=16m\n{zipf}") == ["j"]
    # What settles the drive is not what is measured.
    assert doubted(f"[early]\nio_size=16m\n{zipf}[j]\nstonewall\n{zipf}") == []
    assert doubted(f"[own]\n{zipf}{late}") == []
    assert doubted(f"[a]\nio_size=64m\n{zipf}[b]\nio_size=64m\n{zipf}") == []


def test_many_steps_alike_are_one_sentence() -> None:
    results = [(f"s{n}", real(options={"direct": "0"})) for n in range(30)]
    found = of_name(examine(session(*results)), "cache")[0]
    assert "(30 steps)" in found.evidence
    assert found.affects is not None and len(found.affects) == 30


# --- what is observed


def recorded(root: Path, celsius: int, busy: int) -> None:
    """A little /proc and /sys."""
    block = root / "sys/class/block/nvme9n1"
    hwmon = block / "device/hwmon1"
    link = block / "device/device"
    for folder in (hwmon, link, root / "proc/pressure"):
        folder.mkdir(parents=True, exist_ok=True)
    fields = [busy, 0, busy * 8, 0, 2, 0, 16, 0, 0, 5, 5, 0, 0, 0, 0, 1, 0]
    (block / "stat").write_text(" ".join(map(str, fields)) + "\n")
    (hwmon / "temp1_input").write_text(f"{celsius}000\n")
    (hwmon / "temp1_max").write_text("81850\n")
    (link / "current_link_speed").write_text("8.0 GT/s PCIe\n")
    (link / "current_link_width").write_text("4\n")
    (root / "proc/stat").write_text(f"cpu  {busy} 0 0 1000 0 0 0 0 0 0\ncpu0 1 2 3\n")
    text = f"some avg10=0.00 avg60=0.00 avg300=0.00 total={busy * 1000}\n"
    (root / "proc/pressure/memory").write_text(text)


def test_an_observer_tells_what_changed(tmp_path: Path) -> None:
    recorded(tmp_path, 40, 100)
    observer = Observer("nvme9n1", None, root=tmp_path)
    recorded(tmp_path, 55, 300)
    found = observer.found()
    assert found["disk"]["read_bytes"] == 200 * 8 * 512
    assert found["celsius"] == {"before": 40.0, "after": 55.0, "limit": 81.85}
    assert found["cpu_seconds"]["user"] == pytest.approx(2.0)
    assert found["pressure_seconds"] == {"memory_some": 0.2}
    assert found["link_bytes_per_s"] == pytest.approx(3.94e9, rel=0.01)


def test_a_link_carries_its_transfers_less_its_coding() -> None:
    rates = {"5.0 GT/s PCIe": 0.5e9, "8.0 GT/s PCIe": 0.985e9, "64.0 GT/s PCIe": 7.563e9}
    for speed, lane in rates.items():
        assert link_bytes_per_s(speed, "4") == pytest.approx(4 * lane, rel=1e-3)
    assert link_bytes_per_s("Unknown", "4") is None


def test_an_observer_of_nothing_tells_nothing(tmp_path: Path) -> None:
    found = Observer("gone", tmp_path / "no-file", root=tmp_path).found()
    assert set(found) == {"seconds"}


def test_holes_of_a_file_are_found_by_place(tmp_path: Path) -> None:
    path = tmp_path / "holes"
    with path.open("wb") as file:
        file.truncate(64 << 20)
        file.seek(0)
        file.write(b"x" * (16 << 20))
    found = unwritten(path)
    assert found is not None
    if found["unwritten_bytes"] == 0:
        pytest.skip("this file system does not tell holes")
    assert found["unwritten_bytes"] == 48 << 20
    assert found["cells"][:16] == [0.0] * 16
    assert found["cells"][16:] == [1.0] * 48
    assert found["holes"] == [[16 << 20, 64 << 20]]


def test_of_a_file_with_many_holes_shares_are_told(tmp_path: Path) -> None:
    path = tmp_path / "holes"
    with path.open("wb") as file:
        for number in range(100):
            file.seek(number << 20)
            file.write(b"x" * (64 << 10))
    found = unwritten(path)
    assert found is not None
    if found["unwritten_bytes"] == 0:
        pytest.skip("this file system does not tell holes")
    assert "holes" not in found
    assert len(found["cells"]) == 64


@pytest.mark.parametrize(
    ("offset", "length", "empty"),
    [(0, 8, 0.0), (8, 8, 1.0), (4, 8, 0.5), (0, None, 1 - 8 / 1024), (0, 1024, 1 - 8 / 1024)],
)
def test_only_the_holes_in_its_range_are_a_job_s(
    offset: int, length: int | None, empty: float
) -> None:
    """The range is smaller than a piece of which shares are told."""
    holes = {"bytes": 1 << 30, "cells": [0.5, *[1.0] * 63], "holes": [[8 << 20, 1 << 30]]}
    work = SimpleNamespace(offset=offset << 20, length=length and length << 20)
    assert area._empty_of_file(holes, cast("Any", work)) == pytest.approx(empty)


def test_without_holes_told_one_by_one_a_piece_is_as_empty_everywhere() -> None:
    shares = {"bytes": 64 << 20, "cells": [0.0] * 32 + [0.5] * 32}
    work = SimpleNamespace(offset=24 << 20, length=16 << 20)
    assert area._empty_of_file(shares, cast("Any", work)) == pytest.approx(0.25)


# --- the real fio

BASE = "ioengine=psync\nbs=4k\ntime_based\nruntime=2\n"


def real_run(job: str, path: Path, **changes: Any) -> list[Check]:
    return examine(of_result(ssdlab.run(job, on=ssdlab.Fio(path, **changes))))


@pytest.mark.real
@needs_fio()
def test_fio_through_the_page_cache_is_not_believed(tmp_path: Path) -> None:
    found = real_run(f"[r]\nrw=randread\nsize=32m\ndirect=0\n{BASE}", tmp_path / "s")
    assert of_name(found, "cache")[0].status == "bad"
    assert "page cache (direct=0)" in of_name(found, "cache")[0].evidence


@pytest.mark.real
@needs_fio()
def test_fio_past_the_page_cache_is_not_taken_for_one_through_it(tmp_path: Path) -> None:
    result = ssdlab.run(f"[w]\nrw=randwrite\nsize=32m\ndirect=1\n{BASE}", on=tmp_path / "s")
    if result.ssdlab["surroundings"]["file_system"]["type"] in ("tmpfs", "overlay"):
        pytest.skip("the temporary folder is no disk")
    assert of_name(examine(of_result(result)), "cache")[0].status == "good"


@pytest.mark.real
@needs_fio()
def test_fio_writing_zeros_is_not_believed(tmp_path: Path) -> None:
    found = real_run(f"[w]\nrw=write\nsize=8m\nzero_buffers\n{BASE}", tmp_path / "s")
    assert of_name(found, "data")[0].status == "bad"


@pytest.mark.real
@needs_fio()
def test_fio_reading_a_hole_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "hole"
    with path.open("wb") as file:
        file.truncate(32 << 20)
    if not (unwritten(path) or {}).get("unwritten_bytes"):
        pytest.skip("this file system does not tell holes")
    job = f"[r]\nrw=randread\nsize=32m\ndirect=1\n{BASE}"
    found = real_run(job, path, use_existing=True)
    assert of_name(found, "unwritten")[0].status == "bad"
    assert "100 %" in of_name(found, "unwritten")[0].evidence
    path.write_bytes(b"x" * (32 << 20))
    subprocess.run(["sync", str(path)], check=True)
    found = real_run(job, path, use_existing=True)
    assert "holes" not in of_name(found, "unwritten")[0].evidence


@pytest.mark.real
@pytest.mark.root
@pytest.mark.alone
@needs_fio()
def test_a_second_fio_on_the_same_device_is_other_load(loop: Loop) -> None:
    brief = BASE.replace("runtime=2", "runtime=1")
    job = f"[r]\nrw=randread\nsize=32m\ndirect=1\nrate_iops=300\n{brief}"
    reads = Path(f"/sys/class/block/{loop.name}/stat")
    before = int(reads.read_text().split()[0])
    command = [
        "fio", "--name=other", f"--filename={loop.path}", "--rw=randread", "--bs=4k", "--direct=1",
        "--time_based", "--runtime=60", "--readonly", "--rate_iops=1000",
    ]  # fmt: skip
    other = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while int(reads.read_text().split()[0]) < before + 100:
            assert other.poll() is None, "the other fio has ended"
            time.sleep(0.02)
        found = real_run(job, loop.path)
    finally:
        other.terminate()
        other.wait()
    disturbed = of_name(found, "load")[0]
    assert disturbed.status == "bad"
    assert "besides fio's I/O" in disturbed.evidence
    alone = of_name(real_run(job, loop.path), "load")[0]
    assert "besides fio's I/O" not in alone.evidence


@pytest.mark.real
@needs_fio()
def test_run_and_report_tell_what_speaks_against_a_run(
    tmp_path: Path, cli: Callable[..., Outcome]
) -> None:
    job = tmp_path / "j.fio"
    job.write_text("[w]\nrw=write\nsize=4m\nzero_buffers\ndirect=1\n")
    said = cli("run", job, "--on", tmp_path / "s", "--out", tmp_path / "runs")
    assert said.status == 0
    assert "not valid (contents of the data): w writes zeros" in said.out
    run = next((tmp_path / "runs").glob("*-s-*"))
    page = tmp_path / "r.html"
    assert cli("report", run, "-o", page).status == 0
    assert "w writes zeros (zero_buffers)" in page.read_text()


def test_a_protocols_run_is_examined(tmp_path: Path, cli: Callable[..., Outcome]) -> None:
    said = cli("test", "lab-reference", "-p", "consistency", "--quick", "--out", tmp_path)
    assert said.status == 0, said.err
    assert "in doubt (quick run)" in said.out
    names = {one.name for one in checks.probes()}
    assert "quick" in names


def test_a_mix_reads_what_it_has_written_itself() -> None:
    rig = {"capacity": "256MiB"}
    head = "[m]\nrw=randrw\nbs=4k\niodepth=8\nsize=64m\ntime_based\n"

    def told(options: str) -> tuple[str, float]:
        result = ssdlab.run(head + options, on="lab-reference", set=rig)
        found = of_name(examine(of_result(result)), "unwritten")[0]
        share = re.search(r"on average (\d+) %", found.evidence)
        # A read of what is not there senses nothing: tR is 75 us.
        row = next(one for one in result.summary() if one["ddir"] == "read")
        assert not row["steady"]
        where = result.attribution or {}
        parts = dict(zip(where["parts"], where["read"]["total_ns"], strict=True))
        missed = 1 - parts["cells"] / row["ios"] / 75e3
        assert float(share[1] if share else 0) / 100 == pytest.approx(missed, abs=0.02)
        return found.status, missed

    assert told("norandommap\nruntime=5\n")[0] == "bad"
    assert told("runtime=5\n")[0] == "bad"
    assert told("norandommap\nruntime=15\n")[0] == "doubt"


@pytest.mark.parametrize(
    ("state", "initial"),
    [
        ("fob", "empty"),
        ("sequential,idle:1s", "full"),
        ("as left by the run before", "unknown"),
        ("as left by the run before, then purge,idle:1s", "empty"),
        ("as left by the run before, then sequential", "full"),
    ],
)
def test_what_a_drive_held_before_a_run_is_known_from_how_it_was_prepared(
    state: str, initial: str
) -> None:
    result = make_result("x")
    result.document["ssdlab"]["preconditioning"] = state
    assert of_result(result).initial == initial


def test_what_is_read_back_was_written_by_the_job_itself() -> None:
    job = "[a]\nrw=randwrite\nbs=4k\nsize=8m\nverify=crc32c\n"
    result = ssdlab.run(job, on=ssdlab.Rig("demo-client").set(capacity="1GiB"))
    assert {row["ddir"] for row in result.summary()} == {"read", "write"}
    wrong = [c for c in examine(of_result(result)) if c.status in ("doubt", "bad")]
    assert "unwritten" not in {check.name for check in wrong}


def test_numbers_of_a_job_that_reads_back_are_of_the_whole_job() -> None:
    """Reads are slower here than writes: what came last was taken for the steady state."""
    job = "[a]\nrw=randwrite\nbs=4k\nsize=1g\nverify=crc32c\n"
    result = ssdlab.run(job, on=ssdlab.Rig("demo-enterprise").set(capacity="1GiB"))
    fio = result.document["jobs"][0]
    (one,) = result.measurement.jobs
    assert {own.ddir: own.iops for own in one.directions} == {
        ddir: pytest.approx(fio[ddir]["iops"]) for ddir in ("read", "write")
    }
    assert (one.window.verdict, one.window.steady) == ("verified", False)
    # Seconds in which it did the other are no stalls, nor noise.
    assert [own.consistency for own in one.directions] == [None, None]
    assert rate_noise(result, one) is None
    (found,) = of_name(examine(of_result(result)), "steady")
    assert found.status == "doubt" and "reads back what it wrote" in found.evidence
    for more in ({"verify": "md5", "time_based": "1"}, {"verify_pattern": "0x55"}):
        assert replace(one.workload, options={"rw": "write", **more}).reads_back
    never = job.replace("crc32c", "crc32c\ndo_verify=0")
    result = ssdlab.run(never, on=ssdlab.Rig("demo-enterprise").set(capacity="1GiB"))
    assert result.measurement.jobs[0].window.verdict == "short"


def test_what_was_never_written_is_no_matter_on_a_hard_disk() -> None:
    job = "[r]\nrw=randread\nnumber_ios=20\n"
    for drive, doubted in (("demo-client", True), ("seagate-constellation-500", False)):
        found = examine(of_result(ssdlab.run(job, on=drive)))
        assert any(c.name == "unwritten" and c.status == "bad" for c in found) is doubted
