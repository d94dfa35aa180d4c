"""What the attributes of ATA drives mean: no standard says so, and every vendor chose for itself.

An entry is a number, a pattern for the name that smartctl gives it (which depends on the drive's
family), and where the meaning comes from. Where smartctl does not know the family it prints default
names that need not fit; meanings with a vendor's unit then do not apply, and the attribute stays
unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

How = Literal["raw", "second", "used raw", "left", "left agreed", "used agreed", "value", "told"]
"""Which number of an attribute is meant.

raw: the first number of the raw value; second: the one after its slash; used raw: raw is percent
used; left: the normalized value is percent left; left agreed, used agreed: raw is percent left, or
used, and counts only where the normalized value says the same; value: the normalized value; told:
a meaning without a field."""

SECTOR = 512
MIB = 1 << 20
GIB = 1 << 30
GB = 10**9

_DB = "smartmontools' drive database"
_USE = "common use among vendors, named by smartmontools"
_INTEL = "Intel SSD DC S3700 product specification"
_MICRON = "Micron TN-FD-22, client SATA SSD SMART attributes"
_PHISON = "Phison MKP_521 SMART attributes, by smartmontools' drive database"
_MZMPC = "Samsung MZMPC datasheet, with smartmontools' drive database"
_WEAR_COUNT = "AnandTech's endurance tests of Samsung drives"
_LIFETIME = 169
"""The attribute whose name says by itself what it means."""


@dataclass(frozen=True)
class Meaning:
    """What one attribute means on the drives it fits."""

    id: int
    name: str
    """Pattern for the whole of smartctl's name."""
    field: str
    """Of :class:`~ssdlab.smart.Health`; empty where it only explains."""
    how: How
    what: str
    source: str
    unit: int = 1
    """Bytes, or 1."""
    family: str = ""
    """Pattern to be found in the family or model; empty for any."""
    known: bool = False
    """Whether it holds only for drives in smartctl's database."""

    def fits(self, number: int, name: str, family: str, known: bool) -> bool:
        """Whether this is what that attribute of such a drive means."""
        return (
            self.id == number
            and re.fullmatch(self.name, name) is not None
            and (known or not self.known)
            and re.search(self.family, family) is not None
        )


def _each(numbers: Iterable[int], make: Callable[..., Meaning], *more: Any) -> list[Meaning]:
    """The same meaning of several attributes."""
    return [make(number, *more) for number in numbers]


def _wear(
    number: int, name: str, how: How, source: str, family: str = "", what: str = ""
) -> Meaning:
    """Of the rated endurance, what is used. Where smartctl's names may be a guess, only on drives
    that it knows."""
    which = how.split()[0]
    agreed = f"percent of the rated endurance {which}, where normalized and raw value agree"
    plain = "normalized: percent of the rated endurance left"
    of = what or (agreed if "agreed" in how else plain)
    known = how != "left" and not family and number != _LIFETIME
    return Meaning(number, name, "used_percent", how, of, source, 1, family, known)


def _spare(number: int, name: str, source: str = _DB, family: str = "", more: str = "") -> Meaning:
    what = f"normalized: percent of the reserve blocks left{more}"
    return Meaning(number, name, "spare_percent", "value", what, source, 1, family, not family)


def _count(
    number: int, field: str, what: str, name: str, source: str = _USE, family: str = ""
) -> Meaning:
    """A counter of the raw value; vendors' own only on drives that smartctl knows."""
    known = source != _USE and not family
    return Meaning(number, name, field, "raw", what, source, 1, family, known)


def _bytes(
    number: int, name: str, field: str, unit: int, source: str = _DB, family: str = ""
) -> Meaning:
    who = {
        "written_bytes": "written by the host",
        "read_bytes": "read by the host",
        "nand_bytes": "programmed into flash",
    }
    size = {SECTOR: "sectors of 512 bytes", MIB: "MiB", 32 * MIB: "32 MiB", GIB: "GiB", GB: "GB"}
    what = f"{who[field]}, in {size[unit]}"
    return Meaning(number, name, field, "raw", what, source, unit, family, known=True)


