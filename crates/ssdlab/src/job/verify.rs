//! What a job has written and reads back to see that it is there (fio's `verify`).
//!
//! Contents are not compared: a simulated drive gives back what it was given. As in fio 3.33 blocks that come once
//! each, by a random map, are read in the order in which they were written, all others by their place and once.

use super::Io;
use super::extent::Amounts;
use super::region::{Remember, unique_blocks};
use super::{Generator, JobSpec, Pattern};
use crate::device::Op;
use crate::error::{Error, Result};
use std::collections::{BTreeMap, VecDeque};

/// Writes that a process remembers at most: 4 GiB of memory.
const WRITES_MAX: u64 = if cfg!(test) { 1000 } else { 1 << 28 };

/// See the module.
#[derive(Clone, Debug)]
pub struct Written {
    /// Places and lengths in order, where none comes twice.
    in_order: Option<VecDeque<(u64, u32)>>,
    /// By place.
    by_place: BTreeMap<u64, u32>,
    /// Being read back.
    reads: VecDeque<(u64, u32)>,
    /// The last I/O was one of those.
    pub reading: bool,
}

impl Written {
    /// `None` for a job that reads nothing back.
    ///
    /// # Errors
    /// [`crate::Error::Job`] where that is more than can be remembered, and time does not end it earlier.
    pub fn new(spec: &JobSpec, amounts: &Amounts) -> Result<Option<Self>> {
        let pattern = &spec.pattern;
        if !pattern.reads_back() {
            return Ok(None);
        }
        // Of a pass; of places that repeat each one once.
        let bytes = amounts.moved.min(amounts.available) as f64 * pattern.shares()[1];
        let writes = bytes as u64 / pattern.sizes[1].min().max(1);
        if writes > WRITES_MAX && spec.schedule.runtime_ns.is_none() {
            return Err(too_many(spec));
        }
        let once = matches!(unique_blocks(pattern), Remember::Blocks);
        Ok(Some(Written {
            in_order: once.then(VecDeque::new),
            by_place: BTreeMap::new(),
            reads: VecDeque::new(),
            reading: false,
        }))
    }

    /// An I/O of the pattern.
    pub fn add(&mut self, io: &Io) {
        self.reading = false;
        if io.op != Op::Write {
            return;
        }
        let (from, to, len) = (io.offset, io.offset + io.len, io.len as u32);
        if let Some(list) = &mut self.in_order {
            return list.push_back((from, len));
        }
        // What a write covers, if in part, is not read back as it was.
        while let Some((&start, &len)) = self.by_place.range(..to).next_back()
            && start + u64::from(len) > from
        {
            self.by_place.remove(&start);
        }
        self.by_place.insert(from, len);
    }

    /// The pass is over: what it wrote is to be read. Bytes of that.
    pub fn turn(&mut self) -> u64 {
        self.reads = match &mut self.in_order {
            Some(list) => std::mem::take(list),
            None => std::mem::take(&mut self.by_place).into_iter().collect(),
        };
        self.reads.iter().map(|(_, len)| u64::from(*len)).sum()
    }

    /// More was written than can be remembered.
    pub fn is_full(&self) -> bool {
        let listed = self.in_order.as_ref().map_or(0, VecDeque::len);
        listed.max(self.by_place.len()) as u64 > WRITES_MAX
    }

    /// Whether a read is next.
    pub fn reads_next(&self) -> bool {
        !self.reads.is_empty()
    }
}

/// The job writes more than can be remembered.
pub fn too_many(spec: &JobSpec) -> Error {
    let problem = format!(
        "remembers each write until it is read back, which takes too much memory: expected {WRITES_MAX} or fewer in a \
         pass, by a smaller size or larger blocks"
    );
    spec.error(spec.verifies_by(), problem)
}

impl Generator {
    /// It has written more than can be remembered to be read back.
    pub fn is_full(&self) -> bool {
        self.written.as_ref().is_some_and(Written::is_full)
    }

    /// The next I/O reads back what was written.
    pub fn reads_back_next(&self) -> bool {
        self.written.as_ref().is_some_and(Written::reads_next)
    }

    /// The last I/O read back what was written: no rate and no mix has to do with it.
    pub fn is_reading_back(&self) -> bool {
        self.written.as_ref().is_some_and(|written| written.reading)
    }
}

impl JobSpec {
    /// The option by which what it writes is read back.
    pub(super) fn verifies_by(&self) -> &'static str {
        if self.places.contains_key("verify") { "verify" } else { "verify_pattern" }
    }
}

impl Iterator for Written {
    type Item = Io;

    fn next(&mut self) -> Option<Io> {
        let (offset, len) = self.reads.pop_front()?;
        self.reading = true;
        Some(Io { op: Op::Read, offset, len: len.into(), compressible: 0 })
    }
}

impl Pattern {
    /// Whether what is written is to be read back, if anything is.
    pub fn verifies(&self) -> bool {
        self.verify.unwrap_or(false) && self.do_verify
    }

    /// Whether what is written is read back.
    pub fn reads_back(&self) -> bool {
        self.verifies() && self.directions[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{ParseSource, parse};
    use crate::rig::Rig;
    use crate::run::{RunOptions, run};

    #[test]
    fn a_run_that_writes_more_than_can_be_remembered_ends_with_the_reason() {
        let rig = "[device]\nkind = \"null\"\ncapacity = \"64MiB\"\nservice_time = \"1ms\"\n";
        let ran = |seconds: u64| {
            let text = format!("[a]\nrw=randwrite\nverify=null\nsize=100%\nruntime={seconds}\n");
            let include = |_: &str| Err(std::io::Error::other("none"));
            let source = ParseSource { file: "x".into(), env: BTreeMap::new(), include: &include };
            let mut device = Rig::parse(rig, "null").unwrap().build(1, false).unwrap();
            run(device.as_mut(), &parse(&text, &source).unwrap(), &RunOptions::default(), &mut ())
        };
        assert!(ran(1).is_ok());
        let error = ran(3).unwrap_err().to_string();
        assert!(error.contains("[a] verify: remembers each write"), "{error}");
    }
}
