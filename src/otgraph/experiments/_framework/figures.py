"""Helpers for the figures of several experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.linalg import orthogonal_procrustes

from otgraph import plots
from otgraph._optional import require
from otgraph.experiments._framework.methods import METHOD_STYLES
from otgraph.experiments._framework.statistics import best_per_seed
from otgraph.plots.colors import INK
from otgraph.plots.graph import FAINTEST, FULL_STRENGTH_QUANTILE
from otgraph.plots.layouts import principal_plane as principal_plane

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from otgraph import Graph
    from otgraph.experiments._framework.experiment import Row, Scores
    from otgraph.typing import FloatArray, ObjectArray, SparseMatrix

DRAWN_SEED = 0  # of the sample that figures show
INK_PER_POINT = 0.1  # width of lines that show structure without hiding points
# Edges with less than this share of the typical weight are not drawn. A dense graph has so many of
# them that they would hide the others.
NEGLIGIBLE_SHARE = 0.02
EMBEDDED_POINT_AREA = 10  # in square points: small enough to show a curve
AXIS_LABELS = {"eps": "ε", "n_per_arm": "points per arm"}
# Cyclic colors for the parameter of a closed curve. Matplotlib's cyclic maps contain near-white or
# bright yellow; these colors are all dark enough for small points.
AROUND = ("#c8374b", "#d98b1f", "#4f9a4a", "#1f8fa8", "#4659b8", "#99429b", "#c8374b")
LINE: Row = {"linewidth": 1.6, "markersize": 3.5}
BAND: Row = {"alpha": 0.18, "linewidth": 0}  # range over the seeds around a line
# One lobe of the noisy spiral in the plane of its principal components, where noise is largest.
SPIRAL_ZOOM = (0.7, 1.7, -0.5, 0.5)


def subplots(
    width: float, height: float, n_rows: int = 1, n_columns: int = 1, **options: Any
) -> tuple[Figure, Any]:  # one panel, or an array of them
    """A figure and its panels. It is not registered with pyplot, so drawing has no side effects."""
    Figure = require("matplotlib.figure", "plots").Figure
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, **options)


def color_bar(figure: Figure, axes: ObjectArray, values: FloatArray, label: str) -> None:
    """One color bar for all panels with these values."""
    norm = require("matplotlib.colors", "plots").Normalize(values.min(), values.max())
    mappable = require("matplotlib.cm", "plots").ScalarMappable(norm, "viridis")
    figure.colorbar(mappable, ax=axes, label=label, shrink=0.6)


def legend_below(figure: Figure, axes: Iterable[Axes], n_columns: int) -> None:
    """One legend for several panels, each label once."""
    handles: Row = {}
    for ax in axes:
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    where: Row = {"loc": "outside lower center"}  # places outside are missing in the types
    figure.legend(handles.values(), handles.keys(), ncols=n_columns, frameon=False, **where)


def light_grid(ax: Axes, axis: Literal["both", "x", "y"] = "both", color: str = "0.92") -> None:
    """Pale lines behind everything else."""
    ax.grid(axis=axis, color=color, linewidth=0.6)
    ax.set_axisbelow(True)


def hide_axes(ax: Axes) -> None:
    """Equal scales without ticks and frame, for points whose coordinates mean nothing."""
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def cyclic_colors() -> Colormap:
    """Cyclic color map for a closed curve."""
    colors = require("matplotlib.colors", "plots")
    return colors.LinearSegmentedColormap.from_list("around", AROUND)


def aligned(coordinates: FloatArray, reference: FloatArray) -> FloatArray:
    """Coordinates rotated and reflected onto a reference (Procrustes).

    Signs of eigenvectors, and rotations among equal eigenvalues, are arbitrary. Without alignment,
    equal embeddings would look different.
    """
    rotation, _ = orthogonal_procrustes(coordinates, reference)
    return np.asarray(coordinates @ rotation)


def draw_embeddings(
    axes: Sequence[Axes], planes: Mapping[str, FloatArray], color: ArrayLike
) -> None:
    """Draw planar embeddings by title, aligned with the first, colored along the curve."""
    first = next(iter(planes.values()))
    turned = {title: aligned(plane, first) for title, plane in planes.items()}
    reach = 1.05 * max(np.abs(plane).max() for plane in turned.values())
    for ax, (title, plane) in zip(axes, turned.items(), strict=True):
        x, y = plane.T
        ax.scatter(x, y, c=color, cmap=cyclic_colors(), s=EMBEDDED_POINT_AREA, linewidths=0)
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
        ax.set(aspect="equal", title=title)


def equal_ink(
    graph: Graph, positions: FloatArray, ink: float = INK_PER_POINT
) -> tuple[SparseMatrix, float]:
    """Weights of the edges to draw, and the opacity of the heaviest, for a given amount of ink.

    Ink is opacity times length, in units of the width of the picture. The lines of dense graphs
    become fainter, without a setting for each method.
    """
    i, j, weight = graph.edges()
    typical = weight @ weight / weight.sum()  # of the edge that a unit of mass takes
    shown = weight >= NEGLIGIBLE_SHARE * typical
    i, j, weight = i[shown], j[shown], weight[shown]
    lengths = np.linalg.norm(positions[i] - positions[j], axis=1)
    heaviest = np.quantile(weight, FULL_STRENGTH_QUANTILE)
    opacity = np.clip(weight / heaviest, FAINTEST, 1.0)
    spent = float(opacity @ lengths) / np.ptp(positions[:, 0]) / graph.n
    upper = sp.coo_matrix((weight, (i, j)), shape=(graph.n, graph.n))
    return (upper + upper.T).tocsr(), min(1.0, ink / spent)


def draw_with_equal_ink(
    ax: Axes, graph: Graph, positions: FloatArray, ink: float = INK_PER_POINT, **options: Any
) -> None:
    """Draw a graph by :func:`otgraph.plots.draw_graph`, without a legend."""
    weights, strength = equal_ink(graph, positions, ink)
    style = {"edge_color": INK, "edge_strength": strength, **options}
    plots.draw_graph(weights, positions, ax=ax, legend=False, **style)


def plot_spread(ax: Axes, scores: Scores, x: str | None, method: str, label: str = "") -> None:
    """Mean over the seeds against the parameter `x`, and the range from lowest to highest.

    `scores` has rows of one score of one method, one for each seed and value of `x`. Without `x`
    the line is horizontal. The label is by default the name of the method.
    """
    style = METHOD_STYLES[method]
    color, label = style["color"], label or method
    if x is None:
        values, line = scores["value"], {"linestyle": style["linestyle"], "linewidth": 1.6}
        ax.axhline(values.mean(), color=color, label=label, **line)
        ax.axhspan(values.min(), values.max(), color=color, **BAND)
        return
    groups = scores.groupby(x)["value"]
    grid = groups.mean().index.to_numpy(dtype=float)
    ax.plot(grid, groups.mean(), label=label, **style, **LINE)
    ax.fill_between(grid, groups.min(), groups.max(), color=color, **BAND)


def plot_best(
    ax: Axes, scores: Scores, score: str, x: str, method: str, *, largest: bool, hollow: Scores
) -> None:
    """The best value of a score for every value of `x`, by :func:`plot_spread`.

    Markers are white where some seed has a row in `hollow`, with the same parameters.
    """
    mine = scores[scores["method"] == method]
    best = best_per_seed(mine, score, largest=largest, by=("seed", x))
    plot_spread(ax, best, x, method)
    hollow = hollow[hollow["method"] == method]
    at = [name for name in ("seed", "dim", "eps", "k") if name in best and name in hollow]
    marked = best[x].isin(best.merge(hollow[at], on=at)[x])
    means = best[marked].groupby(x)["value"].mean()
    style = METHOD_STYLES[method]
    ax.plot(
        means.index.to_numpy(dtype=float), means.to_numpy(), linestyle="", marker=style["marker"],
        markersize=LINE["markersize"], markerfacecolor="white", markeredgecolor=style["color"],
    )  # fmt: skip


def heat_map(ax: Axes, scores: Scores, *, x: str, y: str, label: str, **limits: Any) -> QuadMesh:
    """Mean over the seeds for every pair of two parameters; eps runs along a logarithmic axis."""
    table = scores.pivot_table(index=y, columns=x, values="value", aggfunc="mean")
    mesh = ax.pcolormesh(
        _cell_edges(table.columns.to_numpy(dtype=float), logarithmic=x == "eps"),
        _cell_edges(table.index.to_numpy(dtype=float), logarithmic=y == "eps"),
        table.to_numpy(dtype=float),
        cmap="viridis",
        rasterized=True,  # otherwise viewers show a white grid between the cells
        **limits,
    )
    ax.set(xscale="log" if x == "eps" else "linear", xlabel=AXIS_LABELS.get(x, x))
    ax.set(yscale="log" if y == "eps" else "linear", ylabel=AXIS_LABELS.get(y, y))
    ax.figure.colorbar(mesh, ax=ax, label=label)
    return mesh


def _cell_edges(centers: FloatArray, *, logarithmic: bool) -> FloatArray:
    """Borders halfway between the values of a grid, and as far beyond its ends."""
    if len(centers) == 1:
        return np.array([0.5, 1.5]) * centers
    values = np.log(centers) if logarithmic else centers
    middles = (values[1:] + values[:-1]) / 2
    edges = np.concatenate([[2 * values[0] - middles[0]], middles, [2 * values[-1] - middles[-1]]])
    return np.exp(edges) if logarithmic else edges
