//! State in and out of a file, by one visitor for both ways.
//!
//! Whatever has state implements [`Persist`]: one method hands every field of it to an [`Archive`],
//! which either writes the field or overwrites it with what it reads. So saving and loading cannot
//! drift apart, and an object behind a trait needs nothing but that method. What follows from how a
//! device was built is not stored: state is loaded in place, into a device built the same way.
//!
//! [`persistent!`](persistent) makes the method out of the names of the fields. It takes the struct apart by
//! all of them, so that a new field does not compile before somebody has said whether it is state.
//!
//! Numbers are little-endian. Slices of numbers go in runs of [`RUN`]; a run of equal ones takes the
//! place of one, so that an empty drive is a small file, and memory that holds nothing but zeros is not
//! touched by loading zeros.

mod derive;

pub(crate) use derive::{
    persist_case, persist_choice, persistent, persistent_cases, persistent_enum,
};

use crate::error::{Error, Result};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io::{Read, Write};

/// Numbers of a slice that go together.
pub const RUN: usize = 4096;

/// Bytes between two calls of the file.
const BUFFER: usize = 1 << 16;

/// Has state that can be saved, and loaded in place.
pub trait Persist {
    /// Hands all state to `archive`, in an order that depends on nothing but that state and on how the
    /// object was built. Saving changes nothing.
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()>;

    /// The same for a slice whose length is known.
    fn persist_slice(slice: &mut [Self], archive: &mut Archive<'_>) -> Result<()>
    where
        Self: Sized,
    {
        slice.iter_mut().try_for_each(|item| item.persist(archive))
    }
}

/// What is there, or how long it is, was decided when it was built.
pub trait Part {
    /// Hands the content to `archive`; an error where the one loaded was built otherwise.
    fn persist_part(&mut self, archive: &mut Archive<'_>) -> Result<()>;
}

enum Way<'a> {
    Save(&'a mut dyn Write),
    Load(&'a mut dyn Read),
}

/// Where state goes to, or comes from.
pub struct Archive<'a> {
    way: Way<'a>,
    /// To be written, or read ahead up to `filled` and used up to `used`.
    buffer: Box<[u8]>,
    used: usize,
    filled: usize,
    sum: crc32fast::Hasher,
    length: u64,
}

impl<'a> Archive<'a> {
    /// Saves to `to`.
    pub fn save(to: &'a mut dyn Write) -> Self {
        Self::new(Way::Save(to))
    }

    /// Loads from `from`, which ends where the state ends.
    pub fn load(from: &'a mut dyn Read) -> Self {
        Self::new(Way::Load(from))
    }

    fn new(way: Way<'a>) -> Self {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Archive { way, buffer, used: 0, filled: 0, sum: crc32fast::Hasher::new(), length: 0 }
    }

    /// Whether fields are overwritten.
    pub fn loads(&self) -> bool {
        matches!(self.way, Way::Load(_))
    }

    /// Writes the bytes, or overwrites them.
    #[inline]
    pub fn bytes(&mut self, mut bytes: &mut [u8]) -> Result<()> {
        while !bytes.is_empty() {
            let loads = self.loads();
            let room = if loads { self.filled } else { BUFFER } - self.used;
            if room == 0 {
                self.turn_over()?;
                continue;
            }
            let (part, rest) = bytes.split_at_mut(room.min(bytes.len()));
            let buffer = &mut self.buffer[self.used..self.used + part.len()];
            if loads {
                part.copy_from_slice(buffer);
            } else {
                buffer.copy_from_slice(part);
            }
            self.used += part.len();
            bytes = rest;
        }
        Ok(())
    }

    /// Empties a full buffer, or fills an empty one.
    #[cold]
    fn turn_over(&mut self) -> Result<()> {
        let seen = match &mut self.way {
            Way::Save(to) => {
                to.write_all(&self.buffer[..self.used]).map_err(failed)?;
                self.used
            }
            Way::Load(from) => {
                self.filled = read_up_to(*from, &mut self.buffer)?;
                if self.filled == 0 {
                    return Err(mismatch("ends too early"));
                }
                self.filled
            }
        };
        self.sum.update(&self.buffer[..seen]);
        self.length += seen as u64;
        self.used = 0;
        Ok(())
    }

