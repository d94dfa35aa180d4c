"""Job files for real targets: made to touch the target and the run's folder, and nothing else.

fio runs whatever a job file says: it opens any path, writes logs and traces anywhere, and starts
programs. Here only options that are known to stay on the target pass. The target replaces every
file name, logs go to the run's folder, and what could reach elsewhere is refused by name.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ssdlab import _core
from ssdlab.errors import InputError, RefusedError, nearest
from ssdlab.fio.replay import OPTIONS as REPLAY_OPTIONS
from ssdlab.fio.replay import Trace, plan_trace
from ssdlab.jobfile import JobText
from ssdlab.units import size_text

ENGINES = frozenset(
    """
    sync psync vsync pvsync pvsync2 libaio posixaio io_uring mmap null
    """.split()
)
"""Engines that do I/O on the files of the job and nowhere else."""

ALIASES = {
    "readwrite": "rw", "blocksize": "bs", "blockalign": "ba", "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned", "iodepth_batch_submit": "iodepth_batch",
    "iodepth_batch_complete": "iodepth_batch_complete_min", "io_limit": "io_size",
    "iomem": "mem", "timeout": "runtime", "start_delay": "startdelay", "mem_align": "iomem_align",
}  # fmt: skip

ALLOWED = frozenset(
    """
    description name wait_for rw bs ba bsrange bssplit bs_unaligned randrepeat allrandrepeat
    randseed norandommap ignore_error rw_sequencer softrandommap ioengine iodepth
    iodepth_batch iodepth_batch_complete_min iodepth_batch_complete_max iodepth_low
    serialize_overlap io_submit_mode size io_size fill_device filesize file_append offset
    offset_increment offset_align number_ios random_generator random_distribution
    percentage_random nrfiles file_service_type openfiles fallocate fadvise_hint fsync
    fdatasync write_barrier sync_file_range direct atomic buffered overwrite loops numjobs
    startdelay runtime time_based verify_only ramp_time clocksource mem iomem_align verify
    do_verify verify_interval verify_offset verify_pattern verify_fatal verify_async
    verify_backlog verify_backlog_batch experimental_verify verify_write_sequence
    verify_header_seed trim_percentage trim_verify_zero trim_backlog trim_backlog_batch
    zonemode zonesize zonecapacity zonerange zoneskip read_beyond_wp max_open_zones
    job_max_open_zones ignore_zone_limits rwmixread rwmixwrite nice prio prioclass priohint
    thinktime thinktime_spin thinktime_blocks thinktime_blocks_type thinktime_iotime rate
    rate_min rate_process rate_cycle rate_ignore_thinktime rate_iops rate_iops_min
    max_latency latency_target latency_window latency_percentile latency_run invalidate sync
    write_hint create_serialize create_fsync create_on_open allow_file_create pre_read
    cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy end_fsync
    fsync_on_close exitall exit_what exitall_on_error stonewall wait_for_previous new_group
    thread write_bw_log write_lat_log write_iops_log write_hist_log bwavgtime iopsavgtime
    log_entries log_avg_msec log_max_value log_window_value log_offset log_prio
    log_issue_time block_error_percentiles group_reporting stats zero_buffers refill_buffers
    scramble_buffers buffer_pattern buffer_compress_percentage buffer_compress_chunk
    dedupe_percentage dedupe_mode dedupe_working_set_percentage dedupe_global
    clat_percentiles lat_percentiles slat_percentiles percentile_list significant_figures
    disk_util gtod_reduce disable_lat disable_clat disable_slat disable_bw_measurement
    gtod_cpu continue_on_error kb_base unit_base flow_id flow flow_sleep steadystate
    steadystate_duration steadystate_ramp_time steadystate_check_interval ss ss_dur ss_ramp
    userspace_reap cmdprio_percentage cmdprio_class cmdprio cmdprio_bssplit nowait hipri
    hipri_percentage fixedbufs registerfiles sqthread_poll sqthread_poll_cpu nonvectored
    uncached force_async lockmem hugepage-size read_iolog replay_no_stall replay_time_scale
    replay_redirect replay_align replay_scale
    """.split()
)
"""Options that pass unchanged (logs and memory with a closer look)."""

REPLACED = frozenset(
    """
    filename directory filename_format unique_filename opendir lockfile unlink
    unlink_each_loop log_hist_msec log_hist_coarseness log_unix_epoch log_alternate_epoch
    log_alternate_epoch_clock_id log_compression log_compression_cpus log_store_compressed
    per_job_logs unified_rw_reporting create_only verify_state_save error_dump verify_dump
    """.split()
)
"""Options that ssdlab decides itself on a real target; what the job says is recorded instead."""

REFUSED = {
    "exec_prerun": "it starts a program",
    "exec_postrun": "it starts a program",
    "write_iolog": "it writes a trace to a file of its own",
    "merge_blktrace_file": "it writes a trace to a file of its own",
    "allow_mounted_write": "a mounted drive is never written",
    "ioscheduler": "it changes a setting of the system",
    "profile": "a profile chooses its own options",
    "cgroup": "it changes settings of the system",
    "cgroup_root": "it changes settings of the system",
    "uid": "it changes the user that writes",
    "gid": "it changes the user that writes",
    "verify_state_load": "it reads state from a file of its own",
}
"""Options that could reach beyond the target, and how."""

FIRST_ALONE = frozenset({"stonewall", "wait_for_previous", "new_group"}) | REPLAY_OPTIONS
"""Options of a section that the further threads of its trace do not repeat."""
WRITE, TRIM = 1, 2
"""Places among the directions."""
_LINE = re.compile(r"^job:(\d+)")
_LOGS = frozenset({"write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log"})


@dataclass
class Section:
    """A job section: its own options in order, and the effective ones with the globals below."""

    name: str
    own: list[tuple[str, str | None]] = field(default_factory=list)
    effective: dict[str, str | None] = field(default_factory=dict)
    trace: Trace | None = None
    """What it replays in place of its pattern."""
    processes: list[_core.PlannedProcess] = field(default_factory=list)
    """What fio will make of it, process by process."""

    def get(self, option: str, default: str = "") -> str:
        """The effective value as text; a bare option reads as ``1``."""
        value = self.effective.get(option, default)
        return "1" if value is None else value

    def flag(self, option: str) -> bool:
        """Whether a boolean option is on."""
        return self.get(option, "0").strip().lower() in ("1", "true", "yes", "on")

    @property
    def trims(self) -> bool:
        """Whether the section deallocates blocks."""
        if self.trace is not None:
            return self.trace.trims
        return any(one["shares"][TRIM] > 0 for one in self.processes)

    @property
    def writes(self) -> bool:
        """Whether the section writes or trims."""
        if self.trace is not None:
            return self.trace.writes
        return any(one["shares"][WRITE] + one["shares"][TRIM] > 0 for one in self.processes)

    @property
    def first(self) -> _core.PlannedProcess:
        """What its first process is going to do."""
        return self.processes[0]


@dataclass(frozen=True)
class Plan:
    """What a job will do to its target, as far as the file tells."""

    writes: bool
    """Whether it writes or trims."""
    known_bytes: int
    """Bytes that will be written at most by jobs bounded by size."""
    trimmed_bytes: int
    """Bytes that they will deallocate."""
    open_seconds: float
    """Time during which jobs bounded by time alone write as fast as they can."""
    span_bytes: int
    """The size of the device, or the one the target file will have."""

    def sentence(self) -> str:
        """How much the job writes, for people."""
        if not self.writes:
            return "writes nothing"
        parts = [f"writes up to {size_text(self.known_bytes)}"] if self.known_bytes else []
        if self.trimmed_bytes:
            parts.append(f"trims up to {size_text(self.trimmed_bytes)}")
        if self.open_seconds:
            parts.append(f"writes as fast as it can for {self.open_seconds:g} s")
        return " and ".join(parts) or "writes an amount that the job file does not tell"


@dataclass(frozen=True)
class RealJob:
    """A job file made safe for one target."""

    text: str
    sections: list[Section]
    plan: Plan
    replaced: list[dict[str, object]]
    """Options of the job that the target or the run's folder replaced."""


