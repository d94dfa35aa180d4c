//! The result of a run as the document that `fio --output-format=json+` writes.
//!
//! Keys, their order and their units are those of fio 3.33; one more top-level object, `ssdlab`,
//! holds what fio cannot know (see `docs/results.md`). Nothing in it depends on the wall clock.

use crate::device::Built;
use crate::job::{JobFile, JobSpec};
use crate::run::{LatencyLevels, Report, ReportDirection, RunResult, SteadyState};
use crate::stats::{Attribution, DIRECTIONS, Histogram, PART_NAMES, Summary, value_ns};
use serde_json::{Map, Value, json};

/// The version of fio whose document this is.
const FIO_VERSION: &str = "fio-3.33";

/// fio's `percentile_list` where the job gives none.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// What the caller knows and the core does not.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// The run's seed.
    pub seed: u64,
    /// `ssdlab.target`: kind, name, summary, capacity_bytes.
    pub target: Value,
    /// `ssdlab.profile`: the values of the profile with their sources; null if there is none.
    pub profile: Value,
    /// How the device was prepared, as the user writes it.
    pub preconditioning: String,
}

/// The document, as JSON text with a final newline.
pub fn document(result: &RunResult, jobs: &JobFile, context: &Context) -> String {
    let mut top = Map::new();
    top.insert("fio version".into(), FIO_VERSION.into());
    top.insert("timestamp".into(), 0.into());
    top.insert("timestamp_ms".into(), 0.into());
    top.insert("time".into(), "Thu Jan  1 00:00:00 1970".into());
    if !jobs.global_options.is_empty() {
        top.insert("global options".into(), options(&jobs.global_options));
    }
    let reports = result.reports.iter().map(|report| job(report, result, jobs));
    top.insert("jobs".into(), reports.collect());
    top.insert("ssdlab".into(), ssdlab(result, jobs, context));
    let mut text = format!("{:#}", Value::Object(top));
    text.push('\n');
    text
}

/// A number with fio's six decimals.
fn real(x: f64) -> Value {
    ((x * 1e6).round() / 1e6).into()
}

fn options(options: &[(String, String)]) -> Value {
    options.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
}

/// Whole milliseconds; time that is not 0 never reads as 0, which fio's readers divide by.
fn millis(ns: u64) -> u64 {
    if ns == 0 { 0 } else { (ns + 500_000).div_euclid(1_000_000).max(1) }
}

/// One entry of `jobs`.
fn job(report: &Report, result: &RunResult, jobs: &JobFile) -> Value {
    let spec = &jobs.jobs[report.job];
    let span = &result.spans[report.job];
    let mut entry = Map::new();
    entry.insert("jobname".into(), spec.name.as_str().into());
    entry.insert("groupid".into(), report.group.into());
    entry.insert("error".into(), report.failure.as_ref().map_or(0, |f| f.error).into());
    entry.insert("eta".into(), 0.into());
    entry.insert("elapsed".into(), span.ended_ns.div_ceil(1_000_000_000).into());
    entry.insert("job options".into(), options(&spec.options));
    for (ddir, name) in DIRECTIONS.iter().take(3).enumerate() {
        let group = result.reports.iter().filter(|other| other.group == report.group);
        let group_bw: f64 = group.map(|other| other.directions[ddir].bw_kib.mean()).sum();
        let stats = direction(&report.directions[ddir], report.runtime_ns[ddir], group_bw, spec);
        entry.insert((*name).into(), stats);
    }
    let sync = &report.directions[3].tally;
    entry.insert(
        DIRECTIONS[3].into(),
        json!({
            "total_ios": sync.ios(),
            "lat_ns": latency(&sync.lat, Some((&sync.bins, spec))),
        }),
    );
    entry.insert("job_runtime".into(), millis(report.job_runtime_ns).into());
    for name in ["usr_cpu", "sys_cpu"] {
        entry.insert(name.into(), 0.0.into());
    }
    for name in ["ctx", "majf", "minf"] {
        entry.insert(name.into(), 0.into());
    }
    depths(report, &mut entry);
    levels(&report.levels, &mut entry);
    let target = &spec.schedule.ending.latency;
    let depth = report.depth.unwrap_or(spec.schedule.iodepth);
    entry.insert("latency_depth".into(), depth.into());
    entry.insert("latency_target".into(), target.target_ns.into());
    entry.insert("latency_percentile".into(), target.percentile.into());
    entry.insert("latency_window".into(), (target.window_ns / 1000).into());
    let mut described = spec.options.iter().chain(&jobs.global_options);
    if let Some((_, text)) = described.find(|(name, _)| name == "description") {
        entry.insert("desc".into(), text.as_str().into());
    }
    if let Some(state) = &report.steady {
        entry.insert("steadystate".into(), steady(state));
    }
    entry.into()
}

