//! Hit ratios against closed forms, and sampled curves against whole ones.

use crate::common::{amount, draws, models, points};

use draws::{draws, zipf_law};
use ssdlab::cache::curve::{Curve, Sampling, lru_curve, replay_curve, sizes_up_to};
use ssdlab::cache::{Parameters, REPLACEMENTS, Request, Tally, hit_ratio};
use ssdlab::rng::Stream;

/// Hits per access after a warm-up that is not counted.
fn steady_hits(policy: &str, capacity: u32, requests: &[Request], warm: usize) -> f64 {
    let entry = REPLACEMENTS.find(policy).unwrap();
    let stream = Stream::new(1, "cache");
    let build = entry.build.online(policy, capacity, &Parameters::default(), stream);
    let mut cache = build.unwrap();
    let mut tally = Tally::new(capacity);
    cache.replay(&requests[..warm], &mut tally);
    let cold = tally.counts.misses();
    cache.replay(&requests[warm..], &mut tally);
    1.0 - (tally.counts.misses() - cold) as f64 / (requests.len() - warm) as f64
}

/// King 1971, exactly: the hit ratio of LRU, over all ordered contents of the cache.
fn king(law: &[f64], capacity: usize) -> f64 {
    fn walk(law: &[f64], left: usize, used: u32, sum: f64, probability: f64) -> f64 {
        if left == 0 {
            return probability * sum;
        }
        let unused = (0..law.len()).filter(|i| used >> i & 1 == 0);
        unused
            .map(|i| {
                let next = probability * law[i] / (1.0 - sum);
                walk(law, left - 1, used | 1 << i, sum + law[i], next)
            })
            .sum()
    }
    walk(law, capacity, 0, 0.0, 1.0)
}

#[test]
fn lru_of_twelve_blocks_hits_as_kings_formula_says() {
    let law = zipf_law(12, 1.0);
    let exact = king(&law, 4);
    assert!((exact - 0.529_459).abs() < 1e-6, "{exact}");
    let requests = draws(&law, 4_000_000, 0.0, 1);
    let measured = steady_hits("lru", 4, &requests, 100);
    // Hits are nearly independent: sigma 0.00025 of 4 million draws; four of them.
    assert!((measured - exact).abs() < 0.001, "{measured}");
}

#[test]
fn zipf_hit_ratios_are_those_of_the_fixed_points() {
    // Exponent, frames, LRU after Che, FIFO, what the hottest blocks alone would give.
    for (a, capacity, lru, fifo, best) in points([
        (0.8, 1_000, 0.2043, 0.1792, 0.3395),
        (0.8, 10_000, 0.4687, 0.4284, 0.5950),
        (1.0, 10_000, 0.7373, 0.7010, 0.8096),
        (1.0, 1_000, 0.5062, 0.4648, 0.6191),
        (1.2, 1_000, 0.7953, 0.7627, 0.8516),
    ]) {
        let law = zipf_law(100_000, a);
        let size = f64::from(capacity);
        assert!(
            (models::che(&law, size).0 - lru).abs() < 1e-4,
            "Che: {}",
            models::che(&law, size).0
        );
        assert!(
            (models::fifo_theory(&law, size) - fifo).abs() < 1e-4,
            "{}",
            models::fifo_theory(&law, size)
        );
        let static_best: f64 = law[..capacity as usize].iter().sum();
        assert!((static_best - best).abs() < 1e-4, "{static_best}");
        // All caches are full after some 30 000.
        let warm = amount(200_000, 1_000_000);
        let requests = draws(&law, warm + 2_000_000, 0.3, 2);
        let hits = |policy| steady_hits(policy, capacity, &requests, warm);
        // Sigma is below 0.0004 for 2 million draws; the approximations are good to 0.0002.
        for (policy, expected) in [("lru", lru), ("fifo", fifo), ("random", fifo)] {
            let measured = hits(policy);
            assert!((measured - expected).abs() < 0.0018, "{policy} a={a} {capacity}: {measured}");
        }
        // Without a future nothing beats the hottest blocks on independent draws. Held to what those give on the same
        // draws, and FIFO: what the draws scatter is common to both.
        let few = &requests[..warm + amount(500_000, 2_000_000)];
        let hits = |policy| steady_hits(policy, capacity, few, warm);
        let hottest = few[warm..].iter().filter(|request| request.key < u64::from(capacity));
        let (best, fifo) = (hottest.count() as f64 / (few.len() - warm) as f64, hits("fifo"));
        for policy in ["clock", "sieve", "s3-fifo", "arc", "lirs", "2q", "lfu"] {
            let measured = hits(policy);
            assert!(measured < best, "{policy} a={a} {capacity}: {measured}");
            assert!(measured > fifo, "{policy} a={a} {capacity}: {measured}");
        }
    }
}

