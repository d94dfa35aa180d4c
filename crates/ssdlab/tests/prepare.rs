//! Preconditioning, and the write amplification that runs report, on a small simulated drive.

use crate::support;

use ssdlab::device::Device;
use ssdlab::rig::Rig;
use ssdlab::run::{
    Kept, Observer, Progress, RunOptions, RunResult, prepare, run, write_amplification,
};
use ssdlab::{Error, Result};
use support::{jobs, null};

const REFERENCE: &str = include_str!("../../../python/ssdlab/profiles/lab-reference.toml");

/// The reference drive with a capacity of 1 GiB.
fn drive(over_provisioning: &str) -> Box<dyn Device> {
    let mut rig = Rig::parse(REFERENCE, "lab-reference").unwrap();
    rig.set("capacity", "1GiB").unwrap();
    rig.set("ftl.over_provisioning", over_provisioning).unwrap();
    rig.build(1, false).unwrap()
}

fn counter(device: &dyn Device, wanted: &str) -> u64 {
    let mut found = None;
    device.counters(&mut |name, value| {
        if name == wanted {
            found = Some(value);
        }
    });
    found.unwrap_or_else(|| panic!("no counter {wanted}"))
}

fn prepared(state: &str, device: &mut dyn Device) -> Result<()> {
    prepare(device, &state.parse()?, 1, &mut ()).map(|_| ())
}

#[test]
fn fob_leaves_a_device_untouched() {
    let mut device = drive("0.28");
    prepared("fob", device.as_mut()).unwrap();
    assert_eq!(counter(device.as_ref(), "host_units_written"), 0);
    assert_eq!(write_amplification(device.as_ref()), None);
}

#[test]
fn a_sequential_fill_writes_every_unit_once_without_amplification() {
    let mut device = drive("0.28");
    prepared("sequential", device.as_mut()).unwrap();
    let units = device.capacity() / 4096;
    assert_eq!(counter(device.as_ref(), "host_units_written"), units);
    assert_eq!(counter(device.as_ref(), "units_mapped"), units);
    assert_eq!(write_amplification(device.as_ref()), Some(1.0));
}

#[test]
fn data_does_not_shrink_unless_it_is_told_to() {
    let filled = |state: &str| {
        let mut rig = Rig::parse(REFERENCE, "lab-reference").unwrap();
        for (key, value) in [
            ("capacity", "1GiB"),
            ("ftl.compression.granule", "512B"),
            ("write_buffer", "{ size = \"1MiB\", power_loss_protected = true }"),
        ] {
            rig.set(key, value).unwrap();
        }
        let mut device = rig.build(1, false).unwrap();
        prepared(state, device.as_mut()).unwrap();
        let units = device.capacity() / 512;
        let share = counter(device.as_ref(), "units_mapped") as f64 / units as f64;
        (share, write_amplification(device.as_ref()).unwrap())
    };
    assert_eq!(filled("sequential"), (1.0, 1.0));
    let (share, amplification) = filled("compressible:50,sequential");
    assert_eq!((share, amplification), (0.5, 0.5));
    // What is written once more shrinks, the rest stays as it was.
    let (share, _) = filled("sequential,compressible:100,random:1");
    let expected = (-1.0f64).exp() + (1.0 - (-1.0f64).exp()) / 8.0;
    assert!((share - expected).abs() < 0.002, "{share} of the flash, expected {expected}");
}

#[test]
fn random_writes_come_on_top_of_the_fill() {
    let mut device = drive("0.28");
    prepared("random:0.5", device.as_mut()).unwrap();
    let units = device.capacity() / 4096;
    assert_eq!(counter(device.as_ref(), "host_units_written"), units + units / 2);
}

