"""fio's options on real targets: which pass, which ssdlab sets itself, which could reach beyond."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ssdlab.errors import InputError, RefusedError, SsdlabError, meant

if TYPE_CHECKING:
    from ssdlab.fio.installed import Installed

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
    write_bw_log write_lat_log write_iops_log bwavgtime iopsavgtime
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


def _because(reasons: Mapping[str, str]) -> dict[str, str]:
    """The reason of each option, of the options by reason."""
    return {option: why for why, options in reasons.items() for option in options.split()}


REPLACED = _because(
    {
        "the target is the only file": "filename directory filename_format unique_filename opendir",
        "it would make files beside the target": "lockfile",
        "ssdlab removes the file that it made, and no other": "unlink unlink_each_loop",
        "the series of the result comes from this log": "write_hist_log log_hist_msec "
        "log_hist_coarseness",
        "each thread has a log of its own": "per_job_logs",
        "fio ends with all its jobs should ssdlab be killed": "thread",
        "logs count from the start of their job": "log_unix_epoch log_alternate_epoch "
        "log_alternate_epoch_clock_id",
        "logs are read as text": "log_compression log_compression_cpus log_store_compressed",
        "reads, writes and trims are told apart": "unified_rw_reporting",
        "the job is run": "create_only",
        "it would write files beside the target": "verify_state_save error_dump verify_dump",
    }
)
"""Options that ssdlab decides itself on a real target, and why; what the job says is recorded."""

ADDED = {
    "filename": "TARGET",
    "write_hist_log": "ssdlabNNN",
    "log_hist_msec": "1000",
    "log_hist_coarseness": "0",
    "per_job_logs": "1",
    "thread": "1",
}
"""What ssdlab sets in every section on a real target; each stands in :data:`REPLACED` with its
reason. TARGET is the target's path, NNN the number of the section."""

ADDED_FOR_LOGS = {
    "write_bw_log": "ssdlabNNN",
    "write_lat_log": "ssdlabNNN",
    "write_iops_log": "ssdlabNNN",
    "log_avg_msec": "1000",
}
"""What ssdlab adds where fio's logs are asked for and the job does not set it; the interval only
where the job writes no such log itself."""

VALUE_LOGS = tuple(name for name in ADDED_FOR_LOGS if name.startswith("write_"))
"""Options that write fio's logs of values."""

REFUSED = _because(
    {
        "it starts a program": "exec_prerun exec_postrun",
        "it writes a trace to a file of its own": "write_iolog merge_blktrace_file",
        "a mounted drive is never written": "allow_mounted_write",
        "it changes a setting of the system": "ioscheduler",
        "a profile chooses its own options": "profile",
        "it changes settings of the system": "cgroup cgroup_root",
        "it changes the user that writes": "uid gid",
        "it reads state from a file of its own": "verify_state_load",
    }
)
"""Options that could reach beyond the target, and how."""


@dataclass(frozen=True)
class JobLine:
    """Where a line of a job stands."""

    file: str
    line: int
    included: bool
    """It is in a file that the job includes. That may be any file that can be read, named by a job
    that somebody else wrote: messages say where a line stands in it, never what it says."""

    def error(self, problem: str, kind: type[SsdlabError] = InputError) -> SsdlabError:
        """``problem`` at this place; of an included file only the place is told."""
        if self.included:
            problem = "this line cannot be used in the job; lines of included files are not shown"
        return kind(f"{self.file}:{self.line}: {problem}")


def without_included(error: SsdlabError, included: Mapping[str, JobLine]) -> SsdlabError:
    """``error``, or its place alone where it quotes what an included file says, of which
    ``included`` are the words: names and values."""
    for word, place in included.items():
        if word and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", error.message):
            return place.error("", type(error))
    return error


def checked(
    place: JobLine, raw: str, environment: Mapping[str, str], known: Installed | None
) -> tuple[str, str | None]:
    """The option's canonical name and value, once it is known to stay on the target; ``known`` is
    the fio that will run the job, where one will."""

    def variable(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise place.error(f"the environment variable {match[1]} is not set")
        return environment[match[1]]

    line = re.sub(r"\$\{(\w+)\}", variable, raw)
    if any(ord(c) < 32 and c != "\t" for c in line):
        raise place.error("there is a control character in the line")
    written, has_value, rest = line.partition("=")
    written, value = written.strip(), rest.strip() if has_value else None
    option = ALIASES.get(written, written)
    if option in REFUSED or option.startswith("cgroup"):
        reason = REFUSED.get(option, REFUSED["cgroup"])
        raise place.error(f"{written}: not on a real target, because {reason}", RefusedError)
    if option not in ALLOWED and option not in REPLACED:
        hint = meant(written, ALLOWED | ALIASES.keys())
        raise place.error(f'"{written}" is no fio option that is known to stay on the target{hint}')
    if option == "ioengine" and (value or "") not in ENGINES:
        raise place.error(
            f"ioengine={value}: not on a real target; "
            f"engines that stay on it: {', '.join(sorted(ENGINES))}",
            RefusedError,
        )
    if option == "mem" and value is not None and ":" in value:
        raise place.error(f"{written}: not on a real target, because it names a file", RefusedError)
    if known is not None and option not in REPLACED and (why := known.problem(option, value)):
        raise place.error(f"{written}: {why}")
    return option, value


def added(prefix: str, section: Mapping[str, str | None], *, logs: bool) -> dict[str, str]:
    """What ssdlab adds to a section beside the target's name."""
    options = {name: value for name, value in ADDED.items() if name != "filename"}
    if logs:
        own = any(name in section for name in VALUE_LOGS)
        options |= {
            name: value
            for name, value in ADDED_FOR_LOGS.items()
            if name not in section and not (own and name == "log_avg_msec")
        }
    return {name: value.replace("ssdlabNNN", prefix) for name, value in options.items()}
