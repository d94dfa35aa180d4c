//! What a device promises, over every device of the registry and stacks of them, and the broken
//! canaries that the laws must catch.

use crate::common;
use crate::support;

use common::audit::{Audit, Step, Violation, random_script, timed_script};
use common::rigs::{
    SAMPLES, Sample, Shape, any_ssd, any_stack, build, check_work, fitting, hold_to_promises,
    run_once, stack,
};
use common::{cases, lab_reference, long};
use proptest::prelude::*;
use ssdlab::device::{Command, Completion, DEVICES, Device, Missed, Op};
use ssdlab::persist::{Archive, Persist};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use ssdlab::run::{Kept, Report, RunOptions, RunResult, Session};
use ssdlab::stats::{Part, PartSums, Parts};
use ssdlab::units::Nanos;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use support::jobs;

fn known(kind: &str) -> bool {
    DEVICES.names().any(|name| name == kind)
}

pub fn samples(below: bool) -> impl Iterator<Item = &'static Sample> + Clone {
    SAMPLES.iter().filter(move |s| s.below == below && known(s.kind))
}

fn hold(rig: &Rig, seed: u64, steps: usize, depth: usize) {
    let capacity = build(rig, seed, false).capacity();
    let script = random_script(seed, capacity, steps);
    if let Err(violation) = hold_to_promises(rig, &script, depth, seed) {
        panic!("{violation:?}\n{}", rig.to_toml());
    }
}

#[test]
fn every_registered_device_has_a_sample() {
    for name in DEVICES.names() {
        assert!(
            SAMPLES.iter().any(|s| s.kind == name),
            "no sample of \"{name}\": add one to tests/common/rigs.rs"
        );
    }
}

#[test]
fn every_device_keeps_its_promises() {
    for leaf in samples(false) {
        for depth in [1, 7, 64] {
            hold(&stack(&[leaf.layer()]), 1, 2500, depth);
        }
    }
}

