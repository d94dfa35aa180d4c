//! The fio options that ssdlab knows: one table for the parser, its suggestions, the docs and
//! the command line.

use crate::error::nearest;

/// How the value of an option is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bare, or 0 or 1.
    Flag,
    /// 0 or 1, always written.
    Bool,
    /// Whole number, suffixes allowed.
    Int,
    /// Bytes.
    Size,
    /// Bytes or percent.
    Amount,
    /// Time with a unit.
    Time,
    /// Anything else.
    Text,
}

/// What an option does on a simulated drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It means what it means to fio.
    Semantic,
    /// It is about the host or fio's own engine: accepted, reported, without effect.
    Ignored,
    /// fio knows it and a simulated drive cannot do it: refused unless its value switches it off.
    Unsupported,
}

/// One fio option.
#[derive(Clone, Copy, Debug)]
pub struct JobOption {
    /// fio's name.
    pub name: &'static str,
    /// fio's other names for it.
    pub aliases: &'static [&'static str],
    /// How the value is written.
    pub kind: Kind,
    /// What it does here.
    pub class: Class,
    /// A valid value, for docs and tests.
    pub example: &'static str,
    /// One line of help.
    pub summary: &'static str,
}

/// The option called `name`, aliases included.
pub fn find(name: &str) -> Option<&'static JobOption> {
    all().find(|o| o.name == name || o.aliases.contains(&name))
}

/// The known option nearest to `name`, if one is near enough to be meant.
pub fn meant(name: &str) -> Option<&'static str> {
    let names = |o: &JobOption| std::iter::once(o.name).chain(o.aliases.iter().copied());
    // Options with a meaning first: of two names equally near, they are the likelier.
    nearest(name, all().flat_map(|o| names(o).collect::<Vec<_>>()))
}

/// Whether what moves where and when depends on the option called `name`.
pub fn is_planned(name: &str) -> bool {
    find(name).is_some_and(|option| PLANNED.contains(&option.name))
}

/// The options that a plan of a job needs.
const PLANNED: &[&str] = &[
    "kb_base",
    "name",
    "rw",
    "rwmixread",
    "rwmixwrite",
    "bs",
    "bsrange",
    "bssplit",
    "ba",
    "nrfiles",
    "filesize",
    "size",
    "io_size",
    "offset",
    "offset_increment",
    "offset_align",
    "number_ios",
    "loops",
    "iodepth",
    "numjobs",
    "runtime",
    "time_based",
    "ramp_time",
    "startdelay",
    "stonewall",
    "wait_for",
];

/// Every known option: those with a meaning, then the ignored, then the unsupported.
pub fn all() -> impl Iterator<Item = &'static JobOption> {
    SEMANTIC.iter().chain(IGNORED).chain(UNSUPPORTED)
}

const fn on(
    name: &'static str,
    aliases: &'static [&'static str],
    kind: Kind,
    example: &'static str,
    summary: &'static str,
) -> JobOption {
    JobOption { name, aliases, kind, class: Class::Semantic, example, summary }
}

const fn ignored(name: &'static str, kind: Kind, summary: &'static str) -> JobOption {
    JobOption { name, aliases: &[], kind, class: Class::Ignored, example: "1", summary }
}

const fn unsupported(
    name: &'static str,
    aliases: &'static [&'static str],
    summary: &'static str,
) -> JobOption {
    let (kind, class) = (Kind::Text, Class::Unsupported);
    JobOption { name, aliases, kind, class, example: "1", summary }
}

use Kind::{Amount, Bool, Flag, Int, Size, Text, Time};

