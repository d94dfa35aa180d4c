//! Latency histograms against time, in few enough segments to stay small on long runs.

use super::attribution::{Attribution, Row, upper_ns};
use super::{DIRECTIONS, Histogram, Summary, Tally, bin_of};

/// Names of the kinds in results, in the order of [`Latencies::kind`]. Submission takes no time, so
/// there is no slat, and clat equals lat; syncs have lat alone, as in fio's document.
pub const KINDS: [&str; 2] = ["clat", "lat"];

/// Segments of a job at most; with more, neighbours are joined.
const SEGMENTS_MAX: usize = 512;

/// The latencies of a run as columns of one length: a row per segment, job, direction that the job
/// used and kind, by time. Row `i` has the bins `offsets[i] .. offsets[i + 1]` of `bins` and `counts`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latencies {
    /// End of what the job did in the segment, seconds of virtual time since the run began.
    pub time_s: Vec<f64>,
    /// How long the job was measured in the segment, seconds.
    pub length_s: Vec<f64>,
    /// Which job: index into the job file.
    pub job: Vec<u32>,
    /// Which direction: index into [`DIRECTIONS`].
    pub ddir: Vec<u8>,
    /// Which latency: index into [`KINDS`].
    pub kind: Vec<u8>,
    /// I/Os completed.
    pub ios: Vec<u64>,
    /// Their latencies together, ns.
    pub sum_ns: Vec<f64>,
    /// Smallest latency, ns; 0 (like the largest) where nothing completed.
    pub min_ns: Vec<u64>,
    /// Largest latency, ns.
    pub max_ns: Vec<u64>,
    /// Where the bins of each row begin, and at last where they end: one more than there are rows.
    pub offsets: Vec<u64>,
    /// fio's bins that hold I/Os, ascending in each row.
    pub bins: Vec<u16>,
    /// I/Os in each of them.
    pub counts: Vec<u64>,
    /// Where the latency classes of each row begin, and at last where they end. Those of a direction are
    /// with the first kind that it has.
    pub class_offsets: Vec<u64>,
    /// Upper latency of each class that holds I/Os, ns; ascending in each row.
    pub class_upper_ns: Vec<u64>,
    /// I/Os in each of them.
    pub class_ios: Vec<u64>,
    /// Their time by part, ns: as many for each class as there are parts.
    pub class_parts_ns: Vec<u64>,
}

/// Latencies of one direction in a segment.
#[derive(Clone, Default)]
struct Counted {
    lat: Summary,
    /// Bins that hold I/Os and their counts, ascending.
    bins: Vec<(u16, u64)>,
    /// Rows of an [`Attribution`], ascending.
    classes: Vec<(u16, Row)>,
}

impl Counted {
    fn of(lat: &Summary, bins: &Histogram, classes: Vec<(u16, Row)>) -> Self {
        let within = bin_of(lat.min())..=bin_of(lat.max());
        let counts = within.map(|bin| (bin as u16, bins.counts()[bin]));
        let bins = counts.filter(|(_, count)| *count > 0).collect();
        Counted { lat: *lat, bins, classes }
    }

    fn merge(&mut self, other: Counted) {
        self.lat.merge(&other.lat);
        join(&mut self.bins, other.bins, |kept, next| *kept += *next);
        join(&mut self.classes, other.classes, |kept, next| kept.merge(next));
    }
}

/// Joins two lists that ascend by index.
fn join<T>(own: &mut Vec<(u16, T)>, others: Vec<(u16, T)>, add: impl Fn(&mut T, &T)) {
    if own.is_empty() {
        *own = others;
        return;
    }
    own.extend(others);
    own.sort_unstable_by_key(|(index, _)| *index);
    own.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            add(&mut kept.1, &next.1);
        }
        same
    });
}

/// What one job did in one segment.
#[derive(Default)]
struct Segment {
    /// The segment ends at the border `index + 1`.
    index: u64,
    end_ns: u64,
    covered_ns: u64,
    directions: [Counted; 4],
}

impl Segment {
    fn merge(&mut self, later: Segment) {
        self.end_ns = later.end_ns;
        self.covered_ns += later.covered_ns;
        for (own, others) in self.directions.iter_mut().zip(later.directions) {
            own.merge(others);
        }
    }
}

/// Collects [`Latencies`] from what is known at the ends of intervals.
///
/// Segments are intervals at first. They end at multiples of their length, the same for all jobs;
/// the length doubles for the whole run when a job has more than 512.
pub struct Segments {
    length_ns: u64,
    jobs: Vec<Vec<Segment>>,
    /// By job: what was added since its last interval ended.
    open: Vec<[Counted; 4]>,
}

impl Segments {
    /// For so many jobs.
    pub fn new(jobs: usize, interval_ns: u64) -> Self {
        let segments = (0..jobs).map(|_| Vec::new()).collect();
        Segments { length_ns: interval_ns, jobs: segments, open: vec![Default::default(); jobs] }
    }

