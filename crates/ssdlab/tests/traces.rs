//! Traces: every format on requests worked out by hand, what is written reads back, nothing panics.

use crate::common::cases;
use proptest::prelude::*;
use ssdlab::trace::profile::Profile;
use ssdlab::trace::{
    FORMATS, KINDS, Kind, Oddities, ReadOptions, Request, Select, Trace, WriteOptions,
};
use std::io::BufReader;

fn open(bytes: &[u8], format: Option<&str>, options: &ReadOptions) -> ssdlab::Result<Trace> {
    // A small buffer: lines and records lie across its ends.
    let source = BufReader::with_capacity(37, std::io::Cursor::new(bytes.to_vec()));
    Trace::open(Box::new(source), "t", format, options)
}

fn read_with(bytes: &[u8], options: &ReadOptions) -> ssdlab::Result<(Trace, Vec<Request>)> {
    let mut trace = open(bytes, None, options)?;
    let mut requests = Vec::new();
    while let Some(request) = trace.next_request()? {
        requests.push(request);
    }
    Ok((trace, requests))
}

/// Format, and requests as (time ns, kind, offset, length, device).
type Plain = (u64, Kind, u64, u32, u32);

fn plain(requests: &[Request]) -> Vec<Plain> {
    requests.iter().map(|r| (r.time_ns, r.kind, r.offset, r.length, r.device)).collect()
}

fn check(bytes: &[u8], format: &str, expected: &[Plain]) -> (Trace, Vec<Request>) {
    let (trace, requests) = read_with(bytes, &ReadOptions::default()).unwrap();
    assert_eq!(trace.format(), format);
    assert_eq!(plain(&requests), expected, "{format}");
    (trace, requests)
}

use Kind::{Flush, Read, Trim, Write};

const BLKPARSE: &str = "\
259,2    0        1     0.000000100  4020  Q   R 282624 + 8 [java]
259,2    0        2     0.000001581  4020  G   R 282624 + 8 [java]
259,2    0        3     0.000003650  4020  U   N [java] 1
  8,0    3        4     0.000503958  4020  Q  WS 16 + 16 [java]
  8,0    3        5     0.000603958  4020  D  WS 16 + 16 [java]
  8,0    3        6     0.001000100  4020  Q   D 4096 + 2048 [fstrim]
  8,0    3        7     0.001000200     0  m   N cfq4020 message
  8,0    3        8     0.002000100  4020  Q FWS [jbd2]
CPU0 (259,2):
 Reads Queued:           1,        4KiB\t Writes Queued:           0,        0KiB
";

#[test]
fn text_of_blkparse_gives_the_events_asked_for() {
    let device = (259 << 20) | 2;
    check(
        BLKPARSE.as_bytes(),
        "blkparse",
        &[
            (0, Read, 282_624 * 512, 4096, device),
            (503_858, Write, 8192, 8192, 8 << 20),
            (1_000_000, Trim, 2 << 20, 1 << 20, 8 << 20),
            (2_000_000, Flush, 0, 0, 8 << 20),
        ],
    );
    let issued = ReadOptions { action: 'D', ..ReadOptions::default() };
    let (_, requests) = read_with(BLKPARSE.as_bytes(), &issued).unwrap();
    assert_eq!(plain(&requests), [(0, Write, 8192, 8192, 8 << 20)]);
    let done = ReadOptions { action: 'C', ..ReadOptions::default() };
    let message = read_with(BLKPARSE.as_bytes(), &done).err().unwrap().to_string();
    assert!(message.contains("no event C, there are D, G, Q, U"), "{message}");
}

