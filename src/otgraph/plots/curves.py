"""Curves: degrees along eps, the choice of eps, convergence of the solver, and eigenvalues."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from otgraph._optional import require
from otgraph.exceptions import invalid
from otgraph.graphs.choice import CLEAR, EpsChoice
from otgraph.graphs.path import EpsPath
from otgraph.methods import Clustering, perplexity
from otgraph.plots._axes import EPS_AXIS, by_name, finish, new_axes
from otgraph.plots.colors import DASHES, GROUPS, INK, MARKERS, UNKNOWN, line_styles
from otgraph.solvers.certificate import Certificate, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from otgraph.graphs.graph import Graph, TransportGraph
    from otgraph.plots._axes import Shown
    from otgraph.typing import FloatArray

DEGREE_QUANTILES = (0.05, 0.95)  # quantiles of the band, which holds nine points in ten
BAND_OPACITY = {"degrees": 0.15, "errors": 0.18, "gap": 0.15}
SHORT_RANGE = 100  # ranges up to this factor have labels between powers of ten
DOUBT_WIDTH = 46  # characters of a line that fits into the axes
SMALLEST = 1e-17  # shown instead of an error of zero on a logarithmic axis
# What the scores of a choice mean, by kind.
MEANINGS = {
    "features": "error of unseen features\n(1 = error of the mean)",
    "counts": "error of unseen molecules\n(1 = error of the mean)",
    "labels": "share of hidden labels found wrongly",
}


def plot_path(path: EpsPath, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Axes with degree, perplexity and number of components against ``eps``.

    All three are counts on one logarithmic axis. The band holds the degrees of nine points in ten.
    :func:`otgraph.methods.perplexity` is the effective number of neighbors: the mean degree if all
    weights of a row are equal, and less otherwise. A cross marks graphs that did not converge.

    Parameters
    ----------
    path
        From :func:`otgraph.eps_path`.
    ax, title
        Where to draw, a new figure by default, and the title of the axes.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> path = otgraph.eps_path(X, np.logspace(-1, 1, 5))
    >>> otgraph.plots.plot_path(path).get_xlabel()
    'regularization ε'
    """
    graphs = _in_order_of_eps(path)
    eps = np.array([graph.eps for graph in graphs])
    ax = new_axes(ax)
    low, high = np.transpose([np.quantile(graph.degrees, DEGREE_QUANTILES) for graph in graphs])
    ax.fill_between(eps, low, high, color=GROUPS[0], alpha=BAND_OPACITY["degrees"], linewidth=0)
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


def _in_order_of_eps(path: object) -> list[TransportGraph]:
    if not isinstance(path, EpsPath) or not len(path):
        came = "an empty one" if isinstance(path, EpsPath) else f"{type(path).__name__}"
        msg = f"must be a path of graphs, as `otgraph.eps_path` returns, got {came}."
        raise invalid("path", msg, TypeError)
    return sorted(path, key=lambda graph: graph.eps)


def _mark_failures(
    ax: Axes, graphs: list[TransportGraph], eps: FloatArray, height: list[float]
) -> None:
    statuses = [graph.certificate.status for graph in graphs]
    failed = np.array([status == Status.NOT_CONVERGED for status in statuses])
    if failed.any():
        ax.plot(
            eps[failed], np.array(height)[failed],
            linestyle="", marker="x", markersize=9, color=GROUPS[2], label="not converged",
        )  # fmt: skip


def plot_choice(
    choice: EpsChoice | Graph, *, ax: Axes | None = None, title: str | None = None
) -> Axes:
    """Axes with the error of the predictions against ``eps``, and the value that was chosen.

    The band is two standard errors of the difference from the best value on either side: values
    whose band reaches below the horizontal line may be as good as the best. If the choice is not
    to be trusted, the reason is written into the picture.

    Parameters
    ----------
    choice
        From :func:`otgraph.choose_eps`, or a graph built with ``eps="auto"``.
    ax, title
        Where to draw, a new figure by default, and the title of the axes.

    Examples
    --------
    >>> import otgraph
    >>> choice = otgraph.choose_eps(otgraph.datasets.noisy_spiral(n=300).X)
    >>> otgraph.plots.plot_choice(choice).get_xlabel()
    'regularization ε'
    """
    choice = _as_choice(choice)
    ax = new_axes(ax)
    grid, scores, spread = choice.grid, choice.scores, CLEAR * choice.standard_errors
    color = GROUPS[0]
    low, high, opacity = scores - spread, scores + spread, BAND_OPACITY["errors"]
    ax.fill_between(grid, low, high, color=color, alpha=opacity, linewidth=0)
    ax.axhline(scores.min(), color=INK, linewidth=0.6, alpha=0.5)
    ax.plot(grid, scores, color=color, marker="o", markersize=4, label=choice.kind)
    ax.axvline(choice.eps, color=GROUPS[2], linestyle="--", linewidth=1.2, label="chosen")
    ax.annotate(
        f"ε = {choice.eps:.3g}", (choice.eps, 1.0), (5, -4), color=GROUPS[2],
        xycoords=("data", "axes fraction"), textcoords="offset points", va="top",
    )  # fmt: skip
    if choice.doubt:
        ax.text(
            0.5, 0.5, textwrap.fill(f"not to be trusted: {choice.doubt.value}", DOUBT_WIDTH),
            transform=ax.transAxes, ha="center", color=INK, fontsize="small",
            bbox={"facecolor": "white", "edgecolor": GROUPS[2], "boxstyle": "round,pad=0.5"},
        )  # fmt: skip
    finish(ax, xlabel=EPS_AXIS, ylabel=MEANINGS[choice.kind], xscale="log", title=title)
    ticker = require("matplotlib.ticker", "plots")
    labeled = (1, 2, 5) if grid.max() < SHORT_RANGE * grid.min() else (1,)
    ax.xaxis.set_major_locator(ticker.LogLocator(subs=labeled))
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(ticker.NullFormatter())
    return ax


