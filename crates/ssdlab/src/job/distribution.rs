//! Which block a random I/O goes to: the distributions of `random_distribution`.
//!
//! Zipf after Gray et al., "Quickly generating billion-record synthetic databases", SIGMOD 1994,
//! as fio does; its hot ranks are scattered over the file by a permutation.

use super::pattern::Distribution;
use crate::rng::Stream;

/// Terms of the zeta sum added one by one; the rest comes from the Euler-Maclaurin formula.
const ZETA_TERMS: u64 = 10_000;

/// Ranks of a file, of which the hottest need not begin where the file does (fio's `FIO_FSERVICE_SHIFT`).
const FILE_RANKS: u64 = 1 << 10;

/// Draws block numbers.
#[derive(Clone, Debug)]
pub enum Sampler {
    /// Every block alike.
    Uniform { blocks: u64 },
    /// See [`Zipf`].
    Zipf(Zipf, Scatter),
    /// Rank `(blocks-1) * u^power`.
    Pareto { power: f64, scatter: Scatter },
    /// Mean of twelve uniforms over the ranks, plus a uniform within `width`.
    Normal { width: f64, scatter: Scatter },
    /// Zones by cumulated share of access: first block and number of blocks.
    Zoned(Vec<(f64, u64, u64)>),
}

impl Sampler {
    /// The sampler of `direction` over `blocks` blocks of `align` bytes.
    pub fn new(
        distribution: &Distribution,
        direction: usize,
        blocks: u64,
        align: u64,
        rng: &mut Stream,
    ) -> Self {
        match distribution {
            Distribution::Uniform => Sampler::Uniform { blocks },
            Distribution::Zipf { theta, center } => {
                Sampler::Zipf(Zipf::new(blocks, *theta), Scatter::new(blocks, *center, rng))
            }
            Distribution::Pareto { h, center } => Sampler::Pareto {
                power: libm::log(*h) / libm::log(1.0 - h),
                scatter: Scatter::new(blocks, *center, rng),
            },
            // Scattered as they are, it does not matter where the middle is.
            Distribution::Normal { deviation, .. } => Sampler::Normal {
                width: (deviation / 100.0).min(0.5) * blocks as f64,
                scatter: Scatter::new(blocks, None, rng),
            },
            Distribution::Zoned(zones) => {
                let mut end = 0.0;
                zoned(
                    blocks,
                    zones[direction].iter().map(|(access, size)| {
                        end += size / 100.0 * blocks as f64;
                        (*access, end as u64)
                    }),
                )
            }
            Distribution::ZonedAbs(zones) => {
                let mut end = 0u64;
                zoned(
                    blocks,
                    zones[direction].iter().map(|(access, size)| {
                        end = end.saturating_add(*size);
                        (*access, end / align)
                    }),
                )
            }
        }
    }

    /// The sampler of `files` files, as fio's `file_service_type`: ranks side by side, so that hot ones share a file.
    pub fn of_files(distribution: &Distribution, files: u64, rng: &mut Stream) -> Self {
        let ranks = files * FILE_RANKS;
        let mut sampler = Sampler::new(distribution, 0, ranks, 1, rng);
        match &mut sampler {
            Sampler::Zipf(_, scatter)
            | Sampler::Pareto { scatter, .. }
            | Sampler::Normal { scatter, .. } => scatter.step = 1,
            Sampler::Uniform { .. } | Sampler::Zoned(_) => {}
        }
        if let (Sampler::Normal { scatter, .. }, Distribution::Normal { center, .. }) =
            (&mut sampler, distribution)
        {
            // fio's offset has 32 bits: below the middle it is so much less than 2^32.
            let offset = center.map_or(0.0, |center| (center - 0.5) * ranks as f64) as i64 as u32;
            scatter.first = u64::from(offset) % ranks;
        }
        sampler
    }

    /// The next file of [`Sampler::of_files`].
    pub fn draw_file(&self, rng: &mut Stream) -> usize {
        (self.draw(rng) / FILE_RANKS) as usize
    }

