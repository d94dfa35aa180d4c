"""A drawn chart as a picture without scripts (SVG), for places that run none, such as notebooks."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from bokeh.core.property.vectorization import Field
from bokeh.models import BoxAnnotation, FixedTicker, LogScale
from bokeh.plotting import figure

from ssdlab.report import style
from ssdlab.report.downsample import keep_extremes

WIDTH = 720
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 8, 40
TICKS_PX, TICKS_UP_PX = 70, 45
"""Room that a tick of a linear axis has at least."""
NAMES_PX = 6.2
"""About so wide is a character of a label."""
LABEL = f'font-family="{html.escape(style.FONT)}" font-size="11"'
Scale = Callable[[float], float]


def svg(panel: figure, label: str) -> str:
    """The picture of a chart: its marks, axes and their labels; ``label`` says what it shows."""
    height = int(panel.height)
    x = _scale(panel.x_range, panel.x_scale, LEFT, WIDTH - RIGHT)
    y = _scale(panel.y_range, panel.y_scale, height - BOTTOM, TOP)
    parts = [
        *_axis_up(panel, y, height),
        *_axis_across(panel, x, height),
        f'<svg x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" '
        f'height="{height - TOP - BOTTOM}" viewBox="{LEFT} {TOP} {WIDTH - LEFT - RIGHT} '
        f'{height - TOP - BOTTOM}">',
        *_shades(panel, x, height),
        *itertools.chain.from_iterable(_marks(renderer, x, y) for renderer in panel.renderers),
        "</svg>",
    ]
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" width="100%" style="max-width:{WIDTH}px" '
        f'role="img" aria-label="{html.escape(label)}" fill="currentColor">{"".join(parts)}</svg>'
    )


def _scale(span: Any, scale: Any, start: float, end: float) -> Scale:
    low, high = float(span.start), float(span.end)
    if isinstance(scale, LogScale):
        low, high = math.log10(low), math.log10(high)
        # Bars stand on 0, which such an axis does not have.
        return lambda v: (
            start + (end - start) * (math.log10(v) - low) / (high - low) if v > 0 else start
        )
    return lambda v: start + (end - start) * (v - low) / (high - low)


def _shades(panel: figure, x: Scale, height: int) -> Iterator[str]:
    """What a window of time is marked by."""
    for one in panel.center:
        if isinstance(one, BoxAnnotation):
            left, right = x(float(one.left)), x(float(one.right))
            yield (
                f'<rect x="{left:.1f}" y="{TOP}" width="{max(0.0, right - left):.1f}" '
                f'height="{height - TOP - BOTTOM}" opacity="0.08"/>'
            )


def _ticks(axis: Any, span: Any, most: float) -> list[tuple[float, str]]:
    """Places and labels within the axis; of a linear one about ``most`` at round numbers."""
    low, high = float(span.start), float(span.end)
    if isinstance(axis.ticker, FixedTicker):
        names = axis.major_label_overrides
        places = [float(tick) for tick in axis.ticker.ticks if low <= tick <= high]
        return [(place, names.get(place) or _number(place)) for place in places]
    about = (high - low) / max(2.0, most)
    power = 10.0 ** math.floor(math.log10(about))
    step = next(n * power for n in (1, 2, 5, 10) if n * power >= about * 0.999)
    places = [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return [(place, _number(place)) for place in places]


def _number(value: float) -> str:
    for size, letter in ((1e9, "b"), (1e6, "m"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:.4g}"


def _axis_up(panel: figure, y: Scale, height: int) -> Iterator[str]:
    axis = panel.yaxis[0]
    for at, text in _ticks(axis, panel.y_range, (height - TOP - BOTTOM) / TICKS_UP_PX):
        yield (
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(at):.1f}" y2="{y(at):.1f}" '
            f'stroke="currentColor" opacity="0.13"/>'
            f'<text {LABEL} x="{LEFT - 6}" y="{y(at) + 4:.1f}" text-anchor="end" opacity="0.7">'
            f"{html.escape(_short(text, LEFT - 18))}</text>"
        )
    middle = (TOP + height - BOTTOM) / 2
    yield (
        f'<text {LABEL} transform="translate(11 {middle:.0f}) rotate(-90)" text-anchor="middle" '
        f'opacity="0.7">{html.escape(str(axis.axis_label or ""))}</text>'
    )


def _axis_across(panel: figure, x: Scale, height: int) -> Iterator[str]:
    axis, base = panel.xaxis[0], height - BOTTOM
    yield (
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{base}" y2="{base}" stroke="currentColor" '
        'opacity="0.4"/>'
    )
    ticks = _ticks(axis, panel.x_range, (WIDTH - LEFT - RIGHT) / TICKS_PX)
    room = (WIDTH - LEFT - RIGHT) / max(1, len(ticks))
    for at, text in ticks:
        yield (
            f'<text {LABEL} x="{x(at):.1f}" y="{base + 15}" text-anchor="middle" opacity="0.7">'
            f"{html.escape(_short(text, room))}</text>"
        )
    yield (
        f'<text {LABEL} x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{height - 8}" '
        f'text-anchor="middle" opacity="0.7">{html.escape(str(axis.axis_label or ""))}</text>'
    )


def _short(text: str, room: float) -> str:
    most = max(3, int(room / NAMES_PX))
    return text if len(text) <= most else text[: most - 1] + "…"


def _marks(renderer: Any, x: Scale, y: Scale) -> Iterator[str]:
    """What a glyph of bokeh draws; those are used that :mod:`ssdlab.report.drawing` uses."""
    glyph, data = renderer.glyph, renderer.data_source.data
    drawn_by = {
        "Line": _line, "Step": _line, "MultiLine": _lines, "Scatter": _dots, "VBar": _bars,
        "Rect": _fields, "Text": _texts,
    }  # fmt: skip
    return drawn_by[type(glyph).__name__](glyph, data, x, y)


def _lines(glyph: Any, data: Any, x: Scale, y: Scale) -> Iterator[str]:
    for line_x, line_y, alpha in zip(data["xs"], data["ys"], data["alpha"], strict=True):
        places = zip(line_x, line_y, strict=True)
        points = " ".join(f"{x(float(at)):.1f},{y(float(up)):.1f}" for at, up in places)
        yield (
            f'<polyline points="{points}" fill="none" stroke="{glyph.line_color}" '
            f'opacity="{alpha:.2f}"/>'
        )


def _dots(glyph: Any, data: Any, x: Scale, y: Scale) -> Iterator[str]:
    looks = _columns(glyph, data, "size", "fill_color", "line_color", "line_width")
    marks = zip(data["x"], data["y"], looks, strict=True)
    for (size, fill, line, width), alike in itertools.groupby(marks, key=lambda one: one[2]):
        dots = "".join(
            f'<circle cx="{x(float(at)):.1f}" cy="{y(float(up)):.1f}" r="{size / 2:g}"/>'
            for at, up, _ in alike
        )
        yield (
            f'<g fill="{fill or "none"}" stroke="{line or "none"}" stroke-width="{width}">'
            f"{dots}</g>"
        )


def _bars(glyph: Any, data: Any, x: Scale, y: Scale) -> Iterator[str]:
    sides = _columns(glyph, data, "width", "bottom", "top", "fill_color")
    for at, (width, low, high, fill) in zip(data["x"], sides, strict=True):
        yield _box(x, y, (at - width / 2, at + width / 2), (low, high), fill)


def _fields(glyph: Any, data: Any, x: Scale, y: Scale) -> Iterator[str]:
    sides = _columns(glyph, data, "width", "height", "fill_color")
    for at, up, (width, tall, fill) in zip(data["x"], data["y"], sides, strict=True):
        yield _box(x, y, (at - width / 2, at + width / 2), (up - tall / 2, up + tall / 2), fill)


def _texts(glyph: Any, data: Any, x: Scale, y: Scale) -> Iterator[str]:
    looks = _columns(glyph, data, "text", "text_color")
    for at, up, (text, ink) in zip(data["x"], data["y"], looks, strict=True):
        yield (
            f'<text {LABEL} x="{x(float(at)):.1f}" y="{y(float(up)) + 4:.1f}" fill="{ink}" '
            f'text-anchor="middle">{html.escape(str(text))}</text>'
        )


def _line(glyph: Any, data: Any, x: Scale, y: Scale) -> Iterator[str]:
    steps = type(glyph).__name__ == "Step"
    points: list[str] = []
    last = 0.0
    keep = keep_extremes([np.asarray(data["y"], dtype=float)], 2 * WIDTH)
    for at, up in zip(np.asarray(data["x"])[keep], np.asarray(data["y"])[keep], strict=True):
        if steps and points:
            points.append(f"{x(float(at)):.1f},{last:.1f}")
        last = y(float(up))
        points.append(f"{x(float(at)):.1f},{last:.1f}")
    dash = " ".join(map(str, glyph.line_dash or ()))
    offset = f' stroke-dashoffset="{glyph.line_dash_offset}"' if glyph.line_dash_offset else ""
    dashed = f' stroke-dasharray="{dash}"{offset}' if dash else ""
    yield (
        f'<polyline points="{" ".join(points)}" fill="none" stroke="{glyph.line_color}" '
        f'stroke-width="{glyph.line_width}"{dashed}/>'
    )


def _box(
    x: Scale, y: Scale, across: tuple[float, float], up: tuple[float, float], fill: object
) -> str:
    left, right = sorted(map(x, across))
    top, bottom = sorted(map(y, up))
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
        f'height="{bottom - top:.1f}" fill="{fill or "none"}"/>'
    )


def _columns(glyph: Any, data: Any, *names: str) -> Iterator[tuple[Any, ...]]:
    """What properties say of each mark: a column of the data, or one value for all."""
    given, count = glyph.properties_with_values(), len(data["x"])

    def of(spec: Any) -> Sequence[Any]:
        if isinstance(spec, Field):
            return list(np.asarray(data[spec.field]).tolist())
        return [getattr(spec, "value", spec)] * count

    return zip(*(of(given[name]) for name in names), strict=True)
