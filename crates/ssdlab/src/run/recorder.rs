//! Takes every completion and keeps what the results are made of.
//!
//! Per I/O it touches one [`Tally`], one row of attribution and a few counters; everything else is
//! merged at the ends of intervals. Nothing is allocated per I/O unless a job logs every I/O.

use super::log::{self, LogFile, ProcessLog};
use super::steady::SteadyState;
use super::watch::Failure;
use crate::job::{JobFile, JobSpec, PerDirection};
use crate::stats::{Attribution, BINS, PartSums, Parts, Segments, Series, Summary, Tally};
use crate::stats::{Latencies, bin_of, lower_bound_ns};

/// Upper ends of fio's latency table, ns: 2 ns ..= 1000 ns, 2 us .. 1000 us, 2 ms .. 2000 ms.
const LEVEL_ENDS: [u64; 31] = {
    const STEPS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
    let mut ends = [0; 31];
    let mut i = 0;
    while i < 30 {
        ends[i] = STEPS[i % 10] * 1000u64.pow((i / 10) as u32);
        i += 1;
    }
    ends[30] = 2_000_000_000;
    ends
};

/// I/Os by fio's coarse latency levels (`latency_ns`, `latency_us`, `latency_ms`).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LatencyLevels {
    /// I/Os below each end of 2 ns .. 2000 ms that are not below the one before; the last: above.
    pub counts: [u64; 32],
}

/// Where a batch stands in [`Report::batches`].
fn size_of_batch(count: u32) -> usize {
    match count {
        0 => 0,
        1..=4 => 1,
        n => (n - 1).ilog2().min(6) as usize,
    }
}

/// For each fio bin the level of its first value; a bin holds at most one end of a level.
struct LevelOfBin(Box<[u8; BINS]>);

impl LevelOfBin {
    fn new() -> Self {
        let level = |ns: u64| LEVEL_ENDS.partition_point(|end| *end <= ns) as u8;
        LevelOfBin(Box::new(std::array::from_fn(|bin| level(lower_bound_ns(bin)))))
    }
    #[inline]
    fn level(&self, bin: usize, ns: u64) -> usize {
        let level = self.0[bin] as usize;
        level + usize::from(level < LEVEL_ENDS.len() && ns >= LEVEL_ENDS[level])
    }
}

/// What one entry of fio's `jobs` did in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportDirection {
    /// Everything measured.
    pub tally: Tally,
    /// Bandwidth of each whole interval, KiB/s.
    pub bw_kib: Summary,
    /// I/Os per second of each whole interval.
    pub iops: Summary,
}

/// One entry of fio's `jobs`: a process, or a group of them with `group_reporting`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The job (its first, in a group): index into the job file.
    pub job: usize,
    /// fio's group number.
    pub group: u32,
    /// Longest measured time of a process by direction, ns, see [`Process::runtimes`](super::process::Process::runtimes).
    pub runtime_ns: PerDirection<u64>,
    /// Measured time of all processes together, ns.
    pub job_runtime_ns: u64,
    /// By direction, see [`crate::stats::DIRECTIONS`].
    pub directions: [ReportDirection; 4],
    /// I/Os by latency, syncs excepted.
    pub levels: LatencyLevels,
    /// I/Os issued with 1, 2-3, 4-7, 8-15, 16-31, 32-63, 64 and more in flight, itself included.
    pub depths: [u64; 7],
    /// How often so many I/Os at once were handed over, and taken back: 0, 1-4, 5-8, 9-16, 17-32, 33-64 and more;
    /// `None` where they went one by one.
    pub batches: Option<[[u64; 7]; 2]>,
    /// The depth that a job with a `latency_target` ended with.
    pub depth: Option<u32>,
    /// What is known of its steady state, where the job ends in one.
    pub steady: Option<SteadyState>,
    /// The first failure of a process.
    pub failure: Option<Failure>,
}

/// When a job ran, in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JobSpan {
    /// Its first process started, ns.
    pub started_ns: u64,
    /// Measuring began (after the ramp), ns.
    pub measured_from_ns: u64,
    /// Its last process ended, ns.
    pub ended_ns: u64,
    /// Write amplification while it was measured; `None` without flash or writes.
    pub waf: Option<f64>,
}

/// Statistics of the processes of one job that report together.
struct Unit {
    report: usize,
    /// Whose processes they are.
    section: usize,
    /// Under which job rows and attribution go: the first of those that report together.
    job: usize,
    interval: [Tally; 4],
    levels: LatencyLevels,
    depths: [u64; 7],
}

/// What a job did in one direction, and where the time of that went.
#[derive(Default)]
struct Sums {
    tally: Tally,
    parts: PartSums,
}

