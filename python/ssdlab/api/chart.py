"""``ssdlab.Chart``: a chart of a report, or one of your own, shown in notebooks without scripts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from ssdlab.answer import Curve, Figure, Style
from ssdlab.errors import InputError, known_name

if TYPE_CHECKING:
    from bokeh.models import LayoutDOM

STYLES = tuple(one for one in get_args(Style) if one not in ("heat", "fields", "parallel"))


class Chart:
    """A chart of curves. It never changes; :meth:`add` gives another one.

    The last line of a cell shows it: an image without scripts, seen wherever the notebook is.
    """

    __slots__ = ("figure",)
    figure: Figure
    """What is drawn."""

    def __init__(
        self,
        title: str,
        x_label: str = "",
        y_label: str = "",
        *,
        log_x: bool = False,
        log_y: bool = False,
    ) -> None:
        """A chart without curves.

        Args:
            title: What it shows.
            x_label: The quantity across, with its unit (``"latency, us"``).
            y_label: The quantity up, with its unit.
            log_x: Whether the axis across is logarithmic.
            log_y: Whether the axis up is.
        """
        self.figure = Figure(title, x_label, y_label, [], log_x=log_x, log_y=log_y)

    @classmethod
    def of(cls, figure: Figure) -> Chart:
        """The chart of a figure of an answer, by itself."""
        made = cls.__new__(cls)
        made.figure = replace(figure, group="")
        return made

    @property
    def title(self) -> str:
        """What it shows."""
        return self.figure.title

    @property
    def curves(self) -> list[str]:
        """The names of its curves, as the legend has them."""
        return [curve.name for curve in self.figure.curves]

    def add(
        self,
        name: str,
        x: Iterable[float],
        y: Iterable[float],
        style: str = "points",
        *,
        like: str | None = None,
    ) -> Chart:
        """Another chart with one more curve.

        Args:
            name: What the legend calls it.
            x: Places across.
            y: Values up, one for each place.
            style: ``"points"`` (a line with its points), ``"line"``, ``"dashed"``, ``"dotted"``,
                ``"dots"``, ``"published"`` (rings), ``"steps"`` or ``"bars"``.
            like: The curve whose colour it has, as both are of one thing; else one of its own.

        Raises:
            InputError: there are not as many values as places.
            UnknownNameError: there is no such style, or no such curve.
        """
        known_name("style of a curve", style, STYLES)
        across, up = [float(one) for one in x], [float(one) for one in y]
        if len(across) != len(up):
            raise InputError(f"{name}: {len(across)} places and {len(up)} values; give one each")
        colours = {curve.name: curve.colour for curve in self.figure.curves}
        if like is not None:
            known_name("curve of this chart", like, self.curves)
        taken = [colour for colour in colours.values() if isinstance(colour, int)]
        colour = max(taken, default=-1) + 1 if like is None else colours[like]
        curve = Curve(name, across, up, style, colour)  # type: ignore[arg-type]
        return Chart.of(replace(self.figure, curves=[*self.figure.curves, curve]))

    def plot(self) -> LayoutDOM:
        """It as a figure of bokeh."""
        from ssdlab.report import drawing

        return drawing.standing_alone([self.figure])

    def __repr__(self) -> str:
        return f"<ssdlab.Chart {self.title}: {', '.join(self.curves)}>"

    def _repr_html_(self) -> str:
        from ssdlab.report import cell

        return cell.chart(self.figure)
