"""Charts, by Altair (Vega-Lite) and vl-convert: SVG inside the page, without a script.

Colours are variables of the page's style sheet, so one chart fits the light and the dark style.
Series also differ in shape or dash, for readers who do not see the colours. Links lead to pages of
the site.

Altair needs five times as long to make and check a specification as Vega needs to draw it. So each
kind of chart is specified once, and only the data differ.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import altair as alt
import vl_convert
from markupsafe import Markup

from ..analysis.history import Point
from ..analysis.statistics import Interval
from . import paths

Spec = dict[str, Any]

WIDTH = 640
# vl-convert contains the first font, so charts are the same on every machine. Arial is as wide.
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
# The reader's font may be wider than the font of the layout.
_PADDING = {"left": 45, "right": 10, "top": 4, "bottom": 4}
# Vega makes links absolute. This base is removed from the SVG.
_BASE = "https://site.invalid/"

_INK, _FAINT = "var(--ink)", "var(--faint)"
_COLOURS = [f"var(--series-{number})" for number in range(1, 6)]
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross"]
_DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3]]


class Bar(NamedTuple):
    """A value with its interval, in the line of its label; ``to`` is the target of its link."""

    label: str
    series: str
    value: Interval
    to: str


class Part(NamedTuple):
    """A part of a stacked bar, in seconds."""

    label: str
    series: str
    seconds: float


def ratios(bars: Sequence[Bar], series: Sequence[str], path: str, title: str) -> Markup:
    """Ratios with intervals around 1, one line for each label. ``path`` is that of the page."""
    data = [
        {
            "label": bar.label,
            "series": bar.series,
            "value": bar.value.value,
            "low": _known(bar.value.low, bar.value.value),
            "high": _known(bar.value.high, bar.value.value),
            "to": _BASE + paths.relative(path, bar.to),
        }
        for bar in bars
    ]
    return _svg(_ratios(tuple(series), title), {"bars": data})


@cache
def _ratios(series: tuple[str, ...], title: str) -> Spec:
    scale = alt.Scale(type="log", nice=False, padding=10)
    base = alt.Chart(alt.NamedData("bars")).encode(
        y=alt.Y("label:N", sort=None, title=None, axis=alt.Axis(labelLimit=340)),
        yOffset=alt.YOffset("series:N", sort=list(series)),
        color=_colour(series),
    )
    x = alt.X("value:Q", scale=scale, title=title, axis=alt.Axis(tickCount=6, format="~g"))
    one = alt.Chart(alt.InlineData([{"one": 1}])).encode(x="one:Q")
    drawing = (
        one.mark_rule(color=_INK, strokeWidth=1.5)
        + base.mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q", scale=scale, title=title), x2="high:Q"
        )
        + base.mark_point(filled=True, size=60, opacity=1).encode(
            x=x, shape=_shape(series), href="to:N"
        )
    )
    return _spec(drawing.properties(width=WIDTH, height=alt.Step(max(9, 22 // len(series)))))


def history(points: Sequence[Point], releases: Sequence[str], units: dict[str, str]) -> Markup:
    """Series by release in equal steps, one panel for each unit, with bands for the intervals.

    ``releases`` are the labels of all releases in order; a release without a point is a gap.
    ``units`` names the axis of each series; series with one unit share a panel.
    """
    data: dict[str, list[dict[str, Any]]] = {unit: [] for unit in units.values()}
    for point in points:
        data[units[point.series]].append(
            {
                "release": point.release,
                "series": point.series,
                "value": point.value.value,
                "low": _known(point.value.low, point.value.value),
                "high": _known(point.value.high, point.value.value),
            }
        )
    return _svg(_history(tuple(releases), tuple(units), tuple(data)), data)


@cache
def _history(releases: tuple[str, ...], series: tuple[str, ...], units: tuple[str, ...]) -> Spec:
    panels = []
    for unit in units:
        base = alt.Chart(alt.NamedData(unit)).encode(
            x=alt.X(
                "release:N",
                sort=None,
                title=None,
                scale=alt.Scale(domain=list(releases)),
                axis=alt.Axis(labelAngle=-40),
            ),
            color=_colour(series),
        )
        y = alt.Y("value:Q", title=unit, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5))
        panels.append(
            (
                base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", title=unit), y2="high:Q")
                + base.mark_line().encode(y=y, strokeDash=_dash(series))
                + base.mark_point(filled=True, size=50, opacity=1).encode(y=y, shape=_shape(series))
            ).properties(width=WIDTH, height=150)
        )
    return _spec(alt.vconcat(*panels))


def parts(bars: Sequence[Part], series: Sequence[str], title: str) -> Markup:
    """Stacked bars of seconds, one line for each label."""
    data = [
        {**part._asdict(), "order": series.index(part.series)} for part in bars if part.seconds > 0
    ]
    return _svg(_parts(tuple(series), title), {"parts": data})


@cache
def _parts(series: tuple[str, ...], title: str) -> Spec:
    drawing = (
        alt.Chart(alt.NamedData("parts"))
        .mark_bar(stroke="var(--paper)", strokeWidth=1)
        .encode(
            y=alt.Y("label:N", sort=None, title=None, axis=alt.Axis(labelLimit=340)),
            x=alt.X("seconds:Q", title=title, axis=alt.Axis(tickCount=6)),
            color=_colour(series),
            order="order:Q",
        )
        .properties(width=WIDTH, height=alt.Step(18))
    )
    return _spec(drawing)


def _known(bound: float, value: float) -> float:
    """The bound, or the value where the bound is unknown, so that no interval is drawn."""
    return value if math.isnan(bound) else bound


def _colour(series: Sequence[str]) -> alt.Color:
    return alt.Color(
        "series:N",
        title=None,
        scale=_scale(series, _COLOURS),
        legend=alt.Legend(symbolOpacity=1),
    )


def _shape(series: Sequence[str]) -> alt.Shape:
    return alt.Shape("series:N", title=None, scale=_scale(series, _SHAPES))


def _dash(series: Sequence[str]) -> alt.StrokeDash:
    # Colour and shape make the legend. Dashes would be drawn around its symbols.
    return alt.StrokeDash("series:N", legend=None, scale=_scale(series, _DASHES))


def _scale(series: Sequence[str], values: Sequence[Any]) -> alt.Scale:
    chosen = [values[number % len(values)] for number in range(len(series))]
    return alt.Scale(domain=list(series), range=chosen)


def _spec(drawing: Any) -> Spec:
    drawing = drawing.configure(background="transparent", font=FONT, padding=_PADDING)
    drawing = drawing.configure_axis(
        labelColor=_INK,
        titleColor=_INK,
        domainColor=_FAINT,
        tickColor=_FAINT,
        gridColor="var(--grid)",
        titleFontWeight="normal",
    )
    drawing = drawing.configure_legend(
        labelColor=_INK, orient="top", symbolStrokeWidth=2, symbolDash=[1, 0]
    )
    spec: Spec = drawing.configure_view(stroke=None).to_dict()
    return spec


def _svg(spec: Spec, data: dict[str, list[dict[str, Any]]]) -> Markup:
    svg = vl_convert.vegalite_to_svg({**spec, "datasets": {**spec.get("datasets", {}), **data}})
    # The keyboard skips the links of a chart: the table below has the same links.
    svg = re.sub(r'<a xlink:href="' + re.escape(_BASE), '<a tabindex="-1" href="', svg)
    return Markup(svg)
