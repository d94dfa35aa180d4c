//! Where a process of a job works in its files, and how much it moves: what fio makes of `size`,
//! `filesize`, `offset` and their kin once it knows how large the files are.

use super::JobSpec;
use super::pattern::{Amount, BlockSizes, Distribution, Pattern};
use super::region::{Range, Remember, unique_blocks};
use crate::device::SECTOR;
use crate::error::Result;
use crate::rng::Stream;
use crate::units::Bytes;

/// What the files of a job are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A device of this many bytes: what reaches beyond it is an error.
    Device(u64),
    /// A plain file that has this many bytes so far: fio makes it as long as the job needs.
    File(u64),
}

/// How much a process does.
#[derive(Clone, Debug, PartialEq)]
pub struct Amounts {
    /// Bytes of all passes, of a trim-and-write the writes alone.
    pub bytes: u64,
    /// I/Os of all passes; `u64::MAX`: no limit.
    pub ios: u64,
    /// `io_size`, if given in bytes: passes go on until it is reached. As in fio a share of the files ends with them.
    pub io_size: Option<u64>,
    /// Bytes that it moves in all as sizes have it, both halves of a trim-and-write.
    pub moved_by_size: u64,
    /// The same, where the number of I/Os may end it earlier.
    pub moved: u64,
    /// Bytes of a pass of a job that begins again until time is up; 0 of others.
    pub again: u64,
    /// Bytes of the files where it works, for both halves of a trim-and-write.
    pub available: u64,
}

impl Amounts {
    /// The amounts of a process that works in `ranges`.
    pub fn new(pattern: &Pattern, ranges: &[Range]) -> Self {
        let available = ranges.iter().fold(0u64, |sum, r| sum.saturating_add(r.span));
        let size = match pattern.size {
            Some(Amount::Bytes(n)) => n.min(available),
            _ => available,
        };
        let (io_size, pass_bytes) = match pattern.io_size {
            Some(Amount::Bytes(n)) => (Some(n), n),
            // fio takes the share of the files' ranges, not of size.
            Some(share) => (None, ranges.iter().map(|r| share.of(r.span)).sum::<u64>().min(size)),
            None => (None, size),
        };
        let unbounded = pattern.zones.is_some()
            || pattern.random && matches!(unique_blocks(pattern), Remember::Nothing);
        let halves = 1 + u64::from(pattern.trim_then_write);
        let bytes = pass_bytes.saturating_mul(pattern.loops);
        let ios = match pattern.number_ios.saturating_mul(pattern.loops).saturating_mul(halves) {
            0 => u64::MAX,
            ios => ios,
        };
        // A pass ends where the files do, and another follows while there are loops or io_size is not reached.
        let pass = if unbounded { u64::MAX } else { available.saturating_mul(halves) };
        let passes = match io_size {
            Some(io_size) if halves > 1 => io_size.div_ceil(pass).saturating_mul(pass),
            Some(io_size) => io_size,
            None => 0,
        };
        let least = pass.saturating_mul(pattern.loops).max(passes);
        let moved_by_size = bytes.saturating_mul(halves).min(least);
        // Not where it may double: see `begin_pass`.
        let sure = halves == 1 || pattern.loops == 1 && io_size.is_none();
        let most = if sure { ios.saturating_mul(pattern.block_max()) } else { u64::MAX };
        let moved = moved_by_size.min(most);
        Amounts {
            bytes,
            ios,
            io_size,
            moved_by_size,
            moved,
            again: 0,
            available: available.saturating_mul(halves),
        }
    }

    /// A pass follows the other until time is up, each of so many bytes, however many I/Os that takes.
    pub fn begin_again(&mut self) {
        (self.again, self.ios, self.io_size) = (self.bytes, u64::MAX, None);
        (self.moved_by_size, self.moved) = (u64::MAX, u64::MAX);
    }

    /// Another pass begins: fio doubles `number_ios` each time, for the trims of a trim-and-write.
    pub fn begin_pass(&mut self, pattern: &Pattern) {
        self.bytes = self.bytes.saturating_add(self.again);
        if pattern.trim_then_write {
            self.ios = self.ios.saturating_mul(2);
        }
    }
}

