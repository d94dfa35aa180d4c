//! Latency histograms against time: their sums are the totals, their borders are shared.

use crate::{common, support};

use common::lab_ssd;
use ssdlab::device::Device;
use ssdlab::rig::Rig;
use ssdlab::run::{RunOptions, RunResult, run};
use ssdlab::stats::{DIRECTIONS, Histogram, KINDS, Latencies, PARTS};
use std::collections::BTreeMap;
use support::{jobs, null, play};

/// I/Os, sum and largest, ns, and counts by bin.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    ios: u64,
    sum_ns: u64,
    max_ns: u64,
    bins: BTreeMap<usize, u64>,
}

impl Sums {
    fn add(
        &mut self,
        ios: u64,
        sum_ns: u64,
        max_ns: u64,
        bins: impl Iterator<Item = (usize, u64)>,
    ) {
        self.ios += ios;
        self.sum_ns += sum_ns;
        self.max_ns = self.max_ns.max(max_ns);
        bins.for_each(|(bin, count)| *self.bins.entry(bin).or_default() += count);
    }
}

fn bins_of(rows: &Latencies, row: usize) -> impl Iterator<Item = (usize, u64)> {
    let place = rows.offsets[row] as usize..rows.offsets[row + 1] as usize;
    place.map(|i| (usize::from(rows.bins[i]), rows.counts[i]))
}

fn filled(bins: &Histogram) -> impl Iterator<Item = (usize, u64)> {
    bins.counts().iter().copied().enumerate().filter(|(_, count)| *count > 0)
}

/// Checks every row by itself, and answers the sums by fio's group, direction and kind: processes of
/// a group, or of a job without one, report what its jobs' rows hold.
fn sums(result: &RunResult) -> BTreeMap<(u32, usize, &'static str), Sums> {
    let rows = &result.latencies;
    let mut sums = BTreeMap::<_, Sums>::new();
    let group = |job: u32| result.reports.iter().rfind(|r| r.job <= job as usize).unwrap().group;
    for row in 0..rows.time_s.len() {
        let bins: Vec<_> = bins_of(rows, row).collect();
        assert!(bins.windows(2).all(|pair| pair[0].0 < pair[1].0), "bins ascend in row {row}");
        assert_eq!(bins.iter().map(|(_, count)| count).sum::<u64>(), rows.ios[row], "row {row}");
        let key =
            (group(rows.job[row]), usize::from(rows.ddir[row]), KINDS[rows.kind[row] as usize]);
        let sum = rows.sum_ns[row] as u64;
        sums.entry(key).or_default().add(rows.ios[row], sum, rows.max_ns[row], bins.into_iter());
    }
    sums
}

