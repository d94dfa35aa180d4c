//! Job files as people write them: fixtures, examples, and text that is no job file at all.

use crate::common::cases;
use crate::support::has_fio;
use proptest::prelude::*;
use ssdlab::error::Error;
use ssdlab::job::{Generator, JobFile, ParseSource, options, parse};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const MIB: u64 = 1 << 20;

fn read(text: &str) -> Result<JobFile, Error> {
    let include = |name: &str| std::fs::read_to_string(folder("jobs").join(name));
    let env = BTreeMap::from([("RW_MODE".to_string(), "randread".to_string())]);
    parse(text, &ParseSource { file: "test.fio".into(), env, include: &include })
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn job_files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in [folder("jobs"), folder("../../../examples")] {
        for entry in std::fs::read_dir(&folder).unwrap() {
            found.push(entry.unwrap().path());
        }
    }
    found.retain(|p| p.extension().is_some_and(|e| e == "fio"));
    found.sort();
    assert!(found.len() >= 10, "{found:?}");
    found
}

/// Draws I/Os of every process and checks what a device asks of them.
fn draw(file: &JobFile, capacity: u64, ios: u32) -> Result<u64, Error> {
    let mut drawn = 0;
    for job in &file.jobs {
        for thread in 0..job.schedule.numjobs.min(4) {
            let mut generator = Generator::new(job, thread, capacity, 1)?;
            for io in std::iter::from_fn(|| generator.next()).take(ios as usize) {
                if io.op != ssdlab::device::Op::Flush {
                    assert!(io.len > 0 && io.len % 512 == 0 && io.offset % 512 == 0, "{io:?}");
                    assert!(io.offset + io.len <= capacity, "{io:?} beyond {capacity}");
                }
                drawn += 1;
            }
        }
    }
    Ok(drawn)
}

#[test]
fn fixtures_and_examples_run_on_a_drive() {
    for path in job_files() {
        let file = read(&std::fs::read_to_string(&path).unwrap());
        let file = file.unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let drawn = draw(&file, 1024 * MIB, 5000).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        assert!(drawn > 100, "{path:?}: {drawn} I/Os");
    }
}

#[test]
fn fio_accepts_the_fixtures_and_examples_too() {
    if !has_fio() {
        return;
    }
    for path in job_files() {
        let mut fio = Command::new("fio");
        let out = fio
            .current_dir(folder("jobs"))
            .env("RW_MODE", "randread")
            .args(["--parse-only", path.to_str().unwrap()])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && said.is_empty(), "{path:?}: {said}");
    }
}

#[test]
fn every_option_reads_its_own_example() {
    for option in options::all() {
        let extra = match option.name {
            "time_based" => "runtime=1\n",
            "wait_for" | "zonemode" => "zonesize=64k\n",
            "zonesize" => "zonemode=strided\n",
            "steadystate_duration" => "new_group\n",
            _ => "",
        };
        let extra = if option.name == "wait_for" { "" } else { extra };
        let text = format!("[a]\nsize=1m\n[b]\n{extra}{}={}\n", option.name, option.example);
        let result = read(&text);
        match option.class {
            options::Class::Unsupported => {
                let message = result.unwrap_err().to_string();
                assert!(message.contains("simulated drives do not support"), "{message}");
            }
            _ => drop(result.unwrap_or_else(|e| panic!("{e}"))),
        }
    }
}

#[test]
fn what_fio_does_anyway_may_be_said() {
    for line in ["create_only=0", "verify_only=0"] {
        let file = read(&format!("[a]\n{line}\n")).unwrap();
        assert_eq!(file.ignored.len(), 1, "{line}");
    }
}

