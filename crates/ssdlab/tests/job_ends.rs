//! Jobs that end before their amount is done, beside those of the real fio, and on devices whose behaviour is known in
//! closed form.

use crate::common::lab_reference;
use crate::support::{document_text, fio_jobs, jobs, null, play, try_jobs};
use serde_json::Value;
use ssdlab::rig::Rig;
use ssdlab::run::{RunOptions, run};

/// I/Os of each job of a document.
fn ios(document: &[Value]) -> Vec<u64> {
    let of = |job: &Value| {
        let done = ["read", "write", "trim"].map(|ddir| job[ddir]["total_ios"].as_u64().unwrap());
        done.iter().sum()
    };
    document.iter().map(of).collect()
}

/// What ssdlab makes of a job file on a device that is never busy.
fn ours(text: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(&document_text(null("1us", 64), text)).unwrap();
    document["jobs"].as_array().unwrap().clone()
}

/// 100 I/Os per second each; `short` ends after 300 ms.
const RATED: &str = "[global]\nioengine=null\nsize=1g\nrw=write\nrate_iops=100\n";
const SHORT: &str = "number_ios=30\n";
const LONG: &str = "time_based\nruntime=20\n";

/// Job files, and I/Os of each job; those of fio 3.33 come as near as the machine keeps time.
fn early_ends() -> Vec<(String, Vec<u64>)> {
    let file = |sections: &str, ios: &[u64]| {
        let sections = sections.replace("SHORT", SHORT.trim()).replace("LONG", LONG.trim());
        (format!("{RATED}{}\n", sections.replace(' ', "\n")), ios.to_vec())
    };
    vec![
        file("exitall [a] SHORT [b] LONG", &[30, 30]),
        file("[a] SHORT [b] LONG exitall", &[30, 30]),
        file("exitall [a] numjobs=2 SHORT [b] numjobs=2 LONG", &[30, 30, 30, 30]),
        // Only its own group, a stonewall begins another.
        file("exitall [a] SHORT [b] new_group time_based runtime=1", &[30, 100]),
        file("exitall [a] SHORT [b] LONG [c] stonewall number_ios=10", &[30, 30, 10]),
        file("exitall exit_what=all [a] SHORT [b] new_group LONG", &[30, 30]),
        file("exitall exit_what=all [a] SHORT [b] LONG [c] stonewall number_ios=10", &[30, 30, 0]),
        file("exitall exit_what=stonewall [a] SHORT [b] new_group LONG", &[30, 30]),
        file(
            "exitall exit_what=stonewall [a] SHORT [b] LONG [c] stonewall number_ios=10",
            &[30, 30, 10],
        ),
        // What counts is the option of the one that ends.
        file("exitall [a] exit_what=all SHORT [b] new_group LONG", &[30, 30]),
        file("exitall [a] SHORT [b] exit_what=all new_group time_based runtime=1", &[30, 100]),
        // Of those that wait, whoever is meant never starts.
        file("exitall [a] SHORT [b] startdelay=1 number_ios=10", &[30, 0]),
        file("exitall exit_what=stonewall [a] SHORT [b] startdelay=1 number_ios=10", &[30, 10]),
        // To fio a job in its ramp does not run yet.
        file(
            "exitall exit_what=stonewall [a] SHORT [b] ramp_time=1 time_based runtime=1",
            &[30, 100],
        ),
        file("[a] exitall_on_error SHORT [b] time_based runtime=1", &[30, 100]),
        file(
            "[a] max_latency=1us,0 time_based runtime=1 [b] exitall max_latency=1us,0 SHORT",
            &[30, 30],
        ),
    ]
}

#[test]
fn jobs_end_together_as_fio_ends_them() {
    let theirs = fio_jobs(early_ends().iter().map(|(text, _)| text.as_str()));
    for (at, (text, expected)) in early_ends().iter().enumerate() {
        assert_eq!(ios(&ours(text)), *expected, "{text}");
        let Some(theirs) = theirs.as_ref().map(|theirs| ios(&theirs[at])) else { continue };
        let near = |(a, b): (&u64, &u64)| (*a == 0) == (*b == 0) && a.abs_diff(*b) <= 8 + b / 3;
        assert!(
            theirs.iter().zip(expected).all(near),
            "fio does {theirs:?}, not {expected:?}: {text}"
        );
    }
}

#[test]
fn a_job_that_was_never_begun_has_an_empty_report() {
    let text = format!("{RATED}exitall\nexit_what=all\n[a]\n{SHORT}[b]\nstonewall\n{SHORT}");
    let entry = &ours(&text)[1];
    assert_eq!((&entry["jobname"], &entry["error"]), (&Value::from("b"), &Value::from(0)));
    assert_eq!(entry["job_runtime"], 0);
}