#[test]
fn binary_blktrace_reads_in_either_byte_order_and_passes_over_what_follows_a_record() {
    for big in [false, true] {
        let mut bytes = Vec::new();
        let mut record = |ns: u64, sector: u64, len: u32, action: u32, extra: &[u8]| {
            let mut put = |little: &[u8]| {
                let mut field = little.to_vec();
                if big {
                    field.reverse();
                }
                bytes.extend(field);
            };
            put(&0x6561_7407u32.to_le_bytes());
            put(&1u32.to_le_bytes());
            put(&ns.to_le_bytes());
            put(&sector.to_le_bytes());
            put(&len.to_le_bytes());
            put(&action.to_le_bytes());
            put(&0u32.to_le_bytes());
            put(&7u32.to_le_bytes());
            put(&0u32.to_le_bytes());
            put(&0u16.to_le_bytes());
            put(&(extra.len() as u16).to_le_bytes());
            bytes.extend(extra);
        };
        // Categories: read 1, write 2, queue 0x10, complete 0x80, notify 0x400, discard 0x2000.
        record(50, 0, 0, 0x0400 << 16, b"process name");
        record(100, 8, 4096, 0x11 << 16 | 1, b"");
        record(200, 8, 4096, 0x81 << 16 | 8, b"xy");
        record(1100, 16, 512, 0x12 << 16 | 1, b"");
        record(2100, 64, 65_536, 0x2012 << 16 | 1, b"");
        check(
            &bytes,
            "blktrace",
            &[
                (0, Read, 4096, 4096, 7),
                (1000, Write, 8192, 512, 7),
                (2000, Trim, 32_768, 65_536, 7),
            ],
        );
    }
}

#[test]
fn iologs_of_both_versions_read_as_the_manual_says() {
    let v2 = "fio version 2 iolog\na add\nb add\na open\na read 0 4096\na wait 500 0\n\
              b write 8192 512\na wait 250 0\na sync 0 0\nb trim 4096 4096\na close\n";
    check(
        v2.as_bytes(),
        "iolog-v2",
        &[
            (0, Read, 0, 4096, 0),
            (500_000, Write, 8192, 512, 1),
            (750_000, Flush, 0, 0, 0),
            (750_000, Trim, 4096, 4096, 1),
        ],
    );
    let v3 = "fio version 3 iolog\n0 a add\n0 a open\n100 a write 4096 8192\n350 a datasync 0 0\n400 a close\n";
    let expected = [(0, Write, 4096, 8192, 0), (250_000, Flush, 0, 0, 0)];
    check(v3.as_bytes(), "iolog-v3", &expected);
}

#[test]
fn columns_mean_what_their_papers_say() {
    let msr = "128166372003061629,hm,1,Read,383496192,32768,413\n\
               128166372016382155,hm,0,Write,2822144,4096,51\n";
    let (_, requests) = check(
        msr.as_bytes(),
        "msr",
        &[(0, Read, 383_496_192, 32_768, 1), (1_332_052_600, Write, 2_822_144, 4096, 0)],
    );
    assert_eq!(requests[0].response_ns, Some(41_300));
    check(
        b"0,303567,3584,w,0.000000\n1,55590,3072,R,0.026214,extra\n",
        "spc",
        &[(0, Write, 303_567 * 512, 3584, 0), (26_214_000, Read, 55_590 * 512, 3072, 1)],
    );
    check(
        b"7961.833 0 20228336 8 0\n8346.206 2 6397360 496 1\n",
        "disksim",
        &[
            (0, Write, 20_228_336 * 512, 4096, 0),
            (384_373_000, Read, 6_397_360 * 512, 496 * 512, 2),
        ],
    );
    check(
        b"938513000 4 264719034 16 0\n938828000 3 8 1 1\n",
        "ssdsim",
        &[(0, Write, 264_719_034 * 512, 8192, 4), (315_000, Read, 4096, 512, 3)],
    );
    let load = "Some words; about it\n\n 1.5 ;  8 ; 2 ;RA ; 0.0 ; 0.0\n1.500000007 ; 16 ; 1 ; W ; 0.0 ; 0.002\n";
    let (_, requests) =
        check(load.as_bytes(), "blkreplay", &[(0, Read, 4096, 1024, 0), (7, Write, 8192, 512, 0)]);
    assert_eq!((requests[0].response_ns, requests[1].response_ns), (None, Some(2_000_000)));
    check(
        b"3,W,8192,4096,1577808000000046\n3,R,0,512,1577808000000050\n",
        "alibaba",
        &[(0, Write, 8192, 4096, 3), (4000, Read, 0, 512, 3)],
    );
    check(
        b"1538323199,105352008,584,1,1576\n1538323201,8,8,0,7\n",
        "tencent",
        &[(0, Write, 105_352_008 * 512, 584 * 512, 1576), (2_000_000_000, Read, 4096, 4096, 7)],
    );
    check(b"# list\n7\n8 W\n", "lba", &[(0, Read, 28_672, 4096, 0), (0, Write, 32_768, 4096, 0)]);
}

