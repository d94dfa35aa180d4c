"""The commands put together; each is loaded when it is asked for."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption
from typer.main import get_command

from ssdlab.cli import light
from ssdlab.given import expected, within

COMMANDS = (
    "run test fit predict sweep query resume import report compare ab array explain list show "
    "reproduce health audit setup scan trim purge refresh reliability trace cache plan"
).split()
"""In the order of the help. The module of a command has its name, and the function ``command``, or
``app`` with commands of its own; a command without one is made of the function of the package."""
MODULES = {"list": "listing", "import": "import_"}
"""Modules of commands whose names Python has taken."""


def is_made(name: str) -> bool:
    """Whether the command of that name has no module of its own."""
    return not Path(__file__).with_name(f"{MODULES.get(name, name)}.py").exists()


def take_made() -> None:
    """Commands that are made of functions come last, unless they have a place among the others."""
    there = light.index()["made"]
    COMMANDS[:] = [name for name in COMMANDS if name in there or not is_made(name)]
    COMMANDS.extend(name for name in there if name not in COMMANDS)


take_made()


class Commands(TyperGroup):
    """Has only the summaries of commands, for the help, until one of them is asked for."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """As the base class, with the command itself instead of its summary."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and load(str(name)), rest


def module_of(arguments: Sequence[str]) -> ModuleType | None:
    """The module of the command that a command line names, loaded; None where it names none that
    has one of its own."""
    name = next((argument for argument in arguments if not argument.startswith("-")), None)
    if name not in COMMANDS or (is_made(name) and load(name)):
        return None
    return importlib.import_module(f"ssdlab.cli.{MODULES.get(name, name)}")


@cache
def load(name: str) -> Any:
    """The command, or group of commands, of that name; put together once."""
    module = None if is_made(name) else module_of([name])
    group = getattr(module, "app", None)
    if group is None:
        group = typer.Typer(add_completion=False, rich_markup_mode=None)
        function = _made(name) if module is None else module.command
        group.command(name, cls=getattr(module, "COMMAND_CLASS", None))(function)
    command = get_command(group)
    command.name = name
    _in_our_words(command)
    return command


def _made(name: str) -> Any:
    from ssdlab.cli import made  # it takes what the words of other commands do without

    return made.load(name.replace("-", "_"))


PLACES = frozenset({"PATH", "TARGET", "TRACE", "DIR"})
"""Arguments that are or may be places; what names something else is told as unknown where it is
empty."""


def _in_our_words(command: Any) -> None:
    """Options of one value are refused a second time: the first would be lost without a word. So is
    an empty value, as of a variable that is not set, which as a path would be the present folder,
    the next option where a value is missing, and what is no number where one is wanted. The help
    shows no types of Python.
    """
    for part in getattr(command, "commands", {}).values():
        _in_our_words(part)
    for argument in (one for one in command.params if isinstance(one, TyperArgument)):
        argument.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
    make = command.make_parser
    options = {name for one in command.params for name in one.opts if name.startswith("-")}

    def make_parser(ctx: Any) -> Any:
        parser = make(ctx)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> Any:
            found = parse(args)
            for argument in (one for one in found[-1] if isinstance(one, TyperArgument)):
                values = found[0].get(argument.name)
                empty = "" in (values if isinstance(values, list | tuple) else [values])
                if empty and PLACES & {*re.findall(r"\w+", argument.metavar or "")}:
                    ctx.fail(f"{argument.metavar} is empty; name a file, folder or drive")
            given = [one for one in found[-1] if isinstance(one, TyperOption)]
            for option in given:
                many = option.multiple or option.is_flag or option.count
                if not many and given.count(option) > 1:
                    ctx.fail(f"{option.opts[0]} is given twice, but takes one value")
                values = found[0].get(option.name)
                each = values if isinstance(values, list) else [values]
                if not option.required and "" in each:
                    ctx.fail(f"{option.opts[0]} is empty; give it a value or leave it out")
                if swallowed := next((one for one in each if one in options), None):
                    ctx.fail(f"{option.opts[0]} has no value: {swallowed} follows, an option")
                if wanted := _wants(option, values):
                    ctx.fail(f'{option.opts[0]} "{values}": expected {wanted}')
            return found

        parser.parse_args = parse_args
        return parser

    command.make_parser = make_parser


def _wants(option: TyperOption, given: object) -> str:
    """The number that an option wants, where it is given none; else nothing."""
    kind = option.type_descriptor.annotation
    if kind not in (int, float) or not isinstance(given, str):
        return ""
    least = -math.inf if option.min is None else option.min
    most = math.inf if option.max is None else option.max
    try:
        number = kind(given)
        # What has no bounds here is told by its function if it is none (nan).
        right = within(number, least, most) or least == -math.inf
    except ValueError:
        right = False
    return "" if right else expected(kind is int, least, most)


@cache
def root() -> Any:
    """The program, as a group of commands; put together once."""
    if not light.BODIES:
        # No value is used then; Typer's checks of them would load pydantic.
        kinds: tuple[Any, ...] = (TyperArgument, TyperOption)
        for kind in kinds:
            kind.get_runtime_param = lambda _: _Anything()
    command = get_command(app)
    # Shells find the completions among what is installed (python/ssdlab.data).
    own = ("install_completion", "show_completion")
    command.params = [param for param in command.params if param.name not in own]
    return command


class _Anything:
    """Takes any value of an option for right."""

    def coerce(self, value: object, **_: object) -> object:
        """The value itself."""
        return value


def _version(wanted: bool) -> None:
    if wanted:
        from ssdlab import __version__

        typer.echo(f"ssdlab {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=Commands,
    name="ssdlab",
    help="A laboratory for solid-state storage: one fio job on simulated and real drives.",
    no_args_is_help=True,
    epilog="Exit status: 0 good, 1 the experiment failed, 2 the input is wrong, "
    "3 refused for safety, 130 stopped by Ctrl-C, SIGTERM or SIGHUP.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


for _name in COMMANDS:  # each with its summary, for the help
    app.command(_name, help=light.index()["commands"].get(_name))(lambda: None)