#[test]
fn errors_name_file_line_option_and_what_is_meant() {
    let cases = [
        (
            "[a]\nrw=read\niodpeth=4\n",
            "test.fio:3: iodpeth: fio has no option of this name; did you mean \"iodepth\"?",
        ),
        (
            "[a]\nverify_only=1\n",
            "test.fio:2: verify_only: fio has this option (reading what an earlier run wrote), but",
        ),
        ("[a]\nbs=1.5k\n", "test.fio:2: bs: found \"1.5k\", expected a whole number"),
        ("[a]\nrw=randraed\n", "did you mean \"randread\"?"),
        ("rw=read\n[a]\n", "test.fio:1: rw: it stands before the first section"),
        ("[a\n", "test.fio:1: [a: a section is a name in square brackets"),
        ("", "test.fio: has no job section, such as [fill]"),
        ("[global]\nrw=read\n", "test.fio: has no job section, such as [fill]"),
        ("[a]\ntime_based\n", "test.fio:2: [a] time_based: needs runtime"),
        ("[a]\ndirect\n", "test.fio:2: direct: needs a value, such as direct=1"),
        ("[a]\nfilename=${NOWHERE}\n", "the environment variable NOWHERE is not set"),
        ("[a]\ninclude nofile\n", "test.fio:2: include: cannot read \"nofile\""),
        ("[fill]\n[b]\nwait_for=fil\n", "no job \"fil\" stands above; did you mean \"fill\"?"),
        ("[a]\niodepth=0\n", "a number from 1"),
        ("[a]\nbssplit=4k/60:8k/50\n", "add up to 100"),
        ("[a]\nbs=4k-8k\n", "bsrange=4k-64k"),
        ("[a]\nnumjobs=$ncpus\n", "property of this host"),
        ("[a]\nrate=1m\nrate_iops=,100\n", "a job has either rate or rate_iops"),
        ("[a]\nnorandommap=yes\n", "expected 0 or 1, or the name alone"),
        ("[a]\nzonesize=1m\n", "only with zonemode=strided"),
        ("[a]\ncreate_only\n", "create_only: fio has this option (only laying files out), but"),
        ("[a]\nexitall=0\n", "to fio the option is on whatever its value"),
        ("[a]\nopendir=x\n", "fio has this option (files of a directory), but"),
        ("[a]\nfile_service_type=random:0\n", "a number from 1"),
        ("[a]\nfile_service_type=zip:1.2\n", "roundrobin, sequential, random, zipf:theta"),
        ("[a]\nfile_service_type=zipf:1\n", "an exponent other than 1"),
        ("[a]\nfile_service_type=gauss:100\n", "below 100 percent"),
        ("[a]\nrandom_distribution=zoned_abs:50:50/1m\n", "found \"50:50/1m\", expected zones as"),
        ("[a]\nba=0\n", "test.fio:2: ba: found \"0\", expected a size above 0"),
        ("[a]\nba=4k,0\n", "test.fio:2: ba: found \"0\", expected a size above 0"),
        ("[a]\nfilesize=0\n", "test.fio:2: filesize: found \"0\", expected a size above 0"),
        ("[a]\nfilesize=0-4k\n", "test.fio:2: filesize: found \"0\", expected a size above 0"),
        ("[a]\nread_iolog=x\nreplay_align=0\n", "expected a power of two"),
        ("[a]\nzonemode=strided\nzonesize=10%\n", "expected a whole number"),
        ("[a]\nzonemode=strided\nzonesize=1m\nzonerange=1k\n", "less than one I/O of 4KiB"),
        ("[a]\nrw=read:4k\nzonemode=strided\nzonesize=1m\n", "not supported with zonemode"),
    ];
    for (text, expected) in cases {
        let message = read(text).expect_err(text).to_string();
        assert!(message.contains(expected), "{text:?} said {message:?}");
    }
}

