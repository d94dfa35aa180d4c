"""Commands that are made of functions: what a function takes and says is what its command does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

import ssdlab
from ssdlab.answer import Answer, Number, Section
from ssdlab.api.kept import Kept
from ssdlab.api.report import Report
from ssdlab.api.watching import Watch
from ssdlab.cli import light, made
from ssdlab.cli.answer import Ask, View
from ssdlab.cli.options import option
from ssdlab.given import Many, Size
from ssdlab.progress import Notice

GIVEN: list[dict[str, Any]] = []


def half_tail(
    *runs: Kept | Sequence[Kept],
    spare: Many = "7%,14%",
    size: Size | None = None,
    members: int = 4,
    share: float | None = None,
    set: Mapping[str, object] | None = None,
    tries: bool = True,
    whole: bool = False,
    out: str | Path | None = None,
    cluster: str | None = None,
    prepare: str | None = None,
    progress: Watch = None,
    notice: Notice | None = None,
) -> Report:
    """Guesses what halves a tail, and where.

    Which ``members`` are meant says :func:`ssdlab.array`.

    Args:
        runs: Runs, as ``ssdlab list runs`` shows them. In Python also a :class:`ssdlab.Result`,
            e.g. one of these.
        spare: What is tried beside ``set``: ``"7%,14%"``.
        size: Of a file; ``"8g"``
            unless given.
        members: Drives.
        share: Of all.
        set: Keys.
        tries: It is tried.
        whole: All of it is read.
        out: Where the runs are kept.
        cluster: As for :func:`ssdlab.sweep`.
        prepare: State before all, as for :func:`ssdlab.run`.
        progress: Who is told.
        notice: Who is told in words.

    Raises:
        InputError: nothing can be guessed.
    """
    GIVEN.append(locals())
    return Report(
        Answer("half a tail", "half tail", [Section(["found"], [Number("IOPS", 5.0, "IOPS")])])
    )


@pytest.fixture
def parameters(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Of the function, now one of the package, as its command has them."""
    module = ModuleType("ssdlab.api.half_tail")
    vars(module)["half_tail"] = half_tail
    monkeypatch.setattr(half_tail, "__module__", module.__name__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(ssdlab, "half_tail", half_tail, raising=False)
    monkeypatch.setattr(ssdlab, "__all__", [*ssdlab.__all__, "half_tail"])
    assert "half_tail" in made.studies()
    about = made.described("half_tail")
    monkeypatch.setitem(light.index()["functions"], "half_tail", about)
    assert about["help"] == (
        "Guess what halves a tail, and where.\n\nWhich --members are meant says `ssdlab array`."
    )
    return {one["name"]: one for one in about["parameters"]}


def test_a_command_speaks_of_options_where_its_function_speaks_of_parameters(
    parameters: dict[str, dict[str, Any]],
) -> None:
    assert "progress" not in parameters and "notice" not in parameters
    assert {name: one["help"] for name, one in parameters.items()} | {
        "runs": "Runs, as `ssdlab list runs` shows them.",
        "spare": "What is tried beside --set: 7%,14%.",
        "size": "Of a file; 8g unless given.",
    } == {name: one["help"] for name, one in parameters.items()}
    assert "steps joined by commas" in parameters["prepare"]["help"]


def carry_out(command: Callable[..., None], *arguments: str) -> None:
    app = typer.Typer(add_completion=False)
    app.command()(command)
    typer.main.get_command(app)([*arguments], standalone_mode=False)


def run(*arguments: str) -> dict[str, Any]:
    """What the function is given by a command line."""
    carry_out(made.load("half_tail"), *arguments)
    return GIVEN.pop()


@pytest.mark.usefixtures("parameters")
def test_a_function_is_given_what_a_command_line_has(capsys: pytest.CaptureFixture[str]) -> None:
    plain = run("a", "b,c", "-q")
    assert plain["runs"] == ("a", "b,c")
    assert plain["progress"] is False and plain["notice"] is not None
    defaults = {"spare": "7%,14%", "members": 4, "set": {}, "tries": True, "whole": False}
    assert plain | defaults | dict.fromkeys(("size", "share", "out", "cluster")) == plain
    full = run(
        *("a", "--spare", "1%", "--size", "8GB", "--members", "2", "--share", "0.5"),
        *("--set", "x=1", "--set", "y.z=2", "--no-try", "--whole", "--out", "there", "--json", "-"),
    )
    assert full["spare"] == "1%" and full["size"] == "8GB" and full["members"] == 2
    assert full["share"] == 0.5 and full["set"] == {"x": "1", "y.z": "2"}
    assert not full["tries"] and full["whole"] and str(full["out"]) == "there"
    assert "IOPS: 5 IOPS" in capsys.readouterr().err


@pytest.mark.usefixtures("parameters")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("spare: What", "spaer: What", r"api\.half_tail\.half_tail: .* does not say: spare "),
        ("Args:", "Arguments:", "does not say: runs, spare, size"),
        ("ssdlab.sweep", "ssdlab.swepe", "cluster: As for .*swepe.*There is no such function"),
    ],
)
def test_what_documentation_does_not_say_is_told(
    old: str, new: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert half_tail.__doc__ is not None
    monkeypatch.setattr(half_tail, "__doc__", half_tail.__doc__.replace(old, new))
    with pytest.raises(ssdlab.InputError, match=said):
        made.described("half_tail")


def test_a_type_that_no_option_can_give_is_told() -> None:
    about = {"name": "x", "place": "KEYWORD_ONLY", "takes": "complex | None", "help": "A number."}
    with pytest.raises(ssdlab.InputError, match=r'"complex \| None": TYPES in cli/made.py'):
        made._own("f", {**about, "required": False, "default": None})


@pytest.mark.usefixtures("parameters")
def test_numbers_keep_to_the_bounds_of_the_function() -> None:
    with pytest.raises(Exception, match="greater than or equal to 1"):
        run("a", "--members", "0")
    with pytest.raises(Exception, match="Missing parameter: runs"):
        run()


@pytest.mark.usefixtures("parameters")
def test_a_command_may_do_more_than_its_function() -> None:
    told: dict[str, Any] = {}

    @made.of("half_tail")
    def command(
        runs: list[str],
        *,
        members: str = option("FEW", "Its own.", default="few"),
        where: str = option("PLACE", "More.", default="here"),
        view: View,
        ask: Ask,
    ) -> None:
        told.update(runs=runs, members=members, where=where, given=ask.given)

    carry_out(command, "a", "b", "--where", "there", "--set", "x=1", "--share", "2", "-v")
    given = told.pop("given")
    assert told == {"runs": ["a", "b"], "members": "few", "where": "there"}
    assert given["share"] == 2.0 and given["set"] == {"x": "1"} and given["members"] == "few"
    assert str(command.__doc__).startswith("Guess what halves a tail")
    with pytest.raises(ssdlab.InputError, match='--set "x": write it as KEY=VALUE'):
        carry_out(command, "a", "--set", "x")
