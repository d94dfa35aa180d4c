//! What members hold, in tests. A member keeps versions as every device does; what a version stands
//! for - a version of the host's, or parity of several - the array knows by a table. So the content
//! of a parity is computed from what was read and written, as bytes would be, and what is recovered
//! really comes from the members that are left.

use super::plan::{How, Part, Segment};
use super::stripe_cache::Span;
use super::stripes::Kind;
use super::{Array, Io, Piece, galois};
use crate::contract::{Command, Device, Op, SECTOR, digest, mix};
use crate::fleet::{HostId, sectors};
use crate::persist::persistent;
use std::collections::BTreeMap;

/// See the module.
pub(super) struct Versions {
    /// Content by version of the members; version 0 is zeros.
    payload: Vec<u64>,
    /// Version of the first sector of each part of the stripe that is being written.
    stamps: Vec<u64>,
    /// Content, by sector of the array, of chunks whose member is missing while their stripe is being
    /// written: what is left of the stripe does not agree in the meantime.
    kept: BTreeMap<u64, u64>,
}

persistent!(Versions { state { payload, stamps, kept } });

impl Versions {
    /// Stripes that were being written are no more.
    pub fn forget_kept(&mut self) {
        self.kept.clear();
    }
}

/// Versions of neighbouring sectors are consecutive numbers, of which a parity may be 0. As a content a version stands
/// spread over all bits, so that sums cancel only where they should.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Its inverse modulo 2^64.
const GATHER: u64 = 0xf1de_83e1_9937_733d;

fn spread(version: u64) -> u64 {
    let x = version.wrapping_mul(SPREAD);
    x ^ x >> 32
}

/// The version of a content.
fn gathered(content: u64) -> u64 {
    (content ^ content >> 32).wrapping_mul(GATHER)
}

impl Default for Versions {
    fn default() -> Self {
        Versions { payload: vec![0], stamps: Vec::new(), kept: BTreeMap::new() }
    }
}

impl Array {
    /// Content of a sector of a member.
    pub(super) fn payload(&self, member: u32, offset: u64) -> u64 {
        let Some(versions) = &self.versions else { return 0 };
        versions.payload[self.member(member).content(offset) as usize]
    }

    /// Version of the first sector of a piece of a host's write.
    pub(super) fn stamp_of_piece(&mut self, command: &Command, piece: &Piece) -> u64 {
        let Some(versions) = &mut self.versions else { return command.stamp };
        if command.op != Op::Write {
            return 0;
        }
        let first = versions.payload.len();
        versions.payload.resize(first + (piece.len / SECTOR) as usize, 0);
        for nth in 0..command.len / SECTOR {
            for copy in 0..self.layout.copies() {
                let (place, _) = self.layout.place(command.offset + nth * SECTOR, copy);
                if place.member == piece.member
                    && (piece.offset..piece.offset + piece.len).contains(&place.offset)
                {
                    let at = first + ((place.offset - piece.offset) / SECTOR) as usize;
                    versions.payload[at] = spread(command.stamp + nth);
                }
            }
        }
        first as u64
    }

    /// Asserts that a member's read answered what the member says that it holds.
    pub(super) fn check_digest(&self, io: &Io, found: u64) {
        let member = &self.fleet.members[io.member];
        let held = digest(0, sectors(io.offset, io.offset + io.len).map(|at| member.content(at)));
        assert_eq!(held, found, "a member answered another content than it holds: {io:?}");
    }

    /// Adds what a member has read of a host's command to its digest.
    pub(super) fn add_digest_of_piece(&mut self, host: HostId, io: &Io) {
        if self.versions.is_none() {
            return;
        }
        let command = self.fleet.hosts[host].command;
        let mut digest = 0u64;
        for nth in 0..command.len / SECTOR {
            for copy in 0..self.layout.copies() {
                let (place, _) = self.layout.place(command.offset + nth * SECTOR, copy);
                if place.member == io.purpose.seat
                    && (io.offset..io.offset + io.len).contains(&place.offset)
                {
                    let content = gathered(self.payload(place.member, place.offset));
                    digest = digest.wrapping_add(mix(content, nth));
                    break;
                }
            }
        }
        let host = &mut self.fleet.hosts[host];
        host.digest = host.digest.wrapping_add(digest);
    }

