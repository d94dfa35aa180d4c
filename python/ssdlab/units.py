"""Quantities as people write them: sizes and lists of values read, numbers with units written.

An option reads ``8g``, ``8G`` and ``8GiB`` as 2^33 bytes and ``8GB`` as 8,000,000,000, as drives
are sold. Job files are fio's, which reads some otherwise (:func:`ssdlab._core.parse_fio_size`).

A list is values joined by commas. In the place of a value ``1..256x2`` stands for the numbers from
1 to 256 that double each time, ``10%..100%/8`` for eight numbers at equal distances, the ends among
them, and ``2..6`` for all whole numbers from 2 to 6.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from ssdlab.errors import InputError

N = TypeVar("N", int, float)

SEED_MAX = 2**64 - 1
VALUES_MAX = 1000
"""A list of more values is a slip."""

DASH = "-"
"""Stands for what was not measured."""
THIN = "\u202f"
"""Narrow no-break space."""
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))
SIZES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_RATES = tuple((size, f"{unit}/s") for size, unit in SIZES[2:])
_UNITS = "[kMGTP]?B(/s)?|[KMGTP]iB|[num]s|s|min|h|d|IOPS|%|years"
DAY_S = 86_400.0
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_BEFORE_NUMBER = re.compile(r"(?<!\w)(±|x) (?=\d)")
_BEFORE_UNIT = re.compile(rf"(?<=\d) (?=({_UNITS})(?![\w/]))")
_US = re.compile(r"(?<![\w/])us(?![\w/])")
_SETTING = re.compile(rf"(-?\d+(?:\.\d+)?(?:e-?\d+)?) ?({_UNITS}|[KMGT]iB/s)?", re.ASCII)
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([kmgtp]?)(i?)(b?)", re.IGNORECASE | re.ASCII)
_PERCENT = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*%?", re.ASCII)
_BLOCKS = re.compile(r"(\d{1,18})\s*blocks?", re.ASCII)
_RANGE = re.compile(r"(.+?)\.\.(.+?)(?:x(\d+(?:\.\d+)?)|/(\d+))?")
_OPEN_RANGE = re.compile(r"(.+?)\.\.(.+?)(x(?:\d+(?:\.\d+)?)?)?")
_TIME = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*(ns|us|ms|s|min|h|d)", re.ASCII)
_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9,
       "d": 86400 * 10**9}  # fmt: skip


def number(value: float | None, unit: str = "") -> str:
    """A number as tables write it: three figures, whole from 100 on, thousands apart; bytes with
    their unit, a ``yes/no`` in words. A dash for None and what is not finite."""
    if value is None or not math.isfinite(value):
        return DASH
    if unit == "B":
        return size_text(value)
    if unit == "yes/no" and value in (0, 1):  # else a mean of some
        return "yes" if value else "no"
    if abs(value) >= 99.95 or value == int(value):
        return f"{value:,.0f}"
    short = f"{value:.3g}"
    # 1.5 is told as it is; of 1.4987 the zero of 1.50 is known.
    return short if math.isclose(float(short), value, rel_tol=1e-9) else f"{value:#.3g}"


def with_unit(value: float | None, unit: str) -> str:
    """A number as sentences and tiles write it: with its unit, times in the unit that suits."""
    if value is None or not math.isfinite(value):
        return DASH
    if unit in _WRITERS:
        return _WRITERS[unit](value)
    return f"{number(value)} {unit}".rstrip()


def iops(value: float | None) -> str:
    """I/Os per second."""
    return with_unit(value, "IOPS")


def speed(mbps: float | None) -> str:
    """10^6 bytes per second."""
    return with_unit(mbps, "MB/s")


def latency(ns: float | None) -> str:
    """A time given in ns, in the unit that suits it, three figures: ``12.3 ms``. Times are counted
    in whole ns, so that of a mean below one no more is told than that."""
    return "< 1 ns" if ns is not None and 0 < ns < 0.9995 else _scaled(ns, _TIMES)


def microseconds(us: float | None) -> str:
    """A latency given in us, in the unit that suits it."""
    return latency(None if us is None else 1e3 * us)


def duration(seconds: float | None) -> str:
    """A stretch of time: ``1.5 s``, ``2 min 05 s``, ``3 h 20 min``, ``5 d 4 h``."""
    if seconds is None or not math.isfinite(seconds):
        return DASH
    if seconds < 0.9995:
        return latency(1e9 * seconds) if seconds else "0 s"
    if seconds < 59.5:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, more = divmod(hours, 24)
    if days > 3650:
        return "more than ten years"
    if days > 3:
        return f"{days} d {more} h"
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def size_text(count: float) -> str:
    """A size, three figures: decimal, as drives are sold."""
    return _scaled(count, SIZES)


def sizes_apart(one: int, other: int) -> tuple[str, str]:
    """Two sizes of which a sentence says that one is larger: in bytes where three figures tell them
    the same."""
    said = size_text(one), size_text(other)
    return said if len(set(said)) > 1 else (f"{one:,} bytes", f"{other:,} bytes")


def binary(count: float) -> str:
    """The size of a block, file or cache, three figures: binary, as requests are made."""
    value, unit = float(count), "B"
    for unit in BINARY:
        if value < 1024 or unit == BINARY[-1]:
            break
        value /= 1024
    return f"{number(value)} {unit}"


def bytes_per_s(value: float | None) -> str:
    """Throughput, decimal, three figures."""
    return _scaled(value, _RATES)


def percent(share: float | None) -> str:
    """A share as a percentage, two figures."""
    if share is None or not math.isfinite(share):
        return DASH
    percent = 100 * share
    return f"{percent:.{percent_digits(percent)}f} %"


def percent_digits(percent: float) -> int:
    """Digits behind the point of a percentage that is told with two figures."""
    return 0 if abs(percent) >= 9.95 or percent == 0 else 1 if abs(percent) >= 0.995 else 2


def difference(share: float | None) -> str:
    """A relative difference: ``+12 %``; as a factor where it is more than three times. Of what is
    less than a tenth what is left has two figures: ``-98.8 %``."""
    if share is None or not math.isfinite(share):
        return DASH
    if share > 2:
        return f"x {number(1 + share)}"
    percent, left = 100 * share, 100 * (1 + share)
    digits = percent_digits(percent)
    if 0 < left < 9.95:
        digits = max(digits, 1 - math.floor(math.log10(left) + 1e-9))
    text = f"{percent:+.{digits}f}"
    return "0 %" if float(text) == 0 else f"{text} %"


def times(factor: float | None) -> str:
    """A factor."""
    return f"{number(factor)} times"


def counted(count: int | str, noun: str) -> str:
    """So many of a thing, a number or one as text: ``1 run``, ``1,200 runs``, ``up to 1 run``."""
    told = count if isinstance(count, str) else f"{count:,}"
    more = "es" if noun.endswith(("s", "sh", "ch", "x")) else "s"
    return f"{told} {noun}" + ("" if told.removeprefix("up to ") == "1" else more)


def numbered(names: Sequence[str]) -> list[str]:
    """Names told apart by a number where they are alike: ``a (1)``, ``b``, ``a (2)``."""
    return [
        f"{name} ({names[:place].count(name) + 1})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def listed(parts: Sequence[str]) -> str:
    """a, b and c."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def some(parts: Sequence[str], most: int) -> str:
    """The same of at most so many, and how many more there are."""
    rest = len(parts) - most
    return listed([*parts[:most], f"{rest:,} more"] if rest > 0 else parts)


