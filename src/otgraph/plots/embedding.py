"""Plot the coordinates of an embedding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph.exceptions import argument_error
from otgraph.plots._axes import new_axes, tidy
from otgraph.plots.colors import point_colors
from otgraph.plots.graph import MAX_VECTOR_EDGES, point_area

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from otgraph.typing import FloatArray

FIGSIZE = (5.5, 4.5)


def plot_embedding(
    embedding: Any,
    *,
    labels: ArrayLike | None = None,
    color: Any = None,
    components: tuple[int, int] = (0, 1),
    cmap: str = "viridis",
    ax: Axes | None = None,
    point_size: float | None = None,
    legend: bool = True,
    title: str | None = None,
) -> Axes:
    """Axes with a point for every row of an embedding.

    Parameters
    ----------
    embedding
        Result of :func:`otgraph.eigenmaps`, or any array of coordinates, one row per point.
    labels
        Group of each point, one color each; -1 is drawn gray.
    color
        One number per point, or a matplotlib color by name or as a tuple. Not together with
        `labels`.
    components
        The two columns to draw, counted from 0.
    cmap
        Color map for numbers.
    ax
        Where to draw; a new figure by default.
    point_size
        Area of a point in square points. By default it shrinks as their number grows.
    legend
        Show a legend of the groups, or a color bar.
    title
        Title of the axes.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> embedding = otgraph.eigenmaps(otgraph.quadratic_ot_graph(X, eps=1.0))
    >>> ax = otgraph.plots.plot_embedding(embedding, color=X[:, 0])
    """
    coordinates = _checked_coordinates(embedding, components)
    n = len(coordinates)
    colors = point_colors(None, n, labels=labels, color=color, cmap=cmap)
    ax = new_axes(ax, FIGSIZE)
    ax.scatter(
        coordinates[:, 0],
        coordinates[:, 1],
        s=point_area(n) if point_size is None else point_size,
        c=colors.rgba,
        linewidths=0,
        rasterized=n > MAX_VECTOR_EDGES,
    )
    eigenvalues = getattr(embedding, "eigenvalues", None)
    ax.set(
        xlabel=_axis_name(components[0], eigenvalues),
        ylabel=_axis_name(components[1], eigenvalues),
        title=title or "",
    )
    ax.ticklabel_format(useMathText=True)
    tidy(ax)
    if legend:
        colors.explain(ax)
    return ax


def _checked_coordinates(embedding: Any, components: Sequence[int]) -> FloatArray:
    coordinates = np.asarray(getattr(embedding, "coordinates", embedding), dtype=np.float64)
    if coordinates.ndim != 2 or coordinates.shape[1] < 2:
        msg = (
            "`embedding` must have a row per point and at least two columns, got shape "
            f"{coordinates.shape}. For one coordinate use a histogram."
        )
        raise argument_error(ValueError, "embedding", msg)
    k = coordinates.shape[1]
    if len(components) != 2 or not all(0 <= c < k for c in components):
        msg = f"`components` must be two columns among 0..{k - 1}, got {components!r}."
        raise argument_error(ValueError, "components", msg)
    return coordinates[:, list(components)]


def _axis_name(component: int, eigenvalues: Any) -> str:
    if eigenvalues is None:
        return f"coordinate {component + 1}"
    return f"eigenvector {component + 1} (λ = {eigenvalues[component]:.4g})"
