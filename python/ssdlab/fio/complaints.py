"""What fio says when it refuses a job or a run fails, as one sentence of fio's own."""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from ssdlab.errors import ExperimentError, InputError, SsdlabError
from ssdlab.fio.options import JobLine, without_included

WRONG_JOB = frozenset({errno.EINVAL, errno.EOPNOTSUPP})
"""Errors of an I/O or a file by which the system says that it was asked for the wrong thing."""
_DROPPED = re.compile(r"^job (.*) dropped$")
_CODED = re.compile(r"^pid=\d+, err=(\d+)/.*\bfunc=([^,]+), error=(.*)$")
"""Where in fio's source an error was noticed."""
_IO = re.compile(r"^io_u error on file (.*): (.*): (\w+) offset=(\d+), buflen=(\d+)$")
"""An I/O that failed; of many in flight each has its line."""
_ECHO = re.compile(r"^(Did you mean .*\?|file:[\w.]+:\d+, func=.*)$")


def failure(
    status: int,
    failed: Mapping[str, Any] | None,
    said: Sequence[str],
    names: Sequence[str],
    included: Mapping[str, JobLine],
) -> SsdlabError:
    """The error for a run of fio that ended with ``status``.

    Args:
        status: fio's exit status; negative where a signal ended it.
        failed: the first job of the document with an error.
        said: the lines that fio printed.
        names: the sections of the job.
        included: what included files say, which is not quoted.
    """
    lines = _lines(said)
    codes = [match for line in lines if (match := _CODED.match(line))]
    number = int(failed["error"]) if failed else int(codes[0][1]) if codes else 0
    name, sentence = _sentence(lines, names)
    only = names[0] if len(names) == 1 else ""
    name = str(failed["jobname"]) if failed else name or only
    sentence = sentence.removeprefix(f"{name}: ") if name else sentence
    if not sentence:
        sentence = _without_words(status, number)
    job = f'job "{name}"' if name and name not in included else "the job"
    if status < 0:
        return ExperimentError(f"fio failed: {sentence}")
    if number in WRONG_JOB or (number == 0 and status == 1):
        error = InputError(f"fio refuses {job}: {sentence}")
        # Once a job runs, fio speaks of I/Os and no longer of options.
        return error if failed is not None else without_included(error, included)
    return ExperimentError(f"fio failed in {job}: {sentence}")


def _lines(said: Sequence[str]) -> list[str]:
    """fio's lines, each once, without its name in front."""
    bare = (line.strip().rstrip(".").removeprefix("fio: ").removeprefix("error: ") for line in said)
    return [line for line in dict.fromkeys(bare) if line]


def _sentence(lines: Sequence[str], names: Sequence[str]) -> tuple[str, str]:
    """The job that fio speaks of, where it tells, and what it says."""
    dropped = next((match[1] for line in lines if (match := _DROPPED.match(line))), "")
    prefix = next((n for n in names if any(line.startswith(f"{n}: ") for line in lines)), "")
    values = [match[1] for line in lines if (match := re.match(r"(?:valid values)?: +(\S+)", line))]
    told = [
        line
        for line in lines
        if not (_CODED.match(line) or _ECHO.match(line) or _DROPPED.match(line))
        and not re.match(r"(valid values)?: ", line)
    ]
    failed = next((match for line in told if (match := _IO.match(line))), None)
    if failed is not None:
        file, why, what, offset, length = failed.groups()
        where = f"{what} of {int(length):,} bytes at offset {int(offset):,}"
        return dropped or prefix, f"{file}: {why} ({where})"
    parsing = next((line for line in told if line.startswith("failed parsing ")), None)
    if parsing is None:
        return dropped or prefix, "; ".join(told[:2])
    details = [line for line in told if line != parsing][:1]
    if values:
        details.append(f"valid values: {', '.join(values)}")
    detail = f" ({'; '.join(details)})" if details else ""
    return dropped or prefix, parsing + detail


def _without_words(status: int, number: int) -> str:
    """What is known where fio says nothing."""
    if status < 0:
        return f"it was ended by {signal.Signals(-status).name}"
    return os.strerror(number) if number else f"it ended with status {status} and said nothing"
