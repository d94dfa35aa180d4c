//! LHD: evicts the block of least hit density, the hits that it may still expect per time that it will take up.
//!
//! Beckmann, Chen & Cidon (2018). Blocks are of one of 16 classes, by the ages at which they were hit last; hits and
//! evictions are counted by class and age, and every 2^20 uses hit densities follow from them (section 4). The victim
//! is the worst of a few frames drawn, and of eight of those that came in as bad as recent victims. One use in 32
//! makes a frame an explorer, which stays, up to one percent of the frames, so that densities of what is always
//! evicted early become known. Constants as its authors' simulator has them. Cost: constant, 8 to 32 frames looked at
//! per eviction; 12 bytes per frame and a table by age.

use super::Policy;
use crate::cache::directory::Directory;
use crate::cache::frames::{Cache, Frames};
use crate::cache::members::Members;
use crate::persist::persistent;
use crate::rng::Stream;

const CLASSES: usize = 16;
/// Ages are below; all above are one.
const AGES: u16 = 20_000;
/// Uses between two looks at what was counted.
const EPOCH: u64 = 1 << 20;
const DECAY: f32 = 0.9;
const DRAWS: u32 = 32;
/// Fewer in the first epochs.
const FIRST_DRAWS: u32 = 8;
const EPOCHS_TO_LEARN: u32 = 50;
const DOUBTED: usize = 8;
const EXPLORE_ONE_IN: u64 = 32;
const EXPLORERS: f64 = 0.01;
/// Of a frame that has just come and was never hit, before anything is known: classes are weighed by this and more.
const FIRST_WEIGHT: f32 = 17.0;
const COARSE_AT_FIRST: u32 = 10;
/// Epochs after which the unit of age is set by the number of blocks.
const SET_UNIT_AFTER: [u32; 2] = [5, 25];
/// Ages are told apart to this part of the time that all frames take to be renewed once.
const PRECISION: f64 = 0.01;
const EXPLORER: u16 = 1 << 15;

/// What is known of a frame.
#[derive(Clone, Copy, Default)]
struct Tag {
    used: u64,
    /// Age at its last hit; 0 for none. The highest bit: an explorer.
    age: u16,
    /// Age at the hit before that.
    age_before: u16,
}
persistent!(Tag { state { used, age, age_before } });

/// Hits and evictions at an age, of each class.
#[derive(Clone, Copy, Default)]
struct Events {
    hits: [f32; CLASSES],
    evictions: [f32; CLASSES],
    density: [f32; CLASSES],
}
persistent!(Events { state { hits, evictions, density } });

pub struct Lhd {
    tags: Vec<Tag>,
    /// By age, as far as there were any.
    events: Vec<Events>,
    now: u64,
    epochs: u32,
    coarse: u32,
    explorers_left: u32,
    victims: f32,
    doubted: [u64; DOUBTED],
    doubts: u64,
    stream: Stream,
    /// Frames that are not pinned.
    loose: Members,
}

persistent!(Lhd {
    state {
        tags, events, now, epochs, coarse, explorers_left, victims, doubted, doubts, stream, loose
    }
});

pub fn build(capacity: u32, stream: Stream) -> Box<dyn Frames> {
    let policy = Lhd {
        tags: vec![Tag::default(); capacity as usize],
        events: Vec::new(),
        now: 0,
        epochs: 0,
        coarse: COARSE_AT_FIRST,
        explorers_left: (f64::from(capacity) * EXPLORERS) as u32,
        victims: 0.0,
        doubted: [u64::MAX; DOUBTED],
        doubts: 0,
        stream,
        loose: Members::all(u64::from(capacity)),
    };
    Cache::boxed(capacity, 0, policy)
}

/// About the logarithm of the time until the ages overflow.
fn class(tag: Tag) -> usize {
    let age = u32::from(tag.age & !EXPLORER) + u32::from(tag.age_before);
    if age == 0 {
        return CLASSES - 1;
    }
    let room = (u32::from(AGES).div_ceil(age)).next_power_of_two().ilog2() as usize;
    room.min(CLASSES - 1)
}

impl Lhd {
    fn age(&self, tag: Tag) -> u16 {
        ((self.now - tag.used) >> self.coarse).min(u64::from(AGES) - 1) as u16
    }

    fn density(&self, tag: Tag) -> f32 {
        let (age, class) = (self.age(tag), class(tag));
        if age == AGES - 1 {
            return f32::MIN;
        }
        let known = if self.epochs == 0 {
            (class as f32 + FIRST_WEIGHT) / (f32::from(age) + 1.0)
        } else {
            self.events.get(usize::from(age)).map_or(0.0, |at| at.density[class])
        };
        if tag.age & EXPLORER > 0 { known + 1.0 } else { known }
    }

    fn events_at(&mut self, age: u16) -> &mut Events {
        let at = usize::from(age);
        if at >= self.events.len() {
            self.events.resize(at + 1, Events::default());
        }
        &mut self.events[at]
    }

    fn no_longer_explores(&mut self, slot: u32) {
        self.explorers_left += u32::from(self.tags[slot as usize].age & EXPLORER > 0);
    }

