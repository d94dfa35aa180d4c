//! The document and the logs, held against those of the real fio.

use crate::common::lab_reference;
use crate::support;

use serde_json::Value;
use ssdlab::rig::Rig;
use ssdlab::run::{LogFile, RunResult};
use ssdlab::stats::{Histogram, bin_of};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{document_text, has_fio, null, play};

/// The same jobs for both; only the engine is fio's own business. Flags are written with their
/// value: fio does not list bare ones among the options, where here they stand as 1.
const JOBS: &str = "[global]\nsize=16m\nbs=4k\niodepth=4\n[seq]\nrw=write\n\
                    [mix]\nstonewall=1\nrw=randrw\nfsync=16\nlat_percentiles=1\n\
                    percentile_list=50:99:99.9\n[cut]\nstonewall=1\nrw=trim\nnumjobs=2\n\
                    group_reporting=1\n";

/// An empty folder of this test.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Runs fio's null engine in `folder` on a job file; `None` where fio is missing.
fn fio(folder: &Path, job: &str) -> Option<Value> {
    if !has_fio() {
        return None;
    }
    let job = job.replacen("[global]\n", "[global]\nioengine=null\n", 1);
    fs::write(folder.join("job.fio"), job).unwrap();
    let arguments = ["--output-format=json+", "--output=out.json", "job.fio"];
    let output = Command::new("fio").args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(folder.join("out.json")).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

/// The shape of a document: every path with the type of what stands there. Keys that are numbers
/// of this very run (bins) count as one.
fn shape(value: &Value, path: &str, into: &mut BTreeMap<String, &'static str>) {
    let kind = match value {
        Value::Object(map) => {
            for (key, value) in map {
                let key = if path.ends_with("bins") { "N" } else { key };
                shape(value, &format!("{path}/{key}"), into);
            }
            "object"
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                shape(value, &format!("{path}/{index}"), into);
            }
            "array"
        }
        Value::Number(number) if number.is_f64() => "real",
        Value::Number(_) => "integer",
        Value::String(_) => "text",
        Value::Bool(_) => "boolean",
        Value::Null => "null",
    };
    into.insert(path.to_string(), kind);
}

