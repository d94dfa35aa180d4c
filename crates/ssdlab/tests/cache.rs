//! What every replacement policy promises, and each against a plain model of itself.

use crate::common::{amount, cache_models as models, cases};

use models::{fewest_misses, model};
use proptest::collection::vec;
use proptest::prelude::*;
use ssdlab::cache::curve::{Sampling, lru_curve, replay_curve};
use ssdlab::cache::objects::{ObjectCounts, ObjectRequest, Objects, objects};
use ssdlab::cache::policy::BuildReplacement;
use ssdlab::cache::policy::of_any_size;
use ssdlab::cache::{
    ADMISSIONS, Choice, Counts, Frames, Parameters, REPLACEMENTS, Request, Tally, hit_ratio,
};
use ssdlab::persist::Archive;
use ssdlab::rng::Stream;
use std::collections::BTreeMap;

/// Policies that know the past only.
fn online() -> impl Iterator<Item = &'static str> {
    let online = |e: &&ssdlab::registry::Entry<BuildReplacement>| {
        matches!(e.build, BuildReplacement::Online(_))
    };
    REPLACEMENTS.entries.iter().filter(online).map(|entry| entry.name)
}

fn cache(policy: &str, capacity: u32) -> Box<dyn Frames> {
    let entry = REPLACEMENTS.find(policy).unwrap();
    let stream = Stream::new(1, "cache");
    entry.build.online(policy, capacity, &Parameters::default(), stream).unwrap()
}

/// A use with write-allocate; whether it hit.
fn access(cache: &mut dyn Frames, key: u64) -> bool {
    if let Some(slot) = cache.find(key) {
        cache.hit(slot, &mut |_| true);
        return true;
    }
    cache.admit(key, &mut |_| true).expect("any frame may be taken");
    false
}

/// Keys in phases: a small hot set, a loop, a scan, so that lists, ghosts and hands all have work.
fn trace() -> impl Strategy<Value = Vec<u64>> {
    let phase = prop_oneof![
        (1u64..60, 1usize..200).prop_flat_map(|(n, length)| vec(0..n, length)),
        (1u64..60, 1u64..5).prop_map(|(n, times)| (0..n * times).map(|k| k % n).collect()),
        (100u64..1000, 1u64..80).prop_map(|(from, n)| (from..from + n).collect()),
    ];
    vec(phase, 1..8).prop_map(|phases: Vec<Vec<u64>>| phases.concat())
}

fn requests(keys: &[u64], writes: u64) -> Vec<Request> {
    let write = |key: u64, at: usize| (key.wrapping_mul(31) ^ at as u64) % 7 < writes;
    keys.iter().enumerate().map(|(at, &key)| Request::one(key, write(key, at))).collect()
}

