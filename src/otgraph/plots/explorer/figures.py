"""The bokeh figures of the page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from otgraph._optional import require
from otgraph.plots.colors import GROUPS, INK

if TYPE_CHECKING:
    from bokeh.models import ColumnDataSource, Model, Span
    from bokeh.plotting import figure as Figure

    from otgraph.plots.explorer.scene import Scene

EDGE_WIDTH = 0.8  # pixels
# Range of the diameter of a dot in pixels; it shrinks as points increase.
POINT_SIZE_RANGE = (3.5, 9.0)
POINT_SIZE_OF_ALL = 250.0
NOT_SELECTED = 0.2  # opacity of the other dots while some are selected
MOST_TICKS = 5  # labels that fit on the short axes


def graph_figure(scene: Scene) -> tuple[Figure, dict[str, Model]]:
    """Points and edges, and the parts that the script moves.

    Edges are painted on a canvas below the points, so hovering does not paint them again.
    """
    models = require("bokeh.models", "plots")
    figure = require("bokeh.plotting", "plots").figure(
        name="graph", sizing_mode="stretch_both", match_aspect=True, min_border=8,
        tools="pan,wheel_zoom,box_zoom,lasso_select,box_select,reset,save",
        active_scroll="wheel_zoom", outline_line_color=None, toolbar_location="right",
    )  # fmt: skip
    figure.toolbar.logo = None
    figure.axis.visible = figure.grid.visible = False
    edges = models.ColumnDataSource({"xs": [], "ys": [], "alpha": []}, name="edges")
    figure.multi_line(
        "xs", "ys", source=edges, line_alpha="alpha", line_color=INK, line_width=EDGE_WIDTH
    )
    spokes = figure.line([], [], line_color="black", line_width=1.6, level="overlay")
    spokes.data_source.name = "spokes"
    empty: dict[str, list[float]] = {name: [] for name in ("x", "y", "row", "color", "size")}
    rings = models.ColumnDataSource(empty, name="rings")
    points = models.ColumnDataSource(
        {"x": scene.x, "y": scene.y, "color": [INK] * len(scene.x)}, name="points"
    )
    dots = figure.scatter(
        "x", "y", source=points, size=point_size(len(scene.x)), fill_color="color",
        line_color="white", line_width=0.5, level="overlay",
        nonselection_fill_alpha=NOT_SELECTED, nonselection_line_alpha=NOT_SELECTED,
    )  # fmt: skip
    figure.scatter(
        "x", "y", source=rings, size="size", fill_color="color",
        line_color="black", line_width=1.5, level="overlay",
    )  # fmt: skip
    for axis in (figure.x_range, figure.y_range):
        axis.renderers = [dots]  # the ranges stay fixed when edges change
    tag = models.ColumnDataSource({"x": [], "y": [], "text": []}, name="tag")
    figure.text(
        "x", "y", "text", source=tag, level="overlay", y_offset=-12, text_align="center",
        text_baseline="bottom", text_font_size="13px", text_color=INK, padding=3,
        background_fill_color="white", background_fill_alpha=0.85,
    )  # fmt: skip
    hover = models.HoverTool(
        renderers=[dots],
        tooltips=None,  # they would cover the neighbors
        callback=models.CustomJS(
            code="cb_obj.tags = [cb_data.index.indices, cb_data.geometry.x, cb_data.geometry.y]"
        ),
    )
    figure.add_tools(hover)
    return figure, {
        "points": points, "dots": dots, "edges": edges, "spokes": spokes.data_source,
        "rings": rings, "tag": tag, "hover": hover,
    }  # fmt: skip


def degree_figure() -> tuple[Figure, ColumnDataSource]:
    """Histogram of the degrees, and the source of its bars."""
    figure = _small_figure("degrees")
    bars = require("bokeh.models", "plots").ColumnDataSource(
        {"left": [], "right": [], "count": []}, name="histogram"
    )
    figure.quad(
        left="left", right="right", bottom=0, top="count", source=bars,
        fill_color=GROUPS[0], line_color="white",
    )  # fmt: skip
    figure.y_range.start = 0
    figure.xaxis.axis_label = "degree"
    return figure, bars


def path_figure(scene: Scene) -> tuple[Figure, Span]:
    """Mean degree and components along eps, and the line that marks the current one."""
    models = require("bokeh.models", "plots")
    figure = _small_figure("path", x_axis_type="log", y_axis_type="log")
    eps = [value["eps"] for value in scene.values]
    degree = [float(value["mean_degree"]) for value in scene.values]
    components = [value["n_connected"] for value in scene.values]
    figure.line(eps, degree, line_color=GROUPS[0], line_width=2)
    figure.scatter(eps, degree, size=6, color=GROUPS[0])
    figure.line(eps, components, line_color=GROUPS[2], line_width=2, line_dash="dashed")
    figure.scatter(eps, components, size=7, color=GROUPS[2], marker="triangle")
    cursor = models.Span(location=eps[0], dimension="height", line_color=INK, name="cursor")
    figure.add_layout(cursor)
    figure.xaxis.axis_label = "ε"
    for axis, values in ((figure.xaxis, eps), (figure.yaxis, degree + components)):
        ticks = log_ticks(min(values), max(values))
        axis.ticker = models.FixedTicker(ticks=ticks)
        axis.major_label_overrides = {tick: f"{tick:g}" for tick in ticks}
    return figure, cursor


def log_ticks(low: float, high: float) -> list[float]:
    """At most five round numbers within the limits, evenly spread on a logarithmic axis.

    If no round number lies within them, it is the lower limit.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for mantissas in ((1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        every = [float(f"{m}e{power}") for power in powers for m in mantissas]
        ticks = [tick for tick in every if low <= tick <= high]
        if len(ticks) <= MOST_TICKS:
            break
    step = -(-len(ticks) // MOST_TICKS) or 1
    return ticks[::step] or [low]


def _small_figure(name: str, **axes: str) -> Figure:
    figure = require("bokeh.plotting", "plots").figure(
        name=name, sizing_mode="stretch_both", tools="", toolbar_location=None, min_border=4,
        outline_line_color=None, **axes,
    )  # fmt: skip
    figure.axis.minor_tick_line_color = None
    figure.axis.axis_label_text_font_style = "normal"
    figure.axis.axis_label_standoff = 2
    figure.xgrid.visible = False
    return figure


def point_size(n: int) -> float:
    """Diameter of a dot in pixels, for n points."""
    return float(np.clip(POINT_SIZE_OF_ALL / np.sqrt(n), *POINT_SIZE_RANGE))