/// Where the process works in each of its files. `rng` draws sizes of files where a range is given.
///
/// # Errors
/// [`crate::Error::Job`] where there is no room, or less than one I/O of it.
pub fn ranges(spec: &JobSpec, thread: u32, target: Target, rng: &mut Stream) -> Result<Vec<Range>> {
    let p = &spec.pattern;
    let thread = spec.schedule.number_of(thread);
    let (Target::Device(capacity) | Target::File(capacity)) = target;
    let files = p.files.regions(&spec.name, thread, capacity);
    let files = files.map_err(|e| spec.error("size", e.to_string()))?;
    let (block, grain) = (p.block_min(), p.grain());
    let count = files.len() as u64;
    let mut ranges = Vec::with_capacity(files.len());
    for (index, (start, file)) in files.into_iter().enumerate() {
        let grows = matches!(target, Target::File(_));
        let offset = if grows && p.append { file } else { offset_in(spec, thread, file) };
        let too_far = |file: u64| {
            let problem =
                format!("begins at {}, and there are only {}", Bytes(offset), Bytes(file));
            spec.error("offset", problem)
        };
        if offset >= file && !grows {
            return Err(too_far(file));
        }
        let rest = file.saturating_sub(offset);
        // fio keeps a size that lies within filesize, and makes it so otherwise.
        let whole = match p.file_size {
            Some((low, high)) if file < low || file > high || file != capacity => {
                let whole = low + rng.below(high - low + 1) / grain * grain;
                Some(if grows { high } else { whole })
            }
            _ => None,
        };
        let span = match (whole, p.file_size, p.size) {
            (Some(whole), ..) => whole.checked_sub(offset).ok_or_else(|| too_far(whole))?,
            (None, None, Some(Amount::Bytes(size))) => {
                // What does not divide evenly goes to the first files, block by block.
                let extra = (size % count) / grain > index as u64;
                size / count + if extra { grain } else { 0 }
            }
            _ => rest,
        };
        let span = match p.size {
            Some(share @ Amount::Percent(percent)) if percent < 100.0 => {
                share.of(span + offset).min(span) / grain * grain
            }
            _ => span,
        };
        let file = if grows { file.max(offset.saturating_add(span)) } else { file };
        let room = file - offset;
        if span > room {
            let problem = format!(
                "{} from offset {} on does not fit into {}",
                Bytes(span),
                Bytes(offset),
                Bytes(file)
            );
            let option = if p.file_size.is_some() { "filesize" } else { "size" };
            return Err(spec.error(option, problem));
        }
        if span == 0 && grows {
            let problem =
                "is needed, as the file is still empty; fio says: you need to specify size=";
            return Err(spec.error("size", problem));
        }
        if span < block {
            let problem = format!("{} is less than one I/O of {}", Bytes(span), Bytes(block));
            return Err(spec.error("size", problem));
        }
        zones_fit(spec, span)?;
        ranges.push(Range { base: start + offset, span, room, file });
    }
    Ok(ranges)
}

/// Refuses zones of `zoned_abs` that reach beyond a range of `span` bytes, in which fio finds no place.
fn zones_fit(spec: &JobSpec, span: u64) -> Result<()> {
    let p = &spec.pattern;
    let Distribution::ZonedAbs(zones) = &p.distribution else { return Ok(()) };
    let span = p.zones.map_or(span, |strips| strips.range.min(span));
    for (zones, _) in zones.iter().zip(p.directions).filter(|(_, on)| *on) {
        let sum = zones.iter().fold(0u64, |sum, zone| sum.saturating_add(zone.1));
        if sum > span {
            let problem = format!(
                "zoned_abs: zones of {} in all do not fit into a range of {}",
                Bytes(sum),
                Bytes(span)
            );
            return Err(spec.error("random_distribution", problem));
        }
    }
    Ok(())
}

/// Where the range begins in a file of `file` bytes; percentages are rounded up to the smallest block of all directions.
fn offset_in(spec: &JobSpec, thread: u32, file: u64) -> u64 {
    let p = &spec.pattern;
    let align = if p.offset_align > 0 { p.offset_align } else { p.grain() };
    // As in fio the offset of the first process too, though nothing is added to it.
    let relative = [p.offset, p.offset_increment].iter().any(|a| matches!(a, Amount::Percent(_)));
    let step = p.offset_increment.of(file).saturating_mul(u64::from(thread));
    let offset = p.offset.of(file).saturating_add(step);
    if relative { offset.div_ceil(align).saturating_mul(align) } else { offset }
}

/// Refuses what is not whole sectors: a drive is read and written in those.
pub fn whole_sectors(spec: &JobSpec) -> Result<()> {
    let p = &spec.pattern;
    let check = |option: &str, bytes: u64| {
        if bytes.is_multiple_of(SECTOR) {
            return Ok(());
        }
        let problem = format!("{bytes} bytes: a drive moves whole sectors of {SECTOR} bytes");
        Err(spec.error(option, problem))
    };
    for d in (0..3).filter(|d| p.directions[*d]) {
        match &p.sizes[d] {
            BlockSizes::Fixed(n) => check("bs", *n)?,
            BlockSizes::Range { min, max } => {
                check("bsrange", *min)?;
                check("bsrange", *max)?;
            }
            BlockSizes::Split(parts) => {
                parts.iter().try_for_each(|part| check("bssplit", part.0))?;
            }
        }
        check("ba", p.align[d])?;
    }
    check("rw", p.skip.unsigned_abs())?;
    for (option, amount) in [("offset", p.offset), ("offset_increment", p.offset_increment)] {
        if let Amount::Bytes(n) = amount {
            check(option, n)?;
        }
    }
    check("offset_align", p.offset_align)?;
    for zone in p.zones.iter().flat_map(|z| [z.range, z.skip]) {
        check("zonemode", zone)?;
    }
    Ok(())
}