/// Stacks of samples, one of each layer, from the outermost inwards. Of two layers every sample is in one with every
/// kind of device in the other; of three, every sample is in one, and every kind with every kind in every two layers;
/// with `--long`, every sample with every sample.
fn cover<'a>(layers: &'a [Vec<&'static Sample>]) -> Vec<Vec<&'static Sample>> {
    let all = layers.iter().map(Vec::len).product::<usize>();
    // A step that shares no factor with their number goes round all of them, and far each time.
    let gcd = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let step = (all * 5 / 13..).find(|&step| gcd(step, all) == 1).expect("there are primes");
    let stacks = (0..all).map(|nth| {
        let mut left = nth * step % all;
        let mut pick = |layer: &'a Vec<&'static Sample>| {
            let sample = layer[left % layer.len()];
            left /= layer.len();
            sample
        };
        layers.iter().map(&mut pick).collect::<Vec<_>>()
    });
    let stacks: Vec<Vec<&Sample>> = stacks.filter(|stack| goes_together(stack)).collect();
    let same = std::ptr::from_ref::<Sample>;
    let each = long();
    let one = |sample: &'static Sample, own| (sample.kind, (each || own).then(|| same(sample)));
    // With itself it is but there.
    let pairs = |stack: &[&'static Sample]| {
        let ordered = (0..stack.len()).flat_map(|a| (0..stack.len()).map(move |b| (a, b)));
        let of = |(a, b)| (a, one(stack[a], a == b || stack.len() == 2), b, one(stack[b], false));
        ordered.map(of).collect::<Vec<_>>()
    };
    let (mut seen, mut chosen) = (BTreeSet::new(), Vec::new());
    // Those first that show most.
    for least in (1..=layers.len() * layers.len()).rev() {
        for stack in &stacks {
            let fresh: Vec<_> = pairs(stack).into_iter().filter(|p| !seen.contains(p)).collect();
            if fresh.len() >= least {
                seen.extend(fresh);
                chosen.push(stack.clone());
            }
        }
    }
    chosen
}

/// Whether the plain map knows what the stack does with TRIM.
fn goes_together(stack: &[&Sample]) -> bool {
    let [top, middle, leaf] = stack else { return true };
    // A purge of a partition is a TRIM, which not every array passes on.
    let dropped = matches!(top.kind, "array" | "cache" | "tier")
        && middle.kind == "partition"
        && leaf.kind == "array";
    !dropped && trims_together(top, middle)
}

/// So many commands of a script where there is time, else three fifths: what the devices of a stack do to each
/// other shows early, what each does late is held of it alone.
pub fn steps(number: usize) -> usize {
    if long() { number } else { number * 3 / 5 }
}

#[test]
fn every_stack_of_two_keeps_its_promises() {
    for chosen in cover(&[samples(true).collect(), samples(false).collect()]) {
        let layers: Vec<_> = chosen.iter().map(|sample| sample.layer()).collect();
        hold(&stack(&layers), 2, steps(2000), 16);
    }
}

#[test]
fn every_stack_of_three_keeps_its_promises() {
    let above: Vec<&Sample> = samples(true).collect();
    for chosen in cover(&[above.clone(), above, samples(false).collect()]) {
        let layers: Vec<_> = chosen.iter().map(|sample| sample.layer()).collect();
        // A partition of a partition has to fit.
        let mut rig = stack(&layers);
        if chosen[0].kind == "partition" && chosen[1].kind == "partition" {
            rig.set("offset", "24KiB").unwrap();
            rig.set("size", "1MiB").unwrap();
        }
        hold(&rig, 3, steps(1500), 16);
    }
}

/// An array that deallocates whole stripes of its own must not lie where another one's chunks end
/// within those: the plain map does not know which of them are deallocated.
fn trims_together(top: &Sample, middle: &Sample) -> bool {
    let stripes = |s: &Sample| {
        s.keys.contains("trim = true") && (s.keys.contains("raid5") || s.keys.contains("raid6"))
    };
    top.kind != "array" || !stripes(middle)
}

proptest! {
    #![proptest_config(cases(50, 3000))]
    #[test]
    fn any_ssd_keeps_its_promises(ssd in any_ssd(), seed: u64, depth in 1usize..70) {
        let rig = fitting(&[ssd]).expect("an SSD fits");
        hold(&rig, seed, 1500, depth);
    }
}

proptest! {
    #![proptest_config(cases(200, 2000))]
    #[test]
    fn any_stack_keeps_its_promises(layers in any_stack(), seed: u64, depth in 1usize..70) {
        let rig = fitting(&layers);
        prop_assume!(rig.is_some());
        hold(&rig.unwrap(), seed, 1000, depth);
    }
}

proptest! {
    #![proptest_config(cases(50, 1000))]
    #[test]
    fn dies_and_channels_work_for_exactly_what_passed_through_them(
        ssd in any_ssd(), seed: u64, depth in 1usize..70,
    ) {
        let rig = fitting(&[ssd]).expect("an SSD fits");
        let mut device = build(&rig, seed, false);
        let script = timed_script(seed, device.capacity(), 1000);
        let shape = Shape::of(&rig);
        let mut audit = Audit::new(&mut *device, None);
        audit.run(&script, depth).unwrap();
        if let Err(violation) = check_work(&*device, &shape) {
            panic!("{violation:?}\n{}", rig.to_toml());
        }
    }
}

/// Every sample alone, and one or two below every other; where there is time some of them below each array and
/// card, all below what is no more than a way to the device.
fn stacks() -> impl Iterator<Item = Rig> {
    samples(false).enumerate().flat_map(|(l, leaf)| {
        let alone = stack(&[leaf.layer()]);
        let many =
            |sample: &Sample| matches!(sample.kind, "array" | "controller" | "cache" | "tier");
        let below = samples(true)
            .enumerate()
            .filter(move |(t, top)| match long() {
                true => !many(top) || (l + t).is_multiple_of(6),
                false => (l + t).is_multiple_of(18),
            })
            .map(move |(_, top)| stack(&[top.layer(), leaf.layer()]));
        std::iter::once(alone).chain(below)
    })
}

const WRITES: &str = "[writes]\nrw=randrw\nrwmixread=40\nbsrange=512-24k\nblockalign=512\n\
                      norandommap\nio_size=1g\niodepth=12\nnumber_ios=700\nfsync=50\n\
                      buffer_compress_percentage=40\n";
const TRIMS: &str = "[trims]\nstonewall\nrw=randtrim\nbs=16k\nnorandommap\niodepth=4\n\
                     number_ios=60\nthinktime=300us\n\
                     [reads]\nrw=read\nbs=32k\niodepth=2\nnumber_ios=80\n";

fn ios(result: &RunResult) -> Vec<u64> {
    let of = |report: &Report| report.directions[..3].iter().map(|d| d.tally.ios()).sum();
    result.reports.iter().map(of).collect()
}

/// All state of a device.
fn saved(device: &mut dyn Device) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut archive = Archive::save(&mut bytes);
    device.persist(&mut archive).unwrap();
    archive.finish().unwrap();
    bytes
}

