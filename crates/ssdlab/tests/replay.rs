//! Replaying traces: when requests are issued and what their latency counts from, on devices whose answer
//! is known by hand; and beside the real fio.

use crate::support;

use ssdlab::Error;
use ssdlab::job::{Attached, JobFile, ParseSource, parse};
use ssdlab::run::{RunOptions, RunResult, run};
use ssdlab::trace::{Kind, Request};
use support::{has_fio, jobs, null};

const US: u64 = 1000;

fn read_at(us: u64, offset: u64) -> Request {
    Request {
        time_ns: us * US,
        offset,
        length: 4096,
        kind: Kind::Read,
        device: 0,
        response_ns: None,
    }
}

fn attached(
    text: &str,
    requests: &[Request],
    fit: &str,
    open_loop: bool,
) -> Result<JobFile, Error> {
    let mut jobs = jobs(text);
    jobs.attach_traces(&mut |_| {
        let attached = Attached::new(requests.to_vec());
        Ok(Attached { fit: fit.into(), open_loop, ..attached })
    })?;
    Ok(jobs)
}

/// One server of 25 us.
fn replay(options: &str, requests: &[Request], open_loop: bool) -> Result<RunResult, Error> {
    let text = format!("[r]\nread_iolog=t\nwrite_lat_log=l\nlog_offset=1\n{options}");
    let jobs = attached(&text, requests, "as-is", open_loop)?;
    run(null("25us", 1).as_mut(), &jobs, &RunOptions::default(), &mut ())
}

/// Block and latency in us of each I/O, in the order of completion.
fn ends(result: &RunResult) -> Vec<(u64, u64)> {
    log_lines(result).iter().map(|line| (line[4] / 4096, line[1] / US)).collect()
}

