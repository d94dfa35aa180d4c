//! Checkpoints in files: what is refused and how, and that nothing half-written stays.

use crate::common;
use crate::support;

use common::{cases, lab_reference};
use proptest::prelude::*;
use ssdlab::rig::Rig;
use ssdlab::run::{Observer, Progress, RunOptions, Session};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use support::jobs;

const WRITES: &str = "[w]\nrw=randwrite\nbs=4k\niodepth=32\nnorandommap\nnumber_ios=2k\n";

const BUFFER: &str = "{ size = \"1MiB\", power_loss_protected = true }";

fn null() -> Rig {
    let text = "[device]\nkind = \"null\"\ncapacity = \"1GiB\"\nservers = 2\n";
    Rig::parse(text, "null").unwrap()
}

fn ssd() -> Rig {
    lab_reference(&[("capacity", "16MiB"), ("ftl.gc.victim", "d-choices")])
}

fn session(rig: &Rig) -> Session {
    Session::new(rig.build(1, false).unwrap(), 1)
}

/// A session that has done something.
fn used(rig: &Rig) -> Session {
    let mut session = session(rig);
    session.prepare(&"random:0.5".parse().unwrap(), &mut ()).unwrap();
    session.run(&jobs(WRITES), &RunOptions::default(), &mut ()).unwrap();
    session
}

/// An empty folder of a test's own.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_str().unwrap().to_string()).collect()
}

/// The refusal, which leaves the session as it was.
fn refusal(session: &mut Session, path: &Path, rig: &Rig) -> Option<String> {
    let before = (session.state(), session.now_ns(), session.counters());
    let error = session.restore(path, rig).err()?;
    assert_eq!(before, (session.state(), session.now_ns(), session.counters()));
    let message = error.to_string();
    assert!(message.starts_with(path.to_str().unwrap()), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    Some(message)
}

#[test]
fn every_byte_of_a_file_counts() {
    let folder = folder("bytes");
    let (path, rig) = (folder.join("null.drive"), null());
    used(&rig).save(&path, &rig).unwrap();
    let bytes = fs::read(&path).unwrap();
    let broken = folder.join("broken.drive");
    let mut other = session(&rig);
    for at in 0..bytes.len() {
        for mask in [1, 0x80, 0xff] {
            let mut flipped = bytes.clone();
            flipped[at] ^= mask;
            fs::write(&broken, flipped).unwrap();
            let message = refusal(&mut other, &broken, &rig);
            let message = message.unwrap_or_else(|| panic!("byte {at} of {}", bytes.len()));
            assert!(message.contains("damaged"), "{message}");
        }
        fs::write(&broken, &bytes[..at]).unwrap();
        assert!(refusal(&mut other, &broken, &rig).is_some(), "cut at {at}");
    }
    let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
    fs::write(&broken, longer).unwrap();
    assert!(refusal(&mut other, &broken, &rig).is_some(), "one byte more");
    assert_eq!(refusal(&mut other, &path, &rig), None);
}

proptest! {
    #![proptest_config(cases(300, 3000))]
    #[test]
    fn a_flipped_byte_of_a_drive_is_noticed(at: prop::sample::Index, mask in 1u8.., cut: bool) {
        static SAVED: OnceLock<Vec<u8>> = OnceLock::new();
        let broken = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flipped.drive");
        let rig = ssd();
        let mut bytes = SAVED.get_or_init(|| {
            used(&rig).save(&broken, &rig).unwrap();
            session(&rig).restore(&broken, &rig).unwrap();
            fs::read(&broken).unwrap()
        }).clone();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] ^= mask }
        fs::write(&broken, bytes).unwrap();
        prop_assert!(refusal(&mut session(&rig), &broken, &rig).is_some());
    }
}