fn srt(records: &[[i32; 14]]) -> Vec<u8> {
    let mut bytes = b"$$TR_IOREC-1.3 (x)\0\nsectorsize  = 256,\n\x0c".to_vec();
    records.iter().flatten().for_each(|field| bytes.extend(field.to_be_bytes()));
    bytes
}

#[test]
fn hp_srt_counts_blocks_in_the_sectors_of_its_header() {
    let bytes = srt(&[
        [56, 1, 0, 500, 174, 19_687, 4096, 1056, 7, 4, 1, 27, 0, 1],
        [56, 1, 30, 250, 146, 36_899, 8192, 16, 7, 4, 745, 26, 0, 1],
    ]);
    let expected = [(0, Read, 1056 * 256, 4096, 7), (29_999_750_000, Write, 4096, 8192, 7)];
    let (_, requests) = check(&bytes, "hp-srt", &expected);
    assert_eq!(requests[0].response_ns, Some(19_687_000));
}

#[test]
fn vscsi_of_both_versions_and_oracle_general_are_told_apart() {
    let requests = [
        Request {
            time_ns: 0,
            offset: 4096,
            length: 512,
            kind: Read,
            device: 0,
            response_ns: Some(7000),
        },
        Request {
            time_ns: 9000,
            offset: 0,
            length: 8192,
            kind: Write,
            device: 0,
            response_ns: Some(0),
        },
    ];
    for (format, response) in [("vscsi-v1", false), ("vscsi-v2", true)] {
        let bytes = write(format, &requests);
        assert_eq!(bytes.len(), if response { 80 } else { 64 });
        let (_, read) = check(&bytes, format, &plain(&requests));
        assert_eq!(read[0].response_ns, response.then_some(7000));
    }
    // Two blocks of the second request; block 1 again: by hand.
    let more = Request { time_ns: 5_000_000_000, offset: 4096, ..requests[0] };
    let bytes = write("oracle-general", &[requests[0], requests[1], more]);
    let next = |record: usize| {
        i64::from_le_bytes(bytes[record * 24 + 16..record * 24 + 24].try_into().unwrap())
    };
    assert_eq!([next(0), next(1), next(2), next(3)], [2, -1, 3, -1]);
    let block = |time, number: u64| (time, Read, number * 4096, 4096, 0);
    let expected = [block(0, 1), block(0, 0), block(0, 1), block(5_000_000_000, 1)];
    check(&bytes, "oracle-general", &expected);
}

#[test]
fn formats_of_blocks_keep_the_blocks_that_requests_touch() {
    let one = |offset, length| Request {
        time_ns: 0,
        offset,
        length,
        kind: Read,
        device: 0,
        response_ns: None,
    };
    let requests = [one(4000, 200), one(8192, 4096)];
    assert_eq!(write("arc", &requests), b"0 2 0 0\n2 1 0 1\n");
    check(b"0 2 0 0\n2 1 0 1\n", "arc", &[(0, Read, 0, 8192, 0), (0, Read, 8192, 4096, 0)]);
    for (format, bytes) in [("keys-u32", 4), ("keys-u64", 8)] {
        let keys = write(format, &requests);
        assert_eq!(keys.len(), 3 * bytes);
        let mut trace = open(&keys, Some(format), &ReadOptions::default()).unwrap();
        for block in 0..3 {
            assert_eq!(trace.next_request().unwrap().unwrap().offset, block * 4096);
        }
    }
}

