//! What keeps I/Os back beside a depth: the shares of several jobs, pauses by time, I/Os that overlap; and jobs that fail
//! because they are too slow. Beside the real fio, and on devices whose behaviour is known in closed form.

use crate::support::{document_text, fio_jobs, jobs, null, play, try_jobs};
use serde_json::Value;
use ssdlab::job::Generator;
use ssdlab::run::{Report, RunOptions, RunResult, run};

/// I/Os of each report.
fn ios(result: &RunResult) -> Vec<u64> {
    let of = |report: &Report| report.directions.iter().take(3).map(|one| one.tally.ios()).sum();
    result.reports.iter().map(of).collect()
}

fn lines(text: &str) -> String {
    format!("{}\n", text.replace(' ', "\n"))
}

/// Job files whose I/Os keep to a proportion, and I/Os of each job in two seconds. Measured with fio 3.33 (null engine, a
/// machine with nothing else to do): within 1 % of them; on a busy one its flows at times do not hold.
const SHARES: &[(&str, &[u64])] = &[
    ("[a] flow=1 rate_iops=2000 [b] flow=8 rate_iops=400", &[100, 800]),
    ("[a] flow=10 rate_iops=2000 [b] flow=5 rate_iops=100", &[400, 200]),
    ("flow_sleep=5000 [a] flow=1 rate_iops=2000 [b] flow=2 rate_iops=400", &[400, 800]),
    // Each number is a flow of its own; a job without a weight is in none.
    (
        "[a] flow=1 rate_iops=2000 [b] flow=2 rate_iops=200 [c] flow=3 flow_id=7 rate_iops=2000 \
         [d] flow=1 flow_id=7 rate_iops=100 [e] rate_iops=50",
        &[200, 400, 600, 200, 100],
    ),
    // Each process has the weight of its job.
    ("[a] flow=1 rate_iops=2000 [b] flow=1 numjobs=2 rate_iops=100", &[200, 200, 200]),
];

#[test]
fn jobs_keep_to_their_shares_as_by_fio() {
    let near = |a: u64, b: u64| a.abs_diff(b) <= 3 + b / 100;
    for (text, expected) in SHARES {
        for depth in [1, 4] {
            let global = format!("rw=write time_based runtime=2 size=1g iodepth={depth}");
            let text = format!("[global]\n{}{}", lines(&global), lines(text));
            let ours = ios(&play(null("10us", 64), &text));
            let same = ours.len() == expected.len();
            assert!(
                same && ours.iter().zip(*expected).all(|(a, b)| near(*a, *b)),
                "{ours:?} {text}"
            );
        }
    }
}

#[test]
fn who_is_alone_in_a_flow_is_free() {
    let others = "number_ios=100 [a] flow=1 [b] flow=1000 rate_iops=100";
    let result = play(null("10us", 64), &format!("[global]\n{}", lines(others)));
    // It goes on when the other one has ended.
    assert_eq!(ios(&result), [100, 100]);
    let alone = play(null("10us", 1), "[a]\nflow=7\nnumber_ios=100\n");
    assert_eq!(alone.simulated_ns, 1_000_000);
}

#[test]
fn a_flow_that_nothing_moves_is_refused() {
    let text = lines("[a] flow=1 number_ios=100 [b] stonewall flow=1 number_ios=100");
    let mut device = null("10us", 1);
    let options = RunOptions::default();
    let error = run(device.as_mut(), &jobs(&text), &options, &mut ()).unwrap_err().to_string();
    assert!(error.contains("flow: waits for ever for the other jobs of its flow_id"), "{error}");
    // However often it wakes to see.
    let asleep = text.replacen("flow=1", "flow=1\nflow_sleep=1000", 1);
    let error = run(null("10us", 1).as_mut(), &jobs(&asleep), &options, &mut ()).unwrap_err();
    assert!(error.to_string().contains("flow: waits for ever"), "{error}");
    // Time ends it all the same, as to fio.
    let timed = text.replace("[a]\n", "[a]\nruntime=1\n");
    assert_eq!(ios(&play(null("10us", 1), &timed)), [2, 100]);
    let error = try_jobs("[a]\nflow=1001\n").unwrap_err().to_string();
    assert!(error.contains("expected a weight of 1000 or less"), "{error}");
}

/// When I/Os are followed by none for more than 100 ms, ms.
fn pauses(text: &str) -> Vec<u64> {
    let text = format!("[a]\nrw=write\ntime_based\nruntime=3\n{}", lines(text));
    let options = RunOptions { interval_ns: 1_000_000, ..RunOptions::default() };
    let result = run(null("1ms", 1).as_mut(), &jobs(&text), &options, &mut ()).unwrap();
    let mut busy = vec![];
    for (at, ios) in result.series.ios.iter().enumerate() {
        if *ios > 0 {
            busy.push(at as u64);
        }
    }
    busy.windows(2).filter(|pair| pair[1] - pair[0] > 100).map(|pair| pair[0] + 1).collect()
}

