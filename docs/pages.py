"""What `./lab docs` adds to the pages of this folder: a hook of mkdocs, and one of griffe.

README.md and its neighbours become pages, notebooks are executed, and there is a page for each part
of the Python package and for each published experiment. Links that lead out of this folder in the
repository lead to the page that the site has for it.
"""

from __future__ import annotations

import html
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import generate
import griffe
import nbclient
import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

import ssdlab
from ssdlab.experiments import EXPERIMENTS
from ssdlab.experiments.base import Experiment
from ssdlab.report import style

DOCS = Path(__file__).parent
ROOT = DOCS.parent
AROUND = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages made of files that lie outside of this folder."""
API: Mapping[str, tuple[str, str]] = {
    "Runs": (
        "Running a job, and what comes of it.",
        "run replay load runs query Result JobResult DirectionStats RunStore",
    ),
    "Reports": ("What every other function returns.", "Report Chart"),
    "Rigs and names": (
        "Simulated drives, arrays and caches as values, and the names that can be given.",
        "Rig drives parts devices policies procedures",
    ),
    "Many simulations": (
        "Variants, arrays, caches and plans: each simulates what it compares.",
        "sweep array cache plan_cache plan_storage reliability reproduce",
    ),
    "Understanding runs": (
        "Why a run is as it is, and whether two differ.",
        "explain compare ab",
    ),
    "Drives and traces": (
        "Tests by protocol, health, twins, results of others, recorded loads.",
        "test resume health audit scan fit predict import_runs trace",
    ),
    "Targets, progress, errors": (
        "What the functions above take and raise.",
        "Target Sim Fio Settings Progress ProgressCallback SsdlabError InputError "
        "UnknownNameError RefusedError ExperimentError MissingProgramError Interrupted",
    ),
}
"""Pages on the package by title: what they are about, and the names on them."""
PATIENCE_S = 120
HIDDEN = "remove-cell"
"""The tag of cells that hold a notebook to what its text says."""
TOGETHER = 2
LINK = re.compile(r"(?<!\\)\]\(([^)#\s]+)(#[^)\s]*)?\)")
ROLE = re.compile(r":(?:func|class|meth|attr|mod|exc):`~?([\w.]+)`")
ANSI = re.compile(r"\x1b\[[0-9;]*m")
OUTPUTS: dict[str, list[str]] = {}
"""What the cells of a notebook show, by the address of its page."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The generated pages go where the others of their kind are."""
    where = {next(iter(one)): next(iter(one.values())) for one in config.nav or []}
    where["Understand"].append(
        {"Experiments": [f"experiments/{one.name}.md" for one in EXPERIMENTS]}
    )
    where["Reference"].insert(1, {"Python": [f"api/{_file(title)}.md" for title in API]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what is no file of this folder."""
    add = partial(_add, files, config)
    add("assets/dark.css", "\n".join(_dark()))
    for name, page in AROUND.items():
        add(page, (ROOT / name).read_text("utf-8"))
    for path in sorted((ROOT / "examples").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            add(str(path.relative_to(ROOT)), path.read_bytes())
    missing = {*ssdlab.__all__} - {"__version__"}.union(*(n.split() for _, n in API.values()))
    if missing:
        raise PluginError(f"docs/pages.py: API has no place for {', '.join(sorted(missing))}")
    for title, (about, names) in API.items():
        add(f"api/{_file(title)}.md", "\n".join(_api(title, about, names.split())))
    for one in EXPERIMENTS:
        add(f"experiments/{one.name}.md", "\n".join(_experiment(one)))
    notebooks = sorted((DOCS / "notebooks").glob("*.ipynb"))
    with ThreadPoolExecutor(TOGETHER) as pool:
        for path, done in zip(notebooks, pool.map(executed, notebooks), strict=True):
            page = f"notebooks/{path.stem}.md"
            add(page, "\n".join(_notebook(page, done)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links lead to pages of the site."""
    address = page.file.src_uri
    source = next((ROOT / name for name, own in AROUND.items() if own == address), DOCS / address)
    return LINK.sub(partial(_link, source.parent, Path(address).parent), markdown)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """What cells show is put in when nothing reads it as Markdown any more."""
    for place, shown in enumerate(OUTPUTS.get(page.file.src_uri, ())):
        content = content.replace(_place(place), shown)
    return content


def _add(files: Files, config: MkDocsConfig, address: str, content: str | bytes) -> None:
    files.append(
        File.generated(config, address, content=content, inclusion=InclusionLevel.INCLUDED)
    )


def _file(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower())


def _link(folder: Path, page: Path, link: re.Match[str]) -> str:
    """A link of a file in ``folder`` as one of a page in ``page``."""
    target, anchor = link[1], link[2] or ""
    place = Path(os.path.normpath(folder / target))
    if "://" in target or not place.is_relative_to(ROOT):
        return link[0]
    own = str(place.relative_to(DOCS if place.is_relative_to(DOCS) else ROOT))
    own = AROUND.get(own, own)
    if own.endswith(".ipynb"):
        own = own.removesuffix("ipynb") + "md"
    return f"]({os.path.relpath(own, page)}{anchor})"


def _api(title: str, about: str, names: list[str]) -> Iterator[str]:
    """A page on names of the package."""
    yield f"# {title}\n\n{about}\n"
    for name in names:
        yield f"::: ssdlab.{name}\n"


def _experiment(one: Experiment) -> Iterator[str]:
    """The page of a published experiment."""
    yield f"# {one.title}\n\n{one.procedure}\n"
    yield f"Published: {one.article}. {one.scaling}\n"
    yield f"```text\nssdlab reproduce {one.name} -o {one.name}.html\n```\n"
    lines = list(generate.headlines(one.name))
    yield (
        "## Published and simulated\n\nAs `--quick` finds it; "
        "[how to read the numbers](../experiments.md#how-to-read-the-numbers).\n"
    )
    yield f"| {' | '.join(generate.HEADS)} |\n|{'---|' * len(generate.HEADS)}"
    for line in lines:
        yield f"| {' | '.join(generate.cells(line))} |"
    yield "\n## Job files\n\nAt full size, as they run on a real drive.\n"
    for name, text in one.job_files().items():
        yield f'??? note "{name}"\n'
        yield from (f"    {line}".rstrip() for line in f"```ini\n{text}```\n".splitlines())
        yield ""


def executed(path: Path) -> Any:
    """A notebook with what its cells show, run in a folder of its own."""
    notebook: Any = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory(prefix="ssdlab-notebook-") as folder:
        own = dict.fromkeys(("XDG_DATA_HOME", "XDG_STATE_HOME"), folder)
        client = nbclient.NotebookClient(
            notebook,
            timeout=PATIENCE_S,
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
            resources={"metadata": {"path": folder}},
        )
        return client.execute(env={**os.environ, **own, "SSDLAB_CACHE": "off"})


def _notebook(page: str, notebook: Any) -> Iterator[str]:
    """The page of an executed notebook; what its cells show goes into :data:`OUTPUTS`."""
    shown = OUTPUTS[page] = list[str]()
    for cell in notebook.cells:
        if HIDDEN in cell.metadata.get("tags", ()):
            continue
        if cell.cell_type == "markdown":
            yield f"{cell.source}\n"
            if len(shown) == 0 and cell.source.startswith("# "):
                name = Path(page).with_suffix(".ipynb").name
                yield f'<a href="{name}" download>This page as a notebook</a>\n'
            continue
        yield f"```python\n{cell.source}\n```\n"
        if output := "".join(map(_output, cell.outputs)):
            yield f"{_place(len(shown))}\n"
            shown.append(f'<div class="output">{output}</div>')


def _dark() -> Iterator[str]:
    """The colours of charts on a dark page, which are drawn for a light one."""
    for light, dark in style.DARK.items():
        for name in ("fill", "stroke"):
            yield f'[data-md-color-scheme="slate"] .output [{name}="{light}"] {{ {name}: {dark}; }}'
        yield (
            f'[data-md-color-scheme="slate"] .output [style*="{light}"] '
            f"{{ border-color: {dark} !important; }}"
        )


def _place(place: int) -> str:
    return f'<div data-output="{place}"></div>'


def _output(output: Any) -> str:
    """One output as HTML."""
    if output.output_type == "stream":
        return f"<pre>{html.escape(ANSI.sub('', output.text))}</pre>"
    data = output.data
    if "text/html" in data:
        return str(data["text/html"])
    text = data.get("text/plain", "")
    return f"<pre>{html.escape(ANSI.sub('', text))}</pre>" if text else ""


class Roles(griffe.Extension):
    """Roles of docstrings (``:func:`ssdlab.run```) as links, where the site has what they name."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Rewrites all docstrings, once it is known what there is."""
        _rewrite(pkg)


def _rewrite(obj: griffe.Object) -> None:
    if obj.docstring is not None:
        obj.docstring.value = ROLE.sub(partial(_role, obj), obj.docstring.value)
    for one in obj.members.values():
        if not one.is_alias:
            _rewrite(one)


def _role(obj: griffe.Object, role: re.Match[str]) -> str:
    name = role[1]
    if name.startswith("ssdlab.") and name.split(".")[1] in ssdlab.__all__:
        return f"[`{name}`][{name}]"
    scope = obj if obj.is_class else obj.parent
    own = None if scope is None or not scope.is_class else scope.members.get(name)
    if own is not None and own.has_docstring and not name.startswith("_"):
        return f"[`{name}`][{own.path}]"
    return f"`{name}`"
