//! The steady state of uniform random writes, drawn instead of written.
//!
//! In the mean field (Van Houdt, SIGMETRICS 2013; Li, Lee & Lui, SIGMETRICS 2013) what a superblock holds, and how
//! that goes with its age, follows one law that depends on the victim policy, on the units of a superblock and on
//! the share of the space that is valid, but neither on how many superblocks there are nor on what the others hold.
//! So a model of one region is written until it is steady, by the very code of the drive, and each region of the
//! drive becomes a sample of it: its superblocks, in order of their age, are those of the model, each as often as
//! the drive is larger, at random places, with random units in them. Counters are those of a drive that was written
//! as often as the model.
//!
//! Simplified: all regions hold equally much, and the copies of a superblock have their valid units at the same
//! offsets. The model is written on between the regions, and the drive should be afterwards, so that they differ.
//! Large superblocks are shorter in the model: what one holds scatters less the more units it has, and of
//! thousands that is next to nothing.
//! Cost: the writes of the model, and a random permutation of the logical units.

use super::mapping::Mapping;
use super::page_map::{PageMap, Policies};
use super::relocate::Relocation;
use super::space::{CLOSED, Frontier, Lane};
use super::{Pace, Sink, UnitWrite, placement, victim};
use crate::contract::Drawing;
use crate::nand::{Cause, NONE};
use crate::rng::Stream;
use std::collections::VecDeque;

/// A model has about so many units ...
const MODEL_UNITS: u32 = 1 << 18;
/// ... and so many superblocks at least, unless a region of the drive has fewer: what is open in it is then next to
/// nothing.
const MODEL_SUPERBLOCKS: u32 = 1024;
/// Units of a superblock at which one of the model is shorter, in whole stripes of parity.
const SUPERBLOCK_UNITS: u32 = 4096;
/// A model that is not smaller than the drive by this factor gains too little.
const GAIN: u32 = 4;
/// Times that the model is overwritten: what was filled in order is then a share of `exp(-8)` of the data.
const OVERWRITES: u32 = 8;
/// Times that the model is overwritten while the regions of the drive become samples of it one after the other, so
/// that they do not all have what is chance in it.
const PASSING: u32 = 2;

/// A closed superblock of the drive, and the age of that of the model which it is a copy of, in writes to the model.
type Copy = (u32, u64);

impl PageMap {
    /// Brings an empty map that was never written into the state in which random writes of whole units leave it in
    /// the long run; `pads` says whether each write programs what it has placed. `sink` sees the operations of the
    /// model. Answers how many times as much the drive was written, or `None`, having done nothing, where a state
    /// cannot be drawn: other maps than a plain one, compression, an SLC cache, wear levelling, collection in
    /// batches, units bound to regions, contents that are kept; and where writing is about as quick.
    pub fn draw_steady<S: Sink>(
        &mut self,
        drawing: &mut Drawing<'_>,
        pads: bool,
        sink: &mut S,
    ) -> Option<f64> {
        let bound = self.placement.binds() && self.layout.regions > 1;
        let plain =
            matches!(self.mapping, Mapping::Page) && self.cache.is_none() && !self.map.packs();
        let simple = self.reclaim.wear.is_none() && self.settings.pace != Pace::Periodic && !bound;
        let new = self.counters.host_units_written == 0 && self.counters.superblocks_erased == 0;
        if !(plain && simple && new && !self.contents.are_kept()) {
            return None;
        }
        let mut model = self.model()?;
        std::mem::swap(&mut self.reclaim.victim, &mut model.reclaim.victim);
        let (units, of_model) = (u64::from(self.units()), u64::from(model.units()));
        // Each unit of the drive is dealt to a superblock, shuffled and mapped.
        drawing.begin(of_model * u64::from(1 + OVERWRITES + PASSING) + 3 * units);
        (0..model.units()).for_each(|lpn| model.write_full(lpn, pads, sink));
        drawing.advance(of_model);
        model.overwrite(of_model * u64::from(OVERWRITES), drawing, pads, sink);
        let times = self.sample_model(&mut model, drawing, pads, sink);
        std::mem::swap(&mut self.reclaim.victim, &mut model.reclaim.victim);
        if times.is_none() {
            self.purge();
        }
        times
    }