    /// Everything has been handed over: writes what is left, or sees to it that nothing is. Answers
    /// the bytes that the state takes, and their CRC-32.
    pub fn finish(mut self) -> Result<(u64, u32)> {
        if self.loads() {
            let end = self.used == self.filled;
            if !end || self.turn_over().is_ok() {
                return Err(mismatch("goes on beyond its end"));
            }
        } else if self.used > 0 {
            self.turn_over()?;
        }
        Ok((self.length, self.sum.finalize()))
    }
}

/// Reads until the buffer is full or there is nothing more; answers the bytes read.
fn read_up_to(from: &mut dyn Read, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(filled)
}

fn failed(error: std::io::Error) -> Error {
    Error::Unfit(error.to_string())
}

fn mismatch(what: &str) -> Error {
    Error::Unfit(format!("{what}: it holds another kind of state than this version keeps"))
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Persist for $type {
            #[inline]
            fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
                let mut bytes = self.to_le_bytes();
                archive.bytes(&mut bytes)?;
                *self = Self::from_le_bytes(bytes);
                Ok(())
            }

            fn persist_slice(slice: &mut [Self], archive: &mut Archive<'_>) -> Result<()> {
                const BYTES: usize = size_of::<$type>();
                let mut bytes = [0; RUN * BYTES];
                for run in slice.chunks_mut(RUN) {
                    let mut equal = run.iter().all(|x| x.to_le_bytes() == run[0].to_le_bytes());
                    equal.persist(archive)?;
                    if equal {
                        let mut value = run[0];
                        value.persist(archive)?;
                        if archive.loads() && run.iter().any(|x| x.to_le_bytes() != value.to_le_bytes()) {
                            run.fill(value);
                        }
                        continue;
                    }
                    let bytes = &mut bytes[..run.len() * BYTES];
                    for (bytes, x) in bytes.chunks_exact_mut(BYTES).zip(&*run) {
                        bytes.copy_from_slice(&x.to_le_bytes());
                    }
                    archive.bytes(bytes)?;
                    if archive.loads() {
                        for (bytes, x) in bytes.chunks_exact(BYTES).zip(run) {
                            *x = Self::from_le_bytes(bytes.try_into().expect("as many as it takes"));
                        }
                    }
                }
                Ok(())
            }
        }
    )*};
}
numbers!(u8, u16, u32, u64, u128, i64, f32, f64);

impl Persist for usize {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let mut wide = *self as u64;
        wide.persist(archive)?;
        *self = usize::try_from(wide).map_err(|_| mismatch("counts too far"))?;
        Ok(())
    }
}

impl Persist for bool {
    #[inline]
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let mut byte = u8::from(*self);
        byte.persist(archive)?;
        if byte > 1 {
            return Err(mismatch("is neither true nor false"));
        }
        *self = byte == 1;
        Ok(())
    }
}

impl Persist for () {
    fn persist(&mut self, _archive: &mut Archive<'_>) -> Result<()> {
        Ok(())
    }
}

impl<T: Persist, const N: usize> Persist for [T; N] {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        self.iter_mut().try_for_each(|item| item.persist(archive))
    }
}

impl<A: Persist, B: Persist> Persist for (A, B) {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        self.0.persist(archive)?;
        self.1.persist(archive)
    }
}

impl<T: Persist + Default> Persist for Option<T> {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let mut some = self.is_some();
        some.persist(archive)?;
        if !some {
            *self = None;
            return Ok(());
        }
        self.get_or_insert_with(T::default).persist(archive)
    }
}

impl<T: Persist + ?Sized> Persist for Box<T> {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        (**self).persist(archive)
    }
}

impl<T: Persist + Default> Persist for Vec<T> {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let mut length = self.len();
        length.persist(archive)?;
        self.resize_with(length, T::default);
        T::persist_slice(self, archive)
    }
}

impl<T: Persist + Default> Persist for VecDeque<T> {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let mut length = self.len();
        length.persist(archive)?;
        self.resize_with(length, T::default);
        T::persist_slice(self.make_contiguous(), archive)
    }
}

impl<T: Persist + Default + Ord> Persist for BinaryHeap<T> {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        // A heap of the same members may lie in memory in several ways.
        let mut items = std::mem::take(self).into_sorted_vec();
        items.persist(archive)?;
        *self = items.into();
        Ok(())
    }
}

impl<T: Persist> Persist for Reverse<T> {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        self.0.persist(archive)
    }
}

impl<T: Persist + Default> Persist for Box<[T]> {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let mut items = std::mem::take(self).into_vec();
        items.persist(archive)?;
        *self = items.into_boxed_slice();
        Ok(())
    }
}

impl Persist for String {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let mut bytes = std::mem::take(self).into_bytes();
        bytes.persist(archive)?;
        *self = String::from_utf8(bytes).map_err(|_| mismatch("is no text"))?;
        Ok(())
    }
}

