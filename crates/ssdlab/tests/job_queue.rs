//! How I/Os are handed to a device and taken back, beside the real fio, and on devices whose behaviour is known in
//! closed form.

use crate::support::{document_text, fio_jobs, null, play};
use serde_json::Value;
use ssdlab::run::RunResult;
use ssdlab::stats::Part;

const READ: usize = 0;

/// Jobs of 2,000 reads at depth 16.
const BATCHES: &[&str] = &[
    "iodepth_batch_complete_min=0",
    "iodepth_batch=8",
    "iodepth_batch=0",
    "iodepth_batch=8 iodepth_batch_complete_min=8",
    "iodepth_batch_complete=99",
    "iodepth_batch_submit=4 iodepth_batch_complete_min=16",
    "iodepth_low=4",
    "iodepth_low=4 iodepth_batch=16",
    "iodepth_low=99 iodepth_batch=99",
    "iodepth_low=8 iodepth_batch=4 iodepth_batch_complete_min=4",
    "iodepth_low=3 iodepth_batch=16 iodepth_batch_complete_min=6 iodepth_batch_complete_max=6",
    "iodepth_batch_complete_min=2 iodepth_batch_complete_max=1 iodepth_batch=3",
];

fn batch_job(options: &str) -> String {
    let options = options.replace(' ', "\n");
    format!("[a]\nioengine=libaio\nrw=randread\nsize=64m\nnumber_ios=2000\niodepth=16\n{options}\n")
}

#[test]
fn queues_are_filled_and_drained_as_by_fio() {
    let files: Vec<String> = BATCHES.iter().map(|options| batch_job(options)).collect();
    let Some(theirs) = fio_jobs(files.iter().map(String::as_str)) else { return };
    for (text, theirs) in files.iter().zip(theirs) {
        let ours: Value = serde_json::from_str(&document_text(null("100us", 3), text)).unwrap();
        let ours = &ours["jobs"][0];
        let what = ["iodepth_level", "iodepth_submit", "iodepth_complete"];
        for what in what {
            for (name, share) in ours[what].as_object().unwrap() {
                let (ours, theirs) =
                    (share.as_f64().unwrap(), theirs[0][what][name].as_f64().unwrap());
                // fio takes back all that is left at its end at once.
                assert!(
                    (ours - theirs).abs() < 1.0,
                    "{what} {name}: {ours}, fio's {theirs}: {text}"
                );
            }
        }
        assert_eq!(ours["read"]["total_ios"], theirs[0]["read"]["total_ios"]);
    }
}

/// Smallest and largest latency of reads, us, and the time of the run.
fn latencies(options: &str, servers: u32) -> (u64, u64, u64) {
    let text = format!("[a]\nrw=read\nnumber_ios=12\nsize=1m\n{}\n", options.replace(' ', "\n"));
    let result = play(null("100us", servers), &text);
    let lat = &result.reports[0].directions[READ].tally.lat;
    (lat.min() / 1000, lat.max() / 1000, result.simulated_ns / 1000)
}

#[test]
fn an_io_ends_when_its_batch_is_taken_back() {
    let batches = "iodepth=4 iodepth_batch_complete_min=4";
    assert_eq!(latencies("iodepth=4", 4), (100, 100, 300));
    assert_eq!(latencies(batches, 4), (100, 100, 300));
    // One after another, and all of them wait for the last.
    assert_eq!(latencies(batches, 1), (400, 400, 1200));
    // Two of four are taken back at once, which leaves two in flight.
    assert_eq!(latencies("iodepth=4 iodepth_batch_complete_min=2", 1), (200, 400, 1200));
    // What is left at the end is taken back at once, too.
    assert_eq!(latencies("iodepth=4 iodepth_low=1", 1), (100, 600, 1200));
    // Looking for each that is issued leaves one in flight.
    assert_eq!(latencies("iodepth=4 iodepth_batch_complete_min=0", 4), (100, 100, 1200));
    // At least none, but many at once: as many as are done, but the last that is waited for.
    let many = "iodepth=4 iodepth_batch_complete_min=0 iodepth_batch_complete_max=4";
    assert_eq!(latencies(many, 4), (100, 100, 300));
    // Who waits for a rate takes back what is done.
    let rated = "iodepth=4 iodepth_batch_complete_min=4 rate_iops=1000";
    assert_eq!(latencies(rated, 1), (100, 100, 11_100));
    let pauses = "iodepth=4 iodepth_batch_complete_min=4 thinktime=1000 thinktime_blocks=2 thinktime_blocks_type=issue";
    assert_eq!(latencies(pauses, 1).1, 200);
}

