//! Wrong input is answered with one sentence: what, where, what would be right.

use ssdlab::Error;
use ssdlab::job::{JobFile, ParseSource, parse};
use ssdlab::rig::Rig;
use ssdlab::run::{RunOptions, run};
use std::collections::BTreeMap;

const DRIVE: &str = r#"
[device]
kind = "link"
bandwidth = "550MB/s"
queue_slots = 32
[device.below]
kind = "ssd"
capacity = "1GiB"
[device.below.nand]
channels = 4
ways = 2
page = "4KiB"
pages_per_block = 64
t_read = "50us"
t_program = "500us"
t_erase = "3ms"
transfer_mts = 400
"#;

fn drive() -> Rig {
    Rig::parse(DRIVE, "my.toml").unwrap()
}

fn job(text: &str) -> ssdlab::Result<JobFile> {
    let include = |_: &str| Err(std::io::Error::other("nothing to include"));
    let source = ParseSource { file: "my.fio".into(), env: BTreeMap::new(), include: &include };
    parse(text, &source)
}

/// What is said to a key that is set to a value, at once or when the devices are built.
fn said(key: &str, value: &str) -> String {
    let mut rig = drive();
    match rig.set(key, value) {
        Err(e) => e.to_string(),
        Ok(()) => rig.build(1, false).err().map(|e| e.to_string()).unwrap_or_default(),
    }
}

#[test]
fn a_misspelt_key_is_answered_by_the_device_that_knows_most_of_it() {
    for (key, meant) in [
        ("ftl.over_provisionning", "over_provisioning"),
        ("ftl.gc.victm", "victim"),
        ("capcity", "capacity"),
        ("bandwith", "bandwidth"),
        ("queue_slot", "queue_slots"),
        ("nand.t_raed", "t_read"),
    ] {
        let said = said(key, "1");
        assert!(said.starts_with(&format!("{key}: unknown key, did you mean {meant}?")), "{said}");
    }
}

#[test]
fn a_key_that_resembles_none_is_answered_with_those_of_every_device() {
    let said = said("colour", "red");
    assert!(said.contains("known here: interface, bandwidth"), "{said}");
    assert!(said.contains("; below: capacity"), "{said}");
}

#[test]
fn a_value_of_the_wrong_kind_is_answered_with_the_right_kind() {
    for (key, value, expected) in [
        ("capacity", "4", "found 4, expected a size with its unit, such as \"4GiB\""),
        ("nand.t_read", "75", "found 75, expected a time with its unit, such as \"75us\""),
        ("bandwidth", "550", "found 550, expected a rate with its unit, such as \"550MB/s\""),
        ("nand.channels", "3.5", "found 3.5, expected a whole number from 0 on"),
        ("ftl.over_provisioning", "much", "found \"much\", expected a number"),
        ("ftl.gc", "3", "found 3, expected a table of keys"),
        ("ftl.gc.pace", "fast", "found \"fast\", expected one of blocking, paced, periodic"),
        ("ftl.gc.batch.copies", "-1", "a number from 0 to 4294967295"),
        ("ftl.gc.pace", "true", "found no text, expected one of blocking, paced, periodic"),
        ("nand", "{channels=3}", "nand.ways: is missing; kind = \"ssd\" needs it (whole number)"),
    ] {
        let said = said(key, value);
        assert!(said.contains(expected), "{key}={value}: {said}");
    }
}

#[test]
fn the_kind_of_a_device_cannot_be_set() {
    assert!(said("kind", "null").contains("cannot be set"));
    assert!(said("below.kind", "null").contains("cannot be set"));
    assert!(said("ftl..gc", "3").starts_with("ftl..gc: is no key"));
}

#[test]
fn what_is_wrong_in_a_rig_file_is_told_with_its_name() {
    let said = |text: &str| match Rig::parse(text, "my.toml") {
        Err(e) => e.to_string(),
        Ok(rig) => rig.build(1, false).err().unwrap().to_string(),
    };
    let missing = said("[device]\nkind = \"null\"\n");
    assert_eq!(
        missing,
        "my.toml: capacity: is missing; kind = \"null\" needs it (such as \"4GiB\")"
    );
    assert!(said("name = 3\n[device]\n").starts_with("my.toml: name: found 3"));
    assert!(said("[device]\nkind = \"sdd\"\n").starts_with("my.toml: kind: no device"));
    let without = said("[device]\ncapacity = \"1GiB\"\n");
    assert!(without.starts_with("my.toml: kind: is missing, expected the kind"), "{without}");
    let empty = said("[device]\nkind = \"link\"\nbandwidth = \"1GB/s\"\n");
    assert_eq!(empty, "my.toml: below: is missing, expected a table with the device below");
    let counted = "[[device.members]]\ncount = 2\nkind = \"null\"\ncapacity = \"1GiB\"\n";
    let counted = said(&format!("[device]\nkind = \"array\"\nlevel = \"raid1\"\n{counted}"));
    assert_eq!(counted, "my.toml: members.0.count: goes with [member], not [[members]]");
    let mut slow = Rig::parse(&DRIVE.replace("bandwidth", "# "), "my.toml").unwrap();
    let beside = slow.set("queue_slots", "3").unwrap_err().to_string();
    assert_eq!(
        beside,
        "my.toml: bandwidth: is missing; kind = \"link\" needs it (such as \"550MB/s\")"
    );
    let hollow = said("[device]\nkind=\"null\"\ncapacity={source=\"x\"}\n");
    assert_eq!(hollow, "my.toml: capacity: has a source, but no value");
    let source = said("[device]\nkind=\"null\"\ncapacity={value=\"1GiB\",src=\"x\"}\n");
    assert!(source.starts_with("my.toml: capacity.src: unknown key"), "{source}");
}