#[test]
fn a_steady_drive_amplifies_in_the_run_as_it_did_at_the_end_of_preparing() {
    let text = "[a]\nrw=randwrite\nbs=4k\niodepth=32\nsize=1g\nnorandommap=1\n";
    let measured = |state: &str| -> RunResult {
        let mut device = drive("0.28");
        prepared(state, device.as_mut()).unwrap();
        run(device.as_mut(), &jobs(text), &RunOptions::default(), &mut ()).unwrap()
    };
    let (steady, long) = (measured("steady"), measured("random:10"));
    let waf = |result: &RunResult| result.waf.unwrap();
    assert!((waf(&steady) / waf(&long) - 1.0).abs() < 0.02, "{} {}", waf(&steady), waf(&long));
    // The fill, at 1.0, counts in the lifetime but not in the measured phase.
    assert!(steady.waf_lifetime.unwrap() < waf(&steady));
    assert_eq!(steady.spans[0].waf, steady.waf);
}

#[test]
fn a_device_without_flash_is_steady_at_once() {
    let mut device = null("10us", 1);
    prepared("steady", device.as_mut()).unwrap();
    assert_eq!(write_amplification(device.as_ref()), None);
    let written = counter(device.as_ref(), "host_bytes_written");
    assert_eq!(written, device.capacity() * 3 / 2);
}

#[test]
fn preparing_can_be_stopped_and_says_how_far_it_is() {
    struct Stop(Vec<f64>);
    impl Observer for Stop {
        fn progress(&mut self, progress: &Progress) -> bool {
            self.0.push(progress.fraction);
            self.0.len() < 4
        }
    }
    let mut stop = Stop(Vec::new());
    let mut device = drive("0.28");
    let outcome = prepare(device.as_mut(), &"random:4".parse().unwrap(), 1, &mut stop);
    assert_eq!(outcome.err(), Some(Error::Cancelled));
    assert!(stop.0.is_sorted() && stop.0.iter().all(|f| (0.0..=1.0).contains(f)), "{:?}", stop.0);
}

#[test]
fn the_device_series_begins_before_the_run_and_ends_with_the_counters() {
    let mut device = drive("0.28");
    prepared("random:2", device.as_mut()).unwrap();
    let before = counter(device.as_ref(), "programs_collection");
    let text = "[a]\nrw=randwrite\nbs=4k\niodepth=32\ntime_based=1\nruntime=3\n";
    let result = run(device.as_mut(), &jobs(text), &RunOptions::default(), &mut ()).unwrap();
    let series = &result.device_series;
    assert_eq!(series.time_s[..4], [0.0, 1.0, 2.0, 3.0]);
    let column = series.columns.iter().find(|c| c.name == "programs_collection").unwrap();
    assert_eq!(column.at(0), before);
    assert!(column.values.is_sorted());
    assert_eq!(column.values.last(), Some(&counter(device.as_ref(), "programs_collection")));
}

/// Kept over time: name and value at the beginning and at the end of each counter, and how many values are held.
fn over_time(kept: Kept) -> (RunResult, Vec<(String, u64, u64)>, usize) {
    let member = REFERENCE.replace("[device", "[device.member");
    let text = format!("{member}\n[device]\nkind = \"array\"\nlevel = \"raid0\"\ncount = 3\n");
    let mut rig = Rig::parse(&text, "a").unwrap();
    rig.set("member.capacity", "1GiB").unwrap();
    let mut device = rig.build(1, false).unwrap();
    let jobs = jobs("[a]\nrw=randwrite\nbs=4k\nrate_iops=500\ntime_based=1\nruntime=10\n");
    let options = RunOptions { kept, ..RunOptions::default() };
    let result = run(device.as_mut(), &jobs, &options, &mut ()).unwrap();
    let columns = &result.device_series.columns;
    let rows = result.device_series.time_s.len();
    let ends = columns.iter().map(|c| (c.name.clone(), c.at(0), c.at(rows - 1))).collect();
    let held = columns.iter().map(|c| c.values.len()).sum();
    (result, ends, held)
}