fn done(result: &RunResult) -> u64 {
    result.reports[0].directions.iter().take(3).map(|ddir| ddir.tally.ios()).sum()
}

#[test]
fn whatever_the_batches_every_io_is_done_once() {
    let mut waited = 0;
    for number in 0..600u32 {
        // Options of all kinds, each as often as not.
        let pick = |shift: u32, of: &[&str]| {
            of[(number.wrapping_mul(2_654_435_761) >> shift) as usize % of.len()].to_string()
        };
        let depth = pick(3, &["1", "2", "5", "16"]);
        let options = [
            format!("iodepth={depth}"),
            pick(5, &["", "iodepth_batch=3", "iodepth_batch=0"]),
            pick(
                7,
                &[
                    "",
                    "iodepth_batch_complete_min=0",
                    "iodepth_batch_complete_min=4",
                    "iodepth_batch_complete_min=99",
                ],
            ),
            pick(9, &["", "iodepth_batch_complete_max=2", "iodepth_batch_complete_max=16"]),
            pick(11, &["", "iodepth_low=1", "iodepth_low=4"]),
            pick(
                13,
                &[
                    "rw=read",
                    "rw=randrw",
                    "rw=randtrimwrite",
                    "rw=randwrite\nfsync=5",
                    "rw=write\nend_fsync=1",
                ],
            ),
            pick(15, &["", "", "rate_iops=20000", "thinktime=300\nthinktime_blocks=3"]),
            pick(17, &["", "", "loops=2", "max_latency=1h", "sync=1"]),
        ];
        let text = format!("[a]\nsize=1m\nnumber_ios=101\n{}\n", options.join("\n"));
        let servers = 1 + number % 3;
        let result = play(null("100us", servers), &text);
        let trims = 1 + u64::from(text.contains("trimwrite"));
        let passes = if text.contains("loops=2") { 2 } else { 1 };
        if trims == 1 {
            assert_eq!(done(&result), 101 * passes, "{text}");
        }
        let report = &result.reports[0];
        let most: u32 = depth.parse().unwrap();
        let deepest = report.depths.iter().rposition(|count| *count > 0).unwrap() as u32;
        assert!(deepest <= most.ilog2(), "{text}: {:?}", report.depths);
        // The depth is noted with each batch that is complete; the last one may not be.
        let left = done(&result) - report.depths.iter().sum::<u64>();
        let batch = if text.contains("iodepth_batch=0\n") { u64::from(most) } else { 3 };
        assert!(left < batch, "{text}: {left}");
        for (ddir, stats) in report.directions.iter().enumerate() {
            let parts = result.attribution[0][ddir].total();
            assert_eq!(u128::from(parts.iter().sum::<u64>()), stats.tally.lat.sum(), "{text}");
            waited += parts[Part::Host as usize];
        }
    }
    assert!(waited > 0);
}

#[test]
fn time_ends_a_job_whose_queue_is_being_drained() {
    let text =
        "[a]\nrw=read\niodepth=8\niodepth_batch_complete_min=8\ntime_based\nruntime=1ms\nsize=1m\n";
    let result = play(null("300us", 2), text);
    // Eight take 1.2 ms; no more are issued then.
    assert_eq!((done(&result), result.simulated_ns), (8, 1_200_000));
    let one = "[a]\nrw=read\niodepth=8\niodepth_low=1\ntime_based\nruntime=1ms\nsize=1m\n";
    let result = play(null("300us", 2), one);
    assert_eq!((done(&result), result.simulated_ns), (8, 1_200_000));
    let others = "[global]\nrw=read\nsize=1m\nexitall\n[a]\nnumber_ios=1\n[b]\niodepth=8\niodepth_batch_complete_min=8\nnumber_ios=100\n";
    let result = play(null("300us", 9), others);
    assert_eq!(result.simulated_ns, 300_000);
}
