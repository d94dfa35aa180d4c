//! Numbering of physical units: which region, superblock, die and page a unit is in.

use crate::nand::{FastDiv, Geometry};

/// What collection works inside: the dies whose blocks form one superblock.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Each die collects by itself; a superblock is a block of every plane.
    Die,
    /// The dies of a channel form one superblock.
    Channel,
    /// All dies form one superblock.
    Drive,
}

/// Arithmetic of physical unit numbers (ppn).
///
/// `ppn = superblock * units_per_superblock + offset`; within a superblock consecutive program
/// units lie on consecutive dies of the region, so a write frontier is striped over them.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Regions of the drive.
    pub regions: u32,
    /// Superblocks of a region, those set aside included.
    pub superblocks: u32,
    /// Of those, the last so many are not for data but for the static SLC cache.
    pub set_aside: u32,
    /// Dies of a region.
    pub dies_per_region: u32,
    /// Physical units of a mapping unit that does not shrink.
    granules: u32,
    channels: u32,
    scope: Scope,
    /// Pages of a program unit, in each plane.
    pages_per_program: u32,
    by_superblock: FastDiv,
    by_program: FastDiv,
    by_dies: FastDiv,
    by_region: FastDiv,
    /// Program units of a stripe, the last of which is parity; 0: there is none.
    stripe: u32,
    by_stripe: FastDiv,
    data_units: u32,
}

