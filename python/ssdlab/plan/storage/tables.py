"""The tables and charts of candidates beside each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ssdlab.answer import Cell, Curve, Figure, Section, Style, Table, duration_cell, table
from ssdlab.histogram import ms
from ssdlab.plan.prices import Prices
from ssdlab.plan.storage.advice import advise
from ssdlab.plan.storage.measure import LOADS
from ssdlab.plan.storage.needs import NOTHING, Needs
from ssdlab.plan.storage.rows import SsdLife, StorageOffer

Columns = Mapping[str, Callable[[StorageOffer], Cell | float | str | None]]


def chapter(
    rows: Sequence[StorageOffer], prices: Prices, writes_per_day: float, needs: Needs = NOTHING
) -> Section:
    """All that is said of the candidates."""
    keys = [key for key in LOADS if all(key in row.did.rates for row in rows)]
    random = [key for key in keys if LOADS[key][1] == "IOPS"]
    ordered = [key for key in keys if key not in random]
    cached = [row for row in rows if row.did.cold]
    tables = [_candidates(rows, random, prices, needs), _random(rows, random)]
    tables += [_ordered(rows, ordered)] if ordered else []
    tables += [_caches(cached, random)] if cached else []
    tables += [_money(rows, random, prices), _safety(rows, writes_per_day)]
    return Section(
        key="storage",
        title="Candidates beside each other",
        sentences=advise(rows, keys, prices, writes_per_day, needs),
        tables=tables,
        figures=[*_prices(rows, random, prices), *(_rates(rows, key) for key in keys)],
        rows=[
            row.as_json() | ({"missing": [*needs.missing(row, random)]} if needs else {})
            for row in rows
        ],
    )


def _letter(row: StorageOffer) -> str:
    return row.letter


def _rate(key: str) -> Callable[[StorageOffer], float | None]:
    return lambda row: row.rate(key)


def _measured(of: Callable[[StorageOffer], float | None]) -> Callable[[StorageOffer], Cell]:
    """What a check of the candidate's run puts in doubt."""
    return lambda row: Cell(of(row), (row.letter,))


def _candidates(
    rows: Sequence[StorageOffer], random: Sequence[str], prices: Prices, needs: Needs
) -> Table:
    """What they are and what decides between them."""
    flash = any(row.life is not None for row in rows)

    def enough(row: StorageOffer) -> str:
        return "no" if needs.missing(row, random) else "yes"

    return table(
        "Candidates",
        rows,
        {
            "candidate": _letter,
            "what it is": lambda row: row.candidate.title,
            f"price [{prices.currency}]": lambda row: row.price,
            "usable [TB]": lambda row: row.usable_bytes / 1e12,
            **{f"{key} [IOPS]": _measured(_rate(key)) for key in random},
            **({"life [years]": _measured(_life)} if flash else {}),
            **({"enough": enough} if needs else {}),
        },
    )


def _life(row: StorageOffer) -> float | None:
    return None if row.life is None else row.life.years


def _random(rows: Sequence[StorageOffer], keys: Sequence[str]) -> Table:
    def tail(key: str, percent: float) -> Callable[[StorageOffer], Cell]:
        return _measured(lambda row: ms(row.did.rates[key].percentile_ns(percent)))

    cells: dict[str, Callable[[StorageOffer], Cell | float | str | None]] = {"candidate": _letter}
    for key in keys:
        cells |= {f"{key} [IOPS]": _measured(_rate(key))}
        cells |= {f"{key} p{p} [ms]": tail(key, float(p)) for p in (50, 99)}
    own = keys == ["load"]
    if own:
        cells["load [MB/s]"] = _measured(lambda row: row.did.rates["load"].bytes_per_s / 1e6)
    note = "Caches are warm here." if any(row.did.cold for row in rows) else ""
    if any(row.did.everywhere for row in rows):
        cells["write everywhere [IOPS]"] = lambda row: row.everywhere
        note += (
            " Everywhere: SSDs whose room has all been written at random; a hot set that is a "
            "small part of it leaves them more spare blocks."
        )
    return table("The load" if own else "Random I/O", rows, cells, note.strip())


def _ordered(rows: Sequence[StorageOffer], keys: Sequence[str]) -> Table:
    cells: Columns = {f"{key.removesuffix('_ordered')} [MB/s]": _rate(key) for key in keys}
    note = ""
    if any(row.did.cold for row in rows):
        note = "Behind a cache: of data that it does not hold; writes as long as they last."
    return table("Sequential I/O, 1 MiB", rows, {"candidate": _letter, **cells}, note)


