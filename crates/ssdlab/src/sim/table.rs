//! Tables in large pages of memory.
//!
//! The map of a drive of a terabyte takes a gigabyte, and each request looks somewhere else in it. With pages of 4 KiB
//! the processor then seldom knows where a page lies, and finding out takes longer than all the rest that it has to
//! do for the request. Linux gives larger pages to those who ask for them.

use crate::error::Result;
use crate::persist::{Archive, Part, Persist};
use bytemuck::Pod;
use memmap2::MmapMut;
use prefetch_index::prefetch_index;
use std::alloc::{Layout, handle_alloc_error};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// Numbers that tables hold.
pub trait Number: Pod {
    /// That number of those in `memory`: without asking for more than whether there is one.
    fn at(memory: &[u8], index: usize) -> Self;
    /// Puts one in its place.
    fn put(self, memory: &mut [u8], index: usize);
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn at(memory: &[u8], index: usize) -> Self {
                Self::from_ne_bytes(memory.as_chunks().0[index])
            }
            #[inline(always)]
            fn put(self, memory: &mut [u8], index: usize) {
                memory.as_chunks_mut().0[index] = self.to_ne_bytes();
            }
        }
    )*};
}
numbers!(u32 u64);

/// A slice of numbers that takes no memory where it holds zeros that were never overwritten. One number is had for the
/// least by [`Table::at`] and [`Table::put`].
pub struct Table<T> {
    memory: MmapMut,
    numbers: PhantomData<T>,
}

impl<T: Number> Table<T> {
    /// So many zeros; one at least.
    pub fn new(length: usize) -> Self {
        let layout = Layout::array::<T>(length.max(1)).expect("what fits into memory");
        let memory =
            MmapMut::map_anon(layout.size()).unwrap_or_else(|_| handle_alloc_error(layout));
        // Where there are none it goes on with small ones.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        Table { memory, numbers: PhantomData }
    }

    /// The number of that index.
    #[inline(always)]
    pub fn at(&self, index: usize) -> T {
        T::at(&self.memory, index)
    }

    /// Puts a number there.
    #[inline(always)]
    pub fn put(&mut self, index: usize, number: T) {
        number.put(&mut self.memory, index);
    }

    /// The number will be needed soon.
    #[inline(always)]
    pub fn expect(&self, index: usize) {
        prefetch_index(&*self.memory, index * size_of::<T>());
    }
}

impl<T: Number> Deref for Table<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.memory)
    }
}

impl<T: Number> DerefMut for Table<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.memory)
    }
}

impl<T: Number> Clone for Table<T> {
    fn clone(&self) -> Self {
        let mut copy = Table::new(self.len());
        copy.copy_from_slice(self);
        copy
    }
}

impl<T: Persist + Number> Part for Table<T> {
    fn persist_part(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        (**self).persist_part(archive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_slice_and_begin_as_zeros() {
        let mut table = Table::<u64>::new(1000);
        assert!(table.len() == 1000 && table.iter().all(|&number| number == 0));
        (0..1000).for_each(|index| table.put(index, index as u64 * 3));
        assert!((0..1000).all(|index| table.at(index) == index as u64 * 3));
        table[7] = u64::MAX;
        assert_eq!((table.at(7), table.clone().at(7), table[8]), (u64::MAX, u64::MAX, 24));
        assert_eq!(Table::<u32>::new(0).len(), 1);
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn there_is_nothing_behind_its_end() {
        Table::<u32>::new(10).at(10);
    }
}