/// `read`, `write` or `trim` of a job.
fn direction(stats: &ReportDirection, runtime_ns: u64, group_bw_kib: f64, spec: &JobSpec) -> Value {
    let tally = &stats.tally;
    let ios = tally.ios();
    let runtime_ns = if ios == 0 { 0 } else { runtime_ns };
    // From exact time: fio divides by its whole milliseconds, which is all it knows. What took no
    // time has no rate.
    let per_second =
        |n: u64| if runtime_ns == 0 { 0.0 } else { n as f64 * 1e9 / runtime_ns as f64 };
    // Submission takes no time: slat is 0 as often as there were I/Os, and clat equals lat.
    let slat = json!({ "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": ios });
    let share = if group_bw_kib > 0.0 { stats.bw_kib.mean() / group_bw_kib * 100.0 } else { 0.0 };
    json!({
        "io_bytes": tally.bytes,
        "io_kbytes": tally.bytes / 1024,
        "bw_bytes": per_second(tally.bytes) as u64,
        "bw": (per_second(tally.bytes) / 1024.0) as u64,
        "iops": real(per_second(ios)),
        "runtime": millis(runtime_ns),
        "total_ios": ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": slat,
        "clat_ns": latency(&tally.lat, Some((&tally.bins, spec))),
        "lat_ns": latency(
            &tally.lat,
            spec.logging.lat_percentiles.then_some((&tally.bins, spec)),
        ),
        "bw_min": stats.bw_kib.min(),
        "bw_max": stats.bw_kib.max(),
        "bw_agg": real(share.min(100.0)),
        "bw_mean": real(stats.bw_kib.mean()),
        "bw_dev": real(stats.bw_kib.stddev()),
        "bw_samples": stats.bw_kib.count(),
        "iops_min": stats.iops.min(),
        "iops_max": stats.iops.max(),
        "iops_mean": real(stats.iops.mean()),
        "iops_stddev": real(stats.iops.stddev()),
        "iops_samples": stats.iops.count(),
    })
}

/// `clat_ns` and its like; with percentiles and bins where there are any.
fn latency(summary: &Summary, bins: Option<(&Histogram, &JobSpec)>) -> Value {
    let mut entry = json!({
        "min": summary.min(),
        "max": summary.max(),
        "mean": real(summary.mean()),
        "stddev": real(summary.stddev()),
        "N": summary.count(),
    });
    if let Some((bins, spec)) = bins.filter(|_| summary.count() > 0) {
        let mut list = spec.logging.percentiles.clone();
        if list.is_empty() {
            list = PERCENTILES.to_vec();
        }
        list.sort_by(f64::total_cmp);
        list.dedup();
        let values = bins.percentiles(&list);
        let percentile = list.iter().zip(values).map(|(p, ns)| (format!("{p:.6}"), ns.into()));
        entry["percentile"] = Value::Object(percentile.collect());
        let counts = bins.counts().iter().enumerate().filter(|(_, count)| **count > 0);
        let counts = counts.map(|(bin, count)| (value_ns(bin).to_string(), (*count).into()));
        entry["bins"] = Value::Object(counts.collect());
    }
    entry
}

/// `steadystate`: seconds that there were none of are 0.
fn steady(state: &SteadyState) -> Value {
    let asked = &state.asked;
    let slope = if asked.slope { "_slope" } else { "" };
    let kind = format!("{}{slope}", if asked.iops { "iops" } else { "bw" });
    let unit = if asked.percent { "%" } else { "" };
    let window = asked.duration_s as usize;
    let rates = || state.rates.iter().copied().chain(std::iter::repeat((0, 0))).take(window);
    let mean = |rate: fn((u64, u64)) -> u64| rates().map(rate).sum::<u64>() / asked.duration_s;
    json!({
        "ss": format!("{kind}:{:.6}{unit}", asked.limit),
        "duration": asked.duration_s,
        "attained": u32::from(state.attained),
        "criterion": format!("{:.6}{unit}", state.criterion),
        "max_deviation": real(state.deviation),
        "slope": real(state.slope),
        "data": {
            "bw_mean": mean(|(_, bw)| bw),
            "iops_mean": mean(|(iops, _)| iops),
            "iops": rates().map(|(iops, _)| iops).collect::<Vec<_>>(),
            "bw": rates().map(|(_, bw)| bw).collect::<Vec<_>>(),
        },
    })
}

/// `iodepth_level` and the batches; those of jobs that have none are of one I/O each.
fn depths(report: &Report, entry: &mut Map<String, Value>) {
    const LEVELS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
    const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
    let total: u64 = report.depths.iter().sum();
    let percent = |count: u64| real(100.0 * count as f64 / total.max(1) as f64);
    let level = LEVELS.iter().zip(report.depths);
    let level = level.map(|(name, count)| (name.to_string(), percent(count)));
    entry.insert("iodepth_level".into(), level.collect());
    let one_by_one = [[0, u64::from(total > 0), 0, 0, 0, 0, 0]; 2];
    let batches = report.batches.unwrap_or(one_by_one);
    for (name, counts) in ["iodepth_submit", "iodepth_complete"].into_iter().zip(batches) {
        let all: u64 = counts.iter().sum();
        let percent = |count: u64| real(100.0 * count as f64 / all.max(1) as f64);
        let shares = BATCHES.iter().zip(counts);
        let shares = shares.map(|(batch, count)| (batch.to_string(), percent(count)));
        entry.insert(name.into(), shares.collect());
    }
}