impl<K: Persist + Default + Ord, V: Persist + Default> Persist for BTreeMap<K, V> {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let mut entries: Vec<(K, V)> = std::mem::take(self).into_iter().collect();
        entries.persist(archive)?;
        self.extend(entries);
        Ok(())
    }
}

impl<T: Persist> Part for Option<T> {
    fn persist_part(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let mut some = self.is_some();
        some.persist(archive)?;
        match self {
            Some(part) if some => part.persist(archive),
            None if !some => Ok(()),
            _ => Err(mismatch("has other parts")),
        }
    }
}

impl<T: Persist> Part for Vec<T> {
    fn persist_part(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        self.as_mut_slice().persist_part(archive)
    }
}

impl<T: Persist> Part for [T] {
    fn persist_part(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let mut length = self.len();
        length.persist(archive)?;
        if length != self.len() {
            return Err(mismatch("is of another size"));
        }
        T::persist_slice(self, archive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Clone, PartialEq, Debug)]
    struct Inner {
        list: VecDeque<u32>,
        maybe: Option<(u64, u32)>,
        text: String,
    }
    persistent!(Inner { state { list, maybe, text } });

    #[derive(Default, Clone, Copy, PartialEq, Debug)]
    enum Choice {
        #[default]
        One,
        Two,
    }
    persistent_enum!(Choice { One, Two });

    #[derive(Default, Clone, PartialEq, Debug)]
    struct Outer {
        numbers: Vec<u64>,
        bytes: Vec<u8>,
        inner: Vec<Inner>,
        real: f64,
        choice: [Choice; 2],
        map: BTreeMap<u64, u64>,
        part: Option<i64>,
        fixed: Vec<u16>,
        built: u32,
    }
    persistent!(Outer {
        state { numbers, bytes, inner, real, choice, map }
        parts { part, fixed }
        built { built }
    });

    fn full() -> Outer {
        let some =
            Inner { list: VecDeque::from([3, 1, 2]), maybe: Some((1, 2)), text: "a word".into() };
        Outer {
            // Runs that are equal, that are not, and a piece of one.
            numbers: (0..3 * RUN as u64 + 5).map(|n| n.saturating_sub(2 * RUN as u64)).collect(),
            bytes: vec![7; 2 * RUN + 1],
            inner: vec![some, Inner::default()],
            real: -0.0,
            choice: [Choice::Two, Choice::One],
            map: BTreeMap::from([(1, 2), (3, 4)]),
            part: Some(-1),
            fixed: vec![1, 2, 3],
            built: 1,
        }
    }

    fn empty() -> Outer {
        Outer { part: Some(0), fixed: vec![9; 3], built: 2, ..Outer::default() }
    }

    fn saved(state: &mut Outer) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut archive = Archive::save(&mut bytes);
        state.persist(&mut archive).unwrap();
        let (length, sum) = archive.finish().unwrap();
        assert_eq!((length as usize, sum), (bytes.len(), crc32fast::hash(&bytes)));
        bytes
    }

    fn loaded(bytes: &[u8], state: &mut Outer) -> Result<()> {
        let mut from = bytes;
        let mut archive = Archive::load(&mut from);
        state.persist(&mut archive)?;
        archive
            .finish()
            .map(|found| assert_eq!(found, (bytes.len() as u64, crc32fast::hash(bytes))))
    }

    #[test]
    fn what_was_saved_is_loaded_into_anything_of_the_same_build() {
        let mut state = full();
        let bytes = saved(&mut state);
        assert_eq!(state, full(), "saving changes nothing");
        for mut other in [empty(), full(), Outer { numbers: vec![1; 20_000], ..full() }] {
            let built = other.built;
            loaded(&bytes, &mut other).unwrap();
            assert_eq!(other, Outer { built, ..full() });
            assert_eq!(saved(&mut other), bytes);
        }
        let mut blank = full();
        loaded(&saved(&mut empty()), &mut blank).unwrap();
        assert_eq!(blank, Outer { built: 1, ..empty() });
    }

    #[test]
    fn equal_numbers_take_next_to_no_room() {
        let mut state = Outer { numbers: vec![u64::MAX; 1 << 20], ..empty() };
        assert!(saved(&mut state).len() < 3000);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let bytes = saved(&mut full());
        for end in [0, 1, 100, bytes.len() / 2, bytes.len() - 1] {
            assert!(loaded(&bytes[..end], &mut empty()).is_err(), "cut at {end}");
        }
        let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
        assert!(loaded(&longer, &mut empty()).is_err());
        assert!(loaded(&bytes, &mut Outer { part: None, ..empty() }).is_err());
        assert!(loaded(&bytes, &mut Outer { fixed: vec![0; 4], ..empty() }).is_err());
    }
}
