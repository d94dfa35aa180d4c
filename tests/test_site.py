"""The site that `./lab docs` builds: whole without a network, with notebooks that have run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import browser
from ssdlab.experiments import measured

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
REPEATED = "raid0-slowest-member"
"""The experiment whose page has charts here; those of all take minutes."""
CELL_MAX = 60_000
"""Characters of what a cell shows, with the code below it: notebooks are kept and read as text."""
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src"}
"""What a browser fetches without being asked."""


class Page(HTMLParser):
    """What a page has and leads to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.charts = 0
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        self.charts += tag == "svg" and given.get("role") == "img"
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if LOADED.get(tag) in given and given.get("rel") != "canonical":
            self.loads.append(given[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built here."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    done = subprocess.run(
        build,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "SSDLAB_DOCS_EXPERIMENTS": REPEATED},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr  # --strict: no warning either
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """All pages by their files, but the one for addresses that are wrong."""
    return {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def test_all_that_the_pages_lead_to_and_load_is_in_the_site(pages: dict[Path, Page]) -> None:
    def wrong() -> Iterator[str]:
        for page in pages.values():
            for link in [*page.links, *page.loads]:
                parts = urlsplit(link)
                if parts.scheme or parts.netloc:
                    if link in page.loads and parts.scheme != "data":
                        yield f"{page.path.name} loads {link}"
                    continue
                to = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
                if not to.is_file():
                    yield f"{page.path.name}: {link}: there is no such file"
                elif parts.fragment and unquote(parts.fragment) not in pages[to].ids:
                    yield f"{page.path.name}: {link}: there is no such place"

    assert len(pages) > 50 and list(wrong()) == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda one: one.stem)
def test_a_notebook_is_kept_without_outputs_and_its_page_has_them(
    notebook: Path, site: Path, pages: dict[Path, Page]
) -> None:
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
    page = pages[site / "notebooks" / f"{notebook.stem}.html"]
    text = page.path.read_text("utf-8")
    outputs = text.split('<div class="output">')[1:]
    assert page.charts >= 2 and len(outputs) >= 3
    shown = [output.partition("</article>")[0] for output in outputs]
    assert all("<script" not in one for one in shown)
    assert all(len(one) < CELL_MAX for one in shown if "Access map" not in one)  # a rect a place
    assert "data-output=" not in text and "Holds the page to" not in text
    assert (site / "notebooks" / notebook.name).read_bytes() == notebook.read_bytes()


def test_the_page_of_an_experiment_has_its_numbers_and_charts(
    site: Path, pages: dict[Path, Page]
) -> None:
    page = pages[site / "experiments" / f"{REPEATED}.html"]
    assert page.charts >= 1 and f"{REPEATED}-report.html" in page.links
    text = page.path.read_text("utf-8")
    assert "within 15 %" in text and f"{REPEATED}-example.fio" in text


def test_an_experiment_of_several_publications_lists_them(site: Path) -> None:
    page = Page(site / "experiments" / "measured.html")
    text = page.path.read_text("utf-8")
    items = [one.partition("</li>")[0] for one in text.split("<li>")[1:]]
    assert sum("(licence: " in item for item in items) == len(measured.EXPERIMENT.articles) > 1
    assert "../scorecard.html" in page.links and "docs/scorecard.md" not in text


def test_the_site_has_no_compiled_files(site: Path) -> None:
    assert not [*site.rglob("*.py[co]")]


@pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "there")
def test_the_search_finds_pages_where_they_are_files(site: Path) -> None:
    with browser.tab() as tab:
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.call("Page.navigate", url=(site / "api" / "reports.html").as_uri())
        tab.wait("document.readyState === 'complete'")
        tab.run("document.querySelector('label[for=__search]').click()")
        tab.run(
            "(one => { one.value = 'write amplification';"
            " one.dispatchEvent(new KeyboardEvent('keyup', { bubbles: true })) })"
            "(document.querySelector('.md-search__input'))"
        )
        tab.wait("document.querySelector('.md-search-result__item a') !== null")
        found = tab.run("document.querySelector('.md-search-result__item a').href")
        assert Path(unquote(urlsplit(found).path)).is_file()
        assert tab.complaints == []
        assert all(urlsplit(one).scheme in ("file", "data") for one in tab.requests)
