//! Jobs that look for a depth or for a steady state while they run, beside the real fio, and on devices whose
//! behaviour is known in closed form.

use crate::common::long;
use crate::support::{document_text, fio_jobs, null, play, try_jobs};
use serde_json::{Value, json};

const WRITE: usize = 1;

fn entry(service_time: &str, servers: u32, text: &str) -> Value {
    let text = document_text(null(service_time, servers), text);
    serde_json::from_str::<Value>(&text).unwrap()["jobs"][0].clone()
}

fn target(options: &str) -> String {
    format!("[a]\nrw=write\nsize=64m\ntime_based\nruntime=20\n{}\n", options.replace(' ', "\n"))
}

#[test]
fn the_depth_found_is_the_largest_with_the_latencies_asked_for() {
    // One at a time takes 100 us, so that n in flight take n x 100 us.
    for (target_us, iodepth, found) in [(450, 32, 4), (1650, 32, 16), (1650, 8, 8), (100, 32, 1)] {
        let options = "latency_window=100ms latency_percentile=99";
        let text = target(&format!("iodepth={iodepth} latency_target={target_us} {options}"));
        let one = entry("100us", 1, &text);
        assert_eq!(one["latency_depth"], found, "{target_us} us: {one}");
        assert_eq!(one["error"], 0);
        assert_eq!(one["latency_target"], target_us * 1000);
        assert_eq!(
            (&one["latency_percentile"], &one["latency_window"]),
            (&99.0.into(), &100_000.into())
        );
        // All that is measured is the last window, at that depth.
        let ios = one["write"]["total_ios"].as_u64().unwrap();
        assert!((990..=1020).contains(&ios), "{ios} in a window");
        assert!((100..=102).contains(&one["job_runtime"].as_u64().unwrap()));
        let slowest = one["write"]["lat_ns"]["max"].as_u64().unwrap();
        assert_eq!(slowest, found as u64 * 100_000);
    }
}

#[test]
fn a_depth_is_found_window_by_window() {
    // 1, 2, 4, 8 pass; 16 does not, nor 12, 10 and 9 between; another window at 8, and the last.
    let text = target("iodepth=16 latency_target=850 latency_window=100ms latency_percentile=99");
    let result = play(null("100us", 1), &text);
    assert_eq!(result.reports[0].depth, Some(8));
    let (measured, ended) = (result.spans[0].measured_from_ns, result.spans[0].ended_ns);
    assert!((900_000_000..930_000_000).contains(&measured), "{measured}");
    assert!((100_000_000..101_000_000).contains(&(ended - measured)));
    // Rows and segments are of that window alone, too.
    let ios = result.reports[0].directions[WRITE].tally.ios();
    assert_eq!(result.series.ios.iter().sum::<u64>(), ios);
    let counted: u64 = result.attribution[0][WRITE].rows().map(|(_, row)| row.ios).sum();
    assert_eq!(counted, ios);
    // One that goes on ends with its time, and all of it is measured.
    let goes_on = play(null("100us", 1), &format!("{text}latency_run=1\nruntime=1\n"));
    assert_eq!(goes_on.reports[0].runtime_ns[WRITE] / 1_000_000, 1000);
    assert!(goes_on.reports[0].directions[WRITE].tally.ios() > 9000);
}

#[test]
fn a_share_of_the_ios_may_be_slower() {
    let most = |percentile: &str| {
        let text = target(&format!(
            "iodepth=64 latency_target=450 latency_window=100ms latency_percentile={percentile}"
        ));
        entry("100us", 1, &text)["latency_depth"].clone()
    };
    assert_eq!((most("99"), most("0")), (4.into(), 64.into()));
    // With all of them each that is late counts at once, also those in flight by then: so does fio 3.33 fail on a
    // server that takes one at a time, when its depth is doubled from 8 to 16.
    let text = target("iodepth=16 latency_target=850 latency_window=100ms");
    let failed = entry("100us", 1, &text);
    assert_eq!((&failed["error"], &failed["latency_depth"]), (&110.into(), &1.into()));
}