fn write(format: &str, requests: &[Request]) -> Vec<u8> {
    let build = &FORMATS.find(format).unwrap().build;
    let mut encoder = build.encoder.unwrap()(&WriteOptions::default());
    let mut bytes = Vec::new();
    encoder.start(&mut bytes).unwrap();
    for request in requests {
        encoder.request(request, &mut bytes).unwrap();
    }
    encoder.finish(&mut bytes).unwrap();
    bytes
}

/// Spreadsheets write one.
#[test]
fn a_byte_order_mark_before_a_text_is_no_part_of_it() {
    let text = b"time_ns,kind,offset,length,device,response_ns\n5,read,0,4096,0,\n";
    let marked = [&b"\xEF\xBB\xBF"[..], text].concat();
    let (plainly, _) = read_with(text, &ReadOptions::default()).unwrap();
    check(&marked, plainly.format(), &[(0, Read, 0, 4096, 0)]);
    let columns = "time_ns=time_ns,op=kind,offset=offset,size=length".to_string();
    let options = ReadOptions { columns, ..ReadOptions::default() };
    assert_eq!(read_with(&marked, &options).unwrap().1.len(), 1);
}

#[test]
fn a_damaged_line_stops_with_its_place_or_is_counted() {
    let text = "0 0 8 8 1\n5 0 16 8 x\n9 0 24 8 0\n";
    let message = read_with(text.as_bytes(), &ReadOptions::default()).err().unwrap().to_string();
    assert_eq!(
        message,
        "t:2: found \"5 0 16 8 x\", expected time in ns, device, sector, sectors, 1 (read) or 0 (write)"
    );
    let lenient = ReadOptions { skip_damaged: true, ..ReadOptions::default() };
    let (trace, requests) = read_with(text.as_bytes(), &lenient).unwrap();
    assert_eq!((requests.len(), trace.oddities().damaged), (2, 1));
    assert_eq!(trace.oddities().first_damage.as_deref(), Some(message.as_str()));
    // A record cut off at the end of a binary trace.
    let bytes = write("vscsi-v1", &requests);
    let error = read_with(&bytes[..50], &ReadOptions::default()).err().unwrap().to_string();
    assert!(error.contains("record 2") && error.contains("18 of 32 bytes"), "{error}");
}

