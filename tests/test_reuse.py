"""Runs that were there already: the same result, only what is new is simulated, no trouble."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from conftest import Cli
from ssdlab import bench
from ssdlab._version import VERSION
from ssdlab.api.working import working
from ssdlab.bench import Seat, Variant, kept
from ssdlab.errors import InputError, Interrupted
from ssdlab.jobfile import JobText
from ssdlab.results import Result
from ssdlab.rig import profile
from ssdlab.target import Settings, Sim, SimSession, Terms

TEXT = "[w]\nrw=randwrite\nbs=4k\nsize=16m\nnumber_ios=500\nwrite_lat_log=own\nlog_offset=1\n"
SETTINGS = Settings(seed=3, prepare="random:1", interval_ms=50)
ARRAY = ("array", "lab-reference", "--set", "capacity=64MiB", "--levels", "0", "--chunk", "64k")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where results are kept, also of the shortest runs."""
    found = tmp_path / "simulations"
    monkeypatch.setenv(kept.PLACE, str(found))
    monkeypatch.setattr(kept, "WORTH_S", 0.0)
    return found


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rigs of all runs that are really simulated from now on."""
    found: list[str] = []
    own = Sim.run

    def run(target: Sim, job: JobText, settings: Settings) -> Result:
        found.append(target.rig)
        return own(target, job, settings)

    monkeypatch.setattr(Sim, "run", run)
    return found


def drive(capacity: str = "64MiB") -> Sim:
    rig = profile("lab-reference").rig()
    rig.set("capacity", capacity)
    return Sim("small", rig.to_toml())


def job(tmp_path: Path, text: str = TEXT) -> JobText:
    return JobText("w.fio", text, tmp_path)


def body(target: Sim, one: JobText, settings: Settings, seat: Seat) -> Result:
    return seat.run(target, one, settings)


def run(one: JobText, settings: Settings = SETTINGS, *, fresh: bool = False) -> Result:
    variant = Variant(partial(body, drive(), one, settings))
    with bench.reusing(fresh=fresh):
        (found,) = bench.run([variant])
    return found


def test_a_kept_result_is_that_of_a_fresh_run(
    tmp_path: Path, folder: Path, simulated: list[str]
) -> None:
    first, second = run(job(tmp_path)), run(job(tmp_path))
    assert len(simulated) == 1
    assert second == first == drive().run(job(tmp_path), SETTINGS)
    assert second.logs and second.folder is first.folder is None
    assert second.json() == first.json()


def jobs(texts: list[str], folder: Path, seat: Seat) -> list[object]:
    """Several jobs on one drive, and what it looked like around them."""
    drive = seat.drive(profile("lab-reference").rig().to_toml(), "one", 5)
    drive.prepare("random:0.1", seat.report)
    found: list[object] = []
    for place, text in enumerate(texts):
        job = JobText("w.fio", text, folder)
        result, around = drive.run(job, seat.report, seed=place, interval_ms=100)
        found += [result, around]
    return [*found, drive.capacity]


def test_jobs_on_one_drive_are_kept_with_all_that_came_before(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []
    own = Sim.open

    def opened(sim: Sim, terms: Terms) -> SimSession:
        built.append(sim.name)
        return own(sim, terms)

    monkeypatch.setattr(Sim, "open", opened)
    texts = [TEXT, TEXT.replace("=500", "=400"), TEXT.replace("=500", "=300")]

    def run(*texts: str, fresh: bool = False) -> tuple[object, int, int]:
        built.clear()
        with bench.reusing(fresh=fresh) as reuse:
            (found,) = bench.run([Variant(partial(jobs, [*texts], tmp_path))])
        return found, reuse.reused, len(built)

    bare = jobs(texts, tmp_path, Seat(lambda _news: True))
    assert run(*texts) == (bare, 0, 1) and run(*texts) == (bare, 3, 0)
    assert run(*texts, fresh=True) == (bare, 0, 1)
    # Only the last is new: it begins where the kept ones left the drive.
    other = TEXT.replace("=500", "=200")
    again = jobs([*texts[:2], other], tmp_path, Seat(lambda _news: True))
    assert run(*texts[:2], other) == (again, 2, 1)
    assert run(*texts[1:])[1] == 0
    monkeypatch.setenv(kept.PLACE, kept.OFF)
    assert run(*texts) == (bare, 0, 1)


def test_without_reusing_or_with_the_cache_off_all_is_simulated(
    tmp_path: Path, folder: Path, simulated: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run([Variant(partial(body, drive(), job(tmp_path), SETTINGS))])
    monkeypatch.setenv(kept.PLACE, kept.OFF)
    run(job(tmp_path))
    assert len(simulated) == 2 and not folder.exists()


def test_what_changes_the_numbers_is_simulated_anew(
    tmp_path: Path, folder: Path, simulated: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inc.fio").write_text("iodepth=2\n")
    trace = tmp_path / "t.log"
    trace.write_text("fio version 2 iolog\nf add\nf open\nf write 0 4096\nf close\n")
    monkeypatch.setenv("DEPTH", "4")
    base = job(tmp_path, "[global]\ninclude inc.fio\n" + TEXT.replace("=500", "=50${DEPTH}"))
    replayed = job(tmp_path, f"[r]\nread_iolog={trace}\n")

    def count() -> int:
        before = len(simulated)
        run(base)
        run(replayed)
        return len(simulated) - before

    assert (count(), count()) == (2, 0)
    (tmp_path / "inc.fio").write_text("iodepth=8\n")
    assert (count(), count()) == (1, 0)
    monkeypatch.setenv("DEPTH", "5")
    assert (count(), count()) == (1, 0)
    trace.write_text("fio version 2 iolog\nf add\nf open\nf write 0 8192\nf close\n")
    assert (count(), count()) == (1, 0)
    monkeypatch.setattr(kept, "built", lambda: [VERSION, "another build"])
    assert (count(), count()) == (2, 0)


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 4},
        {"prepare": "sequential"},
        {"interval_ms": 100},
        {"overrides": {"ftl.over_provisioning": "0.2"}},
    ],
    ids=lambda one: next(iter(one)),
)
def test_each_setting_counts(
    tmp_path: Path, folder: Path, simulated: list[str], other: dict[str, object]
) -> None:
    changed = replace(SETTINGS, **other)  # type: ignore[arg-type]
    run(job(tmp_path))
    assert run(job(tmp_path), changed) == drive().run(job(tmp_path), changed)
    assert len(simulated) == 3


def test_what_is_wrong_is_said_each_time(tmp_path: Path, folder: Path) -> None:
    for text in ("[w]\nrw=sideways\n", "[r]\nread_iolog=missing.log\n"):
        said = set()
        for _ in range(2):
            with pytest.raises(InputError) as wrong:
                run(job(tmp_path, text))
            said.add(str(wrong.value))
        assert len(said) == 1
    assert not folder.exists()


def test_a_damaged_or_foreign_result_is_replaced(
    tmp_path: Path, folder: Path, simulated: list[str]
) -> None:
    first = run(job(tmp_path))
    run(job(tmp_path), replace(SETTINGS, seed=4))
    one, two = sorted(folder.iterdir())
    whole, other = one.read_bytes(), two.read_bytes()
    own, foreign = (whole, other)
    if kept.question(drive(), job(tmp_path), SETTINGS) != _question(one):
        one, (own, foreign) = two, (other, whole)
    broken = bytearray(own)
    broken[len(broken) // 3] ^= 0xFF
    for content in (b"", own[:-40], b"PK\x03\x04 no archive", bytes(broken), foreign):
        one.write_bytes(content)
        before = len(simulated)
        assert run(job(tmp_path)) == first
        assert len(simulated) == before + 1
        assert one.read_bytes() == own  # the same question, the same bytes


def _question(file: Path) -> str:
    from ssdlab.documents import archive

    with archive(file) as found:
        return found.read(kept.QUESTION).decode()


def test_a_place_that_cannot_be_written_is_no_error(
    tmp_path: Path, simulated: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "WORTH_S", 0.0)
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/none")):
        monkeypatch.setenv(kept.PLACE, str(place))
        assert run(job(tmp_path)) == run(job(tmp_path))
    assert len(simulated) == 6 and (tmp_path / "file").read_text() == ""


def test_a_full_disk_is_no_error_and_leaves_no_half_of_a_file(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as broken:
        broken.setattr(Path, "write_bytes", full)
        run(job(tmp_path))
    assert list(folder.iterdir()) == []


def test_what_was_used_longest_ago_makes_room(
    tmp_path: Path, folder: Path, simulated: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = [replace(SETTINGS, seed=seed) for seed in range(4)]
    for place, one in enumerate(seeds[:3]):
        run(job(tmp_path), one)
        (new,) = [file for file in folder.iterdir() if file.stat().st_mtime > 1000]
        os.utime(new, (place, place))
    size = max(file.stat().st_size for file in folder.iterdir())
    (folder / ".left").write_bytes(b"x")
    os.utime(folder / ".left", (0, 0))
    run(job(tmp_path), seeds[0])  # used, so the second is now the oldest
    monkeypatch.setattr(kept, "BYTES_MAX", 4 * size - size // 2)
    monkeypatch.setattr(kept, "SHARE_MAX", 1)
    archive = kept.Archive(folder)
    asked = kept.question(drive(), job(tmp_path), seeds[3])
    assert asked is not None
    archive.keep(asked, drive().run(job(tmp_path), seeds[3]))
    del simulated[:]
    for one in (seeds[0], seeds[2], seeds[3]):
        run(job(tmp_path), one)
    assert not simulated and not (folder / ".left").exists()
    run(job(tmp_path), seeds[1])
    assert len(simulated) == 1


def test_short_runs_are_not_kept(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "WORTH_S", 1000.0)
    run(job(tmp_path))
    assert not folder.exists()


def test_a_stopped_question_goes_on(tmp_path: Path, folder: Path, simulated: list[str]) -> None:
    settings = [replace(SETTINGS, seed=seed) for seed in range(6)]
    variants = [Variant(partial(body, drive(), job(tmp_path), one)) for one in settings]
    with (
        pytest.raises(Interrupted) as stopped,
        working("runs", lambda news: (news.fraction or 0.0) < 0.4, fresh=False) as callback,
    ):
        bench.run(variants, callback)
    done = len(list(folder.iterdir()))
    assert 0 < done < 6
    told = re.search(r"stopped; (\d+) runs? that ended (is|are) kept, ", str(stopped.value))
    assert told is not None
    assert 0 < int(told[1]) <= done, "what ended while it was being stopped is not counted"
    del simulated[:]
    with bench.reusing() as reuse:
        bench.run([Variant(bench.Tolerant(one.body)) for one in variants])
    assert (reuse.runs, reuse.reused, len(simulated)) == (6, done, 6 - done)


def test_a_grown_array_simulates_what_is_new(
    cli: Cli, tmp_path: Path, folder: Path, simulated: list[str]
) -> None:
    def ask(count: str, *more: str) -> tuple[bytes, int, str]:
        del simulated[:]
        place = tmp_path / "answer.json"
        outcome = cli(*ARRAY, "--count", count, "--json", place, *more)
        assert outcome.status == 0
        return place.read_bytes(), len(simulated), outcome.err

    first, runs, said = ask("2")
    assert runs == 2 and "2 of 2" not in said  # one drive, RAID 0 of 2
    again, runs, said = ask("2")
    assert (again, runs) == (first, 0) and "2 of 2" in said
    grown, runs, said = ask("2,3")
    assert runs == 1 and "2 of 3" in said
    fresh, runs, said = ask("2,3", "--fresh")
    assert (fresh, runs) == (grown, 3) and "of 3" not in said
    assert ask("2,3")[:2] == (grown, 0)
    assert "of 3" not in ask("2,3", "--quiet")[2]


def test_explain_takes_what_it_tried_before(
    cli: Cli, tmp_path: Path, folder: Path, simulated: list[str]
) -> None:
    run_folder = drive().run(job(tmp_path), SETTINGS).save(tmp_path / "runs")
    del simulated[:]
    asked = ("explain", run_folder, "--json", "-")
    first = cli(*asked)
    tried = len(simulated)
    second = cli(*asked)
    assert tried > 2 and second.out == first.out and json.loads(second.out)
    # A change that the rig cannot take is tried again: it is refused at once.
    refused = tried - len(list(folder.iterdir()))
    assert len(simulated) == tried + refused
