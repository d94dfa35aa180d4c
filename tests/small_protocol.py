"""A protocol of many small steps and a program that runs it, for tests that stop and kill it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from ssdlab.answer import Number, Section
from ssdlab.checks import examine_run
from ssdlab.engine.plans import ProtocolOrder
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.records import Records
from ssdlab.engine.runs import begin, go_on
from ssdlab.engine.setup import ProtocolParameter, Setup
from ssdlab.engine.steps import Idle, Job, Purge, Rounds, Step, Then, Tracked, Trim, in_round
from ssdlab.errors import SsdlabError
from ssdlab.rig import resolve
from ssdlab.store import RunStore, open_run

RIG = """
name = "small"
[device]
kind = "ssd"
capacity = "64MiB"
nand = { channels = 2, ways = 1, page = "8KiB", pages_per_block = 64, t_read = "60us", t_program = "600us", t_erase = "3ms", transfer_mts = 400 }
ftl = { over_provisioning = 0.15, gc = { pace = "blocking" } }
"""  # noqa: E501


def plan(setup: Setup) -> list[Step]:
    def jobs(number: int) -> list[Job]:
        return [
            setup.job(
                in_round(number, "write"), "write", "randwrite", "4k", depth=4, amount=AMOUNT
            ),
            setup.job(in_round(number, "read"), "read", "randread", "4k", depth=4, amount=AMOUNT),
        ]

    def last(records: Records) -> list[Step]:
        faster = "randread" if records.iops(in_round(1, "read")) else "randwrite"
        return [setup.job("last", "what the first round suggests", faster, "4k", amount=AMOUNT)]

    rounds = Rounds(
        "rounds",
        "writes and reads",
        jobs,
        [Tracked("writes", "IOPS", lambda records, n: records.iops(in_round(n, "write")))],
        most=setup.count("rounds"),
        window=5,
    )
    return [
        Purge(),
        setup.fill(),
        rounds,
        Idle("rest", seconds=0.2),
        Trim("trim", length=1 << 20),
        Then("then", last),
    ]


def never_steady(setup: Setup) -> list[Step]:
    """Its rounds alone, with a value that climbs for ever."""
    climbing = Tracked("round", "", lambda _records, n: float(n * n))
    return [replace(s, tracked=[climbing]) for s in plan(setup) if isinstance(s, Rounds)]


AMOUNT = int(os.environ.get("SMALL_AMOUNT", "4")) << 20
"""Of each job; more where there must be time to kill it."""


def judge(records: Records, setup: Setup) -> Section:
    keys = [key for key in records if key.startswith("round")]
    numbers = [Number(key, records.iops(key), "IOPS", "higher", (key,)) for key in keys]
    return Section([f"{len(keys)} jobs in rounds"], numbers)


PROTOCOL = Protocol(
    name="small",
    title="A small protocol",
    summary="how tests go",
    source="the tests",
    group="everyday",
    plan=plan,
    judge=judge,
    parameters=(ProtocolParameter("rounds", 8, "rounds at most"),),
)


def order_of(name: Path | str) -> ProtocolOrder:
    """The protocol on a target: on a real one, unless there is time, no more rounds than the window
    of a steady state has, as each starts fio twice. On a simulated one the window moves on."""
    target = resolve(name)
    few = {} if target.simulated or os.environ.get("SSDLAB_LONG") else {"rounds": "5"}
    return ProtocolOrder(PROTOCOL, target, few, seed=7)


def main() -> int:
    """``begin STORE TARGET`` or ``resume FOLDER``; prints the folder's name at the end."""
    verb, place = sys.argv[1:3]
    try:
        if verb == "resume":
            folder = open_run(Path(place))
            done = go_on(
                folder,
                lambda _name: PROTOCOL,
                progress=lambda _news: True,
                notice=say,
                examine=examine_run,
            )
        else:
            order = order_of(sys.argv[3])
            if not order.target.simulated:
                order = replace(order, size=32 << 20)
            finished = begin(
                order,
                RunStore(place),
                progress=lambda _news: True,
                notice=say,
                announce=lambda _what: None,
                examine=examine_run,
            )
            assert finished is not None
            done = finished
    except KeyboardInterrupt:
        return 130
    except SsdlabError as error:
        say(error.message)
        return error.exit_status
    print(done.folder.path.name)
    return 0


def say(sentence: str) -> None:
    """Says it on stderr."""
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
