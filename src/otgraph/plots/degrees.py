"""Plot the distribution of the degrees of one or several graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph.graphs.path import EpsPath
from otgraph.plots._axes import by_name, finish, new_axes
from otgraph.plots.colors import line_styles
from otgraph.plots.layouts import as_graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from otgraph.plots._axes import Shown
    from otgraph.typing import FloatArray, IntArray

MOST_BINS = 60  # most bins; more cannot be distinguished at the width of a column
FILL_OPACITY = 0.2
MOST_FILLED = 3  # opacity of several distributions; with more, colors would mix


def plot_degrees(
    graphs: Shown,
    *,
    names: Sequence[str] | None = None,
    cumulative: bool = False,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Axes with the share of points that have each degree.

    Several graphs have the same bins. A dotted line in the color of each graph marks its mean.

    Parameters
    ----------
    graphs
        A `Graph` or symmetric sparse matrix, a list of them, a dictionary of names and graphs,
        or a path of :func:`otgraph.eps_path`.
    names
        Names for the legend; by default the keys, or how each graph was built.
    cumulative
        Show the share of points with at most this degree, without bins.
    ax, title
        Where to draw, a new figure by default, and the title of the axes.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> graphs = {k: otgraph.knn_gaussian_graph(X, n_neighbors=k) for k in (3, 9)}
    >>> ax = otgraph.plots.plot_degrees(graphs)
    """
    named = [(name, as_graph(item, "graphs").degrees) for name, item in by_name(graphs, names)]
    styles = line_styles(len(named), ordered=isinstance(graphs, EpsPath))
    ax = new_axes(ax)
    edges = common_bins([degrees for _, degrees in named])
    for (name, degrees), (color, dash) in zip(named, styles, strict=True):
        label = f"{name} (mean {degrees.mean():.3g})"
        if cumulative:
            levels = np.unique(degrees)
            shares = np.searchsorted(np.sort(degrees), levels, side="right") / len(degrees)
            ax.step(levels, shares, where="post", color=color, linestyle=dash, label=label)
        else:
            shares = np.histogram(degrees, edges)[0] / len(degrees)
            ax.stairs(shares, edges, color=color, linestyle=dash, linewidth=1.4, label=label)
            if len(named) <= MOST_FILLED:
                ax.stairs(shares, edges, color=color, fill=True, alpha=FILL_OPACITY, linewidth=0)
        ax.axvline(float(degrees.mean()), color=color, linestyle=":", linewidth=1)
    share = "share of points with at most this degree" if cumulative else "share of points"
    return finish(
        ax, xlabel="degree", ylabel=share, ylim=(0, None), title=title, entries=len(named)
    )


def common_bins(all_degrees: list[IntArray]) -> FloatArray:
    """Bin edges halfway between whole numbers, with the same number of degrees per bin."""
    low = min(int(degrees.min()) for degrees in all_degrees)
    high = max(int(degrees.max()) for degrees in all_degrees)
    width = -(-(high - low + 1) // MOST_BINS)
    return np.arange(low, high + width + 1, width, dtype=np.float64) - 0.5