/// A device that now and then, with whatever is in flight, goes on as a copy of itself: one that was built
/// the same way and loaded what this one saved, after it had done something else or nothing.
pub struct Relay<'a> {
    build: &'a (dyn Fn() -> Box<dyn Device> + Sync),
    inner: Box<dyn Device>,
    spare: Box<dyn Device>,
    stream: Stream,
    /// Calls from one copy to the next, on the mean. Each copy saves, loads and saves all state: nearly
    /// all the time of a law is theirs.
    gap: u64,
    copies: u64,
}

impl<'a> Relay<'a> {
    fn new(build: &'a (dyn Fn() -> Box<dyn Device> + Sync)) -> Self {
        let stream = Stream::new(1, "relay");
        let gap = if long() { 6 } else { 48 };
        Relay { build, inner: build(), spare: build(), stream, gap, copies: 0 }
    }

    fn hand_over(&mut self) {
        if self.stream.below(self.gap) > 0 {
            return;
        }
        if self.stream.below(4) == 0 {
            self.spare = (self.build)();
        }
        let bytes = saved(self.inner.as_mut());
        let mut input = &bytes[..];
        let mut archive = Archive::load(&mut input);
        self.spare.persist(&mut archive).and_then(|()| archive.finish()).unwrap();
        assert!(saved(self.spare.as_mut()) == bytes, "what was loaded is saved otherwise");
        std::mem::swap(&mut self.inner, &mut self.spare);
        self.copies += 1;
    }
}

impl Persist for Relay<'_> {
    fn persist(&mut self, archive: &mut Archive<'_>) -> ssdlab::Result<()> {
        self.inner.persist(archive)
    }
}

impl Device for Relay<'_> {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }
    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }
    fn submit(&mut self, now: u64, command: Command) {
        self.hand_over();
        self.inner.submit(now, command);
    }
    fn next_event(&self) -> u64 {
        self.inner.next_event()
    }
    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        self.hand_over();
        self.inner.advance(limit, done)
    }
    fn settle(&mut self, now: u64) -> u64 {
        self.hand_over();
        self.inner.settle(now)
    }
    fn power_cut(&mut self, now: u64, missed: &mut Missed) -> u64 {
        self.hand_over();
        let ready = self.inner.power_cut(now, missed);
        self.hand_over();
        ready
    }
    fn content(&self, offset: u64) -> u64 {
        self.inner.content(offset)
    }
    fn apply(&mut self, command: &Command) {
        self.hand_over();
        self.inner.apply(command);
    }
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.inner.counters(visit);
    }
    fn children(&self) -> Vec<(String, &dyn Device)> {
        self.inner.children()
    }
    fn verify(&self) {
        self.inner.verify();
    }
}

/// Whether a device that goes on from what it saved, again and again, shows what it shows otherwise.
pub fn goes_on(
    rig: &Rig,
    build: &(dyn Fn() -> Box<dyn Device> + Sync),
    script: &[Step],
    depth: usize,
) -> Result<(), Violation> {
    let shape = Shape::of(rig);
    let expected = run_once(&mut *build(), &shape, script, depth, true)?;
    let mut relay = Relay::new(build);
    let found = run_once(&mut relay, &shape, script, depth, true)?;
    let enough = script.len() as u64 * 3 / (10 * relay.gap);
    assert!(relay.copies > enough, "only {} copies", relay.copies);
    if found == expected { Ok(()) } else { Err(Violation::Different(String::new())) }
}

fn hold_saved(rig: &Rig, seed: u64, steps: usize, depth: usize) {
    let script = random_script(seed, build(rig, seed, false).capacity(), steps);
    if let Err(violation) = goes_on(rig, &|| build(rig, seed, true), &script, depth) {
        panic!("{violation:?}\n{}", rig.to_toml());
    }
}