#[test]
fn of_the_members_of_an_array_what_is_shown_is_kept_over_time_and_all_where_it_is_asked_for() {
    let (shown, few, held) = over_time(Kept::Shown);
    let (all, every, held_of_all) = over_time(Kept::All);
    assert_eq!(shown.counters, all.counters);
    let at_the_end: Vec<_> = every.iter().map(|(name, _, last)| (name.clone(), *last)).collect();
    assert_eq!(at_the_end, all.counters);
    // The same values, in the same order.
    let mut rest = every.iter();
    assert!(few.iter().all(|one| rest.any(|other| other == one)));
    let own = |columns: &[(String, u64, u64)]| {
        columns.iter().filter(|(name, ..)| !name.contains('/')).count()
    };
    assert_eq!(own(&few), own(&every));
    for name in ["member_busy_ns", "programs_host", "programs_collection", "free_superblocks"] {
        assert_eq!(
            few.iter().filter(|(of, ..)| of.ends_with(&format!("/{name}"))).count(),
            3,
            "{name}"
        );
    }
    assert!(few.len() < every.len() / 3, "{} of {}", few.len(), every.len());
    // What never changes is held once.
    assert!(held_of_all < every.len() * 5 && held < few.len() * 8, "{held_of_all}, {held}");
}

#[test]
fn ios_that_take_no_time_are_counted_and_have_no_rate() {
    // A fresh drive without a link or controller time answers reads at once.
    let text = "[a]\nrw=randread\nbs=4k\nsize=100%\nnumber_ios=100\n";
    let mut device = drive("0.28");
    let result = run(device.as_mut(), &jobs(text), &RunOptions::default(), &mut ()).unwrap();
    let read = &result.reports[0].directions[0].tally;
    assert_eq!((read.ios(), read.lat.max(), result.simulated_ns), (100, 0, 0));
    assert_eq!((result.series.ios[0], result.series.iops[0]), (100, 0.0));
}

#[test]
fn a_time_based_job_on_a_device_that_takes_no_time_is_an_error() {
    let text = "[a]\nrw=randread\nbs=4k\nsize=100%\nnorandommap\ntime_based\nruntime=1\n";
    let mut device = drive("0.28");
    let outcome = run(device.as_mut(), &jobs(text), &RunOptions::default(), &mut ());
    let message = outcome.err().unwrap().to_string();
    assert!(message.contains("[a] time_based") && message.contains("no time"), "{message}");
}

#[test]
fn trim_empties_a_drive_and_purge_makes_it_new_but_for_the_wear() {
    let mut device = drive("0.28");
    prepared("random:1,trim", device.as_mut()).unwrap();
    assert_eq!(counter(device.as_ref(), "units_mapped"), 0);
    let free = counter(device.as_ref(), "free_superblocks");
    let erased = counter(device.as_ref(), "erases_sum");
    prepared("purge", device.as_mut()).unwrap();
    let fresh = counter(drive("0.28").as_ref(), "free_superblocks");
    assert!(free < fresh);
    assert_eq!(counter(device.as_ref(), "free_superblocks"), fresh);
    assert_eq!(counter(device.as_ref(), "erases_sum") - erased, fresh - free);
}

#[test]
fn idle_time_passes_before_the_run_and_lets_the_drive_collect() {
    let rig = |text: &str| {
        let mut rig = Rig::parse(REFERENCE, "lab-reference").unwrap();
        rig.set("capacity", "64MiB").unwrap();
        rig.set("ftl.gc.high", "4").unwrap();
        rig.set("ftl.gc.idle_after", "10ms").unwrap();
        let mut device = rig.build(1, false).unwrap();
        let elapsed = prepare(device.as_mut(), &text.parse().unwrap(), 1, &mut ()).unwrap();
        (device, elapsed)
    };
    let (busy, none) = rig("random:2");
    let (mut rested, elapsed) = rig("random:2,idle:60s");
    assert_eq!((none, elapsed), (0, 60_000_000_000));
    let free = |device: &dyn Device| counter(device, "free_superblocks");
    assert!(free(rested.as_ref()) > free(busy.as_ref()));
    let options = RunOptions { elapsed_ns: elapsed, ..RunOptions::default() };
    let jobs = jobs("[w]\nrw=randwrite\nbs=4k\niodepth=1\nnumber_ios=10\n");
    let result = run(rested.as_mut(), &jobs, &options, &mut ()).unwrap();
    // Ten writes one after another: the run's time begins at 0, after the rest.
    assert!(result.simulated_ns < 100_000_000, "{}", result.simulated_ns);
}