def _as_choice(choice: EpsChoice | Graph) -> EpsChoice:
    if isinstance(choice, EpsChoice):
        return choice
    params = getattr(choice, "params", None)
    if params is None:
        msg = (
            "must come from `otgraph.choose_eps`, or be a graph built with eps='auto', got "
            f"{type(choice).__name__}."
        )
        raise invalid("choice", msg, TypeError)
    return EpsChoice.from_params(params)


def plot_convergence(
    graphs: Shown,
    *,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Axes with the marginal error after every step of the solver.

    There is one line per graph. It has a gap where the candidate pairs changed: the solver first
    solves loosely on a few pairs, then adds the missing ones. The horizontal line is the
    tolerance. A cross marks the end of a computation that did not reach it.

    Parameters
    ----------
    graphs
        An optimal transport graph or its certificate, a list of them, a dictionary of names
        and graphs, or a path of :func:`otgraph.eps_path`.
    names
        Names for the legend; by default the keys, or how each graph was built.
    ax, title
        Where to draw, a new figure by default, and the title of the axes.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> ax = otgraph.plots.plot_convergence(otgraph.quadratic_ot_graph(X, eps=1.0))
    """
    named = [(name, item, _certificate(item, name)) for name, item in by_name(graphs, names)]
    styles = line_styles(len(named), ordered=isinstance(graphs, EpsPath))
    ax = new_axes(ax)
    for (name, _, certificate), (color, dash) in zip(named, styles, strict=True):
        steps, errors = _curve(certificate)
        ax.plot(
            steps, errors, color=color, linestyle=dash, marker="o", markersize=3, label=name,
        )  # fmt: skip
        if certificate.status == Status.NOT_CONVERGED:
            ax.plot(steps[-1:], errors[-1:], "x", color=color, markersize=10, markeredgewidth=2)
    # Certificates do not know the tolerance, graphs do.
    tolerances = {getattr(item, "params", {}).get("tol") for _, item, _ in named}
    for tol in sorted(filter(None, tolerances)):
        ax.axhline(tol, color=INK, linewidth=0.8)
        ax.annotate(
            f"tolerance {tol:.0e}", (0.0, tol), (3, 2), color=INK, fontsize="small",
            xycoords=("axes fraction", "data"), textcoords="offset points",
        )  # fmt: skip
    ax.xaxis.set_major_locator(require("matplotlib.ticker", "plots").MaxNLocator(integer=True))
    return finish(
        ax, xlabel="step", ylabel="marginal error", yscale="log", title=title,
        entries=len(named) if len(named) > 1 else 0,
    )  # fmt: skip


def _certificate(item: object, name: str) -> Certificate:
    certificate = item if isinstance(item, Certificate) else getattr(item, "certificate", None)
    if certificate is None:
        msg = (
            f"must be optimal transport graphs or their certificates; {name!r} "
            f"({type(item).__name__}) has none. Kernels are computed without iteration."
        )
        raise invalid("graphs", msg, TypeError)
    if not certificate.history:
        msg = f"The certificate of {name!r} holds no history: an older version made it."
        raise ValueError(msg)
    return certificate


def _curve(certificate: Certificate) -> tuple[FloatArray, FloatArray]:
    """Steps and errors of all rounds; NaN makes a gap between rounds."""
    steps: list[float] = []
    errors: list[float] = []
    done = 0
    for round_errors in certificate.history:
        if errors and errors[-1] != round_errors[0]:
            steps.append(np.nan)
            errors.append(np.nan)
        steps += range(done, done + len(round_errors))
        errors += round_errors
        done += len(round_errors) - 1
    return np.array(steps), np.maximum(np.array(errors), SMALLEST)


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
        msg = f"must be a result of `otgraph.cluster`, got {type(clustering).__name__}."
        raise invalid("clustering", msg, TypeError)
    ax = new_axes(ax)
    k = clustering.n_clusters
    heights = np.sqrt(np.clip(1.0 - clustering.eigenvalues, 0.0, None))
    numbers = np.arange(1, len(heights) + 1)
    if len(heights) > k:
        ax.axhspan(*heights[k - 1 : k + 1], color=GROUPS[0], alpha=BAND_OPACITY["gap"], linewidth=0)
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
