//! RAID 1, and RAID 10 in md's three arrangements of copies (md(4), "RAID10").

use super::Place;

/// How the copies of a chunk lie to each other, as md names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Copies {
    /// `n2`: copies of a chunk stand side by side in the order of chunks; the number of members
    /// need not be a multiple of them.
    Near,
    /// `f2`: each member is divided into as many parts as there are copies; the first part is
    /// striped as RAID 0, every further one the same, moved on by a member.
    Far,
    /// `o2`: each stripe is followed by itself, moved on by a member.
    Offset,
}

/// See the module. RAID 1 is one chunk as large as its members, copied to all of them.
#[derive(Clone, Debug)]
pub struct Mirrored {
    /// Members.
    pub members: u32,
    /// Copies of each chunk.
    pub copies: u32,
    /// How they lie.
    pub arrangement: Copies,
    /// Bytes of a chunk.
    pub chunk: u64,
    /// Chunks of each member.
    pub rows: u64,
}

impl Mirrored {
    /// Chunks that the host can address.
    fn chunks(&self) -> u64 {
        let (members, copies) = (u64::from(self.members), u64::from(self.copies));
        match self.arrangement {
            Copies::Near => self.rows * members / copies,
            // Whole rows of every copy.
            Copies::Far | Copies::Offset => self.rows / copies * members,
        }
    }

    /// Bytes that the host can address.
    pub fn capacity(&self) -> u64 {
        self.chunks() * self.chunk
    }

    /// Copies of every byte.
    pub fn copies(&self) -> u32 {
        self.copies
    }

    /// Bytes of a member that are used.
    pub fn used(&self) -> u64 {
        let (members, copies) = (u64::from(self.members), u64::from(self.copies));
        let rows = match self.arrangement {
            Copies::Near => (self.chunks() * copies).div_ceil(members),
            Copies::Far | Copies::Offset => self.rows / copies * copies,
        };
        rows * self.chunk
    }

    /// The chunk of the host that lies in a row of a member, if one does.
    pub fn chunk_at(&self, member: u32, row: u64) -> Option<u64> {
        let (members, copies) = (u64::from(self.members), u64::from(self.copies));
        let member = u64::from(member);
        let back = |copy: u64| (member + copies * members - copy) % members;
        let chunk = match self.arrangement {
            Copies::Near => (row * members + member) / copies,
            Copies::Far => {
                let part = self.rows / copies;
                row % part * members + back(row / part)
            }
            Copies::Offset => row / copies * members + back(row % copies),
        };
        (chunk < self.chunks()).then_some(chunk)
    }

    /// Copy `copy` of the byte at `offset`, and how many bytes follow it in its chunk.
    #[inline]
    pub fn place(&self, offset: u64, copy: u32) -> (Place, u64) {
        let (index, within) = (offset / self.chunk, offset % self.chunk);
        let (members, copies) = (u64::from(self.members), u64::from(self.copies));
        let copy = u64::from(copy);
        let (row, member) = match self.arrangement {
            Copies::Near => {
                let nth = index * copies + copy;
                (nth / members, nth % members)
            }
            Copies::Far => {
                (index / members + copy * (self.rows / copies), (index + copy) % members)
            }
            Copies::Offset => (index / members * copies + copy, (index + copy) % members),
        };
        let place = Place { member: member as u32, offset: row * self.chunk + within };
        (place, self.chunk - within)
    }
}
