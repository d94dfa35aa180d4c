//! Files of a job as regions of the device.
//!
//! A simulated drive is one block device. A job that names no files (no `filename`, `directory`
//! or `nrfiles`) works on the whole of it, like `filename=/dev/X` in fio, and so does a job file
//! in which only one name occurs. Where several names occur, each is a region of its own, in the
//! order of mention and on MiB boundaries: a file whose jobs give its size takes that much, the
//! others share the rest evenly. Jobs that use the same name share its region.

use super::pattern::{Amount, Pattern};
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

const MIB: u64 = 1 << 20;
/// Regions begin on multiples of this on devices too small for MiB boundaries.
const PAGE: u64 = 4096;

/// What a job says about its files, and where all files of the job file are.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Files {
    /// `filename`, taken apart.
    pub names: Vec<String>,
    /// `directory` was given.
    pub directory: Option<String>,
    /// `nrfiles`.
    pub count: u32,
    /// `filename_format`, if not fio's.
    pub format: Option<String>,
    /// Size of every file of the job file by name, in order of mention; `None`: a share of the rest.
    pub all: Arc<Vec<(String, Option<u64>)>>,
}

impl Files {
    /// The names of the files of process `thread` of `job`; empty: the whole device.
    pub fn of_process(&self, job: &str, thread: u32) -> Vec<String> {
        let count = self.count.max(1);
        if self.names.is_empty() && self.directory.is_none() && count == 1 && self.format.is_none()
        {
            return Vec::new();
        }
        let place = |name: String| match &self.directory {
            Some(directory) => format!("{directory}/{name}"),
            None => name,
        };
        if !self.names.is_empty() {
            return self.names.iter().cloned().map(place).collect();
        }
        let format = self.format.as_deref().unwrap_or("$jobname.$jobnum.$filenum");
        (0..count)
            .map(|file| {
                let name = format.replace("$jobname", job);
                let name = name.replace("$jobnum", &thread.to_string());
                place(name.replace("$filenum", &file.to_string()).replace("$clientuid", ""))
            })
            .collect()
    }

    /// The regions of process `thread` of `job` on a device of `capacity` bytes: start and length.
    ///
    /// # Errors
    /// [`Error::Unfit`] if the files of all jobs together are larger than the device.
    pub fn regions(&self, job: &str, thread: u32, capacity: u64) -> Result<Vec<(u64, u64)>> {
        let names = self.of_process(job, thread);
        if names.is_empty() || self.all.len() <= 1 {
            return Ok(vec![(0, capacity); names.len().max(1)]);
        }
        let unit = if capacity / MIB >= self.all.len() as u64 * 4 { MIB } else { PAGE };
        let fixed: u64 = self
            .all
            .iter()
            .filter_map(|(_, size)| *size)
            .fold(0, |sum, size| sum.saturating_add(size.div_ceil(unit).saturating_mul(unit)));
        let open = self.all.iter().filter(|(_, size)| size.is_none()).count() as u64;
        let share = capacity.saturating_sub(fixed).checked_div(open).unwrap_or(0) / unit * unit;
        if fixed > capacity || (open > 0 && share == 0) {
            return Err(Error::Unfit(format!(
                "the {} files of the jobs take {fixed} bytes and more than fit the {capacity} \
                 bytes of the device",
                self.all.len()
            )));
        }
        let mut places = BTreeMap::new();
        let mut start = 0u64;
        for (name, size) in self.all.iter() {
            let len = size.unwrap_or(share);
            places.insert(name.as_str(), (start, len));
            start = start.saturating_add(len.div_ceil(unit).saturating_mul(unit));
        }
        Ok(names.iter().map(|n| places[n.as_str()]).collect())
    }
}

/// The size that a job gives each of its files; `None` where it leaves it open.
fn size_of_each(pattern: &Pattern, files: usize, thread: u32) -> Option<u64> {
    if let Some((_, largest)) = pattern.file_size {
        return Some(largest);
    }
    let (Some(Amount::Bytes(size)), Amount::Bytes(offset), Amount::Bytes(step)) =
        (pattern.size, pattern.offset, pattern.offset_increment)
    else {
        return None;
    };
    let offset = offset.saturating_add(step.saturating_mul(u64::from(thread)));
    Some(size.div_ceil(files.max(1) as u64).saturating_add(offset))
}

/// The files of all jobs (name, processes, pattern), in order of mention.
pub fn collect<'a>(
    jobs: impl Iterator<Item = (&'a str, u32, &'a Pattern)>,
) -> Arc<Vec<(String, Option<u64>)>> {
    let mut all: Vec<(String, Option<u64>)> = Vec::new();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    for (job, numjobs, pattern) in jobs {
        for thread in 0..numjobs {
            let names = pattern.files.of_process(job, thread);
            let size = size_of_each(pattern, names.len(), thread);
            for name in names {
                match index.get(&name) {
                    Some(&i) => all[i].1 = all[i].1.max(size),
                    None => {
                        index.insert(name.clone(), all.len());
                        all.push((name, size));
                    }
                }
            }
        }
    }
    Arc::new(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(names: &[&str], size: Option<u64>) -> Pattern {
        let names = names.iter().map(ToString::to_string).collect();
        let size = size.map(Amount::Bytes);
        Pattern { files: Files { names, ..Files::default() }, size, ..Pattern::default() }
    }

    fn regions(jobs: &mut [Pattern], capacity: u64) -> Vec<Vec<(u64, u64)>> {
        let all = collect(jobs.iter().map(|p| ("j", 1, p)));
        jobs.iter_mut()
            .map(|p| {
                p.files.all = all.clone();
                p.files.regions("j", 0, capacity).unwrap()
            })
            .collect()
    }

    #[test]
    fn one_name_is_the_whole_device() {
        let mut jobs = [job(&["x"], Some(MIB)), job(&["x"], None), job(&[], None)];
        assert_eq!(regions(&mut jobs, 64 * MIB), vec![vec![(0, 64 * MIB)]; 3]);
    }

    #[test]
    fn several_names_are_disjoint_regions() {
        let mut jobs = [job(&["a", "b"], Some(6 * MIB)), job(&["c"], None), job(&["a"], None)];
        let found = regions(&mut jobs, 64 * MIB);
        assert_eq!(found[0], [(0, 3 * MIB), (3 * MIB, 3 * MIB)]);
        assert_eq!(found[1], [(6 * MIB, 58 * MIB)]);
        assert_eq!(found[2], [(0, 3 * MIB)]);
    }

    #[test]
    fn files_larger_than_the_device_are_an_error_with_both_sizes() {
        let mut p = job(&["a", "b"], Some(128 * MIB));
        p.files.all = collect(std::iter::once(("j", 1, &p)));
        let message = p.files.regions("j", 0, 64 * MIB).unwrap_err().to_string();
        assert!(message.contains("134217728") && message.contains("67108864"), "{message}");
    }

    #[test]
    fn a_directory_gives_each_process_its_own_file() {
        let mut p = Pattern::default();
        p.files.directory = Some("d".into());
        assert_eq!(p.files.of_process("job", 2), ["d/job.2.0"]);
        p.files.all = collect(std::iter::once(("job", 4, &p)));
        let found: Vec<_> =
            (0..4).map(|t| p.files.regions("job", t, 64 * MIB).unwrap()[0]).collect();
        assert_eq!(found[3], (48 * MIB, 16 * MIB));
    }
}
