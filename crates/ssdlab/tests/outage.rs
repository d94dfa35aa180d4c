//! Losses of power as users ask for them: in a rig, in a session. The host goes on, and every I/O ends.

use crate::support;

use ssdlab::Error;
use ssdlab::rig::Rig;
use ssdlab::run::{RunOptions, RunResult, Session};
use ssdlab::units::Nanos;
use support::jobs;

const DISK: &str = "[device]\nkind = \"hdd\"\ncapacity = \"6MiB\"\nrpm = 7200\nseek_average = \"8.5ms\"\n\
                    sustained_outer = \"2MB/s\"\nsustained_inner = \"1MB/s\"\nspin_up = \"2s\"\n\
                    buffer = \"256KiB\"\nwrite_cache_enabled = true\n";
/// A card with a battery before a mirror of cached disks: something of everything.
const TREE: &str = "power_loss = [\"900ms\", \"400ms\"]\n\
    [device]\nkind = \"controller\"\nbandwidth = \"1GB/s\"\n\
    cache = { size = \"256KiB\", battery = true }\n\
    [device.below]\nkind = \"array\"\nlevel = \"raid1\"\ncount = 2\nchunk = \"64KiB\"\n\
    [device.below.member]\nkind = \"cache\"\nmode = \"write-back\"\nblock = \"16KiB\"\n\
    [device.below.member.cache]\nkind = \"null\"\ncapacity = \"600KiB\"\nservice_time = \"7us\"\n\
    [device.below.member.below]\nkind = \"null\"\ncapacity = \"4MiB\"\nservice_time = \"200us\"\n";
const MIXED: &str = "[m]\nrw=randrw\nbs=4k\niodepth=8\nfsync=16\ntime_based\nruntime=1500ms\n";