_INTEL_DRIVES = r"(?i)intel|solidigm"
_SAMSUNG_DRIVES = r"(?i)samsung"
_NOT_SANDISK = r"^(?!.*(?i:sandisk))"
_MICRON_DRIVES = r"(?i)micron|crucial"

TABLE: tuple[Meaning, ...] = (
    # Wear. Where a drive has several, the first counts.
    _wear(
        233,
        "Media_Wearout_Indicator",
        "left",
        _INTEL,
        _INTEL_DRIVES,
        "normalized: percent of the rated erase cycles left, from 100 down to 1",
    ),
    _wear(
        177,
        "Wear_Leveling_Count",
        "left",
        _WEAR_COUNT,
        _SAMSUNG_DRIVES,
        "normalized: percent of the rated erase cycles left; raw: mean erases of a block",
    ),
    _wear(
        202,
        "Percent_Lifetime_(Remain|Used)|Perc_Rated_Life_Used",
        "used raw",
        _MICRON,
        _MICRON_DRIVES,
        "raw: percent of the rated endurance used, though smartctl may call it what remains",
    ),
    _wear(
        231,
        "SSD_Life_Left(_Perc)?|Lifetime_Left|Percent_Lifetime_Remain|Perc_Rated_Life_Remain",
        "left",
        "Phison MKP_521 and SandForce, by smartmontools' drive database",
    ),
    _wear(_LIFETIME, "Remaining_Lifetime_Perc|Lifetime_Remaining%", "left agreed", _DB),
    *_each(
        (177, 178, 201, 209, 233, 245, 248),
        _wear,
        "Remaining_Lifetime_Perc|(Perc(ent)?_|PCT_|Drive_?)?(Rated_)?(Life(time)?|LifeLeft)"
        "_(Remain(ing)?|Left)%?|Remaining_Life",
        "left agreed",
        _DB,
    ),
    *_each((173, 245), _wear, "Percent_Life_Used|Drive_?Life_Used%", "used agreed", _DB),
    # Spare blocks.
    *_each((232, 170), _spare, "Available_Reservd_Space", _INTEL, _INTEL_DRIVES, ", from 100"),
    _spare(170, "Reserved_Block_Pct"),
    _spare(232, "Perc_Avail_Resrvd_Space"),
    _spare(179, "Used_Rsvd_Blk_Cnt_Tot", _MZMPC, _SAMSUNG_DRIVES, "; raw: blocks used"),
    # Errors. Where a drive has several, the largest counts.
    _count(
        5,
        "reallocated",
        "sectors or blocks replaced by spares",
        "Reallocated_Sector_Ct|Retired_Block_Count|Reallocate_NAND_Blk_Cnt|Reallocated_Block_Count",
    ),
    Meaning(
        170,
        "Bad_Blk_Ct_Erl/Lat|Early/Later_Bad_Blck_Ct",
        "reallocated",
        "second",
        "bad blocks from the factory / grown later",
        _PHISON,
        known=True,
    ),
    _count(
        170,
        "reallocated",
        "blocks that went bad since new",
        "Grown_(Failing|Bad)_Blocks?(_Ct)?",
        _DB,
    ),
    _count(
        197,
        "pending",
        "sectors that could not be read and wait to be written again",
        "Current_Pending_(Sector|ECC_Cnt)|Pending_Sector_Count",
    ),
    _count(
        187,
        "uncorrectable",
        "errors beyond correction, reported to the host",
        "Reported_Uncorrect|Uncorrectable_(Error_Cnt|ECC_Ct)|Reported_UE_Counts",
    ),
    _count(
        198,
        "uncorrectable",
        "sectors beyond correction, found by the drive's own scan",
        "Offline_Uncorrectable|Uncor_Read_Error_Ct",
    ),
    *_each(
        (199, 218),
        _count,
        "crc_errors",
        "transfers spoiled between drive and host",
        "(UDMA_|SATA_)?CRC_Error(_Count)?",
    ),
    *_each(
        (174, 192),
        _count,
        "unsafe_shutdowns",
        "times that the power went without notice",
        "(Unsafe|Unclean)_Shutdown_(Count|Ct)|Unexpect(ed)?_(Power|Pwr)_?Loss(_Cn?t)?"
        "|Pwr_Cycle_Ct_Unplanned|Unexpected_Power_Cycle",
    ),
    _count(
        235,
        "unsafe_shutdowns",
        "recoveries after the power went without notice",
        "POR_Recovery_Count",
        _MZMPC,
        _SAMSUNG_DRIVES,
    ),
    # Amounts.
    _bytes(241, "Total_LBAs_Written", "written_bytes", SECTOR, family=_NOT_SANDISK),
    _bytes(242, "Total_LBAs_Read", "read_bytes", SECTOR, family=_NOT_SANDISK),
    _bytes(246, "Total_LBAs_Written", "written_bytes", SECTOR, _MICRON),
    _bytes(241, "Host_Writes_32MiB", "written_bytes", 32 * MIB, _INTEL),
    _bytes(225, "Host_Writes_32MiB", "written_bytes", 32 * MIB, _INTEL),
    _bytes(242, "Host_Reads_32MiB", "read_bytes", 32 * MIB, _INTEL),
    _bytes(241, "(Host|Lifetime|Total)_Writes_GiB", "written_bytes", GIB),
    _bytes(242, "(Host|Lifetime|Total)_Reads_GiB", "read_bytes", GIB),
    _bytes(241, "Total_Writes_GB|Lifetime_Wts_Frm_Hst_GB", "written_bytes", GB),
    _bytes(242, "Total_Reads_GB|Lifetime_Rds_Frm_Hst_GB", "read_bytes", GB),
    _bytes(199, "Host_Writes_GiB", "written_bytes", GIB),
    _bytes(198, "Host_Reads_GiB", "read_bytes", GIB),
    _bytes(175, "Host_Writes_MiB", "written_bytes", MIB),
    _bytes(174, "Host_Reads_MiB", "read_bytes", MIB),
    _bytes(243, "NAND_Writes_32MiB", "nand_bytes", 32 * MIB),
    _bytes(233, "Flash_Writes_32MiB", "nand_bytes", 32 * MIB),
    _bytes(245, "Flash_Writes_32MiB", "nand_bytes", 32 * MIB),
    _bytes(249, "NAND_Writes_1GiB|Total_NAND_Prog_Ct_GiB", "nand_bytes", GIB),
    _bytes(233, "NAND_Writes_1GiB|Flash_Writes_GiB|Total_NAND_Writes_GiB", "nand_bytes", GIB),
    _bytes(234, "Lifetime_NAND_Prg_GiB", "nand_bytes", GIB),
    _bytes(243, "NAND_Writes_GiB", "nand_bytes", GIB),
    _bytes(233, "Lifetime_Wts_To_Flsh_GB", "nand_bytes", GB),
    _bytes(235, "Flash_Writes_(Sectors|LBAs)", "nand_bytes", SECTOR),
    Meaning(
        251,
        "NAND_Writes",
        "nand_bytes",
        "raw",
        "programmed into flash, in sectors of 512 bytes",
        "inferred: on a PM883 it equals the mean erase count (177) times the flash it has",
        SECTOR,
        family=_SAMSUNG_DRIVES,
        known=True,
    ),
    _count(
        247, "host_pages", "flash pages programmed for the host", "Host_Program_Page_Count", _MICRON
    ),
    _count(
        248,
        "other_pages",
        "flash pages programmed by the drive for itself",
        "(FTL|Bckgnd)_Program_Page_C(oun|n)t",
        _MICRON,
    ),
)
"""Meanings with a field in :class:`~ssdlab.smart.Health`."""


