"""The page: bokeh figures, laid out by a template, moved by a script."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._optional import require
from otgraph.plots.colors import GROUPS, INK, UNKNOWN
from otgraph.plots.explorer.scene import LEVELS

if TYPE_CHECKING:
    from pathlib import Path

    from otgraph.plots.explorer.scene import Scene

EDGE_WIDTH = 0.8  # pixels
# Beyond this many lines each becomes fainter, or they would merge into one dark area.
EDGES_AT_FULL_STRENGTH = 3000
# Points shrink with their number, between these diameters in pixels.
POINT_SIZE_RANGE = (3.5, 9.0)
POINT_SIZE_OF_ALL = 250.0
NUMBERS = 64  # colors of the scale for numbers
FRAME_HEIGHT = 800  # of the page within a notebook, in pixels


@dataclass(frozen=True)
class Page(os.PathLike[str]):
    """A self-contained page; a notebook shows it, and functions that open files open it.

    Parameters
    ----------
    html
        The whole page.
    path
        Where it was written, None if it was not.
    """

    html: str
    path: Path | None = None

    def __fspath__(self) -> str:
        if self.path is None:
            msg = "This page was not written to a file; pass `out` to `explore`."
            raise TypeError(msg)
        return str(self.path)

    def __repr__(self) -> str:
        where = "not written" if self.path is None else str(self.path)
        return f"Page({where}, {len(self.html.encode()) / 1e6:.1f} MB)"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" title="otgraph explorer" '
            f'style="width: 100%; height: {FRAME_HEIGHT}px; border: 0"></iframe>'
        )


def page_html(scene: Scene, title: str) -> str:
    """The page as text, with all that it needs inside."""
    models = require("bokeh.models", "plots")
    document = require("bokeh.document", "plots").Document()
    graph, parts = _graph_figure(scene)
    degrees, parts["histogram"] = _degree_figure()
    path, parts["cursor"] = _path_figure(scene)
    colorings = ["label"] * bool(scene.groups) + ["degree", "component", "potential"]
    palette = {
        "groups": list(GROUPS),
        "others": UNKNOWN,
        "numbers": list(require("bokeh.palettes", "plots").viridis(NUMBERS)),
        "first": colorings[0],
        "size": _point_size(len(scene.x)),
    }
    arguments = {
        "scene": _plain(scene),
        "palette": palette,
        "coarse": EDGES_AT_FULL_STRENGTH,
        "n_levels": LEVELS,
        **parts,
    }
    for root in (graph, degrees, path):
        document.add_root(root)
    document.js_on_event(
        "document_ready", models.CustomJS(args=arguments, code=_shipped("explore.js"))
    )
    return str(
        require("bokeh.embed", "plots").file_html(
            document,
            require("bokeh.resources", "plots").Resources("inline", log_level="error"),
            title=title,
            template=_shipped("page.html"),
            template_variables={
                "css": _shipped("explore.css"),
                "n_values": len(scene.values),
                "start": scene.start,
                "colorings": colorings,
            },
        )
    )


def _graph_figure(scene: Scene) -> tuple[Any, dict[str, Any]]:
    """Points and edges. The edges are painted beneath, where hovering does not paint them again."""
    models = require("bokeh.models", "plots")
    figure = require("bokeh.plotting", "plots").figure(
        name="graph", sizing_mode="stretch_both", match_aspect=True, min_border=8,
        tools="pan,wheel_zoom,box_zoom,reset,save", active_scroll="wheel_zoom",
        outline_line_color=None, toolbar_location="right",
    )  # fmt: skip
    figure.toolbar.logo = None
    figure.axis.visible = figure.grid.visible = False
    edges = models.ColumnDataSource({"xs": [], "ys": [], "alpha": []}, name="edges")
    figure.multi_line(
        "xs", "ys", source=edges, line_alpha="alpha", line_color=INK, line_width=EDGE_WIDTH
    )
    spokes = figure.line([], [], line_color="black", line_width=1.6, level="overlay")
    spokes.data_source.name = "spokes"
    empty: dict[str, list[Any]] = {"x": [], "y": [], "row": [], "color": [], "size": []}
    rings = models.ColumnDataSource(empty, name="rings")
    columns = {"x": scene.x, "y": scene.y, "row": scene.rows, **scene.texts}
    points = models.ColumnDataSource({**columns, "color": [INK] * len(scene.x)}, name="points")
    dots = figure.scatter(
        "x", "y", source=points, size=_point_size(len(scene.x)), fill_color="color",
        line_color="white", line_width=0.5, level="overlay",
    )  # fmt: skip
    figure.scatter(
        "x", "y", source=rings, size="size", fill_color="color",
        line_color="black", line_width=1.5, level="overlay",
    )  # fmt: skip
    for axis in (figure.x_range, figure.y_range):
        axis.renderers = [dots]  # the picture stays where it is while edges come and go
    hover = models.HoverTool(
        renderers=[dots],
        limit=1,  # dots that lie upon each other would fill the page with their numbers
        tooltips=[(name, f"@{name}") for name in ("row", *scene.texts)],  # the rest is below
        callback=models.CustomJS(code="cb_obj.tags = cb_data.index.indices.slice(0, 1)"),
    )
    figure.add_tools(hover)
    parts = {
        "points": points,
        "dots": dots,
        "edges": edges,
        "spokes": spokes.data_source,
        "rings": rings,
    }
    return figure, {**parts, "hover": hover}


def _degree_figure() -> tuple[Any, Any]:
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


def _path_figure(scene: Scene) -> tuple[Any, Any]:
    models = require("bokeh.models", "plots")
    figure = _small_figure("path", x_axis_type="log", y_axis_type="log")
    eps = [value["eps"] for value in scene.values]
    degree = [float(value["mean_degree"]) for value in scene.values]
    components = [value["n_components"] for value in scene.values]
    figure.line(eps, degree, line_color=GROUPS[0], line_width=2)
    figure.scatter(eps, degree, size=6, color=GROUPS[0])
    figure.line(eps, components, line_color=GROUPS[2], line_width=2, line_dash="dashed")
    figure.scatter(eps, components, size=7, color=GROUPS[2], marker="triangle")
    cursor = models.Span(location=eps[0], dimension="height", line_color=INK, name="cursor")
    figure.add_layout(cursor)
    figure.xaxis.axis_label = "ε"
    return figure, cursor


def _small_figure(name: str, **axes: str) -> Any:
    figure = require("bokeh.plotting", "plots").figure(
        name=name, sizing_mode="stretch_both", tools="", toolbar_location=None, min_border=4,
        outline_line_color=None, **axes,
    )  # fmt: skip
    figure.axis.minor_tick_line_color = None
    figure.axis.axis_label_text_font_style = "normal"
    figure.axis.axis_label_standoff = 2
    figure.xgrid.visible = False
    return figure


def _point_size(n: int) -> float:
    return float(np.clip(POINT_SIZE_OF_ALL / np.sqrt(n), *POINT_SIZE_RANGE))


def _plain(scene: Scene) -> dict[str, Any]:
    """What the script reads; positions and texts are in the source of the points already."""
    fields = {name: getattr(scene, name) for name in scene.__dataclass_fields__}
    del fields["texts"]
    return fields


def _shipped(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
