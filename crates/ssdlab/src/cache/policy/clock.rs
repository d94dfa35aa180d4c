//! CLOCK and SIEVE: a hand goes from the oldest frame to the newest and round again, clears the reference bits of those
//! used since it last came by, and takes the first that was not. They differ in where it finds what comes in.
//!
//! CLOCK, Corbato (1968), puts it where the hand is, so that the hand comes to it last: the same as FIFO with
//! reinsertion, one bit. SIEVE, Zhang et al. (2024), puts it at the newest end, wherever the hand is: what was spared
//! stays where it is, and what is new is looked at soon.
//!
//! Frames have places in a row, twice as many as there are frames, and move together once the row has been used up; so
//! the hand goes past any number of pinned frames at once. Their bits are cleared by its going round: a bit is the
//! round in which it will be seen. Cost: constant on average, a number set at a hit; 17 bytes per frame.

use super::{Policy, Sizes};
use crate::cache::directory::Directory;
use crate::cache::members::Members;
use crate::persist::persistent;
use std::ops::Range;

/// The place of nobody.
const NONE: u32 = u32::MAX;

/// Rounds after which they are counted anew.
const ROUNDS: u32 = u32::MAX / 2;

/// Of a frame: its place, and the last round of the hand in which its reference bit is set.
#[derive(Clone, Copy, Default)]
struct Seat {
    place: u32,
    used: u32,
}

persistent!(Seat { state { place, used } });

pub struct Clock {
    /// By place, the frame.
    row: Vec<u32>,
    seats: Vec<Seat>,
    /// Places of frames, and of those that are not pinned.
    taken: Members,
    loose: Members,
    /// The place that the hand looks at next, and how often it has gone round.
    hand: u32,
    round: u32,
    /// After the newest.
    end: u32,
    /// Between this place and the hand is nobody.
    gap: u32,
    /// Nor between these two: the largest such gap that the hand has left behind.
    room: (u32, u32),
    /// Whether what comes is put at the newest end, not at the hand.
    sieves: bool,
}

persistent!(Clock {
    state { taken, loose, hand, round, end, gap, room }
    parts { row, seats }
    built { sieves }
});

impl Clock {
    pub fn new(capacity: u32) -> Self {
        let places = 2 * capacity;
        Clock {
            row: vec![NONE; places as usize],
            seats: vec![Seat::default(); capacity as usize],
            taken: Members::new(u64::from(places)),
            loose: Members::new(u64::from(places)),
            hand: 0,
            round: 1,
            end: 0,
            gap: 0,
            room: (0, 0),
            sieves: false,
        }
    }

    pub fn sieve(capacity: u32) -> Self {
        Clock { sieves: true, ..Clock::new(capacity) }
    }

    /// Counts rounds from 1 again.
    fn count_anew(&mut self) {
        self.seats
            .iter_mut()
            .for_each(|seat| seat.used = (seat.used + 1).saturating_sub(self.round));
        self.round = 1;
    }

    /// Whether there are frames that the hand has yet to come to in this round.
    fn goes_on(&self) -> bool {
        let newest = self.end > self.hand && self.row[self.end as usize - 1] != NONE;
        newest || self.taken.next(u64::from(self.hand)).is_some()
    }

    fn put(&mut self, place: u32, slot: u32) {
        self.row[place as usize] = slot;
        self.seats[slot as usize].place = place;
        self.taken.insert(u64::from(place));
        self.loose.insert(u64::from(place));
    }

    fn take(&mut self, slot: u32) {
        let place = self.seats[slot as usize].place;
        self.row[place as usize] = NONE;
        self.taken.remove(u64::from(place));
        self.loose.remove(u64::from(place));
    }

    /// Moves all frames together at the start of the row.
    fn close_up(&mut self) {
        let hand = self.hand;
        self.hand = self.gather(0..hand, 0);
        self.end = self.gather(hand..self.row.len() as u32, self.hand);
        self.gap = self.hand;
        self.room = (0, 0);
    }

    /// Makes room right before the hand: that which is elsewhere, once the frames between have moved, or all there is.
    fn make_room(&mut self) {
        let (from, to) = std::mem::take(&mut self.room);
        if from == to {
            self.gap = self.gather(0..self.hand, 0);
            self.end = self.row.len() as u32;
            self.hand = self.gather_back(self.hand..self.end, self.end);
        } else if to <= self.hand {
            self.gap = self.gather(to..self.hand, from);
        } else {
            self.gap = self.hand;
            self.hand = self.gather_back(self.hand..from, to);
        }
    }

    /// Moves the frames of some places together, from another place on; where they end.
    fn gather(&mut self, places: Range<u32>, mut to: u32) -> u32 {
        for from in places {
            to += u32::from(self.carry(from, to));
        }
        to
    }

    /// The same up to another place; where they begin.
    fn gather_back(&mut self, places: Range<u32>, mut to: u32) -> u32 {
        for from in places.rev() {
            to -= u32::from(self.carry(from, to - 1));
        }
        to
    }

