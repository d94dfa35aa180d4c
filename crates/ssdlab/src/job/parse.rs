//! From the text of a job file to [`JobSpec`]s.

use super::replay::{Attached, OPEN_LOOP_DEPTH, Replay};
use super::spec::Reader;
use super::{JobSpec, ini, layout, options, spec};
use crate::error::{Error, Result, nearest};
use std::collections::BTreeMap;
use std::ops::Range;

/// Where the text comes from and what it may refer to; the core itself reads nothing.
pub struct ParseSource<'a> {
    /// Name of the job file in messages.
    pub file: String,
    /// The environment for `${NAME}`, and `$ncpus` and `$mb_memory` where the host is to be meant.
    pub env: BTreeMap<String, String>,
    /// Reads the file named by an `include` line.
    pub include: &'a dyn Fn(&str) -> std::io::Result<String>,
}

/// An option that has no meaning on a simulated drive: accepted, and reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Section it stands in: the job's name or `global`.
    pub job: String,
    /// The option as written.
    pub option: String,
    /// Its value as written; empty for a bare option.
    pub value: String,
    /// Line, from 1.
    pub line: u32,
}

/// One or several job files, read.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct JobFile {
    /// The jobs in the order of their sections.
    pub jobs: Vec<JobSpec>,
    /// Options without a meaning here.
    pub ignored: Vec<Ignored>,
    /// Options of the `[global]` sections by fio's names, for JSON `global options`.
    pub global_options: Vec<(String, String)>,
}

impl JobFile {
    /// Adds the jobs of another file behind these: they start together unless they say otherwise.
    pub fn append(&mut self, other: JobFile) {
        self.jobs.extend(other.jobs);
        self.ignored.extend(other.ignored);
        self.global_options.extend(other.global_options);
        self.settle();
    }

    /// Gives every job that replays a trace (`read_iolog`) its requests: the core itself reads no files.
    ///
    /// # Errors
    /// What `read` answers, at the job's option; [`Error::Job`] for more I/Os in flight than can be run.
    pub fn attach_traces(
        &mut self,
        read: &mut dyn FnMut(&Replay) -> Result<Attached>,
    ) -> Result<()> {
        for job in &mut self.jobs {
            let Some(replay) = &mut job.replay else { continue };
            let attached = match read(replay) {
                Ok(attached) => attached,
                Err(error) => match job.places.get("read_iolog") {
                    Some(place) if place.included => return Err(place.error("read_iolog", "")),
                    _ => return Err(error),
                },
            };
            if attached.open_loop && !replay.no_stall {
                let depth = attached.requests.len().clamp(1, OPEN_LOOP_DEPTH);
                job.schedule.iodepth = depth as u32;
            }
            replay.attached = Some(attached);
        }
        self.check_size()
    }

    /// The stage of each job, from 0: jobs of a later one wait for all those of earlier ones (`stonewall`,
    /// or `wait_for` where each of them does).
    pub fn stages(&self) -> Vec<u32> {
        let mut begins = self.ended_above();
        for job in (1..begins.len()).rev() {
            begins[job - 1] = begins[job - 1].min(begins[job]);
        }
        let mut stage = 0;
        let first = |(job, ended): (usize, usize)| {
            stage += u32::from(job > 0 && ended == job);
            stage
        };
        begins.into_iter().enumerate().map(first).collect()
    }

    /// Of each job, how many of the first ones have surely ended when it starts.
    fn ended_above(&self) -> Vec<usize> {
        let mut ended: Vec<Vec<bool>> = Vec::with_capacity(self.jobs.len());
        let mut walled = 0;
        for (job, spec) in self.jobs.iter().enumerate() {
            if spec.schedule.stonewall {
                walled = job;
            }
            let awaited = |above: &JobSpec| spec.schedule.wait_for.as_ref() == Some(&above.name);
            let above = self.jobs[..job].iter().enumerate();
            let mut own: Vec<bool> = above.map(|(i, one)| i < walled || awaited(one)).collect();
            // And what had ended when the awaited one started.
            if let Some(last) = self.jobs[..job].iter().rposition(awaited) {
                own.iter_mut().zip(&ended[last]).for_each(|(own, its)| *own |= its);
            }
            ended.push(own);
        }
        let first = |own: &Vec<bool>| own.iter().position(|ended| !ended).unwrap_or(own.len());
        ended.iter().map(first).collect()
    }

    /// Leaves out the jobs of all stages but these. What is left is as in the whole file: its files, places,
    /// report groups and random streams.
    ///
    /// # Errors
    /// [`Error::Value`] where there are no such stages.
    pub fn keep_stages(&mut self, kept: Range<u32>) -> Result<()> {
        let stages = self.stages();
        let count = stages.last().map_or(0, |last| last + 1);
        if kept.is_empty() || kept.end > count {
            let found = format!("{} to {}", kept.start, kept.end);
            let expected =
                format!("stages of the job, which has {count}: from one to one after it");
            return Err(Error::value(found, expected).under("stages"));
        }
        let mut stages = stages.into_iter();
        self.jobs.retain(|_| stages.next().is_some_and(|stage| kept.contains(&stage)));
        Ok(())
    }