    /// The next block.
    #[inline(always)]
    pub fn draw(&self, rng: &mut Stream) -> u64 {
        match self {
            Sampler::Uniform { blocks } => rng.below(*blocks),
            shaped => shaped.draw_shaped(rng),
        }
    }

    /// The same where blocks are not alike.
    fn draw_shaped(&self, rng: &mut Stream) -> u64 {
        match self {
            Sampler::Uniform { .. } => unreachable!("blocks that are alike are drawn at once"),
            Sampler::Zipf(zipf, scatter) => scatter.place(zipf.rank(rng.unit())),
            Sampler::Pareto { power, scatter } => {
                scatter.place(((scatter.blocks - 1) as f64 * power_of(rng.unit(), *power)) as u64)
            }
            Sampler::Normal { width, scatter } => {
                let blocks = scatter.blocks as f64;
                let mean = (0..12).map(|_| rng.unit()).sum::<f64>() / 12.0 * blocks;
                let rank = mean + (rng.unit() - 0.5) * width;
                scatter.place((rank.max(0.0) as u64).min(scatter.blocks - 1))
            }
            Sampler::Zoned(zones) => {
                let share = rng.unit() * 100.0;
                let zone = zones.iter().find(|z| share < z.0).or(zones.last());
                let (_, first, count) = zone.expect("a zone at least");
                first + rng.below(*count)
            }
        }
    }
}

/// Zones from their shares of access and their ends in blocks; empty ones are left out.
fn zoned(blocks: u64, zones: impl Iterator<Item = (f64, u64)>) -> Sampler {
    let (mut sum, mut start, mut found) = (0.0, 0, Vec::new());
    for (access, end) in zones {
        let end = end.min(blocks);
        if end > start && access > 0.0 {
            sum += access;
            found.push((sum, start, end - start));
        }
        start = end;
    }
    if found.is_empty() {
        return Sampler::Uniform { blocks };
    }
    Sampler::Zoned(found)
}

/// Ranks in proportion to `rank^-theta`.
#[derive(Clone, Debug)]
pub struct Zipf {
    blocks: f64,
    zeta: f64,
    /// Share of u, times zeta, that goes to the first two ranks.
    two: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    fn new(blocks: u64, theta: f64) -> Self {
        let n = blocks as f64;
        let zeta = zeta(blocks, theta);
        let two = 1.0 + libm::pow(0.5, theta);
        let eta = (1.0 - libm::pow(2.0 / n, 1.0 - theta)) / (1.0 - two / zeta);
        Zipf { blocks: n, zeta, two, alpha: 1.0 / (1.0 - theta), eta }
    }

    #[inline]
    fn rank(&self, u: f64) -> u64 {
        let uz = u * self.zeta;
        if uz < 1.0 || self.blocks < 2.0 {
            0
        } else if uz < self.two || self.blocks < 3.0 {
            1
        } else {
            let rank = self.blocks * power_of(self.eta * u - self.eta + 1.0, self.alpha);
            rank.clamp(0.0, self.blocks - 1.0) as u64
        }
    }
}

/// `x^a` for a draw, which does not need the last digits: in half the time of `libm::pow`.
#[inline]
fn power_of(x: f64, a: f64) -> f64 {
    libm::exp(a * libm::log(x))
}

/// The sum of `k^-theta` for k from 1 to n.
fn zeta(n: u64, theta: f64) -> f64 {
    let term = |k: u64| libm::pow(k as f64, -theta);
    let head: f64 = (1..=n.min(ZETA_TERMS)).map(term).sum();
    if n <= ZETA_TERMS {
        return head;
    }
    let (a, b) = (ZETA_TERMS as f64, n as f64);
    let integral = (libm::pow(b, 1.0 - theta) - libm::pow(a, 1.0 - theta)) / (1.0 - theta);
    let slope = |k: f64| -theta * libm::pow(k, -theta - 1.0);
    head + integral + (term(n) - term(ZETA_TERMS)) / 2.0 + (slope(b) - slope(a)) / 12.0
}

