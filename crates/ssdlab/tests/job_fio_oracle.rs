//! The I/Os of a job beside those of the real fio.
//!
//! One fio run executes every case as a section of one job file, each with a log of its I/Os
//! (`write_iolog`). Depth 1, since the null engine logs requeued I/Os twice above it. Random
//! offsets differ between fio versions, so random jobs are compared by counts, coverage and
//! distribution; sequential ones I/O by I/O.

use crate::support::has_fio;
use ssdlab::device::Op;
use ssdlab::job::{Generator, JobFile, ParseSource, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const MIB: u64 = 1 << 20;

/// Operation, file, offset in the file, length.
type Step = (&'static str, usize, u64, u64);

struct Case {
    name: &'static str,
    options: &'static str,
    /// Bytes of the file under it; 0: fio's null engine, where a file has no end.
    file: u64,
    /// Distance of two files on our device; 0: there is one file.
    stride: u64,
}

const fn case(name: &'static str, options: &'static str) -> Case {
    Case { name, options, file: 0, stride: 0 }
}
const fn files(name: &'static str, options: &'static str) -> Case {
    Case { name, options, file: 0, stride: MIB }
}
const fn on_file(name: &'static str, options: &'static str) -> Case {
    Case { name, options, file: MIB, stride: 0 }
}

/// Jobs whose I/Os must be the same one by one.
const SEQUENTIAL: &[Case] = &[
    case("plain", "rw=read size=1m"),
    case("trim", "rw=trim size=1m bs=16k"),
    on_file("uneven", "rw=write size=10000"),
    on_file("uneven-end", "rw=write size=100k bs=12k"),
    on_file("si-base", "kb_base=1000 rw=read size=64k bs=4kib"),
    case("skip", "rw=write:64k size=1m"),
    case("backwards", "rw=read:-12k size=1m offset=1m"),
    case("same-place", "rw=read:-4k size=64k"),
    case("skip-to-amount", "rw=write:64k size=1m io_size=512k"),
    case("trimwrite", "rw=trimwrite size=256k"),
    case("trimwrite-ios", "rw=trimwrite size=1m number_ios=11"),
    case("trimwrite-part", "rw=trimwrite size=1m io_size=512k"),
    case("trimwrite-more", "rw=trimwrite size=1m io_size=5m"),
    case("trimwrite-uneven", "rw=trimwrite size=1m io_size=2500k"),
    case("fsync", "rw=write size=256k fsync=8"),
    case("fdatasync", "rw=write size=256k fdatasync=8"),
    case("both-syncs", "rw=write size=64k fsync=1 fdatasync=4"),
    case("sync-and-end", "rw=write size=1m fsync=8 number_ios=24 end_fsync=1"),
    case("sync-passes", "rw=write size=64k fsync=5 loops=2"),
    case("end-fsync", "rw=write size=64k end_fsync=1 loops=2"),
    case("close-fsync", "rw=write size=64k fsync_on_close=1"),
    case("end-fsync-trims", "rw=trimwrite size=64k end_fsync=1"),
    case("no-write-no-sync", "rw=read size=64k fsync=4 end_fsync=1"),
    case("loops", "rw=read size=64k loops=3"),
    case("io-size", "rw=read size=1m io_size=2500k"),
    case("io-size-small", "rw=read size=1m io_size=500k bs=16k"),
    case("io-size-loops", "rw=read size=1m io_size=3m loops=2"),
    case("io-size-small-loops", "rw=read size=1m io_size=512k loops=2"),
    case("number-ios", "rw=read size=1m number_ios=100"),
    case("number-ios-loops", "rw=read size=1m number_ios=100 loops=3"),
    case("number-ios-io-size", "rw=read size=1m number_ios=300 io_size=5m"),
    case("offset", "rw=read size=64k offset=1m"),
    case("strips", "rw=read size=1m zonemode=strided zonesize=16k zoneskip=48k number_ios=60"),
    files("two-files", "rw=read size=1m nrfiles=2"),
    files("three-files", "rw=read size=1m nrfiles=3"),
    files("named-files", "rw=write size=1m filename=a:b"),
    files("one-by-one", "rw=read size=1m nrfiles=4 file_service_type=sequential"),
    files("file-size", "rw=read size=1m nrfiles=2 filesize=256k io_size=2m"),
    on_file("whole", "rw=read"),
    on_file("share", "rw=read size=33%"),
    on_file("small-share", "rw=read size=10%"),
    on_file("rest", "rw=read offset=256k"),
    on_file("offset-share", "rw=read offset=10% size=64k"),
    on_file("offset-align", "rw=read offset=10% offset_align=64k size=64k"),
    on_file("offset-size-share", "rw=read offset=256k size=50%"),
    on_file("offset-rest", "rw=read offset=25% size=75%"),
    on_file("io-share", "rw=read io_size=50%"),
    on_file("io-more", "rw=read io_size=2m"),
    on_file("holes-once", "rw=write:64k"),
    on_file("holes-again", "rw=read:60k"),
    on_file("holes-part", "rw=read:64k size=512k"),
    on_file("holes-offset", "rw=read:12k offset=512k"),
    on_file("back-part", "rw=read:-12k size=512k"),
    on_file("back-offset", "rw=read:-12k offset=256k size=64k"),
    on_file("back-offset-short", "rw=read:-8k bs=16k offset=512k size=100k"),
    on_file("back-offset-long", "rw=read:-12k offset=128k size=512k"),
    on_file("back-offset-rest", "rw=write:-16k bs=8k offset=25%"),
    on_file("same-place-offset", "rw=read:-4k offset=256k size=64k"),
    on_file("strip-loops", "rw=read bs=16k size=32k loops=3 zonemode=strided zonesize=64k"),
    on_file("strip-loops-uneven", "rw=read bs=16k size=40k loops=3 zonemode=strided zonesize=64k"),
    on_file("strip-loops-next", "rw=read bs=16k size=64k loops=3 zonemode=strided zonesize=32k"),
    on_file("strip-io-size", "rw=read size=32k io_size=256k zonemode=strided zonesize=64k"),
    case("strip-trimwrite", "rw=trimwrite size=256k number_ios=20 zonemode=strided zonesize=16k"),
    case(
        "strip-trimwrite-skip",
        "rw=trimwrite size=256k number_ios=12 zonemode=strided zonesize=16k zoneskip=16k",
    ),
    on_file("strip-skip", "rw=read zonemode=strided zonesize=16k zoneskip=48k"),
    on_file("strip-range", "rw=read zonemode=strided zonesize=32k zonerange=16k zoneskip=16k"),
    on_file("strip-inner", "rw=read zonemode=strided zonesize=8k zonerange=16k zoneskip=16k"),
    on_file("strip-end", "rw=read zonemode=strided zonesize=300k zoneskip=150k"),
    on_file("strip-round", "rw=read zonemode=strided zonesize=300k zoneskip=300k"),
    on_file("strip-size", "rw=read size=512k zonemode=strided zonesize=16k zoneskip=48k"),
    on_file(
        "strip-offset",
        "rw=read size=256k offset=512k zonemode=strided zonesize=16k zoneskip=48k",
    ),
];

/// Jobs in which fio loses its way, refused at this option.
const REFUSED: &[(&str, &str)] = &[
    ("rw=randtrimwrite size=256k offset=64k", "offset"),
    ("rw=randtrimwrite size=256k zonemode=strided zonesize=16k", "zonemode"),
    ("rw=trimwrite size=256k zonemode=strided zonesize=12k", "zonesize"),
    ("rw=trimwrite size=256k zonemode=strided zonesize=16k zonerange=12k", "zonesize"),
    ("rw=trimwrite size=256k bs=4k,4k,8k", "bs"),
    (
        "rw=randread zonemode=strided zonesize=64k random_distribution=zipf:1.2",
        "random_distribution",
    ),
    (
        "rw=randread zonemode=strided zonesize=64k random_distribution=pareto:0.2",
        "random_distribution",
    ),
    (
        "rw=randread zonemode=strided zonesize=64k random_distribution=normal:20",
        "random_distribution",
    ),
];

/// Jobs that must do as many I/Os and bytes in all, over the same blocks.
const COVERAGE: &[Case] = &[
    case("map", "rw=randread size=1m"),
    case("map-trim", "rw=randtrim size=1m bs=8k"),
    case("map-uneven", "rw=randwrite size=1m bs=12k"),
    case("map-loops", "rw=randread size=256k loops=3"),
    case("map-io-size", "rw=randread size=1m io_size=3000k"),
    case("map-trimwrite", "rw=randtrimwrite size=1m"),
    case("map-mix", "rw=randrw size=4m"),
    case("lfsr", "rw=randread size=1000k random_generator=lfsr loops=2"),
    case("lfsr-io-size", "rw=randread size=1000k random_generator=lfsr norandommap io_size=3000k"),
    on_file("strip-map", "rw=randread zonemode=strided zonesize=16k zoneskip=48k"),
    on_file(
        "strip-twice",
        "rw=randwrite zonemode=strided zonesize=128k zonerange=64k zoneskip=64k",
    ),
    files("file-maps", "rw=randread size=1m nrfiles=2"),
];

/// Jobs that must do as many I/Os and bytes, wherever they go.
const AMOUNT: &[Case] = &[
    case("free", "rw=randread size=1m norandommap"),
    case("free-io-size", "rw=randread size=1m io_size=3m norandommap"),
    case("free-io-size-loops", "rw=randread size=1m io_size=3m norandommap loops=2"),
    case("free-trimwrite-more", "rw=randtrimwrite size=1m io_size=3m norandommap"),
    case("free-trimwrite", "rw=randtrimwrite size=1m norandommap"),
    case("zipf-amount", "rw=randread size=1m random_distribution=zipf:1.2"),
    case("runs-amount", "rw=randread:4 size=1m"),
    case("map-ios", "rw=randread size=1m number_ios=100 loops=2"),
    case("mix-sequential", "rw=rw size=1m"),
    case("mix-io-size", "rw=rw size=1m io_size=4m"),
];

/// Jobs that are compared by their statistics.
const STATISTICS: &[Case] = &[
    case("mix-70", "rw=randrw size=1g rwmixread=70 number_ios=20000 norandommap"),
    case("mix-write-20", "rw=randrw size=1g rwmixwrite=20 number_ios=20000 norandommap"),
    case("range", "rw=randread size=1t bsrange=4k-16k number_ios=20000 norandommap"),
    case("range-odd", "rw=randread size=1t bsrange=4k-10k number_ios=20000 norandommap"),
    case(
        "range-by-direction",
        "rw=randrw size=1t bsrange=4k-8k,32k-64k number_ios=20000 norandommap",
    ),
    case("split", "rw=randread size=1t bssplit=4k/50:64k/30:8k number_ios=20000 norandommap"),
    case("split-short", "rw=randread size=1t bssplit=4k/20:8k/20 number_ios=20000 norandommap"),
    case("half-random", "rw=randread size=1g percentage_random=50 number_ios=20000 norandommap"),
    case("runs-of-4", "rw=randread:4 size=1g number_ios=20000 norandommap"),
    case("fsync-mix", "rw=randrw size=64m fsync=8 number_ios=16000 norandommap"),
    case("aligned", "rw=randread size=64m ba=64k number_ios=1024"),
    case("half-aligned", "rw=randread size=64m ba=2k"),
    case("uniform", "rw=randread size=1g number_ios=100000 norandommap"),
    case("zipf", "rw=randread size=1g number_ios=100000 norandommap random_distribution=zipf:1.2"),
    case(
        "zipf-flat",
        "rw=randread size=1g number_ios=100000 norandommap random_distribution=zipf:0.8",
    ),
    case(
        "pareto",
        "rw=randread size=1g number_ios=100000 norandommap random_distribution=pareto:0.2",
    ),
    case(
        "normal",
        "rw=randread size=1g number_ios=100000 norandommap random_distribution=normal:20",
    ),
    case(
        "zoned",
        "rw=randread size=1g number_ios=100000 norandommap random_distribution=zoned:60/10:30/20:8/30:2/40",
    ),
    case(
        "zoned-open",
        "rw=randread size=1g number_ios=100000 norandommap random_distribution=zoned:50/5:30:20/",
    ),
    case(
        "zoned-abs",
        "rw=randread size=1g number_ios=100000 norandommap random_distribution=zoned_abs:60/100m:40/200m",
    ),
];

/// As [`SEQUENTIAL`], behind all others: what fio draws depends on the number of a job.
const UNEVEN: &[Case] = &[
    on_file("uneven-passes", "rw=read size=10000 loops=2"),
    on_file("uneven-more", "rw=read size=10000 io_size=30000"),
    on_file("uneven-less", "rw=read size=10000 io_size=7000"),
    on_file("uneven-file", "rw=read offset=512k size=523000"),
    on_file("file-size-bounds", "rw=read filesize=256k offset=128k size=25%"),
    on_file("file-size-whole", "rw=read filesize=1m offset=128k size=25%"),
    on_file("file-size-share", "rw=read filesize=256k size=64k io_size=50%"),
    on_file("file-size-below", "rw=read filesize=64k size=128k"),
    files("in-turn", "rw=read size=1m nrfiles=3 file_service_type=roundrobin:5"),
    files("one-by-one-of", "rw=read size=1m nrfiles=2 file_service_type=sequential:4"),
    on_file("strip-uneven", "rw=read zonemode=strided zonesize=10k size=128k"),
    on_file("strip-uneven-skip", "rw=read zonemode=strided zonesize=10k zoneskip=2k size=128k"),
    on_file("strip-past", "rw=read bs=16k zonemode=strided zonesize=100k zonerange=50k size=1m"),
    on_file("strip-more", "rw=read size=128k io_size=512k loops=2 zonemode=strided zonesize=16k"),
    on_file("file-size-loops", "rw=read filesize=1m size=128k loops=3"),
    on_file("file-size-more", "rw=read filesize=1m size=128k io_size=1280k loops=2"),
    on_file("increment-share", "rw=read offset=5k offset_increment=10% size=64k"),
    on_file("holes-io-share", "rw=write:64k size=512k io_size=50%"),
    on_file("holes-io-share-loops", "rw=read:64k size=512k io_size=50% loops=2"),
    on_file("holes-past", "rw=write:64k bs=12k offset=8k number_ios=40"),
    on_file("strip-file-end", "rw=read bs=16k loops=3 zonemode=strided zonesize=300k"),
    on_file(
        "strip-file-end-size",
        "rw=read bs=16k size=900k loops=3 zonemode=strided zonesize=300k",
    ),
    on_file(
        "strip-lengths",
        "rw=read size=508k loops=2 bssplit=8k/100:4k/0 zonemode=strided zonesize=16k zoneskip=48k",
    ),
    on_file("share-of-sizes", "rw=read bs=16k,4k offset=10% size=33%"),
    files("flush-takes-a-turn", "rw=write size=1m nrfiles=5 fsync=4 number_ios=100"),
    files(
        "flush-takes-a-turn-of-three",
        "rw=write size=1m nrfiles=3 fsync=4 file_service_type=roundrobin:3 number_ios=100",
    ),
    case("trimwrite-ios-loops", "rw=trimwrite size=256k number_ios=50 loops=2"),
    case("trimwrite-ios-more", "rw=trimwrite size=256k io_size=1m number_ios=80"),
];

/// As [`SEQUENTIAL`], behind all others: what was written is read back.
const READ_BACK: &[Case] = &[
    on_file("back", "rw=write size=64k verify=crc32c"),
    on_file("back-never", "rw=write size=64k verify=crc32c do_verify=0"),
    on_file("back-loops", "rw=write size=16k loops=3 verify=md5"),
    on_file("back-io-size-less", "rw=write size=16k io_size=8k verify=crc32c"),
    on_file("back-io-size-twice", "rw=write size=16k io_size=32k verify=crc32c"),
    on_file("back-io-size", "rw=write size=16k io_size=40k verify=crc32c"),
    on_file("back-io-size-more", "rw=write size=16k io_size=72k verify=meta"),
    on_file("back-ios", "rw=write size=64k number_ios=5 verify=crc32c"),
    on_file("back-backwards", "rw=write:-8k size=32k verify=crc32c"),
    on_file("back-holes", "rw=write:4k size=32k verify=crc32c"),
    on_file("back-fsync", "rw=write size=32k fsync=3 verify=crc32c"),
    on_file("back-end-fsync", "rw=write size=32k end_fsync=1 loops=2 verify=crc32c"),
    on_file(
        "back-strips",
        "rw=write size=32k zonemode=strided zonesize=8k zoneskip=8k verify=crc32c",
    ),
    on_file("back-sizes", "rw=write size=64k bs=12k verify=xxhash"),
    on_file("back-elsewhere", "rw=write size=64k offset=128k io_size=96k verify=crc32c"),
    on_file("back-neither", "rw=write size=16k verify=0 verify_pattern=0x55"),
    on_file("back-neither-first", "rw=write size=16k verify_pattern=0x55 verify=0"),
    on_file("back-content", "rw=write size=16k verify_pattern=0x55"),
    on_file("back-reads", "rw=read size=16k verify=null"),
    case("back-trims", "rw=trim size=16k verify=null"),
    case("back-trimwrite", "rw=trimwrite size=64k verify=null"),
    case("back-trimwrite-loops", "rw=trimwrite size=64k loops=2 verify=null"),
    files("back-two-files", "rw=write size=64k nrfiles=2 verify=null"),
    files("back-files-loops", "rw=write size=64k nrfiles=3 loops=2 verify=null"),
];

/// As [`AMOUNT`], behind all others.
const READ_BACK_AMOUNT: &[Case] = &[
    on_file("back-map", "rw=randwrite size=256k verify=crc32c"),
    on_file("back-map-loops", "rw=randwrite size=256k loops=2 verify=crc32c"),
    on_file("back-map-io-size", "rw=randwrite size=256k io_size=700k verify=crc32c"),
    on_file("back-lfsr-loops", "rw=randwrite size=64k random_generator=lfsr loops=2 verify=crc32c"),
    on_file("back-lfsr", "rw=randwrite size=256k random_generator=lfsr verify=crc32c"),
    case("back-map-trimwrite", "rw=randtrimwrite size=256k verify=null"),
    files("back-file-maps", "rw=randwrite size=256k nrfiles=2 verify=null"),
];

/// Behind all others: how much is read back is chance, and its order is not.
const READ_BACK_ORDER: &[Case] = &[
    case("back-free", "rw=randwrite size=256k norandommap verify=null"),
    case("back-free-loops", "rw=randwrite size=256k norandommap loops=3 verify=null"),
    case("back-zipf", "rw=randwrite size=256k random_distribution=zipf:1.2 verify=null"),
    case("back-ranges", "rw=randwrite size=256k bsrange=4k-16k verify=null"),
];

/// As [`AMOUNT`], behind all others.
const LATE_AMOUNT: &[Case] = &[
    on_file("strip-map-uneven", "rw=randread bs=8k zonemode=strided zonesize=20k"),
    files("hot-files", "rw=randread size=1m nrfiles=3 file_service_type=zipf:1.2"),
    files("hot-files-in-order", "rw=read filesize=64k nrfiles=5 file_service_type=pareto:0.3"),
    on_file("strip-free-uneven", "rw=randread bs=8k zonemode=strided zonesize=20k norandommap"),
    on_file(
        "strip-free-skip",
        "rw=randread bs=8k size=512k norandommap zonemode=strided zonesize=16k zoneskip=64k",
    ),
];

/// As [`STATISTICS`], behind all others.
const PASSES: &[Case] = &[
    case(
        "split-at-the-end",
        "rw=randread size=8k bssplit=16k/10:8k/30:4k/60 io_size=1g number_ios=20000 norandommap",
    ),
    case(
        "split-at-the-end-even",
        "rw=randread size=8k bssplit=8k/33:16k/33:4k/34 io_size=1g number_ios=20000 norandommap",
    ),
    case("mix-passes", "rw=rw size=16m io_size=80m rwmixread=80"),
    on_file("file-size-passes", "rw=randread filesize=1m size=64k loops=8"),
    case(
        "strip-split",
        "rw=read size=1g number_ios=8000 zonemode=strided zonesize=64k bssplit=4k:16k",
    ),
];

fn all() -> impl Iterator<Item = &'static Case> {
    SEQUENTIAL
        .iter()
        .chain(COVERAGE)
        .chain(AMOUNT)
        .chain(STATISTICS)
        .chain(UNEVEN)
        .chain(PASSES)
        .chain(LATE_AMOUNT)
        .chain(READ_BACK)
        .chain(READ_BACK_AMOUNT)
        .chain(READ_BACK_ORDER)
}

fn section(case: &Case) -> String {
    format!("[{}]\nbs=4k\n{}\n", case.name, case.options.replace(' ', "\n"))
}

/// What ssdlab does.
fn ours(case: &Case) -> Vec<Step> {
    let include = |_: &str| Err(std::io::Error::other("none"));
    let source = ParseSource { file: "case.fio".into(), env: BTreeMap::new(), include: &include };
    let JobFile { jobs, .. } = parse(&section(case), &source).unwrap_or_else(|e| panic!("{e}"));
    let capacity = if case.file > 0 { case.file } else { 2 << 40 };
    let mut generator = Generator::new(&jobs[0], 0, capacity, 1).unwrap_or_else(|e| panic!("{e}"));
    let expected = generator.expected_ios();
    let mut steps = Vec::new();
    while let Some(io) = generator.next() {
        let op = match io.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Flush | Op::Purge => "sync",
        };
        let file = io.offset.checked_div(case.stride).unwrap_or(0);
        steps.push((op, file as usize, io.offset - file * case.stride, io.len));
        assert!(steps.len() < 2_000_000, "{}: no end (expected {expected:?})", case.name);
    }
    steps
}