/// Reads a job file with the files that it may include, and draws I/Os; what is said about it.
fn complaint(job: &str, files: &[(&str, &str)]) -> String {
    let include = |name: &str| match files.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok(text.to_string()),
        None => Err(std::io::Error::other(format!("there is no {name}"))),
    };
    let source = ParseSource { file: "test.fio".into(), env: BTreeMap::new(), include: &include };
    let unread = |replay: &ssdlab::job::Replay| Err(Error::Unfit(format!("no {}", replay.file)));
    let drawn = parse(job, &source).and_then(|mut file| {
        file.attach_traces(&mut { unread })?;
        draw(&file, 64 * MIB, 10)
    });
    drawn.expect_err(job).to_string()
}

#[test]
fn what_an_included_file_says_is_never_shown() {
    let inside = [
        "root:$6$hunter2:19000:0:99999",
        "hunter2=1",
        "iodepht=hunter2",
        "bs=hunter2",
        "[hunter2",
        "[a]hunter2",
        "\u{1}\u{2}hunter2\u{0}",
        "size=${hunter2}",
        "size=${hunter2",
        "size=hunter2$ncpus",
        "verify=hunter2",
        "direct=hunter2",
        "wait_for=hunter2",
        "read_iolog=hunter2",
        "include hunter2",
        "include ${hunter2}",
        "[hunter2]\nrw=read\nbs=4000",
        "[hunter2]\nrw=read\nsize=128m",
        "[hunter2]\ntime_based",
        "[hunter2]\nnumjobs=4096\nnrfiles=4096",
    ];
    for text in inside {
        let once = complaint("[a]\ninclude secret\n", &[("secret", text)]);
        assert!(once.starts_with("secret:") && !once.contains("hunter2"), "{text:?}: {once:?}");
        let files = [("between", "rw=read\n\ninclude secret\n"), ("secret", text)];
        let twice = complaint("[a]\ninclude between\n", &files);
        assert!(twice.starts_with("secret:") && !twice.contains("hunter2"), "{text:?}: {twice:?}");
    }
    let endless = complaint("include me\n", &[("me", "include me\n")]);
    assert_eq!(
        endless,
        "me:1: this line cannot be used in the job; lines of included files are not shown"
    );
}

#[test]
fn an_error_in_the_file_itself_does_not_tell_names_that_an_included_file_gave() {
    let files = [("named", "[hunter2]\nrw=read\n"), ("name", "name=hunter2\n")];
    for (job, said) in [
        ("include named\nbs=4000\n", "test.fio:2: bs: "),
        ("[a]\nrw=read\ninclude name\nbs=4000\n", "test.fio:4: bs: "),
        ("include named\n[b]\nwait_for=hunter\n", "test.fio:3: [b] wait_for: no job \"hunter\""),
    ] {
        let message = complaint(job, &files);
        assert!(message.starts_with(said) && !message.contains("hunter2"), "{message:?}");
    }
}

#[test]
fn a_job_that_does_not_fit_says_both_sizes() {
    let fit = |text: &str| draw(&read(text).unwrap(), 64 * MIB, 10).unwrap_err().to_string();
    let message = fit("[a]\nrw=read\nsize=128m\n");
    assert!(message.starts_with("test.fio:3: [a] size:"), "{message}");
    assert!(message.contains("128MiB") && message.contains("64MiB"), "{message}");
    let message = fit("[a]\nrw=read\nbs=4000\n");
    assert!(
        message.contains("bs") && message.contains("4000") && message.contains("512"),
        "{message}"
    );
    assert!(fit("[a]\noffset=64m\n").contains("offset"));
    assert!(fit("[a]\nsize=2k\n").contains("less than one I/O"));
}

