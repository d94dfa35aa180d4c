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

/// A bitmap of these numbers, as long as the largest needs.
pub fn bits(numbers: &[u32]) -> Vec<u64> {
    let length = numbers.iter().max().map_or(0, |&most| (most >> 6) as usize + 1);
    let mut words = vec![0; length];
    numbers.iter().for_each(|&number| words[(number >> 6) as usize] |= 1 << (number & 63));
    words
}

/// The numbers whose bits are set, in their order.
#[inline]
pub fn ones(words: &[u64]) -> impl Iterator<Item = u32> {
    let used = (0..).step_by(64).zip(words).filter(|&(_, &word)| word != 0);
    used.flat_map(|(first, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (bit < 64).then_some(first + bit)
        })
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

    #[test]
    fn ones_are_the_numbers_that_words_hold() {
        let mut bitmap = [0; 4];
        for (first, count) in [(3, 1), (62, 4), (192, 64)] {
            words(first, count).for_each(|(word, bits)| bitmap[word] |= bits);
        }
        assert!(ones(&bitmap).eq([3].into_iter().chain(62..66).chain(192..256)));
        assert_eq!(ones(&[]).count(), 0);
        assert_eq!(bits(&ones(&bitmap).collect::<Vec<u32>>()), bitmap);
        assert!(bits(&[]).is_empty());
    }
}
