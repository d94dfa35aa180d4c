"""Intel's access specifications for IOmeter: database, file server, workstation, web server."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ssdlab import units
from ssdlab.answer import Cell, Section, Table, columns
from ssdlab.arrays.workloads import WEB_SERVER
from ssdlab.engine.answers import Part, best, number, ratio, work_table
from ssdlab.engine.protocol import Protocol, procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import ProtocolParameter, Setup, bssplit, bytes_of, short
from ssdlab.engine.steps import Job, Step
from ssdlab.protocols.queue_depth import by_depth, least_depth

SOURCE = (
    "Intel's access patterns for IOmeter as reviews use them (The SSD Review: server profiles); "
    "the file server's also in fio's examples"
)


@dataclass(frozen=True)
class Access:
    """An access specification; its sizes are the same for reads and writes."""

    name: str
    title: str
    split: str
    """Sizes with their percent, as fio writes them."""
    read_percent: int
    random_percent: int = 100

    @cached_property
    def sizes(self) -> list[tuple[int, int]]:
        """Bytes with their percent."""
        shares = (one.split("/") for one in self.split.split(":"))
        return [(bytes_of(size), int(percent)) for size, percent in shares]

    def plan(self, setup: Setup) -> list[Step]:
        """Fill, use where the load writes, warm up with the load itself, then all depths."""
        warm = self._job(setup, "warm-up", 32, setup.number("warm_s"), measured=False)
        seconds = setup.number("seconds")
        depths = setup.counts("depths")
        return [
            setup.fill(),
            *([setup.used("8k")] if self.read_percent < 100 else []),
            warm,
            *(self._job(setup, f"qd{depth}", depth, seconds) for depth in depths),
        ]

    def _job(
        self, setup: Setup, key: str, depth: int, seconds: float, *, measured: bool = True
    ) -> Job:
        sizes = setup.in_blocks(self.sizes)
        smallest, _ = sizes[0]
        options: dict[str, str | int] = {"ba": max(bytes_of(setup.text("align")), setup.block)}
        if len(sizes) > 1:
            options["bssplit"] = bssplit(sizes)
        mixed = self.read_percent < 100
        if self.random_percent < 100:
            options["percentage_random"] = self.random_percent
        return setup.job(
            key,
            f"the load of a {self.title.lower()}, {depth} in flight",
            "randrw" if mixed else "randread",
            short(smallest),
            depth=depth,
            seconds=seconds,
            read_percent=self.read_percent if mixed else None,
            measured=measured,
            options=options,
        )

    def judge(self, records: Records, setup: Setup) -> Section:
        """Operations and latency by depth."""
        depths = setup.counts("depths")
        parts = [Part(f"qd{depth}", None, str(depth)) for depth in depths]
        rates, waits = (
            {depth: part.cell(records, what) for depth, part in zip(depths, parts, strict=True)}
            for what in ("iops", "mean")
        )
        tail = "p99/read p99/write" if self.read_percent < 100 else "p99/read"
        numbers = [
            number("IOPS, most", best(rates.values()), "IOPS", "higher"),
            *(
                number(f"IOPS, {depth} in flight", rate, "IOPS", "higher")
                for depth, rate in rates.items()
            ),
        ]
        table = work_table(
            records, parts, f"iops mbps mean {tail} max", title="By queue depth", corner="in flight"
        )
        said = [*self._said(rates, waits), *self._raised(setup)]
        figures = by_depth({"Operations": {self.title: rates}, "Mean latency": {self.title: waits}})
        return Section(said, numbers, [table, self._specification()], figures)

    def mix(self) -> str:
        """Sizes and shares in words."""
        small, large = (units.binary(pick(size for size, _ in self.sizes)) for pick in (min, max))
        sizes = small if small == large else f"{small} to {large}"
        return f"{sizes}, {self.read_percent} % reads, {self.random_percent} % random"

    def _specification(self) -> Table:
        return Table(
            f"Access specification: {self.read_percent} % reads, {self.random_percent} % random",
            columns("size of the request | share [%]"),
            [[units.binary(size), Cell(float(share))] for size, share in self.sizes],
        )

    def _said(self, rates: dict[int, Cell], waits: dict[int, Cell]) -> list[str]:
        most = best(rates.values()).value
        if most is None:
            return ["No queue depth has been measured yet."]
        enough = least_depth(rates)
        first = min(rates)
        if enough == first:
            return [
                f"Under the load of a {self.title.lower()} the drive does no more with more in "
                f"flight than with {first}: {units.iops(rates[first].value)} "
                f"({units.microseconds(waits[first].value)} each on average)."
            ]
        return [
            f"Under the load of a {self.title.lower()} the drive does "
            f"{units.iops(rates[enough].value)} with {enough} in flight "
            f"({units.microseconds(waits[enough].value)} each on average), "
            f"{units.times(ratio(rates[enough], rates[first]).value)} what it does with {first} in "
            "flight."
        ]

    def _raised(self, setup: Setup) -> list[str]:
        block = setup.block
        below = sum(share for size, share in self.sizes if size < block)
        if not below:
            return []
        return [
            f"The drive has logical blocks of {units.binary(block)}; the {below} % of the requests "
            "that are smaller were made that large."
        ]

    def protocols(self) -> tuple[Protocol, ...]:
        """The protocol of this access specification."""
        return procedure(
            "preset",
            self.name,
            f"IOmeter: {self.title}",
            f"IOPS under the load of a {self.title.lower()}, as Intel defined it: {self.mix()}",
            SOURCE,
            self.plan,
            self.judge,
            ProtocolParameter("depths", "1,2,4,8,16,32,64,128,256", "I/Os in flight"),
            ProtocolParameter("seconds", 60.0, "time for each depth"),
            ProtocolParameter("warm_s", 300.0, "seconds of the load before the first measurement"),
            ProtocolParameter(
                "align", "4k", "what offsets are multiples of; IOmeter's default is 512"
            ),
        )


ACCESSES = (
    Access("database", "Database", "8k/100", 67),
    Access("file-server", "File server", "512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10", 80),
    Access("workstation", "Workstation", "8k/100", 80, 80),
    Access("web-server", "Web server", WEB_SERVER, 100),
)
PROTOCOLS = tuple(protocol for access in ACCESSES for protocol in access.protocols())
