//! The arithmetic of RAID 6 on eight bytes at a time: GF(2^8) with the polynomial 0x11d and the
//! generator 2 (H. P. Anvin, "The mathematics of RAID-6"). Parity of what tests keep as content.

const LOW_BITS: u64 = 0x0101_0101_0101_0101;

/// Every byte times 2.
fn double(x: u64) -> u64 {
    let carry = (x >> 7) & LOW_BITS;
    ((x & !(LOW_BITS << 7)) << 1) ^ (carry * 0x1d)
}

/// Every byte times `c`.
pub fn times(mut x: u64, mut c: u8) -> u64 {
    let mut product = 0;
    while c != 0 {
        if c & 1 == 1 {
            product ^= x;
        }
        x = double(x);
        c >>= 1;
    }
    product
}

fn product(a: u8, b: u8) -> u8 {
    times(u64::from(a), b) as u8
}

/// 2 to the power of `n`.
pub fn power(n: u32) -> u8 {
    (0..n % 255).fold(1, |p, _| product(p, 2))
}

/// The inverse of `a`, which is not 0: a to the power of 254.
pub fn inverse(a: u8) -> u8 {
    (0..254).fold(1, |p, _| product(p, a))
}

/// P and Q of the data of a stripe.
pub fn parities(data: &[u64]) -> [u64; 2] {
    let q = data.iter().zip(0..).fold(0, |q, (&d, role)| q ^ times(d, power(role)));
    [data.iter().fold(0, |p, d| p ^ d), q]
}

/// Computes what is missing in a stripe of data, then P, then (RAID 6) Q; `false` if too much is.
pub fn recover(stripe: &mut [Option<u64>], parities: usize) -> bool {
    let data = stripe.len() - parities;
    let missing: Vec<usize> = (0..data).filter(|&role| stripe[role].is_none()).collect();
    let known: Vec<u64> = stripe[..data].iter().map(|d| d.unwrap_or(0)).collect();
    let [p, q] = self::parities(&known);
    let p_sum = stripe[data].map(|stored| stored ^ p);
    let q_sum = stripe.get(data + 1).copied().flatten().map(|stored| stored ^ q);
    match (&missing[..], p_sum, q_sum) {
        ([], ..) => {}
        (&[x], Some(p), _) => stripe[x] = Some(p),
        (&[x], None, Some(q)) => stripe[x] = Some(times(q, inverse(power(x as u32)))),
        (&[x, y], Some(p), Some(q)) => {
            let (gx, gy) = (power(x as u32), power(y as u32));
            let dx = times(times(p, gy) ^ q, inverse(gx ^ gy));
            (stripe[x], stripe[y]) = (Some(dx), Some(p ^ dx));
        }
        _ => return false,
    }
    let whole: Vec<u64> = stripe[..data].iter().map(|d| d.unwrap_or(0)).collect();
    let all = self::parities(&whole);
    for (slot, parity) in stripe[data..].iter_mut().zip(all) {
        *slot = Some(parity);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_two_chunks_of_a_stripe_are_recovered_and_three_are_not() {
        let data: Vec<u64> = (0..7).map(|i| 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(i + 3)).collect();
        let mut whole: Vec<Option<u64>> = data.iter().copied().map(Some).collect();
        whole.extend(parities(&data).map(Some));
        for a in 0..9 {
            for b in 0..9 {
                let mut damaged = whole.clone();
                (damaged[a], damaged[b]) = (None, None);
                assert!(recover(&mut damaged, 2), "{a} {b}");
                assert_eq!(damaged, whole, "{a} {b}");
                if a < b && b < 8 {
                    damaged[a] = None;
                    damaged[b] = None;
                    damaged[8] = None;
                    assert!(!recover(&mut damaged, 2), "{a} {b} and Q");
                }
            }
        }
    }

    #[test]
    fn the_field_is_that_of_raid_6() {
        assert_eq!(power(8), 0x1d);
        assert_eq!(power(255), 1);
        for a in 1..=255 {
            assert_eq!(product(a, inverse(a)), 1);
        }
    }
}