/// What a device saves of itself and of those below does not depend on which those are: every leaf is held
/// alone, every other device above some of them, which go by turns; random stacks below.
#[test]
fn every_device_goes_on_from_a_file_as_it_would_have() {
    let leaves: Vec<&Sample> = samples(false).collect();
    let each = if long() { leaves.len() } else { 1 };
    let below = |place: usize| leaves[place % leaves.len()].layer();
    let towers = samples(true).enumerate().flat_map(|(nth, top)| {
        let places = (0..each).map(|more| nth * each + more);
        places.map(|place| stack(&[top.layer(), below(place)])).collect::<Vec<_>>()
    });
    for rig in samples(false).map(|leaf| stack(&[leaf.layer()])).chain(towers) {
        hold_saved(&rig, 4, 1500, 16);
    }
}

proptest! {
    #![proptest_config(cases(20, 400))]
    #[test]
    fn any_stack_goes_on_from_a_file(layers in any_stack(), seed: u64, depth in 1usize..70) {
        let rig = fitting(&layers);
        prop_assume!(rig.is_some());
        hold_saved(&rig.unwrap(), seed, 500, depth);
    }
}

#[test]
fn a_device_that_forgets_to_save_is_caught() {
    let leaf = SAMPLES.iter().find(|s| s.kind == "ssd").unwrap();
    let rig = stack(&[leaf.layer()]);
    let script = random_script(1, build(&rig, 1, false).capacity(), 1000);
    let canary = |fault: Fault| {
        let canary = || -> Box<dyn Device> {
            Box::new(Canary { inner: build(&rig, 1, true), fault, seen: 0, now: 0 })
        };
        goes_on(&rig, &canary, &script, 16)
    };
    assert_eq!(canary(Fault::CountsSaved), Ok(()));
    assert!(matches!(canary(Fault::CountsUnsaved), Err(Violation::Different(_))));
}

/// A session with everything in it; all that it shows.
fn live(rig: &Rig) -> String {
    let mut session = Session::new(build(rig, 1, false), 1);
    let mut shown = String::new();
    let mut look = |session: &Session, result: Option<RunResult>| {
        shown += &format!("{} {:?} {result:?}\n", session.now_ns(), session.counters());
    };
    let options = RunOptions { kept: Kept::All, ..RunOptions::default() };
    let capacity = session.device().capacity();
    session.prepare(&"random:1".parse().unwrap(), &mut ()).unwrap();
    let first = session.run(&jobs(WRITES), &options, &mut ()).unwrap();
    assert_eq!(ios(&first), [700]);
    let series = first.device_series.clone();
    look(&session, Some(first));
    session.idle(Nanos::millis(7)).unwrap();
    session.prepare(&"random:0.3,idle:3ms".parse().unwrap(), &mut ()).unwrap();
    session.trim(capacity / 1024 * 512, 64 << 10).unwrap();
    look(&session, None);
    let before = session.counters();
    let second = session.run(&jobs(&format!("{TRIMS}{WRITES}")), &options, &mut ()).unwrap();
    assert_eq!(ios(&second), [60, 80, 700]);
    for (n, column) in second.device_series.columns.iter().enumerate() {
        let (name, values) = (&column.name, &column.values);
        let earlier = series.columns[n].values.last().copied().unwrap_or(0);
        let counts = ["host_", "programs_", "flash_", "busy_", "erases_", "commands"];
        if counts.iter().any(|c| name.rsplit('/').next().is_some_and(|n| n.starts_with(c))) {
            assert!(earlier <= values[0] && values.is_sorted(), "{name} went back: {values:?}");
        }
        assert_eq!((name, values[0]), (&before[n].0, before[n].1), "at the start of a run");
    }
    look(&session, Some(second));
    session.purge().unwrap();
    session.prepare(&"sequential".parse().unwrap(), &mut ()).unwrap();
    let third = session.run(&jobs(WRITES), &options, &mut ()).unwrap();
    look(&session, Some(third));
    session.device().verify();
    shown
}