/// Options with fio's meaning.
pub const SEMANTIC: &[JobOption] = &[
    on("name", &[], Text, "a", "name of the job in results"),
    on("description", &[], Text, "text", "free text"),
    on("kb_base", &[], Text, "1000", "what k means in sizes: 1024 or 1000"),
    // What the I/Os are.
    on(
        "rw",
        &["readwrite"],
        Text,
        "randrw",
        "direction and order; rw=write:64k skips, rw=randread:8 repeats",
    ),
    on("rw_sequencer", &[], Text, "identical", "with rw=randread:N, what the N-1 I/Os between do"),
    on("rwmixread", &[], Int, "70", "percent of reads in a mix"),
    on("rwmixwrite", &[], Int, "30", "percent of writes in a mix"),
    on("bs", &["blocksize"], Size, "4k,64k", "bytes per I/O, by direction"),
    on("bsrange", &["blocksize_range"], Text, "4k-64k", "range of bytes per I/O, by direction"),
    on("bssplit", &[], Text, "4k/60:64k/40", "sizes and their shares in percent, by direction"),
    on("ba", &["blockalign"], Size, "8k", "alignment of random offsets, by direction"),
    on("sync", &[], Text, "dsync", "a write is done when it is durable: none, sync or dsync"),
    on("fsync", &[], Int, "8", "flush after this many writes"),
    on("fdatasync", &[], Int, "8", "flush data after this many writes"),
    on("end_fsync", &[], Bool, "1", "flush when the writes are done"),
    on("fsync_on_close", &[], Bool, "1", "flush when the file is closed"),
    on("verify", &[], Text, "crc32c", "read back what was written, after each pass"),
    on("verify_pattern", &[], Text, "0x55", "verify, by this content"),
    on("do_verify", &[], Bool, "0", "0: only write what could be verified"),
    on("buffer_compress_percentage", &[], Int, "50", "how much the written data would shrink"),
    on("refill_buffers", &[], Flag, "1", "new data for every write"),
    on("zero_buffers", &[], Flag, "1", "write zeros: wholly compressible data"),
    // Where they go.
    on("filename", &[], Text, "a:b", "files or devices, separated by colons: regions of the drive"),
    on("directory", &[], Text, "dir", "each process has files of its own"),
    on("filename_format", &[], Text, "$jobname.$jobnum.$filenum", "pattern of the names of files"),
    on("nrfiles", &["nr_files"], Int, "4", "files per process"),
    on(
        "file_service_type",
        &[],
        Text,
        "roundrobin",
        "which file is next: roundrobin, sequential, random (random:8 after 8 I/Os), zipf:theta, pareto:h, normal:percent",
    ),
    on("openfiles", &[], Int, "4", "files open at a time: all of the job"),
    on("filesize", &[], Text, "1m", "size of each file, or a range of sizes"),
    on("size", &[], Amount, "1m", "bytes per pass, over all files; also the range of offsets"),
    on("fill_device", &["fill_fs"], Bool, "1", "to the end of the files, whatever share size is"),
    on("io_size", &["io_limit"], Amount, "2m", "bytes in all, where not the same as size"),
    on("offset", &["fileoffset"], Amount, "64k", "start of the range"),
    on("offset_increment", &[], Amount, "64k", "added to the offset for each process"),
    on("offset_align", &[], Size, "64k", "a percentage offset is rounded up to this"),
    on("number_ios", &[], Int, "100", "stop after this many I/Os"),
    on("loops", &[], Int, "2", "passes over the size"),
    on("norandommap", &[], Flag, "1", "draw random blocks without remembering those done"),
    on("random_generator", &[], Text, "lfsr", "tausworthe, tausworthe64 or lfsr"),
    on(
        "random_distribution",
        &[],
        Text,
        "zipf:1.2",
        "random, zipf, pareto, normal, zoned, zoned_abs",
    ),
    on("percentage_random", &[], Int, "50", "percent of random I/Os that are random, by direction"),
    on("randrepeat", &[], Bool, "0", "every pass draws the same sequence"),
    on("allrandrepeat", &[], Bool, "1", "as randrepeat, for everything drawn"),
    on("randseed", &[], Int, "7", "changes what is drawn"),
    on("zonemode", &[], Text, "strided", "none or strided"),
    on("zonesize", &[], Size, "64k", "bytes of I/O per zone"),
    on("zonerange", &[], Size, "64k", "bytes of addresses per zone"),
    on("zoneskip", &[], Size, "64k", "bytes between zones"),
    // When.
    on("iodepth", &[], Int, "32", "I/Os in flight per process"),
    on(
        "iodepth_batch",
        &["iodepth_batch_submit"],
        Int,
        "8",
        "I/Os submitted at once; 0: the depth",
    ),
    on(
        "iodepth_batch_complete_min",
        &["iodepth_batch_complete"],
        Int,
        "8",
        "I/Os taken back at once at least, when the queue is full",
    ),
    on("iodepth_batch_complete_max", &[], Int, "16", "the same at most; as many as at least"),
    on("iodepth_low", &[], Int, "4", "a full queue is filled again once so few are in flight"),
    on("serialize_overlap", &[], Bool, "1", "an I/O waits for those in flight that it overlaps"),
    on("numjobs", &[], Int, "4", "processes that run the job"),
    on("runtime", &["timeout"], Time, "10", "stop after this time (seconds)"),
    on("time_based", &[], Flag, "0", "begin again until the runtime is over"),
    on("ramp_time", &[], Time, "1", "time before measurement begins (seconds)"),
    on("startdelay", &[], Time, "1-2", "wait before the start (seconds), or a range"),
    on("stonewall", &["wait_for_previous"], Flag, "1", "wait for all earlier jobs; new group"),
    on("wait_for", &[], Text, "a", "wait for the job of this name"),
    on("exitall", &[], Flag, "1", "when a job ends, others end with it"),
    on(
        "exit_what",
        &[],
        Text,
        "all",
        "which: those of its group, all up to the next stonewall, all",
    ),
    on("exitall_on_error", &[], Flag, "1", "when a job fails, others end with it"),
    on(
        "max_latency",
        &[],
        Time,
        "10ms",
        "fail at an I/O that takes longer (microseconds), by direction",
    ),
    on("latency_target", &[], Time, "500", "end at the depth with such latencies (microseconds)"),
    on("latency_window", &[], Time, "5s", "how long each depth is tried (microseconds)"),
    on(
        "latency_percentile",
        &[],
        Text,
        "99.9",
        "percent of the I/Os that are to keep to the target",
    ),
    on("latency_run", &[], Bool, "1", "do not end there, but go on adjusting the depth"),
    on(
        "steadystate",
        &["ss"],
        Text,
        "iops_slope:0.3%",
        "end in steady state: iops or bw, _slope, limit",
    ),
    on("steadystate_duration", &["ss_dur"], Time, "60", "the window of that (seconds)"),
    on("steadystate_ramp_time", &["ss_ramp"], Time, "10", "time before it begins (seconds)"),
    on("rate", &[], Size, "1m,500k", "bytes per second at most, by direction"),
    on("rate_iops", &[], Int, "100", "I/Os per second at most, by direction"),
    on("rate_process", &[], Text, "poisson", "arrivals under a rate: linear or poisson"),
    on("rate_ignore_thinktime", &[], Bool, "1", "a rate does not catch up on pauses"),
    on(
        "rate_min",
        &["ratemin"],
        Size,
        "1m,500k",
        "fail below this many bytes a second, by direction",
    ),
    on("rate_iops_min", &[], Int, "100", "fail below this many I/Os a second, by direction"),
    on("rate_cycle", &["ratecycle"], Int, "1000", "how long those are looked at (milliseconds)"),
    on("flow", &[], Int, "8", "I/Os in proportion to this, beside jobs of the same flow_id"),
    on("flow_id", &[], Int, "1", "number of such jobs together"),
    on("flow_sleep", &[], Int, "1000", "pause of a job that is ahead of its share (microseconds)"),
    on("thinktime", &[], Time, "10ms", "pause between I/Os (microseconds)"),
    on("thinktime_blocks", &[], Int, "4", "I/Os between two pauses"),
    on("thinktime_blocks_type", &[], Text, "issue", "which of them count: complete or issue"),
    on("thinktime_iotime", &[], Time, "9s", "time of I/O between two pauses (seconds)"),
    // Replaying a trace.
    on("read_iolog", &[], Text, "trace.log", "replay this trace, in any format that ssdlab reads"),
    on("replay_no_stall", &[], Bool, "1", "replay as fast as the depth allows"),
    on("replay_time_scale", &[], Int, "200", "percent of the recorded speed"),
    on("replay_redirect", &[], Text, "/dev/x", "all devices of the trace are the one target"),
    on("replay_align", &[], Size, "4k", "round replayed offsets down to this"),
    on("replay_scale", &[], Int, "2", "divide replayed offsets by this"),
    // What is reported.
    on("group_reporting", &[], Flag, "1", "report the processes of a group as one"),
    on("new_group", &[], Flag, "1", "begin a new group"),
    on("write_bw_log", &[], Text, "log", "write a bandwidth log"),
    on("write_lat_log", &[], Text, "log", "write latency logs"),
    on("write_iops_log", &[], Text, "log", "write an IOPS log"),
    on("write_hist_log", &[], Text, "log", "write a histogram log of completion latency"),
    on("log_avg_msec", &[], Int, "1000", "window of the logs, ms"),
    on("log_hist_msec", &[], Int, "1000", "window of the histogram log, ms"),
    on("log_hist_coarseness", &[], Int, "2", "merge 2^n bins of the histogram log"),
    on("log_max_value", &[], Bool, "1", "log the maximum of a window, not the mean"),
    on("log_offset", &[], Bool, "1", "log the offset of each I/O"),
    on("per_job_logs", &[], Bool, "0", "a log file for each process"),
    on("percentile_list", &[], Text, "50:99:99.9", "percentiles to report"),
    on("lat_percentiles", &[], Bool, "1", "percentiles of total latency"),
];

