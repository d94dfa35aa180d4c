//! Arrays drawn at random: any level and layout, members of different size and kind, arrays of arrays,
//! below links and partitions; with members that fail, spares and losses of power. All promises hold,
//! and data survive exactly when the level says so.

use crate::common;

use common::audit::{Audit, random_script};
use common::cases;
use common::counters;
use common::host::Host;
use common::oracle::Oracle;
use common::rigs::build;
use proptest::prelude::*;
use ssdlab::device::Device;
use ssdlab::rig::Rig;

/// An array without its members.
#[derive(Clone, Debug)]
struct Kind {
    level: &'static str,
    layout: &'static str,
    /// KiB.
    chunk: u64,
    members: u32,
    /// Copies, or chunks of parity.
    copies: u32,
    parities: u32,
    cache: u32,
    balance: &'static str,
    bus: &'static str,
}

fn any_kind() -> impl Strategy<Value = Kind> {
    let level = prop::sample::select(vec!["linear", "raid0", "raid1", "raid10", "raid5", "raid6"]);
    let balance = prop::sample::select(vec!["least-pending", "round-robin", "nearest"]);
    let bus = prop::sample::select(vec![
        "",
        "",
        "bus = { bandwidth = \"300MB/s\" }\n",
        "bus = { bandwidth = \"80MB/s\", command_time = \"3us\", duplex = \"half\" }\n",
    ]);
    (level, 2u32..10, 1u64..17, any::<[u8; 2]>(), 17u32..80, balance, bus).prop_map(
        |(level, members, chunk, [a, b], cache, balance, bus)| {
            let least = match level {
                "raid5" => 3,
                "raid6" => 4,
                _ => 2,
            };
            let members = members.max(least);
            let rotations =
                ["left-symmetric", "left-asymmetric", "right-symmetric", "right-asymmetric"];
            let mirrors = ["n2", "f2", "o2", "n3", "f3", "o3"];
            let most = if members > 2 { 6 } else { 3 };
            let layout = match level {
                "raid10" => mirrors[a as usize % most],
                "raid5" | "raid6" => rotations[b as usize % 4],
                _ => "",
            };
            let copies = match level {
                "raid1" => members,
                "raid10" => u32::from(layout.as_bytes()[1] - b'0'),
                _ => 1,
            };
            let parities = ["raid5", "raid6"].iter().position(|l| *l == level).map_or(0, |p| p + 1);
            let (chunk, parities) = (chunk * 4, parities as u32);
            Kind { level, layout, chunk, members, copies, parities, cache, balance, bus }
        },
    )
}

impl Kind {
    fn keys(&self) -> String {
        let layout = match self.layout {
            "" => String::new(),
            layout => format!("layout = \"{layout}\"\n"),
        };
        format!(
            "kind = \"array\"\nlevel = \"{}\"\nchunk = \"{}KiB\"\nstripe_cache = {}\n\
             read_balance = \"{}\"\naccept_waste = true\n{layout}{}",
            self.level, self.chunk, self.cache, self.balance, self.bus
        )
    }

    /// Failures that it survives, whichever members they are.
    fn survives(&self) -> u32 {
        (self.copies - 1).max(self.parities)
    }
}

/// A member as an inline table; `nested` so many levels of arrays more.
fn any_member(nested: u32) -> BoxedStrategy<String> {
    let null = (64u64..150, 1u32..4, 15u32..90).prop_map(|(units, servers, us)| {
        format!(
            "kind = \"null\", capacity = \"{}KiB\", servers = {servers}, service_time = \"{us}us\"",
            units * 4
        )
    });
    let wrapped = (null.clone(), 0u64..40, 50u32..800).prop_map(|(null, sectors, rate)| {
        let link = format!("kind = \"link\", bandwidth = \"{rate}MB/s\", queue_slots = 5");
        let slice = format!("kind = \"partition\", offset = \"{}B\"", sectors * 512);
        match sectors % 3 {
            0 => format!("{link}, below = {{ {null} }}"),
            1 => format!("{slice}, below = {{ {null} }}"),
            _ => format!("{link}, below = {{ {slice}, below = {{ {null} }} }}"),
        }
    });
    if nested == 0 {
        return prop_oneof![3 => null, 1 => wrapped].boxed();
    }
    let array =
        (any_kind(), prop::collection::vec(any_member(nested - 1), 9)).prop_map(|(kind, all)| {
            let members: Vec<String> = all
                .iter()
                .take(kind.members.min(4) as usize)
                .map(|m| format!("{{ {m} }}"))
                .collect();
            let kind = Kind { members: members.len() as u32, ..kind };
            format!(
                "{}, members = [{}]",
                kind.keys().trim().replace('\n', ", "),
                members.join(", ")
            )
        });
    prop_oneof![6 => null, 2 => wrapped, 1 => array].boxed()
}

