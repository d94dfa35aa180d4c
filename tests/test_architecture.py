"""Dependencies point down: reads the imports and fails on an upward one."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import ssdlab

PACKAGE = Path(ssdlab.__file__).parent

LAYERS = (
    ("_core",),
    ("errors", "memory", "profiles", "leftovers", "json_access", "numeric"),
    ("progress", "tracefile", "output", "opened", "units", "histogram", "quantities"),
    ("_version", "results", "jobfile", "system", "given"),
    ("wear",),
    ("documents", "answer"),
    ("tables",),
    ("store", "fio"),
    ("admin",),
    ("freeze", "imports", "logfolder", "rating", "traces"),
    ("safety", "smart"),
    ("audits",),
    ("tuning",),
    ("care", "simulation"),
    ("target",),
    ("rig", "bench", "simscan"),
    ("knowledge",),
    ("analysis",),
    ("engine",),
    ("checks",),
    ("arrays",),
    ("plan",),
    ("fits",),
    ("experiments",),
    ("protocols",),
    ("studies", "sweeps"),
    ("answers",),
    ("report",),
    ("api",),
    ("",),  # the package itself
    ("cli",),
    ("__main__",),
)
"""From the bottom up; a module imports from its own layer's siblings of the same name or below."""

LAZY = {
    ("results", "store"),
    ("results", "analysis"),
    ("results", "answer"),
    ("results", "api"),
}
"""Imports inside a function, or of types, that point up on purpose: `Result.save`,
`Result.summary` and `Result.report` are conveniences."""


def level(part: str) -> int:
    """The layer of a top-level module."""
    return next(i for i, layer in enumerate(LAYERS) if part in layer)


def imports(path: Path) -> Iterator[str]:
    """The top-level parts of ssdlab that a file imports."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ssdlab":
            parts = (node.module or "").split(".")
            if len(parts) > 1:
                yield parts[1]
            else:
                names = [alias.name for alias in node.names]
                yield from (name if _is_module(name) else "" for name in names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                if parts[0] == "ssdlab":
                    yield parts[1] if len(parts) > 1 else ""


def _is_module(name: str) -> bool:
    return any((PACKAGE / p).exists() for p in (name, f"{name}.py", f"{name}.pyi"))


def part_of(path: Path) -> str:
    """The top-level part that a file belongs to."""
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def files() -> list[Path]:
    """All Python files of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def test_every_part_has_its_layer() -> None:
    assert {part_of(path) for path in files()} <= {part for layer in LAYERS for part in layer}


def test_no_import_points_up() -> None:
    upward = {
        (part_of(path), other)
        for path in files()
        for other in imports(path)
        if other != part_of(path) and level(other) >= level(part_of(path))
    }
    assert upward == LAZY


def test_analysis_draws_nothing() -> None:
    for path in (PACKAGE / "analysis").rglob("*.py"):
        assert "bokeh" not in path.read_text("utf-8"), path


def test_files_stay_short_enough_to_read() -> None:
    long = {p.name: n for p in files() if (n := len(p.read_text("utf-8").splitlines())) > 550}
    assert long == {}


TOML_READERS = {
    "documents.py",
    "plan/prices.py",
    "experiments/base.py",
    "experiments/measured/cells.py",
    "fits/datasheet.py",
    "fits/twin.py",
    "smart/attributes.py",
    "sweeps/order.py",
}
"""Whether a kept rig.toml is TOML at all; prices; what was measured; what a twin rests
on, beside its rig; attributes of drives; sweeps. Rigs are read and written by the core alone."""


def test_the_core_alone_reads_and_writes_rigs() -> None:
    readers = set()
    for path in files():
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import) and any(a.name.startswith("toml") for a in node.names):
                readers.add(str(path.relative_to(PACKAGE)))
            # A literal that holds the heading of a device is a rig written by hand.
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                heads = re.search(r"^\[{1,2}device[].]", node.value, re.MULTILINE)
                assert heads is None, f"{path}:{node.lineno}"
    assert readers == TOML_READERS


def test_no_caller_asks_whether_a_target_is_simulated_by_its_class() -> None:
    asked = re.compile(
        r"isinstance\([^()]*(?:\([^()]*\))?[^()]*\b(?:Sim|Fio|SimSession|RealSession)\b"
    )
    found = {str(p.relative_to(PACKAGE)) for p in files() if asked.search(p.read_text("utf-8"))}
    assert found == {"target/__init__.py"}


def test_the_table_of_places_tells_each_place_once() -> None:
    text = (Path(__file__).parents[1] / "ARCHITECTURE.md").read_text("utf-8")
    table = text.partition("## Where things are")[2].partition("\n## ")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines() if row.startswith("| ")]
    themes = Counter(what.partition(":")[0] for what, _ in rows)
    # The first place of a row is what the row is about; later ones are parts of it or neighbours.
    about = Counter(re.findall(r"`([^`]+)`", where)[0] for _, where in rows if "`" in where)
    again = {one for one, times in (themes | about).items() if times > 1}
    assert again == {"python/ssdlab/engine/"}  # What runs a protocol, and what a run will take.
