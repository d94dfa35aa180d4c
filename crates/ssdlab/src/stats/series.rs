//! One row per interval, job and direction, as columns.

use super::{PARTS, PartSums, Tally};

/// Names of the directions in results, in the order of [`ddir`](Series::ddir).
pub const DIRECTIONS: [&str; 4] = ["read", "write", "trim", "sync"];

/// The job series: columns of one length, in the order in which intervals ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// End of the interval, seconds of virtual time since the run began.
    pub time_s: Vec<f64>,
    /// Which job: index into the job file.
    pub job: Vec<u32>,
    /// Which direction: index into [`DIRECTIONS`].
    pub ddir: Vec<u8>,
    /// I/Os completed.
    pub ios: Vec<u64>,
    /// I/Os per second of the measured part of the interval.
    pub iops: Vec<f64>,
    /// Bytes moved.
    pub bytes: Vec<u64>,
    /// Bytes per second of the measured part of the interval.
    pub bw_bytes: Vec<f64>,
    /// Smallest latency, ns; 0 (like all latencies) where nothing completed.
    pub lat_min_ns: Vec<u64>,
    /// Mean latency, ns.
    pub lat_mean_ns: Vec<f64>,
    /// Largest latency, ns.
    pub lat_max_ns: Vec<u64>,
    /// Median latency, ns.
    pub lat_p50_ns: Vec<u64>,
    /// 99th percentile of latency, ns.
    pub lat_p99_ns: Vec<u64>,
    /// Time of the interval's I/Os by part, ns.
    pub parts_ns: [Vec<u64>; PARTS],
}

impl Series {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.time_s.len()
    }
    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Leaves out the rows of a job.
    pub fn forget(&mut self, job: u32) {
        let kept: Vec<bool> = self.job.iter().map(|other| *other != job).collect();
        fn keep<T>(column: &mut Vec<T>, kept: &[bool]) {
            let mut kept = kept.iter();
            column.retain(|_| kept.next() == Some(&true));
        }
        let Series { time_s, job, ddir, ios, iops, bytes, bw_bytes, .. } = self;
        let rates = [time_s, iops, bw_bytes, &mut self.lat_mean_ns];
        rates.into_iter().for_each(|column| keep(column, &kept));
        let whole = [&mut self.lat_min_ns, &mut self.lat_max_ns, &mut self.lat_p50_ns];
        let whole = whole.into_iter().chain([ios, bytes, &mut self.lat_p99_ns]);
        whole.for_each(|column| keep(column, &kept));
        self.parts_ns.iter_mut().for_each(|column| keep(column, &kept));
        keep(job, &kept);
        keep(ddir, &kept);
    }

    /// Adds what `job` did in direction `ddir` in `covered_ns` up to `end_ns`, and where the time of that went.
    pub fn push(
        &mut self,
        end_ns: u64,
        covered_ns: u64,
        (job, ddir): (u32, u8),
        tally: &Tally,
        parts: &PartSums,
    ) {
        // What took no time has no rate.
        let per_second = if covered_ns == 0 { 0.0 } else { 1e9 / covered_ns as f64 };
        let percentiles = tally.bins.percentiles(&[50.0, 99.0]);
        let percentile = |i: usize| percentiles.get(i).copied().unwrap_or(0);
        self.time_s.push(end_ns as f64 / 1e9);
        self.job.push(job);
        self.ddir.push(ddir);
        self.ios.push(tally.ios());
        self.iops.push(tally.ios() as f64 * per_second);
        self.bytes.push(tally.bytes);
        self.bw_bytes.push(tally.bytes as f64 * per_second);
        self.lat_min_ns.push(tally.lat.min());
        self.lat_mean_ns.push(tally.lat.mean());
        self.lat_max_ns.push(tally.lat.max());
        self.lat_p50_ns.push(percentile(0));
        self.lat_p99_ns.push(percentile(1));
        for (column, part) in self.parts_ns.iter_mut().zip(parts.0) {
            column.push(part);
        }
    }
}
