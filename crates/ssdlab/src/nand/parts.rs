//! Flash that exists: what datasheets and papers say of it, once for all drives that are made of it.

use crate::registry::{Entry, Registry};

/// Parts by name; each is TOML, keys of `nand` with their sources. A time is that of one operation on
/// all planes: of a part without `one_shot`, programming a word line of several pages counts for each page its share.
pub const PARTS: Registry<&'static str> = Registry {
    what: "NAND part",
    entries: &[
        part(
            "imft-50nm-slc",
            "Intel/Micron 50 nm SLC, 16 Gbit",
            include_str!("parts/imft-50nm-slc.toml"),
        ),
        part(
            "imft-50nm-mlc",
            "Intel/Micron 50 nm MLC, 16 Gbit",
            include_str!("parts/imft-50nm-mlc.toml"),
        ),
        part(
            "imft-34nm-mlc",
            "Intel/Micron 34 nm MLC, 32 Gbit",
            include_str!("parts/imft-34nm-mlc.toml"),
        ),
        part(
            "imft-25nm-mlc",
            "Intel/Micron 25 nm MLC, 64 Gbit",
            include_str!("parts/imft-25nm-mlc.toml"),
        ),
        part(
            "imft-25nm-het",
            "Intel/Micron 25 nm high-endurance MLC, 64 Gbit",
            include_str!("parts/imft-25nm-het.toml"),
        ),
        part(
            "imft-20nm-mlc",
            "Intel/Micron 20 nm MLC, 128 Gbit",
            include_str!("parts/imft-20nm-mlc.toml"),
        ),
        part(
            "imft-16nm-mlc",
            "Intel/Micron 16 nm MLC, 128 Gbit",
            include_str!("parts/imft-16nm-mlc.toml"),
        ),
        part(
            "imft-32l-mlc",
            "Intel/Micron 32-layer floating-gate MLC, 256 Gbit",
            include_str!("parts/imft-32l-mlc.toml"),
        ),
        part(
            "imft-32l-tlc",
            "Intel/Micron 32-layer floating-gate TLC, 384 Gbit",
            include_str!("parts/imft-32l-tlc.toml"),
        ),
        part(
            "imft-64l-tlc",
            "Intel/Micron 64-layer floating-gate TLC, 256 Gbit",
            include_str!("parts/imft-64l-tlc.toml"),
        ),
        part(
            "imft-64l-qlc",
            "Intel/Micron 64-layer floating-gate QLC, 1 Tbit",
            include_str!("parts/imft-64l-qlc.toml"),
        ),
        part(
            "intel-144l-tlc",
            "Intel 144-layer floating-gate TLC, 512 Gbit",
            include_str!("parts/intel-144l-tlc.toml"),
        ),
        part(
            "micron-128l-tlc",
            "Micron 128-layer replacement-gate TLC, 512 Gbit",
            include_str!("parts/micron-128l-tlc.toml"),
        ),
        part(
            "micron-176l-tlc",
            "Micron 176-layer replacement-gate TLC, 512 Gbit",
            include_str!("parts/micron-176l-tlc.toml"),
        ),
        part(
            "samsung-27nm-mlc",
            "Samsung 27 nm MLC, 64 Gbit",
            include_str!("parts/samsung-27nm-mlc.toml"),
        ),
        part(
            "samsung-21nm-mlc",
            "Samsung 21 nm MLC, 64 Gbit",
            include_str!("parts/samsung-21nm-mlc.toml"),
        ),
        part(
            "samsung-v2-tlc",
            "Samsung 32-layer V-NAND TLC, 128 Gbit",
            include_str!("parts/samsung-v2-tlc.toml"),
        ),
        part(
            "samsung-v3-tlc",
            "Samsung 48-layer V-NAND TLC, 256 Gbit",
            include_str!("parts/samsung-v3-tlc.toml"),
        ),
        part(
            "samsung-v4-tlc",
            "Samsung 64-layer V-NAND TLC, 256 Gbit",
            include_str!("parts/samsung-v4-tlc.toml"),
        ),
        part(
            "samsung-v4-mlc",
            "Samsung 64-layer V-NAND MLC, 256 Gbit",
            include_str!("parts/samsung-v4-mlc.toml"),
        ),
        part(
            "samsung-v5-tlc",
            "Samsung 92-layer V-NAND TLC",
            include_str!("parts/samsung-v5-tlc.toml"),
        ),
        part(
            "samsung-v6-tlc",
            "Samsung 128-layer V-NAND TLC, 512 Gbit",
            include_str!("parts/samsung-v6-tlc.toml"),
        ),
        part(
            "toshiba-32nm-slc",
            "Toshiba 32 nm SLC, 32 Gbit",
            include_str!("parts/toshiba-32nm-slc.toml"),
        ),
        part(
            "toshiba-19nm-mlc",
            "Toshiba 19 nm MLC of the second generation, 64 Gbit",
            include_str!("parts/toshiba-19nm-mlc.toml"),
        ),
        part(
            "toshiba-15nm-mlc",
            "Toshiba 15 nm MLC, 128 Gbit",
            include_str!("parts/toshiba-15nm-mlc.toml"),
        ),
        part(
            "bics3-tlc",
            "Toshiba/SanDisk BiCS3, 64-layer TLC, 256 Gbit",
            include_str!("parts/bics3-tlc.toml"),
        ),
        part(
            "bics4-tlc",
            "Toshiba/SanDisk BiCS4, 96-layer TLC",
            include_str!("parts/bics4-tlc.toml"),
        ),
        part(
            "bics5-tlc",
            "Kioxia/Western Digital BiCS5, 112-layer TLC, 512 Gbit",
            include_str!("parts/bics5-tlc.toml"),
        ),
    ],
};

const fn part(
    name: &'static str,
    summary: &'static str,
    build: &'static str,
) -> Entry<&'static str> {
    Entry { name, summary, reference: "", build }
}
