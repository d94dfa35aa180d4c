//! What a fio job file means in virtual time, on a device whose behaviour is known in closed form.

use crate::support;

use ssdlab::Error;
use ssdlab::rig::Rig;
use ssdlab::run::{Observer, Progress, RunOptions, RunResult, run};
use ssdlab::stats::Part;
use support::{jobs, null, play};

const READ: usize = 0;
const WRITE: usize = 1;
const SYNC: usize = 3;

fn ios(result: &RunResult, report: usize, ddir: usize) -> u64 {
    result.reports[report].directions[ddir].tally.ios()
}

/// When job `job` started and ended, ms.
fn span_ms(result: &RunResult, job: usize) -> (f64, f64) {
    let span = &result.spans[job];
    (span.started_ns as f64 / 1e6, span.ended_ns as f64 / 1e6)
}

#[test]
fn k_servers_give_as_many_ios_as_are_served_at_once() {
    for (depth, servers) in [(1, 1), (1, 4), (3, 4), (4, 4), (32, 4), (7, 3)] {
        let job = format!("[a]\nrw=randread\nbs=4k\niodepth={depth}\ntime_based\nruntime=2\n");
        let result = play(null("100us", servers), &job);
        let busy = u64::from(servers.min(depth));
        // What is in flight when time is up still completes, as in fio.
        let at_the_end = u64::from(depth) - busy;
        assert_eq!(ios(&result, 0, READ), busy * 20_000 + at_the_end, "depth {depth} on {servers}");
        let lat = &result.reports[0].directions[READ].tally.lat;
        if depth <= servers {
            assert_eq!((lat.min(), lat.max()), (100_000, 100_000));
        }
    }
}

#[test]
fn littles_law_holds_in_a_closed_loop() {
    for (depth, servers, numjobs) in [(8u64, 4, 1), (32, 3, 2), (1, 2, 5)] {
        let job = format!(
            "[a]\nrw=randrw\nbs=4k\niodepth={depth}\nnumjobs={numjobs}\ngroup_reporting\n\
             time_based\nruntime=1\n"
        );
        let result = play(null("37us", servers), &job);
        let waited: u128 = result.reports[0].directions.iter().map(|d| d.tally.lat.sum()).sum();
        // The time spent in the device is depth x time, but for the start and the drain at the
        // end, in which fewer are in flight.
        let in_flight = waited as f64 / result.simulated_ns as f64;
        let want = (depth * numjobs) as f64;
        assert!((in_flight - want).abs() < 2e-3 * want, "{in_flight} in flight, not {want}");
    }
}

/// Mean latencies, us, of jobs with 60 and 4 reads in flight on a device that takes 10 us for one at a time.
fn shared(queues: &str) -> Vec<f64> {
    let text = format!(
        "[device]\nkind = \"link\"\nbandwidth = \"1000GB/s\"\nqueue_slots = 1\nqueues = \"{queues}\"\n\
         [device.below]\nkind = \"null\"\nservice_time = \"10us\"\nservers = 1\ncapacity = \"1GiB\"\n"
    );
    let device = Rig::parse(&text, "shared").unwrap().build(1, false).unwrap();
    let job = "[global]\nrw=randread\nbs=4k\ntime_based\nruntime=1\n[deep]\niodepth=60\n[shallow]\niodepth=4\n";
    let result = play(device, job);
    let means = result.reports.iter().map(|report| {
        let lat = &report.directions[READ].tally.lat;
        lat.sum() as f64 / report.directions[READ].tally.ios() as f64 / 1e3
    });
    means.collect()
}

#[test]
fn processes_wait_in_one_queue_or_each_in_its_own() {
    // All wait for the 64 that are in flight, or each process has every other turn.
    for (queues, expected) in [("one", [640.0, 640.0]), ("per-process", [1200.0, 80.0])] {
        for (mean, want) in shared(queues).into_iter().zip(expected) {
            assert!((mean / want - 1.0).abs() < 0.01, "{queues}: {mean} us, not {want}");
        }
    }
}