impl Sums {
    fn merge(&mut self, later: &Sums) {
        self.tally.merge(&later.tally);
        self.parts.merge(&later.parts);
    }
}

/// The part of a job's series that is not yet written.
#[derive(Default)]
struct Pending {
    /// Measured time before this instant is in rows or in `held`; `None` until measuring begins.
    from: Option<u64>,
    sums: [Sums; 4],
    /// The row before, kept back so that a short rest at the end can be added to it.
    held: Option<Box<Held>>,
    /// Directions seen so far.
    seen: [bool; 4],
}

struct Held {
    from: u64,
    to: u64,
    sums: [Sums; 4],
}

/// See the module.
pub(super) struct Recorder {
    units: Vec<Unit>,
    reports: Vec<Report>,
    pending: Vec<Pending>,
    /// The first of the jobs that report together, by job.
    leaders: Vec<usize>,
    /// By job, of the interval.
    attribution: Vec<[Attribution; 4]>,
    series: Series,
    segments: Segments,
    logs: Vec<Option<Box<ProcessLog>>>,
    level_of_bin: LevelOfBin,
    interval_ns: u64,
    interval_from: u64,
}

/// One completed I/O.
#[derive(Clone, Copy)]
pub(super) struct Done<'a> {
    pub process: usize,
    pub unit: u32,
    /// See [`crate::stats::DIRECTIONS`].
    pub ddir: usize,
    pub offset: u64,
    pub bytes: u64,
    pub lat_ns: u64,
    /// Since measuring of the process began, ns.
    pub measured_ns: u64,
    pub parts: &'a Parts,
}

impl Recorder {
    /// A recorder for the processes of `jobs`; returns the unit of each process in order.
    pub fn new(jobs: &JobFile, interval_ns: u64) -> (Self, Vec<u32>) {
        let mut recorder = Recorder {
            units: Vec::new(),
            reports: Vec::new(),
            pending: jobs.jobs.iter().map(|_| Pending::default()).collect(),
            leaders: (0..jobs.jobs.len()).collect(),
            attribution: vec![Default::default(); jobs.jobs.len()],
            series: Series::default(),
            segments: Segments::new(jobs.jobs.len(), interval_ns),
            logs: Vec::new(),
            level_of_bin: LevelOfBin::new(),
            interval_ns,
            interval_from: 0,
        };
        let mut unit_of_process = Vec::new();
        for (job, spec) in jobs.jobs.iter().enumerate() {
            for thread in 0..spec.schedule.numjobs {
                unit_of_process.push(recorder.enrol(job, spec, thread));
            }
        }
        (recorder, unit_of_process)
    }

    /// The unit of the next process: with `group_reporting` it joins the report before it.
    fn enrol(&mut self, job: usize, spec: &JobSpec, thread: u32) -> u32 {
        let number = self.logs.len() + 1;
        self.logs.push(ProcessLog::new(&spec.logging, number).map(Box::new));
        let (group, together) = (spec.schedule.group, spec.schedule.group_reporting);
        if !(together && self.reports.last().is_some_and(|report| report.group == group)) {
            self.reports.push(Report { job, group, ..Report::default() });
        } else if thread > 0 {
            return self.units.len() as u32 - 1;
        }
        let report = self.reports.len() - 1;
        self.leaders[job] = self.reports[report].job;
        self.units.push(Unit {
            report,
            section: job,
            job: self.leaders[job],
            interval: Default::default(),
            levels: LatencyLevels::default(),
            depths: [0; 7],
        });
        self.units.len() as u32 - 1
    }

    /// A process of the unit has issued an I/O, `in_flight` counted with it.
    #[inline]
    pub fn issued(&mut self, unit: u32, in_flight: u32) {
        let level = in_flight.ilog2().min(6) as usize;
        self.units[unit as usize].depths[level] += 1;
    }

    /// A process of the unit has handed over so many I/Os at once, and a depth is noted for some.
    pub fn handed_over(&mut self, unit: u32, at_once: u32, (depth, noted): (u32, u32)) {
        let unit = &mut self.units[unit as usize];
        unit.depths[depth.max(1).ilog2().min(6) as usize] += u64::from(noted);
        if at_once > 0 {
            let batches = self.reports[unit.report].batches.get_or_insert_default();
            batches[0][size_of_batch(at_once)] += 1;
        }
    }

    /// A process of the unit has taken I/Os back at once.
    pub fn reaped(&mut self, unit: u32, count: u32) {
        let report = self.units[unit as usize].report;
        self.reports[report].batches.get_or_insert_default()[1][size_of_batch(count)] += 1;
    }