#[test]
fn counts_that_no_memory_holds_are_refused() {
    assert!(said("controller.cores", "4294967295").contains("from 1 to 1024"));
    let null = "[device]\nkind=\"null\"\ncapacity=\"1GiB\"\nservers=4000000000\n";
    let said = Rig::parse(null, "n").unwrap().build(1, false).err().unwrap().to_string();
    assert!(said.starts_with("n: servers: found 4000000000, expected from 1 to"), "{said}");
}

#[test]
fn a_drive_too_small_for_its_blocks_is_told_what_would_do_and_that_does() {
    let mut rig = drive();
    rig.set("ftl.gc.pace", "blocking").unwrap();
    rig.set("capacity", "4MiB").unwrap();
    let said = rig.build(1, false).err().unwrap().to_string();
    let capacity = said.rsplit("a capacity of ").next().unwrap();
    rig.set("capacity", capacity).unwrap();
    rig.build(1, false).unwrap();
}

#[test]
fn a_drive_that_memory_cannot_hold_is_refused_before_it_is_built() {
    let mut rig = drive();
    rig.set("capacity", "4TiB").unwrap();
    let said = rig.check_memory(4 << 30).unwrap_err().to_string();
    assert!(said.starts_with("my.toml: needs about 10.0 GB of memory, and"), "{said}");
    assert!(said.contains("4.3 GB are available; take a smaller capacity"), "{said}");
    rig.check_memory(16 << 30).unwrap();
}

