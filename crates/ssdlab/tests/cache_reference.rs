//! Hit ratios of a real trace, against those of libCacheSim 0.3.5. Needs the folder that `SSDLAB_TRACES` names.

use crate::common::{points, traces};

use ssdlab::cache::curve::{Sampling, lru_curve};
use ssdlab::cache::{Parameters, Request, hit_ratio};
use traces::{as_blocks, as_objects, cloud_physics};

const OBJECT_SIZES: [u32; 5] = [489, 2448, 4897, 9794, 20000];
const BLOCK_SIZES: [u32; 5] = [2692, 13460, 26921, 53842, 131_072];

/// Policy, misses of objects at [`OBJECT_SIZES`], misses of 4 KiB blocks at [`BLOCK_SIZES`].
const MISSES: &[(&str, [u64; 5], [u64; 5])] = &[
    ("lru", [95420, 93897, 91657, 82547, 72053], [1_024_107, 1_012_954, 998_105, 928_241, 607_167]),
    (
        "fifo",
        [96518, 94122, 91716, 81172, 72229],
        [1_025_066, 1_013_204, 996_687, 925_947, 523_697],
    ),
    (
        "clock",
        [95332, 93829, 91599, 85213, 72151],
        [1_024_218, 1_012_654, 996_740, 915_895, 580_077],
    ),
    ("sieve", [94419, 93052, 90040, 81557, 64431], [1_031_283, 988_102, 951_107, 851_459, 518_334]),
    ("lfu", [96765, 93052, 90040, 81557, 64431], [1_069_430, 1_007_420, 931_060, 851_459, 467_332]),
    (
        "s3-fifo",
        [94569, 92574, 86006, 75875, 59311],
        [1_020_660, 989_127, 935_406, 833_360, 543_513],
    ),
    ("arc", [94229, 92392, 88002, 80004, 64422], [1_025_309, 976_867, 941_434, 892_166, 624_937]),
    ("2q", [94573, 92813, 88160, 79192, 72103], [1_020_892, 999_865, 964_114, 826_507, 506_190]),
    ("lirs", [94680, 92673, 85609, 74687, 58681], [1_037_211, 974_487, 930_076, 882_545, 587_575]),
    (
        "gdsf",
        [94681, 93403, 91388, 85048, 70479],
        [1_023_515, 1_011_609, 997_611, 930_298, 549_796],
    ),
    ("optimal", [90263, 80078, 71620, 62049, 51843], [987_277, 879_597, 771_969, 624_166, 389_823]),
];

fn misses(policy: &str, sizes: [u32; 5], requests: &[Request]) -> Vec<u64> {
    let play = |size| {
        hit_ratio(policy, &Parameters::default(), size, requests.iter().copied(), 1).unwrap()
    };
    points(sizes).map(|size| play(size).misses()).collect()
}

#[test]
fn misses_are_those_of_libcachesim_to_the_last_one() {
    let Some(records) = cloud_physics() else { return };
    let (as_objects, as_blocks) = (as_objects(&records), as_blocks(&records));
    for &(policy, objects, blocks) in MISSES {
        for (sizes, all, requests) in
            [(OBJECT_SIZES, objects, &as_objects), (BLOCK_SIZES, blocks, &as_blocks)]
        {
            let expected: Vec<u64> = points(all).collect();
            assert_eq!(misses(policy, sizes, requests), expected, "{policy}");
        }
    }
}

#[test]
fn one_pass_over_the_trace_gives_the_misses_of_lru_at_all_sizes() {
    let Some(records) = cloud_physics() else { return };
    let curve = |sizes: [u32; 5], requests: &[Request]| {
        let sizes = sizes.map(u64::from);
        let curve = lru_curve(requests.iter().copied(), &sizes, Sampling::Whole, 1).unwrap();
        let misses = curve.read_misses.iter().zip(&curve.write_misses).map(|(r, w)| (r + w) as u64);
        (misses.collect::<Vec<_>>(), curve.footprint)
    };
    let (_, objects, blocks) = MISSES[0];
    assert_eq!(curve(OBJECT_SIZES, &as_objects(&records)), (objects.to_vec(), 48_974.0));
    assert_eq!(curve(BLOCK_SIZES, &as_blocks(&records)), (blocks.to_vec(), 269_210.0));
}