    /// An I/O has completed that few are like.
    #[cold]
    pub fn completed_late(&mut self, done: &Done) {
        self.completed(done);
    }

    /// An I/O has completed.
    #[inline(always)]
    pub fn completed(&mut self, done: &Done) {
        let bin = bin_of(done.lat_ns);
        let unit = &mut self.units[done.unit as usize];
        self.attribution[unit.job][done.ddir].add(bin, done.parts);
        unit.interval[done.ddir].add(done.bytes, done.lat_ns, bin);
        if done.ddir < 3 {
            unit.levels.counts[self.level_of_bin.level(bin, done.lat_ns)] += 1;
        }
        if let Some(log) = &mut self.logs[done.process] {
            // A copy, so that without a log it need not lie in memory.
            let done = *done;
            log.completed(&done, bin);
        }
    }

    /// The report that a unit's numbers are in.
    pub fn report_of(&self, unit: u32) -> usize {
        self.units[unit as usize].report
    }

    /// I/Os and bytes measured so far in a report, flushes aside.
    pub fn totals(&self, report: usize) -> (u64, u64) {
        let units = self.units.iter().filter(|unit| unit.report == report);
        let open = units.flat_map(|unit| &unit.interval[..3]);
        let all = open.chain(self.reports[report].directions[..3].iter().map(|one| &one.tally));
        all.fold((0, 0), |(ios, bytes), tally| (ios + tally.ios(), bytes + tally.bytes))
    }

    /// The depth of a process of the unit at its end.
    pub fn found_depth(&mut self, unit: u32, depth: u32) {
        let report = self.units[unit as usize].report;
        self.reports[report].depth = Some(depth);
    }

    /// What was measured before `now` of all that is reported with the unit does not count, as in a ramp.
    pub fn restart(&mut self, unit: u32, now: u64) {
        let (report, job) = (self.units[unit as usize].report, self.units[unit as usize].job);
        for unit in self.units.iter_mut().filter(|unit| unit.report == report) {
            unit.interval.iter_mut().for_each(Tally::clear);
            (unit.levels, unit.depths) = (LatencyLevels::default(), [0; 7]);
        }
        let Report { job: first, group, .. } = self.reports[report];
        self.reports[report] = Report { job: first, group, ..Report::default() };
        self.pending[job] = Pending { from: Some(now), ..Pending::default() };
        self.attribution[job] = Default::default();
        self.series.forget(job as u32);
        self.segments.forget(job);
    }

    /// The job's measuring has begun at `now`.
    pub fn measure(&mut self, job: usize, now: u64) {
        self.pending[self.leaders[job]].from.get_or_insert(now);
    }

    /// A process of the unit has ended after `measured_ns` of measuring, so many of them by direction.
    pub fn ended(
        &mut self,
        process: usize,
        unit: u32,
        measured_ns: u64,
        runtimes: PerDirection<u64>,
    ) {
        let report = &mut self.reports[self.units[unit as usize].report];
        report.runtime_ns = std::array::from_fn(|ddir| report.runtime_ns[ddir].max(runtimes[ddir]));
        report.job_runtime_ns += measured_ns;
        if let Some(log) = &mut self.logs[process] {
            log.ended(measured_ns);
        }
    }

    /// A process of the unit has failed.
    pub fn failed(&mut self, unit: u32, failure: Failure) {
        self.reports[self.units[unit as usize].report].failure.get_or_insert(failure);
    }

