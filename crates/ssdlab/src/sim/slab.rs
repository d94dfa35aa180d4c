//! Things in places that are used again: what is in flight, without an allocation for each.

use super::steps::look;
use crate::persist::persistent;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// Bits of a generation.
const GENERATION: u32 = 24;

/// The place of a thing in a slab, and the how manieth thing there it is; `K` says of what kind, so that one is not
/// taken for another.
pub struct Id<K> {
    number: u32,
    generation: u32,
    kind: PhantomData<fn() -> K>,
}
persistent!(impl<K> Id<K> { state { number, generation } built { kind } });

impl<K> Id<K> {
    /// No place.
    pub const NONE: Self = Self::of(u32::MAX, 0);

    const fn of(number: u32, generation: u32) -> Self {
        Id { number, generation, kind: PhantomData }
    }

    /// As a number below 2^56, for the tag of a command.
    #[inline]
    pub fn bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.number)
    }

    /// What has these bits, whatever stands above them.
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Self::of(bits as u32, (bits >> 32) as u32 & ((1 << GENERATION) - 1))
    }

    /// Its number: from 0 on, the lowest ones taken first.
    #[inline]
    pub fn number(self) -> u32 {
        self.number
    }

    /// The number as an index.
    #[inline]
    pub fn index(self) -> usize {
        self.number as usize
    }
}

impl<K> Copy for Id<K> {}
impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        (self.number, self.generation) == (other.number, other.generation)
    }
}
impl<K> Eq for Id<K> {}
impl<K> Default for Id<K> {
    fn default() -> Self {
        Self::NONE
    }
}
impl<K> std::fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if *self == Self::NONE { write!(f, "none") } else { write!(f, "{}", self.number) }
    }
}
/// See the module. A removed thing stays readable until its place is given to another one, for which its id no longer
/// stands.
#[derive(Clone, Debug)]
pub struct Slab<T, K = T> {
    places: Vec<Place<T>>,
    free: Vec<Id<K>>,
}

#[derive(Clone, Debug, Default)]
struct Place<T> {
    used: bool,
    /// Of the thing that is or was there.
    generation: u32,
    thing: T,
}

impl<T, K> Slab<T, K> {
    /// An empty one.
    pub fn new() -> Self {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    /// Puts a thing in a free place: the one that became free last.
    #[inline]
    pub fn insert(&mut self, thing: T) -> Id<K> {
        let Some(id) = self.free.pop() else { return self.add(thing) };
        // In place: what was just put together in pieces is slow to be moved as a whole.
        let place = &mut self.places[id.index()];
        (place.used, place.thing) = (true, thing);
        place.generation = (id.generation + 1) & ((1 << GENERATION) - 1);
        Id::of(id.number, place.generation)
    }

    #[cold]
    fn add(&mut self, thing: T) -> Id<K> {
        self.places.push(Place { used: true, generation: 0, thing });
        Id::of((self.places.len() - 1) as u32, 0)
    }

    /// Frees the place of a thing.
    #[inline]
    pub fn remove(&mut self, id: Id<K>) {
        debug_assert!(self.holds(id), "{id:?} is not there");
        self.places[id.index()].used = false;
        self.free.push(id);
    }

    /// Whether a thing is still there.
    #[inline]
    pub fn holds(&self, id: Id<K>) -> bool {
        let place = &self.places[id.index()];
        place.used && place.generation == id.generation
    }

    /// What is in the place of a number, which is below [`Slab::places`].
    #[inline]
    pub fn at(&self, number: u32) -> Option<Id<K>> {
        let place = &self.places[number as usize];
        place.used.then_some(Id::of(number, place.generation))
    }

    /// How many things there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Places, free ones included.
    pub fn places(&self) -> u32 {
        self.places.len() as u32
    }

    /// All places that are used, by number.
    pub fn ids(&self) -> impl Iterator<Item = Id<K>> + use<'_, T, K> {
        (0..self.places()).inspect(|_| look()).filter_map(|number| self.at(number))
    }

    /// All things, by the number of their places.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().inspect(|_| look()).filter(|place| place.used).map(|place| &place.thing)
    }

    /// The first thing of which something holds.
    pub fn find(&self, mut holds: impl FnMut(&T) -> bool) -> Option<Id<K>> {
        self.ids().find(|&id| holds(&self[id]))
    }
}

impl<T, K> Default for Slab<T, K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, K> Index<Id<K>> for Slab<T, K> {
    type Output = T;
    #[inline]
    fn index(&self, id: Id<K>) -> &T {
        let place = &self.places[id.index()];
        debug_assert_eq!(place.generation, id.generation, "{id:?} is another's place");
        &place.thing
    }
}

impl<T, K> IndexMut<Id<K>> for Slab<T, K> {
    #[inline]
    fn index_mut(&mut self, id: Id<K>) -> &mut T {
        let place = &mut self.places[id.index()];
        debug_assert_eq!(place.generation, id.generation, "{id:?} is another's place");
        &mut place.thing
    }
}

persistent!(impl<T: Persist> Place<T> { state { used, generation, thing } });
persistent!(impl<T: Persist, K> Slab<T, K> { state { places, free } });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_that_became_free_last_is_taken_first() {
        let mut slab: Slab<char> = Slab::new();
        let [a, b, c] = ['a', 'b', 'c'].map(|thing| slab.insert(thing));
        slab.remove(a);
        slab.remove(b);
        assert_eq!((slab.len(), slab[b], slab.holds(b)), (1, 'b', false));
        let d = slab.insert('d');
        assert_eq!(
            (d.number(), slab.holds(d), slab.holds(b), slab.at(1)),
            (1, true, false, Some(d))
        );
        assert_eq!((Id::from_bits(0xff << 56 | d.bits()), d == b, slab.at(0)), (d, false, None));
        assert_eq!(slab.iter().collect::<String>(), "dc");
        assert_eq!(slab.find(|&thing| thing == 'c'), Some(c));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "is another's place")]
    fn what_is_no_longer_there_is_not_taken_for_what_came_after_it() {
        let mut slab: Slab<char> = Slab::new();
        let a = slab.insert('a');
        slab.remove(a);
        slab.insert('b');
        let _ = slab[a];
    }
}