#[test]
fn parts_add_up_to_the_latencies() {
    let result = play(null("10us", 2), "[a]\nrw=randrw\nbs=4k\nsize=64m\niodepth=5\n");
    for (ddir, stats) in result.reports[0].directions.iter().enumerate() {
        let parts = result.attribution[0][ddir].total();
        assert_eq!(u128::from(parts.iter().sum::<u64>()), stats.tally.lat.sum());
        assert_eq!(parts.iter().sum::<u64>(), parts[Part::Service as usize]);
    }
}

#[test]
fn each_job_has_its_own_attribution() {
    let job =
        "[fill]\nrw=write\nbs=128k\nsize=1m\n[small]\nstonewall\nrw=randwrite\nbs=4k\nsize=1m\n";
    let result = play(null("10us", 2), job);
    let ios =
        |job: usize| -> u64 { result.attribution[job][1].rows().map(|(_, row)| row.ios).sum() };
    assert_eq!((ios(0), ios(1)), (8, 256));
}

#[test]
fn a_stonewall_waits_for_what_runs_and_holds_back_what_is_behind_it() {
    let job = "[global]\nrw=write\nbs=4k\n[a]\nsize=40k\n[b]\nsize=80k\n\
               [c]\nstonewall\nsize=40k\n[d]\nsize=40k\n";
    let result = play(null("1ms", 8), job);
    assert_eq!(span_ms(&result, 0), (0.0, 10.0));
    assert_eq!(span_ms(&result, 1), (0.0, 20.0));
    assert_eq!(span_ms(&result, 2), (20.0, 30.0));
    assert_eq!(span_ms(&result, 3), (20.0, 30.0));
    let groups: Vec<u32> = result.reports.iter().map(|report| report.group).collect();
    assert_eq!(groups, [0, 0, 1, 1]);
}

#[test]
fn the_processes_of_a_job_behind_a_stonewall_run_together() {
    let job = "[global]\nrw=write\nbs=4k\nsize=40k\n[a]\n[b]\nstonewall\nnumjobs=3\n";
    let result = play(null("1ms", 8), job);
    assert_eq!(span_ms(&result, 1), (10.0, 20.0));
}

#[test]
fn wait_for_waits_for_one_job_only() {
    let job = "[global]\nrw=write\nbs=4k\n[a]\nsize=40k\n[b]\nsize=400k\n\
               [c]\nwait_for=a\nsize=40k\n[d]\nsize=40k\n";
    let result = play(null("1ms", 8), job);
    assert_eq!(span_ms(&result, 1), (0.0, 100.0));
    assert_eq!(span_ms(&result, 2), (10.0, 20.0));
    assert_eq!(span_ms(&result, 3), (0.0, 10.0));
}

#[test]
fn a_start_delay_counts_from_the_start_of_the_run_and_holds_nobody_up() {
    // So does fio 3.33: b and d do not wait for a, and c, behind b, is late already.
    let job = "[global]\nrw=write\nbs=4k\nsize=40k\n[a]\nstartdelay=2\n[b]\nstonewall\n\
               [c]\nstonewall\nstartdelay=5ms\n[d]\nwait_for=b\n";
    let result = play(null("1ms", 8), job);
    assert_eq!(span_ms(&result, 0), (2000.0, 2010.0));
    assert_eq!(span_ms(&result, 1), (0.0, 10.0));
    assert_eq!(span_ms(&result, 2), (10.0, 20.0));
    assert_eq!(span_ms(&result, 3), (10.0, 20.0));
}

#[test]
fn the_ramp_is_added_to_the_runtime_and_not_measured() {
    let job = "[a]\nrw=write\nbs=4k\niodepth=2\ntime_based\nramp_time=1\nruntime=2\n";
    let result = play(null("1ms", 2), job);
    assert_eq!(ios(&result, 0, WRITE), 4000);
    assert_eq!(result.reports[0].runtime_ns[WRITE], 2_000_000_000);
    assert_eq!(result.simulated_ns, 3_000_000_000);
    assert_eq!(result.series.time_s, [2.0, 3.0]);
    assert_eq!(result.series.ios, [2000, 2000]);
}

#[test]
fn the_ramp_takes_from_the_amount_as_in_fio() {
    // 3072 I/Os at 1000/s; fio 3.33 reports about 2070 of them after a ramp of 1 s.
    let job = "[a]\nrw=write\nbs=4k\nsize=12m\nramp_time=1\n";
    let result = play(null("1ms", 1), job);
    assert_eq!(ios(&result, 0, WRITE), 2072);
}