#[test]
fn oddities_are_counted_and_treated_as_stated() {
    let text = "100 0 8 8 1\n100 0 8 8 1\n900 0 0 0 1\n40 0 16 8 1\n2000100 0 16 8 1\n";
    let (trace, requests) = read_with(text.as_bytes(), &ReadOptions::default()).unwrap();
    let expected = Oddities {
        zero_length: 1,
        backwards: 1,
        backwards_ns_max: 60,
        duplicates: 1,
        ..Oddities::default()
    };
    assert_eq!(trace.oddities(), &expected);
    let times: Vec<u64> = requests.iter().map(|r| r.time_ns).collect();
    assert_eq!(times, [0, 0, 0, 2_000_000]);
    let unaligned = "1,R,100,4096,5\n";
    let (trace, _) = read_with(unaligned.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(trace.oddities().unaligned, 1);
}

#[test]
fn what_is_no_trace_says_so() {
    let error = |bytes: &[u8]| read_with(bytes, &ReadOptions::default()).err().unwrap().to_string();
    assert!(error(b"").contains("t: is empty"));
    assert!(error(b"Dear reader,\nthis is a letter.\n").contains("no trace in a known format"));
    assert!(error(&[0xff; 5000]).contains("no trace in a known format"));
    let forced = open(b"Dear reader", Some("msr"), &ReadOptions::default()).unwrap().next_request();
    assert!(forced.unwrap_err().to_string().starts_with("t:1: found \"Dear reader\""));
    let unknown = open(b"1\n", Some("mrs"), &ReadOptions::default()).err().unwrap().to_string();
    assert!(unknown.contains("did you mean \"msr\""), "{unknown}");
}

#[test]
fn a_sample_of_addresses_is_part_of_a_larger_one_and_about_as_large_as_stated() {
    let text: String =
        (0..20_000u64).map(|i| format!("{i} 0 {} 8 1\n", (i * 7919 % 20_000) << 11)).collect();
    let sample = |share: f64| {
        let select = Select { share, ..Select::default() };
        let options = ReadOptions { select, ..ReadOptions::default() };
        let (_, requests) = read_with(text.as_bytes(), &options).unwrap();
        requests.iter().map(|r| r.offset).collect::<std::collections::BTreeSet<_>>()
    };
    let (small, large) = (sample(0.1), sample(0.3));
    assert!(small.is_subset(&large));
    assert!((1800..2200).contains(&small.len()), "{}", small.len());
    let select = Select { from_ns: 1000, to_ns: 1500, ..Select::default() };
    let window = ReadOptions { select, ..ReadOptions::default() };
    let (_, requests) = read_with(text.as_bytes(), &window).unwrap();
    assert_eq!((requests.len(), requests[0].time_ns, requests[499].time_ns), (500, 0, 499));
}

#[test]
fn a_profile_counts_what_is_there() {
    // 4 KiB at 0, 8 KiB behind it, 0 again; a trim.
    let text = "time_ns,kind,offset,length,device,response_ns\n0,read,0,4096,0,\n\
                1000000,write,4096,8192,0,\n3000000,read,0,4096,0,\n4000000,trim,0,1048576,0,\n";
    let (trace, requests) = read_with(text.as_bytes(), &ReadOptions::default()).unwrap();
    let mut profile = Profile::default();
    requests.iter().for_each(|request| profile.add(request));
    let found = profile.document(trace.oddities(), true);
    assert_eq!(found["requests"], 4);
    assert_eq!(found["bytes_by_kind"]["trim"], 1 << 20);
    assert_eq!(found["footprint"]["blocks"], 3);
    assert_eq!(found["footprint"]["blocks_written"], 2);
    assert_eq!(found["order"]["continues_the_request_before"], 1);
    assert_eq!(found["reuse"]["reused"], 1);
    assert_eq!(found["reuse"]["distances"][0]["blocks"], 2, "two blocks between");
    assert_eq!(found["series"]["window_ns"], 1_000_000);
    assert_eq!(found["series"]["blocks"].to_string(), "[1,2,0,1,0]");
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let one = (0u64..1 << 30, 0u64..1 << 30, 1u32..64, 0usize..4, 0u32..3);
    proptest::collection::vec(one, 1..40).prop_map(|list| {
        let mut time_ns = 0;
        let mut previous = 0;
        let mut requests = Vec::new();
        for (gap, block, sectors, kind, device) in list {
            let kind = [Read, Write, Trim, Flush][kind];
            let flush = kind == Flush;
            time_ns += if requests.is_empty() { 0 } else { gap };
            previous += 1;
            requests.push(Request {
                time_ns,
                offset: if flush { 0 } else { block * 4096 },
                length: if flush { 0 } else { sectors * 512 },
                kind,
                device: if requests.is_empty() { 0 } else { device },
                response_ns: Some(previous * 1000),
            });
        }
        requests
    })
}

/// The step of the times of a format, from the words in which it says what it loses.
fn tick_ns(loses: &str) -> u64 {
    let mut words = loses.split([',', ';']).map(str::trim);
    match words.find_map(|word| word.strip_prefix("times")).map(str::trim) {
        None => 1,
        Some("") => u64::MAX,
        Some("below 100 ns") => 100,
        Some("below a microsecond") => 1_000,
        Some("below a millisecond") => 1_000_000,
        Some("below a second") => 1_000_000_000,
        Some(other) => panic!("\"times {other}\" is not among the words of FormatBuild::loses"),
    }
}

proptest! {
    #![proptest_config(cases(96, 960))]

    /// What can be written reads back, as far as the format says that it keeps it.
    #[test]
    fn what_is_written_reads_back(requests in requests()) {
        for entry in FORMATS.entries.iter().filter(|entry| entry.build.encoder.is_some()) {
            let loses = |what: &str| entry.build.loses.contains(what);
            // Those of whole blocks have a test of their own.
            if loses("block") {
                continue;
            }
            let tick_ns = tick_ns(entry.build.loses);
            let kept: Vec<Request> = requests
                .iter()
                .filter(|r| !(loses("trims") && r.kind == Trim || loses("flushes") && r.kind == Flush))
                .copied()
                .collect();
            if kept.is_empty() {
                continue;
            }
            let bytes = write(entry.name, &requests);
            let mut trace = open(&bytes, Some(entry.name), &ReadOptions::default()).unwrap();
            let mut read = Vec::new();
            while let Some(request) = trace.next_request().unwrap() {
                read.push(request);
            }
            let mut devices: Vec<u32> = Vec::new();
            let mut expected = kept.clone();
            for request in &mut expected {
                let index = devices.iter().position(|d| *d == request.device).unwrap_or_else(|| {
                    devices.push(request.device);
                    devices.len() - 1
                });
                request.time_ns =
                    (request.time_ns / tick_ns - kept[0].time_ns / tick_ns).saturating_mul(tick_ns);
                if entry.name.starts_with("iolog") {
                    request.device = index as u32;
                } else if loses("devices") {
                    request.device = 0;
                }
                if !entry.build.has_response_times {
                    request.response_ns = None;
                }
            }
            prop_assert_eq!(&read, &expected, "{}", entry.name);
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let lenient = ReadOptions { skip_damaged: true, ..ReadOptions::default() };
        for entry in FORMATS.entries {
            drain(open(&bytes, Some(entry.name), &lenient));
        }
        drain(open(&bytes, None, &lenient));
    }

    /// Nearly right bytes reach deeper.
    #[test]
    fn no_damage_to_a_trace_makes_a_reader_panic(
        requests in requests(),
        at in any::<prop::sample::Index>(),
        put in proptest::collection::vec(any::<u8>(), 0..12),
    ) {
        let lenient = ReadOptions { skip_damaged: true, ..ReadOptions::default() };
        for entry in FORMATS.entries.iter().filter(|entry| entry.build.encoder.is_some()) {
            let mut bytes = write(entry.name, &requests);
            if bytes.is_empty() {
                continue;
            }
            let at = at.index(bytes.len());
            let end = (at + put.len()).min(bytes.len());
            bytes.splice(at..end, put.iter().copied());
            drain(open(&bytes, Some(entry.name), &lenient));
            drain(open(&bytes, None, &ReadOptions::default()));
        }
        let mut bytes = srt(&[[56, 1, 0, 500, 174, 19_687, 4096, 1056, 7, 4, 1, 27, 0, 1]; 3]);
        let at = at.index(bytes.len());
        bytes.splice(at..at, put.iter().copied());
        drain(open(&bytes, Some("hp-srt"), &lenient));
        let mut text = BLKPARSE.as_bytes().to_vec();
        text.splice(at.min(text.len())..at.min(text.len()), put.iter().copied());
        drain(open(&text, Some("blkparse"), &lenient));
    }
}

fn drain(trace: ssdlab::Result<Trace>) {
    let Ok(mut trace) = trace else { return };
    let mut last = 0;
    while let Ok(Some(request)) = trace.next_request() {
        assert!(request.time_ns >= last, "times go on");
        assert!(request.offset.checked_add(u64::from(request.length)).is_some());
        last = request.time_ns;
    }
}

#[test]
fn every_format_says_what_it_loses_or_that_it_is_only_read() {
    for entry in FORMATS.entries {
        let build = &entry.build;
        assert!(build.encoder.is_some() || build.loses.is_empty(), "{}", entry.name);
        assert!(build.encoder.is_none() || entry.name == "csv" || !build.loses.is_empty());
    }
    assert_eq!(KINDS.len(), 4);
}