    /// Moves who is at a place to another; whether there was somebody.
    fn carry(&mut self, from: u32, to: u32) -> bool {
        let slot = self.row[from as usize];
        if slot != NONE {
            let loose = self.loose.has(u64::from(from));
            self.take(slot);
            self.put(to, slot);
            self.loose.set(u64::from(to), loose);
        }
        slot != NONE
    }

    /// A place at the newest end; nothing changes for the hand, which has still gone past the end if it had.
    fn newest(&mut self) -> u32 {
        if self.end as usize == self.row.len() {
            self.close_up();
        }
        let past = !self.goes_on();
        self.end += 1;
        if past {
            self.hand = self.end;
            self.gap = self.end;
        }
        self.end - 1
    }

    /// A place right before the hand.
    fn at_hand(&mut self) -> u32 {
        if !self.goes_on() {
            return self.newest();
        }
        if self.gap >= self.hand {
            self.make_room();
        }
        self.gap += 1;
        self.gap - 1
    }
}

impl Policy for Clock {
    const SIZES: Sizes = Sizes::Any;

    #[inline]
    fn hit(&mut self, _names: &mut Directory, slot: u32) {
        let seat = &mut self.seats[slot as usize];
        seat.used = self.round + u32::from(seat.place < self.hand);
    }

    #[inline]
    fn evict(
        &mut self,
        names: &mut Directory,
        _ghost: Option<u32>,
        mut may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        if self.round >= ROUNDS {
            self.count_anew();
        }
        let (begin, last) = (self.hand, self.round + 2);
        loop {
            // The first round clears all bits; what the second passes over may not be taken.
            let next = self.loose.next(u64::from(self.hand)).map_or(NONE, |place| place as u32);
            if self.round == last && next >= begin {
                self.hand = begin;
                return None;
            }
            if next == NONE {
                self.hand = 0;
                self.round += 1;
                continue;
            }
            let slot = self.row[next as usize];
            self.hand = next + 1;
            if self.seats[slot as usize].used < self.round && may(slot) {
                self.take(slot);
                if begin.saturating_sub(self.gap) > self.room.1 - self.room.0 {
                    self.room = (self.gap, begin);
                }
                self.gap = next;
                names.release(slot);
                return Some(slot);
            }
        }
    }

    #[inline]
    fn admit(&mut self, _names: &mut Directory, slot: u32, _ghost: Option<u32>) {
        self.seats[slot as usize].used = 0;
        let place = if self.sieves { self.newest() } else { self.at_hand() };
        self.put(place, slot);
    }

    fn remove(&mut self, _names: &mut Directory, slot: u32) {
        self.take(slot);
    }

    fn pin(&mut self, slot: u32, pinned: bool) {
        self.loose.set(u64::from(self.seats[slot as usize].place), !pinned);
    }

    fn bytes(&self) -> usize {
        self.row.capacity() * size_of::<u32>()
            + self.seats.capacity() * size_of::<Seat>()
            + self.taken.bytes()
            + self.loose.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn rounds_counted_anew_change_nothing() {
        let begun = |round| Clock { round, ..Clock::new(8) };
        let mut pair = [begun(1), begun(ROUNDS - 9)].map(|clock| (clock, Directory::new(8, 0)));
        let mut stream = Stream::new(1, "slots");
        for key in 0..1000 {
            let (used, few) = (stream.below(8) as u32, stream.below(4) as u32);
            let came = pair.each_mut().map(|(clock, names)| {
                let slot =
                    names.vacant().or_else(|| clock.evict(names, None, |slot| slot > few))?;
                clock.admit(names, slot, None);
                names.insert(key, slot);
                clock.hit(names, used.min(names.len() - 1));
                Some(slot)
            });
            assert_eq!(came[0], came[1], "{key}");
        }
        assert!(pair[1].0.round < pair[0].0.round);
    }

    #[test]
    fn what_comes_in_the_place_of_removed_frames_moves_few_others() {
        let frames = 512;
        let (mut clock, mut names) = (Clock::new(frames), Directory::new(frames, 0));
        let come = |clock: &mut Clock, names: &mut Directory, key: u64| {
            let slot = names.vacant().or_else(|| clock.evict(names, None, |_| true)).unwrap();
            clock.admit(names, slot, None);
            names.insert(key, slot);
        };
        (0..512).for_each(|key| come(&mut clock, &mut names, key));
        let mut stream = Stream::new(1, "slots");
        let mut moved = 0;
        for step in 0..4000 {
            let used = stream.below(512) as u32;
            clock.hit(&mut names, used);
            let before = clock.seats.clone();
            come(&mut clock, &mut names, 1000 + 2 * step);
            let removed = stream.below(512) as u32;
            clock.remove(&mut names, removed);
            names.release(removed);
            names.give_back(removed);
            come(&mut clock, &mut names, 1001 + 2 * step);
            let pairs = before.iter().zip(&clock.seats);
            moved += pairs.filter(|(a, b)| a.place != b.place).count();
        }
        assert!(moved < 8 * 4000, "{moved}");
    }
}