#[test]
fn a_session_of_jobs_completes_everything_counts_on_and_is_the_same_every_time() {
    for rig in stacks() {
        let (first, second) = (live(&rig), live(&rig));
        assert!(first == second, "{}\n{first}\n{second}", rig.to_toml());
    }
}

#[test]
fn a_session_goes_on_from_a_file_as_it_would_have() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("session.checkpoint");
    let options = RunOptions::default();
    for rig in stacks() {
        let new = || Session::new(build(&rig, 1, false), 1);
        let mut first = new();
        first.prepare(&"random:0.5".parse().unwrap(), &mut ()).unwrap();
        first.run(&jobs(WRITES), &options, &mut ()).unwrap();
        for idle in [0, 1, 40] {
            first.idle(Nanos::millis(idle)).unwrap();
            first.save(&path, &rig).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let mut second = new();
            second.restore(&path, &rig).unwrap();
            second.device().verify();
            second.save(&path, &rig).unwrap();
            assert!(std::fs::read(&path).unwrap() == bytes, "{}", rig.to_toml());
            let go_on = |session: &mut Session| {
                // Without time: what the device has begun must be at its end.
                session.trim(0, 4096).unwrap();
                let state = format!("{} {}", session.state(), session.now_ns());
                let result = session.run(&jobs(TRIMS), &options, &mut ()).unwrap();
                session.prepare(&"random:0.1".parse().unwrap(), &mut ()).unwrap();
                session.device().verify();
                let (now, filled) = (session.now_ns(), session.counters());
                format!("{state} {result:?} {now} {filled:?} {}", session.state())
            };
            let (went_on, as_restored) = (go_on(&mut first), go_on(&mut second));
            assert!(went_on == as_restored, "{}\n{went_on}\n{as_restored}", rig.to_toml());
        }
    }
}

#[test]
fn two_jobs_of_a_session_are_what_they_are_behind_a_stonewall() {
    for rig in stacks() {
        let options = RunOptions::default();
        let mut apart = Session::new(build(&rig, 1, false), 1);
        apart.prepare(&"random:0.5,idle:2ms".parse().unwrap(), &mut ()).unwrap();
        let first = apart.run(&jobs(WRITES), &options, &mut ()).unwrap();
        let second = apart.run(&jobs(TRIMS), &options, &mut ()).unwrap();
        let mut together = Session::new(build(&rig, 1, false), 1);
        together.prepare(&"random:0.5,idle:2ms".parse().unwrap(), &mut ()).unwrap();
        let both = together.run(&jobs(&format!("{WRITES}{TRIMS}")), &options, &mut ()).unwrap();
        let toml = rig.to_toml();
        assert_eq!(apart.now_ns(), together.now_ns(), "{toml}");
        assert_eq!(apart.counters(), together.counters(), "{toml}");
        assert_eq!(both.simulated_ns, first.simulated_ns + second.simulated_ns, "{toml}");
        let alone = first.reports.iter().chain(&second.reports);
        for (alone, behind) in alone.zip(&both.reports) {
            let tallies =
                |report: &Report| format!("{:?}", report.directions.each_ref().map(|d| &d.tally));
            assert_eq!(tallies(alone), tallies(behind), "{toml}");
        }
    }
}

/// Time of completion and unit of random reads, `depth` in flight.
fn random_reads(device: &mut dyn Device, depth: u64) -> Vec<(u64, u64)> {
    common::fill_sequentially(device, 4096);
    let mut rng = Stream::new(5, "reads");
    let units = device.capacity() / 4096;
    let (mut now, mut in_flight, mut done) = (0, 0, Vec::new());
    let mut completions = Vec::new();
    while completions.len() < 20_000 {
        while in_flight < depth {
            // The unit is its own tag; a second read of one in flight is harmless here.
            let unit = rng.below(units);
            device
                .submit(now, Command { tag: unit, ..common::command(Op::Read, unit * 4096, 4096) });
            in_flight += 1;
        }
        now = device.advance(u64::MAX - 1, &mut done);
        in_flight -= done.len() as u64;
        completions.extend(done.drain(..).map(|c| (c.time, c.tag)));
    }
    completions
}

