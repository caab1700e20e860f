"""Draw a multiscale graph: every edge in the color of the eps at which it appears."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._optional import require
from otgraph.exceptions import invalid
from otgraph.graphs.mean import MultiscaleGraph
from otgraph.plots._axes import new_axes
from otgraph.plots._density import line_strength, point_area, scale_of
from otgraph.plots.graph import Edges, draw_lines, draw_points, hide_frame
from otgraph.plots.layouts import positions_of
from otgraph.plots.palette import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from otgraph.methods import Embedding
    from otgraph.typing import PointsLike

# Part of a color map that is used: its lightest colors vanish on paper.
FIRST_COLOR, LAST_COLOR = 0.0, 0.85
# Width and opacity of lines from the smallest eps to the largest. The few edges of the smallest are
# drawn last and strongest, or the many of the largest would hide them.
STRONGEST, FAINTEST = 1.0, 0.4


def plot_scales(
    graph: MultiscaleGraph,
    coordinates: ArrayLike | Embedding | None = None,
    *,
    X: PointsLike | None = None,
    layout: str = "pca",
    cmap: str = "plasma",
    ax: Axes | None = None,
    point_size: float | None = None,
    edge_width: float = 1.0,
    legend: bool = True,
    title: str | None = None,
) -> Axes:
    """Axes with the edges of a multiscale graph, colored by the ``eps`` at which they appear.

    Dark edges exist at every scale: they hold clusters and curves together. Light edges appear
    only where ``eps`` is large, and reach over gaps.

    Parameters
    ----------
    graph
        A :class:`otgraph.MultiscaleGraph`.
    coordinates, X, layout, point_size, ax, title
        As in :func:`otgraph.plots.draw_graph`.
    cmap
        Color map, from the smallest ``eps`` to the largest.
    edge_width
        Width of the lines of the smallest ``eps`` in points; others are thinner.
    legend
        List the values of ``eps`` beside the axes, with the mean degree that edges up to each of
        them give.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import otgraph
    >>> X = otgraph.datasets.noisy_spiral(n=200).X
    >>> ax = otgraph.plots.plot_scales(otgraph.multiscale_graph(X, mean_degree=20))
    """
    if not isinstance(graph, MultiscaleGraph):
        raise invalid("graph", f"must be a MultiscaleGraph, got {type(graph).__name__}.", TypeError)
    positions = positions_of(graph, coordinates, X, kind=layout)
    ax = new_axes(ax, None)
    scale = scale_of(ax, positions)
    found = graph.weights.copy()
    found.data = graph.edge_eps
    upper = sp.triu(found, k=1, format="coo")
    colormap = require("matplotlib", "plots").colormaps[cmap]
    colors = colormap(np.linspace(FIRST_COLOR, LAST_COLOR, graph.n_parts))
    depth = np.linspace(STRONGEST, FAINTEST, graph.n_parts)
    line, handles = require("matplotlib.lines", "plots").Line2D, []
    for k in reversed(range(graph.n_parts)):
        here = upper.data == graph.eps[k]
        edges = Edges(upper.row[here], upper.col[here], np.ones(np.count_nonzero(here)))
        width = edge_width * depth[k] ** 0.5
        strength = line_strength(positions, *edges, width, scale)
        edges = edges._replace(alpha=np.full(len(edges.i), max(strength, depth[k])))
        draw_lines(ax, positions, edges, colors[k], width)
        degree = 2.0 * np.count_nonzero(upper.data <= graph.eps[k]) / graph.n
        label = f"ε = {graph.eps[k]:.2g}  ({degree:.1f} neighbors)"
        handles.append(line([], [], color=colors[k], linewidth=2.0, label=label))
    area = point_area(positions, scale) if point_size is None else point_size
    draw_points(ax, positions, area, INK)
    hide_frame(ax, title)
    if legend:
        ax.legend(
            handles=handles[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False,
            title="appears at",
        )  # fmt: skip
    return ax
