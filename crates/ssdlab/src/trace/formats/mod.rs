//! The formats, one file each: how a request stands there, and how one is written.

pub mod alibaba;
pub mod arc;
pub mod blkparse;
pub mod blkreplay;
pub mod blktrace;
pub mod columns;
pub mod csv;
pub mod disksim;
pub mod hp_srt;
pub mod iolog;
pub mod keys;
pub mod lba;
pub mod msr;
pub mod oracle_general;
pub mod spc;
pub mod ssdsim;
pub mod tencent;
pub mod vscsi;

use super::format::Decoder;
use super::input::{Input, Problem};
use super::text;
use super::{Kind, Object, Raw, ReadOptions, Request, SECTOR_BYTES};

/// A text format of one request per line. Blank lines and those that begin with `#` are passed over.
trait Lines: Send {
    /// The request of a line; what a whole line should have been where it is not.
    fn line(&mut self, line: &[u8]) -> Result<Option<Raw>, &'static str>;
    /// See [`Decoder::object`].
    fn object(&self) -> Option<Object> {
        None
    }
    /// See [`Decoder::nothing_found`].
    fn nothing_found(&self) -> String {
        String::new()
    }
}

/// Reads a text format line by line.
struct ByLine<L>(L);

impl<L: Lines> Decoder for ByLine<L> {
    fn next(&mut self, input: &mut Input) -> Result<Option<Raw>, Problem> {
        loop {
            let Some(line) = input.line()? else { return Ok(None) };
            if line.is_empty() || line[0] == b'#' {
                continue;
            }
            match self.0.line(line) {
                Ok(Some(raw)) => return Ok(Some(raw)),
                Ok(None) => {}
                Err(expected) => {
                    let found = text::shown(line);
                    return Err(Problem::Damaged(format!("found {found}, expected {expected}")));
                }
            }
        }
    }
    fn object(&self) -> Option<Object> {
        self.0.object()
    }
    fn nothing_found(&self) -> String {
        self.0.nothing_found()
    }
}

/// Sectors of 512 bytes in bytes.
#[inline]
fn sectors(count: u64) -> Option<u64> {
    count.checked_mul(SECTOR_BYTES)
}

/// Bytes in whole sectors: those that a request touches.
fn touched_sectors(request: &Request) -> (u64, u64) {
    let first = request.offset / SECTOR_BYTES;
    let end = (request.offset + u64::from(request.length)).div_ceil(SECTOR_BYTES);
    (first, end - first)
}

/// Whether a format that knows reads and writes alone can say this request.
fn reads_or_writes(request: &Request) -> bool {
    matches!(request.kind, Kind::Read | Kind::Write)
}

/// A request without a response time.
fn raw(time_ns: u64, kind: Kind, offset: u64, length: u64, device: u32) -> Raw {
    Raw { time_ns, offset, length, kind, device, response_ns: None }
}