#[test]
fn the_document_has_every_key_of_fios_and_only_ssdlab_more() {
    let Some(mut theirs) = fio(&folder("document"), JOBS) else { return };
    let mut ours: Value = serde_json::from_str(&document_text(null("50us", 4), JOBS)).unwrap();
    assert!(ours.as_object_mut().unwrap().remove("ssdlab").is_some());
    // What an engine does is nothing to a simulated drive, but it is an option of the job.
    theirs["global options"].as_object_mut().unwrap().remove("ioengine");
    let (mut want, mut got) = (BTreeMap::new(), BTreeMap::new());
    shape(&theirs, "", &mut want);
    shape(&ours, "", &mut got);
    let differences: Vec<_> = want
        .iter()
        .filter(|(path, kind)| got.get(*path) != Some(*kind))
        .map(|(path, kind)| format!("{path}: fio {kind}, here {:?}", got.get(path)))
        .chain(
            got.keys().filter(|path| !want.contains_key(*path)).map(|p| format!("{p}: only here")),
        )
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn keys_come_in_fios_order() {
    let Some(theirs) = fio(&folder("order"), JOBS) else { return };
    let ours: Value = serde_json::from_str(&document_text(null("50us", 4), JOBS)).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let (their_job, our_job) = (&theirs["jobs"][1], &ours["jobs"][1]);
    assert_eq!(keys(their_job), keys(our_job));
    for part in ["read", "iodepth_level", "iodepth_submit", "latency_us", "latency_ms"] {
        assert_eq!(keys(&their_job[part]), keys(&our_job[part]));
    }
    let percentile = |job: &Value| keys(&job["read"]["clat_ns"]["percentile"]);
    assert_eq!(percentile(their_job), percentile(our_job));
}

#[test]
fn amounts_in_the_document_are_those_of_fio() {
    let Some(theirs) = fio(&folder("amounts"), JOBS) else { return };
    let ours: Value = serde_json::from_str(&document_text(null("50us", 4), JOBS)).unwrap();
    for (job, ddir) in [(0, "write"), (0, "read"), (2, "trim")] {
        for key in ["io_bytes", "io_kbytes", "total_ios", "short_ios", "drop_ios"] {
            assert_eq!(
                ours["jobs"][job][ddir][key], theirs["jobs"][job][ddir][key],
                "{ddir} {key}"
            );
        }
    }
}

/// fio leaves `total_ios` of a job with fdatasync at 0 though it times each; here it is their number.
#[test]
fn syncs_stand_in_the_document_as_fios_do() {
    let job = "[global]\nsize=1m\nbs=4k\nrw=write\n[sync]\nfsync=8\n[data]\nfdatasync=8\n[none]\n";
    let Some(theirs) = fio(&folder("syncs"), job) else { return };
    let ours: Value = serde_json::from_str(&document_text(null("50us", 4), job)).unwrap();
    let sync = |document: &Value, job: usize| document["jobs"][job]["sync"].clone();
    for job in 0..2 {
        let (ours, theirs) = (sync(&ours, job), sync(&theirs, job));
        assert_eq!(ours["lat_ns"]["N"], theirs["lat_ns"]["N"], "job {job}");
        assert_eq!(ours["total_ios"], ours["lat_ns"]["N"], "job {job}");
        let syncs = ours["lat_ns"]["bins"].as_object().unwrap().values();
        assert_eq!(syncs.filter_map(Value::as_u64).sum::<u64>(), 31);
    }
    assert_eq!(sync(&ours, 0)["total_ios"], sync(&theirs, 0)["total_ios"]);
    assert_eq!(sync(&ours, 2), sync(&theirs, 2));
}

#[test]
fn percentiles_of_fios_own_bins_are_those_that_fio_prints() {
    let Some(theirs) = fio(&folder("percentiles"), JOBS) else { return };
    let mut compared = 0;
    for job in theirs["jobs"].as_array().unwrap() {
        for ddir in ["read", "write", "trim"] {
            let latency = &job[ddir]["clat_ns"];
            let Some(bins) = latency["bins"].as_object() else { continue };
            let mut histogram = Histogram::default();
            for (value, count) in bins {
                let bin = bin_of(value.parse().unwrap());
                (0..count.as_u64().unwrap()).for_each(|_| histogram.add(bin));
            }
            for (percent, value) in latency["percentile"].as_object().unwrap() {
                let ours = histogram.percentile(percent.parse().unwrap());
                assert_eq!(Some(ours), value.as_u64(), "{ddir} p{percent}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 2 * 3 + 2 * 17, "only {compared} percentiles were there to compare");
}

#[test]
fn the_document_says_what_the_null_device_does() {
    let text = "[a]\nrw=randread\nbs=4k\niodepth=4\ntime_based\nruntime=10\n";
    let document: Value = serde_json::from_str(&document_text(null("100us", 4), text)).unwrap();
    let read = &document["jobs"][0]["read"];
    assert_eq!(read["iops"], 40_000.0);
    assert_eq!(read["iops_mean"], 40_000.0);
    assert_eq!(read["iops_stddev"], 0.0);
    assert_eq!(read["iops_samples"], 10);
    assert_eq!(read["bw_bytes"], 163_840_000);
    assert_eq!(read["bw"], 160_000);
    assert_eq!(read["bw_agg"], 100.0);
    assert_eq!(read["runtime"], 10_000);
    assert_eq!(read["clat_ns"]["mean"], 100_000.0);
    assert_eq!(read["clat_ns"]["bins"].to_string(), "{\"99840\":400000}");
    // 100 us are not below 100 us: fio counts them as up to 250 us.
    assert_eq!(document["jobs"][0]["latency_us"]["250"], 100.0);
    let levels = document["jobs"][0]["iodepth_level"].as_object().unwrap();
    assert_eq!(levels.values().filter_map(Value::as_f64).sum::<f64>(), 100.0);
    assert!(levels["4"].as_f64().unwrap() > 99.99);
    assert!(document["ssdlab"].get("waf").is_none(), "a null device has no flash");
    assert_eq!(document["ssdlab"]["counters"]["host_reads"], 400_000);
    assert_eq!(document["ssdlab"]["simulated_seconds"], 10.0);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let text = "[a]\nrw=randrw\nbs=4k\niodepth=16\nsize=32m\nwrite_lat_log=x\nrate_iops=30000\n\
                rate_process=poisson\n";
    let log_text = |result: &RunResult| -> Vec<u8> {
        let mut bytes = Vec::new();
        result.logs.iter().for_each(|log| log.write(&mut bytes).unwrap());
        bytes
    };
    assert_eq!(document_text(null("37us", 3), text), document_text(null("37us", 3), text));
    let (one, other) = (play(null("37us", 3), text), play(null("37us", 3), text));
    assert_eq!(one.series, other.series);
    assert_eq!(log_text(&one), log_text(&other));
}

const LOGS: &str = "[global]\nsize=100m\nbs=4k\n[a]\nrw=randrw\nrate_iops=50,20\ntime_based\n\
                    runtime=3\nwrite_bw_log=x\nwrite_iops_log=x\nwrite_lat_log=x\n\
                    write_hist_log=x\nlog_avg_msec=1000\nlog_hist_msec=1000\n";

fn lines(log: &LogFile) -> Vec<Vec<u64>> {
    let mut text = Vec::new();
    log.write(&mut text).unwrap();
    numbers(&String::from_utf8(text).unwrap())
}

fn numbers(text: &str) -> Vec<Vec<u64>> {
    let line = |line: &str| line.split(", ").map(|field| field.parse().unwrap()).collect();
    text.lines().map(line).collect()
}

#[test]
fn logs_have_the_names_and_columns_of_fios() {
    let folder = folder("logs");
    if fio(&folder, LOGS).is_none() {
        return;
    }
    let result = play(null("100us", 1), LOGS);
    let mut names: Vec<String> = result.logs.iter().map(|log| log.name.clone()).collect();
    names.sort();
    let entries = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string());
    let mut theirs: Vec<String> = entries.flatten().filter(|n| n.ends_with(".log")).collect();
    theirs.sort();
    assert_eq!(names, theirs);
    for log in &result.logs {
        let (ours, theirs) =
            (lines(log), numbers(&fs::read_to_string(folder.join(&log.name)).unwrap()));
        // The null engine is synchronous, so fio logs no submission latencies there.
        if let Some(first) = theirs.first() {
            assert_eq!(ours[0].len(), first.len(), "{}", log.name);
            let directions = |rows: &[Vec<u64>]| {
                let column = if log.name.contains("hist") { 1 } else { 2 };
                rows.iter().map(|row| row[column]).collect::<std::collections::BTreeSet<_>>()
            };
            assert_eq!(directions(&ours), directions(&theirs));
        }
    }
}

#[test]
fn windows_of_logs_hold_what_their_second_held() {
    let result = play(null("100us", 1), LOGS);
    let of = |kind: &str| {
        let name = format!("x_{kind}.1.log");
        lines(result.logs.iter().find(|log| log.name == name).unwrap())
    };
    let want = |read: u64, write: u64| -> Vec<Vec<u64>> {
        let rows = |ms| [vec![ms, read, 0, 0, 0], vec![ms, write, 1, 0, 0]];
        [1000, 2000, 3000].into_iter().flat_map(rows).collect()
    };
    assert_eq!(of("iops"), want(50, 20));
    assert_eq!(of("bw"), want(200, 80));
    assert_eq!(of("slat"), want(0, 0));
    assert_eq!(of("clat"), of("lat"));
    for row in of("clat_hist") {
        assert_eq!(row[3..].iter().sum::<u64>(), if row[1] == 0 { 50 } else { 20 });
        assert_eq!(row.len(), 3 + 1856);
    }
}

#[test]
fn without_a_window_every_io_has_its_line() {
    let text = "[a]\nrw=write\nbs=4k\nsize=40k\nwrite_lat_log=x\nwrite_bw_log=x\nlog_offset=1\n";
    let result = play(null("3ms", 1), text);
    let bw = lines(&result.logs[0]);
    let lat = lines(&result.logs[3]);
    assert_eq!((bw.len(), lat.len()), (10, 10));
    assert_eq!(lat[9], [30, 3_000_000, 1, 4096, 9 * 4096, 0]);
    assert_eq!(bw[9], [30, 4096 * 1_000_000 / 3_000_000, 1, 4096, 9 * 4096, 0]);
}

#[test]
fn coarser_histograms_and_shared_files_are_those_of_fio() {
    let text = "[global]\nsize=100m\nbs=4k\n[a]\nrw=randread\nrate_iops=50\ntime_based\nruntime=2\n\
                numjobs=2\nper_job_logs=0\nwrite_iops_log=x\nwrite_hist_log=x\nlog_avg_msec=500\n\
                log_hist_msec=500\nlog_hist_coarseness=3\n";
    let result = play(null("100us", 1), text);
    let names: Vec<&str> = result.logs.iter().map(|log| log.name.as_str()).collect();
    assert_eq!(names, ["x_iops.log", "x_clat_hist.log"]);
    assert_eq!(lines(&result.logs[0]).len(), 2 * 4);
    let histogram = lines(&result.logs[1]);
    let folder = folder("coarse");
    if fio(&folder, text).is_none() {
        return;
    }
    let theirs = numbers(&fs::read_to_string(folder.join(names[1])).unwrap());
    assert_eq!(histogram[0].len(), theirs[0].len());
    for row in histogram {
        assert_eq!(row[3..].iter().sum::<u64>(), 25);
    }
}

/// Rounding to whole superblocks by hand: 16 dies of 64 pages of 4 KiB, of which each has 8 for 32 MiB.
#[test]
fn the_document_says_what_was_built_of_each_ssd() {
    let built = |rig: &Rig| {
        let text = document_text(rig.build(1, false).unwrap(), "[a]\nrw=read\nsize=1m\n");
        let document: Value = serde_json::from_str(&text).unwrap();
        document["ssdlab"]["built"].clone()
    };
    let of = |superblocks: u64, reserve: u64, op: f64| {
        serde_json::json!({
            "capacity_bytes": 32 << 20,
            "physical_bytes": superblocks * 16 * 64 * 4096,
            "over_provisioning": op,
            "dies": 16,
            "superblocks": superblocks * 16,
            "superblock_bytes": 64 * 4096,
            "reserve_superblocks": reserve * 16,
        })
    };
    let mut rig = lab_reference(&[("capacity", "32MiB"), ("ftl.over_provisioning", "0.10")]);
    // 8 x 1.10 is 8.8, so 9.
    assert_eq!(built(&rig)[""], of(9 + 1, 1, 0.125));
    rig.set("ftl.gc.pace", "paced").unwrap();
    rig.set("ftl.gc.low", "2").unwrap();
    assert_eq!(built(&rig)[""], of(9 + 3, 3, 0.125));
    // One page of eight is parity: 512 units take 9.14 superblocks of 56, times 1.10 is 10.06.
    rig.set("ftl.parity.stripe", "8").unwrap();
    assert_eq!(built(&rig)[""], of(10 + 3, 3, 10.0 * 56.0 / 512.0 - 1.0));

    let member =
        rig.to_toml().split_once("[device]").unwrap().1.replace("[device.", "[device.member.");
    let array = "[device]\nkind = \"array\"\nlevel = \"raid1\"\ncount = 2\n[device.member]\n";
    let found = built(&Rig::parse(&format!("{array}{member}"), "array").unwrap());
    assert_eq!(found.as_object().unwrap().keys().collect::<Vec<_>>(), ["member0", "member1"]);
    assert_eq!(found["member0"], built(&rig)[""]);
    let disk = "[device]\nkind = \"null\"\ncapacity = \"1GiB\"\n";
    assert_eq!(built(&Rig::parse(disk, "null").unwrap()), Value::Null);
}