fn totals(result: &RunResult) -> BTreeMap<(u32, usize, &'static str), Sums> {
    let mut totals = BTreeMap::<_, Sums>::new();
    for report in &result.reports {
        for (ddir, direction) in report.directions.iter().enumerate() {
            let (lat, tally) = (&direction.tally.lat, &direction.tally);
            let kinds: &[&'static str] =
                if DIRECTIONS[ddir] == "sync" { &["lat"] } else { &["clat", "lat"] };
            for kind in kinds.iter().filter(|_| lat.count() > 0) {
                let total = totals.entry((report.group, ddir, *kind)).or_default();
                total.add(lat.count(), lat.sum() as u64, lat.max(), filled(&tally.bins));
            }
        }
    }
    totals
}

fn play_at(mut device: Box<dyn Device>, text: &str, interval_ms: u64) -> RunResult {
    let options = RunOptions { interval_ns: interval_ms * 1_000_000, ..RunOptions::default() };
    run(device.as_mut(), &jobs(text), &options, &mut ()).unwrap()
}

fn ssd() -> Box<dyn Device> {
    let buffer = "{ size = \"1MiB\", power_loss_protected = false }";
    Box::new(lab_ssd(&[("capacity", "64MiB"), ("write_buffer", buffer)], 1))
}

const MIXED: [&str; 6] = [
    "[a]\nrw=randrw\nbs=4k\niodepth=4\nsize=32m\nfsync=8\nnumjobs=3\n",
    "[global]\ngroup_reporting\nbs=4k\nsize=16m\n[a]\nrw=randread\nnumjobs=2\n\
     [b]\nrw=randwrite\nfdatasync=4\n[c]\nstonewall\nrw=randtrim\nnew_group\n",
    "[a]\nrw=randwrite\nbs=4k\nramp_time=150ms\ntime_based\nruntime=700ms\niodepth=16\n",
    "[a]\nrw=randrw\nbs=4k\nsize=32m\nrate_iops=3000,900\nrate_process=poisson\nio_size=8m\n\
     [b]\nstartdelay=250ms\nrw=write\nbs=64k\nsize=8m\nend_fsync=1\n",
    "[a]\nrw=write\nbs=4k\nsize=1m\nioengine=psync\nfsync=1\n[b]\nstonewall\nrw=read\nbs=4k\nsize=1m\nioengine=sync\n",
    "[a]\nrw=randwrite\nbs=4k\nsize=8m\nthinktime=3ms\nthinktime_blocks=20\n",
];

#[test]
fn segments_add_up_to_the_totals_of_the_document() {
    let mut compared = 0;
    for job in MIXED {
        for interval_ms in [1, 100, 1000] {
            let result = play_at(ssd(), job, interval_ms);
            let (found, want) = (sums(&result), totals(&result));
            assert_eq!(found, want, "{job} by {interval_ms} ms");
            compared += want.len();
        }
    }
    assert!(compared >= 3 * 20, "only {compared} sums were there to compare");
}

/// Whoever reads counters splits copies that dies make in a row, and the next event comes sooner for it.
#[test]
fn how_often_counters_are_read_changes_no_time() {
    let ssd = include_str!("../../../python/ssdlab/profiles/lab-reference.toml")
        .split_once("[device]\n")
        .unwrap()
        .1
        .replace("16GiB", "64MiB");
    let below = |table: &str| ssd.replace("[device.", &format!("[device.{table}."));
    let kinds = [
        format!("[device]\n{ssd}"),
        format!(
            "[device]\nkind = \"link\"\nbandwidth = \"600MB/s\"\nqueue_slots = 32\n[device.below]\n{}",
            below("below")
        ),
        format!(
            "[device]\nkind = \"array\"\nlevel = \"raid6\"\ncount = 5\nchunk = \"64KiB\"\n[device.member]\n{}",
            below("member")
        ),
    ];
    // RAID 6 reads before it writes; so often that counters are read in the very instant of an event, too.
    for (kind, load) in kinds.into_iter().zip(["randrw", "randrw", "randwrite"]) {
        let job = format!("[a]\nrw={load}\nbs=4k\niodepth=8\nio_size=288m\nnorandommap\n");
        let build = || Rig::parse(&kind, "my.toml").unwrap().build(1, false).unwrap();
        let seldom = play_at(build(), &job, 1_000_000);
        for interval_ms in [100, 7, 1] {
            let often = play_at(build(), &job, interval_ms);
            assert_eq!(totals(&seldom), totals(&often), "{kind}");
            assert_eq!(seldom.simulated_ns, often.simulated_ns, "{kind} by {interval_ms} ms");
        }
    }
}

#[test]
fn classes_of_a_segment_hold_its_ios_and_their_time() {
    for job in MIXED {
        for interval_ms in [1, 100] {
            let result = play_at(ssd(), job, interval_ms);
            let (rows, mut by_part) = (&result.latencies, BTreeMap::<_, [u64; PARTS]>::new());
            for row in 0..rows.time_s.len() {
                let own = rows.class_offsets[row] as usize..rows.class_offsets[row + 1] as usize;
                let first = if rows.ddir[row] == 3 { "lat" } else { "clat" };
                if KINDS[rows.kind[row] as usize] != first {
                    assert!(own.is_empty(), "classes are told once");
                    continue;
                }
                let total = by_part.entry(usize::from(rows.ddir[row])).or_default();
                let (mut ios, mut sum_ns) = (0, 0);
                for class in own.clone() {
                    let parts = &rows.class_parts_ns[class * PARTS..(class + 1) * PARTS];
                    total.iter_mut().zip(parts).for_each(|(sum, ns)| *sum += ns);
                    let class_ns: u64 = parts.iter().sum();
                    assert!(class_ns < rows.class_upper_ns[class] * rows.class_ios[class]);
                    ios += rows.class_ios[class];
                    sum_ns += class_ns;
                }
                assert!(rows.class_upper_ns[own].is_sorted_by(|one, next| one < next));
                assert_eq!((ios, sum_ns), (rows.ios[row], rows.sum_ns[row] as u64), "row {row}");
            }
            for (ddir, total) in by_part {
                let rows = result.series.ddir.iter().map(|&row| usize::from(row) == ddir);
                let told = result.series.parts_ns.each_ref().map(|column| {
                    column
                        .iter()
                        .zip(rows.clone())
                        .filter(|(_, own)| *own)
                        .map(|(ns, _)| ns)
                        .sum::<u64>()
                });
                assert_eq!(total, told, "{job} by {interval_ms} ms: {}", DIRECTIONS[ddir]);
            }
        }
    }
}

#[test]
fn a_job_of_many_intervals_has_at_most_512_segments_with_borders_at_multiples_of_their_length() {
    // 3.7 s by 1 ms: 8 ms a segment. The second job begins and ends within segments.
    let job = "[global]\nrw=randread\nbs=4k\ntime_based\n[a]\nruntime=3701ms\n\
               [b]\nstartdelay=501ms\nruntime=100ms\nrate_iops=2000\n";
    let result = play_at(null("100us", 4), job, 1);
    let rows = &result.latencies;
    let of = |job: u32| {
        let found = (0..rows.time_s.len()).filter(move |row| rows.job[*row] == job);
        found.filter(|row| KINDS[rows.kind[*row] as usize] == "lat").collect::<Vec<_>>()
    };
    let ms = |seconds: f64| seconds * 1e3;
    let (long, short) = (of(0), of(1));
    assert_eq!(long.len(), 463);
    for (index, row) in long.iter().enumerate() {
        let whole = index + 1 < long.len();
        let (end, length) = if whole { (8 * (index + 1), 8) } else { (3701, 3701 - 8 * 462) };
        assert!((ms(rows.time_s[*row]) - end as f64).abs() < 1e-6, "{index}");
        assert!((ms(rows.length_s[*row]) - length as f64).abs() < 1e-6, "{index}");
        // One at a time: ten a millisecond, the last one at the very end of the segment.
        assert_eq!(rows.ios[*row], 10 * length as u64, "{index}");
    }
    let times: Vec<_> = short.iter().map(|row| ms(rows.time_s[*row]).round() as u64).collect();
    let borders: Vec<u64> = (504..=601).step_by(8).chain([601]).collect();
    assert_eq!(times, borders);
    let covered: f64 = short.iter().map(|row| ms(rows.length_s[*row])).sum();
    assert!((covered - 100.0).abs() < 1e-6, "{covered}");
}

#[test]
fn the_ramp_is_left_out_and_directions_without_ios_have_no_rows() {
    let job = "[a]\nrw=randread\nbs=4k\nramp_time=2500ms\ntime_based\nruntime=2s\n";
    let result = play(null("100us", 1), job);
    let rows = &result.latencies;
    assert_eq!(rows.time_s, [3.0, 3.0, 4.0, 4.0, 4.5, 4.5]);
    assert_eq!(rows.length_s, [0.5, 0.5, 1.0, 1.0, 0.5, 0.5]);
    assert_eq!(rows.ios, [5_000, 5_000, 10_000, 10_000, 5_000, 5_000]);
    assert_eq!(rows.ddir, [0; 6]);
    assert_eq!((rows.min_ns[0], rows.max_ns[0]), (100_000, 100_000));
}

#[test]
fn a_standstill_is_a_row_without_ios() {
    let job = "[a]\nrw=randread\nbs=4k\nsize=1m\nnumber_ios=6\nthinktime=2s\nthinktime_blocks=2\n";
    let rows = play(null("100us", 1), job).latencies;
    let lat: Vec<u64> = rows.ios.iter().step_by(2).copied().collect();
    // The pause after the last two belongs to the job, too: it ends at 6.0006 s.
    assert_eq!(lat, [2, 0, 2, 0, 2, 0, 0]);
    assert_eq!((rows.min_ns[2], rows.max_ns[2], rows.sum_ns[2]), (0, 0, 0.0));
}