#[test]
fn a_job_ends_at_the_first_io_that_takes_too_long() {
    let fails = |options: &str| format!("[a]\nrw=randrw\nsize=1m\nioengine=psync\n{options}\n");
    // Two at a time on one server: the second of them takes twice as long.
    let result = play(null("100us", 1), &fails("iodepth=2\nmax_latency=150"));
    let failure = result.reports[0].failure.clone().unwrap();
    assert_eq!(failure.error, 110);
    assert!(failure.problem.starts_with("max_latency=150us: a "), "{}", failure.problem);
    assert!(failure.problem.ends_with(" took 200us"), "{}", failure.problem);
    // One more is in flight by then, and is seen through.
    assert_eq!(
        (result.simulated_ns, result.reports[0].levels.counts.iter().sum()),
        (300_000, 3u64)
    );
    for fine in ["max_latency=200us", "max_latency=0", "max_latency=100us\niodepth=1"] {
        let result = play(null("100us", 1), &fails(&format!("iodepth=2\n{fine}")));
        assert_eq!(result.reports[0].failure, None, "{fine}");
    }
    // A limit for each direction: reads are as slow as they like.
    let one = play(null("100us", 1), &fails("rw=rw\nmax_latency=0,50us"));
    assert_eq!(one.reports[0].directions[1].tally.ios(), 1);
    // Not in the ramp, nor is anything flushed behind a failure.
    let ramp =
        play(null("100us", 1), &fails("rw=write\nramp_time=10ms\nmax_latency=50\nend_fsync=1"));
    assert_eq!(ramp.simulated_ns, 10_100_000);
    assert_eq!(ramp.reports[0].directions[3].tally.ios(), 0);

    let text = "[a]\nrw=write\nsize=1m\nmax_latency=1us\nioengine=psync\nfilename=FILE\n";
    let mine: Value = serde_json::from_str(&document_text(null("2us", 1), text)).unwrap();
    assert_eq!(
        (&mine["jobs"][0]["error"], ios(&[mine["jobs"][0].clone()])),
        (&110.into(), vec![1])
    );
    assert_eq!(mine["ssdlab"]["failed_jobs"][0]["job"], "a");
    let Some(theirs) = fio_jobs([text]) else { return };
    assert_eq!((&theirs[0][0]["error"], ios(&theirs[0])), (&110.into(), vec![1]));
}

#[test]
fn a_device_is_filled_to_its_end() {
    // As fio 3.33 fills a loop device of 8 MiB.
    let cases = [
        ("rw=write", 128),
        ("rw=write size=4m", 64),
        ("rw=write size=50%", 128),
        ("rw=write offset=2m", 96),
        ("rw=write loops=3", 384),
        ("rw=write bs=48k", 170),
        ("rw=write io_size=20m", 320),
        ("rw=randwrite", 128),
        ("rw=read", 128),
    ];
    for (options, expected) in cases {
        let text = format!("[a]\nbs=64k\nfill_device=1\n{}\n", options.replace(' ', "\n"));
        let device = "[device]\nkind = \"null\"\ncapacity = \"8MiB\"\nservice_time = \"1us\"\n";
        let result = play(Rig::parse(device, "null").unwrap().build(1, false).unwrap(), &text);
        let tallies = result.reports[0].directions.iter().map(|one| one.tally.ios());
        assert_eq!(tallies.sum::<u64>(), expected, "{options}");
    }
    for endless in
        ["rw=randwrite\nnorandommap", "rw=rw", "rw=write\nzonemode=strided\nzonesize=64k"]
    {
        let text = format!("[a]\nfill_device=1\n{endless}\n");
        let message = try_jobs(&text).unwrap_err().to_string();
        assert!(message.contains("fill_device: fills by I/Os of one direction"), "{message}");
    }
}

#[test]
fn a_limit_that_is_kept_changes_nothing() {
    let text =
        "[a]\nrw=randrw\nbsrange=4k-64k\nsize=16m\niodepth=8\nfsync=7\nnumjobs=2\nramp_time=5ms\n";
    let rig = lab_reference(&[("capacity", "64MiB")]);
    let plain = document_text(rig.build(1, false).unwrap(), text);
    let watched = document_text(rig.build(1, false).unwrap(), &format!("{text}max_latency=1h\n"));
    assert_eq!(plain, watched.replace(",\n        \"max_latency\": \"1h\"", ""));
}

#[test]
fn a_synchronous_write_takes_as_long_as_a_write_and_a_flush() {
    let rig = lab_reference(&[
        ("capacity", "64MiB"),
        ("write_buffer", "{ size = \"1MiB\", power_loss_protected = false }"),
    ]);
    let play = |options: &str| {
        let mut device = rig.build(1, false).unwrap();
        assert!(device.is_volatile());
        let text = format!("[a]\nrw=randwrite\nbs=4k\nnumber_ios=500\n{options}\n");
        run(device.as_mut(), &jobs(&text), &RunOptions::default(), &mut ()).unwrap()
    };
    let (plain, apart) = (play(""), play("fsync=1"));
    for sync in ["sync=1", "sync=sync", "sync=dsync"] {
        let durable = play(sync);
        let told = &durable.reports[0].directions;
        assert_eq!((told[1].tally.ios(), told[3].tally.ios()), (500, 0));
        // The last flush of fsync=1 is never sent.
        let flushes = apart.reports[0].directions[3].tally.ios();
        assert_eq!(flushes, 499);
        let last = durable.simulated_ns - apart.simulated_ns;
        assert!(last > 0 && last < 2 * durable.simulated_ns / 500, "{sync}: {last}");
        let parts: u64 = durable.attribution[0][1].total().iter().sum();
        assert_eq!(u128::from(parts), told[1].tally.lat.sum());
        assert!(durable.simulated_ns > 2 * plain.simulated_ns);
    }
    assert_eq!(play("sync=none").simulated_ns, plain.simulated_ns);
    // Without a volatile cache a write is durable when it is answered.
    let safe = |options: &str| {
        let text = format!("[a]\nrw=randwrite\nnumber_ios=500\n{options}\n");
        crate::support::play(null("10us", 1), &text).simulated_ns
    };
    assert_eq!(safe("sync=1"), safe(""));
}