    /// Content of a sector of the array.
    pub(super) fn content_at(&self, offset: u64) -> u64 {
        for copy in 0..self.layout.copies() {
            let (place, _) = self.layout.place(offset, copy);
            let by_stripe = self.layout.parity().is_some();
            let whole = by_stripe && self.has_chunk_at(offset);
            if whole || (!by_stripe && self.holds(place, SECTOR)) {
                return gathered(self.payload(place.member, place.offset));
            }
        }
        let Some(parity) = self.layout.parity() else { return 0 };
        let kept = self.versions.as_ref().and_then(|v| v.kept.get(&(offset / SECTOR)));
        if let Some(&kept) = kept {
            return gathered(kept);
        }
        let (index, within) = (offset / parity.chunk, offset % parity.chunk);
        let data = u64::from(parity.data());
        let mut chunks = self.chunks(index / data, within);
        let recovered = galois::recover(&mut chunks, parity.parities as usize);
        if recovered { gathered(chunks[(index % data) as usize].unwrap_or(0)) } else { 0 }
    }

    /// Content of a sector of every chunk of a stripe, as far as it can be read.
    fn chunks(&self, stripe: u64, within: u64) -> Vec<Option<u64>> {
        let parity = self.layout.parity().expect("stripes");
        let at = stripe * parity.chunk + within;
        let content = |role: u32| {
            let member = parity.member(stripe, role);
            self.has_chunk(stripe, role).then(|| self.payload(member, at))
        };
        (0..parity.members).map(content).collect()
    }

    /// Old content of a sector of a chunk, which was read or is in the cache.
    fn known(&self, index: u32, role: u32, at: u64) -> u64 {
        let own = &self.stripes.all[index as usize];
        let sector = Span { lo: at, hi: at + SECTOR };
        let mut parts = own.reads.iter().chain(&own.held);
        let read = parts.any(|part| part.role == role && part.span.covers(sector));
        assert!(read, "chunk {role} of stripe {} was not read at {at}", own.stripe);
        let parity = self.layout.parity().expect("stripes");
        let member = parity.member(own.stripe, role);
        self.payload(member, own.stripe * parity.chunk + at)
    }

    /// Content of a sector of every chunk of a stripe, from those that were read.
    pub(super) fn recovered(&self, index: u32, at: u64) -> Vec<u64> {
        let parity = self.layout.parity().expect("stripes");
        let own = &self.stripes.all[index as usize];
        let sector = Span { lo: at, hi: at + SECTOR };
        let read = |role: u32| {
            let mut parts = own.reads.iter().chain(&own.held);
            parts.any(|part| part.role == role && part.span.covers(sector))
        };
        let content = |role: u32| read(role).then(|| self.known(index, role, at));
        let mut chunks: Vec<Option<u64>> = (0..parity.members).map(content).collect();
        let done = galois::recover(&mut chunks, parity.parities as usize);
        assert!(done, "too little of stripe {} was read at {at}", own.stripe);
        chunks.into_iter().flatten().collect()
    }

    /// Adds to a read's digest what was recovered for it.
    pub(super) fn add_digest_recovered(&mut self, index: u32) {
        if self.versions.is_none() {
            return;
        }
        let parity = self.layout.parity().expect("stripes");
        let own = &self.stripes.all[index as usize];
        let (Part { role, span }, host) = (own.wanted, own.hosts[0]);
        let begin = own.stripe * parity.width() + u64::from(role) * parity.chunk;
        let first = self.fleet.hosts[host].command.offset;
        let content = |at| gathered(self.recovered(index, at)[role as usize]);
        let digest =
            digest((begin + span.lo - first) / SECTOR, sectors(span.lo, span.hi).map(content));
        let host = &mut self.fleet.hosts[host];
        host.digest = host.digest.wrapping_add(digest);
    }

    /// New content of a sector of a chunk of data, if it is written.
    fn fresh(&self, index: u32, role: u32, at: u64) -> Option<u64> {
        let own = &self.stripes.all[index as usize];
        let sector = Span { lo: at, hi: at + SECTOR };
        let found =
            own.fresh.iter().rev().find(|(p, _)| p.role == role && p.span.covers(sector))?;
        Some(spread(found.1 + (at - found.0.span.lo) / SECTOR))
    }

