//! Things by index, with the free indices: what is in flight, without an allocation for each.

use crate::error::Result;
use crate::persist::{Archive, Persist};

/// See the module. A removed thing stays readable until its place is given to another one.
#[derive(Clone, Debug, Default)]
pub struct Slab<T> {
    /// All places.
    pub all: Vec<T>,
    /// Those that hold nothing.
    pub free: Vec<u32>,
}

impl<T> Slab<T> {
    /// An empty one.
    pub fn new() -> Self {
        Slab { all: Vec::new(), free: Vec::new() }
    }

    /// Puts a thing in a free place; answers the place.
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.all[index as usize] = value;
                index
            }
            None => {
                self.all.push(value);
                (self.all.len() - 1) as u32
            }
        }
    }

    /// Whether no place holds anything.
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.all.len()
    }
}

impl<T: Persist + Default> Persist for Slab<T> {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let Slab { all, free } = self;
        all.persist(archive)?;
        free.persist(archive)
    }
}