#[test]
fn pauses_come_after_a_time_of_io() {
    // With fio 3.33 (psync on a file in memory) at 800, 1600 and 2401 ms: the first time of I/O is as long as a pause more.
    assert_eq!(pauses("thinktime=500ms thinktime_iotime=300ms"), [800, 1600, 2400]);
    assert_eq!(pauses("thinktime=500ms thinktime_iotime=1"), [1500]);
    // Whichever is first.
    let both = "thinktime=500ms thinktime_iotime=300ms thinktime_blocks=100";
    assert_eq!(pauses(both), [100, 700, 1300, 1900]);
    assert_eq!(
        pauses("thinktime=500ms thinktime_iotime=300ms thinktime_blocks=9999"),
        [800, 1600, 2400]
    );
    assert_eq!(pauses("thinktime_iotime=300ms"), [0; 0]);
}

#[test]
fn a_rate_catches_up_on_pauses_or_not() {
    let rated = "[a]\nrw=write\nrate_iops=1000\nthinktime=500ms\nthinktime_blocks=500\ntime_based\nruntime=6\n";
    let ios = |options: &str| ios(&play(null("10us", 1), &format!("{rated}{options}\n")))[0];
    // fio 3.33 does 5500 and 3006.
    let (catches_up, ignores) = (ios(""), ios("rate_ignore_thinktime=1"));
    assert!(catches_up.abs_diff(5500) < 10, "{catches_up}");
    assert!(ignores.abs_diff(3006) < 10, "{ignores}");
    // Of Poisson arrivals as many in the mean; some 55 more or fewer.
    let poisson = ios("rate_ignore_thinktime=1\nrate_process=poisson");
    assert!(poisson.abs_diff(3000) < 275, "{poisson}");
}

#[test]
fn a_job_fails_that_is_too_slow() {
    let text = |options: &str| {
        let global = "ioengine=null size=1g rw=write time_based runtime=5 thinktime=10ms";
        format!("[a]\n{}{}", lines(global), lines(options))
    };
    let files = ["rate_min=4m", "rate_iops_min=1000", "rate_min=20k", "ratemin=4m,0"];
    let ours = |options: &str| -> Value {
        serde_json::from_str(&document_text(null("10us", 1), &text(options))).unwrap()
    };
    // After two seconds the rate of one is looked at; 100 writes a second come.
    for (options, expected, seconds) in
        [(files[0], 5, 3.0), (files[1], 5, 3.0), (files[2], 0, 5.0), (files[3], 0, 5.0)]
    {
        let ours = &ours(options)["jobs"][0];
        let writes = ours["write"]["total_ios"].as_f64().unwrap();
        assert_eq!(ours["error"], expected, "{options}");
        assert!((writes - 100.0 * seconds).abs() < 5.0, "{options}: {writes}");
    }
    let short = &ours("rate_min=4m rate_cycle=500")["jobs"][0];
    assert!((short["write"]["total_ios"].as_f64().unwrap() - 250.0).abs() < 5.0);
    let failure = play(null("10us", 1), &text(files[0])).reports[0].failure.clone().unwrap();
    assert_eq!(failure.problem, "rate_min=4MiB: 409190B of writes a second over 1001ms");
    for (options, option) in [
        ("rate=1m rate_min=2m", "rate_min"),
        ("rate_iops=10,20 rate_iops_min=10,21", "rate_iops_min"),
    ] {
        let error = try_jobs(&text(options)).unwrap_err().to_string();
        assert!(error.contains(&format!("{option}: is more than ")), "{error}");
    }
    let error = try_jobs("[a]\nrate_min=1m\nrate_iops_min=10\n").unwrap_err().to_string();
    assert!(error.contains("either rate_min or rate_iops_min, as in fio"), "{error}");
    // As often as can be, for fio takes the time itself.
    let soon = |options: &str| format!("{}rate_cycle=100\nruntime=2300ms\n", text(options));
    let Some(theirs) = fio_jobs(files.map(soon).iter().map(String::as_str)) else { return };
    let errors: Vec<_> = theirs.iter().map(|jobs| jobs[0]["error"].as_u64().unwrap()).collect();
    assert_eq!(errors, [5, 5, 0, 0]);
}

