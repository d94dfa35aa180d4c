//! Attribution: where the time of a command went.

use crate::error::Result;
use crate::persist::{Archive, Persist};
use std::ops::{Index, IndexMut};

macro_rules! parts {
    ($($(#[$attribute:meta])+ $part:ident $name:literal,)+) => {
        /// One place where a command spends time.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[repr(u8)]
        pub enum Part {
            $($(#[$attribute])+ $part,)+
        }

        const ALL: [Part; PARTS] = [$(Part::$part),+];

        /// Names of the parts as they appear in results, in the order of [`Part`].
        pub const PART_NAMES: [&str; PARTS] = [$($name),+];
    };
}

parts! {
    /// Transfer over the host link and its per-command overhead.
    #[default]
    Link "link",
    /// Waiting for a queue slot of the link.
    LinkWait "link_wait",
    /// Command handling by the controller, waiting for it included.
    Controller "controller",
    /// Waiting for map entries that are not in RAM.
    MapFetch "map_fetch",
    /// Waiting for room in the write buffer.
    BufferWait "buffer_wait",
    /// Waiting for the turn that a limit on host writes gives, behind other writes included.
    WriteLimit "write_limit",
    /// Waiting for the old content of a partly written unit.
    ReadModifyWrite "read_modify_write",
    /// The die was busy with other host work.
    DieHost "die_host",
    /// The die was busy with collection (or wear levelling), or what that moves into the same program unit was still
    /// to be read.
    DieCollection "die_collection",
    /// The die was busy with the map: translation units, merging of extents.
    DieMap "die_map",
    /// The die was busy with folding the SLC cache.
    DieFold "die_fold",
    /// The die was busy with parity of the drive's own stripes.
    DieParity "die_parity",
    /// Sensing, programming or erasing cells.
    Cells "cells",
    /// Waiting for the channel, register held.
    ChannelWait "channel_wait",
    /// Transfer over the channel.
    Channel "channel",
    /// Waiting for a stripe of an array: for earlier writes of its rows, or for room in the cache.
    StripeWait "stripe_wait",
    /// Waiting for old data and parity of a stripe that is written in part.
    Parity "parity",
    /// Waiting for the write-intent bitmap of an array.
    Bitmap "bitmap",
    /// Waiting for the slowest member of an array, beyond what its members needed on the average.
    SlowestMember "slowest_member",
    /// Waiting for other work of a disk's heads.
    DiskWait "disk_wait",
    /// Moving the heads to the track.
    Seek "seek",
    /// Waiting until the sector comes around.
    Rotation "rotation",
    /// Sectors passing under the head, switches of tracks between them included.
    Platter "platter",
    /// Cache work: miss, fill, destage; in a controller card, waiting for room in its RAM.
    Cache "cache",
    /// Waiting for an extent that is being moved between tiers, or behind a purge of them.
    MoveWait "move_wait",
    /// Command handling by a controller card, waiting for it and for one of its places included.
    Card "card",
    /// Transfer over a bandwidth that several share (a card, a bus), waiting for it included.
    Bus "bus",
    /// Plain service of a device that has no finer parts, waiting for it included.
    Service "service",
    /// Waiting in the host until its process takes back what is done, in batches.
    Host "host",
}

/// Number of parts.
pub const PARTS: usize = 29;

/// Parts of a command that have room in [`Parts`] itself: nearly all commands have no more.
const FEW: usize = 7;

/// Where the time of one command went, ns. Most commands have two to six parts, and are handed on often.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// Parts in `few`.
    count: u8,
    /// Which those are, in the order in which they came.
    which: [Part; FEW],
    /// 0 behind them.
    few: [u64; FEW],
    /// The others, where there are more.
    more: Option<Box<[u64; PARTS]>>,
}

impl Parts {
    /// These times, each of another part.
    #[inline]
    pub fn of(times: impl IntoIterator<Item = (Part, u64)>) -> Self {
        let mut parts = Parts::default();
        parts.put(times);
        parts
    }

    /// Adds these times, each of a part that has none yet: in place, since what was just written in pieces is slow to
    /// be moved as a whole.
    #[inline]
    pub fn put(&mut self, times: impl IntoIterator<Item = (Part, u64)>) {
        times.into_iter().for_each(|(part, ns)| {
            let at = usize::from(self.count);
            if at == FEW {
                return self.add(part, ns);
            }
            // Which parts have taken time cannot be foretold, so that this does not branch.
            (self.which[at], self.few[at]) = (part, ns);
            self.count += u8::from(ns > 0);
        });
    }

    /// The same of as few as always have room. Those that have taken no time have places, too: to leave them out takes longer.
    #[inline(always)]
    pub fn few<const N: usize>(times: [(Part, u64); N]) -> Self {
        const { assert!(N <= FEW) };
        let (mut which, mut few) = ([Part::default(); FEW], [0; FEW]);
        for at in 0..N {
            (which[at], few[at]) = times[at];
        }
        Parts { count: N as u8, which, few, more: None }
    }

    /// All time of a command went to one part.
    #[inline]
    pub fn only(part: Part, ns: u64) -> Self {
        let few = [ns, 0, 0, 0, 0, 0, 0];
        Parts { count: u8::from(ns > 0), which: [part; FEW], few, more: None }
    }

    /// All parts together.
    #[inline]
    pub fn total(&self) -> u64 {
        self.few.iter().sum::<u64>() + self.more.as_deref().map_or(0, rare_total)
    }

    /// Adds time of a part.
    #[inline]
    pub fn add(&mut self, part: Part, ns: u64) {
        if ns == 0 {
            return;
        }
        let count = usize::from(self.count);
        if let Some(at) = self.which[..count.min(FEW)].iter().position(|&p| p == part) {
            self.few[at] += ns;
        } else if count < FEW {
            (self.which[count], self.few[count]) = (part, ns);
            self.count += 1;
        } else if let Some(at) = self.few.iter().position(|&ns| ns == 0) {
            (self.which[at], self.few[at]) = (part, ns);
        } else {
            let more = self.more.get_or_insert_with(|| Box::new([0; PARTS]));
            more[part as usize] += ns;
        }
    }

    /// Adds `other` part by part.
    #[inline]
    pub fn add_all(&mut self, other: &Parts) {
        if self.count == 0 {
            *self = other.clone();
        } else if (self.count, self.which) == (other.count, other.which) && other.more.is_none() {
            self.few.iter_mut().zip(other.few).for_each(|(sum, ns)| *sum += ns);
        } else {
            other.each(|part, ns| self.add(part, ns));
        }
    }

    /// Calls with each part that has taken time.
    #[inline]
    fn each(&self, mut call: impl FnMut(Part, u64)) {
        let few = self.which.iter().zip(self.few).take(usize::from(self.count));
        few.for_each(|(&part, ns)| call(part, ns));
        if let Some(more) = &self.more {
            ALL.into_iter().zip(more.iter()).for_each(|(part, &ns)| call(part, ns));
        }
    }

    /// A share of all parts: one of so many, rounded down.
    pub fn divided_by(&self, shares: u64) -> Self {
        let mut parts = self.clone();
        // A division takes long, and there are few.
        parts.few.iter_mut().take(usize::from(self.count)).for_each(|ns| *ns /= shares);
        parts.more.iter_mut().flat_map(|more| more.iter_mut()).for_each(|ns| *ns /= shares);
        parts
    }
}

/// All times of what few commands have.
#[cold]
fn rare_total(more: &[u64; PARTS]) -> u64 {
    more.iter().sum()
}

impl Index<Part> for Parts {
    type Output = u64;
    fn index(&self, part: Part) -> &u64 {
        let which = &self.which[..usize::from(self.count)];
        match (which.iter().position(|&p| p == part), &self.more) {
            (Some(at), _) => &self.few[at],
            (None, Some(more)) => &more[part as usize],
            (None, None) => &0,
        }
    }
}

/// The order in which parts came means nothing.
impl PartialEq for Parts {
    fn eq(&self, other: &Self) -> bool {
        PartSums::from(self) == PartSums::from(other)
    }
}
impl Eq for Parts {}

impl Persist for Parts {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let mut sums = PartSums::from(&*self);
        sums.0.persist(archive)?;
        *self = Parts::from(&sums);
        Ok(())
    }
}

/// Time by part, of any number of commands, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PartSums(pub [u64; PARTS]);

impl PartSums {
    /// All parts together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
    /// Adds the time of a command.
    #[inline(always)]
    pub fn add(&mut self, parts: &Parts) {
        let mut add = |part: usize, ns: u64| self.0[part] += ns;
        // How many there are cannot be foretold; what lies behind them is 0.
        parts.which.iter().zip(parts.few).for_each(|(&part, ns)| add(part as usize, ns));
        if let Some(more) = &parts.more {
            more.iter().enumerate().for_each(|(part, &ns)| add(part, ns));
        }
    }
    /// Adds those of `other`.
    pub fn merge(&mut self, other: &PartSums) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, ns)| *sum += ns);
    }
}

