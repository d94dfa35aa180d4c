"""Conditions as people write them, such as ``capacity x members <= 8 TB and p999 < 5 ms``.

    condition = both {"or" both}              sum     = product {("+" | "-") product}
    both      = single {"and" single}         product = value {("x" | "*" | "/") value}
    single    = "not" single | comparison     value   = "-" value | "(" condition ")" | NAME
    comparison = sum [("<" | "<=" | ">" | ">=" | "=" | "==" | "!=") sum] | NUMBER [UNIT] | "TEXT"

Sizes and times carry their units (``8 TB``, ``5 ms``), so that a time is never held against a plain
number. A word beside ``=`` that is no name stands for itself (``ftl.gc.victim = greedy``).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from ssdlab.errors import InputError, meant
from ssdlab.units import quantity

KINDS = {"": "a number", "B": "a size (8 TB)", "ns": "a time (5 ms)", "text": "a text",
         "truth": "a condition"}  # fmt: skip
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\s*(?:[kMGTP]i?B|[kMGTP]|B|ns|us|ms|s|min|h|d|%)?(?![\w.]))
    |(?P<name>[A-Za-z_][\w.]*)|(?P<text>"[^"]*"|'[^']*')|(?P<sign><=|>=|==|!=|[-+*/()<>=]))""",
    re.VERBOSE,
)
_COMPARED: dict[str, Callable[[float | str, float | str], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "=": operator.eq, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


@dataclass(frozen=True)
class FormulaValue:
    """A number with its unit, a text, or whether something holds."""

    value: float | str
    kind: str = ""
    """One of :data:`KINDS`."""


Names = Callable[[str], FormulaValue | None]
"""What a name stands for; None where nothing is known of it."""
_Node = Callable[[Names], FormulaValue | None]


def value(text: str) -> FormulaValue:
    """A value as rigs and options are given it."""
    found = quantity(text)
    return FormulaValue(text, "text") if found is None else FormulaValue(*found)


@dataclass(frozen=True)
class Condition:
    """A condition that can be asked of many things."""

    text: str
    names: frozenset[str]
    """What it asks for."""
    _holds: _Node

    def holds(self, names: Names) -> bool:
        """Whether it does; False where something that it compares is not known; InputError where a
        time is held against a number, and the like."""
        held = self._holds(names)
        return held is not None and bool(held.value)


def condition(text: str, where: str, known: Collection[str]) -> Condition:
    """Reads a condition over the ``known`` names; InputError that says where in the text something
    else was expected."""
    parser = _Parser(text, where, known)
    node = parser.condition()
    parser.end()
    return Condition(text, frozenset(parser.used), node)


class _Parser:
    """Reads one text from its start to its end."""

    def __init__(self, text: str, where: str, known: Collection[str]) -> None:
        self._text, self._where, self._known = text, where, known
        self._at = 0
        self.used: set[str] = set()

    def condition(self) -> _Node:
        return self._chain(lambda: self._chain(self._single, "and", all), "or", any)

    def end(self) -> None:
        if self._text[self._at :].strip():
            raise self._wrong("expected and, or, or the end")

    def _chain(self, part: Callable[[], _Node], word: str, of: Callable[..., bool]) -> _Node:
        at = self._at
        parts = [part()]
        while self._take(word):
            parts.append(part())
        if len(parts) == 1:
            return parts[0]

        def node(names: Names) -> FormulaValue:
            values = (part(names) for part in parts)
            held = [one is not None and bool(self._as(one, "truth", at).value) for one in values]
            return FormulaValue(of(held), "truth")

        return node

    def _single(self) -> _Node:
        at = self._at
        if self._take("not"):
            return _of_known(partial(self._not, at), self._single())
        left = self._sum()
        sign = self._take(*_COMPARED)
        if not sign:
            return left
        right = self._sum(word=sign in ("=", "==", "!="))
        return _of_known(partial(self._compared, sign, at), left, right)

    def _not(self, at: int, a: FormulaValue) -> FormulaValue:
        return FormulaValue(not self._as(a, "truth", at).value, "truth")

    def _compared(self, sign: str, at: int, a: FormulaValue, b: FormulaValue) -> FormulaValue:
        self._as(b, a.kind, at)
        if a.kind == "text" and sign not in ("=", "==", "!="):
            raise self._wrong("texts are only alike or not (= or !=)", at)
        return FormulaValue(_COMPARED[sign](a.value, b.value), "truth")

    def _sum(self, word: bool = False) -> _Node:
        return self._operated(lambda: self._product(word), {"+": operator.add, "-": operator.sub})

    def _product(self, word: bool) -> _Node:
        signs = {"x": operator.mul, "*": operator.mul, "/": operator.truediv}
        return self._operated(lambda: self._value(word), signs)

    def _operated(
        self, part: Callable[[], _Node], signs: dict[str, Callable[[float, float], float]]
    ) -> _Node:
        node = part()
        while True:
            at = self._at
            sign = self._take(*signs)
            if not sign:
                return node
            node = _of_known(partial(self._reckoned, sign, signs[sign], at), node, part())

    def _reckoned(
        self, sign: str, of: Callable[[float, float], float], at: int,
        a: FormulaValue, b: FormulaValue,
    ) -> FormulaValue | None:  # fmt: skip
        if not (isinstance(a.value, int | float) and isinstance(b.value, int | float)):
            raise self._wrong("expected numbers on both sides", at)
        if sign in "+-":
            self._as(b, a.kind, at)
            kind = a.kind
        elif sign == "/":
            if not b.value:
                return None
            kind = "" if a.kind == b.kind else a.kind
        else:
            kind = a.kind or b.kind
        return FormulaValue(of(a.value, b.value), kind)

    def _value(self, word: bool) -> _Node:
        at = self._at
        if self._take("-"):
            return _of_known(partial(self._negated, at), self._value(word))
        if self._take("("):
            inner = self.condition()
            if not self._take(")"):
                raise self._wrong('expected ")"')
            return inner
        match = _TOKEN.match(self._text, self._at)
        if match is None or match["sign"]:
            raise self._wrong("expected a name, a number or (")
        self._at = match.end()
        if match["number"]:
            number = value(re.sub(r"\s+", "", match["number"]))
            return lambda _: number
        if match["text"]:
            text = FormulaValue(match["text"][1:-1], "text")
            return lambda _: text
        return self._named(match["name"], match.start("name"), word)

    def _negated(self, at: int, a: FormulaValue) -> FormulaValue:
        if isinstance(a.value, str):
            raise self._wrong("expected a number behind -", at)
        return FormulaValue(-a.value, a.kind)

    def _named(self, name: str, at: int, word: bool) -> _Node:
        if name in self._known:
            self.used.add(name)
            return lambda names: names(name)
        if not word or name in ("and", "or", "not"):
            hint = meant(name, self._known, ', did you mean "{}"?')
            raise self._wrong(f'nothing is called "{name}"{hint}', at)
        text = FormulaValue(name, "text")
        return lambda _: text

    def _take(self, *words: str) -> str:
        """The next token, if it is one of these."""
        match = _TOKEN.match(self._text, self._at)
        token = "" if match is None else match["name"] or match["sign"] or ""
        if match is None or token not in words:
            return ""
        self._at = match.end()
        return token

    def _as(self, a: FormulaValue, kind: str, at: int) -> FormulaValue:
        """The value; raises InputError where it is of another kind."""
        if a.kind != kind and {a.kind, kind} != {"", "B"}:
            raise self._wrong(f"{KINDS[kind]} cannot be held against {KINDS[a.kind]}", at)
        return a

    def _wrong(self, what: str, at: int | None = None) -> InputError:
        place = self._at if at is None else at
        column = 1 + place + len(self._text[place:]) - len(self._text[place:].lstrip())
        return InputError(f'{self._where} "{self._text}": column {column}: {what}')


def _of_known(of: Callable[..., FormulaValue | None], *parts: _Node) -> _Node:
    """What ``of`` makes of its parts; None where one of them is not known."""

    def node(names: Names) -> FormulaValue | None:
        values = [part(names) for part in parts]
        return None if None in values else of(*values)

    return node
