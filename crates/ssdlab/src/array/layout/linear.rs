//! Linear (JBOD): one member after another, each of its own size.

use super::Place;

/// See the module.
#[derive(Clone, Debug)]
pub struct Linear {
    /// Where each member begins, and where the last one ends.
    starts: Vec<u64>,
}

impl Linear {
    /// Members of so many usable bytes each.
    pub fn new(sizes: &[u64]) -> Self {
        let mut starts = vec![0];
        let mut end = 0;
        starts.extend(sizes.iter().map(|size| {
            end += size;
            end
        }));
        Linear { starts }
    }

    /// Bytes that the host can address.
    pub fn capacity(&self) -> u64 {
        *self.starts.last().unwrap_or(&0)
    }

    /// Bytes of a member that are used.
    pub fn used(&self, member: u32) -> u64 {
        self.starts[member as usize + 1] - self.starts[member as usize]
    }

    /// The byte at `offset`, and how many follow it on that member.
    pub fn place(&self, offset: u64) -> (Place, u64) {
        let member = self.starts.partition_point(|&start| start <= offset) - 1;
        let place = Place { member: member as u32, offset: offset - self.starts[member] };
        (place, self.starts[member + 1] - offset)
    }
}