impl Index<Part> for PartSums {
    type Output = u64;
    #[inline]
    fn index(&self, part: Part) -> &u64 {
        &self.0[part as usize]
    }
}

impl IndexMut<Part> for PartSums {
    #[inline]
    fn index_mut(&mut self, part: Part) -> &mut u64 {
        &mut self.0[part as usize]
    }
}

impl From<&Parts> for PartSums {
    fn from(parts: &Parts) -> Self {
        let mut sums = PartSums::default();
        sums.add(parts);
        sums
    }
}

impl From<&PartSums> for Parts {
    fn from(sums: &PartSums) -> Self {
        let mut parts = Parts::default();
        ALL.into_iter().zip(sums.0).for_each(|(part, ns)| parts.add(part, ns));
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    /// The parts by number, for draws.
    const SOME: [Part; 12] = [
        Part::Link,
        Part::Controller,
        Part::BufferWait,
        Part::DieHost,
        Part::Cells,
        Part::Channel,
        Part::StripeWait,
        Part::SlowestMember,
        Part::Cache,
        Part::Card,
        Part::Bus,
        Part::Service,
    ];

    #[test]
    fn parts_are_those_that_a_plain_table_holds_however_many_there_are() {
        let mut rng = Stream::new(1, "parts");
        for _ in 0..2000 {
            let (mut parts, mut table) = (Parts::default(), PartSums::default());
            let kinds = 1 + rng.below(SOME.len() as u64);
            for _ in 0..rng.below(20) {
                let (part, ns) = (SOME[rng.below(kinds) as usize], rng.below(3) * rng.below(1000));
                parts.add(part, ns);
                table[part] += ns;
                assert_eq!(parts.total(), table.total());
            }
            SOME.iter().for_each(|&part| assert_eq!(parts[part], table[part]));
            assert_eq!(PartSums::from(&parts), table);
            assert_eq!(Parts::from(&table), parts);
            let mut twice = parts.clone();
            twice.add_all(&parts);
            assert_eq!(twice.total(), 2 * parts.total());
            assert_eq!(twice.divided_by(2), parts);
            let mut reversed = Parts::default();
            SOME.iter().rev().for_each(|&part| reversed.add(part, table[part]));
            assert_eq!(reversed, parts);
            reversed.add_all(&parts);
            assert_eq!(reversed, twice);
        }
    }

    #[test]
    fn parts_given_at_once_are_those_given_one_by_one() {
        let mut rng = Stream::new(2, "parts");
        for _ in 0..2000 {
            let times = SOME.map(|part| (part, rng.below(2) * rng.below(1000)));
            let mut parts = Parts::default();
            times.iter().for_each(|&(part, ns)| parts.add(part, ns));
            assert_eq!(Parts::of(times), parts);
            assert_eq!(Parts::of(times).total(), parts.total());
        }
    }
}
