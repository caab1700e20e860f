"""The same points, one picture for each construction of a graph."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from otgraph._optional import require
from otgraph._text import listed
from otgraph._validation import check_count
from otgraph.exceptions import DisconnectedWarning, invalid
from otgraph.graphs.constructions import CONSTRUCTIONS
from otgraph.methods import perplexity
from otgraph.plots._legends import set_plain
from otgraph.plots.colors import point_colors
from otgraph.plots.graph import draw_graph, passes_on
from otgraph.plots.layouts import as_graph, positions_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from otgraph.graphs.graph import Graph
    from otgraph.plots.colors import Legend, PointColors
    from otgraph.plots.graph import DrawKeywords
    from otgraph.plots.layouts import GraphLike
    from otgraph.typing import ObjectArray, PointsLike, SparseMatrix

PANEL = 3.0  # inches of the side of a picture
COLUMNS = 3
# Edges with less than this share of the heaviest weight of both ends are not drawn. Dense graphs
# connect all pairs, and nearly all of their edges weigh nothing.
NEGLIGIBLE = 0.02


@passes_on
def compare_graphs(
    X: PointsLike | Mapping[str, GraphLike],
    methods: Sequence[str] = tuple(CONSTRUCTIONS),
    *,
    options: Mapping[str, Mapping[str, object]] | None = None,
    coordinates: ArrayLike | None = None,
    layout: str = "pca",
    labels: ArrayLike | None = None,
    color: ArrayLike | PointColors | None = None,
    color_label: str | None = None,
    cmap: str = "viridis",
    columns: int = COLUMNS,
    ax: Sequence[Axes] | ObjectArray | None = None,
    legend: Legend = True,
    **keywords: Unpack[DrawKeywords],
) -> ObjectArray:
    """Array of axes, each with the same points and another graph.

    Points have the same places and colors in all pictures. Titles give the construction and the
    number of neighbors of a typical point: the perplexity, which also means something for graphs
    that connect all pairs.

    Parameters
    ----------
    X
        Points, one per row; or a dictionary of names and finished graphs of the same points.
    methods
        Names of constructions, as in ``method=``; all by default.
    options
        Keywords for some of the methods, such as ``{"knn": {"n_neighbors": 9}}``.
    layout
        As in :func:`otgraph.plots.draw_graph`, of the first graph.
    coordinates, labels, color, color_label, cmap, point_size, edge_width, edge_color, \
edge_strength, zoom, zoom_bounds
        As in :func:`otgraph.plots.draw_graph`.
    columns
        Most pictures beside each other.
    ax
        Axes to draw in, one for each graph; a new figure by default.
    legend
        Show a legend of the groups, or a color bar, beside the last picture.

    Returns
    -------
    numpy.ndarray
        One ``matplotlib.axes.Axes`` for each graph.

    Examples
    --------
    >>> import otgraph
    >>> arms = otgraph.datasets.spiral_arms(n_per_arm=20)
    >>> axes = otgraph.plots.compare_graphs(arms.X, ["quadratic", "knn"], labels=arms.labels)
    >>> len(axes)
    2
    """
    graphs = _graphs(X, methods, options or {})
    first = next(iter(graphs.values()))
    positions = positions_of(first, coordinates, None if isinstance(X, Mapping) else X, kind=layout)
    axes = _axes(ax, len(graphs), check_count(columns, "columns"))
    for number, (each, (name, graph)) in enumerate(zip(axes, graphs.items(), strict=True)):
        colors = point_colors(
            graph, graph.n, labels=labels, color=color, cmap=cmap, color_label=color_label
        )
        shown, beside = _without_negligible(graph), legend if number == len(graphs) - 1 else False
        draw_graph(shown, positions, color=colors, ax=each, legend=beside, **keywords)
        set_plain(each.title, f"{name}\nperplexity {perplexity(graph):.3g}")
    if ax is None and len(graphs) % min(columns, len(graphs)):
        # There is an empty place for the legend: it need not push the pictures aside.
        legend_or_bar = [axes[-1].get_legend(), *axes[-1].child_axes]
        for part in filter(None, legend_or_bar):
            part.set_in_layout(False)
    return axes


def _graphs(
    X: PointsLike | Mapping[str, GraphLike],
    methods: Sequence[str],
    options: Mapping[str, Mapping[str, object]],
) -> dict[str, Graph]:
    if isinstance(X, Mapping):
        if options or tuple(methods) != tuple(CONSTRUCTIONS):
            raise invalid("methods", "and `options` are for points; finished graphs have theirs.")
        graphs = {str(name): as_graph(graph, "X") for name, graph in X.items()}
        sizes = {graph.n for graph in graphs.values()}
        if len(sizes) != 1:
            raise invalid("X", f"must hold graphs of the same points, got {sorted(sizes)} points.")
        return graphs
    methods = [methods] if isinstance(methods, str) else list(methods)
    unknown = [name for name in (*methods, *options) if name not in CONSTRUCTIONS]
    if unknown or not methods:
        raise invalid("methods", f"must be some of {listed(CONSTRUCTIONS)}, got {listed(unknown)}.")
    with warnings.catch_warnings():  # the pictures show the components
        warnings.simplefilter("ignore", DisconnectedWarning)
        return {
            CONSTRUCTIONS[name].title: CONSTRUCTIONS[name].build(X, **options.get(name, {}))
            for name in methods
        }


def _axes(ax: Sequence[Axes] | ObjectArray | None, n: int, columns: int) -> ObjectArray:
    """One of the given axes for each graph, or those of a new figure."""
    if ax is not None:
        axes = np.asarray(ax, dtype=object).ravel()
        if len(axes) != n:
            raise invalid("ax", f"must hold {n} axes, one for each graph, got {len(axes)}.")
        return axes
    columns = min(columns, n)
    rows = -(-n // columns)
    pyplot = require("matplotlib.pyplot", "plots")
    figure = pyplot.figure(figsize=(PANEL * columns, PANEL * rows), layout="compressed")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for empty in axes[n:]:
        empty.axis("off")
    return np.asarray(axes[:n])


def _without_negligible(graph: Graph) -> SparseMatrix:
    """Weights without those that are small for both ends."""
    weights = graph.weights.tocoo()
    heaviest = np.maximum(weights.max(axis=1).toarray().ravel(), np.finfo(float).tiny)
    relative = weights.data / np.minimum(heaviest[weights.row], heaviest[weights.col])
    weights.data = np.where(relative >= NEGLIGIBLE, weights.data, 0.0)
    return weights.tocsr()
