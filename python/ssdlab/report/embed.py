"""What the page carries inside: charts, data and bokeh's own code."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from bokeh.document import Document
from bokeh.plotting import figure
from bokeh.resources import Resources
from markupsafe import Markup

LARGE = 20_000
"""Embedded texts longer than this are compressed."""


def portable(figures: Mapping[str, figure]) -> tuple[Markup, Mapping[str, str]]:
    """The charts (``figures``, by element) as JSON, and the element of each by its id, counted from
    the page's start, so that the same results give the same bytes."""
    document = Document()
    with document.models.freeze():  # else every figure makes bokeh walk through all before it
        for chart in figures.values():
            document.add_root(chart)
    text = json.dumps(document.to_json(deferred=False), separators=(",", ":"), ensure_ascii=False)
    names: dict[str, str] = {}

    def rename(match: re.Match[str]) -> str:
        return f'"{names.setdefault(match[1], f"m{len(names)}")}"'

    text = re.sub(r'"(p\d{4,})"', rename, text)
    return _inert(text), {names[chart.id]: element for element, chart in figures.items()}


def script_json(value: Any) -> Markup:
    """JSON that can stand inside a script element."""
    return _inert(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def _inert(text: str) -> Markup:
    return Markup(  # noqa: S704 - what could end the script element is escaped
        text.replace("<", "\\u003c").replace("\u2028", "\\u2028")
    )


def packed(text: str) -> tuple[str, Markup]:
    """How a text is embedded, and its embedded form: as a JSON value, compressed if large."""
    if len(text) <= LARGE:
        return "json", script_json(text)
    squeezed = gzip.compress(text.encode(), compresslevel=6, mtime=0)
    return "gzip+base64", script_json(base64.b64encode(squeezed).decode())


@cache
def bokeh_script() -> Markup:
    """bokeh's own code, without the comment that points to its source map."""
    script = "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)
    script = re.sub(r"//# sourceMappingURL=\S+", "", script)
    return Markup(script.replace("</script", "<\\/script"))  # noqa: S704 - bokeh's own code
