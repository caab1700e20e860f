"""Plot the coordinates of an embedding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from otgraph.exceptions import invalid
from otgraph.plots._axes import enlarged, finish, new_axes
from otgraph.plots._density import point_area, scale_of
from otgraph.plots.colors import point_colors
from otgraph.plots.graph import MAX_VECTOR_EDGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from otgraph.methods import Embedding
    from otgraph.plots._axes import Window
    from otgraph.plots.colors import Legend, PointColors
    from otgraph.typing import FloatArray

HEIGHT = 4.5  # inches of a new figure; its width follows that of the picture
FOR_LABELS = 1.0  # inches beside the axes
MARGIN = 0.05  # around the points, relative to the longer side of the picture
FLATTEST = 1 / 3  # height over width, or the inverse, of a picture that is still easy to read
# The crowd is within this many median absolute deviations of the median. It is shown enlarged if it
# fills less than this share of the longer side of the picture.
CROWD = 5.0
SMALL_CROWD = 0.35
INSET = 0.5  # side of the enlarged part, relative to the shorter side of the picture
MOST_HIDDEN = 0.01  # share of the points that the enlarged part may cover


def plot_embedding(
    embedding: Embedding | ArrayLike,
    *,
    labels: ArrayLike | None = None,
    color: ArrayLike | PointColors | None = None,
    color_label: str | None = None,
    components: tuple[int, int] = (0, 1),
    cmap: str = "viridis",
    ax: Axes | None = None,
    point_size: float | None = None,
    zoom: Window | Literal["auto"] | None = "auto",
    legend: Legend = True,
    title: str | None = None,
) -> Axes:
    """Axes with a point for every row of an embedding, and equal scales.

    Eigenmaps may put a few points far from all others, which are then one dot. This dot is shown
    enlarged, where the picture is empty.

    Parameters
    ----------
    embedding
        Result of :func:`otgraph.eigenmaps`, or any array of coordinates, one row per point.
    components
        The two columns to draw, counted from 0.
    zoom
        Part to show enlarged, ``(xmin, xmax, ymin, ymax)``, or None. By default most points, if
        they fill a small part of the picture.
    labels, color, color_label, cmap, ax, point_size, legend, title
        As in :func:`otgraph.plots.draw_graph`; colors cannot show quantities of a graph.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> embedding = otgraph.eigenmaps(otgraph.quadratic_ot_graph(X, eps=1.0))
    >>> ax = otgraph.plots.plot_embedding(embedding, color=X[:, 0])
    """
    coordinates = _checked_coordinates(embedding, components)
    n = len(coordinates)
    colors = point_colors(None, n, labels=labels, color=color, cmap=cmap, color_label=color_label)
    own_figure = ax is None
    window = _whole(coordinates)
    relative_width = min(1.0, (window[1] - window[0]) / (window[3] - window[2]))
    ax = new_axes(ax, (HEIGHT * relative_width + FOR_LABELS, HEIGHT))
    part, bounds = _crowd(coordinates, window) if zoom == "auto" else (zoom, None)

    def draw(ax: Axes, seen: FloatArray) -> None:
        ax.scatter(
            coordinates[:, 0],
            coordinates[:, 1],
            s=point_area(seen, scale_of(ax, seen)) if point_size is None else point_size,
            c=colors.rgba,
            linewidths=0,
            rasterized=n > MAX_VECTOR_EDGES,
        )

    draw(ax, coordinates)
    eigenvalues = getattr(embedding, "eigenvalues", None)
    finish(
        ax,
        xlabel=_axis_name(components[0], eigenvalues),
        ylabel=_axis_name(components[1], eigenvalues),
        title=title,
        xlim=window[:2],
        ylim=window[2:],
        aspect="equal",
    )
    ax.ticklabel_format(useMathText=True)
    if part is not None:
        draw(
            enlarged(ax, part, bounds or _corners(window)[-1]),
            coordinates[_inside(coordinates, part)],
        )
    colors.explain(ax, legend, positions=coordinates, widen=own_figure)
    return ax


def _whole(coordinates: FloatArray) -> Window:
    """Limits that show all points, neither very flat nor very narrow."""
    finite = coordinates[np.isfinite(coordinates).all(axis=1)]
    if not len(finite):
        return 0.0, 1.0, 0.0, 1.0
    low, high = finite.min(axis=0), finite.max(axis=0)
    longest = float((high - low).max()) or 1.0
    half = np.maximum(high - low, FLATTEST * longest) / 2 + MARGIN * longest
    (xmin, ymin), (xmax, ymax) = (low + high) / 2 - half, (low + high) / 2 + half
    return float(xmin), float(xmax), float(ymin), float(ymax)


def _crowd(coordinates: FloatArray, whole: Window) -> tuple[Window | None, Window | None]:
    """Part of the picture that holds most points, if small, and an empty place to enlarge it."""
    middle = np.median(coordinates, axis=0)
    deviation = np.median(np.abs(coordinates - middle), axis=0)
    if not np.isfinite(deviation).all() or not deviation.any():
        return None, None
    near = coordinates[(np.abs(coordinates - middle) <= CROWD * deviation).all(axis=1)]
    if not len(near):
        return None, None
    center = (near.min(axis=0) + near.max(axis=0)) / 2
    half = (0.5 + MARGIN) * float(np.ptp(near, axis=0).max())
    longest = max(whole[1] - whole[0], whole[3] - whole[2])
    if half == 0.0 or 2 * half > SMALL_CROWD * longest:
        return None, None
    part = (center[0] - half, center[0] + half, center[1] - half, center[1] + half)
    for bounds in _corners(whole):
        if np.mean(_inside(coordinates, _in_data(bounds, whole))) <= MOST_HIDDEN:
            return part, bounds
    return None, None


def _corners(whole: Window) -> list[Window]:
    """Squares in the corners of the axes, as fractions of their sides; the upper right is last."""
    width, height = whole[1] - whole[0], whole[3] - whole[2]
    side = INSET * min(width, height)
    w, h = side / width, side / height
    return [(x, y, w, h) for x in (0.04, 1 - w) for y in (0.04, 1 - h)]


def _in_data(bounds: Window, whole: Window) -> Window:
    left, bottom, width, height = bounds
    xmin, xmax, ymin, ymax = whole
    x, y = xmin + left * (xmax - xmin), ymin + bottom * (ymax - ymin)
    return x, x + width * (xmax - xmin), y, y + height * (ymax - ymin)


def _inside(coordinates: FloatArray, window: Window) -> NDArray[np.bool_]:
    xmin, xmax, ymin, ymax = window
    x, y = coordinates.T
    return (x >= xmin) & (x <= xmax) & (y >= ymin) & (y <= ymax)


def _checked_coordinates(embedding: Embedding | ArrayLike, components: Sequence[int]) -> FloatArray:
    coordinates = np.asarray(getattr(embedding, "coordinates", embedding), dtype=np.float64)
    if coordinates.ndim != 2 or coordinates.shape[1] < 2:
        msg = (
            f"must have a row per point and at least two columns, got shape {coordinates.shape}. "
            "For one coordinate use a histogram."
        )
        raise invalid("embedding", msg)
    k = coordinates.shape[1]
    if len(components) != 2 or not all(0 <= c < k for c in components):
        raise invalid("components", f"must be two columns among 0..{k - 1}, got {components!r}.")
    return coordinates[:, list(components)]


def _axis_name(component: int, eigenvalues: FloatArray | None) -> str:
    if eigenvalues is None:
        return f"coordinate {component + 1}"
    return f"eigenvector {component + 1} (λ = {eigenvalues[component]:.4g})"