#[test]
fn sections_take_the_globals_above_them() {
    let file = read(
        "[global]\nbs=8k\ndirect=1\n[a]\nrw=write ; comment\n[global]\nbs=16k\n[b]\nrw=read#c\n\
         timeout=5\nstonewall\n[b]\nname=c\nnew_group\nverify_only=0\n",
    )
    .unwrap();
    let min: Vec<u64> = file.jobs.iter().map(|j| j.pattern.sizes[0].min()).collect();
    assert_eq!(min, [8192, 16384, 16384]);
    let names: Vec<&str> = file.jobs.iter().map(|j| j.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let groups: Vec<u32> = file.jobs.iter().map(|j| j.schedule.group).collect();
    assert_eq!(groups, [0, 1, 2]);
    assert_eq!(file.jobs[1].schedule.runtime_ns, Some(5_000_000_000));
    let ignored: Vec<_> =
        file.ignored.iter().map(|i| (i.job.as_str(), i.option.as_str(), i.line)).collect();
    assert_eq!(ignored, [("global", "direct", 3), ("c", "verify_only", 15)]);
    let wanted = [("rw", "read"), ("runtime", "5"), ("stonewall", "1")];
    assert_eq!(file.jobs[1].options, wanted.map(|(a, b)| (a.to_string(), b.to_string())));
}

#[test]
fn the_base_of_sizes_is_an_option_of_its_section_and_stands_first_as_in_fio() {
    let file = read("[global]\nkb_base=1024\n[a]\nsize=8k\nkb_base=1000\n[b]\nsize=8k\n").unwrap();
    let options = |job: usize| -> Vec<(&str, &str)> {
        file.jobs[job].options.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect()
    };
    assert_eq!(options(0), [("kb_base", "1000"), ("size", "8k")]);
    assert_eq!(options(1), [("size", "8k")]);
    assert_eq!(file.global_options, [("kb_base".to_string(), "1024".to_string())]);
}

#[test]
fn schedule_and_logs_are_read() {
    let file = read(
        "[a]\niodepth=32\nnumjobs=4\nruntime=2m\ntime_based\nramp_time=500ms\nstartdelay=1-2\n\
         rate=1m,500k\nrate_process=poisson\nthinktime=50\nthinktime_blocks=8\n\
         write_bw_log\nwrite_iops_log=x\nlog_avg_msec=1000\npercentile_list=99.9:50\n\
         [b]\nrate_iops=,100\n",
    )
    .unwrap();
    let s = &file.jobs[0].schedule;
    assert_eq!((s.iodepth, s.numjobs, s.time_based), (32, 4, true));
    assert_eq!((s.runtime_ns, s.ramp_ns), (Some(120_000_000_000), 500_000_000));
    assert_eq!(s.start_delay_ns, (1_000_000_000, 2_000_000_000));
    assert_eq!(s.pace.rate_bytes, [MIB, 500 << 10, 500 << 10]);
    assert!(s.pace.rate_poisson);
    assert_eq!((s.pace.thinktime_ns, s.pace.thinktime_blocks), (50_000, 8));
    assert_eq!(file.jobs[1].schedule.pace.rate_iops, [0, 100, 100]);
    let l = &file.jobs[0].logging;
    assert_eq!((l.bw.as_deref(), l.iops.as_deref(), l.avg_msec), (Some("a"), Some("x"), 1000));
    assert_eq!(l.percentiles, [50.0, 99.9]);
}

#[test]
fn processes_and_seeds_draw_differently_and_repeat() {
    let job = |options: &str| read(&format!("[a]\nrw=randread\nsize=1m\n{options}")).unwrap();
    let ios = |file: &JobFile, thread, seed| {
        let mut g = Generator::new(&file.jobs[0], thread, 64 * MIB, seed).unwrap();
        std::iter::from_fn(move || g.next()).map(|io| io.offset).collect::<Vec<_>>()
    };
    let plain = job("");
    assert_eq!(ios(&plain, 0, 1), ios(&plain, 0, 1));
    assert_ne!(ios(&plain, 0, 1), ios(&plain, 1, 1));
    assert_ne!(ios(&plain, 0, 1), ios(&plain, 0, 2));
    assert_ne!(ios(&plain, 0, 1), ios(&job("randseed=9"), 0, 1));
    let passes = ios(&job("loops=2"), 0, 1);
    assert_eq!(passes[..256], passes[256..]);
    let passes = ios(&job("loops=2\nrandrepeat=0"), 0, 1);
    assert_ne!(passes[..256], passes[256..]);
}

#[test]
fn a_time_based_job_covers_every_block_in_every_round() {
    let text = "[a]\nrw=randwrite\nsize=1m\ntime_based\nruntime=1\nbuffer_compress_percentage=40\n";
    let file = read(text).unwrap();
    let mut generator = Generator::new(&file.jobs[0], 0, 64 * MIB, 1).unwrap();
    assert_eq!((generator.expected_bytes(), generator.expected_ios()), (None, None));
    for _ in 0..5 {
        let mut round: Vec<u64> = (0..256)
            .map(|_| {
                let io = generator.next().unwrap();
                assert_eq!(io.compressible, 40);
                io.offset
            })
            .collect();
        round.sort_unstable();
        assert!(round.iter().enumerate().all(|(i, o)| *o == i as u64 * 4096));
    }
}

#[test]
fn the_copies_of_a_process_are_numbered_from_the_last_one_down() {
    // As by fio 3.33, whose second process has the last number.
    let file = read("[a]\nnumjobs=4\nsize=1m\noffset_increment=2m\n").unwrap();
    let first = |thread| {
        let mut generator = Generator::new(&file.jobs[0], thread, 64 * MIB, 1).unwrap();
        generator.next().unwrap().offset / MIB
    };
    assert_eq!([0, 1, 2, 3].map(first), [0, 6, 4, 2]);
}

#[test]
fn all_files_of_a_job_are_open() {
    let open = |n: u32| read(&format!("[a]\nsize=1m\nnrfiles=4\nopenfiles={n}\n"));
    assert!(open(4).is_ok());
    let message = open(2).unwrap_err().to_string();
    assert!(message.contains("[a] openfiles: ") && message.contains("4 or more"), "{message}");
}

#[test]
fn a_runtime_that_fio_takes_for_none_does_not_end_what_needs_one() {
    let with = |time: &str| read(&format!("[a]\ntime_based\nruntime={time}\n"));
    for time in ["0.3", "0.9s", "0"] {
        let message = with(time).unwrap_err().to_string();
        assert!(message.contains("[a] runtime: is 0 to fio"), "{message}");
    }
    assert!(with("1.5").is_ok() && with("300ms").is_ok());
}

#[test]
fn what_is_expected_is_what_comes() {
    let loops_and_more = "size=1m\nio_size=3m\nloops=2";
    for options in [
        loops_and_more,
        "size=1m",
        "size=1m\nloops=3",
        "size=1m\nnumber_ios=10",
        "size=1m\nio_size=3m",
    ] {
        for rw in ["read", "randwrite", "randtrimwrite"] {
            let file = read(&format!("[a]\nrw={rw}\n{options}\n")).unwrap();
            let mut g = Generator::new(&file.jobs[0], 0, 64 * MIB, 1).unwrap();
            let expected = (g.expected_ios(), g.expected_bytes());
            let ios: Vec<u64> = std::iter::from_fn(|| g.next()).map(|io| io.len).collect();
            let came = (Some(ios.len() as u64), Some(ios.iter().sum()));
            assert_eq!(expected, came, "{rw} {options}");
        }
    }
}

fn line() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = options::SEMANTIC.iter().map(|o| o.name).collect();
    let values = prop_oneof![
        Just(String::new()),
        "[0-9]{1,6}[kmg%]?",
        "[a-z0-9:,/%.-]{0,12}",
        "\\PC{0,12}",
        prop::sample::select(
            options::SEMANTIC.iter().map(|o| o.example.to_string()).collect::<Vec<_>>()
        ),
    ];
    prop_oneof![
        8 => (prop::sample::select(names), values).prop_map(|(n, v)| format!("{n}={v}")),
        1 => prop::sample::select(vec!["[a]", "[global]", "[b]", "stonewall", "include x", "; c"])
            .prop_map(str::to_string),
        1 => "\\PC{0,20}",
    ]
}