#[test]
fn a_job_ends_at_its_amount_or_at_its_time_whichever_is_first() {
    let job = |runtime: u32| format!("[a]\nrw=write\nbs=4k\nsize=4m\nruntime={runtime}\n");
    assert_eq!(ios(&play(null("1ms", 1), &job(2)), 0, WRITE), 1024);
    assert_eq!(ios(&play(null("1ms", 1), &job(1)), 0, WRITE), 1000);
}

#[test]
fn a_rate_limits_issue_evenly_and_is_no_part_of_latency() {
    let job = "[a]\nrw=randwrite\nbs=4k\niodepth=8\nrate_iops=1000\ntime_based\nruntime=3\n";
    let result = play(null("100us", 1), job);
    assert_eq!(ios(&result, 0, WRITE), 3000);
    let lat = &result.reports[0].directions[WRITE].tally.lat;
    assert_eq!((lat.min(), lat.max()), (100_000, 100_000));
    assert_eq!(result.series.ios, [1000, 1000, 1000]);
    // One at a time, although eight would be allowed.
    assert_eq!(result.reports[0].depths[0], 3000);
}

#[test]
fn a_rate_in_bytes_gives_those_bytes() {
    let job = "[a]\nrw=write\nbs=64k\nrate=16m\ntime_based\nruntime=4\n";
    let result = play(null("100us", 1), job);
    assert_eq!(result.reports[0].directions[WRITE].tally.bytes, 64 << 20);
}

#[test]
fn a_rate_beyond_the_device_keeps_the_depth_full_and_no_more() {
    let job = "[a]\nrw=randwrite\nbs=4k\niodepth=4\nrate_iops=9000\ntime_based\nruntime=1\n";
    let result = play(null("1ms", 2), job);
    assert_eq!(ios(&result, 0, WRITE), 2000 + 2);
    assert_eq!(result.reports[0].directions[WRITE].tally.lat.max(), 2_000_000);
    assert_eq!(result.reports[0].depths[3..], [0; 4], "never more than 4 in flight");
}

#[test]
fn each_direction_of_a_mix_keeps_its_own_rate() {
    // fio 3.33 issues 50 reads and 20 writes a second here, although the mix is 50:50.
    let job = "[a]\nrw=randrw\nbs=4k\nrate_iops=50,20\ntime_based\nruntime=10\n";
    let result = play(null("100us", 1), job);
    assert_eq!((ios(&result, 0, READ), ios(&result, 0, WRITE)), (500, 200));
}

#[test]
fn a_direction_without_a_share_of_the_mix_does_not_go_while_the_other_waits_for_its_rate() {
    for (share, done) in [("rwmixread=100", (5000, 0)), ("rwmixread=0", (0, 5000))] {
        let job = format!("[a]\nrw=rw\n{share}\nrate_iops=5000\ntime_based\nruntime=1\n");
        let result = play(null("1us", 1), &job);
        assert_eq!((ios(&result, 0, READ), ios(&result, 0, WRITE)), done, "{share}");
    }
}

#[test]
fn poisson_arrivals_are_as_irregular_as_poisson_says() {
    let job = "[a]\nrw=randwrite\nbs=4k\niodepth=256\nrate_iops=100\nrate_process=poisson\n\
               time_based\nruntime=1000\n";
    let result = play(null("1us", 64), job);
    let counts: Vec<f64> = result.series.ios.iter().map(|ios| *ios as f64).collect();
    let n = counts.len() as f64;
    let mean = counts.iter().sum::<f64>() / n;
    let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (n - 1.0);
    // 1000 windows of a Poisson process: mean 100 +- 0.32, variance/mean 1 +- 0.045; five sigmas.
    assert!((mean - 100.0).abs() < 1.6, "mean {mean}");
    assert!((variance / mean - 1.0).abs() < 0.23, "dispersion {}", variance / mean);
}

