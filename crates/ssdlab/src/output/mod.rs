//! Documents in the formats that others read.

mod fio_json;

pub use fio_json::{Context, document};