#[test]
fn a_channel_carries_one_transfer_at_a_time() {
    let rig = lab_reference(&[("capacity", "64MiB"), ("nand.channels", "1"), ("nand.ways", "8")]);
    let transfer = Shape::of(&rig).t_transfer;
    let completions = random_reads(&mut *build(&rig, 1, false), 64);
    let least = completions.windows(2).map(|w| w[1].0 - w[0].0).min().unwrap();
    assert_eq!(least, transfer, "ns between two completions of a saturated channel");
}

#[test]
fn a_die_does_one_thing_at_a_time() {
    // Units of a striped drive lie on die `unit mod dies`.
    let rig = lab_reference(&[("capacity", "64MiB"), ("ftl.placement", "striped")]);
    let shape = Shape::of(&rig);
    let mut last = vec![0; shape.dies as usize];
    let mut least = u64::MAX;
    for (time, unit) in random_reads(&mut *build(&rig, 1, false), 64) {
        let die = (unit % shape.dies) as usize;
        least = least.min(time - last[die]);
        last[die] = time;
    }
    assert_eq!(least, shape.t_read.0 + shape.t_transfer, "ns between two reads of a die");
}

/// How a canary is broken.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    LosesCompletions,
    CompletesTwice,
    CompletesBeforeSubmission,
    DatesCompletionsLater,
    HandsCompletionsOutLate,
    PartsDoNotAddUp,
    ForgetsWrites,
    ForgetsTrims,
    WritesElsewhere,
    MiscountsPrograms,
    CountsErasesTwice,
    WorksMoreThanThereIsTime,
    NeverRests,
    LooksAtTheWorld,
    /// Not broken: it does something now and then, and saves when the next time is due.
    CountsSaved,
    /// The same, but it does not save that.
    CountsUnsaved,
}

/// A device that breaks one promise now and then.
struct Canary {
    inner: Box<dyn Device>,
    fault: Fault,
    seen: u64,
    now: u64,
}

/// Something outside the simulation.
static WORLD: AtomicU64 = AtomicU64::new(0);

/// So much time of the cells counts as the channel's.
fn shifted(parts: &Parts, ns: u64) -> Parts {
    let mut sums = PartSums::from(parts);
    sums[Part::Cells] -= ns;
    sums[Part::Channel] += ns;
    Parts::from(&sums)
}

impl Canary {
    fn due(&mut self) -> bool {
        self.seen += 1;
        self.seen.is_multiple_of(50)
    }

    fn tamper(&mut self, mut c: Completion, done: &mut Vec<Completion>) {
        let due = self.due();
        match self.fault {
            Fault::LosesCompletions if due => return,
            Fault::CompletesTwice if due => done.push(c.clone()),
            Fault::CompletesBeforeSubmission if due && c.parts.total() > 0 => {
                c.time -= c.parts.total() + 1;
            }
            Fault::DatesCompletionsLater if due => c.time += 1,
            Fault::PartsDoNotAddUp if due => c.parts.add(Part::Cells, 1),
            Fault::CountsSaved | Fault::CountsUnsaved if due && c.parts[Part::Cells] > 0 => {
                c.parts = shifted(&c.parts, 1);
            }
            Fault::LooksAtTheWorld => {
                let shift = WORLD.fetch_add(1, Ordering::Relaxed) % 3;
                if c.parts[Part::Cells] > shift {
                    c.parts = shifted(&c.parts, shift);
                }
            }
            _ => {}
        }
        done.push(c);
    }
}

impl Persist for Canary {
    fn persist(&mut self, archive: &mut Archive<'_>) -> ssdlab::Result<()> {
        self.inner.persist(archive)?;
        if self.fault != Fault::CountsUnsaved {
            self.seen.persist(archive)?;
        }
        self.now.persist(archive)
    }
}