def rewrite(
    job: JobText,
    target: Path,
    capacity: int | None,
    environment: Mapping[str, str] | None = None,
    *,
    file_bytes: int = 0,
) -> RealJob:
    """The job with every file name replaced by ``target`` and per-second histograms added.

    ``capacity`` is that of a block device; None is a plain file that has ``file_bytes`` so far.

    Raises:
        RefusedError: an option or engine that could reach beyond the target.
        InputError: an option nobody knows, or a target whose name a job file cannot carry.
    """
    filename = _escaped(target)
    lines: list[str] = ["; the job as ssdlab gave it to fio"]
    sections: list[Section] = []
    globals_: dict[str, str | None] = {}
    replaced: list[dict[str, object]] = []
    places: dict[int, str] = {}
    current: Section | None = None

    def close() -> None:
        if current is None or current.name == "global":
            return
        if "read_iolog" not in current.effective:
            add(current)
            return
        trace = plan_trace(job, current.effective, capacity, f"ssdlab{len(sections):03d}.iolog")
        for one in trace.dealt():
            section = replace(current, trace=one, processes=[])
            if one.lane:
                lines.append(f"[{current.name}]")
                lines.extend(_line(*own) for own in current.own if own[0] not in FIRST_ALONE)
            elif one.lanes > 1 and sections:
                lines.append("new_group=1")
            add(section)
            lines.extend(one.lines())
        if trace.lanes > 1:
            for option in ("ioengine", "iodepth", "group_reporting"):
                if option in current.effective:
                    value = current.get(option)
                    replaced.append({"job": current.name, "option": option, "value": value})

    def add(section: Section) -> None:
        prefix = f"ssdlab{len(sections):03d}"
        lines.extend([f"filename={filename}", f"write_hist_log={prefix}"])
        lines.extend(["log_hist_msec=1000", "log_hist_coarseness=0", "per_job_logs=1"])
        # Threads, not processes: should ssdlab be killed, fio meets its closed pipe and ends
        # with all its jobs, instead of leaving writers behind that nobody watches.
        lines.append("thread=1")
        sections.append(section)

    env = os.environ if environment is None else environment
    for where, raw in _lines(job.name, job.text, job.include(), depth=0):
        if raw.startswith("["):
            close()
            name = raw[1 : raw.rfind("]")] if "]" in raw else raw[1:]
            current = Section(name, effective=dict(globals_))
            lines.append(f"[{name}]")
            places[len(lines)] = where
            continue
        if current is None:
            continue  # fio skips what comes before the first section
        option, value = _checked(where, raw, env)
        if option in REPLACED or option == "write_hist_log":
            replaced.append({"job": current.name, "option": option, "value": value or "1"})
            continue
        if option in _LOGS:
            value = _log_prefix(value, current.name)
        (globals_ if current.name == "global" else current.effective)[option] = value
        if option in REPLAY_OPTIONS:
            continue  # the section's trace says them
        current.own.append((option, value))
        lines.append(_line(option, value))
        places[len(lines)] = where
    close()
    if not sections:
        raise InputError(f"{job.name}: has no job section, such as [write]")
    text = "\n".join(lines) + "\n"
    return RealJob(text, sections, _plan(text, places, sections, capacity, file_bytes), replaced)


