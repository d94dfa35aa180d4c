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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import ssdlab
from ssdlab import units
from ssdlab.answers.run import answer
from ssdlab.cli.console import progress, stdout, table
from ssdlab.report import answer_page

HERE = Path(__file__).parent
DRIVES = ("demo-enterprise", "demo-client")
REPORT = Path("demo-report.html")


def main() -> int:
    """Runs the demonstration; the exit status."""
    stop = threading.Event()
    started = time.monotonic()
    try:
        results = simulated(stop)
        real = measured(stop)
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
    job = HERE / "consistency-file.fio"
    folder = Path(tempfile.mkdtemp(prefix=".demo-", dir=Path.cwd()))
    try:
        scratch = folder / "scratch.bin"
        say(f"running {job.name} on a 256 MiB scratch file on your disk, with fio ...")
        target = ssdlab.Fio(scratch, redact=True)
        with progress("your disk") as show_progress:
            result = ssdlab.run(
                job, on=target, progress=lambda news: show_progress(news) and not stop.is_set()
            )
        return replace(result, name="your disk (file)")
    except ssdlab.ExperimentError as error:
        # Some file systems take no direct I/O: the simulated part stands without the real one.
        say(f"your own disk is left out: {error.message}")
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
    heads = ["drive", "job", "IOPS", "MB/s", "clat p50", "clat p99.9", "WA"]
    rows = [
        [
            result.name,
            one["job"],
            units.number(one["iops"]),
            units.number(None if one["bw_bytes"] is None else one["bw_bytes"] / 1e6),
            units.latency(one["clat_p50_ns"]),
            units.latency(one["clat_p999_ns"]),
            "-" if one["waf"] is None else f"{one['waf']:.2f}",
        ]
        for result in results
        for one in result.summary()
    ]
    stdout().print(table(heads, rows, range(2, 7)))


def say(sentence: str) -> None:
    """A message for people."""
    print(f"demo: {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
