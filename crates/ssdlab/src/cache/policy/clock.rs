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

/// The place of nobody.
const NONE: u32 = u32::MAX;

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
    /// Whether what comes is put at the newest end, not at the hand.
    sieves: bool,
}

persistent!(Clock {
    state { taken, loose, hand, round, end, gap }
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
            sieves: false,
        }
    }

    pub fn sieve(capacity: u32) -> Self {
        Clock { sieves: true, ..Clock::new(capacity) }
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

    /// Moves all frames together: those before the hand to the start of the row, and the others as well, or to its end.
    fn close_up(&mut self, to_the_end: bool) {
        let mut to = 0;
        for from in 0..self.hand {
            to += u32::from(self.carry(from, to));
        }
        self.gap = to;
        if to_the_end {
            let mut room = self.row.len() as u32;
            self.end = room;
            for from in (self.hand..room).rev() {
                room -= u32::from(self.carry(from, room - 1));
            }
            self.hand = room;
        } else {
            let hand = std::mem::replace(&mut self.hand, to);
            for from in hand..self.row.len() as u32 {
                to += u32::from(self.carry(from, to));
            }
            self.end = to;
        }
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
            self.close_up(false);
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
            self.close_up(true);
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
