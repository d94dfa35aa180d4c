"""The demonstration behind ``./lab demo``: one job on two simulated drives and on your own disk.

Writes ``demo-report.html`` and prints a short table.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import ssdlab
from ssdlab import units
from ssdlab.answer import table
from ssdlab.answers.run import answer
from ssdlab.cli.answer import print_table
from ssdlab.cli.output import progress, stdout
from ssdlab.fits import observations
from ssdlab.report import answer_page

HERE = Path(__file__).parent
DRIVES = ("demo-enterprise", "demo-client")
REPORT = Path("demo-report.html")
LEAST_US = 20.0
"""No flash answers a lone random read sooner."""


def main() -> int:
    """Runs the demonstration; the exit status."""
    stop = threading.Event()
    started = time.monotonic()
    try:
        results = simulated(stop)
        real = measured(stop)
        told = twin(stop) if real is not None else ""
    except KeyboardInterrupt:
        stop.set()
        say("stopped by Ctrl-C; nothing was kept")
        return 130
    except ssdlab.SsdlabError as error:
        stop.set()
        say(error.message)
        return error.exit_status
    if real is not None:
        results.append(real)
    answer_page.render(answer(results), REPORT, title="One job on three drives")
    show(results)
    console = stdout()
    if told:
        console.print(told, soft_wrap=True)
    console.print(
        f"report: {REPORT.absolute()} (after {units.duration(time.monotonic() - started)})"
    )
    return 0


def simulated(stop: threading.Event) -> list[ssdlab.Result]:
    """The job on both simulated drives at once; the core lets Python's other threads run."""
    job = HERE / "consistency.fio"
    say(f"running {job.name} on {' and '.join(DRIVES)}, simulated ...")

    done = dict.fromkeys(DRIVES, 0.0)

    def one(drive: str) -> ssdlab.Result:
        def listen(news: ssdlab.Progress) -> bool:
            done[drive] = news.fraction or 0.0
            show_progress(ssdlab.Progress(min(done.values())))  # the slower one counts
            return not stop.is_set()

        result = ssdlab.run(job, on=drive, progress=listen)
        done[drive] = 1.0
        return result

    with (
        progress("simulated drives") as show_progress,
        ThreadPoolExecutor(len(DRIVES)) as threads,
    ):
        futures = [threads.submit(one, drive) for drive in DRIVES]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stop.set()  # before the pool waits for its threads
            raise


def measured(stop: threading.Event) -> ssdlab.Result | None:
    """The same workload on a scratch file on this disk; None where that is not possible."""
    if shutil.which("fio") is None and not install_fio():
        say(
            "fio is not installed, so your own disk is left out; "
            "to include it: sudo apt install fio"
        )
        return None
    found = on_file(HERE / "consistency-file.fio", stop)
    return None if found is None else replace(found, name="your disk (file)")


def on_file(job: Path, stop: threading.Event) -> ssdlab.Result | None:
    """A job on a scratch file on this disk; None where its file system takes no direct I/O."""
    folder = Path(tempfile.mkdtemp(prefix=".demo-", dir=Path.cwd()))
    try:
        scratch = folder / "scratch.bin"
        say(f"running {job.name} on a 256 MiB scratch file on your disk, with fio ...")
        target = ssdlab.Fio(scratch, redact=True)
        with progress("your disk") as show_progress:
            return ssdlab.run(
                job, on=target, progress=lambda news: show_progress(news) and not stop.is_set()
            )
    except ssdlab.ExperimentError as error:
        # Some file systems take no direct I/O: the simulated part stands without the real one.
        say(f"your own disk is left out: {error.message}")
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def twin(stop: threading.Event) -> str:
    """A twin of this disk, by closed forms, and what it says of a job that it was not fitted to;
    empty where that is not possible."""
    run = on_file(HERE / "twin-file.fio", stop)
    if run is None:
        return ""
    *known, unseen = observations.observations(run, "filled")
    with tempfile.TemporaryDirectory() as place:
        table, ask, rig = (Path(place) / name for name in ("table.csv", "ask.csv", "twin.toml"))
        table.write_text(observations.text(observations.frame(known)))
        ask.write_text(observations.text(observations.frame([unseen])))
        size = shutil.disk_usage(Path.cwd()).total
        try:
            ssdlab.fit(table, capacity=max(size, 10**9), quick=True, out=rig)
            said = ssdlab.predict(rig, table=ask).frame().row(0, named=True)
        except ssdlab.InputError as error:
            return f"no twin of your disk: {error.message}"
    seen, low, high = unseen.measured["iops"], said["iops_low"], said["iops_high"]
    text = (
        f"a twin of your disk, fitted to {len(known)} other workloads, expects "
        f"{units.iops(said['iops'])} of {unseen.load} ({units.iops(low)} to {units.iops(high)}); "
        f"measured: {units.iops(seen)}"
    )
    lone = min((one.measured["lat_mean_us"] for one in known if one.load.depth == 1), default=0.0)
    if not low <= seen <= high or lone < LEAST_US or virtual():
        text += (
            ". Your disk is virtual or behind a cache, or it is no SSD: what answers is not flash "
            "alone, and a twin, which is a model of flash, says little of it"
        )
    return text + "."


def virtual() -> bool:
    """Whether some disk of this machine is a virtual one."""
    names = [one.name for one in Path("/sys/block").glob("*")]
    return any(name.startswith(("vd", "xvd")) for name in names)


def install_fio() -> bool:
    """Installs fio where that needs no question: as root, with apt."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    say("fio is missing; installing it with apt ...")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "fio"]):
        subprocess.run(command, env=environment, check=False, capture_output=True)
    return shutil.which("fio") is not None


def show(results: list[ssdlab.Result]) -> None:
    """A short table: what each drive did."""
    jobs = [{"drive": one.name, **job} for one in results for job in one.summary()]

    def scaled(name: str, by: float) -> Callable[[dict[str, Any]], float | None]:
        return lambda job: None if job[name] is None else job[name] / by

    cells: dict[str, Callable[[dict[str, Any]], Any]] = {
        "drive": itemgetter("drive"),
        "job": itemgetter("job"),
        "IOPS": itemgetter("iops"),
        "MB/s": scaled("bw_bytes", 1e6),
        "clat p50 [us]": scaled("clat_p50_ns", 1e3),
        "clat p99.9 [us]": scaled("clat_p999_ns", 1e3),
        "WA": itemgetter("waf"),
    }
    print_table(stdout(), table("", jobs, cells))


def say(sentence: str) -> None:
    """A message for people."""
    print(f"demo: {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
