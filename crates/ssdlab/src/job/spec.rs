//! From the options of one section to a [`JobSpec`].

use super::ini::{Line, Section};
use super::options::{self, Class, JobOption, Kind};
use super::parse::{IN_FLIGHT_MAX, Ignored, PROCESSES_MAX};
use super::pattern::{Amount, BlockSizes, Distribution, Pattern, Zones};
use super::replay::Replay;
use super::{JobSpec, Logging, PerDirection, Schedule, pace, size, values};
use crate::error::{Error, Result};
use crate::units::Bytes;
use std::collections::BTreeMap;

/// Files of a job at most: a bound against slips like `nrfiles=4m`.
const FILES_MAX: u64 = 65_536;

const SECOND: u64 = 1_000_000_000;

/// A job being put together.
pub struct Draft {
    pub spec: JobSpec,
    pub ignored: Vec<Ignored>,
    base: u64,
    sizes: PerDirection<Option<u64>>,
    ranges: PerDirection<Option<(u64, u64)>>,
    splits: PerDirection<Option<Vec<(u64, f64)>>>,
    strided: bool,
    zone: [Option<u64>; 3],
    compress: u8,
    zero_buffers: bool,
    open_files: u64,
    fills: bool,
    replay: Replay,
    reader: Reader,
}

/// Who is going to run the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A simulated drive: every option must have a meaning on it.
    Simulation,
    /// The real fio, which knows its options itself: only what a plan needs is read.
    Fio,
}

/// Reads the options of `section`.
///
/// # Errors
/// [`Error::Job`] for an unknown option, a wrong value, or options that contradict each other.
pub fn build(section: &Section, reader: Reader) -> Result<(JobSpec, Vec<Ignored>)> {
    let mut draft = Draft::new(section, reader);
    // Sizes depend on the kb_base of their section wherever it stands, those of [global] on its own.
    for global in [true, false] {
        let lines = section.lines.iter().filter(|line| line.global == global);
        let (base, others): (Vec<_>, _) = lines.partition(|line| line.name == "kb_base");
        for line in base.into_iter().chain(others) {
            match draft.line(line) {
                Err(_) if reader == Reader::Fio && !options::is_planned(&line.name) => {}
                read => read?,
            }
        }
    }
    draft.finish(section)
}

impl Draft {
    fn new(section: &Section, reader: Reader) -> Self {
        let schedule = Schedule { iodepth: 1, numjobs: 1, ..Schedule::default() };
        Draft {
            spec: JobSpec {
                name: section.name.clone(),
                place: section.place.clone(),
                schedule,
                logging: Logging::default(),
                pattern: Pattern::default(),
                replay: None,
                options: Vec::new(),
                places: BTreeMap::new(),
            },
            ignored: Vec::new(),
            base: 1024,
            sizes: [None; 3],
            ranges: [None; 3],
            splits: [const { None }; 3],
            strided: false,
            zone: [None; 3],
            compress: 0,
            zero_buffers: false,
            open_files: 0,
            fills: false,
            replay: Replay::default(),
            reader,
        }
    }

    fn line(&mut self, line: &Line) -> Result<()> {
        let option = options::find(&line.name).ok_or_else(|| unknown(line))?;
        let value = line_value(line, option)?;
        if !line.global {
            self.spec.options.push((option.name.to_string(), value.to_string()));
        }
        match option.class {
            Class::Unsupported if self.reader == Reader::Fio => {}
            // Its value may leave things as they are without it.
            Class::Unsupported if !matches!(value, "0" | "none" | "no") => {
                return Err(line.error(format!(
                    "fio has this option ({}), but simulated drives do not support it",
                    option.summary
                )));
            }
            Class::Semantic => {}
            Class::Ignored | Class::Unsupported => {
                let job = if line.global { "global" } else { &self.spec.name };
                self.ignored.push(Ignored {
                    job: job.to_string(),
                    option: line.name.clone(),
                    value: line.value.clone().unwrap_or_default(),
                    line: line.place.line,
                });
                return Ok(());
            }
        }
        self.spec.places.insert(option.name, line.place.clone());
        let known = self
            .offsets(option.name, value)
            .and_then(|done| if done { Ok(true) } else { self.operations(option.name, value) })
            .and_then(|done| if done { Ok(true) } else { self.schedule(option.name, value) })
            .and_then(|done| if done { Ok(true) } else { self.logging(option.name, value) })
            .and_then(|done| match done {
                true => Ok(true),
                false => self.replay.option(option.name, value, self.base),
            })
            .map_err(|e| line.error(e.to_string()))?;
        assert!(
            known || option.class == Class::Unsupported,
            "option {} is in the table and nothing reads it",
            option.name
        );
        Ok(())
    }

