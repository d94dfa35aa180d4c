//! Commands that a device made of devices hands on as they are: what comes of them is what came if it saw to each.

use crate::common::{all_counters, closed_loop, command};
use ssdlab::device::{Command, Completion, Op};
use ssdlab::rig::Rig;
use ssdlab::rng::Stream;
use std::collections::BTreeMap;

const SLOW: &str =
    "{ kind = \"null\", capacity = \"4MiB\", service_time = \"100us\", servers = 3 }";
const DRIVE: &str = "{ kind = \"null\", capacity = \"4MiB\", service_time = \"30us\" }";

/// An array of two stripes; `rest` says what else there is to it.
fn array(level: &str, rest: &str) -> String {
    let members = [DRIVE, SLOW, DRIVE, DRIVE].join(", ");
    format!(
        "kind = \"array\"\nlevel = \"{level}\"\nchunk = \"16KiB\"\nmembers = [{members}]\n{rest}"
    )
}

fn tier(fast: &str, rest: &str) -> String {
    format!(
        "kind = \"tier\"\nextent = \"64KiB\"\nmoves = 0\nreserve = 1\nfast = {fast}\nbelow = {SLOW}\n{rest}"
    )
}

/// As a table in a line.
fn inline(keys: &str) -> String {
    format!("{{ {} }}", keys.trim().replace('\n', ", "))
}

/// Every completion of a mixed load, and every counter.
fn course(keys: &str) -> (Vec<Completion>, BTreeMap<String, u64>) {
    let rig = Rig::parse(&format!("[device]\n{keys}"), "my.toml").unwrap();
    let mut device = rig.build(1, false).unwrap();
    let mut rng = Stream::new(7, "passing");
    let units = device.capacity() / 4096;
    let next = || {
        let len = 1 + rng.below(2) * rng.below(12);
        let (offset, len) = (rng.below(units - len) * 4096, len * 4096);
        match rng.below(40) {
            0 => command(Op::Flush, 0, 0),
            1 => command(Op::Purge, 0, 0),
            2..5 => command(Op::Trim, offset, len),
            5..20 => Command { compressible: 30, process: 2, ..command(Op::Write, offset, len) },
            _ => command(Op::Read, offset, len),
        }
    };
    let mut seen = Vec::new();
    closed_loop(&mut *device, 24, 4000, 0, next, |_, completion| seen.push(completion.clone()));
    device.verify();
    let mut counted = BTreeMap::new();
    all_counters(&*device, "", &mut counted);
    (seen, counted)
}

#[test]
fn what_is_handed_on_ends_as_what_is_seen_to() {
    // Where a member may fail, all is seen to.
    let fails = "fail = [{ member = 0, at = \"1h\" }]";
    let never = "below_fails_at = \"1h\"";
    let within = |keys: &str| tier(&inline(keys), "");
    let card = |keys: &str| {
        format!(
            "kind = \"controller\"\nbandwidth = \"4GB/s\"\ncommand_time = \"1us\"\nbelow = {}",
            inline(keys)
        )
    };
    let levels = ["raid0", "linear", "raid10", "raid5", "raid6"];
    let mut pairs: Vec<[String; 2]> =
        levels.iter().map(|level| ["", fails].map(|rest| array(level, rest))).collect();
    pairs.push(["", never].map(|rest| tier(DRIVE, rest)));
    pairs.push(["", fails].map(|rest| within(&array("raid0", rest))));
    pairs.push(["", fails].map(|rest| card(&array("raid5", rest))));
    for [handed, seen_to] in pairs {
        let (a, b) = (course(&handed), course(&seen_to));
        assert_eq!(a.0, b.0, "{handed}");
        assert_eq!(a.1, b.1, "{handed}");
    }
}
