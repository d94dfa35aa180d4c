"""``ssdlab show``: everything about one thing that has a name."""

from __future__ import annotations

import tomllib
from typing import Annotated

import typer

from ssdlab import _core
from ssdlab.cli.console import duration, stdout, table
from ssdlab.engine import estimate
from ssdlab.engine.protocol import EXAMPLE_BYTES, Protocol, example_setup
from ssdlab.errors import UnknownNameError, nearest
from ssdlab.protocols import protocols
from ssdlab.rig import Profile, leaves, profiles


def _names(incomplete: str = "") -> list[str]:
    names = [one.name for one in profiles()] + [one.name for one in protocols()]
    names += [one["name"] for one in _core.registries()]
    names += [name for one in _core.job_options() for name in (one["name"], *one["aliases"])]
    return [name for name in names if name.startswith(incomplete)]


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A drive profile, a protocol, a device, a policy or a job option.",
            autocompletion=_names,
        ),
    ],
) -> None:
    """Show a drive profile with its sources, a protocol, a device, a policy or a job option."""
    found = False
    for protocol in protocols():
        if protocol.name == name:
            _show_protocol(protocol)
            found = True
    for profile in profiles():
        if profile.name == name:
            _show_profile(profile)
            found = True
    for entry in _core.registries():
        if entry["name"] == name:
            _say(f"{entry['name']} ({entry['kind']}): {entry['summary']}", entry["reference"])
            _show_keys(entry)
            found = True
    for option in _core.job_options():
        if name in (option["name"], *option["aliases"]):
            also = f", also {', '.join(option['aliases'])}" if option["aliases"] else ""
            _say(
                f"{option['name']} (job option{also}): {option['summary']}",
                f"such as {option['name']}={option['example']}; "
                f"{option['effect']} on simulated drives",
            )
            found = True
    if not found:
        near = nearest(name, _names())
        hint = f' (did you mean "{near}"?)' if near else ""
        raise UnknownNameError(
            f'no drive, protocol, device, policy or job option is called "{name}"{hint}; '
            "ssdlab list drives|protocols|devices|policies|options names them"
        )


def _say(sentence: str, reference: str) -> None:
    stdout().print(sentence, markup=False, soft_wrap=True)
    if reference:
        stdout().print(f"  {reference}", markup=False, soft_wrap=True)


def _show_profile(profile: Profile) -> None:
    _say(f"{profile.name}: {profile.summary}", "")
    # The keys as --set takes them.
    rows = [list(row) for row in leaves(tomllib.loads(profile.text).get("device", {}))]
    stdout().print(table([("key", "left"), ("value", "left"), ("source", "left")], rows))


def _show_protocol(protocol: Protocol) -> None:
    """What it answers, what can be changed, and what it does on a drive of 100 GB."""
    _say(f"{protocol.name} (protocol): {protocol.summary}", protocol.source)
    rows = [
        [one.name, ", ".join(one.choices) or type(one.default).__name__, str(one.default), one.help]
        for one in protocol.parameters
    ]
    if rows:
        columns = [(heading, "left") for heading in ("parameter", "values", "default", "meaning")]
        stdout().print(table(columns, rows))
    example = example_setup(protocol)
    about = estimate.of(list(protocol.plan(example)))
    least, most = duration(about.seconds_min), duration(about.seconds_max)
    span = least if least == most else f"{least} to {most}"
    stdout().print(f"on a drive of {EXAMPLE_BYTES // 10**9} GB it takes about {span}", markup=False)


def _show_keys(entry: _core.RegistryEntry) -> None:
    """The keys of a device, as a rig and --set take them."""
    keys = [key for key in _core.device_keys() if key["device"] == entry["name"]]
    if entry["kind"] == "device" and keys:
        columns = [(heading, "left") for heading in ("key", "values", "default", "meaning")]
        rows = [[key["key"], key["values"], key["default"], key["summary"]] for key in keys]
        stdout().print(table(columns, rows))