/// Options without a meaning on a simulated drive.
pub const IGNORED: &[JobOption] = &[
    JobOption { aliases: &["iomem"], ..ignored("mem", Text, "kind of buffer memory") },
    JobOption {
        aliases: &["disable_bw"],
        ..ignored("disable_bw_measurement", Bool, "less measuring")
    },
    ignored("ioengine", Text, "how fio talks to the kernel"),
    ignored("direct", Bool, "a simulated drive has no page cache before it"),
    ignored("buffered", Bool, "a simulated drive has no page cache before it"),
    ignored("atomic", Bool, "atomic direct I/O"),
    ignored("invalidate", Bool, "drop the page cache first"),
    ignored("pre_read", Bool, "read files into the page cache first"),
    ignored("thread", Flag, "threads in place of processes"),
    ignored("read_iolog_chunked", Bool, "read the trace piece by piece"),
    ignored("hugepage-size", Size, "size of huge pages"),
    ignored("lockmem", Size, "memory to pin"),
    ignored("nice", Int, "priority of the process"),
    ignored("prio", Int, "I/O priority"),
    ignored("prioclass", Int, "I/O priority class"),
    ignored("cmdprio", Text, "I/O priority of a share of commands"),
    ignored("cmdprio_class", Text, "I/O priority of a share of commands"),
    ignored("cmdprio_percentage", Text, "I/O priority of a share of commands"),
    ignored("cmdprio_bssplit", Text, "I/O priority by size"),
    ignored("cpumask", Int, "processors to run on"),
    ignored("cpus_allowed", Text, "processors to run on"),
    ignored("cpus_allowed_policy", Text, "how processors are shared"),
    ignored("numa_cpu_nodes", Text, "NUMA nodes to run on"),
    ignored("numa_mem_policy", Text, "NUMA memory policy"),
    ignored("clocksource", Text, "clock that fio reads"),
    ignored("gtod_reduce", Bool, "fewer clock readings"),
    ignored("gtod_cpu", Int, "processor that reads the clock"),
    ignored("disable_lat", Bool, "less measuring"),
    ignored("disable_clat", Bool, "less measuring"),
    ignored("disable_slat", Bool, "less measuring"),
    ignored("clat_percentiles", Bool, "percentiles of completion latency are always reported"),
    ignored("slat_percentiles", Bool, "submission takes no time here"),
    ignored("significant_figures", Int, "digits of text output"),
    ignored("stats", Bool, "whether the job is in the results"),
    ignored("disk_util", Bool, "statistics of the kernel's block layer"),
    ignored("block_error_percentiles", Bool, "trim and write errors"),
    ignored("bwavgtime", Int, "window of bandwidth samples"),
    ignored("iopsavgtime", Int, "window of IOPS samples"),
    ignored("log_entries", Int, "log entries kept in memory"),
    ignored("log_compression", Size, "compress logs in memory"),
    ignored("log_compression_cpus", Text, "processors for that"),
    ignored("log_store_compressed", Bool, "leave logs compressed"),
    ignored("log_unix_epoch", Bool, "wall-clock times in logs"),
    ignored("log_alternate_epoch", Bool, "wall-clock times in logs"),
    ignored("log_alternate_epoch_clock_id", Int, "wall-clock times in logs"),
    ignored("log_prio", Bool, "I/O priority in logs"),
    ignored("unit_base", Text, "bits or bytes in text output"),
    ignored("fallocate", Text, "how files are laid out"),
    ignored("fadvise_hint", Text, "hints to the page cache"),
    ignored("write_hint", Text, "write lifetime hint"),
    ignored("write_barrier", Int, "every n-th write is a barrier"),
    ignored("sync_file_range", Text, "write-back of the page cache"),
    ignored("overwrite", Bool, "lay files out before"),
    ignored("create_serialize", Bool, "lay files out one by one"),
    ignored("create_fsync", Bool, "flush after laying out"),
    ignored("create_on_open", Bool, "lay files out late"),
    ignored("allow_file_create", Bool, "may make files"),
    ignored("allow_mounted_write", Bool, "may write to mounted devices"),
    ignored("lockfile", Text, "locks on files"),
    ignored("unique_filename", Bool, "names for network clients"),
    ignored("unlink", Bool, "remove files afterwards"),
    ignored("unlink_each_loop", Bool, "remove files after each pass"),
    ignored("ioscheduler", Text, "scheduler of the kernel's block layer"),
    ignored("scramble_buffers", Bool, "data that does not repeat"),
    ignored("buffer_pattern", Text, "content of written data"),
    ignored("buffer_compress_chunk", Size, "size of compressible pieces"),
    ignored("verify_interval", Size, "contents are not compared"),
    ignored("verify_offset", Size, "contents are not compared"),
    ignored("verify_fatal", Bool, "contents are not compared"),
    ignored("verify_dump", Bool, "contents are not compared"),
    ignored("verify_async", Int, "threads that compare contents"),
    ignored("verify_async_cpus", Text, "threads that compare contents"),
    ignored("verify_state_save", Bool, "what was written, for a later run"),
    ignored("verifysort", Bool, "order of what is read back, without effect in fio 3.33"),
    ignored("verifysort_nr", Int, "order of what is read back, without effect in fio 3.33"),
    ignored("dedupe_percentage", Int, "share of identical buffers"),
    ignored("dedupe_mode", Text, "kind of identical buffers"),
    ignored("dedupe_working_set_percentage", Int, "kind of identical buffers"),
    ignored("dedupe_global", Bool, "kind of identical buffers"),
    ignored("exec_prerun", Text, "command to run before"),
    ignored("exec_postrun", Text, "command to run after"),
    ignored("io_submit_mode", Text, "submission takes no time here"),
    ignored("thinktime_spin", Int, "part of thinktime spent on the processor"),
    ignored("unified_rw_reporting", Text, "reads, writes and trims are told apart"),
    ignored("continue_on_error", Text, "a simulated drive has no errors"),
    ignored("ignore_error", Text, "a simulated drive has no errors"),
    ignored("error_dump", Bool, "a simulated drive has no errors"),
    ignored("uid", Int, "user to run as"),
    ignored("gid", Int, "group to run as"),
    ignored("cgroup", Text, "control group"),
    ignored("cgroup_weight", Int, "control group"),
    ignored("cgroup_nodelete", Bool, "control group"),
    ignored("userspace_reap", Flag, "libaio: reap in user space"),
    ignored("hipri", Flag, "polled completions"),
    ignored("hipri_percentage", Int, "polled completions"),
    ignored("fixedbufs", Flag, "io_uring: registered buffers"),
    ignored("registerfiles", Flag, "io_uring: registered files"),
    ignored("sqthread_poll", Flag, "io_uring: polling thread"),
    ignored("sqthread_poll_cpu", Int, "io_uring: polling thread"),
    ignored("cmd_type", Text, "io_uring_cmd: kind of command"),
    ignored("nonvectored", Flag, "io_uring: kind of request"),
    ignored("uncached", Bool, "io_uring: drop the page cache"),
    ignored("nowait", Bool, "io_uring: do not block"),
    ignored("force_async", Int, "io_uring: worker threads"),
];

