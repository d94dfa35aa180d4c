//! libCacheSim's oracleGeneral: objects with the time of their next access, 24 bytes, little-endian.
//!
//! u32 seconds, u64 object, u32 bytes, i64 number of the request that asks for the object again (-1 for
//! none). There are no reads and writes: every record is read as a read of its object, which lies at its
//! number times the size of a block. Written is one record for each block that a request touches; that
//! needs the whole trace in memory (20 bytes a record). Reference: Yang et al., libCacheSim.

use super::{Decoder, Input, Kind, Object, Problem, Raw, ReadOptions};
use crate::registry::Entry;
use crate::trace::format::KnownBy;
use crate::trace::{Encoder, FormatBuild, Request, WriteOptions};
use std::io::{self, Write};

pub const ENTRY: Entry<FormatBuild> = Entry {
    name: "oracle-general",
    summary: "libCacheSim's cache trace: objects and their next access, times in whole seconds",
    reference: "libCacheSim, oracleGeneral (24-byte records)",
    build: FormatBuild {
        known_by: KnownBy::Look(looks_like),
        decoder: |options| Box::new(OracleGeneral::new(options)),
        encoder: Some(|options| Box::new(Writer::new(options))),
        loses: "reads and writes alike, devices, times below a second; one record a block",
        has_response_times: false,
        suffix: ".oracleGeneral",
    },
};

const RECORD: usize = 24;
/// Objects are numbers or hashes; of a hash so many bits become the block's number.
const BLOCK_BITS: u32 = 34;
const LOOKED_AT: usize = 256;
/// No trace has so many requests; text taken for a number does.
const REQUESTS_MAX: i64 = 1 << 40;

/// There is no magic number: times that never go back, sizes of reason, next accesses in the future.
fn looks_like(head: &[u8]) -> bool {
    let mut last_s = 0;
    let mut records = head.chunks_exact(RECORD).take(LOOKED_AT).enumerate().peekable();
    records.peek().is_some()
        && records.all(|(index, bytes)| {
            let (seconds, _, size, next) = fields(bytes);
            let sane = seconds >= last_s && (1..1 << 31).contains(&size);
            last_s = seconds;
            sane && (next == -1 || (index as i64 + 1..REQUESTS_MAX).contains(&next))
        })
}

fn fields(bytes: &[u8]) -> (u32, u64, u32, i64) {
    let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    (u32_at(0), u64_at(4), u32_at(12), u64_at(16) as i64)
}

/// The block of an object; the largest (1 GiB) times 2^34 still is an offset.
pub(super) fn block_of(object: u64) -> u64 {
    (object ^ object >> BLOCK_BITS) & ((1 << BLOCK_BITS) - 1)
}

struct OracleGeneral {
    block_bytes: u64,
    object: Option<Object>,
}

impl OracleGeneral {
    fn new(options: &ReadOptions) -> Self {
        OracleGeneral { block_bytes: options.block_bytes, object: None }
    }
}

impl Decoder for OracleGeneral {
    fn next(&mut self, input: &mut Input) -> Result<Option<Raw>, Problem> {
        let Some(bytes) = input.record::<RECORD>()? else { return Ok(None) };
        let (seconds, object, size, _) = fields(&bytes);
        let offset = block_of(object) * self.block_bytes;
        let time_ns = u64::from(seconds) * 1_000_000_000;
        self.object = Some(Object { key: object, ttl_ns: 0 });
        Ok(Some(super::raw(time_ns, Kind::Read, offset, u64::from(size), 0)))
    }

    fn object(&self) -> Option<Object> {
        self.object
    }
}

struct Writer {
    block_bytes: u64,
    /// Second and block of each record.
    records: Vec<(u32, u64)>,
}

impl Writer {
    fn new(options: &WriteOptions) -> Self {
        Writer { block_bytes: options.block_bytes, records: Vec::new() }
    }
}

impl Encoder for Writer {
    fn request(&mut self, request: &Request, _out: &mut dyn Write) -> io::Result<bool> {
        let Ok(seconds) = u32::try_from(request.time_ns / 1_000_000_000) else { return Ok(false) };
        if !super::reads_or_writes(request) {
            return Ok(false);
        }
        let end = request.offset + u64::from(request.length);
        let blocks = request.offset / self.block_bytes..end.div_ceil(self.block_bytes);
        self.records.extend(blocks.map(|block| (seconds, block)));
        Ok(true)
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        // Sorted by block and place, each record's neighbour is its next access.
        let count = self.records.len();
        let mut order: Vec<u64> = (0..count as u64).collect();
        order.sort_unstable_by_key(|at| (self.records[*at as usize].1, *at));
        let mut next = vec![-1i64; count];
        for pair in order.windows(2) {
            let (a, b) = (pair[0] as usize, pair[1] as usize);
            if self.records[a].1 == self.records[b].1 {
                next[a] = b as i64;
            }
        }
        let size = u32::try_from(self.block_bytes).unwrap_or(u32::MAX);
        for ((seconds, block), next) in self.records.iter().zip(next) {
            let mut record = [0; RECORD];
            record[..4].copy_from_slice(&seconds.to_le_bytes());
            record[4..12].copy_from_slice(&block.to_le_bytes());
            record[12..16].copy_from_slice(&size.to_le_bytes());
            record[16..].copy_from_slice(&next.to_le_bytes());
            out.write_all(&record)?;
        }
        Ok(())
    }
}
