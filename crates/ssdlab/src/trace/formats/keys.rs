//! Raw keys: the number of a block after another, little-endian, of 32 or 64 bits.
//!
//! There is nothing to know them by, so they are named. Of 64 bits the lower 34 and those above become the block, as
//! keys may be hashes. The size of a block is stated when they are read (4096 bytes unless told otherwise).

use super::oracle_general::block_of;
use super::{Decoder, Input, Kind, Problem, Raw};
use crate::registry::Entry;
use crate::trace::format::KnownBy;
use crate::trace::{Encoder, FormatBuild, Request, WriteOptions};
use std::io::{self, Write};

const LOSES: &str = "times, reads and writes alike, devices, trims, flushes; one key a block";

pub const U32: Entry<FormatBuild> = Entry {
    name: "keys-u32",
    summary: "raw numbers of blocks, 32 bits each, little-endian (not found by content)",
    reference: "",
    build: FormatBuild {
        known_by: KnownBy::Look(|_| false),
        decoder: |options| Box::new(Keys::<4>(options.block_bytes)),
        encoder: Some(|options: &WriteOptions| Box::new(Keys::<4>(options.block_bytes))),
        loses: LOSES,
        has_response_times: false,
        suffix: "",
    },
};

pub const U64: Entry<FormatBuild> = Entry {
    name: "keys-u64",
    summary: "raw numbers of blocks, 64 bits each, little-endian (not found by content)",
    reference: "",
    build: FormatBuild {
        known_by: KnownBy::Look(|_| false),
        decoder: |options| Box::new(Keys::<8>(options.block_bytes)),
        encoder: Some(|options: &WriteOptions| Box::new(Keys::<8>(options.block_bytes))),
        loses: LOSES,
        has_response_times: false,
        suffix: "",
    },
};

/// Keys of so many bytes, of blocks of so many.
struct Keys<const N: usize>(u64);

impl<const N: usize> Decoder for Keys<N> {
    fn next(&mut self, input: &mut Input) -> Result<Option<Raw>, Problem> {
        let Some(bytes) = input.record::<N>()? else { return Ok(None) };
        let mut whole = [0; 8];
        whole[..N].copy_from_slice(&bytes);
        let block = block_of(u64::from_le_bytes(whole));
        Ok(Some(super::raw(0, Kind::Read, block * self.0, self.0, 0)))
    }
}

impl<const N: usize> Encoder for Keys<N> {
    fn request(&mut self, request: &Request, out: &mut dyn Write) -> io::Result<bool> {
        let end = (request.offset + u64::from(request.length)).div_ceil(self.0);
        if !super::reads_or_writes(request) || (end - 1) >> (8 * N - 1) >> 1 > 0 {
            return Ok(false);
        }
        for block in request.offset / self.0..end {
            out.write_all(&block.to_le_bytes()[..N])?;
        }
        Ok(true)
    }
}