    /// Asks for every log of every job ([`super::Logging::complete`]); those of job `n` begin with `ssdlab00n`.
    pub fn complete_logs(&mut self, avg_msec: u64) {
        for (number, job) in self.jobs.iter_mut().enumerate() {
            job.logging.complete(&format!("ssdlab{number:03}"), avg_msec);
        }
    }

    /// What depends on the other jobs: report groups, and the regions of files.
    fn settle(&mut self) {
        let mut group = 0;
        let exitall = self.jobs.iter().any(|job| job.schedule.ending.exitall);
        for (i, job) in self.jobs.iter_mut().enumerate() {
            let s = &mut job.schedule;
            group += u32::from(i > 0 && (s.stonewall || s.new_group));
            s.group = group;
            s.ending.exitall = exitall;
        }
        let all = layout::collect(
            self.jobs.iter().map(|j| (j.name.as_str(), j.schedule.numjobs, &j.pattern)),
        );
        for job in &mut self.jobs {
            job.pattern.files.all = all.clone();
        }
    }

    /// As fio refuses jobs of one report group that ask for different steady states, or some for none.
    fn check_steady(&self) -> Result<()> {
        let of = |job: &JobSpec| (job.schedule.group, job.schedule.ending.steady.clone());
        for pair in self.jobs.windows(2) {
            let ((group, steady), (other_group, other)) = (of(&pair[0]), of(&pair[1]));
            let none = steady.duration_s == 0 && other.duration_s == 0;
            if group == other_group && steady != other && !none {
                let asks = usize::from(other.duration_s > 0);
                let problem = "is to be the same for all jobs of a report group, as in fio: begin another \
                               with new_group or stonewall";
                return Err(pair[asks].error("steadystate_duration", problem));
            }
        }
        Ok(())
    }

    /// Refuses the last job where all together are more than can be run.
    fn check_size(&self) -> Result<()> {
        let schedules = || self.jobs.iter().map(|job| &job.schedule);
        let processes: u32 = schedules().map(|s| s.numjobs).sum();
        let in_flight: u64 = schedules().map(|s| u64::from(s.numjobs) * u64::from(s.iodepth)).sum();
        let Some(last) = self.jobs.last() else { return Ok(()) };
        if processes > PROCESSES_MAX {
            let problem = format!("all jobs together are more than {PROCESSES_MAX} processes");
            return Err(last.error("numjobs", problem));
        }
        if in_flight > IN_FLIGHT_MAX {
            let problem =
                format!("all jobs together have more than {IN_FLIGHT_MAX} I/Os in flight");
            return Err(last.error("iodepth", problem));
        }
        Ok(())
    }
}

/// Processes of all jobs together at most, as in fio.
pub(super) const PROCESSES_MAX: u32 = 4096;
/// I/Os in flight of all jobs together at most: what a run keeps of each fits into memory.
pub(super) const IN_FLIGHT_MAX: u64 = 1 << 22;

/// Reads a job file.
///
/// # Errors
/// [`Error::Job`] with file, line and option for anything fio would refuse or a simulated drive
/// cannot do.
pub fn parse(text: &str, source: &ParseSource) -> Result<JobFile> {
    read(text, source, Reader::Simulation)
}

/// Reads a job file that the real fio will run: options without a say in what moves where and when
/// are left to it.
///
/// # Errors
/// [`Error::Job`] as [`parse`], where places, amounts or times cannot be told.
pub fn parse_for_fio(text: &str, source: &ParseSource) -> Result<JobFile> {
    read(text, source, Reader::Fio)
}

fn read(text: &str, source: &ParseSource, reader: Reader) -> Result<JobFile> {
    let sections = ini::read(text, source)?;
    let mut file = JobFile::default();
    for section in &sections.jobs {
        let (job, ignored) = spec::build(section, reader)?;
        if let Some(name) = &job.schedule.wait_for
            && !file.jobs.iter().any(|j| j.name == *name)
        {
            let hint = nearest(name, file.jobs.iter().filter_map(JobSpec::title))
                .map(|n| format!("; did you mean \"{n}\"?"))
                .unwrap_or_default();
            return Err(job.error("wait_for", format!("no job \"{name}\" stands above{hint}")));
        }
        // Global lines come with every job: report them once.
        for entry in ignored {
            if !file.ignored.contains(&entry) {
                file.ignored.push(entry);
            }
        }
        file.jobs.push(job);
        file.check_size()?;
    }
    if file.jobs.is_empty() {
        return Err(Error::Job {
            file: source.file.clone(),
            line: 0,
            option: String::new(),
            problem: "has no job section, such as [fill]".to_string(),
        });
    }
    for line in &sections.globals {
        if let Some(option) = options::find(&line.name) {
            let value = line.value.clone().unwrap_or_else(|| "1".to_string());
            file.global_options.push((option.name.to_string(), value));
        }
    }
    file.settle();
    if reader == Reader::Simulation {
        file.check_steady()?;
    }
    Ok(file)
}