proptest! {
    #![proptest_config(cases(300, 3000))]

    #[test]
    fn every_policy_does_what_its_plain_model_does(keys in trace(), capacity in 1usize..45) {
        for policy in online() {
            let Some(mut plain) = model(policy, capacity) else { continue };
            let mut cache = cache(policy, capacity as u32);
            for (at, &key) in keys.iter().enumerate() {
                let hit = access(cache.as_mut(), key);
                prop_assert_eq!(hit, plain.access(key), "{} at {}, key {}", policy, at, key);
            }
        }
    }

    #[test]
    fn optimal_has_the_fewest_misses_and_nothing_beats_it(keys in trace(), capacity in 1u32..45) {
        let requests = requests(&keys, 3);
        let misses = |policy| {
            hit_ratio(policy, &Parameters::default(), capacity, requests.iter().copied(), 1).unwrap().misses()
        };
        prop_assert_eq!(misses("optimal"), fewest_misses(&keys, capacity as usize, false));
        for policy in online() {
            // What GDSF has just let in may be the first to go, which the optimum does not consider.
            prop_assert!(policy == "gdsf" || misses(policy) >= misses("optimal"), "{}", policy);
        }
        for policy in ["gdsf", "lru+ghost"] {
            prop_assert!(misses(policy) >= fewest_misses(&keys, capacity as usize, true), "{}", policy);
        }
    }

    #[test]
    fn objects_of_one_size_are_blocks_and_only_the_unit_of_sizes_changes_with_it(
        keys in trace(),
        capacity in 1u64..45,
    ) {
        for policy in of_any_size() {
            let play = |bytes: u32| {
                let request = |&key| ObjectRequest { key, bytes: bytes * (1 + key as u32 % 3), ..WHOLE };
                played(policy, capacity * u64::from(bytes), keys.iter().map(request).collect())
            };
            // A power of two: worth in fractions is rounded alike.
            let (once, scaled) = (play(1), play(1024));
            prop_assert_eq!(once.misses, scaled.misses, "{}", policy);
            prop_assert_eq!(1024 * once.miss_bytes, scaled.miss_bytes, "{}", policy);
            let one = |&key| ObjectRequest { key, bytes: 1, ..WHOLE };
            let ones = played(policy, capacity, keys.iter().map(one).collect());
            let blocks = keys.iter().map(|&key| Request::one(key, false));
            let found = hit_ratio(policy, &Parameters::default(), capacity as u32, blocks, 1).unwrap();
            prop_assert_eq!(ones.misses, found.misses(), "{}", policy);
        }
    }

    #[test]
    fn every_admission_counts_all_decides_alike_and_lets_in_what_is_asked_for_often(
        keys in trace(),
        capacity in 1u32..45,
    ) {
        let often: Vec<u64> = keys.iter().flat_map(|&key| [key; 40]).collect();
        for rule in ADMISSIONS.names().filter(|&name| name != "size") {
            let play = |keys: &[u64], policy: &str| {
                let blocks = keys.iter().map(|&key| Request::one(key, key % 3 == 0));
                let name = format!("{policy}+{rule}");
                hit_ratio(&name, &Parameters::default(), capacity, blocks, 1).unwrap()
            };
            for policy in online() {
                let found = play(&keys, policy);
                prop_assert_eq!(found.accesses(), keys.len() as u64);
                prop_assert_eq!(found, play(&keys, policy), "{}+{}", policy, rule);
            }
            let found = play(&often, "lru");
            let hits = found.accesses() - found.misses();
            prop_assert!(rule == "hotspot" || hits > often.len() as u64 / 2, "{} {}", rule, hits);
        }
    }

    #[test]
    fn one_pass_gives_what_a_replay_of_lru_at_every_size_gives(keys in trace(), writes in 0u64..7) {
        let requests = requests(&keys, writes);
        let sizes: Vec<u64> = (1..150).collect();
        let lru = lru_curve(requests.iter().copied(), &sizes, Sampling::Whole, 1).unwrap();
        let whole = Parameters::default();
        let replayed =
            replay_curve("lru", &whole, requests.iter().copied(), &sizes, Sampling::Whole, 1).unwrap();
        prop_assert_eq!(&lru.read_misses, &replayed.read_misses);
        prop_assert_eq!(&lru.write_misses, &replayed.write_misses);
        prop_assert_eq!(&lru.write_backs, &replayed.write_backs);
        // Inclusion: a larger LRU cache holds what a smaller one does.
        prop_assert!(lru.miss_ratios().is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn frames_that_may_not_be_taken_stay_and_keys_are_where_the_cache_says(
        acts in vec((0u8..10, 0u64..60, any::<u64>()), 1..400),
        capacity in 1u32..24,
    ) {
        for policy in online() {
            check_acts(policy, &acts, capacity)?;
        }
    }

    #[test]
    fn who_is_told_what_is_pinned_chooses_as_who_asks_each_time(
        acts in vec((0u8..12, 0u64..60, 0u32..48), 1..600),
        capacity in 1u32..24,
    ) {
        for policy in online() {
            check_pins(policy, &acts, capacity)?;
        }
    }

    #[test]
    fn a_loaded_cache_goes_on_as_the_saved_one(keys in trace(), capacity in 1u32..45, cut in 0.0..1.0) {
        let (before, after) = keys.split_at((keys.len() as f64 * cut) as usize);
        for policy in online() {
            let mut first = cache(policy, capacity);
            before.iter().for_each(|&key| { access(first.as_mut(), key); });
            // A hole, as TRIM leaves it.
            if let Some(slot) = (0..capacity).find(|&slot| first.key(slot).is_some()) {
                first.remove(slot);
            }
            let bytes = saved(first.as_mut());
            let mut second = cache(policy, capacity);
            keys.iter().rev().for_each(|&key| { access(second.as_mut(), key); });
            let mut from = &bytes[..];
            let mut archive = Archive::load(&mut from);
            second.persist(&mut archive).unwrap();
            archive.finish().unwrap();
            prop_assert_eq!(&saved(second.as_mut()), &bytes, "{}", policy);
            for &key in after {
                prop_assert_eq!(first.find(key), second.find(key), "{}", policy);
                access(first.as_mut(), key);
                access(second.as_mut(), key);
            }
            prop_assert_eq!(saved(first.as_mut()), saved(second.as_mut()), "{}", policy);
        }
    }
}

#[test]
fn lirs_with_two_places_in_its_queue_does_what_its_plain_model_does() {
    for capacity in [200, 250, 399] {
        let (mut cache, mut plain) =
            (cache("lirs", capacity), model("lirs", capacity as usize).unwrap());
        let mut stream = Stream::new(u64::from(capacity), "keys");
        let mut hits = 0;
        for at in 0..30_000_u64 {
            let key = at / 5_000 * 150 + (stream.unit().powi(3) * 1500.0) as u64;
            let hit = access(cache.as_mut(), key);
            assert_eq!(hit, plain.access(key), "{capacity} at {at}, key {key}");
            hits += u64::from(hit);
        }
        assert!(hits > 10_000, "{hits}");
    }
}

#[test]
fn lirs_of_libcachesim_is_lirs_where_that_has_two_places_and_writes_back_what_was_dirty() {
    let mut stream = Stream::new(3, "keys");
    let keys: Vec<u64> = (0..20_000).map(|_| (stream.unit().powi(3) * 900.0) as u64).collect();
    let play = |policy, capacity| {
        hit_ratio(policy, &Parameters::default(), capacity, requests(&keys, 3), 1).unwrap()
    };
    for capacity in [200, 201, 350, 900] {
        assert_eq!(play("lirs", capacity), play("lirs-libcachesim", capacity));
    }
    // What is written and never asked for again comes back once, save what is there at the end.
    let round = (0..3000).map(|key| Request::one(key, true));
    let found = hit_ratio("lirs-libcachesim", &Parameters::default(), 50, round, 1).unwrap();
    assert_eq!((found.write_misses, found.write_backs), (3000, 2950));
    // More than two blocks of three: it holds more than it may, and misses less than is possible.
    let few = |policy| play(policy, 2).misses();
    assert!(few("lirs") >= few("optimal") && few("lirs-libcachesim") < few("lirs"));
}

const WHOLE: ObjectRequest =
    ObjectRequest { key: 0, bytes: 1, write: false, time_ns: 0, ttl_ns: 0 };

/// What a cache of objects does.
fn played(policy: &str, capacity: u64, requests: Vec<ObjectRequest>) -> ObjectCounts {
    let first: BTreeMap<u64, u32> = requests.iter().rev().map(|one| (one.key, one.bytes)).collect();
    let of = Objects {
        count: first.len() as u64,
        bytes: first.values().map(|&bytes| u64::from(bytes)).sum(),
        least: requests.iter().map(|one| one.bytes).min().unwrap_or(1),
    };
    objects(&Choice::parse(policy).unwrap(), capacity, &of, requests.into_iter(), 1).unwrap()
}

fn saved(cache: &mut dyn Frames) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut archive = Archive::save(&mut bytes);
    cache.persist(&mut archive).unwrap();
    archive.finish().unwrap();
    bytes
}

/// Uses, frames freed ahead of time, removals, and admissions with some frames pinned, against a plain map.
fn check_acts(policy: &str, acts: &[(u8, u64, u64)], capacity: u32) -> Result<(), TestCaseError> {
    let mut cache = cache(policy, capacity);
    let mut plain: BTreeMap<u32, u64> = BTreeMap::new();
    for &(act, key, pins) in acts {
        let pinned = |slot: u32| pins >> slot & 1 == 1;
        let all_pinned = |plain: &BTreeMap<u32, u64>| plain.keys().all(|&slot| pinned(slot));
        let found = cache.find(key);
        prop_assert_eq!(found, plain.iter().find(|(_, k)| **k == key).map(|(s, _)| *s));
        match (act, found) {
            (0, Some(slot)) => {
                cache.remove(slot);
                plain.remove(&slot);
            }
            (1, _) => match cache.evict(&mut |slot| !pinned(slot)) {
                Some((slot, left)) => {
                    prop_assert!(!pinned(slot), "{} took a pinned frame", policy);
                    prop_assert_eq!(plain.remove(&slot), Some(left));
                }
                None => prop_assert!(all_pinned(&plain), "{} found nothing", policy),
            },
            (_, Some(slot)) => {
                if let Some(freed) = cache.hit(slot, &mut |slot| !pinned(slot)) {
                    prop_assert!(
                        freed != slot && !pinned(freed),
                        "{} freed a pinned frame",
                        policy
                    );
                    prop_assert!(plain.remove(&freed).is_some());
                }
            }
            (_, None) => {
                let full = plain.len() == capacity as usize;
                match cache.admit(key, &mut |slot| !pinned(slot)) {
                    Some(admitted) => {
                        prop_assert_eq!(admitted.evicted.is_some(), full);
                        prop_assert!(
                            !full || !pinned(admitted.slot),
                            "{} took a pinned one",
                            policy
                        );
                        prop_assert_eq!(plain.insert(admitted.slot, key), admitted.evicted);
                    }
                    None => prop_assert!(full && all_pinned(&plain), "{} found nothing", policy),
                }
            }
        }
        prop_assert_eq!(cache.len() as usize, plain.len());
        for slot in 0..capacity {
            prop_assert_eq!(cache.key(slot), plain.get(&slot).copied());
        }
    }
    Ok(())
}

/// Two caches alike in which the same frames may not be taken; one is told so as it begins and ends, but for one that
/// is refused for the moment.
fn check_pins(policy: &str, acts: &[(u8, u64, u32)], capacity: u32) -> Result<(), TestCaseError> {
    let (mut told, mut untold) = (cache(policy, capacity), cache(policy, capacity));
    let mut pinned = vec![false; capacity as usize];
    for &(act, key, refused) in acts {
        let found = told.find(key);
        prop_assert_eq!(found, untold.find(key), "{}", policy);
        let mut held = pinned.clone();
        held.iter_mut().skip(refused as usize).take(1).for_each(|slot| *slot = true);
        let may = &mut |slot: u32| !held[slot as usize];
        match (act, found) {
            (0..4, Some(slot)) => {
                pinned[slot as usize] = act > 0;
                told.pin(slot, act > 0);
            }
            (4, Some(slot)) if !pinned[slot as usize] => {
                told.remove(slot);
                untold.remove(slot);
            }
            (5, _) => prop_assert_eq!(told.evict(may), untold.evict(may), "{}", policy),
            (_, Some(slot)) => {
                prop_assert_eq!(told.hit(slot, may), untold.hit(slot, may), "{}", policy);
            }
            (_, None) => {
                let admitted = |cache: &mut dyn Frames| {
                    cache.admit(key, &mut |slot| !held[slot as usize]).map(|a| (a.slot, a.evicted))
                };
                let (one, other) = (admitted(told.as_mut()), admitted(untold.as_mut()));
                prop_assert_eq!(one, other, "{}", policy);
            }
        }
    }
    Ok(())
}

#[test]
fn pinned_frames_are_passed_over_once_and_not_at_every_eviction() {
    // Who draws frames meets pinned ones again and again, but no more often the more there are.
    for policy in online().filter(|policy| !["random", "lhd"].contains(policy)) {
        let mut cache = cache(policy, 1000);
        for key in 0..1000 {
            cache.admit(key, &mut |_| true).expect("a free frame");
        }
        let pinned: Vec<u32> = (0..900).map(|key| cache.find(key).expect("it came in")).collect();
        for &slot in &pinned {
            // Some were used before it.
            (0..slot % 4).for_each(|_| assert!(cache.hit(slot, &mut |_| true).is_none()));
            cache.pin(slot, true);
        }
        let mut asked = 0;
        for key in 2000..4000 {
            let may = &mut |slot: u32| {
                asked += 1;
                !pinned.contains(&slot)
            };
            assert!(cache.admit(key, may).is_some(), "{policy}");
        }
        assert!(asked < 3 * 2000, "{policy} looked at {asked} frames for 2,000 places");
    }
}

#[test]
fn a_block_takes_64_bytes_at_most_with_index_and_ghosts() {
    let capacity = amount(25_000, 100_000);
    let mut random = Stream::new(1, "bytes");
    // Scans and a hot set, until all ghosts are in use.
    let requests: Vec<Request> = (0..10 * u64::from(capacity))
        .map(|n| {
            let hot = random.below(2) == 0;
            Request::one(
                if hot { random.below(u64::from(capacity) * 3 / 2) } else { 1_000_000 + n },
                n % 3 == 0,
            )
        })
        .collect();
    for policy in online() {
        let mut cache = cache(policy, capacity);
        let mut tally = Tally::new(capacity);
        cache.replay(&requests, &mut tally);
        let bytes = cache.bytes() as f64 / f64::from(capacity);
        println!("{policy:8} {bytes:5.1} bytes per frame");
        assert!(bytes <= 64.0, "{policy}: {bytes} bytes per frame");
        assert!(bytes >= 18.0, "{policy}: a key and its place take more than {bytes} bytes");
    }
}

#[test]
fn reads_writes_and_write_backs_are_told_apart() {
    let one = |key, write| Request::one(key, write);
    // Two frames, LRU: 1 is written and leaves dirty for 3; 2 is clean when it leaves for 4.
    let requests =
        [one(1, true), one(2, false), one(2, false), one(3, true), one(3, true), one(4, false)];
    let counts = hit_ratio("lru", &Parameters::default(), 2, requests, 1).unwrap();
    let expected =
        Counts { read_hits: 1, read_misses: 2, write_hits: 1, write_misses: 2, write_backs: 1 };
    assert_eq!(counts, expected);
    // A request of blocks is a use of each.
    let long = [Request { key: 8, blocks: 4, write: false }, one(9, false)];
    let counts = hit_ratio("fifo", &Parameters::default(), 8, long, 1).unwrap();
    assert_eq!((counts.read_misses, counts.read_hits), (4, 1));
}

#[test]
fn objects_expire_change_when_they_are_written_and_pass_where_they_are_too_large() {
    let at = |time_ns, key, bytes, write| ObjectRequest { key, bytes, write, time_ns, ttl_ns: 10 };
    let requests = vec![
        at(0, 1, 6, false),  // comes
        at(10, 1, 6, false), // still valid
        at(11, 1, 6, false), // expired: comes anew
        at(12, 2, 4, false), // comes beside it
        at(20, 1, 9, false), // a hit, of the size that it came with
        at(20, 2, 4, false), // so 2 is there
        at(21, 1, 7, true),  // a hit; 7 bytes from now on, for which 2 leaves
        at(22, 2, 4, false), // comes, for which 1 leaves
        at(23, 3, 11, true), // is larger than the cache
    ];
    let found = played("lru", 10, requests);
    let expected = ObjectCounts {
        requests: 9,
        writes: 2,
        bytes: 57,
        misses: 5,
        write_misses: 1,
        miss_bytes: 31,
        expired: 1,
        passed: 1,
    };
    assert_eq!(found, expected);
    let whole: Vec<_> = (0..9).map(|key| ObjectRequest { key, bytes: 5, ..WHOLE }).collect();
    assert_eq!(played("lru+size:5B", 1000, whole.repeat(2)).misses, 18);
    assert_eq!(played("lru+size:6", 1000, whole.repeat(2)).misses, 9);
}

#[test]
fn what_is_let_in_is_what_the_rule_says() {
    let play = |name: &str, keys: &[u64]| {
        let blocks = keys.iter().map(|&key| Request::one(key, false));
        hit_ratio(name, &Parameters::default(), 10, blocks, 1).map(|found| found.misses())
    };
    // Ten blocks fill the cache; after that the third miss of a block lets it in.
    let filled: Vec<u64> = (0..10).chain([99, 99, 99, 99, 99]).collect();
    assert_eq!(play("lru+nhit", &filled).unwrap(), 10 + 3);
    assert_eq!(play("lru+ghost", &filled).unwrap(), 10 + 2);
    // As many are remembered as the cache holds: the first is forgotten when an eleventh misses.
    let round: Vec<u64> = (0..11).collect::<Vec<_>>().repeat(9);
    assert_eq!(play("lru+ghost", &round).unwrap(), 99);
    assert!(play("lru+ghost:2", &round).unwrap() < 99);
    let wrong = |name| play(name, &[]).unwrap_err().to_string();
    assert!(wrong("lru+gohst").contains("did you mean \"ghost\"?"));
    assert!(wrong("lru+ghost:x").contains("times as many as the cache holds from 0.001"));
    assert!(wrong("lru+size:1MiB").contains("blocks are all of one size"));
    assert!(wrong("optimal+ghost").contains("optimal alone"));
    assert!(wrong("lru+hotspot:3").contains("takes no value"));
    let unfit = objects(&Choice::parse("arc").unwrap(), 9, &Objects::default(), [].into_iter(), 1);
    let known: Vec<_> = of_any_size().collect();
    assert!(known.contains(&"lru") && !known.contains(&"arc"));
    assert!(unfit.unwrap_err().to_string().contains(&format!("one of {}", known.join(", "))));
}

#[test]
fn what_cannot_be_is_one_sentence() {
    let none = Parameters::default();
    let play = |policy, size, p: &Parameters| {
        hit_ratio(policy, p, size, [Request::one(1, false)], 1).unwrap_err().to_string()
    };
    assert!(play("lru2", 5, &none).contains("did you mean \"lru\"?"));
    assert!(play("lru", 0, &none).contains("expected a cache of 1 to"));
    let wide = Parameters { small: 1.5, ..none.clone() };
    assert!(play("s3-fifo", 5, &wide).contains("for small a share from 0 to 1"));
    let stream = Stream::new(1, "x");
    let optimal = REPLACEMENTS.find("optimal").unwrap().build.online("optimal", 5, &none, stream);
    assert!(optimal.err().unwrap().to_string().contains("hit ratios only"));
    let curve = |sampling| lru_curve([], &[1], sampling, 1).unwrap_err().to_string();
    assert!(
        curve(Sampling::Rate { rate: 0.5, samples: 3 }).contains("a rate above 0 and up to 0.33")
    );
    assert!(curve(Sampling::Rate { rate: f64::NAN, samples: 1 }).contains("a rate above 0"));
    assert!(curve(Sampling::Blocks { blocks: 3, samples: 1 }).contains("at least 16"));
    let small = Sampling::Rate { rate: 0.01, samples: 2 };
    let small =
        replay_curve("sieve", &none, [].into_iter(), &[100], small, 1).unwrap_err().to_string();
    assert!(small.contains("at least 1600 blocks"), "{small}");
}