fn rig(text: &str) -> Rig {
    Rig::parse(text, "rig").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn session(rig: &Rig) -> Session {
    Session::new(rig.build(1, false).unwrap(), 1)
}

fn options(rig: &Rig) -> RunOptions {
    let power_loss_ns = rig.power_loss.iter().map(|time| time.0).collect();
    RunOptions { power_loss_ns, ..RunOptions::default() }
}

fn counter(result: &RunResult, name: &str) -> u64 {
    let is = |of: &str| of == name || of.ends_with(&format!("/{name}"));
    result.counters.iter().filter(|(of, _)| is(of)).map(|(_, n)| n).sum()
}

fn worst_ns(result: &RunResult) -> u64 {
    let directions = result.reports.iter().flat_map(|report| &report.directions);
    directions.map(|direction| direction.tally.lat.max()).max().unwrap()
}

#[test]
fn an_io_cut_by_a_loss_of_power_ends_when_the_disk_is_up_again() {
    let rig = rig(&format!("power_loss = [\"1s\"]\n{DISK}"));
    let job = "[r]\nrw=randread\nbs=4k\niodepth=4\ntime_based\nruntime=4s\n";
    let result = session(&rig).run(&jobs(job), &options(&rig), &mut ()).unwrap();
    assert_eq!(counter(&result, "power_losses"), 1);
    assert_eq!(counter(&result, "power_commands_cut"), 4);
    let worst = worst_ns(&result);
    assert!((2_000_000_000..2_200_000_000).contains(&worst), "{worst}");
    // Nothing ends in between: three intervals of four have I/Os, and one has none.
    let without = session(&rig).run(&jobs(job), &RunOptions::default(), &mut ()).unwrap();
    let ios = |result: &RunResult| result.reports[0].directions[0].tally.ios();
    let (cut, whole) = (ios(&result), ios(&without));
    assert!(cut > whole * 4 / 10 && cut < whole * 6 / 10, "{cut} of {whole}");
}

#[test]
fn a_tree_loses_power_as_a_whole_as_often_as_its_rig_says() {
    let rig = rig(TREE);
    let mut session = session(&rig);
    let result = session.run(&jobs(MIXED), &options(&rig), &mut ()).unwrap();
    let losses: Vec<&(String, u64)> =
        result.counters.iter().filter(|(name, _)| name.ends_with("power_losses")).collect();
    // The card, the array, two caches, and a pool and a cache device of each.
    assert_eq!(losses.len(), 8, "{losses:?}");
    assert!(losses.iter().all(|(_, count)| *count == 2), "{losses:?}");
    session.run(&jobs(MIXED), &options(&rig), &mut ()).unwrap();
    // The times are those of each run.
    let total: u64 =
        session.counters().iter().filter(|(n, _)| n == "power_losses").map(|(_, n)| n).sum();
    assert_eq!(total, 4);
}

#[test]
fn the_same_rig_job_and_seed_give_the_same_result_over_losses_of_power() {
    let rig = rig(TREE);
    let run = || session(&rig).run(&jobs(MIXED), &options(&rig), &mut ()).unwrap();
    assert_eq!(format!("{:?}", run()), format!("{:?}", run()));
}

#[test]
fn a_session_can_lose_power_between_two_runs() {
    let rig = rig(DISK);
    let mut session = session(&rig);
    let ready = session.power_cut().unwrap();
    assert_eq!(ready, 2_000_000_000);
    assert_eq!(session.state(), "loss of power");
    session.idle(Nanos::millis(500)).unwrap();
    let job = "[r]\nrw=randread\nbs=4k\nnumber_ios=1\n";
    let result = session.run(&jobs(job), &RunOptions::default(), &mut ()).unwrap();
    let worst = worst_ns(&result);
    assert!((1_500_000_000..1_600_000_000).contains(&worst), "{worst}");
}

#[test]
fn losses_of_power_stand_in_the_rig_and_can_be_set() {
    let mut rig = rig(DISK);
    assert!(!rig.to_toml().contains("power_loss"));
    rig.set("power_loss", "[\"10s\", \"25s\"]").unwrap();
    assert_eq!(rig.power_loss, [Nanos::millis(10_000), Nanos::millis(25_000)]);
    assert_eq!(Rig::parse(&rig.to_toml(), "again").unwrap().power_loss, rig.power_loss);
    for wrong in ["10s", "[10]", "[\"soon\"]"] {
        let Err(Error::Rig { key, problem }) = rig.set("power_loss", wrong) else {
            panic!("{wrong} is taken");
        };
        assert!(key.contains("power_loss") && problem.contains("[\"10s\", \"25s\"]"), "{problem}");
    }
}

#[test]
fn rigs_around_one_that_loses_power_lose_it_too() {
    let disk = rig(&format!("power_loss = [\"1s\"]\n{DISK}"));
    let keys = "bandwidth = \"1GB/s\"".parse().unwrap();
    let link = Rig::wrap("link", keys, &[("below", vec![&disk])]).unwrap();
    assert_eq!(link.power_loss, disk.power_loss);
}

#[test]
fn a_cache_reads_its_table_before_it_takes_commands_where_it_is_on_the_cache_device() {
    // 2,040 blocks of 16 KiB have a table of 128 KiB, which a device of one server reads in one command.
    for (metadata, startup_ns) in [("ram", 0), ("written", 50_000)] {
        let text = format!(
            "[device]\nkind = \"cache\"\nmode = \"write-back\"\nblock = \"16KiB\"\nmetadata = \"{metadata}\"\n\
             [device.cache]\nkind = \"null\"\ncapacity = \"32MiB\"\nservice_time = \"50us\"\n\
             [device.below]\nkind = \"null\"\ncapacity = \"64MiB\"\nservice_time = \"2ms\"\n"
        );
        let mut session = session(&rig(&text));
        session.power_cut().unwrap();
        session.idle(Nanos::millis(10)).unwrap();
        let counters = session.counters();
        let value = |name: &str| counters.iter().find(|(of, _)| of == name).unwrap().1;
        assert_eq!(value("power_startup_ns"), startup_ns, "{metadata}");
        assert_eq!(value("cache_bytes_read"), if startup_ns > 0 { 128 << 10 } else { 0 });
    }
}