/// Runs fio over all cases in `folder`; `None` without fio.
fn fio(folder: &Path) -> Option<BTreeMap<&'static str, Vec<Step>>> {
    if !has_fio() {
        return None;
    }
    let mut text = String::new();
    for case in all() {
        text += &section(case);
        text += &format!("write_iolog={}\n", log(folder, case).display());
        if case.file > 0 {
            let data = folder.join(format!("{}.dat", case.name));
            std::fs::File::create(&data).and_then(|f| f.set_len(case.file)).unwrap();
            text += &format!("ioengine=psync\nfilename={}\n", data.display());
        } else {
            text += "ioengine=null\n";
        }
        text += "iodepth=1\n";
    }
    std::fs::write(folder.join("all.fio"), text).unwrap();
    let done = Command::new("fio")
        .current_dir(folder)
        .args(["--output=out.txt", "all.fio"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(all().map(|case| (case.name, read_log(&log(folder, case)))).collect())
}

fn log(folder: &Path, case: &Case) -> PathBuf {
    folder.join(format!("{}.log", case.name))
}

fn read_log(path: &Path) -> Vec<Step> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    let mut names: Vec<String> = Vec::new();
    let mut steps = Vec::new();
    for line in text.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, op) = (words[1], words[2]);
        if op == "add" {
            names.push(name.to_string());
        }
        let op = match op {
            "read" => "read",
            "write" => "write",
            "trim" => "trim",
            "sync" | "datasync" => {
                steps.push(("sync", 0, 0, 0));
                continue;
            }
            _ => continue,
        };
        let file = names.iter().position(|n| n == name).unwrap();
        steps.push((op, file, words[3].parse().unwrap(), words[4].parse().unwrap()));
    }
    steps
}

