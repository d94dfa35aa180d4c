"""Documents as ``smartctl --json`` writes them, made for the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = tuple[int, str, int, int, str]
"""Id, name, normalized value, threshold, raw value as printed."""

JANUARY = 1_700_000_000
DAY = 86_400


def smartctl(status: int = 0, *messages: str) -> dict[str, Any]:
    """What smartctl says of itself."""
    told = [{"string": one, "severity": "error"} for one in messages]
    return {"version": [7, 3], "exit_status": status, "messages": told}


def nvme(log: Mapping[str, object] = {}, **top: object) -> dict[str, Any]:
    """An NVMe drive in good order: 2 TB written in 500 days under power, 10 % used."""
    return {
        "smartctl": smartctl(),
        "local_time": {"time_t": JANUARY},
        "device": {"name": "/dev/nvme0", "type": "nvme", "protocol": "NVMe"},
        "model_name": "Example NVMe 1TB",
        "serial_number": "S1",
        "firmware_version": "F1",
        "nvme_total_capacity": 1_000_204_886_016,
        "smart_status": {"passed": True, "nvme": {"value": 0}},
        "temperature": {"current": 40},
        "power_cycle_count": 20,
        "power_on_time": {"hours": 12_000},
        "nvme_smart_health_information_log": {
            "critical_warning": 0,
            "temperature": 40,
            "available_spare": 100,
            "available_spare_threshold": 10,
            "percentage_used": 10,
            "data_units_read": 1_000_000,
            "data_units_written": 4_000_000,
            "power_on_hours": 12_000,
            "power_cycles": 20,
            "unsafe_shutdowns": 3,
            "media_errors": 0,
            "warning_temp_time": 0,
            "critical_comp_time": 0,
            **log,
        },
        **top,
    }


def sata(family: str | None, model: str, rows: Sequence[Row], **top: object) -> dict[str, Any]:
    """A SATA SSD with these attributes; ``family`` None for one not in smartctl's database."""
    table = [
        {
            "id": number,
            "name": name,
            "value": value,
            "worst": value,
            "thresh": threshold,
            "when_failed": "",
            "flags": {"prefailure": threshold > 0, "string": "PO--CK "},
            "raw": {"value": int(raw) if raw.isdigit() else 7, "string": raw},
        }
        for number, name, value, threshold, raw in rows
    ]
    known = {} if family is None else {"model_family": family}
    return {
        "smartctl": smartctl(),
        "local_time": {"time_t": JANUARY},
        "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"},
        "model_name": model,
        **known,
        "in_smartctl_database": family is not None,
        "serial_number": "S2",
        "firmware_version": "F2",
        "user_capacity": {"blocks": 937_703_088, "bytes": 480_103_981_056},
        "logical_block_size": 512,
        "rotation_rate": 0,
        "smart_status": {"passed": True},
        "temperature": {"current": 30},
        "power_cycle_count": 5,
        "power_on_time": {"hours": 2400},
        "ata_smart_attributes": {"revision": 1, "table": table},
        **top,
    }


def sas(**top: object) -> dict[str, Any]:
    """A SAS SSD that has read 20 GB and written 10.5 GB."""
    return {
        "smartctl": smartctl(),
        "device": {"name": "/dev/sdb", "type": "scsi", "protocol": "SCSI"},
        "scsi_vendor": "EXAMPLE",
        "scsi_product": "SAS SSD",
        "scsi_model_name": "EXAMPLE SAS SSD",
        "scsi_revision": "0001",
        "serial_number": "S3",
        "rotation_rate": 0,
        "user_capacity": {"bytes": 960_197_124_096},
        "smart_status": {"passed": True},
        "temperature": {"current": 35, "drive_trip": 65},
        "power_on_time": {"hours": 3862, "minutes": 30},
        "scsi_percentage_used_endurance_indicator": 4,
        "scsi_grown_defect_list": 0,
        "scsi_error_counter_log": {
            "read": {"gigabytes_processed": "20.000", "total_uncorrected_errors": 1},
            "write": {"gigabytes_processed": "10.500", "total_uncorrected_errors": 2},
        },
        **top,
    }


def later(days: float, **log: int) -> dict[str, Any]:
    """The NVMe drive some days after, always switched on."""
    hours = 12_000 + int(days * 24)
    return nvme(
        log, local_time={"time_t": JANUARY + int(days * DAY)}, power_on_time={"hours": hours}
    )


INTEL_ROWS: Sequence[Row] = (
    (5, "Reallocated_Sector_Ct", 100, 0, "0"),
    (174, "Unsafe_Shutdown_Count", 100, 0, "13"),
    (187, "Uncorrectable_Error_Cnt", 100, 0, "0"),
    (190, "Drive_Temperature", 74, 0, "26 (Min/Max 16/35)"),
    (197, "Pending_Sector_Count", 100, 0, "0"),
    (199, "CRC_Error_Count", 100, 0, "0"),
    (226, "Workld_Media_Wear_Indic", 100, 0, "15544"),
    (232, "Available_Reservd_Space", 100, 10, "0"),
    (233, "Media_Wearout_Indicator", 85, 0, "0"),
    (241, "Host_Writes_32MiB", 100, 0, "1000000"),
    (242, "Host_Reads_32MiB", 100, 0, "2000000"),
    (243, "NAND_Writes_32MiB", 100, 0, "1500000"),
)
MICRON_ROWS: Sequence[Row] = (
    (170, "Reserved_Block_Pct", 98, 10, "0"),
    (202, "Percent_Lifetime_Remain", 93, 1, "7"),
    (246, "Total_LBAs_Written", 100, 0, "272291616"),
    (247, "Host_Program_Page_Count", 100, 0, "8000000"),
    (248, "Bckgnd_Program_Page_Cnt", 100, 0, "2000000"),
)
PHISON_ROWS: Sequence[Row] = (
    (169, "Bad_Block_Rate", 100, 0, "4"),
    (170, "Bad_Blk_Ct_Erl/Lat", 100, 10, "2/6"),
    (173, "MaxAvgErase_Ct", 100, 0, "50 (Average 17)"),
    (231, "SSD_Life_Left", 98, 0, "98"),
    (233, "Flash_Writes_GiB", 100, 0, "979"),
    (241, "Lifetime_Writes_GiB", 100, 0, "398"),
    (148, "Unknown_Attribute", 100, 0, "0"),
)
SAMSUNG_ROWS: Sequence[Row] = (
    (177, "Wear_Leveling_Count", 91, 5, "1661"),
    (179, "Used_Rsvd_Blk_Cnt_Tot", 100, 10, "0"),
    (199, "CRC_Error_Count", 99, 0, "12"),
    (202, "Exception_Mode_Status", 100, 10, "0"),
    (235, "POR_Recovery_Count", 99, 0, "30"),
    (241, "Total_LBAs_Written", 99, 0, "2000000000"),
    (251, "NAND_Writes", 100, 0, "3000000000"),
)
