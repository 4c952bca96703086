"""Charts as SVG that stands in the page itself.

Invariant: the same numbers give the same bytes; what is drawn holds no script, no style of its own
and no link, so that the page's style sheet decides every colour, by day and by night.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup

from job.report.chart import Bar, Chart

WIDE, NARROW = 760, 358
"""Widths at which the chart is drawn, in pixels: the page's column on a laptop and on a phone. It
is drawn twice because text that shrinks with its chart cannot be read on a phone."""
HEIGHT = 140
LABELS = {WIDE: 12, NARROW: 6}
"""Labels under the bars, at most."""
SPARK = 132, 30
"""Width and height of a sparkline in pixels."""
FONT = 12
WIDEST_BAR = 56.0
"""Pixels. A day of one hour would be a wall otherwise."""

_BARE: dict[str, Any] = {
    "js": (),
    "css": (),
    "no_prefix": True,
    "show_legend": False,
    "margin": 0,
    "truncate_label": -1,
}
_LONG_FRACTION = re.compile(r"(\d+\.\d)\d+")
_NOT_DRAWN = ("defs", "desc", "title", "script")
_LEFT_OUT = {"background", "overlay", "text-overlay", "tooltip-overlay", "titles"}
_NUMBERS = ("x", "y", "width", "height", "d", "transform")


def draw_chart(
    chart: Chart,
    width: int,
    names: Mapping[str, str],
    tick: Callable[[Bar], str],
    label: Callable[[Bar], str],
    title: str,
    summary: str,
) -> Markup:
    """The bars of `chart`, stacked by severity with the worst on top, each with a tooltip.

    `names` are the severities to draw by key, the least severe first, and how they are called.
    `title` and `summary` are what somebody hears who cannot see it.
    """
    import pygal

    step = _step(chart.peak.records)
    top = math.ceil(chart.peak.records / step) * step
    every = math.ceil(len(chart.bars) / LABELS[width])
    drawing = pygal.StackedBar(
        **_BARE,
        width=width,
        height=HEIGHT,
        spacing=6,
        range=(0, top),
        y_labels=list(range(0, top + 1, step)),
        value_formatter=lambda value: f"{value:,.0f}",
        x_labels_major_every=every,
        show_minor_x_labels=False,
        style=_style(),
    )
    drawing.x_labels = [tick(bar) for bar in chart.bars]
    for severity in names:
        drawing.add(severity, [dict(bar.parts).get(severity, 0) for bar in chart.bars])
    svg = _cleaned(drawing.render())
    for severity, series in zip(names, svg.iter("series"), strict=True):
        series.tag, series.attrib = "g", {"class": severity}
        for bar, drawn in zip(chart.bars, list(series), strict=True):
            records = dict(bar.parts).get(severity, 0)
            if not records:
                series.remove(drawn)
                continue
            _narrow(drawn)
            ElementTree.SubElement(
                drawn, "title"
            ).text = f"{label(bar)} · {names[severity]} {records:,}"
    return _markup(svg, title, summary)


def draw_sparkline(values: Sequence[int], title: str) -> Markup:
    """`values` as small bars without axes; the highest fills the height."""
    import pygal

    drawing = pygal.Bar(
        **_BARE,
        width=SPARK[0],
        height=SPARK[1],
        spacing=0,
        show_x_labels=False,
        show_y_labels=False,
        show_y_guides=False,
        range=(0, max(values)),
        style=_style(),
    )
    drawing.add("", list(values))
    svg = _cleaned(drawing.render())
    _remove(svg, lambda node: "axis" in _classes(node))
    for series in svg.iter("series"):
        series.tag, series.attrib = "g", {}
        for value, drawn in zip(values, list(series), strict=True):
            if not value:
                series.remove(drawn)
    return _markup(svg, title)


def _narrow(bar: ElementTree.Element) -> None:
    width = float(bar.attrib["width"])
    if width > WIDEST_BAR:
        bar.set("x", f"{float(bar.attrib['x']) + (width - WIDEST_BAR) / 2:.1f}")
        bar.set("width", f"{WIDEST_BAR:.1f}")


def _step(peak: int) -> int:
    """The distance of the guides: a round number that gives two or three of them."""
    power = int(10 ** math.floor(math.log10(max(1, peak))))
    steps = [max(1, unit * power // 10) for unit in (1, 2, 5, 10, 20, 50)]
    return next(step for step in steps if peak / step <= 3)


def _style() -> Any:
    """The sizes by which pygal leaves room for its labels; colours come from the page."""
    from pygal.style import Style

    return Style(label_font_size=FONT, major_label_font_size=FONT, font_family="sans-serif")


def _cleaned(rendered: bytes) -> ElementTree.Element:
    """What pygal drew, without its script, style, comments (one holds the date) and overlays; the
    groups of a series are elements `series` that hold one `rect` per bar."""
    svg = ElementTree.fromstring(rendered)  # noqa: S314  from pygal, not from the input
    for node in svg.iter():
        node.tag = node.tag.rpartition("}")[2]
        for name in _NUMBERS:
            if name in node.attrib:
                node.set(name, _LONG_FRACTION.sub(r"\1", node.attrib[name]))
    _remove(svg, lambda node: node.tag in _NOT_DRAWN or bool(_LEFT_OUT & _classes(node)))
    for node in svg.iter():
        if "series" in _classes(node):
            rects = list(node.iter("rect"))
            for child in list(node):
                node.remove(child)
            for rect in rects:
                rect.attrib = {name: rect.attrib[name] for name in ("x", "y", "width", "height")}
            node.extend(rects)
            node.tag = "series"
    return svg


def _remove(svg: ElementTree.Element, unwanted: Callable[[ElementTree.Element], bool]) -> None:
    for parent in list(svg.iter()):
        for child in [child for child in parent if unwanted(child)]:
            parent.remove(child)


def _classes(node: ElementTree.Element) -> set[str]:
    return set(node.get("class", "").split())


def _markup(svg: ElementTree.Element, title: str, summary: str = "") -> Markup:
    svg.attrib = {"viewBox": svg.attrib["viewBox"], "role": "img"}
    for place, (name, text) in enumerate((("title", title), ("desc", summary))):
        if text:
            element = ElementTree.Element(name)
            element.text = text
            svg.insert(place, element)
    # ElementTree escapes every text and attribute.
    return Markup(ElementTree.tostring(svg, encoding="unicode"))  # noqa: S704