def _line(option: str, value: str | None) -> str:
    return option if value is None else f"{option}={value}"


def layout(target: Path, size: int) -> str:
    """A job that fills a file of ``size`` bytes, so that what is read there was written."""
    return (
        f"[layout]\nfilename={_escaped(target)}\nrw=write\nbs=1m\nsize={size}\n"
        "ioengine=psync\nend_fsync=1\n"
    )


def _lines(
    name: str, text: str, include: Callable[[str], str], depth: int
) -> Iterator[tuple[str, str]]:
    """(place, line) without comments and blanks; includes are read in place."""
    if depth > 16:
        raise InputError(f"{name}: includes itself")
    for number, line in enumerate(text.splitlines(), start=1):
        # fio ends a line at ; and # wherever they stand.
        bare = re.split("[;#]", line, maxsplit=1)[0].strip()
        if not bare:
            continue
        match = re.match(r"include\s+(.+)", bare)
        if match:
            path = match[1].strip()
            yield from _lines(path, include(path), include, depth + 1)
        else:
            yield f"{name}:{number}", bare


def _checked(where: str, raw: str, environment: Mapping[str, str]) -> tuple[str, str | None]:
    """The option's canonical name and value, once it is known to stay on the target."""

    def variable(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise InputError(f"{where}: the environment variable {match[1]} is not set")
        return environment[match[1]]

    line = re.sub(r"\$\{(\w+)\}", variable, raw)
    if any(ord(c) < 32 and c != "\t" for c in line):
        raise InputError(f"{where}: there is a control character in the line")
    written, has_value, rest = line.partition("=")
    written, value = written.strip(), rest.strip() if has_value else None
    option = ALIASES.get(written, written)
    if option in REFUSED or option.startswith("cgroup"):
        reason = REFUSED.get(option, REFUSED["cgroup"])
        raise RefusedError(f"{where}: {written}: not on a real target, because {reason}")
    if option not in ALLOWED and option not in REPLACED:
        near = nearest(written, ALLOWED | ALIASES.keys())
        hint = f' (did you mean "{near}"?)' if near else ""
        raise InputError(
            f'{where}: "{written}" is no fio option that is known to stay on the target{hint}'
        )
    if option == "ioengine" and (value or "") not in ENGINES:
        raise RefusedError(
            f"{where}: ioengine={value}: not on a real target; "
            f"engines that stay on it: {', '.join(sorted(ENGINES))}"
        )
    if option == "mem" and value is not None and ":" in value:
        raise RefusedError(f"{where}: {written}: not on a real target, because it names a file")
    return option, value


def _log_prefix(value: str | None, section: str) -> str:
    """A log prefix without a folder: fio runs in the run's folder."""
    name = Path(value).name if value and value != "1" else section
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name) or "job"


