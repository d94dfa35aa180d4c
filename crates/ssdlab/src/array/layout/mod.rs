//! Where an array keeps its data: host offset to member and offset, one file per layout.

mod linear;
mod mirrored;
mod parity;
mod striped;

pub use linear::Linear;
pub use mirrored::{Copies, Mirrored};
pub use parity::{Parity, Rotation};
pub use striped::Striped;

/// Bytes on a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Position of the member in the array, from 0.
    pub member: u32,
    /// Offset on it, bytes.
    pub offset: u64,
}

/// A layout of any kind.
#[derive(Clone, Debug)]
pub enum Layout {
    /// One member after another.
    Linear(Linear),
    /// RAID 0.
    Striped(Striped),
    /// RAID 1 and 10.
    Mirrored(Mirrored),
    /// RAID 5 and 6.
    Parity(Parity),
}

impl Layout {
    /// Bytes that the host can address.
    pub fn capacity(&self) -> u64 {
        match self {
            Layout::Linear(l) => l.capacity(),
            Layout::Striped(l) => l.capacity(),
            Layout::Mirrored(l) => l.capacity(),
            Layout::Parity(l) => l.capacity(),
        }
    }

    /// Copies of every byte.
    pub fn copies(&self) -> u32 {
        match self {
            Layout::Mirrored(l) => l.copies(),
            _ => 1,
        }
    }

    /// Where copy `copy` of the byte at `offset` lies, and how many bytes from there on lie in one
    /// run on that member (at least up to the end of the chunk).
    #[inline]
    pub fn place(&self, offset: u64, copy: u32) -> (Place, u64) {
        match self {
            Layout::Linear(l) => l.place(offset),
            Layout::Striped(l) => l.place(offset),
            Layout::Mirrored(l) => l.place(offset, copy),
            Layout::Parity(l) => l.place(offset),
        }
    }

    /// Bytes of a member that the array uses.
    pub fn used(&self, member: u32) -> u64 {
        match self {
            Layout::Linear(l) => l.used(member),
            Layout::Striped(l) => l.rows * l.chunk,
            Layout::Mirrored(l) => l.used(),
            Layout::Parity(l) => l.rows * l.chunk,
        }
    }

    /// The layout of RAID 5 and 6, if it is that.
    pub fn parity(&self) -> Option<&Parity> {
        match self {
            Layout::Parity(parity) => Some(parity),
            _ => None,
        }
    }
}
