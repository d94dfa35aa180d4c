//! RAID 0: chunks dealt to the members in turn. Of unequal members each gives as much as the
//! smallest (md would go on with fewer members where the smallest ends).

use super::Place;

/// See the module.
#[derive(Clone, Debug)]
pub struct Striped {
    /// Members.
    pub members: u32,
    /// Bytes of a chunk.
    pub chunk: u64,
    /// Chunks of each member.
    pub rows: u64,
}

impl Striped {
    /// Bytes that the host can address.
    pub fn capacity(&self) -> u64 {
        u64::from(self.members) * self.rows * self.chunk
    }

    /// The byte at `offset`, and how many follow it in its chunk.
    #[inline]
    pub fn place(&self, offset: u64) -> (Place, u64) {
        let (index, within) = (offset / self.chunk, offset % self.chunk);
        let members = u64::from(self.members);
        let (row, member) = (index / members, (index % members) as u32);
        (Place { member, offset: row * self.chunk + within }, self.chunk - within)
    }
}