def _caches(cached: Sequence[StorageOffer], keys: Sequence[str]) -> Table:
    def hits(at: tuple[StorageOffer, str]) -> float | None:
        found = at[0].did.hits.get(at[1])
        return None if found is None else 100 * found

    def warmed(at: tuple[StorageOffer, str]) -> Cell:
        warmth = at[0].did.warmth.get(at[1])
        return duration_cell(None if warmth is None else warmth.seconds)

    order = "" if keys == ["load"] else "; reads first, so that writes find what was read"
    note = (
        f"Warmed for: so long the load itself ran before, on a cache of full size{order}. Only in "
        "cache: what would be lost with it."
    )
    partly = [row.letter for row in cached if any(not w.whole for w in row.did.warmth.values())]
    if partly:
        note += f" Of {', '.join(partly)} the cache was not yet all that it can become."
    return table(
        "Caches",
        [(row, key) for row in cached for key in keys],
        {
            "candidate": lambda at: at[0].letter,
            "load": lambda at: LOADS[at[1]][0],
            "cold [IOPS]": lambda at: at[0].rate(at[1], cold=True),
            "warm [IOPS]": lambda at: at[0].rate(at[1]),
            "hits [%]": hits,
            "warmed for [=s]": warmed,
            "only in cache [GB]": lambda at: (
                None if at[1] == "read" else at[0].did.dirty_bytes / 1e9
            ),
        },
        note,
    )


def _money(rows: Sequence[StorageOffer], random: Sequence[str], prices: Prices) -> Table:
    def per_kiops(key: str) -> Callable[[StorageOffer], float | None]:
        return lambda row: row.per_kiops(key)

    missing = sorted({name for row in rows for name in prices.missing(row.candidate.bill)})
    note = f"Prices of {prices.source}: orders of magnitude, to be edited (--prices FILE)."
    if missing:
        note += f" No price of {', '.join(missing)}."
    heads = {key: f"per 1000 {'' if key == 'load' else f'{key} '}IOPS" for key in random}
    return table(
        "Price",
        rows,
        {
            "candidate": _letter,
            f"price [{prices.currency}]": lambda row: row.price,
            "relative": lambda row: row.relative,
            "usable [TB]": lambda row: row.usable_bytes / 1e12,
            "per TB": lambda row: row.price_per_tb,
            **{head: per_kiops(key) for key, head in heads.items()},
        },
        note,
    )


def _safety(rows: Sequence[StorageOffer], writes_per_day: float) -> Table:
    def of(what: Callable[[SsdLife], float | None]) -> Callable[[StorageOffer], float | None]:
        return lambda row: None if row.life is None else what(row.life)

    hot: Columns = {}
    told = "like these writes"
    if any(row.did.worn_everywhere for row in rows):
        hot = {
            "in the hot set [years]": lambda row: (
                None if row.life_hot is None else row.life_hot.years
            )
        }
        told = "at random all over SSDs without a cache, or in the hot set alone"
    return table(
        "Life and safety",
        rows,
        {
            "candidate": _letter,
            "SSDs": lambda row: "none" if row.life is None else row.life.of,
            "amplification": _measured(of(lambda life: life.write_amplification)),
            "DWPD 5 years": of(lambda life: life.dwpd_5_years),
            "written per byte": of(lambda life: life.written_per_host_byte),
            "life [years]": _measured(_life),
            **hot,
            "loss a year [%]": lambda row: (
                None if row.loss_per_year is None else 100 * row.loss_per_year
            ),
        },
        "Amplification: of writes, in the flash. Written per byte: to the drive that is written "
        "most, for each byte that the host writes. Life: until the rated cycles are used up on "
        f"average, if the host writes {writes_per_day / 1e9:,.0f} GB a day {told}. "
        "Loss of data: 1 % of the drives fail in a year, by themselves; no fire, no "
        "firmware, no operator.",
    )


def _named(row: StorageOffer) -> str:
    """What a candidate is called in charts."""
    cached = " with a cache" if row.candidate.fast is not None else ""
    return f"{row.letter}: {row.candidate.pool.title}{cached}"


def _prices(rows: Sequence[StorageOffer], random: Sequence[str], prices: Prices) -> list[Figure]:
    """What more money buys; each candidate has the same colour in all charts, priced or not."""
    charts: dict[str, tuple[str, Callable[[StorageOffer], float | None]]] = {
        LOADS[key][0].capitalize(): (LOADS[key][1], _rate(key)) for key in random
    }
    charts["Space"] = "TB", lambda row: row.usable_bytes / 1e12

    def dot(row: StorageOffer, colour: int, value: float | None) -> Curve:
        return Curve(_named(row), [row.price or 0.0], [value or 0.0], "dots", colour)

    return [
        Figure(
            title,
            f"price, {prices.currency}",
            unit,
            [dot(row, n, of(row)) for n, row in enumerate(rows) if row.price is not None],
            log_x=True,
            log_y=True,
            group="Price against what it buys",
        )
        for title, (unit, of) in charts.items()
    ]


def _rates(rows: Sequence[StorageOffer], key: str) -> Figure:
    """A load on every candidate, a cold cache beside the warm one."""
    name, unit = LOADS[key]
    log = unit == "IOPS"
    curves = []
    for colour, row in enumerate(rows):
        levels: dict[bool, tuple[str, Style]] = {False: (_named(row), "dots" if log else "stack")}
        if row.did.cold:
            levels[True] = f"{_named(row)}, still cold", "published"
        for cold, (label, style) in levels.items():
            if rate := row.rate(key, cold=cold):
                curves.append(Curve(label, [float(colour)], [rate], style, colour))
    return Figure(
        name.capitalize(), "", unit, curves, x_names=[row.letter for row in rows], log_y=log,
        group="Random I/O" if log else "Sequential I/O",
    )  # fmt: skip
