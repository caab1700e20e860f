"""Plot degrees and components along a path of eps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph.exceptions import argument_error
from otgraph.graphs.graph import TransportGraph
from otgraph.graphs.path import EpsPath
from otgraph.methods import perplexity
from otgraph.plots._axes import EPS_AXIS, finish, new_axes
from otgraph.plots.colors import DASHES, GROUPS, MARKERS
from otgraph.solvers.certificate import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from otgraph.graphs.graph import Graph
    from otgraph.typing import FloatArray

DEGREE_QUANTILES = (0.05, 0.95)  # quantiles of the band, which holds nine points in ten
BAND_OPACITY = 0.15


def plot_path(path: EpsPath, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Axes with degree, perplexity and number of components against ``eps``.

    All three are counts on one logarithmic axis. The band holds the degrees of nine points in ten.
    Perplexity is the effective number of neighbors: exp of the mean entropy of a row. It equals
    the degree if all weights of a row are equal, and is smaller otherwise. A cross marks graphs
    that did not converge.

    Parameters
    ----------
    path
        From :func:`otgraph.eps_path`.
    ax
        Where to draw; a new figure by default.
    title
        Title of the axes.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> path = otgraph.eps_path(X, np.logspace(-1, 1, 5))
    >>> otgraph.plots.plot_path(path).get_xlabel()
    'regularization ε'
    """
    graphs = _in_order_of_eps(path)
    eps = np.array([graph.params["eps"] for graph in graphs], dtype=np.float64)
    ax = new_axes(ax)
    low, high = np.transpose([np.quantile(graph.degrees, DEGREE_QUANTILES) for graph in graphs])
    ax.fill_between(eps, low, high, color=GROUPS[0], alpha=BAND_OPACITY, linewidth=0)
    curves: dict[str, list[float]] = {
        "mean degree": [graph.mean_degree for graph in graphs],
        "perplexity": [perplexity(graph) for graph in graphs],
        "components": [graph.n_connected for graph in graphs],
    }
    for number, (name, values) in enumerate(curves.items()):
        ax.plot(
            eps, values, label=name, color=GROUPS[number], linestyle=DASHES[number],
            marker=MARKERS[number], markersize=4,
        )  # fmt: skip
    _mark_failures(ax, graphs, eps, curves["mean degree"])
    return finish(
        ax, xlabel=EPS_AXIS, ylabel="count", xscale="log", yscale="log", title=title,
        entries=len(curves),
    )  # fmt: skip


def _in_order_of_eps(path: Any) -> list[Graph]:
    if not isinstance(path, EpsPath) or not len(path):
        came = "an empty one" if isinstance(path, EpsPath) else f"{type(path).__name__}"
        msg = f"`path` must be a path of graphs, as `otgraph.eps_path` returns, got {came}."
        raise argument_error(TypeError, "path", msg)
    return sorted(path, key=lambda graph: float(graph.params["eps"] or 0.0))


def _mark_failures(ax: Axes, graphs: list[Graph], eps: FloatArray, height: list[float]) -> None:
    failed = np.array(
        [
            isinstance(graph, TransportGraph) and graph.certificate.status == Status.NOT_CONVERGED
            for graph in graphs
        ]
    )
    if failed.any():
        ax.plot(
            eps[failed], np.array(height)[failed],
            linestyle="", marker="x", markersize=9, color=GROUPS[2], label="not converged",
        )  # fmt: skip