#[test]
fn think_time_begins_when_all_is_done_after_every_so_many_ios() {
    // 4 I/Os, then 100 ms: fio 3.33 does 40 in a second at any depth.
    let job = "[a]\nrw=write\nbs=4k\niodepth=8\nthinktime=100000\nthinktime_blocks=4\n\
               thinktime_blocks_type=issue\ntime_based\nruntime=1\n";
    let result = play(null("10us", 4), job);
    assert_eq!(ios(&result, 0, WRITE), 40);
    assert_eq!(result.reports[0].depths[2..], [10, 0, 0, 0, 0], "four at a time");
}

#[test]
fn ios_count_towards_a_pause_when_they_are_completed() {
    // Measured with fio 3.33 (libaio on a loop device): I/Os between one pause and the next.
    let cases = [
        (4, 4, [7, 4, 4, 4, 4, 4]),
        (8, 4, [11, 1, 10, 1, 10, 1]),
        (8, 10, [17, 10, 10, 10, 10, 10]),
        (8, 1, [8, 1, 1, 1, 1, 1]),
        (2, 3, [4, 3, 3, 3, 3, 3]),
    ];
    for (depth, blocks, expected) in cases {
        let job = format!(
            "[a]\nrw=write\niodepth={depth}\nthinktime=1s\nthinktime_blocks={blocks}\n\
             time_based\nruntime=6\n"
        );
        let result = play(null("10us", 64), &job);
        assert_eq!(result.series.ios, expected, "{blocks} at depth {depth}");
    }
}

#[test]
fn a_job_under_a_rate_ends_with_its_last_io() {
    // As does fio 3.33: neither the end nor a flush waits until the next I/O would be due.
    let cases = [
        ("rate_iops=100\nnumber_ios=30", 290.0),
        ("rate_iops=100\nsize=40k\nloops=2", 190.0),
        ("rate=100k\nbs=64k\nnumber_ios=5", 2560.0),
        ("rate_iops=100\nfsync=4\nnumber_ios=28", 270.0),
        ("rw=trimwrite\nrate_iops=100\nnumber_ios=30", 290.0),
        ("rw=randrw\nrate_iops=200,50\nnumber_ios=80", 315.0),
        ("rate_iops=100\nnumber_ios=30\nend_fsync=1", 290.0),
    ];
    for (options, ends) in cases {
        let result = play(null("1us", 8), &format!("[a]\nrw=write\nbs=4k\n{options}\n"));
        let ended = span_ms(&result, 0).1;
        assert!((ends..ends + 0.1).contains(&ended), "{options}: {ended} and not {ends}");
    }
}

#[test]
fn a_trim_and_its_write_are_not_parted_by_a_rate() {
    let job = "[a]\nrw=trimwrite\nrate_iops=100\nnumber_ios=3\n";
    let text = format!("{job}write_lat_log=x\nlog_offset=1\n");
    let result = play(null("1us", 1), &text);
    let log = result.logs.iter().find(|log| log.name.ends_with("_lat.1.log")).unwrap();
    let mut rows = Vec::new();
    log.write(&mut rows).unwrap();
    let rows = String::from_utf8(rows).unwrap();
    let times: Vec<&str> = rows.lines().map(|row| row.split(',').next().unwrap()).collect();
    assert_eq!(times, ["0", "0", "10", "10", "20", "20"]);
}

#[test]
fn number_ios_and_rates_begin_once_more_behind_a_ramp() {
    // As to fio 3.33, which counts from there; size does not.
    for (amount, measured) in [("number_ios=50", 50), ("size=200k", 30)] {
        let job = format!("[a]\nrw=read\nbs=4k\nrate_iops=100\nramp_time=195ms\n{amount}\n");
        let result = play(null("1us", 1), &job);
        assert_eq!(ios(&result, 0, READ), measured, "{amount}");
        let span = &result.spans[0];
        let lasted = (span.ended_ns - span.measured_from_ns) as f64 / 1e6;
        let last = (measured - 1) as f64 * 10.0;
        assert!((last..last + 6.0).contains(&lasted), "{amount}: {lasted} ms");
    }
}

#[test]
fn fsync_blocks_its_process_and_is_counted_apart() {
    let job = "[a]\nrw=write\nbs=4k\nsize=4m\niodepth=4\nfsync=16\n";
    let result = play(null("1ms", 4), job);
    assert_eq!(ios(&result, 0, WRITE), 1024);
    let syncs = ios(&result, 0, SYNC);
    assert!((63..=64).contains(&syncs), "{syncs} syncs");
    // Without them 1024 I/Os take 256 ms; each holds the process up for its own millisecond.
    assert!(result.simulated_ns >= 256_000_000 + syncs * 1_000_000, "{}", result.simulated_ns);
}