#[test]
fn jobs_that_no_memory_holds_are_refused() {
    for (text, expected) in [
        ("[a]\nnumjobs=4097\nsize=1m\n", "my.fio:2: numjobs: found \"4097\""),
        ("[a]\niodepth=4294967295\nsize=1m\n", "my.fio:2: iodepth: found \"4294967295\""),
        ("[a]\nnumjobs=4096\nsize=1m\n[b]\nsize=1m\n", "more than 4096 processes"),
        ("[a]\nnumjobs=4096\niodepth=1025\nsize=1m\n", "more than 4194304 I/Os in flight"),
    ] {
        let said = job(text).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_file_without_jobs_is_told_without_a_line() {
    assert_eq!(
        job("; nothing\n").unwrap_err().to_string(),
        "my.fio: has no job section, such as [fill]"
    );
}

#[test]
fn more_simulated_time_than_can_be_recorded_is_refused_before_or_when_it_is_reached() {
    let null = "[device]\nkind=\"null\"\ncapacity=\"1GiB\"\n";
    let said = |text: &str| {
        let mut device = Rig::parse(null, "n").unwrap().build(1, false).unwrap();
        let jobs = job(text).unwrap();
        let options = RunOptions { interval_ns: 1_000_000, ..RunOptions::default() };
        run(device.as_mut(), &jobs, &options, &mut ()).err().unwrap().to_string()
    };
    let late = said("[a]\nrw=write\nsize=1m\nstartdelay=100000d\n");
    assert!(
        late.starts_with("my.fio:4: [a] startdelay: the job takes longer than the 1048 s"),
        "{late}"
    );
    let long = said("[a]\nrw=read\nsize=1m\ntime_based\nruntime=2000\n");
    assert!(long.contains("[a] runtime: the job takes"), "{long}");
    // Nobody can tell beforehand how long a rate of 1 byte per second takes; it is soon too long when it begins late.
    let slow = said("[a]\nrw=write\nsize=1m\nrate=1\nstartdelay=1040\n");
    assert!(slow.starts_with("the run takes longer than the 1048 s of simulated"), "{slow}");
}

#[test]
fn a_device_series_that_memory_cannot_hold_is_refused_before_or_when_it_is_reached() {
    let null = "[device]\nkind=\"null\"\ncapacity=\"1GiB\"\n";
    let run_in = |memory_bytes: u64, text: &str| {
        let mut device = Rig::parse(null, "n").unwrap().build(1, false).unwrap();
        let options = RunOptions { memory_bytes, ..RunOptions::default() };
        run(device.as_mut(), &job(text).unwrap(), &options, &mut ())
    };
    let said = |text: &str| match run_in(9_000, text).err() {
        Some(Error::Memory(said)) => said,
        other => panic!("{other:?}"),
    };
    // One after the other; alone each is short enough.
    let half = "rw=read\nsize=1m\ntime_based\nruntime=50\nrate_iops=2\n";
    let both = said(&format!("[a]\n{half}[b]\nstonewall\n{half}"));
    assert!(both.starts_with("the job has 100 intervals, for each of which 6 counters"), "{both}");
    run_in(9_000, &format!("[a]\n{half}")).unwrap();
    // Nobody can tell beforehand how long a rate takes.
    let slow = said("[a]\nrw=read\nsize=1m\nbs=4k\nrate_iops=2\n");
    assert!(slow.starts_with("the run has 94 intervals"), "{slow}");
}

#[test]
fn of_two_jobs_the_one_that_takes_no_time_is_named() {
    let mut rig = drive();
    rig.set("command_time", "0ns").unwrap();
    rig.set("capacity", "1GiB").unwrap();
    // Half of the drive is never written: reads there need no flash, and the link moves nothing.
    let ssd = format!("[device]\n{}", rig.to_toml().split("[device.below]\n").nth(1).unwrap());
    let ssd = ssd.replace("[device.below.", "[device.");
    let mut device = Rig::parse(&ssd, "ssd").unwrap().build(1, false).unwrap();
    let jobs = job(
        "[global]\nbs=4k\nsize=50%\ntime_based\nruntime=5\n[w]\nrw=randwrite\n[r]\nrw=randread\noffset=50%\n",
    )
    .unwrap();
    let said = run(device.as_mut(), &jobs, &RunOptions::default(), &mut ()).err().unwrap();
    assert!(
        said.to_string().contains("[r] time_based: the device answers this job in no time"),
        "{said}"
    );
}

#[test]
fn keys_that_need_each_other_are_set_together_in_any_order() {
    let plain = drive;
    let pairs = |keys: &[(&str, &str)]| -> Vec<(String, String)> {
        keys.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    };
    let keys = [
        ("ftl.slc_cache.static_size", "8MiB"),
        ("ftl.slc_cache.t_read", "20us"),
        ("write_buffer.size", "1MiB"),
        ("ftl.slc_cache.t_program", "100us"),
        ("write_buffer.power_loss_protected", "true"),
    ];
    let (mut there, mut back) = (plain(), plain());
    there.set_all(&pairs(&keys)).unwrap();
    let turned: Vec<_> = keys.iter().rev().copied().collect();
    back.set_all(&pairs(&turned)).unwrap();
    for (key, value) in keys {
        assert_eq!(there.get(key).as_deref(), Some(value), "{key}");
    }
    assert_eq!(there.identity(), back.identity());
    assert!(there.build(1, false).is_ok());
    let less = plain().set_all(&pairs(&keys[..2])).unwrap_err().to_string();
    let place = "my.toml: below.ftl.slc_cache.t_program";
    assert_eq!(less, format!("{place}: is missing; kind = \"ssd\" needs it (such as \"75us\")"));
    let wrong = pairs(&[keys[0], keys[1], ("ftl.slc_cache.t_program", "100")]);
    let said = plain().set_all(&wrong).unwrap_err().to_string();
    assert!(said.starts_with("ftl.slc_cache.t_program: found 100, expected a time"), "{said}");
}

#[test]
fn what_a_key_needs_beside_it_is_not_taken_from_another_device() {
    let cache = DRIVE.replace("[device", "[device.cache");
    let below = DRIVE.replace("[device", "[device.below");
    let both = format!("[device]\nkind = \"cache\"\nmode = \"write-through\"\n{cache}{below}");
    let set = |keys: &[(&str, &str)]| {
        let mut rig = Rig::parse(&both, "both").unwrap();
        let pairs: Vec<_> =
            keys.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        rig.set_all(&pairs).map(|()| rig)
    };
    let size = ("cache.write_buffer.size", "1MiB");
    let others =
        [("below.write_buffer.power_loss_protected", "true"), ("below.write_buffer.size", "2MiB")];
    let said = set(&[size, others[0], others[1]]).unwrap_err().to_string();
    let place = "both: cache.below.write_buffer.power_loss_protected";
    assert_eq!(said, format!("{place}: is missing; kind = \"ssd\" needs it (true, false)"));
    let own = ("cache.write_buffer.power_loss_protected", "false");
    let rig = set(&[size, others[0], own, others[1]]).unwrap();
    for (key, value) in [size, own, others[0], others[1]] {
        assert_eq!(rig.get(key).as_deref(), Some(value), "{key}");
    }
    // Without a place it is that of the first device that knows it: here of the one below.
    let bare = ("write_buffer.power_loss_protected", "true");
    assert!(set(&[others[1], bare]).is_ok());
    assert!(set(&[size, bare]).is_err());
}