def _escaped(target: Path) -> str:
    """The target as a job file can carry it; fio splits names at colons and cuts lines at ; #."""
    text = str(target)
    if text != text.strip() or re.search(r"[;#$\"'`\\\x00-\x1f]", text):
        raise InputError(
            f"{text}: a job file cannot carry this path; use one without quotes, $, ;, # and \\"
        )
    return text.replace(":", "\\:")


def _plan(
    text: str,
    places: Mapping[int, str],
    sections: Sequence[Section],
    capacity: int | None,
    file_bytes: int,
) -> Plan:
    """What the sections will do, as the core reads the text that fio is given.

    ``places`` says for each of its lines where it came from.
    """
    host = {"$ncpus": str(os.cpu_count() or 1), "$mb_memory": str(_memory_mib())}
    try:
        planned = _core.job_plan(
            text,
            job_name="job",
            target_bytes=file_bytes if capacity is None else capacity,
            file=capacity is None,
            environment=host,
        )
    except InputError as error:
        raise InputError(_LINE.sub(lambda m: _nearest(places, int(m[1])), str(error))) from None
    for one in planned["processes"]:
        sections[one["job"]].processes.append(one)
    known, trimmed, span = 0, 0, planned["target_bytes"]
    seconds: dict[int, float] = defaultdict(float)
    for section in sections:
        if section.trace is not None:
            span = max(span, section.trace.end_bytes)
            if section.trace.lane == 0:  # the first thread's plan is that of all
                known += section.trace.write_bytes * len(section.processes)
            continue
        for one in section.processes if section.writes else ():
            if one["bytes"] is not None:
                known += one["bytes"][WRITE]
                trimmed += one["bytes"][TRIM]
            else:
                lasts = one["ramp_s"] + (one["runtime_s"] or 0.0)
                seconds[one["stage"]] = max(seconds[one["stage"]], lasts)
    writes = any(section.writes for section in sections)
    return Plan(writes, known, trimmed, sum(seconds.values()), span)


def _nearest(places: Mapping[int, str], line: int) -> str:
    """Where a line of the text for fio came from; those in between belong to the one before."""
    return next((places[number] for number in range(line, 0, -1) if number in places), "job")


def _memory_mib() -> int:
    """Memory of the host in MiB, as fio counts it for ``$mb_memory``."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