def sentence(text: str) -> str:
    """With a capital at the start and a full stop at the end."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def for_page(text: str) -> str:
    """A text as pages set it: thin spaces between thousands and before units, µs for us, and no
    line that ends in ± or x."""
    if text == DASH:
        return "\u2013"
    text = _THOUSANDS.sub(THIN, text)
    text = _BEFORE_UNIT.sub(THIN, text)
    text = _BEFORE_NUMBER.sub("\\1\u00a0", text)
    return _US.sub("µs", text)


def _scaled(value: float | None, units: Sequence[tuple[float, str]]) -> str:
    if value is None or not math.isfinite(value):
        return DASH
    size, unit = next((unit for unit in units if abs(value) >= unit[0] * 0.9995), units[-1])
    return f"{number(value / size)} {unit}"


def parse_bytes(where: str, text: str) -> int:
    """A size in bytes, such as ``8g`` or ``8GiB`` (binary) or ``1.5GB`` (decimal), parts of a byte
    dropped; InputError, beginning with ``where``, for anything else."""
    size = _bytes(text)
    if size is None:
        raise InputError(f'{where} "{text}": write it as a size, such as 8g, 512MiB or 1.5GB')
    return int(size)


def parse_rate(where: str, text: str) -> int:
    """Bytes per second, such as ``200MB/s``, with or without the ``/s``; raises as
    :func:`parse_bytes`."""
    return parse_bytes(where, text.strip().removesuffix("/s"))


def sizes(
    where: str, text: str, expected: str, fits: Callable[[int], bool] = lambda size: size > 0
) -> list[int]:
    """The sizes of a list in bytes, each once, ascending; InputError where one is no size or does
    not fit; ``expected`` says what would be right."""
    return sorted(set(_numbers(where, text, expected, _bytes, round, fits)))


def counts(where: str, text: str, expected: str, fits: Callable[[int], bool]) -> list[int]:
    """The whole numbers of a list, each once, ascending; shares may be written with a ``%``;
    InputError where one is no whole number or does not fit; ``expected`` says what would be
    right."""
    return sorted(set(_numbers(where, text, expected, _whole, round, fits)))


def percents(where: str, text: str, expected: str, fits: Callable[[float], bool]) -> list[float]:
    """The percentages of a list as they stand; a ``%`` behind them is no more than clear;
    InputError where one is no number or does not fit; ``expected`` says what would be right."""
    return _numbers(where, text, expected, _percent, float, fits)


@dataclass(frozen=True)
class Span:
    """All values between two, of which a sample takes some."""

    low: Fraction
    high: Fraction
    log: bool
    """Whether each factor, and not each difference, is as likely."""
    step: int
    """Values are multiples of it; 0 for those of four figures."""
    end: str = ""
    """Stands behind the values."""

    def at(self, share: float) -> str:
        """The value that a share (0 to 1) of all is below."""
        low, high = float(self.low), float(self.high)
        value = low * (high / low) ** share if self.log else low + share * (high - low)
        if self.step:
            return _written(min(max(self.step * round(value / self.step), low), high), self.end)
        return f"{float(f'{value:.4g}'):.12g}{self.end}"


def span(where: str, text: str, size: str = "") -> Span | None:
    """What ``0.07..0.5``, ``1..256x`` (evenly by factors) or ``4k..64k`` stands for, whole values
    between whole ends, sizes in multiples of 4 KiB or of 512 bytes where both ends are, and written
    as :func:`values` does; None where the text is none of these, InputError where the range does
    not go up."""
    match = _OPEN_RANGE.fullmatch(text.strip())
    kind = None if match is None else next((k for k in _KINDS if _reads(k[0], match)), None)
    if match is None or kind is None:
        return None
    read, end = kind
    low, high = read(match[1]), read(match[2])
    assert low is not None and high is not None, "both ends were read"
    log = bool(match[3])
    if low >= high or (log and low == 0):
        above = " from above 0" if log else ""
        raise InputError(f'{where} "{text}": a range goes up{above}, such as 1..256x')
    whole = low.denominator == high.denominator == 1 and "." not in match[1] + match[2]
    step = int(whole)
    if read is _bytes:
        step = next(one for one in (4096, 512, 1) if not (int(low) % one or int(high) % one))
    return Span(low, high, log, step, size if read is _bytes else end)


def is_number(text: str) -> bool:
    """Whether a text is one, and finite."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def quantity(text: str) -> tuple[float, str] | None:
    """A number and its unit: ``""``, ``"B"`` for sizes, ``"ns"`` for times; a percentage is the
    share. None where the text is none of these."""
    text = text.strip()
    if (time := _TIME.fullmatch(text)) is not None:
        return float(Fraction(time[1]) * _NS[time[2]]), "ns"
    try:
        return float(text), ""
    except ValueError:
        pass
    if text.endswith("%"):
        share = _percent(text)
        return None if share is None else (float(share / 100), "")
    size = _bytes(text)
    return None if size is None else (float(size), "B")