/// An array with members, and spares as large as any of them.
#[derive(Clone, Debug)]
struct Drawn {
    kind: Kind,
    members: Vec<String>,
    spares: u32,
    /// Members and when they fail, us.
    fail: Vec<(u32, u64)>,
    rate: u32,
    window: u64,
    bitmap: bool,
    /// TRIM reaches the members.
    trim: bool,
    above: &'static str,
}

fn any_array(nested: u32) -> impl Strategy<Value = Drawn> {
    let above = prop::sample::select(vec![
        "",
        "",
        "kind = \"link\"\nbandwidth = \"900MB/s\"\nqueue_slots = 12\n",
        "kind = \"partition\"\noffset = \"12KiB\"\nsize = \"200KiB\"\n",
    ]);
    let members = prop::collection::vec(any_member(nested), 9);
    let fail = prop::collection::vec((any::<u32>(), 100u64..60_000), 0..4);
    (any_kind(), members, 0u32..3, fail, 1u32..200, 1u64..200, any::<[bool; 2]>(), above).prop_map(
        |(kind, members, spares, fail, rate, window, [bitmap, trim], above)| {
            let (members, n) = (members[..kind.members as usize].to_vec(), kind.members);
            let mut fail: Vec<_> = fail.iter().map(|(member, at)| (member % n, *at)).collect();
            fail.sort_unstable();
            fail.dedup_by_key(|(member, _)| *member);
            let bitmap = bitmap && kind.survives() > 0;
            // Arrays below may drop them.
            let trim = trim && !members.iter().any(|member| member.contains("array"));
            Drawn { kind, members, spares, fail, rate, window, bitmap, trim, above }
        },
    )
}

impl Drawn {
    fn rig(&self, more: &str) -> Rig {
        let mut keys = self.kind.keys();
        let spare =
            "{ kind = \"null\", capacity = \"64MiB\", service_time = \"30us\" }".to_string();
        let mut members: Vec<String> = self.members.iter().map(|m| format!("{{ {m} }}")).collect();
        members.extend(std::iter::repeat_n(spare, self.spares as usize));
        let fails = |(member, at): &(u32, u64)| format!("{{ member = {member}, at = \"{at}us\" }}");
        let fail: Vec<String> = self.fail.iter().map(fails).collect();
        let bitmap = if self.bitmap { "bitmap = \"128KiB\"\nbitmap_delay = \"9ms\"\n" } else { "" };
        let rate = self.rate;
        keys += &format!(
            "trim = {}\nspares = {}\nfail = [{}]\nrebuild_min = \"{rate}MB/s\"\n\
             rebuild_max = \"{rate}MB/s\"\nrebuild_window = \"{}KiB\"\n{bitmap}{more}\nmembers = [{}]\n",
            self.trim,
            self.spares,
            fail.join(", "),
            self.window,
            members.join(", ")
        );
        let text = match self.above {
            "" => format!("[device]\n{keys}"),
            above => format!("[device]\n{above}[device.below]\n{keys}"),
        };
        Rig::parse(&text, "any").unwrap_or_else(|e| panic!("{e}\n{text}"))
    }

    /// No more failures than it survives.
    fn survivable(mut self) -> Self {
        self.fail.truncate(self.kind.survives() as usize);
        self
    }
}

/// The plain map: TRIM deallocates sectors, whole stripes, or nothing; a purge of a partition is one.
fn oracle(drawn: &Drawn, device: &dyn Device) -> Oracle {
    let Kind { members, parities, chunk, .. } = drawn.kind;
    let unit = match (drawn.trim, parities) {
        (false, _) => 1 << 60,
        (true, 0) => 512,
        (true, parities) => u64::from(members - parities) * (chunk << 10),
    };
    let partition = drawn.above.contains("partition");
    let shift = if partition { (12 << 10) % unit } else { 0 };
    Oracle::new(device.capacity(), unit, shift, partition)
}

/// Whether a rig builds; members may be too small for a chunk of every copy.
fn fits(rig: &Rig) -> bool {
    match rig.build(1, false) {
        Ok(device) => device.capacity() >= 64 << 10,
        Err(error) => {
            let error = error.to_string();
            let known = ["expected at least one chunk", "expected room for", "do not fit"];
            assert!(known.iter().any(|known| error.contains(known)), "{error}\n{}", rig.to_toml());
            false
        }
    }
}