def _told(number: int, name: str, what: str, source: str = _USE, known: bool = False) -> Meaning:
    return Meaning(number, name, "", "told", what, source, known=known)


EXPLAINED: tuple[Meaning, ...] = (
    _told(1, "Raw_Read_Error_Rate", "read errors of the raw medium, corrected ones included"),
    _told(2, "Throughput_Performance", "a hard disk's own measure of its speed"),
    _told(3, "Spin_Up_Time", "time that the platters took to reach speed"),
    _told(4, "Start_Stop_Count", "starts of the platters"),
    _told(7, "Seek_Error_Rate", "seeks that missed"),
    _told(8, "Seek_Time_Performance", "a hard disk's own measure of its seeks"),
    _told(9, "Power_On_Hours.*", "power-on time"),
    _told(10, "Spin_Retry_Count", "starts of the platters that had to be tried again"),
    _told(12, "Power_Cycle_Count|Device_Power_Cycle_Cnt", "power cycles"),
    _told(167, "(SSD_)?(Write_)?Protect_[Mm]ode|Write_Protect_Mode", "not 0: write-protected", _DB),
    _told(168, "SATA_P[Hh][Yy]_Err(or_Count|or_Cnt|_Ct)", "errors of the SATA link", _DB),
    _told(
        173,
        "(Ave|Avg)_Block-Erase_Count|Avg_(Program/Erase_Ct|Write/Erase_Count)|Average_PE_.*",
        "mean erases of a block",
        _MICRON,
    ),
    _told(173, "MaxAvgErase_Ct", "most erases of a block, and the mean", _PHISON),
    _told(171, "Program_Fail_.*", "programs of flash pages that failed"),
    _told(172, "Erase_Fail_.*", "erases of flash blocks that failed"),
    _told(175, "Power_Loss_Cap_Test", "last test of the capacitor for power loss", _INTEL),
    _told(180, "Unused_(Rsvd_Blk_Cnt_Tot|Reserve_NAND_Blk)", "reserve blocks left, a count"),
    _told(181, "Program_Fail_.*", "programs of flash pages that failed"),
    _told(182, "Erase_Fail_.*", "erases of flash blocks that failed"),
    _told(183, "Runtime_Bad_Block", "blocks that went bad since new"),
    _told(183, "SATA_.*Downshift.*", "times that the SATA link fell back to a lower speed"),
    _told(
        184, "End-to-End_Error(_Count)?", "data corrupted between the drive's buffer and the host"
    ),
    _told(188, "Command_Timeout", "commands that took too long"),
    _told(190, ".*Temperature.*|Temperature_Case", "temperature, or 100 minus it"),
    _told(192, "Power-Off_Retract_Count", "heads parked on loss of power"),
    _told(193, "Load_Cycle_Count", "heads parked and loaded"),
    _told(194, ".*Temperature.*", "temperature"),
    _told(195, "Hardware_ECC_Recovered|Cumulativ_Corrected_ECC|ECC_Error_Rate", "corrected errors"),
    _told(196, "Reallocated_Event_Count", "times that data was moved to spares"),
    _told(202, "Exception_Mode_Status", "not 0: the firmware runs in an emergency mode", _DB, True),
    _told(206, "Write_Error_Rate", "programs that failed", _MICRON),
    _told(210, "(RAIN_Success_Recovered|Success_RAIN_Recov_Cnt)", "pages saved by parity", _MICRON),
    _told(226, "Workld_Media_Wear_Indic", "wear since the workload timer, percent x 1024", _INTEL),
    _told(227, "Workld_Host_Reads_Perc", "reads since the workload timer, percent", _INTEL),
    _told(228, "Workload_Minutes", "minutes of the workload timer", _INTEL),
    _told(234, "Thermal_Throttle_Status", "throttling now, percent / times throttled", _INTEL),
    _told(243, "SATA_Downshift_Ct", "times that the SATA link fell back", _DB, True),
    _told(244, "Thermal_Throttle(_St)?|Temp_Throttle_Status", "thermal throttling", _DB, True),
    _told(244, "Average_Erase_Count", "mean erases of a block", _PHISON, True),
    _told(245, "Max_Erase_Count", "most erases of a block", _PHISON, True),
    _told(245, "Timed_Workld_Media_Wear", "wear since the workload timer; 65535: off", _DB, True),
    _told(246, "Total_Erase_Count", "erases of all blocks together", _PHISON, True),
    _told(246, "Timed_Workld_RdWr_Ratio", "reads since the timer; 65535: off", _DB, True),
    _told(247, "Timed_Workld_Timer", "minutes of the workload timer; 65535: off", _DB, True),
)
"""Meanings that explain an attribute and fill no field."""


def meaning_of(number: int, name: str, family: str, known: bool) -> Meaning | None:
    """What an attribute means on a drive of that family and model; None where nobody says.

    ``known``: whether the drive is in smartctl's database, so that the names are its own.
    """
    every = (*TABLE, *EXPLAINED)
    return next((meaning for meaning in every if meaning.fits(number, name, family, known)), None)
