//! All tests of the core that use it from outside, in one program: the core, its helpers and what they
//! instantiate are compiled and linked once, and the threads of one process are never idle while a long
//! test of another file is under way. `cargo test --test suite laws::` runs one file.

use ssdlab_suite_common as common;

mod support;

mod analytic;
mod array;
mod array_any;
mod array_failure;
mod array_power;
mod bad_input;
mod cache;
mod cache_analytic;
mod cache_device;
mod cache_reference;
mod card_firmware;
mod checkpoint;
mod collection_schedule;
mod compression;
mod controller;
mod die_schedule;
mod driver;
mod fio_document;
mod firmware;
mod flash;
mod golden;
mod hdd;
mod job_ends;
mod job_files;
mod job_fio_oracle;
mod job_pace;
mod job_queue;
mod job_search;
mod latencies;
mod laws;
mod maps;
mod measured;
mod namespace;
mod outage;
mod passing;
mod power;
mod preconditioning;
mod prepare;
mod properties;
mod read_ahead;
mod replay;
mod session;
mod shared_paths;
mod slc_cache;
mod stationary;
mod tidy;
mod tier;
mod timing;
mod traces;
mod wear;
mod work;
mod write_buffer;
