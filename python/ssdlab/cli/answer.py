"""What every command that answers a question does with its answer: print, page, JSON, tables."""

from __future__ import annotations

import csv
import functools
import inspect
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from io import BytesIO, StringIO
from itertools import chain, repeat
from pathlib import Path
from textwrap import wrap
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from typer.models import ArgumentInfo, OptionInfo

from ssdlab.cli import light
from ssdlab.cli.options import Csv, Json, Page, Quiet, QuietButTrouble, Verbose, Wide, Xlsx
from ssdlab.errors import InputError
from ssdlab.output import Output, make_folder, prove, write_to

if light.BODIES:
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    from ssdlab import units
    from ssdlab.answer import (
        MARK,
        MARK_NOTE,
        Answer,
        Cell,
        Check,
        Column,
        Table,
        cell_text,
        heading,
        numbers_table,
    )
    from ssdlab.api.watching import PIPE_WIDTH
    from ssdlab.cli.output import check_stdout, keeping, notice, results, say, write_json
    from ssdlab.tables import file_values, named_tables

T = TypeVar("T")
KEY_NUMBERS = 5
"""So many of the numbers are printed; the others with ``--verbose``."""
BRIEF = frozenset({"protocol", "arrays", "plan", "comparison", "reproduction"})
"""Kinds of answers of which a terminal shows the first sentence, numbers and table, unless all is
asked for: they are long."""
GAP = 2
"""Between columns."""
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")