    /// A region as of this drive, with fewer superblocks where it has many, and shorter ones where they are large;
    /// empty.
    fn model(&self) -> Option<PageMap> {
        let (whole, settings) = (self.layout, self.settings);
        let stripe = whole.stripe().max(1);
        let programs = SUPERBLOCK_UNITS.div_ceil(whole.units_per_program() * stripe) * stripe;
        let layout = whole.shortened(programs.min(whole.programs_per_superblock()));
        let units = layout.units_per_superblock();
        let superblocks = layout.superblocks.min(MODEL_SUPERBLOCKS.max(MODEL_UNITS / units));
        let of_model = layout.one_region(superblocks);
        if of_model.units() * u64::from(GAIN) > whole.units() {
            return None;
        }
        // As densely as in the drive lies what is in closed superblocks; one at a frontier is half full.
        let frontiers = settings.frontiers();
        let open = f64::from(settings.reserve() + frontiers);
        let per_region = f64::from(self.units()) / f64::from(whole.regions);
        let [data, of_model_data] =
            [whole, layout].map(|l| f64::from(l.data_units_per_superblock()));
        let at_frontiers = f64::from(frontiers) * data / 2.0;
        let share = (f64::from(superblocks) - open) / (f64::from(whole.superblocks) - open);
        let held = at_frontiers + (per_region - at_frontiers) * share;
        let held = held * of_model_data / data;
        let held = (held.round() as u32).min(Self::region_limit(&of_model, &settings));
        let policies = Policies {
            victim: (victim::VICTIMS.entries[0].build)(
                &victim::Parameters::default(),
                Stream::new(0, ""),
            ),
            placement: (placement::PLACEMENTS.entries[0].build)(),
            wear: None,
        };
        Some(PageMap::new(of_model, held, settings, policies, self.sectors_per_unit, false))
    }

    /// Overwrites so many units at random.
    fn overwrite<S: Sink>(
        &mut self,
        units: u64,
        drawing: &mut Drawing<'_>,
        pads: bool,
        sink: &mut S,
    ) {
        for _ in 0..units {
            if !drawing.advance(1) {
                return;
            }
            let lpn = drawing.stream.below(u64::from(self.units())) as u32;
            self.write_full(lpn, pads, sink);
        }
    }

    fn write_full<S: Sink>(&mut self, lpn: u32, pads: bool, sink: &mut S) {
        let sectors = self.sectors_per_unit;
        let write = UnitWrite { lpn, first_sector: 0, sectors, stamp: 0, compressible: 0 };
        self.write(&write, sink);
        if pads {
            self.pad_all(sink);
        }
    }

    /// Becomes a sample of the model, which is in a steady state; answers how much larger it is, `None` if that was
    /// stopped.
    fn sample_model<S: Sink>(
        &mut self,
        model: &mut PageMap,
        drawing: &mut Drawing<'_>,
        pads: bool,
        sink: &mut S,
    ) -> Option<f64> {
        let regions = self.layout.regions;
        // One region differs from no other.
        let passing = if regions > 1 { u64::from(PASSING) } else { 0 };
        let between = u64::from(model.units()) * passing / u64::from(regions);
        let mut closed: Vec<Vec<Copy>> = Vec::new();
        for region in 0..regions {
            closed.push(self.sample_region(region, model, drawing));
            drawing.advance(u64::from(self.units() / regions));
            model.overwrite(between, drawing, pads, sink);
            if drawing.is_stopped() {
                return None;
            }
        }
        self.hold_all(&closed, drawing.stream);
        self.space.recount();
        let times = self.count_as(model);
        let now = self.counters.host_units_written;
        for (region, copies) in closed.iter().enumerate() {
            for &(superblock, age) in copies {
                let at = now.saturating_sub((age as f64 * times) as u64);
                self.space.blocks.close(region as u32, superblock, at);
            }
        }
        self.map.deal(drawing);
        (!drawing.is_stopped()).then_some(times)
    }