proptest! {
    #![proptest_config(cases(120, 2500))]
    #[test]
    fn any_array_keeps_its_promises_without_the_members_that_it_can_do_without(
        drawn in any_array(1), seed: u64, depth in 1usize..50,
    ) {
        let drawn = drawn.survivable();
        let rig = drawn.rig("");
        prop_assume!(fits(&rig));
        let script = random_script(seed, build(&rig, seed, false).capacity(), 500);
        let mut times = Vec::new();
        for versions in [true, true, false] {
            let mut device = build(&rig, seed, versions);
            let oracle = oracle(&drawn, &*device);
            let mut audit = Audit::new(&mut *device, versions.then_some(oracle));
            if let Err(violation) = audit.run(&script, depth) {
                panic!("{violation:?}\n{}", rig.to_toml());
            }
            let ends: Vec<(u64, u64)> = audit.trace.iter().map(|c| (c.tag, c.time)).collect();
            times.push((ends, counters(&*device)));
            device.verify();
        }
        assert!(times[0] == times[1], "a run that differs from itself\n{}", rig.to_toml());
        assert!(times[0] == times[2], "versions show\n{}", rig.to_toml());
    }
}

proptest! {
    #![proptest_config(cases(150, 3000))]
    #[test]
    fn data_of_any_array_survive_exactly_when_its_level_says_so(
        drawn in any_array(0), seed: u64, depth in 1usize..30,
    ) {
        let drawn = Drawn { spares: 0, above: "", ..drawn };
        let rig = drawn.rig("");
        prop_assume!(fits(&rig));
        let mut device = build(&rig, seed, true);
        let mut host = Host::new(&*device, seed, &[]);
        let mut times: Vec<u64> = drawn.fail.iter().map(|(_, us)| us * 1000).collect();
        times.sort_unstable();
        // Its writes may fail from then on.
        let one_more = times.get(drawn.kind.survives() as usize);
        host.doubt = one_more.copied().unwrap_or(host.doubt);
        host.fill(&mut *device);
        host.write(&mut *device, depth, host.doubt.saturating_add(100_000).min(30_000_000));
        host.wait(&mut *device, 100_000_000);
        let (gone, kind) = (drawn.fail.len() as u32, &drawn.kind);
        let c = counters(&*device);
        let (lost, wrong) = (c["lost_bytes"], host.wrong(&*device).0);
        let (toml, what) = (rig.to_toml(), format!("{lost} {wrong} {gone}"));
        if gone <= kind.survives() {
            assert_eq!((lost, wrong, c["errors_write"]), (0, 0, 0), "{what}\n{toml}");
        } else if kind.level != "raid10" {
            assert!(lost > 0 && wrong > 0, "{what}\n{toml}");
        }
        assert!(wrong <= lost && (wrong > 0) == (lost > 0), "{what}\n{toml}");
    }
}

proptest! {
    #![proptest_config(cases(150, 3000))]
    #[test]
    fn any_array_survives_losses_of_power_but_for_the_write_hole(
        drawn in any_array(1), seed: u64, deep: bool, cuts in prop::collection::vec(500u64..40_000, 1..4),
    ) {
        let drawn = Drawn { above: "", ..drawn.survivable() };
        let rig = drawn.rig("");
        prop_assume!(fits(&rig));
        let mut device = build(&rig, seed, true);
        let mut cuts: Vec<u64> = cuts.iter().map(|us| us * 1000).collect();
        cuts.sort_unstable();
        let mut host = Host::new(&*device, seed, &cuts);
        host.fill(&mut *device);
        let depth = if deep { 20 } else { 1 };
        // What is written after the last loss of power may make good what was lost.
        let once = cuts.len() == 1;
        host.write(&mut *device, depth, if once { cuts[0] } else { 30_000_000 });
        host.wait(&mut *device, 2_000_000_000);
        let c = counters(&*device);
        let toml = rig.to_toml();
        assert_eq!((c["resync_left_bytes"], c["lost_bytes"]), (0, 0), "{toml}");
        let (untouched, touched) = host.wrong(&*device);
        let exposed = c.get("power_exposed_bytes").copied().unwrap_or(0);
        assert!(untouched <= exposed, "{untouched} {exposed}\n{toml}");
        // An array below cannot tell what has reached it.
        if once && !drawn.members.iter().any(|member| member.contains("array")) {
            host.check_hole(&*device, depth, &toml);
        }
        if drawn.kind.parities == 0 || drawn.fail.is_empty() {
            assert_eq!((exposed, touched), (0, 0), "{toml}");
        }
        device.verify();
    }
}
