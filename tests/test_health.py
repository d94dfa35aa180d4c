"""Health: one meaning for what drives tell, a verdict with evidence, and nothing guessed."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ssdlab
from conftest import Cli
from health_samples import (
    INTEL_ROWS,
    JANUARY,
    MICRON_ROWS,
    PHISON_ROWS,
    SAMSUNG_ROWS,
    later,
    nvme,
    sas,
    sata,
    smartctl,
)
from ssdlab.errors import InputError
from ssdlab.smart import Health, Severity, compare, from_wear, judge, parse, project, sources, worst
from ssdlab.smart.attributes import meanings
from ssdlab.store import RunStore

SAMPLES = os.environ.get("SSDLAB_HEALTH_SAMPLES")
MIB32 = 32 << 20


def read(document: dict[str, Any]) -> Health:
    return parse(document, "drive.json")


def verdict(document: dict[str, Any]) -> Severity:
    return worst(judge(read(document)))


# What drives tell


def test_an_nvme_drive_is_read_from_its_health_log() -> None:
    health = read(nvme())
    assert (health.model, health.serial, health.firmware) == ("Example NVMe 1TB", "S1", "F1")
    assert (health.interface, health.is_ssd, health.passed) == ("NVMe", True, True)
    assert health.capacity_bytes == 1_000_204_886_016
    assert (health.used_percent, health.left_percent) == (10, 90)
    assert (health.spare_percent, health.spare_threshold_percent) == (100, 10)
    # Data units are thousands of 512 bytes.
    assert (health.written_bytes, health.read_bytes) == (2_048_000_000_000, 512_000_000_000)
    assert (health.unsafe_shutdowns, health.media_errors, health.temperature_c) == (3, 0, 40)
    assert health.write_amplification is None
    assert worst(judge(health)) is Severity.GOOD


def test_intels_units_are_32_mib_and_wear_is_the_normalized_value() -> None:
    health = read(sata("Intel S4510/S4610 Series SSDs", "INTEL SSDSC2KB019T7", INTEL_ROWS))
    assert health.used_percent == 15
    assert (health.spare_percent, health.spare_threshold_percent) == (100, 10)
    assert health.written_bytes == 1_000_000 * MIB32
    assert health.read_bytes == 2_000_000 * MIB32
    assert health.nand_bytes == 1_500_000 * MIB32
    assert health.write_amplification == 1.5
    assert health.unsafe_shutdowns == 13
    assert health.unknown == ()


def test_microns_wear_is_the_raw_value_and_its_amplification_counts_pages() -> None:
    health = read(sata("Micron 5100 Pro / 52x0 / 5300 SSDs", "Micron_5210", MICRON_ROWS))
    # smartctl calls it Percent_Lifetime_Remain; 7 is what is used.
    assert health.used_percent == 7
    assert health.spare_percent == 98
    assert health.written_bytes == 272_291_616 * 512
    assert health.nand_bytes is None
    assert health.write_amplification == 1.25


def test_phisons_units_are_gib_and_later_bad_blocks_are_the_second_number() -> None:
    health = read(sata("Phison Driven SSDs", "KINGSTON SA400M8120G", PHISON_ROWS))
    assert health.used_percent == 2
    assert health.reallocated == 6
    assert health.written_bytes == 398 << 30
    assert health.nand_bytes == 979 << 30
    assert health.write_amplification == pytest.approx(979 / 398)
    # Nobody says in which unit, so it is not guessed.
    assert [one.id for one in health.unknown] == [169, 148]


def test_samsungs_units_are_sectors() -> None:
    health = read(sata("Samsung based SSDs", "SAMSUNG MZ7LH1T9", SAMSUNG_ROWS))
    assert health.used_percent == 9
    assert health.written_bytes == 2_000_000_000 * 512
    assert health.write_amplification == 1.5
    assert (health.crc_errors, health.unsafe_shutdowns) == (12, 30)


def test_default_names_of_an_unknown_drive_are_not_believed() -> None:
    rows = [
        (177, "Wear_Leveling_Count", 60, 0, "40"),
        (233, "Media_Wearout_Indicator", 50, 0, "1000"),
        (241, "Total_LBAs_Written", 100, 0, "5000"),
        (5, "Reallocated_Sector_Ct", 100, 10, "3"),
    ]
    health = read(sata(None, "NO NAME SSD", rows))
    assert health.used_percent is None
    assert health.written_bytes is None
    assert {one.id for one in health.unknown} == {177, 233, 241}
    assert health.reallocated == 3  # means the same everywhere


def test_a_percentage_that_contradicts_itself_is_not_believed() -> None:
    for raw, used in (("93", 7.0), ("12", None)):
        rows = [(169, "Remaining_Lifetime_Perc", 93, 0, raw)]
        assert read(sata("Silicon Motion based SSDs", "TS256GSSD", rows)).used_percent == used


def test_device_statistics_come_before_attributes_of_vendors() -> None:
    page = [
        {"name": "Logical Sectors Written", "value": 1000, "flags": {"valid": True}},
        {"name": "Percentage Used Endurance Indicator", "value": 21, "flags": {"valid": True}},
        {"name": "Logical Sectors Read", "value": 9, "flags": {"valid": False}},
        {"name": "Specified Maximum Operating Temperature", "value": 70},
    ]
    statistics = {"ata_device_statistics": {"pages": [{"number": 1, "table": page}]}}
    rows = [*INTEL_ROWS]
    health = read(sata("Intel S4510", "INTEL SSD", rows, logical_block_size=4096, **statistics))
    assert health.written_bytes == 4_096_000
    assert health.used_percent == 21
    assert health.read_bytes == 2_000_000 * MIB32
    assert health.temperature_limit_c == 70


def test_a_sas_drive_is_read_from_its_log_pages() -> None:
    health = read(sas())
    assert (health.interface, health.model, health.firmware) == ("SAS", "EXAMPLE SAS SSD", "0001")
    assert (health.used_percent, health.media_errors, health.reallocated) == (4, 3, 0)
    assert (health.written_bytes, health.read_bytes) == (10_500_000_000, 20_000_000_000)
    assert health.power_on_hours == 3862.5
    assert health.temperature_limit_c == 65


def test_a_sas_drive_that_tells_its_temperature_elsewhere_is_not_at_0_degrees() -> None:
    cold = {"current": 0, "drive_trip": 0}
    reports = {"temperature_1": {"parameter_code": 0, "current": 38}}
    health = read(sas(temperature=cold, scsi_environmental_reports=reports))
    assert (health.temperature_c, health.temperature_limit_c) == (38, None)
    assert read(sas(temperature=cold)).temperature_c is None
    assert read(nvme(temperature={"current": 0})).temperature_c == 0


def test_what_older_versions_of_smartctl_call_a_sas_drive_is_understood() -> None:
    document = sas(vendor="SEAGATE", product="ST1200MM0088", revision="N004")
    for key in ("scsi_vendor", "scsi_product", "scsi_model_name", "scsi_revision"):
        del document[key]
    health = read(document)
    assert (health.model, health.firmware) == ("SEAGATE ST1200MM0088", "N004")


def test_a_hard_disk_has_neither_wear_nor_spare() -> None:
    rows = [(5, "Reallocated_Sector_Ct", 100, 5, "0"), (177, "Wear_Leveling_Count", 9, 0, "3")]
    rows += [(193, "Load_Cycle_Count", 98, 0, "2507")]
    health = read(sata("HGST Ultrastar 7K6000", "HGST HUS", rows, rotation_rate=7200))
    assert health.is_ssd is False
    assert health.used_percent is None
    assert worst(judge(health)) is Severity.GOOD
    assert "hard disk" in project([health]).assumption


def test_every_meaning_says_where_it_comes_from() -> None:
    fields = set(Health.__dataclass_fields__)
    for one in meanings():
        assert one.source, one
        assert one.what, one
        assert (one.field in fields) or (one.field == "" and one.how == "told"), one
    keys = [(one.id, one.name, one.family) for one in meanings()]
    assert len(set(keys)) == len(keys)


# Verdicts


@pytest.mark.parametrize(
    ("log", "severity", "told"),
    [
        ({"percentage_used": 89}, Severity.GOOD, "endurance is not used up"),
        ({"percentage_used": 90}, Severity.WATCH, "nearly used up"),
        ({"percentage_used": 130}, Severity.REPLACE, "rated endurance is used up"),
        ({"available_spare": 9}, Severity.REPLACE, "spare blocks are used up"),
        ({"available_spare": 10}, Severity.WATCH, "spare blocks are nearly used up"),
        ({"available_spare": 30}, Severity.GOOD, "no failure"),
        ({"critical_warning": 1}, Severity.REPLACE, "the spare is below its threshold"),
        ({"critical_warning": 2}, Severity.WATCH, "the temperature is above"),
        ({"critical_warning": 4}, Severity.REPLACE, "reliability is degraded"),
        ({"critical_warning": 8}, Severity.REPLACE, "read-only"),
        ({"critical_warning": 16}, Severity.REPLACE, "backup of volatile memory"),
        ({"media_errors": 1}, Severity.WATCH, "failed to return data"),
        ({"warning_temp_time": 5, "critical_comp_time": 2}, Severity.WATCH, "has been too hot"),
    ],
)
def test_the_health_log_is_judged(log: dict[str, int], severity: Severity, told: str) -> None:
    findings = judge(read(nvme(log)))
    assert worst(findings) is severity
    assert [one for one in findings if told in one.what and one.severity is severity]


def test_several_critical_warnings_are_all_spelled_out() -> None:
    health = read(nvme({"critical_warning": 0b1101}))
    assert len(health.critical_warnings) == 3


def test_a_drive_that_failed_its_own_test_is_to_be_replaced() -> None:
    assert verdict(nvme(smart_status={"passed": False})) is Severity.REPLACE
    assert verdict(nvme(smartctl=smartctl(0b1000_0000))) is Severity.WATCH


def test_an_attribute_at_its_threshold_is_told() -> None:
    for failed, prefailure, severity in (
        ("FAILING_NOW", True, Severity.REPLACE),
        ("now", False, Severity.WATCH),
        ("In_the_past", True, Severity.WATCH),
        ("-", True, Severity.GOOD),
    ):
        document = sata("Samsung based SSDs", "SAMSUNG", SAMSUNG_ROWS[:2])
        row = document["ata_smart_attributes"]["table"][0]
        row["when_failed"], row["flags"]["prefailure"] = failed, prefailure
        assert verdict(document) is severity, failed


def test_crc_errors_point_to_the_cable() -> None:
    findings = judge(read(sata("Samsung based SSDs", "SAMSUNG", SAMSUNG_ROWS)))
    crc = next(one for one in findings if "12 CRC errors" in one.evidence)
    assert crc.severity is Severity.WATCH
    assert "cable" in crc.what


def test_replaced_blocks_are_fine_while_there_is_spare() -> None:
    replaced = (5, "Reallocated_Sector_Ct", 100, 0, "2")
    spare = (232, "Available_Reservd_Space", 99, 10, "0")
    assert verdict(sata("Intel", "INTEL", [replaced, spare])) is Severity.GOOD
    assert verdict(sata("Intel", "INTEL", [replaced])) is Severity.WATCH


def test_the_pending_sector_that_comes_and_goes_on_an_mx500_is_no_cause_for_alarm() -> None:
    row = [(197, "Current_Pending_ECC_Cnt", 100, 0, "1")]
    assert verdict(sata("Crucial/Micron Client SSDs", "CT500MX500SSD1", row)) is Severity.GOOD
    assert verdict(sata("Intel", "INTEL", row)) is Severity.WATCH


@pytest.mark.parametrize(
    ("temperature", "severity"),
    [
        ({"current": 70}, Severity.WATCH),
        ({"current": 69}, Severity.GOOD),
        ({"current": 75, "op_limit_max": 82, "critical_limit_max": 85}, Severity.GOOD),
        ({"current": 83, "op_limit_max": 82, "critical_limit_max": 85}, Severity.WATCH),
        ({"current": 86, "op_limit_max": 82, "critical_limit_max": 85}, Severity.WATCH),
        ({"current": 69, "op_limit_max": 0}, Severity.GOOD),
    ],
)
def test_the_temperature_is_judged_by_the_drives_own_limit(
    temperature: dict[str, int], severity: Severity
) -> None:
    assert verdict(nvme(temperature=temperature)) is severity


def test_a_drive_that_tells_nothing_of_itself_is_not_called_good() -> None:
    document = sata("Intel", "INTEL", [(12, "Power_Cycle_Count", 100, 0, "5")])
    del document["smart_status"]
    assert verdict(document) is Severity.UNKNOWN


# Change and projection


def test_one_snapshot_gives_the_average_since_new() -> None:
    carried = project([read(nvme())])
    assert carried.days == 500
    assert carried.written_bytes_per_day == pytest.approx(2_048_000_000_000 / 500)
    # 10 % in 500 days leave 4500; a step of 1 % either way is 89 / 11 and 91 / 9 of 500.
    assert carried.days_left == pytest.approx(4500)
    assert carried.days_left_least == pytest.approx(89 / 11 * 500)
    assert carried.days_left_most == pytest.approx(91 / 9 * 500)
    assert carried.bytes_left == pytest.approx(9 * 2_048_000_000_000)
    assert "average in 500 days of power-on time since new" in carried.assumption


@pytest.mark.parametrize(
    ("used", "least", "days", "most"),
    [(99, 0.0, 500 / 99, 1000 / 98), (100, 0.0, 0.0, 0.0), (1, 98 * 250, 99 * 500, None)],
)
def test_near_the_end_a_step_of_wear_is_a_step_of_what_is_left(
    used: int, least: float, days: float, most: float | None
) -> None:
    carried = project([read(nvme({"percentage_used": used}))])
    assert carried.days_left_least == pytest.approx(least)
    assert carried.days_left == pytest.approx(days)
    assert carried.days_left_most == (None if most is None else pytest.approx(most))


def test_two_snapshots_give_the_rate_in_between() -> None:
    after = later(10, data_units_written=4_500_000, percentage_used=12)
    carried = project([read(after), read(nvme())])  # the order does not matter
    assert carried.days == 10
    assert carried.days_are == "by the clock"
    assert carried.written_bytes_per_day == pytest.approx(500_000 * 512_000 / 10)
    assert carried.days_left == pytest.approx(88 / 0.2)


def test_a_rating_is_used_instead_of_the_wear() -> None:
    after = later(10, data_units_written=4_500_000)
    carried = project([read(nvme()), read(after)], tbw_bytes=600e12)
    written = 4_500_000 * 512_000
    assert carried.bytes_left == pytest.approx(600e12 - written)
    assert carried.days_left == pytest.approx((600e12 - written) / (500_000 * 512_000 / 10))


def test_the_rate_of_a_benchmark_is_not_carried_on() -> None:
    carried = project([read(nvme()), read(later(0.04, data_units_written=4_100_000))])
    assert carried.since is not None
    assert carried.since.written_bytes == 100_000 * 512_000
    assert carried.days == 500  # since new
    assert carried.written_bytes_per_day == pytest.approx(4_100_000 * 512_000 / 500)


def test_wear_that_has_not_grown_is_not_carried_on() -> None:
    carried = project([read(nvme()), read(later(1, data_units_written=4_000_001))])
    assert carried.days_left is None
    assert "wear grew by less than 1 %" in carried.assumption


def test_a_comparison_tells_what_passed() -> None:
    rows = [list(row) for row in INTEL_ROWS]
    rows[9][4], rows[11][4], rows[5][4], rows[2][4] = "1000100", "1500250", "3", "1"
    before = read(sata("Intel", "INTEL", INTEL_ROWS))
    after = read(sata("Intel", "INTEL", [tuple(row) for row in rows]))  # type: ignore[misc]
    after = replace(after, taken_s=JANUARY + 60, temperature_c=55)
    change = compare(before, after)
    assert change.seconds == 60
    assert change.written_bytes == 100 * MIB32
    assert change.nand_bytes == 250 * MIB32
    assert change.write_amplification == 2.5
    assert (change.temperature_before_c, change.temperature_after_c) == (30, 55)
    assert change.errors == {"uncorrectable": 1, "crc_errors": 3}
    assert worst(change.findings) is Severity.REPLACE


def test_too_little_writing_tells_no_amplification() -> None:
    before = read(sata("Intel", "INTEL", INTEL_ROWS))
    assert before.written_bytes is not None
    assert before.nand_bytes is not None
    after = replace(
        before,
        written_bytes=before.written_bytes + 2 * MIB32,
        nand_bytes=before.nand_bytes + 3 * MIB32,
    )
    assert compare(before, after).write_amplification is None


def test_amplification_between_snapshots_counts_the_pages_in_between() -> None:
    before = read(sata("Micron 5100", "Micron", MICRON_ROWS))
    after = replace(before, host_pages=8_000_100, other_pages=2_000_300)
    assert compare(before, after).write_amplification == 4.0


def test_snapshots_of_two_drives_or_in_the_wrong_order_are_one_sentence() -> None:
    with pytest.raises(InputError, match="different drives"):
        compare(read(nvme()), read(nvme(serial_number="S9")))
    with pytest.raises(InputError, match="go back"):
        compare(read(later(1)), read(nvme()))
    # A serial number that is struck out may be anybody's.
    assert compare(read(nvme()), read(nvme(serial_number="redacted"))).written_bytes == 0


def test_a_simulated_drive_is_read_like_a_real_one() -> None:
    about = {
        "target": {"kind": "sim", "name": "lab", "capacity_bytes": 1 << 30},
        "wear": {
            "percentage_used": 1,
            "data_units_written": 8000,
            "erases_mean": 45.0,
            "rated_pe_cycles": 3000,
            "endurance": {"host_bytes_left": 9e12},
        },
        "counters": {
            "commands": 7,
            "below/host_bytes_written": 4_096_000_000,
            "below/host_bytes_read": 5,
            "below/programs_host": 250_000,
            "below/programs_collection": 375_000,
            "below/unit_bytes": 16_384,
        },
    }
    health = from_wear(about, "run")
    assert health.used_percent == pytest.approx(1.5)
    assert health.written_bytes == 4_096_000_000
    assert health.read_bytes == 5
    assert health.nand_bytes == 10_240_000_000
    assert project([health]).bytes_left == 9e12
    with pytest.raises(InputError, match="reports no wear"):
        from_wear({"target": {"kind": "sim"}}, "run")


@pytest.mark.parametrize("seconds", [3, 60])
def test_what_is_left_of_a_simulated_drive_is_of_the_window_of_its_run(
    seconds: int, tmp_path: Path
) -> None:
    """All of a run counted, in which a drive that was filled sequentially wears less at first."""
    job = f"[w]\nrw=randwrite\nbs=4k\niodepth=32\nnorandommap\ntime_based\nruntime={seconds}\n"
    run = ssdlab.run(job, on="demo-enterprise", set={"capacity": "1GiB"}, prepare="sequential")
    store = RunStore(tmp_path)
    health = sources.read(str(store.save(run)), store).latest
    direction = run.measurement.jobs[0].directions[0]
    assert direction.stretch.wear and direction.stretch.wear.endurance
    assert health.host_bytes_left == direction.stretch.wear.endurance.host_bytes_left
    said = project([health]).assumption
    assert ("not steady" in said) == (seconds == 3)
    of_all = run.document["ssdlab"]["wear"]["endurance"]["host_bytes_left"]
    assert (health.host_bytes_left < 0.98 * of_all) == (seconds == 60)


def test_the_health_of_several_simulated_drives_is_that_of_the_most_worn() -> None:
    about: dict[str, Any] = {"target": {"kind": "sim", "capacity_bytes": 2 << 30}, "counters": {}}
    members = {}
    for place, erases in (("0", 30.0), ("1", 90.0), ("2", 60.0)):
        members[place] = {
            "erases_mean": erases,
            "rated_pe_cycles": 3000,
            "endurance": {"host_bytes_left": 1e14 / erases},
        }
        about["counters"] |= {
            f"{place}/host_bytes_written": int(erases) << 30,
            f"{place}/programs_host": int(erases) << 19,
            f"{place}/unit_bytes": 4096,
            f"{place}/capacity_bytes": 1 << 30,
        }
    about["wear"] = {"erases_mean": 90.0, "rated_pe_cycles": 3000, "members": members}
    health = from_wear(about, "run")
    assert health.used_percent == pytest.approx(3.0)
    assert (health.written_bytes, health.nand_bytes) == (90 << 30, 180 << 30)
    assert (health.capacity_bytes, health.host_bytes_left) == (1 << 30, 1e14 / 90)


# Outputs of real drives


@pytest.mark.skipif(SAMPLES is None, reason="SSDLAB_HEALTH_SAMPLES names no folder of samples")
def test_samples_of_real_drives_are_read_whole(cli: Cli) -> None:
    files = sorted(Path(SAMPLES or "").glob("*.json"))
    assert files
    for file in files:
        document = json.loads(file.read_text())
        health = parse(document, file.name)
        assert health.model == document["model_name"]
        assert health.power_on_hours == document["power_on_time"]["hours"]
        assert health.temperature_c == document["temperature"]["current"]
        assert health.passed is document["smart_status"]["passed"]
        assert health.is_ssd == (document.get("rotation_rate", 0) == 0)
        if log := document.get("nvme_smart_health_information_log"):
            assert health.used_percent == log["percentage_used"]
            assert health.written_bytes == 512_000 * log["data_units_written"]
            assert health.media_errors == log["media_errors"]
        elif health.is_ssd:
            assert health.used_percent is not None, file.name
            assert health.written_bytes, file.name
            assert 0.5 < (health.write_amplification or 1.0) < 20
        assert worst(judge(health)) is not Severity.UNKNOWN
        assert cli("health", file, "--attributes").status == 0
    assert cli("health", SAMPLES).status == 0