#[test]
fn an_lru_cache_fills_in_the_characteristic_time() {
    let law = zipf_law(100_000, 1.0);
    let (_, time) = models::che(&law, 10_000.0);
    assert!((time - 29_039.0).abs() < 1.0, "{time}");
    let fills = (0..40).map(|seed| {
        let requests = draws(&law, 40_000, 0.0, seed);
        let mut seen = std::collections::BTreeSet::new();
        let full = requests.iter().position(|r| seen.insert(r.key) && seen.len() == 10_000);
        let full = full.unwrap() as u32 + 1;
        // With as many frames as distinct blocks, each miss so far was a first use.
        let counts = hit_ratio(
            "lru",
            &Parameters::default(),
            10_000,
            requests[..full as usize].iter().copied(),
            1,
        );
        assert_eq!(counts.unwrap().misses(), 10_000);
        f64::from(full)
    });
    let mean = fills.sum::<f64>() / 40.0;
    assert!((mean / time - 1.0).abs() < 0.015, "{mean} against {time}");
}

fn differences(a: &Curve, b: &Curve) -> Vec<f64> {
    a.miss_ratios().iter().zip(b.miss_ratios()).map(|(x, y)| (x - y).abs()).collect()
}

#[test]
fn sampled_curves_are_near_the_whole_one_and_know_how_near() {
    let requests = draws(&zipf_law(100_000, 0.9), 2_000_000, 0.3, 3);
    let sizes: Vec<u64> = sizes_up_to(100_000, 100).into_iter().filter(|&s| s >= 500).collect();
    let whole = lru_curve(requests.iter().copied(), &sizes, Sampling::Whole, 1).unwrap();
    assert_eq!(whole.error, vec![0.0; sizes.len()]);
    for sampling in
        [Sampling::Rate { rate: 0.05, samples: 8 }, Sampling::Blocks { blocks: 4000, samples: 8 }]
    {
        let sampled = lru_curve(requests.iter().copied(), &sizes, sampling, 7).unwrap();
        let off = differences(&whole, &sampled);
        let mean = off.iter().sum::<f64>() / off.len() as f64;
        let worst = off.iter().copied().fold(0.0, f64::max);
        println!(
            "{sampling:?}: mean {mean:.5}, worst {worst:.5}, of {} accesses",
            sampled.followed
        );
        assert!(mean < 0.005 && worst < 0.02, "{sampling:?}: mean {mean}, worst {worst}");
        // Student's t with 7 degrees of freedom: 99 % lie within 3.5 errors.
        let within = off.iter().zip(&sampled.error).filter(|(off, error)| **off <= 3.5 * **error);
        let share = within.count() as f64 / off.len() as f64;
        println!("   within 3.5 standard errors: {share:.2}");
        assert!(share > 0.8, "{sampling:?}: {share} within 3.5 standard errors");
        assert!((sampled.footprint / whole.footprint - 1.0).abs() < 0.02);
        assert!(sampled.followed < 1_100_000);
        let total = whole.write_backs[20];
        assert!(
            (sampled.write_backs[20] / total - 1.0).abs() < 0.03,
            "{}",
            sampled.write_backs[20]
        );
    }
}

#[test]
fn miniature_caches_stand_for_large_ones() {
    let requests = draws(&zipf_law(200_000, 0.9), amount(1_000_000, 2_000_000), 0.3, 4);
    let sizes = [2000, 5000, 20_000, 60_000];
    let none = Parameters::default();
    for policy in ["sieve", "arc", "s3-fifo", "fifo", "optimal"] {
        let curve = |sampling| {
            replay_curve(policy, &none, requests.iter().copied(), &sizes, sampling, 5).unwrap()
        };
        let (whole, small) =
            (curve(Sampling::Whole), curve(Sampling::Rate { rate: 0.05, samples: 8 }));
        let off = differences(&whole, &small);
        println!("{policy}: {off:.4?}, errors {:.4?}", small.error);
        assert!(off.iter().all(|&off| off < 0.012), "{policy}: {off:?}");
    }
}

#[test]
fn write_backs_fall_with_the_size_of_the_cache_and_never_exceed_writes() {
    let requests = draws(&zipf_law(20_000, 0.7), 400_000, 0.5, 5);
    let sizes = sizes_up_to(20_000, 40);
    let curve = lru_curve(requests.iter().copied(), &sizes, Sampling::Whole, 1).unwrap();
    assert!(curve.write_backs.is_sorted_by(|a, b| a >= b));
    assert!(curve.write_backs[0] <= curve.writes as f64);
    // A cache of everything evicts nothing.
    assert_eq!(curve.write_backs.last(), Some(&0.0));
}