#[test]
fn a_checkpoint_of_another_drive_is_refused_by_what_differs() {
    let folder = folder("others");
    let (path, rig) = (folder.join("a.drive"), ssd());
    used(&rig).save(&path, &rig).unwrap();
    for (key, value, says) in [
        ("ftl.gc.victim", "fifo", "ftl.gc.victim is d-choices there and is fifo here"),
        ("capacity", "32MiB", "capacity is 16MiB there and is 32MiB here"),
        (
            "nand.multi_plane_read",
            "false",
            "nand.multi_plane_read is not set there and is false here",
        ),
        (
            "write_buffer",
            BUFFER,
            "write_buffer.power_loss_protected is not set there and is true here",
        ),
    ] {
        let mut other = rig.clone();
        other.set(key, value).unwrap();
        let message = refusal(&mut session(&other), &path, &other).expect(key);
        assert!(message.contains("of another drive") && message.contains(says), "{message}");
    }
    let mut seeded = Session::new(rig.build(2, false).unwrap(), 2);
    let message = refusal(&mut seeded, &path, &rig).unwrap();
    assert!(message.contains("seed: it is 1 there and 2 here"), "{message}");
    // Names are no difference.
    let named = Rig::parse(&rig.to_toml().replace("lab-reference", "mine"), "mine").unwrap();
    assert_eq!(refusal(&mut session(&named), &path, &named), None);
}

#[test]
fn what_is_no_checkpoint_is_refused() {
    let folder = folder("none");
    let rig = null();
    let mut session = session(&rig);
    let text = folder.join("text");
    fs::write(&text, "[w]\nrw=randwrite\n".repeat(100)).unwrap();
    for (path, says) in [
        (text, "no checkpoint"),
        (folder.join("absent"), "No such file"),
        (folder.clone(), "no checkpoint"),
    ] {
        let message = refusal(&mut session, &path, &rig).unwrap();
        assert!(message.contains(says), "{message}");
    }
}

#[test]
fn a_save_that_fails_leaves_nothing_and_a_good_one_only_the_file() {
    let folder = folder("atomic");
    let rig = null();
    let mut session = used(&rig);
    let path = folder.join("a.drive");
    session.save(&path, &rig).unwrap();
    let first = fs::read(&path).unwrap();
    session.run(&jobs(WRITES), &RunOptions::default(), &mut ()).unwrap();
    session.save(&path, &rig).unwrap();
    assert_ne!(fs::read(&path).unwrap(), first);
    assert_eq!(files(&folder), ["a.drive"]);
    let taken = folder.join("folder");
    fs::create_dir_all(taken.join("full")).unwrap();
    for wrong in [taken, folder.join("absent/a.drive"), folder.join(".."), PathBuf::from("/")] {
        let message = session.save(&wrong, &rig).unwrap_err().to_string();
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let mut left = files(&folder);
    left.sort();
    assert_eq!(left, ["a.drive", "folder"]);
}

/// Stops at once.
struct Stop;

impl Observer for Stop {
    fn progress(&mut self, _: &Progress) -> bool {
        false
    }
}

#[test]
fn a_session_that_broke_off_cannot_be_saved_but_goes_on_from_a_file() {
    let folder = folder("broken");
    let (path, rig) = (folder.join("a.drive"), ssd());
    let mut session = used(&rig);
    session.save(&path, &rig).unwrap();
    let (before, state) = (session.counters(), session.state());
    let endless = "[w]\nrw=randrw\nbs=4k\niodepth=32\ntime_based\nruntime=1000\n";
    assert!(session.run(&jobs(endless), &RunOptions::default(), &mut Stop).is_err());
    let message = session.save(&folder.join("b.drive"), &rig).unwrap_err().to_string();
    assert!(message.contains("broke off"), "{message}");
    assert_eq!(files(&folder), ["a.drive"]);
    session.restore(&path, &rig).unwrap();
    assert_eq!((session.counters(), session.state()), (before, state));
    let again = session.run(&jobs(WRITES), &RunOptions::default(), &mut ()).unwrap();
    session.restore(&path, &rig).unwrap();
    let once_more = session.run(&jobs(WRITES), &RunOptions::default(), &mut ()).unwrap();
    assert_eq!(format!("{again:?}"), format!("{once_more:?}"));
}

/// What is not known when nothing has been written takes no room: a file of an empty drive is small.
#[test]
fn a_file_is_as_large_as_what_the_drive_holds() {
    let folder = folder("size");
    let size = |steps: &str| {
        let rig = lab_reference(&[("capacity", "1GiB")]);
        let mut session = session(&rig);
        session.prepare(&steps.parse().unwrap(), &mut ()).unwrap();
        let path = folder.join(steps.replace(':', "-"));
        session.save(&path, &rig).unwrap();
        fs::metadata(path).unwrap().len()
    };
    assert!(size("fob") < 40_000, "{}", size("fob"));
    let units = (1u64 << 30) / 4096;
    let full = size("random:2");
    assert!((4 * units..5 * units).contains(&full), "{full} for {units} units");
}
