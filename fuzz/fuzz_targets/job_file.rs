//! Any text as a job file: no panic, and the I/Os of what parses lie within the device.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssdlab::device::{Op, SECTOR};
use ssdlab::job::{Generator, ParseSource, parse};
use std::collections::BTreeMap;

const CAPACITY: u64 = 16 << 20;

fuzz_target!(|text: &str| {
    let include = |_: &str| Err(std::io::Error::other("no files here"));
    let env = BTreeMap::from([("SIZE".to_string(), "1m".to_string())]);
    let Ok(file) = parse(text, &ParseSource { file: "fuzz.fio".into(), env, include: &include })
    else {
        return;
    };
    for job in &file.jobs {
        let Ok(mut generator) = Generator::new(job, 0, CAPACITY, 1) else { continue };
        for io in std::iter::from_fn(|| generator.next()).take(500) {
            assert!(
                io.op == Op::Flush
                    || (io.len > 0
                        && io.len % SECTOR == 0
                        && io.offset % SECTOR == 0
                        && io.offset + io.len <= CAPACITY)
            );
        }
    }
});