#[test]
fn ios_that_overlap_wait_for_each_other() {
    let time = |options: &str| {
        let text = format!("[a]\niodepth=4\nnumber_ios=12\nsize=64k\n{}", lines(options));
        play(null("100us", 4), &text).simulated_ns / 1000
    };
    // All of the same place, none, and each of half of the one before.
    let same = "rw=read:-4k";
    assert_eq!((time(same), time(&format!("{same} serialize_overlap=1"))), (300, 1200));
    assert_eq!(time("rw=write serialize_overlap=1"), 300);
    assert_eq!(time("rw=write:-4k bs=8k size=96k serialize_overlap=1"), 1200);
    // As in fio those behind it wait, too.
    let blocks = "rw=randwrite norandommap size=8k io_size=48k";
    let (free, serial) = (time(blocks), time(&format!("{blocks} serialize_overlap=1")));
    assert!(free == 300 && (600..=1200).contains(&serial), "{serial}");
    // Other processes are not asked.
    assert_eq!(time(&format!("{same} serialize_overlap=1 numjobs=4 iodepth=1")), 1200);
}

#[test]
fn what_was_written_is_read_back_once_all_of_it_is_there() {
    let text =
        |options: &str| format!("[a]\niodepth=4\nsize=64k\nverify=crc32c\n{}", lines(options));
    let done = |text: &str| -> Value {
        serde_json::from_str(&document_text(null("100us", 4), text)).unwrap()
    };
    // 16 writes at a rate; reads know neither rates nor pauses.
    let jobs = done(&text("rw=randwrite rate_iops=100"));
    let job = &jobs["jobs"][0];
    let of = |job: &Value, ddir: &str| {
        ["total_ios", "runtime"].map(|name| job[ddir][name].as_u64().unwrap())
    };
    assert_eq!((of(job, "write"), of(job, "read")), ([16, 150], [16, 1]));
    assert!((job["write"]["iops"].as_f64().unwrap() - 16.0 / 0.1501).abs() < 0.1, "{job}");
    assert!((job["read"]["iops"].as_f64().unwrap() - 40_000.0).abs() < 1.0);
    let paused = &done(&text("rw=write thinktime=10ms thinktime_blocks=8 loops=2"))["jobs"][0];
    assert_eq!((of(paused, "write")[0], of(paused, "read")), (32, [32, 1]));
    // A mix reads meanwhile, too.
    let mixed = &done(&text("rw=randrw rwmixread=25"))["jobs"][0];
    let [reads, writes] = ["read", "write"].map(|ddir| of(mixed, ddir)[0]);
    assert_eq!(reads, 16, "those of the mix, and one for each of {writes} writes");
    // As with fio's libaio each pass of a job that begins again is read back, of however many I/Os it is to be; of places
    // that repeat each one comes once.
    let again = "time_based\nruntime=140ms\nrate_iops=1000\nnumber_ios=3";
    for (pattern, least) in [("rw=write", 16), ("rw=randwrite\nnorandommap", 6)] {
        let job = &done(&text(&format!("{pattern}\n{again}")))["jobs"][0];
        let [writes, reads] = ["write", "read"].map(|ddir| of(job, ddir)[0]);
        let passes = writes / 16;
        assert!(passes > 6 && (least * passes..=16 * passes).contains(&reads), "{pattern}: {job}");
    }
    let by_content = lines("[a] size=64k rw=write verify_pattern=0x55");
    assert_eq!(of(&done(&by_content)["jobs"][0], "read")[0], 16);
    // Time leaves none, nor does the job; of a content, too, whatever comes first.
    for never in [
        "rw=write do_verify=0",
        "rw=write runtime=100us",
        "rw=write verify=0 verify_pattern=0x55",
        "rw=write verify_pattern=0x55 verify=0",
    ] {
        assert_eq!(of(&done(&text(never))["jobs"][0], "read")[0], 0, "{never}");
    }
    assert_eq!(of(&done(&text("rw=read"))["jobs"][0], "read")[0], 16);
    for wrong in ["crc33", "none"] {
        let error = try_jobs(&format!("[a]\nverify={wrong}\n")).unwrap_err().to_string();
        let expected = format!("verify: found \"{wrong}\", expected a way of fio");
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn what_is_remembered_to_be_read_back_is_limited_by_what_can_be_written() {
    let problem = |options: &str| {
        let file = jobs(&lines(&format!("[a] rw=randwrite {options}")));
        Generator::new(&file.jobs[0], 0, 4 << 40, 1).err().map_or(String::new(), |e| e.to_string())
    };
    for option in ["verify", "verify_pattern"] {
        let refused = problem(&format!("{option}=null size=2t"));
        let expected = format!("{option}: remembers each write until it is read back");
        assert!(refused.contains(&expected), "{refused}");
    }
    // Time ends it long before, or each pass, or place, is read back by itself.
    for less in [
        "size=2t runtime=1",
        "size=2t number_ios=10",
        "size=2t bs=64k",
        "size=700g loops=2",
        "size=700g io_size=2t",
        "size=700g io_size=2t norandommap",
    ] {
        assert_eq!(problem(&format!("verify=null {less}")), "", "{less}");
    }
}

#[test]
fn traces_are_not_read_back() {
    for option in ["verify=crc32c", "verify_pattern=0x55"] {
        let error =
            try_jobs(&lines(&format!("[a] read_iolog=x.log {option}"))).unwrap_err().to_string();
        assert!(error.contains("what a trace writes is not read back"), "{error}");
    }
    assert!(try_jobs(&lines("[a] read_iolog=x.log verify=0")).is_ok());
}

#[test]
fn jobs_that_report_together_have_a_runtime_by_direction_as_by_fio() {
    let global = "[global] ioengine=null group_reporting rate_iops=200";
    let verified = "[a] rw=write size=400k verify=null";
    let files = [
        format!("{global} {verified} [b] rw=write size=1200k"),
        format!("{global} {verified} [b] rw=read size=1200k"),
        format!("{global} [b] rw=read size=1200k {verified}"),
        format!("{global} {verified} [b] rw=trim size=1200k"),
        format!("{global} [a] rw=write size=400k [b] rw=read size=1200k"),
    ]
    .map(|text| lines(&text));
    let runtimes =
        |job: &Value| ["read", "write", "trim"].map(|ddir| job[ddir]["runtime"].as_u64().unwrap());
    // 1 ms of reading back at the depth of one.
    let expected = [[1, 1495, 0], [1495, 495, 0], [1495, 495, 0], [1, 495, 1495], [1495, 495, 0]];
    for (text, expected) in files.iter().zip(expected) {
        let ours: Value = serde_json::from_str(&document_text(null("10us", 1), text)).unwrap();
        assert_eq!(runtimes(&ours["jobs"][0]), expected, "{text}");
    }
    let Some(theirs) = fio_jobs(files.iter().map(String::as_str)) else { return };
    for ((jobs, expected), text) in theirs.iter().zip(expected).zip(&files) {
        let near = |(a, b): (&u64, &u64)| (*b..*b + 500).contains(a) && (*a > 0) == (*b > 0);
        let theirs = runtimes(&jobs[0]);
        assert!(theirs.iter().zip(&expected).all(near), "{theirs:?} {text}");
    }
}

#[test]
fn what_is_read_back_may_be_slow() {
    let text = "[a] rw=write size=1200k loops=2 verify=crc32c";
    let run = |options: &str| play(null("10ms", 1), &format!("{}{options}\n", lines(text)));
    // 100 writes a second for three seconds, and as many reads for three more, twice.
    let fast_enough = run("rate_min=200k");
    assert_eq!((fast_enough.reports[0].failure.clone(), ios(&fast_enough)), (None, vec![1200]));
    assert!(run("rate_min=1m").reports[0].failure.is_some());
    // Of the time in which it reads back only what is measured counts.
    let ramped = run("ramp_time=8900ms");
    assert_eq!(ramped.reports[0].runtime_ns[0], 3_000_000_000);
}

#[test]
fn measuring_begins_once_more_for_what_is_read_back_too() {
    // The depth is sought during many passes; what is measured is the last window.
    let text = "[a] rw=write size=400k loops=1000 verify=null iodepth=16 latency_target=850 latency_window=100ms \
                latency_percentile=99";
    let report = &play(null("100us", 1), &lines(text)).reports[0];
    let [read, write, _] = report.runtime_ns;
    assert_eq!(read + write, report.job_runtime_ns);
    assert!((40_000_000..60_000_000).contains(&read), "{read} {write}");
}

#[test]
fn a_share_holds_what_is_read_back_and_not_the_end() {
    // fio 3.33 takes 1.92 and 2.02 s for the two halves of the first job.
    let flow = "size=8m rw=write [a] flow=1 number_ios=100 verify=crc32c [b] flow=1 rate_iops=50 number_ios=300";
    let shared = play(null("10us", 64), &format!("[global]\n{}", lines(flow)));
    assert_eq!(ios(&shared), [200, 300]);
    let [read_back, wrote, _] = shared.reports[0].runtime_ns;
    let near = |ns: u64, ms: u64| (ns / 1_000_000).abs_diff(ms) <= 40;
    assert!(near(wrote, 1960) && near(read_back, 2000), "{wrote} {read_back}");
    let ended = "[global] number_ios=2 flow=1 [a] [b] stonewall";
    assert_eq!(ios(&play(null("10us", 1), &lines(ended))), [2, 2]);
}
