"""Texts for users say things in the field's own words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "ssdlab"

AVOIDED = (
    "nothing stands against", "stands against the numbers", "not to be believed",
    "in order: errors", "not told", "window judged", "judged window", "single seconds range",
    "weakest 1 %", "each unit written by the host", "units written to flash", "quick look",
    "one of the moment", "drive itself counted", "how many i/os take longer", "% that take longer",
    "that took longer", "takes longer than", "of a million i/os", "one in a hundred",
    "one in a thousand", "longest latency", "lowest second", "lowest interval", "collected units",
    "in order, 1 mib", "i/o in order", "reading in order", "writes in order", "reads in order",
    "writing in order", "write in order", "read in order", "random addresses",
    "written in order", "filled in order", "range in order", "everything in order", "mb/s in order",
    "mib in order", "gib in order", "times in order", "{} in order", "random or in order",
    "in-order", "order with gaps", "longest response", "shortest mean", "shortest 99th", "foretell",
    "operations a second", "operations per second", "more i/os in flight bring",
    "little but waiting", "depth times the rate", "of perfect scaling", "commands of members",
    "survives the loss", "turn at the stripe", "turn at a stripe", "answered writes", "made safe",
    "order in which they leave", "use from which on", "uses from which on",
    "loses the newest writes", "nothing is left to correct", "begin of the rebuild", "maker allows",
    "times smaller", "noise allows to see", "mostly seen from", "times as good",
    "used to fit a drive", "so that they say nothing", "where and when",
    "larger than the place before", "state fresh out of the box", "tells no serial", "the begin of",
    "from its begin ", "from the begin ", "array is in service", "drive in small",
    "dies are worked off", "against time", "foretold", "of virtual time", "what its words",
    "how safely", "improvement as good", "spite of the number of", "spite of their number",
)  # fmt: skip
"""Phrases that no reader of fio, SNIA PTS and NVMe would write, in lower case."""
ANY = re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, AVOIDED))})")


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """The string literals of a module that are no docstrings, parts of f-strings together."""
    tree = ast.parse(path.read_text("utf-8"))
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in silent and id(node) not in inner:
                yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "{}" for p in node.values]
            yield node.lineno, "".join(str(part) for part in parts)


def texts() -> Iterator[tuple[str, str]]:
    """Everything that a user may read, with its place."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for line, text in strings(path):
            yield f"{path.relative_to(ROOT)}:{line}", text
    documents = [*PACKAGE.rglob("*.j2"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    for path in sorted(documents):
        for number, text in enumerate(path.read_text("utf-8").splitlines(), start=1):
            yield f"{path.relative_to(ROOT)}:{number}", text


def found_in(text: str) -> list[str]:
    """The avoided phrases in a text."""
    return ANY.findall(re.sub(r"\s+", " ", text).lower())


def test_texts_use_the_words_of_the_field() -> None:
    found = [f"{place}: {phrase}" for place, text in texts() for phrase in found_in(text)]
    assert not found, "\n".join(found)


def test_the_search_sees_strings_joined_over_lines_and_no_docstrings(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text('"""A quick look."""\nX = ("a quick "\n  f"look {1}")\n')
    assert [found_in(text) for _, text in strings(path)] == [["quick look"]]