#[test]
fn targets_mean_what_they_mean_to_fio() {
    // Without ioengine=null's latency there is nothing to be measured: huge, missing and impossible targets.
    let text = |options: &str| {
        let options = options.replace(' ', "\n");
        format!(
            "[a]\nioengine=psync\nfilename=FILE\nrw=write\nsize=1m\ntime_based\nruntime=2\niodepth=16\n{options}\n"
        )
    };
    let files = [
        text("latency_target=10s latency_window=100ms"),
        text("latency_target=0 latency_window=100ms"),
        text("latency_target=1 latency_window=100ms"),
        text("latency_target=1 latency_window=100ms latency_percentile=90"),
        text("latency_target=10s latency_window=100ms latency_run=1"),
    ];
    let what = ["error", "latency_depth", "latency_target", "latency_percentile", "latency_window"];
    let told = |job: &Value| {
        let lasted = job["job_runtime"].as_f64().unwrap();
        (what.map(|name| job[name].clone()), (lasted / 300.0).round())
    };
    let theirs = fio_jobs(files.iter().map(String::as_str));
    let expected = [(0, 16, 0.0), (0, 16, 7.0), (110, 1, 0.0), (0, 1, 7.0), (0, 16, 7.0)];
    for (at, text) in files.iter().enumerate() {
        let ours = told(&entry("20us", 16, text));
        let (error, depth, lasted) = expected[at];
        assert_eq!(
            (&ours.0[0], &ours.0[1], ours.1),
            (&json!(error), &json!(depth), lasted),
            "{text}"
        );
        if let Some(theirs) = &theirs {
            assert_eq!(told(&theirs[at][0]), ours, "{text}");
        }
    }
}

fn rated(options: &str) -> String {
    let options = options.replace(' ', "\n");
    format!(
        "[global]\nioengine=null\nsize=1g\nrw=write\nrate_iops=1000\ntime_based\nruntime=8\n{options}\n"
    )
}

#[test]
fn a_job_ends_in_its_steady_state_as_in_fio() {
    let files = [
        rated("[a] ss_dur=3"),
        rated("[a] ss_dur=3 steadystate=iops:50% ramp_time=2"),
        rated("[a] ss_dur=2 ss=bw:50% ss_ramp=2"),
        rated("[a] ss_dur=2 ss=iops:400000"),
        rated("[a] steadystate=iops:50%"),
        rated("[a] ss_dur=3 ss=iops_slope:0%"),
        rated("group_reporting ss_dur=2 ss=iops_slope:50% [a] numjobs=2 [b] rate_iops=500"),
        rated("ss_dur=2 ss=bw:50% [a] [b]"),
        rated("[a] ss_dur=2 ss=bw_slope:90% [b] new_group runtime=5"),
        rated("exitall [a] ss_dur=2 ss=iops:50% [b] new_group exit_what=all"),
    ];
    let seconds = [3, 3, 5, 2, 8, 8, 2, 2, 2, 2];
    let theirs = fio_jobs(files.iter().map(String::as_str));
    for (at, text) in files.iter().enumerate() {
        let document = document_text(null("1us", 64), text);
        let document = serde_json::from_str::<Value>(&document).unwrap();
        let ours = document["jobs"].as_array().unwrap();
        assert_eq!(
            ours[0]["job_runtime"].as_u64().unwrap() / 1000 / (if at == 6 { 3 } else { 1 }),
            seconds[at],
            "{text}"
        );
        let Some(theirs) = theirs.as_ref().map(|theirs| &theirs[at]) else { continue };
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(theirs) {
            let states = [ours, theirs].map(|one| &one["steadystate"]);
            for name in ["ss", "duration"] {
                assert_eq!(states[0][name], states[1][name], "{name}: {text}");
            }
            // When fio finds its rates steady depends on what else the machine does.
            if long() {
                assert_eq!(states[0]["attained"], states[1]["attained"], "{text}");
                let times = [ours, theirs].map(|one| one["write"]["runtime"].as_f64().unwrap());
                // fio looks a little before the seconds of a job are full.
                assert!((times[0] - times[1]).abs() < 400.0, "{times:?} ms: {text}");
            }
            let keys = states.map(|one| one.as_object().map(|one| one.keys().collect::<Vec<_>>()));
            assert_eq!(keys[0], keys[1], "{text}");
            if !states[0].is_null() {
                held_by_its_data(states[0]);
                held_by_its_data(states[1]);
            }
        }
    }
}

