"""Make the pictures of docs/how_it_works.md from real runs: ``python docs/make_theory.py``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.patches import Circle
from scipy.cluster.vq import kmeans2
from scipy.spatial import Voronoi, voronoi_plot_2d
from scipy.spatial.distance import cdist

import otgraph

if TYPE_CHECKING:
    from collections.abc import Callable

IMAGES = Path(__file__).parent / "images"
DPI = 120
SIZE = (6.4, 3.4)
BLUE, ORANGE, DARK, LIGHT = "#2a6fbb", "#e07b39", "#22262e", "#c8ccd4"


def main() -> None:
    """Draw and save all pictures."""
    mpl.use("Agg")
    mpl.rcParams.update({
        "axes.spines.top": False, "axes.spines.right": False, "font.size": 10,
        "figure.constrained_layout.use": True,
    })  # fmt: skip
    for draw in (plan, newton, screening, certificate):
        save(draw)


def save(draw: Callable[[Any, Any], None]) -> None:
    """One picture, named after its function."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=SIZE)
    draw(figure, axes)
    figure.savefig(IMAGES / f"how-{draw.__name__}.png", dpi=DPI)
    plt.close(figure)
    print(draw.__name__)


def plan(figure: Any, axes: Any) -> None:
    """A row of the plan as the part of a parabola below a level."""
    rng = np.random.default_rng(3)
    x = np.sort(np.concatenate([rng.normal(-1.0, 0.35, 45), rng.normal(1.6, 0.7, 25)]))
    graph = otgraph.quadratic_ot_graph(x[:, None], eps=3.0, connect=False)
    u, scale = graph.potentials, graph.params["scale"]
    line = np.linspace(x[0] - 0.3, x[-1] + 0.3, 400)
    for i, color in ((24, BLUE), (66, ORANGE)):
        axes.plot(line, (line - x[i]) ** 2 / scale, color=color, lw=1.5)
        cost = (x - x[i]) ** 2 / scale
        near = (u[i] + u > cost) & (np.arange(len(x)) != i)
        axes.vlines(x[near], cost[near], (u[i] + u)[near], color=color, lw=2.5, alpha=0.45)
        axes.plot(x[i], 0.0, "o", color=color, ms=9, zorder=3)
        axes.annotate(
            f"point {i}: {np.count_nonzero(near)} neighbors", (x[i], 0.0), (0, -24),
            textcoords="offset points", ha="center", color=color,
        )  # fmt: skip
    axes.plot(x, np.zeros_like(x), "|", color=DARK, ms=9, alpha=0.7)
    axes.set(ylim=(-0.09, 0.4), xlabel="position", ylabel="cost, in units of the mean cost")
    axes.set_title("Each bar is an edge: from the cost up to $u_i + u_j$, its length is $\\epsilon$"
                   " times its weight", fontsize=9.5)  # fmt: skip


def newton(figure: Any, axes: Any) -> None:
    """Marginal errors on the way to the solution."""
    X = otgraph.datasets.noisy_spiral(n=1000).X
    for eps, color in ((10.0, LIGHT), (1.0, BLUE), (0.1, ORANGE), (0.01, DARK)):
        history = otgraph.quadratic_ot_graph(X, eps=eps, connect=False).certificate.history
        errors = np.concatenate([np.asarray(part) for part in history])
        axes.semilogy(np.maximum(errors, 1e-16), "o-", ms=3, lw=1.3, color=color)
        axes.lines[-1].set_label(f"eps = {eps:g}")
    axes.axhline(1e-6, color=DARK, lw=0.7, ls=":")
    axes.legend(frameon=False, loc=(0.5, 0.1))
    axes.set(xlabel="Newton step", ylabel="largest relative error of a row sum")


def screening(figure: Any, axes: Any) -> None:
    """Cells that one point can meet, and those that are excluded as a whole."""
    figure.set_size_inches(5.2, 4.6)
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal([0, 0], 0.5, (500, 2)), rng.normal([2.6, 0.8], 0.9, (500, 2))])
    graph = otgraph.quadratic_ot_graph(X, eps=0.08, connect=False)
    u = graph.potentials * graph.params["scale"]  # in units of squared distance
    centers, cell = kmeans2(X, 36, seed=1, minit="++")
    i = int(np.argmin(np.linalg.norm(X - [1.5, 0.55], axis=1)))
    met = []
    for k, center in enumerate(centers):
        radius = np.linalg.norm(X[cell == k] - center, axis=1).max(initial=0.0)
        beyond = max(np.linalg.norm(X[i] - center) - radius, 0.0)
        met.append(beyond**2 < u[i] + u[cell == k].max(initial=-np.inf))
    look = np.asarray(met)[cell]
    voronoi_plot_2d(
        Voronoi(centers), axes, show_points=False, show_vertices=False, line_width=0.6,
        line_colors=LIGHT,
    )  # fmt: skip
    axes.scatter(*X[~look].T, s=5, color=LIGHT, label="excluded by a test per cell")
    axes.scatter(*X[look].T, s=7, color=BLUE, label="computed one by one")
    edges = graph.weights[i].indices
    axes.scatter(*X[edges].T, s=22, color=ORANGE, label="edges of the point")
    axes.scatter(*X[i], s=60, color=DARK, zorder=3)
    reach = float(np.sqrt(u[i] + u[look].max()))
    axes.add_patch(Circle(X[i], reach, fill=False, color=DARK, lw=1, ls="--"))
    axes.set(xlim=(-1.8, 5.4), ylim=(-2.2, 3.6), aspect="equal")
    axes.set_axis_off()
    axes.set_title(f"{np.count_nonzero(~np.asarray(met))} of {len(met)} cells are excluded",
                   fontsize=10)  # fmt: skip
    axes.legend(frameon=False, fontsize=8.5, loc="upper left")


def certificate(figure: Any, axes: Any) -> None:
    """Sums of potentials against costs, for all pairs."""
    X = otgraph.datasets.noisy_spiral(n=400).X
    graph = otgraph.quadratic_ot_graph(X, eps=1.0, connect=False)
    costs = cdist(X, X, "sqeuclidean") / graph.params["scale"]
    i, j = np.triu_indices(len(X), 1)
    reach = (graph.potentials[:, None] + graph.potentials)[i, j]
    edge = graph.weights.toarray()[i, j] > 0.0
    axes.scatter(costs[i, j][~edge], reach[~edge], s=2, color=LIGHT, rasterized=True)
    axes.scatter(costs[i, j][edge], reach[edge], s=3, color=BLUE, rasterized=True)
    low, high = reach.min() - 0.05, 1.6 * reach.max()
    axes.plot([low, high], [low, high], color=DARK, lw=0.8)
    axes.set(
        xlim=(max(low - 0.1, 0.0), high), ylim=(low, reach.max() + 0.1),
        xlabel="cost $c_{ij}$", ylabel="$u_i + u_j$",
    )  # fmt: skip
    axes.set_title(
        f"{np.count_nonzero(edge):,} edges above the line, none of {np.count_nonzero(~edge):,} "
        f"other pairs", fontsize=10,
    )  # fmt: skip


if __name__ == "__main__":
    main()
