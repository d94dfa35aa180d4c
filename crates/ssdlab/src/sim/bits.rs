//! Bitmaps in words of 64 bits.

/// The words that hold the bits of `count` numbers from `first` on: the index of each, and which of its bits.
#[inline]
pub fn words(first: u32, count: u32) -> impl Iterator<Item = (usize, u64)> {
    let (mut at, mut left) = (first, count);
    std::iter::from_fn(move || {
        let here = left.min(64 - (at & 63));
        if here == 0 {
            return None;
        }
        let bits = u64::MAX >> (64 - here) << (at & 63);
        let word = (at >> 6) as usize;
        (at, left) = (at.wrapping_add(here), left - here);
        Some((word, bits))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_each_number_once() {
        for (first, count) in [(0, 0), (5, 1), (63, 1), (60, 8), (64, 64), (1, 200), (u32::MAX, 1)]
        {
            let numbers = words(first, count).flat_map(|(word, bits)| {
                (0..64u64)
                    .filter(move |bit| bits >> bit & 1 != 0)
                    .map(move |bit| word as u64 * 64 + bit)
            });
            let want = u64::from(first)..u64::from(first) + u64::from(count);
            assert!(numbers.eq(want), "{count} from {first}");
        }
    }
}