    /// Deals the parts of the model's superblocks to those of a region; answers the closed ones, the oldest first.
    fn sample_region(
        &mut self,
        region: u32,
        model: &PageMap,
        drawing: &mut Drawing<'_>,
    ) -> Vec<Copy> {
        let mut places: Vec<u32> = self.blocks().of_region(region).collect();
        shuffle(&mut places, drawing);
        let mut places = places.into_iter();
        let whole = self.layout.units_per_superblock();
        let mut next = |this: &mut Self, of: u32, end: u32| {
            let superblock = places.next().expect("no more parts than superblocks");
            this.copy_superblock(superblock, model, of, end);
            superblock
        };
        let free: VecDeque<u32> = model.space.free_of(0).map(|of| next(self, of, 0)).collect();
        let mut frontier = |this: &mut Self, lane: Lane| match *model.space.frontier(0, lane) {
            Frontier { superblock: NONE, .. } => CLOSED,
            f if this.is_as_long_as(model) => {
                Frontier { superblock: next(this, f.superblock, f.offset), ..f }
            }
            f => {
                let offset = this.offset_of(f.offset, model);
                Frontier { offset, ..Frontier::at(next(this, f.superblock, offset)) }
            }
        };
        let (host, collected) = (frontier(self, Lane::Host), frontier(self, Lane::Collected));
        let collecting = model.reclaim.moving(0, Cause::Collection).map(|job| {
            let victim = next(self, job.victim, whole);
            self.relocation_as(job, victim, model)
        });
        self.space.set_region(region, free, host, collected);
        self.reclaim.resume(region, collecting);
        let of: Vec<u32> = model.blocks().oldest_first(0).collect();
        let places: Vec<u32> = places.collect();
        let begin = drawing.stream.below(places.len() as u64) as usize;
        let mut copies = Vec::with_capacity(places.len());
        for (i, &superblock) in places.iter().enumerate() {
            let of = of[(i * of.len() + begin) / places.len() % of.len()];
            self.copy_superblock(superblock, model, of, whole);
            let closed_at = model.blocks().closed_at[of as usize];
            copies.push((superblock, model.counters.host_units_written - closed_at));
        }
        copies
    }

    /// Whether superblocks of the model are none shorter than those of the drive.
    fn is_as_long_as(&self, model: &PageMap) -> bool {
        self.layout.units_per_superblock() == model.layout.units_per_superblock()
    }

    /// The start of the program unit of a longer superblock that stands for the one at this offset of the model: what the
    /// model has before it lies before it here. It is none of parity, which is never the next to be written.
    fn offset_of(&self, offset: u32, model: &PageMap) -> u32 {
        let [all, of_model] = [self, model].map(|map| map.layout.programs_per_superblock());
        let program = model.layout.program_of(offset);
        let mut at = (u64::from(program) * u64::from(all)).div_ceil(u64::from(of_model)) as u32;
        let units = self.layout.units_per_program();
        // At the end of a superblock two of parity may follow each other.
        while at < all && self.layout.is_parity(at * units) {
            at -= 1;
        }
        at * units
    }

    /// What the model collects, in a superblock of the drive.
    fn relocation_as(&self, job: Relocation, victim: u32, model: &PageMap) -> Relocation {
        if self.is_as_long_as(model) {
            return Relocation { victim, ..job };
        }
        let [all, of_model] =
            [self, model].map(|map| u64::from(map.layout.data_units_per_superblock()));
        let longer = |units: u32| (u64::from(units) * all / of_model) as u32;
        let cursor = self.offset_of(job.cursor, model);
        let (valid, gain) = (longer(job.valid), longer(job.gain));
        Relocation { victim, cursor, valid, gain, owed: 0, ..job }
    }

