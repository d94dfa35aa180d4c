//! What the driver itself costs per I/O, beside the device and the generator.

use ssdlab::job::{ParseSource, parse};
use ssdlab::rig::Rig;
use ssdlab::run::{RunOptions, run};
use std::collections::BTreeMap;

fn main() {
    divan::main();
}

/// A second of virtual time: 100 000 I/Os through the null device.
#[divan::bench(args = ["write", "randwrite", "randrw"])]
fn closed_loop_100k_ios(bencher: divan::Bencher, rw: &str) {
    let include = |_: &str| Err(std::io::Error::other("nothing to include"));
    let source = ParseSource { file: "bench.fio".into(), env: BTreeMap::new(), include: &include };
    let text = format!("[a]\nrw={rw}\nbs=4k\niodepth=32\nnorandommap=1\ntime_based=1\nruntime=1\n");
    let jobs = parse(&text, &source).expect("the job is right");
    let rig =
        "[device]\nkind = \"null\"\ncapacity = \"4GiB\"\nservice_time = \"320us\"\nservers = 32\n";
    let rig = Rig::parse(rig, "null").expect("the rig is right");
    bencher.with_inputs(|| rig.build(1, false).expect("the rig is right")).bench_local_values(
        |mut device| {
            run(device.as_mut(), &jobs, &RunOptions::default(), &mut ()).expect("the job fits")
        },
    );
}
