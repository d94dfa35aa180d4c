//! The cache as a device: who waits for what, how it warms up, what it writes, and what is lost when it fails.

mod common;

use common::audit::{Audit, random_script};
use common::rigs::{SAMPLES, Shape, build, hold_to_promises, stack};

fn quick() -> impl Iterator<Item = &'static common::rigs::Sample> {
    SAMPLES.iter().filter(|s| s.kind == "cache")
}

#[test]
fn every_cache_keeps_its_promises_before_a_null_device_and_an_ssd() {
    for (nth, sample) in quick().enumerate() {
        for leaf in SAMPLES.iter().filter(|s| !s.below).take(5) {
            let rig = stack(&[sample.layer(), leaf.layer()]);
            for depth in [1, 7, 40] {
                let seed = (nth * 10 + depth) as u64;
                let script = random_script(seed, build(&rig, seed, false).capacity(), 1500);
                if let Err(violation) = hold_to_promises(&rig, &script, depth, seed) {
                    panic!("{violation:?}\n{}", rig.to_toml());
                }
            }
        }
    }
}
