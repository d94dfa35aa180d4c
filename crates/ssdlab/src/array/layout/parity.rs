//! RAID 5 and 6: stripes of one chunk per member, parity moving from stripe to stripe in md's four
//! ways (md(4), mdadm(8) `--layout`). Left: parity begins on the last member and moves down; right:
//! on the first and moves up. Symmetric: data go on behind the parity; asymmetric: they begin on the
//! first member.

use super::Place;

/// How parity moves, as md names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// Parity moves down from the last member, otherwise up from the first.
    pub left: bool,
    /// Data begin behind the parity, otherwise on the first member.
    pub symmetric: bool,
}

impl Rotation {
    /// Every layout by its name; the first is md's default.
    pub const NAMES: [(&'static str, Rotation); 4] = [
        ("left-symmetric", Rotation { left: true, symmetric: true }),
        ("left-asymmetric", Rotation { left: true, symmetric: false }),
        ("right-symmetric", Rotation { left: false, symmetric: true }),
        ("right-asymmetric", Rotation { left: false, symmetric: false }),
    ];
}

/// See the module. A chunk of a stripe has a role: data 0, 1, ..., then P, then Q.
#[derive(Clone, Debug)]
pub struct Parity {
    /// Members.
    pub members: u32,
    /// Chunks of parity in a stripe: 1 (RAID 5) or 2 (RAID 6).
    pub parities: u32,
    /// How parity moves.
    pub rotation: Rotation,
    /// Bytes of a chunk.
    pub chunk: u64,
    /// Stripes.
    pub rows: u64,
}

impl Parity {
    /// Chunks of data in a stripe.
    #[inline]
    pub fn data(&self) -> u32 {
        self.members - self.parities
    }

    /// Bytes of data in a stripe.
    #[inline]
    pub fn width(&self) -> u64 {
        u64::from(self.data()) * self.chunk
    }

    /// Bytes that the host can address.
    pub fn capacity(&self) -> u64 {
        self.rows * self.width()
    }

    /// The member that has `role` in stripe `row`.
    #[inline]
    pub fn member(&self, row: u64, role: u32) -> u32 {
        let n = self.members;
        let turn = (row % u64::from(n)) as u32;
        let p = if self.rotation.left { n - 1 - turn } else { turn };
        let behind = |steps: u32| (p + steps) % n;
        if role >= self.data() {
            return behind(role - self.data());
        }
        if self.rotation.symmetric {
            return behind(self.parities + role);
        }
        // Data in the order of members, past the parity; Q of a P on the last member is on the first.
        let wrapped = (p + self.parities).saturating_sub(n);
        let role = role + wrapped;
        if role >= p { role + self.parities - wrapped } else { role }
    }

    /// The byte at `offset`, and how many follow it in its chunk.
    #[inline]
    pub fn place(&self, offset: u64) -> (Place, u64) {
        let (index, within) = (offset / self.chunk, offset % self.chunk);
        let data = u64::from(self.data());
        let (row, role) = (index / data, (index % data) as u32);
        let member = self.member(row, role);
        (Place { member, offset: row * self.chunk + within }, self.chunk - within)
    }
}