#[test]
fn end_fsync_comes_last_also_when_time_ends_the_job() {
    for amount in ["size=40k", "time_based\nruntime=10ms"] {
        let job = format!("[a]\nrw=write\nbs=4k\nend_fsync=1\n{amount}\n");
        let result = play(null("1ms", 4), &job);
        assert_eq!((ios(&result, 0, WRITE), ios(&result, 0, SYNC)), (10, 1), "{amount}");
        assert_eq!(span_ms(&result, 0), (0.0, 11.0), "{amount}");
    }
}

#[test]
fn reports_are_by_process_or_by_group() {
    let text = |group: &str| {
        format!("[global]\nrw=write\nbs=4k\nsize=40k\n{group}\n[a]\nnumjobs=3\n[b]\nnumjobs=2\n")
    };
    let each = play(null("1ms", 8), &text(""));
    assert_eq!(each.reports.iter().map(|r| r.job).collect::<Vec<_>>(), [0, 0, 0, 1, 1]);
    let group = play(null("1ms", 8), &text("group_reporting"));
    assert_eq!(group.reports.len(), 1);
    assert_eq!(ios(&group, 0, WRITE), 50);
    // So are its series, and where the time went: rows of a job add up to what is reported of it.
    assert_eq!((group.series.job.as_slice(), group.series.ios.as_slice()), (&[0][..], &[50][..]));
    let told =
        |job: usize| group.attribution[job][WRITE].rows().map(|(_, row)| row.ios).sum::<u64>();
    assert_eq!((told(0), told(1)), (50, 0));
}

#[test]
fn rows_of_jobs_reported_together_span_from_the_first_to_the_last() {
    // One ends before the other begins, a third is ramped, a fourth of the same stage stays by itself.
    let job = "[global]\nrw=read\nbs=4k\ntime_based\n[a]\nruntime=2\n\
               [b]\ngroup_reporting\nstartdelay=3\nruntime=2\n\
               [c]\ngroup_reporting\nramp_time=1\nruntime=1\n[d]\nruntime=1\n";
    let result = play(null("1ms", 8), job);
    let jobs: Vec<usize> = result.reports.iter().map(|report| report.job).collect();
    assert_eq!(jobs, [0, 3]);
    let rows = |job: u32| {
        let series = &result.series;
        let own = (0..series.len()).filter(move |&row| series.job[row] == job);
        own.map(|row| (series.time_s[row], series.ios[row])).collect::<Vec<_>>()
    };
    let (busy, idle) = ([(1.0, 1000), (2.0, 2000)], [(3.0, 0), (4.0, 1000), (5.0, 1000)]);
    assert_eq!(rows(0), [&busy[..], &idle[..]].concat());
    assert_eq!(rows(3), [(1.0, 1000)]);
    assert_eq!((rows(1), rows(2)), (vec![], vec![]));
    assert_eq!(ios(&result, 0, READ), 5000);
}

#[test]
fn the_series_adds_up_and_has_no_row_too_short_for_a_rate() {
    // The second job begins and ends within an interval; the drain of both is short.
    let job = "[global]\nrw=randrw\nbs=4k\niodepth=16\n[a]\ntime_based\nruntime=2900ms\n\
               [b]\nstonewall\ntime_based\nruntime=2\n";
    let result = play(null("1ms", 2), job);
    for (report, stats) in result.reports.iter().enumerate() {
        for ddir in [READ, WRITE] {
            let rows = (0..result.series.len()).filter(|row| {
                result.series.job[*row] == report as u32 && result.series.ddir[*row] == ddir as u8
            });
            let sum: u64 = rows.map(|row| result.series.ios[row]).sum();
            assert_eq!(sum, stats.directions[ddir].tally.ios());
        }
    }
    let both = |i: usize| result.series.iops[2 * i] + result.series.iops[2 * i + 1];
    for row in 0..result.series.len() / 2 {
        assert!(
            (both(row) - 2000.0).abs() < 1.0,
            "{} at {}",
            both(row),
            result.series.time_s[2 * row]
        );
    }
    assert!(result.series.time_s.is_sorted());
}