/// Options of fio that a simulated drive cannot honour.
pub const UNSUPPORTED: &[JobOption] = &[
    unsupported("verify_only", &[], "reading what an earlier run wrote"),
    unsupported("verify_backlog", &[], "reading back while writing"),
    unsupported("verify_backlog_batch", &[], "reading back while writing"),
    unsupported("verify_state_load", &[], "reading what an earlier run wrote"),
    unsupported("experimental_verify", &[], "reading back without remembering"),
    unsupported("trim_percentage", &[], "trimming what was verified"),
    unsupported("trim_verify_zero", &[], "trimming what was verified"),
    unsupported("trim_backlog", &[], "trimming what was verified"),
    unsupported("trim_backlog_batch", &[], "trimming what was verified"),
    unsupported("file_append", &[], "appending to files"),
    unsupported("opendir", &[], "files of a directory"),
    unsupported("create_only", &[], "only laying files out"),
    unsupported("bs_unaligned", &["blocksize_unaligned"], "I/Os are whole 512-byte sectors"),
    unsupported("bs_is_seq_rand", &[], "sizes by order"),
    unsupported("random_sequence_stride", &[], "strides in random I/O"),
    unsupported("write_iolog", &[], "recording the I/Os"),
    unsupported("replay_skip", &[], "leaving out kinds of replayed I/Os"),
    unsupported("merge_blktrace_file", &[], "replaying recorded I/Os"),
    unsupported("merge_blktrace_scalars", &[], "replaying recorded I/Os"),
    unsupported("merge_blktrace_iters", &[], "replaying recorded I/Os"),
    unsupported("profile", &[], "fio's own profiles"),
    unsupported("zonecapacity", &[], "zoned namespaces"),
    unsupported("read_beyond_wp", &[], "zoned namespaces"),
    unsupported("max_open_zones", &[], "zoned namespaces"),
    unsupported("job_max_open_zones", &[], "zoned namespaces"),
    unsupported("ignore_zone_limits", &[], "zoned namespaces"),
    unsupported("zone_reset_threshold", &[], "zoned namespaces"),
    unsupported("zone_reset_frequency", &[], "zoned namespaces"),
    unsupported("fdp", &[], "flexible data placement"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_stands_in_the_table_once() {
        let mut seen = BTreeSet::new();
        for option in all() {
            for name in std::iter::once(&option.name).chain(option.aliases) {
                assert!(seen.insert(*name), "{name} twice");
            }
        }
    }

    #[test]
    fn a_misspelt_option_is_understood() {
        assert_eq!(meant("iodpeth"), Some("iodepth"));
        assert_eq!(meant("block_size"), Some("blocksize"));
        assert_eq!(meant("qqqqqq"), None);
    }
}
