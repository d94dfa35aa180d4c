"""Sizes as options write them, and lists of values: one grammar for all commands."""

from __future__ import annotations

import pytest

from ssdlab.errors import InputError
from ssdlab.units import (
    counted,
    counts,
    difference,
    for_page,
    latency,
    number,
    parse_bytes,
    percent,
    percents,
    setting,
    size_text,
    sizes,
    sizes_apart,
    words,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8g", 8 << 30), ("8G", 8 << 30), ("8GiB", 8 << 30), ("8 gib", 8 << 30), ("8Gi", 8 << 30),
        ("8GB", 8 * 10**9), ("1.5GB", 1_500_000_000), ("0.5k", 512), ("4kB", 4000), ("7", 7),
        ("7B", 7), ("2.4GiB", 2_576_980_377), ("1p", 1 << 50), ("0.3GB", 300_000_000),
    ],
)  # fmt: skip
def test_a_size_without_b_is_binary_and_one_with_b_decimal(text: str, size: int) -> None:
    assert parse_bytes("--size", text) == size


@pytest.mark.parametrize("text", ["", "x", "8x", "-1", "1.5", "1.5B", "8iB", "1e9", "٣k", "8 G B"])
def test_what_is_no_size_is_one_sentence_with_the_option(text: str) -> None:
    with pytest.raises(InputError, match=r"^--size .*write it as a size, such as 8g"):
        parse_bytes("--size", text)


def test_sizes_read_back() -> None:
    for size in (0, 999, 1000, 8 * 10**9, 15 * 10**12):
        number, unit = size_text(size).split()
        assert parse_bytes("it", number + unit) == size


def test_sizes_have_three_figures_and_bytes_only_where_that_tells_two_apart() -> None:
    told = [size_text(size) for size in (268_435_456, 1_024_209_543_168, 999_700, 5 * 10**15)]
    assert told == ["268 MB", "1.02 TB", "1.00 MB", "5 PB"]
    assert sizes_apart(268_435_456, 1 << 29) == ("268 MB", "537 MB")
    assert sizes_apart(268_435_456, 268_435_968) == ("268,435,456 bytes", "268,435,968 bytes")


def test_a_percentage_has_two_figures_also_where_it_is_rounded_up() -> None:
    told = [percent(share) for share in (0.0996, 0.00996, 0.5, 0.0123, 0.00123)]
    assert told == ["10 %", "1.0 %", "50 %", "1.2 %", "0.12 %"]
    told = [difference(share) for share in (0.0996, -0.0996, 0.0123, -0.98, 2.51, 0.00004, None)]
    assert told == ["+10 %", "-10 %", "+1.2 %", "-98.0 %", "x 3.51", "0 %", "-"]
    nearly = [difference(share) for share in (-0.98847, -0.98853, -0.995, -0.99996, -1.0)]
    assert nearly == ["-98.8 %", "-98.9 %", "-99.50 %", "-99.9960 %", "-100 %"]
    assert for_page("1,433 ± 6,459 x 3.5") == "1\u202f433 ±\u00a06\u202f459 x\u00a03.5"


def test_of_a_mean_below_a_nanosecond_no_more_is_told_than_that() -> None:
    assert [latency(ns) for ns in (0.0, 0.0649, 0.9, 1.0, 7.25)] == [
        "0 ns", "< 1 ns", "< 1 ns", "1 ns", "7.25 ns",
    ]  # fmt: skip


def even(value: float) -> bool:
    return value % 2 == 0


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("4", [4]), ("8,4,4", [4, 8]), ("2..256x2", [2, 4, 8, 16, 32, 64, 128, 256]),
        ("10%..100%/4", [10, 40, 70, 100]), ("2..20/4", [2, 8, 14, 20]), ("2..5x2", [2, 4]),
        ("4,100..300/3,8", [4, 8, 100, 200, 300]),
    ],
)  # fmt: skip
def test_ranges_multiply_or_step(text: str, values: list[int]) -> None:
    assert counts("--count", text, "even numbers", even) == values


def test_a_bare_range_is_every_whole_number() -> None:
    assert counts("--count", "2..6", "numbers", lambda _: True) == [2, 3, 4, 5, 6]


def test_a_range_of_sizes_keeps_its_units() -> None:
    assert sizes("--bs", "4k..64kx4,1m", "sizes") == [4096, 16384, 65536, 1 << 20]
    assert sizes("--bs", "1GB..2GB/3", "sizes") == [10**9, 1_500_000_000, 2 * 10**9]


def test_percentages_keep_their_order_and_repeat() -> None:
    assert percents("--stagger", "30, 0%,0,2.5", "percent", lambda _: True) == [30, 0, 0, 2.5]


def test_names_are_taken_once_in_their_order() -> None:
    assert words("--levels", "5, 10,5") == ["5", "10"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "joined by commas"), ("2,,4", "joined by commas"), ("3", "expected even numbers"),
        ("x", "expected even numbers"), ("8..2x2", "range goes up"), ("2..8x1", "range goes up"),
        ("0..8x2", "a range goes up"), ("2..8/1", "a range goes up"), ("2..", "expected even"),
        ("2..x..8", "expected even"), ("2..8x", "expected even"), ("1.5", "expected even"),
        ("2..6", "expected even numbers"), ("2..9/99", "expected"),
    ],
)  # fmt: skip
def test_a_list_that_is_none_is_one_sentence(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=rf"^--count \".*({problem})"):
        counts("--count", text, "even numbers", even)


def test_a_list_is_not_endless() -> None:
    with pytest.raises(InputError, match="more than 1000 values"):
        sizes("--bs", "1..1g", "sizes")


def test_one_of_a_thing_is_no_plural() -> None:
    assert [counted(n, "run") for n in (0, 1, 1200)] == ["0 runs", "1 run", "1,200 runs"]
    assert [counted(n, "flush") for n in (1, 4)] == ["1 flush", "4 flushes"]
    told = ["1 day", "up to 1 day", "0.5 days", "1 to 2 days", "0.5 to 1 days"]
    assert [counted(one.rpartition(" ")[0], "day") for one in told] == told


def test_measured_figures_keep_three_digits_and_round_ones_are_told_as_they_are() -> None:
    assert [number(v) for v in (8.1959, 15.988, 0.05004, 99.97)] == [
        "8.20",
        "16.0",
        "0.0500",
        "100",
    ]
    assert [number(v) for v in (0.5, 7.000000000000001, 3, 8.2)] == ["0.5", "7", "3", "8.2"]
    assert [latency(v) for v in (36_962_304, 75_000, 8_195_913, 999_700)] == [
        "37.0 ms", "75 us", "8.20 ms", "1.00 ms",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("16GiB", (16, "GiB")), ("3.2GB/s", (3.2, "GB/s")), ("75us", (75, "us")),
        ("0.07", (0.07, "")), ("-1", (-1, "")), ("greedy", None), ("4k", None),
        ("1,4,32", None), ("3.10.2", None), ("", None), ("nan", None),
    ],
)  # fmt: skip
def test_a_setting_is_a_number_with_the_unit_that_it_was_written_with(
    text: str, found: tuple[float, str] | None
) -> None:
    assert setting(text) == found