    /// A frame is used: whether it explores.
    fn used(&mut self, slot: u32, tag: Tag, blocks: u32) -> bool {
        let explore = self.stream.below(EXPLORE_ONE_IN) == 0;
        let marked = explore && self.explorers_left > 0 && self.epochs < EPOCHS_TO_LEARN;
        self.explorers_left -= u32::from(marked);
        let mark = if marked { EXPLORER } else { 0 };
        self.tags[slot as usize] = Tag { used: self.now, age: tag.age | mark, ..tag };
        self.now += 1;
        if self.now.is_multiple_of(EPOCH) {
            self.learn(blocks);
        }
        explore
    }

    #[cold]
    fn learn(&mut self, blocks: u32) {
        for at in &mut self.events {
            for count in at.hits.iter_mut().chain(&mut at.evictions) {
                *count *= DECAY;
            }
        }
        if SET_UNIT_AFTER.contains(&self.epochs) {
            self.set_unit(blocks);
        }
        for class in 0..CLASSES {
            // Sums over all that comes later: of hits, of events, and of the time until then.
            let (mut hits, mut events, mut time) = (0.0, 0.0, 0.0);
            for at in self.events.iter_mut().rev() {
                hits += at.hits[class];
                events += at.hits[class] + at.evictions[class];
                time += events;
                at.density[class] = if events > 1e-5 { hits / time } else { 0.0 };
            }
        }
        self.epochs += 1;
    }

    /// Ages in other units: what was counted goes to the new ones.
    fn set_unit(&mut self, blocks: u32) {
        let wanted = f64::from(blocks) / (PRECISION * f64::from(AGES));
        let coarse = (1..32).find(|&bits| f64::from(1u32 << bits) >= wanted).unwrap_or(31);
        let old = std::mem::take(&mut self.events);
        for (age, at) in old.iter().enumerate() {
            let first = (age as u64) << self.coarse >> coarse;
            let parts = 1 << self.coarse.saturating_sub(coarse);
            for place in first..first + parts {
                let to = self.events_at(place.min(u64::from(AGES) - 1) as u16);
                for class in 0..CLASSES {
                    to.hits[class] += at.hits[class] / parts as f32;
                    to.evictions[class] += at.evictions[class] / parts as f32;
                }
            }
        }
        self.coarse = coarse;
    }
}

impl Policy for Lhd {
    fn hit(&mut self, names: &mut Directory, slot: u32) {
        let tag = self.tags[slot as usize];
        let age = self.age(tag);
        self.events_at(age).hits[class(tag)] += 1.0;
        self.no_longer_explores(slot);
        self.used(slot, Tag { age, age_before: tag.age & !EXPLORER, ..tag }, names.len());
    }

    fn evict(
        &mut self,
        names: &mut Directory,
        _ghost: Option<u32>,
        mut may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let frames = names.capacity();
        let mut worst: Option<(f32, u32)> = None;
        let draws = if self.epochs > EPOCHS_TO_LEARN { DRAWS } else { FIRST_DRAWS };
        let drawn = self.stream.below(u64::from(frames)) as u32;
        for n in 0..draws as usize + DOUBTED {
            let slot = if n == 0 {
                drawn
            } else if n < draws as usize {
                self.stream.below(u64::from(frames)) as u32
            } else {
                let doubted = names.find(self.doubted[n - draws as usize]);
                let Some(slot) = doubted else { continue };
                slot
            };
            if !names.is_live(slot) || !may(slot) {
                continue;
            }
            let density = self.density(self.tags[slot as usize]);
            if worst.is_none_or(|(least, _)| density < least) {
                worst = Some((density, slot));
            }
        }
        let (density, slot) = match worst {
            Some(found) => found,
            None => {
                let fits = |slot: u64| names.is_live(slot as u32) && may(slot as u32);
                let slot = self.loose.around(u64::from(drawn), fits)? as u32;
                (self.density(self.tags[slot as usize]), slot)
            }
        };
        self.victims = DECAY * self.victims + (1.0 - DECAY) * density;
        let tag = self.tags[slot as usize];
        let age = self.age(tag);
        self.events_at(age).evictions[class(tag)] += 1.0;
        self.no_longer_explores(slot);
        names.release(slot);
        Some(slot)
    }

    fn admit(&mut self, _names: &mut Directory, _slot: u32, _ghost: Option<u32>) {}

    fn entered(&mut self, names: &mut Directory, slot: u32) {
        let new = Tag { used: 0, age: 0, age_before: AGES };
        let explore = self.used(slot, new, names.len());
        let tag = Tag { used: self.now, ..self.tags[slot as usize] };
        if !explore && self.density(tag) < self.victims {
            self.doubted[(self.doubts % DOUBTED as u64) as usize] = names.key(slot);
            self.doubts += 1;
        }
    }

    fn remove(&mut self, _names: &mut Directory, slot: u32) {
        self.no_longer_explores(slot);
        self.loose.insert(u64::from(slot));
    }

    fn pin(&mut self, slot: u32, pinned: bool) {
        self.loose.set(u64::from(slot), !pinned);
    }

    fn bytes(&self) -> usize {
        self.tags.capacity() * size_of::<Tag>()
            + self.events.capacity() * size_of::<Events>()
            + self.loose.bytes()
    }
}
