//! Flash that exists: what datasheets and papers say of it, once for all drives that are made of it.

use crate::registry::{Registry, toml_entry};

/// Parts by name; each is TOML, keys of `nand` with their sources. A time is that of one operation on
/// all planes: of a part without `one_shot`, programming a word line of several pages counts for each page its share.
pub const PARTS: Registry<&'static str> = Registry {
    what: "NAND part",
    entries: &[
        toml_entry!("parts", "imft-50nm-slc", "Intel/Micron 50 nm SLC, 8 Gbit"),
        toml_entry!("parts", "imft-50nm-mlc", "Intel/Micron 50 nm MLC, 16 Gbit"),
        toml_entry!("parts", "imft-34nm-mlc", "Intel/Micron 34 nm MLC, 32 Gbit"),
        toml_entry!("parts", "imft-25nm-mlc", "Intel/Micron 25 nm MLC, 64 Gbit"),
        toml_entry!("parts", "imft-25nm-het", "Intel/Micron 25 nm high-endurance MLC, 64 Gbit"),
        toml_entry!("parts", "imft-20nm-mlc", "Intel/Micron 20 nm MLC, 128 Gbit"),
        toml_entry!("parts", "imft-16nm-mlc", "Intel/Micron 16 nm MLC, 128 Gbit"),
        toml_entry!("parts", "imft-32l-mlc", "Intel/Micron 32-layer floating-gate MLC, 256 Gbit"),
        toml_entry!("parts", "imft-32l-tlc", "Intel/Micron 32-layer floating-gate TLC, 384 Gbit"),
        toml_entry!("parts", "imft-64l-tlc", "Intel/Micron 64-layer floating-gate TLC, 256 Gbit"),
        toml_entry!("parts", "imft-64l-qlc", "Intel/Micron 64-layer floating-gate QLC, 1 Tbit"),
        toml_entry!("parts", "intel-144l-tlc", "Intel 144-layer floating-gate TLC, 512 Gbit"),
        toml_entry!("parts", "micron-128l-tlc", "Micron 128-layer replacement-gate TLC, 512 Gbit"),
        toml_entry!("parts", "micron-176l-tlc", "Micron 176-layer replacement-gate TLC, 512 Gbit"),
        toml_entry!("parts", "samsung-27nm-mlc", "Samsung 27 nm MLC, 64 Gbit"),
        toml_entry!("parts", "samsung-21nm-mlc", "Samsung 21 nm MLC, 64 Gbit"),
        toml_entry!("parts", "samsung-v2-tlc", "Samsung 32-layer V-NAND TLC, 128 Gbit"),
        toml_entry!("parts", "samsung-v3-tlc", "Samsung 48-layer V-NAND TLC, 256 Gbit"),
        toml_entry!("parts", "samsung-v4-tlc", "Samsung 64-layer V-NAND TLC, 256 Gbit"),
        toml_entry!("parts", "samsung-v4-mlc", "Samsung 64-layer V-NAND MLC, 256 Gbit"),
        toml_entry!("parts", "samsung-v5-tlc", "Samsung 92-layer V-NAND TLC"),
        toml_entry!("parts", "samsung-v6-tlc", "Samsung 128-layer V-NAND TLC, 512 Gbit"),
        toml_entry!("parts", "toshiba-32nm-slc", "Toshiba 32 nm SLC, 32 Gbit"),
        toml_entry!(
            "parts",
            "toshiba-19nm-mlc",
            "Toshiba 19 nm MLC of the second generation, 64 Gbit"
        ),
        toml_entry!("parts", "toshiba-15nm-mlc", "Toshiba 15 nm MLC, 128 Gbit"),
        toml_entry!("parts", "bics3-tlc", "Toshiba/SanDisk BiCS3, 64-layer TLC, 256 Gbit"),
        toml_entry!("parts", "bics4-tlc", "Toshiba/SanDisk BiCS4, 96-layer TLC"),
        toml_entry!("parts", "bics5-tlc", "Kioxia/Western Digital BiCS5, 112-layer TLC, 512 Gbit"),
    ],
};
