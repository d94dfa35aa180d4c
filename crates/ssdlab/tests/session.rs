//! A device that lives across several runs: what is between them, and what it may not do.

use crate::common;
use crate::support;

use common::{Sets, lab_reference};
use ssdlab::Error;
use ssdlab::run::{Observer, Preconditioning, Progress, RunOptions, Session, prepare, run};
use ssdlab::units::Nanos;
use support::jobs;

const WRITES: &str = "[w]\nrw=randwrite\nbs=4k\niodepth=32\nnorandommap\nnumber_ios=20k\n";

fn session(sets: Sets) -> Session {
    Session::new(lab_reference(sets).build(1, false).unwrap(), 1)
}

fn steps(text: &str) -> Preconditioning {
    text.parse().unwrap()
}

fn play(session: &mut Session, text: &str) {
    session.run(&jobs(text), &RunOptions::default(), &mut ()).unwrap();
}

fn counter(session: &Session, name: &str) -> u64 {
    let all = session.counters();
    all.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no counter {name}")).1
}

#[test]
fn the_first_run_of_a_session_is_a_run_on_a_device_prepared_by_hand() {
    let rig = lab_reference(&[("capacity", "64MiB"), ("ftl.gc.idle_after", "10ms")]);
    let state = steps("random:1,idle:1s");
    let mut by_hand = rig.build(7, false).unwrap();
    let elapsed_ns = prepare(by_hand.as_mut(), &state, 7, &mut ()).unwrap();
    let options = RunOptions { seed: 7, elapsed_ns, ..RunOptions::default() };
    let expected = run(by_hand.as_mut(), &jobs(WRITES), &options, &mut ()).unwrap();
    let mut session = Session::new(rig.build(7, false).unwrap(), 7);
    session.prepare(&state, &mut ()).unwrap();
    let options = RunOptions { elapsed_ns: 0, ..options };
    let result = session.run(&jobs(WRITES), &options, &mut ()).unwrap();
    assert_eq!(format!("{result:?}"), format!("{expected:?}"));
    assert_eq!(session.now_ns(), elapsed_ns + expected.simulated_ns);
}

#[test]
fn the_state_says_what_was_done_since_the_run_before() {
    let mut session = session(&[("capacity", "64MiB")]);
    assert_eq!(session.state(), "fob");
    session.prepare(&steps("fob"), &mut ()).unwrap();
    assert_eq!(session.state(), "fob");
    session.prepare(&steps("random:0.5,idle:2s"), &mut ()).unwrap();
    session.trim(4096, 8192).unwrap();
    session.trim(0, 0).unwrap();
    assert_eq!(session.state(), "random:0.5,idle:2s,trim of 8KiB at 4KiB");
    play(&mut session, WRITES);
    assert_eq!(session.state(), "as left by the run before");
    session.purge().unwrap();
    session.idle(Nanos::millis(250)).unwrap();
    assert_eq!(session.state(), "as left by the run before, then purge,idle:250ms");
}

#[test]
fn what_has_been_filled_stays_filled_until_something_is_trimmed() {
    let mut session = session(&[("capacity", "64MiB")]);
    let written = |session: &Session| counter(session, "host_bytes_written") >> 20;
    let half = steps("random:0.5");
    session.prepare(&half, &mut ()).unwrap();
    assert_eq!(written(&session), 64 + 32);
    session.prepare(&half, &mut ()).unwrap();
    play(&mut session, "[r]\nrw=randread\nbs=4k\nnumber_ios=10\n");
    session.prepare(&half, &mut ()).unwrap();
    assert_eq!(written(&session), 64 + 3 * 32);
    play(&mut session, "[t]\nrw=trim\nbs=4k\nnumber_ios=1\n");
    session.prepare(&half, &mut ()).unwrap();
    assert_eq!(written(&session), 2 * 64 + 4 * 32);
    session.trim(0, 4096).unwrap();
    session.prepare(&half, &mut ()).unwrap();
    assert_eq!(written(&session), 3 * 64 + 5 * 32);
    session.purge().unwrap();
    session.prepare(&half, &mut ()).unwrap();
    assert_eq!(written(&session), 4 * 64 + 6 * 32);
}

#[test]
fn random_writes_of_preparation_are_one_stream() {
    let state = |parts: &[&str]| {
        let mut session = session(&[("capacity", "64MiB")]);
        parts.iter().for_each(|part| session.prepare(&steps(part), &mut ()).unwrap());
        session.counters()
    };
    assert_eq!(state(&["random:2"]), state(&["random:0.5", "random:1.5"]));
}

