"""What every page has: its template filled in, with charts, style and script inside."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from bokeh.plotting import figure
from markupsafe import Markup

from ssdlab._version import VERSION
from ssdlab.report import style
from ssdlab.report.embed import bokeh_script, portable, script_json

HERE = Path(__file__).parent


def filled(template: str, title: str, figures: Mapping[str, figure], **own: Any) -> str:
    """A page from its template; ``figures`` by the element that they stand in, ``own`` as the
    template names it."""
    charts, roots = portable(figures)
    return template_called(template).render(
        title=title,
        version=VERSION,
        css=_own("page.css"),
        script=_own("page.js"),
        bokeh=bokeh_script(),
        charts=charts,
        roots=script_json(roots),
        dark=script_json(style.DARK),
        **own,
    )


def template_called(name: str) -> jinja2.Template:
    """A template of this folder."""
    return _environment().get_template(name)


@cache
def _environment() -> jinja2.Environment:
    """It keeps what it has compiled."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def _own(name: str) -> Markup:
    return Markup((HERE / name).read_text("utf-8"))  # noqa: S704 - our own file