def setting(text: str) -> tuple[float, str] | None:
    """The number of a setting and its unit as it is written, such as 16 and ``"GiB"``, or none;
    None where the setting is a word."""
    match = _SETTING.fullmatch(text)
    if match is None:
        return None
    whole = match[1].removeprefix("-").isdigit()
    return (int if whole else float)(match[1]), match[2] or ""


def values(where: str, text: str, *, once: bool = True, size: str = "") -> list[str]:
    """The values of a list of anything, in their order, as text, each once if ``once``. A range of
    numbers, sizes (``4k..64kx2``) or percentages (``10%..100%/8``) is written out, what is not
    whole in four figures; what is no range stands as it is. Sizes are in bytes without a unit, as
    fio takes them, or with a ``size`` of ``"B"`` with one, as rigs do. Raises InputError where one
    is empty, or a range is none."""
    found: list[str] = []
    for part in _parts(where, text):
        span = _RANGE.fullmatch(part)
        kind = None if span is None else next((k for k in _KINDS if _reads(k[0], span)), None)
        if kind is None:
            found.append(part)
            continue
        read, end = kind
        expected = "a number, a size or a percentage at both ends of a range"
        spread = _numbers(where, part, expected, read, float, lambda _: True)
        found += [_written(one, size if read is _bytes else end) for one in spread]
    return list(dict.fromkeys(found)) if once else found


