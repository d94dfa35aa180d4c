"""Runs the real fio: starts it, follows its progress, stops it cleanly, says what went wrong."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ssdlab.errors import BrokenOffError, ExperimentError, Interrupted, MissingProgramError
from ssdlab.fio.complaints import failure
from ssdlab.fio.options import JobLine
from ssdlab.json_access import object_in
from ssdlab.progress import Progress, ProgressCallback
from ssdlab.results import DIRECTIONS, of_jobs

_OUTPUT = "fio.json"
_ETA = re.compile(r"\[(\d+(?:\.\d+)?)%\].*?\[eta ([^\]]+)\]")
_STATUS = re.compile(r"^Jobs: \d+ \(f=\d+\)")


def find_fio() -> str:
    """The path of fio; one sentence where there is none."""
    found = shutil.which("fio")
    if found is None:
        raise MissingProgramError(
            "fio is not installed, and a real target needs it: sudo apt install fio"
        )
    return found


def version() -> str:
    """What ``fio --version`` says, such as ``fio-3.33``."""
    try:
        answer = subprocess.run([find_fio(), "--version"], capture_output=True, text=True)
    except OSError as error:
        raise MissingProgramError(f"fio cannot be started ({error.strerror})") from error
    return answer.stdout.strip()


def run_fio(
    job_text: str,
    folder: Path,
    *,
    read_only: bool,
    progress: ProgressCallback | None,
    paths: Mapping[str, str] = MappingProxyType({}),
    included: Mapping[str, JobLine] | None = None,
) -> dict[str, Any]:
    """Runs ``job_text`` with ``folder`` as working directory; the JSON+ document.

    ``paths``: what people call the paths that fio was given, in all that it says. ``included`` is
    what included files say; no message quotes it.

    Raises:
        InputError: fio refuses the job; the message says what fio said.
        BrokenOffError: a job failed after it had begun; with the document.
        ExperimentError: fio failed otherwise; the same holds.
        Interrupted: Ctrl-C, or ``progress`` returned False; fio has ended by then. With the
            document where a job had begun.
    """
    (folder / "job.fio").write_text(job_text, "utf-8")
    command = [
        find_fio(),
        "--output-format=json+",
        f"--output={_OUTPUT}",
        "--eta=always",
        f"--aux-path={folder}",
        *(["--readonly"] if read_only else []),
        "job.fio",
    ]
    stopped, chatter = "", ""
    with (folder / "stderr").open("w+b") as errors:
        # A session of its own: Ctrl-C reaches fio once, from here, so that it ends in order.
        with subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
        ) as process:
            try:
                chatter = _follow(process, progress)
            except BaseException as error:
                _stop(process)
                if not isinstance(error, KeyboardInterrupt | Interrupted):
                    raise
                stopped = str(error) or Interrupted.sentence()
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace")
    names = re.findall(r"^\[(.*)\]$", job_text, re.MULTILINE)
    text = said + "\n" + chatter
    whole = ""
    with contextlib.suppress(OSError):
        whole = (folder / _OUTPUT).read_text("utf-8")
    for path, name in paths.items():
        # As a piece of JSON, and as fio's own words.
        whole = whole.replace(json.dumps(path)[1:-1], json.dumps(name)[1:-1])
        text = text.replace(path, name)
    if stopped:
        document, _ = object_in(whole)
        if not _has_begun(document):
            raise Interrupted(f"{stopped}; fio has ended, nothing was kept")
        raise Interrupted(stopped, document)
    return _document(folder, process.returncode, whole, text, names, included or {})


def _follow(process: subprocess.Popen[bytes], progress: ProgressCallback | None) -> str:
    """Reads fio's status lines until it ends; what else it printed."""
    assert process.stdout is not None
    chatter: list[str] = []
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            # Wakes up without news too: a stop must not wait for fio to say something.
            ready = selector.select(timeout=0.5)
            if Interrupted.asked:
                raise Interrupted(Interrupted.sentence())
            if ready:
                data = os.read(process.stdout.fileno(), 65536)
                if not data:
                    break
                *lines, pending = re.split(rb"[\r\n]", pending + data)
                for line in lines:
                    _note(line.decode("utf-8", "replace"), chatter, progress)
            elif progress is not None and not progress(Progress()):
                raise Interrupted("stopped")
    process.wait()
    return "\n".join(chatter)


def _note(line: str, chatter: list[str], progress: ProgressCallback | None) -> None:
    if not _STATUS.match(line):
        if line.strip():
            chatter.append(line.strip())
        return
    if progress is None:
        return
    match = _ETA.search(line)
    rates = re.findall(r"\[((?:r|w|t|rt)=[^\]]*)\]", line)
    text = " ".join(rates)
    if match:
        news = Progress(float(match[1]) / 100, _eta_seconds(match[2]), text)
    else:
        news = Progress(text=text)
    if not progress(news):
        raise Interrupted("stopped")


def _eta_seconds(text: str) -> float | None:
    """Seconds of fio's ``01d:02h:03m:04s``."""
    units = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    parts = re.findall(r"(\d+)([dhms])", text)
    return float(sum(int(n) * units[u] for n, u in parts)) if parts else None


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends fio and its jobs: asks, then insists."""
    for sign, patience in ((signal.SIGINT, 5.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 10.0)):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            break
        try:
            process.wait(patience)
            break
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            continue  # a second Ctrl-C insists
    if process.stdout is not None:
        process.stdout.close()


def _document(
    folder: Path,
    status: int,
    text: str,
    said: str,
    names: Sequence[str],
    included: Mapping[str, JobLine],
) -> dict[str, Any]:
    """The JSON+ document, or the error that fio reported."""
    document, warnings = object_in(text)
    said += "\n" + warnings
    failed = next((job for job in document.get("jobs", []) if job.get("error")), None)
    if status == 0 and document.get("jobs") and failed is None:
        return document | {"jobs": of_jobs(document["jobs"])}
    if status == 0 and failed is None:
        raise ExperimentError(
            f"fio ended well but left no whole result in {folder.parent}; "
            "if the disk is full there, free some space or set TMPDIR to another place"
        )
    error = failure(status, failed, said.splitlines(), names, included)
    if isinstance(error, ExperimentError) and _has_begun(document):
        raise BrokenOffError(error.message, document)
    raise error


def _has_begun(document: Mapping[str, Any]) -> bool:
    """Whether a job has done an I/O."""
    done = (job.get(ddir, {}) for job in document.get("jobs", []) for ddir in DIRECTIONS)
    return any(stats.get("total_ios") for stats in done)