impl Layout {
    /// Layout with `superblocks` in each region.
    pub fn new(geometry: &Geometry, scope: Scope, superblocks: u32) -> Self {
        let dies = geometry.dies();
        let regions = match scope {
            Scope::Die => dies,
            Scope::Channel => geometry.channels,
            Scope::Drive => 1,
        };
        let dies_per_region = dies / regions;
        let units = geometry.units_per_erase() * dies_per_region;
        Layout {
            regions,
            superblocks,
            set_aside: 0,
            dies_per_region,
            granules: 1,
            channels: geometry.channels,
            scope,
            pages_per_program: geometry.pages_per_program,
            by_superblock: FastDiv::new(units),
            by_program: FastDiv::new(geometry.units_per_program()),
            by_dies: FastDiv::new(dies_per_region),
            by_region: FastDiv::new(superblocks),
            stripe: 0,
            by_stripe: FastDiv::new(1),
            data_units: units,
        }
    }
    /// The same with physical units of which a mapping unit takes up to `granules`.
    pub fn packed(self, granules: u32) -> Self {
        debug_assert!(granules <= self.units_per_program());
        Layout { granules, ..self }
    }
    /// One region of it, with so many superblocks.
    pub fn one_region(self, superblocks: u32) -> Self {
        Layout { regions: 1, superblocks, by_region: FastDiv::new(superblocks), ..self }
    }
    /// The same with superblocks of so many program units, as blocks with fewer pages would make.
    pub fn shortened(self, programs: u32) -> Self {
        let data_units = programs * self.units_per_program();
        let by_superblock = FastDiv::new(data_units);
        Layout { by_superblock, data_units, ..self }.with_parity(self.stripe)
    }
    /// Physical units that a mapping unit takes at most: 1 unless the drive compresses.
    #[inline]
    pub fn granules(&self) -> u32 {
        self.granules
    }
    /// The same with so many more superblocks in each region, which are set aside.
    pub fn with_set_aside(self, set_aside: u32) -> Self {
        let superblocks = self.superblocks + set_aside;
        Layout { superblocks, set_aside, by_region: FastDiv::new(superblocks), ..self }
    }
    /// The superblocks of a region that are set aside.
    pub fn set_aside_of(&self, region: u32) -> std::ops::Range<u32> {
        let end = (region + 1) * self.superblocks;
        end - self.set_aside..end
    }
    /// Whether a superblock is set aside.
    #[inline]
    pub fn is_set_aside(&self, superblock: u32) -> bool {
        self.by_region.split(superblock).1 >= self.superblocks - self.set_aside
    }
    /// The same where the last of every `stripe` program units of a superblock is parity of those
    /// before it; 0: no parity. A stripe that the end of the superblock cuts short has its parity
    /// too.
    pub fn with_parity(mut self, stripe: u32) -> Self {
        if stripe == 0 {
            return self;
        }
        let programs = self.programs_per_superblock();
        assert!((2..=programs).contains(&stripe), "stripes of {stripe} in {programs}");
        (self.stripe, self.by_stripe) = (stripe, FastDiv::new(stripe));
        self.data_units = (programs - programs.div_ceil(stripe)) * self.units_per_program();
        self
    }
    /// Program units of a stripe with its parity; 0: there is none.
    pub fn stripe(&self) -> u32 {
        self.stripe
    }
    /// Whether some program units are parity.
    #[inline]
    pub fn has_parity(&self) -> bool {
        self.stripe != 0
    }
    /// Whether mapping units are program units, none of which is parity.
    pub fn is_bare(&self) -> bool {
        self.units_per_program() == 1 && !self.has_parity()
    }
    /// Whether the program unit at `offset` of a superblock is parity.
    #[inline]
    pub fn is_parity(&self, offset: u32) -> bool {
        let program = self.by_program.quotient(offset);
        self.stripe != 0
            && (self.by_stripe.split(program).1 + 1 == self.stripe
                || program + 1 == self.programs_per_superblock())
    }
    /// Number of a data unit where parity is not counted: data that is written one after the other
    /// has consecutive numbers.
    #[inline]
    pub fn data_number(&self, ppn: u32) -> u32 {
        if self.stripe == 0 {
            return ppn;
        }
        let (superblock, offset) = self.by_superblock.split(ppn);
        let parity = self.by_stripe.quotient(self.by_program.quotient(offset));
        superblock * self.data_units + offset - parity * self.units_per_program()
    }
    /// Program units of a superblock.
    #[inline]
    pub fn programs_per_superblock(&self) -> u32 {
        self.by_program.quotient(self.units_per_superblock())
    }
    /// Physical units of a superblock that can hold data: all but those of parity.
    #[inline]
    pub fn data_units_per_superblock(&self) -> u32 {
        self.data_units
    }
    /// Physical units of a superblock.
    #[inline]
    pub fn units_per_superblock(&self) -> u32 {
        self.by_superblock.divisor()
    }
    /// Physical units of a program unit.
    #[inline]
    pub fn units_per_program(&self) -> u32 {
        self.by_program.divisor()
    }
    /// Physical units altogether.
    pub fn units(&self) -> u64 {
        u64::from(self.regions)
            * u64::from(self.superblocks)
            * u64::from(self.units_per_superblock())
    }
    /// Superblock of a unit.
    #[inline]
    pub fn superblock_of(&self, ppn: u32) -> u32 {
        self.by_superblock.quotient(ppn)
    }
    /// Region of a superblock.
    #[inline]
    pub fn region_of(&self, superblock: u32) -> u32 {
        self.by_region.quotient(superblock)
    }
    /// Program unit of a unit, unique over the drive.
    #[inline]
    pub fn program_of(&self, ppn: u32) -> u32 {
        self.by_program.quotient(ppn)
    }
    /// The parts of `units` placed from `ppn` on in the program units that they lie in, parity left
    /// out: first unit and number of each.
    #[inline]
    pub fn program_units(self, ppn: u32, units: u32) -> impl Iterator<Item = (u32, u32)> {
        let (mut at, mut left) = (ppn, units);
        std::iter::from_fn(move || {
            let (_, within) = self.by_program.split(at);
            if within == 0 && self.is_parity(self.by_superblock.split(at).1) {
                at += self.units_per_program();
            }
            let part = (at, left.min(self.units_per_program() - within));
            (at, left) = (at + part.1, left - part.1);
            (part.1 > 0).then_some(part)
        })
    }
    /// Physical units for data of a superblock from `offset`, where data goes on, to its end.
    #[inline]
    pub fn room(&self, superblock: u32, offset: u32) -> u32 {
        (superblock + 1) * self.data_units - self.data_number(self.first_unit(superblock) + offset)
    }
    /// First unit of a superblock.
    #[inline]
    pub fn first_unit(&self, superblock: u32) -> u32 {
        superblock * self.units_per_superblock()
    }
    /// Units of a superblock.
    #[inline]
    pub fn units_of(&self, superblock: u32) -> std::ops::Range<u32> {
        let first = self.first_unit(superblock);
        first..first + self.units_per_superblock()
    }
    /// Superblock of a unit, and its page in the blocks that are its part on a die.
    pub fn page_of(&self, ppn: u32) -> (u32, u32) {
        let (superblock, offset) = self.by_superblock.split(ppn);
        let (program, within) = self.by_program.split(offset);
        let pages = self.pages_per_program;
        let row = if pages == 1 { 0 } else { within / (self.units_per_program() / pages) };
        (superblock, self.by_dies.quotient(program) * pages + row)
    }
    /// Program units that collection moves in a row: two of each channel, of as many dies as a region has at most.
    pub fn programs_at_once(&self) -> u32 {
        let channels = if self.scope == Scope::Drive { self.channels } else { 1 };
        (2 * channels).min(self.dies_per_region)
    }
    /// The `k`-th die of a region.
    #[inline]
    pub fn die_in_region(&self, region: u32, k: u32) -> u32 {
        match self.scope {
            Scope::Die => region,
            Scope::Channel => region + k * self.channels,
            Scope::Drive => k,
        }
    }
    /// Die of a unit.
    #[inline]
    pub fn die_of(&self, ppn: u32) -> u32 {
        let (superblock, offset) = self.by_superblock.split(ppn);
        self.die_at(self.region_of(superblock), offset)
    }
    /// Die of the unit at `offset` of any superblock of a region.
    #[inline(always)]
    pub fn die_at(&self, region: u32, offset: u32) -> u32 {
        if self.dies_per_region == 1 {
            return region;
        }
        let (_, k) = self.by_dies.split(self.by_program.quotient(offset));
        self.die_in_region(region, k)
    }
}