@dataclass(frozen=True)
class View:
    """How an answer is wanted."""

    report: Page = None
    json_: Json = None
    csv: Csv = None
    xlsx: Xlsx = None
    verbose: Verbose = False
    wide: Wide = False
    quiet: Quiet = False
    says_when_quiet: ClassVar[bool] = True
    """Whether the answer itself is left then."""

    @property
    def documents(self) -> dict[str, Output | None]:
        """The options that take a place for a document, and what they were given."""
        first = {"--json": self.json_, "--report": self.report, "--xlsx": self.xlsx}
        own = {called(field.name): getattr(self, field.name) for field in fields(self)}
        return first | {name: place for name, place in own.items() if isinstance(place, Output)}

    @property
    def console(self) -> Console:
        """Where words for people go: not among what is for programs."""
        return results(*self.documents.values())

    def check(self) -> None:
        """Raises InputError where two documents want standard output, or tables cannot be written
        to their folder."""
        check_stdout(self.documents)
        if self.csv is not None:
            prove(self.csv)

    def require_no_documents(self, option: str, *but: str) -> None:
        """Raises InputError where documents of an answer are asked for beside an option that gives
        none, ``but`` those that it has documents of its own for."""
        every = {**self.documents, "--csv": self.csv}
        documents = {name: place for name, place in every.items() if name not in but}
        if given := next((name for name, place in documents.items() if place is not None), None):
            raise InputError(f"{given}: with {option} there is no answer to write; leave out one")

    def show(
        self,
        answer: Answer,
        *,
        seconds: float | None = None,
        kept: Path | None = None,
        follow: str = "",
        most: int | None = None,
        document: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Writes and prints the answer; ``seconds`` is how long that took, ``follow`` the command
        that goes on from here. At ``most`` so many rows of a table are printed; ``document`` is
        written by ``--json`` instead of the answer's own. Where ``quiet`` and nothing is written,
        the first sentence is left. Raises as :class:`ssdlab.output.Output` does."""
        with keeping(kept):
            self.write(answer, document)
        if self.quiet:
            written = any(one is not None for one in (*self.documents.values(), self.csv))
            if self.says_when_quiet and not written:
                say(self.console, answer.headline)
            return
        console = self.console
        took = "" if seconds is None else f", took {units.duration(seconds)}"
        say(console, answer.title + took, "bold")
        _print(console, answer, self, most=most)
        files = [one for one in self.documents.values() if one is not None and not one.is_stdout]
        places = [*map(str, files), *([] if self.csv is None else [str(self.csv)])]
        ends = [f"kept in {kept}"] if kept is not None else []
        ends += [f"wrote {units.listed(places)}"] if places else []
        ends += [f"next: {follow}"] if follow and self.report is None else []
        if ends:
            say(console, "; ".join(ends))

    def write(self, answer: Answer, document: Any) -> None:
        """Writes the documents that are asked for."""
        if self.json_ is not None:
            write_json(self.json_, answer.document if document is None else document)
        if self.report is not None:
            from ssdlab.report import answer_page  # heavy: only where it is used

            answer_page.render(answer, self.report)
        if self.csv is not None:
            _write_csv(answer, self.csv)
        if self.xlsx is not None:
            _write_xlsx(answer, self.xlsx)

    def print_table(self, table: Table) -> None:
        """Prints what ``quiet`` leaves: in columns in a pipe too, since cron mails it to people."""
        console = self.console
        print_table(console, table, wide=self.wide or not console.is_terminal)


@dataclass(frozen=True)
class TroubleView(View):
    """How an answer is wanted of which ``quiet`` leaves only what needs attention."""

    quiet: QuietButTrouble = False
    says_when_quiet = False


class Ask:
    """All that a command line gives, for a function of the package to be asked with."""

    def __init__(self, given: Mapping[str, Any], view: View | None) -> None:
        self.begun = time.monotonic()
        self.given = {name.strip("_"): value for name, value in given.items()}
        if view is not None:
            self.given |= {"progress": not view.quiet, "notice": notice}

    def __call__(self, function: Callable[..., T], *places: Any, **more: Any) -> T:
        """What a function answers to those of its parameters that are given, and to ``more``."""
        signature = inspect.signature(function)
        placed = signature.bind_partial(*places).arguments
        given = {
            name: self.given[name]
            for name in signature.parameters
            if name in self.given and name not in placed
        }
        several = [
            value
            for name, one in signature.parameters.items()
            if one.kind is one.VAR_POSITIONAL
            for value in given.pop(name, None) or ()
        ]
        return function(*places, *several, **given | more)

    @property
    def seconds(self) -> float:
        """Since the command began."""
        return time.monotonic() - self.begun


class Own(NamedTuple):
    """A parameter that a command has of the function that it is made of."""

    kind: Any
    told: Any
    """What typer is told of it."""
    reads: Callable[[Any, str], Any] | None = None
    """What makes of the text of an option, beside its name, what the function takes."""


def answering(
    command: Callable[..., None], own: Mapping[str, Own] | None = None
) -> Callable[..., None]:
    """Gives a command, in the place of a parameter that is a :class:`View`, the options of that:
    its fields; an :class:`Ask` if it takes one. ``own`` are those of a function, which come before
    others; what the command has itself takes their place, and it is given those that it names
    without a default."""
    hints = inspect.get_annotations(command, eval_str=True)
    parameters = inspect.signature(command).parameters
    views: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    asks = next((name for name, kind in hints.items() if kind is Ask), None)
    taken = dict(own or {})
    options = []
    for name, one in parameters.items():
        if name in views:
            kinds = get_type_hints(views[name], include_extras=True)
            options += [_declared(f.name, kinds[f.name], f.default) for f in fields(views[name])]
        elif name != asks and not (name in taken and one.default is one.empty):
            options.append(_declared(name, hints[name], one.default))
    mine = {option.name.strip("_"): option for option in options}
    first = [mine.get(k) or _declared(k, one.kind, one.told) for k, one in taken.items()]
    options = [*first, *(option for k, option in mine.items() if k not in taken)]
    options.sort(key=lambda option: not isinstance(option.default, ArgumentInfo))
    reads = {k: one.reads for k, one in taken.items() if one.reads is not None and k not in mine}

    @functools.wraps(command)
    def answered(**given: Any) -> None:
        for name, read in reads.items():
            given[name] = read(given[name], called(name))
        made: dict[str, Any] = {}
        for name, kind in views.items():
            made[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
            made[name].check()
        if asks is not None:
            made[asks] = Ask(given, next(iter(made.values()), None))
        command(**made, **{name: value for name, value in given.items() if name in parameters})

    answered.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    answered.__annotations__ = {option.name: option.annotation for option in options}
    return answered


def _declared(parameter: str, kind: Any, default: Any) -> inspect.Parameter:
    """A parameter as typer takes it. What is said of it is its default, or, where several commands
    have it, with its kind; an option is called as it is unless it has a name."""
    base, told = kind, copy(default)
    if get_origin(kind) is Annotated:
        base, told = get_args(kind)
        told = copy(told)
        told.default = ... if default is inspect.Parameter.empty else default
    if isinstance(told, OptionInfo) and not told.param_decls:
        told.param_decls = (called(parameter),)
    return inspect.Parameter(
        parameter, inspect.Parameter.KEYWORD_ONLY, default=told, annotation=base
    )


def called(parameter: str) -> str:
    """What the option of a parameter is called."""
    return f"--{parameter.strip('_').replace('_', '-')}"


def _print(console: Console, answer: Answer, view: View, *, most: int | None) -> None:
    """The answer, the key numbers or the first table, doubts; everything with --verbose."""
    if answer.headline:
        say(console, answer.headline)
    shown, whole = answer.lead.numbers, answer.kind not in BRIEF
    if view.verbose:
        _print_all(console, answer, view)
    else:
        if shown:
            say(console, "; ".join(_key_numbers(answer)))
        for sentence in answer.lead.sentences[1:] if whole else ():
            say(console, sentence)
        lead = answer.lead.telling
        # A protocol's numbers are its answer; other studies set things side by side.
        first = [] if shown and answer.kind == "protocol" else lead[:1]
        for table in lead if whole else first:
            print_table(console, table, answer.marks, wide=view.wide, most=most)
        for note in answer.notes if whole else ():
            say(console, note)
    print_checks(console, answer.checks, verbose=view.verbose)


def _print_all(console: Console, answer: Answer, view: View) -> None:
    for place, section in enumerate(answer.sections):
        sentences = list(section.sentences)[0 if place else 1 :]
        numbers = [numbers_table(section.numbers)] if section.numbers else []
        tables = (*numbers, *section.telling)
        # Of some sections there are charts alone.
        if place and section.title and (sentences or tables):
            say(console, f"\n{section.title}", "bold")
        for sentence in sentences:
            say(console, f"- {sentence}")
        for table in tables:
            print_table(console, table, answer.marks, wide=view.wide)
    for note in answer.notes:
        say(console, note)


def _key_numbers(answer: Answer) -> Iterator[str]:
    known = [number for number in answer.lead.numbers if number.value is not None]
    for number in known[:KEY_NUMBERS]:
        mark = MARK if any(key in answer.marks for key in number.sources) else ""
        yield f"{number.head}: {units.with_unit(number.value, number.unit)}{mark}"
    if len(known) > KEY_NUMBERS:
        yield f"{len(known) - KEY_NUMBERS} more with --verbose"


def print_checks(console: Console, checks: Sequence[Check], *, verbose: bool = False) -> None:
    """Each doubt once, and what passed; why it matters only where everything is told."""
    troubles = [check for check in checks if check.trouble]
    told = [
        f"{trouble.word} ({trouble.title}): "
        + trouble.evidence
        + (f"; {trouble.why}" if verbose else "")
        for trouble in troubles
    ]
    if told:
        say(console, ("\n" if verbose else " ").join(f"{one}." for one in told))
    good = [check.title for check in checks if check.status == "good"]
    unknown = [check.title for check in checks if check.status == "unknown"]
    if good and not troubles and not unknown:
        say(console, "1 check passed" if len(good) == 1 else f"all {len(good)} checks passed")
    elif verbose and (good or unknown):
        rest = [f"passed: {', '.join(good)}"] if good else []
        rest += [f"could not be checked: {', '.join(unknown)}"] if unknown else []
        say(console, "; ".join(rest))
    elif unknown and not troubles:
        passed = units.counted(len(good), "check")
        say(console, f"{passed} passed; could not be checked: {', '.join(unknown)}")


def print_rows(
    console: Console, heads: Sequence[str], rows: Sequence[Sequence[Cell | str | None]], *,
    wide: bool = False,
) -> None:  # fmt: skip
    """A table without a title, units and notes."""
    print_table(console, Table("", [Column(head) for head in heads], rows), wide=wide)


def print_table(
    console: Console, table: Table, marks: frozenset[str] = frozenset(), *, wide: bool = False,
    most: int | None = None,
) -> None:  # fmt: skip
    """A table: columns where they fit, else a block for each row; tab-separated in a pipe."""
    if most is not None and len(table.rows) > most:
        said = f"{most:,} of {len(table.rows):,} rows; --csv and --verbose give all. "
        table = replace(table, rows=table.rows[:most], anchors=(), note=said + table.note)
    heads = [heading(column) for column in table.columns]
    rows = [
        [
            cell_text(cell, column.unit, marks)
            for cell, column in zip(row, table.columns, strict=True)
        ]
        for row in table.rows
    ]
    if table.title:
        say(console, f"\n{table.title}")
    if not (wide or console.is_terminal):
        for line in [heads, *rows]:
            print("\t".join(line), file=console.file)  # rich makes spaces of tabs
    else:
        counts = [n for n in range(len(heads)) if _counts(table, n)]
        widths = [GAP + max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        # Prose at the end of short cells is broken into lines there.
        broken = not counts and sum(widths[:-1]) <= console.width // 2
        if wide or broken or sum(widths) <= console.width:
            console.print(
                _grid(heads, rows, counts), width=PIPE_WIDTH if wide else None, soft_wrap=wide
            )
        else:
            _print_blocks(console, heads, rows, max(1, next(iter(counts), 1)))
    if any(text.endswith(MARK) for row in rows for text in row):
        say(console, MARK_NOTE)
    if table.note:
        say(console, table.note)


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Grid:
    """A plain table; ``right`` are the places of columns that are set to the right."""
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, head in enumerate(heads):
        grid.add_column(head, justify="right" if place in right else "left", overflow="fold")
    for row in rows:
        # Names may hold what rich would read as markup.
        grid.add_row(*(Text(cell) for cell in row))
    return grid


def _counts(table: Table, column: int) -> bool:
    """Whether a column holds numbers: it is set to the right."""
    return any(not isinstance(row[column], str | None) for row in table.rows)


def _print_blocks(
    console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]], labels: int
) -> None:
    """A block for each row under its labels, the first columns; long cells take several lines."""
    width = max(map(len, heads[labels:]), default=0)
    room = max(console.width - width - 2 * GAP, 20)
    for row in rows:
        say(console, ", ".join(dict.fromkeys(row[:labels])))
        for head, text in zip(heads[labels:], row[labels:], strict=True):
            if text not in ("", units.DASH):
                lines = wrap(text, room, break_long_words=False, break_on_hyphens=False)
                for begin, line in zip(chain((head,), repeat("")), lines, strict=False):
                    say(console, f"  {begin:{width}}  {line}")


def _write_csv(answer: Answer, folder: Path) -> None:
    make_folder(folder)
    for name, table in named_tables(answer):
        text = StringIO()
        csv.writer(text, lineterminator="\n").writerows(file_values(table))
        write_to(folder / f"{name}.csv", text.getvalue())


def _write_xlsx(answer: Answer, place: Output) -> None:
    import xlsxwriter  # only where it is used

    content = BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True, "nan_inf_to_errors": True}) as book:
        bold = book.add_format({"bold": True})
        for name, table in named_tables(answer):
            sheet = book.add_worksheet(name)
            heads, *rows = file_values(table)
            sheet.write_row(0, 0, heads, bold)
            # Places in time, depths and counts are names of rows; a workbook draws along them.
            counted = all(_NUMBER.fullmatch(str(label)) for label, *_ in rows)
            for row, (label, *values) in enumerate(rows, 1):
                sheet.write_row(row, 0, [float(str(label)) if counted else label, *values])
            sheet.freeze_panes(1, 1)
            sheet.autofit()
    place.write(content.getvalue())