    /// Ends an interval at `now`. `measured` says for each job from when to when it is measured
    /// (open-ended while it runs); `None` if not yet.
    pub fn close_interval(&mut self, now: u64, measured: &[Option<(u64, u64)>]) {
        self.sample_reports(now, measured);
        for unit in &mut self.units {
            let pending = &mut self.pending[unit.job];
            let report = &mut self.reports[unit.report];
            for ddir in 0..4 {
                let tally = &unit.interval[ddir];
                if tally.ios() == 0 {
                    continue;
                }
                // That of the job's other units goes with the first of them.
                let classes = self.attribution[unit.job][ddir].take();
                let sums = &mut pending.sums[ddir];
                classes.iter().for_each(|(_, row)| sums.parts.merge(&row.parts));
                sums.tally.merge(tally);
                self.segments.add(unit.job, ddir, tally, classes);
                report.directions[ddir].tally.merge(tally);
                unit.interval[ddir].clear();
            }
        }
        let mut together = vec![None; measured.len()];
        for (&leader, own) in self.leaders.iter().zip(measured) {
            let span: &mut Option<(u64, u64)> = &mut together[leader];
            *span = match (*span, *own) {
                (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
                (some, other) => some.or(other),
            };
        }
        for (job, measured) in together.into_iter().enumerate() {
            if let Some((from, to)) = measured {
                let (end, ended) = (to.min(now), to <= now);
                let covered = end.saturating_sub(from.max(self.interval_from));
                self.segments.close_interval(job, now, end, covered);
                self.close_job_interval(job, end, ended);
            }
        }
        self.interval_from = now;
    }

    /// Samples of `bw` and `iops` for fio's minimum, mean and deviation: whole intervals only.
    fn sample_reports(&mut self, now: u64, measured: &[Option<(u64, u64)>]) {
        let length_ns = now - self.interval_from;
        if length_ns < self.interval_ns {
            return;
        }
        for (index, report) in self.reports.iter_mut().enumerate() {
            let units = || self.units.iter().filter(|unit| unit.report == index);
            let whole = units().all(|unit| {
                measured[unit.section]
                    .is_some_and(|(from, to)| from <= self.interval_from && now <= to)
            });
            if !whole {
                continue;
            }
            for (ddir, direction) in report.directions.iter_mut().enumerate() {
                let ios: u64 = units().map(|unit| unit.interval[ddir].ios()).sum();
                let bytes: u64 = units().map(|unit| unit.interval[ddir].bytes).sum();
                if ios > 0 || direction.tally.ios() > 0 {
                    let rate =
                        |n: u64| (u128::from(n) * 1_000_000_000 / u128::from(length_ns)) as u64;
                    direction.iops.add(rate(ios));
                    direction.bw_kib.add(rate(bytes) / 1024);
                }
            }
        }
    }

    /// Turns what a job did up to `to` into a row, unless the time is too short for a rate to mean
    /// anything: a short beginning is added to the row after it, a short end to the row before.
    fn close_job_interval(&mut self, job: usize, to: u64, ended: bool) {
        let pending = &mut self.pending[job];
        let from = pending.from.unwrap_or(to);
        let covered = to.saturating_sub(from);
        let short = covered * 2 < self.interval_ns;
        if short && !ended {
            return;
        }
        if short && pending.held.is_some() {
            if let Some(held) = &mut pending.held {
                held.to = to;
                for (held, rest) in held.sums.iter_mut().zip(&mut pending.sums) {
                    held.merge(&std::mem::take(rest));
                }
            }
        } else if covered > 0 || pending.sums.iter().any(|sums| sums.tally.ios() > 0) {
            let sums = std::mem::take(&mut pending.sums);
            let held = Held { from, to, sums };
            if let Some(before) = pending.held.replace(Box::new(held)) {
                write_rows(&mut self.series, job, &before, &mut pending.seen);
            }
        }
        pending.from = Some(to.max(from));
        if ended && let Some(last) = pending.held.take() {
            write_rows(&mut self.series, job, &last, &mut pending.seen);
        }
    }

    /// What was recorded, after the last interval was closed.
    pub fn finish(self) -> Recorded {
        let Recorder { units, mut reports, series, segments, logs, .. } = self;
        for unit in &units {
            let report = &mut reports[unit.report];
            for (sum, count) in report.levels.counts.iter_mut().zip(unit.levels.counts) {
                *sum += count;
            }
            for (sum, count) in report.depths.iter_mut().zip(unit.depths) {
                *sum += count;
            }
        }
        let files = logs.into_iter().flatten().flat_map(|log| log.into_files());
        let attribution = segments.attribution();
        let (latencies, logs) = (segments.finish(), log::joined(files));
        Recorded { reports, series, latencies, attribution, logs }
    }
}

/// What a [`Recorder`] leaves.
pub(super) struct Recorded {
    pub reports: Vec<Report>,
    pub series: Series,
    pub latencies: Latencies,
    /// By job.
    pub attribution: Vec<[Attribution; 4]>,
    pub logs: Vec<LogFile>,
}

/// Writes a row for every direction that the job has used so far, also where it stood still.
fn write_rows(series: &mut Series, job: usize, held: &Held, seen: &mut [bool; 4]) {
    for (ddir, Sums { tally, parts }) in held.sums.iter().enumerate() {
        seen[ddir] |= tally.ios() > 0;
        if seen[ddir] {
            let of = (job as u32, ddir as u8);
            series.push(held.to, held.to - held.from, of, tally, parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_exact_although_bins_are_not() {
        let table = LevelOfBin::new();
        for (index, end) in LEVEL_ENDS.iter().enumerate() {
            assert_eq!(table.level(bin_of(end - 1), end - 1), index);
            assert_eq!(table.level(bin_of(*end), *end), index + 1);
        }
        assert_eq!(table.level(bin_of(u64::MAX), u64::MAX), 31);
    }
}
