"""``ssdlab show``: everything about one thing that has a name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdlab import _core
from ssdlab.cli import light
from ssdlab.cli.answer import View, answering, print_rows
from ssdlab.cli.options import Csv, Json, KeptWhere, Verbose, Wide, Xlsx, argument
from ssdlab.errors import InputError, UnknownNameError, meant

if light.BODIES:
    from ssdlab import knowledge, units
    from ssdlab.answer import Answer, Section, Table
    from ssdlab.answers import kept
    from ssdlab.arrays.attachment import shipped_attachments
    from ssdlab.cli.output import on_stdout, say, stdout
    from ssdlab.engine import estimate
    from ssdlab.engine.protocol import EXAMPLE_BYTES, Protocol, example_setup
    from ssdlab.engine.speed import assumed
    from ssdlab.protocols import protocols
    from ssdlab.rating import between
    from ssdlab.rig import Profile, of_file, profiles
    from ssdlab.store import RunStore, open_run
    from ssdlab.tables import settings_table

EXAMPLE_SPEED = "500MB/s,50kiops"
"""Of the drive by which a protocol is explained."""
DESCRIBED = ("NAND part", "host interface")
"""What has values of its own, each with a source."""
RIG_FILE = ".toml"
NAMED = ("drives", "protocols", "controllers", "policies", "options")


def _complete(incomplete: str) -> list[str]:
    found = [*light.complete(*NAMED)(incomplete), *light.complete_runs(incomplete)]
    return list(dict.fromkeys(found))


@answering
def command(
    name: str = argument(
        "NAME",
        "A run, a drive profile, a rig file, a NAND part, a host interface, a controller, a "
        "protocol, a device, a policy or a job option.",
        autocompletion=_complete,
    ),
    json_: Json = None,
    csv: Csv = None,
    xlsx: Xlsx = None,
    out: KeptWhere = None,
    verbose: Verbose = False,
    wide: Wide = False,
) -> None:
    """Show a run; a drive, part or controller with sources; a protocol, device, policy, option."""
    view = View(json_=json_, csv=csv, xlsx=xlsx, verbose=verbose, wide=wide)
    view.check()
    things = list(_things(name))
    if things and out is not None:
        raise InputError(f"--out is where runs are kept, and {name} is none")
    if not things and (folder := RunStore(out).seek(name)) is not None:
        run = open_run(folder)
        view.show(kept.answer([run]), kept=folder)
        return
    if not things:
        hint = meant(name, light.names(*NAMED))
        raise UnknownNameError(
            f'nothing that can be shown is called "{name}"{hint}; ssdlab list runs|drives|parts|'
            "interfaces|controllers|protocols|devices|policies|options names them, a rig file ends "
            f"in {RIG_FILE}"
        )
    tables = Answer(name, "shown", [Section(tables=[thing.table for thing in things])])
    view.write(tables, [thing.as_json(name) for thing in things])
    if not on_stdout(json_):
        for thing in things:
            thing.print()


@dataclass(frozen=True)
class _Thing:
    """What has the name: one may be a drive and a protocol."""

    kind: str
    head: str
    reference: str
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    last: str = ""
    drive_class: str | None = None

    @property
    def table(self) -> Table:
        own = [place for place, head in enumerate(self.headings) if head in ("value", "default")]
        return settings_table(self.kind, self.headings, self.rows, own)

    def as_json(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "kind": self.kind,
            "summary": self.head.partition(": ")[2],
            "source": self.reference,
            "class": self.drive_class,
            "rows": [dict(zip(self.headings, row, strict=True)) for row in self.rows],
            "note": self.last,
        }

    def print(self) -> None:
        console = stdout()
        say(console, self.head)
        if self.reference:
            say(console, f"  {self.reference}")
        if self.drive_class:
            say(console, f"  class of drive: {self.drive_class}")
        if self.rows:
            print_rows(console, self.headings, self.rows)
        if self.last:
            say(console, self.last)


def _things(name: str) -> Iterator[_Thing]:
    for protocol in protocols():
        if protocol.name == name:
            yield _protocol(protocol)
    for profile in profiles():
        if profile.name == name:
            yield _profile(profile)
    if name.endswith(RIG_FILE):
        yield _profile(of_file(Path(name)))
    if name in shipped_attachments():
        # What an array can stand behind; its keys are those of the device and of an array's bus.
        attachment = shipped_attachments()[name]
        head = f"{name} (controller): {attachment.summary}"
        yield _Thing("controller", head, "", ("key", "value", "source"), tuple(attachment.values()))
    for entry in _core.registries():
        if entry["name"] == name:
            yield _entry(entry)
    for option in _core.job_options():
        if name in (option["name"], *option["aliases"]):
            also = f", also {', '.join(option['aliases'])}" if option["aliases"] else ""
            yield _Thing(
                "job option",
                f"{option['name']} (job option{also}): {option['summary']}",
                f"such as {option['name']}={option['example']}; "
                f"{option['effect']} on simulated drives",
            )


def _profile(profile: Profile) -> _Thing:
    head = ": ".join(filter(None, (profile.name, profile.summary)))
    # The keys as --set takes them.
    rows = tuple(
        (value.key, value.text, value.origin, value.source)
        for value in knowledge.values(profile.rig())
    )
    headings = ("key", "value", "supplied by", "source")
    told = "\n".join(knowledge.told(profile))
    return _Thing("drive", head, "", headings, rows, told, profile.rig().drive_class or "unknown")


def _protocol(protocol: Protocol) -> _Thing:
    """What it answers, what can be changed, and what it does on a drive of 100 GB."""
    rows = tuple(
        (
            parameter.name,
            ", ".join(parameter.choices) or type(parameter.default).__name__,
            str(parameter.default),
            parameter.help,
        )
        for parameter in protocol.parameters
    )
    about = estimate.of(protocol.plan(example_setup(protocol)), assumed(EXAMPLE_SPEED))
    span = between(about.soon.low, about.never.high, units.duration)
    return _Thing(
        "protocol",
        f"{protocol.name} (protocol): {protocol.summary}",
        protocol.source,
        ("parameter", "values", "default", "meaning"),
        rows,
        f"on a drive of {EXAMPLE_BYTES // 10**9} GB and {EXAMPLE_SPEED} it takes {span}",
    )


def _entry(entry: _core.RegistryEntry) -> _Thing:
    """A device with its keys as a rig and --set take them, a policy, or what has values."""
    if entry["kind"] in DESCRIBED:
        head = f"{entry['name']} ({entry['kind']}): {entry['summary']}"
        rows = tuple(_core.description(entry["name"]))
        return _Thing(entry["kind"], head, "", ("key", "value", "source"), rows)
    keys = _core.device_keys() if entry["kind"] == "device" else []
    return _Thing(
        entry["kind"],
        f"{entry['name']} ({entry['kind']}): {entry['summary']}",
        entry["reference"],
        ("key", "values", "default", "meaning"),
        tuple(
            (key["key"], key["values"], key["default"], key["summary"])
            for key in keys
            if key["device"] == entry["name"]
        ),
    )