/// A job that is right, of options that are drawn.
fn sane_line() -> impl Strategy<Value = String> {
    let with_examples: Vec<String> = options::SEMANTIC
        .iter()
        .filter(|o| !matches!(o.name, "wait_for" | "zonemode" | "zonesize" | "filesize"))
        .map(|o| format!("{}={}", o.name, o.example))
        .collect();
    let more = [
        "rw=rw",
        "rw=randtrimwrite",
        "rw=randread:3",
        "rw=write:8k",
        "rw=read:-8k",
        "rw=trim",
        "bs=16k",
        "bssplit=4k:8k",
        "random_distribution=pareto:0.3",
        "random_distribution=normal:5",
        "random_distribution=zoned:50/10:50/80",
        "ba=512",
        "ba=1m",
        "size=64k",
        "size=3%",
        "offset=1%",
        "zonemode=strided\nzonesize=32k",
        "loops=3",
        "time_based\nruntime=1",
    ];
    prop::sample::select(
        with_examples.into_iter().chain(more.map(str::to_string)).collect::<Vec<_>>(),
    )
}

proptest! {
    #![proptest_config(cases(2000, 20_000))]

    #[test]
    fn no_text_makes_the_parser_panic(lines in prop::collection::vec(line(), 0..12)) {
        let text = format!("[j]\n{}", lines.join("\n"));
        if let Ok(file) = read(&text) {
            let _ = draw(&file, 16 * MIB, 50);
        }
    }

    #[test]
    fn jobs_stay_within_the_device(lines in prop::collection::vec(sane_line(), 0..8)) {
        let text = format!("[j]\n{}\n", lines.join("\n"));
        if let Ok(file) = read(&text) {
            let _ = draw(&file, 64 * MIB, 2000);
        }
    }

    #[test]
    fn a_pass_with_the_random_map_touches_each_block_once(
        blocks in 1u64..3000,
        mode in prop::sample::select(vec!["randread", "randwrite", "randrw", "randtrim"]),
        sizes in prop::sample::select(vec!["bs=4k", "bsrange=4k-32k", "bssplit=4k/50:12k/50"]),
    ) {
        let text = format!("[j]\nrw={mode}\nsize={}k\n{sizes}\n", blocks * 4);
        let file = read(&text).unwrap();
        let mut generator = Generator::new(&file.jobs[0], 0, 64 * MIB, blocks).unwrap();
        let mut seen = vec![0u8; blocks as usize];
        while let Some(io) = generator.next() {
            for block in io.offset / 4096..(io.offset + io.len) / 4096 {
                seen[block as usize] += 1;
            }
        }
        prop_assert!(seen.iter().all(|s| *s == 1), "{:?}", seen);
    }
}

#[test]
fn a_stage_begins_where_all_that_follow_wait_for_all_before() {
    let stages = |sections: &str| read(sections).unwrap().stages();
    assert_eq!(stages("[a]\n[b]\n[c]\n"), [0, 0, 0]);
    assert_eq!(stages("[a]\n[b]\nstonewall\n[c]\n[d]\nstonewall\n"), [0, 1, 1, 2]);
    assert_eq!(stages("[a]\n[b]\nwait_for=a\n[c]\nwait_for=b\n"), [0, 1, 2]);
    assert_eq!(stages("[a]\n[b]\nwait_for=a\n[c]\nwait_for=a\n"), [0, 1, 1]);
    // One of two fills is awaited, or one runs beside what waits.
    assert_eq!(stages("[a]\n[b]\n[c]\nwait_for=a\n"), [0, 0, 0]);
    assert_eq!(stages("[a]\n[b]\nwait_for=a\n[c]\n"), [0, 0, 0]);
    assert_eq!(stages("[a]\n[a]\n[c]\nwait_for=a\n"), [0, 0, 1]);
    assert_eq!(stages("[a]\n[b]\nwait_for=a\n[c]\nstonewall\nwait_for=a\n"), [0, 1, 2]);
}