/// What a document says of a steady state follows from the rates that it shows.
fn held_by_its_data(state: &Value) {
    let numbers = |name: &str| -> Vec<f64> {
        state["data"][name].as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect()
    };
    let kind = state["ss"].as_str().unwrap();
    let values = numbers(if kind.starts_with("iops") { "iops" } else { "bw" });
    let n = values.len() as f64;
    assert_eq!(n, state["duration"].as_f64().unwrap());
    let mean = values.iter().sum::<f64>() / n;
    let x_mean = (n - 1.0) / 2.0;
    let products = values.iter().zip(0..).map(|(y, x)| (f64::from(x) - x_mean) * (y - mean));
    let squares: f64 = (0..values.len()).map(|x| (x as f64 - x_mean).powi(2)).sum();
    let slope = products.sum::<f64>() / squares;
    let far = values.iter().map(|y| (y - mean).abs()).fold(0.0, f64::max);
    let (name, value) =
        if kind.contains("slope") { ("slope", slope) } else { ("max_deviation", far) };
    let told = state[name].as_f64().unwrap();
    assert!((told - value).abs() <= 1e-5 * mean.max(1.0), "{name} {told}, of {values:?} {value}");
    let share = if kind.ends_with('%') { 100.0 * value / mean } else { value };
    let text = state["criterion"].as_str().unwrap();
    let criterion: f64 = text.trim_end_matches('%').parse().unwrap();
    assert!(
        (criterion - share).abs() <= 1e-3 + 1e-3 * share.abs(),
        "criterion {criterion}, not {share}"
    );
    let limit: f64 = kind.split_once(':').unwrap().1.trim_end_matches('%').parse().unwrap();
    assert_eq!(state["attained"] == 1, criterion.abs() < limit, "{state}");
    for (name, mean_name) in [("iops", "iops_mean"), ("bw", "bw_mean")] {
        let mean = numbers(name).iter().sum::<f64>() / n;
        assert_eq!(state["data"][mean_name].as_f64().unwrap(), mean.floor());
    }
}

#[test]
fn a_steady_state_is_one_of_the_rates_of_its_window() {
    // Twice as fast from the third second on.
    let text = "[global]\nrw=write\nsize=1g\ntime_based\nruntime=20\niodepth=2\ngroup_reporting\n\
                ss=iops:1%\nss_dur=4\n[a]\n[b]\nstartdelay=2\n";
    let result = play(null("1ms", 64), text);
    let state = result.reports[0].steady.clone().unwrap();
    assert!(state.attained);
    assert_eq!(state.rates.iter().map(|(iops, _)| *iops).collect::<Vec<_>>(), [4000; 4]);
    assert_eq!(result.simulated_ns / 1_000_000, 6001);
}

#[test]
fn groups_that_disagree_about_their_steady_state_are_refused_as_by_fio() {
    let text = "[a]\nss_dur=2\nsize=1m\nioengine=null\n[b]\nsize=1m\nioengine=null\n";
    let message = try_jobs(text).unwrap_err().to_string();
    assert!(message.contains("[a] steadystate_duration: is to be the same"), "{message}");
    for fine in ["[a]\nss_dur=2\n[b]\nnew_group\n", "[a]\nss=bw:1\n[b]\n"] {
        assert!(try_jobs(fine).is_ok(), "{fine}");
    }
    for wrong in ["iops", "iops:", "ios:2", "iops_slope:x%", "bw:-1"] {
        let message = try_jobs(&format!("[a]\nss={wrong}\n")).unwrap_err().to_string();
        assert!(message.contains("iops, iops_slope, bw or bw_slope with a limit"), "{message}");
    }
}
