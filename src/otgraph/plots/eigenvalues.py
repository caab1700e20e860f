"""Plot the eigenvalues behind a number of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph.exceptions import argument_error
from otgraph.methods import Clustering
from otgraph.plots._axes import finish, new_axes
from otgraph.plots.colors import GROUPS, INK, UNKNOWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAND_OPACITY = 0.15


def plot_eigenvalues(
    clustering: Clustering, *, ax: Axes | None = None, title: str | None = None
) -> Axes:
    r"""Axes with the frequencies :math:`\sqrt{1 - \lambda}`; a band marks the gap of the clusters.

    Frequencies of modes that separate clusters are small. Where they rise in equal steps, the graph
    suggests no number of clusters.

    Parameters
    ----------
    clustering
        From :func:`otgraph.cluster`.
    ax, title
        Where to draw, a new figure by default, and the title of the axes.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0.0], [9.0]], 30, axis=0)
    >>> found = otgraph.cluster(otgraph.quadratic_ot_graph(X, mean_degree=5))
    >>> ax = otgraph.plots.plot_eigenvalues(found)
    """
    if not isinstance(clustering, Clustering):
        msg = (
            f"`clustering` must be a result of `otgraph.cluster`, got {type(clustering).__name__}."
        )
        raise argument_error(TypeError, "clustering", msg)
    ax = new_axes(ax)
    k = clustering.n_clusters
    heights = np.sqrt(np.clip(1.0 - clustering.eigenvalues, 0.0, None))
    numbers = np.arange(1, len(heights) + 1)
    if len(heights) > k:
        ax.axhspan(*heights[k - 1 : k + 1], color=GROUPS[0], alpha=BAND_OPACITY, linewidth=0)
    ax.plot(numbers, heights, color=UNKNOWN, linewidth=1, zorder=1)
    used = f"{k} cluster{'s' if k > 1 else ''}"
    ax.scatter(numbers[:k], heights[:k], color=GROUPS[0], label=used)
    ax.scatter(numbers[k:], heights[k:], facecolors="white", edgecolors=INK, label="not used")
    ax.locator_params("x", integer=True)
    return finish(
        ax, xlabel="eigenvector", ylabel=r"frequency $\sqrt{1 - \lambda}$",
        ylim=(min(0.0, -0.03 * heights.max(initial=1.0)), None), title=title,
        entries=2, where="lower right",
    )  # fmt: skip