    /// Adds latencies of the interval that is about to end for `job`, and where the time of those I/Os
    /// went ([`Attribution::take`]).
    pub fn add(&mut self, job: usize, ddir: usize, tally: &Tally, classes: Vec<(u16, Row)>) {
        if tally.ios() > 0 {
            self.open[job][ddir].merge(Counted::of(&tally.lat, &tally.bins, classes));
        }
    }

    /// Ends an interval at `now_ns`, in which `job` was measured for `covered_ns` up to `end_ns`.
    pub fn close_interval(&mut self, job: usize, now_ns: u64, end_ns: u64, covered_ns: u64) {
        let directions = std::mem::take(&mut self.open[job]);
        if covered_ns == 0 && directions.iter().all(|counted| counted.lat.count() == 0) {
            return;
        }
        // What completes at a border belongs to the segment that ends there.
        let index = now_ns.saturating_sub(1) / self.length_ns;
        push(&mut self.jobs[job], Segment { index, end_ns, covered_ns, directions });
        if self.jobs[job].len() > SEGMENTS_MAX {
            self.length_ns = self.length_ns.saturating_mul(2);
            self.jobs.iter_mut().for_each(join_pairs);
        }
    }

    /// Leaves out all of a job so far.
    pub fn forget(&mut self, job: usize) {
        self.jobs[job].clear();
        self.open[job] = Default::default();
    }

    /// Where the time of each job went, by direction.
    pub fn attribution(&self) -> Vec<[Attribution; 4]> {
        let mut found = vec![<[Attribution; 4]>::default(); self.jobs.len()];
        for (tables, segments) in found.iter_mut().zip(&self.jobs) {
            for segment in segments {
                for (table, counted) in tables.iter_mut().zip(&segment.directions) {
                    counted.classes.iter().for_each(|(index, row)| table.merge_row(*index, row));
                }
            }
        }
        found
    }

    /// The columns, after the last interval has ended.
    pub fn finish(self) -> Latencies {
        let mut all =
            Latencies { offsets: vec![0], class_offsets: vec![0], ..Latencies::default() };
        let used: Vec<[bool; 4]> = self.jobs.iter().map(|segments| used(segments)).collect();
        let jobs = self.jobs.into_iter().enumerate();
        let mut segments: Vec<_> =
            jobs.flat_map(|(job, own)| own.into_iter().map(move |one| (job, one))).collect();
        segments.sort_by_key(|(job, segment)| (segment.index, *job));
        for (job, segment) in &segments {
            for ddir in (0..DIRECTIONS.len()).filter(|ddir| used[*job][*ddir]) {
                let kinds = if DIRECTIONS[ddir] == "sync" { 1..2 } else { 0..2 };
                let first = kinds.start;
                kinds.for_each(|kind| all.push(*job, segment, ddir, kind, kind == first));
            }
        }
        all
    }
}

/// Appends a segment, or adds it to the last one if it is part of that.
fn push(segments: &mut Vec<Segment>, segment: Segment) {
    match segments.last_mut().filter(|last| last.index == segment.index) {
        Some(last) => last.merge(segment),
        None => segments.push(segment),
    }
}

fn join_pairs(segments: &mut Vec<Segment>) {
    let single = std::mem::take(segments);
    single.into_iter().for_each(|one| push(segments, Segment { index: one.index / 2, ..one }));
}

fn used(segments: &[Segment]) -> [bool; 4] {
    let counts = |ddir: usize| segments.iter().any(|one| one.directions[ddir].lat.count() > 0);
    std::array::from_fn(counts)
}

impl Latencies {
    fn push(&mut self, job: usize, segment: &Segment, ddir: usize, kind: u8, first: bool) {
        let Counted { lat, bins, classes } = &segment.directions[ddir];
        self.time_s.push(segment.end_ns as f64 / 1e9);
        self.length_s.push(segment.covered_ns as f64 / 1e9);
        self.job.push(job as u32);
        self.ddir.push(ddir as u8);
        self.kind.push(kind);
        self.ios.push(lat.count());
        self.sum_ns.push(lat.sum() as f64);
        self.min_ns.push(lat.min());
        self.max_ns.push(lat.max());
        self.bins.extend(bins.iter().map(|(bin, _)| bin));
        self.counts.extend(bins.iter().map(|(_, count)| count));
        self.offsets.push(self.bins.len() as u64);
        for (index, row) in classes.iter().filter(|_| first) {
            self.class_upper_ns.push(upper_ns(*index));
            self.class_ios.push(row.ios);
            self.class_parts_ns.extend(row.parts.0);
        }
        self.class_offsets.push(self.class_ios.len() as u64);
    }
}