    /// Options about what the I/Os are.
    fn operations(&mut self, name: &str, value: &str) -> Result<bool> {
        let base = self.base;
        let block = |t: &str| size::above_zero(t, base);
        let p = &mut self.spec.pattern;
        match name {
            "rw" => values::rw(value, base, p)?,
            "rw_sequencer" => {
                p.identical = values::choice(value, &["sequential", "identical"])? == 1;
            }
            "rwmixread" => p.mix_read = values::percent(value)?,
            "rwmixwrite" => p.mix_read = 100 - values::percent(value)?,
            "bs" if value.contains(['-', '/']) => {
                return Err(Error::value(
                    value,
                    "one size for each direction; a range is bsrange=4k-64k, a mix bssplit=4k/60:64k/40",
                ));
            }
            "bs" => size::per_direction(value, &mut self.sizes, |t| block(t).map(Some))?,
            "bsrange" => size::per_direction(value, &mut self.ranges, |t| {
                size::range(t, block)
                    .ok_or_else(|| Error::value(t, "a range of sizes, such as 4k-64k"))?
                    .map(Some)
            })?,
            "bssplit" => {
                size::per_direction(value, &mut self.splits, |t| values::split(t, block).map(Some))?
            }
            "ba" => size::per_direction(value, &mut p.align, block)?,
            "fsync" => p.fsync = size::bytes(value, base)?,
            "fdatasync" => p.fdatasync = size::bytes(value, base)?,
            "verify" => p.verify = Some(values::verify(value)?),
            // As in fio a content is one to verify by, unless verify says otherwise.
            "verify_pattern" => _ = p.verify.get_or_insert(true),
            "do_verify" => p.do_verify = value != "0",
            "end_fsync" | "fsync_on_close" => p.end_fsync |= value != "0",
            "buffer_compress_percentage" => self.compress = values::percent(value)? as u8,
            "refill_buffers" => p.refill_buffers = value != "0",
            "zero_buffers" => self.zero_buffers = value != "0",
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Options about where the I/Os go.
    fn offsets(&mut self, name: &str, value: &str) -> Result<bool> {
        let base = self.base;
        let amount = |t: &str| size::amount(t, base);
        let p = &mut self.spec.pattern;
        match name {
            "filename" => p.files.names = values::names(value),
            "directory" => p.files.directory = Some(value.to_string()),
            "filename_format" => p.files.format = Some(value.to_string()),
            "nrfiles" => p.files.count = values::count(value, base, FILES_MAX)?,
            "openfiles" => self.open_files = size::bytes(value, base)?,
            "file_service_type" => (p.file_service, p.file_every) = values::file_service(value)?,
            "filesize" => {
                let read = |t: &str| size::above_zero(t, base);
                p.file_size = Some(match size::range(value, read) {
                    Some(range) => range?,
                    None => read(value).map(|n| (n, n))?,
                });
            }
            "size" => p.size = values::some_amount(amount(value)?),
            "fill_device" => self.fills = value != "0",
            "io_size" => p.io_size = values::some_amount(amount(value)?),
            "offset" => p.offset = amount(value)?,
            "offset_increment" => p.offset_increment = amount(value)?,
            "offset_align" => p.offset_align = size::bytes(value, base)?,
            "file_append" => p.append = value != "0",
            "number_ios" => p.number_ios = size::bytes(value, base)?,
            "loops" => p.loops = size::bytes(value, base)?.max(1),
            "norandommap" => p.norandommap = value != "0",
            "random_generator" => p.generator = values::generator(value)?,
            "random_distribution" => p.distribution = values::distribution(value, base)?,
            "percentage_random" => {
                size::per_direction(value, &mut p.percentage_random, values::percent)?;
            }
            "randrepeat" | "allrandrepeat" => p.repeat = value != "0",
            "randseed" => p.seed = size::bytes(value, base)?,
            "zonemode" => self.strided = values::choice(value, &["none", "strided"])? == 1,
            "zonesize" => self.zone[0] = Some(size::bytes(value, base)?),
            "zonerange" => self.zone[1] = Some(size::bytes(value, base)?),
            "zoneskip" => self.zone[2] = Some(size::bytes(value, base)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Options about when.
    fn schedule(&mut self, name: &str, value: &str) -> Result<bool> {
        let base = self.base;
        let s = &mut self.spec.schedule;
        match name {
            "name" => self.spec.name = value.to_string(),
            "description" => {}
            "kb_base" => {
                self.base = if values::choice(value, &["1024", "1000"])? == 0 { 1024 } else { 1000 }
            }
            "iodepth" => s.iodepth = values::count(value, base, IN_FLIGHT_MAX)?,
            "numjobs" => s.numjobs = values::count(value, base, u64::from(PROCESSES_MAX))?,
            "runtime" => s.runtime_ns = Some(size::time(value, SECOND)?).filter(|t| *t > 0),
            "time_based" => s.time_based = value != "0",
            "ramp_time" => s.ramp_ns = size::time(value, SECOND)?,
            "startdelay" => {
                let read = |t: &str| size::time(t, SECOND);
                s.start_delay_ns = match size::range(&value.replace(',', "-"), read) {
                    Some(range) => range?,
                    None => read(value).map(|t| (t, t))?,
                };
            }
            "stonewall" => s.stonewall = value != "0",
            "wait_for" => s.wait_for = Some(value.to_string()),
            "group_reporting" => s.group_reporting = value != "0",
            "new_group" => s.new_group = value != "0",
            _ => {
                return Ok(s.ending.option(name, value)?
                    || s.queue.option(name, value, base)?
                    || s.pace.option(name, value, base)?);
            }
        }
        Ok(true)
    }

    /// Options about what is written down.
    fn logging(&mut self, name: &str, value: &str) -> Result<bool> {
        let base = self.base;
        let job = &self.spec.name;
        let prefix = |v: &str| Some(if v.is_empty() { job.clone() } else { v.to_string() });
        let l = &mut self.spec.logging;
        match name {
            "write_bw_log" => l.bw = prefix(value),
            "write_lat_log" => l.lat = prefix(value),
            "write_iops_log" => l.iops = prefix(value),
            "write_hist_log" => l.hist = prefix(value),
            "log_avg_msec" => l.avg_msec = size::bytes(value, base)?,
            "log_hist_msec" => l.hist_msec = size::bytes(value, base)?,
            "log_hist_coarseness" => {
                l.hist_coarseness = match size::bytes(value, base)? {
                    n @ 0..=6 => n as u32,
                    _ => return Err(Error::value(value, "0 to 6")),
                };
            }
            "log_max_value" => l.max_value = value != "0",
            "log_offset" => l.offset = value != "0",
            "per_job_logs" => l.shared_files = value == "0",
            "percentile_list" => l.percentiles = values::percentiles(value)?,
            "lat_percentiles" => l.lat_percentiles = value != "0",
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish(mut self, section: &Section) -> Result<(JobSpec, Vec<Ignored>)> {
        self.sizes()?;
        self.replayed()?;
        let spec = &mut self.spec;
        spec.pattern.compressible = if self.zero_buffers { 100 } else { self.compress };
        if spec.schedule.time_based && spec.schedule.runtime_ns.is_none() {
            if self.reader == Reader::Fio {
                // fio says so and goes on.
                spec.schedule.time_based = false;
            } else if spec.places.contains_key("runtime") {
                let problem =
                    "is 0 to fio, which reads no fraction of a second: write 300ms for 0.3";
                return Err(spec.error("runtime", problem));
            } else {
                let problem = "needs runtime: how long the job is to begin again and again";
                return Err(spec.error("time_based", problem));
            }
        }
        if self.reader == Reader::Simulation {
            pace::check(spec)?;
        }
        let files = u64::from(spec.pattern.files.count.max(1));
        if u64::from(spec.schedule.numjobs) * files > FILES_MAX {
            let problem = format!("numjobs times nrfiles is more than {FILES_MAX}");
            return Err(section.place.error(&format!("[{}]", section.name), problem));
        }
        self.zones()?;
        if self.reader == Reader::Simulation {
            self.fill()?;
            lost_in_fio(&self.spec)?;
            let files = self.spec.pattern.files.of_process(&self.spec.name, 0).len();
            if self.open_files > 0 && self.open_files < files as u64 {
                let problem = format!(
                    "simulated drives keep all files of a job open: expected {files} or more"
                );
                return Err(self.spec.error("openfiles", problem));
            }
        }
        Ok((self.spec, self.ignored))
    }

    /// With `fill_device` a share of the files is the whole. Where no end of a file ends the job, fio goes on for ever.
    fn fill(&mut self) -> Result<()> {
        let p = &mut self.spec.pattern;
        if !self.fills {
            return Ok(());
        }
        let one = p.directions.iter().filter(|on| **on).count() == 1;
        let free = p.random && (p.norandommap || p.distribution != Distribution::Uniform);
        if !one || free || p.zones.is_some() {
            let problem = "fills by I/Os of one direction that come everywhere once; others have no end in fio";
            return Err(self.spec.error("fill_device", problem));
        }
        p.size = p.size.filter(|size| matches!(size, Amount::Bytes(_)));
        Ok(())
    }

    /// Puts the options of zones together. The real fio has other modes of them, and says itself what is wrong.
    fn zones(&mut self) -> Result<()> {
        let (simulated, spec) = (self.reader == Reader::Simulation, &mut self.spec);
        let block = spec.pattern.block_min();
        spec.pattern.zones = match (self.strided, self.zone) {
            (true, [Some(size), range, skip]) => {
                let range = range.unwrap_or(size);
                for (option, bytes) in [("zonerange", range), ("zonesize", size)] {
                    if bytes < block {
                        let (bytes, block) = (Bytes(bytes), Bytes(block));
                        let problem = format!("{bytes} is less than one I/O of {block}");
                        return Err(spec.error(option, problem));
                    }
                }
                if simulated && spec.pattern.skip != 0 {
                    let problem = "a size behind the colon is not supported with zonemode=strided";
                    return Err(spec.error("rw", problem));
                }
                Some(Zones { range, size, skip: skip.unwrap_or(0) })
            }
            (true, _) => return Err(spec.error("zonemode", "strided needs zonesize, in bytes")),
            (false, [Some(_), ..]) if simulated => {
                return Err(spec.error("zonesize", "has a meaning only with zonemode=strided"));
            }
            (false, _) => None,
        };
        Ok(())
    }

    /// As in fio a trace takes the place of the whole pattern, and its end ends the job.
    fn replayed(&mut self) -> Result<()> {
        if self.replay.file.is_empty() {
            return Ok(());
        }
        let Pattern { verify, do_verify, .. } = self.spec.pattern;
        self.spec.pattern = Pattern { verify, do_verify, ..Pattern::default() };
        self.spec.schedule.time_based = false;
        (self.strided, self.zone) = (false, [None; 3]);
        self.spec.replay = Some(std::mem::take(&mut self.replay));
        if self.reader == Reader::Simulation && self.spec.pattern.verifies() {
            let problem = "what a trace writes is not read back on simulated drives";
            return Err(self.spec.error(self.spec.verifies_by(), problem));
        }
        Ok(())
    }

    /// Puts `bs`, `bsrange` and `bssplit` together; a split goes before a range, a range before bs.
    fn sizes(&mut self) -> Result<()> {
        for d in 0..3 {
            let chosen = match (self.splits[d].take(), self.ranges[d]) {
                (Some(split), _) => BlockSizes::Split(split),
                (None, Some((min, max))) if min < max => BlockSizes::Range { min, max },
                (None, Some((min, _))) => BlockSizes::Fixed(min),
                (None, None) => BlockSizes::Fixed(self.sizes[d].unwrap_or(4096)),
            };
            self.spec.pattern.sizes[d] = chosen;
        }
        Ok(())
    }
}

/// Refuses what fio takes and then loses its way in: it would help nobody to do the same.
fn lost_in_fio(spec: &JobSpec) -> Result<()> {
    let p = &spec.pattern;
    let shaped = matches!(
        p.distribution,
        Distribution::Zipf { .. } | Distribution::Pareto { .. } | Distribution::Normal { .. }
    );
    if p.random && shaped && p.zones.is_some() {
        let problem = "zipf, pareto and normal have no meaning within zones: fio draws them over the whole \
                       file behind each zone, and ends where that goes beyond it";
        return Err(spec.error("random_distribution", problem));
    }
    if !p.trim_then_write {
        return Ok(());
    }
    if p.sizes[1] != p.sizes[2] {
        return Err(spec.error("bs", "what is trimmed is written: expected one size for both"));
    }
    let begins = [("offset", p.offset), ("offset_increment", p.offset_increment)];
    let behind = begins.iter().find(|(_, at)| at.of(u64::MAX) > 0).map(|(option, _)| *option);
    if let (true, Some(option)) = (p.random, behind.or(p.zones.map(|_| "zonemode"))) {
        let problem = "randtrimwrite works from the start of a file only; elsewhere fio trims once and then \
                       only writes";
        return Err(spec.error(option, problem));
    }
    let pair = p.sizes[1].max().saturating_mul(2);
    let splits = |z: &Zones| {
        p.sizes[1].min() < p.sizes[1].max() || !z.size.is_multiple_of(pair) || z.range < z.size
    };
    if p.zones.as_ref().is_some_and(splits) {
        let problem = "of a trimwrite job holds both I/Os of each block, all of one size, and is no larger than \
                       zonerange; otherwise fio writes elsewhere than it trims";
        return Err(spec.error("zonesize", problem));
    }
    Ok(())
}

/// The value as the option's kind wants it; `"1"` for a bare flag.
fn line_value<'a>(line: &'a Line, option: &JobOption) -> Result<&'a str> {
    let bare_log = option.name.starts_with("write_") && option.name.ends_with("_log");
    let value = match (&line.value, option.kind) {
        (Some(value), _) => value.as_str(),
        (None, Kind::Flag) => "1",
        (None, _) if option.class == Class::Unsupported => "1",
        (None, _) if bare_log => "",
        (None, _) => {
            return Err(
                line.error(format!("needs a value, such as {}={}", line.name, option.example))
            );
        }
    };
    let number = value.parse::<u64>().ok();
    match option.kind {
        Kind::Flag if number.is_none() => {
            Err(line.error(format!("found \"{value}\", expected 0 or 1, or the name alone")))
        }
        Kind::Bool if number.is_none_or(|n| n > 1) => {
            Err(line.error(format!("found \"{value}\", expected 0 or 1")))
        }
        _ if value.is_empty() && !bare_log => {
            Err(line.error(format!("needs a value, such as {}={}", line.name, option.example)))
        }
        _ => Ok(value),
    }
}

fn unknown(line: &Line) -> Error {
    line.error(match options::meant(&line.name) {
        Some(name) => format!("fio has no option of this name; did you mean \"{name}\"?"),
        None => "fio has no option of this name".to_string(),
    })
}
