"""Administrators' programs (nvme, hdparm): run to their end whatever the terminal says, and what a
drive says in their answers that it can do about erasing itself."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ssdlab.errors import ExperimentError, MissingProgramError
from ssdlab.json_access import object_in
from ssdlab.system import CLASS, System, system_program

_LOOK_EVERY_S = 0.2
_PACKAGES = {"nvme": "nvme-cli"}
"""Of programs that are not called as their package is."""
FORMAT_PATIENCE_MS = 24 * 3600 * 1000
"""How long a drive may take over a format, ms."""


@dataclass(frozen=True)
class Said:
    """How a program ended."""

    status: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """Its reason in one line."""
        lines = [line.strip() for line in (self.err + "\n" + self.out).splitlines()]
        return next((line for line in lines if line), f"exit status {self.status}")


def run(command: Sequence[str], waiting: Callable[[float], None] | None = None) -> Said:
    """Runs ``command`` to its end; ``waiting`` is told the seconds passed meanwhile. An erase
    cannot be called back once the drive has it, so a Ctrl-C does not reach the program, but is
    raised here after its end. Raises MissingProgramError where it is not installed."""
    program = system_program(command[0])
    if program is None:
        package = _PACKAGES.get(command[0], command[0])
        raise MissingProgramError(f"{package} is not installed: sudo apt install {package}")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        stopped = _wait(process, waiting)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    if stopped:
        raise KeyboardInterrupt
    return Said(process.returncode, *texts)


def _wait(process: subprocess.Popen[bytes], waiting: Callable[[float], None] | None) -> bool:
    """Whether somebody wanted to stop meanwhile."""
    stopped = False
    started = time.monotonic()
    while True:
        try:
            process.wait(_LOOK_EVERY_S)
            return stopped
        except subprocess.TimeoutExpired:
            pass
        except KeyboardInterrupt:
            stopped = True
            continue
        try:
            if waiting is not None:
                waiting(time.monotonic() - started)
        except KeyboardInterrupt:
            stopped = True


# --- answers: only texts come in and only facts go out


@dataclass(frozen=True)
class NvmeErase:
    """From Identify Controller (NVM Express base specification, figure "Identify Controller")."""

    format: bool
    """OACS bit 1: knows Format NVM."""
    format_erases_all: bool
    """FNA bit 1: an erase by Format reaches every namespace, not one alone."""
    format_crypto: bool
    """FNA bit 2: Format may erase by changing the key."""
    format_shared: bool
    """FNA bit 0: a format goes to every namespace, not to one alone."""
    volatile_cache: bool
    """VWC bit 0: has a volatile write cache."""
    sanitize_block: bool
    """SANICAP bit 1."""
    sanitize_crypto: bool
    """SANICAP bit 0."""


@dataclass(frozen=True)
class LbaFormat:
    """From Identify Namespace: a format that the namespace may have."""

    index: int
    data_bytes: int
    metadata_bytes: int
    in_use: bool
    relative_performance: int
    """0 the best, 3 the worst."""

    @property
    def name(self) -> str:
        """``4096``, or ``512+8`` with bytes of metadata."""
        return f"{self.data_bytes}" + (f"+{self.metadata_bytes}" if self.metadata_bytes else "")


@dataclass(frozen=True)
class Sanitize:
    """From the log page Sanitize Status."""

    state: str
    """``idle``, ``running``, ``done`` or ``failed``."""
    fraction: float


@dataclass(frozen=True)
class AtaSecurity:
    """From the Security section of ``hdparm -I`` (ATA feature set Security)."""

    supported: bool
    enabled: bool
    """A password is set."""
    locked: bool
    frozen: bool
    """No such command is taken until the drive loses power."""
    enhanced: bool
    minutes: int | None
    """What a secure erase takes, as the drive expects; None where it does not say."""
    enhanced_minutes: int | None


def nvme_erase(text: str) -> NvmeErase | None:
    """Reads ``nvme id-ctrl -o json``; None where it is no such answer."""
    answer = object_in(text)[0]
    try:
        oacs, fna = int(answer["oacs"]), int(answer["fna"])
        sanicap, vwc = int(answer.get("sanicap", 0)), int(answer.get("vwc", 0))
    except (KeyError, TypeError, ValueError):
        return None
    return NvmeErase(
        format=bool(oacs & 2),
        format_erases_all=bool(fna & 2),
        format_crypto=bool(fna & 4),
        format_shared=bool(fna & 1),
        volatile_cache=bool(vwc & 1),
        sanitize_block=bool(sanicap & 2),
        sanitize_crypto=bool(sanicap & 1),
    )


def nvme_formats(text: str) -> list[LbaFormat]:
    """Reads ``nvme id-ns -o json``; empty where it is no such answer."""
    answer = object_in(text)[0]
    try:
        flbas = int(answer["flbas"])
        # Bits 6:5 go above bits 3:0 where there are more than 16 formats.
        current = (flbas & 0xF) | (flbas >> 1 & 0x30)
        return [
            LbaFormat(i, 1 << int(one["ds"]), int(one["ms"]), i == current, int(one.get("rp", 0)))
            for i, one in enumerate(answer["lbafs"])
            if int(one["ds"]) >= 9
        ]
    except (KeyError, TypeError, ValueError):
        return []


def nvme_feature(text: str) -> int | None:
    """Reads the value that ``nvme get-feature`` prints, of any version; None where it is none."""
    match = re.search(r"value\s*:\s*(?:0x)?([0-9a-fA-F]+)", text)
    return int(match[1], 16) if match else None


def ata_write_cache(text: str) -> bool | None:
    """Reads ``hdparm -W``: whether the write cache is on; None where it does not say."""
    match = re.search(r"write-caching\s*=\s*([01])\b", text)
    return None if match is None else match[1] == "1"


def nvme_namespaces(text: str) -> int | None:
    """How many namespaces ``nvme list-ns --all -o json`` names; None where it is no such answer."""
    listed = object_in(text)[0].get("nsid_list")
    return len(listed) if isinstance(listed, list) else None


def nvme_sanitize(text: str) -> Sanitize | None:
    """Reads ``nvme sanitize-log -o json`` of any version, whose status is a number or a text that
    begins with it, below a name that differs; None where it is no such answer."""
    answer = object_in(text)[0]
    body = answer if "sprog" in answer else next(iter(answer.values()), None)
    if not isinstance(body, dict) or "sprog" not in body:
        return None
    status = body.get("sstat")
    texts = status.values() if isinstance(status, dict) else [status]
    number: int | None = None
    for one in texts:
        match = re.match(r"\((\d+)\)", one) if isinstance(one, str) else None
        if match:
            number = int(match[1]) & 7
        elif not isinstance(status, dict) and isinstance(one, int):
            number = one & 7
    if number is None:
        return None
    # 4: done, though not everything that was not in use could be deallocated.
    state = {0: "idle", 1: "done", 2: "running", 3: "failed", 4: "done"}.get(number, "failed")
    return Sanitize(state, min(1.0, int(body["sprog"]) / 65535))


def ata_security(text: str) -> AtaSecurity | None:
    """Reads the Security section of ``hdparm -I``; None where there is none."""
    match = re.search(r"^Security:\s*$(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    if match is None:
        return None
    section = match[1]

    def said(word: str) -> bool:
        match = re.search(rf"^[ \t]*(not)?[ \t]*{word}\b(?!:)", section, re.MULTILINE)
        return match is not None and match[1] is None

    def minutes(prefix: str) -> int | None:
        match = re.search(rf"(\d+)min for {prefix}SECURITY ERASE UNIT", section)
        return int(match[1]) if match else None

    return AtaSecurity(
        supported=said("supported"),
        enabled=said("enabled"),
        locked=said("locked"),
        frozen=said("frozen"),
        enhanced=re.search(r"supported:\s*enhanced erase", section) is not None,
        minutes=minutes(""),
        enhanced_minutes=minutes("ENHANCED "),
    )


# --- NVMe drives


def controller(name: str, system: System | None = None) -> str:
    """The control device of an NVMe namespace, such as ``/dev/nvme0`` for ``nvme0n1``."""
    own = system or System()
    place = own.resolve(f"{CLASS}/{name}/device")
    # A namespace with several paths hangs below a subsystem, which lists its controllers.
    for one in (Path(place).name, *own.listed(place)):
        if re.fullmatch(r"nvme\d+", one):
            return f"/dev/{one}"
    return f"/dev/{_drive(name)}"


def abilities(control: str) -> NvmeErase:
    """What a controller says that it can do; ExperimentError where nvme-cli is missing or fails."""
    said = run(["nvme", "id-ctrl", control, "-o", "json"])
    can = nvme_erase(said.out) if said.status == 0 else None
    if can is None:
        raise ExperimentError(f"nvme id-ctrl fails: {said.complaint}")
    return can


def format_command(node: str, *options: str) -> list[str]:
    """The command that formats a namespace, which waits as long as the drive takes."""
    # --force: nvme-cli takes our own claim for somebody else's use, and would wait to be sure.
    return ["nvme", "format", node, *options, f"--timeout={FORMAT_PATIENCE_MS}", "--force"]


def other_namespaces(name: str, control: str) -> str | None:
    """What else there is on the controller; None where there is nothing."""
    said = run(["nvme", "list-ns", control, "--all", "-o", "json"])
    count = nvme_namespaces(said.out) if said.status == 0 else None
    if count is None:
        namespace = rf"{_drive(name)}n\d+"
        count = sum(re.fullmatch(namespace, one) is not None for one in System().listed(CLASS))
    return f"the drive has {count} namespaces" if count > 1 else None


def _drive(name: str) -> str:
    match = re.match(r"nvme\d+", name)
    return match[0] if match else name