/// I/Os and bytes by operation.
fn amounts(steps: &[Step]) -> BTreeMap<&'static str, (u64, u64)> {
    let mut sums = BTreeMap::new();
    for (op, _, _, len) in steps {
        let sum: &mut (u64, u64) = sums.entry(*op).or_default();
        *sum = (sum.0 + 1, sum.1 + len);
    }
    sums
}

fn blocks(steps: &[Step]) -> BTreeSet<(usize, u64)> {
    let done = |(_, file, offset, len): &Step| {
        let file = *file;
        (*offset / 512..(*offset + *len) / 512).map(move |b| (file, b))
    };
    steps.iter().flat_map(done).collect()
}

/// Numbers that say how a job behaves, each with the difference that chance allows.
fn statistics(steps: &[Step]) -> Vec<(String, f64, f64)> {
    let ios: Vec<&Step> = steps.iter().filter(|s| s.0 != "sync").collect();
    let n = ios.len() as f64;
    // Five deviations of the difference of two shares.
    let share = |count: usize| (count as f64 / n, 5.0 * (0.5 / n).sqrt());
    let mut found = vec![("ios".to_string(), n, 0.0)];
    for op in ["read", "write", "trim"] {
        let (value, within) = share(ios.iter().filter(|s| s.0 == op).count());
        found.push((format!("share of {op}"), value, within));
    }
    let syncs = (steps.len() - ios.len()) as f64 / n;
    found.push(("syncs".into(), syncs, 0.02));
    let mut sizes = BTreeMap::new();
    for step in &ios {
        *sizes.entry((step.0, step.3)).or_insert(0) += 1;
    }
    for ((op, size), count) in sizes {
        let (value, within) = share(count);
        found.push((format!("share of {op} {size}"), value, within));
    }
    let follow = ios.windows(2).filter(|w| w[1].2 == w[0].2 + w[0].3).count();
    let (value, within) = share(follow);
    found.push(("share behind the last".into(), value, within));
    let mut counts = BTreeMap::new();
    for step in &ios {
        *counts.entry(step.2).or_insert(0u64) += 1;
    }
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let distinct = counts.len() as f64 / n;
    // Random placement varies by less than sqrt(n) blocks; hash collisions of fio's own scatter
    // do not arise on the power-of-two ranges used here.
    found.push(("distinct".into(), distinct, 5.0 * n.sqrt() / n));
    found.push(("hottest".into(), counts[0] as f64 / n, 0.01));
    let (mut sum, mut hot) = (0, 0);
    while sum < ios.len() as u64 * 4 / 5 {
        sum += counts[hot];
        hot += 1;
    }
    found.push(("blocks of 80 %".into(), hot as f64 / n, 1.5 / n.sqrt()));
    // Where a single hot block lies is drawn anew for every job.
    if (counts[0] as f64) < 0.01 * n {
        let (value, within) = share(ios.iter().filter(|s| s.2 < (100 << 20)).count());
        found.push(("share of the first 100 MiB".into(), value, within));
    }
    found
}