/// Preparing after a run waits for what the drive has begun and for nothing else: no collection of
/// idle time, no folding, though both were due at once.
#[test]
fn before_it_is_prepared_a_drive_finishes_its_work_and_begins_none() {
    for cache in [
        None,
        Some(
            "{ dynamic_size = \"8MiB\", t_read = \"25us\", t_program = \"200us\", fold_idle_after = \"1us\" }",
        ),
    ] {
        let mut sets = vec![
            ("capacity", "64MiB"),
            ("ftl.gc.idle_after", "1us"),
            ("ftl.gc.high", "6"),
            // Room for what a buffer holds back may have to be collected, too.
            (
                "write_buffer",
                "{ size = \"4MiB\", power_loss_protected = true, drain = \"immediate\" }",
            ),
        ];
        sets.extend(cache.map(|cache| ("ftl.slc_cache", cache)));
        let mut session = session(&sets);
        let fill = if cache.is_some() { "fob" } else { "random:1" };
        session.prepare(&steps(fill), &mut ()).unwrap();
        let begun = |session: &Session| {
            (counter(session, "collections"), counter(session, "programs_fold"))
        };
        play(&mut session, "[w]\nrw=randwrite\nbs=4k\niodepth=32\nnorandommap\nnumber_ios=2k\n");
        let (before, work) = (session.now_ns(), begun(&session));
        session.trim(0, 512).unwrap();
        let rested = session.now_ns();
        // 4 MiB in the buffer of 16 dies take some milliseconds.
        assert!((1_000_000..200_000_000).contains(&(rested - before)), "{}", rested - before);
        assert_eq!(begun(&session), work, "idle work began");
        session.trim(0, 512).unwrap();
        assert_eq!(session.now_ns(), rested, "it was at rest");
        session.idle(Nanos::millis(2000)).unwrap();
        assert_ne!(begun(&session), work, "no idle work in idle time");
        session.device().verify();
    }
}

#[test]
fn idle_time_between_runs_changes_what_the_next_one_finds() {
    let free = |idle_ms: u64| {
        let mut session =
            session(&[("capacity", "64MiB"), ("ftl.gc.idle_after", "10ms"), ("ftl.gc.high", "4")]);
        session.prepare(&steps("random:1"), &mut ()).unwrap();
        play(&mut session, WRITES);
        session.idle(Nanos::millis(idle_ms)).unwrap();
        counter(&session, "free_superblocks")
    };
    assert_eq!(free(0), free(9));
    assert!(free(20_000) > free(9));
}

/// Stops at once.
struct Stop;

impl Observer for Stop {
    fn progress(&mut self, _: &Progress) -> bool {
        false
    }
}

#[test]
fn a_session_that_broke_off_is_of_no_use_and_says_so() {
    let endless = "[w]\nrw=randwrite\nbs=4k\ntime_based\nruntime=100\n";
    let mut prepared = session(&[("capacity", "1GiB")]);
    assert_eq!(prepared.prepare(&steps("sequential,random:1"), &mut Stop), Err(Error::Cancelled));
    let mut run = session(&[("capacity", "64MiB")]);
    let outcome = run.run(&jobs(endless), &RunOptions::default(), &mut Stop);
    assert_eq!(outcome.err(), Some(Error::Cancelled));
    for mut session in [prepared, run] {
        let refusals = [
            session.prepare(&steps("sequential"), &mut ()).err(),
            session.run(&jobs(WRITES), &RunOptions::default(), &mut ()).err(),
            session.idle(Nanos::millis(1)).err(),
            session.trim(0, 4096).err(),
            session.purge().err(),
        ];
        for refusal in refusals {
            let message = refusal.expect("a refusal").to_string();
            assert!(message.contains("broke off"), "{message}");
        }
    }
}

#[test]
fn a_job_that_does_not_fit_leaves_the_session_as_it_was() {
    let mut session = session(&[("capacity", "64MiB")]);
    session.prepare(&steps("sequential"), &mut ()).unwrap();
    let before = session.counters();
    let outcome = session.run(
        &jobs("[w]\nrw=write\nbs=4k\noffset=1g\nsize=4k\n"),
        &RunOptions::default(),
        &mut (),
    );
    assert!(outcome.is_err());
    for (offset, len) in [(100, 512), (0, 100), (64 << 20, 512), (u64::MAX - 511, 512)] {
        assert!(session.trim(offset, len).is_err(), "{offset} {len}");
    }
    assert_eq!((session.counters(), session.state()), (before, "sequential".into()));
    play(&mut session, WRITES);
}

#[test]
fn virtual_time_comes_to_no_end() {
    let mut session = session(&[("capacity", "64MiB")]);
    let days = Nanos::millis(1000 * 86_400_000);
    let refusal = (0..100).find_map(|_| session.idle(days).err()).expect("a refusal");
    assert!(refusal.to_string().contains("virtual time"), "{refusal}");
    play(&mut session, WRITES);
}