def _written(value: float, end: str) -> str:
    """A value of a range: to four figures, or whole where it has more before its point; a size
    with a unit in the largest that it is whole in."""
    if value % 1:
        value = round(value, max(0, 3 - math.floor(math.log10(abs(value)))))
    if end != "B":
        return f"{value:.15g}{end}"
    power = max(n for n in range(len(BINARY)) if round(value) % 1024**n == 0)
    return f"{round(value) // 1024**power}{BINARY[power]}"


def words(where: str, text: str) -> list[str]:
    """The parts of a list of names, each once, in their order; InputError where one is empty."""
    return list(dict.fromkeys(_parts(where, text)))


def _parts(where: str, text: str) -> list[str]:
    parts = [one.strip() for one in text.split(",")]
    if not all(parts):
        raise InputError(f'{where} "{text}": expected values joined by commas')
    return parts


def _numbers(
    where: str,
    text: str,
    expected: str,
    read: Callable[[str], Fraction | None],
    make: Callable[[Fraction], N],
    fits: Callable[[N], bool],
) -> list[N]:
    found: list[N] = []
    for part in _parts(where, text):
        for value in map(make, _values(where, part, expected, read)):
            if not fits(value):
                raise InputError(f'{where} "{part}": expected {expected}')
            found.append(value)
            if len(found) > VALUES_MAX:
                raise InputError(
                    f'{where} "{part}": is more than {VALUES_MAX} values; '
                    "write a factor behind a range (1..256x2) or a number of values (1..256/8)"
                )
    return found


def _values(
    where: str, part: str, expected: str, read: Callable[[str], Fraction | None]
) -> Iterator[Fraction]:
    """The value or the range of values that a part of a list stands for."""
    span = _RANGE.fullmatch(part)
    ends = [read(one) for one in (span.groups()[:2] if span else [part])]
    low, high = ends[0], ends[-1]
    if low is None or high is None:
        raise InputError(f'{where} "{part}": expected {expected}')
    if span is None:
        yield low
        return
    factor, number = span[3], span[4]
    if low > high or (factor and (low == 0 or Fraction(factor) <= 1)) or number in ("0", "1"):
        raise InputError(
            f'{where} "{part}": a range goes up, by a factor above 1 (1..256x2) '
            "or in at least two values (1..256/8)"
        )
    if not factor and not number and (low.denominator > 1 or high.denominator > 1):
        raise InputError(f'{where} "{part}": say how many values the range has, as in {part}/8')
    if number:
        steps = int(number) - 1
        yield from (low + (high - low) * step / steps for step in range(steps + 1))
        return
    value = low
    while value <= high:
        yield value
        value = value * Fraction(factor) if factor else value + 1


def _bytes(text: str) -> Fraction | None:
    """Bytes, parts of one dropped; None where the text is no size."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or (match[3] and not match[2]):
        return None
    power = " kmgtp".index(match[2].lower() or " ")
    if not power and "." in match[1]:
        return None
    return Fraction(
        int(Fraction(match[1]) * (1000 if match[4] and not match[3] else 1024) ** power)
    )


def _whole(text: str) -> Fraction | None:
    number = _percent(text)
    return number if number is not None and number.denominator == 1 else None


def _percent(text: str) -> Fraction | None:
    match = _PERCENT.fullmatch(text.strip())
    return None if match is None else Fraction(match[1])


def _plain(text: str) -> Fraction | None:
    return None if text.strip().endswith("%") else _percent(text)


def _blocks(text: str) -> Fraction | None:
    match = _BLOCKS.fullmatch(text.strip())
    return None if match is None else Fraction(match[1])


def _reads(read: Callable[[str], Fraction | None], span: re.Match[str]) -> bool:
    return all(read(end) is not None for end in span.groups()[:2])


_KINDS = ((_plain, ""), (_bytes, ""), (_percent, "%"), (_blocks, "blocks"))
"""How the ends of a range are read, and what stands behind the values."""

_WRITERS: Mapping[str, Callable[[float], str]] = {
    "ns": latency,
    "us": microseconds,
    "ms": lambda value: latency(1e6 * value),
    "s": duration,
    "B": size_text,
    "GiB": lambda value: binary(2**30 * value),
    "yes/no": lambda value: number(value, "yes/no"),
}
"""How quantities of a unit are written where the unit may change."""
