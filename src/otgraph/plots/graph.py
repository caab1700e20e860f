"""Draw a graph on its points: one line per edge, darker for larger weights."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, NamedTuple, TypedDict, TypeVar

import numpy as np
import scipy.sparse as sp

from otgraph._optional import require
from otgraph.plots._axes import enlarged, new_axes
from otgraph.plots._density import line_strength, point_area, scale_of
from otgraph.plots.colors import EDGE, point_colors
from otgraph.plots.layouts import checked_weights, positions_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType
    from numpy.typing import ArrayLike

    from otgraph.methods import Embedding
    from otgraph.plots._axes import Window
    from otgraph.plots.colors import Legend, PointColors
    from otgraph.plots.layouts import GraphLike
    from otgraph.typing import FloatArray, IntArray, PointsLike, SparseMatrix

Function = TypeVar("Function", bound="Callable[..., object]")

# Weights at this quantile and above are drawn at full strength. Relative to the largest weight, a
# single heavy pair such as two duplicates would make all other edges invisible.
FULL_STRENGTH_QUANTILE = 0.95
# Smallest opacity, visible in print, so that edges of tiny weight are drawn, too.
FAINTEST = 0.04
# Above this many lines they are painted as pixels: matplotlib is slow to draw single lines, and
# vector files are slow to open.
MAX_VECTOR_EDGES = 20_000
RIM = 0.08  # width of the white rim, relative to the point; separates it from lines


def draw_graph(
    graph: GraphLike,
    coordinates: ArrayLike | Embedding | None = None,
    *,
    X: PointsLike | None = None,
    layout: str = "pca",
    labels: ArrayLike | None = None,
    color: ArrayLike | PointColors | None = None,
    color_label: str | None = None,
    cmap: str = "viridis",
    ax: Axes | None = None,
    point_size: float | None = None,
    edge_width: float = 0.5,
    edge_color: ColorType = EDGE,
    edge_strength: float | None = None,
    zoom: Window | None = None,
    zoom_bounds: Window = (0.64, 0.64, 0.36, 0.36),
    legend: Legend = True,
    title: str | None = None,
) -> Axes:
    """Axes with the points, and every edge as a line whose opacity follows its weight.

    Parameters
    ----------
    graph
        A `Graph`, or any symmetric scipy sparse matrix of weights. Self-loops are not drawn.
    coordinates
        Where to draw the points, ``(n, 2)``. By default the `layout`.
    X
        The points, if the graph has none.
    layout
        ``"pca"`` puts the points at their first two principal components, and does not change
        points of two dimensions. ``"spectral"``, ``"force"`` and ``"umap"`` look at the graph
        alone; see :func:`otgraph.plots.layout`.
    labels
        Group of each point, one color each; -1 is drawn gray.
    color
        ``"degree"``, ``"potential"``, ``"component"``, one number per point, a matplotlib color
        by name or as a tuple, or ready-made ``PointColors``. Not together with `labels`.
    color_label
        What the colors show, beside the color bar or above the legend. By default the name of
        the quantity, or that of the column if `color` or `labels` is one.
    cmap
        Color map for numbers.
    point_size
        Area of a point in square points. By default all points together cover a third of the
        area where they lie.
    edge_width
        Width of all lines in points.
    edge_color
        Color of all lines.
    edge_strength
        Opacity of the heaviest edges. By default paper shines through where they are densest.
    zoom
        Part of the picture to show enlarged, ``(xmin, xmax, ymin, ymax)``.
    zoom_bounds
        Position of the enlarged part: left, bottom, width and height as fractions of the axes.
    legend
        Show a legend of the groups, or a color bar: beside the axes, with ``"on data"`` the
        names of the groups at their middles, or none.
    ax, title
        Where to draw, a new figure by default, and the title of the axes.

    Returns
    -------
    matplotlib.axes.Axes
        The points are its one ``PathCollection``, the lines its one ``LineCollection``. More than
        20,000 lines are painted by a kernel in the resolution of the picture: a million take
        about a second.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from otgraph import plots
    >>> square = sp.csr_array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    >>> ax = plots.draw_graph(square, [[0, 0], [0, 1], [1, 1], [1, 0]], color="degree")
    """
    weights = checked_weights(graph)
    n = weights.shape[0]
    colors = point_colors(graph, n, labels=labels, color=color, cmap=cmap, color_label=color_label)
    positions = positions_of(graph, coordinates, X, kind=layout)
    own_figure = ax is None
    ax = new_axes(ax, None)
    scale = scale_of(ax, positions)
    edges = _edges(weights)
    if edge_strength is None:
        edge_strength = line_strength(positions, *edges, edge_width, scale)
    edges = edges._replace(alpha=edge_strength * edges.alpha)
    area = point_area(positions, scale) if point_size is None else point_size

    def draw(ax: Axes, edges: Edges) -> None:
        draw_lines(ax, positions, edges, edge_color, edge_width)
        draw_points(ax, positions, area, colors.rgba)

    draw(ax, edges)
    hide_frame(ax, title)
    colors.explain(ax, legend, positions=positions, widen=own_figure)
    if zoom is not None:
        inset = enlarged(ax, zoom, zoom_bounds)
        draw(inset, _edges_meeting(positions, edges, zoom))
        inset.set(xlim=zoom[:2], ylim=zoom[2:])
    return ax


def draw_points(ax: Axes, positions: FloatArray, area: float, color: FloatArray | str) -> None:
    """Points with a white rim, above the lines."""
    ax.scatter(
        positions[:, 0], positions[:, 1], s=area, c=color, linewidths=RIM * area**0.5,
        edgecolors="white", rasterized=len(positions) > MAX_VECTOR_EDGES, zorder=2,
    )  # fmt: skip
    ax.set(xticks=[], yticks=[])


def hide_frame(ax: Axes, title: str | None) -> None:
    """Equal scales without a frame, because coordinates mean nothing here; and the title."""
    ax.spines[:].set_visible(False)
    ax.set_aspect("equal")
    if title is not None:
        ax.set_title(title)


class DrawKeywords(TypedDict, total=False):
    """Keywords that other functions pass on to `draw_graph`."""

    point_size: float | None
    edge_width: float
    edge_color: ColorType
    edge_strength: float | None
    zoom: Window | None
    zoom_bounds: Window


def passes_on(function: Function) -> Function:
    """Show the keywords of `draw_graph` behind the ``**keywords`` of a function.

    Type checkers read the annotation; `help` and notebooks read this signature.
    """
    signature = inspect.signature(function)
    *own, _ = signature.parameters.values()
    of_drawing = inspect.signature(draw_graph).parameters
    shown = [of_drawing[name] for name in DrawKeywords.__annotations__]
    function.__signature__ = signature.replace(parameters=[*own, *shown])  # type: ignore[attr-defined]
    return function


class Edges(NamedTuple):
    """Pairs to draw, with their opacities."""

    i: IntArray
    j: IntArray
    alpha: FloatArray


def _edges(weights: SparseMatrix) -> Edges:
    """Each pair once, in the order of weights, so that heavy edges are on top.

    Opacities are relative to that of the heaviest.
    """
    upper = sp.triu(weights, k=1, format="coo")
    upper.eliminate_zeros()
    w = np.abs(upper.data.astype(np.float64))
    full = np.quantile(w, FULL_STRENGTH_QUANTILE) if len(w) else 1.0
    order = np.argsort(w, kind="stable")
    return Edges(upper.row[order], upper.col[order], np.clip(w[order] / full, FAINTEST, 1.0))


def draw_lines(
    ax: Axes,
    positions: FloatArray,
    edges: Edges,
    color: ColorType,
    width: float,
    most: int = MAX_VECTOR_EDGES,
) -> None:
    """Draw the edges: as paths, or as pixels if they are more than `most`."""
    if len(edges.i) > most:
        from otgraph.plots._pixel_lines import PixelLines  # subclass of a matplotlib class

        pixels = PixelLines(positions, *edges, color=color, width=width)
        pixels.set_zorder(1)
        ax.add_artist(pixels)
        return
    rgba = np.empty((len(edges.i), 4))
    rgba[:] = require("matplotlib.colors", "plots").to_rgba(color)
    rgba[:, 3] = edges.alpha
    ends = np.stack([positions[edges.i], positions[edges.j]], axis=1)
    collection = require("matplotlib.collections", "plots").LineCollection
    lines = collection(ends, colors=rgba, linewidths=width, zorder=1)
    ax.add_collection(lines, autolim=False)  # all lines are inside the hull of the points


def _edges_meeting(positions: FloatArray, edges: Edges, zoom: Window) -> Edges:
    """Edges whose bounding box intersects the window."""
    ends = np.stack([positions[edges.i], positions[edges.j]])
    low, high = ends.min(axis=0), ends.max(axis=0)
    xmin, xmax, ymin, ymax = zoom
    seen = (high >= [xmin, ymin]).all(axis=1) & (low <= [xmax, ymax]).all(axis=1)
    return Edges(edges.i[seen], edges.j[seen], edges.alpha[seen])