    /// New parity (0: P, 1: Q) of a sector.
    fn new_parity(&self, index: u32, which: usize, at: u64) -> u64 {
        let parity = self.layout.parity().expect("stripes");
        let own = &self.stripes.all[index as usize];
        let sector = Span { lo: at, hi: at + SECTOR };
        let segment = own.segments.iter().find(|s| s.span.covers(sector));
        let Some(Segment { how, .. }) = segment else { unreachable!("no stretch at {at}") };
        let recovered = if *how == How::Recover { self.recovered(index, at) } else { Vec::new() };
        let value = |role: u32| {
            let new = self.fresh(index, role, at);
            match how {
                How::Modify => new.map_or(0, |new| new ^ self.known(index, role, at)),
                How::Reconstruct => new.unwrap_or_else(|| self.known(index, role, at)),
                How::Recover => new.unwrap_or_else(|| recovered[role as usize]),
            }
        };
        let data: Vec<u64> = (0..parity.data()).map(value).collect();
        let sum = galois::parities(&data)[which];
        let old = match how {
            How::Modify => self.known(index, parity.data() + which as u32, at),
            How::Reconstruct | How::Recover => 0,
        };
        old ^ sum
    }

    /// Keeps, or drops, what the chunks of a stripe will hold that is about to be written, where a
    /// member is or may yet be missing.
    pub(super) fn keep_content(&mut self, index: u32, keep: bool) {
        let own = &self.stripes.all[index as usize];
        if self.versions.is_none() || !self.may_fail || own.kind != Kind::Write {
            return;
        }
        let parity = self.layout.parity().expect("stripes");
        let (rows, stripe) = (own.rows, own.stripe);
        let mut kept = Vec::new();
        for at in sectors(rows.lo, rows.hi) {
            let mut chunks = self.chunks(stripe, at);
            let known = keep && galois::recover(&mut chunks, parity.parities as usize);
            for role in 0..parity.data() {
                let place = stripe * parity.width() + u64::from(role) * parity.chunk + at;
                let old = if known { chunks[role as usize] } else { None };
                let new = if keep { self.fresh(index, role, at) } else { None };
                kept.push((place / SECTOR, new.or(old)));
            }
        }
        let versions = self.versions.as_mut().expect("checked above");
        for (sector, content) in kept {
            match content {
                Some(content) => versions.kept.insert(sector, content),
                None => versions.kept.remove(&sector),
            };
        }
    }

    /// Takes versions for the parts of a stripe that are about to be written.
    pub(super) fn stamp_parts(&mut self, index: u32, parts: &[Part]) {
        self.keep_content(index, true);
        let Some(mut versions) = self.versions.take() else { return };
        versions.stamps.clear();
        let mut content = Vec::new();
        // The contents of members are looked up in the table as it was.
        self.versions = Some(versions);
        let data = self.layout.parity().expect("stripes").data();
        let mut stamps = Vec::new();
        for part in parts {
            stamps.push(content.len() as u64);
            for at in sectors(part.span.lo, part.span.hi) {
                if self.stripes.all[index as usize].kind == Kind::Rebuild {
                    content.push(self.recovered(index, at)[part.role as usize]);
                    continue;
                }
                if self.stripes.all[index as usize].kind == Kind::Sync {
                    let whole = self.recovered(index, at);
                    let sums = galois::parities(&whole[..data as usize]);
                    content.push(sums[(part.role - data) as usize]);
                    continue;
                }
                content.push(match part.role.checked_sub(data) {
                    None => self.fresh(index, part.role, at).expect("what is written"),
                    Some(which) => self.new_parity(index, which as usize, at),
                });
            }
        }
        let versions = self.versions.as_mut().expect("taken above");
        let first = versions.payload.len() as u64;
        versions.stamps.extend(stamps.iter().map(|stamp| first + stamp));
        versions.payload.extend(content);
    }

    /// Version of the first sector of a part stamped just now.
    pub(super) fn stamp_of_part(&self, nth: usize) -> u64 {
        self.versions.as_ref().map_or(0, |versions| versions.stamps[nth])
    }