    /// Valid units and wear of a superblock of the model, up to the offset `end`.
    fn copy_superblock(&mut self, superblock: u32, model: &PageMap, of: u32, end: u32) {
        self.space.blocks.erases[superblock as usize] = model.blocks().erases[of as usize];
        let [all, of_model] = [self, model].map(|map| map.layout.programs_per_superblock());
        let units = self.layout.units_per_program();
        let (first, of) = (self.layout.first_unit(superblock), model.layout.first_unit(of));
        let mut valid = 0;
        for program in 0..end.div_ceil(units) {
            let mut source = (u64::from(program) * u64::from(of_model) / u64::from(all)) as u32;
            if self.layout.is_parity(program * units) {
                continue;
            }
            source -= u32::from(model.layout.is_parity(source * units));
            let (to, from) = (first + program * units, of + source * units);
            let mut left = from..from + units;
            while let Some(at) = model.map.next_valid(left.clone()) {
                self.map.mark(to + at - from, 1);
                valid += 1;
                left.start = at + 1;
            }
        }
        self.space.blocks.fill(superblock, valid);
    }

    /// Makes as many units valid as there are logical ones: rounding leaves some too few or too many, which is
    /// corrected in superblocks drawn from the closed ones.
    fn hold_all(&mut self, closed: &[Vec<Copy>], stream: &mut Stream) {
        let units = u64::from(self.units());
        let mut held = self.map.valid_units();
        while held != units {
            let region = &closed[stream.below(closed.len() as u64) as usize];
            let (superblock, _) = region[stream.below(region.len() as u64) as usize];
            let offset = stream.below(u64::from(self.layout.units_per_superblock())) as u32;
            let ppn = self.layout.first_unit(superblock) + offset;
            if held > units && self.map.is_valid(ppn) {
                self.map.unmark(&self.layout, ppn, 1);
                self.space.blocks.valid[superblock as usize] -= 1;
                held -= 1;
            } else if held < units && !self.map.is_valid(ppn) && !self.layout.is_parity(offset) {
                self.map.mark(ppn, 1);
                self.space.blocks.fill(superblock, 1);
                held += 1;
            }
        }
    }

    /// Counts as the model did, as often as has been programmed and erased here; answers how many times as much.
    fn count_as(&mut self, model: &PageMap) -> f64 {
        let per_superblock = u64::from(self.layout.units_per_superblock());
        let erased: u64 = self.blocks().erases.iter().map(|&n| u64::from(n)).sum();
        let (mut filled, mut collecting) = (0, 0);
        for r in 0..self.layout.regions {
            let full = self.blocks().of_region(r).len() as u64 - u64::from(self.space.free_in(r));
            filled += full * per_superblock;
            collecting += u64::from(self.reclaim.is_moving(r, Cause::Collection));
        }
        for (.., frontier) in self.space.frontiers() {
            filled -= per_superblock - u64::from(frontier.offset);
        }
        let programmed = erased * per_superblock + filled;
        let m = &model.counters;
        let kinds = [m.programs_collection, m.programs_padding, m.programs_parity];
        let of_model = m.programs_host + kinds.iter().sum::<u64>();
        let times = programmed as f64 / of_model as f64;
        let [collection, padding, parity] = kinds.map(|n| (n as f64 * times).round() as u64);
        let units = u64::from(self.units());
        let c = &mut self.counters;
        c.programs_collection = collection;
        c.programs_padding = padding;
        c.programs_parity = parity;
        c.programs_host = programmed - collection - padding - parity;
        c.host_units_written = c.programs_host;
        c.units_mapped = units;
        c.superblocks_erased = erased;
        c.collections = erased + collecting;
        times
    }
}

/// A random order (Fisher and Yates), unless that is stopped.
pub(super) fn shuffle(values: &mut [u32], drawing: &mut Drawing<'_>) {
    for n in (1..values.len()).rev() {
        values.swap(n, drawing.stream.below(n as u64 + 1) as usize);
        if !drawing.advance(1) {
            return;
        }
    }
}