/// The lines of the latency log: ms, ns, direction, bytes, offset, priority.
fn log_lines(result: &RunResult) -> Vec<Vec<u64>> {
    let log = result.logs.iter().find(|log| log.name.ends_with("_lat.1.log")).expect("a log");
    let mut text = Vec::new();
    log.write(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let numbers = |line: &str| line.split(", ").map(|n| n.parse().unwrap()).collect();
    text.lines().map(numbers).collect()
}

#[test]
fn in_an_open_loop_latency_counts_from_the_arrival() {
    // Arrivals every 10 us at one server of 25 us: the k-th waits 15 us more than the one before.
    let requests: Vec<Request> = (0..6).map(|k| read_at(10 * k, k * 4096)).collect();
    let result = replay("", &requests, true).unwrap();
    let expected: Vec<(u64, u64)> = (0..6).map(|k| (k, 25 + 15 * k)).collect();
    assert_eq!(ends(&result), expected);
    assert_eq!(result.simulated_ns, 150 * US);
    assert_eq!(result.attribution.len(), 1);
}

#[test]
fn as_fio_does_a_pause_counts_from_the_last_io_issued() {
    // Depth 1: issued at 0, 25 (late), 50 (late), then 80 us after that, not at its own 100.
    let requests = [read_at(0, 0), read_at(10, 4096), read_at(20, 8192), read_at(100, 12_288)];
    let result = replay("iodepth=1\n", &requests, false).unwrap();
    assert_eq!(ends(&result), [(0, 25), (1, 25), (2, 25), (3, 25)]);
    assert_eq!(result.simulated_ns, (50 + 80 + 25) * US);
    // With room for all it is the trace's own times.
    let result = replay("iodepth=8\n", &requests, false).unwrap();
    assert_eq!(result.simulated_ns, 125 * US);
    assert_eq!(ends(&result)[2], (2, 55));
}

#[test]
fn times_are_scaled_or_left_out() {
    let requests = [read_at(0, 0), read_at(1000, 4096)];
    let took = |options: &str, open| replay(options, &requests, open).unwrap().simulated_ns / US;
    assert_eq!(took("replay_time_scale=200\n", false), 525);
    assert_eq!(took("replay_time_scale=50\n", true), 2025);
    assert_eq!(took("replay_no_stall=1\n", false), 50);
    assert_eq!(took("replay_no_stall=1\nruntime=1h\ntime_based\nloops=3\nsize=4k\n", false), 50);
}

#[test]
fn every_kind_and_place_arrives() {
    let mut requests = vec![read_at(0, 0); 4];
    requests[1].kind = Kind::Write;
    requests[2].kind = Kind::Trim;
    requests[3] = Request { kind: Kind::Flush, length: 0, ..requests[3] };
    let result = replay("", &requests, true).unwrap();
    let ios: Vec<u64> = result.reports[0].directions.iter().map(|d| d.tally.ios()).collect();
    assert_eq!(ios, [1, 1, 1, 1]);
    let twice = replay("numjobs=2\ngroup_reporting\n", &requests, false).unwrap();
    assert_eq!(twice.reports[0].directions[1].tally.ios(), 2, "every process replays all of it");
}

#[test]
fn a_trace_beyond_the_drive_is_refused_or_fitted() {
    let far = [read_at(0, 0), read_at(1, 1 << 40)];
    let message = replay("", &far, true).unwrap_err().to_string();
    assert!(message.contains("test.fio:2: [r] read_iolog: the trace reaches to byte"), "{message}");
    for fit in ["wrap", "scale"] {
        let jobs = attached("[r]\nread_iolog=t\n", &far, fit, true).unwrap();
        let result = run(null("25us", 1).as_mut(), &jobs, &RunOptions::default(), &mut ()).unwrap();
        assert_eq!(result.reports[0].directions[0].tally.ios(), 2, "{fit}");
    }
}

#[test]
fn what_is_wrong_with_replay_options_is_said() {
    let include = |_: &str| Err(std::io::Error::other("nothing to include"));
    let source = ParseSource { file: "t".into(), env: Default::default(), include: &include };
    let said = |text: &str| parse(text, &source).unwrap_err().to_string();
    assert!(said("[r]\nreplay_align=3k\n").contains("a power of two"));
    assert!(said("[r]\nreplay_time_scale=0\n").contains("percentage"));
    let mut nowhere = jobs("[r]\nread_iolog=t\n");
    let error = run(null("1us", 1).as_mut(), &nowhere, &RunOptions::default(), &mut ());
    assert!(error.unwrap_err().to_string().contains("no trace can be read here"));
    let broken = nowhere.attach_traces(&mut |_| Err(Error::Unfit("no such trace".into())));
    assert!(broken.is_err());
}

/// fio's own replay of the same iolog: the same places and lengths in the same order, with its scaling
/// and alignment.
#[test]
fn fio_replays_the_same_places() {
    if !has_fio() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("ssdlab-replay-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let offsets = [0u64, 20_480, 4096, 102_400, 7 << 20, 6144];
    let mut iolog = "fio version 3 iolog\n1 f add\n1 f open\n".to_string();
    let mut requests = Vec::new();
    for (k, offset) in offsets.iter().enumerate() {
        let length = 4096 * (1 + k as u64 % 3);
        iolog += &format!("{} f read {offset} {length}\n", 1 + 100 * k);
        requests.push(Request { length: length as u32, ..read_at(100 * k as u64, *offset) });
    }
    iolog += "700 f close\n";
    std::fs::write(folder.join("t"), iolog).unwrap();
    for options in
        ["", "replay_scale=2\n", "replay_align=8k\n", "replay_scale=3\nreplay_align=4k\n"]
    {
        let text = format!(
            "[r]\nread_iolog=t\nreplay_no_stall=1\nwrite_lat_log=l\nlog_offset=1\n{options}"
        );
        let job = format!("{text}ioengine=null\n");
        std::fs::write(folder.join("job.fio"), job).unwrap();
        let done = std::process::Command::new("fio").arg("job.fio").current_dir(&folder).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let log = std::fs::read_to_string(folder.join("l_lat.1.log")).unwrap();
        let place = |line: &str| {
            let numbers: Vec<u64> = line.split(", ").map(|n| n.parse().unwrap()).collect();
            (numbers[3], numbers[4])
        };
        let fio: Vec<(u64, u64)> = log.lines().map(place).collect();
        let jobs = attached(&text, &requests, "as-is", false).unwrap();
        let result = run(null("25us", 1).as_mut(), &jobs, &RunOptions::default(), &mut ()).unwrap();
        let ours: Vec<(u64, u64)> =
            log_lines(&result).iter().map(|line| (line[3], line[4])).collect();
        assert_eq!(ours, fio, "{options}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