    /// Takes versions for a parity (0: P, 1: Q) computed from the data that members hold now.
    pub(super) fn stamp_parity(&mut self, stripe: u64, which: usize, span: Span) -> u64 {
        if self.versions.is_none() {
            return 0;
        }
        let parity = self.layout.parity().expect("stripes").clone();
        let sector = |at: u64| {
            let place = |role| (parity.member(stripe, role), stripe * parity.chunk + at);
            let content = |role| {
                let (member, at) = place(role);
                self.payload(member, at)
            };
            let data: Vec<u64> = (0..parity.data()).map(content).collect();
            galois::parities(&data)[which]
        };
        let content: Vec<u64> = sectors(span.lo, span.hi).map(sector).collect();
        let versions = self.versions.as_mut().expect("checked above");
        let first = versions.payload.len() as u64;
        versions.payload.extend(content);
        first
    }

    /// Takes versions for so many bytes of the array's own.
    pub(super) fn stamp_blank(&mut self, bytes: u64) -> u64 {
        let Some(versions) = &mut self.versions else { return 0 };
        let first = versions.payload.len();
        versions.payload.resize(first + (bytes / SECTOR) as usize, 0);
        first as u64
    }

    /// Takes versions for a copy of what a member has read.
    pub(super) fn stamp_copy(&mut self, io: &Io) -> u64 {
        let sectors = sectors(io.offset, io.offset + io.len);
        let content: Vec<u64> = match self.versions {
            Some(_) => sectors.map(|at| self.payload(io.purpose.seat, at)).collect(),
            None => return 0,
        };
        let versions = self.versions.as_mut().expect("checked above");
        let first = versions.payload.len() as u64;
        versions.payload.extend(content);
        first
    }

    /// Takes versions for a part of a chunk that is written without time, where a member is missing,
    /// and for the parities of it.
    pub(super) fn stamp_degraded(
        &mut self,
        stripe: u64,
        role: u32,
        span: Span,
        stamp: u64,
    ) -> [u64; 3] {
        if self.versions.is_none() {
            return [0; 3];
        }
        let parity = self.layout.parity().expect("stripes").clone();
        let mut content: [Vec<u64>; 3] = Default::default();
        for (nth, at) in sectors(span.lo, span.hi).enumerate() {
            let mut chunks = self.chunks(stripe, at);
            assert!(galois::recover(&mut chunks, parity.parities as usize), "a stripe is lost");
            let fresh = spread(stamp + nth as u64);
            chunks[role as usize] = Some(fresh);
            let data: Vec<u64> =
                chunks[..parity.data() as usize].iter().map(|c| c.unwrap_or(0)).collect();
            let [p, q] = galois::parities(&data);
            content.iter_mut().zip([fresh, p, q]).for_each(|(c, value)| c.push(value));
        }
        let versions = self.versions.as_mut().expect("checked above");
        content.map(|content| {
            let first = versions.payload.len() as u64;
            versions.payload.extend(content);
            first
        })
    }

    /// Whether the chunk of a byte of RAID 5 and 6 can be read.
    fn has_chunk_at(&self, offset: u64) -> bool {
        let parity = self.layout.parity().expect("stripes");
        let index = offset / parity.chunk;
        let data = u64::from(parity.data());
        self.has_chunk(index / data, (index % data) as u32)
    }

    /// Asserts that copies are equal and parities right.
    pub(super) fn verify_redundancy(&self) {
        if self.versions.is_none() {
            return;
        }
        let Some(parity) = self.layout.parity() else {
            for at in (0..self.layout.capacity()).step_by(SECTOR as usize) {
                if self.is_stale(at, SECTOR) {
                    continue;
                }
                let content = self.content_at(at);
                for copy in 1..self.layout.copies() {
                    let (place, _) = self.layout.place(at, copy);
                    if self.holds(place, SECTOR) {
                        let other = gathered(self.payload(place.member, place.offset));
                        assert_eq!(content, other, "copies of the byte at {at} differ");
                    }
                }
            }
            return;
        };
        let unfinished = self.unfinished.as_ref().map(|u| u.stripe);
        let stale = |stripe: u64| self.resync.touches(stripe, stripe + 1);
        let whole = |s: &u64| Some(*s) != unfinished && !self.is_lost(*s) && !stale(*s);
        for stripe in (0..parity.rows).filter(whole) {
            for within in sectors(0, parity.chunk) {
                let stored = self.chunks(stripe, within);
                let mut whole = stored.clone();
                if galois::recover(&mut whole, parity.parities as usize) {
                    let agree = stored.iter().zip(&whole).all(|(s, w)| s.is_none() || s == w);
                    assert!(agree, "parity of stripe {stripe} is wrong at {within}: {stored:?}");
                }
            }
        }
    }
}
