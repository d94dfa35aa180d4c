//! HP Labs' SRT traces, version 1.3: a text header up to a form feed, then binary records, big-endian.
//!
//! Records of i32: size of the record, id, seconds, us, us until the start, us until the end, bytes, block,
//! device, drive, cylinder, flags (bit 0 read), and more. Blocks have the size of the sectors that the
//! header names. Reference: Ruemmler and Wilkes, "UNIX disk access patterns", USENIX Winter 1993; the reader
//! of DiskSim 4.0.

use super::{Decoder, Input, Kind, Problem, Raw};
use crate::registry::Entry;
use crate::trace::FormatBuild;
use crate::trace::format::KnownBy;

pub const ENTRY: Entry<FormatBuild> = Entry {
    name: "hp-srt",
    summary: "HP Labs' SRT 1.3 of Unix systems of 1992, with response times",
    reference: "Ruemmler, Wilkes: UNIX disk access patterns, USENIX Winter 1993",
    build: FormatBuild {
        known_by: KnownBy::Beginning(b"$$TR_IOREC-1.3"),
        decoder: |_| Box::new(HpSrt { block_bytes: None }),
        encoder: None,
        loses: "",
        has_response_times: true,
        suffix: "",
    },
};

const FORM_FEED: u8 = 0x0c;
const HEADER_MAX: u64 = 1 << 20;
/// Bytes of a record that are understood; `size` says how many there are.
const RECORD: usize = 48;
const SIZE_MAX: i32 = 4096;

struct HpSrt {
    /// Bytes of a block; `None` before the header.
    block_bytes: Option<u64>,
}

/// Bytes of a sector, as the header names them for the first disk.
fn sector_bytes(header: &[u8]) -> Option<u64> {
    let header = String::from_utf8_lossy(header);
    let (_, rest) = header.split_once("sectorsize")?;
    let value = rest.trim_start().strip_prefix('=')?.trim_start();
    let end = value.find(|c: char| !c.is_ascii_digit())?;
    value[..end].parse().ok().filter(|bytes| (1..=1 << 20).contains(bytes))
}

impl Decoder for HpSrt {
    fn next(&mut self, input: &mut Input) -> Result<Option<Raw>, Problem> {
        let block_bytes = match self.block_bytes {
            Some(bytes) => bytes,
            None => {
                let header = input.until(FORM_FEED, HEADER_MAX)?;
                let bytes = sector_bytes(&header).ok_or_else(|| {
                    Problem::Fatal(
                        "its header names no sectorsize, such as \"sectorsize = 256\"".into(),
                    )
                })?;
                *self.block_bytes.insert(bytes)
            }
        };
        let Some(record) = input.record::<RECORD>()? else { return Ok(None) };
        let at = |field: usize| i32::from_be_bytes(std::array::from_fn(|i| record[field * 4 + i]));
        let size = at(0);
        if !(RECORD as i32..=SIZE_MAX).contains(&size) {
            return Err(Problem::Fatal(format!("a record of {size} bytes; 56 are usual")));
        }
        input.skip(size as u64 - RECORD as u64)?;
        let whole = |field: usize| u64::try_from(at(field)).ok();
        let found = || {
            let time_us = whole(2)? * 1_000_000 + whole(3)?;
            let (length, block) = (whole(6)?, whole(7)?);
            let kind = if at(11) & 1 == 1 { Kind::Read } else { Kind::Write };
            let raw = super::raw(time_us * 1000, kind, block * block_bytes, length, at(8) as u32);
            Some(Raw { response_ns: whole(5).map(|us| us * 1000), ..raw })
        };
        let damaged = || Problem::Damaged("a negative time, block or size".into());
        found().map(Some).ok_or_else(damaged)
    }
}
