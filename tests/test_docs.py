"""The examples in README.md and docs/ do what they say: ``sh``, ``python`` and ``toml`` blocks are
run, in a folder where ``examples/`` is; ``text`` blocks, and lines that call ``./lab``, are not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import warm
from conftest import PATIENCE_S
from ssdlab import _core
from ssdlab.rig import registered

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page that name a language."""
    language, first, lines = "", 0, list[str]()
    for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
        fence = re.fullmatch(r"```(\w*).*", line)
        if fence is None:
            lines.append(line)
        elif first:
            yield Block(page.name, first, language, "\n".join(lines) + "\n")
            first = 0
        else:
            language, first, lines = fence[1], number, []
    assert not first, f"{page}:{first}: a block that does not end"


def of(language: str) -> list[Block]:
    """All blocks in a language."""
    return [one for page in PAGES for one in blocks(page) if one.language == language]


def named(block: Block) -> str:
    """Where the block is."""
    return f"{block.page}:{block.line}"


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with ``ssdlab`` and ``python`` that have loaded what they need."""
    with warm.programs(tmp_path_factory.mktemp("warm")) as folder:
        yield folder


def run(command: list[str], folder: Path, ready: Path) -> None:
    """Runs a command where the examples are; its words where it fails."""
    (folder / "examples").symlink_to(ROOT / "examples")
    path = os.pathsep.join([str(ready), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("block", of("sh"), ids=named)
def test_a_shell_example_runs(block: Block, tmp_path: Path, ready: Path) -> None:
    if re.search(r"--on (\./|/|\w+\.bin)", block.text) and shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    lines = block.text.splitlines(keepends=True)
    script = "".join(line for line in lines if not line.lstrip().startswith("./lab"))
    run(["sh", "-eu", "-c", script], tmp_path, ready)


@pytest.mark.parametrize("block", of("python"), ids=named)
def test_a_python_example_runs(block: Block, tmp_path: Path, ready: Path) -> None:
    run(["python", "-c", block.text], tmp_path, ready)


@pytest.mark.parametrize("block", of("toml"), ids=named)
def test_a_rig_example_is_a_rig(block: Block) -> None:
    if "[device]" not in block.text:
        pytest.skip("is no whole rig")
    _core.rig_check(block.text, rig_name=named(block))


def test_lines_of_the_changelog_fit_a_window() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    assert [number for number, line in enumerate(lines, start=1) if len(line) > 120] == []


def test_the_readme_shows_a_run_in_the_shell_and_in_python() -> None:
    languages = {one.language for one in blocks(ROOT / "README.md")}
    assert {"sh", "python"} <= languages


def test_the_page_of_caches_has_every_replacement_policy() -> None:
    text = (ROOT / "docs" / "caches.md").read_text("utf-8")
    table = text.partition("| policy | parameters |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `(.*?)`", table, re.MULTILINE)) == sorted(
        registered("replacement policy")
    )
    told = re.search(r"^(.*) hold objects of different sizes", text, re.MULTILINE)
    assert told is not None
    assert sorted(re.findall(r"`(.*?)`", told[1])) == sorted(_core.object_policies())


def places(page: Path) -> set[str]:
    """The anchors of a page's headings, as those who show the file in its repository make them."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    heads = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_what_the_pages_link_to_is_there() -> None:
    for page in PAGES:
        links = re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text("utf-8"))
        for target, place in links:
            if "://" not in target:
                to = page.parent / target if target else page
                assert to.exists(), f"{page.name}: {target}"
                assert not place or place in places(to), f"{page.name}: {target}#{place}"