impl Device for Canary {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }
    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }
    fn submit(&mut self, now: u64, mut command: Command) {
        self.now = now;
        match (self.fault, command.op) {
            (Fault::ForgetsWrites, Op::Write) | (Fault::ForgetsTrims, Op::Trim) if self.due() => {
                command = Command { op: Op::Flush, offset: 0, len: 0, ..command };
            }
            (Fault::WritesElsewhere, Op::Write) if command.offset >= 512 && self.due() => {
                command.offset -= 512;
            }
            _ => {}
        }
        self.inner.submit(now, command);
    }
    fn next_event(&self) -> u64 {
        match self.fault {
            Fault::NeverRests => self.inner.next_event().min(self.now + 1),
            _ => self.inner.next_event(),
        }
    }
    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        loop {
            let mut fresh = Vec::new();
            self.now = self.inner.advance(limit, &mut fresh);
            if self.fault == Fault::HandsCompletionsOutLate && self.due() && self.now < limit {
                // Slept over it.
                self.now += 1;
            }
            let nothing = fresh.is_empty();
            for completion in fresh {
                self.tamper(completion, done);
            }
            if nothing || !done.is_empty() {
                return self.now;
            }
        }
    }
    fn settle(&mut self, now: u64) -> u64 {
        self.inner.settle(now)
    }
    fn power_cut(&mut self, now: u64, missed: &mut Missed) -> u64 {
        self.inner.power_cut(now, missed)
    }
    fn apply(&mut self, command: &Command) {
        self.inner.apply(command);
    }
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.inner.counters(&mut |name, value| {
            let wrong = match (self.fault, name) {
                (Fault::MiscountsPrograms, "programs_collection") => value + 1,
                (Fault::CountsErasesTwice, "flash_erases") => value * 2,
                (Fault::WorksMoreThanThereIsTime, "busy_host_write_ns") => value * 1000,
                _ => value,
            };
            visit(name, wrong);
        });
    }
}

/// What the laws say of an SSD with a fault.
fn verdict(fault: Fault, check_parts: bool) -> Result<(), Violation> {
    let leaf = SAMPLES.iter().find(|s| s.kind == "ssd").unwrap();
    let rig = stack(&[leaf.layer()]);
    let shape = Shape::of(&rig);
    let canary = || {
        let inner = build(&rig, 1, true);
        Canary { inner, fault, seen: 0, now: 0 }
    };
    let mut probe = canary();
    let script = random_script(1, probe.capacity(), 2500);
    if !check_parts {
        let mut audit = Audit::new(&mut probe, None);
        audit.check_parts = false;
        return audit.run(&script, 16);
    }
    let first = run_once(&mut canary(), &shape, &script, 16, true)?;
    let second = run_once(&mut canary(), &shape, &script, 16, true)?;
    if first == second { Ok(()) } else { Err(Violation::Different(String::new())) }
}

#[test]
fn the_laws_catch_every_broken_canary() {
    use Violation as V;
    type Caught = fn(&V) -> bool;
    let expected: [(Fault, Caught); 14] = [
        (Fault::LosesCompletions, |v| matches!(v, V::Lost(_))),
        (Fault::CompletesTwice, |v| matches!(v, V::Unasked(_))),
        (Fault::CompletesBeforeSubmission, |v| matches!(v, V::Early(_))),
        (Fault::DatesCompletionsLater, |v| matches!(v, V::OutOfOrder { .. })),
        (Fault::HandsCompletionsOutLate, |v| matches!(v, V::OutOfOrder { .. })),
        (Fault::PartsDoNotAddUp, |v| matches!(v, V::Parts { .. })),
        (Fault::ForgetsWrites, |v| matches!(v, V::Stale { .. })),
        (Fault::ForgetsTrims, |v| matches!(v, V::Stale { .. })),
        (Fault::WritesElsewhere, |v| matches!(v, V::Stale { .. })),
        (Fault::MiscountsPrograms, |v| matches!(v, V::Counters(_))),
        (Fault::CountsErasesTwice, |v| matches!(v, V::Counters(_))),
        (Fault::WorksMoreThanThereIsTime, |v| matches!(v, V::Utilisation(_))),
        (Fault::NeverRests, |v| matches!(v, V::Restless)),
        (Fault::LooksAtTheWorld, |v| matches!(v, V::Different(_))),
    ];
    for (fault, caught) in expected {
        match verdict(fault, true) {
            Ok(()) => panic!("{fault:?} passed"),
            Err(violation) => assert!(caught(&violation), "{fault:?}: {violation:?}"),
        }
    }
}

#[test]
fn littles_law_catches_latencies_that_are_made_up() {
    let caught = verdict(Fault::PartsDoNotAddUp, false).expect_err("made-up latencies passed");
    assert!(matches!(caught, Violation::Little { .. }), "{caught:?}");
}