#[test]
fn jobs_in_which_fio_loses_its_way_are_refused() {
    for (options, at) in REFUSED {
        let text = format!("[a]\nbs=4k\n{}\n", options.replace(' ', "\n"));
        let include = |_: &str| Err(std::io::Error::other("none"));
        let source = ParseSource { file: "x".into(), env: BTreeMap::new(), include: &include };
        let message = parse(&text, &source).unwrap_err().to_string();
        assert!(message.contains(&format!("[a] {at}: ")), "{options}: {message}");
    }
    if !has_fio() {
        return;
    }
    // Of the pairs asked for fio leaves out trims, or the job ends before its time.
    let folder = std::env::temp_dir().join(format!("ssdlab-fio-lost-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (options, _) in REFUSED {
        let (log, data) = (folder.join("x.log"), folder.join("x.dat"));
        let _ = std::fs::remove_file(&log);
        std::fs::File::create(&data).and_then(|f| f.set_len(MIB)).unwrap();
        let args = options.split(' ').map(|o| format!("--{o}"));
        let named = ["--name=a", "--bs=4k"].map(String::from).into_iter().chain(args);
        let to = [("filename", &data), ("write_iolog", &log), ("output", &folder.join("out"))];
        let to = to.map(|(option, path)| format!("--{option}={}", path.display()));
        let engine = if options.contains("trim") { "null" } else { "psync" };
        let engine = format!("--ioengine={engine}");
        let done = Command::new("fio").args(named.chain(to)).arg(engine).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let sums = amounts(&read_log(&log));
        let of = |op: &str| sums.get(op).copied().unwrap_or_default();
        let lost = match options.contains("trim") {
            true => of("trim").0 != of("write").0,
            false => of("read").1 < MIB,
        };
        assert!(lost, "{options}: fio does {sums:?}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn jobs_do_what_fio_does() {
    let folder = std::env::temp_dir().join(format!("ssdlab-fio-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let Some(theirs) = fio(&folder) else { return };
    let mut wrong = Vec::new();
    for case in all() {
        let (ours, theirs) = (ours(case), &theirs[case.name]);
        assert!(!theirs.is_empty(), "{}: fio did nothing", case.name);
        if let Some(problem) = difference(case, &ours, theirs) {
            wrong.push(format!("{} ({}): {problem}", case.name, case.options));
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether each run of writes is followed by reads of the same blocks, in the same order or by place.
fn read_back_in_order(case: &Case, steps: &[Step]) -> bool {
    let place = |step: &Step| (step.1, step.2, step.3);
    let mut ends = steps.chunk_by(|a, b| (a.0 == "read") == (b.0 == "read"));
    let by_place = ["norandommap", "lfsr", "zipf"].iter().any(|way| case.options.contains(way));
    while let Some(writes) = ends.next() {
        let mut expected: Vec<_> = writes.iter().filter(|s| s.0 == "write").map(place).collect();
        if by_place {
            expected.sort_unstable();
            expected.dedup();
        }
        let reads: Vec<_> = ends.next().unwrap_or_default().iter().map(place).collect();
        if reads != expected {
            return false;
        }
    }
    true
}

fn difference(case: &Case, ours: &[Step], theirs: &[Step]) -> Option<String> {
    let among = |cases: &[Case]| cases.iter().any(|c| c.name == case.name);
    if among(SEQUENTIAL) || among(UNEVEN) || among(READ_BACK) {
        let at = (0..ours.len().max(theirs.len())).find(|i| ours.get(*i) != theirs.get(*i))?;
        let (us, them) = (ours.get(at), theirs.get(at));
        let (a, b) = (ours.len(), theirs.len());
        return Some(format!("I/O {at} is {us:?}, fio's {them:?} (of {a} and {b})"));
    }
    if among(STATISTICS) || among(PASSES) {
        let (a, b) = (statistics(ours), statistics(theirs));
        let far = |(x, y): &(&(String, f64, f64), &(String, f64, f64))| {
            x.0 != y.0 || (x.1 - y.1).abs() > x.2
        };
        let (x, y) = a.iter().zip(&b).find(far)?;
        return Some(format!("{} {} and fio's {} {} (allowed {})", x.0, x.1, y.0, y.1, x.2));
    }
    let reads_back = among(READ_BACK_AMOUNT) || among(READ_BACK_ORDER);
    if reads_back && ![ours, theirs].iter().all(|steps| read_back_in_order(case, steps)) {
        return Some("what is read back is not what was written".to_string());
    }
    if among(READ_BACK_ORDER) {
        return None;
    }
    // Which of the directions an I/O takes is chance; the sums are not.
    let total = |steps: &[Step]| {
        let mut sums = amounts(steps);
        let read = sums.remove("read").unwrap_or_default();
        let write = sums.remove("write").unwrap_or_default();
        (read.0 + write.0, read.1 + write.1, sums)
    };
    let (a, b) = (total(ours), total(theirs));
    if a != b {
        return Some(format!("amounts {a:?}, fio's {b:?}"));
    }
    if among(COVERAGE) && blocks(ours) != blocks(theirs) {
        return Some("other blocks than fio's".to_string());
    }
    None
}