/// `latency_ns`, `latency_us`, `latency_ms`: percent of the I/Os below each end.
fn levels(levels: &LatencyLevels, entry: &mut Map<String, Value>) {
    const STEPS: [&str; 10] = ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000"];
    let total: u64 = levels.counts.iter().sum();
    let percent = |count: u64| real(100.0 * count as f64 / total.max(1) as f64);
    for (table, name) in ["latency_ns", "latency_us", "latency_ms"].into_iter().enumerate() {
        let counts = &levels.counts[table * 10..];
        let mut shares: Map<String, Value> =
            STEPS.iter().zip(counts).map(|(s, count)| (s.to_string(), percent(*count))).collect();
        if table == 2 {
            shares.insert("2000".into(), percent(counts[10]));
            shares.insert(">=2000".into(), percent(counts[11]));
        }
        entry.insert(name.into(), shares.into());
    }
}

/// The object `ssdlab`.
fn ssdlab(result: &RunResult, jobs: &JobFile, context: &Context) -> Value {
    let ignored = jobs.ignored.iter().map(|ignored| {
        json!({
            "job": ignored.job,
            "option": ignored.option,
            "value": ignored.value,
            "line": ignored.line,
        })
    });
    let seconds = |ns: u64| ns as f64 / 1e9;
    let spans = jobs.jobs.iter().zip(&result.spans).map(|(spec, span)| {
        let mut entry = json!({
            "name": spec.name,
            "started_s": seconds(span.started_ns),
            "measured_from_s": seconds(span.measured_from_ns),
            "ended_s": seconds(span.ended_ns),
        });
        if let Some(waf) = span.waf {
            entry["waf"] = real(waf);
        }
        entry
    });
    let counters = result.counters.iter().map(|(name, value)| (name.clone(), (*value).into()));
    let mut entry = json!({
        "schema": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "seed": context.seed,
        "target": context.target,
        "profile": context.profile,
        "ignored_options": ignored.collect::<Vec<_>>(),
        "preconditioning": context.preconditioning,
        "simulated_seconds": seconds(result.simulated_ns),
        "interval_ms": result.interval_ns / 1_000_000,
        "jobs": spans.collect::<Vec<_>>(),
    });
    let failed = result.reports.iter().filter_map(|report| {
        let name = &jobs.jobs[report.job].name;
        let problem = &report.failure.as_ref()?.problem;
        Some(json!({ "job": name, "problem": problem }))
    });
    let failed: Vec<Value> = failed.collect();
    if !failed.is_empty() {
        entry["failed_jobs"] = failed.into();
    }
    for (name, waf) in [("waf", result.waf), ("waf_lifetime", result.waf_lifetime)] {
        if let Some(waf) = waf {
            entry[name] = real(waf);
        }
    }
    entry["volatile_writes"] = result.volatile.into();
    if !result.built.is_empty() {
        let built = result.built.iter().map(|(path, one)| (path.clone(), built(one)));
        entry["built"] = Value::Object(built.collect());
    }
    entry["counters"] = Value::Object(counters.collect());
    entry["attribution"] = attribution(result, jobs);
    entry
}

/// What was built of an SSD.
fn built(built: &Built) -> Value {
    json!({
        "capacity_bytes": built.capacity_bytes,
        "physical_bytes": built.physical_bytes,
        "over_provisioning": real(built.over_provisioning),
        "dies": built.dies,
        "superblocks": built.superblocks,
        "superblock_bytes": built.superblock_bytes,
        "reserve_superblocks": built.reserve_superblocks,
    })
}

/// Where the time went: of the whole run by direction, and the same for each job name.
fn attribution(result: &RunResult, jobs: &JobFile) -> Value {
    let mut whole = <[Attribution; 4]>::default();
    let mut by_name: Vec<(&str, [Attribution; 4])> = Vec::new();
    for (spec, tables) in jobs.jobs.iter().zip(&result.attribution) {
        let known = by_name.iter().position(|(name, _)| *name == spec.name);
        let place = known.unwrap_or_else(|| {
            by_name.push((&spec.name, Default::default()));
            by_name.len() - 1
        });
        for (ddir, table) in tables.iter().enumerate() {
            whole[ddir].merge(table);
            by_name[place].1[ddir].merge(table);
        }
    }
    let mut entry = by_direction(&whole);
    entry["parts"] = json!(PART_NAMES);
    entry["jobs"] =
        by_name.iter().map(|(name, tables)| (name.to_string(), by_direction(tables))).collect();
    entry
}

fn by_direction(tables: &[Attribution; 4]) -> Value {
    let mut entry = json!({});
    for (name, table) in DIRECTIONS.iter().zip(tables) {
        let rows: Vec<Value> = table
            .rows()
            .map(|(upper, row)| json!({ "upper_ns": upper, "ios": row.ios, "ns": row.parts.0 }))
            .collect();
        if !rows.is_empty() {
            entry[*name] = json!({ "total_ns": table.total(), "by_latency": rows });
        }
    }
    entry
}
