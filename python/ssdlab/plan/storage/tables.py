"""The tables and charts of candidates beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ssdlab.answer import Cells, Curve, Figure, Section, Style, Table, columns, numbers, table
from ssdlab.histogram import ms
from ssdlab.plan.prices import Prices
from ssdlab.plan.storage.advice import advise
from ssdlab.plan.storage.measure import LOADS
from ssdlab.plan.storage.rows import Offer, SsdLife, rate_of


def chapter(rows: Sequence[Offer], prices: Prices, writes_per_day: float) -> Section:
    """All that is said of the candidates."""
    keys = [key for key in LOADS if all(key in row.found.rates for row in rows)]
    random = [key for key in keys if LOADS[key][1] == "IOPS"]
    ordered = [key for key in keys if key not in random]
    tables = [_candidates(rows, random, prices), _random(rows, random)]
    if ordered:
        tables.append(_ordered(rows, ordered))
    if any(row.found.cold for row in rows):
        tables.append(_caches(rows, random))
    tables += [_money(rows, keys, prices), _safety(rows, writes_per_day)]
    return Section(
        key="storage",
        title="Candidates beside each other",
        sentences=advise(rows, keys, prices),
        tables=tables,
        figures=_figures(rows, keys, prices),
        rows=[row.as_json() for row in rows],
    )


def _candidates(rows: Sequence[Offer], random: Sequence[str], prices: Prices) -> Table:
    """What they are and what decides between them."""
    lines: list[Cells] = [
        [
            row.letter,
            row.candidate.title,
            *numbers(row.price, row.usable_bytes / 1e12, *(row.rate(key) for key in random)),
        ]
        for row in rows
    ]
    heads = [f"candidate | what it is | price [{prices.currency}] | usable [TB]"]
    heads += [f"{key} [IOPS]" for key in random]
    return Table("Candidates", columns(" | ".join(heads)), lines)


def _random(rows: Sequence[Offer], keys: Sequence[str]) -> Table:
    heads = ["candidate"]
    own = keys == ["load"]
    for key in keys:
        heads += [f"{key} [IOPS]", f"{key} p50 [ms]", f"{key} p99 [ms]"]
    if own:
        heads.append("load [MB/s]")
    lines: list[Cells] = []
    for row in rows:
        values: list[float | None] = []
        for key in keys:
            reading = row.found.rates[key]
            values += [reading.iops, *(ms(reading.percentile_ns(p)) for p in (50.0, 99.0))]
        if own:
            values.append(row.found.rates["load"].bytes_per_s / 1e6)
        lines.append([row.letter, *numbers(*values)])
    note = "Caches are warm here." if any(row.found.cold for row in rows) else ""
    return Table("The load" if own else "Random I/O", columns(" | ".join(heads)), lines, note)


def _ordered(rows: Sequence[Offer], keys: Sequence[str]) -> Table:
    heads = columns(
        "candidate | " + " | ".join(f"{key.removesuffix('_ordered')} [MB/s]" for key in keys)
    )
    lines: list[Cells] = [[row.letter, *numbers(*(row.rate(key) for key in keys))] for row in rows]
    note = ""
    if any(row.found.cold for row in rows):
        note = "Behind a cache: of data that it does not hold; writes as long as they last."
    return Table("Sequential I/O, 1 MiB", heads, lines, note)


def _caches(rows: Sequence[Offer], keys: Sequence[str]) -> Table:
    heads = columns(
        "candidate | load | cold [IOPS] | warm [IOPS] | hits [%] | warmed [hours] | "
        "only in cache [GB]"
    )
    lines: list[Cells] = []
    for row in rows:
        for key in keys if row.found.cold else ():
            warmth, hits = row.found.warmth.get(key), row.found.hits.get(key)
            dirty = None if key == "read" else row.found.dirty_bytes / 1e9
            lines.append(
                [
                    row.letter,
                    LOADS[key][0],
                    *numbers(
                        rate_of(row.found.cold.get(key), key),
                        row.rate(key),
                        None if hits is None else 100 * hits,
                        None if warmth is None else warmth.seconds / 3600,
                        dirty,
                    ),
                ]
            )
    partly = [row.letter for row in rows if any(not w.whole for w in row.found.warmth.values())]
    order = "" if keys == ["load"] else "; reads first, so that writes find what was read"
    note = (
        f"Warmed: so long the load itself ran before, on a cache of full size{order}. Only in "
        "cache: what would be lost with it."
    )
    if partly:
        note += f" Of {', '.join(partly)} the cache was not yet all that it can become."
    return Table("Caches", heads, lines, note)


def _money(rows: Sequence[Offer], keys: Sequence[str], prices: Prices) -> Table:
    def per_kiops(key: str) -> Callable[[Offer], float | None]:
        return lambda row: row.per_kiops(key)

    missing = sorted({name for row in rows for name in prices.missing(row.candidate.bill)})
    note = f"Prices of {prices.source}: orders of magnitude, to be edited (--prices FILE)."
    if missing:
        note += f" No price of {', '.join(missing)}."
    return table(
        "Price",
        rows,
        {
            "candidate": lambda row: row.letter,
            f"price [{prices.currency}]": lambda row: row.price,
            "relative": lambda row: row.relative,
            "usable [TB]": lambda row: row.usable_bytes / 1e12,
            "per TB": lambda row: row.per_tb,
            **{
                f"per 1000 {'' if key == 'load' else f'{key} '}IOPS": per_kiops(key)
                for key in keys
                if LOADS[key][1] == "IOPS"
            },
        },
        note,
    )


def _safety(rows: Sequence[Offer], writes_per_day: float) -> Table:
    def of(what: Callable[[SsdLife], float | None]) -> Callable[[Offer], float | None]:
        return lambda row: None if row.life is None else what(row.life)

    return table(
        "Life and safety",
        rows,
        {
            "candidate": lambda row: row.letter,
            "SSDs": lambda row: "none" if row.life is None else row.life.of,
            "amplification": of(lambda life: life.worn.write_amplification),
            "DWPD 5 years": of(lambda life: life.worn.dwpd),
            "life [years]": of(lambda life: life.years),
            "loss a year [%]": lambda row: (
                None if row.loss_per_year is None else 100 * row.loss_per_year
            ),
        },
        "Amplification: of writes, in the flash. Life: until the rated cycles are used up on "
        f"average, if the host writes {writes_per_day / 1e9:,.0f} GB a day like these "
        "writes. Loss of data: 1 % of the drives fail in a year, by themselves; no fire, no "
        "firmware, no operator.",
    )


def _figures(rows: Sequence[Offer], keys: Sequence[str], prices: Prices) -> list[Figure]:
    priced = [row for row in rows if row.price is not None]
    figures = []
    group = "Price against what it buys"
    label = f"price, {prices.currency}"
    for key in keys:
        name, unit = LOADS[key]
        if unit != "IOPS":
            continue
        dots = [_dot(row, place, row.rate(key), row.price) for place, row in enumerate(priced)]
        figures.append(
            Figure(
                f"{name[0].upper()}{name[1:]}", label, unit, dots, log_x=True, log_y=True,
                group=group,
            )
        )  # fmt: skip
    space = [
        _dot(row, place, row.usable_bytes / 1e12, row.price) for place, row in enumerate(priced)
    ]
    figures.append(Figure("Space", label, "TB", space, log_x=True, log_y=True, group=group))
    letters = [row.letter for row in rows]
    for key in keys:
        name, unit = LOADS[key]
        rates = [(place, row.rate(key)) for place, row in enumerate(rows)]
        cold = [(place, rate_of(row.found.cold.get(key), key)) for place, row in enumerate(rows)]
        log = unit == "IOPS"
        style: Style = "dots" if log else "bars"
        known = any(rate for _, rate in cold)
        curves = [_level("cache warm, or none" if known else "simulated", rates, 0, style)]
        if known:
            curves.append(_level("cold cache", cold, 1, style))
        title = f"{name[0].upper()}{name[1:]} by candidate"
        figures.append(Figure(title, "", unit, curves, x_names=letters, log_y=log, group="Rates"))
    return figures


def _level(
    name: str, rates: Sequence[tuple[int, float | None]], colour: int, style: Style
) -> Curve:
    known = [(float(place), rate) for place, rate in rates if rate]
    return Curve(name, [x for x, _ in known], [y for _, y in known], style, colour)


def _dot(row: Offer, place: int, value: float | None, price: float | None) -> Curve:
    name = f"{row.letter}: {row.candidate.pool.title}"
    name += " with a cache" if row.candidate.fast is not None else ""
    return Curve(name, [price or 0.0], [value or 0.0], "dots", place)
