"""``ssdlab show``: everything about one thing that has a name."""

from __future__ import annotations

import tomllib
from typing import Annotated

import typer

from ssdlab import _core
from ssdlab.cli.console import stdout, table
from ssdlab.errors import UnknownNameError, nearest
from ssdlab.rig import Profile, leaves, profiles


def _names(incomplete: str = "") -> list[str]:
    names = [one.name for one in profiles()]
    names += [one["name"] for one in _core.registries()]
    names += [name for one in _core.job_options() for name in (one["name"], *one["aliases"])]
    return [name for name in names if name.startswith(incomplete)]


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A drive profile, a device, a policy or a job option.",
            autocompletion=_names,
        ),
    ],
) -> None:
    """Show a drive profile with its sources, a device, a policy or a job option."""
    found = False
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
            f'no drive, device, policy or job option is called "{name}"{hint}; '
            "ssdlab list drives|devices|policies|options names them"
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


def _show_keys(entry: _core.RegistryEntry) -> None:
    """The keys of a device, as a rig and --set take them."""
    keys = [key for key in _core.device_keys() if key["device"] == entry["name"]]
    if entry["kind"] == "device" and keys:
        columns = [(heading, "left") for heading in ("key", "values", "default", "meaning")]
        rows = [[key["key"], key["values"], key["default"], key["summary"]] for key in keys]
        stdout().print(table(columns, rows))