#[test]
fn a_job_that_stands_still_has_rows_that_say_so() {
    let job = "[a]\nrw=write\nbs=4k\nthinktime=2500000\ntime_based\nruntime=6\n";
    let result = play(null("1ms", 1), job);
    assert_eq!(result.series.ios, [1, 0, 1, 0, 0, 1]);
}

#[test]
fn nothing_is_left_of_a_run_that_is_stopped() {
    struct Stop(u32);
    impl Observer for Stop {
        fn progress(&mut self, progress: &Progress) -> bool {
            assert!((0.0..=1.0).contains(&progress.fraction));
            self.0 += 1;
            self.0 < 3
        }
    }
    let mut device = null("10us", 1);
    let text = "[a]\nrw=write\nbs=4k\ntime_based\nruntime=100\n";
    let outcome = run(device.as_mut(), &jobs(text), &RunOptions::default(), &mut Stop(0));
    assert_eq!(outcome.err(), Some(Error::Cancelled));
}

#[test]
fn jobs_that_wait_for_each_other_are_an_error() {
    let mut device = null("10us", 1);
    let text =
        "[a]\nrw=write\nbs=4k\nsize=4k\nwait_for=b\n[b]\nrw=write\nbs=4k\nsize=4k\nwait_for=a\n";
    let mut jobs = jobs(&text.replace("wait_for=b\n", ""));
    jobs.jobs[0].schedule.wait_for = Some("b".into());
    let outcome = run(device.as_mut(), &jobs, &RunOptions::default(), &mut ());
    let message = outcome.err().unwrap().to_string();
    assert!(message.contains("\"a\"") && message.contains("wait_for"), "{message}");
}

#[test]
fn a_run_of_limited_work_ends_there_with_what_it_has_done() {
    let job = "[a]\nrw=randread\nbs=4k\nnumber_ios=50000\n\
               [b]\nstonewall\nrw=read\nbs=4k\nsize=4m\n";
    let limited = |most_work| {
        let options = RunOptions { most_work, ..RunOptions::default() };
        run(null("10us", 1).as_mut(), &jobs(job), &options, &mut ()).unwrap()
    };
    let whole = limited(None);
    assert!(!whole.cut);
    // Each I/O is one, and its 4 KiB are a quarter.
    assert_eq!(whole.work, (50_000 + 1024) * 5 / 4);
    let part = limited(Some(20_000));
    assert!(part.cut);
    assert!((20_000..22_000).contains(&part.work), "{}", part.work);
    let done = ios(&part, 0, READ);
    assert!((16_000..17_600).contains(&done), "{done}");
    assert_eq!(ios(&part, 1, READ), 0);
    assert!((part.simulated_ns / 1000).abs_diff(10 * done) <= 10, "{}", part.simulated_ns);
    let enough = limited(Some(whole.work));
    assert!(!enough.cut);
    assert_eq!((enough.work, enough.simulated_ns), (whole.work, whole.simulated_ns));
}

#[test]
fn what_a_drive_moves_by_itself_is_work() {
    let work = |size: &str| {
        let rig = "[device]\nkind = \"ssd\"\ncapacity = \"16MiB\"\n[device.nand]\nchannels = 1\nways = 1\n\
                   page = \"4KiB\"\npages_per_block = 16\nt_read = \"50us\"\nt_program = \"500us\"\n\
                   t_erase = \"3ms\"\ntransfer_mts = 400\n";
        let device = Rig::parse(rig, "small").unwrap().build(1, false).unwrap();
        let (ios, bytes) = (40_000, 40_000 * 4096);
        let job =
            format!("[a]\nrw=randwrite\nbs=4k\nsize={size}\nio_size={bytes}\nnorandommap=1\n");
        let result = play(device, &job);
        let beyond = (result.waf.unwrap() - 1.0) * f64::from(ios);
        assert!((result.work as f64 - (1.25 * f64::from(ios) + beyond)).abs() < 2.0);
        beyond
    };
    assert!(work("100%") > 20.0 * work("10%").max(100.0));
}