/// A permutation of the ranks over the file that keeps neighbours in rank far apart.
#[derive(Clone, Debug)]
pub struct Scatter {
    blocks: u64,
    step: u64,
    first: u64,
}

impl Scatter {
    /// The hottest block lies at `center` (a share of the file) or anywhere.
    fn new(blocks: u64, center: Option<f64>, rng: &mut Stream) -> Self {
        // The golden section spreads multiples most evenly; a step prime to the number of blocks
        // makes a permutation of it.
        let mut step = ((blocks as f64 * 0.618_033_988_749_895) as u64).max(1);
        while gcd(step, blocks) != 1 {
            step += 1;
        }
        let first = match center {
            Some(share) => (share * blocks as f64) as u64 % blocks,
            None => rng.below(blocks),
        };
        Scatter { blocks, step, first }
    }

    #[inline]
    fn place(&self, rank: u64) -> u64 {
        if self.blocks < 1 << 31 {
            return (rank * self.step + self.first) % self.blocks;
        }
        let at = u128::from(rank) * u128::from(self.step) + u128::from(self.first);
        (at % u128::from(self.blocks)) as u64
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(distribution: &Distribution, blocks: u64, draws: u32) -> Vec<u32> {
        let mut rng = Stream::new(3, "distribution");
        let sampler = Sampler::new(distribution, 0, blocks, 4096, &mut rng);
        let mut counts = vec![0; blocks as usize];
        for _ in 0..draws {
            counts[sampler.draw(&mut rng) as usize] += 1;
        }
        counts
    }

    /// Percent of the blocks that get 80 % of the I/Os, and percent of I/Os of the hottest block.
    fn fingerprint(distribution: &Distribution) -> (f64, f64) {
        let mut counts = counts(distribution, 262_144, 100_000);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let (mut sum, mut blocks) = (0, 0);
        while sum < 80_000 {
            sum += counts[blocks];
            blocks += 1;
        }
        (blocks as f64 / 2621.44, f64::from(counts[0]) / 1000.0)
    }

    /// fio 3.33, 1 GiB in 4 KiB blocks, 100 000 reads without a map.
    #[test]
    fn the_shares_of_hot_blocks_are_fio_s() {
        let zipf = |theta| Distribution::Zipf { theta, center: None };
        let (blocks, top) = fingerprint(&zipf(1.2));
        assert!((blocks - 0.157).abs() < 0.01 && (top - 19.3).abs() < 0.5, "{blocks} {top}");
        let (blocks, _) = fingerprint(&zipf(0.8));
        assert!((blocks - 12.5).abs() < 0.3, "{blocks}");
        let (blocks, _) = fingerprint(&Distribution::Pareto { h: 0.2, center: None });
        assert!((blocks - 7.84).abs() < 0.3, "{blocks}");
        let (blocks, _) = fingerprint(&Distribution::Normal { deviation: 20.0, center: None });
        assert!((blocks - 16.6).abs() < 0.3, "{blocks}");
        let (blocks, _) = fingerprint(&Distribution::Normal { deviation: 2.0, center: None });
        assert!((blocks - 14.6).abs() < 0.3, "{blocks}");
        let (blocks, _) = fingerprint(&Distribution::Uniform);
        assert!((blocks - 24.1).abs() < 0.3, "{blocks}");
        let zones = vec![(60.0, 10.0), (30.0, 20.0), (8.0, 30.0), (2.0, 40.0)];
        let (blocks, _) = fingerprint(&Distribution::Zoned([zones.clone(), zones.clone(), zones]));
        assert!((blocks - 13.8).abs() < 0.3, "{blocks}");
    }

    #[test]
    fn zones_get_their_share_and_nothing_falls_outside() {
        let zones = vec![(60.0, 10.0), (40.0, 50.0)];
        let distribution = Distribution::Zoned([zones.clone(), zones.clone(), zones]);
        let counts = counts(&distribution, 1000, 100_000);
        let first: u32 = counts[..100].iter().sum();
        // 60 000 expected, sigma 155.
        assert!(first.abs_diff(60_000) < 900, "{first}");
        assert_eq!(counts[600..].iter().sum::<u32>(), 0);
        let zones = vec![(100.0, 64 << 10)];
        let absolute = Distribution::ZonedAbs([zones.clone(), zones.clone(), zones]);
        assert_eq!(self::counts(&absolute, 1000, 1000)[16..].iter().sum::<u32>(), 0);
    }

    #[test]
    fn the_hottest_block_lies_where_the_center_says() {
        let zipf = Distribution::Zipf { theta: 1.2, center: Some(0.3) };
        let counts = counts(&zipf, 25_600, 20_000);
        let top = (0..counts.len()).max_by_key(|i| counts[*i]);
        assert_eq!(top, Some(7680));
    }

    /// fio 3.33, 40 000 reads of five files on its null engine.
    #[test]
    fn the_shares_of_files_are_fio_s() {
        let zipf = |theta, center| Distribution::Zipf { theta, center: Some(center) };
        let pareto = |h, center| Distribution::Pareto { h, center: Some(center) };
        let normal = |deviation, center| Distribution::Normal { deviation, center };
        let measured = [
            (zipf(1.2, 0.0), [0.9307, 0.0331, 0.0163, 0.012, 0.0078]),
            (zipf(1.2, 1.0), [0.9307, 0.0331, 0.0163, 0.012, 0.0078]),
            (zipf(0.8, 0.5), [0.0698, 0.0552, 0.5948, 0.181, 0.0991]),
            (pareto(0.2, 0.0), [0.804, 0.0777, 0.05, 0.0377, 0.0305]),
            (pareto(0.9, 0.5), [0.0004, 0.099, 0.9005, 0.0, 0.0]),
            (normal(0.0, None), [0.0001, 0.1155, 0.764, 0.1203, 0.0001]),
            (normal(20.0, None), [0.0006, 0.1637, 0.6675, 0.1669, 0.0012]),
            (normal(60.0, Some(0.5)), [0.0278, 0.2744, 0.3967, 0.2721, 0.029]),
            (normal(20.0, Some(0.25)), [0.6125, 0.0718, 0.0002, 0.0049, 0.3106]),
            (normal(20.0, Some(0.0)), [0.024, 0.0, 0.0225, 0.4776, 0.4759]),
        ];
        for (distribution, shares) in measured {
            let mut rng = Stream::new(3, "files");
            let sampler = Sampler::of_files(&distribution, 5, &mut rng);
            let mut counts = [0; 5];
            for _ in 0..40_000 {
                counts[sampler.draw_file(&mut rng)] += 1;
            }
            let far = counts.iter().zip(shares).map(|(n, share)| f64::from(*n) / 4e4 - share);
            assert!(far.clone().all(|far| far.abs() < 0.01), "{distribution:?}: {counts:?}");
        }
    }

    #[test]
    fn scattering_is_a_permutation() {
        for blocks in [1u64, 2, 3, 10, 1000, 4096, 25_600] {
            let scatter = Scatter::new(blocks, None, &mut Stream::new(5, "scatter"));
            let mut seen = vec![false; blocks as usize];
            for rank in 0..blocks {
                assert!(!std::mem::replace(&mut seen[scatter.place(rank) as usize], true));
            }
        }
    }

    #[test]
    fn the_zeta_sum_is_exact_enough() {
        for theta in [0.5, 0.99, 1.2, 2.0] {
            let plain: f64 = (1..=1_000_000u64).map(|k| (k as f64).powf(-theta)).sum();
            let ours = zeta(1_000_000, theta);
            assert!((ours / plain - 1.0).abs() < 1e-9, "{theta}: {ours} {plain}");
        }
    }
}
