//! Compression in the drive: a logical unit takes as many *granules* of flash as its data needs.
//!
//! As SandForce's DuraWrite: what shrinks leaves more of the flash as spare, takes less of a program,
//! and is collected for less. Physical space is counted in granules, of which a mapping unit that
//! does not shrink takes [`Layout::granules`](super::Layout::granules). Units lie one behind another
//! in the order of the log, whatever program unit they begin and end in (that of parity is passed over),
//! but whole within a superblock:
//! what is left at its end is padding. The map knows the first granule and their number, as in Cohen,
//! "Variable-size flash translation layer", US patent 9,495,288 (LSI, 2016), whose map holds address,
//! offset and length. What is stored is fixed when the unit is written; collection moves it as it is.
//!
//! Simplified: compressing takes no time and no room for headers; the write buffer holds what has been
//! compressed already; all of a mapping unit is compressed and read together; translation units of a
//! cached map do not shrink. Cost: constant for each program unit that a unit lies in.

/// Granules that a unit takes after a write of `sectors` of its `of` sectors, at least one.
///
/// What is written shrinks by `percent`; of the rest each sector keeps its share of the `old`
/// granules, 0 for a unit that held nothing: zeros take no room.
///
/// ```
/// use ssdlab::ftl::compressed;
/// assert_eq!(compressed(8, 8, 8, 46, 0), 5);     // 4.32 granules of 8
/// assert_eq!(compressed(8, 8, 8, 100, 0), 1);    // where it lies must be known
/// assert_eq!(compressed(8, 2, 8, 100, 8), 6);    // a quarter of it is zeros now
/// ```
pub fn compressed(granules: u32, sectors: u32, of: u32, percent: u8, old: u32) -> u32 {
    let percent = u32::from(percent.min(100));
    let kept = old * (of - sectors) * 100;
    let written = granules * sectors * (100 - percent);
    (kept + written).div_ceil(100 * of).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_units_take_what_is_left_rounded_up_to_granules() {
        for percent in 0..=100u8 {
            let bytes = 4096.0 * f64::from(100 - percent) / 100.0;
            for granules in [1, 2, 8, 64] {
                let expected = (bytes / (4096.0 / f64::from(granules))).ceil().max(1.0) as u32;
                assert_eq!(compressed(granules, 8, 8, percent, 3), expected, "{percent} %");
            }
        }
    }

    #[test]
    fn a_part_counts_by_its_share_and_the_rest_stays() {
        for percent in [0, 25, 50, 75, 87] {
            let whole = compressed(8, 8, 8, percent, 0);
            for sectors in 1..=8 {
                // The same data again, part by part, takes no more.
                assert_eq!(compressed(8, sectors, 8, percent, whole), whole, "{percent} %");
                // On a unit of zeros it takes its own room only.
                let own = (sectors * 8 * (100 - u32::from(percent))).div_ceil(800).max(1);
                assert_eq!(compressed(8, sectors, 8, percent, 0), own);
            }
        }
        assert_eq!(compressed(8, 4, 8, 0, 1), 5);
    }
}
